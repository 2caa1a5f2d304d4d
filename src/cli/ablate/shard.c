/* Measures a share of the tensors into a state that several calls, or the ranks of an MPI job, have in common. What all of them measured is a call's without a share to
 * report: it finds every pair in the state, so that its figures are those of one call alone. */
#include <stdio.h>
#include <stdlib.h>

#include "ablate.h"
#include "cli/base/out.h"
#include "cli/base/ranks.h"

static size_t values_of(const ablate_tensor *t) { return t->rows * t->cols; }

static int larger_first(const void *a, const void *b) {
  const ablate_tensor *x = *(const ablate_tensor *const *)a, *y = *(const ablate_tensor *const *)b;
  const size_t m = values_of(x), n = values_of(y);
  return m != n ? (m < n) - (m > n) : (x > y) - (x < y);
}

/* Each tensor, the largest first, is the share's that has least so far: every call comes to the same shares by itself. */
static int choose(ablate_tensors *own, const ablate_tensors *all, size_t shard, size_t shards) {
  const ablate_tensor **order = malloc((all->n + 1) * sizeof *order);
  size_t *load = calloc(shards, sizeof *load);
  own->at = malloc((all->n + 1) * sizeof *own->at);
  if (!order || !load || !own->at) {
    free(order);
    free(load);
    return cli_error("out of memory");
  }
  for (size_t i = 0; i < all->n; i++) order[i] = &all->at[i];
  qsort(order, all->n, sizeof(ablate_tensor *), larger_first);
  for (size_t i = 0; i < all->n; i++) {
    size_t least = 0;
    for (size_t k = 1; k < shards; k++)
      if (load[k] < load[least]) least = k;
    load[least] += values_of(order[i]);
    if (least == shard) own->at[own->n++] = *order[i];
  }
  free(order);
  free(load);
  return CLI_FINE;
}

/* What a share came to. */
typedef struct told {
  size_t tensors, pairs, found; /* found: pairs that the state had */
} told;

static int measure(told *t, const cli_context *ctx, const ablate_tensors *tensors, const ablate_specs *specs, const ablate_sweep_options *o,
                   size_t shard, size_t shards) {
  ablate_tensors own = {0}; /* names and files stay those of tensors */
  ablate_result result = {0};
  ablate_sweep_options how = *o;
  how.only_measure = 1;
  int rc = ablate_state_folder(o->state);
  if (!rc) rc = choose(&own, tensors, shard, shards);
  if (!rc && own.n) rc = ablate_sweep(&result, ctx, &own, specs, &how);
  *t = (told){own.n, own.n * specs->n, result.found};
  ablate_result_free(&result);
  free(own.at);
  return rc;
}

int ablate_shard(const cli_context *ctx, const ablate_tensors *tensors, const ablate_specs *specs, const ablate_sweep_options *o, size_t shard,
                 size_t shards, int json) {
  told t;
  char share[64];
  const int rc = measure(&t, ctx, tensors, specs, o, shard, shards);
  if (rc) return rc;
  snprintf(share, sizeof share, "%zu/%zu", shard, shards);
  out *p = out_new();
  out_text(p, "state", o->state);
  out_text(p, "shard", share);
  out_u64(p, "tensors", tensors->n);
  out_u64(p, json ? "tensors_of_shard" : "tensors of the shard", t.tensors);
  out_u64(p, "measurements", t.pairs);
  out_u64(p, json ? "done_before" : "done by an earlier call", t.found);
  return out_print(p, json);
}

int ablate_by_ranks(const cli_context *ctx, const ablate_tensors *tensors, const ablate_specs *specs, const ablate_sweep_options *o, int rank,
                    int ranks) {
  told t;
  const int rc = measure(&t, ctx, tensors, specs, o, (size_t)rank, (size_t)ranks);
  if (rc)
    ranks_give_up(rc);
  else
    ranks_meet();
  return rc;
}
