/* SPDX-License-Identifier: Apache-2.0
 * What two processes of this plugin say to each other, in three forms: the handle (through NCCL), the hello (once a
 * socket) and the frame (once a message, on the control socket). Little endian, as both ends are; HANDLE_MAGIC is the
 * version of all three. */
#ifndef CCT_NCCL_NET_FORMAT_H
#define CCT_NCCL_NET_FORMAT_H

#include <stdint.h>

#include "nccl_plugin/net/net_ifaces.h"

enum {
  CCT_NET_ID_BYTES = 16,
  CCT_NET_FRAME_MAGIC = 0x78746363, /* "cctx" */
  CCT_NET_INLINE_MAX_BYTES = 65536,
};
#define CCT_NET_HANDLE_MAGIC 0x32306e7861746363u /* "cctaxn02" */
#define CCT_NET_HELLO_MAGIC  0x31306f6c6c656863u /* "chello01" */
#define CCT_NET_TAKEN_MAGIC  0x31306e656b617463u /* "ctaken01": the listener's answer to a hello, 8 bytes */

struct cct_net_handle {
  uint64_t magic;
  uint64_t call; /* 0, then the caller's own: names a call under way in its context, and is no pointer on purpose */
  uint64_t process;
  unsigned char listener[CCT_NET_ID_BYTES];
  uint8_t is_tls, n_streams, reserved[6];
  union cct_net_address address;
};
_Static_assert(sizeof(struct cct_net_handle) <= CCT_NCCL_HANDLE_BYTES, "NCCL carries 128 bytes");

struct cct_net_hello {
  uint64_t magic;
  unsigned char listener[CCT_NET_ID_BYTES], connection[CCT_NET_ID_BYTES];
  uint64_t process;
  uint8_t index, n_streams, reserved[6]; /* index 0: the control socket */
};
_Static_assert(sizeof(struct cct_net_hello) == 56, "the wire format");

struct cct_net_frame {
  uint32_t magic, sequence;
  uint64_t bytes;
  uint32_t
      stripe_bytes; /* 0: the message follows; else stripe i is on data socket (first_stream + i) modulo their number */
  uint16_t first_stream, reserved;
};
_Static_assert(sizeof(struct cct_net_frame) == 24 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire format");

#endif
