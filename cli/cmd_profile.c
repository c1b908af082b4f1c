/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/document.h"
#include "cli/profile_make.h"

static const char *const directions[] = {"h2d", "d2h"}, *const memories[] = {"pinned", "pageable"},
                         *const columns[] = {"clear", "confidential"};

static void print_line(const struct cct_profile_line *line) {
  const struct cct_estimate *e = &line->estimate;
  printf("%-52s ", line->path);
  if (e->is_known)
    printf("%12.6g [%.6g, %.6g], %d repeats within %.1f %%  ", e->value, e->lo, e->hi, e->repeats, 100 * e->spread);
  printf("%s\n", cct_value_state_name(line->state));
}

static void print_text(const struct cct_profile_report *report) {
  char text[32];
  for (size_t i = 0; i < report->n; i++) {
    if (i == report->n_values)
      printf("beside the profile:\n");
    print_line(&report->lines[i]);
  }
  for (int c = 0; c < 2; c++)
    for (int d = 0; d < 2; d++)
      for (int k = 0; k < 2; k++)
        if (report->copies[c].crossover_bytes[d][k] > 0)
          printf("%s copy %s %s: up to %s the call costs more than its bytes\n", columns[c], directions[d], memories[k],
                 cct_bytes_text(report->copies[c].crossover_bytes[d][k], text));
}

static enum cct_status print_json(const struct cct_profile_report *report, const char *path, int is_written) {
  struct cct_json *document = cct_document_new("profile"), *values = cct_json_new_array(),
                  *crossover = cct_json_new_array();
  cct_json_set_string(document, "profile", is_written ? path : NULL);
  for (size_t i = 0; i < report->n; i++) {
    const struct cct_estimate *e = &report->lines[i].estimate;
    struct cct_json *row = cct_json_new_object();
    cct_json_set_string(row, "path", report->lines[i].path);
    cct_json_set_string(row, "state", cct_value_state_name(report->lines[i].state));
    cct_json_set_bool(row, "is_of_profile", i < report->n_values);
    static const char *const keys[] = {"value", "lo", "hi", "spread_pct"};
    const double numbers[] = {e->value, e->lo, e->hi, 100 * e->spread};
    for (int k = 0; k < 4; k++)
      if (e->is_known)
        cct_json_set_f64(row, keys[k], numbers[k]);
      else
        cct_json_set_null(row, keys[k]);
    cct_json_set_i64(row, "repeats", e->repeats);
    cct_json_add(values, row);
  }
  for (int c = 0; c < 2; c++)
    for (int d = 0; d < 2; d++)
      for (int k = 0; k < 2; k++) {
        struct cct_json *row = cct_json_new_object();
        cct_json_set_string(row, "column", columns[c]);
        cct_json_set_string(row, "direction", directions[d]);
        cct_json_set_string(row, "memory", memories[k]);
        cct_json_set_f64(row, "bytes", report->copies[c].crossover_bytes[d][k]);
        cct_json_add(crossover, row);
      }
  cct_json_set(document, "values", values);
  cct_json_set(document, "crossover", crossover);
  return cct_document_print(document);
}

/* "dir/b200.json" -> "b200" */
static enum cct_status name_of(const char *path, char *name, size_t size) {
  const char *slash = path ? strrchr(path, '/') : NULL, *base = slash ? slash + 1 : path;
  size_t length = base ? strlen(base) : 0;
  if (length < 6 || strcmp(base + length - 5, ".json") || length - 5 >= size)
    return cct_fail(CCT_USAGE, "-o PROFILE.json: give the profile's file, its name up to %zu characters and .json",
                    size - 1);
  snprintf(name, size, "%.*s", (int)(length - 5), base);
  return CCT_OK;
}

/* An older profile of that name stays until the new one has been read back. */
static enum cct_status save(const struct cct_json *document, const char *path) {
  struct cct_profile *profile = NULL;
  char beside[4096];
  snprintf(beside, sizeof beside, "%s%s.new", strchr(path, '/') ? "" : "./", path);
  enum cct_status status = cct_json_save(document, beside);
  if (status)
    return status;
  if (cct_profile_load(beside, &profile))
    status = cct_fail(CCT_DAMAGED, "%s: what was to be written does not load again, and is not kept", path);
  else if (rename(beside, path))
    status = cct_fail(CCT_IO, "%s: cannot be written: %s", path, strerror(errno));
  if (status)
    unlink(beside);
  cct_profile_free(profile);
  return status;
}

/* A profile is made again and again; what is none was not ours. */
static enum cct_status check_output(const char *path) {
  struct cct_profile *profile = NULL;
  struct stat facts;
  if (lstat(path, &facts) != 0)
    return CCT_OK;
  cct_log_mute(1);
  int is_profile = !cct_profile_load(path, &profile);
  cct_log_mute(0);
  cct_profile_free(profile);
  return is_profile ? CCT_OK
                    : cct_fail(CCT_USAGE,
                               "-o %s: what is there is no profile, and stays; name another, or take it away", path);
}

static void tell_lost(const struct cct_profile_report *report) {
  for (size_t i = 0; i < report->n; i++)
    if (report->lines[i].state == CCT_VALUE_REPLACED)
      cct_warn("%s: unstable (%d repeats within %.1f %%), taken from --profile", report->lines[i].path,
               report->lines[i].estimate.repeats, 100 * report->lines[i].estimate.spread);
}

/* Two columns of one profile are of one kind of GPU, measured by one backend. */
static enum cct_status check_same_gpu(const struct cct_probe_points *points) {
  static const char *const names[] = {"gpu.name", "gpu"};
  const struct cct_probe_set *clear = &points->sets[CCT_PROBE_CLEAR];
  for (int s = CCT_PROBE_STRIPPED; s < CCT_PROBE_COLUMNS; s++) {
    const struct cct_probe_set *other = &points->sets[s];
    if (other->n && strcmp(clear->backend, other->backend))
      return cct_fail(CCT_USAGE, "condition %s is of backend %s, %s of %s: they make no profile together",
                      clear->condition, clear->backend, other->condition, other->backend);
    for (int i = 0; other->n && i < 2; i++) {
      const char *a = cct_probe_set_fact(clear, names[i]), *b = cct_probe_set_fact(other, names[i]);
      if (a && b && strcmp(a, b))
        return cct_fail(CCT_USAGE, "condition %s is of '%s', %s of '%s': they make no profile together",
                        clear->condition, a, other->condition, b);
    }
  }
  return CCT_OK;
}

enum cct_status cct_cmd_profile(const struct cct_options *options, const char *const *args, int n_args) {
  const char *path = options->v[CCT_OPT_OUTPUT].s, *base_name = options->v[CCT_OPT_PROFILE_FILE].s;
  struct cct_probe_points *points = calloc(1, sizeof *points);
  struct cct_profile *base = NULL;
  struct cct_profile_report report = {0};
  struct cct_json *document = NULL;
  char name[48];
  enum cct_status status = points ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory");
  if (!status && (n_args < 1 || n_args > 2))
    status = cct_fail(CCT_USAGE, "cctax profile OFF_RUN [ON_RUN] -o PROFILE.json");
  if (!status)
    status = name_of(path, name, sizeof name);
  if (!status)
    status = check_output(path);
  if (!status && base_name)
    status = cct_profile_load(base_name, &base);
  for (int i = 0; !status && i < n_args; i++)
    status = cct_probe_points_add(points, args[i]);
  if (!status && !points->sets[CCT_PROBE_CLEAR].n)
    status = cct_fail(CCT_USAGE, "%s: no block of condition off or tee: a profile's clear column needs one", args[0]);
  if (!status)
    status = check_same_gpu(points);
  if (!status)
    status = cct_profile_make(points, base, name, &report, &document);
  if (!status && !report.n_lost) {
    tell_lost(&report);
    status = save(document, path);
  }
  if (!status && options->v[CCT_OPT_JSON].i)
    status = print_json(&report, path, !report.n_lost);
  else if (!status)
    print_text(&report);
  if (!status && report.n_lost)
    status =
        cct_fail(CCT_FOUND, "%s: not written: %d values are unstable or missing%s; probe again on a quiet machine%s",
                 path, report.n_lost, base ? ", and the profile of --profile has none of them" : "",
                 base ? "" : ", or name a profile to take them from with --profile");
  cct_json_free(document);
  cct_profile_report_free(&report);
  cct_profile_free(base);
  if (points)
    cct_probe_points_free(points);
  free(points);
  return status;
}
