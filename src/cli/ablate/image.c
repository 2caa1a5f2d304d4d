/* All charts in one picture: SQNR against bits at the top, whose key has the colours of the others; three charts of one tensor; its maps of the error. */
#include <stdlib.h>
#include <string.h>

#include "charts.h"
#include "cli/base/files.h"

/* Pixels. The key takes KEY_LINE a spec; beyond MOST_MAPS the picture would be too high to look at: the page has them all. */
enum { WIDTH = 1500, TOP = 620, KEY_LINE = 19, BAND = 40, MIDDLE = 420, MAP_COLUMNS = 4, MAP_HEIGHT = 290, MOST_MAPS = 24 };

typedef struct canvas {
  FILE *f;
  double height;
} canvas;

static void place(const canvas *c, int x, int y, int w, int h) {
  fprintf(c->f, "reset\nset size %.9g,%.9g\nset origin %.9g,%.9g\n", (double)w / WIDTH, h / c->height, (double)x / WIDTH,
          1 - (y + h) / c->height);
}

static size_t maps_of(const ablate_detail *d) { return d->n < MOST_MAPS ? d->n : MOST_MAPS; }

static void band(const canvas *c, const ablate_detail *d, int y) {
  const ablate_tensor *t = &d->result->tensors->at[d->tensor];
  char text[700];
  if (maps_of(d) < d->n)
    snprintf(text, sizeof text, "%s, %zu x %zu, the most damaged tensor; maps of the error of the first %zu of %zu", t->name, t->rows, t->cols,
             maps_of(d), d->n);
  else
    snprintf(text, sizeof text, "%s, %zu x %zu, the most damaged tensor; at the bottom the error over it", t->name, t->rows, t->cols);
  fputs("set label 1 ", c->f);
  chart_string(c->f, text);
  fprintf(c->f, " at screen 0.5,%.9g center font ',15' noenhanced\n", 1 - (y + BAND / 2.0) / c->height);
}

static void draw(FILE *f, const ablate_result *r, const ablate_detail *d, int svg) {
  const int top = TOP > (int)(d->n + 3) * KEY_LINE ? TOP : (int)(d->n + 3) * KEY_LINE, n_maps = (int)maps_of(d);
  const canvas c = {f, top + BAND + MIDDLE + (n_maps + MAP_COLUMNS - 1) / MAP_COLUMNS * MAP_HEIGHT};
  fprintf(f, "set terminal %s size %d,%.0f font 'sans,%d' background rgb 'white'\nset multiplot\n", svg ? "svg" : "pngcairo", WIDTH, c.height,
          svg ? 13 : 11);
  place(&c, 0, 0, WIDTH, top);
  band(&c, d, top);
  chart_sqnr(f, r);
  static void (*const charts[])(FILE *, const ablate_detail *) = {chart_scales, chart_octaves, chart_hadamard};
  for (int i = 0; i < 3; i++) {
    place(&c, i * WIDTH / 3, top + BAND, WIDTH / 3, MIDDLE);
    charts[i](f, d);
  }
  for (int i = 0; i < n_maps; i++) {
    place(&c, i % MAP_COLUMNS * WIDTH / MAP_COLUMNS, top + BAND + MIDDLE + i / MAP_COLUMNS * MAP_HEIGHT, WIDTH / MAP_COLUMNS, MAP_HEIGHT);
    chart_map(f, d, (size_t)i);
  }
  fputs("unset multiplot\n", f);
}

static int ends_with(const char *s, const char *end) {
  const size_t n = strlen(s), m = strlen(end);
  return n > m && !strcmp(s + n - m, end);
}

int ablate_image_check(const char *path) {
  if (!ends_with(path, ".svg") && !ends_with(path, ".png")) return cli_error("--png: '%s', expected a name that ends in .png or .svg", path);
  return file_check(path);
}

int ablate_image(const ablate_result *r, const ablate_detail *d, const char *path) {
  char *script = NULL, *image = NULL;
  size_t n, n_image;
  FILE *f = open_memstream(&script, &n);
  if (!f) return cli_error("out of memory");
  draw(f, r, d, ends_with(path, ".svg"));
  if (fclose(f)) return cli_error("out of memory");
  int rc = gnuplot_run(script, n, &image, &n_image);
  if (!rc) rc = file_write_whole(path, image, n_image);
  free(script);
  free(image);
  return rc;
}
