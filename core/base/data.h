/* SPDX-License-Identifier: Apache-2.0
 * Where shipped data files are: models and profiles by name. The data folder is $CCTAX_DATA, else share/cctax beside
 * the running program's folder, else the source tree's. */
#ifndef CCT_BASE_DATA_H
#define CCT_BASE_DATA_H

#include <stddef.h>

#include "base/status.h"

/* The file that NAME_OR_FILE means: itself if it has a '/' or ends in .json, else KIND/NAME.json in the data folder
 * (`kind` "models", "profiles"; `noun` names it in the error line, which lists the nearest name). */
enum cct_status cct_data_path(const char *kind, const char *noun, const char *name_or_file, char *path_out,
                              size_t size) CCT_CHECKED;
/* The names of a kind's shipped files in order, at most `most`, each to be freed; returns how many. */
int cct_data_names(const char *kind, char **names_out, int most);

#endif
