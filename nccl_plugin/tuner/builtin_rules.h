/* SPDX-License-Identifier: Apache-2.0
 * The rules files of data/profiles/rules, generated into the plugin by embed_rules.cmake. */
#ifndef CCT_BUILTIN_RULES_H
#define CCT_BUILTIN_RULES_H

#include <stddef.h>

struct cct_builtin_rules {
  const char *name; /* "h200-no-multicast.csv"; NULL ends the list */
  const unsigned char *text;
  size_t length;
};
extern const struct cct_builtin_rules cct_builtin_rules[];

#endif
