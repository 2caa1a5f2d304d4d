/* Reads the loss that a run had after a part of its steps from its metrics.jsonl. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "sweep/internal.h"

/* Losses that are averaged: the last twentieth, as mxgold report smooths. */
enum { SMOOTH_SHARE = 20 };

uint64_t mxi_rung_steps(double share, uint64_t steps) {
  const uint64_t part = (uint64_t)ceil(share * (double)steps);
  return part ? part : 1;
}

mx_status mxi_rung_read(mxi_rung *g, const char *run, mx_error *err) {
  char path[4224];
  snprintf(path, sizeof path, "%s/metrics.jsonl", run);
  FILE *f = fopen(path, "r");
  if (!f) return mx_fail(err, MX_ERR_IO, "%s: %s", path, strerror(errno));
  const uint64_t window = g->steps / SMOOTH_SHARE ? g->steps / SMOOTH_SHARE : 1;
  char *line = NULL;
  size_t size = 0;
  double sum = 0;
  uint64_t step = 0;
  for (ssize_t n; step < g->steps && (n = getline(&line, &size, f)) > 0; step++) {
    if (step + window < g->steps) continue;
    json_t *o = json_loadb(line, (size_t)n, 0, NULL);
    const json_t *loss = json_object_get(o, "loss");
    sum += json_is_number(loss) ? json_number_value(loss) : NAN;
    json_decref(o);
  }
  free(line);
  fclose(f);
  g->loss = step == g->steps ? sum / (double)window : NAN;
  return MX_OK;
}
