/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/data.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "base/world.h"
#include "tests/heard.h"

static void sizes_are_read_as_powers_of_1024(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t bytes; /* -1: refused */
  } rows[] = {{"0", 0},
              {"8", 8},
              {"4K", 4096},
              {"4k", 4096},
              {"1M", 1 << 20},
              {"2GiB", 2LL << 30},
              {"8B", 8},
              {"", -1},
              {"K", -1},
              {"-1", -1},
              {"4KK", -1},
              {"1e3", -1},
              {"4 K", -1},
              {"0x10", -1},
              {"9223372036854775807", INT64_MAX},
              {"9007199254740992K", -1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t bytes = -1;
    int ok = cct_parse_bytes(rows[i].text, &bytes);
    if (ok != (rows[i].bytes >= 0) || (ok && bytes != rows[i].bytes))
      fail_msg("'%s': %d, %lld", rows[i].text, ok, (long long)bytes);
  }
}

static void numbers_are_whole_or_refused(void **state) {
  (void)state;
  int64_t i;
  double f;
  assert_true(cct_parse_i64("-12", &i) && i == -12);
  assert_false(cct_parse_i64("12x", &i) || cct_parse_i64("", &i) || cct_parse_i64(" 1", &i) ||
               cct_parse_i64("99999999999999999999", &i));
  assert_true(cct_parse_f64("1.5e3", &f) && f == 1500);
  assert_false(cct_parse_f64("nan", &f) || cct_parse_f64("inf", &f) || cct_parse_f64("1e999", &f) ||
               cct_parse_f64("", &f));
}

static void units_read_well(void **state) {
  (void)state;
  char out[32];
  assert_string_equal(cct_bytes_text(8, out), "8 B");
  assert_string_equal(cct_bytes_text(1020, out), "1020 B");
  assert_string_equal(cct_bytes_text(1536, out), "1.5 KiB");
  assert_string_equal(cct_bytes_text(3.0 * (1 << 30), out), "3 GiB");
  assert_string_equal(cct_ns_text(12340, out), "12.3 us");
  assert_string_equal(cct_ns_text(999600, out), "1 ms");
  assert_string_equal(cct_ns_text(2.5e12, out), "2500 s");
}

static void a_slip_is_recognised_and_nonsense_is_not(void **state) {
  (void)state;
  static const char *const words[] = {"output", "layouts", "batch", "backend"};
  assert_string_equal(cct_closest("ouput", words, 4), "output");
  assert_string_equal(cct_closest("layout", words, 4), "layouts");
  assert_null(cct_closest("zzz", words, 4));
}

static void text_grows(void **state) {
  (void)state;
  struct cct_text text = {0};
  for (int i = 0; i < 1000; i++)
    cct_text_add(&text, "%d,", i);
  assert_int_equal(text.length, 10 * 2 + 90 * 3 + 900 * 4);
  cct_text_free(&text);
}

static void a_file_is_written_whole(void **state) {
  (void)state;
  char path[] = "/tmp/cct-base-test-XXXXXX", *text;
  size_t length;
  close(mkstemp(path));
  assert_int_equal(cct_write_file(path, "abc", 3), CCT_OK);
  assert_int_equal(cct_read_file(path, 100, &text, &length), CCT_OK);
  assert_int_equal(length, 3);
  assert_string_equal(text, "abc");
  free(text);
  assert_int_equal(cct_read_file(path, 2, &text, &length), CCT_USAGE);
  assert_int_equal(cct_read_file("/tmp", 2, &text, &length), CCT_IO);
  assert_int_equal(cct_write_file("/nowhere/file", "x", 1), CCT_IO);
  unlink(path);
}

static void a_reader_that_is_gone_is_an_error_and_no_signal(void **state) {
  (void)state;
  int ends[2];
  char got[8] = "";
  sigset_t pending;
  assert_int_equal(pipe(ends), 0);
  assert_true(cct_write_pipe(ends[1], "hello", 6));
  assert_int_equal(read(ends[0], got, 6), 6);
  assert_string_equal(got, "hello");
  close(ends[0]);
  assert_false(cct_write_pipe(ends[1], "hello", 6));
  assert_int_equal(errno, EPIPE);
  assert_int_equal(sigpending(&pending), 0);
  assert_int_equal(sigismember(&pending, SIGPIPE), 0);
  close(ends[1]);
}

static void draws_depend_on_seed_and_counter_alone(void **state) {
  (void)state;
  assert_true(cct_random_u64(1, 5) == cct_random_u64(1, 5));
  assert_true(cct_random_u64(1, 5) != cct_random_u64(2, 5));
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < 100000; i++) {
    double z = cct_random_normal(7, i);
    sum += z;
    squares += z * z;
    assert_true(cct_random_below(7, i, 10) >= 0 && cct_random_below(7, i, 10) < 10);
  }
  assert_true(fabs(sum / 1e5) < 0.02);
  assert_true(fabs(squares / 1e5 - 1) < 0.02);
}

static void a_world_of_one_talks_to_itself(void **state) {
  (void)state;
  const struct cct_world *w = cct_world_self();
  struct cct_request *request;
  int value = 7, got = 0, done;
  assert_int_equal(w->ops->irecv(w, &got, sizeof got, 0, 3, &request), CCT_OK);
  assert_int_equal(w->ops->test(w, request, &done), CCT_OK);
  assert_int_equal(done, 0);
  assert_int_equal(w->ops->send(w, &value, sizeof value, 0, 3), CCT_OK);
  assert_int_equal(w->ops->test(w, request, &done), CCT_OK);
  assert_int_equal(done, 1);
  assert_int_equal(got, 7);
  assert_int_equal(w->ops->recv(w, &got, sizeof got, 0, 3), CCT_USAGE);
}

static void data_is_found_by_name_or_file(void **state) {
  (void)state;
  char path[4096];
  assert_int_equal(cct_data_path("models", "model", "qwen3-8b", path, sizeof path), CCT_OK);
  assert_non_null(strstr(path, "/models/qwen3-8b.json"));
  assert_int_equal(cct_data_path("models", "model", "here/m", path, sizeof path), CCT_OK);
  assert_string_equal(path, "here/m");
  assert_int_equal(cct_data_path("models", "model", "qwen3-8c", path, sizeof path), CCT_USAGE);
  assert_int_equal(cct_data_path("models", "model", "qwen3-8b", path, 8), CCT_USAGE);
}

/* Where one question asks another, both muted, the outer one stays so. */
static void what_is_muted_is_kept(void **state) {
  (void)state;
  listen();
  cct_log_mute(1);
  cct_log_mute(1);
  (void)cct_fail(CCT_USAGE, "inner");
  cct_log_mute(0);
  (void)cct_fail(CCT_USAGE, "outer");
  cct_warn("outer");
  cct_log_mute(0);
  cct_log_mute(0);
  cct_warn("heard");
  hear();
  assert_string_equal(said, "cctax: warning: heard\n");
  assert_string_equal(cct_log_last(), "outer");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_muted_is_kept),
      cmocka_unit_test(sizes_are_read_as_powers_of_1024),
      cmocka_unit_test(numbers_are_whole_or_refused),
      cmocka_unit_test(units_read_well),
      cmocka_unit_test(a_slip_is_recognised_and_nonsense_is_not),
      cmocka_unit_test(text_grows),
      cmocka_unit_test(a_file_is_written_whole),
      cmocka_unit_test(a_reader_that_is_gone_is_an_error_and_no_signal),
      cmocka_unit_test(draws_depend_on_seed_and_counter_alone),
      cmocka_unit_test(data_is_found_by_name_or_file),
      cmocka_unit_test(a_world_of_one_talks_to_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
