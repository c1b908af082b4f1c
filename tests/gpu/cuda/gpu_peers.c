/* SPDX-License-Identifier: Apache-2.0
 * Copies from another rank's memory: every rank reads every rank's buffers, large, small and ones that copies write; a
 * copy that reads the wrong memory is found. In a graph there is none. */
#include <stdio.h>
#include <stdlib.h>

#include "gpu_check.h"

#define LARGE ((int64_t)1 << 20)

static void read_of(struct build *b, int peer, int from, int to, int64_t bytes) {
  struct cct_op op = {.kind = CCT_OP_COPY,
                      .lane = b->lane,
                      .host = b->is_in_graph ? -1 : b->host,
                      .reads = {from, -1},
                      .writes = to,
                      .name = "read"};
  op.copy.direction = CCT_COPY_P2P;
  op.copy.memory = CCT_MEM_DEVICE;
  op.copy.bytes = cct_constant(bytes);
  op.copy.peer = peer;
  cct_program_add(b->program, &op, NULL, 0);
}

/* In a graph: one copy. */
static struct cct_job *peers_job(const char *name, int ranks, int in_graph) {
  struct build b;
  build_begin(&b, name, FORM_CLEAR, 0);
  int large = cct_program_add_buffer(b.program, "large", cct_constant(LARGE), CCT_MEM_DEVICE, 0);
  int small = cct_program_add_buffer(b.program, "small", cct_constant(100), CCT_MEM_DEVICE, 0);
  int smaller = cct_program_add_buffer(b.program, "smaller", cct_constant(7), CCT_MEM_DEVICE, 0);
  int to = cct_program_add_buffer(b.program, "to", cct_constant(LARGE), CCT_MEM_DEVICE, 0);
  int graph = in_graph ? build_open(&b, CCT_OP_GRAPH, 0) : -1;
  for (int peer = 0; peer < ranks && !(in_graph && peer); peer++) {
    read_of(&b, peer, large, to, LARGE - 3);
    read_of(&b, peer, small, to, 100);
    read_of(&b, peer, smaller, -1, 7);
    read_of(&b, peer, smaller, large, 7);
    read_of(&b, peer, large, small, 100);
  }
  if (in_graph)
    build_close(&b, graph);
  build_sync(&b);
  return build_end(&b, ranks);
}

/* One after the other: ranks may be threads of one process. NULL: not any more. */
static void ask_for_corruption(const struct gpu *gpu, const char *rank) {
  for (int turn = 0; turn < gpu->world->size; turn++) {
    (void)gpu->world->ops->barrier(gpu->world);
    if (turn == gpu->world->rank && rank)
      setenv("CCTAX_TEST_CORRUPT", rank, 1);
    else if (turn == gpu->world->rank)
      unsetenv("CCTAX_TEST_CORRUPT");
  }
  (void)gpu->world->ops->barrier(gpu->world);
}

static void wrong_memory_is_found(struct gpu *gpu) {
  struct cct_wrong wrong = {0};
  struct arm arm;
  char rank[16];
  int last = gpu->world->size - 1;
  arm_open(gpu, &arm, "one wrong peer", peers_job("one wrong peer", gpu->world->size, 0), 0);
  snprintf(rank, sizeof rank, "%d", last);
  ask_for_corruption(gpu, rank);
  enum cct_status status = arm.x ? gpu->ops->verify(arm.x, NULL, &wrong) : CCT_UNSUPPORTED;
  ask_for_corruption(gpu, NULL);
  gpu_check(gpu, !status && (gpu->world->rank == last ? wrong.wrong > LARGE / 2 : !wrong.wrong),
            "a copy from its own memory in place of its peer's is found on that rank alone");
  arm_close(gpu, &arm);
}

void check_peers(struct gpu *gpu) {
  struct arm arm;
  arm_open(gpu, &arm, "reads of peers, eager", peers_job("reads of peers", gpu->world->size, 0), 1);
  if (arm.x)
    arms_time(gpu, &arm, 1, gpu->is_shared ? 1 : 3, 2, NULL);
  arm_close(gpu, &arm);
  struct cct_job *job = peers_job("reads in a graph", gpu->world->size, 1);
  gpu_check(gpu, cct_job_check(job) == CCT_USAGE, "refused: a read of a peer in a graph");
  cct_job_free(job);
  if (gpu->world->size > 1)
    wrong_memory_is_found(gpu);
}
