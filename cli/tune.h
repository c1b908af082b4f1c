/* SPDX-License-Identifier: Apache-2.0
 * `cctax tune`: from a grid of measured choices to rules for the tuner plugin, the environment they need, and their
 * verification (docs/tune.md).
 *
 * A tune's folder holds tune.json (what is asked, and what came of it) and ordinary runs: first/ and rest/, which
 * measure, verify/ and again/, which hold the result against NCCL's default. A process is one block of first/ or rest/:
 * fresh ranks, fresh communicators. Times are us, sizes bytes, ratios below 1 are gains. */
#ifndef CCT_CLI_TUNE_H
#define CCT_CLI_TUNE_H

#include <stdint.h>

#include "base/option.h"
#include "base/text.h"
#include "json/json.h"
#include "stats/stats.h"
#include "tuner/rules.h"

enum {
  CCT_TUNE_LEAST_PROCESSES = 9, /* 5 choose, 4 judge */
  CCT_TUNE_MOST_PROCESSES = 101,
  CCT_TUNE_FIRST = 2, /* processes after which hopeless choices are left out */
  CCT_TUNE_MOST_KINDS = 8,
  CCT_TUNE_MOST_SIZES = 64,
  CCT_TUNE_MOST_BESIDE = 3, /* sizes measured beside a GEMM */
  CCT_TUNE_MOST_CHANNELS = 6,
  CCT_TUNE_MOST_NAMES = 8, /* algorithms, protocols */
  CCT_TUNE_MOST_CHOICES = CCT_TUNE_MOST_CHANNELS * 13,
};
#define CCT_TUNE_HOPELESS 1.3  /* times NCCL's own choice, in each of the first processes */
#define CCT_TUNE_WORTH    0.99 /* a choice that gains less than 1 % is no rule */
#define CCT_TUNE_SLOWER   1.02 /* an interval wholly above is slower */

/* ---- tune_choose.c: pure ---- */

/* Times of one collective: us[(size * n_choices + choice) * n_processes + process], NAN: not measured. */
struct cct_tune_grid {
  const double *us;
  int n_sizes, n_choices, n_processes;
};
static inline double cct_tune_us(const struct cct_tune_grid *grid, int size, int choice, int process) {
  return grid->us[((int64_t)size * grid->n_choices + choice) * grid->n_processes + process];
}
/* Every second process judges, the others choose, so that slow drift meets both alike. */
static inline int cct_tune_is_judge(int process) {
  return process % 2 == 1;
}

/* What NCCL performs, by enum cct_tuner_algorithm and cct_tuner_protocol. */
struct cct_tune_ran {
  int algorithm, protocol;
  int channels; /* 0: not known, or, in a rule, what the communicator has */
};
static inline int cct_tune_is_same(const struct cct_tune_ran *a, const struct cct_tune_ran *b) {
  return a->algorithm == b->algorithm && a->protocol == b->protocol && a->channels == b->channels;
}

struct cct_tune_pick {       /* of one size */
  int candidate;             /* what the choosers would take; `own` where nothing is worth a rule */
  int choice;                /* the candidate where the judges showed it better, else `own` */
  int is_held;               /* the choice is NCCL's default, since `own` is slower by the judges */
  struct cct_ordered judged; /* candidate / own, by the judges; n 0 where there is no candidate */
  struct cct_tune_ran rule;  /* what a rule says for the choice; of `own` nothing */
};
/* Picks for every size among `own` and the choices with is_candidate[size * n_choices + choice] (NULL: all). A
 * candidate is the choosers' best median ratio to `own`, if that is worth it; the smaller neighbour's candidate is
 * preferred where it is within 1 % of it. It is shown if there are at least 4 judges, all of the interval of their
 * ratios lies below 1 and their median is worth it. */
void cct_tune_choose(const struct cct_tune_grid *grid, int own, const char *is_candidate,
                     struct cct_tune_pick *picks_out);
/* The choosers' best of `own` and the candidates, however little it gains. */
int cct_tune_best(const struct cct_tune_grid *grid, int size, int own, const char *is_candidate);
/* choice / own, by the judges. */
struct cct_ordered cct_tune_judged(const struct cct_tune_grid *grid, int size, int choice, int own);
/* A choice that each of the first processes found hopeless against `own`. */
int cct_tune_is_hopeless(const struct cct_tune_grid *grid, int size, int choice, int own);

struct cct_tune_range { /* neighbouring sizes of one rule */
  struct cct_tune_ran rule;
  int first, last;
  int64_t min_bytes, max_bytes;
};
/* Ranges of the picks that are not `own`, by their rules: they begin and end halfway between two measured sizes (the
 * lower half is the smaller size's, its end included), and at the ends of the grid with the measured size. Returns how
 * many; `ranges_out` has room for n. */
int cct_tune_merge(const struct cct_tune_pick *picks, const int64_t *bytes, int n, int own,
                   struct cct_tune_range *ranges_out);

/* The geometric mean of one process over cells, as a logarithm. */
struct cct_tune_mean {
  double sum;
  int n;
};
static inline double cct_tune_log_mean(const struct cct_tune_mean *mean) {
  return mean->n ? mean->sum / mean->n : 0;
}

/* ---- tune_plan.c ---- */

struct cct_tune_choice {
  char algorithm[16], protocol[16]; /* "": NCCL's own */
  int channels;                     /* index into the plan's */
};

struct cct_tune_plan {
  char backend[8], condition[96], profile[256], noise[256], type[12], objective[12];
  char rules[3800], plugin[3800]; /* rules: beside RUN/rules.csv, "": none */
  char gpu[64];                   /* sim: that the profile is of; else "" */
  int kinds[CCT_TUNE_MOST_KINDS]; /* enum cct_collective; -1: send_recv */
  int64_t bytes[CCT_TUNE_MOST_SIZES], beside[CCT_TUNE_MOST_BESIDE];
  int channels[CCT_TUNE_MOST_CHANNELS]; /* 0: NCCL's own number, always the first */
  struct cct_tune_choice choices[CCT_TUNE_MOST_CHOICES];
  int n_kinds, n_bytes, n_beside, n_channels, n_choices;
  int each; /* choices of one number of channels; choices[channel * each] is NCCL's own */
  int ranks, is_shared_gpu;
  int64_t rounds, samples, warmup, seed;
  char is_usable[CCT_TUNE_MOST_KINDS][CCT_TUNE_MOST_CHOICES]; /* there is such a communicator for this collective */
};
enum cct_status cct_tune_plan_make(const struct cct_options *flags, struct cct_tune_plan *plan_out) CCT_CHECKED;
enum cct_status cct_tune_add_kind(void *plan_context, const char *part) CCT_CHECKED; /* a collective, for cct_split */
/* Which choices there are: what NCCL has for a collective; on sim what the profile has a row of; on host one. Sets
 * `gpu`. */
enum cct_status cct_tune_find_usable(struct cct_tune_plan *plan) CCT_CHECKED;
const char *cct_tune_kind_name(int kind);
/* Which of enum cct_tuner_collective; -1: NCCL asks no tuner. */
int cct_tune_tuned(int kind);
int64_t cct_tune_bytes(const struct cct_tune_plan *plan, int kind, int64_t size); /* as NCCL moves them */
/* "ring/ll128/32"; `out` has 48 bytes. */
char *cct_tune_choice_text(const struct cct_tune_plan *plan, int choice, char *out);
/* ---- tune_plan_json.c ---- */
struct cct_json *cct_tune_plan_json(const struct cct_tune_plan *plan);
enum cct_status cct_tune_plan_read(const struct cct_json_at *at, struct cct_tune_plan *plan_out) CCT_CHECKED;

/* ---- tune_read.c ---- */

struct cct_block;
struct cct_block_cell;

struct cct_tune_data {
  int n_processes;
  double *alone[CCT_TUNE_MOST_KINDS];  /* of a struct cct_tune_grid; owned */
  double *beside[CCT_TUNE_MOST_KINDS]; /* the same over plan->beside, one choice a number of channels: NCCL's own */
  char gpu[96], nccl[16], driver[32], date[16], condition[96]; /* of the processes; "": not known */
  int is_nvls_off;                                             /* by NCCL_NVLS_ENABLE */
  struct cct_tune_ran *ran[CCT_TUNE_MOST_KINDS];               /* [size * n_choices + choice], as NCCL says; owned */
  int n_other; /* cells that NCCL performed otherwise than the communicator asked for: not measured */
};
struct cct_tune_grid cct_tune_alone(const struct cct_tune_plan *plan, const struct cct_tune_data *data, int kind);
struct cct_tune_grid cct_tune_beside(const struct cct_tune_plan *plan, const struct cct_tune_data *data, int kind);
enum cct_status cct_tune_data_new(const struct cct_tune_plan *plan, int n_processes,
                                  struct cct_tune_data *data_out) CCT_CHECKED;
/* Adds the finished blocks of RUN as processes `first`, ... */
enum cct_status cct_tune_data_read(const struct cct_tune_plan *plan, const char *run, int first,
                                   struct cct_tune_data *data) CCT_CHECKED;
void cct_tune_data_free(struct cct_tune_data *data);

/* Which of the plan's a cell is; kind -1: none. */
struct cct_tune_place {
  int kind, size, choice, is_beside;
  int is_chosen; /* it says its choice, be it NCCL's own */
};
struct cct_tune_place cct_tune_place_of(const struct cct_tune_plan *plan, const struct cct_options *cell);
double cct_tune_cell_us(const struct cct_block_cell *cell);
/* "RING LL128 24 channels, 4096 B"; channels 0 where it is not said. */
struct cct_tune_ran cct_tune_ran_parse(const char *text);
char *cct_tune_ran_text(const struct cct_tune_ran *ran, char out[64]); /* "ring ll128, 24 channels" */
/* What ran is what was asked for, as far as NCCL says it. */
int cct_tune_is_as_asked(const struct cct_tune_plan *plan, int choice, const struct cct_tune_ran *ran);
static inline const struct cct_tune_ran *
cct_tune_ran(const struct cct_tune_plan *plan, const struct cct_tune_data *data, int kind, int size, int choice) {
  return &data->ran[kind][size * plan->n_choices + choice];
}
void cct_tune_facts_read(const struct cct_block *block, struct cct_tune_data *data);

/* ---- tune_decide.c ---- */

struct cct_tune_setting { /* one number of channels */
  struct cct_tune_pick picks[CCT_TUNE_MOST_KINDS][CCT_TUNE_MOST_SIZES];
  struct cct_ordered shown[CCT_TUNE_MOST_KINDS][CCT_TUNE_MOST_SIZES]; /* what it chooses / NCCL's default, judges */
  struct cct_ordered gain;    /* geometric mean over all cells, against NCCL's default; judges */
  struct cct_ordered counted; /* of what the objective counts, against the default number of channels; judges */
  struct cct_ordered beside;  /* beside a GEMM, against the default number of channels; judges; n 0: not measured */
  int n_held;                 /* sizes that it would make slower, and a rule holds to NCCL's default */
  char why_not[160];          /* "": taken, or nothing speaks against it */
};
struct cct_tune_decision {
  struct cct_tune_setting *settings; /* owned; one a number of channels */
  int channels;                      /* the setting that was chosen */
  /* Ratios: the choosers' best choice of every size, by the judges' medians, none counted above 1: of all that was
   * measured, and of what can be had with the chosen number of channels. */
  double grid_gain, allowed_gain;
  int n_left_out; /* cells without all of NCCL's own times */
};
enum cct_status cct_tune_decide(const struct cct_tune_plan *plan, const struct cct_tune_data *data,
                                struct cct_tune_decision *decision_out) CCT_CHECKED;
void cct_tune_decision_free(struct cct_tune_decision *decision);

/* ---- tune_suite.c ---- */

struct cct_tune_cells { /* a set of collectives and sizes */
  char is_in[CCT_TUNE_MOST_KINDS][CCT_TUNE_MOST_SIZES];
  int n;
};
/* What the first processes measure (NULL), or the others, who leave out what `first` found hopeless. NULL: no memory.
 */
struct cct_json *cct_tune_measure_suite(const struct cct_tune_plan *plan, const struct cct_tune_data *first);
int cct_tune_is_measured(const struct cct_tune_plan *plan, const struct cct_tune_data *first, int kind, int size,
                         int choice);
/* `only` NULL: every cell. */
struct cct_json *cct_tune_verify_suite(const struct cct_tune_plan *plan, const struct cct_tune_decision *decision,
                                       const struct cct_tune_cells *only);
/* cuda: arms of the factor tuner; else the cells themselves say the choice that a rule would make. */
int cct_tune_verifies_by_plugin(const struct cct_tune_plan *plan);
/* The flags of a run of the tune's: what `flags` says of launching, everything else by the plan. */
enum cct_status cct_tune_flags(const struct cct_tune_plan *plan, const struct cct_options *flags, const char *folder,
                               int64_t rounds, struct cct_options *flags_out) CCT_CHECKED;

/* ---- tune_verify.c ---- */

struct cct_tune_held { /* one cell, tuned / NCCL's default */
  double us[2];        /* medians of the default and of the tuned; NAN: not measured */
  struct cct_ordered ratio;
};
struct cct_tune_verdict {
  struct cct_tune_held *first, *again; /* [kind * n_bytes + size]; owned */
  double gain;                         /* geometric mean of ratios */
  int n_missed, n_still;   /* cells whose interval lies above +2 %, at first and after one more measurement */
  int n_unknown, n_failed; /* cells without a ratio; failed ones, such as by wrong elements */
  int n_proofs;            /* files that the plugin left; -1: no plugin is asked */
  int is_gain_held, is_held;
};
enum cct_status cct_tune_verify_read(const struct cct_tune_plan *plan, const char *run, struct cct_tune_data *facts,
                                     struct cct_tune_held held_out[], int *n_failed_out) CCT_CHECKED;
void cct_tune_missed(const struct cct_tune_plan *plan, const struct cct_tune_verdict *verdict,
                     struct cct_tune_cells *missed_out);
/* At least 90 % of the grid's gain; no cell still slower. */
void cct_tune_judge(const struct cct_tune_plan *plan, const struct cct_tune_decision *decision,
                    struct cct_tune_verdict *verdict);

/* ---- tune_write.c ---- */

/* Everything below is of one tune's folder. */
struct cct_tune {
  char folder[3800]; /* absolute */
  struct cct_tune_plan plan;
  struct cct_tune_data data;
  struct cct_tune_decision decision;
  struct cct_tune_verdict verdict;
  char *told;  /* channels and rules that tune.json had when it was opened; NULL: none; owned */
  int is_made; /* the folder: it was not there before */
  int is_decided, is_verified;
};
/* The rules of the chosen setting, in order; `rules_out` has room for n_kinds * n_bytes. Returns how many. */
int cct_tune_rules(const struct cct_tune *tune, struct cct_rule *rules_out);
enum cct_status cct_tune_write(const struct cct_tune *tune) CCT_CHECKED; /* rules.csv, nccl.conf, environment.sh */

/* ---- tune_result.c ---- */
static inline int cct_tune_channels(const struct cct_tune *tune) { /* that were chosen; 0: NCCL's own number */
  return tune->plan.channels[tune->decision.channels];
}
static inline const struct cct_tune_setting *cct_tune_setting(const struct cct_tune *tune) { /* of these channels */
  return &tune->decision.settings[tune->decision.channels];
}
char *cct_tune_nccl(const struct cct_tune *tune, char out[32]);                /* "NCCL 2.28.3", "no NCCL" */
void cct_tune_percent(struct cct_text *text, const struct cct_ordered *ratio); /* "-3.4 % [-3.5, -3.4]" */
/* Channels and rules, a line each: of a tune, and of its tune.json (NULL: none there, or no memory). */
void cct_tune_tell(const struct cct_tune *tune, struct cct_text *text);
char *cct_tune_told(const struct cct_json *document);
struct cct_json *cct_tune_json(const struct cct_tune *tune, enum cct_status ended);
enum cct_status cct_tune_save(const struct cct_tune *tune, enum cct_status ended) CCT_CHECKED; /* tune.json */
void cct_tune_print(const struct cct_tune *tune, struct cct_text *text);

/* ---- tune_figures.c ---- */
struct cct_figure;
const char *cct_tune_label(const struct cct_tune *tune); /* measured, emulated or predicted */
/* Of the processes, or of what sim plays; "": not known. */
const char *cct_tune_gpu(const struct cct_tune *tune);
char *cct_tune_channels_text(const struct cct_tune *tune, char out[64]); /* "32 channels" */
void cct_tune_gain_figure(const struct cct_tune *tune, struct cct_figure *figure);
void cct_tune_choices_figure(const struct cct_tune *tune, struct cct_figure *figure);

/* ---- tune_page.c ---- */
enum cct_status cct_tune_page(const struct cct_tune *tune) CCT_CHECKED; /* report/index.html and its figures */

#endif
