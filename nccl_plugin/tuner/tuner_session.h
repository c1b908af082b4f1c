/* SPDX-License-Identifier: Apache-2.0
 * One communicator's tuner, whatever the version of NCCL's interface. Every environment variable of the tuner is read
 * in tuner_session.c: CCTAX_TUNER_RULES (a rules file, or `none`), else NCCL_TUNER_CONFIG_FILE; CCTAX_CONDITION;
 * CCTAX_TUNER_PROOF (a folder). Nothing here fails a job: what goes wrong is one WARN a process, and NCCL's defaults.
 */
#ifndef CCT_TUNER_SESSION_H
#define CCT_TUNER_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "nccl_plugin/abi/nccl_common_abi.h"

struct cct_tuner_comm {
  int api;     /* of NCCL's tuner interface, 3 to 6 */
  uint64_t id; /* equal on all ranks; 0 before interface 5 */
  size_t ranks, nodes;
  size_t domain_gpus;      /* GPUs in the largest NVLink domain; 0 before interface 5 */
  cct_nccl_logger *logger; /* may be NULL */
};

struct cct_tuner_session; /* NULL is a session that changes nothing */

/* NULL only if memory is out. */
struct cct_tuner_session *cct_tuner_session_open(const struct cct_tuner_comm *comm);
void cct_tuner_session_close(struct cct_tuner_session *session);

/* One getCollInfo; reg_buff -1: not told. `channels` is left alone unless a rule sets it. */
void cct_tuner_session_decide(struct cct_tuner_session *session, int collective, size_t bytes, int pipe_ops,
                              int reg_buff, float *cost, int algorithms, int protocols, int *channels);

#endif
