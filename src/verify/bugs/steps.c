/* Reads the thresholds between codes off the data: under the stored scale, each element's code is compared with its scaled value. If the codes are
 * a step function of that value, the kernel rounds by a rule, whichever it is; where its ties and thresholds differ from the preset's, they are put
 * into the preset. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bugs/base.h"
#include "verify/trial/overlap.h"
#include "verify/trial/trial.h"

enum { CODES = 256, LISTED = 3, MOST_SAID = 16, LEAST = 8 };

typedef struct steps {
  double least[2][CODES], most[2][CODES]; /* scaled magnitudes with a code, by sign */
  uint64_t n[2][CODES];
  uint64_t ties[2][CODES][2];     /* exact ties above a code: stored as it, as the next */
  uint64_t off_ties[2][CODES];    /* of those, other than the preset's */
  uint64_t off[2][CODES], differ; /* elements other than the preset's by the lower of the two codes; how many of all */
  int odd;                        /* some differ by more than a tie */
} steps;

static uint32_t magnitude(const mx_format *f, uint32_t code) {
  const uint32_t sign = f->sign_bits ? 1u << (f->bits - 1) : 0;
  if (f->kind == MX_KIND_INT && code & sign) return (0u - code) & (2 * sign - 1);
  return code & ~sign;
}

static uint32_t with_sign(const mx_format *f, uint32_t m, int negative) {
  const uint32_t sign = f->sign_bits ? 1u << (f->bits - 1) : 0;
  if (!negative) return m;
  return f->kind == MX_KIND_INT ? (0u - m) & (2 * sign - 1) : m | sign;
}

typedef void visit(void *self, size_t part_index, size_t at, double y, uint32_t seen, uint32_t plain);

/* Every ordinary element under the stored scale. */
static int each_element(const base *b, visit *f, void *self) {
  const mx_format *sf = mx_scale_format(b->spec.scale);
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    mx_plan plan;
    mx_spec run = b->spec;
    run.had_size = run.had_sign = 0;
    run.flush = MX_SWITCH_OFF;
    if (!p->stats || mxi_plan_init(&plan, &run, p->rows, p->cols, NULL)) return 0;
    mxi_plan_set_amax(&plan, p->amax);
    for (size_t k = 0; k < p->down * p->across; k++) {
      mx_block_scale s;
      if (p->stats[k].has_nan || p->stats[k].has_inf || mxi_nan_scale(sf, p->seen[k]) || mxi_block_scale_find(&s, &plan, &p->stats[k], 0, k))
        continue;
      if (s.code != p->seen[k]) mxi_block_scale_given(&s, &plan, p->seen[k]);
      const size_t row = k / p->across * p->block_rows, col = k % p->across * p->block_cols;
      for (size_t r = row; r < p->rows && r < row + p->block_rows; r++)
        for (size_t c = col; c < p->cols && c < col + p->block_cols; c++) {
          const size_t at = r * p->cols + c;
          const double y = mxi_scaled_value(&plan, &s, p->x[at]);
          if (isfinite(y) && y != 0) f(self, i, at, y, p->s->codes[at], mxi_element_code(&plan, &s, p->x[at], at));
        }
    }
  }
  return 1;
}

typedef struct learner {
  steps *s;
  const mx_format *f;
  double value[CODES];
  int signs_hold;
} learner;

static void learn(void *self, size_t part_index, size_t at, double y, uint32_t seen, uint32_t plain) {
  (void)part_index, (void)at;
  learner *l = self;
  steps *s = l->s;
  const int neg = signbit(y) != 0;
  const double a = fabs(y);
  const uint32_t m = magnitude(l->f, seen), want = magnitude(l->f, plain), low = m < want ? m : want;
  if (m && seen != with_sign(l->f, m, neg)) l->signs_hold = 0;
  if (!s->n[neg][m]++)
    s->least[neg][m] = s->most[neg][m] = a;
  else {
    s->least[neg][m] = fmin(s->least[neg][m], a);
    s->most[neg][m] = fmax(s->most[neg][m], a);
  }
  /* the code below a, and whether a lies in the middle */
  const uint32_t near = m < want ? m : want, from = near ? near - 1 : 0;
  int tie = 0;
  for (uint32_t c = from; c < from + 3 && c + 1 < CODES && isfinite(l->value[c + 1]); c++)
    if (a == (l->value[c] + l->value[c + 1]) / 2 && (m == c || m == c + 1)) {
      tie = 1;
      s->ties[neg][c][m == c + 1]++;
      s->off_ties[neg][c] += m != want;
    }
  if (m == want) return;
  s->differ++;
  s->off[neg][low]++;
  if (!tie) s->odd = 1;
}

static int learn_all(learner *l, steps *s, const base *b) {
  memset(s, 0, sizeof *s);
  *l = (learner){.s = s, .f = mxi_base_elem(b), .signs_hold = 1};
  const uint32_t sign = l->f->sign_bits ? 1u << (l->f->bits - 1) : 1u << l->f->bits;
  for (uint32_t c = 0; c < CODES; c++) l->value[c] = c < sign ? mx_decode(l->f, c) : NAN;
  return each_element(b, learn, l) && l->signs_hold && s->differ >= LEAST;
}

/* ---- ties */

static int ties_decided(const steps *s) {
  for (int neg = 0; neg < 2; neg++)
    for (int c = 0; c < CODES; c++)
      if (s->ties[neg][c][0] && s->ties[neg][c][1]) return 0;
  return 1;
}

/* Do all ties of a sign go up (1) or down (0)? */
static int all_go(const steps *s, int neg, int way) {
  uint64_t with = 0;
  for (int c = 0; c < CODES; c++) {
    if (s->ties[neg][c][!way]) return 0;
    with += s->ties[neg][c][way];
  }
  return with != 0;
}

static int all_to_odd(const steps *s) {
  for (int neg = 0; neg < 2; neg++)
    for (int c = 0; c < CODES; c++)
      if (s->ties[neg][c][c % 2]) return 0; /* up from an odd code, down to an even one */
  return 1;
}

static void say_ties(candidate *c, const learner *l) {
  const steps *s = l->s;
  c->name = BUG(TIES);
  if (all_go(s, 0, 1) && all_go(s, 1, 0)) {
    c->name = BUG(TIES_TOWARD_PLUS_INFINITY);
    snprintf(c->text, sizeof c->text, "rounds ties toward +infinity (floor(y + 1/2) of the signed value)");
  } else if (all_go(s, 0, 0) && all_go(s, 1, 1)) {
    c->name = BUG(TIES_TOWARD_MINUS_INFINITY);
    snprintf(c->text, sizeof c->text, "rounds ties toward -infinity (ceil(y - 1/2) of the signed value)");
  } else if (all_to_odd(s)) {
    c->name = BUG(TIES_TO_ODD);
    snprintf(c->text, sizeof c->text, "rounds ties to the odd code");
  } else {
    size_t n = (size_t)snprintf(c->text, sizeof c->text, "rounds some ties the other way:");
    int said = 0;
    c->name = BUG(ONE_TIE);
    c->weak = 1;
    for (int k = 0; k + 1 < CODES; k++) {
      const int off[2] = {s->off_ties[0][k] != 0, s->off_ties[1][k] != 0};
      if (!off[0] && !off[1]) continue;
      const int neg = !off[0];
      if (said++ < LISTED)
        n += (size_t)snprintf(c->text + n, sizeof c->text - n, "%s that at %s%g goes to %g", said > 1 ? "," : "",
                              off[0] && off[1] ? ""
                              : neg            ? "-"
                                               : "+",
                              (l->value[k] + l->value[k + 1]) / 2, s->ties[neg][k][1] ? l->value[k + 1] : l->value[k]);
    }
    if (said > 1) c->name = BUG(TIES);
    if (said > LISTED) snprintf(c->text + n, sizeof c->text - n, ", %d in all", said);
  }
}

/* ---- thresholds */

/* Is the code a step function of the magnitude? */
static int is_monotone(const steps *s) {
  for (int neg = 0; neg < 2; neg++) {
    double below = -1;
    for (int c = 0; c < CODES; c++) {
      if (!s->n[neg][c]) continue;
      if (s->least[neg][c] <= below) return 0;
      below = s->most[neg][c];
    }
  }
  return 1;
}

static int next_code(const steps *s, int neg, int c) {
  do c++;
  while (c < CODES && !s->n[neg][c]);
  return c;
}

/* For the numbers of one sign: does the data allow that every element is cut (1), or rounded away from zero to the next value and no farther (2)? */
static int directed(const learner *l, int neg) {
  const steps *s = l->s;
  int cuts = 1, away = 1, off = 0;
  for (int c = 0; c < CODES; c++) {
    if (!s->n[neg][c]) continue;
    off += s->off[neg][c] != 0;
    const int top = next_code(s, neg, c) == CODES;
    if (s->least[neg][c] < l->value[c] || (c + 1 < CODES && !top && s->most[neg][c] >= l->value[c + 1])) cuts = 0;
    if ((!top && s->most[neg][c] > l->value[c]) || (c && s->least[neg][c] <= l->value[c - 1])) away = 0;
  }
  return off < 2 ? 0 : cuts ? 1 : away ? 2 : 0;
}

static void say_thresholds(candidate *c, const learner *l) {
  static const char *const ways[] = {"", "cuts them (toward zero)", "rounds them away from zero"};
  const steps *s = l->s;
  const int way[2] = {directed(l, 0), directed(l, 1)};
  uint64_t off[2] = {0, 0};
  size_t n = 0;
  int said = 0;
  for (int k = 0; k < CODES; k++) off[0] += s->off[0][k], off[1] += s->off[1][k];
  if ((way[0] || way[1]) && (way[0] || !off[0]) && (way[1] || !off[1])) {
    c->name = BUG(ANOTHER_ROUNDING_BY_SIGN);
    c->weak = 1;
    if (way[0] == 2 && way[1] == 1)
      snprintf(c->text, sizeof c->text, "rounds elements toward +infinity");
    else if (way[0] == 1 && way[1] == 2)
      snprintf(c->text, sizeof c->text, "rounds elements toward -infinity");
    else if (way[0] && way[1])
      snprintf(c->text, sizeof c->text, "does not round elements to nearest: it %s", ways[way[0]]);
    else
      snprintf(c->text, sizeof c->text, "does not round %s elements to nearest: it %s", way[0] ? "positive" : "negative",
               ways[way[0] ? way[0] : way[1]]);
    return;
  }
  c->name = BUG(THRESHOLDS);
  c->weak = 1;
  for (int k = 0; k < CODES; k++) {
    for (int neg = 0; neg < 2; neg++) {
      const int both = s->off[0][k] && s->off[1][k];
      if (!s->off[neg][k] || (both && neg)) continue;
      int low = k;
      while (low && !s->n[neg][low]) low--;
      const int high = next_code(s, neg, k);
      double least = s->n[neg][low] ? s->most[neg][low] : 0, most = high < CODES ? s->least[neg][high] : INFINITY;
      if (both) { /* one threshold for both signs */
        const int high2 = next_code(s, 1, k);
        if (s->n[1][low]) least = fmax(least, s->most[1][low]);
        if (high2 < CODES) most = fmin(most, s->least[1][high2]);
      }
      if (said++ >= LISTED) continue;
      const double simple = most > least && isfinite(most) ? mxi_simplest_between(least, most) : 0;
      const double middle = (l->value[k] + l->value[k + 1]) / 2;
      n += (size_t)snprintf(c->text + n, sizeof c->text - n, "%s%s%s", said > 1 ? ", " : "puts the threshold between ",
                            both  ? ""
                            : neg ? "-"
                                  : "+",
                            "");
      if (high >= CODES)
        n += (size_t)snprintf(c->text + n, sizeof c->text - n, "%g and more at infinity (it never gives more)", l->value[low]);
      else if (simple != 0)
        n +=
            (size_t)snprintf(c->text + n, sizeof c->text - n, "%g and %g at %.7g instead of %g", l->value[low], l->value[high], simple, middle);
      else
        n += (size_t)snprintf(c->text + n, sizeof c->text - n, "%g and %g between %.9g and %.9g instead of at %g", l->value[low],
                              l->value[high], least, most, middle);
    }
  }
  if (said > MOST_SAID) c->name = NULL; /* so many explain nothing */
  if (said == 1) c->name = BUG(ONE_THRESHOLD);
  if (said > LISTED) snprintf(c->text + n, sizeof c->text - n, ", and others, %d in all", said);
}

/* ---- run again */

typedef struct runner {
  const learner *l;
  const steps *s;
  int by_ties;
  trial_run run;
} runner;

static void put(void *self, size_t part_index, size_t at, double y, uint32_t seen, uint32_t plain) {
  (void)seen;
  runner *r = self;
  const steps *s = r->s;
  const int neg = signbit(y) != 0;
  const double a = fabs(y);
  uint32_t code = plain;
  if (r->by_ties) {
    const uint32_t want = magnitude(r->l->f, plain), from = want ? want - 1 : 0;
    for (uint32_t c = from; c < from + 2 && c + 1 < CODES; c++)
      if (a == (r->l->value[c] + r->l->value[c + 1]) / 2 && (s->ties[neg][c][0] || s->ties[neg][c][1]))
        code = with_sign(r->l->f, s->ties[neg][c][1] ? c + 1 : c, neg);
  } else {
    int best = -1;
    for (int c = 0; c < CODES; c++) /* the largest code that began at or below a */
      if (s->n[neg][c] && s->least[neg][c] <= a) best = c;
    if (best >= 0) code = with_sign(r->l->f, (uint32_t)best, neg);
    if (!best) code = plain & ~(r->l->f->sign_bits ? (1u << (r->l->f->bits - 1)) - 1 : 0u);
  }
  r->run.codes[part_index][at] = (uint8_t)code;
}

void mxi_step_bugs(candidate *best, const base *b) {
  steps *s = noted(malloc(sizeof *s), b->lack);
  learner l;
  if (s && learn_all(&l, s, b)) {
    const int ties = !s->odd && ties_decided(s);
    candidate c = {.l = b->plain};
    runner r = {.l = &l, .s = s, .by_ties = ties};
    if ((ties || is_monotone(s)) && mxi_run_open(&r.run, b)) {
      if (ties)
        say_ties(&c, &l);
      else
        say_thresholds(&c, &l);
      c.l.codes = 0;
      for (size_t i = 0; i < b->n; i++) memcpy(r.run.codes[i], b->parts[i].codes, b->parts[i].rows * b->parts[i].cols);
      each_element(b, put, &r);
      for (size_t i = 0; i < b->n; i++) c.l.codes += mxi_run_left(b, i, r.run.codes[i], NULL, 0, SIZE_MAX).codes;
      if (c.name) mxi_offer(best, b, &c);
      mxi_run_close(&r.run, b);
    }
  }
  free(s);
}
