/* SPDX-License-Identifier: Apache-2.0
 * The contract of every NCCL over random tables, files and conditions, held against a scan of the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/text.h"
#include "nccl_plugin/tuner/core_emulator.h"
#include "tuner/rules_scan_test.h"

enum {
  CELLS = CCT_TUNER_ALGORITHMS * CCT_TUNER_PROTOCOLS
};
static const enum cct_emulated_nccl nccls[] = {CCT_NCCL_TO_2_28, CCT_NCCL_TO_2_30, CCT_NCCL_LATER};

static float random_cost(uint64_t seed, uint64_t i) {
  static const float odd[] = {-1, -1, -1, -1024, NAN, INFINITY, 0, 1e-4f, 0.005f, 4e9f, -0.5f, FLT_MAX};
  if (cct_random_below(seed, 2 * i, 3) == 0)
    return odd[cct_random_below(seed, 2 * i + 1, sizeof odd / sizeof *odd)];
  return 1 + 100 * (float)cct_random_unit(seed, 2 * i + 1);
}

struct random_file {
  struct cct_rule items[40];
  struct cct_rules rules;
  struct cct_tuner_situation situation;
  const char *condition;
};

static void random_file_make(uint64_t seed, struct random_file *f) {
  static const struct {
    const char *text, *gpu;
    int cc, off;
  } conditions[] = {{"cc,gpu=NVIDIA H200", "NVIDIA H200", 1, 0},
                    {"clear,gpu=NVIDIA B200", "NVIDIA B200", 0, 0},
                    {"no-multicast", "", -1, 1},
                    {"cc,no-multicast", "", 1, 1}};
  size_t c = (size_t)cct_random_below(seed, 0, 4);
  struct cct_text text = {0};
  char line[CCT_RULE_TEXT];
  f->rules = (struct cct_rules){f->items, 1 + (size_t)cct_random_below(seed, 1, 39), 40};
  for (size_t i = 0; i < f->rules.n; i++) {
    f->items[i] = random_rule(cct_random_fold(seed, i));
    cct_text_add(&text, "%s\n", cct_rule_text(&f->items[i], line));
  }
  f->condition = conditions[c].text;
  f->situation =
      (struct cct_tuner_situation){1 + (int)cct_random_below(seed, 2, 2), 2 + (int)cct_random_below(seed, 3, 2),
                                   conditions[c].cc, conditions[c].off, conditions[c].gpu};
  assert_int_equal(cct_write_file(getenv("CCTAX_TUNER_RULES"), text.s, text.length), CCT_OK);
  setenv("CCTAX_CONDITION", f->condition, 1);
  cct_text_free(&text);
}

/* One random call on two contexts, as two ranks make it; the contract, cell by cell, and the choice. */
static int random_call(const struct random_file *f, const struct cct_emulator *e, void *const contexts[2],
                       uint64_t seed) {
  float before[CELLS], cost[CELLS], other[CELLS];
  struct cct_tuner_call call = {.collective = (int)cct_random_below(seed, 100, 6),
                                .bytes = (uint64_t)cct_random_below(seed, 101, 45),
                                .pipe_ops = 1 + (int)cct_random_below(seed, 102, 4),
                                .reg_buff = (int)cct_random_below(seed, 103, 2),
                                .cost = before,
                                .algorithms = 6 + (int)cct_random_below(seed, 104, 2),
                                .protocols = 3};
  struct cct_tuner_choice choice = {.rule = -1};
  int cells = call.algorithms * 3, channels, other_channels;
  for (uint64_t i = 0; i < CELLS; i++)
    before[i] = random_cost(seed, i);
  memcpy(cost, before, sizeof cost);
  memcpy(other, before, sizeof other);
  int rc = cct_emulator_get(e, contexts[0], call.collective, call.bytes, call.pipe_ops, call.reg_buff, cost,
                            call.algorithms, 3, &channels) |
           cct_emulator_get(e, contexts[1], call.collective, call.bytes, call.pipe_ops, call.reg_buff, other,
                            call.algorithms, 3, &other_channels);
  if (rc || memcmp(cost, other, sizeof cost) != 0 || channels != other_channels)
    fail_msg("seed %llu: ranks differ, or an error", (unsigned long long)seed);
  int is_chosen = scan(&f->rules, &f->situation, &call, &choice) == CCT_TUNER_CHOSEN;
  for (int i = 0; i < CELLS; i++) {
    int was = i < cells && cct_cost_is_usable(before[i]);
    if (was ? !cct_cost_is_usable(cost[i]) : memcmp(&cost[i], &before[i], sizeof(float)) != 0)
      fail_msg("seed %llu cell %d: %g became %g", (unsigned long long)seed, i, before[i], cost[i]);
  }
  if (channels != (is_chosen && choice.channels ? choice.channels : e->channels_preset))
    fail_msg("seed %llu: %d channels", (unsigned long long)seed, channels);
  for (size_t i = 0; i < 3; i++) {
    int wanted =
        is_chosen ? choice.algorithm * 3 + choice.protocol : cct_emulator_pick(nccls[i], before, before, cells);
    int picked = cct_emulator_pick(nccls[i], before, cost, cells);
    if (picked != wanted)
      fail_msg("seed %llu: picks %d, not %d", (unsigned long long)seed, picked, wanted);
  }
  return is_chosen;
}

static void a_million_random_tables_keep_the_contract(void **state) {
  (void)state;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  size_t calls = 100000;
#else
  size_t calls = 1000000;
#endif
  size_t chosen = 0, files = 100;
  char path[] = "/tmp/cctax-tuner-contract.XXXXXX", plugin[4096];
  close(mkstemp(path));
  setenv("CCTAX_TUNER_RULES", path, 1);
  snprintf(plugin, sizeof plugin, "%s/lib/libnccl-tuner-cctax.so", getenv("CCT_BINARY"));
  for (uint64_t file = 0; file < files; file++) {
    struct random_file f;
    struct cct_emulator e;
    void *contexts[2] = {NULL, NULL};
    random_file_make(file, &f);
    cct_emulator_load(plugin, 4 + (int)(file % 3), &e);
    assert_int_equal(e.api, 4 + (int)(file % 3));
    e.channels_preset = file % 2 ? 77 : 0;
    for (int rank = 0; rank < 2; rank++)
      cct_emulator_init(&e, (size_t)f.situation.ranks, (size_t)f.situation.nodes, NULL, &contexts[rank]);
    for (uint64_t n = 0; n < calls / files; n++)
      chosen += (size_t)random_call(&f, &e, contexts, cct_random_fold(file, n));
    for (int rank = 0; rank < 2; rank++)
      cct_emulator_finalize(&e, contexts[rank]);
    cct_emulator_unload(&e);
  }
  unlink(path);
  print_message("%zu of %zu calls decided by a rule\n", chosen, calls);
  assert_true(chosen > calls / 20);
}

int main(void) {
  unsetenv("CCTAX_TUNER_PROOF");
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_million_random_tables_keep_the_contract)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
