/* SPDX-License-Identifier: Apache-2.0
 * The tables of the page. Private to report/. */
#ifndef CCT_REPORT_PAGE_PARTS_H
#define CCT_REPORT_PAGE_PARTS_H

#include "base/text.h"
#include "report/report.h"

void cct_page_cell(struct cct_text *html, const char *attributes, const char *text); /* one <td>, escaped */
void cct_page_numbers(const struct cct_report *report, struct cct_text *html);       /* all comparisons */
void cct_page_noise(const struct cct_report *report, struct cct_text *html);         /* spread, outliers, drift, A/A */
enum cct_status cct_page_contradictions(struct cct_text *html) CCT_CHECKED;          /* of published figures */
void cct_page_provenance(const struct cct_report *report, struct cct_text *html);    /* facts of every arm */

#endif
