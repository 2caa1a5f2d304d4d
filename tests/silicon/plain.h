/** Declares a plain model of the H200's matrix units, written apart from src/ and ref/: one output at a time, 64-bit integers, no tables.
 *  It is the second opinion of `hold`, and `power` breaks it on purpose to show that the tiles would notice. */
#ifndef PLAIN_H
#define PLAIN_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tiles.h"

typedef struct plain_model {
  enum { PLAIN_FUSED, PLAIN_EMULATED, PLAIN_INTEGER, PLAIN_F64 } kind;
  int L;         /* products in a group */
  int F;         /* fraction bits kept below the largest exponent */
  int out_bits;  /* fraction bits of an f32 result */
  int floor;     /* smallest value of the largest exponent */
  int satfinite; /* integers */
  /* These are 0 in the model; power sets one of them to make it wrong on purpose. */
  int zero_e126, out_rne, out_rz16, align_rd, join_after, normalise_products, normalise_subnormals, saturate, huge_inf, flush_in, flush_out,
      negative_zero, nan_quiet, halves, order_seq, order_swap, join_in, direct, fma_split, k_descending;
} plain_model;

/** The model of one row of rows.def. */
static inline plain_model plain_of(const char *name, int k, const tiles_type *a, const tiles_type *c) {
  plain_model p;
  memset(&p, 0, sizeof p);
  const int fp8 = a->bytes == 1 && a->ebits, wgmma = name[0] == 'w';
  p.kind = a->ebits == 0 ? PLAIN_INTEGER : a->bytes == 8 ? PLAIN_F64 : fp8 && !wgmma ? PLAIN_EMULATED : PLAIN_FUSED;
  p.L = p.kind == PLAIN_EMULATED ? k / 2 : k;
  p.F = fp8 && wgmma ? 13 : 25;
  p.out_bits = fp8 && wgmma && c->bytes == 4 ? 13 : 23;
  p.floor = tiles_emin(c) - 7; /* f32: -133, f16: -21 */
  p.satfinite = strstr(name, "satfinite") != NULL;
  return p;
}

typedef struct plain_number {
  int sign, e; /* value = +-significand * 2^(e - mbits) */
  uint64_t significand;
  int mbits, special; /* special: 0 finite, 1 Inf, 2 NaN */
} plain_number;

static inline plain_number plain_decode(const tiles_type *t, uint64_t code) {
  plain_number x = {0};
  const uint64_t bits = code >> t->shift, frac = bits & (((uint64_t)1 << t->mbits) - 1);
  const int top = (1 << t->ebits) - 1, field = (int)(bits >> t->mbits) & top;
  x.significand = tiles_significand(t, code, &x.e);
  x.sign = (int)(bits >> (t->ebits + t->mbits)) & 1;
  x.mbits = t->mbits;
  if (t->kind == 'n')
    x.special = field == top && frac == ((uint64_t)1 << t->mbits) - 1 ? 2 : 0;
  else if (field == top)
    x.special = frac ? 2 : 1;
  return x;
}

static inline plain_number plain_normal(plain_number x, int emin) {
  while (x.significand && !(x.significand >> x.mbits) && (emin == 0 || x.e > emin)) x.significand <<= 1, x.e--;
  return x;
}

/* sum * 2^unit to the type of c: toward zero, or to nearest even. */
static inline uint64_t plain_round(int64_t sum, int unit, const tiles_type *c, int rne, const plain_model *p) {
  const int sign = sum < 0, emin = tiles_emin(c), emax = tiles_emax(c);
  const uint64_t u = sign ? (uint64_t)-sum : (uint64_t)sum, minus = (uint64_t)sign << (c->ebits + c->mbits);
  const uint64_t inf = ((((uint64_t)1 << c->ebits) - 1) << c->mbits);
  if (!u) return sign && p->negative_zero ? minus : 0;
  const int lead = 63 - __builtin_clzll(u), bits = c->bytes == 4 ? p->out_bits : c->mbits;
  int e = lead + unit;
  const int last = (e < emin ? emin : e) - bits, cut = last - unit; /* the exponent of the last bit that is kept */
  uint64_t q;
  if (cut <= 0)
    q = u << -cut;
  else if (cut > 62)
    q = 0;
  else {
    q = u >> cut;
    const uint64_t rest = u & (((uint64_t)1 << cut) - 1), half = (uint64_t)1 << (cut - 1);
    if (rne && (rest > half || (rest == half && (q & 1)))) q++;
  }
  if (!q) return p->negative_zero ? minus : 0;
  q <<= c->mbits - bits;
  if (p->flush_out && e < emin) return minus;
  if (e < emin) e = emin;
  uint64_t code = ((uint64_t)(e - emin) << c->mbits) + q; /* the leading bit of a normal q adds 1 to the exponent field */
  if (e > emax || code >= inf) code = p->saturate ? inf - 1 : inf;
  return code | minus;
}

static inline uint64_t plain_nan(const tiles_type *c, const plain_model *p) {
  const uint64_t all = ((uint64_t)1 << (c->ebits + c->mbits)) - 1;
  return p->nan_quiet ? all ^ (((uint64_t)1 << (c->mbits - 1)) - 1) : all;
}

/* Aligns, cuts, sums and rounds one group: L products of a and b, and c. */
static inline uint64_t plain_group(const plain_model *p, const plain_number *a, const plain_number *b, int L, plain_number c,
                                   const tiles_type *ct, int rne) {
  int top = p->zero_e126 ? -252 : p->floor, nan = c.special == 2, inf[2] = {0, 0};
  int e[TILES_MAX_K], mb = a[0].mbits + b[0].mbits;
  uint64_t v[TILES_MAX_K];
  if (c.special == 1) inf[c.sign] = 1;
  if (p->normalise_subnormals) c = plain_normal(c, 0);
  if (p->flush_in && c.significand >> c.mbits == 0) c.significand = 0;
  for (int i = 0; i < L; i++) {
    plain_number x = a[i], y = b[i];
    if (x.special || y.special) {
      if (x.special == 2 || y.special == 2 || (!x.special && !x.significand) || (!y.special && !y.significand))
        nan = 1;
      else
        inf[x.sign ^ y.sign] = 1;
    }
    if (p->normalise_subnormals) x = plain_normal(x, 0), y = plain_normal(y, 0);
    if (p->flush_in && (x.significand >> x.mbits == 0 || y.significand >> y.mbits == 0)) x.significand = 0;
    v[i] = x.significand * y.significand;
    e[i] = x.e + y.e;
    if (p->zero_e126) { /* MMA-Sim: each zero operand has the exponent -126 */
      if (!x.significand) x.e = -126;
      if (!y.significand) y.e = -126;
      e[i] = x.e + y.e;
    }
    if (p->normalise_products && v[i] >> (mb + 1)) e[i]++;
    if ((v[i] || p->zero_e126) && e[i] > top) top = e[i];
    if (p->huge_inf && !x.special && !y.special && v[i] && e[i] + (int)(v[i] >> (mb + 1)) >= 128) inf[x.sign ^ y.sign] = 1;
  }
  if (nan || (inf[0] && inf[1])) return plain_nan(ct, p);
  const uint64_t minus = (uint64_t)1 << (ct->ebits + ct->mbits);
  if (inf[0] || inf[1]) return plain_nan(ct, &(plain_model){0}) - (((uint64_t)1 << ct->mbits) - 1) + (inf[1] ? minus : 0);
  if (!p->join_after && (c.significand || p->zero_e126) && c.e > top) top = !c.significand && p->zero_e126 ? (top > -126 ? top : -126) : c.e;
  int64_t sum = 0, after = 0;
  for (int i = 0; i <= L; i++) {
    const uint64_t value = i < L ? v[i] : c.significand;
    const int negative = i < L ? a[i].sign ^ b[i].sign : c.sign;
    const int up = i < L ? (a[i].significand ? a[i].e : 0) + (b[i].significand ? b[i].e : 0) - mb - (top - p->F) : c.e - c.mbits - (top - p->F);
    int64_t term;
    if (!value) continue;
    if (i == L && p->join_after) {
      after = 1;
      continue;
    }
    int shift = up;
    if (i < L && p->normalise_subnormals) shift = e[i] - (p->normalise_products && v[i] >> (mb + 1)) - mb - (top - p->F);
    if (shift >= 0)
      term = (int64_t)(value << shift);
    else if (shift < -63)
      term = p->align_rd && negative ? 1 : 0;
    else
      term = (int64_t)((value + (p->align_rd && negative ? ((uint64_t)1 << -shift) - 1 : 0)) >> -shift);
    sum += negative ? -term : term;
  }
  const uint64_t d = plain_round(sum, top - p->F, ct, rne, p);
  if (!after) return d;
  plain_number s = plain_decode(ct, d), one = {0, 0, 1, 0, 0};
  plain_model q = *p;
  q.join_after = 0;
  return plain_group(&q, &s, &one, 1, c, ct, rne);
}

/* a + b rounded once to nearest even, as FADD and HADD2 do; zero results keep IEEE's sign. */
static inline uint64_t plain_add(uint64_t x, uint64_t y, const tiles_type *t) {
  const plain_number a = plain_decode(t, x), b = plain_decode(t, y);
  const plain_model p = {0};
  if (a.special == 2 || b.special == 2 || (a.special && b.special && a.sign != b.sign)) return plain_nan(t, &p);
  if (a.special) return x;
  if (b.special) return y;
  if (t->bytes == 4) {
    float f, g, h;
    memcpy(&f, &x, 4), memcpy(&g, &y, 4);
    h = f + g;
    uint32_t bits;
    memcpy(&bits, &h, 4);
    return bits;
  }
  int64_t s = 0; /* f16: units of 2^-24, exact */
  s += (a.sign ? -1 : 1) * (int64_t)(a.significand << (a.e + 14));
  s += (b.sign ? -1 : 1) * (int64_t)(b.significand << (b.e + 14));
  if (!s) return a.sign && b.sign ? 0x8000 : 0;
  return plain_round(s, -24, t, 1, &p);
}

static inline uint64_t plain_quiet64(uint64_t x) { return x | (uint64_t)1 << 51; }
static inline int plain_is_nan64(uint64_t x) { return (x & ~((uint64_t)1 << 63)) > 0x7FF0000000000000u; }

static inline uint64_t plain_fma64(uint64_t a, uint64_t b, uint64_t c, const plain_model *p) {
  if (plain_is_nan64(b)) return plain_quiet64(b);
  if (plain_is_nan64(c)) return plain_quiet64(c);
  if (plain_is_nan64(a)) return plain_quiet64(a);
  double x, y, z;
  memcpy(&x, &a, 8), memcpy(&y, &b, 8), memcpy(&z, &c, 8);
  volatile double product = x * y;
  const double d = p->fma_split ? product + z : fma(x, y, z);
  uint64_t bits;
  memcpy(&bits, &d, 8);
  return plain_is_nan64(bits) ? 0xFFF8000000000000u : bits;
}

static inline int64_t plain_integer(const tiles_type *t, uint64_t code) {
  const int64_t v = (int64_t)code;
  return t->kind == 's' && v >> t->mbits ? v - ((int64_t)2 << t->mbits) : v;
}

/** Computes one output from a and b [k], decoded and raw, and c, raw; groups are chained in ascending k. */
static inline uint64_t plain_dot(const plain_model *p, int group, int k, const plain_number *a, const plain_number *b, const uint64_t *ra,
                                 const uint64_t *rb, uint64_t c, const tiles_shape *q) {
  const tiles_type *ct = q->c;
  for (int g = 0; g < k; g += group) {
    if (p->kind == PLAIN_INTEGER) {
      int64_t s = (int32_t)c;
      for (int i = g; i < g + group; i++) s += plain_integer(q->a, ra[i]) * plain_integer(q->b, rb[i]);
      if (p->satfinite) s = s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s;
      c = (uint32_t)s;
    } else if (p->kind == PLAIN_F64) {
      for (int i = 0; i < group; i++) {
        const int at = g + (p->k_descending ? group - 1 - i : i);
        c = plain_fma64(ra[at], rb[at], c, p);
      }
    } else if (p->kind == PLAIN_EMULATED && !p->direct) {
      plain_number x[TILES_MAX_K], y[TILES_MAX_K];
      int n = 0;
      for (int half = 0; half < 2; half++)
        for (int i = 0; i < group; i++) {
          const int late = p->order_seq ? i >= group / 2 : i % 4 >= 2;
          if (late != (half ^ p->order_swap)) continue;
          x[n] = plain_normal(a[g + i], -14), y[n] = plain_normal(b[g + i], -14);
          /* to f16's exponent range and significand: e4m3 subnormals become normal, e5m2's stay */
          n++;
        }
      uint64_t s = p->join_in ? c : 0;
      for (int half = 0; half < 2; half++)
        s = plain_group(p, x + half * group / 2, y + half * group / 2, group / 2, plain_decode(ct, s), ct,
                        (ct->bytes == 2 || p->out_rne) && !p->out_rz16);
      c = p->join_in ? s : plain_add(s, c, ct);
    } else {
      const int L = p->halves ? group / 2 : group;
      for (int i = 0; i < group; i += L)
        c = plain_group(p, a + g + i, b + g + i, L, plain_decode(ct, c), ct, (ct->bytes == 2 || p->out_rne) && !p->out_rz16);
    }
  }
  return c;
}

/** Computes one tile of raw bits, d [m][n]; c may be NULL, which counts as +0. */
static inline void plain_tile(const plain_model *p, const tiles_shape *q, const void *a, const void *b, const void *c, void *d) {
  static _Thread_local plain_number x[64 * TILES_MAX_K], y[TILES_MAX_N * TILES_MAX_K];
  static _Thread_local uint64_t ra[64 * TILES_MAX_K], rb[TILES_MAX_N * TILES_MAX_K];
  const int decode = q->a->ebits != 0 && q->a->bytes < 8;
  for (int i = 0; i < q->m * q->k; i++) {
    ra[i] = tiles_get(a, q->a, i);
    if (decode) x[i] = plain_decode(q->a, ra[i]);
  }
  for (int i = 0; i < q->n * q->k; i++) {
    rb[i] = tiles_get(b, q->b, i);
    if (decode) y[i] = plain_decode(q->b, rb[i]);
  }
  for (int m = 0; m < q->m; m++)
    for (int n = 0; n < q->n; n++) {
      const size_t at = (size_t)m * q->n + n;
      tiles_put(d, q->c, at,
                plain_dot(p, q->group, q->k, x + m * q->k, y + n * q->k, ra + m * q->k, rb + n * q->k, c ? tiles_get(c, q->c, at) : 0, q));
    }
}

#endif
