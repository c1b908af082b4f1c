/* SPDX-License-Identifier: Apache-2.0
 * A counter is eight ASCII digits in an aligned 64-bit word, counted up by compare-and-swap on the digits themselves:
 * a mapped file that any reader understands without this program, at the price of a carry in one of ten counts. */
#include "nccl_plugin/tuner/tuner_proof.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"

struct cct_proof {
  char *text;
  size_t length;
  size_t state_at, first_at, width; /* offsets: of the state's word, of counter 0, and from one counter to the next */
  int is_mapped;
};

static _Atomic uint64_t *word_at(const struct cct_proof *proof, size_t at) {
  return (_Atomic uint64_t *)(void *)(proof->text + at);
}

/* Spaces up to a multiple of eight, the last byte of it the line's end. */
static void line_end(struct cct_text *text) {
  cct_text_add(text, "%*s\n", (int)(7 - text->length % 8), "");
}

static void compose(struct cct_proof *proof, const char *head, const char *const *lines, size_t n,
                    struct cct_text *text) {
  size_t longest = 0;
  for (size_t i = 0; i < n; i++)
    longest = strlen(lines[i]) > longest ? strlen(lines[i]) : longest;
  proof->width = (8 + 1 + longest) / 8 * 8 + 8;
  cct_text_add(text, "%s", head);
  text->length -= text->length ? 1 : 0; /* the last line ends on a multiple of eight */
  line_end(text);
  cct_text_add(text, "state   ");
  proof->state_at = text->length;
  cct_text_add(text, "running ");
  line_end(text);
  proof->first_at = text->length;
  for (size_t i = 0; i < n; i++) {
    cct_text_add(text, "00000000 %-*s\n", (int)(proof->width - 10), lines[i]);
  }
}

/* The file is written before it is mapped: a full disk then fails here and not as a signal in somebody's job. */
static char *map_file(const char *folder, const char *text, size_t length, char *why_out, size_t size) {
  char host[64] = "", path[4096];
  int fd = -1;
  gethostname(host, sizeof host - 1);
  for (unsigned n = 0; fd < 0 && n < 1000000; n++) {
    if ((size_t)snprintf(path, sizeof path, "%s/cctax-tuner.%s.%ld.%u.proof", folder, host, (long)getpid(), n) >=
        sizeof path)
      errno = ENAMETOOLONG;
    else
      fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno != EEXIST)
      break;
  }
  char *mapped = MAP_FAILED;
  size_t done = 0;
  while (fd >= 0 && done < length) {
    ssize_t n = write(fd, text + done, length - done);
    if (n < 0 && errno != EINTR)
      break;
    done += n > 0 ? (size_t)n : 0;
  }
  if (fd >= 0 && done == length)
    mapped = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) {
    snprintf(why_out, size, "CCTAX_TUNER_PROOF: no proof can be written to '%s': %s", folder, strerror(errno));
    if (fd >= 0)
      unlink(path);
  }
  if (fd >= 0)
    close(fd);
  return mapped == MAP_FAILED ? NULL : mapped;
}

enum cct_status cct_proof_open(const char *folder, const char *head, const char *const *lines, size_t n,
                               struct cct_proof **proof_out, char *why_out, size_t size) {
  struct cct_proof *proof = calloc(1, sizeof *proof);
  struct cct_text text = {0};
  if (proof)
    compose(proof, head, lines, n, &text);
  if (!proof || text.is_failed) {
    cct_text_free(&text);
    free(proof);
    return CCT_NOMEM;
  }
  enum cct_status status = CCT_OK;
  proof->length = text.length;
  proof->text = folder ? map_file(folder, text.s, text.length, why_out, size) : NULL;
  proof->is_mapped = proof->text != NULL;
  if (folder && !proof->text)
    status = CCT_IO;
  if (proof->is_mapped)
    cct_text_free(&text);
  else
    proof->text = text.s;
  *proof_out = proof;
  return status;
}

/* Adds one to eight digits that stand in memory with the most significant first; all nines stay. */
static uint64_t digits_next(uint64_t word) {
  uint64_t digits = be64toh(word);
  for (int shift = 0; shift < 64; shift += 8) {
    if ((digits >> shift & 0xff) < '9')
      return htobe64(digits + (1ULL << shift));
    digits -= 9ULL << shift;
  }
  return word;
}

void cct_proof_count(struct cct_proof *proof, size_t counter) {
  if (!proof)
    return;
  _Atomic uint64_t *word = word_at(proof, proof->first_at + counter * proof->width);
  uint64_t was = atomic_load_explicit(word, memory_order_relaxed);
  while (
      !atomic_compare_exchange_weak_explicit(word, &was, digits_next(was), memory_order_relaxed, memory_order_relaxed))
    continue;
}

uint64_t cct_proof_read(const struct cct_proof *proof, size_t counter) {
  uint64_t word, value = 0;
  if (!proof)
    return 0;
  word = be64toh(atomic_load_explicit(word_at(proof, proof->first_at + counter * proof->width), memory_order_relaxed));
  for (int shift = 56; shift >= 0; shift -= 8)
    value = 10 * value + ((word >> shift & 0xff) - '0');
  return value;
}

void cct_proof_close(struct cct_proof *proof) {
  uint64_t finished;
  if (!proof)
    return;
  memcpy(&finished, "finished", sizeof finished);
  atomic_store_explicit(word_at(proof, proof->state_at), finished, memory_order_relaxed);
  if (proof->is_mapped)
    munmap(proof->text, proof->length);
  else
    free(proof->text);
  free(proof);
}
