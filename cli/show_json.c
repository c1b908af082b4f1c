/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/document.h"
#include "cli/show_run.h"
#include "report/remarks.h"

static struct cct_json *facts_of(const struct cct_show *show) {
  struct cct_json *facts = cct_json_new_array();
  int n_other;
  for (int b = 0; b < show->n_blocks; b++)
    for (int i = 0; show->blocks[b] && i < show->blocks[b]->n_facts; i++) {
      const struct cct_record_fact *fact = &show->blocks[b]->facts[i];
      if (cct_show_is_place(fact) || !cct_show_is_first(show, b, fact, &n_other))
        continue;
      struct cct_json *row = cct_json_new_object();
      cct_json_set_string(row, "name", fact->name);
      cct_json_set_string(row, "class", cct_fact_class_name(fact->fact_class));
      cct_json_set_string(row, "value", fact->value);
      cct_json_set_i64(row, "other_blocks_differ", n_other);
      cct_json_add(facts, row);
    }
  return facts;
}

static struct cct_json *marks_of(const struct cct_show *show) {
  struct cct_json *marks = cct_json_new_array();
  char text[200] = "";
  for (int b = 0; b < show->n_blocks; b++) {
    if (show->blocks[b])
      cct_block_mark(show->blocks[b], text, sizeof text);
    if (!show->blocks[b] || !*text)
      continue;
    struct cct_json *row = cct_json_new_object();
    cct_json_set_i64(row, "block", b);
    cct_json_set_string(row, "arm", show->blocks[b]->head.arm);
    cct_json_set_string(row, "mark", text);
    cct_json_add(marks, row);
  }
  return marks;
}

static enum cct_status add_metrics(const struct cct_show *show, int cell, int arm, struct cct_json *metrics) {
  const struct cct_block_cell *known = cct_show_cell(show, cell, arm);
  enum cct_status status = CCT_OK;
  for (int m = 0; known && !status && m < known->n_metrics; m++) {
    struct cct_show_summary summary;
    status = cct_show_summarize(show, cell, arm, m, &summary);
    if (status || !summary.n)
      continue;
    struct cct_json *row = cct_json_new_object();
    cct_json_set_string(row, "metric", known->metrics[m].metric.name);
    cct_json_set_string(row, "unit", known->metrics[m].metric.unit);
    cct_json_set_i64(row, "n", (int64_t)summary.n);
    cct_json_set_i64(row, "blocks", summary.n_blocks);
    cct_json_set_f64(row, "median", summary.median);
    cct_json_set_f64(row, "mean", summary.mean);
    cct_json_set_f64(row, "p99", summary.p99);
    if (summary.spread > 0) {
      cct_json_set_f64(row, "ranks_spread", summary.spread);
      cct_json_set_i64(row, "slowest_rank", (int64_t)summary.slowest);
      cct_json_set_f64(row, "slowest_share", summary.slowest_share);
    }
    cct_json_add(metrics, row);
  }
  return status;
}

static enum cct_status add_arm(const struct cct_show *show, int cell, int arm, struct cct_json *arms) {
  const struct cct_block_cell *known = cct_show_cell(show, cell, arm);
  struct cct_json *row = cct_json_new_object(), *metrics = cct_json_new_array(), *schedules = cct_json_new_array();
  char counts[200];
  enum cct_status status = add_metrics(show, cell, arm, metrics);
  cct_show_counts(show, cell, arm, counts, sizeof counts);
  const char *last = "", *said;
  for (int b = 0; (said = cct_show_schedule(show, cell, arm, last, &b)); last = said)
    cct_json_add_string(schedules, said);
  cct_json_set_string(row, "arm", show->agenda->arms[arm]);
  cct_json_set_string(row, "label", known ? known->label : NULL);
  cct_json_set(row, "metrics", metrics);
  cct_json_set(row, "schedules", schedules);
  cct_json_set_string(row, "performed", *counts ? counts : NULL);
  cct_json_add(arms, row);
  return status;
}

static struct cct_json *trouble_of(const struct cct_show *show, int cell) {
  struct cct_json *trouble = cct_json_new_array();
  for (int b = 0; b < show->n_blocks; b++) {
    const struct cct_block_cell *at = show->blocks[b] ? &show->blocks[b]->cells[cell] : NULL;
    if (!at || (at->state != CCT_CELL_FAILED && at->state != CCT_CELL_REFUSED))
      continue;
    struct cct_json *row = cct_json_new_object();
    cct_json_set_i64(row, "block", b);
    cct_json_set_string(row, "state", at->state == CCT_CELL_FAILED ? "failed" : "refused");
    cct_json_set_string(row, "reason", at->reason);
    cct_json_add(trouble, row);
  }
  return trouble;
}

static enum cct_status add_cell(const struct cct_show *show, int cell, const char *key, struct cct_json *cells) {
  struct cct_json *row = cct_json_new_object(), *arms = cct_json_new_array(), *parameters = NULL;
  enum cct_status status = cct_json_parse(key, strlen(key), show->run, &parameters);
  cct_json_set(row, "cell", parameters);
  for (int arm = 0; !status && arm < show->agenda->n_arms; arm++)
    status = add_arm(show, cell, arm, arms);
  cct_json_set(row, "arms", arms);
  cct_json_set(row, "trouble", trouble_of(show, cell));
  cct_json_add(cells, row);
  return status;
}

enum cct_status cct_show_json(const struct cct_show *show) {
  const struct cct_agenda *agenda = show->agenda;
  const struct cct_block *first = NULL;
  struct cct_json *document = cct_document_new("show"), *cells = cct_json_new_array();
  enum cct_status status = CCT_OK;
  for (int b = 0; b < show->n_blocks && !first; b++)
    first = show->blocks[b];
  cct_json_set_string(document, "run", show->run);
  cct_json_set_string(document, "question", *agenda->question ? agenda->question : NULL);
  cct_json_set_string(document, "agenda", agenda->digest);
  cct_json_set_string(document, "backend", agenda->backend);
  cct_json_set_string(document, "profile", *agenda->profile ? agenda->profile : NULL);
  cct_json_set_i64(document, "rounds", agenda->rounds);
  cct_json_set_i64(document, "samples", agenda->samples);
  cct_json_set_i64(document, "warmup", agenda->warmup);
  cct_json_set_i64(document, "seed", agenda->seed);
  cct_json_set_i64(document, "boots", agenda->n_boots);
  cct_json_set_i64(document, "blocks", show->n_blocks);
  cct_json_set_i64(document, "finished", show->n_finished);
  cct_json_set_string(document, "factor", agenda->factor);
  cct_json_set_string(document, "condition", *agenda->condition ? agenda->condition : NULL);
  cct_json_set(document, "facts", facts_of(show));
  cct_json_set(document, "marks", marks_of(show));
  for (int c = 0; first && !status && c < first->n_cells; c++)
    status = add_cell(show, c, first->cells[c].key, cells);
  cct_json_set(document, "cells", cells);
  if (status) {
    cct_json_free(document);
    return status;
  }
  return cct_document_print(document);
}
