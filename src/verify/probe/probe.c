/* Makes batches of probe tiles. */
#include <stdlib.h>
#include <string.h>

#include "verify/probe/probe.h"

/* How many random probes a batch has besides the designed ones, and how many tiles of random inputs are kept from the fit to test its prediction;
 * large tiles need fewer. Fewer miss rare cases; more take longer on the device and in the search. */
enum { RANDOM_PROBES = 2400, KEPT_TILES = 100, KEPT_LARGE_TILES = 24, LARGE_TILE = 8192 };

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

mx_mma_args mx_probe_args(const mx_probe *p) {
  const int scaled = p->spec.scale != NULL;
  return (mx_mma_args){p->T, p->spec.M, p->spec.N, p->spec.K, p->a, p->b, p->c, scaled ? p->scale_a : NULL, scaled ? p->scale_b : NULL};
}

mx_status mx_probe_make(mx_probe *out, const mx_probe_spec *spec, mx_error *err) {
  memset(out, 0, sizeof *out);
  mx_status status = mxi_probe_check_spec(spec, err);
  if (status) return status;
  const mx_probe_spec s = *spec;
  probe_list l, kept;
  shortage lack = {0};
  mxi_probe_list_init(&l, &s, &lack);
  mxi_probe_list_init(&kept, &s, &lack);
  mxi_probe_families(&l, 16, 1);
  mxi_probe_random(&l, 17, RANDOM_PROBES);
  const size_t side = s.M < s.N ? s.M : s.N;
  mxi_probe_random(&kept, 18, side * (s.M * s.N * s.K > LARGE_TILE ? KEPT_LARGE_TILES : KEPT_TILES));
  if (l.failed || kept.failed)
    status = mx_fail(err, MX_ERR_NOMEM, "probe: no memory");
  else
    status = mxi_probe_pack(out, &l, &kept, s.seed, err);
  mxi_probe_list_free(&l);
  mxi_probe_list_free(&kept);
  return status;
}
