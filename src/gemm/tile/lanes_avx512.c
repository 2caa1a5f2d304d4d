/* Kernels on decoded panels with AVX-512. */
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
#define D_STORE(p, x) _mm512_storeu_pd(p, x)
#define D_MUL(a, b) _mm512_mul_pd(a, b)
#define D_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define D_EXACT(a, b, c) _mm512_fmadd_pd(a, b, c)
#define D_STORE_F32(p, x) _mm256_storeu_ps(p, _mm512_cvtpd_ps(x))
#define ADD_TERM(p, t) add_term(p, t)

/* By way of round to odd: towards zero, and the last place set where down and up differ (nothing but NaN is unordered, and stays NaN). */
static inline void add_term(float *p, __m512d t) {
  const __m512d x = _mm512_cvtps_pd(_mm256_loadu_ps(p));
  const __m512d zero = _mm512_add_round_pd(x, t, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __m512d down = _mm512_add_round_pd(x, t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  const __m512d up = _mm512_add_round_pd(x, t, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
  const __mmask8 cut = _mm512_cmp_pd_mask(down, up, _CMP_NEQ_OQ);
  const __m512i bits = _mm512_castpd_si512(zero), odd = _mm512_mask_or_epi64(bits, cut, bits, _mm512_set1_epi64(1));
  _mm256_storeu_ps(p, _mm512_cvtpd_ps(_mm512_castsi512_pd(odd)));
}

#include "gemm/tile/lanes.inc.h"
