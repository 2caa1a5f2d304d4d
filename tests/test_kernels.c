/* Each ISA against the scalar path, bit for bit: every preset on lengths around vectors and blocks, unaligned inputs, guard bytes around the output. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/isa.h"
#include "mxgold/mxgold.h"

enum { GUARD = 64, ROWS = 2, MOST = 1100 };

static uint64_t state = 20261121;
static uint32_t next(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 32);
}

/* Numbers of a block's own size; each kind of data has blocks of the other kinds in it. */
static void fill(float *x, size_t n, int kind) {
  int exponent = 0;
  for (size_t i = 0; i < n; i++) {
    if (i % 16 == 0) exponent = (int)(next() % 24) - 12 + (kind == 2 ? (int)(next() % 240) - 120 : 0);
    float v = ldexpf((float)(int32_t)next(), exponent - 31);
    if (kind == 1) v = (float)((int)(next() % 97) - 48) / 8 * ldexpf(1, exponent / 4); /* ties */
    if (kind == 2 && next() % 40 == 0) v = next() % 2 ? 0.0f : -0.0f;
    if (kind == 2 && next() % 100 == 0) v = next() % 3 ? ldexpf(v, -130) : next() % 2 ? INFINITY : (next() % 2 ? NAN : -NAN);
    if (kind == 3) v = ldexpf(1.5f + (float)(next() % 3 - 1) * 0x1p-23f, exponent) * (next() % 2 ? 1.0f : -1.0f); /* around a threshold */
    if (kind == 4 && next() % 4 == 0) v = ldexpf(next() % 2 ? 1.0f : -1.0f, exponent + (int)(next() % 4));        /* powers of two */
    x[i] = v;
  }
}

/* A tensor of two rows whose arrays have guards on both sides. */
typedef struct guarded {
  mx_tensor t;
  uint8_t *codes, *scales;
  size_t n_codes, n_scales;
} guarded;

static void begin(guarded *g, size_t cols, const mx_spec *spec) {
  ck_assert_int_eq(mx_tensor_layout(&g->t, ROWS, cols, spec), MX_OK);
  g->n_codes = g->t.rows * g->t.code_stride;
  g->n_scales = g->t.scale_rows * g->t.scale_cols * g->t.scale_bytes;
  g->codes = malloc(g->n_codes + 2 * GUARD);
  g->scales = malloc(g->n_scales + 2 * GUARD);
  memset(g->codes, 0xA5, g->n_codes + 2 * GUARD);
  memset(g->scales, 0xA5, g->n_scales + 2 * GUARD);
  g->t.codes = g->codes + GUARD;
  g->t.scales = g->scales + GUARD;
  g->t.micro = spec->scale_rule == MX_SCALE_RULE_HIF4 ? calloc(g->n_scales * 3 + 1, 1) : NULL;
}

static int intact(const uint8_t *at, size_t n) {
  for (size_t i = 0; i < GUARD; i++)
    if (at[i] != 0xA5 || at[GUARD + n + i] != 0xA5) return 0;
  return 1;
}

static void end(guarded *g) {
  free(g->codes);
  free(g->scales);
  free(g->t.micro);
}

/* Returns the values compared. */
static size_t hold(const char *name, const char *isa, uint32_t off, const mx_spec *spec, const float *x, size_t cols, size_t ld) {
  guarded got, want;
  begin(&got, cols, spec);
  begin(&want, cols, spec);
  const mx_status a = mx_quantize(&got.t, x, ROWS, cols, ld, spec, &(mx_exec){.isa_mask = off}, NULL);
  const mx_status b = mx_quantize(&want.t, x, ROWS, cols, ld, spec, &(mx_exec){.isa_mask = MX_ISA_ALL}, NULL);
  ck_assert_int_eq(a, b);
  ck_assert_msg(intact(got.codes, got.n_codes) && intact(got.scales, got.n_scales), "%s, %s, %zu columns: wrote past the end", name, isa, cols);
  if (!a) {
    ck_assert_msg(!memcmp(got.t.scales, want.t.scales, got.n_scales), "%s, %s, %zu columns: scales differ from the scalar path", name, isa,
                  cols);
    for (size_t i = 0; i < got.n_codes; i++)
      ck_assert_msg(got.t.codes[i] == want.t.codes[i], "%s, %s, %zu columns: code byte %zu is %02x, scalar %02x", name, isa, cols, i,
                    got.t.codes[i], want.t.codes[i]);
    float *y = malloc((ROWS * cols + 1) * sizeof *y), *z = malloc((ROWS * cols + 1) * sizeof *z);
    y[ROWS * cols] = z[ROWS * cols] = 3;
    ck_assert_int_eq(mx_dequantize(y, cols, &got.t, spec, &(mx_exec){.isa_mask = off}), MX_OK);
    ck_assert_int_eq(mx_dequantize(z, cols, &want.t, spec, &(mx_exec){.isa_mask = MX_ISA_ALL}), MX_OK);
    ck_assert_msg(!memcmp(y, z, (ROWS * cols + 1) * sizeof *y), "%s, %s, %zu columns: values differ from the scalar path", name, isa, cols);
    free(y);
    free(z);
  }
  end(&got);
  end(&want);
  return ROWS * cols;
}

static size_t every_preset(uint32_t bit) {
  static const size_t lengths[] = {1, 15, 16, 17, 31, 32, 33, 63, 65, 255, 256, 257, 511, 512, 513, 544, 1023, 1056};
  float *room = malloc((ROWS * MOST + 16) * sizeof *room);
  size_t values = 0;
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec spec;
    if (mx_preset_at(i)->alias_of) continue;
    ck_assert_int_eq(mx_preset_find(&spec, mx_preset_at(i)->name, NULL), MX_OK);
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
      for (int kind = 0; kind < 5; kind++) {
        if ((i + k + (size_t)kind) % 7) continue; /* each preset meets each kind of data and each length, not every pair */
        float *x = room + (k + 1) % 5;            /* aligned to a float alone */
        fill(x, ROWS * MOST, kind);
        values += hold(mx_preset_at(i)->name, mx_isa_name(bit), MX_ISA_ALL & ~bit, &spec, x, lengths[k], lengths[k] + k % 4);
      }
  }
  free(room);
  return values;
}

START_TEST(quantize_and_dequantize) {
  for (uint32_t bit = 1; bit & MX_ISA_ALL; bit <<= 1) {
    if (!(mx_isa_usable(0) & bit)) {
      printf("kernels: quantize, dequantize, %s: not run: host lacks it\n", mx_isa_name(bit));
      continue;
    }
    printf("kernels: quantize, dequantize, %s: %zu values equal the scalar path\n", mx_isa_name(bit), every_preset(bit));
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("kernels");
  TCase *t = tcase_create("rows");
  tcase_set_timeout(t, 600);
  tcase_add_test(t, quantize_and_dequantize);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
