/* A chain's expression, folded to numbers and the block's variable, for a vector of blocks. Operation by operation what mx_chain_eval does, the sign
 * of a NaN apart: blocks with one are special. Included by a kernel that has defined the V_ operations. */
static VF evaluate(const mx_chain_expr *e, VF of_block) {
  VF stack[MX_CHAIN_OPS];
  const VF zero = V_SET1(0), nan = V_SET1(__builtin_nanf(""));
  int n = 0;
  for (int i = 0; i < e->n; i++) {
    const mx_chain_op *o = &e->ops[i];
    if (o->op == MX_OP_NUMBER)
      stack[n++] = V_SET1(o->number);
    else if (o->op == MX_OP_VAR)
      stack[n++] = of_block;
    else if (o->op == MX_OP_RCP0)
      stack[n - 1] = V_EQUAL(stack[n - 1], zero, zero, V_DIV(V_SET1(1), stack[n - 1]));
    else if (o->op == MX_OP_RCPA) { /* a table: one by one */
      float v[V_N];
      V_STORE(v, stack[n - 1]);
      for (int k = 0; k < V_N; k++) v[k] = mx_chain_rcpa(v[k]);
      stack[n - 1] = V_LOAD(v);
    } else {
      n--;
      const VF a = stack[n - 1], b = stack[n];
      VF r;
      switch (o->op) {
      case MX_OP_ADD:
        r = V_ADD(a, b);
        break;
      case MX_OP_SUB:
        r = V_SUB(a, b);
        break;
      case MX_OP_MUL:
        r = V_MUL(a, b);
        break;
      case MX_OP_DIV:
        r = V_DIV(a, b);
        break;
      case MX_OP_MIN:
        r = V_UNORDERED(a, b, nan, V_MIN(a, b));
        break;
      case MX_OP_MAX:
        r = V_UNORDERED(a, b, nan, V_MAX(a, b));
        break;
      case MX_OP_IFZERO:
        r = V_EQUAL(a, zero, b, a);
        break;
      case MX_OP_IFINF:
        r = V_INFINITE(a, b, a);
        break;
      case MX_OP_IFNAN:
        r = V_UNORDERED(a, a, b, a);
        break;
      default: /* MX_OP_ZEROIF */
        r = V_EQUAL(a, zero, zero, b);
      }
      stack[n - 1] = r;
    }
  }
  return n ? stack[n - 1] : zero;
}
