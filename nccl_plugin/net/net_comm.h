/* SPDX-License-Identifier: Apache-2.0
 * One connection, which carries messages one way: a control socket and 1 to CCT_NET_MAX_SOCKETS data sockets.
 *
 * On the control socket every message is a frame: its true size and, up to `inline_bytes`, the message itself, so that
 * a small message is one record and one system call. A larger one is cut in equal stripes over data sockets, which
 * helper threads move; the frame says how, so both ends cut alike. Frames are in order and match receives in the order
 * they were posted.
 *
 * isend, irecv and test of one comm are called by one thread (NCCL's proxy progress thread). An error is said once and
 * is final: every later call answers it, and no helper thread touches the caller's memory any more. */
#ifndef CCT_NCCL_NET_COMM_H
#define CCT_NCCL_NET_COMM_H

#include "nccl_plugin/net/net_context.h"

struct cct_net_comm;

/* Takes over `wires` (control first, then n_streams data wires) on success; on failure they stay the caller's. */
enum cct_nccl cct_net_comm_new(struct cct_net_context *context, int is_send, const union cct_net_address *peer,
                               uint64_t peer_process, int n_streams, struct cct_wire *const *wires,
                               struct cct_net_comm **comm_out);
void cct_net_comm_close(struct cct_net_comm *comm); /* NULL-safe; outstanding requests are dropped */

/* *request_out NULL with success: no room now, call again. */
enum cct_nccl cct_net_comm_send(struct cct_net_comm *comm, const void *data, size_t bytes, void **request_out);
enum cct_nccl cct_net_comm_recv(struct cct_net_comm *comm, void *data, size_t bytes, void **request_out);
/* *done_out 1 once, then the request is gone. */
enum cct_nccl cct_net_comm_test(void *request, int *done_out, size_t *bytes_out);
/* The caller is about to free [data, data + bytes): a transfer that still uses it ends the connection first. */
void cct_net_comm_forget(struct cct_net_comm *comm, const void *data, size_t bytes);

#endif
