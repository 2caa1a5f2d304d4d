/** What differs between two quantised matrices, where, and what the differences have in common. */
#ifndef MXGOLD_DIFF_H
#define MXGOLD_DIFF_H

#include "quantize.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum { MX_DIFF_PATTERNS = 16, MX_DIFF_WORDS = 200, MX_DIFF_ROWS = 64, MX_DIFF_COLS = 64 };

/** One element that differs. */
typedef struct mx_diff_example {
  size_t row, col;
  uint32_t code_a, code_b, scale_a, scale_b;
  double value_a, value_b;
  float x, amax;        /* of the input, with one */
  double quotient, tie; /* x / (scale of A * tensor scale), and its distance to the nearest midpoint of codes; NaN without an input */
} mx_diff_example;

/** How two results are compared. The zero struct: NaN equals NaN whatever its code or sign, codes under a NaN scale do not count, -0 is not +0. */
typedef struct mx_diff_options {
  int nan_bits;          /* 1: NaN codes are compared like any others */
  int equal_zeros;       /* 1: -0 and +0 are the same */
  int values;            /* 1: dequantise both, where they differ, and count the values that differ */
  mx_diff_example *list; /* room for the first n_list elements that differ; NULL: none are listed */
  size_t n_list;
  /* For tensors larger than memory: rows [row, row + n) of the input as binary32, dense, valid until the next call (in place of x); and
   * word that rows [row, row + n) will not be looked at soon. Both may be NULL; self is theirs. Rows come in pieces, each once, in order with input(). */
  const float *(*input)(void *self, size_t row, size_t n);
  void (*passed)(void *self, size_t row, size_t n);
  /* Copy n_bytes of codes of A or B that lie at `from`, by a way that is cheaper than looking at them there: mx_file_read(). Returns 0; else they are
   * looked at in place. Called by all threads. May be NULL. */
  int (*read)(void *self, void *room, const void *from, size_t n_bytes);
  void *self;
  int n_threads; /* 0: OpenMP's default; input() and list take one. The result does not depend on it */
} mx_diff_options;

/** What differs between A (expected) and B (actual). */
typedef struct mx_difference {
  int equal;
  uint64_t n_codes, codes, n_scales, scales, n_values, values, tensor_scales; /* compared; that differ. HiF4's micro-scales count as scales */
  uint64_t zero_signs, nan_codes;           /* that were ignored; zero_signs without equal_zeros are counted in codes */
  uint64_t padding;                         /* bytes behind the ends of rows that differ; they do not count */
  size_t rows, blocks;                      /* with a code that differs */
  uint64_t by_position[256];                /* in the block; the last entry gathers the rest */
  uint64_t by_scale[256];                   /* scale byte of A of the elements that differ */
  uint64_t pairs[16][16];                   /* code of A, code of B: 4-bit elements; else magnitudes' top four bits */
  uint64_t scale_steps[17];                 /* scale byte of B - A, from -8 or less to 8 or more */
  uint32_t scale_pairs[256][256];           /* scale code of A, of B, where they differ; the last gathers what is beyond */
  uint32_t map[MX_DIFF_ROWS][MX_DIFF_COLS]; /* differing elements over the matrix, as a coarse picture */
  uint64_t ties[16];                        /* elements that differ by distance to a tie, in binary orders of 2^-i (with an input) */
  int n_examples;
  size_t n_listed;
  mx_diff_example first, worst, smallest;
  char patterns[MX_DIFF_PATTERNS][MX_DIFF_WORDS]; /* what all differences have in common, plain words; none that chance explains */
  int n_patterns;
} mx_difference;

/** Compare two quantised matrices of one shape and spec. x may be NULL; values_a and values_b (dequantised, [rows][cols]) too.
 *  One pass; rows that are equal byte for byte cost one memcmp. Patterns that need a second look (another layout of the scales, a transpose, the
 *  other block axis) take it only where the rest does not exclude them; the last two make a copy, and leave matrices above 2^26 elements alone.
 *  MX_ERR_SHAPE (the two differ in shape), MX_ERR_NOMEM.
 *  Oracle: tests/test_diff.c, tests/test_diff_counts.c, tests/mutants. */
mx_status mx_diff(mx_difference *out, const mx_tensor *a, const mx_tensor *b, const mx_spec *spec, const float *x, size_t ld,
                  const float *values_a, const float *values_b, const mx_diff_options *options, mx_error *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
