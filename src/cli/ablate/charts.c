/* Writes the charts as gnuplot scripts. */
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

void chart_lines(FILE *f, const char *s) {
  putc('"', f);
  for (; *s; s++) {
    if (*s == '"' || *s == '\\' || *s == '`') putc('\\', f);
    if (*s == '\n')
      fputs("\\n", f);
    else
      putc((unsigned char)*s < 0x20 ? ' ' : *s, f);
  }
  putc('"', f);
}

void chart_sentence(FILE *f, const char *s, size_t wide) {
  char *text = strdup(s);
  size_t from = 0, blank = 0;
  for (size_t i = 0; text && text[i]; i++) {
    if (text[i] == ' ') blank = i;
    if (i - from < wide || blank <= from) continue;
    text[blank] = '\n';
    from = blank + 1;
  }
  chart_lines(f, text ? text : s);
  free(text);
}

double chart_step(double range, int most) {
  static const double nice[] = {1, 2, 2.5, 5, 10};
  const double least = range / most, ten = pow(10, floor(log10(least)));
  for (size_t i = 0; i < sizeof nice / sizeof *nice; i++)
    if (nice[i] * ten >= least * (1 - 1e-9)) return nice[i] * ten;
  return 10 * ten;
}

/* One of each hue, which stand on white and on black alike; three kinds of lines make 24 of the eight. */
static const char *const colours[] = {"#1f83c8", "#d55e00", "#0fa076", "#cc6fa4", "#dd9a00", "#8c6fd0", "#9c6b3f", "#7f868c"};
enum { COLOURS = sizeof colours / sizeof *colours };

const char *chart_colour(size_t number) { return colours[number % COLOURS]; }
int chart_dash(size_t number) { return (int)(number / COLOURS % 3); }

/* ---- Which specs, in which order ---- */

typedef struct ranked {
  size_t spec;
  double bits, sqnr;
} ranked;

/* Without a finite SQNR, as of a tensor of zeros, last. */
static int best_first(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  const double u = isfinite(x->sqnr) ? x->sqnr : -INFINITY, v = isfinite(y->sqnr) ? y->sqnr : -INFINITY;
  if (u != v) return (u < v) - (u > v);
  return x->bits != y->bits ? (x->bits > y->bits) - (x->bits < y->bits) : (x->spec > y->spec) - (x->spec < y->spec);
}

int chart_order_make(chart_order *o, const ablate_result *r) {
  const size_t n = r->specs->n;
  ranked *all = malloc(n * sizeof *all);
  *o = (chart_order){.spec = malloc(n * sizeof *o->spec)};
  for (size_t s = 0; s < n && all && o->spec; s++) {
    const ablate_summary a = r->summary[s];
    if (ablate_shown_as(r, s) == s) all[o->n++] = (ranked){s, a.bits, a.mean_sqnr};
  }
  if (all) qsort(all, o->n, sizeof *all, best_first);
  for (size_t i = 0; i < o->n; i++) o->spec[i] = all[i].spec;
  const int good = all && o->spec;
  free(all);
  return good ? CLI_FINE : cli_error("out of memory");
}

void chart_order_free(chart_order *o) { free(o->spec); }

void chart_name(char *room, size_t size, const ablate_result *r, size_t spec) {
  size_t used = (size_t)snprintf(room, size, "%s", r->specs->at[spec].label);
  for (size_t s = 0; s < r->specs->n && used < size; s++)
    if (s != spec && ablate_same_everywhere(r, s, spec)) used += (size_t)snprintf(room + used, size - used, " = %s", r->specs->at[s].label);
}

/* ---- SQNR against bits ---- */

typedef struct point {
  double bits, sqnr, label_x, label_at;
  size_t number, spec;
  int front;
} point;

static point *points_of(const ablate_result *r, const chart_order *o, size_t *n, size_t *n_tensors) {
  point *p = calloc(o->n + 1, sizeof *p);
  *n = 0;
  for (size_t i = 0; i < o->n && p; i++) {
    const ablate_summary a = r->summary[o->spec[i]];
    *n_tensors = a.n_sqnr;
    if (!isfinite(a.mean_sqnr)) continue;
    p[(*n)++] = (point){.bits = a.bits, .sqnr = a.mean_sqnr, .number = i, .spec = o->spec[i], .front = ablate_on_front_of_all(r, o->spec[i])};
  }
  return p;
}

/* gnuplot refuses a plot without a single point; empty axes say so. */
static void or_nothing(FILE *f, int any) {
  if (!any) fputs("set xrange [0:1]\nset yrange [0.1:1]\nset label 'nothing to draw' at graph 0.5, graph 0.5 center\n", f);
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
    fprintf(f, "$p%zu << EOD\n%.17g %.17g %.17g %.17g \"%zu\"\nEOD\n", i, p[i].bits, p[i].sqnr, p[i].label_x, p[i].label_at, p[i].number + 1);
  const int good = group && placed;
  free(group);
  free(placed);
  return good;
}

static int by_number(const void *a, const void *b) {
  const point *x = a, *y = b;
  return (x->number > y->number) - (x->number < y->number);
}

/* Sorts the points. */
static void print_front(FILE *f, point *p, size_t n) {
  qsort(p, n, sizeof *p, fewer_bits);
  fputs("$front << EOD\n", f);
  for (size_t i = 0; i < n; i++)
    if (p[i].front) fprintf(f, "%.17g %.17g\n", p[i].bits, p[i].sqnr);
  fputs(n ? "EOD\n" : "0 NaN\nEOD\n", f);
}

/* A few points of far more or fewer bits would leave most of the picture empty and crowd the others together. Find a step of at least a bit with two thirds of
 * the points, three at least, on one side, within half of all decibels: those alone are drawn, and the key says where the others are. p: by bits. */
static void without_far(const point *p, size_t n, size_t *from, size_t *to) {
  *from = 0;
  *to = n;
  double low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < n; i++) low = fmin(low, p[i].sqnr), high = fmax(high, p[i].sqnr);
  size_t most = 0;
  for (size_t cut = 1; cut < n; cut++) {
    if (p[cut].bits - p[cut - 1].bits < 1) continue;
    for (int right = 0; right < 2; right++) {
      const size_t a = right ? cut : 0, b = right ? n : cut;
      double least = INFINITY, best = -INFINITY;
      for (size_t i = a; i < b; i++) least = fmin(least, p[i].sqnr), best = fmax(best, p[i].sqnr);
      if (b - a < 3 || 3 * (b - a) < 2 * n || b - a <= most || best - least > (high - low) / 2) continue;
      most = b - a;
      *from = a;
      *to = b;
    }
  }
}

static void title_of(char *title, size_t size, const ablate_result *r, const point *p, int outside) {
  char name[600];
  chart_name(name, sizeof name, r, p->spec);
  snprintf(title, size, "%zu  %s, %.2f dB%s", p->number + 1, name, p->sqnr, outside ? ", outside the picture" : "");
}

/* All points, those that are drawn from *from to *to; the caller frees them. */
static point *points_drawn(const ablate_result *r, const chart_order *order, size_t *n_all, size_t *n_tensors, size_t *from, size_t *to) {
  *n_all = *n_tensors = *from = *to = 0;
  point *all = points_of(r, order, n_all, n_tensors);
  if (!all) return NULL;
  qsort(all, *n_all, sizeof *all, fewer_bits);
  without_far(all, *n_all, from, to);
  qsort(all + *from, *to - *from, sizeof *all, by_number);
  return all;
}

int chart_far(unsigned char *far, const ablate_result *r, const chart_order *order) {
  size_t n_all, n_tensors, from, to;
  point *all = points_drawn(r, order, &n_all, &n_tensors, &from, &to);
  if (!all) return 0;
  memset(far, 0, order->n);
  for (size_t i = 0; i < n_all; i++)
    if (i < from || i >= to) far[all[i].number] = 1;
  free(all);
  return 1;
}

enum { POINT_PLOTS = 3 };

void chart_sqnr_plots(FILE *f, const ablate_result *r, const chart_order *order) {
  size_t n_all, n_tensors, from, to, plot = 2;
  point *all = points_drawn(r, order, &n_all, &n_tensors, &from, &to);
  for (size_t i = from; i < to; i++) {
    const size_t n = POINT_PLOTS + (all[i].front != 0);
    fprintf(f, "[%zu,%zu,%zu],", all[i].number, plot, n);
    plot += n;
  }
  free(all);
}

void chart_sqnr(FILE *f, const ablate_result *r, const chart_order *order, int with_key) {
  static const char circle[] = "with points pt 6 ps 1.9 lw 2 lc rgb 'black'";
  size_t n_all, n_tensors, from, to;
  point *all = points_drawn(r, order, &n_all, &n_tensors, &from, &to);
  if (!all) return;
  point *p = all + from;
  size_t n = to - from;
  double least = INFINITY, most = -INFINITY, low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < n; i++) {
    least = fmin(least, p[i].bits), most = fmax(most, p[i].bits);
    low = fmin(low, p[i].sqnr), high = fmax(high, p[i].sqnr);
  }
  if (!print_points(f, p, n, n && high > low ? (high - low) / 24 : 1, n && most > least ? (most - least) / 60 : 0.02)) n = 0;
  print_front(f, p, n);
  qsort(p, n, sizeof *p, by_number);
  or_nothing(f, n > 0);
  fprintf(
      f,
      "set title \"SQNR against bits a value, mean over %zu tensor%s\"\nset xlabel 'bits a value, scales counted%s'\nset ylabel 'SQNR, dB%s'\n"
      "set grid lc rgb '#dddddd'\nset offsets graph 0.06, graph 0.08, graph 0.08, graph 0.08\n",
      n_tensors, n_tensors == 1 ? "" : "s", to - from < n_all ? "; far points are left out" : "", n_tensors == 1 ? "" : ", weighted by values");
  fputs(with_key ? "set key outside right top Left reverse noenhanced samplen 1\n" : "unset key\n", f);
  fputs("plot $front using 1:2 with steps lw 2 lc rgb '#bbbbbb' notitle", f);
  if (with_key) fprintf(f, ", $front using 1:2 %s title 'on the Pareto front'", circle);
  static const int marks[] = {7, 5, 9}; /* a disc, a square, a triangle: where the other charts have no, long and short dashes */
  for (size_t i = 0; i < n; i++) {
    char title[700];
    title_of(title, sizeof title, r, &p[i], 0);
    fprintf(f, ", $p%zu using 1:2 with points pt %d ps 1.1 lc rgb '%s' title ", i, marks[chart_dash(p[i].number)], chart_colour(p[i].number));
    chart_string(f, title);
    fprintf(f, ", $p%zu using 1:2:($3-$1):($4-$2) with vectors nohead lw 1 lc rgb '%s' notitle", i, chart_colour(p[i].number));
    fprintf(f, ", $p%zu using 3:4:5 with labels %s,0 font ',10' notitle", i,
            p[i].label_x < p[i].bits ? "right offset -0.3" : "left offset 0.3");
    if (p[i].front && !with_key) fprintf(f, ", $p%zu using 1:2 %s notitle", i, circle);
  }
  for (size_t i = 0; i < n_all && with_key; i++) {
    char title[700];
    if (i >= from && i < to) continue;
    title_of(title, sizeof title, r, &all[i], 1);
    fprintf(f, ", NaN with points pt %d ps 1.1 lc rgb '%s' title ", marks[chart_dash(all[i].number)], chart_colour(all[i].number));
    chart_string(f, title);
  }
  putc('\n', f);
  free(all);
}

/* ---- One tensor in detail ---- */

int chart_is_ticked(const ablate_result *r, const chart_order *o, size_t number) {
  return number < CHART_FEW_LINES || ablate_on_front_of_all(r, o->spec[number]);
}

size_t chart_drawn_as(const ablate_detail *d, size_t number) {
  size_t first = number;
  for (size_t i = 0; i < d->order.n; i++) {
    if (!ablate_same_values(d->result, d->tensor, d->order.spec[i], d->order.spec[number])) continue;
    if (chart_is_ticked(d->result, &d->order, i)) return i;
    if (i < first) first = i;
  }
  return first;
}

int chart_is_drawn(const ablate_detail *d, size_t number) { return chart_drawn_as(d, number) == number; }

size_t chart_rows(const ablate_detail *d) { return d->order.n < CHART_MOST_ROWS ? d->order.n : CHART_MOST_ROWS; }

/* Names of the rows where they are short, else their numbers, which the key explains. */
static void row_names(FILE *f, const ablate_detail *d) {
  size_t longest = 0;
  for (size_t i = 0; i < chart_rows(d); i++) longest = fmax((double)longest, (double)strlen(d->result->specs->at[d->order.spec[i]].label));
  fputs("unset ytics\nset ytics nomirror scale 0 noenhanced (", f);
  for (size_t i = 0; i < chart_rows(d); i++) {
    char text[40];
    snprintf(text, sizeof text, "%zu", i + 1);
    fputs(i ? ", " : "", f);
    chart_string(f, longest < 24 ? d->result->specs->at[d->order.spec[i]].label : text);
    fprintf(f, " -%zu", i);
  }
  fprintf(f, ")\nset yrange [-%.9g:1]\n", (double)chart_rows(d) - 0.5);
}

/* A row a spec, so that none covers another: bars as high as the share of the blocks. */
void chart_scales(FILE *f, const ablate_detail *d) {
  int first = MX_BINADES, last = -1;
  for (size_t i = 0; i < chart_rows(d); i++) {
    const mx_code_counts *n = &d->counts[d->order.spec[i]];
    uint64_t most = 1;
    for (int b = 0; b < MX_BINADES; b++)
      if (n->factor_binade[b] > most) most = n->factor_binade[b];
    fprintf(f, "$d%zu << EOD\n", i);
    int any = 0;
    for (int b = 0; b < MX_BINADES; b++) {
      if (!n->factor_binade[b]) continue;
      any = 1;
      first = b < first ? b : first;
      last = b > last ? b : last;
      const double base = -(double)i - 0.35, high = 0.8 * (double)n->factor_binade[b] / (double)most;
      fprintf(f, "%d %.9g %.9g %.9g %.9g %.9g\n", b - MX_BINADE_0, base, b - MX_BINADE_0 - 0.45, b - MX_BINADE_0 + 0.45, base, base + high);
    }
    fputs(any ? "EOD\n" : "0 NaN 0 0 0 0\nEOD\n", f);
  }
  fputs("set title 'Histogram of scales, each row to its highest'\nset xlabel 'log_2 of what a code is multiplied by'\n"
        "unset ylabel\nset grid xtics lc rgb '#dddddd'\nset style fill solid 0.85 noborder\nunset key\n",
        f);
  or_nothing(f, last >= 0);
  if (last >= 0) fprintf(f, "set xrange [%d:%d]\n", first - MX_BINADE_0 - 1, last - MX_BINADE_0 + 1);
  row_names(f, d);
  fputs("plot ", f);
  for (size_t i = 0; i < chart_rows(d); i++)
    fprintf(f, "%s$d%zu using 1:2:3:4:5:6 with boxxyerror lc rgb '%s' notitle", i ? ", " : "", i, chart_colour(i));
  putc('\n', f);
}

enum { LEAST_OCTAVE = -12 }; /* of |x| / rms: below, little is left of values and of their errors */

/* Of the rms of the whole tensor, not of the octave: what a rotation spreads over small values is many times those, and a small part of the tensor. */
void chart_octaves(FILE *f, const ablate_detail *d, size_t most) {
  int all = 0, top = LEAST_OCTAVE;
  const ablate_row *row = ablate_row_at(d->result, d->tensor, 0);
  const double rms = row->sums.n ? sqrt(row->sums.xx / (double)row->sums.n) : 0;
  size_t n = 0;
  for (size_t i = 0; i < d->order.n && n < most; i++) {
    const mx_detail *m = &d->detail[d->order.spec[i]];
    if (!chart_is_drawn(d, i)) continue;
    n++;
    fprintf(f, "$d%zu << EOD\n", i);
    int any = 0;
    for (int k = 32 + LEAST_OCTAVE; k < 64; k++) {
      if (!m->octave_n[k]) continue;
      top = k - 32 > top ? k - 32 : top;
      if (!(m->octave_e[k] > 0) || !(rms > 0)) continue;
      fprintf(f, "%d %.17g\n", k - 32, sqrt(m->octave_e[k] / (double)m->octave_n[k]) / rms);
      any = 1;
    }
    fputs(any ? "EOD\n" : "0 NaN\nEOD\n", f);
    all |= any;
  }
  fputs("set title 'Error against magnitude", f);
  if (n < d->order.n && most < d->order.n) fprintf(f, ", the best %zu of %zu", n, d->order.n);
  fputs("'\nset xlabel 'floor(log_2 |x| / rms)'\nset ylabel 'rms error / rms of the tensor'\nset logscale y\nset format y '%g'\n"
        "set grid lc rgb '#dddddd'\nunset key\n",
        f);
  or_nothing(f, all);
  if (all) fprintf(f, "set xrange [%d:%d]\n", LEAST_OCTAVE - 1, top + 1);
  fputs("plot ", f);
  for (size_t i = 0, k = 0; i < d->order.n && k < most; i++) {
    if (!chart_is_drawn(d, i)) continue;
    fprintf(f, "%s$d%zu using 1:2 with linespoints pt 7 ps 0.5 lw 2 dt %d lc rgb '%s' title ", k++ ? ", " : "", i, chart_dash(i) + 1,
            chart_colour(i));
    chart_string(f, d->result->specs->at[d->order.spec[i]].label);
  }
  putc('\n', f);
}

void chart_map(FILE *f, const ablate_detail *d, size_t number) {
  const size_t spec = d->order.spec[number];
  const mx_detail *m = &d->detail[spec];
  const ablate_tensor *t = &d->result->tensors->at[d->tensor];
  char title[600];
  int used = snprintf(title, sizeof title, "%zu", number + 1);
  for (size_t i = 0, n = 0; i < d->order.n && n < 4; i++)
    if (i != number && ablate_same_values(d->result, d->tensor, d->order.spec[i], spec))
      used += sprintf(title + used, n++ < 3 ? " = %zu" : " = ...", i + 1);
  used += snprintf(title + used, sizeof title - (size_t)used, "  %.80s", d->result->specs->at[spec].label);
  if (used < (int)sizeof title && d->worst[spec].share * (double)t->cols > 4)
    snprintf(title + used, sizeof title - (size_t)used, "\ncolumn %zu has %.2g %% of the error", d->worst[spec].column,
             100 * d->worst[spec].share);
  fputs("$map << EOD\n", f);
  for (size_t i = 0; i < m->cell_rows; i++)
    for (size_t j = 0; j < m->cell_cols; j++) fprintf(f, "%.4g%c", m->cell[i * m->cell_cols + j], j + 1 < m->cell_cols ? ' ' : '\n');
  fputs("EOD\nset title ", f);
  chart_lines(f, title);
  fputs(" noenhanced\nset xlabel 'column'\nset ylabel 'row'\nset cblabel 'rms error / rms x'\nunset key\nset tics out nomirror\n"
        "set palette defined (0 '#f7fbff', 1 '#6baed6', 2 '#08306b', 3 '#d95f02')\n",
        f);
  const double wide = (double)t->cols / (double)m->cell_cols, high = (double)t->rows / (double)m->cell_rows;
  fprintf(f, "set xtics %.9g\nset ytics %.9g\nset cbtics %.9g\n", fmax(1, chart_step((double)t->cols, 5)),
          fmax(1, chart_step((double)t->rows, 5)), chart_step(d->most > 0 ? d->most : 1, 5));
  fprintf(f, "set xrange [0:%zu]\nset yrange [%zu:0]\nset cbrange [0:%.9g]\n", t->cols, t->rows, d->most > 0 ? d->most : 1);
  fprintf(f, "plot $map matrix using (($1+0.5)*%.9g):(($2+0.5)*%.9g):3 with image\n", wide, high);
}

static int print_octaves(FILE *f, const char *name, const uint64_t n[64]) {
  uint64_t all = 0;
  int any = 0;
  for (int k = 0; k < 64; k++) all += n[k];
  fprintf(f, "$%s << EOD\n", name);
  for (int k = 32 + LEAST_OCTAVE; k < 64; k++)
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
  fputs("set xlabel 'floor(log_2 |x| / rms)'\nset ylabel '% of values'\nset logscale y\nset format y '%g'\nset grid lc rgb '#dddddd'\nset key "
        "top left\n"
        "plot $before with linespoints lw 2 pt 7 ps 0.6 lc rgb '#1f83c8' title 'before', "
        "$after with linespoints lw 2 pt 7 ps 0.6 lc rgb '#d55e00' title 'after'\n",
        f);
}
