/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "nccl_plugin/tuner/tuner_condition.h"

static void causes_are_kept_apart(void **state) {
  (void)state;
  static const struct {
    int cc, multicast;
    size_t gpus;
    struct tuner_env {
      const char *enable, *algo, *proto;
    } env;
    enum cct_nvls_cause want;
  } rows[] = {
      {1, 0, 8, {NULL, NULL, NULL}, CCT_NVLS_CC},
      {1, 0, 2, {"0", "ring", NULL}, CCT_NVLS_CC}, /* it would be missing without the others too */
      {0, 0, 8, {NULL, NULL, NULL}, CCT_NVLS_DRIVER},
      {-1, 0, 8, {NULL, NULL, NULL}, CCT_NVLS_DRIVER}, /* CC only if NVML says so */
      {1, 1, 8, {NULL, NULL, NULL}, CCT_NVLS_NONE},    /* and only if the attribute is 0 */
      {1, 1, 8, {"0", NULL, NULL}, CCT_NVLS_ENVIRONMENT},
      {0, 1, 8, {"0x0", NULL, NULL}, CCT_NVLS_ENVIRONMENT},
      {0, 1, 8, {"2", NULL, NULL}, CCT_NVLS_NONE},
      {0, 1, 8, {"", NULL, NULL}, CCT_NVLS_NONE},
      {0, 1, 2, {NULL, NULL, NULL}, CCT_NVLS_FEW_GPUS},
      {0, 1, 3, {NULL, NULL, NULL}, CCT_NVLS_NONE},
      {0, 1, 8, {NULL, "Ring,Tree", NULL}, CCT_NVLS_FILTER},
      {0, 1, 8, {NULL, "^NVLS", NULL}, CCT_NVLS_FILTER},
      {0, 1, 8, {NULL, "^Tree", NULL}, CCT_NVLS_NONE},
      {0, 1, 8, {NULL, "allreduce:nvls,ring", NULL}, CCT_NVLS_NONE},
      {0, 1, 8, {NULL, NULL, "LL,LL128"}, CCT_NVLS_FILTER},
      {0, 1, 8, {NULL, NULL, "^LL128"}, CCT_NVLS_NONE},
      {0, -1, 8, {NULL, NULL, NULL}, CCT_NVLS_UNKNOWN},
      {1, -1, 8, {"0", NULL, NULL}, CCT_NVLS_ENVIRONMENT},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct cct_gpu_passive facts = {.cc = rows[i].cc, .multicast = rows[i].multicast};
    const struct cct_tuner_environment env = {NULL, rows[i].env.enable, rows[i].env.algo, rows[i].env.proto};
    struct cct_tuner_condition condition;
    char why[256];
    assert_int_equal(cct_tuner_condition_find(&facts, &env, 1, rows[i].gpus, &condition, why, sizeof why), CCT_OK);
    if (condition.cause != rows[i].want)
      fail_msg("row %zu: '%s', not '%s'", i, cct_nvls_cause_text(condition.cause), cct_nvls_cause_text(rows[i].want));
  }
}

static void what_is_agreed_decides_and_what_is_read_here_only_on_one_node(void **state) {
  (void)state;
  static const struct {
    const char *agreed;
    size_t nodes;
    enum cct_status status;
    int cc, off;
    const char *gpu;
  } rows[] = {
      {NULL, 1, CCT_OK, 1, 0, "NVIDIA H200"},
      {"", 1, CCT_OK, 1, 0, "NVIDIA H200"},
      {NULL, 2, CCT_OK, -1, 0, ""},
      {"clear", 1, CCT_OK, 0, 0, ""},
      {"cc,no-multicast,gpu=NVIDIA B200", 9, CCT_OK, 1, 1, "NVIDIA B200"},
      {"no-multicast", 9, CCT_OK, -1, 1, ""},
      {"cc,clear", 1, CCT_USAGE, -1, 0, ""},
      {"cc,", 1, CCT_USAGE, -1, 0, ""},
      {"gpu=", 1, CCT_USAGE, -1, 0, ""},
      {"CC", 2, CCT_USAGE, -1, 0, ""},
  };
  const struct cct_gpu_passive facts = {.cc = 1, .multicast = 0, .gpu_name = "NVIDIA H200"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct cct_tuner_environment env = {.cctax_condition = rows[i].agreed};
    struct cct_tuner_condition c;
    char why[256] = "";
    enum cct_status status = cct_tuner_condition_find(&facts, &env, rows[i].nodes, 8, &c, why, sizeof why);
    if (status != rows[i].status || c.cc != rows[i].cc || c.is_multicast_off != rows[i].off ||
        strcmp(c.gpu, rows[i].gpu) != 0 || (status != CCT_OK) != (why[0] != '\0'))
      fail_msg("row %zu: %d cc %d off %d gpu '%s' why '%s'", i, status, c.cc, c.is_multicast_off, c.gpu, why);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(causes_are_kept_apart),
      cmocka_unit_test(what_is_agreed_decides_and_what_is_read_here_only_on_one_node),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
