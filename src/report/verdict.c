/* Says a report in words: how many arms differ from their reference, which claims hold, how large the noise of seeds is. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report/internal.h"

typedef struct verdict {
  char *out;
  size_t size, n;
} verdict;

__attribute__((format(printf, 2, 3))) static void say(verdict *v, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(v->out ? v->out + (v->n < v->size ? v->n : v->size) : NULL, v->n < v->size ? v->size - v->n : 0, format, args);
  va_end(args);
  v->n += n > 0 ? (size_t)n : 0;
}

static void say_arm(verdict *v, const mx_report_arm *a) {
  const mx_mean *b = &a->behind[MX_EVAL_QUANTISED];
  if (isnan(b->low))
    say(v, "%s (%+.4f)", a->name, b->mean);
  else
    say(v, "%s (%+.4f, %.4f to %.4f)", a->name, b->mean, b->low, b->high);
}

static void say_unlike(verdict *v, const mx_report *r) {
  size_t n = 0;
  char key[96], first[96];
  const char *name = NULL;
  for (size_t i = 0; i < r->n_arms; i++) {
    mxi_unlike(key, sizeof key, r, &r->arms[i]);
    if (!*key) continue;
    if (!n++) memcpy(first, key, sizeof first), name = r->arms[i].told.name;
  }
  if (n)
    say(v, " Beware: %zu arm%s %s more than the number format beside the reference, as %s does in %s; such keys belong in the grid.", n,
        n == 1 ? "" : "s", n == 1 ? "changes" : "change", name, first);
}

static void say_claims(verdict *v, const mx_report *r) {
  size_t agree = 0, disagree = 0;
  for (size_t i = 0; i < r->n_claims; i++) {
    agree += r->claims[i].agrees > 0;
    disagree += r->claims[i].agrees < 0;
  }
  if (!r->n_claims) return;
  say(v, " Of %zu claim%s the results agree with %zu and disagree with %zu; of %zu they cannot tell.", r->n_claims, r->n_claims == 1 ? "" : "s",
      agree, disagree, r->n_claims - agree - disagree);
}

size_t mx_report_verdict(char *out, size_t size, const mx_report *r) {
  verdict v = {out, size, 0};
  size_t arms = 0, worse = 0, better = 0, lost = 0;
  size_t single = 0, unfinished = 0, alone = 0; /* one pair of runs and so no interval; no finished run; finished runs but no pair */
  const mx_report_arm *best = NULL, *worst = NULL;
  double least = NAN, most = NAN; /* standard deviations of references over their seeds */
  for (size_t i = 0; i < r->n_arms; i++) {
    const mx_report_arm *a = &r->arms[i].told;
    const mx_mean *b = &a->behind[MX_EVAL_QUANTISED];
    if (!a->reference) least = fmin(least, a->loss[MX_EVAL_QUANTISED].sd), most = fmax(most, a->loss[MX_EVAL_QUANTISED].sd);
    if (!a->reference) continue;
    arms++;
    lost += a->diverged || a->failed;
    worse += a->resolved[MX_EVAL_QUANTISED] > 0;
    better += a->resolved[MX_EVAL_QUANTISED] < 0;
    unfinished += !a->finished;
    alone += a->finished && isnan(b->mean);
    if (isnan(b->mean)) continue;
    single += isnan(b->low);
    if (!best || b->mean < best->behind[MX_EVAL_QUANTISED].mean) best = a;
    if (!worst || b->mean > worst->behind[MX_EVAL_QUANTISED].mean) worst = a;
  }
  if (!arms) {
    say(&v, "There is no arm with a reference to compare it with.");
    return v.n;
  }
  say(&v,
      "Of %zu arm%s, %zu %s a higher validation loss than the reference and %zu a lower one at %g %% confidence; %zu cannot be told from it.",
      arms, arms == 1 ? "" : "s", worse, worse == 1 ? "has" : "have", better, 100 * r->confidence,
      arms - worse - better - single - unfinished - alone);
  if (unfinished) say(&v, " %zu %s no finished run.", unfinished, unfinished == 1 ? "has" : "have");
  if (alone) say(&v, " %zu %s no finished run beside one of the reference.", alone, alone == 1 ? "has" : "have");
  if (single) say(&v, " %zu %s one pair of runs and so no interval: more seeds would tell.", single, single == 1 ? "arm has" : "arms have");
  if (best && best != worst) {
    say(&v, " The lowest difference is that of ");
    say_arm(&v, best);
    say(&v, ", the highest that of ");
    say_arm(&v, worst);
    say(&v, ".");
  } else if (best) {
    say(&v, " It is ");
    say_arm(&v, best);
    say(&v, ".");
  }
  if (!isnan(least)) say(&v, " Between seeds the reference's loss varies by %.4f", least);
  if (most > least) say(&v, " to %.4f", most);
  if (!isnan(least)) say(&v, " (standard deviation).");
  if (lost) say(&v, " %zu arm%s runs that diverged or failed.", lost, lost == 1 ? " has" : "s have");
  say_unlike(&v, r);
  say_claims(&v, r);
  return v.n;
}
