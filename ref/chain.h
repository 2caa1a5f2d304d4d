/* Declares the formulas of formats/chains.def: read once, evaluated in binary32. */
#ifndef REF_CHAIN_H
#define REF_CHAIN_H

#include "num.h"

/* Variables: A..Z, and the four that have names of their own. */
enum { VAR_AMAX = 26, VAR_SF, VAR_X, VAR_Q, VAR_COUNT };

typedef struct chain_env {
  num var[VAR_COUNT];
} chain_env;

/* An expression as a stack machine reads it: operands first. */
typedef struct chain_op {
  char op; /* '#' number, '$' variable, + - * /, or the letter of a function */
  int var;
  num number;
} chain_op;

typedef struct chain_expr {
  int n;
  chain_op ops[48];
} chain_expr;

typedef struct ref_chain {
  int n_tensor, store; /* store: variable, -1 for none */
  int target[8];       /* of the tensor statements */
  chain_expr tensor[8], scale, element, again;
} ref_chain;

/* Read a row; 0 when a formula does not parse (a test holds every row to 1). */
int ref_chain_read(ref_chain *out, int chain);
/* Run the tensor statements; with given, the stored variable takes that value instead. */
void ref_chain_tensor(const ref_chain *chain, chain_env *env, const num *given);
num ref_chain_eval(const chain_expr *expr, const chain_env *env);

#endif
