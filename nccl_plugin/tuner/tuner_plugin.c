/* SPDX-License-Identifier: Apache-2.0
 * The symbols that NCCL looks for, one for each version of its tuner interface, over one session. Every function
 * reports success: an error from init fails the application's communicator, one from getCollInfo its collective. */
#include "nccl_plugin/abi/nccl_tuner_abi.h"
#include "nccl_plugin/tuner/tuner_session.h"

#define EXPORT __attribute__((visibility("default")))

static int init(struct cct_tuner_comm comm, void **context_out) {
  if (context_out)
    *context_out = cct_tuner_session_open(&comm);
  return CCT_NCCL_SUCCESS;
}

static int init_v3(size_t ranks, size_t nodes, cct_nccl_logger *logger, void **context_out) {
  return init((struct cct_tuner_comm){.api = 3, .ranks = ranks, .nodes = nodes, .logger = logger}, context_out);
}

static int init_v4(size_t ranks, size_t nodes, cct_nccl_logger *logger, void **context_out) {
  return init((struct cct_tuner_comm){.api = 4, .ranks = ranks, .nodes = nodes, .logger = logger}, context_out);
}

/* The model's constants are left alone: later versions of NCCL overwrite them after this call, so that a tuner that
 * edits them does nothing there; the cost table works in all. */
static int init_v5(void **context_out, uint64_t comm_id, size_t ranks, size_t nodes, cct_nccl_logger *logger,
                   struct cct_nccl_domains_v5 *domains, struct cct_nccl_constants_v5 *constants) {
  (void)constants;
  size_t gpus = domains && domains->max_ranks > 0 ? (size_t)domains->max_ranks : 0;
  return init((struct cct_tuner_comm){5, comm_id, ranks, nodes, gpus, logger}, context_out);
}

static int init_v6(void **context_out, uint64_t comm_id, size_t ranks, size_t nodes, cct_nccl_logger *logger,
                   struct cct_nccl_domains_v5 *domains, struct cct_nccl_constants_v5 *constants) {
  (void)constants;
  size_t gpus = domains && domains->max_ranks > 0 ? (size_t)domains->max_ranks : 0;
  return init((struct cct_tuner_comm){6, comm_id, ranks, nodes, gpus, logger}, context_out);
}

static int get_v3(void *context, int collective, size_t bytes, int pipe_ops, float **cost, int algorithms,
                  int protocols, int *channels) {
  cct_tuner_session_decide(context, collective, bytes, pipe_ops, -1, (float *)cost, algorithms, protocols, channels);
  return CCT_NCCL_SUCCESS;
}

static int get_v4(void *context, int collective, size_t bytes, int pipe_ops, float **cost, int algorithms,
                  int protocols, int reg_buff, int *channels) {
  cct_tuner_session_decide(context, collective, bytes, pipe_ops, reg_buff != 0, (float *)cost, algorithms, protocols,
                           channels);
  return CCT_NCCL_SUCCESS;
}

static int finalize(void *context) {
  cct_tuner_session_close(context);
  return CCT_NCCL_SUCCESS;
}

extern const struct cct_nccl_tuner_v3 ncclTunerPlugin_v3;
extern const struct cct_nccl_tuner_v4 ncclTunerPlugin_v4;
extern const struct cct_nccl_tuner_v5 ncclTunerPlugin_v5;
extern const struct cct_nccl_tuner_v6 ncclTunerPlugin_v6;
EXPORT const struct cct_nccl_tuner_v3 ncclTunerPlugin_v3 = {"cctax", init_v3, get_v3, finalize};
EXPORT const struct cct_nccl_tuner_v4 ncclTunerPlugin_v4 = {"cctax", init_v4, get_v4, finalize};
EXPORT const struct cct_nccl_tuner_v5 ncclTunerPlugin_v5 = {"cctax", init_v5, get_v4, finalize};
EXPORT const struct cct_nccl_tuner_v6 ncclTunerPlugin_v6 = {"cctax", init_v6, get_v4, finalize, NULL};
