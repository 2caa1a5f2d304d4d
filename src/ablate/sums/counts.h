/* Declares the count of saturated codes of a run of values, which a vector ISA may do. */
#ifndef MX_ABLATE_SUMS_COUNTS_H
#define MX_ABLATE_SUMS_COUNTS_H

#include <stddef.h>
#include <stdint.h>

/* How codes lie, and which of them are the largest: code & mask == most. */
typedef struct count_form {
  int bits;       /* 4: two a byte, element 2i in bits 3:0, or in 7:4 with high_first; 8: one a byte, whatever its width */
  int high_first; /* of bits 4 */
  uint8_t mask, most;
} count_form;

#if defined(__x86_64__)
/* Codes of the largest magnitude whose x lies beyond their y, y not 0. n is a multiple of 16. */
uint64_t mxi_saturated_avx2(const uint8_t *codes, const float *x, const float *y, size_t n, const count_form *form);
#endif

#endif
