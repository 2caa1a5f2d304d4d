/* Declares how the reference decodes and encodes one value. */
#ifndef REF_CODEC_H
#define REF_CODEC_H

#include "ref.h"

#include "num.h"

/* All that encode may be told: mx_encoding and the keys of it that only `encode` of scale formats has. */
typedef struct ref_how {
  mx_encoding base;
  int subnormal; /* MX_SCALE_SUBNORMAL_* */
  int negative;  /* MX_NEGATIVE_* */
} ref_how;

/* Exact value of a code, NaN with the code's sign. */
num ref_value(const mx_format *format, uint64_t code);
/* Code of an exact value. random: the random integer of SR. */
uint64_t ref_code(const mx_format *format, num x, const ref_how *how, uint32_t random);
/* Where y rounds to when the grid has no end: the magnitude in steps of the format's last binade for all beyond it (elem.overflow=wrap_negzero). */
num ref_unbounded(const mx_format *format, num y, const mx_encoding *how, uint32_t random);

/* Masks, and the largest finite magnitude as a number. */
uint64_t ref_sign_bit(const mx_format *format);
num ref_format_largest(const mx_format *format);

#endif
