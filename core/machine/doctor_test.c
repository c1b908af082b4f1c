/* SPDX-License-Identifier: Apache-2.0
 * Every recorded machine of tests/data/machines/ against the checks written down in its own file, and every rule
 * against all of them: at least one where it speaks and one where it does not. Then this machine, played by fakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/text.h"
#include "json/json.h"
#include "machine/doctor.h"
#include "tests/scratch.h"

#define MOST_MACHINES 64

static struct {
  char path[1024];
  struct cct_machine machine;
  struct cct_finding findings[CCT_MOST_FINDINGS];
  int n;
} recorded[MOST_MACHINES];
static int n_recorded;

static int load_all(void **state) {
  char folder[512];
  struct dirent *entry;
  (void)state;
  snprintf(folder, sizeof folder, "%s/tests/data/machines", getenv("CCT_SOURCE"));
  DIR *open = opendir(folder);
  assert_non_null(open);
  while ((entry = readdir(open))) {
    const char *end = strrchr(entry->d_name, '.');
    if (!end || strcmp(end, ".json") != 0)
      continue;
    assert_true(n_recorded < MOST_MACHINES);
    snprintf(recorded[n_recorded].path, sizeof recorded->path, "%s/%s", folder, entry->d_name);
    assert_int_equal(cct_machine_load(recorded[n_recorded].path, &recorded[n_recorded].machine), CCT_OK);
    recorded[n_recorded].n = cct_doctor_judge(&recorded[n_recorded].machine, 1, recorded[n_recorded].findings);
    n_recorded++;
  }
  closedir(open);
  return n_recorded >= 8 ? 0 : -1;
}

static void each_machine_is_judged_as_written_down(void **state) {
  (void)state;
  for (int m = 0; m < n_recorded; m++) {
    struct cct_json *document;
    assert_int_equal(cct_json_load(recorded[m].path, &document), CCT_OK);
    const struct cct_json *rows = cct_json_member(document, "checks");
    const char *verdict = cct_json_string(cct_json_member(document, "verdict"));
    if (cct_json_size(rows) != (size_t)recorded[m].n)
      fail_msg("%s: %d checks speak, %zu are written down", recorded[m].path, recorded[m].n, cct_json_size(rows));
    for (int i = 0; i < recorded[m].n; i++) {
      const struct cct_json *row = cct_json_element(rows, (size_t)i);
      const struct cct_finding *finding = &recorded[m].findings[i];
      assert_string_equal(cct_json_string(cct_json_member(row, "rule")), finding->rule->name);
      assert_string_equal(cct_json_string(cct_json_member(row, "check")), finding->check);
      assert_string_equal(cct_json_string(cct_json_member(row, "verdict")), cct_doctor_word(finding->rule->verdict));
      assert_string_equal(cct_json_string(cct_json_member(row, "evidence")), finding->evidence);
    }
    enum cct_status status = cct_doctor_status(&recorded[m].machine, recorded[m].findings, recorded[m].n);
    assert_string_equal(verdict, status == CCT_OK ? "ok" : status == CCT_FOUND ? "bad" : "unknown");
    cct_json_free(document);
  }
}

static void every_rule_has_a_machine_where_it_speaks_and_one_where_it_does_not(void **state) {
  (void)state;
  for (int r = 0; r < cct_n_rules; r++) {
    int speaks = 0;
    for (int m = 0; m < n_recorded; m++)
      for (int i = 0; i < recorded[m].n; i++)
        speaks += recorded[m].findings[i].rule == &cct_rules[r];
    if (speaks == 0 || speaks == n_recorded)
      fail_msg("%s speaks on %d of %d machines", cct_rules[r].name, speaks, n_recorded);
  }
}

static void every_rule_says_what_to_do(void **state) {
  (void)state;
  for (int r = 0; r < cct_n_rules; r++) {
    const struct cct_rule *rule = &cct_rules[r];
    assert_non_null(strchr(rule->name, '.'));
    assert_true(rule->when[0].relation != CCT_NO_CONDITION);
    assert_int_equal(rule->remedy != NULL, rule->verdict != CCT_DOCTOR_OK);
    for (int other = 0; other < r; other++)
      assert_string_not_equal(cct_rules[other].name, rule->name);
  }
}

static void only_before_a_run_is_freshness_asked(void **state) {
  struct cct_finding findings[CCT_MOST_FINDINGS];
  (void)state;
  for (int m = 0; m < n_recorded; m++) {
    int n = cct_doctor_judge(&recorded[m].machine, 0, findings), fresh = 0;
    for (int i = 0; i < recorded[m].n; i++)
      fresh += recorded[m].findings[i].rule->is_before_run;
    assert_int_equal(n + fresh, recorded[m].n);
  }
}

static void nothing_known_says_nothing_about_a_gpu(void **state) {
  static const struct cct_machine none;
  struct cct_finding findings[CCT_MOST_FINDINGS];
  (void)state;
  int n = cct_doctor_judge(&none, 1, findings);
  assert_int_equal(n, 1);
  assert_string_equal(findings[0].rule->name, "cc.not-told");
  assert_int_equal(cct_doctor_status(&none, findings, n), CCT_UNSUPPORTED);
}

static void versions_are_numbers(void **state) {
  (void)state;
  assert_true(cct_version_compare("2.9.1", "2.22.3") < 0);
  assert_true(cct_version_compare("595.71.05", "590") > 0);
  assert_int_equal(cct_version_compare("3.0", "3.0.0"), 0);
  assert_true(cct_version_compare("3.0.22", "3.1") < 0);
  assert_int_equal(cct_version_compare("595.91.07", "595.91.7"), 0);
}

/* ---- what a recording may not be ---- */

static void a_broken_recording_is_refused_in_one_line(void **state) {
  static const struct {
    const char *facts, *want;
  } rows[] = {
      {"{\"name\":\"gpu.ccc\",\"value\":1}", "did you mean gpu.cc?"},
      {"{\"name\":\"gpu.cc\",\"value\":1},{\"name\":\"gpu.cc\",\"value\":0}", "given twice"},
      {"{\"name\":\"gpu.cc\",\"value\":\"on\"}", "$.machine.facts[0].value"},
      {"{\"name\":\"gpu.cc\",\"value\":-1}", "$.machine.facts[0].value"},
      {"{\"name\":\"gpu.cc\"}", "$.machine.facts[0].value"},
      {"{\"name\":\"cpu.tee\",\"value\":\"\"}", "1 to 127 bytes"},
      {"{\"name\":\"gpu.cc\",\"vlaue\":1}", "value"},
      {"7", "$.machine.facts[0]"},
  };
  struct cct_machine machine;
  char path[] = "/tmp/cctax-doctor-XXXXXX";
  (void)state;
  close(mkstemp(path));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct cct_text text = {0};
    cct_text_add(&text, "{\"schema\":1,\"machine\":{\"facts\":[%s]}}", rows[i].facts);
    assert_int_equal(cct_write_file(path, text.s, text.length), CCT_OK);
    cct_log_mute(1);
    assert_int_equal(cct_machine_load(path, &machine), CCT_USAGE);
    cct_log_mute(0);
    if (!strstr(cct_log_last(), rows[i].want))
      fail_msg("row %zu: '%s' has no '%s'", i, cct_log_last(), rows[i].want);
    cct_text_free(&text);
  }
  unlink(path);
}

/* ---- this machine, played ---- */

static void put(const char *path, const char *text) {
  char at[512];
  snprintf(at, sizeof at, "%s%s", scratch, path);
  for (char *slash = at + 1; (slash = strchr(slash, '/')); slash++) {
    *slash = '\0';
    mkdir(at, 0777);
    *slash = '/';
  }
  FILE *file = fopen(at, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static int make_tree(void **state) {
  if (scratch_make(state))
    return -1;
  put("/proc/cpuinfo", "model name\t: AMD EPYC 9575F\nflags\t\t: fpu hypervisor vaes avx512f\n");
  put("/proc/stat", "cpu  100 0 100 700 0 0 0 100 0 0\n");
  put("/proc/uptime", "3600.50 100.0\n");
  put("/proc/loadavg", "0.50 0.1 0.1 1/100 1\n");
  put("/proc/cmdline", "root=/dev/vda swiotlb=524288,force quiet\n");
  put("/proc/sys/kernel/osrelease", "6.8.0-60-generic\n");
  put("/proc/sys/kernel/random/boot_id", "0f0f\n");
  put("/proc/sys/kernel/numa_balancing", "1\n");
  put("/proc/sys/vm/nr_hugepages", "16\n");
  put("/dev/sev-guest", "");
  put("/sys/devices/system/node/node0/cpulist", "0-3\n");
  put("/sys/devices/system/node/node1/cpulist", "4-7\n");
  put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  put("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  put("/sys/bus/pci/devices/0000:01:00.0/numa_node", "-1\n");
  put("/sys/bus/pci/devices/0000:02:00.0/vendor", "0x10de\n");
  put("/sys/bus/pci/devices/0000:02:00.0/class", "0x068000\n");
  put("/sys/bus/pci/devices/0000:02:00.0/numa_node", "-1\n");
  put("/sys/kernel/debug/swiotlb/io_tlb_nslabs", "524288\n");
  put("/sys/kernel/debug/swiotlb/io_tlb_used", "131072\n");
  put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  put("/nccl.log", "host:1:1 [0] NCCL INFO CC On, workFifoBytes 0\n"
                   "host:1:1 [0] NCCL INFO NVLS multicast support is not available on dev 0 (NVLS_NCHANNELS 0)\n");
  put("/other.log", "nothing of the kind\n");
  return 0;
}

static int want(const struct cct_machine *machine, enum cct_machine_id id, const char *text) {
  char say[192], expected[192];
  snprintf(expected, sizeof expected, "%s %s", cct_machine_facts[id].name, text);
  if (!strcmp(cct_machine_say(machine, id, say), expected))
    return 0;
  fprintf(stderr, "'%s', not '%s'\n", say, expected);
  return 1;
}

static void load_fake(const char *fake, const char *library) {
  char path[4096];
  snprintf(path, sizeof path, "%s/fakes/%s/%s.so.1", getenv("CCT_BINARY"), fake, library);
  if (!dlopen(path, RTLD_NOW))
    _exit(90);
}

static int child_reads(void) {
  struct cct_machine machine;
  char log[512];
  snprintf(log, sizeof log, "%s/nccl.log", scratch);
  setenv("CCTAX_MACHINE", scratch, 1);
  setenv("FAKE_CC", "1,2", 1);
  setenv("FAKE_GPUS", "NVIDIA B200;NVIDIA B200;NVIDIA B200", 1);
  setenv("FAKE_MULTICAST", "000", 1);
  setenv("FAKE_DRIVER", "595.71.05", 1);
  setenv("FAKE_READY", "0", 1);
  setenv("FAKE_FABRIC", "323", 1);
  setenv("FAKE_WATTS", "756", 1);
  setenv("NCCL_NVLS_ENABLE", "1", 1);
  load_fake("nvml_new", "libnvidia-ml");
  load_fake("cuda", "libcuda");
  if (cct_machine_read(log, &machine))
    return 91;
  const struct cct_machine *m = &machine;
  return want(m, CCT_MACHINE_NVML, "1") + want(m, CCT_MACHINE_CC, "1") + want(m, CCT_MACHINE_GPU_COUNT, "3") +
         want(m, CCT_MACHINE_MULTI_GPU, "nvlink-encrypted") + want(m, CCT_MACHINE_ENVIRONMENT, "unavailable") +
         want(m, CCT_MACHINE_DEV_TOOLS, "0") + want(m, CCT_MACHINE_READY, "0") +
         want(m, CCT_MACHINE_DRIVER, "595.71.05") + want(m, CCT_MACHINE_FABRIC, "in-progress") +
         want(m, CCT_MACHINE_FABRIC_STATUS, "0") + want(m, CCT_MACHINE_POWER_LIMIT, "500") +
         want(m, CCT_MACHINE_POWER_DEFAULT, "700") + want(m, CCT_MACHINE_PROTECTED, "not known") +
         want(m, CCT_MACHINE_CONTEXTS, "not known") + want(m, CCT_MACHINE_MULTICAST, "0") +
         want(m, CCT_MACHINE_NCCL_SAYS_CC, "1") + want(m, CCT_MACHINE_NCCL_FIFO, "0") +
         want(m, CCT_MACHINE_NCCL_SAYS_NVLS, "0") + want(m, CCT_MACHINE_NVLS_ENABLE, "1") +
         want(m, CCT_MACHINE_TEE, "sev-snp") + want(m, CCT_MACHINE_TEE_EVIDENCE, "/dev/sev-guest") +
         want(m, CCT_MACHINE_TEE_DEVICE, "1") + want(m, CCT_MACHINE_VAES, "1") + want(m, CCT_MACHINE_HYPERVISOR, "1") +
         want(m, CCT_MACHINE_STEAL_BOOT, "10") + want(m, CCT_MACHINE_NUMA_NODES, "2") +
         want(m, CCT_MACHINE_NUMA_BALANCING, "1") + want(m, CCT_MACHINE_GPUS_WITHOUT_NODE, "1") +
         want(m, CCT_MACHINE_HUGE, "madvise") + want(m, CCT_MACHINE_HUGE_PAGES, "16") +
         want(m, CCT_MACHINE_SWIOTLB, "1073741824") + want(m, CCT_MACHINE_SWIOTLB_USED, "25") +
         want(m, CCT_MACHINE_SWIOTLB_ASKED, "524288,force") + want(m, CCT_MACHINE_UPTIME, "3600.5") +
         want(m, CCT_MACHINE_BOOT, "0f0f");
}

static int child_is_bare(void) {
  struct cct_machine machine;
  setenv("CCTAX_MACHINE", "/nonexistent", 1);
  if (cct_machine_read(NULL, &machine))
    return 91;
  return want(&machine, CCT_MACHINE_NVML, "0") + want(&machine, CCT_MACHINE_CC, "not known") +
         want(&machine, CCT_MACHINE_UPTIME, "not known") + want(&machine, CCT_MACHINE_NUMA_NODES, "not known") +
         want(&machine, CCT_MACHINE_STEAL, "not known");
}

static int child_has_no_words(void) {
  struct cct_machine machine;
  char log[512];
  snprintf(log, sizeof log, "%s/other.log", scratch);
  cct_log_mute(1);
  return cct_machine_read(log, &machine) == CCT_USAGE ? 0 : 92;
}

/* A process keeps the libraries it found first. */
static void expect_zero(int (*child)(void)) {
  int status = 0;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0)
    _exit(child());
  waitpid(pid, &status, 0);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_played_machine_is_read(void **state) {
  (void)state;
  expect_zero(child_reads);
}
static void a_bare_machine_is_not_guessed(void **state) {
  (void)state;
  expect_zero(child_is_bare);
}
static void a_log_without_nccls_words_is_refused(void **state) {
  (void)state;
  expect_zero(child_has_no_words);
}

int main(void) {
  const struct CMUnitTest rules[] = {
      cmocka_unit_test(each_machine_is_judged_as_written_down),
      cmocka_unit_test(every_rule_has_a_machine_where_it_speaks_and_one_where_it_does_not),
      cmocka_unit_test(every_rule_says_what_to_do),
      cmocka_unit_test(only_before_a_run_is_freshness_asked),
      cmocka_unit_test(nothing_known_says_nothing_about_a_gpu),
      cmocka_unit_test(versions_are_numbers),
      cmocka_unit_test(a_broken_recording_is_refused_in_one_line),
  };
  const struct CMUnitTest live[] = {
      cmocka_unit_test(a_played_machine_is_read),
      cmocka_unit_test(a_bare_machine_is_not_guessed),
      cmocka_unit_test(a_log_without_nccls_words_is_refused),
  };
  int failed = cmocka_run_group_tests(rules, load_all, NULL);
  return failed + cmocka_run_group_tests(live, make_tree, scratch_remove);
}
