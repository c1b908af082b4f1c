/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "record/hdf5_door.h"

static const char *const class_names[] = {
#define NAME(id, name) name,
    CCT_FACT_CLASSES(NAME)
#undef NAME
};

const char *cct_fact_class_name(enum cct_fact_class fact_class) {
  return class_names[fact_class];
}

int cct_fact_class_by_name(const char *name) {
  for (int i = 0; i < CCT_FACT_CLASS_COUNT; i++)
    if (!strcmp(name, class_names[i]))
      return i;
  return -1;
}

static void free_cell(struct cct_block_cell *cell) {
  for (int m = 0; m < cell->n_metrics; m++)
    free(cell->metrics[m].samples);
  free(cell->metrics);
  free(cell->key);
  free(cell->label);
}

void cct_block_free(struct cct_block *block) {
  if (!block)
    return;
  for (int i = 0; block->cells && i < block->n_cells; i++)
    free_cell(&block->cells[i]);
  free(block->cells);
  free(block->facts);
  free(block->program);
  free(block->path);
  free(block);
}

/* Copies a text attribute into a field of fixed size; a longer one is damage. */
static int read_field(hid_t object, const char *name, char *field, size_t size) {
  char *text = cct_h5_read_text(object, name);
  int ok = text && strlen(text) < size;
  if (ok)
    memcpy(field, text, strlen(text) + 1);
  free(text);
  return ok;
}

static int read_head(hid_t root, struct cct_block *block) {
  struct cct_record_head *head = &block->head;
  int schema;
  return cct_h5_read_int(root, "schema", &schema) >= 0 && schema == CCT_SCHEMA &&
         cct_h5_read_int(root, "block", &head->block) >= 0 && cct_h5_read_int(root, "round", &head->round) >= 0 &&
         cct_h5_read_int(root, "boot", &head->boot) >= 0 && cct_h5_read_int(root, "cells", &block->n_cells) >= 0 &&
         block->n_cells >= 0 && read_field(root, "tool", head->tool, sizeof head->tool) &&
         read_field(root, "run", head->run, sizeof head->run) &&
         read_field(root, "factor", head->factor, sizeof head->factor) &&
         read_field(root, "arm", head->arm, sizeof head->arm) &&
         read_field(root, "boot_id", head->boot_id, sizeof head->boot_id);
}

/* What every dataset of one file is read with. A run has tens of thousands of small ones: made anew for each, the
 * types, the library's conversion buffers and its cache of chunks, each of which is read once, would take longer than
 * the rows. */
struct reader {
  hid_t file, sample_type, state_type, access, transfer;
  char conversion[2][1 << 14];
};

static int reader_open(const char *path, struct reader *reader) {
  reader->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  reader->sample_type = cct_h5_sample_type(1);
  reader->state_type = cct_h5_state_type();
  reader->access = H5Pcreate(H5P_DATASET_ACCESS);
  reader->transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_chunk_cache(reader->access, 1, 0, 1);
  H5Pset_buffer(reader->transfer, sizeof *reader->conversion, reader->conversion[0], reader->conversion[1]);
  return reader->file >= 0;
}

static void reader_close(struct reader *reader) {
  H5Pclose(reader->transfer);
  H5Pclose(reader->access);
  H5Tclose(reader->state_type);
  H5Tclose(reader->sample_type);
  H5Fclose(reader->file);
}

/* All rows of a dataset as `type` has them, what the file's rows lack as 0; NULL on failure. One row more is allocated,
 * zeroed. */
static void *read_dataset(const struct reader *reader, hid_t dataset, hid_t type, int *n_out) {
  hid_t space = H5Dget_space(dataset);
  hssize_t n = H5Sget_simple_extent_npoints(space);
  size_t size = H5Tget_size(type);
  char *rows = dataset >= 0 && n >= 0 && n < INT32_MAX ? calloc((size_t)n + 1, size) : NULL;
  if (rows && n > 0 && H5Dread(dataset, type, H5S_ALL, H5S_ALL, reader->transfer, rows) < 0) {
    free(rows);
    rows = NULL;
  }
  if (rows)
    *n_out = (int)n;
  H5Sclose(space);
  return rows;
}

static void *read_rows(const struct reader *reader, hid_t at, const char *name, hid_t type, int *n_out) {
  hid_t dataset = H5Dopen2(at, name, reader->access);
  void *rows = read_dataset(reader, dataset, type, n_out);
  H5Dclose(dataset);
  return rows;
}

/* Of an interrupted block only the facts of its creation: whoever goes on with it measures the later ones again. */
static int read_facts(const struct reader *reader, hid_t root, int is_trusted, struct cct_block *block) {
  hid_t type = cct_h5_fact_type();
  int n = 0, ok = 1;
  struct cct_fact_row *rows = read_rows(reader, reader->file, "/facts", type, &n);
  H5Tclose(type);
  if (!is_trusted && cct_h5_read_int(root, "facts", &n) < 0)
    n = 0;
  block->facts = rows ? calloc((size_t)n + 1, sizeof *block->facts) : NULL;
  for (int i = 0; block->facts && i < n; i++) {
    struct cct_record_fact *fact = &block->facts[i];
    char class_name[13] = "";
    memcpy(class_name, rows[i].fact_class, sizeof rows[i].fact_class);
    memcpy(fact->name, rows[i].name, sizeof fact->name);
    memcpy(fact->value, rows[i].value, sizeof fact->value);
    fact->name[sizeof fact->name - 1] = fact->value[sizeof fact->value - 1] = '\0';
    int fact_class = cct_fact_class_by_name(class_name);
    ok = ok && fact_class >= 0;
    fact->fact_class = fact_class < 0 ? CCT_FACT_IDENTITY : (enum cct_fact_class)fact_class;
  }
  free(rows);
  block->n_facts = block->facts ? n : 0;
  return ok && block->facts;
}

static int read_program(const struct reader *reader, struct cct_block *block) {
  hid_t dataset = H5Dopen2(reader->file, "/program", H5P_DEFAULT), type = H5Dget_type(dataset);
  int n = 0;
  if (dataset >= 0 && H5Tget_class(type) == H5T_STRING && !H5Tis_variable_str(type))
    block->program = read_dataset(reader, dataset, type, &n);
  H5Tclose(type);
  H5Dclose(dataset);
  return block->program && n == 1;
}

static int read_metric(const struct reader *reader, hid_t group, const char *name, int with_rows,
                       struct cct_block_metric *metric) {
  hid_t dataset = H5Dopen2(group, name, reader->access);
  int ok = dataset >= 0 && read_field(dataset, "unit", metric->metric.unit, sizeof metric->metric.unit) &&
           read_field(dataset, "better", metric->metric.better, sizeof metric->metric.better);
  if (ok && with_rows)
    ok = (metric->samples = read_dataset(reader, dataset, reader->sample_type, &metric->n_samples)) != NULL;
  H5Dclose(dataset);
  return ok;
}

static int read_metrics(const struct reader *reader, hid_t group, const char *list, int with_rows,
                        struct cct_block_cell *cell) {
  int n = *list != '\0', ok = 1;
  for (const char *at = list; *at; at++)
    n += *at == ',';
  cell->metrics = calloc((size_t)n + 1, sizeof *cell->metrics);
  if (!cell->metrics)
    return 0;
  cell->n_metrics = n;
  for (int m = 0; ok && m < n; m++) {
    size_t length = strcspn(list, ",");
    char *name = cell->metrics[m].metric.name;
    ok = length < sizeof cell->metrics[m].metric.name;
    if (ok) {
      memcpy(name, list, length);
      ok = read_metric(reader, group, name, with_rows, &cell->metrics[m]);
    }
    list += length + (list[length] == ',');
  }
  return ok;
}

static int read_state(const struct reader *reader, hid_t group, struct cct_state_row *row_out) {
  int n = 0;
  struct cct_state_row *row = read_rows(reader, group, "state", reader->state_type, &n);
  if (row && n == 1)
    *row_out = *row;
  free(row);
  return n == 1;
}

/* An open cell of an interrupted block keeps its key, label and metrics, and no rows. */
static int read_cell(const struct reader *reader, int index, int is_trusted, struct cct_block_cell *cell) {
  char path[64];
  struct cct_state_row row = {0};
  hid_t group = H5Gopen2(reader->file, cct_h5_cell_path(index, NULL, path), H5P_DEFAULT);
  int holds = is_trusted ? read_state(reader, group, &row) : cct_h5_cell_holds(reader->file, index, &row);
  if (!is_trusted && !holds)
    row = (struct cct_state_row){0};
  int ok = group >= 0 && (holds || !is_trusted) && row.state >= CCT_CELL_OPEN && row.state <= CCT_CELL_REFUSED;
  char *list = NULL;
  if (ok) {
    cell->state = (enum cct_cell_state)row.state;
    memcpy(cell->reason, row.reason, sizeof row.reason);
    cell->program = row.program;
    cell->performed = row.performed;
    cell->key = cct_h5_read_text(group, "key");
    cell->label = cct_h5_read_text(group, "label");
    list = cct_h5_read_text(group, "metrics");
    ok = cell->key && cell->label && list && read_metrics(reader, group, list, cell->state != CCT_CELL_OPEN, cell);
  }
  free(list);
  H5Gclose(group);
  return ok;
}

static int read_all(const struct reader *reader, int is_trusted, struct cct_block *block) {
  hid_t root = H5Gopen2(reader->file, "/", H5P_DEFAULT);
  int ok =
      root >= 0 && read_head(root, block) && read_facts(reader, root, is_trusted, block) && read_program(reader, block);
  H5Gclose(root);
  block->cells = ok ? calloc((size_t)block->n_cells + 1, sizeof *block->cells) : NULL;
  if (!block->cells)
    return 0;
  for (int i = 0; ok && i < block->n_cells; i++)
    ok = read_cell(reader, i, is_trusted, &block->cells[i]);
  return ok;
}

/* A file whose own digest holds is read in this process; of any other a child process shows first that it can be. */
static enum cct_status admit(const char *path, int is_partial) {
  struct cct_h5_survey survey = {0};
  int holds = cct_h5_file_holds(path);
  if (holds < 0)
    return CCT_IO;
  if (holds)
    return CCT_OK;
  if (!is_partial)
    return cct_fail(CCT_DAMAGED, "%s: damaged: its content does not fit its digest; 'cctax check' names the cells",
                    path);
  enum cct_status status = cct_h5_survey(path, &survey);
  if (status)
    return cct_fail(status, "%s: damaged, none of its cells can be read", path);
  if (!survey.head_holds)
    status = cct_fail(CCT_DAMAGED, "%s: damaged: its facts or program do not fit their digest", path);
  free(survey.holds);
  return status;
}

enum cct_status cct_block_read(const char *path, int is_partial, struct cct_block **block_out) {
  cct_h5_init();
  enum cct_status status = admit(path, is_partial);
  if (status)
    return status;
  struct cct_block *block = calloc(1, sizeof *block);
  if (!block || !(block->path = strdup(path))) {
    cct_block_free(block);
    return cct_fail(CCT_NOMEM, "%s: out of memory", path);
  }
  struct reader *reader = malloc(sizeof *reader);
  int ok = reader && reader_open(path, reader) && read_all(reader, !is_partial, block);
  if (reader)
    reader_close(reader);
  free(reader);
  if (!ok) {
    cct_block_free(block);
    return cct_fail(CCT_DAMAGED, "%s: damaged, or not a block that this version of cctax reads", path);
  }
  *block_out = block;
  return CCT_OK;
}
