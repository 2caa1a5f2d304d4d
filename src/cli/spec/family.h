/* Declares --bound-bits, --bound-fraction and --bound-sums: the family of devices that a bound holds for. */
#ifndef CLI_SPEC_FAMILY_H
#define CLI_SPEC_FAMILY_H

#include "cli/base/cli.h"
#include "mxgold/gemm.h"

/** Choices of --bound-sums, as those of an option. */
const char *family_sums(size_t index);
/** What the options say, {0} without them; sums NULL where it is not given. Says what is wrong, in the command's name, and returns CLI_TROUBLE. */
int family_of(mx_gemm_family *out, const char *command, int bound, cli_u64 bits, cli_u64 fraction, const char *sums);

#endif
