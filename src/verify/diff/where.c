/* Says where the differences are: blocks, rows, columns, tiles, every n-th. A place is named only if chance does not explain it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "verify/diff/diff.h"

enum { TEXT = 160 };

/* A range of rows or columns is named only if it is at most one in so many of them; nearly all of them are not a place. */
enum { PART_ONE_IN = 2 };
/* Positions in the block are named only if each stands for more than so many columns; otherwise it is the columns that differ. */
enum { COLUMNS_EACH = 2 };

/* There are fewer blocks than elements, and fewer questions are asked about them. */
static int blocks_tell(double p, double n) { return p < 1 && n > 0 && n * log(p) < log(DIFF_BY_CHANCE); }

void mxi_diff_place_row(diff_place *p, size_t row) {
  if (p->n_rows && p->row[1] == row) return;
  if (!p->n_rows) p->row[0] = row;
  if (p->n_rows < DIFF_FEW) p->few[p->n_rows] = row;
  p->n_rows++;
  p->row_bits |= row ^ p->row[0];
  p->row[1] = row;
}

void mxi_diff_place_add(diff_place *p, size_t col, uint32_t n) {
  if (!p->n || col < p->span[0]) p->span[0] = col;
  if (!p->n || col > p->span[1]) p->span[1] = col;
  p->n += n;
  p->col[p->n_col == p->cols ? col : col & (p->n_col - 1)] += n;
}

/* Numbers that occur, the first few of them. */
typedef struct few {
  size_t n, first[DIFF_FEW];
} few;

static void take(few *f, size_t x) {
  for (size_t i = 0; i < f->n && i < DIFF_FEW; i++)
    if (f->first[i] == x) return;
  if (f->n < DIFF_FEW) f->first[f->n] = x;
  f->n++;
}

static int adjacent(const few *f) {
  for (size_t i = 1; i < f->n && i < DIFF_FEW; i++)
    if (f->first[i] != f->first[i - 1] + 1) return 0;
  return 1;
}

/* "3, 7 and 20" */
static const char *listed(char text[TEXT], const few *f) {
  size_t at = 0;
  for (size_t i = 0; i < f->n; i++) at += (size_t)snprintf(text + at, TEXT - at, "%s%zu", !i ? "" : i + 1 < f->n ? ", " : " and ", f->first[i]);
  return text;
}

/* What is known of the columns with cells that differ: the columns themselves, their block columns, and their positions in the block. */
typedef struct columns {
  few col, block, position;
  size_t bits, n_blocks;
  int whole; /* every column has a count of its own */
} columns;

static void count_columns(columns *c, const diff_place *p, size_t width) {
  memset(c, 0, sizeof *c);
  c->whole = p->n_col == p->cols;
  c->n_blocks = (p->cols + width - 1) / width;
  const int placed = c->whole || DIFF_COLUMNS % width == 0;
  size_t last = SIZE_MAX;
  for (size_t i = 0; i < p->n_col; i++) {
    if (!p->col[i]) continue;
    if (c->col.n < DIFF_FEW) c->col.first[c->col.n] = i;
    c->bits |= i ^ c->col.first[0];
    c->col.n++;
    if (i / width != last) { /* ascending: each block column once */
      last = i / width;
      if (c->block.n < DIFF_FEW) c->block.first[c->block.n] = last;
      c->block.n++;
    }
    if (placed && c->position.n <= DIFF_FEW) take(&c->position, i % width);
  }
  if (!placed) c->position.n = SIZE_MAX;
}

/* Do all lines that are hit belong to one residue class modulo a step by chance, or is it the whole class? */
static int every(size_t step, size_t first, size_t lines, size_t hit, uint64_t n) {
  const size_t of_class = (lines - first % step + step - 1) / step;
  return hit > 1 && step < lines && mxi_diff_telling(1 / (double)step, (double)n - 1) &&
         (hit == of_class || mxi_diff_telling(1 / (double)step, (double)hit - 1));
}

static const size_t steps[] = {64, 32, 16, 8, 4, 2};

/* Returns the coarsest step whose residue class holds all lines, or 0; the bits in which the lines differ give it. */
static size_t step_of(size_t bits, size_t first, size_t lines, size_t hit, uint64_t n) {
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
    if (!(bits & (steps[i] - 1))) return every(steps[i], first, lines, hit, n) ? steps[i] : 0;
  return 0;
}

static void say_step(diff_job *j, const char *who, const char *line, size_t step, size_t first) {
  if (step == 2)
    mxi_diff_say(j, "%s at %s %ss", who, first % 2 ? "odd" : "even", line);
  else
    mxi_diff_say(j, "%s at every %zu%s %s (from %s %zu)", who, step, step == 32 ? "nd" : "th", line, line, first % step);
}

/* Which part of the rows or columns: "rows 16 to 31", or nothing for more than half of them. */
static int part_of(char text[TEXT], const char *line, size_t first, size_t last, size_t n) {
  *text = 0;
  if ((last - first + 1) * PART_ONE_IN > n) return 0;
  if (first == last)
    snprintf(text, TEXT, "%s %zu", line, first);
  else
    snprintf(text, TEXT, "%ss %zu to %zu", line, first, last);
  return 1;
}

static int power_of_two(size_t n) { return n && !(n & (n - 1)); }

static void say_box(diff_job *j, const diff_place *p, double n, const char *who, const char *row, const char *column, int rows_too,
                    int cols_too) {
  char rows[TEXT] = "", cols[TEXT] = "";
  const size_t h = p->row[1] - p->row[0] + 1, w = p->span[1] - p->span[0] + 1;
  const int in_rows = rows_too && part_of(rows, row, p->row[0], p->row[1], p->rows),
            in_cols = cols_too && part_of(cols, column, p->span[0], p->span[1], p->cols);
  const double share = (in_rows ? (double)h / (double)p->rows : 1) * (in_cols ? (double)w / (double)p->cols : 1);
  if ((!in_rows && !in_cols) || !blocks_tell(share, n - 2 * in_rows - 2 * in_cols)) return;
  const int tile = in_rows && in_cols && h > 1 && w > 1 && power_of_two(h) && power_of_two(w) && p->row[0] % h == 0 && p->span[0] % w == 0;
  char of[64] = "";
  if (tile) snprintf(of, sizeof of, " (a tile of %zu x %zu)", h, w);
  mxi_diff_say(j, "%s in %s%s%s%s", who, rows, in_rows && in_cols ? ", " : "", cols, of);
}

/* One block alone. */
static int one_block(diff_job *j, const diff_place *p, const columns *c, size_t width) {
  const size_t block = c->block.first[0], first = block * width, end = first + width < p->cols ? first + width : p->cols,
               r0 = p->row[0] / j->block_rows * j->block_rows;
  const double blocks = (double)c->n_blocks * (double)((p->rows + j->block_rows - 1) / j->block_rows);
  if (!mxi_diff_telling(1 / blocks, (double)p->n - 1)) return 0;
  char rows[64];
  if (j->block_rows == 1)
    snprintf(rows, sizeof rows, "row %zu", r0);
  else
    snprintf(rows, sizeof rows, "rows %zu to %zu", r0, (r0 + j->block_rows < p->rows ? r0 + j->block_rows : p->rows) - 1);
  mxi_diff_say(j, "all in one block (%s, columns %zu to %zu%s)", rows, first, end - 1, end == p->cols ? ", the last of its row" : "");
  return 1;
}

/* Block columns, columns, positions. Returns 1 where the range of columns goes without saying. */
static int say_columns(diff_job *j, const diff_place *p, const columns *c, double blocks, const char *who, size_t width, int scales) {
  char text[TEXT];
  const double n = (double)p->n;
  const size_t C = c->col.n, K = c->block.n, Q = c->position.n, one = c->col.first[0], last = c->n_blocks - 1, at = c->block.first[0];
  if (c->whole && C == 1 && !scales) {
    if (mxi_diff_telling(1 / (double)p->cols, n - 1)) mxi_diff_say(j, "%s in one column (column %zu)", who, one);
    return 1;
  }
  if (c->whole && K == 1 && c->n_blocks > 1) {
    const size_t end = (at + 1) * width < p->cols ? (at + 1) * width : p->cols, cut = j->a->cols % j->block_cols;
    const double share = (double)(end - at * width) / (double)p->cols;
    const size_t from = scales ? at * j->block_cols : at * width, to = scales ? from + j->block_cols : end;
    if (at == last && cut && !scales && blocks_tell(share, blocks))
      mxi_diff_say(j, "all in the last, short block of a row: see whether other elements than its own are read there, or not all of its own");
    else if (at == last && blocks_tell(share, blocks))
      mxi_diff_say(j, "%s in the last block of a row", who);
    else if (at != last && blocks_tell(share, blocks - 1))
      mxi_diff_say(j, "%s in block column %zu (columns %zu to %zu)", who, at, from, (to < j->a->cols ? to : j->a->cols) - 1);
  }
  const int one_place = Q == 1 && width > 1 && C > 1 && every(width, one, p->cols, C, p->n) && !scales;
  if (one_place) {
    const size_t q = c->position.first[0];
    if (q == 0)
      mxi_diff_say(j, "all at the first element of a block");
    else if (q == width - 1)
      mxi_diff_say(j, "all at the last element of a block");
    else
      mxi_diff_say(j, "all at one position in the block (%zu)", q);
  }
  const size_t step = C > 1 ? step_of(c->bits, one, p->cols, C, p->n) : 0;
  if (step && !(one_place && step <= width)) say_step(j, who, scales ? "block column" : "column", step, one);
  if (K == 1) return 1;
  if (!step && !one_place && !scales && Q > 1 && Q * DIFF_SPARSE_ONE_IN <= width && Q <= DIFF_FEW && C > COLUMNS_EACH * Q &&
      mxi_diff_telling((double)Q / (double)width, n - (double)Q) &&
      (C == Q * c->n_blocks || mxi_diff_telling((double)Q / (double)width, (double)C - (double)Q)))
    mxi_diff_say(j, "all at positions %s in the block", listed(text, &c->position));
  if (!c->whole || step || one_place) return 0;
  const size_t m = scales || C <= K ? C : K;
  const few *f = scales || C <= K ? &c->col : &c->block;
  const double lines = scales || C <= K ? (double)p->cols : (double)c->n_blocks;
  if (m <= DIFF_FEW && (double)m * DIFF_SPARSE_ONE_IN <= lines && !adjacent(f) && blocks_tell((double)m / lines, blocks - (double)m)) {
    mxi_diff_say(j, "%s in %s %s", who, !scales && C <= K ? "columns" : "block columns", listed(text, f));
    return 1;
  }
  return 0;
}

static int say_rows(diff_job *j, const diff_place *p, double n, const char *who, const char *line) {
  char text[TEXT];
  const double rows = (double)p->rows;
  const size_t R = p->n_rows;
  if (R == 1) {
    if (p->row[0] + 1 == p->rows && blocks_tell(1 / rows, n))
      mxi_diff_say(j, "%s in the last %s", who, line);
    else if (blocks_tell(1 / rows, n - 1))
      mxi_diff_say(j, "%s in one %s (%s %zu)", who, line, line, p->row[0]);
    return 1;
  }
  const size_t step = step_of(p->row_bits, p->row[0], p->rows, R, (uint64_t)n);
  if (step) say_step(j, who, line, step, p->row[0]);
  few f = {.n = R};
  memcpy(f.first, p->few, sizeof f.first);
  if (step || R > DIFF_FEW || (double)R * DIFF_SPARSE_ONE_IN > rows || adjacent(&f) || !blocks_tell((double)R / rows, n - (double)R)) return 0;
  mxi_diff_say(j, "%s in %ss %s", who, line, listed(text, &f));
  return 1;
}

void mxi_diff_where(diff_job *j, const diff_place *p, uint64_t units, int scales) {
  const char *who = scales ? "every scale that differs is" : "all", *row = scales && p->rows != j->a->rows ? "block row" : "row",
             *column = scales ? "block column" : "column";
  const size_t width = scales ? 1 : j->block_cols;
  columns c;
  if (p->n < 2) return;
  count_columns(&c, p, width);
  if (units == 1 && !scales && c.whole && one_block(j, p, &c, width)) return;
  /* Elements of one block go wrong together, so a place is supported by as many observations as there are blocks, not elements. */
  const double blocks = (double)(scales || units > p->n ? p->n : units);
  const int columns_said = say_columns(j, p, &c, blocks, who, width, scales), rows_said = say_rows(j, p, blocks, who, row);
  say_box(j, p, blocks, who, row, column, !rows_said, !columns_said);
}
