/* Batches of probe tiles. */
#include <stdlib.h>
#include <string.h>

#include "verify/probe/probe.h"

const char *mx_probe_family(int family, const char **doc) {
  static const char *const names[] = {
#define MX_PROBE_FAMILY(id, name, doc, label) name,
#include "formats/probe_families.def"
#undef MX_PROBE_FAMILY
  };
  static const char *const docs[] = {
#define MX_PROBE_FAMILY(id, name, doc, label) doc,
#include "formats/probe_families.def"
#undef MX_PROBE_FAMILY
  };
  if (family < 0 || family >= PROBE_FAMILIES) return NULL;
  if (doc) *doc = docs[family];
  return names[family];
}

static mx_status check_spec(const mx_probe_spec *s, mx_error *err) {
  if (!s->a || !s->b || !s->c || !s->d) return mx_fail(err, MX_ERR_ARG, "probe: a type is missing");
  if (s->M < 1 || s->N < 1 || s->M > 256 || s->N > 256)
    return mx_fail(err, MX_ERR_ARG, "probe: tiles of %zu x %zu, 1 to 256 expected", s->M, s->N);
  if (s->K < 2 || s->K > 4096) return mx_fail(err, MX_ERR_ARG, "probe: K=%zu, 2 to 4096 expected", s->K);
  if ((s->a->bits <= 4 || s->b->bits <= 4) && s->K % 2)
    return mx_fail(err, MX_ERR_ARG, "probe: K=%zu is odd, but elements are two a byte", s->K);
  if (s->scale && (s->block < 1 || s->scale->bits > 8))
    return mx_fail(err, MX_ERR_ARG, "probe: scales are bytes, one for at least one element");
  const int ints = (s->a->kind == MX_KIND_INT && s->b->kind == MX_KIND_INT && !s->scale);
  if (s->d->kind == MX_KIND_INT ? !ints || s->c != s->d || s->d->bits != 32
                                : s->d->kind != MX_KIND_FLOAT || s->d->bits < 16 || s->d->bits == 19)
    return mx_fail(err, MX_ERR_ARG, "probe: d=%s of a=%s, b=%s and c=%s is no matrix product", s->d->name, s->a->name, s->b->name, s->c->name);
  if (s->d->kind != MX_KIND_INT && (s->c->kind != MX_KIND_FLOAT || s->c->man_bits > s->d->man_bits || s->c->exp_bits > s->d->exp_bits))
    return mx_fail(err, MX_ERR_ARG, "probe: c=%s does not widen to d=%s", s->c->name, s->d->name);
  if (s->a->kind == MX_KIND_NONE || s->b->kind == MX_KIND_NONE || s->a->kind == MX_KIND_EXP || s->b->kind == MX_KIND_EXP)
    return mx_fail(err, MX_ERR_ARG, "probe: a=%s, b=%s are no elements", s->a->name, s->b->name);
  return MX_OK;
}

mx_status mx_probe_alloc(mx_probe *out, const mx_probe_spec *s, size_t T, size_t T_fit, mx_error *err) {
  memset(out, 0, sizeof *out);
  mx_status status = check_spec(s, err);
  if (status) return status;
  if (T > (UINT64_C(1) << 24) || T_fit > T) return mx_fail(err, MX_ERR_ARG, "probe: %zu tiles, %zu of them to be fitted", T, T_fit);
  probe_list l;
  mxi_probe_list_init(&l, s);
  const size_t side = s->M < s->N ? s->M : s->N;
  *out = (mx_probe){.spec = *s,
                    .T = T,
                    .T_fit = T_fit,
                    .n = T_fit * side,
                    .a_bytes = l.a_bytes,
                    .b_bytes = l.b_bytes,
                    .c_bytes = l.c_bytes,
                    .s_bytes = l.s_bytes};
  out->a = calloc(T * s->M + 1, l.a_bytes + 1);
  out->b = calloc(T * s->N + 1, l.b_bytes + 1);
  out->c = calloc(T * s->M * s->N + 1, l.c_bytes);
  out->scale_a = calloc(T * s->M + 1, l.s_bytes + 1);
  out->scale_b = calloc(T * s->N + 1, l.s_bytes + 1);
  out->labels = calloc(out->n + 1, sizeof *out->labels);
  if (out->a && out->b && out->c && out->scale_a && out->scale_b && out->labels) return MX_OK;
  mx_probe_free(out);
  return mx_fail(err, MX_ERR_NOMEM, "probe: no memory for %zu tiles", T);
}

void mx_probe_free(mx_probe *p) {
  void *all[] = {p->a, p->b, p->c, p->scale_a, p->scale_b, p->labels};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  memset(p, 0, sizeof *p);
}

mx_mma_args mx_probe_args(const mx_probe *p) {
  const int scaled = p->spec.scale != NULL;
  return (mx_mma_args){p->T, p->spec.M, p->spec.N, p->spec.K, p->a, p->b, p->c, scaled ? p->scale_a : NULL, scaled ? p->scale_b : NULL};
}

mx_status mx_probe_make(mx_probe *out, const mx_probe_spec *spec, mx_error *err) {
  memset(out, 0, sizeof *out);
  mx_status status = check_spec(spec, err);
  if (status) return status;
  const mx_probe_spec s = *spec;
  probe_list l, kept;
  mxi_probe_list_init(&l, &s);
  mxi_probe_list_init(&kept, &s);
  mxi_probe_families(&l, 16, 1);
  mxi_probe_random(&l, 17, 2400);
  const size_t side = s.M < s.N ? s.M : s.N;
  mxi_probe_random(&kept, 18, side * (s.M * s.N * s.K > 8192 ? 24 : 100));
  if (l.failed || kept.failed)
    status = mx_fail(err, MX_ERR_NOMEM, "probe: no memory");
  else
    status = mxi_probe_pack(out, &l, &kept, s.seed, err);
  mxi_probe_list_free(&l);
  mxi_probe_list_free(&kept);
  return status;
}
