/* Makes the six quantised operands, from the matrices themselves or from what the forward pass made of them. */
#include <string.h>

#include "train/linear/rules.h"

static size_t up_to(size_t n, size_t multiple) { return multiple > 1 ? (n + multiple - 1) / multiple * multiple : n; }

int mxi_linear_from_hp(const mx_linear_recipe *r, int q) {
  if (q != MX_Q4 && q != MX_Q6) return 1;
  return r->requant == MX_REQUANT_HP || mxi_linear_is_plain(r, MX_FPROP);
}

static int source_of(int q) { return q == MX_Q4 ? MX_Q2 : MX_Q1; }

int mxi_linear_reuses_codes(const mx_linear_recipe *r, int q) {
  if (mxi_linear_from_hp(r, q) || r->requant != MX_REQUANT_REUSE) return 0;
  const mx_spec *s = &r->q[source_of(q)];
  size_t rows, cols;
  mx_spec_block(s, 1 << 20, 1 << 20, &rows, &cols);
  return s->block_rows != MX_BLOCK_WHOLE && rows == cols && !s->had_size && !mx_spec_is_plain(s) && s->scale_rule != MX_SCALE_RULE_HIF4;
}

void mxi_linear_extent(size_t *rows, size_t *cols, const mx_linear *l, int q) {
  const size_t T = l->T, I = l->I, O = l->O;
  const size_t extent[MX_OPERANDS][2] = {{T, I}, {O, I}, {T, O}, {I, O}, {O, T}, {I, T}};
  *rows = extent[q][0];
  *cols = up_to(extent[q][1], l->recipe->q[q].had_size);
  if (!mxi_linear_from_hp(l->recipe, q))
    *rows = up_to(I, l->recipe->q[source_of(q)].had_size); /* rotated along I by the forward pass, and still so */
}

/* The random words of an operand that rounds stochastically under random=counter. */
static void count_up(mxi_layer *y, int q) {
  mx_spec *s = &y->q[q];
  if (y->r->random != MX_RANDOM_COUNTER || s->elem_round != MX_ROUND_SR) return;
  size_t rows, cols;
  mxi_linear_extent(&rows, &cols, y->l, q);
  uint32_t *words = mxi_arena_take(&y->work, rows * cols, sizeof *words);
  const uint32_t mask = (s->sr_bits ? UINT32_C(1) << s->sr_bits : UINT32_C(1) << 16) - 1;
  s->sr_source = MX_SR_SOURCE_GIVEN;
  s->given_bits = words;
  for (size_t i = 0; words && i < rows * cols; i++) words[i] = (uint32_t)i & mask;
}

static mx_status say(mx_error *err, mx_status status, int q, const mx_error *why) {
  return status ? mx_fail(err, status, "Q%d: %s", q + 1, why->text) : MX_OK;
}

/* Reports an operand that was made. */
static void show(const mxi_layer *y, int q) {
  mxi_hold_keep(y, q);
  if (q >= 0 && y->l->operand) y->l->operand(y->l->self, q, &y->t[q], &y->q[q]);
}

/* `along` and `across` are operands, or -1 for none. */
mx_status mxi_linear_make(mxi_layer *y, mxi_matrix source, int along, int across, mx_error *err) {
  mx_error why;
  if (along >= 0) count_up(y, along);
  if (across >= 0) count_up(y, across);
  size_t rows, wide = source.cols, cols, tall = source.rows;
  if (along >= 0) mxi_linear_extent(&rows, &wide, y->l, along);
  if (across >= 0) mxi_linear_extent(&cols, &tall, y->l, across);
  const mxi_matrix a = along >= 0 ? mxi_linear_widened(y, source, source.rows, wide) : source;
  const mxi_matrix b = across >= 0 ? mxi_linear_widened(y, source, tall, source.cols) : source;
  const int soft = along >= 0 && mxi_soft_acts(y->r, along) ? along : -1;
  mx_status status = soft >= 0 ? say(err, mxi_soft_quantise(y, soft, a, &why), soft, &why) : MX_OK;
  if (!status && !y->work.base && along == MX_Q2) status = mxi_linear_follow(y, a, err);
  if (status || !y->work.base) return status;
  if (along >= 0 && across >= 0 && soft < 0 && wide == source.cols && tall == source.rows)
    status = say(err, mx_quantize_both(&y->t[along], &y->t[across], a.at, a.rows, a.cols, a.ld, &y->q[along], &y->q[across], &y->exec, &why),
                 along, &why);
  else {
    if (along >= 0 && soft < 0)
      status = say(err, mx_quantize(&y->t[along], a.at, a.rows, a.cols, a.ld, &y->q[along], &y->exec, &why), along, &why);
    if (across >= 0 && !status)
      status = say(err, mx_quantize_transposed(&y->t[across], b.at, b.rows, b.cols, b.ld, &y->q[across], &y->exec, &why), across, &why);
  }
  if (!status && along == MX_Q2) status = mxi_linear_follow(y, a, err);
  if (!status) show(y, along), show(y, across);
  return status;
}

/* The transpose of square blocks has the same codes and scales, each in its new place. */
static void turn_codes(mxi_layer *y, int q) {
  const mx_tensor *from = &y->t[source_of(q)];
  mx_tensor *to = &y->t[q];
  const mx_spec *s = &y->q[q];
  uint8_t *row = mxi_arena_take(&y->work, to->cols_padded, 1);
  if (!row) return;
  size_t rows, block;
  mx_spec_block(s, to->rows, to->cols, &rows, &block);
  memset(row, 0, to->cols_padded);
  for (size_t r = 0; r < to->rows; r++) {
    uint8_t *line = to->codes + r * to->code_stride;
    for (size_t c = 0; c < to->cols; c++) row[c] = (uint8_t)mx_code_at(from, s, c, r);
    if (mx_elem_format(s->elem)->bits == 4)
      mx_pack4(line, row, to->cols_padded, s->nibble, block);
    else
      memcpy(line, row, to->cols_padded);
    for (size_t k = 0; k < to->scale_cols; k++)
      memcpy(to->scales + (r * to->scale_cols + k) * to->scale_bytes,
             from->scales + (k * block * from->scale_cols + r / block) * from->scale_bytes, to->scale_bytes);
  }
  to->tensor_scale = from->tensor_scale;
  to->has_tensor_scale = from->has_tensor_scale;
}

mx_status mxi_linear_made(mxi_layer *y, int q, mxi_matrix *out, mx_error *err) {
  const mx_tensor *t = &y->t[q];
  float *values = mxi_arena_take(&y->work, t->rows * t->cols, sizeof *values);
  *out = (mxi_matrix){values, t->rows, t->cols, t->cols};
  if (!values) return MX_OK;
  const mx_status status = mx_dequantize(values, t->cols, t, &y->q[q], &y->exec);
  if (status) return mx_fail(err, status, "Q%d: %s", q + 1, mx_status_text(status));
  const float prescale = mx_spec_is_plain(&y->q[q]) ? 0 : y->q[q].elem_prescale;
  for (size_t i = 0; prescale != 0 && i < t->rows * t->cols; i++) values[i] = (float)((double)values[i] / (double)prescale);
  return MX_OK;
}

mx_status mxi_linear_remake(mxi_layer *y, int q, mx_error *err) {
  if (mxi_linear_reuses_codes(y->r, q)) {
    turn_codes(y, q);
    if (y->work.base) show(y, q);
    return MX_OK;
  }
  mxi_matrix source;
  const mx_status status = mxi_linear_made(y, source_of(q), &source, err);
  return status ? status : mxi_linear_make(y, source, -1, q, err);
}
