/* Multiplies two quantised operands, or raw matrices, into the caller's matrix. */
#include <string.h>

#include "mxgold/isa.h"
#include "train/linear/rules.h"

static double prescale_of(const mx_spec *s) { return mx_spec_is_plain(s) || s->elem_prescale == 0 ? 1 : (double)s->elem_prescale; }

static mx_status raw(mxi_layer *y, int p, mxi_matrix a, mxi_matrix b, float *d, size_t ldd, const float *bias, mx_error *err) {
  const mx_linear *l = y->l;
  mx_dense g = {.a = a.at, .b = b.at, .d = d, .ldd = ldd, .bias = bias, .sgemm = l->sgemm};
  if (p == MX_FPROP)
    g.M = l->T, g.N = l->O, g.K = l->I, g.a_row = a.ld, g.a_col = 1, g.b_row = b.ld, g.b_col = 1;
  else if (p == MX_DGRAD)
    g.M = l->T, g.N = l->I, g.K = l->O, g.a_row = a.ld, g.a_col = 1, g.b_row = 1, g.b_col = b.ld;
  else
    g.M = l->O, g.N = l->I, g.K = l->T, g.a_row = 1, g.a_col = a.ld, g.b_row = 1, g.b_col = b.ld;
  void *room = mxi_arena_take(&y->work, mx_dense_workspace(&g, &y->exec) + 1, 1);
  return y->work.base ? mx_dense_gemm(&g, room, &y->exec, err) : MX_OK;
}

static mx_status scaled(mxi_layer *y, int p, float *d, size_t ldd, const float *bias, mx_error *err) {
  const mx_spec *a = &y->q[2 * p], *b = a + 1;
  const float alpha = (float)(1 / (prescale_of(a) * prescale_of(b)));
  const mx_gemm_options how = {.model = y->r->model, .fused = y->r->fused, .alpha = &alpha, .bias = bias, .exec = y->exec};
  if (!y->work.base) { /* a product of no rows is refused as the whole one would be */
    const mx_tensor none[2] = {{.cols = y->t[2 * p].cols, .tensor_scale = 1, .has_tensor_scale = 1},
                               {.cols = y->t[2 * p + 1].cols, .tensor_scale = 1, .has_tensor_scale = 1}};
    return mx_gemm(NULL, 0, &none[0], a, &none[1], b, &how, err);
  }
  return mx_gemm(d, ldd, &y->t[2 * p], a, &y->t[2 * p + 1], b, &how, err);
}

/* Writes a computed [rows][cols] to the caller's matrix. */
static void deliver(mx_linear_out d, const float *from, size_t rows, size_t cols, size_t ld, int n_threads) {
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(n_threads)) if (rows * cols > 1 << 14)
  for (size_t r = 0; r < rows; r++) {
    const float *x = from + r * ld;
    if (d.dtype == MX_BF16) {
      mx_narrow((uint16_t *)d.data + r * d.ld, x, cols, MX_BF16, 1);
      continue;
    }
    float *to = (float *)d.data + r * d.ld;
    if (d.accumulate)
      for (size_t c = 0; c < cols; c++) to[c] += x[c];
    else
      memcpy(to, x, cols * sizeof *to);
  }
}

/* Did the forward pass rotate the operand whose gradient this product gives, without rotating it back? Then the gradient is rotated too. */
static unsigned rotated(const mxi_layer *y, int p) {
  if (p == MX_FPROP || y->plain[p] || mxi_linear_from_hp(y->r, p == MX_DGRAD ? MX_Q4 : MX_Q6)) return 0;
  return y->q[MX_Q1].had_size;
}

/* Rotates the gradient of a rotated operand back along I. */
static mx_status rotate_back(mxi_layer *y, float *x, size_t rows, size_t cols) {
  const mx_spec *s = &y->q[MX_Q1];
  return mx_hadamard_back(x, cols, x, rows, cols, cols, s->had_size, s->had_sign, s->had_signs, s->seed);
}

/* The operand whose gradient a product gives, if gradient rules change it; otherwise -1. */
static int ruled(const mxi_layer *y, int p) {
  const int q = p == MX_DGRAD ? MX_Q1 : MX_Q2;
  return p != MX_FPROP && !y->plain[MX_FPROP] && mxi_gradient_looks_at(y->r, q) ? q : -1;
}

/* Rotates as the forward pass does, for rules that act on a gradient that no product has rotated. */
static mx_status rotate(const mxi_layer *y, float *x, size_t rows, size_t cols, size_t wide) {
  const mx_spec *s = &y->q[MX_Q1];
  for (size_t r = 0; r < rows; r++) memset(x + r * wide + cols, 0, (wide - cols) * sizeof *x);
  return mx_hadamard(x, wide, x, rows, wide, wide, s->had_size, s->had_sign, s->had_signs, s->seed);
}

mx_status mxi_linear_product(mxi_layer *y, int p, mxi_matrix a, mxi_matrix b, mx_linear_out d, const float *bias, mx_error *err) {
  const mx_linear *l = y->l;
  const size_t rows = p == MX_WGRAD ? l->O : l->T, cols = p == MX_FPROP ? l->O : l->I;
  const int q = ruled(y, p);
  const unsigned kept = rotated(y, p), turn = q < 0 ? kept : y->q[q].had_size;
  const size_t wide = turn ? (cols + turn - 1) / turn * turn : cols;
  const int direct = d.dtype == MX_F32 && !d.accumulate && !turn;
  float *at = direct ? d.data : mxi_arena_take(&y->work, rows * wide, sizeof *at);
  const size_t ld = direct ? d.ld : wide;
  mx_error why;
  mx_status status = y->plain[p] ? raw(y, p, a, b, at, ld, bias, &why) : scaled(y, p, at, ld, bias, &why);
  if (!status && p == MX_FPROP) status = mxi_linear_compensate(y, at, ld, b, &why);
  if (status) return mx_fail(err, status, "%s: %s", mx_linear_product_name(p), why.text);
  if (q >= 0) {
    if (y->work.base && turn && !kept) status = rotate(y, at, rows, cols, wide);
    if (!status) status = mxi_gradient_apply(y, q, at, ld, y->seen[q]);
  }
  if (!status && y->work.base && turn) status = rotate_back(y, at, rows, wide);
  if (status) return mx_fail(err, status, "%s: %s", mx_linear_product_name(p), mx_status_text(status));
  if (y->work.base && !direct) deliver(d, at, rows, cols, wide, y->exec.n_threads);
  return MX_OK;
}
