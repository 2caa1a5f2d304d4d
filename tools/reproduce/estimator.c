/* Checks the differentiable gradient estimator against its published vector. */
#include <math.h>
#include <stdio.h>

#include "mxgold/codec.h"
#include "mxgold/format.h"
#include "reproduce.h"

enum { POINTS = 20 };

static double slope(double x) { return mx_dge(mx_format_find("e2m1"), x, 5, 3); }

static float to_bf16(double x) { return (float)mx_round_to(mx_format_find("bf16"), x, &(mx_encoding){0}, 0); }

/* Over the interval from 0 to .5, half of it by symmetry: r = u^5 takes the pole of the slope at r = 0 out of the sum. */
static double mean_slope(double clip, int steps) {
  double sum = 0;
  for (int i = 0; i < steps; i++) {
    const double u = (i + 0.5) / steps, to_4 = u * u * u * u;
    sum += mx_dge(mx_format_find("e2m1"), 0.25 + 0.25 * to_4 * u, 5, clip) * 5 * to_4;
  }
  return sum / steps;
}

/* The clip acts where |r| is below; x = .25 + .25 r on the first interval. */
static double clip_ends(void) {
  double in = 0, out = 1;
  for (int i = 0; i < 60; i++) {
    const double r = (in + out) / 2;
    if (slope(0.25 + 0.25 * r) < 3)
      out = r;
    else
      in = r;
  }
  return out;
}

void gradient_estimator(void) {
  section("Differentiable gradient estimator [3.1]",
          "Derivative that stands for that of E2M1's rounding in the weight gradient: (1/k) |r|^(1/k - 1), at most 3, r from -1 to 1 over each "
          "interval of the grid; k = 5.");
  static const double at[][2] = {{0, .2},  {.25, 3}, {.5, .2},       {.6, .300960}, {1.75, 3},      {2.5, 3},
                                 {3.5, 3}, {5, 3},   {5.5, .348220}, {6, .2},       {-.6, .300960}, {7, .2}};
  char what[80], text[400];
  for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
    snprintf(what, sizeof what, "f'(%g)", at[i][0]);
    figure(what, at[i][1], slope(at[i][0]), 5e-7, "%.6f");
  }
  figure("clip acts where |r| <", 0.0338755, clip_ends(), 5e-8, "%.7f");
  figure("mean over an interval, clipped", 0.593494, mean_slope(3, 1 << 16), 5e-7, "%.6f");
  figure("mean over an interval, not clipped", 1, mean_slope(1e300, 64), 5e-7, "%.6f");
  float ours[POINTS];
  for (int i = 0; i < POINTS; i++) ours[i] = to_bf16(slope((double)to_bf16(-6 + 12.0 * i / (POINTS - 1))));
  exactly("published vector: 20 places of bfloat16 from -6 to 6, the first ten",
          "[0.2002 0.4375 0.6055 0.2168 1.8359 0.2695 0.3027 0.2695 0.2402 0.5781]", list_text(text, sizeof text, ours, POINTS / 2, "%.4f"));
  for (int i = 0; i < POINTS / 2; i++) ours[i] = ours[POINTS - 1 - i];
  exactly("published vector, the last ten from the end", "[0.2002 0.4375 0.6055 0.2168 1.8359 0.2695 0.3027 0.2695 0.2402 0.5781]",
          list_text(text, sizeof text, ours, POINTS / 2, "%.4f"));
}
