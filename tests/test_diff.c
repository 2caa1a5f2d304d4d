/* mx_diff(): every pattern is injected and named, counts are those of a plain loop, and nothing depends on pieces or threads. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/mxgold.h"

typedef struct fixture {
  mx_spec s;
  size_t rows, cols;
  float *x;
  mx_tensor a, b;
} fixture;

static mx_difference found;

static void begin(fixture *f, const char *keys, size_t rows, size_t cols) {
  f->s = (mx_spec){0};
  ck_assert_int_eq(*keys == '@' ? mx_preset_find(&f->s, keys + 1, NULL) : mx_spec_parse(&f->s, keys, NULL), MX_OK);
  f->rows = rows, f->cols = cols;
  f->x = malloc(rows * cols * sizeof *f->x);
  for (size_t i = 0; i < rows * cols; i++) {
    const uint32_t u = mx_random(7, MX_STREAM_DATA, i), e = mx_random(8, MX_STREAM_DATA, i / 32);
    f->x[i] = ldexpf((float)(int32_t)u * 0x1p-31f, (int)(e % 12));
  }
  mx_tensor_alloc(&f->a, rows, cols, &f->s);
  mx_tensor_alloc(&f->b, rows, cols, &f->s);
  ck_assert_int_eq(mx_quantize(&f->a, f->x, rows, cols, cols, &f->s, NULL, NULL), MX_OK);
  ck_assert_int_eq(mx_quantize(&f->b, f->x, rows, cols, cols, &f->s, NULL, NULL), MX_OK);
}

static void end(fixture *f) {
  free(f->x);
  mx_tensor_free(&f->a);
  mx_tensor_free(&f->b);
}

static void put(fixture *f, size_t r, size_t c, uint32_t code) {
  uint8_t *p = f->b.codes + r * f->b.code_stride;
  if (mx_elem_format(f->s.elem)->bits > 4)
    p[c] = (uint8_t)code;
  else
    p[c / 2] = (uint8_t)((p[c / 2] & (c % 2 ? 0x0F : 0xF0)) | code << (c % 2 * 4));
}

static const mx_difference *diff(fixture *f, int with_input) {
  ck_assert_int_eq(mx_diff(&found, &f->a, &f->b, &f->s, with_input ? f->x : NULL, f->cols, NULL, NULL, &(mx_diff_options){.values = 1}, NULL),
                   MX_OK);
  return &found;
}

static int says(const mx_difference *d, const char *words) {
  for (int i = 0; i < d->n_patterns; i++)
    if (strstr(d->patterns[i], words)) return 1;
  return 0;
}

static void named(const mx_difference *d, const char *words) {
  if (says(d, words)) return;
  char all[2048] = "";
  for (int i = 0; i < d->n_patterns; i++) snprintf(all + strlen(all), sizeof all - strlen(all), "; %s", d->patterns[i]);
  ck_abort_msg("expected \"%s\", said%s", words, all);
}

/* ---- damage */

typedef void damage(fixture *f);

static uint32_t at(const fixture *f, size_t r, size_t c) { return mx_code_at(&f->a, &f->s, r, c); }
#define EACH(f)                                                                                                                                \
  for (size_t r = 0; r < (f)->rows; r++)                                                                                                       \
    for (size_t c = 0; c < (f)->cols; c++)

static void last_block(fixture *f) { EACH(f) if (c >= f->cols - 32) put(f, r, c, at(f, r, c) ^ 3); }
static void every_16th(fixture *f) { EACH(f) if (c % 16 == 5) put(f, r, c, at(f, r, c) ^ 1); }
static void every_64th_row(fixture *f) { EACH(f) if (r % 64 == 2) put(f, r, c, at(f, r, c) ^ 1); }
static void eighth_of_block(fixture *f) { EACH(f) if (c % 32 == 8) put(f, r, c, at(f, r, c) ^ 1); }
static void only_negative(fixture *f) { EACH(f) if (f->x[r * f->cols + c] < 0 && (at(f, r, c) & 7)) put(f, r, c, at(f, r, c) - 1); }
static void only_positive(fixture *f) { EACH(f) if (f->x[r * f->cols + c] > 0 && (at(f, r, c) & 7)) put(f, r, c, at(f, r, c) - 1); }
static void subnormal_codes(fixture *f) { EACH(f) if ((at(f, r, c) & 7) == 1) put(f, r, c, at(f, r, c) & 8); }
static void nibbles(fixture *f) {
  for (size_t i = 0; i < f->rows * f->b.code_stride; i++) f->b.codes[i] = (uint8_t)(f->a.codes[i] << 4 | f->a.codes[i] >> 4);
}
static void row_down(fixture *f) { memcpy(f->b.codes + f->b.code_stride, f->a.codes, (f->rows - 1) * f->b.code_stride); }
static void row_up(fixture *f) { memcpy(f->b.codes, f->a.codes + f->b.code_stride, (f->rows - 1) * f->b.code_stride); }
static void col_right(fixture *f) { EACH(f) if (c) put(f, r, c, at(f, r, c - 1)); }
static void col_left(fixture *f) { EACH(f) if (c + 1 < f->cols) put(f, r, c, at(f, r, c + 1)); }
static void permuted_scales(fixture *f) {
  for (size_t i = 0, n = f->a.scale_rows * f->a.scale_cols; i < n; i++) f->b.scales[i] = f->a.scales[(i * 7 + 3) % n];
}
static void scales_transposed(fixture *f) {
  for (size_t i = 0; i < f->a.scale_rows; i++)
    for (size_t k = 0; k < f->a.scale_cols; k++) f->b.scales[k * f->a.scale_rows + i] = f->a.scales[i * f->a.scale_cols + k];
}
static void layout_left(fixture *f) { mx_layout_pack(f->b.scales, MX_LAYOUT_NV128X4, f->a.scales, f->a.scale_rows, f->a.scale_cols, 0); }
static void double_scales(fixture *f) {
  for (size_t i = 0; i < f->a.scale_rows * f->a.scale_cols; i++) f->b.scales[i] = (uint8_t)(f->a.scales[i] + 1);
}
static void four_more(fixture *f) {
  for (size_t i = 0; i < f->a.scale_rows * f->a.scale_cols; i += 3) f->b.scales[i] = (uint8_t)(f->a.scales[i] + 4);
}
static void transposed(fixture *f) { EACH(f) put(f, r, c, at(f, (r * f->cols + c) % f->rows, (r * f->cols + c) / f->rows)); }
static void zeros(fixture *f) { memset(f->b.codes, 0, f->rows * f->b.code_stride); }
static void signs(fixture *f) { EACH(f) put(f, r, c, at(f, r, c) ^ 8); }
static void one_row(fixture *f) {
  for (size_t c = 0; c < f->cols; c++) put(f, 9, c, at(f, 9, c) ^ 2);
}
static void one_column(fixture *f) {
  for (size_t r = 0; r < f->rows; r++) put(f, r, 77, at(f, r, 77) ^ 2);
}
static void halved(fixture *f) { /* 2 for 4, 3 for 6: a power of two */
  EACH(f) if ((at(f, r, c) & 7) >= 6) put(f, r, c, at(f, r, c) - 2);
}

static const struct {
  const char *name;
  damage *make;
  const char *words, *not_words; /* said; not said */
} damages[] = {
    {"last block", last_block, "all in the last block of a row", "every"},
    {"every 16th", every_16th, "all at every 16th column", "all at odd columns"},
    {"every 64th row", every_64th_row, "all at every 64th row", "column"},
    {"one position", eighth_of_block, "all at one position in the block", "all at every 32nd column"},
    {"negative", only_negative, "all negative", "all positive"},
    {"positive", only_positive, "all positive", "all negative"},
    {"subnormal", subnormal_codes, "all at subnormal codes", "every code of B is zero"},
    {"nibbles", nibbles, "the two codes of each byte are swapped", "shifted"},
    {"row down", row_down, "rows are shifted by one", "upwards"},
    {"row up", row_up, "rows are shifted by one, upwards", "columns are shifted"},
    {"column right", col_right, "columns are shifted by one", "to the left"},
    {"column left", col_left, "columns are shifted by one, to the left", "rows are shifted"},
    {"permuted scales", permuted_scales, "B's scales are A's in another order", "transposed"},
    {"scales transposed", scales_transposed, "the scales are transposed", "layout"},
    {"layout", layout_left, "another layout (nv128x4 or amd_shuffle), not converted", "the scales are transposed"},
    {"double scales", double_scales, "every scale that differs is one code larger in B", "smaller"},
    {"2^4", four_more, "every scale that differs is off by the same power of two", "another order"},
    {"transposed", transposed, "the codes are transposed", "shifted"},
    {"zeros", zeros, "every code of B is zero", "swapped"},
    {"signs", signs, "all differ in the sign alone", "negative"},
    {"one row", one_row, "all in one row", "all in one column"},
    {"one column", one_column, "all in one column", "all in one row"},
    {"halved", halved, "every value that differs is off by the same power of two", "sign"},
};

START_TEST(each_pattern_is_named) {
  fixture f;
  begin(&f, "elem=e2m1", 128, 128);
  ck_assert(diff(&f, 1)->equal);
  ck_assert_int_eq(found.n_patterns, 0);
  damages[_i].make(&f);
  for (int with_input = 0; with_input < 2; with_input++) {
    const mx_difference *d = diff(&f, with_input);
    ck_assert(!d->equal);
    named(d, damages[_i].words);
    ck_assert_msg(!says(d, damages[_i].not_words), "%s: said \"%s\" too", damages[_i].name, damages[_i].not_words);
  }
  end(&f);
}
END_TEST

START_TEST(patterns_of_the_input) {
  fixture f;
  begin(&f, "elem=e2m1 elem.zero_sign=keep", 64, 128);
  /* Exact ties of an e2m1 grid under a scale of 1: the block's maximum is 6. */
  for (size_t i = 0; i < 64 * 128; i++) {
    static const float values[4] = {6, 0.25f, 1.75f, 3.25f};
    f.x[i] = i % 32 ? values[i % 4] * (i % 8 < 4 ? 1 : -1) : 6;
  }
  mx_quantize(&f.a, f.x, 64, 128, 128, &f.s, NULL, NULL);
  f.s.elem_round = MX_ROUND_RNA;
  mx_quantize(&f.b, f.x, 64, 128, 128, &f.s, NULL, NULL);
  const mx_difference *d = diff(&f, 1);
  ck_assert_uint_gt(d->codes, 100);
  named(d, "all where the quotient is exactly a tie");
  ck_assert(!says(d, "within 2^-24"));
  ck_assert(!says(diff(&f, 0), "tie"));
  /* Blocks along the other axis, of a square matrix: B's bytes are as many. */
  fixture g;
  begin(&g, "elem=e4m3 block=32x1", 128, 128);
  fixture h;
  begin(&h, "elem=e4m3", 128, 128);
  memcpy(h.b.codes, g.a.codes, 128 * 128);
  memcpy(h.b.scales, g.a.scales, 128 * 4);
  named(diff(&h, 1), "blocks lie along columns instead of rows");
  mx_quantize_transposed(&h.b, h.x, 128, 128, 128, &h.s, NULL, NULL);
  named(diff(&h, 1), "B is the transpose of the input, quantised");
  /* Subnormal inputs. */
  memcpy(h.b.codes, h.a.codes, 128 * 128);
  memcpy(h.b.scales, h.a.scales, 128 * 4);
  h.x[40] = 1e-40f;
  h.b.codes[40] ^= 1;
  named(diff(&h, 1), "all at subnormal inputs");
  h.x[40] = INFINITY;
  named(diff(&h, 1), "all at NaN or Inf inputs");
  end(&f);
  end(&g);
  end(&h);
}
END_TEST

START_TEST(short_blocks_and_padding) {
  fixture f;
  begin(&f, "elem=e2m1", 32, 75); /* 2 blocks and 11 elements */
  for (size_t r = 0; r < 32; r++)
    for (size_t c = 64; c < 75; c++) put(&f, r, c, at(&f, r, c) ^ 1);
  named(diff(&f, 0), "stale padding");
  memcpy(f.b.codes, f.a.codes, 32 * f.a.code_stride);
  for (size_t r = 0; r < 32; r++) memset(f.b.codes + r * f.b.code_stride + 38, 0x77, f.b.code_stride - 38);
  const mx_difference *d = diff(&f, 0);
  ck_assert(d->equal);
  ck_assert_uint_eq(d->padding, 32 * (f.b.code_stride - 38));
  named(d, "bytes behind the ends of rows differ (stale padding)");
  f.b.codes[37] ^= 0x70; /* the upper half of the byte of the last element */
  ck_assert_uint_eq(diff(&f, 0)->padding, 32 * (f.b.code_stride - 38) + 1);
  ck_assert(found.equal);
  f.b.codes[37] ^= 0x07;
  ck_assert_uint_eq(diff(&f, 0)->codes, 1);
  end(&f);
}
END_TEST

/* Counts by a loop that knows nothing of bytes, pieces or threads. */
static const char *const mixes[] = {"elem=e2m1",
                                    "elem=e2m1 nibble=high_first",
                                    "elem=e2m1 nibble=half_block",
                                    "elem=e4m3",
                                    "elem=e3m2 block=32x1",
                                    "elem=e4m3 block=8x16",
                                    "elem=int8",
                                    "@te-nvfp4",
                                    "elem=none",
                                    "@hif4"};

START_TEST(counts_are_those_of_a_plain_loop) {
  fixture f;
  const size_t rows = 2200, cols = 1043; /* three pieces */
  begin(&f, mixes[_i], rows, cols);
  for (size_t i = 0; i < rows * f.b.code_stride; i += 1 + mx_random(3, MX_STREAM_DATA, i) % 20000) f.b.codes[i] ^= (uint8_t)(1 + i % 7);
  for (size_t i = 0; i < f.b.scale_rows * f.b.scale_cols * f.b.scale_bytes; i += 1 + mx_random(4, MX_STREAM_DATA, i) % 3000) f.b.scales[i] ^= 1;
  uint64_t codes = 0, in_rows = 0, n_scales = 0, values = 0;
  for (size_t r = 0; r < rows; r++) {
    const uint64_t before = codes;
    for (size_t c = 0; c < cols; c++) codes += mx_code_at(&f.a, &f.s, r, c) != mx_code_at(&f.b, &f.s, r, c);
    in_rows += codes > before;
  }
  for (size_t i = 0; i < f.a.scale_rows * f.a.scale_cols; i++)
    n_scales += memcmp(f.a.scales + i * f.a.scale_bytes, f.b.scales + i * f.a.scale_bytes, f.a.scale_bytes) != 0;
  float *va = malloc(rows * cols * sizeof *va), *vb = malloc(rows * cols * sizeof *vb);
  mx_dequantize(va, cols, &f.a, &f.s, NULL);
  mx_dequantize(vb, cols, &f.b, &f.s, NULL);
  for (size_t i = 0; i < rows * cols; i++) values += memcmp(&va[i], &vb[i], 4) && !(isnan(va[i]) && isnan(vb[i]));
  mx_difference *one = calloc(1, sizeof *one), *many = calloc(1, sizeof *many);
  mx_diff_example list[5];
  mx_diff_options how = {.values = 1, .nan_bits = 1, .n_threads = 1, .list = list, .n_list = 5};
  ck_assert_int_eq(mx_diff(one, &f.a, &f.b, &f.s, f.x, cols, NULL, NULL, &how, NULL), MX_OK);
  ck_assert_uint_eq(one->codes, codes);
  ck_assert_uint_eq(one->rows, in_rows);
  ck_assert_uint_eq(one->scales, n_scales);
  ck_assert_uint_eq(one->n_values, rows * cols);
  ck_assert_uint_eq(one->values, values);
  ck_assert_uint_eq(one->n_listed, 5);
  ck_assert(list[0].row == one->first.row && list[0].col == one->first.col);
  for (int i = 1; i < 5; i++) ck_assert(list[i].row * cols + list[i].col > list[i - 1].row * cols + list[i - 1].col);
  how.n_list = 0;
  for (int t = 2; t <= 4; t++) {
    how.n_threads = t;
    ck_assert_int_eq(mx_diff(many, &f.a, &f.b, &f.s, f.x, cols, NULL, NULL, &how, NULL), MX_OK);
    many->n_listed = 5;
    ck_assert_int_eq(memcmp(one, many, sizeof *one), 0);
  }
  free(one);
  free(many);
  free(va);
  free(vb);
  end(&f);
}
END_TEST

typedef struct flow {
  const fixture *f;
  size_t next, asked;
} flow;
static const float *input(void *self, size_t row, size_t n) {
  flow *w = self;
  (void)n;
  w->asked++;
  return w->f->x + row * w->f->cols;
}
static void passed(void *self, size_t row, size_t n) {
  flow *w = self;
  ck_assert_uint_eq(row, w->next);
  w->next = row + n;
}

START_TEST(input_in_pieces_gives_the_same) {
  fixture f;
  begin(&f, "elem=e2m1", 4096, 1024);
  only_negative(&f);
  mx_difference *whole = calloc(1, sizeof *whole), *pieces = calloc(1, sizeof *pieces);
  flow w = {.f = &f};
  mx_diff_options how = {.values = 1};
  ck_assert_int_eq(mx_diff(whole, &f.a, &f.b, &f.s, f.x, f.cols, NULL, NULL, &how, NULL), MX_OK);
  how.input = input, how.passed = passed, how.self = &w;
  ck_assert_int_eq(mx_diff(pieces, &f.a, &f.b, &f.s, NULL, 0, NULL, NULL, &how, NULL), MX_OK);
  ck_assert_uint_ge(w.asked, 4);
  ck_assert_uint_eq(w.next, 4096);
  ck_assert_int_eq(memcmp(whole, pieces, sizeof *whole), 0);
  free(whole);
  free(pieces);
  end(&f);
}
END_TEST

int main(void) {
  Suite *s = suite_create("diff");
  TCase *t = tcase_create("diff");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, each_pattern_is_named, 0, (int)(sizeof damages / sizeof damages[0]));
  tcase_add_test(t, patterns_of_the_input);
  tcase_add_test(t, short_blocks_and_padding);
  tcase_add_loop_test(t, counts_are_those_of_a_plain_loop, 0, (int)(sizeof mixes / sizeof mixes[0]));
  tcase_add_test(t, input_in_pieces_gives_the_same);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
