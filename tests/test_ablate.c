/* Tests each figure of the ablation of tensors against a case worked by hand. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/ablate.h"
#include "mxgold/random.h"
#include "mxgold/verify.h"

static mx_spec spec_of(const char *keys) {
  mx_spec s = {0};
  mx_error err;
  ck_assert_msg(mx_spec_parse(&s, keys, &err) == MX_OK, "%s", err.text);
  return s;
}

START_TEST(sums_by_hand) {
  /* errors 0, 1, -1, 0: ee 2; xx 1 + 9 + 16 + 0 = 26; yy 1 + 4 + 25 + 0 = 30; xy 1 + 6 + 20 = 27 */
  const float x[4] = {1, 3, 4, 0}, y[4] = {1, 2, 5, 0};
  mx_error_sums s = {0};
  mx_error_sums_add(&s, x, y, 4, 1);
  ck_assert_uint_eq(s.n, 4);
  ck_assert(s.xx == 26 && s.yy == 30 && s.xy == 27 && s.ee == 2);
  ck_assert(s.max_error == 1);
  ck_assert(s.max_relative == 1.0 / 3);
  ck_assert(mx_mse(&s) == 0.5);
  ck_assert(mx_gain(&s) == 27.0 / 26);
  ck_assert_double_eq_tol(mx_relative_error(&s), 0.27735009811261457, 1e-15); /* sqrt(1 / 13) */
  ck_assert_double_eq_tol(mx_cosine(&s), 27 / sqrt(780.0), 1e-15);
  ck_assert_double_eq_tol(mx_sqnr(&s), 11.139433523068368, 1e-12); /* 10 log10 13 */
}
END_TEST

START_TEST(nan_and_inf_are_counted) {
  const float x[7] = {NAN, INFINITY, 1, 2, 3, -INFINITY, 4}, y[7] = {NAN, 6, NAN, 2, INFINITY, 0, 0};
  mx_error_sums s = {0};
  mx_error_sums_add(&s, x, y, 7, 1);
  ck_assert_uint_eq(s.n_nan, 1);
  ck_assert_uint_eq(s.n_inf, 2);
  ck_assert_uint_eq(s.n_spoiled, 2);
  ck_assert_uint_eq(s.n, 2);
  ck_assert_uint_eq(s.n_underflow, 1);
  ck_assert(s.xx == 20 && s.ee == 16 && s.max_relative == 1);
  ck_assert(s.lost == 1 + 9);
  ck_assert_double_eq_tol(mx_sqnr_of_all(&s), 0.6214790674884844, 1e-12); /* 10 log10(30 / 26) */
}
END_TEST

/* Values that became 0 have a relative error of 1 and take a shortcut, which must give the largest of all quotients. */
START_TEST(largest_relative_error) {
  const struct {
    float x[6], y[6];
    double want;
  } cases[] = {{{4, 3, -2, 1, 0, 5}, {4, 2, -2, 1, 0, 5}, 1.0 / 3}, /* none became 0 */
               {{4, 3, -2, 1, 0, 5}, {4, 2, -2, 0, 0, 5}, 1},       /* one did */
               {{4, 3, -2, 1, 0, 5}, {4, 2, 1, 0, 0, 5}, 1.5},      /* a sign is lost */
               {{4, 3, -2, 1, 0, 5}, {4, 2, -2, 0, 7, 5}, 1},       /* 0 has no relative error */
               {{4, 3, -2, 1, 0, 5}, {4, 9, -2, 0, 0, 5}, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mx_error_sums s = {0};
    mx_error_sums_add(&s, cases[i].x, cases[i].y, 6, 1);
    ck_assert_double_eq(s.max_relative, cases[i].want);
  }
}
END_TEST

START_TEST(nothing_to_divide_by) {
  mx_error_sums s = {0};
  ck_assert(mx_sqnr(&s) == 0 && mx_mse(&s) == 0 && mx_relative_error(&s) == 0 && mx_cosine(&s) == 0 && mx_gain(&s) == 0);
  const float x[2] = {1, 2};
  mx_error_sums_add(&s, x, x, 2, 1);
  ck_assert(isinf(mx_sqnr(&s)) && mx_sqnr(&s) > 0);
}
END_TEST

START_TEST(same_sums_for_any_threads) {
  enum { N = 100003 };
  float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
  const mx_data d = {.kind = MX_DATA_GAUSSIAN};
  mx_data_fill(x, 1, N, &d, 1);
  mx_data_fill(y, 1, N, &d, 2);
  mx_error_sums one = {0}, more = {0}, parts = {0};
  mx_error_sums_add(&one, x, y, N, 1);
  mx_error_sums_add(&more, x, y, N, 5);
  mx_error_sums_add(&parts, x, y, 8 * MX_PIECE, 2);
  mx_error_sums_add(&parts, x + 8 * MX_PIECE, y + 8 * MX_PIECE, N - 8 * MX_PIECE, 3);
  ck_assert_mem_eq(&one, &more, sizeof one);
  ck_assert_mem_eq(&one, &parts, sizeof one);
  free(x);
  free(y);
}
END_TEST

/* Vectors and plain code give the same bits for every length of a tail, with NaN, Inf, values that became 0 or changed sign, and without
 * them. */
START_TEST(same_sums_for_any_isa) {
  enum { N = MX_PIECE + 61 };
  static float x[N], y[N];
  const mx_data d = {.kind = MX_DATA_STUDENT, .param = {2}};
  for (int kind = 0; kind < 5; kind++) {
    mx_data_fill(x, 1, N, &d, (uint64_t)kind);
    for (size_t i = 0; i < N; i++) y[i] = x[i] * 1.0625f;
    if (kind == 1)
      for (size_t i = 0; i < N; i += 7) y[i] = 0;
    if (kind == 2) x[5] = NAN, x[N - 1] = INFINITY, y[40] = NAN, y[MX_PIECE + 3] = -INFINITY;
    if (kind == 3) y[N - 2] = -y[N - 2], x[3] = 0, y[11] = 0, x[12] = -0.0f;
    if (kind == 4) x[9] = 3e38f, y[9] = -3e38f, x[10] = 1e-45f, y[10] = 0;
    for (size_t n = N - 61; n <= N; n++) {
      mx_error_sums fast = {0}, slow = {0};
      unsetenv("MXGOLD_ISA_OFF");
      mx_error_sums_add(&fast, x, y, n, 1);
      setenv("MXGOLD_ISA_OFF", "all", 1);
      mx_error_sums_add(&slow, x, y, n, 1);
      ck_assert_mem_eq(&fast, &slow, sizeof fast);
      memset(&slow, 0, sizeof slow);
      mx_error_sums_add(&slow, x, y, n - MX_PIECE, 1); /* only a tail */
      memset(&fast, 0, sizeof fast);
      unsetenv("MXGOLD_ISA_OFF");
      mx_error_sums_add(&fast, x, y, n - MX_PIECE, 1);
      ck_assert_mem_eq(&fast, &slow, sizeof fast);
    }
  }
}
END_TEST

/* amax 7 under the floor rule gives scale 1; 7 saturates to 6, .2 underflows, 0 stays. Codes are 7, 0, 0, 1 (.5), 15 (-6), and 27 zeros that
 * fill up. */
START_TEST(counts_by_hand) {
  float x[32] = {7, 0.2f, 0, 0.5f, -6};
  const mx_spec s = {0};
  mx_measure m;
  ck_assert_int_eq(mx_measure_tensor(&m, x, 1, 32, &s, NULL, NULL), MX_OK);
  ck_assert_uint_eq(m.counts.n, 32);
  ck_assert_uint_eq(m.counts.saturated, 1);
  ck_assert_uint_eq(m.counts.zero, 29);
  ck_assert_uint_eq(m.counts.code[7], 1);
  ck_assert_uint_eq(m.counts.code[15], 1);
  ck_assert_uint_eq(m.counts.code[1], 1);
  ck_assert_uint_eq(m.counts.code[0], 29);
  ck_assert_uint_eq(m.counts.n_scales, 1);
  ck_assert_uint_eq(m.counts.scale_binade[MX_BINADE_0], 1);
  ck_assert_uint_eq(m.sums.n_underflow, 1);
  ck_assert_double_eq_tol(m.sums.ee, 1 + 0.2f * (double)0.2f, 1e-15);
  /* 29/32 and three of 1/32: -(.90625 log2 .90625) + 3 * 5 / 32 */
  ck_assert_double_eq_tol(mx_code_entropy(&m.counts), 0.5974547231656377, 1e-15);
  ck_assert(m.bits == 4 + 8.0 / 32);
  ck_assert_int_eq(m.repeats, 1);
  ck_assert(m.bias == mx_relative_error(&m.sums));
}
END_TEST

/* With a largest value of 4 * 448 * 6 the tensor scale is 4. Blocks whose largest values are 4 * 448 * 6 and 4 * 6 store 448 and 1, and
 * multiply by 1792 and 4. In the encode form a block whose largest value is 3 stores 6 / 3 and multiplies by 1/2. Without a tensor scale a
 * block multiplies by its stored scale. */
START_TEST(factors_by_hand) {
  const mx_spec nv = spec_of("scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv"),
                encode = spec_of("scale=e4m3 block=1x16 scale.rule=value scale.form=encode");
  float x[32] = {4 * 448 * 6}, y[16] = {3};
  x[16] = 4 * 6;
  mx_measure m;
  ck_assert_int_eq(mx_measure_tensor(&m, x, 1, 32, &nv, NULL, NULL), MX_OK);
  ck_assert(m.counts.tensor_factor == 4);
  ck_assert_uint_eq(m.counts.scale_binade[MX_BINADE_0 + 8], 1);
  ck_assert_uint_eq(m.counts.scale_binade[MX_BINADE_0], 1);
  ck_assert_uint_eq(m.counts.factor_binade[MX_BINADE_0 + 10], 1);
  ck_assert_uint_eq(m.counts.factor_binade[MX_BINADE_0 + 2], 1);
  ck_assert_int_eq(mx_measure_tensor(&m, y, 1, 16, &encode, NULL, NULL), MX_OK);
  ck_assert(m.counts.tensor_factor == 1);
  ck_assert_uint_eq(m.counts.scale_binade[MX_BINADE_0 + 1], 1);
  ck_assert_uint_eq(m.counts.factor_binade[MX_BINADE_0 - 1], 1);
}
END_TEST

/* Codes are counted in place, by vectors if there are any, with the same result as one at a time, for every order of nibbles, width and
 * tail. */
START_TEST(counts_one_by_one) {
  static const char *const keys[] = {"",
                                     "nibble=high_first",
                                     "nibble=half_block",
                                     "elem=e2m3",
                                     "elem=e4m3",
                                     "elem=int8",
                                     "elem=e2m1 elem.prescale=0.75",
                                     "elem=e5m2 scale.rule=value"};
  enum { ROWS = 3, COLS = 75 };
  float x[ROWS * COLS], y[ROWS * COLS];
  uint32_t codes[ROWS * COLS];
  const mx_data d = {.kind = MX_DATA_STUDENT, .param = {3}};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
    for (size_t cols = 1; cols <= COLS; cols++) {
      const mx_spec s = spec_of(keys[k]);
      const mx_format *f = mx_elem_format(s.elem);
      mx_tensor t;
      mx_data_fill(x, ROWS, cols, &d, cols);
      for (size_t i = 0; i < 32 && i < cols; i++) x[i] *= 0x1p-140f; /* the smallest scale, and values that became 0 */
      if (s.elem_prescale == 0) x[cols - 1] = 0;
      ck_assert_int_eq(mx_tensor_alloc(&t, ROWS, cols, &s), MX_OK);
      ck_assert_int_eq(mx_quantize(&t, x, ROWS, cols, cols, &s, NULL, NULL), MX_OK);
      ck_assert_int_eq(mx_dequantize(y, cols, &t, &s, NULL), MX_OK);
      mx_unpack_codes(codes, &t, &s);
      mx_code_counts by_hand = {0}, fast = {0}, slow = {0};
      for (size_t i = 0; i < ROWS * cols; i++) {
        const double v = fabs(mx_decode(f, codes[i])),
                     a = fabs((double)(float)((double)x[i] * (s.elem_prescale != 0 ? (double)s.elem_prescale : 1)));
        by_hand.code[codes[i]]++;
        by_hand.zero += v == 0;
        by_hand.saturated += v == mx_format_max(f) && a > fabs((double)y[i]) && y[i] != 0;
      }
      unsetenv("MXGOLD_ISA_OFF");
      ck_assert_int_eq(mx_code_counts_add(&fast, &t, &s, x, y, 1), MX_OK);
      setenv("MXGOLD_ISA_OFF", "all", 1);
      ck_assert_int_eq(mx_code_counts_add(&slow, &t, &s, x, y, 2), MX_OK);
      unsetenv("MXGOLD_ISA_OFF");
      ck_assert_mem_eq(&fast, &slow, sizeof fast);
      ck_assert_mem_eq(fast.code, by_hand.code, sizeof fast.code);
      ck_assert_uint_eq(fast.zero, by_hand.zero);
      ck_assert_uint_eq(fast.saturated, by_hand.saturated);
      mx_tensor_free(&t);
    }
}
END_TEST

START_TEST(bits_by_hand) {
  const mx_spec nv = spec_of("scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv"), two = spec_of("scale=e4m3 block=16x16 scale.rule=value"),
                none = spec_of("elem=none"), odd = spec_of("block=1x32"), hif4 = spec_of("elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4");
  ck_assert(mx_bits_per_value(&nv, 64, 64) == 4.5 + 32.0 / 4096);
  ck_assert(mx_bits_per_value(&two, 64, 64) == 4 + 8.0 / 256);
  ck_assert(mx_bits_per_value(&none, 3, 5) == 32);
  ck_assert(mx_bits_per_value(&odd, 1, 48) == (64 * 4 + 2 * 8) / 48.0); /* what fills up the second block is stored too */
  ck_assert(mx_bits_per_value(&hif4, 8, 64) == 4.5);
}
END_TEST

/* Without quantisation, rotating there and back changes only roundings, also with fresh signs. */
START_TEST(rotation_is_undone) {
  enum { N = 4 * 64 };
  float x[N], y[N];
  const mx_data d = {.kind = MX_DATA_LAPLACE};
  mx_data_fill(x, 4, 64, &d, 3);
  const char *keys[] = {"elem=none had.size=32", "elem=none had.size=64 had.sign=fresh seed=9", "elem=none had.size=16 had.sign=te"};
  for (size_t k = 0; k < 3; k++) {
    const mx_spec s = spec_of(keys[k]);
    ck_assert_int_eq(mx_fake_quantize(y, x, 4, 64, &s, NULL, NULL, NULL), MX_OK);
    for (int i = 0; i < N; i++) ck_assert_float_eq_tol(x[i], y[i], 4e-6f);
  }
  const mx_spec s = spec_of("had.size=32");
  mx_error err;
  ck_assert_int_eq(mx_fake_quantize(y, x, 4, 40, &s, NULL, NULL, &err), MX_ERR_SHAPE);
}
END_TEST

/* A scale that became 0 gives zeros, which is underflow and not saturation, whatever the codes are. */
START_TEST(zero_scales_do_not_saturate) {
  float x[32];
  for (int i = 0; i < 32; i++) x[i] = 1e-6f;
  const mx_spec s = spec_of("scale=e4m3 scale.rule=value scale.zero=max");
  mx_measure m;
  ck_assert_int_eq(mx_measure_tensor(&m, x, 1, 32, &s, NULL, NULL), MX_OK);
  ck_assert_uint_eq(m.counts.scale_zero, 1);
  ck_assert_uint_eq(m.counts.code[7], 32);
  ck_assert_uint_eq(m.counts.saturated, 0);
  ck_assert_uint_eq(m.sums.n_underflow, 32);
}
END_TEST

/* Tseng: 7.9 * 3/4 does not saturate, and comes back divided by 3/4. TECHNIQUES 4.2. */
START_TEST(prescale_is_undone) {
  const float x[4] = {7.9f, -3.3f, 0.2f, 5.1f};
  float y[4];
  const mx_spec s = spec_of("elem.prescale=0.75");
  mx_code_counts n = {0};
  ck_assert_int_eq(mx_fake_quantize(y, x, 1, 4, &s, NULL, &n, NULL), MX_OK);
  ck_assert(y[0] == 8 && y[1] == (float)(-2 / 0.75) && y[2] == 0 && y[3] == (float)(4 / 0.75));
  ck_assert_uint_eq(n.saturated, 0);
}
END_TEST

START_TEST(in_place) {
  float x[64], y[64];
  const mx_data d = {.kind = MX_DATA_GAUSSIAN};
  mx_data_fill(x, 2, 32, &d, 0);
  const mx_spec s = {0};
  mx_code_counts a = {0}, b = {0};
  mx_fake_quantize(y, x, 2, 32, &s, NULL, &a, NULL);
  mx_fake_quantize(x, x, 2, 32, &s, NULL, &b, NULL);
  ck_assert_mem_eq(x, y, sizeof x);
  ck_assert_mem_eq(&a, &b, sizeof a);
}
END_TEST

/* Values .3 of a step above a code: the whole error of RTN is bias; SR, whose mean is x, has almost none, but a larger error. */
START_TEST(bias_of_stochastic_rounding) {
  enum { N = 64 * 32 };
  static float x[N];
  for (int i = 0; i < N; i++) x[i] = i % 32 == 0 ? 4.0f : 1.15f;
  const mx_spec rtn = {0}, sr = spec_of("elem.round=sr");
  const mx_measure_options o = {.repeats = 200};
  mx_measure a, b;
  ck_assert_int_eq(mx_measure_tensor(&a, x, 64, 32, &rtn, &o, NULL), MX_OK);
  ck_assert_int_eq(mx_measure_tensor(&b, x, 64, 32, &sr, &o, NULL), MX_OK);
  const double xx = 16 + 31 * 1.15 * 1.15;
  ck_assert_double_eq_tol(a.bias, sqrt(31 * 0.15 * 0.15 / xx), 1e-6);
  ck_assert_int_eq(b.repeats, 200);
  ck_assert_double_eq_tol(mx_relative_error(&b.sums), sqrt(31 * 0.15 * 0.35 / xx), 2e-3);
  ck_assert_double_lt(b.bias, 0.004);
}
END_TEST

/* Neighbouring seeds share no repeats; the first repeat uses the seed itself, so that it is what quantising with that seed gives. */
START_TEST(repeats_have_seeds_of_their_own) {
  enum { SEEDS = 16, REPEATS = 16, N = 4 * 32 };
  uint64_t all[SEEDS * REPEATS];
  for (uint64_t s = 0; s < SEEDS; s++)
    for (int r = 0; r < REPEATS; r++) all[s * REPEATS + (uint64_t)r] = mx_repeat_seed(s, r);
  for (size_t i = 0; i < SEEDS * REPEATS; i++)
    for (size_t k = 0; k < i; k++) ck_assert_uint_ne(all[i], all[k]);
  ck_assert_uint_eq(mx_repeat_seed(5, 0), 5);
  ck_assert_uint_eq(mx_repeat_seed(5, 3), (uint64_t)mx_random(5, 4, 7) << 32 | mx_random(5, 4, 6));
  /* The sums over two repeats are those over the two seeds, and so are those of a product. */
  float x[N], w[N];
  const mx_data d = {.kind = MX_DATA_GAUSSIAN};
  mx_data_fill(x, 4, 32, &d, 1);
  mx_data_fill(w, 4, 32, &d, 2);
  mx_spec sr = spec_of("elem.round=sr seed=5");
  const mx_measure_options two = {.repeats = 2}, one = {.repeats = 1};
  mx_measure both, single;
  mx_product_split product, parts[2];
  double ee = 0;
  ck_assert_int_eq(mx_measure_tensor(&both, x, 4, 32, &sr, &two, NULL), MX_OK);
  ck_assert_int_eq(mx_product_split_measure(&product, x, w, 4, 4, 32, &sr, &sr, MX_PRODUCT_DEQUANTIZED, &two, NULL), MX_OK);
  for (int r = 0; r < 2; r++) {
    mx_spec own = sr;
    own.seed = mx_repeat_seed(5, r);
    ck_assert_int_eq(mx_measure_tensor(&single, x, 4, 32, &own, &one, NULL), MX_OK);
    ck_assert_int_eq(mx_product_split_measure(&parts[r], x, w, 4, 4, 32, &own, &own, MX_PRODUCT_DEQUANTIZED, &one, NULL), MX_OK);
    ee += single.sums.ee;
  }
  ck_assert_double_eq_tol(both.sums.ee, ee, 1e-12);
  const double first = parts[0].both.relative, second = parts[1].both.relative;
  ck_assert_double_eq_tol(product.both.relative, sqrt((first * first + second * second) / 2), 1e-12);
}
END_TEST

/* Two by three tiles of 16 x 16 in 24 x 48 have six scales, although each is stored for every row of its tile. */
START_TEST(scales_of_tiles_count_once) {
  static float x[24 * 48];
  for (int i = 0; i < 24 * 48; i++) x[i] = 6;
  const mx_spec s = spec_of("scale=e4m3 block=16x16 scale.rule=value");
  mx_measure m;
  ck_assert_int_eq(mx_measure_tensor(&m, x, 24, 48, &s, NULL, NULL), MX_OK);
  ck_assert_uint_eq(m.counts.n_scales, 6);
  ck_assert_uint_eq(m.counts.scale_binade[MX_BINADE_0], 6);
}
END_TEST

/* Spoiled values count in a unit's error with their own size: 31 ones beside a NaN; the others come back unchanged. */
START_TEST(spoiled_units) {
  float x[128];
  double unit[2];
  for (int i = 0; i < 128; i++) x[i] = 1;
  x[70] = NAN;
  const mx_spec s = {0};
  const mx_measure_options o = {.n_units = 2, .unit_error = unit};
  mx_measure m;
  ck_assert_int_eq(mx_measure_tensor(&m, x, 1, 128, &s, &o, NULL), MX_OK);
  ck_assert(unit[0] == 0 && unit[1] == 31 && m.sums.lost == 31);
}
END_TEST

START_TEST(units_cover_the_tensor) {
  for (size_t n = 1; n < 5000; n += 77) {
    size_t end = 0;
    for (size_t u = 0; u < 8; u++) {
      ck_assert_uint_eq(mx_unit_first(u, 8, n), end);
      end = mx_unit_first(u + 1, 8, n);
    }
    ck_assert_uint_eq(end, n);
  }
}
END_TEST

/* The six specs of every recipe are valid, and a layer can be measured under them; NVIDIA's are those of its paper. */
START_TEST(recipes) {
  enum { N = 128 }; /* a whole tile of the largest rotation */
  static float x[N * N], w[N * N], dy[N * N];
  const mx_data d = {.kind = MX_DATA_GAUSSIAN};
  mx_data_fill(x, N, N, &d, 1);
  mx_data_fill(w, N, N, &d, 2);
  mx_data_fill(dy, N, N, &d, 3);
  static mx_six six;
  for (size_t r = 0; r < mx_recipe_count(); r++) {
    mx_spec q[6];
    mx_error err;
    const mx_recipe *recipe = mx_recipe_at(r);
    ck_assert_int_eq(mx_recipe_find(recipe->name), (int)r);
    ck_assert_msg(mx_recipe_base(&q[0], recipe, &err) == MX_OK, "%s: %s", recipe->name, err.text);
    for (int i = 1; i < 6; i++) q[i] = q[0];
    ck_assert_msg(mx_recipe_operands(q, recipe, &err) == MX_OK, "%s: %s", recipe->name, err.text);
    const mx_measure_options once = {.repeats = 1};
    ck_assert_msg(mx_six_measure(&six, x, w, dy, N, N, N, q, MX_GEMM_F32_BLOCK, &once, &err) == MX_OK, "%s: %s", recipe->name, err.text);
    for (int p = 0; p < 3; p++)
      ck_assert_msg(six.product[p].total.relative < 0.4, "%s: product %d is off by %g", recipe->name, p, six.product[p].total.relative);
    if (strcmp(recipe->name, "recipe-nvfp4")) continue;
    const mx_spec te = spec_of("scale=e4m3 block=1x16");
    for (int i = 0; i < 6; i++) {
      const int is_weight = i == 1 || i == 3;
      size_t rows, cols;
      mx_spec_block(&q[i], N, N, &rows, &cols);
      ck_assert(q[i].elem == te.elem && q[i].scale == te.scale && cols == 16 && rows == (is_weight ? 16u : 1u));
      ck_assert(q[i].elem_round == (i == 2 || i == 4 ? MX_ROUND_SR : MX_ROUND_RNE));
      ck_assert(q[i].had_size == (i >= 4 ? 16u : 0u) && q[i].had_sign == (i >= 4 ? MX_HAD_SIGN_TE : MX_HAD_SIGN_NONE));
    }
  }
  ck_assert_int_eq(mx_recipe_find("nvfp4"), -1);
  ck_assert_ptr_null(mx_recipe_at(mx_recipe_count()));
  mx_spec q[6] = {{0}};
  ck_assert_int_eq(mx_recipe_operands(q, &(mx_recipe){.name = "a", .operands = "Q7:elem.round=sr"}, NULL), MX_ERR_KEY);
  ck_assert_int_eq(mx_recipe_operands(q, &(mx_recipe){.name = "a", .operands = "Q"}, NULL), MX_ERR_KEY);
}
END_TEST

START_TEST(occ_by_hand) {
  enum { N = 1000 };
  static float x[N], c[N], r[N];
  for (int i = 0; i < N; i++) x[i] = (float)((i * 7919) % N); /* 0..999 shuffled */
  size_t n;
  ck_assert_int_eq(mx_occ(c, r, &n, x, N, 0.999, MX_OCC_SYMMETRIC), MX_OK);
  ck_assert_uint_eq(n, 0); /* floor(.001 * 999) is 0: both ends stay */
  ck_assert_int_eq(mx_occ(c, r, &n, x, N, 0.99, MX_OCC_SYMMETRIC), MX_OK);
  ck_assert_uint_eq(n, 18); /* indices 9 and 990: nine on either side */
  for (int i = 0; i < N; i++) ck_assert(c[i] + r[i] == x[i] && c[i] >= 9 && c[i] <= 990);
  ck_assert_int_eq(mx_occ(c, r, &n, x, N, 0.999, MX_OCC_MSAMP), MX_OK);
  ck_assert_uint_eq(n, 1); /* the largest is never clamped: TECHNIQUES A21 */
  ck_assert(mx_occ(c, r, &n, x, N, 0.5, 0) == MX_ERR_ARG);
}
END_TEST

/* What is cut off is rounded to binary32: it is exact within a factor of two of the clamp, and beyond has an error of up to half a unit, so
 * the sum is not always x. */
START_TEST(occ_in_binary32) {
  enum { N = 4096 };
  static float x[N], c[N], r[N];
  size_t n, off = 0, near = 0;
  const float four[4] = {16777215, .5f, .25f, 0};
  ck_assert_int_eq(mx_occ(c, r, &n, four, 4, .6, MX_OCC_SYMMETRIC), MX_OK); /* ranks 1 and 2 */
  ck_assert(n == 2 && c[0] == .5f && c[3] == .25f);
  ck_assert_float_eq(c[0] + r[0], 16777214);
  ck_assert_float_eq(c[3] + r[3], 0);
  mx_data_fill(x, 1, N, &(mx_data){.kind = MX_DATA_STUDENT, .param = {2}}, 3);
  x[7] = NAN;
  ck_assert_int_eq(mx_occ(c, r, &n, x, N, .9, MX_OCC_SYMMETRIC), MX_OK);
  size_t cut = 0;
  for (size_t i = 0; i < N; i++) {
    if (isnan(x[i])) {
      ck_assert(isnan(c[i]) && r[i] == 0);
      continue;
    }
    const double exact = (double)x[i] - (double)c[i];
    ck_assert(fabs((double)r[i] - exact) <= 0x1p-24 * fabs(exact));
    cut += r[i] != 0;
    off += c[i] + r[i] != x[i];
    const float ratio = x[i] / c[i];
    if (ratio >= .5f && ratio <= 2) {
      near += ratio != 1;
      ck_assert(c[i] + r[i] == x[i]);
    }
  }
  ck_assert_uint_eq(cut, n);
  ck_assert_uint_eq(n, 2 * 409 - 1); /* floor(.1 * 4095) at either end, except for the NaN, which is last */
  ck_assert(off > 0 && near > 0);
}
END_TEST

/* TECHNIQUES 2.4, worked by hand: s* = 2.5 / 6 and the scale is .5; 5 is a tie and becomes 4. */
START_TEST(error_terms_by_hand) {
  static const float x[5] = {.7f, -1.9f, .3f, 2.5f, .09f}, y[5] = {.75f, -2, .25f, 2, 0}, bad[5] = {.7f, NAN, 0, 0, 0};
  mx_spec spec = {0};
  mx_error_terms t = {0};
  ck_assert_int_eq(mx_error_terms_add(&t, x, y, 1, 5, &spec), MX_OK);
  ck_assert_double_eq_tol(t.scale, .3784722, 2e-7);
  ck_assert_double_eq_tol(t.dead, .0081, 1e-8);
  ck_assert_double_eq_tol(t.grid, .0684722, 2e-7);
  ck_assert_double_eq_tol(t.scale_grid, -.1819444, 2e-7);
  ck_assert_double_eq(t.scale_dead, 0);
  ck_assert_double_eq_tol(t.total, .2731, 2e-7);
  ck_assert_uint_eq(t.n, 5);
  ck_assert_uint_eq(t.n_dead, 1);
  ck_assert_int_eq(mx_error_terms_add(&t, bad, y, 1, 5, &spec), MX_OK);
  ck_assert_uint_eq(t.n_left_out, 5);
  ck_assert_uint_eq(t.n, 5);
  spec.elem = MX_ELEM_NONE;
  ck_assert_int_eq(mx_error_terms_add(&t, x, y, 1, 5, &spec), MX_ERR_UNSUPPORTED);
}
END_TEST

/* The shares of the error on N(0,1) given in TECHNIQUES 2.4: RCEIL never gives less than the ideal scale, so its fifth term is 0; the floor
 * rule does. */
START_TEST(error_terms_of_normal_numbers) {
  enum { ROWS = 512, COLS = 512 };
  static float x[ROWS * COLS], y[ROWS * COLS];
  mx_data_fill(x, ROWS, COLS, &(mx_data){0}, 5);
  for (int floor_rule = 0; floor_rule < 2; floor_rule++) {
    mx_spec spec = {0};
    mx_error err;
    mx_error_terms t = {0};
    if (!floor_rule) ck_assert_int_eq(mx_spec_parse(&spec, "scale.rule=value,scale.round=up", &err), MX_OK);
    ck_assert_int_eq(mx_fake_quantize(y, x, ROWS, COLS, &spec, NULL, NULL, &err), MX_OK);
    ck_assert_int_eq(mx_error_terms_add(&t, x, y, ROWS, COLS, &spec), MX_OK);
    ck_assert_double_eq_tol(t.scale + t.dead + t.grid + t.scale_grid + t.scale_dead, t.total, 1e-9 * t.total);
    if (floor_rule) {
      ck_assert_double_eq_tol(t.scale_dead / 2 / t.total, -.0034, .0002);
      continue;
    }
    ck_assert_double_eq(t.scale_dead, 0);
    ck_assert_double_eq_tol(t.scale / t.total, 1.767, .02);
    ck_assert_double_eq_tol(t.dead / t.total, .0206, .001);
    ck_assert_double_eq_tol(t.grid / t.total, .747, .01);
    ck_assert_double_eq_tol(t.scale_grid / 2 / sqrt(t.scale * t.grid), -.668, .005);
    ck_assert_double_eq_tol((double)t.n_dead / (double)t.n, .078, .002);
  }
}
END_TEST

/* k = 2 has slopes that can be computed by hand, 1 / (2 sqrt|r|). In e2m1 between 2 and 3, r of 2.125 is -.75 and r of 2.98 is .96. */
START_TEST(dge_by_hand) {
  const mx_format *f = mx_format_find("e2m1");
  ck_assert_double_eq_tol(mx_dge(f, 2.125, 2, 9), 0.57735026918962576, 1e-14);
  ck_assert_double_eq_tol(mx_dge(f, -2.98, 2, 9), 1 / (2 * sqrt(0.96)), 1e-14);
  ck_assert(mx_dge(f, 2.5, 2, 9) == 9);
  ck_assert(mx_dge(f, 2.5 + 1e-6, 5, 3) == 3);
  for (int i = 0; i < 8; i++) ck_assert(mx_dge(f, (double[]){0, .5, 1, 1.5, 2, 3, 4, 6}[i], 5, 3) == 0.2); /* at the values of the format */
  ck_assert(mx_dge(f, 1e9, 5, 3) == 0.2 && mx_dge(f, -INFINITY, 5, 3) == 0.2);
  ck_assert(mx_dge(f, 0.25, 5, 3) == 3);
  ck_assert(isnan(mx_dge(f, NAN, 5, 3)));
}
END_TEST

START_TEST(detail_by_hand) {
  const float x[4] = {2, 0, 0, 0}, y[4] = {1, 0, 0, 0}; /* rms 1: 2 lies in octave 1 */
  static mx_detail d;
  ck_assert_int_eq(mx_detail_measure(&d, x, y, 2, 2, 0), MX_OK);
  ck_assert(d.octave_n[33] == 1 && d.octave_x[33] == 4 && d.octave_e[33] == 1);
  ck_assert(d.cell_rows == 2 && d.cell_cols == 2 && d.cell[0] == 1 && d.cell[3] == 0);
}
END_TEST

int main(void) {
  Suite *s = suite_create("ablate");
  TCase *t = tcase_create("ablate");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, sums_by_hand);
  tcase_add_test(t, nan_and_inf_are_counted);
  tcase_add_test(t, largest_relative_error);
  tcase_add_test(t, nothing_to_divide_by);
  tcase_add_test(t, same_sums_for_any_threads);
  tcase_add_test(t, same_sums_for_any_isa);
  tcase_add_test(t, counts_by_hand);
  tcase_add_test(t, factors_by_hand);
  tcase_add_test(t, counts_one_by_one);
  tcase_add_test(t, bits_by_hand);
  tcase_add_test(t, rotation_is_undone);
  tcase_add_test(t, zero_scales_do_not_saturate);
  tcase_add_test(t, prescale_is_undone);
  tcase_add_test(t, in_place);
  tcase_add_test(t, bias_of_stochastic_rounding);
  tcase_add_test(t, repeats_have_seeds_of_their_own);
  tcase_add_test(t, scales_of_tiles_count_once);
  tcase_add_test(t, spoiled_units);
  tcase_add_test(t, units_cover_the_tensor);
  tcase_add_test(t, recipes);
  tcase_add_test(t, occ_by_hand);
  tcase_add_test(t, occ_in_binary32);
  tcase_add_test(t, error_terms_by_hand);
  tcase_add_test(t, error_terms_of_normal_numbers);
  tcase_add_test(t, dge_by_hand);
  tcase_add_test(t, detail_by_hand);
  suite_add_tcase(s, t);
  return run_suite(s);
}
