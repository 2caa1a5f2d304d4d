/* Declares what elements say of a random number that they share: each one that went up or down leaves an interval of it. */
#ifndef MX_VERIFY_TRIAL_SHARED_H
#define MX_VERIFY_TRIAL_SHARED_H

/* Where the number lies, the ends with them; {1, 0} before the first element. */
typedef struct shared_number {
  double least, most;
} shared_number;

static inline int mxi_is_new(const shared_number *n) { return n->least > n->most; }

/** Another element leaves [least, most] of it. Returns 0 if no number is left. */
static inline int mxi_may_share(shared_number *n, double least, double most) {
  const int is_new = mxi_is_new(n);
  if (is_new || least > n->least) n->least = least;
  if (is_new || most < n->most) n->most = most;
  return n->least <= n->most;
}

#endif
