/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/doctor.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cct_doctor_word(enum cct_doctor_verdict verdict) {
  static const char *const names[] = {
#define NAME(id, name) name,
      CCT_DOCTOR_VERDICTS(NAME)
#undef NAME
  };
  return names[verdict];
}

int cct_version_compare(const char *a, const char *b) {
  while (*a || *b) {
    long x = strtol(a, (char **)&a, 10), y = strtol(b, (char **)&b, 10);
    if (x != y)
      return x < y ? -1 : 1;
    while (*a && !isdigit((unsigned char)*a))
      a++;
    while (*b && !isdigit((unsigned char)*b))
      b++;
  }
  return 0;
}

static int holds(const struct cct_condition *c, const struct cct_machine *machine) {
  const struct cct_machine_value *fact = &machine->v[c->fact], *other = &machine->v[c->other];
  if (c->relation == CCT_IS_UNKNOWN || c->relation == CCT_IS_KNOWN)
    return fact->is_known == (c->relation == CCT_IS_KNOWN);
  if (!fact->is_known)
    return 0;
  switch (c->relation) {
  case CCT_EQUALS:
    return fact->number == c->number;
  case CCT_OVER:
    return fact->number > c->number;
  case CCT_UNDER:
    return fact->number < c->number;
  case CCT_BELOW:
    return other->is_known && fact->number < other->number;
  case CCT_WORD:
    return !strcmp(fact->text, c->text);
  case CCT_NOT_WORD:
    return strcmp(fact->text, c->text) != 0;
  case CCT_OLDER:
    return cct_version_compare(fact->text, c->text) < 0;
  case CCT_SINCE:
    return cct_version_compare(fact->text, c->text) >= 0;
  case CCT_BEHIND:
    return other->is_known && cct_version_compare(fact->text, other->text) < 0;
  default:
    return 0;
  }
}

enum {
  MOST_CONDITIONS = sizeof((struct cct_rule *)0)->when / sizeof(struct cct_condition)
};

int cct_rule_holds(const struct cct_rule *rule, const struct cct_machine *machine) {
  for (int i = 0; i < MOST_CONDITIONS && rule->when[i].relation; i++)
    if (!holds(&rule->when[i], machine))
      return 0;
  return 1;
}

static void gather_evidence(const struct cct_rule *rule, const struct cct_machine *machine, char *out, size_t size) {
  int is_told[CCT_MACHINE_FACT_COUNT] = {0};
  size_t used = 0;
  char say[192];
  for (int i = 0; i < MOST_CONDITIONS && rule->when[i].relation; i++) {
    const struct cct_condition *c = &rule->when[i];
    int has_other = c->relation == CCT_BELOW || c->relation == CCT_BEHIND;
    for (int part = 0; part <= has_other; part++) {
      enum cct_machine_id id = part ? c->other : c->fact;
      if (is_told[id]++ || used >= size)
        continue;
      used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", cct_machine_say(machine, id, say));
    }
  }
}

int cct_doctor_judge(const struct cct_machine *machine, int is_before_run,
                     struct cct_finding findings[CCT_MOST_FINDINGS]) {
  int n = 0;
  for (int i = 0; i < cct_n_rules && n < CCT_MOST_FINDINGS; i++) {
    const struct cct_rule *rule = &cct_rules[i];
    size_t length = strcspn(rule->name, ".");
    int is_answered =
        n && strlen(findings[n - 1].check) == length && !memcmp(findings[n - 1].check, rule->name, length);
    if (is_answered || (rule->is_before_run && !is_before_run) || !cct_rule_holds(rule, machine))
      continue;
    findings[n] = (struct cct_finding){.rule = rule};
    snprintf(findings[n].check, sizeof findings[n].check, "%.*s", (int)length, rule->name);
    gather_evidence(rule, machine, findings[n].evidence, sizeof findings[n].evidence);
    n++;
  }
  return n;
}

enum cct_status cct_doctor_status(const struct cct_machine *machine, const struct cct_finding *findings, int n) {
  for (int i = 0; i < n; i++)
    if (findings[i].rule->verdict == CCT_DOCTOR_BAD)
      return CCT_FOUND;
  const struct cct_machine_value *tee = &machine->v[CCT_MACHINE_TEE];
  int has_tee = tee->is_known && strcmp(tee->text, "none") != 0;
  return machine->v[CCT_MACHINE_CC].is_known || has_tee ? CCT_OK : CCT_UNSUPPORTED;
}
