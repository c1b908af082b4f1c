/* SPDX-License-Identifier: Apache-2.0
 * index.html: one self-contained file, verdict first. No script, no request to anywhere. */
#ifndef CCT_REPORT_PAGE_H
#define CCT_REPORT_PAGE_H

#include "base/text.h"
#include "report/figures.h"
#include "report/report.h"

/* One figure that has been drawn in `directory`, in both forms, with its caption. */
enum cct_status cct_page_figure(const struct cct_figure *figure, const char *directory,
                                struct cct_text *html) CCT_CHECKED;
/* `figures` have been drawn in `figures_directory`. */
enum cct_status cct_page_build(const struct cct_report *report, const struct cct_figures *figures,
                               const char *figures_directory, struct cct_text *html) CCT_CHECKED;

#endif
