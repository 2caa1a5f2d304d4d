/* Finds out whether the processor has AMX tiles, and asks Linux for permission to use them. */
#include "kernels/tile_state.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

int mxi_tiles_host(void) {
  enum { OSXSAVE = 1 << 27, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25, TILE_STATE = 3 << 17 };
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE)) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || ~d & (AMX_TILE | AMX_INT8)) return 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & TILE_STATE) == TILE_STATE;
}

/* The answer of Linux is kept for the life of the process, since it does not change. */
int mxi_tiles_permitted(void) {
  enum { UNKNOWN, NO, YES };
  enum { REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 }; /* asm/prctl.h, since Linux 5.16 */
  static _Atomic int kept;
  int answer = atomic_load_explicit(&kept, memory_order_relaxed);
  if (answer == UNKNOWN) {
    answer = syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XTILEDATA) ? NO : YES;
    atomic_store_explicit(&kept, answer, memory_order_relaxed);
  }
  return answer == YES;
}
#else
int mxi_tiles_host(void) { return 0; }
int mxi_tiles_permitted(void) { return 0; }
#endif
