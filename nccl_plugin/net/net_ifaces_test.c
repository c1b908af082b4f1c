/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "nccl_plugin/net/net_ifaces.h"

static void lists_are_read_as_nccl_reads_them(void **state) {
  (void)state;
  static const struct {
    const char *list, *name;
    int is_match;
  } rows[] = {{"eth", "eth0", 1},
              {"eth", "veth0", 0},
              {"eth1,ib", "ib0", 1},
              {"=eth1", "eth1", 1},
              {"=eth1", "eth10", 0},
              {"=eth1,eth10", "eth10", 1},
              {"^docker,lo", "docker0", 0},
              {"^docker,lo", "lo", 0},
              {"^docker,lo", "eth0", 1},
              {"^=lo", "lo", 0},
              {"^=lo", "lo1", 1},
              {"eth0:4711", "eth0", 1},
              {"eth0:4711", "eth01", 1},
              {"=eth0:4711", "eth0", 1},
              {"=eth0:4711", "eth01", 0},
              {",,eth", "eth0", 1},
              {"=", "eth0", 0},
              {"^", "eth0", 1},
              {"eth0", "eth", 0},
              {"ib,eth,", "lo", 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (cct_net_iface_matches(rows[i].list, rows[i].name) != rows[i].is_match)
      fail_msg("'%s' on '%s' is not %d", rows[i].list, rows[i].name, rows[i].is_match);
}

static void the_loopback_is_found_by_name_and_never_as_ipv6(void **state) {
  (void)state;
  struct cct_net_iface found[CCT_NET_MAX_IFACES] = {0};
  char text[CCT_NET_ADDRESS_TEXT];
  int n = 0;
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  unsetenv("NCCL_SOCKET_FAMILY");
  assert_int_equal(cct_net_ifaces_find(found, &n), CCT_NCCL_SUCCESS);
  assert_int_equal(n, 1);
  assert_string_equal(cct_net_address_text(&found[0].address, 0, text), "127.0.0.1");
  assert_int_equal(found[0].speed_mbps, 10000);
  setenv("NCCL_SOCKET_FAMILY", "AF_INET6", 1);
  assert_int_equal(cct_net_ifaces_find(found, &n), CCT_NCCL_INVALID_USAGE);
}

static void addresses_read_well(void **state) {
  (void)state;
  char text[CCT_NET_ADDRESS_TEXT];
  union cct_net_address v6 = {.v6 = {.sin6_family = AF_INET6, .sin6_port = 0x6712}};
  v6.v6.sin6_addr.s6_addr[0] = 0xfd;
  v6.v6.sin6_addr.s6_addr[15] = 1;
  assert_string_equal(cct_net_address_text(&v6, 1, text), "[fd00::1]:4711");
  assert_string_equal(cct_net_address_text(&v6, 0, text), "fd00::1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_are_read_as_nccl_reads_them),
      cmocka_unit_test(the_loopback_is_found_by_name_and_never_as_ipv6),
      cmocka_unit_test(addresses_read_well),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
