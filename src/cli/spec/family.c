/* Reads --bound-bits, --bound-fraction and --bound-sums as the family of devices that a bound holds for. */
#include "cli/spec/family.h"

const char *family_sums(size_t index) {
  static const char *names[] = {"f32", "f16", NULL};
  return names[index];
}

int family_of(mx_gemm_family *out, const char *command, int bound, cli_u64 bits, cli_u64 fraction, const char *sums) {
  if ((bits.given || fraction.given || sums) && !bound)
    return cli_error("%s: --bound-bits, --bound-fraction or --bound-sums without --bound", command);
  if (bits.given && !bits.v) return cli_error("--bound-bits: 1 to 24 expected");
  if (fraction.given && !fraction.v) return cli_error("--bound-fraction: 1 or more expected; without it nothing is cut");
  *out = (mx_gemm_family){.bits = bits.v > 24 ? 25 : (int)bits.v, /* refused by who takes it */
                          .fraction = fraction.v > 1000 ? 1000 : (int)fraction.v,
                          .sums = sums ? (mx_dtype)mx_dtype_find(sums) : MX_F32};
  return CLI_FINE;
}
