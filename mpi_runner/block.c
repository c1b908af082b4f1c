/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"
#include "mpi_runner/block_room.h"
#include "mpi_runner/condition.h"
#include "mpi_runner/watchdog.h"

int64_t cct_block_patience_ns(const struct block *block, int64_t seconds) {
  int64_t patience = seconds * 1000000000, half = block->agenda->deadline_s * 500000000;
  return patience < half ? patience : half; /* before the watchdogs, which do not know why */
}

enum cct_status cct_block_meet(const struct block *block, enum cct_status status) {
  char where[64];
  snprintf(where, sizeof where, "block %d", block->at.block);
  return cct_world_agree(block->world, status, where, cct_block_patience_ns(block, CCT_LOAD_PATIENCE_S));
}

/* ---- backend ---- */

void cct_block_close_backend(struct block *block) {
  if (block->backend)
    block->ops->close(block->backend);
  block->backend = NULL;
  block->world->ops->release(block->meeting);
  block->world->ops->release(block->members);
  block->members = block->meeting = NULL;
  block->n_members = 0;
}

static uint64_t noise_seed(const struct block *block, int cell) {
  uint64_t seed = cct_random_fold((uint64_t)block->agenda->seed, (uint64_t)block->at.boot);
  return cct_random_fold(cct_random_fold(seed, (uint64_t)block->at.block), (uint64_t)cell);
}

static int has_multicast(const struct block *block) {
  if (block->emulated)
    return block->emulated->capability.multicast;
  return strcmp(block->condition, "stripped") || !block->machine || block->machine->capability.multicast;
}

enum cct_status cct_block_open_backend(struct block *block, int cell) {
  const struct cct_agenda *agenda = block->agenda;
  int is_sim = !strcmp(agenda->backend, "sim"), ranks = agenda->ranks[cell];
  int wanted = is_sim && ranks > block->world->size ? block->world->size : ranks;
  int64_t scale = agenda->cells[cell].v[CCT_OPT_SCALE].i;
  if (wanted > block->world->size)
    return cct_fail(CCT_USAGE, "cell %d has %d ranks, and only %d processes were started: mpirun -np %d", cell, ranks,
                    block->world->size, cct_agenda_processes(agenda));
  if (block->n_members == wanted && block->scale == scale && !agenda->noise[0])
    return CCT_OK;
  cct_block_close_backend(block);
  int is_member = block->world->rank < wanted;
  enum cct_status status = block->world->ops->split(block->world, !is_member, block->world->rank, &block->members);
  if (!status)
    status = block->world->ops->split(block->members, 0, block->members->rank, &block->meeting);
  if (status)
    return status;
  block->n_members = wanted;
  block->scale = scale;
  if (!is_member)
    return CCT_OK;
  const struct cct_backend_options options = {
      .machine = block->machine,
      .has_multicast = has_multicast(block),
      .emulated = block->emulated,
      .noise_file = agenda->noise[0] ? agenda->noise : NULL,
      .noise_seed = noise_seed(block, cell),
      .is_shared_gpu = agenda->is_shared_gpu,
      .scale = scale,
      .deadline_ns = agenda->deadline_s * 1000000000,
  };
  return block->ops->open(block->members, &options, &block->backend);
}

/* ---- the block ---- */

static enum cct_status load_profiles(struct block *block) {
  enum cct_status status = CCT_OK;
  int is_emulated = !strncmp(block->condition, "emulated:", 9);
  const char *own = cct_agenda_arm_profile(block->agenda, block->at.arm);
  if (block->agenda->profile[0])
    status = cct_profile_load(block->agenda->profile, &block->machine);
  else if (!is_emulated && *own)
    status = cct_profile_load(own, &block->machine);
  if (!status && is_emulated)
    status = cct_profile_load(own, &block->emulated);
  return status;
}

static enum cct_status check_condition(const struct block *block) {
  struct cct_machine_state state;
  char why[256];
  cct_machine_state_read(&state);
  if (cct_condition_fits(block->agenda->backend, block->condition, &state, why, sizeof why))
    return CCT_OK;
  return cct_fail(CCT_USAGE, "rank %d: %s", block->world->rank, why);
}

static enum cct_status perform_cells(struct block *block) {
  const struct cct_agenda *agenda = block->agenda;
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < agenda->n_cells; i++) {
    int is_open = block->record && cct_record_state(block->record, i) == CCT_CELL_OPEN;
    status = block->world->ops->bcast(block->world, &is_open, sizeof is_open, 0);
    if (!status && is_open)
      status = cct_block_perform_cell(block, i);
    if (!status && is_open && block->backend)
      cct_block_drift_read(block->ops, block->backend, &block->drift);
    if (!status && block->world->rank == 0) {
      printf("cell %d of %d\n", i + 1, agenda->n_cells);
      fflush(stdout);
    }
  }
  return status;
}

static enum cct_status finish_record(struct block *block) {
  if (!block->drift.n && block->backend) /* every cell was done before */
    cct_block_drift_read(block->ops, block->backend, &block->drift);
  enum cct_status status = cct_block_drift_gather(block->world, &block->drift);
  if (status || block->world->rank)
    return status;
  if (block->drift.n)
    status = cct_record_add_facts(block->record, block->drift.items, block->drift.n);
  if (!status) {
    status = cct_record_finish(block->record);
    block->record = NULL;
  }
  return status;
}

/* As cct_block_meet, of what was done with the log muted: where many fail, the first says why. */
static enum cct_status meet_aloud(const struct block *block, enum cct_status status) {
  const struct cct_world *world = block->world;
  int64_t first = status ? world->rank : INT_MAX;
  char said[512];
  snprintf(said, sizeof said, "%s", cct_log_last());
  cct_log_mute(0);
  enum cct_status worst = cct_block_meet(block, status);
  enum cct_status told = worst ? world->ops->allreduce_i64(world, &first, 1, CCT_REDUCE_MIN) : CCT_OK;
  if (worst && !told && first == world->rank)
    (void)cct_fail(worst, "%s", said);
  return told ? told : worst;
}

static enum cct_status perform_block(struct block *block) {
  struct cct_fact_list facts = {.n = 0};
  struct cct_block_binding binding = {0};
  cct_log_mute(1);
  enum cct_status status = meet_aloud(block, check_condition(block));
  cct_log_mute(!status);
  if (!status)
    status = meet_aloud(block, load_profiles(block));
  if (!status && strcmp(block->agenda->backend, "sim"))
    status = cct_block_bind(block->world, &binding);
  if (status)
    return status;
  status = cct_block_meet(
      block, cct_block_environment(block->agenda, &block->at, block->run, block->machine, block->emulated));
  if (status)
    return status;
  cct_watchdog_feed("open backend %s", block->ops->name);
  cct_log_mute(1);
  status = meet_aloud(block, cct_block_open_backend(block, 0));
  if (!status && block->world->rank < block->n_members)
    status = cct_block_facts(block->members, block->agenda, &block->at, block->ops, block->backend, &binding, &facts);
  status = cct_block_meet(block, status);
  cct_watchdog_feed("create %s", block->path);
  if (!status && block->world->rank == 0)
    status = cct_block_record(block->agenda, &block->at, block->path, block->emulated != NULL, &facts, &block->record);
  status = cct_block_meet(block, status);
  if (!status)
    status = perform_cells(block);
  cct_watchdog_feed("finish %s", block->path);
  return status ? status : cct_block_meet(block, finish_record(block));
}

enum cct_status cct_block_perform(const struct cct_world *world, const char *run, const struct cct_agenda *agenda,
                                  int number) {
  struct block block = {.world = world, .agenda = agenda, .run = run};
  if (number < 0 || number >= cct_agenda_blocks(agenda))
    return world->rank
               ? CCT_USAGE
               : cct_fail(CCT_USAGE, "--block %d: the run has blocks 0 to %d", number, cct_agenda_blocks(agenda) - 1);
  cct_agenda_path(run, number, block.path, sizeof block.path);
  block.at = cct_agenda_block(agenda, number);
  block.condition = cct_agenda_condition(agenda, block.at.arm);
  block.ops = cct_backend_by_name(agenda->backend);
  if (!block.ops)
    return cct_fail(CCT_UNSUPPORTED, "this build has no backend '%s'", agenda->backend);
  enum cct_status status = cct_block_agree(world, agenda);
  if (!status)
    status = perform_block(&block);
  cct_block_close_backend(&block);
  cct_record_abandon(block.record);
  cct_profile_free(block.machine);
  cct_profile_free(block.emulated);
  return status ? status : block.n_failed ? CCT_FOUND : CCT_OK;
}
