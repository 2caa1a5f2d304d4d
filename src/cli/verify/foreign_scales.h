/* Declares scales of a file that mxgold did not write, read as the codes that another tensor has. */
#ifndef CLI_VERIFY_FOREIGN_SCALES_H
#define CLI_VERIFY_FOREIGN_SCALES_H

#include "cli/base/cli.h"
#include "mxgold/mxgold.h"

typedef struct foreign_scales {
  uint8_t *codes;     /* scale_rows x scale_cols of `like`: of the file, or owned */
  uint8_t *owned;     /* NULL if the file has them as they are; the caller frees it */
  const char *layout; /* that they are stored in, NULL for row */
} foreign_scales;

/** Bytes, and integers of the codes' own width, are codes as they lie; wider integers hold a code each, or words of 32 bits four of a byte each;
 *  floats are values, which the scale format must have. One for each row, for each block, or in a padded layout: the one with the fewest that
 *  differ from like's. Says what does not fit and returns CLI_TROUBLE. */
int foreign_scales_read(foreign_scales *out, const char *path, const mx_array *scales, const mx_quantized *like);

#endif
