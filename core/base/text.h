/* SPDX-License-Identifier: Apache-2.0
 * Text in and out: a growing buffer, numbers and byte sizes as users write and read them, and the nearest word. */
#ifndef CCT_BASE_TEXT_H
#define CCT_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

/* A growing string. Zero-initialise; release with cct_text_free. After a failed allocation `is_failed` is set and
 * further additions do nothing, so a writer checks once, at its end. `s` is NULL until something was added. */
struct cct_text {
  char *s;
  size_t length, capacity;
  int is_failed;
};

void cct_text_add(struct cct_text *text, const char *format, ...) CCT_PRINTF(2, 3);
void cct_text_append(struct cct_text *text, const char *bytes, size_t length);
void cct_text_free(struct cct_text *text);

/* Whole-string parsing; nothing is skipped but nothing is allowed around the number either. 1 on success. */
int cct_parse_i64(const char *s, int64_t *value_out);
int cct_parse_f64(const char *s, double *value_out); /* finite values only */
/* "4096", "4K", "4M", "1G", also "KiB" etc.: powers of 1024. */
int cct_parse_bytes(const char *s, int64_t *bytes_out);

/* "8 B", "4 KiB", "1.5 MiB", "3 GiB": up to three significant digits. Returns `out`. */
char *cct_bytes_text(double bytes, char out[32]);
/* Nanoseconds in a unit that reads well: "850 ns", "12.3 us", "4.51 ms", "2.16 s". Returns `out`. */
char *cct_ns_text(double ns, char out[32]);

/* The word of `words` (n of them) nearest to `word` by edit distance, or NULL if none is near enough to suggest. */
const char *cct_closest(const char *word, const char *const *words, size_t n);

/* Grows `*items` (elements of `size` bytes, `*capacity` of them) to hold at least `need`. CCT_NOMEM leaves all as it
 * was. */
enum cct_status cct_grow(void **items, size_t *capacity, size_t need, size_t size) CCT_CHECKED;

/* Reads a whole regular file into memory (NUL-terminated; caller frees), refusing one larger than `limit` bytes. */
enum cct_status cct_read_file(const char *path, size_t limit, char **text_out, size_t *length_out) CCT_CHECKED;
/* write(2) to what may be a pipe: a reader that is gone is EPIPE, and no signal to this process, which may be
 * somebody's job. All of `n` bytes, or 0 with errno. */
int cct_write_pipe(int fd, const void *bytes, size_t n) CCT_CHECKED;
/* Writes PATH whole or not at all: PATH.partial, fsync, rename. CCT_NOSPACE when the disk is full, else CCT_IO. */
enum cct_status cct_write_file(const char *path, const char *text, size_t length) CCT_CHECKED;

#endif
