/* Tests products of float32 matrices: every ISA and number of threads against the reference, bit for bit over whole padded buffers, and against
 * mx_gemm's f32_seq with operands of elem=none. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/dense.h"
#include "lib/run.h"
#include "mxgold/dense.h"
#include "mxgold/gemm.h"
#include "mxgold/isa.h"

static uint32_t state = 1;
static uint32_t draw(void) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

/* Numbers of any size that does not overflow a sum of hundreds, and now and then one that rounding, flushing or NaN rules could get wrong. */
typedef enum number_kind { PLAIN, WIDE, SPECIAL } number_kind;
static float number(number_kind kind) {
  static const uint32_t special[] = {0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x80000000, 0x00000000,
                                     0x7F800000, 0xFF800000, 0x7FC12345, 0xFFC00000, 0x7F800001, 0x7F7FFFFF};
  uint32_t bits = draw();
  const uint32_t exponent = kind == PLAIN ? 120 + bits % 12 : bits % 160;
  if (kind == SPECIAL && bits % 37 == 0)
    bits = special[draw() % (sizeof special / sizeof *special)];
  else
    bits = (draw() & 0x807FFFFF) | exponent << 23;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static float *numbers(size_t n, number_kind kind) {
  float *x = malloc((n + 1) * sizeof *x);
  ck_assert_ptr_nonnull(x);
  for (size_t i = 0; i < n; i++) x[i] = number(kind);
  return x;
}

static uint32_t masks[4];
static size_t n_masks(void) {
  static const uint32_t isa[] = {0, MX_ISA_AVX2, MX_ISA_AVX512, MX_ISA_NEON};
  size_t n = 0;
  for (size_t i = 0; i < 4; i++)
    if (!isa[i] || mx_isa_usable(0) & isa[i]) masks[n++] = mx_isa_only(isa[i]);
  return n;
}

/* Compares all of d's buffer, so that what lies between rows and after them is checked too. */
static void hold(const mx_dense *p, size_t n_d, int most_threads, const char *what) {
  float *before = p->d, *want = malloc(n_d * sizeof *want), *got = malloc(n_d * sizeof *got);
  mx_dense q = *p;
  memcpy(want, before, n_d * sizeof *want);
  q.d = want;
  ref_dense_gemm(&q);
  for (size_t mask = 0; mask < n_masks(); mask++)
    for (int threads = 1; threads <= most_threads; threads++) {
      const mx_exec exec = {.n_threads = threads, .isa_mask = masks[mask]};
      const size_t bytes = mx_dense_workspace(p, &exec);
      uint8_t *workspace = malloc(bytes + 65);
      mx_error err;
      memset(workspace, 0xFF, bytes + 65); /* NaN, since nothing may be used before it is written */
      memcpy(got, before, n_d * sizeof *got);
      q.d = got;
      if (mx_dense_gemm(&q, workspace + 1, &exec, &err)) ck_abort_msg("%s: %s", what, err.text);
      for (size_t i = 0; i < 64; i++) ck_assert_msg(workspace[bytes + 1 + i] == 0xFF, "%s: written beyond the workspace", what);
      ck_assert_msg(workspace[0] == 0xFF, "%s: written before the workspace", what);
      for (size_t i = 0; i < n_d; i++)
        if (memcmp(&want[i], &got[i], sizeof *got))
          ck_abort_msg("%s, ISA mask %u, %d threads: d[%zu] is %a, expected %a", what, masks[mask], threads, i, (double)got[i],
                       (double)want[i]);
      free(workspace);
    }
  free(want);
  free(got);
}

/* A product in its own buffers. layout: bit 0: k runs along a's rows; bit 1: along b's; bit 2: strides that no plain matrix has. */
static void one(size_t M, size_t N, size_t K, int layout, int accumulate, int part, int bias, size_t batch, number_kind kind, int threads) {
  const size_t gap = layout & 4 ? 3 : 1, pad = layout & 4 ? 5 : 0;
  const size_t a_long = gap * ((layout & 1 ? K : M) + pad), b_long = gap * ((layout & 2 ? K : N) + pad), ldd = N + pad;
  const size_t n_a = a_long * ((layout & 1 ? M : K) + 1), n_b = b_long * ((layout & 2 ? N : K) + 1), n_d = ldd * M + 7;
  float *a = numbers(n_a * batch, kind), *b = numbers(n_b * batch, kind), *d = numbers(n_d * batch, kind), *c = numbers(N, kind);
  const mx_dense p = {.M = M,
                      .N = N,
                      .K = K,
                      .a = a,
                      .a_row = layout & 1 ? a_long : gap,
                      .a_col = layout & 1 ? gap : a_long,
                      .b = b,
                      .b_row = layout & 2 ? b_long : gap,
                      .b_col = layout & 2 ? gap : b_long,
                      .d = d,
                      .ldd = ldd,
                      .accumulate = accumulate,
                      .part = part,
                      .bias = bias ? c : NULL,
                      .batch = {batch > 1 ? batch / 2 : 0, batch > 1 ? 2 : 0},
                      .a_batch = {2 * n_a, n_a},
                      .b_batch = {2 * n_b, n_b},
                      .d_batch = {2 * n_d, n_d}};
  char what[160];
  snprintf(what, sizeof what, "%zu x %zu x %zu, layout %d, accumulate %d, part %d, bias %d, batch %zu, numbers %d", M, N, K, layout, accumulate,
           part, bias, batch, (int)kind);
  hold(&p, n_d * (batch > 1 ? batch / 2 * 2 : 1), threads, what);
  free(a);
  free(b);
  free(c);
  free(d);
}

/* Runs every tile of every kernel, with all tails. */
START_TEST(every_tile) {
  for (size_t M = 1; M <= 16; M++)
    for (size_t N = 1; N <= 50; N += N < 34 ? 1 : 5) one(M, N, 1 + (M * 7 + N * 3) % 20, (int)((M + N) % 8), N % 2, 0, M % 2, 1, SPECIAL, 1);
}
END_TEST

START_TEST(layouts_and_options) {
  static const size_t shapes[][3] = {{1, 1, 1}, {29, 33, 17}, {15, 64, 33}, {64, 7, 130}, {3, 97, 1}, {57, 40, 64}, {33, 70, 0}};
  for (int n = 0; n < 8 * 2 * 2 * 3; n++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      one(shapes[s][0], shapes[s][1], shapes[s][2], n % 8, n / 8 % 2, 0, n / 16 % 2, 1, (number_kind)(n / 32), 1);
}
END_TEST

START_TEST(causal_parts) {
  for (int part = MX_DENSE_OUT_LOWER; part <= MX_DENSE_A_UPPER; part++)
    for (int n = 0; n < 16; n++) {
      one(40, 33, 40, n % 4 + n / 8 * 4, n / 4 % 2, part, n / 2 % 2, 1, SPECIAL, 1);
      one(17, 5, 50, n % 4, n / 4 % 2, part, n / 2 % 2, 1, PLAIN, 1);
      one(50, 41, 19, n % 4, n / 4 % 2, part, n / 2 % 2, 6, WIDE, 1);
      one(9, 12, 0, n % 4, n / 4 % 2, part, n / 2 % 2, 1, SPECIAL, 1);
    }
  one(500, 20, 500, 3, 0, MX_DENSE_A_LOWER, 1, 1, WIDE, 3); /* more than a block of K */
  one(500, 20, 500, 3, 0, MX_DENSE_A_UPPER, 1, 1, WIDE, 3);
  one(900, 20, 450, 3, 1, MX_DENSE_A_UPPER, 1, 1, WIDE, 2); /* rows without a term */
}
END_TEST

/* Products that are large enough for a call to take as many threads as it may. */
START_TEST(threads) {
  one(123, 65, 401, 3, 0, 0, 1, 1, SPECIAL, 5);
  one(30, 130, 800, 1, 1, 0, 0, 1, WIDE, 5);
  one(2, 3100, 150, 2, 0, 0, 0, 1, PLAIN, 5);  /* more than a block of columns */
  one(530, 560, 9, 1, 0, 0, 1, 1, SPECIAL, 3); /* more parts than threads */
  one(300, 20, 300, 3, 1, MX_DENSE_OUT_LOWER, 1, 1, SPECIAL, 4);
  one(64, 64, 32, 3, 0, MX_DENSE_OUT_LOWER, 0, 6, SPECIAL, 5);
  one(64, 48, 64, 2, 0, MX_DENSE_A_LOWER, 0, 10, PLAIN, 5);
  one(150, 90, 40, 3, 0, 0, 1, 2, WIDE, 5); /* fewer products than threads */
}
END_TEST

/* The model f32_seq of the block-scaled product. */
START_TEST(is_f32_seq) {
  enum { M = 37, N = 45, K = 500 };
  mx_spec spec = {0};
  mx_tensor s, t;
  ck_assert(!mx_spec_parse(&spec, "elem=none", NULL));
  for (int i = 0; i <= SPECIAL; i++) {
    float *a = numbers(M * K, (number_kind)i), *b = numbers(N * K, (number_kind)i), *want = malloc(M * N * sizeof *want),
          *got = malloc(M * N * sizeof *got);
    ck_assert(!mx_tensor_alloc(&s, M, K, &spec) && !mx_tensor_alloc(&t, N, K, &spec));
    ck_assert(!mx_quantize(&s, a, M, K, K, &spec, NULL, NULL) && !mx_quantize(&t, b, N, K, K, &spec, NULL, NULL));
    ck_assert(!mx_gemm(want, N, &s, &spec, &t, &spec, &(mx_gemm_options){.model = MX_GEMM_F32_SEQ}, NULL));
    const mx_dense p = {.M = M, .N = N, .K = K, .a = a, .a_row = K, .a_col = 1, .b = b, .b_row = K, .b_col = 1, .d = got, .ldd = N};
    void *workspace = malloc(mx_dense_workspace(&p, NULL));
    ck_assert(!mx_dense_gemm(&p, workspace, NULL, NULL));
    ck_assert_mem_eq(got, want, M * N * sizeof *want);
    mx_tensor_free(&s);
    mx_tensor_free(&t);
    free(workspace), free(a), free(b), free(want), free(got);
  }
}
END_TEST

/* A fused chain keeps what a separately rounded product would lose. Typed by hand. */
START_TEST(known_chains) {
  const float a[] = {0x1.000002p0f, 1, 0x1p-149f, -0.0f}, b[] = {0x1.000002p0f, -1, 0.5f, 1};
  static const struct {
    size_t from, n;
    float start, want;
  } rows[] = {{0, 1, -0x1.000004p0f, 0x1p-46f}, /* the square's last bit is left */
              {1, 1, 1, 0},                     /* exactly zero: +0 */
              {2, 1, 0, 0},                     /* half of the smallest subnormal: to even */
              {2, 1, 0x1p-149f, 0x1p-148f},     /* one and a half: to even */
              {3, 1, -0.0f, -0.0f},             /* -0 * 1 + -0 */
              {3, 1, 0, 0}};                    /* -0 * 1 + 0 */
  for (size_t mask = 0; mask < n_masks(); mask++)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      float d = rows[i].start;
      const mx_dense p = {1, 1, rows[i].n, a + rows[i].from, 0, 1, b + rows[i].from, 0, 1, &d, 1, .accumulate = 1};
      const mx_exec exec = {.n_threads = 1, .isa_mask = masks[mask]};
      void *workspace = malloc(mx_dense_workspace(&p, &exec));
      ck_assert(!mx_dense_gemm(&p, workspace, &exec, NULL));
      ck_assert_msg(!memcmp(&d, &rows[i].want, sizeof d), "row %zu, ISA mask %u: %a, expected %a", i, masks[mask], (double)d,
                    (double)rows[i].want);
      free(workspace);
    }
}
END_TEST

/* A BLAS as its documentation defines it, in plain loops, so that a wrong layout in a call would give another product. */
static int blas_calls;
static void blas(int layout, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                 float *c, int ldc) {
  ck_assert_int_eq(layout, 101);
  blas_calls++;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int t = 0; t < k; t++)
        sum += (double)(ta == 112 ? a[t * lda + i] : a[i * lda + t]) * (double)(tb == 112 ? b[j * ldb + t] : b[t * ldb + j]);
      c[i * ldc + j] = (float)((double)alpha * sum + (beta == 0 ? 0 : (double)beta * (double)c[i * ldc + j]));
    }
}

/* Small whole numbers, for which every order of sums is exact: the four layouts, bias, accumulation, and products that sgemm cannot do. */
START_TEST(sgemm_of_the_caller) {
  enum { M = 5, N = 7, K = 6, LD = 9 };
  float a[LD * LD], b[LD * LD], bias[N], d[2][M * LD];
  for (int i = 0; i < LD * LD; i++) a[i] = (float)(i % 11) - 5, b[i] = (float)(i % 7) - 3;
  for (int i = 0; i < N; i++) bias[i] = (float)i;
  for (int how = 0; how < 16; how++) {
    mx_dense p = {.M = M, .N = N, .K = K, .a = a, .b = b, .ldd = LD, .accumulate = how >> 2 & 1, .bias = how & 8 ? bias : NULL};
    p.a_row = how & 1 ? 1 : LD, p.a_col = how & 1 ? LD : 1;
    p.b_row = how & 2 ? 1 : LD, p.b_col = how & 2 ? LD : 1;
    for (int i = 0; i < 2; i++) {
      for (int k = 0; k < M * LD; k++) d[i][k] = (float)k;
      p.d = d[i];
      p.sgemm = i ? blas : NULL;
      void *work = malloc(mx_dense_workspace(&p, NULL) + 1);
      ck_assert_int_eq(mx_dense_gemm(&p, work, NULL, NULL), MX_OK);
      free(work);
    }
    ck_assert_msg(!memcmp(d[0], d[1], sizeof d[0]), "layout %d", how);
  }
  ck_assert_int_eq(blas_calls, 16);
  mx_dense p = {.M = M, .N = N, .K = K, .a = a, .b = b, .a_row = LD, .a_col = 1, .b_row = LD, .b_col = 1, .d = d[0], .ldd = LD, .sgemm = blas};
  static const size_t two[2] = {1, 2};
  void *work = malloc(1 << 20);
  p.part = MX_DENSE_OUT_LOWER;
  ck_assert_int_eq(mx_dense_gemm(&p, work, NULL, NULL), MX_OK);
  p.part = MX_DENSE_WHOLE;
  memcpy(p.batch, two, sizeof two);
  ck_assert_int_eq(mx_dense_gemm(&p, work, NULL, NULL), MX_OK);
  memset(p.batch, 0, sizeof p.batch);
  p.a_row = 1; /* then rows overlap */
  p.a_col = 1;
  ck_assert_int_eq(mx_dense_gemm(&p, work, NULL, NULL), MX_OK);
  free(work);
  ck_assert_int_eq(blas_calls, 16);
}
END_TEST

START_TEST(errors) {
  float x[4] = {1, 2, 3, 4}, d[4] = {9, 9, 9, 9};
  char workspace[8192];
  const mx_dense good = {2, 2, 2, x, 2, 1, x, 2, 1, d, 2};
  mx_dense p = good;
  mx_error err;
  ck_assert_uint_le(mx_dense_workspace(&good, NULL), sizeof workspace);
  ck_assert_int_eq(mx_dense_gemm(NULL, workspace, NULL, &err), MX_ERR_ARG);
  ck_assert_int_eq(mx_dense_gemm(&good, NULL, NULL, &err), MX_ERR_ARG);
  p.a = NULL;
  ck_assert_int_eq(mx_dense_gemm(&p, workspace, NULL, &err), MX_ERR_ARG);
  p = good, p.b = NULL;
  ck_assert_int_eq(mx_dense_gemm(&p, workspace, NULL, &err), MX_ERR_ARG);
  p = good, p.part = 4;
  ck_assert_int_eq(mx_dense_gemm(&p, workspace, NULL, &err), MX_ERR_ARG);
  p = good, p.ldd = 1;
  ck_assert_int_eq(mx_dense_gemm(&p, workspace, NULL, &err), MX_ERR_SHAPE);
  p = good, p.a_row = SIZE_MAX / 4;
  ck_assert_int_eq(mx_dense_gemm(&p, workspace, NULL, &err), MX_ERR_SHAPE);
  p = good, p.batch[0] = p.batch[1] = SIZE_MAX / 2;
  ck_assert_int_eq(mx_dense_gemm(&p, workspace, NULL, &err), MX_ERR_SHAPE);
  for (int i = 0; i < 4; i++) ck_assert(d[i] == 9);
  p = good, p.M = 0, p.d = NULL;
  ck_assert_uint_eq(mx_dense_workspace(&p, NULL), 0);
  ck_assert_int_eq(mx_dense_gemm(&p, NULL, NULL, &err), MX_OK);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("dense");
  TCase *t = tcase_create("dense");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, every_tile);
  tcase_add_test(t, layouts_and_options);
  tcase_add_test(t, causal_parts);
  tcase_add_test(t, threads);
  tcase_add_test(t, is_f32_seq);
  tcase_add_test(t, known_chains);
  tcase_add_test(t, sgemm_of_the_caller);
  tcase_add_test(t, errors);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
