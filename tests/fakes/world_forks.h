/* SPDX-License-Identifier: Apache-2.0
 * A world whose processes are forks of one and whom no launcher ends when one of them dies: what its death does to the
 * others is theirs to notice. They meet in shared memory; a member that does not come for 30 s is an error. */
#ifndef CCT_TESTS_FAKES_WORLD_FORKS_H
#define CCT_TESTS_FAKES_WORLD_FORKS_H

#include "base/world.h"

/* Forks `n` children, each of which exits with what body(world, argument) returns, and waits for all of them; those
 * left after `limit_s` are killed. statuses_out[i]: as waitpid gives it. Nothing that a fork breaks (threads, a CUDA
 * context) may exist yet. The world has barrier, bcast, allgather and allreduce; a contribution is at most 64 KiB. */
void cct_world_forks(int n, int (*body)(const struct cct_world *world, void *argument), void *argument, int limit_s,
                     int *statuses_out);

#endif
