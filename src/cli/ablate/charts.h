/* Declares the charts: what they are drawn from, the gnuplot scripts that draw them, and the pictures that gnuplot makes of those. */
#ifndef CLI_ABLATE_CHARTS_H
#define CLI_ABLATE_CHARTS_H

#include <stdio.h>

#include "ablate.h"
#include "cli/base/gnuplot.h"

/* Specs as the pictures number them: the best first, those without a finite SQNR last, what gives every tensor the values of another not at all. */
typedef struct chart_order {
  size_t *spec; /* [n]: number i + 1 is spec[i] */
  size_t n;
} chart_order;
int chart_order_make(chart_order *o, const ablate_result *r);
void chart_order_free(chart_order *o);
/** "NAME", or "NAME = OTHER" where others give the same values of every tensor. */
void chart_name(char *room, size_t size, const ablate_result *r, size_t spec);

/* The column that has most of the error. */
typedef struct chart_worst {
  size_t column;
  double share; /* of the sum of squares over the tensor */
} chart_worst;

/* One tensor under every spec. */
struct ablate_detail {
  const ablate_result *result;
  chart_order order;
  size_t tensor, n;       /* n: of the specs */
  unsigned had_size;      /* of the rotation that is drawn before and after */
  double most;            /* largest error of a cell: maps side by side have one scale of colours */
  mx_code_counts *counts; /* [n] */
  mx_detail *detail;      /* [n]; the first has the rotated values */
  chart_worst *worst;     /* [n] */
};

/** Measure a tensor for the charts, on as many threads as asked (0: all). Free *d also after a failure. */
int ablate_detail_make(ablate_detail *d, const ablate_result *r, size_t tensor, int n_threads);
void ablate_detail_free(ablate_detail *d);

/** Colour of number + 1 in all charts ("#rrggbb"), and its dashes: 0 none, 1 dashed, 2 dotted. */
const char *chart_colour(size_t number);
int chart_dash(size_t number);

enum { CHART_MOST_ROWS = 48, CHART_FEW_LINES = 6 };
/** Rows of chart_scales(). */
size_t chart_rows(const ablate_detail *d);
/** Is number + 1 one of the best few, or on the front? A page ticks these at first, since lines of more cover each other. */
int chart_is_ticked(const ablate_result *r, const chart_order *o, size_t number);
/** Whose line and map are those of number + 1? Of specs that give this tensor the same values the first that is ticked, else the first, stands for all. */
size_t chart_drawn_as(const ablate_detail *d, size_t number);
/** Has number + 1 a line and a map of its own? */
int chart_is_drawn(const ablate_detail *d, size_t number);

/* Each writes one plot; what is set before (terminal, size, key) is the caller's. */
void chart_sqnr(FILE *f, const ablate_result *r, const chart_order *order, int with_key);
/* For the script of a page, which lets points come and go: "[NUMBER,PLOT,PLOTS]," for each point that chart_sqnr() draws without a key. PLOT is the first of
 * its PLOTS, counted from 1; the last of four is the circle of a point on the front. Plot 1 is the front itself, in steps. */
void chart_sqnr_plots(FILE *f, const ablate_result *r, const chart_order *order);
/** Sets far[i] if chart_sqnr() leaves out the point of number i + 1, of far more or fewer bits than the others, and clears the others. far: [order->n].
 *  Returns 0 if memory runs out. */
int chart_far(unsigned char *far, const ablate_result *r, const chart_order *order);
void chart_scales(FILE *f, const ablate_detail *d);
/** The best specs, as many as `most`. */
void chart_octaves(FILE *f, const ablate_detail *d, size_t most);
void chart_hadamard(FILE *f, const ablate_detail *d);
void chart_map(FILE *f, const ablate_detail *d, size_t number);
/** A string as gnuplot takes it, quotes included; chart_lines() lets it have several lines. */
void chart_string(FILE *f, const char *s);
void chart_lines(FILE *f, const char *s);
/** A round distance of tics, of which a range has at most so many. */
double chart_step(double range, int most);
/** A sentence on several lines, cut at blanks before so many characters. */
void chart_sentence(FILE *f, const char *s, size_t wide);

/** A picture of several charts, 1500 units wide: begin it with the verdict at the top, and write what gnuplot makes of the script. */
void image_begin(FILE *f, int svg, double height, const char *verdict);
int image_is_svg(const char *path);
int image_write(const char *path, char *script, size_t n);

#endif
