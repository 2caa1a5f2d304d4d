/* Tries codes or scales that are right but written as something else: one code for another throughout the data, with a name where a rule turns the
 * one into the other. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bugs/maps.h"
#include "verify/trial/trial.h"

/* How many elements must be zero that should not be; fewer could be what a rule flushes to zero. */
enum { ENOUGH_ZEROS = 64 };
/* With more renamed codes than this and no name for what was done to them, a finding is the weakest of all: nearly any data can be described by so
 * many. */
enum { MANY_WORDS = 16 };
/* How many cells each renamed code must stand in: for elements, for elements under a weak name, for scales. A code that stands in one cell proves
 * nothing. */
enum { CELLS_EACH = 1, CELLS_EACH_WEAK = 4, CELLS_EACH_SCALE = 3 };
/* How many different codes must occur before they are taken for those of another format. */
enum { MORE_CODES_THAN = 2 };

enum { PAIRS = 4 }; /* that are listed */

typedef struct renaming {
  uint32_t count[CODES][CODES]; /* of what should be there, of what is */
  uint64_t n[CODES];
  int to[CODES]; /* -1: does not occur */
  uint64_t left, differ, changed, distinct;
} renaming;

static void rename_settle(renaming *m) {
  m->left = m->differ = m->changed = m->distinct = 0;
  for (int i = 0; i < CODES; i++) {
    int most = 0;
    m->to[i] = -1;
    if (!m->n[i]) continue;
    for (int k = 1; k < CODES; k++)
      if (m->count[i][k] > m->count[i][most]) most = k;
    m->to[i] = most;
    m->left += m->n[i] - m->count[i][most];
    m->differ += m->n[i] - m->count[i][i];
    m->changed += most != i;
    m->distinct++;
  }
}

static void pairs_of(char *out, size_t size, const renaming *m) {
  size_t n = 0;
  int said = 0;
  for (int i = 0; i < CODES && said < PAIRS; i++)
    if (m->to[i] >= 0 && m->to[i] != i && n < size)
      n += (size_t)snprintf(out + n, size - n, "%s0x%X for 0x%X", said++ ? ", " : "", m->to[i], i);
  if ((uint64_t)said < m->changed && n < size) snprintf(out + n, size - n, " and so on, %" PRIu64 " in all", m->changed);
}

static int is_subnormal(const mx_format *f, uint32_t code) {
  const uint32_t magnitude = f->sign_bits ? code & ((1u << (f->bits - 1)) - 1) : code;
  return f->man_bits && magnitude && magnitude < 1u << f->man_bits;
}

/* Tries codes as those of another 8-bit format. */
static const mx_format *other_format(const renaming *m, const mx_format *own) {
  static const char *const names[] = {"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", "ue5m3", "e8m0", "e3m4", "int8"};
  static const mx_encoding nearest = {0};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const mx_format *f = mx_format_find(names[i]);
    if (!f || f == own || f->bits != 8) continue;
    int same = m->distinct > MORE_CODES_THAN;
    for (int k = 0; k < CODES && same; k++)
      if (m->to[k] >= 0 && !mx_format_is_nan(own, (uint64_t)k) && !is_subnormal(own, (uint32_t)k)) /* steps there may be finer */
        same = (uint64_t)m->to[k] == mx_encode(f, mx_decode(own, (uint64_t)k), &nearest, 0);
    if (same) return f;
  }
  return NULL;
}

static int holds(const renaming *m, uint32_t (*f)(uint32_t, uint32_t, uint32_t), uint32_t sign, uint32_t k) {
  for (uint32_t i = 0; i < CODES; i++)
    if (m->to[i] >= 0 && (uint32_t)m->to[i] != f(i, sign, k)) return 0;
  return 1;
}
static uint32_t constant(uint32_t c, uint32_t sign, uint32_t k) { return (void)c, (void)sign, k; }
static uint32_t signless(uint32_t c, uint32_t sign, uint32_t k) { return (void)k, c & ~sign; }
static uint32_t negated(uint32_t c, uint32_t sign, uint32_t k) { return (void)k, c ^ sign; }
static uint32_t complement(uint32_t c, uint32_t sign, uint32_t k) { return (void)k, c & sign ? (0u - (c & (sign - 1))) & (2 * sign - 1) : c; }
static uint32_t saturated(uint32_t c, uint32_t sign, uint32_t k) { return (c & ~sign) > k ? (c & sign) | k : c; }
static uint32_t flushed(uint32_t c, uint32_t sign, uint32_t k) { return (c & ~sign) <= k ? c & sign : c; }
static uint32_t flushed_to_plus(uint32_t c, uint32_t sign, uint32_t k) { return (c & ~sign) <= k ? 0 : c; }
static uint32_t shifted(uint32_t c, uint32_t sign, uint32_t k) { return (void)sign, (c + k) & 255; }
/* A magnitude k codes larger, up to the last one. */
static uint32_t rebiased(uint32_t c, uint32_t sign, uint32_t k) {
  const uint32_t m = (c & ~sign) + k;
  return (c & sign) | (m < sign ? m : sign - 1);
}

static int first_used(const renaming *m) {
  int i = 0;
  while (i < CODES && m->to[i] < 0) i++;
  return i;
}

/* The smallest or the largest of the magnitudes that are changed. */
static uint32_t end_of_changed(const renaming *m, uint32_t sign, int largest) {
  uint32_t end = largest ? 0 : 255;
  for (uint32_t i = 0; i < CODES; i++) {
    const uint32_t magnitude = i & ~sign;
    if (m->to[i] >= 0 && (uint32_t)m->to[i] != i && (largest ? magnitude > end : magnitude < end)) end = magnitude;
  }
  return end;
}

static void name_codes(named *out, const renaming *m, const mx_format *f) {
  const uint32_t sign = f->sign_bits ? 1u << (f->bits - 1) : 0, first = (uint32_t)m->to[first_used(m)];
  const uint32_t top = end_of_changed(m, sign, 1), under = end_of_changed(m, sign, 0);
  const mx_format *other = f->bits == 8 ? other_format(m, f) : NULL;
  *out = (named){.name = BUG(CODES_RENAMED)};
  const int all_zero = holds(m, constant, sign, 0) || (sign && holds(m, flushed, sign, sign - 1));
  if (all_zero) {
    out->name = BUG(EVERY_ELEMENT_ZERO);
    out->weak = m->differ < ENOUGH_ZEROS; /* a few could be a rule's as well */
    snprintf(out->text, sizeof out->text, "gives zero for every element");
  } else if (m->distinct > 1 && holds(m, constant, sign, first)) {
    out->name = BUG(EVERY_CODE_THE_SAME);
    snprintf(out->text, sizeof out->text, "stores the code 0x%X for every element", first);
  } else if (sign && holds(m, negated, sign, 0)) {
    out->name = BUG(SIGN_INVERTED);
    snprintf(out->text, sizeof out->text, "inverts the signs of elements");
  } else if (sign && holds(m, signless, sign, 0)) {
    out->name = BUG(SIGN_LOST);
    snprintf(out->text, sizeof out->text, "drops the signs of elements");
  } else if (sign && holds(m, complement, sign, 0)) {
    out->name = BUG(TWOS_COMPLEMENT);
    snprintf(out->text, sizeof out->text, "stores negative elements in two's complement instead of sign and magnitude");
  } else if (sign && first > (uint32_t)first_used(m) && m->distinct > MORE_CODES_THAN &&
             holds(m, rebiased, sign, first - (uint32_t)first_used(m))) {
    out->name = BUG(ELEMENTS_WITH_ANOTHER_BIAS);
    snprintf(out->text, sizeof out->text, "stores the magnitude of every element %u codes too large (another bias of the exponent)",
             first - (uint32_t)first_used(m));
  } else if (other) {
    out->name = BUG(CODES_OF_ANOTHER_FORMAT);
    snprintf(out->text, sizeof out->text, "stores elements as %s, not as %s", other->name, f->name);
  } else if (under && holds(m, saturated, sign, under - 1)) {
    out->name = BUG(SATURATES_TOO_LOW);
    snprintf(out->text, sizeof out->text, "saturates elements at %g, not at %g", mx_decode(f, under - 1), mx_format_max(f));
  } else if (holds(m, flushed, sign, top) || holds(m, flushed_to_plus, sign, top)) {
    out->name = BUG(SMALL_ELEMENTS_FLUSHED);
    snprintf(out->text, sizeof out->text, "flushes elements of magnitude %g and less to zero%s", mx_decode(f, top),
             top && f->man_bits && top < 1u << f->man_bits ? " (those that are subnormal in the element format)" : "");
  } else {
    char pairs[200] = "";
    pairs_of(pairs, sizeof pairs, m);
    out->weak = m->changed > MANY_WORDS ? 2 : 1;
    snprintf(out->text, sizeof out->text, "writes other codes than it should: %s", pairs);
  }
}

static void name_scales(named *out, const renaming *m, const mx_format *f) {
  const uint32_t first = (uint32_t)m->to[first_used(m)], shift = (first - (uint32_t)first_used(m)) & 255;
  const mx_format *other = f->bits == 8 || f->kind == MX_KIND_EXP ? other_format(m, f) : NULL;
  const uint32_t under = end_of_changed(m, 0, 0), top = end_of_changed(m, 0, 1);
  *out = (named){.name = BUG(SCALES_RENAMED)};
  if (other) {
    out->name = BUG(SCALES_OF_ANOTHER_FORMAT);
    snprintf(out->text, sizeof out->text, "stores scales as %s, not as %s", other->name, f->name);
  } else if (m->distinct > 1 && holds(m, shifted, 0, shift)) {
    const int by = shift > 127 && !(f->kind == MX_KIND_EXP && shift == 129) ? (int)shift - 256 : (int)shift;
    out->name = BUG(SCALES_WITH_ANOTHER_BIAS);
    if (f->kind == MX_KIND_EXP && shift == 129)
      snprintf(out->text, sizeof out->text, "stores the exponent of a scale without its bias of 127 (in two's complement)");
    else
      snprintf(out->text, sizeof out->text, "stores every scale %d codes too %s%s; elements are divided by the right one", abs(by),
               by > 0 ? "large" : "small", f->kind == MX_KIND_EXP ? " (another bias)" : "");
  } else if (under && holds(m, saturated, 0, under - 1)) {
    out->name = BUG(SCALES_SATURATE_TOO_LOW);
    snprintf(out->text, sizeof out->text, "stores no scale above %g (code 0x%X); elements are divided by the right one",
             mx_decode(f, under - 1), under - 1);
  } else if (holds(m, flushed, 0, top)) {
    out->name = BUG(SMALL_SCALES_FLUSHED);
    snprintf(out->text, sizeof out->text, "stores scales up to %g as 0; elements are divided by the right one", mx_decode(f, top));
  } else {
    char pairs[200] = "";
    pairs_of(pairs, sizeof pairs, m);
    out->weak = m->changed > MANY_WORDS ? 2 : 1;
    snprintf(out->text, sizeof out->text, "stores other scales than it divides by: %s", pairs);
  }
}

static void rename_codes_of(half *best, const base *b, renaming *m) {
  const mx_format *f = mxi_base_elem(b), *sf = mx_scale_format(b->spec.scale);
  named is;
  memset(m, 0, sizeof *m);
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    for (size_t k = 0; k < p->rows * p->cols; k++) {
      const size_t r = k / p->cols, c = k % p->cols;
      const float x = p->s->x[r * p->s->ld + c];
      if (x != x || mxi_nan_scale(sf, p->seen[r / p->block_rows * p->across + c / p->block_cols])) continue;
      m->count[p->codes[k]][p->s->codes[k]]++;
      m->n[p->codes[k]]++;
    }
  }
  rename_settle(m);
  if (!m->changed) return;
  name_codes(&is, m, f);
  /* If the tensor scale is missing, all elements are tiny as well: that cause is tried later. */
  if (b->spec.tensor_norm != MX_TENSOR_NORM_NONE && !strcmp(is.name, "every element zero")) is.weak = 1;
  if (m->differ < (is.weak ? CELLS_EACH_WEAK : CELLS_EACH) * m->changed) return;
  half_better(best, &is, m->left);
}

static void rename_scales_of(half *best, const base *b, renaming *m) {
  const mx_format *f = mx_scale_format(b->spec.scale);
  named is;
  memset(m, 0, sizeof *m);
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    for (size_t k = 0; k < p->down * p->across; k++) {
      if (p->scales[k] > 255 || p->seen[k] > 255) return;
      if (mxi_nan_scale(f, p->scales[k]) && mxi_nan_scale(f, p->seen[k])) continue;
      m->count[p->scales[k]][p->seen[k]]++;
      m->n[p->scales[k]]++;
    }
  }
  rename_settle(m);
  if (!m->changed || m->distinct < 2 || m->differ < CELLS_EACH_SCALE * m->changed) return;
  name_scales(&is, m, f);
  half_better(best, &is, m->left);
}

void mxi_rename_codes(half *best, const base *b) {
  renaming *m = noted(malloc(sizeof *m), b->lack);
  if (m) rename_codes_of(best, b, m);
  free(m);
}

void mxi_rename_scales(half *best, const base *b) {
  renaming *m = noted(malloc(sizeof *m), b->lack);
  if (m) rename_scales_of(best, b, m);
  free(m);
}
