/* Declares variants of the right problem, which are what else a kernel could have computed: how they are described, made and tried. */
#ifndef MX_VERIFY_JUDGE_EDITS_H
#define MX_VERIFY_JUDGE_EDITS_H

#include "verify/judge/internal.h"

/* Kinds of variants. `side`: 1 A, 2 B, 3 both. n: a number that the kind takes; a range of K blocks is first | end << 32. */
typedef enum judge_kind {
  SAME,
  SCALE_NONE,
  SCALE_TWICE,
  SCALE_FIRST,
  SCALE_NEXT_BLOCK, /* n: 0 the last keeps its own, 1 the last has the first's, 2 the last has the next row's first */
  SCALE_LAST_BLOCK,
  SCALE_NEXT_ROW,
  SCALE_LAST_ROW,
  SCALE_ROW_OF, /* n rows share the scales of their first */
  SCALE_PAIRS,  /* n: 0 block b has the scale of b / 2, 1 of b - b % 2 */
  SCALE_AS,     /* decoded as scale format n */
  SCALE_TRANSPOSED,
  SCALE_READ_AS, /* layout n */
  SCALE_LEFT_IN,
  SCALE_POWER,      /* the mantissa is dropped */
  SCALE_ONE,        /* 1 in the range n of K blocks */
  SCALE_FACTOR,     /* of one K block multiplied: bits of a float | block << 32 */
  SCALE_ROWS_ORDER, /* group | judge_order << 32 */
  SCALE_SWAPPED,    /* n: what stands beyond the shorter of A and B: 0 its own, 1 who knows */
  TENSOR_NONE,
  TENSOR_TWICE,
  TENSOR_DIVIDED,
  TENSOR_STORED,
  NIBBLE,
  ELEMENT_AS,    /* element format n */
  ELEMENT_BITS,  /* judge_bits n */
  ELEMENT_VALUE, /* a magnitude of the table is another number: its code | quarters << 8 */
  TURNED,
  CODE_ROWS_ORDER, /* codes of other rows under these rows' scales: group | judge_order << 32 */
  CODE_TILES,      /* each tile of n x n codes transposed */
  ONE_FOR_BOTH,    /* A is read for B too (side 1), or B for A */
  DEPTH,           /* K = n; side 1: one of many */
  FIRST_LOST,
  BLOCKS_LOST, /* range n */
  BLOCKS_TWICE,
  BLOCKS_ONLY,
  K_LOST,   /* one half of every group of n elements; n | 1 << 32: the last half; n | 2 << 32: of K alone, the first n */
  K_ORDER,  /* elements in groups: group | judge_order << 32 */
  K_BLOCKS, /* K blocks in another place: first | second << 20 | judge_move << 40 | what << 48 | blocks << 52 */
  /* of what follows the sum */
  ALPHA_NONE,
  PRODUCT_NONE,
  PRODUCT_TWICE,
  ALPHA_TWICE,
  ALPHA_INVERSE,
  ALPHA_ON_C,
  ALPHA_ON_C_ALONE,
  ALPHA_FOR_BETA,
  BETA_NONE,
  C_NONE,
  C_MINUS,
  C_TURNED,
  BIAS_NONE,
  BIAS_TWICE,
  BIAS_MINUS,
  BIAS_ALPHA,
  BIAS_BETA,
  BIAS_ROWS,
  BIAS_NEXT, /* n: 0 around, 1 the last keeps its own */
  BIAS_LAST,
  BIAS_OF_TILE, /* index modulo n */
  BIAS_ORDER,   /* group | judge_order << 32 */
  BIAS_TURNED,  /* by n */
  MINUS,
  /* of where D stands */
  D_TURNED,
  D_ROW_UP,
  D_ROW_DOWN,
  D_COL_UP,
  D_COL_DOWN,
  D_TILES_TURNED, /* n x n each in itself */
  D_GRID_TURNED,  /* tiles of n x n in column-major order */
  D_ROWS_ORDER,   /* group | judge_order << 32 */
  D_COLS_ORDER
} judge_kind;

/* What is done to the bits of each element. */
typedef enum judge_bits { BITS_MAGNITUDE, BITS_NO_SUBNORMALS, BITS_SHORT, BITS } judge_bits;
/* Orders of the elements of a group. */
typedef enum judge_order { ORDER_REVERSED, ORDER_HALVES, ORDER_INTERLEAVED, ORDER_DEINTERLEAVED, ORDERS } judge_order;
/* Where a K block's data come from; `what`: codes and scales, codes alone, scales alone. */
typedef enum judge_move { MOVE_SWAP, MOVE_COPY, MOVE_XOR, MOVE_ROUND, MOVE_STAY, MOVE_REVERSED, MOVE_FIRST } judge_move;
enum { MOVE_BOTH, MOVE_CODES, MOVE_SCALES };

typedef struct judge_variant {
  judge_kind kind;
  int side;
  size_t n;
  double error; /* of the ranking */
} judge_variant;

/* What a variant needs beside the right problem. */
typedef struct judge_edit {
  mx_gemm_problem p;
  void *own[8];
  int n_own;
  shortage *lack; /* of the call */
  float number[4];
  const uint8_t *rows[2]; /* rows of A and of B that will be read; NULL: all */
} judge_edit;

/** The index that place i of a group of n holds. */
size_t mxi_judge_order_at(judge_order order, size_t i, size_t n);
/** The K block that block b of kb is read from, under K_BLOCKS n. */
size_t mxi_judge_move_at(size_t n, size_t b, size_t kb);
void mxi_judge_words(char *out, size_t size, const judge_job *j, const judge_variant *v);
/** e is the problem in it, changed as v says. 0: v makes no sense here. */
int mxi_judge_make(judge_edit *e, const judge_job *j, const judge_variant *v);
void mxi_judge_unmake(judge_edit *e);
/** Where the output that D has at (row, col) is in the product. 0: nowhere, or nobody knows. */
int mxi_judge_source(const judge_job *j, const judge_variant *v, size_t row, size_t col, size_t at[2]);

#endif
