/* SPDX-License-Identifier: Apache-2.0
 * NCCL over whatever net the environment names, ranks by fork:
 *   net_gpu check RANKS          all-reduce and all-to-all, every element against its known value
 *   net_gpu time RANKS BYTES...  all-reduce; a line "BYTES US GB_S CORES" each: the slowest rank's time an operation,
 *                                bytes / time, and the cores each rank's process used
 *   net_gpu kill RANKS           the last rank dies in mid-job: the others must get an NCCL error
 *   net_gpu stranger RANKS       the last rank has another key (PSK_STRANGER): every rank must get an NCCL error
 * Rank r uses GPU r modulo the number of GPUs; several ranks on one GPU take a distinct NCCL_HOSTID each. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  MAX_RANKS = 16,
  MAX_BYTES = 128 << 20
};

struct shared {
  ncclUniqueId id;
  pthread_barrier_t barrier;
  double us[MAX_RANKS], cores[MAX_RANKS];
  int n_iterations;
};

static struct shared *shared;
static int rank, n_ranks;
static ncclComm_t comm;
static cudaStream_t stream;

#define CHECK(call, good, text)                                                                                        \
  do {                                                                                                                 \
    int result_ = (int)(call);                                                                                         \
    if (result_ != (int)(good)) {                                                                                      \
      fprintf(stderr, "rank %d: %s: %s\n", rank, #call, text(result_));                                                \
      return 1;                                                                                                        \
    }                                                                                                                  \
  } while (0)
#define CUDA(call) CHECK(call, cudaSuccess, cudaGetErrorString)
#define NCCL(call) CHECK(call, ncclSuccess, ncclGetErrorString)

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static double cpu_us(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return 1e6 * (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* ---- by value ---- */

static int check_all_reduce(float *device, float *host, size_t n, int round) {
  for (size_t i = 0; i < n; i++)
    host[i] = (float)((rank + 1) * (int)((i + (size_t)round) % 97 + 1));
  CUDA(cudaMemcpy(device, host, n * sizeof *host, cudaMemcpyHostToDevice));
  NCCL(ncclAllReduce(device, device, n, ncclFloat, ncclSum, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemcpy(host, device, n * sizeof *host, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < n; i++)
    if (host[i] != (float)(n_ranks * (n_ranks + 1) / 2 * (int)((i + (size_t)round) % 97 + 1))) {
      fprintf(stderr, "rank %d: all-reduce of %zu: element %zu is %g\n", rank, n, i, (double)host[i]);
      return 1;
    }
  return 0;
}

static uint32_t word(int from, int to, size_t i, int round) {
  return (uint32_t)i * 2654435761u ^ (uint32_t)(from << 24 | to << 16 | round);
}

static int check_all_to_all(uint32_t *out, uint32_t *in, uint32_t *host, size_t n, int round) {
  for (int to = 0; to < n_ranks; to++)
    for (size_t i = 0; i < n; i++)
      host[(size_t)to * n + i] = word(rank, to, i, round);
  CUDA(cudaMemcpy(out, host, (size_t)n_ranks * n * sizeof *host, cudaMemcpyHostToDevice));
  CUDA(cudaMemset(in, 0, (size_t)n_ranks * n * sizeof *host));
  NCCL(ncclGroupStart());
  for (int peer = 0; peer < n_ranks; peer++) {
    NCCL(ncclSend(out + (size_t)peer * n, n, ncclUint32, peer, comm, stream));
    NCCL(ncclRecv(in + (size_t)peer * n, n, ncclUint32, peer, comm, stream));
  }
  NCCL(ncclGroupEnd());
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemcpy(host, in, (size_t)n_ranks * n * sizeof *host, cudaMemcpyDeviceToHost));
  for (int from = 0; from < n_ranks; from++)
    for (size_t i = 0; i < n; i++)
      if (host[(size_t)from * n + i] != word(from, rank, i, round)) {
        fprintf(stderr, "rank %d: all-to-all of %zu: element %zu from %d is wrong\n", rank, n, i, from);
        return 1;
      }
  return 0;
}

static int check_values(int is_shared_gpu) {
  static const size_t counts[] = {1, 2, 33, 1000, 4096, 16384, 65537, 1 << 20, (4 << 20) + 3, 16 << 20};
  size_t n_counts = sizeof counts / sizeof *counts - (is_shared_gpu ? 4 : 0), most = counts[n_counts - 1];
  void *device[2], *host = malloc(4 * most * (size_t)n_ranks);
  for (int i = 0; i < 2; i++)
    CUDA(cudaMalloc(&device[i], 4 * most * (size_t)n_ranks));
  for (size_t i = 0; i < n_counts; i++)
    for (int round = 0; round < (is_shared_gpu || i > 6 ? 1 : 5); round++) {
      if (check_all_reduce(device[0], host, counts[i], round))
        return 1;
      if (i < 9 && check_all_to_all(device[0], device[1], host, counts[i], round))
        return 1;
    }
  if (rank == 0)
    printf("%d ranks: all-reduce and all-to-all right by value, %zu sizes up to %zu bytes\n", n_ranks, n_counts,
           4 * most);
  return 0;
}

/* ---- time ---- */

static int run(void *device, size_t bytes, int n, double *us_out) {
  pthread_barrier_wait(&shared->barrier);
  double start = now_us();
  for (int i = 0; i < n; i++)
    NCCL(bytes < 4 ? ncclAllReduce(device, device, bytes, ncclInt8, ncclSum, comm, stream)
                   : ncclAllReduce(device, device, bytes / 4, ncclFloat, ncclSum, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  *us_out = (now_us() - start) / n;
  return 0;
}

static int time_all_reduce(int n_sizes, char **sizes) {
  void *device;
  double us;
  CUDA(cudaMalloc(&device, MAX_BYTES));
  CUDA(cudaMemset(device, 0, MAX_BYTES));
  for (int s = 0; s < n_sizes; s++) {
    size_t bytes = strtoull(sizes[s], NULL, 10);
    if (bytes == 0 || bytes > MAX_BYTES)
      return 1;
    if (run(device, bytes, 5, &us) || run(device, bytes, 3, &us))
      return 1;
    if (rank == 0)
      shared->n_iterations = us > 150000 ? 1 : (int)(150000 / us) > 2000 ? 2000 : (int)(150000 / us) + 1;
    pthread_barrier_wait(&shared->barrier);
    double cpu = cpu_us(), start = now_us();
    if (run(device, bytes, shared->n_iterations, &us))
      return 1;
    shared->us[rank] = us;
    shared->cores[rank] = (cpu_us() - cpu) / (now_us() - start);
    pthread_barrier_wait(&shared->barrier);
    if (rank == 0) {
      double slowest = 0, cores = 0;
      for (int r = 0; r < n_ranks; r++) {
        slowest = shared->us[r] > slowest ? shared->us[r] : slowest;
        cores += shared->cores[r] / n_ranks;
      }
      printf("%zu %.2f %.3f %.2f\n", bytes, slowest, 1e-3 * (double)bytes / slowest, cores);
      fflush(stdout);
    }
  }
  return 0;
}

/* ---- errors ---- */

/* Whether this rank is told of an error within 30 s. */
static int is_told(ncclResult_t begun) {
  ncclResult_t state = begun;
  double start = now_us();
  while (state == ncclSuccess && now_us() - start < 30e6) {
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess)
      return 0;
    usleep(1000);
  }
  printf("rank %d: %s after %.1f s\n", rank, ncclGetErrorString(state), 1e-6 * (now_us() - start));
  fflush(stdout);
  return state != ncclSuccess;
}

static int lose_a_rank(void) {
  void *device;
  CUDA(cudaMalloc(&device, MAX_BYTES));
  for (int i = 0; i < 3; i++)
    NCCL(ncclAllReduce(device, device, MAX_BYTES / 4, ncclFloat, ncclSum, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  pthread_barrier_wait(&shared->barrier);
  for (int i = 0; i < 50; i++)
    NCCL(ncclAllReduce(device, device, MAX_BYTES / 4, ncclFloat, ncclSum, comm, stream));
  if (rank == n_ranks - 1) {
    usleep(50000);
    kill(getpid(), SIGKILL);
  }
  _exit(is_told(ncclSuccess) ? 0 : 1);
}

static int meet_a_stranger(void) {
  ncclResult_t result = ncclCommInitRank(&comm, n_ranks, shared->id, rank);
  void *device;
  if (result == ncclSuccess) { /* NCCL may connect with the first collective only */
    CUDA(cudaMalloc(&device, 1 << 20));
    result = ncclAllReduce(device, device, 1 << 18, ncclFloat, ncclSum, comm, stream);
  }
  _exit(is_told(result) ? 0 : 1);
}

static int one_rank(const char *what, int n_args, char **args) {
  int n_gpus = 0;
  char host[32];
  snprintf(host, sizeof host, "cctax-net-%d", rank);
  const char *stranger = getenv("PSK_STRANGER");
  int is_stranger_test = strcmp(what, "stranger") == 0;
  if (is_stranger_test && rank == n_ranks - 1 && stranger)
    setenv("CCTAX_NET_PSK_FILE", stranger, 1);
  CUDA(cudaGetDeviceCount(&n_gpus));
  if (n_ranks > n_gpus)
    setenv("NCCL_HOSTID", host, 1);
  /* Waiting for the GPU must not count as a core that the net uses. */
  CUDA(cudaInitDevice(rank % n_gpus, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid));
  CUDA(cudaSetDevice(rank % n_gpus));
  CUDA(cudaStreamCreate(&stream));
  if (rank == 0)
    NCCL(ncclGetUniqueId(&shared->id));
  pthread_barrier_wait(&shared->barrier);
  if (is_stranger_test)
    return meet_a_stranger();
  NCCL(ncclCommInitRank(&comm, n_ranks, shared->id, rank));
  int result = strcmp(what, "check") == 0  ? check_values(n_ranks > n_gpus)
               : strcmp(what, "time") == 0 ? time_all_reduce(n_args, args)
               : strcmp(what, "kill") == 0 ? lose_a_rank()
                                           : 2;
  if (!result)
    NCCL(ncclCommDestroy(comm));
  return result;
}

int main(int argc, char **argv) {
  if (argc < 3 || (n_ranks = atoi(argv[2])) < 1 || n_ranks > MAX_RANKS) {
    fprintf(stderr, "usage: net_gpu check|time|kill|stranger RANKS [BYTES...]\n");
    return 2;
  }
  pid_t pids[MAX_RANKS];
  pthread_barrierattr_t shareable;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_barrierattr_init(&shareable);
  pthread_barrierattr_setpshared(&shareable, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &shareable, (unsigned)n_ranks);
  for (rank = 0; rank < n_ranks; rank++)
    if ((pids[rank] = fork()) == 0) {
      alarm(90); /* a hang is a failure */
      exit(one_rank(argv[1], argc - 3, argv + 3));
    }
  int is_bad = 0, is_kill = strcmp(argv[1], "kill") == 0;
  for (int left = n_ranks, status; left > 0; left--) {
    pid_t pid = wait(&status);
    int is_victim = is_kill && pid == pids[n_ranks - 1];
    int has_failed = is_victim ? !WIFSIGNALED(status) : status != 0;
    if (has_failed && !is_bad && !is_kill && strcmp(argv[1], "stranger") != 0) /* the others would wait for it */
      for (int r = 0; r < n_ranks; r++)
        kill(pids[r], SIGTERM);
    is_bad |= has_failed;
  }
  return is_bad;
}
