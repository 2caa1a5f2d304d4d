/* Finds which elements share a random number: the thresholds of a group must leave a number that all of them can have been compared with. */
#include "verify/identify/search/sharing.h"

#include <stdio.h>
#include <stdlib.h>

#include "verify/trial/shared.h"

/* So many elements at least say something, of groups of so many on average: in smaller ones, numbers that only lie near each other look like one. */
enum { ENOUGH = 512, A_GROUP = 8 };

/* Which rows, or columns, are alike: all, those so far apart, so many beside each other, none. */
typedef enum alike { ALL, APART, BESIDE, NONE } alike;
enum { MOST_POWER = 7, WAYS = 2 + 2 * MOST_POWER };

typedef struct along {
  alike how;
  unsigned power;
} along;

static along way(int i) {
  if (i == 0) return (along){ALL, 0};
  if (i == WAYS - 1) return (along){NONE, 0};
  return i <= MOST_POWER ? (along){APART, (unsigned)i} : (along){BESIDE, (unsigned)(i - MOST_POWER)};
}

/* In how many classes n of them fall; 0: so many are not there. */
static size_t classes(along a, size_t n) {
  const size_t some = (size_t)1 << a.power;
  if (a.how == ALL || a.how == NONE) return a.how == ALL ? 1 : n;
  if (n <= some) return 0;
  return a.how == APART ? some : (n + some - 1) >> a.power;
}

static size_t class_of(along a, size_t i) {
  return a.how == ALL ? 0 : a.how == NONE ? i : a.how == APART ? i & (((size_t)1 << a.power) - 1) : i >> a.power;
}

/* Can each group have one number? `by_sign`: it is rounded toward minus infinity that the number is added to. */
static int agree(shared_number *of, size_t n_groups, const sharer *all, size_t n, along rows, along cols, size_t n_cols, int by_sign) {
  for (size_t k = 0; k < n_groups; k++) of[k] = (shared_number){1, 0};
  for (size_t i = 0; i < n; i++) {
    const int mirrored = by_sign && all[i].negative, up = all[i].up != mirrored;
    const double d = mirrored ? 1 - all[i].d : all[i].d;
    shared_number *const one = &of[class_of(rows, all[i].row) * n_cols + class_of(cols, all[i].col)];
    if (!mxi_may_share(one, up ? 0 : d, up ? d : 1)) return 0;
  }
  return 1;
}

static void print(char *out, size_t size, along rows, along cols) {
  const unsigned r = 1u << rows.power, c = 1u << cols.power;
  char each[32], of[32] = "";
  if (cols.how == ALL) {
    rows.how == APART    ? snprintf(out, size, "row mod %u", r)
    : rows.how == BESIDE ? snprintf(out, size, "%u rows", r)
                         : snprintf(out, size, "row");
    return;
  }
  cols.how == APART    ? snprintf(each, sizeof each, "column mod %u", c)
  : cols.how == BESIDE ? snprintf(each, sizeof each, "%u columns", c)
                       : snprintf(each, sizeof each, "column");
  rows.how == APART    ? snprintf(of, sizeof of, ", alike in rows %u apart", r)
  : rows.how == BESIDE ? snprintf(of, sizeof of, ", alike in each %u rows", r)
                       : snprintf(of, sizeof of, rows.how == ALL ? ", alike in all rows" : " of a row");
  snprintf(out, size, "%s%s", each, of);
}

size_t mxi_random_sharing(char *out, size_t size, const sharer *all, size_t n, size_t rows, size_t cols, shortage *lack) {
  size_t best = n / A_GROUP + 1;
  *out = 0;
  if (n < ENOUGH) return n;
  shared_number *of = noted(malloc(best * sizeof *of), lack);
  for (int i = 0; i < WAYS && of; i++)
    for (int k = 0; k < WAYS; k++) {
      const along by_row = way(i), by_col = way(k);
      const size_t n_cols = classes(by_col, cols), groups = classes(by_row, rows) * n_cols;
      if (groups < 2 || groups >= best) continue;
      if (!agree(of, groups, all, n, by_row, by_col, n_cols, 0) && !agree(of, groups, all, n, by_row, by_col, n_cols, 1)) continue;
      best = groups;
      print(out, size, by_row, by_col);
    }
  free(of);
  return *out ? best : n;
}
