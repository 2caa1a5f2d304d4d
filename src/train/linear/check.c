/* Can a layer follow a recipe? */
#include <string.h>

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
    return mx_fail(err, MX_ERR_CONFLICT, "%s: had.size=%u of Q%d and %u of Q%d do not cancel in the product", mxi_linear_products[p],
                   a->had_size, qa, b->had_size, qa + 1);
  if (a->had_size &&
      (a->had_sign != b->had_sign || (a->had_sign == MX_HAD_SIGN_FIXED && memcmp(a->had_signs, b->had_signs, sizeof a->had_signs))))
    return mx_fail(err, MX_ERR_CONFLICT, "%s: the signs (had.sign) of Q%d and Q%d differ and do not cancel in the product",
                   mxi_linear_products[p], qa, qa + 1);
  if (a->elem == MX_ELEM_NONE || b->elem == MX_ELEM_NONE) return MX_OK;
  size_t block_rows, block_a, block_b;
  mx_spec_block(a, 1 << 20, 1 << 20, &block_rows, &block_a);
  mx_spec_block(b, 1 << 20, 1 << 20, &block_rows, &block_b);
  if (block_a != block_b)
    return mx_fail(err, MX_ERR_CONFLICT, "%s: Q%d has blocks of %zu along the reduction axis and Q%d of %zu, expected the same",
                   mxi_linear_products[p], qa, block_a, qa + 1, block_b);
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
  return status ? status : mxi_gradient_check(recipe, err);
}
