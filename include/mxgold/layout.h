/** Puts scales and codes into the layouts of kernels and back; each layout is a bijection. SPEC section 7. */
#ifndef MXGOLD_LAYOUT_H
#define MXGOLD_LAYOUT_H

#include "spec.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/** Layouts of scales: rows of formats/layouts.def. */
typedef enum mx_layout {
#define MX_LAYOUT(id, ...) MX_LAYOUT_##id,
#include "../../formats/layouts.def"
#undef MX_LAYOUT
  MX_LAYOUT_COUNT
} mx_layout;

/** The row of formats/layouts.def: extents are rounded up to multiples of row_pad and k_pad. NULL outside the enum. */
typedef struct mx_layout_row {
  const char *name;
  size_t row_pad, k_pad;
  const char *source;
} mx_layout_row;
const mx_layout_row *mx_layout_row_at(int layout);

/** Name of a layout ("row", "nv128x4", "amd_shuffle", ...), and the layout of a name; -1 if the name is unknown. */
const char *mx_layout_name(mx_layout layout);
int mx_layout_find(const char *name);

/** Bytes that [rows][kb] one-byte scales take in a layout, padding included; SIZE_MAX on overflow. */
size_t mx_layout_size(mx_layout layout, size_t rows, size_t kb);
/** Position of scale (row, k) in the layout. row and k may be in the padding. */
size_t mx_layout_index(mx_layout layout, size_t rows, size_t kb, size_t row, size_t k);
/** Convert from row-major to layout, with the padding set to pad; and back (the padding is dropped). out must not overlap in. */
void mx_layout_pack(uint8_t *out, mx_layout layout, const uint8_t *scales, size_t rows, size_t kb, uint8_t pad);
void mx_layout_unpack(uint8_t *scales, mx_layout layout, const uint8_t *in, size_t rows, size_t kb);

/** Pack n 4-bit codes, one per byte, into (n + 1) / 2 bytes in the given MX_NIBBLE_* order, and unpack them. half_block works in blocks of
 *  `block`, an even number; a short last block is split into its own halves. If n is odd the last nibble is 0. For every function here: threads
 *  reentrant, source formats/layouts.def and SPEC 7, oracle tests/test_layout.c. */
void mx_pack4(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block);
void mx_unpack4(uint8_t *codes, const uint8_t *in, size_t n, int nibble, size_t block);
/** Pack n 6-bit codes into one dense little-endian bit stream of (6 n + 7) / 8 bytes, and unpack them. */
void mx_pack6(uint8_t *out, const uint8_t *codes, size_t n);
void mx_unpack6(uint8_t *codes, const uint8_t *in, size_t n);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
