/* Measures, for make bench-mixtures, what quantising costs under mixtures of keys that no preset has. A mixture for which scalar code has to run stands
 * out, since it takes a hundred times as long.
 *   bench/mixtures N [LIMIT [ISA_OFF]]      N mixtures; those that take more than LIMIT (700) cycles for sixteen elements are listed; exit 1 if there
 *                                           is one without scale.max_byte, whose clamp may leave no scale that is of any use: see docs/notes/SPEED.md
 *   bench/mixtures SPEC...                  these specs, such as 'elem=e4m3 elem.round=scan_x', also on AVX2 and by scalar code
 * A cycle is what a dependent addition takes in the same minute. One thread; the best of a few runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/isa.h"
#include "mxgold/quantize.h"
#include "tests/lib/mixtures.h"
#include "timing.h"

enum { ROWS = 64, COLS = 1024, RUNS = 5, KEYS = 1024 };

static double cycle(void) {
  double best = 1;
  for (int i = 0; i < 5; i++) {
    uint64_t x = (uint64_t)i;
    const double at = timing_now(1);
    for (int k = 0; k < 1 << 20; k++) { /* the barrier keeps each addition; the counter goes beside it */
      x += 1;
      __asm__ volatile("" : "+r"(x));
    }
    const double t = (timing_now(1) - at) / (1 << 20);
    if (t < best) best = t;
  }
  return best;
}

/* Cycles for sixteen elements. */
static double cost(const float *x, const mx_spec *spec, uint32_t off) {
  const mx_exec how = {.n_threads = 1, .isa_mask = off};
  mx_tensor t;
  double best = 1e9;
  if (mx_tensor_alloc(&t, ROWS, COLS, spec)) exit(2);
  for (int run = 0; run < RUNS; run++) {
    const double at = timing_now(1);
    if (mx_quantize(&t, x, ROWS, COLS, COLS, spec, &how, NULL)) exit(2);
    const double s = timing_now(1) - at;
    if (s < best) best = s;
    if (run && s > 0.01) break;
  }
  mx_tensor_free(&t);
  return best / (ROWS * COLS / 16) / cycle();
}

/* Specs as they are given, each beside the scalar code. */
static int given(const float *x, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    mx_spec spec = {0};
    mx_error err;
    if (mx_spec_parse(&spec, argv[i], &err) || mx_spec_check(&spec, &err)) return fprintf(stderr, "%s: %s\n", argv[i], err.text), 2;
    printf("%6.0f cycles, avx2 %6.0f, scalar %6.0f: %s\n", cost(x, &spec, 0), cost(x, &spec, MX_ISA_AVX512), cost(x, &spec, MX_ISA_ALL),
           argv[i]);
  }
  return 0;
}

int main(int argc, char **argv) {
  const int specs = argc > 1 && strchr(argv[1], '=');
  const size_t want = specs ? 1 : argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
  const double limit = argc > 2 ? strtod(argv[2], NULL) : 700;
  uint32_t off = 0;
  if (!want || (!specs && argc > 3 && !mx_isa_parse(&off, argv[3], NULL))) {
    fprintf(stderr, "bench/mixtures [N [LIMIT [ISAS]]]: expected at least one mixture, and names of ISAs such as avx2,avx512\n");
    return 2;
  }
  float *x = malloc(ROWS * COLS * sizeof *x);
  double *all = malloc(want * sizeof *all);
  if (!x || !all) return 2;
  uint64_t random = 1, state = MIXTURES_SEED;
  for (size_t i = 0; i < ROWS * COLS; i++) {
    float sum = 0;
    for (int k = 0; k < 4; k++) random = random * 6364136223846793005u + 1442695040888963407u, sum += (float)(int32_t)(random >> 32) * 0x1p-31f;
    x[i] = sum;
  }
  if (specs) return given(x, argc, argv);
  size_t slow = 0, clamped = 0;
  for (size_t i = 0; i < want;) {
    mx_spec spec;
    if (!mixtures_draw(&spec, &state)) continue;
    all[i] = cost(x, &spec, off);
    if (all[i] > limit) {
      char keys[KEYS];
      mx_spec_print(keys, sizeof keys, &spec, 0);
      printf("mixture %zu: %.0f cycles: %s\n", i, all[i], keys);
      slow += !spec.scale_max_byte;
      clamped += spec.scale_max_byte != 0;
    }
    i++;
  }
  qsort(all, want, sizeof *all, timing_compare);
  printf("%zu mixtures of keys, cycles for sixteen elements: half of them up to %.0f, nine of ten %.0f, 99 of 100 %.0f, all %.0f; %zu above "
         "%.0f, and %zu under a clamp by scale.max_byte\n",
         want, all[want / 2], all[want * 9 / 10], all[want * 99 / 100], all[want - 1], slow, limit, clamped);
  free(x);
  free(all);
  return slow != 0;
}
