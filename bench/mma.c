/* Measures how many multiply-accumulates a second the matrix-unit models make.
 *   bench/mma [ROUNDS [THREADS [MODEL]]]
 * The product is square; the figure is the median of the rounds. Seconds are wall-clock with THREADS threads (2 by default); with THREADS = 1 they are
 * the thread's own processor time, so that a busy machine does not count. MMA-Sim's simulator makes 0.8 to 2.0 x 10^5 a second. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/timing.h"
#include "mxgold/isa.h"
#include "mxgold/mma.h"

static int n_threads = 2;

static uint32_t next(void) {
  static uint64_t state = 88172645463325252;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 32);
}

/* Finite codes of the middle half of the format, either sign. */
static void *codes(const mx_format *f, size_t rows, size_t K) {
  size_t row = mx_mma_bytes(f, K), size = f->bits <= 4 ? 1 : mx_mma_bytes(f, 1);
  uint8_t *out = malloc(rows * row);
  if (!out) exit(2);
  for (size_t at = 0; at + size <= rows * row; at += size) {
    uint64_t code = f->max_code / 4 + next() % (f->max_code / 2 + 1) + (f->sign_bits && next() & 1 ? UINT64_C(1) << (f->bits - 1) : 0);
    if (f->bits == 19) code <<= 13;
    if (f->bits <= 4) code |= code << 4;
    for (size_t i = 0; i < size; i++) out[at + i] = (uint8_t)(code >> 8 * i);
  }
  return out;
}

static double rate(const mx_mma_model *m, size_t n, uint32_t isa_off, int rounds) {
  double seconds[64];
  mx_exec exec = {.n_threads = n_threads, .isa_mask = isa_off};
  size_t blocks = m->scale ? n / (size_t)m->block : 0;
  void *a = codes(m->a, n, n), *b = codes(m->b, n, n), *sa = m->scale ? codes(m->scale, n, blocks) : NULL,
       *sb = m->scale ? codes(m->scale, n, blocks) : NULL;
  void *d = malloc(n * n * mx_mma_bytes(m->d, 1));
  mx_mma_args args = {1, n, n, n, a, b, NULL, sa, sb};
  for (int r = 0; d && r < rounds; r++) {
    double start = timing_now(n_threads);
    if (mx_mma(d, m, &args, &exec, NULL)) exit(2);
    seconds[r] = timing_now(n_threads) - start;
  }
  free(a);
  free(b);
  free(sa);
  free(sb);
  free(d);
  return (double)n * (double)n * (double)n / timing_median(seconds, rounds) * 1e-9;
}

int main(int argc, char **argv) {
  static const char *const names[] = {"hopper/wgmma_m64n8k16_f32_f16_f16",
                                      "hopper/wgmma_m64n8k16_f32_bf16_bf16",
                                      "hopper/wgmma_m64n8k8_f32_tf32_tf32",
                                      "hopper/wgmma_m64n8k32_f32_e4m3_e4m3",
                                      "hopper/mma_m16n8k32_f32_e4m3_e4m3_f32",
                                      "ampere/mma_m16n8k16_f32_f16_f16_f32",
                                      "cdna3/mfma_f32_16x16x16_f16",
                                      "cdna3/mfma_f32_16x16x32_fp8_fp8",
                                      "blackwell/tcgen05bs_m128n8k32_block32_f32_e4m3_e4m3_ue8m0",
                                      "blackwell/tcgen05bs_m128n8k64_block32_f32_e2m1_e2m1_ue8m0",
                                      "blackwell/tcgen05bs_m128n8k64_block16_f32_e2m1_e2m1_ue4m3",
                                      "cdna2/mfma_f32_16x16x16f16",
                                      "cdna3/mfma_f32_16x16x4_f32",
                                      "hopper/mma_m16n8k16_f64_f64_f64_f64",
                                      "hopper/mma_m16n8k32_s32_s8_s8_s32"};
  int rounds = argc > 1 ? atoi(argv[1]) : 7;
  if (argc > 2) n_threads = atoi(argv[2]);
  if (rounds < 1 || rounds > 64 || n_threads < 1) return 2;
  printf("%-60s %12s %12s   G multiply-accumulates a second, %d thread%s\n", "1024 x 1024 x 1024; portable: 512", "best ISA", "portable",
         n_threads, n_threads == 1 ? " (its processor time)" : "s");
  for (size_t i = 0; i < (argc > 3 ? 1 : sizeof names / sizeof *names); i++) {
    mx_mma_model m;
    mx_error err;
    if (mx_mma_model_find(&m, argc > 3 ? argv[3] : names[i], &err)) {
      fprintf(stderr, "bench/mma: %s\n", err.text);
      return 2;
    }
    printf("%-60s %12.2f %12.2f\n", m.name, rate(&m, 1024, 0, rounds), rate(&m, 512, MX_ISA_ALL, 1));
    fflush(stdout);
  }
  return 0;
}
