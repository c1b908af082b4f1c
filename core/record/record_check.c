/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "record/hdf5_door.h"

/* A library held up by a damaged structure is ended after this long. */
#define SURVEY_SECONDS 20

herr_t cct_h5_read_state(hid_t file, int cell, struct cct_state_row *row_out) {
  char path[64];
  hid_t type = cct_h5_state_type(), dataset = H5Dopen2(file, cct_h5_cell_path(cell, "state", path), H5P_DEFAULT);
  hid_t space = H5Dget_space(dataset);
  memset(row_out, 0, sizeof *row_out); /* what the file's rows lack */
  herr_t result = dataset >= 0 && H5Sget_simple_extent_npoints(space) == 1
                      ? H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, row_out)
                      : -1;
  H5Sclose(space);
  H5Dclose(dataset);
  H5Tclose(type);
  return result;
}

int cct_h5_cell_holds(hid_t file, int cell, struct cct_state_row *row_out) {
  char hex[65];
  if (cct_h5_read_state(file, cell, row_out) < 0)
    return 0;
  if (row_out->state == CCT_CELL_OPEN)
    return row_out->digest[0] ? 0 : 2;
  if (row_out->state < CCT_CELL_DONE || row_out->state > CCT_CELL_REFUSED ||
      cct_h5_cell_digest(file, cell, row_out, hex) < 0)
    return 0;
  return memcmp(hex, row_out->digest, sizeof row_out->digest) == 0;
}

static int head_holds(hid_t file) {
  char hex[65];
  hid_t root = H5Gopen2(file, "/", H5P_DEFAULT);
  char *written = root >= 0 ? cct_h5_read_text(root, "digest") : NULL;
  int holds = written && cct_h5_head_digest(file, hex) >= 0 && !strcmp(hex, written);
  free(written);
  H5Gclose(root);
  return holds;
}

static void tell(int fd, const void *bytes, size_t n) {
  if (write(fd, bytes, n) != (ssize_t)n)
    _exit(1);
}

#define LEAST_CELL_BYTES 512 /* that a cell takes in a file, its group and datasets alone */

/* As the head says; where the file has no room for so many, the number is what is damaged, and the folder has those
 * that are left. */
static int count_cells(hid_t file, hid_t root) {
  H5G_info_t info;
  hsize_t bytes = 0;
  int n_cells = -1;
  if (cct_h5_read_int(root, "cells", &n_cells) < 0 || H5Fget_filesize(file, &bytes) < 0)
    return -1;
  if (n_cells < 0 || (hsize_t)n_cells > bytes / LEAST_CELL_BYTES)
    return H5Gget_info_by_name(file, "/cells", &info, H5P_DEFAULT) < 0 ? -1 : (int)info.nlinks;
  return n_cells;
}

/* The child: the number of cells, whether the head holds, then a byte a cell from `first` on. */
static void survey_child(const char *path, int first, int fd) {
  int null = open("/dev/null", O_WRONLY);
  dup2(null, STDERR_FILENO); /* should the library end badly, that is a finding, not a message */
  static const int ends[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    signal(ends[i], SIG_DFL); /* whatever the program does about them, it is not the child's to do */
  alarm(SURVEY_SECONDS);
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  hid_t root = file >= 0 ? H5Gopen2(file, "/", H5P_DEFAULT) : -1;
  int n_cells = root < 0 ? -1 : count_cells(file, root);
  if (n_cells < 0)
    _exit(1);
  tell(fd, &n_cells, sizeof n_cells);
  for (int i = first; i < n_cells; i++) {
    struct cct_state_row row;
    char holds = (char)cct_h5_cell_holds(file, i, &row);
    tell(fd, &holds, 1);
  }
  char holds = (char)head_holds(file);
  tell(fd, &holds, 1);
  _exit(0);
}

static ssize_t listen_to(int fd, void *bytes, size_t n) {
  size_t got = 0;
  while (got < n) {
    ssize_t r = read(fd, (char *)bytes + got, n - got);
    if (r < 0 && errno == EINTR)
      continue;
    if (r <= 0)
      break;
    got += (size_t)r;
  }
  return (ssize_t)got;
}

/* One child, from cell `*next` on; moves *next behind the last cell it answered for. 1: it went through to the end. */
static int survey_some(const char *path, struct cct_h5_survey *survey, int *next) {
  int ends[2], n_cells, is_whole = 0;
  if (pipe2(ends, O_CLOEXEC) != 0)
    return 0;
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    survey_child(path, *next, ends[1]);
  }
  close(ends[1]);
  if (child > 0 && listen_to(ends[0], &n_cells, sizeof n_cells) == (ssize_t)sizeof n_cells && n_cells >= *next) {
    if (!survey->holds && (survey->holds = calloc((size_t)n_cells + 2, 1)))
      survey->n_cells = n_cells;
    if (survey->holds && n_cells == survey->n_cells) {
      ssize_t got = listen_to(ends[0], survey->holds + *next, (size_t)(n_cells - *next) + 1);
      is_whole = got == n_cells - *next + 1;
      *next += (int)got;
      survey->head_holds = is_whole && survey->holds[n_cells];
    }
  }
  close(ends[0]);
  while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
    ;
  return is_whole;
}

enum cct_status cct_h5_survey(const char *path, struct cct_h5_survey *survey_out) {
  struct cct_h5_survey survey = {.n_cells = -1};
  int next = 0;
  cct_h5_init();
  /* The cell at which a child ended is no good; the next child begins behind it. */
  while (!survey_some(path, &survey, &next) && survey.holds && next < survey.n_cells)
    next++;
  if (!survey.holds)
    return CCT_DAMAGED;
  *survey_out = survey;
  return CCT_OK;
}

int cct_h5_file_holds(const char *path) {
  char block[CCT_USER_BLOCK], expected[CCT_USER_BLOCK] = CCT_USER_MAGIC;
  int fd = -1;
  if (cct_h5_open_file(path, &fd))
    return -1;
  ssize_t got = pread(fd, block, sizeof block, 0);
  int error = errno;
  close(fd);
  if (got < 0) {
    (void)cct_fail(CCT_IO, "%s: cannot be read: %s", path, strerror(error));
    return -1;
  }
  if (cct_h5_file_digest(path, expected + strlen(CCT_USER_MAGIC)))
    return -1;
  return got == (ssize_t)sizeof block && !memcmp(block, expected, sizeof block);
}

static void name_cells(struct cct_check_result *result, const char *before, const char *after) {
  struct cct_text text = {0};
  cct_text_add(&text, "%s", before);
  for (int i = 0; i < result->n_bad && i < 16; i++)
    cct_text_add(&text, "%s %04d", i ? "," : "", result->bad[i]);
  if (result->n_bad > 16)
    cct_text_add(&text, " and %d more", result->n_bad - 16);
  cct_text_add(&text, "%s", after);
  snprintf(result->finding, sizeof result->finding, "%s", text.s ? text.s : before);
  cct_text_free(&text);
}

static int ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && !strcmp(text + n - m, end);
}

enum cct_status cct_record_check(const char *path, struct cct_check_result *result_out) {
  struct cct_check_result result = {0};
  struct cct_h5_survey survey = {0};
  int is_partial = ends_with(path, ".partial"), holds = cct_h5_file_holds(path), n_done = 0;
  if (holds < 0)
    return CCT_IO;
  result.is_sound = holds && !is_partial;
  if (result.is_sound) {
    snprintf(result.finding, sizeof result.finding, "sound");
    *result_out = result;
    return CCT_OK;
  }
  if (cct_h5_survey(path, &survey)) {
    result.n_bad = -1;
    snprintf(result.finding, sizeof result.finding, "does not open: every cell is affected");
    *result_out = result;
    return CCT_OK;
  }
  for (int i = 0; i < survey.n_cells; i++) {
    n_done += survey.holds[i] == 1;
    if (survey.holds[i] == 1 || (is_partial && survey.holds[i] == 2))
      continue;
    if (result.n_bad < 64)
      result.bad[result.n_bad] = i;
    result.n_bad++;
  }
  char done[64] = "";
  if (is_partial)
    snprintf(done, sizeof done, "not finished: %d of %d cells are", n_done, survey.n_cells);
  if (result.n_bad)
    name_cells(&result, is_partial ? "not finished, and damaged: cells" : "damaged: cells", "");
  else if (is_partial)
    snprintf(result.finding, sizeof result.finding, "%s", done);
  else
    snprintf(result.finding, sizeof result.finding, "%s",
             survey.head_holds ? "structure or unused bytes, no cell affected"
                               : "facts, program or the block's own attributes; no cell affected");
  free(survey.holds);
  *result_out = result;
  return CCT_OK;
}
