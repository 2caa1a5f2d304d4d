/* Quantises a matrix by dividing it into items that threads take. SPEC 3.2. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/room.h"
#include "kernels/block/eden.h"
#include "kernels/dispatch.h"
#include "kernels/job.h"
#include "kernels/threads.h"

/* How many threads a call gets. */
static int threads_of(const mx_job *j, const mx_exec *exec) {
  return mx_threads(exec, j->plan->rows * j->plan->cols, j->kernels && j->stages->usable ? MX_THREAD_VALUES : MX_THREAD_SCALAR);
}

static size_t divided_up(size_t n, size_t by) { return n / by + (n % by != 0); }

/* How a call is cut into items that threads take, in rows and columns, and how much of an item is held at a time. */
typedef struct cut {
  enum { BY_ROWS, BY_BANDS, BY_TILES } how;
  size_t rows, cols;      /* in an item */
  size_t piece;           /* columns loaded at a time: whole blocks and whole rotated tiles, or all */
  size_t downs, acrosses; /* how many items */
  int direct;
} cut;

static size_t common_multiple(size_t a, size_t b) {
  size_t x = a, y = b;
  while (y) {
    const size_t t = x % y;
    x = y, y = t;
  }
  return a / x * b;
}

static cut cut_of(const mx_job *j) {
  enum { LINES = 64, PIECE = 4096, TURNED = 1024, BAND_COLUMNS = 128, TALL = 1024 };
  const mx_plan *p = j->plan;
  const size_t turn = j->src->input.had_size ? j->src->input.had_size : 1,
               step = common_multiple(common_multiple(p->block_cols, turn), mxi_eden_group(p));
  cut c = {.how = BY_TILES, .rows = p->block_rows, .cols = p->cols, .piece = p->cols, .direct = mxi_rows_direct(j->src)};
  if (mxi_stages_take_rows(j)) {
    const size_t most = j->src->col_step != 1 ? TURNED : PIECE;
    c.how = BY_ROWS;
    const size_t few = c.direct ? 32768 : PIECE;
    c.rows = j->src->col_step != 1 ? LINES : few / (p->cols + 1) + 1;
    if (!c.direct) c.piece = step < most ? most / step * step : step;
    if (!c.direct && c.piece > p->cols) c.piece = divided_up(p->cols, step) * step;
  } else if (mxi_stages_take_bands(j)) {
    const size_t even = p->block_cols % 2 ? 2 : 1, few = common_multiple(step, even),
                 most = p->block_rows > TALL ? BAND_COLUMNS / 2 : BAND_COLUMNS;
    if (few <= MX_PIECE_BLOCKS) {
      c.how = BY_BANDS;
      c.cols = c.piece = few < most ? most / few * few : few;
    }
  }
  c.downs = divided_up(p->rows, c.rows);
  c.acrosses = c.cols ? divided_up(p->cols, c.cols) : 0;
  return c;
}

/* Does an item of rows, piece by piece, and each row of a piece in turn. */
static void run_rows(mx_job *j, const cut *c, size_t first, size_t n, float *room, const mx_scratch *mine) {
  const mx_source *src = j->src;
  const size_t cols = j->plan->cols, block = j->plan->block_cols, tiles = divided_up(cols, block);
  if (c->direct) {
    for (size_t r = first; r < first + n; r++) {
      const float *x = src->at + (ptrdiff_t)r * src->row_step;
      mxi_stages_blocks(j, x, r, 0, tiles, NULL, mine);
      mxi_eden_rows(j, x, 0, r, 1, 0, cols);
    }
    return;
  }
  for (size_t at = 0; at < cols; at += c->piece) {
    const size_t here = cols - at < c->piece ? cols - at : c->piece;
    mxi_rows_load(room, src->col_step != 1 ? here : c->piece, src, first, n, at, here);
    const float *next = src->at ? src->at + (ptrdiff_t)first * src->row_step + (ptrdiff_t)(at + c->piece) * src->col_step : NULL;
    if (src->col_step != 1) {
      mxi_stages_panel(j, room, first, n, at / block, here, mine);
      mxi_eden_rows(j, room, here, first, n, at, here);
      continue;
    }
    for (size_t r = 0; r < n; r++) {
      mxi_stages_blocks(j, room + r * c->piece, first + r, at / block, divided_up(here, block), next, mine);
    }
    mxi_eden_rows(j, room, c->piece, first, n, at, here);
  }
}

static void run_item(mx_job *j, const cut *c, size_t down, size_t across, float *room, const mx_scratch *mine) {
  const mx_plan *p = j->plan;
  const size_t first = down * c->rows, n = p->rows - first < c->rows ? p->rows - first : c->rows;
  if (c->how == BY_ROWS) {
    run_rows(j, c, first, n, room, mine);
    return;
  }
  const size_t col = across * c->cols, n_cols = p->cols - col < c->cols ? p->cols - col : c->cols;
  mx_band b = {room, c->piece, first, n, col};
  if (c->direct) {
    b.at = j->src->at + (ptrdiff_t)first * j->src->row_step + col;
    b.ld = (size_t)j->src->row_step;
  } else
    mxi_rows_load(room, c->piece, j->src, first, n, col, n_cols);
  if (p->elem->kind == MX_KIND_NONE) {
    mxi_tile_pass_through(j, &b, down, n_cols);
    return;
  }
  const size_t from = col / p->block_cols, tiles = divided_up(n_cols, p->block_cols);
  const int vectors = j->kernels && j->stages->usable;
  if (c->how == BY_BANDS)
    mxi_stages_band(j, &b, down, from, tiles, mine);
  else if (mxi_stages_take_tiles(j))
    mxi_stages_tiles(j, &b, down, from, tiles, mine);
  else
    for (size_t t = 0; t < tiles; t++)
      if (vectors)
        mxi_stages_tile(j, &b, down, t, mine);
      else
        mxi_tile_scalar(j, &b, down, t, mine);
  mxi_eden_rows(j, b.at, b.ld, first, n, col, n_cols);
}

static mx_status run(mx_job *j, const mx_exec *exec) {
  const mx_plan *p = j->plan;
  const cut c = cut_of(j);
  if (c.how == BY_TILES) memset(j->out->codes, 0, j->out->rows * j->out->code_stride); /* the other ways write every byte */
  const size_t of_item = c.rows * c.cols, chunk = of_item && of_item < 1 << 14 ? (1 << 14) / of_item : 1;
  int failed = 0;
  mx_workspace *from = exec ? exec->workspace : NULL;
#pragma omp parallel num_threads(threads_of(j, exec))
  {
    float *room = c.direct ? NULL : mxi_room_take(from, (c.rows * c.piece + 1) * sizeof *room);
    mx_memo memo;
    memo.job = NULL;
    mx_scratch mine = {mxi_room_take(from, (p->block_cols + 1) * sizeof *mine.values),
                       mxi_room_take(from, (p->block_cols + 1) * sizeof *mine.codes), &memo};
    const int ready = mine.values && mine.codes && (c.direct || room);
    if (!ready) {
#pragma omp atomic write
      failed = 1;
    }
#pragma omp for schedule(dynamic, chunk)
    for (size_t i = 0; i < c.downs * c.acrosses; i++)
      if (ready) run_item(j, &c, i / c.acrosses, i % c.acrosses, room, &mine);
    mxi_room_give(from, room);
    mxi_room_give(from, mine.values);
    mxi_room_give(from, mine.codes);
  }
  return failed ? MX_ERR_NOMEM : MX_OK;
}

/* What of a row counts for a tensor's amax. */
typedef struct counted {
  const mx_stage_kernels *kernels;
  int inf; /* MX_SCALE_NAN_* for an Inf */
} counted;
static void see_row(float *largest, int *has_nan, const float *x, size_t n, const counted *how) {
  const int32_t bits = how->kernels ? how->kernels->amax(x, n) : INT32_MAX;
  if (bits < 0x7F800000) { /* only numbers; NaN and Inf are handled below */
    float a;
    memcpy(&a, &bits, sizeof a);
    if (a > *largest) *largest = a;
    return;
  }
  for (size_t c = 0; c < n; c++) {
    float a = fabsf(x[c]);
    if (a > FLT_MAX) a = how->inf == MX_SCALE_NAN_CLAMP ? FLT_MAX : how->inf == MX_SCALE_NAN_IGNORE ? 0 : a;
    if (a > *largest) *largest = a;
    *has_nan |= a != a;
  }
}

/* Finds the maximum of a rotated, transposed source as it lies in memory, a tile's rows at a time, and that of the same numbers before they are
 * rotated. Returns 0 if its kernel does not do that, or where there are NaN or Inf. */
static int turned_amax(float *out, float *plain, const mx_source *src, const mx_exec *exec) {
  const size_t tile = src->input.had_size, ld = (size_t)src->col_step;
  int32_t largest = 0, least = 0; /* of the bits of parts: less than 0 says no */
  int32_t unrotated = 0;
  if (src->col_step == 1 || !tile || src->cols % tile || !src->turned_amax) return 0;
#pragma omp parallel for schedule(static) num_threads(mx_threads(exec, src->rows * src->cols, 2 * MX_THREAD_VALUES))                           \
    reduction(max                                                                                                                              \
              : largest, unrotated) reduction(min                                                                                              \
                                              : least)
  for (size_t c = 0; c < src->cols; c += tile) {
    int32_t before = 0;
    const int32_t bits = src->turned_amax(&before, src->at + c * ld, ld, src->rows, tile, &src->input);
    largest = bits > largest ? bits : largest;
    least = bits < least ? bits : least;
    unrotated = before > unrotated ? before : unrotated;
  }
  if (least < 0 || largest >= 0x7F800000 || unrotated >= 0x7F800000) return 0;
  memcpy(out, &largest, sizeof largest);
  memcpy(plain, &unrotated, sizeof unrotated);
  return 1;
}

/* Columns of a transposed source are turned so many at a time as lie in a line of the cache, so that each line is read once. */
static mx_status amax_of_source(float *out, const mx_source *source, const mx_spec *spec, const mx_exec *exec) {
  mx_source unturned = *source; /* a maximum without a rotation is that of the rows, too */
  if (source->col_step != 1 && !source->input.had_size)
    unturned.rows = source->cols, unturned.cols = source->rows, unturned.row_step = source->col_step, unturned.col_step = 1;
  const mx_source *src = &unturned;
  float before;
  if (turned_amax(out, &before, src, exec)) return MX_OK;
  enum { LINE = 16, TURNED = 1024 };
  const size_t at_once = src->col_step != 1 ? LINE : 1, piece = src->col_step != 1 && src->cols > TURNED ? TURNED : src->cols;
  const int direct = mxi_rows_direct(src), skip_nan = spec->scale_nan == MX_SCALE_NAN_IGNORE || spec->scale_nan == MX_SCALE_NAN_CLAMP;
  const int inf = spec->scale_inf == MX_SCALE_INF_AS_NAN ? spec->scale_nan : spec->scale_inf - 1; /* rows of SCALE_NAN */
  const counted how = {mxi_kernels_for(exec ? exec->isa_mask : 0)->stages, inf};
  mx_workspace *from = exec ? exec->workspace : NULL;
  float largest = 0;
  int has_nan = 0, failed = 0;
#pragma omp parallel num_threads(mx_threads(exec, src->rows * src->cols, 2 * MX_THREAD_VALUES)) reduction(max                                  \
                                                                                                          : largest)                           \
    reduction(|                                                                                                                                \
              : has_nan, failed)
  {
    float *room = direct ? NULL : mxi_room_take(from, (at_once * piece + 1) * sizeof *room);
    failed = !direct && !room;
#pragma omp for schedule(static)
    for (size_t r = 0; r < src->rows; r += at_once) {
      const size_t n = src->rows - r < at_once ? src->rows - r : at_once;
      if (direct) see_row(&largest, &has_nan, src->at + (ptrdiff_t)r * src->row_step, src->cols, &how);
      for (size_t c = 0; room && c < src->cols; c += piece) {
        const size_t here = src->cols - c < piece ? src->cols - c : piece;
        mxi_rows_load(room, piece, src, r, n, c, here);
        for (size_t k = 0; k < n; k++) see_row(&largest, &has_nan, room + k * piece, here, &how);
      }
    }
    mxi_room_give(from, room);
  }
  *out = has_nan && !skip_nan ? NAN : largest;
  return failed ? MX_ERR_NOMEM : MX_OK;
}

static mx_source source_of(const float *at, ptrdiff_t row_step, ptrdiff_t col_step, size_t rows, size_t cols, const mx_spec *spec,
                           const mx_exec *exec) {
  mx_source s = {.at = at, .row_step = row_step, .col_step = col_step, .rows = rows, .cols = cols};
  mxi_input_init(&s.input, spec);
  const mx_kernels *k = mxi_kernels_for(exec ? exec->isa_mask : 0);
  s.kernel = k->input;
  s.turn = k->turn;
  s.turned_amax = k->turned_amax;
  return s;
}

/* The plan and the job of a call. out must have the size that the spec requires. */
typedef struct call {
  mx_plan plan;
  mx_stages stages, flat;
  mx_job job;
  float amax; /* of the tensor, if the plan needs it */
} call;

static mx_status call_plan(call *c, const mx_tensor *out, const mx_source *src, const mx_spec *spec, mx_error *err) {
  mx_status status = mxi_plan_init(&c->plan, spec, src->rows, src->cols, err);
  if (status) return status;
  if (spec->elem_round == MX_ROUND_SR && spec->sr_source == MX_SR_SOURCE_GIVEN && !spec->given_bits)
    return mx_fail(err, MX_ERR_ARG, "sr.source=given needs random bits, but none are given");
  mx_tensor want;
  status = mx_tensor_layout(&want, src->rows, src->cols, spec);
  if (status) return mx_fail(err, status, "a matrix of %zu x %zu is too large", src->rows, src->cols);
  if (out->rows != want.rows || out->cols != want.cols || out->code_stride != want.code_stride || out->scale_cols != want.scale_cols ||
      out->scale_rows != want.scale_rows || out->scale_bytes != want.scale_bytes)
    return mx_fail(err, MX_ERR_SHAPE, "the output does not have the size that mx_tensor_alloc gives for %zu x %zu", src->rows, src->cols);
  return MX_OK;
}

/* Makes the job of a call that has its plan. */
static mx_status call_init(call *c, mx_tensor *out, const mx_source *src, const mx_exec *exec, mx_error *err) {
  float amax = exec && exec->amax_known ? exec->amax : 0;
  if (mxi_plan_needs_amax(&c->plan) && !(exec && exec->amax_known)) {
    const mx_status status = amax_of_source(&amax, src, &c->plan.spec, exec);
    if (status) return mx_fail(err, status, "no memory for a row");
  }
  mxi_plan_set_amax(&c->plan, c->amax = amax);
  out->tensor_scale = c->plan.tensor_scale;
  out->has_tensor_scale = c->plan.has_tensor_scale;
  const mx_stage_kernels *kernels = mxi_kernels_for(exec ? exec->isa_mask : 0)->stages;
  c->job = (mx_job){&c->plan, src, out, exec ? exec->first_row : 0, SIZE_MAX, &c->stages, &c->flat, kernels};
  if (!kernels) return MX_OK;
  mxi_stages_init(&c->stages, &c->plan);
  c->stages.n_values = (uint64_t)(c->job.first_row + src->rows) * src->cols;
  mxi_stages_flat(&c->flat, &c->stages);
  return MX_OK;
}

static mx_status call_end(const mx_job *j, mx_error *err) {
  if (j->refused == SIZE_MAX) return MX_OK;
  const mx_spec *s = &j->plan->spec;
  const char *const names[] = {s->scale_nan == MX_SCALE_NAN_ERROR ? "scale.nan=error" : NULL,
                               s->scale_inf == MX_SCALE_INF_ERROR ? "scale.inf=error" : NULL,
                               s->elem_nan == MX_ELEM_NAN_ERROR ? "elem.nan=error" : NULL};
  char keys[64] = "";
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i]) snprintf(keys + strlen(keys), sizeof keys - strlen(keys), "%s%s", *keys ? " or " : "", names[i]);
  return mx_fail(err, MX_ERR_DATA, "row %zu, column %zu: NaN or Inf, which %s refuses", j->first_row + j->refused / j->src->cols,
                 j->refused % j->src->cols, keys);
}

static mx_status quantize(mx_tensor *out, const mx_source *src, const mx_spec *spec, const mx_exec *exec, mx_error *err) {
  call c;
  mx_status status = call_plan(&c, out, src, spec, err);
  if (!status) status = call_init(&c, out, src, exec, err);
  if (!status && (status = run(&c.job, exec))) mx_fail(err, status, "no memory for a band of %zu rows", c.plan.block_rows);
  return status ? status : call_end(&c.job, err);
}

/* ---- both directions ---- */

enum { TILE = 256, TILE_LINES = 64, WIDEST = 1024 };

/* The tiles of a source that is quantised in both directions: so many rows and columns, and whether they are copied. Tiles of a wide matrix are,
 * since rows that are a power of two apart compete for few places of a cache; of a narrow one without gaps a tile is all of some rows. */
typedef struct tiling {
  size_t rows, cols;
  int copied;
} tiling;

/* step: a multiple of the blocks of both directions. */
static tiling tiling_of(const mx_source *x, size_t step) {
  const size_t most = TILE / step * step;
  if (!mxi_rows_direct(x) || (size_t)x->row_step != x->cols || x->cols > WIDEST || x->cols <= most / 2) return (tiling){most, most, 1};
  const size_t rows = x->cols > WIDEST / 2 ? TILE / 2 : TILE;
  return (tiling){rows > step ? rows / step * step : step, x->cols, 0};
}

/* Quantises rows [r, r + n) and columns [c, c + m) of the source, first blocks along its rows, then along its columns. room: for a copy of the
 * tile, if it is copied, and TILE_LINES lines of its transpose. */
static void run_both(mx_job *a, mx_job *b, size_t r, size_t n, size_t c, size_t m, const tiling *how, float *room, const mx_scratch *mine) {
  const mx_source *x = a->src;
  const int direct = mxi_rows_direct(x), as_it_lies = direct && mxi_stages_take_columns(b);
  float *panel = how->copied ? room + how->rows * how->cols : room;
  const float *rows = how->copied ? room : x->at + r * (size_t)x->row_step;
  mx_source tile = *b->src;
  for (size_t i = 0; direct && how->copied && i < n; i++) memcpy(room + i * m, x->at + (r + i) * (size_t)x->row_step + c, m * sizeof *room);
  if (direct) {
    tile.at = rows;
    tile.col_step = (ptrdiff_t)m;
  } else
    mxi_rows_load(room, m, x, r, n, c, m);
  mxi_stages_panel(a, rows, r, n, c / a->plan->block_cols, m, mine);
  mxi_eden_rows(a, rows, m, r, n, c, m);
  for (size_t i = 0; i < m; i += TILE_LINES) {
    const size_t lines = m - i < TILE_LINES ? m - i : TILE_LINES, block = r / b->plan->block_cols;
    if (as_it_lies && mxi_stages_columns(b, rows + i, m, c + i, lines, block, n, MX_TURN_AHEAD, mine)) continue;
    mxi_rows_load(panel, n, &tile, direct ? i : c + i, lines, direct ? 0 : r, n);
    mxi_stages_panel(b, panel, c + i, lines, block, n, mine);
    mxi_eden_rows(b, panel, n, c + i, lines, r, n);
  }
}

static mx_status run_tiles(mx_job *a, mx_job *b, size_t step, const mx_exec *exec) {
  const size_t rows = a->src->rows, cols = a->src->cols;
  const tiling how = tiling_of(a->src, step);
  const size_t across = divided_up(cols, how.cols), tiles = divided_up(rows, how.rows) * across;
  const size_t block = a->plan->block_cols > b->plan->block_cols ? a->plan->block_cols : b->plan->block_cols;
  int failed = 0;
  mx_workspace *from = exec ? exec->workspace : NULL;
#pragma omp parallel num_threads(threads_of(a, exec))
  {
    float *room = mxi_room_take(from, how.rows * ((how.copied ? how.cols : 0) + TILE_LINES) * sizeof *room);
    mx_memo memo;
    memo.job = NULL;
    mx_scratch mine = {mxi_room_take(from, (block + 1) * sizeof *mine.values), mxi_room_take(from, (block + 1) * sizeof *mine.codes), &memo};
    const int ready = room && mine.values && mine.codes;
    if (!ready) {
#pragma omp atomic write
      failed = 1;
    }
#pragma omp for schedule(dynamic)
    for (size_t i = 0; i < tiles; i++) {
      const size_t r = i / across * how.rows, c = i % across * how.cols;
      if (ready) run_both(a, b, r, rows - r < how.rows ? rows - r : how.rows, c, cols - c < how.cols ? cols - c : how.cols, &how, room, &mine);
    }
    mxi_room_give(from, room);
    mxi_room_give(from, mine.values);
    mxi_room_give(from, mine.codes);
  }
  return failed ? MX_ERR_NOMEM : MX_OK;
}

mx_status mx_quantize(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_exec *exec,
                      mx_error *err) {
  if (!out || !spec || (!src && rows && cols)) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (ld < cols) return mx_fail(err, MX_ERR_SHAPE, "row stride %zu, expected at least %zu", ld, cols);
  const mx_source source = source_of(src, (ptrdiff_t)ld, 1, rows, cols, spec, exec);
  return quantize(out, &source, spec, exec, err);
}

static mx_source source_of_16(const uint16_t *at, int type, size_t ld, size_t rows, size_t cols, const mx_spec *spec, const mx_exec *exec) {
  mx_source s = source_of(NULL, (ptrdiff_t)ld, 1, rows, cols, spec, exec);
  s.at16 = at;
  s.type = type;
  s.widen = mxi_kernels_for(exec ? exec->isa_mask : 0)->widen;
  return s;
}

static int is_16(int type) { return type == MX_INPUT_DTYPE_BFLOAT16 || type == MX_INPUT_DTYPE_FLOAT16; }

mx_status mx_quantize_16(mx_tensor *out, const uint16_t *src, int type, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                         const mx_exec *exec, mx_error *err) {
  if (!out || !spec || (!src && rows && cols) || !is_16(type))
    return mx_fail(err, MX_ERR_ARG, "NULL argument or a type that does not have 16 bits");
  if (ld < cols) return mx_fail(err, MX_ERR_SHAPE, "row stride %zu, expected at least %zu", ld, cols);
  const mx_source source = source_of_16(src, type, ld, rows, cols, spec, exec);
  return quantize(out, &source, spec, exec, err);
}

mx_status mx_tensor_amax_16(float *out, const uint16_t *src, int type, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                            const mx_exec *exec) {
  if (!out || !spec || (!src && rows && cols) || !is_16(type)) return MX_ERR_ARG;
  if (ld < cols) return MX_ERR_SHAPE;
  const mx_source source = source_of_16(src, type, ld, rows, cols, spec, exec);
  return amax_of_source(out, &source, spec, exec);
}

mx_status mx_quantize_transposed(mx_tensor *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                                 const mx_exec *exec, mx_error *err) {
  if (!out || !spec || (!src && rows && cols)) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (ld < cols) return mx_fail(err, MX_ERR_SHAPE, "row stride %zu, expected at least %zu", ld, cols);
  const mx_source source = source_of(src, 1, (ptrdiff_t)ld, cols, rows, spec, exec);
  return quantize(out, &source, spec, exec, err);
}

/* Whether both specs take the same maximum of the tensor, which they do not if one rotates along the other axis. */
static int same_amax(const mx_spec *a, const mx_spec *b) {
  return !a->had_size && !b->had_size && a->flush == b->flush && a->input_dtype == b->input_dtype && a->scale_nan == b->scale_nan &&
         a->scale_inf == b->scale_inf;
}

mx_status mx_quantize_both(mx_tensor *out, mx_tensor *transposed, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec,
                           const mx_spec *spec_transposed, const mx_exec *exec, mx_error *err) {
  if (!out || !transposed || !spec || (!src && rows && cols)) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (ld < cols) return mx_fail(err, MX_ERR_SHAPE, "row stride %zu, expected at least %zu", ld, cols);
  if (!spec_transposed) spec_transposed = spec;
  const mx_source source = source_of(src, (ptrdiff_t)ld, 1, rows, cols, spec, exec);
  const mx_source turned = source_of(src, 1, (ptrdiff_t)ld, cols, rows, spec_transposed, exec);
  if (exec && exec->first_row)
    return mx_fail(err, MX_ERR_ARG, "exec.first_row is %zu: a column's blocks need the whole matrix", exec->first_row);
  mx_exec how = exec ? *exec : (mx_exec){0}, how_turned = how;
  call a, b;
  mx_status status = call_plan(&a, out, &source, spec, err);
  if (status || (status = call_plan(&b, transposed, &turned, spec_transposed, err))) return status;
  const int both = !how.amax_known && mxi_plan_needs_amax(&a.plan) && mxi_plan_needs_amax(&b.plan);
  /* One read finds both maxima. */
  if (both && mxi_rows_direct(&source) && turned_amax(&how_turned.amax, &how.amax, &turned, exec)) how.amax_known = how_turned.amax_known = 1;
  if ((status = call_init(&a, out, &source, &how, err))) return status;
  if (both && same_amax(spec, spec_transposed)) {
    how_turned.amax = a.amax;
    how_turned.amax_known = 1;
  }
  if ((status = call_init(&b, transposed, &turned, &how_turned, err))) return status;
  const size_t turn = source.input.had_size ? source.input.had_size : 1, turn_b = turned.input.had_size ? turned.input.had_size : 1;
  const size_t step_a = common_multiple(common_multiple(a.plan.block_cols, turn), mxi_eden_group(&a.plan)),
               step_b = common_multiple(common_multiple(b.plan.block_cols, turn_b), mxi_eden_group(&b.plan)),
               step = common_multiple(step_a, step_b);
  if (mxi_stages_take_rows(&a.job) && mxi_stages_take_rows(&b.job) && step <= TILE)
    status = run_tiles(&a.job, &b.job, step, exec);
  else if (!(status = run(&a.job, exec)))
    status = run(&b.job, exec);
  if (status) return mx_fail(err, status, "no memory for tiles of %d x %d", TILE, TILE);
  status = call_end(&a.job, err);
  return status ? status : call_end(&b.job, err);
}

mx_status mx_tensor_amax(float *out, const float *src, size_t rows, size_t cols, size_t ld, const mx_spec *spec, const mx_exec *exec) {
  if (!out || !spec || (!src && rows && cols)) return MX_ERR_ARG;
  if (ld < cols) return MX_ERR_SHAPE;
  const mx_source source = source_of(src, (ptrdiff_t)ld, 1, rows, cols, spec, exec);
  return amax_of_source(out, &source, spec, exec);
}

mx_status mx_tensor_scale(float *out, float amax, const mx_spec *spec) {
  mx_plan plan;
  const mx_status status = mxi_plan_init(&plan, spec, 1, 1, NULL);
  if (status) return status;
  mxi_plan_set_amax(&plan, amax);
  *out = plan.tensor_scale;
  return MX_OK;
}

const char *mx_tensor_store_name(const mx_spec *s) {
  if (s->tensor_norm == MX_TENSOR_NORM_NONE) return "none";
  const char *name = mx_chain_row(s->chain)->store; /* A, a divisor S or a multiplier T; the exact chain has none of them */
  if (s->chain == MX_CHAIN_EXACT)
    return s->tensor_store == MX_TENSOR_STORE_AMAX ? "amax" : s->tensor_store == MX_TENSOR_STORE_DIVISOR ? "divisor" : "scale";
  return *name == 'A' ? "amax" : *name == 'S' ? "divisor" : "scale";
}
