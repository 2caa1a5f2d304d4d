/* Computes values from codes: SPEC 3.7. */
#include <math.h>
#include <string.h>

#include "core/room.h"
#include "kernels/dispatch.h"
#include "kernels/threads.h"

/* The numbers by which code * scale is multiplied and divided; one of them is 1 unless a maximum is stored. */
typedef struct multiplier {
  double times, over;
} multiplier;

static multiplier tensor_multiplier(const mx_plan *p, float stored) {
  const mx_spec *s = &p->spec;
  if (!p->has_tensor_scale) return (multiplier){1, 1};
  const char *store = mx_tensor_store_name(s);
  /* code * scale must be multiplied by max|X| / N: the stored number, its inverse, or made from max|X| */
  if (!strcmp(store, "divisor")) return (multiplier){1, (double)stored};
  const double n = !strcmp(store, "amax") ? (p->uses_chain ? p->target : p->norm) : 1;
  if (s->deq_arith == MX_DEQ_ARITH_SCALE_FIRST) return (multiplier){(double)(float)mxi_quotient_to_odd((double)stored, n), 1};
  return (multiplier){(double)stored, n};
}

/* deq.arith=scale_first: what the block's elements are multiplied by (in the encode form divided by), with the tensor scale in it. */
static double scale_and_tensor(const mx_plan *p, double scale, multiplier m) {
  const int encode = p->spec.scale_form == MX_SCALE_FORM_ENCODE;
  if (isnan(scale) || (encode && scale == 0)) return scale;
  return (double)(float)(encode ? mxi_quotient_to_odd(scale * m.over, m.times) : mxi_quotient_to_odd(scale * m.times, m.over));
}

static float value_of(const mx_plan *p, double code, double scale, multiplier m) {
  if (isnan(code) || isnan(scale)) return NAN;
  const int encode = p->spec.scale_form == MX_SCALE_FORM_ENCODE;
  double v;
  if (encode && code == 0 && scale == 0) return (float)code; /* SPEC 3.7: this is how an all-zero block is stored */
  if (p->spec.deq_arith == MX_DEQ_ARITH_TWO_STEP) {
    const float step = encode ? (float)(code / scale) : (float)(code * scale);
    v = (double)step * (double)(float)mxi_quotient_to_odd(m.times, m.over);
  } else if (encode)
    v = mxi_quotient_to_odd(code * m.times, scale * m.over);
  else
    v = mxi_quotient_to_odd(code * scale * m.times, m.over);
  return isnan(v) ? NAN : (float)v;
}

static uint32_t code_at(const mx_tensor *t, const mx_plan *p, size_t row, size_t c) {
  const uint8_t *codes = t->codes + row * t->code_stride;
  if (p->elem->bits > 4) return codes[c];
  const size_t bc = p->block_cols, half = bc / 2;
  switch (p->spec.nibble) {
  case MX_NIBBLE_HIGH_FIRST:
    return c % 2 ? codes[c / 2] & 15u : codes[c / 2] >> 4;
  case MX_NIBBLE_HALF_BLOCK:
    return codes[c / bc * half + c % bc % half] >> (c % bc >= half ? 4 : 0) & 15u;
  default:
    return codes[c / 2] >> (c % 2 * 4) & 15u;
  }
}

static double scale_value(const mx_plan *p, uint32_t code) {
  const double scale = mx_decode(p->scale, code);
  return p->spec.scale_sign == MX_SCALE_SIGN_MASKED ? fabs(scale) : scale;
}

/* How a call computes its values, decided once. */
typedef struct deq {
  const mx_plan *plan;
  const mx_tensor *tensor;
  const mx_value_kernels *kernels;
  multiplier m;
  multiplier first; /* deq.arith=scale_first: this is the multiplier, which is already in the scales, and m is 1 */
  int is_first;
  double values[256]; /* of elements */
  float scales[256];  /* of one-byte scales */
  mx_values form;
  int formed; /* 1: form can be used */
  mx_workspace *from;
  float *pairs; /* the value of (scale << bits | code), or NULL; large enough for values4 */
  int bits;     /* 4 or 8 */
} deq;

static double stored_scale(const deq *d, size_t at) {
  const mx_tensor *t = d->tensor;
  const mx_format *s = d->plan->scale;
  if (s->kind == MX_KIND_FLOAT && s->bits == t->scale_bytes * 8 && s->man_bits + 9 == s->bits &&
      t->scale_bytes > 1) { /* a binary32 or its upper half */
    uint32_t code = 0;
    float v;
    memcpy((uint8_t *)&code + 4 - t->scale_bytes, t->scales + at * t->scale_bytes, t->scale_bytes);
    memcpy(&v, &code, sizeof v);
    return (double)(d->plan->spec.scale_sign == MX_SCALE_SIGN_MASKED ? fabsf(v) : v);
  }
  uint32_t code = 0;
  memcpy(&code, t->scales + at * t->scale_bytes, t->scale_bytes);
  return scale_value(d->plan, code);
}

static double scale_at(const deq *d, size_t at) {
  if (d->tensor->scale_bytes == 1) return (double)d->scales[d->tensor->scales[at]];
  return d->is_first ? scale_and_tensor(d->plan, stored_scale(d, at), d->first) : stored_scale(d, at);
}

static void form_init(deq *d) {
  const mx_plan *p = d->plan;
  const int encode = p->spec.scale_form == MX_SCALE_FORM_ENCODE, two = p->spec.deq_arith == MX_DEQ_ARITH_TWO_STEP && p->has_tensor_scale;
  mx_values *f = &d->form;
  f->keeps_nan = 0;
  f->then = (float)mxi_quotient_to_odd(d->m.times, d->m.over);
  mxi_values_tables(f, p->elem);
  f->may_be_invalid = p->elem->inf_code != MX_NO_CODE || p->scale->bits > 8 || !isfinite(d->m.times) || !isfinite(f->then);
  d->formed = !(two && encode && !isfinite(f->then)); /* a zero under a zero scale must be zero, not 0 * Inf */
  for (int c = 0; d->is_first && c < 256; c++) f->may_be_invalid |= isinf(d->scales[c]) != 0;
  if (!p->has_tensor_scale || two || d->is_first)
    f->how = two ? (encode ? MX_VALUES_DIV_MUL : MX_VALUES_MUL_MUL) : encode ? MX_VALUES_DIV : MX_VALUES_MUL;
  else if (!encode && d->m.over == 1 && p->scale->man_bits <= 20) /* the product of 8, 21 and 24 bits is exact */
    f->how = MX_VALUES_WIDE;
  else
    d->formed = 0;
}

static void deq_init(deq *d, const mx_plan *p, const mx_tensor *t, const mx_exec *exec) {
  memset(d, 0, sizeof *d);
  d->plan = p;
  d->tensor = t;
  d->kernels = mxi_kernels_for(exec ? exec->isa_mask : 0)->values;
  d->m = tensor_multiplier(p, t->tensor_scale);
  d->is_first = p->has_tensor_scale && p->spec.deq_arith == MX_DEQ_ARITH_SCALE_FIRST;
  if (d->is_first) {
    d->first = d->m;
    d->m = (multiplier){1, 1};
  }
  d->bits = p->elem->bits == 4 ? 4 : 8;
  if (p->elem->kind == MX_KIND_NONE) return;
  const uint32_t all = (1u << p->elem->bits) - 1;
  for (uint32_t c = 0; c < 256; c++) {
    d->values[c] = mx_decode(p->elem, c & all);
    const double scale = t->scale_bytes == 1 ? scale_value(p, c) : 0;
    d->scales[c] = (float)(d->is_first ? scale_and_tensor(p, scale, d->first) : scale);
    if (isnan(d->scales[c])) d->scales[c] = NAN; /* kernels pass on the NaN of a factor, which must not have the sign of a signed scale */
  }
  form_init(d);
  const size_t entries = (size_t)256 << d->bits;
  const int by_nibbles = d->bits == 4 && d->kernels->values4 && p->block_cols % 16 == 0 && p->spec.nibble != MX_NIBBLE_HALF_BLOCK;
  if (t->scale_bytes > 1 || t->micro || t->rows * t->cols < entries / 4 || (d->formed && !by_nibbles)) return;
  d->from = exec ? exec->workspace : NULL;
  d->pairs = mxi_room_take(d->from, entries * sizeof *d->pairs);
  for (size_t i = 0; d->pairs && i < entries; i++) d->pairs[i] = value_of(p, d->values[i & all], (double)d->scales[i >> d->bits], d->m);
}

/* The codes of n elements of a row from column c on, one to a byte. */
static void codes_at(uint8_t *out, const deq *d, size_t row, size_t c, size_t n) {
  const mx_tensor *t = d->tensor;
  const int nibble = d->plan->spec.nibble;
  if (d->bits == 4 && nibble != MX_NIBBLE_HALF_BLOCK)
    d->kernels->unpack4(out, t->codes + row * t->code_stride + c / 2, n, nibble == MX_NIBBLE_HIGH_FIRST);
  else if (d->bits == 4) { /* runs of low halves and of high halves */
    const uint8_t *in = t->codes + row * t->code_stride;
    const size_t block = d->plan->block_cols, half = block / 2;
    for (size_t i = 0, end; i < n; i = end) {
      const size_t first = (c + i) / block * block, inside = c + i - first, high = inside >= half, left = (high ? block : half) - inside;
      const uint8_t *from = in + first / 2 + inside - (high ? half : 0);
      end = n - i < left ? n : i + left;
      for (size_t k = i; k < end; k++) out[k] = from[k - i] >> (high ? 4 : 0) & 15;
    }
  } else
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)code_at(t, d->plan, row, c + i);
}

/* Finds one factor for each block if these are whole blocks of 16 << shift elements under one-byte scales; returns shift, or -1 if they are
 * not. */
static int block_factors(float *f, double *wide, const deq *d, size_t at, size_t inside, size_t n) {
  const size_t block = d->plan->block_cols, per = block / 16;
  if (d->tensor->scale_bytes != 1 || d->tensor->micro || inside || block % 16 || per & (per - 1)) return -1;
  const uint8_t *scales = d->tensor->scales + at;
  for (size_t k = 0; k * block < n; k++)
    if (d->form.how == MX_VALUES_WIDE)
      wide[k] = isnan(d->scales[scales[k]]) || isnan(d->m.times) ? NAN : (double)d->scales[scales[k]] * d->m.times;
    else
      f[k] = d->scales[scales[k]];
  return __builtin_ctzll(per);
}

/* Finds factors for n elements, one for each `step` of them, starting `inside` elements into the block with index `at`. */
static void factors(float *f, double *wide, const deq *d, size_t at, size_t inside, size_t n, size_t step) {
  const mx_tensor *t = d->tensor;
  const size_t block = d->plan->block_cols;
  double scale = 0;
  if (t->micro && d->form.how != MX_VALUES_WIDE) { /* one factor for each four elements; inside is a multiple of 4, though n need not be */
    for (size_t i = 0; i < n; i += 4) {
      if (inside == 0 || i == 0) scale = scale_at(d, at);
      const double s = scale * mxi_hif4_factor(t->micro + at * 3, inside);
      for (size_t k = i; k < i + 4 && k < n; k++) f[k] = isnan(s) ? NAN : (float)s;
      if ((inside += 4) == block) inside = 0, at++;
    }
    return;
  }
  for (size_t i = 0, k = 0; i < n; i += step, k++) {
    if (inside == 0 || i == 0) scale = scale_at(d, at);
    const double s = t->micro ? scale * mxi_hif4_factor(t->micro + at * 3, inside) : scale;
    f[k] = isnan(s) ? NAN : (float)s;
    if (d->form.how == MX_VALUES_WIDE) wide[k] = isnan(s) || isnan(d->m.times) ? NAN : s * d->m.times;
    if ((inside += step) == block) inside = 0, at++;
  }
}

/* Computes n values of a row from column c on; c is a multiple of 16. */
static void part(float *out, const deq *d, size_t row, size_t scale_row, size_t c, size_t n) {
  const mx_tensor *t = d->tensor;
  const size_t block = d->plan->block_cols, first = scale_row * t->scale_cols;
  uint8_t room[MX_VALUES_MOST];
  const uint8_t *codes = room;
  if (d->bits == 4)
    codes_at(room, d, row, c, n);
  else
    codes = t->codes + row * t->code_stride + c;
  if (d->pairs) {
    for (size_t i = 0, end; i < n; i = end) {
      const size_t b = (c + i) / block;
      const float *of = d->pairs + ((size_t)t->scales[first + b] << d->bits);
      end = (b + 1) * block - c < n ? (b + 1) * block - c : n;
      for (; i < end; i++) out[i] = of[codes[i]];
    }
    return;
  }
  float f[MX_VALUES_MOST];
  double wide[MX_VALUES_MOST];
  const int sixteens = block % 16 == 0 && !t->micro;
  if (d->formed) {
    const int shift = block_factors(f, wide, d, first + c / block, c % block, n);
    if (shift >= 0) {
      d->kernels->values(out, codes, n, &d->form, f, wide, shift);
      return;
    }
    factors(f, wide, d, first + c / block, c % block, n, sixteens ? 16 : 1);
    const mx_value_kernels *k = sixteens || d->form.how != MX_VALUES_WIDE ? d->kernels : &mxi_values_scalar;
    k->values(out, codes, n, &d->form, f, wide, sixteens ? 0 : -1);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    const size_t b = first + (c + i) / block;
    out[i] = value_of(d->plan, d->values[codes[i]], scale_at(d, b) * (t->micro ? mxi_hif4_factor(t->micro + b * 3, (c + i) % 64) : 1), d->m);
  }
}

/* Computes a row of either type, into out or out16. */
static void dequantize_row(float *out, uint16_t *out16, const deq *d, size_t r) {
  const mx_plan *p = d->plan;
  const mx_tensor *t = d->tensor;
  const size_t scale_row = t->scale_rows == t->rows ? r : r / p->block_rows, block = p->block_cols;
  const uint8_t *codes = t->codes + r * t->code_stride;
  float room[MX_VALUES_MOST];
  for (size_t c = 0, n; c < t->cols; c += n) {
    const int by_nibbles = d->pairs && d->bits == 4 && d->kernels->values4 && block % 16 == 0 && p->spec.nibble != MX_NIBBLE_HALF_BLOCK;
    const size_t whole = (t->cols - c) / block * block, most = block < MX_VALUES_MOST ? MX_VALUES_MOST / block * block : block;
    n = t->cols - c < MX_VALUES_MOST ? t->cols - c : MX_VALUES_MOST;
    float *to = out ? out + c : room;
    if (p->elem->kind == MX_KIND_NONE) {
      memcpy(to, codes + 4 * c, n * sizeof *to);
      for (size_t i = 0; out16 && i < n; i++) to[i] = isnan(to[i]) ? NAN : to[i];
    } else if (by_nibbles && whole && (out || most <= MX_VALUES_MOST)) {
      n = out || whole < most ? whole : most;
      d->kernels->values4(to, codes + c / 2, t->scales + scale_row * t->scale_cols + c / block, d->pairs, n, block,
                          p->spec.nibble == MX_NIBBLE_HIGH_FIRST);
    } else
      part(to, d, r, scale_row, c, n);
    if (out16) d->kernels->to_bf16(out16 + c, room, n);
  }
}

static mx_status dequantize(float *out, uint16_t *out16, size_t ld, const mx_tensor *t, const mx_spec *spec, const mx_exec *exec) {
  if (!t || !spec || (!out && !out16 && t->rows && t->cols)) return MX_ERR_ARG;
  if (ld < t->cols) return MX_ERR_SHAPE;
  mx_plan plan;
  const mx_status status = mxi_plan_init(&plan, spec, t->rows, t->cols, NULL);
  if (status) return status;
  deq d;
  deq_init(&d, &plan, t, exec);
#pragma omp parallel for schedule(static)                                                                                                      \
    num_threads(mx_threads(exec, t->rows * t->cols, d.formed || d.pairs ? MX_THREAD_VALUES : MX_THREAD_SCALAR))
  for (size_t r = 0; r < t->rows; r++) dequantize_row(out ? out + r * ld : NULL, out16 ? out16 + r * ld : NULL, &d, r);
  mxi_room_give(d.from, d.pairs);
  return MX_OK;
}

mx_status mx_dequantize(float *out, size_t ld, const mx_tensor *t, const mx_spec *spec, const mx_exec *exec) {
  return dequantize(out, NULL, ld, t, spec, exec);
}

mx_status mx_dequantize_bf16(uint16_t *out, size_t ld, const mx_tensor *t, const mx_spec *spec, const mx_exec *exec) {
  return dequantize(NULL, out, ld, t, spec, exec);
}
