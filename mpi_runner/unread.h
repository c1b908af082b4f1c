/* SPDX-License-Identifier: Apache-2.0
 * What was asked for and decides nothing was meant otherwise: it is refused, never passed over. */
#ifndef CCT_MPI_RUNNER_UNREAD_H
#define CCT_MPI_RUNNER_UNREAD_H

#include "mpi_runner/agenda.h"

/* Given by the user: also where a command has made its own suite of it and unset the flag. */
int cct_is_asked(const struct cct_options *flags, enum cct_option_id id);

/* Of an agenda with cells and arms: keys that are set and that no cell reads under any arm; keys that the backend does
 * not read; flags of the command that it does not read, where the backend was named or found (its `is_set`). `suite`
 * names the place of keys that are no flags. */
enum cct_status cct_unread_refuse(const struct cct_options *flags, const char *suite,
                                  const struct cct_agenda *agenda) CCT_CHECKED;
/* The last part alone: flags that are no cell's, against the backend that performs. */
enum cct_status cct_unread_refuse_flags(const struct cct_options *flags, const char *backend) CCT_CHECKED;

#endif
