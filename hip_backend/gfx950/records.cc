/* Keeps the records of a profile: what was compared, whether everything is explained, and the names of types and pairs. */
#include "hip_backend/gfx950/run.h"

using namespace gfx950_run;

bool gfx950_profile::complete() const {
  for (const gfx950_answer &a : answers)
    if (a.choices.empty()) return false;
  for (const gfx950_sums &s : sums)
    if (!s.fits) return false;
  return differ() == 0;
}
const gfx950_sums *gfx950_profile::sums_of(int pair) const {
  for (const gfx950_sums &s : sums)
    for (int p : s.pairs)
      if (p == pair) return &s;
  return nullptr;
}
uint64_t gfx950_profile::words() const {
  uint64_t n = 0;
  for (const gfx950_held &h : held) n += h.words;
  return n;
}
uint64_t gfx950_profile::differ() const {
  uint64_t n = 0;
  for (const gfx950_held &h : held) n += h.differ;
  return n;
}

void gfx950_run::count(gfx950_held *h, size_t cases, const words &got, const words &want, const std::string &where) {
  h->cases += cases;
  for (size_t i = 0; i < got.size(); i++, h->words++)
    if (got[i] != want[i]) {
      if (!h->differ++) h->first = where + ", word " + std::to_string(i) + ": " + hex(got[i]) + ", expected " + hex(want[i]);
    }
}

const char *gfx950_type_name(int type) {
  static const char *const names[] = {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"};
  return names[type];
}
std::string gfx950_pair_name(int pair, char between) {
  return std::string(edge_of(pair) == 16 ? "16x16x128" : "32x32x64") + between + gfx950_type_name(a_of(pair)) + between +
         gfx950_type_name(b_of(pair));
}
