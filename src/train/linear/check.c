/* Checks whether a layer can follow a recipe. */
#include <math.h>
#include <string.h>

#include "mxgold/ablate.h"
#include "train/linear/rules.h"

static mx_status check_product(const mx_linear_recipe *r, int p, mx_error *err) {
  const mx_spec *a = &r->q[2 * p], *b = a + 1;
  if (mxi_linear_is_plain(r, p)) return MX_OK;
  const int qa = 2 * p + 1;
  for (int i = 0; i < 2; i++) {
    mx_error why;
    if (mx_spec_check(a + i, &why)) return mx_fail(err, MX_ERR_CONFLICT, "Q%d: %s", qa + i, why.text);
    if (a[i].elem_round == MX_ROUND_SR && a[i].sr_source == MX_SR_SOURCE_GIVEN)
      return mx_fail(err, MX_ERR_CONFLICT, "Q%d: sr.source=given, but a layer draws its own random words", qa + i);
  }
  if (a->had_size != b->had_size)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: had.size=%u of Q%d and %u of Q%d do not cancel in the product", mx_linear_product_name(p),
                   a->had_size, qa, b->had_size, qa + 1);
  if (a->had_size &&
      (a->had_sign != b->had_sign || (a->had_sign == MX_HAD_SIGN_FIXED && memcmp(a->had_signs, b->had_signs, sizeof a->had_signs))))
    return mx_fail(err, MX_ERR_CONFLICT, "%s: the signs (had.sign) of Q%d and Q%d differ and do not cancel in the product",
                   mx_linear_product_name(p), qa, qa + 1);
  if (mx_spec_is_plain(a) || mx_spec_is_plain(b)) return MX_OK;
  size_t block_rows, block_a, block_b;
  mx_spec_block(a, 1 << 20, 1 << 20, &block_rows, &block_a);
  mx_spec_block(b, 1 << 20, 1 << 20, &block_rows, &block_b);
  if (block_a != block_b)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: Q%d has blocks of %zu along the reduction axis and Q%d of %zu, expected the same",
                   mx_linear_product_name(p), qa, block_a, qa + 1, block_b);
  return MX_OK;
}

/* The trainer does Q-Ramping; what the recipe must have for it is checked here, where the recipe is. */
static mx_status check_ramp(const mx_linear_recipe *r, mx_error *err) {
  enum { EXACT = 1 << 23 }; /* twice as many steps can pass between updates, and binary32 counts them */
  const double every = mxi_linear_real(r->ramp_every, 1000), steps = mxi_linear_real(r->ramp_steps, 30);
  const double k1 = mxi_linear_real(r->ramp_k1, 16), k2 = mxi_linear_real(r->ramp_k2, 5);
  const mx_spec *s = &r->q[MX_Q2];
  if (r->ramp == MX_RAMP_OFF) return MX_OK;
  if (!(every == floor(every) && every >= 1 && every <= EXACT))
    return mx_fail(err, MX_ERR_CONFLICT, "ramp.every=%g: expected a whole number of steps, from 1 to %d", every + 0.0, EXACT);
  if (!(steps == floor(steps) && steps >= 1 && steps <= EXACT))
    return mx_fail(err, MX_ERR_CONFLICT, "ramp.steps=%g: expected a whole number of steps, from 1 to %d", steps + 0.0, EXACT);
  if (!(k1 > 0 && k1 <= EXACT)) return mx_fail(err, MX_ERR_CONFLICT, "ramp.k1=%g: expected a number above 0, at most %d", k1 + 0.0, EXACT);
  if (!(k2 == floor(k2) && k2 <= EXACT))
    return mx_fail(err, MX_ERR_CONFLICT, "ramp.k2=%g: expected a whole number of steps, at most %d", k2 + 0.0, EXACT);
  if (mxi_linear_is_plain(r, MX_FPROP) || mx_spec_is_plain(s))
    return mx_fail(err, MX_ERR_CONFLICT, "ramp measures what Q2 makes of a weight, and Q2 is not quantised");
  if (s->had_size) return mx_fail(err, MX_ERR_CONFLICT, "ramp measures single weights, and had.size=%u of Q2 mixes them", s->had_size);
  if (mx_spec_is_random(s)) return mx_fail(err, MX_ERR_CONFLICT, "ramp measures what a weight's own steps change, and Q2 rounds at random");
  return MX_OK;
}

/* The trainer keeps the blocks; here it is checked that there can be so many. */
static mx_status check_high(const mx_linear_recipe *r, mx_error *err) {
  const double keys[] = {r->high_first, r->high_last};
  for (int i = 0; i < 2; i++)
    if (keys[i] >= 1 && keys[i] != floor(keys[i]))
      return mx_fail(err, MX_ERR_CONFLICT, "%s=%g: expected a whole number of blocks, or a share of them below 1",
                     i ? "high.last" : "high.first", keys[i]);
  return MX_OK;
}

mx_status mx_linear_check(const mx_linear_recipe *recipe, mx_error *err) {
  if (!recipe) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (!mx_gemm_model_name(recipe->model)) return mx_fail(err, MX_ERR_ARG, "model %d, expected MX_GEMM_*", recipe->model);
  if (recipe->model == MX_GEMM_FUSED && !recipe->fused) return mx_fail(err, MX_ERR_ARG, "MX_GEMM_FUSED without a matrix unit");
  for (int p = 0; p < MX_PRODUCTS; p++) {
    const mx_status status = check_product(recipe, p, err);
    if (status) return status;
  }
  mx_status status = mxi_outliers_check(recipe, err);
  if (!status) status = mxi_ema_check(recipe, err);
  if (!status) status = mxi_hold_check(recipe, err);
  if (!status) status = check_ramp(recipe, err);
  if (!status) status = check_high(recipe, err);
  return status ? status : mxi_gradient_check(recipe, err);
}
