/* Quantises under any spec by interpreting its keys, one tile in each lane. Codes are written one to a byte; mxh_pack_codes then packs 4-bit
 * ones. The source is read with a row step and a column step, so that a transposed matrix needs no copy. */
#include "hip_backend/kernels/device/tile.h"

MXH_DEVICE void mxd_put_scale(const quantize_args &a, const mxd_plan &p, const mxd_tile &t, uint32_t code) {
  const bool by_row = p.scale_rows == p.rows;
  for (uint64_t r = 0; r < (by_row ? t.rows : 1); r++) {
    const uint64_t at = ((by_row ? t.row + r : t.band) * p.scale_cols + t.tile) * (uint64_t)p.scale_bytes;
    for (int i = 0; i < p.scale_bytes; i++) a.scales[at + (uint64_t)i] = (uint8_t)(code >> 8 * i);
  }
}

MXH_KERNEL(mxh_quantize, quantize_args, a, 256) {
  const mxd_plan &p = mxh_ref(a.plan);
  const uint64_t n = p.bands * p.tiles, step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t index = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); index < n; index += step) {
    const mxd_tile t = mxd_tile_at(p, index);
    if (p.elem.kind == MX_KIND_NONE) {
      for (uint64_t r = 0; r < t.rows; r++)
        for (uint64_t c = 0; c < t.cols; c++) {
          const float v = mxd_at(a.x, t.row + r, t.col + c);
          if (mxd_isnan(v) && p.spec.elem_nan == MX_ELEM_NAN_ERROR) mxh_atomic_max(a.refused, 1);
          const bool narrow = p.spec.elem == MX_ELEM_BFLOAT16 && !mxd_isnan(v);
          a.values[(t.row + r) * p.cols + t.col + c] = mxh_bits<uint32_t>(narrow ? (float)mxd_to_bf16((double)v) : v);
        }
      mxd_put_scale(a, p, t, mxd_code_of_one(p));
      continue;
    }
    const mxd_stats st = mxd_tile_stats(p, a.x, t, index);
    mxd_scale s, four;
    const int candidates = mxd_block_scale(&s, p, st, 0);
    if (!candidates) {
      mxh_atomic_max(a.refused, 1);
      continue;
    }
    if (candidates == 2 && mxd_block_scale(&four, p, st, 1) && mxd_tile_error(p, a.x, t, four, a.given) < mxd_tile_error(p, a.x, t, s, a.given))
      s = four;
    const bool hif4 = p.spec.scale_rule == MX_SCALE_RULE_HIF4, plain = s.how != MXD_USED || !mxd_finite(s.used) || s.used == 0;
    const uint32_t micro = hif4 ? mxd_hif4_micro(p, a.x, t, s) : 0;
    const double rec = hif4 && !plain ? mxd_to_bf16(mxd_quotient(1, s.used)) : 0;
    for (uint64_t r = 0; r < t.rows; r++)
      for (uint64_t c = 0; c < p.block_cols; c++) {
        const bool padding = c >= t.cols;
        const float v = padding ? 0 : mxd_at(a.x, t.row + r, t.col + c);
        if (mxd_isnan(v) && p.spec.elem_nan == MX_ELEM_NAN_ERROR) mxh_atomic_max(a.refused, 1);
        uint32_t code;
        float value;
        if (hif4) {
          mxd_encoding nearest = p.encode;
          nearest.round = p.spec.hif4_ties == MX_HIF4_TIES_EVEN ? MX_ROUND_RNE : MX_ROUND_RNA;
          double y = plain ? mxd_scaled(p, s, v) : mxd_isnan(v) ? mxd_widen(v) : (double)v * rec / mxd_hif4_factor(micro, (uint32_t)c);
          if (!plain && mxd_isnan(y) && !mxd_isnan(v)) y = mxd_with_sign(y, true);
          code = mxd_encode(p.elem, y, nearest, 0);
        } else
          code = mxd_element(p, s, v, mxd_element_random(p, (t.row + r) * p.cols + t.col + c, padding, a.given), &value);
        a.codes[(t.row + r) * p.cols_padded + t.col + c] = (uint8_t)code;
      }
    mxd_put_scale(a, p, t, s.code);
    if (hif4)
      for (uint32_t i = 0; i < 3; i++) a.micro[(t.row * p.scale_cols + t.tile) * 3 + i] = (uint8_t)(micro >> 8 * i);
  }
}

/* Packs two codes into each byte, in the order of spec.nibble. */
MXH_KERNEL(mxh_pack_codes, pack_codes_args, a, 256) {
  const uint64_t bytes = a.cols_padded / 2, n = a.rows * bytes, step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < n; i += step) {
    const uint64_t r = i / bytes, b = i % bytes, half = a.block_cols / 2;
    uint64_t low = 2 * b, high = 2 * b + 1;
    if (a.nibble == MX_NIBBLE_HIGH_FIRST) {
      low = 2 * b + 1;
      high = 2 * b;
    }
    if (a.nibble == MX_NIBBLE_HALF_BLOCK) {
      low = b / half * a.block_cols + b % half;
      high = low + half;
    }
    const uint32_t x = low < a.cols_quantised ? (uint32_t)a.codes[r * a.cols_padded + low] & 15 : 0;
    const uint32_t y = high < a.cols_quantised ? (uint32_t)a.codes[r * a.cols_padded + high] & 15 : 0;
    a.out[i] = (uint8_t)(x | y << 4);
  }
}
