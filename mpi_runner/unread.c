/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi_runner/unread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "workloads/shape/cell.h"

int cct_is_asked(const struct cct_options *flags, enum cct_option_id id) {
  const struct cct_value *value = &flags->v[id];
  return value->is_set || (value->has_value && !cct_option_table[id].standard);
}

/* "--batch", or "suite.json: batch" */
static const char *name_key(const struct cct_options *flags, const char *suite, enum cct_option_id id, char out[512]) {
  char key[32];
  int is_flag = cct_is_asked(flags, id) || (id == CCT_OPT_LAYOUT && flags->v[CCT_OPT_LAYOUTS].is_set);
  if (is_flag)
    snprintf(out, 512, "--%s", cct_option_table[id == CCT_OPT_LAYOUT ? CCT_OPT_LAYOUTS : id].name);
  else
    snprintf(out, 512, "%s: %s", suite, cct_option_key(id, key));
  return out;
}

static enum cct_status refuse_keys(const struct cct_options *flags, const char *suite, const struct cct_agenda *agenda,
                                   const struct cct_options *cells, int n) {
  char why[200], name[512];
  for (int id = 0; id < CCT_OPTION_COUNT; id++) {
    if (cct_option_table[id].scope != CCT_SCOPE_CELL || !cct_cells_ignore(cells, n, (enum cct_option_id)id, why))
      continue;
    if (cct_option_by_key(agenda->factor) == (enum cct_option_id)id)
      return cct_fail(CCT_USAGE, "arms of '%s': %s", agenda->factor, why);
    return cct_fail(CCT_USAGE, "%s: %s", name_key(flags, suite, (enum cct_option_id)id, name), why);
  }
  return CCT_OK;
}

static enum cct_status refuse_backend(const struct cct_options *flags, const char *suite,
                                      const struct cct_agenda *agenda, const struct cct_options *cell) {
  char name[512];
  for (int id = 0; id < CCT_OPTION_COUNT; id++) {
    const char *neutral, *only = cct_only_backend((enum cct_option_id)id, &neutral);
    const struct cct_value *value = &cell->v[id];
    if (only && cct_option_table[id].scope == CCT_SCOPE_CELL && value->is_set && strcmp(only, agenda->backend) &&
        strcmp(value->s, neutral))
      return cct_fail(CCT_USAGE, "%s %s: %s alone reads it, and the backend is %s",
                      name_key(flags, suite, (enum cct_option_id)id, name), value->s, only, agenda->backend);
  }
  const char *place = cell->v[CCT_OPT_PLACE].s, *collective = cell->v[CCT_OPT_COLLECTIVE].s;
  if (cct_cell_workload(cell) == CCT_WORKLOAD_COLLECTIVE && place && !strcmp(place, "in") &&
      !cct_has_in_place(collective, agenda->backend))
    return cct_fail(CCT_USAGE, "%s in: the %s backend moves %s from one buffer to another",
                    name_key(flags, suite, CCT_OPT_PLACE, name), agenda->backend, collective);
  return CCT_OK;
}

enum cct_status cct_unread_refuse_flags(const struct cct_options *flags, const char *backend) {
  for (int id = 0; id < CCT_OPTION_COUNT; id++) {
    const char *neutral, *only = cct_only_backend((enum cct_option_id)id, &neutral);
    if (only && cct_option_table[id].scope == CCT_SCOPE_COMMAND && flags->v[id].is_set && strcmp(only, backend))
      return cct_fail(CCT_USAGE, "--%s: %s alone reads it, and the backend is %s", cct_option_table[id].name, only,
                      backend);
  }
  return CCT_OK;
}

enum cct_status cct_unread_refuse(const struct cct_options *flags, const char *suite, const struct cct_agenda *agenda) {
  int n = agenda->n_cells * agenda->n_arms, is_named = flags->v[CCT_OPT_BACKEND].is_set, made = 0;
  struct cct_options *cells = calloc((size_t)n, sizeof *cells);
  enum cct_status status = cells ? CCT_OK : cct_fail(CCT_NOMEM, "out of memory: %d cells", n);
  for (; !status && made < n; made += !status)
    status = cct_agenda_cell(agenda, made / agenda->n_arms, made % agenda->n_arms, &cells[made]);
  if (!status)
    status = refuse_keys(flags, suite, agenda, cells, n);
  for (int i = 0; !status && is_named && i < n; i++)
    status = refuse_backend(flags, suite, agenda, &cells[i]);
  if (!status && is_named)
    status = cct_unread_refuse_flags(flags, agenda->backend);
  for (int i = 0; i < made; i++)
    cct_options_free(&cells[i]);
  free(cells);
  return status;
}
