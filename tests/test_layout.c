/* Tests that layouts are bijections, that their inverses work, and that scales are where the vendors' kernels look for them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/layout.h"

static const size_t shapes[][2] = {{1, 1}, {3, 5}, {8, 4}, {31, 7}, {32, 8}, {33, 9}, {128, 4}, {129, 5}, {255, 3}, {256, 16}, {300, 13}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static size_t up(size_t n, size_t m) { return (n + m - 1) / m * m; }

START_TEST(bijection) {
  const mx_layout_row *l = mx_layout_row_at(_i);
  for (size_t s = 0; s < N_SHAPES; s++) {
    const size_t rows = shapes[s][0], kb = shapes[s][1], size = mx_layout_size((mx_layout)_i, rows, kb);
    const size_t all_rows = up(rows, l->row_pad), all_k = up(kb, l->k_pad);
    ck_assert_uint_eq(size, all_rows * all_k);
    uint8_t *seen = calloc(size, 1);
    for (size_t r = 0; r < all_rows; r++)
      for (size_t k = 0; k < all_k; k++) {
        const size_t at = mx_layout_index((mx_layout)_i, rows, kb, r, k);
        ck_assert_uint_lt(at, size);
        ck_assert_uint_eq(seen[at], 0);
        seen[at] = 1;
      }
    free(seen);
  }
}
END_TEST

START_TEST(round_trip) {
  for (size_t s = 0; s < N_SHAPES; s++) {
    const size_t rows = shapes[s][0], kb = shapes[s][1], size = mx_layout_size((mx_layout)_i, rows, kb);
    uint8_t *in = malloc(rows * kb), *packed = malloc(size), *back = malloc(rows * kb);
    for (size_t i = 0; i < rows * kb; i++) in[i] = (uint8_t)(i * 7 % 251 + 1);
    mx_layout_pack(packed, (mx_layout)_i, in, rows, kb, 0xEE);
    mx_layout_unpack(back, (mx_layout)_i, packed, rows, kb);
    ck_assert_mem_eq(in, back, rows * kb);
    size_t n_pad = 0; /* 0xEE = 238 is also among the values, so count both */
    for (size_t i = 0; i < size; i++) n_pad += packed[i] == 0xEE;
    for (size_t i = 0; i < rows * kb; i++) n_pad -= in[i] == 0xEE;
    ck_assert_uint_eq(n_pad, size - rows * kb);
    free(in);
    free(packed);
    free(back);
  }
}
END_TEST

/* Computed by hand from the formulas of the sources named in formats/layouts.def, for [256][8] scales. */
START_TEST(known_indices) {
  static const struct {
    mx_layout layout;
    size_t r, k, at;
  } known[] = {
      {MX_LAYOUT_ROW, 3, 5, 29},           {MX_LAYOUT_NV128X4, 0, 0, 0},        {MX_LAYOUT_NV128X4, 0, 3, 3},
      {MX_LAYOUT_NV128X4, 1, 0, 16},       {MX_LAYOUT_NV128X4, 31, 0, 496},     {MX_LAYOUT_NV128X4, 32, 0, 4},
      {MX_LAYOUT_NV128X4, 64, 1, 9},       {MX_LAYOUT_NV128X4, 127, 3, 511},    {MX_LAYOUT_NV128X4, 0, 4, 512},
      {MX_LAYOUT_NV128X4, 128, 0, 1024},   {MX_LAYOUT_NV128X4, 255, 7, 2047},   {MX_LAYOUT_NV8X4, 7, 3, 31},
      {MX_LAYOUT_NV8X4, 0, 4, 32},         {MX_LAYOUT_NV8X4, 8, 0, 64},         {MX_LAYOUT_AMD_SHUFFLE, 0, 1, 64},
      {MX_LAYOUT_AMD_SHUFFLE, 1, 0, 4},    {MX_LAYOUT_AMD_SHUFFLE, 16, 0, 1},   {MX_LAYOUT_AMD_SHUFFLE, 0, 4, 2},
      {MX_LAYOUT_AMD_SHUFFLE, 31, 7, 255}, {MX_LAYOUT_AMD_SHUFFLE, 32, 0, 256}, {MX_LAYOUT_AMD_SHUFFLE_256, 33, 5, 256 + 64 + 4 + 2},
      {MX_LAYOUT_COLUMN_MAJOR, 3, 0, 3},   {MX_LAYOUT_COLUMN_MAJOR, 0, 1, 256}, {MX_LAYOUT_COLUMN_MAJOR, 255, 7, 2047},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    ck_assert_uint_eq(mx_layout_index(known[i].layout, 256, 8, known[i].r, known[i].k), known[i].at);
  ck_assert_uint_eq(mx_layout_index(MX_LAYOUT_AMD_SHUFFLE, 256, 16, 0, 8), 256);
  ck_assert_uint_eq(mx_layout_index(MX_LAYOUT_AMD_SHUFFLE, 256, 16, 32, 0), 512);
}
END_TEST

/* AITER e8m0_shuffle: view(M/32, 2, 16, K/8, 2, 4), permute(0, 3, 5, 2, 4, 1): the six loops of the permuted array, in sequence. */
START_TEST(amd_shuffle_is_aiter_permutation) {
  const size_t rows = 64, kb = 24;
  size_t at = 0;
  for (size_t a = 0; a < rows / 32; a++)
    for (size_t d = 0; d < kb / 8; d++)
      for (size_t f = 0; f < 4; f++)
        for (size_t c = 0; c < 16; c++)
          for (size_t e = 0; e < 2; e++)
            for (size_t b = 0; b < 2; b++)
              ck_assert_uint_eq(mx_layout_index(MX_LAYOUT_AMD_SHUFFLE, rows, kb, a * 32 + b * 16 + c, d * 8 + e * 4 + f), at++);
}
END_TEST

START_TEST(names_and_overflow) {
  ck_assert_str_eq(mx_layout_name((mx_layout)_i), mx_layout_row_at(_i)->name);
  ck_assert_int_eq(mx_layout_find(mx_layout_name((mx_layout)_i)), _i);
  ck_assert_int_eq(mx_layout_find("nv128x5"), -1);
  ck_assert_ptr_null(mx_layout_row_at(MX_LAYOUT_COUNT));
  ck_assert_uint_eq(mx_layout_size((mx_layout)_i, SIZE_MAX, SIZE_MAX), SIZE_MAX);
  ck_assert_uint_eq(mx_layout_size((mx_layout)_i, SIZE_MAX / 2, 16), SIZE_MAX);
  ck_assert_uint_eq(mx_layout_size((mx_layout)_i, 0, 5), 0);
}
END_TEST

START_TEST(nibbles) {
  const uint8_t codes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  static const uint8_t want[MX_NIBBLE_COUNT][4] = {
      {0x21, 0x43, 0x65, 0x87}, {0x12, 0x34, 0x56, 0x78}, {0x31, 0x42, 0x75, 0x86}}; /* blocks of 4 */
  uint8_t packed[5], back[9];
  mx_pack4(packed, codes, 8, _i, 4);
  ck_assert_mem_eq(packed, want[_i], 4);
  for (size_t n = 0; n <= 8; n++) {
    packed[(n + 1) / 2] = 0xAA;
    mx_pack4(packed, codes, n, _i, 4);
    ck_assert_uint_eq(packed[(n + 1) / 2], 0xAA);
    back[n] = 0xAA;
    mx_unpack4(back, packed, n, _i, 4);
    ck_assert_uint_eq(back[n], 0xAA);
    ck_assert(!n || !memcmp(back, codes, n));
  }
}
END_TEST

START_TEST(dense_six_bits) {
  const uint8_t four[4] = {0x3F, 0, 0x2A, 0x15}, want[3] = {0x3F, 0xA0, 0x56};
  uint8_t packed[9], back[12], codes[11];
  mx_pack6(packed, four, 4);
  ck_assert_mem_eq(packed, want, 3);
  for (size_t i = 0; i < 11; i++) codes[i] = (uint8_t)(i * 37 % 64);
  for (size_t n = 0; n <= 11; n++) {
    const size_t bytes = (6 * n + 7) / 8;
    if (bytes < 9) packed[bytes] = 0xAA;
    mx_pack6(packed, codes, n);
    if (bytes < 9) ck_assert_uint_eq(packed[bytes], 0xAA);
    back[n] = 0xAA;
    mx_unpack6(back, packed, n);
    ck_assert_uint_eq(back[n], 0xAA);
    ck_assert(!n || !memcmp(back, codes, n));
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("layout");
  TCase *t = tcase_create("layout");
  tcase_add_loop_test(t, bijection, 0, MX_LAYOUT_COUNT);
  tcase_add_loop_test(t, round_trip, 0, MX_LAYOUT_COUNT);
  tcase_add_loop_test(t, names_and_overflow, 0, MX_LAYOUT_COUNT);
  tcase_add_test(t, known_indices);
  tcase_add_test(t, amd_shuffle_is_aiter_permutation);
  tcase_add_loop_test(t, nibbles, 0, MX_NIBBLE_COUNT);
  tcase_add_test(t, dense_six_bits);
  suite_add_tcase(s, t);
  return run_suite(s);
}
