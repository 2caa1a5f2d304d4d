/* Declares the inputs on which identify --plugin runs a kernel, and what the kernel made of them, as samples. */
#ifndef CLI_VERIFY_KERNEL_H
#define CLI_VERIFY_KERNEL_H

#include "cli/verify/plugin.h"
#include "cli/verify/samples.h"

typedef enum kernel_inputs {
  KERNEL_ORDINARY, /* ordinary numbers: random, ties, block maxima */
  KERNEL_SPECIAL,  /* NaN, Inf, -0, subnormals: one tensor of them */
  KERNEL_FRESH     /* ordinary numbers of other seeds, and of another size */
} kernel_inputs;

/** Run the kernel at path on inputs that tell specs apart, each in a child process, and add what it gives to s, which begins as {.nibble = -1}. What it
 *  declines is left out: *declined says how many. A crash, a hang or a write out of bounds is said, and CLI_TROUBLE returned: there are no bytes then. */
int kernel_samples(samples *s, size_t *declined, const char *path, const mx_spec *spec, kernel_inputs which, const plugin_limits *limits);

#endif
