/* Declares a tensor on its way through the stages of SPEC 9, which lie in files of their own in the same order. */
#ifndef REF_FAULT_RUN_H
#define REF_FAULT_RUN_H

#include <string.h>

#include "fault.h"
#include "rules.h"

enum { MOST_TEXT = 640, MOST_RANKED = 1024, MOST_ROTATED = 128 };

enum {
  REF_INPUT,
  REF_ROTATION,
  REF_TENSOR,
  REF_TENSOR_SCALE,
  REF_AMAX,
  REF_SCALE,
  REF_STORE,
  REF_DIVISOR,
  REF_CLAMP,
  REF_ELEMENT,
  REF_CODE,
  REF_LAYOUT
};

#define IS(fault, word) (strcmp((fault)->op, word) == 0)

typedef struct ref_run {
  ref_plan plan, clean; /* clean: before the numbers of the tensor */
  ref_plan *groups;     /* of each `group` rows, if a fault takes them for tensors; else NULL */
  size_t group;
  const ref_fault *of_groups, *faults;
  size_t n_faults;
  size_t rows, cols, height, width, down, across; /* of the tensor, of a block, and how many blocks */
  float *x, *straight, *given;                    /* [rows][cols], behind the rotation and before it; as given, before all faults */
  uint64_t *plain, *used, *stored;                /* [down][across] codes of the scales; plain is NULL before they are known */
  uint8_t *codes;                                 /* [rows][cols] */
  num *elements, *values[2];                      /* room for those of one block */
  void *room;                                     /* for a copy of codes or scales that are moved */
} ref_run;

/* Is element (row, col), or block (d, a), in the region? A region of elements holds every block. */
int ref_element_in(const ref_run *r, const ref_fault *f, size_t row, size_t col);
int ref_block_in(const ref_run *r, const ref_fault *f, size_t d, size_t a);
/* The row, block or column of n that a fault takes from: so many away, or with the word xor the one whose number is its own xor so many, with
 * "first of" the first of so many; `at` itself beyond the ends. */
size_t ref_from(const ref_fault *f, size_t at, size_t n);
/* Is it a code of a number that is neither zero nor normal? */
int ref_is_subnormal(const mx_format *format, uint64_t code);

/* The place in a tile that a source has under a list of bits; both are column + (columns of the tile) * row. */
size_t ref_place_of(const ref_fault *f, size_t source);

/* The elements of a block, missing ones as +0; its largest finite magnitude; does it hold a NaN or an Inf? */
ref_block ref_load(const ref_run *r, size_t d, size_t a);
num ref_finite_amax(const ref_run *r, size_t d, size_t a);
int ref_has_special(const ref_run *r, size_t d, size_t a);
/* Is the first of the block's largest elements negative? NaNs are passed over. */
int ref_largest_is_negative(const ref_run *r, size_t d, size_t a);
/* A float with its lower half zeroed; a float of an argument; a maximum between 0 and the largest binary32. */
num ref_cut_to_bf16(num x);
num ref_argument(const ref_fault *f);
num ref_as_amax(num x);
/* The root of a binary32, rounded to binary32. */
num ref_root(num x);
/* x rounded to the format: RNE, saturating; an unsigned format has the sign of x beside it. */
num ref_to_format(const mx_format *format, num x);

/* The low bits of a number as a code of the scale; the code of the scale that the rule makes of the block's own maximum times the argument. */
uint64_t ref_wrapped(const ref_run *r, long long code);
/* fault_rounding.c: the code that a fault makes of a scale instead of the rule's, whose maximum is amax; map_to_4: of the second scale of foursix. */
uint64_t ref_fault_rounded(const ref_run *r, const ref_fault *f, size_t d, size_t a, num amax, int map_to_4, uint64_t code);
uint64_t ref_code_by_rule(const ref_run *r, const ref_fault *f, size_t d, size_t a, num amax,
                          uint64_t otherwise); /* of the rule that it names */
/* A block's maximum after the faults of that stage; of one with a NaN or an Inf its own. */
num ref_faulty_amax(const ref_run *r, size_t d, size_t a);
/* The scale whose value is the number that the rule rounds, of that maximum; 0: the block has none. */
int ref_unrounded(ref_scale *scale, const ref_run *r, size_t d, size_t a, num amax);
/* fault_scale.c: the code of the scale of a block of the other direction, in row `down` and column `across` of those; with a NaN or an Inf `otherwise`. */
uint64_t ref_code_down(const ref_run *r, size_t down, size_t across, uint64_t otherwise);
uint64_t ref_code_of_amax(const ref_run *r, const ref_fault *f, size_t d, size_t a, uint64_t otherwise);

/* What the elements are divided by under a scale, rounded to binary32: D of SPEC 9. T: what a decoded scale is multiplied by; 1 without a tensor scale.
 * The one factor that a chain has behind x, and its operation; 0 if there are more. */
num ref_tensor_of(const ref_plan *plan);
char ref_chain_factor(const ref_plan *plan, const ref_scale *s, num *factor);
num ref_divisor(const ref_plan *plan, const ref_scale *s);

/* fault_steps.c: the code of the quotient y of an element under the words of its rounding; 0: there are none, the rule has it. */
int ref_rounded(uint64_t *code, const ref_run *r, const ref_plan *plan, num y, size_t row, size_t col);
uint64_t ref_count(const mx_format *format, num a); /* the code of the nearest number, if they went on beyond the largest */
num ref_beyond_largest(const mx_format *f);         /* the middle between the largest number and the one that would come next */

/* fault_random.c: reads "pcg 1234+index/2 24"; is it a rounding at random, and the code of y under it. */
int ref_read_random(ref_random_source *s, const char *text);
int ref_is_random(const ref_fault *f);
uint64_t ref_random_code(const ref_run *r, const mx_format *format, const ref_fault *f, num y, size_t row, size_t col);

/* The stages, each all of its faults, in the order in which they are given. */
mx_status ref_fault_input(ref_run *r, const float *src, size_t ld, mx_error *err);
num ref_fault_tensor(const ref_run *r);
void ref_fault_tensor_scale(const ref_run *r, ref_plan *plan, num *stored); /* stored: of the spec, and what it becomes */
int ref_fault_groups(ref_run *r, num *stored);                              /* stored: the same; 0: no memory */
const ref_plan *ref_plan_at(const ref_run *r, size_t d, size_t a);          /* what a block is computed with */
int ref_fault_scales(ref_run *r);                                           /* 0: the spec refuses a block */
void ref_fault_store(ref_run *r);
void ref_fault_codes(ref_run *r);
mx_status ref_fault_layout(ref_run *r, mx_error *err);

#endif
