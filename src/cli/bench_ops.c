/* Operations of `mxgold bench`. */
#include "bench_ops.h"

#include <stdlib.h>
#include <string.h>

#include "../../ref/ref.h"
#include "cli.h"

const bench_case bench_cases[] = {
#define BENCH(name, op, spec) {name, BENCH_##op, spec},
#include "bench.def"
#undef BENCH
};
const size_t bench_n_cases = sizeof bench_cases / sizeof bench_cases[0];

static int of_codes(const bench_case *c) { return c->op == BENCH_ENCODE || c->op == BENCH_DECODE; }

int bench_open(bench_job *job, const bench_case *c, const float *input, float *room, size_t rows, size_t cols, int n_threads) {
  mx_error err;
  *job = (bench_job){.c = c, .rows = rows, .cols = cols, .input = input, .room = room, .n_threads = n_threads};
  const mx_exec exec = {.n_threads = n_threads};
  if (of_codes(c)) {
    const mx_encoding how = {0};
    job->format = mx_format_find(c->spec);
    if (!job->format) return cli_error("bench: no format %s", c->spec);
    job->quantised.codes = malloc(rows * cols + 1);
    if (!job->quantised.codes) return cli_error("bench: no memory for %zu codes", rows * cols);
    mx_encode_array(job->quantised.codes, input, rows * cols, job->format, &how, &exec);
    return CLI_FINE;
  }
  if (strchr(c->spec, '=') ? mx_spec_parse(&job->spec, c->spec, &err) : mx_preset_find(&job->spec, c->spec, &err)) return cli_fail(&err);
  const int flip = c->op == BENCH_TRANSPOSED;
  if (mx_tensor_alloc(&job->quantised, flip ? cols : rows, flip ? rows : cols, &job->spec)) return cli_error("bench: no memory");
  mx_tensor_amax(&job->amax, input, rows, cols, cols, &job->spec, &exec);
  bench_run(job, rows, 0);
  if (c->op == BENCH_DEQUANTIZE && mx_quantize(&job->quantised, input, rows, cols, cols, &job->spec, &exec, &err)) return cli_fail(&err);
  return CLI_FINE;
}

void bench_close(bench_job *job) {
  if (of_codes(job->c))
    free(job->quantised.codes);
  else
    mx_tensor_free(&job->quantised);
}

void bench_run(const bench_job *job, size_t n, uint32_t isa_off) {
  mx_exec exec = {
      .n_threads = job->n_threads, .isa_mask = isa_off, .amax_known = job->c->op == BENCH_GIVEN || n < job->rows, .amax = job->amax};
  const mx_encoding how = {0};
  const size_t ld = job->cols;
  mx_tensor t = job->quantised;
  float amax;
  size_t block_rows, block_cols;
  switch (job->c->op) {
  case BENCH_TRANSPOSED:
    if (n == job->rows) mx_quantize_transposed(&t, job->input, n, job->cols, ld, &job->spec, &exec, NULL);
    return;
  case BENCH_AMAX:
    mx_tensor_amax(&amax, job->input, n, job->cols, ld, &job->spec, &exec);
    return;
  case BENCH_ENCODE:
    mx_encode_array(t.codes, job->input, n * job->cols, job->format, &how, &exec);
    return;
  case BENCH_DECODE:
    mx_decode_array(job->room, t.codes, n * job->cols, job->format, &exec);
    return;
  default:
    break;
  }
  mx_spec_block(&job->spec, job->rows, job->cols, &block_rows, &block_cols);
  t = mx_tensor_rows(&job->quantised, 0, n, block_rows);
  if (job->c->op == BENCH_DEQUANTIZE)
    mx_dequantize(job->room, ld, &t, &job->spec, &exec);
  else
    mx_quantize(&t, job->input, n, job->cols, ld, &job->spec, &exec, NULL);
}

void bench_run_ref(const bench_job *job, size_t n) {
  const mx_exec exec = {.amax_known = 1, .amax = job->amax};
  const mx_encoding how = {0};
  const size_t count = n * job->cols, ld = job->cols;
  mx_tensor t;
  float amax;
  switch (job->c->op) {
  case BENCH_AMAX:
    ref_tensor_amax(&amax, job->input, n, job->cols, ld, &job->spec, NULL);
    return;
  case BENCH_ENCODE:
    for (size_t i = 0; i < count; i++) job->quantised.codes[i] = (uint8_t)ref_encode(job->format, (double)job->input[i], &how, 0);
    return;
  case BENCH_DECODE:
    for (size_t i = 0; i < count; i++) job->room[i] = (float)ref_decode(job->format, job->quantised.codes[i]);
    return;
  default:
    break;
  }
  const int flip = job->c->op == BENCH_TRANSPOSED;
  if (ref_tensor_alloc(&t, flip ? job->cols : n, flip ? n : job->cols, &job->spec)) abort();
  if (flip)
    ref_quantize_transposed(&t, job->input, n, job->cols, ld, &job->spec, &exec, NULL);
  else if (job->c->op == BENCH_DEQUANTIZE)
    ref_dequantize(job->room, ld, &t, &job->spec, NULL);
  else
    ref_quantize(&t, job->input, n, job->cols, ld, &job->spec, &exec, NULL);
  ref_tensor_free(&t);
}

/* Of codes and scales. */
static size_t quantised_bytes(const bench_job *job) {
  const mx_tensor *t = &job->quantised;
  return of_codes(job->c) ? job->rows * job->cols : t->rows * t->code_stride + t->scale_rows * t->scale_cols * t->scale_bytes;
}

static size_t float_bytes(const bench_job *job) { return job->rows * job->cols * sizeof(float); }

static int reads_codes(const bench_job *job) { return job->c->op == BENCH_DEQUANTIZE || job->c->op == BENCH_DECODE; }

size_t bench_bytes_read(const bench_job *job) {
  if (reads_codes(job)) return quantised_bytes(job);
  const int two_passes = job->c->op == BENCH_QUANTIZE && job->spec.tensor_norm != MX_TENSOR_NORM_NONE; /* the largest magnitude comes first */
  return float_bytes(job) * (two_passes ? 2 : 1);
}

size_t bench_bytes_written(const bench_job *job) {
  if (job->c->op == BENCH_AMAX) return 0;
  return reads_codes(job) ? float_bytes(job) : quantised_bytes(job);
}

enum { SLICE = 16384 }; /* bytes, as a row of the usual matrix */

void bench_copy(void *to, const void *from, size_t n, int n_threads) {
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(n_threads))
  for (size_t at = 0; at < n; at += SLICE) memcpy((char *)to + at, (const char *)from + at, n - at < SLICE ? n - at : SLICE);
}

/* Integers, so that the compiler may reorder the sum and the time is that of memory. */
uint64_t bench_read(const void *from, size_t n, int n_threads) {
  uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum) num_threads(mx_thread_count(n_threads))
  for (size_t at = 0; at < n / SLICE; at++) {
    const char *row = (const char *)from + at * SLICE;
    uint64_t part[8] = {0}, word[8];
    for (size_t i = 0; i < SLICE; i += sizeof word) {
      memcpy(word, row + i, sizeof word);
      for (int k = 0; k < 8; k++) part[k] += word[k];
    }
    for (int k = 0; k < 8; k++) sum += part[k];
  }
  return sum;
}

void bench_fill(void *to, size_t n, int n_threads) {
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(n_threads))
  for (size_t at = 0; at < n; at += SLICE) memset((char *)to + at, 1, n - at < SLICE ? n - at : SLICE);
}
