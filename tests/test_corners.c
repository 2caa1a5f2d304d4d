/* Tests corner cases of unusual keys together, which were found when two implementations disagreed about a block: the bytes typed by hand
 * from SPEC 3 against the reference model and the library on every ISA. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/oracles.h"
#include "lib/run.h"

typedef struct corner {
  const char *keys;
  size_t cols;
  uint32_t x[4];      /* the bits of the single row */
  const char *scales; /* the first bytes, in hex */
  const char *codes;
} corner;

#define FOURSIX_EQUAL                                                                                                                          \
  "scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv chain=exact tensor.store=amax tensor.given=7 select=foursix select.error=mae"

static const corner corners[] = {
    /* y past binary16 is Inf, as far from every value: the first code of a scan (x / 2^-16, 5017.6 / 2^-17) */
    {"scale.max_byte=111 elem.round=scan_y input.dtype=float16", 1, {0x3f800000}, "6f", "00"},
    {"elem=e5m2 scale.rule=value scale.max_byte=110 elem.round=scan_y input.dtype=float16", 2, {0x459cccd0, 0x40000000}, "6e", "0000"},
    {"elem=int8 scale.max_byte=100 elem.round=scan_y input.dtype=float16", 2, {0x3f800000, 0xbf800000}, "64", "0000"},
    /* toward zero a number stays the largest one, but a y that overflowed to Inf is an Inf: 2e37 / 2^-101, 1e4 / 2^-7, 3e38 / 2^-9 */
    {"elem=e5m2 scale.max_byte=26 elem.round=rtz elem.overflow=ieee elem.arith=div32", 2, {0x7d70bdc2, 0xfd70bdc2}, "1a", "7cfc"},
    {"elem=e5m2 scale.max_byte=26 elem.round=rtz elem.overflow=ieee", 2, {0x7d70bdc2, 0xfd70bdc2}, "1a", "7bfb"},
    {"elem=e5m2 scale.max_byte=26 elem.round=rtz elem.overflow=ieee elem.arith=recip32", 2, {0x7d70bdc2, 0xfd70bdc2}, "1a", "7cfc"},
    {"elem=e5m2 scale.max_byte=26 elem.round=rtz elem.overflow=ieee input.dtype=bfloat16", 2, {0x7d700000, 0xfd700000}, "1a", "7cfc"},
    {"elem=e4m3 scale.max_byte=26 elem.round=rtz elem.overflow=ieee elem.arith=div32", 2, {0x7d70bdc2, 0xfd70bdc2}, "1a", "7fff"},
    {"elem=e5m2fnuz scale.max_byte=26 elem.round=rtz elem.overflow=ieee elem.arith=div32", 2, {0x7d70bdc2, 0xfd70bdc2}, "1a", "8080"},
    {"elem=e5m2 scale.max_byte=120 elem.round=rtz elem.overflow=ieee input.dtype=float16", 2, {0x461c4000, 0xc61c4000}, "78", "7cfc"},
    {"elem=e5m2 scale.max_byte=110 elem.round=rtn elem.overflow=ieee input.dtype=float16", 2, {0x459cccd0, 0xc59cccd0}, "6e", "7cfc"},
    {"elem=e5m2 scale.max_byte=110 elem.round=rtp elem.overflow=ieee input.dtype=float16", 2, {0x459cccd0, 0xc59cccd0}, "6e", "7cfc"},
    {"elem=e5m2 scale=e4m3 scale.rule=value chain=mlx scale.max_byte=1 elem.round=rtz elem.overflow=ieee",
     2,
     {0x7f61b1e6, 0xff61b1e6},
     "01",
     "7cfc"},
    /* 28 * 1e30 * 2^10 or so is Inf in binary16, and saturates with its own sign */
    {"scale=ue5m3 scale.max_byte=29 elem.prescale=1e30 input.dtype=float16", 2, {0x41d16000, 0xc1d16000}, "1d", "f7"},
    /* 6 / 743 * 2^149 is Inf to log2f, which saturates and does not wrap; nor does the log2 of 2^-149 / 6, which is 0 in binary32 */
    {"scale.rule=value scale.form=encode scale.round=down scale.log2=log2f scale.byte_overflow=wrap", 1, {0x000002e7}, "fe", "00"},
    {"scale.rule=value scale.round=down scale.log2=log2f scale.byte_overflow=wrap", 1, {0x00000001}, "00", "00"},
    {"scale.rule=value scale.round=down scale.log2=log2f scale.used=unclamped scale.zero=one", 1, {0x00000001}, "7f", "00"},
    {"scale.rule=value scale.round=up scale.log2=log2f scale.subnormal=bump", 1, {0x00000001}, "01", "00"},
    /* a sign bit stays under scale.max_byte: 200 is -(1.0 * 2^2), 60 is 1.5 * 2^0; 1 / -1.5 is -0.5, 0 / -1.5 is -0 */
    {"scale=e4m3 scale.sign=signed scale.max_byte=60 scale.nan=byte=200", 3, {0x7fc00000, 0x3f800000, 0}, "bc", "9788"},
    {"scale=e4m3 scale.max_byte=120 scale.nan=byte=200", 2, {0x7fc00000, 0x40800000}, "c8", "27"},
    /* bump is of scale.rule=value; log2f looks at scale.min too: 2^-10 (1 - 2^-24) has log2 -10 */
    {"scale.round=up scale.subnormal=bump scale.min=9.9999461e-41 scale.allzero=chain", 1, {0}, "00", "00"},
    {"scale.rule=value scale.round=up scale.subnormal=bump scale.min=9.9999461e-41 scale.allzero=chain", 1, {0}, "01", "00"},
    {"scale.round=down scale.log2=log2f scale.min=0.000976562442", 1, {0x37800000}, "75", "00"},
    {"scale.round=down scale.min=0.000976562442", 1, {0x37800000}, "74", "00"},
    /* a NaN scale in a format without NaN: the largest code is stored, but elements meet NaN */
    {"scale=ue5m3_122880 scale.rule=value scale.nan=tensor chain=autoround_e5m3", 2, {0x7f800000, 0x3f800000}, "ff", "77"},
    {"scale=ue5m3_122880 scale.rule=value scale.nan=finite tensor.norm=unit tensor.given=nan", 1, {0x3f800000}, "ff", "77"},
    {"scale=e8m3 scale.rule=value scale.nan=tensor chain=mlx", 2, {0x7fc00000, 0xbf800000}, "f707", "77"},
    /* what is seen in the tensor decides scale.nan=tensor, also beside a tensor scale that is given */
    {"elem=e4m3 scale=e4m3 block=32x1 chain=autoround tensor.norm=nv scale.rule=value tensor.given=5 scale.nan=tensor",
     2,
     {0x7fc00000, 0x3f800000},
     "7f7f",
     "7f7f"},
    {"elem=e4m3 scale=e4m3 block=1x1 chain=exact tensor.norm=nv scale.rule=value tensor.given=nan scale.nan=tensor",
     2,
     {0x3f800000, 0x40000000},
     "7f7f",
     "7f7f"},
    /* beside it nothing is refused: every scale is NaN */
    {"elem=e4m3 scale=e4m3 block=1x1 scale.rule=value scale.nan=tensor scale.inf=error", 2, {0x7fc00000, 0x7f800000}, "7f7f", "7f7f"},
    /* scale.zero=zero makes a zero of Inf too, scale.byte0=times0 a negative NaN: 6 / 2^128 is 0 in ue5m3 */
    {"scale=ue5m3 scale.rule=value scale.form=encode scale.zero=zero scale.inf=rule", 3, {0xff800000, 0x7f800000, 0xbf800000}, "00", "0808"},
    {"scale=ue5m3 scale.rule=value scale.form=encode scale.zero=byte=0 scale.byte0=times0 scale.inf=rule scale.nan=finite",
     3,
     {0xff800000, 0x7f800000, 0xbf800000},
     "00",
     "ff08"},
    /* the one NaN of an FNUZ format has no sign: decoded and encoded again it is +NaN */
    {"elem=e5m2fnuz scale.rule=value chain=autoround_e5m3 elem.saturate_to=nan elem.nan=satmax scale.max_byte=120",
     2,
     {0x48000000, 0xc8000000},
     "78",
     "7f7f"},
    /* byte=0 is raised by scale.min_byte, and that is used; byte_zero stays a 0 to the elements */
    {"scale=e8m3 scale.min_byte=39 scale.nan=byte=0", 2, {0x7fc00000, 0}, "2700", "07"},
    {"scale=e8m3 scale.min_byte=39 scale.nan=byte_zero=0", 2, {0x7fc00000, 0}, "2700", "f7"},
    /* a tensor scale of Inf: Inf / Inf and Inf * 0 are negative NaN, 1 / Inf is 0 */
    {"scale=e4m3 scale.rule=value scale.nan=byte_inf=67 tensor.norm=unit tensor.store=divisor tensor.given=inf",
     3,
     {0x7f800000, 0x3f800000, 0},
     "43",
     "ffff"},
    {"scale=e4m3 scale.rule=value scale.inf=byte=56 tensor.norm=unit tensor.given=inf", 3, {0x7f800000, 0x3f800000, 0x80000000}, "38", "0f08"},
    {"scale=e4m3 scale.rule=value tensor.norm=unit tensor.given=inf tensor.store=divisor scale.allzero=chain", 1, {0}, "7f", "77"},
    /* log2f is of rnd(a) under A = 2^127 * 1.9375002: a = 1; 2^-150 * 1.03, which rounds to 2^-149; a little below 2^-240, which rounds to 0 */
    {"scale.log2=log2f scale.byte_overflow=wrap block=1x1 tensor.norm=unit tensor.target=4096",
     3,
     {0x7f780001, 0x347ffff7, 0x07780000},
     "7de88c",
     "0600"},
    /* 4.75 and 0.375 under A = 7: map to 6 errs by 1/4 and 1/24, map to 4 by 1/12 and 5/24, so that the roundings of 3.7 decide between
     * equal sums */
    {FOURSIX_EQUAL, 2, {0x40980000, 0x3ec00000}, "7a", "17"},
    {FOURSIX_EQUAL " deq.arith=two_step", 2, {0x40980000, 0x3ec00000}, "7e", "16"},
    /* 2.265625 and 0.3125 under A = 5, scales 208 and 320: 6, 1 and 4, 0.5 err alike but for the roundings, and one order of them alone
     * prefers 4 */
    {FOURSIX_EQUAL " tensor.given=5", 2, {0x40110000, 0x3ea00000}, "75", "27"},
    {FOURSIX_EQUAL " tensor.given=5 deq.arith=two_step", 2, {0x40110000, 0x3ea00000}, "75", "27"},
    {FOURSIX_EQUAL " tensor.given=5 deq.arith=scale_first", 2, {0x40110000, 0x3ea00000}, "7a", "16"},
};

static int begins(const uint8_t *bytes, const char *hex) {
  for (; hex[0]; hex += 2, bytes++) {
    const char byte[3] = {hex[0], hex[1], 0};
    if (*bytes != strtoul(byte, NULL, 16)) return 0;
  }
  return 1;
}

/* Quantises and dequantises by the given functions, and compares with what was typed and with what the first implementation gave. */
typedef mx_status quantizer(mx_tensor *, const float *, size_t, size_t, size_t, const mx_spec *, const mx_exec *, mx_error *);
typedef mx_status reader(float *, size_t, const mx_tensor *, const mx_spec *, const mx_exec *);

static void hold(const corner *c, const char *who, quantizer *quantize, reader *dequantize, uint32_t off, uint32_t read[4], int first) {
  mx_spec spec = {0};
  mx_tensor t;
  mx_error err;
  float x[4], y[4] = {0};
  uint32_t bits[4];
  const mx_exec exec = {.isa_mask = off, .n_threads = 1};
  memcpy(x, c->x, sizeof x);
  ck_assert_msg(!mx_spec_parse(&spec, c->keys, &err) && !mx_spec_check(&spec, &err) && !ref_spec_check(&spec, &err), "%s: %s", c->keys,
                err.text);
  ck_assert_int_eq(mx_tensor_alloc(&t, 1, c->cols, &spec), MX_OK);
  ck_assert_int_eq(quantize(&t, x, 1, c->cols, c->cols, &spec, &exec, &err), MX_OK);
  ck_assert_msg(begins(t.scales, c->scales), "%s, %s: scale %02x %02x, expected %s", c->keys, who, t.scales[0], t.scales[1], c->scales);
  ck_assert_msg(begins(t.codes, c->codes), "%s, %s: codes %02x %02x, expected %s", c->keys, who, t.codes[0], t.codes[1], c->codes);
  ck_assert_int_eq(dequantize(y, c->cols, &t, &spec, &exec), MX_OK);
  memcpy(bits, y, sizeof bits);
  if (first) memcpy(read, bits, sizeof bits);
  for (size_t i = 0; i < c->cols; i++)
    ck_assert_msg(bits[i] == read[i], "%s, %s: value %zu is %08x, reference %08x", c->keys, who, i, bits[i], read[i]);
  mx_tensor_free(&t);
}

START_TEST(corners_on_every_isa) {
  static const uint32_t off[] = {0, MX_ISA_AVX512, MX_ISA_ALL};
  for (size_t i = 0; i < sizeof corners / sizeof *corners; i++) {
    uint32_t read[4] = {0};
    hold(&corners[i], "reference", ref_quantize, ref_dequantize, 0, read, 1);
    for (size_t k = 0; k < sizeof off / sizeof *off; k++) {
      char who[32];
      snprintf(who, sizeof who, "ISAs %u off", off[k]);
      hold(&corners[i], who, mx_quantize, mx_dequantize, off[k], read, 0);
    }
  }
}
END_TEST

/* SPEC 3.7: a zero under a zero scale is zero, whatever the tensor scale; A = Inf is the divisor's 0, unit's Inf. */
START_TEST(a_zero_stays_zero_under_an_infinite_tensor_scale) {
  mx_spec spec = {0};
  ck_assert_int_eq(mx_spec_parse(&spec, "scale=ue5m3 scale.rule=value scale.form=encode tensor.norm=unit deq.arith=two_step", NULL), MX_OK);
  enum { COLS = 64 };
  float x[COLS] = {0}, y[COLS];
  const uint32_t inf = 0x7f800000;
  memcpy(x + 40, &inf, sizeof inf); /* in the second block */
  for (uint32_t off = 0; off <= MX_ISA_ALL; off++) {
    mx_tensor t;
    const mx_exec exec = {.isa_mask = off};
    ck_assert_int_eq(mx_tensor_alloc(&t, 1, COLS, &spec), MX_OK);
    ck_assert_int_eq(mx_quantize(&t, x, 1, COLS, COLS, &spec, &exec, NULL), MX_OK);
    for (int by_ref = 0; by_ref < 2; by_ref++) {
      ck_assert_int_eq(by_ref ? ref_dequantize(y, COLS, &t, &spec, NULL) : mx_dequantize(y, COLS, &t, &spec, &exec), MX_OK);
      for (int i = 0; i < 32; i++)
        ck_assert_msg(!memcmp(&y[i], &(float){0}, sizeof *y), "ISAs %u off, reference %d: %a", off, by_ref, (double)y[i]);
    }
    mx_tensor_free(&t);
  }
}
END_TEST

/* SPEC 3.7 by hand: one code under one scale and one tensor scale, in each order of the roundings, by rational arithmetic. */
typedef struct reading {
  const char *keys;
  uint32_t scale, tensor_scale; /* bits as stored */
  uint8_t code;
  uint32_t values[MX_DEQ_ARITH_COUNT]; /* exact, two_step, scale_first */
} reading;

#define NV16 "scale=e4m3 block=1x16 scale.rule=value tensor.norm=nv chain=exact "
#define ENCODE16 "scale=e4m3 block=1x16 scale.rule=value scale.form=encode tensor.norm=unit "
#define INF 0x7f800000
#define NO_NUMBER 0x7fc00000

static const reading readings[] = {
    {NV16, 0x3c, 0x3f800001, 3, {0x40100001, 0x40100001, 0x40100002}},                        /* 1.5, 1.5, 1 + 2^-23 */
    {NV16 "tensor.store=divisor", 0x66, 0x42be0000, 3, {0x3f625b9f, 0x3f625ba0, 0x3f625b9e}}, /* 1.5, 56, 1/95: a quotient 56/95 */
    {NV16 "tensor.store=amax", 0x3f, 0x41651c52, 3, {0x3c7579c6, 0x3c7579c5, 0x3c7579c4}},    /* 1.5, 1.875, 14.3.../2688 */
    {NV16 "tensor.store=amax", 0x4c, 0x428a0000, 3, {0x3e6c9249, 0x3e6c924a, 0x3e6c924a}},    /* 1.5, 6, rnd(69/2688): not rnd(6*69/2688) */
    {NV16 "tensor.store=amax", 0x4c, 0xc28a0000, 11, {0x3e6c9249, 0x3e6c924a, 0x3e6c924a}},   /* both negative */
    {"scale=fp32 block=1x16 scale.rule=value tensor.norm=unit tensor.target=300",
     0x3fa00007,
     0x3f80000e,
     3,
     {0x3ff00025, 0x3ff00024, 0x3ff00026}},
    {"scale=ue5m3 block=1x16 scale.rule=value chain=autoround_e5m3_2 tensor.norm=nv",
     0x66,
     0x42be0000,
     3,
     {0x3b625b9f, 0x3b625ba0, 0x3b625b9e}},
    {ENCODE16, 0x3d, 0x40c00000, 1, {0x3fec4ec5, 0x3fec4ec6, 0x3fec4ec4}},                        /* .5, 1.625, 6 */
    {ENCODE16 "tensor.store=divisor", 0x63, 0x3f9ef2a4, 3, {0x3ce0e5ab, 0x3ce0e5ac, 0x3ce0e5aa}}, /* 1.5, 44, 1/1.2417798 */
    {"scale=e4m3 block=1x16 scale.rule=value scale.form=encode tensor.norm=chmiel tensor.store=amax",
     0x55,
     0x42fc0000,
     1,
     {0x3aec4ec5, 0x3aec4ec6, 0x3aec4ec4}},
    /* the factor underflows, overflows or is not a number before the code is looked at */
    {NV16, 0x01, 0x00000100, 7, {3, 3, 0}},
    {NV16, 0x40, 0x7f000000, 1, {0x7f000000, 0x7f000000, INF}},
    {NV16, 0x7e, 0x7f000000, 0, {0, 0, NO_NUMBER}},
    {NV16, 0x00, INF, 1, {NO_NUMBER, NO_NUMBER, NO_NUMBER}},
    {NV16 "tensor.store=divisor", 0x38, INF, 9, {0x80000000, 0x80000000, 0x80000000}},
    {NV16, 0x7f, 0x3f800000, 1, {NO_NUMBER, NO_NUMBER, NO_NUMBER}},
    /* encode: a zero scale is its own factor, and zero codes under a zero factor are zero */
    {ENCODE16, 0x00, NO_NUMBER, 8, {0x80000000, 0x80000000, 0x80000000}},
    {ENCODE16, 0x00, NO_NUMBER, 1, {NO_NUMBER, NO_NUMBER, INF}},
    {ENCODE16, 0x38, INF, 8, {NO_NUMBER, NO_NUMBER, 0x80000000}},
    {ENCODE16, 0x38, INF, 1, {INF, INF, INF}},
    {ENCODE16, 0x38, 0, 1, {0, 0, 0}},
};

START_TEST(values_by_each_order_of_roundings) {
  static const char *const orders[] = {"deq.arith=exact", "deq.arith=two_step", "deq.arith=scale_first"};
  static const size_t shapes[][2] = {{1, 1}, {1, 16}, {3, 48}, {16, 512}};
  for (size_t i = 0; i < sizeof readings / sizeof *readings; i++)
    for (int order = 0; order < MX_DEQ_ARITH_COUNT; order++)
      for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const reading *r = &readings[i];
        const size_t rows = shapes[s][0], cols = shapes[s][1];
        mx_spec spec = {0};
        mx_tensor t;
        mx_error err;
        ck_assert_msg(!mx_spec_parse(&spec, r->keys, &err) && !mx_spec_parse(&spec, orders[order], &err) && !mx_spec_check(&spec, &err),
                      "%s: %s", r->keys, err.text);
        ck_assert_int_eq(mx_tensor_alloc(&t, rows, cols, &spec), MX_OK);
        memset(t.codes, r->code | r->code << 4, rows * t.code_stride);
        for (size_t k = 0; k < t.scale_rows * t.scale_cols; k++) memcpy(t.scales + k * t.scale_bytes, &r->scale, t.scale_bytes);
        memcpy(&t.tensor_scale, &r->tensor_scale, sizeof t.tensor_scale);
        float *y = calloc(rows * cols, sizeof *y);
        for (uint32_t off = 0; off <= MX_ISA_ALL + 1; off++) {
          const int by_ref = off > MX_ISA_ALL;
          ck_assert_int_eq(by_ref ? ref_dequantize(y, cols, &t, &spec, NULL) : mx_dequantize(y, cols, &t, &spec, &(mx_exec){.isa_mask = off}),
                           MX_OK);
          for (size_t k = 0; k < rows * cols; k++)
            ck_assert_msg(!memcmp(y + k, &r->values[order], sizeof *y), "%s %s, %s, ISAs %u off, %zu x %zu: value %zu is %a", r->keys,
                          orders[order], by_ref ? "reference" : "library", off, rows, cols, k, (double)y[k]);
        }
        free(y);
        mx_tensor_free(&t);
      }
}
END_TEST

/* A product multiplies by rnd(m) in every order: 1 / rnd(1 / 7) is not 7 in binary32. */
START_TEST(products_multiply_by_the_tensor_scale_itself) {
  for (int order = 0; order < MX_DEQ_ARITH_COUNT; order++) {
    mx_spec spec = {0};
    mx_tensor t;
    float m;
    ck_assert_int_eq(mx_spec_parse(&spec, ENCODE16, NULL), MX_OK);
    spec.deq_arith = order;
    ck_assert_int_eq(mx_tensor_alloc(&t, 1, 16, &spec), MX_OK);
    t.tensor_scale = 7;
    ck_assert_int_eq(mx_tensor_multiplier(&m, &t, &spec), MX_OK);
    ck_assert_msg(m == 7, "order %d: %a", order, (double)m);
    mx_tensor_free(&t);
  }
}
END_TEST

/* A chain without a tensor scale stores 1. */
START_TEST(a_chain_without_tensor_scale_stores_1) {
  mx_spec spec = {0};
  float scale = 0;
  ck_assert_int_eq(mx_spec_parse(&spec, "scale=e4m3 scale.rule=value chain=mlx", NULL), MX_OK);
  ck_assert_int_eq(ref_tensor_scale(&scale, 5, &spec), MX_OK);
  ck_assert_msg(scale == 1, "reference: %a", (double)scale);
  ck_assert_int_eq(mx_tensor_scale(&scale, 5, &spec), MX_OK);
  ck_assert_msg(scale == 1, "library: %a", (double)scale);
}
END_TEST

int main(void) {
  Suite *s = suite_create("corners");
  TCase *t = tcase_create("corners");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, corners_on_every_isa);
  tcase_add_test(t, a_zero_stays_zero_under_an_infinite_tensor_scale);
  tcase_add_test(t, values_by_each_order_of_roundings);
  tcase_add_test(t, products_multiply_by_the_tensor_scale_itself);
  tcase_add_test(t, a_chain_without_tensor_scale_stores_1);
  suite_add_tcase(s, t);
  return run_suite(s);
}
