/* Tests matrix-unit models: examples worked by hand, the fast path against the reference, and MMA-Sim's outputs. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/mma.h"
#include "lib/run.h"
#include "lib/tiles.h"
#include "mxgold/file.h"

static mx_mma_model model_of(const char *text) {
  mx_mma_model m;
  mx_error err;
  ck_assert_msg(mx_mma_model_find(&m, text, &err) == MX_OK, "%s", err.text);
  return m;
}

/* --- one output, by hand --- */

enum { MAX_K = 64 };

/* The products of one output; what is not given is +0. */
typedef struct given {
  uint64_t a[MAX_K], b[MAX_K];
  uint8_t scale_a[8], scale_b[8];
} given;

static void put(void *row, const mx_format *f, size_t k, uint64_t code) {
  uint8_t *bytes = row;
  size_t size = mx_mma_bytes(f, 1);
  if (f->bits == 4) bytes[k / 2] |= (uint8_t)(code << 4 * (k % 2));
  for (size_t i = 0; f->bits != 4 && i < size; i++) bytes[k * size + i] = (uint8_t)(code >> 8 * i);
}

/* D of a 1 x 1 tile of depth K, by both implementations, which must agree; c NULL: the sum starts from nothing. */
static uint64_t one(const char *model, size_t K, const given *g, const uint64_t *c) {
  mx_mma_model m = model_of(model);
  uint8_t a[8 * MAX_K] = {0}, b[8 * MAX_K] = {0};
  uint64_t d[2] = {0, 0};
  for (size_t k = 0; k < K; k++) {
    put(a, m.a, k, g->a[k]);
    put(b, m.b, k, g->b[k]);
  }
  mx_mma_args args = {1, 1, 1, K, a, b, c, m.scale ? g->scale_a : NULL, m.scale ? g->scale_b : NULL};
  ck_assert_int_eq(mx_mma(&d[0], &m, &args, NULL, NULL), MX_OK);
  ck_assert_int_eq(ref_mma(&d[1], &m, &args), MX_OK);
  ck_assert_msg(d[0] == d[1], "%s: %#lx, the reference has %#lx", model, (unsigned long)d[0], (unsigned long)d[1]);
  return d[0];
}

static void expect(const char *model, size_t K, const given *g, uint64_t c, uint64_t want) {
  uint64_t got = one(model, K, g, &c);
  ck_assert_msg(got == want, "%s: %#lx, by hand %#lx", model, (unsigned long)got, (unsigned long)want);
}

/* Powers of two: F16(-12) is 2^-12. */
#define F16(e) ((uint64_t)((e) + 15) << 10)
#define BF16(e) ((uint64_t)((e) + 127) << 7)
#define F32(e) ((uint64_t)((e) + 127) << 23)
#define E4M3(e) ((uint64_t)((e) + 7) << 3)
#define E2M1_ONE 2
#define NEG16 0x8000
#define NEG32 UINT64_C(0x80000000)

START_TEST(truncation) {
  /* 1 + 2 * 2^-24: Volta cuts each small product at 2^-23, Turing (F = 24) keeps both, and together they are one ulp. */
  given g = {.a = {F16(0), F16(-12), F16(-12)}, .b = {F16(0), F16(-12), F16(-12)}};
  expect("volta/mma_m8n8k4_f32_f16_f16_f32", 4, &g, 0, 0x3F800000);
  expect("turing/mma_m8n8k4_f32_f16_f16_f32", 4, &g, 0, 0x3F800001);
  /* 1 + 4 * 2^-25: Hopper (F = 25) keeps them, Turing does not. */
  given h = {.a = {F16(0), F16(-12), F16(-12), F16(-12), F16(-12)}, .b = {F16(0), F16(-13), F16(-13), F16(-13), F16(-13)}};
  expect("turing/mma_m16n8k8_f32_f16_f16_f32", 8, &h, 0, 0x3F800000);
  expect("hopper/mma_m16n8k8_f32_f16_f16_f32", 8, &h, 0, 0x3F800001);
  /* 1 - 2^-26: cut toward zero, the small term vanishes, although the exact sum is below 1. */
  given n = {.a = {F16(0), F16(-13) | NEG16}, .b = {F16(0), F16(-13)}};
  expect("hopper/mma_m16n8k8_f32_f16_f16_f32", 8, &n, 0, 0x3F800000);
  expect("exact:ab=f16", 8, &n, 0, 0x3F800000); /* RNE: nearer to 1 than to 1 - 2^-24 */
  expect("hopper_f16:L=8,align=rd", 8, &n, 0, 0x3F7FFFFF);
  /* The result is cut toward zero as well: -(1 + 3/4 ulp). */
  given r = {.a = {F16(0) | NEG16, F16(-12) | NEG16, F16(-12) | NEG16}, .b = {F16(0), F16(-12), F16(-13)}};
  expect("hopper/mma_m16n8k8_f32_f16_f16_f32", 8, &r, 0, 0x3F800000 | NEG32);
  expect("hopper_f16:out=f32rne", 8, &r, 0, 0x3F800001 | NEG32);
}
END_TEST

START_TEST(fp8_keeps_13_bits) {
  given g = {.a = {E4M3(0), E4M3(-6)}, .b = {E4M3(0), 4}}; /* 1 + 2^-6 * 2^-7 */
  expect("ada/mma_m16n8k32_f32_e4m3_e4m3_f32", 32, &g, 0, 0x3F800400);
  expect("hopper/wgmma_m64n8k32_f32_e4m3_e4m3", 32, &g, 0, 0x3F800400);
  g.b[1] = 2; /* 2^-14 is cut */
  expect("ada/mma_m16n8k32_f32_e4m3_e4m3_f32", 32, &g, 0, 0x3F800000);
  expect("hopper/wgmma_m64n8k32_f32_e4m3_e4m3", 32, &g, 0, 0x3F800000);
  /* C loses its low bits too: it has 23, the result 13. */
  given zero = {.a = {0}};
  expect("hopper/wgmma_m64n8k32_f32_e4m3_e4m3", 32, &zero, 0x3F8007FF, 0x3F800400);
}
END_TEST

START_TEST(joining) {
  given one_product = {.a = {F16(0)}, .b = {F16(0)}};
  /* in: C = -2^-30 is cut to zero with the others. after: C is cut down to 24 bits on its own, to -2^-24. */
  expect("hopper/mma_m16n8k8_f32_f16_f16_f32", 8, &one_product, F32(-30) | NEG32, 0x3F800000);
  expect("cdna3/mfma_f32_32x32x8_f16", 8, &one_product, F32(-30) | NEG32, 0x3F7FFFFF);
  /* The FP8 unit drops a C whose exponent is more than 25 below. */
  given fnuz = {.a = {0x40}, .b = {0x40}}; /* 1 in e4m3fnuz */
  expect("cdna3/mfma_f32_16x16x32_fp8_fp8", 32, &fnuz, F32(-25) | NEG32, 0x3F7FFFFF);
  expect("cdna3/mfma_f32_16x16x32_fp8_fp8", 32, &fnuz, F32(-26) | NEG32, 0x3F800000);
  /* add: 2^24 + 3 by one RNE addition is 2^24 + 4; a truncating fused sum gives 2^24 + 2. */
  given three = {.a = {E4M3(0), E4M3(1)}, .b = {E4M3(0), E4M3(0)}};
  expect("hopper/mma_m16n8k16_f32_e4m3_e4m3_f32", 16, &three, F32(24), 0x4B800002);
  expect("rtx_blackwell/mma_m16n8k16_f32_e4m3_e4m3_f32", 16, &three, F32(24), 0x4B800001);
}
END_TEST

START_TEST(chaining) {
  /* Ampere runs k16 as two halves: 2^-24 of each half is lost when that half is rounded. Hopper has one group of 16. */
  given g = {.a = {[0] = F16(0), [1] = F16(-12), [8] = F16(-12)}, .b = {[0] = F16(0), [1] = F16(-12), [8] = F16(-12)}};
  expect("ampere/mma_m16n8k16_f32_f16_f16_f32", 16, &g, 0, 0x3F800000);
  expect("hopper/mma_m16n8k16_f32_f16_f16_f32", 16, &g, 0, 0x3F800001);
  /* Two instructions of k8 along K lose them again. */
  expect("hopper/mma_m16n8k8_f32_f16_f16_f32", 16, &g, 0, 0x3F800000);
  /* In ascending order 1, -1 and 2^-30 leave 2^-30; in descending order it is cut away. */
  given up = {.a = {[0] = F16(0), [8] = F16(0) | NEG16, [16] = F16(-15 + 1)}, .b = {[0] = F16(0), [8] = F16(0), [16] = F16(-14)}};
  expect("hopper/mma_m16n8k8_f32_f16_f16_f32", 24, &up, 0, F32(-28));
  given down = {.a = {[16] = F16(0), [8] = F16(0) | NEG16, [0] = F16(-14)}, .b = {[16] = F16(0), [8] = F16(0), [0] = F16(-14)}};
  expect("hopper/mma_m16n8k8_f32_f16_f16_f32", 24, &down, 0, 0);
  /* FP8 mma.sync on Hopper sums k%4 in {0,1} first. 448 * 448, its negative at k = 1, and 2^-18 at k = 2 survive; at k = 0 it is cut. */
  given early = {.a = {0x7E, 0xFE, 1}, .b = {0x7E, 0x7E, 1}};
  expect("hopper/mma_m16n8k16_f32_e4m3_e4m3_f32", 16, &early, 0, F32(-18));
  given late = {.a = {1, 0xFE, [4] = 0x7E}, .b = {1, 0x7E, [4] = 0x7E}};
  expect("hopper/mma_m16n8k16_f32_e4m3_e4m3_f32", 16, &late, 0, 0);
}
END_TEST

START_TEST(zeros_and_the_floor) {
  /* Eight products of 2^-152 are one smallest subnormal. MMA-Sim gives a zero C the exponent -126, so that 2^-151 is the last place kept. */
  given g = {{0}, {0}, {0}, {0}};
  for (int k = 0; k < 8; k++) g.a[k] = g.b[k] = F32(-76);
  expect("hopper/mma_m16n8k8_f32_tf32_tf32_f32", 8, &g, 0, 1);
  expect("hopper/mma_m16n8k8_f32_tf32_tf32_f32:rules=mmasim", 8, &g, 0, 0);
  expect("blackwell/mma_m16n8k8_f32_tf32_tf32_f32", 8, &g, 0, 0);
  expect("blackwell/mma_m16n8k8_f32_tf32_tf32_f32:rules=h200", 8, &g, 0, 1);
  /* The floor: 2^-159 is 26 below -133 and is cut. Without a floor 2^10 of them, in chains of 8, would not reach a subnormal either. */
  given low = {.a = {F32(-79), F32(-79)}, .b = {F32(-80), F32(-80)}};
  expect("hopper/mma_m16n8k8_f32_tf32_tf32_f32", 8, &low, 0, 0);
  /* An accumulator in f16 has its own floor, -21: half of the smallest number plus 2^-46 is rounded up, while with 2^-47 it is a tie. */
  given half = {.a = {F16(-11), 2}, .b = {F16(-14), 2}};
  expect("hopper/mma_m16n8k8_f16_f16_f16_f16", 8, &half, 0, 1);
  half.b[1] = 1;
  expect("hopper/mma_m16n8k8_f16_f16_f16_f16", 8, &half, 0, 0);
  expect("hopper/wgmma_m64n8k16_f16_f16_f16", 16, &half, 0, 0);
  expect("hopper/mma_m16n8k8_f16_f16_f16_f16:floor=none", 8, &half, 0, 1);
  expect("blackwell/mma_m16n8k8_f16_f16_f16_f16:rules=h200", 8, &half, 0, 0);
  /* A zero result is +0, whatever the signs. */
  given minus = {.a = {NEG16}, .b = {F16(0)}};
  expect("hopper/mma_m16n8k16_f32_f16_f16_f32", 16, &minus, NEG32, 0);
  given under = {.a = {BF16(-100) | NEG16}, .b = {BF16(-100)}};
  expect("hopper/mma_m16n8k16_f32_bf16_bf16_f32", 16, &under, 0, 0);
  expect("cdna3/mfma_f32_32x32x8_bf16", 8, &under, 0, NEG32); /* here the sum reaches down to -2^-157 and keeps its sign */
}
END_TEST

/* Parameters can be the number 0 although a field of 0 means none. */
START_TEST(parameters_of_0) {
  /* 2^-3 has the exponent -3, and its last place at F=2 is 2^-5. With a floor of 0 or 1 that place is 2^-2 or 2^-1, and nothing is left. */
  const given eighth = {.a = {F32(-3)}, .b = {F32(0)}};
  expect("fused:L=2,F=2,a=f32,b=f32", 2, &eighth, 0, F32(-3));
  expect("fused:L=2,F=2,floor=none,a=f32,b=f32", 2, &eighth, 0, F32(-3));
  expect("fused:L=2,F=2,floor=-1,a=f32,b=f32", 2, &eighth, 0, F32(-3));
  expect("fused:L=2,F=2,floor=0,a=f32,b=f32", 2, &eighth, 0, 0);
  expect("fused:L=2,F=2,floor=1,a=f32,b=f32", 2, &eighth, 0, 0);
  expect("fused:L=2,F=2,floor=0,a=f32,b=f32,align=rne", 2, &eighth, 0, 0); /* half a place: a tie */
  /* C = 1 is 3 below 8, which is more than 0, 1 and 2, but not more than 3. */
  const given eight = {.a = {F32(3)}, .b = {F32(0)}};
  const uint64_t one_f32 = F32(0), nine = 0x41100000;
#define AFTER "fused:L=2,F=20,join=after,sum_bits=20,c_bits=20,a=f32,b=f32,c_drop="
  expect(AFTER "none", 2, &eight, one_f32, nine);
  expect(AFTER "0", 2, &eight, one_f32, F32(3));
  expect(AFTER "2", 2, &eight, one_f32, F32(3));
  expect(AFTER "3", 2, &eight, one_f32, nine);
  expect(AFTER "0", 2, &eight, F32(3), F32(4)); /* as large as the sum, so it stays */
#undef AFTER
  /* 1.9375 to no fraction bits: 1 or, to nearest, 2. */
  const given near_two = {.a = {0x3FF80000}, .b = {F32(0)}};
  expect("fused:L=2,F=20,out_bits=0,a=f32,b=f32", 2, &near_two, 0, F32(0));
  expect("fused:L=2,F=20,out=e8m0rz,a=f32,b=f32", 2, &near_two, 0, F32(0));
  expect("fused:L=2,F=20,out=e8m0rne,a=f32,b=f32", 2, &near_two, 0, F32(1));
  expect("fused:L=2,F=20,out_bits=type,a=f32,b=f32", 2, &near_two, 0, 0x3FF80000);
}
END_TEST

/* If k is not given it is L: 2^26 (ulp 8) + 3 + 3 is 2^26 in two instructions, and 2^26 + 8 in one. */
START_TEST(k_follows_L) {
  const given threes = {.a = {0x40400000, 0, 0x40400000}, .b = {F32(0), F32(0), F32(0), F32(0)}};
  expect("fused:L=2,F=25,join=add,out=f32rne,a=f32,b=f32", 4, &threes, F32(26), F32(26));
  expect("fused:L=2,F=25,join=add,out=f32rne,a=f32,b=f32,k=2", 4, &threes, F32(26), F32(26));
  expect("fused:L=2,F=25,join=add,out=f32rne,a=f32,b=f32,k=0", 4, &threes, F32(26), F32(26) + 1);
  expect("fused:k=0,L=2,F=25,join=add,out=f32rne,a=f32,b=f32", 4, &threes, F32(26), F32(26)); /* a later L changes k */
}
END_TEST

START_TEST(specials) {
  const uint64_t inf16 = 0x7C00, nan16 = 0x7C01;
  given nan = {.a = {nan16}, .b = {F16(0)}};
  expect("hopper/mma_m16n8k16_f32_f16_f16_f32", 16, &nan, 0, 0x7FFFFFFF);
  expect("hopper/mma_m16n8k16_f16_f16_f16_f16", 16, &nan, 0, 0x7FFF);
  given zero_inf = {.a = {inf16}, .b = {0}};
  expect("hopper/mma_m16n8k16_f32_f16_f16_f32", 16, &zero_inf, 0, 0x7FFFFFFF);
  given inf = {.a = {inf16 | NEG16}, .b = {F16(0)}};
  expect("hopper/mma_m16n8k16_f32_f16_f16_f32", 16, &inf, 0, 0xFF800000);
  expect("hopper/mma_m16n8k16_f32_f16_f16_f32", 16, &inf, 0x7F800000, 0x7FFFFFFF); /* Inf - Inf */
  /* 2^127 + 2^127 is Inf in spite of rz; FLT_MAX + 1 stays. */
  given big = {.a = {BF16(127)}, .b = {BF16(0)}};
  expect("hopper/mma_m16n8k16_f32_bf16_bf16_f32", 16, &big, F32(127), 0x7F800000);
  given one_product = {.a = {BF16(0)}, .b = {BF16(0)}};
  expect("hopper/mma_m16n8k16_f32_bf16_bf16_f32", 16, &one_product, 0x7F7FFFFF, 0x7F7FFFFF);
  /* Products above 2^128 cancel on Hopper; on CDNA3 they are Inf, and Inf - Inf. */
  given cancel = {.a = {BF16(100), BF16(100) | NEG16}, .b = {BF16(100), BF16(100)}};
  expect("hopper/mma_m16n8k16_f32_bf16_bf16_f32", 16, &cancel, 0, 0);
  expect("cdna3/mfma_f32_32x32x8_bf16", 8, &cancel, 0, 0x7FC00000);
  /* tf32 reads the upper 19 bits: a NaN whose payload lies below them is Inf. */
  given tf32 = {.a = {0x7F800001}, .b = {F32(0)}};
  expect("hopper/mma_m16n8k8_f32_tf32_tf32_f32", 8, &tf32, 0, 0x7F800000);
  /* f16 results overflow to Inf from 65520 on. */
  given half = {.a = {F16(15)}, .b = {F16(1)}};
  expect("hopper/mma_m16n8k16_f16_f16_f16_f16", 16, &half, 0, inf16);
}
END_TEST

START_TEST(block_scales) {
  given g = {{0}, {0}, {0}, {0}};
  for (int k = 0; k < 64; k++) g.a[k] = g.b[k] = E2M1_ONE;
  memset(g.scale_a, 127, 4);
  memset(g.scale_b, 128, 4);
  expect("blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue8m0", 64, &g, 0, F32(7));
  /* e4m3 scales have significands: 1.125 * 1.125 * 16 in each of four groups is exact. */
  memset(g.scale_a, 0x39, 4);
  memset(g.scale_b, 0x39 | 0x80, 4);                                                          /* the sign bit is masked */
  expect("blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue4m3", 64, &g, 0, 0x42A20000); /* 81 */
  g.scale_b[3] = 0x7F;
  expect("blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue4m3", 64, &g, 0, 0x7FFFFFFF);
  /* A group whose sum is zero still aligns the others: 16 products of 2^-38 make 2^-34, and with a scale of 2^-2 they are below 2^-35. */
  given far = {{0}, {0}, {0}, {0}};
  for (int k = 0; k < 32; k++) {
    far.a[k] = k < 16 && k % 2 ? E2M1_ONE | 8 : E2M1_ONE;
    far.b[k] = E2M1_ONE;
  }
  far.scale_a[0] = far.scale_b[0] = far.scale_b[1] = 127;
  memset(far.scale_a + 2, 0, 2); /* makes the empty groups far smaller */
  far.scale_a[1] = 127 - 39;
  expect("blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue8m0", 64, &far, 0, F32(-35));
  far.scale_a[1] = 127 - 40;
  expect("blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue8m0", 64, &far, 0, 0);
  expect("blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue8m0:rules=h200", 64, &far, 0, F32(-36));
  /* mxf8f6f4 adds the scales' exponents to each product's. */
  given mx = {.a = {E4M3(0)}, .b = {E4M3(3)}, .scale_a = {127 + 10}, .scale_b = {127 - 3}};
  expect("rtx_blackwell/mmabs_m16n8k32_block32_f32_e4m3_e4m3_f32_ue8m0", 32, &mx, 0, F32(10));
}
END_TEST

START_TEST(chains_and_integers) {
  given s8 = {.a = {1, 0x80}, .b = {1, 0x80}}; /* 1 + 128 * 128 */
  expect("hopper/mma_m16n8k32_s32_s8_s8_s32", 32, &s8, 0x7FFFFFFF, (0x7FFFFFFF + UINT64_C(16385)) & UINT32_MAX);
  expect("hopper/mma_m16n8k32_s32_s8_s8_s32_satfinite", 32, &s8, 0x7FFFFFFF, 0x7FFFFFFF);
  given both = {.a = {1, 0xFF}, .b = {100, 100}}; /* it is clamped once, after C: 100 - 100 + C */
  expect("hopper/mma_m16n8k32_s32_s8_s8_s32_satfinite", 32, &both, 0x7FFFFFFF, 0x7FFFFFFF);
  expect("hopper/mma_m16n8k32_s32_u8_u8_s32", 32, &both, 0, 25600);
  /* f64: the NaN of b comes first, then that of the accumulator, then that of a; an invalid operation gives a negative one. */
  const uint64_t one64 = UINT64_C(0x3FF0000000000000), inf64 = UINT64_C(0x7FF0000000000000);
  given f64 = {.a = {inf64 | 1, one64}, .b = {one64, inf64 | 2}};
  expect("hopper/mma_m8n8k4_f64_f64_f64_f64", 4, &f64, inf64 | 3, UINT64_C(0x7FF8000000000002));
  f64.b[1] = one64;
  expect("hopper/mma_m8n8k4_f64_f64_f64_f64", 4, &f64, inf64 | 3, UINT64_C(0x7FF8000000000003));
  given invalid = {.a = {inf64}, .b = {0}};
  expect("hopper/mma_m8n8k4_f64_f64_f64_f64", 4, &invalid, one64, UINT64_C(0xFFF8000000000000));
  /* CDNA2 reads subnormals as +0 and flushes results; CDNA1 keeps both. */
  given sub = {.a = {1}, .b = {F16(0)}};
  expect("cdna1/mfma_f32_32x32x8f16", 8, &sub, 0, F32(-24));
  expect("cdna2/mfma_f32_32x32x8f16", 8, &sub, 0, 0);
  given zero = {.a = {0}};
  expect("cdna2/mfma_f32_32x32x8f16", 8, &zero, NEG32 | 5, 0);
}
END_TEST

/* nan=first: the NaN of b, the accumulator or a, made quiet; those of narrower types are converted as in IEEE 754, with the payload at the
 * top. */
START_TEST(first_nan) {
  static const struct {
    const char *keys;
    uint64_t a, b, c, want;
  } cases[] = {
      {"a=f32,b=f32,c=f32,d=f32", 0x7F800001, 0x3F800000, 0x3F800000, 0x7FC00001},
      {"a=f32,b=f32,c=f32,d=f32", 0x7F800001, 0xFF800002, 0x7F800003, 0xFFC00002},
      {"a=f32,b=f32,c=f32,d=f32", 0x7F800001, 0x3F800000, 0xFFA00003, 0xFFE00003},
      {"a=f32,b=f32,c=f32,d=f32", 0x7F800000, 0, 0x3F800000, 0xFFC00000},          /* Inf * 0 */
      {"a=f32,b=f32,c=f32,d=f32", 0x7F800000, 0x3F800000, 0xFF800000, 0xFFC00000}, /* Inf - Inf */
      {"a=f32,b=f32,c=f32,d=f32", 0x7F800000, 0, 0x7F800005, 0x7FC00005},          /* a NaN comes before Inf * 0 */
      {"a=f16,b=f16,c=f32,d=f32", 0x3C00, 0x7C01, 0, 0x7FC02000},
      {"a=f16,b=f16,c=f16,d=f32", 0x3C00, 0x3C00, 0xFD55, 0xFFEAA000},
      {"a=bf16,b=f16,c=f32,d=f32", 0xFF81, 0x3C00, 0, 0xFFC10000},
      {"a=e5m2,b=e5m2,c=f32,d=f32", 0x3C, 0xFD, 0, 0xFFE00000},
      {"a=tf32,b=f32,c=f32,d=f32", 0x7F802000, 0x3F800000, 0, 0x7FC02000},
      {"a=e4m3,b=e4m3,c=f32,d=f32", 0x38, 0xFF, 0, 0x7FC00000}, /* no payload to keep */
      {"a=e4m3fnuz,b=f32,c=f32,d=f32", 0x80, 0x3F800000, 0, 0x7FC00000},
      {"a=f16,b=f32,c=f64,d=f64", 0x7C01, 0x3F800000, 0, UINT64_C(0x7FF8040000000000)},
      {"a=f64,b=f32,c=f32,d=f64", UINT64_C(0x3FF0000000000000), 0x3F800000, 0xFF800001, UINT64_C(0xFFF8000020000000)},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char name[80];
    snprintf(name, sizeof name, "fused:op=fma,L=k,nan=first,%s", cases[i].keys);
    given g = {.a = {cases[i].a}, .b = {cases[i].b}};
    for (size_t K = 1; K < 4; K++) expect(name, K, &g, cases[i].c, cases[i].want);
    expect(name, 0, &g, cases[i].c, one(name, 0, &g, &cases[i].c)); /* nothing is summed, so both agree */
  }
  /* Block scales: the NaN of the element, otherwise the one that the scale makes. */
  given scaled = {.a = {0xFD}, .b = {0x3C}, .scale_a = {0xFF}, .scale_b = {0x7F}};
  expect("fused:op=fma,L=k,nan=first,ab=e5m2,c=f32,d=f32,scale=e8m0", 2, &scaled, 0, 0xFFE00000);
  scaled.a[0] = 0x3C;
  expect("fused:op=fma,L=k,nan=first,ab=e5m2,c=f32,d=f32,scale=e8m0", 2, &scaled, 0, 0x7FC00000);
}
END_TEST

/* Elements of int8 count in units of their smallest step, 2^-6, as those of s8 count in ones. */
START_TEST(integers_of_both_kinds) {
  given g = {.a = {3, 0x80, 0x7F}, .b = {2, 0x7F, 0xFF}}; /* 6 - 16256 - 127 */
  expect("fused:op=integer,L=k,a=int8,b=int8,c=s32,d=s32", 3, &g, 20000, 20000 - 16377);
  expect("fused:op=integer,L=k,a=int8,b=s8,c=s32,d=s32", 3, &g, 20000, 20000 - 16377);
  expect("fused:op=integer,L=k,a=s8,b=s8,c=s32,d=s32", 3, &g, 20000, 20000 - 16377);
}
END_TEST

START_TEST(from_nothing) {
  /* Without C nothing is joined; under zero=e126 a C of +0 would have cut these terms. */
  given g = {{0}, {0}, {0}, {0}};
  for (int k = 0; k < 8; k++) g.a[k] = g.b[k] = F32(-76);
  ck_assert_uint_eq(one("blackwell/mma_m16n8k8_f32_tf32_tf32_f32", 8, &g, NULL), 1);
  ck_assert_uint_eq(one("hopper/mma_m16n8k8_f32_tf32_tf32_f32", 8, &g, NULL), 1);
  given three = {.a = {E4M3(0), E4M3(1)}, .b = {E4M3(0), E4M3(0)}};
  ck_assert_uint_eq(one("hopper/mma_m16n8k16_f32_e4m3_e4m3_f32", 16, &three, NULL), 0x40400000);
}
END_TEST

/* --- the fast path against the reference --- */

/* Fails with the first output of `got` that differs from the reference. */
static void same(const mx_mma_model *m, const tiles *t, const void *got, tiles_kind kind, const char *path) {
  size_t width = mx_mma_bytes(m->d, 1);
  char keys[512];
  for (size_t at = 0; at < t->d_bytes; at += width) {
    uint64_t x = 0, y = 0;
    memcpy(&x, (const uint8_t *)got + at, width);
    memcpy(&y, (const uint8_t *)t->d_ref + at, width);
    if (x == y) continue;
    mx_accum_text(keys, sizeof keys, &m->accum);
    ck_abort_msg("%s (%s; a=%s b=%s c=%s d=%s k=%d) %s, tiles %d K=%zu C=%d output %zu: %#lx, the reference has %#lx", m->name, keys,
                 m->a->name, m->b->name, m->c->name, m->d->name, m->k, path, (int)kind, t->args.K, t->c != NULL, at / width, (unsigned long)x,
                 (unsigned long)y);
  }
}

/* Compares every path with the reference: the best ISA, and the portable code. */
static void compare(const mx_mma_model *m, tiles_kind kind, size_t T, size_t M, size_t N, size_t K, int with_c, uint64_t *state) {
  tiles t;
  tiles_make(&t, m, kind, T, M, N, K, with_c, state);
  ck_assert_int_eq(ref_mma(t.d_ref, m, &t.args), MX_OK);
  ck_assert_int_eq(mx_mma(t.d, m, &t.args, NULL, NULL), MX_OK);
  same(m, &t, t.d, kind, "best");
  memset(t.d, 0xA5, t.d_bytes);
  ck_assert_int_eq(mx_mma(t.d, m, &t.args, &(mx_exec){.isa_mask = UINT32_MAX}, NULL), MX_OK);
  same(m, &t, t.d, kind, "portable");
  tiles_free(&t);
}

/* For sizes that are too large for the reference: compares the best ISA with the portable code. */
static void compare_paths(const mx_mma_model *m, tiles_kind kind, size_t M, size_t N, size_t K, int with_c, uint64_t *state) {
  tiles t;
  tiles_make(&t, m, kind, 1, M, N, K, with_c, state);
  ck_assert_int_eq(mx_mma(t.d_ref, m, &t.args, &(mx_exec){.isa_mask = UINT32_MAX}, NULL), MX_OK);
  ck_assert_int_eq(mx_mma(t.d, m, &t.args, NULL, NULL), MX_OK);
  same(m, &t, t.d, kind, "best against portable");
  tiles_free(&t);
}

START_TEST(rows_equal_reference) {
  uint64_t state = 88172645463325252;
  mx_mma_model m;
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK; i++)
    for (int kind = 0; kind < TILES_COUNT; kind++) {
      ck_assert_msg(mx_mma_model_check(&m, NULL) == MX_OK, "%s", m.name);
      size_t k = m.k ? (size_t)m.k : 12;
      compare(&m, (tiles_kind)kind, 1, 3, 4, k, 1, &state);
      if (i % 8 == (size_t)kind) compare(&m, (tiles_kind)kind, 2, 2, 3, 3 * k, kind % 2, &state);
    }
}
END_TEST

/* Parameter sets that are in no table. */
static int random_model(mx_mma_model *m, uint64_t *state) {
  static const char *const types[] = {"e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "int8", "f16", "bf16", "tf32", "f32"};
  static const char *const outs[] = {"f32rz",  "f32rne", "f32rd",   "e8m13rz", "e8m13rne", "e8m7rz",
                                     "f16rne", "f16rz",  "bf16rne", "bf16rz",  "e8m0rne"};
  static const char *const scales[] = {"none", "e8m0", "e4m3", "ue5m3"};
  char text[256];
#define R(n) ((int)((tiles_random(state) >> 33) % (n)))
  int d[15]; /* drawn before the call, since compilers evaluate arguments in different orders */
  static const int of[15] = {7, 3, 36, 12, 12, 11, 3, 2, 4, 150, 4, 4, 2, 2, 2};
  for (int i = 0; i < 15; i++) d[i] = R(of[i]);
  int L = 1 << d[0], after = d[1] == 0, F = d[2];
  char floor[16];
  snprintf(floor, sizeof floor, "%d", d[8] == 2 ? -133 + d[9] : 0);
  snprintf(text, sizeof text, "fused:a=%s,b=%s,out=%s,L=%d,F=%d,align=%s,zero=%s,floor=%s,scale=%s,block=%d,k=%d,huge=%s,under=%s,nan=%s",
           types[d[3]], types[d[4]], outs[d[5]], L, F, (const char *[]){"rz", "rd", "rne"}[d[6]], d[7] ? "skip" : "e126",
           d[8] < 2 ? "none" : floor, scales[d[10]], 8 << d[11], L << R(2), d[12] ? "keep" : "inf", d[13] ? "plus" : "keep",
           d[14] ? "ones" : "quiet");
  if (mx_mma_model_find(m, text, NULL)) return 0;
  mx_accum *x = &m->accum;
  if (after) {
    x->join = MX_ACC_JOIN_AFTER;
    x->sum_bits = 8 + R(32);
    x->c_bits = 8 + R(32);
    x->join_cut = R(3);
    x->c_drop = R(2) ? R(40) : 0;
    if (x->c_drop == 1) x->c_drop = MX_ACC_NUMBER_0;
    x->split = R(2);
  } else if (R(4) == 0)
    x->join = MX_ACC_JOIN_ADD;
  if (R(8) == 0 && !after) x->F = MX_ACC_F_EXACT;
  if (R(4) == 0) x->P = 1 << R(4);
  if (R(4) == 0) x->order = MX_ACC_ORDER_PAIRS;
  if (R(4) == 0) x->via = MX_ACC_VIA_F16;
#undef R
  return mx_mma_model_check(m, NULL) == MX_OK;
}

START_TEST(any_parameters_equal_reference) {
  const char *seed = getenv("SEED");
  uint64_t state = seed ? strtoull(seed, NULL, 10) * 2654435761 + 1 : 1181783497276652981;
  mx_mma_model m;
  for (int done = 0, tries = 0; done < 6000; tries++) {
    ck_assert_int_lt(tries, 100000);
    if (!random_model(&m, &state)) continue;
    size_t K = 1 + (size_t)(tiles_random(&state) >> 40) % 70;
    compare(&m, (tiles_kind)(done % TILES_COUNT), 1, 2, 3, K, done % 3 > 0, &state);
    done++;
  }
}
END_TEST

START_TEST(paths_agree_on_larger_shapes) {
  uint64_t state = 42;
  mx_mma_model m;
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK; i++) {
    tiles_kind kind = (tiles_kind)(i % TILES_COUNT);
    size_t k = m.k ? (size_t)m.k : 40;
    compare_paths(&m, kind, 5 + i % 17, 1 + i % 40, (1 + 300 / k) * k, i % 3 > 0, &state);
  }
}
END_TEST

START_TEST(shapes_and_threads) {
  uint64_t state = 7;
  static const char *const names[] = {"hopper/wgmma_m64n8k16_f32_f16_f16",
                                      "cdna3/mfma_f32_16x16x32_fp8_bf8",
                                      "blackwell_mxf4:scale=e4m3,block=16",
                                      "f32_seq",
                                      "s32",
                                      "cdna2_f16"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    mx_mma_model m = model_of(names[i]);
    tiles t;
    tiles_make(&t, &m, TILES_NEAR, 3, 37, 41, m.whole_k ? 64 : 67, 1, &state);
    ck_assert_int_eq(mx_mma(t.d, &m, &t.args, &(mx_exec){.n_threads = 1}, NULL), MX_OK);
    ck_assert_int_eq(mx_mma(t.d_ref, &m, &t.args, &(mx_exec){.n_threads = 3}, NULL), MX_OK);
    ck_assert_mem_eq(t.d, t.d_ref, t.d_bytes);
    if (m.c == m.d) { /* D overwrites C */
      ck_assert_int_eq(mx_mma(t.c, &m, &t.args, &(mx_exec){.n_threads = 2}, NULL), MX_OK);
      ck_assert_mem_eq(t.c, t.d, t.d_bytes);
    }
    tiles_free(&t);
  }
}
END_TEST

START_TEST(refusals) {
  mx_mma_model m = model_of("hopper/mma_m16n8k16_f32_f16_f16_f32"), s = model_of("blackwell/tcgen05bs_m128n8k32_block32_f32_e4m3_e4m3_ue8m0");
  uint16_t a[32] = {0};
  uint32_t d = 5;
  mx_mma_args args = {1, 1, 1, 16, a, a, NULL, NULL, NULL};
  ck_assert_int_eq(mx_mma(NULL, &m, &args, NULL, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_mma(&d, NULL, &args, NULL, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_mma(&d, &m, NULL, NULL, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_mma(&d, &m, &(mx_mma_args){1, 1, 1, 16, a, NULL, NULL, NULL, NULL}, NULL, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_mma(&d, &m, &(mx_mma_args){1, 1, 1, 24, a, a, NULL, NULL, NULL}, NULL, NULL), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_mma(&d, &m, &(mx_mma_args){SIZE_MAX, SIZE_MAX, 1, 16, a, a, NULL, NULL, NULL}, NULL, NULL), MX_ERR_SHAPE);
  ck_assert_int_eq(mx_mma(&d, &m, &(mx_mma_args){1, 1, 1, 16, a, a, NULL, a, a}, NULL, NULL), MX_ERR_ARG);
  ck_assert_int_eq(mx_mma(&d, &s, &(mx_mma_args){1, 1, 1, 32, a, a, NULL, NULL, NULL}, NULL, NULL), MX_ERR_ARG);
  m.accum.split = MX_ACC_SPLIT_EVENODD;
  ck_assert_int_eq(mx_mma(&d, &m, &args, NULL, NULL), MX_ERR_CONFLICT);
  ck_assert_uint_eq(d, 5);
}
END_TEST

/* --- MMA-Sim --- */

typedef mx_status run_mma(void *d, const mx_mma_model *m, const mx_mma_args *args);
static mx_status run_fast(void *d, const mx_mma_model *m, const mx_mma_args *args) { return mx_mma(d, m, args, NULL, NULL); }

static const mx_array *tensor(const mx_file *f, const char *model, const char *name) {
  char full[128];
  snprintf(full, sizeof full, "%s.%s", model, name);
  for (size_t i = 0; i < mx_file_count(f); i++)
    if (!strcmp(mx_file_at(f, i)->name, full)) return mx_file_at(f, i);
  return NULL;
}

static int is_nan32(uint32_t x) { return (x & 0x7FFFFFFF) > 0x7F800000; }

static size_t differences(const mx_mma_model *m, const mx_array *want, const uint8_t *got) {
  size_t n = 0, width = mx_mma_bytes(m->d, 1);
  int any_nan = !strncmp(m->name, "cdna", 4);
  for (size_t i = 0; i < want->n_values; i++) {
    uint32_t x = 0, y = 0;
    memcpy(&x, got + i * width, width);
    memcpy(&y, want->data + i * width, width);
    n += x != y && !(any_nan && is_nan32(x) && is_nan32(y));
  }
  return n;
}

/* Checks one instruction of the file, given by its tensor d. Returns how many outputs it has. */
static size_t check_instruction(const mx_file *f, const mx_array *d, run_mma *run) {
  char name[96], text[128];
  snprintf(name, sizeof name, "%.*s", (int)(strlen(d->name) - 2), d->name);
  /* Hopper's own rows follow an H200, which treats zeros and tiny exponents differently. */
  snprintf(text, sizeof text, "%s%s", name, strncmp(name, "hopper/", 7) ? "" : ":rules=mmasim");
  mx_mma_model m = model_of(text);
  const mx_array *a = tensor(f, name, "a"), *b = tensor(f, name, "b"), *c = tensor(f, name, "c"), *sa = tensor(f, name, "scale_a"),
                 *sb = tensor(f, name, "scale_b");
  ck_assert_msg(a && b && c, "%s: a, b or c is missing", name);
  mx_mma_args args = {a->shape[0], a->shape[1], b->shape[1],          (size_t)m.k,         a->data,
                      b->data,     c->data,     sa ? sa->data : NULL, sb ? sb->data : NULL};
  uint8_t *got = malloc(d->n_bytes);
  ck_assert_ptr_nonnull(got);
  ck_assert_int_eq(run(got, &m, &args), MX_OK);
  size_t n = differences(&m, d, got);
  ck_assert_msg(n == 0, "%s: %zu of %zu outputs differ", text, n, (size_t)d->n_values);
  free(got);
  return (size_t)d->n_values;
}

static void check_file(run_mma *run) {
  mx_file *f;
  mx_error err;
  size_t n = 0, outputs = 0;
  ck_assert_msg(mx_file_open(&f, "tests/mma_sim/mma_sim.safetensors", &err) == MX_OK, "%s", err.text);
  for (size_t i = 0; i < mx_file_count(f); i++) {
    const mx_array *d = mx_file_at(f, i);
    size_t length = strlen(d->name);
    if (length < 2 || strcmp(d->name + length - 2, ".d")) continue;
    outputs += check_instruction(f, d, run);
    n++;
  }
  mx_file_close(f);
  ck_assert_uint_eq(n, 180);
  ck_assert_uint_gt(outputs, 90000);
}

START_TEST(mma_sim_by_the_fast_path) { check_file(run_fast); }
END_TEST

START_TEST(mma_sim_by_the_reference) { check_file(ref_mma); }
END_TEST

static TCase *group(Suite *s, const char *name) {
  TCase *t = tcase_create(name);
  tcase_set_timeout(t, 600);
  suite_add_tcase(s, t);
  return t;
}

int main(void) {
  Suite *s = suite_create("mma");
  TCase *t = group(s, "by hand");
  tcase_add_test(t, truncation);
  tcase_add_test(t, fp8_keeps_13_bits);
  tcase_add_test(t, joining);
  tcase_add_test(t, chaining);
  tcase_add_test(t, zeros_and_the_floor);
  tcase_add_test(t, parameters_of_0);
  tcase_add_test(t, k_follows_L);
  tcase_add_test(t, specials);
  tcase_add_test(t, block_scales);
  tcase_add_test(t, chains_and_integers);
  tcase_add_test(t, first_nan);
  tcase_add_test(t, integers_of_both_kinds);
  tcase_add_test(t, from_nothing);
  t = group(s, "against ref");
  tcase_add_test(t, rows_equal_reference);
  tcase_add_test(t, any_parameters_equal_reference);
  tcase_add_test(t, paths_agree_on_larger_shapes);
  tcase_add_test(t, shapes_and_threads);
  tcase_add_test(t, refusals);
  t = group(s, "MMA-Sim");
  tcase_add_test(t, mma_sim_by_the_fast_path);
  tcase_add_test(t, mma_sim_by_the_reference);
  return run_suite(s);
}
