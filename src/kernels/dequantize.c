/* Values from codes: SPEC 3.4. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/plain_kernels.h"
#include "kernels/plan.h"
#include "mxgold/isa.h"

/* What code * scale is multiplied by and divided by: one of the two is 1 but for stored maxima. */
typedef struct multiplier {
  double times, over;
} multiplier;

static multiplier tensor_multiplier(const mx_plan *p, float stored) {
  const mx_spec *s = &p->spec;
  if (!p->has_tensor_scale) return (multiplier){1, 1};
  const char *store = mx_tensor_store_name(s);
  /* code * scale is to be multiplied by max|X| / N: what is stored, one over it, or max|X| itself */
  if (!strcmp(store, "divisor")) return (multiplier){1, (double)stored};
  return (multiplier){(double)stored, !strcmp(store, "amax") ? (p->uses_chain ? p->target : p->norm) : 1};
}

static float value_of(const mx_plan *p, double code, double scale, multiplier m) {
  if (isnan(code) || isnan(scale)) return NAN;
  const int encode = p->spec.scale_form == MX_SCALE_FORM_ENCODE;
  double v;
  if (encode && code == 0 && scale == 0) return (float)code; /* 3.7: so is an all-zero block stored */
  if (p->spec.deq_arith == MX_DEQ_ARITH_TWO_STEP) {
    const float step = encode ? (float)(code / scale) : (float)(code * scale);
    v = (double)step * (double)(float)mx_quotient_to_odd(m.times, m.over);
  } else if (encode)
    v = mx_quotient_to_odd(code * m.times, scale * m.over);
  else
    v = mx_quotient_to_odd(code * scale * m.times, m.over);
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

/* Whole blocks of 4-bit codes under one-byte scales: every value there can be, made once. NULL if the tensor is not like that or not worth it. */
static mx_values4_kernel *values4_kernel(const mx_plan *p, const mx_tensor *t, const mx_exec *exec) {
  if (p->elem->bits != 4 || t->scale_bytes != 1 || t->micro || p->block_cols % 16 || p->spec.nibble == MX_NIBBLE_HALF_BLOCK) return NULL;
  if (t->cols < p->block_cols || t->rows * t->cols < 1024) return NULL;
#if defined(__x86_64__)
  const uint32_t usable = mx_isa_usable(exec ? exec->isa_mask : 0);
  return usable & MX_ISA_AVX512 ? mx_values4_avx512 : usable & MX_ISA_AVX2 ? mx_values4_avx2 : NULL;
#else
  (void)exec;
  return NULL;
#endif
}

mx_status mx_dequantize(float *out, size_t ld, const mx_tensor *t, const mx_spec *spec, const mx_exec *exec) {
  if (!t || !spec || (!out && t->rows && t->cols)) return MX_ERR_ARG;
  if (ld < t->cols) return MX_ERR_SHAPE;
  mx_plan plan;
  const mx_status status = mx_plan_init(&plan, spec, t->rows, t->cols, NULL);
  if (status) return status;
  const mx_plan *p = &plan;
  const multiplier m = tensor_multiplier(p, t->tensor_scale);
  double values[256];
  for (unsigned c = 0; c < 256; c++) values[c] = p->elem->bits <= 8 ? mx_decode(p->elem, c) : 0;
  mx_values4_kernel *kernel = values4_kernel(p, t, exec);
  float *table = kernel ? malloc(256 * 16 * sizeof *table) : NULL;
  for (uint32_t s = 0; table && s < 256; s++)
    for (uint32_t c = 0; c < 16; c++) table[16 * s + c] = value_of(p, values[c], scale_value(p, s), m);
  const size_t whole = t->cols / p->block_cols * p->block_cols;
#pragma omp parallel for schedule(static) num_threads(exec && exec->n_threads > 0 ? exec->n_threads : omp_get_max_threads())
  for (size_t r = 0; r < t->rows; r++) {
    float *row = out + r * ld;
    if (p->elem->kind == MX_KIND_NONE) {
      memcpy(row, t->codes + r * t->code_stride, t->cols * sizeof *row);
      continue;
    }
    const size_t scale_row = t->scale_rows == t->rows ? r : r / p->block_rows;
    size_t c = 0;
    if (table) {
      const uint8_t *codes = t->codes + r * t->code_stride, *scales = t->scales + scale_row * t->scale_cols;
      kernel(row, codes, scales, table, whole, p->block_cols, spec->nibble == MX_NIBBLE_HIGH_FIRST);
      c = whole;
    }
    for (; c < t->cols; c++) {
      const size_t at = scale_row * t->scale_cols + c / p->block_cols;
      uint32_t code = 0;
      memcpy(&code, t->scales + at * t->scale_bytes, t->scale_bytes);
      double scale = scale_value(p, code);
      if (t->micro) scale *= mx_hif4_factor(t->micro + at * 3, c % 64);
      row[c] = value_of(p, values[code_at(t, p, r, c)], scale, m);
    }
  }
  free(table);
  return MX_OK;
}
