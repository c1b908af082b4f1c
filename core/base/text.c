/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int text_reserve(struct cct_text *text, size_t more) {
  if (text->is_failed)
    return 0;
  if (cct_grow((void **)&text->s, &text->capacity, text->length + more + 1, 1) != CCT_OK) {
    text->is_failed = 1;
    return 0;
  }
  return 1;
}

void cct_text_append(struct cct_text *text, const char *bytes, size_t length) {
  if (!text_reserve(text, length))
    return;
  memcpy(text->s + text->length, bytes, length);
  text->length += length;
  text->s[text->length] = '\0';
}

void cct_text_add(struct cct_text *text, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (n >= 0 && text_reserve(text, (size_t)n)) {
    vsnprintf(text->s + text->length, (size_t)n + 1, format, again);
    text->length += (size_t)n;
  }
  va_end(again);
}

void cct_text_free(struct cct_text *text) {
  free(text->s);
  memset(text, 0, sizeof *text);
}

int cct_parse_i64(const char *s, int64_t *value_out) {
  char *end;
  if (*s != '-' && (*s < '0' || *s > '9'))
    return 0;
  errno = 0;
  long long value = strtoll(s, &end, 10);
  if (errno || end == s || *end)
    return 0;
  *value_out = value;
  return 1;
}

int cct_parse_f64(const char *s, double *value_out) {
  char *end;
  if (!strchr("-.0123456789", *s) || !*s)
    return 0;
  errno = 0;
  double value = strtod(s, &end);
  if (errno || end == s || *end || !isfinite(value))
    return 0;
  *value_out = value;
  return 1;
}

int cct_parse_bytes(const char *s, int64_t *bytes_out) {
  static const char suffixes[] = "KMGT";
  char *end;
  if (*s < '0' || *s > '9')
    return 0;
  errno = 0;
  long long value = strtoll(s, &end, 10);
  if (errno || value < 0)
    return 0;
  int shift = 0;
  const char *suffix = *end ? strchr(suffixes, *end & ~0x20) : NULL;
  if (suffix) {
    shift = 10 * (int)(suffix - suffixes + 1);
    end++;
    if (!strcmp(end, "iB") || !strcmp(end, "B"))
      end += strlen(end);
  } else if (!strcmp(end, "B")) {
    end++;
  }
  if (*end || value > INT64_MAX >> shift)
    return 0;
  *bytes_out = value << shift;
  return 1;
}

char *cct_bytes_text(double bytes, char out[32]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (fabs(bytes) >= 1024 && unit + 1 < sizeof units / sizeof *units) {
    bytes /= 1024;
    unit++;
  }
  /* 1000 to 1023 of a unit need four digits; %.3g would print them in exponent form. */
  snprintf(out, 32, fabs(bytes) >= 999.5 ? "%.0f %s" : "%.3g %s", bytes, units[unit]);
  return out;
}

char *cct_ns_text(double ns, char out[32]) {
  static const char *const units[] = {"ns", "us", "ms", "s"};
  size_t unit = 0;
  while (fabs(ns) >= 999.5 && unit < 3) {
    ns /= 1000;
    unit++;
  }
  snprintf(out, 32, fabs(ns) >= 999.5 ? "%.0f %s" : "%.3g %s", ns, units[unit]);
  return out;
}

static size_t edit_distance(const char *a, const char *b) {
  size_t row[64], na = strlen(a), nb = strlen(b);
  if (na >= 64 || nb >= 64)
    return 64;
  for (size_t j = 0; j <= nb; j++)
    row[j] = j;
  for (size_t i = 1; i <= na; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= nb; j++) {
      size_t change = diagonal + (a[i - 1] != b[j - 1]);
      size_t best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
      diagonal = row[j];
      row[j] = change < best ? change : best;
    }
  }
  return row[nb];
}

const char *cct_closest(const char *word, const char *const *words, size_t n) {
  const char *best = NULL;
  size_t best_distance = strlen(word) / 3 + 2; /* one slip in a short word, more in a long one */
  for (size_t i = 0; i < n; i++) {
    size_t distance = edit_distance(word, words[i]);
    if (distance < best_distance) {
      best_distance = distance;
      best = words[i];
    }
  }
  return best;
}

enum cct_status cct_grow(void **items, size_t *capacity, size_t need, size_t size) {
  if (need <= *capacity)
    return CCT_OK;
  size_t wanted = *capacity ? *capacity : 16;
  while (wanted < need)
    wanted = wanted > SIZE_MAX / 4 ? need : wanted * 2;
  void *grown = wanted <= SIZE_MAX / size ? realloc(*items, wanted * size) : NULL;
  if (!grown)
    return cct_fail(CCT_NOMEM, "out of memory: %zu elements of %zu bytes", wanted, size);
  *items = grown;
  *capacity = wanted;
  return CCT_OK;
}

enum cct_status cct_read_file(const char *path, size_t limit, char **text_out, size_t *length_out) {
  enum cct_status status = CCT_OK;
  char *text = NULL;
  struct stat facts;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return cct_fail(CCT_IO, "%s: cannot be read: %s", path, strerror(errno));
  if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))
    status = cct_fail(CCT_IO, "%s: not a regular file", path);
  else if ((uint64_t)facts.st_size > limit)
    status = cct_fail(CCT_USAGE, "%s: %lld bytes, more than the %zu that such a file may have", path,
                      (long long)facts.st_size, limit);
  if (status)
    goto out;
  size_t size = (size_t)facts.st_size, got = 0;
  text = malloc(size + 1);
  if (!text) {
    status = cct_fail(CCT_NOMEM, "%s: out of memory", path);
    goto out;
  }
  while (got < size) {
    ssize_t n = read(fd, text + got, size - got);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      status = cct_fail(CCT_IO, "%s: cannot be read: %s", path, strerror(errno));
      goto out;
    }
    if (n == 0)
      break;
    got += (size_t)n;
  }
  text[got] = '\0';
  *text_out = text;
  *length_out = got;
  text = NULL;
out:
  free(text);
  close(fd);
  return status;
}

static enum cct_status write_all(int fd, const char *text, size_t length) {
  while (length) {
    ssize_t n = write(fd, text, length);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return CCT_IO;
    text += n;
    length -= (size_t)n;
  }
  return fsync(fd) == 0 ? CCT_OK : CCT_IO;
}

int cct_write_pipe(int fd, const void *bytes, size_t n) {
  sigset_t pipe, pending, before;
  const char *at = bytes;
  int error = 0;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  while (n && !error) {
    ssize_t moved = write(fd, at, n);
    error = moved < 0 && errno != EINTR ? errno : 0;
    at += moved > 0 ? moved : 0;
    n -= moved > 0 ? (size_t)moved : 0;
  }
  if (error == EPIPE && !sigismember(&pending, SIGPIPE)) /* the one that this write raised */
    while (sigtimedwait(&pipe, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
      ;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return !error;
}

enum cct_status cct_write_file(const char *path, const char *text, size_t length) {
  char partial[4096];
  if ((size_t)snprintf(partial, sizeof partial, "%s.partial", path) >= sizeof partial)
    return cct_fail(CCT_IO, "%s: path too long", path);
  int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  enum cct_status status = fd < 0 ? CCT_IO : write_all(fd, text, length);
  int error = errno;
  if (fd >= 0 && close(fd) != 0 && !status) {
    error = errno;
    status = CCT_IO;
  }
  if (!status && rename(partial, path) != 0) {
    error = errno;
    status = CCT_IO;
  }
  if (!status)
    return CCT_OK;
  if (fd >= 0)
    unlink(partial);
  return cct_fail(error == ENOSPC || error == EDQUOT ? CCT_NOSPACE : CCT_IO, "%s: cannot be written: %s", path,
                  strerror(error));
}
