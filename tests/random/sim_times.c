/* SPDX-License-Identifier: Apache-2.0
 * sim_times PROFILE REPETITIONS PROCS[,PROCS..] even|uneven|host|stream|sequence JOB.json..: what sim makes of each
 * job, one line of JSON for each number of processes: of every rank a turn with its bound slots and durations [submit,
 * run, is_blocking] and, of the last repetition, spans [start, end]; of a sequence, REPETITIONS steps long, a turn a
 * step. A job that is refused gives null. */
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
  int repetitions, is_uneven, is_emulated, is_sequence;
  struct cct_text *answers; /* by rank */
};

/* The slots of every owned rank in each of the last turns: as many as a sequence has to keep. */
struct turns {
  struct question *q;
  struct cct_executor *x;
  struct cct_span *spans;
  int first, count;
  int64_t *slots[CCT_SEQUENCE_DEPTH]; /* by owned rank, SLOTS a program at most */
  int64_t *asked_ns, *not_before_ns, closing_sync_ns;
  const struct cct_sequence *sequence;
};

#define SLOTS 4

/* One turn of one owned rank, after it was performed. */
static enum cct_status answer_turn(struct turns *t, int64_t step, int owned) {
  struct cct_text *out = &t->q->answers[t->first + owned];
  int64_t sync_ns, lane = 0;
  const struct cct_program *p = cct_job_role(t->q->job, t->first + owned)->program;
  const struct cct_duration *d = cct_sim_durations(t->x, owned, &sync_ns);
  enum cct_status status = cct_backend_sim.trace(t->x, owned, t->spans);
  t->closing_sync_ns = sync_ns;
  cct_text_add(out, "%s{\"slots\":[", step ? "," : "");
  for (int k = 0; k < p->n_slots; k++)
    cct_text_add(out, "%s%lld", k ? "," : "", (long long)t->slots[step % CCT_SEQUENCE_DEPTH][owned * SLOTS + k]);
  cct_text_add(out, "],\"durations\":[");
  for (int id = 0; id < p->n_ops; id++)
    cct_text_add(out, "%s[%lld,%lld,%d]", id ? "," : "", (long long)d[id].submit_ns, (long long)d[id].run_ns,
                 d[id].is_blocking);
  cct_text_add(out, "],\"spans\":[");
  for (int id = 0; id < p->n_ops; id++)
    cct_text_add(out, "%s[%lld,%lld]", id ? "," : "", (long long)t->spans[id].start_ns, (long long)t->spans[id].end_ns);
  if (!t->sequence) {
    cct_text_add(out, "]}");
    return status;
  }
  int lanes = t->sequence->n_host_lanes;
  const int64_t *ends = t->sequence->lane_end_ns + (step * t->count + owned) * lanes;
  cct_text_add(out, "],\"not_before_ns\":%lld,\"now_ns\":%lld,\"lane_end_ns\":[", (long long)t->not_before_ns[owned],
               (long long)t->asked_ns[owned]);
  for (; lane < cct_program_host_lanes(p); lane++)
    cct_text_add(out, "%s%lld", lane ? "," : "", (long long)ends[lane]);
  cct_text_add(out, "]}");
  return status;
}

/* One binding for each owned rank: slot 0, the load, by rank and step; slot 1, the form, by step alone. */
static void bind_turn(struct turns *t, int64_t step, struct cct_binding *bindings) {
  for (int i = 0; i < t->count; i++) {
    const struct cct_program *p = cct_job_role(t->q->job, t->first + i)->program;
    int64_t *slots = t->slots[step % CCT_SEQUENCE_DEPTH] + (ptrdiff_t)i * SLOTS;
    for (int k = 0; k < p->n_slots && k < SLOTS; k++)
      slots[k] = p->slots[k].value;
    if (t->q->is_uneven)
      slots[0] *= 1 + (t->first + i) % 3;
    if (t->sequence) { /* now and then alike, so that classes hold for a while */
      slots[0] *= 1 + (step < 2 ? step : step + (t->first + i) / 2) % 3;
      slots[1] = (slots[1] + step * step / 2) % 3;
    }
    bindings[i].slots = slots;
  }
}

static enum cct_status next_turn(void *context, int64_t index, const int64_t *now_ns, struct cct_binding *bindings,
                                 int64_t *not_before_ns, int *is_over) {
  struct turns *t = context;
  enum cct_status status = CCT_OK;
  for (int i = 0; i < t->count && !status; i++) {
    if (index)
      status = answer_turn(t, index - 1, i);
    t->asked_ns[i] = now_ns[i];
    t->not_before_ns[i] = not_before_ns[i] = (index + t->first + i) % 3 ? 0 : now_ns[i] + 7000 * (index % 2);
    is_over[i] = index == t->q->repetitions;
  }
  if (!status && index < t->q->repetitions)
    bind_turn(t, index, bindings);
  return status;
}

static enum cct_status perform(struct turns *t, struct cct_burst *burst) {
  const struct cct_backend_ops *sim = &cct_backend_sim;
  size_t n = (size_t)t->count + 1, lanes = (size_t)cct_job_host_lanes(t->q->job);
  int64_t *ends = calloc(n * lanes * (size_t)t->q->repetitions, sizeof *ends);
  struct cct_binding *bindings = calloc(n, sizeof *bindings);
  struct cct_sequence sequence = {
      .context = t, .next = next_turn, .most_steps = t->q->repetitions, .lane_end_ns = ends};
  if (!ends || !bindings)
    abort();
  t->sequence = t->q->is_sequence ? &sequence : NULL;
  enum cct_status status;
  if (t->q->is_sequence) {
    status = sim->sequence(t->x, &sequence, burst);
  } else {
    bind_turn(t, 0, bindings);
    status = sim->step(t->x, t->q->is_uneven ? bindings : NULL, t->q->repetitions, burst);
    for (int i = 0; i < t->count && !status; i++)
      status = answer_turn(t, 0, i);
  }
  free(ends);
  free(bindings);
  return status;
}

static enum cct_status ask(const struct cct_world *world, void *context) {
  struct question *q = context;
  const struct cct_backend_ops *sim = &cct_backend_sim;
  struct cct_backend_options options = {
      .machine = q->profile, .has_multicast = !q->is_emulated, .emulated = q->is_emulated ? q->profile : NULL};
  struct cct_backend *be = NULL;
  struct turns t = {.q = q};
  int most = 0;
  int64_t *values = NULL;
  enum cct_status status = sim->open(world, &options, &be);
  if (!status)
    status = sim->load(be, q->job, &t.x);
  if (status)
    goto out;
  for (int i = 0; i < q->job->n_roles; i++)
    most = q->job->roles[i].program->n_ops > most ? q->job->roles[i].program->n_ops : most;
  sim->owned(t.x, &t.first, &t.count);
  size_t n = (size_t)t.count + 1;
  values = calloc(n * (3 + CCT_SEQUENCE_DEPTH * SLOTS), sizeof *values); /* ranks' bursts, asked, not before; slots */
  t.spans = malloc(((size_t)most + 1) * sizeof *t.spans);
  if (!values || !t.spans)
    abort();
  t.asked_ns = values + n;
  t.not_before_ns = values + 2 * n;
  for (size_t i = 0; i < CCT_SEQUENCE_DEPTH; i++)
    t.slots[i] = values + (3 + i * SLOTS) * n;
  for (int i = 0; i < t.count; i++)
    cct_text_add(&q->answers[t.first + i], "{\"rank\":%d,\"turns\":[", t.first + i);
  struct cct_burst burst = {.rank_ns = values};
  status = perform(&t, &burst);
  for (int i = 0; i < t.count && !status; i++)
    cct_text_add(&q->answers[t.first + i], "],\"burst_ns\":%lld,\"closing_sync_ns\":%lld}", (long long)values[i],
                 (long long)t.closing_sync_ns);
out:
  free(values);
  free(t.spans);
  sim->unload(t.x);
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
                       .is_sequence = !strcmp(how, "sequence"),
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
