/* Computes what each knob of a grid does to the loss, and which knobs change what another one does: differences between arms that differ in one
 * knob, or differences of such differences between two values of a second knob, means over all combinations of the other knobs, seed by seed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/internal.h"

enum { MOST_AXES = 17, MOST_CELLS = 1 << 22 };

typedef struct axis {
  const char *name;
  const char **levels;
  size_t n, stride;
} axis;

/* The grid: arms[cell] is an arm's index + 1, 0 where the sweep has none; a cell's index is the sum of level * stride. */
typedef struct grid {
  const mx_report *r;
  axis axes[MOST_AXES];
  size_t n_axes, n_cells;
  size_t *arms;
  const mxi_arm *first; /* whose seeds all effects are of */
  double *sums;         /* [MX_EVALS][seeds] */
} grid;

static size_t level_of(const axis *x, const char *name) {
  size_t i = 0;
  while (i < x->n && strcmp(x->levels[i], name)) i++;
  return i;
}

static mx_status add_level(axis *x, const char *name) {
  if (level_of(x, name) < x->n) return MX_OK;
  const char **more = realloc(x->levels, (x->n + 1) * sizeof *more);
  if (!more) return MX_ERR_NOMEM;
  x->levels = more;
  x->levels[x->n++] = name;
  return MX_OK;
}

/* Arms of the grid: those that are compared, or all where there is no reference. */
static int counts(const mx_report *r, const mxi_arm *a) {
  int any = 0;
  for (size_t i = 0; i < r->n_arms && !any; i++) any = r->arms[i].reference != SIZE_MAX;
  return a->n_knobs && (!any || a->reference != SIZE_MAX);
}

static mx_status find_axes(grid *g) {
  for (size_t i = 0; i < g->r->n_arms; i++) {
    const mxi_arm *a = &g->r->arms[i];
    if (!counts(g->r, a)) continue;
    if (!g->first) {
      g->first = a;
      g->n_axes = a->n_knobs < MOST_AXES ? a->n_knobs : MOST_AXES;
      for (size_t k = 0; k < g->n_axes; k++) g->axes[k].name = a->knobs[k].axis;
    }
    for (size_t k = 0; k < g->n_axes && k < a->n_knobs; k++)
      if (add_level(&g->axes[k], a->knobs[k].level)) return MX_ERR_NOMEM;
  }
  g->n_cells = g->first ? 1 : 0;
  for (size_t k = 0; k < g->n_axes; k++) {
    g->axes[k].stride = g->n_cells;
    if (__builtin_mul_overflow(g->n_cells, g->axes[k].n, &g->n_cells) || g->n_cells > MOST_CELLS) g->n_cells = 0; /* too sparse to be crossed */
  }
  return MX_OK;
}

static mx_status place_arms(grid *g) {
  g->arms = calloc(g->n_cells + 1, sizeof *g->arms);
  g->sums = g->first ? malloc((MX_EVALS * g->first->n_runs + 1) * sizeof *g->sums) : NULL;
  if (!g->arms || (g->first && !g->sums)) return MX_ERR_NOMEM;
  for (size_t i = 0; i < g->r->n_arms && g->n_cells; i++) {
    const mxi_arm *a = &g->r->arms[i];
    size_t cell = 0;
    if (!counts(g->r, a) || a->n_knobs != g->n_axes) continue;
    for (size_t k = 0; k < g->n_axes; k++) cell += level_of(&g->axes[k], a->knobs[k].level) * g->axes[k].stride;
    g->arms[cell] = i + 1;
  }
  return MX_OK;
}

/* The loss of an arm and seed minus its reference's; NaN if a run is missing or did not finish. */
static double response(const mx_report *r, const mxi_arm *a, uint64_t seed, int eval) {
  const mxi_run *run = mxi_run_of(a, seed), *of = a->reference == SIZE_MAX ? NULL : mxi_run_of(&r->arms[a->reference], seed);
  if (!run || !run->finished || (a->reference != SIZE_MAX && (!of || !of->finished))) return NAN;
  return run->loss[eval] - (of ? of->loss[eval] : 0);
}

/* Adds to sums what the cells, with signs, come to for each seed, if all of them have every seed. */
static int add_cells(const grid *g, const size_t *cells, const double *signs, size_t n) {
  const size_t seeds = g->first->n_runs;
  for (int add = 0; add < 2; add++)
    for (size_t i = 0; i < n; i++) {
      if (!g->arms[cells[i]]) return 0;
      for (size_t s = 0; s < seeds; s++)
        for (int e = 0; e < MX_EVALS; e++) {
          const double y = response(g->r, &g->r->arms[g->arms[cells[i]] - 1], g->first->runs[s].seed, e);
          if (!add && isnan(y)) return 0;
          if (add) g->sums[(size_t)e * seeds + s] += signs[i] * y;
        }
    }
  return 1;
}

static size_t level_at(const axis *x, size_t cell) { return cell / x->stride % x->n; }

/* Level l of axis x instead of its first; and, unless y is NULL, how much that differs between level m of y and y's first. */
static mx_report_effect effect_of(const grid *g, const axis *x, size_t l, const axis *y, size_t m) {
  static const double signs[] = {1, -1, -1, 1};
  const size_t seeds = g->first->n_runs;
  mx_report_effect f = {.axis = x->name, .level = x->levels[l], .base = x->levels[0]};
  if (y) f.with_axis = y->name, f.with_level = y->levels[m], f.with_base = y->levels[0];
  for (size_t i = 0; i < MX_EVALS * seeds; i++) g->sums[i] = 0;
  for (size_t c = 0; c < g->n_cells; c++) {
    if (level_at(x, c) || (y && level_at(y, c))) continue;
    const size_t to = c + l * x->stride, side = y ? m * y->stride : 0, cells[] = {to + side, c + side, to, c};
    f.cells += (size_t)add_cells(g, cells, signs, y ? 4 : 2);
  }
  for (size_t i = 0; i < MX_EVALS * seeds && f.cells; i++) g->sums[i] /= (double)f.cells;
  for (int e = 0; e < MX_EVALS; e++) f.mean[e] = mx_mean_of(&g->sums[(size_t)e * seeds], f.cells ? seeds : 0, g->r->confidence);
  return f;
}

/* Holm's correction over effects [from, to), and which are resolved. */
static mx_status correct(mx_report_effect *f, size_t n, double confidence) {
  double *p = malloc((n + 1) * sizeof *p);
  mx_status status = p ? MX_OK : MX_ERR_NOMEM;
  for (int e = 0; e < MX_EVALS && !status; e++) {
    for (size_t i = 0; i < n; i++) p[i] = f[i].mean[e].p;
    status = mx_holm(p, p, n);
    for (size_t i = 0; i < n; i++) {
      f[i].p[e] = p[i];
      f[i].resolved[e] = p[i] < 1 - confidence ? f[i].mean[e].mean > 0 ? 1 : -1 : 0;
    }
  }
  free(p);
  return status;
}

static mx_status work_out(mx_report *r, const grid *g) {
  size_t n = 0, mains;
  for (size_t i = 0; i < g->n_axes; i++) {
    n += g->axes[i].n - 1;
    for (size_t k = i + 1; k < g->n_axes; k++) n += (g->axes[i].n - 1) * (g->axes[k].n - 1);
  }
  if (!(r->effects = calloc(n + 1, sizeof *r->effects))) return MX_ERR_NOMEM;
  for (size_t i = 0; i < g->n_axes; i++)
    for (size_t l = 1; l < g->axes[i].n; l++) r->effects[r->n_effects++] = effect_of(g, &g->axes[i], l, NULL, 0);
  mains = r->n_effects;
  for (size_t i = 0; i < g->n_axes; i++)
    for (size_t k = i + 1; k < g->n_axes; k++)
      for (size_t l = 1; l < g->axes[i].n; l++)
        for (size_t m = 1; m < g->axes[k].n; m++) r->effects[r->n_effects++] = effect_of(g, &g->axes[i], l, &g->axes[k], m);
  const mx_status status = correct(r->effects, mains, r->confidence);
  return status ? status : correct(r->effects + mains, r->n_effects - mains, r->confidence);
}

mx_status mxi_effects(mx_report *r) {
  grid g = {.r = r};
  mx_status status = find_axes(&g);
  if (!status) status = place_arms(&g);
  const int compared_already = g.n_axes == 1 && !strcmp(g.axes[0].name, "arms"); /* arms alone are no knobs */
  if (!status && g.n_cells && !compared_already) status = work_out(r, &g);
  for (size_t k = 0; k < g.n_axes; k++) free(g.axes[k].levels);
  free(g.arms);
  free(g.sums);
  return status;
}
