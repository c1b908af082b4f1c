/* SPDX-License-Identifier: Apache-2.0
 * NCCL's net plugin interface, v10 (NCCL 2.26), v11 (2.28.3) and v12 (2.30.3), written afresh from the documented
 * layouts and held to them by the assertions below (x86-64 and aarch64, LP64). Nothing here is included together with
 * nccl.h.
 *
 * Contract, where it bites: listen, connect and accept must not block (success with a NULL comm means "call again");
 * isend and irecv may answer a NULL request ("retry later"); test reports done once, with the size that was really
 * sent; *request holds a marker (0x1) when irecv is entered; finalize may get a NULL context. */
#ifndef CCT_NCCL_NET_ABI_H
#define CCT_NCCL_NET_ABI_H

#include <stddef.h>
#include <stdint.h>

enum cct_nccl { /* ncclResult_t */
  CCT_NCCL_SUCCESS = 0,
  CCT_NCCL_SYSTEM_ERROR = 2,
  CCT_NCCL_INTERNAL_ERROR = 3,
  CCT_NCCL_INVALID_ARGUMENT = 4,
  CCT_NCCL_INVALID_USAGE = 5,
  CCT_NCCL_REMOTE_ERROR = 6,
};

enum { /* ncclDebugLogLevel, and the subsystem flags a net plugin speaks under */
  CCT_NCCL_LOG_WARN = 2,
  CCT_NCCL_LOG_INFO = 3,
  CCT_NCCL_SUBSYS_INIT = 0x1,
  CCT_NCCL_SUBSYS_NET = 0x10,
};

enum {
  CCT_NCCL_HANDLE_BYTES = 128,
  CCT_NCCL_NET_REQUESTS = 32, /* outstanding per comm */
  CCT_NCCL_PTR_HOST = 1,
  CCT_NCCL_ID_UNDEFINED = -1,
};

typedef void cct_nccl_logger(int level, unsigned long flags, const char *file, int line, const char *format, ...);

struct cct_nccl_net_vprops_v10 { /* v11 is the same */
  int ndevs, devs[4];
};
struct cct_nccl_net_vprops_v12 {
  int ndevs, devs[8];
};

/* The part that all three versions share; maxMultiRequestSize starts with v11, the ids with v12. speed: Mbit/s;
 * latency: us. */
#define CCT_NCCL_NET_PROPS_HEAD                                                                                        \
  char *name, *pci_path;                                                                                               \
  uint64_t guid;                                                                                                       \
  int ptr_support, reg_is_global, force_flush, speed, port;                                                            \
  float latency;                                                                                                       \
  int max_comms, max_recvs, device_type, device_version

struct cct_nccl_net_props_v10 {
  CCT_NCCL_NET_PROPS_HEAD;
  struct cct_nccl_net_vprops_v10 vprops;
  size_t max_p2p_bytes, max_coll_bytes;
};
struct cct_nccl_net_props_v11 {
  CCT_NCCL_NET_PROPS_HEAD;
  struct cct_nccl_net_vprops_v10 vprops;
  size_t max_p2p_bytes, max_coll_bytes;
  int max_multi_request_size;
};
struct cct_nccl_net_props_v12 {
  CCT_NCCL_NET_PROPS_HEAD;
  struct cct_nccl_net_vprops_v12 vprops;
  size_t max_p2p_bytes, max_coll_bytes;
  int max_multi_request_size;
  int16_t rail_id, plane_id;
};

struct cct_nccl_net_comm_config {
  int traffic_class;
};

/* From listen to irecvConsumed the three versions agree but for the context and, in v10's connect, the config. */
#define CCT_NCCL_NET_TRANSFER                                                                                          \
  enum cct_nccl (*accept)(void *listen, void **recv_out, void **device_out);                                           \
  enum cct_nccl (*reg_mr)(void *comm, void *data, size_t bytes, int type, void **mhandle_out);                         \
  enum cct_nccl (*reg_mr_dma_buf)(void *comm, void *data, size_t bytes, int type, uint64_t offset, int fd,             \
                                  void **mhandle_out);                                                                 \
  enum cct_nccl (*dereg_mr)(void *comm, void *mhandle);                                                                \
  enum cct_nccl (*isend)(void *send, void *data, size_t bytes, int tag, void *mhandle, void *phandle, void **request); \
  enum cct_nccl (*irecv)(void *recv, int n, void **data, size_t *bytes, int *tags, void **mhandles, void **phandles,   \
                         void **request);                                                                              \
  enum cct_nccl (*iflush)(void *recv, int n, void **data, int *bytes, void **mhandles, void **request);                \
  enum cct_nccl (*test)(void *request, int *done, int *bytes);                                                         \
  enum cct_nccl (*close_send)(void *send);                                                                             \
  enum cct_nccl (*close_recv)(void *recv);                                                                             \
  enum cct_nccl (*close_listen)(void *listen);                                                                         \
  enum cct_nccl (*get_device_mr)(void *comm, void *mhandle, void **device_out);                                        \
  enum cct_nccl (*irecv_consumed)(void *recv, int n, void *request)

struct cct_nccl_net_v10 {
  const char *name;
  enum cct_nccl (*init)(cct_nccl_logger *logger, void *profiler_callback);
  enum cct_nccl (*devices)(int *n_out);
  enum cct_nccl (*get_properties)(int dev, struct cct_nccl_net_props_v10 *props);
  enum cct_nccl (*listen)(int dev, void *handle, void **listen_out);
  enum cct_nccl (*connect)(int dev, struct cct_nccl_net_comm_config *config, void *handle, void **send_out,
                           void **device_out);
  CCT_NCCL_NET_TRANSFER;
  enum cct_nccl (*make_vdevice)(int *dev_out, struct cct_nccl_net_vprops_v10 *props);
};

#define CCT_NCCL_NET_SINCE_V11(props_type, vprops_type)                                                                \
  const char *name;                                                                                                    \
  enum cct_nccl (*init)(void **ctx_out, uint64_t comm_id, struct cct_nccl_net_comm_config *config,                     \
                        cct_nccl_logger *logger, void *profiler_callback);                                             \
  enum cct_nccl (*devices)(int *n_out);                                                                                \
  enum cct_nccl (*get_properties)(int dev, props_type *props);                                                         \
  enum cct_nccl (*listen)(void *ctx, int dev, void *handle, void **listen_out);                                        \
  enum cct_nccl (*connect)(void *ctx, int dev, void *handle, void **send_out, void **device_out);                      \
  CCT_NCCL_NET_TRANSFER;                                                                                               \
  enum cct_nccl (*make_vdevice)(int *dev_out, vprops_type *props);                                                     \
  enum cct_nccl (*finalize)(void *ctx);                                                                                \
  enum cct_nccl (*set_net_attr)(void *ctx, void *attributes)

struct cct_nccl_net_v11 {
  CCT_NCCL_NET_SINCE_V11(struct cct_nccl_net_props_v11, struct cct_nccl_net_vprops_v10);
};
struct cct_nccl_net_v12 {
  CCT_NCCL_NET_SINCE_V11(struct cct_nccl_net_props_v12, struct cct_nccl_net_vprops_v12);
};

#define CCT_ABI(type, member, at)                                                                                      \
  _Static_assert(offsetof(struct type, member) == (at), #type "." #member " is not where NCCL has it")
_Static_assert(sizeof(enum cct_nccl) == 4, "ncclResult_t is an int");
_Static_assert(sizeof(struct cct_nccl_net_v10) == 20 * 8, "v10: a name and 19 functions");
_Static_assert(sizeof(struct cct_nccl_net_v11) == 22 * 8, "v11: a name and 21 functions");
_Static_assert(sizeof(struct cct_nccl_net_v12) == 22 * 8, "v12: as v11");
_Static_assert(sizeof(struct cct_nccl_net_props_v10) == 104, "v10 properties");
_Static_assert(sizeof(struct cct_nccl_net_props_v11) == 112, "v11 properties");
_Static_assert(sizeof(struct cct_nccl_net_props_v12) == 128, "v12 properties");
CCT_ABI(cct_nccl_net_props_v10, ptr_support, 24);
CCT_ABI(cct_nccl_net_props_v10, latency, 44);
CCT_ABI(cct_nccl_net_props_v10, device_type, 56);
CCT_ABI(cct_nccl_net_props_v10, vprops, 64);
CCT_ABI(cct_nccl_net_props_v10, max_p2p_bytes, 88);
CCT_ABI(cct_nccl_net_props_v11, max_multi_request_size, 104);
CCT_ABI(cct_nccl_net_props_v12, max_p2p_bytes, 104);
CCT_ABI(cct_nccl_net_props_v12, rail_id, 124);
CCT_ABI(cct_nccl_net_props_v12, plane_id, 126);
CCT_ABI(cct_nccl_net_v10, connect, 5 * 8);
CCT_ABI(cct_nccl_net_v10, make_vdevice, 19 * 8);
CCT_ABI(cct_nccl_net_v11, isend, 10 * 8);
CCT_ABI(cct_nccl_net_v11, test, 13 * 8);
CCT_ABI(cct_nccl_net_v11, finalize, 20 * 8);
CCT_ABI(cct_nccl_net_v12, set_net_attr, 21 * 8);
#undef CCT_ABI

#endif
