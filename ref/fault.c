/* Quantises a tensor with faults, the stages of SPEC 9 one after the other; layout, the last of them, is here. */
#include <stdlib.h>

#include "fail.h"
#include "fault_run.h"

/* ---- layout */

static void put_block(ref_run *r, const uint8_t *old, size_t d, size_t a, size_t from_d, size_t from_a, int zero) {
  for (size_t i = 0; i < r->height * r->width; i++) {
    const size_t down = i / r->width, across = i % r->width, row = d * r->height + down, col = a * r->width + across;
    const size_t from_row = from_d * r->height + down, from_col = from_a * r->width + across;
    if (row >= r->rows || col >= r->cols) continue;
    if (zero)
      r->codes[row * r->cols + col] = 0;
    else if (from_row < r->rows && from_col < r->cols)
      r->codes[row * r->cols + col] = old[from_row * r->cols + from_col];
  }
}

static void misplace(ref_run *r, const ref_fault *f) {
  const size_t n = r->down * r->across;
  const int zero = IS(f, "zero") || IS(f, "codes zero"), scales = strncmp(f->op, "codes", 5) != 0;
  uint64_t *codes_of = r->room;
  uint8_t *old = (uint8_t *)(codes_of + n);
  memcpy(codes_of, r->stored, n * sizeof *codes_of);
  memcpy(old, r->codes, r->rows * r->cols);
  for (size_t k = 0; k < n; k++) {
    const size_t d = k / r->across, a = k % r->across;
    const int across = IS(f, "block") || IS(f, "block xor");
    const size_t row = across || zero ? d : ref_from(f, d, r->down), block = across ? ref_from(f, a, r->across) : a;
    if (!ref_block_in(r, f, d, a)) continue;
    put_block(r, old, d, a, row, block, zero);
    if (scales) r->stored[k] = zero ? 0 : codes_of[row * r->across + block];
  }
}

/* The scales in the order of a layout, read as rows. */
static mx_status lay_out(ref_run *r, const ref_fault *f, mx_error *err) {
  const size_t n = r->down * r->across;
  uint8_t *rows = r->room, *laid = rows + n;
  if (r->plan.scale->bits > 8) return ref_fail(err, MX_ERR_CONFLICT, "reference: a layout of scales is one of bytes");
  if (ref_layout_size((mx_layout)f->layout, r->down, r->across) != n)
    return ref_fail(err, MX_ERR_CONFLICT, "reference: the layout needs padding");
  for (int k = 0; k < (IS(f, "scales twice in") ? 2 : 1); k++) {
    for (size_t i = 0; i < n; i++) rows[i] = (uint8_t)r->stored[i];
    ref_layout_pack(laid, (mx_layout)f->layout, rows, r->down, r->across, 0);
    for (size_t i = 0; i < n; i++)
      if (ref_block_in(r, f, i / r->across, i % r->across)) r->stored[i] = laid[i];
  }
  return MX_OK;
}

/* Codes of whole tiles, or all scales, with rows and columns exchanged. */
static void transpose_tiles(ref_run *r, const ref_fault *f) {
  const size_t n = f->number >= 1 ? (size_t)f->number : 1;
  uint8_t *old = r->room;
  memcpy(old, r->codes, r->rows * r->cols);
  for (size_t i = 0; i < r->rows * r->cols; i++) {
    const size_t row = i / r->cols, col = i % r->cols, top = row - row % n, left = col - col % n;
    if (top + n > r->rows || left + n > r->cols || !ref_element_in(r, f, row, col)) continue;
    r->codes[i] = old[(top + (col - left)) * r->cols + left + (row - top)];
  }
}

size_t ref_place_of(const ref_fault *f, size_t source) {
  size_t place = 0;
  for (int k = 0; k < f->tile_rows + f->tile_cols; k++) {
    int odd = 0;
    for (int i = 0; i < f->tile_rows + f->tile_cols; i++) odd ^= f->is_of[k][i] && source >> i & 1;
    place += (size_t)odd << k;
  }
  return place;
}

/* The sources of all places of a tile. */
typedef struct tile {
  size_t high, wide, source[1 << REF_BITS];
} tile;

static void tile_of(tile *t, const ref_fault *f) {
  t->high = (size_t)1 << f->tile_rows, t->wide = (size_t)1 << f->tile_cols;
  for (size_t s = 0; s < t->high * t->wide; s++) t->source[ref_place_of(f, s)] = s;
}

/* The place that (row, col) of a matrix holds, its own where that is beyond the ends. */
static size_t by_bits(const tile *t, size_t row, size_t col, size_t rows, size_t cols) {
  const size_t top = row / t->high * t->high, left = col / t->wide * t->wide, from = t->source[(row - top) * t->wide + (col - left)];
  const size_t from_row = top + from / t->wide, from_col = left + from % t->wide;
  return from_row >= rows || from_col >= cols ? row * cols + col : from_row * cols + from_col;
}

static void codes_by_bits(ref_run *r, const ref_fault *f) {
  uint8_t *old = r->room;
  tile t;
  tile_of(&t, f);
  memcpy(old, r->codes, r->rows * r->cols);
  for (size_t row = 0; row < r->rows; row++)
    for (size_t col = 0; col < r->cols; col++)
      if (ref_element_in(r, f, row, col)) r->codes[row * r->cols + col] = old[by_bits(&t, row, col, r->rows, r->cols)];
}

/* In their tiles, or tile after tile in memory. */
static mx_status scales_by_bits(ref_run *r, const ref_fault *f, mx_error *err) {
  const int tiled = IS(f, "scales tiled by bits");
  uint64_t *old = r->room;
  size_t k = 0;
  tile t;
  tile_of(&t, f);
  memcpy(old, r->stored, r->down * r->across * sizeof *old);
  if (tiled && (r->down % t.high || r->across % t.wide)) return ref_fail(err, MX_ERR_CONFLICT, "reference: the tiles do not fit the scales");
  for (size_t d = 0; d < r->down && !tiled; d++)
    for (size_t a = 0; a < r->across; a++)
      if (ref_block_in(r, f, d, a)) r->stored[d * r->across + a] = old[by_bits(&t, d, a, r->down, r->across)];
  for (size_t top = 0; top < r->down && tiled; top += t.high)
    for (size_t left = 0; left < r->across; left += t.wide)
      for (size_t i = 0; i < t.high * t.wide; i++, k++)
        if (ref_block_in(r, f, k / r->across, k % r->across))
          r->stored[k] = old[(top + t.source[i] / t.wide) * r->across + left + t.source[i] % t.wide];
  return MX_OK;
}

static void transpose_scales(ref_run *r, const ref_fault *f) {
  uint64_t *columns = r->room;
  size_t n = 0;
  for (size_t a = 0; a < r->across; a++)
    for (size_t d = 0; d < r->down; d++) columns[n++] = r->stored[d * r->across + a];
  for (size_t k = 0; k < n; k++)
    if (ref_block_in(r, f, k / r->across, k % r->across)) r->stored[k] = columns[k];
}

/* Writes the rows of scales `write` places apart into memory that is full of `fill`, and reads rows `read` places apart from its beginning. */
static void at_pitch(ref_run *r, const ref_fault *f, size_t write, size_t read, uint64_t fill) {
  const size_t n = r->down * r->across; /* nobody reads or writes more than that */
  uint64_t *memory = r->room;
  for (size_t k = 0; k < n; k++) memory[k] = fill;
  for (size_t k = 0; k < n; k++)
    if (k / r->across * write + k % r->across < n) memory[k / r->across * write + k % r->across] = r->stored[k];
  for (size_t d = 0; d < r->down; d++)
    for (size_t a = 0; a < r->across; a++)
      if (ref_block_in(r, f, d, a)) r->stored[d * r->across + a] = d * read + a < n ? memory[d * read + a] : fill;
}

static int is_pitch(const ref_fault *f) { return strstr(f->op, "at pitch") != NULL; }

static void pitched(ref_run *r, const ref_fault *f) {
  const size_t n = f->number >= 1 && f->number < 0x1p40 ? (size_t)f->number : r->across;
  const ref_how how = {0};
  const uint64_t fill = strstr(f->op, "zeros") ? 0 : ref_code(r->plan.scale, num_int(1), &how, 0);
  if (strstr(f->op, "written"))
    at_pitch(r, f, n, r->across, fill);
  else
    at_pitch(r, f, r->across, n, fill);
}

mx_status ref_fault_layout(ref_run *r, mx_error *err) {
  mx_status status = MX_OK;
  for (size_t i = 0; i < r->n_faults && !status; i++) {
    const ref_fault *f = &r->faults[i];
    if (f->stage != REF_LAYOUT) continue;
    if (IS(f, "scales in") || IS(f, "scales twice in"))
      status = lay_out(r, f, err);
    else if (IS(f, "scales transposed"))
      transpose_scales(r, f);
    else if (is_pitch(f))
      pitched(r, f);
    else if (IS(f, "scales by bits") || IS(f, "scales tiled by bits"))
      status = scales_by_bits(r, f, err);
    else if (IS(f, "codes by bits"))
      codes_by_bits(r, f);
    else if (IS(f, "codes transposed in"))
      transpose_tiles(r, f);
    else
      misplace(r, f);
  }
  return status;
}

/* ---- a tensor */

/* A region that scales decide is none before there are any. */
static int too_early(const ref_fault *f) {
  static const char *const of_scales[] = {"scale", "zero", "subnormal"};
  for (int i = 0; i < 6 && f->stage < REF_AMAX; i++)
    if (f->region[i / 3].name && !strcmp(f->region[i / 3].name, of_scales[i % 3])) return 1;
  return 0;
}

static mx_status run(ref_run *r, mx_tensor *out, const float *src, size_t ld, mx_error *err) {
  const size_t blocks = r->down * r->across, n = r->rows * r->cols, area = r->height * r->width;
  num stored;
  r->plain = calloc(blocks + 1, sizeof *r->plain);
  r->used = calloc(blocks + 1, sizeof *r->used);
  r->stored = calloc(blocks + 1, sizeof *r->stored);
  r->codes = calloc(n + 1, 1);
  r->elements = calloc(area + 1, sizeof *r->elements);
  r->values[0] = calloc(area + 1, sizeof *r->elements);
  r->values[1] = calloc(area + 1, sizeof *r->elements);
  r->room = calloc(blocks + n + 1, sizeof(uint64_t));
  if (!r->plain || !r->used || !r->stored || !r->codes || !r->elements || !r->values[0] || !r->values[1] || !r->room)
    return ref_fail(err, MX_ERR_NOMEM, "out of memory");
  mx_status status = ref_fault_input(r, src, ld, err);
  if (status) return status;
  r->clean = r->plan;
  ref_plan_tensor(&r->plan, ref_fault_tensor(r), &stored);
  ref_fault_tensor_scale(r, &r->plan, &stored);
  if (!ref_fault_groups(r, &stored)) return ref_fail(err, MX_ERR_NOMEM, "out of memory");
  for (size_t i = 0; i < n; i++)
    if (r->plan.spec->elem_nan == MX_ELEM_NAN_ERROR && num_is_nan(num_float(r->x[i])))
      return ref_fail(err, MX_ERR_DATA, "reference: a NaN that the spec refuses");
  if (!ref_fault_scales(r)) return ref_fail(err, MX_ERR_DATA, "reference: a block that the spec refuses");
  ref_fault_store(r);
  ref_fault_codes(r);
  if ((status = ref_fault_layout(r, err))) return status;
  uint8_t *padded = calloc(r->rows * out->cols_padded + 1, 1); /* codes of padding are 0 */
  if (!padded) return ref_fail(err, MX_ERR_NOMEM, "out of memory");
  for (size_t i = 0; i < r->rows; i++) memcpy(padded + i * out->cols_padded, r->codes + i * r->cols, r->cols);
  ref_store_codes(out, padded, &r->plan);
  free(padded);
  for (size_t k = 0; k < blocks; k++) ref_store_scale(out, &r->plan, k / r->across * r->height, k % r->across * r->width, r->stored[k]);
  out->has_tensor_scale = r->plan.spec->tensor_norm != MX_TENSOR_NORM_NONE;
  out->tensor_scale = out->has_tensor_scale ? num_result(stored) : 1;
  return MX_OK;
}

static int is_down(const ref_fault *f) { return IS(f, "blocks down") || IS(f, "blocks down, scales across"); }

/* The transposed matrix, quantised and transposed back. */
static mx_status down_the_columns(mx_tensor *out, const float *src, size_t ld, const mx_spec *spec, const ref_fault *f, const ref_fault *other,
                                  size_t n, mx_error *err) {
  const size_t rows = out->rows, cols = out->cols;
  mx_tensor turned;
  mx_status status = ref_tensor_layout(&turned, cols, rows, spec);
  if (status) return ref_fail(err, status, "out of memory");
  const size_t scales = turned.scale_rows * turned.scale_cols, size = turned.scale_bytes;
  if (strcmp(f->region[0].name, "all") != 0 || (n && is_down(other)) || scales != out->scale_rows * out->scale_cols || size != out->scale_bytes)
    return ref_fail(err, MX_ERR_CONFLICT, "reference: blocks down do not go here");
  float *x = malloc((rows * cols + 1) * sizeof *x);
  uint8_t *padded = calloc(rows * out->cols_padded + 1, 1);
  turned.codes = calloc(cols * turned.code_stride + 1, 1);
  turned.scales = calloc(scales * size + 1, 1);
  if (!x || !padded || !turned.codes || !turned.scales) status = ref_fail(err, MX_ERR_NOMEM, "out of memory");
  for (size_t row = 0; row < rows && !status; row++)
    for (size_t col = 0; col < cols; col++) x[col * rows + row] = src[row * ld + col];
  if (!status) status = ref_quantize_faulty(&turned, x, cols, rows, rows, spec, other, n, err);
  if (!status) {
    ref_plan plan;
    for (size_t row = 0; row < rows; row++)
      for (size_t col = 0; col < cols; col++) padded[row * out->cols_padded + col] = (uint8_t)ref_code_at(&turned, spec, col, row);
    for (size_t k = 0; k < scales; k++) {
      const size_t from = IS(f, "blocks down") ? k % turned.scale_rows * turned.scale_cols + k / turned.scale_rows : k;
      memcpy(out->scales + k * size, turned.scales + from * size, size);
    }
    if (!(status = ref_plan_make(&plan, spec, rows, cols))) ref_store_codes(out, padded, &plan);
    out->has_tensor_scale = turned.has_tensor_scale;
    out->tensor_scale = turned.tensor_scale;
  }
  free(x), free(padded), free(turned.codes), free(turned.scales);
  return status;
}

mx_status ref_quantize_faulty(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                              const ref_fault *faults, size_t n, mx_error *err) {
  mx_tensor want;
  mx_status status = ref_spec_check(spec, err);
  if (status || !n || !rows || !cols) return status ? status : ref_quantize(out, src, rows, cols, ld, spec, NULL, err);
  if ((status = ref_tensor_layout(&want, rows, cols, spec))) return ref_fail(err, status, "out of memory");
  if (ld < cols || !ref_same_shape(out, &want)) return ref_fail(err, MX_ERR_SHAPE, "out was allocated for another shape or spec");
  if (spec->scale_rule == MX_SCALE_RULE_HIF4 || spec->scale_rule == MX_SCALE_RULE_QUEST || spec->elem_round == MX_ROUND_SR ||
      spec->scale_round == MX_SCALE_ROUND_SR || ref_elem_format(spec->elem)->kind == MX_KIND_NONE || spec->select == MX_SELECT_EDEN)
    return ref_fail(err, MX_ERR_CONFLICT, "reference: this spec has steps that faults are not defined for");
  for (size_t i = 0; i < n; i++)
    if (too_early(&faults[i])) return ref_fail(err, MX_ERR_CONFLICT, "reference: a region of scales before there are any");
  for (size_t i = 0; i < n; i++)
    if (faults[i].stage == REF_TENSOR_SCALE && faults[i].number < 0 && (IS(&faults[i], "value") || IS(&faults[i], "times")))
      return ref_fail(err, MX_ERR_CONFLICT, "reference: a tensor scale below 0");
  for (size_t i = 0; i < n; i++)
    if (faults[i].n_digits && ref_elem_format(spec->elem)->bits != (IS(&faults[i], "table") ? 4 : faults[i].n_digits))
      return ref_fail(err, MX_ERR_CONFLICT, "reference: the list is one of codes of other bits");
  for (size_t i = 0; i < n; i++)
    if (is_down(&faults[i])) return down_the_columns(out, src, ld, spec, &faults[i], &faults[n > 1 ? !i : 0], n - 1, err);
  ref_run r = {.faults = faults, .n_faults = n, .rows = rows, .cols = cols};
  if ((status = ref_plan_make(&r.plan, spec, rows, cols))) return ref_fail(err, status, "chain");
  r.height = r.plan.block_rows, r.width = r.plan.block_cols;
  r.down = rows / r.height + (rows % r.height != 0), r.across = cols / r.width + (cols % r.width != 0);
  status = run(&r, out, src, ld, err);
  free(r.x), free(r.straight), free(r.given), free(r.plain), free(r.used), free(r.stored), free(r.codes);
  free(r.groups), free(r.elements), free(r.values[0]), free(r.values[1]), free(r.room);
  return status;
}
