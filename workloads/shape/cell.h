/* SPDX-License-Identifier: Apache-2.0
 * A CELL as JSON: one workload with one setting of every parameter, in the form of struct cct_options of which the rows
 * of CCT_SCOPE_CELL count. The JSON holds what was set, and of the defaults those that matter for the workload, so that
 * two cells that perform the same work have the same canonical text. */
#ifndef CCT_WORKLOADS_SHAPE_CELL_H
#define CCT_WORKLOADS_SHAPE_CELL_H

#include "base/option.h"
#include "json/json.h"

enum cct_workload {
  CCT_WORKLOAD_TRAIN,
  CCT_WORKLOAD_PREFILL,
  CCT_WORKLOAD_DECODE,
  CCT_WORKLOAD_SERVE,
  CCT_WORKLOAD_COLLECTIVE,
  CCT_WORKLOAD_PROBE,
  CCT_WORKLOAD_NONE, /* a `program` cell */
};

/* The value of a CELL key as text, its default resolved by the workload (graph: full for decode and serve, none
 * otherwise; dispatch: per-rank in serving, per-expert in training); NULL: not given and without a default. Borrowed
 * from the cell. */
const char *cct_cell_text(const struct cct_options *cell, enum cct_option_id id);
enum cct_workload cct_cell_workload(const struct cct_options *cell);
/* 1 if `id` is a CELL key that makes a difference in this cell: set, or a default that its workload reads. */
int cct_cell_matters(const struct cct_options *cell, enum cct_option_id id);

/* ---- cell_reads.c: which keys decide something where ---- */

enum cct_reading {
  CCT_READ,
  CCT_OF_OTHER_WORKLOADS, /* nothing that the cell says could make its workload read the key */
  CCT_OF_OTHER_SETTINGS,
};
/* Whether the key can decide anything in this cell, whatever its value; why not (128): "decode and serve alone read
 * it", "needs --speculate". `of_out` (may be NULL): what a cell of one is, "of serve", "of these". */
enum cct_reading cct_cell_reads(const struct cct_options *cell, enum cct_option_id id, char why[128],
                                const char **of_out);
/* 1 if cells set the key and none that does reads it: then `why` (200) says so of all of them. */
int cct_cells_ignore(const struct cct_options *cells, int n, enum cct_option_id id, char why[200]);

/* The backend that alone reads an option, of a cell or of a command; NULL: every one does, or says itself what it
 * cannot. `neutral_out`: the value that asks for nothing; NULL: none. */
const char *cct_only_backend(enum cct_option_id id, const char **neutral_out);
/* 0: this backend moves such a collective (or send_recv) from one buffer to another alone. */
int cct_has_in_place(const char *collective, const char *backend);

/* A new object with one typed value a key that matters. CCT_NOMEM only. */
enum cct_status cct_cell_to_json(const struct cct_options *cell, struct cct_json **json_out) CCT_CHECKED;

/* A new cell with every default filled in; cct_options_free it. An unknown key, a list, a wrong type or a value out of
 * range is CCT_USAGE with its JSON path (a doubled key is refused where the text is parsed). */
enum cct_status cct_cell_from_json(const struct cct_json_at *at, struct cct_options *cell_out) CCT_CHECKED;

#endif
