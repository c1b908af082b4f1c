/* SPDX-License-Identifier: Apache-2.0
 * Judging a machine: a table of rules, each a verdict with the conditions under which it holds. The rules of one check
 * stand together and the first that holds speaks; a check none of whose rules holds does not concern this machine. A
 * condition on a fact that is not known does not hold. */
#ifndef CCT_MACHINE_DOCTOR_H
#define CCT_MACHINE_DOCTOR_H

#include "machine/machine.h"

#define CCT_DOCTOR_VERDICTS(X) X(OK, "ok") X(WARN, "warn") X(BAD, "bad") X(UNKNOWN, "unknown")
enum cct_doctor_verdict {
#define CCT_DOCTOR_VERDICT_ENUM(id, name) CCT_DOCTOR_##id,
  CCT_DOCTOR_VERDICTS(CCT_DOCTOR_VERDICT_ENUM)
#undef CCT_DOCTOR_VERDICT_ENUM
};
const char *cct_doctor_word(enum cct_doctor_verdict verdict);

enum cct_relation {
  CCT_NO_CONDITION, /* ends a rule's list */
  CCT_EQUALS,       /* number */
  CCT_OVER,
  CCT_UNDER,
  CCT_BELOW, /* less than the number of fact `other` */
  CCT_WORD,  /* text is `text` */
  CCT_NOT_WORD,
  CCT_OLDER,  /* a version before `text` */
  CCT_SINCE,  /* `text` or a later version */
  CCT_BEHIND, /* a version before that of fact `other` */
  CCT_IS_KNOWN,
  CCT_IS_UNKNOWN,
};
struct cct_condition {
  enum cct_relation relation;
  enum cct_machine_id fact;
  double number;
  const char *text;
  enum cct_machine_id other;
};
struct cct_rule {
  const char *name; /* "CHECK.case" */
  enum cct_doctor_verdict verdict;
  int is_before_run; /* asked only whether the machine is fresh enough to be measured */
  struct cct_condition when[4];
  const char *says;
  const char *remedy; /* NULL for ok */
  const char *source; /* of a known bad combination; NULL */
};
extern const struct cct_rule cct_rules[];
extern const int cct_n_rules;

struct cct_finding {
  const struct cct_rule *rule;
  char check[32];
  char evidence[320]; /* the facts that the rule looked at, with their values */
};
#define CCT_MOST_FINDINGS 64

/* Returns how many checks spoke. */
int cct_doctor_judge(const struct cct_machine *machine, int is_before_run,
                     struct cct_finding findings[CCT_MOST_FINDINGS]);
/* CCT_FOUND with a bad verdict; CCT_UNSUPPORTED, without a line, when neither a GPU's state nor a CPU TEE could be
 * told; else CCT_OK. */
enum cct_status cct_doctor_status(const struct cct_machine *machine, const struct cct_finding *findings, int n);
int cct_rule_holds(const struct cct_rule *rule, const struct cct_machine *machine);
/* < 0, 0, > 0 as `a` is before, the same as, or after `b`; numbers separated by whatever else is there. */
int cct_version_compare(const char *a, const char *b);

#endif
