/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "fakes/world_forks.h"

static int meet(const struct cct_world *world, void *argument) {
  int64_t sums[2] = {world->rank + 1, -world->rank}, word = world->rank == 1 ? *(int *)argument : 0;
  int bad = 0;
  for (int turn = 0; turn < 100; turn++) {
    int all[4] = {0}, mine = world->rank + 10 * turn;
    bad |= world->ops->allgather(world, &mine, sizeof mine, all);
    for (int i = 0; i < world->size; i++)
      bad |= all[i] != i + 10 * turn;
  }
  bad |= world->ops->allreduce_i64(world, sums, 2, CCT_REDUCE_SUM) || sums[0] != 6 || sums[1] != -3;
  bad |= world->ops->bcast(world, &word, sizeof word, 1) || word != *(int *)argument;
  double least = world->rank - 5;
  bad |= world->ops->allreduce_f64(world, &least, 1, CCT_REDUCE_MIN) || least != -5;
  return bad ? 1 : 40 + world->rank;
}

static void they_meet(void **state) {
  int statuses[3] = {0}, word = 77;
  (void)state;
  cct_world_forks(3, meet, &word, 20, statuses);
  for (int i = 0; i < 3; i++)
    assert_int_equal(WEXITSTATUS(statuses[i]), 40 + i);
}

/* What a death does to the others is theirs: here nothing. */
static int die(const struct cct_world *world, void *argument) {
  (void)argument;
  if (world->ops->barrier(world))
    return 1;
  if (world->rank == 1)
    raise(SIGKILL);
  if (world->rank == 2)
    for (;;)
      pause();
  return 7;
}

static void one_dies_and_one_never_ends(void **state) {
  int statuses[3] = {0};
  (void)state;
  cct_world_forks(3, die, NULL, 1, statuses);
  assert_true(WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 7);
  assert_true(WIFSIGNALED(statuses[1]) && WTERMSIG(statuses[1]) == SIGKILL);
  assert_true(WIFSIGNALED(statuses[2]));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(they_meet), cmocka_unit_test(one_dies_and_one_never_ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
