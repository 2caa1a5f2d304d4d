/* Each operation on each ISA against the scalar code: lib/checkasm.h, a line each. NEON's run under an emulator in make check-neon. */
#include <check.h>
#include <string.h>

#include "lib/checkasm.h"
#include "lib/run.h"
#include "mxgold/isa.h"
#include "mxgold/quantize.h"

START_TEST(every_operation) { ck_assert_msg(checkasm(1u << _i) == 0, "%s differs from the scalar code", mx_isa_name(1u << _i)); }
END_TEST

/* What earlier calls left on the stack decides nothing. Found by hip-diff: an E4M3 NaN kept its sign where that memory was not zero. */
static __attribute__((noinline)) void leave_on_stack(int byte) {
  volatile uint8_t room[32768];
  for (size_t i = 0; i < sizeof room; i++) room[i] = (uint8_t)byte;
}
START_TEST(nan_after_other_calls) {
  mx_spec spec = {0};
  mx_tensor t;
  mx_error err;
  ck_assert_int_eq(mx_spec_parse(&spec, "elem=e4m3 elem.overflow=ieee", &err), MX_OK);
  ck_assert_int_eq(mx_tensor_alloc(&t, 1, 128, &spec), MX_OK);
  memset(t.codes, 0xFF, 128);
  memset(t.scales, 127, 4);
  for (int byte = 0; byte < 256; byte += 85)
    for (int isa = 0; isa < 2; isa++) {
      const mx_exec how = {.n_threads = 1, .isa_mask = isa ? UINT32_MAX : 0};
      float out[128];
      leave_on_stack(byte);
      ck_assert_int_eq(mx_dequantize(out, 128, &t, &spec, &how), MX_OK);
      for (int i = 0; i < 128; i++) {
        uint32_t bits;
        memcpy(&bits, out + i, sizeof bits);
        ck_assert_msg(bits == 0x7FC00000, "byte %02x: element %d is %08x", byte, i, bits);
      }
    }
  mx_tensor_free(&t);
}
END_TEST

int main(void) {
  Suite *s = suite_create("kernels");
  TCase *t = tcase_create("operations");
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, every_operation, 0, 3);
  tcase_add_test(t, nan_after_other_calls);
  suite_add_tcase(s, t);
  return run_suite(s);
}
