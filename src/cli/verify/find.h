/* Declares the search for what a kernel does under each way to read its files: orders of nibbles, layouts of scales, the transpose. */
#ifndef CLI_VERIFY_FIND_H
#define CLI_VERIFY_FIND_H

#include "cli/verify/samples.h"

/* How the files of a kernel are read. */
typedef struct reading {
  int nibble;          /* MX_NIBBLE_*; -1: one code a byte */
  size_t nibble_block; /* of half_block */
  int scale_layout;    /* as samples_straighten() takes it; MX_LAYOUT_ROW: rows, or what the file says */
  size_t layout_block; /* columns of a block, of such a layout */
  int scale_values;    /* MX_SCALE_*: stored numbers are values of it; -1: they are not */
  const char *layout;  /* what to call it; NULL: rows */
  int turned;          /* the input was transposed */
  int row_scales;      /* each row has a tensor scale */
} reading;

/** The files of s as they lie, with the order of nibbles that numbers and codes suggest; else in another order; with the scales in another layout;
 *  transposed. How they were read goes into how. Says what is wrong and returns CLI_TROUBLE. */
int find_answer(mx_identity *id, reading *how, samples *s, const mx_identify_options *o);
/** Read another launch of the same kernel in that way. 0 if its files do not allow it. */
int read_alike(samples *s, const reading *how);
/** Did the kernel read its input otherwise than as the tensor that it was given? Then it does not do what a spec says, whatever the bytes. */
static inline int reading_is_odd(const reading *how) { return how->turned || how->row_scales; }
/** "low_first" and so on; NULL: one code a byte. */
const char *reading_nibble(const reading *how);

#endif
