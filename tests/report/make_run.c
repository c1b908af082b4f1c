/* SPDX-License-Identifier: Apache-2.0
 * Run directories for tests that need a large or a full one: no machine measured them.
 *   make_run DIR showcase BOOTS   steps and collectives over layouts, batches and sizes, with noise and boot shifts
 *   make_run DIR serving          requests by rate and by concurrency, up to where the confidential arm is full
 *   make_run DIR appended         off measured, the machine rebooted with CC on and the run appended to: one boot an
 * arm make_run DIR cells N SAMPLES  N cells, SAMPLES in all, two arms, five rounds of one boot */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/random.h"
#include "report/report_fixture.h"

static void add_steps(struct cct_block *block, int arm, const char *label, int number, double shift) {
  static const char *const layouts[] = {"tp=8", "tp=4,dp=2", "ep=8,dp=8", "tp=2,ep=8,dp=4"};
  static const char *const models[] = {"qwen3-8b", "minimax-m2"};
  char key[512];
  for (int m = 0; m < 2; m++)
    for (int l = 0; l < (m ? 4 : 2); l++)
      for (int batch = 4; batch <= 128; batch *= batch < 8 ? 2 : 4) {
        int is_train = batch == 4;
        double base = is_train ? 9e5 + 1e5 * l : 4000 + 30 * batch + 300 * l;
        double ratio = is_train ? 1.06 + 0.02 * l : 1.21 - 0.05 * log2(batch / 8.0) / 2 - 0.02 * l;
        if (is_train)
          snprintf(key, sizeof key,
                   "{\"graph\":\"none\",\"layout\":\"%s\",\"model\":\"%s\",\"np\":8,\"workload\":\"train\"}",
                   layouts[l], models[m]);
        else
          snprintf(
              key, sizeof key,
              "{\"batch\":%d,\"graph\":\"full\",\"layout\":\"%s\",\"model\":\"%s\",\"np\":8,\"workload\":\"decode\"}",
              batch, layouts[l], models[m]);
        fixture_steps(block, key, label, base * (arm ? ratio : 1) * shift, 0.4, 30,
                      (uint64_t)(7919 * number + 31 * l + 17 * m + batch));
      }
}

static void add_collectives(struct cct_block *block, int arm, const char *label, int number, double shift) {
  static const char *const kinds[] = {"all_reduce", "all_to_all"};
  char key[512];
  for (int k = 0; k < 2; k++)
    for (int e = 3; e <= 28; e += k ? 5 : 3) {
      double clear = 12 + ldexp(1, e) / 4e5;
      snprintf(key, sizeof key, "{\"bytes\":%lld,\"np\":8,\"workload\":\"%s\"}", 1ll << e, kinds[k]);
      fixture_steps(block, key, label, (arm ? 1.16 * clear + 10 : clear) * shift, 0.8, 30,
                    (uint64_t)(104729 * number + 3 * e + k));
    }
}

static void add_serving(struct cct_block *block, int arm, const char *label, int number) {
  char key[512];
  for (int by_rate = 0; by_rate < 2; by_rate++)
    for (int load = 1; load <= 256; load *= 2) {
      double full = load / (arm ? 96.0 : 160.0), wait = full > 1 ? 400 * (full - 1) : 0;
      double noise = 1 + 0.03 * cct_random_normal(11, (uint64_t)(1000 * number + 2 * load + by_rate));
      snprintf(key, sizeof key,
               "{\"arrivals\":\"%s\",\"%s\":%d,\"layout\":\"tp=1\",\"model\":\"qwen3-8b\",\"np\":1,"
               "\"slo\":\"ttft=200ms,tpot=10ms\",\"workload\":\"serve\"}",
               by_rate ? "seconds" : "closed", by_rate ? "request_rate" : "concurrency", load);
      fixture_serving(block, key, label, (8 * (1 + arm) + wait) * noise, (2.4 + arm + 4 * full) * noise, 2.5,
                      128 * fmin(load, arm ? 96 : 160) * noise, full < 2 ? load * fmin(1, 2 - full) * noise : 0);
    }
}

static void add_many(struct cct_block *block, int arm, int number, int cells, int samples) {
  char key[512];
  for (int c = 0; c < cells; c++) {
    snprintf(
        key, sizeof key,
        "{\"batch\":%d,\"graph\":\"full\",\"layout\":\"tp=8\",\"model\":\"qwen3-8b\",\"np\":8,\"workload\":\"decode\"}",
        c + 1);
    fixture_steps(block, key, arm ? "emulated" : "measured", 1000 * (arm ? 1.05 : 1), 0.5, samples,
                  (uint64_t)number << 32 | (uint64_t)c);
  }
}

/* What the two boots of an appended run say of the machine: `on` is a confidential guest. */
static void add_machine(struct cct_block *block, int arm, int number) {
  static const struct {
    const char *name;
    enum cct_fact_class fact_class;
    const char *value[2];
  } facts[] = {{"backend", CCT_FACT_IDENTITY, {"cuda", "cuda"}},
               {"cpu", CCT_FACT_IDENTITY, {"INTEL(R) XEON(R) 6960P", "INTEL(R) XEON(R) 6960P"}},
               {"cores", CCT_FACT_IDENTITY, {"144", "144"}},
               {"nccl", CCT_FACT_IDENTITY, {"2.29.2", "2.29.2"}},
               {"condition", CCT_FACT_CONDITION, {"off", "on"}},
               {"gpu_cc", CCT_FACT_CONDITION, {"off", "on"}},
               {"tee", CCT_FACT_CONDITION, {"none", "tdx"}},
               {"guest_kernel", CCT_FACT_CONDITION, {"6.14.0-37-generic", "6.14.0-37-generic"}},
               {"multicast", CCT_FACT_CONDITION, {"1", "0"}}};
  char start[48];
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
    fixture_fact(block, facts[i].name, facts[i].fact_class, facts[i].value[arm]);
  snprintf(start, sizeof start, "2026-11-30T1%d:%02d:07Z", arm, 4 * number);
  fixture_fact(block, "start", CCT_FACT_REPLICATE, start);
}

int main(int argc, char **argv) {
  int is_serving = argc == 3 && !strcmp(argv[2], "serving");
  int is_showcase = argc == 4 && !strcmp(argv[2], "showcase"), is_large = argc == 5 && !strcmp(argv[2], "cells"),
      is_appended = argc == 3 && !strcmp(argv[2], "appended");
  if (!is_showcase && !is_large && !is_appended && !is_serving) {
    fprintf(stderr, "usage: make_run DIR showcase BOOTS | make_run DIR serving | make_run DIR appended | make_run DIR "
                    "cells N SAMPLES\n");
    return 2;
  }
  mkdir(argv[1], 0777);
  int boots = is_showcase ? atoi(argv[3]) : 1, number = 0;
  for (int boot = 0; boot < boots; boot++)
    for (int round = 0; round < 5; round++)
      for (int arm = 0; arm < 2; arm++) {
        static const char *const arms[] = {"off", "emulated:b200x8-tdx", "on"};
        int own_boot = boots > 1 || is_appended;
        struct cct_block *block =
            fixture_block(arms[arm && is_appended ? 2 : arm], own_boot ? 2 * boot + arm : 0, round);
        double shift = 1 + 0.004 * cct_random_normal(5, (uint64_t)(2 * boot + arm)) * own_boot;
        fixture_fact(block, "gpu", CCT_FACT_IDENTITY, "NVIDIA B200");
        fixture_fact(block, "gpu_clock_mhz", CCT_FACT_DRIFT, round % 2 ? "1965" : "1950");
        if (is_appended)
          add_machine(block, arm, 5 * arm + round);
        if (is_large) {
          add_many(block, arm, number, atoi(argv[3]), atoi(argv[4]) / (atoi(argv[3]) * 10 * 2)); /* two ranks a step */
        } else if (is_serving) {
          add_serving(block, arm, arm ? "emulated" : "measured", number);
        } else {
          add_steps(block, arm, arm && !is_appended ? "emulated" : "measured", number, shift);
          add_collectives(block, arm, arm && !is_appended ? "emulated" : "measured", number, shift);
        }
        fixture_write(block, argv[1], number++);
        cct_block_free(block);
      }
  return 0;
}
