/* SPDX-License-Identifier: Apache-2.0
 * A GPU without hardware: the part of the CUDA runtime, cuBLAS and NCCL that the CUDA backend calls, and its kernels,
 * over host threads. A stream is a thread that performs what it is given in order; events, capture, graphs with
 * branches, and communicators whose members meet behave as the real ones do; memory is the host's. bf16 products and
 * copies are computed; sums are not, and a kernel takes no time but a spin's. %globaltimer runs ahead of the host's
 * clock. So order, waits, host lanes and faults of the backend are tested where no GPU is; values and speed are not. */
#ifndef CCT_TESTS_FAKES_TWIN_GPU_H
#define CCT_TESTS_FAKES_TWIN_GPU_H

/* What a task of a stream does: its arguments, copied when it was enqueued. */
typedef void twin_body(void *arguments);

struct CUstream_st;
/* Appends to the stream, or to the graph that it is being captured into; 0 or a CUDA error. */
int twin_enqueue(struct CUstream_st *stream, twin_body *body, const void *arguments, unsigned long bytes);
/* Takes (1) and gives back (0) all memory: streams that do not wait for each other may share scratch. */
void twin_memory(int take);
/* Large products take so long from now on, and so many times as long while a spin runs on any stream; 0: no time. */
void twin_slow_products(long ns, double beside_spin);
/* What one takes now. */
long twin_product_ns(void);

#endif
