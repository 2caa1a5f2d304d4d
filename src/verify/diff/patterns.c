/* Finds what all the differences have in common. A pattern that no difference refutes is stated at the end, unless chance explains it. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/layout.h"
#include "verify/diff/diff.h"
#include "verify/diff/orders.h"

/* How many elements of a row are sampled for what is usual there, and how many scales are compared before a layout is considered. Fewer miss what
 * is rare; more take time in every row. */
enum { LOOKED = 8, PLACES = 64 };
enum { SCATTER = 7919 }; /* a prime: rows are looked at in other columns each */
/* A quotient this near to a tie is called nearly a tie: a kernel's division may be off by so much. */
static const double NEAR_TIE = 0x1p-24;
/* Two tensor scales count as the same number within this relative distance: a few binary32 roundings, as another order of operations makes. A
 * larger distance would confuse targets that lie close together. */
static const double SAME_SCALE = 0x1p-21;

static uint32_t sign_of(const diff_job *j) { return j->elem->bits < 32 ? 1u << (j->elem->bits - 1) : 0x80000000u; }

/* ---- what is asked of the two codes */

enum { ZERO_SIGN, SIGN_ALONE, A_NEGATIVE, A_POSITIVE, B_IS_ZERO, STEP_UP, STEP_DOWN, CODE_SUBNORMAL, CODE_TESTS };

/* The smallest magnitudes, below the least normal one: what a kernel without subnormals loses. */
static int subnormal(const diff_job *j, uint32_t code) {
  const uint32_t magnitude = code & ~sign_of(j);
  return j->elem->kind == MX_KIND_FLOAT && j->elem->man_bits && j->elem->bits <= 8 && magnitude && magnitude < 1u << j->elem->man_bits;
}

/* Codes of one magnitude: the bits beside the sign, or what two's complement says, where 0x80 is -128 and not a zero. */
static uint32_t size_of(const diff_job *j, uint32_t code) {
  const uint32_t sign = sign_of(j);
  return j->elem->kind != MX_KIND_INT ? code & ~sign : code & sign ? 2 * sign - code : code;
}

static unsigned code_tests(const diff_job *j, uint32_t a, uint32_t b) {
  const uint32_t sign = sign_of(j), x = size_of(j, a), y = size_of(j, b);
  return (unsigned)!(x | y) << ZERO_SIGN | (unsigned)(x == y && a != b) << SIGN_ALONE | (unsigned)((a & sign) != 0) << A_NEGATIVE |
         (unsigned)!(a & sign) << A_POSITIVE | (unsigned)!y << B_IS_ZERO | (unsigned)(y == x + 1) << STEP_UP |
         (unsigned)(x == y + 1) << STEP_DOWN | (unsigned)(subnormal(j, a) != 0) << CODE_SUBNORMAL;
}

/* ---- what is asked of the input */

static unsigned input_tests(const diff_job *j, const diff_element *e, unsigned of) {
  unsigned is = 0;
  is |= (unsigned)!isfinite(e->x) << DIFF_SPECIAL;
  is |= (unsigned)(e->x != 0 && fabsf(e->x) < FLT_MIN) << DIFF_SUBNORMAL;
  is |= (unsigned)(e->tie == 0) << DIFF_TIE;
  is |= (unsigned)(e->tie < NEAR_TIE) << DIFF_NEAR_TIE;
  is |= 1u << (signbit(e->x) ? DIFF_NEGATIVE : DIFF_POSITIVE);
  if (of >> DIFF_AMAX_NEGATIVE & 1) is |= (unsigned)mxi_diff_amax_negative(j, e->row, e->col) << DIFF_AMAX_NEGATIVE;
  return is & of;
}

/* ---- along the way */

mx_status mxi_diff_patterns_start(diff_job *j) {
  const mx_tensor *a = j->a;
  j->code_alive = (1u << CODE_TESTS) - 1;
  j->input_alive = (1u << DIFF_INPUT_TESTS) - 1;
  j->values_ratio = j->scales_ratio = 0;
  j->scales_steps = j->scales_wrap = 0;
  j->pairs_moved = j->scales_nan = 0;
  memset(&j->usual, 0, sizeof j->usual);
  j->place = (diff_place){.rows = a->rows, .cols = a->cols, .n_col = a->cols < DIFF_COLUMNS ? a->cols : DIFF_COLUMNS};
  j->scales_place =
      (diff_place){.rows = a->scale_rows, .cols = a->scale_cols, .n_col = a->scale_cols < DIFF_COLUMNS ? a->scale_cols : DIFF_COLUMNS};
  j->place.col = calloc(j->place.n_col + 1, sizeof *j->place.col);
  j->scales_place.col = calloc(j->scales_place.n_col + 1, sizeof *j->scales_place.col);
  j->pair_bits = j->elem->bits > 4 ? 8 : 4;
  j->pairs = j->elem->bits <= 8 ? calloc((size_t)1 << 2 * j->pair_bits, sizeof *j->pairs) : NULL;
  mxi_diff_moves_start(j);
  return j->place.col && j->scales_place.col && (j->pairs || j->elem->bits > 8) ? MX_OK : MX_ERR_NOMEM;
}

void mxi_diff_patterns_free(diff_job *j) {
  free(j->place.col);
  free(j->scales_place.col);
  free(j->pairs);
}

/* Keeps the ratio that all pairs so far share: 0 before the first, NaN once two ratios differ or one is not a number. */
static void ratio(double *r, double a, double b) {
  if (isnan(*r)) return;
  const double now = b / a;
  if (!isfinite(now) || now == 0 || (*r != 0 && now != *r))
    *r = NAN;
  else
    *r = now;
}

void mxi_diff_patterns_kind(diff_job *j, const diff_element *e) {
  if (j->pairs)
    j->pairs[(e->a & ((1u << j->pair_bits) - 1)) << j->pair_bits | (e->b & ((1u << j->pair_bits) - 1))]++;
  else
    j->code_alive &= code_tests(j, e->a, e->b);
  if (j->piece && j->input_alive) j->input_alive &= input_tests(j, e, j->input_alive);
  ratio(&j->values_ratio, e->value_a, e->value_b);
}

void mxi_diff_patterns_element(diff_job *j, const diff_element *e) {
  mxi_diff_place_row(&j->place, e->row);
  mxi_diff_place_add(&j->place, e->col, 1);
  j->pairs_moved += e->scale_a != e->scale_b;
  mxi_diff_patterns_kind(j, e);
}

void mxi_diff_patterns_scale_kind(diff_job *j, uint32_t a, uint32_t b) {
  const int64_t by = (int64_t)b - (int64_t)a, step = j->a->scale_bytes == 1 ? (int8_t)by : by;
  j->scales_wrap |= step != by;
  if (!j->scales_steps) j->scales_step = step, j->scales_first[0] = a, j->scales_first[1] = b;
  if (!j->scales_steps || j->scales_step != step) j->scales_steps++;
  if (j->scales_steps > 2) j->scales_steps = 2;
  ratio(&j->scales_ratio, diff_scale_value(j, a), diff_scale_value(j, b));
}

void mxi_diff_patterns_scale(diff_job *j, size_t row, size_t col, uint32_t a, uint32_t b) {
  mxi_diff_place_row(&j->scales_place, row);
  mxi_diff_place_add(&j->scales_place, col, 1);
  mxi_diff_patterns_scale_kind(j, a, b);
}

void mxi_diff_patterns_row(diff_job *j, size_t r) {
  diff_usual *u = &j->usual;
  for (size_t i = 0; i < LOOKED && i < j->a->cols && j->elem->bits <= 8; i++) {
    const size_t c = (i * j->a->cols / LOOKED + r * SCATTER) % j->a->cols;
    u->n++;
    u->code[diff_code(j, j->a, r, c) & 255]++;
    if (!j->piece) continue;
    const diff_element e = mxi_diff_look(j, r, c);
    const unsigned is = input_tests(j, &e, j->input_alive);
    for (int t = 0; t < DIFF_INPUT_TESTS && is; t++) u->input[t] += is >> t & 1;
  }
  mxi_diff_moves_row(j, r);
}

static void merge_ratio(double *r, double later) {
  if (later == 0) return;
  if (*r == 0)
    *r = later;
  else if (!(*r == later))
    *r = NAN;
}

static void merge_place(diff_place *p, const diff_place *later) {
  if (!later->n) return;
  const size_t n = p->n_rows;
  for (size_t i = 0; i < later->n_rows && i < DIFF_FEW && n + i < DIFF_FEW; i++) p->few[n + i] = later->few[i];
  if (!p->n || later->span[0] < p->span[0]) p->span[0] = later->span[0];
  if (!p->n || later->span[1] > p->span[1]) p->span[1] = later->span[1];
  p->row_bits = n ? p->row_bits | later->row_bits | (p->row[0] ^ later->row[0]) : later->row_bits;
  if (!n) p->row[0] = later->row[0];
  p->row[1] = later->row[1];
  p->n_rows += later->n_rows;
  p->n += later->n;
  for (size_t i = 0; i < p->n_col; i++) p->col[i] += later->col[i];
}

void mxi_diff_patterns_merge(diff_job *j, const diff_job *later) {
  j->code_alive &= later->code_alive;
  j->input_alive &= later->input_alive;
  j->pairs_moved += later->pairs_moved;
  j->scales_nan += later->scales_nan;
  merge_ratio(&j->values_ratio, later->values_ratio);
  merge_ratio(&j->scales_ratio, later->scales_ratio);
  if (!j->scales_steps)
    j->scales_steps = later->scales_steps, j->scales_step = later->scales_step,
    memcpy(j->scales_first, later->scales_first, sizeof j->scales_first);
  else if (later->scales_steps > 1 || (later->scales_steps && later->scales_step != j->scales_step))
    j->scales_steps = 2;
  j->scales_wrap |= later->scales_wrap;
  merge_place(&j->place, &later->place);
  merge_place(&j->scales_place, &later->scales_place);
  for (size_t i = 0; j->pairs && i < (size_t)1 << 2 * j->pair_bits; i++) j->pairs[i] += later->pairs[i];
  j->usual.n += later->usual.n;
  for (int c = 0; c < 256; c++) j->usual.code[c] += later->usual.code[c];
  for (int t = 0; t < DIFF_INPUT_TESTS; t++) j->usual.input[t] += later->usual.input[t];
  mxi_diff_moves_merge(j, later);
}

/* ---- at the end: codes */

/* The share of all elements that have a trait, estimated from the samples and never quite 0. */
static double share(const diff_job *j, uint64_t hits, double least) {
  const double p = ((double)hits + 1) / ((double)j->usual.n + 1);
  return p < least ? least : p;
}

static uint64_t usual_size(const diff_job *j, uint32_t size) {
  uint64_t n = 0;
  for (uint32_t c = 0; c < 256; c++)
    if (size_of(j, c) == size) n += j->usual.code[c];
  return n;
}

static uint64_t usual_codes(const diff_job *j, uint32_t mask, uint32_t value) {
  uint64_t n = 0;
  for (uint32_t c = 0; c < 256; c++)
    if ((c & mask) == value) n += j->usual.code[c];
  return n;
}

/* Holds the tests of codes to all pairs that occur, and finds whether all magnitudes of A, and all of B, are a single number. */
static void pair_tests(diff_job *j, int64_t magnitude[2]) {
  magnitude[0] = magnitude[1] = -1;
  for (uint32_t a = 0; j->pairs && a < 1u << j->pair_bits; a++)
    for (uint32_t b = 0; b < 1u << j->pair_bits; b++) {
      if (!j->pairs[a << j->pair_bits | b]) continue;
      j->code_alive &= code_tests(j, a, b);
      const int64_t m[2] = {size_of(j, a), size_of(j, b)};
      for (int i = 0; i < 2; i++) magnitude[i] = magnitude[i] == -1 || magnitude[i] == m[i] ? m[i] : -2;
    }
}

static int power_of_two(double r) {
  int e;
  return r > 0 && isfinite(r) && frexp(r, &e) == 0.5;
}

static void code_patterns(diff_job *j) {
  const mx_difference *d = j->out;
  const double n = (double)d->codes;
  const uint32_t sign = sign_of(j);
  const unsigned bits = j->elem->bits < 16 ? (unsigned)j->elem->bits : 16;
  const double one = 1 / (double)((1u << bits) - 1);
  int64_t magnitude[2];
  pair_tests(j, magnitude);
  const unsigned alive = j->code_alive;
  uint64_t subnormals = 0;
  for (uint32_t c = 0; c < 256; c++) subnormals += subnormal(j, c) ? j->usual.code[c] : 0;
  if (alive >> ZERO_SIGN & 1) {
    if (mxi_diff_telling(2 * one * one, n)) mxi_diff_say(j, "all are the sign of a zero");
  } else if (alive >> SIGN_ALONE & 1 && mxi_diff_telling(one, n))
    mxi_diff_say(j, "all differ in the sign alone");
  const int by_input = j->x || j->how.input;
  if (!by_input && alive >> A_NEGATIVE & 1 && mxi_diff_telling(share(j, usual_codes(j, sign, sign), DIFF_OF_TWO), n))
    mxi_diff_say(j, "all negative");
  if (!by_input && alive >> A_POSITIVE & 1 && mxi_diff_telling(share(j, usual_codes(j, sign, 0), DIFF_OF_TWO), n))
    mxi_diff_say(j, "all positive");
  if (alive >> B_IS_ZERO & 1 && !(alive >> ZERO_SIGN & 1) && mxi_diff_telling(2 * one, n)) mxi_diff_say(j, "all are zero in %s", j->name[1]);
  if (alive >> STEP_UP & 1 && mxi_diff_telling(DIFF_OF_TWO, n)) mxi_diff_say(j, "all one step larger in %s", j->name[1]);
  if (alive >> STEP_DOWN & 1 && mxi_diff_telling(DIFF_OF_TWO, n)) mxi_diff_say(j, "all one step smaller in %s", j->name[1]);
  if (alive >> CODE_SUBNORMAL & 1 && mxi_diff_telling(share(j, subnormals, one), n)) mxi_diff_say(j, "all at subnormal codes");
  for (int i = 0; i < 2; i++)
    if (magnitude[i] > 0 && mxi_diff_telling(i ? 2 * one : share(j, usual_size(j, (uint32_t)magnitude[i]), 2 * one), n - 1))
      mxi_diff_say(j, "all have the code of %g in %s", fabs(mx_decode(j->elem, (uint64_t)magnitude[i])), j->name[i]);
}

static void input_patterns(diff_job *j) {
  const struct {
    int test;
    double least;
    const char *words;
  } tests[] = {{DIFF_NEGATIVE, DIFF_OF_TWO, "all negative"},
               {DIFF_POSITIVE, DIFF_OF_TWO, "all positive"},
               {DIFF_SPECIAL, 0, "all at NaN or Inf inputs"},
               {DIFF_SUBNORMAL, 0, "all at subnormal inputs"},
               {DIFF_TIE, 0, "all where the quotient is exactly a tie"},
               {DIFF_NEAR_TIE, 0, "all where the quotient is a tie, or within 2^-24 of one"},
               {DIFF_AMAX_NEGATIVE, DIFF_OF_TWO, "all in blocks whose largest magnitude is negative"}};
  const unsigned alive = j->input_alive;
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
    const int t = tests[i].test;
    if (!(alive >> t & 1) || (t == DIFF_NEAR_TIE && (alive >> DIFF_TIE & 1 || alive >> DIFF_SUBNORMAL & 1))) continue;
    const double n = t == DIFF_AMAX_NEGATIVE ? (double)j->out->blocks : (double)j->out->codes;
    if (mxi_diff_telling(share(j, j->usual.input[t], tests[i].least), n)) mxi_diff_say(j, "%s", tests[i].words);
  }
}

/* ---- scales */

static int scales_turned(const diff_job *j) {
  const mx_tensor *a = j->a, *b = j->b;
  const size_t n = a->scale_rows * a->scale_cols;
  for (size_t i = 0; i < n; i++)
    if (mx_scale_code_at(b, i) != mx_scale_code_at(a, i % a->scale_rows * a->scale_cols + i / a->scale_rows)) return 0;
  return a->scale_rows > 1 && a->scale_cols > 1;
}

/* One scale everywhere in B, and not in A. */
static int one_scale_code(const diff_job *j) {
  const size_t n = j->a->scale_rows * j->a->scale_cols;
  for (size_t i = 1; i < n; i++)
    if (mx_scale_code_at(j->b, i) != mx_scale_code_at(j->b, 0)) return 0;
  return 1;
}

static const uint8_t *scales_of_row(void *self, int seen, size_t row, uint8_t *room) {
  (void)room;
  const diff_job *j = self;
  const mx_tensor *t = seen ? j->b : j->a;
  return t->scales + row * t->scale_cols;
}

/* Could B's scales be A's in that layout, judging by a few places? */
static int layout_may(const diff_job *j, mx_layout l) {
  const mx_tensor *a = j->a, *b = j->b;
  const size_t n = a->scale_rows * a->scale_cols, step = n / PLACES + 1;
  for (size_t i = 0; i < n; i += step)
    if (b->scales[mx_layout_index(l, a->scale_rows, a->scale_cols, i / a->scale_cols, i % a->scale_cols)] != a->scales[i]) return 0;
  return 1;
}

/* Does each code occur as often in B's scales as in A's? Scales that agree are left out. */
static int as_often(const diff_job *j) {
  int64_t more[256] = {0};
  if (j->scales_tally && !j->scales_nan)
    for (int x = 0; x < 256; x++)
      for (int y = 0; y < 256; y++) more[x] += j->out->scale_pairs[x][y], more[y] -= j->out->scale_pairs[x][y];
  else
    for (size_t i = 0; i < j->a->scale_rows * j->a->scale_cols; i++) more[j->a->scales[i]]++, more[j->b->scales[i]]--;
  for (int c = 0; c < 256; c++)
    if (more[c]) return 0;
  return 1;
}

static void scale_patterns(diff_job *j) {
  const mx_tensor *a = j->a, *b = j->b;
  const size_t n = a->scale_rows * a->scale_cols;
  const double differ = (double)j->scales_place.n, step = (double)llabs(j->scales_step);
  if (j->scales_place.n == 1) /* no pattern, but it has no example either */
    mxi_diff_say(j, "one scale differs (row %zu, block column %zu): %u in %s, %u in %s, %.0f code%s %s%s",
                 j->scales_place.row[0] * (a->scale_rows == a->rows ? 1 : j->block_rows), j->scales_place.span[0], (unsigned)j->scales_first[0],
                 j->name[0], (unsigned)j->scales_first[1], j->name[1], step, step > 1 ? "s" : "", j->scales_step > 0 ? "larger" : "smaller",
                 j->scales_wrap ? ", modulo 256" : "");
  if (j->scales_steps == 1 && mxi_diff_telling(step < 2 ? DIFF_OF_FEW : DIFF_OF_MANY, differ)) {
    if (step < 2)
      mxi_diff_say(j, "every scale that differs is one code %s in %s", j->scales_step > 0 ? "larger" : "smaller", j->name[1]);
    else
      mxi_diff_say(j, "every scale that differs is %.0f codes %s in %s%s%s", step, j->scales_step > 0 ? "larger" : "smaller", j->name[1],
                   j->scales_wrap ? ", modulo 256" : "",
                   j->scales_step == -127 && a->scale_bytes == 1 ? " (the exponent without its bias)" : "");
  }
  if (power_of_two(j->scales_ratio) && mxi_diff_telling(DIFF_OF_FEW, differ))
    mxi_diff_say(j, "every scale that differs is off by the same power of two");
  mxi_diff_where(j, &j->scales_place, j->scales_place.n, 1);
  if (!mxi_diff_telling(DIFF_OF_MORE, differ / 2)) return;
  if (scales_turned(j)) mxi_diff_say(j, "the scales are transposed");
  if (one_scale_code(j))
    mxi_diff_say(j, "every scale of %s is 0x%02X (%g)", j->name[1], (unsigned)mx_scale_code_at(b, 0),
                 diff_scale_value(j, mx_scale_code_at(b, 0)));
  if (a->scale_bytes != 1) return;
  uint8_t *other = NULL;
  for (int l = 1; l < MX_LAYOUT_COUNT; l++) /* by columns they are transposed, which was said */
    if (l != MX_LAYOUT_COLUMN_MAJOR && mx_layout_size((mx_layout)l, a->scale_rows, a->scale_cols) == n && layout_may(j, (mx_layout)l) &&
        (other || (other = noted(malloc(n + 1), j->lack)))) {
      mx_layout_pack(other, (mx_layout)l, a->scales, a->scale_rows, a->scale_cols, 0);
      if (!memcmp(other, b->scales, n))
        mxi_diff_say(j, "%s's scales are in another layout (nv128x4 or amd_shuffle), not converted", j->name[1]);
    }
  free(other);
  if (!as_often(j)) return;
  char words[160];
  const order_source s = {a->scale_rows, a->scale_cols, 1, scales_of_row, j, j->lack};
  if (!scales_turned(j) && mxi_order_find(words, sizeof words, &s))
    mxi_diff_say(j, "%s has %s's scales with %s", j->name[1], j->name[0], words);
  else
    mxi_diff_say(j, "%s's scales are %s's in another order", j->name[1], j->name[0]);
}

/* ---- the tensor scale */

/* If a stored number comes from an amax by one of the conventions, finds that amax, and what another convention would store for it. */
typedef struct convention {
  char words[48];
  double value;
} convention;

static size_t conventions(convention c[16], double amax, double own_target) {
  static const double targets[] = {2688, 1536, 448, 240, 6};
  size_t n = 0;
  snprintf(c[n].words, sizeof c[n].words, "amax");
  c[n++].value = amax;
  for (int i = -1; i < (int)(sizeof targets / sizeof targets[0]); i++) {
    const double t = i < 0 ? own_target : targets[i];
    if (i >= 0 && t == own_target) continue;
    snprintf(c[n].words, sizeof c[n].words, "amax / %g", t);
    c[n++].value = amax / t;
    snprintf(c[n].words, sizeof c[n].words, "%g / amax", t);
    c[n++].value = t / amax;
  }
  snprintf(c[n].words, sizeof c[n].words, "1 / amax");
  c[n++].value = 1 / amax;
  return n;
}

static int near(double x, double y) { return fabs(x - y) <= SAME_SCALE * fabs(y); }

static void tensor_pattern(diff_job *j) {
  const mx_difference *d = j->out;
  const char *store = mx_tensor_store_name(j->spec);
  const double a = (double)j->a->tensor_scale, b = (double)j->b->tensor_scale,
               target = j->spec->tensor_target != 0 ? (double)j->spec->tensor_target : mx_format_max(j->elem) * mx_format_max(j->scale);
  char how[160] = "";
  if (isfinite(a) && a > 0 && isfinite(b) && b > 0) {
    const int own = !strcmp(store, "amax") ? 0 : !strcmp(store, "divisor") ? 2 : 1;
    const double amax = own == 0 ? a : own == 1 ? a * target : target / a;
    convention c[16];
    const size_t n = conventions(c, amax, target);
    for (size_t i = 0; i < n && !*how; i++)
      if (near(b, c[i].value))
        snprintf(how, sizeof how, ": %.24s stores %.40s, %.24s stores %.40s", j->name[0], c[own].words, j->name[1], c[i].words);
    if (!*how && power_of_two(b / a)) snprintf(how, sizeof how, ": %.24s's is 2^%d times %.24s's", j->name[1], ilogb(b / a), j->name[0]);
    if (!*how && near(b, a * a)) snprintf(how, sizeof how, ": %.24s's is the square of %.24s's", j->name[1], j->name[0]);
  }
  if (!d->codes && !d->scales)
    mxi_diff_say(j, "the tensor scale is what differs (%.9g in %s, %.9g in %s); codes and scales agree%s", a, j->name[0], b, j->name[1], how);
  else
    mxi_diff_say(j, "the tensor scale differs too (%.9g in %s, %.9g in %s)%s", a, j->name[0], b, j->name[1], how);
}

void mxi_diff_patterns_end(diff_job *j) {
  const mx_difference *d = j->out;
  if (d->tensor_scales) tensor_pattern(j);
  mxi_diff_moves_end(j);
  if (d->codes) {
    const double moved = d->n_scales ? (double)d->scales / (double)d->n_scales : 0;
    mxi_diff_where(j, &j->place, d->blocks, 0);
    code_patterns(j);
    if (j->x || j->how.input) input_patterns(j);
    if (j->pairs_moved == d->codes && mxi_diff_telling(moved, (double)d->blocks)) mxi_diff_say(j, "all in blocks whose scale differs too");
    if (!j->pairs_moved && mxi_diff_telling(1 - moved, (double)d->blocks)) mxi_diff_say(j, "all in blocks whose scale is the same");
    if (power_of_two(j->values_ratio) && mxi_diff_telling(DIFF_OF_MORE, (double)d->codes))
      mxi_diff_say(j, "every value that differs is off by the same power of two");
  }
  if (d->scales) scale_patterns(j);
  if (!d->codes && d->scales && d->values && !d->tensor_scales)
    mxi_diff_say(j, "no code differs: the values that do are those of blocks whose scale differs");
  if (d->padding) mxi_diff_say(j, "bytes behind the ends of rows differ (stale padding); they do not count");
}
