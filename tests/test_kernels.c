/* Compares each operation of the library on each ISA with its scalar code by lib/checkasm.h, which prints a line for each. make check-neon
 * runs those of NEON under an emulator. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/dispatch.h"
#include "lib/checkasm.h"
#include "lib/run.h"
#include "mxgold/isa.h"
#include "mxgold/quantize.h"

/* The operations that must have a line, typed by hand, so that one that is dropped from the harness is missed here. */
static const char *const operations[] = {
    "quantize", "quantize, stochastic", "quantize, 16-bit input", "quantize both ways", "dequantize",  "tensor amax",
    "hadamard", "encode_array",         "decode_array",           "pack 4 bits",        "pack 6 bits", "layouts",
    "diff"};

/* Captures what checkasm() prints and passes it on. Returns its result. */
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

/* What earlier calls left on the stack must not matter. (hip-diff found that an E4M3 NaN kept its sign if that memory was not zero.) */
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

/* No row of the table has the scalar code in place of its own, and the mask acts on rows. */
START_TEST(the_table_has_every_kernel) {
  uint32_t isa;
  size_t columns = 0;
  for (const char *what; (what = mx_isa_kernels(columns, &isa, MX_ISA_ALL)); columns++) ck_assert_uint_eq(isa, 0);
  ck_assert_uint_eq(columns, 9);
  for (uint32_t bit = 1; bit & MX_ISA_VECTORS; bit <<= 1) {
    const mx_kernels *k = mxi_kernels_for(mx_isa_only(bit)), *plain = mxi_kernels_for(MX_ISA_ALL);
    if (!(mx_isa_usable(0) & bit)) continue;
    ck_assert_uint_eq(k->isa, bit);
    ck_assert(k->stages && k->values != plain->values && k->encode && k->bytes);
    ck_assert(k->input != plain->input && k->turn != plain->turn && k->widen != plain->widen && k->differ != plain->differ);
    for (size_t i = 0; i < columns; i++) ck_assert(mx_isa_kernels(i, &isa, mx_isa_only(bit)) && isa == bit);
  }
}
END_TEST

START_TEST(names_of_masks) {
  static const struct {
    const char *text;
    uint32_t off;
    int unknown; /* the position of an unknown name; -1: none */
  } cases[] = {{NULL, 0, -1},
               {"", 0, -1},
               {"avx512", MX_ISA_AVX512 | MX_ISA_AMX, -1},
               {"amx", MX_ISA_AMX, -1},
               {"avx2", MX_ISA_AVX2 | MX_ISA_AVX512 | MX_ISA_AMX, -1},
               {"neon,avx512", MX_ISA_NEON | MX_ISA_AVX512 | MX_ISA_AMX, -1},
               {"all", MX_ISA_ALL, -1},
               {"avx", 0, 0},
               {"avx512,avx22,sse", MX_ISA_AVX512 | MX_ISA_AMX, 7},
               {"AVX2", 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t off;
    const char *bad = NULL;
    ck_assert_int_eq(mx_isa_parse(&off, cases[i].text, &bad), cases[i].unknown < 0);
    ck_assert_uint_eq(off, cases[i].off);
    if (cases[i].unknown >= 0) ck_assert_ptr_eq(bad, cases[i].text + cases[i].unknown);
  }
  ck_assert_uint_eq(mx_isa_usable(MX_ISA_AVX2) & MX_ISA_AVX512, 0);
  ck_assert_uint_eq(mxi_kernels_for(MX_ISA_AVX2)->isa & (MX_ISA_AVX2 | MX_ISA_AVX512), 0);
}
END_TEST

int main(void) {
  Suite *s = suite_create("kernels");
  TCase *t = tcase_create("operations");
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, every_operation, 0, 3);
  tcase_add_test(t, nan_after_other_calls);
  tcase_add_test(t, the_table_has_every_kernel);
  tcase_add_test(t, names_of_masks);
  suite_add_tcase(s, t);
  return run_suite(s);
}
