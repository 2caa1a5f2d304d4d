/* Declares the portable packing of codes and moving of scales, which handle what vector kernels leave over. */
#ifndef MX_CORE_LAYOUT_H
#define MX_CORE_LAYOUT_H

#include "mxgold/layout.h"

/** Each does what the function of mxgold/layout.h without _plain does. */
void mxi_pack4_plain(uint8_t *out, const uint8_t *codes, size_t n, int nibble, size_t block);
void mxi_unpack4_plain(uint8_t *codes, const uint8_t *in, size_t n, int nibble, size_t block);
void mxi_pack6_plain(uint8_t *out, const uint8_t *codes, size_t n);
void mxi_unpack6_plain(uint8_t *codes, const uint8_t *in, size_t n);
/** Moves the scales of rows [r0, r1) from column k0 (a multiple of 8) on, without padding. back: from the layout to row-major. */
void mxi_layout_move_plain(uint8_t *moved, uint8_t *straight, mx_layout layout, size_t rows, size_t kb, size_t r0, size_t r1, size_t k0,
                           int back);

#endif
