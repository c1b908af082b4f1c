/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "fakes/twin_gpu.h"

struct twin_costs twin_costs;

__attribute__((constructor)) static void read_costs(void) {
  static const char *const names[] = {
#define NAME(name) #name,
      TWIN_COSTS(NAME)
#undef NAME
  };
  const char *given = getenv("TWIN_COSTS");
  double *costs = (double *)&twin_costs;
  char text[512], *rest = text, *word;
  snprintf(text, sizeof text, "%s", given ? given : "");
  while ((word = strsep(&rest, ","))) {
    char *equals = strchr(word, '=');
    for (size_t i = 0; equals && i < sizeof names / sizeof *names; i++)
      if (!strncmp(word, names[i], (size_t)(equals - word)) && !names[i][equals - word])
        costs[i] = strtod(equals + 1, NULL);
  }
}

void twin_spend(double us) {
  int64_t until_ns = cct_clock_ns() + (int64_t)(us * 1e3);
  for (int64_t left; (left = until_ns - cct_clock_ns()) > 0;)
    if (left > 300000)
      nanosleep(&(struct timespec){.tv_nsec = left - 200000 < 999999999 ? left - 200000 : 999999999}, NULL);
}
