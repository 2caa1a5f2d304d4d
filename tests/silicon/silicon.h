/** Declares the device's side of "held to silicon": every instruction of rows.def as one call over tiles of raw bits. */
#ifndef SILICON_H
#define SILICON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sil_row {
  const char *name;      /* INSTRUCTION of `mxgold models`, "mma_m16n8k16_f32_f16_f16_f32" */
  int m, n, k;           /* shape of one instruction */
  const char *a, *b, *c; /* operand types; d has c's */
} sil_row;

/* Flags: where an operand of wgmma comes from, and whether there is a c. */
enum { SIL_C = 1, SIL_A_IN_REGISTERS = 2 };

/** Run tiles on the device: d[t] = a[t] b[t]^T + c[t], instructions chained in ascending k.
 *  a [tiles][m][k], b [tiles][n][k], c and d [tiles][m][n]: device pointers to raw bits; k a multiple of the row's k.
 *  Without SIL_C in flags the sum starts from nothing (wgmma: scale-d 0; mma.sync: c = +0) and c may be NULL.
 *  Returns 0, or a CUDA error code. The launch is asynchronous. */
typedef int sil_launch(const void *a, const void *b, const void *c, void *d, size_t tiles, int k, int flags);

typedef struct sil_device_row {
  sil_row row;
  sil_launch *launch;
} sil_device_row;

extern const sil_device_row sil_mma_rows[], sil_f64_rows[], sil_wgmma_rows[];
extern const int sil_mma_count, sil_f64_count, sil_wgmma_count;

#ifdef __cplusplus
}
#endif
#endif
