/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "record/hdf5_door.h"
#include "record/record_write.h"

/* Small enough that a block of one cell stays small, large enough that a flush touches few chunks. */
#define SAMPLES_A_CHUNK 256
#define FACTS_A_CHUNK   32

struct writer_cell {
  enum cct_cell_state state;
  struct cct_cell_counts program, performed;
  char (*metrics)[sizeof((struct cct_metric *)0)->name];
  int n_metrics;
};

struct cct_record {
  char *path, *partial;
  hid_t file, sample_type, state_type, fact_type;
  struct writer_cell *cells;
  int n_cells;
};

static void record_free(struct cct_record *record) {
  if (!record)
    return;
  H5Tclose(record->sample_type);
  H5Tclose(record->state_type);
  H5Tclose(record->fact_type);
  for (int i = 0; record->cells && i < record->n_cells; i++)
    free(record->cells[i].metrics);
  free(record->cells);
  free(record->path);
  free(record->partial);
  free(record);
}

void cct_record_abandon(struct cct_record *record) {
  if (!record)
    return;
  H5Fclose(record->file);
  record_free(record);
}

enum cct_status cct_record_rename(struct cct_record *record, const char *partial) {
  char *copy = strdup(partial);
  if (!copy || rename(record->partial, partial) != 0) {
    free(copy);
    return cct_fail(copy ? CCT_IO : CCT_NOMEM, "%s: cannot be written: %s", partial, strerror(errno));
  }
  free(record->partial);
  record->partial = copy;
  return CCT_OK;
}

void cct_record_discard(struct cct_record *record) {
  if (record)
    unlink(record->partial);
  cct_record_abandon(record);
}

static enum cct_status fail(const struct cct_record *record, const char *what) {
  return cct_h5_fail(record->partial, what);
}

static enum cct_status flush(struct cct_record *record) {
  return H5Fflush(record->file, H5F_SCOPE_LOCAL) < 0 ? fail(record, "cannot be written") : CCT_OK;
}

/* A dataset of `n` rows; `chunk` 0: it never grows. */
static hid_t make_rows(hid_t at, const char *name, hid_t type, hsize_t n, hsize_t chunk) {
  const hsize_t unlimited = H5S_UNLIMITED;
  hid_t space = H5Screate_simple(1, &n, chunk ? &unlimited : NULL), how = H5Pcreate(H5P_DATASET_CREATE);
  if (chunk)
    H5Pset_chunk(how, 1, &chunk);
  hid_t dataset = H5Dcreate2(at, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
  H5Pclose(how);
  H5Sclose(space);
  return dataset;
}

static herr_t append_rows(hid_t dataset, hid_t type, const void *rows, hsize_t n) {
  hid_t space = H5Dget_space(dataset);
  hssize_t have = H5Sget_simple_extent_npoints(space);
  H5Sclose(space);
  if (have < 0)
    return -1;
  hsize_t at = (hsize_t)have, total = at + n;
  if (H5Dset_extent(dataset, &total) < 0)
    return -1;
  space = H5Dget_space(dataset);
  hid_t memory = H5Screate_simple(1, &n, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &n, NULL);
  herr_t result = H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, rows);
  H5Sclose(memory);
  H5Sclose(space);
  return result;
}

static herr_t write_head(hid_t root, const struct cct_record_head *head, int n_cells, int n_facts) {
  static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
  if (cct_h5_write_int(root, "schema", CCT_SCHEMA) < 0 || cct_h5_write_text(root, "tool", head->tool) < 0 ||
      cct_h5_write_text(root, "run", head->run) < 0 || cct_h5_write_int(root, "block", head->block) < 0 ||
      cct_h5_write_int(root, "round", head->round) < 0 || cct_h5_write_text(root, "factor", head->factor) < 0 ||
      cct_h5_write_text(root, "arm", head->arm) < 0 || cct_h5_write_int(root, "boot", head->boot) < 0 ||
      cct_h5_write_text(root, "boot_id", head->boot_id) < 0 || cct_h5_write_int(root, "cells", n_cells) < 0 ||
      cct_h5_write_int(root, "facts", n_facts) < 0)
    return -1;
  return cct_h5_write_text(root, "digest", zeros);
}

static herr_t write_head_digest(struct cct_record *record) {
  char hex[65];
  if (cct_h5_head_digest(record->file, hex) < 0)
    return -1;
  hid_t attribute = H5Aopen_by_name(record->file, "/", "digest", H5P_DEFAULT, H5P_DEFAULT), type = cct_h5_text_type(64);
  herr_t result = H5Awrite(attribute, type, hex);
  H5Tclose(type);
  H5Aclose(attribute);
  return result;
}

static herr_t write_program(hid_t root, const char *program) {
  hid_t type = cct_h5_text_type(strlen(program)), dataset = make_rows(root, "program", type, 1, 0);
  herr_t result = H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, program);
  H5Dclose(dataset);
  H5Tclose(type);
  return result;
}

static herr_t write_state(struct cct_record *record, hid_t dataset, const struct cct_state_row *row) {
  return H5Dwrite(dataset, record->state_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, row);
}

static herr_t make_metric(struct cct_record *record, hid_t group, const struct cct_metric *metric) {
  hid_t dataset = make_rows(group, metric->name, record->sample_type, 0, SAMPLES_A_CHUNK);
  herr_t result = dataset < 0 ? -1 : cct_h5_write_text(dataset, "unit", metric->unit);
  if (result >= 0)
    result = cct_h5_write_text(dataset, "better", metric->better);
  H5Dclose(dataset);
  return result;
}

static enum cct_status make_cell(struct cct_record *record, int index, const struct cct_record_cell *cell) {
  struct writer_cell *own = &record->cells[index];
  char path[64];
  struct cct_text list = {0};
  if (strlen(cell->key) > 60000)
    return cct_fail(CCT_USAGE, "cell %d: its key has %zu bytes; a record takes 60000", index, strlen(cell->key));
  own->metrics = calloc((size_t)cell->n_metrics, sizeof *own->metrics);
  if (cell->n_metrics && !own->metrics)
    return cct_fail(CCT_NOMEM, "out of memory");
  own->n_metrics = cell->n_metrics;
  hid_t group = H5Gcreate2(record->file, cct_h5_cell_path(index, NULL, path), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  int ok = group >= 0;
  for (int i = 0; ok && i < cell->n_metrics; i++) {
    memcpy(own->metrics[i], cell->metrics[i].name, sizeof own->metrics[i]);
    cct_text_add(&list, "%s%s", i ? "," : "", cell->metrics[i].name);
    ok = make_metric(record, group, &cell->metrics[i]) >= 0;
  }
  ok = ok && cct_h5_write_text(group, "key", cell->key) >= 0 && cct_h5_write_text(group, "label", cell->label) >= 0 &&
       cct_h5_write_text(group, "metrics", list.s ? list.s : "") >= 0;
  hid_t state = ok ? make_rows(group, "state", record->state_type, 1, 0) : -1;
  const struct cct_state_row open_row = {.state = CCT_CELL_OPEN};
  ok = ok && write_state(record, state, &open_row) >= 0;
  H5Dclose(state);
  H5Gclose(group);
  int is_failed = list.is_failed;
  cct_text_free(&list);
  return is_failed ? CCT_NOMEM : ok ? CCT_OK : fail(record, "cannot be written");
}

/* open(2) first: its reason is the system's own and plain. */
static enum cct_status make_file(struct cct_record *record) {
  int fd = open(record->partial, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    return cct_fail(errno == ENOSPC || errno == EDQUOT ? CCT_NOSPACE : CCT_IO, "%s: cannot be written: %s",
                    record->partial, strerror(errno));
  close(fd);
  hid_t how = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_userblock(how, CCT_USER_BLOCK);
  record->file = H5Fcreate(record->partial, H5F_ACC_TRUNC, how, H5P_DEFAULT);
  H5Pclose(how);
  return record->file < 0 ? fail(record, "cannot be written") : CCT_OK;
}

static enum cct_status make_structure(struct cct_record *record, const struct cct_record_head *head,
                                      const struct cct_record_fact *facts, int n_facts, const char *program,
                                      const struct cct_record_cell *cells) {
  hid_t root = H5Gopen2(record->file, "/", H5P_DEFAULT);
  int ok = write_head(root, head, record->n_cells, n_facts) >= 0 && write_program(root, program) >= 0;
  H5Dclose(make_rows(root, "facts", record->fact_type, 0, FACTS_A_CHUNK));
  H5Gclose(H5Gcreate2(root, "cells", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Gclose(root);
  if (!ok)
    return fail(record, "cannot be written");
  enum cct_status status = CCT_OK;
  for (int i = 0; !status && i < record->n_cells; i++)
    status = make_cell(record, i, &cells[i]);
  if (!status)
    status = cct_record_add_facts(record, facts, n_facts);
  if (!status && write_head_digest(record) < 0)
    status = fail(record, "cannot be written");
  return status ? status : flush(record);
}

static enum cct_status record_new(const char *path, const char *partial_suffix, int n_cells,
                                  struct cct_record **record_out) {
  struct cct_record *record = calloc(1, sizeof *record);
  struct cct_text partial = {0};
  cct_h5_init();
  if (record) {
    cct_text_add(&partial, "%s%s", path, partial_suffix);
    *record = (struct cct_record){.path = strdup(path),
                                  .partial = partial.s,
                                  .n_cells = n_cells,
                                  .file = -1,
                                  .sample_type = cct_h5_sample_type(0),
                                  .state_type = cct_h5_state_type(),
                                  .fact_type = cct_h5_fact_type(),
                                  .cells = calloc((size_t)n_cells + 1, sizeof *record->cells)};
  }
  if (!record || !record->path || !record->partial || !record->cells) {
    record_free(record);
    return cct_fail(CCT_NOMEM, "%s: out of memory", path);
  }
  *record_out = record;
  return CCT_OK;
}

enum cct_status cct_record_create_as(const char *path, const char *partial_suffix, const struct cct_record_head *head,
                                     const struct cct_record_fact *facts, int n_facts, const char *program,
                                     const struct cct_record_cell *cells, int n_cells, struct cct_record **record_out) {
  struct cct_record *record = NULL;
  enum cct_status status = record_new(path, partial_suffix, n_cells, &record);
  if (status)
    return status;
  status = make_file(record);
  if (!status)
    status = make_structure(record, head, facts, n_facts, program, cells);
  if (status) {
    int is_made = record->file >= 0;
    if (is_made)
      H5Fclose(record->file);
    if (is_made)
      unlink(record->partial); /* nothing in it is worth keeping */
    record_free(record);
    return status;
  }
  *record_out = record;
  return CCT_OK;
}

enum cct_status cct_record_create(const char *path, const struct cct_record_head *head,
                                  const struct cct_record_fact *facts, int n_facts, const char *program,
                                  const struct cct_record_cell *cells, int n_cells, struct cct_record **record_out) {
  return cct_record_create_as(path, ".partial", head, facts, n_facts, program, cells, n_cells, record_out);
}

enum cct_cell_state cct_record_state(const struct cct_record *record, int cell) {
  return record->cells[cell].state;
}

enum cct_status cct_record_append(struct cct_record *record, int cell, int metric, const struct cct_sample *samples,
                                  int n) {
  char path[64];
  hid_t type = cct_h5_sample_type(1);
  hid_t dataset =
      H5Dopen2(record->file, cct_h5_cell_path(cell, record->cells[cell].metrics[metric], path), H5P_DEFAULT);
  herr_t result = dataset < 0 ? -1 : n ? append_rows(dataset, type, samples, (hsize_t)n) : 0;
  if (H5Dclose(dataset) < 0)
    result = -1;
  H5Tclose(type);
  return result < 0 ? fail(record, "cannot be written") : flush(record);
}

enum cct_status cct_record_add_facts(struct cct_record *record, const struct cct_record_fact *facts, int n) {
  struct cct_fact_row *rows = calloc((size_t)n + 1, sizeof *rows);
  if (!rows)
    return cct_fail(CCT_NOMEM, "out of memory");
  for (int i = 0; i < n; i++) {
    memcpy(rows[i].name, facts[i].name, sizeof rows[i].name);
    snprintf(rows[i].fact_class, sizeof rows[i].fact_class, "%s", cct_fact_class_name(facts[i].fact_class));
    memcpy(rows[i].value, facts[i].value, sizeof rows[i].value);
  }
  hid_t dataset = H5Dopen2(record->file, "/facts", H5P_DEFAULT);
  herr_t result = dataset < 0 ? -1 : n ? append_rows(dataset, record->fact_type, rows, (hsize_t)n) : 0;
  H5Dclose(dataset);
  free(rows);
  return result < 0 ? fail(record, "cannot be written") : flush(record);
}

/* On disk, not only in the kernel: a cell counts as finished across a power loss too. */
static enum cct_status sync_file(struct cct_record *record) {
  int *fd = NULL;
  if (H5Fget_vfd_handle(record->file, H5P_DEFAULT, (void **)&fd) < 0 || !fd)
    return fail(record, "cannot be written");
  if (fsync(*fd) == 0)
    return CCT_OK;
  return cct_fail(errno == ENOSPC || errno == EDQUOT ? CCT_NOSPACE : CCT_IO, "%s: cannot be written: %s",
                  record->partial, strerror(errno));
}

void cct_record_set_counts(struct cct_record *record, int cell, const struct cct_cell_counts *program,
                           const struct cct_cell_counts *performed) {
  record->cells[cell].program = *program;
  record->cells[cell].performed = *performed;
}

enum cct_status cct_record_set_state(struct cct_record *record, int cell, enum cct_cell_state state,
                                     const char *reason) {
  struct cct_state_row row = {
      .state = (int8_t)state, .program = record->cells[cell].program, .performed = record->cells[cell].performed};
  char hex[65], path[64];
  const char *text = reason ? reason : "";
  memcpy(row.reason, text, strnlen(text, sizeof row.reason));
  if (cct_h5_cell_digest(record->file, cell, &row, hex) < 0)
    return fail(record, "cannot be read back");
  memcpy(row.digest, hex, sizeof row.digest);
  hid_t dataset = H5Dopen2(record->file, cct_h5_cell_path(cell, "state", path), H5P_DEFAULT);
  herr_t result = dataset < 0 ? -1 : write_state(record, dataset, &row);
  if (H5Dclose(dataset) < 0)
    result = -1;
  enum cct_status status = result < 0 ? fail(record, "cannot be written") : flush(record);
  if (!status)
    status = sync_file(record);
  if (!status)
    record->cells[cell].state = state;
  return status;
}

static enum cct_status sync_folder(const char *path) {
  char *copy = strdup(path);
  if (!copy)
    return cct_fail(CCT_NOMEM, "%s: out of memory", path);
  char *slash = strrchr(copy, '/');
  if (slash)
    slash[slash == copy] = '\0';
  int fd = open(slash ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int ok = fd >= 0 && fsync(fd) == 0, error = errno;
  if (fd >= 0)
    close(fd);
  free(copy);
  return ok ? CCT_OK : cct_fail(CCT_IO, "%s: its folder cannot be written: %s", path, strerror(error));
}

/* The user block, fsync, rename, fsync of the folder: after it the file is there whole, or it is still PARTIAL. */
static enum cct_status seal(const char *partial, const char *path) {
  char block[CCT_USER_BLOCK] = CCT_USER_MAGIC;
  enum cct_status status = cct_h5_file_digest(partial, block + strlen(CCT_USER_MAGIC));
  if (status)
    return status;
  int fd = open(partial, O_WRONLY | O_CLOEXEC);
  int ok = fd >= 0 && pwrite(fd, block, sizeof block, 0) == (ssize_t)sizeof block && fsync(fd) == 0, error = errno;
  if (fd >= 0 && close(fd) != 0 && ok) {
    ok = 0;
    error = errno;
  }
  if (ok && rename(partial, path) != 0) {
    ok = 0;
    error = errno;
  }
  if (!ok)
    return cct_fail(error == ENOSPC || error == EDQUOT ? CCT_NOSPACE : CCT_IO, "%s: cannot be written: %s", path,
                    strerror(error));
  return sync_folder(path);
}

enum cct_status cct_record_finish(struct cct_record *record) {
  enum cct_status status = H5Fclose(record->file) < 0 ? fail(record, "cannot be written") : CCT_OK;
  if (!status)
    status = seal(record->partial, record->path);
  record_free(record);
  return status;
}
