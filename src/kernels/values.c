/* Computes values from codes by scalar code. */
#include "kernels/values.h"

#include <math.h>
#include <string.h>

#include "kernels/block/narrow.h"

/* Prepares codes as bits of a binary16: the sign goes to the top, and the other fields go where binary16 has them. This does not work for
 * INT and e5m2fnuz. */
static void half_init(mx_values *f, const mx_format *e) {
  const int room = e->exp_bits < 5 || e->inf_code != MX_NO_CODE; /* the highest exponent of binary16 holds no numbers */
  f->half = room && e->bits > 4 && e->bits <= 8 && e->sign_bits && (e->kind == MX_KIND_FLOAT || e->kind == MX_KIND_FNUZ);
  f->whole = e->kind == MX_KIND_INT && e->bits == 8;
  if (f->whole) f->half_factor = ldexpf(1, -e->man_bits);
  if (!f->half) return;
  f->half_sign = 16 - e->bits;
  f->half_shift = 10 - e->man_bits;
  f->half_mask = (1 << (e->bits - 1)) - 1;
  f->half_factor = ldexpf(1, 15 - e->bias);
  const int ieee = e->inf_code != MX_NO_CODE; /* then a NaN is also a NaN in binary16 */
  f->nan_mask = ieee ? 0 : e->kind == MX_KIND_FNUZ ? 0xFF : 0x7F;
  f->nan_code = ieee || e->nan_code == MX_NO_CODE ? 0xFF : (uint8_t)e->nan_code;
}

void mxi_values_tables(mx_values *f, const mx_format *e) {
  const uint32_t all = e->bits >= 8 ? 255 : (1u << e->bits) - 1;
  f->one_sign = e->bits == 8;
  for (uint32_t c = 0; c < 256; c++) {
    const float v = (float)mx_decode(e, c & all);
    uint32_t bits, other;
    f->table[c] = isnan(v) ? copysignf(NAN, f->keeps_nan ? v : 1) : v;
    memcpy(&bits, f->table + c, sizeof bits);
    memcpy(&other, f->table + c % 128, sizeof other);
    f->high[c] = (uint8_t)(bits >> 24);
    f->low[c] = (uint8_t)(bits >> 16);
    if ((c < 128 ? other : other | UINT32_C(1) << 31) != bits) f->one_sign = 0;
  }
  half_init(f, e);
  if (f->keeps_nan && e->inf_code != MX_NO_CODE) f->half = 0; /* a NaN would keep its payload */
}

static void values(float *out, const uint8_t *codes, size_t n, const mx_values *t, const float *f, const double *wide, int shift) {
  const int divides = t->how == MX_VALUES_DIV || t->how == MX_VALUES_DIV_MUL;
  for (size_t i = 0; i < n; i++) {
    const size_t at = shift < 0 ? i : i / 16 >> shift;
    const float v = t->table[codes[i]];
    float r;
    if (t->how == MX_VALUES_WIDE)
      r = (float)((double)v * wide[at]);
    else if (divides)
      r = v == 0 && f[at] == 0 ? v : v / f[at];
    else
      r = v * f[at];
    if (t->how == MX_VALUES_MUL_MUL || t->how == MX_VALUES_DIV_MUL) r = r * t->then;
    out[i] = isnan(r) && !t->keeps_nan ? NAN : r;
  }
}

static void to_bf16(uint16_t *out, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, x + i, sizeof bits);
    out[i] = (uint16_t)mxi_round_bits(bits, 16);
  }
}

static void unpack4(uint8_t *codes, const uint8_t *in, size_t n, int high_first) {
  for (size_t i = 0; i < n; i++) codes[i] = in[i / 2] >> ((i % 2 != 0) != (high_first != 0) ? 4 : 0) & 15;
}

const mx_value_kernels mxi_values_scalar = {values, NULL, to_bf16, unpack4};
