/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "machine/gpu_passive.h"
#include "machine/gpu_state.h"
#include "machine/host_facts.h"
#include "machine/look_up.h"
#include "machine/machine.h"
#include "machine/machine_files.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define NUMBER(id, value) cct_machine_set_number(m, CCT_MACHINE_##id, (double)(value))
#define TEXT(id, text)    cct_machine_set_text(m, CCT_MACHINE_##id, (text))

/* ---- GPUs ---- */

static const char *word(int index, const char *const *words, int n) {
  return index >= 0 && index < n ? words[index] : "";
}
#define WORD(index, ...)                                                                                               \
  word((index), (const char *const[]){__VA_ARGS__}, (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

static void read_passive(struct cct_machine *m) {
  struct cct_gpu_passive gpu;
  cct_gpu_passive_read(&gpu);
  TEXT(GPU_NAME, gpu.gpu_name);
  NUMBER(CC, gpu.cc);
  NUMBER(CC_FEATURE, gpu.cc_feature);
  TEXT(MULTI_GPU, WORD(gpu.multi_gpu, "none", "protected-pcie", "nvlink-encrypted"));
  TEXT(ENVIRONMENT, WORD(gpu.environment, "unavailable", "simulation", "production"));
  NUMBER(DEV_TOOLS, gpu.dev_tools);
  NUMBER(MULTICAST, gpu.multicast);
}

/* Bits of NVML's mask that say no more than that the GPU idles (1) or runs at the clocks that were asked for (2, 0x10,
 * 0x100). */
#define NOT_SLOWED 0x113LL

static void read_state(struct cct_machine *m) {
  struct cct_gpu_state gpu;
  char version[24];
  double uptime_s = 0;
  cct_gpu_state_read(&gpu);
  NUMBER(NVML, gpu.is_nvml);
  NUMBER(GPU_COUNT, gpu.gpus);
  TEXT(DRIVER, gpu.driver);
  snprintf(version, sizeof version, "%d.%d", gpu.cuda / 1000, gpu.cuda % 1000 / 10);
  TEXT(CUDA_DRIVER, gpu.cuda > 0 ? version : "");
  NUMBER(READY, gpu.is_ready);
  NUMBER(CC_CAPABLE, gpu.is_capable);
  TEXT(NVML_CPU, WORD(gpu.cpu_tee, "none", "sev", "tdx", "sev-snp", "sev-snp-vtom"));
  NUMBER(MEMORY, gpu.memory_bytes);
  NUMBER(RESERVED, gpu.reserved_bytes);
  NUMBER(PROTECTED, gpu.protected_bytes);
  NUMBER(UNPROTECTED, gpu.unprotected_bytes);
  TEXT(FABRIC, WORD(gpu.fabric, "none", "not-started", "in-progress", "completed"));
  NUMBER(FABRIC_STATUS, gpu.fabric_status);
  NUMBER(PERSISTENCE, gpu.is_persistent);
  NUMBER(MIG, gpu.is_mig);
  NUMBER(POWER_LIMIT, gpu.power_limit_w);
  NUMBER(POWER_DEFAULT, gpu.power_default_w);
  NUMBER(SM_MHZ_LOWEST, gpu.sm_mhz_lowest);
  NUMBER(SM_MHZ_HIGHEST, gpu.sm_mhz_highest);
  NUMBER(SLOWED, gpu.slowed_by < 0 ? -1 : gpu.slowed_by & ~NOT_SLOWED);
  NUMBER(TEMPERATURE, gpu.temperature_c);
  NUMBER(CONTEXTS, gpu.contexts);
  NUMBER(PAST, gpu.past_processes);
  int is_timed = cct_machine_number("/proc/uptime", &uptime_s) && uptime_s > 0;
  NUMBER(WORKED, is_timed && gpu.energy_j >= 0 && gpu.power_w > 0 ? gpu.energy_j / uptime_s / gpu.power_w : -1);
}

/* ---- libraries ---- */

static void *open_first(const char *const *names) {
  void *library = NULL;
  for (int i = 0; names[i] && !library; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

/* None of these opens a GPU. The libraries stay open: unloading one takes its exit handlers with it. */
static void read_libraries(struct cct_machine *m) {
  static const char *const nccl[] = {"libnccl.so.2", NULL}, *const crypto[] = {"libcrypto.so.3", NULL},
                           *const cudart[] = {"libcudart.so", "libcudart.so.13", "libcudart.so.12", NULL};
  int (*get_version)(int *), version = 0;
  const char *(*say)(int);
  char text[128], *space;
  void *library = open_first(nccl);
  if (library) {
    LOOK_UP(library, "ncclGetVersion", get_version);
    if (get_version && get_version(&version) == 0 && version >= 10000) {
      snprintf(text, sizeof text, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
      TEXT(NCCL, text);
    }
  }
  library = open_first(cudart);
  if (library) {
    LOOK_UP(library, "cudaRuntimeGetVersion", get_version);
    if (get_version && get_version(&version) == 0) {
      snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
      TEXT(CUDA_RUNTIME, text);
    }
  }
  library = open_first(crypto);
  if (library) {
    LOOK_UP(library, "OpenSSL_version", say);
    snprintf(text, sizeof text, "%s", say ? say(0) : ""); /* "OpenSSL 3.0.22 2 Jun 2026" */
    space = strchr(text, ' ');
    if (space) {
      space[1 + strcspn(space + 1, " ")] = '\0';
      TEXT(OPENSSL, space + 1);
    }
  }
  const char *nvls = getenv("NCCL_NVLS_ENABLE");
  TEXT(NVLS_ENABLE, nvls ? nvls : "");
}

/* ---- CPU and its TEE ---- */

static int has_word(const char *text, const char *want) {
  size_t length = strlen(want);
  for (const char *at = text; (at = strstr(at, want)); at += length)
    if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\n' || !at[length]))
      return 1;
  return 0;
}

static void read_flags(struct cct_machine *m, int *is_tdx_out) {
  char line[8192];
  FILE *file = cct_machine_open("/proc/cpuinfo");
  *is_tdx_out = 0;
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, "flags", 5) != 0)
      continue;
    NUMBER(VAES, has_word(line, "vaes") && has_word(line, "avx512f"));
    NUMBER(HYPERVISOR, has_word(line, "hypervisor"));
    *is_tdx_out = has_word(line, "tdx_guest");
    break;
  }
  if (file)
    fclose(file);
}

static void read_cpu(struct cct_machine *m) {
  static const char *const paths[] = {"/dev/tdx_guest", "/dev/sev-guest", "/sys/class/misc/tdx_guest",
                                      "/sys/class/misc/sev-guest", "/sys/kernel/config/tsm/report"};
  struct cct_host_facts host;
  char seen[128] = "";
  size_t used = 0;
  int is_tdx;
  cct_host_facts_read(&host);
  TEXT(CPU, host.cpu);
  TEXT(KERNEL, host.kernel);
  TEXT(BOOT, host.boot_id);
  TEXT(TEE, host.tee);
  NUMBER(CORES, host.cores > 0 ? host.cores : -1);
  NUMBER(GPU_PCI, host.gpus);
  read_flags(m, &is_tdx);
  if (is_tdx)
    used = (size_t)snprintf(seen, sizeof seen, "flag tdx_guest");
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    if (cct_machine_exists(paths[i]) && used < sizeof seen)
      used += (size_t)snprintf(seen + used, sizeof seen - used, "%s%s", used ? ", " : "", paths[i]);
  TEXT(TEE_EVIDENCE, used ? seen : "none");
  NUMBER(TEE_DEVICE, cct_machine_exists(paths[0]) || cct_machine_exists(paths[1]));
}

/* KVM tells a guest whose virtual CPUs are never taken away (Documentation/virt/kvm/x86/cpuid.rst). Other hypervisors
 * have no such word. */
static void read_hint(struct cct_machine *m) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  char name[13] = "";
  if (m->v[CCT_MACHINE_HYPERVISOR].number != 1 || *cct_machine_fixture())
    return;
  __cpuid(0x40000000, a, b, c, d);
  memcpy(name, &b, 4);
  memcpy(name + 4, &c, 4);
  memcpy(name + 8, &d, 4);
  if (strcmp(name, "KVMKVMKVM") != 0 || a < 0x40000001)
    return;
  __cpuid(0x40000001, a, b, c, d);
  NUMBER(DEDICATED, d & 1);
#else
  (void)m;
#endif
}

/* ---- the guest ---- */

static int read_ticks(double *steal_out, double *all_out) {
  double ticks[8] = {0};
  FILE *file = cct_machine_open("/proc/stat");
  int n = file ? fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &ticks[0], &ticks[1], &ticks[2], &ticks[3],
                        &ticks[4], &ticks[5], &ticks[6], &ticks[7])
               : 0;
  if (file)
    fclose(file);
  *steal_out = ticks[7];
  *all_out = 0;
  for (int i = 0; i < 8; i++)
    *all_out += ticks[i];
  return n == 8 && *all_out > 0;
}

static void read_steal(struct cct_machine *m) {
  double steal[2], all[2];
  if (!read_ticks(&steal[0], &all[0]))
    return;
  NUMBER(STEAL_BOOT, 100 * steal[0] / all[0]);
  if (*cct_machine_fixture())
    return;
  nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
  if (read_ticks(&steal[1], &all[1]) && all[1] > all[0])
    NUMBER(STEAL, 100 * (steal[1] - steal[0]) / (all[1] - all[0]));
}

static int is_gpu(const char *device) {
  char path[300], text[32];
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", device);
  if (!cct_machine_line(path, text, sizeof text) || strcmp(text, "0x10de") != 0)
    return 0;
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/class", device);
  return cct_machine_line(path, text, sizeof text) && !strncmp(text, "0x03", 4);
}

static void read_numa(struct cct_machine *m) {
  char at[512], path[300], text[32];
  struct dirent *entry;
  double balancing;
  int nodes = 0, without = 0, gpus = 0;
  DIR *folder = opendir(cct_machine_place("/sys/devices/system/node", at));
  while (folder && (entry = readdir(folder)))
    nodes += !strncmp(entry->d_name, "node", 4) && entry->d_name[4] >= '0' && entry->d_name[4] <= '9';
  if (folder)
    closedir(folder);
  NUMBER(NUMA_NODES, nodes > 0 ? nodes : -1);
  folder = opendir(cct_machine_place("/sys/bus/pci/devices", at));
  while (folder && (entry = readdir(folder))) {
    if (entry->d_name[0] == '.' || !is_gpu(entry->d_name))
      continue;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", entry->d_name);
    without += !cct_machine_line(path, text, sizeof text) || text[0] == '-';
    gpus++;
  }
  if (folder)
    closedir(folder);
  NUMBER(GPUS_WITHOUT_NODE, gpus ? without : -1);
  NUMBER(NUMA_BALANCING, cct_machine_number("/proc/sys/kernel/numa_balancing", &balancing) ? balancing : -1);
}

/* Sizes in slabs of 2 KiB (IO_TLB_SHIFT 11); debugfs is root's. */
static void read_swiotlb(struct cct_machine *m) {
  char line[4096], *asked;
  double slabs, used;
  if (cct_machine_number("/sys/kernel/debug/swiotlb/io_tlb_nslabs", &slabs)) {
    NUMBER(SWIOTLB, slabs * 2048);
    if (slabs > 0 && cct_machine_number("/sys/kernel/debug/swiotlb/io_tlb_used", &used))
      NUMBER(SWIOTLB_USED, 100 * used / slabs);
  }
  if (!cct_machine_line("/proc/cmdline", line, sizeof line))
    return;
  asked = strstr(line, "swiotlb=");
  if (asked)
    asked[strcspn(asked, " ")] = '\0';
  TEXT(SWIOTLB_ASKED, asked ? asked + strlen("swiotlb=") : "nothing");
}

static void read_guest(struct cct_machine *m) {
  char line[256];
  double value, cores = m->v[CCT_MACHINE_CORES].number;
  read_hint(m);
  read_steal(m);
  read_numa(m);
  read_swiotlb(m);
  if (cct_machine_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line)) {
    char *choice = strchr(line, '['), *end = strchr(line, ']'); /* "always [madvise] never" */
    if (choice && end) {
      *end = '\0';
      TEXT(HUGE, choice + 1);
    }
  }
  NUMBER(HUGE_PAGES, cct_machine_number("/proc/sys/vm/nr_hugepages", &value) ? value : -1);
  NUMBER(UPTIME, cct_machine_number("/proc/uptime", &value) ? value : -1);
  NUMBER(LOAD, cct_machine_number("/proc/loadavg", &value) && cores > 0 ? value / cores : -1);
}

/* ---- NCCL's own words ---- */

static enum cct_status read_log(struct cct_machine *m, const char *path) {
  char *text = NULL;
  size_t length;
  enum cct_status status = cct_read_file(path, (size_t)1 << 30, &text, &length);
  if (status)
    return status;
  const char *on = strstr(text, "CC On, workFifoBytes "), *off = strstr(text, "CC Off, workFifoBytes "),
             *not_there = strstr(text, "NVLS multicast support is not available"),
             *there = strstr(text, "NVLS multicast support is available");
  if (on || off) {
    NUMBER(NCCL_SAYS_CC, on != NULL);
    NUMBER(NCCL_FIFO, strtod(strstr(on ? on : off, "Bytes ") + 6, NULL));
  }
  if (there || not_there)
    NUMBER(NCCL_SAYS_NVLS, not_there == NULL);
  free(text);
  if (!on && !off && !there && !not_there)
    return cct_fail(CCT_USAGE, "%s: no line of NCCL about CC or NVLS; set NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NVLS",
                    path);
  return CCT_OK;
}

enum cct_status cct_machine_read(const char *nccl_log, struct cct_machine *machine_out) {
  struct cct_machine machine = {0}, *m = &machine;
  enum cct_status status = nccl_log ? read_log(m, nccl_log) : CCT_OK;
  if (status)
    return status;
  read_passive(m);
  read_state(m);
  read_libraries(m);
  read_cpu(m);
  read_guest(m);
  *machine_out = machine;
  return CCT_OK;
}
