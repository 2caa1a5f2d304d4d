/* Draws all charts into one picture: the verdict; SQNR against bits, whose key has the numbers and colours of the others; three charts of one
 * tensor; its maps of the error. */
#include <stdlib.h>
#include <string.h>

#include "charts.h"
#include "cli/base/files.h"

/* Pixels. The key takes KEY_LINE a spec; beyond MOST_MAPS the picture would be too high to look at: the page has them all. */
enum {
  WIDTH = 1500,
  TOP = 620,
  KEY_LINE = 19,
  SENTENCE = 60,
  BAND = 40,
  MIDDLE = 420,
  ROW = 17,
  MAP_COLUMNS = 4,
  MAP_HEIGHT = 310,
  MOST_MAPS = 24
};

typedef struct canvas {
  FILE *f;
  double height;
} canvas;

static void place(const canvas *c, int x, int y, int w, int h) {
  fprintf(c->f, "reset\nset size %.9g,%.9g\nset origin %.9g,%.9g\n", (double)w / WIDTH, h / c->height, (double)x / WIDTH,
          1 - (y + h) / c->height);
}

/* Specs that give the tensor the same values share one map. */
static size_t all_maps_of(const ablate_detail *d) {
  size_t n = 0;
  for (size_t i = 0; i < d->order.n; i++) n += (size_t)chart_is_drawn(d, i);
  return n;
}

static size_t maps_of(const ablate_detail *d) { return all_maps_of(d) < MOST_MAPS ? all_maps_of(d) : MOST_MAPS; }

static void band(const canvas *c, const ablate_detail *d, int y) {
  const ablate_tensor *t = &d->result->tensors->at[d->tensor];
  char text[700];
  if (maps_of(d) < all_maps_of(d))
    snprintf(text, sizeof text, "%s, %zu x %zu, the most damaged tensor; maps of the error of the best %zu of %zu", t->name, t->rows, t->cols,
             maps_of(d), all_maps_of(d));
  else
    snprintf(text, sizeof text, "%s, %zu x %zu, the most damaged tensor; at the bottom the error over it", t->name, t->rows, t->cols);
  fputs("set label 1 ", c->f);
  chart_string(c->f, text);
  fprintf(c->f, " at screen 0.5,%.9g center font ',15' noenhanced\n", 1 - (y + BAND / 2.0) / c->height);
}

void image_begin(FILE *f, int svg, double height, const char *verdict) {
  fprintf(f, "set terminal %s size %d,%.0f font 'sans,%d' background rgb 'white'\nset multiplot\nset label 1 ", svg ? "svg" : "pngcairo", WIDTH,
          height, svg ? 13 : 11);
  chart_sentence(f, verdict, 140);
  fprintf(f, " at screen 0.02,%.9g left font ',14' noenhanced\n", 1 - 18 / height);
  fprintf(f, "unset border\nunset tics\nunset key\nset size 1,1\nset origin 0,0\nplot [0:1][0:1] NaN notitle\n"); /* a label needs a plot */
}

static void draw(FILE *f, const ablate_result *r, const ablate_detail *d, int svg) {
  const int top = TOP > (int)(d->order.n + 3) * KEY_LINE ? TOP : (int)(d->order.n + 3) * KEY_LINE, n_maps = (int)maps_of(d);
  const int rows = 100 + ROW * (int)chart_rows(d), middle = rows > MIDDLE ? rows : MIDDLE;
  const canvas c = {f, SENTENCE + top + BAND + middle + (n_maps + MAP_COLUMNS - 1) / MAP_COLUMNS * MAP_HEIGHT};
  char verdict[1200];
  ablate_verdict(verdict, sizeof verdict, r);
  image_begin(f, svg, c.height, verdict);
  place(&c, 0, SENTENCE, WIDTH, top);
  band(&c, d, SENTENCE + top);
  chart_sqnr(f, r, &d->order, 1);
  const int below = SENTENCE + top + BAND;
  place(&c, 0, below, WIDTH / 3, middle);
  chart_scales(f, d);
  place(&c, WIDTH / 3, below, WIDTH / 3, middle);
  chart_octaves(f, d, CHART_FEW_LINES);
  place(&c, 2 * WIDTH / 3, below, WIDTH / 3, middle);
  chart_hadamard(f, d);
  for (int i = 0, at = 0; at < n_maps; i++) {
    if (!chart_is_drawn(d, (size_t)i)) continue;
    place(&c, at % MAP_COLUMNS * WIDTH / MAP_COLUMNS, below + middle + at / MAP_COLUMNS * MAP_HEIGHT, WIDTH / MAP_COLUMNS, MAP_HEIGHT);
    chart_map(f, d, (size_t)i);
    at++;
  }
  fputs("unset multiplot\n", f);
}

int ablate_image_check(const char *path) {
  if (!file_ends_with(path, ".svg") && !file_ends_with(path, ".png"))
    return cli_error("--png: '%s', expected a name that ends in .png or .svg", path);
  return file_check(path);
}

int image_is_svg(const char *path) { return file_ends_with(path, ".svg"); }

int image_write(const char *path, char *script, size_t n) {
  char *image = NULL;
  size_t n_image;
  int rc = gnuplot_run(script, n, &image, &n_image);
  if (!rc) rc = file_write_whole(path, image, n_image);
  free(image);
  return rc;
}

int ablate_image(const ablate_result *r, const ablate_detail *d, const char *path) {
  char *script = NULL;
  size_t n;
  FILE *f = open_memstream(&script, &n);
  if (!f) return cli_error("out of memory");
  draw(f, r, d, image_is_svg(path));
  const int rc = fclose(f) ? cli_error("out of memory") : image_write(path, script, n);
  free(script);
  return rc;
}
