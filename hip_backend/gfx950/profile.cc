/* Makes the profile of a device: it asks for the rules, finds the sums, and checks everything else against them. */
#include "hip_backend/gfx950/profile.h"

#include "hip_backend/gfx950/run.h"

using namespace gfx950_run;

bool gfx950_profile_run(gfx950_profile *out, mxh_device *dev, const gfx950_profile_options &o, std::string *why) {
  device d = {dev, o.play, ""};
  generator g = {o.seed * 2 + 1};
  *out = gfx950_profile();
  out->rules = gfx950_rules_default();
  bool fine = true;
  for (int rule = 0; fine && gfx950_rule_name(rule, nullptr); rule++) {
    const char *name = gfx950_rule_name(rule, nullptr);
    if (o.doing) o.doing(std::string("the probes of ") + name);
    fine = ask_rule(out, &d, rule, &g);
    if (!fine || !o.found) continue;
    const gfx950_answer &a = out->answers.back();
    o.found(a.rule + ": " + (a.choices.empty() ? "OTHER" : gfx950_choice_name(rule, a.choices[0], nullptr)) + ", " + a.evidence);
  }
  fine = fine && find_sums(out, &d, o);
  for (const gfx950_sums &s : out->sums)
    if (o.found) o.found("sums of " + gfx950_sums_pairs(s) + ": " + gfx950_sums_text(s));
  fine = fine && hold(out, &d, o.seed + 1, o.suites, o);
  if (!fine) *why = d.why;
  return fine;
}
