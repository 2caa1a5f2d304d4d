/* Weighs causes against all of D, compares outputs as the options say, and notes findings. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "verify/judge/internal.h"

float mxi_judge_load(const void *from, size_t index, mx_dtype type) {
  uint32_t bits = 0;
  float x;
  memcpy(&bits, (const uint8_t *)from + index * mx_dtype_bytes(type), mx_dtype_bytes(type));
  if (type == MX_F16) return (float)mx_decode(mx_operand_format(MX_OPERAND_F16), bits);
  if (type == MX_BF16) bits <<= 16;
  memcpy(&x, &bits, sizeof x);
  return x;
}

double mxi_judge_after(const judge_job *j, size_t i, double x) {
  const mx_gemm_options *o = &j->right.options;
  const size_t N = j->right.N, row = i / N, col = i % N;
  float d = (float)x;
  if (o->c) d = fmaf(o->beta ? *o->beta : 1, mxi_judge_load(o->c, row * (o->ldc ? o->ldc : N) + col, o->c_type), d);
  if (o->bias) d += o->bias[o->bias_of_rows ? row : col];
  return (double)d;
}

int mxi_judge_same(const judge_job *j, float x, float y) {
  if (!memcmp(&x, &y, sizeof x)) return 1;
  if (!j->how.nan_bits && isnan(x) && isnan(y)) return 1;
  return j->how.equal_zeros && x == 0 && y == 0;
}

int mxi_judge_inside(const judge_job *j, size_t i) { return j->in[0][i / j->right.N] && j->in[1][i % j->right.N]; }

/* Outputs that a cause explains and outputs that it would have broken count as separate if few tiles of TILE x TILE hold both, at most one in
 * MIXED_ONE_IN. Larger tiles mix neighbours; smaller ones hold too few outputs. */
enum { TILE = 4, MIXED_ONE_IN = 8 };
enum { TILE_EXPLAINED = 1, TILE_BROKEN = 2 };

/* An output within this relative distance of the right one is no evidence for a cause, since many causes come as near. At least so many outputs
 * must be evidence before a cause may break right outputs elsewhere; fewer could agree by chance, and a small part of D does not have more. */
static const double NOT_TELLING = 0x1p-8;
enum { TELLING = 32 };

size_t mxi_judge_tiles(const judge_job *j) { return ((j->right.M + TILE - 1) / TILE) * ((j->right.N + TILE - 1) / TILE); }
static uint8_t *tile_of(const judge_job *j, size_t i) {
  return &j->tiles[i / j->right.N / TILE * ((j->right.N + TILE - 1) / TILE) + i % j->right.N / TILE];
}

void mxi_judge_start(judge_tally *t, const judge_job *j) {
  *t = (judge_tally){0, 0, 0};
  memset(j->tiles, 0, mxi_judge_tiles(j));
}

void mxi_judge_weigh(judge_tally *t, const judge_job *j, size_t i, float x) {
  const float got = j->got[i];
  if (j->wrong[i]) {
    if (!mxi_judge_same(j, got, x)) return;
    t->explained++;
    *tile_of(j, i) |= TILE_EXPLAINED;
    t->telling += got != 0 && isfinite(got) && !(fabs((double)got - (double)j->want[i]) <= NOT_TELLING * fabs((double)j->want[i]));
  } else if (mxi_judge_inside(j, i)) {
    const int breaks = j->lo ? !(x >= j->lo[i] && x <= j->hi[i]) && !isnan(j->lo[i]) : !mxi_judge_same(j, got, x);
    t->breaks += (uint64_t)breaks;
    if (breaks) *tile_of(j, i) |= TILE_BROKEN;
  }
}

int mxi_judge_holds(const judge_job *j, const judge_tally *t) {
  if (!t->explained || t->breaks * JUDGE_BREAKS_ONE_IN <= t->explained) return t->explained > 0;
  if (t->telling < TELLING) return 0;
  size_t mixed = 0, explained = 0;
  for (size_t i = 0; i < mxi_judge_tiles(j); i++) {
    mixed += j->tiles[i] == (TILE_EXPLAINED | TILE_BROKEN);
    explained += (j->tiles[i] & TILE_EXPLAINED) != 0;
  }
  return mixed * MIXED_ONE_IN <= explained;
}

static void add(judge_job *j, const char *model, const judge_tally *t, const char *text) {
  mx_judgement *o = j->out;
  const uint64_t explained = t->explained;
  for (int i = 0; i < o->n_findings; i++)
    if (!strcmp(o->findings[i].what, text)) return;
  if (o->n_findings == MX_JUDGE_FINDINGS) return;
  mx_finding *f = &o->findings[o->n_findings++];
  snprintf(f->what, sizeof f->what, "%s", text);
  f->breaks = t->breaks;
  snprintf(f->model, sizeof f->model, "%s", model);
  f->explained = explained;
  f->unexplained = o->differ - (explained < o->differ ? explained : o->differ);
}

void mxi_judge_say(judge_job *j, const char *model, uint64_t explained, const char *format, ...) {
  const judge_tally t = {.explained = explained};
  char text[sizeof j->out->findings[0].what];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  add(j, model, &t, text);
}

void mxi_judge_says(judge_job *j, const char *model, const judge_tally *t, const char *format, ...) {
  char text[sizeof j->out->findings[0].what];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  add(j, model, t, text);
}
