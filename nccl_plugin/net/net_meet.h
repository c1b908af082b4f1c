/* SPDX-License-Identifier: Apache-2.0
 * How two processes meet: listen, connect, accept; none of them blocks.
 *
 * The handle that NCCL carries to the other side names an address and a random listener id. For every socket of a
 * connection the caller says inside the session (so under TLS: encrypted, and proven to hold the key) which listener it
 * means, which connection and which socket of it this is; the listener answers, so connect knows that it was taken. A
 * session that was reflected or led to another listener names the wrong id and is refused. Whoever is not a peer is
 * refused with one line and holds nobody up. */
#ifndef CCT_NCCL_NET_MEET_H
#define CCT_NCCL_NET_MEET_H

#include "nccl_plugin/net/net_comm.h"

struct cct_net_listener;

enum cct_nccl cct_net_listen(struct cct_net_context *context, int dev, void *handle_out,
                             struct cct_net_listener **listener_out);
/* *comm_out NULL with success: call again, with the same handle memory (it keeps where this call stands). */
enum cct_nccl cct_net_connect(struct cct_net_context *context, int dev, void *handle, struct cct_net_comm **comm_out);
enum cct_nccl cct_net_accept(struct cct_net_listener *listener, struct cct_net_comm **comm_out);
void cct_net_listener_close(struct cct_net_listener *listener); /* NULL-safe */
/* Ends the connects of a context that were begun and never finished. */
void cct_net_calls_free(struct cct_net_context *context);

#endif
