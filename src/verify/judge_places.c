/* A part of D that holds what belongs elsewhere: copied from other rows or columns, turned in itself, or nothing at all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/judge_internal.h"

enum { TRIES = 4096 };

typedef struct box {
  size_t r0, r1, c0, c1; /* ends included */
} box;

static int around(const judge_job *j, box *b) {
  const size_t M = j->right.M, N = j->right.N;
  int any = 0;
  *b = (box){SIZE_MAX, 0, SIZE_MAX, 0};
  for (size_t i = 0; i < M * N; i++) {
    if (!j->wrong[i]) continue;
    const size_t r = i / N, c = i % N;
    any = 1;
    if (r < b->r0) b->r0 = r;
    if (r > b->r1) b->r1 = r;
    if (c < b->c0) b->c0 = c;
    if (c > b->c1) b->c1 = c;
  }
  return any;
}

static void lines(char *to, size_t size, const char *what, size_t first, size_t last) {
  if (first == last)
    snprintf(to, size, "%s %zu", what, first);
  else
    snprintf(to, size, "%ss %zu to %zu", what, first, last);
}

/* "columns 128 to 255", "rows 0 to 63, columns 128 to 255" */
static void name(char *to, size_t size, const judge_job *j, const box *b) {
  char rows[64], cols[64];
  lines(rows, sizeof rows, "row", b->r0, b->r1);
  lines(cols, sizeof cols, "column", b->c0, b->c1);
  const int all_rows = b->r0 == 0 && b->r1 + 1 == j->right.M, all_cols = b->c0 == 0 && b->c1 + 1 == j->right.N;
  if (all_rows && all_cols)
    snprintf(to, size, "all of D");
  else
    snprintf(to, size, "%s%s%s", all_rows ? "" : rows, all_rows || all_cols ? "" : ", ", all_cols ? "" : cols);
}

/* Does each wrong output hold what belongs to the one that lies there from it? turned: rows and columns of the box change places. */
static int from(const judge_job *j, const box *b, size_t r0, size_t c0, int turned) {
  const size_t M = j->right.M, N = j->right.N;
  for (size_t r = b->r0; r <= b->r1; r++)
    for (size_t c = b->c0; c <= b->c1; c++) {
      if (!j->wrong[r * N + c]) continue;
      const size_t y = r0 + (turned ? c - b->c0 : r - b->r0), x = c0 + (turned ? r - b->r0 : c - b->c0);
      if (y >= M || x >= N || !judge_same(j, j->got[r * N + c], j->want[y * N + x])) return 0;
    }
  return 1;
}

static int nothing(const judge_job *j, const char **what) {
  int zero = 1, nan = 1;
  for (size_t i = 0; i < j->right.M * j->right.N; i++) {
    if (!j->wrong[i]) continue;
    zero &= j->got[i] == 0;
    nan &= isnan(j->got[i]);
  }
  *what = zero ? "zero" : "NaN";
  return zero || nan;
}

void judge_places(judge_job *j) {
  const size_t M = j->right.M, N = j->right.N;
  const uint64_t n = j->out->differ;
  const char *what;
  char here[140], there[140];
  box b;
  if (n < 4 || !around(j, &b)) return;
  name(here, sizeof here, j, &b);
  if (nothing(j, &what)) {
    const char *lost =
        b.r0 == 0 && b.c0 == 0 && b.r1 + 1 == M && b.c1 + 1 == N ? "D was never written, or lost" : "a tile was never written, or lost";
    judge_say(j, j->models[j->base].name, n, "%s: it is %s in %s", lost, what, here);
    return;
  }
  if (b.r0 == 0 && b.c0 == 0 && b.r1 + 1 == M && b.c1 + 1 == N) return; /* the whole is for judge_variants() */
  /* Where may the first wrong output come from? Its box may begin a little before the first place that is wrong. */
  size_t at = 0, tried = 0;
  while (!j->wrong[at]) at++;
  const size_t dr = at / N - b.r0, dc = at % N - b.c0, h = b.r1 - b.r0, w = b.c1 - b.c0;
  for (int turned = 0; turned < 2; turned++)
    for (size_t i = 0; i < M * N && tried < TRIES; i++) {
      const size_t r = i / N, c = i % N, down = turned ? dc : dr, right = turned ? dr : dc;
      if (r < down || c < right || !judge_same(j, j->got[at], j->want[i])) continue;
      tried++;
      const box source = {r - down, r - down + (turned ? w : h), c - right, c - right + (turned ? h : w)};
      if (source.r1 >= M || source.c1 >= N || !from(j, &b, source.r0, source.c0, turned)) continue;
      name(there, sizeof there, j, &source);
      if (turned && source.r0 == b.r0 && source.c0 == b.c0)
        judge_say(j, j->models[j->base].name, n, "a tile is transposed in itself: %s", here);
      else
        judge_say(j, j->models[j->base].name, n, "%s hold%s what belongs to %s%s", here, h && w ? "" : "s", there,
                  turned ? ", transposed" : "");
      return;
    }
}
