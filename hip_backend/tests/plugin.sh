#!/usr/bin/env bash
# Other people's kernels on a machine without a device: what make device-plugin builds, which device mxgold test takes, and what it says when
# nothing ran. plugin.sh MXGOLD BUILD MAKE CC
set -eu
mxgold=$(realpath "$1") so=$(realpath "$2")/device_kernel.so make=$3 cc=${4:-cc} root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
fail() { echo "hip-plugin-check: $*" >&2; exit 1; }
# says STATUS WORDS ARGUMENT...: mxgold test's exit status, and what it says, once
says() {
  local want=$1 words=$2 rc=0
  shift 2
  "$mxgold" test --plugin "$so" --suite ties "$@" >"$work/out" 2>"$work/err" || rc=$?
  [ $rc = "$want" ] || fail "exit $rc, expected $want: $words: $(cat "$work/out" "$work/err")"
  [ -z "$words" ] || [ "$(grep -cF -- "$words" "$work/err")" = 1 ] || fail "not once: $words; said: $(cat "$work/err")"
}
build() { $make device-plugin-build "$@" || fail "device-plugin $*"; }

# The example, then another source that is older than what was built, then other flags: each is what runs.
unset MXGOLD_DEVICE
build
MXGOLD_DEVICE=host says 0 "" --set scale.rule=even
mkdir -p "$work/yours"
cat >"$work/yours/device_kernel.cc" <<'C'
#include "hip_backend/run/device_plugin.h"
extern "C" int mxgold_quantize_device(const mxgold_device_job *) { return 0; }
C
touch -d 2001-01-01 "$work/yours/device_kernel.cc"
build PLUGIN_SRC="$work/yours/device_kernel.cc"
MXGOLD_DEVICE=host says 1 "" --set scale.rule=even
build PLUGIN_FLAGS=-DBUG_ROWS
MXGOLD_DEVICE=host says 1 "" --set scale.rule=even
build
MXGOLD_DEVICE=host says 0 "" --set scale.rule=even

# Nothing ran: not a pass.
MXGOLD_DEVICE=bogus says 2 "device plugin: no device, SKIPPED: expected a device of auto, hip, cuda or host" --set scale.rule=even
MXGOLD_DEVICE=host says 2 "nothing was tested: the kernel declined all 1 tensors" --preset nvfp4 --junit "$work/t.xml"
grep -q 'skipped="1"' "$work/t.xml" && grep -q '<skipped/>' "$work/t.xml" || fail "JUnit does not say skipped"

# The example in HIP's own words, for the host runtime; its bug; and without ROCm, a skip that says what is missing.
build PLUGIN_SRC=examples/device_kernel_hip.hip PLUGIN_ON=host
MXGOLD_DEVICE=host says 0 "" --preset ocp-mxfp4
MXGOLD_DEVICE=host says 2 "nothing was tested: the kernel declined all 1 tensors" --preset nvfp4
# A launch that fails is a finding, not a kernel that declines, whatever it returns; what the host runtime reports is said.
cat >"$work/yours/diverges.hip" <<'C'
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hip_backend/run/device_plugin.h"
__global__ static void diverges(unsigned char *p) {
  if (threadIdx.x < 7) __syncthreads();
  p[threadIdx.x] = 1;
}
extern "C" int mxgold_quantize_device(const mxgold_device_job *job) {
  hipLaunchKernelGGL(diverges, dim3(1), dim3(64), 0, 0, job->codes);
  const char *how = getenv("RETURNS");
  if (strcmp(how, "status")) return atoi(how);
  const hipError_t status = hipGetLastError();
  fprintf(stderr, "mine: %s\n", hipGetErrorString(status));
  return status != hipSuccess;
}
C
build PLUGIN_SRC="$work/yours/diverges.hip" PLUGIN_ON=host
for how in 0 1 2; do
  MXGOLD_DEVICE=host RETURNS=$how says 1 "device plugin: the host runtime reports: a kernel launched by HIP's call: block 0 lane 7: divergent barrier at " --preset ocp-mxfp4
  grep -q 'verdict  *Your kernel fails on ' "$work/out" || fail "a launch that fails: $(cat "$work/out")"
done
MXGOLD_DEVICE=host RETURNS=status says 1 "mine: a kernel launched by HIP's call: " --preset ocp-mxfp4
grep -q 'verdict  *Your kernel fails on ' "$work/out" || fail "a launch that fails and says so: $(cat "$work/out")"
cat >"$work/yours/launches.cc" <<'C'
#include "hip_backend/run/device_plugin.h"
extern "C" int mxgold_quantize_device(const mxgold_device_job *job) { return mxh_launch(job->device, "no_such_kernel", 1, 64, "", 1) != 0; }
C
build PLUGIN_SRC="$work/yours/launches.cc"
MXGOLD_DEVICE=host says 1 "no such kernel" --preset ocp-mxfp4
# A build that fails leaves no plugin of another kernel.
echo 'not C' >"$work/yours/broken.cc"
! $make device-plugin PLUGIN_SRC="$work/yours/broken.cc" >"$work/out" 2>&1 || fail "a source that is not C++ was built"
[ ! -e "$so" ] || fail "the former plugin outlives a build that failed"

build PLUGIN_SRC=examples/device_kernel_hip.hip PLUGIN_ON=host PLUGIN_FLAGS=-DBUG_TIES
MXGOLD_DEVICE=host says 1 "" --preset ocp-mxfp4
if ! echo 'int main() {}' | $cc -x c - -x none -L/opt/rocm/lib -lamdhip64 -o "$work/probe" 2>/dev/null; then
  $make device-plugin PLUGIN_SRC=examples/device_kernel_hip.hip >"$work/out" 2>&1 || fail "a .hip without ROCm: exit $?: $(cat "$work/out")"
  grep -q "device-plugin: SKIPPED, nothing was built: examples/device_kernel_hip.hip needs HIP's runtime" "$work/out" && [ ! -e "$so" ] ||
    fail "a .hip without ROCm: $(cat "$work/out")"
fi
build

# A driver that is played. Its card is taken, and said; a kernel gets cuda and its memory, whatever modules there are.
mkdir "$work/lib"
$cc -shared -fPIC -O1 "$root/hip_backend/tests/played_cuda.c" -Wl,-soname,libcuda.so.1 -o "$work/lib/libcuda.so.1"
export LD_LIBRARY_PATH=$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
MXGOLD_DEVICE=cuda says 2 "device_kernel: native_mxfp4 is for gfx950 and the host runtime, not for sm_75" --set scale.rule=even
cat >"$work/yours/other.cc" <<'C'
#include <stdio.h>
#include <string.h>
#include "hip_backend/run/device_plugin.h"
extern "C" double cos(double);
extern "C" unsigned long crc32(unsigned long, const unsigned char *, unsigned);
extern "C" int mxgold_quantize_device(const mxgold_device_job *job) {
  if (strcmp(mxh_kind(job->device), "cuda")) return 1;
  fprintf(stderr, "on %s, %lu\n", mxh_name(job->device), crc32(0, NULL, 0));
  return 0;
}
C
grep -q libz <(ldconfig -p 2>/dev/null) && lz=$(ldconfig -p | awk '/libz\.so/ {print $NF; exit}') || lz=
[ -n "$lz" ] || sed -i '/crc32/d' "$work/yours/other.cc"
build PLUGIN_SRC="$work/yours/other.cc" PLUGIN_LIBS="$lz"
MXGOLD_DEVICE=cuda says 1 "$([ -n "$lz" ] && echo "on a card that is played, 0")"
says 1 "device plugin: on a card that is played (cuda)"

# A source for nvcc, one for hipcc or clang.
if command -v "${NVCC:-nvcc}" >/dev/null; then
  build PLUGIN_SRC=examples/device_kernel_cuda.cu
  MXGOLD_DEVICE=host says 2 "device_kernel_cuda: the pointers are of host, this kernel needs cuda: SKIPPED"
  rm -r "$work/lib"
  if ! "$mxgold" test --plugin "$so" --suite ties >"$work/out" 2>"$work/err"; then
    grep -q "nothing was tested" "$work/err" || fail "a CUDA kernel without a card: $(cat "$work/err")"
    MXGOLD_DEVICE=cuda says 2 "device plugin: no device, SKIPPED: cuda: "
  fi
  said=", a .cu builds and links"
else
  said=", .cu SKIPPED: no nvcc"
fi
if command -v hipcc >/dev/null || command -v clang-offload-bundler-22 >/dev/null; then
  mkdir -p "$work/hip"
  cat >"$work/yours/third.hip" <<'C'
#include <stdio.h>
#include "hip_backend/run/device_plugin.h"
#ifndef HIP_INCLUDE_HIP_HIP_RUNTIME_H
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
extern "C" int __hipPushCallConfiguration(dim3, dim3, size_t = 0, void * = nullptr);
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
#endif
extern "C" __attribute__((global)) void third(unsigned char *p) { p[__builtin_amdgcn_workitem_id_x()] = 1; }
extern "C" int mxgold_quantize_device(const mxgold_device_job *job) {
  third<<<1, 64>>>(job->codes);
  fprintf(stderr, "third: launched\n");
  return 1;
}
C
  # HIP's runtime, played: it takes the code object in and launches nothing.
  cat >"$work/yours/amdhip.c" <<'C'
int __hipPushCallConfiguration(void) { return 0; }
int __hipPopCallConfiguration(void) { return 0; }
int hipLaunchKernel(void) { return 0; }
void *__hipRegisterFatBinary(void *p) { return p; }
void __hipRegisterFunction(void) {}
void __hipUnregisterFatBinary(void) {}
C
  $cc -shared -fPIC "$work/yours/amdhip.c" -Wl,-soname,libamdhip64.so.7 -o "$work/hip/libamdhip64.so.7"
  ln -s libamdhip64.so.7 "$work/hip/libamdhip64.so"
  build PLUGIN_SRC="$work/yours/third.hip" PLUGIN_LIBS="-L$work/hip"
  LD_LIBRARY_PATH=$work/hip MXGOLD_DEVICE=host says 2 "declined all 1 tensors: third: launched"
  sed -i 's/^void __hipUnregisterFatBinary/int hipGetLastError(void) { return 0; }\nconst char *hipGetErrorString(int e) { return e ? "error" : ""; }\n&/' "$work/yours/amdhip.c"
  $cc -shared -fPIC "$work/yours/amdhip.c" -Wl,-soname,libamdhip64.so.7 -o "$work/hip/libamdhip64.so.7"
  $make device-plugin PLUGIN_SRC=examples/device_kernel_hip.hip PLUGIN_LIBS="-L$work/hip" || fail "the example does not link"
  LD_LIBRARY_PATH=$work/hip MXGOLD_DEVICE=host says 2 "device_kernel_hip: the pointers are of host, this build needs hip: SKIPPED" --preset ocp-mxfp4
  said="$said, a .hip builds and links, for the host runtime it runs"
else
  said="$said, .hip SKIPPED: no hipcc and no clang-tools-22"
fi
build
echo "hip-plugin-check: rebuilds, exits and devices are as they should be$said"
