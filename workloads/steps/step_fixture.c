/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/steps/step_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int is_so, const char *what) {
  if (!is_so) {
    fprintf(stderr, "the test's cell is no cell: %s\n", what);
    abort();
  }
}

struct cct_options cct_fixture_cell(const char *words) {
  struct cct_options cell;
  char text[512], *save = NULL;
  require(!cct_options_init(&cell), "defaults");
  snprintf(text, sizeof text, "%s", words);
  for (char *key = strtok_r(text, " ", &save); key; key = strtok_r(NULL, " ", &save)) {
    enum cct_option_id id = cct_option_by_name(key);
    require(id < CCT_OPTION_COUNT && !cct_option_set(&cell, id, strtok_r(NULL, " ", &save), key), words);
  }
  return cell;
}

enum cct_status cct_fixture_build(const char *words, struct cct_step *step_out) {
  struct cct_options cell = cct_fixture_cell(words);
  enum cct_status status = cct_step_build(&cell, step_out);
  cct_options_free(&cell);
  return status;
}

struct cct_counts cct_fixture_count(const char *words, int64_t *tokens_out) {
  struct cct_step step;
  struct cct_counts counts;
  int64_t slots[64];
  require(!cct_fixture_build(words, &step), words);
  const struct cct_program *program = step.job->roles[0].program;
  for (int i = 0; i < program->n_slots; i++)
    slots[i] = program->slots[i].value;
  struct cct_binding binding = {.slots = slots};
  cct_count_program(step.job, program, &binding, &counts);
  if (tokens_out)
    *tokens_out = step.tokens;
  cct_step_free(&step);
  return counts;
}

int cct_fixture_is_same(double is, double should) {
  return fabs(is - should) <= 1e-9 * fabs(should) + 0.5;
}
