/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "json/json.h"

static struct cct_json *parse(const char *text) {
  struct cct_json *document = NULL;
  return cct_json_parse(text, strlen(text), "test", &document) ? NULL : document;
}

static void what_is_not_json_is_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"", "{", "[1,]", "{\"a\":1,\"a\":2}", "1 2", "nul", "{\"a\":1}x", "\"\xff\""};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (parse(texts[i]))
      fail_msg("accepted: %s", texts[i]);
  char *deep = malloc(200001);
  memset(deep, '[', 100000);
  memset(deep + 100000, ']', 100000);
  deep[200000] = '\0';
  assert_null(parse(deep));
  free(deep);
}

static void typed_readers_check_type_and_range(void **state) {
  (void)state;
  struct cct_json *document =
      parse("{\"n\":8,\"neg\":-1,\"big\":1e18,\"x\":1.5,\"s\":\"t\",\"b\":true,\"a\":[1,2],\"o\":{\"k\":3}}");
  struct cct_json_at root = cct_json_root(document, "test"), at, inner;
  int64_t i = 0;
  double f = 0;
  const char *s = NULL;
  int b = 0;
  at = cct_json_at_key(&root, "n");
  assert_int_equal(cct_json_read_i64(&at, 1, 10, &i), CCT_OK);
  assert_int_equal(i, 8);
  assert_int_equal(cct_json_read_i64(&at, 9, 10, &i), CCT_USAGE);
  assert_int_equal(cct_json_read_f64(&at, 0, 10, &f), CCT_OK);
  assert_int_equal(cct_json_read_string(&at, &s), CCT_USAGE);
  at = cct_json_at_key(&root, "big");
  assert_int_equal(cct_json_read_i64(&at, 0, INT64_MAX, &i), CCT_USAGE);
  at = cct_json_at_key(&root, "absent");
  assert_int_equal(cct_json_read_i64(&at, 0, 1, &i), CCT_USAGE);
  at = cct_json_at_key(&root, "b");
  assert_int_equal(cct_json_read_bool(&at, &b), CCT_OK);
  assert_int_equal(b, 1);
  at = cct_json_at_key(&root, "o");
  inner = cct_json_at_key(&at, "k");
  assert_string_equal(inner.path, "$.o.k");
  at = cct_json_at_key(&root, "a");
  inner = cct_json_at_index(&at, 1);
  assert_string_equal(inner.path, "$.a[1]");
  assert_int_equal(cct_json_read_i64(&inner, 0, 9, &i), CCT_OK);
  assert_int_equal(i, 2);
  char two[2], one[1];
  assert_int_equal(cct_json_member_text(&root, "s", two, sizeof two), CCT_OK);
  assert_string_equal(two, "t");
  assert_int_equal(cct_json_member_text(&root, "s", one, sizeof one), CCT_USAGE);
  assert_int_equal(cct_json_member_text(&root, "none", two, sizeof two), CCT_USAGE);
  assert_int_equal(cct_json_member_i64(&root, "n", 0, 9, &i), CCT_OK);
  assert_int_equal(cct_json_member_i64(&root, "neg", 0, 9, &i), CCT_USAGE);
  static const char *const known[] = {"n", "neg", "big", "x", "s", "b", "a"};
  assert_int_equal(cct_json_known_keys(&root, known, 7), CCT_USAGE);
  cct_json_free(document);
}

static void canonical_text_is_the_same_for_the_same_content(void **state) {
  (void)state;
  struct cct_json *one = parse("{\"b\":1, \"a\":[1.5,null]}"), *two = parse("{ \"a\":[1.5,null],\"b\":1}");
  struct cct_text a = {0}, b = {0};
  assert_int_equal(cct_json_canonical(one, &a), CCT_OK);
  assert_int_equal(cct_json_canonical(two, &b), CCT_OK);
  assert_string_equal(a.s, b.s);
  assert_string_equal(a.s, "{\"a\":[1.5,null],\"b\":1}");
  cct_text_free(&a);
  cct_text_free(&b);
  cct_json_free(one);
  cct_json_free(two);
}

static void what_is_built_parses_back(void **state) {
  (void)state;
  struct cct_json *o = cct_json_new_object(), *a = cct_json_new_array(), *back;
  struct cct_text text = {0};
  cct_json_set_string(o, "s", "x\n\"");
  cct_json_set_f64(o, "nan", NAN);
  cct_json_add_i64(a, 7);
  cct_json_set(o, "a", a);
  assert_int_equal(cct_json_print(o, &text), CCT_OK);
  back = parse(text.s);
  assert_non_null(back);
  assert_string_equal(cct_json_string(cct_json_member(back, "s")), "x\n\"");
  assert_int_equal(cct_json_type(cct_json_member(back, "nan")), CCT_JSON_NULL);
  cct_json_free(back);
  cct_text_free(&text);
  cct_json_set_string(o, "bad", "\xff"); /* never lost in silence */
  assert_int_equal(cct_json_print(o, &text), CCT_USAGE);
  cct_text_free(&text);
  cct_json_free(o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_not_json_is_refused),
      cmocka_unit_test(typed_readers_check_type_and_range),
      cmocka_unit_test(canonical_text_is_the_same_for_the_same_content),
      cmocka_unit_test(what_is_built_parses_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
