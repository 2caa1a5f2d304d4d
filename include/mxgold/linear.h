/** Computes the quantised linear layer: one training step of y = x W^T + bias whose three products each take two quantised operands.
 *
 *  With T tokens, I in-features, O out-features, x [T][I], W [O][I], dy [T][O], each product's operands are blocked along its reduction axis:
 *      Fprop  y  = x W^T     Q1 x    along I,  Q2 W    along I      y  [T][O]
 *      Dgrad  dx = dy W      Q3 dy   along O,  Q4 W^T  along O      dx [T][I]
 *      Wgrad  dw = dy^T x    Q5 dy^T along T,  Q6 x^T  along T      dw [O][I]
 *  Operands are quantised by mx_quantize() and multiplied by mx_gemm() under any accumulation model; unquantised products are
 *  mx_dense_gemm()'s. The only bits that are decided here come from the order of these calls, the seeds and the gradient rules.
 *
 *  Random words are a function of (seed, step, layer, operand), so that no two operands, layers or steps share one. Hadamard signs that are drawn
 *  (had.sign=fresh) are a function of (seed, step, layer, product); a product's two operands share them, so that they cancel. Under
 *  had.draw=backward Wgrad has the signs of Dgrad. If the size of a rotation does not divide the reduction axis, both operands are first padded with
 *  zeros to whole tiles, so that the rotation cancels too.
 *
 *  A product that is switched off, or whose operands are both elem=none, sees the raw x, W and dy, unrotated, in mx_dense_gemm()'s chain. Operands
 *  with elem=bf16, or elem=none and a narrower input.dtype, are rounded values without scales, which mx_gemm() multiplies: recipe-bf16.
 *  elem.prescale of the operands is divided out of the product: alpha = rnd_f32(1 / (prescale * prescale)), computed in binary64.
 *  The bias is added after the product; its gradient sums the unquantised dy.
 *
 *  Gradient rules (keys grad.*, SPEC "Gradient rules") multiply dx and dw by an approximate derivative of x's and W's quantiser, in the domain that
 *  Fprop's rotation leaves. Without them that derivative is taken to be 1. Of these keys only grad.config=softmax changes the forward pass too: it
 *  makes the scales of Q1 and Q2 from a log-sum-exp.
 *
 *  Outliers are clamped under occ.alpha. X_c is x with each value clamped between two of its sorted numbers (NaN last), whose ranks occ.index gives in
 *  binary64; NaN stays. Every operand that is made of x is made of X_c (Q1, and Q6 whatever its source), and gradient rules look at X_c too. The
 *  residual R = x - X_c is kept in binary64, so that X_c + R, rounded to binary32, is x; a value for which that would not hold (its clamp spans
 *  2^28 or more) is not clamped. Only Fprop adds the residual, after the bias: y[t][o] += rnd_f32(s), where s is the binary64 sum of the binary64
 *  products R[t][i] W[o][i] over the clamped i, ascending. A row of x in which nothing was clamped is left as it is. If Fprop is not quantised, x is
 *  neither clamped for it nor R added.
 *
 *  Source: arXiv 2509.17791 for the six operands; formats/train_keys.def names each technique's.
 *  Oracle: ref_linear_forward, ref_linear_backward (ref/linear.c), tests/test_linear.c. */
#ifndef MXGOLD_LINEAR_H
#define MXGOLD_LINEAR_H

#include "dense.h"
#include "gemm.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum { MX_Q1, MX_Q2, MX_Q3, MX_Q4, MX_Q5, MX_Q6, MX_OPERANDS };
enum { MX_FPROP, MX_DGRAD, MX_WGRAD, MX_PRODUCTS };
/** The name of a product of a linear layer: "fprop", "dgrad", "wgrad"; NULL for any other number. */
const char *mx_linear_product_name(int product);

/* Choices of formats/train_keys.def, in the order of their names there. */
enum { MX_REQUANT_HP, MX_REQUANT_FWD_DEQUANT, MX_REQUANT_REUSE };
enum { MX_DRAW_STEP, MX_DRAW_RUN, MX_DRAW_BACKWARD };
enum { MX_RANDOM_INDEPENDENT, MX_RANDOM_SHARED, MX_RANDOM_FROZEN, MX_RANDOM_COUNTER };
enum { MX_GRAD_OF_BOTH, MX_GRAD_OF_X, MX_GRAD_OF_W };
enum { MX_QPRIME_STE, MX_QPRIME_DGE, MX_QPRIME_BASELINE_COMPAT, MX_QPRIME_SPLINE };
enum { MX_GRAD_MASK_ALL, MX_GRAD_MASK_GRAPHCORE };
enum { MX_GRAD_STE, MX_GRAD_ABSMAX, MX_GRAD_SOFTMAX, MX_GRAD_HYBRID };
enum { MX_JACOBIAN_DIAG, MX_JACOBIAN_FULL };
enum { MX_GRAD_TIES_FIRST, MX_GRAD_TIES_ALL };
enum { MX_GRAD_TENSOR_IGNORE, MX_GRAD_TENSOR_ABSMAX, MX_GRAD_TENSOR_SOFTMAX };
enum { MX_SCALE_MASK_FIRST, MX_SCALE_MASK_GRAPHCORE };
enum { MX_OCC_ROW, MX_OCC_TENSOR }; /* occ.index: MX_OCC_SYMMETRIC, MX_OCC_MSAMP of ablate.h */
enum { MX_OCC_RESIDUAL_ON, MX_OCC_RESIDUAL_OFF };
enum { MX_OCC_WEIGHT_HP, MX_OCC_WEIGHT_Q };
enum { MX_RAMP_OFF, MX_RAMP_ON };
enum { MX_HIGH_F32, MX_HIGH_BF16 };

/** How a layer is quantised. The zero struct: all six operands plain OCP MXFP4, the products under f32_block. */
typedef struct mx_linear_recipe {
  mx_spec q[MX_OPERANDS];
  int off[MX_PRODUCTS];             /* 1: this product is not quantised */
  int model;                        /* MX_GEMM_* */
  const struct mx_mma_model *fused; /* of MX_GEMM_FUSED */
#define MX_TRAIN_CHOICE(field, ...) int field;
#define MX_TRAIN_REAL(field, ...) double field;
#include "../../formats/train_keys.def"
#undef MX_TRAIN_CHOICE
#undef MX_TRAIN_REAL
} mx_linear_recipe;

/** A recipe as text, as command lines and configurations give it. The zero struct is recipe-ocp. */
typedef struct mx_linear_text {
  const char *preset;          /* for all six operands; NULL: none */
  const char *recipe;          /* a row of formats/recipes.def instead; NULL: none */
  const char *const *set;      /* n_set times "KEY=VALUE ...", keys for all six */
  const char *const *operands; /* n_operands times "Qn:KEY=VALUE,..."; "Qn:preset=NAME,..." starts again from a preset */
  const char *const *train;    /* n_train times "KEY=VALUE,...", training keys */
  size_t n_set, n_operands, n_train;
  const char *gemms; /* the products that are quantised, "fprop,dgrad,wgrad"; NULL: all three; "": none */
  const char *accum; /* an accumulation model, or a matrix unit (mxgold models); NULL: f32_block */
} mx_linear_text;

/** Resolve a text to a recipe and check it. The order is: preset or recipe, set, the recipe's keys for single operands, sr.policy, operands. The training
 *  keys are those of the recipe, then train; sr.policy has done its work here, setting it later changes nothing.
 *  unit  memory for a matrix unit, at which out->fused then points; the caller keeps it as long as out
 *  Returns MX_OK; MX_ERR_KEY that names what is unknown and its nearest names; MX_ERR_CONFLICT, also where the model does not take the operands of a
 *  product.   Oracle: tests/test_linear.c */
mx_status mx_linear_resolve(mx_linear_recipe *out, struct mx_mma_model *unit, const mx_linear_text *text, mx_error *err);

/** Set a training key ("requant.source", "fwd_dequant"). MX_ERR_KEY names the nearest keys or the choices. */
mx_status mx_linear_set(mx_linear_recipe *recipe, const char *key, const char *value, mx_error *err);
/** Set keys from "key=value,key=value ..." (blanks or commas between). On error recipe is untouched. */
mx_status mx_linear_parse(mx_linear_recipe *recipe, const char *text, mx_error *err);

/** The index-th training key, NULL past the last: its name, meaning, source and its choices ("a|b|c", NULL for numbers). */
typedef struct mx_train_key {
  const char *name, *choices, *doc, *source;
  double fallback; /* the value that 0 stands for in a key that is a number */
} mx_train_key;
const mx_train_key *mx_train_key_at(size_t index);
/** Value of the index-th key in recipe as text, its default filled in. Returns the length as snprintf does. */
size_t mx_train_key_text(char *out, size_t size, const mx_linear_recipe *recipe, size_t index);

/** Can a layer follow this recipe? MX_OK, or MX_ERR_CONFLICT that names the operands and keys that exclude each other: rotations of a product's two
 *  operands that would not cancel, blocks along the reduction axis that differ, keys that mx_spec_check() refuses. */
mx_status mx_linear_check(const mx_linear_recipe *recipe, mx_error *err);

/** A matrix in the caller's memory: rows of ld elements, binary32 or bfloat16. */
typedef struct mx_linear_in {
  const void *data;
  size_t ld;
  mx_dtype dtype; /* MX_F32 or MX_BF16 */
} mx_linear_in;
/** The same for output: one RNE to dtype at the end. accumulate (binary32 only): the result is added to what the matrix holds, with one
 *  rounding per element. dx or dw whose data is NULL is not computed; y is always, and a NULL there is refused. */
typedef struct mx_linear_out {
  void *data;
  size_t ld;
  mx_dtype dtype;
  int accumulate;
} mx_linear_out;

/** How many values techniques changed in a call. */
typedef struct mx_linear_counts {
  uint64_t clamped; /* occ.alpha: elements of x */
  uint64_t steered; /* q2.ema: codes of Q2 that differ from those of rounding alone */
} mx_linear_counts;

/** Tensor scales of a layer's operands that are kept for several steps (tensor.hold). */
typedef struct mx_linear_hold {
  float scale[MX_OPERANDS]; /* as mx_tensor.tensor_scale; 0: none is held */
  int refresh; /* 1: this call computes the tensor scales and stores them here; 0: it uses the stored ones, as under tensor.given */
} mx_linear_hold;

/** One call of one layer. */
typedef struct mx_linear {
  const mx_linear_recipe *recipe;
  size_t T, I, O;
  uint64_t seed, step; /* step < 2^36 */
  uint32_t layer;      /* < 2^20 */
  /* Called when an operand has been quantised: q is MX_Q1 .. MX_Q6, tensor the result, spec what it was made with, its seed and signs filled
   * in. The tensor belongs to the layer and changes later. May be NULL. */
  void (*operand)(void *self, int q, const mx_tensor *tensor, const mx_spec *spec);
  void *self;
  mx_sgemm *sgemm;          /* computes products that are not quantised, see mx_dense; NULL: the chain */
  mx_linear_counts *counts; /* added to; may be NULL */
  /* q2.ema: the moving average [O][I] of W, by which Q2's elements are rounded; data NULL: they are rounded as Q2's spec says. Q2's scales are W's.
   * Let y be an element of W and e the same element of the average, both in units of the block's scale (what code 1 dequantises to) and times
   * elem.prescale. e is negated if y < 0, and 0 if y = 0. Let lo be the largest value of e2m1 that is not above |y|, and hi the next one. Then |q|
   * is lo if e lies below the middle of the two, otherwise hi. Elements that are not finite, or whose scale is not positive and finite, are rounded
   * as the spec says. */
  mx_linear_in ema;
  mx_linear_hold *hold; /* NULL: no tensor scale is held */
} mx_linear;

/** Bytes of memory that a call needs; they depend on the recipe, T, I, O and the number of threads.
 *  saved  kept from a forward call to its backward call. It holds Q4 and Q6 if they are made of the tensors themselves. It holds Q1 and Q2 if Q4 or Q6
 *         are made of them, or if gradient rules with derivatives of scales (grad.config, grad.tensor) read them, and only their scales if other
 *         gradient rules do.
 *  work   used during either call
 *  exec   may be NULL
 *  Returns MX_OK; MX_ERR_ARG (NULL); MX_ERR_CONFLICT as mx_linear_check(); MX_ERR_NOMEM (sizes that overflow).  Threads: reentrant. */
mx_status mx_linear_sizes(size_t *saved, size_t *work, const mx_linear *layer, const mx_exec *exec, mx_error *err);

/** y = x W^T + bias.
 *  y      [T][O]
 *  x, w   [T][I] and [O][I]; NaN and Inf are data, handled as the specs say
 *  bias   float32 [O]; NULL: none
 *  saved  kept for mx_linear_backward(); NULL: no backward call will follow
 *  work   may be used again for the next call
 *  Returns MX_OK; MX_ERR_ARG (NULL, a dtype other than MX_F32 and MX_BF16, step or layer too large); MX_ERR_CONFLICT (mx_linear_check());
 *  MX_ERR_SHAPE (ld too short); MX_ERR_DATA (a value that a spec refuses).
 *  Threads: reentrant if each call has its own saved and work; the same bits for any number of threads and any ISA. */
mx_status mx_linear_forward(const mx_linear *layer, mx_linear_out y, mx_linear_in x, mx_linear_in w, const float *bias, void *saved, void *work,
                            const mx_exec *exec, mx_error *err);

/** The gradients of the call that filled saved: dx = dy W [T][I], dw = dy^T x [O][I], and db [O], the sum of dy's rows with t ascending (NULL: not
 *  computed; with dw.accumulate it is added to what db holds). x, w, layer: as in that call. Errors and threads as for mx_linear_forward(). */
mx_status mx_linear_backward(const mx_linear *layer, mx_linear_out dx, mx_linear_out dw, float *db, mx_linear_in dy, mx_linear_in x,
                             mx_linear_in w, void *saved, void *work, const mx_exec *exec, mx_error *err);

/** The slopes that a recipe's gradient rules use for the rounding of elements, Q', and of scales, q', for drawing them as curves.
 *  out, v, s  [n]; v scaled values, s the numbers that are rounded to scales; out may be v or s
 *  elem       MX_ELEM_*; scale MX_SCALE_*: the format that is rounded to
 *  Returns MX_OK; MX_ERR_ARG (NULL, no format); MX_ERR_CONFLICT (a number among the gradient keys). Threads: reentrant, on the calling one.
 *  Source: arXiv 2501.17116, 2509.17791; SPEC "Gradient rules".   Oracle: ref_qprime, ref_scale_qprime, tests/test_gradient.c */
mx_status mx_linear_slopes(double *out, const double *v, size_t n, const mx_linear_recipe *recipe, int elem, mx_error *err);
mx_status mx_linear_scale_slopes(double *out, const double *s, size_t n, const mx_linear_recipe *recipe, int scale, mx_error *err);

/** The seed of an operand's random words (slot MX_Q1 .. MX_Q6), or of a product's signs (slot 8 + MX_FPROP ..): words 2i and 2i + 1 of stream 5, the
 *  low word first, i = step * 2^24 + layer * 2^4 + slot.   Oracle: tests/test_linear.c against ref_random. */
uint64_t mx_linear_seed(uint64_t seed, uint64_t step, uint32_t layer, unsigned slot);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
