/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "machine/host_facts.h"

static void replay(const char *machine) {
  char folder[512];
  snprintf(folder, sizeof folder, "%s/tests/data/machines/%s", getenv("CCT_SOURCE"), machine);
  setenv("CCTAX_MACHINE", folder, 1);
}

static void this_machine_is_known(void **state) {
  (void)state;
  struct cct_host_facts facts, again;
  unsetenv("CCTAX_MACHINE");
  cct_host_facts_read(&facts);
  cct_host_facts_read(&again);
  assert_memory_equal(&facts, &again, sizeof facts);
  assert_string_not_equal(facts.boot_id, "unknown");
  assert_string_equal(facts.fixture, "");
  assert_true(facts.cores > 0 && facts.gpus >= 0);
  assert_int_equal(strncmp(facts.kernel, "Linux ", 6), 0);
}

static void a_tdx_guest_is_recognised(void **state) {
  (void)state;
  struct cct_host_facts facts;
  replay("two-socket-8gpu");
  cct_host_facts_read(&facts);
  assert_string_equal(facts.tee, "tdx");
  assert_string_equal(facts.cpu, "INTEL(R) XEON(R) PLATINUM 8570");
  assert_string_equal(facts.boot_id, "11111111-2222-3333-4444-555555555555");
  assert_int_equal(facts.cores, 16);
  assert_int_equal(facts.gpus, 8); /* not the board's own graphics */
  assert_true(strstr(facts.fixture, "two-socket-8gpu") != NULL);
}

static void an_snp_guest_is_recognised(void **state) {
  (void)state;
  struct cct_host_facts facts;
  replay("sev-snp");
  cct_host_facts_read(&facts);
  assert_string_equal(facts.tee, "sev-snp");
}

static void what_cannot_be_looked_at_is_unknown(void **state) {
  (void)state;
  struct cct_host_facts facts;
  setenv("CCTAX_MACHINE", "/nonexistent", 1);
  cct_host_facts_read(&facts);
  assert_string_equal(facts.tee, "unknown");
  assert_string_equal(facts.boot_id, "unknown");
}

static void ranks_sit_near_their_gpus(void **state) {
  (void)state;
  struct cct_binding_facts facts;
  replay("two-socket-8gpu");
  for (int rank = 0; rank < 8; rank++) { /* four GPUs share the eight cores of each socket */
    cct_rank_bind(rank, 8, &facts);
    assert_int_equal(facts.cores, 2);
    assert_int_equal(facts.near_gpu, 1);
  }
  cct_rank_bind(0, 1, &facts);
  assert_int_equal(facts.cores, 8);
  cct_rank_bind(9, 10, &facts); /* no GPU of its own */
  assert_int_equal(facts.near_gpu, -1);
  assert_true(facts.cores == 1 || facts.cores == 2);
  cct_rank_bind(3, 17, &facts); /* more ranks than cores */
  assert_int_equal(facts.cores, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(this_machine_is_known),      cmocka_unit_test(a_tdx_guest_is_recognised),
      cmocka_unit_test(an_snp_guest_is_recognised), cmocka_unit_test(what_cannot_be_looked_at_is_unknown),
      cmocka_unit_test(ranks_sit_near_their_gpus),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
