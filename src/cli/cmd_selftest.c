/* Runs mxgold selftest, which asks whether this build, on this machine, is one whose bits can be trusted. Seconds; make check and make exhaustive go
 * further. */
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "mxgold/mxgold.h"
#include "cli/base/out.h"

struct args {
  int json;
};

static const cli_option options[] = {
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {0},
};

/* What a check found wrong, in words; empty if all is well. */
typedef char finding[160];

static void subnormals_kept(finding why) {
  volatile float least = FLT_MIN, half = 0.5f, zero = 0;
  volatile float made = least * half; /* FTZ would make it 0 */
  volatile float read = made + zero;  /* DAZ would read it as 0 */
  volatile double wide = DBL_MIN;
  if (made == 0)
    snprintf(why, sizeof(finding), "subnormal results are flushed to zero (FTZ)");
  else if (read == 0)
    snprintf(why, sizeof(finding), "subnormal operands are read as zero (DAZ)");
  else if (wide * 0.5 == 0)
    snprintf(why, sizeof(finding), "subnormal binary64 results are flushed to zero");
}

static void rounds_to_nearest(finding why) {
  volatile float one = 1, tie = 0x1p-24f, above = 0x1.000002p-24f;
  volatile float up = one + above, even = one + tie, minus = -one - above;
  if (fegetround() != FE_TONEAREST || up != 0x1.000002p0f || even != 1 || minus != -0x1.000002p0f)
    snprintf(why, sizeof(finding), "the rounding mode is not to nearest, ties to even");
}

static void rounds_each_operation(finding why) {
  volatile float a = 0x1.001p0f, c = -0x1.002p0f;
  volatile double d = 0x1.0000001p0, e = -0x1.0000002p0;
  if (FLT_EVAL_METHOD != 0)
    snprintf(why, sizeof(finding), "binary32 operations are done in a wider type (FLT_EVAL_METHOD)");
  else if (a * a + c != 0)
    snprintf(why, sizeof(finding), "a product and a sum are fused (binary32)");
  else if (d * d + e != 0)
    snprintf(why, sizeof(finding), "a product and a sum are fused (binary64)");
}

/* Values typed by hand from the standards, not from the tables that the program uses. */
static void decodes(finding why) {
  static const double e2m1[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
  static const struct {
    const char *format;
    uint32_t code;
    double value;
  } known[] = {{"e2m3", 0x01, 0.125},
               {"e2m3", 0x1F, 7.5},
               {"e3m2", 0x01, 0.0625},
               {"e3m2", 0x1F, 28},
               {"e4m3", 0x01, 0x1p-9},
               {"e4m3", 0x38, 1},
               {"e4m3", 0x7E, 448},
               {"e4m3", 0xFE, -448},
               {"e5m2", 0x01, 0x1p-16},
               {"e5m2", 0x7B, 57344},
               {"e5m2", 0x7C, INFINITY},
               {"int8", 0x7F, 127.0 / 64},
               {"int8", 0x80, -2},
               {"e4m3fnuz", 0x7F, 240},
               {"e5m2fnuz", 0x01, 0x1p-17},
               {"e8m0", 0x00, 0x1p-127},
               {"e8m0", 0x7F, 1},
               {"e8m0", 0xFE, 0x1p127},
               {"ue5m3", 0x01, 0x1p-17},
               {"ue5m3", 0xFE, 114688},
               {"ue5m3_61440", 0xF7, 61440},
               {"ue5m3_122880", 0xFF, 122880}};
  static const struct {
    const char *format;
    uint32_t code;
  } nans[] = {{"e4m3", 0x7F}, {"e4m3", 0xFF}, {"e5m2", 0x7D}, {"e4m3fnuz", 0x80}, {"e8m0", 0xFF}, {"ue5m3", 0xFF}, {"ue5m3_61440", 0xF8}};
  for (uint32_t c = 0; c < 16; c++) {
    const double v = mx_decode(mx_format_find("e2m1"), c);
    if (v != e2m1[c] || !signbit(v) != !signbit(e2m1[c])) snprintf(why, sizeof(finding), "e2m1 0x%X is %g, expected %g", c, v, e2m1[c]);
  }
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    const double v = mx_decode(mx_format_find(known[i].format), known[i].code);
    if (v != known[i].value)
      snprintf(why, sizeof(finding), "%s 0x%02X is %.9g, expected %.9g", known[i].format, known[i].code, v, known[i].value);
  }
  for (size_t i = 0; i < sizeof nans / sizeof nans[0]; i++)
    if (!isnan(mx_decode(mx_format_find(nans[i].format), nans[i].code)))
      snprintf(why, sizeof(finding), "%s 0x%02X is a number, expected NaN", nans[i].format, nans[i].code);
}

/* SPEC 2: the ties of e2m1 under three rules. */
static void rounds_ties(finding why) {
  static const double ties[7] = {.25, .75, 1.25, 1.75, 2.5, 3.5, 5};
  static const struct {
    int round;
    double values[7];
  } want[] = {{MX_ROUND_RNE, {0, 1, 1, 2, 2, 4, 4}}, {MX_ROUND_RNA, {.5, 1, 1.5, 2, 3, 4, 6}}, {MX_ROUND_RTZ_TIE, {0, .5, 1, 1.5, 2, 3, 4}}};
  const mx_format *f = mx_elem_format(MX_ELEM_E2M1);
  for (size_t w = 0; w < sizeof want / sizeof want[0]; w++)
    for (int i = 0; i < 7; i++) {
      const mx_encoding how = {.round = want[w].round};
      const double v = mx_round_to(f, ties[i], &how, 0);
      if (v != want[w].values[i]) snprintf(why, sizeof(finding), "e2m1 of %g is %g, expected %g", ties[i], v, want[w].values[i]);
    }
}

/* Random123's known answer for key 0, counter 0, and words of a second implementation. */
static void draws_philox(finding why) {
  static const struct {
    uint64_t seed;
    uint32_t stream;
    uint64_t index;
    uint32_t word;
  } known[] = {{0, 0, 0, 0x6627e8d5},
               {0, 0, 1, 0xe169c58d},
               {0, 0, 2, 0xbc57ac4c},
               {0, 0, 3, 0x9b00dbd8},
               {0, 0, 5, 0x5cb200db},
               {42, 1, 7, 0x39c6bd08},
               {0x299f31d0a4093822, 3, 0x123456789abc, 0xf9c3be59},
               {UINT64_MAX, 2, 0, 0xb2efe78c}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (mx_random(known[i].seed, known[i].stream, known[i].index) != known[i].word)
      snprintf(why, sizeof(finding), "Philox4x32-10: known answer %zu differs", i);
}

/* Quantise one row of n values; scales and codes as hex. */
static int quantised(char *hex, size_t size, const mx_spec *spec, const float *x, size_t n) {
  mx_tensor t;
  mx_error err;
  if (mx_tensor_alloc(&t, 1, n, spec)) return snprintf(hex, size, "out of memory"), 0;
  const mx_status status = mx_quantize(&t, x, 1, n, n, spec, NULL, &err);
  size_t at = 0;
  for (size_t i = 0; i < t.scale_cols && at < size; i++) at += (size_t)snprintf(hex + at, size - at, "%02x", t.scales[i]);
  if (at < size) at += (size_t)snprintf(hex + at, size - at, " ");
  for (size_t i = 0; i < t.code_stride && at < size; i++) at += (size_t)snprintf(hex + at, size - at, "%02x", t.codes[i]);
  mx_tensor_free(&t);
  if (status) snprintf(hex, size, "%.100s", err.text);
  return !status;
}

/* SPEC 3.1: the decode scale of a block by its largest magnitude, under seven rules. */
static void scales_blocks(finding why) {
  static const float amax[6] = {1, 3.5f, 4, 5, 6.5f, 7};
  static const struct {
    const char *keys;
    double scale[6];
  } rules[] = {
      {"", {.25, .5, 1, 1, 1, 1}},
      {"scale.rule=value scale.round=up", {.25, 1, 1, 1, 2, 2}},
      {"scale.rule=even", {.25, 1, 1, 1, 1, 2}},
      {"scale.rule=value", {.125, .5, .5, 1, 1, 1}},
      {"scale.rule=value scale.form=encode", {.125, .5, .5, 1, 1, 1}},
      {"scale.rule=value scale.form=encode scale.round=up", {.125, .5, .5, .5, 1, 1}},
      {"scale.rule=value scale.form=encode scale.round=up scale.max=pow2", {.25, .5, 1, 1, 1, 1}},
  };
  for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++)
    for (int i = 0; i < 6; i++) {
      mx_spec spec = {0};
      char hex[128];
      unsigned byte = 0;
      if (mx_spec_parse(&spec, rules[r].keys, NULL) || !quantised(hex, sizeof hex, &spec, &amax[i], 1) || sscanf(hex, "%2x", &byte) != 1)
        byte = 255;
      double scale = mx_decode(mx_scale_format(MX_SCALE_E8M0), byte);
      if (spec.scale_form == MX_SCALE_FORM_ENCODE) scale = 1 / scale;
      if (scale != rules[r].scale[i])
        snprintf(why, sizeof(finding), "'%s': amax %g has scale %g, expected %g", rules[r].keys, (double)amax[i], scale, rules[r].scale[i]);
    }
}

/* Thirty-two values, (37 i mod 64 - 31.5) / 8, under presets whose bytes are held to the library's own in tests/peers; and the worked number of SPEC 3.3. */
static void presets(finding why) {
  static const float worked[4] = {0.7f, -1.9f, 0.3f, 2.5f};
  static const struct {
    const char *preset, *more, *want;
  } golden[] = {
      {"te-nvfp4", "tensor.given=10", "6e e371000000000000"},
      {"ocp-mxfp4", "", "7e 3f6f7df9e4c6175f7e7bf2d6974f6e7c"},
      {"torchao-rceil", "", "7f 1e4d5be8c2a4063d5c69d1b4952e4c5a"},
      {"quark-even", "", "7f 1e4d5be8c2a4063d5c69d1b4952e4c5a"},
      {"triton-up-e4m3", "", "79 f863f370ec75d4f668f171e87654f56cf073e37861f36eec74daf767f271ea76"},
      {"torchao-floor-e3m2", "", "7c 3f163d1c3a1e2e3f183d1d381f0e3e1a3c1d361f143e1b3a1e313f183d1c391f"},
      {"te-nvfp4", "", "7e7e 2f5e6cf9e3b6174e6d7ae2c5963f5e7c"},
      {"mlx-nvfp4", "", "3232 2f5e7cf9e3b6174f6d7ae2c5963f5e7c"},
  };
  for (size_t g = 0; g < sizeof golden / sizeof golden[0]; g++) {
    float ramp[32];
    for (int i = 0; i < 32; i++) ramp[i] = ((float)(37 * i % 64) - 31.5f) / 8;
    mx_spec spec;
    char hex[160];
    if (mx_preset_find(&spec, golden[g].preset, NULL) || mx_spec_parse(&spec, golden[g].more, NULL))
      snprintf(hex, sizeof hex, "no such preset");
    else
      quantised(hex, sizeof hex, &spec, *golden[g].more ? worked : ramp, *golden[g].more ? 4 : 32);
    if (strcmp(hex, golden[g].want)) snprintf(why, sizeof(finding), "%s gives %.120s", golden[g].preset, hex);
  }
}

static const struct {
  const char *name;
  void (*check)(finding why);
} checks[] = {{"subnormals are kept (FTZ and DAZ off)", subnormals_kept},       {"rounding is to nearest, ties to even", rounds_to_nearest},
              {"each operation is rounded, none fused", rounds_each_operation}, {"codes decode to the values of the standards", decodes},
              {"ties of e2m1 under rne, rna, rtz_tie (SPEC 2)", rounds_ties},   {"Philox4x32-10 gives Random123's known answers", draws_philox},
              {"block scales by seven rules (SPEC 3.1)", scales_blocks},        {"presets give their golden blocks", presets}};
enum { N_CHECKS = sizeof checks / sizeof checks[0] };

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  int n_bad = 0;
  out *o = out_new();
  out_table(o, "checks");
  for (size_t i = 0; i < N_CHECKS; i++) {
    finding why = "";
    checks[i].check(why);
    n_bad += *why != 0;
    out_row(o);
    out_text(o, "check", checks[i].name);
    out_text(o, "result", *why ? why : "ok");
  }
  out_end(o);
  out_table(o, "kernels");
  const char *what;
  uint32_t isa;
  for (size_t i = 0; (what = mx_isa_kernels(i, &isa, 0)); i++) {
    out_row(o);
    out_text(o, "operations", what);
    out_text(o, "ISA", isa ? mx_isa_name(isa) : "scalar");
  }
  out_end(o);
  char sets[128] = "";
  for (uint32_t bit = 1; bit & MX_ISA_ALL; bit <<= 1)
    if (mx_isa_host() & bit)
      snprintf(sets + strlen(sets), sizeof sets - strlen(sets), "%s%s%s", *sets ? ", " : "", mx_isa_name(bit),
               mx_isa_usable(0) & bit ? "" : " (switched off)");
  out_text(o, "instruction_sets", *sets ? sets : "none");
  out_text(o, "version", MX_VERSION);
  out_i64(o, "failed", n_bad);
  const int rc = out_print(o, a->json);
  return rc ? rc : n_bad ? CLI_DIFFERS : CLI_FINE;
}

const cli_command cmd_selftest = {
    options, sizeof(struct args), run,
    "Floating-point environment, tables against values typed by hand, random numbers against known answers, worked numbers of the\n"
    "specification, golden blocks of presets. Exit status 1 if something differs: bits of this build cannot be trusted then."};
