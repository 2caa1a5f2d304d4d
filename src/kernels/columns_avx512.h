/* Quantises columns of a matrix as it lies in memory, in blocks of sixteen rows to e2m1: a lane holds a column, so that nothing is turned but the
 * codes, and random words are drawn in the lanes where they are needed. Part of stages_avx512.c. */

#include "kernels/rotate.inc.h"

enum { COLUMN_GROUPS = MX_PIECE_BLOCKS / 16 };

/* Stage 1: copies sixteen columns of 16 * groups rows to y, rotated if `in` says so, and finds the maxima of their blocks, those of sixteen columns
 * after those of the sixteen rows above. */
static void columns_load(float *y, mx_piece *p, const float *x, size_t ld, size_t groups, size_t ahead, const mx_input *in) {
  for (size_t g = 0; g < groups; g++) {
    vf t[W];
    vi most = vi_set(0);
#pragma GCC unroll 16
    for (size_t k = 0; k < W; k++) {
      __builtin_prefetch(x + (16 * g + k + ahead) * ld, 0, 2);
      t[k] = vf_load(x + (16 * g + k) * ld);
    }
    if (in->had_size) {
      rotate_down(t, in, W);
#pragma GCC unroll 16
      for (size_t k = 0; k < W; k++) t[k] = finished(t[k], vf_set(in->factor));
    }
#pragma GCC unroll 16
    for (size_t k = 0; k < W; k++) {
      most = vi_max(most, magnitude_of(t[k]));
      vf_store(y + 16 * (16 * g + k), t[k]);
    }
    vi_store(p->amax + 16 * g, most);
  }
}

/* The counters of sixteen columns, the even ones and the odd ones, for blocks of four rows. */
typedef struct column_counters {
  vi even, odd;
  uint32_t high;
} column_counters;

static column_counters column_counters_of(uint64_t block, uint32_t apart) {
  const vi pairs = _mm512_mullo_epi32(_mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), vi_set((int32_t)apart)),
           first = vi_set((int32_t)(uint32_t)block);
  return (column_counters){vi_add(pairs, first), vi_add(vi_add(pairs, first), vi_set((int32_t)apart)), (uint32_t)(block >> 32)};
}

/* The random words of sixteen rows, of which the first four have these counters. */
INLINE void column_words(vi words[16], const column_counters *at, int32_t row_block, const philox_keys *keys) {
#pragma GCC unroll 2
  for (int j = 0; j < 4; j += 2) {
    const vi down = vi_set(row_block + j), further = vi_set(row_block + j + 1);
    const vi counters[GROUPS] = {vi_add(at->even, down), vi_add(at->odd, down), vi_add(at->even, further), vi_add(at->odd, further)};
    vi c[4][GROUPS];
    words_of_counters(c, counters, keys, at->high);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      words[4 * j + i] = vi_even_odd(c[i][0], c[i][1]);
      words[4 * j + 4 + i] = vi_even_odd(c[i][2], c[i][3]);
    }
  }
}

/* Puts the code of each lane, with the sign of y, above those of the seven rows before it. */
INLINE vi joined(vi eight, vi magnitude, __m512 y) {
  const vi code = _mm512_ternarylogic_epi32(vi_set(7), magnitude, _mm512_srli_epi32(vf_bits(y), 28), 0xCA); /* a ? b : c */
  return _mm512_shrdi_epi32(eight, code, 4);
}

INLINE void columns_by(uint8_t *out, size_t stride, const mx_stages *f, const mx_piece *p, size_t groups, const int at_random, const int drop) {
  const byte_way w = way_of(f);
  const random_way r = at_random ? random_way_of(f) : (random_way){.bytes = w};
  const philox_keys keys = keys_of(f->plan->spec.seed);
  const column_counters at = column_counters_of(p->index / 4, (uint32_t)(p->apart / 4));
  const int up = 23 - f->elem.man_bits;
  /* What random_code() and low_code() have above the code. */
  const vi offset = vi_set(at_random ? (f->elem.min_normal >> up) - (1 << f->elem.man_bits) : f->elem.min_normal >> up);
  for (size_t g = 0; g < groups; g++) {
    const vf factor = vf_load(p->f0 + 16 * g);
    vi words[16], eight[2] = {vi_set(0), vi_set(0)};
    if (at_random) column_words(words, &at, (int32_t)(4 * g), &keys);
#pragma GCC unroll 16
    for (size_t k = 0; k < 16; k++) {
      __m512 y = vf_mul(vf_load(p->x + 16 * (16 * g + k)), factor);
      if (drop) y = without_negative_zero(y);
      eight[k / 8] = joined(eight[k / 8], vi_sub(at_random ? random_code(y, words[k], &r) : low_code(y, &w), offset), y);
    }
    uint64_t sixteen[2][8]; /* of columns 0, 1, 4, 5 and so on, and of those between */
    vi_store(sixteen[0], _mm512_unpacklo_epi32(eight[0], eight[1]));
    vi_store(sixteen[1], _mm512_unpackhi_epi32(eight[0], eight[1]));
#pragma GCC unroll 16
    for (size_t c = 0; c < 16; c++) memcpy(out + c * stride + 8 * g, &sixteen[c / 2 % 2][c / 4 * 2 + c % 2], 8);
  }
}

/* Stage 3 of such a piece, whose rows are those of the tensor `out`. */
static void columns_codes(uint8_t *out, size_t stride, const mx_stages *f, const mx_piece *p, size_t groups) {
  const int drop = (f->elem.way == MX_WAY_SR ? f->stochastic : f->elem.plain) == MX_PLAIN_DROP;
  if (f->elem.way == MX_WAY_SR && drop)
    columns_by(out, stride, f, p, groups, 1, 1);
  else if (f->elem.way == MX_WAY_SR)
    columns_by(out, stride, f, p, groups, 1, 0);
  else if (drop)
    columns_by(out, stride, f, p, groups, 0, 1);
  else
    columns_by(out, stride, f, p, groups, 0, 0);
}
