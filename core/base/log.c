/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char speaker[64] = "cctax";
static int is_quiet;
static _Thread_local char last[256];
static _Thread_local int is_muted;
static const struct cct_log_room *joined; /* NULL: this copy is the program's */

void cct_log_name(const char *name) {
  snprintf(speaker, sizeof speaker, "%s", name);
}

void cct_log_quiet(int quiet) {
  is_quiet = quiet;
}

/* One write(2) a line, so that lines of several ranks do not mix. */
static void say(const char *level, const char *text) {
  char line[4096];
  int n = snprintf(line, sizeof line, "%s: %s", speaker, level);
  size_t at = n > 0 ? (size_t)n : 0;
  for (const unsigned char *p = (const unsigned char *)text; *p && at + 6 < sizeof line; p++)
    at += (size_t)((*p < 0x20 || *p == 0x7f) ? sprintf(line + at, "\\x%02x", *p) : sprintf(line + at, "%c", *p));
  line[at++] = '\n';
  fflush(stdout);
  if (write(STDERR_FILENO, line, at) < 0)
    return; /* stderr is gone: there is nobody left to tell */
}

enum cct_status(cct_fail)(enum cct_status status, const char *format, ...) {
  char text[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (joined)
    return joined->fail(status, "%s", text);
  snprintf(last, sizeof last, "%s", text);
  if (!is_muted)
    say("", text);
  return status;
}

void cct_log_mute(int mute) {
  if (joined)
    joined->mute(mute);
  else
    is_muted = mute ? is_muted + 1 : is_muted > 0 ? is_muted - 1 : 0;
}

const char *cct_log_last(void) {
  return joined ? joined->last() : last;
}

/* By the program's own, where this copy has joined one. */
static void tell(void (*joined_tell)(const char *, ...), const char *level, int is_silent, const char *format,
                 va_list args) {
  char text[2048];
  vsnprintf(text, sizeof text, format, args);
  if (joined_tell)
    joined_tell("%s", text);
  else if (!is_silent)
    say(level, text);
}

void cct_warn(const char *format, ...) {
  va_list args;
  va_start(args, format);
  tell(joined ? joined->warn : NULL, "warning: ", is_muted, format, args);
  va_end(args);
}

void cct_note(const char *format, ...) {
  va_list args;
  va_start(args, format);
  tell(joined ? joined->note : NULL, "", is_quiet, format, args);
  va_end(args);
}

const struct cct_log_room *cct_log_room(void) {
  static const struct cct_log_room own = {cct_fail, cct_log_last, cct_log_mute, cct_warn, cct_note};
  return &own;
}

void cct_log_join(const struct cct_log_room *room) {
  joined = room;
}
