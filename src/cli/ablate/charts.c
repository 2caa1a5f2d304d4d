/* What the charts show, as gnuplot scripts. */
#include "charts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void chart_string(FILE *f, const char *s) {
  putc('"', f);
  for (; *s; s++) {
    if (*s == '"' || *s == '\\' || *s == '`') putc('\\', f);
    putc((unsigned char)*s < 0x20 ? ' ' : *s, f);
  }
  putc('"', f);
}

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
                                      "#882255", "#117733", "#999933", "#444444", "#6a3d9a", "#8b4513"};
enum { COLOURS = sizeof colours / sizeof *colours };

const char *chart_colour(size_t spec) { return colours[spec % COLOURS]; }
int chart_dash(size_t spec) { return (int)(spec / COLOURS % 3); }

/* ---- SQNR against bits ---- */

typedef struct point {
  double bits, sqnr, label_x, label_at;
  size_t spec;
  int front;
} point;

/* A spec over all tensors: mean bits and mean SQNR, weighted by values. A point is on the front when none has fewer bits and no less SQNR, or more SQNR at no more. */
static point *points_of(const ablate_result *r, size_t *n_tensors) {
  const size_t n = r->specs->n;
  point *p = calloc(n, sizeof *p);
  if (!p) return NULL;
  for (size_t s = 0; s < n; s++) {
    const ablate_summary a = ablate_summarize(r, s);
    p[s] = (point){.bits = a.bits, .sqnr = a.mean_sqnr, .spec = s, .front = 1};
    *n_tensors = a.n_sqnr;
  }
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      if (p[j].bits <= p[i].bits + ABLATE_SAME_BITS && p[j].sqnr >= p[i].sqnr &&
          (p[j].bits < p[i].bits - ABLATE_SAME_BITS || p[j].sqnr > p[i].sqnr))
        p[i].front = 0;
  for (size_t i = 0; i < n && r->tensors->n == 1; i++) p[i].front = ablate_on_front(r, 0, i); /* one tensor has intervals: as its table */
  return p;
}

/* Does a spec give every tensor the values of an earlier one? The first such, else the spec itself. */
static size_t same_everywhere(const ablate_result *r, size_t spec) {
  const size_t first = ablate_row_at(r, 0, spec)->same_as;
  for (size_t t = 0; t < r->tensors->n; t++)
    if (ablate_row_at(r, t, spec)->same_as != first) return spec;
  return first ? first - 1 : spec;
}

/* gnuplot refuses a plot without a single point; empty axes say so. */
static void or_nothing(FILE *f, int any) {
  if (!any) fputs("set xrange [0:1]\nset yrange [0.1:1]\nset label 'nothing to draw' at graph 0.5, graph 0.5 center\n", f);
}

static int best_first(const void *a, const void *b) {
  const point *x = a, *y = b;
  return x->sqnr != y->sqnr ? (x->sqnr < y->sqnr) - (x->sqnr > y->sqnr) : (x->bits > y->bits) - (x->bits < y->bits);
}

static int fewer_bits(const void *a, const void *b) {
  const point *x = a, *y = b;
  return x->bits != y->bits ? (x->bits > y->bits) - (x->bits < y->bits) : (x->sqnr > y->sqnr) - (x->sqnr < y->sqnr);
}

/* Labels of points that stand over each other, from the top down: as near their points as they can be without one covering another. Runs that touch are
 * moved together, so that their mean distance is 0. */
static void spread(point *const *p, size_t n, double apart) {
  for (size_t i = 0; i < n; i++) p[i]->label_at = p[i]->sqnr;
  for (size_t round = 0; round < n; round++) {
    int moved = 0;
    for (size_t from = 0, to; from < n; from = to) {
      double off = 0;
      for (to = from + 1; to < n && p[to - 1]->label_at - p[to]->label_at < apart * 1.0001; to++) {
      }
      if (to - from < 2) continue;
      for (size_t i = from; i < to; i++) off += p[i]->sqnr + (double)(i - from) * apart;
      const double top = off / (double)(to - from);
      for (size_t i = from; i < to; i++) {
        moved |= fabs(p[i]->label_at - (top - (double)(i - from) * apart)) > apart * 1e-3;
        p[i]->label_at = top - (double)(i - from) * apart;
      }
    }
    if (!moved) break;
  }
}

/* Points carry numbers, which the key beside the chart explains; a line leads from each point to its own. */
static int print_points(FILE *f, point *p, size_t n, double apart, double aside) {
  point **group = malloc((n + 1) * sizeof(point *));
  char *placed = calloc(n + 1, 1);
  for (size_t i = 0; i < n && group && placed; i++) {
    size_t n_group = 0;
    for (size_t j = i; j < n; j++)
      if (!placed[j] && fabs(p[i].bits - p[j].bits) < 2 * aside) {
        group[n_group++] = &p[j];
        placed[j] = 1;
      }
    spread(group, n_group, apart);
    int crowded = 0; /* on the right by points of a few more bits: then labels stand on the left */
    for (size_t j = 0; j < n; j++)
      for (size_t k = 0; k < n_group; k++)
        crowded |= p[j].bits - p[i].bits > 2 * aside && p[j].bits - p[i].bits < 3.5 * aside && fabs(p[j].sqnr - group[k]->label_at) < 2 * apart;
    for (size_t j = 0; j < n_group; j++) group[j]->label_x = p[i].bits + (crowded ? -2 : 2) * aside;
  }
  for (size_t i = 0; i < n; i++)
    fprintf(f, "$p%zu << EOD\n%.17g %.17g %.17g %.17g \"%zu\"\nEOD\n", i, p[i].bits, p[i].sqnr, p[i].label_x, p[i].label_at, i + 1);
  const int good = group && placed;
  free(group);
  free(placed);
  return good;
}

static void print_front(FILE *f, point *p, size_t n) {
  qsort(p, n, sizeof *p, fewer_bits);
  fputs("$front << EOD\n", f);
  for (size_t i = 0; i < n; i++)
    if (p[i].front) fprintf(f, "%.17g %.17g\n", p[i].bits, p[i].sqnr);
  fputs(n ? "EOD\n" : "0 NaN\nEOD\n", f);
}

void chart_sqnr(FILE *f, const ablate_result *r) {
  size_t n = 0, n_tensors = 0;
  point *p = points_of(r, &n_tensors);
  if (!p) return;
  for (size_t i = 0; i < r->specs->n; i++)
    if (isfinite(p[i].sqnr) && same_everywhere(r, i) == i) p[n++] = p[i];
  qsort(p, n, sizeof *p, best_first);
  const double room = n && p[0].sqnr > p[n - 1].sqnr ? p[0].sqnr - p[n - 1].sqnr : 1;
  double least = INFINITY, most = -INFINITY;
  for (size_t i = 0; i < n; i++) {
    least = fmin(least, p[i].bits);
    most = fmax(most, p[i].bits);
  }
  if (!print_points(f, p, n, room / 28, n && most > least ? (most - least) / 60 : 0.02)) n = 0;
  print_front(f, p, n);
  qsort(p, n, sizeof *p, best_first);
  or_nothing(f, n > 0);
  fprintf(f,
          "set title \"SQNR against bits a value, mean over %zu tensor%s\"\nset xlabel 'bits a value, scales counted'\nset ylabel 'SQNR, dB'\n"
          "set grid lc rgb '#dddddd'\nset key outside right top Left reverse noenhanced samplen 1\n"
          "set offsets graph 0.06, graph 0.08, graph 0.08, graph 0.08\n"
          "plot $front using 1:2 with steps lw 2 lc rgb '#bbbbbb' notitle, $front using 1:2 with points pt 6 ps 1.9 lw 2 lc rgb 'black' title "
          "'on the Pareto front'",
          n_tensors, n_tensors == 1 ? "" : "s, weighted by their values");
  static const int marks[] = {7, 5, 9}; /* a disc, a square, a triangle: where the other charts have no, long and short dashes */
  for (size_t i = 0; i < n; i++) {
    char title[600];
    int used = snprintf(title, sizeof title, "%zu  %s", i + 1, r->specs->at[p[i].spec].label);
    for (size_t s = p[i].spec + 1; s < r->specs->n && used < (int)sizeof title; s++)
      if (same_everywhere(r, s) == p[i].spec) used += snprintf(title + used, sizeof title - (size_t)used, " = %s", r->specs->at[s].label);
    if (used < (int)sizeof title) snprintf(title + used, sizeof title - (size_t)used, ", %.2f dB", p[i].sqnr);
    fprintf(f, ", $p%zu using 1:2 with points pt %d ps 1.1 lc rgb '%s' title ", i, marks[chart_dash(p[i].spec)], chart_colour(p[i].spec));
    chart_string(f, title);
    fprintf(f, ", $p%zu using 1:2:($3-$1):($4-$2) with vectors nohead lw 1 lc rgb '%s' notitle", i, chart_colour(p[i].spec));
    fprintf(f, ", $p%zu using 3:4:5 with labels %s,0 font ',10' notitle", i,
            p[i].label_x < p[i].bits ? "right offset -0.3" : "left offset 0.3");
  }
  putc('\n', f);
  free(p);
}

/* ---- One tensor in detail ---- */

/* The data of spec i are $d<i>. Without a key: it would hide the lines, and colours are explained once for all charts. */
static void plot_lines(FILE *f, const ablate_detail *d, const char *style) {
  fputs("unset key\nplot ", f);
  for (size_t i = 0; i < d->n; i++) {
    fprintf(f, "%s$d%zu using 1:2 with %s lw 2 dt %d lc rgb '%s' title ", i ? ", " : "", i, style, chart_dash(i) + 1, chart_colour(i));
    chart_string(f, d->result->specs->at[i].label);
  }
  putc('\n', f);
}

void chart_scales(FILE *f, const ablate_detail *d) {
  int any = 0;
  for (size_t i = 0; i < d->n; i++) {
    const mx_code_counts *n = &d->counts[i];
    int from = MX_BINADES, to = -1;
    for (int b = 0; b < MX_BINADES; b++)
      if (n->factor_binade[b]) {
        if (from == MX_BINADES) from = b;
        to = b;
      }
    fprintf(f, "$d%zu << EOD\n", i);
    if (to < 0) fputs("0 NaN\n", f);
    any |= to >= 0;
    for (int b = from - 1; b <= to + 1 && to >= 0; b++)
      fprintf(f, "%d %.17g\n", b - MX_BINADE_0, b < 0 || b >= MX_BINADES ? 0 : 100 * (double)n->factor_binade[b] / (double)n->n_scales);
    fputs("EOD\n", f);
  }
  fputs("set title 'Histogram of scales'\nset xlabel 'floor(log_2 of what a code is multiplied by), tensor scale counted'\nset ylabel '% of "
        "blocks'\nset yrange [0:*]\nset grid lc rgb '#dddddd'\n",
        f);
  or_nothing(f, any);
  plot_lines(f, d, "histeps");
}

void chart_octaves(FILE *f, const ablate_detail *d) {
  int all = 0;
  for (size_t i = 0; i < d->n; i++) {
    const mx_detail *m = &d->detail[i];
    fprintf(f, "$d%zu << EOD\n", i);
    int any = 0;
    for (int k = 0; k < 64; k++)
      if (m->octave_n[k] && m->octave_e[k] > 0) {
        fprintf(f, "%d %.17g\n", k - 32, sqrt(m->octave_e[k] / m->octave_x[k]));
        any = 1;
      }
    fputs(any ? "EOD\n" : "0 NaN\nEOD\n", f);
    all |= any;
  }
  fputs(
      "set title 'Error against magnitude'\nset xlabel 'floor(log_2 |x| / rms)'\nset ylabel 'rms error / rms x in the octave'\nset logscale y\n"
      "set grid lc rgb '#dddddd'\n",
      f);
  or_nothing(f, all);
  plot_lines(f, d, "linespoints pt 7 ps 0.5");
}

void chart_map(FILE *f, const ablate_detail *d, size_t spec) {
  const mx_detail *m = &d->detail[spec];
  fputs("$map << EOD\n", f);
  for (size_t i = 0; i < m->cell_rows; i++)
    for (size_t j = 0; j < m->cell_cols; j++) fprintf(f, "%.4g%c", m->cell[i * m->cell_cols + j], j + 1 < m->cell_cols ? ' ' : '\n');
  fputs("EOD\nset title ", f);
  chart_string(f, d->result->specs->at[spec].label);
  fputs(" noenhanced\nset xlabel 'columns'\nset ylabel 'rows'\nset cblabel 'rms error / rms x'\nunset key\nunset xtics\nunset ytics\n"
        "set palette defined (0 '#f7fbff', 1 '#6baed6', 2 '#08306b', 3 '#d95f02')\nset yrange [*:*] reverse\nset autoscale fix\n",
        f);
  fprintf(f, "set cbrange [0:%.9g]\nplot $map matrix with image\n", d->most > 0 ? d->most : 1);
}

static int print_octaves(FILE *f, const char *name, const uint64_t n[64]) {
  uint64_t all = 0;
  int any = 0;
  for (int k = 0; k < 64; k++) all += n[k];
  fprintf(f, "$%s << EOD\n", name);
  for (int k = 0; k < 64; k++)
    if (n[k]) {
      fprintf(f, "%d %.17g\n", k - 32, 100 * (double)n[k] / (double)all);
      any = 1;
    }
  fputs(any ? "EOD\n" : "0 NaN\nEOD\n", f);
  return any;
}

void chart_hadamard(FILE *f, const ablate_detail *d) {
  const int before = print_octaves(f, "before", d->detail[0].octave_n), after = print_octaves(f, "after", d->detail[0].rotated_n);
  or_nothing(f, before || after);
  fprintf(f, "set title 'Magnitudes before and after a Hadamard rotation of %u'\n", d->had_size);
  fputs("set xlabel 'floor(log_2 |x| / rms)'\nset ylabel '% of values'\nset logscale y\nset grid lc rgb '#dddddd'\nset key top left\n"
        "plot $before with linespoints lw 2 pt 7 ps 0.6 lc rgb '#0072b2' title 'before', "
        "$after with linespoints lw 2 pt 7 ps 0.6 lc rgb '#d55e00' title 'after'\n",
        f);
}
