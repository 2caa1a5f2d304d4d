/* Computes how far repeats tell the bias of a product. Its square is the mean of <e_r, e_s> over pairs of repeats r, s, e the error: what is random
 * in one has nothing to do with what is in another. Values of a product are not independent, since an operand's error is in a whole row or column of
 * it, so that the interval is that of a jackknife over the repeats. */
#include "bias.h"

#include <math.h>
#include <stdlib.h>

/* Inner products of longer vectors are estimated by sums of values with random signs (Charikar, Chen, Farach-Colton 2004): their noise widens the interval. */
enum { MOST_WIDE = 1 << 16, MOST_GROUPS = 64 };

int mxi_bias_make(mxi_bias *b, size_t n, int repeats) {
  *b = (mxi_bias){n, n < MOST_WIDE ? n : MOST_WIDE, repeats, repeats < MOST_GROUPS ? repeats : MOST_GROUPS, NULL};
  return (b->error = calloc(b->width * (size_t)b->groups + 1, sizeof *b->error)) != NULL;
}

void mxi_bias_free(mxi_bias *b) {
  free(b->error);
  b->error = NULL;
}

/* Steele, Lea and Flood's finaliser: bits of an index that have nothing to do with its row or column. */
static uint64_t mix(uint64_t i) {
  i = (i ^ i >> 30) * 0xBF58476D1CE4E5B9u;
  i = (i ^ i >> 27) * 0x94D049BB133111EBu;
  return i ^ i >> 31;
}

static int group_of(const mxi_bias *b, int r) { return (int)((int64_t)r * b->groups / b->repeats); }

void mxi_bias_add(mxi_bias *b, int r, const double *exact, const double *other) {
  const int g = group_of(b, r);
  int members = 0;
  for (int k = 0; k < b->repeats; k++) members += group_of(b, k) == g;
  double *to = b->error + (size_t)g * b->width;
  for (size_t i = 0; i < b->n; i++) {
    const double e = (other[i] - exact[i]) / members;
    if (!isfinite(e)) continue;
    const uint64_t h = b->n == b->width ? i << 1 : mix(i + 1);
    to[(h >> 1) % b->width] += h & 1 ? -e : e;
  }
}

static double inner(const double *a, const double *b, size_t n) {
  double s = 0;
  for (size_t i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}

/* The 97.5 % quantile of Student's t, by Cornish and Fisher's expansion: within 0.5 % from five degrees of freedom on, too small by a tenth at two. */
static double quantile(int degrees) { return 1.959964 + 2.372271 / degrees + 2.822499 / ((double)degrees * degrees); }

void mxi_bias_end(mx_product_error *out, const mxi_bias *b, double xx) {
  const int n = b->groups;
  const size_t d = b->width;
  double *sum = calloc(d + 1, sizeof *sum), own = 0, mean = 0, squares = 0, left[MOST_GROUPS] = {0};
  out->bias_low = 0;
  out->bias_high = out->relative; /* of no more than two repeats nothing is known but that it is no more than the error */
  for (int g = 0; g < n && sum; g++) {
    const double *e = b->error + (size_t)g * d;
    for (size_t i = 0; i < d; i++) sum[i] += e[i];
    own += inner(e, e, d);
  }
  if (sum && n > 2 && xx > 0) {
    const double all = inner(sum, sum, d);
    for (int g = 0; g < n; g++) { /* without group g */
      const double *e = b->error + (size_t)g * d, ee = inner(e, e, d);
      left[g] = (all - 2 * inner(sum, e, d) + ee - (own - ee)) / ((double)(n - 1) * (n - 2));
      mean += left[g] / n;
    }
    for (int g = 0; g < n; g++) squares += (left[g] - mean) * (left[g] - mean);
    const double half = quantile(n - 1) * sqrt(squares * (n - 1) / n) / xx, at = out->bias * out->bias;
    out->bias_low = at > half ? sqrt(at - half) : 0;
    out->bias_high = sqrt(at + half);
  }
  free(sum);
}
