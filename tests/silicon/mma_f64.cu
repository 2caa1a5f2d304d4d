/* Runs mma.sync on binary64, one warp for each tile. Lane l holds rows l/4 and l/4+8 of a at k = l%4, 4+l%4, ..., and column l/4 of b at the same k. */
#include "silicon.h"

#define SIL_F64(NAME, M, N, K, NA, NB, NC, PTX)                                                                                                \
  struct op_##NAME {                                                                                                                           \
    static constexpr int m = M, na = NA, nb = NB, nc = NC, k = K;                                                                              \
    static __device__ void issue(double *d, const double *a, const double *b) { SIL_ISSUE_##NA(PTX) }                                          \
  };
#define SIL_ISSUE_1(PTX) asm volatile("mma.sync.aligned." PTX " {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(d[0]), "+d"(d[1]) : "d"(a[0]), "d"(b[0]));
#define SIL_ISSUE_2(PTX)                                                                                                                       \
  asm volatile("mma.sync.aligned." PTX " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"                                                         \
               : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])                                                                                \
               : "d"(a[0]), "d"(a[1]), "d"(b[0]));
#define SIL_ISSUE_4(PTX)                                                                                                                       \
  asm volatile("mma.sync.aligned." PTX " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                                \
               : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])                                                                                \
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#define SIL_ISSUE_8(PTX)                                                                                                                       \
  asm volatile("mma.sync.aligned." PTX " {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"                        \
               : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])                                                                                \
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]),      \
                 "d"(b[3]));
#define SIL_MMA(...)
#define SIL_WGMMA(...)
#include "rows.def"
#undef SIL_F64

template <class Op> __global__ void tiles_kernel(const double *a, const double *b, const double *c, double *d, size_t tiles, int steps) {
  constexpr int rows = Op::m / 8; /* the number of rows that a lane holds: g, and of 16-row shapes g+8 */
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const size_t stride = (size_t)Op::k * steps, warps = (size_t)gridDim.x * (blockDim.x / 32);
  for (size_t tile = blockIdx.x * (size_t)(blockDim.x / 32) + threadIdx.x / 32; tile < tiles; tile += warps) {
    const double *pa = a + tile * Op::m * stride, *pb = b + tile * 8 * stride;
    double acc[Op::nc];
    for (int i = 0; i < Op::nc; i++) acc[i] = c ? c[(tile * Op::m + g + 8 * (i / 2)) * 8 + 2 * t + i % 2] : 0.0;
    for (int s = 0; s < steps; s++) {
      double fa[Op::na], fb[Op::nb];
      for (int i = 0; i < Op::na; i++) fa[i] = pa[(g + 8 * (i % rows)) * stride + s * Op::k + 4 * (i / rows) + t];
      for (int i = 0; i < Op::nb; i++) fb[i] = pb[g * stride + s * Op::k + 4 * i + t];
      Op::issue(acc, fa, fb);
    }
    for (int i = 0; i < Op::nc; i++) d[(tile * Op::m + g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = acc[i];
  }
}

template <class Op> static int launch(const void *a, const void *b, const void *c, void *d, size_t tiles, int k, int flags) {
  tiles_kernel<Op>
      <<<132 * 8, 256>>>((const double *)a, (const double *)b, flags & SIL_C ? (const double *)c : nullptr, (double *)d, tiles, k / Op::k);
  return (int)cudaGetLastError();
}

const sil_device_row sil_f64_rows[] = {
#define SIL_F64(NAME, M, N, K, NA, NB, NC, PTX) {{#NAME, M, N, K, "f64", "f64", "f64"}, launch<op_##NAME>},
#include "rows.def"
};
const int sil_f64_count = sizeof sil_f64_rows / sizeof *sil_f64_rows;
