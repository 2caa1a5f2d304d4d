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

/* A spec, run over everything. */
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

/** Under h with this input.dtype and flush. Returns 0 if memory ran out. */
int mxi_inquiry_open(inquiry *q, const hypothesis *h, int dtype, int flush, const mx_sample *samples, size_t n, int threads,
                     search_budget *budget);
void mxi_inquiry_close(inquiry *q);

/** The presets of these formats: into best if one of them gives the chosen blocks. */
void mxi_inquiry_presets(inquiry *q);
/** What gives the scales of ordinary blocks: into cores, best first. */
void mxi_inquiry_cores(inquiry *q);
/** The element's keys for each of the cores: into specs, and residue. */
void mxi_inquiry_specs(inquiry *q);
/** Both once more where blocks were learned since. */
void mxi_inquiry_refit(inquiry *q);
/** The best few specs, repaired on blocks of every class until one gives everything: into best. effort 1: also two keys at once. */
void mxi_inquiry_finish(inquiry *q, int effort);

/** A spec of these formats, run over everything: into best whatever is there. */
void mxi_inquiry_take(inquiry *q, const mx_spec *spec);

/** Is more than one in ONE_IN of the elements, or of the scales, of ordinary blocks wrong? */
int mxi_inquiry_far_off(const inquiry *q);
/** Do ordinary blocks lie on both sides of every rule, and between its neighbours? Then the specs become stochastic ones. */
int mxi_inquiry_looks_random(inquiry *q);
/** The rule of every class, whatever the seed: into random; effort as of mxi_inquiry_finish. Returns 1 if nothing but the seed is missing. */
int mxi_inquiry_random_rule(inquiry *q, int effort);
/** The seed among few or among many (0, 1 or 2); with it as any spec. Returns 1 if every byte is found. */
int mxi_inquiry_seed(inquiry *q, int many);
/** What is left, is it a scale that is rounded at random and shows it in few blocks? Its seed, then. Returns 1 if every byte is found. */
int mxi_inquiry_hidden_draws(inquiry *q);
/** Without the seed: what can be said of it. Returns 1 if the draws look random. */
int mxi_inquiry_estimate(inquiry *q);

/** What tensor.store makes of the stored tensor scales: how many are wrong with the best, which s gets. */
uint64_t mxi_inquiry_fit_tensor_scale(const observation *o, mx_spec *s);
/** Does a rule of s round at random? */
int mxi_spec_random(const mx_spec *s);

#endif
