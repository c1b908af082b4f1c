/* SPDX-License-Identifier: Apache-2.0
 * Streams, the graphs that are captured from them, and events. */
#include "fakes/twin_gpu.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

struct CUevent_st {
  _Atomic int64_t at_ns; /* when it was completed last */
  atomic_long recorded, completed;
  struct CUgraph_st *graph; /* whose capture recorded it last, as its node */
  int node;
};

struct task {
  struct task *next;
  twin_body *body;
  struct CUevent_st *event; /* recorded, or waited for */
  int is_record, is_wait, target;
  long generation;
  struct CUstream_st *stream; /* in a graph */
  _Alignas(16) unsigned char arguments[192];
};

struct CUgraph_st {
  struct task *nodes;
  int n;
};

struct CUstream_st {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  struct task *first, *last;
  int is_busy, is_closing, was_used;
  struct CUgraph_st *capture;
  struct CUstream_st *next; /* of all */
};

static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct CUstream_st *all_streams;

static void nap(void) {
  nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* ---- graphs ---- */

struct run {
  const struct CUgraph_st *graph;
  atomic_int *is_done;
  struct CUstream_st *branch;
};

static void *run_branch(void *argument) {
  const struct run *run = argument;
  for (int i = 0; i < run->graph->n; i++) {
    struct task *task = &run->graph->nodes[i];
    if (task->stream != run->branch)
      continue;
    while (task->is_wait && task->target >= 0 && !atomic_load(&run->is_done[task->target]))
      nap();
    if (task->body)
      task->body(task->arguments);
    atomic_store(&run->is_done[i], 1);
  }
  return NULL;
}

static void run_graph(void *arguments) {
  const struct CUgraph_st *graph = *(struct CUgraph_st **)arguments;
  atomic_int *is_done = calloc((size_t)graph->n + 1, sizeof *is_done);
  struct run runs[16];
  pthread_t threads[16];
  int n = 0;
  for (int i = 0; i < graph->n; i++) {
    int is_known = 0;
    for (int k = 0; k < n; k++)
      is_known |= runs[k].branch == graph->nodes[i].stream;
    if (!is_known && n < 16)
      runs[n++] = (struct run){graph, is_done, graph->nodes[i].stream};
  }
  for (int k = 0; k < n; k++)
    pthread_create(&threads[k], NULL, run_branch, &runs[k]);
  for (int k = 0; k < n; k++)
    pthread_join(threads[k], NULL);
  free(is_done);
}

/* ---- streams ---- */

static void perform(struct task *task) {
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  int is_alone = twin_costs.one_at_once && task->body;
  if (task->is_wait)
    while (atomic_load(&task->event->completed) < task->generation)
      nap();
  if (is_alone)
    pthread_mutex_lock(&one);
  if (task->body)
    task->body(task->arguments);
  if (is_alone)
    pthread_mutex_unlock(&one);
  if (task->is_record)
    atomic_store(&task->event->at_ns, cct_clock_ns());
  if (task->is_record && atomic_load(&task->event->completed) < task->generation)
    atomic_store(&task->event->completed, task->generation);
}

static void *run_stream(void *argument) {
  struct CUstream_st *s = argument;
  pthread_mutex_lock(&s->mutex);
  for (;;) {
    while (!s->first && !s->is_closing)
      pthread_cond_wait(&s->changed, &s->mutex);
    struct task *task = s->first;
    if (!task)
      break;
    s->first = task->next;
    s->is_busy = 1;
    pthread_mutex_unlock(&s->mutex);
    perform(task);
    free(task);
    pthread_mutex_lock(&s->mutex);
    s->is_busy = 0;
    pthread_cond_broadcast(&s->changed);
  }
  pthread_mutex_unlock(&s->mutex);
  return NULL;
}

static int append(struct CUstream_st *s, const struct task *task) {
  if (s->capture) {
    struct CUgraph_st *g = s->capture;
    g->nodes = realloc(g->nodes, (size_t)(g->n + 1) * sizeof *g->nodes);
    g->nodes[g->n] = *task;
    g->nodes[g->n++].stream = s;
    return cudaSuccess;
  }
  struct task *own = malloc(sizeof *own);
  *own = *task;
  own->next = NULL;
  pthread_mutex_lock(&s->mutex);
  if (s->first)
    s->last->next = own;
  else
    s->first = own;
  s->last = own;
  s->was_used = 1;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mutex);
  return cudaSuccess;
}

int twin_enqueue(struct CUstream_st *stream, twin_body *body, const void *arguments, unsigned long bytes) {
  struct task task = {.body = body};
  if (bytes > sizeof task.arguments)
    abort();
  if (!stream) { /* the default one: done when its call returns */
    memcpy(task.arguments, arguments, bytes);
    body(task.arguments);
    return cudaSuccess;
  }
  if (bytes)
    memcpy(task.arguments, arguments, bytes);
  return append(stream, &task);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
  struct CUstream_st *s = calloc(1, sizeof *s);
  (void)flags;
  pthread_mutex_init(&s->mutex, NULL);
  pthread_cond_init(&s->changed, NULL);
  pthread_mutex_lock(&all_mutex);
  s->next = all_streams;
  all_streams = s;
  pthread_mutex_unlock(&all_mutex);
  pthread_create(&s->thread, NULL, run_stream, s);
  *out = s;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  if (!s)
    return cudaSuccess; /* the default stream's calls are done when they return here */
  pthread_mutex_lock(&s->mutex);
  while (s->first || s->is_busy)
    pthread_cond_wait(&s->changed, &s->mutex);
  int was_used = s->was_used;
  pthread_mutex_unlock(&s->mutex);
  twin_spend(was_used ? twin_costs.sync_us : 0);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  pthread_mutex_lock(&s->mutex);
  int is_idle = !s->first && !s->is_busy, was_used = s->was_used;
  pthread_mutex_unlock(&s->mutex);
  if (!is_idle)
    nap(); /* who asks again and again shares few cores with the streams */
  else
    twin_spend(was_used ? twin_costs.sync_us : 0);
  return is_idle ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  pthread_mutex_lock(&all_mutex);
  struct CUstream_st **link = &all_streams;
  while (*link != s)
    link = &(*link)->next;
  *link = s->next;
  pthread_mutex_unlock(&all_mutex);
  pthread_mutex_lock(&s->mutex);
  s->is_closing = 1;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mutex);
  pthread_join(s->thread, NULL);
  free(s);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) {
  return cudaSuccess; /* each rank is idle when the backend calls it, and other ranks' streams are not its own */
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
  (void)flags;
  *out = calloc(1, sizeof **out);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *out) {
  return cudaEventCreateWithFlags(out, 0);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  free(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t s) {
  struct task task = {.event = event, .is_record = 1};
  event->graph = s->capture;
  if (s->capture)
    event->node = s->capture->n;
  else
    task.generation = atomic_fetch_add(&event->recorded, 1) + 1;
  return (cudaError_t)append(s, &task);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t event, unsigned flags) {
  struct task task = {.event = event, .is_wait = 1, .generation = atomic_load(&event->recorded), .target = event->node};
  (void)flags;
  if (event->graph)
    s->capture = event->graph; /* it joins the capture */
  return (cudaError_t)append(s, &task);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  int is_done = atomic_load(&event->completed) >= atomic_load(&event->recorded);
  if (!is_done)
    nap();
  return is_done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
  double factor = twin_costs.event_factor > 0 ? twin_costs.event_factor : 1;
  *ms = (float)((double)(atomic_load(&b->at_ns) - atomic_load(&a->at_ns)) / 1e6 * factor);
  return cudaSuccess;
}

/* ---- capture ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
  (void)mode;
  pthread_mutex_lock(&all_mutex); /* one capture at a time, so that ranks do not mix theirs */
  s->capture = calloc(1, sizeof *s->capture);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
  *out = s->capture;
  for (struct CUstream_st *other = all_streams; other; other = other->next)
    if (other->capture == *out)
      other->capture = NULL;
  pthread_mutex_unlock(&all_mutex);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
  size_t bytes = (size_t)graph->n * sizeof *graph->nodes;
  struct CUgraph_st *exec = malloc(sizeof *exec);
  (void)flags;
  *exec = (struct CUgraph_st){.nodes = malloc(bytes + 1), .n = graph->n};
  if (bytes)
    memcpy(exec->nodes, graph->nodes, bytes);
  *out = (cudaGraphExec_t)exec; /* outlives the graph that it was made of */
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t s) {
  (void)exec;
  (void)s;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, run_graph, &exec, sizeof exec);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return cudaGraphDestroy((cudaGraph_t)exec);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  free(graph->nodes);
  free(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n) {
  *n = (size_t)graph->n;
  for (int i = 0; nodes && i < graph->n; i++)
    nodes[i] = (cudaGraphNode_t)&graph->nodes[i];
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type) {
  *type = ((struct task *)node)->body ? cudaGraphNodeTypeKernel : cudaGraphNodeTypeEmpty;
  return cudaSuccess;
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph) {
  (void)node;
  (void)graph;
  return cudaErrorInvalidValue;
}
