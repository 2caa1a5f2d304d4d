/* Computes D under each model: a sample first, and the whole where that agrees. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "verify/judge/internal.h"

/* With fewer multiply-adds than this a product runs in one thread, which is done before others have started. */
enum { ONE_THREAD_WORK = 1 << 22 };
/* If no model agrees with the sample, how many are computed for all of D: so many of those with up to NEAR_TIMES the fewest differences there, and
 * more while JUDGE_WORK lasts. With fewer, chance in the sample chooses the base; each further one costs a product. */
enum { WHOLE_MODELS = 3, NEAR_TIMES = 2 };
/* A narrow accumulator becomes the base only if it leaves this many times fewer outputs wrong than the plain model. With a smaller factor it is
 * named for outputs that were cut in another way; with a larger one, a narrow accumulator with another fault is taken for binary32. */
enum { NARROW_TIMES = 2 };

mx_status mxi_judge_run(const judge_job *j, float *out, const mx_gemm_problem *p, int model, mx_dtype type, const size_t (*pairs)[2],
                        size_t n) {
  const size_t n_out = pairs ? n : j->right.M * j->right.N;
  void *d = noted(malloc(n_out * mx_dtype_bytes(type) + 1), j->lack);
  if (!d) return MX_ERR_NOMEM;
  mx_gemm_problem q = *p;
  q.d = d;
  q.pairs = pairs;
  q.n_pairs = n;
  q.options.model = j->models[model].id;
  q.options.fused = j->models[model].id == MX_GEMM_FUSED ? &j->models[model].fused : NULL;
  q.options.out = type;
  if (pairs || n_out * p->K < ONE_THREAD_WORK) q.options.exec.n_threads = 1;
  mx_status status;
  if (j->raw)
    status = n_out ? mx_gemm_raw(&q, NULL) : MX_OK;
  else if (pairs)
    status = MX_ERR_UNSUPPORTED;
  else
    status = mx_gemm(d, j->right.N, j->a, j->a_spec, j->b, j->b_spec, &q.options, NULL);
  for (size_t i = 0; i < n_out && !status; i++) out[i] = mxi_judge_load(d, i, type);
  free(d);
  return noted_status(status, j->lack);
}

/* Lists the models of mx_gemm(), then the rows of accumulation.def that it accepts for these operands. */
mx_status mxi_judge_find_models(judge_job *j) {
  const size_t first[1][2] = {{0, 0}};
  float x;
  j->models = noted(calloc(MX_JUDGE_MODELS, sizeof *j->models), j->lack);
  if (!j->models) return MX_ERR_NOMEM;
  for (int i = 0; i < MX_GEMM_FUSED; i++) {
    judge_model *m = &j->models[j->n_models];
    snprintf(m->name, sizeof m->name, "%s", mx_gemm_model_name(i));
    m->id = i;
    if (!j->raw || !mxi_judge_run(j, &x, &j->right, j->n_models, j->type, first, 1)) j->n_models++;
  }
  const size_t rows = j->raw ? mx_mma_model_count() : 0;
  for (size_t i = 0; i < rows && j->n_models < MX_JUDGE_MODELS; i++) {
    judge_model *m = &j->models[j->n_models];
    if (mx_mma_model_at(&m->fused, i) || strchr(m->fused.name, '/')) break;
    snprintf(m->name, sizeof m->name, "%.63s", m->fused.name);
    m->id = MX_GEMM_FUSED;
    int named = 0; /* rows of accumulation.def with the name of a model of mx_gemm() are that model */
    for (int k = 0; k < j->n_models; k++) named |= !strcmp(j->models[k].name, m->name);
    if (!named && !mxi_judge_run(j, &x, &j->right, j->n_models, j->type, first, 1)) j->n_models++;
  }
  /* Finds a model that was asked for by its parameters: "hopper_f16:F=24". */
  judge_model *m = &j->models[j->n_models];
  if (j->raw && j->how.model && strchr(j->how.model, ':') && j->n_models < MX_JUDGE_MODELS && strlen(j->how.model) < sizeof m->name &&
      !mx_mma_model_find(&m->fused, j->how.model, NULL)) {
    snprintf(m->name, sizeof m->name, "%s", j->how.model);
    m->id = MX_GEMM_FUSED;
    if (!mxi_judge_run(j, &x, &j->right, j->n_models, j->type, first, 1)) j->n_models++;
  }
  return MX_OK;
}

static uint64_t differing(const judge_job *j, const float *want) {
  uint64_t n = 0;
  for (size_t i = 0; i < j->right.M * j->right.N; i++) n += !mxi_judge_same(j, j->got[i], want[i]);
  return n;
}

/* The significant bits of an accumulator that is narrower than binary32. 0 for a model of the operands' own unit: one that takes these elements
 * and gives binary32, on which their kernels are built. */
static int narrow(const judge_job *j, const judge_model *m) {
  const mx_accum *p = &m->fused.accum;
  if (m->id != MX_GEMM_FUSED) return 0;
  if (m->fused.d == mx_operand_format(MX_OPERAND_F16)) return 11;
  if (m->fused.d != mx_operand_format(MX_OPERAND_F32)) return 0;
  const int bits = p->out_bits > 0 && p->out_bits < 23 ? p->out_bits + 1 : p->F > 0 && p->F < 23 ? p->F + 1 : 0;
  return bits && m->fused.a->bits == j->right.a.elem->bits && m->fused.b->bits == j->right.b.elem->bits ? 0 : bits;
}

/* Chooses outputs all over D, corners first. */
static size_t spread(const judge_job *j, size_t pairs[JUDGE_SAMPLE][2]) {
  const size_t M = j->right.M, N = j->right.N, total = M * N;
  for (size_t i = 0; i < JUDGE_SAMPLE && i < total; i++) {
    const size_t at = total <= JUDGE_SAMPLE ? i
                      : i == 0              ? 0
                      : i == 1              ? total - 1
                      : i == 2              ? N - 1
                      : i == 3              ? total - N
                                            : i * JUDGE_SCATTER % total;
    pairs[i][0] = at / N;
    pairs[i][1] = at % N;
  }
  return total < JUDGE_SAMPLE ? total : JUDGE_SAMPLE;
}

/* Compares D with each model: on a sample first, and on the whole if the sample agrees or nothing does better. want becomes the outputs of the base. */
mx_status mxi_judge_try_models(judge_job *j, mx_error *err) {
  const size_t total = j->right.M * j->right.N;
  size_t pairs[JUDGE_SAMPLE][2];
  const size_t n = spread(j, pairs);
  float some[JUDGE_SAMPLE], *all = noted(malloc((total + 1) * sizeof *all), j->lack);
  uint64_t least = UINT64_MAX;
  size_t sampled[MX_JUDGE_MODELS], best = SIZE_MAX;
  if (!all) return mx_fail(err, MX_ERR_NOMEM, "no memory for D of %zu x %zu", j->right.M, j->right.N);
  for (int m = 0; m < j->n_models; m++) {
    mx_judge_model *o = &j->out->models[m];
    sampled[m] = 0;
    memcpy(o->name, j->models[m].name, sizeof o->name);
    o->bits = narrow(j, &j->models[m]);
    o->compared = n;
    if (j->raw && !mxi_judge_run(j, some, &j->right, m, j->type, (const size_t(*)[2])pairs, n))
      for (size_t i = 0; i < n; i++) sampled[m] += !mxi_judge_same(j, j->got[pairs[i][0] * j->right.N + pairs[i][1]], some[i]);
    o->differ = sampled[m];
    if (sampled[m] < best) best = sampled[m];
  }
  mx_status status = MX_OK;
  int whole = 0;
  /* If no model agrees with the sample, computes the first few of the nearest for all of D, and more of them if a part of D is right and little
   * work decides whose it is. */
  const size_t work = total * j->right.K, more = JUDGE_WORK / (work ? work : 1), most = best < n && more > WHOLE_MODELS ? more : WHOLE_MODELS;
  for (int m = 0; m < j->n_models && !status; m++) {
    mx_judge_model *o = &j->out->models[m];
    const int asked = j->how.model && !strcmp(j->how.model, j->models[m].name);
    if (!asked && (sampled[m] > (o->bits ? best : NEAR_TIMES * best) || (best && (size_t)whole >= most))) continue;
    whole++;
    if ((status = mxi_judge_run(j, all, &j->right, m, j->type, NULL, 0))) break;
    o->compared = total;
    o->differ = differing(j, all);
    const uint64_t doubt = o->differ * (o->bits ? NARROW_TIMES : 1);
    if (asked || (!j->how.model && doubt < least)) {
      least = doubt;
      j->base = m;
      memcpy(j->want, all, total * sizeof *all);
    }
  }
  j->out->n_models = j->n_models;
  free(all);
  return status ? mx_fail(err, status, "gemm: %s", mx_status_text(status)) : MX_OK;
}

void mxi_judge_under_ties(judge_job *j, void (*look)(judge_job *)) {
  const int base = j->base, asked = j->how.model != NULL;
  const size_t total = j->right.M * j->right.N;
  look(j);
  for (int m = 0; m < j->n_models && !j->out->n_findings && !asked; m++) {
    if (m == base || j->out->models[m].compared != total || j->out->models[m].differ != j->out->differ) continue;
    if (mxi_judge_run(j, j->want, &j->right, m, j->type, NULL, 0)) break;
    size_t i = 0;
    while (i < total && j->wrong[i] != mxi_judge_same(j, j->got[i], j->want[i])) i++;
    if (i < total) continue;
    j->base = m;
    look(j);
  }
  if (j->base != base && !j->out->n_findings) {
    j->base = base;
    mxi_judge_run(j, j->want, &j->right, base, j->type, NULL, 0);
  }
  memcpy(j->out->base, j->models[j->base].name, sizeof j->out->base);
}
