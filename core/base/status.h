/* SPDX-License-Identifier: Apache-2.0
 * The one status type. Whoever decides that something is wrong logs one line (cct_fail in log.h) and returns the
 * status; everyone above passes it on without logging. Outputs are written last and only on CCT_OK. */
#ifndef CCT_BASE_STATUS_H
#define CCT_BASE_STATUS_H

/* NAME, exit code of a program that ends with it, meaning. Exit codes: docs/design.md, "Exit codes". */
#define CCT_STATUSES(X)                                                                                                \
  X(OK, 0, "done")                                                                                                     \
  X(FOUND, 1, "done, and something wrong was found")                                                                   \
  X(USAGE, 2, "bad input, or arms that may not be compared")                                                           \
  X(IO, 2, "an input that cannot be read or an output that cannot be written")                                         \
  X(DAMAGED, 2, "a file whose content fails its own check")                                                            \
  X(STOPPED, 3, "ended by deadline, signal or lost rank; finished cells are kept")                                     \
  X(NOSPACE, 3, "the disk is full; finished cells are kept")                                                           \
  X(NOMEM, 3, "out of memory")                                                                                         \
  X(UNSUPPORTED, 77, "nothing here can do this")

enum cct_status {
#define CCT_STATUS_ENUM(name, exit_code, text) CCT_##name,
  CCT_STATUSES(CCT_STATUS_ENUM)
#undef CCT_STATUS_ENUM
};

#define CCT_CHECKED __attribute__((warn_unused_result))

const char *cct_status_name(enum cct_status status); /* "OK", "USAGE", ... */
const char *cct_status_text(enum cct_status status); /* its meaning */
int cct_status_exit(enum cct_status status);         /* the exit code of a program that ends with it */

#endif
