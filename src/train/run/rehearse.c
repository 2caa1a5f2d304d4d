/* Measures Q-Ramping's periods in steps that are undone afterwards. */
#include "train/run/rehearse.h"

#include <stdlib.h>
#include <string.h>

#include "mxgold/ablate.h"

/* The value of a training key that is a number, its default filled in. */
static double key_value(const mx_linear_recipe *r, const char *name) {
  char text[64] = "0";
  for (size_t i = 0; mx_train_key_at(i); i++)
    if (!strcmp(mx_train_key_at(i)->name, name)) mx_train_key_text(text, sizeof text, r, i);
  return strtod(text, NULL);
}

/* Weights whose Fprop is quantised. */
static int choose(mxi_ramp *r, const mxi_model *m) {
  int any = 0;
  for (size_t i = 0; i < m->n_linears && r->of; i++)
    if (!m->linears[i].high) any = r->of[m->linears[i].weight] = 1;
  return any;
}

mx_status mxi_rehearsal_open(mxi_rehearsal *t, mxi_model *m, mxi_optim *o, const mxi_config *c, mx_error *err) {
  *t = (mxi_rehearsal){.model = m, .optim = o};
  if (!c->quantised || c->recipe.ramp == MX_RAMP_OFF) return MX_OK;
  mxi_ramp *r = &o->ramp;
  r->config = (mxi_ramp_config){key_value(&c->recipe, "ramp.k1"), key_value(&c->recipe, "ramp.k2"), key_value(&c->recipe, "ramp.every"),
                                (size_t)key_value(&c->recipe, "ramp.steps")};
  r->of = mxi_model_take(m, m->n_params, 1);
  float **const arrays[] = {&r->sum, &r->count, &r->period, &t->kept[0], &t->kept[1], &t->kept[2],
                            &t->w,   &t->q,     &t->now,    &t->moved,   &t->jumped};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) *arrays[i] = mxi_model_floats(m, m->n_values);
  if (o->ema.w) t->kept[3] = mxi_model_floats(m, m->n_values);
  if (m->holds) t->holds = mxi_model_take(m, m->n_linears, sizeof *t->holds);
  if (m->no_memory) return mx_fail(err, MX_ERR_NOMEM, "no memory for Q-Ramping");
  for (size_t i = 0; i < m->n_values; i++) r->period[i] = 1;
  if (!choose(r, m)) r->of = NULL;
  return MX_OK;
}

int mxi_rehearsal_due(const mxi_rehearsal *t, uint64_t step) {
  const mxi_ramp *r = &t->optim->ramp;
  return r->of && t->model->late != MXI_LATE_ALL && step % (uint64_t)r->config.every == 0;
}

/* The quantised values of all weights that have periods. */
static mx_status quantised(float *out, const mxi_rehearsal *t, mx_error *err) {
  const mxi_model *m = t->model;
  for (size_t i = 0; i < m->n_linears; i++) {
    const mxi_param *p = &m->params[m->linears[i].weight];
    if (!t->optim->ramp.of[m->linears[i].weight]) continue;
    mx_error why;
    const mx_status status =
        mx_fake_quantize(out + p->offset, m->w + p->offset, p->rows, p->cols, &m->linears[i].recipe->q[MX_Q2], &m->exec, NULL, &why);
    if (status) return mx_fail(err, status, "%s: Q2: %s", p->name, why.text);
  }
  return MX_OK;
}

static void keep(mxi_rehearsal *t, int back) {
  mxi_model *m = t->model;
  float *const own[] = {m->w, t->optim->m, t->optim->v, t->optim->ema.w};
  for (int i = 0; i < 4; i++)
    if (t->kept[i]) memcpy(back ? own[i] : t->kept[i], back ? t->kept[i] : own[i], m->n_values * sizeof(float));
  if (t->holds) memcpy(back ? m->holds : t->holds, back ? t->holds : m->holds, m->n_linears * sizeof *m->holds);
  if (back)
    *t->optim = t->before;
  else
    t->before = *t->optim;
}

/* Adds what one step moved; the first step has nothing to compare with. */
static mx_status look(mxi_rehearsal *t, int first, mx_error *err) {
  mxi_model *m = t->model;
  const mx_status status = quantised(t->now, t, err);
  if (status) return status;
  if (!first) mxi_ramp_moves(t->moved, t->jumped, t->w, m->w, t->q, t->now, m->n_values, &m->exec);
  memcpy(t->w, m->w, m->n_values * sizeof *t->w);
  memcpy(t->q, t->now, m->n_values * sizeof *t->q);
  return MX_OK;
}

mx_status mxi_rehearsal_run(mxi_rehearsal *t, uint64_t step, mx_status (*run)(void *self, uint64_t step, int *finite, mx_error *err),
                            void *self, mx_error *err) {
  mxi_model *m = t->model;
  mxi_ramp *r = &t->optim->ramp;
  mx_status status = MX_OK;
  int finite = 1;
  memset(t->moved, 0, m->n_values * sizeof *t->moved);
  memset(t->jumped, 0, m->n_values * sizeof *t->jumped);
  keep(t, 0);
  r->rehearses = 1;
  for (size_t i = 0; i <= r->config.steps && !status && finite; i++) {
    status = run(self, step + i, &finite, err);
    if (!status && finite) status = look(t, i == 0, err);
  }
  keep(t, 1);
  for (size_t p = 0; p < m->n_params; p++)
    for (size_t i = m->params[p].offset; r->of[p] && i < m->params[p].offset + m->params[p].rows * m->params[p].cols; i++)
      r->period[i] = mxi_ramp_period(t->moved[i], t->jumped[i], &r->config);
  return status;
}
