/* Remembers, in memory of each thread, which elements of a block were found wrong under a scale. */
#include "verify/trial/memo.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 1 << 14, SETS = 8 };

typedef struct table {
  size_t against[SETS];
  memo_entry at[ENTRIES];
} table;

struct memo {
  int n_threads;
  table *of[]; /* a thread's first use makes its table */
};

memo *mxi_memo_new(int n_threads) {
  memo *m = calloc(1, sizeof *m + (size_t)n_threads * sizeof *m->of);
  if (m) m->n_threads = n_threads;
  return m;
}

void mxi_memo_free(memo *m) {
  for (int i = 0; m && i < m->n_threads; i++) free(m->of[i]);
  free(m);
}

static table *mine(memo *m) {
  const int me = omp_get_thread_num();
  if (!m || me >= m->n_threads) return NULL;
  if (!m->of[me]) m->of[me] = calloc(1, sizeof **m->of);
  return m->of[me];
}

memo_entry *mxi_memo_at(memo *m, uint64_t key) {
  table *t = mine(m);
  return t ? &t->at[key >> 40 & (ENTRIES - 1)] : NULL;
}

size_t *mxi_memo_against(memo *m, const void *set) {
  table *t = mine(m);
  return t ? &t->against[mxi_hash_with((uintptr_t)set, 0) >> 40 & (SETS - 1)] : NULL;
}

static uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static uint64_t pair(uint32_t a, uint32_t b) { return (uint64_t)a << 32 | b; }

uint64_t mxi_memo_key_of_plan(const mx_plan *p) {
  const mx_spec *s = &p->spec;
  const mx_encoding *e = &p->encode;
  uint64_t key = pair((uint32_t)e->round << 24 | (uint32_t)e->nan << 8 | (uint32_t)e->inf, (uint32_t)e->sr_mode << 8 | (uint32_t)e->sr_bits);
  key = mxi_hash_with(key, pair(e->nan_code, e->inf_code));
  key =
      mxi_hash_with(key, pair((uint32_t)s->elem_arith << 24 | (uint32_t)s->scale_form << 16 | (uint32_t)s->flush << 8 | (uint32_t)s->sr_source,
                              (uint32_t)s->elem << 16 | (uint32_t)s->chain << 8 | (uint32_t)s->input_dtype));
  key = mxi_hash_with(key, bits_of((double)s->elem_prescale));
  key = mxi_hash_with(key, s->seed);
  key = mxi_hash_with(key, bits_of(p->norm));
  return mxi_hash_with(key, bits_of(p->g));
}

uint64_t mxi_memo_key_of_scale(uint64_t key, const mx_plan *p, const mx_block_scale *s) {
  key = mxi_hash_with(key, (uint64_t)s->how);
  key = mxi_hash_with(key, bits_of(s->used));
  if (s->how != MX_BY_CHAIN) return key;
  key = mxi_hash_with(key, bits_of((double)s->sf));
  for (int i = 0; i < p->chain->element.n; i++) key = mxi_hash_with(key, bits_of((double)s->factor[i]));
  for (int i = 0; i < p->chain->again.n; i++) key = mxi_hash_with(key, bits_of((double)s->again[i]));
  return key;
}

uint64_t mxi_memo_key_of_seen(uint64_t key, const mx_plan *p, unsigned sees) {
  const mx_encoding *e = &p->encode;
  const uint32_t zero = sees & MEMO_ZERO ? (uint32_t)e->zero_sign + 4 : sees & MEMO_TO_ZERO ? 1 + (e->zero_sign == MX_ZERO_SIGN_DROP_ALL) : 0;
  const uint32_t beyond = sees & MEMO_BEYOND ? 1 + ((uint32_t)e->overflow << 8 | (uint32_t)e->saturate_to << 4) : 0;
  return mxi_hash_with(key, pair(zero << 8 | (sees & MEMO_ALL), beyond));
}
