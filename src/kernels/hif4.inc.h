/* Computes scale.rule=hif4 with a block of 64 in each lane. Part of stages.inc.h. SPEC 3.9. */

/* |x| * r rounded down in binary32. Comparing it with numbers of few bits, or rounding it half up to such numbers, gives the same result as
 * with the exact product. */
INLINE vf product_down(vf x, vf r) {
  const vf p = vf_mul(x, r);
  return vi_float(vi_sub(vf_bits(p), vi_blend(vf_lt(vf_fma(x, r, vf_sub(vf_set(0), p)), vf_set(0)), vi_set(1), vi_set(0))));
}

/* The nearest bfloat16 of a positive product. */
INLINE vf product_bf16(vf x, vf r) {
  const vf p = product_down(x, r);
  const vm cut = vf_lt(vf_set(0), vf_fma(x, r, vf_sub(vf_set(0), p)));
  return to_dtype(vi_float(vi_or(vf_bits(p), vi_blend(cut, vi_set(1), vi_set(0)))), MX_INPUT_DTYPE_BFLOAT16);
}

/* Computes the codes, one to a byte, the scales and the three bytes of levels of up to W blocks from p->x on; p->odd says which are not
 * ordinary. */
INLINE void hif4_blocks(uint8_t *out, uint8_t *micro, const mx_stages *f, mx_piece *p, size_t first) {
  enum { EMIN = 127 - 48 };
  const vi one = vi_set(1), zero = vi_set(0);
  vf x[64], column[16];
  vi high[8], codes[16]; /* high: the largest of eight elements */
  for (size_t c = 0; c < 64; c += 16) sixteen_columns(x + c, p, first, c);
  vi four[16], most = zero;
  for (int g = 0; g < 16; g++) {
    four[g] =
        vi_max(vi_max(magnitude_of(x[4 * g]), magnitude_of(x[4 * g + 1])), vi_max(magnitude_of(x[4 * g + 2]), magnitude_of(x[4 * g + 3])));
    most = vi_max(most, four[g]);
  }
  for (int g = 0; g < 8; g++) high[g] = vi_max(four[2 * g], four[2 * g + 1]);
  vm odd = vm_or(vi_gt(vi_set(60 << 23), most), vi_gt(most, vi_set(150 << 23)));
  const vi v = vf_bits(product_bf16(vi_float(most), vf_set(0x1.24p-3f))); /* bf16(1/7) */
  vi up;                                                                  /* what rounds up to the two bits of the mantissa */
  switch (f->round) {
  case MX_SCALE_ROUND_UP:
    up = vi_set((1 << 21) - 1);
    break;
  case MX_SCALE_ROUND_DOWN:
    up = zero;
    break;
  case MX_SCALE_ROUND_RNA:
    up = vi_set(1 << 20);
    break;
  case MX_SCALE_ROUND_SR:
    up = vi_srl(vi_load(p->wide + first), 11); /* 24 random bits for eight bits of a mantissa, of which the last three never decide */
    break;
  default:
    up = vi_add(vi_set((1 << 20) - 1), vi_and(vi_srl(v, 21), one));
  }
  const vi scale = vi_sub(vi_srl(vi_add(v, up), 21), vi_set(EMIN << 2));
  odd = vm_or(odd, vm_or(vi_gt(vi_set(f->code_lo), scale), vi_gt(scale, vi_set(f->code_hi))));
  odd = vm_or(odd, vf_lt(vi_float(v), vf_set(f->v_lo)));
  const vf s = vi_float(vi_sll(vi_add(vi_min(vi_max(scale, one), vi_set(0xFD)), vi_set(EMIN << 2)), 21));
  const vf r = to_dtype(vf_div(vf_set(1), s), MX_INPUT_DTYPE_BFLOAT16);
  vi level[3] = {zero, zero, zero};
  for (int g = 0; g < 16; g++) {
    const vm two = vi_gt(vf_bits(product_down(vi_float(high[g / 2]), r)), vi_set((129 << 23) - 1)); /* 4 or more */
    const vi down = vi_blend(two, vi_set(1 << 23), zero);                                           /* halves the value */
    const vi rest = vi_sub(vf_bits(product_down(vi_float(four[g]), r)), down);
    const vm three = vi_gt(rest, vi_set((128 << 23) - 1));
    const vi downs = vi_add(down, vi_blend(three, vi_set(1 << 23), zero));
    if (g % 2 == 0) level[0] = vi_or(level[0], vi_blend(two, vi_set(1 << (g / 2)), zero));
    level[1 + g / 8] = vi_or(level[1 + g / 8], vi_blend(three, vi_set(1 << (g % 8)), zero));
    for (int k = 0; k < 4; k++) {
      const vf at = x[4 * g + k], y = product_down(vi_float(magnitude_of(at)), r);
      const vi least = vi_min(magnitude_of(at), one); /* a nonzero number stays nonzero, but far below one half */
      const vi halved = vi_max(vi_sub(vf_bits(y), downs), least);
      codes[4 * (g % 4) + k] = code_of(vi_float(vi_or(halved, vi_and(vf_bits(at), vi_set(INT32_MIN)))), zero, &f->elem, MX_WAY_BIASED);
    }
    if (g % 4 < 3) continue;
    for (int k = 0; k < 16; k++) column[k] = vi_float(codes[k]);
    store_columns(out, column, p->n_blocks, 64, first, 16 * (size_t)(g / 4));
  }
  int32_t lanes[5][W];
  vi_store(lanes[0], scale);
  vi_store(lanes[1], vi_blend(odd, one, zero));
  for (int i = 0; i < 3; i++) vi_store(lanes[2 + i], level[i]);
  for (size_t i = 0; i < W && first + i < p->n_blocks; i++) {
    p->code[first + i] = (uint8_t)lanes[0][i];
    p->odd[first + i] = (uint8_t)lanes[1][i];
    for (int k = 0; k < 3; k++) micro[3 * (first + i) + (size_t)k] = (uint8_t)lanes[2 + k][i];
  }
}

static void hif4(uint8_t *out, uint8_t *micro, const mx_stages *f, mx_piece *p) {
  for (size_t b = 0; b < p->n_blocks; b += W) hif4_blocks(out, micro, f, p, b);
}
