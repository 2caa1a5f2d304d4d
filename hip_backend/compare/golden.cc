/* Reads the golden suites and compares results with them, for all parts of the portable comparison. */
#include "hip_backend/compare/portable.h"

#include <string.h>

namespace mxh_portable {
bool failed(mxh_run *run, const char *operation, const std::string &what) {
  mxh_count(run, operation, 1, 1, what + ": " + mxh_error(run->dev));
  return false;
}
uint64_t tensors_differ(const mx_tensor &a, const mx_tensor &b) {
  const size_t scales = a.scale_rows * a.scale_cols;
  uint64_t bad =
      mxh_differ(a.codes, b.codes, a.rows * a.code_stride, 1) + mxh_differ(a.scales, b.scales, scales * a.scale_bytes, a.scale_bytes);
  if (a.micro) bad += mxh_differ(a.micro, b.micro, scales * 3, 1);
  if (a.has_tensor_scale) bad += mxh_differ(&a.tensor_scale, &b.tensor_scale, 4, 4);
  return bad;
}
std::string digest_of(const mx_tensor &t) {
  std::string all;
  const size_t scales = t.scale_rows * t.scale_cols;
  all.append((const char *)t.codes, t.rows * t.code_stride);
  all.append((const char *)t.scales, scales * t.scale_bytes);
  if (t.micro) all.append((const char *)t.micro, scales * 3);
  if (t.has_tensor_scale) all.append((const char *)&t.tensor_scale, 4);
  char digest[33];
  mx_digest(digest, all.data(), all.size());
  return digest;
}
bool read_keys(mx_spec *spec, const char *text, mx_error *err) {
  const char *preset = strstr(text, "preset=");
  if (preset && mx_preset_find(spec, preset + 7, err)) return false;
  const std::string keys(text, preset ? (size_t)(preset - text) : strlen(text));
  return !mx_spec_parse(spec, keys.c_str(), err) && !mx_spec_check(spec, err);
}

void golden::digest(const char *operation, const std::string &name, const std::string &got) {
  if (hashes.empty()) return;
  auto h = hashes.find(std::string(operation) + " " + name);
  const std::string row = std::string(operation) + ", digests of golden/HASHES";
  mxh_count(run, row.c_str(), 1, h == hashes.end() || h->second != got, name);
}
} // namespace mxh_portable
