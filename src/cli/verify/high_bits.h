/* Declares the test for 4-bit codes that are stored one a byte with something in the high half of the byte. */
#ifndef CLI_VERIFY_HIGH_BITS_H
#define CLI_VERIFY_HIGH_BITS_H

#include "mxgold/identify.h"

/** Are the codes of m, one a byte, codes of 4 bits by the signs of the input, with high bits set? Then says where and returns CLI_TROUBLE. */
int high_bits_check(const mx_sample *m);

#endif
