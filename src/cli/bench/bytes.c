/* Times the operations of `mxgold bench` that move bytes: codes packed, scales into the layouts of matrix units and back. */
#include <stdlib.h>
#include <string.h>

#include "ref/ref.h"
#include "ops.h"
#include "mxgold/isa.h"

int bench_moves_bytes(const bench_case *c) { return c->op >= BENCH_PACK4; }

static int of_scales(const bench_job *job) { return job->c->op == BENCH_SWIZZLE || job->c->op == BENCH_UNSWIZZLE; }

static mx_layout layout_of(const bench_job *job) { return (mx_layout)mx_layout_find(job->c->spec); }

/* Each row of codes starts on a byte. */
static size_t packed_row(const bench_job *job) {
  const size_t bits = job->c->op == BENCH_PACK4 || job->c->op == BENCH_UNPACK4 ? 4 : 6;
  return (job->cols * bits + 7) / 8;
}

size_t bench_packed_bytes(const bench_job *job) {
  return of_scales(job) ? mx_layout_size(layout_of(job), job->rows, job->cols) : job->rows * packed_row(job);
}

int bench_open_bytes(bench_job *job) {
  const mx_encoding how = {0};
  const mx_exec exec = {.n_threads = job->n_threads};
  const size_t n = job->rows * job->cols;
  job->quantised.codes = malloc(n + 1);
  job->packed = calloc(bench_packed_bytes(job) + 1, 1);
  if (!job->quantised.codes || !job->packed) {
    free(job->quantised.codes);
    free(job->packed);
    return 0;
  }
  mx_encode_array(job->quantised.codes, job->input, n, mx_format_find(of_scales(job) ? "e8m0" : job->c->spec), &how, &exec);
  return 1;
}

typedef struct movers {
  void (*pack4)(uint8_t *, const uint8_t *, size_t, int, size_t), (*unpack4)(uint8_t *, const uint8_t *, size_t, int, size_t);
  void (*pack6)(uint8_t *, const uint8_t *, size_t), (*unpack6)(uint8_t *, const uint8_t *, size_t);
  void (*swizzle)(uint8_t *, mx_layout, const uint8_t *, size_t, size_t, uint8_t);
  void (*unswizzle)(uint8_t *, mx_layout, const uint8_t *, size_t, size_t);
} movers;

/* The i-th of the rows, or of the rows of tiles. */
static void move(const bench_job *job, const movers *by, size_t i, size_t n, size_t tile, size_t packed) {
  const size_t row = i * tile, rows = n - row < tile ? n - row : tile;
  uint8_t *codes = job->quantised.codes + row * job->cols, *moved = job->packed + i * packed;
  switch (job->c->op) {
  case BENCH_PACK4:
    by->pack4(moved, codes, job->cols, MX_NIBBLE_LOW_FIRST, 0);
    return;
  case BENCH_UNPACK4:
    by->unpack4(codes, moved, job->cols, MX_NIBBLE_LOW_FIRST, 0);
    return;
  case BENCH_PACK6:
    by->pack6(moved, codes, job->cols);
    return;
  case BENCH_UNPACK6:
    by->unpack6(codes, moved, job->cols);
    return;
  case BENCH_SWIZZLE:
    by->swizzle(moved, layout_of(job), codes, rows, job->cols, 0);
    return;
  default:
    by->unswizzle(codes, layout_of(job), moved, rows, job->cols);
  }
}

/* The library's functions take no threads: each thread of ours takes rows of its own. */
static void move_all(const bench_job *job, const movers *by, size_t n, int n_threads) {
  const size_t tile = of_scales(job) ? mx_layout_row_at(layout_of(job))->row_pad : 1;
  const size_t packed = of_scales(job) ? mx_layout_size(layout_of(job), tile, job->cols) : packed_row(job);
#pragma omp parallel for schedule(static) num_threads(mx_thread_count(n_threads))
  for (size_t i = 0; i < (n + tile - 1) / tile; i++) move(job, by, i, n, tile, packed);
}

/* Functions that take no mx_exec choose their kernels by the environment alone. */
static void switch_off(uint32_t isas) {
  char names[64] = "";
  for (uint32_t bit = 1; bit <= MX_ISA_ALL; bit <<= 1)
    if (isas & bit) strcat(strcat(names, *names ? "," : ""), mx_isa_name(bit));
  setenv("MXGOLD_ISA_OFF", names, 1);
}

void bench_run_bytes(const bench_job *job, size_t n, uint32_t isa_off) {
  const movers production = {mx_pack4, mx_unpack4, mx_pack6, mx_unpack6, mx_layout_pack, mx_layout_unpack};
  const uint32_t off_already = MX_ISA_ALL & ~mx_isa_usable(0);
  switch_off(isa_off | off_already);
  move_all(job, &production, n, job->n_threads);
  switch_off(off_already);
}

void bench_run_bytes_ref(const bench_job *job, size_t n) {
  const movers reference = {ref_pack4, ref_unpack4, ref_pack6, ref_unpack6, ref_layout_pack, ref_layout_unpack};
  move_all(job, &reference, n, 1);
}
