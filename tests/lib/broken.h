/* Declares kernels written by hand, each with one bug: what identify must name. */
#ifndef TESTS_BROKEN_H
#define TESTS_BROKEN_H

#include "mxgold/mxgold.h"

/* BROKEN(ID, "bug", "its name in mx_bug.name, or several: a|b", "bases: letters of BROKEN_BASES", ties: 1 on data of few bits) */
#define BROKEN(X)                                                                                                                              \
  X(NONE, "no bug", "", "48nt", 0)                                                                                                             \
  X(NOABS, "maximum without abs", "amax without abs", "48nt", 0)                                                                               \
  X(FIRST_HALF, "maximum over the first half of the block", "amax over a part of the block", "48nt", 0)                                        \
  X(LAST_HALF, "maximum over the last half of the block", "amax over a part of the block", "48nt", 0)                                          \
  X(NOT_FIRST, "maximum leaves out the first element", "amax without the first element", "48nt", 0)                                            \
  X(NOT_LAST, "maximum leaves out the last element", "amax without the last element", "48nt", 0)                                               \
  X(SECOND, "second largest for the maximum", "second largest for amax", "48nt", 0)                                                            \
  X(MEAN, "mean times 3 for the maximum", "mean for amax", "48nt", 0)                                                                          \
  X(BEFORE, "elements use the scale of the block before", "scale of the block before|scale of another block", "48nt", 0)                       \
  X(AFTER, "elements use the scale of the block after", "scale of the block after|scale of another block", "48nt", 0)                          \
  X(WIDE, "scale over two blocks", "block too wide", "48nt", 0)                                                                                \
  X(NARROW, "blocks of half the width, every second scale lost", "block too narrow, scales lost", "48nt", 0)                                   \
  X(CONSTANT, "amax * 0.1667 for amax / 6", "typed constant for 1/6", "nt", 0)                                                                 \
  X(UNROUNDED, "elements divided by the scale before rounding", "unrounded scale", "48nt", 0)                                                  \
  X(RCP_BF16, "reciprocal of the scale rounded to bfloat16", "reciprocal rounded to bfloat16", "nt", 0)                                        \
  X(TWICE_BF16, "scaled elements rounded to bfloat16 first", "rounded twice, over bfloat16|input rounded to bfloat16", "48nt", 0)              \
  X(INPUT_CUT, "input cut to bfloat16", "input cut to bfloat16|cut to bfloat16 before rounding", "48nt", 0)                                    \
  X(INPUT_F16, "input rounded to binary16", "input rounded to binary16|rounded twice, over binary16", "nt", 0)                                 \
  X(SHIFTED, "input read one column off", "input shifted", "48nt", 0)                                                                          \
  X(ROTATED, "Hadamard not normalised", "rotation not normalised", "48nt", 0)                                                                  \
  X(ROTATED_DOWN, "Hadamard along the wrong axis", "rotation along the wrong axis", "48nt", 0)                                                 \
  X(AMAX_UNROTATED, "maximum taken before the rotation", "amax before the rotation", "48nt", 0)                                                \
  X(CODES_UNROTATED, "scales of rotated values, elements not rotated", "elements not rotated", "48nt", 0)                                      \
  X(SIGN_OF_MAX, "sign of the largest for all of the block", "sign of the largest element for all", "48nt", 0)                                 \
  X(LEFT_OUT, "maximum leaves out element 7 of the block", "amax over a part of the block", "48nt", 0)                                         \
  X(TAIL_NEXT, "a short last block reads on into the next row", "tail reads the next row", "48nt", 0)                                          \
  X(TAIL_STALE, "a short last block finds what the one before left", "tail reads the block before", "48nt", 0)                                 \
  X(TAIL_BOTH, "a short last block takes the block before with it", "tail reads the block before", "48nt", 0)                                  \
  X(TAIL_HALF, "half of a short last block is left out", "part of the tail ignored", "48nt", 0)                                                \
  X(BYTE_SHIFT, "scale built as byte << 23: byte 0 divides by 0", "byte 0 read as 0", "4", 0)                                                  \
  X(LANES_ALONE, "a step of the reduction lost: even and odd lanes scale on their own", "lanes scaled on their own", "48nt", 0)                \
  X(WRAPS, "no saturation: beyond the largest comes zero", "no saturation", "48", 0)                                                           \
  X(ELEMENT_BIAS, "exponent of the elements with a bias of 8", "elements with another bias", "8", 0)                                           \
  X(DIVISOR_BF16, "elements divided by a scale rounded to bfloat16", "divisor rounded to bfloat16", "nt", 0)                                   \
  X(TIES_UP, "ties toward +infinity", "ties toward +infinity", "48", 1)                                                                        \
  X(TIES_DOWN, "ties toward -infinity", "ties toward -infinity", "48", 1)                                                                      \
  X(TIES_ODD, "ties to odd", "ties to odd", "48", 1)                                                                                           \
  X(ONE_TIE, "one tie goes up", "one tie", "48", 1)                                                                                            \
  X(THRESHOLD, "one threshold off", "one threshold", "4nt", 0)                                                                                 \
  X(CUT_NEGATIVE, "negative elements truncated", "another rounding by sign", "48nt", 0)                                                        \
  X(SATURATE, "saturates too low", "saturates too low", "48nt", 0)                                                                             \
  X(FLUSH, "subnormal elements flushed", "small elements flushed", "48nt", 0)                                                                  \
  X(COMPLEMENT, "two's complement for sign and magnitude", "two's complement", "48nt", 0)                                                      \
  X(UNSIGNED, "sign dropped", "sign lost", "48nt", 0)                                                                                          \
  X(NEGATED, "sign inverted", "sign inverted", "48nt", 0)                                                                                      \
  X(WORDS, "words with the first element on top", "elements reversed in groups", "48nt", 0)                                                    \
  X(BYTES, "bytes of 32-bit words reversed", "bytes of a word reversed", "4nt", 0)                                                             \
  X(PAIRS, "pairs swapped", "pairs of elements swapped", "48nt", 0)                                                                            \
  X(DEAL, "elements of a block deinterleaved", "elements deinterleaved", "48nt", 0)                                                            \
  X(LANE, "one lane gets its neighbour's element", "a lane takes another's element", "48nt", 0)                                                \
  X(LANE_ZERO, "one lane is not written", "a lane not written", "48nt", 0)                                                                     \
  X(ODD_ROWS, "odd rows not written", "blocks not written|scales not written", "48nt", 0)                                                      \
  X(STALE, "one block column holds the one before it", "blocks in another place", "48nt", 0)                                                   \
  X(ROW_ABOVE, "every 37th block is that of the row above", "blocks in another place", "48nt", 0)                                              \
  X(SCALES_OF_TILE, "two columns of scales hold those before them", "scales in another place", "48nt", 0)                                      \
  X(ROW_PAIRS, "rows two by two swapped, codes and scales", "another order", "48nt", 0)                                                        \
  X(ROWS_TURNED, "scales of the last row first", "another order", "48nt", 0)                                                                   \
  X(TILES_TURNED, "codes of each 16 x 16 tile transposed", "another order", "48nt", 0)                                                         \
  X(TWO_TILES, "codes of two 32 x 32 tiles swapped", "another order", "48nt", 0)                                                               \
  X(GRID_TURNED, "64 x 64 tiles by columns, codes and scales", "another order", "48nt", 0)                                                     \
  X(ODD_PAIRS, "pairs swapped in odd rows", "pairs of elements swapped", "48nt", 0)                                                            \
  X(NO_BIAS, "exponent stored without its bias", "scales with another bias", "48", 0)                                                          \
  X(SCALE_PLUS_1, "every scale one code larger", "scales with another bias", "48nt", 0)                                                        \
  X(FNUZ, "scales stored as e4m3fnuz", "scales of another format", "nt", 0)                                                                    \
  X(ALL_ZERO, "every element zero", "every element zero", "48", 0)                                                                             \
  X(HALF_TENSOR, "tensor maximum over half of the rows", "tensor maximum over a part", "nt", 0)                                                \
  X(TILE_TENSOR, "tensor scale of each 16 rows", "tensor scale of each tile", "nt", 0)                                                         \
  X(NO_TENSOR, "tensor scale left out for the elements", "tensor scale not applied", "nt", 0)                                                  \
  X(TENSOR_NAN, "tensor scale stored as NaN", "tensor scale alone", "nt", 0)                                                                   \
  X(TENSOR_INF, "tensor scale stored as Inf", "tensor scale alone", "nt", 0)                                                                   \
  X(TENSOR_RCP, "reciprocal of the tensor scale stored", "tensor scale alone", "t", 0)                                                         \
  X(TENSOR_TWO, "twice the tensor scale stored", "tensor scale alone", "nt", 0)

enum {
#define X(id, ...) BROKEN_##id,
  BROKEN(X)
#undef X
      BROKEN_COUNT
};
extern const struct broken_row {
  const char *bug, *names, *bases;
  int few_bits;
} broken_rows[];

/** The preset that a letter of a row's bases stands for: 4 ocp-mxfp4, 8 ocp-mxfp8-e4m3, n torchao-nvfp4-2level, t te-nvfp4. */
const char *broken_preset(char base);
/** Run bug `bug` over `base` on numbers of its own; s is to be freed with broken_free(). */
void broken_run(mx_sample *s, int bug, char base);
void broken_free(mx_sample *s);
/** Is s named as the row says? said gets the name. */
int broken_is_named(const mx_identity *id, int bug);

#endif
