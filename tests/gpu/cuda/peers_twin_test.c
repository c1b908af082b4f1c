/* SPDX-License-Identifier: Apache-2.0
 * Copies from another rank's memory without a GPU: the values part of the GPU checks over the twin, its ranks as
 * threads of one process; and what follows where a driver refuses CUDA IPC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "fakes/twin_gpu.h"
#include "fakes/world_threads.h"
#include "gpu_check.h"

struct cct_log_room;
const struct cct_backend_ops *cctax_cuda_ops(const struct cct_log_room *room);

static const struct cct_backend_ops *ops;
static int is_one_gpu;

static void sit(const struct cct_world *world, void *failed) {
  struct gpu gpu = {.world = world, .ops = ops, .is_shared = 1}; /* its times tell nothing */
  gpu.options.deadline_ns = 20000000000;
  gpu.options.is_shared_gpu = is_one_gpu;
  if (gpu.ops->open(world, &gpu.options, &gpu.backend)) {
    ((int *)failed)[world->rank] = 1000;
    return;
  }
  check_peers(&gpu);
  gpu.ops->close(gpu.backend);
  ((int *)failed)[world->rank] = gpu.failed;
}

static void values_on_one_to_three_ranks(void **state) {
  (void)state;
  for (int i = 0; i < 6; i++) {
    int failed[3] = {0}, ranks = 1 + i % 3;
    is_one_gpu = i >= 3;
    assert_int_equal(cct_world_threads(ranks, sit, failed), 0);
    assert_int_equal(failed[0] + failed[1] + failed[2], 0);
  }
}

/* Rank 1 alone reads: `bytes` of rank 0's buffer. */
static struct cct_job *one_reader(int64_t bytes) {
  struct cct_job *job;
  assert_int_equal(cct_job_new(2, &job), CCT_OK);
  cct_job_add_group(job, "all", 2, 1);
  for (int rank = 0; rank < 2; rank++) {
    struct build b;
    build_begin(&b, rank ? "reader" : "read", FORM_CLEAR, 0);
    cct_program_add_buffer(b.program, "left", cct_constant(256), CCT_MEM_DEVICE, 0);
    struct cct_op op = {
        .kind = CCT_OP_COPY, .lane = b.lane, .host = b.host, .reads = {0, -1}, .writes = -1, .name = "read"};
    op.copy.direction = CCT_COPY_P2P;
    op.copy.memory = CCT_MEM_DEVICE;
    op.copy.bytes = cct_constant(bytes);
    if (rank)
      cct_program_add(b.program, &op, NULL, 0);
    build_sync(&b);
    assert_int_equal(cct_job_add_role(job, b.program, rank, 1), CCT_OK);
  }
  assert_int_equal(cct_job_check(job), CCT_OK);
  return job;
}

static const struct attempt { /* in this order, on one backend */
  double map_error, share_error;
  int64_t bytes;
  enum cct_status wanted;
  const char *line;
} attempts[] = {
    {801, 0, 256, CCT_UNSUPPORTED,
     "cuda: no CUDA IPC here (error 801): rank 1 may not map 'left' of rank 0: copy through the host"},
    {801, 0, 256, CCT_UNSUPPORTED, "rank 1 may not map 'left'"},
    {0, 801, 256, CCT_UNSUPPORTED, " may not share 'left'"},
    {217, 0, 256, CCT_UNSUPPORTED, "(error 217)"},
    {0, 0, 257, CCT_UNSUPPORTED, "entry 0 'read' of rank 1 reads 257 bytes, and 'left' of rank 0 has 256"},
    {0, 0, 256, CCT_OK, ""},
    {999, 0, 256, CCT_STOPPED, "CUDA IPC"}, /* no refusal, but a GPU that failed */
};
#define N_ATTEMPTS (sizeof attempts / sizeof *attempts)
struct told {
  enum cct_status status;
  char line[200];
  struct cct_wrong wrong;
};

static void attempt_all(const struct cct_world *world, void *argument) {
  const struct cct_backend_options options = {.deadline_ns = 20000000000, .is_shared_gpu = 1};
  struct cct_backend *backend = NULL;
  struct told *told = (struct told *)argument + (size_t)world->rank * N_ATTEMPTS;
  if (ops->open(world, &options, &backend))
    return;
  cct_log_mute(1);
  for (size_t i = 0; i < N_ATTEMPTS; i++) {
    struct cct_job *job = one_reader(attempts[i].bytes);
    struct cct_executor *x = NULL;
    (void)world->ops->barrier(world);
    if (world->rank == 0) {
      twin_costs.ipc_error = attempts[i].map_error;
      twin_costs.share_error = attempts[i].share_error;
    }
    (void)world->ops->barrier(world);
    told[i].status = ops->load(backend, job, &x);
    snprintf(told[i].line, sizeof told[i].line, "%s", told[i].status ? cct_log_last() : "");
    if (x && ops->verify(x, NULL, &told[i].wrong))
      told[i].status = CCT_STOPPED;
    ops->unload(x);
    cct_job_free(job);
  }
  cct_log_mute(0);
  ops->close(backend);
}

/* On every rank alike, the one too that reads nothing and was refused nothing; nothing half open is left behind. */
static void refusals_are_all_ranks_with_one_line(void **state) {
  struct told told[2][N_ATTEMPTS] = {{{.status = CCT_OK}}};
  (void)state;
  assert_int_equal(cct_world_threads(2, attempt_all, told), 0);
  twin_costs.ipc_error = twin_costs.share_error = 0;
  for (size_t i = 0; i < N_ATTEMPTS; i++)
    for (int rank = 0; rank < 2; rank++) {
      const struct told *t = &told[rank][i];
      if (t->status != attempts[i].wanted || !strstr(t->line, attempts[i].line) || strlen(t->line) > 119 ||
          (!(i == 2) && strcmp(t->line, told[0][i].line)))
        fail_msg("attempt %zu, rank %d: %s, '%s'", i, rank, cct_status_name(t->status), t->line);
      assert_int_equal(t->wrong.wrong, 0);
      assert_int_equal(t->wrong.elements, !t->status && rank ? 256 : 0);
    }
}

int main(void) {
  ops = cctax_cuda_ops(NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(values_on_one_to_three_ranks),
                                     cmocka_unit_test(refusals_are_all_ranks_with_one_line)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
