/* Writes the digests of golden/HASHES and the small vectors of golden/vectors, using only the reference model (make golden, make golden-check).
 *
 *   golden DIR     writes DIR/HASHES and DIR/vectors/PRESET.mxv; the check writes to another folder and compares
 * A line of HASHES is never changed: a corrected vector gets a new name, and each line has the version that added it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/oracles.h"
#include "lib/products.h"
#include "lib/units.h"
#include "mxgold/vector.h"

enum { LINE = 160, VECTOR_CASES = 24 };

static void die(const char *what, const char *where) {
  fprintf(stderr, "golden: %s: %s\n", where, what);
  exit(2);
}

typedef struct lines {
  char (*line)[LINE];
  size_t n;
} lines;

static void add_line(lines *l, const char *operation, const char *preset, const char *inputs, const void *data, size_t n) {
  char digest[33];
  mx_digest(digest, data, n);
  l->line = realloc(l->line, (l->n + 1) * sizeof *l->line);
  if (!l->line) die("no memory", preset);
  snprintf(l->line[l->n++], LINE, "%s %s %s %s %s", digest, operation, preset, inputs, MX_VERSION);
}

static void add(lines *l, const char *operation, const char *preset, suite s, const void *data, size_t n) {
  add_line(l, operation, preset, suite_name(s), data, n);
}

static void add_product(void *to, const char *operation, const char *mix, const char *inputs, const void *d, size_t n) {
  add_line(to, operation, mix, inputs, d, n);
}

/* Codes, scales, micro-scales and tensor scale one after the other. */
static uint8_t *bytes_of(size_t *n, const mx_tensor *t) {
  const size_t codes = t->rows * t->code_stride, scales = t->scale_rows * t->scale_cols;
  uint8_t *all = malloc(codes + scales * (t->scale_bytes + 3) + 4), *at = all;
  if (!all) die("no memory", "digest");
  memcpy(at, t->codes, codes), at += codes;
  memcpy(at, t->scales, scales * t->scale_bytes), at += scales * t->scale_bytes;
  if (t->micro) memcpy(at, t->micro, scales * 3), at += scales * 3;
  if (t->has_tensor_scale) memcpy(at, &t->tensor_scale, 4), at += 4;
  *n = (size_t)(at - all);
  return all;
}

static void one_suite(lines *l, const char *preset, const mx_spec *spec, suite s) {
  size_t rows, cols, n;
  float *x = suite_make(&rows, &cols, s, spec, &oracle_ref);
  mx_tensor t;
  if (mx_tensor_alloc(&t, rows, cols, spec)) die("no memory", preset);
  const mx_status status = ref_quantize(&t, x, rows, cols, cols, spec, NULL, NULL);
  if (status == MX_ERR_DATA) { /* the preset refuses NaN, and that is its golden answer */
    add(l, "quantize", preset, s, "refused", 7);
  } else {
    if (status) die(mx_status_text(status), preset);
    uint8_t *all = bytes_of(&n, &t);
    add(l, "quantize", preset, s, all, n);
    free(all);
    float *y = calloc(rows * cols + 1, sizeof *y);
    if (!y || ref_dequantize(y, cols, &t, spec, NULL)) die("dequantise failed", preset);
    add(l, "dequantize", preset, s, y, rows * cols * sizeof *y);
    free(y);
  }
  mx_tensor_free(&t);
  free(x);
}

/* The values of a preset's codes under the other orders of SPEC 3.7, such as "dequantize:two_step", for presets with a tensor scale. */
static void other_orders(lines *l, const char *preset, const mx_spec *own) {
  static const suite from[] = {SUITE_RANDOM, SUITE_SPECIAL, SUITE_NONFINITE};
  for (int order = 1; own->tensor_norm && order < MX_DEQ_ARITH_COUNT; order++)
    for (size_t k = 0; k < sizeof from / sizeof *from; k++) {
      mx_spec spec = *own;
      spec.deq_arith = order;
      size_t rows, cols;
      char operation[48];
      snprintf(operation, sizeof operation, "dequantize:%s", order == MX_DEQ_ARITH_TWO_STEP ? "two_step" : "scale_first");
      float *x = suite_make(&rows, &cols, from[k], own, &oracle_ref), *y = calloc(rows * cols + 1, sizeof *y);
      mx_tensor t;
      if (!y || mx_tensor_alloc(&t, rows, cols, &spec)) die("no memory", preset);
      if (!ref_quantize(&t, x, rows, cols, cols, own, NULL, NULL)) {
        if (ref_dequantize(y, cols, &t, &spec, NULL)) die("dequantise failed", preset);
        add(l, operation, preset, from[k], y, rows * cols * sizeof *y);
      }
      mx_tensor_free(&t);
      free(x);
      free(y);
    }
}

/* A few rows of one block each, with ties, boundaries and special values: readable, and enough to distinguish most rules. */
static void vector_file(const char *path, const char *preset, const mx_spec *spec) {
  static const suite from[] = {SUITE_RANDOM, SUITE_TIES, SUITE_BOUNDARY, SUITE_SPECIAL};
  size_t br, bc;
  mx_spec_block(spec, 1, 32, &br, &bc);
  const size_t rows = br > 1 ? br : VECTOR_CASES;
  float *x = calloc(rows * bc, sizeof *x);
  if (!x) die("no memory", path);
  for (size_t r = 0; r < rows; r++) {
    size_t n, cols;
    float *s = suite_make(&n, &cols, from[r % 4], spec, &oracle_ref);
    memcpy(x + r * bc, s + (br > 1 ? r : r / 4) * cols, bc * sizeof *x);
    free(s);
  }
  mx_tensor t;
  if (mx_tensor_alloc(&t, rows, bc, spec) || ref_quantize(&t, x, rows, bc, bc, spec, NULL, NULL)) die("quantise failed", path);
  const mx_format *elem = mx_elem_format(spec->elem), *scale = mx_scale_format(spec->scale);
  mx_vectors v = {0};
  char text[4096];
  mx_error err;
  mx_spec_print(text, sizeof text, spec, 1);
  static const char *const later[] = {" had.signs=0", " scale.margin=0", " eden.group=0", " hif4.ties=half_up"};
  for (size_t i = 0; i < sizeof later / sizeof *later; i++) { /* keys that are newer than the vectors, whose text stays as it was */
    char *at = strstr(text, later[i]);
    if (at) memmove(at, at + strlen(later[i]), strlen(at + strlen(later[i])) + 1);
  }
  mx_status bad = mx_vectors_set_meta(&v, "spec", text) || mx_vectors_set_meta(&v, "preset", preset) ||
                  mx_vectors_set_meta(&v, "version", MX_VERSION) || mx_vectors_set_meta(&v, "generator", "make golden, reference model");
  if (t.has_tensor_scale) {
    snprintf(text, sizeof text, "%.9g", (double)t.tensor_scale);
    bad = bad || mx_vectors_set_meta(&v, "tensor_scale", text) || mx_vectors_set_meta(&v, "tensor_store", mx_tensor_store_name(spec));
  }
  bad = bad || mx_vectors_add_column(&v, "input", 32, bc) || mx_vectors_add_column(&v, "codes", elem->bits, bc) ||
        mx_vectors_add_column(&v, "scale", scale->bits, 1) || (t.micro && mx_vectors_add_column(&v, "micro", 8, 3)) ||
        mx_vectors_alloc(&v, rows);
  if (bad) die("cannot make a vector file", path);
  for (size_t r = 0; r < rows; r++) {
    for (size_t c = 0; c < bc; c++) {
      uint32_t bits;
      memcpy(&bits, x + r * bc + c, sizeof bits);
      mx_vectors_set(&v, 0, r, c, bits);
      const uint8_t *row = t.codes + r * t.code_stride;
      mx_vectors_set(&v, 1, r, c, elem->bits == 4 ? row[c / 2] >> (c % 2 * 4) & 15u : row[c]);
    }
    uint32_t code = 0;
    memcpy(&code, t.scales + r * t.scale_bytes, t.scale_bytes);
    mx_vectors_set(&v, 2, r, 0, code);
    if (t.micro)
      for (size_t i = 0; i < 3; i++) mx_vectors_set(&v, 3, r, i, t.micro[r * 3 + i]);
  }
  if (mx_vectors_save(&v, path, &err)) die(err.text, path);
  mx_vectors_free(&v);
  mx_tensor_free(&t);
  free(x);
}

static void make(const char *dir) {
  char path[512];
  lines all = {0};
  for (size_t i = 0; i < mx_preset_count(); i++) {
    const mx_preset *p = mx_preset_at(i);
    if (p->alias_of) continue;
    mx_spec spec;
    mx_error err;
    if (mx_preset_find(&spec, p->name, &err)) die(err.text, p->name);
    for (int s = 0; s < SUITE_COUNT; s++) one_suite(&all, p->name, &spec, (suite)s);
    snprintf(path, sizeof path, "%s/vectors/%s.mxv", dir, p->name);
    vector_file(path, p->name, &spec);
  }
  products_each(add_product, &all);
  static const unit_ops by_ref = {ref_encode, ref_decode, ref_hadamard, ref_layout_size, ref_layout_pack};
  units_each(add_product, &all, &by_ref);
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec spec;
    if (!mx_preset_at(i)->alias_of && !mx_preset_find(&spec, mx_preset_at(i)->name, NULL)) other_orders(&all, mx_preset_at(i)->name, &spec);
  }
  snprintf(path, sizeof path, "%s/HASHES", dir);
  FILE *f = fopen(path, "w");
  if (!f) die("cannot be written", path);
  for (size_t i = 0; i < all.n; i++) fprintf(f, "%s\n", all.line[i]);
  if (fclose(f)) die("cannot be written", path);
  printf("golden: %zu digests, %zu presets\n", all.n, mx_preset_count());
  free(all.line);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: golden DIR     writes DIR/HASHES and DIR/vectors/*.mxv\n");
    return 2;
  }
  char vectors[512];
  snprintf(vectors, sizeof vectors, "%s/vectors", argv[1]);
  mkdir(argv[1], 0777);
  mkdir(vectors, 0777);
  make(argv[1]);
  return 0;
}
