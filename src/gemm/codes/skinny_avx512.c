/* Computes a product with few rows of A. B is read once, two panels of sixteen rows at a time, transposed in registers and never stored. Each
 * word of A is loaded once for both panels, because with eight rows the two loads per cycle used to be the limit.
 *
 * Now memory is the limit. Thirty-two rows at once are too many streams for the hardware's prefetching, so the kernel prefetches the next
 * two panels itself, a few lines between blocks. Sixteen lines at a time would fill the queue that the current rows need too. */
#include "gemm/codes/codes_avx512.h"

#define INLINE static inline __attribute__((always_inline))

typedef struct
    parts { /* 128 codes of each row before the last step of the transposition: part l of quarter i has four words of each of four rows */
  __m512i of[4][4];
} parts;

/* Loads 64 bytes of rows i, i + 4, i + 8 and i + 12, and puts their 128-bit parts side by side. */
INLINE void take_rows(parts *to, const uint8_t *row, size_t stride, size_t i) {
  row += i * stride;
  const __m512i a = _mm512_loadu_si512(row), b = _mm512_loadu_si512(row + 4 * stride), c = _mm512_loadu_si512(row + 8 * stride),
                d = _mm512_loadu_si512(row + 12 * stride);
  const __m512i ab = _mm512_shuffle_i32x4(a, b, 0x44), ab2 = _mm512_shuffle_i32x4(a, b, 0xEE), cd = _mm512_shuffle_i32x4(c, d, 0x44),
                cd2 = _mm512_shuffle_i32x4(c, d, 0xEE);
  to->of[0][i] = _mm512_shuffle_i32x4(ab, cd, 0x88);
  to->of[1][i] = _mm512_shuffle_i32x4(ab, cd, 0xDD);
  to->of[2][i] = _mm512_shuffle_i32x4(ab2, cd2, 0x88);
  to->of[3][i] = _mm512_shuffle_i32x4(ab2, cd2, 0xDD);
}

/* Moves word c of row r of a part to lane r of x[c]. */
INLINE void turn(__m512i x[4], const __m512i part[4]) {
  const __m512i a = _mm512_unpacklo_epi32(part[0], part[1]), b = _mm512_unpackhi_epi32(part[0], part[1]),
                c = _mm512_unpacklo_epi32(part[2], part[3]), d = _mm512_unpackhi_epi32(part[2], part[3]);
  x[0] = _mm512_unpacklo_epi64(a, c);
  x[1] = _mm512_unpackhi_epi64(a, c);
  x[2] = _mm512_unpacklo_epi64(b, d);
  x[3] = _mm512_unpackhi_epi64(b, d);
}

/* Broadcasts the word at p by an explicit load, since compilers would load it again for each of its two uses. */
INLINE __m512i spread(const uint32_t *p) {
  __m512i w;
  __asm__("vpbroadcastd %1, %0" : "=v"(w) : "m"(*p));
  return w;
}

/* Written as assembly so that the compiler does not fold a load into it. */
INLINE __m512i dpbusd(__m512i sum, __m512i x, __m512i word) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(word));
  return sum;
}

INLINE void ask(const uint8_t *p, size_t line) { _mm_prefetch((const char *)((uintptr_t)p + line * 64), _MM_HINT_T0); }

/* Prefetches as many lines in a step of 32 codes as a step uses: from both panels side by side if there is little other work, which keeps
 * more of the memory busy, otherwise from one panel after the other. */
INLINE void ask_ahead(const mxg_stream *from, size_t step, size_t steps, const size_t rows) {
  const size_t half = steps / 2, second = step >= half;
#pragma GCC unroll 8
  for (size_t i = 0; i < 8; i++)
    if (rows <= 4)
      ask(from->ahead[i / 4], step * 4 + i % 4);
    else
      ask(from->ahead[second], (step - second * half) * 8 + i);
}

/* Sums of a block for a row of A and sixteen columns, in one chain or in two that are added at the end: with four words in a block, one
 * chain would make the processor wait too long. */
typedef struct sums {
  __m512i even, odd;
} sums;

INLINE void multiply(sums *s, __m512i even, __m512i odd, __m512i word_even, __m512i word_odd, const int chains) {
  s->even = dpbusd(s->even, even, word_even);
  if (chains == 2)
    s->odd = dpbusd(s->odd, odd, word_odd);
  else
    s->even = dpbusd(s->even, odd, word_odd);
}

/* acc + dot * sa * sb, rounded once. Powers of two are multiplied by adding exponents, which leaves the multipliers to the dots. */
INLINE __m512 add_scaled(__m512 acc, const sums *s, __m512i sa, __m512 sb, const int chains, const mxg_scale_form form) {
  const __m512i dot = chains == 2 ? _mm512_add_epi32(s->even, s->odd) : s->even;
  const __m512 scale =
      form == MXG_POWERS ? _mm512_castsi512_ps(_mm512_add_epi32(sa, _mm512_castps_si512(sb))) : _mm512_mul_ps(_mm512_castsi512_ps(sa), sb);
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, acc);
}

/* The scales of block k of a panel, in the form that add_scaled() takes. */
INLINE __m512 scales_at(const mxg_stream *from, size_t p, size_t k, const mxg_scale_form form) {
  if (form == MXG_NUMBERS) return _mm512_load_ps(from->s[p] + k * L);
  const unsigned shift = form == MXG_POWERS ? 23 : from->codes->shift;
  const __m512i turned = _mm512_rolv_epi32(_mm512_load_si512(from->turns[p] + k / 4 * L), _mm512_set1_epi32((int)(shift - k % 4 * 8)));
  const __m512i bits = _mm512_and_si512(turned, _mm512_set1_epi32((int)(UINT32_C(255) << shift)));
  if (form == MXG_POWERS) return _mm512_castsi512_ps(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x3F800000)));
  return _mm512_mul_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(from->codes->factor));
}

/* Handles blocks of 8 * groups elements, with 32 codes in a step and 128 in a round of the outer loop. */
INLINE void panels(float *out, const mxg_packed *a, const mxg_stream *from, const size_t groups, const size_t rows, const mxg_scale_form form) {
  const size_t blocks = 4 / groups, steps = a->kb / blocks, scale_lines = 2 / groups;
  const size_t stride = from->stride;
  const int in_registers = 2 * rows + 4 * groups <= 24, chains = groups == 4 ? 2 : 1;
  __m512 acc[L][2];
  parts x[2][2]; /* the current and the next ones, of each panel */
#pragma GCC unroll 16
  for (size_t r = 0; r < rows; r++) acc[r][0] = acc[r][1] = _mm512_setzero_ps();
  for (size_t i = 0; i < 4; i++)
    for (size_t p = 0; p < 2; p++) take_rows(&x[0][p], from->first[p], stride, i);
  for (size_t step = 0; step < steps; step++) {
    const size_t l = step % 4, turn_of = step / 4, next = step + 4 < steps ? turn_of + 1 : turn_of;
    __m512i words[2][4];
    ask_ahead(from, step, steps, rows);
    if (scale_lines || step % 2) ask(from->scales_ahead, scale_lines ? step : step / 2);
#pragma GCC unroll 2
    for (size_t p = 0; p < 2; p++) {
      turn(words[p], x[turn_of % 2][p].of[l]);
      take_rows(&x[(turn_of + 1) % 2][p], from->first[p] + next * 64, stride, l);
    }
#pragma GCC unroll 2
    for (size_t b = 0; b < blocks; b++) {
      const size_t k = step * blocks + b;
      __m512i even[2][4], odd[2][4];
      __m512 sb[2];
#pragma GCC unroll 2
      for (size_t p = 0; p < 2; p++) {
        unpack_in(even[p], odd[p], words[p] + b * groups, groups);
        sb[p] = scales_at(from, p, k, form);
      }
      const uint32_t *record = a->few + k * rows * (2 + 2 * groups), *word = record + 2 * rows;
#pragma GCC unroll 16
      for (size_t r = 0; r < rows; r++, word += 2 * groups) {
        const __m512i offset = spread(record + r);
        sums dots[2] = {{offset, _mm512_setzero_si512()}, {offset, _mm512_setzero_si512()}};
#pragma GCC unroll 4
        for (size_t g = 0; g < groups; g++) {
          const __m512i word_even = spread(word + 2 * g), word_odd = spread(word + 2 * g + 1);
#pragma GCC unroll 2
          for (size_t p = 0; p < 2; p++) multiply(&dots[p], even[p][g], odd[p][g], word_even, word_odd, chains);
        }
        const __m512i sa = spread(record + rows + r);
#pragma GCC unroll 2
        for (size_t p = 0; p < 2; p++) {
          acc[r][p] = add_scaled(acc[r][p], &dots[p], sa, sb[p], chains, form);
          if (!in_registers)
            __asm__("" : "+m"(acc[r][p])); /* otherwise the compiler keeps some of these in registers and spills what is used more often */
        }
      }
    }
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < rows; r++)
    for (size_t p = 0; p < 2; p++) _mm512_storeu_ps(out + (p * L + r) * L, acc[r][p]);
}

/* A single row runs as two, since it has too little work to spread its prefetches evenly. */
#define EACH(groups, form)                                                                                                                     \
  do {                                                                                                                                         \
    if (a->few_rows == 16)                                                                                                                     \
      panels(out, a, from, groups, 16, form);                                                                                                  \
    else if (a->few_rows == 8)                                                                                                                 \
      panels(out, a, from, groups, 8, form);                                                                                                   \
    else if (a->few_rows == 4)                                                                                                                 \
      panels(out, a, from, groups, 4, form);                                                                                                   \
    else                                                                                                                                       \
      panels(out, a, from, groups, 2, form);                                                                                                   \
  } while (0)

void mxi_gemm_skinny_avx512(float *out, const mxg_packed *a, const mxg_stream *from) {
  if (a->groups == 4 && from->form == MXG_POWERS)
    EACH(4, MXG_POWERS);
  else if (a->groups == 4 && from->form == MXG_LINEAR)
    EACH(4, MXG_LINEAR);
  else if (a->groups == 4)
    EACH(4, MXG_NUMBERS);
  else if (from->form == MXG_LINEAR)
    EACH(2, MXG_LINEAR);
  else
    EACH(2, MXG_NUMBERS);
}
