/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/doctor_trials.h"
#include "cli/document.h"
#include "json/json.h"
#include "machine/doctor.h"

static const char *text_of(const struct cct_machine *machine, enum cct_machine_id id) {
  return machine->v[id].is_known ? machine->v[id].text : "not known";
}

static void print_text(const struct cct_machine *machine, const struct cct_finding *findings, int n) {
  const struct cct_machine_value *gpus = &machine->v[CCT_MACHINE_GPU_COUNT], *bus = &machine->v[CCT_MACHINE_GPU_PCI];
  if (gpus->is_known)
    printf("GPUs     %.0f x %s, driver %s\n", gpus->number, text_of(machine, CCT_MACHINE_GPU_NAME),
           text_of(machine, CCT_MACHINE_DRIVER));
  else if (bus->is_known)
    printf("GPUs     not known, %.0f on the PCI bus; driver %s\n", bus->number, text_of(machine, CCT_MACHINE_DRIVER));
  else
    printf("GPUs     not known, driver %s\n", text_of(machine, CCT_MACHINE_DRIVER));
  printf("CPU      %s, TEE %s\n\n", text_of(machine, CCT_MACHINE_CPU), text_of(machine, CCT_MACHINE_TEE));
  for (int i = 0; i < n; i++) {
    const struct cct_rule *rule = findings[i].rule;
    printf("%-8s %-16s %s (%s)\n", cct_doctor_word(rule->verdict), findings[i].check, rule->says, findings[i].evidence);
    if (rule->remedy)
      printf("%25s -> %s\n", "", rule->remedy);
    if (rule->source)
      printf("%25s    source: %s\n", "", rule->source);
  }
}

static enum cct_status print_json(const struct cct_machine *machine, const struct cct_finding *findings, int n,
                                  enum cct_status verdict) {
  struct cct_json *document = cct_document_new("doctor"), *rows = cct_json_new_array();
  cct_json_set_string(document, "verdict", verdict == CCT_OK ? "ok" : verdict == CCT_FOUND ? "bad" : "unknown");
  for (int i = 0; i < n; i++) {
    const struct cct_rule *rule = findings[i].rule;
    struct cct_json *row = cct_json_new_object();
    cct_json_set_string(row, "check", findings[i].check);
    cct_json_set_string(row, "rule", rule->name);
    cct_json_set_string(row, "verdict", cct_doctor_word(rule->verdict));
    cct_json_set_string(row, "says", rule->says);
    cct_json_set_string(row, "evidence", findings[i].evidence);
    cct_json_set_string(row, "remedy", rule->remedy);
    cct_json_set_string(row, "source", rule->source);
    cct_json_add(rows, row);
  }
  cct_json_set(document, "checks", rows);
  cct_json_set(document, "machine", cct_machine_to_json(machine));
  return cct_document_print(document);
}

enum cct_status cct_cmd_doctor(const struct cct_options *options, const char *const *args, int n_args) {
  const char *fixture = options->v[CCT_OPT_FIXTURE].s, *nccl_log = options->v[CCT_OPT_NCCL_LOG].s;
  struct cct_machine machine;
  struct cct_finding findings[CCT_MOST_FINDINGS];
  if (n_args)
    return cct_fail(CCT_USAGE, "'%s': doctor takes no argument; --fixture FILE judges a recorded machine", args[0]);
  if (fixture && nccl_log)
    return cct_fail(CCT_USAGE, "--nccl-log is of this machine, --fixture is another: give one of them");
  if (fixture && options->v[CCT_OPT_TRY].i)
    return cct_fail(CCT_USAGE, "--try is of this machine, --fixture is another: give one of them");
  enum cct_status status = fixture ? cct_machine_load(fixture, &machine) : cct_machine_read(nccl_log, &machine);
  if (!status && options->v[CCT_OPT_TRY].i)
    status = cct_doctor_try(options, &machine);
  if (status)
    return status;
  int n = cct_doctor_judge(&machine, (int)options->v[CCT_OPT_BEFORE_RUN].i, findings);
  enum cct_status verdict = cct_doctor_status(&machine, findings, n);
  if (options->v[CCT_OPT_JSON].i)
    status = print_json(&machine, findings, n, verdict);
  else
    print_text(&machine, findings, n);
  return status ? status : verdict;
}
