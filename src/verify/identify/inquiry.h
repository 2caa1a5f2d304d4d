/* Declares an inquiry: what a black box does under one hypothesis of formats, block, rotation and input.dtype. */
#ifndef MX_VERIFY_IDENTIFY_INQUIRY_H
#define MX_VERIFY_IDENTIFY_INQUIRY_H

#include "verify/identify/search/hypotheses.h"
#include "verify/identify/search/search.h"
#include "verify/identify/search/stochastic.h"

/* A rule that is wrong for more than one in fifty is not a right rule with a few exceptions: special values are fewer than that, and a kernel that rounds
 * at random differs from any rule far more often. */
enum { ONE_IN = 50 };

enum { MAX_REPAIRED = 48, MAX_INQUIRIES = 48 };

/* A spec that was run over everything, and what it got. */
typedef struct attempt {
  mx_spec spec;
  score got;
  uint64_t scales_wrong; /* tensor scales */
  int any;
} attempt;

uint64_t mxi_attempt_badness(const attempt *a);
int mxi_attempt_better(const attempt *a, const attempt *b);
int mxi_attempt_exact(const attempt *a);

typedef struct inquiry {
  hypothesis h;
  observation o;
  search s;
  pool cores, specs; /* fits of the scales of ordinary blocks; of these blocks */
  struct {
    size_t scales, looked; /* blocks and elements that they were found on */
    int lenient, seeded;
  } fitted;
  pool starts, finalists;
  mx_spec repaired[MAX_REPAIRED];
  size_t n_repaired;
  double residue;  /* wrong codes and scales a block: of ordinary ones; and a little of all, once that was counted */
  double ordinary; /* of ordinary ones, before the first repair */
  int drawn;       /* elements of ordinary blocks follow no rule without chance */
  int level;       /* how often it was finished */
  attempt best;
  uint8_t *wrong;         /* an entry a block */
  int stochastic, seeded; /* seeded: best has the seed; 2: and was finished with it, harder */
  mx_spec seed;           /* where seeded: a spec that has it; elements of ordinary blocks follow its draws */
  mx_spec random;         /* the rule of a stochastic kernel but for its seed */
  uint64_t rule_lacks;    /* what that gets wrong on the chosen blocks */
  random_facts facts;
} inquiry;

/** Begins an inquiry under h with this input.dtype and flush. Returns 0 if memory ran out. */
int mxi_inquiry_open(inquiry *q, const hypothesis *h, int dtype, int flush, const mx_sample *samples, size_t n, int threads,
                     search_budget *budget);
void mxi_inquiry_close(inquiry *q);

/** Tries the presets of these formats; best becomes one that gives the chosen blocks. */
void mxi_inquiry_presets(inquiry *q);
/** Finds rules that give the scales of ordinary blocks, and puts them into cores, best first. */
void mxi_inquiry_cores(inquiry *q);
/** Finds the element's keys for each of the cores, and fills specs and residue. */
void mxi_inquiry_specs(inquiry *q);
/** Does both again if blocks have joined since. */
void mxi_inquiry_refit(inquiry *q);
/** Repairs the best few specs on blocks of every class until one gives everything, which becomes best. With an effort of 1 also two keys at once. */
void mxi_inquiry_finish(inquiry *q, int effort);

/** Runs a spec of these formats over everything and makes it best, whatever best was. */
void mxi_inquiry_take(inquiry *q, const mx_spec *spec);

/** Is more than one in ONE_IN of the elements, or of the scales, of ordinary blocks wrong? */
int mxi_inquiry_far_off(const inquiry *q);
/** Do the codes of ordinary blocks lie on both sides of every rule, and between its neighbours? Then the specs become stochastic ones. */
int mxi_inquiry_looks_random(inquiry *q);
/** Finds the rule of every class, whatever the seed, and puts it into random; effort as in mxi_inquiry_finish(). Returns 1 if only the seed is
 *  missing. */
int mxi_inquiry_random_rule(inquiry *q, int effort);
/** Searches few seeds or many (0, 1 or 2), then goes on with the seed as with any spec. Returns 1 if every byte is found. */
int mxi_inquiry_seed(inquiry *q, int many);
/** Is the rest a scale that is rounded at random, which shows in few blocks? Then searches for its seed. Returns 1 if every byte is found. */
int mxi_inquiry_hidden_draws(inquiry *q);
/** Finds what can be said without the seed. Returns 1 if the draws look random. */
int mxi_inquiry_estimate(inquiry *q);

/** Gives s the tensor.store under which the fewest stored tensor scales are wrong, and returns how many are. */
uint64_t mxi_inquiry_fit_tensor_scale(const observation *o, mx_spec *s);
/** Does a rule of s round at random? */
int mxi_spec_random(const mx_spec *s);

#endif
