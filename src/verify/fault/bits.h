/* Declares permutations of the bits of a place in a tile: of codes, or of scales. */
#ifndef MX_VERIFY_FAULT_BITS_H
#define MX_VERIFY_FAULT_BITS_H

#include "verify/fault/run.h"

/* Bits of a place in a tile of 2^rows rows and 2^cols columns: those of the column, then those of the row. Bit k of a place is bit of[k] of its source;
 * bit MXI_BIT_OF_COLUMN + i is bit i of the column, bit i that of the row. */
enum { MXI_MOST_BITS = 13, MXI_BIT_OF_COLUMN = 8 };
typedef struct place_bits {
  unsigned n, rows, cols;
  uint8_t of[MXI_MOST_BITS];
} place_bits;

/** The bits as the number of a fault, which holds a digit of 16 for each behind a 1, and back. */
double mxi_bits_pack(const place_bits *b);
void mxi_bits_unpack(place_bits *out, double number);
/** "c0,c1,r2": reads and prints. 0: it is no permutation. */
int mxi_bits_read(double *out, const char *text);
void mxi_bits_print(char *out, size_t size, double number);

/** Where the source of a place lies in its tile. */
typedef struct place {
  size_t row, col;
} place;
place mxi_bits_source(const place_bits *b, size_t at);

/** Moves codes, or scales, as fault f says. 0: the tiles do not fit the number of scales. */
int mxi_fault_by_bits(const fault_run *r, const mx_fault *f, uint8_t *codes, uint32_t *scales);

#endif
