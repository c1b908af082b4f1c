/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_plugin/net/net_middle.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  LINKS = 4,
  RECORD = 16384 + 512
};

int net_middle_dial(const union cct_net_address *address) {
  int fd = socket(address->any.sa_family, SOCK_STREAM, 0);
  return fd >= 0 && connect(fd, &address->any, cct_net_address_bytes(address)) == 0 ? fd : -1;
}

static int read_all(int fd, unsigned char *bytes, size_t n) {
  return recv(fd, bytes, n, MSG_WAITALL) == (ssize_t)n;
}

int net_middle_write(int fd, const unsigned char *bytes, size_t n) {
  return send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

struct link {
  struct middle *middle;
  int index, from, to;
};

/* One connection, caller to listener, record by record. */
static void *pass_records(void *arg) {
  struct link *l = arg;
  struct middle *m = l->middle;
  unsigned char record[RECORD], held[RECORD];
  size_t held_bytes = 0;
  for (int n_application = 0, is_up = 1; is_up && read_all(l->from, record, 5);) {
    size_t n = 5 + ((size_t)record[3] << 8 | record[4]);
    is_up = n <= RECORD && read_all(l->from, record + 5, n - 5);
    if (is_up && l->index == 0 && m->tape_bytes + n <= sizeof m->tape && n_application < 3) {
      memcpy(m->tape + m->tape_bytes, record, n);
      m->tape_bytes += n;
    }
    int is_hit = is_up && record[0] == 23 && n_application++ == m->at && l->index == m->victim;
    if (is_hit)
      atomic_store(&m->has_struck, 1);
    enum attack attack = is_hit ? m->attack : PASS;
    if (attack == FLIP)
      record[n / 2] ^= 0x10;
    if (attack == FLIP_LENGTH)
      record[4] ^= 0x01;
    if (attack == INJECT)
      is_up =
          net_middle_write(l->to, (const unsigned char *)"\x17\x03\x03\x00\x20 these are 32 bytes of nothing. ", 37);
    if (attack == SWAP) {
      memcpy(held, record, n);
      held_bytes = n;
      continue;
    }
    if (attack == TRUNCATE) {
      net_middle_write(l->to, record, n / 2);
      break;
    }
    if (is_up && attack != DROP)
      is_up = net_middle_write(l->to, record, n);
    if (is_up && attack == REPEAT)
      is_up = net_middle_write(l->to, record, n);
    if (is_up && held_bytes) {
      is_up = net_middle_write(l->to, held, held_bytes);
      held_bytes = 0;
    }
  }
  shutdown(l->to, SHUT_WR);
  return NULL;
}

static void *pass_back(void *arg) {
  struct link *l = arg;
  unsigned char bytes[4096];
  for (ssize_t n; (n = recv(l->to, bytes, sizeof bytes, 0)) > 0;)
    if (!net_middle_write(l->from, bytes, (size_t)n))
      break;
  shutdown(l->from, SHUT_RDWR);
  return NULL;
}

static void *stand_between(void *arg) {
  struct middle *m = arg;
  struct link links[LINKS];
  pthread_t threads[2 * LINKS];
  int n = 0;
  for (; n < LINKS; n++) {
    int from = accept(m->fd, NULL, NULL);
    if (from < 0)
      break;
    links[n] = (struct link){m, n, from, net_middle_dial(&m->target)};
    pthread_create(&threads[2 * n], NULL, pass_records, &links[n]);
    pthread_create(&threads[2 * n + 1], NULL, pass_back, &links[n]);
  }
  for (int i = 0; i < n; i++) {
    pthread_join(threads[2 * i], NULL);
    pthread_join(threads[2 * i + 1], NULL);
    close(links[i].from);
    close(links[i].to);
  }
  return NULL;
}

int net_middle_put(struct middle *m, char *handle, pthread_t *thread) {
  struct cct_net_handle h;
  socklen_t bytes = sizeof m->target.v4;
  memcpy(&h, handle, sizeof h);
  m->target = h.address;
  h.address.v4.sin_port = 0;
  m->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(m->fd, &h.address.any, bytes) != 0 || listen(m->fd, 16) != 0 ||
      getsockname(m->fd, &h.address.any, &bytes) != 0)
    return 0;
  memcpy(handle, &h, sizeof h);
  return pthread_create(thread, NULL, stand_between, m) == 0;
}
