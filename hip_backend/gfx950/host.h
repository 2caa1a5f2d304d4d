/** Declares the instructions of formats/gfx950.def as functions on the host, under any answers to the questions of formats/gfx950_rules.def:
 *  the device that the CPU host runtime imitates. Conversions use integer arithmetic that shares nothing with src/ or ref/, products use
 *  mx_mma().
 *
 *  Threads: reentrant, without any state beside the arguments.
 *  Source: those named in formats/gfx950.def and formats/gfx950_rules.def.
 *  Oracle: hip_backend/tests/test_gfx950.cc, against ref_encode, ref_decode, ref_mma. */
#ifndef MXH_GFX950_HOST_H
#define MXH_GFX950_HOST_H

#include "gfx950.h"
#include "layout.h"
#include "mxgold/mma.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
#define GFX950_CHOICE(field, id, number, text, doc) GFX950_##field##_##id = number,
#include "formats/gfx950_rules.def"
};

/* Kinds of products, each of which may be summed in its own way: two shapes times 25 pairs of element types. */
enum { GFX950_PAIRS = 50 };
static inline int gfx950_pair(int edge, int a_type, int b_type) { return (edge == 32) * 25 + a_type * 5 + b_type; }

/** A device: one answer to each question, and how its products are summed. {0} is what AMD's documents suggest, except accum, which has no
 *  default. */
typedef struct gfx950_rules {
#define GFX950_RULE(field, doc) int field;
#include "formats/gfx950_rules.def"
  mx_accum accum[GFX950_PAIRS]; /* by gfx950_pair() */
} gfx950_rules;

/** {0} with the leading candidate for accum (cdna4_like_cdna3 of formats/accumulation.def). */
gfx950_rules gfx950_rules_default(void);
/** Sets the same sums for every pair. */
void gfx950_rules_sums(gfx950_rules *rules, const mx_accum *accum);

/** Names for tables and files: the index-th rule, and its choices; NULL past the last. */
const char *gfx950_rule_name(int rule, const char **doc);
const char *gfx950_choice_name(int rule, int choice, const char **doc);
int *gfx950_rule_of(gfx950_rules *rules, int rule);

/** Where the scale of a conversion comes from. */
enum { GFX950_FROM_VGPR, GFX950_FROM_SGPR, GFX950_FROM_INLINE };

/** Does one conversion in one lane.
 *  row     a row of gfx950_rows; select: a value for its form
 *  out     [row->words_out]: the old destination if the form keeps a part of it; afterwards the result
 *  x       [row->words_x]; scale, seed: registers, ignored by forms that have none
 *  from    GFX950_FROM_* */
void gfx950_convert(const gfx950_env *env, const gfx950_row *row, int select, uint32_t *out, const uint32_t *x, uint32_t scale, uint32_t seed,
                    int from);

/** One product of a wave: what each lane passes in and gets back. */
typedef struct gfx950_mfma_in {
  uint32_t a[8], b[8], c[16], scale_a, scale_b;
  uint32_t m, cbsz, blgp, select; /* the same in all lanes; m 16 or 32 */
  gfx950_env env;
} gfx950_mfma_in;
typedef struct gfx950_mfma_out {
  uint32_t d[16];
} gfx950_mfma_out;
/** in[64], out[64]. */
void gfx950_mfma(const gfx950_mfma_in *in, gfx950_mfma_out *out);

#ifdef __cplusplus
}
#endif
#endif
