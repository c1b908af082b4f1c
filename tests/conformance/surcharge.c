/* SPDX-License-Identifier: Apache-2.0
 * Each surcharge alone: a job whose every operation is closed by a sync lasts longer under emulation by just what the
 * profile says, boundary by boundary, whatever performs it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "conformance/calm.h"
#include "conformance/conformance.h"

enum {
  stream,
  host,
  n_times = 6,
  n_calm_enough = 5, /* bursts that nothing disturbed, of which the shortest has the wrong size, condemn a backend */
  copy_bytes = 1 << 20,
  reduce_bytes = 4096
};

static struct cct_cost cost(double value) {
  return (struct cct_cost){.value = value, .lo = value, .hi = value, .kind = CCT_COST_ASSUMED, .source = "test"};
}

/* The test's own machine: all surcharges at once, of which a mask chooses. `unit_us` sets their size. */
struct machine {
  struct cct_profile profile;
  struct cct_collective_cost rows[2];
};

static void fill_column(struct cct_column *column, struct cct_collective_cost *row, int ranks, double unit_us,
                        int is_confidential) {
  double more_us = is_confidential ? unit_us : 0;
  column->submission.us = cost(2 + more_us);
  column->graph_launch.us = cost(5 + 2 * more_us);
  column->graph_launch.us_per_node = cost(0.5 + more_us / 4);
  column->sync_us = cost(3 + more_us / 2);
  column->kernel_floor_us = cost(1.5);
  column->hbm_gb_s = cost(3000);
  column->p2p.sm_gb_s = cost(400);
  column->cpu_slowdown = cost(is_confidential ? 3 : 1);
  for (int direction = 0; direction < 2; direction++)
    for (int memory = 0; memory < 2; memory++) {
      column->copy[direction][memory].fixed_us = cost(4 + more_us);
      column->copy[direction][memory].gb_s = cost(is_confidential ? 2 : 40); /* slower than a core seals: paced */
    }
  *row =
      (struct cct_collective_cost){.kind = CCT_COLL_ALL_REDUCE, .ranks = ranks, .algorithm = "RING", .protocol = "LL"};
  row->toll_us_eager = row->toll_us_graph = cost(10 + more_us);
  row->busbw_gb_s = cost(100);
  column->collectives = row;
  column->n_collectives = 1;
}

static void make_machine(struct machine *m, int ranks, double unit_us, enum cct_submission_form form) {
  *m = (struct machine){.profile = {.name = "surcharges", .has_clear = 1, .has_confidential = 1}};
  m->profile.platform.gpus = m->profile.platform.partition = 8;
  fill_column(&m->profile.clear, &m->rows[0], ranks, unit_us, 0);
  fill_column(&m->profile.confidential, &m->rows[1], ranks, unit_us, 1);
  m->profile.confidential.submission.form = form;
}

/* ---- one job a kind of operation ---- */

static struct cct_op blank(enum cct_op_kind kind) {
  return (struct cct_op){.kind = kind, .lane = stream, .host = host, .reads = {-1, -1}, .writes = -1, .name = ""};
}

static void put(struct cct_program *program, struct cct_op op) {
  cct_program_add(program, &op, NULL, 0);
}

static void put_one(struct cct_program *program, enum cct_op_kind kind) {
  struct cct_op op = blank(kind);
  if (kind == CCT_OP_COPY) {
    op.copy.bytes = cct_constant(copy_bytes);
    op.copy.is_blocking = 1;
  } else if (kind == CCT_OP_COLLECTIVE) {
    op.collective.bytes = cct_constant(reduce_bytes);
    op.collective.type = CCT_TYPE_BF16;
    op.collective.matrix = -1;
  } else if (kind == CCT_OP_HOSTWORK) {
    op.lane = -1;
    op.hostwork.ns = 400000; /* short, so that a loaded machine lets a whole burst through now and then */
  }
  put(program, op);
  if (kind == CCT_OP_GRAPH) {
    op = blank(CCT_OP_LAUNCH);
    op.host = -1;
    for (int i = 0; i < 3; i++)
      put(program, op);
    op = blank(CCT_OP_END);
    op.lane = op.host = -1;
    put(program, op);
  }
  put(program, blank(CCT_OP_SYNC));
}

static struct cct_job *make_job(int ranks, enum cct_op_kind kind) {
  struct cct_program *program;
  struct cct_job *job;
  if (cct_program_new("surcharge", &program) || cct_job_new(ranks, &job))
    abort();
  cct_program_add_lane(program, "stream", CCT_LANE_STREAM);
  cct_program_add_lane(program, "host", CCT_LANE_HOST);
  cct_job_add_group(job, "all", ranks, 1);
  for (int i = 0; i < n_times; i++)
    put_one(program, kind);
  if (cct_job_add_role(job, program, 0, ranks))
    abort();
  return job;
}

/* ---- what it should cost ---- */

struct row {
  enum cct_op_kind kind;
  enum cct_boundary boundary;
  double units, fixed_us; /* a repetition of the kind costs so many units and so much more */
};

static const struct row rows[] = {
    {CCT_OP_LAUNCH, CCT_BOUNDARY_CHANNEL, 1.5, 0},           /* its submission, and the sync's half */
    {CCT_OP_GRAPH, CCT_BOUNDARY_CHANNEL, 2 + 0.75 + 0.5, 0}, /* its launch, three nodes and the sync */
    {CCT_OP_COPY, CCT_BOUNDARY_COPIES, 1, copy_bytes / 2e3 - copy_bytes / 40e3},
    {CCT_OP_COLLECTIVE, CCT_BOUNDARY_NVLINK, 1, 0},
    {CCT_OP_HOSTWORK, CCT_BOUNDARY_CPU, 0, 800},
    {CCT_OP_LAUNCH, CCT_BOUNDARY_CAPABILITY, 0, 0}, /* takes nothing from a program */
    {CCT_OP_LAUNCH, CCT_BOUNDARY_COPIES, 0, 0},     /* and what has no such operation pays nothing */
    {CCT_OP_COPY, CCT_BOUNDARY_CPU, 0, 0},
};

/* One of the two jobs that are compared, and the shortest burst of it that nothing disturbed, of the slowest rank. */
struct side {
  struct cct_backend *backend;
  struct cct_executor *x;
  int64_t best_ns;
  int n_calm;
};

static void open_side(const struct cct_world *world, const struct cct_suite *suite, const struct cct_job *job,
                      const struct cct_profile *emulated, struct side *side) {
  struct cct_backend_options options = suite->options;
  options.emulated = emulated;
  side->best_ns = INT64_MAX;
  side->n_calm = 0;
  if (suite->ops->open(world, &options, &side->backend) || suite->ops->load(side->backend, job, &side->x))
    abort();
}

static void burst_of(const struct cct_world *world, const struct cct_suite *suite, int64_t most_waited_ns,
                     struct side *side) {
  int64_t rank_ns[64];
  struct cct_calm begun;
  struct cct_burst burst = {.rank_ns = rank_ns};
  cct_calm_begin(&begun);
  if (world->ops->barrier(world) || suite->ops->step(side->x, NULL, 1, &burst))
    abort();
  if (world->ops->allreduce_i64(world, rank_ns, 1, CCT_REDUCE_MAX))
    abort();
  if (cct_calm_end(world, &begun) > most_waited_ns && !suite->is_exact)
    return;
  side->n_calm++;
  side->best_ns = rank_ns[0] < side->best_ns ? rank_ns[0] : side->best_ns;
}

static void close_side(const struct cct_suite *suite, struct side *side) {
  suite->ops->unload(side->x);
  suite->ops->close(side->backend);
}

/* A real copy is held to the profile's confidential time, so its surcharge is that less what a clear copy takes here.
 */
static double expected_us(const struct cct_suite *suite, const struct row *row, const struct machine *m,
                          int64_t clear_ns) {
  double us = n_times * (row->units * (double)suite->unit_ns / 1e3 + row->fixed_us);
  if (row->boundary == CCT_BOUNDARY_NVLINK && suite->ranks == 1)
    return 0; /* a collective of one rank crosses no link */
  if (row->boundary != CCT_BOUNDARY_COPIES || row->kind != CCT_OP_COPY || suite->is_exact)
    return us;
  const struct cct_copy_cost *copy = &m->profile.confidential.copy[CCT_COPY_H2D][CCT_MEM_PINNED];
  return n_times * (copy->fixed_us.value + copy_bytes / copy->gb_s.value / 1e3) - (double)clear_ns / 1e3;
}

/* A virtual clock rounds each duration; on a real one a tenth, and what a woken thread may come late. */
static double tolerance_of(const struct cct_suite *suite, double us) {
  return suite->is_exact ? n_times * 1e-3 : 0.1 * fabs(us) + n_times * 100;
}

/* In turns, so that a load of the machine meets both; on a real clock until the surcharge stands out from it. */
static void recover(const struct cct_world *world, struct cct_suite *suite, const struct row *row,
                    enum cct_submission_form form) {
  struct machine m;
  struct side clear, emulated;
  struct cct_job *clear_job = make_job(suite->ranks, row->kind), *emulated_job;
  double us = 0, got_us = 0;
  make_machine(&m, suite->ranks, (double)suite->unit_ns / 1e3, form);
  if (suite->is_exact)
    suite->options.machine = &m.profile;
  if (cct_emulate(clear_job, &m.profile, 1u << row->boundary, &emulated_job))
    abort();
  open_side(world, suite, clear_job, NULL, &clear);
  open_side(world, suite, emulated_job, &m.profile, &emulated);
  int64_t end_ns = cct_clock_ns() + suite->budget_ns;
  /* A thread may wait for half of what is tolerated: two take turns on the way to a step's end. */
  int64_t most_waited_ns = llround(0.5e3 * tolerance_of(suite, expected_us(suite, row, &m, 0)));
  int is_right = 0, n_calm = 0;
  do {
    burst_of(world, suite, most_waited_ns, &clear);
    burst_of(world, suite, most_waited_ns, &emulated);
    n_calm = clear.n_calm < emulated.n_calm ? clear.n_calm : emulated.n_calm;
    if (!n_calm)
      continue;
    us = expected_us(suite, row, &m, clear.best_ns);
    got_us = (double)(emulated.best_ns - clear.best_ns) / 1e3;
    is_right = fabs(got_us - us) <= tolerance_of(suite, us);
  } while (!is_right && !suite->is_exact && cct_is_before(world, end_ns));
  if (!world->rank && !is_right && n_calm < n_calm_enough && !suite->is_exact) {
    suite->n_unjudged++;
    printf("%s: %s, %s, form %s: not judged: the machine left %d of its bursts alone\n", suite->ops->name,
           cct_op_name(row->kind), cct_boundary_name(row->boundary), form == CCT_FORM_HOST ? "host" : "stream", n_calm);
  } else if (!world->rank && !is_right) {
    suite->n_failed++;
    printf("%s: %s, %s, form %s: emulation added %.3f us, the profile says %.3f\n", suite->ops->name,
           cct_op_name(row->kind), cct_boundary_name(row->boundary), form == CCT_FORM_HOST ? "host" : "stream", got_us,
           us);
  }
  close_side(suite, &clear);
  close_side(suite, &emulated);
  cct_job_free(clear_job);
  cct_job_free(emulated_job);
}

void cct_conformance_surcharges(const struct cct_world *world, void *argument) {
  struct cct_suite mine = *(struct cct_suite *)argument; /* each process has its own machine in it */
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int computes = rows[i].kind == CCT_OP_COPY || rows[i].kind == CCT_OP_HOSTWORK;
    if (computes && mine.ranks > 1 && !mine.is_exact)
      continue; /* ranks may have to share cores: one alone tells */
    recover(world, &mine, &rows[i], CCT_FORM_HOST);
    recover(world, &mine, &rows[i], CCT_FORM_STREAM);
  }
  if (world->rank)
    return;
  ((struct cct_suite *)argument)->n_failed = mine.n_failed;
  ((struct cct_suite *)argument)->n_unjudged = mine.n_unjudged;
}
