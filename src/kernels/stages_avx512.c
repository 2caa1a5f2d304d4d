/* Quantise with AVX-512. */
#include "kernels/stages.h"
#include "kernels/vectors_avx512.h"

#define NAME "avx512"
#define TABLE mx_stages_avx512
#define HOT(out, f, p) e2m1_by_table(out, f, p)

static void e2m1_by_table(uint8_t *out, const mx_stages *f, const mx_piece *p);

#include "kernels/stages.inc.h"

enum { DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC, UP = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC };

/* floor(4y) + ceil(4y): between -2^23 and 2^23. */
INLINE __m512i both_sides(__m512 y) {
  const __m512 four = _mm512_mul_ps(y, _mm512_set1_ps(4));
  return _mm512_add_epi32(_mm512_cvt_roundps_epi32(four, DOWN), _mm512_cvt_roundps_epi32(four, UP));
}

/* Sixty-four elements, their factors in four vectors, to 32 bytes. */
INLINE void sixty_four(uint8_t *out, const float *x, __m512 f0, __m512 f1, __m512 f2, __m512 f3, __m512i low, __m512i high, int form,
                       int keep_sign) {
  const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16), c = _mm512_loadu_ps(x + 32), d = _mm512_loadu_ps(x + 48);
  const __m512i ab = _mm512_packs_epi32(both_sides(scaled(a, f0, f0, form)), both_sides(scaled(b, f1, f1, form)));
  const __m512i cd = _mm512_packs_epi32(both_sides(scaled(c, f2, f2, form)), both_sides(scaled(d, f3, f3, form)));
  __m512i s = _mm512_packs_epi16(ab, cd);
  s = _mm512_max_epi8(_mm512_min_epi8(s, _mm512_set1_epi8(63)), _mm512_set1_epi8(-63));
  /* packs works within 128-bit lanes: lane i holds elements 4i.. of a, b, c, d */
  s = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), s);
  __m512i code = _mm512_permutex2var_epi8(low, s, high);
  if (keep_sign) {
    const __mmask32 first = _mm512_kunpackw(_mm512_movepi32_mask(_mm512_castps_si512(b)), _mm512_movepi32_mask(_mm512_castps_si512(a)));
    const __mmask32 last = _mm512_kunpackw(_mm512_movepi32_mask(_mm512_castps_si512(d)), _mm512_movepi32_mask(_mm512_castps_si512(c)));
    const __m512i signed_code = _mm512_or_si512(code, _mm512_set1_epi8(8));
    code = _mm512_mask_mov_epi8(code, _mm512_kunpackd(last, first), signed_code);
  }
  _mm256_storeu_si256((void *)out, _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(code, _mm512_set1_epi16(0x1001))));
}

/* Factors of the k-th sixteen elements; the block is 16 * per elements. */
INLINE __m512 factor_of(const mx_piece *p, size_t k, size_t per) { return _mm512_set1_ps(p->f0[k / per]); }

INLINE void by_table(uint8_t *out, const mx_stages *f, const mx_piece *p, size_t per, int form, int keep_sign) {
  const __m512i low = _mm512_loadu_si512(f->table), high = _mm512_loadu_si512(f->table + 64);
  const size_t n = p->n_blocks * p->block;
  size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const size_t k = i / 16;
    sixty_four(out + i / 2, p->x + i, factor_of(p, k, per), factor_of(p, k + 1, per), factor_of(p, k + 2, per), factor_of(p, k + 3, per), low,
               high, form, keep_sign);
  }
  if (i == n) return;
  float x[64] = {0};
  uint8_t last[32];
  __m512 v[4];
  memcpy(x, p->x + i, (n - i) * sizeof *x);
  for (size_t k = 0; k < 4; k++) v[k] = i + 16 * k < n ? factor_of(p, i / 16 + k, per) : _mm512_set1_ps(1);
  sixty_four(last, x, v[0], v[1], v[2], v[3], low, high, form, keep_sign);
  memcpy(out + i / 2, last, (n - i) / 2);
}

INLINE void by_form(uint8_t *out, const mx_stages *f, const mx_piece *p, int form, int keep_sign) {
  if (p->block == 32)
    by_table(out, f, p, 2, form, keep_sign);
  else if (p->block == 16)
    by_table(out, f, p, 1, form, keep_sign);
  else
    by_table(out, f, p, p->block / 16, form, keep_sign);
}

static void e2m1_by_table(uint8_t *out, const mx_stages *f, const mx_piece *p) {
  if (f->form == MX_FORM_MUL) {
    if (f->keep_sign)
      by_form(out, f, p, MX_FORM_MUL, 1);
    else
      by_form(out, f, p, MX_FORM_MUL, 0);
  } else if (f->keep_sign)
    by_form(out, f, p, MX_FORM_DIV, 1);
  else
    by_form(out, f, p, MX_FORM_DIV, 0);
}
