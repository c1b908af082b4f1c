/* SPDX-License-Identifier: Apache-2.0
 * suite.json and flags into cells: lists multiply out in the order written, flags replace what the suite says. */
#ifndef CCT_MPI_RUNNER_SUITE_H
#define CCT_MPI_RUNNER_SUITE_H

#include "base/option.h"
#include "json/json.h"

struct cct_suite {
  struct cct_json *document;
  struct cct_json_at root;
  struct cct_text *notes; /* lines: which flag replaced what; kept back so that an error stays one line */
};

/* Reads SUITE_PATH, or with NULL makes a suite of one cell that holds nothing; checks its keys and types. */
enum cct_status cct_suite_load(const char *suite_path, struct cct_text *notes, struct cct_suite *suite_out) CCT_CHECKED;
void cct_suite_free(struct cct_suite *suite);

/* The value of a whole-number setting: the flag where given, else the suite's, else the flag's default. */
enum cct_status cct_suite_number(const struct cct_suite *suite, const struct cct_options *flags, enum cct_option_id id,
                                 int64_t *value_out) CCT_CHECKED;

/* All cells, in order; each is its own cct_options (cct_options_free each, free the array). Cells that are equal are
 * refused. */
enum cct_status cct_suite_cells(const struct cct_suite *suite, const struct cct_options *flags,
                                struct cct_options **cells_out, int *n_cells_out) CCT_CHECKED;

/* Calls `take` for each part of `text` between `separator`s; stops at the first that fails. */
enum cct_status cct_split(const char *text, char separator, enum cct_status (*take)(void *context, const char *part),
                          void *context) CCT_CHECKED;

#endif
