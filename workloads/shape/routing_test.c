/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/scratch.h"
#include "workloads/shape/routing.h"

static const struct {
  struct cct_routing routing;
  double bytes;
} table[] = {
    {{.experts = 256, .top_k = 8, .ranks = 2, .dispatch = CCT_DISPATCH_PER_EXPERT}, 4.0},
    {{.experts = 256, .top_k = 8, .ranks = 8, .dispatch = CCT_DISPATCH_PER_EXPERT}, 1.75},
    {{.experts = 256, .top_k = 8, .ranks = 2, .dispatch = CCT_DISPATCH_ALLGATHER}, 1.0},
    {{.experts = 256, .top_k = 8, .ranks = 8, .dispatch = CCT_DISPATCH_ALLGATHER}, 1.75},
    {{.experts = 256, .top_k = 8, .ranks = 2, .dispatch = CCT_DISPATCH_PER_RANK}, 0.997},
    {{.experts = 256, .top_k = 8, .ranks = 8, .dispatch = CCT_DISPATCH_PER_RANK}, 1.158},
    {{.experts = 128, .top_k = 8, .ranks = 8, .dispatch = CCT_DISPATCH_PER_RANK}, 1.168},
};

static void bytes_are_as_stated(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (fabs(cct_routing_bytes(&table[i].routing) - table[i].bytes) > 0.0005)
      fail_msg("row %zu: %.4f, not %.3f", i, cct_routing_bytes(&table[i].routing), table[i].bytes);
}

/* Bytes of a draw by the same measure: what rank i sends to others, both ways, over all tokens of the group. */
static double drawn_bytes(const struct cct_routing *routing, int64_t tokens) {
  struct cct_routing_draw draw;
  assert_int_equal(cct_routing_draw(routing, tokens, 1, &draw), CCT_OK);
  double sent = 0;
  for (int i = 0; i < draw.n; i++)
    for (int j = 0; j < draw.n; j++)
      sent += i != j ? (double)draw.copies[i * draw.n + j] : 0;
  int64_t rows = 0;
  for (int64_t i = 0; i < draw.experts; i++)
    rows += draw.rows[i];
  assert_int_equal(rows, tokens * routing->top_k * routing->ranks);
  double total = (double)(tokens * routing->ranks);
  cct_routing_draw_free(&draw);
  return 2 * sent / (double)routing->ranks / total;
}

static void a_monte_carlo_draw_agrees_to_three_digits(void **state) {
  (void)state;
  struct cct_routing limited = {
      .experts = 256, .top_k = 8, .groups = 8, .groups_chosen = 4, .dispatch = CCT_DISPATCH_PER_RANK};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (table[i].routing.dispatch == CCT_DISPATCH_ALLGATHER)
      continue; /* nothing is drawn */
    double closed = cct_routing_bytes(&table[i].routing), drawn = drawn_bytes(&table[i].routing, 8000);
    if (fabs(drawn / closed - 1) > 0.005)
      fail_msg("row %zu: drawn %.4f, closed form %.4f", i, drawn, closed);
  }
  for (limited.ranks = 2; limited.ranks <= 32; limited.ranks *= 2) {
    double closed = cct_routing_bytes(&limited), drawn = drawn_bytes(&limited, 16000 / limited.ranks);
    if (fabs(drawn / closed - 1) > 0.005)
      fail_msg("limited to 4 of 8 groups, %d ranks: drawn %.4f, closed form %.4f", (int)limited.ranks, drawn, closed);
  }
}

static void skew_makes_a_busiest_rank(void **state) {
  (void)state;
  struct cct_routing routing = {.experts = 128, .top_k = 8, .ranks = 8, .dispatch = CCT_DISPATCH_PER_EXPERT};
  double *popularity = NULL;
  struct cct_routing_draw draw, again;
  assert_int_equal(cct_routing_popularity("uniform", 128, 1, &popularity), CCT_OK);
  assert_null(popularity);
  assert_int_equal(cct_routing_popularity("zipf:1", 128, 1, &popularity), CCT_OK);
  double sum = 0, harmonic = 0;
  for (int i = 0; i < 128; i++) {
    sum += popularity[i];
    harmonic += 1.0 / (i + 1);
  }
  assert_true(fabs(sum - harmonic) < 1e-9); /* the shuffle lost none */
  routing.popularity = popularity;
  assert_int_equal(cct_routing_draw(&routing, 100, 1, &draw), CCT_OK);
  assert_int_equal(cct_routing_draw(&routing, 100, 1, &again), CCT_OK);
  int64_t most = 0;
  for (int i = 0; i < 128; i++) {
    most = draw.rows[i] > most ? draw.rows[i] : most;
    assert_int_equal(draw.rows[i], again.rows[i]);
  }
  assert_true(most > 3 * 800 * 8 / 128);
  cct_routing_draw_free(&draw);
  cct_routing_draw_free(&again);
  free(popularity);
  static const char *const bad[] = {"zipf:", "zipf:x", "zipf:-1", "/nowhere/skew.json"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_not_equal(cct_routing_popularity(bad[i], 8, 1, &popularity), CCT_OK);
  char path[] = "/tmp/cctax-skew-XXXXXX.json";
  write_temporary(path, "[1,2,3]");
  assert_int_equal(cct_routing_popularity(path, 3, 1, &popularity), CCT_OK);
  assert_true(popularity[2] == 3);
  free(popularity);
  assert_int_equal(cct_routing_popularity(path, 4, 1, &popularity), CCT_USAGE);
  unlink(path);
}

/* Chance that nobody of t tokens chose an expert: (1 - k/E)^t. */
static void few_tokens_wake_few_experts(void **state) {
  (void)state;
  struct cct_routing routing = {.experts = 256, .top_k = 8, .ranks = 8};
  assert_true(fabs(cct_routing_active(&routing, 1) - 1) < 1e-9); /* 8 experts over 8 ranks */
  assert_true(cct_routing_active(&routing, 1e6) > 31.999);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_are_as_stated),
      cmocka_unit_test(a_monte_carlo_draw_agrees_to_three_digits),
      cmocka_unit_test(skew_makes_a_busiest_rank),
      cmocka_unit_test(few_tokens_wake_few_experts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
