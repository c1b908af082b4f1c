/* SPDX-License-Identifier: Apache-2.0 */
#include "record/hdf5_door.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/* The system's reason for the last failure. The library keeps it only inside a text, "... errno = 28, error message =
 * 'No space left ...'", and drops it at the next call, so it is taken when the failing call returns. */
static int last_error;

static herr_t find_errno(unsigned depth, const H5E_error2_t *entry, void *unused) {
  (void)depth;
  (void)unused;
  const char *at = entry->desc ? strstr(entry->desc, "errno = ") : NULL;
  if (at)
    last_error = atoi(at + 8);
  return 0;
}

static herr_t on_failure(hid_t stack, void *unused) {
  (void)unused;
  return H5Ewalk2(stack, H5E_WALK_UPWARD, find_errno, NULL);
}

void cct_h5_init(void) {
  static int is_done;
  if (is_done)
    return;
  is_done = 1;
  H5dont_atexit(); /* after a full disk the library would try the failed writes again at exit */
  H5Eset_auto2(H5E_DEFAULT, on_failure, NULL);
}

enum cct_status cct_h5_fail(const char *path, const char *what) {
  int error = last_error, is_full = error == ENOSPC || error == EDQUOT;
  last_error = 0;
  return cct_fail(is_full ? CCT_NOSPACE : CCT_IO, "%s: %s%s%s", path, what, error ? ": " : "",
                  error ? strerror(error) : "");
}

hid_t cct_h5_text_type(size_t length) {
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, length ? length : 1);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  return type;
}

struct field {
  const char *name;
  size_t offset;
  hid_t type;
};

static hid_t compound(size_t size, const struct field *fields, int n) {
  hid_t type = H5Tcreate(H5T_COMPOUND, size);
  for (int i = 0; i < n; i++)
    H5Tinsert(type, fields[i].name, fields[i].offset, fields[i].type);
  return type;
}

hid_t cct_h5_sample_type(int is_memory) {
  const struct field packed[] = {{"rank", 0, H5T_STD_I32LE},
                                 {"index", 4, H5T_STD_I32LE},
                                 {"n", 8, H5T_STD_I32LE},
                                 {"start_ns", 12, H5T_STD_I64LE},
                                 {"value", 20, H5T_IEEE_F64LE}};
  const struct field native[] = {{"rank", offsetof(struct cct_sample, rank), H5T_NATIVE_INT32},
                                 {"index", offsetof(struct cct_sample, index), H5T_NATIVE_INT32},
                                 {"n", offsetof(struct cct_sample, n), H5T_NATIVE_INT32},
                                 {"start_ns", offsetof(struct cct_sample, start_ns), H5T_NATIVE_INT64},
                                 {"value", offsetof(struct cct_sample, value), H5T_NATIVE_DOUBLE}};
  return is_memory ? compound(sizeof(struct cct_sample), native, 5) : compound(CCT_SAMPLE_BYTES, packed, 5);
}

#define COUNT(kind, name)                                                                                              \
  { #kind "_" #name, offsetof(struct cct_state_row, kind.name), H5T_STD_I64LE }
#define COUNTS(kind) COUNT(kind, submissions), COUNT(kind, graphs), COUNT(kind, nodes), COUNT(kind, kernels)

hid_t cct_h5_state_type(void) {
  struct field fields[] = {{"reason", offsetof(struct cct_state_row, reason), cct_h5_text_type(120)},
                           {"digest", offsetof(struct cct_state_row, digest), cct_h5_text_type(64)},
                           {"state", offsetof(struct cct_state_row, state), H5T_STD_I8LE},
                           COUNTS(program),
                           COUNTS(performed)};
  hid_t type = compound(sizeof(struct cct_state_row), fields, sizeof fields / sizeof *fields);
  H5Tclose(fields[0].type);
  H5Tclose(fields[1].type);
  return type;
}

hid_t cct_h5_fact_type(void) {
  struct field fields[] = {{"name", offsetof(struct cct_fact_row, name), cct_h5_text_type(48)},
                           {"class", offsetof(struct cct_fact_row, fact_class), cct_h5_text_type(12)},
                           {"value", offsetof(struct cct_fact_row, value), cct_h5_text_type(128)}};
  hid_t type = compound(sizeof(struct cct_fact_row), fields, 3);
  for (int i = 0; i < 3; i++)
    H5Tclose(fields[i].type);
  return type;
}

char *cct_h5_cell_path(int cell, const char *name, char out[64]) {
  snprintf(out, 64, "/cells/%04d%s%s", cell, name ? "/" : "", name ? name : "");
  return out;
}

static herr_t write_attribute(hid_t object, const char *name, hid_t type, const void *value) {
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  herr_t result = H5Awrite(attribute, type, value);
  H5Aclose(attribute);
  H5Sclose(space);
  return result;
}

herr_t cct_h5_write_text(hid_t object, const char *name, const char *text) {
  hid_t type = cct_h5_text_type(strlen(text));
  herr_t result = write_attribute(object, name, type, text);
  H5Tclose(type);
  return result;
}

herr_t cct_h5_write_int(hid_t object, const char *name, int value) {
  return write_attribute(object, name, H5T_NATIVE_INT, &value);
}

char *cct_h5_read_text(hid_t object, const char *name) {
  hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
  hid_t type = H5Aget_type(attribute);
  size_t length = H5Tget_class(type) == H5T_STRING && !H5Tis_variable_str(type) ? H5Tget_size(type) : 0;
  char *text = length && length < 1 << 20 ? calloc(length + 1, 1) : NULL;
  if (text && H5Aread(attribute, type, text) < 0) {
    free(text);
    text = NULL;
  }
  H5Tclose(type);
  H5Aclose(attribute);
  return text;
}

herr_t cct_h5_read_int(hid_t object, const char *name, int *value_out) {
  hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
  herr_t result = H5Aread(attribute, H5T_NATIVE_INT, value_out);
  H5Aclose(attribute);
  return result;
}

static int digest_text(struct cct_digest *digest, const char *text) {
  return text && cct_digest_add(digest, text, strlen(text) + 1) == CCT_OK;
}

static int digest_attribute(struct cct_digest *digest, hid_t object, const char *name) {
  char *text = cct_h5_read_text(object, name);
  int ok = digest_text(digest, text);
  free(text);
  return ok;
}

/* Adds the rows of a one-dimensional dataset as `type` has them: the first `limit`, or all (limit -1). */
static int digest_rows(struct cct_digest *digest, hid_t dataset, hid_t type, hssize_t limit) {
  size_t size = H5Tget_size(type), rows_at_once = size < 65536 ? 65536 / size : 1;
  hid_t space = H5Dget_space(dataset);
  hssize_t total = H5Sget_simple_extent_npoints(space);
  hsize_t most = rows_at_once;
  int ok = total >= limit && H5Sget_simple_extent_ndims(space) == 1;
  total = limit < 0 ? total : limit;
  char *rows = malloc(size * rows_at_once);
  for (hsize_t at = 0; ok && rows && at < (hsize_t)total; at += most) {
    hsize_t n = (hsize_t)total - at < most ? (hsize_t)total - at : most;
    hid_t memory = H5Screate_simple(1, &n, NULL);
    ok = H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &n, NULL) >= 0 &&
         H5Dread(dataset, type, memory, space, H5P_DEFAULT, rows) >= 0 && !cct_digest_add(digest, rows, n * size);
    H5Sclose(memory);
  }
  ok = ok && rows && !cct_digest_add(digest, &total, sizeof total);
  free(rows);
  H5Sclose(space);
  return ok;
}

/* Metrics are named by the cell's own list, so that neither a lost nor an added dataset goes unnoticed. */
static int digest_metrics(struct cct_digest *digest, hid_t cell, const char *list) {
  hid_t type = cct_h5_sample_type(0);
  int ok = 1;
  for (const char *at = list; ok && *at;) {
    size_t length = strcspn(at, ",");
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), at);
    hid_t dataset = H5Dopen2(cell, name, H5P_DEFAULT);
    ok = dataset >= 0 && digest_text(digest, name) && digest_attribute(digest, dataset, "unit") &&
         digest_attribute(digest, dataset, "better") && digest_rows(digest, dataset, type, -1);
    H5Dclose(dataset);
    at += length + (at[length] == ',');
  }
  H5Tclose(type);
  return ok;
}

/* Frees `digest`. */
static herr_t end_digest(struct cct_digest *digest, int ok, char hex_out[65]) {
  unsigned char sha256[32];
  if (!ok) {
    cct_digest_free(digest);
    return -1;
  }
  if (cct_digest_end(digest, sha256))
    return -1;
  cct_digest_hex(sha256, hex_out);
  return 0;
}

static int digest_counts(struct cct_digest *digest, const struct cct_state_row *row) {
  static const struct cct_cell_counts unknown;
  return !memcmp(&row->program, &unknown, sizeof unknown) && !memcmp(&row->performed, &unknown, sizeof unknown)
             ? 1
             : !cct_digest_add(digest, &row->program, sizeof row->program) &&
                   !cct_digest_add(digest, &row->performed, sizeof row->performed);
}

herr_t cct_h5_cell_digest(hid_t file, int cell, const struct cct_state_row *row, char hex_out[65]) {
  struct cct_digest *digest;
  char path[64];
  if (cct_digest_new(&digest))
    return -1;
  hid_t group = H5Gopen2(file, cct_h5_cell_path(cell, NULL, path), H5P_DEFAULT);
  char *list = group >= 0 ? cct_h5_read_text(group, "metrics") : NULL;
  int ok = list && digest_attribute(digest, group, "key") && digest_attribute(digest, group, "label") &&
           !cct_digest_add(digest, &row->state, 1) && !cct_digest_add(digest, row->reason, sizeof row->reason) &&
           digest_counts(digest, row) && digest_metrics(digest, group, list);
  free(list);
  H5Gclose(group);
  return end_digest(digest, ok, hex_out);
}

static int digest_dataset(struct cct_digest *digest, hid_t file, const char *name, int limit) {
  hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), type = H5Dget_type(dataset);
  int ok = dataset >= 0 && type >= 0 && digest_rows(digest, dataset, type, limit);
  H5Tclose(type);
  H5Dclose(dataset);
  return ok;
}

herr_t cct_h5_head_digest(hid_t file, char hex_out[65]) {
  static const char *const texts[] = {"tool", "run", "factor", "arm", "boot_id"};
  static const char *const numbers[] = {"schema", "block", "round", "boot", "cells", "facts"};
  struct cct_digest *digest;
  if (cct_digest_new(&digest))
    return -1;
  hid_t root = H5Gopen2(file, "/", H5P_DEFAULT);
  int ok = root >= 0, value = 0; /* afterwards the number of facts, which stands last */
  for (int i = 0; ok && i < 5; i++)
    ok = digest_attribute(digest, root, texts[i]);
  for (int i = 0; ok && i < 6; i++)
    ok = cct_h5_read_int(root, numbers[i], &value) >= 0 && !cct_digest_add(digest, &value, sizeof value);
  ok = ok && digest_dataset(digest, file, "/facts", value) && digest_dataset(digest, file, "/program", -1);
  H5Gclose(root);
  return end_digest(digest, ok, hex_out);
}

enum cct_status cct_h5_open_file(const char *path, int *fd_out) {
  struct stat facts;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), is_file = fd >= 0 && fstat(fd, &facts) == 0;
  if (is_file && S_ISREG(facts.st_mode)) {
    *fd_out = fd;
    return CCT_OK;
  }
  int error = errno;
  if (fd >= 0)
    close(fd);
  return cct_fail(CCT_IO, "%s: cannot be read: %s", path, is_file ? "no regular file" : strerror(error));
}

enum cct_status cct_h5_file_digest(const char *path, char hex_out[65]) {
  unsigned char buffer[65536], sha256[32];
  struct cct_digest *digest = NULL;
  int fd = -1;
  enum cct_status status = cct_h5_open_file(path, &fd);
  if (status)
    return status;
  status = cct_digest_new(&digest);
  off_t at = CCT_USER_BLOCK;
  ssize_t n;
  while (!status && (n = pread(fd, buffer, sizeof buffer, at)) != 0) {
    if (n < 0 && errno == EINTR)
      continue;
    status = n < 0 ? cct_fail(CCT_IO, "%s: cannot be read: %s", path, strerror(errno))
                   : cct_digest_add(digest, buffer, (size_t)n);
    at += n;
  }
  close(fd);
  if (status) {
    cct_digest_free(digest);
    return status;
  }
  status = cct_digest_end(digest, sha256);
  if (!status)
    cct_digest_hex(sha256, hex_out);
  return status;
}
