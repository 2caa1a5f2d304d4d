/* Declares how what mxgold diff found is printed. */
#ifndef CLI_VERIFY_DIFF_PRINT_H
#define CLI_VERIFY_DIFF_PRINT_H

#include "mxgold/verify.h"

/** layout: of B's scales, if it was another; list: d->n_listed elements; kernel: A is what was expected and B the reader's kernel, and are called so;
 *  verdict: a sentence, or ""; answer: of identify in JSON, or NULL. As out_print(). */
int diff_print(const mx_difference *d, const mx_spec *spec, const char *layout, const mx_diff_example *list, int has_input, int kernel,
               const char *verdict, const char *answer, int json);

#endif
