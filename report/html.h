/* SPDX-License-Identifier: Apache-2.0
 * Text into HTML: every text that is not this program's own goes through here. */
#ifndef CCT_REPORT_HTML_H
#define CCT_REPORT_HTML_H

#include "base/text.h"

/* Appends `s` escaped for element content and quoted attributes; bytes that are no UTF-8 or control characters become
 * U+FFFD. */
void cct_html_text(struct cct_text *html, const char *s);

#endif
