/* Each operation of the library on each ISA against its scalar code, bit for bit. */
#include "checkasm.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/dispatch.h"
#include "mxgold/codec.h"
#include "mxgold/isa.h"
#include "mxgold/layout.h"
#include "mxgold/quantize.h"

enum { GUARD = 64, ROWS = 2, MOST = 1100, WHY = 512 };

static uint64_t state = 20261121;
static uint32_t next(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 32);
}

void checkasm_fill(float *x, size_t n, int kind) {
  int exponent = 0;
  for (size_t i = 0; i < n; i++) {
    if (i % 16 == 0) exponent = (int)(next() % 24) - 12 + (kind == 2 ? (int)(next() % 240) - 120 : 0);
    float v = ldexpf((float)(int32_t)next(), exponent - 31);
    if (kind == 1) v = (float)((int)(next() % 97) - 48) / 8 * ldexpf(1, exponent / 4); /* ties */
    if (kind == 2 && next() % 40 == 0) v = next() % 2 ? 0.0f : -0.0f;
    if (kind == 2 && next() % 100 == 0) v = next() % 3 ? ldexpf(v, -130) : next() % 2 ? INFINITY : copysignf(NAN, next() % 2 ? 1.0f : -1.0f);
    if (kind == 3)
      v = ldexpf(1.5f + (float)((int)(next() % 3) - 1) * 0x1p-23f, exponent) * (next() % 2 ? 1.0f : -1.0f); /* around a threshold */
    if (kind == 4 && next() % 4 == 0) v = ldexpf(next() % 2 ? 1.0f : -1.0f, exponent + (int)(next() % 4));  /* powers of two */
    x[i] = v;
  }
}

/* ---- memory with guards ---- */

typedef struct guarded {
  uint8_t *all, *at;
  size_t n;
} guarded;

static guarded room(size_t n, size_t shift) {
  guarded g = {malloc(n + 2 * GUARD + 64), NULL, n};
  if (!g.all) exit(2);
  memset(g.all, 0xA5, n + 2 * GUARD + 64);
  g.at = g.all + GUARD + shift;
  return g;
}

static int intact(const guarded *g) {
  for (size_t i = 1; i <= GUARD; i++)
    if (g->at[-(ptrdiff_t)i] != 0xA5 || g->at[g->n + i - 1] != 0xA5) return 0;
  return 1;
}

static int failed(char *why, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, WHY, format, args);
  va_end(args);
  return 1;
}

typedef struct tensor {
  mx_tensor t;
  guarded codes, scales, micro;
} tensor;

static tensor tensor_room(size_t rows, size_t cols, const mx_spec *spec) {
  tensor g;
  if (mx_tensor_layout(&g.t, rows, cols, spec)) exit(2);
  const size_t scales = g.t.scale_rows * g.t.scale_cols;
  g.codes = room(g.t.rows * g.t.code_stride, 0);
  g.scales = room(scales * g.t.scale_bytes, 0);
  g.micro = room(scales * 3, 0);
  g.t.codes = g.codes.at;
  g.t.scales = g.scales.at;
  g.t.micro = spec->scale_rule == MX_SCALE_RULE_HIF4 ? g.micro.at : NULL;
  return g;
}

static void tensor_free(tensor *g) {
  free(g->codes.all);
  free(g->scales.all);
  free(g->micro.all);
}

static int tensors_differ(char *why, const char *what, const tensor *got, const tensor *want) {
  if (!intact(&got->codes) || !intact(&got->scales) || !intact(&got->micro)) return failed(why, "%s: wrote past the end", what);
  if (memcmp(&got->t.tensor_scale, &want->t.tensor_scale, 4)) return failed(why, "%s: tensor scale", what);
  if (memcmp(got->t.scales, want->t.scales, want->scales.n)) return failed(why, "%s: scales", what);
  if (want->t.micro && memcmp(got->t.micro, want->t.micro, want->micro.n)) return failed(why, "%s: micro-scales", what);
  for (size_t i = 0; i < want->codes.n; i++)
    if (got->t.codes[i] != want->t.codes[i])
      return failed(why, "%s: code byte %zu is %02x, scalar %02x", what, i, got->t.codes[i], want->t.codes[i]);
  return 0;
}

/* ---- operations: 0, or 1 with a line in `why`; *values counts what was compared ---- */

typedef int operation(char *why, uint32_t off, size_t *values);

/* The kinds of specs that presets do not have. */
static const char *const more_specs[] = {
    "block=4x8",
    "block=16x16 elem=e4m3",
    "block=5x3",
    "block=1x48",
    "block=1x8 nibble=high_first",
    "block=col",
    "block=col scale=e4m3 scale.rule=value elem=e2m3",
    "block=row",
    "block=tensor",
    "block=1x16 nibble=half_block",
    "had.size=16",
    "had.size=32 had.sign=te elem=e4m3",
    "had.size=64 had.sign=fresh seed=3",
    "had.size=128 block=1x16",
    "input.dtype=bfloat16",
    "input.dtype=float16 flush=on",
    "input.dtype=bfloat16 had.size=32 flush=on",
    "flush=on elem=e3m2",
    "scale.rule=value scale.round=sr seed=5",
    "scale=bf16 scale.rule=value",
    "elem=int8 elem.round=rna",
    "elem=e5m2fnuz",
    "elem=e4m3fnuz elem.round=rtz",
    "elem=e5m2 elem.round=rtp elem.zero_sign=force",
    "elem=e4m3 elem.round=rne_f32 scale.rule=ceil scale.log2=log2f",
    "scale=e4m3 scale.rule=value elem=e4m3 tensor.norm=nv block=1x16",
    "scale=e4m3 scale.rule=value scale.form=encode scale.zero=zero",
    "scale=ue5m3 scale.rule=value tensor.norm=unit deq.arith=two_step",
    "scale=ue5m3 scale.rule=value tensor.norm=unit deq.arith=scale_first",
    "scale=e4m3 scale.rule=value scale.form=encode tensor.norm=chmiel deq.arith=scale_first",
    "scale=bf16 scale.rule=value tensor.norm=unit tensor.target=300 tensor.store=divisor elem=e4m3 block=1x24 deq.arith=scale_first",
    "scale=e4m3 scale.rule=value tensor.norm=nv block=1x16 select=foursix deq.arith=scale_first",
    "block=row scale=bf16 scale.rule=value",
    "scale=bf16 scale.rule=value scale.form=encode",
    "scale=bf16 scale.rule=value block=col",
    "scale=bf16 scale.rule=value scale.arith=recip32 elem.arith=recip32",
    "scale=bf16 scale.rule=ceil",
    "scale=fp32 scale.rule=value",
    "scale=fp32 scale.rule=value block=1x128 elem=e4m3",
    "scale=fp32 scale.rule=value block=16x16 elem=e4m3 scale.arith=div32 elem.arith=div32",
    "scale=fp32 scale.rule=value scale.form=encode elem=int8",
    "scale=fp32 scale.rule=value scale.round=up elem=e5m2",
    "scale=fp32 scale.rule=value tensor.norm=unit tensor.target=300",
    "scale=e8m3 scale.rule=value scale.nan=max elem=e3m2",
    "scale=ue5m3 scale.rule=value scale.round=sr seed=5 block=16x1",
    "scale.rule=quest",
    "scale.rule=quest block=16x16 scale=bf16",
    "scale.rule=quest block=col",
    "scale.rule=quest block=row elem=e4m3",
    "scale.rule=quest scale=fp32 block=1x24",
    "elem.round=sr seed=1 sr.source=amd_lfsr",
    "elem.round=sr seed=1 sr.source=amd_lfsr elem=e4m3 block=1x8",
    "elem.round=sr seed=2 sr.source=amd_lfsr block=16x1 elem=e2m3",
    "elem.round=scan_y elem=e4m3",
    "elem.round=scan_y elem=e5m2 elem.overflow=ieee",
    "elem.round=scan_y elem=e2m3 scale=e4m3 scale.rule=value",
    "elem.round=scan_y elem=int8",
    "elem.round=scan_y elem=e4m3fnuz",
    "elem.round=scan_x elem=e3m2",
    "elem.round=scan_x elem=e4m3 scale=e4m3 scale.rule=value",
    "elem.round=scan_x elem=e5m2fnuz",
    "elem.round=scan_x elem=int8",
    "elem.round=scan_y elem=e1m2",
    "elem=e4m3 elem.overflow=ieee elem.round=rtz",
    "elem=e4m3 elem.overflow=ieee elem.round=rtp scale.max=200",
    "elem=e5m2 elem.overflow=ieee elem.round=rtn scale.max=30000",
    "elem=e4m3fnuz elem.overflow=ieee scale.max=100",
    "elem=e5m2fnuz elem.overflow=ieee elem.round=rna",
    "elem=e4m3 elem.saturate_to=nan elem.round=rtz scale.max=300",
    "elem=e4m3 elem.overflow=ieee elem.round=sr seed=9 scale.max=250",
    "elem.prescale=0.75 elem.arith=div32",
    "elem.prescale=0.75 elem.arith=recip32 scale=e4m3 scale.rule=value",
    "elem.prescale=1.25 elem.arith=div32 elem=e4m3 block=16x16 elem.round=rtz",
    "elem.prescale=0.7 elem.arith=div32 elem.round=rna_f32",
    "scale=e4m3 scale.rule=value tensor.norm=unit block=16x16",
    "scale=e4m3 scale.rule=value tensor.norm=unit block=16x1",
    "scale=e4m3 scale.rule=value tensor.norm=chmiel scale.form=encode block=4x8",
    "scale=e4m3 scale.rule=value tensor.norm=seed004 scale.form=encode block=row",
    "input.dtype=float16 scale=e4m3 scale.rule=value",
    "scale=e4m3 scale.rule=value select=foursix block=16x16",
    "scale=e4m3 scale.rule=value select=foursix block=1x16 select.error=mae select.sum=torch16",
    "scale=e8m0 scale.rule=value select=foursix select.error=absmax",
    "scale=ue5m3 scale.rule=value scale.arith=div32 elem.arith=div32 select=foursix block=1x48 elem.round=rna",
    "scale=e4m3 scale.rule=value scale.arith=recip32 elem.arith=recip32 select=foursix block=1x64 nibble=half_block",
    "scale=e4m3 scale.rule=value select=foursix elem.overflow=wrap_negzero block=1x16",
    "scale=bf16 scale.rule=value select=foursix",
    "nibble=half_block block=16x16",
    "nibble=half_block block=1x8",
    "nibble=half_block block=1x6",
    "elem=none",
    "elem=none block=16x16 scale=bf16",
    "scale.used=unclamped scale.min_byte=120",
    "elem=e4m3 elem.overflow=wrap_negzero scale.max=200",
    "elem=e2m3 elem.overflow=wrap_negzero scale.rule=value scale=e4m3 scale.max=3 block=1x16",
    "elem=e5m2 elem.overflow=wrap_negzero scale.max=9000 elem.zero_sign=drop_all",
    "elem.overflow=wrap_negzero scale.max_byte=124",
    "scale.max_byte=122 block=16x1",
    "scale.max_byte=118 block=4x8 nibble=high_first",
    "scale.max_byte=100 elem=e4m3",
    "elem.round=scan_x input.dtype=bfloat16 scale=e4m3 scale.rule=value",
    "elem.round=scan_x elem.prescale=0.75 elem.arith=div32 elem=int8",
    "elem.round=scan_x chain=torchao1 scale=e4m3 scale.rule=value block=1x16",
    "elem.round=scan_x scale.form=encode scale.rule=value scale=bf16 elem=e3m2",
    "elem.round=scan_y input.dtype=float16 scale=e4m3 scale.rule=value elem=int8",
    "scale=e4m3 scale.rule=value tensor.norm=nv elem.round=rna_f32 block=1x16",
    "scale=e4m3 scale.rule=value tensor.norm=unit elem.round=rne_f32 elem=e4m3 block=16x16",
    "scale=e4m3 scale.rule=value tensor.norm=chmiel scale.form=encode elem.round=scan_y elem=e2m3",
    "input.dtype=bfloat16 scale=bf16 scale.rule=value scale.form=encode",
    "elem=e4m3 chain=autoround_e5m3 scale=ue5m3 scale.rule=value",
    "elem=e5m2 elem.overflow=ieee chain=autoround_e5m3 scale=ue5m3 scale.rule=value scale.max=50000",
    "chain=autoround_e5m3 scale=ue5m3 scale.rule=value elem.round=sr seed=8",
    "elem=int8 chain=autoround scale=e4m3 scale.rule=value tensor.norm=nv elem.round=scan_y",
    "scale.rule=hif4 elem=e1m2 scale=e6m2 block=1x64 scale.round=sr seed=4 elem.zero_sign=drop_input",
    "scale.rule=hif4 elem=e1m2 scale=e6m2 block=1x64 scale.round=up scale.min_byte=150 input.dtype=float16 elem.zero_sign=force"};

static int spec_at(mx_spec *spec, char name[160], size_t i) {
  const size_t presets = mx_preset_count(), more = sizeof more_specs / sizeof *more_specs;
  memset(spec, 0, sizeof *spec);
  name[0] = 0;
  if (i >= presets + more) return 0;
  if (i >= presets) {
    snprintf(name, 160, "%s", more_specs[i - presets]);
    mx_error err;
    if (mx_spec_parse(spec, name, &err) || mx_spec_check(spec, &err)) {
      fprintf(stderr, "kernels: %s: %s\n", name, err.text);
      exit(2);
    }
  } else if (!mx_preset_at(i)->alias_of) {
    snprintf(name, 160, "%s", mx_preset_at(i)->name);
    if (mx_preset_find(spec, name, NULL)) exit(2);
  }
  return 1;
}

static const mx_exec scalar = {.isa_mask = MX_ISA_ALL};

static int hold_quantize(char *why, uint32_t off, const char *name, const mx_spec *spec, const float *x, size_t rows, size_t cols, size_t ld) {
  char what[WHY / 2];
  snprintf(what, sizeof what, "%s, %zu x %zu", name, rows, cols);
  tensor got = tensor_room(rows, cols, spec), want = tensor_room(rows, cols, spec);
  const mx_exec exec = {.isa_mask = off};
  const mx_status a = mx_quantize(&got.t, x, rows, cols, ld, spec, &exec, NULL);
  const mx_status b = mx_quantize(&want.t, x, rows, cols, ld, spec, &scalar, NULL);
  int bad = a != b ? failed(why, "%s: status %d, scalar %d", what, a, b) : a ? 0 : tensors_differ(why, what, &got, &want);
  tensor_free(&got);
  tensor_free(&want);
  return bad;
}

/* Of 16-bit inputs: what their binary32 values give, which are made here one by one. */
static int hold_16(char *why, uint32_t off, const char *name, const mx_spec *spec, const float *x, size_t rows, size_t cols, size_t ld) {
  char what[WHY / 2];
  static uint16_t half[ROWS * 1200 + 8];
  static float wide[ROWS * 1200];
  int bad = 0;
  for (int type = MX_INPUT_DTYPE_BFLOAT16; type <= MX_INPUT_DTYPE_FLOAT16 && !bad; type++) {
    uint16_t *at = half + cols % 3;
    for (size_t i = 0; i < rows * ld; i++) {
      uint32_t bits;
      memcpy(&bits, x + i, sizeof bits);
      const unsigned kind = next() % 8; /* their own numbers, or any bits: subnormals, Inf and NaN with payloads */
      at[i] = type == MX_INPUT_DTYPE_BFLOAT16 ? (uint16_t)(kind ? bits >> 16 : next())
                                              : (uint16_t)(kind > 1 ? (bits >> 16 & 0x8000) | (0x3C00 + (next() & 0x1FFF))
                                                           : kind   ? next() & 0x83FF
                                                                    : next());
      const uint32_t exponent = at[i] >> 10 & 31, fraction = at[i] & 0x3FF, sign = (uint32_t)(at[i] & 0x8000) << 16;
      float v = exponent ? ldexpf((float)(1024 + fraction), (int)exponent - 25) : ldexpf((float)fraction, -24);
      memcpy(&bits, &v, sizeof bits);
      bits |= sign;
      if (exponent == 31) bits = sign | 0x7F800000 | fraction << 13;
      if (type == MX_INPUT_DTYPE_BFLOAT16) bits = (uint32_t)at[i] << 16;
      memcpy(wide + i, &bits, sizeof bits);
    }
    snprintf(what, sizeof what, "%s, %zu x %zu of type %d", name, rows, cols, type);
    tensor got = tensor_room(rows, cols, spec), want = tensor_room(rows, cols, spec);
    const mx_exec exec = {.isa_mask = off};
    const mx_status a = mx_quantize_16(&got.t, at, type, rows, cols, ld, spec, &exec, NULL);
    const mx_status b = mx_quantize(&want.t, wide, rows, cols, ld, spec, &scalar, NULL);
    bad = a != b ? failed(why, "%s: status %d, scalar %d", what, a, b) : a ? 0 : tensors_differ(why, what, &got, &want);
    tensor_free(&got);
    tensor_free(&want);
  }
  return bad;
}

static const size_t lengths[] = {1, 15, 16, 17, 31, 32, 33, 63, 65, 127, 129, 255, 256, 257, 511, 512, 513, 544, 1023, 1056};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Each spec meets each kind of data and each length, not every pair. */
static int over_specs(char *why, uint32_t off, size_t *values, int stochastic,
                      int (*hold)(char *, uint32_t, const char *, const mx_spec *, const float *, size_t, size_t, size_t)) {
  mx_spec spec;
  char name[160];
  float *x = malloc((ROWS * MOST + 16) * sizeof *x);
  int bad = 0;
  for (size_t i = 0; !bad && spec_at(&spec, name, i); i++) {
    if (stochastic) spec.elem_round = MX_ROUND_SR, spec.seed = i, spec.sr_mode = (int)(i % 4);
    if (!*name || mx_spec_check(&spec, NULL) || (stochastic && i % 4)) continue;
    for (size_t k = 0; k < LENGTHS; k++)
      for (int kind = 0; !bad && kind < CHECKASM_KINDS; kind++) {
        if ((i + k + (size_t)kind) % 7) continue;
        float *at = x + (k + 1) % 5; /* aligned to a float alone */
        checkasm_fill(at, ROWS * MOST, kind);
        bad = hold(why, off, name, &spec, at, ROWS, lengths[k], lengths[k] + k % 4);
        *values += ROWS * lengths[k];
      }
  }
  free(x);
  return bad;
}

/* scale.rule=hif4 where its levels and its elements turn: largest numbers of a group about 4 and 2 over the rounded reciprocal of the scale, elements
 * about halves of steps, and the floats on both sides. */
static int hif4_thresholds(char *why, uint32_t off, size_t *values) {
  enum { BLOCKS = 16, N = 64 * BLOCKS };
  static float x[N];
  mx_spec spec;
  int bad = mx_preset_find(&spec, "hif4", NULL) != MX_OK;
  for (int round = 0; round < 64 && !bad; round++) {
    for (size_t b = 0; b < BLOCKS; b++) {
      static const mx_encoding nearest = {0};
      const mx_format *bf16 = mx_scale_format(MX_SCALE_BF16);
      const double scale = ldexp(1 + 0.25 * (double)(b % 4), (int)(next() % 40) - 20), r = mx_round_to(bf16, 1 / scale, &nearest, 0);
      for (size_t i = 0; i < 64; i++) {
        const int top = i % 4 == 0 && next() % 2; /* of its group: what decides a level */
        const double t =
            top ? (double)(2 + 2 * (next() % 2)) : 0.125 * (double)(2 * (next() % 8) + 1) * (double)(1 << (next() % (i / 4 % 3 + 1)));
        const float v = (float)(t / r);
        x[64 * b + i] = (next() % 3 ? next() % 2 ? nextafterf(v, 0) : nextafterf(v, INFINITY) : v) * (next() % 2 ? 1.0f : -1.0f);
      }
      x[64 * b + 63] = (float)(7 * scale);
    }
    bad = hold_quantize(why, off, "hif4 about its thresholds", &spec, x, 2, N / 2, N / 2);
    *values += N;
  }
  return bad;
}

static int quantize(char *why, uint32_t off, size_t *values) {
  return over_specs(why, off, values, 0, hold_quantize) || hif4_thresholds(why, off, values);
}
static int sixteen_bits(char *why, uint32_t off, size_t *values) { return over_specs(why, off, values, 0, hold_16); }
static int stochastic(char *why, uint32_t off, size_t *values) { return over_specs(why, off, values, 1, hold_quantize); }

static int hold_dequantize(char *why, uint32_t off, const char *name, const mx_spec *spec, const float *x, size_t rows, size_t cols,
                           size_t ld) {
  const mx_exec exec = {.isa_mask = off};
  tensor t = tensor_room(rows, cols, spec);
  int bad = 0;
  if (!mx_quantize(&t.t, x, rows, cols, ld, spec, &scalar, NULL)) {
    for (size_t i = 0; cols % 3 == 0 && spec->elem != MX_ELEM_NONE && i < t.codes.n; i += 7)
      t.t.codes[i] = (uint8_t)next(); /* codes that no number has */
    for (size_t i = 0; cols % 3 == 0 && spec->elem != MX_ELEM_NONE && i < t.scales.n; i += 5) t.t.scales[i] = (uint8_t)next();
    if (cols % 3 == 0 && spec->elem != MX_ELEM_NONE)
      memset(t.t.scales, 0xFF, t.t.scale_bytes); /* a NaN with a sign in every format that has one */
    guarded got = room(rows * ld * 4, 4), want = room(rows * ld * 4, 0), half = room(rows * ld * 2, 2);
    mx_dequantize((float *)(void *)got.at, ld, &t.t, spec, &exec);
    mx_dequantize((float *)(void *)want.at, ld, &t.t, spec, &scalar);
    mx_dequantize_bf16((uint16_t *)(void *)half.at, ld, &t.t, spec, &exec);
    if (!intact(&got) || !intact(&half)) bad = failed(why, "%s, %zu columns: wrote past the end", name, cols);
    for (size_t i = 0; !bad && i < rows * ld; i++) {
      float g, w;
      uint16_t h;
      memcpy(&g, got.at + 4 * i, 4);
      memcpy(&w, want.at + 4 * i, 4);
      memcpy(&h, half.at + 2 * i, 2);
      static const mx_encoding nearest = {.overflow = MX_OVERFLOW_IEEE};
      const uint16_t to = i % ld >= cols ? 0xA5A5
                          : isnan(w)     ? 0x7FC0
                                         : (uint16_t)mx_encode(mx_scale_format(MX_SCALE_BF16), (double)w, &nearest, 0);
      if (memcmp(&g, &w, 4)) bad = failed(why, "%s, %zu columns: value %zu is %a, scalar %a", name, cols, i, (double)g, (double)w);
      if (h != to) bad = failed(why, "%s, %zu columns: bfloat16 %zu is %04x, expected %04x of %a", name, cols, i, h, to, (double)w);
    }
    free(got.all);
    free(want.all);
    free(half.all);
  }
  tensor_free(&t);
  return bad;
}

static int dequantize(char *why, uint32_t off, size_t *values) { return over_specs(why, off, values, 0, hold_dequantize); }

/* The transpose is made here, element by element. */
static int both_directions(char *why, uint32_t off, size_t *values) {
  static const size_t sides[][2] = {{1, 40}, {33, 70}, {64, 257}, {300, 17}, {130, 96}};
  enum { BIG = 300 * 257 };
  mx_spec spec, other; /* the transpose takes a spec of its own: the next of the list, and another seed */
  char name[160], next[160], what[WHY / 2];
  float *x = malloc((BIG + 8) * sizeof *x), *y = malloc(BIG * sizeof *y);
  const mx_exec exec = {.isa_mask = off};
  int bad = 0;
  for (size_t i = 0; !bad && spec_at(&spec, name, i); i++) {
    const size_t *side = sides[i % 5], rows = side[0], cols = side[1], ld = cols + i % 3;
    if (!*name) continue;
    if (!spec_at(&other, next, i + 1) || !*next) other = spec;
    other.seed = spec.seed + 1;
    checkasm_fill(x, rows * ld, (int)(i % CHECKASM_KINDS));
    for (size_t r = 0; r < rows; r++)
      for (size_t c = 0; c < cols; c++) y[c * rows + r] = x[r * ld + c];
    tensor across = tensor_room(rows, cols, &spec), down = tensor_room(cols, rows, &other), alone = tensor_room(cols, rows, &other);
    tensor want = tensor_room(rows, cols, &spec), turned = tensor_room(cols, rows, &other);
    const mx_status a = mx_quantize_both(&across.t, &down.t, x, rows, cols, ld, &spec, &other, &exec, NULL);
    const mx_status b = mx_quantize_transposed(&alone.t, x, rows, cols, ld, &other, &exec, NULL);
    const mx_status c = mx_quantize(&want.t, x, rows, cols, ld, &spec, &scalar, NULL);
    const mx_status d = mx_quantize(&turned.t, y, cols, rows, rows, &other, &scalar, NULL);
    if (a != (c ? c : d) || b != d)
      bad = failed(why, "%s: status %d and %d, scalar %d and %d", name, a, b, c, d);
    else if (!a) {
      snprintf(what, sizeof what, "%s, %zu x %zu, along rows", name, rows, cols);
      bad = tensors_differ(why, what, &across, &want);
      snprintf(what, sizeof what, "%s, %zu x %zu, along columns", name, rows, cols);
      bad = bad || tensors_differ(why, what, &down, &turned);
      snprintf(what, sizeof what, "%s, %zu x %zu, transposed", name, rows, cols);
      bad = bad || tensors_differ(why, what, &alone, &turned);
    }
    tensor_free(&across), tensor_free(&down), tensor_free(&alone), tensor_free(&want), tensor_free(&turned);
    *values += 3 * rows * cols;
  }
  free(x);
  free(y);
  return bad;
}

static int tensor_amax(char *why, uint32_t off, size_t *values) {
  const mx_exec exec = {.isa_mask = off};
  const mx_spec spec = {0};
  float x[MOST + 8];
  for (size_t n = 1; n <= 300; n++)
    for (int kind = 0; kind < CHECKASM_KINDS; kind++) {
      float want = 0, got, *at = x + n % 5;
      checkasm_fill(x, MOST + 8, kind);
      int nan = 0;
      for (size_t i = 0; i < n; i++) nan |= isnan(at[i]), want = fabsf(at[i]) > want ? fabsf(at[i]) : want;
      at[n] = INFINITY; /* not to be seen */
      if (nan) want = NAN;
      mx_tensor_amax(&got, at, 1, n, n, &spec, &exec);
      if (nan ? !isnan(got) : memcmp(&got, &want, 4)) return failed(why, "%zu values: %a, expected %a", n, (double)got, (double)want);
      *values += n;
    }
  return 0;
}

/* What MXGOLD_ISA_OFF was when the program started. */
static char outside[128];
static __attribute__((constructor)) void look_outside(void) {
  const char *text = getenv("MXGOLD_ISA_OFF");
  if (text) snprintf(outside, sizeof outside, "%s", text);
}

static void switch_back(void) {
  if (*outside)
    setenv("MXGOLD_ISA_OFF", outside, 1);
  else
    unsetenv("MXGOLD_ISA_OFF");
}

/* Names of the ISAs in `off`, for MXGOLD_ISA_OFF: the call has no argument for them. */
static void switch_off(uint32_t off) {
  char text[256];
  snprintf(text, sizeof text, "%s", outside);
  for (uint32_t bit = 1; bit & MX_ISA_ALL; bit <<= 1)
    if (off & bit) strcat(strcat(text, ","), mx_isa_name(bit));
  setenv("MXGOLD_ISA_OFF", text, 1);
}

static void plain_hadamard(float *t, unsigned size, const uint8_t *signs) {
  for (unsigned i = 0; i < size; i++)
    if (signs && signs[i % 128 / 8] >> (i % 8) & 1) t[i] = -t[i];
  for (unsigned stride = 1; stride < size; stride *= 2)
    for (unsigned i = 0; i < size; i++) {
      if (i & stride) continue;
      const float a = t[i], b = t[i + stride];
      t[i] = a + b;
      t[i + stride] = a - b;
    }
  for (unsigned i = 0; i < size; i++) t[i] = isnan(t[i]) ? NAN : t[i] * (float)(1 / sqrt((double)size));
}

static int hadamard(char *why, uint32_t off, size_t *values) {
  static const size_t own[] = {1, 2, 3, 15, 16, 17, 33, 100, 128, 129, 500, 1024, 1055};
  static float x[MOST + 8], want[2 * MOST + 1024];
  uint8_t signs[16];
  int bad = 0;
  switch_off(off);
  for (unsigned size = 2; size <= 1024; size *= 2)
    for (size_t k = 0; !bad && k < sizeof own / sizeof *own; k++)
      for (int kind = 0; !bad && kind < CHECKASM_KINDS; kind++) {
        const size_t n = own[k];
        float *from = x + k % 5;
        checkasm_fill(x, MOST + 8, kind);
        for (int i = 0; i < 16; i++) signs[i] = (uint8_t)next();
        const int sign = kind % 2 ? MX_HAD_SIGN_FIXED : MX_HAD_SIGN_NONE;
        memset(want, 0, sizeof want);
        memcpy(want, from, n * sizeof *want);
        for (size_t i = 0; i < n; i += size) plain_hadamard(want + i, size, kind % 2 ? signs : NULL);
        guarded got = room(n * 4, 4 * (k % 3));
        float *to = (float *)(void *)got.at;
        if (kind == 2) memcpy(to, from, n * sizeof *to); /* in place */
        mx_hadamard(to, n, kind == 2 ? to : from, 1, n, n, size, sign, signs, 0);
        if (!intact(&got)) bad = failed(why, "size %u, %zu values: wrote past the end", size, n);
        for (size_t i = 0; !bad && i < n; i++)
          if (memcmp(to + i, want + i, 4))
            bad = failed(why, "size %u, %zu values: value %zu is %a, expected %a", size, n, i, (double)to[i], (double)want[i]);
        free(got.all);
        *values += n;
      }
  switch_back();
  return bad;
}

static const mx_format *format_at(size_t i) {
  const mx_format *f = i < MX_ELEM_COUNT                    ? mx_elem_format((int)i)
                       : i - MX_ELEM_COUNT < MX_SCALE_COUNT ? mx_scale_format((int)(i - MX_ELEM_COUNT))
                                                            : NULL;
  return f && (f->bits > 16 || f->kind == MX_KIND_NONE) ? NULL : f;
}

static int encode_array(char *why, uint32_t off, size_t *values) {
  const mx_exec exec = {.isa_mask = off};
  float x[MOST];
  for (size_t i = 0; i < MX_ELEM_COUNT + MX_SCALE_COUNT; i++) {
    const mx_format *f = format_at(i);
    for (int round = MX_ROUND_RNE; f && round < MX_ROUND_SCAN_Y; round++) {
      const mx_encoding how = {.round = round, .overflow = round % 2 ? MX_OVERFLOW_IEEE : MX_OVERFLOW_SATURATE, .zero_sign = (int)(i % 4)};
      if (round == MX_ROUND_SR) continue;
      for (int kind = 0; kind < CHECKASM_KINDS; kind++) {
        const size_t n = lengths[(i + (size_t)round + 3 * (size_t)kind) % LENGTHS], wide = f->bits > 8, shift = n % 7 * (wide + 1);
        checkasm_fill(x, MOST, kind);
        for (size_t k = 0; kind == 4 && k < MOST; k += 3) { /* subnormals and their neighbours */
          const uint32_t bits = (next() & 0x80FFFFFF) >> (next() % 24 ? next() % 24 : 0);
          memcpy(x + k, &bits, sizeof bits);
        }
        guarded got = room(n << wide, shift);
        if (mx_encode_array(got.at, x + n % 5, n, f, &how, &exec)) return failed(why, "%s: refused", f->name);
        if (!intact(&got)) return failed(why, "%s, %zu values: wrote past the end", f->name, n);
        for (size_t k = 0; k < n; k++) {
          const uint64_t code = wide ? (uint64_t)got.at[2 * k] | (uint64_t)got.at[2 * k + 1] << 8 : got.at[k];
          const uint64_t want = mx_encode(f, (double)x[n % 5 + k], &how, 0);
          if (code != want)
            return failed(why, "%s, round %d: %a is %llx, expected %llx", f->name, round, (double)x[n % 5 + k], (unsigned long long)code,
                          (unsigned long long)want);
        }
        free(got.all);
        *values += n;
      }
    }
  }
  return 0;
}

static int decode_array(char *why, uint32_t off, size_t *values) {
  const mx_exec exec = {.isa_mask = off};
  for (size_t i = 0; i < MX_ELEM_COUNT + MX_SCALE_COUNT; i++) {
    const mx_format *f = format_at(i);
    for (size_t k = 0; f && k < LENGTHS; k++) {
      const size_t n = lengths[k], wide = f->bits > 8;
      uint8_t codes[2 * MOST + 8], *at = codes + 2 * (k % 3);
      for (size_t j = 0; j < sizeof codes; j++) codes[j] = (uint8_t)next();
      guarded got = room(n * 4, 4);
      if (mx_decode_array((float *)(void *)got.at, at, n, f, &exec)) return failed(why, "%s: refused", f->name);
      if (!intact(&got)) return failed(why, "%s, %zu codes: wrote past the end", f->name, n);
      for (size_t j = 0; j < n; j++) {
        const uint64_t code = (wide ? (uint64_t)at[2 * j] | (uint64_t)at[2 * j + 1] << 8 : at[j]) & ((UINT64_C(1) << f->bits) - 1);
        const float want = (float)mx_decode(f, code);
        float v;
        memcpy(&v, got.at + 4 * j, 4);
        if (memcmp(&v, &want, 4)) return failed(why, "%s: %llx is %a, expected %a", f->name, (unsigned long long)code, (double)v, (double)want);
      }
      free(got.all);
      *values += n;
    }
  }
  return 0;
}

/* Lengths around every step of the byte kernels, and some that are much longer. */
static const size_t byte_lengths[] = {1, 2, 255, 256, 257, 288, 300, 303, 319, 320, 336, 351, 383, 384, 447, 448, 511, 512, 640, 1000, 4097};
enum { BYTE_LENGTHS = sizeof byte_lengths / sizeof *byte_lengths, MOST_BYTES = 4200 };

/* Where code i of n stands: SPEC 7. */
static size_t nibble_place(int *high, size_t i, size_t n, int nibble, size_t block) {
  if (nibble != MX_NIBBLE_HALF_BLOCK) {
    *high = (i % 2 != 0) == (nibble == MX_NIBBLE_LOW_FIRST);
    return i / 2;
  }
  const size_t first = i / block * block, here = n - first < block ? n - first : block, half = (here + 1) / 2;
  *high = i - first >= half;
  return first / 2 + (i - first) % half;
}

static int pack_4_bits(char *why, uint32_t off, size_t *values) {
  static const size_t blocks[] = {2, 16, 32, 48, 64, 128};
  static uint8_t codes[MOST_BYTES], want[MOST_BYTES];
  int bad = 0;
  switch_off(off);
  for (int nibble = MX_NIBBLE_LOW_FIRST; nibble <= MX_NIBBLE_HALF_BLOCK; nibble++)
    for (size_t l = 0; l < BYTE_LENGTHS; l++)
      for (size_t b = 0; b < sizeof blocks / sizeof *blocks && !bad; b++) {
        const size_t n = byte_lengths[l], bytes = (n + 1) / 2;
        uint8_t *from = codes + l % 7;
        for (size_t i = 0; i < MOST_BYTES; i++) codes[i] = (uint8_t)next(); /* bits beyond the four are not to matter */
        memset(want, 0, sizeof want);
        int high;
        for (size_t i = 0; i < n; i++) {
          const size_t at = nibble_place(&high, i, n, nibble, blocks[b]);
          want[at] = (uint8_t)(want[at] | (from[i] & 15) << (high ? 4 : 0));
        }
        guarded packed = room(bytes, b), back = room(n, l % 5);
        mx_pack4(packed.at, from, n, nibble, blocks[b]);
        mx_unpack4(back.at, packed.at, n, nibble, blocks[b]);
        if (!intact(&packed) || !intact(&back)) bad = failed(why, "%zu codes: wrote past the end", n);
        for (size_t i = 0; i < bytes && !bad; i++)
          if (packed.at[i] != want[i]) bad = failed(why, "%zu codes, order %d, blocks of %zu: byte %zu", n, nibble, blocks[b], i);
        for (size_t i = 0; i < n && !bad; i++)
          if (back.at[i] != (from[i] & 15)) bad = failed(why, "%zu codes back, order %d, blocks of %zu: code %zu", n, nibble, blocks[b], i);
        free(packed.all);
        free(back.all);
        *values += 2 * n;
      }
  switch_back();
  return bad;
}

static int pack_6_bits(char *why, uint32_t off, size_t *values) {
  static uint8_t codes[MOST_BYTES], want[MOST_BYTES];
  int bad = 0;
  switch_off(off);
  for (size_t n = 1; n < MOST_BYTES - 8 && !bad; n += n < 600 ? 1 : 97) {
    const size_t bytes = (6 * n + 7) / 8;
    uint8_t *from = codes + n % 7;
    for (size_t i = 0; i < MOST_BYTES; i++) codes[i] = (uint8_t)next();
    memset(want, 0, sizeof want);
    for (size_t bit = 0; bit < 6 * n; bit++) want[bit / 8] = (uint8_t)(want[bit / 8] | (from[bit / 6] >> bit % 6 & 1) << bit % 8);
    guarded packed = room(bytes, n % 3), back = room(n, n % 5);
    mx_pack6(packed.at, from, n);
    mx_unpack6(back.at, packed.at, n);
    if (!intact(&packed) || !intact(&back)) bad = failed(why, "%zu codes: wrote past the end", n);
    for (size_t i = 0; i < bytes && !bad; i++)
      if (packed.at[i] != want[i]) bad = failed(why, "%zu codes: byte %zu is %02x, expected %02x", n, i, packed.at[i], want[i]);
    for (size_t i = 0; i < n && !bad; i++)
      if (back.at[i] != (from[i] & 63)) bad = failed(why, "%zu codes back: code %zu is %02x, expected %02x", n, i, back.at[i], from[i] & 63);
    free(packed.all);
    free(back.all);
    *values += 2 * n;
  }
  switch_back();
  return bad;
}

static int layouts(char *why, uint32_t off, size_t *values) {
  static const size_t shapes[][2] = {{1, 1},    {8, 32},   {9, 33},   {31, 16},  {32, 8},   {33, 24},   {128, 4},  {128, 16},
                                     {128, 20}, {130, 48}, {256, 16}, {257, 40}, {384, 15}, {300, 129}, {512, 17}, {16, 160}};
  int bad = 0;
  switch_off(off);
  for (int layout = 0; layout < MX_LAYOUT_COUNT; layout++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes && !bad; s++) {
      const size_t rows = shapes[s][0], kb = shapes[s][1], size = mx_layout_size((mx_layout)layout, rows, kb);
      guarded from = room(rows * kb, s % 5), moved = room(size, s % 3), back = room(rows * kb, s % 7);
      uint8_t *want = malloc(size);
      for (size_t i = 0; i < rows * kb; i++) from.at[i] = (uint8_t)next();
      memset(want, 0x5A, size);
      for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < kb; k++) want[mx_layout_index((mx_layout)layout, rows, kb, r, k)] = from.at[r * kb + k];
      mx_layout_pack(moved.at, (mx_layout)layout, from.at, rows, kb, 0x5A);
      mx_layout_unpack(back.at, (mx_layout)layout, moved.at, rows, kb);
      if (!intact(&moved) || !intact(&back))
        bad = failed(why, "%s, %zu x %zu: wrote past the end", mx_layout_name((mx_layout)layout), rows, kb);
      if (!bad && memcmp(moved.at, want, size)) bad = failed(why, "%s, %zu x %zu", mx_layout_name((mx_layout)layout), rows, kb);
      if (!bad && memcmp(back.at, from.at, rows * kb)) bad = failed(why, "%s, %zu x %zu, back", mx_layout_name((mx_layout)layout), rows, kb);
      free(from.all), free(moved.all), free(back.all), free(want);
      *values += 2 * rows * kb;
    }
  switch_back();
  return bad;
}

/* Two rows of codes side by side: each kernel of differ.h, whole arrays compared. Some pairs of 4-bit codes are in sets, so that some calls stop. */
enum { DIFFER_MOST = 1024, DIFFER_SETS = 5 };
typedef struct differ_out {
  guarded pairs, sums, cols[2];
} differ_out;

static differ_out differ_room(size_t n, size_t shift) {
  differ_out o = {room(2 * n, shift), room(n, shift % 5), {room(n, shift % 7), room(n, 3)}};
  memset(o.pairs.at, 0, o.pairs.n);
  memset(o.sums.at, 0, n);
  for (size_t i = 0; i < n; i++) o.cols[0].at[i] = (uint8_t)i, o.cols[1].at[i] = (uint8_t)(250 + i);
  return o;
}

static void differ_free(differ_out *o) {
  free(o->pairs.all);
  free(o->sums.all);
  free(o->cols[0].all);
  free(o->cols[1].all);
}

static int by_value(const void *a, const void *b) { return memcmp(a, b, 2); }

/* The first `done` bytes of what a kernel gave: pairs in any order. */
static int differ_same(differ_out *a, differ_out *b, size_t done, unsigned unit) {
  qsort(a->pairs.at, done, 2, by_value);
  qsort(b->pairs.at, done, 2, by_value);
  return !memcmp(a->pairs.at, b->pairs.at, 2 * done) && !memcmp(a->sums.at, b->sums.at, done / unit) &&
         !memcmp(a->cols[0].at, b->cols[0].at, a->cols[0].n) && !memcmp(a->cols[1].at, b->cols[1].at, a->cols[1].n) && intact(&a->pairs) &&
         intact(&a->sums) && intact(&a->cols[0]) && intact(&a->cols[1]);
}

/* Pairs of codes counted by a kernel, over all of its eight sums, and one by one. */
static int differ_tallies(char *why, const mx_differ_kernels *k, size_t *values) {
  static uint8_t x[MX_DIFFER_TALLY + 8], y[MX_DIFFER_TALLY + 8];
  static uint64_t got[256][8], want[256];
  for (int round = 0; round < 60; round++) {
    const size_t shift = next() % 8, most = 1 + next() % 16;
    uint16_t asked[16];
    for (size_t a = 0; a < 16; a++) asked[a] = (uint16_t)(round % 3 == 0 ? 0xFFFF : round % 3 == 1 ? next() : next() & next() & next());
    for (size_t i = 0; i < sizeof x; i++) x[i] = (uint8_t)next(), y[i] = next() % most ? (uint8_t)next() : (uint8_t)(x[i] ^ 0x11);
    memset(want, 0, sizeof want);
    for (size_t i = 0; i < 256; i++)
      for (size_t l = 0; l < 8; l++) want[i] += got[i][l] = i * l; /* it adds */
    for (size_t i = 0; i < MX_DIFFER_TALLY; i++)
      for (unsigned h = 0; h < 8; h += 4) {
        const unsigned a = x[shift + i] >> h & 15, b = y[i] >> h & 15;
        want[16 * a + b] += asked[a] >> b & 1;
      }
    k->tally(got, x + shift, y, MX_DIFFER_TALLY, asked);
    for (size_t i = 0; i < 256; i++) {
      uint64_t sum = 0;
      for (size_t l = 0; l < 8; l++) sum += got[i][l];
      if (sum != want[i])
        return failed(why, "pair %X %X counted %llu times, expected %llu", (unsigned)(i >> 4), (unsigned)(i & 15), (unsigned long long)sum,
                      (unsigned long long)want[i]);
    }
    *values += 2 * MX_DIFFER_TALLY;
  }
  return 0;
}

static int differ(char *why, uint32_t off, size_t *values) {
  const mx_differ_kernels *k = mxi_kernels_for(off)->differ, *plain = &mxi_differ_scalar;
  static uint8_t x[DIFFER_MOST + 8], y[DIFFER_MOST + 8], sets[DIFFER_SETS * MX_DIFFER_SET];
  static uint16_t set[DIFFER_MOST / 8];
  int bad = 0;
  for (int round = 0; round < 600 && !bad; round++) {
    const size_t n = 64 * (1 + next() % (DIFFER_MOST / 64)), shift = next() % 8;
    const unsigned unit = round & 1 ? 8 : 16, alike = next() % 5;
    memset(sets, 0, sizeof sets);
    for (uint32_t i = next() % 9; i > 0; i--) sets[next() % sizeof sets] |= (uint8_t)(1u << next() % 8); /* one pair in a hundred or so */
    for (size_t i = 0; i < sizeof x; i++) {
      x[i] = (uint8_t)next();
      y[i] = alike == 4 ? (uint8_t)next() : next() % (1u + 8 * alike) ? x[i] : (uint8_t)(x[i] ^ (next() % 3 ? 0x11 : next()));
    }
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) set[i] = (uint16_t)(next() % DIFFER_SETS);
    const unsigned least = next() % 66;
    if (k->crowd(x + shift, y, n, least) != plain->crowd(x + shift, y, n, least)) bad = failed(why, "crowd of %zu bytes", n);
    if (k->members(x + shift, y, n - shift % 3 * unit, sets, set, unit) != plain->members(x + shift, y, n - shift % 3 * unit, sets, set, unit))
      bad = failed(why, "members of %zu bytes, units of %u", n, unit);
    differ_out got = differ_room(n, shift), want = differ_room(n, 0);
    k->zip(got.pairs.at, x + shift, y, n);
    plain->zip(want.pairs.at, x + shift, y, n);
    k->eights(got.sums.at, got.cols[0].at, x + shift, y, n, unit);
    plain->eights(want.sums.at, want.cols[0].at, x + shift, y, n, unit);
    if (!differ_same(&got, &want, n, unit)) bad = failed(why, "%zu codes of 8 bits, units of %u", n, unit);
    differ_free(&got);
    differ_free(&want);
    for (size_t from = 0; from < n && !bad; from += 64) { /* to the first that stops it, and on behind it */
      got = differ_room(n - from, shift), want = differ_room(n - from, 0);
      const uint16_t *s = set + from / unit;
      const size_t done = k->fours(got.sums.at, got.cols[0].at, got.cols[1].at, x + shift + from, y + from, n - from, sets, s, unit),
                   most = plain->fours(want.sums.at, want.cols[0].at, want.cols[1].at, x + shift + from, y + from, n - from, sets, s, unit);
      differ_free(&want);
      want = differ_room(n - from, 0);
      if (done > most || most - done >= MX_DIFFER_STEP || done % 16)
        bad = failed(why, "%zu bytes of 4-bit codes: stopped at %zu, expected about %zu", n - from, done, most);
      plain->fours(want.sums.at, want.cols[0].at, want.cols[1].at, x + shift + from, y + from, done / unit * unit, sets, s, unit);
      if (!bad && !differ_same(&got, &want, done, unit)) bad = failed(why, "%zu bytes of 4-bit codes, units of %u", done, unit);
      differ_free(&got);
      differ_free(&want);
      from += done / 64 * 64;
      *values += 2 * done;
    }
    *values += n;
  }
  return bad ? bad : differ_tallies(why, k, values);
}

static const struct {
  const char *name;
  operation *run;
} operations[] = {{"quantize", quantize},
                  {"quantize, stochastic", stochastic},
                  {"quantize, 16-bit input", sixteen_bits},
                  {"quantize both ways", both_directions},
                  {"dequantize", dequantize},
                  {"tensor amax", tensor_amax},
                  {"hadamard", hadamard},
                  {"encode_array", encode_array},
                  {"decode_array", decode_array},
                  {"pack 4 bits", pack_4_bits},
                  {"pack 6 bits", pack_6_bits},
                  {"layouts", layouts},
                  {"diff", differ}};

int checkasm(uint32_t isa) {
  int differ = 0;
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    char why[WHY] = "";
    size_t values = 0;
    if (!(mx_isa_host() & isa))
      printf("kernels: %s, %s: not run: this host lacks %s\n", operations[i].name, mx_isa_name(isa), mx_isa_name(isa));
    else if (!(mx_isa_usable(0) & isa))
      printf("kernels: %s, %s: not run: switched off by MXGOLD_ISA_OFF\n", operations[i].name, mx_isa_name(isa));
    else if (operations[i].run(why, mx_isa_only(isa), &values)) {
      printf("kernels: %s, %s: %s\n", operations[i].name, mx_isa_name(isa), why);
      differ++;
    } else
      printf("kernels: %s, %s: %zu values equal the scalar code\n", operations[i].name, mx_isa_name(isa), values);
    fflush(stdout);
  }
  return differ;
}
