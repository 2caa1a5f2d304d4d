/** Judges a product that a kernel made: is it right, and if not, what was computed instead?
 *
 *  mx_judge() computes D under every accumulation model, then under every variant of the problem that it knows (a scale applied twice, scales
 *  transposed, the last K block lost, alpha forgotten, D transposed, truncated outputs, ...), and reports which of them gives the same bits. Expected
 *  bits come from mx_gemm_raw() alone, except for orders of summation that no model has. */
#ifndef MXGOLD_JUDGE_H
#define MXGOLD_JUDGE_H

#include "gemm.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum { MX_JUDGE_MODELS = 96, MX_JUDGE_FINDINGS = 6, MX_JUDGE_REGIONS = 8, MX_JUDGE_MAP = 64 };

/** How D is judged. With {0}, D is right if it equals any model; NaN equals NaN, and -0 differs from +0. */
typedef struct mx_judge_options {
  const char *model; /* "f32_block", a row of accumulation.def, or "ROW:KEY=VALUE,..." (mma.h): D is right if it equals this one. NULL: any */
  int bound;         /* 1: D is right if each output lies in its interval of mx_gemm_bound() */
  mx_gemm_family family;
  int nan_bits, equal_zeros;
} mx_judge_options;

/** How far D is from one accumulation model. */
typedef struct mx_judge_model {
  char name[64];
  uint64_t compared, differ; /* outputs; compared is a sample where the sample already differed */
  int bits; /* significant bits of its accumulator if that is narrower than binary32 and not that of the operands' own unit; else 0 */
} mx_judge_model;

/** One thing that was computed instead. */
typedef struct mx_finding {
  char what[200];
  char model[64];     /* under which the bits agree; "" if they agree to rounding alone */
  uint64_t explained; /* outputs that differ from the base but not from this */
  uint64_t unexplained;
  uint64_t breaks; /* right outputs, in rows and columns with wrong ones, that this would have changed too: it acts only where D is wrong */
} mx_finding;

/** One output of D that differs. */
typedef struct mx_judge_example {
  size_t row, col;
  double want, got, lo, hi; /* lo, hi: the interval, with bound */
  double ulps;              /* |want - got| in ulps of the output type at want */
} mx_judge_example;

/** The verdict on a product, and what it rests on. */
typedef struct mx_judgement {
  int equal;
  size_t M, N, K;
  uint64_t outputs, differ;                  /* outputs of D; those that differ from the base or lie outside the interval */
  char base[64];                             /* the model that D is compared with: the one asked for, or the nearest */
  uint64_t nan_wrong, inf_wrong, zero_signs; /* among `differ`: NaN (Inf) in only one of the two; +0 for -0 */
  uint64_t ulps[8];                          /* differ by up to 1, 2, 4, 16, 256, 65536 ulps, by more, by NaN or Inf */
  uint64_t inside;                           /* outputs inside the widest interval of plain binary32 summation (without bound: informative) */
  mx_judge_model models[MX_JUDGE_MODELS];
  int n_models;
  mx_finding findings[MX_JUDGE_FINDINGS]; /* best first */
  int n_findings;
  char regions[MX_JUDGE_REGIONS][160]; /* where D differs, in words */
  int n_regions;
  uint32_t map[MX_JUDGE_MAP][MX_JUDGE_MAP]; /* differing outputs over D */
  mx_judge_example first, worst;
} mx_judgement;

/** Judge D.
 *  d        [M][N] of type gemm->out, dense (ldd = N), not aligned to more than its type.
 *  a, b, specs, gemm  as mx_gemm(); gemm->model and gemm->fused are not read, batch must be 0 or 1.
 *  options  NULL: {0}.
 *  Returns MX_OK whatever the verdict; MX_ERR_KEY (model unknown: the nearest are named); and the errors of mx_gemm().
 *  Threads: gemm->exec; the verdict does not depend on it. Memory: three times D, and 8 bytes a scale.
 *  Source: SPEC section 4.   Oracle: tests/test_judge*.c inject each bug. */
mx_status mx_judge(mx_judgement *out, const void *d, const mx_tensor *a, const mx_spec *a_spec, const mx_tensor *b, const mx_spec *b_spec,
                   const mx_gemm_options *gemm, const mx_judge_options *options, mx_error *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
