/* Declares the arithmetic chains of formats/chains.def. They are parsed once, and evaluated in binary32 for each tensor, block and element. */
#ifndef MX_KERNELS_BLOCK_CHAIN_H
#define MX_KERNELS_BLOCK_CHAIN_H

#include "mxgold/spec.h"

enum { MX_CHAIN_OPS = 48, MX_CHAIN_VARS = 12, MX_CHAIN_FACTORS = 4 };

/* Variables: first the fixed ones, then those that the tensor statements assign. */
enum { MX_VAR_A, MX_VAR_F, MX_VAR_M, MX_VAR_K, MX_VAR_AMAX, MX_VAR_SF, MX_VAR_FIRST };

/* Postfix operations; MX_OP_RCP0 and MX_OP_RCPA have one operand. */
enum {
  MX_OP_NUMBER,
  MX_OP_VAR,
  MX_OP_ADD,
  MX_OP_SUB,
  MX_OP_MUL,
  MX_OP_DIV,
  MX_OP_MIN,
  MX_OP_MAX,
  MX_OP_IFZERO,
  MX_OP_IFINF,
  MX_OP_IFNAN,
  MX_OP_ZEROIF,
  MX_OP_RCP0,
  MX_OP_RCPA
};

typedef struct mx_chain_op {
  uint8_t op; /* MX_OP_* */
  uint8_t var;
  float number;
} mx_chain_op;

/* An expression in postfix order. */
typedef struct mx_chain_expr {
  int n;
  mx_chain_op ops[MX_CHAIN_OPS];
} mx_chain_expr;

/* x op factor op factor ..., each a block-level expression. */
typedef struct mx_chain_product {
  int n;
  char op[MX_CHAIN_FACTORS]; /* '*' or '/' */
  mx_chain_expr factor[MX_CHAIN_FACTORS];
} mx_chain_product;

typedef struct mx_chain_program {
  int n_statements, store; /* store: the index of a variable, or -1 */
  uint8_t target[MX_CHAIN_VARS];
  mx_chain_expr statement[MX_CHAIN_VARS];
  mx_chain_expr scale;
  mx_chain_product element, again; /* again.n is 0 if the chain has no `again` */
} mx_chain_program;

/* Parses a row. The rows are the library's own, and tests/test_tables.c catches a mistake in one; here it gives MX_ERR_ARG. */
mx_status mxi_chain_compile(mx_chain_program *out, const mx_chain *row);

/* Runs the tensor statements on vars[], in which A, F, M and K are set. given: the stored variable already has its value. */
void mxi_chain_tensor(const mx_chain_program *p, float *vars, int given);
float mxi_chain_eval(const mx_chain_expr *e, const float *vars);

/* One binary32 operation whose NaN does not depend on the machine: a NaN made from numbers is negative, and a NaN operand passes through. */
float mxi_chain_step(char op, float a, float b);
/* The function rcpa of formats/chains.def. */
float mxi_chain_rcpa(float x);

#endif
