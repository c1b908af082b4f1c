/* SPDX-License-Identifier: Apache-2.0
 * libnccl-net-cctax.so: NCCL's three net interfaces over one implementation. v10 has no context: one serves the
 * process. */
#include <stdlib.h>
#include <string.h>

#include "nccl_plugin/net/net_comm.h"
#include "nccl_plugin/net/net_log.h"
#include "nccl_plugin/net/net_meet.h"

enum {
  MAX_MESSAGE_BYTES = 1 << 30, /* test reports an int */
  MAX_COLL_BYTES = 512 << 20,
  MAX_COMMS = 65536,
};

/* What is registered, so that it can be taken away safely. */
struct memory {
  void *data;
  size_t bytes;
};

static enum cct_nccl init_v11(void **ctx_out, uint64_t comm_id, struct cct_nccl_net_comm_config *config,
                              cct_nccl_logger *logger, void *profiler_callback) {
  (void)config, (void)profiler_callback;
  struct cct_net_context *context = NULL;
  cct_net_log_to(logger);
  enum cct_nccl result = cct_net_context_new(comm_id, &context);
  *ctx_out = context;
  return result;
}

static enum cct_nccl finalize(void *ctx) {
  cct_net_context_release(ctx);
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl devices(int *n_out) {
  cct_net_context_ifaces(n_out);
  return *n_out > 0 ? CCT_NCCL_SUCCESS : CCT_NCCL_INTERNAL_ERROR;
}

static enum cct_nccl properties_v12(int dev, struct cct_nccl_net_props_v12 *props) {
  int n;
  const struct cct_net_iface *ifaces = cct_net_context_ifaces(&n);
  if (dev < 0 || dev >= n)
    return cct_net_fail(CCT_NCCL_INVALID_ARGUMENT, "there is no device %d", dev);
  memset(props, 0, sizeof *props);
  props->name = (char *)ifaces[dev].name;
  props->pci_path = ifaces[dev].pci_path;
  props->guid = (uint64_t)dev;
  props->ptr_support = CCT_NCCL_PTR_HOST;
  props->speed = ifaces[dev].speed_mbps;
  props->max_comms = MAX_COMMS;
  props->max_recvs = 1;
  props->vprops.ndevs = 1;
  props->vprops.devs[0] = dev;
  props->max_p2p_bytes = MAX_MESSAGE_BYTES;
  props->max_coll_bytes = MAX_COLL_BYTES;
  props->max_multi_request_size = 1;
  props->rail_id = props->plane_id = CCT_NCCL_ID_UNDEFINED;
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl properties_v11(int dev, struct cct_nccl_net_props_v11 *props) {
  struct cct_nccl_net_props_v12 all = {0};
  enum cct_nccl result = properties_v12(dev, &all);
  if (result)
    return result;
  memset(props, 0, sizeof *props);
  memcpy(props, &all, offsetof(struct cct_nccl_net_props_v12, vprops));
  props->vprops.ndevs = all.vprops.ndevs;
  memcpy(props->vprops.devs, all.vprops.devs, sizeof props->vprops.devs);
  props->max_p2p_bytes = all.max_p2p_bytes;
  props->max_coll_bytes = all.max_coll_bytes;
  props->max_multi_request_size = all.max_multi_request_size;
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl properties_v10(int dev, struct cct_nccl_net_props_v10 *props) {
  struct cct_nccl_net_props_v11 all = {0};
  enum cct_nccl result = properties_v11(dev, &all);
  if (!result)
    memcpy(props, &all, sizeof *props); /* v11 appended a field */
  return result;
}

static enum cct_nccl listen_v11(void *ctx, int dev, void *handle, void **listen_out) {
  struct cct_net_listener *listener = NULL;
  enum cct_nccl result = cct_net_listen(ctx, dev, handle, &listener);
  *listen_out = listener;
  return result;
}

static enum cct_nccl connect_v11(void *ctx, int dev, void *handle, void **send_out, void **device_out) {
  struct cct_net_comm *comm = NULL;
  enum cct_nccl result = cct_net_connect(ctx, dev, handle, &comm);
  *send_out = comm;
  if (device_out)
    *device_out = NULL; /* no offload */
  return result;
}

static enum cct_nccl accept_any(void *listen, void **recv_out, void **device_out) {
  struct cct_net_comm *comm = NULL;
  enum cct_nccl result = cct_net_accept(listen, &comm);
  *recv_out = comm;
  if (device_out)
    *device_out = NULL;
  return result;
}

static enum cct_nccl reg_mr(void *comm, void *data, size_t bytes, int type, void **mhandle_out) {
  (void)comm;
  struct memory *memory = type == CCT_NCCL_PTR_HOST ? malloc(sizeof *memory) : NULL;
  if (!memory)
    return cct_net_fail(type == CCT_NCCL_PTR_HOST ? CCT_NCCL_SYSTEM_ERROR : CCT_NCCL_INTERNAL_ERROR,
                        "cannot register memory of type %d: host memory only", type);
  *memory = (struct memory){data, bytes};
  *mhandle_out = memory;
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl dereg_mr(void *comm, void *mhandle) {
  struct memory *memory = mhandle;
  if (memory && comm)
    cct_net_comm_forget(comm, memory->data, memory->bytes);
  free(memory);
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl isend(void *send, void *data, size_t bytes, int tag, void *mhandle, void *phandle,
                           void **request) {
  (void)tag, (void)mhandle, (void)phandle;
  return cct_net_comm_send(send, data, bytes, request);
}

static enum cct_nccl irecv(void *recv, int n, void **data, size_t *bytes, int *tags, void **mhandles, void **phandles,
                           void **request) {
  (void)tags, (void)mhandles, (void)phandles;
  *request = NULL; /* NCCL may have left a marker here */
  if (n != 1)
    return cct_net_fail(CCT_NCCL_INTERNAL_ERROR, "a receive of %d buffers, and the plugin offers 1", n);
  return cct_net_comm_recv(recv, data[0], bytes[0], request);
}

static enum cct_nccl iflush(void *recv, int n, void **data, int *bytes, void **mhandles, void **request) {
  (void)recv, (void)n, (void)data, (void)bytes, (void)mhandles;
  *request = NULL; /* host memory: nothing to flush */
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl test(void *request, int *done, int *bytes) {
  size_t moved = 0;
  *done = 0;
  if (!request)
    return cct_net_fail(CCT_NCCL_INTERNAL_ERROR, "test of no request");
  enum cct_nccl result = cct_net_comm_test(request, done, &moved);
  if (!result && *done && bytes)
    *bytes = (int)moved;
  return result;
}

static enum cct_nccl close_comm(void *comm) {
  cct_net_comm_close(comm);
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl close_listen(void *listen) {
  cct_net_listener_close(listen);
  return CCT_NCCL_SUCCESS;
}

/* ---- v10 ---- */

static struct cct_net_context *context_v10;

/* v10 has no finalize, so its counters are written when the process ends. */
static void end_v10(void) {
  cct_net_context_release(context_v10);
  context_v10 = NULL;
}

static enum cct_nccl init_v10(cct_nccl_logger *logger, void *profiler_callback) {
  (void)profiler_callback;
  cct_net_log_to(logger);
  if (context_v10)
    return CCT_NCCL_SUCCESS; /* NCCL calls this under its lock */
  enum cct_nccl result = cct_net_context_new(0, &context_v10);
  if (!result)
    atexit(end_v10); /* after OpenSSL's own, so it runs before */
  return result;
}

static enum cct_nccl listen_v10(int dev, void *handle, void **listen_out) {
  return listen_v11(context_v10, dev, handle, listen_out);
}

static enum cct_nccl connect_v10(int dev, struct cct_nccl_net_comm_config *config, void *handle, void **send_out,
                                 void **device_out) {
  (void)config;
  return connect_v11(context_v10, dev, handle, send_out, device_out);
}

#define EXPORT __attribute__((visibility("default")))
#define TRANSFER                                                                                                       \
  .accept = accept_any, .reg_mr = reg_mr, .dereg_mr = dereg_mr, .isend = isend, .irecv = irecv, .iflush = iflush,      \
  .test = test, .close_send = close_comm, .close_recv = close_comm, .close_listen = close_listen

EXPORT const struct cct_nccl_net_v10 ncclNetPlugin_v10 = {.name = "cctax",
                                                          .init = init_v10,
                                                          .devices = devices,
                                                          .get_properties = properties_v10,
                                                          .listen = listen_v10,
                                                          .connect = connect_v10,
                                                          TRANSFER};
EXPORT const struct cct_nccl_net_v11 ncclNetPlugin_v11 = {.name = "cctax",
                                                          .init = init_v11,
                                                          .devices = devices,
                                                          .get_properties = properties_v11,
                                                          .listen = listen_v11,
                                                          .connect = connect_v11,
                                                          TRANSFER,
                                                          .finalize = finalize};
EXPORT const struct cct_nccl_net_v12 ncclNetPlugin_v12 = {.name = "cctax",
                                                          .init = init_v11,
                                                          .devices = devices,
                                                          .get_properties = properties_v12,
                                                          .listen = listen_v11,
                                                          .connect = connect_v11,
                                                          TRANSFER,
                                                          .finalize = finalize};
