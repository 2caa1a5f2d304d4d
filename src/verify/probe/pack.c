/* Allocates the memory of a probe, and lays lists of products out in its tiles. */
#include <stdlib.h>
#include <string.h>

#include "verify/probe/probe.h"

mx_status mxi_probe_check_spec(const mx_probe_spec *s, mx_error *err) {
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
    return mx_fail(err, MX_ERR_ARG, "probe: d=%s of a=%s, b=%s and c=%s is not a matrix product", s->d->name, s->a->name, s->b->name,
                   s->c->name);
  if (s->d->kind != MX_KIND_INT && (s->c->kind != MX_KIND_FLOAT || s->c->man_bits > s->d->man_bits || s->c->exp_bits > s->d->exp_bits))
    return mx_fail(err, MX_ERR_ARG, "probe: c=%s does not widen to d=%s", s->c->name, s->d->name);
  if (s->a->kind == MX_KIND_NONE || s->b->kind == MX_KIND_NONE || s->a->kind == MX_KIND_EXP || s->b->kind == MX_KIND_EXP)
    return mx_fail(err, MX_ERR_ARG, "probe: a=%s, b=%s are not elements", s->a->name, s->b->name);
  return MX_OK;
}

mx_status mx_probe_alloc(mx_probe *out, const mx_probe_spec *s, size_t T, size_t T_fit, mx_error *err) {
  memset(out, 0, sizeof *out);
  mx_status status = mxi_probe_check_spec(s, err);
  if (status) return status;
  if (T > (UINT64_C(1) << 24) || T_fit > T) return mx_fail(err, MX_ERR_ARG, "probe: %zu tiles, %zu of them to be fitted", T, T_fit);
  probe_list l; /* its sizes alone: it gets no memory */
  shortage none = {0};
  mxi_probe_list_init(&l, s, &none);
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

/* Tile t takes probes first .. first+n-1: to its diagonal, and to the rows and columns beyond it again from the start. C beside the diagonal is
 * that of any probe of the tile. */
static void fill_tile(mx_probe *out, size_t t, const probe_list *l, size_t first, size_t n) {
  const mx_probe_spec *s = &out->spec;
  for (size_t i = 0; i < s->M; i++) {
    const size_t from = first + i % n, at = t * s->M + i;
    memcpy(out->a + at * out->a_bytes, l->a + from * l->a_bytes, l->a_bytes);
    if (s->scale) memcpy(out->scale_a + at * out->s_bytes, l->scale_a + from * l->s_bytes, l->s_bytes);
  }
  for (size_t j = 0; j < s->N; j++) {
    const size_t from = first + j % n, at = t * s->N + j;
    memcpy(out->b + at * out->b_bytes, l->b + from * l->b_bytes, l->b_bytes);
    if (s->scale) memcpy(out->scale_b + at * out->s_bytes, l->scale_b + from * l->s_bytes, l->s_bytes);
  }
  for (size_t i = 0; i < s->M; i++)
    for (size_t j = 0; j < s->N; j++) {
      const size_t from = first + (i == j ? i % n : (i * 7 + j * 3 + t) % n);
      memcpy(out->c + ((t * s->M + i) * s->N + j) * out->c_bytes, l->c + from * l->c_bytes, l->c_bytes);
    }
}

mx_status mxi_probe_pack(mx_probe *out, const probe_list *l, const probe_list *rest, uint64_t seed, mx_error *err) {
  const mx_probe_spec *s = l->spec;
  const size_t side = s->M < s->N ? s->M : s->N, fit = (l->n + side - 1) / side, kept = rest ? rest->n / side : 0;
  mx_status status = mx_probe_alloc(out, s, fit + kept, fit, err);
  if (status) return status;
  out->spec.seed = seed;
  for (size_t t = 0; t < fit; t++) {
    const size_t n = l->n - t * side < side ? l->n - t * side : side;
    fill_tile(out, t, l, t * side, n);
    for (size_t i = 0; i < side; i++) memcpy(out->labels[t * side + i], l->labels[t * side + i % n], sizeof *out->labels);
  }
  for (size_t t = 0; t < kept; t++) fill_tile(out, fit + t, rest, t * side, side);
  return MX_OK;
}
