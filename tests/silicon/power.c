/* Asks whether the tiles would notice a fault: breaks the plain model in one way at a time and counts, for each kind of instruction, the outputs that
 * differ. Usage: power [TILES]. It needs no device, and its exit status is 1 if no tile shows a change that matters. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"
#include "rows.h"

/* Classes of instructions: H f16 into f32, h into f16; B bf16 and tf32; Q fp8 of wgmma into f32, q into f16; E fp8 of mma.sync into f32, e into
   f16; D f64. */
static char class_of(const sil_row *row) {
  const int wide = strcmp(row->c, "f16") != 0;
  if (!strcmp(row->a, "f64")) return 'D';
  if (row->a[0] == 'e') return row->name[0] == 'w' ? (wide ? 'Q' : 'q') : wide ? 'E' : 'e';
  return row->a[0] == 'f' ? (wide ? 'H' : 'h') : 'B';
}

/* A change of the model, with the classes of instructions in which tiles must show it. It changes nothing in the others. */
typedef struct change {
  const char *name;
  size_t offset;
  int value, add;
  const char *classes;
} change;

#define SET(field, v, classes)                                                                                                                 \
  { #field "=" #v, offsetof(plain_model, field), v, 0, classes }
#define ADD(field, v, classes)                                                                                                                 \
  { #field #v, offsetof(plain_model, field), v, 1, classes }
static const change changes[] = {
    ADD(F, -2, "HhBQqEe"),
    ADD(F, -1, "HhBQqEe"),
    ADD(F, +1, "HhBQqEe"),
    ADD(F, +2, "HhBQqEe"),
    ADD(floor, -1, "hB"),
    ADD(floor, +1, "hB"),
    SET(floor, -1000, "hB"),
    SET(zero_e126, 1, "B"),
    SET(out_rne, 1, "HBQE"),
    SET(out_rz16, 1, "hqe"),
    SET(out_bits, 12, "HBQE"),
    SET(out_bits, 14, "HBQE"),
    SET(align_rd, 1, "HhBQqEe"),
    SET(join_after, 1, "HhBQqEe"),
    SET(normalise_products, 1, "HhBQqEe"),
    SET(normalise_subnormals, 1, "HhBQq"),
    SET(saturate, 1, "hBqe"),
    SET(huge_inf, 1, "B"),
    SET(flush_in, 1, "HhBQq"),
    SET(flush_out, 1, "HhBqe"),
    SET(negative_zero, 1, "hB"),
    SET(nan_quiet, 1, "HhBQq"),
    SET(halves, 1, "HhBQq"),
    SET(order_seq, 1, "Ee"),
    SET(order_swap, 1, "Ee"),
    SET(join_in, 1, "Ee"),
    SET(direct, 1, "Ee"),
    SET(fma_split, 1, "D"),
    SET(k_descending, 1, "D"),
};
enum { change_count = sizeof changes / sizeof *changes };

int main(int argc, char **argv) {
  const int tiles = argc > 1 ? atoi(argv[1]) : 1700;
  long seen[change_count][128] = {{0}}, outputs[128] = {0};
  int blind = 0;
#pragma omp parallel for schedule(dynamic)
  for (int r = 0; r < sil_row_count; r++) {
    const sil_row *row = &sil_rows[r];
    tiles_shape q = {row->m, row->n, row->k, row->k, tiles_type_find(row->a), tiles_type_find(row->b), tiles_type_find(row->c)};
    if (q.a->ebits == 0) continue;
    const plain_model right = plain_of(row->name, row->k, q.a, q.c);
    const size_t cells = (size_t)q.m * q.n;
    const int n = tiles * 128 / (int)cells, class = class_of(row);
    uint8_t *a = malloc((size_t)q.m * q.k * 8), *b = malloc((size_t)q.n * q.k * 8), *c = malloc(cells * 8), *d = malloc(cells * 8),
            *e = malloc(cells * 8);
    for (int t = 0; t < n; t++) {
      tiles_fill(&q, 1, (uint64_t)t | (t % 8 == 7 ? TILES_LOW_END : 0), a, b, c);
      plain_tile(&right, &q, a, b, c, d);
#pragma omp atomic
      outputs[class] += (long)cells;
      for (int i = 0; i < change_count; i++) {
        plain_model other = right;
        int *field = (int *)((char *)&other + changes[i].offset);
        *field = changes[i].add ? *field + changes[i].value : changes[i].value;
        if (!memcmp(&other, &right, sizeof other)) continue;
        long wrong = 0;
        plain_tile(&other, &q, a, b, c, e);
        for (size_t j = 0; j < cells; j++) wrong += tiles_get(d, q.c, j) != tiles_get(e, q.c, j);
#pragma omp atomic
        seen[i][class] += wrong;
      }
    }
    free(a), free(b), free(c), free(d), free(e);
  }
  static const char classes[] = "HhBQqEeD";
  printf("outputs in a million that show a change of the model\n%-24s", "");
  for (const char *p = classes; *p; p++) printf("%9c", *p);
  printf("\n");
  for (int i = 0; i < change_count; i++) {
    printf("%-24s", changes[i].name);
    for (const char *p = classes; *p; p++) {
      const long wrong = seen[i][(int)*p];
      const int wanted = strchr(changes[i].classes, *p) != NULL, bad = wanted && !wrong;
      if (wrong)
        printf("%9.0f", ceil(1e6 * (double)wrong / (double)outputs[(int)*p]));
      else
        printf("%9s", bad ? "BLIND" : ".");
      blind += bad;
    }
    printf("\n");
  }
  return blind != 0;
}
