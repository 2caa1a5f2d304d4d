/* Shows a kernel under test: plain OCP MXFP4, with bugs that can be switched on.
 *
 *   cc -O2 -shared -fPIC -Iinclude examples/kernel_plugin.c -lm -o kernel.so
 *   mxgold test --plugin ./kernel.so --preset ocp-mxfp4
 *
 * -DBUG_TIES rounds ties away from zero; -DBUG_AMAX takes the largest number of a block for its largest magnitude;
 * -DBUG_BOUNDS writes one block too far; -DBUG_HANG never returns. */
#include <math.h>
#include <string.h>

#include "mxgold/plugin.h"

#ifdef BUG_AMAX
#define SIZE(x) (x)
#else
#define SIZE(x) fabsf(x)
#endif

static unsigned code_of(float x, float scale) {
  static const float values[8] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
  const float q = fabsf(x) / scale;
  unsigned c = 0;
  while (c < 7) {
    const float middle = (values[c] + values[c + 1]) / 2;
#ifdef BUG_TIES
    if (q < middle) break;
#else
    if (q < middle || (q == middle && c % 2 == 0)) break;
#endif
    c++;
  }
  return c | (signbit(x) ? 8u : 0);
}

int mxgold_quantize(const mxgold_job *job) {
  if (!strstr(job->spec, "elem=e2m1 scale=e8m0 block=1x32 scale.rule=floor")) return 1; /* the one spec that this kernel does */
#ifdef BUG_HANG
  for (volatile int forever = 1; forever;) {
  }
#endif
  for (size_t r = 0; r < job->rows; r++)
    for (size_t b = 0; b < job->scale_cols; b++) {
      const float *x = job->x + r * job->ld;
      const size_t first = b * 32, end = first + 32 < job->cols ? first + 32 : job->cols;
      float amax = 0;
      int special = 0, e = 0;
      for (size_t c = first; c < end; c++) {
        special |= !isfinite(x[c]);
        if (SIZE(x[c]) > amax) amax = SIZE(x[c]);
      }
      frexpf(amax, &e);
      int byte = special ? 255 : amax == 0 ? 0 : e - 1 - 2 + 127;
      if (byte < 0) byte = 0;
      job->scales[r * job->scale_cols + b] = (uint8_t)byte;
      const float scale = special ? 1 : ldexpf(1, byte - 127);
      for (size_t c = first; c < end; c++) job->codes[r * job->code_stride + c / 2] |= (uint8_t)(code_of(x[c], scale) << (c % 2 * 4));
    }
#ifdef BUG_BOUNDS
  memset(job->codes + job->rows * job->code_stride, 0, 16);
#endif
  return 0;
}
