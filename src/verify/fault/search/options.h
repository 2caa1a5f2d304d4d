/* Declares the faults that are tried: the rows of formats/faults.def with the arguments that kernels are known to have. */
#ifndef MX_VERIFY_FAULT_SEARCH_OPTIONS_H
#define MX_VERIFY_FAULT_SEARCH_OPTIONS_H

#include "mxgold/fault.h"

typedef enum fit_by { FIT_NOT, FIT_SCALES, FIT_CODES, FIT_TENSOR, FIT_PITCH, FIT_ROWS, FIT_PLACE, FIT_ZERO } fit_by;

typedef struct option {
  mx_fault fault;
  fit_by
      fit; /* how its number is read off the data; FIT_ROWS: it is looked at first whether a few rows allow it; FIT_PLACE: off what is wrong alone; FIT_ZERO: its columns are */
  int placed; /* its region is given: none is looked for */
  int common; /* many kernels have it: it is an idiom */
  int guess;  /* its number was read off the data, which leave others: it is no more than a guess */
  int rare;   /* few kernels have it: where another fault gives the same bytes, that is the answer */
} option;

/* A rare fault costs so much more: more than a rival may. A common one costs so much less. */
enum { BITS_OF_RARE = 12, BITS_OF_COMMON = 4 };

/** How many bits the choice costs, with `bits` of its argument. */
static inline double mxi_option_cost(const option *o, double bits) {
  return 9 + bits + (o->placed ? 6 : 0) + (o->rare ? BITS_OF_RARE : 0) - (o->common ? BITS_OF_COMMON : 0);
}

enum { MOST_OPTIONS = 1280 };

/** Lists the faults of stages [first, last] for a spec and a shape. Returns how many. */
size_t mxi_fault_options(option out[MOST_OPTIONS], int first, int last, const mx_spec *spec, size_t rows, size_t cols);
/** Is no number chosen, but for the next one? Of many numbers one fits a few blocks by chance. */
int mxi_option_is_plain(const option *o);
/** Is it a number that the format says: the factor by which 1 / F is off in a type of few bits? */
int mxi_option_is_short_reciprocal(const option *o);

#endif
