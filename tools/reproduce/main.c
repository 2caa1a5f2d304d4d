/* Prints the part of docs/FINDINGS.md that needs no training: reproduce [REPEATS]. */
#include <stdio.h>
#include <stdlib.h>

#include "reproduce.h"

int main(int argc, char **argv) {
  if (argc > 2 || (argc == 2 && (repeats = atoi(argv[1])) < 2)) {
    fputs("reproduce: expected a number of repeats, 2 or more\n", stderr);
    return 2;
  }
  normalisers();
  scale_rounding();
  scale_rules();
  zero_scales();
  worked_examples();
  rotations();
  for_every_value();
  blocks_2d();
  formats();
  orders();
  few_bits();
  gain_and_bias();
  clamping();
  gradient_estimator();
  scale_formats();
  without_training();
  return report_print();
}
