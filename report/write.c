/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "report/figures.h"
#include "report/page.h"
#include "report/report.h"

static enum cct_status make_directory(const char *path) {
  if (mkdir(path, 0777) == 0 || errno == EEXIST)
    return CCT_OK;
  return cct_fail(CCT_IO, "%s: cannot be made: %s; name a directory whose parent exists with -o", path,
                  strerror(errno));
}

static enum cct_status write_in(const char *directory, const char *name, const struct cct_text *text) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return cct_write_file(path, text->s, text->length);
}

/* Data first, the page last: a page that exists is whole. */
enum cct_status cct_report_write(const struct cct_report *report, const char *directory) {
  struct cct_text csv = {0}, page = {0};
  struct cct_json *document = NULL;
  struct cct_figures figures = {0};
  char path[4096], figures_path[4096];
  if ((size_t)snprintf(figures_path, sizeof figures_path, "%s/figures", directory) >= sizeof figures_path - 64)
    return cct_fail(CCT_USAGE, "%.80s...: path too long", directory);
  snprintf(path, sizeof path, "%s/index.html", directory);
  enum cct_status status = cct_report_to_json(report, path, &document);
  if (!status)
    status = cct_report_to_csv(report, &csv);
  if (!status)
    status = cct_figures_make(report, &figures);
  if (!status)
    status = make_directory(directory);
  if (!status)
    status = make_directory(figures_path);
  if (!status)
    status = write_in(directory, "report.csv", &csv);
  snprintf(path, sizeof path, "%s/report.json", directory);
  if (!status)
    status = cct_json_save(document, path);
  for (int i = 0; !status && i < figures.n; i++)
    status = cct_figure_draw(&figures.items[i], figures_path);
  if (!status)
    status = cct_page_build(report, &figures, figures_path, &page);
  if (!status)
    status = write_in(directory, "index.html", &page);
  cct_json_free(document);
  cct_figures_free(&figures);
  cct_text_free(&csv);
  cct_text_free(&page);
  return status;
}
