/* Tries what else could have been computed: a cheap pass in binary64 ranks all variants on a sample of the wrong outputs; the best few are then
 * held to bits under every model, on all of D. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/judge/edits.h"

/* How many variants are held to bits under every model, and how many are ranked. With fewer of the first, the right one is lost among similar
 * ones; each further one costs a product of the sample for every model. The list has more room than variants for K up to a few thousand; kinds with
 * many variants come last. */
enum { BEST = 8, LIST = 8192 };
/* How far kinds with many variants go: tiles and groups of lines, groups along K, blocks of K one by one and two by two, tiles of several blocks,
 * parts of K, shifts of blocks, K blocks used again. Each further step costs a product of the sample; with fewer, the larger units of some kernels
 * are lost. */
enum {
  MOST_TILE = 256,
  MOST_GROUP = 128,
  EACH_BLOCK = 128,
  EACH_PAIR = 16,
  EACH_TILE = 64,
  TILE_BLOCKS = 8,
  MOST_PARTS = 8,
  MOST_SHIFT = 4,
  MOST_AGAIN = 8,
  MOST_QUARTERS = 32 /* a wrong entry of a table of 4-bit codes is a multiple of 1/4 up to 8 */
};
/* A variant is not judged if its outputs are known at fewer than one in so many of the sampled places. It is wrong if for more than one in so many
 * D has NaN or Inf where it has numbers, or the other way round. */
enum { KNOWN_ONE_IN = 4, ODD_ONE_IN = 8 };
/* Relative errors that decide about variants. A variant beyond FAR is not held to bits. EXACT is as near as the right one comes in binary64: once
 * such a variant is found, and for pairs of faults, only variants that near are tried. A variant below ONLY_ROUNDING, and BETTER times nearer than
 * the product itself, is named although it gives no bits. Larger values cost time, and let a variant be named that is only similar to the right one;
 * smaller ones lose outputs of narrow types, whose rounding is as large. */
static const double FAR = 0.5, EXACT = 0.01, ONLY_ROUNDING = 0x1p-6;
enum { BETTER = 8 };
/* An output is near such a variant within so many times its error, and so many of NEAR_OF outputs must be near: the rest may be wrong for another
 * cause. */
enum { ERRORS = 8, NEAR = 7, NEAR_OF = 8 };
/* One in so many sampled outputs may differ from the variant, since the last row may be different. With more, variants would be held to all of D
 * that are soon refuted. */
enum { OTHERS_ONE_IN = 6 };
/* How many variants are named at most: later ones are weaker readings of the same thing. */
enum { MOST_NAMED = 3 };

/* ---- the list */

typedef struct list {
  judge_variant v[LIST];
  size_t n;
} list;

static void put(list *l, judge_kind k, int side, size_t n) {
  if (l->n < LIST) l->v[l->n++] = (judge_variant){k, side, n, INFINITY};
}

static size_t range(size_t first, size_t end) { return first | end << 32; }
static size_t move(judge_move m, size_t x, size_t y, size_t what) { return x | y << 20 | (size_t)m << 40 | what << 48; }

static void of_epilogue(list *l, const judge_job *j) {
  static const size_t tiles[] = {1, 8, 16, 32, 64, 128, 256};
  const size_t n = j->right.options.bias_of_rows ? j->right.M : j->right.N;
  for (int k = ALPHA_NONE; k <= D_COL_DOWN; k++)
    if (k != BIAS_OF_TILE && k != BIAS_ORDER && k != BIAS_TURNED) put(l, (judge_kind)k, 0, 0);
  put(l, BIAS_NEXT, 0, 1);
  put(l, BIAS_LAST, 0, 1);
  for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
    if (tiles[i] < n) put(l, BIAS_OF_TILE, 0, tiles[i]);
}

static void of_places(list *l, const judge_job *j) {
  const size_t M = j->right.M, N = j->right.N;
  for (size_t n = 2; n <= MOST_TILE; n *= 2) {
    if (M % n == 0 && N % n == 0 && (M > n || N > n)) put(l, D_TILES_TURNED, 0, n);
    if (n > 2 && M % n == 0 && N % n == 0 && M > n && N > n) put(l, D_GRID_TURNED, 0, n);
    for (size_t order = 0; order < ORDERS; order++) {
      if ((n == 2 && order) || (n == 4 && order == ORDER_DEINTERLEAVED)) continue;
      if (n <= M) put(l, D_ROWS_ORDER, 0, n | order << 32);
      if (n <= N) put(l, D_COLS_ORDER, 0, n | order << 32);
    }
  }
}

static void of_run(list *l, size_t first, size_t end, size_t kb) {
  if (end < kb) put(l, BLOCKS_LOST, 0, range(first, end)); /* else DEPTH */
  if (first) put(l, BLOCKS_ONLY, 0, range(first, end));
  if (end - first < kb) put(l, BLOCKS_TWICE, 0, range(first, end));
}

/* K cut short, K blocks lost or added twice, in one run. */
static void of_depth(list *l, const judge_job *j) {
  const size_t K = j->right.K, block = j->right.block, kb = (K + block - 1) / block, whole = kb * block;
  static const size_t steps[] = {1024, 512, 256, 128, 64, 32, 16, 8};
  if (kb > 1) put(l, DEPTH, 0, (kb - 1) * block);
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    const size_t cut = K - K % steps[i];
    if (cut && cut < K && cut != (kb - 1) * block && (i == 0 || cut != K - K % steps[i - 1])) put(l, DEPTH, 0, cut);
  }
  for (size_t lost = 1; lost < block && lost < K; lost *= 2) {
    if (K - lost != (kb - 1) * block) put(l, DEPTH, 0, K - lost);
    put(l, K_LOST, 0, range(lost, 2));
  }
  if (whole > K) put(l, DEPTH, 0, whole);
  if (kb > 1) put(l, FIRST_LOST, 0, 0);
  for (size_t n = 2; n <= MOST_GROUP && n <= K; n *= 2) {
    put(l, K_LOST, 0, range(n, 0));
    put(l, K_LOST, 0, range(n, 1));
  }
  for (size_t b = 1; b + 1 < kb && kb <= EACH_BLOCK; b++) put(l, BLOCKS_LOST, 0, range(b, b + 1));
  for (size_t b = 2; b + 1 < kb && kb <= EACH_BLOCK; b++) put(l, DEPTH, 0, b * block);
  for (size_t b = 0; b < kb && kb > 1 && kb <= EACH_BLOCK; b++) put(l, BLOCKS_TWICE, 0, range(b, b + 1));
  for (size_t b = 0; b < kb && kb > 1 && kb <= EACH_BLOCK; b++) put(l, BLOCKS_ONLY, 0, range(b, b + 1));
  for (size_t first = 0; first < kb && kb <= EACH_PAIR; first++) /* every run of blocks, or the parts of splits of K */
    for (size_t end = first + 2; end <= kb; end++) of_run(l, first, end, kb);
  for (size_t parts = 2; parts <= MOST_PARTS && kb > EACH_PAIR; parts *= 2)
    for (int up = 0; up < 2; up++) {
      const size_t step = (kb + (up ? parts - 1 : 0)) / parts;
      if (up && kb % parts == 0) continue;
      for (size_t b = 0; b < kb; b += step) of_run(l, b, b + 2 * step <= kb || up ? (b + step < kb ? b + step : kb) : kb, kb);
    }
}

/* Variants in which the elements or K blocks of one operand stand where others belong. */
static void of_order(list *l, const judge_job *j) {
  const size_t K = j->right.K, kb = (K + j->right.block - 1) / j->right.block;
  for (int side = 1; side <= 2; side++) {
    const int packed = (side == 1 ? j->right.a : j->right.b).elem->bits == 4; /* pairs of 4-bit codes are NIBBLE */
    for (size_t n = packed ? 4 : 2; n <= MOST_GROUP && n <= K; n *= 2)
      for (size_t order = 0; order < ORDERS; order++)
        if (!(n == 2 && order) && !(n == 4 && order == ORDER_DEINTERLEAVED)) put(l, K_ORDER, side, n | order << 32);
    for (size_t b = 0; b < kb && kb <= EACH_BLOCK; b++)
      for (size_t c = b + 1; c < kb && (c == b + 1 || kb <= EACH_PAIR); c++) put(l, K_BLOCKS, side, move(MOVE_SWAP, b, c, 0));
    for (size_t what = MOVE_BOTH; what <= MOVE_SCALES && kb > 1; what++) {
      for (size_t x = 1; x <= MOST_SHIFT && x < kb; x *= 2) {
        if (kb > 2) put(l, K_BLOCKS, side, move(MOVE_XOR, x, 0, what));
        for (size_t back = 0; back < 2; back++) {
          put(l, K_BLOCKS, side, move(MOVE_ROUND, x, back, what));
          if (what != MOVE_SCALES || x > 1) put(l, K_BLOCKS, side, move(MOVE_STAY, x, back, what)); /* else SCALE_NEXT_BLOCK */
        }
      }
      put(l, K_BLOCKS, side, move(MOVE_REVERSED, 0, 0, what));
    }
  }
  for (int side = 1; side <= 3; side++) {
    for (size_t x = 1; x <= MOST_AGAIN && x < kb; x *= 2) {
      put(l, K_BLOCKS, side, move(MOVE_FIRST, x, 0, MOVE_BOTH));
      put(l, K_BLOCKS, side, move(MOVE_FIRST, x, 0, MOVE_CODES));
      if (x > 1) put(l, K_BLOCKS, side, move(MOVE_FIRST, x, 0, MOVE_SCALES));
    }
    for (size_t size = 2; size <= TILE_BLOCKS; size *= 2) /* tiles of several blocks */
      for (size_t b = 0; b < kb && kb / size <= EACH_TILE; b += size) {
        if (b) put(l, K_BLOCKS, side, move(MOVE_COPY, b, b - size, size << 4));
        if (b >= 2 * size) put(l, K_BLOCKS, side, move(MOVE_COPY, b, b - 2 * size, size << 4));
        if (b + size < kb) put(l, K_BLOCKS, side, move(MOVE_COPY, b, b + size, size << 4));
        if (b + size < kb && side < 3) put(l, K_BLOCKS, side, move(MOVE_SWAP, b, b + size, size << 4));
      }
    for (size_t b = 0; b < kb && kb <= EACH_TILE; b++) {
      if (b) put(l, K_BLOCKS, side, move(MOVE_COPY, b, b - 1, 0));
      if (b > 1) put(l, K_BLOCKS, side, move(MOVE_COPY, b, b - 2, 0));
      if (b + 1 < kb) put(l, K_BLOCKS, side, move(MOVE_COPY, b, b + 1, 0));
    }
  }
}

/* Lists orders of n lines: within groups whose size is a power of two, and of all lines. */
static void of_lines(list *l, judge_kind kind, int side, size_t n) {
  for (size_t g = 2; g <= n; g = g < n && 2 * g > n ? n : 2 * g)
    for (size_t order = 0; order < ORDERS; order++)
      if (!(g == 2 && order) && !(g == 4 && order == ORDER_DEINTERLEAVED) && !(g % 2 && order)) put(l, kind, side, g | order << 32);
}

/* Adds the kinds with many variants last, so that the list has room for all others. */
static void of_many(list *l, const judge_job *j) {
  const size_t K = j->right.K, kb = (K + j->right.block - 1) / j->right.block;
  const size_t n = j->right.options.bias_of_rows ? j->right.M : j->right.N;
  if (j->right.options.bias) {
    of_lines(l, BIAS_ORDER, 0, n);
    for (size_t by = 2; by < n; by *= 2) {
      put(l, BIAS_TURNED, 0, by);
      if (2 * by != n) put(l, BIAS_TURNED, 0, n - by);
    }
  }
  for (int side = 1; side <= 2; side++) {
    of_lines(l, SCALE_ROWS_ORDER, side, side == 1 ? j->right.M : j->right.N);
    of_lines(l, CODE_ROWS_ORDER, side, side == 1 ? j->right.M : j->right.N);
    for (size_t tile = 4; tile <= MOST_GROUP; tile *= 2) put(l, CODE_TILES, side, tile);
    for (size_t what = MOVE_CODES; what <= MOVE_SCALES && kb <= EACH_PAIR; what++)
      for (size_t b = 0; b < kb; b++)
        for (size_t c = b + 1; c < kb; c++) put(l, K_BLOCKS, side, move(MOVE_SWAP, b, c, what));
  }
  for (int side = 1; side <= 3 && (j->right.a.elem->bits == 4 || j->right.b.elem->bits == 4); side++)
    for (size_t code = 1; code < 8; code++)
      for (size_t quarters = 0; quarters <= MOST_QUARTERS; quarters++) put(l, ELEMENT_VALUE, side, code | quarters << 8);
  for (size_t lost = 3; lost < MOST_GROUP && lost < K; lost++)
    if (lost & (lost - 1)) {
      put(l, DEPTH, 1, K - lost);
      put(l, K_LOST, 0, range(lost, 2));
    }
}

static void of_operands(list *l, const judge_job *j) {
  static const judge_kind sided[] = {SCALE_NONE,     SCALE_TWICE, SCALE_TRANSPOSED, TENSOR_NONE, TENSOR_TWICE,     TENSOR_DIVIDED,
                                     TENSOR_STORED,  NIBBLE,      SCALE_NEXT_BLOCK, SCALE_FIRST, SCALE_LAST_BLOCK, SCALE_NEXT_ROW,
                                     SCALE_LAST_ROW, SCALE_PAIRS, TURNED,           SCALE_POWER};
  for (size_t s = 0; s < sizeof sided / sizeof sided[0]; s++)
    for (int side = 1; side <= 3; side++) put(l, sided[s], side, 0);
  for (int side = 1; side <= 3; side++) {
    for (size_t layout = 1; layout < MX_LAYOUT_COUNT; layout++) {
      if (layout != MX_LAYOUT_COLUMN_MAJOR) put(l, SCALE_READ_AS, side, layout); /* SCALE_TRANSPOSED */
      put(l, SCALE_LEFT_IN, side, layout);
    }
    put(l, SCALE_NEXT_BLOCK, side, 2);
    put(l, SCALE_LAST_BLOCK, side, 2);
    put(l, SCALE_NEXT_ROW, side, 1);
    put(l, SCALE_LAST_ROW, side, 1);
    put(l, SCALE_PAIRS, side, 1);
    const size_t rows = side == 1 ? j->right.M : side == 2 ? j->right.N : j->right.M > j->right.N ? j->right.M : j->right.N;
    for (size_t n = 2; n <= MOST_GROUP && n < rows; n *= 2) put(l, SCALE_ROW_OF, side, n);
    if (rows > 1) put(l, SCALE_ROW_OF, side, rows);
    for (size_t f = 0; f < MX_SCALE_COUNT; f++) put(l, SCALE_AS, side, f);
    for (size_t f = 0; f < MX_ELEM_COUNT; f++) put(l, ELEMENT_AS, side, f);
  }
  const size_t kb = (j->right.K + j->right.block - 1) / j->right.block;
  for (int side = 1; side <= 3 && kb > 1; side++) {
    put(l, SCALE_ONE, side, range(kb - 1, kb));
    put(l, SCALE_ONE, side, range(0, 1));
  }
  for (int side = 1; side <= 3; side++)
    for (size_t b = 0; b < BITS; b++) put(l, ELEMENT_BITS, side, b);
  put(l, ONE_FOR_BOTH, 1, 0);
  put(l, ONE_FOR_BOTH, 2, 0);
  put(l, SCALE_SWAPPED, 0, 0);
  put(l, SCALE_SWAPPED, 0, 1);
}

/* ---- ranking */

/* Computes the outputs of a variant at the sampled places of D; some of them may be unknown. */
typedef struct trial {
  float h[JUDGE_SAMPLE];
  uint8_t known[JUDGE_SAMPLE];
  size_t n_known;
} trial;

static float sampled(const judge_job *j, size_t i) { return j->got[j->sample[i][0] * j->right.N + j->sample[i][1]]; }

static int evaluate(trial *t, const judge_job *j, const judge_edit *e, const judge_variant *v, int model, mx_dtype type) {
  size_t pairs[JUDGE_SAMPLE][2], n = 0, at[JUDGE_SAMPLE];
  float values[JUDGE_SAMPLE];
  *t = (trial){.n_known = 0};
  for (size_t i = 0; i < j->n_sample; i++)
    if (mxi_judge_source(j, v, j->sample[i][0], j->sample[i][1], pairs[n])) at[n++] = i;
  if (n * KNOWN_ONE_IN < j->n_sample || mxi_judge_run(j, values, &e->p, model, type, (const size_t(*)[2])pairs, n)) return 0;
  for (size_t i = 0; i < n; i++) t->h[at[i]] = values[i], t->known[at[i]] = 1;
  t->n_known = n;
  return 1;
}

/* The relative error of the sample, by the root of the sum of squares; an output that is NaN in only one of the two counts as wholly wrong. */
static double error_of(const judge_job *j, const trial *t) {
  double diff = 0, size = 0;
  size_t odd = 0;
  for (size_t i = 0; i < j->n_sample; i++) {
    if (!t->known[i]) continue;
    const double d = (double)sampled(j, i), x = (double)t->h[i];
    if (mxi_judge_same(j, (float)d, t->h[i])) {
      size += isfinite(x) ? x * x : 0;
      continue;
    }
    if (!isfinite(d) || !isfinite(x)) {
      odd++;
      continue;
    }
    diff += (d - x) * (d - x);
    size += x * x;
  }
  if (odd * ODD_ONE_IN > t->n_known) return INFINITY;
  return size > 0 ? sqrt(diff / size) : diff > 0 ? INFINITY : 0;
}

static int binary64(const judge_job *j) {
  int m = 0;
  while (m + 1 < j->n_models && j->models[m].id != MX_GEMM_F64) m++;
  return m;
}

static double rank_one(const judge_job *j, const judge_variant *v, const judge_variant *w) {
  judge_edit e = {.p = j->right, .rows = {j->need[0], j->need[1]}, .lack = j->lack};
  trial t;
  double error = INFINITY;
  if (mxi_judge_make(&e, j, v) && (!w || mxi_judge_make(&e, j, w)) && evaluate(&t, j, &e, v, binary64(j), MX_F32)) error = error_of(j, &t);
  mxi_judge_unmake(&e);
  return error;
}

/* ---- to bits */

typedef struct rounding {
  const char *words;
  int type, mode, saturate, flush; /* type JUDGE_TYPES: that of D */
} rounding;
static const rounding roundings[] = {
    {"", JUDGE_TYPES, JUDGE_RNE, 0, 0},
    {"outputs beyond the range of %s saturate instead of becoming Inf", JUDGE_TYPES, JUDGE_RNE, 1, 0},
    {"subnormal outputs of %s are flushed to zero", JUDGE_TYPES, JUDGE_RNE, 0, 1},
    {"outputs are cut to %s (towards zero), not rounded", JUDGE_TYPES, JUDGE_RZ, 0, 0},
    {"ties of the rounding to %s go away from zero", JUDGE_TYPES, JUDGE_RNA, 0, 0},
    {"outputs are rounded to %s towards -Inf", JUDGE_TYPES, JUDGE_DOWN, 0, 0},
    {"outputs are rounded to %s towards +Inf", JUDGE_TYPES, JUDGE_UP, 0, 0},
    {"outputs went through %s", JUDGE_BF16, JUDGE_RNE, 0, 0},
    {"outputs went through %s", JUDGE_F16, JUDGE_RNE, 0, 0},
    {"outputs went through %s, cut towards zero", JUDGE_BF16, JUDGE_RZ, 0, 0},
    {"outputs went through %s, cut towards zero", JUDGE_F16, JUDGE_RZ, 0, 0},
};
enum { ROUNDINGS = sizeof roundings / sizeof roundings[0] };

static int own_type(const judge_job *j) { return j->type == MX_F16 ? JUDGE_F16 : j->type == MX_BF16 ? JUDGE_BF16 : JUDGE_F32; }
static float through(const judge_job *j, const rounding *r, float x) {
  const int own = own_type(j), type = r->type == JUDGE_TYPES ? own : r->type;
  const double y = mxi_judge_round(x, &mxi_judge_types[type], r->mode, r->saturate, r->flush);
  return (float)(type == own ? y : mxi_judge_round(y, &mxi_judge_types[own], JUDGE_RNE, 0, 0));
}

/* Outputs that a variant gives and its model without it does not; and those that the model does not give. */
typedef struct gain {
  uint64_t of_variant, left;
} gain;

/* Under another model than the base most of what a variant gives may be the model's. At least one in so many of the outputs that the model leaves must be
 * the variant's: with less, it is named for what others explain. */
enum { GAIN_ONE_IN = 8 };
static int gains(const gain *g) { return g->of_variant && g->of_variant * GAIN_ONE_IN >= g->left; }

/* Compares all of D with what a variant gives under a model and a rounding. */
static int weigh(judge_tally *t, const judge_job *j, const judge_edit *e, const judge_variant *v, int model, const rounding *r) {
  const size_t M = j->right.M, N = j->right.N;
  float *h = noted(malloc((M * N + 1) * sizeof *h), j->lack);
  mxi_judge_start(t, j);
  if (!h || mxi_judge_run(j, h, &e->p, model, r ? MX_F32 : j->type, NULL, 0)) {
    free(h);
    return 0;
  }
  float *plain = model == j->base ? NULL : noted(malloc((M * N + 1) * sizeof *plain), j->lack);
  if (model != j->base && (!plain || mxi_judge_run(j, plain, &j->right, model, j->type, NULL, 0))) {
    free(h);
    free(plain);
    return 0;
  }
  gain g = {0, 0};
  for (size_t i = 0; i < M * N; i++) {
    size_t at[2];
    const int left = plain && !mxi_judge_same(j, j->got[i], plain[i]);
    g.left += (uint64_t)left;
    if (!mxi_judge_source(j, v, i / N, i % N, at)) continue;
    const float x = r ? through(j, r, h[at[0] * N + at[1]]) : h[at[0] * N + at[1]];
    mxi_judge_weigh(t, j, i, x);
    g.of_variant += (uint64_t)(left && mxi_judge_same(j, j->got[i], x));
  }
  const int its_own = !plain || gains(&g);
  free(h);
  free(plain);
  return its_own && mxi_judge_holds(j, t);
}

static size_t matches(const judge_job *j, const trial *t, const rounding *r) {
  size_t n = 0;
  for (size_t i = 0; i < j->n_sample; i++) n += (size_t)(t->known[i] && mxi_judge_same(j, sampled(j, i), r ? through(j, r, t->h[i]) : t->h[i]));
  return n;
}

static void name_rounding(char *out, size_t size, const judge_job *j, const rounding *r) {
  const char *type = mxi_judge_types[r->type == JUDGE_TYPES ? own_type(j) : r->type].name, *at = strstr(r->words, "%s");
  snprintf(out, size, "%.*s%s%s", (int)(at - r->words), r->words, type, at + 2);
}

/* Tries every model, then every rounding of its outputs. Returns whether a model gave (nearly) the whole sample, or a rounding all of it, and all
 * of D supports that. */
static int to_bits(judge_job *j, const judge_variant *v, const judge_variant *w) {
  judge_edit e = {.p = j->right, .lack = j->lack};
  trial t;
  judge_tally tally;
  char text[200], more[120];
  int found = 0;
  if (!mxi_judge_make(&e, j, v) || (w && !mxi_judge_make(&e, j, w))) {
    mxi_judge_unmake(&e);
    return 0;
  }
  mxi_judge_words(text, sizeof text, j, v);
  if (w) {
    mxi_judge_words(more, sizeof more, j, w);
    snprintf(text + strlen(text), sizeof text - strlen(text), ", and %s", more);
  }
  size_t fits[MX_JUDGE_MODELS], most = 0;
  for (int m = 0; m < j->n_models && v->kind != SAME; m++) {
    fits[m] = evaluate(&t, j, &e, v, m, j->type) ? matches(j, &t, NULL) : 0;
    if (fits[m] < t.n_known - t.n_known / OTHERS_ONE_IN) fits[m] = 0;
    if (fits[m] > most) most = fits[m];
  }
  /* Of models that give as much of the sample, takes the one that gives most of D, as far as time allows. */
  judge_tally best = {0, 0, 0};
  const size_t work = j->right.M * j->right.N * j->right.K, tries = 1 + JUDGE_WORK / (work ? work : 1);
  int nearest = -1;
  for (size_t m = 0, tried = 0; most && (int)m < j->n_models && tried < tries && best.explained < j->out->differ; m++) {
    if (fits[m] != most) continue;
    tried++;
    if (weigh(&tally, j, &e, v, (int)m, NULL) && tally.explained > best.explained) best = tally, nearest = (int)m;
  }
  if (nearest >= 0) {
    mxi_judge_says(j, j->models[nearest].name, &best, "%s", text);
    found = 1;
  }
  for (int m = 0; m < j->n_models && !found && j->n_sample >= JUDGE_FEWEST; m++) {
    if (!evaluate(&t, j, &e, v, m, MX_F32)) continue;
    for (size_t r = 1; r < ROUNDINGS && !found; r++)
      if (matches(j, &t, &roundings[r]) == t.n_known && weigh(&tally, j, &e, v, m, &roundings[r])) {
        name_rounding(more, sizeof more, j, &roundings[r]);
        if (v->kind == SAME)
          mxi_judge_says(j, j->models[m].name, &tally, "%s", more);
        else
          mxi_judge_says(j, j->models[m].name, &tally, "%s, and %s", text, more);
        found = 1;
      }
  }
  mxi_judge_unmake(&e);
  return found;
}

/* ---- to rounding */

/* If no bits agree, names a variant that is near while the product itself is not: it must be near wherever D is wrong, and no farther from D where
 * D is right than elsewhere. A variant that is near by chance leaves a residue as large as the outputs. */
static void to_rounding(judge_job *j, const judge_variant *v, double alone) {
  char text[200];
  if (!(v->error < ONLY_ROUNDING) || !(v->error * BETTER < alone) || j->out->differ < JUDGE_FEWEST_NEAR) return;
  judge_edit e = {.p = j->right, .lack = j->lack};
  const size_t M = j->right.M, N = j->right.N;
  float *h = noted(malloc((M * N + 1) * sizeof *h), j->lack);
  judge_tally t = {0, 0, 0};
  if (h && mxi_judge_make(&e, j, v) && !mxi_judge_run(j, h, &e.p, binary64(j), MX_F32, NULL, 0)) {
    double size = 0;
    for (size_t i = 0; i < j->n_sample; i++) {
      const double x = (double)sampled(j, i);
      size += isfinite(x) ? x * x : 0;
    }
    size = sqrt(size / (double)j->n_sample);
    for (size_t i = 0; i < M * N; i++) {
      size_t at[2];
      if (!mxi_judge_source(j, v, i / N, i % N, at)) continue;
      const double x = (double)h[at[0] * N + at[1]];
      const int near = fabs((double)j->got[i] - x) <= ERRORS * v->error * size;
      if (j->wrong[i]) t.explained += (uint64_t)near;
      if (!j->wrong[i] && mxi_judge_inside(j, i)) t.breaks += (uint64_t)!near;
    }
    mxi_judge_words(text, sizeof text, j, v);
    if (t.explained * NEAR_OF >= j->out->differ * NEAR && t.breaks * JUDGE_BREAKS_ONE_IN <= t.explained) mxi_judge_says(j, "", &t, "%s", text);
  }
  mxi_judge_unmake(&e);
  free(h);
}

/* May this variant be one of two simultaneous faults? Kinds with many variants may not. */
static int starts(const judge_variant *v) {
  static const judge_kind many[] = {BLOCKS_LOST,      BLOCKS_TWICE,    BLOCKS_ONLY,  K_LOST,        K_ORDER,      K_BLOCKS,
                                    SCALE_AS,         ELEMENT_AS,      ELEMENT_BITS, SCALE_ROW_OF,  D_ROWS_ORDER, D_COLS_ORDER,
                                    SCALE_ROWS_ORDER, CODE_ROWS_ORDER, CODE_TILES,   ELEMENT_VALUE, SCALE_FACTOR};
  if (v->kind == DEPTH && v->side) return 0;
  for (size_t i = 0; i < sizeof many / sizeof many[0]; i++)
    if (v->kind == many[i]) return 0;
  return v->kind < ALPHA_NONE || v->kind >= D_TURNED;
}
static int ends(const judge_variant *v) { return v->kind >= ALPHA_NONE && v->kind < D_TURNED && v->n == 0; }

/* Outputs at the sampled places under one variant, without bits. 0: it cannot be run. */
static int outputs_of(trial *t, const judge_job *j, const judge_variant *v) {
  judge_edit e = {.p = j->right, .lack = j->lack, .rows = {j->need[0], j->need[1]}};
  const int made = mxi_judge_make(&e, j, v) && evaluate(t, j, &e, v, j->base, MX_F32);
  mxi_judge_unmake(&e);
  return made;
}

/* All that is wrong lies in one row, or one column: is the scale of one K block there another number? What D is off by is then that block's sum times
 * one number, which least squares give. */
static void of_one_scale(list *l, const judge_job *j) {
  static const double FIT = 1e-5; /* of what D is off by: sums of other orders leave less */
  const size_t kb = (j->right.K + j->right.block - 1) / j->right.block;
  size_t lines[2] = {0, 0};
  for (int is_b = 0; is_b < 2; is_b++)
    for (size_t i = 0; i < (is_b ? j->right.N : j->right.M); i++) lines[is_b] += j->in[is_b][i];
  const int side = lines[0] == 1 && lines[1] > 1 ? 1 : lines[1] == 1 && lines[0] > 1 ? 2 : 0;
  trial want, part;
  if (!side || kb < 2 || kb > EACH_BLOCK || !outputs_of(&want, j, &(judge_variant){SAME, 0, 0, 0})) return;
  for (size_t b = 0; b < kb; b++) {
    double xy = 0, xx = 0, left = 0, all = 0;
    if (!outputs_of(&part, j, &(judge_variant){BLOCKS_ONLY, 0, range(b, b + 1), 0})) continue;
    for (size_t i = 0; i < j->n_sample; i++) {
      const double off = (double)sampled(j, i) - (double)want.h[i];
      xy += off * (double)part.h[i];
      xx += (double)part.h[i] * (double)part.h[i];
    }
    const double by = xx > 0 ? xy / xx : 0;
    for (size_t i = 0; i < j->n_sample; i++) {
      const double off = (double)sampled(j, i) - (double)want.h[i], rest = off - by * (double)part.h[i];
      left += rest * rest;
      all += off * off;
    }
    if (!(left < FIT * all)) continue;
    for (double step = 0x1p-6; step >= 0x1p-10; step /= 16) { /* a scale of few bits over another */
      const float factor = (float)(nearbyint((1 + by) / step) * step);
      uint32_t bits;
      memcpy(&bits, &factor, sizeof bits);
      if (factor != 1) put(l, SCALE_FACTOR, side, (size_t)bits | b << 32);
    }
  }
}

void mxi_judge_variants(judge_job *j) {
  list *l = noted(calloc(1, sizeof *l), j->lack);
  if (!l || !j->raw) {
    free(l);
    return;
  }
  const judge_variant same = {SAME, 0, 0, 0};
  of_epilogue(l, j);
  of_depth(l, j);
  of_operands(l, j);
  of_places(l, j);
  of_order(l, j);
  of_one_scale(l, j);
  of_many(l, j);
  judge_variant best[BEST + 1];
  size_t n = 0;
  for (size_t i = 0; i < l->n; i++) {
    judge_variant v = l->v[i];
    v.error = rank_one(j, &v, NULL);
    if (!(v.error < FAR)) continue;
    size_t at = n < BEST ? n++ : BEST; /* insertion; equal errors stay in the order of the list */
    for (best[at] = v; at && best[at].error < best[at - 1].error; at--) {
      const judge_variant keep_it = best[at];
      best[at] = best[at - 1];
      best[at - 1] = keep_it;
    }
  }
  const double alone = rank_one(j, &same, NULL);
  int found = to_bits(j, &same, NULL);
  if (found) n = 0; /* the product is right but for its rounding */
  for (size_t i = 0; i < n && i < BEST && j->out->n_findings < MOST_NAMED; i++)
    if (!(found && best[i].error > EXACT)) found |= to_bits(j, &best[i], NULL);
  /* Tries two faults at once: one of the operands or of D, and one of the steps after the sum. */
  for (size_t i = 0; i < l->n && !found; i++)
    for (size_t k = 0; k < l->n && !found && starts(&l->v[i]); k++)
      if (ends(&l->v[k]) && rank_one(j, &l->v[i], &l->v[k]) < EXACT) found = to_bits(j, &l->v[i], &l->v[k]);
  /* Orders findings by how much they explain. */
  for (int i = 1; i < j->out->n_findings; i++)
    for (int k = i; k > 0 && j->out->findings[k].explained > j->out->findings[k - 1].explained; k--) {
      const mx_finding f = j->out->findings[k];
      j->out->findings[k] = j->out->findings[k - 1];
      j->out->findings[k - 1] = f;
    }
  if (!found && n) to_rounding(j, &best[0], alone);
  if (!found && !j->out->n_findings) mxi_judge_factors(j, 0);
  if (!found && !j->out->n_findings) mxi_judge_factors(j, 1);
  free(l);
}
