/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_ifaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl_plugin/net/net_log.h"

enum {
  UNKNOWN_SPEED_MBPS = 10000
}; /* what NCCL's own Socket says of an interface that names no speed */

int cct_net_iface_matches(const char *list, const char *name) {
  int is_not = *list == '^';
  list += is_not;
  int is_exact = *list == '=';
  list += is_exact;
  int is_listed = 0;
  for (size_t n; *list && !is_listed; list += n + (list[n] == ',')) {
    n = strcspn(list, ",");
    size_t length = strcspn(list, ",:"); /* NCCL takes NAME:PORT and looks at the name */
    is_listed = length > 0 && strncmp(list, name, length) == 0 && (!is_exact || name[length] == '\0');
  }
  return is_listed != is_not;
}

static int wanted_family(int *family_out) {
  const char *text = getenv("NCCL_SOCKET_FAMILY");
  *family_out = !text                           ? AF_UNSPEC
                : strcmp(text, "AF_INET") == 0  ? AF_INET
                : strcmp(text, "AF_INET6") == 0 ? AF_INET6
                                                : -1;
  return *family_out >= 0;
}

static int collect(const struct ifaddrs *all, const char *list, int family, struct cct_net_iface *ifaces) {
  int n = 0;
  for (const struct ifaddrs *a = all; a && n < CCT_NET_MAX_IFACES; a = a->ifa_next) {
    if (!a->ifa_addr || (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
      continue;
    if ((family != AF_UNSPEC && a->ifa_addr->sa_family != family) || !(a->ifa_flags & IFF_UP))
      continue;
    union cct_net_address address = {0};
    memcpy(&address, a->ifa_addr, a->ifa_addr->sa_family == AF_INET ? sizeof address.v4 : sizeof address.v6);
    if (address.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr))
      continue;
    int is_known = 0;
    for (int i = 0; i < n; i++)
      is_known |= strcmp(ifaces[i].name, a->ifa_name) == 0;
    if (is_known || !cct_net_iface_matches(list, a->ifa_name))
      continue;
    snprintf(ifaces[n].name, sizeof ifaces[n].name, "%s", a->ifa_name);
    ifaces[n++].address = address;
  }
  return n;
}

static void describe(struct cct_net_iface *iface) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "/sys/class/net/%s/device", iface->name);
  free(iface->pci_path);
  iface->pci_path = realpath(path, NULL);
  snprintf(path, sizeof path, "/sys/class/net/%s/speed", iface->name);
  FILE *file = fopen(path, "re");
  if (!file || fscanf(file, "%d", &iface->speed_mbps) != 1 || iface->speed_mbps <= 0)
    iface->speed_mbps = UNKNOWN_SPEED_MBPS;
  if (file)
    fclose(file);
}

enum cct_nccl cct_net_ifaces_find(struct cct_net_iface *ifaces_out, int *n_out) {
  static const char *const in_turn[] = {"ib", "^docker,lo,virbr", "docker", "lo", "virbr"};
  const char *list = getenv("NCCL_SOCKET_IFNAME");
  struct ifaddrs *all;
  int family, n = 0;
  if (!wanted_family(&family))
    return cct_net_fail(CCT_NCCL_INVALID_USAGE, "NCCL_SOCKET_FAMILY='%.64s' is neither 'AF_INET' nor 'AF_INET6'",
                        getenv("NCCL_SOCKET_FAMILY"));
  if (getifaddrs(&all) != 0)
    return cct_net_fail(CCT_NCCL_SYSTEM_ERROR, "cannot list the network interfaces: %m");
  if (list && strlen(list) > 1) /* NCCL takes a shorter one for unset */
    n = collect(all, list, family, ifaces_out);
  else
    for (size_t i = 0; i < sizeof in_turn / sizeof *in_turn && n == 0; i++)
      n = collect(all, in_turn[i], family, ifaces_out);
  freeifaddrs(all);
  if (n == 0)
    return cct_net_fail(CCT_NCCL_INVALID_USAGE,
                        "no network interface matches NCCL_SOCKET_IFNAME='%.64s' and NCCL_SOCKET_FAMILY",
                        list ? list : "");
  for (int i = 0; i < n; i++)
    describe(&ifaces_out[i]);
  *n_out = n;
  return CCT_NCCL_SUCCESS;
}

socklen_t cct_net_address_bytes(const union cct_net_address *address) {
  return address->any.sa_family == AF_INET ? sizeof address->v4 : sizeof address->v6;
}

char *cct_net_address_text(const union cct_net_address *address, int with_port, char out[CCT_NET_ADDRESS_TEXT]) {
  char host[INET6_ADDRSTRLEN] = "?";
  int is_v6 = address->any.sa_family == AF_INET6;
  inet_ntop(address->any.sa_family, is_v6 ? (const void *)&address->v6.sin6_addr : (const void *)&address->v4.sin_addr,
            host, sizeof host);
  unsigned port = ntohs(is_v6 ? address->v6.sin6_port : address->v4.sin_port);
  if (with_port)
    snprintf(out, CCT_NET_ADDRESS_TEXT, is_v6 ? "[%s]:%u" : "%s:%u", host, port);
  else
    snprintf(out, CCT_NET_ADDRESS_TEXT, "%s", host);
  return out;
}
