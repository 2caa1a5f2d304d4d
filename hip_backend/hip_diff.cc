/* mxgold-hip-diff: every kernel of the backend on the device at hand, against the emulator. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hip_backend/diff_report.h"
#include "hip_backend/gfx950_profile.h"
#include "hip_backend/gfx950_rehearse.h"
#include "hip_backend/ops.h"

#define MXH_CHECK(function, meaning) bool mxh_run_##function(mxh_run *);
#include "hip_backend/ops.def"
#undef MXH_CHECK

static const char usage[] =
    "usage: mxgold-hip-diff [--device auto|hip|cuda|host] [--large N] [--bench] [--hashes FILE] [--json FILE] [--html FILE]\n"
    "                       [--profile DIR] [--only portable|native]\n"
    "       mxgold-hip-diff --rehearse N [--wrong M] [--seed N] [-j N] [-v]\n"
    "Runs every kernel of the HIP backend and, on a gfx950, each of its instructions on the device (auto: an AMD one, else an NVIDIA one, else "
    "the\n"
    "CPU host runtime), compares each output bit with the emulator, and prints a table. Rules that no document says are not judged: they are\n"
    "found, named, and written to DIR as gfx950@DATE.json, .spec.json and .accum. --large N quantises N more elements, all presets by turns.\n"
    "--rehearse: the CPU host runtime plays N gfx950 with hidden rules, and M that have a wrong kernel as well; each gets the native half of "
    "the table.\n"
    "--bench measures the fast kernels against the memory of the card. Exit 0: no bit differs and every rule has a name; 1: not so; 2: "
    "trouble.\n";

namespace {
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
  const char *device = "auto", *json = nullptr, *html = nullptr, *folder = nullptr, *only = nullptr;
  bool bench = false, verbose = false;
  int rehearse = 0, wrong = 0, jobs = 0;
  uint64_t seed = 1;
  mxh_run run = {};
  const mxh_oracle library = {"libmxgold", quantize,  quantize_transposed, dequantize,       amax,     mx_hadamard, mx_encode,
                              mx_decode,   mx_random, mx_layout_pack,      mx_layout_unpack, mx_pack4, mx_pack6,    gemm};
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (!strcmp(argv[i], "--bench"))
      bench = true;
    else if (!strcmp(argv[i], "--help"))
      return fputs(usage, stdout), 0;
    else if (!strcmp(argv[i], "-v"))
      verbose = true;
    else if (value && !strcmp(argv[i], "--rehearse"))
      rehearse = atoi(value), i++;
    else if (value && !strcmp(argv[i], "--wrong"))
      wrong = atoi(value), i++;
    else if (value && !strcmp(argv[i], "--seed"))
      seed = strtoull(value, nullptr, 10), i++;
    else if (value && !strcmp(argv[i], "-j"))
      jobs = atoi(value), i++;
    else if (value && !strcmp(argv[i], "--device"))
      device = value, i++;
    else if (value && !strcmp(argv[i], "--large"))
      run.large = strtoull(value, nullptr, 10), i++;
    else if (value && !strcmp(argv[i], "--hashes"))
      run.hashes = value, i++;
    else if (value && !strcmp(argv[i], "--json"))
      json = value, i++;
    else if (value && !strcmp(argv[i], "--only"))
      only = value, i++;
    else if (value && !strcmp(argv[i], "--profile"))
      folder = value, i++;
    else if (value && !strcmp(argv[i], "--html"))
      html = value, i++;
    else
      return fprintf(stderr, "mxgold-hip-diff: %s: unknown option, or its value is missing; --help\n", argv[i]), 2;
  }
#define MXH_CHECK(function, meaning) known |= only && !strcmp(only, #function);
  bool known = !only;
#include "hip_backend/ops.def"
#undef MXH_CHECK
  if (!known) return fprintf(stderr, "mxgold-hip-diff: --only %s: expected portable or native\n", only), 2;
  if (rehearse || wrong) return gfx950_rehearse({&library, rehearse, wrong, seed, jobs, verbose});
  char why[512];
  if (!strcmp(device, "auto")) { /* say what was looked for: a host run is not a device run */
    for (const char *kind : {"hip", "cuda"}) {
      run.dev = mxh_open(kind, why, sizeof why);
      if (run.dev) break;
      printf("hip-diff: %s\n", why);
    }
    if (!run.dev)
      printf("hip-diff: no device that this program has kernels for: SKIPPED on silicon; the CPU host runtime runs the same kernels instead\n");
  }
  if (!run.dev) run.dev = mxh_open(!strcmp(device, "auto") ? "host" : device, why, sizeof why);
  if (!run.dev) return fprintf(stderr, "mxgold-hip-diff: %s\n", why), 2;
  run.oracle = &library;
  const bool host = !strcmp(mxh_kind(run.dev), "host");
  mxh_report out = {&run, {}, 0, MXH_COMMIT, MXH_COMPILERS};
  printf("device %s (%s), %s\n", mxh_name(run.dev), mxh_arch(run.dev), mxh_driver(run.dev));
  fflush(stdout);
  struct timespec t0, t1;
  clock_gettime(CLOCK_MONOTONIC, &t0);
  bool same = true;
#define MXH_CHECK(function, meaning)                                                                                                           \
  if (!only || !strcmp(only, #function)) same &= mxh_run_##function(&run);
#include "hip_backend/ops.def"
#undef MXH_CHECK
  clock_gettime(CLOCK_MONOTONIC, &t1);
  out.seconds = (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9;
  mxh_report_print(out);
  const auto write = [&] { return (!json || mxh_report_json(out, json)) && (!html || mxh_report_html(out, html)); };
  if (!write()) return perror("mxgold-hip-diff"), 2; /* what has been found is kept, whatever becomes of the rest */
  for (const char *preset : {"ocp-mxfp4", "torchao-even", "te-nvfp4"}) {
    mx_spec spec;
    mxh_bench_row b = {preset, 0, 0, 0};
    if (!bench || mx_preset_find(&spec, preset, nullptr)) continue;
    if (mxh_bench(run.dev, host ? 64 : 32768, host ? 1024 : 16384, &spec, host ? 1 : 30, &b.quantize, &b.dequantize, &b.copy)) {
      fprintf(stderr, "mxgold-hip-diff: %s is not timed: %s\n", preset, mxh_error(run.dev));
      continue;
    }
    printf("%-16s quantize %8.1f GB/s, dequantize %8.1f GB/s, copy %8.1f GB/s: %.2f and %.2f of copy\n", preset, b.quantize * 1e-9,
           b.dequantize * 1e-9, b.copy * 1e-9, b.quantize / b.copy, b.dequantize / b.copy);
    out.bench.push_back(b);
  }
  if (bench && !write()) return perror("mxgold-hip-diff"), 2;
  std::string said;
  if (folder && run.profile) {
    if (!gfx950_profile_write(*run.profile, folder, run.dev, MXH_COMMIT, MXH_COMPILERS, &said))
      return fprintf(stderr, "mxgold-hip-diff: %s: cannot be written\n", said.c_str()), 2;
    printf("%s\n", said.c_str());
  }
  if (host) printf("hip-diff: on the CPU host runtime alone; silicon: SKIPPED\n");
  mxh_close(run.dev);
  return same ? 0 : 1;
}
