/* Declares the random numbers of kernels that round by chance: a generator without memory, its seed, what counts it, and the bits that are used. */
#ifndef MX_VERIFY_FAULT_RANDOM_H
#define MX_VERIFY_FAULT_RANDOM_H

#include "verify/fault/run.h"

/* X(ID, "name", keyed): keyed generators take the seed and the count apart, the others one number that both make. SPEC 9 defines each. */
#define MXI_GENERATORS(X)                                                                                                                      \
  X(PHILOX, "philox", 1)                                                                                                                       \
  X(PHILOX1, "philox1", 1)                                                                                                                     \
  X(CURAND, "curand", 1)                                                                                                                       \
  X(CURAND4, "curand4", 1)                                                                                                                     \
  X(LFSR16, "lfsr16", 1)                                                                                                                       \
  X(LCG_STEPS, "lcg", 1)                                                                                                                       \
  X(XORSHIFT_STEPS, "xorshifts", 1)                                                                                                            \
  X(SPLITMIX, "splitmix", 1)                                                                                                                   \
  X(NUMPY, "numpy", 1)                                                                                                                         \
  X(NUMPY32, "numpy32", 1)                                                                                                                     \
  X(PCG, "pcg", 0)                                                                                                                             \
  X(FMIX, "fmix", 0)                                                                                                                           \
  X(GOLDEN, "golden", 0)                                                                                                                       \
  X(LOWBIAS, "lowbias", 0)                                                                                                                     \
  X(WANG, "wang", 0)                                                                                                                           \
  X(XORSHIFT, "xorshift", 0)                                                                                                                   \
  X(XORSHIFT2, "xorshift2", 0)                                                                                                                 \
  X(XORSHIFT3, "xorshift3", 0)                                                                                                                 \
  X(LCG, "lcg1", 0)                                                                                                                            \
  X(WEYL, "weyl", 0)                                                                                                                           \
  X(MIX64, "mix64", 0)                                                                                                                         \
  X(HASH, "hash", 0)
enum {
#define X(id, name, keyed) MXI_RANDOM_##id,
  MXI_GENERATORS(X)
#undef X
      MXI_RANDOM_COUNT
};
enum { MXI_JOIN_KEY, MXI_JOIN_PLUS, MXI_JOIN_XOR };
enum {
  MXI_COUNT_INDEX,
  MXI_COUNT_PADDED,
  MXI_COUNT_COLUMN,
  MXI_COUNT_ROW,
  MXI_COUNT_BLOCK,
  MXI_COUNT_LANE,
  MXI_COUNT_TILE,
  MXI_COUNT_IN_ROW,
  MXI_COUNT_IN_BLOCK,
  MXI_COUNTS
};
enum { MXI_PART_TOP, MXI_PART_LOW, MXI_PART_FOLDED, MXI_PART_SPLIT };

/* Steps of `hash`: x times a factor, then x ^ x >> shift, three times at most. */
enum { MXI_HASH_STEPS = 3, MXI_HASH_FACTORS = 32 };

/* Which random number an element gets. */
typedef struct random_source {
  uint8_t generator, join, count, halved; /* halved: the count is divided by 2^halved */
  uint8_t factor[MXI_HASH_STEPS];         /* of `hash`: in the table of factors, the first of which is 1 */
  uint8_t shift[MXI_HASH_STEPS];          /* 0: none */
  uint8_t tile;                           /* log2 of the rows of a tile */
  uint8_t part, bits;                     /* of the word */
  uint32_t seed;
} random_source;

int mxi_random_is_keyed(int generator);
/** The k-th factor of `hash`, 1 for k = 0; 0: there is none. */
uint32_t mxi_hash_factor(int k);
/** As the argument of a fault, and back. */
void mxi_random_pack(mx_fault *f, const random_source *s);
random_source mxi_random_unpack(const mx_fault *f);
/** "pcg 1234+index/2 24": reads and prints. 0: it is no source. */
int mxi_random_read(mx_fault *f, const char *text);
void mxi_random_print(char *out, size_t size, const mx_fault *f);

/** What counts element (row, col). */
typedef struct random_count {
  uint32_t k, stream; /* stream: of the row or block that has numbers of its own, else 0 */
} random_count;
random_count mxi_random_count(const random_source *s, const fault_run *r, size_t row, size_t col);
/** The word of a count; and the number from 0 to 1 that a column takes from it. */
uint32_t mxi_random_word(const random_source *s, random_count count);
double mxi_random_unit(const random_source *s, uint32_t word, size_t col);

/* Where a number lies between two of a format: of a magnitude at or beyond the largest, at that. */
typedef struct random_place {
  uint32_t low; /* the code at or below its magnitude */
  int is_largest, negative;
  double d;      /* how far it is from there to the next one, from 0 to 1 */
  double second; /* the middle between the next two, in the same steps */
  double under;  /* the middle between the one below it and the next one down, at most 0; -INFINITY of 0 */
  double least;  /* the step of the smallest numbers */
  double own;    /* the step that it would have if no number were subnormal */
} random_place;
random_place mxi_random_place(const mx_format *f, double y);
/** With `under` and `least` as well, which the words that begin with `random centred` need. */
random_place mxi_random_place_centred(const mx_format *f, double y);
int mxi_fault_is_random(int op);
/** By how many codes the fault goes up from the one below, with the random number u. */
int mxi_random_steps(const random_place *p, int op, double u);
/** The random numbers with which it goes up by so many, the ends with them and perhaps a few more; least > most: none does. */
typedef struct random_interval {
  double least, most;
} random_interval;
random_interval mxi_random_interval(const random_place *p, int op, int steps);
/** The code of y. */
uint32_t mxi_random_code(const fault_run *r, const mx_format *format, const mx_fault *f, double y, size_t row, size_t col);

#endif
