/* Measures the float32 product of dense.h against OpenBLAS's sgemm of the same shape, by turns in one process, and the functions of math.h.
 *   bench/dense [ROUNDS [THREADS [NAME]]]      with NAME only the lines that begin with it
 * Each figure is the median of its rounds. Seconds are wall-clock with as many threads as THREADS says (2 by default), for both sides. With THREADS = 1
 * they are the thread's own processor time, so that a ratio can be measured on a busy machine. OpenBLAS is at its best where OPENBLAS_CORETYPE
 * (SkylakeX, Haswell, Zen) names the core that is fastest here; its name is printed. */
#include <cblas.h> /* brings the I of complex numbers */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timing.h"
#include "mxgold/dense.h"
#include "mxgold/isa.h"
#include "mxgold/math.h"

#undef I

extern void openblas_set_num_threads(int n);
extern char *openblas_get_corename(void);

static int n_threads = 2, rounds = 15;
static const char *only = "";

static float *numbers(size_t n, uint32_t seed) {
  float *x = malloc(n * sizeof *x);
  if (!x) exit(2);
  for (size_t i = 0; i < n; i++) x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1;
  return x;
}

/* y = x W^T, dx = dy W, dw += dy^T x of a linear layer; T tokens, I inputs, O outputs. */
enum { FORWARD, DGRAD, WGRAD };
static mx_dense linear(int pass, size_t T, size_t I, size_t O, const float *a, const float *b, float *d) {
  if (pass == FORWARD) return (mx_dense){T, O, I, a, I, 1, b, I, 1, d, O};
  if (pass == DGRAD) return (mx_dense){T, I, O, a, O, 1, b, 1, I, d, I};
  return (mx_dense){O, I, T, a, 1, O, b, 1, I, d, I, .accumulate = 1};
}

static void peer(const mx_dense *p) {
  cblas_sgemm(CblasRowMajor, p->a_col == 1 ? CblasNoTrans : CblasTrans, p->b_col == 1 ? CblasTrans : CblasNoTrans, (int)p->M, (int)p->N,
              (int)p->K, 1, p->a, (int)(p->a_col == 1 ? p->a_row : p->a_col), p->b, (int)(p->b_col == 1 ? p->b_row : p->b_col),
              p->accumulate ? 1 : 0, p->d, (int)p->ldd);
}

/* Small products are repeated, so that a round is long enough to be timed. */
static void one(const char *name, int pass, size_t T, size_t I, size_t O) {
  static const char *const passes[] = {"y", "dx", "dw"};
  double ours[64], avx2[64], theirs[64];
  char line[80];
  snprintf(line, sizeof line, "%s %s", name, passes[pass]);
  if (strncmp(line, only, strlen(only))) return;
  float *a = numbers(T * (pass == FORWARD ? I : O), 1), *b = numbers(pass == WGRAD ? T * I : I * O, 2);
  const size_t n_d = pass == FORWARD ? T * O : pass == DGRAD ? T * I : I * O;
  float *d = calloc(n_d, sizeof *d);
  const mx_dense p = linear(pass, T, I, O, a, b, d);
  const mx_exec exec = {.n_threads = n_threads}, narrow = {.n_threads = n_threads, .isa_mask = MX_ISA_AVX512};
  void *workspace = malloc(mx_dense_workspace(&p, &exec) + 1);
  if (!workspace || !d) exit(2);
  const int times = (int)(2e7 / ((double)T * (double)I * (double)O)) + 1;
  for (int r = -1; r < rounds; r++) { /* the first is not counted */
    const int at = r < 0 ? 0 : r;
    double t = timing_now(n_threads);
    for (int i = 0; i < times; i++)
      if (mx_dense_gemm(&p, workspace, &exec, NULL)) exit(2);
    ours[at] = (timing_now(n_threads) - t) / times;
    t = timing_now(n_threads);
    for (int i = 0; i < times; i++) peer(&p);
    theirs[at] = (timing_now(n_threads) - t) / times;
    t = timing_now(n_threads);
    for (int i = 0; i < times; i++)
      if (mx_dense_gemm(&p, workspace, &narrow, NULL)) exit(2);
    avx2[at] = (timing_now(n_threads) - t) / times;
  }
  const double work = 2e-9 * (double)T * (double)I * (double)O, us = timing_median(ours, rounds), peers = timing_median(theirs, rounds);
  printf("%-24s %4zu x %4zu x %4zu %9.1f %9.1f %9.1f %9.1f %8.2f\n", line, p.M, p.N, p.K, us * 1e6, work / us,
         work / timing_median(avx2, rounds), work / peers, peers / us);
  fflush(stdout);
  free(a), free(b), free(d), free(workspace);
}

static void layer(const char *name, size_t T, size_t I, size_t O) {
  for (int pass = FORWARD; pass <= WGRAD; pass++) one(name, pass, T, I, O);
}

static void functions(void) {
  enum { N = 1 << 14 };
  float *x = numbers(N, 1), *y = malloc(N * sizeof *y);
  if (!y) exit(2);
  printf("\n%-24s %20s %10s %10s   G values a second, one thread\n", "", "best ISA", "AVX2", "scalar");
  for (int i = 0; i < N; i++) x[i] *= 4;
  for (int f = 0; f < MX_MATH_COUNT + 2; f++) {
    static const uint32_t masks[] = {0, MX_ISA_AVX512, MX_ISA_ALL};
    const char *name = f < MX_MATH_COUNT ? mx_math_name(f) : f == MX_MATH_COUNT ? "softmax of 128" : "gelu_tanh'";
    if (strncmp(name, only, strlen(only))) continue;
    printf("%-24s", name);
    for (int m = 0; m < 3; m++) {
      const mx_exec exec = {.n_threads = 1, .isa_mask = masks[m]};
      double seconds[64];
      for (int r = 0; r < rounds; r++) {
        const double t = timing_now(1);
        for (int i = 0; i < 8; i++)
          if (f < MX_MATH_COUNT)
            mx_math_array(y, x, N, f, &exec);
          else if (f == MX_MATH_COUNT)
            mx_math_softmax(y, 128, NULL, x, 128, N / 128, 128, 0.125f, 0, &exec);
          else
            mx_math_gradient(y, x, x, N, MX_MATH_GELU_TANH, &exec);
        seconds[r] = (timing_now(1) - t) / 8;
      }
      printf(" %*.3f", m ? 10 : 20, N / timing_median(seconds, rounds) * 1e-9);
    }
    printf("\n");
  }
  free(x), free(y);
}

int main(int argc, char **argv) {
  if (argc > 1) rounds = atoi(argv[1]);
  if (argc > 2) n_threads = atoi(argv[2]);
  if (argc > 3) only = argv[3];
  if (rounds < 1 || rounds > 64 || n_threads < 1) return 2;
  openblas_set_num_threads(n_threads);
  printf("%-24s %18s %9s %9s %9s %9s %8s   %d thread%s; OpenBLAS as %s\n", "linear layer", "M x N x K", "us", "GFLOP/s", "AVX2", "OpenBLAS",
         "ratio", n_threads, n_threads == 1 ? " (its processor time)" : "s", openblas_get_corename());
  layer("llama q", 4096, 256, 256);
  layer("llama up", 4096, 256, 704);
  layer("llama down", 4096, 704, 256);
  layer("gpt2 c_attn", 768, 128, 384);
  layer("gpt2 c_proj", 768, 128, 128);
  layer("gpt2 fc", 768, 128, 512);
  layer("gpt2 fc_proj", 768, 512, 128);
  layer("mlp 512", 512, 512, 256);
  layer("mlp 256", 512, 256, 256);
  layer("head of 128 x 32", 128, 32, 128);
  layer("tiny", 16, 16, 16);
  functions();
  return 0;
}
