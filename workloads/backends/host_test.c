/* SPDX-License-Identifier: Apache-2.0
 * The host backend: its values, every kind of work and exchange checked by verify(), and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "workloads/backends/host_built_test.h"

/* ---- values ---- */

static uint32_t sum_of_codes(enum cct_type type, uint32_t a, uint32_t b) {
  cct_host_combine(type, CCT_REDUCTION_SUM)(&a, &b, 1);
  return a;
}

static void narrow_sums_round_to_even(void **state) {
  (void)state;
  static const struct {
    enum cct_type type;
    int a, b, sum;
  } rows[] = {
      {CCT_TYPE_BF16, 255, 1, 256},   {CCT_TYPE_BF16, 256, 1, 256},   {CCT_TYPE_BF16, 258, 1, 260},
      {CCT_TYPE_FP16, 2047, 1, 2048}, {CCT_TYPE_FP16, 2048, 1, 2048}, {CCT_TYPE_FP16, 2050, 1, 2052},
      {CCT_TYPE_FP8, 15, 1, 16},      {CCT_TYPE_FP8, 16, 1, 16},      {CCT_TYPE_FP8, 18, 1, 20},
      {CCT_TYPE_FP8, 448, 448, 448},  {CCT_TYPE_FP8_E5M2, 7, 1, 8},   {CCT_TYPE_FP8_E5M2, 8, 1, 8},
      {CCT_TYPE_FP8_E5M2, 10, 1, 12}, {CCT_TYPE_FP32, 3, -3, 0},      {CCT_TYPE_BF16, -3, 3, 0},
      {CCT_TYPE_INT32, -7, 5, -2},    {CCT_TYPE_INT8, 100, 27, 127},  {CCT_TYPE_FP16, 65504, 65504, 65504},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint32_t a = 0, b = 0;
    cct_host_put(rows[i].type, &a, 0, rows[i].a);
    cct_host_put(rows[i].type, &b, 0, rows[i].b);
    a = sum_of_codes(rows[i].type, a, b);
    if (!cct_host_is(rows[i].type, &a, 0, rows[i].sum))
      fail_msg("%s: %d + %d gave code %x", cct_type_name(rows[i].type), rows[i].a, rows[i].b, a);
  }
  uint32_t one = 0;
  cct_host_put(CCT_TYPE_BF16, &one, 0, 1);
  assert_int_equal(one, 0x3f80);
  one = 0;
  cct_host_put(CCT_TYPE_FP8, &one, 0, 1);
  assert_int_equal(one, 0x38);
  assert_int_equal(sum_of_codes(CCT_TYPE_FP16, 0x03ff, 1), 0x0400); /* subnormals */
  assert_int_equal(sum_of_codes(CCT_TYPE_FP8, 1, 1), 2);
  assert_int_equal(sum_of_codes(CCT_TYPE_FP8_E5M2, 3, 1), 4);
  assert_int_equal(sum_of_codes(CCT_TYPE_BF16, 1, 1), 2);
  assert_null(cct_host_combine(CCT_TYPE_NVFP4, CCT_REDUCTION_SUM));
}

static void every_partial_sum_is_exact(void **state) {
  (void)state;
  for (int type = 0; type < CCT_TYPE_COUNT; type++)
    for (int n = 1; n <= 40; n += 3)
      for (size_t index = 0; index < 100; index++) {
        int64_t total = 0, p = cct_type_significand_bits((enum cct_type)type), exact = INT64_C(1) << (p < 24 ? p : 24);
        for (int member = 0; member < n; member++)
          total += cct_host_input((enum cct_type)type, CCT_REDUCTION_SUM, n, member, index);
        assert_in_range(total, 0, exact);
        if (n > exact)
          assert_int_equal(total, exact);
      }
}

/* ---- programs ---- */

static void work_is_right(void **state) {
  (void)state;
  struct built b = build(1);
  put_gemm(&b, 33, 17, 65, 1);
  put_gemm(&b, 8, 40, 24, 3);
  struct cct_op op = on(&b, CCT_OP_ATTENTION);
  op.attention.kv_bytes = cct_constant(100002);
  op.attention.flops = cct_constant(2000000);
  put(&b, op);
  op = on(&b, CCT_OP_ELEMENTWISE);
  op.elementwise.bytes = cct_constant(10001);
  put(&b, op);
  put_copy(&b, 12345, 0);
  put_copy(&b, 3 * CCT_SEAL_CHUNK_BYTES + 7, 1);
  put_copy(&b, 0, 0);
  struct use use = used(&b, 1, 2);
  assert_int_equal(use.wrong.wrong, 0);
  /* spots of two products, a sum and a tile's diagonal, elements, bytes of two copies */
  assert_int_equal(use.wrong.elements, 256 + 256 + 1 + 64 + 1251 + 12345 + 3 * CCT_SEAL_CHUNK_BYTES + 7);
}

static void exchanges_are_right(void **state) {
  (void)state;
  static const enum cct_type types[] = {CCT_TYPE_FP32,     CCT_TYPE_BF16,  CCT_TYPE_FP16, CCT_TYPE_FP8,
                                        CCT_TYPE_FP8_E5M2, CCT_TYPE_INT32, CCT_TYPE_INT8};
  for (int ranks = 1; ranks <= 4; ranks++) {
    struct built b = build(ranks);
    for (int kind = 0; kind < CCT_COLL_COUNT; kind++)
      for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        put_collective(&b, (enum cct_collective)kind, types[t], cct_constant(1000), -1);
    put_collective(&b, CCT_COLL_ALL_GATHER, CCT_TYPE_NVFP4, cct_constant(1000), -1);
    struct cct_op op = on(&b, CCT_OP_GROUP);
    put(&b, op);
    op.p2p.bytes = cct_constant(100);
    for (int i = 0; ranks > 1 && i < 4; i++) {
      op.kind = i % 2 ? CCT_OP_RECV : CCT_OP_SEND;
      op.p2p.group = 0;
      op.p2p.peer_offset = i % 2 ? -1 : 1;
      put(&b, op);
    }
    op = on(&b, CCT_OP_END);
    op.lane = op.host = -1;
    put(&b, op);
    struct use use = {.options = plain, .job = b.job, .n = 2};
    for (use.is_roomy = 0; use.is_roomy < 2; use.is_roomy++) {
      assert_int_equal(cct_world_threads(ranks, use_job, &use), 0);
      assert_int_equal(use.wrong.wrong, 0);
      assert_true(use.wrong.elements > 20000);
    }
    cct_job_free(b.job);
  }
}

/* In one buffer, and from one to another. */
static void places_are_kept(void **state) {
  (void)state;
  for (int ranks = 1; ranks <= 3; ranks++) {
    struct built b = build(ranks);
    int one = cct_program_add_buffer(b.program, "one", cct_constant(1000), CCT_MEM_DEVICE, 1);
    int other = cct_program_add_buffer(b.program, "other", cct_constant(1000), CCT_MEM_DEVICE, 1);
    for (int kind = 0; kind < CCT_COLL_COUNT; kind++) {
      put_placed(&b, (enum cct_collective)kind, CCT_TYPE_BF16, 600, one, one);
      put_placed(&b, (enum cct_collective)kind, CCT_TYPE_BF16, 600, one, other);
    }
    struct use use = {.options = plain, .job = b.job, .n = 2};
    assert_int_equal(cct_world_threads(ranks, use_job, &use), 0);
    assert_int_equal(use.wrong.wrong, 0);
    cct_job_free(b.job);
  }
}

/* A binding of another size than the template's, and a traffic matrix with nothing for some. */
static void bindings_change_sizes(void **state) {
  (void)state;
  enum {
    ranks = 3
  };
  struct built b = build(ranks);
  int slot = cct_program_add_slot(b.program, "kv", 100);
  put_collective(&b, CCT_COLL_ALL_REDUCE, CCT_TYPE_BF16, cct_per_slot(4, slot), -1);
  put_collective(&b, CCT_COLL_ALL_TO_ALLV, CCT_TYPE_BF16, cct_per_slot(4, slot), 0);
  int64_t value = 5000, bytes[ranks * ranks] = {0, 70000, 1, 2, 0, 0, 3, 4, 500};
  struct cct_matrix matrix = {ranks, bytes};
  struct cct_binding binding = {&value, &matrix};
  struct use use = {.options = plain, .job = b.job, .binding = &binding, .n = 2};
  assert_int_equal(cct_world_threads(ranks, use_job, &use), 0);
  assert_int_equal(use.wrong.wrong, 0);
  cct_job_free(b.job);
}

/* ---- a world that damages what it moves ---- */

static struct cct_world_ops damaged;
static const struct cct_world_ops *sound;
static unsigned char *received;
static const void *sent;

static enum cct_status damaged_split(const struct cct_world *w, int colour, int key, struct cct_world **world_out) {
  enum cct_status status = sound->split(w, colour, key, world_out);
  (*world_out)->ops = &damaged;
  return status;
}

static enum cct_status damaged_iallgather(const struct cct_world *w, const void *send, size_t bytes, void *recv,
                                          struct cct_request **request_out) {
  received = recv;
  sent = send;
  return sound->iallgather(w, send, bytes, recv, request_out);
}

static enum cct_status damaged_test(const struct cct_world *w, struct cct_request *request, int *done_out) {
  enum cct_status status = sound->test(w, request, done_out);
  if (*done_out)
    received[77] ^= 1;
  return status;
}

static struct use used_damaged(const struct built *b) {
  struct cct_world world = *cct_world_self();
  sound = world.ops;
  damaged = *sound;
  damaged.split = damaged_split;
  damaged.iallgather = damaged_iallgather;
  damaged.test = damaged_test;
  world.ops = &damaged;
  struct use use = {.options = plain, .job = b->job, .n = 1};
  use_job(&world, &use);
  cct_job_free(b->job);
  return use;
}

static void wrong_elements_are_counted(void **state) {
  (void)state;
  struct built b = build(1);
  put_collective(&b, CCT_COLL_ALL_GATHER, CCT_TYPE_BF16, cct_constant(100), -1);
  struct use use = used_damaged(&b);
  assert_ptr_not_equal(sent, received);
  assert_int_equal(use.wrong.wrong, 1);
  assert_int_equal(use.wrong.elements, 100);
  assert_string_equal(use.wrong.first, "entry 0 '', element 77");
  b = build(1);
  int one = cct_program_add_buffer(b.program, "one", cct_constant(100), CCT_MEM_DEVICE, 1);
  put_placed(&b, CCT_COLL_ALL_GATHER, CCT_TYPE_BF16, 100, one, one);
  use = used_damaged(&b);
  assert_ptr_equal(sent, received); /* in place: of one process, its part is all */
  assert_int_equal(use.wrong.wrong, 1);
}

/* ---- scale, refusals, experiments ---- */

static void scale_divides_the_work(void **state) {
  (void)state;
  for (int scale = 1; scale <= 1000; scale *= 10) {
    struct built b = build(1);
    put_gemm(&b, 8, 100, 40, 2);
    put_copy(&b, 5000, 0);
    cct_program_add_buffer(b.program, "weights", cct_constant(100000), CCT_MEM_DEVICE, 1);
    struct use use = {.options = plain, .job = b.job, .n = 1};
    use.options.scale = scale;
    assert_int_equal(cct_world_threads(1, use_job, &use), 0);
    assert_int_equal((int64_t)use.counts.flops, 2 * 8 * 100 * 40 * 2 / scale);
    assert_int_equal((int64_t)use.counts.copy_bytes[CCT_COPY_H2D], 5000 / scale);
    assert_int_equal((int64_t)use.counts.weight_bytes, 100000 / scale);
    assert_int_equal(use.counts.submissions, 2);
    assert_int_equal(use.wrong.wrong, 0);
    cct_job_free(b.job);
  }
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  struct cct_backend *backend = NULL;
  struct cct_executor *x = NULL;
  struct cct_backend_options options = plain;
  options.scale = 0;
  assert_int_equal(cct_backend_host.open(cct_world_self(), &options, &backend), CCT_USAGE);
  assert_null(backend);
  assert_int_equal(cct_backend_host.open(cct_world_self(), &plain, &backend), CCT_OK);
  struct built b = build(2);
  assert_int_equal(cct_backend_host.load(backend, b.job, &x), CCT_USAGE); /* two ranks, one process */
  cct_job_free(b.job);
  b = build(1);
  put_collective(&b, CCT_COLL_ALL_REDUCE, CCT_TYPE_NVFP4, cct_constant(8), -1);
  assert_int_equal(cct_backend_host.load(backend, b.job, &x), CCT_UNSUPPORTED);
  cct_job_free(b.job);
  b = build(1);
  put_copy(&b, INT64_C(1) << 50, 0);
  assert_int_equal(cct_backend_host.load(backend, b.job, &x), CCT_UNSUPPORTED); /* more than the memory */
  cct_job_free(b.job);
  b = build(1);
  put_gemm(&b, 1, 0, 1, 1);
  assert_int_equal(cct_backend_host.load(backend, b.job, &x), CCT_USAGE); /* by the check */
  cct_job_free(b.job);
  assert_null(x);
  double series[3];
  int n = -1;
  assert_int_equal(cct_backend_host.experiment(backend, "marker", NULL, 0, series, 3, &n), CCT_UNSUPPORTED);
  assert_int_equal(cct_backend_host.experiment(backend, "aes_rate", (double[]){-1}, 1, series, 3, &n), CCT_USAGE);
  assert_int_equal(n, -1);
  cct_backend_host.close(backend);
}

static void experiments_measure(void **state) {
  (void)state;
  static const char *const names[] = {"aes_rate", "copy_rate", "seal_chunk", "submission"};
  struct cct_backend *backend;
  assert_int_equal(cct_backend_host.open(cct_world_self(), &plain, &backend), CCT_OK);
  for (int i = 0; i < 4; i++) {
    double series[5] = {0};
    int n = 0;
    assert_int_equal(cct_backend_host.experiment(backend, names[i], NULL, 0, series, 5, &n), CCT_OK);
    assert_int_equal(n, 5);
    for (int s = 0; s < n; s++)
      assert_true(series[s] > 0);
    print_message("%-12s %.3f %.3f %.3f %.3f %.3f\n", names[i], series[0], series[1], series[2], series[3], series[4]);
  }
  cct_backend_host.close(backend);
}

/* Process 1 comes only after process 0 has given up. */
static void deserted(const struct cct_world *world, void *argument) {
  struct cct_backend_options options = plain;
  struct cct_backend *backend;
  struct cct_executor *x;
  int64_t ns;
  struct cct_burst burst = {.rank_ns = &ns};
  options.deadline_ns = 200000000;
  if (cct_backend_host.open(world, &options, &backend) || cct_backend_host.load(backend, argument, &x))
    abort();
  if (world->rank == 1)
    (void)world->ops->barrier(world);
  enum cct_status status = cct_backend_host.step(x, NULL, 1, &burst);
  if (status != (world->rank ? CCT_OK : CCT_STOPPED))
    abort();
  if (world->rank == 0) {
    (void)world->ops->barrier(world);
    if (cct_backend_host.step(x, NULL, 1, &burst) != CCT_STOPPED) /* it stays stopped */
      abort();
  }
  (void)world->ops->barrier(world);
  cct_backend_host.unload(x);
  cct_backend_host.close(backend);
}

static void a_lost_peer_ends_by_the_deadline(void **state) {
  (void)state;
  struct built b = build(2);
  put_collective(&b, CCT_COLL_ALL_REDUCE, CCT_TYPE_BF16, cct_constant(64), -1);
  int64_t start_ns = cct_clock_ns();
  cct_world_threads(2, deserted, b.job);
  assert_true(cct_clock_ns() - start_ns < 5000000000);
  cct_job_free(b.job);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(narrow_sums_round_to_even),
      cmocka_unit_test(every_partial_sum_is_exact),
      cmocka_unit_test(work_is_right),
      cmocka_unit_test(exchanges_are_right),
      cmocka_unit_test(places_are_kept),
      cmocka_unit_test(bindings_change_sizes),
      cmocka_unit_test(wrong_elements_are_counted),
      cmocka_unit_test(scale_divides_the_work),
      cmocka_unit_test(what_cannot_be_is_refused),
      cmocka_unit_test(experiments_measure),
      cmocka_unit_test(a_lost_peer_ends_by_the_deadline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
