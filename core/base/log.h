/* SPDX-License-Identifier: Apache-2.0
 * Messages to a person, one line each, on stderr: what, where, the remedy. Lower case, no full stop, 'subjects' in
 * quotes. Control characters in what is printed (a file name, a JSON key) are escaped, so that one message stays one
 * line. */
#ifndef CCT_BASE_LOG_H
#define CCT_BASE_LOG_H

#include "base/status.h"

#define CCT_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Says who speaks, e.g. "cctax" or "cctax-rank 3"; the text is copied. */
void cct_log_name(const char *name);

/* Logs the line that decides an error and returns `status`: return cct_fail(CCT_USAGE, "%s: ...", path). */
enum cct_status cct_fail(enum cct_status status, const char *format, ...) CCT_PRINTF(2, 3);
#ifdef __clang_analyzer__ /* which sees one file at a time, and would follow a failure that returns CCT_OK */
#define cct_fail(status, ...) ((void)(cct_fail)(status, __VA_ARGS__), (status))
#endif
/* What the last cct_fail of this thread said, without the speaker; "" before the first. For a record's reason. */
const char *cct_log_last(void);
/* cct_fail of this thread keeps its line for cct_log_last and prints nothing, nor does cct_warn, until as many 0 have
 * followed as 1: where many ranks fail alike, one speaks. */
void cct_log_mute(int mute);
void cct_warn(const char *format, ...) CCT_PRINTF(1, 2);
void cct_note(const char *format, ...) CCT_PRINTF(1, 2); /* silent after cct_log_quiet(1) */
void cct_log_quiet(int quiet);

/* A module that is linked with its own copy of this room joins the program's: its lines, and what its threads said last
 * or keep to themselves, are then the program's own. */
struct cct_log_room {
  enum cct_status (*fail)(enum cct_status status, const char *format, ...);
  const char *(*last)(void);
  void (*mute)(int mute);
  void (*warn)(const char *format, ...);
  void (*note)(const char *format, ...);
};
const struct cct_log_room *cct_log_room(void); /* the caller's own copy */
void cct_log_join(const struct cct_log_room *room);

#endif
