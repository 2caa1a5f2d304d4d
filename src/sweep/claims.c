/* Checks the claims of a sweep's file against the arms that there are: a claim about a misspelt arm must not wait for hours of runs. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "mxgold/nearest.h"
#include "sweep/internal.h"

/* Does an arm before this one have the value? */
static int was_there(const mx_sweep *s, const mx_sweep_run *r, const char *level) {
  for (const mx_sweep_run *before = s->runs; before < r; before++)
    for (size_t k = 0; k < before->n_levels; k++)
      if (!strcmp(before->levels[k].level, level)) return 1;
  return 0;
}

/* Names of arms and of values, each once; NULL past the last. */
static const char *name_at(const void *set, size_t index) {
  const mx_sweep *s = set;
  for (const mx_sweep_run *r = s->runs; r < s->runs + s->n_runs; r++) {
    if (r > s->runs && !strcmp(r->arm, r[-1].arm)) continue;
    if (!index--) return r->arm;
    for (size_t k = 0; k < r->n_levels; k++)
      if (strcmp(r->levels[k].level, r->arm) != 0 && !was_there(s, r, r->levels[k].level) && !index--) return r->levels[k].level;
  }
  return NULL;
}

static int is_known(const mx_sweep *s, const char *name) {
  for (size_t i = 0; i < s->n_runs; i++) {
    const mx_sweep_run *r = &s->runs[i];
    if (!strcmp(r->arm, name)) return 1;
    for (size_t k = 0; k < r->n_levels; k++)
      if (!strcmp(r->levels[k].level, name)) return 1;
  }
  return 0;
}

static mx_status check_one(const mx_sweep *s, json_t *claim, const char *path, size_t index, mx_error *err) {
  static const char *const names[] = {"says", "source", "less", "more", "of", "within", NULL}, *const sides[] = {"less", "more"};
  char where[48];
  snprintf(where, sizeof where, "claims[%zu]", index);
  const mx_status status = json_is_object(claim) ? mxi_only(claim, names, path, where, err) : MX_OK;
  if (status) return status;
  const json_t *of = json_object_get(claim, "of"), *within = json_object_get(claim, "within");
  if (!json_is_string(json_object_get(claim, "says")) || !json_is_string(json_object_get(claim, "less")) ||
      !json_is_string(json_object_get(claim, "more")))
    return mx_fail(err, MX_ERR_ARG, "%s: %s: expected {\"says\": \"...\", \"less\": ARM, \"more\": ARM}", path, where);
  if (of && !(json_is_string(of) && mx_choice_find("val_loss|val_loss_fp32", json_string_value(of)) >= 0))
    return mx_fail(err, MX_ERR_ARG, "%s: %s.of: expected val_loss or val_loss_fp32", path, where);
  if (within && !(json_is_number(within) && json_number_value(within) > 0))
    return mx_fail(err, MX_ERR_ARG, "%s: %s.within: expected a number above 0", path, where);
  for (int i = 0; i < 2; i++) {
    const char *name = json_string_value(json_object_get(claim, sides[i]));
    if (is_known(s, name)) continue;
    char near[160];
    mx_nearest(near, sizeof near, name, name_at, s);
    return mx_fail(err, MX_ERR_ARG, "%s: %s.%s: no arm and no value of the grid is called '%s'; nearest: %s", path, where, sides[i], name,
                   near);
  }
  return MX_OK;
}

mx_status mxi_claims_check(const mx_sweep *sweep, json_t *claims, const char *path, mx_error *err) {
  size_t i;
  json_t *claim;
  mx_status status = MX_OK;
  if (claims && !json_is_array(claims)) return mx_fail(err, MX_ERR_ARG, "%s: claims: expected a list", path);
  json_array_foreach(claims, i, claim) if (!status) status = check_one(sweep, claim, path, i, err);
  return status;
}
