/* Declares the comparison with a library's bytes: tests/peers/README.md. */
#ifndef TESTS_PEERS_H
#define TESTS_PEERS_H

#include "mxgold/mxgold.h"

typedef mx_status peer_quantize(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_exec *exec,
                                mx_error *err);

typedef struct peer_count {
  size_t suites, bytes, codes, scales, tensor_scales; /* compared: bytes; differing: the others */
  char table[640];                                    /* "SUITE bytes/differing, ..." */
} peer_count;

/* Compare every suite of FILE with what `quantize` makes under the preset that the file is named after; adds to *count. Returns 0, or -1 with one
 * line in `why` if the file or preset cannot be used. */
int peers_compare(peer_count *count, const char *file, const char *preset, peer_quantize *quantize, char why[256]);

#endif
