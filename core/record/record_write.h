/* SPDX-License-Identifier: Apache-2.0
 * Private to record_write.c and record_reopen.c. */
#ifndef CCT_RECORD_RECORD_WRITE_H
#define CCT_RECORD_RECORD_WRITE_H

#include "record/record.h"

/* As cct_record_create, written under PATH with this suffix instead of ".partial". */
enum cct_status cct_record_create_as(const char *path, const char *partial_suffix, const struct cct_record_head *head,
                                     const struct cct_record_fact *facts, int n_facts, const char *program,
                                     const struct cct_record_cell *cells, int n_cells,
                                     struct cct_record **record_out) CCT_CHECKED;
/* What is being written goes on under this name. */
enum cct_status cct_record_rename(struct cct_record *record, const char *partial) CCT_CHECKED;
void cct_record_discard(struct cct_record *record); /* abandons it, and takes its file away; NULL-safe */

#endif
