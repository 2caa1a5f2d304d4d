/* Measures the block-scaled product against OpenBLAS's sgemm of the same shape, by turns in one process; each figure is the median of its rounds.
 *   bench/gemm [ROUNDS [THREADS [NAME]]]      with NAME only the lines that begin with it
 * An OpenBLAS that does not know a processor takes slow kernels for it. So each of its core types is tried first, in a process of its own, which may
 * die of an instruction that is not there, and the fastest is compared with. Our AVX2 kernels are compared with OpenBLAS's for Haswell, AVX2 as well.
 * Seconds are wall-clock with as many threads as THREADS says (2 by default), for both sides. With THREADS = 1 they are the thread's own processor
 * time, so that a ratio can be measured on a busy machine. */
#include <cblas.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/timing.h"
#include "mxgold/gemm.h"
#include "mxgold/isa.h"

extern void openblas_set_num_threads(int n);
extern char *openblas_get_corename(void);

static const char *const core_types[] = {"Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids"};
enum { CORE_TYPES = sizeof core_types / sizeof *core_types };
/* Which lines this process prints: those of our AVX2 kernels are another's, see above. */
static int avx2_lines;

static int n_threads = 2;
static const char *only = "";

static int zero_blocks; /* every fourth block of 32 is zeros under the smallest scale */

static int wanted(const char *name) { return !strncmp(name, only, strlen(only)); }

static float *numbers(size_t n, uint32_t seed) {
  float *x = malloc(n * sizeof *x);
  for (size_t i = 0; x && i < n; i++) {
    x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1;
    if (zero_blocks && i / 32 % 4 == 0) x[i] = 0;
  }
  if (!x) exit(2);
  return x;
}

static void quantised(mx_tensor *t, const mx_spec *spec, const float *x, size_t rows, size_t cols) {
  if (mx_tensor_alloc(t, rows, cols, spec) || mx_quantize(t, x, rows, cols, cols, spec, NULL, NULL)) exit(2);
}

static void versus(const char *name, const char *keys, int model, size_t M, size_t N, size_t K, uint32_t isa_mask, int rounds) {
  mx_spec spec;
  if (!wanted(name) || (isa_mask & MX_ISA_AVX512 ? 1 : 0) != avx2_lines) return;
  memset(&spec, 0, sizeof spec);
  if (mx_spec_parse(&spec, keys, NULL)) exit(2);
  float *x = numbers(M * K, 1), *y = numbers(N * K, 2), *d = malloc(M * N * sizeof *d);
  double ours[64], theirs[64], without[64];
  mx_tensor a, b;
  quantised(&a, &spec, x, M, K);
  quantised(&b, &spec, y, N, K);
  const mx_gemm_options o = {.model = model, .exec = {.n_threads = n_threads, .isa_mask = isa_mask}};
  mx_gemm_options no_amx = o;
  no_amx.exec.isa_mask |= MX_ISA_AMX;
  const int amx = (mx_isa_usable(isa_mask) & MX_ISA_AMX) && model == MX_GEMM_F32_BLOCK && spec.elem == MX_ELEM_E2M1;
  for (int r = 0; r < rounds; r++) {
    double t = timing_now(n_threads);
    if (!d || mx_gemm(d, N, &a, &spec, &b, &spec, &o, NULL)) exit(2);
    ours[r] = timing_now(n_threads) - t;
    t = timing_now(n_threads);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)M, (int)N, (int)K, 1, x, (int)K, y, (int)K, 0, d, (int)N);
    theirs[r] = timing_now(n_threads) - t;
    t = timing_now(n_threads);
    if (amx && mx_gemm(d, N, &a, &spec, &b, &spec, &no_amx, NULL)) exit(2);
    without[r] = timing_now(n_threads) - t;
  }
  const double u = timing_median(ours, rounds), v = timing_median(theirs, rounds), macs = (double)M * (double)N * (double)K;
  printf("%-28s %5zu x %5zu x %5zu  %9.4f s  %7.1f GMAC/s  sgemm %9.4f s  %7.1f GMAC/s  ratio %5.2f\n", name, M, N, K, u, macs / u * 1e-9, v,
         macs / v * 1e-9, v / u);
  if (amx) {
    const double w = timing_median(without, rounds);
    printf("%-28s %21s  %9.4f s  %7.1f GMAC/s  with AMX it is %.2f times as fast\n", "  without AMX", "", w, macs / w * 1e-9, w / u);
  }
  fflush(stdout);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  free(x);
  free(y);
  free(d);
}

/* Time to read bytes, by the same threads. */
static double read_time(const uint8_t *p, size_t n) {
  const double t = timing_now(n_threads);
  uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(n_threads)
  for (size_t i = 0; i < n / 64; i++) {
    uint64_t w[8];
    memcpy(w, p + i * 64, 64);
    sum += w[0] + w[1] + w[2] + w[3] + w[4] + w[5] + w[6] + w[7];
  }
  __asm__ volatile("" ::"r"(sum));
  return timing_now(n_threads) - t;
}

static void skinny(const char *name, const char *keys, size_t M, size_t N, size_t K, int rounds) {
  mx_spec spec = {0};
  if (!wanted(name) || avx2_lines) return;
  if (mx_spec_parse(&spec, keys, NULL)) exit(2);
  float *x = numbers(M * K, 1), *y = numbers(N * K, 2), *d = malloc(M * N * sizeof *d);
  double ours[64], reads[64];
  mx_tensor a, b;
  quantised(&a, &spec, x, M, K);
  quantised(&b, &spec, y, N, K);
  free(y);
  const mx_gemm_options o = {.exec = {.n_threads = n_threads}};
  const size_t bytes = N * b.code_stride, scale_bytes = b.scale_rows * b.scale_cols;
  for (int r = 0; r < rounds; r++) {
    const double t = timing_now(n_threads);
    if (!d || mx_gemm(d, N, &a, &spec, &b, &spec, &o, NULL)) exit(2);
    ours[r] = timing_now(n_threads) - t;
    reads[r] = read_time(b.codes, bytes) + read_time(b.scales, scale_bytes);
  }
  const double u = timing_median(ours, rounds), v = timing_median(reads, rounds);
  printf("%s M = %-2zu          %5zu x %5zu x %5zu  %9.5f s  %7.1f GB/s    reading %9.5f s  %7.1f GB/s    ratio %5.2f\n", name, M, M, N, K, u,
         (double)(bytes + scale_bytes) / u * 1e-9, v, (double)(bytes + scale_bytes) / v * 1e-9, v / u);
  fflush(stdout);
  mx_tensor_free(&a);
  mx_tensor_free(&b);
  free(x);
  free(d);
}

static int print_lines(int rounds) {
  openblas_set_num_threads(n_threads);
  printf("OpenBLAS kernels%s: %s\n", avx2_lines ? " for the lines of AVX2" : "", openblas_get_corename());
  static const char nv[] = "scale=e4m3 block=1x16 scale.rule=value";
  versus("mxfp4 f32_block", "", MX_GEMM_F32_BLOCK, 2048, 2048, 2048, 0, rounds);
  zero_blocks = 1;
  versus("mxfp4 f32_block, zeros", "", MX_GEMM_F32_BLOCK, 2048, 2048, 2048, 0, rounds);
  zero_blocks = 0;
  versus("mxfp4 f32_block, avx2", "", MX_GEMM_F32_BLOCK, 2048, 2048, 2048, MX_ISA_AVX512, rounds);
  versus("nvfp4 f32_block", nv, MX_GEMM_F32_BLOCK, 2048, 2048, 2048, 0, rounds);
  versus("nvfp4 f32_block, avx2", nv, MX_GEMM_F32_BLOCK, 2048, 2048, 2048, MX_ISA_AVX512, rounds);
  versus("mxfp8 e4m3 f32_block", "elem=e4m3", MX_GEMM_F32_BLOCK, 2048, 2048, 2048, 0, rounds);
  versus("mxfp8 e4m3 f32_block, avx2", "elem=e4m3", MX_GEMM_F32_BLOCK, 2048, 2048, 2048, MX_ISA_AVX512, rounds);
  versus("mxfp8 e5m2 f32_block", "elem=e5m2", MX_GEMM_F32_BLOCK, 1024, 1024, 1024, 0, rounds);
  versus("mxfp4 f32_seq", "", MX_GEMM_F32_SEQ, 1024, 1024, 1024, 0, rounds);
  versus("mxfp4 f64", "", MX_GEMM_F64, 1024, 1024, 1024, 0, rounds);
  versus("mxfp4 validator", "", MX_GEMM_F32_BLOCK, 1500, 1500, 512, 0, rounds);
  versus("mxfp8 e4m3 validator", "elem=e4m3", MX_GEMM_F32_BLOCK, 1500, 1500, 512, 0, rounds);
  for (size_t m = 1; m <= 16; m *= 2) skinny("skinny mxfp4", "", m, 16384, 8192, rounds);
  for (size_t m = 1; m <= 16; m *= 2) skinny("skinny nvfp4", nv, m, 16384, 8192, rounds);
  return 0;
}

/* Prints the seconds of an sgemm of 1024^3: the least of five, after one that warms up. */
static int print_sgemm(void) {
  enum { N = 1024, ROUNDS = 6 };
  float *x = numbers((size_t)N * N, 1), *y = numbers((size_t)N * N, 2), *d = malloc((size_t)N * N * sizeof *d);
  double best = 1e9;
  if (!d) return 2;
  openblas_set_num_threads(n_threads);
  for (int r = 0; r < ROUNDS; r++) {
    const double t = timing_now(n_threads);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, N, N, N, 1, x, N, y, N, 0, d, N);
    const double u = timing_now(n_threads) - t;
    if (r && u < best) best = u;
  }
  printf("%.9f %s\n", best, openblas_get_corename());
  free(x);
  free(y);
  free(d);
  return 0;
}

/* This program once more, in a process whose OpenBLAS takes core_type's kernels (NULL: its own choice), to do `part`; its output is read from *out if
 * that is not NULL. Returns the process, -1 on failure. */
static pid_t again(const char *core_type, const char *part, char **argv, FILE **out) {
  int ends[2];
  if (out && pipe(ends)) return -1;
  fflush(stdout);
  const pid_t child = fork();
  if (!child) {
    if (out) dup2(ends[1], 1), close(ends[0]), close(ends[1]);
    if (core_type && setenv("OPENBLAS_CORETYPE", core_type, 1)) _exit(2);
    if (setenv("BENCH_GEMM_PART", part, 1)) _exit(2);
    execv("/proc/self/exe", argv);
    _exit(2);
  }
  if (out) {
    close(ends[1]);
    *out = child < 0 ? NULL : fdopen(ends[0], "r");
  }
  return child;
}

/* Seconds of sgemm with core_type's kernels and their name; 0 where they do not run here or are not in this OpenBLAS. */
static double try_core_type(const char *core_type, char name[32], char **argv) {
  FILE *out;
  int status = -1;
  double seconds = 0;
  const pid_t child = again(core_type, "sgemm", argv, &out);
  if (child < 0 || !out) exit(2);
  const int read = fscanf(out, "%lf %31s", &seconds, name);
  fclose(out);
  waitpid(child, &status, 0);
  if (read != 2 || status) return 0;
  /* An unknown name is not refused: OpenBLAS takes what it would have taken. */
  return core_type && strcasecmp(name, core_type) ? 0 : seconds;
}

/* `part` under core_type's kernels, to the end. */
static void lines_of(const char *core_type, const char *part, char **argv) {
  int status = -1;
  const pid_t child = again(core_type, part, argv, NULL);
  if (child < 0 || waitpid(child, &status, 0) != child || status) exit(2);
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 7;
  const char *part = getenv("BENCH_GEMM_PART"), *fastest = NULL;
  char name[32];
  if (argc > 2) n_threads = atoi(argv[2]);
  if (argc > 3) only = argv[3];
  if (rounds < 1 || rounds > 64 || n_threads < 1) return 2;
  if (part) {
    avx2_lines = !strcmp(part, "avx2");
    return strcmp(part, "sgemm") ? print_lines(rounds) : print_sgemm();
  }
  int haswell = 0;
  double best = try_core_type(NULL, name, argv);
  if (best > 0) printf("OpenBLAS by itself: %s, sgemm of 1024^3 in %.4f s\n", name, best);
  for (int i = 0; i < CORE_TYPES; i++) {
    const double seconds = try_core_type(core_types[i], name, argv);
    if (seconds > 0) printf("OPENBLAS_CORETYPE=%s: %.4f s\n", core_types[i], seconds);
    if (seconds > 0 && !i) haswell = 1;
    if (seconds > 0 && (best <= 0 || seconds < best)) best = seconds, fastest = core_types[i];
  }
  if (best <= 0) return 2;
  lines_of(fastest, "fastest", argv);
  /* Without Haswell's kernels there is no like to compare with: on another processor, or in another build of OpenBLAS. */
  if (haswell) lines_of("Haswell", "avx2", argv);
  return 0;
}
