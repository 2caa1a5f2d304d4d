/* Packs and unpacks codes and moves layouts in units of sixteen bytes (type q), which the including file defines, with its own pack6 and
 * unpack6. */
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* ---- two codes to a byte ---- */

/* Sixteen bytes whose low halves are the codes of a and whose high halves are those of b. */
INLINE q halves(q a, q b) { return q_or(q_and(a, q_set(15)), q_shift_left_4(b)); }

static size_t pack4(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block) {
  size_t i = 0;
  if (nibble != MX_NIBBLE_HALF_BLOCK) {
    for (; i + 32 <= n; i += 32) q_store(out + i / 2, nibble == MX_NIBBLE_HIGH_FIRST ? q_pairs(codes + i, 1) : q_pairs(codes + i, 0));
    return i;
  }
  if (block % 32) return 0;
  for (; i + block <= n; i += block)
    for (size_t k = 0; k < block / 2; k += 16) q_store(out + i / 2 + k, halves(q_load(codes + i + k), q_load(codes + i + block / 2 + k)));
  return i;
}

static size_t unpack4(uint8_t *codes, const uint8_t *in, size_t n, int nibble, size_t block) {
  size_t i = 0;
  const q low = q_set(15);
  if (nibble == MX_NIBBLE_HALF_BLOCK) {
    if (block % 32) return 0;
    for (; i + block <= n; i += block)
      for (size_t k = 0; k < block / 2; k += 16) {
        const q v = q_load(in + i / 2 + k);
        q_store(codes + i + k, q_and(v, low));
        q_store(codes + i + block / 2 + k, q_shift_right_4(v));
      }
    return i;
  }
  for (; i + 32 <= n; i += 32) {
    const q v = q_load(in + i / 2), a = q_and(v, low), b = q_shift_right_4(v);
    if (nibble == MX_NIBBLE_HIGH_FIRST)
      q_store_zipped(codes + i, b, a);
    else
      q_store_zipped(codes + i, a, b);
  }
  return i;
}

/* ---- layouts: all of them transpose squares of 4 x 4 dwords ---- */

/* nv128x4 and nv8x4: a dword has four columns of a row, and next to it are those of the rows `apart` further down. */
INLINE size_t move_nv(uint8_t *moved, uint8_t *straight, size_t rows, size_t kb, size_t across, size_t tall, size_t apart, int back) {
  const size_t columns = kb / 16 * 16, tile = tall * 4;
  for (size_t t = 0; t < rows; t += tall)
    for (size_t g = 0; g < tall / 4; g++) {
      const size_t row = apart == 1 ? t + 4 * g : t + g; /* the first of four rows */
      for (size_t k = 0; k < columns; k += 16) {
        uint8_t *at = moved + t * across + k / 4 * tile + 16 * g;
        uint8_t *from = straight + row * kb + k;
        q s[4];
        if (back) {
          for (size_t i = 0; i < 4; i++) s[i] = q_load(at + i * tile);
          q_transpose(s);
          for (size_t i = 0; i < 4; i++) q_store(from + i * apart * kb, s[i]);
        } else {
          for (size_t i = 0; i < 4; i++) s[i] = q_load(from + i * apart * kb);
          q_transpose(s);
          for (size_t i = 0; i < 4; i++) q_store(at + i * tile, s[i]);
        }
      }
    }
  return columns;
}

/* amd_shuffle: dword a of two rows that are sixteen apart holds their columns a and a + 4; tiles of 32 x 8 lie side by side. */
INLINE size_t move_amd(uint8_t *moved, uint8_t *straight, size_t rows, size_t kb, size_t across, int back) {
  static const uint8_t together[16] = {0, 8,  4, 12, 1, 9,  5, 13,
                                       2, 10, 6, 14, 3, 11, 7, 15}; /* interleaves the eight columns of the two rows */
  static const uint8_t apart[16] = {0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15};
  const size_t columns = kb / 8 * 8;
  const q order = q_load(back ? apart : together);
  for (size_t t = 0; t < rows; t += 32)
    for (size_t k = 0; k < columns; k += 8)
      for (size_t g = 0; g < 16; g += 4) {
        uint8_t *at = moved + t * across + k * 32 + 4 * g, *from = straight + (t + g) * kb + k;
        q s[4];
        if (back) {
          for (size_t i = 0; i < 4; i++) s[i] = q_load(at + 64 * i);
          q_transpose(s);
          for (size_t i = 0; i < 4; i++) q_store_two(from + i * kb, from + (i + 16) * kb, q_look_up(s[i], order));
        } else {
          for (size_t i = 0; i < 4; i++) s[i] = q_look_up(q_load_two(from + i * kb, from + (i + 16) * kb), order);
          q_transpose(s);
          for (size_t i = 0; i < 4; i++) q_store(at + 64 * i, s[i]);
        }
      }
  return columns;
}

static size_t move(uint8_t *moved, uint8_t *straight, mx_layout layout, size_t rows, size_t kb, size_t across, int back) {
  if (layout == MX_LAYOUT_NV128X4)
    return back ? move_nv(moved, straight, rows, kb, across, 128, 32, 1) : move_nv(moved, straight, rows, kb, across, 128, 32, 0);
  if (layout == MX_LAYOUT_NV8X4)
    return back ? move_nv(moved, straight, rows, kb, across, 8, 1, 1) : move_nv(moved, straight, rows, kb, across, 8, 1, 0);
  return back ? move_amd(moved, straight, rows, kb, across, 1) : move_amd(moved, straight, rows, kb, across, 0);
}

const mx_byte_kernels TABLE = {pack4, unpack4, pack6, unpack6, move};
