/* Computes the three stages of stages.h over the lanes of vectors_*.h: W lanes, vf of binary32, vi of int32, vm of truth values. The
 * including file gives the name of the table in TABLE, and defines HOT(out, f, p) if it has its own kernel for e2m1 by a table. */
#include <string.h>

#include "mxgold/random.h"

#define INLINE static inline __attribute__((always_inline))
enum { STEP = 16 / W }; /* vectors in sixteen elements */

INLINE vi magnitude_of(vf x) { return vi_and(vf_bits(x), vi_set(0x7FFFFFFF)); }

/* ---- 1: largest magnitudes ---- */

static int32_t amax(const float *x, size_t n) {
  vi m[4] = {vi_set(0), vi_set(0), vi_set(0), vi_set(0)};
  size_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W)
    for (size_t j = 0; j < 4; j++) m[j] = vi_max(m[j], magnitude_of(vf_load(x + i + j * W)));
  for (; i + W <= n; i += W) m[0] = vi_max(m[0], magnitude_of(vf_load(x + i)));
  float rest[W] = {0};
  if (i < n) {
    memcpy(rest, x + i, (n - i) * sizeof *rest);
    m[0] = vi_max(m[0], magnitude_of(vf_load(rest)));
  }
  return vi_hmax(vi_max(vi_max(m[0], m[1]), vi_max(m[2], m[3])));
}

INLINE vi block_max(const float *x, size_t block) {
  vi m = magnitude_of(vf_load(x));
#pragma GCC unroll 8
  for (size_t j = W; j < block; j += W) m = vi_max(m, magnitude_of(vf_load(x + j)));
  return m;
}

INLINE void block_amax_of(mx_piece *p, size_t block) {
  for (size_t b = 0; b < p->n_blocks; b += W) {
    vi m[W];
    const size_t here = p->n_blocks - b; /* lanes past the end hold the maximum of some block, which is not used */
    if (here >= W) {
#pragma GCC unroll 16
      for (size_t i = 0; i < W; i++) m[i] = block_max(p->x + (b + i) * block, block);
    } else {
      m[0] = block_max(p->x + b * block, block);
      for (size_t i = 1; i < W; i++) m[i] = i < here ? block_max(p->x + (b + i) * block, block) : m[0];
    }
    vi_store(p->amax + b, vi_reduce(m));
  }
}

static void block_amax(mx_piece *p) {
#ifdef BLOCK_AMAX
  if (BLOCK_AMAX(p)) return;
#endif
  if (p->block == 32)
    block_amax_of(p, 32);
  else if (p->block == 16)
    block_amax_of(p, 16);
  else
    block_amax_of(p, p->block);
}

INLINE void columns_max(int32_t *out, const float *x, size_t ld, size_t rows, const int vectors) {
  vi m[4];
  for (int k = 0; k < vectors; k++) m[k] = vi_set(0);
  for (size_t r = 0; r < rows; r++)
    for (int k = 0; k < vectors; k++) m[k] = vi_max(m[k], magnitude_of(vf_load(x + r * ld + (size_t)k * W)));
  for (int k = 0; k < vectors; k++) vi_store(out + k * W, m[k]);
}

static void column_amax(int32_t *out, const float *x, size_t ld, size_t rows, size_t n) {
  size_t c = 0;
  for (; c + 4 * W <= n; c += 4 * W) columns_max(out + c, x + c, ld, rows, 4);
  for (; c + W <= n; c += W) columns_max(out + c, x + c, ld, rows, 1);
  for (; c < n; c++) {
    int32_t most = 0, bits;
    for (size_t r = 0; r < rows; r++) {
      memcpy(&bits, x + r * ld + c, sizeof bits);
      bits &= 0x7FFFFFFF;
      most = bits > most ? bits : most;
    }
    out[c] = most;
  }
}

#include "kernels/rounding.inc.h"

/* ---- 2: scales ---- */

#include "kernels/chain.inc.h"

/* Numbers whose exact log2 may round to a whole number are left to the scalar code: at most 44 floats below a power of two, and 22 above it. */
enum { LOG2_MARGIN = 128 };

/* The code of a power of two, from bits whose exponent is rounded. */
INLINE vi exponent_code(vi bits, int round, int log2f, vm *odd) {
  const vi man = vi_and(bits, vi_set(0x7FFFFF)), one = vi_set(1), zero = vi_set(0);
  const vi e = vi_srl(bits, 23);
  switch (round) {
  case MX_SCALE_ROUND_UP:
    if (log2f) *odd = vm_or(*odd, vm_and(vi_gt(man, zero), vi_gt(vi_set(LOG2_MARGIN), man)));
    return vi_add(e, vi_blend(vi_eq(man, zero), zero, one));
  case MX_SCALE_ROUND_DOWN:
    if (log2f) *odd = vm_or(*odd, vi_gt(man, vi_set(0x7FFFFF - LOG2_MARGIN)));
    return e;
  case MX_SCALE_ROUND_RNA:
    return vi_add(e, vi_blend(vi_gt(man, vi_set(0x3FFFFF)), one, zero));
  default:
    return vi_add(e, vi_blend(vi_gt(vi_add(man, vi_and(e, one)), vi_set(0x400000)), one, zero));
  }
}

/* ggml: half up on the bit below the mantissa, 448 from 248 on, and subnormals are floor(512 v + 1/2), at most 7. */
INLINE vi ggml_code(vf v) {
  const vi normal = vi_sub(vi_srl(vi_add(vf_bits(v), vi_set(0x80000)), 20), vi_set(120 << 3));
  const vi small = vi_min(vf_trunc(vf_add(vf_mul(v, vf_set(512)), vf_set(0.5f))), vi_set(7));
  const vi capped = vi_blend(vi_gt(normal, vi_set(0x77)), vi_set(0x7E), normal);
  return vi_blend(vf_lt(v, vf_set(0x1p-6f)), small, capped);
}

INLINE vf decoded_scale(vi code, const mx_stages *f) {
  if (f->scale_is_exp) return vi_float(vi_sll(code, 23)); /* ordinary codes are normal numbers */
  const vf normal = vi_float(vi_sll(vi_add(code, vi_set(f->scale_rebias)), 23 - f->scale.man_bits));
  return vf_blend(vi_gt(vi_set(1 << f->scale.man_bits), code), vf_mul(vi_convert(code), vf_set(f->scale_sub)), normal);
}

INLINE vf led_value(const mx_stages *f, vf a, const int lead) {
  switch (lead) {
  case MX_LEAD_DIV32:
    return vf_div(a, vf_set(f->f));
  case MX_LEAD_MUL32:
    return vf_mul(a, vf_set(f->rcp_f));
  default:
    return vf_quotient(a, f->times, f->over, lead == MX_LEAD_EXACT_INVERSE, 0);
  }
}

/* The code of a scale whose value before rounding is v. */
INLINE vi rounded_scale(const mx_stages *f, vf v, vm *odd) {
  *odd = vm_or(*odd, vm_or(vf_lt(v, vf_set(f->v_lo)), vf_lt(vf_set(f->v_hi), v)));
  *odd = vm_or(*odd, vi_gt(vf_bits(v), vi_set(0x7F000000))); /* NaN */
  if (f->scale_is_exp) return exponent_code(vf_bits(v), f->round, f->log2f, odd);
  if (f->round == MX_SCALE_ROUND_GGML) return ggml_code(v);
  if (f->scale.man_bits == 23) return vf_bits(v); /* the scale is a binary32 itself */
  const vi a = vi_min(magnitude_of(v), vi_set(f->scale.big));
  const vi code = f->scale.way == MX_WAY_NEAREST ? nearest(a, &f->scale) : biased(a, vi_set(0), &f->scale);
  return vi_min(code, vi_set(f->scale.max_code));
}

INLINE vi scale_code(const mx_stages *f, vi bits, vm *odd, const int lead) {
  const int exponents = lead == MX_LEAD_FLOOR ? MX_SCALE_ROUND_DOWN : MX_SCALE_ROUND_UP;
  if (lead == MX_LEAD_EVEN) return vi_sub(vi_srl(vi_add(bits, vi_set(f->even_add)), 23), vi_set(f->emax));
  if (lead == MX_LEAD_FLOOR || lead == MX_LEAD_CEIL) return vi_sub(exponent_code(bits, exponents, f->log2f, odd), vi_set(f->emax));
  return rounded_scale(f, led_value(f, vi_float(bits), lead), odd);
}

INLINE vm not_ordinary(vf v) {
  const vi b = vf_bits(v);                                                  /* signed, so that negative numbers count as small */
  return vm_or(vi_gt(vi_set(0x03800000), b), vi_gt(b, vi_set(0x7B800000))); /* 2^-120, 2^120 */
}

/* For kernels in which stage 2 has not checked it yet: which blocks are not ordinary because of their largest magnitude, or of their scale
 * ... */
INLINE vm odd_amax(const mx_stages *f, vi bits) { return vm_or(vi_gt(vi_set(f->amax_lo), bits), vi_gt(bits, vi_set(f->amax_hi))); }
INLINE vm odd_code(const mx_stages *f, vi code) { return vm_or(vi_gt(vi_set(f->code_lo), code), vi_gt(code, vi_set(f->code_hi))); }

/* ... or because of their largest scaled value. */
INLINE vm odd_value(const mx_stages *f, vf amax_value, vf f0, vf f1) {
  vf y = f->form == MX_FORM_MUL ? vf_mul(amax_value, f0) : vf_div(amax_value, f0);
  if (f->form == MX_FORM_DIV_MUL) y = vf_mul(y, f1);
  if (f->form == MX_FORM_EXACT) /* approximately; the limit has room for that */
    y = vf_mul(f->plan->spec.scale_form == MX_SCALE_FORM_ENCODE ? vf_mul(amax_value, f0) : y, vf_set((float)(f->exact_times / f->exact_over)));
  if (f->pre != 0) y = vf_mul(y, vf_set(f->pre));
  return vi_gt(vf_bits(y), vf_bits(vf_set(f->y_hi)));
}

INLINE vf scale_value(const mx_stages *f, vi code) { return decoded_scale(f->wide ? code : vi_and(code, vi_set(0xFF)), f); }

/* Stores the codes of sixteen blocks, and whether they are odd. */
INLINE void store_codes(const mx_stages *f, mx_piece *p, size_t b, vi codes[STEP], const vi odds[STEP]) {
  for (size_t k = 0; k < STEP; k++) {
    if (f->wide) vi_store(p->wide + b + k * W, codes[k]);
    codes[k] = vi_and(codes[k], vi_set(0xFF));
  }
  vi_store16(p->code + b, codes);
  vi_store16(p->odd + b, odds);
}

INLINE void scales_by(const mx_stages *f, mx_piece *p, const int lead, const int factor) {
  for (size_t b = 0; b < p->n_blocks; b += 16) {
    vi codes[STEP], odds[STEP];
    for (size_t k = 0; k < STEP; k++) {
      const size_t at = b + k * W;
      const vi bits = vi_load(p->amax + at);
      vm odd = odd_amax(f, bits);
      codes[k] = scale_code(f, bits, &odd, lead);
      const vf sf = scale_value(f, codes[k]);
      vf f0 = sf;
      if (factor == MX_FACTOR_POW2)
        f0 = vi_float(vi_sll(vi_sub(vi_set(254), codes[k]), 23));
      else if (factor == MX_FACTOR_RCP32)
        f0 = vf_div(vf_set(1), sf);
      odd = vm_or(odd, vm_or(odd_code(f, codes[k]), odd_value(f, vi_float(bits), f0, vf_set(1))));
      vf_store(p->f0 + at, f0);
      if (f->select) vf_store(p->sf + at, sf);
      odds[k] = vi_blend(odd, vi_set(1), vi_set(0));
    }
    store_codes(f, p, b, codes, odds);
  }
}

/* By a chain: first the scales of all blocks, then their factors, and then which blocks are ordinary. */
static void scales_by_chain(const mx_stages *f, mx_piece *p) {
  const mx_chain_program *c = f->plan->chain;
  const float *vars = f->plan->vars;
  const size_t n = (p->n_blocks + 15) / 16 * 16;
  const operand amax_value = {p->amax, 1}, sf = {p->sf, 1};
  chain_room rooms[2];
  int32_t code[MX_PIECE_BLOCKS], odd_so_far[MX_PIECE_BLOCKS];
  const operand v = chain_values(rooms, &f->scale_of, vars, amax_value, amax_value, n);
  for (size_t b = 0; b < n; b += W) {
    vm odd = odd_amax(f, vi_load(p->amax + b));
    const vf value = operand_at(v, b);
    const vi found = rounded_scale(f, f->map_to_4 ? vf_mul(value, vf_set(1.5f)) : value, &odd);
    vi_store(code + b, found);
    vf_store(p->sf + b, scale_value(f, found));
    vi_store(odd_so_far + b, vi_blend(vm_or(odd, odd_code(f, found)), vi_set(1), vi_set(0)));
  }
  const int again = f->again ? c->again.n : 0;
  for (int i = 0; i < again; i++) {
    const operand g = chain_values(rooms, &f->again_of[i], vars, amax_value, sf, n);
    for (size_t b = 0; b < n; b += W) vf_store(p->again[i] + b, operand_at(g, b));
  }
  const operand first = chain_values(&rooms[0], &f->factor_of[0], vars, amax_value, sf, n),
                second = f->form == MX_FORM_DIV_MUL ? chain_values(&rooms[1], &f->factor_of[1], vars, amax_value, sf, n) : first;
  for (size_t b = 0; b < n; b += 16) {
    vi codes[STEP], odds[STEP];
    for (size_t k = 0; k < STEP; k++) {
      const size_t at = b + k * W;
      const vf f0 = operand_at(first, at), f1 = operand_at(second, at);
      vm odd = vm_or(vm_or(not_ordinary(f0), not_ordinary(f1)), odd_value(f, vi_float(vi_load(p->amax + at)), f0, f1));
      for (int i = 0; i < again; i++) { /* so that what is encoded again stays finite */
        const vi g = vf_bits(vf_load(p->again[i] + at));
        odd = vm_or(odd, vm_or(vi_gt(vf_bits(vf_set(0x1p-60f)), g), vi_gt(g, vf_bits(vf_set(0x1p60f)))));
      }
      vf_store(p->f0 + at, f0);
      vf_store(p->f1 + at, f1);
      codes[k] = vi_load(code + at);
      odds[k] = vi_blend(odd, vi_set(1), vi_load(odd_so_far + at));
    }
    store_codes(f, p, b, codes, odds);
  }
}

static void scales(const mx_stages *f, mx_piece *p) {
  if (f->lead == MX_LEAD_FLOOR && f->factor == MX_FACTOR_POW2)
    scales_by(f, p, MX_LEAD_FLOOR, MX_FACTOR_POW2);
  else if (f->lead == MX_LEAD_EVEN && f->factor == MX_FACTOR_POW2)
    scales_by(f, p, MX_LEAD_EVEN, MX_FACTOR_POW2);
  else if (f->lead == MX_LEAD_EXACT)
    scales_by(f, p, MX_LEAD_EXACT, f->factor);
  else if (f->lead == MX_LEAD_CHAIN)
    scales_by_chain(f, p);
  else
    scales_by(f, p, f->lead, f->factor);
}

/* ---- 3: elements ---- */

/* The factors of elements [i, i + W). */
INLINE vf factor_of(const mx_piece *p, const float *f, size_t i, const int by_element) {
  return by_element ? vf_load(f + i) : vf_set(f[i / 16 >> p->shift]);
}

/* Prefetches what the next piece of the row will read, since stages 2 and 3 leave memory idle. This is only a hint, so addresses past the
 * end of an array do no harm. */
INLINE void fetch_next(const mx_piece *p, size_t i, size_t n) {
  for (size_t k = 0; k < n; k += 16) __builtin_prefetch(p->next + i + k);
}

INLINE vf scaled(vf x, vf f0, vf f1, int form) {
  if (form == MX_FORM_MUL) return vf_mul(x, f0);
  const vf q = vf_div(x, f0);
  return form == MX_FORM_DIV ? q : vf_mul(q, f1);
}

/* A nonzero number must not become zero, however small it is. */
INLINE vf unflushed(vf y, vf x) {
  const vi zero = vi_set(0), least = vi_or(vi_and(vf_bits(x), vi_set(INT32_MIN)), vi_set(1));
  const vm lost = vm_and(vi_eq(magnitude_of(y), zero), vi_gt(magnitude_of(x), zero));
  return vi_float(vi_blend(lost, least, vf_bits(y)));
}

/* Computes the scaled values of a piece, for forms and roundings that have no fused code. */
INLINE void scale_by(float *y, const mx_stages *f, const mx_piece *p, const int by_element, const int nearest) {
  const int encode = f->plan->spec.scale_form == MX_SCALE_FORM_ENCODE;
  for (size_t i = 0; i < p->n; i += W) {
    const vf f0 = factor_of(p, p->f0, i, by_element);
    vf v = vf_load(p->x + i), r;
    if (f->pre != 0) v = vf_mul(v, vf_set(f->pre));
    if (f->form == MX_FORM_EXACT && !by_element) {
      const double used = (double)p->f0[i / 16 >> p->shift];
      r = vf_quotient(v, f->exact_times * (encode ? used : 1), f->exact_over * (encode ? 1 : used), 0, nearest);
    } else if (f->form == MX_FORM_EXACT)
      r = vf_quotient_by(v, f->exact_times, f->exact_over, f0, encode, nearest);
    else
      r = scaled(v, f0, f->form == MX_FORM_DIV_MUL ? factor_of(p, p->f1, i, by_element) : f0, f->form);
    if (f->elem.sticky) r = unflushed(r, v);
    if (f->dtype != MX_INPUT_DTYPE_FLOAT32) r = to_dtype(r, f->dtype);
    vf_store(y + i, r);
  }
}

static void scale_values(float *y, const mx_stages *f, const mx_piece *p) {
  if (p->by_element && f->nearest)
    scale_by(y, f, p, 1, 1);
  else if (p->by_element)
    scale_by(y, f, p, 1, 0);
  else if (f->nearest)
    scale_by(y, f, p, 0, 1);
  else
    scale_by(y, f, p, 0, 0);
}

#include "kernels/philox.inc.h"

/* The random integers of n elements from `index` on, which are the top bits of each word. */
static void words_from(uint32_t *out, const mx_stages *f, uint64_t index, size_t n) {
  const mx_spec *s = &f->plan->spec;
  if (s->sr_source == MX_SR_SOURCE_GIVEN) {
    const size_t here = index >= f->n_values ? 0 : f->n_values - index < n ? (size_t)(f->n_values - index) : n;
    for (size_t i = 0; i < here; i++) out[i] = s->given_bits[index + i] << (32 - f->elem.sr_bits);
    for (size_t i = here; i < n; i++) out[i] = 0; /* for a short last block */
    return;
  }
  const int pairs = s->sr_source == MX_SR_SOURCE_AMD_LFSR; /* one draw for two elements */
  const uint64_t from = pairs ? index / 2 : index, first = from / 4 * 4;
  if (!pairs && from == first) {
    random_words(out, s->seed, first, n);
    return;
  }
  uint32_t drawn[MX_PIECE_ELEMENTS + 8];
  const size_t skip = (size_t)(from - first), draws = pairs ? (size_t)((index + n + 1) / 2 - from) : n;
  random_words(drawn, s->seed, first, (draws + skip + 3) / 4 * 4);
  if (!pairs) memcpy(out, drawn + skip, n * sizeof *out);
  for (size_t i = 0, odd = index % 2; pairs && i < n; i++) {
    const uint32_t seed = drawn[skip + (i + odd) / 2];
    out[i] = (i + odd) % 2 ? mx_random_lfsr(seed) : seed;
  }
}

/* Those of a piece. */
static void words_of(uint32_t *out, const mx_stages *f, const mx_piece *p) {
  uint64_t index = p->index;
  for (size_t i = 0; i < p->n; i += p->run, index += p->apart) words_from(out + i, f, index, p->run);
}

/* Replaces the code if y is Inf, or beyond the type that it is rounded to, or NaN. */
INLINE vi ended(vi code, vf y, const mx_stages *f) {
  const vi bits = vf_bits(y), a = vi_and(bits, vi_set(0x7FFFFFFF));
  const vi inf = vi_blend(vi_gt(vi_set(0), bits), vi_set(f->inf_code[1]), vi_set(f->inf_code[0]));
  code = vi_blend(vi_gt(a, vi_set(f->ends_from - 1)), inf, code);
  return vi_blend(vi_gt(a, vi_set(0x7F800000)), vi_set(f->nan_code), code);
}

static void end_values(uint8_t *out, const mx_stages *f, const float *y, const uint32_t *words, size_t n) {
  for (size_t i = 0; i < n; i += 16) {
    vi c[STEP];
    for (size_t k = 0; k < STEP; k++) {
      const vf v = vf_load(y + i + k * W);
      c[k] = ended(code_by(v, words ? vi_load(words + i + k * W) : vi_set(0), &f->elem), v, f);
    }
    vi_store16(out + i, c);
  }
}

/* Encodes values that are scaled already, one code to a byte. */
INLINE void encode_values(uint8_t *out, const float *y, const uint32_t *words, size_t n, const mx_stage_encode *how, int way) {
  const mx_stage_encode e = *how; /* a copy, so that the compiler knows that stores to out do not change it */
  for (size_t i = 0; i < n; i += 16) {
    vi c[STEP];
    for (size_t k = 0; k < STEP; k++)
      c[k] = code_of(vf_load(y + i + k * W), way == MX_WAY_SR ? vi_load(words + i + k * W) : vi_set(0), &e, way);
    vi_store16(out + i, c);
  }
}

/* What rounds at random with one factor an element, for each form and each way of treating -0. */
#define BY_FORM_AND_ZERO(call, f, ...)                                                                                                         \
  do {                                                                                                                                         \
    if ((f)->form == MX_FORM_MUL && (f)->stochastic == MX_PLAIN_KEEP)                                                                          \
      call(__VA_ARGS__, MX_FORM_MUL, 0);                                                                                                       \
    else if ((f)->form == MX_FORM_MUL)                                                                                                         \
      call(__VA_ARGS__, MX_FORM_MUL, 1);                                                                                                       \
    else if ((f)->stochastic == MX_PLAIN_KEEP)                                                                                                 \
      call(__VA_ARGS__, MX_FORM_DIV, 0);                                                                                                       \
    else                                                                                                                                       \
      call(__VA_ARGS__, MX_FORM_DIV, 1);                                                                                                       \
  } while (0)

#ifndef STOCHASTIC_BYTES
/* Simple stochastic rounding, saturating and signed: scales and rounds in one step. */
INLINE void encode_at_random(uint8_t *out, const uint32_t *words, const mx_stages *f, const mx_piece *p, const int form, const int drop) {
  const mx_stage_encode e = f->elem;
  for (size_t i = 0; i < p->n; i += 16) {
    vi c[STEP];
    for (size_t k = 0; k < STEP; k++) {
      const size_t at = i + k * W;
      const vf y = scaled(vf_load(p->x + at), factor_of(p, p->f0, at, 0), vf_set(1), form);
      const vi bits = vf_bits(drop ? without_negative_zero(y) : y), a = vi_min(vi_and(bits, vi_set(0x7FFFFFFF)), vi_set(e.big));
      const vi m = vi_min(stochastic_simply(a, vi_load(words + at), &e), vi_set(e.max_code));
      c[k] = vi_or(m, vi_srl(vi_and(bits, vi_set(INT32_MIN)), e.sign_shift));
    }
    vi_store16(out + i, c);
  }
}

#endif

/* Scales and encodes in one step. */
INLINE void encode_scaled(uint8_t *out, const mx_stages *f, const mx_piece *p, const int form, const int plain, const int by_element) {
  const mx_stage_encode e = f->elem;
  const size_t n = p->n;
  size_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    vi c[4];
    fetch_next(p, i, 4 * W);
    for (size_t k = 0; k < 4; k++) {
      const size_t at = i + k * W;
      const vf f0 = factor_of(p, p->f0, at, by_element), f1 = form == MX_FORM_DIV_MUL ? factor_of(p, p->f1, at, by_element) : f0;
      const vf y = scaled(vf_load(p->x + at), f0, f1, form);
      c[k] = plain ? plain_code(y, &e, plain) : code_of(y, vi_set(0), &e, MX_WAY_NEAREST);
    }
    vi_store_bytes(out + i, c);
  }
  for (; i < n; i += 16) {
    vi c[STEP];
    for (size_t k = 0; k < STEP; k++) {
      const size_t at = i + k * W;
      const vf f0 = factor_of(p, p->f0, at, by_element), f1 = form == MX_FORM_DIV_MUL ? factor_of(p, p->f1, at, by_element) : f0;
      c[k] = code_of(scaled(vf_load(p->x + at), f0, f1, form), vi_set(0), &e, MX_WAY_NEAREST);
    }
    vi_store16(out + i, c);
  }
}

INLINE void encode_plainly(uint8_t *out, const mx_stages *f, const mx_piece *p, const int form, const int by_element) {
  if (f->elem.plain == MX_PLAIN_KEEP)
    encode_scaled(out, f, p, form, MX_PLAIN_KEEP, by_element);
  else if (f->elem.plain == MX_PLAIN_DROP)
    encode_scaled(out, f, p, form, MX_PLAIN_DROP, by_element);
  else
    encode_scaled(out, f, p, form, MX_PLAIN_NO, by_element);
}

static void encode_fused(uint8_t *out, const mx_stages *f, const mx_piece *p) {
#ifdef PLAIN_BYTES
  if (PLAIN_BYTES(out, f, p)) return;
#endif
  if (p->by_element && f->form == MX_FORM_MUL)
    encode_plainly(out, f, p, MX_FORM_MUL, 1);
  else if (p->by_element)
    encode_scaled(out, f, p, f->form, MX_PLAIN_NO, 1);
  else if (f->form == MX_FORM_MUL)
    encode_plainly(out, f, p, MX_FORM_MUL, 0);
  else if (f->form == MX_FORM_DIV)
    encode_plainly(out, f, p, MX_FORM_DIV, 0);
  else
    encode_plainly(out, f, p, MX_FORM_DIV_MUL, 0);
}

/* elem.round=scan_x and scan_y by distances: from x under the block's scale, or from y[] under scale 1. */
INLINE void scan_each(uint8_t *out, const mx_stages *f, const mx_piece *p, const float *y, size_t n, const int far) {
  mx_stage_encode e = f->elem;
  e.round = MX_ROUND_RTZ;
  for (size_t i = 0; i < n; i += 16) {
    vi c[STEP];
    for (size_t k = 0; k < STEP; k++) {
      const size_t at = i + k * W;
      vf u = y ? vf_set(1) : factor_of(p, p->f0, at, p->by_element);
      if (!y && f->factor == MX_FACTOR_POW2) u = vf_div(vf_set(1), u);
      c[k] = scanned_code(vf_load((y ? y : p->x) + at), u, &e, far);
    }
    vi_store16(out + i, c);
  }
}

static void scan_codes(uint8_t *out, const mx_stages *f, const mx_piece *p, const float *y, size_t n) {
  if (f->far)
    scan_each(out, f, p, y, n, 1);
  else
    scan_each(out, f, p, y, n, 0);
}

INLINE vf again_of(vf q, const mx_stages *f, const mx_piece *p, size_t b) {
  const mx_chain_product *a = &f->plan->chain->again;
  for (int i = 0; i < a->n; i++) q = a->op[i] == '*' ? vf_mul(q, vf_set(p->again[i][b])) : vf_div(q, vf_set(p->again[i][b]));
  return q;
}

/* Encodes codes once more from their values. If codes have four bits and nothing is random, there are only sixteen, so each block uses a
 * table. */
static void encode_again(uint8_t *codes, const mx_stages *f, const mx_piece *p, const uint32_t *words) {
  const int by_table = f->plan->elem->bits == 4 && !words;
  vi found[STEP];
  for (size_t b = 0; b < p->n_blocks; b++) {
    uint8_t *at = codes + b * p->block;
    if (by_table) {
      uint8_t table[16];
      for (size_t k = 0; k < STEP; k++) found[k] = code_by(again_of(vf_load(f->values + k * W), f, p, b), vi_set(0), &f->elem);
      vi_store16(table, found);
      for (size_t j = 0; j < p->block; j += 16) bytes_lookup(at + j, table);
      continue;
    }
    for (size_t j = 0; j < p->block; j += 16) {
      float q[16];
      for (size_t k = 0; k < 16; k++) q[k] = f->values[at[j + k]];
      for (size_t k = 0; k < STEP; k++) vf_store(q + k * W, again_of(vf_load(q + k * W), f, p, b));
      if (f->scan == MX_SCAN_Y) {
        scan_codes(at + j, f, p, q, 16);
        continue;
      }
      for (size_t k = 0; k < STEP; k++)
        found[k] = code_by(vf_load(q + k * W), words ? vi_load(words + b * p->block + j + k * W) : vi_set(0), &f->elem);
      vi_store16(at + j, found);
    }
  }
}

/* The sums of n numbers minus `mean` and of their squares, in any order; the order affects QuEST's floor of a logarithm only next to a power
 * of two. */
static void moments(double out[2], const float *x, size_t n, double mean) {
  typedef double eight __attribute__((vector_size(64)));
  typedef float eight_floats __attribute__((vector_size(32)));
  eight sum = {0}, squares = {0};
  out[0] = out[1] = 0;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    eight_floats v;
    memcpy(&v, x + i, sizeof v);
    const eight d = __builtin_convertvector(v, eight) - mean;
    sum += d;
    squares += d * d;
  }
  for (int k = 0; k < 8; k++) out[0] += sum[k], out[1] += squares[k];
  for (; i < n; i++) out[0] += (double)x[i] - mean, out[1] += ((double)x[i] - mean) * ((double)x[i] - mean);
}

static void bytes_of(uint8_t *out, const mx_stages *f, const mx_piece *p) {
  float y[MX_PIECE_ELEMENTS];
  uint32_t words[MX_PIECE_ELEMENTS];
  const int at_random = f->elem.way == MX_WAY_SR;
  const size_t n = p->n;
  if (at_random) words_of(words, f, p);
  if (f->stochastic && !p->by_element) {
#ifdef STOCHASTIC_BYTES
    STOCHASTIC_BYTES(out, words, f, p);
#else
    BY_FORM_AND_ZERO(encode_at_random, f, out, words, f, p);
#endif
    return;
  }
  const int fused =
      f->elem.way == MX_WAY_NEAREST && f->dtype == MX_INPUT_DTYPE_FLOAT32 && !f->elem.sticky && f->pre == 0 && !f->scan && !f->ends;
  if (fused && f->form != MX_FORM_EXACT)
    encode_fused(out, f, p);
  else if (f->scan == MX_SCAN_X)
    scan_codes(out, f, p, NULL, n);
  else {
    scale_values(y, f, p);
    if (f->ends)
      end_values(out, f, y, at_random ? words : NULL, n);
    else if (f->scan)
      scan_codes(out, f, p, y, n);
    else if (f->elem.way == MX_WAY_NEAREST)
      encode_values(out, y, NULL, n, &f->elem, MX_WAY_NEAREST);
    else if (f->elem.way == MX_WAY_BIASED)
      encode_values(out, y, NULL, n, &f->elem, MX_WAY_BIASED);
    else
      encode_values(out, y, words, n, &f->elem, MX_WAY_SR);
  }
  if (f->again) encode_again(out, f, p, at_random ? words : NULL);
}

#include "kernels/foursix.inc.h"
#include "kernels/hif4.inc.h"

static void pack4(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block) {
  if (nibble != MX_NIBBLE_HALF_BLOCK) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32) nibbles32(out + i / 2, codes + i, nibble == MX_NIBBLE_HIGH_FIRST);
    for (; i < n; i += 2) out[i / 2] = (uint8_t)(nibble == MX_NIBBLE_HIGH_FIRST ? codes[i] << 4 | codes[i + 1] : codes[i] | codes[i + 1] << 4);
    return;
  }
  for (size_t b = 0; b < n; b += block)
    for (size_t j = 0; j < block / 2; j += 8) {
      uint64_t low, high;
      memcpy(&low, codes + b + j, 8);
      memcpy(&high, codes + b + block / 2 + j, 8);
      low |= high << 4;
      memcpy(out + b / 2 + j, &low, 8);
    }
}

static void codes(uint8_t *out, const mx_stages *f, const mx_piece *p) {
  uint8_t bytes[MX_PIECE_ELEMENTS];
  if (f->nibble < 0) {
    bytes_of(out, f, p);
    return;
  }
#ifdef HOT
  if (f->hot && !p->by_element) {
    HOT(out, f, p);
    return;
  }
#endif
  bytes_of(bytes, f, p);
  pack4(out, bytes, p->n, f->nibble, p->block);
}

#ifndef COLUMNS
#define COLUMNS NULL, NULL
#endif
const mx_stage_kernels TABLE = {NAME, amax, block_amax, column_amax, scales, codes, foursix, hif4, moments, pack4, random_words, COLUMNS};
