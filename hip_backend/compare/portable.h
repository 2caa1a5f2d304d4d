/** Declares the parts of the comparison of portable operations over the golden suites, and what these parts share. */
#ifndef MXH_DIFF_PORTABLE_H
#define MXH_DIFF_PORTABLE_H

#include <map>
#include <stdlib.h>

#include "hip_backend/compare/diff.h"
#include "hip_backend/run/ops.h"

namespace mxh_portable {
/* A failed call counts as a difference, so that nothing passes by not running. */
bool failed(mxh_run *run, const char *operation, const std::string &what);

/* A run takes one in so many of the presets, suites, mixtures and kinds of outputs: those whose `turn` is a multiple of it. */
constexpr size_t QUICK_PART = 8; /* of a quick run */
inline size_t part_of(const mxh_run *run) { return run->quick ? QUICK_PART : run->part ? run->part : 1; }
inline bool left_out(const mxh_run *run, size_t turn) { return turn % part_of(run); }

struct tensor {
  mx_tensor t = {};
  tensor(size_t rows, size_t cols, const mx_spec *spec) {
    if (mx_tensor_alloc(&t, rows, cols, spec)) abort();
  }
  ~tensor() { mx_tensor_free(&t); }
  tensor(const tensor &) = delete;
  tensor &operator=(const tensor &) = delete;
};
uint64_t tensors_differ(const mx_tensor &a, const mx_tensor &b);
std::string digest_of(const mx_tensor &t);
/* Reads "KEY=VALUE ... preset=NAME": keys that override those of the preset. */
bool read_keys(mx_spec *spec, const char *text, mx_error *err);

struct golden {
  mxh_run *run;
  std::map<std::string, std::string> hashes;

  void digest(const char *operation, const std::string &name, const std::string &got);
  /* Quantises one matrix under one spec, and dequantises the expected result. */
  bool both_ways(const char *quantize, const char *dequantize, const std::string &name, const float *x, size_t rows, size_t cols, size_t ld,
                 const mx_spec *spec, bool transposed, bool digests);

  /* Quantising and dequantising: */
  void presets();
  void mixtures();
  void keys();
  void steps();
  /* Numbers, maxima, rotations, single values and layouts: */
  void numbers();
  void amax();
  void hadamard();
  void codec();
  void layouts();
  /* The fast kernels and large matrices: */
  void fast();
  void fast_suites(const std::string &of, const mx_spec *spec);
  void fast_one(const std::string &name, const float *x, size_t rows, size_t cols, const mx_spec *spec);
  void both(const std::string &name, const float *x, size_t rows, size_t cols, const mx_spec *spec);
  void large();
  /* Products: */
  void one_gemm(const char *operation, const std::string &name, const tensor &a, const mx_spec *sa, const tensor &b, const mx_spec *sb,
                const mx_gemm_options *o);
  void gemm();
  void free_of_order(const std::string &name, const mx_spec *spec);
  void gemm_sticky();
  void gemm_wide_sticky();
  void golden_products();
};
} // namespace mxh_portable
#endif
