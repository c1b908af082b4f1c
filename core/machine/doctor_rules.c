/* SPDX-License-Identifier: Apache-2.0
 * The rules of the doctor. docs/doctor.md explains each check; doctor_test.c holds every row against recorded machines,
 * at least one where it speaks and one where it does not. */
#include "machine/doctor.h"

#include <stddef.h>

/* One line each, in columns. */
/* clang-format off */
#define IS(id, n)         {CCT_EQUALS, CCT_MACHINE_##id, (n), NULL, CCT_MACHINE_##id}
#define OVER(id, n)       {CCT_OVER, CCT_MACHINE_##id, (n), NULL, CCT_MACHINE_##id}
#define UNDER(id, n)      {CCT_UNDER, CCT_MACHINE_##id, (n), NULL, CCT_MACHINE_##id}
#define BELOW(id, than)   {CCT_BELOW, CCT_MACHINE_##id, 0, NULL, CCT_MACHINE_##than}
#define WORD(id, s)       {CCT_WORD, CCT_MACHINE_##id, 0, (s), CCT_MACHINE_##id}
#define NOT_WORD(id, s)   {CCT_NOT_WORD, CCT_MACHINE_##id, 0, (s), CCT_MACHINE_##id}
#define OLDER(id, s)      {CCT_OLDER, CCT_MACHINE_##id, 0, (s), CCT_MACHINE_##id}
#define SINCE(id, s)      {CCT_SINCE, CCT_MACHINE_##id, 0, (s), CCT_MACHINE_##id}
#define BEHIND(id, than)  {CCT_BEHIND, CCT_MACHINE_##id, 0, NULL, CCT_MACHINE_##than}
#define KNOWN(id)         {CCT_IS_KNOWN, CCT_MACHINE_##id, 0, NULL, CCT_MACHINE_##id}
#define NOT_KNOWN(id)     {CCT_IS_UNKNOWN, CCT_MACHINE_##id, 0, NULL, CCT_MACHINE_##id}
#define ALL(...)          {__VA_ARGS__}

#define ROW(name, verdict, when, says, remedy)         {name, CCT_DOCTOR_##verdict, 0, when, says, remedy, NULL}
#define FRESH(name, verdict, when, says, remedy)       {name, CCT_DOCTOR_##verdict, 1, when, says, remedy, NULL}
#define KNOWN_BAD(name, verdict, when, says, remedy, source) {name, CCT_DOCTOR_##verdict, 0, when, says, remedy, source}
/* clang-format on */

const struct cct_rule cct_rules[] = {
    /* ---- the GPUs and their mode ---- */
    ROW("nvml.no-driver", BAD, ALL(IS(NVML, 0), OVER(GPU_PCI, 0)), "a GPU is on the bus, but NVML does not answer",
        "load the driver and install its library libnvidia-ml.so.1; nvidia-smi must work"),
    ROW("nvml.no-gpu", UNKNOWN, ALL(IS(NVML, 0)), "no GPU can be asked here", "run this on the machine with the GPUs"),
    ROW("nvml.answers", OK, ALL(IS(NVML, 1)), "NVML answers", NULL),

    ROW("cc.no-tee", BAD, ALL(IS(CC, 1), WORD(TEE, "none")),
        "the GPUs are confidential and the CPU is not: a misconfiguration",
        "start the guest as a TDX or SEV-SNP guest, or switch CC off on the host"),
    ROW("cc.protected-pcie", OK, ALL(IS(CC, 1), IS(CC_FEATURE, 0), WORD(MULTI_GPU, "protected-pcie")),
        "confidential by protected PCIe, although NVML's CC feature reads off", NULL),
    ROW("cc.on", OK, ALL(IS(CC, 1)), "GPUs and CPU are confidential: condition on", NULL),
    ROW("cc.tee-only", WARN, ALL(IS(CC, 0), KNOWN(TEE), NOT_WORD(TEE, "none")),
        "the CPU is confidential and the GPUs are not: condition tee",
        "for condition on, set the mode on the host (nvtrust: gpu-admin-tools --set-cc-mode=on) and start the guest "
        "anew"),
    ROW("cc.off", OK, ALL(IS(CC, 0), WORD(TEE, "none")), "nothing is confidential: condition off", NULL),
    ROW("cc.not-told", UNKNOWN, ALL(NOT_KNOWN(CC)), "whether CC is on cannot be told",
        "a driver from R535 on tells it; NCCL takes this answer for off"),

    ROW("multi-gpu.old-driver", WARN, ALL(KNOWN(CC), NOT_KNOWN(MULTI_GPU)),
        "this driver cannot tell protected PCIe and encrypted NVLink from off",
        "install a driver from R550 on, which has nvmlSystemGetConfComputeSettings"),
    ROW("multi-gpu.nvlink-encrypted", OK, ALL(WORD(MULTI_GPU, "nvlink-encrypted")), "NVLink is encrypted", NULL),
    ROW("multi-gpu.protected-pcie", WARN, ALL(WORD(MULTI_GPU, "protected-pcie")),
        "PCIe is protected; NVLink carries plain data",
        "no setting changes it on Hopper; say so beside every figure of this machine"),
    ROW("multi-gpu.apart", WARN, ALL(IS(CC, 1), WORD(MULTI_GPU, "none"), OVER(GPU_COUNT, 1)),
        "several GPUs, each confidential on its own: no peer access between them",
        "for one partition over all, set protected PCIe (Hopper) or NVLink encryption (Blackwell) on the host"),
    ROW("multi-gpu.none", OK, ALL(WORD(MULTI_GPU, "none")), "no multi-GPU mode", NULL),

    ROW("environment.no-production", BAD, ALL(IS(CC, 1), KNOWN(ENVIRONMENT), NOT_WORD(ENVIRONMENT, "production")),
        "the CC environment is not production", "use GPUs and firmware that attest as production"),
    ROW("environment.production", OK, ALL(IS(CC, 1), WORD(ENVIRONMENT, "production")), "production", NULL),
    ROW("environment.not-told", UNKNOWN, ALL(IS(CC, 1), NOT_KNOWN(ENVIRONMENT)), "the CC environment cannot be told",
        "install a driver from R535 on"),

    ROW("devtools.on", BAD, ALL(IS(DEV_TOOLS, 1)), "devtools mode: memory and counters are open, nothing is protected",
        "set the mode to on, not devtools, on the host and start the guest anew"),
    ROW("devtools.off", OK, ALL(IS(CC, 1), IS(DEV_TOOLS, 0)), "devtools mode is off", NULL),

    ROW("ready.no", BAD, ALL(IS(CC, 1), IS(READY, 0)), "the GPUs take no work yet",
        "attest them, then, as root: nvidia-smi conf-compute -srs 1"),
    ROW("ready.yes", OK, ALL(IS(CC, 1), IS(READY, 1)), "the GPUs take work", NULL),
    ROW("ready.not-told", UNKNOWN, ALL(IS(CC, 1), NOT_KNOWN(READY)), "whether the GPUs take work cannot be told",
        "ask nvidia-smi conf-compute -grs"),

    ROW("protected-memory.none", BAD, ALL(IS(CC, 1), IS(PROTECTED, 0)), "no GPU memory is protected",
        "ask nvidia-smi conf-compute -gcm and set the sizes on the host"),
    ROW("protected-memory.some", OK, ALL(IS(CC, 1), OVER(PROTECTED, 0)), "GPU memory is protected", NULL),

    ROW("persistence.off", WARN, ALL(IS(CC, 1), IS(PERSISTENCE, 0)),
        "without persistence every last process ends the secure session, and the next start pays for a new one",
        "run nvidia-persistenced --uvm-persistence-mode"),
    ROW("persistence.on", OK, ALL(IS(CC, 1), IS(PERSISTENCE, 1)), "the driver keeps its session", NULL),

    ROW("mig.on", WARN, ALL(IS(MIG, 1)), "a GPU is cut by MIG: its figures are those of a part",
        "measure whole GPUs, or say so beside the figures"),

    ROW("partition.several", WARN, ALL(IS(CC, 1), OVER(GPU_COUNT, 1)),
        "a submission costs more in a larger partition: published +12 us with 1 GPU, +31 us with 8",
        "measure with the partition that will serve; never carry unit costs from one size to another"),
    ROW("partition.one", OK, ALL(IS(CC, 1), IS(GPU_COUNT, 1)), "a partition of one GPU", NULL),

    /* ---- the CPU's TEE ---- */
    ROW("tee.no-device", WARN, ALL(KNOWN(TEE), NOT_WORD(TEE, "none"), IS(TEE_DEVICE, 0)),
        "a TEE, but no device to attest it", "load the module tdx_guest or sev-guest"),
    ROW("tee.evidence", OK, ALL(KNOWN(TEE), NOT_WORD(TEE, "none"), KNOWN(TEE_EVIDENCE)), "a CPU TEE", NULL),
    ROW("tee.nvml-differs", WARN, ALL(WORD(TEE, "none"), KNOWN(NVML_CPU), NOT_WORD(NVML_CPU, "none")),
        "NVML takes the CPU for a TEE; the kernel shows none", "load the module tdx_guest or sev-guest and ask again"),
    ROW("tee.none", OK, ALL(WORD(TEE, "none")), "no CPU TEE", NULL),

    /* ---- multicast, fabric, NCCL ---- */
    ROW("multicast.lost", WARN, ALL(IS(MULTICAST, 0), OVER(GPU_COUNT, 4)),
        "no NVLink multicast, so no NVLS: all-reduce alone loses about a fifth of its bandwidth on 8 GPUs",
        "count it apart with condition stripped; cctax tune finds what is best without it"),
    ROW("multicast.not-needed", OK, ALL(IS(MULTICAST, 0)), "no NVLink multicast; NCCL does not use it up to 4 GPUs",
        NULL),
    ROW("multicast.despite-cc", WARN, ALL(IS(MULTICAST, 1), IS(CC, 1)),
        "the driver says multicast under CC, as no published machine does",
        "believe NCCL's own log (--nccl-log) and never force NVLS"),
    ROW("multicast.there", OK, ALL(IS(MULTICAST, 1)), "NVLink multicast", NULL),
    ROW("multicast.not-told", UNKNOWN, ALL(IS(NVML, 1), NOT_KNOWN(MULTICAST)), "multicast cannot be told",
        "install a driver from R530 on"),

    ROW("nvls.forced-without", BAD, ALL(WORD(NVLS_ENABLE, "1"), IS(MULTICAST, 0)),
        "NCCL_NVLS_ENABLE=1 skips the driver's no: every communicator will fail", "unset NCCL_NVLS_ENABLE"),
    ROW("nvls.forced", WARN, ALL(WORD(NVLS_ENABLE, "1")),
        "NCCL_NVLS_ENABLE=1 skips the driver's check; a failed bind can take GPUs out of service",
        "unset NCCL_NVLS_ENABLE"),
    ROW("nvls.off-by-hand", WARN, ALL(WORD(NVLS_ENABLE, "0"), IS(MULTICAST, 1)),
        "NCCL_NVLS_ENABLE=0 takes NVLS away by hand: condition off would be stripped", "unset NCCL_NVLS_ENABLE"),

    ROW("fabric.failed", BAD, ALL(WORD(FABRIC, "completed"), OVER(FABRIC_STATUS, 0)),
        "a GPU's registration with the fabric failed",
        "read nvidia-smi -q, section Fabric; restart nvidia-fabricmanager"),
    ROW("fabric.ready", OK, ALL(WORD(FABRIC, "completed")), "the NVLink fabric is ready", NULL),
    ROW("fabric.not-ready", BAD, ALL(KNOWN(FABRIC), NOT_WORD(FABRIC, "none"), OVER(GPU_COUNT, 1)),
        "the NVLink fabric is not ready: peer access will fail", "start nvidia-fabricmanager and wait for it"),

    ROW("nccl-says.cc-missed", BAD, ALL(IS(NCCL_SAYS_CC, 0), IS(CC, 1)), "CC is on and NCCL runs as if it were off",
        "install the NCCL that knows this mode (check nccl-cc)"),
    ROW("nccl-says.cc-wrong", WARN, ALL(IS(NCCL_SAYS_CC, 1), IS(CC, 0)), "NCCL says CC On, NVML says off",
        "the log is of another machine or boot: make a new one"),
    ROW("nccl-says.no-nvls", WARN, ALL(IS(NCCL_SAYS_NVLS, 0), IS(MULTICAST, 1)),
        "the driver has multicast and NCCL does not use it", "unset NCCL_NVLS_ENABLE; look for NVLS lines in the log"),
    ROW("nccl-says.agrees", OK, ALL(KNOWN(NCCL_SAYS_CC), KNOWN(CC)), "NCCL and NVML agree about CC", NULL),

    /* ---- known bad combinations ---- */
    KNOWN_BAD("nccl-cc.single", BAD, ALL(IS(CC, 1), OLDER(NCCL, "2.22.3")), "this NCCL does not know CC",
              "install NCCL 2.22.3 or later", "NCCL 2.22.3 src/misc/nvmlwrap.cc: the first with ncclNvmlGetCCStatus"),
    KNOWN_BAD("nccl-cc.protected-pcie", BAD, ALL(WORD(MULTI_GPU, "protected-pcie"), OLDER(NCCL, "2.24.3")),
              "this NCCL takes protected PCIe for off", "install NCCL 2.24.3 or later",
              "NCCL 2.24.3 src/misc/nvmlwrap.cc: the first with multiGpuProtectedPCIE"),
    KNOWN_BAD("nccl-cc.nvlink-encrypted", BAD, ALL(WORD(MULTI_GPU, "nvlink-encrypted"), OLDER(NCCL, "2.28.3")),
              "this NCCL takes encrypted NVLink for off", "install NCCL 2.28.3 or later",
              "NCCL 2.28.3 src/misc/nvmlwrap.cc: the first with multiGpuNVLE"),
    KNOWN_BAD("driver-nvlink.old", BAD, ALL(WORD(MULTI_GPU, "nvlink-encrypted"), OLDER(DRIVER, "590")),
              "encrypted NVLink is supported from R590 on", "install driver 590.48.01 or later",
              "NVIDIA Trusted Computing Solutions release notes, R590 TRD1; nvtrust issue 109"),
    KNOWN_BAD("driver-contexts.r550", WARN, ALL(IS(CC, 1), SINCE(DRIVER, "550"), OLDER(DRIVER, "551")),
              "R550 takes at most 18 contexts a GPU under CC", "install a later driver, or keep processes below it",
              "NVIDIA Trusted Computing Solutions release notes, R550"),
    KNOWN_BAD("driver-stale.595-91", WARN, ALL(IS(CC, 1), WORD(DRIVER, "595.91.07")),
              "the GPU was seen to read old values of mapped host memory",
              "measure it (cctax probe, stale_memory); copy explicitly, never poll mapped memory",
              "vllm-project/vllm issue 57224: H100 NVL, driver 595.91.07"),
    KNOWN_BAD("host-register.refused", WARN, ALL(IS(CC, 1)), "cudaHostRegister is refused under CC (error 801)",
              "allocate with cudaHostAlloc; see probe host_register",
              "NVIDIA R580 release notes RN-12523; NVIDIA/nvtrust issue 57; vllm-project/vllm issue 55428"),
    KNOWN_BAD("cuda-behind.major", BAD, ALL(BEHIND(CUDA_DRIVER, CUDA_RUNTIME)),
              "the CUDA runtime is newer than the driver takes", "install a driver for this CUDA, or an older CUDA",
              "CUDA compatibility guide: minor versions of one major are taken, and need PTX to fit"),
    KNOWN_BAD("openssl-vaes.maybe", WARN, ALL(IS(VAES, 1), OLDER(OPENSSL, "3.1")),
              "this OpenSSL may lack the VAES code for AES-GCM: emulated copies would be up to 3 times too slow",
              "compare probe aes with a core's 9 GB/s or more; OpenSSL 3.1 has it, some distributions' 3.0 too",
              "measured on cores with VAES: 4.4 GB/s with Debian's 3.0.22, 12.3 GB/s with Ubuntu's 3.0.13"),

    /* ---- tried for real (--try) ---- */
    ROW("try-pinned.refused", BAD, ALL(OVER(TRY_PINNED, 0)), "pinned memory is refused, or cannot be copied from",
        "look at the CUDA error code; ulimit -l, the guest's memory, swiotlb"),
    ROW("try-pinned.works", OK, ALL(IS(TRY_PINNED, 0)), "pinned memory works", NULL),

    ROW("try-mapped.refused", WARN, ALL(OVER(TRY_MAPPED, 0)), "no kernel can read mapped host memory",
        "copy explicitly; take engines' zero-copy paths away"),
    ROW("try-mapped.works", OK, ALL(IS(TRY_MAPPED, 0)), "mapped memory works", NULL),

    ROW("try-managed.refused", WARN, ALL(OVER(TRY_MANAGED, 0)), "no managed memory",
        "allocate with cudaMalloc and copy explicitly"),
    ROW("try-managed.works", OK, ALL(IS(TRY_MANAGED, 0)), "managed memory works", NULL),

    ROW("try-register.refused", WARN, ALL(OVER(TRY_REGISTER, 0)), "cudaHostRegister is refused",
        "allocate with cudaHostAlloc; engines that register memory of their own need that switched off"),
    ROW("try-register.works", OK, ALL(IS(TRY_REGISTER, 0)), "cudaHostRegister works", NULL),

    ROW("try-peer.none", WARN, ALL(OVER(TRY_NO_PEER, 0)),
        "pairs of GPUs without peer access: what they say goes by the host",
        "set the multi-GPU mode on the host, or measure one GPU"),
    ROW("try-peer.works", OK, ALL(IS(TRY_NO_PEER, 0)), "every GPU reaches every other", NULL),

    ROW("try-ipc.refused", WARN, ALL(OVER(TRY_IPC, 0)),
        "memory of another process cannot be opened: one-shot all-reduces and engines' own kernels fall back",
        "take custom all-reduce kernels away; a container needs --ipc=host"),
    ROW("try-ipc.works", OK, ALL(IS(TRY_IPC, 0)), "memory of another process can be opened", NULL),

    ROW("try-timer.off", BAD, ALL(OVER(TRY_TIMER, 1)), "%globaltimer and the host's clock disagree: stamps are no time",
        "believe the host's clock alone; ask for a driver that mends it"),
    ROW("try-timer.agrees", OK, ALL(KNOWN(TRY_TIMER)), "%globaltimer keeps the host's time", NULL),

    ROW("try-events.off", WARN, ALL(OVER(TRY_EVENTS, 1)),
        "CUDA events and %globaltimer disagree: what events time is not so",
        "believe the host's clock and %globaltimer, as cctax does; nvbandwidth and profilers time by events"),
    ROW("try-events.agree", OK, ALL(KNOWN(TRY_EVENTS)), "events keep %globaltimer's time", NULL),

    ROW("try-clock64.varies", WARN, ALL(OVER(TRY_CYCLES, 5)), "clock64 runs at a changing rate: the clocks move",
        "let the GPU warm up; have the host lock the clocks, or say so beside the figures"),
    ROW("try-clock64.steady", OK, ALL(KNOWN(TRY_CYCLES)), "clock64 runs at one rate", NULL),

    ROW("try-stale.gpu", BAD, ALL(OVER(TRY_STALE_GPU, 0)), "the GPU reads old values of mapped host memory",
        "install another driver (check driver-stale); copy explicitly, never poll mapped memory"),
    ROW("try-stale.host", BAD, ALL(OVER(TRY_STALE_HOST, 0)),
        "the host reads old values of what a finished kernel wrote",
        "install another driver; copy explicitly, never poll mapped memory"),
    ROW("try-stale.none", OK, ALL(IS(TRY_STALE_GPU, 0), IS(TRY_STALE_HOST, 0)),
        "mapped memory is what was written last", NULL),

    ROW("try-async.idle", WARN, ALL(OVER(TRY_HOLD_IDLE, 300)),
        "an asynchronous copy holds its caller although nothing is in its way",
        "count copies as host time; submit from a thread of their own"),
    ROW("try-async.behind", WARN, ALL(OVER(TRY_HOLD_BEHIND, 10000)),
        "an asynchronous copy holds its caller until the stream's work is done",
        "read back from a thread of its own, or a step late (--overlap on)"),
    ROW("try-async.yes", OK, ALL(KNOWN(TRY_HOLD_IDLE), KNOWN(TRY_HOLD_BEHIND)), "asynchronous copies return at once",
        NULL),

    ROW("try-overlap.kernels", WARN, ALL(OVER(TRY_KERNELS, 1.5)), "kernels of two streams run one after the other",
        "expect no gain of streams; CUDA_DEVICE_MAX_CONNECTIONS, MPS and debuggers can do that"),
    ROW("try-overlap.copy", WARN, ALL(OVER(TRY_COPY, 1.5)), "a copy waits for another stream's kernel",
        "expect no gain of copying ahead"),
    ROW("try-overlap.yes", OK, ALL(KNOWN(TRY_KERNELS), KNOWN(TRY_COPY)), "streams run beside each other", NULL),

    ROW("try-checkpoint.no", WARN, ALL(IS(TRY_CHECKPOINT, 0)), "the driver cannot checkpoint a process",
        "install a driver from R570 on"),
    ROW("try-checkpoint.yes", OK, ALL(OVER(TRY_CHECKPOINT, 0)), "the driver has the calls that checkpoint a process",
        NULL),

    ROW("try-gdr.no", WARN, ALL(IS(TRY_GDR, 0)), "no GPUDirect RDMA: network data goes by the host's memory",
        "expect it under CC; else load nvidia-peermem, or use a driver with dma-buf"),
    ROW("try-gdr.yes", OK, ALL(OVER(TRY_GDR, 0)), "GPUDirect RDMA is supported", NULL),

    /* ---- the guest ---- */
    ROW("steal.much", BAD, ALL(OVER(STEAL, 2)), "the host takes CPU time away from this guest",
        "pin the virtual CPUs, take other guests off these cores"),
    ROW("steal.some", WARN, ALL(OVER(STEAL, 0.2)), "the host takes a little CPU time away from this guest",
        "pin the virtual CPUs; intervals will be wider"),
    ROW("steal.none", OK, ALL(KNOWN(STEAL)), "no CPU time is taken away", NULL),

    ROW("pinning.yes", OK, ALL(IS(HYPERVISOR, 1), IS(DEDICATED, 1)),
        "the hypervisor says that virtual CPUs are its own", NULL),
    ROW("pinning.not-told", UNKNOWN, ALL(IS(HYPERVISOR, 1)), "a guest cannot tell whether its virtual CPUs are pinned",
        "on the host: virsh vcpupin, or one thread a core; KVM can say so by the hint kvm-hint-dedicated"),
    ROW("pinning.bare", OK, ALL(IS(HYPERVISOR, 0)), "no hypervisor", NULL),

    ROW("numa.hidden", WARN, ALL(IS(HYPERVISOR, 1), IS(NUMA_NODES, 1), OVER(GPU_COUNT, 4)),
        "the guest has one node over the sockets that its GPUs hang on",
        "give the guest the host's nodes and the GPUs' places (QEMU: -numa, pxb-pcie)"),
    ROW("numa.gpus-nowhere", WARN, ALL(OVER(NUMA_NODES, 1), OVER(GPUS_WITHOUT_NODE, 0)),
        "GPUs without a node: ranks cannot be bound near theirs", "give the guest the GPUs' places (QEMU: pxb-pcie)"),
    ROW("numa.balancing", WARN, ALL(OVER(NUMA_NODES, 1), IS(NUMA_BALANCING, 1)),
        "the kernel moves pages between nodes while you measure", "sysctl kernel.numa_balancing=0"),
    ROW("numa.fine", OK, ALL(KNOWN(NUMA_NODES)), "nodes and GPUs are in place", NULL),

    ROW("huge-pages.never", WARN, ALL(WORD(HUGE, "never"), IS(HUGE_PAGES, 0)),
        "no huge pages: a confidential guest pays more for every missed translation",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"),
    ROW("huge-pages.there", OK, ALL(KNOWN(HUGE)), "huge pages can be had", NULL),

    ROW("swiotlb.refused", BAD, ALL(KNOWN(TEE), NOT_WORD(TEE, "none"), WORD(SWIOTLB_ASKED, "noforce")),
        "a TEE's devices need bounce buffers, and the kernel is told to have none",
        "take swiotlb=noforce off the guest's kernel command line"),
    ROW("swiotlb.full", WARN, ALL(OVER(SWIOTLB_USED, 90)), "the bounce buffers are nearly full",
        "give the guest more: swiotlb=524288 on its kernel command line is 1 GiB"),
    ROW("swiotlb.small", WARN, ALL(KNOWN(TEE), NOT_WORD(TEE, "none"), UNDER(SWIOTLB, 268435456)),
        "less than 256 MiB of bounce buffers in a TEE", "swiotlb=524288 on the guest's kernel command line is 1 GiB"),
    ROW("swiotlb.enough", OK, ALL(KNOWN(SWIOTLB)), "enough bounce buffers", NULL),
    ROW("swiotlb.not-told", UNKNOWN, ALL(KNOWN(TEE), NOT_WORD(TEE, "none")), "the bounce buffers' size cannot be told",
        "run as root: /sys/kernel/debug/swiotlb is root's"),

    ROW("power-cap.lower", WARN, ALL(BELOW(POWER_LIMIT, POWER_DEFAULT)), "a GPU's power is capped below its default",
        "have the host lift the cap (nvidia-smi -pl), or say so beside the figures"),
    ROW("power-cap.none", OK, ALL(KNOWN(POWER_LIMIT)), "power as the GPU's default", NULL),

    /* ---- fresh enough to be measured? ---- */
    FRESH("uptime.long", BAD, ALL(OVER(UPTIME, 86400)),
          "up for more than a day: state left from before has looked like 16 % of overhead (arXiv 2608.26575)",
          "reboot, then measure"),
    FRESH("uptime.short", OK, ALL(KNOWN(UPTIME)), "started today", NULL),

    FRESH("earlier-work.processes", BAD, ALL(OVER(PAST, 0)), "processes have used the GPUs since the driver was loaded",
          "reboot, then measure first"),
    FRESH("earlier-work.energy", BAD, ALL(NOT_KNOWN(PAST), OVER(WORKED, 1.25)),
          "the GPUs have drawn more since the driver was loaded than they do idle: they have worked",
          "reboot, then measure first"),
    FRESH("earlier-work.none", OK, ALL(IS(PAST, 0)), "no process has used the GPUs", NULL),
    FRESH("earlier-work.idle", OK, ALL(KNOWN(WORKED)), "the GPUs have been idle since the driver was loaded", NULL),
    FRESH("earlier-work.not-told", UNKNOWN, ALL(OVER(GPU_COUNT, 0)), "earlier work on the GPUs cannot be told",
          "reboot, then measure first; nvidia-smi --accounting-mode=1 makes it tell"),

    FRESH("clocks.slowed", BAD, ALL(OVER(SLOWED, 0)), "a GPU holds its clocks down: power, heat or a brake",
          "read nvidia-smi -q -d PERFORMANCE; cool it, or lift what holds it"),
    FRESH("clocks.free", OK, ALL(KNOWN(SLOWED)), "nothing holds the clocks down", NULL),

    FRESH("temperature.hot", BAD, ALL(OVER(TEMPERATURE, 80)), "a GPU is hot before anything runs", "let it cool"),
    FRESH("temperature.fine", OK, ALL(KNOWN(TEMPERATURE)), "cool", NULL),

    FRESH("processes.some", BAD, ALL(OVER(CONTEXTS, 0)), "other processes compute on the GPUs", "end them: nvidia-smi"),
    FRESH("processes.none", OK, ALL(IS(CONTEXTS, 0)), "nothing else computes on the GPUs", NULL),
    FRESH("processes.not-told", UNKNOWN, ALL(OVER(GPU_COUNT, 0)), "other processes on the GPUs cannot be told",
          "ask nvidia-smi"),

    FRESH("load.busy", BAD, ALL(OVER(LOAD, 0.25)), "the host is busy", "end what runs: top"),
    FRESH("load.idle", OK, ALL(KNOWN(LOAD)), "the host is idle", NULL),
};
const int cct_n_rules = sizeof cct_rules / sizeof *cct_rules;
