/* Declares shapes as a user types them, and what there is to say of them. */
#ifndef CLI_BASE_SHAPE_H
#define CLI_BASE_SHAPE_H

#include <stdint.h>

#include "mxgold/spec.h"

/** Read "RxC", or one to max extents joined by x, each a decimal from 1 on. Returns how many there are, 0 if the text is anything else. */
int shape_parse(uint64_t *shape, int max, const char *text);

enum { SHAPE_NOTE = 128 };
/** What there is to say of a tensor's shape under a spec, whose fill costs bits: "rows of 3 in blocks of 16", "rows of 70: the last block of 32 holds 6",
 *  "40 rows: the last blocks of 16 hold 8"; "" if blocks fill rows and columns. room: SHAPE_NOTE characters. */
const char *shape_note(char *room, size_t size, size_t rows, size_t cols, const mx_spec *spec);

#endif
