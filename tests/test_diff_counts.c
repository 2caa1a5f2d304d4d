/* Tests every count of mx_diff() and its three examples against a loop over elements that knows nothing about bytes, vectors, sets, runs,
 * pieces or threads. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/isa.h"
#include "mxgold/mxgold.h"

typedef struct pair {
  mx_spec s;
  size_t rows, cols;
  mx_tensor a, b;
} pair;

static int same_float(float a, float b, const mx_diff_options *o) {
  return (!o->nan_bits && isnan(a) && isnan(b)) || (o->equal_zeros && a == 0 && b == 0) || !memcmp(&a, &b, sizeof a);
}

/* ---- the loop */

static uint32_t scale_at(const mx_tensor *t, size_t row, size_t col, size_t block_rows, size_t block_cols) {
  const size_t r = t->scale_rows == t->rows ? row : row / block_rows;
  return mx_scale_code_at(t, r * t->scale_cols + col / block_cols);
}

static double decode_scale(const pair *p, uint32_t code) {
  const double v = mx_decode(mx_scale_format(p->s.scale), code);
  return p->s.scale_sign == MX_SCALE_SIGN_MASKED ? fabs(v) : v;
}

static void naive(mx_difference *d, const pair *p, const mx_diff_options *o) {
  const mx_format *e = mx_elem_format(p->s.elem), *sf = mx_scale_format(p->s.scale);
  const uint32_t sign = 1u << (e->bits - 1), number = e->kind == MX_KIND_FLOAT ? ~sign : ~0u,
                 scale_number = sf->sign_bits ? ~(1u << (sf->bits - 1)) : ~0u;
  const unsigned shift = e->bits > 4 ? e->bits - 4u : 0;
  const size_t rows = p->rows, cols = p->cols;
  size_t br, bc;
  mx_spec_block(&p->s, rows, cols, &br, &bc);
  if (!br) br = 1;
  if (!bc) bc = 1;
  memset(d, 0, sizeof *d);
  d->n_codes = rows * cols;
  const size_t across = (cols + bc - 1) / bc;
  uint8_t *hit = calloc((rows / br + 1) * across, 1);
  for (size_t r = 0; r < rows; r++) {
    int in_row = 0;
    for (size_t c = 0; c < cols; c++) {
      const uint32_t a = mx_code_at(&p->a, &p->s, r, c), b = mx_code_at(&p->b, &p->s, r, c), sa = scale_at(&p->a, r, c, br, bc),
                     sb = scale_at(&p->b, r, c, br, bc);
      if (a == b) continue;
      const int zeros = e->kind == MX_KIND_FLOAT && !(a & ~sign) && !(b & ~sign);
      d->zero_signs += (uint64_t)zeros;
      const int nans = mx_format_is_nan(e, a & number) && mx_format_is_nan(e, b & number);
      if (!o->nan_bits && ((mx_format_is_nan(sf, sa & scale_number) && mx_format_is_nan(sf, sb & scale_number)) || nans)) {
        d->nan_codes++;
        continue;
      }
      if (o->equal_zeros && zeros) continue;
      const size_t position = r % br * bc + c % bc;
      d->codes++;
      in_row = 1;
      d->by_position[position < 255 ? position : 255]++;
      d->by_scale[sa < 255 ? sa : 255]++;
      d->pairs[a >> shift & 15][b >> shift & 15]++;
      d->map[r * MX_DIFF_ROWS / rows][c * MX_DIFF_COLS / cols]++;
      d->blocks += !hit[r / br * across + c / bc];
      hit[r / br * across + c / bc] = 1;
      const mx_diff_example now = {
          .row = r,
          .col = c,
          .code_a = a,
          .code_b = b,
          .scale_a = sa,
          .scale_b = sb,
          .value_a = p->s.scale_form == MX_SCALE_FORM_ENCODE ? mx_decode(e, a) / decode_scale(p, sa) : mx_decode(e, a) * decode_scale(p, sa),
          .value_b = p->s.scale_form == MX_SCALE_FORM_ENCODE ? mx_decode(e, b) / decode_scale(p, sb) : mx_decode(e, b) * decode_scale(p, sb),
          .quotient = NAN,
          .tie = NAN};
      const double far = fabs(now.value_a - now.value_b), most = fabs(d->worst.value_a - d->worst.value_b),
                   least = fabs(d->smallest.value_a - d->smallest.value_b);
      if (!d->n_examples++)
        d->first = d->worst = d->smallest = now;
      else {
        if (far > most || (isnan(far) && !isnan(most))) d->worst = now;
        if (far < least || (isnan(least) && !isnan(far))) d->smallest = now;
      }
    }
    d->rows += (size_t)in_row;
  }
  free(hit);
  for (size_t i = 0; i < p->a.scale_rows * p->a.scale_cols; i++) {
    const uint32_t sa = mx_scale_code_at(&p->a, i), sb = mx_scale_code_at(&p->b, i);
    if (sa == sb) continue;
    if (!o->nan_bits && mx_format_is_nan(sf, sa & scale_number) && mx_format_is_nan(sf, sb & scale_number))
      d->nan_codes++;
    else {
      const int64_t step = (int64_t)sb - (int64_t)sa;
      d->scales++;
      d->scale_steps[step < -8 ? 0 : step > 8 ? 16 : step + 8]++;
      d->scale_pairs[sa < 255 ? sa : 255][sb < 255 ? sb : 255]++;
    }
  }
  float *va = malloc(rows * cols * sizeof *va), *vb = malloc(rows * cols * sizeof *vb);
  mx_dequantize(va, cols, &p->a, &p->s, NULL);
  mx_dequantize(vb, cols, &p->b, &p->s, NULL);
  for (size_t i = 0; i < rows * cols && o->values; i++) d->values += !same_float(va[i], vb[i], o);
  free(va);
  free(vb);
}

/* ---- random damage of various densities and kinds */

static uint64_t state;
static uint32_t next(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 32);
}

enum { SPARSE, TENTH, MOST, EVERY, ANYTHING, RUNS, ZEROS, SIGNS, DAMAGES };

static void fill(pair *p, int damage, int scales) {
  const size_t n = p->rows * p->a.code_stride, n_scales = p->a.scale_rows * p->a.scale_cols * p->a.scale_bytes;
  const int four = mx_elem_format(p->s.elem)->bits == 4;
  for (size_t i = 0; i < n; i++) {
    uint8_t *x = &p->a.codes[i], *y = &p->b.codes[i];
    const uint8_t step = (uint8_t)(four ? 1u << next() % 2 * 4 : 1);
    *y = *x = (uint8_t)(next() % 6 ? next() : next() % 2 ? 0 : 0x7F);
    if (damage == SPARSE && next() % 300 == 0) *y ^= (uint8_t)next();
    if (damage == TENTH && next() % 10 == 0) *y ^= step;
    if (damage == MOST && next() % 4) *y = (uint8_t)(*y + step);
    if (damage == EVERY) *y ^= four ? 0x11 : 0x01;
    if (damage == ANYTHING) *y = (uint8_t)next();
    if (damage == RUNS && i / 150 % 3 == 1) *y ^= (uint8_t)(next() % 3);
    if (damage == ZEROS) *y = 0;
    if (damage == SIGNS) *y ^= (uint8_t)(four ? next() % 2 ? 0x80 : 0x88 : 1 << (mx_elem_format(p->s.elem)->bits - 1));
    if (!four && mx_elem_format(p->s.elem)->bits < 8)
      *x &= (uint8_t)((1 << mx_elem_format(p->s.elem)->bits) - 1), *y &= (uint8_t)((1 << mx_elem_format(p->s.elem)->bits) - 1);
  }
  for (size_t i = 0; i < n_scales; i++) {
    p->a.scales[i] = p->b.scales[i] = (uint8_t)(scales == 2 ? next() : 100 + next() % 6);
    if (scales == 1 && next() % 3 == 0) p->b.scales[i] ^= 1;
    if (scales == 2 && next() % 9 == 0) p->b.scales[i] = (uint8_t)next();
    if (scales == 3 && next() % 4 == 0)
      p->a.scales[i] = p->b.scales[i] = next() % 2 ? 0xFF : 0; /* NaN in some formats; values that underflow */
  }
}

#define HOLD(what)                                                                                                                             \
  ck_assert_msg(got->what == want->what, "%s: " #what " %llu, expected %llu", where, (unsigned long long)got->what,                            \
                (unsigned long long)want->what)
#define HOLD_ALL(what) ck_assert_msg(!memcmp(got->what, want->what, sizeof got->what), "%s: " #what, where)

static void hold_example(const mx_diff_example *got, const mx_diff_example *want, const char *which, const char *where) {
  ck_assert_msg(got->row == want->row && got->col == want->col && got->code_a == want->code_a && got->code_b == want->code_b &&
                    got->scale_a == want->scale_a && got->scale_b == want->scale_b && !memcmp(&got->value_a, &want->value_a, 8) &&
                    !memcmp(&got->value_b, &want->value_b, 8),
                "%s: %s is at (%zu, %zu), expected (%zu, %zu)", where, which, got->row, got->col, want->row, want->col);
}

static void hold(const mx_difference *got, const mx_difference *want, const char *where) {
  HOLD(n_codes);
  HOLD(codes);
  HOLD(scales);
  HOLD(values);
  HOLD(zero_signs);
  HOLD(nan_codes);
  HOLD(rows);
  HOLD(blocks);
  HOLD(n_examples);
  HOLD_ALL(by_position);
  HOLD_ALL(by_scale);
  HOLD_ALL(pairs);
  HOLD_ALL(scale_steps);
  HOLD_ALL(scale_pairs);
  HOLD_ALL(map);
  if (!want->codes) return;
  hold_example(&got->first, &want->first, "the first", where);
  hold_example(&got->worst, &want->worst, "the worst", where);
  hold_example(&got->smallest, &want->smallest, "the smallest", where);
}

static const char *const mixes[] = {"elem=e2m1",
                                    "elem=e2m1 nibble=high_first",
                                    "elem=e2m1 nibble=half_block",
                                    "elem=e2m1 block=1x8",
                                    "elem=e2m1 block=1x16 scale=e4m3",
                                    "elem=e2m1 block=1x64",
                                    "elem=e2m1 block=1x256",
                                    "elem=e2m1 block=16x16",
                                    "elem=e4m3fnuz",
                                    "elem=e4m3",
                                    "elem=e5m2 block=1x16",
                                    "elem=e4m3 block=1x8",
                                    "elem=e2m1 scale=bf16",
                                    "elem=e4m3 block=8x128",
                                    "elem=e3m2",
                                    "elem=e2m3 block=1x64",
                                    "elem=int8 block=1x48"};

/* Numbers of columns: whole runs, and tails of less than 64 bytes, of a short block and of half a byte. */
START_TEST(counts_and_examples) {
  static const size_t widths[] = {2560, 1043, 96};
  static const char *const off[] = {"", "avx512", "avx2,neon"};
  mx_difference *got = malloc(sizeof *got), *want = malloc(sizeof *want);
  state = (uint64_t)_i + 1;
  for (int w = 0; w < 3; w++) {
    pair p = {.rows = 24, .cols = widths[w]};
    ck_assert_int_eq(mx_spec_parse(&p.s, mixes[_i], NULL), MX_OK);
    ck_assert_int_eq(mx_tensor_alloc(&p.a, p.rows, p.cols, &p.s), MX_OK);
    ck_assert_int_eq(mx_tensor_alloc(&p.b, p.rows, p.cols, &p.s), MX_OK);
    for (int damage = 0; damage < DAMAGES; damage++)
      for (int scales = 0; scales < 4; scales++) {
        mx_diff_options how = {.values = 1, .nan_bits = (damage + scales) % 3 == 1, .equal_zeros = (damage + scales) % 3 == 2};
        fill(&p, damage, scales);
        naive(want, &p, &how);
        for (int isa = 0; isa < 3; isa++) {
          if (!run_whole() && isa != (w + damage + scales) % 3) continue; /* make check: each on one of the three, in turn */
          char where[160];
          setenv("MXGOLD_ISA_OFF", off[isa], 1);
          how.n_threads = 1 + (isa + damage) % 3;
          snprintf(where, sizeof where, "%s, %zu columns, damage %d, scales %d, without '%s', %d threads", mixes[_i], p.cols, damage, scales,
                   off[isa], how.n_threads);
          ck_assert_int_eq(mx_diff(got, &p.a, &p.b, &p.s, NULL, 0, NULL, NULL, &how, NULL), MX_OK);
          hold(got, want, where);
        }
      }
    mx_tensor_free(&p.a);
    mx_tensor_free(&p.b);
  }
  unsetenv("MXGOLD_ISA_OFF");
  free(got);
  free(want);
}
END_TEST

/* Enough rows for several shares per thread; codes are read by a call, by a call that fails now and then, or in place. */
static int copied;
static int copy(void *self, void *room, const void *from, size_t n_bytes) {
  (void)self;
#pragma omp atomic
  copied++;
  memcpy(room, from, n_bytes);
  return 0;
}
static int fails(void *self, void *room, const void *from, size_t n_bytes) {
  memset(room, 0xEE, n_bytes);
  return (uintptr_t)from >> 12 & 1 ? -1 : copy(self, room, from, n_bytes);
}

START_TEST(shares_and_copies) {
  pair p = {.rows = 9600, .cols = 2048};
  mx_difference *got = calloc(1, sizeof *got), *want = calloc(1, sizeof *want);
  ck_assert_int_eq(mx_spec_parse(&p.s, "elem=e2m1", NULL), MX_OK);
  ck_assert_int_eq(mx_tensor_alloc(&p.a, p.rows, p.cols, &p.s), MX_OK);
  ck_assert_int_eq(mx_tensor_alloc(&p.b, p.rows, p.cols, &p.s), MX_OK);
  state = 99;
  static const int damages[] = {SPARSE, MOST, RUNS};
  for (int d = 0; d < 3; d++) {
    fill(&p, damages[d], d);
    mx_diff_options how = {.values = 1, .n_threads = 1};
    ck_assert_int_eq(mx_diff(want, &p.a, &p.b, &p.s, NULL, 0, NULL, NULL, &how, NULL), MX_OK);
    for (int k = 0; k < 6; k++) {
      how.n_threads = 1 + k % 3;
      how.read = k < 3 ? copy : fails;
      copied = 0;
      ck_assert_int_eq(mx_diff(got, &p.a, &p.b, &p.s, NULL, 0, NULL, NULL, &how, NULL), MX_OK);
      ck_assert_int_gt(copied, 32);
      ck_assert_msg(!memcmp(got, want, sizeof *got), "damage %d, %d threads, copies %d: %llu codes, expected %llu", damages[d], how.n_threads,
                    k < 3, (unsigned long long)got->codes, (unsigned long long)want->codes);
    }
  }
  mx_tensor_free(&p.a);
  mx_tensor_free(&p.b);
  free(got);
  free(want);
}
END_TEST

int main(void) {
  Suite *s = suite_create("diff_counts");
  TCase *t = tcase_create("counts");
  tcase_set_timeout(t, 240);
  tcase_add_loop_test(t, counts_and_examples, 0, (int)(sizeof mixes / sizeof mixes[0]));
  tcase_add_test(t, shares_and_copies);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
