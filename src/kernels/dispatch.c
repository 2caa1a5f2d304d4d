/* What may be used: host, mask, environment; threads. */
#include "mxgold/isa.h"

#include <omp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const struct {
  const char *name;
  uint32_t bit;
} names[] = {{"avx2", MX_ISA_AVX2}, {"avx512", MX_ISA_AVX512}, {"neon", MX_ISA_NEON}, {"all", MX_ISA_ALL}};

#if defined(__x86_64__)
/* clang 14's __builtin_cpu_supports() does not know f16c. Asking the processor costs a virtual machine microseconds at each call. */
static int has_f16c(void) {
#if defined(__clang__)
  unsigned a, b, c = 0, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
#else
  return __builtin_cpu_supports("f16c");
#endif
}
#endif

/* Everything that the Makefile lets a compiler use in files of that ISA. */
uint32_t mx_isa_host(void) {
  uint32_t has = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c() && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2"))
    has |= MX_ISA_AVX2;
  if (has && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vbmi") &&
      __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vnni"))
    has |= MX_ISA_AVX512;
#elif defined(__aarch64__)
  has = MX_ISA_NEON;
#endif
  return has;
}

uint32_t mx_isa_usable(uint32_t off) {
  const char *text = getenv("MXGOLD_ISA_OFF");
  for (size_t i = 0; text && i < sizeof names / sizeof names[0]; i++)
    if (strstr(text, names[i].name)) off |= names[i].bit;
  return mx_isa_host() & ~off;
}

const char *mx_isa_name(uint32_t bit) {
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].bit == bit && bit != MX_ISA_ALL) return names[i].name;
  return NULL;
}

int mx_thread_count(int n_threads) { return n_threads > 0 ? n_threads : omp_get_max_threads(); }
