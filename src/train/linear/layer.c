/* Runs the forward and the backward call of the quantised linear layer, and decides what each of them makes and what is kept between them. */
#include <string.h>

#include "mxgold/isa.h"
#include "train/linear/rules.h"

static int needs(const mxi_layer *y, int q) { return !y->plain[q / 2]; }

/* Does the backward call read Q1 and Q2 again? */
static int keeps_forward(const mxi_layer *y) {
  return needs(y, MX_Q1) && ((needs(y, MX_Q4) && !mxi_linear_from_hp(y->r, MX_Q4)) || (needs(y, MX_Q6) && !mxi_linear_from_hp(y->r, MX_Q6)));
}

/* Does the forward call make the operand for the backward one? One pass over the matrix then makes both of its operands. */
static int made_ahead(const mxi_layer *y, int q) { return (q == MX_Q4 || q == MX_Q6) && needs(y, q) && mxi_linear_from_hp(y->r, q); }

/* How much of Q1 or Q2 is kept for the backward call: MXI_LOOKS_AT_*. */
static int looked_at(const mxi_layer *y, int q) {
  if ((q != MX_Q1 && q != MX_Q2) || !needs(y, q)) return MXI_LOOKS_AT_NOTHING;
  return keeps_forward(y) ? MXI_LOOKS_AT_CODES : mxi_gradient_looks_at(y->r, q);
}

static mx_status place_in(mxi_layer *y, int q, mxi_arena *codes, mxi_arena *scales) {
  size_t rows, cols;
  mxi_linear_extent(&rows, &cols, y->l, q);
  if (mxi_linear_reuses_codes(y->r, q)) y->q[q] = y->q[q == MX_Q4 ? MX_Q2 : MX_Q1]; /* codes that are turned keep their spec */
  return mxi_arena_tensor(codes, scales, &y->t[q], rows, cols, &y->q[q]);
}

static mx_status place(mxi_layer *y, int q, mxi_arena *where) { return place_in(y, q, where, where); }

/* saved begins with the tensors' extents and scales; codes and scales follow, in the order of the operands. */
static mx_tensor *saved_tensors(mxi_layer *y) { return mxi_arena_take(&y->saved, MX_OPERANDS, sizeof(mx_tensor)); }

/* Codes that the forward call makes and the backward one does not read go to `passing`; NULL if there are none. */
static mx_status place_saved(mxi_layer *y, mxi_arena *passing) {
  mx_status status = MX_OK;
  for (int q = MX_Q1; q <= MX_Q6 && !status; q++) {
    const int looks_at = made_ahead(y, q) ? MXI_LOOKS_AT_CODES : looked_at(y, q);
    if (looks_at) status = place_in(y, q, looks_at == MXI_LOOKS_AT_CODES ? &y->saved : passing, &y->saved);
  }
  return status;
}

static mx_status begin(mxi_layer *y, const mx_linear *l, const mx_exec *exec, void *saved, void *work, mx_error *err) {
  if (!l || !l->recipe) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (l->step >> 36 || l->layer >> 20) return mx_fail(err, MX_ERR_ARG, "step or layer is too large for the draws");
  const mx_status status = mx_linear_check(l->recipe, err);
  if (status) return status;
  *y = (mxi_layer){.l = l, .r = l->recipe, .work.base = work, .saved.base = saved};
  if (exec) y->exec = (mx_exec){.n_threads = exec->n_threads, .isa_mask = exec->isa_mask, .workspace = exec->workspace};
  for (int p = 0; p < MX_PRODUCTS; p++) y->plain[p] = mxi_linear_is_plain(l->recipe, p);
  mxi_linear_draw(y);
  mxi_hold_use(y);
  return MX_OK;
}

static mx_status forward(mxi_layer *y, int keep, mx_linear_out out, mx_linear_in x, mx_linear_in w, const float *bias, mx_error *err) {
  const mx_linear *l = y->l;
  mx_status status = MX_OK;
  mx_tensor *kept = keep ? saved_tensors(y) : NULL;
  if (keep) status = place_saved(y, &y->work);
  for (int q = MX_Q1; q <= MX_Q2 && !status; q++)
    if (needs(y, q) && !(keep && looked_at(y, q))) status = place(y, q, &y->work);
  if (status) return mx_fail(err, status, "%s", mx_status_text(status));
  const mxi_matrix xv = mxi_linear_values(y, x, l->T, l->I), wv = mxi_linear_values(y, w, l->O, l->I);
  const int q6 = keep && made_ahead(y, MX_Q6) ? MX_Q6 : -1, q4 = keep && made_ahead(y, MX_Q4) ? MX_Q4 : -1;
  if (needs(y, MX_Q1) || q6 >= 0) status = mxi_linear_make(y, mxi_linear_clamp(y, xv), needs(y, MX_Q1) ? MX_Q1 : -1, q6, err);
  if (!status && (needs(y, MX_Q2) || q4 >= 0)) status = mxi_linear_make(y, wv, needs(y, MX_Q2) ? MX_Q2 : -1, q4, err);
  if (l->counts && y->outliers.starts) l->counts->clamped += y->outliers.starts[l->T];
  if (!status) status = mxi_linear_product(y, MX_FPROP, xv, wv, out, bias, err);
  if (!status && kept) memcpy(kept, y->t, sizeof y->t);
  return status;
}

/* db[o]: in binary64 with t ascending, rounded once. */
static void sum_rows(float *db, mxi_matrix dy, int accumulate, int n_threads) {
  enum { COLUMNS = 64 }; /* side by side, so that dy is read as it lies */
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(n_threads)) if (dy.rows * dy.cols > 1 << 14)
  for (size_t o = 0; o < dy.cols; o += COLUMNS) {
    const size_t n = dy.cols - o < COLUMNS ? dy.cols - o : COLUMNS;
    double sum[COLUMNS] = {0};
    for (size_t t = 0; t < dy.rows; t++) {
      const float *row = dy.at + t * dy.ld + o;
#pragma omp simd
      for (size_t i = 0; i < n; i++) sum[i] += (double)row[i];
    }
    for (size_t i = 0; i < n; i++) db[o + i] = accumulate ? db[o + i] + (float)sum[i] : (float)sum[i];
  }
}

/* Do gradient rules change the gradient of what Q1 or Q2 was made of? */
static int looks(const mxi_layer *y, int q) { return needs(y, q) && mxi_gradient_looks_at(y->r, q); }

static mx_status backward(mxi_layer *y, mx_linear_out dx, mx_linear_out dw, float *db, mx_linear_in dy, mx_linear_in x, mx_linear_in w,
                          mx_error *err) {
  const mx_linear *l = y->l;
  const mx_tensor *kept = saved_tensors(y);
  mx_status status = place_saved(y, NULL);
  if (status) return mx_fail(err, status, "%s", mx_status_text(status));
  for (int q = 0; q < MX_OPERANDS && kept; q++)
    if (y->t[q].codes || y->t[q].scales) y->t[q].tensor_scale = kept[q].tensor_scale, y->t[q].has_tensor_scale = kept[q].has_tensor_scale;
  const int want_dx = !y->work.base || dx.data, want_dw = !y->work.base || dw.data;
  const int q3 = want_dx && needs(y, MX_Q3) ? MX_Q3 : -1, q5 = want_dw && needs(y, MX_Q5) ? MX_Q5 : -1;
  if (q3 >= 0) status = place(y, MX_Q3, &y->work);
  if (q5 >= 0 && !status) status = place(y, MX_Q5, &y->work);
  for (int q = MX_Q4; q <= MX_Q6 && !status; q += 2)
    if (needs(y, q) && !made_ahead(y, q)) status = place(y, q, &y->work);
  if (status) return mx_fail(err, status, "%s", mx_status_text(status));
  const mxi_matrix dyv = mxi_linear_values(y, dy, l->T, l->O);
  const int sees_x = want_dx && looks(y, MX_Q1), sees_w = want_dw && looks(y, MX_Q2);
  const mxi_matrix xv = y->plain[MX_WGRAD] || sees_x ? mxi_linear_values(y, x, l->T, l->I) : (mxi_matrix){0};
  const mxi_matrix wv = y->plain[MX_DGRAD] || sees_w ? mxi_linear_values(y, w, l->O, l->I) : (mxi_matrix){0};
  y->seen[0] = sees_x ? mxi_linear_clamp(y, xv) : xv;
  y->seen[1] = wv;
  if (q3 >= 0 || q5 >= 0) status = mxi_linear_make(y, dyv, q3, q5, err);
  if (!status && q3 >= 0 && !made_ahead(y, MX_Q4)) status = mxi_linear_remake(y, MX_Q4, err);
  if (!status && q5 >= 0 && !made_ahead(y, MX_Q6)) status = mxi_linear_remake(y, MX_Q6, err);
  if (!status && want_dx) status = mxi_linear_product(y, MX_DGRAD, dyv, wv, dx, NULL, err);
  if (!status && want_dw) status = mxi_linear_product(y, MX_WGRAD, dyv, xv, dw, NULL, err);
  if (!status && db && y->work.base) sum_rows(db, dyv, dw.accumulate, y->exec.n_threads);
  return status;
}

static int is_float(mx_dtype dtype) { return dtype == MX_F32 || dtype == MX_BF16; }

static mx_status check_in(const char *name, mx_linear_in m, size_t rows, size_t cols, mx_error *err) {
  if (!m.data && rows && cols) return mx_fail(err, MX_ERR_ARG, "%s is NULL", name);
  if (!is_float(m.dtype)) return mx_fail(err, MX_ERR_ARG, "%s is %s, expected f32 or bf16", name, mx_dtype_name(m.dtype));
  if (m.ld < cols) return mx_fail(err, MX_ERR_SHAPE, "%s has a row stride of %zu, expected at least %zu", name, m.ld, cols);
  return MX_OK;
}

static mx_status check_out(const char *name, mx_linear_out m, size_t cols, mx_error *err) {
  if (!m.data) return MX_OK;
  if (!is_float(m.dtype) || (m.accumulate && m.dtype != MX_F32))
    return mx_fail(err, MX_ERR_ARG, "%s is %s%s, expected f32 or bf16, and f32 to accumulate", name, mx_dtype_name(m.dtype),
                   m.accumulate ? ", accumulated" : "");
  if (m.ld < cols) return mx_fail(err, MX_ERR_SHAPE, "%s has a row stride of %zu, expected at least %zu", name, m.ld, cols);
  return MX_OK;
}

mx_status mx_linear_sizes(size_t *saved, size_t *work, const mx_linear *l, const mx_exec *exec, mx_error *err) {
  if (!saved || !work) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  /* The most memory that any dtypes and outputs may need. */
  const mx_linear_in in = {.dtype = MX_BF16};
  const mx_linear_out out = {.dtype = MX_BF16};
  mxi_layer y;
  mx_status status = begin(&y, l, exec, NULL, NULL, err);
  if (!status) status = forward(&y, 1, out, in, in, NULL, err);
  if (status) return status;
  const size_t of_saved = y.saved.used;
  size_t most = y.work.used;
  int overflow = y.work.overflow || y.saved.overflow;
  if ((status = begin(&y, l, exec, NULL, NULL, err)) || (status = forward(&y, 0, out, in, in, NULL, err))) return status;
  most = y.work.used > most ? y.work.used : most;
  if ((status = begin(&y, l, exec, NULL, NULL, err)) || (status = backward(&y, out, out, NULL, in, in, in, err))) return status;
  most = y.work.used > most ? y.work.used : most;
  overflow |= y.work.overflow;
  if (overflow) return mx_fail(err, MX_ERR_NOMEM, "a layer of %zu x %zu x %zu is too large", l->T, l->I, l->O);
  *saved = of_saved;
  *work = most;
  return MX_OK;
}

mx_status mx_linear_forward(const mx_linear *l, mx_linear_out y, mx_linear_in x, mx_linear_in w, const float *bias, void *saved, void *work,
                            const mx_exec *exec, mx_error *err) {
  mxi_layer layer;
  mx_status status = begin(&layer, l, exec, saved, work, err);
  if (!status && (!work || !y.data)) status = mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (!status) status = check_in("x", x, l->T, l->I, err);
  if (!status) status = check_in("W", w, l->O, l->I, err);
  if (!status) status = check_out("y", y, l->O, err);
  return status ? status : forward(&layer, saved != NULL, y, x, w, bias, err);
}

mx_status mx_linear_backward(const mx_linear *l, mx_linear_out dx, mx_linear_out dw, float *db, mx_linear_in dy, mx_linear_in x, mx_linear_in w,
                             void *saved, void *work, const mx_exec *exec, mx_error *err) {
  mxi_layer layer;
  mx_status status = begin(&layer, l, exec, saved, work, err);
  if (!status && (!work || !saved)) status = mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (!status) status = check_in("dy", dy, l->T, l->O, err);
  if (!status) status = check_in("x", x, l->T, l->I, err);
  if (!status) status = check_in("W", w, l->O, l->I, err);
  if (!status) status = check_out("dx", dx, l->I, err);
  if (!status) status = check_out("dw", dw, l->I, err);
  return status ? status : backward(&layer, dx, dw, db, dy, x, w, err);
}
