/* Compares the kernels of this machine with golden/HASHES, which ref/ wrote, float32 functions and products with tests/lib/math_digests.h, and
 * then every operation with the scalar code.
 *
 *   isa_digests HASHES     compares all its `quantize`, `dequantize` and `dequantize:ORDER` lines; 1 if one differs or is missing
 *
 * It needs no library but the C library (the digest is in xxhash's header), so that it runs natively and, cross-compiled, under an emulator. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/checkasm.h"
#include "lib/math_inputs.h"
#include "lib/suites.h"
#include "mxgold/file.h"
#include "mxgold/isa.h"

enum { LINE = 160 };

static const suite_oracle library = {mx_quantize, mx_dequantize};

typedef struct hashes {
  char (*line)[LINE]; /* "DIGEST OPERATION PRESET SUITE VERSION" */
  size_t n, held, differ;
} hashes;

static void read_hashes(hashes *h, const char *path) {
  FILE *f = fopen(path, "r");
  char line[LINE];
  if (!f) {
    fprintf(stderr, "isa_digests: %s cannot be read\n", path);
    exit(2);
  }
  while (fgets(line, sizeof line, f)) {
    h->line = realloc(h->line, (h->n + 1) * sizeof *h->line);
    if (!h->line) exit(2);
    memcpy(h->line[h->n++], line, LINE);
  }
  fclose(f);
}

static void hold(hashes *h, const char *operation, const char *preset, const char *suite_text, const void *data, size_t n) {
  char digest[33], rest[LINE];
  mx_digest(digest, data, n);
  const int length = snprintf(rest, sizeof rest, " %s %s %s ", operation, preset, suite_text);
  for (size_t i = 0; i < h->n; i++)
    if (!strncmp(h->line[i] + 32, rest, (size_t)length)) {
      h->held++;
      if (!strncmp(h->line[i], digest, 32)) return;
      printf("%s%sdiffers: %s\n", h->line[i], rest, digest);
      h->differ++;
      return;
    }
  printf("no line for%s\n", rest);
  h->differ++;
}

static void one_suite(hashes *h, const char *preset, const mx_spec *spec, suite s) {
  size_t rows, cols;
  float *x = suite_make(&rows, &cols, s, spec, &library);
  mx_tensor t;
  if (mx_tensor_alloc(&t, rows, cols, spec)) exit(2);
  const size_t codes = t.rows * t.code_stride, scales = t.scale_rows * t.scale_cols;
  uint8_t *all = malloc(codes + scales * (t.scale_bytes + 3) + 4), *at = all;
  float *y = calloc(rows * cols + 1, sizeof *y);
  if (!all || !y) exit(2);
  if (mx_quantize(&t, x, rows, cols, cols, spec, NULL, NULL))
    hold(h, "quantize", preset, suite_name(s), "refused", 7);
  else {
    memcpy(at, t.codes, codes), at += codes;
    memcpy(at, t.scales, scales * t.scale_bytes), at += scales * t.scale_bytes;
    if (t.micro) memcpy(at, t.micro, scales * 3), at += scales * 3;
    if (t.has_tensor_scale) memcpy(at, &t.tensor_scale, 4), at += 4;
    hold(h, "quantize", preset, suite_name(s), all, (size_t)(at - all));
    mx_dequantize(y, cols, &t, spec, NULL);
    hold(h, "dequantize", preset, suite_name(s), y, rows * cols * sizeof *y);
    for (int order = 1; spec->tensor_norm && (s == SUITE_RANDOM || s == SUITE_SPECIAL || s == SUITE_NONFINITE) && order < MX_DEQ_ARITH_COUNT;
         order++) {
      mx_spec other = *spec;
      other.deq_arith = order;
      mx_dequantize(y, cols, &t, &other, NULL);
      hold(h, order == MX_DEQ_ARITH_TWO_STEP ? "dequantize:two_step" : "dequantize:scale_first", preset, suite_name(s), y,
           rows * cols * sizeof *y);
    }
  }
  free(all);
  free(y);
  free(x);
  mx_tensor_free(&t);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: isa_digests HASHES\n");
    return 2;
  }
  hashes h = {0};
  read_hashes(&h, argv[1]);
  for (size_t i = 0; i < mx_preset_count(); i++) {
    mx_spec spec;
    const mx_preset *p = mx_preset_at(i);
    if (p->alias_of) continue;
    if (mx_preset_find(&spec, p->name, NULL)) return 2;
    for (int s = 0; s < SUITE_COUNT; s++) one_suite(&h, p->name, &spec, (suite)s);
  }
  char used[64] = "";
  for (uint32_t bit = 1; bit & MX_ISA_ALL; bit <<= 1)
    if (mx_isa_usable(0) & bit) strcat(strcat(used, " "), mx_isa_name(bit));
  printf("isa digests: %zu lines of golden/HASHES,%s: %zu differ\n", h.held, *used ? used : " no vectors", h.differ);
  fflush(stdout);
  int differ = h.differ != 0;
  const size_t of_vectors = math_digests(0), of_scalar = math_digests(MX_ISA_ALL);
  printf("isa digests: functions, sums and products of float32: %zu differ with vectors, %zu without\n", of_vectors, of_scalar);
  fflush(stdout);
  differ |= of_vectors || of_scalar;
  for (uint32_t bit = 1; bit & MX_ISA_VECTORS; bit <<= 1)
    if (mx_isa_usable(0) & bit) differ |= checkasm(bit) != 0;
  free(h.line);
  return differ;
}
