/* Lays packed codes out in panels, and prepares their scales. */
#include "core/room.h"
#include "gemm/codes/codes.h"

#include <math.h>
#include <string.h>

#include "kernels/tile_state.h"
#include "mxgold/isa.h"

enum { L = MXG_LANES };

mxg_codes_kernel *mxi_gemm_codes_best(const mx_exec *exec) {
#if defined(__x86_64__)
  const uint32_t isa = mx_isa_usable(exec->isa_mask);
  __builtin_cpu_init();
  if (isa & MX_ISA_AVX512 && __builtin_cpu_supports("avx512vnni")) return mxi_gemm_codes_avx512;
  if (isa & MX_ISA_AVX2) return mxi_gemm_codes_avx2;
#else
  (void)exec;
#endif
  return NULL;
}

/* Whether binary32 cannot hold the products of these scales, or has to divide by them. */
static int has_wide_scales(const mxg_plan *plan) { return plan->a.divides || plan->b.divides || plan->a.scale_bits + plan->b.scale_bits > 24; }

/* Sixteen rows cost a tile product as much as one row does, and 8 or 16 of k as much as 64 do. */
mxg_codes_kernels mxi_gemm_codes_choose(const mxg_plan *plan) {
  enum { FEW_ROWS = 4, SHORT = 16 };
  mxg_codes_kernels k = {.tile = mxi_gemm_codes_usable(plan) ? mxi_gemm_codes_best(&plan->o.exec) : NULL};
#if defined(__x86_64__)
  if (k.tile && plan->M > FEW_ROWS && plan->block > SHORT && plan->K > SHORT && !has_wide_scales(plan) &&
      !mxi_gemm_skinny_usable(plan, k.tile) && mx_isa_usable(plan->o.exec.isa_mask) & MX_ISA_AMX && mxi_tiles_permitted())
    k.column = mxi_gemm_codes_amx;
#endif
  return k;
}

static int plain_e2m1(const mxg_operand *o) { return o->elem == mx_elem_format(MX_ELEM_E2M1) && !o->micro; }

int mxi_gemm_codes_usable(const mxg_plan *plan) {
  const size_t longest = plan->block < plan->K ? plan->block : plan->K;
  return plan->model == MX_GEMM_F32_BLOCK && plain_e2m1(&plan->a) && plain_e2m1(&plan->b) && plan->K && longest <= 1 << 16 &&
         (plan->block % MXG_GROUP == 0 || plan->kb == 1);
}

/* Faster ways to pack, where the machine has them. */
#if defined(__x86_64__)
#define pack_scales mxi_gemm_pack_scales_avx512
#define turn_scales mxi_gemm_turn_scales_avx512
static int has_avx512(const mx_exec *exec) { return mxi_gemm_codes_best(exec) == mxi_gemm_codes_avx512; }
#define pack_words mxi_gemm_pack_words_avx512
#define pack_signed mxi_gemm_pack_signed_avx512
#define skinny_kernel mxi_gemm_skinny_avx512
void mxi_gemm_codes_dots(double *dots, const mxg_packed *a, const mxg_packed *b, size_t block) {
  (a->avx512 ? mxi_gemm_codes_dots_avx512 : mxi_gemm_codes_dots_avx2)(dots, a, b, block);
}
#else
#define skinny_kernel(acc, a, from) ((void)(acc), (void)(a), (void)(from))
#define pack_scales(...) (void)0
#define turn_scales(...) 0
#define has_avx512(exec) 0
#define pack_words(...) 0
#define pack_signed(...) (void)0
void mxi_gemm_codes_dots(double *dots, const mxg_packed *a, const mxg_packed *b, size_t block) { (void)dots, (void)a, (void)b, (void)block; }
#endif

mx_status mxi_gemm_codes_alloc(mxg_packed *p, const mxg_plan *plan, mxg_side side) {
  const size_t longest = plan->block < plan->K ? plan->block : plan->K;
  const int is_a = side == MXG_SIDE_A;
  *p = (mxg_packed){.side = side, .kb = plan->kb, .groups = (longest + MXG_GROUP - 1) / MXG_GROUP, .from = plan->o.exec.workspace};
  p->avx512 = has_avx512(&plan->o.exec);
  const size_t words = plan->kb * p->groups * L * (side == MXG_SIDE_B ? 1 : 2), scales = plan->kb * L;
  p->words = mxi_room_take(p->from, words * sizeof *p->words + 64);
  const int wide = has_wide_scales(plan);
  p->s = wide ? NULL : mxi_room_take(p->from, scales * sizeof *p->s + 64);
  p->wide = wide ? mxi_room_take(p->from, scales * sizeof *p->wide + 64) : NULL;
  p->offset = is_a ? mxi_room_take(p->from, scales * sizeof *p->offset + 1) : NULL;
  if (p->words && (wide ? p->wide != NULL : p->s != NULL) && (p->offset || !is_a)) return MX_OK;
  mxi_gemm_codes_free(p);
  return MX_ERR_NOMEM;
}

void mxi_gemm_codes_free(mxg_packed *p) {
  mxi_room_give(p->from, p->words);
  mxi_room_give(p->from, p->s);
  mxi_room_give(p->from, p->wide);
  mxi_room_give(p->from, p->offset);
  mxi_room_give(p->from, p->few);
  mxi_room_give(p->from, p->turns);
  *p = (mxg_packed){0};
}

/* Finds the formula of these scales by trying it on the table. */
static mxg_scale_codes scale_codes(const mxg_operand *o, const float *table, float unit) {
  mxg_scale_codes c = {.e8m0 = o->scale == mx_scale_format(MX_SCALE_E8M0) && !o->encode && unit == 1};
  if (c.e8m0 || !o->scale || o->encode || o->scale->man_bits < 1 || o->scale->man_bits > 23 || o->scale->bias < 0 || o->scale->bias > 126)
    return c;
  c.shift = (unsigned)(23 - o->scale->man_bits);
  c.factor = unit * ldexpf(1, 127 - o->scale->bias);
  for (; c.top < 255; c.top++) { /* 255 and not 256, since top has to fit in a byte */
    const uint32_t bits = c.top << c.shift;
    float x;
    memcpy(&x, &bits, sizeof x);
    if (!(x * c.factor == table[c.top])) break; /* also true for NaN */
  }
  return c;
}

/* Widens a range by a scale that is neither 0, Inf nor NaN. */
static void see(uint32_t *least, uint32_t *largest, float s) {
  uint32_t bits;
  memcpy(&bits, &s, sizeof bits);
  bits &= 0x7FFFFFFF;
  if (bits - 1 >= 0x7F7FFFFF) return;
  *least = bits < *least ? bits : *least;
  *largest = bits > *largest ? bits : *largest;
}

static void set_range(mxg_packed *p, const mxg_operand *o, uint32_t least, uint32_t largest) {
  float low, high;
  memcpy(&low, &least, sizeof low);
  memcpy(&high, &largest, sizeof high);
  p->least = largest ? ilogbf(low) - (o->scale_bits ? o->scale_bits - 1 : 0) : 0;
  p->largest = largest ? ilogbf(high) : 0;
}

/* The bytes of a panel's scales if they lie as the fast code needs them, or NULL. */
static const uint8_t *scale_bytes(const mxg_operand *o, size_t row0) {
  const int direct = o->scale && o->scale_bytes == 1 && o->scale_layout == MX_LAYOUT_ROW && !o->scale_transposed && o->rows_per_scale == 1;
  return direct ? o->scales + (o->scale_row0 + row0) * o->scale_ld : NULL;
}

/* Done once per product, since filling the table takes as long as the scales of a panel. */
static void set_table(mxg_packed *p, const mxg_operand *o, float unit) {
  if (p->table_of == o) return;
  for (unsigned c = 0; c < 256; c++) p->table[c] = unit * (float)o->scale_value[c];
  p->codes = scale_codes(o, p->table, unit);
  p->table_of = o;
}

static void fill_wide(mxg_packed *p, const mxg_operand *o, size_t row0) {
  const double unit = p->side != MXG_SIDE_A ? 1 : o->divides ? 4 : 0.25;
  for (size_t r = 0; r < L; r++)
    for (size_t b = 0; b < p->kb; b++) p->wide[b * L + r] = unit * (r < p->rows ? mxi_gemm_scale(o, row0 + r, b) : 1);
}

static void fill_scales(mxg_packed *p, const mxg_operand *o, size_t row0, float unit, int avx512) {
  if (p->wide) {
    fill_wide(p, o, row0);
    return;
  }
  uint32_t least = UINT32_MAX, largest = 0;
  const float *table = p->table;
  const uint8_t *first = scale_bytes(o, row0);
  const int fast = avx512 && first && p->rows == L;
  p->settled = p->turned = 0;
  set_table(p, o, unit);
  if (fast) pack_scales(p->s, &least, &largest, first, o->scale_ld, p->kb, table, &p->codes);
  for (size_t r = 0; r < L; r++)
    for (size_t b = fast ? p->kb : 0; b < p->kb; b++) {
      const float s = r >= p->rows ? unit : first ? table[first[r * o->scale_ld + b]] : unit * (float)mxi_gemm_scale(o, row0 + r, b);
      p->s[b * L + r] = s;
      see(&least, &largest, s);
    }
  set_range(p, o, least, largest);
}

int mxi_gemm_codes_fit(const mxg_packed *a, const mxg_packed *b) { return a->least + b->least >= -149 && a->largest + b->largest <= 126; }

int mxi_gemm_codes_slow(const mxg_packed *a, const mxg_packed *b) {
  enum { NORMAL = -126 };
  return a->least < NORMAL || b->least < NORMAL || a->least + b->least < NORMAL;
}

/* Eight codes of a row as a word, low nibble first; codes from K on are zeros. */
static uint32_t word_at(const mxg_operand *o, size_t row, size_t k, size_t K) {
  uint32_t word = 0;
  uint8_t codes[MXG_GROUP];
  const size_t n = k >= K ? 0 : K - k < MXG_GROUP ? K - k : MXG_GROUP;
  mxi_gemm_codes(codes, o, row, k, n);
  for (size_t i = 0; i < n; i++) word |= (uint32_t)(codes[i] & 15) << 4 * i;
  return word;
}

static int direct_words(const mxg_operand *o) { return o->pack == MXG_LOW_FIRST && !o->k_strided; }

/* Words [first, first + n) of a row. */
static void words_of(uint32_t *out, const mxg_operand *o, size_t row, size_t first, size_t n, size_t K) {
  const size_t whole = !direct_words(o) ? 0 : K / MXG_GROUP > first ? K / MXG_GROUP - first : 0, copied = whole < n ? whole : n;
  memcpy(out, o->data + row * o->line_bytes + first * 4, copied * 4);
  for (size_t i = copied; i < n; i++) out[i] = word_at(o, row, (first + i) * MXG_GROUP, K);
}

enum { PIECE = 256 };

static int all_zeros(const uint32_t *words, size_t n) { /* zeros of either sign */
  uint32_t any = 0;
  for (size_t i = 0; i < n; i++) any |= words[i] & 0x77777777;
  return !any;
}

void mxi_gemm_codes_leave_out_zeros(mxg_packed *p, const mxg_operand *o, const mxg_plan *plan, size_t row0) {
  const float unit = p->side == MXG_SIDE_A ? 0.25f : 1;
  uint32_t piece[PIECE], least = UINT32_MAX, largest = 0;
  if (p->settled) return;
  p->settled = 1;
  for (size_t r = 0; r < p->rows; r++)
    for (size_t b = 0; b < p->kb; b++) {
      float *s = &p->s[b * L + r];
      int zeros = !(fabsf(*s) >= 0x1p-50f && fabsf(*s) <= 0x1p50f); /* such a scale fits in any case */
      for (size_t g = 0; g < p->groups && zeros; g += PIECE) {
        const size_t m = p->groups - g < PIECE ? p->groups - g : PIECE;
        words_of(piece, o, row0 + r, b * p->groups + g, m, plan->K);
        zeros = all_zeros(piece, m);
      }
      if (zeros && isfinite(*s)) *s = unit;
      if (!zeros) see(&least, &largest, *s);
    }
  see(&least, &largest, unit);
  set_range(p, o, least, largest);
}

/* Turns the packed words in the upper half of the memory into signed bytes; what it overwrites has been read by then. */
static void spread(const mxg_packed *p, size_t n) {
  static const int8_t doubled[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  if (p->avx512) {
    pack_signed(p->words, n);
    return;
  }
  for (size_t i = 0; i < n * L; i++) {
    const uint32_t word = p->words[n * L + i];
    uint32_t *out = p->words + i / L * 2 * L + i % L;
    int8_t bytes[2][4];
    for (unsigned c = 0; c < 8; c++) bytes[c % 2][c / 2] = doubled[word >> 4 * c & 15];
    memcpy(out, bytes[0], 4);
    memcpy(out + L, bytes[1], 4);
  }
}

void mxi_gemm_codes_fill_b(mxg_packed *p, const mxg_operand *o, const mxg_plan *plan, size_t row0) {
  const size_t n = p->kb * p->groups;
  uint32_t *words = p->words + (p->side == MXG_SIDE_B_SIGNED ? n * L : 0);
  p->rows = o->rows - row0 < L ? o->rows - row0 : L;
  fill_scales(p, o, row0, 1, p->avx512);
  if (p->rows < L) memset(words, 0, n * L * sizeof *words);
  const size_t whole = direct_words(o) && p->rows == L ? plan->K / MXG_GROUP : 0, direct = whole < n ? whole : n;
  const uint8_t *first = direct ? o->data + row0 * o->line_bytes : NULL;
  size_t done = 0;
  if (direct && p->avx512) done = pack_words(words, first, o->line_bytes, direct);
  for (size_t g = done; g < direct; g++)
    for (size_t r = 0; r < L; r++) memcpy(&words[g * L + r], first + r * o->line_bytes + g * 4, 4);
  uint32_t piece[PIECE];
  for (size_t r = 0; r < p->rows; r++)
    for (size_t g = direct; g < n; g += PIECE) {
      const size_t m = n - g < PIECE ? n - g : PIECE;
      words_of(piece, o, row0 + r, g, m, plan->K);
      for (size_t i = 0; i < m; i++) words[(g + i) * L + r] = piece[i];
    }
  if (p->side == MXG_SIDE_B_SIGNED) spread(p, n);
}

/* Turns words of a row into signed bytes: a part of a block, or whole blocks of `groups` words. */
static void signed_words(uint32_t *out, int32_t *offset, const uint32_t *words, size_t groups, size_t n_blocks) {
#if defined(__x86_64__)
  mxi_gemm_pack_a_avx2(out, offset, words, groups, n_blocks);
#else
  (void)out, (void)offset, (void)words, (void)groups, (void)n_blocks;
#endif
}

void mxi_gemm_codes_fill_a(mxg_packed *p, const mxg_operand *o, const mxg_plan *plan, size_t row0) {
  uint32_t piece[PIECE];
  const size_t n = p->groups, at_once = n < PIECE ? PIECE / n : 1;
  p->rows = o->rows - row0 < L ? o->rows - row0 : L;
  fill_scales(p, o, row0, 0.25f, p->avx512);
  if (p->rows < L) {
    memset(p->words, 0, p->kb * n * L * 2 * sizeof *p->words);
    memset(p->offset, 0, p->kb * L * sizeof *p->offset);
  }
  for (size_t r = 0; r < p->rows; r++)
    for (size_t b = 0; b < p->kb; b += at_once) {
      uint32_t *words = p->words + (b * L + r) * n * 2;
      int32_t *offset = p->offset + b * L + r, sum = 0;
      if (n <= PIECE) {
        const size_t m = p->kb - b < at_once ? p->kb - b : at_once;
        words_of(piece, o, row0 + r, b * n, m * n, plan->K);
        signed_words(words, offset, piece, n, m);
        continue;
      }
      for (size_t g = 0; g < n; g += PIECE) {
        const size_t m = n - g < PIECE ? n - g : PIECE;
        words_of(piece, o, row0 + r, b * n + g, m, plan->K);
        signed_words(words + 2 * g, offset, piece, m, 1);
        sum += *offset;
      }
      *offset = sum;
    }
}

/* --- few rows of A --- */

int mxi_gemm_skinny_usable(const mxg_plan *plan, mxg_codes_kernel *kernel) {
  return plan->M <= L && kernel && !has_wide_scales(plan) && has_avx512(&plan->o.exec) && direct_words(&plan->b) &&
         (plan->block == 32 || plan->block == 16) && plan->K % (L * MXG_GROUP) == 0;
}

mx_status mxi_gemm_skinny_alloc(mxg_packed *a, mxg_packed b[2], size_t M) {
  a->few_rows = M > 8 ? 16 : M > 4 ? 8 : M > 2 ? 4 : 2;
  a->few = mxi_room_take(a->from, a->kb * a->few_rows * (2 + 2 * a->groups) * sizeof *a->few + 64);
  for (int p = 0; p < 2; p++) b[p].turns = mxi_room_take(b[p].from, (b[p].kb / 4 + 1) * L * sizeof *b[p].turns);
  return a->few && b[0].turns && b[1].turns ? MX_OK : MX_ERR_NOMEM;
}

void mxi_gemm_skinny_fill_a(mxg_packed *p) {
  const size_t R = p->few_rows, each = 2 * p->groups, record = R * (2 + each);
  uint32_t other = 0; /* not 0 if some scale is not a power of two */
  for (size_t b = 0; b < p->kb; b++) {
    uint32_t *to = p->few + b * record;
    memcpy(to, p->offset + b * L, R * sizeof *to);
    memcpy(to + R, p->s + b * L, R * sizeof *to);
    memcpy(to + 2 * R, p->words + b * L * each, R * each * sizeof *to);
    for (size_t r = 0; r < R; r++) other |= (to[R + r] & 0x807FFFFF) | (to[R + r] - 0x00800000 >= 0x7F000000);
  }
  p->powers = !other;
}

void mxi_gemm_skinny_fill_b(mxg_packed *p, const mxg_packed *a, const mxg_operand *o, size_t row0) {
  uint32_t least = UINT32_MAX, largest = 0;
  const uint8_t *first = scale_bytes(o, row0);
  p->rows = L;
  p->settled = p->turned = 0;
  set_table(p, o, 1);
  if (first && (p->codes.e8m0 ? a->powers && p->groups == 4 : p->codes.top))
    p->turned = turn_scales(p->turns, &least, &largest, first, o->scale_ld, p->kb, p->table, &p->codes);
  if (p->turned)
    set_range(p, o, least, largest);
  else
    fill_scales(p, o, row0, 1, p->avx512);
}

void mxi_gemm_skinny_numbers(mxg_packed *p, const mxg_operand *o, size_t row0) {
  if (p->turned) fill_scales(p, o, row0, 1, p->avx512);
}

/* The form is chosen again for each call: blocks of zeros in A may have been left out since a panel was checked, and a product may now be
 * too small to be computed as a sum of exponents. */
static mxg_scale_form form_of(const mxg_packed *a, mxg_packed *const b[2]) {
  if (!b[0]->turned || !b[1]->turned) return MXG_NUMBERS;
  if (!b[0]->codes.e8m0) return MXG_LINEAR;
  return a->powers && !mxi_gemm_codes_slow(a, b[0]) && !mxi_gemm_codes_slow(a, b[1]) ? MXG_POWERS : MXG_NUMBERS;
}

void mxi_gemm_skinny(float acc[2][L * L], const mxg_packed *a, mxg_packed *const b[2], const mxg_operand *o, const size_t row0[2]) {
  mxg_stream from = {.stride = o->line_bytes, .form = form_of(a, b), .codes = &b[0]->codes};
  from.scales_ahead = o->scale ? (const uint8_t *)((uintptr_t)o->scales + (o->scale_row0 + row0[1] + L) * o->scale_ld) : o->data;
  for (size_t p = 0; p < 2; p++) {
    if (from.form == MXG_NUMBERS) mxi_gemm_skinny_numbers(b[p], o, row0[p]);
    from.first[p] = o->data + row0[p] * o->line_bytes;
    from.ahead[p] = row0[p] + 3 * L <= o->rows ? from.first[p] + 2 * L * o->line_bytes : from.first[p];
    from.turns[p] = b[p]->turns;
    from.s[p] = b[p]->s;
  }
  skinny_kernel(acc[0], a, &from);
}
