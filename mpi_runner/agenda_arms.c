/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi_runner/agenda_arms.h"

#include <stdio.h>
#include <string.h>

enum cct_status cct_agenda_add_arm(struct cct_agenda *agenda, const char *text) {
  if (!*text || strlen(text) >= sizeof agenda->arms[0])
    return cct_fail(CCT_USAGE, "arm '%s': empty, or longer than %zu characters", text, sizeof agenda->arms[0] - 1);
  if (agenda->n_arms == CCT_MOST_ARMS)
    return cct_fail(CCT_USAGE, "arm '%s': more than %d arms", text, CCT_MOST_ARMS);
  for (int i = 0; i < agenda->n_arms; i++)
    if (!strcmp(agenda->arms[i], text))
      return cct_fail(CCT_USAGE, "arm '%s': given twice", text);
  snprintf(agenda->arms[agenda->n_arms++], sizeof agenda->arms[0], "%s", text);
  return CCT_OK;
}

static enum cct_status add_arm(void *agenda, const char *text) {
  return cct_agenda_add_arm(agenda, text);
}

static enum cct_status suite_arms(const struct cct_suite *suite, struct cct_agenda *agenda) {
  static const char *const keys[] = {"factor", "values"};
  struct cct_json_at arms = cct_json_at_key(&suite->root, "arms");
  if (!arms.value)
    return CCT_OK;
  struct cct_json_at factor = cct_json_at_key(&arms, "factor"), values = cct_json_at_key(&arms, "values");
  const char *text;
  enum cct_status status = cct_json_known_keys(&arms, keys, 2);
  if (!status)
    status = cct_json_read_string(&factor, &text);
  if (!status && strlen(text) >= sizeof agenda->factor)
    status = cct_json_fail(&factor, CCT_USAGE, "'%s' is no factor", text);
  if (!status)
    snprintf(agenda->factor, sizeof agenda->factor, "%s", text);
  if (!status)
    status = cct_json_expect(&values, CCT_JSON_ARRAY);
  for (size_t i = 0; !status && i < cct_json_size(values.value); i++) {
    struct cct_json_at value = cct_json_at_index(&values, i);
    status = cct_json_read_string(&value, &text);
    if (!status)
      status = add_arm(agenda, text);
  }
  if (!status && !agenda->n_arms)
    status = cct_json_fail(&values, CCT_USAGE, "no arms; give at least one value");
  return status;
}

static enum cct_status flag_arms(const char *text, struct cct_agenda *agenda) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text || (size_t)(equals - text) >= sizeof agenda->factor)
    return cct_fail(CCT_USAGE, "--arms: '%s' is not of the form FACTOR=VALUE,VALUE", text);
  agenda->n_arms = 0;
  snprintf(agenda->factor, sizeof agenda->factor, "%.*s", (int)(equals - text), text);
  for (char *p = agenda->factor; (p = strchr(p, '-'));)
    *p = '_';
  return cct_split(equals + 1, ',', add_arm, agenda);
}

static enum cct_status check_condition(const char *condition) {
  static const char *const known[] = {"off", "on", "tee", "stripped"};
  for (size_t i = 0; i < 4; i++)
    if (!strcmp(condition, known[i]))
      return CCT_OK;
  if (!strncmp(condition, CCT_EMULATED, strlen(CCT_EMULATED)) && condition[strlen(CCT_EMULATED)])
    return CCT_OK;
  const char *near = cct_closest(condition, known, 4);
  return near ? cct_fail(CCT_USAGE, "condition '%s': unknown; did you mean %s?", condition, near)
              : cct_fail(CCT_USAGE, "condition '%s': none of off, on, tee, stripped, emulated:PROFILE", condition);
}

static int is_environment_factor(const char *factor) {
  return !strcmp(factor, "net") || !strcmp(factor, "tuner") || !strcmp(factor, "registration") ||
         !strcmp(factor, "choice");
}

enum cct_option_id cct_agenda_cell_factor(const struct cct_agenda *agenda) {
  enum cct_option_id id = cct_option_by_key(agenda->factor);
  return id < CCT_OPTION_COUNT && cct_option_table[id].scope == CCT_SCOPE_CELL ? id : CCT_OPTION_COUNT;
}

static enum cct_status check_factor(const struct cct_agenda *agenda) {
  if (is_environment_factor(agenda->factor))
    return strcmp(agenda->backend, "cuda")
               ? cct_fail(CCT_USAGE, "arms of '%s' need the cuda backend; %s does not use NCCL", agenda->factor,
                          agenda->backend)
               : CCT_OK;
  enum cct_option_id id = cct_agenda_cell_factor(agenda);
  if (id == CCT_OPTION_COUNT)
    return cct_fail(CCT_USAGE,
                    "'%s' is no factor; condition, net, tuner, registration, choice, or a cell's key such as graph",
                    agenda->factor);
  for (int i = 0; i < agenda->n_arms; i++) {
    struct cct_options checked = {0};
    enum cct_status status = cct_option_set(&checked, id, agenda->arms[i], agenda->factor);
    cct_options_free(&checked);
    if (status)
      return status;
  }
  for (int i = 0; i < agenda->n_cells; i++)
    if (agenda->cells[i].v[id].is_set)
      return cct_fail(CCT_USAGE, "cell %d sets '%s', which the arms compare; leave it to one of them", i,
                      agenda->factor);
  return CCT_OK;
}

enum cct_status cct_agenda_plan_arms(const struct cct_suite *suite, const struct cct_options *flags,
                                     const char *standard, struct cct_agenda *agenda) {
  const char *conditions = flags->v[CCT_OPT_CONDITION].s, *arms = flags->v[CCT_OPT_ARMS].s;
  enum cct_status status = suite_arms(suite, agenda);
  if (!status && agenda->n_arms && arms)
    cct_text_add(suite->notes, "--arms %s replaces the suite's arms\n", arms);
  if (!status && arms)
    status = flag_arms(arms, agenda);
  if (!status && conditions && (!agenda->n_arms || !strcmp(agenda->factor, "condition"))) {
    if (agenda->n_arms)
      cct_text_add(suite->notes, "--condition %s replaces the suite's conditions\n", conditions);
    agenda->n_arms = 0;
    snprintf(agenda->factor, sizeof agenda->factor, "condition");
    status = cct_split(conditions, ',', add_arm, agenda);
  } else if (!status) {
    if (conditions && strlen(conditions) >= sizeof agenda->condition)
      return cct_fail(CCT_USAGE, "--condition: too long");
    snprintf(agenda->condition, sizeof agenda->condition, "%s", conditions ? conditions : standard);
  }
  if (!status && !agenda->n_arms) {
    snprintf(agenda->factor, sizeof agenda->factor, "condition");
    status = add_arm(agenda, standard);
  }
  int is_condition = !strcmp(agenda->factor, "condition");
  if (is_condition)
    agenda->condition[0] = '\0';
  for (int i = 0; !status && i < agenda->n_arms; i++)
    status = check_condition(is_condition ? agenda->arms[i] : agenda->condition);
  if (!status && !is_condition)
    status = check_factor(agenda);
  return status;
}

const char *cct_agenda_condition(const struct cct_agenda *agenda, int arm) {
  return strcmp(agenda->factor, "condition") ? agenda->condition : agenda->arms[arm];
}

const char *cct_agenda_arm_profile(const struct cct_agenda *agenda, int arm) {
  const char *condition = cct_agenda_condition(agenda, arm);
  if (!strncmp(condition, CCT_EMULATED, strlen(CCT_EMULATED)))
    return condition + strlen(CCT_EMULATED);
  return strcmp(condition, "stripped") ? "" : agenda->stripped;
}
