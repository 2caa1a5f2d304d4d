/* Declares what the files of probe share. One probe is built first (row.c), then lists of them (families.c, random.c), and a list is laid into
 * tiles (probe.c, pack.c). Models are run over probes (score.c), parameters are read (read.c), the rest is searched for (search.c, tree.c), and other
 * values that fit are found (class.c); fit.c does all of it in order. */
#ifndef MX_VERIFY_PROBE_PROBE_H
#define MX_VERIFY_PROBE_PROBE_H

#include "core/shortage.h"
#include "mma/kept.h"
#include "mxgold/probe.h"

enum {
#define MX_PROBE_FAMILY(id, name, doc, label) PROBE_##id,
#include "formats/probe_families.def"
#undef MX_PROBE_FAMILY
  PROBE_FAMILIES
};

static inline int imin(int a, int b) { return a < b ? a : b; }
static inline int imax(int a, int b) { return a > b ? a : b; }

/* --- lists of probes: outputs of 1 x 1 tiles --- */

typedef struct probe_list {
  const mx_probe_spec *spec;
  size_t n, room;
  size_t a_bytes, b_bytes, c_bytes, s_bytes, d_bytes;
  uint8_t *a, *b, *c, *scale_a, *scale_b;
  uint8_t *d; /* what the device gave; NULL while a list is made */
  int32_t (*labels)[MX_PROBE_LABELS];
  shortage *lack; /* of the call: where memory runs out, it is noted there */
  int failed;     /* no memory */
  mma_kept *kept; /* operands taken apart, or NULL: of all n probes, or of a longer list that this is the start of */
} probe_list;

void mxi_probe_list_init(probe_list *l, const mx_probe_spec *spec, shortage *lack);
void mxi_probe_list_free(probe_list *l);
/* Adds one probe, zeroed, and returns its index. */
size_t mxi_probe_list_add(probe_list *l, const int32_t label[MX_PROBE_LABELS]);
/* Takes the operands apart once for the many models that will be run; adding another probe undoes it. */
void mxi_probe_list_keep(probe_list *l);
/* Copy probe i of `from`, d too if both have it. */
void mxi_probe_list_copy(probe_list *l, const probe_list *from, size_t i);
mx_mma_args mxi_probe_list_args(const probe_list *l, size_t first, size_t n);
/* Bits of d: of the device, or of any array of that type. */
uint64_t mxi_probe_bits(const uint8_t *d, size_t bytes, size_t i);
/* The code of element k of a row of an operand. */
uint64_t mxi_probe_code(const mx_format *f, const uint8_t *row, size_t k);

/* Can these types and shapes be probed? */
mx_status mxi_probe_check_spec(const mx_probe_spec *s, mx_error *err);
/* A list as tiles: T_fit tiles of probes, then `kept` tiles from list `rest`. */
mx_status mxi_probe_pack(mx_probe *out, const probe_list *l, const probe_list *rest, uint64_t seed, mx_error *err);

/* --- one probe --- */

/* Exponents that numbers of a format have: lowest power of two, lowest normal one, highest. */
typedef struct probe_range {
  int lowest, normal, highest;
} probe_range;
probe_range mxi_probe_range_of(const mx_format *f);

enum { PROBE_POW2, PROBE_ONE_HALF, PROBE_CARRY, PROBE_ONES, PROBE_RANDOM_BITS, PROBE_LAST_BIT, PROBE_STYLES };
enum { PROBE_A_SUBNORMAL = 1, PROBE_B_SUBNORMAL = 2 };

typedef struct probe_row {
  const mx_probe_spec *spec;
  probe_range ra, rb, rs, rc, rd;
  uint64_t *a, *b, c; /* codes */
  uint8_t *sa, *sb;
  uint8_t *fixed; /* scales of a block that are set */
  size_t n_blocks;
  uint64_t at;     /* random numbers drawn */
  uint32_t stream; /* and whence */
  int ok;          /* what was asked for since mxi_probe_row_clear() could be had */
} probe_row;

int mxi_probe_row_alloc(probe_row *r, const mx_probe_spec *spec, uint32_t stream);
void mxi_probe_row_free(probe_row *r);
void mxi_probe_row_clear(probe_row *r);
uint32_t mxi_probe_draw(probe_row *r);
uint64_t mxi_probe_draw64(probe_row *r); /* the first draw on top */
int mxi_probe_below(probe_row *r, int n);
int mxi_probe_between(probe_row *r, int lo, int hi);
int mxi_probe_chance(probe_row *r, int in, int of);
/* A product of +-2^e at k, its fractions by style. Clears ok if the types have none. */
void mxi_probe_put(probe_row *r, size_t k, int negative, int e, int style, int subnormal);
/* The product of k again at `to`, negated if asked. */
void mxi_probe_put_again(probe_row *r, size_t to, size_t k, int negate);
/* C = +-2^e (1 + fraction), fraction in units of the last place. */
void mxi_probe_put_c(probe_row *r, int negative, int e, uint64_t fraction);
void mxi_probe_put_c_style(probe_row *r, int negative, int e, int style);
/* Writes a zero (negative if asked) times 2^e into b, or into a if `swap`. */
void mxi_probe_put_zero(probe_row *r, size_t k, int negative, int e, int swap);
void mxi_probe_put_codes(probe_row *r, size_t k, uint64_t a, uint64_t b);
/* Sets C so that it cancels the sum of the products except for what rounding leaves. The scales of blocks that hold products must be set. */
void mxi_probe_undo(probe_row *r);
/* Add the row to the list, if ok. Returns ok. */
int mxi_probe_row_end(probe_row *r, probe_list *l, int family, int x, int y, int z);
/* Exponents of products (normal factors; subnormal ones too; highest), scales included. */
probe_range mxi_probe_products(const probe_row *r);
int mxi_probe_code_of(uint64_t *code, const mx_format *f, double x);
void mxi_probe_store(uint8_t *row, const mx_format *f, size_t k, uint64_t code);

/* --- families --- */
void mxi_probe_families(probe_list *l, uint32_t stream, int density);
void mxi_probe_random(probe_list *l, uint32_t stream, size_t n);
/* For second opinions alone: no first batch has them. */
void mxi_probe_second(probe_list *l, uint32_t stream, size_t n);

#endif
