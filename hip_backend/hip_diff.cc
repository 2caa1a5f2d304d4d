/* mxgold-hip-diff: every kernel of the backend on the device at hand, against the emulator. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hip_backend/diff.h"
#include "hip_backend/ops.h"

#define MXH_CHECK(function, meaning) bool mxh_run_##function(mxh_run *);
#include "hip_backend/ops.def"
#undef MXH_CHECK

static const char usage[] =
    "usage: mxgold-hip-diff [--device auto|hip|cuda|host] [--large N] [--bench] [--hashes FILE] [--json FILE] [--html FILE]\n"
    "Runs every kernel of the HIP backend on the device (auto: an AMD one, else an NVIDIA one, else the CPU host runtime), compares each "
    "output bit\n"
    "with the emulator, and prints a table. --large N quantises N more elements, all presets by turns. --bench measures the fast kernels "
    "against the\n"
    "memory of the card. Exit 0: no bit differs; 1: some do; 2: trouble.\n";

namespace {
struct bench_row {
  std::string preset;
  double quantize, dequantize, copy;
};

std::string now_text() {
  char text[32];
  const time_t t = time(nullptr);
  struct tm tm;
  gmtime_r(&t, &tm);
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
  return text;
}
std::string quoted(const std::string &s, bool html) {
  std::string out;
  for (const char ch : s) {
    if (html && ch == '<')
      out += "&lt;";
    else if (html && ch == '&')
      out += "&amp;";
    else if (!html && (ch == '"' || ch == '\\'))
      out += std::string("\\") + ch;
    else
      out += (unsigned char)ch < 32 ? ' ' : ch;
  }
  return out;
}
const char *verdict(const mxh_row &r) { return r.skipped ? "skipped" : r.differences ? "DIFFERS" : "equal"; }

struct report {
  const mxh_run *run;
  std::vector<bench_row> bench;
  std::string date;
  double seconds;

  std::vector<std::pair<const char *, std::string>> facts() const {
    return {{"device", mxh_name(run->dev)}, {"kind", mxh_kind(run->dev)}, {"arch", mxh_arch(run->dev)}, {"driver", mxh_driver(run->dev)},
            {"compiler", MXH_COMPILERS},    {"commit", MXH_COMMIT},       {"version", MX_VERSION},      {"date", date},
            {"oracle", run->oracle->name}};
  }
  bool json(const char *path) const {
    FILE *f = fopen(path, "w");
    if (!f) return false;
    fprintf(f, "{\n");
    for (const auto &fact : facts()) fprintf(f, "  \"%s\": \"%s\",\n", fact.first, quoted(fact.second, false).c_str());
    fprintf(f, "  \"seconds\": %.1f,\n  \"operations\": [\n", seconds);
    for (size_t i = 0; i < run->rows.size(); i++) {
      const mxh_row &r = run->rows[i];
      fprintf(
          f,
          "    {\"operation\": \"%s\", \"cases\": %llu, \"values\": %llu, \"differences\": %llu, \"verdict\": \"%s\", \"first\": \"%s\"}%s\n",
          quoted(r.operation, false).c_str(), (unsigned long long)r.cases, (unsigned long long)r.values, (unsigned long long)r.differences,
          verdict(r), quoted(r.first, false).c_str(), i + 1 < run->rows.size() ? "," : "");
    }
    fprintf(f, "  ],\n  \"bench\": [\n");
    for (size_t i = 0; i < bench.size(); i++)
      fprintf(f, "    {\"preset\": \"%s\", \"quantize_bytes_s\": %.4g, \"dequantize_bytes_s\": %.4g, \"copy_bytes_s\": %.4g}%s\n",
              bench[i].preset.c_str(), bench[i].quantize, bench[i].dequantize, bench[i].copy, i + 1 < bench.size() ? "," : "");
    fprintf(f, "  ]\n}\n");
    return !fclose(f);
  }
  bool html(const char *path) const {
    FILE *f = fopen(path, "w");
    if (!f) return false;
    fprintf(
        f,
        "<!doctype html><meta charset=\"utf-8\"><title>mxgold hip-diff: %s</title>\n"
        "<style>body{font:15px/1.4 sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:.2em .8em;border-bottom:1px solid #ccc;"
        "text-align:left}.n{text-align:right}.DIFFERS{background:#fbb}.skipped{color:#777}</style>\n<h1>mxgold hip-diff</h1>\n<table>\n",
        quoted(mxh_name(run->dev), true).c_str());
    for (const auto &fact : facts()) fprintf(f, "<tr><th>%s<td>%s\n", fact.first, quoted(fact.second, true).c_str());
    fprintf(f, "</table>\n<h2>Operations</h2>\n<table><tr><th>operation<th>cases<th>values<th>differences<th>verdict<th>first difference\n");
    for (const auto &r : run->rows)
      fprintf(f, "<tr class=\"%s\"><td>%s<td class=n>%llu<td class=n>%llu<td class=n>%llu<td>%s<td>%s\n", verdict(r),
              quoted(r.operation, true).c_str(), (unsigned long long)r.cases, (unsigned long long)r.values, (unsigned long long)r.differences,
              verdict(r), quoted(r.first, true).c_str());
    fprintf(f, "</table>\n");
    if (!bench.empty()) {
      fprintf(f, "<h2>Speed, bytes read and written a second</h2>\n<table><tr><th>preset<th>quantize<th>dequantize<th>copy\n");
      for (const auto &b : bench)
        fprintf(f, "<tr><td>%s<td class=n>%.3g<td class=n>%.3g<td class=n>%.3g\n", b.preset.c_str(), b.quantize, b.dequantize, b.copy);
      fprintf(f, "</table>\n");
    }
    return !fclose(f);
  }
};

/* The emulator on one thread where a suite is small: a team of threads for a few hundred values costs more than the values. */
const mx_exec *threads_for(size_t rows, size_t cols) {
  static const mx_exec one = {.n_threads = 1, .isa_mask = 0, .first_row = 0, .amax_known = 0, .amax = 0};
  return rows * cols < 1 << 18 ? &one : nullptr;
}
mx_status quantize(mx_tensor *t, const float *x, size_t rows, size_t cols, size_t ld, const mx_spec *s, const mx_exec *, mx_error *err) {
  return mx_quantize(t, x, rows, cols, ld, s, threads_for(rows, cols), err);
}
mx_status quantize_transposed(mx_tensor *t, const float *x, size_t rows, size_t cols, size_t ld, const mx_spec *s, const mx_exec *,
                              mx_error *err) {
  return mx_quantize_transposed(t, x, rows, cols, ld, s, threads_for(rows, cols), err);
}
mx_status dequantize(float *y, size_t ld, const mx_tensor *t, const mx_spec *s, const mx_exec *) {
  return mx_dequantize(y, ld, t, s, threads_for(t->rows, t->cols));
}
mx_status amax(float *a, const float *x, size_t rows, size_t cols, size_t ld, const mx_spec *s, const mx_exec *) {
  return mx_tensor_amax(a, x, rows, cols, ld, s, threads_for(rows, cols));
}
mx_status gemm(void *d, size_t ldd, const mx_tensor *a, const mx_spec *sa, const mx_tensor *b, const mx_spec *sb, const mx_gemm_options *o,
               mx_error *err) {
  mx_gemm_options alone = *o;
  alone.exec.n_threads = 1;
  return mx_gemm(d, ldd, a, sa, b, sb, &alone, err);
}
} // namespace

int main(int argc, char **argv) {
  const char *device = "auto", *json = nullptr, *html = nullptr;
  bool bench = false;
  mxh_run run = {};
  const mxh_oracle library = {"libmxgold", quantize,  quantize_transposed, dequantize,       amax,     mx_hadamard, mx_encode,
                              mx_decode,   mx_random, mx_layout_pack,      mx_layout_unpack, mx_pack4, mx_pack6,    gemm};
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (!strcmp(argv[i], "--bench"))
      bench = true;
    else if (!strcmp(argv[i], "--help"))
      return fputs(usage, stdout), 0;
    else if (value && !strcmp(argv[i], "--device"))
      device = value, i++;
    else if (value && !strcmp(argv[i], "--large"))
      run.large = strtoull(value, nullptr, 10), i++;
    else if (value && !strcmp(argv[i], "--hashes"))
      run.hashes = value, i++;
    else if (value && !strcmp(argv[i], "--json"))
      json = value, i++;
    else if (value && !strcmp(argv[i], "--html"))
      html = value, i++;
    else
      return fprintf(stderr, "mxgold-hip-diff: %s: unknown option, or its value is missing; --help\n", argv[i]), 2;
  }
  char why[512];
  if (!strcmp(device, "auto")) { /* say what was looked for: a host run is not a device run */
    for (const char *kind : {"hip", "cuda"}) {
      run.dev = mxh_open(kind, why, sizeof why);
      if (run.dev) break;
      printf("hip-diff: %s\n", why);
    }
    if (!run.dev) printf("hip-diff: no GPU here: SKIPPED on silicon; the CPU host runtime runs the same kernels instead\n");
  }
  if (!run.dev) run.dev = mxh_open(!strcmp(device, "auto") ? "host" : device, why, sizeof why);
  if (!run.dev) return fprintf(stderr, "mxgold-hip-diff: %s\n", why), 2;
  run.oracle = &library;
  report out = {&run, {}, now_text(), 0};
  printf("device %s (%s), %s\n", mxh_name(run.dev), mxh_arch(run.dev), mxh_driver(run.dev));
  fflush(stdout);
  struct timespec t0, t1;
  clock_gettime(CLOCK_MONOTONIC, &t0);
  bool same = true;
#define MXH_CHECK(function, meaning) same &= mxh_run_##function(&run);
#include "hip_backend/ops.def"
#undef MXH_CHECK
  clock_gettime(CLOCK_MONOTONIC, &t1);
  out.seconds = (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9;
  printf("%-44s %8s %14s %12s  %s\n", "operation", "cases", "values", "differences", "verdict");
  for (const auto &r : run.rows) {
    printf("%-44s %8llu %14llu %12llu  %s\n", r.operation.c_str(), (unsigned long long)r.cases, (unsigned long long)r.values,
           (unsigned long long)r.differences, verdict(r));
    if (!r.first.empty()) printf("    %s\n", r.first.c_str());
  }
  printf("%.1f s\n", out.seconds);
  for (const char *preset : {"ocp-mxfp4", "torchao-even", "te-nvfp4"}) {
    mx_spec spec;
    bench_row b = {preset, 0, 0, 0};
    const bool host = !strcmp(mxh_kind(run.dev), "host");
    if (!bench || mx_preset_find(&spec, preset, nullptr)) continue;
    if (mxh_bench(run.dev, host ? 64 : 32768, host ? 1024 : 16384, &spec, host ? 1 : 30, &b.quantize, &b.dequantize, &b.copy))
      return fprintf(stderr, "mxgold-hip-diff: %s\n", mxh_error(run.dev)), 2;
    printf("%-16s quantize %8.1f GB/s, dequantize %8.1f GB/s, copy %8.1f GB/s: %.2f and %.2f of copy\n", preset, b.quantize * 1e-9,
           b.dequantize * 1e-9, b.copy * 1e-9, b.quantize / b.copy, b.dequantize / b.copy);
    out.bench.push_back(b);
  }
  if ((json && !out.json(json)) || (html && !out.html(html))) return perror("mxgold-hip-diff"), 2;
  mxh_close(run.dev);
  return same ? 0 : 1;
}
