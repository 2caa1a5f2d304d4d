/* Makes the code of an element's quotient under faults of the rounding. There are three kinds of them: what is done to the quotient first, how it is rounded,
 * and what it becomes; one of each may act on an element. */
#include "verify/fault/elements.h"

#include <math.h>

#include "verify/fault/random.h"

typedef enum part { PART_BEFORE, PART_ROUND, PART_INTO, PARTS } part;

static part part_of(int op) {
  switch (op) {
  case MX_FAULT_ELEMENT_AS:
  case MX_FAULT_ELEMENT_WRAP:
  case MX_FAULT_ELEMENT_MODULO:
    return PART_INTO;
  case MX_FAULT_ELEMENT_BF16:
  case MX_FAULT_ELEMENT_BF16_CUT:
  case MX_FAULT_ELEMENT_F16:
  case MX_FAULT_ELEMENT_F16_CUT:
  case MX_FAULT_ELEMENT_FORMAT:
  case MX_FAULT_ELEMENT_TIMES:
  case MX_FAULT_ELEMENT_CLIP:
  case MX_FAULT_ELEMENT_STEPS:
  case MX_FAULT_ELEMENT_GUARD:
  case MX_FAULT_ELEMENT_FLUSH:
  case MX_FAULT_ELEMENT_FLUSH_ROUNDED:
  case MX_FAULT_ELEMENT_SUBNORMAL_TIMES:
  case MX_FAULT_ELEMENT_HIDDEN:
  case MX_FAULT_ELEMENT_SUBNORMAL_CUT:
  case MX_FAULT_ELEMENT_BINADE:
  case MX_FAULT_ELEMENT_SHIFT:
    return PART_BEFORE;
  default:
    return PART_ROUND;
  }
}

/* The first fault of a kind that the quotient meets. */
static const mx_fault *first_of(const fault_run *r, part kind, const mx_format *format, double y, size_t row, size_t col) {
  for (size_t i = 0; i < r->n_faults; i++) {
    const mx_fault *f = &r->faults[i];
    if (mxi_fault_stage(f) == MX_STAGE_ELEMENT && part_of(f->op) == kind && mxi_fault_element_in(r, f, row, col) &&
        (kind != PART_ROUND || mxi_fault_meets(format, f, y)))
      return f;
  }
  return NULL;
}

/* Toward zero to the 11 bits of binary16, 24 places behind the point at most; numbers beyond its largest stay at it. */
static double cut_to_f16(float y) {
  const double a = fabs((double)y), unit = a > 0 ? ldexp(1, (ilogb(a) > -14 ? ilogb(a) : -14) - 10) : 1;
  return isfinite(y) ? copysign(fmin(floor(a / unit) * unit, 65504), (double)y) : (double)y;
}

/* What is done to y before it is rounded. */
static double changed(const mx_format *format, const mx_fault *f, double y) {
  switch (f->op) {
  case MX_FAULT_ELEMENT_BF16:
    return (double)mxi_round_dtype((float)y, MX_INPUT_DTYPE_BFLOAT16);
  case MX_FAULT_ELEMENT_BF16_CUT:
    return (double)mxi_cut_to_bf16((float)y);
  case MX_FAULT_ELEMENT_F16:
    return (double)mxi_round_dtype((float)y, MX_INPUT_DTYPE_FLOAT16);
  case MX_FAULT_ELEMENT_F16_CUT:
    return cut_to_f16((float)y);
  case MX_FAULT_ELEMENT_FORMAT:
    return mxi_fault_to_format(f->format, y);
  case MX_FAULT_ELEMENT_TIMES:
    return (double)((float)y * (float)f->number);
  default:
    return mxi_fault_by_steps(format, f, y);
  }
}

/* The direction in which a fault rounds to a neighbour, or what it has been. */
static int direction(const mx_fault *f, int negative, int otherwise) {
  switch (f->op) {
  case MX_FAULT_ELEMENT_F16_THEN_CUT:
  case MX_FAULT_ELEMENT_TRUNCATE:
    return MX_ROUND_RTZ;
  case MX_FAULT_ELEMENT_AWAY:
    return negative ? MX_ROUND_RTN : MX_ROUND_RTP;
  case MX_FAULT_ELEMENT_TIES_AWAY:
    return MX_ROUND_RNA;
  case MX_FAULT_ELEMENT_TIES_ZERO:
    return MX_ROUND_RTZ_TIE;
  case MX_FAULT_ELEMENT_TIES_UP:
    return negative ? MX_ROUND_RTZ_TIE : MX_ROUND_RNA;
  case MX_FAULT_ELEMENT_TIES_DOWN:
    return negative ? MX_ROUND_RNA : MX_ROUND_RTZ_TIE;
  default:
    return otherwise;
  }
}

double mxi_beyond_largest(const mx_format *f) { return 1.5 * mx_format_max(f) - 0.5 * mx_decode(f, f->max_code - 1); }

/* Does y become a number beyond the largest, by a rounding that has been chosen or from the middle to the next number on? */
static int is_beyond(const mx_format *f, double y, const mx_fault *round, int to) {
  if (isnan(y)) return 0;
  return !round || fabs(y) >= MXI_NO_STEPS ? fabs(y) >= mxi_beyond_largest(f) : mxi_fault_count_by(f, y, to) > f->max_code;
}

int mxi_fault_rounded(uint32_t *code, const fault_run *r, const mx_plan *p, double y, size_t row, size_t col) {
  const mx_fault *into = first_of(r, PART_INTO, NULL, y, row, col), *before = first_of(r, PART_BEFORE, NULL, y, row, col);
  const int as_other = into && into->op == MX_FAULT_ELEMENT_AS;
  const mx_format *format = as_other ? mxi_fault_format(into->format) : p->elem;
  if (as_other && !format->sign_bits) y = fabs(y);
  if (before) y = changed(format, before, y);
  const mx_fault *round = first_of(r, PART_ROUND, format, y, row, col);
  if (!before && !round && !into) return 0;
  mx_encoding how = as_other ? (mx_encoding){0} : p->encode;
  if (how.round == MX_ROUND_SCAN_X || how.round == MX_ROUND_SCAN_Y) how.round = MX_ROUND_RNE;
  int to = MX_ROUND_RNE; /* where codes are counted on beyond the largest */
  if (round && round->op == MX_FAULT_ELEMENT_F16_THEN_CUT) {
    y = (double)mxi_round_dtype((float)y, MX_INPUT_DTYPE_FLOAT16);
    if (format->inf_code != MX_NO_CODE) how.overflow = MX_OVERFLOW_IEEE, how.inf = MX_ELEM_INF_OVERFLOW; /* its Inf has that upper byte */
  }
  if (round) to = direction(round, signbit(y) != 0, to), how.round = direction(round, signbit(y) != 0, how.round);
  if (round && mxi_fault_is_random(round->op) && isfinite(y)) {
    *code = mxi_random_code(r, format, round, y, row, col);
  } else if (!round || !mxi_fault_code_by_steps(code, format, round, y)) {
    if (round) y = mxi_fault_by_steps(format, round, y);
    if (into && into->op == MX_FAULT_ELEMENT_MODULO && !isnan(y) && fabs(y) < MXI_NO_STEPS)
      *code = mxi_fault_low_bits(format, y, to);
    else if (into && into->op == MX_FAULT_ELEMENT_WRAP && is_beyond(format, y, round, to))
      *code = signbit(y) ? mxi_fault_sign_bit(format) : 0;
    else
      *code = (uint32_t)mx_encode(format, y, &how, 0);
  }
  if (as_other) *code &= 2 * mxi_fault_sign_bit(p->elem) - 1;
  return 1;
}
