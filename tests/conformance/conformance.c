/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/conformance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "conformance/calm.h"
#include "conformance/law.h"
#include "conformance/random_job.h"

enum {
  n_repetitions = 2,
  n_forms = 7,
  units_apart = 3, /* ends nearer than this may change places on a loaded machine */
  n_wrong = 3,     /* attempts out of order, though nothing disturbed them, that condemn a backend */
};

/* What slot 0 is bound to in the steps of a sequence, over and over. */
static int64_t forms[n_forms] = {1, 0, 0, 1, 0, 1, 1};

/* Beyond what lanes may lag, where that takes no time. */
static int n_steps_of(const struct cct_suite *suite) {
  return suite->is_exact ? CCT_SEQUENCE_DEPTH + 3 : n_forms;
}

struct expected {
  struct cct_duration **durations;
  struct cct_span **spans;
  int64_t *rank_ends, end;
};

static void *table(int ranks, int n_ops, size_t size) {
  char **rows = calloc((size_t)ranks, sizeof *rows);
  for (int i = 0; rows && i < ranks; i++)
    if (!(rows[i] = calloc((size_t)n_ops + 1, size)))
      abort();
  return rows;
}

static void free_table(void *table_of_rows, int ranks) {
  char **rows = table_of_rows;
  for (int i = 0; i < ranks; i++)
    free(rows[i]);
  free(rows);
}

/* On a real backend only what holds a lane has a known time; a virtual one is priced entry by entry. */
static void time_entries(const struct cct_suite *suite, const struct cct_job *job, int rank,
                         struct cct_duration *durations) {
  const struct cct_program *program = cct_job_role(job, rank)->program;
  if (suite->is_exact) {
    const struct cct_profile *machine = suite->options.machine;
    struct cct_pricing pricing = {.profile = machine, .column = &machine->clear, .has_multicast = 1};
    struct cct_duration *other = calloc((size_t)program->n_ops + 1, sizeof *other);
    int64_t form[] = {0}, other_form[] = {1};
    if (!other || cct_price(&pricing, job, program, &(struct cct_binding){.slots = form}, rank, durations) ||
        cct_price(&pricing, job, program, &(struct cct_binding){.slots = other_form}, rank, other))
      abort();
    for (int id = 0; id < program->n_ops; id++) /* each entry as the form that performs it has it */
      if (other[id].run_ns || other[id].submit_ns)
        durations[id] = other[id];
    free(other);
    return;
  }
  for (int id = 0; id < program->n_ops; id++) {
    const struct cct_op *op = &program->ops[id];
    durations[id].is_blocking = op->kind == CCT_OP_COPY && op->copy.is_blocking;
    durations[id].run_ns = op->kind == CCT_OP_DELAY ? op->delay.ns : op->kind == CCT_OP_HOSTWORK ? op->hostwork.ns : 0;
  }
}

static void expect(const struct cct_suite *suite, const struct cct_job *job, struct expected *expected) {
  int n_ops = job->roles[0].program->n_ops;
  expected->durations = table(job->ranks, n_ops, sizeof **expected->durations);
  expected->spans = table(job->ranks, n_ops, sizeof **expected->spans);
  expected->rank_ends = calloc((size_t)job->ranks, sizeof *expected->rank_ends);
  for (int rank = 0; rank < job->ranks; rank++)
    time_entries(suite, job, rank, expected->durations[rank]);
  expected->end = cct_law(job, expected->durations, suite->is_sequence ? n_steps_of(suite) : n_repetitions,
                          suite->is_sequence ? forms : NULL, n_forms, expected->spans, expected->rank_ends);
}

static void forget(struct expected *expected, int ranks) {
  free_table(expected->durations, ranks);
  free_table(expected->spans, ranks);
  free(expected->rank_ends);
}

/* Ends of all entries of all ranks, since the first rank's start; on process 0. */
static int64_t *gather_ends(const struct cct_world *world, const struct cct_suite *suite, struct cct_executor *x,
                            const struct cct_burst *burst, int n_ops) {
  int first, n_owned;
  suite->ops->owned(x, &first, &n_owned);
  struct cct_span *spans = calloc((size_t)n_ops, sizeof *spans);
  int64_t *mine = calloc((size_t)(n_owned * n_ops), sizeof *mine), start_ns = burst->start_ns;
  int64_t *all = world->rank ? NULL : calloc((size_t)(suite->ranks * n_ops), sizeof *all);
  if (!spans || !mine || (!all && !world->rank))
    abort();
  if (world->ops->allreduce_i64(world, &start_ns, 1, CCT_REDUCE_MIN))
    abort();
  for (int i = 0; i < n_owned; i++) {
    if (suite->ops->trace(x, i, spans))
      abort();
    for (int id = 0; id < n_ops; id++)
      mine[i * n_ops + id] = spans[id].end_ns < 0 ? -1
                             : suite->is_exact    ? spans[id].end_ns
                                                  : spans[id].end_ns + burst->start_ns - start_ns;
  }
  if (world->ops->gather(world, mine, (size_t)(n_owned * n_ops) * sizeof *mine, all, 0))
    abort();
  free(spans);
  free(mine);
  return all;
}

/* Not brackets without an end of their own, nor a GROUP's members, which a real library ends as one. */
static int is_compared(const struct cct_job *job, int id) {
  const struct cct_op *ops = job->roles[0].program->ops;
  if (ops[id].kind == CCT_OP_PHASE || ops[id].kind == CCT_OP_CASE || ops[id].kind == CCT_OP_END)
    return 0;
  for (int i = id - 1; i >= 0; i--)
    if (ops[i].kind == CCT_OP_GROUP)
      return 0;
    else if (ops[i].kind == CCT_OP_END ||
             (ops[i].kind != CCT_OP_COLLECTIVE && ops[i].kind != CCT_OP_SEND && ops[i].kind != CCT_OP_RECV))
      return 1;
  return 1;
}

/* The first two ends that the law puts clearly apart and that came the other way round; 1: there are none. */
static int keeps_order(const struct cct_suite *suite, const struct cct_job *job, const struct expected *expected,
                       const int64_t *ends, char *why, size_t n) {
  int n_ops = job->roles[0].program->n_ops;
  for (int a = 0; a < job->ranks * n_ops; a++)
    for (int b = 0; b < job->ranks * n_ops; b++) {
      int64_t law_a = expected->spans[a / n_ops][a % n_ops].end_ns,
              law_b = expected->spans[b / n_ops][b % n_ops].end_ns;
      if (!is_compared(job, a % n_ops) || !is_compared(job, b % n_ops) ||
          law_b - law_a < units_apart * suite->unit_ns || ends[a] < ends[b])
        continue;
      snprintf(
          why, n, "rank %d entry %d (%s) ends at %.3f ms, rank %d entry %d (%s) at %.3f ms; by the law %.3f and %.3f",
          a / n_ops, a % n_ops, cct_op_name(job->roles[a / n_ops].program->ops[a % n_ops].kind), (double)ends[a] / 1e6,
          b / n_ops, b % n_ops, cct_op_name(job->roles[b / n_ops].program->ops[b % n_ops].kind), (double)ends[b] / 1e6,
          (double)law_a / 1e6, (double)law_b / 1e6);
      return 0;
    }
  return 1;
}

/* No wait was missed: nothing ends before the law lets it, since every hold takes at least its time. */
static int waits_for_all(const struct cct_suite *suite, const struct cct_job *job, const struct expected *expected,
                         const int64_t *ends, char *why, size_t n) {
  int n_ops = job->roles[0].program->n_ops;
  for (int i = 0; i < job->ranks * n_ops; i++) {
    int64_t law = expected->spans[i / n_ops][i % n_ops].end_ns;
    if (!is_compared(job, i % n_ops) || (ends[i] + suite->early_ns >= law && (ends[i] < 0) == (law < 0)))
      continue;
    snprintf(why, n, "rank %d entry %d (%s) ends at %.3f ms, by the law not before %.3f", i / n_ops, i % n_ops,
             cct_op_name(job->roles[i / n_ops].program->ops[i % n_ops].kind), (double)ends[i] / 1e6, (double)law / 1e6);
    return 0;
  }
  return 1;
}

static int is_the_law(const struct cct_job *job, const struct expected *expected, const int64_t *ends, char *why,
                      size_t n) {
  int n_ops = job->roles[0].program->n_ops;
  for (int i = 0; i < job->ranks * n_ops; i++) {
    const struct cct_op *op = &job->roles[i / n_ops].program->ops[i % n_ops];
    int64_t law = expected->spans[i / n_ops][i % n_ops].end_ns;
    if (op->kind == CCT_OP_PHASE || op->kind == CCT_OP_CASE || op->kind == CCT_OP_END || ends[i] == law)
      continue;
    snprintf(why, n, "rank %d entry %d (%s) ends at %lld ns, by the law at %lld", i / n_ops, i % n_ops,
             cct_op_name(op->kind), (long long)ends[i], (long long)law);
    return 0;
  }
  return 1;
}

/* The order may be lost to another load of the machine, a wait that was not kept never: that is -1. */
static int judge(const struct cct_suite *suite, const struct cct_job *job, const struct expected *expected,
                 const int64_t *ends, char *why, size_t n) {
  if (suite->is_exact)
    return is_the_law(job, expected, ends, why, n) ? 1 : -1;
  if (!waits_for_all(suite, job, expected, ends, why, n))
    return -1;
  return suite->has_hostwork || keeps_order(suite, job, expected, ends, why, n);
}

/* Bursts of owned ranks against the law's, where the clock is virtual. */
static int bursts_match(const struct cct_suite *suite, struct cct_executor *x, const struct expected *expected,
                        const int64_t *rank_ns) {
  int first, n_owned;
  suite->ops->owned(x, &first, &n_owned);
  int64_t sync_ns = llround(suite->options.machine->clear.sync_us.value * 1e3);
  for (int i = 0; i < n_owned; i++)
    if (rank_ns[i] != expected->rank_ends[first + i] + sync_ns)
      return 0;
  return 1;
}

struct course {
  int n_owned, n_steps;
};

static enum cct_status next(void *context, int64_t index, const int64_t *now_ns, struct cct_binding *bindings,
                            int64_t *not_before_ns, int *is_over) {
  const struct course *course = context;
  (void)now_ns;
  for (int i = 0; i < course->n_owned; i++) {
    bindings[i].slots = &forms[index % n_forms];
    not_before_ns[i] = 0;
    is_over[i] = index == course->n_steps;
  }
  return CCT_OK;
}

/* A burst, or a sequence, whose lanes must be past each step in turn. */
static enum cct_status perform(struct cct_suite *suite, const struct cct_job *job, struct cct_executor *x,
                               struct cct_burst *burst) {
  int first;
  struct course course = {.n_steps = n_steps_of(suite)};
  if (!suite->is_sequence)
    return suite->ops->step(x, NULL, n_repetitions, burst);
  suite->ops->owned(x, &first, &course.n_owned);
  int n_lanes = course.n_owned * cct_job_host_lanes(job);
  int64_t *ends = calloc((size_t)(course.n_steps * n_lanes) + 1, sizeof *ends);
  struct cct_sequence sequence = {.context = &course, .next = next, .most_steps = course.n_steps, .lane_end_ns = ends};
  if (!ends)
    abort();
  enum cct_status status = suite->ops->sequence(x, &sequence, burst);
  if (!status && sequence.steps != course.n_steps)
    abort();
  for (int i = n_lanes; i < course.n_steps * n_lanes && !status; i++)
    if (ends[i] < ends[i - n_lanes] || ends[i - n_lanes] < 0)
      abort();
  free(ends);
  return status;
}

/* Each step once, untimed, as whoever performs a sequence has to. */
static enum cct_status perform_forms(struct cct_suite *suite, struct cct_executor *x) {
  struct cct_binding bindings[64];
  int64_t rank_ns[64];
  struct cct_burst burst = {.rank_ns = rank_ns};
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < 2; i++) {
    for (int rank = 0; rank < 64; rank++)
      bindings[rank] = (struct cct_binding){.slots = &forms[i]};
    status = suite->ops->step(x, bindings, 1, &burst);
  }
  return status;
}

/* One burst on all processes; 1: as the law says, -1: it broke the law, 0: out of order. */
static int try_once(const struct cct_world *world, struct cct_suite *suite, struct cct_executor *x,
                    const struct cct_job *job, const struct expected *expected, char *why, size_t n) {
  int64_t rank_ns[64];
  struct cct_burst burst = {.rank_ns = rank_ns};
  int64_t verdict = 1;
  if (world->ops->barrier(world) || perform(suite, job, x, &burst))
    abort();
  int64_t *ends = gather_ends(world, suite, x, &burst, job->roles[0].program->n_ops);
  if (ends)
    verdict = judge(suite, job, expected, ends, why, n);
  free(ends);
  if (suite->is_exact && verdict == 1 && !bursts_match(suite, x, expected, rank_ns)) {
    snprintf(why, n, "a burst of %lld ns, by the law %lld and a sync", (long long)rank_ns[0],
             (long long)expected->rank_ends[0]);
    verdict = -1;
  }
  if (world->ops->allreduce_i64(world, &verdict, 1, CCT_REDUCE_MIN))
    abort();
  return (int)verdict;
}

static void one_job(const struct cct_world *world, struct cct_suite *suite, struct cct_backend *backend, int seed) {
  unsigned allow = suite->is_exact       ? CCT_RANDOM_HOSTWORK | CCT_RANDOM_ONE_WAY
                   : suite->has_hostwork ? CCT_RANDOM_HOSTWORK
                                         : 0;
  allow |= suite->is_sequence ? CCT_RANDOM_CASES : 0;
  allow |= suite->pageable_blocks ? CCT_RANDOM_PAGEABLE_BLOCKS : 0;
  struct cct_job *job = cct_random_job((uint64_t)seed, suite->ranks, suite->n_entries, suite->unit_ns, allow);
  struct expected expected;
  struct cct_executor *x;
  struct cct_wrong wrong;
  char why[400] = "";
  int verdict = 0;
  expect(suite, job, &expected);
  if (expected.end < 0 || suite->ops->load(backend, job, &x))
    abort();
  if (suite->is_sequence && perform_forms(suite, x))
    abort();
  int64_t end_ns = cct_clock_ns() + suite->budget_ns;
  int n_calm = 0;
  do {
    struct cct_calm begun;
    cct_calm_begin(&begun);
    verdict = try_once(world, suite, x, job, &expected, why, sizeof why);
    n_calm += !verdict && cct_calm_end(world, &begun) < suite->unit_ns / 2;
    if (n_calm == n_wrong)
      verdict = -1;
  } while (!verdict && cct_is_before(world, end_ns));
  if (suite->ops->verify(x, NULL, &wrong))
    abort();
  int64_t n_elements_wrong = wrong.wrong;
  if (world->ops->allreduce_i64(world, &n_elements_wrong, 1, CCT_REDUCE_SUM))
    abort();
  if (!world->rank && !verdict && !n_elements_wrong) {
    suite->n_unjudged++;
    printf("%s, %d ranks, seed %d: not judged: the machine never left it alone (%s)\n", suite->ops->name, suite->ranks,
           seed, why);
  } else if (!world->rank && (verdict != 1 || n_elements_wrong)) {
    suite->n_failed++;
    printf("%s, %d ranks, seed %d: %s; %lld wrong elements %s\n", suite->ops->name, suite->ranks, seed, why,
           (long long)n_elements_wrong, wrong.first);
  }
  suite->ops->unload(x);
  forget(&expected, suite->ranks);
  cct_job_free(job);
}

void cct_conformance_order(const struct cct_world *world, void *argument) {
  struct cct_suite *suite = argument;
  struct cct_backend *backend;
  if (suite->ops->open(world, &suite->options, &backend))
    abort();
  for (int i = 0; i < suite->n_seeds; i++)
    one_job(world, suite, backend, suite->first_seed + i);
  suite->ops->close(backend);
}
