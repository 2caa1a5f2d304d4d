/* Tests the quantised linear layer: every product, operand and gradient against ref_linear_*, bit for bit. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/linear.h"
#include "../ref/ref.h"
#include "lib/run.h"
#include "mxgold/ablate.h"
#include "mxgold/isa.h"

enum { MOST = 64 * 80 };

/* What a call gave: its outputs, and the bytes of each operand. */
typedef struct result {
  float y[MOST], dx[MOST], dw[MOST], db[80];
  uint8_t codes[MX_OPERANDS][4 * MOST], scales[MX_OPERANDS][4 * MOST];
  size_t n_codes[MX_OPERANDS], n_scales[MX_OPERANDS];
  float tensor_scale[MX_OPERANDS];
  uint64_t seed[MX_OPERANDS];
  uint8_t signs[MX_OPERANDS][16];
  int made[MX_OPERANDS];
} result;

static void keep(void *self, int q, const mx_tensor *t, const mx_spec *s) {
  result *r = self;
  r->made[q]++;
  r->n_codes[q] = t->rows * t->code_stride;
  r->n_scales[q] = t->scale_rows * t->scale_cols * t->scale_bytes;
  ck_assert_uint_le(r->n_codes[q], sizeof r->codes[q]);
  memcpy(r->codes[q], t->codes, r->n_codes[q]);
  memcpy(r->scales[q], t->scales, r->n_scales[q]);
  r->tensor_scale[q] = t->tensor_scale;
  r->seed[q] = s->seed;
  memcpy(r->signs[q], s->had_signs, sizeof r->signs[q]);
}

typedef struct setup {
  size_t T, I, O;
  mx_dtype dtype;
  int accumulate, with_bias;
  mx_exec exec;
} setup;

static float x[MOST], w[MOST], dy[MOST], bias[80], average[MOST]; /* average: of w */
static uint16_t x16[MOST], w16[MOST], dy16[MOST];

static void fill(void) {
  const mx_data kind = {.kind = MX_DATA_ROWS, .param = {1.5}};
  mx_data_fill(x, 1, MOST, &(mx_data){.kind = MX_DATA_STUDENT, .param = {3}}, 1);
  mx_data_fill(w, MOST / 16, 16, &kind, 2);
  mx_data_fill(dy, MOST / 32, 32, &kind, 3);
  mx_data_fill(bias, 1, 80, &(mx_data){0}, 4);
  mx_data_fill(average, 1, MOST, &(mx_data){0}, 5);
  for (int i = 0; i < MOST; i++) average[i] = w[i] * (1 + .3f * average[i]);
  average[3] = -w[3], average[4] = INFINITY, average[5] = NAN;
  mx_narrow(x16, x, MOST, MX_BF16, 1);
  mx_narrow(w16, w, MOST, MX_BF16, 1);
  mx_narrow(dy16, dy, MOST, MX_BF16, 1);
}

static void run(result *r, const setup *s, const mx_linear_recipe *recipe, int by_ref) {
  memset(r, 0, sizeof *r);
  mx_linear l = {.recipe = recipe, .T = s->T, .I = s->I, .O = s->O, .seed = 77, .step = 5, .layer = 3, .operand = keep, .self = r};
  mx_linear_hold hold = {.scale = {1.5f, 0, 0x1p-3f, .7f, 1, 3}};
  if (recipe->q2_ema != 0) l.ema = (mx_linear_in){average, s->I, MX_F32};
  if (recipe->tensor_hold != 0) l.hold = &hold;
  hold.refresh = recipe->tensor_hold == 2;
  const int half = s->dtype == MX_BF16;
  const mx_linear_in xi = {half ? (void *)x16 : x, s->I + 1, s->dtype}, wi = {half ? (void *)w16 : w, s->I, s->dtype},
                     di = {half ? (void *)dy16 : dy, s->O + 2, s->dtype};
  const mx_linear_out y = {r->y, s->O + 1, s->dtype, 0}, dx = {r->dx, s->I, s->dtype, 0}, dw = {r->dw, s->I, MX_F32, s->accumulate};
  const float *b = s->with_bias ? bias : NULL;
  mx_error err;
  for (size_t i = 0; i < MOST; i++) r->y[i] = r->dw[i] = (float)(i % 7);
  if (by_ref) {
    if (ref_linear_forward(&l, y, xi, wi, b, &err) || ref_linear_backward(&l, dx, dw, r->db, di, xi, wi, &err))
      ck_abort_msg("ref: %s", err.text);
    return;
  }
  size_t saved, work;
  if (mx_linear_sizes(&saved, &work, &l, &s->exec, &err)) ck_abort_msg("sizes: %s", err.text);
  /* There are guards after the requested memory, and garbage in it. */
  uint8_t *room = malloc(saved + work + 128);
  memset(room, 0xA5, saved + work + 128);
  if (mx_linear_forward(&l, y, xi, wi, b, room, room + saved + 64, &s->exec, &err)) ck_abort_msg("forward: %s", err.text);
  memset(room + saved + 64, 0x5A, work);
  if (mx_linear_backward(&l, dx, dw, r->db, di, xi, wi, room, room + saved + 64, &s->exec, &err)) ck_abort_msg("backward: %s", err.text);
  for (int i = 0; i < 64; i++) ck_assert_msg(room[saved + i] == 0xA5 && room[saved + 64 + work + i] == 0xA5, "written behind the end");
  free(room);
}

static void same(const char *what, const char *name, const void *a, const void *b, size_t n) {
  const uint8_t *p = a, *q = b;
  for (size_t i = 0; i < n; i++) ck_assert_msg(p[i] == q[i], "%s: %s: byte %zu is %02x, expected %02x", name, what, i, p[i], q[i]);
}

static void compare(const char *name, const setup *s, const mx_linear_recipe *recipe) {
  static result got, want;
  run(&want, s, recipe, 1);
  run(&got, s, recipe, 0);
  for (int q = 0; q < MX_OPERANDS; q++) {
    char what[32];
    snprintf(what, sizeof what, "Q%d", q + 1);
    ck_assert_msg(got.made[q] == want.made[q], "%s: %s is made %d times, expected %d", name, what, got.made[q], want.made[q]);
    ck_assert_msg(got.n_codes[q] == want.n_codes[q] && got.n_scales[q] == want.n_scales[q], "%s: %s has another extent", name, what);
    ck_assert_msg(got.seed[q] == want.seed[q], "%s: %s has another seed", name, what);
    same(what, name, got.codes[q], want.codes[q], want.n_codes[q]);
    same(what, name, got.scales[q], want.scales[q], want.n_scales[q]);
    same(what, name, got.signs[q], want.signs[q], sizeof want.signs[q]);
    same(what, name, &got.tensor_scale[q], &want.tensor_scale[q], sizeof(float));
  }
  same("y", name, got.y, want.y, sizeof want.y);
  same("dx", name, got.dx, want.dx, sizeof want.dx);
  same("dw", name, got.dw, want.dw, sizeof want.dw);
  same("db", name, got.db, want.db, sizeof want.db);
}

static mx_linear_recipe recipe_of(const char *keys, const char *operands, const char *train) {
  mx_linear_recipe r = {0};
  mx_error err;
  const mx_recipe row = {.name = "test", .keys = keys, .operands = operands};
  mx_spec base;
  if (mx_recipe_base(&base, &row, &err)) ck_abort_msg("%s: %s", keys, err.text);
  for (int q = 0; q < MX_OPERANDS; q++) r.q[q] = base;
  if (mx_recipe_operands(r.q, &row, &err) || mx_linear_parse(&r, train, &err)) ck_abort_msg("%s: %s", keys, err.text);
  return r;
}

#define BACK_SR "Q3:elem.round=sr;Q4:elem.round=sr;Q5:elem.round=sr;Q6:elem.round=sr"
#define EDEN(q) q ":chain=quartet2,scale.max=6.0721063,tensor.target=0,select=eden,eden.group=32,had.size=32,had.sign=fresh"
static const struct {
  const char *keys, *operands, *train;
} rules[] = {
    {"", "", ""},
    {"ocp-mxfp4", BACK_SR, "requant.source=fwd_dequant"},
    {"scale.rule=value scale.round=up", BACK_SR, "requant.source=reuse"},
    {"scale.rule=even block=16x16", "Q1:block=1x16;Q3:block=1x16;Q5:block=1x16;Q6:block=1x16", "requant.source=reuse"},
    {"block=16x16 elem=e4m3 nibble=high_first", "", "requant.source=reuse"},
    {"block=8x8 nibble=half_block", "", "requant.source=reuse"},
    {"te-nvfp4", "Q2:block=16x16;Q3:elem.round=sr;Q4:block=16x16;Q5:elem.round=sr,had.size=16,had.sign=te;Q6:had.size=16,had.sign=te", ""},
    {"had.size=32 had.sign=fresh", BACK_SR, ""},
    {"had.size=16 had.sign=fresh elem.prescale=0.75", BACK_SR, "requant.source=fwd_dequant,had.draw=run"},
    {"had.size=64", "", "requant.source=reuse"},
    {"te-4over6-mse-256", EDEN("Q3") ";" EDEN("Q4") ";" EDEN("Q5") ";" EDEN("Q6"), "requant.source=fwd_dequant,had.draw=backward"},
    {"elem=e4m3 scale=fp32 block=tensor scale.rule=value", "Q3:elem=e5m2;Q5:elem=e5m2", ""},
    {"elem=none input.dtype=bfloat16", "", ""},
    {"elem=bf16", "", ""},
    {"elem=bf16 had.size=16", "Q6:elem=e4m3", "requant.source=reuse"},
    {"", "Q2:elem=bf16;Q3:elem=bf16;Q5:elem=bf16", "grad.qprime=dge,requant.source=fwd_dequant"},
    {"elem=none input.dtype=bfloat16", "Q1:had.size=16;Q2:had.size=16;Q6:elem=e4m3", "requant.source=fwd_dequant"},
    {"elem=e4m3", "Q3:elem=e5m2;Q5:elem=e5m2", "random=shared"},
    {"", BACK_SR, "random=counter"},
    {"", "Q1:elem.round=sr,sr.bits=4;Q6:elem.round=sr", "random=counter,requant.source=fwd_dequant"},
    {"", "Q1:elem=none;Q2:elem=none;" BACK_SR, "random=frozen,requant.source=fwd_dequant"},
    {"", "Q2:elem=none;Q3:elem=none", ""},
    {"scale=fp32 block=row scale.rule=value", "Q3:elem=e5m2;Q4:elem=none;Q5:elem=e5m2;Q6:elem=none", "requant.source=reuse"},
    {"hif4", "", ""},
    {"", "", "grad.qprime=dge"},
    {"had.size=32", "Q1:scale.rule=quest,elem.round=rtz_tie;Q2:scale.rule=quest,elem.round=rtz_tie;" BACK_SR,
     "requant.source=fwd_dequant,grad.trust_mask=on"},
    {"had.size=16 had.sign=fresh", "", "grad.trust_mask=on,grad.qprime=spline,grad.qprime_lo=0"},
    {"scale=fp32 block=row scale.rule=value", "Q3:elem=e5m2;Q5:elem=e5m2",
     "requant.source=reuse,grad.operands=w,grad.qprime=dge,grad.qprime_hi=3,grad.qprime_lo=0"},
    {"te-nvfp4", "Q2:block=16x16;Q4:block=16x16", "grad.qprime=baseline_compat,grad.operands=x"},
    {"scale=e4m3 block=1x16 scale.rule=value scale.form=encode tensor.norm=chmiel", "", "grad.qprime=baseline_compat,grad.mask=graphcore"},
    {"elem=e4m3 elem.prescale=0.75 tensor.norm=unit scale.rule=value scale=ue5m3", "", "grad.qprime=spline,spline.knots=1000,grad.k=3"},
    {"elem=int8 block=8x8 tensor.norm=nv tensor.store=amax scale=e4m3 chain=exact scale.rule=value scale.margin=0.9411764",
     "Q1:elem=none,tensor.norm=none", "grad.qprime=dge,requant.source=reuse,grad.k=16"},
    {"scale=e4m3 block=1x16 scale.rule=value scale.form=encode tensor.norm=seed004 scale.margin=0.9411764", BACK_SR,
     "grad.config=absmax,grad.tensor=absmax"},
    {"scale=ue5m3 block=1x16 scale.rule=value had.size=16 had.sign=fresh tensor.norm=unit", "",
     "grad.config=hybrid,grad.beta=2,grad.jacobian=full,grad.tensor=softmax,grad.qprime=spline,grad.scale_qprime=spline"},
    {"scale=e4m3 block=4x8 scale.rule=value scale.form=encode elem.prescale=0.75",
     "Q1:elem.round=sr;Q4:block=1x8;Q6:block=1x8;Q3:block=1x8;Q5:block=1x8",
     "requant.source=fwd_dequant,grad.config=hybrid,norm.lse_relative=on,grad.jacobian=full,grad.trust_mask=on"},
    {"", "", "grad.config=absmax,grad.ties=all,grad.jacobian=full"},
    {"scale.rule=even", "Q1:tensor.norm=nv,chain=exact,tensor.target=6;Q2:tensor.norm=nv,chain=exact,tensor.store=divisor,tensor.target=96",
     "grad.tensor=absmax,grad.jacobian=full,grad.qprime=dge"},
    {"scale=e4m3 block=1x16 scale.rule=value scale.form=encode", "Q1:elem.round=sr;Q2:scale.round=sr,nibble=half_block",
     "grad.config=softmax,grad.beta=2"},
    {"", "Q4:elem.round=sr", "grad.config=softmax,norm.lse_relative=on,grad.jacobian=full,random=counter,requant.source=reuse"},
    {"had.size=16 had.sign=fresh block=4x8 scale=e4m3 scale.rule=value tensor.norm=unit", "",
     "grad.config=softmax,grad.operands=x,grad.tensor=absmax"},
    {"elem=e4m3 block=col", "Q1:elem.round=sr,sr.bits=5", "grad.config=softmax,random=counter,grad.trust_mask=on"},
    {"te-nvfp4", "", "grad.config=absmax,grad.scale_qprime=baseline_compat,grad.scale_mask=graphcore,grad.operands=w"},
    {"block=tensor scale=fp32 scale.rule=value", "", "grad.config=hybrid,grad.beta=1,grad.scale_qprime=dge,grad.scale_region=255"},
    {"", "", "occ.alpha=.9"},
    {"", "", "occ.alpha=.9,grad.qprime=dge,grad.trust_mask=on"},
    {"ocp-mxfp4", BACK_SR, "requant.source=fwd_dequant,occ.alpha=.8,occ.index=msamp,occ.residual_weight=q"},
    {"scale.rule=value scale.round=up elem.prescale=.75", "", "occ.alpha=.97,occ.axis=tensor,occ.residual_weight=q"},
    {"had.size=16 had.sign=fresh", BACK_SR, "occ.alpha=.95,occ.axis=tensor,occ.index=msamp"},
    {"scale=fp32 block=row scale.rule=value", "Q3:elem=e5m2;Q5:elem=e5m2", "requant.source=reuse,occ.alpha=.5,occ.residual=off"},
    {"", "Q1:elem=none;Q2:elem=none", "occ.alpha=.9"},
    {"", "Q2:elem=none", "occ.alpha=.9,occ.residual_weight=q"},
    {"scale.rule=value scale.round=up", BACK_SR, "requant.source=fwd_dequant,q2.ema=.9983"},
    {"had.size=16 had.sign=fresh elem.prescale=.75 nibble=half_block", "", "q2.ema=.9"},
    {"te-nvfp4", "Q2:block=16x16,elem.zero_sign=drop_all;Q4:block=16x16", "q2.ema=.9,occ.alpha=.9,occ.residual_weight=q,tensor.hold=9"},
    {"scale=e4m3 block=1x16 scale.rule=value scale.form=encode tensor.norm=chmiel", BACK_SR,
     "tensor.hold=2,requant.source=fwd_dequant,q2.ema=.5"},
    {"scale=ue5m3_61440 block=1x16 scale.rule=value tensor.norm=nv tensor.target=2688 had.size=32 had.sign=fresh", "", "tensor.hold=50"},
};

/* T, I, O: whole blocks, tails everywhere, one of each, and more tokens than columns. */
static const size_t shapes[][3] = {{32, 64, 32}, {33, 47, 39}, {1, 1, 1}, {50, 17, 70}, {7, 64, 2}};

START_TEST(rules_and_shapes) {
  fill();
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    mx_linear_recipe r = recipe_of(rules[i].keys, rules[i].operands, rules[i].train);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
      if (k > 2 && strstr(rules[i].train, "grad.")) break; /* ref/ is slow for these */
      char name[300];
      const setup s = {shapes[k][0],
                       shapes[k][1],
                       shapes[k][2],
                       (i + k) % 3 == 2 ? MX_BF16 : MX_F32,
                       (i + k) % 2 == 1,
                       k % 2 == 0,
                       {.n_threads = (int)(k % 3), .isa_mask = (i + k) % 4 == 3 ? MX_ISA_ALL : 0}};
      snprintf(name, sizeof name, "%s; %s; %s; %zu x %zu x %zu", rules[i].keys, rules[i].operands, rules[i].train, s.T, s.I, s.O);
      compare(name, &s, &r);
    }
  }
}
END_TEST

/* max|X| counts a NaN (SPEC 3.2, step 4), so that every scale of the tensor is made of it; softmax scales keep max|X| of the tensor scale. */
START_TEST(a_nan_under_softmax) {
  fill();
  w[20] = NAN;
  const mx_linear_recipe r = recipe_of("scale=e4m3 block=1x16 scale.rule=value tensor.norm=unit", "", "grad.config=softmax");
  const setup s = {3, 33, 5, MX_F32, 0, 0, {0}};
  compare("softmax, a NaN in W", &s, &r);
}
END_TEST

START_TEST(products_switched_off) {
  fill();
  for (int off = 0; off < 8; off++) {
    mx_linear_recipe r = recipe_of("had.size=16 had.sign=fresh", BACK_SR, off & 1 ? "requant.source=fwd_dequant" : "");
    for (int p = 0; p < MX_PRODUCTS; p++) r.off[p] = off >> p & 1;
    const setup s = {33, 47, 39, MX_F32, 0, 1, {0}};
    char name[64];
    snprintf(name, sizeof name, "products %d switched off", off);
    compare(name, &s, &r);
  }
}
END_TEST

START_TEST(every_model) {
  fill();
  for (int model = 0; model < MX_GEMM_FUSED; model++) {
    mx_linear_recipe r = recipe_of("", "", "");
    r.model = model;
    const setup s = {20, 40, 24, MX_F32, 0, 1, {0}};
    compare(mx_gemm_model_name(model), &s, &r);
  }
}
END_TEST

/* With everything off it is the plain layer, in which each output is one chain of fused multiply-adds, here in a plain loop. */
START_TEST(plain_layer) {
  fill();
  static result got;
  mx_linear_recipe r = {.off = {1, 1, 1}};
  const setup s = {9, 7, 5, MX_F32, 0, 1, {0}};
  run(&got, &s, &r, 0);
  for (size_t t = 0; t < s.T; t++)
    for (size_t o = 0; o < s.O; o++) {
      float sum = 0;
      for (size_t i = 0; i < s.I; i++) sum = __builtin_fmaf(x[t * (s.I + 1) + i], w[o * s.I + i], sum);
      ck_assert_float_eq(got.y[t * (s.O + 1) + o], sum + bias[o]);
    }
  for (size_t o = 0; o < s.O; o++)
    for (size_t i = 0; i < s.I; i++) {
      float sum = 0;
      for (size_t t = 0; t < s.T; t++) sum = __builtin_fmaf(dy[t * (s.O + 2) + o], x[t * (s.I + 1) + i], sum);
      ck_assert_float_eq(got.dw[o * s.I + i], sum);
    }
  for (int q = 0; q < MX_OPERANDS; q++) ck_assert_int_eq(got.made[q], 0);
}
END_TEST

/* With blocks along the wrong axis, the huge row of x would show in the scales of all other rows. */
START_TEST(blocks_run_along_the_reduction_axis) {
  fill();
  static result got;
  static float kept[MOST];
  memcpy(kept, x, sizeof x);
  const setup s = {64, 64, 32, MX_F32, 0, 0, {0}};
  for (size_t i = 0; i < s.I; i++) x[10 * (s.I + 1) + i] = 1e20f;
  const mx_linear_recipe r = {0};
  run(&got, &s, &r, 0);
  memcpy(x, kept, sizeof x);
  int huge1 = 0, huge6 = 0;
  for (size_t i = 0; i < got.n_scales[MX_Q1]; i++) huge1 += got.scales[MX_Q1][i] > 180;
  for (size_t i = 0; i < got.n_scales[MX_Q6]; i++) huge6 += got.scales[MX_Q6][i] > 180;
  ck_assert_int_eq(huge1, 2);  /* the two blocks of the row */
  ck_assert_int_eq(huge6, 64); /* one block of tokens in each of 64 features */
}
END_TEST

START_TEST(draws) {
  /* Words 2i, 2i + 1 of stream 5, i = step 2^24 + layer 2^4 + slot. */
  const uint64_t i = (UINT64_C(9) << 24) + (7 << 4) + 2;
  ck_assert_uint_eq(mx_linear_seed(123, 9, 7, 2), ref_random(123, 5, 2 * i) | (uint64_t)ref_random(123, 5, 2 * i + 1) << 32);
  fill();
  static result a;
  const setup s = {64, 64, 64, MX_F32, 0, 0, {0}};
  mx_linear_recipe r = recipe_of("", BACK_SR, "");
  run(&a, &s, &r, 0);
  for (int p = 0; p < MX_OPERANDS; p++)
    for (int q = 0; q < p; q++) ck_assert_uint_ne(a.seed[p], a.seed[q]);
  /* Each product has its own signs; under had.draw=backward Wgrad shares those of Dgrad. */
  for (int backward = 0; backward < 2; backward++) {
    r = recipe_of("had.size=64 had.sign=fresh", "", backward ? "had.draw=backward" : "");
    run(&a, &s, &r, 0);
    for (int p = 0; p < MX_OPERANDS; p += 2) ck_assert(!memcmp(a.signs[p], a.signs[p + 1], 16));
    ck_assert(memcmp(a.signs[MX_Q1], a.signs[MX_Q3], 16));
    ck_assert(memcmp(a.signs[MX_Q1], a.signs[MX_Q5], 16));
    ck_assert_int_eq(!memcmp(a.signs[MX_Q3], a.signs[MX_Q5], 16), backward);
  }
}
END_TEST

/* recipe-bf16 by hand, under both spellings. There are seven bits after the point: 1 + 2^-9 becomes 1, a number just above the tie 1 + 2^-8
 * becomes 1 + 2^-7, and the tie itself becomes 1. */
START_TEST(bfloat16_operands) {
  static const float xs[2] = {1 + 0x1p-9f, 1 + 0x1p-8f + 0x1p-20f}, ws[2] = {0x1.01p0f, 3};
  static const char *const spellings[] = {"elem=bf16", "elem=none input.dtype=bfloat16"};
  for (int i = 0; i < 2; i++) {
    const mx_linear_recipe r = recipe_of(spellings[i], "", "");
    mx_linear l = {.recipe = &r, .T = 1, .I = 2, .O = 1};
    size_t saved, work;
    mx_error err;
    float y;
    ck_assert_int_eq(mx_linear_sizes(&saved, &work, &l, NULL, &err), MX_OK);
    char *room = malloc(work + 1);
    ck_assert_int_eq(mx_linear_forward(&l, (mx_linear_out){&y, 1, MX_F32, 0}, (mx_linear_in){xs, 2, MX_F32}, (mx_linear_in){ws, 2, MX_F32},
                                       NULL, NULL, room, NULL, &err),
                     MX_OK);
    ck_assert(y == 1 * 1 + (1 + 0x1p-7f) * 3); /* 1 + 2^-8 of w is a tie, and goes to 1 */
    free(room);
  }
}
END_TEST

START_TEST(refusals) {
  mx_error err;
  mx_linear_recipe r = recipe_of("", "Q1:had.size=16", "");
  ck_assert_int_eq(mx_linear_check(&r, &err), MX_ERR_CONFLICT);
  ck_assert_ptr_nonnull(strstr(err.text, "fprop: had.size=16 of Q1 and 0 of Q2"));
  r = recipe_of("had.size=16", "Q5:had.sign=te", "");
  ck_assert_int_eq(mx_linear_check(&r, &err), MX_ERR_CONFLICT);
  r = recipe_of("", "Q4:block=1x16", "");
  ck_assert_int_eq(mx_linear_check(&r, &err), MX_ERR_CONFLICT);
  ck_assert_ptr_nonnull(strstr(err.text, "dgrad: Q3 has blocks of 32 along the reduction axis and Q4 of 16"));
  ck_assert_int_eq(mx_linear_set(&r, "requant.sorce", "hp", &err), MX_ERR_KEY);
  ck_assert_ptr_nonnull(strstr(err.text, "nearest: requant.source"));
  ck_assert_int_eq(mx_linear_set(&r, "requant.source", "both", &err), MX_ERR_KEY);
  ck_assert_str_eq(err.text, "requant.source=both: expected one of hp|fwd_dequant|reuse; nearest: hp, reuse");
}
END_TEST

int main(void) {
  Suite *s = suite_create("linear");
  TCase *t = tcase_create("linear");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, rules_and_shapes);
  tcase_add_test(t, a_nan_under_softmax);
  tcase_add_test(t, products_switched_off);
  tcase_add_test(t, every_model);
  tcase_add_test(t, plain_layer);
  tcase_add_test(t, blocks_run_along_the_reduction_axis);
  tcase_add_test(t, draws);
  tcase_add_test(t, bfloat16_operands);
  tcase_add_test(t, refusals);
  suite_add_tcase(s, t);
  return run_suite(s);
}
