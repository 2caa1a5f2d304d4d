/* Finds the order in which B holds what A holds. Each place (a row, a column, a tile) has a hash in A and one in B. A known order is named if all
 * hashes agree with it; if none does, the places whose hashes are found elsewhere are listed. */
#include "verify/diff/orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/hash.h"

/* How many places are listed if the order has no name. */
enum { LISTED = 3 };
/* Limits of the search for tiles: their largest side, how many cells they need (smaller ones are alike by chance), and how many tiles there may
 * be; WHOLE is the largest matrix that is tried as a single transposed tile. Each size costs one pass over all cells, so tiles that are not square
 * are tried only up to FEW_CELLS, and none beyond MOST_CELLS. */
enum { LARGEST = 128, LEAST = 16, MOST_TILES = 1 << 22, WHOLE = 4096, FEW_CELLS = 1 << 20 };
static const size_t MOST_CELLS = (size_t)1 << 26;
/* An order can be told only if more than so many places are distinct, and at least one in so many of all: if most are equal, any order fits. */
enum { NOT_DISTINCT = 3, DISTINCT_ONE_IN = 8 };
/* An order that only the wrong places follow is named if there are more than so many of them (two or three follow some order by chance). A range
 * is given if more than one in so many places of the range are wrong. */
enum { TOO_FEW_WRONG = 3, WRONG_ONE_IN = 2 };

/* Places of one kind. a, b: what they hold. */
typedef struct places {
  size_t n, wrong, first, distinct; /* first: that is wrong */
  uint64_t *a, *b;
} places;

static uint32_t cell_at(const uint8_t *row, size_t c, size_t cell) {
  uint32_t x = row[c];
  if (cell == 4) memcpy(&x, row + 4 * c, 4);
  return x;
}

static int open_places(places *p, size_t n, shortage *lack) {
  *p = (places){.n = n};
  p->a = noted(calloc(n + 1, sizeof *p->a), lack);
  p->b = noted(calloc(n + 1, sizeof *p->b), lack);
  return p->a && p->b;
}

static void close_places(places *p) {
  free(p->a);
  free(p->b);
}

static int by_hash(const void *x, const void *y) {
  const uint64_t *a = x, *b = y;
  return (*a > *b) - (*a < *b);
}

/* Do A's places and B's hold the same contents, with enough differences to tell them apart? If so, the wrong ones are found. */
static int same_places(places *p, shortage *lack) {
  uint64_t *sorted = noted(malloc((2 * p->n + 1) * sizeof *sorted), lack);
  int same = sorted != NULL;
  p->wrong = p->distinct = 0;
  for (size_t i = p->n; i-- > 0;)
    if (p->a[i] != p->b[i]) p->wrong++, p->first = i;
  if (same && p->wrong > 1) {
    memcpy(sorted, p->a, p->n * sizeof *sorted);
    memcpy(sorted + p->n, p->b, p->n * sizeof *sorted);
    qsort(sorted, p->n, sizeof *sorted, by_hash);
    qsort(sorted + p->n, p->n, sizeof *sorted, by_hash);
    same = !memcmp(sorted, sorted + p->n, p->n * sizeof *sorted);
    for (size_t i = 0; i < p->n; i++) p->distinct += !i || sorted[i] != sorted[i - 1];
  }
  free(sorted);
  return same && p->wrong > 1 && p->distinct > NOT_DISTINCT && p->distinct * DISTINCT_ONE_IN >= p->n;
}

/* ---- orders with names: which place of a group of g goes to place i of it */

typedef size_t order_fn(size_t i, size_t g, size_t k);
static size_t reversed(size_t i, size_t g, size_t k) { return (void)k, g - 1 - i; }
static size_t rotated(size_t i, size_t g, size_t k) { return (i + k) % g; }
static size_t turned(size_t i, size_t g, size_t k) { return i % k * (g / k) + i / k; }

static int goes(const places *p, order_fn *f, size_t g, size_t k, size_t i) {
  const size_t first = i / g * g, from = first + g <= p->n ? first + f(i - first, g, k) : i;
  return p->b[i] == p->a[from];
}

/* An incomplete group at the end stays in place. With wrong_alone, places that are right stay too. */
static int follows(const places *p, order_fn *f, size_t g, size_t k, int wrong_alone) {
  if (!goes(p, f, g, k, p->first)) return 0; /* most orders end here */
  for (size_t i = 0; i < p->n; i++)
    if (!goes(p, f, g, k, i) && !(wrong_alone && p->b[i] == p->a[i])) return 0;
  return 1;
}

static int named_order(char *out, size_t size, const places *p, const char *lines, const char *line, int wrong_alone) {
  const size_t n = p->n;
  for (size_t g = n; g > 1; g = g == n ? (size_t)1 << (63 - __builtin_clzll((uint64_t)(n - 1))) : g / 2) {
    char of[64];
    if (g == n)
      snprintf(of, sizeof of, "the %s", lines);
    else
      snprintf(of, sizeof of, "each %zu %s", g, lines);
    if (follows(p, reversed, g, 0, wrong_alone)) {
      if (g == 2)
        snprintf(out, size, "%s swapped two by two (%s 0 with 1, 2 with 3, ...)", lines, line);
      else
        snprintf(out, size, "%s in reverse order", of);
      return 1;
    }
    for (size_t k = 2; k < g && g > 2; k++) {
      if (g % k || !follows(p, turned, g, k, wrong_alone)) continue;
      if (k == 2)
        snprintf(out, size, "the halves of %s interleaved", of);
      else if (k == g / 2)
        snprintf(out, size, "%s deinterleaved (the even ones first, then the odd ones)", of);
      else
        snprintf(out, size, "%s in the order of a transposed matrix of %zu x %zu", of, g / k, k);
      return 1;
    }
    for (size_t k = 1; k < g && g > 2; k++) {
      if (!follows(p, rotated, g, k, wrong_alone)) continue;
      if (2 * k == g)
        snprintf(out, size, "the halves of %s swapped", of);
      else
        snprintf(out, size, "%s turned by %zu", of, k);
      return 1;
    }
  }
  return 0;
}

/* Where A has what B holds at i; n: nowhere. */
static size_t source_of(const places *p, size_t i) {
  size_t from = 0;
  while (from < p->n && (p->a[from] != p->b[i] || p->a[from] == p->b[from])) from++; /* one that is wrong itself, so that each is used once */
  return from;
}

/* Writes "rows 32 to 63" if the wrong places are all places of that range. */
static void wrong_range(char *out, size_t size, const places *p, const char *lines) {
  size_t last = p->n - 1;
  while (p->a[last] == p->b[last]) last--;
  *out = 0;
  if (last + 1 - p->first < p->n && p->wrong * WRONG_ONE_IN > last + 1 - p->first)
    snprintf(out, size, ", of %s %zu to %zu alone", lines, p->first, last);
}

/* "the 96 rows", "94 of the 96 rows" */
static size_t some_of(char *out, size_t size, size_t n, size_t all, const char *what) {
  if (n == all) return (size_t)snprintf(out, size, "the %zu %s", n, what);
  return (size_t)snprintf(out, size, "%zu of the %zu %s", n, all, what);
}

static void say_order(char *out, size_t size, const places *p, const char *lines, const char *line) {
  char where[80];
  if (named_order(out, size, p, lines, line, 0)) return;
  if (p->wrong > TOO_FEW_WRONG && named_order(out, size, p, lines, line, 1)) {
    const size_t at = strlen(out);
    wrong_range(where, sizeof where, p, lines);
    if (*where) {
      snprintf(out + at, size - at, "%s", where);
      return;
    }
  }
  size_t at = 0, said = 0;
  for (size_t i = 0; i < p->n && said <= LISTED; i++) {
    if (p->a[i] == p->b[i]) continue;
    const size_t from = source_of(p, i);
    if (p->wrong == 2) {
      snprintf(out, size, "%s %zu and %zu swapped", lines, i, from);
      return;
    }
    if (!said) {
      at = some_of(out, size, p->wrong, p->n, lines);
      at += (size_t)snprintf(out + at, size - at, " in another order (%s %zu holds what belongs to %s %zu", line, i, line, from);
    } else if (at < size)
      at += (size_t)snprintf(out + at, size - at, said == LISTED ? ", ..." : ", %zu that of %zu", i, from);
    said++;
  }
  if (at < size) snprintf(out + at, size - at, ")");
}

/* ---- rows and columns */

static int read_lines(places *rows, places *columns, const order_source *s, uint8_t *room) {
  for (size_t r = 0; r < s->rows; r++)
    for (int seen = 0; seen < 2; seen++) {
      const uint8_t *x = s->row(s->self, seen, r, room);
      uint64_t *h = seen ? columns->b : columns->a;
      if (!x) return 0;
      (seen ? rows->b : rows->a)[r] = XXH3_64bits(x, s->cols * s->cell);
      for (size_t c = 0; c < s->cols; c++) h[c] = mxi_hash_with(h[c], cell_at(x, c, s->cell));
    }
  return 1;
}

/* ---- tiles */

/* Hashes tiles of h x w: as they stand in A, transposed in A (if they are square), and in B. What is cut off at the edges must be unchanged. */
typedef struct tiles {
  size_t h, w, down, across;
  places p, turned; /* turned.a: transposed */
} tiles;

static int read_tiles(tiles *t, const order_source *s, uint8_t *room) {
  const size_t h = t->h, w = t->w, area = h * w, size = s->cell, line = s->cols * size;
  uint8_t *band = noted(malloc(2 * h * line + 1), s->lack);
  uint32_t *cells = noted(malloc(2 * area * sizeof *cells), s->lack);
  int ok = band && cells, alike = 1;
  for (size_t d = 0; d < t->down && ok; d++) {
    for (size_t i = 0; i < 2 * h && ok; i++) {
      const uint8_t *x = s->row(s->self, i >= h, d * h + i % h, room);
      if ((ok = x != NULL)) memcpy(band + i * line, x, line);
    }
    for (size_t a = 0; a < t->across && ok; a++) {
      const size_t at = d * t->across + a;
      for (int seen = 0; seen < 2; seen++) {
        for (size_t i = 0; i < h; i++)
          for (size_t k = 0; k < w; k++)
            cells[i * w + k] = cells[area + k * h + i] = cell_at(band + ((seen ? h : 0) + i) * line, a * w + k, size);
        (seen ? t->p.b : t->p.a)[at] = XXH3_64bits(cells, area * sizeof *cells);
        if (!seen) t->turned.a[at] = XXH3_64bits(cells + area, area * sizeof *cells);
      }
    }
  }
  /* the edges */
  for (size_t r = 0; r < s->rows && ok && alike; r++) {
    const size_t from = r < t->down * h ? t->across * w : 0;
    const uint8_t *x = s->row(s->self, 0, r, room);
    if (from == s->cols) continue;
    if ((ok = x != NULL)) memcpy(band, x, line);
    x = ok ? s->row(s->self, 1, r, room) : NULL;
    alike = x && !memcmp(band + from * size, x + from * size, line - from * size);
  }
  free(band);
  free(cells);
  return ok && alike;
}

/* "rows 0 to 31, column 5" */
static void tile_at(char *out, size_t size, const tiles *t, size_t i) {
  const size_t r = i / t->across * t->h, c = i % t->across * t->w;
  char rows[48], columns[48];
  snprintf(rows, sizeof rows, t->h > 1 ? "rows %zu to %zu" : "row %zu", r, r + t->h - 1);
  snprintf(columns, sizeof columns, t->w > 1 ? "columns %zu to %zu" : "column %zu", c, c + t->w - 1);
  snprintf(out, size, "%s, %s", rows, columns);
}

/* Each wrong tile is itself transposed. */
static int turned_in_place(char *out, size_t size, const tiles *t) {
  size_t wrong = 0, could = 0, first = 0;
  for (size_t i = 0; i < t->p.n; i++) {
    could += t->turned.a[i] != t->p.a[i];
    if (t->p.b[i] == t->p.a[i]) continue;
    if (t->p.b[i] != t->turned.a[i]) return 0;
    if (!wrong++) first = i;
  }
  if (!wrong) return 0;
  if (t->p.n == 1)
    snprintf(out, size, "the matrix of %zu x %zu transposed", t->h, t->h);
  else if (wrong == could)
    snprintf(out, size, "each tile of %zu x %zu transposed", t->h, t->h);
  else {
    char at[112];
    tile_at(at, sizeof at, t, first);
    if (wrong == 1)
      snprintf(out, size, "one tile of %zu x %zu transposed (%s)", t->h, t->h, at);
    else
      snprintf(out, size, "%zu of %zu tiles of %zu x %zu transposed (the first: %s)", wrong, t->p.n, t->h, t->h, at);
  }
  return 1;
}

static size_t column_major(const tiles *t, size_t i) { return i % t->down * t->across + i / t->down; }
static size_t row_major_of(const tiles *t, size_t i) { return i % t->across * t->down + i / t->across; }

static int tiles_moved(char *out, size_t size, tiles *t, shortage *lack) {
  char x[112], y[112];
  int down_first = 1, across_first = 1;
  if (!same_places(&t->p, lack)) return 0;
  for (size_t i = 0; i < t->p.n; i++) {
    down_first &= t->p.b[i] == t->p.a[row_major_of(t, i)];
    across_first &= t->p.b[i] == t->p.a[column_major(t, i)];
  }
  if (down_first || across_first) {
    if (t->down == t->across)
      snprintf(out, size, "the matrix of %zu x %zu tiles of %zu x %zu transposed", t->down, t->across, t->h, t->w);
    else
      snprintf(out, size, "the tiles of %zu x %zu in column-major order", t->h, t->w);
    return 1;
  }
  size_t first = 0;
  while (t->p.a[first] == t->p.b[first]) first++;
  tile_at(x, sizeof x, t, first);
  tile_at(y, sizeof y, t, source_of(&t->p, first));
  if (t->p.wrong == 2)
    snprintf(out, size, "two tiles of %zu x %zu swapped (%s and %s)", t->h, t->w, x, y);
  else
    snprintf(out, size, "%zu of the %zu tiles of %zu x %zu in another order (%s hold what belongs to %s, and so on)", t->p.wrong, t->p.n, t->h,
             t->w, x, y);
  return 1;
}

static int find_tiles(char *out, size_t size, const order_source *s, uint8_t *room, size_t h, size_t w) {
  tiles t = {.h = h, .w = w, .down = s->rows / h, .across = s->cols / w};
  const size_t n = t.down * t.across;
  int found = 0;
  if (!n || n > MOST_TILES) return 0;
  if (open_places(&t.p, n, s->lack) & open_places(&t.turned, n, s->lack) && read_tiles(&t, s, room))
    found = (h == w && turned_in_place(out, size, &t)) || (h * w >= LEAST && tiles_moved(out, size, &t, s->lack));
  close_places(&t.p);
  close_places(&t.turned);
  return found;
}

/* Tries square tiles, and others if that takes no time; large ones first. */
static int all_tiles(char *out, size_t size, const order_source *s, uint8_t *room) {
  const size_t cells = s->rows * s->cols;
  if (cells > MOST_CELLS) return 0;
  if (s->rows == s->cols && s->rows <= WHOLE && find_tiles(out, size, s, room, s->rows, s->rows)) return 1;
  for (size_t area = LARGEST * LARGEST; area >= LEAST; area /= 2)
    for (size_t h = LARGEST; h > 0; h /= 2) {
      const size_t w = area / h;
      if (w && w <= LARGEST && (h == w || cells <= FEW_CELLS) && find_tiles(out, size, s, room, h, w)) return 1;
    }
  return 0;
}

int mxi_order_find(char *words, size_t size, const order_source *s) {
  places rows, columns;
  uint8_t *room = noted(malloc(s->cols * s->cell + 1), s->lack);
  int found = 0;
  const int ok = open_places(&rows, s->rows, s->lack) & open_places(&columns, s->cols, s->lack) && room;
  if (ok && s->cols && read_lines(&rows, &columns, s, room)) {
    if ((found = same_places(&rows, s->lack)))
      say_order(words, size, &rows, "rows", "row");
    else if ((found = same_places(&columns, s->lack)))
      say_order(words, size, &columns, "columns", "column");
    if (!found) found = all_tiles(words, size, s, room);
  }
  close_places(&rows);
  close_places(&columns);
  free(room);
  return found;
}
