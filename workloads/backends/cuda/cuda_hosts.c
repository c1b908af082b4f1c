/* SPDX-License-Identifier: Apache-2.0
 * A program with several host lanes: each beyond the first is a thread. A host lane never waits for another's
 * submission (law 2), and what two of them hand to one GPU lane runs there in array order. So a host lane only releases
 * its entry; whoever finds that all earlier entries of the GPU lane, and all that the entry waits for, are enqueued,
 * enqueues it. What holds its caller (a blocking, pageable or bounce copy) is enqueued by its own host lane when it is
 * due. No host lane begins a repetition before all are through with the last but one; in a sequence, a step before it
 * is bound (cuda_sequence.c). What a binding leaves out is passed in its place, and nobody waits for it. */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "workloads/backends/cuda/cuda_room.h"

struct host {
  struct hosts *all;
  pthread_t thread;
  int lane, is_thread;
  atomic_int through; /* steps of a sequence */
  int64_t ended_ns;   /* its last entry, since the start: noted before those hear of it who wait for the entry */
};

struct gpu_lane {
  int *order, n;   /* its entries in array order */
  atomic_int next; /* how many of them are enqueued, over all repetitions of the burst */
};

struct hosts {
  struct cct_executor *x;
  struct host *host;
  int n;
  atomic_int n_bound; /* repetitions there are, or steps bound so far */
  /* Of a sequence: NULL of a burst. */
  struct cct_executor *views;
  struct cct_sequence *sequence;
  atomic_int last; /* how many steps there are, once that is known */
  struct gpu_lane *gpu;
  atomic_int *released, *passed; /* of each entry: repetitions released; and enqueued, or ended on the host */
  pthread_mutex_t enqueuing;
  pthread_mutex_t sleeping; /* between bursts */
  pthread_cond_t woken;
  int burst, is_closing;            /* under `sleeping` */
  atomic_int awake, started, ended; /* threads awake; the burst that may start; threads at its end */
  atomic_int status;
  char line[256]; /* what the thread that failed first had to say, and could not */
};

static _Thread_local int is_muted;

static int fail(struct hosts *h, enum cct_status status) {
  int none = CCT_OK;
  if (status && atomic_compare_exchange_strong(&h->status, &none, (int)status) && is_muted)
    snprintf(h->line, sizeof h->line, "%s", cct_log_last());
  return 0;
}

/* Who performs a repetition: of a sequence, its view. */
static struct cct_executor *view_of(const struct hosts *h, int rep) {
  return h->views ? &h->views[rep % VIEWS] : h->x;
}

/* ---- what is due ---- */

static int has_passed(const struct hosts *h, int id, int repetitions) {
  return atomic_load(&h->passed[id]) >= repetitions;
}

/* What an entry waits for is enqueued, or on the host has ended. */
static int may_follow(const struct hosts *h, int id, int rep) {
  const struct cct_program *program = h->x->program;
  const struct cct_executor *view = view_of(h, rep);
  const struct cct_op *op = &program->ops[id];
  for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++) {
    const struct cct_wait *wait = &program->waits[w];
    if (!is_left_out(view, wait->id, wait->is_previous) && !has_passed(h, wait->id, rep + 1 - wait->is_previous))
      return 0;
  }
  return 1;
}

static int holds_caller(const struct cct_op *op) {
  return op->kind == CCT_OP_COPY && (op->copy.is_blocking || op->copy.is_bounce ||
                                     (op->copy.memory == CCT_MEM_PAGEABLE && cct_copy_is_host(op->copy.direction)));
}

static int is_next(const struct hosts *h, int id, int rep) {
  const struct gpu_lane *gpu = &h->gpu[h->x->program->ops[id].lane];
  int next = atomic_load(&gpu->next);
  return gpu->order[next % gpu->n] == id && next / gpu->n == rep;
}

static int is_due(const struct hosts *h, int id, int rep) {
  return is_next(h, id, rep) && may_follow(h, id, rep);
}

/* All earlier entries of a SYNC's lane are enqueued. */
static int may_sync(const struct hosts *h, int id, int rep) {
  const struct cct_op *op = &h->x->program->ops[id];
  const struct gpu_lane *gpu = &h->gpu[op->lane];
  int before = 0;
  while (before < gpu->n && gpu->order[before] < id)
    before++;
  return atomic_load(&gpu->next) >= rep * gpu->n + before && may_follow(h, id, rep);
}

static int is_not_ahead(const struct hosts *h, int id, int rep) {
  (void)id;
  for (int i = 0; rep >= 2 && i < h->x->program->n_ops; i++)
    if ((is_unit(h->x, i) || cct_cuda_is_host_entry(h->x->program, &h->x->program->ops[i])) &&
        !has_passed(h, i, rep - 1))
      return 0;
  return 1;
}

typedef int due_fn(const struct hosts *h, int id, int rep);

/* 0: another thread failed, or this one waited past the deadline. */
static int wait_until(struct hosts *h, due_fn *due, int id, int rep) {
  struct cct_backend *backend = h->x->backend;
  int64_t start_ns = 0;
  for (unsigned turn = 1; !due(h, id, rep); turn++) {
    if (atomic_load(&h->status))
      return 0;
    if (turn < 1024)
      sched_yield();
    else
      nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    if (turn % 1024)
      continue;
    start_ns = start_ns ? start_ns : cct_clock_ns();
    if (backend->options.deadline_ns > 0 && cct_clock_ns() - start_ns > backend->options.deadline_ns)
      return fail(h, cct_fail(CCT_STOPPED, "cuda: %s: entry %d waited past the deadline for another host lane",
                              h->x->program->name, id));
  }
  return 1;
}

/* ---- enqueuing ---- */

static int enqueue_next(struct hosts *h, struct gpu_lane *gpu) {
  int next = atomic_load(&gpu->next), id = gpu->order[next % gpu->n], rep = next / gpu->n;
  if (rep >= atomic_load(&h->n_bound))
    return 0;
  if (view_of(h, rep)->plan[id].is_out) {
    atomic_store(&h->passed[id], rep + 1);
    atomic_store(&gpu->next, next + 1);
    return 1;
  }
  if (holds_caller(&h->x->program->ops[id]) || atomic_load(&h->released[id]) <= rep || !may_follow(h, id, rep))
    return 0;
  enum cct_status status = cct_cuda_unit(view_of(h, rep), id, rep, MODE_EAGER);
  if (status)
    return fail(h, status);
  atomic_store(&h->passed[id], rep + 1);
  atomic_store(&gpu->next, next + 1);
  return 1;
}

/* Whatever has become due since something was released, enqueued or ended. */
static void enqueue_due(struct hosts *h) {
  pthread_mutex_lock(&h->enqueuing);
  for (int has_moved = 1; has_moved && !atomic_load(&h->status);) {
    has_moved = 0;
    for (int lane = 0; lane < h->x->program->n_lanes; lane++)
      while (h->gpu[lane].n && enqueue_next(h, &h->gpu[lane]))
        has_moved = 1;
  }
  pthread_mutex_unlock(&h->enqueuing);
}

static void note_end(struct host *own) {
  own->ended_ns = cct_clock_ns() - own->all->x->start_ns;
}

/* Nobody else enqueues on the lane meanwhile, since this entry is its next. */
static int perform_here(struct host *own, int id, int rep) {
  struct hosts *h = own->all;
  const struct cct_op *op = &h->x->program->ops[id];
  if (!wait_until(h, is_due, id, rep))
    return 0;
  enum cct_status status = CCT_OK;
  if (!op->copy.is_bounce && op->copy.memory == CCT_MEM_PAGEABLE) /* the driver would hold others while it waits */
    status = cct_cuda_wait_stream(h->x->backend, h->x->lanes[op->lane].stream);
  if (!status)
    status = cct_cuda_unit(view_of(h, rep), id, rep, MODE_EAGER);
  if (status)
    return fail(h, status);
  note_end(own);
  atomic_store(&h->passed[id], rep + 1);
  atomic_fetch_add(&h->gpu[op->lane].next, 1);
  return 1;
}

static int perform(struct host *own, int id, int rep) {
  struct hosts *h = own->all;
  const struct cct_op *op = &h->x->program->ops[id];
  struct cct_executor *view = view_of(h, rep);
  if (view->plan[id].is_out) {
    if (cct_cuda_is_host_entry(h->x->program, op))
      atomic_store(&h->passed[id], rep + 1);
    return 1; /* of a GPU lane: passed in its order there */
  }
  if (cct_cuda_is_host_entry(h->x->program, op)) {
    if (!wait_until(h, op->kind == CCT_OP_SYNC ? may_sync : may_follow, id, rep) ||
        fail(h, cct_cuda_host_entry(view, id, rep)) || atomic_load(&h->status))
      return 0;
    note_end(own);
    atomic_store(&h->passed[id], rep + 1);
  } else {
    atomic_store(&h->released[id], rep + 1);
    if (holds_caller(op) && !perform_here(own, id, rep))
      return 0;
  }
  enqueue_due(h);
  if (!cct_cuda_is_host_entry(h->x->program, op) && !holds_caller(op))
    note_end(own); /* its submission is the lane's, whoever made it */
  return !atomic_load(&h->status);
}

/* 0: something failed. */
static int run_once(struct host *own, int rep) {
  struct hosts *h = own->all;
  const struct cct_program *program = h->x->program;
  enqueue_due(h); /* what is left out waits for nobody's release */
  for (int id = 0; id < program->n_ops; id++)
    if (program->ops[id].host == own->lane &&
        (is_unit(h->x, id) || cct_cuda_is_host_entry(program, &program->ops[id])) && !perform(own, id, rep))
      return 0;
  return !atomic_load(&h->status);
}

static void run_lane(struct host *own) {
  struct hosts *h = own->all;
  int n = atomic_load(&h->n_bound);
  for (int rep = 0; rep < n; rep++)
    if (!wait_until(h, is_not_ahead, 0, rep) || !run_once(own, rep))
      return;
}

/* ---- steps of a sequence ---- */

static int run_step(struct hosts *h, struct host *own, int step) {
  note_end(own);
  if (!run_once(own, step))
    return 0;
  h->sequence->lane_end_ns[(int64_t)step * h->sequence->n_host_lanes + (own - h->host)] = own->ended_ns;
  atomic_store(&own->through, step + 1);
  return 1;
}

/* As long as there is nothing to serve; only the end of the sequence, or of another lane, ends it early. */
static int await_bound(struct hosts *h, int step) {
  for (unsigned turn = 1; atomic_load(&h->n_bound) <= step; turn++) {
    if (atomic_load(&h->status) || step >= atomic_load(&h->last))
      return 0;
    if (turn < 1024)
      sched_yield();
    else
      nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
  }
  return !atomic_load(&h->status);
}

static int are_near(const struct hosts *h, int id, int step) {
  (void)id;
  for (int i = 0; i < h->n; i++)
    if (atomic_load(&h->host[i].through) < step + 1 - CCT_SEQUENCE_DEPTH)
      return 0;
  return 1;
}

void cct_cuda_hosts_sequence(struct cct_executor *x, struct cct_executor *views, struct cct_sequence *sequence) {
  struct hosts *h = x->hosts;
  h->views = views;
  h->sequence = sequence;
  atomic_store(&h->last, INT_MAX);
  for (int i = 0; i < h->n; i++)
    atomic_store(&h->host[i].through, 0);
  atomic_store(&h->started, h->burst);
}

static enum cct_status status_of(struct hosts *h) {
  enum cct_status status = (enum cct_status)atomic_load(&h->status);
  return status && h->line[0] ? cct_fail(status, "%s", h->line) : status;
}

enum cct_status cct_cuda_hosts_await(struct cct_executor *x, int step) {
  return wait_until(x->hosts, are_near, 0, step) ? CCT_OK : (enum cct_status)atomic_load(&x->hosts->status);
}

static int are_quiet(const struct hosts *h, int id, int step) {
  (void)id;
  for (int i = 0; i < h->n; i++)
    if (atomic_load(&h->host[i].through) < step)
      return 0;
  return 1;
}

enum cct_status cct_cuda_hosts_quiet(struct cct_executor *x, int step) {
  return wait_until(x->hosts, are_quiet, 0, step) ? CCT_OK : (enum cct_status)atomic_load(&x->hosts->status);
}

enum cct_status cct_cuda_hosts_status(const struct cct_executor *x) {
  return (enum cct_status)atomic_load(&x->hosts->status);
}

int64_t cct_cuda_hosts_lane_end(const struct cct_executor *x, int lane, int64_t step) {
  const struct hosts *h = x->hosts;
  return h && lane < h->n && atomic_load(&h->host[lane].through) > step
             ? h->sequence->lane_end_ns[step * h->sequence->n_host_lanes + lane]
             : -1;
}

void cct_cuda_hosts_bound(struct cct_executor *x, int step) {
  atomic_store(&x->hosts->n_bound, step + 1);
}

enum cct_status cct_cuda_hosts_step(struct cct_executor *x, int step) {
  return run_step(x->hosts, &x->hosts->host[0], step) ? CCT_OK : (enum cct_status)atomic_load(&x->hosts->status);
}

enum cct_status cct_cuda_hosts_end(struct cct_executor *x, int steps, enum cct_status status) {
  struct hosts *h = x->hosts;
  int none = CCT_OK;
  atomic_store(&h->last, steps);
  if (status)
    atomic_compare_exchange_strong(&h->status, &none, (int)status);
  while (atomic_load(&h->ended) < h->n - 1)
    sched_yield();
  status = status_of(h);
  h->views = NULL;
  h->sequence = NULL;
  return status;
}

/* ---- threads ---- */

static void *thread_of(void *argument) {
  struct host *own = argument;
  struct hosts *h = own->all;
  int burst = 0;
  cct_log_mute(1); /* the rank's own thread says what was wrong */
  is_muted = 1;
  for (;;) {
    pthread_mutex_lock(&h->sleeping);
    while (h->burst == burst && !h->is_closing)
      pthread_cond_wait(&h->woken, &h->sleeping);
    burst = h->burst;
    int is_closing = h->is_closing;
    pthread_mutex_unlock(&h->sleeping);
    if (is_closing)
      return NULL;
    fail(h,
         CCT_CUDA(cudaSetDevice(h->x->backend->device))); /* each time: a burst begins without the last one's status */
    atomic_fetch_add(&h->awake, 1);
    while (atomic_load(&h->started) != burst)
      sched_yield();
    if (h->views)
      for (int step = 0; await_bound(h, step) && run_step(h, own, step); step++)
        ;
    else
      run_lane(own);
    atomic_fetch_add(&h->ended, 1);
  }
}

static int lanes_prepare(struct hosts *h) {
  const struct cct_program *program = h->x->program;
  h->host = calloc((size_t)program->n_lanes + 1, sizeof *h->host);
  h->gpu = calloc((size_t)program->n_lanes + 1, sizeof *h->gpu);
  h->released = calloc((size_t)program->n_ops + 1, sizeof *h->released);
  h->passed = calloc((size_t)program->n_ops + 1, sizeof *h->passed);
  if (!h->host || !h->gpu || !h->released || !h->passed)
    return 0;
  for (int lane = 0; lane < program->n_lanes; lane++) {
    if (program->lanes[lane].kind == CCT_LANE_HOST) {
      h->host[h->n++] = (struct host){.all = h, .lane = lane};
      continue;
    }
    struct gpu_lane *gpu = &h->gpu[lane];
    gpu->order = calloc((size_t)program->n_ops + 1, sizeof *gpu->order);
    for (int id = 0; gpu->order && id < program->n_ops; id++)
      if (is_unit(h->x, id) && program->ops[id].lane == lane)
        gpu->order[gpu->n++] = id;
    if (!gpu->order)
      return 0;
  }
  return 1;
}

enum cct_status cct_cuda_hosts_open(struct cct_executor *x) {
  if (x->n_hosts < 2)
    return CCT_OK;
  struct hosts *h = x->hosts = calloc(1, sizeof *h);
  if (!h)
    return cct_fail(CCT_NOMEM, "out of memory");
  h->x = x;
  pthread_mutex_init(&h->enqueuing, NULL);
  pthread_mutex_init(&h->sleeping, NULL);
  pthread_cond_init(&h->woken, NULL);
  if (!lanes_prepare(h))
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 1; i < h->n; i++) {
    if (pthread_create(&h->host[i].thread, NULL, thread_of, &h->host[i]) != 0)
      return cct_fail(CCT_UNSUPPORTED, "cuda: %s: no thread for host lane '%s'", x->program->name,
                      x->program->lanes[h->host[i].lane].name);
    h->host[i].is_thread = 1;
  }
  return CCT_OK;
}

void cct_cuda_hosts_close(struct cct_executor *x) {
  struct hosts *h = x->hosts;
  if (!h)
    return;
  pthread_mutex_lock(&h->sleeping);
  h->is_closing = 1;
  pthread_cond_broadcast(&h->woken);
  pthread_mutex_unlock(&h->sleeping);
  for (int i = 0; h->host && i < h->n; i++)
    if (h->host[i].is_thread)
      pthread_join(h->host[i].thread, NULL);
  for (int lane = 0; h->gpu && lane < x->program->n_lanes; lane++)
    free(h->gpu[lane].order);
  pthread_mutex_destroy(&h->enqueuing);
  pthread_mutex_destroy(&h->sleeping);
  pthread_cond_destroy(&h->woken);
  free(h->host);
  free(h->gpu);
  free(h->released);
  free(h->passed);
  free(h);
  x->hosts = NULL;
}

void cct_cuda_hosts_begin(struct cct_executor *x, int n) {
  struct hosts *h = x->hosts;
  atomic_store(&h->n_bound, n);
  atomic_store(&h->status, CCT_OK); /* a sequence may have been refused */
  h->line[0] = '\0';
  for (int id = 0; id < x->program->n_ops; id++) {
    atomic_store(&h->released[id], 0);
    atomic_store(&h->passed[id], 0);
  }
  for (int lane = 0; lane < x->program->n_lanes; lane++)
    atomic_store(&h->gpu[lane].next, 0);
  atomic_store(&h->awake, 0);
  atomic_store(&h->ended, 0);
  pthread_mutex_lock(&h->sleeping);
  h->burst++;
  pthread_cond_broadcast(&h->woken);
  pthread_mutex_unlock(&h->sleeping);
  while (atomic_load(&h->awake) < h->n - 1)
    sched_yield();
}

enum cct_status cct_cuda_hosts_run(struct cct_executor *x) {
  struct hosts *h = x->hosts;
  atomic_store(&h->started, h->burst);
  run_lane(&h->host[0]);
  while (atomic_load(&h->ended) < h->n - 1)
    sched_yield();
  return status_of(h);
}
