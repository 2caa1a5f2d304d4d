/* Scores arms by arXiv 2509.17791: the gain over the reference, divided by one plus the weights of the techniques that an arm uses. */
#include <math.h>
#include <string.h>

#include "mxgold/nearest.h"
#include "report/internal.h"

/* In the order of MX_TECHNIQUE_*. */
static const char *const names[MX_TECHNIQUES + 1] = {"grad.config",  "grad.qprime", "hadamard",   "grad.scale_qprime", "sr",
                                                     "tensor_scale", "grad.tensor", "stablespam", "loss_scaling",      NULL};

const char *mx_technique_name(int technique) { return technique >= 0 && technique < MX_TECHNIQUES ? names[technique] : NULL; }

double mx_report_weight(const mx_report *r, int technique) { return technique >= 0 && technique < MX_TECHNIQUES ? r->weights[technique] : NAN; }

void mxi_score(mx_report *r) {
  for (size_t i = 0; i < r->n_arms; i++) {
    mx_report_arm *t = &r->arms[i].told;
    t->gain = t->score = t->omega = NAN;
    if (!t->finished) continue;
    t->omega = 0;
    for (int k = 0; k < MX_TECHNIQUES; k++)
      if (t->techniques >> k & 1) t->omega += r->weights[k];
    if (r->arms[i].reference == SIZE_MAX) continue;
    const double of = r->arms[r->arms[i].reference].told.loss[MX_EVAL_QUANTISED].mean, own = t->loss[MX_EVAL_QUANTISED].mean;
    t->gain = mx_score(of, own, 0);
    t->score = mx_score(of, own, t->omega);
  }
}

mx_status mx_report_weigh(mx_report *r, const char *technique, double weight, mx_error *err) {
  if (!r || !technique) return mx_fail(err, MX_ERR_ARG, "NULL argument");
  if (!(weight >= 0 && isfinite(weight))) return mx_fail(err, MX_ERR_ARG, "a weight of %g for %s: expected 0 or more", weight, technique);
  for (int k = 0; k < MX_TECHNIQUES; k++)
    if (!strcmp(technique, names[k])) {
      r->weights[k] = weight;
      mxi_score(r);
      return MX_OK;
    }
  char near[128];
  mx_nearest(near, sizeof near, technique, mx_name_in_array, names);
  return mx_fail(err, MX_ERR_ARG, "unknown technique '%s'; nearest: %s", technique, near);
}
