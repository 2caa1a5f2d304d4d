/* Judges a product: what D should be under each model, which outputs are wrong, and by how much. */
#include "mxgold/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mxgold/nearest.h"
#include "mxgold/verify.h"
#include "verify/judge/internal.h"

/* Orders of summation are tried before variants if more than one in so many of the sampled outputs lies where binary32 sums in some order may lie.
 * Tried too early, they cost time on a D that lost a part; too late, and a variant that happens to be near is named. */
enum { INSIDE_ONE_IN = 2 };

/* ---- the problem in the raw form */

static int operand(judge_job *j, mx_gemm_operand *x, const mx_tensor *t, const mx_spec *spec, int is_b, float *multiplier) {
  const mx_format *elem = mx_elem_format(spec->elem);
  *x = (mx_gemm_operand){.elem = elem, .data = t->codes, .scales = t->scales, .transposed = is_b, .nibble = spec->nibble};
  if (t->micro || (t->scale_rows != t->rows && elem->kind != MX_KIND_NONE)) return 0;
  if (elem->kind == MX_KIND_NONE) {
    x->elem = mx_operand_format(MX_OPERAND_F32);
    x->ld = t->cols;
    return 1;
  }
  x->scale = mx_scale_format(spec->scale);
  x->scale_form = spec->scale_form;
  x->scale_sign = spec->scale_sign;
  x->packing = elem->bits == 4 ? MX_PACK_DENSE : MX_PACK_BYTES;
  x->ld = t->cols_padded;
  x->multiplier = multiplier;
  if (elem->bits > 4 || spec->nibble != MX_NIBBLE_HALF_BLOCK) return 1;
  uint8_t *codes = j->codes[is_b] = noted(malloc(t->rows * t->cols + 1), j->lack);
  if (!codes) return 0;
  for (size_t r = 0; r < t->rows; r++)
    for (size_t c = 0; c < t->cols; c++) codes[r * t->cols + c] = (uint8_t)mx_code_at(t, spec, r, c);
  x->data = codes;
  x->packing = MX_PACK_BYTES;
  x->ld = t->cols;
  return 1;
}

static void set_problem(judge_job *j, const mx_gemm_options *gemm, float multiplier[2]) {
  size_t rows, of_a, of_b;
  mx_spec_block(j->a_spec, j->a->rows, j->a->cols, &rows, &of_a);
  mx_spec_block(j->b_spec, j->b->rows, j->b->cols, &rows, &of_b);
  j->right = (mx_gemm_problem){.M = j->a->rows, .N = j->b->rows, .K = j->a->cols, .block = mx_spec_is_plain(j->a_spec) ? of_b : of_a};
  if (gemm) j->right.options = *gemm;
  j->right.options.batch = 0;
  if (!j->right.block) j->right.block = 1;
  const int fine = !mx_tensor_multiplier(&multiplier[0], j->a, j->a_spec) && !mx_tensor_multiplier(&multiplier[1], j->b, j->b_spec);
  j->raw = operand(j, &j->right.a, j->a, j->a_spec, 0, &multiplier[0]) & operand(j, &j->right.b, j->b, j->b_spec, 1, &multiplier[1]) & fine;
}

/* ---- what is wrong */

static void mark(judge_job *j, const float *lo, const float *hi) {
  for (size_t i = 0; i < j->right.M * j->right.N; i++) {
    const float x = j->got[i];
    j->wrong[i] = lo ? isnan(lo[i]) ? !isnan(x) : !(x >= lo[i] && x <= hi[i]) && !(isnan(x) && isinf(lo[i]) && isinf(hi[i]))
                     : !mxi_judge_same(j, x, j->want[i]);
    j->out->differ += j->wrong[i];
  }
}

/* What is multiplied onto a sum of binary32 in another way moves it by so little, however much of the sum cancels; another order of summation moves some of
 * many outputs by more. */
enum { ULPS_OF_FACTORS = 2 };

static double ulp_at(const judge_job *j, double x) {
  const int bits = j->type == MX_F32 ? 24 : j->type == MX_F16 ? 11 : 8, emin = j->type == MX_F16 ? -14 : -126;
  const int e = x == 0 || !isfinite(x) ? emin : ilogb(x) < emin ? emin : ilogb(x);
  return ldexp(1, e - bits + 1);
}

static void measure(judge_job *j, const float *lo, const float *hi) {
  mx_judgement *o = j->out;
  const size_t M = j->right.M, N = j->right.N;
  static const double limits[7] = {1, 2, 4, 16, 256, 65536, INFINITY};
  int seen = 0;
  for (size_t i = 0; i < M * N; i++) {
    if (!j->wrong[i]) continue;
    j->in[0][i / N] = j->in[1][i % N] = 1;
    const double got = (double)j->got[i], want = (double)j->want[i];
    const size_t r = i / N, c = i % N;
    mx_judge_example e = {r, c, want, got, lo ? (double)lo[i] : NAN, hi ? (double)hi[i] : NAN, fabs(want - got) / ulp_at(j, want)};
    o->map[r * MX_JUDGE_MAP / M][c * MX_JUDGE_MAP / N]++;
    o->nan_wrong += !isnan(got) != !isnan(want);
    o->inf_wrong += !isinf(got) != !isinf(want);
    o->zero_signs += got == 0 && want == 0;
    if (!isfinite(got) || !isfinite(want)) e.ulps = INFINITY;
    int k = 0;
    while (k < 7 && !(e.ulps <= limits[k])) k++;
    if (k == 6 && isinf(e.ulps)) k = 7;
    o->ulps[k]++;
    if (!seen++) o->first = o->worst = e;
    if (e.ulps > o->worst.ulps) o->worst = e;
  }
}

/* Chooses wrong outputs from all over D: one from each of equally many, and the last few. */
static void draw(judge_job *j) {
  enum { LAST = 8, PARTS = JUDGE_SAMPLE - LAST }; /* the last ones, as tails of tiles go wrong often: more of them leave fewer parts */
  const uint64_t n = j->out->differ;
  uint64_t at = 0, part = 0, next = 0;
  for (size_t i = 0; i < j->right.M * j->right.N && j->n_sample < JUDGE_SAMPLE; i++) {
    if (!j->wrong[i]) continue;
    if (n <= JUDGE_SAMPLE || n - at <= LAST || at == next) {
      j->need[0][j->sample[j->n_sample][0] = i / j->right.N] = 1;
      j->need[1][j->sample[j->n_sample++][1] = i % j->right.N] = 1;
    }
    while (part < PARTS && next <= at) { /* somewhere in the next part */
      const uint64_t from = ++part * n / PARTS, room = (part + 1) * n / PARTS - from;
      next = from + part * JUDGE_SCATTER % (room ? room : 1);
    }
    at++;
  }
}

/* How many of the sampled outputs lie inside the widest interval of plain binary32 sums? */
static void inside(judge_job *j) {
  mx_gemm_options o = j->right.options;
  const size_t N = j->right.N, ldc = o.ldc ? o.ldc : N;
  o.out = MX_F32;
  const int type = j->type == MX_F16 ? JUDGE_F16 : j->type == MX_BF16 ? JUDGE_BF16 : JUDGE_F32;
  uint64_t n = 0;
  for (size_t i = 0; i < j->n_sample; i++) {
    const size_t r = j->sample[i][0], c = j->sample[i][1];
    const mx_tensor a = mx_tensor_rows(j->a, r, 1, 1), b = mx_tensor_rows(j->b, c, 1, 1);
    mx_gemm_options one = o;
    float lo, hi, bias = o.bias ? o.bias[o.bias_of_rows ? r : c] : 0;
    if (o.c) one.c = (const uint8_t *)o.c + (r * ldc + c) * mx_dtype_bytes(o.c_type);
    if (o.bias) one.bias = &bias;
    one.ldc = 1;
    if (noted_status(mx_gemm_bound(&lo, &hi, 1, &a, j->a_spec, &b, j->b_spec, &one, NULL, NULL), j->lack)) return;
    const double x = (double)j->got[r * N + c];
    n += x >= mxi_judge_round((double)lo, &mxi_judge_types[type], JUDGE_DOWN, 0, 0) &&
         x <= mxi_judge_round((double)hi, &mxi_judge_types[type], JUDGE_UP, 0, 0);
  }
  j->out->inside = n;
}

/* Looks for causes by comparing D with the right outputs. */
static void beside_right_ones(judge_job *j) {
  mxi_judge_places(j);
  if (!j->out->n_findings) mxi_judge_output(j);
  if (!j->out->n_findings) mxi_judge_chains(j);
}

static int is_factor(const float *x) { return x && *x != 1; }

static void explain(judge_job *j) {
  draw(j);
  if (!j->n_sample) return;
  mxi_judge_regions(j);
  if (j->raw) inside(j);
  for (int m = 0; m < j->n_models; m++)
    if (j->out->models[m].compared == j->out->outputs && !j->out->models[m].differ)
      mxi_judge_say(j, j->models[m].name, j->out->differ, "D is the product under another model, %s", j->models[m].name);
  if (!j->out->n_findings) mxi_judge_few(j);
  if (!j->out->n_findings && (j->how.model || j->how.bound)) mxi_judge_another_model(j);
  if (j->out->n_findings) return;
  if (!j->how.bound) mxi_judge_under_ties(j, beside_right_ones);
  if (j->out->n_findings) return;
  /* Another right order of summation is tried first: then nothing is lost, and no variant is near. */
  if (j->raw && j->n_sample >= JUDGE_FEWEST_SHARED && j->out->inside * INSIDE_ONE_IN > j->n_sample) mxi_judge_orders(j);
  if (!j->out->n_findings) mxi_judge_variants(j);
  if (j->raw && !j->out->n_findings && j->n_sample >= JUDGE_FEWEST_SHARED) mxi_judge_orders(j);
  if (!j->how.bound && !j->out->n_findings) mxi_judge_under_ties(j, mxi_judge_moved);
  if (!j->how.bound && !j->out->n_findings) mxi_judge_scattered(j);
  if (j->out->n_findings || j->out->inside != j->n_sample || j->n_sample < JUDGE_FEWEST_SHARED) return;
  const int has_factor = is_factor(j->right.a.multiplier) || is_factor(j->right.b.multiplier) || is_factor(j->right.options.alpha);
  if (has_factor && j->type == MX_F32 && j->out->worst.ulps <= ULPS_OF_FACTORS)
    mxi_judge_say(
        j, "", 0,
        "every output that differs is within %d units in the last place: the factors after the sum are multiplied or rounded otherwise",
        ULPS_OF_FACTORS);
  else
    mxi_judge_say(j, "", 0, "every output looked at lies where binary32 sums of some order may lie: the order of summation%s is another one",
                  has_factor ? ", or of the factors after it," : "");
}

static mx_status widen_bound(judge_job *j, float *lo, float *hi, mx_error *err) {
  mx_gemm_options o = j->right.options;
  o.out = MX_F32;
  const mx_status status = mx_gemm_bound(lo, hi, j->right.N, j->a, j->a_spec, j->b, j->b_spec, &o, &j->how.family, err);
  const int type = j->type == MX_F16 ? JUDGE_F16 : j->type == MX_BF16 ? JUDGE_BF16 : JUDGE_F32;
  for (size_t i = 0; i < j->right.M * j->right.N && !status && type != JUDGE_F32; i++) {
    lo[i] = (float)mxi_judge_round((double)lo[i], &mxi_judge_types[type], JUDGE_RNE, 0, 0);
    hi[i] = (float)mxi_judge_round((double)hi[i], &mxi_judge_types[type], JUDGE_RNE, 0, 0);
  }
  return status;
}

static const char *model_name(const void *set, size_t index) {
  const judge_job *j = set;
  return index < (size_t)j->n_models ? j->models[index].name : NULL;
}

static mx_status judge_all(judge_job *j, mx_error *err) {
  const size_t total = j->right.M * j->right.N;
  mx_judgement *o = j->out;
  *o = (mx_judgement){.M = j->right.M, .N = j->right.N, .K = j->right.K, .outputs = total};
  if (!total) {
    o->equal = 1;
    return MX_OK;
  }
  mx_status status = mxi_judge_find_models(j);
  if (status) return mx_fail(err, status, "no memory for the models");
  if (!j->n_models) /* nothing fits: let mx_gemm() say why */
    return mx_gemm(j->want, j->right.N, j->a, j->a_spec, j->b, j->b_spec, &j->right.options, err);
  int known = !j->how.model;
  for (int m = 0; m < j->n_models; m++) known |= j->how.model && !strcmp(j->how.model, j->models[m].name);
  if (!known) {
    char near[160];
    mx_nearest(near, sizeof near, j->how.model, model_name, j);
    return mx_fail(err, MX_ERR_KEY, "model '%s' is not one that takes these operands, nearest: %s", j->how.model, near);
  }
  for (size_t i = 0; i < total; i++) j->got[i] = mxi_judge_load(j->d, i, j->type);
  if ((status = mxi_judge_try_models(j, err))) return status;
  memcpy(o->base, j->models[j->base].name, sizeof o->base);
  float *bound = j->how.bound ? noted(malloc((2 * total + 1) * sizeof *bound), j->lack) : NULL;
  if (j->how.bound && !bound) return mx_fail(err, MX_ERR_NOMEM, "no memory for the bound");
  if (bound) status = widen_bound(j, bound, bound + total, err);
  if (!status) {
    j->lo = bound, j->hi = bound ? bound + total : NULL;
    mark(j, bound, bound ? bound + total : NULL);
    measure(j, bound, bound ? bound + total : NULL);
    o->equal = !o->differ;
    if (!o->equal) explain(j);
  }
  free(bound);
  return status;
}

mx_status mx_judge(mx_judgement *out, const void *d, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                   const mx_gemm_options *gemm, const mx_judge_options *options, mx_error *err) {
  if (!out || !a || !b || !a_spec || !b_spec) return mx_fail(err, MX_ERR_ARG, "mx_judge: NULL argument");
  if (gemm && gemm->batch > 1) return mx_fail(err, MX_ERR_ARG, "mx_judge: expected one matrix, not a batch");
  judge_job j = {.out = out, .a = a, .b = b, .a_spec = a_spec, .b_spec = b_spec, .d = d, .type = gemm ? gemm->out : MX_F32};
  if (options) j.how = *options;
  shortage lack = {0};
  j.lack = &lack;
  float multiplier[2], nothing;
  mx_gemm_options probe = {0};
  if (gemm) probe = *gemm;
  probe.model = MX_GEMM_F64;
  probe.fused = NULL;
  probe.batch = 0;
  /* Lets mx_gemm() check shapes and types: on the first row of each operand, but with all of A and B for K and blocks. */
  const mx_tensor a1 = mx_tensor_rows(a, 0, a->rows ? 1 : 0, 1), b1 = mx_tensor_rows(b, 0, b->rows ? 1 : 0, 1);
  probe.out = MX_F32;
  probe.c = NULL;
  probe.bias = NULL;
  mx_status status = mx_gemm(&nothing, b1.rows, &a1, a_spec, &b1, b_spec, &probe, err);
  if (status) return status;
  const size_t total = a->rows * b->rows;
  if (!d && total) return mx_fail(err, MX_ERR_ARG, "mx_judge: no D");
  if (j.type != MX_F32 && j.type != MX_F16 && j.type != MX_BF16) return mx_fail(err, MX_ERR_ARG, "mx_judge: expected D of f32, f16 or bf16");
  set_problem(&j, gemm, multiplier);
  j.got = malloc((total + 1) * sizeof *j.got);
  j.want = malloc((total + 1) * sizeof *j.want);
  j.wrong = calloc(total + 1, 1);
  j.sample = calloc(JUDGE_SAMPLE, sizeof *j.sample);
  int have = j.got && j.want && j.wrong && j.sample;
  for (int is_b = 0; is_b < 2; is_b++) {
    const size_t n = (is_b ? b : a)->rows;
    have &= (j.in[is_b] = calloc(n + 1, 1)) != NULL;
    have &= (j.need[is_b] = calloc(n + 1, 1)) != NULL;
  }
  have &= (j.tiles = malloc(mxi_judge_tiles(&j) + 1)) != NULL;
  status = have ? judge_all(&j, err) : mx_fail(err, MX_ERR_NOMEM, "no memory to judge D");
  free(j.got);
  free(j.want);
  free(j.wrong);
  free(j.sample);
  free(j.models);
  for (int is_b = 0; is_b < 2; is_b++) {
    free(j.codes[is_b]);
    free(j.in[is_b]);
    free(j.need[is_b]);
  }
  free(j.tiles);
  if (short_of_memory(&lack) && status != MX_ERR_NOMEM)
    status = mx_fail(err, MX_ERR_NOMEM, "no memory to judge D"); /* a cause may have been missed */
  return status;
}
