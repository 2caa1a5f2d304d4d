/* Decomposes raw bits into sign, significand and exponent. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "operands are read in memory order");

size_t mx_mma_bytes(const mx_format *type, size_t n) {
  if (type->bits <= 4) return n / 2 + (n & 1);
  return n * (type->bits <= 8 ? 1 : type->bits <= 16 ? 2 : type->bits <= 32 ? 4 : 8);
}

void mxi_mma_codes(uint64_t *out, const void *row, const mx_format *type, size_t k, size_t n) {
  const uint8_t *bytes = row;
  uint16_t half;
  uint32_t word;
  switch (mx_mma_bytes(type, 2)) {
  case 1:
    for (size_t i = 0; i < n; i++) out[i] = bytes[(k + i) / 2] >> ((k + i) & 1) * 4 & 15;
    break;
  case 2:
    for (size_t i = 0; i < n; i++) out[i] = bytes[k + i] & ((1u << type->bits) - 1);
    break;
  case 4:
    for (size_t i = 0; i < n; i++) {
      memcpy(&half, bytes + 2 * (k + i), 2);
      out[i] = half;
    }
    break;
  case 8:
    for (size_t i = 0; i < n; i++) {
      memcpy(&word, bytes + 4 * (k + i), 4);
      out[i] = word >> (32 - type->bits); /* tf32 and xf32 are the upper bits */
    }
    break;
  default:
    memcpy(out, bytes + 8 * k, 8 * n);
  }
}

uint64_t mxi_mma_code(const void *row, const mx_format *type, size_t k) {
  uint64_t code;
  mxi_mma_codes(&code, row, type, k, 1);
  return code;
}

mma_num mxi_mma_split(const mx_format *type, uint64_t code) {
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

/* Turns a number into the form in which binary16 encodes it: 10 fraction bits, normal if possible. */
static void as_f16(mma_num *n, int man) {
  if (n->cls & (MMA_ZERO | MMA_INF | MMA_NAN)) return;
  n->sig *= INT64_C(1) << (10 - man);
  for (; n->exp < -14; n->exp++) n->sig /= 2; /* e5m2fnuz reaches below binary16; dividing is exact, since sig was just multiplied */
  while (llabs(n->sig) < 1 << 10 && n->exp > -14) {
    n->sig *= 2;
    n->exp--;
  }
}

mma_num mxi_mma_operand(const mma_plan *plan, const mx_format *type, uint64_t code) {
  mma_num n = mxi_mma_split(type, code);
  if (plan->x.via == MX_ACC_VIA_F16) as_f16(&n, type->man_bits);
  if (n.cls & MMA_ZERO) n.exp = plan->zero_exp;
  return n;
}

mma_num mxi_mma_scale(const mma_plan *plan, const mx_format *scale, uint64_t code) {
  mma_num n = mxi_mma_split(scale, code);
  if (n.cls & MMA_ZERO) n.exp = plan->zero_exp;
  return n;
}

void mxi_mma_tables(mma_side *side, const mma_plan *plan) {
  const mx_format *t = side->type, *s = side->scale;
  for (uint64_t code = 0; code < 256; code++) {
    if (t->bits <= 8) side->table[code] = mxi_mma_operand(plan, t, code & ((UINT64_C(1) << t->bits) - 1));
    if (s && s->bits <= 8) side->scale_table[code] = mxi_mma_scale(plan, s, s->sign_bits ? code & 0x7F : code);
  }
}
