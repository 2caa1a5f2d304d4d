/* Declares how a whole operand of the product is decoded into numbers. */
#ifndef REF_GEMM_READ_H
#define REF_GEMM_READ_H

#include "gemm.h"

typedef struct ref_matrix {
  size_t rows, K, block, kb;
  double *elem;  /* [rows][K], exact */
  double *scale; /* [rows][kb], 1 without scales */
  int divides;   /* encode form: elements are divided by their scale */
  double multiplier;
  /* The same as stored, for matrix-unit models, which look at encodings. */
  const mx_format *elem_format, *scale_format; /* scale_format NULL: none */
  int encode, scale_signed;
  uint64_t *code;       /* [rows][K] */
  uint64_t *scale_code; /* [rows][kb] */
  int *micro;           /* [rows][K]: log2 of the micro-scale */
} ref_matrix;

/* The block's extent along K: 32 by default, K if it is the whole axis; and along the rows. */
void ref_block_of(const mx_spec *spec, const mx_tensor *t, size_t *along_rows, size_t *along_k);
mx_status ref_matrix_of_tensor(ref_matrix *m, const mx_tensor *t, const mx_spec *spec, size_t block, size_t row0, size_t rows);
mx_status ref_matrix_of_operand(ref_matrix *m, const mx_gemm_problem *p, const mx_gemm_operand *x, int is_b, size_t batch_index);
void ref_matrix_free(ref_matrix *m);

#endif
