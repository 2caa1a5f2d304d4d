/* Tests faults: their text is parsed and printed again, worked examples are typed by hand, and a kernel with a fault is identified with a
 * fault that gives every byte. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/run.h"
#include "mxgold/mxgold.h"

enum { ROWS = 64, COLS = 128 };

static void fill(float *x, uint32_t seed) {
  for (size_t i = 0; i < ROWS * COLS; i++) {
    const uint32_t u = mx_random(seed, MX_STREAM_DATA, i), v = mx_random(seed + 1, MX_STREAM_DATA, i / 16); /* blocks of different magnitudes */
    x[i] = ((float)(u >> 8) * 0x1p-23f - 1) * (float)(1 << (v >> 29));
  }
}

START_TEST(text_there_and_back) {
  static const char *const texts[] = {"all: input <- relu",
                                      "rows%32=31: scale store <- row -1",
                                      "elements%16=0,3,6-8: code <- negate",
                                      "scale=126-: scale rounding <- plus 1",
                                      "columns=0-127: rotation <- hadamard 32",
                                      "tail: block amax <- at least 1",
                                      "all: block amax <- times 0.9",
                                      "all: tensor scale <- value 0.0123",
                                      "blocks%2=1: scale store <- block xor 3",
                                      "all: block amax <- percentile 50",
                                      "all: divisor <- as ue5m3",
                                      "all: divisor <- as number e4m3",
                                      "all: element rounding <- bits behind the point -1",
                                      "all: input <- scaled format e5m2",
                                      "all: layout <- scales twice in nv128x4",
                                      "all: layout <- codes by bits c0,c2,c1,r0",
                                      "all: layout <- scales tiled by bits c0,c1,r5,r6,r0,r1,r2,r3,r4",
                                      "all: layout <- codes by bits c0,c1,c2,c3^r0,c4^r1",
                                      "rows=8-: layout <- codes by bits c0^c2^r0^r7,c1,c1^c2,r1,r0,r2^r6,r3,r4,r5",
                                      "all: layout <- scales by bits c0^r0,c1,r0,r1,r2",
                                      "all: code <- bits 1203",
                                      "elements%2=1: code <- bits 76543210",
                                      "all: code <- table 0123456f8badcefb",
                                      "all: element rounding <- random below philox1 4294967295:index/4 folded",
                                      "all: element rounding <- random above curand4 5:inblock split16",
                                      "all: element rounding <- random carry of half pcg 7^tile16/128 low24",
                                      "all: element rounding <- random centred hash-9e3779b1-15-85ebca77-13 4294967295+tile32768/128 split4",
                                      "tail: divisor <- rule nearest",
                                      "blocks%2=1 and rows%16=1-15: block amax <- row -1",
                                      "negative and rows=16-: code <- value 0",
                                      "rows=16- and rows%2=1: code <- abs"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    mx_fault f;
    mx_error err;
    char again[MX_FAULT_TEXT];
    ck_assert_msg(!mx_fault_parse(&f, texts[i], &err), "%s: %s", texts[i], err.text);
    mx_fault_print(again, sizeof again, &f);
    ck_assert_str_eq(again, texts[i]);
  }
}
END_TEST

/* The order of the bits of an exclusive or, and bits that stay, say nothing. A list that no text says is refused. */
START_TEST(lists_of_bits) {
  static const char *const alike[] = {"c0,c1,c2,c3^r0,c4^r1", "c0,c1,c2,r0^c3,c4^r1", "c0,c1,c2,c3^r0,c4^r1,r0", "c0,c1,c2,c3^r0,r1^c4,r0,r1"};
  static const float x[32] = {6, -1};
  char text[MX_FAULT_TEXT], again[MX_FAULT_TEXT];
  mx_spec spec = {0};
  mx_tensor t;
  mx_fault f;
  for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
    snprintf(text, sizeof text, "all: layout <- codes by bits %s", alike[i]);
    ck_assert_int_eq(mx_fault_parse(&f, text, NULL), MX_OK);
    mx_fault_print(again, sizeof again, &f);
    ck_assert_msg(!strcmp(again, "all: layout <- codes by bits c0,c1,c2,c3^r0,c4^r1"), "%s: %s", alike[i], again);
  }
  ck_assert_int_eq(mx_tensor_alloc(&t, 1, 32, &spec), MX_OK);
  f.list[4] = f.list[3];
  ck_assert_int_eq(mx_quantize_faulty(&t, x, 1, 32, 32, &spec, &f, 1, NULL), MX_ERR_ARG);
  f = (mx_fault){.op = MX_FAULT_LAYOUT_CODES_BITS};
  ck_assert_int_eq(mx_quantize_faulty(&t, x, 1, 32, 32, &spec, &f, 1, NULL), MX_ERR_ARG);
  mx_tensor_free(&t);
}
END_TEST

/* A table is one of codes of 4 bits, an order of bits one of as many as a code has. */
START_TEST(lists_of_codes) {
  static const struct {
    const char *preset, *fault;
  } wrong[] = {{"ocp-mxfp8-e4m3", "all: code <- table 0123456789abcdef"},
               {"ocp-mxfp8-e4m3", "all: code <- bits 1203"},
               {"ocp-mxfp4", "all: code <- bits 76543210"},
               {"ocp-mxfp6-e3m2", "all: code <- bits 3210"}};
  static const float x[32] = {6, -1};
  mx_error err;
  mx_fault f;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    mx_spec spec;
    mx_tensor t;
    ck_assert_int_eq(mx_preset_find(&spec, wrong[i].preset, NULL), MX_OK);
    ck_assert_int_eq(mx_tensor_alloc(&t, 1, 32, &spec), MX_OK);
    ck_assert_int_eq(mx_fault_parse(&f, wrong[i].fault, NULL), MX_OK);
    ck_assert_msg(mx_quantize_faulty(&t, x, 1, 32, 32, &spec, &f, 1, &err) == MX_ERR_CONFLICT, "%s", wrong[i].fault);
    ck_assert_msg(*err.text && !strchr(err.text, '\n'), "%s", err.text);
    f.list[2] = 16;
    ck_assert_msg(mx_quantize_faulty(&t, x, 1, 32, 32, &spec, &f, 1, &err) == MX_ERR_ARG, "%s", wrong[i].fault);
    mx_tensor_free(&t);
  }
}
END_TEST

START_TEST(text_that_is_wrong) {
  static const char *const texts[] = {"",
                                      "input <- relu",
                                      "all: input relu",
                                      "all: output <- relu",
                                      "all: input <- softmax",
                                      "all: input <- relu 3",
                                      "all: input <- clip",
                                      "all: input <- clip 1e999",
                                      "all: divisor <- as e9m9",
                                      "rows: input <- relu",
                                      "rows%0=0: input <- relu",
                                      "rows%129=0: input <- relu",
                                      "rows%4=4: input <- relu",
                                      "rows=7-3: input <- relu",
                                      "rows=1,2: input <- relu",
                                      "all: layout <- codes by bits c0^c1,c1^c2,c0^c2",
                                      "tail=3: input <- relu",
                                      "rows=3 and: input <- relu",
                                      "and rows=3: input <- relu",
                                      "rows=3 and tail and blocks=1: input <- relu",
                                      "rows=3 and all: input <- relu",
                                      "all and rows=3: input <- relu"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    mx_fault f = {.op = 77};
    mx_error err;
    ck_assert_msg(mx_fault_parse(&f, texts[i], &err) == MX_ERR_ARG, "%s", texts[i]);
    ck_assert(*err.text);
    ck_assert_int_eq(f.op, 77);
  }
}
END_TEST

/* A matrix of 2 x 32 under ocp-mxfp4: row 0 holds 6, -1 and zeros, row 1 holds 3, -1 and zeros. Scales: 2^0 and 2^-1, bytes 127 and 126. */
static void worked(mx_tensor *t, const char *fault) {
  static float x[64];
  memset(x, 0, sizeof x);
  x[0] = 6, x[1] = -1, x[32] = 3, x[33] = -1;
  mx_spec spec = {0};
  mx_fault f;
  mx_error err;
  ck_assert_int_eq(mx_tensor_alloc(t, 2, 32, &spec), MX_OK);
  ck_assert_msg(!mx_fault_parse(&f, fault, &err), "%s", err.text);
  ck_assert_msg(!mx_quantize_faulty(t, x, 2, 32, 32, &spec, &f, 1, &err), "%s", err.text);
}

START_TEST(worked_by_hand) {
  static const struct {
    const char *fault;
    uint8_t scale[2], code[2]; /* the scales; the first byte of codes of each row: -1 in the upper half, 6 or 3 in the lower one */
  } rows[] = {{"rows=9: code <- abs", {127, 126}, {0xA7, 0xC7}}, /* nowhere: 6 is 7, -1 is A; 3 / 0.5 = 6 is 7, -2 is C */
              {"all: code <- abs", {127, 126}, {0x27, 0x47}},
              {"all: scale store <- plus 1", {128, 127}, {0xA7, 0xC7}},
              {"all: scale rounding <- plus 1", {128, 127}, {0x95, 0xA5}}, /* 6 / 2 = 3 is 5, -0.5 is 9; 3 / 1 is 5, -1 is A */
              {"rows%2=1: scale store <- row -1", {127, 127}, {0xA7, 0xC7}},
              {"all: input <- relu", {127, 126}, {0x07, 0x07}},
              {"all: input <- negate", {127, 126}, {0x2F, 0x4F}},
              {"all: input <- clip 1", {125, 125}, {0xE6, 0xE6}},      /* 1 / 0.25 = 4 is 6, -4 is E */
              {"all: block amax <- rank 2", {125, 125}, {0xE7, 0xE7}}, /* of 1: 24 and 12 saturate */
              {"all: block amax <- no abs", {127, 126}, {0xA7, 0xC7}},
              {"all: clamp <- before 2", {127, 126}, {0xA4, 0xC6}}, /* 2 / 1 is 4; 2 / 0.5 = 4 is 6 */
              {"all: divisor <- skip", {127, 126}, {0xA7, 0xA5}},
              {"negative: code <- value 0", {127, 126}, {0x07, 0x07}},
              {"all: code <- swap pairs", {127, 126}, {0x7A, 0x7C}},
              {"all: code <- sign of pair", {127, 126}, {0x2F, 0x4F}},
              {"all: scale store <- row xor 1", {126, 127}, {0xA7, 0xC7}},
              {"all: scale store <- row xor 2", {127, 126}, {0xA7, 0xC7}}, /* there is no row 2 */
              {"all: divisor <- row xor 1", {127, 126}, {0xC7, 0xA5}},     /* 12 saturates, -2; 3 / 1, -1 */
              {"all: code <- column xor 1", {127, 126}, {0x7A, 0x7C}},
              {"all: divisor <- as e4m3", {127, 126}, {0x00, 0x80}}, /* byte 127 is NaN and gives 0; 126 is 448 */
              {"all: divisor <- as number e4m3", {127, 126}, {0x80, 0x80}},
              {"all: element rounding <- as e1m2", {127, 126}, {0xC7, 0xF7}}, /* steps of .25: 1 is 4; 6 and 2 saturate at 1.75 */
              {"all: layout <- row xor 1", {126, 127}, {0xC7, 0xA7}},
              {"rows=1: layout <- row -1", {127, 127}, {0xA7, 0xA7}},
              {"negative and rows=1: code <- value 0", {127, 126}, {0xA7, 0x07}},
              {"rows=1 and negative: code <- value 0", {127, 126}, {0xA7, 0x07}},
              {"rows=0 and rows=1: code <- abs", {127, 126}, {0xA7, 0xC7}},             /* no row is both */
              {"elements=1- and rows=1: block amax <- only", {127, 125}, {0xA7, 0xE7}}, /* of 1: 12 saturates, -4 is E */
              {"blocks=0 and rows=1: scale store <- row -1", {127, 127}, {0xA7, 0xC7}},
              {"blocks=1 and rows=1: scale store <- row -1", {127, 126}, {0xA7, 0xC7}}}; /* there is no block 1 */
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mx_tensor t;
    worked(&t, rows[i].fault);
    for (size_t r = 0; r < 2; r++) {
      ck_assert_msg(t.scales[r] == rows[i].scale[r], "%s: scale %u", rows[i].fault, t.scales[r]);
      ck_assert_msg(t.codes[r * t.code_stride] == rows[i].code[r], "%s: codes %02X", rows[i].fault, t.codes[r * t.code_stride]);
    }
    mx_tensor_free(&t);
  }
}
END_TEST

/* Blocks of 6, 3 and of 1, 1 under nvfp4-plain: T = 6 / 2688, 1 / 448. The first scale is 448 (126) and its elements are 6 (7) and 3 (5);
 * the second is 448 / 6 = 74.7, as E4M3 72 (105), and its elements 448 / 72 = 6.2 are 6. */
START_TEST(worked_tensor_scale) {
  static const struct {
    const char *fault;
    uint8_t scale[2], code[2];
    float stored; /* 0: 6 / 2688 */
  } rows[] = {{"rows=9: code <- abs", {126, 105}, {0x57, 0x77}, 0},
              {"all: tensor scale <- stored reciprocal", {126, 105}, {0x57, 0x77}, 0x1.BFFFFEp8f}, /* a step below 448 */
              {"all: tensor scale <- stored divisor", {126, 105}, {0x57, 0x77}, 448},
              {"all: tensor scale <- stored amax", {126, 105}, {0x57, 0x77}, 6},
              {"all: tensor scale <- value 1", {56, 35}, {0x57, 0x77}, 0}, /* scales 1 and 1/6, as E4M3 0.171875: 1 / 0.171875 = 5.8 is 6 */
              {"all: tensor scale <- divisor", {126, 105}, {0x57, 0x77}, 448},
              {"all: tensor scale <- times 0.5", {126, 113}, {0x77, 0x77}, 0},           /* 896 saturates: 12, 6; 149.3, as E4M3 144: 6.2 */
              {"all: scale rounding <- better of 6 and 4", {126, 110}, {0x57, 0x66}, 0}, /* 448 saturates; 448 / 4 = 112 makes 1 a 4 */
              {"all: scale rounding <- worse of 6 and 4", {126, 105}, {0x57, 0x77}, 0},
              {"all: scale store <- block xor 1", {105, 126}, {0x57, 0x77}, 0},
              {"all: divisor <- block xor 1", {126, 105}, {0x77, 0x22}, 0}}; /* 6 * 448 / 72 saturates, 18.7; 448 / 448 = 1 is 2 */
  float x[32] = {6, 3};
  x[16] = x[17] = 1;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mx_spec spec;
    mx_fault f;
    mx_tensor t;
    ck_assert_int_eq(mx_preset_find(&spec, "nvfp4-plain", NULL), MX_OK);
    ck_assert_int_eq(mx_fault_parse(&f, rows[i].fault, NULL), MX_OK);
    ck_assert_int_eq(mx_tensor_alloc(&t, 1, 32, &spec), MX_OK);
    ck_assert_int_eq(mx_quantize_faulty(&t, x, 1, 32, 32, &spec, &f, 1, NULL), MX_OK);
    ck_assert_msg(t.tensor_scale == (rows[i].stored != 0 ? rows[i].stored : 6.0f / 2688.0f), "%s: %.9g", rows[i].fault, (double)t.tensor_scale);
    for (size_t k = 0; k < 2; k++) {
      ck_assert_msg(t.scales[k] == rows[i].scale[k], "%s: scale %zu is %u", rows[i].fault, k, t.scales[k]);
      ck_assert_msg(t.codes[8 * k] == rows[i].code[k], "%s: codes %zu are %02X", rows[i].fault, k, t.codes[8 * k]);
    }
    mx_tensor_free(&t);
  }
}
END_TEST

/* Column 0 of 64 x 64 zeros has a 6 in row 0 and a 3 in row 32: scales 2^0 and 2^-1, bytes 127 and 126, of its two blocks. Transposed back they are the
 * first of two rows of 64 scales, as they are they stand beside each other. */
START_TEST(blocks_down_the_columns) {
  static const char *const texts[] = {"all: layout <- blocks down", "all: layout <- blocks down, scales across"};
  static float x[64 * 64];
  x[0] = 6, x[32 * 64] = 3;
  for (size_t i = 0; i < 2; i++) {
    mx_spec spec = {0};
    mx_fault f[2];
    mx_tensor t;
    ck_assert_int_eq(mx_fault_parse(&f[0], texts[i], NULL), MX_OK);
    ck_assert_int_eq(mx_fault_parse(&f[1], "all: code <- negate", NULL), MX_OK);
    ck_assert_int_eq(mx_tensor_alloc(&t, 64, 64, &spec), MX_OK);
    ck_assert_int_eq(mx_quantize_faulty(&t, x, 64, 64, 64, &spec, f, 2, NULL), MX_OK);
    ck_assert_uint_eq(t.scales[0], 127);
    ck_assert_uint_eq(t.scales[1], i ? 126 : 0);
    ck_assert_uint_eq(t.scales[64], i ? 0 : 126);
    ck_assert_uint_eq(t.codes[0], 0x8F);
    ck_assert_uint_eq(t.codes[32 * t.code_stride], 0x8F);
    mx_tensor_free(&t);
    ck_assert_int_eq(mx_tensor_alloc(&t, 48, 64, &spec), MX_OK); /* 64 x 2 scales are not 48 x 2 */
    ck_assert_int_eq(mx_quantize_faulty(&t, x, 48, 64, 64, &spec, f, 2, NULL), MX_ERR_CONFLICT);
    mx_tensor_free(&t);
  }
}
END_TEST

/* Without a fault in its region, every preset that runs with faults gives what mx_quantize() gives. */
START_TEST(no_fault) {
  static float x[ROWS * COLS];
  fill(x, 1);
  mx_fault nowhere;
  ck_assert_int_eq(mx_fault_parse(&nowhere, "rows=100000: code <- negate", NULL), MX_OK);
  size_t ran = 0;
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec spec;
    mx_tensor a = {0}, b = {0};
    if (mx_preset_at(i)->alias_of || mx_preset_find(&spec, mx_preset_at(i)->name, NULL)) continue;
    ck_assert_int_eq(mx_tensor_alloc(&a, ROWS, COLS, &spec), MX_OK);
    ck_assert_int_eq(mx_tensor_alloc(&b, ROWS, COLS, &spec), MX_OK);
    const mx_status status = mx_quantize_faulty(&a, x, ROWS, COLS, COLS, &spec, &nowhere, 1, NULL);
    if (!status) {
      ck_assert_int_eq(mx_quantize(&b, x, ROWS, COLS, COLS, &spec, NULL, NULL), MX_OK);
      ck_assert_msg(!memcmp(a.codes, b.codes, a.rows * a.code_stride), "%s: codes", mx_preset_at(i)->name);
      ck_assert_msg(!memcmp(a.scales, b.scales, a.scale_rows * a.scale_cols * a.scale_bytes), "%s: scales", mx_preset_at(i)->name);
      ck_assert_msg(!memcmp(&a.tensor_scale, &b.tensor_scale, sizeof a.tensor_scale), "%s: tensor scale", mx_preset_at(i)->name);
      ran++;
    } else {
      ck_assert_int_eq(status, MX_ERR_CONFLICT);
    }
    mx_tensor_free(&a);
    mx_tensor_free(&b);
  }
  ck_assert_uint_ge(ran, 120);
}
END_TEST

enum { SHARE = 4 }; /* make check runs one kernel in so many, CHECK_ALL all of them */

/* The fault that is found for a kernel gives every byte, also for another input. */
START_TEST(found_and_predicts) {
  static const struct {
    const char *preset, *key, *faults[MX_FAULTS];
    int is_whole; /* numbers up to 24 and a 40: many quotients are ties, which the rounding of 24 / 6 / T breaks */
  } kernels[] = {{"ocp-mxfp4", NULL, {"rows%4=3: scale store <- row -1"}},
                 {"ocp-mxfp4", NULL, {"all: code <- sign of pair"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: block amax <- blocks 2"}},
                 {"nvfp4-plain", NULL, {"all: input <- relu"}},
                 {"ocp-mxfp4", NULL, {"all: divisor <- row -1"}},
                 {"ocp-mxfp4", NULL, {"blocks%2=1: divisor <- order -6"}},
                 {"nvfp4-plain", NULL, {"all: divisor <- before rounding"}, 1},
                 {"nvfp4-plain", "had.size=16", {"all: tensor amax <- as given", "elements%16=1,5,6: code <- negate"}},
                 {"ocp-mxfp4", NULL, {"all: layout <- blocks down"}},
                 {"nvfp4-plain", NULL, {"all: block amax <- with next 2"}},
                 {"ocp-mxfp4", NULL, {"all: rotation <- sequency 16"}},
                 {"nvfp4-plain", NULL, {"all: tensor scale <- value 0.05"}},
                 {"nvfp4-plain", NULL, {"all: scale rounding <- worse of 6 and 4"}},
                 {"mxfp4-ue5m3", NULL, {"all: divisor <- as number e4m3"}},
                 {"ocp-mxfp4", NULL, {"all: element rounding <- up from 4.5"}},
                 {"ocp-mxint8", NULL, {"all: element rounding <- modulo"}},
                 {"nvfp4-plain", NULL, {"all: divisor <- scale reciprocal bits 4"}},
                 {"ocp-mxfp4", NULL, {"all: scale store <- rule up"}},
                 {"ocp-mxfp8-e5m2", NULL, {"all: element rounding <- float16 then cut"}},
                 {"nvfp4-plain", NULL, {"all: tensor scale <- last of rows 1"}},
                 {"nvfp4-plain", NULL, {"all: tensor scale <- bfloat16"}},
                 {"nvfp4-plain", NULL, {"all: tensor scale <- target 1536", "all: scale rounding <- better of 6 and 4 in units"}},
                 {"nvfp4-plain", NULL, {"all: rotation <- hadamard 16", "all: tensor amax <- as given"}},
                 {"nvfp4-plain", NULL, {"all: block amax <- no abs", "all: scale rounding <- toward zero"}},
                 {"ocp-mxfp4", "scale.rule=value scale.round=rna scale.max=pow2", {"all: code <- reverse 8"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: element rounding <- as e5m2"}},
                 {"ocp-mxint8", NULL, {"all: scale store <- plus -6", "all: element rounding <- toward zero"}},
                 {"nvfp4-plain", NULL, {"all: layout <- scales by bits r2,r3,r4,r5,r0,r1"}},
                 {"ocp-mxfp4", NULL, {"all: element rounding <- away from zero", "all: element rounding <- modulo"}},
                 {"nvfp4-plain", NULL, {"all: layout <- scales tiled by bits c0,c1,r2,r3,r4,r5,r0,r1"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: layout <- codes by bits c0,c1,c2,c4,c3"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: scale store <- first of rows 4"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: divisor <- down"}},
                 {"ocp-mxint8", NULL, {"all: element rounding <- half added"}},
                 {"ocp-mxfp4", NULL, {"all: scale rounding <- log2 bfloat16"}},
                 {"ocp-mxfp4", NULL, {"all: block amax <- running down 4"}},
                 {"nvfp4-plain", NULL, {"elements%2=1: block amax <- no abs"}},
                 {"nvfp4-plain", NULL, {"all: divisor <- lanes down of 8"}},
                 {"nvfp4-plain", NULL, {"all: clamp <- bfloat16"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: element rounding <- float16 cut"}},
                 {"nvfp4-plain", NULL, {"all: rotation <- bfloat16 steps 16"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: layout <- scales written over zeros at pitch 32"}},
                 {"ocp-mxfp4", NULL, {"all: layout <- scales read at pitch 32"}},
                 {"ocp-mxfp4", NULL, {"all: element rounding <- flush rounded"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: element rounding <- saturated, carry lost"}},
                 {"nvfp4-plain", NULL, {"all: divisor <- reciprocal estimate 8"}},
                 {"ocp-mxfp4", NULL, {"all: element rounding <- subnormal without leading one"}},
                 {"ocp-mxfp4", NULL, {"all: element rounding <- up beyond 3", "rows=60-: layout <- zero"}},
                 {"ocp-mxfp4", NULL, {"all: code <- sign smeared"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: element rounding <- random carry fmix 42^column 24"}},
                 {"ocp-mxint8", NULL, {"all: element rounding <- random floor lcg 7:index low16"}},
                 {"nvfp4-plain", NULL, {"all: element rounding <- random then nearest philox 1234:index/2 32"}},
                 {"nvfp4-plain", NULL, {"all: element rounding <- random below hash-9e3779b1-15-85ebca77-15 12345+index/8 split4"}},
                 {"ocp-mxfp4", NULL, {"all: element rounding <- random centred of least step fmix 1234^index 24"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: element rounding <- random centred hash-16-045d9f3b-16-045d9f3b-16 42+row 32"}},
                 {"ocp-mxfp4", NULL, {"all: element rounding <- random carry pcg 7+index 16", "all: code <- +0 for -0"}},
                 {"nvfp4-plain", NULL, {"all: code <- column xor 6"}},
                 {"nvfp4-plain", NULL, {"elements%4=0-2: block amax <- only"}},
                 {"nvfp4-plain", NULL, {"all: tensor scale <- rows 1", "all: scale rounding <- toward zero"}},
                 {"ocp-mxfp4", NULL, {"memory%64=63: input <- zero"}},
                 {"nvfp4-plain", NULL, {"all: block amax <- rotated 16"}},
                 {"ocp-mxfp4", NULL, {"all: code <- sign xor 7"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: block amax <- of transposed tile"}},
                 {"ocp-mxfp4", NULL, {"all: divisor <- before rounding"}},
                 {"nvfp4-plain", NULL, {"all: layout <- scales written over zeros at pitch 4"}},
                 {"nvfp4-plain", NULL, {"all: tensor scale <- used bfloat16"}},
                 {"nvfp4-plain", NULL, {"all: scale store <- reciprocal"}},
                 {"ocp-mxfp4", NULL, {"all: block amax <- row modulo 16"}},
                 {"ocp-mxfp4", NULL, {"rows%16=1-15 and blocks%2=1: block amax <- row -1"}},
                 {"nvfp4-plain", NULL, {"blocks%4=3: clamp <- column -16"}},
                 {"ocp-mxfp8-e4m3", NULL, {"positive and rows%4=1: element rounding <- away from zero"}},
                 {"nvfp4-plain", NULL, {"all: scale store <- block modulo 2"}},
                 {"ocp-mxfp8-e5m2", NULL, {"all: divisor <- row modulo 8"}},
                 {"ocp-mxfp4", NULL, {"rows=16- and elements=16-: divisor <- block -1"}},
                 {"nvfp4-plain", NULL, {"all: layout <- codes by bits c0,c1,c2,c3,c4^r0,c5^r1,c6^r2"}},
                 {"ocp-mxfp8-e4m3", NULL, {"all: layout <- codes by bits c0,c1,c2,c3^r1,c4^r2,r0^r3"}},
                 {"ocp-mxfp4", NULL, {"all: block amax <- rows 2", "all: layout <- codes by bits c0,c1,c2,c3^r0,c4^r1"}},
                 {"ocp-mxfp4", NULL, {"all: layout <- scales by bits c0^r3,c1^r4,r0,r1,r2"}},
                 {"ocp-mxfp4", NULL, {"all: block amax <- rows 2", "all: code <- table 01234567fedcba98"}},
                 {"ocp-mxfp4", NULL, {"all: code <- bits 1203"}},
                 {"ocp-mxfp8-e5m2", NULL, {"elements%2=1: code <- bits 76543210"}},
                 {"nvfp4-plain", NULL, {"all: code <- table 0123465789abcedf"}}};
  static float x[2][ROWS * COLS];
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    if (!run_whole() && i % SHARE) continue;
    for (int k = 0; k < 2; k++) {
      fill(x[k], k ? 7 : 1);
      for (size_t c = 0; kernels[i].is_whole && c < ROWS * COLS; c++) x[k][c] = c ? fmodf(truncf(x[k][c] * 64), 25) : 40;
    }
    mx_spec spec;
    mx_fault f[MX_FAULTS];
    mx_tensor t[2], again;
    mx_identity id;
    static uint8_t codes[ROWS * COLS];
    size_t n = 0;
    ck_assert_int_eq(mx_preset_find(&spec, kernels[i].preset, NULL), MX_OK);
    if (kernels[i].key) ck_assert_int_eq(mx_spec_parse(&spec, kernels[i].key, NULL), MX_OK);
    for (; n < MX_FAULTS && kernels[i].faults[n]; n++) ck_assert_int_eq(mx_fault_parse(&f[n], kernels[i].faults[n], NULL), MX_OK);
    for (int k = 0; k < 2; k++) {
      ck_assert_int_eq(mx_tensor_alloc(&t[k], ROWS, COLS, &spec), MX_OK);
      ck_assert_int_eq(mx_quantize_faulty(&t[k], x[k], ROWS, COLS, COLS, &spec, f, n, NULL), MX_OK);
    }
    for (size_t k = 0; k < ROWS * COLS; k++) codes[k] = (uint8_t)mx_code_at(&t[0], &spec, k / COLS, k % COLS);
    const mx_sample s = {.rows = ROWS,
                         .cols = COLS,
                         .ld = COLS,
                         .x = x[0],
                         .codes = codes,
                         .scales = t[0].scales,
                         .scale_rows = t[0].scale_rows,
                         .scale_cols = t[0].scale_cols,
                         .scale_bytes = 1,
                         .has_tensor_scale = t[0].has_tensor_scale,
                         .tensor_scale = t[0].tensor_scale};
    ck_assert_int_eq(mx_identify(&id, &s, 1, &(mx_identify_options){.seconds = 20, .no_undecided = 1}, NULL), MX_OK);

    ck_assert_msg(id.bug.n_faults && !id.exact && id.grade == MX_GRADE_CONFIRMED, "%s over %s: %s", kernels[i].faults[0], kernels[i].preset,
                  id.bug.name ? id.bug.name : "none");
    ck_assert_int_eq(mx_tensor_alloc(&again, ROWS, COLS, &id.bug.spec), MX_OK);
    ck_assert_int_eq(mx_quantize_faulty(&again, x[1], ROWS, COLS, COLS, &id.bug.spec, id.bug.fault, id.bug.n_faults, NULL), MX_OK);
    ck_assert(!memcmp(again.codes, t[1].codes, again.rows * again.code_stride));
    ck_assert(!memcmp(again.scales, t[1].scales, again.scale_rows * again.scale_cols));
    mx_tensor_free(&again);
    mx_tensor_free(&t[0]);
    mx_tensor_free(&t[1]);
  }
}
END_TEST

/* Identifies a kernel that is the preset with a fault, from its output for x, [rows][cols]. */
static void identify_kernel_of(mx_identity *id, const float *x, size_t rows, size_t cols, const char *preset, const char *fault,
                               int no_undecided) {
  uint8_t *codes = malloc(rows * cols);
  ck_assert_ptr_nonnull(codes);
  mx_spec spec;
  mx_fault f;
  mx_tensor t;
  ck_assert_int_eq(mx_preset_find(&spec, preset, NULL), MX_OK);
  ck_assert_int_eq(mx_fault_parse(&f, fault, NULL), MX_OK);
  ck_assert_int_eq(mx_tensor_alloc(&t, rows, cols, &spec), MX_OK);
  ck_assert_int_eq(mx_quantize_faulty(&t, x, rows, cols, cols, &spec, &f, 1, NULL), MX_OK);
  for (size_t k = 0; k < rows * cols; k++) codes[k] = (uint8_t)mx_code_at(&t, &spec, k / cols, k % cols);
  const mx_sample s = {.rows = rows,
                       .cols = cols,
                       .ld = cols,
                       .x = x,
                       .codes = codes,
                       .scales = t.scales,
                       .scale_rows = t.scale_rows,
                       .scale_cols = t.scale_cols,
                       .scale_bytes = 1,
                       .has_tensor_scale = t.has_tensor_scale,
                       .tensor_scale = t.tensor_scale};
  ck_assert_int_eq(mx_identify(id, &s, 1, &(mx_identify_options){.seconds = 20, .no_undecided = no_undecided}, NULL), MX_OK);
  mx_tensor_free(&t);
  free(codes);
}

static void identify_kernel(mx_identity *id, const float *x, size_t cols, const char *preset, const char *fault, int no_undecided) {
  identify_kernel_of(id, x, ROWS, cols, preset, fault, no_undecided);
}

/* In small numbers with a short last block filled with ones, a maximum of at least 1 there and the largest scale give the same bytes. These data do not
 * decide it, and identify says so. */
START_TEST(rivals_are_said) {
  static const struct {
    const char *preset, *fault;
    size_t cols;
    float factor;
  } kernels[] = {{"nvfp4-plain", "tail: block amax <- at least 1", COLS - 8, 0x1p-12f},
                 {"nvfp4-plain", "all: divisor <- no tensor scale", COLS, 0x1p-12f}};
  static float x[ROWS * COLS];
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    mx_identity id;
    fill(x, 3);
    for (size_t k = 0; k < ROWS * kernels[i].cols; k++) x[k] *= kernels[i].factor;
    identify_kernel(&id, x, kernels[i].cols, kernels[i].preset, kernels[i].fault, 1);
    ck_assert_msg(id.grade == MX_GRADE_FITS, "%s over %s: grade %d, %s", kernels[i].fault, kernels[i].preset, id.grade, id.bug.name);
    ck_assert_msg(id.bug.n_faults && (id.exact || (id.bug.n_rival && id.bug.rival_preset)), "%s: without its rival", kernels[i].fault);
  }
}
END_TEST

/* A rounding that nobody has for signed bytes reaches the lowest code as a cast does, an elem.prescale of 2 divides by half of a scale, and presets that few
 * know store a reciprocal of the tensor scale: faults that many kernels have are so much likelier that they are the answer. */
START_TEST(rare_keys_are_no_rivals) {
  static const struct {
    const char *preset, *fault;
  } kernels[] = {{"ocp-mxint8", "all: code <- lowest"},
                 {"nvfp4-plain", "all: divisor <- as e4m3fnuz"},
                 {"nvfp4-plain", "all: tensor scale <- stored reciprocal"}};
  static float x[ROWS * COLS];
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    mx_identity id;
    mx_fault f;
    fill(x, 3);
    x[0] = 192; /* 1 / T is a step below 2688 / 192 */
    identify_kernel(&id, x, COLS, kernels[i].preset, kernels[i].fault, 1);
    ck_assert_int_eq(mx_fault_parse(&f, kernels[i].fault, NULL), MX_OK);
    ck_assert_msg(!id.exact && id.grade == MX_GRADE_CONFIRMED && id.bug.fault[0].op == f.op, "%s over %s: grade %d, %s", kernels[i].fault,
                  kernels[i].preset, id.grade, id.bug.name);
  }
}
END_TEST

/* Each row has the largest number so far, so that the maximum says which rows it was taken over. Where that of four rows stands in the first of them, the
 * others may belong to them or not. */
START_TEST(a_part_that_the_maximum_tells) {
  static float x[ROWS * COLS];
  mx_identity id;
  fill(x, 1);
  for (size_t k = 0; k < ROWS * COLS; k++) x[k] = k % COLS ? x[k] / 128 : 2.0371f + (float)(k / COLS) / 7.113f;
  identify_kernel(&id, x, COLS, "nvfp4-plain", "rows=0-3: tensor amax <- only", 1);
  ck_assert_int_eq(id.grade, MX_GRADE_CONFIRMED);
  ck_assert_int_eq(id.bug.fault[0].op, MX_FAULT_TENSOR_ONLY);
  x[0] = 2.0371f + 3.5f / 7.113f;
  identify_kernel(&id, x, COLS, "nvfp4-plain", "rows=0-3: tensor amax <- only", 1);
  ck_assert_int_ne(id.grade, MX_GRADE_CONFIRMED);
}
END_TEST

/* Blocks that are wrong here and there are a race; the same ones in one row of four are not. */
START_TEST(wrong_blocks_without_a_rule) {
  static const size_t at[] = {5, 77, 130, 201, 282, 347, 400, 444, 499}; /* of 512 */
  static float x[ROWS * COLS];
  static uint8_t codes[ROWS * COLS], scales[ROWS * COLS / 16];
  mx_spec spec;
  mx_tensor t;
  mx_identity id;
  fill(x, 1);
  ck_assert_int_eq(mx_preset_find(&spec, "nvfp4-plain", NULL), MX_OK);
  ck_assert_int_eq(mx_tensor_alloc(&t, ROWS, COLS, &spec), MX_OK);
  ck_assert_int_eq(mx_quantize(&t, x, ROWS, COLS, COLS, &spec, NULL, NULL), MX_OK);
  for (int by_rule = 0; by_rule <= !!run_whole(); by_rule++) {
    for (size_t k = 0; k < ROWS * COLS; k++) codes[k] = (uint8_t)mx_code_at(&t, &spec, k / COLS, k % COLS);
    memcpy(scales, t.scales, sizeof scales);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
      const size_t k = by_rule ? at[i] / 32 * 32 + at[i] % 8 : at[i]; /* 8 blocks in a row */
      for (size_t e = 3; e < 6; e++) codes[k * 16 + e] = (uint8_t)(mx_random(9, MX_STREAM_DATA, k * 16 + e) % 16);
    }
    const mx_sample s = {.rows = ROWS,
                         .cols = COLS,
                         .ld = COLS,
                         .x = x,
                         .codes = codes,
                         .scales = scales,
                         .scale_rows = t.scale_rows,
                         .scale_cols = t.scale_cols,
                         .scale_bytes = 1,
                         .has_tensor_scale = 1,
                         .tensor_scale = t.tensor_scale};
    ck_assert_int_eq(mx_identify(&id, &s, 1, &(mx_identify_options){.seconds = 20, .no_undecided = 1}, NULL), MX_OK);
    ck_assert_int_eq(id.grade, MX_GRADE_NONE);
    const int is_race = id.bug.name && !strcmp(id.bug.name, MX_BUG_RACE);
    ck_assert_msg(is_race == !by_rule, "%s", id.bug.name ? id.bug.name : "none");
    if (is_race) ck_assert_msg(strstr(id.bug.text, "9 of 512 blocks (1.8 %), in 3 lanes from 3 to 5") != NULL, "%s", id.bug.text);
  }
  mx_tensor_free(&t);
}
END_TEST

/* A table is no more than a guess where codes of it do not occur: of positive numbers nobody knows what negative ones become. Slow, so not in each check. */
START_TEST(codes_that_do_not_occur) {
  static float x[ROWS * COLS];
  mx_identity id;
  fill(x, 1);
  for (int positive = 0; positive < 2 && run_whole(); positive++) {
    for (size_t i = 0; i < ROWS * COLS && positive; i++) x[i] = fabsf(x[i]);
    identify_kernel(&id, x, COLS, "ocp-mxfp4", "all: code <- table 0123465789abcdef", 1);
    ck_assert(id.bug.n_faults == 1 && id.bug.fault[0].op == MX_FAULT_CODE_TABLE);
    ck_assert_int_eq(id.grade, positive ? MX_GRADE_FITS : MX_GRADE_CONFIRMED);
  }
}
END_TEST

/* A factor that was learned has no few digits: it fits, with the numbers between which it lies. One of few bits is as good as typed. */
START_TEST(learned_numbers) {
  static float x[ROWS * COLS];
  mx_identity id;
  fill(x, 1);
  identify_kernel(&id, x, COLS, "te-nvfp4", "all: block amax <- mean times 1.7234215", 1);
  ck_assert_int_eq(id.grade, MX_GRADE_FITS);
  ck_assert(id.bug.n_faults == 1 && id.bug.fault[0].op == MX_FAULT_AMAX_MEAN);
  ck_assert(id.bug.least <= 1.7234215 && 1.7234215 <= id.bug.most && id.bug.most - id.bug.least < 0.01);
  identify_kernel(&id, x, COLS, "te-nvfp4", "all: block amax <- mean times 1.8125", 1);
  ck_assert_int_eq(id.grade, MX_GRADE_CONFIRMED);
  ck_assert(id.bug.fault[0].number == 1.8125 && id.bug.most == 0);
}
END_TEST

/* Of a tensor that is too large to be run again and again a part is searched, with the tensor scale of the whole: the largest number is in its last row,
 * and the maximum of what is rotated is another one. */
START_TEST(a_part_has_the_maximum_of_all) {
  enum { MANY_ROWS = 260, MANY_COLS = 512 };
  float *x = malloc(MANY_ROWS * MANY_COLS * sizeof *x);
  mx_identity id;
  ck_assert_ptr_nonnull(x);
  for (size_t i = 0; i < MANY_ROWS * MANY_COLS; i++)
    x[i] = ((float)(mx_random(3, MX_STREAM_DATA, i) >> 8) * 0x1p-23f - 1) * (float)(1 + i / MANY_COLS);
  identify_kernel_of(&id, x, MANY_ROWS, MANY_COLS, "nvfp4-plain", "all: rotation <- sequency 16", 1);
  ck_assert_int_eq(id.grade, MX_GRADE_CONFIRMED);
  ck_assert_uint_eq(id.bug.n_faults, 1);
  ck_assert_int_eq(id.bug.fault[0].op, MX_FAULT_ROTATION_SEQUENCY);
  free(x);
}
END_TEST

static void identify_fault(mx_identity *id, const float *x, const char *fault) {
  identify_kernel(id, x, COLS, "ocp-mxfp4", fault, 0);
  ck_assert_int_eq(id->bug.n_faults, 1);
}

static int leaves_open(const mx_identity *id, const char *key) {
  size_t i = 0;
  while (strcmp(mx_key_name(i), key)) i++;
  return (int)(id->undecided >> i & 1);
}

static int may_also(const mx_identity *id, int op) {
  for (size_t i = 0; i < id->n_also; i++)
    for (size_t k = 0; k < id->also[i].n_faults; k++)
      if (id->also[i].fault[k].op == op) return 1;
  return 0;
}

/* Numbers of 24 bits have no ties, so that a second fault of their rounding does not show; multiples of 1/4 have many. */
START_TEST(what_the_data_hide_is_listed) {
  static float x[ROWS * COLS];
  static const int rounds[] = {MX_FAULT_ELEMENT_TIES_AWAY, MX_FAULT_ELEMENT_TIES_ZERO, MX_FAULT_ELEMENT_TIES_UP, MX_FAULT_ELEMENT_TIES_DOWN};
  mx_identity id;
  fill(x, 1);
  identify_fault(&id, x, "all: code <- sign of pair");
  ck_assert_int_eq(id.grade, MX_GRADE_CONFIRMED);
  ck_assert(leaves_open(&id, "elem.round"));
  ck_assert(!leaves_open(&id, "scale.form"));
  for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) ck_assert(may_also(&id, rounds[i]));
  ck_assert(!may_also(&id, MX_FAULT_ELEMENT_TRUNCATE));
  identify_fault(&id, x, "all: element rounding <- up from 4.5"); /* no number is equal to it */
  ck_assert(may_also(&id, MX_FAULT_ELEMENT_THRESHOLD) || may_also(&id, MX_FAULT_ELEMENT_BEYOND));
  identify_fault(&id, x, "all: element rounding <- wrap"); /* what goes beyond the largest says nothing of ties */
  for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) ck_assert(may_also(&id, rounds[i]));
  for (size_t i = 0; i < ROWS * COLS; i++) x[i] = roundf(x[i] * 4) / 4;
  identify_fault(&id, x, "all: code <- sign of pair");
  for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) ck_assert(!may_also(&id, rounds[i]));
}
END_TEST

/* A tensor with a maximum of 316 whose last row has 112: the tensor scale of that row is as well that of all with a target of 7584, and one of 12,
 * whatever the data, that of 70784. Such numbers have few bits, so that either target has few digits, and neither is an answer; the row is one. */
START_TEST(targets_of_short_numbers_are_not_believed) {
  static float x[ROWS * COLS];
  mx_identity id;
  fill(x, 5);
  for (size_t i = 0; i < ROWS * COLS; i++) x[i] = 2 * (i < (ROWS - 1) * COLS ? rintf(x[i]) : fmodf(rintf(x[i]), 50));
  x[0] = 316, x[ROWS * COLS - 1] = 112;
  identify_kernel(&id, x, COLS, "nvfp4-plain", "rows=63-: tensor amax <- only", 1);
  ck_assert_msg(!id.exact, "a target of %g", (double)id.spec.tensor_target);
  ck_assert_int_eq(id.bug.fault[0].op, MX_FAULT_TENSOR_ONLY);
  ck_assert_uint_eq(id.bug.fault[0].region.first, ROWS - 1);
  ck_assert_int_eq(id.grade, MX_GRADE_CONFIRMED);
  identify_kernel(&id, x, COLS, "nvfp4-plain", "all: tensor amax <- value 12", 1);
  ck_assert_msg(!id.exact || id.grade != MX_GRADE_CONFIRMED, "a target of %g", (double)id.spec.tensor_target);
}
END_TEST

/* An output of zeros, as from a kernel that never ran, fits every rule with a large enough floor, which is not an answer. */
START_TEST(constant_output_decides_nothing) {
  static float x[ROWS * COLS];
  static uint8_t codes[ROWS * COLS], scales[ROWS * COLS / 32];
  mx_identity id;
  fill(x, 1);
  const mx_sample s = {.rows = ROWS,
                       .cols = COLS,
                       .ld = COLS,
                       .x = x,
                       .codes = codes,
                       .scales = scales,
                       .scale_rows = ROWS,
                       .scale_cols = COLS / 32,
                       .scale_bytes = 1};
  ck_assert_int_eq(mx_identify(&id, &s, 1, &(mx_identify_options){.seconds = 1, .no_undecided = 1}, NULL), MX_OK);
  ck_assert_int_eq(id.grade, MX_GRADE_NONE);
}
END_TEST

/* The time limit ends the search for faults too, and the result says so. */
START_TEST(the_clock_is_heeded) {
  static float x[ROWS * COLS];
  static uint8_t codes[ROWS * COLS], scales[ROWS * COLS / 32];
  mx_identity id;
  fill(x, 1);
  for (size_t i = 0; i < ROWS * COLS; i++) codes[i] = (uint8_t)(i * 2654435761u >> 28 & 15);
  for (size_t i = 0; i < ROWS * COLS / 32; i++) scales[i] = (uint8_t)(120 + i % 7);
  const mx_sample s = {.rows = ROWS,
                       .cols = COLS,
                       .ld = COLS,
                       .x = x,
                       .codes = codes,
                       .scales = scales,
                       .scale_rows = ROWS,
                       .scale_cols = COLS / 32,
                       .scale_bytes = 1};
  const clock_t began = clock();
  ck_assert_int_eq(mx_identify(&id, &s, 1, &(mx_identify_options){.seconds = 0.2, .n_threads = 1, .no_undecided = 1}, NULL), MX_OK);
  ck_assert_int_eq(id.complete, 0);
  ck_assert_int_eq(id.grade, MX_GRADE_NONE);
  ck_assert_double_lt((double)(clock() - began) / CLOCKS_PER_SEC, 2);
}
END_TEST

int main(void) {
  Suite *s = suite_create("fault");
  TCase *c = tcase_create("fault");
  tcase_set_timeout(c, 600);
  tcase_add_test(c, text_there_and_back);
  tcase_add_test(c, text_that_is_wrong);
  tcase_add_test(c, lists_of_bits);
  tcase_add_test(c, lists_of_codes);
  tcase_add_test(c, worked_by_hand);
  tcase_add_test(c, worked_tensor_scale);
  tcase_add_test(c, blocks_down_the_columns);
  tcase_add_test(c, no_fault);
  tcase_add_test(c, found_and_predicts);
  tcase_add_test(c, rivals_are_said);
  tcase_add_test(c, rare_keys_are_no_rivals);
  tcase_add_test(c, codes_that_do_not_occur);
  tcase_add_test(c, learned_numbers);
  tcase_add_test(c, wrong_blocks_without_a_rule);
  tcase_add_test(c, a_part_that_the_maximum_tells);
  tcase_add_test(c, a_part_has_the_maximum_of_all);
  tcase_add_test(c, what_the_data_hide_is_listed);
  tcase_add_test(c, targets_of_short_numbers_are_not_believed);
  tcase_add_test(c, constant_output_decides_nothing);
  tcase_add_test(c, the_clock_is_heeded);
  suite_add_tcase(s, c);
  return run_suite(s);
}
