/* Embeds tokens: rows of a table by token, and of another by position. */
#include "train/layers/layers.h"
#include "train/layers/parallel.h"

void mxi_embed_forward(float *out, const int32_t *token, const float *table, const float *places, size_t N, size_t T, size_t C,
                       const mx_exec *exec) {
#pragma omp parallel for schedule(static) num_threads(train_threads(exec, N *C))
  for (size_t n = 0; n < N; n++) {
    const float *row = table + (size_t)token[n] * C, *place = places ? places + n % T * C : NULL;
    for (size_t c = 0; c < C; c++) out[n * C + c] = place ? row[c] + place[c] : row[c];
  }
}

/* Threads divide the columns among themselves, so that each sum keeps its order. */
void mxi_embed_backward(float *dtable, float *dplaces, const float *dout, const int32_t *token, size_t N, size_t T, size_t C,
                        const mx_exec *exec) {
  enum { WIDE = 16 };
#pragma omp parallel for schedule(static) num_threads(train_threads(exec, N *C))
  for (size_t from = 0; from < C; from += WIDE) {
    const size_t to = from + WIDE < C ? from + WIDE : C;
    for (size_t n = 0; n < N; n++) {
      const float *d = dout + n * C;
      float *row = dtable + (size_t)token[n] * C, *place = dplaces ? dplaces + n % T * C : NULL;
      for (size_t c = from; c < to; c++) row[c] += d[c];
      for (size_t c = from; c < to && place; c++) place[c] += d[c];
    }
  }
}
