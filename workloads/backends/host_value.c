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

/* One function an operation and type: `load` and `store` turn an element into the wider `value` and back. */
#define COMBINE(operation, type, unit, value, load, store, expression)                                                 \
  static void operation##_##type(void *inout, const void *in, size_t count) {                                          \
    unit *a = inout;                                                                                                   \
    const unit *b = in;                                                                                                \
    for (size_t i = 0; i < count; i++) {                                                                               \
      value x = load(a[i]), y = load(b[i]);                                                                            \
      a[i] = (unit)store(expression);                                                                                  \
    }                                                                                                                  \
  }
#define COMBINE_ALL(type, unit, value, load, store)                                                                    \
  COMBINE(sum, type, unit, value, load, store, x + y)                                                                  \
  COMBINE(prod, type, unit, value, load, store, x *y)                                                                  \
  COMBINE(min, type, unit, value, load, store, x < y ? x : y)                                                          \
  COMBINE(max, type, unit, value, load, store, x > y ? x : y)

#define LOAD_BF16(c)  decode(&bf16, c)
#define LOAD_FP16(c)  decode(&fp16, c)
#define LOAD_E4M3(c)  decode(&e4m3, c)
#define LOAD_E5M2(c)  decode(&e5m2, c)
#define STORE_BF16(f) encode(&bf16, f)
#define STORE_FP16(f) encode(&fp16, f)
#define STORE_E4M3(f) encode(&e4m3, f)
#define STORE_E5M2(f) encode(&e5m2, f)
#define AS_IT_IS(x)   (x)
COMBINE_ALL(fp32, float, float, AS_IT_IS, AS_IT_IS)
COMBINE(prod, bf16, uint16_t, float, LOAD_BF16, STORE_BF16, x *y)
COMBINE(min, bf16, uint16_t, float, LOAD_BF16, STORE_BF16, x < y ? x : y)
COMBINE(max, bf16, uint16_t, float, LOAD_BF16, STORE_BF16, x > y ? x : y)
COMBINE_ALL(fp16, uint16_t, float, LOAD_FP16, STORE_FP16)
COMBINE_ALL(e4m3, uint8_t, float, LOAD_E4M3, STORE_E4M3)
COMBINE_ALL(e5m2, uint8_t, float, LOAD_E5M2, STORE_E5M2)
COMBINE_ALL(int32, int32_t, int64_t, AS_IT_IS, AS_IT_IS)
COMBINE_ALL(int8, int8_t, int, AS_IT_IS, AS_IT_IS)

/* bf16 is the upper half of fp32, subnormals and infinity included: short enough for the compiler to vectorise. */
static void sum_bf16(void *inout, const void *in, size_t count) {
  uint16_t *restrict a = inout;
  const uint16_t *restrict b = in;
  for (size_t i = 0; i < count; i++) {
    uint32_t bits = bits_of_float(float_of_bits((uint32_t)a[i] << 16) + float_of_bits((uint32_t)b[i] << 16));
    a[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

cct_combine_fn *cct_host_combine(enum cct_type type, enum cct_reduction reduction) {
#define ROW(type)                                                                                                      \
  { sum_##type, prod_##type, min_##type, max_##type, sum_##type }
  static cct_combine_fn *const functions[CCT_TYPE_COUNT][CCT_REDUCTION_COUNT] = {
      [CCT_TYPE_FP32] = ROW(fp32), [CCT_TYPE_BF16] = ROW(bf16),     [CCT_TYPE_FP16] = ROW(fp16),
      [CCT_TYPE_FP8] = ROW(e4m3),  [CCT_TYPE_FP8_E5M2] = ROW(e5m2), [CCT_TYPE_INT32] = ROW(int32),
      [CCT_TYPE_INT8] = ROW(int8),
  };
#undef ROW
  return functions[type][reduction];
}

#define DIVIDE(unit, value, load, store)                                                                               \
  for (size_t i = 0; i < count; i++)                                                                                   \
  ((unit *)buf)[i] = (unit)store(load(((unit *)buf)[i]) / (value)n)
void cct_host_divide(enum cct_type type, void *buf, size_t count, int n) {
  switch (type) {
  case CCT_TYPE_FP32:
    DIVIDE(float, float, AS_IT_IS, AS_IT_IS);
    break;
  case CCT_TYPE_BF16:
    DIVIDE(uint16_t, float, LOAD_BF16, STORE_BF16);
    break;
  case CCT_TYPE_FP16:
    DIVIDE(uint16_t, float, LOAD_FP16, STORE_FP16);
    break;
  case CCT_TYPE_FP8:
    DIVIDE(uint8_t, float, LOAD_E4M3, STORE_E4M3);
    break;
  case CCT_TYPE_FP8_E5M2:
    DIVIDE(uint8_t, float, LOAD_E5M2, STORE_E5M2);
    break;
  case CCT_TYPE_INT32:
    DIVIDE(int32_t, int32_t, AS_IT_IS, AS_IT_IS);
    break;
  default:
    DIVIDE(int8_t, int, AS_IT_IS, AS_IT_IS);
    break;
  }
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

/* sum: 0..m, m = 2^precision / n; where m is 0, 2^precision of the members give 1. prod: 1 or 2 of six members, 1 of
 * the others. min, max: 0..2^precision - 1. avg: the same of every member. */
int cct_host_input(enum cct_type type, enum cct_reduction reduction, int n, int member, size_t index) {
  int p = cct_type_significand_bits(type);
  int64_t exact = INT64_C(1) << (p < 24 ? p : 24), most = exact / n;
  if (reduction == CCT_REDUCTION_PROD)
    return member < 6 ? 1 + (int)cct_host_hash((uint32_t)member, index, 2) : 1;
  if (reduction == CCT_REDUCTION_MIN || reduction == CCT_REDUCTION_MAX)
    return (int)cct_host_hash((uint32_t)member, index, (uint32_t)exact);
  if (reduction == CCT_REDUCTION_AVG) { /* below 2^precision: an integer's sum must not wrap before it is divided */
    most = (exact - 1) / n;
    return most ? (int)cct_host_hash(0, index, (uint32_t)most + 1) : 0;
  }
  if (most)
    return (int)cct_host_hash((uint32_t)member, index, (uint32_t)most + 1);
  return (member + (int)(index % (size_t)n)) % n < exact;
}

int cct_host_result(enum cct_type type, enum cct_reduction reduction, int n, size_t index) {
  int result = cct_host_input(type, reduction, n, 0, index);
  for (int member = 1; member < n && reduction != CCT_REDUCTION_AVG; member++) {
    int next = cct_host_input(type, reduction, n, member, index);
    result = reduction == CCT_REDUCTION_SUM    ? result + next
             : reduction == CCT_REDUCTION_PROD ? result * next
             : reduction == CCT_REDUCTION_MIN  ? (next < result ? next : result)
                                               : (next > result ? next : result);
  }
  return result;
}

unsigned char cct_host_byte(int sender, int receiver, size_t index) {
  return (unsigned char)cct_host_hash((uint32_t)sender * 0x10001u + (uint32_t)receiver, index, 255);
}
