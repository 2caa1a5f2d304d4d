/* Compiles the three stages of quantising for AVX-512, with kernels that need its byte permutations. */
#include "kernels/stages.h"
#include "kernels/vectors_avx512.h"
#include "kernels/plain_avx512.h"

#define NAME "avx512"
#define TABLE mxi_stages_avx512
#define HOT(out, f, p) e2m1_by_table(out, f, p)
#define PLAIN_BYTES(out, f, p) plain_bytes(out, f, p)
#define STOCHASTIC_BYTES(out, words, f, p) stochastic_bytes(out, words, f, p)
#define BLOCK_AMAX(p) amax_of_blocks(p)
#define COLUMNS columns_load, columns_codes

static void e2m1_by_table(uint8_t *out, const mx_stages *f, const mx_piece *p);
static int plain_bytes(uint8_t *out, const mx_stages *f, const mx_piece *p);
static void stochastic_bytes(uint8_t *out, const uint32_t *words, const mx_stages *f, const mx_piece *p);
static int amax_of_blocks(mx_piece *p);
static void columns_load(float *y, mx_piece *p, const float *x, size_t ld, size_t groups, size_t ahead, const mx_input *in);
static void columns_codes(uint8_t *out, size_t stride, const mx_stages *f, const mx_piece *p, size_t groups);

#include "kernels/stages.inc.h"

/* ---- largest magnitudes of sixteen blocks ---- */

/* The maxima of blocks i and i + 1, each in eight lanes. */
INLINE vi two_blocks(const float *x, size_t block, size_t i) {
  const vi a = block_max(x + i * block, block), b = block_max(x + (i + 1) * block, block);
  return vi_max(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

INLINE vi four_blocks(const float *x, size_t block, size_t i) {
  const vi a = two_blocks(x, block, i), b = two_blocks(x, block, i + 2);
  return vi_max(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

INLINE vi eight_blocks(const float *x, size_t block, size_t i) {
  const vi a = four_blocks(x, block, i), b = four_blocks(x, block, i + 4);
  return vi_max(_mm512_shuffle_i32x4(a, b, 0x44), _mm512_shuffle_i32x4(a, b, 0xEE));
}

/* Combines pairs as soon as they exist, so that few registers are needed. */
INLINE void sixteen_by_sixteen(mx_piece *p, const size_t block) {
  size_t b = 0;
  for (; b + 16 <= p->n_blocks; b += 16) {
    const vi low = eight_blocks(p->x + b * block, block, 0), high = eight_blocks(p->x + b * block, block, 8);
    vi_store(p->amax + b, vi_max(_mm512_shuffle_i32x4(low, high, 0x88), _mm512_shuffle_i32x4(low, high, 0xDD)));
  }
  for (; b < p->n_blocks; b++) p->amax[b] = vi_hmax(block_max(p->x + b * block, block));
}

static int amax_of_blocks(mx_piece *p) {
  if (p->block == 32)
    sixteen_by_sixteen(p, 32);
  else if (p->block == 16)
    sixteen_by_sixteen(p, 16);
  else
    return 0;
  return 1;
}

/* ---- e2m1 ---- */

enum { DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC, UP = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC };

/* floor(v) + ceil(v) of two vectors as int16. */
INLINE __m512i both_sides(__m512 v, __m512 w) {
  const __m512i a = _mm512_add_epi32(_mm512_cvt_roundps_epi32(v, DOWN), _mm512_cvt_roundps_epi32(v, UP));
  return _mm512_packs_epi32(a, _mm512_add_epi32(_mm512_cvt_roundps_epi32(w, DOWN), _mm512_cvt_roundps_epi32(w, UP)));
}

/* What by_table() needs to know about a spec, and what it keeps in registers. */
typedef struct table_way {
  int form, keep_sign, folded; /* folded: factors hold the 4 of 4y */
  __m512i low, high, weights;
} table_way;

INLINE __m512 four_times(__m512 x, float f, const table_way *t) {
  const __m512 y = scaled(x, vf_set(f), vf_set(f), t->form);
  return t->folded ? y : _mm512_mul_ps(y, vf_set(4));
}

/* Turns sixty-four elements into 32 bytes; each factor is for `per` vectors. */
INLINE void sixty_four(uint8_t *out, const float *x, const float *f, const int per, const table_way *t) {
  const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16), c = _mm512_loadu_ps(x + 32), d = _mm512_loadu_ps(x + 48);
  const __m512i ab = both_sides(four_times(a, f[0], t), four_times(b, f[1 / per], t));
  const __m512i cd = both_sides(four_times(c, f[2 / per], t), four_times(d, f[3 / per], t));
  __m512i s = _mm512_packs_epi16(ab, cd);
  s = _mm512_max_epi8(_mm512_min_epi8(s, _mm512_set1_epi8(63)), _mm512_set1_epi8(-63));
  __m512i code = _mm512_permutex2var_epi8(t->low, s, t->high);
  if (t->keep_sign) { /* packs keep signs, including that of -0 */
    const __m512i first = _mm512_packs_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)),
                  last = _mm512_packs_epi32(_mm512_castps_si512(c), _mm512_castps_si512(d));
    const __m512i signs = _mm512_srli_epi16(_mm512_packs_epi16(first, last), 4);
    code = _mm512_ternarylogic_epi64(code, signs, _mm512_set1_epi8(8), 0xF8); /* code | (signs & 8) */
  }
  /* packs work within 128-bit lanes, so lane i holds elements 4i.. of a, b, c, d. The low byte of a word then holds two codes. */
  const __m512i order = _mm512_castsi256_si512(_mm256_setr_epi8(0, 2, 16, 18, 32, 34, 48, 50, 4, 6, 20, 22, 36, 38, 52, 54, 8, 10, 24, 26, 40,
                                                                42, 56, 58, 12, 14, 28, 30, 44, 46, 60, 62));
  const __m512i pairs = _mm512_permutexvar_epi8(order, _mm512_maddubs_epi16(code, t->weights));
  _mm256_storeu_si256((void *)out, _mm512_castsi512_si256(pairs));
}

INLINE void by_table(uint8_t *out, const mx_piece *p, const float *f, const table_way *t, const int per) {
  const size_t n = p->n;
  size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const char *next = (const char *)(p->next + i);
    __builtin_prefetch(next);
    __builtin_prefetch(next + 64);
    __builtin_prefetch(next + 128);
    __builtin_prefetch(next + 192);
    sixty_four(out + i / 2, p->x + i, f + i / 16 / (size_t)per, per, t);
  }
  if (i == n) return;
  float x[64] = {0}, last_f[4];
  uint8_t last[32];
  memcpy(x, p->x + i, (n - i) * sizeof *x);
  for (size_t k = 0; k < 4; k++) last_f[k] = i + 16 * k < n ? f[(i / 16 + k) / (size_t)per] : 1;
  sixty_four(last, x, last_f, 1, t);
  memcpy(out + i / 2, last, (n - i) / 2);
}

/* Spreads the factors of each `per` vectors, multiplied by a number. */
INLINE void spread_factors(float *out, const mx_piece *p, const int per, __m512 by) {
  const int shift = p->shift - (per - 1);
  const vi lane = _mm512_srlv_epi32(vi_iota(), vi_set(shift));
  for (size_t i = 0; i < p->n / 16; i += 16) vf_store(out + i, _mm512_mul_ps(_mm512_permutexvar_ps(lane, vf_load(p->f0 + (i >> shift))), by));
}

INLINE void by_form(uint8_t *out, const mx_stages *f, const mx_piece *p, int form, int keep_sign, int folded, int per) {
  float factors[MX_PIECE_ELEMENTS / 16];
  const table_way t = {form,
                       keep_sign,
                       folded,
                       _mm512_loadu_si512(f->table),
                       _mm512_loadu_si512(f->table + 64),
                       _mm512_set1_epi16(f->nibble == MX_NIBBLE_HIGH_FIRST ? 0x0110 : 0x1001)};
  const __m512 by = _mm512_set1_ps(!folded ? 1 : form == MX_FORM_MUL ? 4.0f : 0.25f);
  spread_factors(factors, p, per, by);
  by_table(out, p, factors, &t, per);
}

INLINE void by_sign(uint8_t *out, const mx_stages *f, const mx_piece *p, int form, int folded, int per) {
  if (f->keep_sign)
    by_form(out, f, p, form, 1, folded, per);
  else
    by_form(out, f, p, form, 0, folded, per);
}

static void e2m1_by_table(uint8_t *out, const mx_stages *f, const mx_piece *p) {
  const int mul = f->form == MX_FORM_MUL;
  if (!f->fold_4) {
    if (mul)
      by_sign(out, f, p, MX_FORM_MUL, 0, 1);
    else
      by_sign(out, f, p, MX_FORM_DIV, 0, 1);
  } else if (p->shift == 1) {
    if (mul)
      by_sign(out, f, p, MX_FORM_MUL, 1, 2);
    else
      by_sign(out, f, p, MX_FORM_DIV, 1, 2);
  } else if (mul)
    by_sign(out, f, p, MX_FORM_MUL, 1, 1);
  else
    by_sign(out, f, p, MX_FORM_DIV, 1, 1);
}

/* ---- formats of up to eight bits that saturate ---- */

static byte_way way_of(const mx_stages *f) { return byte_way_of(f->elem.man_bits, f->elem.min_normal, f->elem.sign_shift - 24, f->elem_max); }

INLINE void sixty_four_bytes(uint8_t *out, const float *x, const float *f, const int form, const int drop, const byte_way *w) {
  __m512 y[4];
  __m512i c[4];
#pragma GCC unroll 4
  for (int k = 0; k < 4; k++) {
    y[k] = scaled(vf_load(x + 16 * k), vf_set(f[k]), vf_set(1), form);
    if (drop) y[k] = without_negative_zero(y[k]);
    c[k] = low_code(y[k], w);
  }
  _mm512_storeu_si512(out, merged(c, y, w));
}

INLINE void plain_bytes_by(uint8_t *out, const mx_stages *f, const mx_piece *p, const int form, const int drop) {
  const byte_way w = way_of(f);
  float factors[MX_PIECE_ELEMENTS / 16 + 4];
  spread_factors(factors, p, 1, vf_set(1));
  size_t i = 0;
  for (; i + 64 <= p->n; i += 64) {
    const char *next = (const char *)(p->next + i);
    __builtin_prefetch(next);
    __builtin_prefetch(next + 64);
    __builtin_prefetch(next + 128);
    __builtin_prefetch(next + 192);
    sixty_four_bytes(out + i, p->x + i, factors + i / 16, form, drop, &w);
  }
  if (i == p->n) return;
  float x[64] = {0};
  uint8_t last[64];
  memcpy(x, p->x + i, (p->n - i) * sizeof *x);
  for (size_t k = p->n / 16; k < i / 16 + 4; k++) factors[k] = 1;
  sixty_four_bytes(last, x, factors + i / 16, form, drop, &w);
  memcpy(out + i, last, p->n - i);
}

static int plain_bytes(uint8_t *out, const mx_stages *f, const mx_piece *p) {
  const int drop = f->elem.plain == MX_PLAIN_DROP;
  if (!f->byte_sized || p->by_element) return 0;
  if (f->form == MX_FORM_MUL && !drop)
    plain_bytes_by(out, f, p, MX_FORM_MUL, 0);
  else if (f->form == MX_FORM_MUL)
    plain_bytes_by(out, f, p, MX_FORM_MUL, 1);
  else if (f->form == MX_FORM_DIV && !drop)
    plain_bytes_by(out, f, p, MX_FORM_DIV, 0);
  else if (f->form == MX_FORM_DIV)
    plain_bytes_by(out, f, p, MX_FORM_DIV, 1);
  else
    return 0;
  return 1;
}

/* ---- the same rounded stochastically ---- */

enum { TOWARDS_ZERO = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC };

typedef struct random_way {
  byte_way bytes;
  __m512 least;
  __m512i random, half, binade; /* half: the 1 of 2 b + 1 */
  __m128i down;                 /* the shift from the top of a word to below the last bit that is kept */
} random_way;

static random_way random_way_of(const mx_stages *f) {
  const mx_stage_encode *e = &f->elem;
  const int up = 23 - e->man_bits;
  random_way w = {.bytes = way_of(f)};
  w.bytes.offset = _mm512_set1_epi8((char)((e->min_normal >> up) - (1 << e->man_bits)));
  w.least = vi_float(vi_set(e->min_normal));
  w.binade = vi_set(1 << 23);
  w.random = vi_set((1 << up) - (1 << (up - e->sr_bits)));
  w.half = vi_set(e->sr_mode == MX_SR_FAST ? 1 << (up - e->sr_bits - 1) : 0);
  w.down = _mm_cvtsi32_si128(32 - up);
  return w;
}

/* Below the smallest normal number a binade is added on top, so that the last kept bit has the same position as above. */
INLINE __m512i random_code(__m512 y, __m512i word, const random_way *w) {
  const __m512 a = _mm512_range_ps(y, w->bytes.most, 10);
  const __mmask16 small = _mm512_cmp_ps_mask(a, w->least, _CMP_LT_OQ);
  const __m512i b = vf_bits(_mm512_mask_add_round_ps(a, small, a, w->least, TOWARDS_ZERO)), c = _mm512_mask_sub_epi32(b, small, b, w->binade);
  const __m512i random = _mm512_ternarylogic_epi32(_mm512_srl_epi32(word, w->down), w->random, w->half, 0xEA); /* a & b | c */
  return _mm512_srl_epi32(vi_add(c, random), w->bytes.up);
}

INLINE void random_sixty_four(uint8_t *out, const uint32_t *words, const float *x, const float *f, const int form, const int drop,
                              const random_way *w) {
  __m512 y[4];
  __m512i c[4];
#pragma GCC unroll 4
  for (int k = 0; k < 4; k++) {
    y[k] = scaled(vf_load(x + 16 * k), vf_set(f[k]), vf_set(1), form);
    if (drop) y[k] = without_negative_zero(y[k]);
    c[k] = random_code(y[k], vi_load(words + 16 * k), w);
  }
  _mm512_storeu_si512(out, merged(c, y, &w->bytes));
}

INLINE void stochastic_by(uint8_t *out, const uint32_t *words, const mx_stages *f, const mx_piece *p, const int form, const int drop) {
  const random_way w = random_way_of(f);
  float factors[MX_PIECE_ELEMENTS / 16 + 4];
  spread_factors(factors, p, 1, vf_set(1));
  size_t i = 0;
  for (; i + 64 <= p->n; i += 64) {
    fetch_next(p, i, 64);
    random_sixty_four(out + i, words + i, p->x + i, factors + i / 16, form, drop, &w);
  }
  if (i == p->n) return;
  float x[64] = {0};
  uint32_t last_words[64] = {0};
  uint8_t last[64];
  memcpy(x, p->x + i, (p->n - i) * sizeof *x);
  memcpy(last_words, words + i, (p->n - i) * sizeof *words);
  for (size_t k = p->n / 16; k < i / 16 + 4; k++) factors[k] = 1;
  random_sixty_four(last, last_words, x, factors + i / 16, form, drop, &w);
  memcpy(out + i, last, p->n - i);
}

static void stochastic_bytes(uint8_t *out, const uint32_t *words, const mx_stages *f, const mx_piece *p) {
  BY_FORM_AND_ZERO(stochastic_by, f, out, words, f, p);
}

#include "kernels/columns_avx512.h"
