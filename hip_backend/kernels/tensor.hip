/* Finds the tensor's largest magnitude and computes the tensor-level numbers of a plan from it on the device, so that two-level scaling need
 * not wait for the host. */
#include "hip_backend/kernels/device/tile.h"

MXH_KERNEL(mxh_amax, amax_args, a, MXD_BLOCK_LARGEST) {
  const mxd_plan &p = mxh_ref(a.plan);
  const uint64_t n = p.rows * p.cols, step = (uint64_t)mxh_grid_size() * mxh_block_size();
  const unsigned t = mxh_thread_id();
  uint32_t best = 0;
  for (uint64_t i = (uint64_t)mxh_block_id() * mxh_block_size() + t; i < n; i += step) {
    double m;
    if (!mxd_counts(&m, p, mxd_at(a.x, i / p.cols, i % p.cols))) continue;
    const uint32_t bits = mxd_isnan(m) ? 0x7FC00000u : mxh_bits<uint32_t>((float)m);
    if (bits > best) best = bits;
  }
  const uint32_t most = mxd_block_largest(best);
  if (t == 0) mxh_atomic_max(a.amax, most);
}

/* SPEC 3.5: one lane. */
MXH_KERNEL(mxh_tensor_plan, tensor_plan_args, a, 64) {
  if (mxh_thread_id() || mxh_block_id()) return;
  mxd_plan &p = mxh_ref(a.plan);
  const mx_spec &s = p.spec;
  const float amax = mxh_bits<float>((uint32_t)a.amax[0]), given = s.tensor_given_value;
  const double n = p.uses_chain ? p.target : p.norm;
  p.amax = p.seen = amax;
  p.over = p.uses_chain ? 1 : n;
  p.under = p.uses_chain || !p.has_tensor_scale || amax == 0 ? 1 : mxd_widen(amax);
  p.tensor_scale = 1;
  const bool own = p.uses_chain && s.tensor_store == MX_TENSOR_STORE_CHAIN;
  bool fixed = false;
  if (p.has_tensor_scale && s.tensor_given) {
    p.amax = p.store == MXD_STORE_AMAX
                 ? given
                 : mxd_narrow(p.store == MXD_STORE_DIVISOR ? mxd_quotient(n, mxd_widen(given)) : mxd_times(mxd_widen(given), n));
    fixed = own && p.chain.store >= 0 && p.store != MXD_STORE_AMAX;
    if (!p.uses_chain) {
      p.under = 1;
      if (given != 0) {
        p.over = p.store == MXD_STORE_SCALE ? 1 : p.store == MXD_STORE_DIVISOR ? mxd_widen(given) : n;
        p.under = p.store == MXD_STORE_DIVISOR ? 1 : mxd_widen(given);
      }
    }
  }
  if (p.uses_chain) {
    p.vars[MXD_VAR_A] = p.amax;
    if (fixed) p.vars[p.chain.store] = given;
    for (int i = 0; i < p.chain.n_statements; i++)
      if (!fixed || p.chain.target[i] != p.chain.store) p.vars[p.chain.target[i]] = mxd_eval(p.chain.statement[i], p.vars);
  }
  if (!p.has_tensor_scale) return;
  float stored;
  if (s.tensor_given)
    stored = given;
  else if (own && p.chain.store >= 0)
    stored = p.vars[p.chain.store];
  else if (p.store == MXD_STORE_AMAX)
    stored = amax;
  else
    stored = mxd_narrow(p.store == MXD_STORE_DIVISOR ? mxd_quotient(n, mxd_widen(amax)) : mxd_quotient(mxd_widen(amax), n));
  p.tensor_scale = mxd_isnan(stored) ? mxd_nanf(false) : stored;
}
