/* Declares what counting and the search for patterns share. */
#ifndef MX_VERIFY_DIFF_DIFF_H
#define MX_VERIFY_DIFF_DIFF_H

#include <math.h>
#include <string.h>

#include "core/shortage.h"
#include "mxgold/verify.h"

/* The hypothesis that B has A's elements in another order inside each group of `size`: bit i of may[k] says that A's element i may stand at place k. */
typedef struct diff_order {
  size_t size; /* 0: the hypothesis is refuted */
  uint64_t may[64];
} diff_order;

/* A pattern is stated only if chance would make it less often than this. A larger value would state accidents as patterns; a smaller one would state
 * nothing about small tensors. */
static const double DIFF_BY_CHANCE = 1e-6;
/* How often one cell is taken to have a trait by chance, where the data do not show its share: a trait of two kinds (a sign, one step up or down), of a
 * few (one code more, a power of two), of more, or of many (what half of the cells imply about the other half). With smaller values fewer cells are
 * enough to state a pattern, which is wrong where the data are all alike. */
static const double DIFF_OF_TWO = 0.5, DIFF_OF_FEW = 0.25, DIFF_OF_MORE = 0.125, DIFF_OF_MANY = 0.0625;

/* Where the cells of a grid that differ lie; a cell is an element of the matrix, or a scale. Rows are reported in ascending order, all cells of a row
 * together. At most DIFF_FEW rows, columns or positions are listed, and only if they are at most one in DIFF_SPARSE_ONE_IN of all, since a longer list
 * helps no reader. In grids wider than DIFF_COLUMNS several columns share a count, which hides patterns of single columns; a larger limit would cost
 * memory for each thread. */
enum { DIFF_FEW = 8, DIFF_SPARSE_ONE_IN = 4, DIFF_COLUMNS = 1 << 20 };
typedef struct diff_place {
  size_t rows, cols;       /* of the grid */
  uint32_t *col;           /* [n_col] cells by column; where there are more than DIFF_COLUMNS, by the lower bits of the column */
  size_t n_col;            /* a power of two if columns share counts */
  uint64_t n;              /* cells */
  size_t row[2];           /* the first and the last */
  size_t span[2];          /* of columns */
  size_t n_rows, row_bits; /* rows with such a cell; bits that are not the same in all of them */
  size_t few[DIFF_FEW];    /* the first of these rows */
} diff_place;

/* Traits of ordinary elements, counted at samples in rows that differ: a trait that all differences share means nothing if most elements have it. */
enum { DIFF_SPECIAL, DIFF_SUBNORMAL, DIFF_TIE, DIFF_NEAR_TIE, DIFF_NEGATIVE, DIFF_POSITIVE, DIFF_AMAX_NEGATIVE, DIFF_INPUT_TESTS };
typedef struct diff_usual {
  uint64_t n, code[256], input[DIFF_INPUT_TESTS];
} diff_usual;

typedef struct diff_dense diff_dense;
typedef struct diff_gather diff_gather;

typedef struct diff_job {
  mx_difference *out;
  const mx_tensor *a, *b;
  double factor[2]; /* by which the tensor scales of A and B multiply values; 1 without one */
  const mx_spec *spec;
  const mx_format *elem, *scale;
  size_t block_rows, block_cols;
  int block_shift; /* log2 of block_cols; -1: no power of two */
  const float *x;  /* of the whole matrix, or NULL */
  size_t ld;
  const float *piece; /* of rows [piece_row, piece_row + piece_rows), row stride ld */
  size_t piece_row, piece_rows;
  uint8_t *room[2], *scale_room[2]; /* for codes and scales of A and B in those rows, if they are copied */
  size_t scale_room_bytes;
  const uint8_t *near[2], *near_scales[2]; /* the copies; NULL: they are read in place */
  size_t near_first, n_near;               /* number of the first scale that is copied, and how many; scales of a byte each */
  size_t passed_row, n_passed;             /* rows that were not yet reported to how.passed */
  mx_diff_options how;
  const char *name[2];                 /* of A and B, in words */
  double value[256], scale_value[256]; /* of codes of up to 8 bits */
  uint8_t nan[256], scale_nan[256];
  double middle[256]; /* midpoints of neighbouring magnitudes, ascending */
  size_t n_middle;
  const float
      *values[2];       /* of A and B: what each code means under each scale, [256][codes]; NULL: not so few, or not by code and scale alone */
  uint8_t *block_seen;  /* [scale_cols] of the block row at hand */
  int fresh;            /* block_seen is to be zeroed before use */
  uint8_t *block_moved; /* [scale_cols] of the row at hand: bytes differ */
  uint8_t *map_col;     /* [cols]: the column of out->map that counts each column */
  size_t map_row;       /* the row of out->map that counts the row at hand */
  double values_ratio;  /* B / A while it is one number for all that differ; NaN once it is not */
  double scales_ratio;
  uint32_t scales_first[2];       /* the first that differs, of A and B */
  int64_t scales_step;            /* B - A of the codes of scales */
  int scales_wrap;                /* some are only modulo 256 */
  int scales_steps;               /* 0: none seen, 1: that one, 2: several */
  int scales_tally;               /* 1: scales are bytes, so that out->scale_pairs can count every pair of codes */
  uint64_t scales_nan;            /* scales that differ but are NaN in both, which out->scale_pairs does not count */
  diff_place place, scales_place; /* of elements, of scales */
  uint64_t *pairs;                /* [codes of A][codes of B] of elements that differ; NULL: more than 8 bits */
  unsigned pair_bits;             /* 4 or 8 */
  uint64_t pairs_moved;           /* elements that differ in blocks whose scale differs */
  diff_gather *gather;            /* counts values that differ; NULL: values are not asked for */
  diff_dense *dense;              /* counts runs in which much differs; NULL before the first one */
  int dense_may;
  unsigned code_alive, input_alive; /* a bit for each test of patterns that no element has refuted */
  diff_usual usual;
  diff_order order;
  uint64_t up, down, right, left; /* bit i: B may be A moved by i + 1 rows or columns */
  int swapped;                    /* 1: B may have the two codes of each byte exchanged */
  shortage *lack;                 /* the call's note that memory ran out */
} diff_job;

/* An element that differs, with all that tests of patterns read. */
typedef struct diff_element {
  size_t row, col;
  uint32_t a, b, scale_a, scale_b;
  double value_a, value_b, quotient, tie;
  float x;
} diff_element;

/** Eight bytes at once, as a little-endian word. */
#define DIFF_ONES UINT64_C(0x0101010101010101)
static inline uint64_t diff_8(const uint8_t *at) {
  uint64_t v;
  memcpy(&v, at, sizeof v);
  return v;
}
static inline void diff_put_8(uint8_t *at, uint64_t v) { memcpy(at, &v, sizeof v); }
/** 1 in each byte that is not 0. */
static inline uint64_t diff_some_8(uint64_t v) {
  const uint64_t seven = 0x7F * DIFF_ONES;
  return (((v & seven) + seven) | v) >> 7 & DIFF_ONES;
}
/** The sum of all bytes. */
static inline uint64_t diff_sum_8(uint64_t v) {
  const uint64_t even = UINT64_C(0x00FF00FF00FF00FF), ones = UINT64_C(0x0001000100010001);
  return ((v & even) + (v >> 8 & even)) * ones >> 48;
}

/** The codes of a row. */
static inline const uint8_t *diff_row(const diff_job *j, const mx_tensor *t, size_t row) {
  const uint8_t *near = j->near[t != j->a];
  return near && row - j->piece_row < j->piece_rows ? near + (row - j->piece_row) * t->code_stride : t->codes + row * t->code_stride;
}

/** Scales from number `at` on, up to the end of a row. */
static inline const uint8_t *diff_scales(const diff_job *j, const mx_tensor *t, size_t at) {
  const uint8_t *near = j->near_scales[t != j->a];
  return near && at - j->near_first < j->n_near ? near + (at - j->near_first) : t->scales + at * t->scale_bytes;
}

/** mx_code_at() for the usual ways of packing. */
static inline uint32_t diff_code(const diff_job *j, const mx_tensor *t, size_t row, size_t col) {
  if (j->elem->bits > 4 && j->elem->bits <= 8) return diff_row(j, t, row)[col];
  if (j->elem->bits != 4 || j->spec->nibble == MX_NIBBLE_HALF_BLOCK) return mx_code_at(t, j->spec, row, col);
  const unsigned odd = col & 1, up = j->spec->nibble == MX_NIBBLE_HIGH_FIRST ? !odd : odd;
  return diff_row(j, t, row)[col / 2] >> 4 * up & 15u;
}

/** Divisions are slow, and blocks are powers of two wide nearly always. */
static inline size_t diff_block(const diff_job *j, size_t col) { return j->block_shift >= 0 ? col >> j->block_shift : col / j->block_cols; }

static inline uint32_t diff_scale(const diff_job *j, const mx_tensor *t, size_t row, size_t col) {
  const size_t r = t->scale_rows == t->rows ? row : row / j->block_rows;
  const size_t at = r * t->scale_cols + diff_block(j, col);
  return t->scale_bytes == 1 ? *diff_scales(j, t, at) : mx_scale_code_at(t, at);
}

static inline int diff_nan_scale(const diff_job *j, uint32_t code) {
  const uint32_t sign = j->scale->sign_bits ? 1u << (j->scale->bits - 1) : 0;
  return j->scale->bits <= 8 ? j->scale_nan[code & 255] : mx_format_is_nan(j->scale, code & ~sign);
}

static inline int diff_nan_code(const diff_job *j, uint32_t code) {
  const uint32_t sign = j->elem->sign_bits && j->elem->kind == MX_KIND_FLOAT ? 1u << (j->elem->bits - 1) : 0;
  return j->elem->bits <= 8 ? j->nan[code & 255] : mx_format_is_nan(j->elem, code & ~sign);
}

/** Do these codes count as the same? */
static inline int diff_same(const diff_job *j, uint32_t a, uint32_t b) {
  const uint32_t sign = j->elem->bits < 32 ? 1u << (j->elem->bits - 1) : 0x80000000u;
  if (a == b) return 1;
  if (!j->how.nan_bits && diff_nan_code(j, a) && diff_nan_code(j, b)) return 1;
  if (j->how.equal_zeros && j->elem->kind == MX_KIND_FLOAT && !(a & ~sign) && !(b & ~sign)) return 1;
  return 0;
}

/** The values of a code and of a scale. */
static inline double diff_decode(const diff_job *j, uint32_t code) {
  return j->elem->bits <= 8 ? j->value[code & 255] : mx_decode(j->elem, code);
}

static inline double diff_scale_value(const diff_job *j, uint32_t code) {
  const double v = j->scale->bits <= 8 ? j->scale_value[code & 255] : mx_decode(j->scale, code);
  return j->spec->scale_sign == MX_SCALE_SIGN_MASKED ? fabs(v) : v;
}

/** Fills the tables of values and midpoints; once a call. */
void mxi_diff_tables(diff_job *j);
/** The element (row, col) whose codes and scales in A and B are given. */
diff_element mxi_diff_pair(const diff_job *j, size_t row, size_t col, const uint32_t code[2], const uint32_t scale[2]);
/** The largest magnitude of the input in the block of (row, col); the piece at hand must hold that block. */
float mxi_diff_amax(const diff_job *j, size_t row, size_t col);

/** Begin a row of the grid, then add n cells of one of its columns. */
void mxi_diff_place_row(diff_place *p, size_t row);
void mxi_diff_place_add(diff_place *p, size_t col, uint32_t n);
/** Say in words where the cells of a place lie. units is the number of blocks that differ, if the cells are elements. */
void mxi_diff_where(diff_job *j, const diff_place *p, uint64_t units, int scales);

/** Does it mean something that n of n cells have a trait that a share p of cells has by chance? The limit allows for many such questions being asked. */
int mxi_diff_telling(double p, double n);
/** State one more pattern in words; a pattern that was stated before is left out. */
void mxi_diff_say(diff_job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Begin and end the search for patterns in a part of the rows; each part has arrays of its own. */
mx_status mxi_diff_patterns_start(diff_job *j);
void mxi_diff_patterns_free(diff_job *j);
/** Join what two parts of the rows found, the earlier one in j; shapes and options are the same. */
void mxi_diff_patterns_merge(diff_job *j, const diff_job *later);
/** Report to the search: a row whose bytes differ, then each of its elements that differ; each scale that differs. At the end the patterns are stated. */
void mxi_diff_patterns_element(diff_job *j, const diff_element *e);
void mxi_diff_patterns_kind(diff_job *j, const diff_element *e); /* the same without the counts */
void mxi_diff_patterns_row(diff_job *j, size_t row);
void mxi_diff_patterns_scale(diff_job *j, size_t row, size_t col, uint32_t a, uint32_t b);
void mxi_diff_patterns_scale_kind(diff_job *j, uint32_t a, uint32_t b); /* without its place; at least once for each pair of codes */
void mxi_diff_patterns_end(diff_job *j);
/** An element of A as if it differed, for comparison with those that do. */
diff_element mxi_diff_look(const diff_job *j, size_t row, size_t col);
/** Is the largest magnitude of this element's block negative? Only with an input. */
int mxi_diff_amax_negative(const diff_job *j, size_t row, size_t col);

/** The values [256][codes] of all codes under all one-byte scales, made by mx_dequantize() itself. NULL without memory, or if a code and a scale do not
 *  decide a value; blocks are then dequantised one by one. */
float *mxi_diff_meanings(const diff_job *j, const mx_tensor *of);
int mxi_diff_same_float(float a, float b, const mx_diff_options *o);
/** Do two codes under two scales stand for the same value? Needs j->values. */
int mxi_diff_same_value(const diff_job *j, const uint32_t code[2], const uint32_t scale[2]);
/** Count values that differ in a part of the rows: begin it; count a row, of which block_moved marks some blocks; count what is left; free. */
mx_status mxi_diff_values_start(diff_job *j);
mx_status mxi_diff_values_row(diff_job *j, size_t row);
mx_status mxi_diff_values_flush(diff_job *j);
void mxi_diff_values_free(diff_job *j);

/** How many bytes of 64 must differ before they are counted as a run, by vectors. With a smaller number runs begin that soon end; with a larger one more
 *  bytes are counted one at a time. */
enum { DIFF_CROWD = 4 };
/** Can runs be counted by vectors for these formats and options? */
int mxi_diff_dense_may(const diff_job *j);
/** Count a run in a row: from byte `byte` on, as long as 64 whole bytes are left before `end` and many of them differ. Returns how many bytes were
 *  counted, a multiple of 64; 0 without memory. */
size_t mxi_diff_dense_run(diff_job *j, size_t row, size_t byte, size_t end);
/** Call the first at the end of each row with a run, the second before the row of the map changes, the third at the end; it frees the counts. */
void mxi_diff_dense_row(diff_job *j, size_t row);
void mxi_diff_dense_empty(diff_job *j);
void mxi_diff_dense_end(diff_job *j);

/** What runs use of the rest: count one byte that differs. */
void mxi_diff_byte(diff_job *j, size_t row, size_t byte);
/** Is it enough to count further elements with these codes under these scales, once one of them was looked at? */
int mxi_diff_countable(const diff_job *j, const uint32_t code[2], const uint32_t scale[2]);
/** Look at an element for patterns and examples without counting it. */
void mxi_diff_look_at(diff_job *j, size_t row, size_t col, const uint32_t code[2], const uint32_t scale[2]);
/** Count n more elements that could have been examples. */
void mxi_diff_examples(mx_difference *d, uint64_t n);

/** Find out whether B is A moved by rows or columns: report each row whose bytes differ, join parts of the rows, and state what was found. */
void mxi_diff_moves_start(diff_job *j);
void mxi_diff_moves_row(diff_job *j, size_t row);
void mxi_diff_moves_merge(diff_job *j, const diff_job *later);
void mxi_diff_moves_end(diff_job *j);

#endif
