/* Runs mxgold bench: how fast this machine is at each operation, against what memory allows, the scalar code and the reference model. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/bench/ops.h"
#include "cli/base/cli.h"
#include "cli/base/progress.h"
#include "mxgold/isa.h"
#include "cli/base/out.h"
#include "cli/base/shape.h"

enum { MAX_ROUNDS = 1001, SHARE_ROUNDS = 5, SCALAR_SHARE = 64, REF_SHARE = 512, BYTES_SHARE = 4 };

struct args {
  const char *only, *shape;
  cli_u64 rounds, threads;
  int json, presets;
};

static const char *case_names(size_t index) { return index < bench_n_cases ? bench_cases[index].name : NULL; }

static const cli_option options[] = {
    {"only", 0, CLI_STRING, offsetof(struct args, only), "TEXT", "operations whose name contains this text", NULL},
    {"shape", 0, CLI_STRING, offsetof(struct args, shape), "RxC", "matrix of float32, 4096x4096 by default", NULL},
    {"rounds", 0, CLI_U64, offsetof(struct args, rounds), "N", "rounds of copy, operation, read, write; 11 by default; medians are printed",
     NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads for each operation; all processors by default", NULL},
    {"presets", 0, CLI_FLAG, offsetof(struct args, presets), NULL, "quantise under every preset instead", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print JSON", NULL},
    {0},
};

/* Seconds of clock; with one thread those of its processor, so that what else the machine does is not counted. */
static double now(int n_threads) {
  struct timespec t;
  if (n_threads != 1) return progress_clock();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts. */
static double median(double *t, size_t n) {
  qsort(t, n, sizeof *t, by_size);
  return t[n / 2];
}

typedef struct bench {
  float *input, *copy;
  size_t rows, cols, rounds;
  int n_threads;
  volatile uint64_t sink;
} bench;

/* Seconds for all rows, from a share of them. */
static double on_a_share(const bench_job *job, size_t share, int by_ref) {
  const size_t n = job->rows > share ? job->rows / share : 1;
  const double at = now(job->n_threads);
  if (by_ref)
    bench_run_ref(job, n);
  else
    bench_run(job, n, MX_ISA_ALL);
  return (now(job->n_threads) - at) * (double)job->rows / (double)n;
}

static void measure(bench *b, out *o, const bench_job *job, uint32_t isa_off, const char *isa) {
  static double copying[MAX_ROUNDS], reading[MAX_ROUNDS], filling[MAX_ROUNDS], own[MAX_ROUNDS], ratio[MAX_ROUNDS];
  static double by_scalar[MAX_ROUNDS], by_ref[MAX_ROUNDS];
  const size_t bytes = b->rows * b->cols * sizeof(float);
  const int scalar = !strcmp(isa, "scalar"), bytes_move = bench_moves_bytes(job->c);
  bench_run(job, b->rows, isa_off);
  for (size_t i = 0; i < b->rounds; i++) {
    double at = now(b->n_threads);
    bench_copy(b->copy, b->input, bytes, b->n_threads);
    copying[i] = now(b->n_threads) - at, at = now(b->n_threads);
    bench_run(job, b->rows, isa_off);
    own[i] = now(b->n_threads) - at, at = now(b->n_threads);
    b->sink = bench_read(b->input, bytes, b->n_threads);
    reading[i] = now(b->n_threads) - at, at = now(b->n_threads);
    bench_fill(b->copy, bytes, b->n_threads);
    filling[i] = now(b->n_threads) - at;
    ratio[i] = copying[i] / own[i];
    /* Beside the operation in each round: a short run alone may fall into a busy moment of the machine. */
    if (!scalar) by_scalar[i] = on_a_share(job, bytes_move ? BYTES_SHARE : SCALAR_SHARE, 0) / own[i];
    by_ref[i] = on_a_share(job, bytes_move ? BYTES_SHARE : REF_SHARE, 1) / own[i];
  }
  const double middle = median(ratio, b->rounds), t = median(own, b->rounds), read = median(reading, b->rounds);
  const double possible =
      read * (double)bench_bytes_read(job) / (double)bytes + median(filling, b->rounds) * (double)bench_bytes_written(job) / (double)bytes;
  out_row(o);
  out_text(o, "operation", job->c->name);
  out_text(o, "ISA", isa);
  out_f64(o, "Gelem/s", (double)(b->rows * b->cols) / t / 1e9, "%.2f");
  out_f64(o, "/ memcpy", middle, "%.2f");
  out_f64(o, "least", ratio[0], "%.2f");
  out_f64(o, "most", ratio[b->rounds - 1], "%.2f");
  out_f64(o, "/ reading", read / t, "%.2f");
  out_f64(o, "roofline", possible / t, "%.2f");
  if (!scalar) out_f64(o, "x scalar", median(by_scalar, b->rounds), "%.0f");
  out_f64(o, "x ref", median(by_ref, b->rounds), "%.0f");
}

/* Roughly normal, the same on each machine. */
static void fill(float *x, size_t n) {
  uint64_t state = 1;
  for (size_t i = 0; i < n; i++) {
    float sum = 0;
    for (int k = 0; k < 4; k++) state = state * 6364136223846793005u + 1442695040888963407u, sum += (float)(int32_t)(state >> 32) * 0x1p-31f;
    x[i] = sum;
  }
}

/* The index-th operation, or preset that is no other's alias; NULL past the last. */
static const bench_case *case_at(bench_case *room, size_t index, int presets) {
  if (!presets) return index < bench_n_cases ? &bench_cases[index] : NULL;
  for (size_t i = 0; i < mx_preset_count(); i++)
    if (!mx_preset_at(i)->alias_of && index-- == 0) {
      *room = (bench_case){mx_preset_at(i)->name, BENCH_QUANTIZE, mx_preset_at(i)->name};
      return room;
    }
  return NULL;
}

static int all(bench *b, out *o, const char *only, int presets) {
  const uint32_t usable = mx_isa_usable(0);
  size_t n = 0;
  bench_case room;
  const bench_case *c;
  for (size_t i = 0; (c = case_at(&room, i, presets)); i++) {
    bench_job job;
    if (only && !strstr(c->name, only)) continue;
    if (bench_open(&job, c, b->input, b->copy, b->rows, b->cols, b->n_threads)) return CLI_TROUBLE;
    for (uint32_t bit = MX_ISA_VECTORS + 1; bit; bit >>= 1)
      if (usable & bit) measure(b, o, &job, mx_isa_only(bit), mx_isa_name(bit));
    if (!usable) measure(b, o, &job, MX_ISA_ALL, "scalar");
    bench_close(&job);
    n++;
  }
  return n ? CLI_FINE : cli_error("bench: no operation holds '%s' in its name, such as '%s'", only, case_names(0));
}

static int run(const cli_context *ctx, void *args) {
  (void)ctx;
  const struct args *a = args;
  uint64_t shape[2] = {4096, 4096};
  if (a->shape && shape_parse(shape, 2, a->shape) != 2) return cli_error("bench: --shape %s: expected RxC, such as 4096x4096", a->shape);
  if (shape[0] > (UINT64_C(1) << 34) / shape[1]) return cli_error("bench: --shape %s: expected at most 2^34 values", a->shape);
  if (a->rounds.given && (!a->rounds.v || a->rounds.v > MAX_ROUNDS)) return cli_error("bench: --rounds: expected 1 to %d", MAX_ROUNDS);
  bench b = {.rows = shape[0], .cols = shape[1], .rounds = a->rounds.given ? a->rounds.v : 11, .n_threads = cli_threads(&a->threads)};
  const size_t n = b.rows * b.cols;
  b.input = malloc(n * sizeof *b.input);
  b.copy = malloc(n * sizeof *b.copy);
  int rc = b.input && b.copy ? CLI_FINE : cli_error("bench: no memory for two matrices of %zu x %zu", b.rows, b.cols);
  out *o = out_new();
  if (!rc) {
    fill(b.input, n);
    memset(b.copy, 0, n * sizeof *b.copy);
    out_shape(o, "shape", shape, 2);
    out_u64(o, "threads", (uint64_t)mx_thread_count(b.n_threads));
    out_u64(o, "rounds", b.rounds);
    out_table(o, "operations");
    rc = all(&b, o, a->only, a->presets);
    out_end(o);
  }
  free(b.input);
  free(b.copy);
  if (!rc) return out_print(o, a->json);
  out_free(o);
  return rc;
}

const cli_command cmd_bench = {
    options, sizeof(struct args), run,
    "Each round copies the matrix (memcpy), runs the operation, reads the matrix (a sum) and writes as much, so that all are measured under "
    "the\n"
    "same load, and with --threads 1 by processor time. / memcpy and / reading: rate over theirs; least and most: spread over the rounds. "
    "roofline:\n"
    "time that reading and writing the bytes of the operation alone would take, over the time taken. x scalar, x ref: how many times faster "
    "than\n"
    "the portable code and than the reference model (one thread), measured on a part of the rows in each round; medians."};
