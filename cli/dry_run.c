/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/document.h"
#include "cli/run.h"
#include "json/json.h"
#include "mpi_runner/totals.h"
#include "workloads/shape/cell.h"
#include "workloads/steps/serve.h"

static void print_quantity(const char *name, struct cct_quantity quantity, const struct cct_program *program) {
  if (quantity.slot < 0)
    printf(" %s=%lld", name, (long long)quantity.base);
  else if (quantity.base)
    printf(" %s=%lld+%lld*%s", name, (long long)quantity.base, (long long)quantity.per,
           program->slots[quantity.slot].name);
  else
    printf(" %s=%lld*%s", name, (long long)quantity.per, program->slots[quantity.slot].name);
}

static void print_detail(const struct cct_job *job, const struct cct_program *program, const struct cct_op *op) {
  switch (op->kind) {
  case CCT_OP_GEMM:
    print_quantity("m", op->gemm.m, program);
    printf(" n=%lld k=%lld %s", (long long)op->gemm.n, (long long)op->gemm.k, cct_type_name(op->gemm.type));
    if (op->gemm.groups > 1)
      printf(" groups=%d", op->gemm.groups);
    break;
  case CCT_OP_ATTENTION:
    print_quantity("flops", op->attention.flops, program);
    print_quantity("kv_bytes", op->attention.kv_bytes, program);
    break;
  case CCT_OP_ELEMENTWISE:
    print_quantity("bytes", op->elementwise.bytes, program);
    break;
  case CCT_OP_COLLECTIVE:
    printf(" %s over %s", cct_collective_name(op->collective.kind), job->groups[op->collective.group].name);
    print_quantity("bytes", op->collective.bytes, program);
    break;
  case CCT_OP_SEND:
  case CCT_OP_RECV:
    printf(" over %s, peer %+d", job->groups[op->p2p.group].name, op->p2p.peer_offset);
    print_quantity("bytes", op->p2p.bytes, program);
    break;
  case CCT_OP_COPY:
    printf(" %s %s%s%s", cct_direction_name(op->copy.direction), cct_memory_name(op->copy.memory),
           op->copy.is_blocking ? " blocking" : "", op->copy.is_bounce ? " bounce" : "");
    if (op->copy.direction == CCT_COPY_P2P)
      printf(" from member %d of %s", op->copy.peer, job->groups[op->copy.group].name);
    if (op->copy.carries_binding)
      printf(" carries binding");
    print_quantity("bytes", op->copy.bytes, program);
    break;
  case CCT_OP_HOSTWORK:
    printf(" %lld ns", (long long)op->hostwork.ns);
    break;
  case CCT_OP_DELAY:
    printf(" %lld ns", (long long)op->delay.ns);
    if (op->delay.of >= 0)
      printf(" + %.3g x entry %d", op->delay.stretch, op->delay.of);
    break;
  case CCT_OP_CASE:
    printf(" %s=%lld", program->slots[op->when.slot].name, (long long)op->when.value);
    break;
  default:
    break;
  }
}

static void print_op(const struct cct_job *job, const struct cct_program *program, int id, int depth) {
  const struct cct_op *op = &program->ops[id];
  printf("%6d %*s%-11s %s", id, 2 * depth, "", cct_op_name(op->kind), op->name);
  if (op->lane >= 0)
    printf(" [%s]", program->lanes[op->lane].name);
  print_detail(job, program, op);
  for (int w = 0; w < op->n_waits; w++) {
    const struct cct_wait *wait = &program->waits[op->first_wait + w];
    printf("%s%s%d", w ? "," : " waits ", wait->is_previous ? "prev:" : "", wait->id);
  }
  putchar('\n');
}

static void print_program(const struct cct_job *job, const struct cct_program *program) {
  int depth = 0;
  for (int i = 0; i < program->n_ops; i++) {
    enum cct_op_kind kind = program->ops[i].kind;
    depth -= kind == CCT_OP_END;
    print_op(job, program, i, depth > 0 ? depth : 0);
    depth += kind == CCT_OP_GRAPH || kind == CCT_OP_PHASE || kind == CCT_OP_GROUP || kind == CCT_OP_CASE;
  }
}

static void print_totals(const struct cct_counts *counts) {
  char text[32];
  printf("%lld submissions (%lld graphs of %lld nodes), %lld kernels, %lld syncs\n", (long long)counts->submissions,
         (long long)counts->graphs, (long long)counts->nodes, (long long)counts->kernels, (long long)counts->syncs);
  printf("  %.4g Gflop, HBM %s", counts->flops / 1e9, cct_bytes_text(counts->hbm_bytes, text));
  printf(", weights %s\n", cct_bytes_text(counts->weight_bytes, text));
  for (int d = 0; d < CCT_DIRECTION_COUNT; d++)
    if (counts->copies[d])
      printf("  %lld copies %s, %s\n", (long long)counts->copies[d], cct_direction_name((enum cct_direction)d),
             cct_bytes_text(counts->copy_bytes[d], text));
  for (int c = 0; c < CCT_COLL_COUNT; c++)
    if (counts->collectives[c])
      printf("  %lld x %s, %s on the wire\n", (long long)counts->collectives[c],
             cct_collective_name((enum cct_collective)c), cct_bytes_text(counts->wire_bytes[c], text));
  if (counts->messages)
    printf("  %lld messages, %s\n", (long long)counts->messages, cct_bytes_text(counts->message_bytes, text));
}

/* What the scheduler makes of the requests, where no clock decides; of an engine that others resemble. */
static enum cct_status print_schedule(const struct cct_serve *serve, const struct cct_requests *requests, int number,
                                      const char *name) {
  struct cct_serve_row *rows, most = {0};
  int64_t n, forms[CCT_SERVE_FORMS] = {0}, tokens = 0, padded = 0, preempted = 0, moved = 0, moved_blocks = 0;
  enum cct_status status = cct_serve_schedule(serve, requests, number, &rows, &n);
  if (status)
    return status;
  for (int64_t s = 0; s < n; s++) {
    forms[rows[s].form]++;
    tokens += rows[s].tokens;
    padded += rows[s].padded;
    preempted += rows[s].preempted;
    moved += rows[s].moved;
    moved_blocks += rows[s].moved_blocks;
    most.sequences = rows[s].sequences > most.sequences ? rows[s].sequences : most.sequences;
    most.blocks = rows[s].blocks > most.blocks ? rows[s].blocks : most.blocks;
  }
  printf("  schedule of %s: %lld steps (", name, (long long)n);
  for (int form = 0, k = 0; form < CCT_SERVE_FORMS; form++)
    if (forms[form])
      printf("%s%lld %s", k++ ? ", " : "", (long long)forms[form], cct_serve_form_name((enum cct_serve_form)form));
  printf("), %lld tokens and %lld of padding, up to %lld sequences and %lld blocks, %lld pre-emptions",
         (long long)tokens, (long long)(padded - tokens), (long long)most.sequences, (long long)most.blocks,
         (long long)preempted);
  if (moved)
    printf(", %lld caches of %lld blocks %s", (long long)moved, (long long)moved_blocks, number ? "read" : "left");
  putchar('\n');
  free(rows);
  return CCT_OK;
}

static enum cct_status print_serving(const struct cct_agenda *agenda, const struct cct_serve *planned) {
  static const char *const how[] = {"a given number at once", "all at the start", "by steps", "by the clock"};
  struct cct_serve serve = *planned;
  struct cct_requests requests;
  int64_t input = 0, output = 0;
  serve.requests.seed = serve.limits.seed = (uint64_t)agenda->seed;
  enum cct_status status = cct_requests_make(&serve.requests, &requests);
  if (status)
    return status;
  for (int64_t i = 0; i < requests.n; i++) {
    input += requests.items[i].input;
    output += requests.items[i].output;
  }
  printf("  %lld requests, %s: %lld tokens in, %lld out\n", (long long)requests.n, how[requests.arrivals],
         (long long)input, (long long)output);
  printf(
      "  %lld replicas, %lld step together; each has a cache of %lld blocks of %d tokens (%lld KiB a block and rank)\n",
      (long long)serve.replicas, (long long)serve.together, (long long)serve.limits.blocks, CCT_BLOCK_TOKENS,
      (long long)(serve.block_bytes >> 10));
  if (serve.prefills)
    printf("  prompts on %lld replicas and generation on %lld, apart; caches %s\n", (long long)serve.prefills,
           (long long)serve.decodes, serve.is_staged ? "go through the host" : "are read in their GPUs' memory");
  if (cct_serve_is_clocked(&serve))
    printf("  the schedule is the clock's of a run\n");
  else
    status = print_schedule(&serve, &requests, 0, "the first engine");
  if (!status && serve.prefills && !cct_serve_is_clocked(&serve))
    status = print_schedule(&serve, &requests, (int)serve.prefills, "the first that generates");
  cct_requests_free(&requests);
  return status;
}

static enum cct_status print_cell(const struct cct_agenda *agenda, int index) {
  struct cct_step step;
  struct cct_json *json = NULL;
  struct cct_text key = {0};
  enum cct_status status = cct_step_build(&agenda->cells[index], &step);
  if (status)
    return status;
  status = cct_cell_to_json(&agenda->cells[index], &json);
  if (!status)
    status = cct_json_canonical(json, &key);
  if (!status)
    printf("cell %d: %s\n  %d ranks, program digest %s\n", index, key.s, step.job->ranks, agenda->programs[index]);
  if (!status && step.serve)
    status = print_serving(agenda, step.serve);
  for (int r = 0; !status && r < step.job->n_roles; r++) {
    const struct cct_role *role = &step.job->roles[r];
    struct cct_counts counts;
    status = cct_step_totals(&step, r, &counts);
    if (status)
      break;
    printf("  role '%s': ranks %d to %d, %d entries\n", role->program->name, role->first, role->first + role->count - 1,
           role->program->n_ops);
    print_program(step.job, role->program);
    printf("  totals of one step of one rank: ");
    print_totals(&counts);
    if (!step.checkpoint)
      continue;
    status = cct_job_totals(step.checkpoint, step.bindings, r, &counts);
    if (status)
      break;
    printf("  and of a step with a checkpoint, 1 in %lld: ", (long long)step.checkpoint_every);
    print_totals(&counts);
  }
  if (!status && step.routed)
    printf("  %lld copies of tokens routed to experts in a layer of an EP group, %lld of them dropped (%.2f %%)\n",
           (long long)step.routed, (long long)step.dropped, 100.0 * (double)step.dropped / (double)step.routed);
  if (!status && step.model_flops > 0)
    printf("  %.6g model Gflop of all ranks\n", step.model_flops / 1e9);
  cct_text_free(&key);
  cct_json_free(json);
  cct_step_free(&step);
  return status;
}

/* The job of the one cell, in the form that a cell's `program` reads. */
static enum cct_status print_json(const struct cct_agenda *agenda) {
  struct cct_step step;
  struct cct_json *document = NULL;
  if (agenda->n_cells != 1)
    return cct_fail(CCT_USAGE,
                    "--dry-run --json prints one cell's program, and there are %d cells; narrow them by flags",
                    agenda->n_cells);
  enum cct_status status = cct_step_build(&agenda->cells[0], &step);
  if (status)
    return status;
  status = cct_job_to_json(step.job, &document);
  cct_step_free(&step);
  return status ? status : cct_document_print(document);
}

enum cct_status cct_dry_run(const struct cct_agenda *agenda, int is_json) {
  enum cct_status status = CCT_OK;
  if (is_json)
    return print_json(agenda);
  for (int i = 0; !status && i < agenda->n_cells; i++)
    status = print_cell(agenda, i);
  return status;
}
