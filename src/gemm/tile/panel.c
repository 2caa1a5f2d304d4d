/* Decodes sixteen rows side by side into a panel. */
#include <math.h>
#include <string.h>

#include "core/room.h"
#include "gemm/tile/tile.h"

enum { L = MXG_LANES };

static int wants_floats(const mxg_plan *plan) {
  return plan->model == MX_GEMM_F32_SEQ || plan->model == MX_GEMM_F32_PAIRWISE || plan->model == MX_GEMM_GROUP64;
}

/* Whether the elements themselves have to say how many bits a block needs. */
static int looks(const mxg_plan *plan) {
  return !plan->bounded && (plan->model == MX_GEMM_EXACT || (plan->model == MX_GEMM_F32_BLOCK && !plan->dots_bounded));
}

size_t mxi_gemm_panel_bytes(const mxg_plan *plan) {
  return plan->K * L * (wants_floats(plan) ? sizeof(float) + sizeof(double) / L : sizeof(double)) +
         plan->kb * ((looks(plan) ? 2 : 1) * L * sizeof(double) + 2 * sizeof(int16_t));
}

mx_status mxi_gemm_panel_alloc(mxg_panel *p, const mxg_plan *plan) {
  *p = (mxg_panel){.K = plan->K, .block = plan->block, .kb = plan->kb, .from = plan->o.exec.workspace};
  size_t values, scales;
  if (__builtin_mul_overflow(plan->K + 1, L * sizeof(double), &values) || __builtin_mul_overflow(plan->kb + 1, L * sizeof(double), &scales))
    return MX_ERR_NOMEM;
  const size_t lines = wants_floats(plan) ? plan->K + 1 : L * (plan->K + 1);
  p->v = mxi_room_take(p->from, lines * sizeof *p->v);
  p->s = mxi_room_take(p->from, scales);
  p->f = wants_floats(plan) ? mxi_room_take(p->from, L * (plan->K + 1) * sizeof *p->f) : NULL;
  p->hi = mxi_room_take(p->from, (plan->kb + 1) * 2 * sizeof *p->hi);
  p->norm = looks(plan) ? mxi_room_take(p->from, scales) : NULL;
  if (p->v && p->s && p->hi && (p->f || !wants_floats(plan)) && (p->norm || !looks(plan))) {
    p->lo = p->hi + plan->kb + 1;
    return MX_OK;
  }
  mxi_gemm_panel_free(p);
  return MX_ERR_NOMEM;
}

void mxi_gemm_panel_free(mxg_panel *p) {
  mxi_room_give(p->from, p->v);
  mxi_room_give(p->from, p->s);
  mxi_room_give(p->from, p->f);
  mxi_room_give(p->from, p->hi);
  mxi_room_give(p->from, p->norm);
  *p = (mxg_panel){0};
}

/* A product is exact in binary64, as it has at most 48 bits, and a quotient of 24-bit numbers rounds to binary32 in two steps as it does in
 * one. */
static double value(const mxg_plan *plan, double element, double scale, int divides) {
  const double x = mxi_gemm_scaled(element, scale, divides);
  return wants_floats(plan) ? (double)(float)x : x;
}

void mxi_gemm_line_values(double *v, const double *s, const mxg_plan *plan, int divides) {
  if (!wants_floats(plan) && plan->model != MX_GEMM_F64) return;
  for (size_t k = 0; k < plan->K; k++) v[k] = value(plan, v[k], s[k / plan->block], divides);
}

/* Fills all rows of a panel at once in the common case: elements of up to 8 bits along K, eight bytes of a row at a time. */
static void fill_bytes(mxg_panel *p, const mxg_operand *o, size_t row0) {
  const double *value = o->elem_value;
  double *restrict v = p->v;
  size_t k = 0;
  for (; k + 8 <= p->K; k += 8)
    for (size_t r = 0; r < L; r++) {
      uint64_t eight;
      memcpy(&eight, o->data + (row0 + r) * o->line_bytes + k, sizeof eight);
#pragma GCC unroll 8
      for (size_t i = 0; i < 8; i++) v[(k + i) * L + r] = value[eight >> 8 * i & 255];
    }
  for (; k < p->K; k++)
    for (size_t r = 0; r < L; r++) v[k * L + r] = value[o->data[(row0 + r) * o->line_bytes + k]];
}

static void fill_nibbles(mxg_panel *p, const mxg_operand *o, size_t row0) {
  const double *value = o->elem_value;
  double *restrict v = p->v;
  size_t k = 0;
  for (; k + 16 <= p->K; k += 16)
    for (size_t r = 0; r < L; r++) {
      uint64_t sixteen;
      memcpy(&sixteen, o->data + (row0 + r) * o->line_bytes + k / 2, sizeof sixteen);
#pragma GCC unroll 16
      for (size_t i = 0; i < 16; i++) v[(k + i) * L + r] = value[sixteen >> 4 * i & 15];
    }
  for (; k < p->K; k++)
    for (size_t r = 0; r < L; r++) v[k * L + r] = value[o->data[(row0 + r) * o->line_bytes + k / 2] >> k % 2 * 4 & 15];
}

/* Binary32 numbers, whose NaNs become the one that mx_decode() makes of them all. */
static void fill_words(mxg_panel *p, const mxg_operand *o, size_t row0) {
  for (size_t k = 0; k < p->K; k++)
    for (size_t r = 0; r < L; r++) {
      float x;
      memcpy(&x, o->data + (row0 + r) * o->line_bytes + 4 * k, sizeof x);
      p->v[k * L + r] = x == x ? (double)x : NAN;
    }
}

static void fill_any(mxg_panel *p, const mxg_operand *o, size_t row0) {
  double piece[64];
  for (size_t r = 0; r < L; r++)
    for (size_t k = 0; k < p->K; k += 64) {
      const size_t n = p->K - k < 64 ? p->K - k : 64;
      if (r < p->rows)
        mxi_gemm_values(piece, o, row0 + r, k, n);
      else
        memset(piece, 0, sizeof piece);
      for (size_t i = 0; i < n; i++) p->v[(k + i) * L + r] = piece[i];
    }
}

/* Finds the norms of each block. NaN and Inf make a norm that decides nothing. */
static void find_norms(mxg_panel *p) {
  for (size_t b = 0; b < p->kb; b++) {
    double squares[L] = {0};
    const size_t end = (b + 1) * p->block < p->K ? (b + 1) * p->block : p->K;
    for (size_t k = b * p->block; k < end; k++)
      for (size_t r = 0; r < L; r++) squares[r] += p->v[k * L + r] * p->v[k * L + r];
    for (size_t r = 0; r < L; r++) p->norm[b * L + r] = sqrt(squares[r]);
  }
}

/* Finds the bounds of each block, for formats whose own bounds are too wide. NaN and Inf are left out, since binary64 treats them correctly. */
static void find_bounds(mxg_panel *p) {
  for (size_t b = 0; b < p->kb; b++) {
    int hi = -2000, lo = 2000;
    const size_t end = (b + 1) * p->block < p->K ? (b + 1) * p->block : p->K;
    for (size_t at = b * p->block * L; at < end * L; at++) {
      uint64_t x;
      memcpy(&x, &p->v[at], sizeof x);
      const int field = (int)(x >> 52 & 0x7FF), e = field - 1023; /* no format has numbers that are subnormal in binary64 */
      if (!field || field == 0x7FF) continue;
      if (e > hi) hi = e;
      const int last = e - 52 + __builtin_ctzll(x | UINT64_C(1) << 52);
      if (last < lo) lo = last;
    }
    p->hi[b] = (int16_t)hi;
    p->lo[b] = (int16_t)lo;
  }
}

/* For `exact`: finds whether all numbers are finite, and the range of the scales. Blocks of zeros and rows beyond the last do not count. */
static void find_range(mxg_panel *p) {
  p->finite = 1;
  p->scale_hi = -2000;
  p->scale_lo = 2000;
  for (size_t b = 0; b < p->kb; b++) {
    const size_t end = (b + 1) * p->block < p->K ? (b + 1) * p->block : p->K;
    double size[L] = {0};
    for (size_t k = b * p->block; k < end; k++)
      for (size_t r = 0; r < L; r++) size[r] += fabs(p->v[k * L + r]);
    for (size_t r = 0; r < p->rows; r++) {
      const double s = p->s[b * L + r];
      if (!isfinite(s) || !isfinite(size[r])) p->finite = 0;
      if (s == 0 || size[r] == 0 || !isfinite(s)) continue;
      int e;
      const uint64_t m = (uint64_t)ldexp(fabs(frexp(s, &e)), 53);
      const int low = e - 53 + __builtin_ctzll(m);
      p->scale_hi = e - 1 > p->scale_hi ? e - 1 : p->scale_hi;
      p->scale_lo = low < p->scale_lo ? low : p->scale_lo;
    }
  }
}

/* The elements of a long block seldom lie close enough together, and looking at them takes as long as a part of the product. */
static int looks_at_blocks(const mxg_plan *plan) {
  enum { LONG = 64 };
  return plan->model == MX_GEMM_EXACT || plan->block <= LONG || plan->K <= LONG;
}

static int fits(const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b, size_t block, int scale_bits) {
  if (!looks_at_blocks(plan)) return 0;
  if (a->hi[block] < a->lo[block] || b->hi[block] < b->lo[block]) return 1; /* nothing but zeros on one side */
  const int terms = 64 - __builtin_clzll(plan->block < plan->K ? plan->block : plan->K);
  return a->hi[block] + b->hi[block] + 2 + terms - a->lo[block] - b->lo[block] + scale_bits <= 53;
}

int mxi_gemm_block_fits(const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b, size_t block) {
  return plan->bounded || (looks(plan) && fits(plan, a, b, block, plan->a.scale_bits + plan->b.scale_bits));
}

int mxi_gemm_dots_fit(const mxg_plan *plan, const mxg_panel *a, const mxg_panel *b, size_t block) {
  return plan->dots_bounded || (looks(plan) && fits(plan, a, b, block, 0));
}

/* Fills in binary32 values, one row at a time, with v as working memory. */
static void fill_floats(mxg_panel *p, const mxg_operand *o, const mxg_plan *plan, size_t row0) {
  for (size_t r = 0; r < L; r++) {
    if (r < p->rows)
      mxi_gemm_values(p->v, o, row0 + r, 0, p->K);
    else
      memset(p->v, 0, p->K * sizeof *p->v);
    for (size_t k = 0; k < p->K; k++) p->f[k * L + r] = (float)value(plan, p->v[k], p->s[k / p->block * L + r], o->divides);
  }
}

void mxi_gemm_panel_fill(mxg_panel *p, const mxg_operand *o, const mxg_plan *plan, size_t row0) {
  p->rows = o->rows - row0 < L ? o->rows - row0 : L;
  for (size_t r = 0; r < L; r++)
    for (size_t b = 0; b < p->kb; b++) p->s[b * L + r] = r < p->rows ? mxi_gemm_scale(o, row0 + r, b) : 1;
  if (p->f) {
    fill_floats(p, o, plan, row0);
    return;
  }
  const int whole = p->rows == L && !o->k_strided && !o->micro;
  if (whole && o->pack == MXG_8)
    fill_bytes(p, o, row0);
  else if (whole && o->pack == MXG_LOW_FIRST)
    fill_nibbles(p, o, row0);
  else if (whole && o->pack == MXG_32 && o->elem->bits == 32)
    fill_words(p, o, row0);
  else
    fill_any(p, o, row0);
  if (plan->model == MX_GEMM_F64) {
    for (size_t k = 0; k < p->K; k++)
      for (size_t r = 0; r < L; r++) p->v[k * L + r] = value(plan, p->v[k * L + r], p->s[k / p->block * L + r], o->divides);
  } else if (looks(plan)) {
    find_norms(p);
    if (looks_at_blocks(plan)) find_bounds(p);
  }
  if (plan->model == MX_GEMM_EXACT) find_range(p);
}
