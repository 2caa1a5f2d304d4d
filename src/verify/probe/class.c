/* Finds what else would fit: every key is moved alone, and the rows of the tables are tried. A value that a probe contradicts is ruled out. Of the
 * others, those that no input of a second, larger list tells apart are called the same; the rest are open, and the inputs that would decide them make
 * the next batch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/probe/fit.h"

/* Probes that a value gets wrong are counted up to this number, although one rules it out. */
enum { ENOUGH = 99 };
/* How many inputs of the next batch are for each open value. Fewer may not decide it on a device that differs there only at times; more make the
 * batch long. */
enum { TELL = 12 };
/* How many random inputs, and inputs for second opinions, decide whether two values are the same. With fewer, different values are called the
 * same; with more, every value that fits takes longer. */
enum { BANK = 12000, SECOND = 4500 };
/* How many inputs are run at once. */
enum { RUN_AT_ONCE = 64 };

typedef struct judge {
  mx_probe_fit *out;
  const probe_data *data;
  const probe_list *l;
  probe_list bank; /* d: what the model found makes of it */
  probe_list next;
  probe_guess g;
  int exact; /* NaN bits count */
  int threads;
} judge;

/* --- one alternative --- */

typedef struct verdict {
  size_t wrong, first; /* probes */
  int same;            /* on the tiles and the bank too */
} verdict;

static int fits_data(const judge *j, const probe_guess *g, verdict *v) {
  v->wrong = mxi_probe_wrong(j->l, g, ENOUGH, j->exact, &v->first);
  return !v->wrong && !mxi_probe_wrong_tiles(j->data, g, 0, 0, j->exact);
}

/* Runs the probes alone, which are a fifteenth of the data. */
static int fits_probes(const judge *j, const probe_guess *g) { return !mxi_probe_wrong(j->l, g, 0, j->exact, NULL); }

static int same_on_bank(const judge *j, const probe_guess *g) { return mxi_probe_wrong(&j->bank, g, 0, j->exact, NULL) == 0; }

static verdict try_one(const judge *j, const probe_guess *g) {
  verdict v = {SIZE_MAX, SIZE_MAX, 0};
  if (!mxi_probe_valid(j->l->spec, g)) return v;
  if (fits_data(j, g, &v))
    v.same = same_on_bank(j, g);
  else if (!v.wrong)
    v.wrong = 1; /* beside the diagonal */
  return v;
}

/* Adds inputs of the bank on which g differs to the next batch. */
static void tell_apart(judge *j, const probe_guess *g) {
  uint8_t d[RUN_AT_ONCE * 8];
  size_t told = 0;
  for (size_t first = 0; first < j->bank.n && told < TELL; first += RUN_AT_ONCE) {
    const size_t n = j->bank.n - first < RUN_AT_ONCE ? j->bank.n - first : RUN_AT_ONCE;
    if (!mxi_probe_run(d, &j->bank, first, n, g)) return;
    for (size_t i = 0; i < n && told < TELL; i++) {
      if (!mxi_probe_differs(j->l->spec->d, mxi_probe_bits(d, j->bank.d_bytes, i), mxi_probe_bits(j->bank.d, j->bank.d_bytes, first + i),
                             j->exact))
        continue;
      mxi_probe_list_copy(&j->next, &j->bank, first + i);
      told++;
    }
  }
}

static void say_first(const judge *j, mx_probe_alternative *a, const probe_guess *g) {
  const probe_list *l = j->l;
  const size_t i = a->first;
  uint8_t d[8];
  char inputs[512];
  if (!mxi_probe_run(d, l, i, 1, g)) return;
  mxi_probe_describe(inputs, sizeof inputs, l->spec, l->a + i * l->a_bytes, l->b + i * l->b_bytes, l->c + i * l->c_bytes,
                     l->scale_a + i * l->s_bytes, l->scale_b + i * l->s_bytes);
  snprintf(a->text, sizeof a->text, "%s %zu: device 0x%llX, so 0x%llX: %.90s", mx_probe_family(l->labels[i][0], NULL), i,
           (unsigned long long)mxi_probe_bits(l->d, l->d_bytes, i), (unsigned long long)mxi_probe_bits(d, l->d_bytes, 0), inputs);
}

static mx_probe_alternative *note(judge *j, size_t key, const char *value, const probe_guess *g, verdict v) {
  if (j->out->n_alternatives == MX_PROBE_ALTERNATIVES) return NULL;
  mx_probe_alternative *a = &j->out->alternatives[j->out->n_alternatives++];
  memset(a, 0, sizeof *a);
  a->key = mxi_probe_keys[key].name;
  snprintf(a->value, sizeof a->value, "%s", value);
  a->wrong = v.wrong;
  a->first = v.first;
  a->same = v.same;
  a->open = !v.wrong && !v.same;
  if (a->open) tell_apart(j, g);
  if (v.wrong && v.first != SIZE_MAX) say_first(j, a, g);
  return a;
}

static int moved(const judge *j, probe_guess *g, size_t key, int value) {
  *g = j->g;
  return mxi_probe_set(g, key, value, j->l->spec);
}

/* --- keys whose values are a few --- */

static void each_value(judge *j, size_t key) {
  int values[PROBE_MAX_VALUES];
  const size_t n = mxi_probe_values(values, key, j->l->spec);
  verdict *v = noted(calloc(n + 1, sizeof *v), j->l->lack);
  probe_guess *g = noted(calloc(n + 1, sizeof *g), j->l->lack);
  const int K = (int)j->l->spec->K, now = mxi_probe_field_value(&j->g, key);
  if (v && g) {
#pragma omp parallel for schedule(dynamic) num_threads(j->threads)
    for (size_t i = 0; i < n; i++)
      if (values[i] != now && (values[i] ? values[i] : K) != now && moved(j, &g[i], key, values[i]))
        v[i] = try_one(j, &g[i]);
      else
        v[i].wrong = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
      char text[24];
      mxi_probe_value_text(text, sizeof text, key, values[i]);
      if (v[i].wrong != SIZE_MAX) note(j, key, text, &g[i], v[i]);
    }
  }
  free(v);
  free(g);
}

/* --- keys whose values are many and in order: the neighbours that are ruled out, and the range between --- */

static void range_note(judge *j, size_t key, const int *values, size_t from, size_t to, verdict v) {
  char x[24], y[24], text[52];
  probe_guess g;
  mxi_probe_value_text(x, sizeof x, key, values[from]);
  mxi_probe_value_text(y, sizeof y, key, values[to]);
  if (from == to)
    snprintf(text, sizeof text, "%s", x);
  else
    snprintf(text, sizeof text, "%.11s..%.11s", x, y);
  text[23] = 0;
  if (moved(j, &g, key, values[v.same || v.wrong ? from : to])) note(j, key, text, &g, v);
}

/* Finds, from `at` in direction `step`, how far the data allow values, and how far the bank does. */
static void side(judge *j, size_t key, const int *values, size_t n, size_t at, int step) {
  const size_t room = step > 0 ? n - 1 - at : at;
  size_t fit = 0, same = 0; /* steps away that still do */
  probe_guess g;
  verdict v;
  if (!room) return;
#define AT(i) values[step > 0 ? at + (i) : at - (i)]
  /* Finds the largest value that fits by doubling steps, then halving; by the probes, then by all data if those allow less. */
  size_t lo = 0, hi = room + 1;
  for (int all = 0; all < 2; all++) {
    while (hi - lo > 1) {
      const size_t mid = all && lo == 0 && hi == fit + 1 ? fit : lo == 0 && !all ? 1 : hi == room + 1 && 2 * lo < hi ? 2 * lo : (lo + hi) / 2;
      if (moved(j, &g, key, AT(mid)) && (all ? fits_data(j, &g, &v) : fits_probes(j, &g)))
        lo = mid;
      else
        hi = mid;
    }
    if (!all) fit = lo, hi = fit + 1, lo = 0;
  }
  fit = lo;
  for (lo = 0, hi = fit + 1; hi - lo > 1;) {
    const size_t mid = lo == 0 && hi == fit + 1 ? fit : (lo + hi) / 2;
    if (moved(j, &g, key, AT(mid)) && same_on_bank(j, &g))
      lo = mid;
    else
      hi = mid;
  }
  same = lo;
#undef AT
  const size_t one = step > 0 ? at + 1 : at - 1, s_end = step > 0 ? at + same : at - same, f_end = step > 0 ? at + fit : at - fit;
  if (same) range_note(j, key, values, step > 0 ? one : s_end, step > 0 ? s_end : one, (verdict){0, SIZE_MAX, 1});
  if (fit > same) range_note(j, key, values, step > 0 ? s_end + 1 : f_end, step > 0 ? f_end : s_end - 1, (verdict){0, SIZE_MAX, 0});
  if (fit < room) {
    const size_t out = step > 0 ? f_end + 1 : f_end - 1;
    if (moved(j, &g, key, values[out])) {
      v = try_one(j, &g);
      if (v.wrong && v.wrong != SIZE_MAX) range_note(j, key, values, out, out, v);
    }
  }
}

static void ordered(judge *j, size_t key, int none) {
  int values[PROBE_MAX_VALUES];
  const size_t n = mxi_probe_values(values, key, j->l->spec);
  const int now = mxi_probe_field_value(&j->g, key);
  size_t at = SIZE_MAX, kept = 0;
  for (size_t i = 0; i < n; i++) /* "none" is not a place in the order */
    if (values[i] != none) values[kept++] = values[i];
  for (size_t i = 0; i < kept; i++)
    if (values[i] == now) at = i;
  probe_guess g;
  if (now == none) {
    /* from the end that is nearest to it in effect */
    for (int end = 0; end < 2; end++) {
      const size_t from = end ? 0 : kept - 1;
      if (!kept || !moved(j, &g, key, values[from])) continue;
      verdict v = try_one(j, &g);
      if (v.wrong) {
        range_note(j, key, values, from, from, v);
        continue;
      }
      const probe_guess held = j->g;
      j->g = g;
      if (v.same) {
        range_note(j, key, values, from, from, v);
        side(j, key, values, kept, from, end ? 1 : -1);
      } else
        range_note(j, key, values, from, from, v);
      j->g = held;
    }
    return;
  }
  if (at == SIZE_MAX) return;
  side(j, key, values, kept, at, 1);
  side(j, key, values, kept, at, -1);
  if (moved(j, &g, key, none)) {
    verdict v = try_one(j, &g);
    char text[24];
    mxi_probe_value_text(text, sizeof text, key, none);
    if (v.wrong != SIZE_MAX) note(j, key, text, &g, v);
  }
}

/* --- the plainest of those that are the same --- */

static int equal_everywhere(judge *j, const probe_guess *g) {
  verdict v;
  return mxi_probe_valid(j->l->spec, g) && fits_data(j, g, &v) && same_on_bank(j, g);
}

static void plainest(judge *j) {
  static const char *const keys[] = {"via",   "order", "k",    "split", "P",     "c_drop",   "join_cut", "join",
                                     "align", "floor", "zero", "huge",  "under", "out_bits", "out_round"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const size_t key = mxi_probe_key_find(keys[i]);
    probe_guess g = j->g;
    if (!mxi_probe_field_value(&g, key) || !mxi_probe_set(&g, key, 0, j->l->spec)) continue;
    if (equal_everywhere(j, &g)) j->g = g;
  }
  if (!j->g.x.L && j->g.x.op == MX_ACC_OP_FUSED) j->g.x.L = (int)j->l->spec->K;
}

/* --- names --- */

static int same_types(const mx_mma_model *m, const mx_probe_spec *s) {
  return m->a == s->a && m->b == s->b && m->c == s->c && m->d == s->d && m->scale == s->scale && (!s->scale || m->block == s->block);
}

static int near_in_type(const mx_mma_model *m, const mx_probe_spec *s) {
  return m->d == s->d && (m->a->kind == MX_KIND_INT) == (s->a->kind == MX_KIND_INT);
}

typedef struct known {
  probe_guess g;
  int fits;
} known;

static void names(judge *j) {
  mx_probe_fit *out = j->out;
  const mx_probe_spec *s = j->l->spec;
  known seen[256];
  size_t n_seen = 0;
  mx_mma_model m;
  for (size_t i = 0; mx_mma_model_at(&m, i) == MX_OK; i++) {
    const int row = !strchr(m.name, '/');
    char name[96];
    probe_guess g;
    memset(&g, 0, sizeof g);
    g.x = m.accum;
    g.k = m.whole_k ? m.k : j->g.k;
    snprintf(name, sizeof name, "%s", m.name);
    if (row && !near_in_type(&m, s)) continue;
    if (!row && (!same_types(&m, s) || s->K % (size_t)m.k)) continue;
    const int L = g.x.L ? g.x.L : (int)s->K;
    if (row && g.x.op != MX_ACC_OP_FMA && g.x.op != MX_ACC_OP_INTEGER && j->g.x.L && L != j->g.x.L) {
      g.x.L = j->g.x.L;
      snprintf(name, sizeof name, "%.60s:L=%d", m.name, g.x.L);
    }
    if (row && !strcmp(m.name, "fused")) continue;
    if (!mxi_probe_valid(s, &g)) continue;
    size_t q = 0;
    while (q < n_seen && memcmp(&seen[q].g, &g, sizeof g)) q++;
    if (q == n_seen) {
      known k = {g, 0};
      verdict v;
      const int found = !memcmp(&g, &j->g, sizeof g);
      k.fits = found || fits_data(j, &g, &v);
      if (k.fits && !found && !same_on_bank(j, &g)) {
        char text[24];
        snprintf(text, sizeof text, "%.23s", name);
        tell_apart(j, &g);
        k.fits = 2;
      }
      if (n_seen < 256)
        seen[n_seen++] = k;
      else
        continue;
    }
    if (!seen[q].fits) continue;
    if (seen[q].fits == 2 && strlen(name) + 8 < sizeof name) strcat(name, " (open)");
    out->n_names_all++;
    if (out->n_names < MX_PROBE_NAMES) strcpy(out->names[out->n_names++], name);
  }
}

/* --- all of it --- */

static int bank(judge *j) {
  mxi_probe_list_init(&j->bank, j->l->spec, j->l->lack);
  mxi_probe_list_init(&j->next, j->l->spec, j->l->lack);
  mxi_probe_families(&j->bank, 32, 0);
  mxi_probe_random(&j->bank, 33, BANK);
  mxi_probe_second(&j->bank, 34, SECOND);
  mxi_probe_list_keep(&j->bank);
  return !j->bank.failed && mxi_probe_run(j->bank.d, &j->bank, 0, j->bank.n, &j->g);
}

mx_status mxi_probe_class(mx_probe_fit *out, const probe_data *data, const probe_list *l, const probe_guess *g, int threads, mx_error *err) {
  judge j = {.out = out, .data = data, .l = l, .g = *g, .threads = threads, .exact = !out->nan_open};
  mx_status status = MX_OK;
  out->alternatives = calloc(MX_PROBE_ALTERNATIVES, sizeof *out->alternatives);
  if (!out->alternatives || !bank(&j)) status = mx_fail(err, MX_ERR_NOMEM, "probe: no memory");
  if (!status) {
    plainest(&j);
    out->n_told = j.bank.n;
    static const char *const many[] = {"F", "sum_bits", "c_bits", "c_drop", "out_bits", "floor"};
    static const int nones[] = {-1, 0, 0, 0, 0, 0};
    for (size_t key = 0; key < mxi_probe_n_keys; key++) {
      size_t q = 0;
      while (q < 6 && strcmp(many[q], mxi_probe_keys[key].name)) q++;
      if (q == 6)
        each_value(&j, key);
      else if (j.g.x.op == MX_ACC_OP_FUSED)
        ordered(&j, key, nones[q]);
    }
    names(&j);
    if (j.next.failed) status = mx_fail(err, MX_ERR_NOMEM, "probe: no memory");
  }
  if (!status && j.next.n) {
    for (size_t i = 0; i < j.next.n; i++) j.next.labels[i][0] = PROBE_NEXT;
    status = mxi_probe_pack(&out->next, &j.next, NULL, l->spec->seed, err);
  }
  out->model.accum = j.g.x;
  out->model.k = j.g.k;
  mxi_probe_list_free(&j.bank);
  mxi_probe_list_free(&j.next);
  return status;
}
