/* Decides which instruction sets may be used, from the host, the caller's mask and the environment, and holds the table of kernels. */
#include "kernels/dispatch.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/tile_state.h"
#include "mxgold/isa.h"

/* The best instruction set comes first. */
static const mx_kernels table[] = {
#if defined(__x86_64__)
    {MX_ISA_AVX512, &mxi_stages_avx512, &mxi_values_avx512, mxi_encode_avx512, &mxi_bytes_avx512, mxi_input_avx512, mxi_turn_avx512,
     mxi_turned_amax_avx512, mxi_widen_avx512, &mxi_differ_avx512},
    {MX_ISA_AVX2, &mxi_stages_avx2, &mxi_values_avx2, mxi_encode_avx2, &mxi_bytes_avx2, mxi_input_avx2, mxi_turn_avx2, mxi_turned_amax_avx2,
     mxi_widen_avx2, &mxi_differ_avx2},
#elif defined(__aarch64__)
    {MX_ISA_NEON, &mxi_stages_neon, &mxi_values_neon, mxi_encode_neon, &mxi_bytes_neon, mxi_input_neon, mxi_turn_neon, mxi_turned_amax_neon,
     mxi_widen_neon, &mxi_differ_neon},
#endif
    {0, NULL, &mxi_values_scalar, NULL, NULL, mxi_input_scalar, mxi_turn_scalar, NULL, mxi_widen_scalar, &mxi_differ_scalar}};

static const struct {
  const char *name;
  uint32_t bit;
} names[] = {{"avx2", MX_ISA_AVX2}, {"avx512", MX_ISA_AVX512}, {"neon", MX_ISA_NEON}, {"amx", MX_ISA_AMX}, {"all", MX_ISA_ALL}};
enum { NAMES = sizeof names / sizeof names[0] };

#if defined(__x86_64__)
/* clang 14's __builtin_cpu_supports() does not know f16c. */
static int has_f16c(void) {
#if defined(__clang__)
  unsigned a, b, c = 0, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
#else
  return __builtin_cpu_supports("f16c");
#endif
}
#endif

/* Checks everything that the Makefile lets the compiler use in files of an ISA. */
static uint32_t ask_host(void) {
  uint32_t has = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c() && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2"))
    has |= MX_ISA_AVX2;
  if (has && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vbmi") &&
      __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vpopcntdq"))
    has |= MX_ISA_AVX512;
  if (has & MX_ISA_AVX512 && mxi_tiles_host()) has |= MX_ISA_AMX;
#elif defined(__aarch64__)
  has = MX_ISA_NEON;
#endif
  return has;
}

/* Found once, before main(), because asking the processor takes microseconds in a virtual machine. It does not change later. */
static uint32_t host;
static __attribute__((constructor)) void read_host(void) { host = ask_host(); }

uint32_t mx_isa_host(void) { return host; }

/* Kernels for AVX-512 also use AVX2, and those with tiles also use AVX-512. */
static uint32_t with_what_needs_it(uint32_t off) {
  if (off & MX_ISA_AVX2) off |= MX_ISA_AVX512;
  return off & MX_ISA_AVX512 ? off | MX_ISA_AMX : off;
}

int mx_isa_parse(uint32_t *off, const char *text, const char **unknown) {
  uint32_t found = 0;
  int known = 1;
  for (const char *at = text; at && *at;) {
    const size_t n = strcspn(at, ",");
    uint32_t bit = 0;
    for (size_t i = 0; i < NAMES; i++)
      if (strlen(names[i].name) == n && !strncmp(at, names[i].name, n)) bit = names[i].bit;
    if (n && !bit && known) {
      known = 0;
      if (unknown) *unknown = at;
    }
    found |= bit;
    at += n + (at[n] != 0);
  }
  *off = with_what_needs_it(found);
  return known;
}

uint32_t mx_isa_usable(uint32_t off) {
  uint32_t by_name;
  mx_isa_parse(&by_name, getenv("MXGOLD_ISA_OFF"), NULL);
  return mx_isa_host() & ~with_what_needs_it(off | by_name);
}

uint32_t mx_isa_only(uint32_t isa) { return isa == MX_ISA_AVX2 ? MX_ISA_ALL & ~isa : isa == MX_ISA_AVX512 ? MX_ISA_AMX : isa ? 0 : MX_ISA_ALL; }

const mx_kernels *mxi_kernels_for(uint32_t off) {
  const uint32_t usable = mx_isa_usable(off);
  const mx_kernels *k = table;
  while (k->isa && !(k->isa & usable)) k++;
  return k;
}

const char *mx_isa_kernels(size_t index, uint32_t *isa, uint32_t off) {
  static const char *const what[] = {
#define MX_KERNEL(column, type, text) text,
      MX_KERNEL_COLUMNS(MX_KERNEL)
#undef MX_KERNEL
  };
  const mx_kernels *k = mxi_kernels_for(off);
  const int there[] = {
#define MX_KERNEL(column, type, text) k->column != NULL,
      MX_KERNEL_COLUMNS(MX_KERNEL)
#undef MX_KERNEL
  };
  if (index >= sizeof what / sizeof *what) return NULL;
  *isa = there[index] ? k->isa : 0;
  return what[index];
}

const char *mx_isa_name(uint32_t bit) {
  for (size_t i = 0; i < NAMES; i++)
    if (names[i].bit == bit && bit != MX_ISA_ALL) return names[i].name;
  return NULL;
}
