/* Rows of blocks with AVX2: eight blocks at a time. Nearest-even elements alone (mx_lanes.plain); other plans are left to the scalar path. */
#include <immintrin.h>
#include <string.h>

#include "kernels/fast.h"

#define INLINE static inline __attribute__((always_inline))

#define VF __m256
#define V_SET1(a) _mm256_set1_ps(a)
#define V_ADD(a, b) _mm256_add_ps(a, b)
#define V_SUB(a, b) _mm256_sub_ps(a, b)
#define V_MUL(a, b) _mm256_mul_ps(a, b)
#define V_DIV(a, b) _mm256_div_ps(a, b)
#define V_MIN(a, b) _mm256_min_ps(a, b)
#define V_MAX(a, b) _mm256_max_ps(a, b)
#define V_EQUAL(a, b, then, otherwise) _mm256_blendv_ps(otherwise, then, _mm256_cmp_ps(a, b, _CMP_EQ_OQ))
#define V_UNORDERED(a, b, then, otherwise) _mm256_blendv_ps(otherwise, then, _mm256_cmp_ps(a, b, _CMP_UNORD_Q))
#define V_INFINITE(a, then, otherwise)                                                                                                         \
  _mm256_blendv_ps(otherwise, then, _mm256_cmp_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a), _mm256_set1_ps(__builtin_inff()), _CMP_EQ_OQ))
#define V_STORE(p, a) _mm256_storeu_ps(p, a)
#define V_LOAD(p) _mm256_loadu_ps(p)
#define V_N 8
#include "kernels/chain_lanes.inc.h"

enum { MANY = 0, LANES = 8 };

typedef struct group {
  int n;
  char op[MX_CHAIN_FACTORS];
  float factor[MX_CHAIN_FACTORS][LANES];
  unsigned special;
} group;

/* Maxima of the magnitudes of eight blocks, as integers. */
INLINE __m256i maxima(const float *x, const int vectors) {
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i v[LANES];
  for (int b = 0; b < LANES; b++) {
    v[b] = _mm256_setzero_si256();
    for (int i = 0; i < vectors; i++)
      v[b] = _mm256_max_epi32(v[b], _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(x + 8 * (vectors * b + i))), magnitude));
  }
  for (int b = 0; b < 8; b += 2) v[b / 2] = _mm256_max_epi32(_mm256_unpacklo_epi32(v[b], v[b + 1]), _mm256_unpackhi_epi32(v[b], v[b + 1]));
  for (int b = 0; b < 4; b += 2) v[b / 2] = _mm256_max_epi32(_mm256_unpacklo_epi64(v[b], v[b + 1]), _mm256_unpackhi_epi64(v[b], v[b + 1]));
  return _mm256_max_epi32(_mm256_permute2x128_si256(v[0], v[1], 0x20), _mm256_permute2x128_si256(v[0], v[1], 0x31));
}

INLINE unsigned mask_of(__m256i m) { return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(m)); }

/* Is any lane outside [least, largest]? */
INLINE __m256i outside(__m256i v, int least, int largest) {
  return _mm256_or_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(least), v), _mm256_cmpgt_epi32(v, _mm256_set1_epi32(largest)));
}

INLINE void store_codes(uint8_t scales[LANES], __m256i code) {
  int32_t c[LANES];
  _mm256_storeu_si256((__m256i *)c, code);
  for (int i = 0; i < LANES; i++) scales[i] = (uint8_t)c[i];
}

static void power_of_two(group *g, const mx_fast *f, __m256i amax, uint8_t *scales) {
  const __m256i all = _mm256_set1_epi32(0x7FFFFF), e = _mm256_srli_epi32(amax, 23), m = _mm256_and_si256(amax, all);
  const __m256i up = _mm256_cmpgt_epi32(m, _mm256_set1_epi32(f->threshold - 1));
  const __m256i code = _mm256_sub_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(f->offset)), up);
  __m256i special = _mm256_or_si256(outside(e, f->least, f->largest), outside(code, f->min_code, f->max_code));
  if (f->margin) { /* as in fast_row_avx512.c */
    const __m256i margin = _mm256_set1_epi32(f->margin), wide = _mm256_set1_epi32(2 * f->margin + 1);
    const __m256i t = _mm256_and_si256(_mm256_add_epi32(_mm256_sub_epi32(m, _mm256_set1_epi32(f->threshold)), margin), all);
    const __m256i p = _mm256_and_si256(_mm256_add_epi32(m, margin), all);
    special = _mm256_or_si256(special, _mm256_or_si256(_mm256_cmpgt_epi32(wide, t), _mm256_cmpgt_epi32(wide, p)));
  }
  g->special = mask_of(special);
  g->n = 1;
  g->op[0] = '*';
  _mm256_storeu_si256((__m256i *)g->factor[0], _mm256_slli_epi32(_mm256_sub_epi32(_mm256_set1_epi32(254), code), 23));
  store_codes(scales, code);
}

/* mx_encode_plain of lanes_avx512.h. */
INLINE __m256i encode_plain(const mx_lanes *l, __m256 y, const int drop) {
  if (drop) y = _mm256_add_ps(y, _mm256_setzero_ps());
  const __m256i bits = _mm256_castps_si256(y), least = _mm256_set1_epi32(l->emin << 23);
  const __m256i a = _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
  const __m256i binade = _mm256_max_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x7F800000)), least);
  const __m256i magic = _mm256_add_epi32(binade, _mm256_set1_epi32((23 - l->man) << 23));
  const __m256i sum = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(magic)));
  const __m256i base = _mm256_srli_epi32(_mm256_sub_epi32(binade, least), 23 - l->man);
  const __m256i code = _mm256_min_epi32(_mm256_add_epi32(base, _mm256_sub_epi32(sum, magic)), _mm256_set1_epi32(l->max_code));
  return _mm256_or_si256(code, _mm256_and_si256(_mm256_srli_epi32(bits, l->sign_shift), _mm256_set1_epi32(l->sign)));
}

INLINE __m256 step(char op, __m256 x, __m256 factor) { return op == '*' ? _mm256_mul_ps(x, factor) : _mm256_div_ps(x, factor); }

/* Not positive and finite. */
INLINE __m256 unusable(__m256 x) {
  return _mm256_or_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NGT_UQ), _mm256_cmp_ps(x, _mm256_set1_ps(__builtin_inff()), _CMP_NLT_UQ));
}

static void by_chain(group *g, const mx_fast *f, __m256i amax, uint8_t *scales) {
  const mx_plan *p = f->plan;
  __m256 y = _mm256_castsi256_ps(amax);
  const __m256 v = evaluate(&f->scale_of, y);
  __m256i code = encode_plain(&f->scale, _mm256_min_ps(v, _mm256_set1_ps(0x1p60f)), 0);
  __m256i bad = _mm256_or_si256(outside(_mm256_srli_epi32(amax, 23), f->least, f->largest), outside(code, f->min_code, f->max_code));
  bad = _mm256_or_si256(bad, _mm256_castps_si256(unusable(v)));
  code = _mm256_andnot_si256(bad, code);
  store_codes(scales, code);
  const __m256 sf = _mm256_i32gather_ps(f->sf, code, 4);
  g->n = p->chain.element.n;
  for (int i = 0; i < g->n; i++) {
    const __m256 factor = evaluate(&f->factor[i], sf);
    bad = _mm256_or_si256(bad, _mm256_castps_si256(unusable(factor)));
    g->op[i] = p->chain.element.op[i];
    _mm256_storeu_ps(g->factor[i], factor);
    y = step(g->op[i], y, factor);
  }
  bad = _mm256_or_si256(bad, _mm256_castps_si256(_mm256_cmp_ps(y, _mm256_set1_ps(0x1p30f), _CMP_NLT_UQ)));
  g->special = mask_of(bad);
}

INLINE __m256 scaled(const group *g, const float *x, int b, const int op) {
  __m256 y = _mm256_loadu_ps(x);
  if (op != MANY) return step((char)op, y, _mm256_set1_ps(g->factor[0][b]));
  for (int i = 0; i < g->n; i++) y = step(g->op[i], y, _mm256_set1_ps(g->factor[i][b]));
  return y;
}

/* 32 codes, one a byte, from four vectors. */
INLINE __m256i bytes_of(const mx_lanes *l, const group *g, const float *x, int first, const int vectors, const int op, const int drop) {
  __m256i v[4];
  for (int i = 0; i < 4; i++) v[i] = encode_plain(l, scaled(g, x + 8 * (first + i), (first + i) / vectors, op), drop);
  const __m256i packed = _mm256_packus_epi16(_mm256_packus_epi32(v[0], v[1]), _mm256_packus_epi32(v[2], v[3]));
  return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

INLINE void elements(const mx_fast *f, const group *g, const float *x, uint8_t *codes, const int vectors, const int op, const int drop) {
  const mx_lanes lanes = f->elem;
  const __m256i weights = f->high_first ? _mm256_set1_epi16(0x0110) : _mm256_set1_epi16(0x1001);
  for (int j = 0; j < LANES * vectors; j += 8) {
    const __m256i a = bytes_of(&lanes, g, x, j, vectors, op, drop), b = bytes_of(&lanes, g, x, j + 4, vectors, op, drop);
    if (f->by_table) {
      const __m256i joined = _mm256_packus_epi16(_mm256_maddubs_epi16(a, weights), _mm256_maddubs_epi16(b, weights));
      _mm256_storeu_si256((__m256i *)(codes + 4 * j), _mm256_permute4x64_epi64(joined, 0xD8));
    } else {
      _mm256_storeu_si256((__m256i *)(codes + 8 * j), a);
      _mm256_storeu_si256((__m256i *)(codes + 8 * j + 32), b);
    }
  }
}

INLINE unsigned do_group(const mx_fast *f, const float *x, uint8_t *codes, uint8_t *scales, const int vectors) {
  group g;
  const __m256i amax = maxima(x, vectors);
  if (f->plan->uses_chain)
    by_chain(&g, f, amax, scales);
  else
    power_of_two(&g, f, amax, scales);
  if (g.n == 1 && g.op[0] == '*' && !f->elem.drop)
    elements(f, &g, x, codes, vectors, '*', 0);
  else if (g.n == 1 && g.op[0] == '*')
    elements(f, &g, x, codes, vectors, '*', 1);
  else if (f->elem.drop)
    elements(f, &g, x, codes, vectors, MANY, 1);
  else
    elements(f, &g, x, codes, vectors, MANY, 0);
  return g.special;
}

static unsigned any_group(const mx_fast *f, const float *x, uint8_t *codes, uint8_t *scales) {
  if (f->block == 32) return do_group(f, x, codes, scales, 4);
  if (f->block == 16) return do_group(f, x, codes, scales, 2);
  return do_group(f, x, codes, scales, (int)(f->block / 8));
}

size_t mx_fast_row_avx2(const mx_fast *f, const float *x, size_t n, uint8_t *codes, uint8_t *scales, uint32_t *special) {
  const size_t blocks = n / f->block + (n % f->block != 0), bytes = f->by_table ? f->block / 2 : f->block;
  size_t found = 0;
  for (size_t b = 0; b < blocks; b += LANES) {
    unsigned redo;
    if ((b + LANES) * f->block <= n)
      redo = any_group(f, x + b * f->block, codes + b * bytes, scales + b);
    else {
      const size_t many = blocks - b < LANES ? blocks - b : LANES;
      float in[LANES * MX_FAST_BLOCK];
      uint8_t out[LANES * MX_FAST_BLOCK], own[LANES];
      memset(in, 0, LANES * f->block * sizeof *in);
      memcpy(in, x + b * f->block, (n - b * f->block) * sizeof *in);
      redo = any_group(f, in, out, own) & ((1u << many) - 1);
      memcpy(codes + b * bytes, out, many * bytes);
      memcpy(scales + b, own, many);
    }
    for (; redo; redo &= redo - 1) special[found++] = (uint32_t)(b + (size_t)__builtin_ctz(redo));
  }
  return found;
}
