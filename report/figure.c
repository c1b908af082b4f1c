/* SPDX-License-Identifier: Apache-2.0 */
#include "report/figure.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "report/assets.h"

void cct_figure_title(struct cct_figure *figure, const char *title, const char *subtitle, const char *note,
                      const char *label) {
  cct_figure_field(figure, title, 60, "\t");
  cct_figure_field(figure, subtitle, 60, "\t");
  cct_figure_field(figure, note, 60, "\t");
  cct_figure_field(figure, label, 40, "\n");
}

void cct_figure_next(struct cct_figure *figure) {
  cct_text_add(&figure->data, "\n\n");
}

/* Bytes of the UTF-8 character at `s`; 0 where the bytes are none. */
static int character_length(const unsigned char *s) {
  int n = *s < 0x80 ? 1 : (*s & 0xe0) == 0xc0 ? 2 : (*s & 0xf0) == 0xe0 ? 3 : (*s & 0xf8) == 0xf0 ? 4 : 0;
  for (int i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  return n;
}

int cct_text_width(const char *text, int limit) {
  int width = 0;
  for (const char *p = text; *p && width < limit; width++) {
    int n = character_length((const unsigned char *)p);
    p += n ? n : 1;
  }
  return width;
}

void cct_figure_field(struct cct_figure *figure, const char *text, int limit, const char *after) {
  struct cct_text *data = &figure->data;
  int width = cct_text_width(text, INT_MAX), head = width > limit ? limit / 2 : width, at = 0;
  if (!*text)
    cct_text_add(data, " "); /* an empty field would read as missing */
  for (const char *p = text; *p; at++) {
    int n = character_length((const unsigned char *)p);
    const char *taken = p;
    p += n ? n : 1;
    if (at >= head && at < head + width - limit + 1) { /* what tells names apart stands at their ends */
      cct_text_add(data, at == head ? "\u2026" : "");
      continue;
    }
    if (n == 0 || (unsigned char)*taken < 0x20 || *taken == 0x7f)
      cct_text_add(data, " ");
    else if (*taken == '"')
      cct_text_add(data, "\u201d"); /* gnuplot takes quotes for the ends of a field, a backslash for an escape */
    else if (*taken == '\\')
      cct_text_add(data, "\u2216");
    else if (*taken == '#' && at == 0)
      cct_text_add(data, "\uff03"); /* a comment's sign */
    else
      cct_text_append(data, taken, (size_t)n);
  }
  cct_text_add(data, "%s", after);
}

static enum cct_status write_in(const char *directory, const char *name, const char *ending, const char *text) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s%s", directory, name, ending);
  return cct_write_file(path, text, strlen(text));
}

static enum cct_status write_script(const struct cct_figure *figure, const char *directory) {
  struct cct_text script = {0};
  cct_text_add(&script, "# gnuplot %s.gp draws %s.svg, -narrow.svg, .png and .pdf again from %s.dat\n", figure->name,
               figure->name, figure->name);
  cct_text_add(&script, "NAME = \"%s\"; DATA = \"%s.dat\"\nW = %d; H = %d; NW = %d; NH = %d\n%s\n", figure->name,
               figure->name, figure->width, figure->height, figure->narrow_width, figure->narrow_height,
               figure->numbers.s ? figure->numbers.s : "");
  cct_text_add(&script,
               "if (!exists(\"OUT\")) { do for [OUT in \"svg narrow png pdf\"] { reset; load \"%s.gp\" }; exit }\n"
               "load \"style.gp\"\n",
               figure->name);
  cct_text_append(&script, figure->body, strlen(figure->body));
  enum cct_status status = script.is_failed ? cct_fail(CCT_NOMEM, "%s: out of memory", figure->name)
                                            : write_in(directory, figure->name, ".gp", script.s);
  cct_text_free(&script);
  return status;
}

/* The last line that gnuplot said: where its script failed, and why. */
static void last_line(int fd, char *line, size_t size) {
  char said[4096], *at = said;
  size_t got = 0;
  ssize_t n;
  while ((n = read(fd, said + got, sizeof said - 1 - got)) > 0) {
    got += (size_t)n;
    if (got > sizeof said / 2) { /* keep reading: a full pipe would stop gnuplot */
      memmove(said, said + got - sizeof said / 4, sizeof said / 4);
      got = sizeof said / 4;
    }
  }
  while (got && (said[got - 1] == '\n' || said[got - 1] == ' '))
    got--;
  said[got] = '\0';
  for (char *next; (next = strchr(at, '\n'));)
    at = next + 1;
  snprintf(line, size, "%s", at);
}

/* Runs gnuplot without a shell, in `directory`, without the user's start-up files, with a decimal point. */
static enum cct_status run_gnuplot(const char *name, const char *directory) {
  char script[64], said[512];
  int ends[2], code;
  pid_t child;
  posix_spawn_file_actions_t actions;
  snprintf(script, sizeof script, "%s.gp", name);
  char *const arguments[] = {"gnuplot", "-d", script, NULL};
  char *const environment[] = {"LC_ALL=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", NULL};
  if (pipe2(ends, O_CLOEXEC) != 0)
    return cct_fail(CCT_IO, "gnuplot: cannot be started: %s", strerror(errno));
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, directory);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  int error = posix_spawnp(&child, "gnuplot", &actions, NULL, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error) {
    close(ends[0]);
    return cct_fail(CCT_UNSUPPORTED, "gnuplot: cannot be started: %s; install gnuplot-nox", strerror(error));
  }
  last_line(ends[0], said, sizeof said);
  close(ends[0]);
  while (waitpid(child, &code, 0) < 0 && errno == EINTR)
    ;
  if (!WIFEXITED(code) || WEXITSTATUS(code) != 0)
    return cct_fail(CCT_IO, "gnuplot: %s/%s failed: %s", directory, script, *said ? said : "no message");
  return CCT_OK;
}

enum cct_status cct_figure_draw(struct cct_figure *figure, const char *directory) {
  if (figure->data.is_failed || figure->numbers.is_failed || figure->alt.is_failed || figure->caption.is_failed)
    return cct_fail(CCT_NOMEM, "%s: out of memory", figure->name);
  enum cct_status status = write_in(directory, figure->name, ".dat", figure->data.s);
  if (!status)
    status = write_in(directory, "style", ".gp", cct_asset_style_gp);
  if (!status)
    status = write_script(figure, directory);
  if (!status)
    status = run_gnuplot(figure->name, directory);
  figure->is_drawn = !status;
  return status;
}

void cct_figure_free(struct cct_figure *figure) {
  cct_text_free(&figure->alt);
  cct_text_free(&figure->caption);
  cct_text_free(&figure->data);
  cct_text_free(&figure->numbers);
}
