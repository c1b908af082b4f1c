/* SPDX-License-Identifier: Apache-2.0
 * The record room's one door to HDF5: types, names and the conversion of its errors. Private to core/record. */
#ifndef CCT_RECORD_HDF5_DOOR_H
#define CCT_RECORD_HDF5_DOOR_H

#include <hdf5.h>

#include "crypt/digest.h"
#include "record/record.h"

#define CCT_USER_BLOCK   512
#define CCT_USER_MAGIC   "cctax1" /* followed by 64 hexadecimal digits, then zeros */
#define CCT_SCHEMA       1
#define CCT_SAMPLE_BYTES 28 /* rank i32, index i32, n i32, start_ns i64, value f64, little-endian, packed */

struct cct_state_row { /* as in the file; texts are padded with NUL */
  int8_t state;
  char reason[120], digest[64];
  struct cct_cell_counts program, performed; /* files of before they were kept lack them */
};

struct cct_fact_row {
  char name[48], fact_class[12], value[128];
};

/* Silences the library's own messages; call it before any other use. */
void cct_h5_init(void);
/* Logs "PATH: WHAT" with the system's reason, and tells a full disk from other trouble. */
enum cct_status cct_h5_fail(const char *path, const char *what);

hid_t cct_h5_text_type(size_t length);   /* close with H5Tclose, as the next three */
hid_t cct_h5_sample_type(int is_memory); /* struct cct_sample, or the packed row of the file */
hid_t cct_h5_state_type(void);
hid_t cct_h5_fact_type(void);

/* "/cells/0007" and "/cells/0007/NAME" into `out`. */
char *cct_h5_cell_path(int cell, const char *name, char out[64]);

/* Fixed-length texts: attributes of `object`. Reading allocates; the caller frees. Negative on failure. */
herr_t cct_h5_write_text(hid_t object, const char *name, const char *text);
herr_t cct_h5_write_int(hid_t object, const char *name, int value);
char *cct_h5_read_text(hid_t object, const char *name);
herr_t cct_h5_read_int(hid_t object, const char *name, int *value_out);

/* The digest that a cell's state row carries: over its key, label, state, reason, counts where any is known, and for
 * each metric, in the order of creation, its name, unit, better and rows as the file holds them. Negative when the cell
 * cannot be read. */
herr_t cct_h5_cell_digest(hid_t file, int cell, const struct cct_state_row *row, char hex_out[65]);
/* The digest of what belongs to no cell, kept in the root attribute "digest": head, program, and the facts written at
 * creation (the attribute "facts" counts them). It is never rewritten, so that no instant exists at which it does not
 * hold. */
herr_t cct_h5_head_digest(hid_t file, char hex_out[65]);

/* Reads a cell's state row; and whether it holds: its state is a state, and unless the cell is open its digest is
 * right. */
herr_t cct_h5_read_state(hid_t file, int cell, struct cct_state_row *row_out);
int cct_h5_cell_holds(hid_t file, int cell, struct cct_state_row *row_out);

/* What can be read of a file that may be damaged, found by a child process, since a damaged structure can end or hold
 * up the library itself. `holds` (caller frees) has one byte a cell: 0 no, 1 yes and finished, 2 yes and open.
 * CCT_DAMAGED, not logged, when the file does not open at all. */
struct cct_h5_survey {
  int n_cells, head_holds;
  char *holds;
};
enum cct_status cct_h5_survey(const char *path, struct cct_h5_survey *survey_out) CCT_CHECKED;

/* A regular file alone: a pipe would hold its reader, a device never end. */
enum cct_status cct_h5_open_file(const char *path, int *fd_out) CCT_CHECKED;
/* SHA-256 of everything behind the user block. */
enum cct_status cct_h5_file_digest(const char *path, char hex_out[65]) CCT_CHECKED;
/* 1 when the user block is as a finished file has it; 0 when not; -1 when the file cannot be read (logged). */
int cct_h5_file_holds(const char *path);

#endif
