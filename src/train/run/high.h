/* Declares which linears of a quantised run stay in high precision. */
#ifndef TRAIN_HIGH_H
#define TRAIN_HIGH_H

#include "train/run/config.h"

/** How products in high precision are computed on operands rounded to bfloat16: summed in the order of the FP32 chain. */
mx_status mxi_high_bf16(mx_linear_recipe *out, mx_error *err);
/** Keeps the linears of quant.high, and of the first and last blocks that the recipe names, in high precision. `recipe` is memory for how they are
 *  computed under high.dtype=bf16; it must live as long as the model. MX_ERR_KEY: quant.high names no linear; MX_ERR_CONFLICT: no block is left. */
mx_status mxi_high_keep(mx_linear_recipe *recipe, mxi_model *m, const mxi_config *c, mx_error *err);

#endif
