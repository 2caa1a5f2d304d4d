/* Tests the reference against tables typed by hand and against the worked numbers of SPEC and TECHNIQUES, which the names of the tests give. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/run.h"
#include "mxgold/mxgold.h"
#include "ref/chain.h"
#include "ref/ref.h"

#include "spec/e2m1.h"
#include "spec/e4m3.h"
#include "spec/e5m2.h"
#include "spec/e8m0.h"
#include "spec/ue5m3.h"

/* ---- helpers ---- */

static uint64_t code_of(const mx_format *f, double x, int round, int overflow) {
  const mx_encoding how = {.round = round, .overflow = overflow};
  return ref_encode(f, x, &how, 0);
}

static uint64_t rne(const mx_format *f, double x) { return code_of(f, x, MX_ROUND_RNE, MX_OVERFLOW_SATURATE); }

static void same(const mx_format *f, const double *table) {
  for (uint64_t c = 0; c >> f->bits == 0; c++) {
    double v = ref_decode(f, c);
    if (isnan(table[c]))
      ck_assert_msg(isnan(v), "%s %#llx: %a is not NaN", f->name, (unsigned long long)c, v);
    else
      ck_assert_msg(memcmp(&v, &table[c], 8) == 0, "%s %#llx: %a, table %a", f->name, (unsigned long long)c, v, table[c]);
  }
}

static mx_spec parse(const char *text) {
  mx_spec spec = {0};
  mx_error err = {0};
  ck_assert_msg(mx_spec_parse(&spec, text, &err) == MX_OK, "%s", err.text);
  return spec;
}

/* Quantises rows x cols values; the caller frees the tensor. */
static mx_tensor quantized(const mx_spec *spec, const float *x, size_t rows, size_t cols) {
  mx_tensor t;
  mx_error err = {0};
  ck_assert_int_eq(ref_tensor_alloc(&t, rows, cols, spec), MX_OK);
  ck_assert_msg(ref_quantize(&t, x, rows, cols, cols, spec, NULL, &err) == MX_OK, "%s", err.text);
  return t;
}

/* Compares the dequantised values of one row with `want`, and its first scale byte with `scale`. */
static void row_gives(const char *keys, const float *x, size_t n, int scale, const float *want) {
  const mx_spec spec = parse(keys);
  mx_tensor t = quantized(&spec, x, 1, n);
  float *y = malloc(n * sizeof *y);
  ck_assert_int_eq(ref_dequantize(y, n, &t, &spec, NULL), MX_OK);
  if (scale >= 0) ck_assert_msg(t.scales[0] == scale, "%s: scale %#x, want %#x", keys, t.scales[0], (unsigned)scale);
  for (size_t i = 0; i < n && want; i++)
    ck_assert_msg(y[i] == want[i], "%s: value %zu is %.9g, want %.9g", keys, i, (double)y[i], (double)want[i]);
  free(y);
  ref_tensor_free(&t);
}

static int scale_byte(const char *keys, float amax) {
  const mx_spec spec = parse(keys);
  const float x[32] = {amax};
  mx_tensor t = quantized(&spec, x, 1, 32);
  int byte = t.scales[0];
  ref_tensor_free(&t);
  return byte;
}

/* ---- SPEC 1 and 2 ---- */

START_TEST(spec_1_tables_typed_by_hand) {
  same(ref_elem_format(MX_ELEM_E2M1), spec_e2m1);
  same(ref_elem_format(MX_ELEM_E4M3), spec_e4m3);
  same(ref_elem_format(MX_ELEM_E5M2), spec_e5m2);
  same(ref_scale_format(MX_SCALE_E8M0), spec_e8m0);
  same(ref_scale_format(MX_SCALE_UE5M3), spec_ue5m3);
}
END_TEST

START_TEST(spec_1_largest_and_smallest) {
  const struct {
    const mx_format *f;
    double max, min;
  } rows[] = {{ref_elem_format(MX_ELEM_E2M1), 6, 0.5},
              {ref_elem_format(MX_ELEM_E2M3), 7.5, 0.125},
              {ref_elem_format(MX_ELEM_E3M2), 28, 0.0625},
              {ref_elem_format(MX_ELEM_E4M3), 448, 0x1p-9},
              {ref_elem_format(MX_ELEM_E5M2), 57344, 0x1p-16},
              {ref_elem_format(MX_ELEM_E4M3FNUZ), 240, 0x1p-10},
              {ref_elem_format(MX_ELEM_E5M2FNUZ), 57344, 0x1p-17},
              {ref_elem_format(MX_ELEM_INT8), 127.0 / 64, 0x1p-6},
              {ref_elem_format(MX_ELEM_E1M2), 1.75, 0.25},
              {ref_scale_format(MX_SCALE_E8M0), 0x1p127, 0x1p-127},
              {ref_scale_format(MX_SCALE_E4M3), 448, 0x1p-9},
              {ref_scale_format(MX_SCALE_UE5M3), 114688, 0x1p-17},
              {ref_scale_format(MX_SCALE_UE5M3_61440), 61440, 0x1p-17},
              {ref_scale_format(MX_SCALE_UE5M3_122880), 122880, 0x1p-17},
              {ref_scale_format(MX_SCALE_E8M3), 0x1.ep127, 0x1p-129},
              {ref_scale_format(MX_SCALE_E6M2), 49152, 0x1p-48}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ck_assert_msg(ref_format_max(rows[i].f) == rows[i].max, "%s: largest %a", rows[i].f->name, ref_format_max(rows[i].f));
    ck_assert_msg(ref_format_min(rows[i].f) == rows[i].min, "%s: smallest %a", rows[i].f->name, ref_format_min(rows[i].f));
  }
  ck_assert(ref_decode(ref_elem_format(MX_ELEM_INT8), 0x80) == -2);
  ck_assert(isnan(ref_decode(ref_elem_format(MX_ELEM_E4M3FNUZ), 0x80)));
  ck_assert(isnan(ref_decode(ref_scale_format(MX_SCALE_UE5M3_61440), 0xF8)));
}
END_TEST

START_TEST(spec_2_ties_of_e2m1) {
  const double ties[] = {.25, .75, 1.25, 1.75, 2.5, 3.5, 5};
  const double even[] = {0, 1, 1, 2, 2, 4, 4}, away[] = {.5, 1, 1.5, 2, 3, 4, 6}, zero[] = {0, .5, 1, 1.5, 2, 3, 4};
  const mx_format *f = ref_elem_format(MX_ELEM_E2M1);
  for (int i = 0; i < 7; i++)
    for (int s = -1; s <= 1; s += 2) {
      ck_assert(ref_decode(f, rne(f, s * ties[i])) == s * even[i]);
      ck_assert(ref_decode(f, code_of(f, s * ties[i], MX_ROUND_RNA, 0)) == s * away[i]);
      ck_assert(ref_decode(f, code_of(f, s * ties[i], MX_ROUND_RTZ_TIE, 0)) == s * zero[i]);
    }
}
END_TEST

/* Tests the midpoint between every two neighbours of every format, and the numbers next to it. */
START_TEST(spec_2_every_tie_of_every_format) {
  for (int k = 0; k < MX_ELEM_NONE + MX_SCALE_BF16; k++) {
    const mx_format *f = k < MX_ELEM_NONE ? ref_elem_format(k) : ref_scale_format(k - MX_ELEM_NONE);
    for (uint64_t c = 0; c < f->max_code; c++) {
      const double low = ref_decode(f, c), high = ref_decode(f, c + 1), mid = (low + high) / 2;
      ck_assert_uint_eq(rne(f, low), c);
      ck_assert_uint_eq(rne(f, mid), c % 2 ? c + 1 : c);
      ck_assert_uint_eq(rne(f, nextafter(mid, 0)), c);
      ck_assert_uint_eq(rne(f, nextafter(mid, INFINITY)), c + 1);
      ck_assert_uint_eq(code_of(f, mid, MX_ROUND_RNA, 0), c + 1);
      ck_assert_uint_eq(code_of(f, mid, MX_ROUND_RTZ_TIE, 0), c);
      ck_assert_uint_eq(code_of(f, nextafter(high, 0), MX_ROUND_RTZ, 0), c);
      ck_assert_uint_eq(code_of(f, nextafter(high, 0), MX_ROUND_RTN, 0), c);
      ck_assert_uint_eq(code_of(f, nextafter(low, INFINITY), MX_ROUND_RTP, 0), c + 1);
    }
  }
}
END_TEST

START_TEST(spec_2_overflow_and_specials) {
  const mx_format *e4m3 = ref_elem_format(MX_ELEM_E4M3), *e5m2 = ref_elem_format(MX_ELEM_E5M2), *e2m1 = ref_elem_format(MX_ELEM_E2M1);
  const double past = nextafterf(464, INFINITY);
  ck_assert_uint_eq(code_of(e4m3, 464, MX_ROUND_RNE, MX_OVERFLOW_IEEE), 0x7E);
  ck_assert_uint_eq(code_of(e4m3, past, MX_ROUND_RNE, MX_OVERFLOW_SATURATE), 0x7E);
  ck_assert_uint_eq(code_of(e4m3, past, MX_ROUND_RNE, MX_OVERFLOW_IEEE), 0x7F);
  ck_assert_uint_eq(code_of(e5m2, -61440, MX_ROUND_RNE, MX_OVERFLOW_IEEE), 0xFC);
  ck_assert_uint_eq(code_of(e5m2, 65536, MX_ROUND_RTZ, MX_OVERFLOW_IEEE), 0x7B); /* IEEE 754 7.4 */
  ck_assert_uint_eq(rne(e2m1, INFINITY), 7);
  ck_assert_uint_eq(rne(e2m1, -0.0), 8);
  ck_assert_uint_eq(rne(e2m1, -0.25), 8);
  ck_assert_uint_eq(rne(e2m1, NAN), 7);
  ck_assert_uint_eq(rne(ref_elem_format(MX_ELEM_INT8), -100), 0x81);
  ck_assert_uint_eq(rne(ref_elem_format(MX_ELEM_E4M3FNUZ), -0x1p-20), 0);
  const mx_encoding to_nan = {.saturate_to = MX_SATURATE_TO_NAN};
  ck_assert_uint_eq(ref_encode(e4m3, -1e6, &to_nan, 0), 0xFF);
}
END_TEST

START_TEST(techniques_5_1_ue5m3) {
  const mx_format *f = ref_scale_format(MX_SCALE_UE5M3);
  ck_assert(ref_decode(f, 0x07) == 7 * 0x1p-17);
  const double in[] = {0x1p-18, 1.5 * 0x1p-17, 2.5 * 0x1p-17, 1.0625, 1.1875, 100000, 120000, 1.95, 1.1 * 0x1p-16};
  const double out[] = {0, 0x1p-16, 0x1p-16, 1, 1.25, 98304, 114688, 2, 0x1p-16};
  for (size_t i = 0; i < sizeof in / sizeof *in; i++) ck_assert_msg(ref_decode(f, rne(f, in[i])) == out[i], "%g", in[i]);
}
END_TEST

START_TEST(techniques_5_2_e4m3) {
  const mx_format *f = ref_scale_format(MX_SCALE_E4M3);
  const double in[] = {464, 432, 0x1p-10, 1.5 * 0x1p-9}, out[] = {448, 448, 0, 0x1p-8};
  for (size_t i = 0; i < 4; i++) ck_assert_msg(ref_decode(f, rne(f, in[i])) == out[i], "%g", in[i]);
}
END_TEST

/* ---- SPEC 3 ---- */

START_TEST(spec_3_1_scales_of_amax) {
  static const char *rules[] = {"",
                                "scale.rule=value scale.round=up",
                                "scale.rule=even",
                                "scale.rule=value",
                                "scale.rule=value scale.form=encode",
                                "scale.rule=value scale.form=encode scale.round=up",
                                "scale.rule=value scale.form=encode scale.round=up scale.max=pow2"};
  static const struct {
    float amax;
    double scale[7];
  } rows[] = {{1.0f, {.25, .25, .25, .125, .125, .125, .25}},
              {3.5f, {.5, 1, 1, .5, .5, .5, .5}},
              {4.0f, {1, 1, 1, .5, .5, .5, 1}},
              {5.0f, {1, 1, 1, 1, 1, .5, 1}},
              {6.5f, {1, 2, 1, 1, 1, 1, 1}},
              {7.0f, {1, 2, 2, 1, 1, 1, 1}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int k = 0; k < 7; k++) {
      double v = ldexp(1, scale_byte(rules[k], rows[i].amax) - 127);
      if (k >= 4) v = 1 / v;
      ck_assert_msg(v == rows[i].scale[k], "%s: amax %g: %g, want %g", rules[k], (double)rows[i].amax, v, rows[i].scale[k]);
    }
}
END_TEST

START_TEST(spec_3_1_decode_against_encode) {
  const float amax[] = {5, 7, 2.5f};
  const double decode[] = {.8125, 1.125, .40625}, encode[] = {1.25, .875, 2.5};
  const mx_format *f = ref_scale_format(MX_SCALE_E4M3);
  for (int i = 0; i < 3; i++) {
    ck_assert(ref_decode(f, (uint64_t)scale_byte("scale=e4m3 scale.rule=value", amax[i])) == decode[i]);
    ck_assert(ref_decode(f, (uint64_t)scale_byte("scale=e4m3 scale.rule=value scale.form=encode", amax[i])) == encode[i]);
  }
}
END_TEST

/* g = 10 comes from a second row. */
START_TEST(spec_3_3_tensor_scale) {
  static const struct {
    const char *keys;
    int byte;
    double value[4];
  } rows[] = {
      {"scale=e4m3 scale.rule=value scale.form=encode tensor.norm=unit block=1x4", -1, {.625, -5.0 / 3, .625 / 3, 2.5}},
      {"scale=e4m3 scale.rule=value scale.form=encode tensor.norm=chmiel block=1x4", -1, {.761905, -1.52381, .380952, 2.285714}},
      {"scale=e4m3 scale.rule=value scale.form=encode tensor.norm=seed004 block=1x4", -1, {.634921, -1.693122, .21164, 2.539683}},
      {"scale=e4m3 scale.rule=value tensor.norm=nv block=1x4", 0x6E, {.625, -5.0 / 3, .625 / 3, 2.5}},
      {"scale=e4m3 scale.rule=value tensor.norm=nv chain=exact block=1x4", 0x6E, {.625, -5.0 / 3, .625 / 3, 2.5}},
  };
  const float x[8] = {.7f, -1.9f, .3f, 2.5f, 10};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const mx_spec spec = parse(rows[i].keys);
    mx_tensor t = quantized(&spec, x, 2, 4);
    float y[8];
    ck_assert_int_eq(ref_dequantize(y, 4, &t, &spec, NULL), MX_OK);
    for (int k = 0; k < 4; k++) ck_assert_msg(fabs((double)y[k] - rows[i].value[k]) < 1e-6, "%s: %g", rows[i].keys, (double)y[k]);
    if (rows[i].byte >= 0) ck_assert_int_eq(t.scales[0], rows[i].byte);
    ref_tensor_free(&t);
  }
}
END_TEST

START_TEST(spec_3_2_short_block_zero_block_empty_tensor) {
  const mx_spec spec = {0};
  const float x[34] = {6, 0, -0.0f, [32] = -0.0f, [33] = 0};
  mx_tensor t = quantized(&spec, x, 1, 34);
  ck_assert_uint_eq(t.scale_cols, 2);
  ck_assert_uint_eq(t.cols_padded, 64);
  ck_assert_uint_eq(t.codes[0], 0x07);
  ck_assert_uint_eq(t.codes[1], 0x08);
  ck_assert_uint_eq(t.scales[1], 0);
  ck_assert_uint_eq(t.codes[16], 0x08);
  ref_tensor_free(&t);
  for (size_t rows = 0; rows < 2; rows++) {
    t = quantized(&spec, x, rows, rows ? 0 : 5);
    ref_tensor_free(&t);
  }
}
END_TEST

START_TEST(spec_3_log2f_differs_on_7456_floats) {
  unsigned normal = 0, subnormal = 0;
  for (int k = -148; k <= 128; k++) /* rounding can reach an integer only just below a power of two */
    for (float x = nextafterf(k > 127 ? INFINITY : ldexpf(1, k), 0);; x = nextafterf(x, 0)) {
      if (x == 0 || ref_log2f_int(x, 0) == ilogbf(x)) break;
      if (x < 0x1p-126f)
        subnormal++;
      else
        normal++;
    }
  ck_assert_uint_eq(normal, 7404);
  ck_assert_uint_eq(subnormal, 52);
  ck_assert_int_eq(ref_log2f_int(1, 0), 0);
  ck_assert_int_eq(ref_log2f_int(0x1p-149f, 1), -149);
  ck_assert_int_eq(ref_log2f_int(5, 1), 3);
}
END_TEST

START_TEST(chains_every_row_is_read) {
  for (int chain = MX_CHAIN_EXACT + 1; chain < MX_CHAIN_COUNT; chain++) {
    ref_chain c;
    ck_assert_msg(ref_chain_read(&c, chain), "row %d of chains.def does not parse", chain);
    ck_assert(c.scale.n > 0 && c.element.n > 0);
  }
}
END_TEST

START_TEST(keys_exclude_each_other_as_the_library_says) {
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec spec;
    mx_error err = {0};
    ck_assert_int_eq(mx_preset_find(&spec, mx_preset_at(i)->name, NULL), MX_OK);
    ck_assert_msg(ref_spec_check(&spec, &err) == MX_OK, "%s: %s", mx_preset_at(i)->name, err.text);
  }
}
END_TEST

/* ---- TECHNIQUES ---- */

START_TEST(techniques_1_4_encode_scale) {
  const float x[4] = {.7f, -1.9f, .3f, 2.5f}, want[4] = {.8f, -1.6f, .4f, 2.4f};
  row_gives("scale=e4m3 scale.rule=value scale.form=encode elem.arith=mul32 block=1x4", x, 4, 0x42,
            want); /* .7f * 2.5f rounds to the tie 1.75 */
}
END_TEST

START_TEST(techniques_1_7_zero_scales) {
  const float large[4] = {1e4f}, small[4] = {1e-3f};
  row_gives("scale=e4m3 scale.rule=value scale.form=encode scale.zero=one block=1x4", large, 4, 0x38, (float[4]){6});
  row_gives("scale=e4m3 scale.rule=value scale.form=encode scale.zero=min block=1x4", large, 4, 0x01, (float[4]){3072});
  row_gives("scale=e4m3 scale.rule=value scale.zero=one block=1x4", small, 4, 0x38, (float[4]){0});
  row_gives("scale=e4m3 scale.rule=value scale.zero=min block=1x4", small, 4, 0x01, (float[4]){0x1p-10f});
}
END_TEST

/* A = 2688 makes te's block scale amax / 6. 0.0055 / 6 is below half of the smallest e4m3, 2^-10. Raised to byte 3 = 3 * 2^-9 it is no
 * longer zero: 0.0055 / (3 * 2^-9) = 0.94 rounds to 1, which is code 2. */
START_TEST(spec_3_2_min_byte_lifts_a_zero_scale) {
  const float x[8] = {2688, 0, 0, 0, 0.0055f};
  const mx_spec spec = parse("scale=e4m3 scale.rule=value chain=te tensor.norm=nv scale.zero=chain scale.min_byte=3 block=1x4");
  mx_tensor t = quantized(&spec, x, 2, 4);
  ck_assert_uint_eq(t.scales[1], 3);
  ck_assert_uint_eq(t.codes[t.code_stride], 2);
  ref_tensor_free(&t);
}
END_TEST

/* amd-quark 0.13, AmdFP4Spec: a NaN goes through e5m3's bit arithmetic as if it were a number. torch's vector code makes it 0x7FFFFFFF,
 * which rounds up to byte 0xF8, 2^16. (Its scalar code, for blocks beyond a multiple of sixteen, leaves 0x7FC00000, byte 0xFC.) Elements are
 * divided by that value: 2^16 gives code 2, a NaN 7, an Inf 6. */
START_TEST(quark_e5m3_block_with_a_nan) {
  const float x[16] = {1, 65536, NAN, INFINITY, -131072};
  mx_spec spec;
  ck_assert_int_eq(mx_preset_find(&spec, "quark-e5m3", NULL), MX_OK);
  mx_tensor t = quantized(&spec, x, 1, 16);
  ck_assert_uint_eq(t.scales[0], 0xF8);
  ck_assert_uint_eq(t.codes[0], 0x20);
  ck_assert_uint_eq(t.codes[1], 0x67);
  ck_assert_uint_eq(t.codes[2], 0x0C);
  ref_tensor_free(&t);
}
END_TEST

START_TEST(techniques_4_2_prescale) {
  const float x[4] = {7.9f, -3.3f, .2f, 5.1f};
  row_gives("elem.prescale=0.75 block=1x4", x, 4, 127, (float[4]){6, -2, 0, 4});
}
END_TEST

START_TEST(techniques_4_4_quest) {
  /* half +a, half -a: std is a */
  const struct {
    float a;
    double scale;
  } rows[] = {{1.0f, .25}, {1.03f, .5}, {2.06f, 1}};
  const mx_spec spec = parse("scale.rule=quest");
  for (int i = 0; i < 3; i++) {
    float x[32];
    for (int k = 0; k < 32; k++) x[k] = k % 2 ? rows[i].a : -rows[i].a;
    mx_tensor t = quantized(&spec, x, 1, 32);
    ck_assert_msg(ldexp(1, t.scales[0] - 127) == rows[i].scale, "std %g: byte %d", (double)rows[i].a, t.scales[0]);
    ref_tensor_free(&t);
  }
}
END_TEST

START_TEST(techniques_4_5_four_over_six) {
  const float x[4] = {10, 20, 30, 40};
  row_gives("scale=e4m3 scale.rule=value select=foursix block=1x4", x, 4, 0x52, x);
  row_gives("scale=e4m3 scale.rule=value block=1x4", x, 4, 0x4D, (float[4]){9.75f, 19.5f, 26, 39});
}
END_TEST

/* TECHNIQUES 0.1 no. 16. amax 6.375 over 6 is the tie 1.0625, which goes down to 1, so the element is clipped. Over rnd(6 * 0.9411764) it is
 * 1.128906, and under the scale 1.125 it is not clipped. A scale of the whole tensor (K = F * M) leaves the same room at the top: 10 over
 * 448 F. */
START_TEST(techniques_0_1_margin) {
  const float x[16] = {6.375f, 1}, y[16] = {6, 1}, with[16] = {6.75f, 1.125f};
  row_gives("scale=e4m3 block=1x16 scale.rule=value", x, 16, 0x38, y);
  row_gives("scale=e4m3 block=1x16 scale.rule=value scale.margin=0.9411764", x, 16, 0x39, with);
  const mx_spec spec = parse("scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv chain=exact scale.margin=0.9411764");
  float stored;
  ck_assert_int_eq(ref_tensor_scale(&stored, 10, &spec), MX_OK);
  ck_assert(stored == 10 / (5.64705849f * 448)); /* rnd(6 * 0.9411764), times 448 */
}
END_TEST

START_TEST(techniques_4_7_rceil) {
  const float amax[] = {6, 6.0000005f, 3, 5, 7, 448};
  const int byte[] = {127, 128, 126, 127, 128, 134};
  for (int i = 0; i < 6; i++) ck_assert_int_eq(scale_byte("scale.rule=value scale.round=up scale.arith=recip32", amax[i]), byte[i]);
  for (int k = -120; k <= 120; k++) ck_assert_int_eq(scale_byte("scale.rule=value scale.round=up scale.arith=recip32", ldexpf(6, k)), 127 + k);
}
END_TEST

START_TEST(techniques_4_9_hif4) {
  const float x[64] = {7, -3.5f, 1.2f, .3f, .9f, -.6f, .1f, 0, 2, 1.9f, -1, .4f, .2f, .1f, -.05f, 0, .5f};
  const float y[64] = {7, -4, 1, 0, 1, -.5f, 0, 0, 2, 2, -1, .5f, .25f, 0, 0, 0, .5f};
  row_gives("elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4", x, 64, 48 << 2, y);
  const mx_spec spec = parse("elem=e1m2 scale=e6m2 block=1x64 scale.rule=hif4");
  mx_tensor t = quantized(&spec, x, 1, 64);
  ck_assert_uint_eq(t.micro[0], 1);
  ck_assert_uint_eq(t.micro[1], 5);
  ck_assert_uint_eq(t.micro[2], 0);
  ref_tensor_free(&t);
}
END_TEST

/* ---- SPEC 5, 6, 7 ---- */

START_TEST(spec_5_hadamard) {
  float x[16] = {8}, y[16];
  ck_assert_int_eq(ref_hadamard(y, 16, x, 1, 16, 16, 16, MX_HAD_SIGN_NONE, NULL, 0), MX_OK);
  for (int i = 0; i < 16; i++) ck_assert(y[i] == 2);
  memset(x, 0, sizeof x);
  x[3] = 8;
  ck_assert_int_eq(ref_hadamard(y, 16, x, 1, 16, 16, 16, MX_HAD_SIGN_TE, NULL, 0), MX_OK);
  for (int i = 0; i < 16; i++) ck_assert(y[i] == (i % 4 == 0 || i % 4 == 3 ? -2 : 2));
  const float want[16] = {0, -2, -4, 0, -8, 0, 0, 0, -16};
  for (int i = 0; i < 16; i++) x[i] = (float)i - 7.5f;
  ck_assert_int_eq(ref_hadamard(x, 16, x, 1, 16, 16, 16, MX_HAD_SIGN_NONE, NULL, 0), MX_OK);
  for (int i = 0; i < 16; i++) ck_assert(x[i] == want[i]);
  float two[2] = {1, 0}; /* rnd_f32(1 / sqrt(2)) */
  ck_assert_int_eq(ref_hadamard(two, 2, two, 1, 2, 2, 2, MX_HAD_SIGN_NONE, NULL, 0), MX_OK);
  ck_assert(two[0] == 0x1.6a09e6p-1f);
  /* Back: {8, 0, ...} times H is 2 everywhere, and TransformerEngine's signs come last. */
  static const float back[16] = {2, 2, 2, -2, 2, -2, -2, -2, -2, -2, -2, 2, -2, 2, -2, -2};
  memset(x, 0, sizeof x);
  x[0] = 8;
  ck_assert_int_eq(ref_hadamard_back(y, 16, x, 1, 16, 16, 16, MX_HAD_SIGN_TE, NULL, 0), MX_OK);
  for (int i = 0; i < 16; i++) ck_assert(y[i] == back[i]);
  ck_assert_int_eq(ref_hadamard_back(y, 16, x, 1, 15, 16, 16, MX_HAD_SIGN_TE, NULL, 0), MX_ERR_SHAPE);
  float inf[2] = {INFINITY, INFINITY}; /* the resulting NaN is canonical */
  uint32_t bits;
  ck_assert_int_eq(ref_hadamard(inf, 2, inf, 1, 2, 2, 2, MX_HAD_SIGN_NONE, NULL, 0), MX_OK);
  memcpy(&bits, &inf[1], 4);
  ck_assert_uint_eq(bits, 0x7FC00000);
}
END_TEST

START_TEST(spec_6_philox_known_answer) {
  const uint32_t want[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}; /* Random123 kat_vectors: counter 0, key 0 */
  for (uint64_t i = 0; i < 4; i++) ck_assert_uint_eq(ref_random(0, 0, i), want[i]);
  ck_assert_uint_eq(ref_random_lfsr(0x80000001), 2 ^ 197);
}
END_TEST

/* The share of the 2^r integers that round 1 + d / 2, between the e2m1 values 1 and 1.5, up. */
static double probability(double d, int r, int mode) {
  const mx_encoding how = {.round = MX_ROUND_SR, .sr_bits = r, .sr_mode = mode};
  unsigned up = 0;
  for (uint32_t b = 0; b < 1u << r; b++) up += ref_encode(ref_elem_format(MX_ELEM_E2M1), 1 + d / 2, &how, b) == 3;
  return (double)up / (double)(1u << r);
}

START_TEST(spec_6_probabilities) {
  const struct {
    double d;
    int r;
    double fastest, fast, src;
  } rows[] = {{.3, 4, .25, .3125, .3125}, {.125, 2, 0, .25, 0}, {.375, 2, .25, .5, .5}};
  for (int i = 0; i < 3; i++) {
    ck_assert(probability(rows[i].d, rows[i].r, MX_SR_FASTEST) == rows[i].fastest);
    ck_assert(probability(rows[i].d, rows[i].r, MX_SR_FAST) == rows[i].fast);
    ck_assert(probability(rows[i].d, rows[i].r, MX_SR_SRC) == rows[i].src);
  }
}
END_TEST

/* Every r up to 8 and every d on a grid of 2^-12, compared with the integer rules of SPEC 6. */
START_TEST(spec_6_exhaustive) {
  for (int r = 1; r <= 8; r++)
    for (unsigned n = 0; n < 4096; n++)
      for (uint32_t b = 0; b < 1u << r; b++) {
        const unsigned one = 1u << r, scaled = n * one, whole = scaled / 4096, rest = scaled % 4096;
        const unsigned up_even = rest > 2048 || (rest == 2048 && whole % 2), up_odd = rest > 2048 || (rest == 2048 && whole % 2 == 0);
        const int want[] = {[MX_SR_FAST] = n * 2 * one / 4096 + 2 * b + 1 >= 2 * one,
                            [MX_SR_FASTEST] = whole + b >= one,
                            [MX_SR_SRC] = whole + up_even + b >= one,
                            [MX_SR_ODD] = whole + up_odd + b >= one};
        for (int mode = 0; mode < MX_SR_COUNT; mode++) {
          const mx_encoding how = {.round = MX_ROUND_SR, .sr_bits = r, .sr_mode = mode};
          const int up = ref_encode(ref_elem_format(MX_ELEM_E2M1), 1 + n / 8192.0, &how, b) == 3;
          if (up != want[mode]) ck_abort_msg("mode %d, r %d, d %u/4096, b %u: %d", mode, r, n, b, up);
        }
      }
}
END_TEST

START_TEST(spec_7_layouts_are_bijections) {
  for (int layout = 0; layout < MX_LAYOUT_COUNT; layout++)
    for (size_t rows = 1; rows < 300; rows += 37)
      for (size_t kb = 1; kb < 20; kb += 3) {
        const size_t size = ref_layout_size(layout, rows, kb);
        uint8_t *in = malloc(rows * kb), *there = malloc(size), *back = malloc(rows * kb), *seen = calloc(size, 1);
        for (size_t i = 0; i < rows * kb; i++) in[i] = (uint8_t)(i * 7 + 1);
        for (size_t r = 0; r < rows; r++)
          for (size_t k = 0; k < kb; k++) {
            const size_t at = ref_layout_index(layout, rows, kb, r, k);
            ck_assert(at < size && !seen[at]++);
          }
        ref_layout_pack(there, layout, in, rows, kb, 0x5A);
        ref_layout_unpack(back, layout, there, rows, kb);
        ck_assert(memcmp(in, back, rows * kb) == 0);
        free(in), free(there), free(back), free(seen);
      }
  ck_assert_uint_eq(ref_layout_index(MX_LAYOUT_NV128X4, 256, 8, 33, 2), 1 * 16 + 1 * 4 + 2);
  ck_assert_uint_eq(ref_layout_index(MX_LAYOUT_AMD_SHUFFLE, 64, 16, 17, 5), 0 * 256 + 1 * 64 + 1 * 4 + 1 * 2 + 1);
}
END_TEST

START_TEST(spec_7_nibbles_and_six_bits) {
  const uint8_t codes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  uint8_t out[8], back[8];
  const struct {
    int nibble;
    uint8_t bytes[4];
  } rows[] = {{MX_NIBBLE_LOW_FIRST, {0x21, 0x43, 0x65, 0x87}},
              {MX_NIBBLE_HIGH_FIRST, {0x12, 0x34, 0x56, 0x78}},
              {MX_NIBBLE_HALF_BLOCK, {0x51, 0x62, 0x73, 0x84}}};
  for (int i = 0; i < 3; i++) {
    ref_pack4(out, codes, 8, rows[i].nibble, 8);
    ck_assert(memcmp(out, rows[i].bytes, 4) == 0);
    ref_unpack4(back, out, 8, rows[i].nibble, 8);
    ck_assert(memcmp(back, codes, 8) == 0);
  }
  ref_pack6(out, codes, 8);
  ck_assert(out[0] == (1 | 2 << 6) && out[1] == (3 << 4));
  ref_unpack6(back, out, 8);
  ck_assert(memcmp(back, codes, 8) == 0);
}
END_TEST

START_TEST(transposed_is_the_transpose) {
  float x[6 * 40], t[40 * 6];
  for (int r = 0; r < 6; r++)
    for (int c = 0; c < 40; c++) t[c * 6 + r] = x[r * 40 + c] = (float)((r * 31 + c * 17) % 29 - 14) / 3;
  const mx_spec spec = parse("elem.round=sr seed=3");
  mx_tensor a = quantized(&spec, t, 40, 6), b;
  ck_assert_int_eq(ref_tensor_alloc(&b, 40, 6, &spec), MX_OK);
  ck_assert_int_eq(ref_quantize_transposed(&b, x, 6, 40, 40, &spec, NULL, NULL), MX_OK);
  ck_assert(memcmp(a.codes, b.codes, 40 * a.code_stride) == 0 && memcmp(a.scales, b.scales, 40 * a.scale_cols) == 0);
  ref_tensor_free(&a);
  ref_tensor_free(&b);
}
END_TEST

int main(void) {
  Suite *s = suite_create("ref");
  TCase *t = tcase_create("worked numbers");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, spec_1_tables_typed_by_hand);
  tcase_add_test(t, spec_1_largest_and_smallest);
  tcase_add_test(t, spec_2_ties_of_e2m1);
  tcase_add_test(t, spec_2_every_tie_of_every_format);
  tcase_add_test(t, spec_2_overflow_and_specials);
  tcase_add_test(t, techniques_5_1_ue5m3);
  tcase_add_test(t, techniques_5_2_e4m3);
  tcase_add_test(t, spec_3_1_scales_of_amax);
  tcase_add_test(t, spec_3_1_decode_against_encode);
  tcase_add_test(t, spec_3_3_tensor_scale);
  tcase_add_test(t, spec_3_2_short_block_zero_block_empty_tensor);
  tcase_add_test(t, spec_3_log2f_differs_on_7456_floats);
  tcase_add_test(t, chains_every_row_is_read);
  tcase_add_test(t, keys_exclude_each_other_as_the_library_says);
  tcase_add_test(t, techniques_1_4_encode_scale);
  tcase_add_test(t, techniques_1_7_zero_scales);
  tcase_add_test(t, spec_3_2_min_byte_lifts_a_zero_scale);
  tcase_add_test(t, quark_e5m3_block_with_a_nan);
  tcase_add_test(t, techniques_4_2_prescale);
  tcase_add_test(t, techniques_4_4_quest);
  tcase_add_test(t, techniques_4_5_four_over_six);
  tcase_add_test(t, techniques_0_1_margin);
  tcase_add_test(t, techniques_4_7_rceil);
  tcase_add_test(t, techniques_4_9_hif4);
  tcase_add_test(t, spec_5_hadamard);
  tcase_add_test(t, spec_6_philox_known_answer);
  tcase_add_test(t, spec_6_probabilities);
  tcase_add_test(t, spec_6_exhaustive);
  tcase_add_test(t, spec_7_layouts_are_bijections);
  tcase_add_test(t, spec_7_nibbles_and_six_bits);
  tcase_add_test(t, transposed_is_the_transpose);
  suite_add_tcase(s, t);
  return run_suite(s);
}
