/* Finds the preset that is nearest to an answer. */
#include "verify/identify/near.h"

#include <string.h>

#include "verify/trial/keys.h"

/* A preset that differs in more keys is not near. Two or three keys are changed at once only if it differs in at most MOST_PAIRS of them: the
 * number of choices grows with the cube, and each choice runs over all the data. */
enum { MOST_KEYS = 24, MOST_PAIRS = 14, MOST_CHANGED = 3 };

static size_t differing(size_t out[MOST_KEYS], const mx_spec *a, const mx_spec *b) {
  size_t n = 0;
  for (size_t i = 0; mx_key_name(i); i++)
    if (!mxi_key_same(a, b, i)) {
      if (n == MOST_KEYS) return MOST_KEYS + 1;
      out[n++] = i;
    }
  return n;
}

static int gives_all(inquiry *q, const mx_spec *t, int (*as_good)(inquiry *, const mx_spec *)) {
  return !mx_spec_check(t, NULL) && as_good(q, t);
}

/* Finds p with `count` keys of spec (0 to 3) that gives every byte. */
static int mend(mx_spec *out, inquiry *q, const mx_spec *p, int count, int (*as_good)(inquiry *, const mx_spec *)) {
  const mx_spec *spec = &q->best.spec;
  size_t keys[MOST_KEYS], at[3] = {0, 1, 2};
  const size_t n = differing(keys, p, spec), c = (size_t)count;
  if (n > MOST_KEYS || n < c || (count > 1 && n > MOST_PAIRS)) return 0;
  for (;;) { /* every choice of c of the n keys */
    mx_spec t = *p;
    for (size_t i = 0; i < c; i++) mxi_key_copy(&t, spec, keys[at[i]]);
    if (gives_all(q, &t, as_good)) {
      *out = t;
      return 1;
    }
    size_t i = c;
    while (i && at[i - 1] == n - c + i - 1) i--;
    if (!i || deadline_over(q->s.budget->until)) return 0;
    at[i - 1]++;
    for (; i < c; i++) at[i] = at[i - 1] + 1;
  }
}

/* A maximum that is rounded up to a power of two gives what half of the number, rounded down, gives, but for maxima that are powers of two. Where the
 * data have none, the rule of a preset that rounds down, as OCP's does, is the likelier: someone took another number for the element's exponent. */
static int mend_down(mx_spec *out, inquiry *q, const mx_spec *p, int (*as_good)(inquiry *, const mx_spec *)) {
  const mx_spec *spec = &q->best.spec;
  mx_spec t = *p;
  if (p->scale_rule != MX_SCALE_RULE_FLOOR || spec->scale_rule != MX_SCALE_RULE_VALUE || spec->scale_round != MX_SCALE_ROUND_UP ||
      spec->scale_max != MX_SCALE_MAX_NUMBER)
    return 0;
  t.scale_rule = MX_SCALE_RULE_VALUE;
  t.scale_round = MX_SCALE_ROUND_DOWN;
  t.scale_max = MX_SCALE_MAX_NUMBER;
  t.scale_max_n = spec->scale_max_n / 2;
  if (!gives_all(q, &t, as_good)) return 0;
  *out = t;
  return 1;
}

/* The block follows from the shapes. Trials run in that of the inquiry, so a preset must have it or is changed to it. */
static int same_block(const inquiry *q, const mx_spec *p) {
  const mx_sample *s = &q->o.samples[0];
  size_t rows, cols;
  mx_spec_block(p, s->rows, s->cols, &rows, &cols);
  return rows == q->o.block_rows && cols == q->o.block_cols;
}

/* Names that people know come first: of chains that give the same bytes here the plain one is likeliest. */
static int is_known(const mx_preset *row) { return row->status == MX_PRESET_STANDARD || !strcmp(row->name, "te-nvfp4"); }

const char *mxi_near_preset(inquiry *q, int (*as_good)(inquiry *q, const mx_spec *t)) {
  const mx_spec *spec = &q->best.spec;
  for (int keys = 1; keys <= MOST_CHANGED; keys++) /* the block is one of them */
    for (int other_block = 0; other_block < 2; other_block++)
      for (size_t k = 0; k < 2 * mx_preset_count() && !deadline_over(q->s.budget->until); k++) {
        const mx_preset *row = mx_preset_at(k % mx_preset_count());
        mx_spec p, t;
        const int count = keys - other_block;
        if (row->alias_of || is_known(row) != (k < mx_preset_count()) || mx_preset_find(&p, row->name, NULL)) continue;
        if (p.elem != spec->elem || p.scale != spec->scale || p.input_dtype != spec->input_dtype ||
            (p.had_size && p.had_size != spec->had_size))
          continue;
        const int given = same_block(q, &p) && p.had_size == spec->had_size; /* so are the rotation's size and signs */
        if (given == other_block || (count > 2 && p.tensor_norm != spec->tensor_norm)) continue;
        p.block_rows = spec->block_rows;
        p.block_cols = spec->block_cols;
        p.had_size = spec->had_size;
        p.had_sign = spec->had_sign;
        memcpy(p.had_signs, spec->had_signs, sizeof p.had_signs);
        if (!mend(&t, q, &p, count, as_good) && (count != 1 || !is_known(row) || !mend_down(&t, q, &p, as_good))) continue;
        q->best.spec = t;
        return row->name;
      }
  return NULL;
}
