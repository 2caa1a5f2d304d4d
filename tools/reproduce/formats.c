/* Measures two-dimensional blocks, formats, orders of rounding, and rounding by few random bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/verify.h"
#include "reproduce.h"

enum { SEEDS = 8, ROWS = 256, COLS = 1024 };

#define E4M3 "scale=e4m3 block=1x16 scale.rule=value "

static double largest_difference(const float *a, const float *b, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
  return most;
}

static void transpose(float *out, const float *x, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++) out[c * rows + r] = x[r * cols + c];
}

/* max |q(W) - q(W^T)^T| */
static double asymmetry(const char *keys) {
  enum { N = 32 };
  float t[N * N], back[N * N];
  const mx_data d = {.kind = MX_DATA_GAUSSIAN};
  const mx_spec s = spec_of(keys);
  draws *stated = draws_new(0);
  float *w = draws_tensor(stated, N, N, &d);
  free(stated);
  transpose(t, w, N, N);
  mx_fake_quantize(w, w, N, N, &s, NULL, NULL, NULL);
  mx_fake_quantize(t, t, N, N, &s, NULL, NULL, NULL);
  transpose(back, t, N, N);
  const double most = largest_difference(w, back, N * N);
  free(w);
  return most;
}

void blocks_2d(void) {
  section("2-D blocks [4.3]", "16 x 16 blocks make W and its transpose the same numbers, at a price in SQNR. N(0,1); differences are of the "
                              "stated sample, 32 x 32 of numpy's default_rng(0).");
  figure("NVFP4 16x16, largest difference between q(W) and q(W^T)^T", 0, asymmetry("te-nvfp4-2d"), 0, "%.3f");
  figure("NVFP4 1x16, largest difference", 0.557, asymmetry("te-nvfp4"), 0.0005, "%.3f");
  double spread, s = mean_sqnr(&spread, "gaussian", ROWS, COLS, "te-nvfp4", SEEDS);
  sampled("NVFP4 1x16, SQNR", 20.43, s, spread, SEEDS, 0.05, "%.2f");
  s = mean_sqnr(&spread, "gaussian", ROWS, COLS, "te-nvfp4-2d", SEEDS);
  sampled("NVFP4 16x16, SQNR", 19.06, s, spread, SEEDS, 0.05, "%.2f");
  ours_alone("MXFP4 1x32, SQNR", mean_sqnr(NULL, "gaussian", ROWS, COLS, "ocp-mxfp4", SEEDS), "%.2f");
  ours_alone("MXFP4 32x32, SQNR", mean_sqnr(NULL, "gaussian", ROWS, COLS, "ocp-mxfp4 block=32x32", SEEDS), "%.2f");
}

void formats(void) {
  section("4-bit formats side by side [4.5, 4.9]", "SQNR over 256 x 1024 samples of N(0,1).");
  static const struct {
    const char *what, *spec;
    double stated;
  } rows[] = {{"MXFP4, floor", "ocp-mxfp4", 18.79},
              {"MXFP4, RCEIL", "scale.rule=value scale.round=up", 18.74},
              {"NVFP4, two-level", "te-nvfp4", 20.43},
              {"HiF4", "hif4", 21.62}};
  for (size_t i = 0; i < 4; i++) {
    double spread;
    const double s = mean_sqnr(&spread, "gaussian", ROWS, COLS, rows[i].spec, SEEDS);
    sampled(rows[i].what, rows[i].stated, s, spread, SEEDS, 0.05, "%.2f");
  }
  static const char *const more[][2] = {{"four over six, MSE, 256", "te-4over6-mse-256"},
                                        {"four over six, MAE, 256", "te-4over6-256"},
                                        {"MXFP4, even", "scale.rule=even"},
                                        {"MXFP4, QuEST", "scale.rule=quest elem.round=rtz_tie"},
                                        {"E2M1, 1x32, UE5M3", "mxfp4-ue5m3"},
                                        {"E2M1, 1x16, unrounded scale", "scale=fp32 block=1x16 scale.rule=value"}};
  for (size_t i = 0; i < sizeof more / sizeof *more; i++)
    ours_alone(more[i][0], mean_sqnr(NULL, "gaussian", ROWS, COLS, more[i][1], SEEDS), "%.2f");
}

enum { ORDER_SEEDS = 64 };

typedef struct difference {
  size_t codes, zeros, scales; /* zeros: codes that differ in the sign of zero alone, not among codes */
} difference;

/* In what a spec of E2M1 differs from another on one sample. */
static void add_difference(difference *d, const float *x, const mx_spec s[2]) {
  mx_tensor t[2];
  const size_t n = ROWS * COLS;
  uint32_t *code[2];
  for (int k = 0; k < 2; k++) {
    code[k] = malloc(n * sizeof *code[k]);
    if (!code[k] || mx_tensor_alloc(&t[k], ROWS, COLS, &s[k]) || mx_quantize(&t[k], x, ROWS, COLS, COLS, &s[k], NULL, NULL)) abort();
    mx_unpack_codes(code[k], &t[k], &s[k]);
  }
  for (size_t i = 0; i < n; i++) {
    const int differs = code[0][i] != code[1][i], zero = !((code[0][i] | code[1][i]) & 7);
    d->codes += (size_t)(differs && !zero);
    d->zeros += (size_t)(differs && zero);
  }
  for (size_t i = 0; i < n / 16; i++) d->scales += t[0].scales[i] != t[1].scales[i];
  for (int k = 0; k < 2; k++) {
    free(code[k]);
    mx_tensor_free(&t[k]);
  }
}

static difference differing(const char *a, const char *b, int bf16) {
  const mx_spec s[2] = {spec_of(a), spec_of(b)};
  const mx_data gaussian = {.kind = MX_DATA_GAUSSIAN};
  const size_t n = ROWS * COLS;
  float *x = malloc(n * sizeof *x);
  difference d = {0};
  if (!x) abort();
  for (uint64_t seed = 0; seed < ORDER_SEEDS; seed++) {
    mx_data_fill(x, ROWS, COLS, &gaussian, seed);
    for (size_t i = 0; bf16 && i < n; i++) {
      uint32_t u;
      memcpy(&u, &x[i], sizeof u);
      u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u; /* to nearest even; N(0,1) has no NaN */
      memcpy(&x[i], &u, sizeof u);
    }
    add_difference(&d, x, s);
  }
  free(x);
  return d;
}

void orders(void) {
  section(
      "Order of roundings [4.3]",
      "NVFP4 by several libraries: the same formula with its roundings in another order. How many of 2^24 codes and 2^20 scales differ from "
      "the exact\n"
      "chain, over 64 samples of N(0,1), 256 x 1024, in binary32 and rounded to bfloat16. A zero of the other sign has the same value and is "
      "counted by itself:\n"
      "it shows how a library writes what became 0, and no order of roundings. Nothing is stated.");
  static const char *const presets[] = {"te-nvfp4", "vllm-nvfp4",      "torchao-nvfp4-2level",    "modelopt-nvfp4",
                                        "ct-nvfp4", "autoround-nvfp4", "fouroversix-nvfp4-plain", "quark-nvfp4"};
  char what[100];
  for (int bf16 = 0; bf16 < 2; bf16++)
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
      const difference d = differing(E4M3 "tensor.norm=nv chain=exact", presets[i], bf16);
      const char *from = bf16 ? "bfloat16" : "binary32";
      snprintf(what, sizeof what, "%s, %s, codes of another value", presets[i], from);
      ours_alone(what, (double)d.codes, "%.0f");
      snprintf(what, sizeof what, "%s, %s, zeros of the other sign", presets[i], from);
      ours_alone(what, (double)d.zeros, "%.0f");
      snprintf(what, sizeof what, "%s, %s, scales", presets[i], from);
      ours_alone(what, (double)d.scales, "%.0f");
    }
  remark("Random binary32 hardly shows an order: a scaled value must lie within its last place of a tie. Rounded to bfloat16 it lies there "
         "often, and up to 600 "
         "codes and\n820 scales in a million differ.");
}

/* P(up) over all random integers, for x = d between the codes of 0 and .5. */
static double probability(double d, int bits, int mode) {
  const mx_encoding how = {.round = MX_ROUND_SR, .sr_mode = mode, .sr_bits = bits};
  const mx_format *e2m1 = mx_format_find("e2m1");
  unsigned up = 0;
  for (uint32_t b = 0; b < 1u << bits; b++) up += mx_encode(e2m1, d / 2, &how, b) == 1;
  return up / (double)(1u << bits);
}

static void bias(double *mean, double *most, int bits, int mode) {
  enum { GRID = 4096 };
  *mean = *most = 0;
  for (int i = 0; i < GRID; i++) {
    const double d = (i + 0.5) / GRID, e = probability(d, bits, mode) - d;
    *mean += e / GRID;
    *most = fmax(*most, fabs(e));
  }
}

void few_bits(void) {
  section("Stochastic rounding with few random bits [4.10]",
          "Bias of P(up) - d over the middles d = (k + 1/2) / 4096 of 4096 cells, all random integers tried; and P(up) at single places. "
          "Every stated digit is held.");
  static const struct {
    const char *name;
    int mode;
  } modes[] = {{"fastest", MX_SR_FASTEST}, {"fast", MX_SR_FAST}, {"sr", MX_SR_SRC}};
  static const double mean_fastest[4] = {-.25, -.125, -.03125, -.001953};
  static const int bits[4] = {1, 2, 4, 8};
  char what[80];
  double mean, most;
  for (int k = 0; k < 4; k++) {
    bias(&mean, &most, bits[k], MX_SR_FASTEST);
    snprintf(what, sizeof what, "fastest, r = %d, mean bias", bits[k]);
    figure(what, mean_fastest[k], mean, k < 3 ? 0 : 5e-7, "%.6f");
  }
  for (int m = 1; m < 3; m++)
    for (int k = 0; k < 4; k++) {
      bias(&mean, &most, bits[k], modes[m].mode);
      snprintf(what, sizeof what, "%s, r = %d, mean bias", modes[m].name, bits[k]);
      figure(what, 0, mean, 0, "%.6f");
    }
  static const double most_stated[3][2] = {{.2499, .0038}, {.1249, .0018}, {.1249, .0018}};
  for (int m = 0; m < 3; m++)
    for (int k = 0; k < 2; k++) {
      bias(&mean, &most, k ? 8 : 2, modes[m].mode);
      snprintf(what, sizeof what, "%s, r = %d, largest |bias|", modes[m].name, k ? 8 : 2);
      figure(what, most_stated[m][k], most, 5e-5, "%.4f");
    }
  static const struct {
    double d;
    int bits;
    double stated[3];
  } at[] = {{.3, 4, {.25, .3125, .3125}}, {.125, 2, {0, .25, 0}}, {.375, 2, {.25, .5, .5}}};
  for (size_t i = 0; i < 3; i++)
    for (int m = 0; m < 3; m++) {
      snprintf(what, sizeof what, "%s, P(up) at d = %g, r = %d", modes[m].name, at[i].d, at[i].bits);
      figure(what, at[i].stated[m], probability(at[i].d, at[i].bits, modes[m].mode), 0, "%g");
    }
}
