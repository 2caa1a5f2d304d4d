/* Declares what the drivers of one quantising call share: quantize.c cuts it into tiles, tile.c does them by scalar code, stages_rows.c by
 * vector kernels. */
#ifndef MX_KERNELS_JOB_H
#define MX_KERNELS_JOB_H

#include "kernels/rows.h"
#include "kernels/stages.h"

/* A band has as many rows as a block; a tile is one block of it. */
typedef struct mx_band {
  const float *at; /* rows as the rule sees them, from column `col` on */
  size_t ld, first, rows, col;
} mx_band;

typedef struct mx_job {
  const mx_plan *plan;
  const mx_source *src;
  mx_tensor *out;
  size_t first_row;
  size_t refused; /* the smallest index of a value that the spec refuses; SIZE_MAX if none */
  const mx_stages *stages;
  const mx_stages *flat;           /* the same with one code to a byte */
  const mx_stage_kernels *kernels; /* NULL: vector kernels are not used */
} mx_job;

/* Scales that were found before. A maximum between two that have the same scale has it too, so a bucket keeps such a range. */
enum { MX_MEMO_BUCKETS = 128 }; /* of maxima, 32 to a binade */
typedef struct mx_known {
  double least, most;
  mx_block_scale scale;
  float f[2];
  int formed; /* the kernels have a form for it */
} mx_known;
typedef struct mx_memo {
  const mx_job *job;                  /* the job whose scales these are; NULL: none yet */
  mx_known found[2][MX_MEMO_BUCKETS]; /* for both candidates of select=foursix */
} mx_memo;

/* The memory that a tile needs: for a row of its values, filled up with +0 if the block is short, and for a row of its codes. */
typedef struct mx_scratch {
  float *values;
  uint32_t *codes;
  mx_memo *memo;
} mx_scratch;

/** Quantises one tile by scalar code. Its 4-bit codes are or-ed into bytes that must be zero. */
void mxi_tile_scalar(mx_job *j, const mx_band *b, size_t block_row, size_t block_col, const mx_scratch *mine);
/** elem=none, elem=bf16: stores a band of n_cols columns unchanged or rounded, in whole tiles with a scale of one. */
void mxi_tile_pass_through(mx_job *j, const mx_band *b, size_t block_row, size_t n_cols);
/** Finds what is known about columns [c0, c1) of a band before their scale. */
void mxi_tile_stats(mx_block_stats *stats, const mx_plan *p, const mx_band *b, size_t c0, size_t c1);
void mxi_tile_store_scale(const mx_job *j, const mx_band *b, size_t block_row, size_t block_col, uint32_t code);
void mxi_tile_store_codes(const mx_job *j, size_t row, size_t c0, size_t n, const uint32_t *codes);

/** select=eden: corrects the scales of rows [row, row + n_rows) and columns [col, col + n_cols), whose codes and scales have been stored.
 *  The columns begin with a group, and end with one or with the row. x holds the values as the rule sees them, with row stride ld. Does
 *  nothing under another select. */
void mxi_eden_rows(const mx_job *j, const float *x, size_t ld, size_t row, size_t n_rows, size_t col, size_t n_cols);

/** Whether rows of blocks can go through the three stages. Then every byte of the codes is written, and none needs to be zero before. */
int mxi_stages_take_rows(const mx_job *j);
/** The same for bands of tiles, by mxi_stages_band(). */
int mxi_stages_take_bands(const mx_job *j);
/** Quantises blocks [first, first + n) of a row, whose elements are at x; the last block of the row may be short. next: what will be read
 *  after them. */
void mxi_stages_blocks(mx_job *j, const float *x, size_t row, size_t first, size_t n, const float *next, const mx_scratch *mine);
/** Quantises cols columns, from block `first` on, of rows [row, row + n_rows), which x holds without gaps. */
void mxi_stages_panel(mx_job *j, const float *x, size_t row, size_t n_rows, size_t first, size_t cols, const mx_scratch *mine);
/** Whether columns of the source can be quantised as they lie in memory. */
int mxi_stages_take_columns(const mx_job *j);
/** Quantises columns of a matrix in memory, at x with row stride ld: n_rows of them, rows of the tensor from `row` on, each of which has cols numbers,
 *  from block `first` on; both are multiples of sixteen. What lies `ahead` rows of memory further is prefetched. Returns 0 if it has done nothing,
 *  because of what these columns hold. */
int mxi_stages_columns(mx_job *j, const float *x, size_t ld, size_t row, size_t n_rows, size_t first, size_t cols, size_t ahead,
                       const mx_scratch *mine);
/** Finds the scales of a piece, and which of its blocks are not ordinary. Not for rules that need more than the largest magnitude. */
void mxi_stages_scales(const mx_job *j, mx_piece *p, mx_memo *memo);
/** Quantises tiles [first, first + n) of a band that starts with the first of them. */
void mxi_stages_band(mx_job *j, const mx_band *b, size_t block_row, size_t first, size_t n, const mx_scratch *mine);
/** Whether tiles that are not rows of sixteen, of select=foursix or with codes that are encoded twice, can be done many at a time. Codes are
 *  or-ed into bytes that must be zero. */
int mxi_stages_take_tiles(const mx_job *j);
void mxi_stages_tiles(mx_job *j, const mx_band *b, size_t block_row, size_t first, size_t n, const mx_scratch *mine);
/** Quantises one tile of any shape, by scalar code if no kernel fits. */
void mxi_stages_tile(mx_job *j, const mx_band *b, size_t block_row, size_t block_col, const mx_scratch *mine);

#endif
