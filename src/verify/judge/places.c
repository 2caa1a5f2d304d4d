/* Finds a part of D that holds what belongs elsewhere: copied from other rows or columns, transposed in itself, or nothing at all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/diff/orders.h"
#include "verify/judge/internal.h"

/* How many places are tried from which the first wrong output may have come; each costs a comparison of two boxes. With fewer, the place is lost
 * if many outputs are alike. */
enum { TRIES = 4096 };
/* The largest step for which wrong lines are described by their remainder ("index % 64 = 3"); no tile is larger. */
enum { LARGEST_STEP = 64 };
/* A single output is called a quotient of small numbers times the right one up to this denominator and within these factors. With larger limits
 * any output would be a multiple; with smaller ones a scale that is off by a power of two would be missed. */
enum { MOST_DENOMINATOR = 64 };
static const float LEAST_FACTOR = 0x1p-20f, MOST_FACTOR = 0x1p20f;
/* At most so many wrong outputs are described one by one, if RIGHT times as many are right; more are a pattern that should be looked for. */
enum { FEW = 3, RIGHT = 8 };
/* At most so many lines are looked for elsewhere before variants are tried; more are left until nothing else explains D. */
enum { MOVED_LINES = 2 };

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

/* Writes "columns 128 to 255" or "rows 0 to 63, columns 128 to 255". */
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

/* Does each output of the box hold what belongs to the output at that offset? `turned`: rows and columns of the box are exchanged. It is not
 * enough that it holds for wrong outputs: a shift that would have changed a right output is refuted. */
static int from(const judge_job *j, const box *b, size_t r0, size_t c0, int turned) {
  const size_t M = j->right.M, N = j->right.N;
  for (size_t r = b->r0; r <= b->r1; r++)
    for (size_t c = b->c0; c <= b->c1; c++) {
      const size_t y = r0 + (turned ? c - b->c0 : r - b->r0), x = c0 + (turned ? r - b->r0 : c - b->c0);
      if (y >= M || x >= N || !mxi_judge_same(j, j->got[r * N + c], j->want[y * N + x])) return 0;
    }
  return 1;
}

/* Tests whether all of the wrong rows and columns were lost, the right outputs in them included: a place that holds the right number cannot be
 * lost. */
static int nothing(const judge_job *j, const char **what) {
  int zero = 1, nan = 1;
  for (size_t i = 0; i < j->right.M * j->right.N; i++) {
    if (!mxi_judge_inside(j, i)) continue;
    zero &= j->got[i] == 0;
    nan &= isnan(j->got[i]);
  }
  *what = zero ? "zero" : "NaN";
  return zero || nan;
}

/* "columns with index % 16 = 3", or "7 of 64 rows", for lines that are not a run; "" for all of them. */
static void set(char *to, size_t size, const uint8_t *in, size_t n, const char *what) {
  size_t first = n, last = 0, hits = 0;
  *to = 0;
  for (size_t i = 0; i < n; i++) {
    if (!in[i]) continue;
    if (first == n) first = i;
    last = i;
    hits++;
  }
  if (hits == n) return;
  if (last - first + 1 == hits) {
    lines(to, size, what, first, last);
    return;
  }
  for (size_t step = LARGEST_STEP; step >= 2; step /= 2) {
    size_t same = 0, there = 0;
    for (size_t i = 0; i < n; i++) {
      same += in[i] && i % step == first % step;
      there += i % step == first % step;
    }
    if (same != hits || same != there) continue;
    snprintf(to, size, "%ss with index %% %zu = %zu", what, step, first % step);
    return;
  }
  snprintf(to, size, "%zu of the %zu %ss, from %zu to %zu", hits, n, what, first, last);
}

static void lost(judge_job *j, const char *what, int all) {
  char rows[80], cols[80];
  set(rows, sizeof rows, j->in[0], j->right.M, "row");
  set(cols, sizeof cols, j->in[1], j->right.N, "column");
  const char *whose = all && !*rows && !*cols ? "D was never written, or lost" : "a tile was never written, or lost";
  mxi_judge_say(j, j->models[j->base].name, j->out->differ, "%s: it is %s in %s%s%s", whose, what, rows, *rows && *cols ? ", " : "",
                *cols   ? cols
                : *rows ? ""
                        : "all of D");
}

/* ---- a few outputs */

/* The number with as few digits as give the same binary32. */
static const char *digits(char text[24], float x) {
  for (int n = 1; n <= 9; n++) {
    snprintf(text, 24, "%.*g", n, (double)x);
    if (strtof(text, NULL) == x) break;
  }
  return text;
}

/* Says what one wrong output is, compared with what it should be. */
static void alone(char *to, size_t size, const judge_job *j, size_t i) {
  const float got = j->got[i], want = j->want[i];
  const mx_gemm_options *o = &j->right.options;
  uint32_t a, b;
  char x[24], y[24];
  memcpy(&a, &got, sizeof a);
  memcpy(&b, &want, sizeof b);
  if (isnan(got) || got == 0 || isinf(got)) {
    snprintf(to, size, "is %s", isnan(got) ? "NaN" : got == 0 ? "zero" : "infinite");
    return;
  }
  if (got == -want) {
    snprintf(to, size, "has the wrong sign");
    return;
  }
  if (o->c && mxi_judge_same(j, got, mxi_judge_load(o->c, i / j->right.N * (o->ldc ? o->ldc : j->right.N) + i % j->right.N, o->c_type))) {
    snprintf(to, size, "holds C");
    return;
  }
  const float ratio = got / want;
  for (int k = 1; k <= MOST_DENOMINATOR && isfinite(ratio) && ratio != 0; k++) { /* a quotient of small numbers, with the same bits */
    const float times = (float)(round((double)ratio * k) / k);
    if (fabsf(times) < LEAST_FACTOR || fabsf(times) > MOST_FACTOR || times == 1 || (float)((double)want * (double)times) != got) continue;
    snprintf(to, size, "is %s times what it should be", digits(x, times));
    return;
  }
  if (!((a ^ b) & ((a ^ b) - 1))) {
    int bit = 0;
    while ((a ^ b) >> bit != 1) bit++;
    snprintf(to, size, "has bit %d of its binary32 flipped", bit);
    return;
  }
  snprintf(to, size, "is %s, not %s", digits(x, got), digits(y, want));
}

/* "one output alone: row 5, column 7 is zero", of n that are marked as wrong; 0 if they are too many for that. */
static int few(char *text, size_t size, const judge_job *j, uint64_t n) {
  char one[80];
  size_t at = 0;
  if (n > FEW || n * RIGHT > j->out->outputs) return 0;
  int length = n == 1 ? snprintf(text, size, "one output alone") : snprintf(text, size, "%d outputs alone", (int)n);
  for (uint64_t i = 0; i < n; i++, at++) {
    while (!j->wrong[at]) at++;
    alone(one, sizeof one, j, at);
    if ((size_t)length < size)
      length +=
          snprintf(text + length, size - (size_t)length, "%s row %zu, column %zu %s", i ? ";" : ":", at / j->right.N, at % j->right.N, one);
  }
  return 1;
}

void mxi_judge_few(judge_job *j) {
  char text[180];
  if (few(text, sizeof text, j, j->out->differ)) mxi_judge_say(j, j->models[j->base].name, j->out->differ, "%s", text);
}

/* A model that leaves at most one in so many of the wrong outputs, and of all, is the one that D follows. A narrower limit would name a cause for what the
 * model does; a wider one, a model for what is wrong. */
enum { FOLLOWED_ONE_IN = 8 };

void mxi_judge_another_model(judge_job *j) {
  mx_judgement *o = j->out;
  const size_t total = j->right.M * j->right.N;
  int best = -1;
  for (int m = 0; m < j->n_models; m++)
    if (o->models[m].compared == total && o->models[m].differ && (best < 0 || o->models[m].differ < o->models[best].differ)) best = m;
  if (best < 0 || (best == j->base && !j->how.bound) || o->models[best].differ * FOLLOWED_ONE_IN > total) return;
  float *want = noted(malloc((total + 1) * sizeof *want), j->lack), *const base_want = j->want;
  uint8_t *wrong = noted(calloc(total + 1, 1), j->lack), *const base_wrong = j->wrong;
  if (want && wrong && !mxi_judge_run(j, want, &j->right, best, j->type, NULL, 0)) {
    uint64_t left = 0;
    char text[180] = "";
    for (size_t i = 0; i < total; i++) {
      wrong[i] = !mxi_judge_same(j, j->got[i], want[i]);
      left += wrong[i] && base_wrong[i];
    }
    j->want = want, j->wrong = wrong;
    if (!few(text, sizeof text, j, o->models[best].differ)) snprintf(text, sizeof text, "%zu outputs", (size_t)o->models[best].differ);
    j->want = base_want, j->wrong = base_wrong;
    if (left * FOLLOWED_ONE_IN <= o->differ)
      mxi_judge_say(j, j->models[best].name, o->differ - left, "D is the product under another model, %s, but for %s", j->models[best].name,
                    text);
  }
  free(want);
  free(wrong);
}

/* ---- lines in another order */

/* Finds which line of `want` line i of D holds; SIZE_MAX for none. A line is `length` outputs, `step` apart. */
static size_t holds(const judge_job *j, size_t i, size_t n, size_t length, size_t to_next, size_t step) {
  for (size_t at = 0; at < n; at++) {
    size_t k = 0;
    while (k < length && mxi_judge_same(j, j->got[i * to_next + k * step], j->want[at * to_next + k * step])) k++;
    if (k == length) return at;
  }
  return SIZE_MAX;
}

/* Finds two lines that are exchanged, or some that stand elsewhere; every wrong line must be another one as a whole. */
static int moved(judge_job *j, size_t n, size_t length, size_t to_next, size_t step, const uint8_t *in, const char *what, size_t most) {
  enum { SHOWN = 2 };
  size_t from[SHOWN] = {0}, at[SHOWN] = {0}, wrong = 0;
  uint8_t *source = noted(calloc(n + 1, 1), j->lack);
  int each = 1, once = source != NULL && n > 1;
  for (size_t i = 0; i < n && once; i++) {
    if (!in[i]) continue;
    const size_t f = holds(j, i, n, length, to_next, step);
    if (f == SIZE_MAX || f == i) {
      once = 0;
      break;
    }
    if (wrong < SHOWN) at[wrong] = i, from[wrong] = f;
    each &= in[f] && !source[f];
    source[f] = 1;
    wrong++;
  }
  free(source);
  if (!once || wrong < 1 || wrong > most) return 0;
  const char *model = j->models[j->base].name;
  const uint64_t all = j->out->differ;
  if (wrong == 2 && from[0] == at[1] && from[1] == at[0])
    mxi_judge_say(j, model, all, "%ss %zu and %zu of D are swapped", what, at[0], at[1]);
  else if (each)
    mxi_judge_say(j, model, all, "%zu %ss of D are in another order: %s %zu holds what belongs to %s %zu", wrong, what, what, at[0], what,
                  from[0]);
  else
    mxi_judge_say(j, model, all, "%zu %s%s of D hold%s what belongs to others: %s %zu holds %s %zu", wrong, what, wrong > 1 ? "s" : "",
                  wrong > 1 ? "" : "s", what, at[0], what, from[0]);
  return 1;
}

void mxi_judge_places(judge_job *j) {
  const size_t M = j->right.M, N = j->right.N;
  const uint64_t n = j->out->differ;
  const char *what;
  char here[140], there[140];
  box b;
  if (n < JUDGE_FEWEST || !around(j, &b)) return;
  name(here, sizeof here, j, &b);
  const int all = b.r0 == 0 && b.c0 == 0 && b.r1 + 1 == M && b.c1 + 1 == N;
  if (nothing(j, &what)) {
    lost(j, what, all);
    return;
  }
  /* Where may the first wrong output have come from? Its box may begin a little before the first place that is wrong. */
  size_t at = 0, tried = 0;
  while (!j->wrong[at]) at++;
  const size_t dr = at / N - b.r0, dc = at % N - b.c0, h = b.r1 - b.r0, w = b.c1 - b.c0;
  for (int turned = 0; turned < 2 && !all; turned++) /* the whole is for mxi_judge_variants() */
    for (size_t i = 0; i < M * N && tried < TRIES; i++) {
      const size_t r = i / N, c = i % N, down = turned ? dc : dr, right = turned ? dr : dc;
      if (r < down || c < right || !mxi_judge_same(j, j->got[at], j->want[i])) continue;
      tried++;
      const box source = {r - down, r - down + (turned ? w : h), c - right, c - right + (turned ? h : w)};
      if (source.r1 >= M || source.c1 >= N || !from(j, &b, source.r0, source.c0, turned)) continue;
      name(there, sizeof there, j, &source);
      if (turned && source.r0 == b.r0 && source.c0 == b.c0)
        mxi_judge_say(j, j->models[j->base].name, n, "a tile is transposed in itself: %s", here);
      else
        mxi_judge_say(j, j->models[j->base].name, n, "%s hold%s what belongs to %s%s", here, h && w ? "" : "s", there,
                      turned ? ", transposed" : "");
      return;
    }
  if (!all && !moved(j, M, N, N, 1, j->in[0], "row", MOVED_LINES)) moved(j, N, M, 1, N, j->in[1], "column", MOVED_LINES);
}

/* Two outputs are alike if both are NaN, or both zero if the options say that zeros are equal. */
static const uint8_t *outputs_of_row(void *self, int seen, size_t row, uint8_t *room) {
  const judge_job *j = self;
  const float *from = (seen ? j->got : j->want) + row * j->right.N;
  for (size_t c = 0; c < j->right.N; c++) {
    const float x = isnan(from[c]) && !j->how.nan_bits ? NAN : from[c] == 0 && j->how.equal_zeros ? 0 : from[c];
    memcpy(room + 4 * c, &x, 4);
  }
  return room;
}

/* Does D hold all that it should, in another order? */
static int reordered(judge_job *j) {
  char words[160];
  if (j->out->differ < JUDGE_FEWEST_NEAR ||
      !mxi_order_find(words, sizeof words, &(order_source){j->right.M, j->right.N, 4, outputs_of_row, j, j->lack}))
    return 0;
  mxi_judge_say(j, j->models[j->base].name, j->out->differ, "D has %s", words);
  return 1;
}

void mxi_judge_moved(judge_job *j) {
  const size_t M = j->right.M, N = j->right.N;
  if (!reordered(j) && !moved(j, M, N, N, 1, j->in[0], "row", M)) moved(j, N, M, 1, N, j->in[1], "column", N);
}

void mxi_judge_scattered(judge_job *j) {
  int zero = 1, nan = 1;
  const uint64_t n = j->out->differ;
  if (n < 2) return;
  for (size_t i = 0; i < j->right.M * j->right.N; i++) {
    if (!j->wrong[i]) continue;
    zero &= j->got[i] == 0;
    nan &= isnan(j->got[i]);
  }
  if (zero || nan)
    mxi_judge_say(j, j->models[j->base].name, n, "%llu outputs are %s, in no pattern that is known; others in their rows and columns are right",
                  (unsigned long long)n, zero ? "zero" : "NaN");
}
