/* Checks stated numbers of scales, their derivatives and estimators that need no training: one block, the library's codes and a formula. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ablate/sums/real.h"
#include "mxgold/codec.h"
#include "mxgold/format.h"
#include "reproduce.h"

#define ENCODE "scale=e4m3 block=1x16 scale.rule=value scale.form=encode elem.arith=mul32"

enum { FOUR = 4 };

static const float block[FOUR] = {.7f, -1.9f, .3f, 2.5f};

static const mx_format *e2m1(void) { return mx_format_find("e2m1"); }

static double nearest(const mx_format *f, double x, int round) { return mx_round_to(f, x, &(mx_encoding){.round = round}, 0); }

static void same_text(const char *what, const char *stated, const char *format, double ours) {
  char text[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  snprintf(text, sizeof text, format, ours);
#pragma GCC diagnostic pop
  exactly(what, stated, text);
}

/* ---- Where a normaliser puts the largest block [1.2]; its steps are in scales.c ---- */

static void normalised(void) {
  const mx_format *f = mx_format_find("e4m3");
  const double v = 2 / mx_format_max(f);
  same_text("e4m3, 2 / 448", "0.00446", "%.5f", v);
  same_text("e4m3, 2 / 448, rounded", "0.00390625", "%.8f", nearest(f, v, MX_ROUND_RNE));
  same_text("e4m3, 2 / 448, rounded over unrounded", "0.875", "%.3f", nearest(f, v, MX_ROUND_RNE) / v);
}

/* ---- Softmax maximum and scale gradient of one block [1.1, 1.3, 1.4] ---- */

static double largest(const float *x, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; i++) most = fmax(most, fabs((double)x[i]));
  return most;
}

/* (1/beta) log sum exp(beta |x_i|), and what each value weighs in it. */
static double softmax_of(double *weight, const float *x, size_t n, double beta) {
  const double most = largest(x, n);
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += weight[i] = mxi_real_exp(fmax(beta * (fabs((double)x[i]) - most), -699));
  for (size_t i = 0; i < n; i++) weight[i] /= sum;
  return most + mxi_real_ln(sum) / beta;
}

/* df_i/dx_i of eq. 1 with Q' = q' = 1, dZ/dx_i = weight_i sign(x_i), Z the largest magnitude; s_q and f = Q(s_q x) / s_q are the quantiser's. */
static void slopes(double *out, const double *weight) {
  float f[FOUR];
  through(f, block, FOUR, ENCODE);
  const double z = largest(block, FOUR), s_q = 1 / scale_of(block, FOUR, ENCODE);
  for (int i = 0; i < FOUR; i++) {
    const double x = (double)block[i], ds = -mx_format_max(e2m1()) / (z * z) * weight[i] * (x < 0 ? -1 : 1);
    out[i] = 1 + ds / s_q * (x - (double)f[i]);
  }
}

static const char *four(char *room, size_t size, const double *x) {
  snprintf(room, size, "[%.6f %.6f %.6f %.6f]", x[0], x[1], x[2], x[3]);
  return room;
}

static void scale_gradients(void) {
  char room[120];
  double weight[32], d[FOUR], of_largest[FOUR];
  float ones[32];
  for (int i = 0; i < 32; i++) ones[i] = 1;
  same_text("softmax maximum, beta 80, 32 equal values: above the largest by", "0.043", "%.3f", softmax_of(weight, ones, 32, 80) - 1);
  same_text("[.7 -1.9 .3 2.5], unrounded encode scale s", "2.4", "%.7g",
            1 / scale_of(block, FOUR, "scale=fp32 block=1x16 scale.rule=value scale.form=encode"));
  slopes(d, (double[FOUR]){0});
  exactly("df/dX, ste", "[1.000000 1.000000 1.000000 1.000000]", four(room, sizeof room, d));
  slopes(of_largest, (double[FOUR]){0, 0, 0, 1});
  exactly("df/dX, absmax", "[1.000000 1.000000 1.000000 0.961600]", four(room, sizeof room, of_largest));
  const double z = softmax_of(weight, block, FOUR, 1);
  exactly("softmax weights, beta 1", "[0.090579 0.300733 0.060717 0.547971]", four(room, sizeof room, weight));
  slopes(d, weight);
  exactly("df/dX, softmax and hybrid, beta 1, Z = absmax", "[1.003478 0.965356 1.002332 0.978958]", four(room, sizeof room, d));
  same_text("LSE forward, beta 1, Z", "3.101533", "%.6f", z);
  same_text("LSE forward, beta 1, s", "1.934527", "%.6f", mx_format_max(e2m1()) / z);
  softmax_of(weight, block, FOUR, 80);
  slopes(d, weight);
  double apart = 0;
  for (int i = 0; i < FOUR; i++) apart = fmax(apart, fabs(d[i] - of_largest[i]));
  exactly("df/dX, softmax, beta 80, is that of absmax to 1e-6", "yes", apart < 1e-6 ? "yes" : "no");
  /* g = 10 through a block of its own; f(U) - U Q' with Q' = 1 */
  float x[32] = {0}, h[32];
  memcpy(x, block, sizeof block);
  x[16] = 10;
  through(h, x, 32, "scale=e4m3 block=1x16 scale.rule=value scale.form=encode tensor.norm=unit");
  for (int i = 0; i < FOUR; i++) d[i] = ((double)h[i] - (double)x[i]) / (double)x[16];
  exactly("gradient of g, diagonal form, g = 10, unit, dg = 1 [T16]", "[-0.007500 0.023333 -0.009167 0.000000]", four(room, sizeof room, d));
}

/* ---- Slopes that stand for that of rounding [1.5] ---- */

/* As Graphcore's code has it: (d/2) (1/w) |x - c|^(1/w - 1), x in the interval above code `low`. */
static double baseline(double x, unsigned low) {
  const double t = mx_decode(e2m1(), low), d = mx_decode(e2m1(), low + 1) - t, w = 5;
  return d / 2 / w * mxi_real_exp((1 / w - 1) * mxi_real_ln(fabs(x - (t + d / 2))));
}

/* Linear between 40 knots from -6 to 6, each at the nearest value of the grid; no knot lies on a tie. The different slopes, ascending. */
static size_t spline_slopes(float *slope) {
  enum { KNOTS = 40 };
  const double most = mx_format_max(e2m1()), spacing = 2 * most / (KNOTS - 1);
  size_t n = 0;
  for (int k = 0; k + 1 < KNOTS; k++) {
    const double a = nearest(e2m1(), -most + k * spacing, MX_ROUND_RNE), b = nearest(e2m1(), -most + (k + 1) * spacing, MX_ROUND_RNE);
    const float s = (float)((b - a) / spacing);
    size_t at = 0;
    while (at < n && slope[at] < s) at++;
    if (at < n && slope[at] == s) continue;
    memmove(slope + at + 1, slope + at, (n++ - at) * sizeof *slope);
    slope[at] = s;
  }
  return n;
}

static void estimators(void) {
  char room[400];
  float slope[40];
  same_text("`dge`, d = 0.5, 0.1 from the middle, not clipped", "0.4163", "%.4f", mx_dge(e2m1(), 0.35, 5, 1e300));
  same_text("`baseline`, the same place", "0.3155", "%.4f", baseline(0.35, 0));
  same_text("`baseline` less `dge`, d = 2, 0.3 from the middle", "0.000000000", "%.9f", fabs(baseline(5.3, 6) - mx_dge(e2m1(), 5.3, 5, 1e300)));
  same_text("spline, spacing of the knots", "0.307692", "%.6f", 2 * mx_format_max(e2m1()) / 39);
  const size_t n = spline_slopes(slope);
  exactly("spline, slopes that occur", "[0 1.625 3.25 6.5]", list_text(room, sizeof room, slope, n, "%g"));
  same_text("region of q': E4M3 to code 20", "0.046875", "%.6f", mx_decode(mx_format_find("e4m3"), 20));
  same_text("region of q': E8M0 from code 1, log2", "-126", "%g", mx_log2(mx_decode(mx_format_find("e8m0"), 1)));
  same_text("region of q': E8M0 to code 20, log2", "-107", "%g", mx_log2(mx_decode(mx_format_find("e8m0"), 20)));
}

/* ---- Q-EMA [4.8] ---- */

/* Of the two grid neighbours of w >= 0 the one nearer to its moving average. */
static double ema_rounded(double w, double ema) {
  const double low = nearest(e2m1(), w, MX_ROUND_RTZ);
  const double high = mx_decode(e2m1(), mx_encode(e2m1(), low, &(mx_encoding){0}, 0) + 1);
  return fabs(high - ema) < fabs(ema - low) ? high : low;
}

void without_training(void) {
  section("Scales, their gradients and estimators on single blocks [1.1 to 1.5, 4.8, T16, T17, T18]",
          "What is stated of gradients and can be computed without training: codes, scales and slopes are the library's, the rest is the "
          "formula of the section. Every\n"
          "stated digit is held. X = [.7 -1.9 .3 2.5], E4M3 encode scale, products rounded to binary32, Q' = q' = 1.");
  normalised();
  scale_gradients();
  estimators();
  same_text("Q-EMA: w = .24, average .26", "0.5", "%g", ema_rounded(.24, .26));
  same_text("Q-EMA: w = .24 to nearest", "0", "%g", nearest(e2m1(), .24, MX_ROUND_RNE));
}
