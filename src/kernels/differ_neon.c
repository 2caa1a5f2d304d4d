/* Compiles the comparison of two rows of codes for NEON. */
#include <arm_neon.h>

#include "kernels/differ.h"

#define TABLE mxi_differ_neon
#define v uint8x16_t
enum { W = 16, TALLY_MOST = 64 };

static inline v v_load(const void *p) { return vld1q_u8(p); }
static inline void v_store(void *p, v a) { vst1q_u8(p, a); }
static inline v v_set(int x) { return vdupq_n_u8((uint8_t)x); }
static inline v v_each_lane(const void *p) { return vld1q_u8(p); }
static inline v v_and(v a, v b) { return vandq_u8(a, b); }
static inline v v_or(v a, v b) { return vorrq_u8(a, b); }
static inline v v_xor(v a, v b) { return veorq_u8(a, b); }
static inline v v_low(v a) { return vandq_u8(a, v_set(15)); }
static inline v v_high(v a) { return vshrq_n_u8(a, 4); }
static inline v v_look_up(v table, v index) { return vqtbl1q_u8(table, index); }
static inline v v_first_halves(v a, v b) { return vcombine_u8(vget_low_u8(a), vget_low_u8(b)); }
static inline v v_second_halves(v a, v b) { return vcombine_u8(vget_high_u8(a), vget_high_u8(b)); }
static inline int v_any(v a) { return vmaxvq_u8(a) != 0; }
static inline unsigned v_count_same(v a, v b) { return vaddvq_u8(vshrq_n_u8(vceqq_u8(a, b), 7)); }
/* a, with 1 added in the bytes in which b and c differ. */
static inline v v_add_unless_same(v a, v b, v c) { return vaddq_u8(a, vaddq_u8(v_set(1), vceqq_u8(b, c))); }
static inline v v_sets(const uint8_t *sets, const uint16_t *set, int apart) { return (void)apart, vld1q_u8(sets + 32 * (size_t)set[0]); }
static inline void v_store_zipped(uint8_t *p, v a, v b) { vst2q_u8(p, (uint8x16x2_t){{a, b}}); }
static inline v v_up(v a, int bits) { return vshlq_u8(a, vdupq_n_s8((int8_t)bits)); }
static inline v v_down(v a, int bits) { return vshlq_u8(a, vdupq_n_s8((int8_t)-bits)); }
static inline v v_select(v mask, v a, v b) { return vbslq_u8(mask, a, b); }
static inline v v_without(v a, v b) { return vbicq_u8(a, b); }
static inline v v_neither(v a, v b) { return vmvnq_u8(vorrq_u8(a, b)); }
/* Counts set bits in parts of a register; adds up to 31 such counts; and adds them to eight numbers. */
static inline v v_ones(v a) { return vcntq_u8(a); }
static inline v v_plus(v a, v b) { return vaddq_u8(a, b); }
static inline void v_add_to(uint64_t *sums, v a) { vst1q_u64(sums, vpadalq_u32(vld1q_u64(sums), vpaddlq_u16(vpaddlq_u8(a)))); }
/* Stores the sum of each eight bytes, or of all sixteen, as a byte. */
static inline void v_store_sums(uint8_t *p, v a, int eights) {
  if (eights)
    p[0] = vaddv_u8(vget_low_u8(a)), p[1] = vaddv_u8(vget_high_u8(a));
  else
    p[0] = vaddvq_u8(a);
}

#include "kernels/differ.inc.h"
