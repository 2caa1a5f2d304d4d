/* Writes a device profile as text, as JSON, and as a preset. */
#include "hip_backend/gfx950/profile.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mxgold/file.h"
#include "mxgold/spec.h"

namespace {
const char *choice_of(const gfx950_rules &rules, const char *rule) {
  gfx950_rules copy = rules;
  for (int i = 0; gfx950_rule_name(i, nullptr); i++)
    if (!strcmp(gfx950_rule_name(i, nullptr), rule)) return gfx950_choice_name(i, *gfx950_rule_of(&copy, i), nullptr);
  return "";
}

/* The keys of a cast to one of the FP8 types, with MODE.FP16_OVFL at 0, as HIP sets it. */
std::string cast_keys(const gfx950_rules &r, bool bf8) {
  std::string keys = r.fp8_overflow == GFX950_fp8_overflow_SATURATE ? "elem.overflow=saturate" : "elem.overflow=ieee";
  const bool drop = r.nan_fp8 == GFX950_nan_fp8_DROP, code7e = bf8 && r.nan_bf8 == GFX950_nan_bf8_CODE_7E;
  if (drop && !code7e) keys += " elem.nan=posmax";
  if (!drop && code7e) keys += " elem.nan=code=126";
  if (r.nan_fp8 == GFX950_nan_fp8_SET) return keys + " (NaN: always negative, which no key expresses)";
  if (drop && code7e) keys += " (NaN: code 126 without its sign, which no key expresses)";
  return keys;
}

json_t *spec_json(const std::string &text) {
  json_t *o = json_object();
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find(' ', at), eq = text.find('=', at);
    if (end == std::string::npos) end = text.size();
    json_object_set_new(o, text.substr(at, eq - at).c_str(), json_string(text.substr(eq + 1, end - eq - 1).c_str()));
    at = end + 1;
  }
  return o;
}
} // namespace

std::string gfx950_profile_spec(const gfx950_profile &p) {
  const gfx950_rules &r = p.rules;
  std::string keys =
      "elem=e2m1 scale=e8m0 block=1x32 scale.rule=even elem.round=rne elem.overflow=saturate elem.nan=" + std::string(choice_of(r, "nan_fp4"));
  if (r.f32_subnormal == GFX950_f32_subnormal_FLUSH) keys += " flush=on";
  return keys;
}

/* Writes the file completely or not at all, since another run may write the profile of the same day. */
static bool write_whole(const std::string &path, const std::string &words) {
  mx_text text;
  mx_error err;
  if (mx_text_begin(&text, path.c_str(), &err)) return false;
  fputs(words.c_str(), text.to);
  return !mx_text_end(&text, &err);
}
static bool dump(json_t *o, const std::string &path) {
  char *words = json_dumps(o, JSON_INDENT(2));
  const bool fine = words && write_whole(path, words);
  free(words);
  json_decref(o);
  return fine;
}

json_t *gfx950_profile_json(const gfx950_profile &p, const char *name, mxh_device *dev, const char *date, const char *commit,
                            const char *compilers) {
  const bool silicon = strcmp(mxh_kind(dev), "host") != 0;
  json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b}", "format", "mxgold device profile 1", "preset", name, "device",
                        mxh_name(dev), "arch", mxh_arch(dev), "driver", mxh_driver(dev), "date", date, "commit", commit, "compilers", compilers,
                        "silicon", (int)silicon, "complete", (int)p.complete());
  json_t *rules = json_object(), *sums = json_array(), *held = json_array();
  for (const gfx950_answer &a : p.answers) {
    int rule = 0;
    const char *doc = "", *says = "";
    while (a.rule != gfx950_rule_name(rule, &doc)) rule++;
    json_t *one = json_pack("{s:s, s:I, s:s}", "question", doc, "words", (json_int_t)a.words, "evidence", a.evidence.c_str());
    const char *answer = a.choices.empty() ? "other" : gfx950_choice_name(rule, a.choices[0], &says);
    json_object_set_new(one, "answer", json_string(answer));
    json_object_set_new(one, "meaning", json_string(a.choices.empty() ? "none of the answers that this program knows" : says));
    if (a.choices.size() > 1) {
      json_t *same = json_array();
      for (size_t i = 1; i < a.choices.size(); i++) json_array_append_new(same, json_string(gfx950_choice_name(rule, a.choices[i], nullptr)));
      json_object_set_new(one, "same_bits", same); /* with the same answers to the other rules */
    }
    json_object_set_new(rules, a.rule.c_str(), one);
  }
  for (const gfx950_sums &s : p.sums) {
    json_t *same = json_array();
    for (const std::string &n : s.same) json_array_append_new(same, json_string(n.c_str()));
    json_t *pairs = json_array();
    for (int pair : s.pairs) json_array_append_new(pairs, json_string(gfx950_pair_name(pair).c_str()));
    json_array_append_new(sums, json_pack("{s:s, s:o, s:I, s:b, s:s, s:o}", "instruction", s.types.c_str(), "pairs", pairs, "words",
                                          (json_int_t)s.words, "fits", s.fits, "model", s.model.c_str(), "same_bits", same));
  }
  for (const gfx950_held &h : p.held)
    json_array_append_new(held, json_pack("{s:s, s:I, s:I, s:I, s:s, s:s}", "instruction", h.instruction.c_str(), "cases", (json_int_t)h.cases,
                                          "words", (json_int_t)h.words, "differ", (json_int_t)h.differ, "first", h.first.c_str(), "note",
                                          h.note.c_str()));
  json_object_set_new(o, "rules", rules);
  json_object_set_new(o, "sums", sums);
  json_object_set_new(o, "held", held);
  const gfx950_rules &r = p.rules;
  const bool lfsr = r.sr_seed == GFX950_sr_seed_TOP && r.sr_next == GFX950_sr_next_PRNG && r.sr_subnormal == GFX950_sr_subnormal_FIXED;
  json_object_set_new(o, "spec", spec_json(gfx950_profile_spec(p)));
  json_object_set_new(o, "casts",
                      json_pack("{s:s, s:s, s:s}", "e4m3", cast_keys(r, false).c_str(), "e5m2", cast_keys(r, true).c_str(), "stochastic",
                                lfsr ? "elem.round=sr sr.source=amd_lfsr" : "sr.source=given, with the words that the rules sr_* make"));
  json_object_set_new(o, "mma", json_string(gfx950_profile_accum(p, GFX950_PAIR_MXFP4).c_str()));
  return o;
}

bool gfx950_profile_write(const gfx950_profile &p, const char *folder, mxh_device *dev, const char *commit, const char *compilers,
                          std::string *said) {
  char date[32];
  const time_t t = time(nullptr);
  strftime(date, sizeof date, "%Y-%m-%d", gmtime(&t));
  const std::string name = std::string(strcmp(mxh_kind(dev), "host") ? "gfx950@" : "host@") + date, path = std::string(folder) + "/" + name,
                    accum = gfx950_profile_accum(p, GFX950_PAIR_MXFP4);
  *said = path + ".json";
  if (!dump(gfx950_profile_json(p, name.c_str(), dev, date, commit, compilers), *said)) return false;
  *said = path + ".spec.json";
  if (!dump(spec_json(gfx950_profile_spec(p)), *said)) return false;
  size_t others = 0; /* pairs that are not summed as MXFP4 is */
  for (int pair = 0; pair < GFX950_PAIRS; pair++) {
    const bool main = pair == GFX950_PAIR_MXFP4;
    const std::string text = gfx950_profile_accum(p, pair);
    *said = path + (main ? "" : "." + gfx950_pair_name(pair, '-')) + ".accum";
    if (text.empty() || (!main && p.sums_of(pair) == p.sums_of(GFX950_PAIR_MXFP4))) {
      remove(said->c_str()); /* a file of an earlier run would contradict this one */
      continue;
    }
    others += !main;
    if (!write_whole(*said, text + "\n")) return false;
  }
  *said = "profile " + path + ".json; quantize --spec " + path + ".spec.json" +
          (accum.empty() ? "" : "; mma --model, gemm --accum \"$(cat " + path + ".accum)\"") +
          (others ? ", and " + std::to_string(others) + " pairs of types have a model of their own: " + path + ".SHAPE-A-B.accum" : "");
  return true;
}

std::string gfx950_sums_pairs(const gfx950_sums &s) {
  if (s.pairs.size() == GFX950_PAIRS) return "all 50 pairs of types";
  std::string all;
  for (int pair : s.pairs) all += (all.empty() ? "" : ", ") + gfx950_pair_name(pair);
  return all;
}
std::string gfx950_sums_text(const gfx950_sums &s) {
  return s.fits            ? s.model
         : s.model.empty() ? "NO MODEL WAS LOOKED FOR, since none was found for other pairs"
                           : "NO MODEL FITS; nearest " + s.model;
}

void gfx950_profile_print(const gfx950_profile &p, bool verbose) {
  for (size_t i = 0; i < p.answers.size(); i++) {
    const char *says = "none of the known answers";
    const char *name = p.answers[i].choices.empty() ? "OTHER" : gfx950_choice_name((int)i, p.answers[i].choices[0], &says);
    printf("  %-15s %-10s %s\n", p.answers[i].rule.c_str(), name, says);
    if (p.answers[i].choices.empty() || verbose) printf("                  %s\n", p.answers[i].evidence.c_str());
  }
  for (const gfx950_sums &s : p.sums) printf("  sums of %s: %s\n", gfx950_sums_pairs(s).c_str(), gfx950_sums_text(s).c_str());
}
