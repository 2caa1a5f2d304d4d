/** Measures what a format, a rounding or a rotation does to a tensor and to a product.
 *
 *  Every number is the same to the bit for any number of threads and any ISA: sums are binary64, taken over pieces of MX_PIECE values, four
 *  lanes each, and the pieces are added in order; logarithms and normal numbers are computed here from +, -, *, / and sqrt alone.
 *  Nothing here decides bits of codes: those come from mx_quantize(). */
#ifndef MXGOLD_ABLATE_H
#define MXGOLD_ABLATE_H

#include "gemm.h"
#include "quantize.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* ---- Data ---- */

/** The kinds of generated tensors: MX_DATA(ID, "name", parameters it takes, first default, second default, "meaning") */
#define MX_DATA_KINDS(X)                                                                                                                       \
  X(GAUSSIAN, "gaussian", 0, 0, 0, "N(0,1)")                                                                                                   \
  X(UNIFORM, "uniform", 0, 0, 0, "uniform in (-1, 1)")                                                                                         \
  X(LAPLACE, "laplace", 0, 0, 0, "Laplace of scale 1")                                                                                         \
  X(STUDENT, "student", 1, 3, 0, "student:NU, Student's t of NU degrees of freedom, a whole number from 1 to 64")                              \
  X(ROWS, "rows", 1, 2.5, 0, "rows:S, N(0,1) with each row scaled by exp(S * N(0,1))")                                                         \
  X(OUTLIERS, "outliers", 2, 0.01, 20, "outliers:SHARE:FACTOR, N(0,1) with a SHARE of the columns FACTOR times larger")

/** A kind of the list above: MX_DATA_GAUSSIAN, MX_DATA_UNIFORM, ... */
typedef enum mx_data_kind {
#define X(id, ...) MX_DATA_##id,
  MX_DATA_KINDS(X)
#undef X
      MX_DATA_COUNT
} mx_data_kind;

/** A kind of generated tensor with its parameters. */
typedef struct mx_data {
  int kind;        /* MX_DATA_* */
  double param[2]; /* as the row says */
} mx_data;

/** Name and meaning of a kind; NULL outside the list. */
const char *mx_data_name(int kind);
const char *mx_data_doc(int kind);
/** Parse "gaussian", "student:3", "outliers:0.01:20". MX_ERR_KEY names the nearest kinds, MX_ERR_ARG says which parameters are allowed. */
mx_status mx_data_parse(mx_data *out, const char *text, mx_error *err);
/** Fill out [rows][cols]. Value i is a function of (data, seed, i, cols) alone: Philox stream MX_STREAM_DATA, normal numbers by Wichura's
 *  AS 241 (1988). Threads: runs on several, with the same bits for any number.  Oracle: tests/test_ablate.c. */
void mx_data_fill(float *out, size_t rows, size_t cols, const mx_data *data, uint64_t seed);
/** The same on at most exec's threads (NULL: all processors). */
void mx_data_fill_on(float *out, size_t rows, size_t cols, const mx_data *data, uint64_t seed, const mx_exec *exec);

/* ---- One tensor ---- */

enum { MX_PIECE = 4096 };

/** Sums over pairs (x, y), where y is what became of x. A pair whose x is NaN or Inf is counted and left out, and so is a spoiled pair: its x
 *  is finite, its y NaN or Inf (from a NaN elsewhere in the block, or from overflow). `lost` sums the squares of the spoiled x, which would
 *  otherwise seem free of error. */
typedef struct mx_error_sums {
  uint64_t n, n_nan, n_inf, n_spoiled; /* n: pairs in the sums */
  uint64_t n_underflow;                /* x != 0, y == 0 */
  double xx, yy, xy, ee;               /* sums of x^2, y^2, x y, (x - y)^2 */
  double max_error, max_relative;      /* largest |x - y|; largest |x - y| / |x| over x != 0 */
  double lost;                         /* sum of x^2 over spoiled x */
} mx_error_sums;

/** Add n pairs to *sums (zeroed before the first call).
 *  x, y       float32 [n]
 *  n_threads  0: all processors
 *  Each call starts a new piece, so a tensor that is added in parts gives the same bits as the whole only if the length of every part but the
 *  last is a multiple of MX_PIECE.  Threads: the same bits for any number.  Oracle: tests/test_ablate.c. */
void mx_error_sums_add(mx_error_sums *sums, const float *x, const float *y, size_t n, int n_threads);
/** Add the sums of the next part to *sums. */
void mx_error_sums_join(mx_error_sums *sums, const mx_error_sums *next);

/** Figures computed from the sums; 0 if the divisor is 0. SQNR is +Inf if there is no error. */
double mx_sqnr(const mx_error_sums *s);           /* 10 log10(xx / ee), dB */
double mx_sqnr_of_all(const mx_error_sums *s);    /* the same with spoiled values as if they had become 0 */
double mx_mse(const mx_error_sums *s);            /* ee / n */
double mx_relative_error(const mx_error_sums *s); /* sqrt(ee / xx) */
double mx_cosine(const mx_error_sums *s);         /* xy / sqrt(xx yy) */
double mx_gain(const mx_error_sums *s);           /* xy / xx: below 1 the tensor shrinks */

enum { MX_BINADES = 512, MX_BINADE_0 = 256 };

/** Counts over codes and scales. The padding of a short last block is not counted, and the scale of a tile is counted once. */
typedef struct mx_code_counts {
  uint64_t n, zero, saturated; /* saturated: the code is the largest finite one, and the scaled value lies beyond it */
  uint64_t code[256];
  uint64_t n_scales, scale_zero, scale_nan;
  uint64_t scale_binade[MX_BINADES]; /* [MX_BINADE_0 + floor(log2 |scale|)], the scale as stored */
  /* The same for the number that a code is multiplied by: the scale (its reciprocal, if scales divide) times the tensor scale. Presets with and
   * without a tensor scale can be compared by it. */
  uint64_t factor_binade[MX_BINADES];
  double tensor_factor; /* the tensor scale's part of that number, for the last tensor; 1 if there is none */
} mx_code_counts;

/** Add the codes and scales of a quantised matrix to *counts (zeroed before the first call).
 *  x  float32 [rows][cols]: what was quantised, after the rotation if spec has one
 *  y  float32 [rows][cols]: its mx_dequantize()
 *  Returns MX_OK or MX_ERR_NOMEM.  Threads: the same counts for any number.  Oracle: tests/test_ablate.c. */
mx_status mx_code_counts_add(mx_code_counts *counts, const mx_tensor *tensor, const mx_spec *spec, const float *x, const float *y,
                             int n_threads);
/** Entropy of the codes in bits: -sum p log2 p. */
double mx_code_entropy(const mx_code_counts *counts);
/** Bits per value: codes at their width, scales, micro-scales and tensor scale of a [rows][cols] matrix, divided by rows * cols. The fill of a
 *  short block counts. The scale of a tile counts once, although mx_tensor and files repeat it on each row; a 6-bit code counts 6 bits,
 *  although files use a byte for each. */
double mx_bits_per_value(const mx_spec *spec, size_t rows, size_t cols);

/** Quantise and dequantise: out [rows][cols] gets the dequantised src, with elem.prescale divided out and the rotation undone, so that it can
 *  be compared with src. src and out have row stride cols and may be the same. counts may be NULL.
 *  Returns as mx_quantize(); MX_ERR_SHAPE also when had.size does not divide cols, since what a short tile loses cannot be rotated back. */
mx_status mx_fake_quantize(float *out, const float *src, size_t rows, size_t cols, const mx_spec *spec, const mx_exec *exec,
                           mx_code_counts *counts, mx_error *err);

/** Does the spec draw random bits (stochastic rounding of elements or scales, fresh signs)? */
int mx_spec_is_random(const mx_spec *spec);

/** The seed of repeat r of a measurement: the seed itself for r = 0, otherwise words 2r and 2r + 1 of Philox (seed, stream 4), low word first,
 *  so that the repeats of neighbouring seeds have nothing in common.  Oracle: tests/test_ablate.c. */
uint64_t mx_repeat_seed(uint64_t seed, int r);

/** How to measure; the zero struct is eight repeats of a random spec, on all processors. */
typedef struct mx_measure_options {
  int repeats;                      /* of a random spec, with the seeds of mx_repeat_seed(); 0: 8 */
  int n_threads;                    /* 0: all */
  size_t n_units;                   /* length of unit_error */
  int whole_only;                   /* products: measure both operands together alone; the parts of one operand stay 0 */
  const struct mx_mma_model *fused; /* products under MX_GEMM_FUSED: the matrix unit (mma.h) */
  /* Products: called on the caller's thread after every product, with the share of the work that is done, 0 to 1. May be NULL. */
  void (*progress)(void *self, double share);
  void *progress_self;
  double *unit_error; /* [n_units], may be NULL: sum of (x - y)^2 over each unit of the tensor (mx_unit_first()), averaged over repeats;
                         a spoiled x counts as x^2 */
} mx_measure_options;

/** What a spec does to one tensor. */
typedef struct mx_measure {
  mx_error_sums sums;    /* all repeats together */
  mx_code_counts counts; /* of the first repeat */
  double bits;           /* mx_bits_per_value */
  int repeats;
  /* ||E[y] - x|| / ||x||, the part of the error that repeating does not average away. What a finite number of repeats leaves of the random
   *  part is subtracted. Without randomness this is the relative error. TECHNIQUES 2.3. */
  double bias;
  /* The 95 % interval of the bias. The interval is made for its square, which is the estimate plus and minus twice its standard deviation; that deviation
   *  is computed from the distances of the last repeat from the mean of all repeats, as if every value were rounded independently of the others.
   *  bias_low is 0 if so few repeats cannot tell the bias from none. Without randomness both ends are the bias itself; after one repeat they are 0 and Inf. */
  double bias_low, bias_high;
} mx_measure;

/** Measure what a spec does to x [rows][cols]. Returns as mx_fake_quantize(). Oracle: tests/test_ablate.c, which has each number by hand. */
mx_status mx_measure_tensor(mx_measure *out, const float *x, size_t rows, size_t cols, const mx_spec *spec, const mx_measure_options *options,
                            mx_error *err);

/** Index of the first value of unit u when n values are cut into n_units: boundaries are multiples of 64 if there are enough values. */
size_t mx_unit_first(size_t u, size_t n_units, size_t n);

/** A value with its interval. */
typedef struct mx_interval {
  double at, low, high; /* the value and its 95 % interval */
} mx_interval;

/** By how many dB is b worse than a? 10 log10(sum b / sum a), or +-Inf if only one of them is 0, with the 95 % interval of a symmetric,
 *  studentised bootstrap over units: both are resampled together, `resamples` times (0: 400), with Philox of (seed, MX_STREAM_DATA). The
 *  interval widens if a few units hold much of the error. For a single unit it has no width. */
mx_status mx_bootstrap_db(mx_interval *out, const double *a, const double *b, size_t n_units, int resamples, uint64_t seed);

/** The same for n_b columns b[k] against one a, all with the same draws: out[k]. ranked may be NULL; if ranked[k] is set, the interval goes
 *  from the 2.5 % to the 97.5 % quantile of the resamples themselves. Use it for sums that a few units hold by construction, such as values
 *  spoiled by NaN: a resample's own standard error is then meaningless, but the resamples still show which column is worse. */
mx_status mx_bootstrap_db_all(mx_interval *out, const double *a, const double *const *b, size_t n_b, const unsigned char *ranked,
                              size_t n_units, int resamples, uint64_t seed);

/** Two columns of units that are compared. */
typedef struct mx_column_pair {
  size_t a, b;
} mx_column_pair;
/** The same for pairs of columns of units [n_columns][n_units], and ranked[k] for each pair: out[k] is by how many dB column pairs[k].b is worse than column
 *  pairs[k].a. All pairs share the draws, which are of (seed, resamples, n_units) alone, so that no pair's interval depends on the others.
 *  MX_ERR_ARG (NULL, n_units 0, a column that is not), MX_ERR_NOMEM.  Oracle: tests/test_ablate_luck.c. */
mx_status mx_bootstrap_db_pairs(mx_interval *out, const double *const *units, size_t n_columns, const mx_column_pair *pairs, size_t n_pairs,
                                const unsigned char *ranked, size_t n_units, int resamples, uint64_t seed);

/* ---- Products ---- */

/** y = x w^T in binary64: each output is one dot product with k ascending.
 *  y          binary64 [m][n]
 *  x, w       float32 [m][k] and [n][k]
 *  n_threads  0: all processors; the same bits for any number.  Oracle: tests/test_ablate_products.c. */
void mx_product(double *y, const float *x, const float *w, size_t m, size_t n, size_t k, int n_threads);

/** How a product differs from the exact one. */
typedef struct mx_product_error {
  double relative, bias;      /* bias as in mx_measure; NaN if every value is left out */
  double bias_low, bias_high; /* its 95 % interval as in mx_measure, but by a jackknife over the repeats; with two repeats 0 and relative */
  double gain, cosine;
  uint64_t left_out; /* values, over all repeats, that are NaN or Inf in either: not in the sums */
} mx_product_error;
/** Compare two products, exact and other, of n values each in binary64; without repeats the bias is the relative error. */
void mx_product_compare(mx_product_error *out, const double *exact, const double *other, size_t n);

/** Where the error of a quantised product comes from. */
typedef struct mx_product_split {
  mx_product_error x, w;       /* only this operand quantised */
  mx_product_error both;       /* both quantised, product in binary64 */
  mx_product_error accumulate; /* both under the accumulation model, against both in binary64; a model rounds its result to binary32 */
  mx_product_error total;      /* both under the model, against the exact product of the unquantised operands */
} mx_product_split;

/** In addition to the models MX_GEMM_* of gemm.h: dequantised operands multiplied in binary64, for operands whose blocks differ. */
enum { MX_PRODUCT_DEQUANTIZED = -1 };

/** One quantised product and the parts of its error. x is [m][k], w [n][k], spec_x and spec_w their specs, model MX_GEMM_* or
 *  MX_PRODUCT_DEQUANTIZED. If a spec is random there are options->repeats repeats, and repeat r uses mx_repeat_seed() of each seed. Fresh signs
 *  come from spec_x's seed for both operands. If both round stochastically, give them different seeds.
 *  MX_ERR_CONFLICT: had.size, had.sign or its fixed signs differ, so that the rotations do not cancel in the product; or, under a model, the
 *  blocks along K differ. MX_ERR_ARG: MX_GEMM_FUSED without options->fused. */
mx_status mx_product_split_measure(mx_product_split *out, const float *x, const float *w, size_t m, size_t n, size_t k, const mx_spec *spec_x,
                                   const mx_spec *spec_w, int model, const mx_measure_options *options, mx_error *err);

/** The six quantisations of a linear layer y = x W^T, x [T][I], W [O][I], dy [T][O] (TECHNIQUES 0): each along the reduction axis of its product.
 *  Q1 x along I, Q2 W along I (Fprop); Q3 dy along O, Q4 W^T along O (Dgrad); Q5 dy^T along T, Q6 x^T along T (Wgrad). */
enum { MX_SIX_FPROP, MX_SIX_DGRAD, MX_SIX_WGRAD, MX_SIX_PRODUCTS };
typedef struct mx_six {
  mx_measure q[6];
  mx_product_split product[MX_SIX_PRODUCTS];
} mx_six;
/** Measure one of the three products with its two operands. A caller who keeps what is done can stop between products.
 *  q         of the product's operands: Q1 and Q2 of Fprop, Q3 and Q4 of Dgrad, Q5 and Q6 of Wgrad
 *  product   MX_SIX_*
 *  x, w, dy  float32 [t][i], [o][i], [t][o]
 *  spec      of these two operands
 *  model, options, errors, threads: as mx_product_split_measure(); MX_ERR_ARG where there is no such product; MX_ERR_NOMEM.
 *  Oracle: tests/test_ablate_products.c. */
mx_status mx_six_product_measure(mx_measure q[2], mx_product_split *out, int product, const float *x, const float *w, const float *dy, size_t t,
                                 size_t i, size_t o, const mx_spec spec[2], int model, const mx_measure_options *options, mx_error *err);
/** Measure all six and their three products.
 *  x, w, dy  float32 [t][i], [o][i], [t][o]
 *  spec      of Q1 to Q6
 *  model, options, errors, threads: as mx_product_split_measure(); MX_ERR_NOMEM.  Oracle: tests/test_ablate_products.c. */
mx_status mx_six_measure(mx_six *out, const float *x, const float *w, const float *dy, size_t t, size_t i, size_t o, const mx_spec spec[6],
                         int model, const mx_measure_options *options, mx_error *err);

/** A published way to quantise the six operands (formats/recipes.def). */
typedef struct mx_recipe {
  const char *name;     /* "recipe-..." */
  const char *keys;     /* for all six: a preset's name, or KEY=VALUE ... */
  const char *operands; /* "Qn:KEY=VALUE,...;..." */
  const char *train;    /* training keys (linear.h), which a single tensor has no use for: "KEY=VALUE,..." */
  const char *source;
} mx_recipe;
size_t mx_recipe_count(void);
const mx_recipe *mx_recipe_at(size_t index); /* NULL past the end */
/** Index of a name, -1 if there is none. */
int mx_recipe_find(const char *name);
/** The spec that all six have in common. MX_ERR_KEY, MX_ERR_CONFLICT. */
mx_status mx_recipe_base(mx_spec *out, const mx_recipe *recipe, mx_error *err);
/** Set the keys that each operand has of its own, on specs that hold the common one (and what a caller has changed). MX_ERR_KEY,
 *  MX_ERR_CONFLICT. */
mx_status mx_recipe_operands(mx_spec spec[6], const mx_recipe *recipe, mx_error *err);

/* ---- Pictures ---- */

enum { MX_DETAIL_CELLS = 48 };
/** What charts are drawn from. Octaves: floor(log2(|x| / rms x)) from -32 to 31. */
typedef struct mx_detail {
  double octave_x[64], octave_e[64]; /* sums of x^2 and (x - y)^2 by |x| / rms, [32 + octave] */
  uint64_t octave_n[64];
  uint64_t rotated_n[64];                         /* counts of |Hx| / rms, H the rotation of had_size */
  size_t cell_rows, cell_cols;                    /* extent of the map, at most MX_DETAIL_CELLS each */
  double cell[MX_DETAIL_CELLS * MX_DETAIL_CELLS]; /* rms of x - y in a cell over rms of x in the tensor */
} mx_detail;
/** Collect the numbers of the charts.
 *  x, y      float32 [rows][cols]: a tensor, and what became of it
 *  had_size  size of the rotation of rotated_n; 0: none, and rotated_n stays 0
 *  Returns MX_OK; MX_ERR_ARG (NULL); MX_ERR_NOMEM.  Threads: one for the sums, whose order is fixed.  Oracle: tests/test_ablate.c. */
mx_status mx_detail_measure(mx_detail *out, const float *x, const float *y, size_t rows, size_t cols, unsigned had_size);

/* ---- Outlier clamping and compensation (TECHNIQUES 3.2) ---- */

enum { MX_OCC_SYMMETRIC, MX_OCC_MSAMP };
/** Clamp x at its quantiles 1 - alpha and alpha.
 *  clamped  float32 [n]: the clamped values
 *  rest     float32 [n]: what was cut off, rnd_f32(x - clamped); 0 where nothing was
 *  n_rest   how many values were clamped
 *  x        float32 [n]. A NaN counts as the largest value, and is not clamped.
 *  index    which two elements of the sorted tensor are the bounds: MX_OCC_SYMMETRIC, those at floor((1 - alpha)(n - 1)) from either end;
 *           MX_OCC_MSAMP, those at int((1 - alpha) n) and int(alpha n)
 *  In binary32 clamped + rest is x if the two have one sign and lie within a factor of two of each other. Otherwise rest may be off by up to
 *  2^-24 |x - clamped|: 16777215 clamped to .5 comes back as 16777214. The quantised layer therefore keeps it in binary64 (occ.alpha, linear.h).
 *  Returns MX_OK; MX_ERR_ARG (NULL, n 0, alpha outside 0.5..1); MX_ERR_NOMEM.  Threads: reentrant.  Oracle: tests/test_ablate.c. */
mx_status mx_occ(float *clamped, float *rest, size_t *n_rest, const float *x, size_t n, double alpha, int index);

/** Where the error y - x of block quantisation comes from, beside the ideal scale s* = max|x| / (largest value of the element format) of each
 *  block. With Q*(x) = s* q(x / s*), q to nearest even, the error is the sum of three parts:
 *      scale  y - Q*(x)      dead  Q*(x) - x where Q*(x) = 0      grid  Q*(x) - x elsewhere
 *  dead and grid do not depend on the scale format, and no value has a part of both. scale_dead is 0 if no scale is below s*. */
typedef struct mx_error_terms {
  double xx;                      /* sum of x^2 */
  double scale, dead, grid;       /* sums of the squares of the parts */
  double scale_grid, scale_dead;  /* twice the sums of scale * grid and of scale * dead; these five add to total, except for rounding */
  double total;                   /* sum of (y - x)^2 */
  uint64_t n, n_dead, n_left_out; /* values in the sums, of them with Q*(x) = 0; values of blocks that hold NaN or Inf in x or y */
} mx_error_terms;
/** Add x and y [rows][cols] to *terms (zeroed before the first call). x is what was quantised, after a rotation and before elem.prescale, y what it
 *  became, without the prescale (mx_dequantize() of a spec that has neither). Of spec the block and the element format are read. Sums run in
 *  binary64 block by block, row-major, on the caller's thread. MX_ERR_UNSUPPORTED: an element format without a largest finite value of at
 *  most 8 bits, and HiFloat4.  Source: arXiv 2605.20402 by TECHNIQUES 2.4.  Oracle: its worked numbers, tests/test_ablate.c. */
mx_status mx_error_terms_add(mx_error_terms *terms, const float *x, const float *y, size_t rows, size_t cols, const mx_spec *spec);

/** The slope of the differentiable gradient estimator (TECHNIQUES 3.1; arXiv 2501.17116), by which a weight's gradient is multiplied because rounding
 *  has none. format has at most 8 bits. The slope is (1/k) |r|^(1/k - 1), at most `clip`, where r runs from -1 to 1 between the neighbours of
 *  x in the format; it is 1/k at the format's values and beyond its largest.
 The paper uses e2m1, k = 5 and clip = 3. NaN gives NaN.
 *  Threads: reentrant.   Oracle: tests/test_ablate.c, and the published vector in docs/FINDINGS.md. */
double mx_dge(const mx_format *format, double x, double k, double clip);

/** The logarithm that the figures above use: log2 of a positive, finite x with an error below 2 ulp, computed from +, -, *, / alone. */
double mx_log2(double x);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
