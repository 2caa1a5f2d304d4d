/* Each operation on each ISA against the scalar code: lib/checkasm.h, a line each. NEON's run under an emulator in make check-neon. */
#include <check.h>

#include "lib/checkasm.h"
#include "lib/run.h"
#include "mxgold/isa.h"

START_TEST(every_operation) { ck_assert_msg(checkasm(1u << _i) == 0, "%s differs from the scalar code", mx_isa_name(1u << _i)); }
END_TEST

int main(void) {
  Suite *s = suite_create("kernels");
  TCase *t = tcase_create("operations");
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, every_operation, 0, 3);
  suite_add_tcase(s, t);
  return run_suite(s);
}
