/* SPDX-License-Identifier: Apache-2.0 */
#include "report/published.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "report/assets.h"

/* Found by computing each row's overhead from its own cells; data/published.tsv has the rows. */
const struct cct_contradiction cct_contradictions[] = {
    {{"tp8-c32", "tp8-out2048", "tp8-pin1", "tp8-pin2"},
     "One configuration, measured four times by one source: the spread of these four is what one of them alone can be "
     "worth."},
    {{"tp8-1024-1024", "tp8-out1024"}, "The same lengths and concurrency in two of its tables."},
    {{"nccl-ar", "nccl-a2a"}, "Labelled -10 % of bandwidth by their source; its own cells say -15.7 % and -12.8 %."},
    {{"h2d"},
     "Stated as 15 to 19 times slower; its own cells are 14.7 apart, and its other sizes reach twice its confidential "
     "value."},
    {{"vllm-decode"}, "Its count of submissions was derived from the same two times: it can confirm nothing."},
};
const int cct_contradiction_count = sizeof cct_contradictions / sizeof *cct_contradictions;

int cct_published_is_contradicted(const char *id) {
  for (int i = 0; i < cct_contradiction_count; i++)
    for (int k = 0; k < 4 && cct_contradictions[i].ids[k]; k++)
      if (!strcmp(cct_contradictions[i].ids[k], id))
        return 1;
  return 0;
}

static int read_row(char *line, struct cct_published_row *row) {
  for (int f = 0; f < 14; f++) {
    row->field[f] = strsep(&line, "\t");
    if (!row->field[f])
      return 0;
  }
  if (!cct_parse_f64(row->field[CCT_PUBLISHED_LO], &row->lo) || !cct_parse_f64(row->field[CCT_PUBLISHED_HI], &row->hi))
    row->lo = row->hi = NAN;
  return 1;
}

enum cct_status cct_published_read(struct cct_published *published_out) {
  struct cct_published published = {.text = strdup(cct_asset_published_tsv)};
  char *rest = published.text;
  if (!rest)
    return cct_fail(CCT_NOMEM, "published.tsv: out of memory");
  int is_head = 1;
  for (char *line; (line = strsep(&rest, "\n"));) {
    if (!*line || *line == '#')
      continue;
    if (is_head) { /* the names of the columns */
      is_head = 0;
      continue;
    }
    if (published.n == (int)(sizeof published.rows / sizeof *published.rows) ||
        !read_row(line, &published.rows[published.n])) {
      free(published.text);
      return cct_fail(CCT_DAMAGED, "published.tsv: row %d is not the 14 fields that it has to be", published.n + 1);
    }
    published.n++;
  }
  *published_out = published;
  return CCT_OK;
}

void cct_published_free(struct cct_published *published) {
  free(published->text);
  memset(published, 0, sizeof *published);
}
