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
INLINE void sixty_four(uint8_t *out, const float *x, const vf f0[4], __m512i low, __m512i high, __m512i weights, int form, int keep_sign) {
  const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16), c = _mm512_loadu_ps(x + 32), d = _mm512_loadu_ps(x + 48);
  const __m512i ab = _mm512_packs_epi32(both_sides(scaled(a, f0[0], f0[0], form)), both_sides(scaled(b, f0[1], f0[1], form)));
  const __m512i cd = _mm512_packs_epi32(both_sides(scaled(c, f0[2], f0[2], form)), both_sides(scaled(d, f0[3], f0[3], form)));
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
  _mm256_storeu_si256((void *)out, _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(code, weights)));
}

INLINE void by_table(uint8_t *out, const mx_stages *f, const mx_piece *p, int form, int keep_sign) {
  const __m512i low = _mm512_loadu_si512(f->table), high = _mm512_loadu_si512(f->table + 64);
  const __m512i weights = _mm512_set1_epi16(f->nibble == MX_NIBBLE_HIGH_FIRST ? 0x0110 : 0x1001);
  const size_t n = p->n;
  vf f0[4];
  size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    for (size_t k = 0; k < 4; k++) f0[k] = factor_of(p, p->f0, i + 16 * k, 0);
    fetch_next(p, i, 64);
    sixty_four(out + i / 2, p->x + i, f0, low, high, weights, form, keep_sign);
  }
  if (i == n) return;
  float x[64] = {0};
  uint8_t last[32];
  memcpy(x, p->x + i, (n - i) * sizeof *x);
  for (size_t k = 0; k < 4; k++) f0[k] = i + 16 * k < n ? factor_of(p, p->f0, i + 16 * k, 0) : _mm512_set1_ps(1);
  sixty_four(last, x, f0, low, high, weights, form, keep_sign);
  memcpy(out + i / 2, last, (n - i) / 2);
}

static void e2m1_by_table(uint8_t *out, const mx_stages *f, const mx_piece *p) {
  if (f->form == MX_FORM_MUL) {
    if (f->keep_sign)
      by_table(out, f, p, MX_FORM_MUL, 1);
    else
      by_table(out, f, p, MX_FORM_MUL, 0);
  } else if (f->keep_sign)
    by_table(out, f, p, MX_FORM_DIV, 1);
  else
    by_table(out, f, p, MX_FORM_DIV, 0);
}
