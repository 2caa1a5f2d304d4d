/* Defines the few operations in which codes_amx.c is written: tiles of AMX, and sixteen binary32 lanes. tests/lib/tiles_played.c has the same
 * names in plain C, so that the loops of the kernel are tested on machines without AMX. The number of a tile must be a constant.
 *
 * They are assembly because gcc 12's intrinsics do not tell the compiler that they read memory. */
#ifndef MX_GEMM_CODES_TILES_AMX_H
#define MX_GEMM_CODES_TILES_AMX_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* The layout that ldtilecfg reads. */
typedef struct tile_shapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes[16]; /* bytes in a row */
  uint8_t rows[16];
} tile_shapes;

#define TILE_CONFIGURE(shapes) __asm__ volatile("ldtilecfg %0" ::"m"(*(shapes)))
#define TILE_RELEASE() __asm__ volatile("tilerelease")
#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm%c0" ::"i"(t))
#define TILE_LOAD(t, from, stride) __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"((size_t)(stride)), "i"(t) : "memory")
#define TILE_STORE(t, to, stride) __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"((size_t)(stride)), "i"(t) : "memory")
/* c[m][n] += row m of a . column n of b, in signed bytes; b has four consecutive k side by side */
#define TILE_DOT(c, a, b) __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b))

typedef __m512 lanes;
static inline lanes lanes_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void lanes_store(float *p, lanes x) { _mm512_storeu_ps(p, x); }
/* acc + dots * (sa * sb), rounded once if sa * sb is exact */
static inline lanes lanes_add_term(lanes acc, const int32_t *dots, float sa, lanes sb) {
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(dots)), _mm512_mul_ps(_mm512_set1_ps(sa), sb), acc);
}

#endif
