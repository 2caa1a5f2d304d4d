/* Tests ref_encode against MPFR, which shares no code with it: every boundary of every format +-2 units in the last place of binary64 and of
 * binary32, under every rounding, and 2^22 random binary32 numbers. */
#include <check.h>
#include <math.h>
#include <mpfr.h>
#include <stdint.h>
#include <string.h>

#include "lib/run.h"
#include "ref/ref.h"

static const int rounds[] = {MX_ROUND_RNE, MX_ROUND_RNA, MX_ROUND_RTZ_TIE, MX_ROUND_RTZ, MX_ROUND_RTP, MX_ROUND_RTN};
enum { N_ROUNDS = sizeof rounds / sizeof *rounds };

static mpfr_t t, half;

static void nearest_toward_zero(mpfr_t v) { /* v >= 0: ceil(v - 1/2) */
  mpfr_sub(v, v, half, MPFR_RNDN);
  mpfr_ceil(v, v);
}

/* The magnitude that |x| rounds to on the grid of f, continued without end, as a binary64. */
static double grid(const mx_format *f, double x, int round) {
  const int lowest = f->kind == MX_KIND_EXP ? -f->bias : f->kind == MX_KIND_INT ? 0 : 1 - f->bias;
  mpfr_set_d(t, fabs(x), MPFR_RNDN);
  if (mpfr_zero_p(t)) return 0;
  long e = mpfr_get_exp(t) - 1;
  if (e < lowest || f->kind == MX_KIND_INT) e = lowest;
  mpfr_mul_2si(t, t, f->man_bits - e, MPFR_RNDN);
  switch (round) {
  case MX_ROUND_RNE:
    mpfr_roundeven(t, t);
    break;
  case MX_ROUND_RNA:
    mpfr_round(t, t);
    break;
  case MX_ROUND_RTZ_TIE:
    nearest_toward_zero(t);
    break;
  case MX_ROUND_RTP:
    x < 0 ? mpfr_trunc(t, t) : mpfr_ceil(t, t);
    break;
  case MX_ROUND_RTN:
    x < 0 ? mpfr_ceil(t, t) : mpfr_trunc(t, t);
    break;
  default:
    mpfr_trunc(t, t);
  }
  mpfr_mul_2si(t, t, e - f->man_bits, MPFR_RNDN);
  return mpfr_get_d(t, MPFR_RNDN);
}

/* E8M0 has no mantissa, so 2^e and 2^(e+1) are neighbours, and a tie goes to the even code, which has the odd exponent. */
static double grid_exponent(double x, int round) {
  const double a = fabs(x), low = ldexp(1, ilogb(a)), middle = 1.5 * low;
  if (a <= 0x1p-127) return 0x1p-127;
  if (a == low) return low;
  int up = round == MX_ROUND_RTP;
  if (round == MX_ROUND_RNE) up = a > middle || (a == middle && ilogb(a) % 2 == 0);
  if (round == MX_ROUND_RNA) up = a >= middle;
  if (round == MX_ROUND_RTZ_TIE) up = a > middle;
  return up ? 2 * low : low;
}

static void one(const mx_format *f, double x, int round, int ieee) {
  if (f->kind == MX_KIND_EXP && x <= 0) return;
  if (f->sign_bits == 0 && x < 0) return;
  double want = f->kind == MX_KIND_EXP && f->man_bits == 0 ? grid_exponent(x, round) : grid(f, x, round);
  const double least = ref_format_min(f), most = ref_format_max(f);
  if (f->kind == MX_KIND_EXP && want < least) want = least;
  const int directed = round == MX_ROUND_RTZ || (round == MX_ROUND_RTP && x < 0) || (round == MX_ROUND_RTN && x > 0);
  int nan = 0;
  if (want > most) {
    const int special = ieee && !directed && (f->inf_code != MX_NO_CODE || f->nan_code != MX_NO_CODE);
    want = special && f->inf_code != MX_NO_CODE ? INFINITY : most;
    nan = special && f->inf_code == MX_NO_CODE;
  }
  if (signbit(x)) want = -want;
  const mx_encoding how = {.round = round, .overflow = ieee ? MX_OVERFLOW_IEEE : MX_OVERFLOW_SATURATE};
  const double got = ref_decode(f, ref_encode(f, x, &how, 0));
  const int keeps_zero_sign = f->sign_bits && f->kind != MX_KIND_INT && f->kind != MX_KIND_FNUZ;
  if (nan ? !isnan(got) : got != want || (got == 0 && keeps_zero_sign && signbit(got) != signbit(x)))
    ck_abort_msg("%s of %a, rounding %d, ieee %d: %a, want %a%s", f->name, x, round, ieee, got, want, nan ? " (NaN)" : "");
}

static const mx_format *format_at(int i) {
  if (i < MX_ELEM_NONE) return ref_elem_format(i);
  i -= MX_ELEM_NONE;
  return i < MX_SCALE_FP32 ? ref_scale_format(i) : NULL; /* binary32 has its own test */
}

static void around(const mx_format *f, double x) {
  float y = (float)x;
  for (int k = 0; k < 2; k++) {
    x = nextafter(x, 0);
    y = nextafterf(y, 0);
  }
  for (int k = 0; k < 5; k++) {
    for (int r = 0; r < N_ROUNDS; r++)
      for (int s = 0; s < 2; s++) {
        one(f, s ? -x : x, rounds[r], s);
        one(f, s ? -(double)y : (double)y, rounds[r], !s);
      }
    x = nextafter(x, INFINITY);
    y = nextafterf(y, INFINITY);
    if (isinf(y)) break;
  }
}

START_TEST(every_boundary_of_every_format) {
  for (int i = 0; format_at(i); i++) {
    const mx_format *f = format_at(i);
    for (uint64_t c = 0; c <= f->max_code; c++) {
      const double low = ref_decode(f, c);
      const double high = c < f->max_code ? ref_decode(f, c + 1) : 2 * low - (c ? ref_decode(f, c - 1) : 0);
      around(f, low);
      around(f, (low + high) / 2);
      if (c == f->max_code) around(f, high);
    }
  }
}
END_TEST

START_TEST(random_floats) {
  for (uint64_t i = 0; i < UINT64_C(1) << 22; i++) {
    const uint32_t bits = ref_random(1, MX_STREAM_DATA, i);
    float x;
    memcpy(&x, &bits, 4);
    if (isnan(x) || isinf(x)) continue;
    /* half of them in the range of elements */
    if (i & 1) x = ldexpf(x, -ilogbf(x == 0 ? 1 : x) + (int)(bits >> 4 & 31) - 16);
    const int n = MX_ELEM_NONE + MX_SCALE_FP32;
    one(format_at((int)(i % (unsigned)n)), (double)x, rounds[i / 7 % N_ROUNDS], (int)(i >> 3 & 1));
    one(format_at((int)(i / 3 % (unsigned)n)), (double)x, MX_ROUND_RNE, 0);
  }
}
END_TEST

/* Compares rounding to binary32 with the machine's own conversion. */
START_TEST(binary32_is_the_machines) {
  const mx_format *f = ref_scale_format(MX_SCALE_FP32);
  for (uint64_t i = 0; i < 1 << 20; i++) {
    const uint64_t bits = (uint64_t)ref_random(2, MX_STREAM_DATA, 2 * i) << 32 | ref_random(2, MX_STREAM_DATA, 2 * i + 1);
    double x;
    memcpy(&x, &bits, 8);
    if (isnan(x)) continue;
    if (i & 1) x = ldexp(x, -ilogb(x == 0 ? 1 : x) + (int)(bits % 300) - 160);
    if ((double)(float)fabs(x) > 0x1.fffffep127) continue;
    const float y = (float)x;
    uint32_t want;
    memcpy(&want, &y, 4);
    const mx_encoding how = {0};
    ck_assert_msg(ref_encode(f, x, &how, 0) == want, "%a", x);
  }
}
END_TEST

int main(void) {
  mpfr_set_default_prec(128);
  mpfr_init(t);
  mpfr_init_set_d(half, 0.5, MPFR_RNDN);
  Suite *s = suite_create("mpfr");
  TCase *c = tcase_create("encode");
  tcase_set_timeout(c, 300);
  tcase_add_test(c, every_boundary_of_every_format);
  tcase_add_test(c, random_floats);
  tcase_add_test(c, binary32_is_the_machines);
  suite_add_tcase(s, c);
  const int status = run_suite(s);
  mpfr_clear(t);
  mpfr_clear(half);
  mpfr_free_cache();
  return status;
}
