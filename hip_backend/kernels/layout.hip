/* Converts between layouts of scales and of codes: SPEC 7. */
#include "hip_backend/run/args.h"
#include "mxgold/layout.h"

MXH_CONSTANT uint32_t mxd_row_pad[] = {
#define MX_LAYOUT(id, name, row_pad, k_pad, index, source) row_pad,
#include "formats/layouts.def"
#undef MX_LAYOUT
};
MXH_CONSTANT uint32_t mxd_k_pad[] = {
#define MX_LAYOUT(id, name, row_pad, k_pad, index, source) k_pad,
#include "formats/layouts.def"
#undef MX_LAYOUT
};

MXH_DEVICE uint64_t mxd_layout_index(int layout, uint64_t rows, uint64_t padded_k, uint64_t r, uint64_t k) {
  switch (layout) {
  case MX_LAYOUT_NV128X4:
    return (r / 128 * (padded_k / 4) + k / 4) * 512 + r % 32 * 16 + r % 128 / 32 * 4 + k % 4;
  case MX_LAYOUT_NV8X4:
    return (r / 8 * (padded_k / 4) + k / 4) * 32 + r % 8 * 4 + k % 4;
  case MX_LAYOUT_AMD_SHUFFLE:
  case MX_LAYOUT_AMD_SHUFFLE_256:
    return r / 32 * 32 * padded_k + k / 8 * 256 + k % 4 * 64 + r % 16 * 4 + k % 8 / 4 * 2 + r % 32 / 16;
  case MX_LAYOUT_COLUMN_MAJOR:
    return k * rows + r;
  default:
    return r * padded_k + k;
  }
}

/* Converts from row-major, and writes every byte of the layout including the padding. */
MXH_KERNEL(mxh_layout_pack, layout_args, a, 256) {
  const uint64_t rp = mxd_row_pad[a.layout], kp = mxd_k_pad[a.layout], rows = (a.rows + rp - 1) / rp * rp, kb = (a.kb + kp - 1) / kp * kp;
  const uint64_t n = rows * kb, step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < n; i += step) {
    const uint64_t r = i / kb, k = i % kb;
    a.out[mxd_layout_index(a.layout, rows, kb, r, k)] = r < a.rows && k < a.kb ? (uint8_t)a.in[r * a.kb + k] : (uint8_t)a.pad;
  }
}
MXH_KERNEL(mxh_layout_unpack, layout_args, a, 256) {
  const uint64_t kp = mxd_k_pad[a.layout], kb = (a.kb + kp - 1) / kp * kp;
  const uint64_t n = a.rows * a.kb, step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < n; i += step)
    a.out[i] = (uint8_t)a.in[mxd_layout_index(a.layout, a.rows, kb, i / a.kb, i % a.kb)];
}

MXH_DEVICE uint64_t mxd_nibble_at(const pack_args &a, uint64_t i, bool *high) {
  if (a.nibble != MX_NIBBLE_HALF_BLOCK) {
    *high = (i & 1) != (a.nibble == MX_NIBBLE_HIGH_FIRST);
    return i / 2;
  }
  const uint64_t first = i / a.block * a.block, left = a.n - first, half = ((left < a.block ? left : a.block) + 1) / 2;
  *high = i - first >= half;
  return first / 2 + (i - first) % half;
}
/* Packs n codes of one byte each into (n + 1) / 2 bytes. Lanes share bytes, so out must be zero before, and is accessed as words. */
MXH_KERNEL(mxh_pack4, pack_args, a, 256) {
  const uint64_t step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < a.n; i += step) {
    bool high;
    const uint64_t at = mxd_nibble_at(a, i, &high);
    mxh_atomic_or(mxh_as<uint32_t>(a.out) + at / 4, ((uint32_t)a.in[i] & 15) << (8 * (at % 4) + (high ? 4 : 0)));
  }
}
MXH_KERNEL(mxh_unpack4, pack_args, a, 256) {
  const uint64_t step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < a.n; i += step) {
    bool high;
    const uint64_t at = mxd_nibble_at(a, i, &high);
    a.out[i] = (uint8_t)((uint32_t)a.in[at] >> (high ? 4 : 0) & 15);
  }
}
/* Packs 6-bit codes into a dense little-endian stream, three bytes in each lane. */
MXH_KERNEL(mxh_pack6, pack_args, a, 256) {
  const uint64_t groups = (a.n + 3) / 4, step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t g = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); g < groups; g += step) {
    uint32_t bits = 0;
    const uint64_t n = a.n - 4 * g < 4 ? a.n - 4 * g : 4;
    for (uint64_t i = 0; i < n; i++) bits |= ((uint32_t)a.in[4 * g + i] & 63) << 6 * i;
    for (uint64_t i = 0; i < (6 * n + 7) / 8; i++) a.out[3 * g + i] = (uint8_t)(bits >> 8 * i);
  }
}
MXH_KERNEL(mxh_unpack6, pack_args, a, 256) {
  const uint64_t step = (uint64_t)mxh_grid_size() * mxh_block_size();
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + mxh_thread_id(); i < a.n; i += step) {
    const uint64_t bit = 6 * i, at = bit / 8, shift = bit % 8;
    uint32_t v = a.in[at];
    if (shift > 2) v |= (uint32_t)a.in[at + 1] << 8;
    a.out[i] = (uint8_t)(v >> shift & 63);
  }
}
