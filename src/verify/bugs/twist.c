/* Tries bugs in a rule that no key names: another number stands for a block's maximum, elements are divided by something else than the stored scale,
 * the tensor's maximum is that of a part, or elements are rounded twice. The preset is run by blocks with the one change in it. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bugs/base.h"
#include "verify/fault/elements.h"

/* TWIST_STAT(ID, "what it is", parameters...): what stands for max|x| of a block */
#define STATS(X)                                                                                                                               \
  X(NOABS, "max(x), not max|x|", "amax without abs", 0)                                                                                        \
  X(FIRST, "the maximum of the first 1/%g of the block alone", "amax over a part of the block", 2, 4, 8)                                       \
  X(LAST, "the maximum of the last 1/%g of the block alone", "amax over a part of the block", 2, 4, 8)                                         \
  X(NOT_FIRST, "a maximum that leaves out the first element of the block", "amax without the first element", 0)                                \
  X(NOT_LAST, "a maximum that leaves out the last element of the block", "amax without the last element", 0)                                   \
  X(EVERY, "the maximum of every second element of the block, from element %g on", "amax over every second element", 0, 1)                     \
  X(SOME, "a maximum that leaves out elements of the block", "amax over a part of the block", 0)                                               \
  X(TAIL_NEXT, "the elements behind its end as well, where it is the last, short one of a row (the next row, in memory)",                      \
    "tail reads the next row", 0)                                                                                                              \
  X(TAIL_WINDOW,                                                                                                                               \
    "the last elements of the block before as well, where it is the last, short one of a row (a window moved back, a buffer not cleared)",     \
    "tail reads the block before", 0)                                                                                                          \
  X(TAIL_BOTH, "the block before it as well, where it is the last, short one of a row", "tail reads the block before", 0)                      \
  X(TAIL_FIRST, "the first %g elements of it alone, where it is the last, short one of a row", "part of the tail ignored", 0)                  \
  X(TAIL_LAST, "the elements of it from %g on alone, where it is the last, short one of a row", "part of the tail ignored", 0)                 \
  X(TAIL_SOME, "a maximum that leaves out elements of it, where it is the last, short one of a row", "part of the tail ignored", 0)            \
  X(ONE, "the first element of the block, not the maximum", "first element for amax", 0)                                                       \
  X(SECOND, "the second largest |x|", "second largest for amax", 0)                                                                            \
  X(MEAN, "the mean of |x| times %g, not the maximum", "mean for amax", 1, 2, 3, 4, 6)                                                         \
  X(RMS, "the root of the mean square times %g, not the maximum", "root mean square for amax", 1, 2, 3, 4)                                     \
  X(BEFORE, "the block before it in the row", "scale of the block before", 0, 1, 2)                                                            \
  X(AFTER, "the block after it in the row", "scale of the block after", 0, 1, 2)                                                               \
  X(ABOVE, "the block in the row above", "scale of the row above", 0)                                                                          \
  X(BELOW, "the block in the row below", "scale of the row below", 0)                                                                          \
  X(WIDE, "the maximum of %g blocks in a row together", "block too wide", 2, 4, 8)                                                             \
  X(TILE, "the maximum of a tile of %g rows", "a tile for a block", 2, 4, 8, 16, 32, 64, 128)                                                  \
  X(ROW, "the maximum of the whole row", "a row for a block", 0)                                                                               \
  X(RUNNING, "a maximum that is not set back between the blocks of a row", "amax not set back", 0)                                             \
  X(BF16, "a maximum rounded to bfloat16", "amax rounded to bfloat16", 0)                                                                      \
  X(BF16_CUT, "a maximum cut to bfloat16", "amax cut to bfloat16", 0)                                                                          \
  X(F16, "a maximum rounded to binary16", "amax rounded to binary16", 0)                                                                       \
  X(PARTS, "the first of %g parts that are scaled on their own", "block too narrow, scales lost", 2, 4, 8)                                     \
  X(LAST_PARTS, "the last of %g parts that are scaled on their own", "block too narrow, scales lost", 2, 4, 8)                                 \
  X(TURNS, "its elements at multiples of %g; the others have scales of their own, which are lost (a step of the reduction is missing)",        \
    "lanes scaled on their own", 2, 4, 8)                                                                                                      \
  X(TIMES, "amax * %g instead of amax / 6", "typed constant for 1/6", 0.1667, 0.16667, 0.166667, 0.1666667, 0.166, 0.17)                       \
  X(FLOOR, "a maximum of at least %g", "amax with a floor", 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)                      \
  X(PLUS, "a maximum to which %g is added", "amax with an epsilon", 1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)

/* What an element is divided by instead of its scale. */
#define DIVISORS(X)                                                                                                                            \
  X(UNROUNDED, "divides the elements by the scale before it is rounded (x * (F / amax)), and stores the rounded one", "unrounded scale")       \
  X(UNROUNDED_DIV, "divides the elements by the scale before it is rounded (x / (amax / F)), and stores the rounded one", "unrounded scale")   \
  X(UNROUNDED_MUL_DIV, "divides the elements by the scale before it is rounded (x * F / amax), and stores the rounded one", "unrounded scale") \
  X(UNROUNDED_RCP, "multiplies the elements by 1 / (amax / F), a scale that is not rounded, and stores the rounded one", "unrounded scale")    \
  X(UNROUNDED_NV, "divides the elements by the scale before it is rounded, and stores the rounded one", "unrounded scale")                     \
  X(NO_TENSOR, "divides the elements by the block's scale alone: the tensor scale is not applied to them", "tensor scale not applied")         \
  X(TENSOR_TWICE, "applies the tensor scale to the elements twice", "tensor scale applied twice")                                              \
  X(RCP_BF16, "multiplies by the reciprocal of the scale rounded to bfloat16", "reciprocal rounded to bfloat16")                               \
  X(RCP_F16, "multiplies by the reciprocal of the scale rounded to binary16", "reciprocal rounded to binary16")                                \
  X(BF16, "divides the elements by the scale, with the tensor scale in it, rounded to bfloat16", "divisor rounded to bfloat16")                \
  X(BF16_RCP, "multiplies by the reciprocal of the scale, with the tensor scale in it, rounded to bfloat16", "divisor rounded to bfloat16")    \
  X(SUBNORMAL, "divides the elements of blocks with a subnormal scale by half of it (exponent 0 taken for one less than exponent 1)",          \
    "subnormal scales read as normal")                                                                                                         \
  X(BYTE_ZERO,                                                                                                                                 \
    "divides by 0 where the scale is byte 0 (a binary32 number built as byte << 23, which is not 2^-127): what is not 0 becomes the largest",  \
    "byte 0 read as 0")                                                                                                                        \
  X(BYTE_ZERO_NAN,                                                                                                                             \
    "divides by 0 where the scale is byte 0 (a binary32 number built as byte << 23, which is not 2^-127): the largest, or NaN for 0 / 0",      \
    "byte 0 read as 0")                                                                                                                        \
  X(WRAP, "has no saturation: the magnitude of an element beyond the largest wraps to zero", "no saturation")                                  \
  X(Y_BF16, "rounds the scaled elements to bfloat16 first, and then again to the element format", "rounded twice, over bfloat16")              \
  X(Y_BF16_CUT, "cuts the scaled elements to bfloat16 before it rounds them", "cut to bfloat16 before rounding")                               \
  X(Y_F16, "rounds the scaled elements to binary16 first, and then again to the element format", "rounded twice, over binary16")               \
  X(Y_E4M3, "rounds the scaled elements to e4m3 first, and then again to the element format", "rounded twice, over e4m3")                      \
  X(SIGN_OF_MAX, "gives every element the sign of the block's largest", "sign of the largest element for all")

/* The part of the tensor whose maximum is taken for the tensor's. */
#define TENSORS(X)                                                                                                                             \
  X(TILE, "takes the tensor's maximum over each %g rows on its own", "tensor scale of each tile", 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)       \
  X(FIRST_ROWS, "takes the tensor's maximum over the first 1/%g of the rows alone", "tensor maximum over a part", 2, 4, 8)                     \
  X(LAST_ROWS, "takes the tensor's maximum over the last 1/%g of the rows alone", "tensor maximum over a part", 2, 4, 8)                       \
  X(TOP, "takes the tensor's maximum over the first %g rows alone", "tensor maximum over a part", 1, 16, 32, 64, 128, 256)                     \
  X(BOTTOM, "takes the tensor's maximum over the last %g rows alone", "tensor maximum over a part", 1, 16, 32, 64, 128, 256)                   \
  X(FIRST_COLS, "takes the tensor's maximum over the first 1/%g of the columns alone", "tensor maximum over a part", 2, 4, 8)                  \
  X(NOABS, "takes max(x), not max|x|, over the tensor", "tensor maximum without abs", 0)                                                       \
  X(BF16, "rounds the tensor's maximum to bfloat16", "tensor maximum rounded to bfloat16", 0)                                                  \
  X(STORED, "is given another maximum of the tensor than the data have (%g)", "another tensor maximum", 0)

enum {
  STAT_NONE,
#define X(id, ...) STAT_##id,
  STATS(X)
#undef X
};
enum {
  DIVISOR_NONE,
#define X(id, ...) DIVISOR_##id,
  DIVISORS(X)
#undef X
};
enum {
  TENSOR_NONE,
#define X(id, ...) TENSOR_##id,
  TENSORS(X)
#undef X
};
enum { MOST = 12, MOST_AREA = 256 }; /* numbers of a row of the tables above; elements of a block that may be left out one by one */

/* A twist is run on all of the data only if it leaves at most one in so many wrong on the rows that are examined first. If more may be left, every
 * twist is run on everything; if less, a twist is lost because of a second bug in those rows. */
enum { PROMISING_ONE_IN = 5 };
/* How many blocks are used to find which elements a maximum left out. With fewer, some elements seem left out by accident; more take as long as a
 * twist each. */
enum { BLOCKS = 2000 };
/* binary32 numbers beside a guessed tensor maximum that are tried: the guess is off by a rounding or two of each step of the tensor scale. */
enum { GUESSES = 8 };
typedef struct listed {
  int id;
  const char *text, *name;
  double k[MOST];
  size_t n;
} listed;
#define COUNT(...) sizeof((double[]){__VA_ARGS__}) / sizeof(double)
#define X(i, words, title, ...) {STAT_##i, words, title, {__VA_ARGS__}, COUNT(__VA_ARGS__)},
static const listed stats[] = {STATS(X)};
#undef X
#define X(i, words, title) {DIVISOR_##i, words, title, {0}, 1},
static const listed divisors[] = {DIVISORS(X)};
#undef X
#define X(i, words, title, ...) {TENSOR_##i, words, title, {__VA_ARGS__}, COUNT(__VA_ARGS__)},
static const listed tensors[] = {TENSORS(X)};
#undef X

const char *mxi_twist_name(size_t i) {
  const size_t n[] = {sizeof stats / sizeof *stats, sizeof divisors / sizeof *divisors, sizeof tensors / sizeof *tensors};
  const listed *const tables[] = {stats, divisors, tensors};
  for (size_t t = 0; t < 3; i -= n[t++])
    if (i < n[t]) return tables[t][i].name;
  return NULL;
}

typedef enum side { SIDE_BOTH, SIDE_ELEMENTS, SIDE_STORED, SIDES } side;

typedef struct twist {
  int stat, divisor, tensor;
  side side;
  double k;
  float f;                 /* of the unrounded scale: what the maximum maps to */
  const uint8_t *left_out; /* of STAT_SOME, an entry an element of a block */
} twist;

/* ---- what stands for the maximum */

static amax_grid grid_of(const part *p) { return (amax_grid){p->stats, p->down, p->across, 0}; }

/* Over the elements of a block, the i-th of n. */
static float over_elements(const part *p, size_t d, size_t a, const twist *t) {
  const size_t row = d * p->block_rows, col = a * p->block_cols;
  const size_t rows = p->rows - row < p->block_rows ? p->rows - row : p->block_rows;
  const size_t cols = p->cols - col < p->block_cols ? p->cols - col : p->block_cols, n = rows * cols;
  const size_t part_of = t->k > 1 ? n / (size_t)t->k : n;
  float most = 0, second = 0;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; i++) {
    const float x = p->x[(row + i / cols) * p->cols + col + i % cols], m = fabsf(x);
    float v = m;
    switch (t->stat) {
    case STAT_NOABS:
      v = x > 0 ? x : 0;
      break;
    case STAT_FIRST:
      v = i < part_of ? m : 0;
      break;
    case STAT_LAST:
      v = i >= n - part_of ? m : 0;
      break;
    case STAT_NOT_FIRST:
      v = i ? m : 0;
      break;
    case STAT_NOT_LAST:
      v = i + 1 < n ? m : 0;
      break;
    case STAT_EVERY:
      v = i % 2 == (size_t)t->k ? m : 0;
      break;
    case STAT_ONE:
      v = i ? 0 : m;
      break;
    case STAT_SOME:
      v = t->left_out[i / cols * p->block_cols + i % cols] ? 0 : m;
      break;
    default:
      break;
    }
    if (v >= most)
      second = most, most = v;
    else if (v > second)
      second = v;
    sum += (double)m;
    squares += (double)m * (double)m;
  }
  if (t->stat == STAT_SECOND) return second;
  if (t->stat == STAT_MEAN) return (float)((double)(float)(sum / (double)n) * t->k);
  if (t->stat == STAT_RMS) return (float)((double)sqrtf((float)(squares / (double)n)) * t->k);
  return most;
}

/* What a neighbour is at the end of a row: the block itself, the other end of the row, or the next row. */
static float neighbour(const part *p, size_t d, size_t a, int to, double k) {
  const size_t n = p->across, at = d * n + a, all = p->down * n;
  const amax_grid grid = grid_of(p);
  if (to < 0 ? a > 0 : a + 1 < n) return p->stats[to < 0 ? at - 1 : at + 1].amax;
  if (k == 1) return mxi_grid_amax(&grid, d, to < 0 ? n - 1 : 0);
  if (k == 2 && (to < 0 ? at > 0 : at + 1 < all)) return p->stats[to < 0 ? at - 1 : at + 1].amax;
  return mxi_grid_amax(&grid, d, a);
}

/* The last block of a row if it is short, made from elements that are not its own, or from only some of its own. n is how many it has; in memory
 * one row follows the other. */
static float tail_max(const part *p, size_t d, const twist *t) {
  const size_t w = p->block_cols, n = p->cols % w, end = p->rows * p->cols;
  float m = 0;
  for (size_t r = d * p->block_rows; r < p->rows && r < (d + 1) * p->block_rows; r++) {
    const size_t first = (r + 1) * p->cols - n;
    for (size_t i = 0; i < w; i++) {
      size_t at = first + i; /* of element i of a whole block */
      switch (t->stat) {
      case STAT_TAIL_WINDOW:
        at = first + n - w + i;
        break;
      case STAT_TAIL_BOTH:
        if (i < n) m = fmaxf(m, fabsf(p->x[at]));
        at -= w;
        break;
      case STAT_TAIL_FIRST:
        if (i >= n || i >= (size_t)t->k) continue;
        break;
      case STAT_TAIL_LAST:
        if (i >= n || i < (size_t)t->k) continue;
        break;
      case STAT_TAIL_SOME:
        if (i >= n || t->left_out[i]) continue;
        break;
      default:
        break;
      }
      if (at < end) m = fmaxf(m, fabsf(p->x[at]));
    }
  }
  return m;
}

static int is_tail(int stat) { return stat >= STAT_TAIL_NEXT && stat <= STAT_TAIL_SOME; }
static int has_tail(const part *p) { return p->cols % p->block_cols && p->cols > p->block_cols; }

static float stat_of(const part *p, size_t d, size_t a, const twist *t) {
  const amax_grid grid = grid_of(p);
  const float m = mxi_grid_amax(&grid, d, a);
  const size_t k = (size_t)t->k;
  if (is_tail(t->stat)) return has_tail(p) && a + 1 == p->across ? tail_max(p, d, t) : m;
  switch (t->stat) {
  case STAT_NONE:
    return m;
  case STAT_BEFORE:
    return neighbour(p, d, a, -1, t->k);
  case STAT_AFTER:
    return neighbour(p, d, a, 1, t->k);
  case STAT_ABOVE:
    return d ? mxi_grid_amax(&grid, d - 1, a) : m;
  case STAT_BELOW:
    return d + 1 < p->down ? mxi_grid_amax(&grid, d + 1, a) : m;
  case STAT_WIDE:
    return mxi_grid_largest(&grid, d, d + 1, a / k * k, a / k * k + k);
  case STAT_TILE:
    return mxi_grid_largest(&grid, d / k * k, d / k * k + k, a, a + 1);
  case STAT_ROW:
    return mxi_grid_largest(&grid, d, d + 1, 0, p->across);
  case STAT_RUNNING:
    return mxi_grid_largest(&grid, d, d + 1, 0, a + 1);
  case STAT_BF16:
    return mxi_round_dtype(m, MX_INPUT_DTYPE_BFLOAT16);
  case STAT_BF16_CUT:
    return mxi_cut_to_bf16(m);
  case STAT_F16:
    return mxi_round_dtype(m, MX_INPUT_DTYPE_FLOAT16);
  case STAT_TIMES:
    return m * (float)t->k * 6;
  case STAT_FLOOR:
    return fmaxf(m, (float)t->k);
  case STAT_PLUS:
    return m + (float)t->k;
  default:
    return over_elements(p, d, a, t);
  }
}

/* ---- the tensor's maximum */

static float over_rows(const part *p, size_t first, size_t end, size_t cols, int no_abs) {
  float m = 0;
  for (size_t r = first; r < end && r < p->rows; r++)
    for (size_t c = 0; c < cols; c++) {
      const float x = p->x[r * p->cols + c];
      m = fmaxf(m, no_abs ? x : fabsf(x));
    }
  return m;
}

/* The maximum for which the preset would store what was seen; 0 if it is not a number. */
static float maximum_of_stored(const base *b, const part *p) {
  float want = p->s->tensor_scale, made = p->tensor_scale, a = p->amax;
  if (!p->s->has_tensor_scale || !(want > 0) || !(made > 0) || isinf(want) || isinf(made) || want == made) return 0;
  float twice;
  if (mx_tensor_scale(&twice, 2 * a, &b->spec)) return 0;
  const int grows = twice > made;
  float guess = (float)(grows ? (double)a * (double)want / (double)made : (double)a * (double)made / (double)want);
  for (int i = 0; i < GUESSES; i++) {
    float t;
    if (mx_tensor_scale(&t, guess, &b->spec)) return 0;
    if (t == want) return guess;
    guess = nextafterf(guess, (t < want) == grows ? INFINITY : 0);
  }
  return 0;
}

static float tensor_max(const base *b, const part *p, size_t d, const twist *t) {
  const size_t k = (size_t)t->k, row = d * p->block_rows;
  switch (t->tensor) {
  case TENSOR_TILE:
    return over_rows(p, row / k * k, row / k * k + k, p->cols, 0);
  case TENSOR_FIRST_ROWS:
    return over_rows(p, 0, p->rows / k, p->cols, 0);
  case TENSOR_LAST_ROWS:
    return over_rows(p, p->rows - p->rows / k, p->rows, p->cols, 0);
  case TENSOR_TOP:
    return over_rows(p, 0, k, p->cols, 0);
  case TENSOR_BOTTOM:
    return over_rows(p, k < p->rows ? p->rows - k : 0, p->rows, p->cols, 0);
  case TENSOR_FIRST_COLS:
    return over_rows(p, 0, p->rows, p->cols / k, 0);
  case TENSOR_NOABS:
    return over_rows(p, 0, p->rows, p->cols, 1);
  case TENSOR_BF16:
    return mxi_round_dtype(p->amax, MX_INPUT_DTYPE_BFLOAT16);
  case TENSOR_STORED:
    return maximum_of_stored(b, p);
  default:
    return p->amax;
  }
}

/* ---- elements */

static uint32_t encode(const mx_plan *p, double y) { return (uint32_t)mx_encode(p->elem, y, &p->encode, 0); }

static uint32_t with_sign_of(const mx_format *f, float x) { return f->sign_bits && signbit(x) ? 1u << (f->bits - 1) : 0; }

static uint32_t element(const mx_plan *p, const mx_block_scale *s, const twist *t, float x, float amax, float signed_max, uint64_t index) {
  static const mx_encoding nearest = {0};
  const float g = p->uses_chain ? p->vars[MX_VAR_A] : (float)p->g, tensor = p->has_tensor_scale && g != 0 ? (float)p->target / g : 1;
  float r = 0;
  switch (t->divisor) {
  case DIVISOR_UNROUNDED:
    return encode(p, (double)(x * (t->f / amax)));
  case DIVISOR_UNROUNDED_DIV:
    return encode(p, (double)(x / (amax / t->f)));
  case DIVISOR_UNROUNDED_MUL_DIV:
    return encode(p, (double)(x * t->f / amax));
  case DIVISOR_UNROUNDED_RCP:
    r = amax / t->f;
    return encode(p, (double)(x * (1 / r)));
  case DIVISOR_UNROUNDED_NV:
    r = amax / t->f * tensor;
    r = r * (1 / tensor);
    return encode(p, (double)(x * (1 / r)));
  case DIVISOR_NO_TENSOR:
    return encode(p, (double)(s->sf != 0 ? x / s->sf : 0));
  case DIVISOR_TENSOR_TWICE:
    return encode(p, mxi_scaled_value(p, s, x) * (double)tensor);
  case DIVISOR_RCP_BF16:
  case DIVISOR_RCP_F16:
    r = s->how == MX_BY_NUMBER ? (float)(1 / s->used) : tensor / s->sf;
    return encode(p, (double)(x * mxi_round_dtype(r, t->divisor == DIVISOR_RCP_F16 ? MX_INPUT_DTYPE_FLOAT16 : MX_INPUT_DTYPE_BFLOAT16)));
  case DIVISOR_BF16:
  case DIVISOR_BF16_RCP:
    r = mxi_round_dtype(s->how == MX_BY_NUMBER ? (float)s->used : s->sf / tensor, MX_INPUT_DTYPE_BFLOAT16);
    return encode(p, (double)(t->divisor == DIVISOR_BF16 ? x / r : x * (1 / r)));
  case DIVISOR_SUBNORMAL:
    return encode(p, mxi_scaled_value(p, s, x) * (s->code && s->code >> p->scale->man_bits == 0 && p->scale->kind == MX_KIND_FLOAT ? 2 : 1));
  case DIVISOR_BYTE_ZERO:
  case DIVISOR_BYTE_ZERO_NAN:
    if (s->code || p->scale->kind != MX_KIND_EXP) return mxi_element_code(p, s, x, index);
    if (x == 0) return t->divisor == DIVISOR_BYTE_ZERO ? with_sign_of(p->elem, x) : encode(p, (double)NAN);
    return (uint32_t)p->elem->max_code | with_sign_of(p->elem, x);
  case DIVISOR_WRAP:
    r = (float)mxi_scaled_value(p, s, x);
    return fabs((double)r) < mxi_beyond_largest(p->elem) ? encode(p, (double)r) : with_sign_of(p->elem, r);
  case DIVISOR_Y_BF16:
    return encode(p, (double)mxi_round_dtype((float)mxi_scaled_value(p, s, x), MX_INPUT_DTYPE_BFLOAT16));
  case DIVISOR_Y_BF16_CUT:
    return encode(p, (double)mxi_cut_to_bf16((float)mxi_scaled_value(p, s, x)));
  case DIVISOR_Y_F16:
    return encode(p, (double)mxi_round_dtype((float)mxi_scaled_value(p, s, x), MX_INPUT_DTYPE_FLOAT16));
  case DIVISOR_Y_E4M3:
    return encode(p, mx_round_to(mx_elem_format(MX_ELEM_E4M3), mxi_scaled_value(p, s, x), &nearest, 0));
  case DIVISOR_SIGN_OF_MAX:
    return mxi_element_code(p, s, copysignf(x, signed_max), index);
  default:
    return mxi_element_code(p, s, x, index);
  }
}

/* ---- a run with a twist in it */

static float signed_largest(const part *p, size_t d, size_t a) {
  float m = 0;
  for (size_t r = d * p->block_rows; r < p->rows && r < (d + 1) * p->block_rows; r++)
    for (size_t c = a * p->block_cols; c < p->cols && c < (a + 1) * p->block_cols; c++) {
      const float x = p->x[r * p->cols + c];
      if (fabsf(x) > fabsf(m)) m = x;
    }
  return m;
}

/* Parts of a block that are scaled separately: columns side by side, or alternating. */
static size_t parts_of(const twist *t) {
  return t->stat == STAT_PARTS || t->stat == STAT_LAST_PARTS || t->stat == STAT_TURNS ? (size_t)t->k : 0;
}
static size_t part_at(const part *p, const twist *t, size_t column) {
  const size_t n = parts_of(t), width = p->block_cols / n, k = t->stat == STAT_TURNS ? column % n : column / width;
  return k < n ? k : n - 1;
}
static float part_max(const part *p, size_t d, size_t a, const twist *t, size_t k) {
  float m = 0;
  const size_t col = a * p->block_cols;
  for (size_t r = d * p->block_rows; r < p->rows && r < (d + 1) * p->block_rows; r++)
    for (size_t c = col; c < p->cols && c < col + p->block_cols; c++)
      if (part_at(p, t, c - col) == k) m = fmaxf(m, fabsf(p->x[r * p->cols + c]));
  return m;
}

static mx_status plan_part(mx_plan *plan, const base *b, const part *p) {
  mx_spec run = b->spec;
  run.had_size = 0;
  run.had_sign = 0;
  run.flush = MX_SWITCH_OFF; /* done */
  return mxi_plan_init(plan, &run, p->rows, p->cols, NULL);
}

/* Runs block rows [first, end), with `codes` their elements too. Returns 0 if the twist means nothing for this part. */
static int run_twist(const base *b, size_t i, const twist *t, trial_run *out, size_t first, size_t end, int codes) {
  const part *p = &b->parts[i];
  mx_plan plan;
  if (!p->stats || plan_part(&plan, b, p)) return 0;
  size_t tile = SIZE_MAX;
  for (size_t d = first; d < p->down && d < end; d++) {
    const size_t now_in = t->tensor == TENSOR_TILE ? d * p->block_rows / (size_t)t->k : 0;
    if (now_in != tile) {
      const float m = tensor_max(b, p, d, t);
      if (t->tensor && (m == 0 || (m == p->amax && t->tensor != TENSOR_TILE))) return 0;
      mxi_plan_set_amax(&plan, m);
      tile = now_in;
    }
    for (size_t a = 0; a < p->across; a++) {
      const size_t k = d * p->across + a;
      mx_block_stats st = p->stats[k];
      mx_block_scale right, twisted;
      if (mxi_block_scale_find(&right, &plan, &st, 0, k)) return 0;
      twisted = right;
      if (t->stat && !st.has_nan && !st.has_inf) {
        st.amax = st.amax_finite = stat_of(p, d, a, t);
        if (mxi_block_scale_find(&twisted, &plan, &st, 0, k)) return 0;
      }
      out->scales[i][k] = (t->side == SIDE_ELEMENTS ? &right : &twisted)->code;
      const mx_block_scale *used = t->side == SIDE_STORED ? &right : &twisted;
      const size_t parts = parts_of(t);
      mx_block_scale of_part[8];
      if (parts > p->block_cols) return 0;
      for (size_t j = 0; j < parts; j++) {
        st.amax = st.amax_finite = part_max(p, d, a, t, j);
        if (mxi_block_scale_find(&of_part[j], &plan, &st, 0, k)) return 0;
        if (j == (t->stat == STAT_LAST_PARTS ? parts - 1 : 0)) out->scales[i][k] = of_part[j].code;
      }
      if (!codes) continue;
      const float signed_max = t->divisor == DIVISOR_SIGN_OF_MAX ? signed_largest(p, d, a) : 0;
      for (size_t r = d * p->block_rows; r < p->rows && r < (d + 1) * p->block_rows; r++)
        for (size_t c = a * p->block_cols; c < p->cols && c < (a + 1) * p->block_cols; c++) {
          const size_t at = r * p->cols + c;
          const mx_block_scale *of = parts ? &of_part[part_at(p, t, c - a * p->block_cols)] : used;
          out->codes[i][at] = (uint8_t)element(&plan, of, t, p->x[at], p->stats[d * p->across + a].amax, signed_max, at);
        }
    }
  }
  return 1;
}

/* Is the stored tensor scale that of the twisted maximum, of the first tile or the last? */
static int tensor_scale_left(const base *b, size_t i, const twist *t) {
  const part *p = &b->parts[i];
  if (!p->s->has_tensor_scale || !p->has_tensor_scale) return p->s->has_tensor_scale && p->s->tensor_scale != 1;
  for (int last = 0; last < 2; last++) {
    float made;
    if (!mx_tensor_scale(&made, tensor_max(b, p, last ? p->down - 1 : 0, t), &b->spec) && made == p->s->tensor_scale) return 0;
  }
  return p->tensor_scale != p->s->tensor_scale;
}

typedef struct trier {
  const base *b;
  candidate *best;
  trial_run run;
} trier;

/* On a few rows: the scales, where the twist changes them, and then everything. */
static int is_promising(trier *y, const twist *t) {
  const base *b = y->b;
  for (int codes = t->side == SIDE_ELEMENTS || !t->stat; codes < 2; codes++) {
    uint64_t n = 0;
    for (size_t k = 0; k < b->n_rows; k++) {
      const at_row r = b->rows[k];
      if (!run_twist(b, r.part, t, &y->run, r.row, r.row + 1, codes)) return 0;
      const leaves l = mxi_run_left(b, r.part, codes ? y->run.codes[r.part] : b->parts[r.part].codes, y->run.scales[r.part], r.row, r.row + 1);
      n += codes ? left_total(l) : l.scales;
      if (n * PROMISING_ONE_IN > b->rows_wrong && b->rows_wrong) return 0;
    }
  }
  return 1;
}

/* "a maximum that leaves out the elements 0, 1, 2, ... of the block" */
static void say_left_out(char *out, size_t size, const base *b, const uint8_t *left_out, const char *whose) {
  enum { LISTED = 8 };
  const size_t area = b->parts[0].block_rows * b->parts[0].block_cols;
  size_t said = 0, all = 0, n = (size_t)snprintf(out, size, "a maximum that leaves out");
  for (size_t i = 0; i < area; i++) all += left_out[i];
  for (size_t i = 0; i < area && said < LISTED && n < size; i++)
    if (left_out[i]) n += (size_t)snprintf(out + n, size - n, "%s %zu", !said++ ? all == 1 ? " element" : " elements" : ",", i);
  if (n < size) snprintf(out + n, size - n, "%s of %s", all > said ? ", ..." : "", whose);
}

/* The two clauses of a sentence in which a statistic may be named. */
static void say(char *out, size_t size, const base *b, const listed *r, const twist *t) {
  char what[256];
  if (t->stat) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(what, sizeof what, r->text, t->k); /* a row of the tables above */
#pragma GCC diagnostic pop
    if (t->left_out)
      say_left_out(what, sizeof what, b, t->left_out, is_tail(t->stat) ? "it, where it is the last, short one of a row" : "the block");
    static const char *const around[SIDES] = {"takes the scale of a block from ", "divides the elements by the scale of ",
                                              "stores the scale of "};
    static const char *const after[SIDES] = {"", ", but stores the right one", ", but divides the elements by the right one"};
    snprintf(out, size, "%s%s%s", around[t->side], what, after[t->side]);
  } else {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(out, size, r->text, t->k);
#pragma GCC diagnostic pop
  }
}

static void consider(trier *y, const listed *r, const twist *t) {
  const base *b = y->b;
  candidate c = {.name = r->name};
  if (is_found(y->best)) return;
  if (!is_promising(y, t)) return;
  for (size_t i = 0; i < b->n; i++) {
    if (!run_twist(b, i, t, &y->run, 0, SIZE_MAX, 1)) return;
    const leaves l = mxi_run_left(b, i, y->run.codes[i], y->run.scales[i], 0, SIZE_MAX);
    c.l.codes += l.codes;
    c.l.scales += l.scales;
    c.l.tensor_scales += (uint64_t)tensor_scale_left(b, i, t);
  }
  twist said = *t;
  if (t->tensor == TENSOR_STORED) said.k = (double)maximum_of_stored(b, &b->parts[0]);
  say(c.text, sizeof c.text, b, r, &said);
  mxi_offer(y->best, b, &c);
}

/* Finds the elements of a block (or of the last, short one of a row) that cannot have counted for its scale, because one of them alone would make
 * a larger one. Returns how many; 0 also if these are all elements. */
static size_t find_left_out(uint8_t left_out[MOST_AREA], const base *b, int tails) {
  const size_t area = b->parts[0].block_rows * b->parts[0].block_cols;
  size_t n = 0, looked = 0;
  memset(left_out, 0, MOST_AREA);
  if (area > MOST_AREA || area < 2) return 0;
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    mx_plan plan;
    if (!p->stats || plan_part(&plan, b, p)) return 0;
    mxi_plan_set_amax(&plan, p->amax);
    for (size_t k = 0; k < p->down * p->across && looked < BLOCKS; k++) {
      const size_t row = k / p->across * p->block_rows, col = k % p->across * p->block_cols;
      mx_block_stats st = p->stats[k];
      if (p->seen[k] >= p->scales[k] || st.has_nan || st.has_inf || (tails && (!has_tail(p) || (k + 1) % p->across))) continue;
      looked++;
      for (size_t e = 0; e < area; e++) {
        const size_t r = row + e / p->block_cols, c = col + e % p->block_cols;
        mx_block_scale alone;
        if (left_out[e] || r >= p->rows || c >= p->cols) continue;
        st.amax = st.amax_finite = fabsf(p->x[r * p->cols + c]);
        if (mxi_block_scale_find(&alone, &plan, &st, 0, k)) return 0;
        if (alone.code > p->seen[k]) left_out[e] = 1, n++;
      }
    }
  }
  return n < area ? n : 0;
}

/* What the last, short block of a row takes its scale from. */
static void tails(trier *y) {
  const base *b = y->b;
  uint8_t left_out[MOST_AREA];
  size_t first = SIZE_MAX, end = 0, n = 0, width = b->parts[0].block_cols;
  for (size_t i = 0; i < b->n; i++) n = has_tail(&b->parts[i]) ? b->parts[i].cols % width : n;
  if (!n) return;
  const int found = find_left_out(left_out, b, 1) != 0;
  for (size_t i = 0; i < n && found; i++) {
    if (!left_out[i]) continue;
    if (first == SIZE_MAX) first = i;
    end = i + 1;
  }
  /* Tries likely ends of a range before those that were read off the data, which may be off by a few. */
  const size_t firsts[] = {n / 2, width / 2, width / 4, n - 1, first}, lasts[] = {n - n / 2, 1, end};
  for (int s = 0; s < SIDES; s++) {
    twist t = {.side = (side)s};
    for (t.stat = STAT_TAIL_NEXT; t.stat <= STAT_TAIL_BOTH; t.stat++) consider(y, &stats[t.stat - 1], &t);
    t.stat = STAT_TAIL_FIRST;
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
      if (t.k = (double)firsts[i], firsts[i] && firsts[i] < n && firsts[i] <= first) consider(y, &stats[t.stat - 1], &t);
    t.stat = STAT_TAIL_LAST;
    for (size_t i = 0; i < sizeof lasts / sizeof *lasts; i++)
      if (t.k = (double)lasts[i], lasts[i] && lasts[i] < n && lasts[i] >= end) consider(y, &stats[t.stat - 1], &t);
    t.stat = STAT_TAIL_SOME;
    t.left_out = left_out;
    if (found && s != SIDE_ELEMENTS) consider(y, &stats[t.stat - 1], &t);
  }
}

void mxi_twist_bugs(candidate *best, const base *b) {
  trier y = {.b = b, .best = best};
  const mx_format *f = mxi_base_elem(b);
  const float largest[] = {(float)mx_format_max(f),
                           b->spec.scale_max == MX_SCALE_MAX_ELEM || b->spec.scale_max == MX_SCALE_MAX_POW2 ? 0 : b->spec.scale_max_n,
                           ldexpf(1, mx_format_emax(f))};
  if (!mxi_run_open(&y.run, b)) return;
  for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
    const int unrounded = divisors[i].id <= DIVISOR_UNROUNDED_NV;
    for (size_t k = 0; k < (unrounded ? 3u : 1u); k++)
      if (!unrounded || largest[k] > 0) consider(&y, &divisors[i], &(twist){.divisor = divisors[i].id, .f = largest[k]});
  }
  for (int s = 0; s < SIDES; s++)
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++)
      for (size_t k = 0; stats[i].id != STAT_SOME && !is_tail(stats[i].id) && k < stats[i].n; k++)
        consider(&y, &stats[i], &(twist){.stat = stats[i].id, .k = stats[i].k[k], .side = (side)s});
  uint8_t left_out[MOST_AREA];
  if (!is_found(best) && find_left_out(left_out, b, 0))
    for (int s = 0; s < SIDES; s++)
      if (s != SIDE_ELEMENTS) consider(&y, &stats[STAT_SOME - 1], &(twist){.stat = STAT_SOME, .side = (side)s, .left_out = left_out});
  if (!is_found(best)) tails(&y);
  if (b->spec.tensor_norm != MX_TENSOR_NORM_NONE)
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
      for (size_t k = 0; k < tensors[i].n; k++) consider(&y, &tensors[i], &(twist){.tensor = tensors[i].id, .k = tensors[i].k[k]});
  mxi_run_close(&y.run, b);
}
