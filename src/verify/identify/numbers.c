/* Tests whether numbers that were read off the data hold on others. */
#include "verify/identify/numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bugs/bugs.h"

/* How many digits v needs, 9 at most, to be known to such a share of it. */
static int digits_within(double v, double share) {
  for (int digits = 1; digits < 9; digits++) {
    char text[40];
    snprintf(text, sizeof text, "%.*g", digits, v);
    if (fabs((double)strtof(text, NULL) - (double)(float)v) <= fabs(v) * share) return digits;
  }
  return 9;
}
static int digits_of(double v) { return digits_within(v, 0); }

/* By what share a number may be off and still give the same bytes. */
static double slack(inquiry *q, float *number, const mx_spec *t, int (*as_good_as)(inquiry *, const mx_spec *)) {
  const float v = *number;
  double wide = 0;
  for (int sign = -1; sign <= 1; sign += 2)
    for (int k = 2; k <= 22; k++) {
      const double by = ldexp(1, -k);
      *number = (float)((double)v * (1 + sign * by));
      if (mx_spec_check(t, NULL) || !as_good_as(q, t)) continue;
      wide += by;
      break;
    }
  *number = v;
  return wide > 0 ? wide : ldexp(1, -22); /* no number is known better than binary32 holds it */
}

/* One in so many intervals as narrow as this holds a number of as few digits by chance. */
static const double PLAIN_BY_CHANCE = 0.1;

/* Is it 1 over the format's largest number, typed with so few digits that it is another number? */
static const double WIDTH_OF_TYPED = 0x1p-6;
static int is_typed(double v, double most) {
  char number[40], right[40];
  const int digits = digits_within(1 / v, 0x1p-22);
  snprintf(number, sizeof number, "%.*g", digits, 1 / v);
  snprintf(right, sizeof right, "%.*g", digits, 1 / most);
  return digits < 9 && !strcmp(number, right);
}

/* Does a reciprocal of the largest number that is held in a type of 16 bits, another number, lie as near as wide? */
static int may_be_held_short(double v, double wide, double most) {
  static const int types[] = {MX_OPERAND_BF16, MX_OPERAND_F16};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    const double off = fabs(1 / mx_round_to(mx_operand_format(types[i]), 1 / most, &(mx_encoding){0}, 0) / v - 1);
    if (off > 0x1p-22 && off < wide) return 1;
  }
  return 0;
}

static int is_certain(double v, double wide, double most) {
  if (is_typed(v, most) && wide < WIDTH_OF_TYPED) return !may_be_held_short(v, wide, most);
  const double forms[] = {v, most / v, v / most, 1 / v};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) /* a quotient was rounded twice */
    if (wide * pow(10, digits_within((double)(float)forms[i], i ? 0x1p-22 : 0)) < PLAIN_BY_CHANCE) return 1;
  return 0;
}

/* Does some preset have the number? Then someone chose it. Returns 0 to 3, ordered as in mxi_numbers_hold(). */
static int is_of_a_preset(size_t which, float v) {
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec p;
    if (mx_preset_at(i)->alias_of || mx_preset_find(&p, mx_preset_at(i)->name, NULL)) continue;
    const float numbers[] = {p.scale_max_n, p.tensor_target, p.elem_prescale, p.scale_min};
    if (numbers[which] == v) return 1;
  }
  return 0;
}

/* Is there, in each sample, a magnitude for which the formats' own target gives the tensor scale that was seen? Then the maximum of a part of the
 * tensor explains it as well as another target does. */
static int is_of_a_part(const observation *o, const mx_spec *s, double whole) {
  for (size_t i = 0; i < o->n_samples; i++) {
    const mx_sample *x = &o->samples[i];
    const double most = (double)o->facts[i].whole.amax_finite, wanted = most * whole / (double)s->tensor_target;
    int there = 0;
    if (!(wanted < most)) return 0;
    for (size_t k = 0; k < x->rows * x->cols && !there; k++) {
      const float v = o->own ? o->own[i][k] : x->x[k / x->cols * x->ld + k % x->cols];
      there = fabs(fabs((double)v) / wanted - 1) < 0x1p-21;
    }
    if (!there) return 0;
  }
  return 1;
}

/* The stored tensor scale gives tensor.target to the last digit, whatever the kernel took for the tensor's maximum, and a maximum of few digits,
 * as in bfloat16, gives a target of few digits. So only targets that people would choose are believed: those of four digits, of two where the maximum
 * is so short, where no number among the data would do, or a power of two times a number of the formats. */
enum { TARGET_DIGITS = 4, DIGITS_OF_SHORT = 2, GIVEN_DIGITS = 2 };
/* Is it a power of two times the largest element, the largest scale or both? */
static int is_of_own_formats(const mx_spec *s) {
  const double most = mx_format_max(mx_elem_format(s->elem)), largest = mx_format_max(mx_scale_format(s->scale));
  const double numbers[] = {most, largest, most * largest};
  int exponent, is = 0;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) is |= frexp((double)s->tensor_target / numbers[i], &exponent) == 0.5;
  return is;
}
/* The largest element times the largest number of another format: that of the scales of another device. */
static int is_of_other_formats(const mx_spec *s) {
  const double most = mx_format_max(mx_elem_format(s->elem));
  for (int i = 0; i < MX_ELEM_NONE; i++)
    if ((double)s->tensor_target == most * mx_format_max(mx_elem_format(i))) return 1;
  return 0;
}
int mxi_target_is_of_formats(const mx_spec *s) { return is_of_own_formats(s) || is_of_other_formats(s); }
static int is_a_target(const observation *o, const mx_spec *s) {
  const double whole = mx_format_max(mx_elem_format(s->elem)) * mx_format_max(mx_scale_format(s->scale));
  int most = TARGET_DIGITS;
  for (size_t i = 0; i < o->n_samples; i++)
    if (mxi_is_short(o->facts[i].whole.amax_finite)) most = DIGITS_OF_SHORT;
  return (is_of_other_formats(s) || digits_of((double)s->tensor_target) <= most) && !is_of_a_part(o, s, whole);
}

/* Codes of scales count in steps of the tensor scale, which differs for other data. So a limit on them is believed only if a preset has it, or if
 * it is the least code or the least normal one. */
static int has_limit_of_data(const mx_spec *s) {
  const uint32_t normal = UINT32_C(1) << mx_scale_format(s->scale)->man_bits;
  int low = s->scale_min_byte > 1 && s->scale_min_byte != normal, high = s->scale_max_byte != 0;
  if (s->tensor_norm == MX_TENSOR_NORM_NONE) return 0;
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec p;
    if (mx_preset_at(i)->alias_of || mx_preset_find(&p, mx_preset_at(i)->name, NULL)) continue;
    low &= p.scale_min_byte != s->scale_min_byte;
    high &= p.scale_max_byte != s->scale_max_byte;
  }
  return low || high;
}

/* Kernels have one constant of their own; more than one describe another cause. */
enum { MOST_OWN = 1 };

int mxi_faults_are_plain(const mx_bug *bug) {
  double numbers[MX_FAULTS];
  const size_t n = mxi_bug_numbers(numbers, bug);
  for (size_t i = 0; i < n; i++)
    if (digits_of(numbers[i]) > TARGET_DIGITS) return 0;
  return 1;
}

int mxi_numbers_hold(inquiry *q, int (*as_good_as)(inquiry *, const mx_spec *)) {
  mx_spec t = q->best.spec;
  const double most = mx_format_max(mx_elem_format(t.elem));
  float *const numbers[] = {&t.scale_max_n, &t.tensor_target, &t.elem_prescale, &t.scale_min};
  size_t own = 0;
  if (t.tensor_given && digits_of((double)t.tensor_given_value) > GIVEN_DIGITS) return 0; /* it is that of these data */
  if (has_limit_of_data(&t)) return 0;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (*numbers[i] == 0 || (!i && (t.scale_max == MX_SCALE_MAX_ELEM || t.scale_max == MX_SCALE_MAX_POW2))) continue;
    if (is_of_a_preset(i, *numbers[i]) || (numbers[i] == &t.tensor_target && is_of_own_formats(&t))) continue;
    if (++own > MOST_OWN) return 0;
    if (numbers[i] == &t.tensor_target && !is_a_target(&q->o, &t)) return 0;
    const double wide = slack(q, numbers[i], &t, as_good_as);
    if (!is_certain((double)*numbers[i], wide, most)) return 0;
  }
  return 1;
}
