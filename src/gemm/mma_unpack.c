/* Operands: raw bits to numbers, rows to panels. */
#include "mma_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t mx_mma_bytes(const mx_format *type, size_t n) {
  if (type->bits <= 4) return n / 2 + (n & 1);
  return n * (type->bits <= 8 ? 1 : type->bits <= 16 ? 2 : type->bits <= 32 ? 4 : 8);
}

uint64_t mma_code(const void *row, const mx_format *type, size_t k) {
  const uint8_t *bytes = row;
  uint64_t raw = 0;
  if (type->bits <= 4) return bytes[k / 2] >> (k & 1) * 4 & 15;
  size_t size = mx_mma_bytes(type, 1);
  for (size_t i = 0; i < size; i++) raw |= (uint64_t)bytes[k * size + i] << 8 * i;
  if (type->bits == 64) return raw;
  if (type->bits > 16) raw >>= 32 - type->bits; /* tf32 and xf32 are the upper bits */
  return raw & ((UINT64_C(1) << type->bits) - 1);
}

mma_num mma_split(const mx_format *type, uint64_t code) {
  mma_num n = {0};
  if (type->kind == MX_KIND_INT) {
    n.sig = (int64_t)code;
    if (type->sign_bits && code >> (type->bits - 1)) n.sig -= INT64_C(1) << type->bits;
    n.cls = n.sig ? 0 : MMA_ZERO;
    return n;
  }
  int negative = type->sign_bits && code >> (type->bits - 1);
  uint64_t magnitude = type->sign_bits ? code & ((UINT64_C(1) << (type->bits - 1)) - 1) : code;
  uint64_t man = magnitude & ((UINT64_C(1) << type->man_bits) - 1);
  int exp = (int)(magnitude >> type->man_bits);
  if (type->kind == MX_KIND_FNUZ ? code == type->nan_first : magnitude >= type->nan_first && magnitude <= type->nan_last) n.cls = MMA_NAN;
  if (magnitude == type->inf_code) n.cls = MMA_INF;
  int normal = exp > 0 || type->kind == MX_KIND_EXP;
  n.sig = (int64_t)(man | (normal ? UINT64_C(1) << type->man_bits : 0));
  n.exp = (normal ? exp : 1) - type->bias;
  if (!n.sig && !n.cls) n.cls = MMA_ZERO;
  if (negative) n.sig = -n.sig;
  return n;
}

static void *array(size_t n, size_t size) { return calloc(n ? n : 1, size); }

mx_status mma_panel_alloc(mma_panel *p, const mma_plan *plan, size_t rows, size_t K) {
  const mx_mma_model *m = plan->model;
  int op = plan->x.op, f64 = m->d->bits == 64;
  memset(p, 0, sizeof *p);
  p->K = K;
  p->n_blocks = m->scale ? (K + (size_t)m->block - 1) / (size_t)m->block : 0;
  int ok = (p->special = array(rows, 1)) != NULL;
  if (op == MX_ACC_OP_FUSED || op == MX_ACC_OP_INTEGER) ok &= (p->sig = array(rows * K, sizeof *p->sig)) != NULL;
  if (op == MX_ACC_OP_FUSED) {
    ok &= (p->exp = array(rows * K, sizeof *p->exp)) != NULL;
    ok &= (p->cls = array(rows * K, 1)) != NULL;
  }
  if (plan->x.P && m->scale) {
    ok &= (p->scale_sig = array(rows * p->n_blocks, sizeof *p->scale_sig)) != NULL;
    ok &= (p->scale_exp = array(rows * p->n_blocks, sizeof *p->scale_exp)) != NULL;
  }
  if (op == MX_ACC_OP_PAIRWISE || (op == MX_ACC_OP_FMA && !f64)) ok &= (p->f32 = array(rows * K, sizeof *p->f32)) != NULL;
  if (op == MX_ACC_OP_FMA && f64) ok &= (p->f64 = array(rows * K, sizeof *p->f64)) != NULL;
  if (ok) return MX_OK;
  mma_panel_free(p);
  return MX_ERR_NOMEM;
}

void mma_panel_free(mma_panel *p) {
  free(p->sig);
  free(p->exp);
  free(p->cls);
  free(p->f32);
  free(p->f64);
  free(p->scale_sig);
  free(p->scale_exp);
  free(p->special);
  memset(p, 0, sizeof *p);
}

/* Where element k of a row goes: the order of summation within an instruction of n elements. */
static size_t place(const mma_plan *plan, size_t k, size_t K) {
  if (plan->x.order == MX_ACC_ORDER_SEQ) return k;
  size_t start = k / plan->k * plan->k, n = K - start < plan->k ? K - start : plan->k, j = k - start;
  size_t first = n / 4 * 2 + (n % 4 < 2 ? n % 4 : 2); /* elements with j%4 in {0,1} */
  return start + (j % 4 < 2 ? j / 4 * 2 + j % 4 : first + j / 4 * 2 + j % 4 - 2);
}

/* A number as binary16 encodes it: 10 fraction bits, normal if it can be. */
static void as_f16(mma_num *n, int man) {
  if (n->cls & (MMA_ZERO | MMA_INF | MMA_NAN)) return;
  n->sig *= INT64_C(1) << (10 - man);
  for (; n->exp < -14; n->exp++) n->sig /= 2; /* e5m2fnuz reaches below; what is divided here was just multiplied */
  while (llabs(n->sig) < 1 << 10 && n->exp > -14) {
    n->sig *= 2;
    n->exp--;
  }
}

/* The scale of a block: sign masked. */
static mma_num scale_of(const mma_plan *plan, uint8_t byte) {
  const mx_format *s = plan->model->scale;
  mma_num n = mma_split(s, s->sign_bits ? byte & 0x7F : byte);
  if (n.cls & MMA_ZERO) n.exp = plan->zero_exp;
  return n;
}

/* Element times scale, as a unit that adds exponents sees it. */
static mma_num scaled(mma_num e, mma_num s) {
  if ((s.cls & MMA_NAN) || ((s.cls & MMA_ZERO) && (e.cls & MMA_INF))) return (mma_num){0, 0, MMA_NAN};
  int exp = e.exp + s.exp;
  return (mma_num){e.sig * s.sig, exp < MMA_NO_EXP ? MMA_NO_EXP : exp, e.cls | (s.cls & MMA_ZERO)};
}

static void fill_fused(mma_panel *p, size_t r, const mma_plan *plan, const mx_format *type, const void *codes, const uint8_t *scales) {
  const mx_mma_model *m = plan->model;
  for (size_t k = 0; k < p->K; k++) {
    mma_num n = mma_split(type, mma_code(codes, type, k));
    if (plan->x.via == MX_ACC_VIA_F16) as_f16(&n, type->man_bits);
    if (n.cls & MMA_ZERO) n.exp = plan->zero_exp;
    if (scales) {
      mma_num s = scale_of(plan, scales[k / (size_t)m->block]);
      if (plan->x.P && !(s.cls & MMA_NAN) && !(n.cls & MMA_INF)) {
        p->scale_sig[r * p->n_blocks + k / (size_t)m->block] = (int32_t)s.sig;
        p->scale_exp[r * p->n_blocks + k / (size_t)m->block] = s.exp;
        n.cls |= s.cls & MMA_ZERO; /* so that the other operand's Inf meets it */
      } else
        n = scaled(n, s);
    }
    size_t at = r * p->K + place(plan, k, p->K);
    p->sig[at] = (int32_t)n.sig;
    p->exp[at] = n.exp;
    p->cls[at] = (uint8_t)n.cls;
    p->special[r] |= n.cls & (MMA_INF | MMA_NAN);
  }
}

/* A number as binary64, exactly; NaN keeps its payload where the type is binary64. */
static double to_f64(const mx_format *type, uint64_t code, mma_num n) {
  double x;
  if (type->bits == 64)
    memcpy(&x, &code, 8);
  else if (n.cls & MMA_NAN)
    x = NAN;
  else if (n.cls & MMA_INF)
    x = n.sig < 0 ? -INFINITY : INFINITY;
  else {
    x = ldexp((double)llabs(n.sig), n.exp - type->man_bits);
    if (code >> (type->bits - 1) && type->sign_bits) x = -x;
  }
  return x;
}

static void fill_float(mma_panel *p, size_t r, const mma_plan *plan, const mx_format *type, const void *codes, const uint8_t *scales) {
  const mx_mma_model *m = plan->model;
  for (size_t k = 0; k < p->K; k++) {
    uint64_t code = mma_code(codes, type, k);
    mma_num n = mma_split(type, code);
    double x = to_f64(type, code, n);
    if (scales) {
      mma_num s = scale_of(plan, scales[k / (size_t)m->block]);
      x *= s.cls & MMA_NAN ? NAN : s.cls & MMA_ZERO ? 0.0 : ldexp((double)s.sig, s.exp - m->scale->man_bits); /* exact: 24 by 4 bits */
    }
    if (plan->x.flush && fabs(x) < ldexp(1.0, 1 - type->bias)) x = 0.0; /* zeros too lose their sign */
    if (p->f64)
      p->f64[r * p->K + k] = x;
    else
      p->f32[r * p->K + k] = (float)x; /* rounds only where a scale took it out of binary32 */
  }
}

void mma_panel_fill(mma_panel *p, size_t r, const mma_plan *plan, const mx_format *type, const void *codes, const uint8_t *scales) {
  p->special[r] = 0;
  if (plan->x.op == MX_ACC_OP_FUSED)
    fill_fused(p, r, plan, type, codes, scales);
  else if (plan->x.op == MX_ACC_OP_INTEGER)
    for (size_t k = 0; k < p->K; k++) p->sig[r * p->K + k] = (int32_t)mma_split(type, mma_code(codes, type, k)).sig;
  else
    fill_float(p, r, plan, type, codes, scales);
}
