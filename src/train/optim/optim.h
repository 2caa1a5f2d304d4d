/* Declares optimisers over flat arrays of parameters, learning-rate schedules, and the norm of the gradients. */
#ifndef TRAIN_OPTIM_H
#define TRAIN_OPTIM_H

#include "train/models/model.h"

typedef enum mxi_optim_kind { MXI_ADAMW, MXI_ADAM, MXI_SGD, MXI_STABLESPAM, MXI_OPTIMS } mxi_optim_kind;
typedef enum mxi_reset_order { MXI_RESET_GRAPHCORE, MXI_RESET_OFFICIAL } mxi_reset_order;

typedef struct mxi_optim_config {
  int kind; /* mxi_optim_kind */
  double lr, beta1, beta2, eps, weight_decay, clip, momentum;
  double theta, gamma1, gamma2; /* of StableSPAM */
  size_t reset;                 /* its steps between resets of the moments; 0: none */
  int reset_order;              /* mxi_reset_order */
} mxi_optim_config;

/* Dynamic scaling of the loss. */
typedef struct mxi_loss_scale {
  double scale, backoff; /* of the gradients of the backward pass; by which it falls at an overflow */
  uint64_t growth, good; /* good steps after which it doubles, and those since the last change */
} mxi_loss_scale;
/** Adapts the scale after a step whose gradients overflowed, or did not. */
void mxi_loss_scale_after(mxi_loss_scale *s, int overflow);
/** Are all gradients finite? */
int mxi_gradients_are_finite(const mxi_model *m);

/* The moving average of the weights of linears (q2.ema): E = decay E + (1 - decay) W, each operation rounded to binary32. */
typedef struct mxi_ema {
  float *w; /* [n_values], those of linears; NULL: none */
  double decay;
  uint64_t steps; /* of the optimiser since it began as the initial weights */
} mxi_ema;
enum { MXI_EMA_BEGINS = 10 }; /* steps after which Fprop looks at it */
void mxi_ema_step(mxi_ema *e, const mxi_model *m);

/* The factors of one step of Adam, rounded to binary32: m = keep1 m + take1 g, v = keep2 v + take2 g g, w -= rate m / (sqrt(v) / root2 + eps). */
typedef struct mxi_adam {
  float keep1, take1, keep2, take2, root2, eps, rate, decay;
} mxi_adam;

/* Q-Ramping (keys ramp.*): elements of some weights have periods of their own. */
typedef struct mxi_ramp_config {
  double k1, k2, every;
  size_t steps;
} mxi_ramp_config;
typedef struct mxi_ramp {
  mxi_ramp_config config;
  unsigned char *of;           /* [n_params]: has this parameter periods? NULL: none has */
  float *sum, *count, *period; /* [n_values]: of the gradients since an element's last update, how many they are, and its period, 1 at first */
  int rehearses;               /* 1: steps are run as without */
} mxi_ramp;
/** The period of an element that moved this far while its quantised value moved `jumped`. */
float mxi_ramp_period(float moved, float jumped, const mxi_ramp_config *c);
/** Adds how far n elements, and their quantised values, have moved. */
void mxi_ramp_moves(float *moved, float *jumped, const float *before, const float *w, const float *q_before, const float *q, size_t n,
                    const mx_exec *exec);
/** One step of AdamW for the n elements of a parameter at `offset`: decay and gradient are taken in every step, the update only when an element's
 *  period ends. A gradient that is not finite is not added. */
void mxi_ramp_step(mxi_ramp *r, size_t offset, size_t n, float *w, const float *g, float *m, float *v, mxi_adam a, const mx_exec *exec);
/** Can these periods and counts come from a run? */
int mxi_ramp_is_sound(const mxi_ramp *r, const mxi_model *m);
/** How many elements have a period above 1. */
uint64_t mxi_ramp_slowed(const mxi_ramp *r, const mxi_model *m);

/* What is kept from step to step. */
typedef struct mxi_optim {
  mxi_optim_config config;
  float *m, *v;        /* moments, [n_values]; SGD: m alone, of momentum */
  double *clip, *norm; /* of StableSPAM: M, and pairs of a and b, one a parameter */
  uint64_t t;          /* steps since the moments began, from 1 during a step */
  uint64_t total;      /* steps in all */
  mxi_loss_scale loss;
  mxi_ema ema;
  mxi_ramp ramp;
} mxi_optim;

/** One step over all parameters w by their gradients g. lr is the schedule's. g may be changed (StableSPAM clips it). */
void mxi_optim_step(mxi_optim *o, mxi_model *m, double lr);
/** beta^n by squaring, the same bits everywhere. */
double mxi_power(double beta, uint64_t n);

/** The Euclidean norm of all gradients, in binary64: parameters in their order, each summed as mx_math_row_sums() does. */
mx_status mxi_gradient_norm(double *norm, const mxi_model *m);
/** Scales the gradients so that their norm is at most `most`: by most / (norm + 1e-6), as torch's clip_grad_norm_. */
void mxi_gradient_clip(mxi_model *m, double norm, double most);

typedef enum mxi_schedule_kind { MXI_CONSTANT, MXI_LINEAR, MXI_COSINE, MXI_SCHEDULES } mxi_schedule_kind;
typedef struct mxi_schedule {
  int kind;
  size_t warmup, decay_steps;
  double min_lr;
} mxi_schedule;
/** The learning rate of step t (from 1) of `steps`; peak is the optimiser's lr. */
double mxi_schedule_rate(const mxi_schedule *s, double peak, uint64_t t, uint64_t steps);

#endif
