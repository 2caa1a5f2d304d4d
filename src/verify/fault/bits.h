/* Declares maps of the bits of a place in a tile: of codes, or of scales. */
#ifndef MX_VERIFY_FAULT_BITS_H
#define MX_VERIFY_FAULT_BITS_H

#include "verify/fault/run.h"

/* A map in a tile of 2^rows rows and 2^cols columns. A place is a number, its lowest bits those of the column, the others those of the row. Bit k of a place
 * is the exclusive or of the bits of[k] of its source; so its source is the exclusive or of source[k] over the bits of the place. */
enum { MXI_MOST_BITS = 13 };
typedef struct place_bits {
  unsigned rows, cols;
  uint16_t of[MXI_MOST_BITS], source[MXI_MOST_BITS];
} place_bits;

/** Makes the one of `of` and `source`, in[0..n-1], from the other. 0: two places would have one source. */
int mxi_bits_inverse(uint16_t *out, const uint16_t *in, unsigned n);

/** The map as the list of a fault, and back. 0: the list is no map of places to places. */
void mxi_bits_put(mx_fault *f, const place_bits *b);
int mxi_bits_get(place_bits *out, const mx_fault *f);
/** "c0,c1^r2,r2": reads and prints. NULL, or what is wrong with the text. */
const char *mxi_bits_read(mx_fault *f, const char *text);
void mxi_bits_print(char *out, size_t size, const mx_fault *f);

/** Where the source of a place lies in its tile. */
size_t mxi_bits_source(const place_bits *b, size_t at);

/** Moves codes, or scales, as fault f says. 0: the tiles do not fit the number of scales. */
int mxi_fault_by_bits(const fault_run *r, const mx_fault *f, uint8_t *codes, uint32_t *scales);

#endif
