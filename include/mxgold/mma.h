/** Computes D = A x B^T + C bit for bit as the matrix unit of a named device does.
 *
 *  A model is a row of formats/: an instruction of an architecture (formats/instructions.def), which knows its shape, its types and how its
 *  groups chain, or an accumulation model (formats/accumulation.def). mx_mma_model_find() turns a name into an mx_mma_model; mx_mma() runs it.
 *  Each row states what it was compared with: mx_mma_model.held.
 *  Source: docs/reference/SPEC.md section 4.   Oracle: ref_mma (ref/mma.c), tests/test_mma.c, tests/mma_sim/. */
#ifndef MXGOLD_MMA_H
#define MXGOLD_MMA_H

#include <stddef.h>
#include <stdint.h>

#include "format.h"
#include "quantize.h"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum {
#define MX_ACCUM_VALUE(field, id, number, text, doc) id = number,
#include "../../formats/accumulation_keys.def"
  MX_ACC_F_EXACT = -1,      /* mx_accum.F: nothing is cut */
  MX_ACC_NUMBER_0 = -65536, /* mx_accum.floor, c_drop, out_bits: the number 0, where a field of 0 is "none" or "type" */
};

/** Parameters of an accumulation model; formats/accumulation_keys.def says what each means and lists the values. {0} with an F is a plain
 *  truncating fused sum of the whole instruction: a field of 0 is the default of its key. For three keys the default is not a number and 0 is a
 *  value of its own: floor=0, c_drop=0 and out_bits=0 are MX_ACC_NUMBER_0 in their fields. Every other number stands for itself. */
typedef struct mx_accum {
#define MX_ACCUM_INT(field, ...) int field;
#define MX_ACCUM_ENUM(field, doc) int field;
#include "../../formats/accumulation_keys.def"
} mx_accum;

/** A model that is ready to run. It is plain data: a caller may change any field, and mx_mma() checks the whole. */
typedef struct mx_mma_model {
  char name[96];                  /* as found, overrides included where they fit */
  const char *accum_name;         /* row of accumulation.def it started from */
  const char *held;               /* what the row was compared with; a model with overrides says so */
  const char *source;             /* where the row comes from */
  mx_accum accum;                 /* parameters */
  const mx_format *a, *b, *c, *d; /* rows of elements.def or operands.def; c is the C tensor's, the accumulator has type d */
  const mx_format *scale;         /* row of scales.def; NULL: operands have no scales */
  int block;                      /* elements along K that share a scale */
  int m, n, k;                    /* shape of the instruction; m = n = 0: none. k = 0: the whole of K is one instruction */
  int whole_k;                    /* K must be a multiple of k (instructions); otherwise the last one may be short */
} mx_mma_model;

/** Find a model by text: NAME or NAME:KEY=VALUE,KEY=VALUE,...
 *  NAME   ARCH/INSTRUCTION ("hopper/wgmma_m64n8k32_f32_e4m3_e5m2") or a row of accumulation.def ("fused", "hopper_f16").
 *  KEY    a field of mx_accum; out=f32rz, e8m13rz, f16rne, ... (type, bits and rounding of D at once); a, b, ab, c, d (types), scale, block, k;
 *         accum=ROW (other parameters for the same instruction); rules=h200|mmasim (a set of keys).
 *  Keys act in the order given. A row of accumulation.def has a k too: its L (twice that with order=pairs in the row), and L=... sets k to the
 *  same number. For another k, or for all of K as one instruction (k=0), give k after L. This matters for join=add and order=pairs.
 *  Returns MX_OK; MX_ERR_KEY (no such row, key or value: err names it and the nearest); MX_ERR_CONFLICT (as mx_mma_model_check).
 *  Threads: reentrant.   Oracle: tests/test_mma_model.c */
mx_status mx_mma_model_find(mx_mma_model *out, const char *text, mx_error *err);

/** Check that the fields of a model fit together, as mx_mma() requires. MX_OK, or MX_ERR_CONFLICT with the reason. */
mx_status mx_mma_model_check(const mx_mma_model *model, mx_error *err);

/** The table, for listing: accumulation rows first, then every instruction (one name per combination of types). Index from 0; MX_ERR_ARG past
 *  the end, with *out untouched. */
size_t mx_mma_model_count(void);
mx_status mx_mma_model_at(mx_mma_model *out, size_t index);

/** Write L, F and the parameters that differ from their defaults as "KEY=VALUE,..." into text (at most size bytes with the NUL). After
 *  "fused:", mx_mma_model_find() reads the same parameters back. */
void mx_accum_text(char *text, size_t size, const mx_accum *accum);

/** Bytes that n elements along K take: two elements per byte for 4-bit types (low nibble = even k; if n is odd the last high nibble is not
 *  read), otherwise 1, 2, 4 or 8 bytes each. */
size_t mx_mma_bytes(const mx_format *type, size_t n);

/** Operands of mx_mma(): dense, row-major raw bits. */
typedef struct mx_mma_args {
  size_t T, M, N, K;   /* tiles, rows, columns, depth; none has to be that of the instruction */
  const void *a;       /* [T][M][K] of type a; 4-bit types packed, each row starting on a byte, (K + 1) / 2 bytes */
  const void *b;       /* [T][N][K] of type b */
  const void *c;       /* [T][M][N] of type c; NULL: the sums start from nothing (scale-d 0) */
  const void *scale_a; /* [T][M][ceil(K/block)] bytes; NULL if and only if the model has no scales */
  const void *scale_b; /* [T][N][ceil(K/block)] bytes */
} mx_mma_args;

/** D[t] = A[t] x B[t]^T + C[t] under a model, in the bits of the device.
 *  d        [T][M][N] raw bits of type model->d. May be args->c if both have the same type.
 *  model    from mx_mma_model_find(), or filled by the caller.
 *  args     operands; NaN, Inf and subnormals are data. The sign bit of an e4m3 scale is masked.
 *  exec     threads, and ISAs switched off (most fused models use AVX-512); NULL: {0}.
 *  Returns MX_OK; MX_ERR_ARG (NULL operand, missing or unexpected scales); MX_ERR_SHAPE (K not a multiple of the instruction's k, or sizes
 *  overflow); MX_ERR_CONFLICT (mx_mma_model_check); MX_ERR_NOMEM. On error d is untouched, except MX_ERR_NOMEM.
 *  Threads: reentrant; the same bits for any number of threads and any ISA.
 *  Source: docs/reference/SPEC.md section 4 and the row's own.   Oracle: ref_mma, tests/test_mma.c */
mx_status mx_mma(void *d, const mx_mma_model *model, const mx_mma_args *args, const mx_exec *exec, mx_error *err);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
