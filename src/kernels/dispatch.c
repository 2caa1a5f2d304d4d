/* What may be used: host, mask, environment. */
#include "mxgold/isa.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

uint32_t mx_isa_host(void) {
  uint32_t has = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) has |= MX_ISA_AVX2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi"))
    has |= MX_ISA_AVX512;
#endif
  return has;
}

uint32_t mx_isa_usable(uint32_t off) {
  const char *text = getenv("MXGOLD_ISA_OFF");
  if (text && strstr(text, "all")) off |= MX_ISA_ALL;
  if (text && strstr(text, "avx2")) off |= MX_ISA_AVX2;
  if (text && strstr(text, "avx512")) off |= MX_ISA_AVX512;
  return mx_isa_host() & ~off;
}

const char *mx_isa_name(uint32_t bit) { return bit == MX_ISA_AVX2 ? "avx2" : bit == MX_ISA_AVX512 ? "avx512" : NULL; }
