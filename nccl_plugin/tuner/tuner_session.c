/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/tuner/tuner_session.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "nccl_plugin/tuner/builtin_rules.h"
#include "nccl_plugin/tuner/tuner_condition.h"
#include "nccl_plugin/tuner/tuner_proof.h"
#include "tuner/decision.h"

/* The counters before those of the rules. */
static const char *const fixed_counters[] = {
    "calls that no rule covers: NCCL's own choice",
    "calls whose rules name only cells that are not usable: NCCL's own choice",
    "calls in which NVLS is usable",
    "allreduce calls in which NVLS is not usable",
};
enum {
  NOT_COVERED,
  NOT_USABLE,
  WITH_NVLS,
  WITHOUT_NVLS,
  FIRST_RULE
};

struct cct_tuner_session {
  struct cct_decision *decision; /* NULL: no rules */
  struct cct_proof *proof;       /* NULL: out of memory */
  size_t n_rules;
  cct_nccl_logger *logger;
};

/* What a session is built from; lives only while it is opened. */
struct opening {
  const struct cct_tuner_comm *comm;
  struct cct_gpu_passive facts;
  struct cct_tuner_environment env;
  struct cct_tuner_condition condition;
  struct cct_tuner_situation situation;
  struct cct_rules rules;
  char source[PATH_MAX + 160]; /* where the rules are from, as the proof says it */
  char origin[512];            /* how the machine that they were measured on differs from this one */
};

static pthread_once_t facts_once = PTHREAD_ONCE_INIT;
static struct cct_gpu_passive process_facts;
static void read_facts(void) {
  cct_gpu_passive_read(&process_facts);
}

static void say(const struct opening *o, int level, const char *text) {
  if (o->comm->logger)
    o->comm->logger(level, CCT_NCCL_INIT | CCT_NCCL_TUNING, "cctax", 0, "TUNER/cctax: %s", text);
}

/* A job has a communicator for each of its groups; one line for each kind of trouble is enough. */
static void warn_once(const struct opening *o, atomic_flag *said, const char *text) {
  if (!atomic_flag_test_and_set(said))
    say(o, CCT_NCCL_WARN, text);
}

/* The checksum of POSIX cksum(1), by which a user compares the proof with the file: an identifier, not a secret's. */
static uint32_t posix_cksum(const char *text, size_t length) {
  uint32_t table[256], crc = 0;
  for (uint32_t i = 0; i < 256; i++) {
    table[i] = i << 24;
    for (int bit = 0; bit < 8; bit++)
      table[i] = table[i] << 1 ^ (table[i] >> 31 ? 0x04C11DB7u : 0);
  }
  for (size_t i = 0; i < length; i++)
    crc = crc << 8 ^ table[crc >> 24 ^ (unsigned char)text[i]];
  for (size_t rest = length; rest; rest >>= 8)
    crc = crc << 8 ^ table[crc >> 24 ^ (rest & 0xff)];
  return ~crc;
}

static void source_set(struct opening *o, const char *kind, const char *name, const char *text, size_t length) {
  snprintf(o->source, sizeof o->source, "%s %s, %zu rules, cksum %u %zu", kind, name, o->rules.n,
           (unsigned)posix_cksum(text, length), length);
}

/* The version of the NCCL that called, 22803; 0: not known. A tuner is not told, but its logger is NCCL's own. */
static int nccl_version(const struct opening *o) {
  Dl_info library = {0};
  cct_nccl_logger *logger = o->comm->logger;
  void *at = NULL, *handle = NULL;
  int version = 0, (*get)(int *) = NULL;
  memcpy(&at, &logger, sizeof at);
  if (at && dladdr(at, &library) && library.dli_fname)
    handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) /* linked into the program itself */
    handle = dlopen(NULL, RTLD_LAZY);
  void *symbol = handle ? dlsym(handle, "ncclGetVersion") : NULL;
  memcpy(&get, &symbol, sizeof symbol);
  if (symbol && get(&version) != 0)
    version = 0;
  if (handle)
    dlclose(handle);
  return version;
}

static void add_difference(struct opening *o, const char *format, ...) CCT_PRINTF(2, 3);
static void add_difference(struct opening *o, const char *format, ...) {
  size_t n = strlen(o->origin);
  va_list args;
  n += (size_t)snprintf(o->origin + n, sizeof o->origin - n, "%s", n ? "; " : "");
  va_start(args, format);
  vsnprintf(o->origin + n, sizeof o->origin - n, format, args);
  va_end(args);
}

/* Rules of another machine are a guess here: that is said once, and they hold as far as their fields do. */
static void origin_compare(struct opening *o, const char *path, const char *text, size_t length) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  struct cct_rules_origin origin;
  char line[sizeof o->origin + 400];
  if (!cct_rules_origin(text, length, &origin))
    return;
  if (origin.is_predicted)
    add_difference(o, "by a simulator");
  int version = *origin.nccl ? nccl_version(o) : 0;
  if (*origin.gpu && *o->facts.gpu_name && strcmp(origin.gpu, o->facts.gpu_name))
    add_difference(o, "GPU '%s', here '%s'", origin.gpu, o->facts.gpu_name);
  if (origin.ranks && (size_t)origin.ranks != o->comm->ranks)
    add_difference(o, "%d ranks, here %zu", origin.ranks, o->comm->ranks);
  if (version && version != atoi(origin.nccl))
    add_difference(o, "NCCL %s, here %d", origin.nccl, version);
  if (o->facts.cc >= 0 && *origin.condition && o->facts.cc != !strcmp(origin.condition, "on"))
    add_difference(o, "condition %s, here confidential computing is %s", origin.condition, o->facts.cc ? "on" : "off");
  if (!*o->origin)
    return;
  snprintf(line, sizeof line, "%.300s: its rules were measured elsewhere (%s): tune this machine", path, o->origin);
  warn_once(o, &said, line);
}

static void rules_from_file(struct opening *o, const char *path) {
  static atomic_flag refused_said = ATOMIC_FLAG_INIT, unreachable_said = ATOMIC_FLAG_INIT;
  char why[CCT_RULES_WHY] = "", line[CCT_RULES_WHY + 100], *text = NULL;
  size_t length = 0, rule, by, n;
  enum cct_status status = cct_rules_read(path, &text, &length, why);
  if (!status)
    status = cct_rules_parse(path, text, length, &o->rules, why);
  if (status) {
    snprintf(o->source, sizeof o->source, "refused: %s", why);
    snprintf(line, sizeof line, "%s; the whole file is refused and NCCL decides", why);
    warn_once(o, &refused_said, line);
  } else {
    source_set(o, "file", path, text, length);
    origin_compare(o, path, text, length);
    n = cct_rules_unreachable(&o->rules, &rule, &by);
    if (n) {
      snprintf(line, sizeof line, "%.300s:%d: no size can reach this rule, line %d comes first%s", path,
               o->rules.items[rule].line, o->rules.items[by].line, n > 1 ? "; nor further ones" : "");
      warn_once(o, &unreachable_said, line);
    }
  }
  free(text);
}

/* The first built-in file with a rule that can hold for this communicator and names its very GPU: that H200 was
 * measured says nothing of H200 NVL, though the one name begins the other. */
static void rules_from_builtin(struct opening *o) {
  char why[CCT_RULES_WHY];
  for (const struct cct_builtin_rules *b = cct_builtin_rules; b->name; b++) {
    if (cct_rules_parse(b->name, (const char *)b->text, b->length, &o->rules, why) != CCT_OK)
      continue;
    for (size_t i = 0; i < o->rules.n; i++)
      if (cct_rule_holds(&o->rules.items[i], &o->situation) && !strcmp(o->rules.items[i].gpu, o->situation.gpu)) {
        source_set(o, "built-in", b->name, (const char *)b->text, b->length);
        return;
      }
    cct_rules_free(&o->rules);
  }
  snprintf(o->source, sizeof o->source, "none: nothing built in for this GPU, condition and number of ranks");
}

static void rules_find(struct opening *o) {
  const char *path = getenv("CCTAX_TUNER_RULES");
  if (!path || !*path)
    path = getenv("NCCL_TUNER_CONFIG_FILE");
  if (!path || !*path)
    rules_from_builtin(o);
  else if (!strcmp(path, "none"))
    snprintf(o->source, sizeof o->source, "none: CCTAX_TUNER_RULES=none");
  else
    rules_from_file(o, path);
}

static void condition_find(struct opening *o) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  char why[256] = "";
  const struct cct_tuner_comm *comm = o->comm;
  size_t nodes = comm->nodes ? comm->nodes : 1;
  size_t gpus = comm->domain_gpus ? comm->domain_gpus : (comm->ranks + nodes - 1) / nodes;
  pthread_once(&facts_once, read_facts);
  o->facts = process_facts;
  o->env = (struct cct_tuner_environment){getenv("CCTAX_CONDITION"), getenv("NCCL_NVLS_ENABLE"), getenv("NCCL_ALGO"),
                                          getenv("NCCL_PROTO")};
  if (cct_tuner_condition_find(&o->facts, &o->env, nodes, gpus, &o->condition, why, sizeof why) != CCT_OK)
    warn_once(o, &said, why);
  o->situation = (struct cct_tuner_situation){(int)comm->nodes, (int)comm->ranks, o->condition.cc,
                                              o->condition.is_multicast_off, o->condition.gpu};
}

static const char *known(int value, const char *no, const char *yes) {
  return value < 0 ? "not known" : value ? yes : no;
}

static const char *set_or_not(const char *value) {
  return value ? value : "(not set)";
}

/* The proof's head. Names come from outside, so control characters are taken out at the end, line ends excepted. */
static void head_compose(const struct opening *o, struct cct_text *head) {
  Dl_info library = {0};
  char host[64] = "", exe[PATH_MAX] = "", started[32] = "";
  time_t now = time(NULL);
  struct tm utc;
  size_t at = 0;
  gethostname(host, sizeof host - 1);
  if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0)
    exe[0] = '\0';
  strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  dladdr((const void *)&process_facts, &library);
  const char *lines[][2] = {
      {"proof", "cctax-tuner 1"},
      {"library", library.dli_fname ? library.dli_fname : ""},
      {"host", host},
      {"program", exe},
      {"started", started},
      {"rules", o->source},
      {"rules-measured", *o->origin ? o->origin : "no difference known"},
      {"asked", o->facts.why},
      {"gpu", o->facts.gpu_name[0] ? o->facts.gpu_name : "not known, or of several kinds"},
      {"cc", known(o->facts.cc, "off", "on")},
      {"multi-gpu-cc",
       o->facts.multi_gpu == 2 ? "encrypted NVLink" : known(o->facts.multi_gpu, "none", "protected PCIe")},
      {"multicast", known(o->facts.multicast, "0", "1")},
      {"nvls", cct_nvls_cause_text(o->condition.cause)},
      {"rules-go-by", o->condition.source},
      {"CCTAX_CONDITION", set_or_not(o->env.cctax_condition)},
      {"NCCL_NVLS_ENABLE", set_or_not(o->env.nccl_nvls_enable)},
      {"NCCL_ALGO", set_or_not(o->env.nccl_algo)},
      {"NCCL_PROTO", set_or_not(o->env.nccl_proto)},
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    cct_text_add(head, "%s %s", lines[i][0], lines[i][1]);
    for (; at < head->length; at++)
      if ((unsigned char)head->s[at] < 0x20)
        head->s[at] = '?';
    cct_text_append(head, "\n", 1);
    at = head->length;
  }
  cct_text_add(head, "version %s\npid %ld\ncommunicator %#llx ranks %zu nodes %zu interface %d\n", CCT_VERSION,
               (long)getpid(), (unsigned long long)o->comm->id, o->comm->ranks, o->comm->nodes, o->comm->api);
}

static struct cct_proof *proof_open(const struct opening *o) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  enum {
    LINE = CCT_RULE_TEXT + 64
  };
  const char *folder = getenv("CCTAX_TUNER_PROOF");
  size_t n = FIRST_RULE + o->rules.n;
  struct cct_text head = {0};
  struct cct_proof *proof = NULL;
  char why[PATH_MAX + 128], rule[CCT_RULE_TEXT];
  const char **lines = malloc(n * sizeof *lines);
  char *texts = malloc((o->rules.n + 1) * LINE);
  if (lines && texts) {
    memcpy(lines, fixed_counters, sizeof fixed_counters);
    for (size_t i = 0; i < o->rules.n; i++) {
      const struct cct_rule *r = &o->rules.items[i];
      snprintf(texts + i * LINE, LINE, "line %d%s: %s", r->line,
               cct_rule_holds(r, &o->situation) ? "" : " (not for this communicator)", cct_rule_text(r, rule));
      lines[FIRST_RULE + i] = texts + i * LINE;
    }
    head_compose(o, &head);
    if (!head.is_failed &&
        cct_proof_open(folder && *folder ? folder : NULL, head.s, lines, n, &proof, why, sizeof why) == CCT_IO)
      warn_once(o, &said, why);
  }
  cct_text_free(&head);
  free(texts);
  free(lines);
  return proof;
}

struct cct_tuner_session *cct_tuner_session_open(const struct cct_tuner_comm *comm) {
  struct cct_tuner_session *session = calloc(1, sizeof *session);
  struct opening *o = calloc(1, sizeof *o);
  char line[1024];
  if (!session || !o) {
    free(session);
    free(o);
    return NULL;
  }
  o->comm = comm;
  session->logger = comm->logger;
  condition_find(o);
  rules_find(o);
  if (o->rules.n && cct_decision_build(&o->rules, &o->situation, &session->decision) != CCT_OK)
    snprintf(o->source, sizeof o->source, "none: out of memory");
  session->n_rules = o->rules.n;
  session->proof = proof_open(o);
  snprintf(line, sizeof line, "rules: %.500s; confidential computing %s, multicast %s; NVLS %s", o->source,
           known(o->facts.cc, "off", "on"), known(o->facts.multicast, "0", "1"),
           cct_nvls_cause_text(o->condition.cause));
  say(o, CCT_NCCL_INFO, line);
  cct_rules_free(&o->rules);
  free(o);
  return session;
}

void cct_tuner_session_close(struct cct_tuner_session *session) {
  if (!session)
    return;
  unsigned long long by_rule = 0;
  for (size_t i = 0; i < session->n_rules; i++)
    by_rule += cct_proof_read(session->proof, FIRST_RULE + i);
  if (session->logger)
    session->logger(
        CCT_NCCL_INFO, CCT_NCCL_INIT | CCT_NCCL_TUNING, "cctax", 0,
        "TUNER/cctax: %llu decisions by rule, %llu left to NCCL (no rule %llu, no usable cell %llu); "
        "allreduce without NVLS %llu",
        by_rule,
        (unsigned long long)(cct_proof_read(session->proof, NOT_COVERED) + cct_proof_read(session->proof, NOT_USABLE)),
        (unsigned long long)cct_proof_read(session->proof, NOT_COVERED),
        (unsigned long long)cct_proof_read(session->proof, NOT_USABLE),
        (unsigned long long)cct_proof_read(session->proof, WITHOUT_NVLS));
  cct_proof_close(session->proof);
  cct_decision_free(session->decision);
  free(session);
}

void cct_tuner_session_decide(struct cct_tuner_session *session, int collective, size_t bytes, int pipe_ops,
                              int reg_buff, float *cost, int algorithms, int protocols, int *channels) {
  if (!session || !cost || algorithms <= 0 || protocols <= 0)
    return;
  const struct cct_tuner_call call = {collective, bytes, pipe_ops, reg_buff, cost, algorithms, protocols};
  struct cct_tuner_choice choice;
  if (cct_cost_has_nvls(cost, algorithms, protocols))
    cct_proof_count(session->proof, WITH_NVLS);
  else if (collective == CCT_TUNER_ALLREDUCE)
    cct_proof_count(session->proof, WITHOUT_NVLS);
  switch (cct_decision_choose(session->decision, &call, &choice)) {
  case CCT_TUNER_NOT_COVERED:
    cct_proof_count(session->proof, NOT_COVERED);
    return;
  case CCT_TUNER_NOT_USABLE:
    cct_proof_count(session->proof, NOT_USABLE);
    return;
  case CCT_TUNER_CHOSEN:
    break;
  }
  cct_cost_force(cost, algorithms, protocols, choice.algorithm, choice.protocol);
  if (choice.channels && channels)
    *channels = choice.channels;
  cct_proof_count(session->proof, FIRST_RULE + (size_t)choice.rule);
}
