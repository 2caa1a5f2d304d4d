/* Names each variant in words. */
#include <stdio.h>
#include <string.h>

#include "verify/judge/edits.h"

static const char *of_side(int side) { return side == 1 ? "A" : side == 2 ? "B" : "A and B"; }

/* Kinds of variants that are described by one sentence, in which %s stands for the operand. */
static const char *const plain[] = {
    [SAME] = "the product itself",
    [SCALE_NONE] = "the scales of %s are left out",
    [SCALE_TWICE] = "the scales of %s are applied twice",
    [SCALE_FIRST] = "the scale of each row's first block of %s is used for the whole row",
    [SCALE_TRANSPOSED] = "the scales of %s are read transposed",
    [SCALE_POWER] = "the mantissa of the scales of %s is dropped: powers of two are left",
    [SCALE_SWAPPED] = "the scales of A and B are swapped",
    [TENSOR_NONE] = "the tensor scale of %s is left out",
    [TENSOR_TWICE] = "the tensor scale of %s is applied twice",
    [TENSOR_DIVIDED] = "the tensor scale of %s divides instead of multiplying",
    [TENSOR_STORED] = "the tensor scale of %s is used as it is stored, which is not the multiplier",
    [NIBBLE] = "the two codes of each byte of %s are swapped",
    [TURNED] = "the codes of %s are read transposed",
    [FIRST_LOST] = "the first K block is lost",
    [ALPHA_NONE] = "alpha is forgotten",
    [PRODUCT_NONE] = "the product is missing: C and the bias are all there is",
    [ALPHA_TWICE] = "alpha is applied twice",
    [ALPHA_INVERSE] = "the product is divided by alpha",
    [ALPHA_ON_C] = "alpha is applied to C too",
    [ALPHA_ON_C_ALONE] = "alpha is applied to C instead of the product",
    [ALPHA_FOR_BETA] = "alpha and beta are swapped",
    [BETA_NONE] = "beta is forgotten: C is added as it is",
    [C_NONE] = "C is forgotten",
    [C_MINUS] = "C is subtracted",
    [C_TURNED] = "C is read transposed",
    [BIAS_NONE] = "the bias is forgotten",
    [BIAS_TWICE] = "the bias is added twice",
    [BIAS_MINUS] = "the bias is subtracted",
    [BIAS_ALPHA] = "the bias is multiplied by alpha",
    [BIAS_BETA] = "the bias is multiplied by beta",
    [MINUS] = "the sign of the product is wrong",
    [D_ROW_UP] = "each row of D holds the next row",
    [D_ROW_DOWN] = "each row of D holds the row before",
    [D_COL_UP] = "each column of D holds the next column",
    [D_COL_DOWN] = "each column of D holds the column before",
    [D_COLS_ORDER] = NULL,
};

/* "K block 2 of 0..4", "K blocks 0 to 7 of 0..15 (the first half)": counted from 0, as everywhere. */
static void range(char *out, size_t size, size_t n, size_t kb) {
  const size_t first = n & 0xFFFFFFFF, end = n >> 32;
  if (end - first == 1) {
    snprintf(out, size, "K block %zu of 0..%zu is", first, kb - 1);
    return;
  }
  const char *half = 2 * (end - first) != kb ? "" : first == 0 ? " (the first half of K)" : end == kb ? " (the last half of K)" : "";
  snprintf(out, size, "K blocks %zu to %zu of 0..%zu%s are", first, end - 1, kb - 1, half);
}

static const char *order_name(size_t order) {
  static const char *const names[] = {"in reverse order", "with their halves swapped", "interleaved", "deinterleaved"};
  return order < ORDERS ? names[order] : "";
}

/* Writes "the rows" or "each 32 rows": n lines in a group, which may be all there are or fewer. */
static void ordered(char *out, size_t size, const char *what, size_t n, size_t all) {
  if ((n & 0xFFFFFFFF) >= all)
    snprintf(out, size, "the %s", what);
  else
    snprintf(out, size, "each %zu %s", n & 0xFFFFFFFF, what);
}

static void blocks(char *out, size_t size, const char *s, size_t n) {
  const size_t x = n & 0xFFFFF, y = n >> 20 & 0xFFFFF, what = n >> 48 & 15, more = n >> 52 ? n >> 52 : 1;
  const char *w = what == MOVE_CODES ? "the codes of " : what == MOVE_SCALES ? "the scales of " : "";
  switch ((judge_move)(n >> 40 & 0xFF)) {
  case MOVE_SWAP:
    if (more > 1)
      snprintf(out, size, "%sK blocks %zu to %zu and %zu to %zu of %s are swapped", w, x, x + more - 1, y, y + more - 1, s);
    else
      snprintf(out, size, "%sK blocks %zu and %zu of %s are swapped", w, x, y, s);
    break;
  case MOVE_COPY:
    if (more > 1)
      snprintf(out, size, "%sK blocks %zu to %zu of %s are read from blocks %zu to %zu", w, x, x + more - 1, s, y, y + more - 1);
    else
      snprintf(out, size, "%sK block %zu of %s %s read from block %zu", w, x, s, what ? "are" : "is", y);
    break;
  case MOVE_XOR:
    if (x == 1)
      snprintf(out, size, "%sK blocks of %s are swapped two by two", w, s);
    else
      snprintf(out, size, "%sK blocks of %s are those %zu on or back (block index ^ %zu)", w, s, x, x);
    break;
  case MOVE_ROUND:
  case MOVE_STAY:
    snprintf(out, size, "%sK blocks of %s are those %zu %s%s", w, s, x, y ? "before" : "further on",
             (n >> 40 & 0xFF) == MOVE_ROUND ? ", around the end of K" : "");
    break;
  case MOVE_REVERSED:
    snprintf(out, size, "%sK blocks of %s are in reverse order", w, s);
    break;
  case MOVE_FIRST:
    if (x == 1)
      snprintf(out, size, "%sthe first K block of %s is used for all of K", w, s);
    else
      snprintf(out, size, "%sthe first %zu K blocks of %s are used for all of K", w, x, s);
    break;
  }
}

/* The one row of A, or column of D that is a row of B, in which all that is wrong lies. 0: there are several. */
static int only_line(size_t *line, const judge_job *j, int is_b) {
  size_t n = 0;
  for (size_t i = 0; i < (is_b ? j->right.N : j->right.M); i++)
    if (j->in[is_b][i]) *line = i, n++;
  return n == 1;
}

void mxi_judge_words(char *out, size_t size, const judge_job *j, const judge_variant *v) {
  const char *s = of_side(v->side);
  const size_t K = j->right.K, block = j->right.block, last = (K - 1) / block, low = v->n & 0xFFFFFFFF, high = v->n >> 32;
  char part[96];
  switch (v->kind) {
  case SCALE_NEXT_BLOCK:
  case SCALE_LAST_BLOCK:
    snprintf(out, size, "the scales of %s are those of the %s%s", s, v->kind == SCALE_NEXT_BLOCK ? "next block" : "block before",
             v->n == 2 ? " in memory, across the ends of rows" : "");
    break;
  case SCALE_NEXT_ROW:
  case SCALE_LAST_ROW:
    snprintf(out, size, "the scales of %s are those of the %s%s", s, v->kind == SCALE_NEXT_ROW ? "next row" : "row before",
             v->n ? ", around the end" : "");
    break;
  case SCALE_ROWS_ORDER:
  case CODE_ROWS_ORDER:
    ordered(part, sizeof part, v->kind == SCALE_ROWS_ORDER ? "rows of the scales" : "rows of the codes", v->n,
            v->side == 2 ? j->right.N : j->right.M);
    snprintf(out, size, "%s of %s are %s", part, s, order_name(high));
    break;
  case CODE_TILES:
    snprintf(out, size, "each tile of %zu x %zu codes of %s is transposed", v->n, v->n, s);
    break;
  case SCALE_ROW_OF:
    if (v->n >= (v->side == 2 ? j->right.N : j->right.M))
      snprintf(out, size, "the scales of %s are those of its first row", s);
    else
      snprintf(out, size, "the scales of %s are those of the first of each %zu rows", s, v->n);
    break;
  case SCALE_PAIRS:
    snprintf(out, size, "each two blocks of %s share one scale (%s)", s,
             v->n ? "that of the first of them" : "block b has that of block b / 2: the block is taken to be twice as long");
    break;
  case SCALE_AS:
    snprintf(out, size, "the scales of %s are decoded as %s", s, mx_scale_format((int)v->n)->name);
    break;
  case ELEMENT_AS:
    snprintf(out, size, "the elements of %s are decoded as %s", s, mx_elem_format((int)v->n)->name);
    break;
  case ELEMENT_BITS: {
    static const char *const names[] = {"the sign of the elements of %s is lost", "subnormal elements of %s are taken for zero",
                                        "the last mantissa bit of the elements of %s is lost"};
    snprintf(out, size, names[v->n], s);
    break;
  }
  case ONE_FOR_BOTH:
    snprintf(out, size, "%s is read for %s too", s, v->side == 1 ? "B" : "A");
    break;
  case SCALE_ONE:
    snprintf(out, size,
             low + 1 == high && low == last ? "the scale of the last K block of %s is not applied"
                                            : "the scale of the first K block of %s is not applied",
             s);
    break;
  case SCALE_FACTOR: {
    const uint32_t bits = (uint32_t)v->n;
    size_t line;
    float by;
    memcpy(&by, &bits, sizeof by);
    if (only_line(&line, j, v->side == 2))
      snprintf(out, size, "the scale of row %zu, K block %zu of %s is %.9g times what it should be", line, high, s, (double)by);
    else
      snprintf(out, size, "the scales of K block %zu of %s are %.9g times what they should be", high, s, (double)by);
    break;
  }
  case ELEMENT_VALUE:
    snprintf(out, size, "code 0x%zX of %s, which is %g, is decoded as %g", low & 7, s,
             mx_decode((v->side == 2 ? j->right.b : j->right.a).elem, low & 7), 0.25 * (double)(low >> 8));
    break;
  case SCALE_READ_AS:
    snprintf(out, size, "the scales of %s, which are row-major, are read as %s", s, mx_layout_name((mx_layout)v->n));
    break;
  case SCALE_LEFT_IN:
    snprintf(out, size, "the scales of %s are in layout %s and read as row-major", s, mx_layout_name((mx_layout)v->n));
    break;
  case DEPTH:
    if (v->n > K)
      snprintf(out, size, "the padding behind K is summed too (K = %zu for %zu)", v->n, K);
    else if (v->n == last * block)
      snprintf(out, size, "the last K block is lost (K = %zu for %zu)", v->n, K);
    else
      snprintf(out, size, "the tail of K is lost, its last %zu (K = %zu for %zu)", K - v->n, v->n, K);
    break;
  case BLOCKS_LOST:
    range(part, sizeof part, v->n, last + 1);
    snprintf(out, size, "%s lost", part);
    break;
  case BLOCKS_TWICE:
    range(part, sizeof part, v->n, last + 1);
    snprintf(out, size, high - low == 1 ? "%s added twice, or a scale there is twice what it should be" : "%s added twice", part);
    break;
  case BLOCKS_ONLY:
    range(part, sizeof part, v->n, last + 1);
    snprintf(out, size, "only %s summed", part);
    break;
  case K_LOST:
    if (high == 2)
      snprintf(out, size, "the first %zu of K are lost", low);
    else
      snprintf(out, size, "the %s %zu of every %zu elements along K are lost", high ? "last" : "first", low / 2, low);
    break;
  case K_ORDER:
    snprintf(out, size, "the elements of %s are %s in groups of %zu", s, order_name(high), low);
    break;
  case K_BLOCKS:
    blocks(out, size, s, v->n);
    break;
  case PRODUCT_TWICE:
    snprintf(out, size,
             j->right.options.c || j->right.options.bias ? "the product is added twice" : "every output is 2^1 times what it should be");
    break;
  case BIAS_ROWS:
    snprintf(out, size, "the bias goes along %s", j->right.options.bias_of_rows ? "columns instead of rows" : "rows instead of columns");
    break;
  case BIAS_NEXT:
  case BIAS_LAST:
    snprintf(out, size, "the bias is that of the %s %s", "next", j->right.options.bias_of_rows ? "row" : "column");
    if (v->kind == BIAS_LAST) snprintf(out, size, "the bias is that of the %s before", j->right.options.bias_of_rows ? "row" : "column");
    break;
  case BIAS_OF_TILE:
    if (v->n == 1)
      snprintf(out, size, "the first value of the bias is used for all");
    else
      snprintf(out, size, "the first %zu values of the bias are used for all (index modulo %zu)", v->n, v->n);
    break;
  case BIAS_ORDER:
    ordered(part, sizeof part, "values", v->n, j->right.options.bias_of_rows ? j->right.M : j->right.N);
    snprintf(out, size, "%s of the bias are %s", part, order_name(high));
    break;
  case BIAS_TURNED: {
    const size_t n = j->right.options.bias_of_rows ? j->right.M : j->right.N;
    snprintf(out, size, "the bias is that of %zu %s %s, around the end", v->n * 2 > n ? n - v->n : v->n,
             j->right.options.bias_of_rows ? "rows" : "columns", v->n * 2 > n ? "before" : "further on");
    break;
  }
  case D_TURNED:
    snprintf(out, size, j->right.M == j->right.N ? "D is transposed, or A and B are swapped" : "D is transposed (column-major)");
    break;
  case D_TILES_TURNED:
    snprintf(out, size, "each tile of %zu x %zu of D is transposed in itself", v->n, v->n);
    break;
  case D_GRID_TURNED:
    snprintf(out, size, "the tiles of %zu x %zu of D are in column-major order", v->n, v->n);
    break;
  case D_ROWS_ORDER:
  case D_COLS_ORDER:
    snprintf(out, size, "the %s of D are %s in groups of %zu", v->kind == D_ROWS_ORDER ? "rows" : "columns", order_name(high), low);
    break;
  default: {
    const char *at = strstr(plain[v->kind], "%s");
    snprintf(out, size, "%.*s%s%s", at ? (int)(at - plain[v->kind]) : (int)strlen(plain[v->kind]), plain[v->kind], at ? s : "",
             at ? at + 2 : "");
  }
  }
}
