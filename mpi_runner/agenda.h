/* SPDX-License-Identifier: Apache-2.0
 * The agenda of a run: which blocks, in which order, over which cells. Made once from a suite and flags, kept as
 * RUN/run.json, read by every rank. What decides the figures is under `digest`; boots, which are added by --append, are
 * not.
 *
 * Blocks are numbered boot by boot, in each boot round by round, in each round arm by arm; round r begins with arm r
 * mod n, so that no arm always comes first. A boot performs the arms that its machine can (off and on need a reboot
 * between them). */
#ifndef CCT_MPI_RUNNER_AGENDA_H
#define CCT_MPI_RUNNER_AGENDA_H

#include <stdint.h>

#include "base/option.h"
#include "json/json.h"

#define CCT_MOST_ARMS 64
#define CCT_MAX_BOOTS 64

struct cct_boot {
  char id[64]; /* the machine's boot id */
  int arms[CCT_MOST_ARMS], n_arms;
};

struct cct_agenda {
  char question[256];
  char factor[32]; /* "condition", a CELL key, or what the environment of a block sets: tuner, net,
                      registration, choice (ALGORITHM/PROTOCOL/CHANNELS of NCCL's) */
  char arms[CCT_MOST_ARMS][96];
  int n_arms;
  char condition[96];                    /* of every block, where the factor is another */
  char backend[8];                       /* cuda, host, sim */
  char profile[256], profile_digest[65]; /* what sim plays; "" otherwise */
  char emulated[CCT_MOST_ARMS][65];      /* digest of the profile that arm i emulates, or is stripped by; "" */
  char stripped[256];                    /* the profile that a stripped arm on GPUs is stripped by; "" */
  int64_t rounds, samples, warmup, seed;
  char noise[256];
  int is_shared_gpu;
  struct cct_options *cells;
  char (*programs)[65]; /* each cell's program digest, before emulation and before the arm's factor */
  int *ranks;           /* each cell's */
  int n_cells;
  char digest[65];
  /* How a block is launched; not under the digest. */
  int64_t deadline_s, procs; /* procs: of sim; 0: up to 8 */
  char launcher[256];
  struct cct_boot boots[CCT_MAX_BOOTS];
  int n_boots;
  char *notes; /* of planning: lines that say which flag replaced what of the suite; NULL: none */
};

struct cct_block_at { /* a block's place */
  int block, boot, round, arm;
};

/* From the flags of `cctax run` and a suite file (NULL: none). Flags replace what the suite says, and `notes` says so.
 * Backend `auto` must have been resolved. Everything is checked, every cell's program built once; nothing is written.
 */
enum cct_status cct_agenda_plan(const struct cct_options *flags, const char *suite_path, const char *condition,
                                struct cct_agenda **agenda_out) CCT_CHECKED;
enum cct_status cct_agenda_save(const struct cct_agenda *agenda, const char *run) CCT_CHECKED; /* RUN/run.json */
/* CCT_DAMAGED when run.json's content does not fit its digest. */
enum cct_status cct_agenda_load(const char *run, struct cct_agenda **agenda_out) CCT_CHECKED;
void cct_agenda_free(struct cct_agenda *agenda); /* NULL-safe */

/* Adds a value of the factor; refuses an empty or doubled one. */
enum cct_status cct_agenda_add_arm(struct cct_agenda *agenda, const char *text) CCT_CHECKED;
enum cct_status cct_agenda_seal(struct cct_agenda *agenda) CCT_CHECKED; /* sets `digest` */

/* A new boot of the arms in `arms`; CCT_USAGE when there are too many boots or this one is there already. */
enum cct_status cct_agenda_add_boot(struct cct_agenda *agenda, const char *id, const int *arms, int n_arms) CCT_CHECKED;
int cct_agenda_blocks(const struct cct_agenda *agenda);
struct cct_block_at cct_agenda_block(const struct cct_agenda *agenda, int block);
/* "RUN/block-0003.h5" into `out`. */
char *cct_agenda_path(const char *run, int block, char *out, size_t size);

/* The condition of an arm's blocks ("off", "emulated:PROFILE", ...). */
const char *cct_agenda_condition(const struct cct_agenda *agenda, int arm);
/* The profile that changes an arm's blocks on a real machine: of an emulated arm, of a stripped one on GPUs; "": none.
 */
const char *cct_agenda_arm_profile(const struct cct_agenda *agenda, int arm);
/* Cell `index` as an arm performs it: where the factor is a CELL key, with the arm's value. cct_options_free it. */
enum cct_status cct_agenda_cell(const struct cct_agenda *agenda, int index, int arm,
                                struct cct_options *cell_out) CCT_CHECKED;
int cct_agenda_most_ranks(const struct cct_agenda *agenda);
int cct_agenda_processes(const struct cct_agenda *agenda); /* that a block is launched with */

#endif
