/* SPDX-License-Identifier: Apache-2.0
 * A GPU without hardware: the part of the CUDA runtime, cuBLAS and NCCL that the CUDA backend calls, and its kernels,
 * over host threads. A stream is a thread that performs what it is given in order; events, capture, graphs with
 * branches, and communicators whose members meet behave as the real ones do; memory is the host's. bf16 products and
 * copies are computed; sums are not, and a kernel takes no time but a spin's. %globaltimer runs ahead of the host's
 * clock. So order, waits, host lanes and faults of the backend are tested where no GPU is; values and speed are not.
 * What a part of it costs or refuses can be set, so that a probe has something known to find. */
#ifndef CCT_TESTS_FAKES_TWIN_GPU_H
#define CCT_TESTS_FAKES_TWIN_GPU_H

/* What a task of a stream does: its arguments, copied when it was enqueued. */
typedef void twin_body(void *arguments);

/* All 0: nothing costs anything, and nothing is refused. Set from the environment too:
 * TWIN_COSTS="copy_gb_s=0.5,holds=1". */
#define TWIN_COSTS(X)                                                                                                  \
  X(copy_gb_s)    /* of asynchronous copies and copying kernels */                                                     \
  X(kernel_us)    /* an empty kernel */                                                                                \
  X(sync_us)      /* a synchronisation that finds its stream idle; as on a GPU, none of one that was never used */     \
  X(rest_us)      /* more for a large product that comes 5 ms or later after the last */                               \
  X(row_us)       /* a row that is dispatched */                                                                       \
  X(write_us)     /* a short write to the peer */                                                                      \
  X(event_factor) /* of the time between events */                                                                     \
  X(timer_factor) /* of %globaltimer around a loop of clock64 */                                                       \
  X(holds)        /* an asynchronous copy returns when it is done */                                                   \
  X(one_at_once)  /* streams run one after the other */                                                                \
  X(stale)        /* kernels read what mapped memory held before */                                                    \
  X(pinned_error)                                                                                                      \
  X(mapped_error)                                                                                                      \
  X(managed_error)                                                                                                     \
  X(register_error)                                                                                                    \
  X(ipc_error)   /* of mapping */                                                                                      \
  X(share_error) /* of CUDA IPC too, by who has the memory */                                                          \
  X(no_peer)                                                                                                           \
  X(gdr)
struct twin_costs {
#define TWIN_COST(name) double name;
  TWIN_COSTS(TWIN_COST)
#undef TWIN_COST
};
extern struct twin_costs twin_costs;
/* Holds the caller so long: asleep, but for the last of it. */
void twin_spend(double us);

struct CUstream_st;
/* Appends to the stream, or to the graph that it is being captured into; 0 or a CUDA error. */
int twin_enqueue(struct CUstream_st *stream, twin_body *body, const void *arguments, unsigned long bytes);
/* Takes (1) and gives back (0) all memory: streams that do not wait for each other may share scratch. */
void twin_memory(int take);
/* Large products take so long from now on, and so many times as long while a spin runs on any stream; 0: no time. */
void twin_slow_products(long ns, double beside_spin);
/* What one takes now. */
long twin_product_ns(void);
void twin_worked(void); /* one has ended */

#endif
