/* Declares what the files of the quantised linear layer share.
 *
 * recipe.c     training keys by name
 * check.c      whether a layer can follow a recipe
 * draw.c       seeds and signs
 * memory.c     matrices laid into the caller's memory
 * operands.c   the six quantised operands
 * products.c   a product of two of them, or of raw matrices
 * outliers.c   x clamped before it is quantised, and what the clamp took away
 * ema.c        Q2's elements by the weight's moving average
 * hold.c       tensor scales that stand for some steps
 * layer.c      the public calls: forward and backward
 * rules.h      gradient rules, in files of their own and in the room gradient */
#ifndef TRAIN_LINEAR_INTERNAL_H
#define TRAIN_LINEAR_INTERNAL_H

#include "mxgold/dense.h"
#include "train/linear/gradient/block.h"

/* The caller's memory, handed out from the front. If base is NULL, nothing is written and only the need is counted. */
typedef struct mxi_arena {
  char *base;
  size_t used;
  int overflow;
} mxi_arena;
/** Takes room for n things of `size` bytes, on a cache line of its own; NULL while counting. */
void *mxi_arena_take(mxi_arena *a, size_t n, size_t size);
/** Fills in a tensor's sizes and takes its codes from one arena (NULL: no codes), its scales and micro from another or the same. */
mx_status mxi_arena_tensor(mxi_arena *codes, mxi_arena *scales, mx_tensor *out, size_t rows, size_t cols, const mx_spec *spec);

/* A float32 matrix; `own` if it is a copy that may be changed. */
typedef struct mxi_matrix {
  float *at;
  size_t rows, cols, ld;
} mxi_matrix;

/* What clamping took from x: row t has the columns at[] and residuals from starts[t] to starts[t + 1]. */
typedef struct mxi_outliers {
  size_t *starts;
  uint32_t *at;
  double *residual;
} mxi_outliers;

/* One call, with everything that was derived from its arguments. */
typedef struct mxi_layer {
  const mx_linear *l;
  const mx_linear_recipe *r;
  mx_exec exec;
  mxi_arena work, saved;
  int plain[MX_PRODUCTS]; /* the product is not quantised */
  mx_spec q[MX_OPERANDS]; /* with this call's seeds and signs */
  mx_tensor t[MX_OPERANDS];
  uint32_t *given[MX_OPERANDS]; /* random=counter: the words of an operand */
  mxi_matrix seen[2];           /* x and W, where the gradient rules of the backward call look at them */
  mxi_outliers outliers;
} mxi_layer;

/** Sets the seeds and signs of this call's specs. */
void mxi_linear_draw(mxi_layer *y);
/** Rows and columns of operand q as it is quantised: the reduction axis widened to whole tiles of its rotation. */
void mxi_linear_extent(size_t *rows, size_t *cols, const mx_linear *l, int q);

/** Does product p read the raw matrices, because it is switched off or both of its operands are elem=none? */
int mxi_linear_is_plain(const mx_linear_recipe *r, int p);
/** Is operand q made from the matrix itself if that is at hand, and not from what the forward pass made? */
int mxi_linear_from_hp(const mx_linear_recipe *r, int q);
/** Can the transposed codes of Q2 (or Q1) serve as Q4 (or Q6)? */
int mxi_linear_reuses_codes(const mx_linear_recipe *r, int q);

/** Makes the operands that the call needs of source (MX_Q1: x; MX_Q2: w; MX_Q3: dy): along its rows, and transposed. */
mx_status mxi_linear_make(mxi_layer *y, mxi_matrix source, int along, int across, mx_error *err);
/** What the forward pass made of x (MX_Q1) or w (MX_Q2): dequantised, still rotated, with elem.prescale divided out. */
mx_status mxi_linear_made(mxi_layer *y, int q, mxi_matrix *out, mx_error *err);
/** x with its outliers clamped (occ.alpha), which y->outliers then holds; without them x itself. */
mxi_matrix mxi_linear_clamp(mxi_layer *y, mxi_matrix x);
/** Reports conflicts of occ.* in a recipe. */
mx_status mxi_outliers_check(const mx_linear_recipe *r, mx_error *err);
/** Changes Q2's rounded codes to those that the weight's moving average asks for (q2.ema); w is what Q2 was made of. */
mx_status mxi_linear_follow(mxi_layer *y, mxi_matrix w, mx_error *err);
/** Copies a matrix with zeros behind the ends of its rows and behind its last row. */
mxi_matrix mxi_linear_widened(mxi_layer *y, mxi_matrix x, size_t rows, size_t cols);
/** Reports conflicts of q2.ema and of tensor.hold in a recipe. */
mx_status mxi_ema_check(const mx_linear_recipe *r, mx_error *err);
mx_status mxi_hold_check(const mx_linear_recipe *r, mx_error *err);
/** Puts tensor scales that are kept into this call's specs; and keeps that of an operand (-1: none) if this call computes it. */
void mxi_hold_use(mxi_layer *y);
void mxi_hold_keep(const mxi_layer *y, int q);
/** Adds y->outliers times w to Fprop's output. */
mx_status mxi_linear_compensate(mxi_layer *y, float *out, size_t ld, mxi_matrix w, mx_error *err);
/** Makes Q4 or Q6 from the codes of Q2 or Q1. */
mx_status mxi_linear_remake(mxi_layer *y, int q, mx_error *err);
/** Computes d, the product p of its two operands, or of raw operands if it is not quantised. bias is for MX_FPROP alone. */
mx_status mxi_linear_product(mxi_layer *y, int p, mxi_matrix a, mxi_matrix b, mx_linear_out d, const float *bias, mx_error *err);

/** The float32 values of a matrix: the matrix itself, or a copy in the arena. NULL while counting. */
mxi_matrix mxi_linear_values(mxi_layer *y, mx_linear_in in, size_t rows, size_t cols);

/** The operand's values as they were quantised: rotated and filled up to whole tiles; without a rotation x itself. NULL while counting. */
mx_status mxi_linear_as_quantised(mxi_matrix *out, mxi_layer *y, int q, mxi_matrix x);

#endif
