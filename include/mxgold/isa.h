/** Which instruction sets the fast kernels may use, and how many threads a call has. Results never depend on either. */
#ifndef MXGOLD_ISA_H
#define MXGOLD_ISA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of mx_exec.isa_mask: a bit set there switches the ISA off. */
enum {
  MX_ISA_AVX2 = 1,   /* AVX2, FMA, F16C, BMI1, BMI2 */
  MX_ISA_AVX512 = 2, /* AVX-512 F, BW, DQ, VL, CD, VBMI, VBMI2, VNNI and all of AVX2's */
  MX_ISA_NEON = 4,   /* AArch64's vectors */
  MX_ISA_ALL = 7
};

/** What this machine has. */
uint32_t mx_isa_host(void);
/** What a call may use: mx_isa_host() less `off` and less what the environment variable MXGOLD_ISA_OFF names ("avx512", "avx2,avx512", "all"). */
uint32_t mx_isa_usable(uint32_t off);
/** "avx2" of MX_ISA_AVX2; NULL for what is not one bit of MX_ISA_ALL. */
const char *mx_isa_name(uint32_t bit);
/** Threads of a call that was given this many: those, or one for each processor that OpenMP has if 0. */
int mx_thread_count(int n_threads);

#ifdef __cplusplus
}
#endif
#endif
