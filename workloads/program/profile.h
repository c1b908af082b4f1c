/* SPDX-License-Identifier: Apache-2.0
 * A profile: one platform's unit costs in two columns, clear and confidential, read from data/profiles/NAME.json or a
 * file. Every number has its bounds, its kind and its source. Units: us, GB/s = 1e9 bytes/s one way, TFLOP/s = 1e12,
 * bytes. */
#ifndef CCT_WORKLOADS_PROGRAM_PROFILE_H
#define CCT_WORKLOADS_PROGRAM_PROFILE_H

#include <stdio.h>

#include "base/status.h"
#include "workloads/program/program.h"

#define CCT_COST_KINDS(X) X(MEASURED, "measured") X(PUBLISHED, "published") X(DERIVED, "derived") X(ASSUMED, "assumed")
enum cct_cost_kind {
#define CCT_COST_KIND_ENUM(id, name) CCT_COST_##id,
  CCT_COST_KINDS(CCT_COST_KIND_ENUM)
#undef CCT_COST_KIND_ENUM
  CCT_COST_KIND_COUNT
};

const char *cct_cost_kind_name(enum cct_cost_kind kind);

struct cct_cost {
  double value, lo, hi;
  enum cct_cost_kind kind;
  const char *source; /* owned by the profile */
};

enum cct_submission_form { /* where a confidential submission's extra time is spent */
  CCT_FORM_HOST,           /* on the submitting thread: hidden where the GPU is behind */
  CCT_FORM_STREAM,         /* in front of the work, on the stream */
};

struct cct_copy_cost {
  struct cct_cost fixed_us, gb_s; /* fixed_us without the submission */
  int blocks;                     /* the call returns at the copy's end */
  int waits_for_stream;           /* starts only when the stream's earlier work is done */
};

struct cct_collective_cost { /* time = toll + wire bytes / busbw; tolls exclude the submission */
  enum cct_collective kind;
  int ranks;
  char algorithm[16], protocol[16]; /* as NCCL names them; algorithm "NVLS", "NVLS_TREE" need multicast */
  int channels;                     /* 0: NCCL's default */
  struct cct_cost toll_us_eager, toll_us_graph, busbw_gb_s;
};

struct cct_gemm_cost { /* a measured shape, used before the roofline */
  enum cct_type type;
  int64_t m, n, k;
  struct cct_cost us;
};

struct cct_column {
  struct {
    struct cct_cost us;
    enum cct_submission_form form;
  } submission;
  struct {
    struct cct_cost us, us_per_node;
  } graph_launch;
  struct cct_cost sync_us, kernel_floor_us;
  struct cct_copy_cost copy[2][2]; /* [CCT_COPY_H2D | D2H][CCT_MEM_PINNED | PAGEABLE] */
  struct {
    struct cct_cost ce_gb_s, sm_gb_s, short_write_us;
  } p2p;
  struct cct_collective_cost *collectives;
  int n_collectives;
  struct cct_gemm_cost *gemms;
  int n_gemms;
  struct cct_cost gemm_tflop_s[CCT_TYPE_COUNT]; /* source NULL: not given for this type */
  struct cct_cost hbm_gb_s, memory_bytes, reserved_bytes, cpu_slowdown;
  struct {
    struct cct_cost us, gb_s; /* source NULL: no network, np beyond platform.gpus is refused */
  } net;
};

struct cct_profile {
  char name[64];
  char digest[65]; /* of the file's canonical text */
  struct {
    char gpu[64], cpu[64], tee[16], mode[32], driver[32];
    int gpus, partition; /* GPUs of the NVLink domain; GPUs of the guest */
  } platform;
  struct cct_column clear, confidential;
  int has_clear, has_confidential;
  struct { /* what is left under confidential computing: 1 yes, 0 taken away */
    int multicast, work_fifo, async_copy, host_register, gdr;
  } capability;
  struct cct_json *document; /* keeps the sources' text alive */
};

/* Of a copy between host and device. Mapped memory is pinned memory that the GPU itself reads and writes. */
static inline const struct cct_copy_cost *cct_column_copy(const struct cct_column *column, enum cct_direction direction,
                                                          enum cct_memory memory) {
  return &column->copy[direction][memory == CCT_MEM_PAGEABLE];
}

/* NAME_OR_FILE as cct_data_path (base/data.h) takes it. What is missing or wrong is refused by JSON path. */
enum cct_status cct_profile_load(const char *name_or_file, struct cct_profile **profile_out) CCT_CHECKED;
void cct_profile_free(struct cct_profile *profile); /* NULL-safe */
/* As a person reads it: a line a cost with both columns, bounds, surcharge, kinds and sources. profile_show.c */
void cct_profile_show(const struct cct_profile *profile, FILE *out);

#endif
