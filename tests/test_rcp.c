/* Tests the approximate reciprocal: the library against the reference on every fraction, and known values. make silicon-check compares the
 * device's own digest of all 2^32 inputs. */
#include <check.h>

#include "../ref/ref.h"
#include "lib/run.h"
#include "mxgold/rcp.h"

START_TEST(library_equals_reference_on_all_fractions_and_exponents) {
  for (uint32_t f = 0; f < 1u << 23; f++) ck_assert_uint_eq(mx_rcp_approx_sm90(0x3F800000 | f), ref_rcp_sm90(0x3F800000 | f));
  for (uint32_t i = 0; i < 1u << 20; i++) {
    const uint32_t bits = i * 4093u; /* an odd factor, so that every exponent and sign occurs */
    ck_assert_uint_eq(mx_rcp_approx_sm90(bits), ref_rcp_sm90(bits));
  }
}
END_TEST

START_TEST(special_values) {
  static const uint32_t pairs[][2] = {{0x3F800000, 0x3F800000}, {0x40000000, 0x3F000000}, {0x00000000, 0x7F800000},
                                      {0x80000000, 0xFF800000}, {0x00000001, 0x7F800000}, {0x7F800000, 0},
                                      {0xFF800000, 0x80000000}, {0x7FC00000, 0x7FFFFFFF}, {0x7F7FFFFF, 0}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    ck_assert_uint_eq(mx_rcp_approx_sm90(pairs[i][0]), pairs[i][1]);
    ck_assert_uint_eq(ref_rcp_sm90(pairs[i][0]), pairs[i][1]);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("rcp");
  TCase *t = tcase_create("sm_90");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, library_equals_reference_on_all_fractions_and_exponents);
  tcase_add_test(t, special_values);
  suite_add_tcase(s, t);
  return run_suite(s);
}
