/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/twin_gpu.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "workloads/backends/cuda/cuda_kernels.h"

#define AHEAD_NS 123456789000

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
  int is_busy, is_closing;
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
  pthread_mutex_unlock(&s->mutex);
  twin_spend(twin_costs.sync_us);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  pthread_mutex_lock(&s->mutex);
  int is_idle = !s->first && !s->is_busy;
  pthread_mutex_unlock(&s->mutex);
  if (!is_idle)
    nap(); /* who asks again and again shares few cores with the streams */
  else
    twin_spend(twin_costs.sync_us);
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
  (void)flags;
  *out = (cudaGraphExec_t)graph;
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
  (void)exec;
  return cudaSuccess;
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

/* ---- memory and the device ---- */

cudaError_t cudaMalloc(void **at, size_t bytes) {
  *at = calloc(bytes + 1, 1);
  return *at ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void *at) {
  free(at);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags) {
  double error = flags & cudaHostAllocMapped ? twin_costs.mapped_error : twin_costs.pinned_error;
  if (error > 0)
    return (cudaError_t)error;
  return cudaMalloc(at, bytes);
}
cudaError_t cudaMallocManaged(void **at, size_t bytes, unsigned flags) {
  (void)flags;
  return twin_costs.managed_error > 0 ? (cudaError_t)twin_costs.managed_error : cudaMalloc(at, bytes);
}
cudaError_t cudaFreeHost(void *at) {
  return cudaFree(at);
}
cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned flags) {
  (void)at;
  (void)bytes;
  (void)flags;
  return (cudaError_t)twin_costs.register_error;
}
cudaError_t cudaHostUnregister(void *at) {
  (void)at;
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  (void)kind;
  memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemset(void *at, int value, size_t bytes) {
  memset(at, value, bytes);
  return cudaSuccess;
}
struct move {
  void *to;
  const void *from;
  size_t bytes;
  int value;
};
void twin_memory(int take) {
  static pthread_mutex_t memory = PTHREAD_MUTEX_INITIALIZER;
  if (take)
    pthread_mutex_lock(&memory);
  else
    pthread_mutex_unlock(&memory);
}
static void move(void *arguments) {
  const struct move *m = arguments;
  int64_t start_ns = cct_clock_ns();
  twin_memory(1);
  if (m->from)
    memmove(m->to, m->from, m->bytes);
  else
    memset(m->to, m->value, m->bytes);
  twin_memory(0);
  if (m->from && twin_costs.copy_gb_s > 0)
    twin_spend((double)m->bytes / twin_costs.copy_gb_s / 1e3 - (double)(cct_clock_ns() - start_ns) / 1e3);
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s) {
  cudaError_t error = (cudaError_t)twin_enqueue(s, move, &(struct move){to, from, bytes, 0}, sizeof(struct move));
  return error == cudaSuccess && twin_costs.holds && kind != cudaMemcpyDefault ? cudaStreamSynchronize(s) : error;
}
cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, move, &(struct move){at, NULL, bytes, value}, sizeof(struct move));
}
cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
  *left = *all = (size_t)64 << 30;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *n) {
  *n = 8;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device >= 0 && device < 8 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
  *p = (struct cudaDeviceProp){.name = "twin", .multiProcessorCount = 2, .l2CacheSize = 65536, .major = 9};
  p->uuid.bytes[0] = (char)(device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int a, int b) {
  *can = a != b && !(twin_costs.no_peer > 0);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  (void)device;
  *value = attribute == cudaDevAttrGPUDirectRDMASupported && twin_costs.gdr > 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
  return cudaDriverGetVersion(version);
}
cudaError_t cudaGetLastError(void) {
  return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error of the twin";
}
const char *cudaGetErrorName(cudaError_t error) {
  return cudaGetErrorString(error);
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *at) {
  memcpy(handle, &at, sizeof at);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void **at, cudaIpcMemHandle_t handle, unsigned flags) {
  (void)flags;
  if (twin_costs.ipc_error > 0)
    return (cudaError_t)twin_costs.ipc_error;
  memcpy(at, &handle, sizeof *at);
  return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void *at) {
  (void)at;
  return cudaSuccess;
}

/* ---- kernels ---- */

struct timed {
  int64_t ns, id, *at;
  struct cct_stamp_ring *ring;
};
static atomic_int n_spinning;
static _Atomic long product_ns;
static _Atomic double product_beside = 1;

void twin_slow_products(long ns, double beside_spin) {
  atomic_store(&product_ns, ns);
  atomic_store(&product_beside, beside_spin);
}
long twin_product_ns(void) {
  double times = atomic_load(&n_spinning) ? atomic_load(&product_beside) : 1;
  return (long)((double)atomic_load(&product_ns) * times);
}

static void do_spin(void *arguments) {
  atomic_fetch_add(&n_spinning, 1);
  twin_spend((double)((struct timed *)arguments)->ns / 1e3);
  atomic_fetch_sub(&n_spinning, 1);
}
/* A cycle is a nanosecond. */
static void do_cycles(void *arguments) {
  const struct timed *t = arguments;
  double factor = twin_costs.timer_factor > 0 ? twin_costs.timer_factor : 1;
  int64_t start_ns = cct_clock_ns();
  twin_spend((double)t->ns / 1e3);
  t->at[0] = start_ns + AHEAD_NS;
  t->at[1] = t->at[0] + (int64_t)((double)(cct_clock_ns() - start_ns) * factor);
}
static void do_mark(void *arguments) {
  atomic_store((_Atomic int64_t *)((struct timed *)arguments)->at, cct_clock_ns() + AHEAD_NS);
}
static void do_stamp(void *arguments) {
  const struct timed *t = arguments;
  t->ring->at[__atomic_fetch_add(&t->ring->count, 1, __ATOMIC_RELAXED) % CCT_STAMP_CAPACITY] =
      (struct cct_stamp){t->id, cct_clock_ns() + AHEAD_NS};
}
struct note {
  struct cct_stamp_ring *ring;
  int64_t id;
  struct cct_device_bytes bytes;
};
static void do_note(void *arguments) {
  const struct note *n = arguments;
  const struct cct_device_bytes *b = &n->bytes;
  int64_t bytes = b->base + (b->slot < 0 ? 0 : b->per * b->slots[b->slot]);
  n->ring->at[__atomic_fetch_add(&n->ring->count, 1, __ATOMIC_RELAXED) % CCT_STAMP_CAPACITY] =
      (struct cct_stamp){n->id, bytes};
}
static void nothing(void *arguments) {
  (void)arguments;
  twin_spend(twin_costs.kernel_us);
}
cudaError_t cct_kernel_empty(cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, nothing, NULL, 0);
}
cudaError_t cct_kernel_bare_launches(int n, cudaStream_t s) {
  for (int i = 0; i < n; i++)
    (void)cct_kernel_empty(s);
  return cudaSuccess;
}
cudaError_t cct_kernel_spin(int64_t ns, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, do_spin, &(struct timed){.ns = ns}, sizeof(struct timed));
}
cudaError_t cct_kernel_stamp(struct cct_stamp_ring *ring, int64_t id, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, do_stamp, &(struct timed){.ring = ring, .id = id}, sizeof(struct timed));
}
cudaError_t cct_kernel_note(struct cct_stamp_ring *ring, int64_t id, struct cct_device_bytes bytes, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, do_note, &(struct note){ring, id, bytes}, sizeof(struct note));
}
cudaError_t cct_kernel_mark(int64_t *at, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, do_mark, &(struct timed){.at = at}, sizeof(struct timed));
}
cudaError_t cct_kernel_cycles(int64_t cycles, int64_t *out, cudaStream_t s) {
  return (cudaError_t)twin_enqueue(s, do_cycles, &(struct timed){.ns = cycles, .at = out}, sizeof(struct timed));
}
cudaError_t cct_kernel_timer_steps(int64_t *out, int n, cudaStream_t s) {
  for (int i = 0; i < n; i++)
    out[i] = 32 * i;
  return cct_kernel_empty(s);
}
cudaError_t cct_kernel_stream(const void *in, int64_t capacity, struct cct_device_bytes bytes, int blocks, void *sink,
                              cudaStream_t s) {
  (void)in;
  (void)capacity;
  (void)bytes;
  (void)blocks;
  (void)sink;
  return cct_kernel_empty(s);
}
cudaError_t cct_kernel_elementwise(const void *in, int64_t in_capacity, void *out, int64_t out_capacity,
                                   struct cct_device_bytes bytes, int blocks, cudaStream_t s) {
  (void)in;
  (void)in_capacity;
  (void)out;
  (void)out_capacity;
  (void)bytes;
  (void)blocks;
  return cct_kernel_empty(s);
}
/* Small values, alike as bf16. */
cudaError_t cct_kernel_random(void *out, int64_t bytes, uint64_t seed, cudaStream_t s) {
  (void)seed;
  return cudaMemsetAsync(out, 0x3e, (size_t)bytes, s);
}
/* One word that a kernel reads anew and again gets as it was. */
static void move_stale(void *arguments) {
  static uint64_t last;
  const struct move *m = arguments;
  uint64_t now;
  memcpy(&now, m->from, sizeof now);
  memcpy(m->to, &last, sizeof last);
  last = now;
}
cudaError_t cct_kernel_copy(void *to, const void *from, int64_t bytes, int blocks, cudaStream_t s) {
  (void)blocks;
  if (twin_costs.stale > 0 && bytes == 16)
    return (cudaError_t)twin_enqueue(s, move_stale, &(struct move){to, from, 16, 0}, sizeof(struct move));
  return cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, s);
}
cudaError_t cct_kernel_fill(void *out, int64_t n, struct cct_exact exact, int rank, int64_t first, cudaStream_t s) {
  (void)out;
  (void)n;
  (void)exact;
  (void)rank;
  (void)first;
  return cct_kernel_empty(s);
}
cudaError_t cct_kernel_check(const void *in, int64_t n, struct cct_exact exact, int rank, int64_t first,
                             struct cct_check_result_device *result, cudaStream_t s) {
  (void)result;
  return cct_kernel_fill((void *)(uintptr_t)in, n, exact, rank, first, s);
}
cudaError_t cct_kernel_p2p_reduce(const struct cct_p2p_peers *peers, int is_twoshot, enum cct_kernel_type type,
                                  const void *in, void *out, int64_t bytes, cudaStream_t s) {
  (void)peers;
  (void)is_twoshot;
  (void)type;
  (void)in;
  (void)out;
  (void)bytes;
  (void)s;
  return cudaErrorNotSupported;
}

/* ---- between two GPUs ---- */

struct exchange {
  struct cct_p2p_peers peers;
  const char *in;
  int64_t in_rows, n, row_bytes, *out;
};
static void await_turn(const struct cct_p2p_peers *p, uint32_t turn) {
  uint32_t *own = &p->area[p->rank]->ping;
  while ((int32_t)(__atomic_load_n(own, __ATOMIC_ACQUIRE) - turn) < 0)
    sched_yield();
}
static void tell_turn(const struct cct_p2p_peers *p, uint32_t turn) {
  __atomic_store_n(&p->area[1 - p->rank]->ping, turn, __ATOMIC_RELEASE);
}
static void do_ping_pong(void *arguments) {
  const struct exchange *e = arguments;
  struct cct_p2p_area *own = e->peers.area[e->peers.rank];
  int64_t start_ns = cct_clock_ns();
  for (int64_t i = 0; i < e->n; i++) {
    own->ping_turn++;
    for (int turn = 0; turn < 2; turn++) {
      if (turn != e->peers.rank) {
        await_turn(&e->peers, own->ping_turn);
        continue;
      }
      twin_spend(twin_costs.write_us);
      tell_turn(&e->peers, own->ping_turn);
    }
  }
  *e->out = cct_clock_ns() - start_ns;
}
static void do_dispatch(void *arguments) {
  const struct exchange *e = arguments;
  struct cct_p2p_area *own = e->peers.area[e->peers.rank], *peer = e->peers.area[1 - e->peers.rank];
  for (int64_t t = 0; t < e->n; t++)
    memcpy((char *)peer->data + t * e->row_bytes, e->in + t % e->in_rows * e->row_bytes, (size_t)e->row_bytes);
  twin_spend(twin_costs.row_us * (double)e->n);
  own->ping_turn++;
  tell_turn(&e->peers, own->ping_turn);
  await_turn(&e->peers, own->ping_turn);
}
cudaError_t cct_kernel_ping_pong(const struct cct_p2p_peers *peers, int n, int64_t *out, cudaStream_t s) {
  struct exchange e = {.peers = *peers, .n = n, .out = out};
  return (cudaError_t)twin_enqueue(s, do_ping_pong, &e, sizeof e);
}
cudaError_t cct_kernel_dispatch(const struct cct_p2p_peers *peers, const void *in, int64_t in_bytes, int64_t tokens,
                                int64_t row_bytes, int blocks, cudaStream_t s) {
  struct exchange e = {.peers = *peers, .in = in, .in_rows = in_bytes / row_bytes, .n = tokens, .row_bytes = row_bytes};
  (void)blocks;
  return (cudaError_t)twin_enqueue(s, do_dispatch, &e, sizeof e);
}
