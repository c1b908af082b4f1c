/* SPDX-License-Identifier: Apache-2.0
 * Building, the JSON form both ways, every rule of the check by the line it prints, and the closed formulas of the
 * counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "json/json.h"
#include "tests/heard.h"
#include "workloads/program/counts.h"
#include "workloads/program/program.h"

static enum cct_status parse(const char *text, struct cct_job **job_out) {
  struct cct_json *document;
  enum cct_status status = cct_json_parse(text, strlen(text), "test", &document);
  if (status)
    return status;
  struct cct_json_at at = cct_json_root(document, "test");
  status = cct_job_from_json(&at, job_out);
  cct_json_free(document);
  return status;
}

/* Two ranks of one program: streams 0 and 1, host lanes 2 and 3, slot 0 = 8. */
#define PROGRAM(ops)                                                                                                   \
  "{\"name\":\"p\",\"lanes\":[{\"name\":\"main\",\"kind\":\"stream\"},{\"name\":\"side\",\"kind\":\"stream\"},"        \
  "{\"name\":\"cpu\",\"kind\":\"host\"},{\"name\":\"cpu2\",\"kind\":\"host\"}],\"slots\":[{\"name\":\"batch\","        \
  "\"value\":8}],\"buffers\":[{\"name\":\"w\",\"bytes\":{\"base\":1,\"per\":2,\"slot\":0},\"memory\":\"device\","      \
  "\"weight\":true}],\"ops\":[" ops "]}"
#define GROUPS "\"groups\":[{\"name\":\"tp\",\"size\":2,\"stride\":1,\"choice\":\"ring/ll128/4\"}]"
#define JOB(ops)                                                                                                       \
  "{\"schema\":1,\"ranks\":2," GROUPS ",\"roles\":[{\"first\":0,\"count\":2,\"program\":" PROGRAM(ops) "}]}"
#define JOB2(a, b)                                                                                                     \
  "{\"schema\":1,\"ranks\":2," GROUPS ",\"roles\":[{\"first\":0,\"count\":1,\"program\":" PROGRAM(                     \
      a) "},{\"first\":1,\"count\":1,\"program\":" PROGRAM(b) "}]}"
#define ON     "\"lane\":0,\"host\":2"
#define LAUNCH "{\"op\":\"launch\"," ON "}"
#define REDUCE(bytes)                                                                                                  \
  "{\"op\":\"collective\"," ON ",\"kind\":\"all_reduce\",\"group\":0,\"bytes\":" bytes ",\"type\":\"bf16\"}"
#define REDUCE_IN_GRAPH                                                                                                \
  "{\"op\":\"collective\",\"lane\":0,\"kind\":\"all_reduce\",\"group\":0,\"bytes\":8,\"type\":\"bf16\"}"
#define GROUP               "{\"op\":\"group\"," ON "}"
#define GRAPH               "{\"op\":\"graph\"," ON "}"
#define END                 "{\"op\":\"end\"}"
#define SEND(offset, bytes) "{\"op\":\"send\"," ON ",\"group\":0,\"peer_offset\":" offset ",\"bytes\":" bytes "}"
#define RECV(offset, bytes) "{\"op\":\"recv\"," ON ",\"group\":0,\"peer_offset\":" offset ",\"bytes\":" bytes "}"

#define CASE(value)         "{\"op\":\"case\",\"slot\":0,\"value\":" value "}"
#define SIDE                "{\"op\":\"launch\",\"lane\":1,\"host\":2}"
#define SYNC_SIDE           "{\"op\":\"sync\",\"lane\":1,\"host\":2}"
#define CARRY(bytes)        "\"direction\":\"h2d\",\"carries_binding\":true,\"bytes\":" bytes

static const struct {
  const char *text, *why;
} illegal[] = {
    {JOB("{\"op\":\"launch\",\"lane\":2,\"host\":2}"), "its lane is no GPU lane"},
    {JOB("{\"op\":\"launch\",\"lane\":0,\"host\":1}"), "its host lane is no host lane"},
    {JOB("{\"op\":\"launch\",\"lane\":9,\"host\":2}"), "its lane is no GPU lane"},
    {JOB("{\"op\":\"hostwork\",\"lane\":0,\"host\":2,\"ns\":1}"), "its lane has to be -1"},
    {JOB("{\"op\":\"launch\"," ON ",\"waits\":[0]}"), "waits for itself or a later entry"},
    {JOB("{\"op\":\"launch\"," ON ",\"waits\":[1]}," LAUNCH), "waits for itself or a later entry"},
    {JOB("{\"op\":\"launch\"," ON ",\"waits\":[7]}"), "an entry that does not exist"},
    {JOB("{\"op\":\"launch\"," ON ",\"waits\":[\"prev:7\"]}"), "an entry that does not exist"},
    {JOB("{\"op\":\"phase\",\"name\":\"attention\"}," END ",{\"op\":\"launch\"," ON ",\"waits\":[0]}"),
     "a phase or an end"},
    {JOB("{\"op\":\"phase\"}," END ",{\"op\":\"launch\"," ON ",\"waits\":[1]}"), "a phase or an end"},
    {JOB(END), "closes nothing"},
    {JOB(GRAPH), "it is never closed"},
    {JOB(SEND("1", "8")), "a send or receive outside a group"},
    {JOB(GROUP "," SEND("2", "8") "," RECV("-2", "8") "," END), "cannot send to itself"},
    {JOB(GROUP "," LAUNCH "," END), "only sends and receives, or only collectives"},
    {JOB(GROUP "," SEND("1", "8") "," REDUCE("8") "," END), "never both"},
    {JOB(GROUP ",{\"op\":\"send\",\"lane\":1,\"host\":2,\"group\":0,\"peer_offset\":1,\"bytes\":8}," END),
     "the group's lane and host lane"},
    {JOB(LAUNCH "," GROUP ",{\"op\":\"send\"," ON ",\"waits\":[0],\"group\":0,\"peer_offset\":1,\"bytes\":8}," END),
     "no waits of its own"},
    {JOB(GROUP "," REDUCE("8") "," END ",{\"op\":\"launch\"," ON ",\"waits\":[1]}"), "a member of a group"},
    {JOB(GRAPH ",{\"op\":\"sync\",\"lane\":0}," END), "a graph holds no sync"},
    {JOB(GRAPH ",{\"op\":\"hostwork\",\"ns\":1}," END), "a graph holds no sync, host work"},
    {JOB(GRAPH ",{\"op\":\"delay\",\"ns\":1}," END), "host delay"},
    {JOB(GRAPH "," GRAPH "," END "," END), "other graph"},
    {JOB(GRAPH "," LAUNCH "," END), "inside a graph nothing has a host lane"},
    {JOB(GRAPH ",{\"op\":\"copy\",\"lane\":0,\"direction\":\"h2d\",\"memory\":\"pageable\",\"bytes\":8}," END),
     "a pageable copy inside a graph"},
    {JOB(GRAPH ",{\"op\":\"copy\",\"lane\":0,\"direction\":\"h2d\",\"bytes\":8,\"blocking\":true}," END),
     "a blocking or bounce copy inside a graph"},
    {JOB(GRAPH ",{\"op\":\"copy\",\"lane\":0,\"direction\":\"h2d\",\"bytes\":8,\"bounce\":true}," END),
     "a blocking or bounce copy inside a graph"},
    {JOB("{\"op\":\"copy\"," ON ",\"direction\":\"p2p\",\"group\":7,\"peer\":0,\"bytes\":8}"), "group does not exist"},
    {JOB("{\"op\":\"copy\"," ON ",\"direction\":\"p2p\",\"group\":0,\"peer\":2,\"bytes\":8}"),
     "no member of its group"},
    {JOB("{\"op\":\"copy\"," ON ",\"direction\":\"p2p\",\"group\":0,\"peer\":1,\"bytes\":8,\"bounce\":true}"),
     "crosses no host memory"},
    {JOB("{\"op\":\"copy\"," ON ",\"direction\":\"p2p\",\"group\":0,\"peer\":1,\"bytes\":8,\"blocking\":true}"),
     "does not block"},
    {JOB(GRAPH ",{\"op\":\"copy\",\"lane\":0,\"direction\":\"p2p\",\"group\":0,\"peer\":1,\"bytes\":8}," END),
     "another's memory inside a graph"},
    {JOB("{\"op\":\"copy\"," ON ",\"direction\":\"h2d\",\"memory\":\"device\",\"bytes\":8}"),
     "needs pinned, pageable or mapped"},
    {JOB(LAUNCH "," GRAPH ",{\"op\":\"launch\",\"lane\":0,\"waits\":[0]}," END), "crosses the edge of a graph"},
    {JOB(GRAPH ",{\"op\":\"launch\",\"lane\":0}," END ",{\"op\":\"launch\"," ON ",\"waits\":[1]}"), "crosses the edge"},
    {JOB(GRAPH ",{\"op\":\"launch\",\"lane\":0,\"waits\":[\"prev:1\"]}," END), "crosses the edge"},
    {JOB(GRAPH ",{\"op\":\"launch\",\"lane\":0,\"waits\":[0]}," END), "crosses the edge"},
    {JOB("{\"op\":\"launch\",\"lane\":1,\"host\":2}"), "unjoined lane"},
    {JOB("{\"op\":\"launch\",\"lane\":1,\"host\":2},{\"op\":\"sync\",\"lane\":1,\"host\":2}," LAUNCH
         ",{\"op\":\"launch\",\"lane\":1,\"host\":2}"),
     "unjoined lane"},
    {JOB("{\"op\":\"delay\",\"lane\":0,\"host\":2,\"ns\":-1}"), "its delay is negative"},
    {JOB("{\"op\":\"delay\",\"lane\":0,\"host\":2,\"ns\":1,\"stretch\":0.5,\"of\":0}"), "stretches itself or a later"},
    {JOB("{\"op\":\"sync\"," ON "},{\"op\":\"delay\",\"lane\":0,\"host\":2,\"ns\":1,\"of\":0}"),
     "no operation and no group"},
    {JOB("{\"op\":\"launch\"," ON ",\"reads\":[1]}"), "a buffer that does not exist"},
    {JOB("{\"op\":\"elementwise\"," ON ",\"bytes\":{\"base\":0,\"per\":1,\"slot\":1}}"), "a slot that does not exist"},
    {JOB("{\"op\":\"elementwise\"," ON ",\"bytes\":{\"base\":-9,\"per\":1,\"slot\":0}}"), "no size"},
    {JOB("{\"op\":\"collective\"," ON ",\"kind\":\"broadcast\",\"group\":0,\"bytes\":8,\"type\":\"bf16\",\"algorithm\":"
         "\"oneshot\"}"),
     "all_reduce alone"},
    {JOB("{\"op\":\"collective\"," ON
         ",\"kind\":\"all_gather\",\"group\":0,\"bytes\":8,\"type\":\"bf16\",\"matrix\":0}"),
     "all_to_allv alone"},
    {JOB("{\"op\":\"collective\"," ON ",\"kind\":\"all_gather\",\"group\":1,\"bytes\":8,\"type\":\"bf16\"}"),
     "its group does not exist"},
    {JOB2(REDUCE("8"), LAUNCH), "collective 0 has no counterpart"},
    {JOB2(REDUCE("8"), REDUCE("16")), "collective 0 differs"},
    {JOB2(REDUCE("8"), GRAPH "," REDUCE_IN_GRAPH "," END), "inside a graph in one, outside in the other"},
    {JOB2(GROUP "," SEND("1", "8") "," END, LAUNCH), "has no receive"},
    {JOB2(GROUP "," RECV("1", "8") "," END, LAUNCH), "has no send"},
    {JOB2(GROUP "," SEND("1", "8") "," END, GROUP "," RECV("1", "9") "," END), "8 bytes, but 9"},
    {"{\"schema\":1,\"ranks\":3," GROUPS ",\"roles\":[{\"first\":0,\"count\":3,\"program\":" PROGRAM(LAUNCH) "}]}",
     "do not divide 3 ranks"},
    {"{\"schema\":1,\"ranks\":2," GROUPS ",\"roles\":[{\"first\":0,\"count\":1,\"program\":" PROGRAM(LAUNCH) "}]}",
     "no role for rank 1"},
    {"{\"schema\":1,\"ranks\":2," GROUPS ",\"roles\":[{\"first\":1,\"count\":1,\"program\":" PROGRAM(LAUNCH) "}]}",
     "do not continue at rank 0"},
    {"{\"schema\":1,\"ranks\":2000000,\"groups\":[],\"roles\":[]}", "outside 1 to"},
    /* cases */
    {JOB("{\"op\":\"case\",\"slot\":1,\"value\":1}," END), "a slot that does not exist"},
    {JOB(CASE("1") "," CASE("2") "," END "," END), "inside a graph or another case"},
    {JOB(GRAPH "," CASE("1") "," END "," END), "inside a graph or another case"},
    {JOB(GROUP "," CASE("1") "," END "," END), "only sends and receives, or only collectives"},
    {JOB(CASE("1") "," LAUNCH), "it is never closed"},
    {JOB(CASE("1") "," END ",{\"op\":\"launch\"," ON ",\"waits\":[0]}"), "or a case"},
    {JOB(CASE("1") "," LAUNCH "," END ",{\"op\":\"delay\",\"lane\":0,\"host\":2,\"ns\":1,\"of\":1}"),
     "a case that it does not stand in"},
    {JOB(CASE("1") "," SIDE "," END "," CASE("2") "," SIDE "," SYNC_SIDE "," END), "unjoined lane"},
    {JOB(SIDE "," CASE("1") "," SYNC_SIDE "," END), "unjoined lane"},
    {JOB2(CASE("1") "," REDUCE("8") "," END, REDUCE("8")), "collective 0 has no counterpart"},
    {JOB2(CASE("1") "," REDUCE("8") "," END, CASE("2") "," REDUCE("8") "," END), "collective 0 has no counterpart"},
    {JOB2(CASE("1") "," REDUCE("8") "," END "," REDUCE("16"), REDUCE("16") "," CASE("1") "," REDUCE("8") "," END),
     "collective 0 differs"},
    {JOB2(CASE("1") "," GROUP "," SEND("1", "8") "," END "," END,
          CASE("2") "," GROUP "," RECV("1", "8") "," END "," END),
     "has no receive"},
    {JOB("{\"op\":\"copy\"," ON ",\"memory\":\"pageable\"," CARRY("64") "}"), "h2d copy of pinned memory"},
    {JOB(GRAPH ",{\"op\":\"copy\",\"lane\":0," CARRY("64") "}," END), "h2d copy of pinned memory"},
    {JOB("{\"op\":\"copy\"," ON "," CARRY("4") "}"), "at least 8 a slot"},
    /* the form, by path */
    {JOB("{\"op\":\"case\",\"slot\":0}," END), "ops[0].value: missing"},
    {JOB("{\"op\":\"case\",\"slot\":0,\"value\":1,\"lane\":0}," END), "unknown key 'lane'"},
    {JOB("{\"op\":\"launhc\"," ON "}"), "$.roles[0].program.ops[0].op: unknown 'launhc'; did you mean 'launch'?"},
    {JOB("{\"op\":\"launch\"," ON ",\"bytes\":8}"), "unknown key 'bytes'"},
    {JOB("{\"op\":\"gemm\"," ON ",\"n\":1,\"k\":1,\"type\":\"bf16\"}"), "ops[0].m: missing"},
    {JOB("{\"op\":\"gemm\"," ON ",\"m\":-1,\"n\":1,\"k\":1,\"type\":\"bf16\"}"), "ops[0].m: -1 is outside"},
    {JOB("{\"op\":\"launch\"," ON ",\"waits\":[\"next:1\"]}"), "'next:1' is no wait"},
    {"{\"schema\":2,\"ranks\":2,\"groups\":[],\"roles\":[]}", "$.schema: 2 is outside"},
    {"{\"schema\":1,\"ranks\":-2,\"groups\":[],\"roles\":[]}", "$.ranks: -2 is outside"},
};

static void test_illegal_programs_are_refused_by_name(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof illegal / sizeof *illegal; i++) {
    struct cct_job *job = NULL;
    listen();
    enum cct_status status = parse(illegal[i].text, &job);
    hear();
    if (status != CCT_USAGE || !strstr(said, illegal[i].why) || strchr(said, '\n') != said + strlen(said) - 1)
      fail_msg("case %zu: status %s, said: %swanted: %s", i, cct_status_name(status), said, illegal[i].why);
    assert_null(job);
  }
}

#define EVERYTHING                                                                                                     \
  "{\"op\":\"phase\",\"name\":\"all\"},"                                                                               \
  "{\"op\":\"gemm\",\"name\":\"qkv\"," ON ",\"m\":{\"base\":0,\"per\":1,\"slot\":0},\"n\":64,\"k\":32,\"groups\":2,"   \
  "\"type\":\"bf16\",\"reads\":[0],\"writes\":0},"                                                                     \
  "{\"op\":\"attention\"," ON ",\"flops\":1000,\"kv_bytes\":500,\"type\":\"bf16\",\"waits\":[1,\"prev:13\"]},"         \
  "{\"op\":\"elementwise\"," ON ",\"bytes\":300}," REDUCE(                                                             \
      "800") ","                                                                                                       \
             "{\"op\":\"collective\"," ON                                                                              \
             ",\"kind\":\"all_to_allv\",\"group\":0,\"bytes\":80,\"type\":\"fp8\",\"matrix\":0}," GROUP                \
             "," SEND("1", "7") "," RECV(                                                                              \
                 "-1", "7") "," END ","                                                                                \
                            "{\"op\":\"copy\"," ON                                                                     \
                            ",\"direction\":\"d2h\",\"memory\":\"pageable\",\"bytes\":9,\"blocking\":true},"           \
                            "{\"op\":\"hostwork\",\"host\":3,\"ns\":5},"                                               \
                            "{\"op\":\"delay\",\"lane\":0,\"host\":2,\"ns\":-3,\"stretch\":0.25,\"of\":4},"            \
                            "{\"op\":\"stamp\",\"lane\":1,\"host\":3,\"waits\":[11]},"                                 \
                            "{\"op\":\"graph\",\"lane\":0,\"host\":2,\"key\":3},{\"op\":\"launch\",\"lane\":0},{"      \
                            "\"op\":\"delay\",\"lane\":1,"                                                             \
                            "\"ns\":4},{\"op\":\"group\",\"lane\":1}," REDUCE_IN_SIDE "," END "," END                  \
                            ",{\"op\":\"sync\",\"lane\":1,\"host\":2}," END
#define REDUCE_IN_SIDE                                                                                                 \
  "{\"op\":\"collective\",\"lane\":1,\"kind\":\"all_gather\",\"group\":0,\"bytes\":8,\"type\":\"bf16\"}"

static void test_json_round_trip(void **state) {
  (void)state;
  struct cct_job *job, *again;
  struct cct_json *document;
  struct cct_text first = {0}, second = {0};
  char digest[65], digest_again[65];
  assert_int_equal(parse(JOB(EVERYTHING), &job), CCT_OK);
  assert_int_equal(cct_job_to_json(job, &document), CCT_OK);
  assert_int_equal(cct_json_canonical(document, &first), CCT_OK);
  cct_json_free(document);
  assert_int_equal(parse(first.s, &again), CCT_OK);
  assert_int_equal(cct_job_to_json(again, &document), CCT_OK);
  assert_int_equal(cct_json_canonical(document, &second), CCT_OK);
  assert_string_equal(first.s, second.s);
  assert_int_equal(cct_job_digest(job, digest), CCT_OK);
  assert_int_equal(cct_job_digest(again, digest_again), CCT_OK);
  assert_string_equal(digest, digest_again);
  again->roles[0].program->ops[1].gemm.n++;
  assert_int_equal(cct_job_digest(again, digest_again), CCT_OK);
  assert_string_not_equal(digest, digest_again);
  const struct cct_program *p = job->roles[0].program;
  assert_int_equal(p->n_matrices, 1);
  assert_int_equal(p->ops[2].n_waits, 2);
  assert_true(p->waits[p->ops[2].first_wait + 1].is_previous);
  assert_int_equal(p->ops[9].end.opens, 6);
  cct_json_free(document);
  cct_text_free(&first);
  cct_text_free(&second);
  cct_job_free(job);
  cct_job_free(again);
}

/* The formulas stand in counts.h; the factors are nccl-tests' PERFORMANCE.md: all-reduce 2(n-1)/n, the others (n-1)/n.
 */
static void test_counts(void **state) {
  (void)state;
  struct cct_job *job;
  struct cct_counts c;
  int64_t slots[] = {10};
  struct cct_binding binding = {.slots = slots};
  assert_int_equal(parse(JOB(EVERYTHING), &job), CCT_OK);
  cct_count_program(job, job->roles[0].program, &binding, &c);
  /* gemm, attention, elementwise, 2 collectives, group, copy, stamp, graph */
  assert_int_equal(c.submissions, 9);
  assert_int_equal(c.graphs, 1);
  assert_int_equal(c.nodes, 2);   /* launch and group; a delay is none */
  assert_int_equal(c.kernels, 9); /* 9 submissions - copy - graph + 2 nodes */
  assert_int_equal(c.syncs, 1);
  assert_float_equal(c.flops, 2.0 * 10 * 64 * 32 * 2 + 1000, 0);
  assert_float_equal(c.hbm_bytes, 2.0 * 2 * (10 * 32 + 32 * 64 + 10 * 64) + 500 + 300, 0);
  assert_int_equal(c.collectives[CCT_COLL_ALL_REDUCE], 1);
  assert_float_equal(c.collective_bytes[CCT_COLL_ALL_REDUCE], 800, 0);
  assert_float_equal(c.wire_bytes[CCT_COLL_ALL_REDUCE], 800, 0); /* 2(n-1)/n = 1 at 2 ranks */
  assert_float_equal(c.wire_bytes[CCT_COLL_ALL_GATHER], 4, 0);   /* 1/2 */
  assert_int_equal(c.messages, 1);
  assert_float_equal(c.message_bytes, 7, 0);
  assert_int_equal(c.copies[CCT_COPY_D2H], 1);
  assert_float_equal(c.copy_bytes[CCT_COPY_D2H], 9, 0);
  assert_float_equal(c.memory_bytes[CCT_MEM_DEVICE], 21, 0);
  assert_float_equal(c.weight_bytes, 21, 0);
  cct_job_free(job);
}

/* Two cases of one program, the second of them twice, and work outside: each binding counts its own. */
#define CASES                                                                                                          \
  CASE("8")                                                                                                            \
  "," GRAPH ",{\"op\":\"launch\",\"lane\":0}," END "," END                                                             \
  "," REDUCE("8") "," CASE("-3") "," LAUNCH ",{\"op\":\"launch\"," ON ",\"waits\":[1,\"prev:7\"]}," END                \
                                 "," CASE("-3") "," LAUNCH ",{\"op\":\"copy\"," ON "," CARRY("64") "}," END

static void test_cases_are_counted_by_binding(void **state) {
  (void)state;
  struct cct_job *job, *again;
  struct cct_json *document;
  struct cct_text text = {0};
  struct cct_counts c;
  int64_t slots[] = {8};
  struct cct_binding binding = {.slots = slots};
  assert_int_equal(parse(JOB(CASES), &job), CCT_OK);
  const struct cct_program *p = job->roles[0].program;
  assert_int_equal(p->ops[0].in_case, -1);
  assert_int_equal(p->ops[2].in_case, 0);
  assert_int_equal(p->ops[5].in_case, -1);
  assert_int_equal(p->ops[7].in_case, 6);
  assert_int_equal(p->ops[12].in_case, 10);
  cct_count_program(job, p, &binding, &c);
  assert_int_equal(c.submissions, 2); /* the graph and the collective */
  assert_int_equal(c.nodes, 1);
  slots[0] = -3;
  cct_count_program(job, p, &binding, &c);
  assert_int_equal(c.submissions, 5);
  assert_int_equal(c.graphs + c.nodes, 0);
  slots[0] = 0;
  cct_count_program(job, p, &binding, &c);
  assert_int_equal(c.submissions, 1);
  assert_int_equal(cct_job_to_json(job, &document), CCT_OK);
  assert_int_equal(cct_json_canonical(document, &text), CCT_OK);
  assert_int_equal(parse(text.s, &again), CCT_OK);
  const struct cct_program *q = again->roles[0].program;
  assert_int_equal(q->ops[6].when.value, -3);
  assert_true(q->ops[12].copy.carries_binding);
  assert_int_equal(cct_program_host_lanes(q), 2);
  assert_int_equal(cct_job_host_lanes(again), 2);
  cct_json_free(document);
  cct_text_free(&text);
  cct_job_free(job);
  cct_job_free(again);
}

/* The order of cases matters only between what one binding can perform. */
static void test_cases_may_stand_in_any_order(void **state) {
  (void)state;
  struct cct_job *job;
  assert_int_equal(parse(JOB2(CASE("1") "," REDUCE("8") "," END "," CASE("2") "," REDUCE("16") "," END,
                              CASE("2") "," REDUCE("16") "," END "," CASE("1") "," REDUCE("8") "," END),
                         &job),
                   CCT_OK);
  cct_job_free(job);
}

static void test_names_and_groups(void **state) {
  (void)state;
  for (int i = 0; i < CCT_OP_COUNT; i++)
    assert_int_equal(cct_op_by_name(cct_op_name(i)), i);
  for (int i = 0; i < CCT_TYPE_COUNT; i++)
    assert_int_equal(cct_type_by_name(cct_type_name(i)), i);
  for (int i = 0; i < CCT_COLL_COUNT; i++)
    assert_int_equal(cct_collective_by_name(cct_collective_name(i)), i);
  assert_int_equal(cct_op_by_name("nothing"), -1);
  assert_int_equal(cct_type_bits(CCT_TYPE_NVFP4), 4);
  assert_float_equal(cct_collective_factor(CCT_COLL_ALL_REDUCE, 8), 1.75, 0);
  assert_float_equal(cct_collective_factor(CCT_COLL_ALL_TO_ALL, 8), 0.875, 0);
  assert_float_equal(cct_collective_factor(CCT_COLL_BROADCAST, 1), 0, 0);
  struct cct_group dp = {.name = "dp", .size = 2, .stride = 4}; /* of 8 ranks in tp-fastest order with tp = 4 */
  assert_int_equal(cct_group_index(&dp, 6), 1);
  assert_int_equal(cct_group_member(&dp, 6, 0), 2);
  assert_int_equal(cct_group_member(&dp, 3, 1), 7);
}

static void test_groups_are_reused_up_to_12(void **state) {
  (void)state;
  struct cct_job *job;
  assert_int_equal(cct_job_new(4096, &job), CCT_OK);
  for (int i = 0; i < 12; i++)
    assert_int_equal(cct_job_add_group(job, "g", 1 << i, 1), i);
  assert_int_equal(cct_job_add_group(job, "g", 8, 1), 3);
  assert_int_equal(cct_job_add_group(job, "thirteenth", 4096, 1), -1);
  cct_job_free(job);
}

static void test_names_outlive_many_entries(void **state) {
  (void)state;
  struct cct_program *p;
  assert_int_equal(cct_program_new("many", &p), CCT_OK);
  for (int i = 0; i < 3000; i++) {
    char name[16];
    snprintf(name, sizeof name, "op%d", i);
    cct_program_add(p, &(struct cct_op){.kind = CCT_OP_LAUNCH, .name = name}, NULL, 0);
  }
  assert_string_equal(p->ops[0].name, "op0");
  assert_string_equal(p->ops[2999].name, "op2999");
  assert_false(p->is_failed);
  cct_program_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_illegal_programs_are_refused_by_name),
      cmocka_unit_test(test_json_round_trip),
      cmocka_unit_test(test_counts),
      cmocka_unit_test(test_cases_are_counted_by_binding),
      cmocka_unit_test(test_cases_may_stand_in_any_order),
      cmocka_unit_test(test_names_and_groups),
      cmocka_unit_test(test_groups_are_reused_up_to_12),
      cmocka_unit_test(test_names_outlive_many_entries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
