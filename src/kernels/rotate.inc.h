/* Rotates columns of W rows. Part of input.inc.h and of columns_avx512.h, over the lanes of vectors_*.h. */

/* The end of a rotation. */
INLINE vf finished(vf t, vf factor) {
#ifdef vf_mul_or_nan
  return vf_mul_or_nan(t, factor);
#else
  return vi_float(vi_blend(vi_gt(vi_and(vf_bits(t), vi_set(0x7FFFFFFF)), vi_set(0x7F800000)), vi_set(0x7FC00000), vf_bits(vf_mul(t, factor))));
#endif
}

/* Rotates each lane of W rows, which takes no permutations, with strides 1 .. end / 2; without the factor. */
INLINE void rotate_down(vf t[W], const mx_input *in, const unsigned end) {
  if (in->signs)
#pragma GCC unroll 16
    for (unsigned k = 0; k < W; k++) t[k] = vi_float(vi_xor(vf_bits(t[k]), vi_set((int32_t)in->sign[k])));
#pragma GCC unroll 4
  for (unsigned stride = 1; stride < end; stride *= 2)
#pragma GCC unroll 16
    for (unsigned k = 0; k < W; k++)
      if (!(k & stride)) {
        const vf a = t[k], b = t[k + stride];
        t[k] = vf_add(a, b);
        t[k + stride] = vf_sub(a, b);
      }
}
