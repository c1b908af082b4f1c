/* SPDX-License-Identifier: Apache-2.0
 * A machine as facts: every fact of CCT_MACHINE_FACTS with its value or none, taken from this machine or from a
 * recorded one. One JSON form holds both: what `cctax doctor --json` prints under "machine" is what --fixture reads. */
#ifndef CCT_MACHINE_MACHINE_H
#define CCT_MACHINE_MACHINE_H

#include "base/status.h"

/* X(ID, name, class, kind, where it is read). Classes: identity, condition, replicate, drift (docs/record.md). Kinds:
 * NUMBER (yes is 1, no is 0) and TEXT. Over several GPUs the worst value counts. */
#define CCT_MACHINE_FACTS(X)                                                                                           \
  X(NVML, "nvml", condition, NUMBER, "libnvidia-ml.so.1 by dlopen")                                                    \
  X(GPU_COUNT, "gpu.count", identity, NUMBER, "nvmlDeviceGetCount")                                                    \
  X(GPU_NAME, "gpu.name", identity, TEXT, "nvmlDeviceGetName, where all agree")                                        \
  X(GPU_PCI, "gpu.pci", identity, NUMBER, "hwloc: NVIDIA devices on the bus")                                          \
  X(DRIVER, "driver", identity, TEXT, "nvmlSystemGetDriverVersion")                                                    \
  X(CUDA_DRIVER, "cuda.driver", identity, TEXT, "nvmlSystemGetCudaDriverVersion")                                      \
  X(CUDA_RUNTIME, "cuda.runtime", identity, TEXT, "cudaRuntimeGetVersion of libcudart.so by dlopen")                   \
  X(NCCL, "nccl", identity, TEXT, "ncclGetVersion of libnccl.so.2 by dlopen")                                          \
  X(OPENSSL, "openssl", identity, TEXT, "OpenSSL_version of libcrypto.so.3 by dlopen")                                 \
  X(CC, "gpu.cc", condition, NUMBER, "cc_feature or a multi-GPU mode")                                                 \
  X(CC_FEATURE, "gpu.cc_feature", condition, NUMBER, "nvmlSystemGetConfComputeSettings or ...State")                   \
  X(MULTI_GPU, "gpu.multi_gpu", condition, TEXT, "nvmlSystemGetConfComputeSettings")                                   \
  X(ENVIRONMENT, "gpu.environment", condition, TEXT, "nvmlSystemGetConfComputeSettings or ...State")                   \
  X(DEV_TOOLS, "gpu.devtools", condition, NUMBER, "nvmlSystemGetConfComputeSettings or ...State")                      \
  X(READY, "gpu.ready", condition, NUMBER, "nvmlSystemGetConfComputeGpusReadyState")                                   \
  X(CC_CAPABLE, "gpu.cc_capable", identity, NUMBER, "nvmlSystemGetConfComputeCapabilities")                            \
  X(NVML_CPU, "nvml.cpu_tee", condition, TEXT, "nvmlSystemGetConfComputeCapabilities")                                 \
  X(MEMORY, "gpu.memory_bytes", identity, NUMBER, "nvmlDeviceGetMemoryInfo_v2")                                        \
  X(RESERVED, "gpu.reserved_bytes", condition, NUMBER, "nvmlDeviceGetMemoryInfo_v2")                                   \
  X(PROTECTED, "gpu.protected_bytes", condition, NUMBER, "nvmlDeviceGetConfComputeMemSizeInfo")                        \
  X(UNPROTECTED, "gpu.unprotected_bytes", condition, NUMBER, "nvmlDeviceGetConfComputeMemSizeInfo")                    \
  X(MULTICAST, "gpu.multicast", condition, NUMBER, "CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED")                          \
  X(FABRIC, "gpu.fabric", condition, TEXT, "nvmlDeviceGetGpuFabricInfo")                                               \
  X(FABRIC_STATUS, "gpu.fabric_status", condition, NUMBER, "nvmlDeviceGetGpuFabricInfo")                               \
  X(PERSISTENCE, "gpu.persistence", condition, NUMBER, "nvmlDeviceGetPersistenceMode")                                 \
  X(MIG, "gpu.mig", condition, NUMBER, "nvmlDeviceGetMigMode")                                                         \
  X(POWER_LIMIT, "gpu.power_limit_w", condition, NUMBER, "nvmlDeviceGetEnforcedPowerLimit")                            \
  X(POWER_DEFAULT, "gpu.power_default_w", identity, NUMBER, "nvmlDeviceGetPowerManagementDefaultLimit")                \
  X(SM_MHZ_LOWEST, "gpu.sm_mhz_lowest", drift, NUMBER, "nvmlDeviceGetClockInfo")                                       \
  X(SM_MHZ_HIGHEST, "gpu.sm_mhz_highest", drift, NUMBER, "nvmlDeviceGetClockInfo")                                     \
  X(SLOWED, "gpu.slowed_by", drift, NUMBER, "nvmlDeviceGetCurrentClocksThrottleReasons, but idle and asked for")       \
  X(TEMPERATURE, "gpu.temperature_c", drift, NUMBER, "nvmlDeviceGetTemperature")                                       \
  X(CONTEXTS, "gpu.contexts", drift, NUMBER, "nvmlDeviceGetComputeRunningProcesses")                                   \
  X(PAST, "gpu.past_processes", drift, NUMBER, "nvmlDeviceGetAccountingPids, where accounting is on")                  \
  X(WORKED, "gpu.power_ratio", drift, NUMBER, "mean power since the driver was loaded / power now")                    \
  X(NCCL_SAYS_CC, "nccl.says_cc", condition, NUMBER, "NCCL's log: CC On|Off, workFifoBytes N")                         \
  X(NCCL_FIFO, "nccl.work_fifo_bytes", condition, NUMBER, "NCCL's log: CC On|Off, workFifoBytes N")                    \
  X(NCCL_SAYS_NVLS, "nccl.says_nvls", condition, NUMBER, "NCCL's log: NVLS multicast support is [not ]available")      \
  X(NVLS_ENABLE, "env.NCCL_NVLS_ENABLE", condition, TEXT, "environment")                                               \
  X(CPU, "cpu", identity, TEXT, "/proc/cpuinfo")                                                                       \
  X(CORES, "cpu.cores", identity, NUMBER, "hwloc")                                                                     \
  X(VAES, "cpu.vaes", identity, NUMBER, "/proc/cpuinfo flags: vaes and avx512f")                                       \
  X(TEE, "cpu.tee", condition, TEXT, "/proc/cpuinfo flags, /dev and /sys/class/misc")                                  \
  X(TEE_EVIDENCE, "cpu.tee_evidence", condition, TEXT, "what of these is there")                                       \
  X(TEE_DEVICE, "cpu.tee_device", condition, NUMBER, "/dev/tdx_guest, /dev/sev-guest")                                 \
  X(KERNEL, "kernel", condition, TEXT, "/proc/sys/kernel/osrelease")                                                   \
  X(BOOT, "boot_id", replicate, TEXT, "/proc/sys/kernel/random/boot_id")                                               \
  X(HYPERVISOR, "guest.hypervisor", condition, NUMBER, "/proc/cpuinfo flags: hypervisor")                              \
  X(DEDICATED, "guest.dedicated_vcpus", condition, NUMBER, "KVM_HINTS_REALTIME, CPUID 0x40000001")                     \
  X(STEAL, "guest.steal_pct", drift, NUMBER, "/proc/stat over 0.3 s")                                                  \
  X(STEAL_BOOT, "guest.steal_boot_pct", drift, NUMBER, "/proc/stat since boot")                                        \
  X(NUMA_NODES, "guest.numa_nodes", identity, NUMBER, "/sys/devices/system/node")                                      \
  X(NUMA_BALANCING, "guest.numa_balancing", condition, NUMBER, "/proc/sys/kernel/numa_balancing")                      \
  X(GPUS_WITHOUT_NODE, "guest.gpus_without_node", identity, NUMBER, "/sys/bus/pci/devices/*/numa_node")                \
  X(HUGE, "guest.transparent_huge_pages", condition, TEXT, "/sys/kernel/mm/transparent_hugepage/enabled")              \
  X(HUGE_PAGES, "guest.huge_pages", condition, NUMBER, "/proc/sys/vm/nr_hugepages")                                    \
  X(SWIOTLB, "guest.swiotlb_bytes", condition, NUMBER, "/sys/kernel/debug/swiotlb/io_tlb_nslabs")                      \
  X(SWIOTLB_USED, "guest.swiotlb_used_pct", drift, NUMBER, "/sys/kernel/debug/swiotlb/io_tlb_used")                    \
  X(SWIOTLB_ASKED, "guest.swiotlb_asked", condition, TEXT, "/proc/cmdline: swiotlb=")                                  \
  X(TRY_PINNED, "try.pinned_error", condition, NUMBER, "cudaHostAlloc and a copy; cctax doctor --try")                 \
  X(TRY_MAPPED, "try.mapped_error", condition, NUMBER, "cudaHostAllocMapped, read by a kernel")                        \
  X(TRY_MANAGED, "try.managed_error", condition, NUMBER, "cudaMallocManaged, 2 MiB, touched by a kernel")              \
  X(TRY_REGISTER, "try.register_error", condition, NUMBER, "cudaHostRegister")                                         \
  X(TRY_NO_PEER, "try.without_peer_access", condition, NUMBER, "cudaDeviceCanAccessPeer, pairs of GPUs")               \
  X(TRY_IPC, "try.ipc_error", condition, NUMBER, "cudaIpcOpenMemHandle of another process's memory")                   \
  X(TRY_EVENTS, "try.event_off_pct", condition, NUMBER, "events against %globaltimer around one loop of clock64")      \
  X(TRY_TIMER, "try.globaltimer_off_pct", condition, NUMBER, "%globaltimer against the host's clock, the same loop")   \
  X(TRY_CYCLES, "try.clock64_off_pct", condition, NUMBER, "cycles a ns of clock64: a loop 10 times as long")           \
  X(TRY_STALE_GPU, "try.stale_gpu_reads", condition, NUMBER, "the GPU's reads of mapped memory that changed, of 1000") \
  X(TRY_STALE_HOST, "try.stale_host_reads", condition, NUMBER, "the host's, of what a kernel wrote")                   \
  X(TRY_HOLD_IDLE, "try.copy_holds_idle_us", condition, NUMBER, "cudaMemcpyAsync of 64 MiB on an idle stream")         \
  X(TRY_HOLD_BEHIND, "try.copy_holds_behind_us", condition, NUMBER, "cudaMemcpyAsync behind a kernel of 20 ms")        \
  X(TRY_KERNELS, "try.kernels_beside", condition, NUMBER, "two kernels on two streams / one of them")                  \
  X(TRY_COPY, "try.copy_beside", condition, NUMBER, "a copy beside a kernel as long / the copy alone")                 \
  X(TRY_CHECKPOINT, "try.checkpoint", condition, NUMBER, "cuCheckpointProcessLock of libcuda")                         \
  X(TRY_GDR, "try.gdr", condition, NUMBER, "CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED")                            \
  X(UPTIME, "uptime_s", drift, NUMBER, "/proc/uptime")                                                                 \
  X(LOAD, "load_per_core", drift, NUMBER, "/proc/loadavg, 1 minute, by cores")

enum cct_machine_id {
#define CCT_MACHINE_ENUM(id, ...) CCT_MACHINE_##id,
  CCT_MACHINE_FACTS(CCT_MACHINE_ENUM)
#undef CCT_MACHINE_ENUM
  CCT_MACHINE_FACT_COUNT
};

enum cct_machine_kind {
  CCT_MACHINE_NUMBER,
  CCT_MACHINE_TEXT,
};
struct cct_machine_fact {
  const char *name, *fact_class;
  enum cct_machine_kind kind;
  const char *where;
};
extern const struct cct_machine_fact cct_machine_facts[CCT_MACHINE_FACT_COUNT];

struct cct_machine_value {
  int is_known;
  double number;
  char text[128];
};
struct cct_machine {
  struct cct_machine_value v[CCT_MACHINE_FACT_COUNT];
};

void cct_machine_set_number(struct cct_machine *machine, enum cct_machine_id id, double value);   /* < 0: not known */
void cct_machine_set_text(struct cct_machine *machine, enum cct_machine_id id, const char *text); /* "": not known */
/* "gpu.cc 1", or "gpu.cc not known", into `out`, which it returns. */
char *cct_machine_say(const struct cct_machine *machine, enum cct_machine_id id, char out[192]);

/* This machine. Takes about half a second: steal time is watched for a while. Nothing is changed and no GPU is opened.
 * `nccl_log` is a file of NCCL_DEBUG=INFO (NCCL_DEBUG_SUBSYS=INIT,NVLS) or NULL; one that says neither is refused. */
enum cct_status cct_machine_read(const char *nccl_log, struct cct_machine *machine_out) CCT_CHECKED;
/* A recorded one: PATH is what `cctax doctor --json` printed. */
enum cct_status cct_machine_load(const char *path, struct cct_machine *machine_out) CCT_CHECKED;
/* {"facts":[{"name","class","value","read"}]}; NULL when out of memory. */
struct cct_json;
struct cct_json *cct_machine_to_json(const struct cct_machine *machine);

#endif
