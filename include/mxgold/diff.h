/** Finds what differs between two quantised matrices, where it differs, and what the differences have in common. */
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
  double value_a, value_b; /* what the codes stand for, under the scale of the block and the tensor scale */
  float x, amax;           /* of the input, if there is one */
  double quotient, tie;    /* x / (scale of A * tensor scale), and its distance to the nearest midpoint of codes; NaN without an input */
} mx_diff_example;

/** How two results are compared. In the zero struct NaN equals NaN whatever its code or sign, codes under a NaN scale do not count, and -0
 *  differs from +0. */
typedef struct mx_diff_options {
  int nan_bits;          /* 1: NaN codes are compared like any others */
  int equal_zeros;       /* 1: -0 and +0 are the same */
  int values;            /* 1: dequantise both where they differ, and count the values that differ */
  mx_diff_example *list; /* room for the first n_list elements that differ; NULL: none are listed */
  size_t n_list;
  /* For tensors larger than memory. input() replaces x: it gives rows [row, row + n) as dense binary32, valid until the next call. passed() is
   * told that rows [row, row + n) will not be read again soon. Both may be NULL and get self. Each row is passed once, in order if there is
   * input(). */
  const float *(*input)(void *self, size_t row, size_t n);
  void (*passed)(void *self, size_t row, size_t n);
  /* Copy n_bytes of codes of A or B that lie at `from` in a way that is cheaper than reading them in place, such as mx_file_read(). Returns 0
   * if it did; otherwise they are read in place. Called from all threads. May be NULL. */
  int (*read)(void *self, void *room, const void *from, size_t n_bytes);
  void *self;
  const char *name_a, *name_b; /* what patterns call A and B; NULL: "A" and "B" */
  int n_threads;               /* 0: OpenMP's default; with input() or list one is used. The result does not depend on it */
} mx_diff_options;

/** What differs between A (expected) and B (actual). */
typedef struct mx_difference {
  int equal;
  uint64_t n_codes, codes, n_scales, scales, n_values, values, tensor_scales; /* n_: compared; others: differ. Micro-scales count as scales */
  uint64_t zero_signs, nan_codes;           /* differences that were ignored; without equal_zeros, zero_signs are counted in codes */
  uint64_t padding;                         /* bytes behind the ends of rows that differ; they do not count as differences */
  size_t rows, blocks;                      /* with a code that differs */
  uint64_t by_position[256];                /* in the block; the last entry gathers the rest */
  uint64_t by_scale[256];                   /* elements that differ, by the scale byte of A */
  uint64_t pairs[16][16];                   /* by code of A and code of B; the top four bits of magnitudes for elements wider than 4 bits */
  uint64_t scale_steps[17];                 /* scale byte of B - A, from -8 or less to 8 or more */
  uint32_t scale_pairs[256][256];           /* scales that differ, by code of A and of B; the last entry gathers what is beyond */
  uint32_t map[MX_DIFF_ROWS][MX_DIFF_COLS]; /* differing elements over the matrix, as a coarse picture */
  uint64_t ties[16];                        /* elements that differ, by the binary order 2^-i of their distance to a tie (with an input) */
  int n_examples;
  size_t n_listed;
  mx_diff_example first, worst, smallest;
  char patterns[MX_DIFF_PATTERNS][MX_DIFF_WORDS]; /* what all differences have in common, in words; nothing that chance explains */
  int n_patterns;
} mx_difference;

/** Compare two quantised matrices of one shape and spec. x may be NULL, and so may values_a and values_b (dequantised, [rows][cols]).
 *  This takes one pass; rows that are equal byte for byte cost one memcmp. Patterns that need a second pass (another layout of the scales, a
 *  transpose, the other block axis) get one only if the rest does not exclude them; the last two make a copy and skip matrices above 2^26
 *  elements.
 *  Returns MX_OK, also if they differ; MX_ERR_ARG (NULL); MX_ERR_SHAPE (the two differ in shape); MX_ERR_NOMEM.
 *  Threads: reentrant; the same counts for any number.
 *  Oracle:
 tests/test_diff.c, tests/test_diff_counts.c, tests/mutants. */
mx_status mx_diff(mx_difference *out, const mx_tensor *a, const mx_tensor *b, const mx_spec *spec, const float *x, size_t ld,
                  const float *values_a, const float *values_b, const mx_diff_options *options, mx_error *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
