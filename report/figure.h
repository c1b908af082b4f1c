/* SPDX-License-Identifier: Apache-2.0
 * One figure: its data, its script and its four drawings in DIR/figures. gnuplot stands behind figure.c alone. A text
 * of a run (a name, a label) reaches gnuplot only as a field of the data file, never as part of a command. */
#ifndef CCT_REPORT_FIGURE_H
#define CCT_REPORT_FIGURE_H

#include "base/status.h"
#include "base/text.h"

struct cct_figure {
  char name[48];           /* of its files: letters, digits and underscores; made here, never taken from a run */
  const char *body;        /* the script's asset, without the prologue */
  char heading[96];        /* the question it answers, for the page */
  struct cct_text alt;     /* what it shows, in words, for who does not see it */
  struct cct_text caption; /* how to read it, for everybody */
  struct cct_text data;    /* NAME.dat: datasets 0 title, 1 names of series, 2.. rows; tab-separated */
  struct cct_text numbers; /* the prologue: gnuplot assignments of numbers */
  int width, height, narrow_width, narrow_height; /* pixels */
  int is_drawn;
};

/* Opens dataset 0: title, what is compared, how it is measured, label. */
void cct_figure_title(struct cct_figure *figure, const char *title, const char *subtitle, const char *note,
                      const char *label);
/* Opens a further dataset. */
void cct_figure_next(struct cct_figure *figure);
/* A text as one field, followed by `after` ("\t" or "\n"): no quotes, backslashes or control characters survive; longer
 * than `limit` characters it loses its middle to an ellipsis. */
void cct_figure_field(struct cct_figure *figure, const char *text, int limit, const char *after);
/* Characters (not bytes) of a text, at most `limit`. */
int cct_text_width(const char *text, int limit);

/* Writes NAME.dat, NAME.gp and style.gp into `directory` and has gnuplot draw NAME.svg, NAME-narrow.svg, NAME.png,
 * NAME.pdf. CCT_UNSUPPORTED: no gnuplot here. */
enum cct_status cct_figure_draw(struct cct_figure *figure, const char *directory) CCT_CHECKED;
void cct_figure_free(struct cct_figure *figure);

/* The drawing as an element of an HTML page: ids made unique by `name`, colours made variables of the page's style,
 * fonts completed, an accessible name. */
enum cct_status cct_svg_inline(const char *path, const char *name, const char *alt, struct cct_text *html) CCT_CHECKED;

#endif
