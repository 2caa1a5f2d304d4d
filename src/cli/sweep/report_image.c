/* Draws a report as a picture: the verdict, each arm's difference with its interval, and the loss curves with bands from the lowest seed to the
 * highest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/files.h"
#include "cli/base/gnuplot.h"
#include "report.h"

enum { WIDTH = 1500, HEAD = 110, ROW = 26, LEAST = 420, MOST_ROWS = 60, POINTS = 200, MOST_CURVES = 12, LINE = 170 };

static int ends_with(const char *s, const char *end) {
  const size_t n = strlen(s), m = strlen(end);
  return n > m && !strcmp(s + n - m, end);
}

int report_image_check(const char *path) {
  if (!ends_with(path, ".svg") && !ends_with(path, ".png")) return cli_error("--png: '%s', expected a name that ends in .png or .svg", path);
  const int rc = file_check(path);
  return rc ? rc : gnuplot_check();
}

/* As gnuplot takes it, with a line's end after about LINE characters if `lines`. */
static void string(FILE *f, const char *s, int lines) {
  size_t column = 0;
  putc('"', f);
  for (; *s; s++) {
    if (*s == '"' || *s == '\\' || *s == '`') putc('\\', f);
    if (lines && *s == ' ' && column > LINE) {
      fputs("\\n", f);
      column = 0;
    } else {
      putc((unsigned char)*s < 0x20 ? ' ' : *s, f);
    }
    column++;
  }
  putc('"', f);
}

/* Rows of "mean low high row" as a block of data; returns how many. The first arm is at the top. */
static size_t rows_of(const mx_report *r, const mx_report_arm *arms[MOST_ROWS]) {
  size_t n = 0;
  const mx_report_arm *a;
  for (size_t i = 0; (a = mx_report_arm_at(r, i)) && n < MOST_ROWS; i++)
    if (!isnan(a->behind[MX_EVAL_QUANTISED].mean)) arms[n++] = a;
  return n;
}

static void differences(FILE *f, const mx_report_arm *const *arms, size_t n) {
  fputs("$differences << EOD\n", f);
  for (size_t i = 0; i < n; i++) {
    const mx_mean *m = &arms[i]->behind[MX_EVAL_QUANTISED];
    fprintf(f, "%.9g %.9g %.9g %zu %d\n", m->mean, isnan(m->low) ? m->mean : m->low, isnan(m->high) ? m->mean : m->high, n - i,
            arms[i]->resolved[MX_EVAL_QUANTISED] ? 7 : 6);
  }
  fputs("EOD\nset title 'Validation loss beside the reference (filled: resolved)'\nset grid x\nset ytics (", f);
  for (size_t i = 0; i < n; i++) {
    fputs(i ? ", " : "", f);
    string(f, arms[i]->name, 0);
    fprintf(f, " %zu", n - i);
  }
  fprintf(
      f,
      ")\nset yrange [0.3:%zu.7]\nset arrow 1 from 0, graph 0 to 0, graph 1 nohead lt -1\nplot $differences using 1:4:2:3 with xerrorbars lc "
      "'#1f83c8' lw 2 pt -1 notitle, '' using 1:4:5 with points pt variable ps 1.3 lc '#1f83c8' notitle\nunset arrow 1\n",
      n);
}

static int curves(FILE *f, const mx_report *r) {
  double *steps = malloc(4 * POINTS * sizeof *steps), *losses = steps + POINTS, *low = losses + POINTS, *high = low + POINTS;
  if (!steps) return 0;
  size_t drawn = 0;
  double least = INFINITY, most = -INFINITY;
  for (size_t i = 0; mx_report_arm_at(r, i) && drawn < MOST_CURVES; i++) {
    const size_t n = mx_report_curve(steps, losses, low, high, POINTS, r, i);
    if (!n) continue;
    fprintf(f, "$curve%zu << EOD\n", drawn++);
    for (size_t k = 0; k < n; k++) fprintf(f, "%.9g %.9g %.9g %.9g\n", steps[k], losses[k], low[k], high[k]);
    fputs("EOD\n", f);
    for (size_t k = n / 10; k < n; k++) least = fmin(least, low[k]), most = fmax(most, losses[k]);
  }
  fprintf(f,
          "set title 'Training loss: means and bands of the seeds'\nset ytics auto\nset grid\nset key top right\nset xlabel 'step'\nset yrange "
          "[%.9g:%.9g]\n",
          drawn ? least : 0, drawn && most > least ? most : 1);
  if (!drawn) fputs("plot NaN notitle\n", f);
  for (size_t i = 0, line = 0; mx_report_arm_at(r, i) && line < drawn; i++) {
    if (!mx_report_curve(steps, losses, NULL, NULL, POINTS, r, i)) continue;
    fprintf(f,
            "%s $curve%zu using 1:3:4 with filledcurves fs transparent solid 0.13 noborder lt %zu notitle, $curve%zu using 1:2 with lines lw 2 "
            "lt %zu title ",
            line ? "," : "plot", line, line + 1, line, line + 1);
    string(f, mx_report_arm_at(r, i)->name, 0);
    line++;
  }
  fputs("\n", f);
  free(steps);
  return 1;
}

static int draw(FILE *f, const mx_report *r, const char *verdict, int svg) {
  const mx_report_arm *arms[MOST_ROWS];
  const size_t n = rows_of(r, arms);
  const int high = HEAD + ((int)n * ROW + 90 > LEAST ? (int)n * ROW + 90 : LEAST);
  const double below = 1 - (double)HEAD / high;
  fprintf(f, "set terminal %s size %d,%d font 'sans,%d' background rgb 'white' noenhanced\nset multiplot\nset label 1 ",
          svg ? "svg" : "pngcairo", WIDTH, high, svg ? 13 : 11);
  string(f, verdict, 1);
  fprintf(f,
          " at screen 0.01,%.4f left font ',12'\nunset border\nunset tics\nset size 1,1\nset origin 0,0\nplot [0:1][0:1] NaN notitle\nreset\n",
          1 - 14. / high);
  fprintf(f, "set size 0.55,%.4f\nset origin 0,0\n", below);
  if (n) differences(f, arms, n);
  fprintf(f, "reset\nset size 0.45,%.4f\nset origin 0.55,0\n", below);
  const int drawn = curves(f, r);
  fputs("unset multiplot\n", f);
  return drawn;
}

int report_image(const char *path, const mx_report *r, const char *verdict) {
  char *script = NULL, *image = NULL;
  size_t n, n_image;
  FILE *f = open_memstream(&script, &n);
  if (!f) return cli_error("out of memory");
  const int drawn = draw(f, r, verdict, ends_with(path, ".svg"));
  int rc = fclose(f) || !drawn ? cli_error("out of memory") : gnuplot_run(script, n, &image, &n_image);
  if (!rc) rc = file_write_whole(path, image, n_image);
  free(script);
  free(image);
  return rc;
}
