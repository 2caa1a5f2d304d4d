/* Declares the common options of `gemm` and `diff --gemm`, which say a product alpha * A x B^T + beta * C + bias. */
#ifndef CLI_SPEC_PRODUCT_H
#define CLI_SPEC_PRODUCT_H

#include "cli/base/cli.h"
#include "cli/spec/family.h"
#include "mxgold/file.h"

typedef struct product_form {
  const char *accum, *c, *bias, *type, *sums;
  cli_f32 alpha, beta;
  cli_u64 bits, fraction, threads;
} product_form;

/** Rows of a command whose struct S has a product_form P. WITH goes before what help says of each: "" or "with --gemm: ". The row of
 *  --accum and what help says of --out are the command's own; --bound is written or asked, and each command has its own row of that too. */
#define PRODUCT_FAMILY_OPTIONS(S, P)                                                                                                           \
  {"bound-bits", 0,                                                                                                                            \
   CLI_U64,      offsetof(struct S, P.bits),                                                                                                   \
   "P",          "significant bits that a partial sum keeps in that family, 1 to 24; 24 by default",                                           \
   NULL},                                                                                                                                      \
      {"bound-fraction",                                                                                                                       \
       0,                                                                                                                                      \
       CLI_U64,                                                                                                                                \
       offsetof(struct S, P.fraction),                                                                                                         \
       "F",                                                                                                                                    \
       "fractional bits that a term keeps when it is aligned, at least 1; all by default",                                                     \
       NULL},                                                                                                                                  \
  {                                                                                                                                            \
    "bound-sums", 0, CLI_STRING, offsetof(struct S, P.sums), "TYPE", "type whose range partial sums have there; f32 by default", family_sums   \
  }
#define PRODUCT_OPTIONS(S, P, WITH, OUT)                                                                                                       \
  {"c", 0, CLI_STRING, offsetof(struct S, P.c), "C.npy", WITH "C, [M][N] of f32, f16 or bf16", NULL},                                          \
      {"bias", 0, CLI_STRING, offsetof(struct S, P.bias), "BIAS.npy", WITH "one f32 per column of D", NULL},                                   \
      {"alpha", 0, CLI_F32, offsetof(struct S, P.alpha), "X", WITH "factor of the product; 1 by default", NULL},                               \
      {"beta", 0, CLI_F32, offsetof(struct S, P.beta), "X", WITH "factor of C; 1 by default", NULL},                                           \
      {"out", 0, CLI_STRING, offsetof(struct S, P.type), "TYPE", WITH OUT, product_types}, {                                                   \
    "threads", 0, CLI_U64, offsetof(struct S, P.threads), "N", "threads to use; all processors by default", NULL                               \
  }

/** Choices of --out, as those of an option. */
const char *product_types(size_t index);
/** Says which factor cannot be meant and returns CLI_TROUBLE: one that is not finite, which would make all of D NaN or Inf, or a beta without C. */
int product_factors(const char *command, const product_form *p);
/** The vector of --bias, one a column of D, the caller's to free; *file is open as long as the caller wants. NULL after saying why. */
float *product_bias(mx_file **file, const char *path, size_t cols);

#endif
