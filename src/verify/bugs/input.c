/* Tries bugs of the input: the rule is right, but what it quantises was rounded or cut to a narrower type, rotated in another way, or shifted by
 * one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/block/plan.h"
#include "verify/bugs/base.h"
#include "verify/trial/observe.h"

/* X(ID, "name", "what the kernel does", size of the tile or 0). A row without a name does what some key also expresses; it is a bug only if it
 * applies to the scales alone or to the elements alone. */
#define CHANGES(X)                                                                                                                             \
  X(HAD_16, NULL, "rotates tiles of 16 by a Hadamard matrix", 16)                                                                              \
  X(HAD_32, NULL, "rotates tiles of 32 by a Hadamard matrix", 32)                                                                              \
  X(HAD_64, NULL, "rotates tiles of 64 by a Hadamard matrix", 64)                                                                              \
  X(HAD_128, NULL, "rotates tiles of 128 by a Hadamard matrix", 128)                                                                           \
  X(HAD_TE, NULL, "rotates tiles of 16 by the signed Hadamard matrix of had.sign=te", 16)                                                      \
  X(BF16_CUT, "input cut to bfloat16", "cuts the input to bfloat16 (toward zero) before it quantises it", 0)                                   \
  X(BF16, "input rounded to bfloat16", "rounds the input (or, which is the same here, the scaled elements) to bfloat16 before it quantises",   \
    0)                                                                                                                                         \
  X(F16, "input rounded to binary16", "rounds the input to binary16 before it quantises it", 0)                                                \
  X(ROTATE_16, "rotation not normalised", "rotates tiles of 16 by a Hadamard matrix without the factor 1/sqrt(16)", 16)                        \
  X(ROTATE_32, "rotation not normalised", "rotates tiles of 32 by a Hadamard matrix without the factor 1/sqrt(32)", 32)                        \
  X(ROTATE_64, "rotation not normalised", "rotates tiles of 64 by a Hadamard matrix without the factor 1/sqrt(64)", 64)                        \
  X(ROTATE_128, "rotation not normalised", "rotates tiles of 128 by a Hadamard matrix without the factor 1/sqrt(128)", 128)                    \
  X(TE_16, "rotation not normalised", "rotates tiles of 16 by the signed Hadamard matrix of had.sign=te without the factor 1/sqrt(16)", 16)    \
  X(SQUARE_16, "rotation normalised twice", "rotates tiles of 16 by a Hadamard matrix with the factor 1/16 for 1/sqrt(16)", 16)                \
  X(SQUARE_32, "rotation normalised twice", "rotates tiles of 32 by a Hadamard matrix with the factor 1/32 for 1/sqrt(32)", 32)                \
  X(DOWN_16, "rotation along the wrong axis", "rotates tiles of 16 rows by a Hadamard matrix, along the columns instead of the rows", 16)      \
  X(DOWN_32, "rotation along the wrong axis", "rotates tiles of 32 rows by a Hadamard matrix, along the columns instead of the rows", 32)      \
  X(DOWN_64, "rotation along the wrong axis", "rotates tiles of 64 rows by a Hadamard matrix, along the columns instead of the rows", 64)      \
  X(DOWN_128, "rotation along the wrong axis", "rotates tiles of 128 rows by a Hadamard matrix, along the columns instead of the rows", 128)   \
  X(LEFT, "input shifted", "reads the input one column too far to the right", 0)                                                               \
  X(RIGHT, "input shifted", "reads the input one column too far to the left", 0)                                                               \
  X(MAGNITUDE, "input without its sign", "quantises |x|", 0)

enum {
#define X(id, ...) CHANGE_##id,
  CHANGES(X)
#undef X
      CHANGE_COUNT
};

static const struct {
  const char *name, *text;
  size_t tile;
} changes[] = {
#define X(id, name, text, tile) {name, text, tile},
    CHANGES(X)
#undef X
};

const char *mxi_input_name(size_t i) {
  size_t at = 0;
  while (at < CHANGE_COUNT && (!changes[at].name || i)) i -= changes[at++].name != NULL;
  return at < CHANGE_COUNT ? changes[at].name : NULL;
}

/* Butterflies in binary64, then the factor, then one rounding: of n numbers `step` apart. */
static void rotate(float *x, size_t step, size_t n, double factor) {
  double t[128];
  for (size_t i = 0; i < n; i++) t[i] = (double)x[i * step];
  for (size_t h = 1; h < n; h *= 2)
    for (size_t first = 0; first < n; first += 2 * h)
      for (size_t i = first; i < first + h; i++) {
        const double a = t[i], b = t[i + h];
        t[i] = a + b;
        t[i + h] = a - b;
      }
  for (size_t i = 0; i < n; i++) x[i * step] = (float)(t[i] * factor);
}

/* x [rows][cols], dense, changed in place. 0 if the shape does not allow it. */
static int change(float *x, size_t rows, size_t cols, int how) {
  const size_t n = rows * cols, tile = changes[how].tile;
  switch (how) {
  case CHANGE_BF16_CUT:
    for (size_t i = 0; i < n; i++) x[i] = mxi_cut_to_bf16(x[i]);
    return 1;
  case CHANGE_BF16:
  case CHANGE_F16:
    for (size_t i = 0; i < n; i++) x[i] = mxi_round_dtype(x[i], how == CHANGE_F16 ? MX_INPUT_DTYPE_FLOAT16 : MX_INPUT_DTYPE_BFLOAT16);
    return 1;
  case CHANGE_HAD_16:
  case CHANGE_HAD_32:
  case CHANGE_HAD_64:
  case CHANGE_HAD_128:
  case CHANGE_HAD_TE:
    return cols % tile == 0 &&
           !mx_hadamard(x, cols, x, rows, cols, cols, (int)tile, how == CHANGE_HAD_TE ? MX_HAD_SIGN_TE : MX_HAD_SIGN_NONE, NULL, 0);
  case CHANGE_TE_16:
    if (cols % tile || mx_hadamard(x, cols, x, rows, cols, cols, 16, MX_HAD_SIGN_TE, NULL, 0)) return 0;
    for (size_t i = 0; i < n; i++) x[i] *= 4;
    return 1;
  case CHANGE_LEFT:
  case CHANGE_RIGHT:
    for (size_t r = 0; r < rows; r++) {
      float *row = x + r * cols;
      if (how == CHANGE_LEFT)
        memmove(row, row + 1, (cols - 1) * sizeof *row), row[cols - 1] = r + 1 < rows ? row[cols] : 0;
      else
        memmove(row + 1, row, (cols - 1) * sizeof *row), row[0] = 0;
    }
    return 1;
  case CHANGE_MAGNITUDE:
    for (size_t i = 0; i < n; i++) x[i] = fabsf(x[i]);
    return 1;
  default:
    break;
  }
  const int down = how >= CHANGE_DOWN_16 && how <= CHANGE_DOWN_128;
  const double factor = down ? 1 / sqrt((double)tile) : how == CHANGE_SQUARE_16 || how == CHANGE_SQUARE_32 ? 1 / (double)tile : 1;
  if ((down ? rows : cols) % tile) return 0;
  for (size_t i = 0; i < n / tile; i++) {
    if (down)
      rotate(x + i / cols * tile * cols + i % cols, cols, tile, factor);
    else
      rotate(x + i * tile, 1, tile, factor);
  }
  return 1;
}

static int is_rotation(int how) { return changes[how].tile != 0; }
/* A narrower type for the elements alone or for the maximum alone has a plainer explanation in twist.c. */
static int may_be_mixed(int how) { return is_rotation(how) || how == CHANGE_LEFT || how == CHANGE_RIGHT; }

/* Stop when more than one in so many of the codes that the preset leaves are still wrong: no further part can then make this change the bug
 * (BUG_LEAVES_ONE_IN). */
enum { GIVEN_UP_ONE_IN = 10, COUNTED_ROWS = 8 };

/* Do the first rows of part i alone leave so much that all cannot be near? Then the other rows need not be run. */
static int is_refuted(const base *b, size_t i, const float *x, trial_run *run) {
  enum { ONE_IN = 8, LEAST_ROWS = 16 }; /* of rows that are all wrong a little more than one in GIVEN_UP_ONE_IN tells */
  const part *p = &b->parts[i];
  part few = *p;
  const float *of_all = b->spec.tensor_norm != MX_TENSOR_NORM_NONE ? &few.amax : NULL;
  few.rows = up(up(p->rows, ONE_IN), p->block_rows) * p->block_rows;
  if (few.rows < LEAST_ROWS || few.rows * 2 > p->rows) return 0;
  few.down = few.rows / p->block_rows;
  if (of_all && noted_status(mx_tensor_amax(&few.amax, x, p->rows, p->cols, p->cols, &b->spec, &(mx_exec){.n_threads = 1}), b->lack)) return 0;
  if (!mxi_part_rerun(b, &few, x, run->codes[i], run->scales[i], of_all)) return 0;
  return left_total(mxi_run_left(b, i, run->codes[i], run->scales[i], 0, few.down)) * GIVEN_UP_ONE_IN >= left_total(b->plain);
}

/* The preset run on the changed input. 0 if it is not near. */
static int run_changed(candidate *c, const base *b, float *const *x, trial_run *run) {
  for (size_t i = 0; i < b->n; i++) {
    const part *p = &b->parts[i];
    if (is_refuted(b, i, x[i], run) || !mxi_part_rerun(b, p, x[i], run->codes[i], run->scales[i], NULL)) return 0;
    for (size_t d = 0; d < p->down; d += COUNTED_ROWS) {
      const leaves l = mxi_run_left(b, i, run->codes[i], run->scales[i], d, d + COUNTED_ROWS);
      c->l.codes += l.codes;
      c->l.scales += l.scales;
      if (left_total(c->l) * GIVEN_UP_ONE_IN >= left_total(b->plain)) return 0;
    }
    float a, t = 1;
    if (p->s->has_tensor_scale && p->has_tensor_scale) {
      if (noted_status(mx_tensor_amax(&a, x[i], p->rows, p->cols, p->cols, &b->spec, &(mx_exec){.n_threads = b->n_threads}), b->lack)) return 0;
      c->l.tensor_scales += mx_tensor_scale(&t, a, &b->spec) || (t != p->s->tensor_scale && p->tensor_scale != p->s->tensor_scale);
    }
    if (left_total(c->l) * GIVEN_UP_ONE_IN >= left_total(b->plain)) return 0;
  }
  return 1;
}

void mxi_input_bugs(candidate *best, const base *b) {
  trial_run run;
  if (b->spec.had_size || !mxi_run_open(&run, b)) return;
  float **x = noted(calloc(b->n + 1, sizeof *x), b->lack);
  int have = x != NULL;
  for (size_t i = 0; i < b->n && have; i++)
    have = (x[i] = noted(malloc((b->parts[i].rows * b->parts[i].cols + 1) * sizeof **x), b->lack)) != NULL;
  for (int how = 0; how < CHANGE_COUNT && have && !is_found(best); how++) {
    candidate c = {.name = changes[how].name};
    int ok = 1;
    for (size_t i = 0; i < b->n && ok; i++) {
      const part *p = &b->parts[i];
      for (size_t r = 0; r < p->rows; r++) memcpy(x[i] + r * p->cols, p->s->x + r * p->s->ld, p->cols * sizeof **x);
      ok = change(x[i], p->rows, p->cols, how);
    }
    snprintf(c.text, sizeof c.text, "%s", changes[how].text);
    if (ok && c.name && run_changed(&c, b, x, &run)) mxi_offer(best, b, &c);
    if (ok && !is_found(best) && may_be_mixed(how)) mxi_mixed_bugs(best, b, x, is_rotation(how), changes[how].text);
  }
  for (size_t i = 0; x && i < b->n; i++) free(x[i]);
  free(x);
  mxi_run_close(&run, b);
}
