/* Declares one call of quantise, as its drivers share it: quantize.c cuts it into tiles, tile.c does them by scalar code, stages_rows.c by vector
 * kernels. */
#ifndef MX_KERNELS_JOB_H
#define MX_KERNELS_JOB_H

#include "kernels/rows.h"
#include "kernels/stages.h"

/* A band is as many rows as a block is high; a tile is one block of it. */
typedef struct mx_band {
  const float *at; /* rows as the rule sees them, from column `col` on */
  size_t ld, first, rows, col;
} mx_band;

typedef struct mx_job {
  const mx_plan *plan;
  const mx_source *src;
  mx_tensor *out;
  size_t first_row;
  size_t refused; /* least index of a value that the spec refuses, SIZE_MAX if none */
  const mx_stages *stages;
  const mx_stages *flat;           /* the same with a code a byte */
  const mx_stage_kernels *kernels; /* NULL: no vectors in general */
} mx_job;

/* Scales found before. A maximum between two that have the same scale has it too: a bucket knows such a range. */
enum { MX_MEMO_BUCKETS = 128 }; /* of maxima, 32 a binade */
typedef struct mx_known {
  double least, most;
  mx_block_scale scale;
  float f[2];
  int formed; /* the kernels have a form for it */
} mx_known;
typedef struct mx_memo {
  const mx_job *job;                  /* whose they are; NULL: none yet */
  mx_known found[2][MX_MEMO_BUCKETS]; /* of select=foursix both candidates */
} mx_memo;

/* What a tile needs of memory: a row of its values, filled up with +0 where the block is short, and of its codes. */
typedef struct mx_scratch {
  float *values;
  uint32_t *codes;
  mx_memo *memo;
} mx_scratch;

/** One tile by scalar code. Its 4-bit codes are or-ed into zeroed bytes. */
void mxi_tile_scalar(mx_job *j, const mx_band *b, size_t block_row, size_t block_col, const mx_scratch *mine);
/** elem=none, elem=bf16: a band of n_cols columns is stored as it is or rounded, whole tiles under a scale of one. */
void mxi_tile_pass_through(mx_job *j, const mx_band *b, size_t block_row, size_t n_cols);
/** What is known of columns [c0, c1) of a band before their scale. */
void mxi_tile_stats(mx_block_stats *stats, const mx_plan *p, const mx_band *b, size_t c0, size_t c1);
void mxi_tile_store_scale(const mx_job *j, const mx_band *b, size_t block_row, size_t block_col, uint32_t code);
void mxi_tile_store_codes(const mx_job *j, size_t row, size_t c0, size_t n, const uint32_t *codes);

/** select=eden: correct the scales of rows [row, row + n_rows), columns [col, col + n_cols), whose codes and scales are stored. col starts a group, and
 *  n_cols ends one or the row. x holds them as the rule sees them, row stride ld. Nothing happens under another select. */
void mxi_eden_rows(const mx_job *j, const float *x, size_t ld, size_t row, size_t n_rows, size_t col, size_t n_cols);

/** Can rows of blocks go through the three stages? Then every byte of the codes is written, and none needs to be zero before. */
int mxi_stages_take_rows(const mx_job *j);
/** The same of bands of tiles, by mxi_stages_band(). */
int mxi_stages_take_bands(const mx_job *j);
/** Blocks [first, first + n) of a row, whose elements are at x; the last block of the row may be short. next: what will be read after them. */
void mxi_stages_blocks(mx_job *j, const float *x, size_t row, size_t first, size_t n, const float *next, const mx_scratch *mine);
/** Columns [first * block, that + cols) of rows [row, row + n_rows), which x holds without gaps. */
void mxi_stages_panel(mx_job *j, const float *x, size_t row, size_t n_rows, size_t first, size_t cols, const mx_scratch *mine);
/** Tiles [first, first + n) of a band that starts with the first of them. */
void mxi_stages_band(mx_job *j, const mx_band *b, size_t block_row, size_t first, size_t n, const mx_scratch *mine);
/** Tiles of select=foursix, and of codes encoded twice, that are not rows of sixteen: many at a time. Codes are or-ed into zeroed bytes. */
int mxi_stages_take_tiles(const mx_job *j);
void mxi_stages_tiles(mx_job *j, const mx_band *b, size_t block_row, size_t first, size_t n, const mx_scratch *mine);
/** One tile of any shape, scalar where no kernel fits. */
void mxi_stages_tile(mx_job *j, const mx_band *b, size_t block_row, size_t block_col, const mx_scratch *mine);

#endif
