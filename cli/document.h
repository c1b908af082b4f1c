/* SPDX-License-Identifier: Apache-2.0
 * The one JSON document that a command prints under --json. */
#ifndef CCT_CLI_DOCUMENT_H
#define CCT_CLI_DOCUMENT_H

#include "json/json.h"

/* {"schema": 1, "tool": "cctax VERSION", "command": COMMAND}; the caller adds to it and frees it, or has it printed.
 * NULL when out of memory, which printing it reports. */
struct cct_json *cct_document_new(const char *command);
/* Prints it, indented, as the whole of standard output, and frees it. */
enum cct_status cct_document_print(struct cct_json *document) CCT_CHECKED;

#endif
