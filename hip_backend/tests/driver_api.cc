/* Tests the drivers' calls as device_dl.cc makes them against the headers of HIP (and of CUDA, if they are installed): the same number of
 * arguments, each an address if the header's is one, or an integer of the same size. It is compiled, not run. */
#include <stddef.h>
#include <type_traits>

#include "hip_backend/run/device_dl.cc"

template <class T>
constexpr bool address = std::is_pointer<T>::value || sizeof(T) == 8; /* CUdeviceptr is an integer of the size of an address */
template <class A, class B>
constexpr bool alike = std::is_pointer<A>::value || std::is_pointer<B>::value ? address<A> &&address<B> && sizeof(A) == sizeof(B)
                                                                              : sizeof(A) == sizeof(B) && !std::is_floating_point<A>::value;
template <class A, class B> struct same : std::false_type {};
template <class R, class S, class... A, class... B> struct same<R (*)(A...), S (*)(B...)> {
  template <bool...> struct list {};
  template <size_t N, size_t M, class = void> struct each : std::false_type {};
  template <size_t N, class V> struct each<N, N, V> : std::is_same<list<true, alike<A, B>...>, list<alike<A, B>..., true>> {};
  static constexpr bool value = sizeof(R) == sizeof(S) && each<sizeof...(A), sizeof...(B)>::value;
};
#define HOLDS(field, symbol) static_assert(same<decltype(calls::field), decltype(&symbol)>::value, #symbol " is not called as its header says");

#ifdef CUDA_API
#include <cuda.h>
MXH_CUDA_CALLS(HOLDS)
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == 75 && CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == 76, "attributes");
#else
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
/* Picks the plain function, since C++ has templates of the same name. */
static hipError_t (*const plain_malloc)(void **, size_t) __attribute__((unused)) = hipMalloc;
#define hipMalloc *plain_malloc
MXH_HIP_CALLS(HOLDS)
/* What hip_target() relies on: a name of 256 bytes comes first, the target after it, and its buffer is large enough. */
static_assert(offsetof(hipDeviceProp_t, name) == 0 && sizeof(hipDeviceProp_t::name) == 256 && sizeof(hipDeviceProp_t) < 1 << 15 &&
                  offsetof(hipDeviceProp_t, gcnArchName) >= 256,
              "hipDeviceProp_t");
#endif
