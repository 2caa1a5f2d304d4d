/* Makes suite minimal: of many small tensors, the few that tell every preset from every other. Greedy: the tensor that separates most of the pairs
 * left comes next. Each preset's bytes on each tensor are kept as one hash. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/shortage.h"
#include "mxgold/isa.h"
#include "verify/suites/gen.h"

enum { ROWS = 2, COLS = 64, AREA = ROWS * COLS, MAX_PRESETS = 512 };

typedef struct table {
  size_t n_presets, n_tensors;
  mx_spec specs[MAX_PRESETS];
  const char *names[MAX_PRESETS];
  float *x;       /* [n_tensors][ROWS][COLS] */
  uint64_t *hash; /* [n_tensors][n_presets] */
  shortage lack;  /* with less memory other tensors would be chosen: then there is no answer */
} table;

/* Bytes of a tensor under a spec, NaN scales alike and the codes under them left out; the sizes are part of it. */
static uint64_t signature(const float *x, const mx_spec *spec, shortage *lack) {
  mx_tensor t;
  if (noted_status(mx_tensor_alloc(&t, ROWS, COLS, spec), lack)) return 0;
  uint64_t h = mxi_hash_with(mxi_hash_with(mxi_hash_with(1, t.code_stride), t.scale_cols * 8 + t.scale_bytes), (uint64_t)t.has_tensor_scale);
  if (noted_status(mx_quantize(&t, x, ROWS, COLS, COLS, spec, &(mx_exec){.n_threads = 1}, NULL), lack))
    h = mxi_hash_with(h, 12345);
  else {
    const mx_format *f = mx_scale_format(spec->scale);
    size_t br, bc;
    mx_spec_block(spec, ROWS, COLS, &br, &bc);
    for (size_t r = 0; r < ROWS; r++)
      for (size_t c = 0; c < COLS; c++) {
        const uint32_t scale = mx_scale_code_at(&t, r * t.scale_cols + c / bc), sign = f->sign_bits ? 1u << (f->bits - 1) : 0;
        const int is_nan = mx_format_is_nan(f, scale & ~sign);
        if (c % bc == 0) h = mxi_hash_with(h, is_nan ? 0xFFFFF : scale);
        if (!is_nan) h = mxi_hash_with(h, mx_code_at(&t, spec, r, c));
      }
  }
  mx_tensor_free(&t);
  return h;
}

/* ---- candidates */

static void add(table *t, const float *x, size_t n) {
  float *more = noted(realloc(t->x, (t->n_tensors + n) * AREA * sizeof *more), &t->lack);
  if (!more) return;
  t->x = more;
  memcpy(t->x + t->n_tensors * AREA, x, n * AREA * sizeof *x);
  t->n_tensors += n;
}

static void add_suite(table *t, int suite, const mx_spec *spec, uint64_t seed, size_t tensors) {
  mx_cases c;
  if (noted_status(mx_generate(&c, suite, spec, tensors * ROWS, COLS, seed, NULL), &t->lack)) return;
  if (c.cols == COLS && c.ld == COLS) add(t, c.x, c.rows * c.n / ROWS < tensors ? c.rows * c.n / ROWS : tensors);
  mx_cases_free(&c);
}

/* Blocks of chosen maxima with ordinary numbers beside them. */
static void add_edges(table *t, uint64_t seed) {
  static const uint32_t edges[] = {0x00000000, 0x00000001, 0x00000003, 0x00200000, 0x00300000, 0x00400001, 0x007FFFFF, 0x00800000, 0x00C00000,
                                   0x01000000, 0x017FFFFF, 0x027FFFFF, 0x047FFFFF, 0x07FFFFFF, 0x02000000, 0x05FFFFFF, 0x06000000, 0x3F7FFFFF,
                                   0x3FFFFFFF, 0x407FFFFF, 0x457FFFFF, 0x40E00000, 0x7E7FFFFF, 0x7EFFFFFF, 0x7F3FFFFF, 0x7F5FFFFF, 0x7F600000,
                                   0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x2EDBE6FF};
  gen g = {.seed = seed};
  for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
    for (int kind = 0; kind < 6; kind++) {
      float x[AREA];
      const float edge = mxi_gen_from_bits(edges[i]);
      for (size_t k = 0; k < AREA; k++) {
        float v = kind == 0 ? 0 : kind == 5 ? -0.0f : mxi_gen_normal(&g) / 4;
        if (kind == 2 && isfinite(edge)) v = edge * ((float)(mxi_gen_bits(&g) >> 8) * 0x1p-24f);
        if (kind == 3) v = ldexpf(v, -130);
        if (kind == 4) v = ldexpf(v, 122);
        x[k] = mxi_gen_bits(&g) & 1 ? v : -v;
        if (kind == 0 && k < 8) x[k] = -0.0f;
      }
      x[3] = edge;
      x[COLS - 7] = -edge;
      if (kind == 1) x[COLS + 20] = 448; /* another tensor amax */
      add(t, x, 1);
    }
}

static void candidates(table *t, uint64_t seed) {
  mx_spec ocp = {0};
  add_edges(t, seed);
  for (size_t i = 0; i < t->n_presets; i++)
    if (i % 3 == 0) add_suite(t, MX_SUITE_TIES, &t->specs[i], seed + i, 2);
  add_suite(t, MX_SUITE_RANDOM, &ocp, seed, 24);
  add_suite(t, MX_SUITE_BOUNDARY, &ocp, seed, 160);
}

/* Adds tensors that tell no pair of presets apart but that kernels fail on: positions, and the ties of each element format. */
static size_t witnesses(float *x, uint64_t seed, shortage *lack) {
  static const char *const names[] = {"ocp-mxfp4", "ocp-mxfp8-e4m3", "te-nvfp4", "mxfp4-e4m3"};
  size_t n = 0;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    for (int k = 0; k < 2; k++) {
      mx_spec spec;
      mx_cases c;
      if (mx_preset_find(&spec, names[i], NULL)) continue;
      if (noted_status(mx_generate(&c, k ? MX_SUITE_TIES : MX_SUITE_LAYOUT, &spec, ROWS, COLS, seed, NULL), lack)) continue;
      memcpy(x + n++ * AREA, c.x, AREA * sizeof *x);
      mx_cases_free(&c);
    }
  /* Maxima next to the largest value of e2m1, and one of 3 * 2^-149, a sixth of which a division rounds to 0 and a reciprocal does not. */
  for (size_t i = 0; i < AREA; i++) x[n * AREA + i] = i % 16 ? (float)(i % 5) - 2 : mxi_gen_nudge(6, (int)(i / 16) - 2);
  for (size_t i = AREA - 32; i < AREA; i++) x[n * AREA + i] = i % 32 ? 0 : 0x1.8p-148f;
  return n + 1;
}

enum { WITNESSES = 9 };

/* ---- choice */

static void presets_of(table *t) {
  for (size_t i = 0; i < mx_preset_count() && t->n_presets < MAX_PRESETS; i++) {
    const mx_preset *p = mx_preset_at(i);
    if (p->alias_of || mx_preset_find(&t->specs[t->n_presets], p->name, NULL)) continue;
    t->names[t->n_presets++] = p->name;
  }
}

static mx_status hash_all(table *t) {
  if (short_of_memory(&t->lack)) return MX_ERR_NOMEM;
  t->hash = malloc((t->n_tensors * t->n_presets + 1) * sizeof *t->hash);
  if (!t->hash) return MX_ERR_NOMEM;
#pragma omp parallel for schedule(dynamic, 4) num_threads(mx_thread_count(0))
  for (size_t i = 0; i < t->n_tensors; i++)
    for (size_t p = 0; p < t->n_presets; p++) t->hash[i * t->n_presets + p] = signature(t->x + i * AREA, &t->specs[p], &t->lack);
  return short_of_memory(&t->lack) ? MX_ERR_NOMEM : MX_OK;
}

/* Presets that are not yet told apart share a class. Counts the pairs that a tensor's hashes would separate. */
static size_t parts(const table *t, const uint32_t *group, size_t tensor) {
  const uint64_t *h = t->hash + tensor * t->n_presets;
  size_t n = 0;
  for (size_t a = 0; a < t->n_presets; a++)
    for (size_t b = a + 1; b < t->n_presets; b++) n += group[a] == group[b] && h[a] != h[b];
  return n;
}

static void split(const table *t, uint32_t *group, size_t tensor) {
  const uint64_t *h = t->hash + tensor * t->n_presets;
  uint32_t next[MAX_PRESETS], n = 0;
  for (size_t a = 0; a < t->n_presets; a++) {
    size_t b = 0;
    while (b < a && (group[b] != group[a] || h[b] != h[a])) b++;
    next[a] = b < a ? next[b] : n++;
  }
  memcpy(group, next, t->n_presets * sizeof *next);
}

mx_status mxi_minimal_cases(mx_cases *out, uint64_t seed) {
  table *t = calloc(1, sizeof *t);
  uint32_t *group = calloc(MAX_PRESETS, sizeof *group);
  mx_status s = t && group ? MX_OK : MX_ERR_NOMEM;
  if (!s) presets_of(t), candidates(t, seed), s = hash_all(t);
  float *x = s ? NULL : malloc((t->n_tensors + WITNESSES) * AREA * sizeof *x);
  size_t n = 0;
  while (x) {
    size_t best = 0, most = 0;
    for (size_t i = 0; i < t->n_tensors; i++) {
      const size_t got = parts(t, group, i);
      if (got > most) most = got, best = i;
    }
    if (!most) break;
    memcpy(x + n++ * AREA, t->x + best * AREA, AREA * sizeof *x);
    split(t, group, best);
  }
  if (x) n += witnesses(x + n * AREA, seed, &t->lack);
  if (!x || short_of_memory(&t->lack)) s = s ? s : MX_ERR_NOMEM;
  if (s)
    free(x);
  else
    *out = (mx_cases){n, ROWS, COLS, COLS, x};
  if (t) free(t->x), free(t->hash);
  free(t);
  free(group);
  return s;
}

size_t mx_minimal_unseparated(const char *pairs[][2], size_t room, const mx_cases *cases) {
  table *t = calloc(1, sizeof *t);
  size_t n = 0;
  if (!t) return SIZE_MAX;
  presets_of(t);
  t->x = cases->x;
  t->n_tensors = cases->n;
  if (hash_all(t)) n = SIZE_MAX;
  for (size_t a = 0; a < t->n_presets && n != SIZE_MAX; a++)
    for (size_t b = a + 1; b < t->n_presets; b++) {
      int apart = 0;
      for (size_t i = 0; i < t->n_tensors && !apart; i++) apart = t->hash[i * t->n_presets + a] != t->hash[i * t->n_presets + b];
      if (apart) continue;
      if (n < room) pairs[n][0] = t->names[a], pairs[n][1] = t->names[b];
      n++;
    }
  free(t->hash);
  free(t);
  return n;
}
