/* Computes select=foursix with a block in each lane: the codes and errors of both candidates, of which the better one is kept. Part of
 * stages.inc.h. SPEC 3.6. */

/* Loads sixteen columns of W blocks of a piece from column c on, each column into a vector. The last block stands in for blocks that do not
 * exist. */
INLINE void sixteen_columns(vf t[16], const mx_piece *p, size_t first, size_t c) {
  for (size_t k = 0; k < 16; k += W) {
    for (size_t i = 0; i < W; i++) {
      const size_t b = first + i < p->n_blocks ? first + i : p->n_blocks - 1;
      t[k + i] = vf_load(p->x + b * p->block + c + k);
    }
    vf_transpose(t + k);
  }
}

/* The reverse: stores sixteen numbers below 256 of each block as bytes. */
INLINE void store_columns(uint8_t *out, vf t[16], size_t n_blocks, size_t block, size_t first, size_t c) {
  for (size_t k = 0; k < 16; k += W) vf_transpose(t + k);
  for (size_t i = 0; i < W && first + i < n_blocks; i++) {
    vi row[STEP];
    for (size_t k = 0; k < STEP; k++) row[k] = vf_bits(t[k * W + i]);
    vi_store16(out + (first + i) * block + c, row);
  }
}

/* The value that a code means before wrap_negzero wraps it: e2m1 with further exponents. far: y may lie beyond 8. */
INLINE vf six_value(vf y, const mx_stage_encode *e, const int way, const int far) {
  const vi a = vi_min(magnitude_of(y), vi_set(e->big)), sign = vi_and(vf_bits(y), vi_set(INT32_MIN));
  vi m = way == MX_WAY_NEAREST ? nearest(a, e) : biased(a, sign, e);
  if (e->f32_tie >= 0) m = vi_blend(vi_eq(a, vi_set(e->f32_tie - 1)), vi_set(1), m);
  m = vi_min(m, vi_set(e->over_code == e->max_code ? e->max_code : e->max_code + 1));
  vi bits = vi_add(vi_sll(m, 22), vi_set(126 << 23)); /* exponent m / 2, mantissa m % 2 */
  bits = vi_blend(vi_gt(vi_set(2), m), vf_bits(vf_mul(vi_convert(m), vf_set(0.5f))), bits);
  if (far && e->wrap) {
    const vf grid = vf_set(e->wrap_grid), past = vi_float(magnitude_of(y));
    const vf on = vf_blend(vf_lt(past, grid), vf_sub(vf_add(past, grid), grid), past);
    bits = vi_blend(vf_lt(vf_set(8), on), vf_bits(on), bits);
  }
  return vi_float(vi_or(bits, sign));
}

/* The value of an e2m1 code. */
INLINE vf six_decoded(vi code, const mx_stage_encode *e) {
  return vi_float(vi_or(vf_bits(magnitude_value(vi_and(code, vi_set(7)), e)), vi_sll(vi_and(code, vi_set(8)), 28)));
}

/* The scaled value, computed as in scale_by(). */
INLINE vf six_scaled(vf x, const mx_stages *f, vf f0, vf f1) {
  vf y = f->pre != 0 ? vf_mul(x, vf_set(f->pre)) : x;
  if (f->form != MX_FORM_EXACT)
    y = scaled(y, f0, f1, f->form);
  else if (f->nearest)
    y = vf_quotient_by(y, f->exact_times, f->exact_over, f0, 0, 1);
  else
    y = vf_quotient_by(y, f->exact_times, f->exact_over, f0, 0, 0);
  if (f->elem.sticky) y = unflushed(y, x);
  return f->dtype != MX_INPUT_DTYPE_FLOAT32 ? to_dtype(y, f->dtype) : y;
}

typedef struct six_sum {
  vf all, lanes[8];
} six_sum;

INLINE void six_count(six_sum *s, const mx_spec *how, size_t i, vf d) {
  const vf e = how->select_error == MX_SELECT_ERROR_MSE ? vf_mul(d, d) : vi_float(magnitude_of(d));
  if (how->select_error == MX_SELECT_ERROR_ABSMAX)
    s->all = vf_blend(vf_eq(e, e), vf_max(e, s->all), e); /* a NaN, from 0 * Inf under scale_first, is kept */
  else if (how->select_sum == MX_SELECT_SUM_TORCH16)
    s->lanes[i % 8] = i < 8 ? e : vf_add(s->lanes[i % 8], e);
  else
    s->all = vf_add(s->all, e);
}

INLINE vf six_total(const six_sum *s, const mx_spec *how) {
  if (how->select_error == MX_SELECT_ERROR_ABSMAX || how->select_sum == MX_SELECT_SUM_SEQUENTIAL) return s->all;
  vf sum = s->lanes[0];
  for (int i = 1; i < 8; i++) sum = vf_add(sum, s->lanes[i]);
  return sum;
}

/* The codes of W blocks under one candidate, and its error. SIX_PLAIN: x times factors, without wrapping, encoded once; SIX_WRAPS: the same
 * with wrapping. */
enum { SIX_ANY, SIX_PLAIN, SIX_WRAPS };
INLINE vf six_candidate(vi *codes, const mx_stages *f, const mx_piece *p, const vf *x, size_t first, const int way, const int form,
                        const int plainly) {
  const int wraps = plainly != SIX_PLAIN;
  const mx_plan *plan = f->plan;
  mx_stage_encode e = f->elem;
  if (wraps && f->wrap_far) e.wrap = f->wrap_far;
  const vf f0 = vf_load(p->f0 + first), f1 = (plainly ? form : f->form) == MX_FORM_DIV_MUL ? vf_load(p->f1 + first) : f0,
           stored = vf_load(p->sf + first);
  const vf a = vf_set(plan->vars[MX_VAR_A]), k = vf_set((float)plan->target);
  const int tensor = plan->uses_chain && plan->has_tensor_scale;
  const int steps = !plan->uses_chain && plan->has_tensor_scale && plan->spec.deq_arith != MX_DEQ_ARITH_EXACT;
  const int two = steps && plan->spec.deq_arith == MX_DEQ_ARITH_TWO_STEP;
  const vf m = vf_set(steps ? (float)mxi_quotient_to_odd(plan->g, plan->norm) : 1);
  const vf sf = steps && !two ? vf_mul(stored, m) : stored;
  six_sum sum = {.all = vf_set(0)};
  for (size_t i = 0; i < p->block; i++) {
    const vf y = plainly ? scaled(x[i], f0, f1, form) : six_scaled(x[i], f, f0, f1);
    codes[i] = code_of(y, vi_set(0), &e, way);
    vf v;
    if (!plainly && f->again) {
      v = six_decoded(codes[i], &e);
      for (int g = 0; g < plan->chain->again.n; g++)
        v = plan->chain->again.op[g] == '*' ? vf_mul(v, vf_load(p->again[g] + first)) : vf_div(v, vf_load(p->again[g] + first));
      codes[i] = code_of(v, vi_set(0), &e, way);
      v = six_decoded(codes[i], &e);
    } else
      v = six_value(y, &e, way, wraps);
    v = !plainly && !plan->uses_chain && !steps ? vf_quotient_by(v, plan->g, plan->norm, sf, 1, 1) : vf_mul(v, sf);
    if (two) v = vf_mul(v, m);
    if (tensor) v = vf_div(vf_mul(v, a), k);
    six_count(&sum, &plan->spec, i, vf_sub(v, x[i]));
  }
  return six_total(&sum, &plan->spec);
}

INLINE void foursix_by(uint8_t *out, const mx_stages *f, mx_piece *six, const mx_piece *four, const int way, const int form,
                       const int plainly) {
  vf x[MX_SIX_BLOCK], kept[16];
  vi codes[2][MX_SIX_BLOCK];
  for (size_t b = 0; b < six->n_blocks; b += W) {
    for (size_t c = 0; c < six->block; c += 16) sixteen_columns(x + c, six, b, c);
    const vf error = six_candidate(codes[0], f, six, x, b, way, form, plainly),
             other = six_candidate(codes[1], f, four, x, b, way, form, plainly);
    const vm wins = vf_lt(other, error);
    for (size_t c = 0; c < six->block; c += 16) {
      for (size_t i = 0; i < 16; i++) kept[i] = vi_float(vi_blend(wins, codes[1][c + i], codes[0][c + i]));
      store_columns(out, kept, six->n_blocks, six->block, b, c);
    }
    int32_t chosen[W];
    vi_store(chosen, vi_blend(wins, vi_set(1), vi_set(0)));
    for (size_t i = 0; i < W && b + i < six->n_blocks; i++) {
      if (!chosen[i]) continue;
      six->code[b + i] = four->code[b + i];
      six->wide[b + i] = four->wide[b + i];
    }
  }
}

static void foursix(uint8_t *out, const mx_stages *f, mx_piece *six, const mx_piece *four) {
  const int plain = f->plan->uses_chain || (f->plan->norm == 1 && f->plan->g == 1);
  const int factors = plain && f->form != MX_FORM_EXACT && f->pre == 0 && f->dtype == MX_INPUT_DTYPE_FLOAT32 && !f->elem.sticky && !f->again;
  const int wraps = f->wrap_far || f->elem.wrap;
  if (!factors && f->elem.way == MX_WAY_BIASED)
    foursix_by(out, f, six, four, MX_WAY_BIASED, 0, SIX_ANY);
  else if (!factors)
    foursix_by(out, f, six, four, MX_WAY_NEAREST, 0, SIX_ANY);
  else if (wraps && f->elem.way == MX_WAY_BIASED)
    foursix_by(out, f, six, four, MX_WAY_BIASED, f->form, SIX_WRAPS);
  else if (wraps)
    foursix_by(out, f, six, four, MX_WAY_NEAREST, f->form, SIX_WRAPS);
  else if (f->elem.way == MX_WAY_BIASED && f->form == MX_FORM_MUL)
    foursix_by(out, f, six, four, MX_WAY_BIASED, MX_FORM_MUL, SIX_PLAIN);
  else if (f->elem.way == MX_WAY_BIASED)
    foursix_by(out, f, six, four, MX_WAY_BIASED, f->form, SIX_PLAIN);
  else if (f->form == MX_FORM_MUL)
    foursix_by(out, f, six, four, MX_WAY_NEAREST, MX_FORM_MUL, SIX_PLAIN);
  else
    foursix_by(out, f, six, four, MX_WAY_NEAREST, f->form, SIX_PLAIN);
}
