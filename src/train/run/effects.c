/* Finds the training keys that change nothing. */
#include "train/run/effects.h"

#include <stdlib.h>
#include <string.h>

/* Makes the recipe with the key set back to its default. */
static mx_status without(mx_linear_recipe *out, const mx_linear_recipe *recipe, size_t key) {
  const mx_linear_recipe plain = {0};
  char value[64];
  mx_error err;
  mx_train_key_text(value, sizeof value, &plain, key);
  *out = *recipe;
  const mx_status status = mx_linear_set(out, mx_train_key_at(key)->name, value, &err);
  return status ? status : mx_linear_check(out, &err);
}

static int is_raw(const mx_spec *s) { return s->elem == MX_ELEM_NONE && s->input_dtype == MX_INPUT_DTYPE_FLOAT32; }

static int is_quantised(const mx_linear_recipe *r, int p) { return !r->off[p] && !(is_raw(&r->q[2 * p]) && is_raw(&r->q[2 * p + 1])); }

int mxi_effects_acts(const mxi_model *m) {
  for (size_t i = 0; i < m->n_linears; i++)
    for (int p = 0; p < MX_PRODUCTS; p++)
      if (is_quantised(m->linears[i].recipe, p)) return 1;
  return 0;
}

/* Of a key that acts in later steps alone: has it nothing to act on in any step? */
static int never_acts(const mx_linear_recipe *r, const char *name) {
  if (!strcmp(name, "q2.ema")) return !is_quantised(r, MX_FPROP);
  if (strcmp(name, "tensor.hold") != 0) return 0;
  for (int q = 0; q < MX_OPERANDS; q++)
    if (is_quantised(r, q / 2) && r->q[q].tensor_norm != MX_TENSOR_NORM_NONE && !r->q[q].tensor_given) return 0;
  return 1;
}

static int any_high(const mxi_model *m) {
  int any = 0;
  for (size_t i = 0; i < m->n_linears; i++) any |= m->linears[i].high;
  return any;
}

void mxi_effects_begin(mxi_effects *e, const mxi_model *m, const mxi_config *c) {
  const mx_linear_recipe plain = {0};
  size_t most = c->n_variants;
  while (mx_train_key_at(most - c->n_variants)) most++;
  *e = (mxi_effects){.m = m, .recipe = &c->recipe, .keys = calloc(most + 1, sizeof *e->keys)};
  for (size_t i = 0; e->keys && mx_train_key_at(i); i++) {
    const char *name = mx_train_key_at(i)->name;
    mxi_effect *k = &e->keys[e->n];
    char is[64], fallback[64];
    mx_train_key_text(is, sizeof is, &c->recipe, i);
    mx_train_key_text(fallback, sizeof fallback, &plain, i);
    /* Leaves out keys that take effect only later, and keys whose default this recipe could not have. */
    const int of_ramp = !strncmp(name, "ramp", 4), ramps = c->recipe.ramp == MX_RAMP_ON;
    const int never = never_acts(&c->recipe, name),
              later = !never && (!strcmp(name, "q2.ema") || !strcmp(name, "tensor.hold") || (of_ramp && ramps));
    /* Of blocks in high precision a linear that is quantised knows nothing; and what sr.policy did is in the recipe's specs (config.c has a recipe
     * without it). */
    const int elsewhere = !strcmp(name, "sr.policy") || !strcmp(name, "high.first") || !strcmp(name, "high.last");
    const int of_high = !strcmp(name, "high.dtype");
    if (!strcmp(is, fallback) || later || elsewhere || (of_high && any_high(m)) || without(&k->without, &c->recipe, i)) continue;
    snprintf(k->name, sizeof k->name, "%s", name);
    k->silent = 1;
    k->sure = of_ramp || of_high || never; /* no linear reads it */
    e->n++;
  }
  for (size_t i = 0; e->keys && i < c->n_variants; i++) {
    mxi_effect *k = &e->keys[e->n++];
    *k = (mxi_effect){.without = c->variants[i].recipe, .silent = 1, .sure = c->variants[i].same};
    snprintf(k->name, sizeof k->name, "%s", c->variants[i].name);
  }
}

void mxi_effects_end(mxi_effects *e) {
  free(e->keys);
  *e = (mxi_effects){0};
}

/* y, dx and dw of a call, one behind the other. */
static mx_status outputs(float *out, const mx_linear *l, const float *x, const float *w, const float *dy, const mx_exec *exec) {
  size_t saved, work;
  mx_error err;
  mx_status status = mx_linear_sizes(&saved, &work, l, exec, &err);
  if (status) return status;
  char *room = malloc(saved + work + 1);
  if (!room) return MX_ERR_NOMEM;
  const mx_linear_in in = {x, l->I, MX_F32}, weight = {w, l->I, MX_F32}, d = {dy, l->O, MX_F32};
  float *dx = out + l->T * l->O, *dw = dx + l->T * l->I;
  status = mx_linear_forward(l, (mx_linear_out){out, l->O, MX_F32, 0}, in, weight, NULL, room, room + saved, exec, &err);
  if (!status)
    status = mx_linear_backward(l, (mx_linear_out){dx, l->I, MX_F32, 0}, (mx_linear_out){dw, l->I, MX_F32, 0}, NULL, d, in, weight, room,
                                room + saved, exec, &err);
  free(room);
  return status;
}

void mxi_effects_linear(mxi_effects *e, size_t index, const float *dy, const float *x) {
  const mxi_model *m = e->m;
  const mxi_model_linear *linear = &m->linears[index];
  if (linear->recipe != e->recipe) return;
  mx_linear call = mxi_model_call(m, index, linear->recipe);
  call.step++; /* what is drawn once for the run is drawn as for step 0 */
  const size_t n = call.T * call.O + call.T * call.I + call.O * call.I;
  float *own = malloc((n + 1) * sizeof *own), *other = malloc((n + 1) * sizeof *other);
  const float *w = m->w + m->params[linear->weight].offset;
  int made = 0;
  for (size_t i = 0; i < e->n && own && other; i++) {
    if (!e->keys[i].silent || e->keys[i].sure) continue;
    if (!made && outputs(own, &call, x, w, dy, &m->exec)) break;
    made = 1;
    mx_linear again = call;
    again.recipe = &e->keys[i].without;
    if (!outputs(other, &again, x, w, dy, &m->exec) && memcmp(own, other, n * sizeof *own)) e->keys[i].silent = 0;
  }
  free(own);
  free(other);
}

size_t mxi_effects_names(char *out, size_t size, const mxi_effects *e) {
  size_t n = 0, at = 0;
  *out = 0;
  for (size_t i = 0; i < e->n; i++)
    if (e->keys[i].silent && at < size) at += (size_t)snprintf(out + at, size - at, "%s%s", n++ ? " " : "", e->keys[i].name);
  return n;
}
