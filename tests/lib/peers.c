/* Compares results with a library's bytes. */
#include "peers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct suite_files {
  const mx_array *x, *codes, *scales, *tensor_scale;
} suite_files;

static const mx_array *part(const mx_file *f, const char *suite, size_t n, const char *name) {
  char full[128];
  const mx_array *a;
  snprintf(full, sizeof full, "%.*s.%s", (int)n, suite, name);
  return mx_file_find(&a, f, full, NULL) ? NULL : a;
}

/* Returns the same code for every NaN of a format. */
static uint32_t fold_nan(const mx_format *f, uint32_t code) { return mx_format_is_nan(f, code) ? UINT32_MAX : code; }

static void compare_block_row(peer_count *n, const mx_tensor *t, const mx_spec *spec, const suite_files *s, size_t r, size_t bc) {
  const mx_format *elem = mx_elem_format(spec->elem), *scale = mx_scale_format(spec->scale);
  const float *x = (const float *)(const void *)s->x->data + r * t->cols;
  const uint8_t *want_codes = s->codes->data + r * t->cols, *want_scales = s->scales->data + r * t->scale_cols;
  for (size_t b = 0; b < t->scale_cols; b++) {
    const uint32_t want = fold_nan(scale, want_scales[b]), got = fold_nan(scale, t->scales[r * t->scale_cols + b]);
    n->scales += want != got;
    n->bytes++;
    if (want == UINT32_MAX) continue; /* the codes under a NaN scale are free */
    for (size_t c = b * bc; c < (b + 1) * bc && c < t->cols; c++) {
      const uint8_t *row = t->codes + r * t->code_stride;
      uint32_t w = fold_nan(elem, want_codes[c]), g = fold_nan(elem, elem->bits == 4 ? row[c / 2] >> (c % 2 * 4) & 15u : row[c]);
      if (isnan(x[c])) w &= ~(1u << (elem->bits - 1)), g &= ~(1u << (elem->bits - 1));
      n->codes += w != g;
      n->bytes++;
    }
  }
}

static int compare_suite(peer_count *n, const mx_spec *spec, const suite_files *s, peer_quantize *quantize, char why[256]) {
  const size_t rows = s->x->shape[0], cols = s->x->shape[1];
  size_t br, bc;
  mx_spec_block(spec, rows, cols, &br, &bc);
  mx_tensor t;
  if (mx_tensor_alloc(&t, rows, cols, spec)) return snprintf(why, 256, "no memory"), -1;
  float *x = malloc(s->x->n_bytes + 1);
  if (!x) abort();
  memcpy(x, s->x->data, s->x->n_bytes); /* the file promises no alignment */
  suite_files aligned = *s;
  mx_array values = *s->x;
  values.data = (const uint8_t *)x;
  aligned.x = &values;
  int rc = 0;
  const int sized = s->codes->n_values == rows * cols && s->scales->n_values == rows * t.scale_cols;
  if (!sized || quantize(&t, x, rows, cols, cols, spec, NULL, NULL))
    rc = -1, snprintf(why, 256, sized ? "quantise failed" : "sizes do not fit the preset");
  for (size_t r = 0; !rc && r < rows; r++) compare_block_row(n, &t, spec, &aligned, r, bc);
  if (!rc && s->tensor_scale) {
    float want;
    memcpy(&want, s->tensor_scale->data, sizeof want);
    n->tensor_scales += memcmp(&want, &t.tensor_scale, sizeof want) && !(isnan(want) && isnan(t.tensor_scale));
    n->bytes += 4;
  }
  n->suites++;
  mx_tensor_free(&t);
  free(x);
  return rc;
}

int peers_compare(peer_count *count, const char *path, const char *preset, peer_quantize *quantize, char why[256]) {
  mx_error err;
  mx_file *f;
  mx_spec spec;
  if (mx_preset_find(&spec, preset, &err) || mx_file_open(&f, path, &err)) return snprintf(why, 256, "%.250s", err.text), -1;
  int rc = 0;
  for (size_t i = 0; !rc && i < mx_file_count(f); i++) {
    const char *name = mx_file_at(f, i)->name, *dot = strrchr(name, '.');
    if (!dot || strcmp(dot, ".codes") || !strncmp(name, "elementwise.", 12)) continue;
    const size_t n = (size_t)(dot - name);
    const suite_files s = {part(f, name, n, "x"), mx_file_at(f, i), part(f, name, n, "scales"), part(f, name, n, "tensor_scale")};
    if (!s.x || !s.scales) continue;
    peer_count one = {0};
    rc = compare_suite(&one, &spec, &s, quantize, why);
    count->suites += one.suites;
    count->bytes += one.bytes;
    count->codes += one.codes;
    count->scales += one.scales;
    count->tensor_scales += one.tensor_scales;
    const size_t at = strlen(count->table);
    snprintf(count->table + at, sizeof count->table - at, "%s%.*s %zu/%zu", at ? ", " : "", (int)n, name, one.bytes,
             one.codes + one.scales + one.tensor_scales);
  }
  mx_file_close(f);
  return rc;
}
