/* The charts: what they are drawn from, the gnuplot scripts that draw them, and the pictures that gnuplot makes of those. */
#ifndef CLI_ABLATE_CHARTS_H
#define CLI_ABLATE_CHARTS_H

#include <stdio.h>

#include "ablate.h"

/* One tensor under every spec. */
struct ablate_detail {
  const ablate_result *result;
  size_t tensor, n;       /* n: of the specs */
  unsigned had_size;      /* of the rotation that is drawn before and after */
  double most;            /* largest error of a cell: maps side by side have one scale of colours */
  mx_code_counts *counts; /* [n] */
  mx_detail *detail;      /* [n]; the first has the rotated values */
};

/** Measure a tensor for the charts, on as many threads as asked (0: all). Free *d also after a failure. */
int ablate_detail_make(ablate_detail *d, const ablate_result *r, size_t tensor, int n_threads);
void ablate_detail_free(ablate_detail *d);

/** Colour of a spec in all charts ("#rrggbb"), and its dashes: 0 none, 1 dashed, 2 dotted. */
const char *chart_colour(size_t spec);
int chart_dash(size_t spec);

/* Each writes one plot; what is set before (terminal, size, key) is the caller's. */
void chart_sqnr(FILE *f, const ablate_result *r);
void chart_scales(FILE *f, const ablate_detail *d);
void chart_octaves(FILE *f, const ablate_detail *d);
void chart_hadamard(FILE *f, const ablate_detail *d);
void chart_map(FILE *f, const ablate_detail *d, size_t spec);
/** A string as gnuplot takes it, quotes included. */
void chart_string(FILE *f, const char *s);

/** Standard output of gnuplot on a script; the caller frees *out. */
int gnuplot_run(const char *script, size_t n_script, char **out, size_t *n);
/** Is it there? Says so if not. */
int gnuplot_check(void);

#endif
