/* Part of stages.inc.h. select=foursix with one block a lane: both candidates' codes and errors, the better one kept. SPEC 3.6. */

/* W blocks of a piece, sixteen columns of each from c on, with a column a vector. The last block stands for those that are not there. */
INLINE void sixteen_columns(vf t[16], const mx_piece *p, size_t first, size_t c) {
  for (size_t k = 0; k < 16; k += W) {
    for (size_t i = 0; i < W; i++) {
      const size_t b = first + i < p->n_blocks ? first + i : p->n_blocks - 1;
      t[k + i] = vf_load(p->x + b * p->block + c + k);
    }
    vf_transpose(t + k);
  }
}

/* The other way: sixteen numbers below 256 of each block to bytes. */
INLINE void store_columns(uint8_t *out, vf t[16], size_t n_blocks, size_t block, size_t first, size_t c) {
  for (size_t k = 0; k < 16; k += W) vf_transpose(t + k);
  for (size_t i = 0; i < W && first + i < n_blocks; i++) {
    vi row[STEP];
    for (size_t k = 0; k < STEP; k++) row[k] = vf_bits(t[k * W + i]);
    vi_store16(out + (first + i) * block + c, row);
  }
}

/* What a code is meant to be worth, before wrap_negzero wraps it: e2m1 without end. */
INLINE vf six_value(vf y, const mx_stage_encode *e, const int way) {
  const vi a = vi_min(magnitude_of(y), vi_set(e->big)), sign = vi_and(vf_bits(y), vi_set(INT32_MIN));
  vi m = way == MX_WAY_NEAREST ? nearest(a, e) : biased(a, sign, e);
  if (e->f32_tie >= 0) m = vi_blend(vi_eq(a, vi_set(e->f32_tie - 1)), vi_set(1), m);
  m = vi_min(m, vi_set(e->over_code == e->max_code ? e->max_code : e->max_code + 1));
  vi bits = vi_add(vi_sll(m, 22), vi_set(126 << 23)); /* exponent m / 2, mantissa m % 2 */
  bits = vi_blend(vi_gt(vi_set(2), m), vf_bits(vf_mul(vi_convert(m), vf_set(0.5f))), bits);
  return vi_float(vi_or(bits, sign));
}

typedef struct six_sum {
  vf all, lanes[8];
} six_sum;

INLINE void six_count(six_sum *s, const mx_spec *how, size_t i, vf d) {
  const vf e = how->select_error == MX_SELECT_ERROR_MSE ? vf_mul(d, d) : vi_float(magnitude_of(d));
  if (how->select_error == MX_SELECT_ERROR_ABSMAX)
    s->all = vf_max(e, s->all);
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

/* Codes of W blocks under one candidate, and its error. */
INLINE vf six_candidate(vi *codes, const mx_stages *f, const mx_piece *p, const vf *x, size_t first, const int way, const int form) {
  const mx_plan *plan = f->plan;
  const mx_stage_encode e = f->elem;
  const vf f0 = vf_load(p->f0 + first), f1 = form == MX_FORM_DIV_MUL ? vf_load(p->f1 + first) : f0, sf = vf_load(p->sf + first);
  const vf a = vf_set(plan->vars[MX_VAR_A]), k = vf_set((float)plan->target);
  const int tensor = plan->uses_chain && plan->has_tensor_scale;
  six_sum sum = {.all = vf_set(0)};
  for (size_t i = 0; i < p->block; i++) {
    const vf y = scaled(x[i], f0, f1, form);
    codes[i] = code_of(y, vi_set(0), &e, way);
    vf v = vf_mul(six_value(y, &e, way), sf);
    if (tensor) v = vf_div(vf_mul(v, a), k);
    six_count(&sum, &plan->spec, i, vf_sub(v, x[i]));
  }
  return six_total(&sum, &plan->spec);
}

INLINE void foursix_by(uint8_t *out, const mx_stages *f, mx_piece *six, const mx_piece *four, const int way, const int form) {
  vf x[MX_SIX_BLOCK], kept[16];
  vi codes[2][MX_SIX_BLOCK];
  for (size_t b = 0; b < six->n_blocks; b += W) {
    for (size_t c = 0; c < six->block; c += 16) sixteen_columns(x + c, six, b, c);
    const vf error = six_candidate(codes[0], f, six, x, b, way, form), other = six_candidate(codes[1], f, four, x, b, way, form);
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
  if (f->elem.way == MX_WAY_BIASED && f->form == MX_FORM_MUL)
    foursix_by(out, f, six, four, MX_WAY_BIASED, MX_FORM_MUL);
  else if (f->elem.way == MX_WAY_BIASED)
    foursix_by(out, f, six, four, MX_WAY_BIASED, f->form);
  else if (f->form == MX_FORM_MUL)
    foursix_by(out, f, six, four, MX_WAY_NEAREST, MX_FORM_MUL);
  else
    foursix_by(out, f, six, four, MX_WAY_NEAREST, f->form);
}
