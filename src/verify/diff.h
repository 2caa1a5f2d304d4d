/* What counting and the search for patterns share. */
#ifndef MX_VERIFY_DIFF_H
#define MX_VERIFY_DIFF_H

#include "mxgold/verify.h"

typedef struct diff_job {
  mx_difference *out;
  const mx_tensor *a, *b;
  const mx_spec *spec;
  const mx_format *elem, *scale;
  size_t block_rows, block_cols;
  int block_shift; /* log2 of block_cols; -1: no power of two */
  const float *x;  /* of the whole matrix, or NULL */
  size_t ld;
  const float *piece; /* of rows [piece_row, piece_row + piece_rows), row stride ld */
  size_t piece_row, piece_rows;
  mx_diff_options how;
  double value[256], scale_value[256]; /* of codes of up to 8 bits */
  uint8_t nan[256], scale_nan[256];
  double middle[256]; /* midpoints of neighbouring magnitudes, ascending */
  size_t n_middle;
  const float
      *values[2];       /* of A and B: what each code means under each scale, [256][codes]; NULL: not so few, or not by code and scale alone */
  uint8_t *block_seen;  /* [scale_cols] of the block row at hand */
  int fresh;            /* block_seen is to be zeroed before use */
  uint8_t *block_moved; /* [scale_cols] of the row at hand: bytes differ */
  uint8_t *map_col;     /* [cols], and that of the row at hand: where out->map counts it */
  size_t map_row;
  double values_ratio; /* B / A while it is one number for all that differ; NaN once it is not */
  double scales_ratio;
  uint64_t alive[2]; /* tests of diff_patterns.c that nothing spoke against; columns, rows in steps */
  size_t first_row, first_col;
  int shift_up, shift_down, swapped, right, left; /* B is A moved so, as far as was looked */
} diff_job;

/* An element that differs, with what tests ask of it. */
typedef struct diff_element {
  size_t row, col;
  uint32_t a, b, scale_a, scale_b;
  double value_a, value_b, quotient, tie;
  float x;
} diff_element;

uint32_t diff_scale(const diff_job *j, const mx_tensor *t, size_t row, size_t col);
/** Do these codes count as the same? scale: of A. */
int diff_same(const diff_job *j, uint32_t a, uint32_t b);
double diff_scale_value(const diff_job *j, uint32_t code);

/** What two parts of the rows found, the first before the second; shapes and options are the same. */
void diff_patterns_merge(diff_job *j, const diff_job *later);
/** Tests of patterns: at the start, with each element that differs, with each row whose bytes differ, with each scale; then the names. */
void diff_patterns_start(diff_job *j);
void diff_patterns_element(diff_job *j, const diff_element *e);
void diff_patterns_row(diff_job *j, size_t row);
void diff_patterns_scale(diff_job *j, uint32_t a, uint32_t b);
void diff_patterns_end(diff_job *j);

#endif
