/** Says which instruction sets the fast kernels may use, and how many threads a call has. Results never depend on either. */
#ifndef MXGOLD_ISA_H
#define MXGOLD_ISA_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Bits of mx_exec.isa_mask: a bit that is set there switches the ISA off. AVX-512 needs AVX2, and AMX needs AVX-512. */
enum {
  MX_ISA_AVX2 = 1,    /* AVX2, FMA, F16C, BMI1, BMI2 */
  MX_ISA_AVX512 = 2,  /* AVX-512 F, BW, DQ, VL, CD, VBMI, VBMI2, VNNI, VPOPCNTDQ and all of AVX2's */
  MX_ISA_NEON = 4,    /* AArch64's vectors */
  MX_ISA_VECTORS = 7, /* all of the above: every operation has kernels for these */
  MX_ISA_AMX = 8,     /* tiles of AMX with int8, beside AVX-512: only for products of e2m1 */
  MX_ISA_ALL = 15
};

/** The ISAs that this machine has: determined once, when the program starts. */
uint32_t mx_isa_host(void);
/** What a call may use: mx_isa_host() without `off` and without what the environment variable MXGOLD_ISA_OFF names ("avx512", "avx2,avx512",
 *  "all"), which is read in each call. A name that mx_isa_parse() does not know switches nothing off here; the program mxgold refuses it. */
uint32_t mx_isa_usable(uint32_t off);
/** Bits of the ISAs that a comma-separated list of names switches off; "avx2" also switches off AVX-512, and that also AMX.
 *  off      the bits of the known names, even if other names are unknown
 *  text     NULL is an empty list
 *  unknown  if not NULL and a name is not known: where the first of them begins in text
 *  Returns 1 if every name is known, else 0.   Oracle: tests/test_kernels.c */
int mx_isa_parse(uint32_t *off, const char *text, const char **unknown);
/** The mask of ISAs to switch off so that `isa` is the best one left (0: scalar code). */
uint32_t mx_isa_only(uint32_t isa);
/** What the index-th column of the table of kernels does; NULL past the last. *isa gets the ISA whose kernels a call with this mask uses for it
 *  (0: scalar code). */
const char *mx_isa_kernels(size_t index, uint32_t *isa, uint32_t off);
/** Name of an ISA, such as "avx2" for MX_ISA_AVX2; NULL if bit is not a single bit of MX_ISA_ALL. */
const char *mx_isa_name(uint32_t bit);

/* No call takes more threads than this, unless the machine has more processors. */
enum { MX_MOST_THREADS = 256 };

/** How many threads a call uses that was given n_threads: that many, or if it is 0 or less as many as OpenMP would use, but
 *   - at most MX_MOST_THREADS, or the number of processors if that is larger;
 *   - no more than can be started now: limits on memory, processes or threads may allow fewer, but always the calling one;
 *   - one in a child of fork() if its parent had several threads then: OpenMP's threads do not exist in the child, which would wait
 *     for them for ever. (This does not affect a child that starts another program by exec().)
 *  Every n_threads of the library goes through here, so any number is allowed.
 *  Threads: reentrant; threads that a call needs for the first time are started once more to see that they can be.
 *  Oracle: tests/test_threads.c */
int mx_thread_count(int n_threads);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
