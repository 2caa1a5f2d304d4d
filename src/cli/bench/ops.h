/* Declares the operations that `mxgold bench` measures, each a call on the same matrix, and what they are measured against. */
#ifndef CLI_BENCH_OPS_H
#define CLI_BENCH_OPS_H

#include "mxgold/mxgold.h"

/* GIVEN: quantise with a tensor scale that is known. BOTH: along both axes from one reading. ENCODE, DECODE: single values, a byte a code. The
 * last six move bytes (bytes.c). */
typedef enum bench_op {
  BENCH_QUANTIZE,
  BENCH_GIVEN,
  BENCH_TRANSPOSED,
  BENCH_BOTH,
  BENCH_AMAX,
  BENCH_DEQUANTIZE,
  BENCH_DEQUANTIZE_BF16,
  BENCH_ENCODE,
  BENCH_DECODE,
  BENCH_PACK4,
  BENCH_UNPACK4,
  BENCH_PACK6,
  BENCH_UNPACK6,
  BENCH_SWIZZLE,
  BENCH_UNSWIZZLE
} bench_op;

/** A row of bench.def. */
typedef struct bench_case {
  const char *name;
  bench_op op;
  const char *spec;
} bench_case;
extern const bench_case bench_cases[];
extern const size_t bench_n_cases;

/** One case made ready on a matrix of rows x cols floats. */
typedef struct bench_job {
  const bench_case *c;
  size_t rows, cols;
  const float *input;
  float *room; /* as large as input */
  mx_spec spec;
  const mx_format *format;
  mx_tensor quantised;  /* of codes and bytes: quantised.codes alone */
  mx_tensor transposed; /* BOTH alone */
  uint8_t *packed;      /* of bytes alone */
  float amax;
  int n_threads;
} bench_job;

/** Says what is wrong and returns CLI_TROUBLE. bench_close() frees, after success alone. */
int bench_open(bench_job *job, const bench_case *c, const float *input, float *room, size_t rows, size_t cols, int n_threads);
void bench_close(bench_job *job);
/** Run the first n rows once, with the ISAs of isa_off switched off. */
void bench_run(const bench_job *job, size_t n, uint32_t isa_off);
/** The same by ref/, on one thread. */
void bench_run_ref(const bench_job *job, size_t n);
/** Bytes that a run of all rows must read, and write. */
size_t bench_bytes_read(const bench_job *job);
size_t bench_bytes_written(const bench_job *job);

/* The operations that move bytes, on rows x cols codes or scales, a byte each in quantised.codes, and packed. */
int bench_moves_bytes(const bench_case *c);
size_t bench_packed_bytes(const bench_job *job);
/** 0: no memory. */
int bench_open_bytes(bench_job *job);
void bench_run_bytes(const bench_job *job, size_t n, uint32_t isa_off);
void bench_run_bytes_ref(const bench_job *job, size_t n);

/* What it is held against: copy n bytes, read them (a sum of integers), write them; n_threads each. */
void bench_copy(void *to, const void *from, size_t n, int n_threads);
uint64_t bench_read(const void *from, size_t n, int n_threads);
void bench_fill(void *to, size_t n, int n_threads);

#endif
