/* SPDX-License-Identifier: Apache-2.0
 * sim_times PROFILE REPETITIONS PROCS[,PROCS..] even|uneven|host|stream JOB.json..: what sim makes of each job, one
 * line of JSON for each number of processes: every rank's bound durations [submit, run, is_blocking] and, of the last
 * repetition, spans [start, end]. A job that is refused gives null. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "json/json.h"
#include "mpi_runner/world_mpi.h"
#include "tests/random/thread_world.h"
#include "workloads/backends/sim.h"

struct question {
  const struct cct_profile *profile;
  const struct cct_job *job;
  int repetitions, is_uneven, is_emulated;
  struct cct_text *answers; /* by rank */
  int64_t closing_sync_ns;
};

static void answer_rank(struct question *q, struct cct_executor *x, int owned, int rank, int64_t burst_ns,
                        struct cct_span *spans) {
  struct cct_text *out = &q->answers[rank];
  int n = cct_job_role(q->job, rank)->program->n_ops;
  int64_t sync_ns;
  const struct cct_duration *d = cct_sim_durations(x, owned, &sync_ns);
  cct_text_add(out, "{\"rank\":%d,\"burst_ns\":%lld,\"closing_sync_ns\":%lld,\"durations\":[", rank,
               (long long)burst_ns, (long long)sync_ns);
  for (int id = 0; id < n; id++)
    cct_text_add(out, "%s[%lld,%lld,%d]", id ? "," : "", (long long)d[id].submit_ns, (long long)d[id].run_ns,
                 d[id].is_blocking);
  cct_text_add(out, "],\"spans\":[");
  for (int id = 0; id < n; id++)
    cct_text_add(out, "%s[%lld,%lld]", id ? "," : "", (long long)spans[id].start_ns, (long long)spans[id].end_ns);
  cct_text_add(out, "]}");
}

/* One binding for each owned rank. */
static struct cct_binding *bind_unevenly(const struct cct_job *job, int first, int count) {
  struct cct_binding *bindings = calloc((size_t)count + 1, sizeof *bindings);
  for (int i = 0; bindings && i < count; i++) {
    const struct cct_program *p = cct_job_role(job, first + i)->program;
    int64_t *slots = calloc((size_t)p->n_slots + 1, sizeof *slots);
    if (!slots)
      abort();
    for (int k = 0; k < p->n_slots; k++)
      slots[k] = p->slots[k].value * (1 + (first + i) % 3);
    bindings[i].slots = slots;
  }
  return bindings;
}

static void free_bindings(struct cct_binding *bindings, int count) {
  for (int i = 0; bindings && i < count; i++)
    free((int64_t *)(uintptr_t)bindings[i].slots);
  free(bindings);
}

static enum cct_status ask(const struct cct_world *world, void *context) {
  struct question *q = context;
  const struct cct_backend_ops *sim = &cct_backend_sim;
  struct cct_backend_options options = {
      .machine = q->profile, .has_multicast = !q->is_emulated, .emulated = q->is_emulated ? q->profile : NULL};
  struct cct_backend *be = NULL;
  struct cct_executor *x = NULL;
  int first, count = 0, most = 0;
  struct cct_binding *bindings = NULL;
  int64_t *rank_ns = NULL;
  struct cct_span *spans = NULL;
  enum cct_status status = sim->open(world, &options, &be);
  if (!status)
    status = sim->load(be, q->job, &x);
  if (status)
    goto out;
  for (int i = 0; i < q->job->n_roles; i++)
    most = q->job->roles[i].program->n_ops > most ? q->job->roles[i].program->n_ops : most;
  sim->owned(x, &first, &count);
  rank_ns = malloc(((size_t)count + 1) * sizeof *rank_ns);
  spans = malloc(((size_t)most + 1) * sizeof *spans);
  if (!rank_ns || !spans)
    abort();
  struct cct_burst burst = {.rank_ns = rank_ns};
  bindings = q->is_uneven ? bind_unevenly(q->job, first, count) : NULL;
  status = sim->step(x, bindings, q->repetitions, &burst);
  for (int i = 0; i < count && !status; i++) {
    status = sim->trace(x, i, spans);
    if (!status)
      answer_rank(q, x, i, first + i, rank_ns[i], spans);
  }
out:
  free_bindings(bindings, count);
  free(rank_ns);
  free(spans);
  sim->unload(x);
  sim->close(be);
  return status;
}

/* Brings the answers of all processes' ranks to each of them. */
static enum cct_status share(const struct cct_world *world, struct question *q) {
  struct cct_text mine = {0};
  size_t *bytes = calloc((size_t)world->size, sizeof *bytes), total = 0;
  for (int rank = 0; rank < q->job->ranks; rank++)
    if (q->answers[rank].length) {
      cct_text_append(&mine, q->answers[rank].s, q->answers[rank].length + 1);
      cct_text_free(&q->answers[rank]);
    }
  enum cct_status status = bytes ? world->ops->allgather(world, &mine.length, sizeof mine.length, bytes) : CCT_NOMEM;
  for (int p = 0; bytes && p < world->size; p++)
    total += bytes[p];
  char *all = malloc(total + 1), *at = all;
  if (!status)
    status = all ? world->ops->allgatherv(world, mine.s, mine.length, all, bytes) : CCT_NOMEM;
  for (int rank = 0; rank < q->job->ranks && !status; rank++, at += strlen(at) + 1)
    cct_text_append(&q->answers[rank], at, strlen(at));
  free(all);
  free(bytes);
  cct_text_free(&mine);
  return status;
}

/* Puts the emulated job in place of *job and prints it. */
static enum cct_status emulate(const struct cct_profile *profile, struct cct_job **job) {
  struct cct_job *emulated = NULL;
  struct cct_json *document = NULL;
  struct cct_text text = {0};
  enum cct_status status = cct_emulate(*job, profile, CCT_ALL_BOUNDARIES, &emulated);
  if (status == CCT_UNSUPPORTED)
    status = cct_emulate(*job, profile, CCT_ALL_BOUNDARIES & ~(1u << CCT_BOUNDARY_COPIES), &emulated);
  if (status)
    return status;
  cct_job_free(*job);
  *job = emulated;
  status = cct_job_to_json(emulated, &document);
  if (!status)
    status = cct_json_canonical(document, &text);
  if (!status)
    printf("%s\n", text.s);
  cct_text_free(&text);
  cct_json_free(document);
  return status;
}

static int answer(const struct cct_profile *profile, const char *path, int repetitions, const char *how, int processes,
                  const struct cct_world *mpi) {
  struct cct_json *document = NULL;
  struct cct_job *job = NULL;
  enum cct_status status = cct_json_load(path, &document);
  struct cct_json_at at = cct_json_root(document, path);
  if (!status)
    status = cct_job_from_json(&at, &job);
  int is_emulated = !strcmp(how, "host") || !strcmp(how, "stream");
  if (!status && is_emulated)
    status = emulate(profile, &job);
  struct question q = {.profile = profile,
                       .job = job,
                       .repetitions = repetitions,
                       .is_uneven = !strcmp(how, "uneven"),
                       .is_emulated = is_emulated};
  if (!status) {
    q.answers = calloc((size_t)job->ranks, sizeof *q.answers);
    status = mpi ? ask(mpi, &q) : processes == 1 ? ask(cct_world_self(), &q) : thread_world_run(processes, ask, &q);
  }
  if (mpi && !status)
    status = share(mpi, &q);
  if (mpi && mpi->rank)
    goto out; /* process 0 prints */
  if (status)
    printf("null\n");
  else
    for (int rank = 0; rank < job->ranks; rank++)
      printf("%s%s%s", rank ? "," : "[", q.answers[rank].s, rank == job->ranks - 1 ? "]\n" : "");
out:
  for (int rank = 0; q.answers && rank < job->ranks; rank++)
    cct_text_free(&q.answers[rank]);
  free(q.answers);
  cct_job_free(job);
  cct_json_free(document);
  return status != CCT_OK;
}

int main(int argc, char **argv) {
  struct cct_profile *profile;
  struct cct_world *mpi = NULL;
  int is_refused = 0;
  if (argc < 6)
    return 2;
  cct_log_name("sim_times");
  if (!strcmp(argv[3], "mpi") && cct_world_mpi_open(&argc, &argv, &mpi) != CCT_OK)
    return 2;
  if (cct_profile_load(argv[1], &profile) != CCT_OK)
    return 2;
  profile->confidential.submission.form = !strcmp(argv[4], "stream") ? CCT_FORM_STREAM : CCT_FORM_HOST;
  for (int i = 5; i < argc; i++) {
    char *rest, *list = strdup(argv[3]);
    for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
      is_refused |= answer(profile, argv[i], atoi(argv[2]), argv[4], atoi(word), mpi);
    free(list);
  }
  cct_profile_free(profile);
  if (mpi)
    cct_world_mpi_close(mpi);
  return is_refused;
}
