/* SPDX-License-Identifier: Apache-2.0
 * The network interfaces NCCL would use, chosen as NCCL chooses them: NCCL_SOCKET_IFNAME is a list of prefixes, '=' in
 * front makes them exact, '^' excludes; NCCL_SOCKET_FAMILY is AF_INET or AF_INET6. Without it: ib*, then anything but
 * docker*, lo*, virbr*, then those. One address an interface, the kernel's first; never ::1. */
#ifndef CCT_NCCL_NET_IFACES_H
#define CCT_NCCL_NET_IFACES_H

#include <net/if.h>
#include <netinet/in.h>

#include "nccl_plugin/net/net_abi.h"

enum {
  CCT_NET_MAX_IFACES = 16,
  CCT_NET_ADDRESS_TEXT = 64
};

union cct_net_address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
};

struct cct_net_iface {
  char name[IF_NAMESIZE];
  union cct_net_address address;
  char *pci_path; /* malloc'd; NULL for a virtual interface */
  int speed_mbps;
};

/* Whether `name` is in the list, read as NCCL reads NCCL_SOCKET_IFNAME (with its leading '^' and '='). */
int cct_net_iface_matches(const char *list, const char *name);
/* Fills up to CCT_NET_MAX_IFACES; none is an error. Strings live until the next call. */
enum cct_nccl cct_net_ifaces_find(struct cct_net_iface *ifaces_out, int *n_out);

socklen_t cct_net_address_bytes(const union cct_net_address *address);
/* "10.0.0.1:4711" or "[fd00::1]:4711"; without the port where `with_port` is 0. Returns `out`. */
char *cct_net_address_text(const union cct_net_address *address, int with_port, char out[CCT_NET_ADDRESS_TEXT]);

#endif
