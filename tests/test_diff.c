/* Tests mx_diff(): every pattern is injected and named, counts are those of a plain loop, and nothing depends on pieces or threads. */
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
static void odd_rows(fixture *f) { EACH(f) if (r % 2) put(f, r, c, at(f, r, c) ^ 1); }
static void even_rows(fixture *f) { EACH(f) if (r % 2 == 0 && c % 5 == 1) put(f, r, c, at(f, r, c) ^ 1); }
static void row_tile(fixture *f) { EACH(f) if (r >= 16 && r < 32) put(f, r, c, at(f, r, c) ^ 1); }
static void one_tile(fixture *f) { EACH(f) if (r >= 64 && r < 96 && c >= 64) put(f, r, c, at(f, r, c) ^ 1); }
static void block_column(fixture *f) { EACH(f) if (c / 32 == 1) put(f, r, c, at(f, r, c) ^ 1); }
static void one_block(fixture *f) { EACH(f) if (c / 32 == 2 && r == 70) put(f, r, c, at(f, r, c) ^ 1); }
static void few_columns(fixture *f) { EACH(f) if (c == 3 || c == 40 || c == 77) put(f, r, c, at(f, r, c) ^ 1); }
static void few_rows(fixture *f) { EACH(f) if (r == 3 || r == 40 || r == 77) put(f, r, c, at(f, r, c) ^ 1); }
static void two_positions(fixture *f) { EACH(f) if (c % 32 == 6 || c % 32 == 17) put(f, r, c, at(f, r, c) ^ 1); }
static void all_f(fixture *f) { memset(f->b.codes, 0xFF, f->rows * f->b.code_stride); }
static void saturated(fixture *f) { EACH(f) if ((at(f, r, c) & 7) == 7) put(f, r, c, at(f, r, c) - 1 - r % 2); }
static void moved(fixture *f, size_t w, size_t (*from)(size_t i)) { EACH(f) put(f, r, c, at(f, r, c / w * w + from(c % w))); }
static size_t of_big_endian(size_t i) { return i ^ 6; }
static size_t of_reverse(size_t i) { return 15 - i; }
static size_t of_deinterleaved(size_t i) { return i < 16 ? 2 * i : 2 * i - 31; }
static size_t of_interleaved(size_t i) { return i % 2 * 16 + i / 2; }
static size_t of_matrix(size_t i) { return i % 4 * 8 + i / 4; }
static size_t of_halves(size_t i) { return i ^ 8; }
static size_t of_rotation(size_t i) { return (i + 5) % 32; }
static size_t of_no_name(size_t i) { return (i * 5 + 3) % 32; }
static void big_endian(fixture *f) { moved(f, 8, of_big_endian); }
static void reversed(fixture *f) { moved(f, 16, of_reverse); }
static void deinterleaved(fixture *f) { moved(f, 32, of_deinterleaved); }
static void interleaved(fixture *f) { moved(f, 32, of_interleaved); }
static void matrix(fixture *f) { moved(f, 32, of_matrix); }
static void swapped_halves(fixture *f) { moved(f, 16, of_halves); }
static void rotated(fixture *f) { moved(f, 32, of_rotation); }
static void no_name(fixture *f) { moved(f, 32, of_no_name); }
static void scale_column(fixture *f) {
  for (size_t r = 0; r < f->a.scale_rows; r++) f->b.scales[r * f->a.scale_cols + 2] ^= (uint8_t)(1 + r % 3);
}
static void scale_row_tile(fixture *f) {
  for (size_t i = 0; i < 16 * f->a.scale_cols; i++) f->b.scales[32 * f->a.scale_cols + i] ^= (uint8_t)(1 + i % 3);
}
static void unbiased_scales(fixture *f) {
  for (size_t i = 0; i < f->a.scale_rows * f->a.scale_cols; i++) f->b.scales[i] = (uint8_t)(f->a.scales[i] - 64);
}
static void no_bias(fixture *f) {
  for (size_t i = 0; i < f->a.scale_rows * f->a.scale_cols; i++) f->b.scales[i] = (uint8_t)(f->a.scales[i] - 127);
}
static void five_right(fixture *f) { EACH(f) put(f, r, c, at(f, r, (c + f->cols - 5) % f->cols)); }
static void thirty_up(fixture *f) { memcpy(f->b.codes, f->a.codes + 30 * f->b.code_stride, (f->rows - 30) * f->b.code_stride); }
static void row_order(fixture *f, size_t (*from)(size_t r, size_t n), int scales) {
  EACH(f) if (!scales) put(f, r, c, at(f, from(r, f->rows), c));
  for (size_t r = 0; r < f->rows && scales; r++)
    memcpy(f->b.scales + r * f->a.scale_cols, f->a.scales + from(r, f->rows) * f->a.scale_cols, f->a.scale_cols);
}
static size_t pair_of(size_t r, size_t n) { return (void)n, r ^ 1; }
static size_t from_end(size_t r, size_t n) { return n - 1 - r; }
static size_t of_half(size_t r, size_t n) { return r % 2 * (n / 2) + r / 2; }
static size_t two_of(size_t r, size_t n) { return (void)n, r == 5 ? 77 : r == 77 ? 5 : r; }
static size_t any_of(size_t r, size_t n) { return (r * 37 + 11) % n; }
static size_t upper_pairs(size_t r, size_t n) { return r < n / 2 ? r : r ^ 1; }
static void row_pairs(fixture *f) { row_order(f, pair_of, 0); }
static void rows_reversed(fixture *f) { row_order(f, from_end, 0); }
static void rows_interleaved(fixture *f) { row_order(f, of_half, 0); }
static void two_rows(fixture *f) { row_order(f, two_of, 0); }
static void rows_of_no_name(fixture *f) { row_order(f, any_of, 0); }
static void upper_row_pairs(fixture *f) { row_order(f, upper_pairs, 0); }
static void scale_rows_reversed(fixture *f) { row_order(f, from_end, 1); }
static void columns_reversed(fixture *f) { EACH(f) put(f, r, c, at(f, r, f->cols - 1 - c)); }
static void tiles_turned(fixture *f) { EACH(f) put(f, r, c, at(f, r / 32 * 32 + c % 32, c / 32 * 32 + r % 32)); }
static void one_tile_turned(fixture *f) { EACH(f) if (r / 16 == 2 && c / 16 == 3) put(f, r, c, at(f, 32 + c % 16, 48 + r % 16)); }
static void tiles_by_columns(fixture *f) {
  EACH(f) {
    const size_t n = f->rows / 32, i = r / 32 * (f->cols / 32) + c / 32;
    put(f, r, c, at(f, i % n * 32 + r % 32, i / n * 32 + c % 32));
  }
}
static void two_tiles(fixture *f) {
  EACH(f) if (r / 32 == 1 && c / 32 == 2) {
    put(f, r, c, at(f, r + 64, c - 32));
    put(f, r + 64, c - 32, at(f, r, c));
  }
}
static void two_wide_tiles(fixture *f) {
  EACH(f) if (r / 16 == 1 && c < 64) {
    put(f, r, c, at(f, r + 48, c + 64));
    put(f, r + 48, c + 64, at(f, r, c));
  }
}
static void odd_nibbles(fixture *f) { EACH(f) if (r % 2) put(f, r, c, at(f, r, c ^ 1)); }
static void odd_words(fixture *f) { EACH(f) if (r % 2) put(f, r, c, at(f, r, c ^ 7)); }
static void scales_of_one(fixture *f) { memset(f->b.scales, 0x7F, f->a.scale_rows * f->a.scale_cols); }

static const struct {
  const char *name;
  damage *make;
  const char *words, *not_words; /* what the verdict must say, and what it must not say */
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
    {"odd rows", odd_rows, "all at odd rows", "column"},
    {"even rows", even_rows, "all at even rows", "column"},
    {"row tile", row_tile, "all in rows 16 to 31", "column"},
    {"tile", one_tile, "all in rows 64 to 95, columns 64 to 127 (a tile of 32 x 64)", "block column"},
    {"block column", block_column, "all in block column 1 (columns 32 to 63)", "row"},
    {"one block", one_block, "all in one block (row 70, columns 64 to 95)", "every"},
    {"few columns", few_columns, "all in columns 3, 40 and 77", "row"},
    {"few rows", few_rows, "all in rows 3, 40 and 77", "column"},
    {"two positions", two_positions, "all at positions 6 and 17 in the block", "row"},
    {"all 0xF", all_f, "every code of B is 0xF (-6)", "zero"},
    {"one magnitude", saturated, "all have the code of 6 in A", "smaller"},
    {"big endian", big_endian, "the bytes of each 32-bit word are reversed (big-endian)", "rotated"},
    {"reversed", reversed, "the codes of each 64-bit word are in reverse order", "rotated"},
    {"deinterleaved", deinterleaved, "of each 32 codes those at even places come first, then the odd ones (deinterleaved)", "another"},
    {"interleaved", interleaved, "the halves of each 32 codes are interleaved", "transposed"},
    {"matrix", matrix, "each 32 codes are transposed, as a matrix of 8 x 4", "interleaved"},
    {"halves", swapped_halves, "the halves of each 16 codes are swapped", "another"},
    {"rotated", rotated, "the codes of each group of 32 are rotated by 5", "another"},
    {"no name", no_name, "are in another order: B has A's of the places 3, 8, 13, 18, ...", "rotated"},
    {"scale column", scale_column, "every scale that differs is in block column 2 (columns 64 to 95)", "row"},
    {"scale rows", scale_row_tile, "every scale that differs is in rows 32 to 47", "column"},
    {"scale bias", unbiased_scales, "every scale that differs is 64 codes smaller in B", "column"},
    {"no bias", no_bias, "127 codes smaller in B, modulo 256 (the exponent without its bias)", "column"},
    {"five right", five_right, "columns are shifted by 5", "rows are"},
    {"thirty up", thirty_up, "rows are shifted by 30, upwards", "columns are"},
    {"scales of one", scales_of_one, "every scale of B is 0x7F (1)", "larger"},
    {"row pairs", row_pairs, "B has A's codes with rows swapped two by two (row 0 with 1, 2 with 3, ...)", "shifted"},
    {"rows reversed", rows_reversed, "B has A's codes with the rows in reverse order", "shifted"},
    {"rows interleaved", rows_interleaved, "B has A's codes with the halves of the rows interleaved", "shifted"},
    {"two rows", two_rows, "B has A's codes with rows 5 and 77 swapped", "column"},
    {"rows", rows_of_no_name, "with the 128 rows in another order (row 0 holds what belongs to row 11, 1 that of 48, 2 that of 85, ...)",
     "column"},
    {"upper row pairs", upper_row_pairs, "rows swapped two by two (row 0 with 1, 2 with 3, ...), of rows 64 to 127 alone", "shifted"},
    {"rows of scales", scale_rows_reversed, "B has A's scales with the rows in reverse order", "are A's in another"},
    {"columns reversed", columns_reversed, "B has A's codes with the columns in reverse order", "tile"},
    {"tiles transposed", tiles_turned, "B has A's codes with each tile of 32 x 32 transposed", "row"},
    {"one tile transposed", one_tile_turned, "with one tile of 16 x 16 transposed (rows 32 to 47, columns 48 to 63)", "each"},
    {"tiles by columns", tiles_by_columns, "with the matrix of 4 x 4 tiles of 32 x 32 transposed", "each"},
    {"two tiles", two_tiles, "with two tiles of 32 x 32 swapped (rows 32 to 63, columns 64 to 95 and rows 96 to 127, columns 32 to 63)",
     "each"},
    {"two wide tiles", two_wide_tiles,
     "with two tiles of 16 x 64 swapped (rows 16 to 31, columns 0 to 63 and rows 64 to 79, columns 64 to 127)", "each"},
    {"nibbles of odd rows", odd_nibbles, "the two codes of each byte are swapped, where they differ", "even"},
    {"words of odd rows", odd_words, "the codes of each 32-bit word are in reverse order, in the rows that differ", "even"},
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

/* Codes of int8 are two's complement: 0x80 is -128, not a zero, and only the sign differs if 1 became -1, not if it became -127. */
START_TEST(integers_are_no_sign_and_magnitude) {
  static const struct {
    unsigned from, to;
    const char *words, *not_words;
  } edits[] = {{0x00, 0x80, "all have the code of 2 in B", "the sign of a zero"},
               {0x01, 0x81, "all have the code of 1.98438 in B", "the sign alone"},
               {0x01, 0xFF, "all differ in the sign alone", "of a zero"},
               {0xFF, 0xFE, "all one step larger in B", "smaller"}};
  for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
    fixture f;
    size_t n = 0;
    begin(&f, "elem=int8", 64, 128);
    for (size_t k = 0; k < 64 * 128; k++)
      if (at(&f, k / 128, k % 128) == edits[i].from) put(&f, k / 128, k % 128, edits[i].to), n++;
    ck_assert_uint_gt(n, 10);
    const mx_difference *d = diff(&f, 0);
    ck_assert_uint_eq(d->codes, n);
    named(d, edits[i].words);
    ck_assert_msg(!says(d, edits[i].not_words), "0x%02X to 0x%02X: said \"%s\"", edits[i].from, edits[i].to, edits[i].not_words);
    end(&f);
  }
}
END_TEST

/* A few blocks that are wrong as a whole count as a few places, however many elements they have. */
START_TEST(few_blocks_are_no_place) {
  static const size_t places[4][2] = {{34, 64}, {73, 192}, {87, 160}, {90, 224}};
  fixture f;
  begin(&f, "elem=e2m1", 128, 384);
  for (size_t i = 0; i < 4; i++)
    for (size_t c = 0; c < 32; c++) put(&f, places[i][0], places[i][1] + c, at(&f, places[i][0], places[i][1] + c) ^ 1);
  const mx_difference *d = diff(&f, 1);
  ck_assert_uint_eq(d->codes, 128);
  ck_assert(!says(d, "rows") && !says(d, "columns"));
  end(&f);
}
END_TEST

/* The verdict names the sign of a zero, but not that zero is below the normal numbers. */
START_TEST(zero_is_not_subnormal) {
  fixture f;
  begin(&f, "elem=e2m1", 64, 128);
  EACH(&f) if (!(at(&f, r, c) & 7)) put(&f, r, c, at(&f, r, c) ^ 8);
  const mx_difference *d = diff(&f, 1);
  ck_assert_uint_gt(d->codes, 100);
  ck_assert(says(d, "all are the sign of a zero") && !says(d, "subnormal"));
  end(&f);
}
END_TEST

START_TEST(patterns_of_the_input) {
  fixture f;
  begin(&f, "elem=e2m1 elem.zero_sign=keep", 64, 128);
  /* Exact ties of the e2m1 grid under a scale of 1, as the maximum of each block is 6. */
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
  /* Blocks along the other axis of a square matrix, so that B has as many bytes. */
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
  for (size_t i = 0; i < 20; i++) {
    h.x[40 + 801 * i] = 1e-40f;
    h.b.codes[40 + 801 * i] ^= 1;
  }
  named(diff(&h, 1), "all at subnormal inputs");
  for (size_t i = 0; i < 20; i++) h.x[40 + 801 * i] = INFINITY;
  named(diff(&h, 1), "all at NaN or Inf inputs");
  /* The maximum is taken without fabsf(), so blocks go wrong whose largest magnitude is negative. */
  memcpy(h.b.codes, h.a.codes, 128 * 128);
  for (size_t b = 0; b < 512; b++) {
    float most = 0;
    for (size_t i = 0; i < 32; i++)
      if (fabsf(h.x[32 * b + i]) > fabsf(most)) most = h.x[32 * b + i];
    if (most < 0) h.b.codes[32 * b + b % 32] ^= 1;
  }
  named(diff(&h, 1), "all in blocks whose largest magnitude is negative");
  end(&f);
  end(&g);
  end(&h);
}
END_TEST

/* A few differences always have something in common, which must not be stated as a pattern. */
START_TEST(coincidences_are_not_stated) {
  fixture f;
  begin(&f, "elem=e2m1", 128, 128);
  for (uint64_t seed = 0; seed < 400; seed++) {
    const size_t n = 1 + seed % 24;
    memcpy(f.b.codes, f.a.codes, 128 * f.a.code_stride);
    memcpy(f.b.scales, f.a.scales, 128 * f.a.scale_cols);
    if (seed % 3 != 1)
      for (size_t i = 0; i < n; i++) {
        const uint32_t u = mx_random(seed, MX_STREAM_DATA, 100 + i);
        put(&f, u % 128, u >> 8 & 127, at(&f, u % 128, u >> 8 & 127) ^ (1 + (u >> 16) % 15));
      }
    if (seed % 3)
      for (size_t i = 0; i < n; i++)
        f.b.scales[mx_random(seed, MX_STREAM_DATA, 500 + i) % 512] ^= (uint8_t)(1 + mx_random(seed, MX_STREAM_DATA, 900 + i) % 7);
    const mx_difference *d = diff(&f, seed & 1);
    for (int i = 0; i < d->n_patterns; i++)
      if (!strstr(d->patterns[i], "no code differs") && !strstr(d->patterns[i], "one scale differs"))
        ck_abort_msg("seed %d, %zu differences: \"%s\"", (int)seed, n, d->patterns[i]);
  }
  /* Three at even columns; all in one row; all of a few are larger. */
  memcpy(f.b.codes, f.a.codes, 128 * f.a.code_stride);
  memcpy(f.b.scales, f.a.scales, 128 * f.a.scale_cols);
  put(&f, 4, 16, at(&f, 4, 16) ^ 1);
  put(&f, 36, 80, at(&f, 36, 80) ^ 1);
  put(&f, 100, 48, at(&f, 100, 48) ^ 1);
  ck_assert_int_eq(diff(&f, 0)->n_patterns, 0);
  /* Every scale is the same, so a block with that scale means nothing. */
  for (size_t i = 0; i < 128; i++) put(&f, i, i * 37 % 128, at(&f, i, i * 37 % 128) ^ 5);
  ck_assert(!says(diff(&f, 1), "scale"));
  /* If half of them are not, it does mean something. */
  for (size_t i = 0; i < 512; i++)
    if (memcmp(f.a.codes + 16 * i, f.b.codes + 16 * i, 16) == 0 && i % 2) f.b.scales[i] ^= 3;
  named(diff(&f, 1), "all in blocks whose scale is the same");
  /* With positive input all differences are at positive elements anyway. */
  for (size_t i = 0; i < 128 * 128; i++) f.x[i] = fabsf(f.x[i]);
  mx_quantize(&f.a, f.x, 128, 128, 128, &f.s, NULL, NULL);
  mx_quantize(&f.b, f.x, 128, 128, 128, &f.s, NULL, NULL);
  for (size_t i = 0; i < 128; i++) put(&f, i, i * 37 % 128, at(&f, i, i * 37 % 128) ^ 5);
  ck_assert(!says(diff(&f, 1), "positive"));
  ck_assert(!says(diff(&f, 0), "positive"));
  end(&f);
}
END_TEST

START_TEST(the_tensor_scale_alone) {
  fixture f;
  begin(&f, "@te-nvfp4", 64, 128);
  const float amax = f.a.tensor_scale;
  const struct {
    float value;
    const char *words;
  } stored[] = {{amax / 2688, "A stores amax, B stores amax / 2688"},
                {2688 / amax, "A stores amax, B stores 2688 / amax"},
                {amax / 448, "A stores amax, B stores amax / 448"},
                {1 / amax, "A stores amax, B stores 1 / amax"},
                {amax / 4, "B's is 2^-2 times A's"},
                {amax * 1.1f, "codes and scales agree"},
                {INFINITY, "inf in B); codes and scales agree"},
                {NAN, "nan in B); codes and scales agree"}};
  for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++) {
    f.b.tensor_scale = stored[i].value;
    named(diff(&f, 0), stored[i].words);
    named(&found, "the tensor scale is what differs (");
    ck_assert_int_eq(found.n_patterns, 1);
  }
  ck_assert(!strstr(found.patterns[0], "stores"));
  f.b.tensor_scale = amax / 2688;
  f.b.codes[0] ^= 1;
  named(diff(&f, 0), "the tensor scale differs too");
  f.b.codes[0] ^= 1;
  f.b.tensor_scale = amax;
  f.b.scales[9] ^= 4;
  char words[100];
  snprintf(words, sizeof words, "one scale differs (row 1, block column 1): %u in A, %u in B, 4 codes ", f.a.scales[9], f.b.scales[9]);
  named(diff(&f, 0), words);
  named(diff(&f, 0), "no code differs: the values that do are those of blocks whose scale differs");
  end(&f);
}
END_TEST

/* Whoever has no A and B gives the two sides names. */
START_TEST(sides_have_names) {
  const mx_diff_options how = {.name_a = "ocp-mxfp4", .name_b = "your kernel"};
  fixture f;
  begin(&f, "@te-nvfp4", 64, 128);
  f.b.tensor_scale = f.a.tensor_scale / 2688;
  for (size_t i = 0; i < 64 * 64; i++) f.b.codes[i] = 0;
  for (size_t i = 0; i < 64 * 8; i++) f.b.scales[i] = f.a.scales[(i + 8) % (64 * 8)];
  ck_assert_int_eq(mx_diff(&found, &f.a, &f.b, &f.s, f.x, f.cols, NULL, NULL, &how, NULL), MX_OK);
  named(&found, "every code of your kernel is zero");
  named(&found, "all are zero in your kernel");
  named(&found, "ocp-mxfp4 stores amax, your kernel stores amax / 2688");
  named(&found, "your kernel has ocp-mxfp4's scales with ");
  for (int i = 0; i < found.n_patterns; i++)
    ck_assert(!strstr(found.patterns[i], " B") && !strstr(found.patterns[i], " A ") && !strstr(found.patterns[i], "A's"));
  end(&f);
}
END_TEST

START_TEST(short_blocks_and_padding) {
  fixture f;
  begin(&f, "elem=e2m1", 32, 75); /* 2 blocks and 11 elements */
  for (size_t r = 0; r < 32; r++)
    for (size_t c = 64; c < 75; c++) put(&f, r, c, at(&f, r, c) ^ 1);
  named(diff(&f, 0), "all in the last, short block of a row: see whether other elements");
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

/* Counts are compared with those of a loop that knows nothing about bytes, pieces or threads. */
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
  for (int t = run_sanitized() ? 4 : 2; t <= 4; t++) {
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

/* If much differs, blocks are counted by tables; a list of differences keeps every element looked at. The results must be the same. */
START_TEST(crowds_count_as_one_by_one) {
  fixture f;
  const size_t rows = 720, cols = 1536; /* three pieces of four-bit codes, five of eight-bit ones; not a whole number of blocks of 32 rows */
  static const int of_mixes[] = {0, 1, 3, 5, 7};
  const char *mix = mixes[of_mixes[_i]];
  begin(&f, mix, rows, cols);
  mx_difference *one = calloc(1, sizeof *one), *many = calloc(1, sizeof *many);
  mx_diff_example list[1];
  for (int kind = 0; kind < 8; kind++) {
    if (run_sanitized() && (kind + _i) % 4) continue;
    memcpy(f.b.codes, f.a.codes, rows * f.a.code_stride);
    memcpy(f.b.scales, f.a.scales, f.a.scale_rows * f.a.scale_cols * f.a.scale_bytes);
    f.b.tensor_scale = kind == 5 ? f.a.tensor_scale * 2 : f.a.tensor_scale;
    for (size_t r = 0; r < rows; r++)
      for (size_t i = 0; i < f.b.code_stride; i++) {
        const uint32_t u = mx_random(77, MX_STREAM_DATA, r * f.b.code_stride + i);
        uint8_t *p = &f.b.codes[r * f.b.code_stride + i];
        if (kind == 0 && r % 16 == 0) *p ^= 0x11;
        if (kind == 1 && u % 3) *p ^= (uint8_t)(u >> 8);
        if (kind == 2 && r % 5 < 2 && i % 200 < 120) *p = (uint8_t)(u >> 8);
        if (kind == 3) *p ^= (uint8_t)(r % 2 ? 0x80 : 0x08); /* signs, of zeros and NaN too */
        if (kind >= 4 && kind < 7 && (r + i / 300) % 7 == 0) *p ^= (uint8_t)(1 + (u >> 9) % 3);
        if (kind == 7) *p = 0;
      }
    for (size_t i = 0; i < f.b.scale_rows * f.b.scale_cols * f.b.scale_bytes; i++) {
      if (kind == 4 && mx_random(78, MX_STREAM_DATA, i) % 4) f.b.scales[i] ^= (uint8_t)(1 + i % 7);
      if (kind == 6 && i % 11 == 0) f.a.scales[i] = f.b.scales[i] = 0xFF; /* NaN, for some */
      if (kind == 6 && i % 13 == 0) f.a.scales[i] = f.b.scales[i] = 0;    /* products that underflow */
    }
    for (int k = 0; k < 2; k++) {
      const int how_kind = k ? 1 + kind % 3 : 0;
      mx_diff_options how = {
          .values = how_kind != 1, .nan_bits = how_kind == 2, .equal_zeros = how_kind == 3, .n_threads = 1, .list = list, .n_list = 1};
      ck_assert_int_eq(mx_diff(one, &f.a, &f.b, &f.s, NULL, cols, NULL, NULL, &how, NULL), MX_OK);
      one->n_listed = 0;
      how.n_list = 0;
      for (int t = 1; t <= 3; t += 2) {
        how.n_threads = t;
        ck_assert_int_eq(mx_diff(many, &f.a, &f.b, &f.s, NULL, cols, NULL, NULL, &how, NULL), MX_OK);
        if (memcmp(one, many, sizeof *one)) {
          size_t at = 0;
          while (!memcmp(one, many, at + 1)) at++;
          ck_abort_msg("%s, damage %d, options %d, %d threads: the byte at %zu differs; codes %llu, %llu", mix, kind, how_kind, t, at,
                       (unsigned long long)one->codes, (unsigned long long)many->codes);
        }
      }
    }
  }
  free(one);
  free(many);
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
  tcase_add_test(t, few_blocks_are_no_place);
  tcase_add_test(t, integers_are_no_sign_and_magnitude);
  tcase_add_test(t, zero_is_not_subnormal);
  tcase_add_test(t, patterns_of_the_input);
  tcase_add_test(t, coincidences_are_not_stated);
  tcase_add_test(t, the_tensor_scale_alone);
  tcase_add_test(t, sides_have_names);
  tcase_add_test(t, short_blocks_and_padding);
  tcase_add_loop_test(t, counts_are_those_of_a_plain_loop, 0, (int)(sizeof mixes / sizeof mixes[0]));
  tcase_add_loop_test(t, crowds_count_as_one_by_one, 0, 5);
  tcase_add_test(t, input_in_pieces_gives_the_same);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
