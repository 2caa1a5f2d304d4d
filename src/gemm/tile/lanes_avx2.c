/* Compiles the kernels on decoded panels for AVX2 and FMA. */
#include <immintrin.h>

#include "gemm/tile/tile.h"

#define vf __m256
#define vd __m256d
#define WF 8
#define WD 4
#define ROWS 8
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
#define ADD_TERM(p, t) add_term(p, t)

/* Rounds to odd first, as in lanes_scalar.c. */
static inline void add_term(float *p, __m256d t) {
  const __m256d x = _mm256_cvtps_pd(_mm_loadu_ps(p)), s = _mm256_add_pd(x, t), back = _mm256_sub_pd(s, x);
  const __m256d rest = _mm256_add_pd(_mm256_sub_pd(x, _mm256_sub_pd(s, back)), _mm256_sub_pd(t, back));
  const __m256i cut = _mm256_castpd_si256(_mm256_cmp_pd(rest, _mm256_setzero_pd(), _CMP_NEQ_OQ)), bits = _mm256_castpd_si256(s);
  const __m256i one = _mm256_set1_epi64x(1), even = _mm256_cmpeq_epi64(_mm256_and_si256(bits, one), _mm256_setzero_si256());
  /* one place up if rest has the sign of s, otherwise one place down */
  const __m256d step = _mm256_blendv_pd(_mm256_castsi256_pd(one), _mm256_castsi256_pd(_mm256_set1_epi64x(-1)), _mm256_xor_pd(rest, s));
  const __m256i odd = _mm256_add_epi64(bits, _mm256_and_si256(_mm256_castpd_si256(step), _mm256_and_si256(cut, even)));
  _mm_storeu_ps(p, _mm256_cvtpd_ps(_mm256_castsi256_pd(odd)));
}

#include "gemm/tile/lanes.inc.h"
