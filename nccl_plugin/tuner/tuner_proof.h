/* SPDX-License-Identifier: Apache-2.0
 * Proof that the tuner was loaded and what it did: a text of facts, then one line a counter that starts with eight
 * digits. With a folder it is a file there, mapped, and counting changes its digits in place: `cat` shows them while
 * the job runs, and they stay when the process is killed. Without one it is the same text in memory. Counting neither
 * locks, allocates nor calls the system; a counter stops at 99999999. */
#ifndef CCT_TUNER_PROOF_H
#define CCT_TUNER_PROOF_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct cct_proof;

/* `head`: whole lines; `lines`: what each of the n counters counts. `folder` may be NULL. CCT_IO, with one line in
 * `why_out` (`size` bytes): the folder takes no file, and the proof is in memory; CCT_NOMEM: there is none. */
enum cct_status cct_proof_open(const char *folder, const char *head, const char *const *lines, size_t n,
                               struct cct_proof **proof_out, char *why_out, size_t size) CCT_CHECKED;
/* Any thread; NULL-safe. */
void cct_proof_count(struct cct_proof *proof, size_t counter);
uint64_t cct_proof_read(const struct cct_proof *proof, size_t counter);
/* Writes "finished" for "running" and lets go of the text; the file stays. NULL-safe. */
void cct_proof_close(struct cct_proof *proof);

#endif
