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

void cct_log_name(const char *name) {
  snprintf(speaker, sizeof speaker, "%s", name);
}

const char *cct_log_speaker(void) {
  return speaker;
}

void cct_log_quiet(int quiet) {
  is_quiet = quiet;
}

/* One write(2) a line, so that lines of several ranks do not mix. */
static void say(const char *level, const char *format, va_list args) {
  char text[2048], line[4096];
  vsnprintf(text, sizeof text, format, args);
  int n = snprintf(line, sizeof line, "%s: %s", speaker, level);
  size_t at = n > 0 ? (size_t)n : 0;
  for (const unsigned char *p = (const unsigned char *)text; *p && at + 6 < sizeof line; p++)
    at += (size_t)((*p < 0x20 || *p == 0x7f) ? sprintf(line + at, "\\x%02x", *p) : sprintf(line + at, "%c", *p));
  line[at++] = '\n';
  fflush(stdout);
  if (write(STDERR_FILENO, line, at) < 0)
    return; /* stderr is gone: there is nobody left to tell */
}

enum cct_status cct_fail(enum cct_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last, sizeof last, format, args);
  va_end(args);
  if (is_muted)
    return status;
  va_start(args, format);
  say("", format, args);
  va_end(args);
  return status;
}

void cct_log_mute(int mute) {
  is_muted = mute;
}

const char *cct_log_last(void) {
  return last;
}

void cct_warn(const char *format, ...) {
  va_list args;
  va_start(args, format);
  say("warning: ", format, args);
  va_end(args);
}

void cct_note(const char *format, ...) {
  if (is_quiet)
    return;
  va_list args;
  va_start(args, format);
  say("", format, args);
  va_end(args);
}
