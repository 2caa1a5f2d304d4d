/* Runs mxgold-hip-diff, which compares every kernel of the backend on the device at hand with the emulator. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hip_backend/compare/rehearse.h"
#include "hip_backend/compare/watch.h"
#include "hip_backend/gfx950/profile.h"
#include "hip_backend/run/ops.h"
#include "mxgold/file.h"

#define MXH_CHECK(function, meaning) bool mxh_run_##function(mxh_run *);
#include "hip_backend/compare/ops.def"
#undef MXH_CHECK

static const char usage[] =
    "usage: mxgold-hip-diff [--device auto|hip|cuda|host] [--large N] [--bench] [--hashes FILE] [--json FILE] [--html FILE]\n"
    "                       [--profile DIR] [--only portable|native] [--patience SECONDS] [--fault KERNEL:abort|segv|hang] [--quick]\n"
    "       mxgold-hip-diff --rehearse N [--wrong M] [--seed N] [-j N] [-v]\n"
    "Runs every kernel of the HIP backend and, on a gfx950, each of its instructions on the device (auto: an AMD one, else an NVIDIA one, else "
    "the\n"
    "CPU host runtime), compares each output bit with the emulator, and prints a table. Rules that no document states are not judged: they "
    "are\n"
    "found, named, and written to DIR as gfx950@DATE.json, .spec.json and .accum. --large N quantises N more elements, with all presets in "
    "turn.\n"
    "--rehearse: the CPU host runtime imitates N gfx950 with hidden rules, and M that also have a wrong kernel; each runs the native half of "
    "the table.\n"
    "--bench measures the fast kernels against the memory bandwidth of the card. A separate process writes the reports after every row. A\n"
    "fault, or a hang of more than --patience seconds (900), costs the row in which it happens, which is reported as DIED, and the rest of its "
    "part:\n"
    "rows that lost cases are reported as `cut`. The run then continues with the next part. --fault simulates such a fault; --quick, only with "
    "--device\n"
    "host, runs an eighth of the cases of each row.\n"
    "Exit 0: no bit differs and every rule has a name; 1: a bit differs or a rule has no name; 2: the comparison could not be made.\n";

namespace {
/* The emulator runs small suites on one thread, since starting a team of threads for a few hundred values costs more than computing them. */
const mx_exec *threads_for(size_t rows, size_t cols) {
  static const mx_exec one = {.n_threads = 1, .isa_mask = 0, .first_row = 0, .amax_known = 0, .amax = 0, .workspace = NULL};
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

/* Opens the device that is asked for, in run->dev. first: a message says what was looked for; otherwise the row of the group says that the
 * device could not be opened again. */
bool open_device(mxh_run *run, const char *device, bool first) {
  char why[512];
  const bool any = !strcmp(device, "auto");
  for (const char *kind : {"hip", "cuda", "host"}) {
    if (!any) kind = device;
    run->dev = mxh_open(kind, why, sizeof why);
    if (run->dev) break;
    if (!any) {
      fprintf(stderr, "mxgold-hip-diff: %s\n", why);
      if (!first) mxh_count(run, run->group, 1, 1, std::string("the device could not be opened again: ") + why);
      return false;
    }
    if (first) printf("hip-diff: %s\n", why);
    if (first && !strcmp(kind, "cuda")) /* a run on the host does not count as one on a device */
      printf("hip-diff: there is no device that this program has kernels for: SKIPPED on silicon; the CPU host runtime runs the same kernels "
             "instead\n");
  }
  if (run->dev && first) printf("device %s (%s), %s\n", mxh_name(run->dev), mxh_arch(run->dev), mxh_driver(run->dev));
  fflush(stdout);
  return run->dev != nullptr;
}

/* Reads text that is nothing but a whole number from first to last; otherwise prints what was expected. */
bool number_of(const char *option, const char *text, uint64_t first, uint64_t last, uint64_t *value) {
  char *end = nullptr;
  errno = 0;
  const uint64_t v = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && !*end && !errno && v >= first && v <= last) return *value = v, true;
  fprintf(stderr, "mxgold-hip-diff: %s %s: expected %llu to %llu\n", option, text, (unsigned long long)first, (unsigned long long)last);
  return false;
}
bool fault_known(const char *fault) {
  const char *colon = strrchr(fault, ':');
  const std::string how = colon ? colon + 1 : "";
  char why[256];
  mxh_device *host = mxh_open("host", why, sizeof why); /* the host runtime has every kernel */
  const bool known = colon && host && mxh_has(host, std::string(fault, colon).c_str()) && (how == "abort" || how == "segv" || how == "hang");
  if (!known) fprintf(stderr, "mxgold-hip-diff: --fault %s: expected a kernel's name, then :abort, :segv or :hang\n", fault);
  if (host) mxh_close(host);
  return known;
}
/* Checked before the run, which would be wasted if its report could not be written. An existing report stays as it is. */
bool writable(const char *option, const char *path, bool folder) {
  struct stat s;
  mx_text text;
  mx_error err;
  if (folder) {
    bool can = !stat(path, &s) && !access(path, W_OK | X_OK);
    if (can && !S_ISDIR(s.st_mode)) errno = ENOTDIR, can = false;
    if (!can) fprintf(stderr, "mxgold-hip-diff: %s %s: %s\n", option, path, strerror(errno));
    return can;
  }
  if (!strcmp(path, "-")) return fprintf(stderr, "mxgold-hip-diff: %s -: expected the name of a file\n", option), false;
  if (!stat(path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode)) return true; /* a pipe or a device is written to directly, not replaced */
  if (mx_text_begin(&text, path, &err)) return fprintf(stderr, "mxgold-hip-diff: %s %s\n", option, err.text), false;
  mx_text_drop(&text);
  return true;
}

/* Writes what follows the last row: the table, the reports, speeds, the profile. */
int finish(mxh_report *out, int pipe, bool bench, const char *folder, const std::function<bool()> &write,
           const std::function<int()> &unwritten) {
  mxh_device *dev = out->run->dev;
  const bool host = !strcmp(mxh_kind(dev), "host");
  out->whole = true;
  mxh_watch_writes(pipe);
  const bool written = write(); /* what has been found is kept even if something below fails */
  mxh_report_print(*out);
  fflush(stdout);
  if (!written) return unwritten();
  mxh_watch_whole(pipe);
  std::string said;
  if (folder && out->run->profile) {
    if (!gfx950_profile_write(*out->run->profile, folder, dev, MXH_COMMIT, MXH_COMPILERS, &said))
      return fprintf(stderr, "mxgold-hip-diff: %s: cannot be written\n", said.c_str()), 2;
    printf("%s\n", said.c_str());
  }
  for (const char *preset : {"ocp-mxfp4", "torchao-even", "te-nvfp4"}) {
    mx_spec spec;
    mxh_bench_row b = {preset, 0, 0, 0};
    if (!bench || mx_preset_find(&spec, preset, nullptr)) continue;
    mxh_watch_doing(pipe, "speed", preset);
    if (mxh_bench(dev, host ? 64 : 32768, host ? 1024 : 16384, &spec, host ? 1 : 30, &b.quantize, &b.dequantize, &b.copy)) {
      fprintf(stderr, "mxgold-hip-diff: %s is not timed: %s\n", preset, mxh_error(dev));
      continue;
    }
    printf("%-16s quantize %8.1f GB/s, dequantize %8.1f GB/s, copy %8.1f GB/s: %.2f and %.2f of copy\n", preset, b.quantize * 1e-9,
           b.dequantize * 1e-9, b.copy * 1e-9, b.quantize / b.copy, b.dequantize / b.copy);
    out->bench.push_back(b);
  }
  if (bench && !write()) return unwritten();
  if (host) printf("hip-diff: ran only on the CPU host runtime; silicon: SKIPPED\n");
  return 0;
}
} // namespace

int main(int argc, char **argv) {
  signal(SIGCHLD, SIG_DFL); /* if the parent made us ignore it, we could not wait for children */
  const char *device = "auto", *json = nullptr, *html = nullptr, *folder = nullptr, *only = nullptr, *fault = nullptr;
  bool bench = false, verbose = false;
  uint64_t rehearse = 0, wrong = 0, jobs = 0, patience = 900, seed = 1;
  bool fine = true;
  mxh_run run = {};
  const mxh_oracle library = {"libmxgold", quantize,  quantize_transposed, dequantize,       amax,     mx_hadamard, mx_encode,
                              mx_decode,   mx_random, mx_layout_pack,      mx_layout_unpack, mx_pack4, mx_pack6,    gemm};
  for (int i = 1; i < argc && fine; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (!strcmp(argv[i], "--bench"))
      bench = true;
    else if (!strcmp(argv[i], "--help"))
      return fputs(usage, stdout), 0;
    else if (!strcmp(argv[i], "--quick"))
      run.quick = true;
    else if (!strcmp(argv[i], "-v"))
      verbose = true;
    else if (value && !strcmp(argv[i], "--rehearse"))
      fine = number_of(argv[i], value, 1, 100000, &rehearse), i++;
    else if (value && !strcmp(argv[i], "--wrong"))
      fine = number_of(argv[i], value, 0, 100000, &wrong), i++;
    else if (value && !strcmp(argv[i], "--seed"))
      fine = number_of(argv[i], value, 0, UINT64_MAX, &seed), i++;
    else if (value && !strcmp(argv[i], "-j"))
      fine = number_of(argv[i], value, 0, 4096, &jobs), i++;
    else if (value && !strcmp(argv[i], "--device"))
      device = value, i++;
    else if (value && !strcmp(argv[i], "--large"))
      fine = number_of(argv[i], value, 0, UINT64_MAX, &run.large), i++;
    else if (value && !strcmp(argv[i], "--hashes"))
      run.hashes = value, i++;
    else if (value && !strcmp(argv[i], "--json"))
      json = value, i++;
    else if (value && !strcmp(argv[i], "--only"))
      only = value, i++;
    else if (value && !strcmp(argv[i], "--profile"))
      folder = value, i++;
    else if (value && !strcmp(argv[i], "--patience"))
      fine = number_of(argv[i], value, 1, 100000, &patience), i++;
    else if (value && !strcmp(argv[i], "--fault"))
      fault = value, i++;
    else if (value && !strcmp(argv[i], "--html"))
      html = value, i++;
    else
      return fprintf(stderr, "mxgold-hip-diff: %s: unknown option, or its value is missing; --help\n", argv[i]), 2;
  }
  if (!fine) return 2;
#define MXH_CHECK(function, meaning) known |= only && !strcmp(only, #function);
  bool known = !only;
#include "hip_backend/compare/ops.def"
#undef MXH_CHECK
  if (!known) return fprintf(stderr, "mxgold-hip-diff: --only %s: expected portable or native\n", only), 2;
  if (run.quick && strcmp(device, "host")) /* a device must not be reported to have run what this leaves out */
    return fprintf(stderr, "mxgold-hip-diff: --quick: works only with --device host\n"), 2;
  if (rehearse || wrong) return gfx950_rehearse({&library, (int)rehearse, (int)wrong, seed, (int)jobs, verbose});
  if (fault && !fault_known(fault)) return 2;
  if (json && html && !strcmp(json, html)) return fprintf(stderr, "mxgold-hip-diff: --html %s: this is also the file of --json\n", html), 2;
  if ((json && !writable("--json", json, false)) || (html && !writable("--html", html, false)) ||
      (folder && !writable("--profile", folder, true)))
    return 2;
  run.oracle = &library;
  mxh_report out = {&run, {}, {}, {}, {}, 0, 0, false, MXH_COMMIT, MXH_COMPILERS};
  struct timespec t0;
  clock_gettime(CLOCK_MONOTONIC, &t0);
  mx_error why = {}; /* why a report could not be written */
  const auto write = [&] {
    struct timespec t1;
    clock_gettime(CLOCK_MONOTONIC, &t1);
    out.seconds = (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9;
    return !(json && mxh_report_json(out, json, &why)) && !(html && mxh_report_html(out, html, &why));
  };
  const auto unwritten = [&] { return fprintf(stderr, "mxgold-hip-diff: %s\n", why.text), 2; };
  const char *groups[8];
  size_t n = 0;
#define MXH_CHECK(function, meaning)                                                                                                           \
  if (!only || !strcmp(only, #function)) groups[n++] = #function;
#include "hip_backend/compare/ops.def"
#undef MXH_CHECK
  int worst = 0;
  for (size_t i = 0; i < n; i++) {
    const int status = mxh_watch_child({&out, (int)patience, write}, groups[i], [&](mxh_run *child, int pipe) {
      if (child->counting)
        child->dev = mxh_idle(out.device);
      else if (!open_device(child, device, i == 0 && !child->first_part))
        return 2;
      if (!child->counting) {
        out.device = {mxh_name(child->dev), mxh_kind(child->dev), mxh_arch(child->dev), mxh_driver(child->dev)};
        mxh_watch_opened(pipe, child->dev);
        child->dev = mxh_watched(child->dev, pipe, fault);
      }
      bool same = true;
#define MXH_CHECK(function, meaning)                                                                                                           \
  if (!strcmp(groups[i], #function)) same = mxh_run_##function(child);
#include "hip_backend/compare/ops.def"
#undef MXH_CHECK
      if (child->counting) return 0;
      out.device_seconds += mxh_watched_seconds(child->dev, pipe);
      out.run = child;
      out.rows = child->rows;
      const int result = i + 1 == n ? finish(&out, pipe, bench, folder, write, unwritten) : 0;
      mxh_close(child->dev);
      return result ? result : (int)!same;
    });
    if (status > worst) worst = status;
    if (out.device.name.empty()) return 2; /* there is no device; a message has said so */
  }
  if (!out.whole) { /* the last group did not finish */
    mxh_report_print(out);
    if (!write()) return unwritten();
  }
  return worst;
}
