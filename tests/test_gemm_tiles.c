/* Tests the product by AMX tiles: the source of the kernel over tiles in plain C on every machine, and over real tiles if there are any. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/gemm.h"
#include "gemm/internal.h"
#include "kernels/tile_state.h"
#include "lib/operands.h"
#include "lib/run.h"
#include "lib/tiles_played.h"
#include "mxgold/isa.h"

static const char *const specs[] = {"",
                                    "block=1x16 scale=e4m3",
                                    "block=1x16",
                                    "block=1x8",
                                    "block=1x64",
                                    "block=1x96",
                                    "block=1x40",
                                    "block=row",
                                    "block=1x72",
                                    "block=1x5",
                                    "nibble=high_first",
                                    "block=1x128 scale=ue5m3",
                                    "block=16x32"};
enum { SPECS = sizeof specs / sizeof *specs };
/* Sizes around those of tiles, panels, the blocks that are ahead, and a piece of B (32 blocks of 32, 64 of 16). */
static const size_t sizes[][3] = {{5, 1, 32},   {16, 16, 64},  {17, 33, 96},  {6, 16, 128},  {33, 18, 160},  {9, 15, 65},
                                  {8, 40, 250}, {20, 20, 992}, {33, 5, 1024}, {16, 3, 2080}, {260, 2, 1056}, {300, 19, 31}};
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef struct product {
  mx_tensor a, b;
  mx_spec spec;
  float *got, *want;
} product;

static product make(const char *keys, const size_t size[3], operands_kind kind) {
  product p = {.spec = operands_spec(keys)};
  operands_fill(&p.a, &p.spec, size[0], size[2], kind, 31);
  operands_fill(&p.b, &p.spec, size[1], size[2], kind, 41);
  p.got = malloc(size[0] * size[1] * sizeof *p.got);
  p.want = malloc(size[0] * size[1] * sizeof *p.want);
  ck_assert(p.got && p.want);
  return p;
}

static void drop(product *p) {
  mx_tensor_free(&p->a);
  mx_tensor_free(&p->b);
  free(p->got);
  free(p->want);
}

static int has_amx(void) { return mx_isa_usable(0) & MX_ISA_AMX && mxi_tiles_permitted(); }

/* Whether the processor says that no tile is configured. */
static int tiles_released(void) {
#if defined(__x86_64__)
  uint8_t shapes[64], any = 0;
  __asm__ volatile("sttilecfg %0" : "=m"(shapes));
  for (int i = 0; i < 64; i++) any |= shapes[i];
  return !any;
#else
  return 1;
#endif
}

/* Compares with ref/ in p->want. Returns whether the kernel over plain tiles takes the product. */
static int check_played(product *p, const mx_gemm_options *o, const char *what) {
  mxg_plan plan;
  char text[200];
  const size_t M = p->a.rows, N = p->b.rows, before = tiles_played_products();
  ck_assert_int_eq(mxi_gemm_plan_of_tensors(&plan, &p->a, &p->spec, &p->b, &p->spec, o, N, NULL), MX_OK);
  mxi_gemm_move_to(&plan.a, &p->a, 0, M);
  mxi_gemm_move_to(&plan.b, &p->b, 0, N);
  if (!mxi_gemm_codes_usable(&plan)) return 0;
  memset(p->got, 0xAA, M * N * sizeof *p->got);
  ck_assert_int_eq(mxi_gemm_codes_run(&plan, (mxg_codes_kernels){.column = tiles_played_column}, p->got, o->c), MX_OK);
  snprintf(text, sizeof text, "played, mask %u: %s", o->exec.isa_mask, what);
  operands_compare(p->got, p->want, M * N, MX_F32, text);
  ck_assert_msg(tiles_played_configured() == 0, "%s: tiles stay configured", text);
  return tiles_played_products() > before;
}

static void check_real(product *p, mx_gemm_options o, const char *what) {
  const size_t M = p->a.rows, N = p->b.rows;
  char text[200];
  for (int without = 0; without < 2; without++) {
    o.exec.isa_mask = without ? MX_ISA_AMX : 0;
    memset(p->got, 0xAA, M * N * sizeof *p->got);
    ck_assert_int_eq(mx_gemm(p->got, N, &p->a, &p->spec, &p->b, &p->spec, &o, NULL), MX_OK);
    snprintf(text, sizeof text, "%s AMX: %s", without ? "without" : "with", what);
    operands_compare(p->got, p->want, M * N, MX_F32, text);
    ck_assert_msg(tiles_released(), "%s: tiles stay configured", text);
  }
}

static void check_one(const char *keys, const size_t size[3], operands_kind kind, size_t *taken) {
  product p = make(keys, size, kind);
  static const float alpha = -0x1.8p-2f, beta = 3;
  char what[120];
  float *c = calloc(size[0] * size[1], sizeof *c);
  for (size_t i = 0; i < size[0] * size[1]; i++) c[i] = (float)(i % 29) - 14;
  mx_gemm_options o = {.model = MX_GEMM_F32_BLOCK};
  if (size[0] == 17) o.alpha = &alpha, o.beta = &beta, o.c = c;
  snprintf(what, sizeof what, "%s, %zu x %zu x %zu, %s", keys, size[0], size[1], size[2], operands_names[kind]);
  ck_assert_int_eq(ref_gemm(p.want, size[1], &p.a, &p.spec, &p.b, &p.spec, &o, NULL), MX_OK);
  if (mxi_gemm_codes_best(&o.exec)) /* A is packed by AVX2 */
    for (int portable = 0; portable < 2; portable++) {
      o.exec.isa_mask = portable ? MX_ISA_AVX512 : 0; /* packing */
      o.exec.n_threads = 1 + portable;
      *taken += (size_t)check_played(&p, &o, what);
    }
  o.exec.n_threads = 2;
  if (has_amx()) check_real(&p, o, what);
  free(c);
  drop(&p);
}

START_TEST(shapes) {
  size_t taken = 0;
  for (size_t i = 0; i < SIZES; i++) check_one(specs[_i], sizes[i], i % 3 ? OPERANDS_NARROW : OPERANDS_QUANTISED, &taken);
  /* it does not take blocks of 5, unless there is only one */
  ck_assert(taken == 2 * SIZES || !strcmp(specs[_i], "block=1x5") || !mxi_gemm_codes_best(&(mx_exec){0}));
}
END_TEST

START_TEST(kinds) {
  size_t taken = 0;
  for (int kind = 0; kind <= OPERANDS_ZEROS; kind++)
    for (size_t i = 2; i < 8; i += 2)
      if (kind != OPERANDS_KINDS) check_one(specs[_i], sizes[i], (operands_kind)kind, &taken);
}
END_TEST

/* Every pair of codes, and one row of A and one of B whose scales are too far apart, so that only their tile is decoded. */
START_TEST(codes_and_far_tiles) {
  static const size_t size[] = {64, 48, 256};
  product p = make("", size, OPERANDS_NARROW);
  mx_gemm_options o = {.exec = {.n_threads = 1}};
  for (size_t r = 0; r < 64; r++)
    for (size_t k = 0; k < 256; k += 2) p.a.codes[r * p.a.code_stride + k / 2] = (uint8_t)((k / 16) * 0x11);
  for (size_t r = 0; r < 48; r++)
    for (size_t k = 0; k < 256; k += 2) p.b.codes[r * p.b.code_stride + k / 2] = (uint8_t)(k + r * 0x11);
  for (int far = 0; far < 3; far++) {
    if (far) p.a.scales[20 * p.a.scale_cols] = 0, p.b.scales[3 * p.b.scale_cols + 5] = far == 1 ? 60 : 255;
    ck_assert_int_eq(ref_gemm(p.want, 48, &p.a, &p.spec, &p.b, &p.spec, &o, NULL), MX_OK);
    const size_t before = tiles_played_products();
    if (mxi_gemm_codes_best(&o.exec)) {
      check_played(&p, &o, "far");
      ck_assert_uint_eq(tiles_played_products() - before, (size_t)(far == 1 ? 11 : 12) * 8);
    }
    if (has_amx()) check_real(&p, o, "far");
  }
  drop(&p);
}
END_TEST

/* Larger products use tiles if there are any, not another kernel. */
START_TEST(choice) {
  static const size_t size[] = {17, 16, 256}, few[] = {4, 16, 256}, decode[] = {16, 16, 256};
  const size_t *const all[] = {size, few, decode, size};
  for (int i = 0; i < 4; i++)
    for (int without = 0; without < 2; without++) {
      product p = make(i == 3 ? "block=1x16" : "", all[i], OPERANDS_NARROW);
      mxg_plan plan;
      const mx_gemm_options o = {.exec.isa_mask = without ? MX_ISA_AMX : 0};
      ck_assert_int_eq(mxi_gemm_plan_of_tensors(&plan, &p.a, &p.spec, &p.b, &p.spec, &o, 16, NULL), MX_OK);
      ck_assert_int_eq(mxi_gemm_codes_choose(&plan).column != NULL, i == 0 && !without && has_amx());
      drop(&p);
    }
}
END_TEST

START_TEST(masks) {
  ck_assert_str_eq(mx_isa_name(MX_ISA_AMX), "amx");
  ck_assert_uint_eq(mx_isa_usable(MX_ISA_AVX512) & MX_ISA_AMX, 0);
  ck_assert_uint_eq(mx_isa_usable(MX_ISA_AMX), mx_isa_usable(0) & ~(uint32_t)MX_ISA_AMX);
  setenv("MXGOLD_ISA_OFF", "amx", 1);
  ck_assert_uint_eq(mx_isa_usable(0) & MX_ISA_AMX, 0);
  ck_assert_uint_eq(mx_isa_usable(0), mx_isa_host() & ~(uint32_t)MX_ISA_AMX);
  unsetenv("MXGOLD_ISA_OFF");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gemm tiles");
  TCase *t = tcase_create("tiles");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, shapes, 0, SPECS);
  tcase_add_loop_test(t, kinds, 0, SPECS);
  tcase_add_test(t, codes_and_far_tiles);
  tcase_add_test(t, choice);
  tcase_add_test(t, masks);
  suite_add_tcase(suite, t);
  puts(has_amx() ? "gemm tiles: amx: with AMX and without held to ref/" : "gemm tiles: amx: not run: this host lacks AMX");
  fflush(stdout);
  return run_suite(suite);
}
