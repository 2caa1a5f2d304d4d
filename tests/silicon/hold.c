/* Holds the models of matrix units to the device: adversarial tiles through every instruction of rows.def, output bits compared with mxgold's
   model (hopper/NAME) and with the plain model of plain.h, and digested, so that a machine without the device can repeat the comparison.

   hold [--row TEXT] [--run NAME] [--outputs N] [--seed S] [--digests FILE] [--against FILE] [--kept FILE] [--no-plain]
     --row TEXT       only rows whose name contains TEXT
     --run NAME       only that run: c, from-nothing, chain4, a-in-registers, a-in-registers-chain4, low-end
     --outputs N      at least N outputs a row in the main run (10500000)
     --digests FILE   write "ROW RUN K TILES SEED XXH3-128", one a run
     --against FILE   compare with such a file: a line that differs is a failure
     --kept FILE      also write raw device bits of one tile a family, seed S+1, as safetensors: tensors ROW/a, /b, /c, /d; not of integers
   Built with -DHOLD_NO_DEVICE the model plays the device. Exit status: 0 all equal, 1 something differs, 2 trouble. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mxgold/file.h"
#include "mxgold/mma.h"
#include "plain.h"
#include "rows.h"

#ifndef HOLD_NO_DEVICE
#include <cuda_runtime_api.h>
#endif
#include <xxhash.h>

/* The runs of a row, as differences from one instruction with C and both operands where they usually are. */
typedef struct run {
  const char *name;
  int steps, flags, share, wgmma_only; /* steps: instructions that are chained; share: it gets one in so many of the outputs */
  uint64_t tiles;                      /* set in the index of each: TILES_LOW_END, which integers do not have */
} run;
static const run runs[] = {
    {"c", 1, SIL_C, 1, 0, 0},
    {"from-nothing", 1, 0, 8, 0, 0},
    {"chain4", 4, SIL_C, 4, 0, 0},
    {"a-in-registers", 1, SIL_C | SIL_A_IN_REGISTERS, 8, 1, 0},
    {"a-in-registers-chain4", 4, SIL_A_IN_REGISTERS, 16, 1, 0},
    {"low-end", 1, SIL_C, 1, 0, TILES_LOW_END},
};
enum { run_count = sizeof runs / sizeof *runs, batch_outputs = 1 << 22 };

static void die(const char *what, const char *why) {
  fprintf(stderr, "hold: %s: %s\n", what, why);
  exit(2);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The bytes of one tile. */
static size_t bytes_a(const tiles_shape *q) { return tiles_bytes(q->a, (size_t)q->m * (size_t)q->k); }
static size_t bytes_b(const tiles_shape *q) { return tiles_bytes(q->b, (size_t)q->n * (size_t)q->k); }
static size_t bytes_c(const tiles_shape *q) { return tiles_bytes(q->c, (size_t)q->m * (size_t)q->n); }

/* Host and device buffers, grown once to the largest batch. */
typedef struct buffers {
  uint8_t *a, *b, *c, *d, *model, *plain;
  void *da, *db, *dc, *dd;
  size_t bytes;
} buffers;

#ifdef HOLD_NO_DEVICE
static void *host_alloc(size_t bytes) { return malloc(bytes); }
#else
static void check(int e, const char *what) {
  if (e) die(what, cudaGetErrorString((cudaError_t)e));
}
static void *host_alloc(size_t bytes) {
  void *p = NULL;
  check(cudaMallocHost(&p, bytes), "pinned memory");
  return p;
}
#endif

static void buffers_make(buffers *w, size_t bytes) {
  w->bytes = bytes;
  w->a = host_alloc(bytes), w->b = host_alloc(bytes), w->c = host_alloc(bytes), w->d = host_alloc(bytes);
  w->model = malloc(bytes), w->plain = malloc(bytes);
  if (!w->a || !w->b || !w->c || !w->d || !w->model || !w->plain) die("memory", "none left");
#ifndef HOLD_NO_DEVICE
  check(cudaMalloc(&w->da, bytes), "device memory"), check(cudaMalloc(&w->db, bytes), "device memory");
  check(cudaMalloc(&w->dc, bytes), "device memory"), check(cudaMalloc(&w->dd, bytes), "device memory");
#endif
}

#ifndef HOLD_NO_DEVICE
static sil_launch *launch_of(const char *name) {
  for (int i = 0; i < sil_mma_count; i++)
    if (!strcmp(sil_mma_rows[i].row.name, name)) return sil_mma_rows[i].launch;
  for (int i = 0; i < sil_f64_count; i++)
    if (!strcmp(sil_f64_rows[i].row.name, name)) return sil_f64_rows[i].launch;
  for (int i = 0; i < sil_wgmma_count; i++)
    if (!strcmp(sil_wgmma_rows[i].row.name, name)) return sil_wgmma_rows[i].launch;
  return NULL;
}

static void device_run(buffers *w, const sil_row *row, const tiles_shape *q, size_t tiles, int flags) {
  const size_t na = tiles * bytes_a(q), nb = tiles * bytes_b(q), nc = tiles * bytes_c(q);
  check(cudaMemcpy(w->da, w->a, na, cudaMemcpyHostToDevice), "copy a"), check(cudaMemcpy(w->db, w->b, nb, cudaMemcpyHostToDevice), "copy b");
  check(cudaMemcpy(w->dc, w->c, nc, cudaMemcpyHostToDevice), "copy c");
  check(cudaMemset(w->dd, 0x5A, nc), "poison d"); /* so that an output that is not written is noticed */
  check(launch_of(row->name)(w->da, w->db, w->dc, w->dd, tiles, q->k, flags), row->name);
  check(cudaMemcpy(w->d, w->dd, nc, cudaMemcpyDeviceToHost), row->name);
}
#endif

static void model_run(void *d, const sil_row *row, const buffers *w, const tiles_shape *q, size_t tiles, int flags) {
  char text[128];
  mx_error err = {0};
  mx_mma_model model;
  snprintf(text, sizeof text, "hopper/%s", row->name);
  if (mx_mma_model_find(&model, text, &err)) die(text, err.text);
  const mx_mma_args args = {
      .T = tiles, .M = (size_t)q->m, .N = (size_t)q->n, .K = (size_t)q->k, .a = w->a, .b = w->b, .c = flags & SIL_C ? w->c : NULL};
  if (mx_mma(d, &model, &args, NULL, NULL)) die(text, "mx_mma failed");
}

/* Prints the first outputs that differ with all that is needed to run them again by hand. */
static void show(const char *who, const sil_row *row, const run *r, const tiles_shape *q, const buffers *w, const uint8_t *want, size_t tiles,
                 uint64_t seed, uint64_t first, int limit) {
  const size_t cells = (size_t)q->m * (size_t)q->n;
  for (size_t i = 0; i < tiles * cells && limit; i++) {
    const uint64_t got = tiles_get(w->d, q->c, i), expected = tiles_get(want, q->c, i);
    if (got == expected) continue;
    limit--;
    const size_t tile = i / cells, m = i % cells / (size_t)q->n, n = i % (size_t)q->n, k = (size_t)q->k;
    printf("  %s %s seed %llu tile %llu (%s) m %zu n %zu: device %llx, %s %llx; c %llx\n   ", row->name, r->name, (unsigned long long)seed,
           (unsigned long long)(first + tile), tiles_family_name(r->tiles | (first + tile)), m, n, (unsigned long long)got, who,
           (unsigned long long)expected, (unsigned long long)(r->flags & SIL_C ? tiles_get(w->c, q->c, i) : 0));
    for (size_t j = 0; j < k; j++)
      printf(" %llx*%llx", (unsigned long long)tiles_get(w->a, q->a, (tile * (size_t)q->m + m) * k + j),
             (unsigned long long)tiles_get(w->b, q->b, (tile * (size_t)q->n + n) * k + j));
    printf("\n");
  }
}

static size_t compare(const buffers *w, const uint8_t *want, const tiles_shape *q, size_t n) {
  size_t wrong = 0;
  const size_t bytes = (size_t)q->c->bytes;
  if (!memcmp(w->d, want, n * bytes)) return 0;
  for (size_t i = 0; i < n; i++) wrong += memcmp(w->d + i * bytes, want + i * bytes, bytes) != 0;
  return wrong;
}

static void fill(const buffers *w, const tiles_shape *q, size_t tiles, uint64_t seed, uint64_t first) {
#pragma omp parallel for schedule(dynamic, 16)
  for (size_t t = 0; t < tiles; t++) tiles_fill(q, seed, first + t, w->a + t * bytes_a(q), w->b + t * bytes_b(q), w->c + t * bytes_c(q));
}

static void plain_run(void *d, const sil_row *row, const buffers *w, const tiles_shape *q, size_t tiles, int flags) {
  const plain_model p = plain_of(row->name, row->k, q->a, q->c);
#pragma omp parallel for schedule(dynamic, 16)
  for (size_t t = 0; t < tiles; t++)
    plain_tile(&p, q, w->a + t * bytes_a(q), w->b + t * bytes_b(q), flags & SIL_C ? w->c + t * bytes_c(q) : NULL,
               (uint8_t *)d + t * bytes_c(q));
}

static tiles_shape shape_of(const sil_row *row, int steps) {
  return (tiles_shape){row->m, row->n, row->k * steps, row->k, tiles_type_find(row->a), tiles_type_find(row->b), tiles_type_find(row->c)};
}

static int keeps(const sil_row *row, const char *only) { return strstr(row->name, only) && tiles_type_find(row->a)->ebits; }

static void keep(mx_writer *out, const size_t index[4], const sil_row *row, buffers *w, uint64_t seed) {
  const tiles_shape q = shape_of(row, 1);
  mx_error err = {0};
  fill(w, &q, TILES_FAMILIES, seed, 0);
#ifdef HOLD_NO_DEVICE
  model_run(w->d, row, w, &q, TILES_FAMILIES, SIL_C);
#else
  device_run(w, row, &q, TILES_FAMILIES, SIL_C);
#endif
  const size_t bytes[4] = {bytes_a(&q), bytes_b(&q), bytes_c(&q), bytes_c(&q)};
  const uint8_t *data[4] = {w->a, w->b, w->c, w->d};
  for (int i = 0; i < 4; i++)
    if (mx_writer_write(out, index[i], data[i], bytes[i] * TILES_FAMILIES, &err)) die("kept", err.text);
}

static mx_dtype dtype_of(const tiles_type *t) { return t->bytes == 1 ? MX_U8 : t->bytes == 2 ? MX_U16 : t->bytes == 4 ? MX_U32 : MX_U64; }

int main(int argc, char **argv) {
  const char *only = "", *only_run = "", *digests = NULL, *against = NULL, *kept = NULL;
  size_t outputs = 10500000;
  uint64_t seed = 1;
  int use_plain = 1;
  for (int i = 1; i < argc; i++) {
    const char *next = i + 1 < argc ? argv[i + 1] : NULL;
    if (!strcmp(argv[i], "--no-plain")) {
      use_plain = 0;
      continue;
    }
    if (!next) die(argv[i], "needs a value");
    if (!strcmp(argv[i], "--row"))
      only = next;
    else if (!strcmp(argv[i], "--run"))
      only_run = next;
    else if (!strcmp(argv[i], "--outputs"))
      outputs = strtoull(next, NULL, 10);
    else if (!strcmp(argv[i], "--seed"))
      seed = strtoull(next, NULL, 10);
    else if (!strcmp(argv[i], "--digests"))
      digests = next;
    else if (!strcmp(argv[i], "--against"))
      against = next;
    else if (!strcmp(argv[i], "--kept"))
      kept = next;
    else
      die(argv[i], "unknown option");
    i++;
  }
  FILE *digest_file = digests ? fopen(digests, "w") : NULL;
  if (digests && !digest_file) die(digests, "cannot write");
  char *known = NULL;
  if (against) {
    FILE *f = fopen(against, "r");
    if (!f) die(against, "cannot read");
    known = calloc(1, 1 << 20);
    if (!known || !fread(known, 1, (1 << 20) - 1, f)) die(against, "empty");
    fclose(f);
  }

  buffers w = {0};
  buffers_make(&w, (size_t)batch_outputs * 32); /* f64 m8n8k4 x4: 64 outputs from 128 + 128 values of 8 bytes */
  size_t bad_rows = 0, rows = 0;
  printf("%-40s %-22s %10s %12s %12s  %-32s %s\n", "instruction", "run", "outputs", "not mxgold's", "not plain's", "XXH3-128 of the bits",
         "seconds: tiles device models");
  for (int r = 0; r < sil_row_count; r++) {
    const sil_row *row = &sil_rows[r];
    if (!strstr(row->name, only)) continue;
    rows++;
    size_t row_wrong = 0;
    for (int i = 0; i < run_count; i++) {
      const run *u = &runs[i];
      if (u->wgmma_only && row->name[0] != 'w') continue;
      if (*only_run && strcmp(only_run, u->name)) continue;
      if (u->tiles && !tiles_type_find(row->a)->ebits) continue;
      const tiles_shape q = shape_of(row, u->steps);
      const size_t cells = (size_t)q.m * (size_t)q.n, unit = TILES_FAMILIES, want = outputs / (size_t)u->share;
      const size_t tiles = ((want + cells - 1) / cells + unit - 1) / unit * unit, batch = batch_outputs / cells / (size_t)u->steps;
      size_t wrong_model = 0, wrong_plain = 0;
      double t_fill = 0, t_device = 0, t_model = 0;
      XXH3_state_t *h = XXH3_createState();
      XXH3_128bits_reset(h);
      for (size_t first = 0; first < tiles; first += batch) {
        const size_t n = tiles - first < batch ? tiles - first : batch;
        double t = now();
        fill(&w, &q, n, seed, u->tiles | first);
        t_fill += now() - t, t = now();
#ifdef HOLD_NO_DEVICE
        model_run(w.d, row, &w, &q, n, u->flags);
#else
        device_run(&w, row, &q, n, u->flags);
#endif
        XXH3_128bits_update(h, w.d, n * cells * (size_t)q.c->bytes);
        t_device += now() - t, t = now();
#ifndef HOLD_NO_DEVICE
        model_run(w.model, row, &w, &q, n, u->flags);
        const size_t x = compare(&w, w.model, &q, n * cells);
        if (x && !wrong_model) show("mxgold", row, u, &q, &w, w.model, n, seed, first, 3);
        wrong_model += x;
#endif
        if (use_plain) {
          plain_run(w.plain, row, &w, &q, n, u->flags);
          const size_t y = compare(&w, w.plain, &q, n * cells);
          if (y && !wrong_plain) show("plain", row, u, &q, &w, w.plain, n, seed, first, 3);
          wrong_plain += y;
        }
        t_model += now() - t;
      }
      const XXH128_hash_t x = XXH3_128bits_digest(h);
      XXH3_freeState(h);
      char line[256];
      snprintf(line, sizeof line, "%s %s %d %zu %llu %016llx%016llx\n", row->name, u->name, q.k, tiles, (unsigned long long)seed,
               (unsigned long long)x.high64, (unsigned long long)x.low64);
      printf("%-40s %-22s %10zu %12zu %12zu  %016llx%016llx %5.2f %5.2f %5.2f%s\n", row->name, u->name, tiles * cells, wrong_model, wrong_plain,
             (unsigned long long)x.high64, (unsigned long long)x.low64, t_fill, t_device, t_model,
             known && !strstr(known, line) ? "  NOT THE DIGEST ON FILE" : "");
      fflush(stdout);
      if (known && !strstr(known, line)) row_wrong++;
      if (digest_file) fputs(line, digest_file), fflush(digest_file);
      row_wrong += wrong_model + wrong_plain;
    }
    bad_rows += row_wrong != 0;
  }

  if (kept) {
    mx_writer *out;
    mx_error err = {0};
    size_t(*index)[4] = calloc(sil_row_count, sizeof *index);
    if (!index || mx_writer_open(&out, kept, &err)) die(kept, err.text);
    for (int r = 0; r < sil_row_count; r++) {
      if (!keeps(&sil_rows[r], only)) continue;
      const tiles_shape q = shape_of(&sil_rows[r], 1);
      const uint64_t m = (uint64_t)q.m, n = (uint64_t)q.n, k = (uint64_t)q.k / (tiles_packed(q.a) ? 2 : 1);
      const uint64_t shapes[4][3] = {{TILES_FAMILIES, m, k}, {TILES_FAMILIES, n, k}, {TILES_FAMILIES, m, n}, {TILES_FAMILIES, m, n}};
      const tiles_type *types[4] = {q.a, q.b, q.c, q.c};
      for (int i = 0; i < 4; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s/%c", sil_rows[r].name, "abcd"[i]);
        if (mx_writer_add(out, name, dtype_of(types[i]), 3, shapes[i], &index[r][i])) die(kept, name);
      }
    }
    if (mx_writer_begin(out, &err)) die(kept, err.text);
    for (int r = 0; r < sil_row_count; r++)
      if (keeps(&sil_rows[r], only)) keep(out, index[r], &sil_rows[r], &w, seed + 1);
    if (mx_writer_commit(out, &err)) die(kept, err.text);
    free(index);
  }
  if (digest_file) fclose(digest_file);
  free(known);
  printf("%zu of %zu instructions differ\n", bad_rows, rows);
  return bad_rows != 0;
}
