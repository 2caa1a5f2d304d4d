/* Runs the operations by the calls of a device. */
#include "hip_backend/run/ops.h"

#include <math.h>
#include <string.h>
#include <vector>

#include "hip_backend/run/args.h"
#include "hip_backend/run/buffer.h"
#include "hip_backend/run/plan.h"

unsigned mxh_grid(const mxh_device *dev, size_t n) {
  const size_t blocks = (n + 255) / 256, most = strcmp(mxh_kind(dev), "host") ? 65535 : 4;
  return (unsigned)(blocks < most ? blocks : most);
}

namespace {
/* The source on the device after preparation: rounded to input.dtype, flushed, rotated and transposed as the spec says. */
struct source {
  mxh_buffer raw, ready;
  mxd_source view;
  source(mxh_device *dev, size_t rows, size_t cols, size_t ld) : raw(dev, rows * ld * 4), ready(dev, rows * cols * 4), view() {}
  /* src_rows, src_cols: before transposing. */
  int make(mxh_device *dev, const float *x, size_t src_rows, size_t src_cols, size_t ld, const mx_spec *spec, bool transposed) {
    const size_t rows = transposed ? src_cols : src_rows, cols = transposed ? src_rows : src_cols;
    if (!raw.p || !ready.p) return 1;
    for (size_t r = 0; r < src_rows; r++) /* what lies between cols and ld is not copied */
      if (ld == src_cols ? r == 0 && mxh_put(dev, raw.p, x, src_rows * ld * 4)
                         : mxh_put(dev, raw.as<float>() + r * ld, x + r * ld, src_cols * 4))
        return 1;
    view.at = raw.as<float>();
    view.row_step = transposed ? 1 : (int64_t)ld;
    view.col_step = transposed ? (int64_t)ld : 1;
    if (spec->input_dtype == MX_INPUT_DTYPE_FLOAT32 && spec->flush == MX_SWITCH_OFF && !spec->had_size) return 0;
    prepare_args a = {};
    a.x = view;
    a.out = ready.as<float>();
    a.rows = rows;
    a.cols = cols;
    a.dtype = spec->input_dtype;
    a.flush = spec->flush == MX_SWITCH_ON;
    if (mxh_launch(dev, "mxh_prepare", mxh_grid(dev, rows * cols), 256, &a, sizeof a)) return 1;
    view.at = ready.as<float>();
    view.row_step = (int64_t)cols;
    view.col_step = 1;
    if (!spec->had_size) return 0;
    hadamard_args h = {};
    h.x = ready.as<float>();
    h.out = ready.as<float>();
    h.rows = rows;
    h.cols = h.ld = h.ld_out = cols;
    h.seed = spec->seed;
    h.size = spec->had_size;
    h.sign = (uint32_t)spec->had_sign;
    h.factor = (float)(1 / sqrt((double)spec->had_size));
    memcpy(h.signs, spec->had_signs, sizeof h.signs);
    return mxh_launch(dev, "mxh_hadamard", mxh_grid(dev, rows * ((cols + h.size - 1) / h.size) * h.size), 256, &h, sizeof h);
  }
};

int find_amax(mxh_device *dev, const source &src, const mxd_plan &p, const mxh_buffer &plan, mxh_buffer *amax) {
  if (amax->fill(0, 4)) return 1;
  amax_args a = {};
  a.x = src.view;
  a.plan = plan.as<const mxd_plan>();
  a.amax = amax->as<uint32_t>();
  const unsigned grid = mxh_grid(dev, p.rows * p.cols);
  return mxh_launch(dev, "mxh_amax", grid < 1024 ? grid : 1024, 256, &a, sizeof a);
}
} // namespace

int mxh_amax(mxh_device *dev, uint32_t *bits, const float *x, size_t rows, size_t cols, size_t ld, const mx_spec *spec) {
  mxd_plan p;
  if (mxh_plan_make(&p, spec, rows, cols, nullptr)) return 1;
  mxh_buffer plan(dev, sizeof p), amax(dev, 4);
  source src(dev, rows, cols, ld);
  return plan.put(&p, sizeof p) || src.make(dev, x, rows, cols, ld, spec, false) || find_amax(dev, src, p, plan, &amax) || amax.get(bits, 4);
}

int mxh_quantize(mxh_device *dev, mx_tensor *out, const float *x, size_t rows, size_t cols, size_t ld, const mx_spec *spec, bool transposed,
                 bool *refused) {
  mxd_plan p;
  const size_t out_rows = transposed ? cols : rows, out_cols = transposed ? rows : cols;
  if (mxh_plan_make(&p, spec, out_rows, out_cols, nullptr)) return 1;
  const size_t n_codes = out_rows * p.cols_padded, n_bytes = out_rows * p.code_stride, n_scales = p.scale_rows * p.scale_cols;
  const bool four = p.elem.bits == 4, none = p.elem.kind == MX_KIND_NONE, hif4 = spec->scale_rule == MX_SCALE_RULE_HIF4;
  const bool given = spec->elem_round == MX_ROUND_SR && spec->sr_source == MX_SR_SOURCE_GIVEN;
  mxh_buffer plan(dev, sizeof p), amax(dev, 4), codes(dev, none ? n_bytes : n_codes), packed(dev, four ? n_bytes : 0), flag(dev, 4);
  mxh_buffer scales(dev, n_scales * (size_t)p.scale_bytes), micro(dev, hif4 ? n_scales * 3 : 0), bits(dev, given ? rows * cols * 4 : 0);
  source src(dev, rows, cols, ld);
  if (plan.put(&p, sizeof p) || flag.fill(0, 4) || amax.fill(0, 4) || src.make(dev, x, rows, cols, ld, spec, transposed)) return 1;
  if (given && bits.put(spec->given_bits, rows * cols * 4)) return 1;
  if (p.needs_amax && find_amax(dev, src, p, plan, &amax)) return 1;
  tensor_plan_args t = {};
  t.plan = plan.as<mxd_plan>();
  t.amax = amax.as<uint32_t>();
  if (mxh_launch(dev, "mxh_tensor_plan", 1, 64, &t, sizeof t)) return 1;
  quantize_args a = {};
  a.x = src.view;
  a.plan = plan.as<mxd_plan>();
  a.given = bits.as<uint32_t>();
  a.codes = codes.as<uint8_t>();
  a.values = codes.as<uint32_t>();
  a.scales = scales.as<uint8_t>();
  a.micro = micro.as<uint8_t>();
  a.refused = flag.as<uint32_t>();
  if (mxh_launch(dev, "mxh_quantize", mxh_grid(dev, p.bands * p.tiles), 256, &a, sizeof a)) return 1;
  uint32_t said = 0;
  mxd_plan after;
  if (flag.get(&said, 4)) return 1;
  *refused = said != 0;
  if (said) return 0;
  if (plan.get(&after, sizeof after)) return 1;
  out->tensor_scale = after.tensor_scale;
  out->has_tensor_scale = after.has_tensor_scale;
  if (four) {
    pack_codes_args c = {};
    c.codes = codes.as<uint8_t>();
    c.out = packed.as<uint8_t>();
    c.rows = out_rows;
    c.cols_padded = p.cols_padded;
    c.cols_quantised = p.tiles * p.block_cols;
    c.block_cols = p.block_cols;
    c.nibble = spec->nibble;
    if (mxh_launch(dev, "mxh_pack_codes", mxh_grid(dev, n_bytes), 256, &c, sizeof c) || packed.get(out->codes, n_bytes)) return 1;
  } else if (codes.get(out->codes, n_bytes))
    return 1;
  return scales.get(out->scales, n_scales * (size_t)p.scale_bytes) || (hif4 && micro.get(out->micro, n_scales * 3));
}

int mxh_dequantize(mxh_device *dev, float *out, const mx_tensor *t, const mx_spec *spec) {
  mxd_plan p;
  if (mxh_plan_make(&p, spec, t->rows, t->cols, nullptr)) return 1;
  const size_t n_codes = t->rows * t->code_stride, n_scales = t->scale_rows * t->scale_cols, n = t->rows * t->cols;
  mxh_buffer plan(dev, sizeof p), codes(dev, n_codes), scales(dev, n_scales * t->scale_bytes), micro(dev, t->micro ? n_scales * 3 : 0),
      y(dev, n * 4);
  if (plan.put(&p, sizeof p) || codes.put(t->codes, n_codes) || scales.put(t->scales, n_scales * t->scale_bytes)) return 1;
  if (t->micro && micro.put(t->micro, n_scales * 3)) return 1;
  dequantize_args a = {};
  a.plan = plan.as<mxd_plan>();
  a.codes = codes.as<uint8_t>();
  a.scales = scales.as<uint8_t>();
  a.micro = micro.as<uint8_t>();
  a.out = y.as<float>();
  a.tensor_scale = t->tensor_scale;
  return mxh_launch(dev, "mxh_dequantize", mxh_grid(dev, n), 256, &a, sizeof a) || y.get(out, n * 4);
}

int mxh_hadamard(mxh_device *dev, float *out, const float *x, size_t rows, size_t cols, unsigned size, int sign, const uint8_t *signs,
                 uint64_t seed) {
  const size_t n = rows * cols;
  mxh_buffer in(dev, n * 4), y(dev, n * 4);
  if (in.put(x, n * 4)) return 1;
  hadamard_args h = {};
  h.x = in.as<float>();
  h.out = y.as<float>();
  h.rows = rows;
  h.cols = h.ld = h.ld_out = cols;
  h.seed = seed;
  h.size = size;
  h.sign = (uint32_t)sign;
  h.factor = (float)(1 / sqrt((double)size));
  if (signs) memcpy(h.signs, signs, sizeof h.signs);
  const unsigned block = size > 256 ? size : 256;
  return mxh_launch(dev, "mxh_hadamard", mxh_grid(dev, rows * ((cols + size - 1) / size) * size), block, &h, sizeof h) || y.get(out, n * 4);
}

int mxh_encode(mxh_device *dev, void *codes, const float *x, size_t n, const mx_format *format, const mx_encoding *how, uint64_t seed) {
  const size_t width = format->bits <= 8 ? 1 : 2;
  mxh_buffer in(dev, n * 4), out(dev, n * width);
  if (in.put(x, n * 4)) return 1;
  codec_args a = {};
  a.x = in.as<float>();
  a.codes = out.as<uint8_t>();
  a.n = n;
  a.seed = seed;
  a.format = mxh_format(format);
  a.how = mxh_encoding(how);
  return mxh_launch(dev, "mxh_encode", mxh_grid(dev, n), 256, &a, sizeof a) || out.get(codes, n * width);
}
int mxh_decode(mxh_device *dev, float *y, const void *codes, size_t n, const mx_format *format) {
  const size_t width = format->bits <= 8 ? 1 : 2;
  mxh_buffer in(dev, n * width), out(dev, n * 4);
  if (in.put(codes, n * width)) return 1;
  codec_args a = {};
  a.codes = in.as<uint8_t>();
  a.y = out.as<float>();
  a.n = n;
  a.format = mxh_format(format);
  return mxh_launch(dev, "mxh_decode", mxh_grid(dev, n), 256, &a, sizeof a) || out.get(y, n * 4);
}

int mxh_quotients(mxh_device *dev, double *out, const double *x, size_t n) {
  mxh_buffer in(dev, n * 16), y(dev, n * 8);
  if (in.put(x, n * 16)) return 1;
  numbers_args a = {};
  a.x = in.as<double>();
  a.y = y.as<double>();
  a.n = n;
  a.what = MXD_NUMBERS_QUOTIENT;
  return mxh_launch(dev, "mxh_numbers", mxh_grid(dev, n), 256, &a, sizeof a) || y.get(out, n * 8);
}
int mxh_reciprocals(mxh_device *dev, uint32_t *out, size_t n, uint32_t first, uint32_t step) {
  mxh_buffer y(dev, n * 4);
  numbers_args a = {};
  a.bits = y.as<uint32_t>();
  a.n = n;
  a.first = first;
  a.step = step;
  a.what = MXD_NUMBERS_RECIPROCAL;
  return mxh_launch(dev, "mxh_numbers", mxh_grid(dev, n), 256, &a, sizeof a) || y.get(out, n * 4);
}

static int layout(mxh_device *dev, const char *kernel, uint8_t *out, size_t n_out, const uint8_t *in, size_t n_in, mx_layout l, size_t rows,
                  size_t kb, uint8_t pad) {
  mxh_buffer from(dev, n_in), to(dev, n_out);
  if (from.put(in, n_in)) return 1;
  layout_args a = {};
  a.in = from.as<uint8_t>();
  a.out = to.as<uint8_t>();
  a.rows = rows;
  a.kb = kb;
  a.layout = l;
  a.pad = pad;
  return mxh_launch(dev, kernel, mxh_grid(dev, n_out), 256, &a, sizeof a) || to.get(out, n_out);
}
int mxh_layout_pack(mxh_device *dev, uint8_t *out, mx_layout l, const uint8_t *scales, size_t rows, size_t kb, uint8_t pad) {
  return layout(dev, "mxh_layout_pack", out, mx_layout_size(l, rows, kb), scales, rows * kb, l, rows, kb, pad);
}
int mxh_layout_unpack(mxh_device *dev, uint8_t *scales, mx_layout l, const uint8_t *in, size_t rows, size_t kb) {
  return layout(dev, "mxh_layout_unpack", scales, rows * kb, in, mx_layout_size(l, rows, kb), l, rows, kb, 0);
}

int mxh_pack(mxh_device *dev, const char *kernel, uint8_t *out, size_t n_out, const uint8_t *in, size_t n_in, size_t n, int nibble,
             size_t block) {
  const size_t room = (n_out + 3) / 4 * 4; /* whole words, in bytes */
  mxh_buffer from(dev, n_in), to(dev, room);
  if (from.put(in, n_in) || to.fill(0, room)) return 1;
  pack_args a = {};
  a.in = from.as<uint8_t>();
  a.out = to.as<uint8_t>();
  a.n = n;
  a.block = block;
  a.nibble = nibble;
  return mxh_launch(dev, kernel, mxh_grid(dev, n), 256, &a, sizeof a) || to.get(out, n_out);
}

/* ---- The product ---- */

int mxh_gemm(mxh_device *dev, void *out, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
             const mx_gemm_options *options) {
  const mx_gemm_options plain = {}, *o = options ? options : &plain;
  mxd_plan pa, pb;
  float ga, gb;
  if (mxh_plan_make(&pa, a_spec, a->rows, a->cols, nullptr) || mxh_plan_make(&pb, b_spec, b->rows, b->cols, nullptr) || a->cols != b->cols ||
      (o->out != MX_F32 && o->out != MX_F16 && o->out != MX_BF16) || (o->c && o->c_type != MX_F32) ||
      (o->model != MX_GEMM_F32_BLOCK && o->model != MX_GEMM_F32_SEQ) || mx_tensor_multiplier(&ga, a, a_spec) ||
      mx_tensor_multiplier(&gb, b, b_spec))
    return 1;
  /* elem=none has no scales and takes the block of the other operand. */
  const bool none_a = pa.elem.kind == MX_KIND_NONE, none_b = pb.elem.kind == MX_KIND_NONE;
  bool wide = none_a || none_b;
  for (const mxd_plan *p : {&pa, &pb}) {
    if (p->elem.kind == MX_KIND_NONE) continue;
    if (p->block_rows != 1 || p->elem.bits > 8 || p->scale_bytes > 4) return 1;
    wide |= p->scale_bytes > 2 || p->spec.scale_form == MX_SCALE_FORM_ENCODE;
  }
  if (!none_a && !none_b && pa.block_cols != pb.block_cols) return 1;
  const size_t na = a->rows * a->code_stride, nb = b->rows * b->code_stride, sa = a->scale_rows * a->scale_cols * a->scale_bytes,
               sb = b->scale_rows * b->scale_cols * b->scale_bytes, n = a->rows * b->rows;
  mxh_buffer plan_a(dev, sizeof pa), plan_b(dev, sizeof pb), codes_a(dev, na), codes_b(dev, nb), scales_a(dev, sa), scales_b(dev, sb),
      d(dev, n * 4), c(dev, o->c ? n * 4 : 0), bias(dev, o->bias ? b->rows * 4 : 0), micro_a(dev, a->micro ? sa * 3 : 0),
      micro_b(dev, b->micro ? sb * 3 : 0);
  if ((a->micro && micro_a.put(a->micro, sa * 3)) || (b->micro && micro_b.put(b->micro, sb * 3))) return 1;
  if (plan_a.put(&pa, sizeof pa) || plan_b.put(&pb, sizeof pb) || codes_a.put(a->codes, na) || codes_b.put(b->codes, nb) ||
      scales_a.put(a->scales, sa) || scales_b.put(b->scales, sb) || (o->c && c.put(o->c, n * 4)) || (o->bias && bias.put(o->bias, b->rows * 4)))
    return 1;
  const float alpha = o->alpha ? *o->alpha : 1, beta = o->beta ? *o->beta : 1, g = ga * gb;
  gemm_args k = {};
  k.a_plan = plan_a.as<mxd_plan>();
  k.b_plan = plan_b.as<mxd_plan>();
  k.a_codes = codes_a.as<uint8_t>();
  k.b_codes = codes_b.as<uint8_t>();
  k.a_scales = scales_a.as<uint8_t>();
  k.b_scales = scales_b.as<uint8_t>();
  if (o->c && beta != 0) k.c = c.as<float>();
  if (o->bias) k.bias = bias.as<float>();
  k.d = d.as<uint16_t>();
  k.a_micro = micro_a.as<uint8_t>();
  k.b_micro = micro_b.as<uint8_t>();
  k.out = o->out == MX_F32 ? 0 : o->out == MX_F16 ? 1 : 2;
  k.M = a->rows;
  k.N = b->rows;
  k.K = a->cols;
  k.block = none_a ? pb.block_cols : pa.block_cols;
  k.wide = wide;
  k.model = o->model;
  k.alpha_zero = alpha == 0;
  k.t = alpha * g;
  k.scaled = alpha != 0 && k.t != 1;
  k.beta = beta;
  return mxh_launch(dev, "mxh_gemm", mxh_grid(dev, n), 256, &k, sizeof k) || d.get(out, n * mx_dtype_bytes(o->out));
}
