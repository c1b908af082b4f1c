/* SPDX-License-Identifier: Apache-2.0
 * BLOCK.h5: the facts and samples of one block, written so that a kill at any instant loses no finished cell.
 *
 * Layout (docs/record.md): a 512-byte user block "cctax1" + SHA-256 of the rest; `/` attributes schema, tool, run,
 * block, round, factor, arm, boot; /facts rows {name, class, value}; /program text; /cells/NNNN attributes key (the
 * CELL as canonical JSON), label; /cells/NNNN/METRIC rows {rank i32, index i32, n i32, start_ns i64, value f64},
 * attributes unit, better; /cells/NNNN/state one row {state i8, reason char[120], digest char[64], counts i64}, created
 * first, overwritten last.
 *
 * A writer creates the whole structure, then appends rows and flushes; `finish` closes, writes the user block, fsyncs
 * and renames PATH.partial to PATH. One process writes; HDF5 is used from one thread. */
#ifndef CCT_RECORD_RECORD_H
#define CCT_RECORD_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define CCT_FACT_CLASSES(X)                                                                                            \
  X(IDENTITY, "identity") X(CONDITION, "condition") X(REPLICATE, "replicate") X(DRIFT, "drift")
enum cct_fact_class {
#define CCT_FACT_CLASS_ENUM(id, name) CCT_FACT_##id,
  CCT_FACT_CLASSES(CCT_FACT_CLASS_ENUM)
#undef CCT_FACT_CLASS_ENUM
  CCT_FACT_CLASS_COUNT
};
const char *cct_fact_class_name(enum cct_fact_class fact_class);
int cct_fact_class_by_name(const char *name); /* -1: none */

struct cct_record_fact {
  char name[48];
  enum cct_fact_class fact_class;
  char value[128];
};

enum cct_cell_state {
  CCT_CELL_OPEN,
  CCT_CELL_DONE,
  CCT_CELL_FAILED,
  CCT_CELL_REFUSED,
};

struct cct_sample { /* one timed interval of one rank, already divided by n */
  int32_t rank, index, n;
  int64_t start_ns;
  double value;
};

struct cct_metric {
  char name[48], unit[16];
  char better[8]; /* "lower" or "higher" */
};

/* A step of rank 0 by count. All 0: not known. */
struct cct_cell_counts {
  int64_t submissions, graphs, nodes, kernels;
};

struct cct_record_head {
  char tool[32], run[65]; /* version; agenda digest */
  int block, round, boot;
  char factor[32], arm[96];
  char boot_id[64];
};

/* ---- writing ---- */
struct cct_record_cell {
  const char *key, *label; /* canonical JSON of the CELL; "measured", "emulated", "predicted", with ",scaled" etc. */
  const struct cct_metric *metrics;
  int n_metrics;
};

struct cct_record;
/* Creates PATH.partial (CCT_IO if it cannot) with all groups. Everything is copied. */
enum cct_status cct_record_create(const char *path, const struct cct_record_head *head,
                                  const struct cct_record_fact *facts, int n_facts, const char *program,
                                  const struct cct_record_cell *cells, int n_cells,
                                  struct cct_record **record_out) CCT_CHECKED;
/* Opens PATH.partial of an interrupted block to go on; cells whose state is DONE, FAILED or REFUSED with a good digest
 * stay, the rows of an OPEN cell are dropped. CCT_DAMAGED when it does not open: start the block anew. */
enum cct_status cct_record_reopen(const char *path, struct cct_record **record_out) CCT_CHECKED;
enum cct_cell_state cct_record_state(const struct cct_record *record, int cell);
enum cct_status cct_record_append(struct cct_record *record, int cell, int metric, const struct cct_sample *samples,
                                  int n) CCT_CHECKED; /* flushed before it returns */
/* What the cell's program says, and what the backend performed; on disk together with the state that is set next. */
void cct_record_set_counts(struct cct_record *record, int cell, const struct cct_cell_counts *program,
                           const struct cct_cell_counts *performed);
enum cct_status cct_record_set_state(struct cct_record *record, int cell, enum cct_cell_state state,
                                     const char *reason) CCT_CHECKED;
enum cct_status cct_record_add_facts(struct cct_record *record, const struct cct_record_fact *facts, int n) CCT_CHECKED;
enum cct_status cct_record_finish(struct cct_record *record) CCT_CHECKED; /* frees it, also on failure */
void cct_record_abandon(struct cct_record *record);                       /* closes, leaves PATH.partial; NULL-safe */

/* ---- reading ---- */
struct cct_block_metric {
  struct cct_metric metric;
  struct cct_sample *samples;
  int n_samples;
};
struct cct_block_cell {
  char *key, *label;
  enum cct_cell_state state;
  char reason[121];
  struct cct_cell_counts program, performed;
  struct cct_block_metric *metrics;
  int n_metrics;
};
struct cct_block {
  char *path;
  struct cct_record_head head;
  struct cct_record_fact *facts;
  int n_facts;
  char *program;
  struct cct_block_cell *cells;
  int n_cells;
};
/* Reads a finished file (or, with `is_partial`, what is whole in a .partial). The digest of the file is checked first.
 */
enum cct_status cct_block_read(const char *path, int is_partial, struct cct_block **block_out) CCT_CHECKED;
void cct_block_free(struct cct_block *block); /* NULL-safe */

struct cct_check_result {
  int is_sound;      /* the file's own digest holds */
  int n_bad;         /* cells that do not open or whose digest fails */
  int bad[64];       /* the first of them */
  char finding[256]; /* one line: "sound", the cells, or "structure or unused bytes, no cell affected" */
};
enum cct_status cct_record_check(const char *path, struct cct_check_result *result_out) CCT_CHECKED;

#endif
