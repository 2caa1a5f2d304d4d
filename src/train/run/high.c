/* Keeps linears in high precision: by name, and those of the first and last blocks. */
#include "train/run/high.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

mx_status mxi_high_bf16(mx_linear_recipe *out, mx_error *err) {
  const mx_linear_text text = {.recipe = "recipe-bf16", .accum = "f32_seq"};
  return mx_linear_resolve(out, NULL, &text, err);
}

static int matches(const char *pattern, const char *name) {
  const size_t n = strlen(pattern);
  return n && pattern[n - 1] == '*' ? !strncmp(pattern, name, n - 1) : !strcmp(pattern, name);
}

static mx_status by_name(unsigned char *wanted, const mxi_model *m, const mxi_config *c, mx_error *err) {
  for (size_t i = 0; i < c->n_high; i++) {
    int found = 0;
    for (size_t k = 0; k < m->n_linears; k++)
      if (matches(c->high[i], m->linears[k].name)) wanted[k] = 1, found = 1;
    if (!found) return mx_fail(err, MX_ERR_KEY, "quant.high: no linear is named '%s'; the first is %s", c->high[i], m->linears[0].name);
  }
  return MX_OK;
}

/* A number of blocks, or a share of all, to nearest and at least one. */
static double blocks_of(double key, size_t all) {
  const double share = floor(key * (double)all + .5);
  return key >= 1 || key == 0 ? key : share < 1 ? 1 : share;
}

static mx_status by_block(unsigned char *wanted, const mxi_model *m, const mxi_config *c, mx_error *err) {
  const double first = blocks_of(c->recipe.high_first, m->n_blocks), last = blocks_of(c->recipe.high_last, m->n_blocks);
  if (first + last > 0 && first + last >= (double)m->n_blocks)
    return mx_fail(err, MX_ERR_CONFLICT,
                   "quant: high.first and high.last keep %g and %g of %zu blocks in high precision, which leaves none to quantise", first, last,
                   m->n_blocks);
  for (size_t k = 0; k < m->n_linears; k++) {
    const double at = (double)m->linears[k].block;
    if (at < first || at >= (double)m->n_blocks - last) wanted[k] = 1;
  }
  return MX_OK;
}

mx_status mxi_high_keep(mx_linear_recipe *recipe, mxi_model *m, const mxi_config *c, mx_error *err) {
  const int is_narrow = c->recipe.high_dtype == MX_HIGH_BF16;
  unsigned char *wanted = calloc(m->n_linears + 1, 1);
  mx_status status = wanted ? MX_OK : mx_fail(err, MX_ERR_NOMEM, "out of memory");
  if (!status) status = by_name(wanted, m, c, err);
  if (!status) status = by_block(wanted, m, c, err);
  if (!status && is_narrow) status = mxi_high_bf16(recipe, err);
  if (!status) status = mxi_model_keep_high(m, wanted, is_narrow ? recipe : mxi_model_plain(), err);
  free(wanted);
  return status;
}
