/* Declares elementary functions made of +, -, *, / and sqrt in a fixed order: the same bits on every machine, where libm's change with version and
 * ISA. */
#ifndef MX_ABLATE_SUMS_REAL_H
#define MX_ABLATE_SUMS_REAL_H

/** Natural logarithm of a positive, finite x. */
double mxi_real_ln(double x);
/** e^x for |x| < 700. */
double mxi_real_exp(double x);
/** The normal quantile, 0 < p < 1: Wichura, AS 241 PPND16, Applied Statistics 37 (1988). */
double mxi_real_normal(double p);

#endif
