/* Declares the search for the preset and the block that give the values, where values alone are at hand. */
#ifndef MX_VERIFY_IDENTIFY_BY_VALUES_H
#define MX_VERIFY_IDENTIFY_BY_VALUES_H

#include "mxgold/verify.h"
#include "verify/trial/deadline.h"

typedef struct values_count {
  uint64_t wrong; /* values that differ in more than the sign of a zero */
  uint64_t zeros; /* zeros that differ in their sign */
} values_count;

/** Computes what spec makes of at most `most` numbers of each sample, in whole rows (0: all), under the tensor scale of the whole sample. Returns
 *  0 if the spec cannot be run; memory that runs out is noted in lack. */
int mxi_values_of_spec(values_count *out, const mx_spec *spec, const mx_sample *samples, size_t n, size_t most, int threads, shortage *lack);
/** Finds the preset that gets the fewest values wrong, of about 2^15 a sample: as it is, or with another block (rows or columns of 8 to 128,
 *  tiles of 16 to 128; of options->block_cols columns if that is not 0). Returns 0 if none can be run. */
int mxi_values_preset(mx_spec *out, const mx_sample *samples, size_t n, const mx_identify_options *options, int threads, deadline until);
/** Has the element a zero with a sign? */
int mxi_has_negative_zero(int elem);

#endif
