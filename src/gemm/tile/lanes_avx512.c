/* Compiles the kernels on decoded panels for AVX-512. */
#include <float.h>
#include <immintrin.h>

#include "gemm/tile/tile.h"

#define vf __m512
#define vd __m512d
#define WF 16
#define WD 8
#define ROWS 16
#define HIGH 8
#define ACROSS 2
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
#define D_LOAD_F32(p) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define D_NUMBER(x) number(x)
#define D_TO_ODD(s, rest) to_odd(s, rest)
#define STORE_NEAR(p, x, near, error) store_near(p, x, near, error)
#define ADD_TERM(p, t) add_term(p, t)
#define ADD_QUOTIENT(p, dot, up, under) add_quotient(p, dot, up, under)

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

static inline __m512d number(__m512d x) { return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(x, x, _CMP_ORD_Q), x); }

/* One place up if rest has the sign of s, otherwise one place down, where something was cut and the last place is even. */
static inline __m512d to_odd(__m512d s, __m512d rest) {
  const __m512i bits = _mm512_castpd_si512(s), one = _mm512_set1_epi64(1);
  const __mmask8 cut = _mm512_mask_testn_epi64_mask(_mm512_cmp_pd_mask(rest, _mm512_setzero_pd(), _CMP_NEQ_OQ), bits, one);
  const __m512i step = _mm512_or_si512(_mm512_srai_epi64(_mm512_xor_si512(bits, _mm512_castpd_si512(rest)), 63), one); /* 1 or -1 */
  return _mm512_castsi512_pd(_mm512_mask_add_epi64(bits, cut, bits, step));
}

static inline unsigned store_near(float *p, __m512d x, __m512d near, __m512d error) {
  const __m256 from = _mm512_cvtpd_ps(_mm512_sub_pd(x, near)), to = _mm512_cvtpd_ps(_mm512_add_pd(x, near));
  const __m512d wide = _mm512_cvtps_pd(from), nothing = _mm512_setzero_pd(), most = _mm512_set1_pd(FLT_MAX);
  const __mmask8 zero = _mm512_cmp_pd_mask(wide, nothing, _CMP_EQ_OQ), known = _mm512_cmp_pd_mask(error, nothing, _CMP_EQ_OQ);
  const __mmask8 same = _mm512_cmp_pd_mask(wide, _mm512_cvtps_pd(to), _CMP_EQ_OQ) & _mm512_cmp_pd_mask(_mm512_abs_pd(wide), most, _CMP_LE_OQ);
  _mm256_storeu_ps(p, _mm512_cvtpd_ps(_mm512_add_pd(wide, nothing)));
  return (unsigned)(uint8_t)(~same | (zero & ~known));
}

/* The quotient is rounded to odd too: toward zero, with the last place set if there is a remainder. So it stands for a number strictly between two
 * binary64 numbers, which is enough unless the sum is so small that places below the quotient's last one matter. */
static inline unsigned add_quotient(float *p, __m512d dot, __m512d up, __m512d under) {
  const __m512d x = D_LOAD_F32(p), t = _mm512_mul_pd(dot, up), nothing = _mm512_setzero_pd(), most = _mm512_set1_pd(DBL_MAX);
  const __mmask8 stored_as_zeros = _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(dot, nothing, _CMP_EQ_OQ), under, nothing, _CMP_EQ_OQ);
  const __m512d over = _mm512_mask_mov_pd(under, stored_as_zeros, _mm512_set1_pd(1)); /* 0 / 0 is 0 */
  const __m512d cut = _mm512_div_round_pd(t, over, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __mmask8 rest = _mm512_cmp_pd_mask(_mm512_fnmadd_pd(cut, over, t), nothing, _CMP_NEQ_OQ);
  const __m512i bits = _mm512_castpd_si512(_mm512_add_pd(cut, nothing));
  const __m512d q = _mm512_castsi512_pd(_mm512_mask_or_epi64(bits, rest, bits, _mm512_set1_epi64(1))), sum = add_to_odd(x, q);
  _mm256_storeu_ps(p, _mm512_cvtpd_ps(sum));
  const __mmask8 small =
      _mm512_mask_cmp_pd_mask(rest, _mm512_abs_pd(sum), _mm512_mul_pd(_mm512_abs_pd(q), _mm512_set1_pd(0x1p-20)), _CMP_NGE_UQ);
  const __mmask8 known = _mm512_cmp_pd_mask(_mm512_abs_pd(t), most, _CMP_LE_OQ) & _mm512_cmp_pd_mask(_mm512_abs_pd(x), most, _CMP_LE_OQ) &
                         _mm512_cmp_pd_mask(_mm512_abs_pd(over), most, _CMP_LE_OQ) & _mm512_cmp_pd_mask(over, nothing, _CMP_NEQ_OQ);
  return (unsigned)(uint8_t)(small | ~known);
}

#include "gemm/tile/lanes.inc.h"
