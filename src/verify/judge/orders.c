/* Tries orders of summation and accumulators that no model of mx_gemm() has, one output at a time: chunks with sums of their own, interleaved
 * lanes, descending k, products rounded before they are added, accumulators that cut or are narrow. The epilogue is that of SPEC section 4. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/verify.h"
#include "verify/judge/internal.h"

enum { BY_FMA, BY_PRODUCT, BY_BLOCK, BY_CHUNK, LEVELS }; /* BY_CHUNK: each chunk exactly, then rounded; chunks are added in binary32 */
enum { ASCENDING, DESCENDING, CHUNKS, LANES, HALVES };

/* How many terms may be added to count what an order explains in all of D, beside the sample. With fewer, large products are counted in a part of
 * D alone; with more, they take seconds. */
static const size_t COUNT_WORK = (size_t)1 << 26;
/* How many lengths of narrow chunks, counts of lanes, and parts of K (halves, quarters, eighths) are tried: as many as kernels use. Each further
 * one costs one more sum an output for every width. */
enum { MOST_CHUNK = 512, MOST_LANES = 64, SPLITS = 3 };

typedef struct order {
  int level, kind;
  size_t n; /* of CHUNKS: terms each; of LANES: how many */
  int type, mode;
  int promoted; /* chunks are added in binary32, whatever the type in them */
} order;

/* The terms of one output: pairs of binary32 factors, or whole blocks. */
typedef struct terms {
  size_t K, kb, block;
  double *a, *b; /* [K] values code * scale */
  double *dot;   /* [kb] */
  int exact;     /* every value is a binary32, every dot is exact */
} terms;

static float outer(double x, const order *o) {
  return (float)(o->promoted ? mxi_judge_round(x, &mxi_judge_types[JUDGE_F32], JUDGE_RNE, 0, 0)
                             : (double)mxi_judge_round(x, &mxi_judge_types[o->type], o->mode, 0, 0));
}
static float to_type(double x, const order *o) { return (float)mxi_judge_round(x, &mxi_judge_types[o->type], o->mode, 0, 0); }

static double sum(const terms *t, const order *o, size_t first, size_t n, size_t step) {
  float acc = 0;
  if (o->level == BY_CHUNK) {
    double all = 0;
    for (size_t i = 0; i < n; i++) all = mxi_judge_add(all, t->dot[first + i]);
    return to_type(all, o);
  }
  for (size_t i = 0; i < n; i++) {
    const size_t k = o->kind == DESCENDING ? first + (n - 1 - i) * step : first + i * step;
    double x = o->level == BY_BLOCK ? t->dot[k] : t->a[k] * t->b[k];
    if (o->level == BY_PRODUCT) x = to_type(x, o);
    acc = to_type(mxi_judge_add(acc, x), o);
  }
  return acc;
}

static double halves(const terms *t, const order *o, size_t first, size_t n) {
  if (n <= 1) return sum(t, o, first, n, 1);
  const size_t m = n / 2;
  return to_type(mxi_judge_add(halves(t, o, first, m), halves(t, o, first + m, n - m)), o);
}

static double total(const terms *t, const order *o) {
  const size_t n = o->level >= BY_BLOCK ? t->kb : t->K;
  double lane[MOST_LANES];
  float acc = 0;
  switch (o->kind) {
  case CHUNKS:
    for (size_t first = 0; first < n; first += o->n)
      acc = outer(mxi_judge_add(acc, sum(t, o, first, first + o->n < n ? o->n : n - first, 1)), o);
    return acc;
  case LANES:
    for (size_t l = 0; l < o->n; l++) lane[l] = l < n ? sum(t, o, l, (n - l + o->n - 1) / o->n, o->n) : 0;
    for (size_t w = o->n / 2; w; w /= 2)
      for (size_t l = 0; l < w; l++) lane[l] = to_type(mxi_judge_add(lane[l], lane[l + w]), o);
    return lane[0];
  case HALVES:
    return halves(t, o, 0, n);
  default:
    return sum(t, o, 0, n, 1);
  }
}

static void scale_of(double *out, const mx_tensor *t, const mx_spec *spec, size_t row, size_t b) {
  if (mx_spec_is_plain(spec)) {
    *out = 1;
    return;
  }
  const double v = mx_decode(mx_scale_format(spec->scale), mx_scale_code_at(t, row * t->scale_cols + b));
  *out = spec->scale_sign == MX_SCALE_SIGN_SIGNED ? v : fabs(v);
}

static double element(const mx_tensor *t, const mx_spec *spec, size_t row, size_t k) {
  const uint32_t code = mx_code_at(t, spec, row, k);
  return mx_spec_is_plain(spec) ? mx_decode(mx_operand_format(MX_OPERAND_F32), code) : mx_decode(mx_elem_format(spec->elem), code);
}

static double scaled(double v, double s, int encode) { return v == 0 ? v : encode ? v / s : v * s; }

static void fill(terms *t, const judge_job *j, size_t row, size_t col) {
  const int ea = j->a_spec->scale_form == MX_SCALE_FORM_ENCODE && !mx_spec_is_plain(j->a_spec),
            eb = j->b_spec->scale_form == MX_SCALE_FORM_ENCODE && !mx_spec_is_plain(j->b_spec);
  for (size_t b = 0; b < t->kb; b++) {
    double sa, sb, dot = 0;
    scale_of(&sa, j->a, j->a_spec, row, b);
    scale_of(&sb, j->b, j->b_spec, col, b);
    for (size_t k = b * t->block; k < (b + 1) * t->block && k < t->K; k++) {
      const double x = element(j->a, j->a_spec, row, k), y = element(j->b, j->b_spec, col, k), p = x * y, s = dot + p;
      t->exact &= s - dot == p && s - p == dot;
      dot = s;
      t->a[k] = (float)scaled(x, sa, ea);
      t->b[k] = (float)scaled(y, sb, eb);
      t->exact &= isfinite(t->a[k]) && isfinite(t->b[k]);
    }
    t->dot[b] = scaled(scaled(dot, sa, ea), sb, eb);
    t->exact &= isfinite(t->dot[b]) && !((ea || eb) && t->dot[b] != 0 && scaled(scaled(t->dot[b], 1 / sa, ea), 1 / sb, eb) != dot);
  }
}

static float epilogue(const judge_job *j, double acc, size_t row, size_t col) {
  const mx_gemm_options *o = &j->right.options;
  const float ga = j->right.a.multiplier ? *j->right.a.multiplier : 1, gb = j->right.b.multiplier ? *j->right.b.multiplier : 1, g = ga * gb,
              alpha = o->alpha ? *o->alpha : 1, beta = o->beta ? *o->beta : 1;
  float d = alpha == 0 ? 0 : (float)acc * (alpha * g);
  if (o->c && beta != 0) d = fmaf(beta, mxi_judge_load(o->c, row * (o->ldc ? o->ldc : j->right.N) + col, o->c_type), d);
  if (o->bias) d += o->bias[o->bias_of_rows ? row : col];
  return (float)mxi_judge_round(d,
                                &mxi_judge_types[j->type == MX_F16    ? JUDGE_F16
                                                 : j->type == MX_BF16 ? JUDGE_BF16
                                                                      : JUDGE_F32],
                                JUDGE_RNE, 0, 0);
}

static void words(char *out, size_t size, const order *o) {
  static const char *const levels[] = {"products fused into the accumulator", "products rounded, then added", "exact block dots added",
                                       "exact dots"};
  static const char *const modes[] = {"", ", cut towards zero"};
  char how[64];
  switch (o->kind) {
  case CHUNKS:
    snprintf(how, sizeof how, "chunks of %zu with sums of their own", o->n);
    break;
  case LANES:
    snprintf(how, sizeof how, "%zu interleaved lanes, added as a tree", o->n);
    break;
  default:
    snprintf(how, sizeof how, "%s", o->kind == ASCENDING ? "k ascending" : o->kind == DESCENDING ? "k descending" : "halves added as a tree");
  }
  if (o->promoted)
    snprintf(out, size, "%s, chunks of %zu%s in %s%s, which are added in binary32", levels[o->level], o->n,
             o->level >= BY_BLOCK ? " blocks" : "", mxi_judge_types[o->type].name, modes[o->mode]);
  else
    snprintf(out, size, "%s, %s, accumulator %s%s", levels[o->level], how, mxi_judge_types[o->type].name, modes[o->mode]);
}

/* Does an order give every sampled output? The first output that it does not give ends the test. */
static int fits(const judge_job *j, const terms *t, const order *o) {
  for (size_t i = 0; i < j->n_sample; i++) {
    const size_t row = j->sample[i][0], col = j->sample[i][1];
    if (!mxi_judge_same(j, epilogue(j, total(&t[i], o), row, col), j->got[row * j->right.N + col])) return 0;
  }
  return 1;
}

static void free_terms(terms *t, size_t n) {
  for (size_t i = 0; i < n; i++) {
    free(t[i].a);
    free(t[i].b);
    free(t[i].dot);
  }
  free(t);
}

static terms *make_terms(const judge_job *j) {
  terms *t = noted(calloc(j->n_sample + 1, sizeof *t), j->lack);
  for (size_t i = 0; t && i < j->n_sample; i++) {
    const size_t K = j->right.K, block = j->right.block;
    t[i] = (terms){.K = K, .block = block, .kb = (K + block - 1) / block, .exact = 1};
    t[i].a = noted(malloc((K + 1) * sizeof(double)), j->lack);
    t[i].b = noted(malloc((K + 1) * sizeof(double)), j->lack);
    t[i].dot = noted(malloc((t[i].kb + 1) * sizeof(double)), j->lack);
    if (!t[i].a || !t[i].b || !t[i].dot) {
      free_terms(t, i + 1);
      return NULL;
    }
    fill(&t[i], j, j->sample[i][0], j->sample[i][1]);
  }
  return t;
}

/* Tests an order on a few right outputs: if it would have changed them, it is not the kernel's. */
static uint64_t speak_against(judge_job *one, size_t pair[1][2], const order *o) {
  const size_t N = one->right.N, total = one->right.M * N;
  uint64_t against = 0, looked = 0;
  for (size_t i = 0; i < total && looked < JUDGE_SAMPLE; i++) {
    const size_t at = (size_t)((uint64_t)i * JUDGE_SCATTER % total);
    if (one->wrong[at] || !mxi_judge_inside(one, at)) continue;
    pair[0][0] = at / N, pair[0][1] = at % N;
    terms *t = make_terms(one);
    if (!t) return 0;
    against += !fits(one, t, o);
    looked++;
    free_terms(t, 1);
  }
  return against;
}

/* Computes D under an order that fits the sample, as far as time allows, and counts the outputs that differ from the base and not from it. */
static int count(judge_job *j, const order *o) {
  char text[160];
  uint64_t explained = 0, looked = 0, wrong = 0;
  const size_t N = j->right.N, most = COUNT_WORK / (j->right.K + 1) + JUDGE_SAMPLE;
  judge_job one = *j;
  size_t pair[1][2];
  one.sample = pair;
  one.n_sample = 1;
  const size_t every = (size_t)(j->out->differ / most + 1);
  if (!j->how.bound && speak_against(&one, pair, o) * JUDGE_BREAKS_ONE_IN > JUDGE_SAMPLE) return 0;
  for (size_t i = 0; i < j->right.M * N; i++) {
    if (!j->wrong[i] || wrong++ % every) continue;
    pair[0][0] = i / N, pair[0][1] = i % N;
    terms *t = make_terms(&one);
    if (!t) return 0;
    explained += (uint64_t)fits(&one, t, o);
    looked++;
    free_terms(t, 1);
  }
  words(text, sizeof text, o);
  mxi_judge_say(j, "its own",
                every == 1            ? explained
                : explained == looked ? j->out->differ
                                      : explained * every,
                "%s%s", text, every == 1 ? "" : " (looked at a part of D)");
  return 1;
}

void mxi_judge_orders(judge_job *j) {
  const size_t K = j->right.K;
  terms *t = make_terms(j);
  if (!t) return;
  int exact = 1, found = 0;
  for (size_t i = 0; i < j->n_sample; i++) exact &= t[i].exact;
  static const size_t counts[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  enum { COUNTS = sizeof counts / sizeof counts[0] };
  static const int widths[][2] = {{JUDGE_F32, JUDGE_RNE},  {JUDGE_F32, JUDGE_RZ},   {JUDGE_BF16, JUDGE_RNE}, {JUDGE_F16, JUDGE_RNE},
                                  {JUDGE_TF32, JUDGE_RNE}, {JUDGE_E8M13, JUDGE_RZ}, {JUDGE_BF16, JUDGE_RZ},  {JUDGE_F16, JUDGE_RZ}};
  for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
    for (int level = 0; level < LEVELS && !found; level++) {
      if (level >= BY_BLOCK && !exact) continue;
      for (size_t chunk = 2 - (level == BY_CHUNK); chunk <= MOST_CHUNK && widths[w][0] != JUDGE_F32 && !found; chunk *= 2) {
        const order o = {level, CHUNKS, chunk, widths[w][0], widths[w][1], 1};
        if (chunk < (level >= BY_BLOCK ? t->kb : K)) found = fits(j, t, &o) && count(j, &o);
      }
      for (int kind = ASCENDING; kind <= HALVES && !found && level != BY_CHUNK; kind++) {
        const int counted = kind == CHUNKS || kind == LANES;
        for (size_t c = 0; c < (counted ? COUNTS + SPLITS : 1) && !found; c++) {
          order o = {level, kind, 0, widths[w][0], widths[w][1], 0};
          const size_t n = level == BY_BLOCK ? j->right.K / j->right.block : K;
          if (counted) o.n = c < COUNTS ? counts[c] : kind == CHUNKS ? n >> (c - COUNTS + 1) : 0;
          if (counted && (o.n < 2 || o.n >= n || (kind == LANES && o.n > MOST_LANES))) continue;
          found = fits(j, t, &o) && count(j, &o);
        }
      }
    }
  free_terms(t, j->n_sample);
}
