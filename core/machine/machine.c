/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/machine.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "json/json.h"

const struct cct_machine_fact cct_machine_facts[CCT_MACHINE_FACT_COUNT] = {
#define ROW(id, name, fact_class, kind, where) {name, #fact_class, CCT_MACHINE_##kind, where},
    CCT_MACHINE_FACTS(ROW)
#undef ROW
};

void cct_machine_set_number(struct cct_machine *machine, enum cct_machine_id id, double value) {
  machine->v[id] = (struct cct_machine_value){.is_known = value >= 0, .number = value};
}

void cct_machine_set_text(struct cct_machine *machine, enum cct_machine_id id, const char *text) {
  machine->v[id].is_known = *text != '\0';
  snprintf(machine->v[id].text, sizeof machine->v[id].text, "%s", text);
}

char *cct_machine_say(const struct cct_machine *machine, enum cct_machine_id id, char out[192]) {
  const struct cct_machine_value *value = &machine->v[id];
  const char *name = cct_machine_facts[id].name;
  if (!value->is_known)
    snprintf(out, 192, "%s not known", name);
  else if (cct_machine_facts[id].kind == CCT_MACHINE_TEXT)
    snprintf(out, 192, "%s %s", name, value->text);
  else
    snprintf(out, 192, "%s %.12g", name, value->number);
  return out;
}

struct cct_json *cct_machine_to_json(const struct cct_machine *machine) {
  struct cct_json *object = cct_json_new_object(), *facts = cct_json_new_array();
  for (int id = 0; id < CCT_MACHINE_FACT_COUNT; id++) {
    const struct cct_machine_fact *fact = &cct_machine_facts[id];
    const struct cct_machine_value *value = &machine->v[id];
    struct cct_json *row = cct_json_new_object();
    cct_json_set_string(row, "name", fact->name);
    cct_json_set_string(row, "class", fact->fact_class);
    if (!value->is_known)
      cct_json_set_null(row, "value");
    else if (fact->kind == CCT_MACHINE_TEXT)
      cct_json_set_string(row, "value", value->text);
    else if (value->number == (double)(int64_t)value->number)
      cct_json_set_i64(row, "value", (int64_t)value->number);
    else
      cct_json_set_f64(row, "value", value->number);
    cct_json_set_string(row, "read", fact->where);
    cct_json_add(facts, row);
  }
  cct_json_set(object, "facts", facts);
  return object;
}

static enum cct_status find(const struct cct_json_at *at, int *id_out) {
  const char *name, *names[CCT_MACHINE_FACT_COUNT];
  enum cct_status status = cct_json_read_string(at, &name);
  for (int id = 0; !status && id < CCT_MACHINE_FACT_COUNT; id++) {
    names[id] = cct_machine_facts[id].name;
    if (!strcmp(names[id], name)) {
      *id_out = id;
      return CCT_OK;
    }
  }
  if (status)
    return status;
  const char *near = cct_closest(name, names, CCT_MACHINE_FACT_COUNT);
  return cct_json_fail(at, CCT_USAGE, "'%s': no such fact of a machine%s%s%s", name, near ? "; did you mean " : "",
                       near ? near : "", near ? "?" : "");
}

static enum cct_status read_fact(const struct cct_json_at *row, struct cct_machine *machine, int *is_seen) {
  static const char *const keys[] = {"name", "class", "value", "read"};
  struct cct_json_at name = cct_json_at_key(row, "name"), at = cct_json_at_key(row, "value");
  const char *text;
  double number;
  int id = 0;
  enum cct_status status = cct_json_expect(row, CCT_JSON_OBJECT);
  if (!status)
    status = cct_json_known_keys(row, keys, sizeof keys / sizeof *keys);
  if (!status)
    status = find(&name, &id);
  if (!status && is_seen[id]++)
    status = cct_json_fail(&name, CCT_USAGE, "'%s' is given twice", cct_machine_facts[id].name);
  if (status || (at.value && cct_json_type(at.value) == CCT_JSON_NULL))
    return status;
  if (cct_machine_facts[id].kind == CCT_MACHINE_TEXT) {
    status = cct_json_read_string(&at, &text);
    if (!status && (!*text || strlen(text) >= sizeof machine->v[id].text))
      status = cct_json_fail(&at, CCT_USAGE, "a text of 1 to %zu bytes, or null", sizeof machine->v[id].text - 1);
    if (!status)
      cct_machine_set_text(machine, (enum cct_machine_id)id, text);
  } else {
    status = cct_json_read_f64(&at, 0, 1e18, &number);
    if (!status)
      cct_machine_set_number(machine, (enum cct_machine_id)id, number);
  }
  return status;
}

enum cct_status cct_machine_load(const char *path, struct cct_machine *machine_out) {
  struct cct_json *document = NULL;
  struct cct_machine machine = {0};
  int is_seen[CCT_MACHINE_FACT_COUNT] = {0};
  enum cct_status status = cct_json_load(path, &document);
  if (status)
    return status;
  static const char *const keys[] = {"schema", "tool", "command", "verdict", "checks", "machine"};
  struct cct_json_at root = cct_json_root(document, path), at = cct_json_at_key(&root, "machine"),
                     facts = cct_json_at_key(&at, "facts");
  int64_t schema;
  status = cct_json_known_keys(&root, keys, sizeof keys / sizeof *keys);
  if (!status)
    status = cct_json_member_i64(&root, "schema", 1, 1, &schema);
  if (!status)
    status = cct_json_expect(&facts, CCT_JSON_ARRAY);
  for (size_t i = 0; !status && i < cct_json_size(facts.value); i++) {
    struct cct_json_at row = cct_json_at_index(&facts, i);
    status = read_fact(&row, &machine, is_seen);
  }
  cct_json_free(document);
  if (!status)
    *machine_out = machine;
  return status;
}
