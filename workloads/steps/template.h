/* SPDX-License-Identifier: Apache-2.0
 * The registry of workloads that are steps: one row and one file each. Private to this room. */
#ifndef CCT_WORKLOADS_STEPS_TEMPLATE_H
#define CCT_WORKLOADS_STEPS_TEMPLATE_H

#include "workloads/steps/emit.h"

struct cct_template {
  const char *name;
  struct cct_pass (*pass)(
      const struct cct_options *cell);               /* what one rank's replica works on at a time; NULL: serve's */
  int64_t (*tokens)(const struct cct_options *cell); /* that a step of one replica makes or trains on */
  enum cct_status (*emit)(struct cct_emit *e);       /* the whole step into e->program */
};
extern const struct cct_template cct_template_train, cct_template_prefill, cct_template_decode, cct_template_serve;

#endif
