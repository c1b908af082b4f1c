/* SPDX-License-Identifier: Apache-2.0 */
#include "base/world.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

static void end_all(const struct cct_world *world, const char *where) {
  char reason[512];
  snprintf(reason, sizeof reason, "%s", cct_log_last());
  cct_log_mute(0);
  (void)cct_fail(CCT_STOPPED,
                 "%s: failed here while other ranks still wait for this one: %s; the block ends (finished cells are "
                 "kept: --resume goes on)",
                 where, reason);
  world->ops->abort(world, cct_status_exit(CCT_STOPPED));
}

enum cct_status cct_world_agree(const struct cct_world *world, enum cct_status status, const char *where,
                                int64_t patience_ns) {
  struct cct_request *request;
  int32_t mine = (int32_t)status, worst = CCT_OK, *all = calloc((size_t)world->size, sizeof *all);
  int is_done = 0;
  if (!all) { /* the others would wait for ever */
    (void)cct_fail(CCT_NOMEM, "out of memory");
    end_all(world, where);
    return CCT_NOMEM;
  }
  enum cct_status told = world->ops->iallgather(world, &mine, sizeof mine, all, &request);
  int64_t begin_ns = world->ops->now_ns(world);
  while (!told && !is_done) {
    told = world->ops->test(world, request, &is_done);
    if (!told && !is_done) {
      if (status && patience_ns && world->ops->now_ns(world) - begin_ns > patience_ns)
        end_all(world, where);
      sched_yield();
    }
  }
  for (int r = 0; !told && r < world->size; r++)
    worst = all[r] > worst ? all[r] : worst;
  free(all);
  return told ? told : (enum cct_status)worst;
}
