/* Parses and evaluates arithmetic chains. */
#include "kernels/block/chain.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/rcp.h"

static const struct {
  const char *name;
  int op, arguments;
} functions[] = {{"min", MX_OP_MIN, 2},     {"max", MX_OP_MAX, 2},       {"ifzero", MX_OP_IFZERO, 2}, {"ifinf", MX_OP_IFINF, 2},
                 {"ifnan", MX_OP_IFNAN, 2}, {"zeroif", MX_OP_ZEROIF, 2}, {"rcp0", MX_OP_RCP0, 1},     {"rcpa", MX_OP_RCPA, 1}};

typedef struct parser {
  const char *at;
  char names[MX_CHAIN_VARS][8];
  int n_names, bad;
} parser;

static void skip(parser *p) {
  while (*p->at == ' ') p->at++;
}

static int accept(parser *p, char c) {
  skip(p);
  if (*p->at != c) return 0;
  p->at++;
  return 1;
}

static void emit(parser *p, mx_chain_expr *e, int op, int var, float number) {
  if (e->n == MX_CHAIN_OPS)
    p->bad = 1;
  else
    e->ops[e->n++] = (mx_chain_op){(uint8_t)op, (uint8_t)var, number};
}

static size_t word(parser *p, char out[8]) {
  skip(p);
  size_t n = 0;
  while (n < 7 && (isalnum((unsigned char)p->at[n]) || p->at[n] == '_')) n++;
  memcpy(out, p->at, n);
  out[n] = 0;
  return n;
}

static void expression(parser *p, mx_chain_expr *e);

static void primary(parser *p, mx_chain_expr *e) {
  skip(p);
  if (accept(p, '(')) {
    expression(p, e);
    if (!accept(p, ')')) p->bad = 1;
    return;
  }
  if (isdigit((unsigned char)*p->at)) {
    char *end;
    if (!strncmp(p->at, "2^-", 3)) {
      emit(p, e, MX_OP_NUMBER, 0, ldexpf(1, -(int)strtol(p->at + 3, &end, 10)));
    } else
      emit(p, e, MX_OP_NUMBER, 0, strtof(p->at, &end));
    p->at = end;
    return;
  }
  if (!strncmp(p->at, "FLT_MAX", 7)) {
    p->at += 7;
    emit(p, e, MX_OP_NUMBER, 0, FLT_MAX);
    return;
  }
  if (!strncmp(p->at, "INF", 3)) {
    p->at += 3;
    emit(p, e, MX_OP_NUMBER, 0, INFINITY);
    return;
  }
  char name[8];
  const size_t n = word(p, name);
  p->at += n;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    if (strcmp(functions[i].name, name)) continue;
    if (!accept(p, '(')) p->bad = 1;
    expression(p, e);
    if (functions[i].arguments == 2) {
      if (!accept(p, ',')) p->bad = 1;
      expression(p, e);
    }
    if (!accept(p, ')')) p->bad = 1;
    emit(p, e, functions[i].op, 0, 0);
    return;
  }
  for (int v = 0; v < p->n_names; v++)
    if (!strcmp(p->names[v], name)) {
      emit(p, e, MX_OP_VAR, v, 0);
      return;
    }
  p->bad = 1;
}

static void term(parser *p, mx_chain_expr *e) {
  primary(p, e);
  while (!p->bad) {
    if (accept(p, '*'))
      primary(p, e), emit(p, e, MX_OP_MUL, 0, 0);
    else if (accept(p, '/'))
      primary(p, e), emit(p, e, MX_OP_DIV, 0, 0);
    else
      return;
  }
}

static void expression(parser *p, mx_chain_expr *e) {
  term(p, e);
  while (!p->bad) {
    if (accept(p, '+'))
      term(p, e), emit(p, e, MX_OP_ADD, 0, 0);
    else if (accept(p, '-'))
      term(p, e), emit(p, e, MX_OP_SUB, 0, 0);
    else
      return;
  }
}

static void product(parser *p, mx_chain_product *out, const char *text, char first) {
  p->at = text;
  if (!*text) return;
  if (!accept(p, first)) p->bad = 1;
  while (!p->bad) {
    skip(p);
    const char op = *p->at;
    if (!op) return;
    if ((op != '*' && op != '/') || out->n == MX_CHAIN_FACTORS) {
      p->bad = 1;
      return;
    }
    p->at++;
    out->op[out->n] = op;
    primary(p, &out->factor[out->n++]);
  }
}

mx_status mxi_chain_compile(mx_chain_program *out, const mx_chain *row) {
  parser p = {row->tensor, {"A", "F", "M", "K", "amax", "sf"}, MX_VAR_FIRST, 0};
  memset(out, 0, sizeof *out);
  out->store = -1;
  while (!p.bad && *row->tensor) {
    char name[8];
    const size_t n = word(&p, name);
    if (!n || p.n_names == MX_CHAIN_VARS) return MX_ERR_ARG;
    p.at += n;
    if (!accept(&p, '=')) return MX_ERR_ARG;
    expression(&p, &out->statement[out->n_statements]);
    int v = 0;
    while (v < p.n_names && strcmp(p.names[v], name)) v++;
    if (v == p.n_names) memcpy(p.names[p.n_names++], name, sizeof name);
    out->target[out->n_statements++] = (uint8_t)v;
    if (!accept(&p, ';')) break;
  }
  skip(&p);
  if (*p.at) p.bad = 1;
  p.at = row->scale;
  if (*row->scale) expression(&p, &out->scale);
  skip(&p);
  if (*p.at) p.bad = 1;
  product(&p, &out->element, row->element, 'x');
  product(&p, &out->again, row->again, 'q');
  for (int v = 0; v < p.n_names; v++)
    if (!strcmp(p.names[v], row->store)) out->store = v;
  return p.bad || (*row->store && out->store < 0) ? MX_ERR_ARG : MX_OK;
}

float mxi_chain_step(char op, float a, float b) {
  if (isnan(a)) return a;
  if (isnan(b)) return b;
  const float r = op == '*' ? a * b : op == '/' ? a / b : op == '+' ? a + b : a - b;
  return isnan(r) ? copysignf(NAN, -1) : r;
}

static float binary(int op, float a, float b) {
  switch (op) {
  case MX_OP_ADD:
    return mxi_chain_step('+', a, b);
  case MX_OP_SUB:
    return mxi_chain_step('-', a, b);
  case MX_OP_MUL:
    return mxi_chain_step('*', a, b);
  case MX_OP_DIV:
    return mxi_chain_step('/', a, b);
  case MX_OP_MIN:
    return isnan(a) ? a : isnan(b) ? b : a < b ? a : b;
  case MX_OP_MAX:
    return isnan(a) ? a : isnan(b) ? b : a > b ? a : b;
  case MX_OP_IFZERO:
    return a == 0 ? b : a;
  case MX_OP_IFINF:
    return isinf(a) ? b : a;
  case MX_OP_IFNAN:
    return isnan(a) ? b : a;
  default:
    return a == 0 ? 0 : b; /* MX_OP_ZEROIF */
  }
}

float mxi_chain_rcpa(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits = mx_rcp_approx_sm90(bits);
  memcpy(&x, &bits, sizeof x);
  return x;
}

float mxi_chain_eval(const mx_chain_expr *e, const float *vars) {
  float stack[MX_CHAIN_OPS];
  int n = 0;
  for (int i = 0; i < e->n; i++) {
    const mx_chain_op *o = &e->ops[i];
    if (o->op == MX_OP_NUMBER)
      stack[n++] = o->number;
    else if (o->op == MX_OP_VAR)
      stack[n++] = vars[o->var];
    else if (o->op == MX_OP_RCP0)
      stack[n - 1] = stack[n - 1] == 0 ? 0 : mxi_chain_step('/', 1, stack[n - 1]);
    else if (o->op == MX_OP_RCPA)
      stack[n - 1] = mxi_chain_rcpa(stack[n - 1]);
    else {
      n--;
      stack[n - 1] = binary(o->op, stack[n - 1], stack[n]);
    }
  }
  return n ? stack[n - 1] : NAN;
}

void mxi_chain_tensor(const mx_chain_program *p, float *vars, int given) {
  for (int i = 0; i < p->n_statements; i++)
    if (!given || p->target[i] != p->store) vars[p->target[i]] = mxi_chain_eval(&p->statement[i], vars);
}
