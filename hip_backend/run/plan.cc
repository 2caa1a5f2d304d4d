/* Turns specs, formats and chains into plain numbers for kernels. */
#include "hip_backend/run/plan.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/quantize.h"

/* ---- Chains: a row's text to postfix ---- */

namespace {
struct reader {
  const char *at;
  char names[MXD_CHAIN_VARS][8];
  int n_names;
  bool bad;

  char peek() {
    while (*at == ' ') at++;
    return *at;
  }
  bool take(char c) {
    if (peek() != c) return false;
    at++;
    return true;
  }
  void need(char c) { bad |= !take(c); }
  void word(char out[8]) {
    int n = 0;
    peek();
    while (n < 7 && (isalnum((unsigned char)*at) || *at == '_')) out[n++] = *at++;
    out[n] = 0;
    bad |= n == 0;
  }
  int variable(const char *name) const {
    for (int i = 0; i < n_names; i++)
      if (!strcmp(names[i], name)) return i;
    return -1;
  }
  void emit(mxd_expr *e, int op, int var, float number) {
    if (e->n == MXD_CHAIN_OPS)
      bad = true;
    else
      e->op[e->n++] = {op, var, number};
  }
  void factor(mxd_expr *e) {
    static const struct {
      const char *name;
      int op, arguments;
    } functions[] = {{"min", MXD_MIN, 2},     {"max", MXD_MAX, 2},       {"ifzero", MXD_IFZERO, 2}, {"ifinf", MXD_IFINF, 2},
                     {"ifnan", MXD_IFNAN, 2}, {"zeroif", MXD_ZEROIF, 2}, {"rcp0", MXD_RCP0, 1},     {"rcpa", MXD_RCPA, 1}};
    if (take('(')) {
      sum(e);
      need(')');
      return;
    }
    if (isdigit((unsigned char)peek())) {
      char *end;
      float v = strtof(at, &end);
      if (!strncmp(at, "2^-", 3)) v = ldexpf(1, -(int)strtol(at + 3, &end, 10));
      at = end;
      emit(e, MXD_NUMBER, 0, v);
      return;
    }
    char name[8];
    word(name);
    if (!strcmp(name, "FLT_MAX")) return emit(e, MXD_NUMBER, 0, 3.40282346638528859812e38f);
    if (!strcmp(name, "INF")) return emit(e, MXD_NUMBER, 0, INFINITY);
    for (const auto &f : functions)
      if (!strcmp(f.name, name)) {
        need('(');
        sum(e);
        if (f.arguments == 2) {
          need(',');
          sum(e);
        }
        need(')');
        return emit(e, f.op, 0, 0);
      }
    const int v = variable(name);
    bad |= v < 0;
    emit(e, MXD_VAR, v < 0 ? 0 : v, 0);
  }
  void term(mxd_expr *e) {
    factor(e);
    while (!bad && (peek() == '*' || peek() == '/')) {
      const int op = *at++ == '*' ? MXD_MUL : MXD_DIV;
      factor(e);
      emit(e, op, 0, 0);
    }
  }
  void sum(mxd_expr *e) {
    term(e);
    while (!bad && (peek() == '+' || peek() == '-')) {
      const int op = *at++ == '+' ? MXD_ADD : MXD_SUB;
      term(e);
      emit(e, op, 0, 0);
    }
  }
  void product(mxd_product *out, const char *text, char first) {
    at = text;
    if (!*text) return;
    need(first);
    while (!bad && peek()) {
      if ((*at != '*' && *at != '/') || out->n == MXD_CHAIN_FACTORS)
        bad = true;
      else {
        out->op[out->n] = *at++;
        factor(&out->factor[out->n++]);
      }
    }
  }
};
} // namespace

static bool read_chain(mxd_chain *out, const mx_chain *row) {
  reader r = {row->tensor, {"A", "F", "M", "K", "amax", "sf"}, MXD_VAR_FIRST, false};
  while (!r.bad && r.peek()) {
    char name[8];
    r.word(name);
    r.need('=');
    if (r.bad || out->n_statements == MXD_CHAIN_STATEMENTS) return false;
    r.sum(&out->statement[out->n_statements]);
    if (r.variable(name) < 0) {
      if (r.n_names == MXD_CHAIN_VARS) return false;
      memcpy(r.names[r.n_names++], name, sizeof name);
    }
    out->target[out->n_statements++] = r.variable(name);
    if (!r.take(';')) break;
  }
  r.bad |= r.peek() != 0;
  r.at = row->scale;
  if (*row->scale) r.sum(&out->scale);
  r.bad |= r.peek() != 0;
  r.product(&out->element, row->element, 'x');
  r.product(&out->again, row->again, 'q');
  out->store = *row->store ? r.variable(row->store) : -1;
  return !r.bad;
}

/* ---- log2f: how near to 2^k a float must be for its rounded log2 to be k ---- */

static bool rounds_to(double offset, int k) { return (float)((double)k + log1p(offset) / 0.693147180559945309417232121458) == (float)k; }
static const struct log2_reach {
  uint8_t below[MXD_LOG2_COUNT], above[MXD_LOG2_COUNT];
  log2_reach() {
    for (int i = 0; i < MXD_LOG2_COUNT; i++) {
      const int k = MXD_LOG2_FIRST + i;
      int n = 0;
      while (k && n < 255 && rounds_to(-ldexp(n + 1, -24), k)) n++;
      below[i] = (uint8_t)n;
      for (n = 0; k && n < 255 && rounds_to(ldexp(n + 1, -23), k);) n++;
      above[i] = (uint8_t)n;
    }
  }
} log2_reach;

/* ---- Formats ---- */

static uint32_t code32(uint64_t code) { return code == MX_NO_CODE ? MXD_NO_CODE : (uint32_t)code; }
mxd_format mxh_format(const mx_format *f) {
  return {f->kind,
          f->bits,
          f->sign_bits,
          f->man_bits,
          f->bias,
          code32(f->max_code),
          code32(f->inf_code),
          code32(f->nan_first),
          code32(f->nan_last),
          code32(f->nan_code)};
}
mxd_encoding mxh_encoding(const mx_encoding *h) {
  return {h->round,    h->overflow, h->saturate_to, h->nan, h->inf, h->zero_sign, h->sr_mode, h->sr_bits ? h->sr_bits : 16,
          h->nan_code, h->inf_code};
}

mx_status mxh_plan_make(mxd_plan *p, const mx_spec *spec, size_t rows, size_t cols, mx_error *err) {
  const mx_status status = mx_spec_check(spec, err);
  if (status) return status;
  if (spec->select == MX_SELECT_EDEN) return mx_fail(err, MX_ERR_UNSUPPORTED, "select=eden: kernels for devices do not correct scales");
  memset(static_cast<void *>(p), 0, sizeof *p);
  p->spec = *spec;
  p->spec.given_bits = nullptr;
  const mx_format *elem = mx_elem_format(spec->elem), *scale = mx_scale_format(spec->scale);
  p->elem = mxh_format(elem);
  p->scale = mxh_format(scale);
  mx_encoding how = mx_elem_encoding(spec);
  if (spec->sr_source == MX_SR_SOURCE_AMD_LFSR) {
    how.sr_bits = 23 - elem->man_bits;
    how.sr_mode = MX_SR_FASTEST;
  }
  p->encode = mxh_encoding(&how);
  const mx_encoding of_scale = mx_scale_encoding(spec);
  p->scale_encode = mxh_encoding(&of_scale);

  mx_tensor t;
  const mx_status layout = mx_tensor_layout(&t, rows, cols, spec);
  if (layout) return layout;
  size_t br, bc;
  mx_spec_block(spec, rows, cols, &br, &bc);
  p->rows = rows;
  p->cols = cols;
  p->block_rows = br;
  p->block_cols = bc;
  p->bands = rows / br + (rows % br != 0);
  p->tiles = cols / bc + (cols % bc != 0);
  p->cols_padded = t.cols_padded;
  p->code_stride = t.code_stride;
  p->scale_rows = t.scale_rows;
  p->scale_cols = t.scale_cols;
  p->scale_bytes = (int32_t)t.scale_bytes;

  p->act_nan = spec->scale_nan;
  p->nan_n = spec->scale_nan_n;
  p->act_inf = spec->scale_inf == MX_SCALE_INF_AS_NAN ? spec->scale_nan : spec->scale_inf - 1; /* from there on both lists have the same rows */
  p->inf_n = spec->scale_inf == MX_SCALE_INF_AS_NAN ? spec->scale_nan_n : spec->scale_inf_n;
  p->uses_chain = spec->chain != MX_CHAIN_EXACT;
  p->has_tensor_scale = spec->tensor_norm != MX_TENSOR_NORM_NONE;
  p->needs_amax = spec->scale_nan == MX_SCALE_NAN_TENSOR || spec->scale_inf == MX_SCALE_INF_TENSOR || p->has_tensor_scale;
  const char *store = mx_tensor_store_name(spec);
  p->store = !strcmp(store, "scale")     ? MXD_STORE_SCALE
             : !strcmp(store, "divisor") ? MXD_STORE_DIVISOR
             : !strcmp(store, "amax")    ? MXD_STORE_AMAX
                                         : MXD_STORE_NONE;
  p->over = p->under = p->norm = 1;
  p->tensor_scale = 1;
  memcpy(p->log2_below, log2_reach.below, sizeof p->log2_below);
  memcpy(p->log2_above, log2_reach.above, sizeof p->log2_above);
  if (elem->kind == MX_KIND_NONE) return MX_OK;
  p->emax = mx_format_emax(elem);
  p->f = mx_spec_scale_max(spec);
  p->target = spec->tensor_target != 0 ? (double)spec->tensor_target : (double)(float)(p->f * mx_format_max(scale));
  p->k = (float)p->target;
  if (spec->tensor_norm == MX_TENSOR_NORM_NV || spec->tensor_norm == MX_TENSOR_NORM_CHMIEL) p->norm = p->target;
  if (spec->tensor_norm == MX_TENSOR_NORM_SEED004) p->norm = p->target / 2;
  if (!p->uses_chain) return MX_OK;
  if (!read_chain(&p->chain, mx_chain_row(spec->chain))) return MX_ERR_UNSUPPORTED;
  p->vars[MXD_VAR_F] = (float)p->f;
  p->vars[MXD_VAR_M] = (float)mx_format_max(scale);
  p->vars[MXD_VAR_K] = p->k;
  return MX_OK;
}
