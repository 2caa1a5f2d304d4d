/* Says where in D the wrong outputs are, and what stands there. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/judge/internal.h"

static void say(judge_job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(judge_job *j, const char *format, ...) {
  va_list args;
  if (j->out->n_regions == MX_JUDGE_REGIONS) return;
  va_start(args, format);
  vsnprintf(j->out->regions[j->out->n_regions++], sizeof j->out->regions[0], format, args);
  va_end(args);
}

/* Wrong outputs by row and by column. */
typedef struct sides {
  uint64_t *row, *col;
  size_t r0, r1, c0, c1; /* the box around them, ends included */
} sides;

static const size_t tiles[] = {256, 128, 64, 32, 16, 8};

/* A box of wrong outputs is called a tile if its sides are at most this and at least one in so many of its outputs is wrong. With smaller limits
 * large tiles get no name; with larger or emptier boxes, whatever lies around a few outputs is called a tile. */
enum { LARGEST_TILE = 512, FILLED_ONE_IN = 2 };
/* Lines are said to share a remainder if they are all lines with that remainder, out of at least so many; or if chance would do it once in 2^20.
 * With less, patterns are stated that are none. */
enum { ALL_OF_CLASS = 3, CHANCE_BITS = 20 };

/* "rows 96 to 127 (the last 32)", or nothing for all of them. */
static void range(char *out, size_t size, const char *what, size_t first, size_t last, size_t n) {
  *out = 0;
  if (first == 0 && last + 1 == n) return;
  int at = first == last ? snprintf(out, size, "%s %zu", what, first) : snprintf(out, size, "%ss %zu to %zu", what, first, last);
  if (last + 1 != n || n < 2) return;
  at += snprintf(out + at, size - (size_t)at, first == last ? " (the last" : " (the last %zu", last - first + 1);
  for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
    if (n % tiles[i] == last - first + 1 && n > tiles[i]) {
      at += snprintf(out + at, size - (size_t)at, ", the tail of tiles of %zu", tiles[i]);
      break;
    }
  snprintf(out + at, size - (size_t)at, ")");
}

static void box(judge_job *j, const sides *s) {
  const size_t M = j->right.M, N = j->right.N;
  const uint64_t area = (uint64_t)(s->r1 - s->r0 + 1) * (s->c1 - s->c0 + 1);
  char rows[80], cols[80];
  if (j->out->differ == j->out->outputs) {
    say(j, "every output is wrong");
    return;
  }
  range(rows, sizeof rows, "row", s->r0, s->r1, M);
  range(cols, sizeof cols, "column", s->c0, s->c1, N);
  if (!*rows && !*cols) return;
  say(j, "all in %s%s%s%s", rows, *rows && *cols ? ", " : "", cols, area == j->out->differ ? "; everything there is wrong" : "");
  const size_t h = s->r1 - s->r0 + 1, w = s->c1 - s->c0 + 1;
  if (h > 1 && w > 1 && h < M && w < N && h <= LARGEST_TILE && w <= LARGEST_TILE && s->r0 % h == 0 && s->c0 % w == 0 && !(h & (h - 1)) &&
      !(w & (w - 1)) && area < FILLED_ONE_IN * j->out->differ)
    say(j, "one tile of %zu x %zu", h, w);
}

/* Finds wrong rows (or columns) that are all equal modulo a step. */
static void strided(judge_job *j, const uint64_t *count, size_t n, const char *what) {
  static const size_t steps[] = {64, 32, 16, 8, 4, 2};
  size_t first = 0, hits = 0;
  while (first < n && !count[first]) first++;
  for (size_t i = 0; i < n; i++) hits += count[i] != 0;
  if (hits < 2) return;
  for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
    size_t i = first;
    while (i < n && (!count[i] || i % steps[s] == first % steps[s])) i++;
    if (i < n) continue;
    /* A class is reported if it is hit completely, or if more lines share a remainder than chance allows. */
    const size_t there = (n - first % steps[s] + steps[s] - 1) / steps[s];
    if (!(hits >= ALL_OF_CLASS && hits == there) && (double)(hits - 1) * log2((double)steps[s]) < CHANCE_BITS) continue;
    say(j, "only %s with index %% %zu = %zu", what, steps[s], first % steps[s]);
    return;
  }
}

/* Holds one property of values to all wrong outputs. */
static void values(judge_job *j) {
  const size_t n = j->right.M * j->right.N;
  int zero = 1, same = 1, negative = 1, positive = 1, smaller = 1, larger = 1, c = j->right.options.c != NULL, nan = 1, inf = 1, sign = 1;
  float first = 0;
  uint64_t seen = 0;
  for (size_t i = 0; i < n; i++) {
    if (!j->wrong[i]) continue;
    const float got = j->got[i], want = j->want[i];
    if (!seen++) first = got;
    zero &= got == 0;
    same &= !memcmp(&got, &first, sizeof got);
    negative &= want < 0;
    positive &= want > 0;
    smaller &= fabsf(got) < fabsf(want) && got * want >= 0;
    larger &= fabsf(got) > fabsf(want) && got * want >= 0;
    nan &= isnan(got);
    inf &= isinf(got);
    sign &= got == -want;
    const size_t ldc = j->right.options.ldc ? j->right.options.ldc : j->right.N;
    if (c) c = mxi_judge_same(j, got, mxi_judge_load(j->right.options.c, i / j->right.N * ldc + i % j->right.N, j->right.options.c_type));
  }
  if (seen < 2) return;
  if (zero)
    say(j, "D is zero there");
  else if (nan)
    say(j, "D is NaN there");
  else if (inf)
    say(j, "D is infinite there");
  else if (c)
    say(j, "D holds C there");
  else if (same)
    say(j, "D holds one number there: %.9g", (double)first);
  else if (sign)
    say(j, "the sign alone differs");
  else if (seen >= JUDGE_FEWEST_SHARED && smaller)
    say(j, "all are smaller in magnitude than expected");
  else if (seen >= JUDGE_FEWEST_SHARED && larger)
    say(j, "all are larger in magnitude than expected");
  if (seen >= JUDGE_FEWEST_SHARED && (negative || positive)) say(j, "only where the product is %s", negative ? "negative" : "positive");
  if (j->out->ulps[0] == j->out->differ && seen >= JUDGE_FEWEST_SHARED && !sign) say(j, "all by at most one unit in the last place");
}

/* Finds rows that stand elsewhere, by their bytes. */
typedef struct place {
  uint64_t hash;
  size_t row;
} place;
static int by_hash(const void *x, const void *y) {
  const place *a = x, *b = y;
  return a->hash != b->hash ? (a->hash < b->hash ? -1 : 1) : a->row < b->row ? -1 : a->row > b->row;
}
static uint64_t hash_of(const float *v, size_t n, size_t step) {
  uint64_t h = 1469598103934665603u;
  for (size_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, v + i * step, sizeof bits);
    h = (h ^ bits) * 1099511628211u;
    h ^= h >> 29;
  }
  return h;
}
static void moved(judge_job *j, size_t n, size_t length, size_t to_next, size_t step, const char *what) {
  place *p = noted(malloc((n + 1) * sizeof *p), j->lack);
  size_t elsewhere = 0, at = 0, from = 0;
  if (!p || n < 2) {
    free(p);
    return;
  }
  for (size_t i = 0; i < n; i++) p[i] = (place){hash_of(j->want + i * to_next, length, step), i};
  qsort(p, n, sizeof *p, by_hash);
  size_t wrong = 0;
  for (size_t i = 0; i < n; i++) {
    const float *row = j->got + i * to_next;
    const place key = {hash_of(row, length, step), 0};
    int bad = 0;
    for (size_t k = 0; k < length && !bad; k++) bad = j->wrong[i * to_next + k * step];
    if (!bad) continue;
    wrong++;
    size_t lo = 0, hi = n;
    while (lo < hi) {
      const size_t m = (lo + hi) / 2;
      if (p[m].hash < key.hash)
        lo = m + 1;
      else
        hi = m;
    }
    if (lo == n || p[lo].hash != key.hash || p[lo].row == i) continue;
    if (!elsewhere++) at = i, from = p[lo].row;
  }
  free(p);
  if (wrong && elsewhere == wrong) say(j, "%ss are in another order: %s %zu holds what belongs to %s %zu", what, what, at, what, from);
}

void mxi_judge_regions(judge_job *j) {
  const size_t M = j->right.M, N = j->right.N;
  sides s = {noted(calloc(M + 1, sizeof *s.row), j->lack), noted(calloc(N + 1, sizeof *s.col), j->lack), SIZE_MAX, 0, SIZE_MAX, 0};
  for (size_t i = 0; s.row && s.col && i < M * N; i++) {
    if (!j->wrong[i]) continue;
    const size_t r = i / N, c = i % N;
    s.row[r]++;
    s.col[c]++;
    if (r < s.r0) s.r0 = r;
    if (r > s.r1) s.r1 = r;
    if (c < s.c0) s.c0 = c;
    if (c > s.c1) s.c1 = c;
  }
  if (s.row && s.col && j->out->differ) {
    box(j, &s);
    strided(j, s.row, M, "rows");
    strided(j, s.col, N, "columns");
    values(j);
    if (j->out->differ > 1) {
      moved(j, M, N, N, 1, "row");
      moved(j, N, M, 1, N, "column");
    }
  }
  free(s.row);
  free(s.col);
}
