/* Declares kernels that pack and unpack codes and move scales between layouts. SPEC 7. */
#ifndef MX_KERNELS_BYTES_H
#define MX_KERNELS_BYTES_H

#include "mxgold/layout.h"

/* The kernels of one ISA. Each does as much as fits into whole units (whole bytes of codes, whole blocks of half_block), and returns how
 * much of n that was. */
typedef struct mx_byte_kernels {
  size_t (*pack4)(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block);
  size_t (*unpack4)(uint8_t *codes, const uint8_t *in, size_t n, int nibble, size_t block);
  size_t (*pack6)(uint8_t *out, const uint8_t *codes, size_t n);
  size_t (*unpack6)(uint8_t *codes, const uint8_t *in, size_t n);
  /* Moves the scales of rows [0, rows), which are whole tiles, to or from a layout whose rows of tiles are `across` scales wide. Returns how
   * many of the kb columns it did, a multiple of 8. */
  size_t (*move)(uint8_t *moved, uint8_t *straight, mx_layout layout, size_t rows, size_t kb, size_t across, int back);
} mx_byte_kernels;

extern const mx_byte_kernels mxi_bytes_avx512, mxi_bytes_avx2, mxi_bytes_neon;

#endif
