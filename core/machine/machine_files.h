/* SPDX-License-Identifier: Apache-2.0
 * The files that say what a machine is: /proc, /sys, /dev, or, with CCTAX_MACHINE=FOLDER in the environment, the same
 * paths below FOLDER. */
#ifndef CCT_MACHINE_MACHINE_FILES_H
#define CCT_MACHINE_MACHINE_FILES_H

#include <stddef.h>
#include <stdio.h>

const char *cct_machine_fixture(void); /* FOLDER, or "" */
/* Where `path` is read. Returns `out`. */
char *cct_machine_place(const char *path, char out[512]);
int cct_machine_exists(const char *path);
FILE *cct_machine_open(const char *path); /* for reading; NULL: it cannot be read */
/* The first line of a file, without its end: 1, or 0 and "" where it cannot be read. */
int cct_machine_line(const char *path, char *out, size_t size);
int cct_machine_number(const char *path, double *value_out); /* that a file begins with; 0: none */

#endif
