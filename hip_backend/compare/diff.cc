/* Keeps the rows of the comparison, with their counts of cases and of values that differ. */
#include "hip_backend/compare/diff.h"

#include <string.h>

static mxh_row &row_of(mxh_run *run, const char *operation) {
  for (auto &r : run->rows)
    if (r.operation == operation) return r;
  mxh_row row;
  row.group = run->group;
  row.operation = operation;
  run->rows.push_back(row);
  return run->rows.back();
}
bool mxh_part(mxh_run *run, int part) {
  if (part < run->first_part || (run->counting && part > run->last_part)) return false;
  if (run->part_begun) run->part_begun(part);
  return true;
}
void mxh_begin(mxh_run *run, const std::string &operation, const std::string &what) {
  if (run->begun) run->begun(operation, what);
}
void mxh_found(mxh_run *run, const std::string &line) {
  if (run->found) run->found(line);
}
void mxh_add(mxh_run *run, const mxh_row &row) {
  run->rows.push_back(row);
  if (run->row_changed) run->row_changed(row);
}
void mxh_count(mxh_run *run, const char *operation, uint64_t n, uint64_t bad, const std::string &what) {
  mxh_row &r = row_of(run, operation);
  r.cases++;
  r.values += n;
  if (bad && !r.differences) r.first = what;
  r.differences += bad;
  if (run->row_changed) run->row_changed(r);
}
void mxh_decline(mxh_run *run, const char *operation, const std::string &why) {
  mxh_row &r = row_of(run, operation);
  const std::string said = "not run: " + why;
  r.not_run++;
  if (r.note.find(said) == std::string::npos) r.note += (r.note.empty() ? "" : "; ") + said;
  if (run->row_changed) run->row_changed(r);
}
void mxh_skip(mxh_run *run, const char *operation, const std::string &why) {
  mxh_row row;
  row.group = run->group;
  row.operation = operation;
  row.first = why;
  row.skipped = true;
  mxh_add(run, row);
}
uint64_t mxh_differ(const void *a, const void *b, size_t n, size_t unit) {
  uint64_t bad = 0;
  if (n && !memcmp(a, b, n)) return 0;
  for (size_t i = 0; i + unit <= n; i += unit) bad += memcmp((const char *)a + i, (const char *)b + i, unit) != 0;
  return bad;
}
