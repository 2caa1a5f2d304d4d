/* Lists all 16 codes of E2M1: OCP MX v1.0 table 5. */
#include <math.h>

/* clang-format off */
static const double spec_e2m1[16] = {
    0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, /* 00 */
    -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0, /* 08 */
};
/* clang-format on */
