/* SPDX-License-Identifier: Apache-2.0
 * emulate(): a program with a profile's surcharges put in, so that a clear machine (or sim) answers what confidential
 * computing would cost. A surcharge is confidential minus clear unit cost. What comes of it is labelled emulated.
 *
 * - channel: per submission a host DELAY before it on its host lane (form host), or a DELAY behind it on its stream
 *   (form stream), where it holds whatever follows as if it stood in front, and never hides behind the work's own
 *   submission; graph launches by their own two costs; a SYNC by its own.
 * - copies: a host-device COPY becomes a bounce copy: it waits for its stream, blocks its host lane, encrypts for real.
 *   Inside a GRAPH it is refused.
 * - nvlink: after a COLLECTIVE or a p2p COPY (or GROUP of COLLECTIVEs, or of SEND/RECV) a DELAY on its lane of toll +
 * (1/k - 1) x its time measured alone; k is the ratio of confidential to clear bandwidth. The rows are those that the
 * template's default binding chooses for its first rank, with the capabilities that are left.
 * - capability: the environment that takes away what the profile says CC takes away; in sim, the rows that need it.
 * - cpu: HOSTWORK times cpu_slowdown.
 *
 * Waits on an entry that got a DELAY behind it become waits on that. A confidential cost below the clear one adds
 * nothing (channel), since no emulation makes a machine faster. */
#ifndef CCT_WORKLOADS_PROGRAM_EMULATE_H
#define CCT_WORKLOADS_PROGRAM_EMULATE_H

#include "base/status.h"
#include "workloads/program/profile.h"
#include "workloads/program/program.h"

#define CCT_BOUNDARIES(X) /* ID, name in JSON */                                                                       \
  X(CHANNEL, "command_channel")                                                                                        \
  X(COPIES, "copies")                                                                                                  \
  X(NVLINK, "nvlink")                                                                                                  \
  X(CAPABILITY, "lost_capability")                                                                                     \
  X(CPU, "cpu")
enum cct_boundary {
#define CCT_BOUNDARY_ENUM(id, name) CCT_BOUNDARY_##id,
  CCT_BOUNDARIES(CCT_BOUNDARY_ENUM)
#undef CCT_BOUNDARY_ENUM
  CCT_BOUNDARY_COUNT
};
#define CCT_ALL_BOUNDARIES ((1u << CCT_BOUNDARY_COUNT) - 1)
const char *cct_boundary_name(enum cct_boundary boundary);

/* A new job with the surcharges of the boundaries in `mask` (bits 1 << CCT_BOUNDARY_x; CAPABILITY changes no program).
 */
enum cct_status cct_emulate(const struct cct_job *job, const struct cct_profile *profile, unsigned mask,
                            struct cct_job **job_out) CCT_CHECKED;

struct cct_environment { /* NAME=VALUE pairs a block's processes start with */
  const char *pairs[8];
  int n;
};
/* What conditions `stripped` and `emulated` set for real runs, for this NCCL version (e.g. 22803; 0: unknown). */
void cct_capability_environment(const struct cct_profile *profile, int nccl_version, struct cct_environment *out);

#endif
