/* SPDX-License-Identifier: Apache-2.0
 * Tuner rules: which algorithm and protocol a collective of a given size is to use, as a CSV file (docs/tuner.md,
 * "Rules"). Fields 1 to 10 are those of NVIDIA's example tuner: collective, min bytes, max bytes, algorithm, protocol,
 * channels, nodes, ranks, operations in the bin, registered buffers; two optional ones follow: condition, and the
 * prefix of the GPU's name. The first rule that matches and whose cell is usable wins. Sizes are bytes, both ends
 * included.
 *
 * Nothing here writes to stderr: the same code runs inside other people's jobs, so an error is one line that the caller
 * hands to NCCL's logger or to cct_fail. */
#ifndef CCT_TUNER_RULES_H
#define CCT_TUNER_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The numbers are NCCL's own (ncclFunc_t, and the rows and columns of its cost table), held to them by the plugin. */
enum {
  CCT_TUNER_COLLECTIVES = 5,
  CCT_TUNER_ALGORITHMS = 7,
  CCT_TUNER_PROTOCOLS = 3,
  CCT_TUNER_CHANNELS_MAX = 64
};
enum cct_tuner_collective {
  CCT_TUNER_BROADCAST,
  CCT_TUNER_REDUCE,
  CCT_TUNER_ALLGATHER,
  CCT_TUNER_REDUCESCATTER,
  CCT_TUNER_ALLREDUCE,
};
enum cct_tuner_algorithm {
  CCT_TUNER_TREE,
  CCT_TUNER_RING,
  CCT_TUNER_COLLNET_DIRECT,
  CCT_TUNER_COLLNET_CHAIN,
  CCT_TUNER_NVLS,
  CCT_TUNER_NVLS_TREE,
  CCT_TUNER_PAT,
};
enum cct_tuner_protocol {
  CCT_TUNER_LL,
  CCT_TUNER_LL128,
  CCT_TUNER_SIMPLE,
};
extern const char *const cct_tuner_collectives[CCT_TUNER_COLLECTIVES];
extern const char *const cct_tuner_algorithms[CCT_TUNER_ALGORITHMS];
extern const char *const cct_tuner_protocols[CCT_TUNER_PROTOCOLS];

enum cct_rule_condition {
  CCT_RULE_ANY,
  CCT_RULE_CC,           /* the GPUs run with confidential computing on */
  CCT_RULE_CLEAR,        /* they are known to run without */
  CCT_RULE_NO_MULTICAST, /* NVLS is no option for the call */
};

struct cct_rule {
  uint64_t min_bytes, max_bytes;
  int collective, algorithm, protocol;
  int channels;                         /* 0: NCCL's own number */
  int nodes, ranks, pipe_ops, reg_buff; /* -1: any */
  enum cct_rule_condition condition;
  int line;     /* of the file, from 1 */
  char gpu[64]; /* prefix of the GPU's name; "": any */
};

struct cct_rules {
  struct cct_rule *items;
  size_t n, capacity;
};

enum {
  CCT_RULES_WHY = 512,
  CCT_RULE_TEXT = 256,
  CCT_RULES_FILE_MAX = 4 << 20,
  CCT_RULES_MAX = 4096
};

/* Parses a whole file's text, or refuses it: CCT_USAGE and "NAME:LINE: what, the remedy" in `why_out`. */
enum cct_status cct_rules_parse(const char *name, const char *text, size_t length, struct cct_rules *rules_out,
                                char why_out[CCT_RULES_WHY]) CCT_CHECKED;
/* Reads a file of at most CCT_RULES_FILE_MAX bytes (NUL-terminated; the caller frees); CCT_IO and one line in
 * `why_out`. */
enum cct_status cct_rules_read(const char *path, char **text_out, size_t *length_out,
                               char why_out[CCT_RULES_WHY]) CCT_CHECKED;
void cct_rules_free(struct cct_rules *rules);

/* Where a file's rules were measured, as cctax tune writes it in a comment:
 * "# measured: gpu=NVIDIA H200; ranks=2; nccl=22803; condition=off; ...". Rules hold there and are a guess elsewhere.
 * "# predicted: ...": by a simulator, of such a machine. */
struct cct_rules_origin {
  char gpu[96], nccl[16], condition[64]; /* "": not said, or "none"; nccl as NCCL numbers itself, 22803 */
  int ranks;                             /* 0: not said */
  int is_predicted;
};
/* The first such line of a file's text; 0: there is none. */
int cct_rules_origin(const char *text, size_t length, struct cct_rules_origin *origin_out);

/* How many rules can never win because earlier ones cover all their sizes with a cell that is the same or that every
 * machine has; the first such rule, and the first that covers it. A cell that may be missing (NVLS, LL128, ...) hides
 * nothing: the later rule is its fallback. */
size_t cct_rules_unreachable(const struct cct_rules *rules, size_t *rule_out, size_t *by_out);

/* The rule as one line of such a file, without its end. Returns `out`. */
char *cct_rule_text(const struct cct_rule *rule, char out[CCT_RULE_TEXT]);

#endif
