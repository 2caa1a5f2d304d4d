/* Measures, for make ablate-coverage, how often the 95 % interval of `ablate` holds the true difference between two presets. A generator's tensor is cut into
 * SAMPLES by rows, so that all of them have the same channels; the mean difference over the samples stands for the true one. The median width of the
 * intervals is printed beside the share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mxgold/ablate.h"
#include "mxgold/spec.h"

enum { SAMPLES = 100, PARTS = 512, OTHERS = 2 };

static const char *const presets[1 + OTHERS] = {"nvfp4", "ocp-mxfp4", "torchao-rceil"};
static const char *const data[] = {"gaussian", "laplace", "student:4", "student:3", "rows:1", "rows:2.5", "outliers:0.01:20"};
static const size_t shapes[][2] = {{20, 64}, {64, 256}, {128, 512}, {512, 1024}};

/* As ablate divides a tensor. */
static size_t parts_of(size_t n) { return n / 64 < PARTS ? n / 64 : PARTS; }

static void measure(mx_interval out[OTHERS], const float *x, size_t rows, size_t cols, const mx_spec specs[1 + OTHERS], mx_measure *room) {
  static double units[1 + OTHERS][PARTS];
  const size_t n = parts_of(rows * cols);
  for (int k = 0; k <= OTHERS; k++) {
    const mx_measure_options how = {.repeats = 1, .n_units = n, .unit_error = units[k]};
    if (mx_measure_tensor(room, x, rows, cols, &specs[k], &how, NULL)) abort();
  }
  const double *const others[OTHERS] = {units[1], units[2]};
  if (mx_bootstrap_db_all(out, units[0], others, OTHERS, NULL, n, 0, 1)) abort();
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  mx_spec specs[1 + OTHERS];
  mx_measure *room = malloc(sizeof *room);
  for (int k = 0; k <= OTHERS; k++)
    if (mx_preset_find(&specs[k], presets[k], NULL)) abort();
  printf("| data |");
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    printf(" %zux%zu, %zu parts |", shapes[s][0], shapes[s][1], parts_of(shapes[s][0] * shapes[s][1]));
  printf("\n|---|---|---|---|---|\n");
  for (size_t d = 0; d < sizeof data / sizeof *data; d++) {
    mx_data kind;
    if (mx_data_parse(&kind, data[d], NULL)) abort();
    printf("| `%s` |", data[d]);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
      const size_t rows = shapes[s][0], cols = shapes[s][1];
      static mx_interval at[SAMPLES][OTHERS];
      float *x = malloc(SAMPLES * rows * cols * sizeof *x);
      double mean[OTHERS] = {0}, width[SAMPLES * OTHERS];
      int held = 0;
      if (!x || !room) abort();
      mx_data_fill(x, SAMPLES * rows, cols, &kind, 0);
      for (size_t i = 0; i < SAMPLES; i++) {
        measure(at[i], x + i * rows * cols, rows, cols, specs, room);
        for (int k = 0; k < OTHERS; k++) mean[k] += at[i][k].at / SAMPLES;
      }
      for (size_t i = 0; i < SAMPLES; i++)
        for (int k = 0; k < OTHERS; k++) {
          held += at[i][k].low <= mean[k] && mean[k] <= at[i][k].high;
          width[i * OTHERS + (size_t)k] = at[i][k].high - at[i][k].low;
        }
      qsort(width, SAMPLES * OTHERS, sizeof *width, compare);
      printf(" %.1f %%, %.2f dB |", 100.0 * held / (SAMPLES * OTHERS), width[SAMPLES * OTHERS / 2]);
      free(x);
    }
    puts("");
    fflush(stdout);
  }
  free(room);
  return 0;
}
