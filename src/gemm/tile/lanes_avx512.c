/* Compiles the kernels on decoded panels for AVX-512. */
#include <float.h>
#include <immintrin.h>

#include "gemm/tile/tile.h"

#define vf __m512
#define vd __m512d
#define WF 16
#define WD 8
#define ROWS 16
#define TABLE mxi_gemm_lanes_avx512
#define F_LOAD(p) _mm512_loadu_ps(p)
#define F_STORE(p, x) _mm512_storeu_ps(p, x)
#define F_SET1(x) _mm512_set1_ps(x)
#define F_ADD(a, b) _mm512_add_ps(a, b)
#define F_MUL(a, b) _mm512_mul_ps(a, b)
#define F_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define D_LOAD(p) _mm512_loadu_pd(p)
#define D_SET1(x) _mm512_set1_pd(x)
#define D_ADD(a, b) _mm512_add_pd(a, b)
#define D_SUB(a, b) _mm512_sub_pd(a, b)
#define D_ABS(x) _mm512_abs_pd(x)
#define D_STORE(p, x) _mm512_storeu_pd(p, x)
#define D_MUL(a, b) _mm512_mul_pd(a, b)
#define D_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define D_EXACT(a, b, c) _mm512_fmadd_pd(a, b, c)
#define D_STORE_F32(p, x) _mm256_storeu_ps(p, _mm512_cvtpd_ps(x))
#define ADD_TERM(p, t) add_term(p, t)
#define ADD_QUOTIENT(p, t, over) add_quotient(p, t, over)

/* x + t rounded to odd: toward zero, with the last place set if rounding down and up differ. (Only NaN is unordered, and stays NaN.) */
static inline __m512d add_to_odd(__m512d x, __m512d t) {
  const __m512d zero = _mm512_add_round_pd(x, t, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __m512d down = _mm512_add_round_pd(x, t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  const __m512d up = _mm512_add_round_pd(x, t, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
  const __mmask8 cut = _mm512_cmp_pd_mask(down, up, _CMP_NEQ_OQ);
  const __m512i bits = _mm512_castpd_si512(zero);
  return _mm512_castsi512_pd(_mm512_mask_or_epi64(bits, cut, bits, _mm512_set1_epi64(1)));
}

static inline void add_term(float *p, __m512d t) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(add_to_odd(_mm512_cvtps_pd(_mm256_loadu_ps(p)), t))); }

/* The quotient is rounded to odd too: toward zero, with the last place set if there is a remainder. block_step() in one.c says why both
 * roundings are right; the bits of the result are the lanes that it has to decide. */
static inline unsigned add_quotient(float *p, __m512d t, __m512d over) {
  const __m512d x = _mm512_cvtps_pd(_mm256_loadu_ps(p)), nothing = _mm512_setzero_pd(), most = _mm512_set1_pd(DBL_MAX);
  const __m512d cut = _mm512_div_round_pd(t, over, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __mmask8 rest = _mm512_cmp_pd_mask(_mm512_fnmadd_pd(cut, over, t), nothing, _CMP_NEQ_OQ);
  const __m512i bits = _mm512_castpd_si512(_mm512_add_pd(cut, nothing));
  const __m512d q = _mm512_castsi512_pd(_mm512_mask_or_epi64(bits, rest, bits, _mm512_set1_epi64(1))), sum = add_to_odd(x, q);
  _mm256_storeu_ps(p, _mm512_cvtpd_ps(sum));
  const __mmask8 small = _mm512_cmp_pd_mask(_mm512_abs_pd(sum), _mm512_mul_pd(_mm512_abs_pd(q), _mm512_set1_pd(0x1p-20)), _CMP_NGE_UQ);
  const __mmask8 zero = _mm512_cmp_pd_mask(t, nothing, _CMP_EQ_OQ);
  const __mmask8 known = _mm512_cmp_pd_mask(_mm512_abs_pd(t), most, _CMP_LE_OQ) & _mm512_cmp_pd_mask(_mm512_abs_pd(x), most, _CMP_LE_OQ) &
                         _mm512_cmp_pd_mask(_mm512_abs_pd(over), most, _CMP_LE_OQ) & _mm512_cmp_pd_mask(over, nothing, _CMP_NEQ_OQ);
  return (unsigned)(uint8_t)((small & ~zero) | ~known);
}

#include "gemm/tile/lanes.inc.h"
