/* Says in words where the blocks lie that a bug has changed: rows and block columns in a run, or every m-th of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bugs/maps.h"

/* The largest m for which a comb (every m-th row or column) is described in words. */
enum { MOST_COMB = 128 };

static int one_run(const uint8_t *set, size_t n, size_t *first, size_t *last) {
  size_t in = 0;
  *first = n;
  for (size_t i = 0; i < n; i++) {
    if (!set[i]) continue;
    if (*first == n) *first = i;
    *last = i;
    in++;
  }
  return in && *last - *first + 1 == in;
}

/* All i with i mod m = k, and no others. */
static int is_comb(const uint8_t *set, size_t n, size_t *m, size_t *k) {
  for (*m = 2; *m <= MOST_COMB && 2 * *m <= n; *m *= 2)
    for (*k = 0; *k < *m; ++*k) {
      size_t same = 0;
      while (same < n && set[same] == (same % *m == *k)) same++;
      if (same == n) return 1;
    }
  return 0;
}

void mxi_say_axis(char *out, size_t size, const uint8_t *set, size_t n, const char *what) {
  size_t first = 0, last = 0, m = 0, k = 0;
  *out = 0;
  if (one_run(set, n, &first, &last)) {
    if (last + 1 - first == n) return;
    if (first == last)
      snprintf(out, size, "%s %zu", what, first);
    else
      snprintf(out, size, "%ss %zu to %zu", what, first, last);
  } else if (is_comb(set, n, &m, &k))
    snprintf(out, size, "%ss %zu, %zu, %zu, ...", what, k, k + m, k + 2 * m);
}

void mxi_where_of(char *out, size_t size, const base *b, uint8_t *const *flags) {
  const part *p = &b->parts[0];
  char rows[96] = "", cols[96] = "";
  uint64_t n = 0, all = 0;
  for (size_t i = 0; i < b->n; i++) {
    const size_t blocks = b->parts[i].down * b->parts[i].across;
    for (size_t k = 0; k < blocks; k++) n += flags[i][k];
    all += blocks;
  }
  *out = 0;
  if (n == all) return;
  uint8_t *down = noted(calloc(p->down + 1, 1), b->lack), *across = noted(calloc(p->across + 1, 1), b->lack);
  if (b->n == 1 && down && across) {
    for (size_t k = 0; k < p->down * p->across; k++)
      if (flags[0][k]) down[k / p->across] = across[k % p->across] = 1;
    mxi_say_axis(rows, sizeof rows, down, p->down, p->block_rows == 1 ? "row" : "row of blocks");
    mxi_say_axis(cols, sizeof cols, across, p->across, "block column");
  }
  free(down);
  free(across);
  if (*rows || *cols)
    snprintf(out, size, " in %s%s%s (%" PRIu64 " of %" PRIu64 " blocks)", rows, *rows && *cols ? ", " : "", cols, n, all);
  else
    snprintf(out, size, " in %" PRIu64 " of %" PRIu64 " blocks", n, all);
}
