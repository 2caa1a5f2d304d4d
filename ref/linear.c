/* Computes the quantised linear layer, in the order of include/mxgold/linear.h. */
#include "linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ema.h"
#include "fail.h"
#include "gemm.h"
#include "gradient.h"
#include "num.h"
#include "outliers.h"
#include "ref.h"

typedef struct matrix {
  size_t rows, cols;
  float *at; /* dense */
} matrix;

/* An operand: what was quantised and how. */
typedef struct operand {
  mx_tensor tensor;
  mx_spec spec;
} operand;

static matrix matrix_new(size_t rows, size_t cols) { return (matrix){rows, cols, calloc(rows * cols + 1, sizeof(float))}; }

static matrix read_in(mx_linear_in in, size_t rows, size_t cols) {
  matrix m = matrix_new(rows, cols);
  for (size_t i = 0; i < rows * cols && m.at; i++) {
    const size_t from = i / cols * in.ld + i % cols;
    if (in.dtype == MX_BF16) {
      const uint32_t bits = (uint32_t)((const uint16_t *)in.data)[from] << 16;
      memcpy(&m.at[i], &bits, sizeof bits);
    } else
      m.at[i] = ((const float *)in.data)[from];
  }
  return m;
}

static matrix transposed(matrix x) {
  matrix t = matrix_new(x.cols, x.rows);
  for (size_t i = 0; i < x.rows * x.cols && t.at; i++) t.at[i % x.cols * x.rows + i / x.cols] = x.at[i];
  return t;
}

static uint64_t seed_of(uint64_t seed, uint64_t step, uint64_t layer, unsigned slot) {
  const uint64_t i = step * (1u << 24) + layer * 16 + slot;
  return ref_random(seed, 5, 2 * i) + ((uint64_t)ref_random(seed, 5, 2 * i + 1) << 32);
}

static mx_spec spec_of(const mx_linear *l, int q) {
  mx_spec s = l->recipe->q[q];
  const uint64_t step = l->recipe->random == MX_RANDOM_FROZEN ? 0 : l->step;
  const int shared = l->recipe->random == MX_RANDOM_SHARED;
  s.seed = seed_of(l->seed, step, shared ? 0 : l->layer, shared ? 0 : (unsigned)q);
  if (s.had_size && s.had_sign == MX_HAD_SIGN_FRESH) {
    unsigned slot = 8 + (unsigned)q / 2;
    if (l->recipe->sign_draw == MX_DRAW_BACKWARD && slot == 8 + MX_WGRAD) slot = 8 + MX_DGRAD;
    const uint64_t signs = seed_of(l->seed, l->recipe->sign_draw == MX_DRAW_RUN ? 0 : l->step, l->layer, slot);
    s.had_sign = MX_HAD_SIGN_FIXED;
    memset(s.had_signs, 0, sizeof s.had_signs);
    for (unsigned i = 0; i < 128; i++)
      if (ref_random(signs, MX_STREAM_SIGN, i / 32) >> i % 32 & 1) s.had_signs[i / 8] |= (uint8_t)(1 << i % 8);
  }
  if (l->hold && !l->hold->refresh && l->hold->scale[q] > 0 && s.tensor_norm != MX_TENSOR_NORM_NONE) {
    s.tensor_given = 1;
    s.tensor_given_value = l->hold->scale[q];
  }
  return s;
}

static mx_status soft_quantise(operand *o, matrix x, const mx_linear_recipe *r, mx_error *err) {
  const mx_spec *s = &o->spec;
  const mx_status status =
      s->had_size ? ref_hadamard(x.at, x.cols, x.at, x.rows, x.cols, x.cols, s->had_size, s->had_sign, s->had_signs, s->seed) : MX_OK;
  return status ? status : ref_soft_quantize(&o->tensor, x.at, s, r, err);
}

/* Q2 as its moving average asks, widened as W [O][cols] is. */
static mx_status by_average(operand *o, const mx_linear *l, size_t cols, const float *w) {
  const matrix narrow = read_in(l->ema, l->O, l->I), wide = matrix_new(l->O, cols);
  uint64_t moved = 0;
  for (size_t r = 0; r < l->O && narrow.at && wide.at; r++) memcpy(wide.at + r * cols, narrow.at + r * l->I, l->I * sizeof *narrow.at);
  const mx_status status = narrow.at && wide.at ? ref_ema(&o->tensor, &moved, &o->spec, w, wide.at) : MX_ERR_NOMEM;
  if (l->counts) l->counts->steered += moved;
  free(narrow.at);
  free(wide.at);
  return status;
}

/* Quantise along the rows of x, filled up to whole tiles of the rotation. x is freed. */
static mx_status quantise(operand *o, const mx_linear *l, int q, matrix x, mx_error *err) {
  o->spec = spec_of(l, q);
  const size_t tile = o->spec.had_size ? o->spec.had_size : 1, cols = (x.cols + tile - 1) / tile * tile;
  matrix wide = matrix_new(x.rows, cols);
  uint32_t *words = NULL;
  for (size_t r = 0; r < x.rows && wide.at && x.at; r++) memcpy(wide.at + r * cols, x.at + r * x.cols, x.cols * sizeof *x.at);
  if (l->recipe->random == MX_RANDOM_COUNTER && o->spec.elem_round == MX_ROUND_SR) {
    words = malloc((x.rows * cols + 1) * sizeof *words);
    const uint64_t period = UINT64_C(1) << (o->spec.sr_bits ? o->spec.sr_bits : 16);
    for (size_t i = 0; i < x.rows * cols && words; i++) words[i] = (uint32_t)(i % period);
    o->spec.sr_source = MX_SR_SOURCE_GIVEN;
    o->spec.given_bits = words;
  }
  mx_status status = x.at && wide.at ? ref_tensor_alloc(&o->tensor, x.rows, cols, &o->spec) : MX_ERR_NOMEM;
  if (!status) {
    mx_error why;
    why.text[0] = 0;
    const int soft = q <= MX_Q2 && l->recipe->grad_config == MX_GRAD_SOFTMAX && ref_gradient_acts(l->recipe, q);
    status = soft ? soft_quantise(o, wide, l->recipe, &why) : ref_quantize(&o->tensor, wide.at, x.rows, cols, cols, &o->spec, NULL, &why);
    if (status) ref_fail(err, status, "Q%d: %s", q + 1, why.text);
  }
  if (!status && q == MX_Q2 && l->recipe->q2_ema != 0 && l->ema.data) status = by_average(o, l, cols, wide.at);
  if (!status && l->hold && l->hold->refresh) {
    const float scale = o->tensor.tensor_scale;
    l->hold->scale[q] = o->tensor.has_tensor_scale && isfinite(scale) ? scale : 0;
  }
  if (!status && l->operand) l->operand(l->self, q, &o->tensor, &o->spec);
  free(x.at);
  free(wide.at);
  free(words);
  o->spec.given_bits = NULL;
  return status;
}

/* No codes and no scales. */
static int is_plain_spec(const mx_spec *s) { return ref_elem_format(s->elem)->kind == MX_KIND_NONE; }

static int is_raw(const mx_spec *s) { return s->elem == MX_ELEM_NONE && s->input_dtype == MX_INPUT_DTYPE_FLOAT32; }

static int is_plain(const mx_linear_recipe *r, int p) { return r->off[p] || (is_raw(&r->q[2 * p]) && is_raw(&r->q[2 * p + 1])); }

/* [M][N] = a b^T by ref_gemm; a and b are freed. */
static mx_status multiply(matrix *d, const mx_linear_recipe *r, int plain, operand *a, operand *b, const float *bias, mx_error *err) {
  *d = matrix_new(a->tensor.rows, b->tensor.rows);
  mx_gemm_options o = {.model = plain ? MX_GEMM_F32_SEQ : r->model, .fused = plain ? NULL : r->fused, .bias = bias};
  float alpha = 1;
  if (!plain) {
    const double pa = is_plain_spec(&a->spec) || a->spec.elem_prescale == 0 ? 1 : a->spec.elem_prescale;
    const double pb = is_plain_spec(&b->spec) || b->spec.elem_prescale == 0 ? 1 : b->spec.elem_prescale;
    alpha = (float)(1 / (pa * pb));
  }
  o.alpha = &alpha;
  const mx_status status = d->at ? ref_gemm(d->at, d->cols, &a->tensor, &a->spec, &b->tensor, &b->spec, &o, err) : MX_ERR_NOMEM;
  ref_tensor_free(&a->tensor);
  ref_tensor_free(&b->tensor);
  return status;
}

/* The values as an operand without a format. */
static mx_status as_they_are(operand *o, matrix x) {
  o->spec = (mx_spec){.elem = MX_ELEM_NONE};
  mx_status status = x.at ? ref_tensor_alloc(&o->tensor, x.rows, x.cols, &o->spec) : MX_ERR_NOMEM;
  if (!status) status = ref_quantize(&o->tensor, x.at, x.rows, x.cols, x.cols, &o->spec, NULL, NULL);
  free(x.at);
  return status;
}

static void write_out(mx_linear_out d, matrix from, size_t cols) {
  for (size_t r = 0; r < from.rows; r++)
    for (size_t c = 0; c < cols; c++) {
      const float v = from.at[r * from.cols + c];
      if (d.dtype == MX_BF16)
        ((uint16_t *)d.data)[r * d.ld + c] = (uint16_t)ref_encode(ref_scale_format(MX_SCALE_BF16), (double)v, &(mx_encoding){0}, 0);
      else {
        float *to = (float *)d.data + r * d.ld + c;
        *to = d.accumulate ? num_to_float(num_add_r(num_float(*to), num_float(v), NUM_F32)) : v;
      }
    }
}

/* What the forward pass made of x or w: its dequantised values, rotated as it rotated them, elem.prescale divided out. */
static mx_status forward_made(matrix *out, mx_spec *how, operand *codes, const mx_linear *l, int q, matrix source, mx_error *err) {
  mx_linear quiet = *l;
  quiet.operand = NULL;
  mx_status status = quantise(codes, &quiet, q, source, err);
  if (status) return status;
  *how = codes->spec;
  *out = matrix_new(codes->tensor.rows, codes->tensor.cols);
  status = out->at ? ref_dequantize(out->at, out->cols, &codes->tensor, how, NULL) : MX_ERR_NOMEM;
  for (size_t i = 0; i < out->rows * out->cols && !status; i++)
    if (!is_plain_spec(how) && how->elem_prescale != 0) out->at[i] = (float)((double)out->at[i] / (double)how->elem_prescale);
  return status;
}

/* x with its outliers clamped, in place, and what that took away. *residual is the caller's to free; NULL without occ.alpha. */
static mx_status without_outliers(matrix *x, double **residual, const mx_linear *l) {
  *residual = NULL;
  if (l->recipe->occ_alpha == 0 || !x->at || !x->rows || !x->cols) return MX_OK;
  const matrix source = *x;
  *x = matrix_new(source.rows, source.cols);
  *residual = calloc(source.rows * source.cols, sizeof **residual);
  const mx_status status = x->at && *residual ? ref_outliers(x->at, *residual, source.at, source.rows, source.cols, l->recipe) : MX_ERR_NOMEM;
  for (size_t i = 0; i < source.rows * source.cols && l->counts && !status; i++) l->counts->clamped += (*residual)[i] != 0;
  free(source.at);
  return status;
}

mx_status ref_linear_forward(const mx_linear *l, mx_linear_out y, mx_linear_in x, mx_linear_in w, const float *bias, mx_error *err) {
  const mx_linear_recipe *r = l->recipe;
  const int plain = is_plain(r, MX_FPROP);
  const int compensated = !plain && r->occ_alpha != 0 && r->occ_residual == MX_OCC_RESIDUAL_ON;
  operand a = {0}, b = {0};
  matrix xm = read_in(x, l->T, l->I), wm = read_in(w, l->O, l->I), d = {0}, again = {0};
  double *residual = NULL;
  mx_status status = MX_OK;
  if (plain && !is_plain(r, MX_WGRAD)) { /* Q6 is made of x without its outliers, which are counted here too */
    matrix clamped = read_in(x, l->T, l->I);
    status = without_outliers(&clamped, &residual, l);
    free(clamped.at);
  } else if (!plain)
    status = without_outliers(&xm, &residual, l);
  if (!status) status = plain ? as_they_are(&a, xm) : quantise(&a, l, MX_Q1, xm, err);
  if (!status) status = plain ? as_they_are(&b, wm) : quantise(&b, l, MX_Q2, wm, err);
  if (!status) status = multiply(&d, r, plain, &a, &b, bias, err);
  if (!status && compensated) {
    operand codes = {0};
    mx_spec how;
    again = read_in(w, l->O, l->I);
    if (r->occ_weight == MX_OCC_WEIGHT_Q) status = forward_made(&again, &how, &codes, l, MX_Q2, again, err);
    if (!status) ref_compensate(d.at, residual, again.at, again.cols, l->T, l->I, l->O);
    ref_tensor_free(&codes.tensor);
  }
  if (!status) write_out(y, d, l->O);
  free(d.at);
  free(again.at);
  free(residual);
  return status;
}

/* The same codes in their new places: a tensor whose element (r, c) is from's (c, r). */
static mx_status turned(operand *o, const operand *from) {
  o->spec = from->spec;
  mx_status status = ref_tensor_alloc(&o->tensor, from->tensor.cols, from->tensor.rows, &o->spec);
  if (status) return status;
  const mx_tensor *f = &from->tensor;
  mx_tensor *t = &o->tensor;
  size_t rows, block;
  ref_block_extent(&o->spec, t->rows, t->cols, &rows, &block);
  uint8_t *plain = calloc(t->cols_padded + block + 1, 1);
  for (size_t r = 0; r < t->rows && plain; r++) {
    memset(plain, 0, t->cols_padded);
    for (size_t c = 0; c < t->cols; c++) plain[c] = (uint8_t)ref_code_at(f, &o->spec, c, r);
    if (ref_elem_format(o->spec.elem)->bits == 4)
      ref_pack4(t->codes + r * t->code_stride, plain, t->cols_padded, o->spec.nibble, block);
    else
      memcpy(t->codes + r * t->code_stride, plain, t->cols_padded);
    for (size_t k = 0; k < t->scale_cols; k++)
      memcpy(t->scales + (r * t->scale_cols + k) * t->scale_bytes, f->scales + (k * block * f->scale_cols + r / block) * f->scale_bytes,
             t->scale_bytes);
  }
  t->tensor_scale = f->tensor_scale;
  t->has_tensor_scale = f->has_tensor_scale;
  status = plain ? MX_OK : MX_ERR_NOMEM;
  free(plain);
  return status;
}

static int is_square(const mx_spec *s) {
  const int rows = s->block_rows ? s->block_rows : 1, cols = s->block_cols ? s->block_cols : 32;
  return rows == cols && rows != MX_BLOCK_WHOLE && !s->had_size && !is_plain_spec(s) && s->scale_rule != MX_SCALE_RULE_HIF4;
}

/* Each row back through the rotation of the forward pass. */
static mx_status undo_rotation(matrix d, const mx_spec *s) {
  return ref_hadamard_back(d.at, d.cols, d.at, d.rows, d.cols, d.cols, s->had_size, s->had_sign, s->had_signs, s->seed);
}

/* Zeros behind the rows' ends, then the rotation. x is freed. */
static mx_status rotated_matrix(matrix *out, matrix x, size_t cols, const mx_spec *s) {
  *out = matrix_new(x.rows, cols);
  for (size_t r = 0; r < x.rows && out->at && x.at; r++) memcpy(out->at + r * cols, x.at + r * x.cols, x.cols * sizeof *x.at);
  const int have = out->at && x.at;
  free(x.at);
  if (!have) return MX_ERR_NOMEM;
  return s->had_size ? ref_hadamard(out->at, cols, out->at, x.rows, cols, cols, s->had_size, s->had_sign, s->had_signs, s->seed) : MX_OK;
}

/* d, the gradient of what operand q of Fprop became, to that of `of`, which q was made of. Both stay rotated as q is; d may not be yet. */
static mx_status apply_rules(matrix *d, mx_spec *rotation, const mx_linear *l, int q, matrix of, mx_error *err) {
  mx_linear quiet = *l;
  operand made = {0};
  matrix x = matrix_new(of.rows, of.cols), values = {0};
  if (!x.at) return MX_ERR_NOMEM;
  memcpy(x.at, of.at, of.rows * of.cols * sizeof *of.at);
  quiet.operand = NULL;
  mx_status status = quantise(&made, &quiet, q, x, err);
  if (!status) status = rotated_matrix(&values, of, made.tensor.cols, &made.spec);
  if (!status && !rotation->had_size) {
    status = rotated_matrix(d, *d, made.tensor.cols, &made.spec);
    *rotation = made.spec;
  }
  if (!status) status = ref_gradient(d->at, values.at, &made.tensor, &made.spec, l->recipe);
  free(values.at);
  ref_tensor_free(&made.tensor);
  return status;
}

/* One product of the backward pass. p MX_DGRAD: dy against w, of x; MX_WGRAD: dy^T against x, of w. */
static mx_status gradient(mx_linear_out out, const mx_linear *l, int p, matrix dy, matrix other, matrix of, mx_error *err) {
  const mx_linear_recipe *r = l->recipe;
  const int qa = 2 * p, qb = qa + 1, forward = p == MX_DGRAD ? MX_Q2 : MX_Q1;
  operand a = {0}, b = {0}, codes = {0};
  matrix d = {0};
  mx_spec rotation = {0};
  const matrix left = p == MX_WGRAD ? transposed(dy) : dy;
  if (p == MX_WGRAD) free(dy.at);
  mx_status status = MX_OK;
  /* Quantised, and by gradient rules, x is seen without its outliers. */
  double *unused = NULL;
  mx_linear quiet = *l;
  quiet.counts = NULL;
  if (p == MX_DGRAD || !is_plain(r, p)) status = without_outliers(p == MX_WGRAD ? &other : &of, &unused, &quiet);
  free(unused);
  if (status) return status;
  if (is_plain(r, p)) {
    const matrix right = transposed(other);
    free(other.at);
    status = as_they_are(&a, left);
    if (!status) status = as_they_are(&b, right);
  } else {
    status = quantise(&a, l, qa, left, err);
    if (status) return status;
    if (r->requant == MX_REQUANT_HP || is_plain(r, MX_FPROP)) {
      const matrix right = transposed(other);
      free(other.at);
      status = quantise(&b, l, qb, right, err);
    } else {
      matrix made;
      status = forward_made(&made, &rotation, &codes, l, forward, other, err);
      if (!status && r->requant == MX_REQUANT_REUSE && is_square(&r->q[forward])) {
        status = turned(&b, &codes);
        if (!status && l->operand) l->operand(l->self, qb, &b.tensor, &b.spec);
      } else if (!status)
        status = quantise(&b, l, qb, transposed(made), err);
      free(made.at);
      ref_tensor_free(&codes.tensor);
    }
  }
  if (!status) status = multiply(&d, r, is_plain(r, p), &a, &b, NULL, err);
  const int q = p == MX_DGRAD ? MX_Q1 : MX_Q2;
  if (!status && !is_plain(r, MX_FPROP) && ref_gradient_acts(r, q))
    status = apply_rules(&d, &rotation, l, q, of, err);
  else
    free(of.at);
  if (!status && rotation.had_size) status = undo_rotation(d, &rotation);
  if (!status) write_out(out, d, l->I);
  free(d.at);
  return status;
}

mx_status ref_linear_backward(const mx_linear *l, mx_linear_out dx, mx_linear_out dw, float *db, mx_linear_in dy, mx_linear_in x,
                              mx_linear_in w, mx_error *err) {
  mx_status status = MX_OK;
  if (dx.data) status = gradient(dx, l, MX_DGRAD, read_in(dy, l->T, l->O), read_in(w, l->O, l->I), read_in(x, l->T, l->I), err);
  if (dw.data && !status) status = gradient(dw, l, MX_WGRAD, read_in(dy, l->T, l->O), read_in(x, l->T, l->I), read_in(w, l->O, l->I), err);
  if (!db || status) return status;
  const matrix m = read_in(dy, l->T, l->O);
  for (size_t o = 0; o < l->O; o++) {
    double sum = 0; /* binary64 additions with t ascending are the definition */
    for (size_t t = 0; t < l->T; t++) sum += (double)m.at[t * l->O + o];
    const num total = num_float((float)sum);
    db[o] = dw.accumulate ? num_to_float(num_add_r(num_float(db[o]), total, NUM_F32)) : (float)sum;
  }
  free(m.at);
  return MX_OK;
}
