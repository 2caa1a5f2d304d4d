/* Runs matrix-unit models in the product of SPEC 4, and decides which operands enter the unit as they are stored and which are dequantised first. */
#include "gemm_fused.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ref.h"

/* What operands are dequantised to. */
static const mx_format *wide_format(int bits) {
  static const mx_format f64 = {"f64",
                                MX_KIND_FLOAT,
                                64,
                                1,
                                11,
                                52,
                                1023,
                                UINT64_C(0x7FEFFFFFFFFFFFFF),
                                UINT64_C(0x7FF0000000000000),
                                UINT64_C(0x7FF0000000000001),
                                UINT64_C(0x7FFFFFFFFFFFFFFF),
                                UINT64_C(0x7FF8000000000000),
                                NULL};
  return bits == 64 ? &f64 : ref_scale_format(MX_SCALE_FP32);
}

/* A scale that a unit multiplies with: at most four significant bits, or a power of two in either form. */
static int unit_takes_scale(const ref_matrix *m) {
  if (!m->scale_format) return 1;
  return m->scale_format->man_bits == 0 || (m->scale_format->man_bits <= 3 && !m->encode);
}

static int unit_takes(const ref_matrix *m, const mx_mma_model *model) {
  const mx_format *e = m->elem_format;
  const mx_accum *x = &model->accum;
  if (x->op == MX_ACC_OP_INTEGER) return 1;
  if (model->d->bits == 64) return 0;
  if (e->kind == MX_KIND_EXP || (e->kind == MX_KIND_INT && e->bits > 8)) return 0;
  if (x->op != MX_ACC_OP_FUSED) return m->scale_format == NULL;
  return unit_takes_scale(m);
}

/* element * scale, or / scale with 0 / 0 = 0, rounded once to binary32 or binary64: its bits. */
static uint64_t dequantised(const ref_matrix *m, size_t r, size_t k, int bits) {
  double element = m->elem[r * m->K + k], scale = m->scale[r * m->kb + k / m->block];
  ext v, s;
  ext_init(&v);
  ext_init(&s);
  ext_double(&v, element);
  ext_double(&s, scale);
  if (!m->divides)
    ext_mul(&v, &v, &s);
  else if (element != 0 || scale != 0)
    ext_div(&v, &v, &s);
  if (bits == 64)
    ext_round_f64(&v);
  else
    ext_round_f32(&v);
  double wide = ext_get(&v);
  float narrow = (float)wide; /* exact */
  uint64_t code = 0;
  if (bits == 64) memcpy(&code, &wide, 8);
  if (bits == 32) memcpy(&code, &narrow, 4);
  if (isnan(wide)) code = bits == 64 ? UINT64_C(0x7FF8000000000000) : UINT64_C(0x7FC00000);
  ext_clear(&v);
  ext_clear(&s);
  return code;
}

static uint64_t *row_of(ref_mma_row *row, mx_format *ones, const ref_matrix *m, size_t r, const mx_mma_model *model) {
  int bits = model->d->bits == 64 ? 64 : 32;
  if (unit_takes(m, model)) {
    *row = (ref_mma_row){.type = m->elem_format, .codes = m->code + r * m->K, .micro = m->micro + r * m->K, .block = m->block};
    row->scale = m->scale_format;
    row->scales = m->scale_code + r * m->kb;
    row->scale_signed = m->scale_signed;
    row->scale_inverse = m->encode;
    if (m->elem_format->kind == MX_KIND_NONE) row->type = wide_format(32);
    if (model->accum.op == MX_ACC_OP_INTEGER) { /* elements count in ones there */
      *ones = *m->elem_format;
      ones->man_bits = 0;
      row->type = ones;
    }
    return NULL;
  }
  uint64_t *codes = calloc(m->K + 1, sizeof *codes);
  *row = (ref_mma_row){.type = wide_format(bits), .codes = codes, .block = m->block};
  for (size_t k = 0; codes && k < m->K; k++) codes[k] = dequantised(m, r, k, bits);
  return codes;
}

static void value_of(ext *sum, uint64_t bits, const mx_mma_model *model, const ref_matrix *a, const ref_matrix *b) {
  double wide;
  if (model->accum.op == MX_ACC_OP_INTEGER) {
    wide = ldexp((double)(int32_t)(uint32_t)bits, -a->elem_format->man_bits - b->elem_format->man_bits);
  } else if (model->d->bits == 64) {
    memcpy(&wide, &bits, sizeof wide);
  } else {
    wide = ref_decode(model->d, bits);
  }
  ext_double(sum, wide);
  ext_round_f32(sum);
}

mx_status ref_gemm_fused(ext *sum, const mx_mma_model *model, const ref_matrix *a, const ref_matrix *b, size_t i, size_t j) {
  ref_mma_row x, y;
  mx_format ones_a, ones_b;
  uint64_t *codes_a = row_of(&x, &ones_a, a, i, model), *codes_b = row_of(&y, &ones_b, b, j, model), bits = 0;
  mx_status status = x.codes && y.codes ? ref_mma_sum(&bits, model, &x, &y, a->K) : MX_ERR_NOMEM;
  if (status == MX_OK) value_of(sum, bits, model, a, b);
  free(codes_a);
  free(codes_b);
  return status;
}
