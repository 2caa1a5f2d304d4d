/* Tests that mx_judge() names the bug of kernels with one bug each, computed here in plain binary64 from codes and scales, for all of their
 * outputs, and does not name a bug where there is none. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/judging.h"
#include "lib/run.h"
#include "mxgold/verify.h"

/* Operands as numbers: the values of codes [rows][k] and of scales [rows][kb] of A and of B. */
typedef struct work {
  fixture f;
  size_t m, n, k, kb, block;
  double *v[2], *s[2];
  const char *keys;
} work;

static size_t rows(const work *w, int of_b) { return of_b ? w->n : w->m; }

static void open_work(work *w, const char *keys, size_t m, size_t n, size_t k) {
  size_t r;
  begin(&w->f, keys, m, n, k);
  w->m = m, w->n = n, w->k = k, w->keys = keys;
  mx_spec_block(&w->f.spec, m, k, &r, &w->block);
  w->kb = (k + w->block - 1) / w->block;
  for (int b = 0; b < 2; b++) {
    const mx_tensor *t = b ? &w->f.b : &w->f.a;
    w->v[b] = malloc(rows(w, b) * k * sizeof(double));
    w->s[b] = malloc(rows(w, b) * w->kb * sizeof(double));
    for (size_t i = 0; i < rows(w, b) * k; i++) w->v[b][i] = mx_decode(mx_elem_format(w->f.spec.elem), mx_code_at(t, &w->f.spec, i / k, i % k));
    for (size_t i = 0; i < rows(w, b) * w->kb; i++) w->s[b][i] = mx_decode(mx_scale_format(w->f.spec.scale), t->scales[i]);
  }
}

static void close_work(work *w) {
  for (int b = 0; b < 2; b++) {
    free(w->v[b]);
    free(w->s[b]);
  }
  end(&w->f);
}

static double dot(const work *w, size_t i, size_t j, size_t from, size_t to) {
  double acc = 0;
  for (size_t k = from; k < to; k++)
    acc = fma(w->v[0][i * w->k + k] * w->s[0][i * w->kb + k / w->block], w->v[1][j * w->k + k] * w->s[1][j * w->kb + k / w->block], acc);
  return acc;
}

/* The sums of model f64: k ascending, one rounding to binary32. */
static float *sums(const work *w) {
  float *d = malloc(w->m * w->n * sizeof *d);
  for (size_t i = 0; i < w->m * w->n; i++) d[i] = (float)dot(w, i / w->n, i % w->n, 0, w->k);
  return d;
}

/* ---- bugs of the operands */

static void *kept(const void *from, size_t n) { return memcpy(malloc(n), from, n); }
static double *codes_of(const work *w, int b) { return kept(w->v[b], rows(w, b) * w->k * sizeof(double)); }
static double *scales_of(const work *w, int b) { return kept(w->s[b], rows(w, b) * w->kb * sizeof(double)); }

static void lose(work *w, size_t from, size_t to) {
  for (size_t i = 0; i < w->m * w->k; i++)
    if (i % w->k >= from && i % w->k < to) w->v[0][i] = 0;
}
static void times(work *w, size_t from, size_t to, double by) {
  for (size_t i = 0; i < w->m * w->k; i++)
    if (i % w->k >= from && i % w->k < to) w->v[0][i] *= by;
}
static void last_16(work *w) { lose(w, w->k - 16, w->k); }
static void first_8(work *w) { lose(w, 0, 8); }
static void one_half_twice(work *w) { times(w, 0, w->kb / 2 * w->block, 2); }
static void last_part_alone(work *w) { lose(w, 0, 2 * w->block); }
static void blocks_2_to_4(work *w) { lose(w, w->block, 4 * w->block); }
static void half_of_each_32(work *w) {
  for (size_t i = 0; i < w->m * w->k; i++)
    if (i % w->k % 32 >= 16) w->v[0][i] = 0;
}
static void scales_swapped(work *w) { /* rows beyond those of the shorter operand keep their scales */
  double *a = scales_of(w, 0);
  const size_t shared = (w->m < w->n ? w->m : w->n) * w->kb;
  memcpy(w->s[0], w->s[1], shared * sizeof *a);
  memcpy(w->s[1], a, shared * sizeof *a);
  free(a);
}
static void scale_from(work *w, int b, size_t (*of)(const work *w, size_t row, size_t block)) {
  double *s = scales_of(w, b);
  for (size_t i = 0; i < rows(w, b) * w->kb; i++) w->s[b][i] = s[of(w, i / w->kb, i % w->kb)];
  free(s);
}
static size_t next_around(const work *w, size_t r, size_t b) { return r * w->kb + (b + 1) % w->kb; }
static size_t flat_next(const work *w, size_t r, size_t b) { return r * w->kb + b + 1 < w->n * w->kb ? r * w->kb + b + 1 : r * w->kb + b; }
static size_t row_of_16(const work *w, size_t r, size_t b) { return r / 16 * 16 * w->kb + b; }
static size_t first_row(const work *w, size_t r, size_t b) { return (void)r, (void)w, b; }
static size_t of_pairs(const work *w, size_t r, size_t b) { return r * w->kb + b / 2; }
static void a_next_around(work *w) { scale_from(w, 0, next_around); }
static void b_flat_next(work *w) { scale_from(w, 1, flat_next); }
static void a_row_of_16(work *w) { scale_from(w, 0, row_of_16); }
static void b_first_row(work *w) { scale_from(w, 1, first_row); }
static void b_pairs(work *w) { scale_from(w, 1, of_pairs); }

/* Reads codes and scales of block b of an operand from block from[b]. */
static void move_blocks(work *w, int side, const size_t *from) {
  double *v = codes_of(w, side), *s = scales_of(w, side);
  for (size_t r = 0; r < rows(w, side); r++)
    for (size_t b = 0; b < w->kb; b++) {
      w->s[side][r * w->kb + b] = s[r * w->kb + from[b]];
      for (size_t k = 0; k < w->block && b * w->block + k < w->k; k++)
        w->v[side][r * w->k + b * w->block + k] = v[r * w->k + from[b] * w->block + k];
    }
  free(v);
  free(s);
}
static void two_blocks(work *w) { move_blocks(w, 0, (const size_t[]){1, 0, 2, 3, 4, 5, 6, 7}); }
static void stale_tile(work *w) { move_blocks(w, 1, (const size_t[]){0, 1, 0, 1, 4, 5, 6, 7}); }
static void one_stale(work *w) { move_blocks(w, 0, (const size_t[]){0, 1, 2, 2, 4, 5, 6, 7}); }
static void blocks_back(work *w) { move_blocks(w, 0, (const size_t[]){7, 6, 5, 4, 3, 2, 1, 0}); }
static void codes_from(work *w, int b, size_t (*of)(const work *w, size_t row, size_t k)) {
  double *v = codes_of(w, b);
  for (size_t i = 0; i < rows(w, b) * w->k; i++) w->v[b][i] = v[of(w, i / w->k, i % w->k)];
  free(v);
}
static size_t row_pairs(const work *w, size_t r, size_t k) { return (r ^ 1) * w->k + k; }
static size_t tiles_of_16(const work *w, size_t r, size_t k) { return (r / 16 * 16 + k % 16) * w->k + k / 16 * 16 + r % 16; }
static size_t blocks_3_and_6(const work *w, size_t r, size_t k) { return r * w->k + (k / 32 == 2 ? k + 96 : k / 32 == 5 ? k - 96 : k); }
static size_t last_row_first(const work *w, size_t r, size_t b) { return (w->n - 1 - r) * w->kb + b; }
static size_t two_columns(const work *w, size_t r, size_t b) { return r * w->kb + (b == 1 ? 6 : b == 6 ? 1 : b); }
static void a_code_rows(work *w) { codes_from(w, 0, row_pairs); }
static void b_code_tiles(work *w) { codes_from(w, 1, tiles_of_16); }
static void a_code_blocks(work *w) { codes_from(w, 0, blocks_3_and_6); }
static void b_scale_rows(work *w) { scale_from(w, 1, last_row_first); }
static void a_scale_columns(work *w) { scale_from(w, 0, two_columns); }
static void last_21(work *w) { lose(w, w->k - 21, w->k); }
static void first_11(work *w) { lose(w, 0, 11); }
static void interleaved(work *w) {
  double *v = codes_of(w, 1);
  for (size_t i = 0; i < w->n * w->k; i++) w->v[1][i] = v[i - i % 32 + i % 32 / 2 + i % 2 * 16];
  free(v);
}
static void reversed_by_8(work *w) {
  double *v = codes_of(w, 0);
  for (size_t i = 0; i < w->m * w->k; i++) w->v[0][i] = v[i - i % 8 + 7 - i % 8];
  free(v);
}
static void magnitudes(work *w) {
  for (size_t i = 0; i < w->m * w->k; i++) w->v[0][i] = fabs(w->v[0][i]);
}
static void no_subnormals(work *w) {
  const double least = w->f.spec.elem == MX_ELEM_E2M1 ? 1 : 0x1p-6;
  for (size_t i = 0; i < w->m * w->k; i++)
    if (fabs(w->v[0][i]) < least) w->v[0][i] = 0;
}
static void last_scale(work *w) {
  for (size_t r = 0; r < w->m; r++) w->s[0][r * w->kb + w->kb - 1] = 1;
}
static void last_scales(work *w) {
  last_scale(w);
  for (size_t r = 0; r < w->n; r++) w->s[1][r * w->kb + w->kb - 1] = 1;
}
static void one_scale(work *w) { w->s[0][13 * w->kb + 2] *= 4; }
static void one_scale_of_b(work *w) { w->s[1][30 * w->kb + 5] *= 0.125; }
static void table_entry(work *w) {
  for (size_t i = 0; i < w->n * w->k; i++)
    if (fabs(w->v[1][i]) == 3) w->v[1][i] = copysign(2.5, w->v[1][i]);
}
static void a_for_b(work *w) {
  memcpy(w->v[1], w->v[0], w->m * w->k * sizeof(double));
  memcpy(w->s[1], w->s[0], w->m * w->kb * sizeof(double));
}

static const struct {
  void (*damage)(work *);
  const char *words;
} damages[] = {
    {last_16, "the tail of K is lost, its last 16 (K = 240 for 256)"},
    {first_8, "the first 8 of K are lost"},
    {one_half_twice, "K blocks 0 to 3 of 0..7 (the first half of K) are added twice"},
    {last_part_alone, "only K blocks 2 to 7 of 0..7 are summed"},
    {blocks_2_to_4, "K blocks 1 to 3 of 0..7 are lost"},
    {half_of_each_32, "the last 16 of every 32 elements along K are lost"},
    {scales_swapped, "the scales of A and B are swapped"},
    {a_next_around, "the scales of K blocks of A are those 1 further on, around the end of K"},
    {b_flat_next, "the scales of B are those of the next block in memory, across the ends of rows"},
    {a_row_of_16, "the scales of A are those of the first of each 16 rows"},
    {b_first_row, "the scales of B are those of its first row"},
    {b_pairs, "each two blocks of B share one scale (block b has that of block b / 2"},
    {two_blocks, "K blocks 0 and 1 of A are swapped"},
    {stale_tile, "K blocks 2 to 3 of B are read from blocks 0 to 1"},
    {one_stale, "K block 3 of A is read from block 2"},
    {blocks_back, "K blocks of A are in reverse order"},
    {interleaved, "the elements of B are interleaved in groups of 32"},
    {reversed_by_8, "the elements of A are in reverse order in groups of 8"},
    {magnitudes, "the sign of the elements of A is lost"},
    {no_subnormals, "subnormal elements of A are taken for zero"},
    {last_scale, "the scale of the last K block of A is not applied"},
    {last_scales, "the scale of the last K block of A and B is not applied"},
    {one_scale, "the scale of row 13, K block 2 of A is 4 times what it should be"},
    {one_scale_of_b, "the scale of row 30, K block 5 of B is 0.125 times what it should be"},
    {table_entry, "code 0x5 of B, which is 3, is decoded as 2.5"},
    {a_for_b, "A is read for B too"},
    {a_code_rows, "each 2 rows of the codes of A are in reverse order"},
    {b_code_tiles, "each tile of 16 x 16 codes of B is transposed"},
    {a_code_blocks, "the codes of K blocks 2 and 5 of A are swapped"},
    {b_scale_rows, "the rows of the scales of B are in reverse order"},
    {a_scale_columns, "the scales of K blocks 1 and 6 of A are swapped"},
    {last_21, "the tail of K is lost, its last 21 (K = 235 for 256)"},
    {first_11, "the first 11 of K are lost"},
};
enum { DAMAGES = sizeof damages / sizeof damages[0] };

/* The finding must say these words, or those of a bug that gives the same sums, such as A and B in another order within a block. */
static void said(const mx_judgement *j, const char *words) {
  ck_assert(!j->equal);
  for (int i = 0; i < j->n_findings; i++) {
    const mx_finding *f = &j->findings[i];
    if (!strstr(f->what, words)) continue;
    if (f->unexplained || f->breaks || f->explained != j->differ || !*f->model)
      ck_abort_msg("\"%s\" explains %llu of %llu and breaks %llu", f->what, (unsigned long long)f->explained, (unsigned long long)j->differ,
                   (unsigned long long)f->breaks);
    return;
  }
  ck_abort_msg("found \"%s\", expected \"%s\"", j->n_findings ? j->findings[0].what : "nothing", words);
}

START_TEST(bugs_of_operands) {
  work w;
  if (_i % 2 && damages[_i / 2].damage == no_subnormals) return; /* these e4m3 have none */
  if (_i % 2 && damages[_i / 2].damage == table_entry) return;   /* only tables of 4-bit codes are searched */
  open_work(&w, _i % 2 ? "elem=e4m3" : "elem=e2m1", 64, 80, 256);
  damages[_i / 2].damage(&w);
  float *d = sums(&w);
  if (damages[_i / 2].damage == a_for_b) { /* beyond A's rows the result is not defined */
    float *right = product(&w.f, &w.f.a, &w.f.b, &(mx_gemm_options){.model = MX_GEMM_F64});
    for (size_t i = 0; i < w.m * w.n; i++)
      if (i % w.n >= w.m) d[i] = right[i];
    free(right);
  }
  said(judge(&w.f, d, NULL, NULL), damages[_i / 2].words);
  free(d);
  close_work(&w);
}
END_TEST

/* ---- bugs of D */

static void relu(work *w, float *d) {
  for (size_t i = 0; i < w->m * w->n; i++) d[i] = d[i] > 0 ? d[i] : 0;
}
static void cut(work *w, float *d) {
  for (size_t i = 0; i < w->m * w->n; i++) d[i] = truncf(d[i]);
}
static void relu_below(work *w, float *d) {
  for (size_t i = 32 * w->n; i < w->m * w->n; i++) d[i] = d[i] > 0 ? d[i] : 0;
}
static void leaky(work *w, float *d) {
  for (size_t i = 0; i < w->m * w->n; i++) d[i] = d[i] > 0 ? d[i] : 0.01f * d[i];
}
static float top(const work *w, const float *d) {
  float most = 0;
  for (size_t i = 0; i < w->m * w->n; i++) most = fmaxf(most, fabsf(d[i]));
  return most;
}
static void clamped(work *w, float *d) {
  const float most = top(w, d) / 8;
  for (size_t i = 0; i < w->m * w->n; i++) d[i] = fmaxf(-most, fminf(most, d[i]));
}
static void no_sign(work *w, float *d) {
  for (size_t i = 0; i < w->m * w->n; i++) d[i] = fabsf(d[i]);
}
static void tiles_turned(work *w, float *d) {
  float *e = kept(d, w->m * w->n * sizeof *e);
  for (size_t r = 0; r < w->m; r++)
    for (size_t c = 0; c < w->n; c++) d[r * w->n + c] = e[(r / 16 * 16 + c % 16) * w->n + c / 16 * 16 + r % 16];
  free(e);
}
static void grid_turned(work *w, float *d) {
  float *e = kept(d, w->m * w->n * sizeof *e);
  for (size_t r = 0; r < w->m; r++)
    for (size_t c = 0; c < w->n; c++) {
      const size_t tile = r / 16 * (w->n / 16) + c / 16, down = w->m / 16;
      d[r * w->n + c] = e[(tile % down * 16 + r % 16) * w->n + tile / down * 16 + c % 16];
    }
  free(e);
}
static void rows_interleaved(work *w, float *d) {
  float *e = kept(d, w->m * w->n * sizeof *e);
  for (size_t r = 0; r < w->m; r++) memcpy(d + r * w->n, e + (r / 16 * 16 + r % 16 / 2 + r % 2 * 8) * w->n, w->n * sizeof *e);
  free(e);
}
static void two_rows(work *w, float *d) {
  float *e = kept(d, w->m * w->n * sizeof *e);
  memcpy(d + 5 * w->n, e + 9 * w->n, w->n * sizeof *e);
  memcpy(d + 9 * w->n, e + 5 * w->n, w->n * sizeof *e);
  free(e);
}
static void two_tiles(work *w, float *d) {
  for (size_t r = 32; r < 64; r++)
    for (size_t c = 0; c < 32; c++) {
      const float x = d[r * w->n + c];
      d[r * w->n + c] = d[(r - 32) * w->n + c + 64];
      d[(r - 32) * w->n + c + 64] = x;
    }
}
static void rows_reversed(work *w, float *d) {
  float *e = kept(d, w->m * w->n * sizeof *e);
  for (size_t r = 0; r < w->m; r++) memcpy(d + r * w->n, e + (w->m - 1 - r) * w->n, w->n * sizeof *e);
  free(e);
}
static void tile_twice(work *w, float *d) {
  for (size_t r = 16; r < 32; r++)
    for (size_t c = 32; c < 64; c++) d[r * w->n + c] *= 2;
}
static void lost_here_and_there(work *w, float *d) {
  for (size_t i = 0; i < 40; i++) d[mx_random(5, MX_STREAM_DATA, i) % (w->m * w->n)] = 0;
}
static void one_column_of_16(work *w, float *d) {
  for (size_t i = 0; i < w->m * w->n; i++)
    if (i % w->n % 16 == 3) d[i] = 0;
}
static void one_larger(work *w, float *d) { d[17 * w->n + 33] *= 1.25f; }
static void two_of_them(work *w, float *d) { d[7 * w->n + 9] = NAN, d[20 * w->n + 3] *= -1; }
static void one_bit(work *w, float *d) {
  uint32_t x;
  memcpy(&x, d + 5 * w->n + 5, 4);
  x ^= 1u << 13;
  memcpy(d + 5 * w->n + 5, &x, 4);
}

static const struct {
  void (*damage)(work *, float *);
  const char *words;
} outputs[] = {
    {relu, "a ReLU follows: what is negative is zero"},
    {cut, "outputs are cut to integers, toward zero"},
    {relu_below, "a ReLU follows: what is negative is zero"},
    {leaky, "negative outputs are multiplied by 0.01"},
    {clamped, "outputs are clamped to -"},
    {no_sign, "the sign of outputs is lost"},
    {tiles_turned, "each tile of 16 x 16 of D is transposed in itself"},
    {grid_turned, "the tiles of 16 x 16 of D are in column-major order"},
    {rows_interleaved, "the rows of D are interleaved in groups of 16"},
    {two_rows, "rows 5 and 9 of D are swapped"},
    {two_tiles, "D has two tiles of 32 x 32 swapped (rows 0 to 31, columns 64 to 95 and rows 32 to 63, columns 0 to 31)"},
    {rows_reversed, "the rows of D are in reverse order in groups of 64"},
    {tile_twice, "every output is 2^1 times what it should be"},
    {lost_here_and_there, "outputs are zero, in no pattern that is known"},
    {one_column_of_16, "a tile was never written, or lost: it is zero in columns with index % 16 = 3"},
    {one_larger, "one output alone: row 17, column 33 is 1.25 times what it should be"},
    {two_of_them, "2 outputs alone: row 7, column 9 is NaN; row 20, column 3 has the wrong sign"},
    {one_bit, "one output alone: row 5, column 5 has bit 13 of its binary32 flipped"},
};
enum { OUTPUTS = sizeof outputs / sizeof outputs[0] };

START_TEST(bugs_of_outputs) {
  work w;
  open_work(&w, _i % 2 ? "elem=e4m3 scale=e4m3 block=1x16" : "elem=e2m1", 64, 96, 200);
  float *d = sums(&w);
  outputs[_i / 2].damage(&w, d);
  said(judge(&w.f, d, NULL, NULL), outputs[_i / 2].words);
  free(d);
  close_work(&w);
}
END_TEST

/* A K block is lost only in odd rows; the rest of D is right and must not be blamed. */
START_TEST(a_bug_in_every_second_row) {
  work w;
  open_work(&w, "elem=e4m3", 64, 80, 208);
  float *right = sums(&w);
  lose(&w, 64, 96);
  float *d = sums(&w);
  for (size_t i = 0; i < w.m * w.n; i++)
    if (i / w.n % 2 == 0) d[i] = right[i];
  const mx_judgement *j = judge(&w.f, d, NULL, NULL);
  said(j, "K block 2 of 0..6 is lost");
  where(j, "only rows with index % 2 = 1");
  free(d);
  free(right);
  close_work(&w);
}
END_TEST

/* Bugs that are found only up to rounding: no bits can agree, so all of D must support the finding. */
START_TEST(bugs_without_bits) {
  work w;
  open_work(&w, "elem=e2m1", 64, 96, 256);
  float *right = sums(&w), *d = malloc(w.m * w.n * sizeof *d);
  const float alpha = 4 / top(&w, right);
  for (size_t i = 0; i < w.m * w.n; i++) d[i] = (float)((double)(right[i] * alpha) / (1 + exp(-(double)(right[i] * alpha))));
  const mx_judgement *j = judge(&w.f, d, &(mx_gemm_options){.alpha = &alpha}, NULL);
  ck_assert_msg(j->n_findings && strstr(j->findings[0].what, "a SiLU") && !*j->findings[0].model, "SiLU: %s",
                j->n_findings ? j->findings[0].what : "nothing");
  for (int all = 0; all < 2; all++) {
    memcpy(d, right, w.m * w.n * sizeof *d);
    for (size_t i = 0; i < w.m * w.n; i++)
      if (i % w.n >= 16) d[i] += (all ? d : right)[i - 16];
    j = judge(&w.f, d, NULL, NULL);
    ck_assert_msg(j->n_findings && strstr(j->findings[0].what, "an accumulator is not cleared: each 16 columns hold the sum of"), "%s",
                  j->n_findings ? j->findings[0].what : "nothing");
    ck_assert(strstr(j->findings[0].what, all ? "all before them" : "the columns before them"));
  }
  free(d);
  free(right);
  close_work(&w);
}
END_TEST

/* ---- what follows the sum */

START_TEST(bugs_of_the_epilogue) {
  static const char *const words[] = {"alpha is applied to C instead of the product",
                                      "alpha and beta are swapped",
                                      "the bias is subtracted",
                                      "the bias is that of the column before",
                                      "the bias is that of the next column",
                                      "the bias goes along rows instead of columns",
                                      "the first 16 values of the bias are used for all",
                                      "the values of the bias are in reverse order",
                                      "the bias is that of 8 columns before, around the end",
                                      "a ReLU follows: what is negative is zero, before C and the bias are added",
                                      "the product is missing",
                                      "the product is rounded to bfloat16, before C and the bias are added"};
  work w;
  open_work(&w, "elem=e4m3", 64, 96, 208);
  float *acc = sums(&w), *c = malloc(w.m * w.n * sizeof *c), *d = malloc(w.m * w.n * sizeof *d), bias[96];
  const float alpha = 0.5f, beta = -1.5f, size = top(&w, acc) / 64;
  for (size_t i = 0; i < w.m * w.n; i++) c[i] = size * ((float)(i * 37 % 101) - 50);
  for (size_t i = 0; i < w.n; i++) bias[i] = size * (float)((i * 29 + 7) % 97);
  for (size_t i = 0; i < w.m * w.n; i++) {
    const size_t row = i / w.n, col = i % w.n,
                 at = _i == 3   ? (col + w.n - 1) % w.n
                      : _i == 4 ? (col + 1) % w.n
                      : _i == 5 ? row
                      : _i == 6 ? col % 16
                      : _i == 7 ? w.n - 1 - col
                      : _i == 8 ? (col + w.n - 8) % w.n
                                : col;
    const float x = acc[i] * (_i == 0 ? 1 : _i == 1 ? beta : _i == 10 ? 0 : alpha), y = _i == 0 ? alpha * beta : _i == 1 ? alpha : beta;
    int e;
    const double m = frexp((double)x, &e);
    d[i] = fmaf(y, c[i], _i == 9 && x < 0 ? 0 : _i == 11 ? (float)ldexp(nearbyint(ldexp(m, 8)), e - 8) : x);
    d[i] += _i == 2 ? -bias[at] : bias[at];
  }
  const mx_gemm_options o = {.alpha = &alpha, .beta = &beta, .c = c, .c_type = MX_F32, .bias = bias};
  said(judge(&w.f, d, &o, NULL), words[_i]);
  free(acc);
  free(c);
  free(d);
  close_work(&w);
}
END_TEST

/* The order of the factors after the sum: te-nvfp4's two tensor scales, one after the other. */
START_TEST(order_of_the_factors) {
  work w;
  float ga, gb;
  open_work(&w, "@te-nvfp4", 64, 96, 192);
  mx_tensor_multiplier(&ga, &w.f.a, &w.f.spec);
  mx_tensor_multiplier(&gb, &w.f.b, &w.f.spec);
  float *d = sums(&w);
  for (size_t i = 0; i < w.m * w.n; i++) {
    volatile float x = d[i] * ga;
    d[i] = x * gb;
  }
  said(judge(&w.f, d, NULL, NULL), "the tensor scale of A, that of B and alpha are multiplied onto the sum one after the other");
  free(d);
  close_work(&w);
}
END_TEST

/* Chunks of K are summed in a narrow accumulator and added in binary32. */
START_TEST(promoted_chunks) {
  work w;
  open_work(&w, "elem=e2m1", 64, 64, 256);
  float *d = calloc(w.m * w.n, sizeof *d);
  for (size_t i = 0; i < w.m * w.n; i++)
    for (size_t k = 0; k < w.k; k += 64) {
      int e;
      const double part = frexp(dot(&w, i / w.n, i % w.n, k, k + 64), &e);
      d[i] += (float)ldexp(nearbyint(ldexp(part, 8)), e - 8); /* to bfloat16 */
    }
  const mx_judgement *j = judge(&w.f, d, NULL, NULL);
  ck_assert_msg(j->n_findings && strstr(j->findings[0].what, "chunks of 2 blocks in bfloat16, which are added in binary32"), "%s",
                j->n_findings ? j->findings[0].what : "nothing");
  free(d);
  close_work(&w);
}
END_TEST

/* ---- what must not be said */

START_TEST(no_cause_without_all_of_d) {
  work w;
  open_work(&w, "elem=e2m1", 64, 96, 256);
  float *right = sums(&w), *d = malloc(w.m * w.n * sizeof *d);
  const float most = top(&w, right);
  for (int kind = 0; kind < 4; kind++) {
    memcpy(d, right, w.m * w.n * sizeof *d);
    for (size_t i = 0; i < w.m * w.n; i++) {
      const float x = (float)(int32_t)mx_random(8, MX_STREAM_DATA, i) * 0x1p-31f;
      if (kind == 0) d[i] *= 1 + x / 256;               /* noise */
      if (kind == 1) d[i] = x * most;                   /* nothing of the product */
      if (kind == 2 && i % 1000 == 77) d[i] = x * most; /* a few numbers */
      if (kind == 3 && d[i] > 0 && i % 3) d[i] = x;     /* by value, and not all */
    }
    const mx_judgement *j = judge(&w.f, d, NULL, NULL);
    ck_assert(!j->equal);
    ck_assert_msg(!j->n_findings, "kind %d: %s", kind, j->findings[0].what);
  }
  free(right);
  free(d);
  close_work(&w);
}
END_TEST

/* The verdict names an accumulator that is narrower than binary32 and not the usual one of these operands. */
START_TEST(narrow_accumulators_are_told) {
  work w;
  mx_mma_model model;
  open_work(&w, "elem=e2m1", 64, 96, 256);
  ck_assert_int_eq(mx_mma_model_find(&model, "hopper_fp8_wgmma_acc16", NULL), MX_OK);
  float *d = product(&w.f, &w.f.a, &w.f.b, &(mx_gemm_options){.model = MX_GEMM_FUSED, .fused = &model});
  const mx_judgement *j = judge(&w.f, d, NULL, NULL);
  ck_assert(j->equal);
  for (int i = 0; i < j->n_models; i++) {
    if (!j->models[i].differ && j->models[i].compared == j->outputs) ck_assert_int_eq(j->models[i].bits, 11);
    if (!strcmp(j->models[i].name, "hopper_fp8_wgmma")) ck_assert_int_eq(j->models[i].bits, 14);
    if (!strcmp(j->models[i].name, "f32_block")) ck_assert_int_eq(j->models[i].bits, 0);
  }
  free(d);
  close_work(&w);
  open_work(&w, "elem=e4m3", 8, 8, 64); /* FP8 kernels use Hopper's FP8 unit anyway */
  d = sums(&w);
  j = judge(&w.f, d, NULL, NULL);
  for (int i = 0; i < j->n_models; i++)
    if (!strcmp(j->models[i].name, "hopper_fp8_wgmma")) ck_assert_int_eq(j->models[i].bits, 0);
  free(d);
  close_work(&w);
}
END_TEST

/* NVFP4's scales have a mantissa, which a kernel may drop. */
START_TEST(scales_without_mantissa) {
  work w;
  open_work(&w, "elem=e2m1 scale=e4m3 block=1x16 scale.rule=value", 64, 80, 128);
  for (size_t i = 0; i < w.m * w.kb; i++) w.s[0][i] = ldexp(1, ilogb(w.s[0][i]));
  float *d = sums(&w);
  said(judge(&w.f, d, NULL, NULL), "the mantissa of the scales of A is dropped: powers of two are left");
  free(d);
  for (size_t i = 0; i < w.n * w.kb; i++) w.s[1][i] = ldexp(1, ilogb(w.s[1][i]));
  d = sums(&w);
  said(judge(&w.f, d, NULL, NULL), "the mantissa of the scales of A and B is dropped: powers of two are left");
  free(d);
  close_work(&w);
}
END_TEST

int main(void) {
  Suite *s = suite_create("judge_bugs");
  TCase *t = tcase_create("judge_bugs");
  tcase_set_timeout(t, 120);
  /* Two of three bugs over one of two formats, in turn; make check-all: each over both. */
  for (int i = 0; i < DAMAGES; i++)
    if (run_whole() || i % 3 < 2)
      tcase_add_loop_test(t, bugs_of_operands, 2 * i + (run_whole() ? 0 : i % 2), 2 * i + (run_whole() ? 2 : 1 + i % 2));
  for (int i = 0; i < OUTPUTS; i++)
    if (run_whole() || i % 3 < 2)
      tcase_add_loop_test(t, bugs_of_outputs, 2 * i + (run_whole() ? 0 : i % 2), 2 * i + (run_whole() ? 2 : 1 + i % 2));
  tcase_add_loop_test(t, bugs_of_the_epilogue, 0, 12);
  tcase_add_test(t, scales_without_mantissa);
  tcase_add_test(t, a_bug_in_every_second_row);
  tcase_add_test(t, bugs_without_bits);
  tcase_add_test(t, order_of_the_factors);
  tcase_add_test(t, promoted_chunks);
  tcase_add_test(t, no_cause_without_all_of_d);
  tcase_add_test(t, narrow_accumulators_are_told);
  suite_add_tcase(s, t);
  return run_suite_unforked(s);
}
