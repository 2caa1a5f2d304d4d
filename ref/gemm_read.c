/* Decodes whole operands of the product. */
#include "gemm_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ref.h"
#include "rules.h"

static mx_status allocate(ref_matrix *m) {
  m->kb = m->block ? (m->K + m->block - 1) / m->block : 0;
  m->elem = calloc(m->rows * m->K + 1, sizeof *m->elem);
  m->scale = calloc(m->rows * m->kb + 1, sizeof *m->scale);
  m->code = calloc(m->rows * m->K + 1, sizeof *m->code);
  m->scale_code = calloc(m->rows * m->kb + 1, sizeof *m->scale_code);
  m->micro = calloc(m->rows * m->K + 1, sizeof *m->micro);
  if (m->elem && m->scale && m->code && m->scale_code && m->micro) return MX_OK;
  ref_matrix_free(m);
  return MX_ERR_NOMEM;
}

void ref_matrix_free(ref_matrix *m) {
  free(m->elem);
  free(m->scale);
  free(m->code);
  free(m->scale_code);
  free(m->micro);
  m->elem = m->scale = NULL;
  m->code = m->scale_code = NULL;
  m->micro = NULL;
}

static uint64_t little_endian(const uint8_t *p, size_t n_bytes) {
  uint64_t v = 0;
  for (size_t i = 0; i < n_bytes; i++) v |= (uint64_t)p[i] << 8 * i;
  return v;
}

static double scale_number(const mx_format *f, uint64_t code, int is_signed) {
  double s = ref_decode(f, code);
  return is_signed ? s : fabs(s);
}

/* The tensor scale as a multiplier: SPEC 3.3's over / under, rounded once. */
static mx_status multiplier_of(double *out, const mx_tensor *t, const mx_spec *spec) {
  ref_plan plan;
  *out = 1;
  if (spec->tensor_norm == MX_TENSOR_NORM_NONE) return MX_OK;
  mx_status status = ref_plan_make(&plan, spec, t->rows, t->cols);
  if (status != MX_OK) return status;
  num over, under;
  ref_tensor_multiplier(&plan, num_float(t->tensor_scale), &over, &under);
  *out = (double)num_result(num_round(num_ratio(&over, 1, &under, 1), NUM_F32));
  return MX_OK;
}

void ref_block_of(const mx_spec *spec, const mx_tensor *t, size_t *along_rows, size_t *along_k) {
  const int r = spec->block_rows, c = spec->block_cols;
  *along_rows = r == MX_BLOCK_WHOLE ? (t->rows ? t->rows : 1) : r ? (size_t)r : 1;
  *along_k = c == MX_BLOCK_WHOLE ? (t->cols ? t->cols : 1) : c ? (size_t)c : 32;
}

mx_status ref_matrix_of_tensor(ref_matrix *m, const mx_tensor *t, const mx_spec *spec, size_t block, size_t row0, size_t rows) {
  *m = (ref_matrix){.rows = rows, .K = t->cols, .block = block, .multiplier = 1};
  mx_status status = allocate(m);
  if (status != MX_OK) return status;
  const mx_format *elem = ref_elem_format(spec->elem), *scale = ref_scale_format(spec->scale);
  m->elem_format = elem;
  if (elem->kind != MX_KIND_NONE) m->scale_format = scale;
  m->encode = m->scale_format && spec->scale_form == MX_SCALE_FORM_ENCODE;
  m->scale_signed = spec->scale_sign == MX_SCALE_SIGN_SIGNED;
  uint8_t *codes = malloc(t->cols_padded + 1);
  if (!codes) return ref_matrix_free(m), MX_ERR_NOMEM;
  size_t br, bc;
  ref_block_of(spec, t, &br, &bc);
  for (size_t r = 0; r < rows; r++) {
    const uint8_t *line = t->codes + (row0 + r) * t->code_stride;
    if (elem->kind == MX_KIND_NONE) {
      for (size_t k = 0; k < m->K; k++) m->elem[r * m->K + k] = ref_decode(elem, m->code[r * m->K + k] = little_endian(line + 4 * k, 4));
      for (size_t b = 0; b < m->kb; b++) m->scale[r * m->kb + b] = 1;
      continue;
    }
    if (elem->bits == 4)
      ref_unpack4(codes, line, t->cols_padded, spec->nibble, bc);
    else
      memcpy(codes, line, t->cols_padded);
    const size_t scale_row = t->scale_rows == t->rows ? row0 + r : (row0 + r) / br;
    for (size_t b = 0; b < m->kb; b++) {
      uint64_t code = little_endian(t->scales + (scale_row * t->scale_cols + b) * t->scale_bytes, t->scale_bytes);
      m->scale_code[r * m->kb + b] = code;
      m->scale[r * m->kb + b] = scale_number(scale, code, m->scale_signed);
    }
    for (size_t k = 0; k < m->K; k++) {
      double v = ref_decode(elem, codes[k]);
      int micro_log2 = 0;
      if (t->micro) {
        const uint8_t *micro = t->micro + (scale_row * t->scale_cols + k / block) * 3;
        const size_t i = k % block;
        if (micro[0] >> i / 8 & 1) micro_log2++;
        if (micro[1 + i / 32] >> i % 32 / 4 & 1) micro_log2++;
        v *= 1 << micro_log2;
      }
      m->code[r * m->K + k] = codes[k];
      m->micro[r * m->K + k] = micro_log2;
      m->elem[r * m->K + k] = v;
    }
  }
  free(codes);
  if (elem->kind == MX_KIND_NONE) return MX_OK;
  m->divides = spec->scale_form == MX_SCALE_FORM_ENCODE;
  status = multiplier_of(&m->multiplier, t, spec);
  if (status != MX_OK) ref_matrix_free(m);
  return status;
}

/* Code at (line, place) of a dense matrix with `length` codes a line. */
static uint64_t code_in(const mx_gemm_operand *x, const uint8_t *data, size_t ld, size_t line, size_t place) {
  const int bits = x->elem->bits;
  if (x->packing == MX_PACK_BYTES && bits < 8) return data[line * ld + place];
  const uint8_t *from = data + line * ((ld * (size_t)bits + 7) / 8);
  if (bits == 4) {
    const int high = x->nibble == MX_NIBBLE_HIGH_FIRST ? place % 2 == 0 : place % 2 == 1;
    return high ? from[place / 2] >> 4 : from[place / 2] & 15;
  }
  uint64_t code = 0;
  for (int i = 0; i < bits; i++) { /* a stream of bits, least first; whole bytes are one too */
    const size_t at = place * (size_t)bits + (size_t)i;
    code |= (uint64_t)(from[at / 8] >> at % 8 & 1) << i;
  }
  return code;
}

mx_status ref_matrix_of_operand(ref_matrix *m, const mx_gemm_problem *p, const mx_gemm_operand *x, int is_b, size_t t) {
  *m = (ref_matrix){
      .rows = is_b ? p->N : p->M, .K = p->K, .block = p->block ? p->block : 32, .divides = x->scale_form == MX_SCALE_FORM_ENCODE && x->scale};
  m->multiplier = x->multiplier ? (double)*x->multiplier : 1;
  mx_status status = allocate(m);
  if (status != MX_OK) return status;
  m->elem_format = x->elem;
  m->scale_format = x->scale;
  m->encode = m->divides;
  m->scale_signed = x->scale_sign == MX_SCALE_SIGN_SIGNED;
  /* op(A) is M x K, op(B) is K x N; a row-major matrix of (r, c) has c along the line. */
  const int stored_transposed = (x->transposed != 0) != (p->order == MX_COL_MAJOR);
  const int k_along_line = is_b ? stored_transposed : !stored_transposed;
  const size_t length = k_along_line ? m->K : m->rows, ld = x->ld ? x->ld : length;
  const int bits = x->packing == MX_PACK_BYTES && x->elem->bits < 8 ? 8 : x->elem->bits;
  const uint8_t *data = x->list ? x->list[t] : (const uint8_t *)x->data + t * x->stride * (size_t)bits / 8;
  for (size_t r = 0; r < m->rows; r++)
    for (size_t k = 0; k < m->K; k++)
      m->elem[r * m->K + k] =
          ref_decode(x->elem, m->code[r * m->K + k] = k_along_line ? code_in(x, data, ld, r, k) : code_in(x, data, ld, k, r));
  for (size_t i = 0; i < m->rows * m->kb; i++) m->scale[i] = 1;
  if (!x->scale) return MX_OK;
  const size_t bytes = x->scale->bits <= 8 ? 1 : x->scale->bits <= 16 ? 2 : 4;
  const uint8_t *scales = x->scale_list ? x->scale_list[t] : (const uint8_t *)x->scales + t * x->scale_stride * bytes;
  const size_t scale_ld = x->scale_ld ? x->scale_ld : x->scale_transposed ? m->rows : m->kb;
  for (size_t r = 0; r < m->rows; r++)
    for (size_t b = 0; b < m->kb; b++) {
      size_t at = x->scale_transposed ? b * scale_ld + r : r * scale_ld + b;
      if (x->scale_layout != MX_LAYOUT_ROW) at = ref_layout_index((mx_layout)x->scale_layout, m->rows, m->kb, r, b);
      m->scale_code[r * m->kb + b] = little_endian(scales + at * bytes, bytes);
      m->scale[r * m->kb + b] = scale_number(x->scale, m->scale_code[r * m->kb + b], m->scale_signed);
    }
  return MX_OK;
}
