/* Evaluates the formulas of formats/chains.def over the blocks of a piece, each operation over all blocks before the next one, so that the
 * formula is read only once for each piece. Part of stages.inc.h. */

/* One binary32 for each block; with step 0, the same number W times. */
typedef struct operand {
  const void *at;
  size_t step;
} operand;

typedef struct chain_room {
  float rows[MX_CHAIN_OPS / 2 + 1][MX_PIECE_BLOCKS]; /* as deep as the stack can be */
  float numbers[MX_CHAIN_OPS][W];                    /* separate, because the row of an operand becomes that of the result */
} chain_room;

INLINE vf operand_at(operand o, size_t i) { return vi_float(vi_load((const float *)o.at + i * o.step)); }

static operand same(float *row, float value) {
  vf_store(row, vf_set(value));
  return (operand){row, 0};
}

#define EACH(expr)                                                                                                                             \
  for (size_t i = 0; i < n; i += W) {                                                                                                          \
    const vf b = operand_at(right, i), a = operand_at(left, i);                                                                                \
    vf_store(to + i, expr);                                                                                                                    \
  }                                                                                                                                            \
  break

/* Evaluates the expression for blocks [0, n), where n is a multiple of W. */
static operand chain_values(chain_room *room, const mx_chain_expr *e, const float *vars, operand amax_value, operand sf, size_t n) {
  operand stack[MX_CHAIN_OPS];
  int depth = 0;
  const vf zero = vf_set(0), one = vf_set(1);
  for (int k = 0; k < e->n; k++) {
    const mx_chain_op *o = &e->ops[k];
    if (o->op == MX_OP_NUMBER || o->op == MX_OP_VAR) {
      const int moves = o->op == MX_OP_VAR && (o->var == MX_VAR_AMAX || o->var == MX_VAR_SF);
      stack[depth] = moves ? (o->var == MX_VAR_SF ? sf : amax_value) : same(room->numbers[k], o->op == MX_OP_VAR ? vars[o->var] : o->number);
      depth++;
      continue;
    }
    const operand right = stack[depth - 1];
    if (o->op != MX_OP_RCP0 && o->op != MX_OP_RCPA) depth--;
    const operand left = stack[depth - 1];
    float *to = room->rows[depth - 1];
    switch (o->op) {
    case MX_OP_ADD:
      EACH(vf_add(a, b));
    case MX_OP_SUB:
      EACH(vf_sub(a, b));
    case MX_OP_MUL:
      EACH(vf_mul(a, b));
    case MX_OP_DIV:
      EACH(vf_div(a, b));
    case MX_OP_MIN:
      EACH(vf_min(a, b));
    case MX_OP_MAX:
      EACH(vf_max(a, b));
    case MX_OP_IFZERO:
      EACH(vf_blend(vf_eq(a, zero), b, a));
    case MX_OP_IFINF:
      EACH(vf_blend(vi_eq(magnitude_of(a), vi_set(0x7F800000)), b, a));
    case MX_OP_IFNAN:
      EACH(vf_blend(vi_gt(magnitude_of(a), vi_set(0x7F800000)), b, a));
    case MX_OP_RCP0:
      EACH(vf_blend(vf_eq(a, zero), zero, vf_div(one, b)));
    case MX_OP_RCPA: /* needs a table, so one lane at a time */
      for (size_t i = 0; i < n; i += W) vf_store(to + i, operand_at(left, i));
      for (size_t i = 0; i < n; i++) to[i] = mxi_chain_rcpa(to[i]);
      break;
    default:
      EACH(vf_blend(vf_eq(a, zero), zero, b));
    }
    stack[depth - 1] = (operand){to, 1};
  }
  return stack[0];
}
#undef EACH
