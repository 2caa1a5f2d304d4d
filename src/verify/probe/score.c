/* Counts how many probes a model gets wrong. */
#include <stdlib.h>
#include <string.h>

#include "verify/probe/fit.h"

/* How many probes are run at once; if one wrong probe is enough, the first chunk is this many times smaller. Larger chunks compute more than is
 * needed to see that a model is wrong; smaller ones call more often. */
enum { CHUNK = 512, FIRST_SMALLER = 32 };

void mxi_probe_model(mx_mma_model *m, const mx_probe_spec *s, const probe_guess *g) {
  memset(m, 0, sizeof *m);
  strcpy(m->name, "probe");
  m->accum_name = "fused";
  m->held = m->source = "";
  m->accum = g->x;
  m->a = s->a;
  m->b = s->b;
  m->c = s->c;
  m->d = s->d;
  m->scale = s->scale;
  m->block = s->scale ? s->block : 0;
  m->k = g->k;
}

int mxi_probe_valid(const mx_probe_spec *s, const probe_guess *g) {
  mx_mma_model m;
  mxi_probe_model(&m, s, g);
  return mx_mma_model_check(&m, NULL) == MX_OK;
}

/* Whether two results count as different: any NaN is any other unless `exact`. */
int mxi_probe_differs(const mx_format *d, uint64_t x, uint64_t y, int exact) {
  if (x == y) return 0;
  return exact || d->kind == MX_KIND_INT || !mx_format_is_nan(d, x) || !mx_format_is_nan(d, y);
}

/* One output at a time is the faster way: there is one column only. */
static const mx_exec alone = {.n_threads = 1, .isa_mask = MX_ISA_ALL};
/* Models run side by side, each in one thread. */
static const mx_exec one_thread = {.n_threads = 1};

int mxi_probe_run(uint8_t *d, const probe_list *l, size_t first, size_t n, const probe_guess *g) {
  mx_mma_model m;
  mxi_probe_model(&m, l->spec, g);
  if (l->kept && mxi_mma_kept_run(d, l->kept, &m, first, n) == MX_OK) return 1;
  const mx_mma_args args = mxi_probe_list_args(l, first, n);
  return noted_status(mx_mma(d, &m, &args, &alone, NULL), l->lack) == MX_OK;
}

size_t mxi_probe_wrong(const probe_list *l, const probe_guess *g, size_t bound, int exact, size_t *first_wrong) {
  uint8_t d[CHUNK * 8];
  size_t wrong = 0;
  if (first_wrong) *first_wrong = SIZE_MAX;
  /* a wrong model mostly fails in the first few, if one failure is enough */
  for (size_t first = 0, n, chunk = bound ? CHUNK : CHUNK / FIRST_SMALLER; first < l->n && wrong <= bound; first += n) {
    n = l->n - first < chunk ? l->n - first : chunk;
    if (chunk < CHUNK) chunk *= 2;
    if (!mxi_probe_run(d, l, first, n, g)) return SIZE_MAX;
    if (!memcmp(d, l->d + first * l->d_bytes, n * l->d_bytes)) continue;
    for (size_t i = 0; i < n; i++)
      if (mxi_probe_differs(l->spec->d, mxi_probe_bits(d, l->d_bytes, i), mxi_probe_bits(l->d, l->d_bytes, first + i), exact)) {
        if (first_wrong && !wrong) *first_wrong = first + i;
        wrong++;
      }
  }
  return wrong;
}

/* Outputs of tiles t .. t+n-1 of a batch that g gets wrong. */
static size_t wrong_of(const probe_data *data, size_t batch, const mx_mma_model *m, size_t t, size_t n, int exact, uint8_t *d) {
  const mx_probe *p = &data->batches[batch];
  const mx_probe_spec *s = &p->spec;
  const size_t each = s->M * s->N, bytes = mx_mma_bytes(s->d, 1);
  mx_probe part = *p;
  part.T = n;
  part.a += t * s->M * p->a_bytes;
  part.b += t * s->N * p->b_bytes;
  part.c += t * each * p->c_bytes;
  part.scale_a += t * s->M * p->s_bytes;
  part.scale_b += t * s->N * p->s_bytes;
  const mx_mma_args args = mx_probe_args(&part);
  if (!(data->kept && data->kept[batch] && mxi_mma_kept_run(d, data->kept[batch], m, t, n) == MX_OK) &&
      noted_status(mx_mma(d, m, &args, &one_thread, NULL), data->lack))
    return SIZE_MAX;
  const uint8_t *want = (const uint8_t *)data->d[batch] + t * each * bytes;
  size_t wrong = 0;
  if (!memcmp(d, want, n * each * bytes)) return 0;
  for (size_t q = 0; q < n * each; q++)
    wrong += (size_t)mxi_probe_differs(s->d, mxi_probe_bits(d, bytes, q), mxi_probe_bits(want, bytes, q), exact);
  return wrong;
}

size_t mxi_probe_wrong_tiles(const probe_data *data, const probe_guess *g, int kept, size_t bound, int exact) {
  enum { STEP = 128 }; /* tiles at a time: a model that is wrong mostly shows in the first */
  size_t wrong = 0;
  int none = 0;
  for (size_t i = 0; i < data->n && wrong <= bound && !none; i++) {
    const mx_probe *p = &data->batches[i];
    const size_t T0 = kept ? p->T_fit : 0, T1 = kept ? p->T : p->T_fit, steps = (T1 - T0 + STEP - 1) / STEP;
    mx_mma_model m;
    mxi_probe_model(&m, &p->spec, g);
    /* where models run side by side already, this is one thread */
#pragma omp parallel num_threads(mx_thread_count(data->exec ? data->exec->n_threads : 0))
    {
      uint8_t *d = noted(malloc(STEP * p->spec.M * p->spec.N * mx_mma_bytes(p->spec.d, 1)), data->lack);
#pragma omp for schedule(dynamic)
      for (size_t q = 0; q < steps; q++) {
        const size_t t = T0 + q * STEP;
        size_t so_far;
#pragma omp atomic read
        so_far = wrong;
        if (so_far > bound) continue;
        const size_t more = d ? wrong_of(data, i, &m, t, T1 - t < STEP ? T1 - t : STEP, exact, d) : SIZE_MAX;
        if (more == SIZE_MAX) {
#pragma omp atomic write
          none = 1;
        } else if (more) {
#pragma omp atomic
          wrong += more;
        }
      }
      free(d);
    }
  }
  return none ? SIZE_MAX : wrong;
}
