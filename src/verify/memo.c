#include "verify/memo.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 1 << 14 };

struct memo {
  int n_threads;
  memo_entry *of[]; /* a thread's first use makes its table */
};

memo *memo_new(int n_threads) {
  memo *m = calloc(1, sizeof *m + (size_t)n_threads * sizeof *m->of);
  if (m) m->n_threads = n_threads;
  return m;
}

void memo_free(memo *m) {
  for (int i = 0; m && i < m->n_threads; i++) free(m->of[i]);
  free(m);
}

memo_entry *memo_at(memo *m, uint64_t key) {
  const int me = omp_get_thread_num();
  if (!m || me >= m->n_threads) return NULL;
  if (!m->of[me]) m->of[me] = calloc(ENTRIES, sizeof **m->of);
  return m->of[me] ? &m->of[me][key >> 40 & (ENTRIES - 1)] : NULL;
}

static uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static uint64_t pair(uint32_t a, uint32_t b) { return (uint64_t)a << 32 | b; }

uint64_t memo_key_of_plan(const mx_plan *p) {
  const mx_spec *s = &p->spec;
  const mx_encoding *e = &p->encode;
  uint64_t key = pair((uint32_t)e->round << 24 | (uint32_t)e->overflow << 16 | (uint32_t)e->saturate_to << 8 | (uint32_t)e->nan,
                      (uint32_t)e->inf << 24 | (uint32_t)e->zero_sign << 16 | (uint32_t)e->sr_mode << 8 | (uint32_t)e->sr_bits);
  key = memo_mix(key, pair(e->nan_code, e->inf_code));
  key = memo_mix(key, pair((uint32_t)s->elem_arith << 24 | (uint32_t)s->scale_form << 16 | (uint32_t)s->flush << 8 | (uint32_t)s->sr_source,
                           (uint32_t)s->chain << 8 | (uint32_t)s->input_dtype));
  key = memo_mix(key, bits_of((double)s->elem_prescale));
  key = memo_mix(key, s->seed);
  key = memo_mix(key, bits_of(p->norm));
  return memo_mix(key, bits_of(p->g));
}

uint64_t memo_key_of_scale(uint64_t key, const mx_plan *p, const mx_block_scale *s) {
  key = memo_mix(key, (uint64_t)s->how);
  key = memo_mix(key, bits_of(s->used));
  if (s->how != MX_BY_CHAIN) return key;
  key = memo_mix(key, bits_of((double)s->sf));
  for (int i = 0; i < p->chain.element.n; i++) key = memo_mix(key, bits_of((double)s->factor[i]));
  for (int i = 0; i < p->chain.again.n; i++) key = memo_mix(key, bits_of((double)s->again[i]));
  return key;
}
