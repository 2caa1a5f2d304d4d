/* Holds lists of probes, and reads the numbers of a probe. */
#include <stdlib.h>
#include <string.h>

#include "verify/probe/probe.h"

void mxi_probe_list_init(probe_list *l, const mx_probe_spec *s, shortage *lack) {
  memset(l, 0, sizeof *l);
  l->lack = lack;
  l->spec = s;
  l->a_bytes = mx_mma_bytes(s->a, s->K);
  l->b_bytes = mx_mma_bytes(s->b, s->K);
  l->c_bytes = mx_mma_bytes(s->c, 1);
  l->d_bytes = mx_mma_bytes(s->d, 1);
  l->s_bytes = s->scale ? (s->K + (size_t)s->block - 1) / (size_t)s->block : 0;
}

void mxi_probe_list_free(probe_list *l) {
  void *all[] = {l->a, l->b, l->c, l->scale_a, l->scale_b, l->d, l->labels};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  l->a = l->b = l->c = l->scale_a = l->scale_b = l->d = NULL;
  l->labels = NULL;
  l->n = l->room = 0;
  mxi_mma_kept_free(l->kept);
  l->kept = NULL;
}

void mxi_probe_list_keep(probe_list *l) {
  const mx_probe_spec *s = l->spec;
  const mx_mma_model types = {.a = s->a, .b = s->b, .c = s->c, .d = s->d, .scale = s->scale, .block = s->scale ? s->block : 0};
  const mx_mma_args args = mxi_probe_list_args(l, 0, l->n);
  mxi_mma_kept_free(l->kept);
  l->kept = l->failed || !l->n ? NULL : mxi_mma_kept_new(&types, &args);
}

static int grow(void **p, size_t room, size_t bytes) {
  void *q = realloc(*p, room * bytes + 1);
  if (q) *p = q;
  return q != NULL;
}

size_t mxi_probe_list_add(probe_list *l, const int32_t label[MX_PROBE_LABELS]) {
  mxi_mma_kept_free(l->kept);
  l->kept = NULL;
  if (l->n == l->room) {
    size_t room = l->room ? 2 * l->room : 1024;
    int ok = grow((void **)&l->a, room, l->a_bytes) && grow((void **)&l->b, room, l->b_bytes) && grow((void **)&l->c, room, l->c_bytes) &&
             grow((void **)&l->scale_a, room, l->s_bytes) && grow((void **)&l->scale_b, room, l->s_bytes) &&
             grow((void **)&l->d, room, l->d_bytes) && grow((void **)&l->labels, room, sizeof *l->labels);
    if (!ok) {
      l->failed = 1;
      shortage_of_memory(l->lack);
      return SIZE_MAX;
    }
    l->room = room;
  }
  size_t i = l->n++;
  memset(l->a + i * l->a_bytes, 0, l->a_bytes);
  memset(l->b + i * l->b_bytes, 0, l->b_bytes);
  memset(l->c + i * l->c_bytes, 0, l->c_bytes);
  memset(l->d + i * l->d_bytes, 0, l->d_bytes);
  memset(l->scale_a + i * l->s_bytes, 0, l->s_bytes);
  memset(l->scale_b + i * l->s_bytes, 0, l->s_bytes);
  memcpy(l->labels[i], label, sizeof l->labels[i]);
  return i;
}

void mxi_probe_list_copy(probe_list *l, const probe_list *from, size_t i) {
  size_t at = mxi_probe_list_add(l, from->labels[i]);
  if (at == SIZE_MAX) return;
  memcpy(l->a + at * l->a_bytes, from->a + i * l->a_bytes, l->a_bytes);
  memcpy(l->b + at * l->b_bytes, from->b + i * l->b_bytes, l->b_bytes);
  memcpy(l->c + at * l->c_bytes, from->c + i * l->c_bytes, l->c_bytes);
  memcpy(l->d + at * l->d_bytes, from->d + i * l->d_bytes, l->d_bytes);
  memcpy(l->scale_a + at * l->s_bytes, from->scale_a + i * l->s_bytes, l->s_bytes);
  memcpy(l->scale_b + at * l->s_bytes, from->scale_b + i * l->s_bytes, l->s_bytes);
}

mx_mma_args mxi_probe_list_args(const probe_list *l, size_t first, size_t n) {
  const int scaled = l->spec->scale != NULL;
  return (mx_mma_args){n,
                       1,
                       1,
                       l->spec->K,
                       l->a + first * l->a_bytes,
                       l->b + first * l->b_bytes,
                       l->c + first * l->c_bytes,
                       scaled ? l->scale_a + first * l->s_bytes : NULL,
                       scaled ? l->scale_b + first * l->s_bytes : NULL};
}

uint64_t mxi_probe_bits(const uint8_t *d, size_t bytes, size_t i) {
  uint64_t bits = 0;
  for (size_t q = 0; q < bytes; q++) bits |= (uint64_t)d[i * bytes + q] << 8 * q;
  return bits;
}

uint64_t mxi_probe_code(const mx_format *f, const uint8_t *row, size_t k) {
  if (f->bits <= 4) return row[k / 2] >> (k % 2 * 4) & 15;
  const uint64_t code = mxi_probe_bits(row, mx_mma_bytes(f, 1), k);
  return f->bits == 19 ? code >> 13 : f->bits < 64 ? code & ((UINT64_C(1) << f->bits) - 1) : code;
}
