/* SPDX-License-Identifier: Apache-2.0
 * The host backend's operations: open and facts, load and unload, and the calls of the one timing loop. */
#include "workloads/backends/host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include <stdarg.h>

static int available(char *why, size_t n) {
  (void)why;
  (void)n;
  return 1;
}

struct place { /* where a process runs */
  char host[64];
  cpu_set_t cores;
};

/* How many of the world's processes share this host, and how many cores these may use together. */
static enum cct_status look_around(struct cct_backend *backend) {
  const struct cct_world *world = backend->world;
  struct place mine, *all = calloc((size_t)world->size, sizeof *all);
  memset(&mine, 0, sizeof mine);
  gethostname(mine.host, sizeof mine.host - 1);
  if (!all || sched_getaffinity(0, sizeof mine.cores, &mine.cores)) {
    free(all);
    return cct_fail(CCT_NOMEM, all ? "more cores than this build counts" : "out of memory");
  }
  enum cct_status status = world->ops->allgather(world, &mine, sizeof mine, all);
  if (!status) {
    cpu_set_t together;
    CPU_ZERO(&together);
    for (int i = 0; i < world->size; i++)
      if (!strcmp(all[i].host, mine.host)) {
        backend->processes_here++;
        CPU_OR(&together, &together, &all[i].cores);
      }
    backend->cores = CPU_COUNT(&mine.cores);
    backend->cores_here = CPU_COUNT(&together);
    backend->is_oversubscribed = backend->processes_here > backend->cores_here;
  }
  free(all);
  return status;
}

static enum cct_status open_host(const struct cct_world *world, const struct cct_backend_options *options,
                                 struct cct_backend **backend_out) {
  if (options->scale < 1)
    return cct_fail(CCT_USAGE, "host backend: --scale %lld: sizes are divided by a number of at least 1",
                    (long long)options->scale);
  struct cct_backend *backend = calloc(1, sizeof *backend);
  if (!backend)
    return cct_fail(CCT_NOMEM, "out of memory");
  backend->world = world;
  backend->options = *options;
  cct_host_blas_threads(1); /* the lanes are the threads */
  enum cct_status status = look_around(backend);
  if (!status)
    status = cct_seal_rate(CCT_SEAL_CHUNK_BYTES, 2000000, &backend->seal_gb_s);
  if (status) {
    free(backend);
    return status;
  }
  *backend_out = backend;
  return CCT_OK;
}

static void close_host(struct cct_backend *backend) {
  free(backend);
}

const struct cct_copy_cost *cct_host_bounce_cost(const struct cct_backend *backend, enum cct_direction direction,
                                                 enum cct_memory memory) {
  if (!backend->options.emulated || !cct_copy_is_host(direction))
    return NULL;
  return &backend->options.emulated->confidential.copy[direction][memory == CCT_MEM_PAGEABLE];
}

struct fact_list {
  struct cct_fact *facts;
  int n, max;
};

static void add_fact(struct fact_list *list, const char *fact_class, const char *name, const char *format, ...)
    CCT_PRINTF(4, 5);
static void add_fact(struct fact_list *list, const char *fact_class, const char *name, const char *format, ...) {
  if (list->n == list->max)
    return;
  struct cct_fact *fact = &list->facts[list->n++];
  va_list arguments;
  memset(fact, 0, sizeof *fact);
  snprintf(fact->name, sizeof fact->name, "%s", name);
  snprintf(fact->fact_class, sizeof fact->fact_class, "%s", fact_class);
  va_start(arguments, format);
  vsnprintf(fact->value, sizeof fact->value, format, arguments);
  va_end(arguments);
}

static int facts_of(struct cct_backend *backend, struct cct_fact *facts, int max) {
  struct fact_list list = {facts, 0, max};
  add_fact(&list, "identity", "openblas", "%s", cct_host_blas_library());
  add_fact(&list, "identity", "openssl", "%s", cct_seal_library());
  add_fact(&list, "identity", "gemm", "sgemm on values held as fp32, one thread a lane");
  add_fact(&list, "condition", "oversubscribed", "%s", backend->is_oversubscribed ? "yes" : "no");
  add_fact(&list, "replicate", "aes_256_gcm_gb_s", "%.2f", backend->seal_gb_s);
  for (int direction = CCT_COPY_H2D; direction <= CCT_COPY_D2H; direction++)
    for (int memory = CCT_MEM_PINNED; memory <= CCT_MEM_PAGEABLE; memory++) {
      const struct cct_copy_cost *cost =
          cct_host_bounce_cost(backend, (enum cct_direction)direction, (enum cct_memory)memory);
      char name[48];
      if (!cost)
        continue;
      snprintf(name, sizeof name, "bounce_%s_%s", cct_direction_name((enum cct_direction)direction),
               cct_memory_name((enum cct_memory)memory));
      if (cost->gb_s.value > backend->seal_gb_s)
        add_fact(&list, "replicate", name, "paced: a core here seals %.2f GB/s, the profile needs %.2f: part unsealed",
                 backend->seal_gb_s, cost->gb_s.value);
      else
        add_fact(&list, "replicate", name, "paced: a core here seals %.2f GB/s, held to the profile's %.2f",
                 backend->seal_gb_s, cost->gb_s.value);
    }
  return list.n;
}

static void unload(struct cct_executor *x) {
  if (!x)
    return;
  cct_host_end(x);
  cct_host_unplan(x);
  free(x->slots);
  free(x);
}

/* A channel's key and a chunk's room, for every track that has a bounce copy. */
static enum cct_status make_seals(struct cct_executor *x) {
  enum cct_status status = CCT_OK;
  for (int id = 0; !status && id < x->program->n_ops; id++) {
    const struct cct_op *op = &x->program->ops[id];
    if (op->kind != CCT_OP_COPY || !op->copy.is_bounce)
      continue;
    struct cct_host_track *track = &x->tracks[x->entries[id].track];
    if (track->seal)
      continue;
    if (!(track->cipher = malloc(CCT_SEAL_CHUNK_BYTES)))
      return cct_fail(CCT_NOMEM, "out of memory");
    status = cct_seal_new(NULL, &track->seal);
  }
  return status;
}

static enum cct_status load(struct cct_backend *backend, const struct cct_job *job,
                            struct cct_executor **executor_out) {
  const struct cct_world *world = backend->world;
  if (world->size != job->ranks)
    return cct_fail(CCT_USAGE, "host backend: %d ranks in %d processes: it performs one rank a process", job->ranks,
                    world->size);
  enum cct_status status = cct_job_check(job);
  if (status)
    return status;
  struct cct_executor *x = calloc(1, sizeof *x);
  if (!x)
    return cct_fail(CCT_NOMEM, "out of memory");
  x->backend = backend;
  x->job = job;
  x->rank = world->rank;
  x->program = cct_job_role(job, world->rank)->program;
  if (!(x->slots = calloc((size_t)x->program->n_slots + 1, sizeof *x->slots)))
    status = cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; !status && i < x->program->n_slots; i++)
    x->slots[i] = x->program->slots[i].value;
  x->defaults.slots = x->slots;
  if (!status)
    status = cct_host_plan(x);
  x->is_crowded = x->n_tracks >= backend->cores || (x->n_tracks + 1) * backend->processes_here > backend->cores_here;
  if (!status)
    status = cct_host_bind(x, NULL);
  if (!status)
    status = make_seals(x);
  if (!status)
    status = cct_host_measure_alone(x);
  if (!status)
    status = cct_host_start(x);
  if (status) {
    unload(x);
    return status;
  }
  *executor_out = x;
  return CCT_OK;
}

static void owned(const struct cct_executor *x, int *first_out, int *count_out) {
  *first_out = x->rank;
  *count_out = 1;
}

static enum cct_status step(struct cct_executor *x, const struct cct_binding *bindings, int n,
                            struct cct_burst *burst) {
  int64_t ns;
  enum cct_status status = cct_host_bind(x, bindings);
  if (!status)
    status = cct_host_burst(x, n, &ns);
  if (status)
    return status;
  burst->start_ns = x->start_ns;
  burst->rank_ns[0] = ns;
  return CCT_OK;
}

static enum cct_status verify(struct cct_executor *x, const struct cct_binding *bindings, struct cct_wrong *wrong_out) {
  struct cct_wrong wrong = {0};
  int64_t ns;
  for (int i = 0; i < x->n_tracks; i++)
    x->tracks[i].elements = x->tracks[i].wrong = 0;
  enum cct_status status = cct_host_bind(x, bindings);
  x->is_verifying = 1;
  if (!status)
    status = cct_host_burst(x, 1, &ns);
  x->is_verifying = 0;
  if (status)
    return status;
  for (int i = 0; i < x->n_tracks; i++) {
    const struct cct_host_track *track = &x->tracks[i];
    if (track->wrong && !wrong.wrong)
      memcpy(wrong.first, track->first_wrong, sizeof wrong.first);
    wrong.elements += track->elements;
    wrong.wrong += track->wrong;
  }
  *wrong_out = wrong;
  return CCT_OK;
}

/* The program as it is performed: sizes bound and scaled, which is what its counts are taken of. */
static enum cct_status counts(struct cct_executor *x, struct cct_counts *counts_out) {
  struct cct_program scaled = *x->program;
  enum cct_status status = CCT_OK;
  scaled.ops = malloc(((size_t)scaled.n_ops + 1) * sizeof *scaled.ops);
  scaled.buffers = malloc(((size_t)scaled.n_buffers + 1) * sizeof *scaled.buffers);
  if (!scaled.ops || !scaled.buffers) {
    status = cct_fail(CCT_NOMEM, "out of memory");
    goto out;
  }
  if ((status = cct_host_bind(x, NULL)))
    goto out;
  for (int id = 0; id < scaled.n_ops; id++)
    cct_host_scale_op(x, id, &scaled.ops[id]);
  for (int i = 0; i < scaled.n_buffers; i++) {
    int64_t bytes = cct_quantity_value(x->program->buffers[i].bytes, &x->defaults);
    scaled.buffers[i] = x->program->buffers[i];
    scaled.buffers[i].bytes = cct_constant(cct_host_scaled(bytes, x->backend->options.scale));
  }
  cct_count_program(x->job, &scaled, &x->defaults, counts_out);
out:
  free(scaled.ops);
  free(scaled.buffers);
  return status;
}

static enum cct_status trace(struct cct_executor *x, int owned_rank, struct cct_span *spans) {
  if (owned_rank != 0)
    return cct_fail(CCT_USAGE, "host backend: trace of owned rank %d: it owns one", owned_rank);
  for (int id = 0; id < x->program->n_ops; id++)
    spans[id] = x->entries[id].span;
  return CCT_OK;
}

/* ---- experiments ---- */

static enum cct_status copy_rate(size_t bytes, double *gb_s_out) {
  unsigned char *from = malloc(bytes + 1), *to = malloc(bytes + 1);
  enum cct_status status = from && to ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory: %zu bytes twice", bytes);
  if (!status) {
    memset(from, 1, bytes + 1);
    memset(to, 2, bytes + 1);
    int64_t start_ns = cct_clock_ns();
    memcpy(to, from, bytes);
    __asm__ volatile("" : : "r"(to) : "memory"); /* the copy is the purpose, whoever reads it */
    *gb_s_out = (double)bytes / (double)(cct_clock_ns() - start_ns);
  }
  free(from);
  free(to);
  return status;
}

static enum cct_status seal_chunk_us(size_t bytes, double *us_out) {
  struct cct_seal *seal = NULL;
  struct cct_seal_mark mark;
  unsigned char *plain = calloc(bytes + 1, 1), *cipher = calloc(bytes + 1, 1);
  enum cct_status status = plain && cipher ? cct_seal_new(NULL, &seal) : cct_fail(CCT_NOMEM, "out of memory");
  int64_t start_ns = 0;
  for (int i = 0; !status && i < 2; i++) { /* the first touches the pages */
    start_ns = cct_clock_ns();
    status = cct_seal_chunk(seal, plain, bytes, cipher, &mark);
  }
  if (!status)
    *us_out = (double)(cct_clock_ns() - start_ns) / 1e3;
  cct_seal_free(seal);
  free(plain);
  free(cipher);
  return status;
}

static enum cct_status launches(int n, struct cct_job **job_out) {
  struct cct_program *program;
  struct cct_job *job = NULL;
  enum cct_status status = cct_program_new("submissions", &program);
  if (status)
    return status;
  int stream = cct_program_add_lane(program, "stream", CCT_LANE_STREAM);
  int host = cct_program_add_lane(program, "host", CCT_LANE_HOST);
  for (int i = 0; i < n; i++)
    cct_program_add(
        program,
        &(struct cct_op){
            .kind = CCT_OP_LAUNCH, .lane = stream, .host = host, .reads = {-1, -1}, .writes = -1, .name = "launch"},
        NULL, 0);
  status = cct_job_new(1, &job);
  if (!status)
    status = cct_job_add_role(job, program, 0, 1);
  if (status) {
    cct_program_free(program);
    cct_job_free(job);
    return status;
  }
  *job_out = job;
  return CCT_OK;
}

/* What a submission takes of its host lane: from the first entry's hand-over to the last one's start, a lane thread
 * that performs nothing keeping pace. */
static enum cct_status submission_us(const struct cct_backend *backend, double *us_out) {
  enum {
    n_launches = 1000
  };
  struct cct_backend alone = *backend;
  struct cct_executor *x = NULL;
  struct cct_job *job = NULL;
  int64_t ns;
  struct cct_burst burst = {.rank_ns = &ns};
  alone.world = cct_world_self();
  enum cct_status status = launches(n_launches, &job);
  if (!status)
    status = load(&alone, job, &x);
  for (int i = 0; !status && i < 2; i++) /* the first warms up */
    status = step(x, NULL, 1, &burst);
  if (!status)
    *us_out = (double)ns / 1e3 / n_launches;
  unload(x);
  cct_job_free(job);
  return status;
}

static enum cct_status experiment(struct cct_backend *backend, const char *name, const double *parameters,
                                  int n_parameters, double *series, int max, int *n_out) {
  int is_aes = !strcmp(name, "aes_rate"), is_copy = !strcmp(name, "copy_rate"), is_seal = !strcmp(name, "seal_chunk");
  if (!is_aes && !is_copy && !is_seal && strcmp(name, "submission"))
    return cct_fail(CCT_UNSUPPORTED, "host backend: no experiment '%s': aes_rate, copy_rate, seal_chunk, submission",
                    name);
  double bytes = n_parameters > 0 ? parameters[0] : is_copy ? 64 << 20 : CCT_SEAL_CHUNK_BYTES;
  if (!(bytes >= 1 && bytes <= 1 << 30))
    return cct_fail(CCT_USAGE, "host backend: experiment '%s' of %g bytes: 1 to 1 GiB", name, bytes);
  enum cct_status status = CCT_OK;
  int n = 0;
  for (; !status && n < max; n += !status)
    status = is_aes    ? cct_seal_rate((size_t)bytes, 2000000, &series[n])
             : is_copy ? copy_rate((size_t)bytes, &series[n])
             : is_seal ? seal_chunk_us((size_t)bytes, &series[n])
                       : submission_us(backend, &series[n]);
  if (!status)
    *n_out = n;
  return status;
}

const struct cct_backend_ops cct_backend_host = {
    .name = "host",
    .available = available,
    .open = open_host,
    .close = close_host,
    .facts = facts_of,
    .load = load,
    .unload = unload,
    .owned = owned,
    .step = step,
    .sequence = cct_host_sequence,
    .verify = verify,
    .counts = counts,
    .experiment = experiment,
    .trace = trace,
};
