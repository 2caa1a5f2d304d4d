/* Makes a model: its kind fills in parameters, linears and passes; then memory is allocated. */
#include <stdlib.h>

#include "train/models/model.h"

/* Raises the memory that is needed to what a linear takes under this recipe. */
static mx_status place(mxi_model *m, size_t index, const mx_linear_recipe *recipe, mx_error *err) {
  mxi_model_linear *l = &m->linears[index];
  const mx_linear call = mxi_model_call(m, index, recipe);
  size_t saved, work;
  mx_error why;
  const mx_status status = mx_linear_sizes(&saved, &work, &call, &m->exec, &why);
  if (status) return mx_fail(err, status, "%s: %s", l->name, why.text);
  mxi_model_work(m, work);
  if (saved > l->saved_bytes || !l->saved) l->saved = mxi_model_take(m, saved, 1), l->saved_bytes = saved;
  return MX_OK;
}

/* Adds the memory that each linear takes under its own recipe and under none. */
static mx_status place_linears(mxi_model *m, mx_error *err) {
  mx_status status = MX_OK;
  for (size_t i = 0; i < m->n_linears && !status; i++) {
    status = place(m, i, mxi_model_plain(), err);
    if (!status) status = place(m, i, m->linears[i].recipe, err);
  }
  return status;
}

mx_status mxi_model_late(mxi_model *m, const mx_linear_recipe *recipe, mx_error *err) {
  const size_t had = m->work_bytes;
  mx_status status = MX_OK;
  size_t most = 0;
  m->late_recipe = recipe;
  for (size_t i = 0; i < m->n_linears && !status; i++) {
    const size_t dy = m->linears[i].T * m->linears[i].O;
    most = dy > most ? dy : most;
    status = place(m, i, recipe, err);
  }
  if (recipe != mxi_model_plain()) m->late_dy = mxi_model_floats(m, most);
  if (!status && m->work_bytes > had) m->work = mxi_model_take(m, m->work_bytes, 1);
  return !status && m->no_memory ? mx_fail(err, MX_ERR_NOMEM, "no memory for qaf") : status;
}

mx_status mxi_model_new(mxi_model **out, const mxi_model_config *config, size_t B, const mx_linear_recipe *recipe, const mx_exec *exec,
                        mx_error *err) {
  static mx_status (*const kinds[])(mxi_model *) = {mxi_llama_new, mxi_gpt2_new, mxi_byte_mlp_new, mxi_mlp_new, mxi_mlp_new, mxi_mlp_new};
  mxi_model *m = calloc(1, sizeof *m);
  *out = NULL;
  if (!m) return mx_fail(err, MX_ERR_NOMEM, "no memory for a model");
  m->config = *config;
  m->B = B;
  m->loss_scale = 1;
  m->late_recipe = mxi_model_plain();
  m->exec = exec ? *exec : (mx_exec){0};
  m->exec.workspace = mx_workspace_new();
  m->most = mxi_memory_of_machine();
  mx_status status = kinds[config->kind](m);
  for (size_t i = 0; i < m->n_linears; i++) m->linears[i].recipe = recipe ? recipe : mxi_model_plain();
  if (!status && (m->no_memory || !m->exec.workspace)) status = MX_ERR_NOMEM;
  if (!status) status = place_linears(m, err);
  if (!status) {
    m->w = mxi_model_floats(m, m->n_values);
    m->g = mxi_model_floats(m, m->n_values);
    m->work = mxi_model_take(m, m->work_bytes, 1);
    if (m->no_memory) status = mx_fail(err, MX_ERR_NOMEM, "no memory for the model and its activations");
  } else if (status == MX_ERR_NOMEM)
    mx_fail(err, status, "no memory for the model and its activations");
  if (status)
    mxi_model_free(m);
  else
    *out = m;
  return status;
}

mx_status mxi_model_keep_high(mxi_model *m, const unsigned char *wanted, const mx_linear_recipe *recipe, mx_error *err) {
  const size_t had = m->work_bytes;
  mx_status status = MX_OK;
  for (size_t i = 0; i < m->n_linears && !status; i++) {
    if (!wanted[i]) continue;
    m->linears[i].recipe = recipe;
    m->linears[i].high = 1;
    status = place(m, i, recipe, err);
  }
  if (!status && m->work_bytes > had) m->work = mxi_model_take(m, m->work_bytes, 1);
  return !status && m->no_memory ? mx_fail(err, MX_ERR_NOMEM, "no memory for linears in high precision") : status;
}

int mxi_model_keep_quantised(mxi_model *m) {
  for (size_t i = 0; i < m->n_linears; i++) {
    mxi_model_linear *l = &m->linears[i];
    const size_t x = l->recipe->q[MX_Q1].had_size, w = l->recipe->q[MX_Q2].had_size, most = x > w ? x : w ? w : 1;
    l->kept_raw = l->recipe->off[MX_FPROP] || (mx_spec_is_plain(&l->recipe->q[MX_Q1]) && mx_spec_is_plain(&l->recipe->q[MX_Q2]));
    if (l->high || (l->kept_raw && !m->late_dy)) continue;
    l->kept_ld = (l->I + most - 1) / most * most; /* a rotation fills up its last tile */
    l->kept_x = mxi_model_floats(m, l->T * l->kept_ld);
    l->kept_w = mxi_model_floats(m, l->O * l->kept_ld);
  }
  return m->no_memory;
}
