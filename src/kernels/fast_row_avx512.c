/* Rows of blocks with AVX-512: sixteen blocks at a time, their scales in one vector. */
#include <immintrin.h>
#include <string.h>

#include "kernels/fast.h"
#include "kernels/lanes_avx512.h"

#define INLINE static inline __attribute__((always_inline))

enum { MANY = 0 };

/* Where sixteen blocks' elements go: y = x op factor op factor ... */
typedef struct group {
  int n;
  char op[MX_CHAIN_FACTORS];
  float factor[MX_CHAIN_FACTORS][MX_FAST_GROUP];
  uint8_t codes[MX_FAST_GROUP];
  __mmask16 special, beyond; /* beyond: |y| may pass what the table holds */
} group;

/* Maxima of the magnitudes of sixteen blocks, as integers: NaN above Inf above numbers. */
INLINE __m512i maxima(const float *x, const int vectors) {
  const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
  __m512i v[16];
  for (int b = 0; b < 16; b++) {
    v[b] = _mm512_and_si512(_mm512_loadu_si512(x + 16 * vectors * b), magnitude);
    for (int i = 1; i < vectors; i++)
      v[b] = _mm512_max_epi32(v[b], _mm512_and_si512(_mm512_loadu_si512(x + 16 * (vectors * b + i)), magnitude));
  }
  for (int b = 0; b < 16; b += 2) v[b / 2] = _mm512_max_epi32(_mm512_unpacklo_epi32(v[b], v[b + 1]), _mm512_unpackhi_epi32(v[b], v[b + 1]));
  for (int b = 0; b < 8; b += 2) v[b / 2] = _mm512_max_epi32(_mm512_unpacklo_epi64(v[b], v[b + 1]), _mm512_unpackhi_epi64(v[b], v[b + 1]));
  for (int b = 0; b < 4; b += 2)
    v[b / 2] = _mm512_max_epi32(_mm512_shuffle_i32x4(v[b], v[b + 1], 0x88), _mm512_shuffle_i32x4(v[b], v[b + 1], 0xDD));
  return _mm512_max_epi32(_mm512_shuffle_i32x4(v[0], v[1], 0x88), _mm512_shuffle_i32x4(v[0], v[1], 0xDD));
}

static void power_of_two(group *g, const mx_fast *f, __m512i amax) {
  const __m512i e = _mm512_srli_epi32(amax, 23), m = _mm512_and_si512(amax, _mm512_set1_epi32(0x7FFFFF));
  const __mmask16 up = _mm512_cmpge_epi32_mask(m, _mm512_set1_epi32(f->threshold));
  __m512i code = _mm512_add_epi32(e, _mm512_set1_epi32(f->offset));
  code = _mm512_mask_add_epi32(code, up, code, _mm512_set1_epi32(1));
  g->special = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(f->least)) | _mm512_cmpgt_epi32_mask(e, _mm512_set1_epi32(f->largest)) |
               _mm512_cmplt_epi32_mask(code, _mm512_set1_epi32(f->min_code)) | _mm512_cmpgt_epi32_mask(code, _mm512_set1_epi32(f->max_code));
  if (f->margin) { /* around the threshold and, as it may be next to a power of two, around that, both modulo a binade */
    const __m512i wide = _mm512_set1_epi32(2 * f->margin), margin = _mm512_set1_epi32(f->margin), all = _mm512_set1_epi32(0x7FFFFF);
    const __m512i t = _mm512_and_si512(_mm512_add_epi32(_mm512_sub_epi32(m, _mm512_set1_epi32(f->threshold)), margin), all);
    const __m512i p = _mm512_and_si512(_mm512_add_epi32(m, margin), all);
    g->special |= _mm512_cmple_epu32_mask(t, wide) | _mm512_cmple_epu32_mask(p, wide);
  }
  _mm_storeu_si128((__m128i *)g->codes, _mm512_cvtepi32_epi8(code));
  const __m512i factor = _mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(f->fold ? 256 : 254), code), 23);
  _mm512_storeu_si512(g->factor[0], factor);
  g->n = 1;
  g->op[0] = '*';
  g->beyond = f->clamp ? 0xFFFF : 0;
}

#define VF __m512
#define V_SET1(a) _mm512_set1_ps(a)
#define V_ADD(a, b) _mm512_add_ps(a, b)
#define V_SUB(a, b) _mm512_sub_ps(a, b)
#define V_MUL(a, b) _mm512_mul_ps(a, b)
#define V_DIV(a, b) _mm512_div_ps(a, b)
#define V_MIN(a, b) _mm512_min_ps(a, b)
#define V_MAX(a, b) _mm512_max_ps(a, b)
#define V_EQUAL(a, b, then, otherwise) _mm512_mask_mov_ps(otherwise, _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), then)
#define V_UNORDERED(a, b, then, otherwise) _mm512_mask_mov_ps(otherwise, _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), then)
#define V_INFINITE(a, then, otherwise) _mm512_mask_mov_ps(otherwise, _mm512_fpclass_ps_mask(a, 0x18), then)
#define V_STORE(p, a) _mm512_storeu_ps(p, a)
#define V_LOAD(p) _mm512_loadu_ps(p)
#define V_N 16
#include "kernels/chain_lanes.inc.h"

/* Positive and finite? */
INLINE __mmask16 usable(__m512 x) {
  return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ) & _mm512_cmp_ps_mask(x, _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
}

INLINE __m512 step(char op, __m512 x, __m512 factor) { return op == '*' ? _mm512_mul_ps(x, factor) : _mm512_div_ps(x, factor); }

static void by_chain(group *g, const mx_fast *f, __m512i amax) {
  const mx_plan *p = f->plan;
  const __m512 largest = _mm512_castsi512_ps(amax);
  const __m512i e = _mm512_srli_epi32(amax, 23);
  __mmask16 good = _mm512_cmpge_epi32_mask(e, _mm512_set1_epi32(f->least)) & _mm512_cmple_epi32_mask(e, _mm512_set1_epi32(f->largest));
  const __m512 v = evaluate(&f->scale_of, largest);
  good &= usable(v);
  __m512i code;
#define ROUND_SCALE(R) code = mx_encode_lanes(&f->scale, _mm512_castps_si512(v), R)
  if (f->scale_plain) /* all large ones are the largest */
    code = mx_encode_plain(&f->scale, _mm512_castps_si512(_mm512_min_ps(v, _mm512_set1_ps(0x1p60f))), 0);
  else
    MX_BY_ROUND(f->scale.round, ROUND_SCALE)
  good &= _mm512_cmpge_epi32_mask(code, _mm512_set1_epi32(f->min_code)) & _mm512_cmple_epi32_mask(code, _mm512_set1_epi32(f->max_code));
  code = _mm512_maskz_mov_epi32(good, code);
  _mm_storeu_si128((__m128i *)g->codes, _mm512_cvtepi32_epi8(code));
  const __m512 sf = _mm512_i32gather_ps(code, f->sf, 4);
  __m512 y = largest;
  g->n = p->chain.element.n;
  for (int i = 0; i < g->n; i++) {
    const __m512 factor = evaluate(&f->factor[i], sf);
    good &= usable(factor);
    g->op[i] = p->chain.element.op[i];
    _mm512_storeu_ps(g->factor[i], factor);
    y = step(g->op[i], y, factor);
  }
  g->special = (__mmask16) ~(good & _mm512_cmp_ps_mask(y, _mm512_set1_ps(0x1p30f), _CMP_LT_OQ));
  g->beyond = _mm512_cmp_ps_mask(y, _mm512_set1_ps(7.9f), _CMP_NLT_UQ);
}

/* Scaled values of one vector of block b. */
INLINE __m512 scaled(const group *g, const float *x, size_t b, const int op) {
  const __m512 v = _mm512_loadu_ps(x);
  if (op != MANY) return step((char)op, v, _mm512_set1_ps(g->factor[0][b]));
  __m512 y = v;
  for (int i = 0; i < g->n; i++) y = step(g->op[i], y, _mm512_set1_ps(g->factor[i][b]));
  return y;
}

/* floor + ceil of 4y; *mark: negative numbers that came out as -0, which the sum cannot tell. */
INLINE __m512i quarters(__mmask16 *mark, __m512 y, const float *x, const int fold, const int clamp, const mx_fast_zero zero) {
  const __m512i minus0 = _mm512_set1_epi32(INT32_MIN), bits = _mm512_castps_si512(y);
  *mark = zero == MX_FAST_ZERO_TABLE ? 0 : _mm512_cmpeq_epi32_mask(bits, minus0);
  if (zero == MX_FAST_ZERO_UNDERFLOW) *mark &= _mm512_cmpgt_epu32_mask(_mm512_loadu_si512(x), minus0);
  if (!fold) y = _mm512_mul_ps(y, _mm512_set1_ps(4));
  if (clamp) y = _mm512_max_ps(_mm512_min_ps(y, _mm512_set1_ps(31.5f)), _mm512_set1_ps(-31.5f));
  return _mm512_add_epi32(_mm512_cvt_roundps_epi32(y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC),
                          _mm512_cvt_roundps_epi32(y, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
}

/* Bytes of a pack are 4 of each vector in turn; after the nibbles are joined, 16-bit elements 8l + 2v + h hold pair 2l + h of vector v. */
INLINE __m512i pair_order(void) {
  uint8_t at[64] = {0};
  for (int v = 0; v < 4; v++)
    for (int l = 0; l < 4; l++)
      for (int h = 0; h < 2; h++) at[8 * v + 2 * l + h] = (uint8_t)(2 * (8 * l + 2 * v + h));
  return _mm512_loadu_si512(at);
}
/* The same of marks: vector v's element 4l + k is byte 16l + 4v + k. */
INLINE __m512i byte_order(void) {
  uint8_t at[64];
  for (int v = 0; v < 4; v++)
    for (int l = 0; l < 4; l++)
      for (int k = 0; k < 4; k++) at[16 * l + 4 * v + k] = (uint8_t)(16 * v + 4 * l + k);
  return _mm512_loadu_si512(at);
}

INLINE void e2m1(const mx_fast *f, const group *g, const float *x, uint8_t *codes, const int vectors, const int op, const int fold,
                 const int clamp, const mx_fast_zero zero) {
  const __m512i low = _mm512_loadu_si512(f->table), high = _mm512_loadu_si512(f->table + 64), pairs = pair_order(), bytes = byte_order();
  const __m512i weights = f->high_first ? _mm512_set1_epi16(0x0110) : _mm512_set1_epi16(0x1001);
  for (int j = 0; j < 16 * vectors; j += 4) {
    __mmask16 mark[4];
    __m512i v[4];
    for (int i = 0; i < 4; i++) {
      const float *at = x + 16 * (j + i);
      v[i] = quarters(mark + i, scaled(g, at, (size_t)((j + i) / vectors), op), at, fold, clamp, zero);
    }
    __m512i packed = _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
    packed = _mm512_permutex2var_epi8(low, packed, high);
    if (zero != MX_FAST_ZERO_TABLE) {
      const __mmask64 all = _mm512_kunpackd((__mmask64)_mm512_kunpackw(mark[3], mark[2]), (__mmask64)_mm512_kunpackw(mark[1], mark[0]));
      if (__builtin_expect(all != 0, 0)) packed = _mm512_or_si512(packed, _mm512_permutexvar_epi8(bytes, _mm512_maskz_set1_epi8(all, 8)));
    }
    const __m512i joined = _mm512_permutexvar_epi8(pairs, _mm512_maddubs_epi16(packed, weights));
    _mm256_storeu_si256((__m256i *)(codes + 8 * j), _mm512_castsi512_si256(joined));
  }
}

INLINE void by_zero(const mx_fast *f, const group *g, const float *x, uint8_t *codes, const int vectors, const int op, const int fold,
                    const int clamp) {
  if (f->zero == MX_FAST_ZERO_KEEP)
    e2m1(f, g, x, codes, vectors, op, fold, clamp, MX_FAST_ZERO_KEEP);
  else if (f->zero == MX_FAST_ZERO_TABLE)
    e2m1(f, g, x, codes, vectors, op, fold, clamp, MX_FAST_ZERO_TABLE);
  else
    e2m1(f, g, x, codes, vectors, op, fold, clamp, MX_FAST_ZERO_UNDERFLOW);
}

INLINE void by_operation(const mx_fast *f, const group *g, const float *x, uint8_t *codes, const int vectors) {
  const int clamp = (g->beyond & ~g->special) != 0;
  if (f->fold && !clamp)
    by_zero(f, g, x, codes, vectors, '*', 1, 0);
  else if (f->fold)
    by_zero(f, g, x, codes, vectors, '*', 1, 1);
  else if (clamp || g->n > 1)
    by_zero(f, g, x, codes, vectors, MANY, 0, 1);
  else if (g->op[0] == '*')
    by_zero(f, g, x, codes, vectors, '*', 0, 0);
  else
    by_zero(f, g, x, codes, vectors, '/', 0, 0);
}

/* One code a byte. Packs take 4 of each vector in turn. */
INLINE void store_bytes(uint8_t *codes, const __m512i v[4]) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i packed = _mm512_packus_epi16(_mm512_packus_epi32(v[0], v[1]), _mm512_packus_epi32(v[2], v[3]));
  _mm512_storeu_si512(codes, _mm512_permutexvar_epi32(order, packed));
}

/* round: MX_ROUND_*, -1 for mx_encode_plain. */
INLINE void wide(const mx_fast *f, const group *g, const float *x, uint8_t *codes, const int vectors, const int op, const int round,
                 const int drop) {
  const mx_lanes lanes = f->elem;
  const __m512i byte = _mm512_set1_epi32(255);
  for (int j = 0; j < 16 * vectors; j += 4) {
    __m512i v[4];
    for (int i = 0; i < 4; i++) {
      const __m512i y = _mm512_castps_si512(scaled(g, x + 16 * (j + i), (size_t)((j + i) / vectors), op));
      v[i] = round < 0 ? mx_encode_plain(&lanes, y, drop) : _mm512_and_si512(mx_encode_lanes(&lanes, y, round), byte);
    }
    store_bytes(codes + 16 * j, v);
  }
}

INLINE void wide_by_operation(const mx_fast *f, const group *g, const float *x, uint8_t *codes, const int vectors) {
  if (f->elem.plain && g->n == 1 && g->op[0] == '*') {
    if (f->elem.drop)
      wide(f, g, x, codes, vectors, '*', -1, 1);
    else
      wide(f, g, x, codes, vectors, '*', -1, 0);
    return;
  }
#define ROUND_WIDE(R) wide(f, g, x, codes, vectors, MANY, R, 0)
  MX_BY_ROUND(f->elem.round, ROUND_WIDE)
}

/* The same of E2M1, two a byte. */
INLINE void plain4(const mx_fast *f, const group *g, const float *x, uint8_t *codes, const int vectors, const int op, const int drop) {
  const mx_lanes lanes = f->elem;
  const __m512i pairs = pair_order(), weights = f->high_first ? _mm512_set1_epi16(0x0110) : _mm512_set1_epi16(0x1001);
  for (int j = 0; j < 16 * vectors; j += 4) {
    __m512i v[4];
    for (int i = 0; i < 4; i++)
      v[i] = mx_encode_plain(&lanes, _mm512_castps_si512(scaled(g, x + 16 * (j + i), (size_t)((j + i) / vectors), op)), drop);
    const __m512i packed = _mm512_packus_epi16(_mm512_packus_epi32(v[0], v[1]), _mm512_packus_epi32(v[2], v[3]));
    const __m512i joined = _mm512_permutexvar_epi8(pairs, _mm512_maddubs_epi16(packed, weights));
    _mm256_storeu_si256((__m256i *)(codes + 8 * j), _mm512_castsi512_si256(joined));
  }
}

INLINE void plain4_by_operation(const mx_fast *f, const group *g, const float *x, uint8_t *codes, const int vectors) {
  if (g->n > 1)
    plain4(f, g, x, codes, vectors, MANY, 1);
  else if (g->op[0] == '/' && f->elem.drop)
    plain4(f, g, x, codes, vectors, '/', 1);
  else if (g->op[0] == '/')
    plain4(f, g, x, codes, vectors, '/', 0);
  else if (f->elem.drop)
    plain4(f, g, x, codes, vectors, '*', 1);
  else
    plain4(f, g, x, codes, vectors, '*', 0);
}

/* Blocks whose amax and scale are found together, so that the latencies of their scales overlap. */
enum { BATCH = 4 };

INLINE void do_groups(const mx_fast *f, const float *x, uint8_t *codes, uint8_t *scales, uint32_t *special, const int n, const int vectors) {
  group g[BATCH];
  __m512i amax[BATCH];
  const size_t values = 256 * (size_t)vectors, bytes = f->by_table ? values / 2 : values;
  for (int k = 0; k < n; k++) amax[k] = maxima(x + (size_t)k * values, vectors);
  for (int k = 0; k < n; k++) {
    if (f->plan->uses_chain)
      by_chain(&g[k], f, amax[k]);
    else
      power_of_two(&g[k], f, amax[k]);
    memcpy(scales + 16 * k, g[k].codes, sizeof g[k].codes);
  }
  for (int k = 0; k < n; k++) {
    const float *at = x + (size_t)k * values;
    uint8_t *to = codes + (size_t)k * bytes;
    special[k] = g[k].special;
    if (!f->by_table)
      wide_by_operation(f, &g[k], at, to, vectors);
    else if (f->elem.plain && (g[k].n == 1 || f->elem.drop))
      plain4_by_operation(f, &g[k], at, to, vectors);
    else
      by_operation(f, &g[k], at, to, vectors);
  }
}

static void any_groups(const mx_fast *f, const float *x, uint8_t *codes, uint8_t *scales, uint32_t *special, int n) {
  if (f->block == 32)
    do_groups(f, x, codes, scales, special, n, 2);
  else if (f->block == 16)
    do_groups(f, x, codes, scales, special, n, 1);
  else
    do_groups(f, x, codes, scales, special, n, (int)(f->block / 16));
}

size_t mx_fast_row_avx512(const mx_fast *f, const float *x, size_t n, uint8_t *codes, uint8_t *scales, uint32_t *special) {
  enum { G = MX_FAST_GROUP };
  const size_t whole = n / f->block, blocks = whole + (n % f->block != 0), bytes = f->by_table ? f->block / 2 : f->block;
  size_t found = 0;
  for (size_t b = 0; b < blocks;) {
    uint32_t redo[BATCH];
    int groups = whole - b >= G * BATCH ? BATCH : (int)((whole - b) / G);
    if (b < whole && groups > 0)
      any_groups(f, x + b * f->block, codes + b * bytes, scales + b, redo, groups);
    else { /* less than sixteen, or a short one among them: in a room of their own */
      const size_t many = blocks - b < G ? blocks - b : G;
      float in[G * MX_FAST_BLOCK];
      uint8_t out[G * MX_FAST_BLOCK], own[G];
      memset(in, 0, G * f->block * sizeof *in);
      memcpy(in, x + b * f->block, (n - b * f->block) * sizeof *in);
      any_groups(f, in, out, own, redo, groups = 1);
      redo[0] &= (uint32_t)((1u << many) - 1);
      memcpy(codes + b * bytes, out, many * bytes);
      memcpy(scales + b, own, many);
    }
    for (int k = 0; k < groups; k++, b += G)
      for (; redo[k]; redo[k] &= redo[k] - 1) special[found++] = (uint32_t)(b + (size_t)__builtin_ctz(redo[k]));
  }
  return found;
}
