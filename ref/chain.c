/* Parses and evaluates the formulas of formats/chains.def. Each operation is one binary32 operation, rounded to nearest even. */
#include "chain.h"

#include <ctype.h>
#include <string.h>

#include "ref.h"

static const mx_chain rows[] = {
#define MX_CHAIN(id, name, tensor, scale, element, again, store, source) {name, tensor, scale, element, again, store, source},
#include "../formats/chains.def"
#undef MX_CHAIN
};

static const struct {
  const char *name;
  char op;
  int n_args;
} functions[] = {{"min", 'm', 2},   {"max", 'M', 2},  {"ifzero", 'z', 2}, {"ifinf", 'i', 2},
                 {"ifnan", 'n', 2}, {"rcp0", 'r', 1}, {"rcpa", 'a', 1},   {"zeroif", 'Z', 2}};

typedef struct reader {
  const char *at;
  chain_expr *out;
  int bad;
} reader;

static void blanks(reader *r) {
  while (*r->at == ' ') r->at++;
}

static void emit(reader *r, char op, int var, num number) {
  if (r->out->n == (int)(sizeof r->out->ops / sizeof *r->out->ops)) {
    r->bad = 1;
    return;
  }
  r->out->ops[r->out->n++] = (chain_op){op, var, number};
}

static void expect(reader *r, char c) {
  blanks(r);
  if (*r->at == c)
    r->at++;
  else
    r->bad = 1;
}

static int integer(reader *r) {
  int negative = *r->at == '-', value = 0;
  r->at += negative;
  if (!isdigit((unsigned char)*r->at)) r->bad = 1;
  while (isdigit((unsigned char)*r->at) && value < 1000) value = value * 10 + (*r->at++ - '0');
  return negative ? -value : value;
}

/* 6, 1.5, 1e8 or 2^-126, exact before the one rounding to binary32. */
static num number(reader *r) {
  uint64_t digits = 0;
  int tens = 0, after_point = 0;
  for (; isdigit((unsigned char)*r->at) || *r->at == '.'; r->at++) {
    if (*r->at == '.') {
      after_point = 1;
      continue;
    }
    digits = digits * 10 + (unsigned)(*r->at - '0');
    tens -= after_point;
  }
  if (*r->at == '^') {
    r->at++;
    if (digits != 2 || after_point) r->bad = 1;
    return num_pow2(integer(r));
  }
  if (*r->at == 'e') {
    r->at++;
    tens += integer(r);
  }
  uint64_t power = 1;
  for (int i = 0; i < (tens < 0 ? -tens : tens) && i < 18; i++) power *= 10;
  num d = num_int(digits), p = num_int(power);
  return tens < 0 ? num_div_r(d, p, NUM_F32) : num_mul_r(d, p, NUM_F32);
}

static void expression(reader *r);

static void name(reader *r) {
  const char *start = r->at;
  while (isalnum((unsigned char)*r->at) || *r->at == '_') r->at++;
  size_t length = (size_t)(r->at - start);
#define IS(text) (length == sizeof text - 1 && memcmp(start, text, length) == 0)
  if (IS("FLT_MAX")) {
    emit(r, '#', 0, (num){.kind = NUM_FINITE, .exp = 127, .sig = UINT64_C(0xFFFFFF) << 40});
  } else if (IS("INF")) {
    emit(r, '#', 0, num_inf(0));
  } else if (IS("amax")) {
    emit(r, '$', VAR_AMAX, num_zero(0));
  } else if (IS("sf")) {
    emit(r, '$', VAR_SF, num_zero(0));
  } else if (IS("x")) {
    emit(r, '$', VAR_X, num_zero(0));
  } else if (IS("q")) {
    emit(r, '$', VAR_Q, num_zero(0));
  } else if (length == 1 && isupper((unsigned char)*start)) {
    emit(r, '$', *start - 'A', num_zero(0));
  } else {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
      if (strlen(functions[i].name) == length && memcmp(functions[i].name, start, length) == 0) {
        expect(r, '(');
        expression(r);
        if (functions[i].n_args == 2) {
          expect(r, ',');
          expression(r);
        }
        expect(r, ')');
        emit(r, functions[i].op, 0, num_zero(0));
        return;
      }
    r->bad = 1;
  }
#undef IS
}

static void factor(reader *r) {
  blanks(r);
  if (*r->at == '(') {
    r->at++;
    expression(r);
    expect(r, ')');
  } else if (isdigit((unsigned char)*r->at)) {
    emit(r, '#', 0, number(r));
  } else {
    name(r);
  }
}

static void term(reader *r) {
  factor(r);
  for (blanks(r); !r->bad && (*r->at == '*' || *r->at == '/'); blanks(r)) {
    char op = *r->at++;
    factor(r);
    emit(r, op, 0, num_zero(0));
  }
}

static void expression(reader *r) {
  term(r);
  for (blanks(r); !r->bad && (*r->at == '+' || *r->at == '-'); blanks(r)) {
    char op = *r->at++;
    term(r);
    emit(r, op, 0, num_zero(0));
  }
}

/* An expression up to the end of the text or a semicolon. */
static const char *read_expression(chain_expr *out, const char *text, int *bad) {
  reader r = {text, out, 0};
  out->n = 0;
  expression(&r);
  blanks(&r);
  if (r.bad || (*r.at && *r.at != ';')) *bad = 1;
  return r.at;
}

int ref_chain_read(ref_chain *out, int chain) {
  if (chain <= MX_CHAIN_EXACT || chain >= MX_CHAIN_COUNT) return 0;
  const mx_chain *row = &rows[chain];
  int bad = 0;
  *out = (ref_chain){.store = row->store[0] ? row->store[0] - 'A' : -1};
  for (const char *at = row->tensor; *at && !bad;) {
    while (*at == ' ') at++;
    if (!isupper((unsigned char)at[0]) || strncmp(at + 1, " = ", 3) != 0 || out->n_tensor == 8) return 0;
    out->target[out->n_tensor] = at[0] - 'A';
    at = read_expression(&out->tensor[out->n_tensor++], at + 4, &bad);
    if (*at == ';') at++;
  }
  read_expression(&out->scale, row->scale, &bad);
  read_expression(&out->element, row->element, &bad);
  if (row->again[0]) read_expression(&out->again, row->again, &bad);
  return !bad;
}

static num lesser(num a, num b, int larger) {
  if (num_is_nan(a) || num_is_nan(b)) return num_is_nan(a) ? a : b;
  int order = num_cmp(b, a);
  return (larger ? order > 0 : order < 0) ? b : a;
}

/* The bits go in and come out; no host arithmetic touches them. */
static num reciprocal_sm90(num a) {
  float f = num_to_float(a);
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  bits = ref_rcp_sm90(bits);
  memcpy(&f, &bits, sizeof f);
  return num_float(f);
}

num ref_chain_eval(const chain_expr *expr, const chain_env *env) {
  num stack[48];
  int n = 0;
  for (int i = 0; i < expr->n; i++) {
    const chain_op *op = &expr->ops[i];
    if (op->op == '#' || op->op == '$') {
      stack[n++] = op->op == '#' ? op->number : env->var[op->var];
      continue;
    }
    num b = stack[--n];
    if (op->op == 'r') {
      stack[n++] = num_is_zero(b) ? num_zero(0) : num_div_r(num_int(1), b, NUM_F32);
      continue;
    }
    if (op->op == 'a') {
      stack[n++] = reciprocal_sm90(b);
      continue;
    }
    num a = stack[--n], v = a;
    switch (op->op) {
    case '+':
      v = num_add_r(a, b, NUM_F32);
      break;
    case '-':
      v = num_sub_r(a, b, NUM_F32);
      break;
    case '*':
      v = num_mul_r(a, b, NUM_F32);
      break;
    case '/':
      v = num_div_r(a, b, NUM_F32);
      break;
    case 'm':
      v = lesser(a, b, 0);
      break;
    case 'M':
      v = lesser(a, b, 1);
      break;
    case 'z':
      v = num_is_zero(a) ? b : a;
      break;
    case 'i':
      v = a.kind == NUM_INF ? b : a;
      break;
    case 'n':
      v = num_is_nan(a) ? b : a;
      break;
    case 'Z':
      v = num_is_zero(a) ? num_zero(0) : b;
      break;
    }
    stack[n++] = v;
  }
  return n ? stack[n - 1] : num_zero(0);
}

void ref_chain_tensor(const ref_chain *chain, chain_env *env, const num *given) {
  for (int i = 0; i < chain->n_tensor; i++) {
    int var = chain->target[i];
    env->var[var] = given && var == chain->store ? *given : ref_chain_eval(&chain->tensor[i], env);
  }
}
