/* SPDX-License-Identifier: Apache-2.0
 * serving_print FIRST COUNT [cluster]: random workloads and what every engine makes of them, one JSON object a line,
 * for serving_law.py; `cluster`: with prompts and generation on different replicas. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serving_cases.h"

static void print_case(const struct cct_limits *l, const struct cct_requests *requests) {
  static const char *const arrivals[] = {"closed", "zero", "steps", "seconds"};
  printf("\"arrivals\":\"%s\",\"concurrency\":%lld,\"tokens\":%lld,\"sequences\":%lld,\"blocks\":%lld,\"chunked\":%d,"
         "\"offload\":%d,\"lag\":%d,\"drafts\":%lld,\"acceptance\":%.17g,\"requests\":[",
         arrivals[requests->arrivals], (long long)requests->concurrency, (long long)l->tokens, (long long)l->sequences,
         (long long)l->blocks, l->is_chunked, l->is_offload, l->lag, (long long)l->drafts, l->acceptance);
  for (int64_t i = 0; i < requests->n; i++)
    printf("%s[%lld,%lld,%lld]", i ? "," : "", (long long)requests->items[i].arrival,
           (long long)requests->items[i].input, (long long)requests->items[i].output);
  printf("]");
}

static void print_batch(const struct cct_batch *batch) {
  printf("{\"blocks\":%lld,\"preempted\":%lld,\"out\":%lld,\"in\":%lld,\"members\":[", (long long)batch->blocks,
         (long long)batch->preempted, (long long)batch->out_blocks, (long long)batch->in_blocks);
  for (int64_t m = 0; m < batch->n; m++)
    printf("%s[%lld,%lld,%lld,%lld]", m ? "," : "", (long long)batch->members[m].request,
           (long long)batch->members[m].computed, (long long)batch->members[m].given,
           (long long)batch->members[m].emitted);
  printf("]");
  for (int64_t k = 0; k < batch->n_moves; k++)
    printf("%s%lld", k ? "," : ",\"moves\":[", (long long)batch->moves[k].request);
  printf("%s}", batch->n_moves ? "]" : "");
}

static enum cct_status print_engine(uint64_t seed, const struct cct_engine_plan *plan,
                                    const struct cct_requests *requests) {
  struct cct_engine *engine;
  struct cct_engine_step step;
  int64_t now = 0, n = 0;
  enum cct_status status = cct_engine_new(plan, requests, &engine);
  if (status)
    return status;
  printf("[");
  for (; !(status = cct_engine_next(engine, now, &step)) && !step.is_over; n++) {
    printf("%s{\"now\":%lld,\"start\":%lld,\"at\":%lld,\"batches\":[", n ? "," : "", (long long)now,
           (long long)step.start_ns, (long long)step.at);
    for (int64_t i = 0; i < plan->together; i++) {
      printf("%s", i ? "," : "");
      print_batch(&step.batches[i]);
    }
    printf("]}");
    now = (step.start_ns > now ? step.start_ns : now) + serving_case_step_ns(seed, n);
  }
  printf("]");
  cct_engine_free(engine);
  return status;
}

/* Every step of every engine, in the order of turns: when it begins, when its next may be asked for, and when its
 * transfers are done. */
static enum cct_status print_turns(uint64_t seed, const struct cct_cluster_plan *plan,
                                   const struct cct_requests *requests) {
  struct cct_cluster *cluster;
  struct cct_cluster_turn turns[8];
  struct cct_cluster_clock clocks[8] = {{0, 0}};
  int64_t steps[8] = {0}, n = 0;
  enum cct_status status = cct_cluster_new(plan, requests, &cluster);
  if (status)
    return status;
  printf(",\"prefills\":%lld,\"decodes\":%lld,\"staged\":%d,\"steps\":[", (long long)plan->prefills,
         (long long)plan->decodes, plan->is_staged);
  while (!(status = cct_cluster_next(cluster, clocks, turns)) && !turns[0].is_over)
    for (int e = 0; e < plan->prefills + plan->decodes; e++) {
      const struct cct_engine_step *step = &turns[e].step;
      if (turns[e].is_passed)
        continue;
      clocks[e] = cluster_case_clock(seed, e, steps[e]++, step, clocks[e].moved_ns);
      printf("%s{\"engine\":%d,\"start\":%lld,\"at\":%lld,\"asked\":%lld,\"moved\":%lld,\"batch\":", n++ ? "," : "", e,
             (long long)step->start_ns, (long long)step->at, (long long)clocks[e].asked_ns,
             (long long)clocks[e].moved_ns);
      print_batch(step->batches);
      printf("}");
    }
  printf("]");
  cct_cluster_free(cluster);
  return status;
}

static enum cct_status print_cluster(uint64_t seed) {
  struct cluster_case c;
  struct cct_requests requests;
  cluster_case_make(seed, &c);
  enum cct_status status = cct_requests_make(&c.plan, &requests);
  if (status)
    return status;
  print_case(&c.cluster.limits, &requests);
  status = print_turns(seed, &c.cluster, &requests);
  cct_requests_free(&requests);
  return status;
}

static enum cct_status print_engines(uint64_t seed) {
  struct serving_case c;
  struct cct_requests requests;
  serving_case_make(seed, &c);
  enum cct_status status = cct_requests_make(&c.plan, &requests);
  if (status)
    return status;
  print_case(&c.engine.limits, &requests);
  printf(",\"replicas\":%lld,\"together\":%lld,\"engines\":[", (long long)c.engine.replicas,
         (long long)c.engine.together);
  for (int64_t at = 0; !status && at < c.engine.replicas; at += c.engine.together) {
    struct cct_engine_plan plan = c.engine;
    plan.first = at;
    printf("%s", at ? "," : "");
    status = print_engine(seed, &plan, &requests);
  }
  printf("]");
  cct_requests_free(&requests);
  return status;
}

int main(int argc, char **argv) {
  uint64_t first = argc > 2 ? strtoull(argv[1], NULL, 10) : 0, count = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
  enum cct_status status = CCT_OK;
  for (uint64_t seed = first; !status && seed < first + count; seed++) {
    printf("{\"seed\":%llu,", (unsigned long long)seed);
    status = argc > 3 && !strcmp(argv[3], "cluster") ? print_cluster(seed) : print_engines(seed);
    printf("}\n");
  }
  return cct_status_exit(status);
}
