/* Computes sums, products and quotients of the reference's numbers. Long products and quotients are GMP integers; what leaves is 64 bits and a
 * sticky bit. */
#include "num.h"

#include <gmp.h>
#include <string.h>

_Static_assert(GMP_LIMB_BITS == 64 && GMP_NAIL_BITS == 0, "a significand is one limb");

num num_zero(int sign) { return (num){.kind = NUM_ZERO, .sign = sign}; }
num num_inf(int sign) { return (num){.kind = NUM_INF, .sign = sign}; }
num num_nan(int sign) { return (num){.kind = NUM_NAN, .sign = sign}; }
num num_pow2(int exp) { return (num){.kind = NUM_FINITE, .exp = exp, .sig = UINT64_C(1) << 63}; }

/* value * 2^exp, normalised. */
static num from_integer(int sign, uint64_t value, int exp) {
  if (value == 0) return num_zero(sign);
  num r = {.kind = NUM_FINITE, .sign = sign, .exp = exp + 63, .sig = value};
  while (!(r.sig >> 63)) r.sig <<= 1, r.exp--;
  return r;
}

num num_int(uint64_t value) { return from_integer(0, value, 0); }

num num_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  int sign = bits >> 31, field = bits >> 23 & 255;
  uint32_t man = bits & 0x7FFFFF;
  if (field == 255) return man ? num_nan(sign) : num_inf(sign);
  return field ? from_integer(sign, man | 0x800000, field - 150) : from_integer(sign, man, -149);
}

num num_double(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  int sign = bits >> 63, field = bits >> 52 & 2047;
  uint64_t man = bits & ((UINT64_C(1) << 52) - 1);
  if (field == 2047) return man ? num_nan(sign) : num_inf(sign);
  return field ? from_integer(sign, man | UINT64_C(1) << 52, field - 1075) : from_integer(sign, man, -1074);
}

num num_abs(num a) {
  a.sign = 0;
  return a;
}

num num_neg(num a) {
  a.sign = !a.sign;
  return a;
}

int num_is_zero(num a) { return a.kind == NUM_ZERO; }
int num_is_nan(num a) { return a.kind == NUM_NAN; }

static int cmp_magnitude(num a, num b) {
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1; /* ZERO < FINITE < INF */
  if (a.kind != NUM_FINITE) return 0;
  if (a.exp != b.exp) return a.exp < b.exp ? -1 : 1;
  if (a.sig != b.sig) return a.sig < b.sig ? -1 : 1;
  return a.sticky - b.sticky;
}

int num_cmp(num a, num b) {
  if (a.kind == NUM_ZERO && b.kind == NUM_ZERO) return 0;
  if (a.kind == NUM_ZERO) return b.sign ? 1 : -1;
  if (b.kind == NUM_ZERO) return a.sign ? -1 : 1;
  if (a.sign != b.sign) return a.sign ? -1 : 1;
  return a.sign ? cmp_magnitude(b, a) : cmp_magnitude(a, b);
}

/* limbs[0..n) * 2^exp (least limb first, top limb not zero) as a num. */
static num from_limbs(int sign, const mp_limb_t *limbs, mp_size_t n, int exp, int sticky) {
  int zeros = __builtin_clzll(limbs[n - 1]);
  num r = {.kind = NUM_FINITE, .sign = sign, .exp = exp + (int)n * 64 - 1 - zeros, .sig = limbs[n - 1] << zeros, .sticky = sticky};
  if (n > 1 && zeros) r.sig |= limbs[n - 2] >> (64 - zeros);
  if (n > 1 && limbs[n - 2] << zeros) r.sticky = 1; /* what is left of the limb below, zeros = 0 included */
  for (mp_size_t i = 0; i + 2 < n; i++)
    if (limbs[i]) r.sticky = 1;
  return r;
}

/* Product of the significands: limbs and their number; the exponent of the product is added to *exp. */
static mp_size_t product(mp_limb_t *out, const num *factors, int n, int *exp) {
  mp_size_t size = 1;
  out[0] = 1;
  for (int i = 0; i < n; i++) {
    mp_limb_t top = mpn_mul_1(out, out, size, factors[i].sig);
    if (top) out[size++] = top;
    *exp += factors[i].exp - 63;
  }
  return size;
}

num num_ratio(const num *over, int n_over, const num *under, int n_under) {
  int sign = 0, zero = 0, inf = 0; /* zero, inf: of the result, were it alone */
  for (int i = 0; i < n_over + n_under; i++) {
    int above = i < n_over;
    num f = above ? over[i] : under[i - n_over];
    if (f.kind == NUM_NAN) return f;
    sign ^= f.sign;
    zero |= f.kind == (above ? NUM_ZERO : NUM_INF);
    inf |= f.kind == (above ? NUM_INF : NUM_ZERO);
  }
  if (zero && inf) return num_nan(1);
  if (zero) return num_zero(sign);
  if (inf) return num_inf(sign);

  mp_limb_t a[12], b[8], quotient[12], rest[8];
  int exp_a = 0, exp_b = 0;
  mp_size_t size_a = product(a, over, n_over, &exp_a), size_b = product(b, under, n_under, &exp_b);
  if (n_under == 0) return from_limbs(sign, a, size_a, exp_a, 0);
  while (size_a < size_b + 2) { /* at least 64 bits of quotient */
    memmove(a + 1, a, (size_t)size_a * sizeof *a);
    a[0] = 0;
    size_a++;
    exp_a -= 64;
  }
  mpn_tdiv_qr(quotient, rest, 0, a, size_a, b, size_b);
  mp_size_t size_q = size_a - size_b + 1;
  while (quotient[size_q - 1] == 0) size_q--;
  int sticky = 0;
  for (mp_size_t i = 0; i < size_b; i++) sticky |= rest[i] != 0;
  return from_limbs(sign, quotient, size_q, exp_a - exp_b, sticky);
}

num num_add(num a, num b) {
  if (a.kind == NUM_NAN) return a;
  if (b.kind == NUM_NAN) return b;
  if (a.kind == NUM_INF && b.kind == NUM_INF && a.sign != b.sign) return num_nan(1);
  if (a.kind == NUM_INF) return a;
  if (b.kind == NUM_INF) return b;
  if (a.kind == NUM_ZERO && b.kind == NUM_ZERO) return num_zero(a.sign & b.sign);
  if (a.kind == NUM_ZERO) return b;
  if (b.kind == NUM_ZERO) return a;
  if (cmp_magnitude(a, b) < 0) {
    num t = a;
    a = b;
    b = t;
  }
  /* The larger one in the upper half of 127 bits, the smaller one below it; beyond that distance only its presence counts. */
  unsigned __int128 x = (unsigned __int128)a.sig << 63, y = (unsigned __int128)b.sig << 63;
  int gap = a.exp - b.exp, lost = 0;
  if (gap > 126) {
    y = 0;
    lost = 1;
  } else {
    lost = gap && (y & (((unsigned __int128)1 << gap) - 1)) != 0;
    y >>= gap;
  }
  int same = a.sign == b.sign;
  unsigned __int128 sum = same ? x + y : x - y - (unsigned)lost; /* x - (y + part of a unit) lies above x - y - 1 */
  if (sum == 0) return num_zero(0);
  mp_limb_t limbs[2] = {(mp_limb_t)sum, (mp_limb_t)(sum >> 64)};
  return from_limbs(a.sign, limbs, limbs[1] ? 2 : 1, a.exp - 126, lost);
}

num num_round(num a, num_type type) {
  static const struct {
    int bits, exp_min, exp_max;
  } types[] = {[NUM_F32] = {24, -126, 127}, [NUM_BF16] = {8, -126, 127}, [NUM_F16] = {11, -14, 15}, [NUM_F64] = {53, -1022, 1023}};
  if (a.kind != NUM_FINITE) return a;
  int cut = 64 - types[type].bits; /* bits of sig that go */
  if (a.exp < types[type].exp_min) cut += types[type].exp_min - a.exp;
  if (cut > 64) return num_zero(a.sign); /* below half the smallest subnormal; cut = 64 is at least half of it */
  uint64_t kept = cut == 64 ? 0 : a.sig >> cut, half = UINT64_C(1) << (cut - 1), rest = cut == 64 ? a.sig : a.sig & ((half << 1) - 1);
  if (rest > half || (rest == half && (a.sticky || (kept & 1)))) kept++;
  num r = from_integer(a.sign, kept, a.exp - 63 + cut);
  return r.kind == NUM_FINITE && r.exp > types[type].exp_max ? num_inf(a.sign) : r;
}

num num_mul_r(num a, num b, num_type type) { return num_round(num_ratio((num[]){a, b}, 2, NULL, 0), type); }
num num_div_r(num a, num b, num_type type) { return num_round(num_ratio(&a, 1, &b, 1), type); }
num num_add_r(num a, num b, num_type type) { return num_round(num_add(a, b), type); }
num num_sub_r(num a, num b, num_type type) {
  if (a.kind == NUM_NAN || b.kind == NUM_NAN) return a.kind == NUM_NAN ? a : b; /* a subtraction does not negate a NaN */
  return num_add_r(a, num_neg(b), type);
}

uint32_t num_bits32(num a) {
  uint32_t sign = (uint32_t)a.sign << 31;
  if (a.kind == NUM_NAN) return sign | 0x7FC00000;
  if (a.kind == NUM_INF) return sign | 0x7F800000;
  if (a.kind == NUM_ZERO) return sign;
  if (a.exp < -126) return sign | (uint32_t)(a.sig >> (40 - 126 - a.exp));
  return sign | (uint32_t)(a.exp + 127) << 23 | ((uint32_t)(a.sig >> 40) & 0x7FFFFF);
}

float num_to_float(num a) {
  uint32_t bits = num_bits32(a);
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

float num_result(num a) { return num_to_float(a.kind == NUM_NAN ? num_nan(0) : a); }

int num_floor(num a) {
  if (a.kind == NUM_ZERO) return 0;
  int whole = a.exp < 0 ? 0 : (int)(a.sig >> (63 - a.exp));
  int exact = !a.sticky && a.exp >= 0 && (a.sig << a.exp << 1) == 0;
  return a.sign ? -whole - !exact : whole;
}

int num_ceil(num a) { return -num_floor(num_neg(a)); }
