/* Finds a factor or a summand that all outputs share, reads it off the sample, and then holds it to bits: another alpha or beta, or outputs
 * multiplied or raised by a number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/sort.h"
#include "verify/judge/internal.h"

enum { TERM_ALPHA, TERM_BETA, TERM_ALL, TERM_OUTPUT, TERM_PLUS, TERMS };
/* How many outputs a number must give before it is tried on the whole sample. With fewer, more wrong numbers pass; with more, each of them costs
 * more. */
enum { FIRST = 4 };
/* Which numbers near the one that was read off are tried: of up to so many bits or decimal digits, reciprocals with so many denominators, and
 * binary32 neighbours on each side. With fewer, a number that people write is lost; each further one costs FIRST outputs a model. */
enum { BITS = 24, DIGITS = 7, DENOMINATORS = 16, NEIGHBOURS = 8, MOST = BITS + DIGITS + DENOMINATORS + 2 * NEIGHBOURS };
/* Numbers that are read off two outputs are taken for one number within this relative distance. A smaller distance would separate numbers that
 * only rounding moved, in an output of a narrow type; a larger one would join different numbers. */
static const double SAME_NUMBER = 0x1p-6;
/* So many of AGREE_OF outputs must agree on the number; the others may be wrong for another cause. */
enum { AGREE = 3, AGREE_OF = 4 };
/* Only outputs that determine the number at least this well, as a share of the best one, are used. With a smaller share rounding blurs the number;
 * with a larger one few outputs are left. */
static const double TELLS_WELL = 0.5;
static const double NOT_ZERO = 1e-30; /* less than outputs are */

typedef struct factors {
  mx_gemm_problem p;
  float alpha, beta, *bias;
} factors;

static int start(factors *f, const judge_job *j, int term, double c) {
  const mx_gemm_options *o = &j->right.options;
  const size_t n = o->bias_of_rows ? j->right.M : j->right.N;
  *f = (factors){.p = j->right, .alpha = o->alpha ? *o->alpha : 1, .beta = o->beta ? *o->beta : 1};
  if (term == TERM_ALPHA || term == TERM_ALL) f->alpha = (float)(f->alpha * c);
  if (term == TERM_BETA || term == TERM_ALL) f->beta = (float)(f->beta * c);
  if (term == TERM_ALL && o->bias) {
    f->bias = noted(malloc((n + 1) * sizeof *f->bias), j->lack);
    if (!f->bias) return 0;
    for (size_t i = 0; i < n; i++) f->bias[i] = (float)(o->bias[i] * c);
    f->p.options.bias = f->bias;
  }
  f->p.options.alpha = &f->alpha;
  f->p.options.beta = &f->beta;
  return 1;
}

/* Computes outputs with one term changed. TERM_OUTPUT and TERM_PLUS change the output after its last rounding, in binary32, and round it once
 * more. */
static int outputs(float *out, const judge_job *j, int term, double c, int model, mx_dtype type, const size_t (*pairs)[2], size_t n) {
  factors f;
  const int after = term == TERM_OUTPUT || term == TERM_PLUS, own = j->type == MX_F16 ? JUDGE_F16 : j->type == MX_BF16 ? JUDGE_BF16 : JUDGE_F32;
  const int fine = start(&f, j, after ? TERMS : term, c) && !mxi_judge_run(j, out, &f.p, model, type, pairs, n);
  const size_t total = pairs ? n : j->right.M * j->right.N;
  for (size_t i = 0; i < total && fine && after; i++)
    out[i] = (float)mxi_judge_round((double)(float)(term == TERM_PLUS ? (double)out[i] + c : (double)out[i] * c), &mxi_judge_types[own],
                                    JUDGE_RNE, 0, 0);
  free(f.bias);
  return fine;
}

static double got_at(const judge_job *j, size_t i) { return (double)j->got[j->sample[i][0] * j->right.N + j->sample[i][1]]; }

/* Finds the number on which most of the sample agrees to a few hundredths: the median of the outputs that determine it best; 0 if there is none. */
static double read_off(const judge_job *j, int term, int f64) {
  float h[JUDGE_SAMPLE], rest[JUDGE_SAMPLE] = {0};
  double number[JUDGE_SAMPLE], weight[JUDGE_SAMPLE], good[JUDGE_SAMPLE], most = 0;
  size_t n = 0, n_good = 0, agree = 0;
  if (!outputs(h, j, TERMS, 1, f64, MX_F32, (const size_t(*)[2])j->sample, j->n_sample)) return 0;
  if (term <= TERM_BETA && !outputs(rest, j, term, 0, f64, MX_F32, (const size_t(*)[2])j->sample, j->n_sample)) return 0;
  for (size_t i = 0; i < j->n_sample; i++) {
    const double d = got_at(j, i), of = (double)h[i] - (double)rest[i], x = term == TERM_PLUS ? d - (double)h[i] : (d - (double)rest[i]) / of;
    if (!isfinite(x)) continue;
    number[n] = x; /* the larger the term beside the rest, the better */
    weight[n] = term == TERM_PLUS ? 1 / (fabs((double)h[i]) + NOT_ZERO) : fabs(of) / (fabs((double)rest[i]) + fabs(of));
    most = fmax(most, weight[n++]);
  }
  for (size_t i = 0; i < n; i++)
    if (weight[i] >= most * TELLS_WELL) good[n_good++] = number[i];
  if (n < JUDGE_FEWEST) return 0;
  mxi_sort_numbers(good, n_good);
  const double x = good[n_good / 2];
  for (size_t i = 0; i < n; i++) agree += fabs(number[i] - x) <= SAME_NUMBER * fabs(x);
  return agree * AGREE_OF >= n * AGREE ? x : 0;
}

/* Numbers near x that people write: few bits, few digits, then the binary32 values around it. */
static size_t numbers(double c[MOST], double x) {
  size_t n = 0;
  for (int bits = 1; bits <= BITS; bits++) {
    const double unit = ldexp(1, ilogb(x) - bits + 1);
    c[n++] = round(x / unit) * unit;
  }
  for (int digits = 1; digits <= DIGITS; digits++) {
    const double unit = pow(10, digits - 1 - (int)floor(log10(fabs(x))));
    c[n++] = (double)(float)(round(x * unit) / unit);
  }
  for (int k = 1; k <= DENOMINATORS; k++) c[n++] = (double)(float)(1 / (round(k / x) / k)); /* reciprocals of halves, thirds, ... */
  float up = (float)x, down = up;
  for (int k = 0; k < NEIGHBOURS; k++) {
    c[n++] = (double)(up = nextafterf(up, INFINITY));
    c[n++] = (double)(down = nextafterf(down, -INFINITY));
  }
  return n;
}

static int gives(const judge_job *j, int term, double c, int model, size_t n) {
  float h[JUDGE_SAMPLE];
  if (!outputs(h, j, term, c, model, j->type, (const size_t(*)[2])j->sample, n)) return 0;
  for (size_t i = 0; i < n; i++)
    if (!mxi_judge_same(j, (float)got_at(j, i), h[i])) return 0;
  return 1;
}

/* As few digits as give the same binary32. */
static const char *digits(char text[24], double x) {
  for (int n = 1; n <= 9; n++) {
    snprintf(text, 24, "%.*g", n, x);
    if (strtof(text, NULL) == (float)x) break;
  }
  return text;
}

static void say(judge_job *j, int term, double c, int model, const judge_tally *explained) {
  const mx_gemm_options *o = &j->right.options;
  const double alpha = o->alpha ? (double)*o->alpha : 1, beta = o->beta ? (double)*o->beta : 1;
  const char *name = j->models[model].name;
  int e;
  char by[24], is[24], other[24];
  const int power = frexp(fabs(c), &e) == 0.5 && (c < 0 || e != 1);
  digits(by, c);
  digits(is, term == TERM_BETA ? (double)(float)(beta * c) : (double)(float)(alpha * c));
  digits(other, term == TERM_BETA ? beta : alpha);
  if (term == TERM_BETA && c == 2)
    mxi_judge_says(j, name, explained, "C is added twice");
  else if (term == TERM_BETA)
    mxi_judge_says(j, name, explained, "beta is %s, not %s", is, other);
  else if (term == TERM_ALPHA && (o->c || o->bias))
    mxi_judge_says(j, name, explained, "alpha is %s, not %s", is, other);
  else if (term == TERM_PLUS)
    mxi_judge_says(j, name, explained, "%s is added to every output", by);
  else if (power)
    mxi_judge_says(j, name, explained, "every output is 2^%d times what it should be%s", e - 1, c < 0 ? ", with the other sign" : "");
  else if (term == TERM_ALPHA)
    mxi_judge_says(j, name, explained, "every output is %s times what it should be: alpha is %s, not %s", by, is, other);
  else
    mxi_judge_says(j, name, explained, "every output is multiplied by %s%s", by, term == TERM_OUTPUT ? ", after it was rounded" : "");
}

/* One term, one number: the first under which every sampled output agrees. */
static int one_term(judge_job *j, int term, double x) {
  double c[MOST];
  const size_t n = numbers(c, x), first = j->n_sample < FIRST ? j->n_sample : FIRST, total = j->right.M * j->right.N;
  for (size_t i = 0; i < n; i++) {
    if (c[i] == 0 || !isfinite(c[i]) || (term != TERM_PLUS && c[i] == 1) || fabs(c[i] - x) > SAME_NUMBER * fabs(x)) continue;
    for (int m = 0; m < j->n_models; m++) {
      if (!gives(j, term, c[i], m, first) || !gives(j, term, c[i], m, j->n_sample)) continue;
      float *h = noted(malloc((total + 1) * sizeof *h), j->lack);
      judge_tally t = {0, 0, 0};
      int said = 0;
      if (h && outputs(h, j, term, c[i], m, j->type, NULL, 0)) {
        mxi_judge_start(&t, j);
        for (size_t k = 0; k < total; k++) mxi_judge_weigh(&t, j, k, h[k]);
        if ((said = mxi_judge_holds(j, &t))) say(j, term, c[i], m, &t);
      }
      free(h);
      if (said) return 1;
    }
  }
  return 0;
}

/* If no number gives the bits: are most outputs, the right ones included, within a few hundredths of one number times the right output? */
static void nearly(judge_job *j, double x) {
  judge_tally t = {0, 0, 0};
  for (size_t i = 0; i < j->right.M * j->right.N; i++) {
    const double got = (double)j->got[i], want = (double)j->want[i];
    const int near = fabs(got - x * want) <= SAME_NUMBER * fabs(x * want);
    if (j->wrong[i]) t.explained += (uint64_t)near;
    if (!j->wrong[i] && want != 0 && mxi_judge_inside(j, i)) t.breaks++;
  }
  if (t.explained * AGREE_OF >= j->out->differ * AGREE && t.breaks * JUDGE_BREAKS_ONE_IN <= t.explained && j->out->differ >= JUDGE_FEWEST_NEAR)
    mxi_judge_says(j, "", &t, "every output is about %.4g times what it should be", x);
}

void mxi_judge_factors(judge_job *j, int about) {
  const mx_gemm_options *o = &j->right.options;
  int f64 = 0;
  if (j->n_sample < JUDGE_FEWEST) return;
  while (f64 + 1 < j->n_models && j->models[f64].id != MX_GEMM_F64) f64++;
  for (int term = 0; term < (about ? 1 : TERMS); term++) {
    if ((term == TERM_BETA && !o->c) || (term == TERM_ALL && !o->c && !o->bias)) continue;
    const double x = read_off(j, term, f64);
    if (x == 0) continue;
    if (!about && one_term(j, term, x)) return;
    if (about && fabs(x - 1) >= SAME_NUMBER && !o->c && !o->bias) nearly(j, x);
  }
}
