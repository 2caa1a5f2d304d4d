/* Computes cvt and rcp.approx over any range of inputs. */
#include "all32.h"

#define SIL_CVT(NAME, BYTES, PTX, ...)                                                                                                         \
  struct op_##NAME {                                                                                                                           \
    typedef uint##BYTES##_type out;                                                                                                            \
    static __device__ out run(float x) {                                                                                                       \
      out y;                                                                                                                                   \
      asm volatile(PTX : SIL_TO_##BYTES(y) : "f"(x), "f"(__uint_as_float(__float_as_uint(x) ^ 0x80000000u)));                                  \
      return y;                                                                                                                                \
    }                                                                                                                                          \
  };
typedef uint16_t uint2_type;
typedef uint32_t uint4_type;
#define SIL_TO_2(y) "=h"(y)
#define SIL_TO_4(y) "=r"(y)
#include "cvt.def"
#undef SIL_CVT

struct op_rcp {
  typedef uint32_t out;
  static __device__ out run(float x) {
    float y;
    asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return __float_as_uint(y);
  }
};

template <class Op> __global__ void all_kernel(uint64_t first, size_t n, typename Op::out *out) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
    out[i] = Op::run(__uint_as_float((uint32_t)(first + i)));
}

template <class Op> static int launch(uint64_t first, size_t n, void *out) {
  all_kernel<Op><<<132 * 16, 256>>>(first, n, (typename Op::out *)out);
  return (int)cudaGetLastError();
}

sil_all32 *const sil_cvt[] = {
#define SIL_CVT(NAME, ...) launch<op_##NAME>,
#include "cvt.def"
};

int sil_rcp(uint64_t first, size_t n, void *out) { return launch<op_rcp>(first, n, out); }
