/* Tests that the portable kernels on the CPU host runtime give the bits of ref/ (make hip-check). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hip_backend/compare/diff.h"
#include "ref/ref.h"
extern "C" {
#include "ref/gemm.h"
}

int main(int argc, char **argv) {
  char why[512];
  mxh_run run = {};
  const mxh_oracle ref = {"ref",      ref_quantize, ref_quantize_transposed, ref_dequantize,    ref_tensor_amax, ref_hadamard, ref_encode,
                          ref_decode, ref_random,   ref_layout_pack,         ref_layout_unpack, ref_pack4,       ref_pack6,    ref_gemm};
  run.dev = mxh_open(argc > 1 ? argv[1] : "host", why, sizeof why);
  if (!run.dev) {
    fprintf(stderr, "hip-check: %s\n", why);
    return 2;
  }
  run.oracle = &ref;
  run.part = getenv("CHECK_ALL") ? 1 : 2; /* make check takes half, make check-all the whole */
  run.hashes = "golden/HASHES";
  const bool same = mxh_run_portable(&run);
  printf("%-44s %8s %12s %12s\n", "operation", "cases", "values", "differences");
  for (const auto &r : run.rows) {
    printf("%-44s %8llu %12llu %12llu\n", r.operation.c_str(), (unsigned long long)r.cases, (unsigned long long)r.values,
           (unsigned long long)r.differences);
    if (r.differences) printf("    first: %s\n", r.first.c_str());
  }
  mxh_close(run.dev);
  return same ? 0 : 1;
}
