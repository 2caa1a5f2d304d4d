/* Tests whether D is a function of the right product, output by output: a ReLU, a clamp, a GELU. Each function is held to all of D; where D is
 * right it must leave the product unchanged. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/judge/internal.h"

typedef struct shape {
  const char *words;
  double (*of)(double x, double parameter);
} shape;

static double relu(double x, double unused) { return (void)unused, x > 0 ? x : 0; }
static double minus_relu(double x, double unused) { return (void)unused, x < 0 ? x : 0; }
static double magnitude(double x, double unused) { return (void)unused, fabs(x); }
static double relu_squared(double x, double unused) { return (void)unused, x > 0 ? x * x : 0; }
static double squared(double x, double unused) { return (void)unused, x * x; }
static double clamp(double x, double most) { return x > most ? most : x < -most ? -most : x; }
static double clamp_above(double x, double most) { return x > most ? most : x; }
static double clamp_below(double x, double least) { return x < least ? least : x; }
static double leaky(double x, double slope) { return x < 0 ? x * slope : x; }
static double silu(double x, double unused) { return (void)unused, x / (1 + exp(-x)); }
static double gelu(double x, double unused) { return (void)unused, x / 2 * erfc(-x * sqrt(0.5)); }
static double gelu_tanh(double x, double unused) { return (void)unused, x / (1 + exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x))); }
static double gelu_fast(double x, double unused) { return (void)unused, x / (1 + exp(-1.702 * x)); }
static double sigmoid(double x, double unused) { return (void)unused, 1 / (1 + exp(-x)); }
static double tanhyp(double x, double unused) { return (void)unused, tanh(x); }

static double cut(double x, double unused) { return (void)unused, trunc(x); }
static double to_even(double x, double unused) { return (void)unused, nearbyint(x); }
static double from_zero(double x, double unused) { return (void)unused, round(x); }
static double down(double x, double unused) { return (void)unused, floor(x); }

static double to_bf16(double x, double unused) { return (void)unused, mxi_judge_round(x, &mxi_judge_types[JUDGE_BF16], JUDGE_RNE, 0, 0); }
static double to_f16(double x, double unused) { return (void)unused, mxi_judge_round(x, &mxi_judge_types[JUDGE_F16], JUDGE_RNE, 0, 0); }

static const shape exactly[] = {{"a ReLU follows: what is negative is zero", relu},
                                {"what is positive is zero", minus_relu},
                                {"the sign of outputs is lost: they are magnitudes", magnitude},
                                {"a ReLU follows, and a square", relu_squared},
                                {"outputs are squared", squared},
                                {"outputs are cut to integers, toward zero", cut},
                                {"outputs are rounded to integers, to nearest even", to_even},
                                {"outputs are rounded to integers, ties away from zero", from_zero},
                                {"outputs are rounded down to integers", down}};
static const shape before[] = {{"the product is rounded to bfloat16", to_bf16}, {"the product is rounded to binary16", to_f16}};
static const shape nearly[] = {{"a SiLU (x times sigmoid x) follows", silu},
                               {"a GELU follows", gelu},
                               {"a GELU (by tanh) follows", gelu_tanh},
                               {"a GELU (x times sigmoid 1.702 x) follows", gelu_fast},
                               {"a sigmoid follows", sigmoid},
                               {"a tanh follows", tanhyp}};

static float to_type(const judge_job *j, double x) {
  return (float)mxi_judge_round(x,
                                &mxi_judge_types[j->type == MX_F16    ? JUDGE_F16
                                                 : j->type == MX_BF16 ? JUDGE_BF16
                                                                      : JUDGE_F32],
                                JUDGE_RNE, 0, 0);
}

/* Does the function give every output of the wrong part to the bit (a zero may have either sign)? `products`: the function comes before C and the
 * bias. */
static int gives(const judge_job *j, const float *products, double (*of)(double, double), double parameter) {
  for (size_t i = 0; i < j->right.M * j->right.N; i++) {
    if (isnan(j->want[i]) || !mxi_judge_inside(j, i)) continue;
    const float x = to_type(j, products ? mxi_judge_after(j, i, of((double)products[i], parameter)) : of((double)j->want[i], parameter));
    if (!mxi_judge_same(j, j->got[i], x) && !(x == 0 && j->got[i] == 0)) return 0;
  }
  return 1;
}

/* An output may be a function of the right one if it is this near, relative to itself or to the right one, as approximating units are.
 * HARDLY_CURVED is where these functions become zero or the number itself. A smaller distance would miss approximations; a larger one would take a
 * GELU for its other form. */
static const double NEAR_OUTPUT = 0x1p-9, NEAR_INPUT = 0x1p-12, HARDLY_CURVED = 8;
/* One in so many outputs may be farther off, because it is wrong for another cause. With more, a function of another kind would pass. */
enum { FAR_ONE_IN = 100 };

/* Does the function give nearly every output? Right outputs do not count, since most of a GELU is the number itself. */
static int near(const judge_job *j, double (*of)(double, double), uint64_t *explained) {
  uint64_t far = 0, right = 0;
  *explained = 0;
  for (size_t i = 0; i < j->right.M * j->right.N; i++) {
    const double want = (double)j->want[i], got = (double)j->got[i], x = of(want, 0);
    if (!isfinite(want) || !isfinite(got) || !mxi_judge_inside(j, i)) continue;
    const double room = fmax(NEAR_OUTPUT * fabs(x), NEAR_INPUT * fmin(fabs(want), HARDLY_CURVED));
    if (fabs(got - x) > room) {
      if (j->wrong[i])
        far++;
      else
        right++;
    } else {
      *explained += j->wrong[i];
    }
  }
  return far * FAR_ONE_IN <= *explained && right * FAR_ONE_IN <= *explained && *explained >= JUDGE_FEWEST_NEAR;
}

/* The single number that all wrong outputs have, as it is or as a magnitude; 0 if there is none. */
static double limit(const judge_job *j, int *above, int *below) {
  double most = 0;
  *above = *below = 0;
  for (size_t i = 0; i < j->right.M * j->right.N; i++) {
    if (!j->wrong[i]) continue;
    const double got = (double)j->got[i], want = (double)j->want[i];
    if (!isfinite(got) || !isfinite(want) || got * want < 0 || fabs(got) >= fabs(want)) return 0;
    if (most == 0) most = fabs(got);
    if (fabs(got) != most) return 0;
    *above |= got > 0;
    *below |= got < 0;
  }
  return most;
}

/* Tests whether each negative output was multiplied by one number. */
static double slope(const judge_job *j) {
  for (size_t i = 0; i < j->right.M * j->right.N; i++) {
    const double got = (double)j->got[i], want = (double)j->want[i];
    if (!j->wrong[i] || !isfinite(got) || !isfinite(want)) continue;
    if (want >= 0 || got == 0) return 0;
    return got / want;
  }
  return 0;
}

/* A ReLU or the like on the product, before C and the bias are added. */
static void before_the_rest(judge_job *j) {
  mx_gemm_problem p = j->right;
  float *products = noted(malloc((p.M * p.N + 1) * sizeof *products), j->lack);
  p.options.c = NULL;
  p.options.bias = NULL;
  const size_t n = sizeof exactly / sizeof exactly[0], all = n + sizeof before / sizeof before[0];
  /* Tries plain models too, since the model nearest to a product that was cut short is a narrow accumulator. */
  for (int m = 0; m < j->n_models && products && !j->out->n_findings; m++) {
    if (m != j->base && j->models[m].id == MX_GEMM_FUSED) continue;
    if (mxi_judge_run(j, products, &p, m, MX_F32, NULL, 0)) continue;
    for (size_t i = 0; i < all && !j->out->n_findings; i++) {
      const shape *f = i < n ? &exactly[i] : &before[i - n];
      if (gives(j, products, f->of, 0)) mxi_judge_say(j, j->models[m].name, j->out->differ, "%s, before C and the bias are added", f->words);
    }
  }
  free(products);
}

void mxi_judge_output(judge_job *j) {
  const uint64_t n = j->out->differ;
  const char *model = j->models[j->base].name;
  int above, below;
  uint64_t explained;
  if (n < JUDGE_FEWEST) return;
  for (size_t i = 0; i < sizeof exactly / sizeof exactly[0]; i++)
    if (gives(j, NULL, exactly[i].of, 0)) {
      mxi_judge_say(j, model, n, "%s", exactly[i].words);
      return;
    }
  if (j->raw && (j->right.options.c || j->right.options.bias)) before_the_rest(j);
  if (j->out->n_findings) return;
  const double most = limit(j, &above, &below);
  if (most > 0 && above && gives(j, NULL, below ? clamp : clamp_above, most)) {
    mxi_judge_say(j, model, n, below ? "outputs are clamped to -%.9g .. %.9g" : "outputs above %.9g are clamped to it", most, most);
    return;
  }
  if (most > 0 && below && !above && gives(j, NULL, clamp_below, -most)) {
    mxi_judge_say(j, model, n, "outputs below -%.9g are clamped to it", most);
    return;
  }
  const double by = slope(j);
  for (int digits = 1; by != 0 && digits <= 9; digits++) {
    char text[32];
    snprintf(text, sizeof text, "%.*g", digits, by);
    if (!gives(j, NULL, leaky, strtod(text, NULL)) && !gives(j, NULL, leaky, (double)strtof(text, NULL))) continue;
    mxi_judge_say(j, model, n, "negative outputs are multiplied by %s (a leaky ReLU)", text);
    return;
  }
  for (size_t i = 0; i < sizeof nearly / sizeof nearly[0]; i++)
    if (near(j, nearly[i].of, &explained)) {
      mxi_judge_say(j, "", explained, "%s", nearly[i].words);
      return;
    }
}
