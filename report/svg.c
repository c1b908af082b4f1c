/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "report/figure.h"
#include "report/html.h"

/* The colours of assets/style.gp as variables of assets/page.css, which gives them other values in the dark. */
static const struct {
  int r, g, b;
  const char *variable;
} colours[] = {
    {0x1f, 0x29, 0x33, "--ink"}, {0x6b, 0x77, 0x85, "--muted"}, {0xe3, 0xe7, 0xeb, "--grid"},
    {0x00, 0x72, 0xb2, "--c0"},  {0xd5, 0x5e, 0x00, "--c1"},    {0x00, 0x9e, 0x73, "--c2"},
    {0xcc, 0x79, 0xa7, "--c3"},  {0xe6, 0x9f, 0x00, "--c4"},    {0x56, 0xb4, 0xe9, "--c5"},
    {0x00, 0x00, 0x00, "--ink"}, {0x9a, 0xa5, 0xb1, "--c6"},
};

/* "rgb(31, 41, 51)" at `at`: appends the variable; 0 where it is no colour of ours. Returns bytes taken. */
static int put_colour(const char *at, struct cct_text *html) {
  int r, g, b, end = 0;
  if (at[1] != 'g' || sscanf(at, "rgb( %d , %d , %d )%n", &r, &g, &b, &end) != 3 || !end)
    return 0;
  for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
    if (colours[i].r == r && colours[i].g == g && colours[i].b == b) {
      cct_text_add(html, "var(%s)", colours[i].variable);
      return end;
    }
  return 0;
}

/* What is replaced wherever it stands: text, its replacement (%s is the figure's name). Their first letters are known
 * below. */
static const struct {
  const char *text, *replacement;
} rules[] = {
    {"id='gp", "id='%s-gp"},
    {"'#gp", "'#%s-gp"},
    {"id=\"gnuplot", "id=\"%s-gnuplot"},
    {"id=\"hypertext", "id=\"%s-hypertext"},
    {"id='hypertext", "id='%s-hypertext"},
    {"url(#", "url(#%s-"},
    {"<clipPath id='", "<clipPath id='%s-"},
    {"color=\"black\"", "color=\"var(--ink)\""},
    {"color='white'", "color='var(--paper)'"}, /* the gap around a point */
    {"font-family=\"Inter:Bold\"", "font-weight=\"700\""},
    {"font-family=\"Inter\"", ""}, /* the page's own font stack */
};

static int put_rule(const char *at, const char *name, struct cct_text *html) {
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    size_t n = strlen(rules[i].text);
    if (*at != *rules[i].text || strncmp(at, rules[i].text, n))
      continue;
    cct_text_add(html, rules[i].replacement, name);
    return (int)n;
  }
  return 0;
}

enum cct_status cct_svg_inline(const char *path, const char *name, const char *alt, struct cct_text *html) {
  char *text;
  size_t length;
  enum cct_status status = cct_read_file(path, (size_t)64 << 20, &text, &length);
  if (status)
    return status;
  const char *box = strstr(text, "viewBox="), *body = strstr(text, "<g id=\"gnuplot_canvas\">");
  if (!box || !body) {
    free(text);
    return cct_fail(CCT_DAMAGED, "%s: not a drawing of gnuplot's svg terminal", path);
  }
  cct_text_add(
      html,
      "<svg class=\"%s\" %.*s xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
      "role=\"img\" aria-label=\"",
      strstr(name, "-narrow") ? "narrow" : "wide", (int)strcspn(box + 9, "\"") + 10, box);
  cct_html_text(html, alt);
  cct_text_add(html, "\">");
  for (const char *at = body; *at;) {
    size_t plain = strcspn(at, "riu'<cf"); /* what none of the rules begins with */
    cct_text_append(html, at, plain);
    at += plain;
    int taken = *at == 'r' ? put_colour(at, html) : *at ? put_rule(at, name, html) : 0;
    if (!taken && *at)
      cct_text_append(html, at++, 1);
    at += taken;
  }
  free(text);
  return html->is_failed ? cct_fail(CCT_NOMEM, "%s: out of memory", path) : CCT_OK;
}
