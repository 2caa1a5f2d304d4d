/* Finds the region of a fault. The families of regions are tried in the order of what they cost; the first that separates the cells that need the
 * fault from those that it spoils is taken. Where none does, or only a long list, two are tried together, in both of which the fault acts. */
#include "verify/fault/search/where.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* For each kind of number of a cell, how many cells with that number need the fault and how many it spoils. */
typedef struct numbers {
  uint64_t extent;
  uint8_t *needs, *spoiled; /* [extent], over the half for fitting */
} numbers;

typedef struct cells {
  const view *v;
  const uint8_t *state;
  int elements;
} cells;

typedef struct cell {
  size_t row, col, d, a;
} cell;

static cell cell_at(const cells *c, size_t i) {
  const fault_run *r = &c->v->r;
  if (c->elements) return (cell){i / r->cols, i % r->cols, i / r->cols / r->block_rows, i % r->cols / r->block_cols};
  return (cell){i / r->across * r->block_rows, i % r->across * r->block_cols, i / r->across, i % r->across};
}
static size_t n_cells(const cells *c) { return c->elements ? c->v->r.rows * c->v->r.cols : c->v->r.down * c->v->r.across; }

static int is_in(const cells *c, const mx_region *g, cell at) {
  return c->elements ? mxi_region_has_element(&c->v->r, g, at.row, at.col) : mxi_region_has_block(&c->v->r, g, at.d, at.a);
}

/* Do the regions (also: NULL if there is one) hold all cells that need the fault and none that it spoils, in both halves of the data? */
static int separate(const cells *c, const mx_region *g, const mx_region *also) {
  const size_t n = n_cells(c);
  for (size_t i = 0; i < n; i++) {
    if (c->state[i] == CELL_SAME) continue;
    const cell at = cell_at(c, i);
    if ((is_in(c, g, at) && (!also || is_in(c, also, at))) != (c->state[i] == CELL_NEEDS)) return 0;
  }
  return 1;
}
static int separates(const cells *c, const mx_region *g) { return separate(c, g, NULL); }

static uint64_t number_of(const cells *c, int of, cell at) {
  const fault_run *r = &c->v->r;
  switch (of) {
  case MX_REGION_ROWS:
    return at.row;
  case MX_REGION_COLUMNS:
    return at.col;
  case MX_REGION_BLOCKS:
    return at.a;
  case MX_REGION_MEMORY:
    return at.row * r->cols + at.col;
  case MX_REGION_ORDER:
    return at.d * r->across + at.a;
  case MX_REGION_ELEMENTS:
    return at.row % r->block_rows * r->block_cols + at.col % r->block_cols;
  default:
    return r->plain[at.d * r->across + at.a];
  }
}

static uint64_t extent_of(const cells *c, int of) {
  const fault_run *r = &c->v->r;
  switch (of) {
  case MX_REGION_ROWS:
    return r->rows;
  case MX_REGION_COLUMNS:
    return r->cols;
  case MX_REGION_BLOCKS:
    return r->across;
  case MX_REGION_MEMORY:
    return r->rows * r->cols;
  case MX_REGION_ORDER:
    return r->down * r->across;
  case MX_REGION_ELEMENTS:
    return r->block_rows * r->block_cols;
  default:
    return UINT64_C(1) << (r->plan.scale->bits < 16 ? r->plan.scale->bits : 16);
  }
}

/* Fills in which cells need the fault and which it spoils, over the half of the data that is fitted to, or over all. */
static int read_numbers(numbers *n, const cells *c, int of, int all_cells) {
  *n = (numbers){.extent = extent_of(c, of)};
  n->needs = noted(calloc(n->extent + 1, 1), c->v->e->until.lack);
  n->spoiled = noted(calloc(n->extent + 1, 1), c->v->e->until.lack);
  const size_t all = n_cells(c);
  for (size_t i = 0; i < all && n->needs && n->spoiled; i++) {
    if (c->state[i] == CELL_SAME) continue;
    const cell at = cell_at(c, i);
    const uint64_t k = number_of(c, of, at);
    if (k < n->extent && (all_cells || mxi_is_for_fit(at.d, at.a))) (c->state[i] == CELL_NEEDS ? n->needs : n->spoiled)[k] = 1;
  }
  return n->needs && n->spoiled;
}

/* The residues i mod n that need the fault, if it spoils none of them. n * 2 must not exceed the extent. */
static int modular(mx_region *g, const numbers *n, uint32_t modulus) {
  uint8_t spoiled[MX_REGION_MOST] = {0};
  *g = (mx_region){.of = g->of, .modulus = modulus};
  for (uint64_t i = 0; i < n->extent; i++) {
    g->set[i % modulus] |= n->needs[i];
    spoiled[i % modulus] |= n->spoiled[i];
  }
  for (uint32_t i = 0; i < modulus; i++)
    if (g->set[i] && spoiled[i]) return 0;
  return 1;
}

/* The interval from the smallest number that needs the fault to the largest, extended to the ends if nothing contradicts that. */
static int interval(mx_region *g, const numbers *n) {
  *g = (mx_region){.of = g->of, .first = UINT64_MAX};
  for (uint64_t i = 0; i < n->extent; i++)
    if (n->needs[i]) {
      if (g->first == UINT64_MAX) g->first = i;
      g->last = i;
    }
  if (g->first == UINT64_MAX) return 0;
  int before = 0, behind = 0;
  for (uint64_t i = 0; i < n->extent; i++) {
    if (!n->spoiled[i]) continue;
    if (i >= g->first && i <= g->last) return 0;
    before |= i < g->first;
    behind |= i > g->last;
  }
  if (!before) g->first = 0;
  if (!behind) g->last = UINT64_MAX;
  return 1;
}

static const int predicates[] = {MX_REGION_ZERO, MX_REGION_TAIL, MX_REGION_SUBNORMAL, MX_REGION_NEGATIVE, MX_REGION_POSITIVE};
static const double PREDICATE_COST = 4;

/* Blocks have no regions of elements. */
static int is_kind_of(const cells *c, int of) { return c->elements || !mxi_region_of_elements(&(mx_region){.of = of}); }

/* Groups of threads are as many as a power of two, but for a few. */
enum { EVERY = 16 };

/* Counts the runs of 1 in the set; each costs two numbers. */
static double set_cost(const mx_region *g) {
  double runs = 0;
  for (uint32_t i = 0; i < g->modulus; i++) runs += g->set[i] && (!i || !g->set[i - 1]);
  const double listed = runs * 2 * log2((double)g->modulus + 1);
  return 4 + log2((double)g->modulus) + fmin(listed, (double)g->modulus);
}

/* ---- two regions */

/* A region that costs no more than two of the cheapest is not held to two. */
static const double CHEAP = 20;

/* One of two regions: it holds the cells that need the fault. Of those that it spoils, each that it holds as well has its bit in `spoiled`. */
typedef struct half {
  mx_region g;
  double cost;
  uint64_t *spoiled;
} half;

/* As many cells are looked at before all are asked, of those that need the fault and of those that it spoils. */
enum { MOST_HALVES = 128, LOOKED_AT = 4096, WORDS = LOOKED_AT / 64 };

typedef struct halves {
  half at[MOST_HALVES];
  size_t n;
  cell needs[LOOKED_AT], spoiled[LOOKED_AT];
  size_t n_needs, n_spoiled;
  uint64_t bits[MOST_HALVES][WORDS];
} halves;

/* Takes up to so many cells of one state, from all over the data. */
static size_t take(cell *out, const cells *c, cell_state state, uint64_t there) {
  const uint64_t step = there / LOOKED_AT + 1;
  uint64_t seen = 0;
  size_t n = 0;
  for (size_t i = 0, all = n_cells(c); i < all; i++)
    if (c->state[i] == state && seen++ % step == 0) out[n++] = cell_at(c, i);
  return n;
}

static void add_half(halves *h, const cells *c, const mx_region *g, double cost) {
  half *one = &h->at[h->n];
  if (h->n == MOST_HALVES) return;
  for (size_t i = 0; i < h->n_needs; i++)
    if (!is_in(c, g, h->needs[i])) return;
  *one = (half){.g = *g, .cost = cost, .spoiled = h->bits[h->n]};
  memset(one->spoiled, 0, sizeof h->bits[h->n]);
  size_t held = 0;
  for (size_t i = 0; i < h->n_spoiled; i++)
    if (is_in(c, g, h->spoiled[i])) one->spoiled[i / 64] |= UINT64_C(1) << i % 64, held++;
  h->n += held < h->n_spoiled; /* else it says nothing */
}

/* The regions of one kind of number: sets, and intervals with one end or two. */
static void add_numbered(halves *h, const cells *c, int of, int all_cells) {
  numbers n;
  if (read_numbers(&n, c, of, all_cells)) {
    mx_region g;
    uint64_t first = n.extent, last = 0;
    for (uint64_t i = 0; i < n.extent; i++)
      if (n.needs[i]) last = i, first = first < i ? first : i;
    const double end = log2((double)n.extent + 1);
    add_half(h, c, &(mx_region){.of = of, .first = first, .last = UINT64_MAX}, 4 + end);
    add_half(h, c, &(mx_region){.of = of, .first = 0, .last = last}, 4 + end);
    add_half(h, c, &(mx_region){.of = of, .first = first, .last = last}, 4 + 2 * end);
    memset(n.spoiled, 0, n.extent); /* the other region tells those apart */
    for (uint32_t m = 2; m <= MX_REGION_MOST && m <= n.extent && (m * 2 <= n.extent || of == MX_REGION_ELEMENTS); m += m < EVERY ? 1 : m) {
      g.of = of;
      if (modular(&g, &n, m)) add_half(h, c, &g, set_cost(&g));
    }
  }
  free(n.needs);
  free(n.spoiled);
}

/* Do the two hold none of the spoiled cells that are looked at? */
static int hold_none(const half *a, const half *b) {
  for (size_t i = 0; i < WORDS; i++)
    if (a->spoiled[i] & b->spoiled[i]) return 0;
  return 1;
}

/* The cheapest two regions of different kinds that separate the cells together, if they cost less than *cost, which is then theirs. */
static void find_two(mx_region out[2], double *cost, const cells *c, uint64_t needs, uint64_t spoiled) {
  static const int counted[] = {MX_REGION_ROWS, MX_REGION_BLOCKS, MX_REGION_ELEMENTS, MX_REGION_COLUMNS};
  halves *h = noted(malloc(sizeof *h), c->v->e->until.lack);
  int found = 0;
  if (!h) return;
  h->n_needs = take(h->needs, c, CELL_NEEDS, needs);
  h->n_spoiled = take(h->spoiled, c, CELL_SPOILED, spoiled);
  effort_spend(c->v->e, 2 * (h->n_needs + h->n_spoiled));
  for (int all_cells = 0; all_cells < 2 && !found; all_cells++) { /* an end of few cells may lie in the other half */
    h->n = 0;
    for (size_t k = 0; k < sizeof predicates / sizeof *predicates; k++)
      if (is_kind_of(c, predicates[k])) add_half(h, c, &(mx_region){.of = predicates[k]}, PREDICATE_COST);
    for (size_t k = 0; k < sizeof counted / sizeof *counted; k++)
      if (is_kind_of(c, counted[k])) add_numbered(h, c, counted[k], all_cells);
    for (size_t i = 0; i < h->n; i++)
      for (size_t k = 0; k < i; k++) {
        const half *a = &h->at[k], *b = &h->at[i];
        if (a->g.of == b->g.of || a->cost + b->cost >= *cost || !hold_none(a, b) || !separate(c, &a->g, &b->g)) continue;
        out[0] = a->g, out[1] = b->g;
        *cost = a->cost + b->cost;
        found = 1;
      }
  }
  free(h);
}

int mxi_where(mx_region out[2], double *cost, uint64_t *held, const view *v, const uint8_t *state, int elements) {
  static const int counted[] = {MX_REGION_ROWS,  MX_REGION_BLOCKS, MX_REGION_ELEMENTS, MX_REGION_COLUMNS,
                                MX_REGION_ORDER, MX_REGION_MEMORY, MX_REGION_SCALE};
  const cells c = {v, state, elements};
  const size_t all = n_cells(&c);
  uint64_t needs = 0, spoiled = 0;
  *held = 0;
  for (size_t i = 0; i < all; i++) {
    if (state[i] == CELL_SAME) continue;
    needs += state[i] == CELL_NEEDS;
    spoiled += state[i] == CELL_SPOILED;
    if (state[i] == CELL_NEEDS) {
      const cell at = cell_at(&c, i);
      *held += !mxi_is_for_fit(at.d, at.a);
    }
  }
  out[0] = out[1] = (mx_region){.of = MX_REGION_ALL};
  *cost = 0;
  if (!needs) return 0;
  if (!spoiled) return 1;
  for (size_t k = 0; k < sizeof predicates / sizeof *predicates; k++) {
    if (!is_kind_of(&c, predicates[k])) continue;
    *out = (mx_region){.of = predicates[k]};
    *cost = PREDICATE_COST;
    if (separates(&c, out)) return 1;
  }
  mx_region best = {0};
  double least = INFINITY;
  const size_t n_counted = sizeof counted / sizeof *counted;
  for (size_t i = 0; i < 2 * n_counted && (i < n_counted || isinf(least)); i++) { /* an end of few cells may lie in the other half */
    const size_t k = i % n_counted;
    numbers n;
    if (!is_kind_of(&c, counted[k])) continue;
    if (read_numbers(&n, &c, counted[k], i >= n_counted)) {
      mx_region g = {.of = counted[k]};
      if (interval(&g, &n)) {
        const double ends = 4 + ((g.first != 0) + (g.last != UINT64_MAX)) * log2((double)n.extent + 1);
        if (ends < least && separates(&c, &g)) best = g, least = ends;
      }
      for (uint32_t m = 2; counted[k] != MX_REGION_SCALE && m <= MX_REGION_MOST && m <= n.extent; m += m < EVERY ? 1 : m) {
        g.of = counted[k];
        /* A set as long as the extent is a list, and lists are only for elements of a block. */
        if (m * 2 > n.extent && counted[k] != MX_REGION_ELEMENTS) break;
        if (modular(&g, &n, m) && set_cost(&g) < least && separates(&c, &g)) best = g, least = set_cost(&g);
      }
    }
    free(n.needs);
    free(n.spoiled);
  }
  *out = best;
  *cost = least;
  if (least > CHEAP) find_two(out, cost, &c, needs, spoiled);
  return isfinite(*cost);
}
