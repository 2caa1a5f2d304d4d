/* Codes of 4 bits with something in the high half of their bytes. */
#ifndef CLI_VERIFY_HIGH_BITS_H
#define CLI_VERIFY_HIGH_BITS_H

#include "mxgold/identify.h"

/** Are the codes of m, one a byte, codes of 4 bits by the signs of the input, with high bits set? Then says where and returns CLI_TROUBLE. */
int high_bits_check(const mx_sample *m);

#endif
