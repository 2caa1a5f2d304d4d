/* Computes the products of a linear a second time beside a step. */
#include "train/run/again.h"

size_t mxi_again_most(const mxi_model *m) {
  size_t most = 0;
  for (size_t i = 0; i < m->n_linears; i++) {
    const mxi_model_linear *l = &m->linears[i];
    const size_t of[] = {l->T * l->O, l->T * l->I, l->O * l->I};
    for (int k = 0; k < 3; k++) most = of[k] > most ? of[k] : most;
  }
  return most;
}

mx_status mxi_again_open(mxi_again *a, mxi_model *m, mx_error *err) {
  size_t most_saved = 0, most_work = 0;
  for (size_t i = 0; i < 2 * m->n_linears; i++) {
    const mx_linear call = mxi_model_call(m, i / 2, i % 2 ? m->linears[i / 2].recipe : mxi_model_plain());
    size_t saved, work;
    const mx_status status = mx_linear_sizes(&saved, &work, &call, &m->exec, err);
    if (status) return status;
    most_saved = saved > most_saved ? saved : most_saved;
    most_work = work > most_work ? work : most_work;
  }
  *a = (mxi_again){m, mxi_model_take(m, most_saved, 1), mxi_model_take(m, most_work, 1)};
  return m->no_memory ? mx_fail(err, MX_ERR_NOMEM, "no memory for measurements") : MX_OK;
}

mx_status mxi_again_run(const mxi_again *a, const mxi_products *out, size_t index, const float *dy, const float *x, int exact, uint64_t step,
                        void (*operand)(void *self, int q, const mx_tensor *tensor, const mx_spec *spec), void *self, mx_error *err) {
  const mxi_model *m = a->model;
  const mxi_model_linear *l = &m->linears[index];
  mx_linear call = mxi_model_call(m, index, exact ? mxi_model_plain() : l->recipe);
  call.step = step;
  call.operand = exact ? NULL : operand;
  call.self = self;
  const mx_linear_in in = {x, l->I, MX_F32}, w = {m->w + m->params[l->weight].offset, l->I, MX_F32}, d = {dy, l->O, MX_F32};
  const mx_linear_out y = {out->y, l->O, MX_F32, 0}, dx = {out->dx, l->I, MX_F32, 0}, dw = {out->dw, l->I, MX_F32, 0};
  mx_error why;
  mx_status status = mx_linear_forward(&call, y, in, w, NULL, a->saved, a->work, &m->exec, &why);
  if (!status) status = mx_linear_backward(&call, dx, dw, NULL, d, in, w, a->saved, a->work, &m->exec, &why);
  return status ? mx_fail(err, status, "%s: %s", l->name, why.text) : MX_OK;
}
