/* Feeds any bytes to the pipe protocol, as `mxgold verify -` reads a program's answer. Text that parses is compared with what its header asks for, or
 * refused with one line; the right answer must be accepted. */
#include <stdlib.h>
#include <string.h>

#include "mxgold/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

#define MUST(what)                                                                                                                             \
  do {                                                                                                                                         \
    if (!(what)) abort();                                                                                                                      \
  } while (0)

static void refused(mx_status s, const mx_error *err) { MUST(s && err->status == s && *err->text && !strchr(err->text, '\n')); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
  mx_vectors got, want = {0};
  mx_vectors_count count[MX_VECTOR_COLUMNS];
  mx_error err = {MX_OK, ""};
  mx_status s = mx_vectors_parse(&got, "fuzz", data, n_bytes, &err);
  if (s) {
    refused(s, &err);
    return 0;
  }
  /* As two files with any columns. */
  s = mx_vectors_compare(count, &got, &got, 1, &err);
  if (s)
    refused(s, &err);
  else
    for (size_t i = 0; i < got.n_columns; i++) MUST(count[i].differ == 0 && count[i].compared == got.n_cases * got.columns[i].count);
  /* As a pipe. A fuzzer's inputs are small, but a spec may still ask for large rotations. */
  s = mx_vectors_expected(&want, &got, &err);
  if (s)
    refused(s, &err);
  else {
    for (int nan_bits = 0; nan_bits < 2; nan_bits++) {
      s = mx_vectors_compare(count, &want, &got, nan_bits, &err);
      if (s)
        refused(s, &err);
      else
        for (size_t i = 0; i < want.n_columns; i++)
          MUST(count[i].differ <= count[i].compared && (!count[i].differ || count[i].first_case < want.n_cases));
      MUST(mx_vectors_compare(count, &want, &want, nan_bits, &err) == MX_OK);
      for (size_t i = 0; i < want.n_columns; i++) MUST(!count[i].differ);
    }
    mx_vectors_free(&want);
  }
  mx_vectors_free(&got);
  return 0;
}
