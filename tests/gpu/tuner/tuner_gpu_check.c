/* SPDX-License-Identifier: Apache-2.0
 * tuner_gpu_check LOG_FOLDER RANKS GPUS CASE...: what real NCCL makes of the tuner. Each rank is a process on GPU rank
 * % GPUS; where ranks share a GPU, each gets a host id of its own, which makes them nodes to NCCL (functional only).
 * CASE is COLLECTIVE:BYTES:ALGORITHM:PROTOCOL[:CHANNELS] with the tuner's bytes (all_gather: the total over ranks), or
 * COLLECTIVE:BYTES:own[:PROTOCOL] where NCCL's own choice must stand. For each, ncclGroupSimulateEnd's estimate, the
 * TUNING line of NCCL's log, and the sums must agree. Exit 1 if one does not. */
#include <ctype.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#define CHECK_CUDA(call)                                                                                               \
  do {                                                                                                                 \
    cudaError_t error_ = (call);                                                                                       \
    if (error_ != cudaSuccess)                                                                                         \
      die(#call, cudaGetErrorString(error_));                                                                          \
  } while (0)
#define CHECK_NCCL(call)                                                                                               \
  do {                                                                                                                 \
    ncclResult_t result_ = (call);                                                                                     \
    if (result_ != ncclSuccess)                                                                                        \
      die(#call, ncclGetErrorString(result_));                                                                         \
  } while (0)

static const char *const algorithms[] = {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
static const char *const protocols[] = {"ll", "ll128", "simple"};

struct shared {
  ncclUniqueId id;
  atomic_int is_ready, failures;
};

struct test_case {
  char collective[32], algorithm[32], protocol[32];
  size_t bytes; /* as the tuner is told */
  int channels; /* 0: not checked */
  double estimate_us;
  int sums_are_right;
};

struct rank_state {
  int rank, ranks;
  ncclComm_t comm;
  cudaStream_t stream;
  float *send, *recv;
};

static void die(const char *what, const char *why) {
  fprintf(stderr, "tuner_gpu_check %d: %s: %s\n", (int)getpid(), what, why);
  _exit(3);
}

static void case_parse(const char *text, struct test_case *c) {
  char copy[128], *rest = copy, *words[5] = {"", "", "", "", ""};
  int n = 0;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *word; n < 5 && (word = strsep(&rest, ":"));)
    words[n++] = word;
  memset(c, 0, sizeof *c);
  snprintf(c->collective, sizeof c->collective, "%s", words[0]);
  c->bytes = strtoull(words[1], NULL, 10);
  snprintf(c->algorithm, sizeof c->algorithm, "%s", words[2]);
  snprintf(c->protocol, sizeof c->protocol, "%s", words[3]);
  c->channels = atoi(words[4]);
  if (n < 3 || c->bytes == 0)
    die(text, "not COLLECTIVE:BYTES:ALGORITHM:PROTOCOL");
}

/* `bytes` over all ranks for all_gather and reduce_scatter, of one rank otherwise. */
static void enqueue(const struct rank_state *s, const struct test_case *c) {
  size_t count = c->bytes / sizeof(float), part = count / (size_t)s->ranks;
  if (!strcmp(c->collective, "allreduce"))
    CHECK_NCCL(ncclAllReduce(s->send, s->recv, count, ncclFloat, ncclSum, s->comm, s->stream));
  else if (!strcmp(c->collective, "allgather"))
    CHECK_NCCL(ncclAllGather(s->send, s->recv, part, ncclFloat, s->comm, s->stream));
  else if (!strcmp(c->collective, "reducescatter"))
    CHECK_NCCL(ncclReduceScatter(s->send, s->recv, part, ncclFloat, ncclSum, s->comm, s->stream));
  else
    die(c->collective, "not a collective of this check");
}

/* Every rank sends rank + 1: the first and the last element of what arrives. */
static int sums_are_right(const struct rank_state *s, const struct test_case *c) {
  int is_gather = !strcmp(c->collective, "allgather"), is_scatter = !strcmp(c->collective, "reducescatter");
  size_t n = c->bytes / sizeof(float) / (size_t)(is_scatter ? s->ranks : 1);
  float ends[2], sum = (float)(s->ranks * (s->ranks + 1) / 2);
  CHECK_CUDA(cudaMemcpy(&ends[0], s->recv, sizeof(float), cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaMemcpy(&ends[1], s->recv + n - 1, sizeof(float), cudaMemcpyDeviceToHost));
  return is_gather ? ends[0] == 1.0f && ends[1] == (float)s->ranks : ends[0] == sum && ends[1] == sum;
}

static double simulate(const struct rank_state *s, const struct test_case *c) {
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  CHECK_NCCL(ncclGroupStart());
  enqueue(s, c);
  CHECK_NCCL(ncclGroupSimulateEnd(&info));
  return (double)info.estimatedTime;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* The line that NCCL logged last for this collective and size: 1 and its words, or 0. It prints one rank's bytes. */
static int log_find(const char *path, const struct rank_state *s, const struct test_case *c, char algorithm[32],
                    char protocol[32], int *low, int *high) {
  char line[1024];
  int found = 0;
  size_t want = c->bytes / (size_t)(!strcmp(c->collective, "allreduce") ? 1 : s->ranks);
  FILE *log = fopen(path, "r");
  while (log && fgets(line, sizeof line, log)) {
    char name[32], a[32], p[32];
    long bytes;
    int lo, hi;
    const char *arrow = strstr(line, " Bytes -> Algo "), *at = strstr(line, "NCCL INFO ");
    if (!arrow || !at ||
        sscanf(at + 10, "%31[^:]: %ld Bytes -> Algo %31s proto %31s channel{Lo..Hi}={%d..%d}", name, &bytes, a, p, &lo,
               &hi) != 6)
      continue;
    if (!strcasecmp(name, c->collective) && (size_t)bytes == want) {
      strcpy(algorithm, a);
      strcpy(protocol, p);
      *low = lo;
      *high = hi;
      found = 1;
    }
  }
  if (log)
    fclose(log);
  return found;
}

static int report(const char *log, const struct rank_state *s, const struct test_case *c) {
  char algorithm[32] = "-", protocol[32] = "-", named[80] = "own choice";
  int low = 0, high = -1, cell = (int)lround(1000 * c->estimate_us) - 1;
  int is_forced = c->estimate_us < 0.0215 && cell >= 0,
      is_logged = log_find(log, s, c, algorithm, protocol, &low, &high);
  if (is_forced)
    snprintf(named, sizeof named, "%s/%s", algorithms[cell / 3], protocols[cell % 3]);
  int is_own = !strcmp(c->algorithm, "own");
  int is_right = c->sums_are_right && is_logged && is_forced == !is_own &&
                 (!c->protocol[0] || !strcasecmp(protocol, c->protocol)) &&
                 (is_own || (!strcasecmp(algorithm, c->algorithm) && !strcmp(algorithms[cell / 3], c->algorithm) &&
                             !strcmp(protocols[cell % 3], c->protocol))) &&
                 (!c->channels || high - low + 1 == c->channels);
  printf("  %-14s %10zu  wanted %s%s%-8s estimate %10.3f us = %-14s log %s/%s channels %d  sums %s  %s\n",
         c->collective, c->bytes, c->algorithm, c->protocol[0] ? "/" : " ", c->protocol, c->estimate_us, named,
         algorithm, protocol, high - low + 1, c->sums_are_right ? "right" : "WRONG", is_right ? "ok" : "FAILED");
  return !is_right;
}

static int rank_run(const char *folder, struct shared *shared, int rank, int ranks, int gpus, char **cases, int n) {
  struct rank_state s = {.rank = rank, .ranks = ranks};
  struct test_case c[64];
  char log[4096], host[32];
  double query_us[1000];
  size_t most = 0;
  int version, failures = 0;
  alarm(120);
  snprintf(log, sizeof log, "%s/rank%d.log", folder, rank);
  snprintf(host, sizeof host, "tuner-check-%d", rank);
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_SUBSYS", "INIT,TUNING", 1);
  setenv("NCCL_DEBUG_FILE", log, 1);
  if (gpus < ranks)
    setenv("NCCL_HOSTID", host, 1);
  for (int i = 0; i < n; i++) {
    case_parse(cases[i], &c[i]);
    most = c[i].bytes > most ? c[i].bytes : most;
  }
  CHECK_CUDA(cudaSetDevice(rank % gpus));
  if (rank == 0) {
    CHECK_NCCL(ncclGetUniqueId(&shared->id));
    shared->is_ready = 1;
  }
  while (!shared->is_ready)
    usleep(1000);
  CHECK_NCCL(ncclCommInitRank(&s.comm, ranks, shared->id, rank));
  CHECK_CUDA(cudaStreamCreate(&s.stream));
  CHECK_CUDA(cudaMalloc((void **)&s.send, most));
  CHECK_CUDA(cudaMalloc((void **)&s.recv, most));
  float *ones = malloc(most);
  for (size_t i = 0; ones && i < most / sizeof(float); i++)
    ones[i] = (float)(rank + 1);
  CHECK_CUDA(cudaMemcpy(s.send, ones, most, cudaMemcpyHostToDevice));
  free(ones);
  for (int i = 0; i < n; i++) {
    c[i].estimate_us = simulate(&s, &c[i]);
    CHECK_CUDA(cudaMemset(s.recv, 0, most));
    enqueue(&s, &c[i]);
    CHECK_CUDA(cudaStreamSynchronize(s.stream));
    c[i].sums_are_right = sums_are_right(&s, &c[i]);
    if (!c[i].sums_are_right)
      shared->failures++;
  }
  for (int i = 0; i < 1000; i++) {
    double start = now_us();
    simulate(&s, &c[0]);
    query_us[i] = now_us() - start;
  }
  CHECK_NCCL(ncclCommDestroy(s.comm));
  if (rank == 0) {
    CHECK_NCCL(ncclGetVersion(&version));
    qsort(query_us, 1000, sizeof *query_us, compare);
    printf("  NCCL %d, %d ranks on %d GPU%s; one simulated call: median %.2f us, p99 %.2f us\n", version, ranks, gpus,
           gpus > 1 ? "s" : " (shared GPU: functional only)", query_us[500], query_us[990]);
    for (int i = 0; i < n; i++)
      failures += report(log, &s, &c[i]);
    shared->failures += failures;
    fflush(stdout);
  }
  return 0;
}

int main(int argc, char **argv) {
  int ranks = argc > 4 ? atoi(argv[2]) : 0, gpus = argc > 4 ? atoi(argv[3]) : 0, status, died = 0;
  if (ranks < 1 || gpus < 1 || argc - 4 > 64) {
    fprintf(stderr, "usage: tuner_gpu_check LOG_FOLDER RANKS GPUS COLLECTIVE:BYTES:ALGORITHM:PROTOCOL...\n");
    return 2;
  }
  struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return 3;
  for (int rank = 0; rank < ranks; rank++)
    if (fork() == 0)
      _exit(rank_run(argv[1], shared, rank, ranks, gpus, argv + 4, argc - 4));
  while (wait(&status) > 0)
    died |= status != 0;
  return died ? 3 : shared->failures != 0;
}
