/** Quantises a tile of the source (SPEC 3.2, steps 5 to 11), one tile in each lane. */
#ifndef MXD_TILE_H
#define MXD_TILE_H

#include "element.h"
#include "hip_backend/run/args.h"

MXH_DEVICE float mxd_at(const mxd_source &x, uint64_t r, uint64_t c) { return x.at[(int64_t)r * x.row_step + (int64_t)c * x.col_step]; }

/* Where a tile lies. A short tile is filled up with +0 along its columns, but not with rows. */
struct mxd_tile {
  uint64_t band, tile, row, col, rows, cols; /* cols: those that the source has */
};
MXH_DEVICE mxd_tile mxd_tile_at(const mxd_plan &p, uint64_t index) {
  mxd_tile t;
  t.band = index / p.tiles;
  t.tile = index % p.tiles;
  t.row = t.band * p.block_rows;
  t.col = t.tile * p.block_cols;
  t.rows = p.rows - t.row < p.block_rows ? p.rows - t.row : p.block_rows;
  t.cols = p.cols - t.col < p.block_cols ? p.cols - t.col : p.block_cols;
  return t;
}

MXH_DEVICE mxd_stats mxd_tile_stats(const mxd_plan &p, const mxd_source &x, const mxd_tile &t, uint64_t index) {
  mxd_stats st = {};
  st.index = index;
  double sum = 0, squares = 0, a;
  for (uint64_t r = 0; r < t.rows; r++)
    for (uint64_t c = 0; c < t.cols; c++) {
      const float v = mxd_at(x, t.row + r, t.col + c);
      if (mxd_counts(&a, p, v)) st.amax = mxd_larger(st.amax, a);
      sum += (double)v;
    }
  if (p.spec.scale_rule != MX_SCALE_RULE_QUEST) return st;
  const double n = (double)(p.block_rows * p.block_cols), mean = sum / n;
  for (uint64_t r = 0; r < t.rows; r++)
    for (uint64_t c = 0; c < t.cols; c++) {
      const double d = (double)mxd_at(x, t.row + r, t.col + c) - mean;
      squares += d * d;
    }
  squares += (n - (double)(t.rows * t.cols)) * mean * mean;
  st.std = mxh_sqrt(squares / n);
  return st;
}

/* The error of a candidate scale over the tile. */
MXH_DEVICE float mxd_tile_error(const mxd_plan &p, const mxd_source &x, const mxd_tile &t, const mxd_scale &s, mxh_ptr<const uint32_t> given) {
  const int kind = p.spec.select_error;
  const bool lanes = kind != MX_SELECT_ERROR_ABSMAX && p.spec.select_sum == MX_SELECT_SUM_TORCH16;
  float lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (uint64_t r = 0; r < t.rows; r++)
    for (uint64_t c = 0; c < p.block_cols; c++) {
      const bool padding = c >= t.cols;
      const float v = padding ? 0 : mxd_at(x, t.row + r, t.col + c);
      float value;
      mxd_element(p, s, v, mxd_element_random(p, (t.row + r) * p.cols + t.col + c, padding, given), &value);
      const float d = mxd_distance(p, s, value, v), e = kind == MX_SELECT_ERROR_MSE ? d * d : mxd_abs(d);
      float &sum = lane[lanes ? c % 8 : 0];
      if (kind == MX_SELECT_ERROR_ABSMAX)
        sum = mxd_isnan(sum) || e <= sum ? sum : e;
      else
        sum = sum + e;
    }
  float sum = lane[0];
  for (int i = 1; lanes && i < 8; i++) sum = sum + lane[i];
  return sum;
}

/* Levels 2 and 3 of HiFloat4: the bits of micro, and what element i is divided by. */
MXH_DEVICE uint32_t mxd_hif4_micro(const mxd_plan &p, const mxd_source &x, const mxd_tile &t, const mxd_scale &s) {
  if (s.how != MXD_USED || !mxd_finite(s.used) || s.used == 0) return 0;
  const double rec = mxd_to_bf16(mxd_quotient(1, s.used));
  uint32_t micro = 0;
  for (uint32_t g = 0; g < 8; g++) {
    double four[2] = {0, 0}, a;
    for (uint32_t i = 0; i < 8; i++) {
      const uint64_t c = 8 * g + i;
      const float v = c < t.cols ? mxd_at(x, t.row, t.col + c) : 0;
      if (!mxd_isnan(v) && mxd_counts(&a, p, v)) four[i / 4] = mxd_larger(four[i / 4], a);
    }
    const bool doubled = mxd_larger(four[0], four[1]) * rec >= 4;
    micro |= doubled ? 1u << g : 0;
    for (uint32_t h = 0; h < 2; h++)
      if (four[h] * rec * (doubled ? 0.5 : 1) >= 2) micro |= 1u << (8 + 2 * g + h);
  }
  return micro;
}
MXH_DEVICE double mxd_hif4_factor(uint32_t micro, uint32_t i) { return (double)(1u << ((micro >> (i / 8) & 1) + (micro >> (8 + i / 4) & 1))); }

/* Gives every lane the largest of the numbers that the lanes of a block pass in. The block has a power of two of at most MXD_BLOCK_LARGEST
 * lanes, all of which call this, once in a kernel. */
enum { MXD_BLOCK_LARGEST = 256 };
MXH_DEVICE uint32_t mxd_block_largest(uint32_t mine) {
  MXH_SHARED(uint32_t, most, MXD_BLOCK_LARGEST);
  const unsigned t = mxh_thread_id();
  most[t] = mine;
  mxh_barrier();
  for (unsigned half = mxh_block_size() / 2; half; half /= 2) {
    if (t < half && most[t + half] > most[t]) most[t] = (uint32_t)most[t + half];
    mxh_barrier();
  }
  return most[0];
}

#endif
