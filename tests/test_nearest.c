/* Tests what identify says about kernels that it can only describe: the preset in whose terms an answer is given, the nearest preset of a
 * kernel that follows none, and how many random bits stochastic rounding shows. The kernels are plain loops here. */
#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/mxgold.h"

enum { ROWS = 64, COLS = 384 };

/* A black box with its output, codes one to a byte. */
typedef struct box {
  float *x;
  uint8_t *codes, *scales;
  mx_sample s;
} box;

static uint32_t next(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 32);
}

static float bell(uint64_t *state) {
  double sum = 0;
  for (int i = 0; i < 12; i++) sum += next(state) * 0x1p-32;
  return (float)(sum - 6);
}

/* Fills a box with what a spec gives for numbers around 1, and around `small` in every fourth row, as a starting point. */
static void box_open_small(box *b, const mx_spec *spec, float small) {
  uint64_t state = 11;
  mx_tensor t;
  ck_assert_int_eq(mx_tensor_alloc(&t, ROWS, COLS, spec), MX_OK);
  b->x = malloc(sizeof(float) * ROWS * COLS);
  b->codes = malloc(ROWS * COLS);
  b->scales = malloc(t.scale_rows * t.scale_cols);
  for (size_t i = 0; i < ROWS * COLS; i++) b->x[i] = bell(&state) * (i / COLS % 4 == 3 ? small : 1);
  ck_assert_int_eq(mx_quantize(&t, b->x, ROWS, COLS, COLS, spec, NULL, NULL), MX_OK);
  for (size_t i = 0; i < ROWS * COLS; i++) b->codes[i] = (uint8_t)mx_code_at(&t, spec, i / COLS, i % COLS);
  memcpy(b->scales, t.scales, t.scale_rows * t.scale_cols);
  b->s = (mx_sample){.rows = ROWS,
                     .cols = COLS,
                     .ld = COLS,
                     .x = b->x,
                     .codes = b->codes,
                     .scales = b->scales,
                     .scale_rows = t.scale_rows,
                     .scale_cols = t.scale_cols,
                     .scale_bytes = 1,
                     .has_tensor_scale = spec->tensor_norm != 0,
                     .tensor_scale = t.tensor_scale};
  mx_tensor_free(&t);
}

static void box_open(box *b, const mx_spec *spec) { box_open_small(b, spec, 1); }

static void box_close(box *b) {
  free(b->x);
  free(b->codes);
  free(b->scales);
}

static void identify(mx_identity *id, const box *b) {
  ck_assert_int_eq(mx_identify(id, &b->s, 1, &(mx_identify_options){.seconds = 2000}, NULL), MX_OK);
}

static uint64_t bit_of(const char *key) {
  size_t i = 0;
  while (mx_key_name(i) && strcmp(mx_key_name(i), key)) i++;
  return UINT64_C(1) << i;
}

static const float grid[8] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};

/* The code of the lower of the two values around |q|, and the fraction of the way to the other one. */
static uint32_t below(double q, double *fraction) {
  uint32_t c = 0;
  q = fmin(fabs(q), 6);
  while (c < 7 && grid[c + 1] <= q) c++;
  *fraction = c == 7 ? 0 : (q - grid[c]) / (grid[c + 1] - grid[c]);
  return c;
}

static uint32_t nearest(double q) {
  double d;
  const uint32_t c = below(q, &d);
  return c + (d > .5 || (d == .5 && c % 2));
}

/* A spec that is not a preset is found exactly, and described in terms of te-nvfp4. */
static void said_of_te(mx_identity *id, const mx_spec *spec) {
  box b;
  box_open(&b, spec);
  identify(id, &b);
  ck_assert(id->exact && !id->preset);
  ck_assert_str_eq(id->nearest, "te-nvfp4");
  ck_assert(mx_spec_equal(&id->spec, spec));
  box_close(&b);
}

/* e4m3 and ue5m3 have the same codes for values 2^8 apart: the answer is given in terms of the nearer preset, and the format is left open. */
START_TEST(forgotten_six) {
  mx_spec spec;
  mx_identity id;
  ck_assert_int_eq(mx_preset_find(&spec, "te-nvfp4", NULL), MX_OK);
  spec.tensor_target = 448;
  said_of_te(&id, &spec);
  ck_assert_uint_ne(id.undecided & bit_of("scale"), 0);
}
END_TEST

/* A rotation is taken as given, as a block is: the nearest preset is nearest beside that rotation. */
START_TEST(rotated_preset) {
  mx_spec spec;
  mx_identity id;
  ck_assert_int_eq(mx_preset_find(&spec, "te-nvfp4", NULL), MX_OK);
  spec.had_size = 16;
  spec.had_sign = MX_HAD_SIGN_TE;
  said_of_te(&id, &spec);
}
END_TEST

/* A reciprocal of 12 bits changes a few codes next to ties. The answer names that, not other thresholds or fitted numbers over a distant
 * preset. */
START_TEST(short_reciprocal) {
  mx_spec spec;
  box b;
  mx_identity id;
  uint64_t wrong = 0;
  ck_assert_int_eq(mx_preset_find(&spec, "te-nvfp4", NULL), MX_OK);
  box_open(&b, &spec);
  float amax = 0;
  for (size_t i = 0; i < ROWS * COLS; i++) amax = fmaxf(amax, fabsf(b.x[i]));
  const float decode = 1 / (2688 / amax);
  for (size_t i = 0; i < ROWS * COLS; i++) {
    const float scale = (float)mx_decode(mx_scale_format(MX_SCALE_E4M3), b.scales[i / 16]);
    union {
      float f;
      uint32_t u;
    } r = {.f = 1 / (scale * decode)};
    r.u &= 0xfffff800;
    const uint8_t code = (uint8_t)(nearest(b.x[i] * r.f) | (uint32_t)(signbit(b.x[i]) != 0) << 3);
    wrong += code != b.codes[i];
    b.codes[i] = code;
  }
  ck_assert(wrong > 0 && wrong < 40);
  identify(&id, &b);
  ck_assert(!id.exact && !id.stochastic);
  ck_assert_str_eq(id.nearest, "te-nvfp4");
  ck_assert_uint_eq(id.codes_differ, wrong);
  char fault[128];
  ck_assert_uint_eq(id.bug.n_faults, 1);
  mx_fault_print(fault, sizeof fault, &id.bug.fault[0]);
  ck_assert_str_eq(fault, "all: divisor <- reciprocal bits 12");
  ck_assert_str_eq(id.bug.preset, "te-nvfp4");
  ck_assert_uint_eq(id.bug.preset_codes, wrong);
  ck_assert_uint_eq(id.bug.codes + id.bug.scales + id.bug.tensor_scales, 0);
  box_close(&b);
}
END_TEST

/* te-nvfp4 with exponent 0 of a block's scale taken for one less than exponent 1, which halves subnormal scales. */
START_TEST(subnormal_scales) {
  mx_spec spec;
  box b;
  mx_identity id;
  uint64_t changed = 0;
  ck_assert_int_eq(mx_preset_find(&spec, "te-nvfp4", NULL), MX_OK);
  box_open_small(&b, &spec, 0x1p-16f);
  const float s = 2688 / b.s.tensor_scale, decode = 1 / s; /* te stores max|X| */
  for (size_t i = 0; i < ROWS * COLS; i++) {
    const uint8_t scale = b.scales[i / 16];
    if (!scale || scale >> 3) continue;
    const float right = (float)mx_decode(mx_scale_format(MX_SCALE_E4M3), scale), r = 1 / (right * decode);
    b.codes[i] = (uint8_t)(nearest((double)(b.x[i] * r) * 2) | (uint32_t)(signbit(b.x[i]) != 0) << 3);
    changed++;
  }
  ck_assert_uint_gt(changed, 1000);
  identify(&id, &b);
  ck_assert(!id.exact && id.bug.name);
  ck_assert_str_eq(id.bug.name, "subnormal scales read as normal");
  ck_assert_uint_eq(id.bug.codes + id.bug.scales + id.bug.tensor_scales, 0);
  box_close(&b);
}
END_TEST

/* Which elements share a number of a generator that nobody knows follows from their roundings. These are the numbers of their numbers. */
static size_t whole_row(size_t row, size_t col) { return row + 0 * col; }
static size_t half_block(size_t row, size_t col) { return row * COLS + col / 16; }
static size_t column(size_t row, size_t col) { return col + 0 * row; }
static size_t lane_of_four_rows(size_t row, size_t col) { return row % 4 * COLS + col % 32; }
static size_t element(size_t row, size_t col) { return row * COLS + col; }
static size_t lane_of_a_row(size_t row, size_t col) { return row * COLS + col % 32; }

/* ocp-mxfp4 whose elements round up if a noise of `bits` bits, times `factor`, is below the fraction: one number for each place of its kind. */
static void chance(mx_identity *id, int bits, double factor, size_t (*place)(size_t row, size_t col)) {
  static double noise[ROWS * COLS];
  mx_spec spec;
  box b;
  uint64_t state = 5;
  ck_assert_int_eq(mx_preset_find(&spec, "ocp-mxfp4", NULL), MX_OK);
  box_open(&b, &spec);
  for (size_t i = 0; i < ROWS * COLS; i++) noise[i] = ldexp(next(&state) >> (32 - bits), -bits);
  for (size_t i = 0; i < ROWS * COLS; i++) {
    double d;
    uint32_t c = below(ldexp(b.x[i], 127 - b.scales[i / 32]), &d);
    c += factor * noise[place(i / COLS, i % COLS)] < d;
    b.codes[i] = (uint8_t)(c | (uint32_t)(signbit(b.x[i]) != 0) << 3);
  }
  identify(id, &b);
  ck_assert(!id->exact);
  ck_assert(id->stochastic);
  ck_assert_str_eq(id->nearest, "ocp-mxfp4");
  ck_assert_uint_eq(id->random_beyond, 0);
  box_close(&b);
}

/* `<` instead of the carry of a sum: three bits are recognised as three, with a bias. */
START_TEST(below_the_fraction) {
  mx_identity id;
  chance(&id, 3, 1, element);
  ck_assert(id.random_biased && id.random_bias > 0);
  ck_assert_str_eq(id.random_shared, "");
  ck_assert_int_eq(id.random_bits_least, 3);
  ck_assert_int_eq(id.random_bits_most, 3);
}
END_TEST

/* If a noise does not reach 1, its bias is found; its bits cannot be found, and none are claimed. */
START_TEST(short_noise) {
  mx_identity id;
  chance(&id, 24, .9, lane_of_a_row);
  ck_assert(id.random_biased && id.random_bias > 0);
  ck_assert_str_eq(id.random_shared, "column mod 32 of a row");
  ck_assert_int_eq(id.random_bits_least, 0);
  ck_assert_int_eq(id.random_bits_most, 0);
}
END_TEST

START_TEST(shared_numbers) {
  static const struct {
    size_t (*place)(size_t row, size_t col);
    const char *said;
  } kernels[] = {{whole_row, "row"},
                 {half_block, "16 columns of a row"},
                 {column, "column, alike in all rows"},
                 {lane_of_four_rows, "column mod 32, alike in rows 4 apart"},
                 {element, ""}};
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels && run_whole(); k++) { /* each takes a whole search */
    mx_identity id;
    chance(&id, 24, 1, kernels[k].place);
    ck_assert_str_eq(id.random_shared, kernels[k].said);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("nearest");
  TCase *t = tcase_create("nearest");
  tcase_set_timeout(t, 600);
  tcase_add_test(t, forgotten_six);
  tcase_add_test(t, rotated_preset);
  tcase_add_test(t, short_reciprocal);
  tcase_add_test(t, subnormal_scales);
  tcase_add_test(t, below_the_fraction);
  tcase_add_test(t, short_noise);
  tcase_add_test(t, shared_numbers);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
