/* SPDX-License-Identifier: Apache-2.0
 * The published figures of data/published.tsv, and where they contradict themselves. */
#ifndef CCT_REPORT_PUBLISHED_H
#define CCT_REPORT_PUBLISHED_H

#include "base/status.h"

struct cct_published_row {
  char *field[14]; /* in the file's order; "" where it is empty */
  double lo, hi;   /* overhead as time added, per cent; NAN: not published */
};
#define CCT_PUBLISHED_FIELDS(X)                                                                                        \
  X(ID)                                                                                                                \
  X(SOURCE)                                                                                                            \
  X(SECTION) X(PLATFORM) X(WORKLOAD) X(METRIC) X(UNIT) X(CC_OFF) X(CC_ON) X(STATED) X(LO) X(HI) X(PREDICT) X(NOTE)
enum cct_published_field {
#define CCT_PUBLISHED_FIELD_ENUM(id) CCT_PUBLISHED_##id,
  CCT_PUBLISHED_FIELDS(CCT_PUBLISHED_FIELD_ENUM)
#undef CCT_PUBLISHED_FIELD_ENUM
};

struct cct_published {
  char *text; /* owned: the fields point into it */
  struct cct_published_row rows[128];
  int n;
};
enum cct_status cct_published_read(struct cct_published *published_out) CCT_CHECKED;
void cct_published_free(struct cct_published *published);

struct cct_contradiction {
  const char *ids[4]; /* of the rows concerned; NULL: none further */
  const char *text;
};
extern const struct cct_contradiction cct_contradictions[];
extern const int cct_contradiction_count;
int cct_published_is_contradicted(const char *id);

#endif
