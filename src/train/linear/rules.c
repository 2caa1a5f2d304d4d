/* Finds which gradient rules a recipe asks for, what they read, and which exclude each other. */
#include "train/linear/rules.h"

static int acts_on(const mx_linear_recipe *r, int q) {
  if (mx_spec_is_plain(&r->q[q])) return 0;
  return r->grad_operands == MX_GRAD_OF_BOTH || r->grad_operands == (q == MX_Q1 ? MX_GRAD_OF_X : MX_GRAD_OF_W);
}

int mxi_gradient_looks_at(const mx_linear_recipe *r, int q) {
  if (!acts_on(r, q)) return MXI_LOOKS_AT_NOTHING;
  if (mxi_gradient_of_scales(r)) return MXI_LOOKS_AT_CODES;
  return r->grad_qprime != MX_QPRIME_STE || r->grad_trust_mask ? MXI_LOOKS_AT_SCALES : MXI_LOOKS_AT_NOTHING;
}

int mxi_gradient_of_scales(const mx_linear_recipe *r) { return r->grad_config != MX_GRAD_STE || r->grad_tensor != MX_GRAD_TENSOR_IGNORE; }

/* Rules that depend on how an operand is quantised. */
static mx_status check_operand(const mx_linear_recipe *r, int q, mx_error *err) {
  const mx_spec *s = &r->q[q];
  if (s->scale_rule == MX_SCALE_RULE_HIF4)
    return mx_fail(err, MX_ERR_CONFLICT, "Q%d: gradient rules (grad.*) do not know scale.rule=hif4", q + 1);
  if (r->grad_config != MX_GRAD_STE && s->scale_rule == MX_SCALE_RULE_QUEST)
    return mx_fail(err, MX_ERR_CONFLICT, "Q%d: grad.config is of scales that come from magnitudes, not of scale.rule=quest", q + 1);
  if (r->grad_config != MX_GRAD_STE && s->select != MX_SELECT_ABSMAX)
    return mx_fail(err, MX_ERR_CONFLICT, "Q%d: grad.config is of one scale a block, not of select=%s", q + 1,
                   s->select == MX_SELECT_EDEN ? "eden" : "foursix");
  if (r->grad_config == MX_GRAD_SOFTMAX && (s->input_dtype != MX_INPUT_DTYPE_FLOAT32 || s->flush))
    return mx_fail(err, MX_ERR_CONFLICT, "Q%d: grad.config=softmax makes scales of binary32 values, without input.dtype and flush", q + 1);
  if (r->grad_config == MX_GRAD_SOFTMAX && s->sr_source == MX_SR_SOURCE_AMD_LFSR)
    return mx_fail(err, MX_ERR_CONFLICT, "Q%d: grad.config=softmax excludes sr.source=amd_lfsr", q + 1);
  if (r->grad_tensor != MX_GRAD_TENSOR_IGNORE && s->tensor_norm == MX_TENSOR_NORM_NONE)
    return mx_fail(err, MX_ERR_CONFLICT, "Q%d: grad.tensor is the derivative of a tensor scale, and tensor.norm=none", q + 1);
  if (r->grad_tensor != MX_GRAD_TENSOR_IGNORE && s->tensor_given)
    return mx_fail(err, MX_ERR_CONFLICT, "Q%d: grad.tensor is the derivative of max|X|, and tensor.given sets the tensor scale", q + 1);
  return MX_OK;
}

mx_status mxi_gradient_check(const mx_linear_recipe *r, mx_error *err) {
  mx_status status = mxi_gradient_check_numbers(r, err);
  if (status) return status;
  if (r->grad_scale_qprime != MX_QPRIME_STE && r->grad_config == MX_GRAD_STE)
    return mx_fail(err, MX_ERR_CONFLICT, "grad.scale_qprime is a part of the scale's derivative, which grad.config=ste leaves out");
  for (int q = MX_Q1; q <= MX_Q2 && !status && !mxi_linear_is_plain(r, MX_FPROP); q++)
    if (mxi_gradient_looks_at(r, q)) status = check_operand(r, q, err);
  return status;
}
