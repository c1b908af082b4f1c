/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "nccl_plugin/net/net_format.h"
#include "nccl_plugin/net/net_log.h"

enum {
  INLINE_BYTES = 16384 - sizeof(struct cct_net_frame)
}; /* frame and message in one TLS record */

static enum cct_nccl read_number(const char *name, int64_t low, int64_t high, int64_t fallback, int64_t *value_out) {
  const char *text = getenv(name);
  int64_t value = fallback;
  if (text && (!cct_parse_bytes(text, &value) || value < low || value > high))
    return cct_net_fail(CCT_NCCL_INVALID_USAGE, "%s='%.64s' is not a number from %lld to %lld", name, text,
                        (long long)low, (long long)high);
  *value_out = value;
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl read_path(const char *name, char path_out[PATH_MAX]) {
  const char *text = getenv(name);
  if (snprintf(path_out, PATH_MAX, "%s", text ? text : "") >= PATH_MAX)
    return cct_net_fail(CCT_NCCL_INVALID_USAGE, "%s is longer than a path may be", name);
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl read_numbers(struct cct_net_config *c) {
  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  int default_threads = cores / 2 < 1 ? 1 : cores / 2 > 12 ? 12 : cores / 2;
  int default_sockets = default_threads >= 8 ? 8 : default_threads < 4 ? default_threads : 4;
  int64_t sockets, threads, inline_bytes, records, connect_s, dead_s, stall_s, spin_us, speed;
  const struct {
    const char *name;
    int64_t low, high, fallback, *value;
  } rows[] = {
      {"CCTAX_NET_SOCKETS", 1, CCT_NET_MAX_SOCKETS, default_sockets, &sockets},
      {"CCTAX_NET_THREADS", 1, CCT_NET_MAX_THREADS, default_threads, &threads},
      {"CCTAX_NET_INLINE_BYTES", 0, CCT_NET_INLINE_MAX_BYTES, INLINE_BYTES, &inline_bytes},
      {"CCTAX_NET_KEY_RECORDS", 4, CCT_NET_KEY_RECORDS, CCT_NET_KEY_RECORDS, &records},
      {"CCTAX_NET_CONNECT_TIMEOUT_S", 1, 86400, 120, &connect_s},
      {"CCTAX_NET_DEAD_S", 1, 86400, 60, &dead_s},
      {"CCTAX_NET_STALL_S", 0, 7 * 86400, 1800, &stall_s},
      {"CCTAX_NET_SPIN_US", 0, 10000, cores > 4 ? 20 : 0, &spin_us},
      {"CCTAX_NET_SPEED_MBPS", 1, 10000000, 0, &speed},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    enum cct_nccl result = read_number(rows[i].name, rows[i].low, rows[i].high, rows[i].fallback, rows[i].value);
    if (result)
      return result;
  }
  c->sockets = (int)sockets;
  c->threads = (int)threads;
  c->inline_bytes = c->alone_bytes = (size_t)inline_bytes;
  if (!getenv("CCTAX_NET_INLINE_BYTES"))
    c->alone_bytes = CCT_NET_INLINE_MAX_BYTES;
  c->key_records = (uint64_t)records;
  c->connect_ns = connect_s * 1000000000;
  c->dead_s = (int)dead_s;
  c->stall_ns = stall_s * 1000000000;
  c->spin_ns = spin_us * 1000;
  c->speed_mbps = (int)speed;
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl read_cipher(struct cct_net_config *c) {
  const char *text = getenv("CCTAX_NET_CIPHER");
  if (!text || strcmp(text, "aes-256-gcm") == 0)
    c->cipher = "TLS_AES_256_GCM_SHA384";
  else if (strcmp(text, "aes-128-gcm") == 0)
    c->cipher = "TLS_AES_128_GCM_SHA256";
  else
    return cct_net_fail(CCT_NCCL_INVALID_USAGE, "CCTAX_NET_CIPHER='%.64s' is neither 'aes-256-gcm' nor 'aes-128-gcm'",
                        text);
  return CCT_NCCL_SUCCESS;
}

static enum cct_nccl check_keys(const struct cct_net_config *c) {
  int has_certificate = *c->cert_file && *c->key_file && *c->ca_file;
  if (*c->psk_file && (*c->cert_file || *c->key_file || *c->ca_file))
    return cct_net_fail(CCT_NCCL_INVALID_USAGE, "CCTAX_NET_PSK_FILE and certificate files are both set: choose one");
  if (!*c->psk_file && !has_certificate)
    return cct_net_fail(CCT_NCCL_INVALID_USAGE,
                        "no key material, and nothing is sent in plaintext by itself: set CCTAX_NET_PSK_FILE, "
                        "or CCTAX_NET_CERT_FILE, _KEY_FILE and _CA_FILE, or CCTAX_NET_MODE=plain");
  return CCT_NCCL_SUCCESS;
}

enum cct_nccl cct_net_config_read(struct cct_net_config *config_out) {
  static const struct {
    const char *name;
    size_t at;
  } paths[] = {{"CCTAX_NET_PSK_FILE", offsetof(struct cct_net_config, psk_file)},
               {"CCTAX_NET_CERT_FILE", offsetof(struct cct_net_config, cert_file)},
               {"CCTAX_NET_KEY_FILE", offsetof(struct cct_net_config, key_file)},
               {"CCTAX_NET_CA_FILE", offsetof(struct cct_net_config, ca_file)},
               {"CCTAX_NET_STATS", offsetof(struct cct_net_config, stats_file)}};
  struct cct_net_config *c = config_out;
  memset(c, 0, sizeof *c);
  const char *mode = getenv("CCTAX_NET_MODE");
  if (mode && strcmp(mode, "tls") != 0 && strcmp(mode, "plain") != 0)
    return cct_net_fail(CCT_NCCL_INVALID_USAGE, "CCTAX_NET_MODE='%.64s' is neither 'tls' nor 'plain'", mode);
  c->is_tls = !mode || strcmp(mode, "tls") == 0;
  enum cct_nccl result = CCT_NCCL_SUCCESS;
  for (size_t i = 0; !result && i < sizeof paths / sizeof *paths; i++)
    result = read_path(paths[i].name, (char *)c + paths[i].at);
  if (!result)
    result = read_numbers(c);
  if (!result)
    result = read_cipher(c);
  if (!result && c->is_tls)
    result = check_keys(c);
  return result;
}
