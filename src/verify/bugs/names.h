/* Lists the short, fixed names of bugs that files of this room find in codes and scales; twist.c and input.c have tables with names of their own. */
#ifndef MX_VERIFY_BUGS_NAMES_H
#define MX_VERIFY_BUGS_NAMES_H

#include <stddef.h>

#define MXI_BUGS(X)                                                                                                                            \
  X(CODES_RENAMED, "codes renamed")                                                                                                            \
  X(EVERY_ELEMENT_ZERO, "every element zero")                                                                                                  \
  X(EVERY_CODE_THE_SAME, "every code the same")                                                                                                \
  X(SIGN_INVERTED, "sign inverted")                                                                                                            \
  X(SIGN_LOST, "sign lost")                                                                                                                    \
  X(TWOS_COMPLEMENT, "two's complement")                                                                                                       \
  X(ELEMENTS_WITH_ANOTHER_BIAS, "elements with another bias")                                                                                  \
  X(CODES_OF_ANOTHER_FORMAT, "codes of another format")                                                                                        \
  X(SATURATES_TOO_LOW, "saturates too low")                                                                                                    \
  X(SMALL_ELEMENTS_FLUSHED, "small elements flushed")                                                                                          \
  X(SCALES_RENAMED, "scales renamed")                                                                                                          \
  X(SCALES_OF_ANOTHER_FORMAT, "scales of another format")                                                                                      \
  X(SCALES_WITH_ANOTHER_BIAS, "scales with another bias")                                                                                      \
  X(SCALES_SATURATE_TOO_LOW, "scales saturate too low")                                                                                        \
  X(SMALL_SCALES_FLUSHED, "small scales flushed")                                                                                              \
  X(PAIRS_OF_ELEMENTS_SWAPPED, "pairs of elements swapped")                                                                                    \
  X(ELEMENTS_REVERSED_IN_GROUPS, "elements reversed in groups")                                                                                \
  X(ELEMENTS_IN_ANOTHER_ORDER, "elements in another order")                                                                                    \
  X(A_LANE_NOT_WRITTEN, "a lane not written")                                                                                                  \
  X(A_LANE_TAKES_ANOTHERS_ELEMENT, "a lane takes another's element")                                                                           \
  X(BYTES_OF_A_WORD_REVERSED, "bytes of a word reversed")                                                                                      \
  X(ELEMENTS_DEINTERLEAVED, "elements deinterleaved")                                                                                          \
  X(ELEMENTS_INTERLEAVED, "elements interleaved")                                                                                              \
  X(SCALES_AT_A_LIMIT, "scales at a limit")                                                                                                    \
  X(BLOCKS_NOT_WRITTEN, "blocks not written")                                                                                                  \
  X(SCALES_IN_ANOTHER_PLACE, "scales in another place")                                                                                        \
  X(ANOTHER_ORDER, "another order")                                                                                                            \
  X(SCALES_OF_THE_INPUT_ELEMENTS_OF_ANOTHER, "scales of the input, elements of another")                                                       \
  X(ELEMENTS_OF_THE_INPUT_SCALES_OF_ANOTHER, "elements of the input, scales of another")                                                       \
  X(AMAX_BEFORE_THE_ROTATION, "amax before the rotation")                                                                                      \
  X(ELEMENTS_NOT_ROTATED, "elements not rotated")                                                                                              \
  X(TIES, "ties")                                                                                                                              \
  X(TIES_TOWARD_PLUS_INFINITY, "ties toward +infinity")                                                                                        \
  X(TIES_TOWARD_MINUS_INFINITY, "ties toward -infinity")                                                                                       \
  X(TIES_TO_ODD, "ties to odd")                                                                                                                \
  X(ONE_TIE, "one tie")                                                                                                                        \
  X(ANOTHER_ROUNDING_BY_SIGN, "another rounding by sign")                                                                                      \
  X(THRESHOLDS, "thresholds")                                                                                                                  \
  X(ONE_THRESHOLD, "one threshold")                                                                                                            \
  X(TENSOR_SCALE_ALONE, "tensor scale alone")

typedef enum mxi_bug {
#define X(id, name) BUG_##id,
  MXI_BUGS(X)
#undef X
      BUG_COUNT
} mxi_bug;

extern const char *const mxi_bug_names[BUG_COUNT];
#define BUG(id) mxi_bug_names[BUG_##id]

/** Names in the tables of twist.c and of input.c, from 0 on; NULL past the last. */
const char *mxi_twist_name(size_t i);
const char *mxi_input_name(size_t i);

#endif
