/** Which instruction sets the fast kernels may use, and how many threads a call has. Results never depend on either. */
#ifndef MXGOLD_ISA_H
#define MXGOLD_ISA_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Bits of mx_exec.isa_mask: a bit set there switches the ISA off. Without AVX2 there is no AVX-512 either, without that no AMX. */
enum {
  MX_ISA_AVX2 = 1,    /* AVX2, FMA, F16C, BMI1, BMI2 */
  MX_ISA_AVX512 = 2,  /* AVX-512 F, BW, DQ, VL, CD, VBMI, VBMI2, VNNI, VPOPCNTDQ and all of AVX2's */
  MX_ISA_NEON = 4,    /* AArch64's vectors */
  MX_ISA_VECTORS = 7, /* all above: every operation has kernels of these */
  MX_ISA_AMX = 8,     /* tiles of AMX with int8, beside AVX-512: products of e2m1 alone */
  MX_ISA_ALL = 15
};

/** What this machine has: asked once, when the program starts. */
uint32_t mx_isa_host(void);
/** What a call may use: mx_isa_host() less `off` and less what the environment variable MXGOLD_ISA_OFF names ("avx512", "avx2,avx512", "all"),
 *  which is looked at in each call. A name that mx_isa_parse() does not know switches nothing off here; the program mxgold refuses it. */
uint32_t mx_isa_usable(uint32_t off);
/** Bits of the ISAs that a list of names with commas switches off; "avx2" takes AVX-512 with it, and that AMX.
 *  off      what the known names give, whether all are known or not
 *  text     NULL is an empty list
 *  unknown  if not NULL and a name is not known: where the first of them begins in text
 *  Returns 1 if every name is known, else 0.   Oracle: tests/test_kernels.c */
int mx_isa_parse(uint32_t *off, const char *text, const char **unknown);
/** A mask of ISAs to be switched off that leaves one (0: scalar code) as the best. */
uint32_t mx_isa_only(uint32_t isa);
/** What the index-th column of the table of kernels does, and in *isa whose kernels a call with this mask takes for it (0: scalar code); NULL past
 *  the last. */
const char *mx_isa_kernels(size_t index, uint32_t *isa, uint32_t off);
/** "avx2" of MX_ISA_AVX2; NULL for what is not one bit of MX_ISA_ALL. */
const char *mx_isa_name(uint32_t bit);

/* No call takes more threads than this, unless the machine has more processors. */
enum { MX_MOST_THREADS = 256 };

/** Threads of a call that was given this many: those, or as many as OpenMP would take if 0 or less, but
 *   - at most MX_MOST_THREADS, or the number of processors where that is larger;
 *   - no more than can be started now: limits on memory, on processes or on threads may allow fewer, at least this one;
 *   - one in a child of fork() if its parent had several threads then: those of OpenMP are not in the child, and it would wait for them for ever.
 *     (A child that starts another program by exec() is not concerned.)
 *  Every n_threads of the library goes through here, so that any number is allowed.
 *  Threads: reentrant; threads that a call needs for the first time are started once more to see that they can be.
 *  Oracle: tests/test_threads.c */
int mx_thread_count(int n_threads);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
