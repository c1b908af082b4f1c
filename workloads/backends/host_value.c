/* SPDX-License-Identifier: Apache-2.0
 * Elements of every type as bytes. Floating types narrower than fp32 are summed in fp32 and rounded to nearest even
 * after each addition; what overflows fp8 or fp16 stays at the largest finite value, as NVIDIA's conversions to fp8
 * saturate. */
#include "workloads/backends/host.h"

#include <math.h>
#include <string.h>

struct small { /* a floating type of at most 16 bits */
  int exponent_bits, mantissa_bits;
  uint32_t largest; /* code of the largest finite value, without sign */
};
static const struct small bf16 = {8, 7, 0x7f7f}, fp16 = {5, 10, 0x7bff}, e4m3 = {4, 3, 0x7e}, e5m2 = {5, 2, 0x7b};

static inline float float_of_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static inline uint32_t bits_of_float(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* 2^(1 - bias - mantissa_bits): the smallest subnormal. */
static inline float least(const struct small *t) {
  int bias = (1 << (t->exponent_bits - 1)) - 1;
  return t->exponent_bits == 8 ? 0x1p-133f : float_of_bits((uint32_t)(127 + 1 - bias - t->mantissa_bits) << 23);
}

static inline float decode(const struct small *t, uint32_t code) {
  int m = t->mantissa_bits, bias = (1 << (t->exponent_bits - 1)) - 1;
  uint32_t sign = code >> (t->exponent_bits + m), magnitude = code & ((1u << (t->exponent_bits + m)) - 1);
  float f = magnitude >> m ? float_of_bits((magnitude << (23 - m)) + ((uint32_t)(127 - bias) << 23))
                           : (float)magnitude * least(t);
  return sign ? -f : f;
}

static inline uint32_t encode(const struct small *t, float f) {
  int m = t->mantissa_bits, bias = (1 << (t->exponent_bits - 1)) - 1, shift = 23 - m;
  uint32_t bits = bits_of_float(f), magnitude = bits & 0x7fffffff, code;
  if (magnitude >> 23 > (uint32_t)(127 - bias)) {
    uint32_t half = (1u << (shift - 1)) - 1 + (magnitude >> shift & 1);
    code = ((magnitude + half) >> shift) - ((uint32_t)(127 - bias) << m);
  } else {
    code = (uint32_t)lrintf(float_of_bits(magnitude) / least(t));
  }
  if (code > t->largest)
    code = t->largest;
  return code | bits >> 31 << (t->exponent_bits + m);
}

#define SUM_FLOATS(name, kind, unit)                                                                                   \
  static void sum_##name(void *inout, const void *in, size_t count) {                                                  \
    unit *a = inout;                                                                                                   \
    const unit *b = in;                                                                                                \
    for (size_t i = 0; i < count; i++)                                                                                 \
      a[i] = (unit)encode(&kind, decode(&kind, a[i]) + decode(&kind, b[i]));                                           \
  }
#define SUM_NUMBERS(name, unit)                                                                                        \
  static void sum_##name(void *inout, const void *in, size_t count) {                                                  \
    unit *a = inout;                                                                                                   \
    const unit *b = in;                                                                                                \
    for (size_t i = 0; i < count; i++)                                                                                 \
      a[i] = (unit)(a[i] + b[i]);                                                                                      \
  }

/* bf16 is the upper half of fp32, subnormals and infinity included: short enough for the compiler to vectorise. */
static void sum_bf16(void *inout, const void *in, size_t count) {
  uint16_t *restrict a = inout;
  const uint16_t *restrict b = in;
  for (size_t i = 0; i < count; i++) {
    uint32_t bits = bits_of_float(float_of_bits((uint32_t)a[i] << 16) + float_of_bits((uint32_t)b[i] << 16));
    a[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

SUM_FLOATS(fp16, fp16, uint16_t)
SUM_FLOATS(e4m3, e4m3, uint8_t)
SUM_FLOATS(e5m2, e5m2, uint8_t)
SUM_NUMBERS(fp32, float)
SUM_NUMBERS(int32, uint32_t)
SUM_NUMBERS(int8, uint8_t)

cct_combine_fn *cct_host_sum(enum cct_type type) {
  static cct_combine_fn *const sums[CCT_TYPE_COUNT] = {
      [CCT_TYPE_FP32] = sum_fp32, [CCT_TYPE_BF16] = sum_bf16,     [CCT_TYPE_FP16] = sum_fp16,
      [CCT_TYPE_FP8] = sum_e4m3,  [CCT_TYPE_FP8_E5M2] = sum_e5m2, [CCT_TYPE_INT32] = sum_int32,
      [CCT_TYPE_INT8] = sum_int8,
  };
  return sums[type];
}

static uint32_t code_of(enum cct_type type, int value) {
  switch (type) {
  case CCT_TYPE_FP32:
    return bits_of_float((float)value);
  case CCT_TYPE_BF16:
    return encode(&bf16, (float)value);
  case CCT_TYPE_FP16:
    return encode(&fp16, (float)value);
  case CCT_TYPE_FP8:
    return encode(&e4m3, (float)value);
  case CCT_TYPE_FP8_E5M2:
    return encode(&e5m2, (float)value);
  default:
    return (uint32_t)value;
  }
}

void cct_host_put(enum cct_type type, void *buf, size_t index, int value) {
  uint32_t code = code_of(type, value);
  size_t bytes = (size_t)cct_type_bits(type) / 8;
  memcpy((char *)buf + index * bytes, &code, bytes); /* little-endian, as every machine with an NVIDIA driver is */
}

int cct_host_is(enum cct_type type, const void *buf, size_t index, int value) {
  uint32_t code = code_of(type, value);
  size_t bytes = (size_t)cct_type_bits(type) / 8;
  return memcmp((const char *)buf + index * bytes, &code, bytes) == 0;
}

/* Checking costs as many hashes as elements and members: two multiplications each (the finaliser of a 32-bit mixer),
 * where base/random.h's draws, made for statistics, would cost ten times the step. */
uint32_t cct_host_hash(uint32_t about, size_t index, uint32_t bound) {
  uint32_t h = (uint32_t)index * 0x9e3779b1u + about * 0x85ebca77u;
  h = (h ^ h >> 15) * 0x2c1b3c6du;
  return (uint32_t)((uint64_t)(h ^ h >> 12) * bound >> 32);
}

int cct_host_summand(enum cct_type type, int n, int member, size_t index) {
  int p = cct_type_significand_bits(type);
  int64_t exact = INT64_C(1) << (p < 24 ? p : 24), most = exact / n;
  if (most)
    return (int)cct_host_hash((uint32_t)member, index, (uint32_t)most + 1);
  return (member + (int)(index % (size_t)n)) % n < exact;
}

unsigned char cct_host_byte(int sender, int receiver, size_t index) {
  return (unsigned char)cct_host_hash((uint32_t)sender * 0x10001u + (uint32_t)receiver, index, 255);
}
