/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/host_facts.h"

#include <stdio.h>
#include <string.h>

#include "machine/hwloc_door.h"
#include "machine/machine_files.h"

#define NVIDIA 0x10de

static void read_line(const char *path, char *out, size_t size) {
  if (!cct_machine_line(path, out, size))
    snprintf(out, size, "unknown");
}

/* The value of `key` in /proc/cpuinfo, and whether its flags hold tdx_guest. */
static void read_cpu(char *model, size_t size, int *is_tdx_out) {
  char line[8192];
  FILE *file = cct_machine_open("/proc/cpuinfo");
  snprintf(model, size, "unknown");
  *is_tdx_out = 0;
  int has_model = 0, has_flags = 0;
  while (file && !(has_model && has_flags) && fgets(line, sizeof line, file)) {
    char *value = strstr(line, ": ");
    line[strcspn(line, "\n")] = '\0';
    if (!value)
      continue;
    if (!has_model && !strncmp(line, "model name", 10)) {
      snprintf(model, size, "%s", value + 2);
      has_model = 1;
    } else if (!strncmp(line, "flags", 5)) {
      *is_tdx_out = strstr(value, " tdx_guest") != NULL;
      has_flags = 1;
    }
  }
  if (file)
    fclose(file);
}

static const char *find_tee(int is_tdx) {
  if (is_tdx || cct_machine_exists("/dev/tdx_guest") || cct_machine_exists("/sys/class/misc/tdx_guest"))
    return "tdx";
  if (cct_machine_exists("/dev/sev-guest") || cct_machine_exists("/sys/class/misc/sev-guest"))
    return "sev-snp";
  if (cct_machine_exists("/sys/class/misc/arm-cca-guest") || cct_machine_exists("/sys/devices/platform/arm-cca-dev"))
    return "cca";
  /* A machine that cannot be looked at is not one without a TEE. */
  return cct_machine_exists("/proc/cpuinfo") ? "none" : "unknown";
}

static int topology_load(hwloc_topology_t *topology_out) {
  char at[512];
  if (hwloc_topology_init(topology_out) != 0)
    return 0;
  hwloc_topology_set_io_types_filter(*topology_out, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (*cct_machine_fixture())
    hwloc_topology_set_xml(*topology_out, cct_machine_place("/hwloc.xml", at));
  if (hwloc_topology_load(*topology_out) == 0)
    return 1;
  hwloc_topology_destroy(*topology_out);
  return 0;
}

static int is_gpu(hwloc_obj_t device) {
  unsigned base = device->attr->pcidev.class_id >> 8;
  return device->attr->pcidev.vendor_id == NVIDIA && base == 0x03;
}

/* GPU number `index` by PCI address, or NULL; `n_out` (may be NULL) gets how many there are. */
static hwloc_obj_t find_gpu(hwloc_topology_t topology, int index, int *n_out) {
  hwloc_obj_t device = NULL, found = NULL;
  int n = 0;
  while ((device = hwloc_get_next_pcidev(topology, device)))
    if (is_gpu(device) && n++ == index)
      found = device;
  if (n_out)
    *n_out = n;
  return found;
}

void cct_host_boot_id(char id_out[64]) {
  read_line("/proc/sys/kernel/random/boot_id", id_out, 64);
}

void cct_host_facts_read(struct cct_host_facts *facts_out) {
  struct cct_host_facts facts = {.gpus = -1};
  hwloc_topology_t topology;
  int is_tdx;
  char release[64];
  read_cpu(facts.cpu, sizeof facts.cpu, &is_tdx);
  read_line("/proc/sys/kernel/osrelease", release, sizeof release);
  snprintf(facts.kernel, sizeof facts.kernel, "Linux %s", release);
  cct_host_boot_id(facts.boot_id);
  snprintf(facts.tee, sizeof facts.tee, "%s", find_tee(is_tdx));
  snprintf(facts.fixture, sizeof facts.fixture, "%s", cct_machine_fixture());
  if (topology_load(&topology)) {
    facts.cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    find_gpu(topology, -1, &facts.gpus);
    hwloc_topology_destroy(topology);
  }
  *facts_out = facts;
}

/* Cores below `at`'s cpuset; the share of member `index` of `n` is a run of them. Returns how many it has. */
static int share_of(hwloc_topology_t topology, hwloc_const_cpuset_t within, int index, int n, hwloc_cpuset_t share) {
  int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, within, HWLOC_OBJ_CORE);
  int first = cores * index / n, last = cores * (index + 1) / n;
  for (int c = first; c < last; c++) {
    hwloc_obj_t core = hwloc_get_obj_inside_cpuset_by_type(topology, within, HWLOC_OBJ_CORE, (unsigned)c);
    hwloc_bitmap_or(share, share, core->cpuset);
  }
  return last - first;
}

/* Ranks whose GPUs hang on the same part of the machine share that part's cores. */
static int share_near_gpu(hwloc_topology_t topology, int rank, int size, hwloc_cpuset_t share) {
  hwloc_obj_t own = find_gpu(topology, rank, NULL);
  hwloc_obj_t part = own ? hwloc_get_non_io_ancestor_obj(topology, own) : NULL;
  int index = 0, n = 0;
  if (!part || !part->cpuset || hwloc_bitmap_iszero(part->cpuset))
    return 0;
  for (int r = 0; r < size; r++) {
    hwloc_obj_t gpu = find_gpu(topology, r, NULL);
    if (!gpu || hwloc_get_non_io_ancestor_obj(topology, gpu) != part)
      continue;
    index += r < rank;
    n++;
  }
  return share_of(topology, part->cpuset, index, n, share);
}

void cct_rank_bind(int rank, int size, struct cct_binding_facts *facts_out) {
  struct cct_binding_facts facts = {.near_gpu = -1};
  hwloc_topology_t topology;
  if (!topology_load(&topology)) {
    *facts_out = facts;
    return;
  }
  if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) >= size) {
    hwloc_cpuset_t share = hwloc_bitmap_alloc();
    int n_gpus = 0;
    find_gpu(topology, -1, &n_gpus);
    if (n_gpus > rank) {
      facts.cores = share_near_gpu(topology, rank, size, share);
      facts.near_gpu = facts.cores > 0;
    }
    if (!facts.cores)
      facts.cores = share_of(topology, hwloc_topology_get_allowed_cpuset(topology), rank, size, share);
    if (facts.cores && !*cct_machine_fixture() && hwloc_set_cpubind(topology, share, HWLOC_CPUBIND_PROCESS) != 0) {
      facts.cores = 0;
      facts.near_gpu = facts.near_gpu < 0 ? -1 : 0;
    }
    hwloc_bitmap_free(share);
  }
  hwloc_topology_destroy(topology);
  *facts_out = facts;
}
