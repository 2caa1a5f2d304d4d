/* Compares operations on tensors, as checkasm runs them: quantising of every preset and of specs that presets do not have, both ways, from 16 bits,
 * at random; dequantising; the largest magnitude. */
#include <math.h>

#include "checkasm.h"
#include "checkasm_parts.h"
#include "mxgold/codec.h"
#include "mxgold/isa.h"

enum { ROWS = 2 };

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
    "elem.round=sr seed=6 elem.zero_sign=drop_input scale=e4m3 scale.rule=value block=1x16",
    "elem.round=sr seed=7 elem.zero_sign=drop_input chain=te scale=e4m3 scale.rule=value scale.zero=chain scale.allzero=chain block=1x16 "
    "tensor.norm=nv",
    "had.size=16 had.sign=te elem.round=sr chain=te scale=e4m3 scale.rule=value scale.zero=chain scale.allzero=chain block=1x16 tensor.norm=nv",
    "elem.round=sr seed=8 elem.zero_sign=drop_input scale=fp32 scale.rule=value elem.arith=div32",
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

/* 16-bit inputs must give what their binary32 values give; those are made here one by one. */
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
      const unsigned kind = checkasm_next() % 8; /* either the numbers above rounded, or any bits: subnormals, Inf, and NaN with payloads */
      at[i] = type == MX_INPUT_DTYPE_BFLOAT16 ? (uint16_t)(kind ? bits >> 16 : checkasm_next())
                                              : (uint16_t)(kind > 1 ? (bits >> 16 & 0x8000) | (0x3C00 + (checkasm_next() & 0x1FFF))
                                                           : kind   ? checkasm_next() & 0x83FF
                                                                    : checkasm_next());
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
        float *at = x + (k + 1) % 5; /* aligned to four bytes and no more */
        checkasm_fill(at, ROWS * MOST, kind);
        bad = hold(why, off, name, &spec, at, ROWS, lengths[k], lengths[k] + k % 4);
        *values += ROWS * lengths[k];
      }
  }
  free(x);
  return bad;
}

/* Makes inputs on which scale.rule=hif4 decides closely: the largest number of a group is near 4 or 2 times the scale, elements lie near the middle of
 * two steps, and the floats next to both are among them. */
static int hif4_thresholds(char *why, uint32_t off, size_t *values) {
  enum { BLOCKS = 16, N = 64 * BLOCKS };
  static float x[N];
  mx_spec spec;
  int bad = mx_preset_find(&spec, "hif4", NULL) != MX_OK;
  for (int round = 0; round < 64 && !bad; round++) {
    for (size_t b = 0; b < BLOCKS; b++) {
      static const mx_encoding nearest = {0};
      const mx_format *bf16 = mx_scale_format(MX_SCALE_BF16);
      const double scale = ldexp(1 + 0.25 * (double)(b % 4), (int)(checkasm_next() % 40) - 20), r = mx_round_to(bf16, 1 / scale, &nearest, 0);
      for (size_t i = 0; i < 64; i++) {
        const int top = i % 4 == 0 && checkasm_next() % 2; /* the largest of its group, which decides a level */
        const double t = top ? (double)(2 + 2 * (checkasm_next() % 2))
                             : 0.125 * (double)(2 * (checkasm_next() % 8) + 1) * (double)(1 << (checkasm_next() % (i / 4 % 3 + 1)));
        const float v = (float)(t / r);
        x[64 * b + i] =
            (checkasm_next() % 3 ? checkasm_next() % 2 ? nextafterf(v, 0) : nextafterf(v, INFINITY) : v) * (checkasm_next() % 2 ? 1.0f : -1.0f);
      }
      x[64 * b + 63] = (float)(7 * scale);
    }
    bad = hold_quantize(why, off, "hif4 about its thresholds", &spec, x, 2, N / 2, N / 2);
    *values += N;
  }
  return bad;
}

int checkasm_quantize(char *why, uint32_t off, size_t *values) {
  return over_specs(why, off, values, 0, hold_quantize) || hif4_thresholds(why, off, values);
}
int checkasm_sixteen_bits(char *why, uint32_t off, size_t *values) { return over_specs(why, off, values, 0, hold_16); }
int checkasm_stochastic(char *why, uint32_t off, size_t *values) { return over_specs(why, off, values, 1, hold_quantize); }

static int hold_dequantize(char *why, uint32_t off, const char *name, const mx_spec *spec, const float *x, size_t rows, size_t cols,
                           size_t ld) {
  const mx_exec exec = {.isa_mask = off};
  tensor t = tensor_room(rows, cols, spec);
  int bad = 0;
  if (!mx_quantize(&t.t, x, rows, cols, ld, spec, &scalar, NULL)) {
    for (size_t i = 0; cols % 3 == 0 && !mx_spec_is_plain(spec) && i < t.codes.n; i += 7)
      t.t.codes[i] = (uint8_t)checkasm_next(); /* any bytes, also codes that no number has */
    for (size_t i = 0; cols % 3 == 0 && !mx_spec_is_plain(spec) && i < t.scales.n; i += 5) t.t.scales[i] = (uint8_t)checkasm_next();
    if (cols % 3 == 0 && !mx_spec_is_plain(spec))
      memset(t.t.scales, 0xFF, t.t.scale_bytes); /* in every format that has a NaN, this byte is one, with its sign set */
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

int checkasm_dequantize(char *why, uint32_t off, size_t *values) { return over_specs(why, off, values, 0, hold_dequantize); }

/* Holds both directions of a matrix x, whose transpose is y, to the scalar code. */
static int hold_both(char *why, uint32_t off, const char *name, const mx_spec *spec, const mx_spec *other, const float *x, const float *y,
                     const size_t side[2], size_t ld) {
  const size_t rows = side[0], cols = side[1];
  const mx_exec exec = {.isa_mask = off};
  char what[WHY / 2];
  int bad = 0;
  tensor across = tensor_room(rows, cols, spec), down = tensor_room(cols, rows, other), alone = tensor_room(cols, rows, other);
  tensor want = tensor_room(rows, cols, spec), turned = tensor_room(cols, rows, other);
  const mx_status a = mx_quantize_both(&across.t, &down.t, x, rows, cols, ld, spec, other, &exec, NULL);
  const mx_status b = mx_quantize_transposed(&alone.t, x, rows, cols, ld, other, &exec, NULL);
  const mx_status c = mx_quantize(&want.t, x, rows, cols, ld, spec, &scalar, NULL);
  const mx_status d = mx_quantize(&turned.t, y, cols, rows, rows, other, &scalar, NULL);
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
  return bad;
}

/* The transpose is made here, element by element. Random words depend on where an element lies, so that specs with them see all sizes. */
int checkasm_both_directions(char *why, uint32_t off, size_t *values) {
  static const size_t sides[][2] = {{1, 40}, {33, 70}, {64, 257}, {300, 17}, {130, 96}, {96, 704}};
  enum { SIDES = sizeof sides / sizeof *sides, BIG = 300 * 257 };
  mx_spec spec, other; /* the transpose is quantised under the next spec of the list, with another seed */
  char name[160], next[160];
  float *x = malloc((BIG + 8) * sizeof *x), *y = malloc(BIG * sizeof *y);
  int bad = 0;
  for (size_t i = 0; !bad && spec_at(&spec, name, i); i++) {
    if (!*name) continue;
    if (!spec_at(&other, next, i + 1) || !*next) other = spec;
    other.seed = spec.seed + 1;
    for (size_t s = 0; !bad && s < SIDES; s++) {
      const size_t rows = sides[s][0], cols = sides[s][1], ld = cols + (i + s) % 3;
      if (s != i % SIDES && spec.elem_round != MX_ROUND_SR) continue;
      checkasm_fill(x, rows * ld, (int)((i + s) % CHECKASM_KINDS));
      for (size_t r = rows / 4; r < rows / 2; r++) /* blocks of zeros, if they lie along columns */
        for (size_t c = 0; c < cols; c += 5) x[r * ld + c] = r % 2 ? 0.0f : -0.0f;
      for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) y[c * rows + r] = x[r * ld + c];
      bad = hold_both(why, off, name, &spec, &other, x, y, sides[s], ld);
      *values += 3 * rows * cols;
    }
  }
  free(x);
  free(y);
  return bad;
}

int checkasm_tensor_amax(char *why, uint32_t off, size_t *values) {
  const mx_exec exec = {.isa_mask = off};
  const mx_spec spec = {0};
  float x[MOST + 8];
  for (size_t n = 1; n <= 300; n++)
    for (int kind = 0; kind < CHECKASM_KINDS; kind++) {
      float want = 0, got, *at = x + n % 5;
      checkasm_fill(x, MOST + 8, kind);
      int nan = 0;
      for (size_t i = 0; i < n; i++) nan |= isnan(at[i]), want = fabsf(at[i]) > want ? fabsf(at[i]) : want;
      at[n] = INFINITY; /* must not be read */
      if (nan) want = NAN;
      mx_tensor_amax(&got, at, 1, n, n, &spec, &exec);
      if (nan ? !isnan(got) : memcmp(&got, &want, 4)) return failed(why, "%zu values: %a, expected %a", n, (double)got, (double)want);
      *values += n;
    }
  return 0;
}
