/* Each operation of the library on each ISA against its scalar code: lib/checkasm.h, a line each. NEON's run under an emulator in make check-neon. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/checkasm.h"
#include "lib/run.h"
#include "mxgold/isa.h"

/* What has to have a line, typed by hand: an operation that is dropped from the harness is missed here. */
static const char *const operations[] = {"quantize",     "quantize, stochastic", "quantize both ways", "dequantize",  "tensor amax", "hadamard",
                                         "encode_array", "decode_array",         "pack 4 bits",        "pack 6 bits", "layouts"};

/* What checkasm() prints, passed on. Returns its result. */
static int said(char *text, size_t room, uint32_t isa) {
  FILE *file = tmpfile();
  ck_assert_ptr_nonnull(file);
  fflush(stdout);
  const int keep = dup(STDOUT_FILENO);
  ck_assert(keep >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
  const int differ = checkasm(isa);
  fflush(stdout);
  ck_assert(dup2(keep, STDOUT_FILENO) >= 0);
  close(keep);
  rewind(file);
  text[fread(text, 1, room - 1, file)] = 0;
  fclose(file);
  fputs(text, stdout);
  fflush(stdout);
  return differ;
}

START_TEST(every_operation) {
  static char text[1 << 16];
  char line[96];
  const char *isa = mx_isa_name(1u << _i);
  const int differ = said(text, sizeof text, 1u << _i);
  size_t lines = 0;
  for (const char *at = text; (at = strchr(at, '\n')); at++) lines++;
  ck_assert_msg(lines == sizeof operations / sizeof *operations, "%s: %zu lines", isa, lines);
  for (size_t k = 0; k < sizeof operations / sizeof *operations; k++) {
    snprintf(line, sizeof line, "kernels: %s, %s: ", operations[k], isa);
    ck_assert_msg(strstr(text, line) != NULL, "no line of %s on %s", operations[k], isa);
  }
  ck_assert_msg(differ == 0, "%s differs from the scalar code", isa);
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
