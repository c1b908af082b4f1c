/* SPDX-License-Identifier: Apache-2.0
 * A world of threads, for tests of what must not depend on the number of processes: all-gathers, i64 reductions,
 * barrier. */
#ifndef CCT_TESTS_RANDOM_THREAD_WORLD_H
#define CCT_TESTS_RANDOM_THREAD_WORLD_H

#include "base/world.h"

/* Calls body(world, context) on `size` threads, each with its own world; returns the first status that is not CCT_OK.
 */
enum cct_status thread_world_run(int size, enum cct_status (*body)(const struct cct_world *world, void *context),
                                 void *context);

#endif
