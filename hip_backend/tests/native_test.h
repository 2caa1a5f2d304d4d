/* Defines what the tests of the native kernels share: a count of failures, random words, memory of the host runtime, formats, fields of
 * words, and devices drawn at random. Each test program includes it once. */
#ifndef MXH_NATIVE_TEST_H
#define MXH_NATIVE_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

#include "hip_backend/gfx950/native.h"
#include "mxgold/mma.h"
#include "mxgold/spec.h"
extern "C" {
#include "ref/mma.h"
#include "ref/ref.h"
}

static int failures;
static uint64_t compared;
static inline void fail(const char *what, const std::string &text) {
  if (failures++ < 20) printf("FAILED: %s: %s\n", what, text.c_str());
}
static inline std::string hex(uint64_t v) {
  char s[20];
  snprintf(s, sizeof s, "%08llx", (unsigned long long)v);
  return s;
}

static uint64_t state = 88172645463325252u;
static inline uint64_t random64() {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 2685821657736338717u;
}
static inline uint32_t random32() { return (uint32_t)(random64() >> 32); }
static inline unsigned below(unsigned n) { return random32() % n; }

/* Memory of the host runtime. */
struct buffer {
  uint32_t *p;
  size_t n;
  explicit buffer(size_t words) : p((uint32_t *)mxh_host::alloc(words * 4)), n(words) {}
  ~buffer() { mxh_host::release(p); }
  buffer(const buffer &) = delete;
  buffer &operator=(const buffer &) = delete;
  uint32_t &operator[](size_t i) { return p[i]; }
  void written() { mxh_host::set_written(p, n * 4); }
};

static inline const mx_format *format_of(int type) {
  switch (type) {
  case GFX950_E4M3:
    return mx_elem_format(MX_ELEM_E4M3);
  case GFX950_E5M2:
    return mx_elem_format(MX_ELEM_E5M2);
  case GFX950_E2M3:
    return mx_elem_format(MX_ELEM_E2M3);
  case GFX950_E3M2:
    return mx_elem_format(MX_ELEM_E3M2);
  case GFX950_E2M1:
    return mx_elem_format(MX_ELEM_E2M1);
  case GFX950_F16:
    return mx_operand_format(MX_OPERAND_F16);
  case GFX950_BF16:
    return mx_operand_format(MX_OPERAND_BF16);
  default:
    return mx_operand_format(MX_OPERAND_F32);
  }
}

/* Reads n bits of a string of words, deliberately bit by bit. */
static inline uint32_t bits_at(const uint32_t *w, int bit, int n) {
  uint32_t v = 0;
  for (int i = 0; i < n; i++) v |= (w[(bit + i) / 32] >> (bit + i) % 32 & 1) << i;
  return v;
}
static inline void set_bits(uint32_t *w, int bit, int n, uint32_t v) {
  for (int i = 0; i < n; i++) {
    w[(bit + i) / 32] &= ~(1u << (bit + i) % 32);
    w[(bit + i) / 32] |= (v >> i & 1) << (bit + i) % 32;
  }
}
/* Draws a device: each rule at random, and one of the candidates for the sums. */
static inline gfx950_rules drawn() {
  static const char *const sums[] = {
      "cdna4_like_cdna3", "cdna4_like_cdna3_rz",        "cdna4_block32",          "cdna4_block32_evenodd", "cdna4_whole",
      "cdna4_exact32",    "fused:L=16,F=25,out=f32rne", "fused:L=4,F=30,join=add"};
  gfx950_rules r = gfx950_rules_default();
  for (int i = 0; gfx950_rule_name(i, nullptr); i++) {
    unsigned n = 0;
    while (gfx950_choice_name(i, (int)n, nullptr)) n++;
    *gfx950_rule_of(&r, i) = (int)below(n);
  }
  const bool each = below(2) != 0; /* each pair of types sums in its own way */
  for (int pair = 0; pair < GFX950_PAIRS; pair++) {
    mx_mma_model m;
    if (pair && !each) break;
    if (mx_mma_model_find(&m, sums[below(8)], nullptr) != MX_OK) fail("model", "not found");
    if (each)
      r.accum[pair] = m.accum;
    else
      gfx950_rules_sums(&r, &m.accum);
  }
  return r;
}
#endif
