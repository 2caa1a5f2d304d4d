/* Makes a recipe from its text: presets and rows of formats/recipes.def, keys, products, the accumulation model. */
#include <stdio.h>
#include <string.h>

#include "mxgold/ablate.h"
#include "mxgold/gemm.h"
#include "mxgold/mma.h"
#include "mxgold/nearest.h"
#include "train/linear/internal.h"

static const char *recipe_name(const void *set, size_t index) {
  (void)set;
  const mx_recipe *r = mx_recipe_at(index);
  return r ? r->name : NULL;
}

static mx_status base_of(mx_spec *base, const mx_recipe **recipe, const mx_linear_text *text, mx_error *err) {
  *recipe = NULL;
  if (text->preset && text->recipe)
    return mx_fail(err, MX_ERR_CONFLICT, "preset %s and recipe %s: expected one of them", text->preset, text->recipe);
  if (text->preset) return mx_preset_find(base, text->preset, err);
  const char *name = text->recipe ? text->recipe : "recipe-ocp";
  const int index = mx_recipe_find(name);
  if (index < 0) {
    char near[160];
    mx_nearest(near, sizeof near, name, recipe_name, NULL);
    return mx_fail(err, MX_ERR_KEY, "unknown recipe '%s'; nearest: %s", name, near);
  }
  *recipe = mx_recipe_at((size_t)index);
  return mx_recipe_base(base, *recipe, err);
}

/* "preset=NAME,...": begins anew from a preset; the rest of the keys is left in *keys. */
static mx_status restart(mx_spec *spec, const char **keys, mx_error *err) {
  char name[80];
  const char *from = *keys + strlen("preset=");
  const size_t n = strcspn(from, ", ");
  snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), from);
  *keys = from + n + (from[n] != 0);
  return mx_preset_find(spec, name, err);
}

static mx_status operand(mx_linear_recipe *r, const char *text, mx_error *err) {
  if (text[0] != 'Q' || text[1] < '1' || text[1] > '6' || text[2] != ':')
    return mx_fail(err, MX_ERR_KEY, "'%.80s': expected Q1 to Q6, a colon and KEY=VALUE", text);
  mx_spec *spec = &r->q[text[1] - '1'];
  const char *keys = text + 3;
  mx_error why;
  mx_status status = !strncmp(keys, "preset=", 7) ? restart(spec, &keys, &why) : MX_OK;
  if (!status) status = mx_spec_parse(spec, keys, &why);
  return status ? mx_fail(err, status, "Q%c: %s", text[1], why.text) : MX_OK;
}

/* sr.policy: operands that are rounded to elements at all are rounded stochastically or, outside the policy, not. */
static void follow_policy(mx_linear_recipe *r) {
  enum { Q1 = 1 << MX_Q1, Q2 = 1 << MX_Q2, Q3 = 1 << MX_Q3, Q4 = 1 << MX_Q4, Q5 = 1 << MX_Q5, Q6 = 1 << MX_Q6 };
  /* In the order of the key's choices; "given" has none. */
  static const int policies[] = {0, 0, Q1 | Q2 | Q3 | Q4 | Q5 | Q6, Q1 | Q2, Q1 | Q3 | Q5 | Q6, Q3 | Q4 | Q5 | Q6, Q3 | Q5 | Q6, Q3 | Q5, Q5};
  for (int q = 0; q < MX_OPERANDS && r->sr_policy; q++) {
    mx_spec *s = &r->q[q];
    if (mx_spec_is_plain(s)) continue;
    if (policies[r->sr_policy] >> q & 1)
      s->elem_round = MX_ROUND_SR;
    else if (s->elem_round == MX_ROUND_SR)
      s->elem_round = MX_ROUND_RNE;
  }
}

static mx_status products(mx_linear_recipe *r, const char *gemms, mx_error *err) {
  if (!gemms) return MX_OK;
  for (int p = 0; p < MX_PRODUCTS; p++) r->off[p] = 1;
  for (const char *at = gemms + strspn(gemms, ", "); *at; at += strspn(at, ", ")) {
    const size_t n = strcspn(at, ", ");
    int p = 0;
    while (p < MX_PRODUCTS && (strlen(mx_linear_product_name(p)) != n || strncmp(mx_linear_product_name(p), at, n))) p++;
    if (p == MX_PRODUCTS) return mx_fail(err, MX_ERR_KEY, "'%.*s' is not a product, expected fprop, dgrad, wgrad", (int)n, at);
    r->off[p] = 0;
    at += n;
  }
  return MX_OK;
}

static mx_status accumulation(mx_linear_recipe *r, mx_mma_model *unit, const char *name, mx_error *err) {
  r->model = name ? mx_gemm_model_find(name) : MX_GEMM_F32_BLOCK;
  if (r->model >= 0 && r->model != MX_GEMM_FUSED) return MX_OK;
  if (!unit) return mx_fail(err, MX_ERR_ARG, "a matrix unit, and no memory for it");
  r->model = MX_GEMM_FUSED;
  r->fused = unit;
  return mx_mma_model_find(unit, name, err);
}

/* Does the model take the operands of each product? A product of no rows is refused as a whole one would be, before anything is computed. */
static mx_status check_sums(const mx_linear_recipe *r, mx_error *err) {
  for (int p = 0; p < MX_PRODUCTS; p++) {
    const mx_tensor none = {.cols = 1 << 20, .tensor_scale = 1, .has_tensor_scale = 1};
    const mx_gemm_options how = {.model = r->model, .fused = r->fused, .exec.n_threads = 1};
    mx_error why;
    if (mxi_linear_is_plain(r, p)) continue;
    const mx_status status = mx_gemm(NULL, 0, &none, &r->q[2 * p], &none, &r->q[2 * p + 1], &how, &why);
    if (status) return mx_fail(err, status, "%s: %s", mx_linear_product_name(p), why.text);
  }
  return MX_OK;
}

mx_status mx_linear_resolve(mx_linear_recipe *out, mx_mma_model *unit, const mx_linear_text *text, mx_error *err) {
  if (!out || !text) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  mx_linear_recipe r = {0};
  const mx_recipe *recipe;
  mx_spec base;
  mx_status status = base_of(&base, &recipe, text, err);
  for (size_t i = 0; i < text->n_set && !status; i++) status = mx_spec_parse(&base, text->set[i], err);
  for (int q = 0; q < MX_OPERANDS && !status; q++) r.q[q] = base;
  if (!status && recipe) status = mx_recipe_operands(r.q, recipe, err);
  if (!status && recipe) status = mx_linear_parse(&r, recipe->train, err);
  for (size_t i = 0; i < text->n_train && !status; i++) status = mx_linear_parse(&r, text->train[i], err);
  if (!status) follow_policy(&r);
  for (size_t i = 0; i < text->n_operands && !status; i++) status = operand(&r, text->operands[i], err);
  if (!status) status = products(&r, text->gemms, err);
  if (!status) status = accumulation(&r, unit, text->accum, err);
  if (!status) status = mx_linear_check(&r, err);
  if (!status) status = check_sums(&r, err);
  if (!status) *out = r;
  return status;
}
