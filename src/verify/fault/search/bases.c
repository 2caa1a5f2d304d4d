/* Ranks the presets by what they leave, of scales and of elements apart. */
#include "verify/fault/search/bases.h"

#include <math.h>
#include <string.h>

#include "verify/fault/search/answers.h"
#include "verify/trial/bases.h"

/* What another block than the preset's costs. */
static const double BITS_OF_A_BLOCK = 6;

static uint64_t print_of(const view *v) {
  uint64_t h = UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)v->r.spec.elem << 8 ^ (uint64_t)v->r.spec.scale;
  uint32_t tensor = 0;
  if (v->r.plan.has_tensor_scale) memcpy(&tensor, &v->r.plan.tensor_scale, sizeof tensor);
  h = (h ^ tensor) * UINT64_C(0x100000001B3);
  for (size_t k = 0; k < v->r.down * v->r.across; k++) h = (h ^ v->scales[k]) * UINT64_C(0x100000001B3);
  const size_t step = mxi_view_step(v);
  for (size_t d = 0; d < v->r.down; d += step)
    for (size_t i = d * v->r.block_rows * v->r.cols; i < (d + 1) * v->r.block_rows * v->r.cols && i < v->r.rows * v->r.cols; i++)
      h = (h ^ v->by_plain[i]) * UINT64_C(0x100000001B3);
  return h;
}

/* Tensor scales that are so many times apart follow two conventions: max|X|, that by 2688, 2688 by that. */
static const double ALIKE = 64;

/* Of a fault that changes the input or the tensor's maximum the tensor scale is about what it should be. */
static int same_convention(const mx_sample *s, const fault_run *r) {
  const double made = (double)r->plan.tensor_scale, seen = (double)s->tensor_scale;
  return r->plan.has_tensor_scale && made > 0 && seen > made / ALIKE && seen < made * ALIKE;
}

/* The code of the blocks of zeros if it is one for all, is not that of the run, and is that of several blocks; else -1. */
static int code_of_zeros(const view *v) {
  enum { SEVERAL = 4 };
  int code = -1, n = 0;
  for (size_t k = 0; k < v->r.down * v->r.across; k++) {
    const mx_block_stats *st = &v->r.stats[k];
    if (st->amax_finite != 0 || st->has_nan || st->has_inf) continue;
    if (v->scales[k] == v->seen[k] || (code >= 0 && v->seen[k] != (uint32_t)code)) return -1;
    code = (int)v->seen[k];
    n++;
  }
  return n >= SEVERAL ? code : -1;
}

int mxi_fault_base_look_at(base *b, const mx_sample *s, effort *e) {
  view v;
  const int ok = mxi_view_open(&v, &b->spec, s, NULL, 0, e);
  if (ok) {
    b->scales = (double)v.scales_wrong / (double)(v.r.down * v.r.across);
    b->codes = (double)v.codes_wrong / (double)v.looked;
    b->by_plain = (double)v.plain_wrong / (double)v.looked;
    b->print = print_of(&v);
    b->of_zeros = code_of_zeros(&v);
    b->other_tensor = !mxi_same_tensor_scale(s, &v.r);
    if (b->other_tensor) b->extra += same_convention(s, &v.r) ? 1 : 3; /* another convention is a reason to look elsewhere */
  }
  mxi_view_close(&v);
  return ok;
}

/* By what either side leaves, by what both leave, by what is left where scales stand in another place. */
static double merit(const base *b, int by) {
  switch (by) {
  case 1:
    return b->scales + b->codes + b->extra / 100;
  case 0:
    return fmin(b->by_plain, fmin(b->scales, b->codes)) + (b->scales + b->codes) / 1000 + b->extra / 100;
  default:
    return b->by_plain + b->extra / 100;
  }
}

static int better(const void *items, size_t i, size_t j, int by) {
  const base *b = items;
  return j == MXI_NO_BASE || merit(&b[i], by) < merit(&b[j], by);
}

size_t mxi_fault_bases_choose(size_t out[MOST_BASES], const base *b, size_t n) {
  static const size_t of_each[] = {3, 4, 1};
  size_t chosen = 0, known = n;
  for (size_t i = 0; i < n; i++)
    if (mxi_preset_well_known(b[i].preset) && (known == n || merit(&b[i], 1) < merit(&b[known], 1))) known = i;
  if (known < n) out[chosen++] = known;
  return mxi_choose_bases(out, chosen, MOST_BASES, b, n, of_each, 3, better); /* what one side leaves tells most */
}

int mxi_fault_base_fits(base *b, const mx_preset *row, const mx_sample *samples, size_t n) {
  static const int widths[] = {0, 16, 32};
  *b = (base){.preset = row->name};
  if (mx_preset_find(&b->spec, row->name, NULL) || b->spec.had_size) return 0;
  const int rows = b->spec.block_rows;
  for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
    if (w && (row->status != MX_PRESET_STANDARD || rows > 1)) return 0;
    if (w) b->spec.block_rows = 1, b->spec.block_cols = widths[w], b->extra = BITS_OF_A_BLOCK;
    int all = 1;
    for (size_t k = 0; k < n && all; k++) all = mxi_view_fits(&b->spec, &samples[k]);
    if (!all) continue;
    if (!mxi_preset_well_known(row->name)) b->extra += BITS_OF_A_PRESET;
    return 1;
  }
  return 0;
}

/* Bits of the narrowest element format that has all the codes. A wider one would leave its upper bits, the sign with them, unused. */
static unsigned bits_of_codes(const mx_sample *s) {
  uint8_t all = 0;
  for (size_t i = 0; i < s->rows * s->cols; i++) all |= s->codes[i];
  return all >= 64 ? 8 : all >= 16 ? 6 : 4;
}

/* Presets that give the same are listed once. Returns how many there are. */
static size_t add_base(base *out, size_t n, const base *b) {
  size_t same = 0;
  while (same < n && out[same].print != b->print) same++;
  if (same == n) out[n] = *b;
  return n + (same == n);
}

/* Are the scales of as many rows as a block is wide alike, as if tiles had one scale? */
static int has_square_tiles(const mx_spec *spec, const mx_sample *s) {
  size_t down, n;
  const size_t bytes = s->scale_cols * s->scale_bytes;
  mx_spec_block(spec, s->rows, s->cols, &down, &n);
  if (down > 1 || n < 2 || s->scale_rows != s->rows || s->rows <= n) return 0;
  for (size_t row = 0; row < s->rows; row++)
    if (memcmp((const uint8_t *)s->scales + row * bytes, (const uint8_t *)s->scales + (row - row % n) * bytes, bytes) != 0) return 0;
  return 1;
}

/* Does an element have the code of an Inf, and are all inputs finite? Then numbers beyond the largest become that. */
static int overflows(const mx_format *elem, const mx_sample *s) {
  size_t infinite = 0;
  if (elem->inf_code == MX_NO_CODE) return 0;
  for (size_t i = 0; i < s->rows * s->cols; i++) {
    if (!isfinite(s->x[i / s->cols * s->ld + i % s->cols])) return 0;
    infinite += isinf(mx_decode(elem, s->codes[i])) != 0;
  }
  return infinite > 0;
}

/* Gives blocks of zeros the code that they have. */
static int set_zeros(base *b) {
  const mx_format *scale = mx_scale_format(b->spec.scale);
  const int one = b->of_zeros == (int)mx_encode(scale, 1, &(mx_encoding){0}, 0);
  b->spec.scale_allzero = one ? MX_SCALE_ALLZERO_ONE : MX_SCALE_ALLZERO_BYTE;
  b->spec.scale_allzero_n = one ? 0 : b->of_zeros;
  b->extra += BITS_OF_A_KEY;
  return !mx_spec_check(&b->spec, NULL);
}

size_t mxi_fault_bases(base *out, const mx_sample *samples, size_t n, size_t largest, const char *over, effort *e) {
  size_t count = 0;
  const unsigned bits = bits_of_codes(&samples[largest]);
  for (int known = 1; known >= 0; known--)
    for (size_t i = 0; i < mx_preset_count(); i++) {
      const mx_preset *row = mx_preset_at(i);
      base b;
      if (row->alias_of || (over && strcmp(over, row->name)) || mxi_preset_well_known(row->name) != known) continue;
      if (!mxi_fault_base_fits(&b, row, samples, n) || (!over && mx_elem_format(b.spec.elem)->bits > bits) ||
          !mxi_fault_base_look_at(&b, &samples[largest], e))
        continue;
      if (b.spec.elem_overflow == MX_OVERFLOW_SATURATE && overflows(mx_elem_format(b.spec.elem), &samples[largest])) {
        b.spec.elem_overflow = MX_OVERFLOW_IEEE;
        b.extra += BITS_OF_A_KEY;
        if (!mxi_view_fits(&b.spec, &samples[largest]) || !mxi_fault_base_look_at(&b, &samples[largest], e)) continue;
      }
      count = add_base(out, count, &b);
      const base plain = b;
      if (known && b.of_zeros >= 0 && set_zeros(&b) && mxi_view_fits(&b.spec, &samples[largest]) &&
          mxi_fault_base_look_at(&b, &samples[largest], e))
        count = add_base(out, count, &b);
      b = plain;
      if (row->status != MX_PRESET_STANDARD || !has_square_tiles(&b.spec, &samples[largest])) continue;
      size_t unused, width;
      mx_spec_block(&b.spec, samples[largest].rows, samples[largest].cols, &unused, &width);
      b.spec.block_rows = b.spec.block_cols = (int)width;
      b.extra = BITS_OF_A_BLOCK;
      if (mxi_view_fits(&b.spec, &samples[largest]) && mxi_fault_base_look_at(&b, &samples[largest], e)) count = add_base(out, count, &b);
    }
  return count;
}
