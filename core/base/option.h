/* SPDX-License-Identifier: Apache-2.0
 * The one option table. From a row follow: parsing on the command line, the key in suite.json and in a CELL (the long
 * name with _ for -), its check, its default, short and long help, the man page and shell completion. A flag enters the
 * product by one row here, whatever room reads it. */
#ifndef CCT_BASE_OPTION_H
#define CCT_BASE_OPTION_H

#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "base/text.h"

enum cct_command { /* bits: which commands take an option */
  CCT_DOCTOR = 1 << 0,
  CCT_RUN = 1 << 1,
  CCT_PROBE = 1 << 2,
  CCT_PROFILE = 1 << 3,
  CCT_COLL = 1 << 4,
  CCT_TUNE = 1 << 5,
  CCT_PLAN = 1 << 6,
  CCT_REPORT = 1 << 7,
  CCT_SHOW = 1 << 8,
  CCT_CHECK = 1 << 9,
  CCT_SELF = 1 << 10,                                       /* about this program: version, man, completion */
  CCT_MEASURES = CCT_RUN | CCT_PROBE | CCT_COLL | CCT_TUNE, /* what starts blocks */
  CCT_ANY = (1 << 11) - 1,
};

enum cct_option_kind {
  CCT_KIND_FLAG,  /* present or not: i is 0 or 1 */
  CCT_KIND_I64,   /* i, within min..max */
  CCT_KIND_F64,   /* f, within min..max */
  CCT_KIND_BYTES, /* i, with K M G suffixes on the command line, a number in JSON */
  CCT_KIND_TEXT,  /* s */
  CCT_KIND_WORD,  /* s, one of the words in `argument`, separated by | */
};

enum cct_option_scope {
  CCT_SCOPE_COMMAND, /* steers the command */
  CCT_SCOPE_CELL,    /* a CELL key: part of what is compared; lists multiply out */
};

#define CCT_STEPS (CCT_RUN | CCT_PLAN)
/* X(ID, long name, letter or 0, kind, min, max, default or NULL, argument, commands, scope, help) */
#define CCT_OPTIONS(X)                                                                                                 \
  X(OUTPUT, "output", 'o', TEXT, 0, 0, NULL, "DIR", CCT_MEASURES | CCT_PROFILE | CCT_REPORT, COMMAND,                  \
    "the folder that results go to (profile: the file)")                                                               \
  X(MODEL, "model", 0, TEXT, 0, 0, NULL, "NAME|FILE", CCT_STEPS, CELL,                                                 \
    "a preset of data/models or a Hugging Face config.json")                                                           \
  X(WORKLOAD, "workload", 0, WORD, 0, 0, NULL, "train|prefill|decode|serve|collective|probe", CCT_STEPS, CELL,         \
    "the step to perform; collective and probe need no model")                                                         \
  X(LAYOUT, "layout", 0, TEXT, 0, 0, NULL, "tp=N,ep=N,dp=N", 0, CELL, "how the model is spread")                       \
  X(LAYOUTS, "layouts", 0, TEXT, 0, 0, NULL, "L[/L..]|all", CCT_STEPS, COMMAND,                                        \
    "layouts such as tp=8 or tp=2,ep=8,dp=4, separated by /, or every legal one")                                      \
  X(PROGRAM, "program", 0, TEXT, 0, 0, NULL, "FILE", CCT_RUN, CELL,                                                    \
    "a step program as --dry-run --json prints it, instead of model and workload")                                     \
  X(NP, "np", 'g', I64, 1, 65536, NULL, "N", CCT_STEPS | CCT_TUNE | CCT_PROBE | CCT_COLL, CELL,                        \
    "ranks, each a process of its own")                                                                                \
  X(BATCH, "batch", 0, I64, 1, 1 << 20, "8", "B", CCT_STEPS, CELL,                                                     \
    "sequences a decode step works on, per data-parallel rank")                                                        \
  X(INPUT_LEN, "input-len", 0, I64, 1, 1 << 24, "1024", "I", CCT_STEPS, CELL, "prompt tokens a request")               \
  X(OUTPUT_LEN, "output-len", 0, I64, 1, 1 << 24, "1024", "O", CCT_STEPS, CELL, "generated tokens a request")          \
  X(CONCURRENCY, "concurrency", 0, I64, 1, 1 << 20, "32", "C", CCT_STEPS, CELL, "requests at once (serve)")            \
  X(SEQ_LEN, "seq-len", 0, I64, 1, 1 << 24, "4096", "S", CCT_STEPS, CELL, "tokens a training sequence")                \
  X(MICRO_BATCH, "micro-batch", 0, I64, 1, 1 << 16, "1", "K", CCT_STEPS, CELL, "sequences a micro-batch (train)")      \
  X(ACCUMULATION, "accumulation", 0, I64, 1, 1 << 16, "1", "K", CCT_STEPS, CELL, "micro-batches a training step")      \
  X(GRAPH, "graph", 0, WORD, 0, 0, NULL, "none|piecewise|full", CCT_STEPS, CELL,                                       \
    "CUDA graph coverage (default: full for decode and serve, none otherwise)")                                        \
  X(WEIGHTS, "weights", 0, WORD, 0, 0, NULL, "bf16|fp8|nvfp4", CCT_STEPS, CELL, "weight type (default: the model's)")  \
  X(LAYERS, "layers", 0, I64, 1, 4096, NULL, "N", CCT_STEPS, CELL, "only the first N layers (label scaled)")           \
  X(DISPATCH, "dispatch", 0, WORD, 0, 0, NULL, "per-expert|per-rank|allgather", CCT_STEPS, CELL,                       \
    "expert dispatch (default: per-rank in serving, per-expert in training)")                                          \
  X(ROUTING, "routing", 0, WORD, 0, 0, "padded", "host|padded", CCT_STEPS, CELL,                                       \
    "who knows the expert counts: read back to the host, or padded to capacity")                                       \
  X(SKEW, "skew", 0, TEXT, 0, 0, "uniform", "uniform|zipf:S|FILE", CCT_STEPS | CCT_COLL, CELL,                         \
    "how tokens choose experts, or all_to_allv spreads what a rank sends; FILE: bytes from rank to rank")              \
  X(ALLREDUCE, "allreduce", 0, WORD, 0, 0, "nccl", "nccl|oneshot|twoshot", CCT_STEPS | CCT_COLL, CELL,                 \
    "who performs all-reduces: NCCL, or a kernel over peer access")                                                    \
  X(OPTIMIZER, "optimizer", 0, WORD, 0, 0, "adam", "adam|adam-zero1", CCT_STEPS, CELL,                                 \
    "optimizer state: 16 bytes a parameter, or sharded over dp")                                                       \
  X(RECOMPUTE, "recompute", 0, WORD, 0, 0, "none", "none|selective|full", CCT_STEPS, CELL, "activation recomputation") \
  X(SEQUENCE_PARALLEL, "sequence-parallel", 0, WORD, 0, 0, "on", "on|off", CCT_STEPS, CELL,                            \
    "train with tp > 1: all-gather and reduce-scatter around sharded norms, or all-reduce")                            \
  X(GRAD_TYPE, "grad-type", 0, WORD, 0, 0, "bf16", "bf16|fp32", CCT_STEPS, CELL,                                       \
    "train: in what gradients are kept and reduced")                                                                   \
  X(BUCKET_BYTES, "bucket-bytes", 0, BYTES, 1, 1e15, NULL, "BYTES", CCT_STEPS, CELL,                                   \
    "train: gradients reduced at once (default: max(40e6, 1e6 dp) parameters, as Megatron-core)")                      \
  X(OVERLAP_GRAD, "overlap-grad-reduce", 0, WORD, 0, 0, "on", "on|off", CCT_STEPS, CELL,                               \
    "train: gradients reduced bucket by bucket beside the backward pass, or all of them behind it")                    \
  X(OVERLAP_PARAM, "overlap-param-gather", 0, WORD, 0, 0, "on", "on|off", CCT_STEPS, CELL,                             \
    "adam-zero1: updated weights gathered beside the next forward pass, or all of them behind the update")             \
  X(CAPACITY, "capacity-factor", 0, F64, 1e-3, 1e6, NULL, "F", CCT_STEPS, CELL,                                        \
    "an expert takes F times its even share of a rank's tokens, the rest is dropped (default: takes all)")             \
  X(CHECKPOINT_EVERY, "checkpoint-every", 0, I64, 1, 1000000000, NULL, "N", CCT_RUN, CELL,                             \
    "train: a checkpoint every N steps, measured apart and spread over them")                                          \
  X(CHECKPOINT, "checkpoint", 0, WORD, 0, 0, "sync", "sync|async", CCT_RUN, CELL,                                      \
    "train: the step waits for the checkpoint's copies, or its optimizer does")                                        \
  X(OVERLAP, "overlap", 0, WORD, 0, 0, "off", "on|off", CCT_STEPS, CELL,                                               \
    "decode, serve: the host goes on to the next step while the GPU works, and reads tokens one step late")            \
  X(HOST_US, "host-us", 0, F64, 0, 1e7, "0", "US", CCT_STEPS, CELL,                                                    \
    "decode, serve: work of the engine on the host a step")                                                            \
  X(READBACK, "readback", 0, WORD, 0, 0, "sync", "sync|worker", CCT_RUN, CELL,                                         \
    "serve: who reads tokens back: the engine's own thread, or a worker beside it")                                    \
  X(MIXED_GRAPH, "mixed-graph", 0, WORD, 0, 0, NULL, "none|piecewise", CCT_RUN, CELL,                                  \
    "serve: graphs of batches with prompts in them (default: piecewise where --graph is, else none)")                  \
  X(ARRIVALS, "arrivals", 0, WORD, 0, 0, NULL, "closed|zero|steps|seconds", CCT_RUN, CELL,                             \
    "serve: when requests come (default: seconds with --request-rate or --trace, else closed: --concurrency at once)") \
  X(REQUEST_RATE, "request-rate", 0, F64, 1e-9, 1e9, NULL, "R", CCT_RUN, CELL,                                         \
    "serve: requests a second (or a step) on average")                                                                 \
  X(BURSTINESS, "burstiness", 0, F64, 1e-3, 1e6, "1", "B", CCT_RUN, CELL,                                              \
    "serve: shape of the gamma distribution of gaps between requests; 1: Poisson, less: bursts")                       \
  X(TRACE, "trace", 0, TEXT, 0, 0, NULL, "FILE", CCT_RUN, CELL,                                                        \
    "serve: requests from a .csv or .jsonl file of arrival, input, output")                                            \
  X(NUM_PROMPTS, "num-prompts", 0, I64, 1, 1 << 24, NULL, "N", CCT_RUN, CELL,                                          \
    "serve: requests of a run (default: all of a trace, else 4 times --concurrency)")                                  \
  X(RANDOM_RANGE_RATIO, "random-range-ratio", 0, F64, 0, 1, "0", "R", CCT_RUN, CELL,                                   \
    "serve: lengths are drawn from (1 - R) to (1 + R) times --input-len and --output-len")                             \
  X(MAX_BATCHED_TOKENS, "max-batched-tokens", 0, I64, 1, 1 << 24, "8192", "T", CCT_RUN, CELL,                          \
    "serve: tokens that one step works on at most, per data-parallel rank")                                            \
  X(MAX_SEQS, "max-seqs", 0, I64, 1, 1 << 20, "256", "N", CCT_RUN, CELL,                                               \
    "serve: sequences that run at once at most, per data-parallel rank")                                               \
  X(CHUNKED_PREFILL, "chunked-prefill", 0, WORD, 0, 0, "on", "on|off", CCT_RUN, CELL,                                  \
    "serve: prompts are read in parts that fill up a step, or each in one step")                                       \
  X(KV_TOKENS, "kv-tokens", 0, I64, 16, INT64_MAX / 2, NULL, "T", CCT_RUN, CELL,                                       \
    "serve: tokens that the KV cache holds, per data-parallel rank (default: what --gpu-memory leaves)")               \
  X(GPU_MEMORY, "gpu-memory", 0, BYTES, 1, 1e15, "120G", "BYTES", CCT_RUN, CELL,                                       \
    "serve: memory of one GPU for weights, activations and KV cache")                                                  \
  X(PREEMPT, "preempt", 0, WORD, 0, 0, "recompute", "recompute|offload", CCT_RUN, CELL,                                \
    "serve: what becomes of the cache of a pre-empted request: made again, or copied to the host and back")            \
  X(DISAGGREGATE, "disaggregate", 0, TEXT, 0, 0, NULL, "P:D", CCT_RUN, CELL,                                           \
    "serve: P replicas read prompts and D generate, of dp = P + D")                                                    \
  X(KV_ROUTE, "kv-route", 0, WORD, 0, 0, "p2p", "p2p|host", CCT_RUN, CELL,                                             \
    "serve: how caches get from the ones to the others: read in the peer's GPU memory, or through the host")           \
  X(SPECULATE, "speculate", 0, I64, 0, 32, "0", "K", CCT_RUN, CELL,                                                    \
    "serve: tokens drafted ahead of each decode, and verified in one step")                                            \
  X(ACCEPTANCE, "acceptance", 0, F64, 0, 1, "0.7", "P", CCT_RUN, CELL,                                                 \
    "serve: chance that a drafted token is accepted, if those before it were")                                         \
  X(DISPATCH_TYPE, "dispatch-type", 0, WORD, 0, 0, NULL, "bf16|fp8", CCT_STEPS, CELL,                                  \
    "type of dispatched tokens (default: fp8 in serving with fp8 or nvfp4 weights, else bf16)")                        \
  X(COMBINE_TYPE, "combine-type", 0, WORD, 0, 0, "bf16", "bf16|fp8", CCT_STEPS, CELL,                                  \
    "type of combined expert outputs")                                                                                 \
  X(ASSUME, "assume", 0, TEXT, 0, 0, NULL, "KEY=VALUE[,KEY=VALUE..]", CCT_STEPS, CELL,                                 \
    "state what a model key means that is not modelled: a value that is, or ignore")                                   \
  X(COLLECTIVE, "collective", 0, WORD, 0, 0, "all_reduce",                                                             \
    "all_reduce|all_gather|reduce_scatter|all_to_all|all_to_allv|broadcast|reduce|send_recv",                          \
    CCT_RUN | CCT_COLL | CCT_TUNE, CELL,                                                                               \
    "workload collective: what the ranks do (tune: all_reduce, all_gather, reduce_scatter)")                           \
  X(PROBE_NAME, "probe", 0, WORD, 0, 0, "submission",                                                                  \
    "submission|sync|graph|decode-loop|h2d|d2h|d2d|p2p|gemm|hbm|bare-sync|floor|blocked-h2d|blocked-d2h|both|streams|" \
    "threads|load|save|hostwork|experiment",                                                                           \
    CCT_RUN, CELL, "workload probe: the unit cost to pay (docs/probe.md)")                                             \
  X(EXPERIMENT, "experiment", 0, TEXT, 0, 0, NULL, "NAME[/PARAMETER..]", CCT_RUN, CELL,                                \
    "workload probe: what is no program, by its name in docs/probe.md")                                                \
  X(CLOSE, "close", 0, WORD, 0, 0, NULL, "burst|call", CCT_RUN, CELL,                                                  \
    "collective and probe: what a synchronisation follows (default: the burst)")                                       \
  X(BYTES, "bytes", 0, BYTES, 0, 1e15, "1M", "BYTES", CCT_RUN, CELL,                                                   \
    "size of a collective as nccl-tests counts it, or of a probe's transfer")                                          \
  X(TYPE, "type", 0, WORD, 0, 0, "bf16", "fp32|bf16|fp16|fp8|fp8_e5m2|int32|int8", CCT_RUN, CELL,                      \
    "element type of collective and probe")                                                                            \
  X(ITERS, "iters", 'n', I64, 1, 1000000, NULL, "N", CCT_RUN | CCT_COLL, CELL,                                         \
    "collectives that a sample times, closed by one synchronisation and divided by N (coll: 20)")                      \
  X(AGG_ITERS, "agg-iters", 'm', I64, 1, 65536, NULL, "N", CCT_RUN | CCT_COLL, CELL,                                   \
    "collectives grouped into one submission, N of which count as one of --iters (coll: 1)")                           \
  X(CUDAGRAPH, "cudagraph", 'G', I64, 0, 100000, NULL, "N", CCT_RUN | CCT_COLL, CELL,                                  \
    "a sample launches a graph of --iters collectives N times; 0: eager (coll: 0)")                                    \
  X(CHECK, "check", 'c', I64, 0, 1000, NULL, "N", CCT_RUN | CCT_COLL, CELL,                                            \
    "untimed checks of the values before a cell's samples (coll: 1)")                                                  \
  X(ROOT, "root", 'r', I64, 0, 65535, NULL, "RANK", CCT_RUN | CCT_COLL, CELL,                                          \
    "root of broadcast and reduce (coll: 0)")                                                                          \
  X(REDUCTION, "op", 0, WORD, 0, 0, NULL, "sum|prod|min|max|avg|all", CCT_RUN | CCT_COLL, CELL,                        \
    "what all_reduce, reduce_scatter and reduce make of the values (coll: sum)")                                       \
  X(PLACE, "place", 0, WORD, 0, 0, NULL, "out|in", CCT_RUN | CCT_COLL, CELL,                                           \
    "results into another buffer, or into the one they came from (coll: out,in)")                                      \
  X(LOCAL_REGISTER, "local-register", 'R', WORD, 0, 0, NULL, "0|1|2|ce", CCT_RUN | CCT_COLL, CELL,                     \
    "buffers as NCCL knows them: 0 not, 1 registered, 2 symmetric windows, ce: those, moved by copy engines (coll: "   \
    "0)")                                                                                                              \
  X(COMM_CHOICE, "comm-choice", 0, TEXT, 0, 0, NULL, "ALGORITHM/PROTOCOL/CHANNELS", CCT_RUN, CELL,                     \
    "what the collective's own communicator leaves NCCL no choice of, each may be default: ring/ll128/32")             \
  X(BUFFER_BYTES, "buffer-bytes", 0, BYTES, 1, 1e15, NULL, "BYTES", CCT_RUN, CELL,                                     \
    "size of the buffers whose next part each collective uses (coll: --max-bytes)")                                    \
  X(MIN_BYTES, "min-bytes", 'b', BYTES, 0, 1e15, "32M", "BYTES", CCT_COLL | CCT_TUNE, COMMAND,                         \
    "smallest size (tune: 1K)")                                                                                        \
  X(MAX_BYTES, "max-bytes", 'e', BYTES, 0, 1e15, "32M", "BYTES", CCT_COLL | CCT_TUNE, COMMAND,                         \
    "largest size, and that of the buffers (tune: 1G)")                                                                \
  X(STEP_BYTES, "step-bytes", 'i', BYTES, 1, 1e15, "1M", "BYTES", CCT_COLL, COMMAND,                                   \
    "from one size to the next, where no factor is given")                                                             \
  X(STEP_FACTOR, "step-factor", 'f', I64, 1, INT64_MAX, "1", "F", CCT_COLL | CCT_TUNE, COMMAND,                        \
    "factor from one size to the next; 1: --step-bytes (tune: 2)")                                                     \
  X(DATATYPE, "datatype", 'd', TEXT, 0, 0, "float", "T[,T..]|all", CCT_COLL | CCT_TUNE, COMMAND,                       \
    "element types: fp32 (float), bf16 (bfloat16), fp16 (half), fp8 (f8e4m3), fp8_e5m2 (f8e5m2), int32 (int), int8")   \
  X(ALGORITHMS, "algorithms", 0, TEXT, 0, 0, NULL, "A[,A..]", CCT_COLL | CCT_TUNE, COMMAND,                            \
    "NCCL_ALGO of an arm each: default, ring, tree, nvls, pat, ...; every one with every protocol and channel count")  \
  X(PROTOCOLS, "protocols", 0, TEXT, 0, 0, NULL, "P[,P..]", CCT_COLL | CCT_TUNE, COMMAND,                              \
    "NCCL_PROTO of an arm each: default, ll, ll128, simple")                                                           \
  X(CHANNELS, "channels", 0, TEXT, 0, 0, NULL, "N[,N..]", CCT_COLL | CCT_TUNE, COMMAND,                                \
    "channels of an arm each: default, 1 to 64")                                                                       \
  X(MEMORY, "memory", 0, WORD, 0, 0, "pinned", "pinned|pageable|mapped", CCT_RUN, CELL,                                \
    "host memory of a copy probe, or of a checkpoint")                                                                 \
  X(CALLS, "calls", 0, I64, 1, 1 << 16, "1", "N", CCT_RUN, CELL,                                                       \
    "collectives or probed operations a step; of a program, repetitions a burst")                                      \
  X(GEMM_SHAPE, "gemm", 0, TEXT, 0, 0, "8x4096x4096", "MxNxK", CCT_RUN, CELL, "shape of the gemm probe")               \
  X(SCALE, "scale", 0, I64, 1, 1 << 20, "1", "K", CCT_RUN, CELL,                                                       \
    "host backend: divide every size by K (label scaled)")                                                             \
  X(BACKEND, "backend", 0, WORD, 0, 0, "auto", "auto|cuda|host|sim", CCT_MEASURES, COMMAND, "what performs the step")  \
  X(CONDITION, "condition", 0, TEXT, 0, 0, NULL, "C[,C..]", CCT_MEASURES, COMMAND,                                     \
    "the arms: off, on, tee, stripped, emulated:PROFILE")                                                              \
  X(ARMS, "arms", 0, TEXT, 0, 0, NULL, "FACTOR=V[,V..]", CCT_RUN | CCT_COLL | CCT_PROBE, COMMAND,                      \
    "compare another factor than the condition: a cell's key, net, tuner or registration")                             \
  X(PROFILE_FILE, "profile", 0, TEXT, 0, 0, NULL, "NAME|FILE",                                                         \
    CCT_STEPS | CCT_REPORT | CCT_PROBE | CCT_PROFILE | CCT_COLL | CCT_TUNE, COMMAND,                                   \
    "a profile by name or file: what sim plays, a stripped GPU lacks, plan prices, coll and report hold figures "      \
    "against, and profile takes what is missing from")                                                                 \
  X(ROUNDS, "rounds", 0, I64, 1, 10000, "5", "R", CCT_MEASURES, COMMAND, "passes over all arms (coll: 1, tune: 9)")    \
  X(SAMPLES, "samples", 0, I64, 1, 1000000, "50", "S", CCT_MEASURES, COMMAND,                                          \
    "samples of a cell in a block (serve: 1; coll, tune: 5)")                                                          \
  X(WARMUP, "warmup", 'w', I64, 0, 1000000, "5", "W", CCT_MEASURES, COMMAND,                                           \
    "untimed steps before them (serve, tune: 1)")                                                                      \
  X(SEED, "seed", 0, I64, 0, INT64_MAX, "1", "X", CCT_MEASURES | CCT_PLAN | CCT_REPORT, COMMAND, "seed of every draw") \
  X(DEADLINE, "deadline", 'T', I64, 1, 1 << 30, "600", "S", CCT_MEASURES, COMMAND,                                     \
    "seconds without progress before a block is ended")                                                                \
  X(LAUNCHER, "launcher", 0, TEXT, 0, 0, NULL, "'CMD {np}'", CCT_MEASURES, COMMAND,                                    \
    "how ranks are started; {np} is their number (default: mpirun -np {np})")                                          \
  X(PROCS, "procs", 0, I64, 1, 4096, NULL, "P", CCT_MEASURES, COMMAND,                                                 \
    "sim: processes that share the simulated ranks (default: up to 8; with serve 1)")                                  \
  X(NOISE, "noise", 0, TEXT, 0, 0, NULL, "FILE", CCT_RUN | CCT_PROBE | CCT_COLL | CCT_TUNE, COMMAND,                   \
    "sim: multiply times by drawn factors (tests)")                                                                    \
  X(SHARED_GPU, "shared-gpu", 0, FLAG, 0, 0, NULL, NULL, CCT_MEASURES, COMMAND,                                        \
    "several ranks on one GPU: functional only")                                                                       \
  X(DRY_RUN, "dry-run", 0, FLAG, 0, 0, NULL, NULL, CCT_MEASURES, COMMAND,                                              \
    "print the step program and its totals; run nothing")                                                              \
  X(RESUME, "resume", 0, FLAG, 0, 0, NULL, NULL, CCT_MEASURES, COMMAND,                                                \
    "finish the interrupted run in the folder of -o")                                                                  \
  X(APPEND, "append", 0, FLAG, 0, 0, NULL, NULL, CCT_RUN | CCT_PROBE | CCT_COLL, COMMAND,                              \
    "add this boot of the machine to the run in the folder of -o")                                                     \
  X(SWEEP, "sweep", 0, TEXT, 0, 0, NULL, "FLAG=V,V..", CCT_PLAN, COMMAND,                                              \
    "plan for each of several values of one flag")                                                                     \
  X(PRICE, "price", 0, F64, 0, 1e9, NULL, "MONEY", CCT_PLAN, COMMAND, "price of one GPU hour")                         \
  X(SLO, "slo", 0, TEXT, 0, 0, NULL, "tpot=50ms[,..]", CCT_STEPS, CELL,                                                \
    "plan: the time a token may take; serve: of ttft, tpot and e2e, what a request must keep to count as good")        \
  X(ALLOW, "allow", 0, TEXT, 0, 0, NULL, "FACT[,FACT..]", CCT_REPORT, COMMAND,                                         \
    "compare although these facts differ (stamped on every page)")                                                     \
  X(BEFORE_RUN, "before-run", 0, FLAG, 0, 0, NULL, NULL, CCT_DOCTOR, COMMAND,                                          \
    "also ask whether this machine is fresh enough to be measured")                                                    \
  X(TRY, "try", 0, FLAG, 0, 0, NULL, NULL, CCT_DOCTOR, COMMAND,                                                        \
    "also open the GPUs and try what they can do, for some 20 seconds")                                                \
  X(FIXTURE, "fixture", 0, TEXT, 0, 0, NULL, "FILE", CCT_DOCTOR, COMMAND,                                              \
    "judge a recorded machine instead of this one")                                                                    \
  X(NCCL_LOG, "nccl-log", 0, TEXT, 0, 0, NULL, "FILE", CCT_DOCTOR, COMMAND,                                            \
    "what NCCL itself said under NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NVLS")                                         \
  X(RULES, "rules", 0, TEXT, 0, 0, NULL, "FILE", CCT_TUNE, COMMAND,                                                    \
    "where the rules go, beside the copy in the folder of -o; a file that is there stays")                             \
  X(OBJECTIVE, "objective", 0, WORD, 0, 0, "latency", "latency|bandwidth|overlap", CCT_TUNE, COMMAND,                  \
    "what decides about channels: the time of every size alone, of those from 1 MiB up, or of all beside a GEMM")      \
  X(PLUGIN, "plugin", 0, TEXT, 0, 0, NULL, "FILE", CCT_TUNE, COMMAND,                                                  \
    "the tuner plugin that is verified (default: lib/libnccl-tuner-cctax.so beside this program's folder)")            \
  X(VERIFY, "verify", 0, WORD, 0, 0, "yes", "yes|no|only", CCT_TUNE, COMMAND,                                          \
    "hold the rules against NCCL's default; only: those of an earlier tune in the folder of -o")                       \
  X(JSON, "json", 0, FLAG, 0, 0, NULL, NULL, CCT_ANY, COMMAND, "one JSON document on stdout")                          \
  X(QUIET, "quiet", 'q', FLAG, 0, 0, NULL, NULL, CCT_ANY, COMMAND, "errors and results only")                          \
  X(HELP, "help", 'h', FLAG, 0, 0, NULL, NULL, CCT_ANY, COMMAND, "help; -h is short, --help is full")

enum cct_option_id {
#define CCT_OPTION_ENUM(id, ...) CCT_OPT_##id,
  CCT_OPTIONS(CCT_OPTION_ENUM)
#undef CCT_OPTION_ENUM
  CCT_OPTION_COUNT
};

struct cct_option {
  const char *name;
  char letter;
  enum cct_option_kind kind;
  double min, max;
  const char *standard; /* the default, as a user would write it; NULL: none */
  const char *argument; /* how help names the value; the words of a WORD */
  unsigned commands;
  enum cct_option_scope scope;
  const char *help;
};

extern const struct cct_option cct_option_table[CCT_OPTION_COUNT];

struct cct_value {
  int is_set; /* 0: not given; the other fields then hold the default, if the row has one */
  int has_value;
  int64_t i;
  double f;
  char *s; /* owned */
};

/* A value for every row. Also the form of a CELL, of which only the rows of CCT_SCOPE_CELL count. */
struct cct_options {
  struct cct_value v[CCT_OPTION_COUNT];
};

enum cct_status cct_options_init(struct cct_options *options) CCT_CHECKED; /* every default filled in */
enum cct_status cct_options_copy(const struct cct_options *from, struct cct_options *options_out) CCT_CHECKED;
void cct_options_free(struct cct_options *options);

/* Checks `text` against row `id` and sets it; `where` ("--batch", "suite.json: $.defaults.batch") opens the error line.
 */
enum cct_status cct_option_set(struct cct_options *options, enum cct_option_id id, const char *text,
                               const char *where) CCT_CHECKED;
/* The option's text, "" where it has none, into room for size bytes. */
enum cct_status cct_option_copy(const struct cct_options *options, enum cct_option_id id, char *text,
                                size_t size) CCT_CHECKED;

/* Parses argv[0..argc-1] (without the command's own word) for `command`. What is no flag lands in `rest`, which has
 * room for argc pointers into argv. A flag given twice, unknown (with the nearest known one) or of another command is
 * refused. CELL flags keep their text unparsed where it holds a comma: lists multiply out later. */
enum cct_status cct_options_parse(struct cct_options *options, enum cct_command command, int argc, char **argv,
                                  const char **rest, int *n_rest_out) CCT_CHECKED;

/* ---- option_help.c ---- */

/* The flags of a command, grouped, in 100 columns; `is_full` adds the defaults. CCT_NOMEM alone, not logged. */
enum cct_status cct_options_help(FILE *out, enum cct_command command, int is_full) CCT_CHECKED;
/* The title of the group of rows that begins with this one; NULL: none does. */
const char *cct_option_group(enum cct_option_id id);
/* How help and manual name the row's value: its words where they are few; NULL: a flag has none. */
const char *cct_option_argument(const struct cct_option *row);
/* Adds what help and manual say of the row; `is_full`: with its default. */
void cct_option_text(const struct cct_option *row, int is_full, struct cct_text *text);

/* ---- option.c ---- */

/* Row by long name or by suite key (_ for -), CCT_OPTION_COUNT if there is none. */
enum cct_option_id cct_option_by_name(const char *name);
enum cct_option_id cct_option_by_key(const char *key);
/* "input_len" for "input-len": the row's key in JSON. Returns `out`. */
char *cct_option_key(enum cct_option_id id, char out[32]);

#endif
