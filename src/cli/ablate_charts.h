/* Gnuplot scripts of the charts; each takes the stream that the script goes to, after the terminal is set. */
#ifndef CLI_ABLATE_CHARTS_H
#define CLI_ABLATE_CHARTS_H

#include <stdio.h>

#include "ablate.h"

enum { CHART_SPECS = 8 }; /* lines in one chart that an eye can tell apart */

/** A tensor in detail under the specs that charts show. */
typedef struct chart_detail {
  size_t n;
  unsigned had_size; /* of the rotation that is drawn before and after */
  size_t spec[CHART_SPECS];
  mx_measure measure[CHART_SPECS];
  mx_detail detail[CHART_SPECS];
} chart_detail;

int chart_detail_make(chart_detail *out, const ablate_result *r, const float *x, size_t tensor);
void chart_sqnr(FILE *f, const ablate_result *r);
void chart_scales(FILE *f, const ablate_result *r, const chart_detail *d);
void chart_octaves(FILE *f, const ablate_result *r, const chart_detail *d);
void chart_map(FILE *f, const ablate_result *r, const chart_detail *d, size_t which);
void chart_hadamard(FILE *f, const chart_detail *d);
/** A string as gnuplot takes it, quotes included. */
void chart_string(FILE *f, const char *s);

#endif
