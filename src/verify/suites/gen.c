/* Makes suites: their table, their shapes, and the cases that a call asks for. */
#include "verify/suites/gen.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/random.h"

static const struct {
  const char *name, *doc;
} suites[] = {
#define X(id, name, doc) {name, doc},
    MX_SUITES(X)
#undef X
};

const char *mx_suite_name(int suite) { return suite >= 0 && suite < MX_SUITE_COUNT ? suites[suite].name : NULL; }
const char *mx_suite_doc(int suite) { return suite >= 0 && suite < MX_SUITE_COUNT ? suites[suite].doc : NULL; }

int mx_suite_find(const char *name) {
  for (int i = 0; i < MX_SUITE_COUNT; i++)
    if (!strcmp(suites[i].name, name)) return i;
  return -1;
}

static size_t at_least(size_t value, size_t least) { return value < least ? least : value; }

/* The shape of a suite if the caller names none. */
static void own_shape(gen *g, int suite) {
  const size_t bc = g->block_cols, wide = at_least(256 / bc * bc, 2 * bc);
  if (!g->cols) g->cols = suite == MX_SUITE_TAILS || suite == MX_SUITE_PADDING ? 2 * bc + at_least(bc / 2, 2) - 1 : wide;
  if (!g->rows)
    g->rows = suite == MX_SUITE_CODES      ? mxi_gen_codes_rows(g->spec, g->cols)
              : suite == MX_SUITE_BOUNDARY ? mxi_gen_boundary_rows(g->spec, g->cols)
                                           : at_least(64, 4 * g->block_rows);
  g->n = 1;
  if (suite == MX_SUITE_SPECIAL) {
    g->n = mxi_gen_special_count();
    g->rows = g->block_rows > 1 && g->block_rows < 256 ? g->block_rows : 1;
    g->cols = 2 * bc;
  }
  g->ld = suite == MX_SUITE_PADDING ? (g->cols + bc) / bc * bc : g->cols;
}

mx_status mxi_gen_plan(gen *g, int suite, const mx_spec *spec, size_t rows, size_t cols, uint64_t seed, mx_error *err) {
  size_t n;
  *g = (gen){.spec = spec, .rows = rows, .cols = cols, .seed = seed, .own_cols = !cols};
  mx_spec_block(spec, rows ? rows : 64, cols ? cols : 256, &g->block_rows, &g->block_cols);
  own_shape(g, suite);
  if (__builtin_mul_overflow(g->rows, g->ld, &n) || __builtin_mul_overflow(n, g->n, &n))
    return mx_fail(err, MX_ERR_NOMEM, "the shape overflows");
  return MX_OK;
}

mx_status mx_generate(mx_cases *out, int suite, const mx_spec *spec, size_t rows, size_t cols, uint64_t seed, mx_error *err) {
  static mx_status (*const fill[])(gen *) = {mxi_gen_random, mxi_gen_ties,    mxi_gen_boundary, mxi_gen_codes, mxi_gen_special,
                                             mxi_gen_tails,  mxi_gen_padding, mxi_gen_layout,   mxi_gen_order, mxi_gen_cancel};
  if (!out || !spec || suite < 0 || suite >= MX_SUITE_COUNT) return mx_fail(err, MX_ERR_ARG, "mx_generate: NULL or unknown argument");
  *out = (mx_cases){0};
  mx_status s = mx_spec_check(spec, err);
  if (s) return s;
  if (suite == MX_SUITE_MINIMAL) {
    s = mxi_minimal_cases(out, seed);
    return s ? mx_fail(err, s, "suite minimal: %s", mx_status_text(s)) : MX_OK;
  }
  gen g;
  s = mxi_gen_plan(&g, suite, spec, rows, cols, seed, err);
  if (s) return s;
  const size_t n = g.n * g.rows * g.ld;
  g.x = calloc(n + 1, sizeof *g.x);
  if (!g.x) return mx_fail(err, MX_ERR_NOMEM, "out of memory for %zu numbers", n);
  s = fill[suite](&g);
  if (s) {
    free(g.x);
    if (suite == MX_SUITE_ORDER && s == MX_ERR_UNSUPPORTED)
      return mx_fail(err, s,
                     "suite order: sums of %zu products would depend on their order under this spec; expected rows of at most %zu elements",
                     g.cols, g.longest);
    return mx_fail(err, s, "suite %s: %s", suites[suite].name, mx_status_text(s));
  }
  *out = (mx_cases){g.n, g.rows, g.cols, g.ld, g.x};
  return MX_OK;
}

void mx_cases_free(mx_cases *cases) {
  if (!cases) return;
  free(cases->x);
  cases->x = NULL;
}
