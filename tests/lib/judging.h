/* Declares products that are wrong on purpose, and checks of what mx_judge() says of them. */
#ifndef TESTS_JUDGING_H
#define TESTS_JUDGING_H

#include "mxgold/judge.h"
#include "mxgold/mxgold.h"

enum { M = 48, N = 48, K = 144 }; /* K: four blocks and a half */

/** Operands of m x k and n x k. */
typedef struct fixture {
  mx_spec spec;
  mx_tensor a, b;
  size_t m, n, k;
} fixture;

/** keys of a spec, or "@PRESET". */
void begin(fixture *f, const char *keys, size_t m, size_t n, size_t k);
void end(fixture *f);
mx_tensor copy(const mx_tensor *t, const mx_spec *s);
/** Every scale of a tensor squared: e8m0, 2^(c - 127). */
void twice(mx_tensor *t);
/** a x b^T of the fixture's sizes, to be freed. */
float *product(const fixture *f, const mx_tensor *a, const mx_tensor *b, const mx_gemm_options *o);
/** What mx_judge() says of d against the fixture's own operands; the last one is overwritten. */
const mx_judgement *judge(const fixture *f, const void *d, const mx_gemm_options *o, const mx_judge_options *how);
/** The first finding has these words, leaves nothing, and is bit for bit under `model` (NULL: any). */
void named(const mx_judgement *j, const char *words, const char *model);
/** A line of where has these words. */
void where(const mx_judgement *j, const char *words);

#endif
