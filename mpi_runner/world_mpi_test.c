/* SPDX-License-Identifier: Apache-2.0
 * Every operation of the world over MPI against what it must give; run by mpirun with several ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "mpi_runner/world_mpi.h"

static struct cct_world *world;

static void add_i32(void *inout, const void *in, size_t count) {
  for (size_t i = 0; i < count; i++)
    ((int32_t *)inout)[i] += ((const int32_t *)in)[i];
}

static void max_i64(void *inout, const void *in, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (((const int64_t *)in)[i] > ((int64_t *)inout)[i])
      ((int64_t *)inout)[i] = ((const int64_t *)in)[i];
}

static void finish(struct cct_request *request) {
  int done = 0;
  while (!done)
    assert_int_equal(world->ops->test(world, request, &done), CCT_OK);
}

static void values_are_gathered(void **state) {
  (void)state;
  int mine = world->rank * 10, all[64], root = world->rank == 0 ? 7 : 0;
  struct cct_request *request;
  assert_int_equal(world->ops->bcast(world, &root, sizeof root, 0), CCT_OK);
  assert_int_equal(root, 7);
  assert_int_equal(world->ops->allgather(world, &mine, sizeof mine, all), CCT_OK);
  for (int r = 0; r < world->size; r++)
    assert_int_equal(all[r], 10 * r);
  assert_int_equal(world->ops->iallgather(world, &mine, sizeof mine, all, &request), CCT_OK);
  finish(request);
  assert_int_equal(all[world->size - 1], 10 * (world->size - 1));
  for (int is_started = 0; is_started < 2; is_started++) { /* in place */
    for (int r = 0; r < world->size; r++)
      all[r] = r == world->rank ? 20 * r : -1;
    if (is_started) {
      assert_int_equal(world->ops->iallgather(world, &all[world->rank], sizeof *all, all, &request), CCT_OK);
      finish(request);
    } else {
      assert_int_equal(world->ops->allgather(world, &all[world->rank], sizeof *all, all), CCT_OK);
    }
    for (int r = 0; r < world->size; r++)
      assert_int_equal(all[r], 20 * r);
  }
  assert_int_equal(world->ops->gather(world, &mine, sizeof mine, world->rank ? NULL : all, 0), CCT_OK);
  int64_t big = world->rank;
  double real = world->rank;
  assert_int_equal(world->ops->allreduce_i64(world, &big, 1, CCT_REDUCE_SUM), CCT_OK);
  assert_int_equal(big, world->size * (world->size - 1) / 2);
  assert_int_equal(world->ops->allreduce_f64(world, &real, 1, CCT_REDUCE_MIN), CCT_OK);
  assert_true(real == 0);
}

/* Rank r sends r + 1 bytes of value r to everybody. */
static void lengths_may_differ(void **state) {
  (void)state;
  unsigned char mine[64], all[4096], out[4096];
  size_t counts[64], sends[64], at = 0, total = 0;
  struct cct_request *request;
  for (int r = 0; r < world->size; r++) {
    counts[r] = (size_t)r + 1;
    sends[r] = (size_t)world->rank + 1;
    for (size_t i = 0; i < sends[r]; i++)
      out[total++] = (unsigned char)(world->rank * 16 + r);
  }
  for (int i = 0; i <= world->rank; i++)
    mine[i] = (unsigned char)world->rank;
  assert_int_equal(world->ops->allgatherv(world, mine, (size_t)world->rank + 1, all, counts), CCT_OK);
  for (int r = 0; r < world->size; r++)
    for (int i = 0; i <= r; i++)
      assert_int_equal(all[at++], r);
  for (int started = 0; started < 2; started++) {
    if (started) {
      assert_int_equal(world->ops->ialltoallv(world, out, sends, all, counts, &request), CCT_OK);
      finish(request);
    } else {
      assert_int_equal(world->ops->alltoallv(world, out, sends, all, counts), CCT_OK);
    }
    at = 0;
    for (int r = 0; r < world->size; r++)
      for (int i = 0; i <= r; i++)
        assert_int_equal(all[at++], r * 16 + world->rank);
  }
}

static void sums_are_the_callers(void **state) {
  (void)state;
  int n = world->size, sum = n * (n - 1) / 2;
  int32_t values[64];
  int64_t most[2];
  struct cct_request *first, *second;
  for (int where = CCT_RESULT_ALL; where <= CCT_RESULT_SCATTER; where++)
    for (int started = 0; started < 2; started++) {
      for (int i = 0; i < n; i++)
        values[i] = world->rank + i * 100;
      most[0] = world->rank, most[1] = -world->rank;
      if (started) { /* two different sums under way at once */
        assert_int_equal(world->ops->ireduce_with(world, values, (size_t)n, 4, add_i32, where, &first), CCT_OK);
        assert_int_equal(world->ops->ireduce_with(world, most, 2, 8, max_i64, CCT_RESULT_ALL, &second), CCT_OK);
        finish(second);
        finish(first);
        assert_int_equal(most[0], n - 1);
        assert_int_equal(most[1], 0);
      } else {
        assert_int_equal(world->ops->reduce_with(world, values, (size_t)n, 4, add_i32, where), CCT_OK);
      }
      if (where == CCT_RESULT_SCATTER)
        assert_int_equal(values[0], sum + n * world->rank * 100);
      else if (where == CCT_RESULT_ALL || world->rank == 0)
        for (int i = 0; i < n; i++)
          assert_int_equal(values[i], sum + n * i * 100);
    }
}

static void messages_arrive(void **state) {
  (void)state;
  int next = (world->rank + 1) % world->size, before = (world->rank + world->size - 1) % world->size;
  int out = world->rank, in = -1;
  struct cct_request *send, *receive;
  assert_int_equal(world->ops->irecv(world, &in, sizeof in, before, 5, &receive), CCT_OK);
  assert_int_equal(world->ops->isend(world, &out, sizeof out, next, 5, &send), CCT_OK);
  finish(send);
  finish(receive);
  assert_int_equal(in, before);
}

static void a_world_splits(void **state) {
  (void)state;
  struct cct_world *half;
  assert_int_equal(world->ops->split(world, world->rank % 2, -world->rank, &half), CCT_OK);
  int64_t members = 1;
  assert_int_equal(half->ops->allreduce_i64(half, &members, 1, CCT_REDUCE_SUM), CCT_OK);
  assert_int_equal(members, half->size);
  assert_int_equal(half->size, (world->size + 1 - world->rank % 2) / 2);
  half->ops->release(half);
  assert_int_equal(world->ops->barrier(world), CCT_OK);
}

static void nothing_is_closed(void **state) {
  (void)state;
  cct_world_mpi_close(NULL); /* must not end MPI under the world that is open */
  assert_int_equal(world->ops->barrier(world), CCT_OK);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_gathered),  cmocka_unit_test(lengths_may_differ),
      cmocka_unit_test(sums_are_the_callers), cmocka_unit_test(messages_arrive),
      cmocka_unit_test(a_world_splits),       cmocka_unit_test(nothing_is_closed),
  };
  if (cct_world_mpi_open(&argc, &argv, &world))
    return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cct_world_mpi_close(world);
  return failed;
}
