/* SPDX-License-Identifier: Apache-2.0
 * The sequence part of the GPU checks without a GPU: over the twin, its ranks as threads of one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fakes/world_threads.h"
#include "gpu_check.h"
#include "workloads/backends/cuda/cuda_room.h"

struct cct_log_room;
const struct cct_backend_ops *cctax_cuda_ops(const struct cct_log_room *room);

static const struct cct_backend_ops *ops;

static void sit(const struct cct_world *world, void *failed) {
  struct gpu gpu = {.world = world, .ops = ops, .is_shared = 1}; /* its times tell nothing */
  gpu.options.deadline_ns = 20000000000;
  if (gpu.ops->open(world, &gpu.options, &gpu.backend)) {
    ((int *)failed)[world->rank] = 1000;
    return;
  }
  check_sequence(&gpu);
  gpu.ops->close(gpu.backend);
  ((int *)failed)[world->rank] = gpu.failed;
}

static void passes_on(int ranks) {
  int failed[2] = {0, 0};
  assert_int_equal(cct_world_threads(ranks, sit, failed), 0);
  assert_int_equal(failed[0] + failed[1], 0);
}

/* Each of two host lanes seals what it copies, at once with the other. */
static void host_lanes_seal_side_by_side(void **state) {
  (void)state;
  enum {
    n_copies = 40,
    n_bursts = 20
  };
  struct cct_backend_options options = {.is_shared_gpu = 1};
  struct cct_backend *backend;
  struct cct_executor *x;
  struct cct_program *program;
  struct cct_job *job;
  int64_t took;
  struct cct_burst burst = {0, &took};
  assert_int_equal(cct_program_new("seals", &program), CCT_OK);
  for (int side = 0; side < 2; side++) {
    cct_program_add_lane(program, side ? "up" : "down", CCT_LANE_STREAM);
    cct_program_add_lane(program, side ? "one" : "other", CCT_LANE_HOST);
  }
  for (int i = 0; i < 2 * n_copies; i++) {
    struct cct_op copy = {
        .kind = CCT_OP_COPY, .name = "copy", .lane = i % 2 * 2, .host = i % 2 * 2 + 1, .reads = {-1, -1}, .writes = -1};
    copy.copy.direction = i % 2 ? CCT_COPY_D2H : CCT_COPY_H2D;
    copy.copy.memory = CCT_MEM_PINNED;
    copy.copy.bytes = cct_constant(64 << (i / 2 % 8));
    copy.copy.is_blocking = copy.copy.is_bounce = 1;
    cct_program_add(program, &copy, NULL, 0);
  }
  for (int side = 0; side < 2; side++) {
    struct cct_op sync = {
        .kind = CCT_OP_SYNC, .name = "sync", .lane = 2 * side, .host = 2 * side + 1, .reads = {-1, -1}, .writes = -1};
    cct_program_add(program, &sync, NULL, 0);
  }
  assert_int_equal(cct_job_new(1, &job), CCT_OK);
  assert_int_equal(cct_job_add_role(job, program, 0, 1), CCT_OK);
  assert_int_equal(ops->open(cct_world_self(), &options, &backend), CCT_OK);
  assert_int_equal(ops->load(backend, job, &x), CCT_OK);
  for (int i = 0; i < n_bursts; i++)
    assert_int_equal(ops->step(x, NULL, 10, &burst), CCT_OK);
  ops->unload(x);
  ops->close(backend);
  cct_job_free(job);
}

/* A plan is found by what the host plans for, and by nothing else. */
static void plans_are_found_by_what_they_depend_on(void **state) {
  (void)state;
  static int64_t steps[][4] = {{1, 16, 9, 9}, {1, 8, 9, 9}, {1, 8, 700, 3}, {2, 8, 9, 9}, {1, 16, 5, 9}};
  struct cct_backend_options options = {.is_shared_gpu = 1};
  struct cct_backend *backend;
  struct cct_executor *x, view;
  int64_t took;
  struct cct_burst burst = {0, &took};
  const struct planned *plans[5];
  struct cct_job *job = sequence_job(1);
  assert_int_equal(ops->open(cct_world_self(), &options, &backend), CCT_OK);
  assert_int_equal(ops->load(backend, job, &x), CCT_OK);
  for (int i = 0; i < 5; i++)
    assert_int_equal(ops->step(x, &(struct cct_binding){.slots = steps[i == 0 ? 2 : i]}, 1, &burst), CCT_OK);
  assert_int_equal(cct_cuda_cache_open(x), CCT_OK);
  view = *x;
  view.is_in_sequence = 1;
  for (int i = 0; i < 5; i++) {
    view.slots = steps[i];
    assert_int_equal(cct_cuda_cache_plan(x, &view, i, &(struct cct_binding){.slots = steps[i]}), CCT_OK);
    plans[i] = view.plan;
    for (int id = 0; id < x->program->n_ops; id++) {
      assert_int_equal(view.plan[id].m,
                       x->program->ops[id].kind == CCT_OP_GEMM && !view.plan[id].is_out ? steps[i][1] : 0);
      assert_true(x->program->ops[id].kind != CCT_OP_GRAPH || view.plan[id].is_out || view.plan[id].captured);
    }
  }
  assert_ptr_equal(plans[1], plans[2]); /* longer caches, less metadata */
  assert_ptr_equal(plans[0], plans[4]);
  assert_ptr_not_equal(plans[0], plans[1]);
  assert_ptr_not_equal(plans[1], plans[3]);
  ops->unload(x);
  ops->close(backend);
  cct_job_free(job);
}

/* Plans of the last steps are under way: a full cache gives away one that is older, in a second sequence too. */
static void plans_under_way_are_kept(void **state) {
  enum {
    MANY = 1100, /* more than the cache holds */
    UNDER_WAY = CCT_SEQUENCE_DEPTH + 2
  };
  (void)state;
  struct cct_backend_options options = {.is_shared_gpu = 1};
  struct cct_backend *backend;
  struct cct_executor *x, view;
  int64_t took, slots[] = {2, MANY, 1, MANY};
  struct cct_burst burst = {0, &took};
  const struct cct_binding binding = {.slots = slots};
  const struct planned *plans[UNDER_WAY];
  struct cct_job *job = sequence_job(1);
  assert_int_equal(ops->open(cct_world_self(), &options, &backend), CCT_OK);
  assert_int_equal(ops->load(backend, job, &x), CCT_OK);
  assert_int_equal(ops->step(x, &binding, 1, &burst), CCT_OK);
  assert_int_equal(cct_cuda_cache_open(x), CCT_OK);
  view = *x;
  view.is_in_sequence = 1;
  view.slots = slots;
  for (int sequence = 0; sequence < 2; sequence++)
    for (int step = 0; step < MANY; step++) {
      slots[1] = 1 + step;
      assert_int_equal(cct_cuda_cache_plan(x, &view, step, &binding), CCT_OK);
      plans[step % UNDER_WAY] = view.plan;
      for (int before = 1; before < UNDER_WAY && before <= step; before++)
        assert_ptr_not_equal(view.plan, plans[(step - before) % UNDER_WAY]);
    }
  ops->unload(x);
  ops->close(backend);
  cct_job_free(job);
}

/* Memory that cannot be had is refused as often as it is asked for, and a smaller step goes on. */
static void a_refused_binding_stays_refused(void **state) {
  (void)state;
  struct cct_backend_options options = {.is_shared_gpu = 1};
  struct cct_backend *backend;
  struct cct_executor *x;
  struct cct_program *program;
  struct cct_job *job;
  int64_t took, slots[] = {1};
  struct cct_burst burst = {0, &took};
  const struct cct_binding binding = {.slots = slots};
  assert_int_equal(cct_program_new("copies", &program), CCT_OK);
  cct_program_add_lane(program, "main", CCT_LANE_STREAM);
  cct_program_add_lane(program, "host", CCT_LANE_HOST);
  cct_program_add_slot(program, "mib", 1);
  struct cct_op op = {.kind = CCT_OP_COPY, .name = "copy", .host = 1, .reads = {-1, -1}, .writes = -1};
  op.copy.direction = CCT_COPY_D2D;
  op.copy.memory = CCT_MEM_DEVICE;
  op.copy.bytes = cct_per_slot(1 << 20, 0);
  cct_program_add(program, &op, NULL, 0);
  op.kind = CCT_OP_SYNC;
  cct_program_add(program, &op, NULL, 0);
  assert_int_equal(cct_job_new(1, &job), CCT_OK);
  assert_int_equal(cct_job_add_role(job, program, 0, 1), CCT_OK);
  assert_int_equal(ops->open(cct_world_self(), &options, &backend), CCT_OK);
  assert_int_equal(ops->load(backend, job, &x), CCT_OK);
  cct_log_mute(1);
  for (int i = 0; i < 4; i++) {
    slots[0] = i < 3 ? 1 << 20 : 2;
    assert_int_equal(ops->step(x, &binding, 1, &burst), i < 3 ? CCT_UNSUPPORTED : CCT_OK);
  }
  cct_log_mute(0);
  ops->unload(x);
  ops->close(backend);
  cct_job_free(job);
}

/* A job of two host lanes: the first waits for its stream in each step, the other is held in steps of form 1, and where
 * `is_awaited` the first waits for that. */
static struct cct_job *job_of_two_lanes(int64_t held_ns, int is_awaited) {
  struct cct_program *program;
  struct cct_job *job;
  struct cct_op op = {.kind = CCT_OP_LAUNCH, .name = "work", .host = 1, .reads = {-1, -1}, .writes = -1};
  assert_int_equal(cct_program_new("two lanes", &program), CCT_OK);
  cct_program_add_lane(program, "main", CCT_LANE_STREAM);
  cct_program_add_lane(program, "engine", CCT_LANE_HOST);
  cct_program_add_lane(program, "mover", CCT_LANE_HOST);
  cct_program_add_slot(program, "form", 0);
  cct_program_add(program, &op, NULL, 0);
  op.kind = CCT_OP_SYNC;
  cct_program_add(program, &op, NULL, 0);
  op.lane = op.host = -1;
  op.kind = CCT_OP_CASE;
  op.when.slot = 0;
  op.when.value = 1;
  int opens = cct_program_add(program, &op, NULL, 0);
  op.kind = CCT_OP_DELAY;
  op.host = 2;
  op.delay.ns = held_ns;
  op.delay.stretch = 0;
  op.delay.of = -1;
  int held = cct_program_add(program, &op, NULL, 0);
  op.kind = CCT_OP_END;
  op.host = -1;
  op.end.opens = opens;
  cct_program_add(program, &op, NULL, 0);
  op.kind = CCT_OP_DELAY;
  op.host = 1;
  op.delay.ns = 0;
  op.delay.stretch = 0;
  op.delay.of = -1;
  if (is_awaited)
    cct_program_add(program, &op, &(struct cct_wait){held, 0}, 1);
  assert_int_equal(cct_job_new(1, &job), CCT_OK);
  assert_int_equal(cct_job_add_role(job, program, 0, 1), CCT_OK);
  return job;
}

enum {
  MOST = CCT_SEQUENCE_DEPTH + 8
};
struct lagging {
  int n, held_in, is_awaited; /* steps; the one that is held, -1: every third; by the first lane */
  int64_t slots[CCT_SEQUENCE_DEPTH], asked_ns[MOST + 1], ends[2 * MOST];
};

static enum cct_status next_of_lagging(void *context, int64_t index, const int64_t *now_ns,
                                       struct cct_binding *bindings, int64_t *not_before_ns, int *is_over) {
  struct lagging *l = context;
  int64_t *slot = &l->slots[index % CCT_SEQUENCE_DEPTH];
  l->asked_ns[index] = *now_ns;
  *not_before_ns = 0;
  *is_over = index == l->n;
  *slot = l->held_in < 0 ? index % 3 == 0 : index == l->held_in;
  bindings->slots = slot;
  return CCT_OK;
}

static void perform_lagging(struct lagging *l, int64_t held_ns) {
  struct cct_backend_options options = {.is_shared_gpu = 1};
  struct cct_sequence sequence = {.context = l, .next = next_of_lagging, .most_steps = l->n, .lane_end_ns = l->ends};
  struct cct_backend *backend;
  struct cct_executor *x;
  int64_t took, form = 0;
  struct cct_burst burst = {0, &took};
  struct cct_job *job = job_of_two_lanes(held_ns, l->is_awaited);
  assert_int_equal(ops->open(cct_world_self(), &options, &backend), CCT_OK);
  assert_int_equal(ops->load(backend, job, &x), CCT_OK);
  assert_int_equal(ops->step(x, &(struct cct_binding){.slots = &form}, 1, &burst), CCT_OK);
  assert_int_equal(ops->sequence(x, &sequence, &burst), CCT_OK);
  assert_int_equal(sequence.steps, l->n);
  ops->unload(x);
  ops->close(backend);
  cct_job_free(job);
}

static void a_lane_held_for_ten_steps_holds_no_other(void **state) {
  (void)state;
  static struct lagging l = {.n = 14, .held_in = 2};
  perform_lagging(&l, 300000000);
  assert_true(l.ends[2 * 2 + 1] >= 300000000);
  assert_true(l.ends[13 * 2] < l.ends[2 * 2 + 1]);
}

static void no_lane_is_farther_ahead_than_bindings_are_kept(void **state) {
  (void)state;
  static struct lagging l = {.n = MOST, .held_in = -1};
  perform_lagging(&l, 10000000);
  for (int step = CCT_SEQUENCE_DEPTH; step < MOST; step++)
    assert_true(l.asked_ns[step] >= l.ends[(step - CCT_SEQUENCE_DEPTH) * 2 + 1]);
  assert_true(l.asked_ns[CCT_SEQUENCE_DEPTH - 1] < l.ends[(CCT_SEQUENCE_DEPTH - 1) * 2 + 1]);
  for (int step = 3; step < MOST; step += 3) /* by its own binding, which the lane reads late */
    assert_true(l.ends[step * 2 + 1] - l.ends[step * 2 - 1] >= 10000000);
}

/* A lane is through when its entries are, not when its thread comes to say so. */
static void who_waits_for_a_lane_is_through_no_earlier(void **state) {
  (void)state;
  static struct lagging l = {.n = MOST, .held_in = -1, .is_awaited = 1};
  for (int n = 0; n < 20; n++) {
    perform_lagging(&l, 1000);
    for (int step = 0; step < MOST; step += 3)
      assert_true(l.ends[step * 2 + 1] <= l.ends[step * 2]);
  }
}

static void one_rank(void **state) {
  (void)state;
  passes_on(1);
}

static void two_ranks(void **state) {
  (void)state;
#ifdef __SANITIZE_THREAD__
  skip(); /* a minute */
#endif
  passes_on(2);
}

int main(void) {
  ops = cctax_cuda_ops(NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(plans_are_found_by_what_they_depend_on),
                                     cmocka_unit_test(plans_under_way_are_kept),
                                     cmocka_unit_test(a_refused_binding_stays_refused),
                                     cmocka_unit_test(host_lanes_seal_side_by_side),
                                     cmocka_unit_test(a_lane_held_for_ten_steps_holds_no_other),
                                     cmocka_unit_test(no_lane_is_farther_ahead_than_bindings_are_kept),
                                     cmocka_unit_test(who_waits_for_a_lane_is_through_no_earlier),
                                     cmocka_unit_test(one_rank),
                                     cmocka_unit_test(two_ranks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
