/* Declares real values of the functions of math.h by MPFR, which shares no code with them, and errors in units in the last place. */
#ifndef TESTS_MATH_ORACLE_H
#define TESTS_MATH_ORACLE_H

/** Error of y as f(x), or with slope as f'(x), in ulps of float32: 0.5 is correct rounding. 0 where both are the same NaN, Inf or zero; Inf where
 *  they differ in kind. Threads: reentrant where MPFR is (a build with thread-local caches). */
double math_oracle_ulps(int function, int slope, float x, float y);

#endif
