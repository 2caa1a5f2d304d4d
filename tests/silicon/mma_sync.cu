/* Runs mma.sync of every type in rows.def, one warp for each tile; fragments are read from and written to row-major tiles of raw bits.
   All shapes share one layout in bytes: lane l holds, of row l/4 (and +8), the bytes 4(l%4) .. +3 of each 16-byte half of k. */
#include "silicon.h"

#define SIL_REGS_424(d, a, b)                                                                                                                  \
  "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(d[0]),                                                                        \
                                                            "+r"(d[1]),                                                                        \
                                                            "+r"(d[2]),                                                                        \
                                                            "+r"(d[3])                                                                         \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])
#define SIL_REGS_422(d, a, b)                                                                                                                  \
  "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};" : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])
#define SIL_REGS_214(d, a, b)                                                                                                                  \
  "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0])
#define SIL_REGS_112(d, a, b) "{%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(b[0])
#define SIL_REGS_212(d, a, b) "{%0,%1}, {%2,%3}, {%4}, {%0,%1};" : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(a[1]), "r"(b[0])

/* One instruction; the type says how many registers each operand takes. */
#define SIL_MMA(NAME, M, N, K, A, B, C, NA, NB, NC, PTX)                                                                                       \
  struct op_##NAME {                                                                                                                           \
    static constexpr int na = NA, nb = NB, nc = NC, rows = M / 8, k = K;                                                                       \
    static __device__ void issue(uint32_t *d, const uint32_t *a, const uint32_t *b) {                                                          \
      asm volatile("mma.sync.aligned." PTX " " SIL_REGS_##NA##NB##NC(d, a, b));                                                                \
    }                                                                                                                                          \
  };
#define SIL_F64(...)
#define SIL_WGMMA(...)
#include "rows.def"
#undef SIL_MMA

template <class Op> __global__ void tiles_kernel(const uint8_t *a, const uint8_t *b, const uint8_t *c, uint8_t *d, size_t tiles, int steps) {
  /* A lane holds the rows g and, of 16-row shapes, g+8. Bytes: an instruction's k in a row of a or b; a row of c (8 columns of 4 or 2). */
  constexpr int rows = Op::rows, per_row = Op::nc / rows, row_ab = 16 * Op::na / rows, row_c = 16 * per_row;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const size_t stride = (size_t)row_ab * steps, warps = (size_t)gridDim.x * (blockDim.x / 32);
  for (size_t tile = blockIdx.x * (size_t)(blockDim.x / 32) + threadIdx.x / 32; tile < tiles; tile += warps) {
    const uint8_t *pa = a + tile * 8 * rows * stride, *pb = b + tile * 8 * stride;
    const size_t pc = (tile * 8 * rows + g) * row_c + t * (row_c / 4);
    uint32_t acc[Op::nc];
    for (int i = 0; i < Op::nc; i++) acc[i] = c ? *(const uint32_t *)(c + pc + i / per_row * 8 * row_c + i % per_row * 4) : 0;
    for (int s = 0; s < steps; s++) {
      uint32_t fa[Op::na], fb[Op::nb];
      for (int i = 0; i < Op::na; i++) fa[i] = *(const uint32_t *)(pa + (g + 8 * (i % rows)) * stride + s * row_ab + 16 * (i / rows) + 4 * t);
      for (int i = 0; i < Op::nb; i++) fb[i] = *(const uint32_t *)(pb + g * stride + s * row_ab + 16 * i + 4 * t);
      Op::issue(acc, fa, fb);
    }
    for (int i = 0; i < Op::nc; i++) *(uint32_t *)(d + pc + i / per_row * 8 * row_c + i % per_row * 4) = acc[i];
  }
}

template <class Op> static int launch(const void *a, const void *b, const void *c, void *d, size_t tiles, int k, int flags) {
  tiles_kernel<Op>
      <<<132 * 8, 256>>>((const uint8_t *)a, (const uint8_t *)b, flags & SIL_C ? (const uint8_t *)c : nullptr, (uint8_t *)d, tiles, k / Op::k);
  return (int)cudaGetLastError();
}

const sil_device_row sil_mma_rows[] = {
#define SIL_MMA(NAME, M, N, K, A, B, C, NA, NB, NC, PTX) {{#NAME, M, N, K, #A, #B, #C}, launch<op_##NAME>},
#include "rows.def"
};
const int sil_mma_count = sizeof sil_mma_rows / sizeof *sil_mma_rows;
