/* Tests that the host runtime reports what it must, says where, and is silent about a correct kernel. */
#include <stdio.h>
#include <vector>

#include "hip_backend/tests/runtime_kernels.hip"

static int failures;
static void expect(bool ok, const char *what, const char *text) {
  if (!ok) {
    printf("FAILED: %s: \"%s\"\n", what, text);
    failures++;
  }
}

int main() {
  enum { N = 512 };
  runtime_args a;
  uint32_t *src = (uint32_t *)mxh_host::alloc(N * 4), *dst = (uint32_t *)mxh_host::alloc(N * 4);
  for (unsigned i = 0; i < N; i++) src[i] = i * i;
  mxh_host::set_written(src, N * 4);
  a.src = src;
  a.dst = dst;
  a.n = N;
  int n = mxh_host::launch("mxh_rt_sum", 2, 256, &a, sizeof a);
  expect(n == 0, "a right kernel is clean", mxh_host::reports());
  for (unsigned i = 0; i < N; i++) {
    uint32_t sum = 0, r = i / 256 * 256 + 255 - i % 256;
    for (unsigned j = r / 32 * 32; j < r / 32 * 32 + 32; j++) sum += j * j;
    uint32_t want = sum & 1 ? sum + 0x80000000u : sum;
    if ((dst[i] & 0x7fffffffu) != (want & 0x7fffffffu)) expect(false, "sum", "wrong");
  }

  const struct {
    const char *kernel, *says;
    unsigned block;
    size_t n_src, n_dst;
  } wrong[] = {
      {"mxh_rt_barrier_divergent", "block 0 lane 100: divergent barrier at", 128, 1, 128},
      {"mxh_rt_shuffle_divergent", "block 0 lane 7: divergent shuffle at", 64, 1, 64},
      {"mxh_rt_shuffle_absent", "shuffle by lane 0 of the wave from lane 63, which is not there", 32, 1, 32},
      {"mxh_rt_read_beyond", "block 0 lane 63: read of 4 bytes at offset 256 goes beyond memory of 256 bytes", 64, 64, 64},
      {"mxh_rt_write_beyond", "block 0 lane 63: write of 4 bytes at offset 256 goes beyond memory of 256 bytes", 64, 64, 64},
      {"mxh_rt_read_uninitialised", "block 0 lane 0: read of uninitialised memory at offset 0", 64, 64, 64},
      {"mxh_rt_shared_uninitialised", "block 0 lane 0: read of uninitialised xs at offset 0", 64, 64, 64},
      {"mxh_rt_shared_beyond", "block 0 lane 16: write of 4 bytes at offset 64 goes beyond xs of 64 bytes", 64, 64, 64},
      {"mxh_rt_none", "no such kernel", 64, 64, 64},
  };
  for (const auto &w : wrong) {
    runtime_args b;
    uint32_t *s = (uint32_t *)mxh_host::alloc(w.n_src * 4), *d = (uint32_t *)mxh_host::alloc(w.n_dst * 4);
    memset(s, 0, w.n_src * 4);
    mxh_host::set_written(s, w.n_src * 4);
    b.src = s;
    b.dst = d;
    b.n = 0;
    int r = mxh_host::launch(w.kernel, 1, w.block, &b, sizeof b);
    const char *text = mxh_host::reports();
    expect(r != 0 && strstr(text, w.says) && strstr(text, w.kernel), w.kernel, text);
    mxh_host::release(s);
    mxh_host::release(d);
  }
  mxh_host::release(src);
  mxh_host::release(dst);
  printf("hip runtime: %zu wrong kernels, %d not reported as they must be\n", sizeof wrong / sizeof *wrong, failures);
  return failures != 0;
}
