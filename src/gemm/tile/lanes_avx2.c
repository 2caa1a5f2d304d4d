/* Compiles the kernels on decoded panels for AVX2 and FMA. */
#include <float.h>
#include <immintrin.h>

#include "gemm/tile/tile.h"

#define vf __m256
#define vd __m256d
#define WF 8
#define WD 4
#define ROWS 8
#define HIGH 4
#define ACROSS 2
#define TABLE mxi_gemm_lanes_avx2
#define F_LOAD(p) _mm256_loadu_ps(p)
#define F_STORE(p, x) _mm256_storeu_ps(p, x)
#define F_SET1(x) _mm256_set1_ps(x)
#define F_ADD(a, b) _mm256_add_ps(a, b)
#define F_MUL(a, b) _mm256_mul_ps(a, b)
#define F_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define D_LOAD(p) _mm256_loadu_pd(p)
#define D_SET1(x) _mm256_set1_pd(x)
#define D_ADD(a, b) _mm256_add_pd(a, b)
#define D_SUB(a, b) _mm256_sub_pd(a, b)
#define D_ABS(x) _mm256_andnot_pd(_mm256_set1_pd(-0.0), x)
#define D_STORE(p, x) _mm256_storeu_pd(p, x)
#define D_MUL(a, b) _mm256_mul_pd(a, b)
#define D_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define D_EXACT(a, b, c) _mm256_fmadd_pd(a, b, c)
#define D_STORE_F32(p, x) _mm_storeu_ps(p, _mm256_cvtpd_ps(x))
#define D_LOAD_F32(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#define D_NUMBER(x) _mm256_and_pd(x, _mm256_cmp_pd(x, x, _CMP_ORD_Q))
#define D_TO_ODD(s, rest) to_odd(s, rest)
#define STORE_NEAR(p, x, near, error) store_near(p, x, near, error)
#define ADD_TERM(p, t) add_term(p, t)
#define ADD_QUOTIENT(p, dot, up, under) add_quotient(p, dot, up, under)

/* One place up if rest has the sign of s, otherwise one place down, where something was cut and the last place is even. */
static inline __m256d to_odd(__m256d s, __m256d rest) {
  const __m256i cut = _mm256_castpd_si256(_mm256_cmp_pd(rest, _mm256_setzero_pd(), _CMP_NEQ_OQ)), bits = _mm256_castpd_si256(s);
  const __m256i one = _mm256_set1_epi64x(1), even = _mm256_cmpeq_epi64(_mm256_and_si256(bits, one), _mm256_setzero_si256());
  const __m256d step = _mm256_blendv_pd(_mm256_castsi256_pd(one), _mm256_castsi256_pd(_mm256_set1_epi64x(-1)), _mm256_xor_pd(rest, s));
  return _mm256_castsi256_pd(_mm256_add_epi64(bits, _mm256_and_si256(_mm256_castpd_si256(step), _mm256_and_si256(cut, even))));
}

static inline __m256d add_to_odd(__m256d x, __m256d t) {
  const __m256d s = _mm256_add_pd(x, t), back = _mm256_sub_pd(s, x);
  return to_odd(s, _mm256_add_pd(_mm256_sub_pd(x, _mm256_sub_pd(s, back)), _mm256_sub_pd(t, back)));
}

/* Rounds to odd first, as in lanes_scalar.c. */
static inline void add_term(float *p, __m256d t) { _mm_storeu_ps(p, _mm256_cvtpd_ps(add_to_odd(D_LOAD_F32(p), t))); }

static inline unsigned store_near(float *p, __m256d x, __m256d near, __m256d error) {
  const __m128 from = _mm256_cvtpd_ps(_mm256_sub_pd(x, near)), to = _mm256_cvtpd_ps(_mm256_add_pd(x, near));
  const __m256d wide = _mm256_cvtps_pd(from), nothing = _mm256_setzero_pd(), most = _mm256_set1_pd(FLT_MAX);
  const __m256d zero = _mm256_cmp_pd(wide, nothing, _CMP_EQ_OQ), unknown = _mm256_cmp_pd(error, nothing, _CMP_NEQ_UQ);
  const __m256d same = _mm256_and_pd(_mm256_cmp_pd(wide, _mm256_cvtps_pd(to), _CMP_EQ_OQ), _mm256_cmp_pd(D_ABS(wide), most, _CMP_LE_OQ));
  _mm_storeu_ps(p, _mm256_cvtpd_ps(_mm256_add_pd(wide, nothing)));
  return (unsigned)(~_mm256_movemask_pd(same) | _mm256_movemask_pd(_mm256_and_pd(zero, unknown))) & 15;
}

/* The quotient is rounded to odd, by the sign of the remainder; lanes_avx512.c says why this is enough. */
static inline unsigned add_quotient(float *p, __m256d dot, __m256d up, __m256d under) {
  const __m256d x = D_LOAD_F32(p), t = _mm256_mul_pd(dot, up), nothing = _mm256_setzero_pd(), most = _mm256_set1_pd(DBL_MAX);
  const __m256d stored_as_zeros = _mm256_and_pd(_mm256_cmp_pd(dot, nothing, _CMP_EQ_OQ), _mm256_cmp_pd(under, nothing, _CMP_EQ_OQ));
  const __m256d over = _mm256_blendv_pd(under, _mm256_set1_pd(1), stored_as_zeros); /* 0 / 0 is 0 */
  const __m256d about = _mm256_add_pd(_mm256_div_pd(t, over), nothing), rest = _mm256_fnmadd_pd(about, over, t);
  const __m256d q = to_odd(about, _mm256_xor_pd(rest, _mm256_and_pd(over, _mm256_set1_pd(-0.0)))), sum = add_to_odd(x, q);
  _mm_storeu_ps(p, _mm256_cvtpd_ps(sum));
  const __m256d small = _mm256_and_pd(_mm256_cmp_pd(rest, nothing, _CMP_NEQ_OQ),
                                      _mm256_cmp_pd(D_ABS(sum), _mm256_mul_pd(D_ABS(q), _mm256_set1_pd(0x1p-20)), _CMP_NGE_UQ));
  const __m256d known = _mm256_and_pd(_mm256_and_pd(_mm256_cmp_pd(D_ABS(t), most, _CMP_LE_OQ), _mm256_cmp_pd(D_ABS(x), most, _CMP_LE_OQ)),
                                      _mm256_and_pd(_mm256_cmp_pd(D_ABS(over), most, _CMP_LE_OQ), _mm256_cmp_pd(over, nothing, _CMP_NEQ_OQ)));
  return (unsigned)(_mm256_movemask_pd(small) | ~_mm256_movemask_pd(known)) & 15;
}

#include "gemm/tile/lanes.inc.h"
