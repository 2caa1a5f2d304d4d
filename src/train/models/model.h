/* Declares a model: named parameters in one array, linears that may be quantised, a forward and a backward pass.
 *
 * Memory is taken once, when the model is made; a step allocates nothing. Parameters, gradients and optimiser state are flat float32 arrays with the
 * same layout; each matrix is [out][in]. */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include "mxgold/linear.h"

enum { MXI_NAME = 80 };

typedef enum mxi_model_kind { MXI_LLAMA, MXI_GPT2, MXI_BYTE_MLP, MXI_GAUSSIAN, MXI_DIGITS, MXI_DIFFUSION, MXI_MODEL_KINDS } mxi_model_kind;
typedef enum mxi_act { MXI_GELU_TANH, MXI_GELU_ERF, MXI_SILU, MXI_ACTS } mxi_act;

typedef struct mxi_model_config {
  mxi_model_kind kind;
  size_t width, layers, heads, ffn, context, vocab;
  size_t inputs; /* of models of rows: numbers in a row; vocab are their classes */
  int bias, tied, smooth;
  mxi_act act;
} mxi_model_config;

/* One parameter. A vector has n_dims 1 and cols 1. */
typedef struct mxi_param {
  char name[MXI_NAME];
  size_t rows, cols, offset;
  int n_dims;
  double init; /* standard deviation; 0: zeros; 1 of vectors named as gains: ones */
  int ones;
  int even; /* drawn evenly from (-init, init) instead */
} mxi_param;

/* One linear of the model. Its recipe is the run's, or the plain one where it stays in high precision. */
typedef struct mxi_model_linear {
  char name[MXI_NAME];
  int weight, bias; /* parameters; bias -1: none */
  size_t T, I, O;
  const mx_linear_recipe *recipe;
  size_t block; /* of the model's n_blocks */
  int high;     /* it stays in high precision: its recipe is not the run's */
  void *saved;
  size_t saved_bytes;
  float *kept_x, *kept_w; /* what Fprop made of x and W, [T] and [O][kept_ld], for late switches; NULL: nothing is kept */
  size_t kept_ld;
  int kept_raw;  /* Fprop quantises neither, so that a late switch to bfloat16 has x and W themselves rounded there */
  float *smooth; /* of Smooth-SwiGLU: scales [I], x and w scaled [T][I], [O][I], the gradient of the latter; NULL: none */
} mxi_model_linear;

/* Products that a late switch has put into high precision: Dgrad and Wgrad, from what Fprop quantised; or all, from the matrices themselves. */
typedef enum mxi_late { MXI_LATE_NONE, MXI_LATE_BACKWARD, MXI_LATE_ALL } mxi_late;

typedef struct mxi_batch {
  size_t B, T;           /* sequences, positions of each */
  size_t rows;           /* of the B, those that count in an evaluation: the first */
  const int32_t *tokens; /* [B][T], of a byte MLP [B][context] */
  const int32_t *target; /* [B][T], of a byte MLP and of classes [B] */
  const float *x, *y;    /* models of rows: [B][inputs], and what is to be predicted, [B][outputs] */
} mxi_batch;

/* What a pass shows: the output of a part of the model, or the gradient of the loss with respect to it. */
typedef enum mxi_shown { MXI_OUTPUT, MXI_OUTPUT_GRADIENT } mxi_shown;

typedef struct mxi_model mxi_model;
typedef mx_status mxi_pass(mxi_model *m);

struct mxi_model {
  mxi_model_config config;
  size_t B;        /* sequences of a step */
  mx_sgemm *sgemm; /* computes the linears and the head where they are not quantised; NULL: mx_dense_gemm()'s chain */
  mx_exec exec;    /* with a workspace of the model's own */
  mxi_param *params;
  mxi_model_linear *linears;
  size_t n_params, n_linears, n_values, n_blocks;
  float *w, *g;            /* parameters and gradients, [n_values] */
  const float *ema;        /* a moving average of the weights, which q2.ema rounds by, [n_values]; NULL: none yet */
  mx_linear_hold *holds;   /* [n_linears], of tensor.hold; NULL: none */
  mx_linear_counts counts; /* of forward passes that are trained on */
  float *dloss;            /* the gradient of the loss that a forward pass leaves, [n_dloss] */
  size_t n_dloss;
  float loss_scale; /* which the backward pass multiplies it by */
  /* Of the call in progress: */
  mxi_batch batch;
  uint64_t seed, step;
  int evaluate; /* 1: no backward call follows; 2: in the FP32 chain too */
  double loss;
  size_t hits; /* rows of an evaluation whose largest output is the label's */
  mx_error *err;
  /* Memory. */
  void **rooms;                /* what mxi_model_take() gave */
  size_t n_rooms, taken, most; /* bytes that were taken, and that there are; most 0: not looked at */
  int no_memory;               /* something was not there, or more than there is was asked for */
  void *work;                  /* of linears, products and attention */
  size_t work_bytes;
  void *own; /* the kind's activations */
  mxi_pass *forward, *backward;
  /* Called by the passes with what they have made, in the order in which they make it: what it is, of which part of the model, n values; may be
   * NULL. */
  void (*show)(void *self, mxi_shown what, const char *name, const float *x, size_t n);
  void *show_self;
  /* Called with a linear before its backward call; may be NULL. */
  void (*watch)(void *self, size_t index, const float *dy, const float *x, int wants_dx);
  void *watch_self;
  mxi_late late;
  const mx_linear_recipe *late_recipe; /* of these products, in linears that are quantised: the plain one, or one that rounds its operands */
  float *late_dy;                      /* dy rounded so, [T][O] of the largest; NULL: nothing is rounded */
  int exact_backward;                  /* 1: Dgrad and Wgrad see the raw matrices, in the FP32 chain */
  size_t under_way;                    /* the linear whose operands mxi_model_keep_operand() sees */
  mx_status kept_status;               /* its first error */
};

/** Make a model with its memory. Parameters are zero until mxi_model_init() or a file fills them. recipe: of every linear; NULL: none is quantised.
 *  Every error has a line. */
mx_status mxi_model_new(mxi_model **out, const mxi_model_config *config, size_t B, const mx_linear_recipe *recipe, const mx_exec *exec,
                        mx_error *err);
void mxi_model_free(mxi_model *m);
/** Draw the parameters: value i of parameter p is a function of (seed, p, i) alone. */
void mxi_model_init(mxi_model *m, uint64_t seed);
/** The loss of a batch; and with it its gradients, which are added to g. evaluate: as in struct mxi_model. */
mx_status mxi_model_forward(mxi_model *m, const mxi_batch *batch, uint64_t seed, uint64_t step, int evaluate, double *loss, mx_error *err);
mx_status mxi_model_backward(mxi_model *m, mx_error *err);

/* What the kinds are made of. */
size_t mxi_model_param(mxi_model *m, double init, int ones, size_t rows, size_t cols, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/** A linear of the block under way; mxi_model_block_end() ends that. */
size_t mxi_model_linear_add(mxi_model *m, size_t T, size_t I, size_t O, int weight, int bias);
void mxi_model_block_end(mxi_model *m);
/** Shows n values of the part of that name to whoever asked for it. */
void mxi_model_show(const mxi_model *m, mxi_shown what, const float *x, size_t n, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/** The recipe of a linear that is not quantised, and a linear's call under a recipe. */
const mx_linear_recipe *mxi_model_plain(void);
mx_linear mxi_model_call(const mxi_model *m, size_t index, const mx_linear_recipe *recipe);
/** The bytes of memory that this process may have at most: of the machine, or of its control group. */
size_t mxi_memory_of_machine(void);
void *mxi_model_take(mxi_model *m, size_t n, size_t size);
float *mxi_model_floats(mxi_model *m, size_t n);
/** How many of a call's N targets count: all, except in the last batch of an evaluation. */
size_t mxi_model_counted(const mxi_model *m, size_t N);
/** Makes the work memory at least so many bytes large. */
void mxi_model_work(mxi_model *m, size_t bytes);
mx_status mxi_model_linear_forward(mxi_model *m, size_t index, float *y, const float *x);
/** dx is written (NULL: it is not computed), or added to; the gradients of the weight and the bias are added. */
mx_status mxi_model_linear_backward(mxi_model *m, size_t index, float *dx, int add, const float *dy, const float *x);
/** Smooth-SwiGLU. _floats: how many a linear needs. _forward: *x and *w become scaled copies. _gradient: where the gradient of the scaled w is to
 *  go; _backward: dx becomes that of x, and dw is added that of w. */
size_t mxi_smooth_floats(const mxi_model_linear *l);
void mxi_smooth_forward(const mxi_model *m, size_t index, const float **x, const float **w);
float *mxi_smooth_gradient(const mxi_model *m, size_t index);
void mxi_smooth_backward(const mxi_model *m, size_t index, float *dx, float *dw);
/** Makes the work memory large enough for the head of N positions, C wide, over V tokens. */
void mxi_model_head_work(mxi_model *m, size_t N, size_t C, size_t V);
/** The head: logits = x W^T in the FP32 chain, its gradients, and the loss. dx is written. */
mx_status mxi_model_head(mxi_model *m, float *logits, const float *x, size_t weight, size_t N);
mx_status mxi_model_head_backward(mxi_model *m, float *dx, const float *dlogits, const float *x, size_t weight, size_t N);

/** Keeps the linears that `wanted` [n_linears] names in high precision: under the plain recipe, or another that must live as long as the model. */
mx_status mxi_model_keep_high(mxi_model *m, const unsigned char *wanted, const mx_linear_recipe *recipe, mx_error *err);
/** Sets the recipe by which quantised linears compute the products that m->late names: plain or recipe-bf16, which must live as long as the
 *  model; plain without this call. */
mx_status mxi_model_late(mxi_model *m, const mx_linear_recipe *recipe, mx_error *err);
/** Makes quantised linears keep what Fprop makes of x and W. Returns 0, or another number if there is no memory. */
int mxi_model_keep_quantised(mxi_model *m);
/** An mx_linear.operand: self is the model. */
void mxi_model_keep_operand(void *self, int q, const mx_tensor *tensor, const mx_spec *spec);

mx_status mxi_llama_new(mxi_model *m);
mx_status mxi_gpt2_new(mxi_model *m);
mx_status mxi_byte_mlp_new(mxi_model *m);
mx_status mxi_mlp_new(mxi_model *m); /* gaussian, digits, diffusion */

#endif
