/* SPDX-License-Identifier: Apache-2.0
 * A world whose processes are threads of one process: what needs several ranks runs without MPI, and the sanitizers see
 * all of it. A message is a copy in a shared list; a collective is a message from each member to each. */
#ifndef CCT_TESTS_FAKES_WORLD_THREADS_H
#define CCT_TESTS_FAKES_WORLD_THREADS_H

#include "base/world.h"

/* Calls `body(world, argument)` on `n` threads, each as one process of a world of n, and returns when all have. What
 * was sent and never received is freed; returns how many such messages there were. */
int cct_world_threads(int n, void (*body)(const struct cct_world *world, void *argument), void *argument);

#endif
