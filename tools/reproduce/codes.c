/* Checks scale formats: single codes, their range, and the published vectors of whole kernels. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mxgold/codec.h"
#include "mxgold/format.h"
#include "reproduce.h"

static void decodes(const char *name, unsigned code, double stated) {
  char what[80];
  snprintf(what, sizeof what, "%s, decode 0x%02X", name, code);
  figure(what, stated, mx_decode(mx_format_find(name), code), 5e-7 * stated, "%.7g");
}

/* A scale through the quantiser: the decode scale of a block whose largest value is 6 v, without a tensor scale. */
static void encodes(const char *name, double v, double stated) {
  char what[80], keys[80];
  float x[16] = {0};
  x[0] = (float)(6 * v);
  snprintf(what, sizeof what, "%s, encode %.7g", name, v);
  snprintf(keys, sizeof keys, "scale=%s block=1x16 scale.rule=value scale.zero=zero scale.nan=error", name);
  figure(what, stated, scale_of(x, 16, keys), 0, "%.7g");
}

static void range(const char *name, double stated_max, const char *stated_ratio, double stated_binades) {
  char what[80], ratio[24];
  const mx_format *f = mx_format_find(name);
  const double over = mx_format_max(f) / mx_format_min(f), log = mx_log2(over);
  snprintf(what, sizeof what, "%s, largest", name);
  figure(what, stated_max, mx_format_max(f), 0, "%.7g");
  snprintf(what, sizeof what, "%s, largest over smallest positive", name);
  if (over == 0x1p254)
    snprintf(ratio, sizeof ratio, "2^%.0f", log); /* as it is stated */
  else
    snprintf(ratio, sizeof ratio, over < 1e6 ? "%.0f" : "%.2e", over);
  exactly(what, stated_ratio, ratio);
  snprintf(what, sizeof what, "%s, binades", name);
  figure(what, stated_binades, log, 0.05, "%.1f");
}

static void rceil(double amax, double stated) {
  char what[80];
  float x[32] = {0};
  x[0] = (float)amax;
  snprintf(what, sizeof what, "RCEIL of E2M1, largest value %.9g, code", amax);
  figure(what, stated, 127 + mx_log2(scale_of(x, 32, "scale.rule=value scale.round=up")), 0, "%.0f");
}

/* The stored byte itself, where the code is not that of a number or the scale is at the end of the range. */
static unsigned first_code(const float *x, size_t n, const char *keys) {
  const mx_spec s = spec_of(keys);
  mx_tensor t;
  if (mx_tensor_alloc(&t, 1, n, &s) || mx_quantize(&t, x, 1, n, n, &s, NULL, NULL)) abort();
  const unsigned code = t.scales[0];
  mx_tensor_free(&t);
  return code;
}

/* By the exact quotient and by TransformerEngine's amax * (1/6) in binary32. */
static void rceil_code(const char *of, float amax, unsigned stated) {
  static const char *const ways[][2] = {{"exact quotient", "scale.rule=value scale.round=up"},
                                        {"amax * (1/6) in binary32", "scale.rule=value scale.round=up scale.arith=recip32"}};
  for (size_t i = 0; i < 2; i++) {
    char what[120];
    snprintf(what, sizeof what, "RCEIL of E2M1, %s, %s, code", of, ways[i][0]);
    figure(what, stated, first_code(&amax, 1, ways[i][1]), 0, "%.0f");
  }
}

/* A block of zeros: nothing but zeros comes back; E8M0 stores 1 where a spec asks for what the AMD kernel does. */
static void zeros(void) {
  static const char *const scales[] = {"scale=e8m0 scale.rule=even", "scale=e4m3 block=1x16 scale.rule=value",
                                       "scale=e4m3 block=1x16 scale.rule=value scale.form=encode", "scale=ue5m3 block=1x16 scale.rule=value"};
  const float x[32] = {0};
  float y[32];
  char what[120];
  figure("even, a block of zeros, code", 127, first_code(x, 32, "scale.rule=even scale.allzero=one"), 0, "%.0f");
  for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
    unsigned other = 0;
    through(y, x, 32, scales[i]);
    for (int k = 0; k < 32; k++) other += !(y[k] == 0);
    snprintf(what, sizeof what, "a block of zeros, %s: values other than 0", scales[i]);
    figure(what, 0, other, 0, "%.0f");
  }
}

/* Rule even: the code of a block of one value, and what it comes back as. */
static void even(double amax, double stated, double back) {
  char what[80];
  const float x = (float)amax;
  float y;
  snprintf(what, sizeof what, "even, largest value %.9g, code", amax);
  figure(what, stated, 127 + mx_log2(scale_of(&x, 1, "scale.rule=even")), 0, "%.0f");
  if (back == 0) return;
  through(&y, &x, 1, "scale.rule=even");
  snprintf(what, sizeof what, "even, %.9g comes back as", amax);
  figure(what, back, (double)y, 0, "%g");
}

/* Bytes of the vector below, two codes each, that rounding to even makes other than rounding ties away, which gives the published ones. */
static double bytes_off(const char *keys) {
  float x[128];
  char text[160];
  mx_tensor t[2];
  for (int i = 0; i < 128; i++) x[i] = (float)(i * 13 % 37 - 18) / 4;
  for (int k = 0; k < 2; k++) {
    snprintf(text, sizeof text, "%s elem.round=%s", keys, k ? "rna" : "rne");
    const mx_spec s = spec_of(text);
    if (mx_tensor_alloc(&t[k], 2, 64, &s) || mx_quantize(&t[k], x, 2, 64, 64, &s, NULL, NULL)) return NAN;
  }
  unsigned n = 0;
  for (size_t i = 0; i < 64; i++) n += t[0].codes[i] != t[1].codes[i];
  mx_tensor_free(&t[0]);
  mx_tensor_free(&t[1]);
  return n;
}

static void code_is_nan(const char *name, unsigned code) {
  char what[80];
  snprintf(what, sizeof what, "%s, code 0x%02X", name, code);
  exactly(what, "NaN", mx_format_is_nan(mx_format_find(name), code) ? "NaN" : "a number");
}

/* Smallest normal and smallest positive number, as powers of two. */
static void smallest(const char *name, unsigned normal_code, double stated_normal, double stated_least) {
  char what[80];
  const mx_format *f = mx_format_find(name);
  if (normal_code) {
    snprintf(what, sizeof what, "%s, smallest normal, log2", name);
    figure(what, stated_normal, mx_log2(mx_decode(f, normal_code)), 0, "%g");
  }
  snprintf(what, sizeof what, "%s, smallest positive, log2", name);
  figure(what, stated_least, mx_log2(mx_format_min(f)), 0, "%g");
}

/* The input of a published vector of TransformerEngine: its four block scales. */
static void vector(const char *what, const char *keys, const char *stated) {
  float x[128], codes[4];
  for (int i = 0; i < 128; i++) x[i] = (float)(i * 13 % 37 - 18) / 4;
  const mx_spec s = spec_of(keys);
  mx_tensor t;
  mx_error err;
  char text[64];
  if (mx_tensor_alloc(&t, 2, 64, &s) || mx_quantize(&t, x, 2, 64, 64, &s, NULL, &err)) return;
  for (int i = 0; i < 4; i++) codes[i] = (float)t.scales[i];
  exactly(what, stated, list_text(text, sizeof text, codes, 4, "%.0f"));
  mx_tensor_free(&t);
}

void scale_formats(void) {
  section("Scale formats, code by code [2.1, 4.7, 5.1, 5.2, 5.3]",
          "Decoded values, scales as the quantiser rounds them, ranges, and block scales of a "
          "published vector.");
  static const struct {
    unsigned code;
    double value;
  } ue5m3[] = {{0x01, 0x1p-17}, {0x07, 5.340576e-5}, {0x08, 0x1p-14}, {0x78, 1},     {0x79, 1.125},
               {0xF7, 61440},   {0xF8, 65536},       {0xFD, 106496},  {0xFE, 114688}};
  for (size_t i = 0; i < sizeof ue5m3 / sizeof *ue5m3; i++) decodes("ue5m3", ue5m3[i].code, ue5m3[i].value);
  decodes("ue5m3_61440", 0xF7, 61440);
  decodes("ue5m3_122880", 0xFF, 122880);
  static const struct {
    double from, to;
  } to_ue5m3[] = {{0x1p-18, 0},    {1.5 * 0x1p-17, 0x1p-16}, {2.5 * 0x1p-17, 0x1p-16}, {1.0625, 1}, {1.1875, 1.25},
                  {100000, 98304}, {120000, 114688},         {1.1 * 0x1p-16, 0x1p-16}, {1.95, 2}},
    to_e4m3[] = {{464, 448}, {432, 448}, {0x1p-10, 0}, {1.5 * 0x1p-9, 0x1p-8}};
  for (size_t i = 0; i < sizeof to_ue5m3 / sizeof *to_ue5m3; i++) encodes("ue5m3", to_ue5m3[i].from, to_ue5m3[i].to);
  for (size_t i = 0; i < sizeof to_e4m3 / sizeof *to_e4m3; i++) encodes("e4m3", to_e4m3[i].from, to_e4m3[i].to);
  range("e4m3", 448, "229376", 17.8);
  range("ue5m3_61440", 61440, "8.05e+09", 32.9);
  range("ue5m3", 114688, "1.50e+10", 33.8);
  range("ue5m3_122880", 122880, "1.61e+10", 33.9);
  range("e8m0", 0x1p127, "2^254", 254);
  figure("e8m3, largest over 2^127", 1.875, mx_format_max(mx_format_find("e8m3")) / 0x1p127, 0, "%g");
  encodes("e8m3", 1.0625, 1);
  encodes("e8m3", 1.1875, 1.25);
  smallest("e8m3", 0, 0, -129);
  smallest("e8m0", 0, 0, -127);
  smallest("e4m3", 8, -6, -9);
  smallest("ue5m3", 8, -14, -17);
  smallest("ue5m3_61440", 8, -14, -17);
  smallest("ue5m3_122880", 8, -14, -17);
  code_is_nan("e8m0", 0xFF);
  code_is_nan("e4m3", 0x7F);
  code_is_nan("ue5m3", 0xFF);
  /* E8M0 to nearest between codes c and c + 1: at 1.5 * 2^(c - 127) the even code */
  encodes("e8m0", 0.75, 0.5);
  encodes("e8m0", 1.5, 2);
  encodes("e8m0", 3, 2);
  encodes("e8m0", 6, 8);
  const float tiny = 1e-30f;
  figure("e4m3, largest value 1e-30, scale of zero made the smallest, log2", -9,
         mx_log2(scale_of(&tiny, 1, "scale=e4m3 block=1x16 scale.rule=value scale.zero=min")), 0, "%g");
  figure("e4m3, largest value 1e-30, scale of zero made one", 1, scale_of(&tiny, 1, "scale=e4m3 block=1x16 scale.rule=value scale.zero=one"), 0,
         "%g");
  static const double evens[][3] = {{7, 128, 0}, {6.99, 127, 6}, {3.5, 127, 0}, {3.49, 126, 0}, {1.75, 126, 0}, {1.7499999, 125, 0}};
  for (size_t i = 0; i < sizeof evens / sizeof *evens; i++) even(evens[i][0], evens[i][1], evens[i][2]);
  static const double amax[][2] = {{6, 127}, {6.0000005, 128}, {3, 126}, {5, 127}, {7, 128}, {448, 134}};
  for (size_t i = 0; i < sizeof amax / sizeof *amax; i++) rceil(amax[i][0], amax[i][1]);
  const float nan_block = NAN;
  exactly("RCEIL of E2M1, a block of NaN, scale", "NaN",
          isnan(scale_of(&nan_block, 1, "scale.rule=value scale.round=up")) ? "NaN" : "a number");
  for (size_t i = 0; i < 2; i++) rceil_code(i ? "a block of -Inf" : "a block of Inf", i ? -INFINITY : INFINITY, 255);
  rceil_code("amax / 6 = 2^-127 (subnormal)", (float)(6 * 0x1p-127), 0);
  rceil_code("amax / 6 = 2^-127 + 2^-149", (float)(6 * (0x1p-127 + 0x1p-149)), 1);
  rceil_code("amax / 6 = 1.5 * 2^-127", (float)(9 * 0x1p-127), 1);
  rceil_code("amax / 6 = 2^-128", (float)(6 * 0x1p-128), 0);
  zeros();
  vector("TransformerEngine's vector, block scales", "scale.rule=even", "[127 127 127 127]");
  vector("TransformerEngine's vector, H16, block scales", "scale.rule=even had.size=16", "[127 128 127 127]");
  figure("TransformerEngine's vector, ties to even: bytes of 64 other than with ties away", 24, bytes_off("scale.rule=even"), 0, "%.0f");
  figure("TransformerEngine's vector, H16, ties to even: bytes of 64 other than with ties away", 2, bytes_off("scale.rule=even had.size=16"), 0,
         "%.0f");
}
