/* Gives the parameters of a model as keys that can be moved one at a time. */
#include <stdio.h>
#include <string.h>

#include "verify/probe/fit.h"

const probe_key mxi_probe_keys[] = {
#define MX_ACCUM_INT(field, ...) {#field, offsetof(probe_guess, x.field), 1},
#define MX_ACCUM_ENUM(field, doc) {#field, offsetof(probe_guess, x.field), 0},
#include "formats/accumulation_keys.def"
    {"k", offsetof(probe_guess, k), 1},
};
const size_t mxi_probe_n_keys = sizeof mxi_probe_keys / sizeof *mxi_probe_keys;

typedef struct value_row {
  const char *key, *text;
  int number;
} value_row;

static const value_row values_table[] = {
#define MX_ACCUM_VALUE(field, id, number, text, doc) {#field, text, number},
#include "formats/accumulation_keys.def"
};
enum { N_VALUES = sizeof values_table / sizeof *values_table };

typedef struct none_row {
  const char *key, *text;
  int number;
} none_row;
static const none_row nones[] = {
#define MX_ACCUM_INT(field, min, max, none, none_text, doc) {#field, none_text, none},
#include "formats/accumulation_keys.def"
    {"k", "K", 0},
};

int *mxi_probe_field(probe_guess *g, size_t key) { return (int *)((char *)g + mxi_probe_keys[key].offset); }
int mxi_probe_field_value(const probe_guess *g, size_t key) { return *(const int *)((const char *)g + mxi_probe_keys[key].offset); }

size_t mxi_probe_key_find(const char *name) {
  for (size_t i = 0; i < mxi_probe_n_keys; i++)
    if (!strcmp(mxi_probe_keys[i].name, name)) return i;
  return SIZE_MAX;
}

int mxi_probe_number(int value) { return value == MX_ACC_NUMBER_0 ? 0 : value; }
int mxi_probe_value(int number) { return number ? number : MX_ACC_NUMBER_0; }

void mxi_probe_value_text(char *text, size_t size, size_t key, int value) {
  snprintf(text, size, "%d", mxi_probe_number(value));
  for (size_t i = 0; i < sizeof nones / sizeof *nones; i++)
    if (!strcmp(nones[i].key, mxi_probe_keys[key].name) && nones[i].number == value && *nones[i].text)
      snprintf(text, size, "%s", nones[i].text);
  for (int i = 0; i < N_VALUES; i++)
    if (!strcmp(values_table[i].key, mxi_probe_keys[key].name) && values_table[i].number == value)
      snprintf(text, size, "%s", values_table[i].text);
}

/* Values that are tried. Coarser or fewer ones would miss a unit's own; finer or more make every sweep over a key longer. c_drop beyond
 * PROBE_FINE_DROP is tried in steps up to where no type reaches; floor from below every sum, where nothing shows, to above all of them, where nothing
 * is left; groups of every length if K is at most EVERY_LENGTH. */
enum {
  COARSE_DROP = 64,
  COARSE_STEP = 4,
  RARE_DROP = 300,
  RARE_STEP = 100,
  MOST_DROP = 1000,
  LEAST_FLOOR = -330,
  MOST_FLOOR = 170,
  EVERY_LENGTH = 64
};

static size_t range(int *values, int lo, int hi) {
  size_t n = 0;
  for (int v = lo; v <= hi && n < PROBE_MAX_VALUES; v++) values[n++] = v;
  return n;
}

/* The values of a key that may be none (0), with 0 as a number besides. */
static size_t range_or_none(int *values, int lo, int hi) {
  size_t n = 0;
  values[n++] = 0;
  for (int v = lo; v <= hi && n < PROBE_MAX_VALUES; v++) values[n++] = mxi_probe_value(v);
  return n;
}

/* Group lengths: all of them where K is small; else powers of two and divisors. 0 stands for K. */
static size_t lengths(int *values, int K, int divisors_only) {
  size_t n = 0;
  values[n++] = 0;
  for (int v = 1; v < K && n < PROBE_MAX_VALUES; v++)
    if (K % v == 0 || (!divisors_only && (K <= EVERY_LENGTH || !(v & (v - 1))))) values[n++] = v;
  return n;
}

size_t mxi_probe_values(int *values, size_t key, const mx_probe_spec *s) {
  const char *name = mxi_probe_keys[key].name;
  const int K = (int)s->K;
  size_t n = 0;
  if (!strcmp(name, "L")) return lengths(values, K, 0);
  if (!strcmp(name, "P") || !strcmp(name, "k")) return lengths(values, K, 1);
  if (!strcmp(name, "F")) return range(values, -1, PROBE_MOST_BITS);
  if (!strcmp(name, "sum_bits") || !strcmp(name, "c_bits")) return range(values, 0, PROBE_MOST_BITS);
  if (!strcmp(name, "out_bits")) return range_or_none(values, 0, s->d->man_bits - 1);
  if (!strcmp(name, "c_drop")) {
    n = range_or_none(values, 0, PROBE_FINE_DROP);
    for (int v = COARSE_DROP; v <= MOST_DROP && n < PROBE_MAX_VALUES; v += v < RARE_DROP ? COARSE_STEP : RARE_STEP) values[n++] = v;
    return n;
  }
  if (!strcmp(name, "floor")) {
    /* below every sum nothing shows; above all of them nothing is left */
    return range_or_none(values, LEAST_FLOOR, MOST_FLOOR);
  }
  for (int i = 0; i < N_VALUES; i++)
    if (!strcmp(values_table[i].key, name)) values[n++] = values_table[i].number;
  return n;
}

/* Sets what the other keys must be for the model to be valid. */
static void repair(probe_guess *g, const mx_probe_spec *s) {
  mx_accum *x = &g->x;
  if (x->join != MX_ACC_JOIN_AFTER) {
    x->sum_bits = x->c_bits = x->c_drop = 0;
    x->split = MX_ACC_SPLIT_NONE;
    x->join_cut = MX_ACC_CUT_RD;
  } else {
    if (x->F < 0) x->F = PROBE_USUAL_BITS;
    if (!x->sum_bits) x->sum_bits = x->F + PROBE_CARRY_BITS > PROBE_MOST_BITS ? PROBE_MOST_BITS : x->F + PROBE_CARRY_BITS;
    if (!x->c_bits) x->c_bits = x->F ? x->F : PROBE_USUAL_BITS;
  }
  if (x->P && x->L && x->L % x->P) x->P = 0;
  if (g->k && x->L && g->k % x->L) g->k = 0;
  (void)s;
}

int mxi_probe_set(probe_guess *g, size_t key, int value, const mx_probe_spec *s) {
  const char *name = mxi_probe_keys[key].name;
  mx_accum *x = &g->x;
  *mxi_probe_field(g, key) = value;
  if (!strcmp(name, "split") && value) {
    x->join = MX_ACC_JOIN_AFTER;
    x->P = 0;
  }
  if (!strcmp(name, "P") && value) {
    x->split = x->order = 0;
    if (x->L && x->L % value) x->L = value;
  }
  if (!strcmp(name, "order") && value) x->P = 0;
  if (!strcmp(name, "F") && value < 0 && x->join == MX_ACC_JOIN_AFTER) return 0;
  if ((!strcmp(name, "sum_bits") || !strcmp(name, "c_bits")) && (x->join != MX_ACC_JOIN_AFTER || !value)) return 0;
  if (!strcmp(name, "c_drop") && value && x->join != MX_ACC_JOIN_AFTER) return 0;
  if (!strcmp(name, "join_cut") && value && x->join != MX_ACC_JOIN_AFTER) return 0;
  if (!strcmp(name, "k") && value && x->L && value % x->L) return 0;
  repair(g, s);
  return mxi_probe_valid(s, g);
}
