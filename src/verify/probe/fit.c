/* Fits a model to tiles: readings, search, confirmation on every output, what else would fit, and the prediction of tiles that were kept apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/probe/tree.h"

/* How many searches follow each other, each with outputs that the model before got wrong, and how many of those are learned. With fewer, a unit is
 * given up whose rare cases the probes miss; more only lengthen the search for one that these keys do not describe. */
enum { ROUNDS = 8, LEARN = 160 };
/* A tree of additions is mended, product by product, if it gets at most one in so many probes wrong; with more, it is another tree or rule. */
enum { TREE_WRONG_ONE_IN = 8 };

/* Adds output q of a batch as one more probe. */
static void add_output(probe_list *l, const mx_probe *p, const uint8_t *d, size_t q, const int32_t *label) {
  const mx_probe_spec *s = &p->spec;
  const size_t t = q / (s->M * s->N), i = q / s->N % s->M, j = q % s->N, at = mxi_probe_list_add(l, label);
  if (at == SIZE_MAX) return;
  memcpy(l->a + at * l->a_bytes, p->a + (t * s->M + i) * p->a_bytes, l->a_bytes);
  memcpy(l->b + at * l->b_bytes, p->b + (t * s->N + j) * p->b_bytes, l->b_bytes);
  memcpy(l->c + at * l->c_bytes, p->c + q * p->c_bytes, l->c_bytes);
  memcpy(l->d + at * l->d_bytes, d + q * l->d_bytes, l->d_bytes);
  if (!s->scale) return;
  memcpy(l->scale_a + at * l->s_bytes, p->scale_a + (t * s->M + i) * p->s_bytes, l->s_bytes);
  memcpy(l->scale_b + at * l->s_bytes, p->scale_b + (t * s->N + j) * p->s_bytes, l->s_bytes);
}

static void probes_of(probe_list *l, const probe_data *data) {
  for (size_t i = 0; i < data->n; i++) {
    const mx_probe *p = &data->batches[i];
    const size_t side = p->spec.M < p->spec.N ? p->spec.M : p->spec.N;
    for (size_t x = 0; x < p->n; x++) {
      const size_t t = x / side, r = x % side, q = (t * p->spec.M + r) * p->spec.N + r;
      add_output(l, p, data->d[i], q, p->labels[x]);
    }
  }
}

/* Adds outputs off the diagonal that g gets wrong to the probes. Returns how many. */
static size_t learn(probe_list *l, const probe_data *data, const probe_guess *g) {
  size_t learnt = 0;
  const int32_t label[MX_PROBE_LABELS] = {PROBE_RANDOM, -1, -1, -1};
  for (size_t i = 0; i < data->n && learnt < LEARN; i++) {
    const mx_probe *p = &data->batches[i];
    const size_t each = p->spec.M * p->spec.N;
    mx_probe part = *p;
    mx_mma_model m;
    mxi_probe_model(&m, &p->spec, g);
    part.T = p->T_fit;
    uint8_t *d = noted(malloc(part.T * each * l->d_bytes + 1), data->lack);
    const mx_mma_args args = mx_probe_args(&part);
    if (d && !noted_status(mx_mma(d, &m, &args, data->exec, NULL), data->lack))
      for (size_t q = 0; q < part.T * each && learnt < LEARN; q++)
        if (mxi_probe_differs(p->spec.d, mxi_probe_bits(d, l->d_bytes, q), mxi_probe_bits(data->d[i], l->d_bytes, q), 0)) {
          add_output(l, p, data->d[i], q, label);
          learnt++;
        }
    free(d);
  }
  return learnt;
}

/* Finds the rule that gives all NaN bits; nan_open if there is none. */
static void settle_nan(mx_probe_fit *out, const probe_list *l, probe_guess *g) {
  static const int rules[] = {MX_ACC_NAN_ONES, MX_ACC_NAN_QUIET, MX_ACC_NAN_FIRST};
  for (size_t i = 0; i < 3; i++) {
    probe_guess x = *g;
    x.x.nan = rules[i];
    if (mxi_probe_valid(l->spec, &x) && !mxi_probe_wrong(l, &x, 0, 1, NULL)) {
      *g = x;
      return;
    }
  }
  out->nan_open = 1;
}

/* Finds, among the outputs that the model gets wrong, the one with the fewest products. */
static void counter_example(mx_probe_fit *out, const probe_data *data, const probe_guess *g) {
  mx_probe_counter_example *c = &out->counter;
  int fewest = 1 << 30;
  for (size_t i = 0; i < data->n; i++) {
    const mx_probe *p = &data->batches[i];
    const mx_probe_spec *s = &p->spec;
    const size_t each = s->M * s->N, bytes = mx_mma_bytes(s->d, 1);
    mx_mma_model m;
    mxi_probe_model(&m, s, g);
    uint8_t *d = noted(malloc(p->T * each * bytes + 1), data->lack);
    const mx_mma_args args = mx_probe_args(p);
    if (d && !noted_status(mx_mma(d, &m, &args, data->exec, NULL), data->lack))
      for (size_t q = 0; q < p->T * each; q++) {
        const uint64_t want = mxi_probe_bits(d, bytes, q), got = mxi_probe_bits(data->d[i], bytes, q);
        if (!mxi_probe_differs(s->d, want, got, !out->nan_open)) continue;
        const size_t t = q / each, r = q / s->N % s->M, col = q % s->N;
        const uint8_t *a = p->a + (t * s->M + r) * p->a_bytes, *b = p->b + (t * s->N + col) * p->b_bytes;
        const int n = mxi_probe_products_of(s, a, b);
        if (n >= fewest) continue;
        fewest = n;
        *c = (mx_probe_counter_example){i, t, r, col, (size_t)n, mxi_probe_bits(p->c, p->c_bytes, q), want, got, ""};
        mxi_probe_describe(c->text, sizeof c->text, s, a, b, p->c + q * p->c_bytes, p->scale_a + (t * s->M + r) * p->s_bytes,
                           p->scale_b + (t * s->N + col) * p->s_bytes);
      }
    free(d);
  }
}

static void name_model(mx_probe_fit *out, const mx_probe_spec *s) {
  mx_mma_model *m = &out->model;
  const probe_guess g = {m->accum, m->k};
  char keys[256], types[64] = "", scale[40] = "", k[24] = "";
  mxi_probe_model(m, s, &g);
  mx_accum_text(keys, sizeof keys, &m->accum);
  snprintf(types, sizeof types, ",a=%s,b=%s,c=%s,d=%s", s->a->name, s->b->name, s->c->name, s->d->name);
  if (s->scale) snprintf(scale, sizeof scale, ",scale=%s,block=%d", s->scale->name, s->block);
  snprintf(k, sizeof k, ",k=%d", m->k);
  snprintf(out->text, sizeof out->text, "fused:%s%s%s%s", keys, types, scale, k);
  strcpy(m->name, "fused");
  m->held = "the device that was probed";
  m->source = "mxgold probe";
}

static int same_spec(const mx_probe_spec *x, const mx_probe_spec *y) {
  return x->a == y->a && x->b == y->b && x->c == y->c && x->d == y->d && x->scale == y->scale && x->block == y->block && x->K == y->K;
}

/* --- trees of additions --- */

/* Lists all outputs of the tiles that were fitted, or of those kept, as probes. */
static void outputs_of(probe_list *l, const probe_data *data, int kept) {
  const int32_t label[MX_PROBE_LABELS] = {PROBE_RANDOM, -1, -1, -1};
  for (size_t i = 0; i < data->n; i++) {
    const mx_probe *p = &data->batches[i];
    const size_t each = p->spec.M * p->spec.N;
    for (size_t q = (kept ? p->T_fit : 0) * each; q < (kept ? p->T : p->T_fit) * each; q++) add_output(l, p, data->d[i], q, label);
  }
}

/* Masks do not say which of two products that are added is rounded first: takes the order that gets fewer probes wrong. Returns how many are left. */
static size_t exchange_products(probe_tree *t, const probe_tree_rule *rule, const probe_list *l, size_t wrong) {
  size_t at;
  uint64_t expected;
  for (int i = 0; i < t->n_nodes && wrong; i++) {
    if (!mxi_probe_tree_exchange(t, i)) continue;
    const size_t now = mxi_probe_tree_wrong(t, rule, l, wrong, &at, &expected);
    if (now < wrong)
      wrong = now;
    else
      mxi_probe_tree_exchange(t, i);
  }
  return wrong;
}

/* Finds the tree that the masks show, and whether some rule of adding along it gives every output. */
static void try_tree(mx_probe_fit *out, const probe_data *data, const probe_list *l) {
  probe_tree t;
  probe_list fitted, kept;
  size_t at;
  uint64_t expected;
  if (!mxi_probe_tree_read(&t, l)) return;
  mxi_probe_list_init(&fitted, l->spec, l->lack);
  mxi_probe_list_init(&kept, l->spec, l->lack);
  for (size_t r = 0; r < mxi_probe_tree_n_rules && out->wrong_outputs; r++) {
    size_t wrong = mxi_probe_tree_wrong(&t, &mxi_probe_tree_rules[r], l, l->n / TREE_WRONG_ONE_IN, &at, &expected);
    if (wrong && wrong <= l->n / TREE_WRONG_ONE_IN && mxi_probe_tree_rules[r].fused)
      wrong = exchange_products(&t, &mxi_probe_tree_rules[r], l, wrong);
    if (wrong) continue;
    if (!fitted.n) outputs_of(&fitted, data, 0), outputs_of(&kept, data, 1);
    if (fitted.failed || kept.failed || mxi_probe_tree_wrong(&t, &mxi_probe_tree_rules[r], &fitted, 0, &at, &expected)) continue;
    out->is_tree = 1;
    out->tree_rule = mxi_probe_tree_rules[r].text;
    out->wrong_outputs = out->wrong_probes = 0;
    out->wrong_kept = mxi_probe_tree_wrong(&t, &mxi_probe_tree_rules[r], &kept, SIZE_MAX - 1, &at, &expected);
    out->nan_open = 1;
  }
  /* A sum of few bits hides the end of a group from the masks: a model that fits is more reliable. */
  const mx_accum *x = &out->model.accum;
  const int joined = !out->is_tree && !out->wrong_outputs && x->op == MX_ACC_OP_FUSED && x->L && mxi_probe_tree_widest(&t) > x->L;
  if (!joined) {
    out->tree = noted(mxi_probe_tree_text(&t), l->lack);
    out->tree_name = mxi_probe_tree_name(&t);
  }
  mxi_probe_list_free(&fitted);
  mxi_probe_list_free(&kept);
  mxi_probe_tree_free(&t);
}

/* Is the device a row of the accumulation table, or one of its trees and chains in another length? Rows that are trees too are named as rows. */
static int is_known(const probe_list *l) {
  mx_mma_model m;
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK && !strchr(m.name, '/'); i++)
    for (int L = m.accum.op == MX_ACC_OP_FUSED ? 0 : 1; L <= (m.accum.op == MX_ACC_OP_FUSED ? 0 : (int)l->spec->K); L *= 2) {
      probe_guess g = {.x = m.accum};
      if (L) g.x.L = L;
      if (mxi_probe_valid(l->spec, &g) && !mxi_probe_wrong(l, &g, 0, 0, NULL)) return 1;
      if (!L) break;
    }
  return 0;
}

/* A device that adds along a tree is described by it: the search for fused sums, which would find none, is skipped. */
static int tree_alone(mx_probe_fit *out, const probe_data *data, const probe_list *l) {
  if (l->spec->scale || is_known(l)) return 0;
  out->wrong_outputs = SIZE_MAX;
  try_tree(out, data, l);
  out->n_tried = mxi_probe_tree_n_rules;
  out->fits = out->is_tree && !out->wrong_kept;
  if (out->fits) name_model(out, l->spec);
  if (out->fits) return 1;
  free(out->tree);
  out->tree = NULL;
  out->tree_name = out->tree_rule = NULL;
  out->is_tree = 0;
  out->nan_open = 0;
  out->wrong_outputs = out->wrong_probes = out->wrong_kept = 0;
  return 0;
}

static mx_status fit(mx_probe_fit *out, const probe_data *data, probe_list *l, mx_error *err) {
  const int threads = mx_thread_count(data->exec ? data->exec->n_threads : 0);
  probe_readings r;
  probe_found f = {.wrong = SIZE_MAX};
  probes_of(l, data);
  out->n_probes = l->n;
  for (size_t i = 0; i < data->n; i++) {
    const size_t each = data->batches[i].spec.M * data->batches[i].spec.N;
    out->n_outputs += data->batches[i].T_fit * each;
    out->n_kept += (data->batches[i].T - data->batches[i].T_fit) * each;
  }
  if (l->failed) return mx_fail(err, MX_ERR_NOMEM, "probe: no memory");
  mxi_probe_list_keep(l);
  mxi_probe_read(&r, out, l);
  if (tree_alone(out, data, l)) return MX_OK;
  for (int round = 0; round < ROUNDS; round++) {
    const size_t tried = f.tried;
    if (!mxi_probe_search(&f, l, &r, threads)) return mx_fail(err, MX_ERR_NOMEM, "probe: no memory");
    f.tried += tried;
    if (f.wrong || !learn(l, data, &f.g)) break;
  }
  out->n_tried = f.tried;
  if (f.wrong == SIZE_MAX) return mx_fail(err, MX_ERR_UNSUPPORTED, "probe: no model takes these types");
  probe_guess g = f.g;
  mxi_probe_list_keep(l);
  settle_nan(out, l, &g);
  out->model.accum = g.x;
  out->model.k = g.k;
  out->wrong_outputs = mxi_probe_wrong_tiles(data, &g, 0, SIZE_MAX - 1, !out->nan_open);
  out->wrong_probes = mxi_probe_wrong(l, &g, SIZE_MAX - 1, !out->nan_open, NULL);
  if (!out->wrong_outputs) {
    mx_status status = mxi_probe_class(out, data, l, &g, threads, err);
    if (status) return status;
    g = (probe_guess){out->model.accum, out->model.k};
  }
  out->wrong_kept = mxi_probe_wrong_tiles(data, &g, 1, SIZE_MAX - 1, !out->nan_open);
  if (!l->spec->scale) try_tree(out, data, l);
  out->fits = !out->wrong_outputs && !out->wrong_kept;
  if (!out->fits) counter_example(out, data, &g);
  name_model(out, l->spec);
  return MX_OK;
}

mx_status mx_probe_fit_run(mx_probe_fit *out, const mx_probe *batches, const void *const *d, size_t n_batches, const mx_exec *exec,
                           mx_error *err) {
  if (!out) return mx_fail(err, MX_ERR_ARG, "probe: NULL");
  memset(out, 0, sizeof *out);
  if (!batches || !d || !n_batches) return mx_fail(err, MX_ERR_ARG, "probe: no batch");
  for (size_t i = 0; i < n_batches; i++) {
    if (!d[i]) return mx_fail(err, MX_ERR_ARG, "probe: no result");
    if (!same_spec(&batches[i].spec, &batches[0].spec))
      return mx_fail(err, MX_ERR_ARG, "probe: batch %zu has other types or another K than the first", i + 1);
  }
  mma_kept **kept = calloc(n_batches, sizeof *kept);
  shortage lack = {0};
  const probe_data data = {batches, d, n_batches, exec, kept, &lack};
  probe_list l;
  if (!kept) return mx_fail(err, MX_ERR_NOMEM, "probe: no memory");
  for (size_t i = 0; i < n_batches; i++) {
    const mx_probe_spec *s = &batches[i].spec;
    const mx_mma_model types = {.a = s->a, .b = s->b, .c = s->c, .d = s->d, .scale = s->scale, .block = s->scale ? s->block : 0};
    const mx_mma_args args = mx_probe_args(&batches[i]);
    kept[i] = mxi_mma_kept_new(&types, &args);
  }
  mxi_probe_list_init(&l, &batches[0].spec, &lack);
  mx_status status = fit(out, &data, &l, err);
  if (!status && short_of_memory(&lack)) status = mx_fail(err, MX_ERR_NOMEM, "probe: no memory"); /* a model may have been passed over */
  mxi_probe_list_free(&l);
  for (size_t i = 0; i < n_batches; i++) mxi_mma_kept_free(kept[i]);
  free(kept);
  if (status) mx_probe_fit_free(out);
  return status;
}

void mx_probe_fit_free(mx_probe_fit *fit_) {
  free(fit_->tree);
  free(fit_->alternatives);
  mx_probe_free(&fit_->next);
  memset(fit_, 0, sizeof *fit_);
}
