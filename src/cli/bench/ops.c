/* Lists the operations of `mxgold bench` and runs each of them once. */
#include "ops.h"

#include <stdlib.h>
#include <string.h>

#include "ref/ref.h"
#include "cli/base/cli.h"

const bench_case bench_cases[] = {
#define BENCH(name, op, spec) {name, BENCH_##op, spec},
#include "bench.def"
#undef BENCH
};
const size_t bench_n_cases = sizeof bench_cases / sizeof bench_cases[0];

static int of_codes(const bench_case *c) { return c->op == BENCH_ENCODE || c->op == BENCH_DECODE; }
static int dequantises(const bench_case *c) { return c->op == BENCH_DEQUANTIZE || c->op == BENCH_DEQUANTIZE_BF16; }

/* Room for what n rows give. 0: no memory. */
static int alloc(mx_tensor *out, mx_tensor *transposed, const bench_job *job, size_t n) {
  const int flip = job->c->op == BENCH_TRANSPOSED;
  *transposed = (mx_tensor){0};
  if (mx_tensor_alloc(out, flip ? job->cols : n, flip ? n : job->cols, &job->spec)) return 0;
  if (job->c->op != BENCH_BOTH || !mx_tensor_alloc(transposed, job->cols, n, &job->spec)) return 1;
  mx_tensor_free(out);
  return 0;
}

int bench_open(bench_job *job, const bench_case *c, const float *input, float *room, size_t rows, size_t cols, int n_threads) {
  mx_error err;
  *job = (bench_job){.c = c, .rows = rows, .cols = cols, .input = input, .room = room, .n_threads = n_threads};
  const mx_exec exec = {.n_threads = n_threads};
  if (bench_moves_bytes(c)) return bench_open_bytes(job) ? CLI_FINE : cli_error("bench: no memory for %zu codes", rows * cols);
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
  if (!alloc(&job->quantised, &job->transposed, job, rows)) return cli_error("bench: no memory");
  mx_tensor_amax(&job->amax, input, rows, cols, cols, &job->spec, &exec);
  bench_run(job, rows, 0);
  if (dequantises(c) && mx_quantize(&job->quantised, input, rows, cols, cols, &job->spec, &exec, &err)) return cli_fail(&err);
  return CLI_FINE;
}

void bench_close(bench_job *job) {
  if (of_codes(job->c) || bench_moves_bytes(job->c)) {
    free(job->quantised.codes);
    free(job->packed);
    return;
  }
  mx_tensor_free(&job->quantised);
  mx_tensor_free(&job->transposed);
}

/* Along columns or both ways: a share of the rows is a matrix of its own. */
static void run_flipped(const bench_job *job, size_t n, const mx_exec *exec, int by_ref) {
  mx_tensor t = job->quantised, other = job->transposed;
  const size_t ld = job->cols;
  const int own = n < job->rows;
  if (own && !alloc(&t, &other, job, n)) abort();
  if (job->c->op == BENCH_BOTH && !by_ref)
    mx_quantize_both(&t, &other, job->input, n, job->cols, ld, &job->spec, NULL, exec, NULL);
  else if (job->c->op == BENCH_BOTH) {
    ref_quantize(&t, job->input, n, job->cols, ld, &job->spec, exec, NULL);
    ref_quantize_transposed(&other, job->input, n, job->cols, ld, &job->spec, exec, NULL);
  } else
    (by_ref ? ref_quantize_transposed : mx_quantize_transposed)(&t, job->input, n, job->cols, ld, &job->spec, exec, NULL);
  if (!own) return;
  mx_tensor_free(&t);
  mx_tensor_free(&other);
}

void bench_run(const bench_job *job, size_t n, uint32_t isa_off) {
  mx_exec exec = {
      .n_threads = job->n_threads, .isa_mask = isa_off, .amax_known = job->c->op == BENCH_GIVEN || n < job->rows, .amax = job->amax};
  const mx_encoding how = {0};
  const size_t ld = job->cols;
  mx_tensor t = job->quantised;
  float amax;
  size_t block_rows, block_cols;
  if (bench_moves_bytes(job->c)) {
    bench_run_bytes(job, n, isa_off);
    return;
  }
  switch (job->c->op) {
  case BENCH_TRANSPOSED:
  case BENCH_BOTH:
    run_flipped(job, n, &exec, 0);
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
  else if (job->c->op == BENCH_DEQUANTIZE_BF16)
    mx_dequantize_bf16((uint16_t *)job->room, ld, &t, &job->spec, &exec);
  else
    mx_quantize(&t, job->input, n, job->cols, ld, &job->spec, &exec, NULL);
}

void bench_run_ref(const bench_job *job, size_t n) {
  const mx_exec exec = {.amax_known = 1, .amax = job->amax};
  const mx_encoding how = {0};
  const size_t count = n * job->cols, ld = job->cols;
  mx_tensor t;
  float amax;
  if (bench_moves_bytes(job->c)) {
    bench_run_bytes_ref(job, n);
    return;
  }
  switch (job->c->op) {
  case BENCH_TRANSPOSED:
  case BENCH_BOTH:
    run_flipped(job, n, &exec, 1);
    return;
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
  if (ref_tensor_alloc(&t, n, job->cols, &job->spec)) abort();
  if (dequantises(job->c)) {
    ref_dequantize(job->room, ld, &t, &job->spec, NULL);
    for (size_t i = 0; job->c->op == BENCH_DEQUANTIZE_BF16 && i < count; i++)
      ((uint16_t *)job->room)[i] = (uint16_t)ref_encode(mx_format_find("bf16"), (double)job->room[i], &how, 0);
  } else
    ref_quantize(&t, job->input, n, job->cols, ld, &job->spec, &exec, NULL);
  ref_tensor_free(&t);
}

/* Of codes and scales. */
static size_t tensor_bytes(const mx_tensor *t) { return t->rows * t->code_stride + t->scale_rows * t->scale_cols * t->scale_bytes; }

static size_t quantised_bytes(const bench_job *job) {
  if (of_codes(job->c) || bench_moves_bytes(job->c)) return job->rows * job->cols;
  return tensor_bytes(&job->quantised) + tensor_bytes(&job->transposed);
}

static size_t float_bytes(const bench_job *job) { return job->rows * job->cols * sizeof(float); }

size_t bench_bytes_read(const bench_job *job) {
  const int two_passes = job->c->op == BENCH_QUANTIZE && job->spec.tensor_norm != MX_TENSOR_NORM_NONE; /* the largest magnitude comes first */
  switch (job->c->op) {
  case BENCH_DEQUANTIZE:
  case BENCH_DEQUANTIZE_BF16:
  case BENCH_DECODE:
  case BENCH_PACK4:
  case BENCH_PACK6:
  case BENCH_SWIZZLE:
    return quantised_bytes(job);
  case BENCH_UNPACK4:
  case BENCH_UNPACK6:
  case BENCH_UNSWIZZLE:
    return bench_packed_bytes(job);
  default:
    return float_bytes(job) * (two_passes ? 2 : 1);
  }
}

size_t bench_bytes_written(const bench_job *job) {
  switch (job->c->op) {
  case BENCH_AMAX:
    return 0;
  case BENCH_DEQUANTIZE:
  case BENCH_DECODE:
    return float_bytes(job);
  case BENCH_DEQUANTIZE_BF16:
    return float_bytes(job) / 2;
  case BENCH_PACK4:
  case BENCH_PACK6:
  case BENCH_SWIZZLE:
    return bench_packed_bytes(job);
  default:
    return quantised_bytes(job);
  }
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
