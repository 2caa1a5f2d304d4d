/* make bench: each operation against memcpy and a streaming sum of the same input, alternating in one run; medians of the rounds. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mxgold/isa.h"
#include "mxgold/mxgold.h"

enum { ROWS = 4096, COLS = 4096, ROUNDS = 11 };
#define COUNT ((size_t)ROWS * COLS)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *t) {
  qsort(t, ROUNDS, sizeof *t, by_size);
  return t[ROUNDS / 2];
}

static float *input, *copy;
static volatile uint64_t sink;

static void copy_all(void) {
#pragma omp parallel for schedule(static)
  for (size_t r = 0; r < ROWS; r++) memcpy(copy + r * COLS, input + r * COLS, COLS * sizeof *copy);
}

/* Integers, so that the compiler may reorder the sum and the time is that of memory. */
static void sum_all(void) {
  uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (size_t r = 0; r < ROWS; r++) {
    const char *row = (const char *)(input + r * COLS);
    uint64_t part[8] = {0}, word[8];
    for (size_t i = 0; i < COLS * sizeof *input; i += sizeof word) {
      memcpy(word, row + i, sizeof word);
      for (int k = 0; k < 8; k++) part[k] += word[k];
    }
    for (int k = 0; k < 8; k++) sum += part[k];
  }
  sink = sum;
}

typedef struct bench_case {
  const char *name, *keys;
  enum { QUANTIZE, GIVEN, AMAX, DEQUANTIZE } what; /* GIVEN: with a tensor scale that is known */
} bench_case;

static void once(const bench_case *c, mx_tensor *t, const mx_spec *spec, const mx_exec *exec) {
  float amax;
  if (c->what == DEQUANTIZE)
    mx_dequantize(copy, COLS, t, spec, exec);
  else if (c->what == AMAX)
    mx_tensor_amax(&amax, input, ROWS, COLS, COLS, spec, exec);
  else if (mx_quantize(t, input, ROWS, COLS, COLS, spec, exec, NULL))
    abort();
}

static void measure(const bench_case *c, uint32_t off, const char *isa) {
  mx_spec spec = {0};
  mx_tensor t;
  mx_error err;
  if (!strchr(c->keys, '=') && *c->keys ? mx_preset_find(&spec, c->keys, &err) : mx_spec_parse(&spec, c->keys, &err)) {
    fprintf(stderr, "%s: %s\n", c->name, err.text);
    exit(1);
  }
  mx_exec exec = {.isa_mask = off, .amax_known = c->what == GIVEN};
  if (mx_tensor_amax(&exec.amax, input, ROWS, COLS, COLS, &spec, NULL) || mx_tensor_alloc(&t, ROWS, COLS, &spec)) abort();
  mx_quantize(&t, input, ROWS, COLS, COLS, &spec, &exec, NULL);
  double copying[ROUNDS], summing[ROUNDS], own[ROUNDS], ratio[ROUNDS];
  int rounds = 0;
  for (int i = 0; i < ROUNDS; i++, rounds++) {
    double at = now();
    copy_all();
    copying[i] = now() - at, at = now();
    once(c, &t, &spec, &exec);
    own[i] = now() - at, at = now();
    sum_all();
    summing[i] = now() - at;
    ratio[i] = copying[i] / own[i];
  }
  const double least = (qsort(ratio, ROUNDS, sizeof *ratio, by_size), ratio[0]), most = ratio[ROUNDS - 1];
  const double own_time = median(own);
  printf("%-28s %-7s %8.2f %9.2f  %5.2f..%-5.2f %8.2f\n", c->name, isa, (double)COUNT / own_time / 1e9, ratio[ROUNDS / 2], least, most,
         median(summing) / own_time);
  fflush(stdout);
  mx_tensor_free(&t);
}

int main(int argc, char **argv) {
  static const bench_case cases[] = {{"mxfp4 floor", "", QUANTIZE},
                                     {"mxfp4 even", "torchao-even", QUANTIZE},
                                     {"mxfp4 rceil", "aiter-cpu", QUANTIZE},
                                     {"mxfp4 rceil log2f (torchao)", "torchao-rceil", QUANTIZE},
                                     {"mxfp4 ue5m3", "mxfp4-ue5m3", QUANTIZE},
                                     {"mxfp8 e4m3", "ocp-mxfp8-e4m3", QUANTIZE},
                                     {"mxfp8 e5m2", "ocp-mxfp8-e5m2", QUANTIZE},
                                     {"mxfp6 e2m3", "ocp-mxfp6-e2m3", QUANTIZE},
                                     {"mxfp6 e3m2", "ocp-mxfp6-e3m2", QUANTIZE},
                                     {"nvfp4 te, scale given", "te-nvfp4", GIVEN},
                                     {"nvfp4 vllm, scale given", "vllm-nvfp4", GIVEN},
                                     {"nvfp4 torchao, scale given", "torchao-nvfp4-2level", GIVEN},
                                     {"nvfp4 modelopt, scale given", "modelopt-nvfp4", GIVEN},
                                     {"nvfp4 te, with amax", "te-nvfp4", QUANTIZE},
                                     {"tensor amax", "te-nvfp4", AMAX},
                                     {"mxfp4 stochastic", "elem.round=sr seed=1", QUANTIZE},
                                     {"mxfp4 hadamard 16", "had.size=16", QUANTIZE},
                                     {"dequantize mxfp4", "", DEQUANTIZE},
                                     {"dequantize nvfp4 te", "te-nvfp4", DEQUANTIZE},
                                     {"dequantize mxfp8 e4m3", "ocp-mxfp8-e4m3", DEQUANTIZE}};
  const char *only = argc > 1 ? argv[1] : "";
  input = aligned_alloc(64, COUNT * sizeof *input);
  copy = aligned_alloc(64, COUNT * sizeof *copy);
  if (!input || !copy) return 1;
  uint64_t state = 1;
  for (size_t i = 0; i < COUNT; i++) { /* roughly normal */
    float sum = 0;
    for (int k = 0; k < 4; k++) state = state * 6364136223846793005u + 1442695040888963407u, sum += (float)(int32_t)(state >> 32) * 0x1p-31f;
    input[i] = sum;
  }
  memset(copy, 0, COUNT * sizeof *copy);
  printf("%d x %d float32, %d threads; rates over that of memcpy and of a streaming sum, medians of %d\n", ROWS, COLS, omp_get_max_threads(),
         ROUNDS);
  printf("%-28s %-7s %8s %9s  %-12s %8s\n", "", "ISA", "Gelem/s", "/ memcpy", "spread", "/ sum");
  const uint32_t host = mx_isa_host();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (!strstr(cases[i].name, only)) continue;
    for (uint32_t bit = MX_ISA_AVX512; bit; bit >>= 1)
      if (host & bit) measure(&cases[i], MX_ISA_ALL & ~bit, mx_isa_name(bit));
  }
  free(input);
  free(copy);
  return 0;
}
