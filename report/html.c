/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html.h"

#include <string.h>

static int utf8_length(const unsigned char *s) {
  int n = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : (*s & 0xf0) == 0xe0 ? 3 : *s >= 0xf0 && *s < 0xf5 ? 4 : 0;
  for (int i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  return n;
}

void cct_html_text(struct cct_text *html, const char *s) {
  for (; *s; s++) {
    int n = utf8_length((const unsigned char *)s);
    if (*s == '&')
      cct_text_add(html, "&amp;");
    else if (*s == '<')
      cct_text_add(html, "&lt;");
    else if (*s == '>')
      cct_text_add(html, "&gt;");
    else if (*s == '"')
      cct_text_add(html, "&quot;");
    else if (*s == '\'')
      cct_text_add(html, "&#39;");
    else if (*s == ' ' && s[1] == '%')
      cct_text_add(html, "&#160;"); /* a number stays with its sign */
    else if (n == 0 || (unsigned char)*s < 0x20 || *s == 0x7f)
      cct_text_add(html, "\ufffd");
    else {
      cct_text_append(html, s, (size_t)n);
      s += n - 1;
    }
  }
}
