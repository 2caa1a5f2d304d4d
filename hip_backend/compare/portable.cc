/* Compares every portable operation with the oracle by running the parts of the comparison in order. */
#include "hip_backend/compare/portable.h"

#include <stdio.h>

namespace mxh_portable {
/* Reads the digests, lines of "HEX operation preset suite ...", from golden/HASHES. */
static std::map<std::string, std::string> read_hashes(const char *path) {
  std::map<std::string, std::string> all;
  FILE *f = path ? fopen(path, "r") : nullptr;
  if (!f) return all;
  char digest[64], operation[128], preset[96], suite_text[32], version[32];
  while (fscanf(f, "%63s %127s %95s %31s %31s", digest, operation, preset, suite_text, version) == 5)
    all[std::string(operation) + " " + preset + " " + suite_text] = digest;
  fclose(f);
  return all;
}
} // namespace mxh_portable

bool mxh_run_portable(mxh_run *run) {
  run->group = "portable";
  using mxh_portable::golden;
  golden g = {run, mxh_portable::read_hashes(run->hashes)};
  void (golden::*const parts[])() = {&golden::presets,
                                     &golden::keys,
                                     &golden::mixtures,
                                     &golden::steps,
                                     &golden::numbers,
                                     &golden::amax,
                                     &golden::hadamard,
                                     &golden::codec,
                                     &golden::layouts,
                                     &golden::fast,
                                     &golden::gemm,
                                     &golden::gemm_sticky,
                                     &golden::gemm_wide_sticky,
                                     &golden::golden_products,
                                     &golden::large};
  int n = 0;
  for (const auto part : parts)
    if (mxh_part(run, n++)) (g.*part)();
  uint64_t bad = 0;
  for (const auto &r : run->rows) bad += r.differences;
  return bad == 0;
}
