/* Declares how codes and scales are moved: how they share bytes, and where they stand. SPEC 7. */
#ifndef MX_KERNELS_BYTES_H
#define MX_KERNELS_BYTES_H

#include "mxgold/layout.h"

/* Kernels of one ISA. Each does what it can do whole, and returns how much of n that was: whole bytes of codes, whole blocks of half_block. */
typedef struct mx_byte_kernels {
  size_t (*pack4)(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block);
  size_t (*unpack4)(uint8_t *codes, const uint8_t *in, size_t n, int nibble, size_t block);
  size_t (*pack6)(uint8_t *out, const uint8_t *codes, size_t n);
  size_t (*unpack6)(uint8_t *codes, const uint8_t *in, size_t n);
  /* Scales of rows [0, rows), a number of whole tiles, to or from a layout whose rows of tiles are `across` scales wide. Returns how many of the kb
   * columns, a multiple of 8. */
  size_t (*move)(uint8_t *moved, uint8_t *straight, mx_layout layout, size_t rows, size_t kb, size_t across, int back);
} mx_byte_kernels;

extern const mx_byte_kernels mxi_bytes_avx512, mxi_bytes_avx2, mxi_bytes_neon;

#endif
