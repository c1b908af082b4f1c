/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/document.h"
#include "report/report.h"
#include "workloads/program/profile.h"

static enum cct_status print_json(const struct cct_report *report, const char *directory) {
  struct cct_json *document = NULL;
  char page[4096];
  snprintf(page, sizeof page, "%s/index.html", directory ? directory : "");
  enum cct_status status = cct_report_to_json(report, directory ? page : NULL, &document);
  return status ? status : cct_document_print(document);
}

static enum cct_status print_table(const struct cct_report *report, const char *directory) {
  struct cct_text text = {0};
  cct_report_to_table(report, &text);
  enum cct_status status = text.is_failed ? cct_fail(CCT_NOMEM, "out of memory: the comparison table") : CCT_OK;
  if (!status)
    fputs(text.s, stdout);
  if (!status && directory)
    printf("\n%s/index.html\n", directory);
  cct_text_free(&text);
  return status;
}

/* One that cannot be read is the caller's mistake; of those that runs name the report says why they are of no use. */
static enum cct_status check_profile(const char *name) {
  struct cct_profile *profile = NULL;
  enum cct_status status = name ? cct_profile_load(name, &profile) : CCT_OK;
  cct_profile_free(profile);
  return status;
}

enum cct_status cct_cmd_report(const struct cct_options *options, const char *const *args, int n_args) {
  struct cct_runs runs = {0};
  struct cct_report report = {0};
  const char *directory = options->v[CCT_OPT_OUTPUT].s, *profile = options->v[CCT_OPT_PROFILE_FILE].s;
  if (!n_args)
    return cct_fail(CCT_USAGE, "report: no run directory given; cctax report RUN... -o DIR");
  enum cct_status status = check_profile(profile);
  if (!status)
    status = cct_runs_load(args, n_args, &runs);
  if (!status)
    status = cct_report_make(&runs, options->v[CCT_OPT_ALLOW].s, profile, &report);
  if (!status && directory)
    status = cct_report_write(&report, directory);
  if (!status)
    status = options->v[CCT_OPT_JSON].i ? print_json(&report, directory) : print_table(&report, directory);
  if (!status && cct_report_has_failures(&report))
    status = CCT_FOUND;
  cct_report_free(&report);
  cct_runs_free(&runs);
  return status;
}
