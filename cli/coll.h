/* SPDX-License-Identifier: Apache-2.0
 * `cctax coll`: from nccl-tests' flags to the cells of a run, and from the run back to nccl-tests' table and JSON. */
#ifndef CCT_CLI_COLL_H
#define CCT_CLI_COLL_H

#include "base/text.h"
#include "cli/run.h"
#include "json/json.h"
#include "record/record.h"
#include "workloads/program/program.h"

/* ---- coll_suite.c ---- */

/* nccl-tests' name of an element type, and the id of either name; -1: unknown. */
const char *cct_coll_type_name(enum cct_type type);
int cct_coll_type(const char *name);
/* What a collective really moves when `size` bytes are asked for, as nccl-tests rounds: whole elements, and shares of
 * whole 16 bytes where ranks have shares. `kind` -1: send_recv. */
int64_t cct_coll_bytes(int kind, int64_t size, enum cct_type type, int ranks);
#define CCT_COLL_QUESTION "What do collectives take, by size?" /* of its suite */
/* The suite of the flags; sets --arms of `options` where flags name several values of a factor. */
enum cct_status cct_coll_suite(struct cct_options *options, int ranks, struct cct_json **suite_out) CCT_CHECKED;

/* ---- what a run says ---- */

enum {
  CCT_COLL_OUT,
  CCT_COLL_IN,
  CCT_COLL_PLACES
};

struct cct_coll_value { /* one cell under one arm */
  int is_asked;         /* there is such a cell */
  int n_samples;        /* bursts; 0: none, and `reason` says why */
  double time_us;       /* the median burst, each averaged over the ranks, as nccl-tests reports it */
  double lo_us, hi_us;  /* 95 % interval of the mean log of blocks' medians, or of one block's samples; NAN: none */
  int is_of_blocks;     /* which of the two */
  double slowest_us;    /* the largest median of a rank's bursts */
  int slowest_rank;
  double algbw_gb_s, busbw_gb_s; /* nccl-tests' */
  int64_t wrong;                 /* elements of all ranks; -1: not checked */
  char ran[100];                 /* what the library chose; "" where it does not say */
  char reason[121], label[64];
};

struct cct_coll_row {           /* one size, type, reduction and root */
  int64_t bytes, count;         /* as nccl-tests prints them */
  const char *type, *reduction; /* as nccl-tests names them */
  int root;                     /* -1: has none */
  struct cct_coll_value value[CCT_COLL_PLACES];
  int is_launch_bound;
};

struct cct_coll_table {           /* one collective under one arm: a run of nccl-tests */
  const struct cct_options *cell; /* of the agenda: its first cell */
  int arm, kind;                  /* kind -1: send_recv */
  const char *collective;
  double limit_gb_s; /* of the link, one way, by the profile; 0: not known */
  char limit_of[160];
  struct cct_coll_row *rows; /* owned */
  int n_rows, wrong_values;  /* values with wrong elements */
  double average_busbw_gb_s; /* over all values; NAN: none */
};

struct cct_coll_result {
  const struct cct_agenda *agenda;
  struct cct_coll_table *tables; /* owned */
  int n_tables;
  char gpu[96], nccl[32], start[32]; /* "": none; the first block's start, UTC, as nccl-tests writes times */
};

/* The blocks of a run, NULL where there is none or it cannot be read (that has been said). */
struct cct_coll_blocks {
  struct cct_block **at;
  int n;
};

/* ---- coll_samples.c ---- */
void cct_coll_blocks_read(const struct cct_agenda *agenda, const char *folder, struct cct_coll_blocks *blocks_out);
void cct_coll_blocks_free(struct cct_coll_blocks *blocks);
/* What the blocks say of a cell under an arm: all of `value` but its bandwidths; adds to its wrong elements. */
enum cct_status cct_coll_samples_read(const struct cct_agenda *agenda, const struct cct_coll_blocks *blocks, int arm,
                                      int cell, struct cct_coll_value *value) CCT_CHECKED;

/* ---- coll_result.c ---- */
/* What a run's blocks hold; `profile` (NULL: none) names the machine whose link bounds a rate. */
enum cct_status cct_coll_read(const struct cct_agenda *agenda, const char *folder, const char *profile,
                              struct cct_coll_result *result_out) CCT_CHECKED;
void cct_coll_free(struct cct_coll_result *result);
const char *cct_coll_formula(int kind);
/* "RING LL128 24 channels", with what the arm asked for and did not get; `out` has 160 bytes. */
char *cct_coll_ran(const struct cct_agenda *agenda, int arm, const char *ran, char *out);

/* ---- coll_table.c, coll_json.c: nccl-tests' layouts; more stands in comments behind, and in keys beside its own ----
 */
/* `flags` NULL: of an earlier command, and their sizes are those of the cells. */
void cct_coll_print(const struct cct_coll_result *result, const struct cct_options *flags, struct cct_text *text);
struct cct_json *cct_coll_json(const struct cct_coll_result *result, const struct cct_options *flags,
                               enum cct_status ended);

#endif
