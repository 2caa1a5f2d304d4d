/* Writes what hip-diff found as a table with a row for each operation, as JSON and as HTML. */
#include "hip_backend/compare/report.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hip_backend/gfx950/profile.h"
#include "mxgold/file.h"

namespace {
const char *verdict(const mxh_row &r) {
  return r.died ? "DIED" : r.skipped ? "skipped" : !r.differences ? r.lost ? "cut" : "equal" : r.open ? "open" : "DIFFERS";
}
/* The number of cases that ran, and out of how many if some were lost. */
std::string cases_of(const mxh_row &r) { return std::to_string(r.cases) + (r.lost ? "/" + std::to_string(r.cases + r.lost) : ""); }

std::string now(const char *format) {
  char text[32];
  const time_t t = time(nullptr);
  struct tm tm;
  gmtime_r(&t, &tm);
  strftime(text, sizeof text, format, &tm);
  return text;
}
bool silicon(const mxh_report &r) { return r.device.kind != "host"; }
const char *state(const mxh_report &r) {
  for (const mxh_row &row : r.rows)
    if (row.died) return "died";
  return r.whole ? "whole" : "unfinished";
}
std::vector<std::pair<const char *, std::string>> facts(const mxh_report &r) {
  return {{"device", r.device.name},
          {"kind", r.device.kind},
          {"arch", r.device.arch},
          {"driver", r.device.driver},
          {"compiler", r.compilers},
          {"commit", r.commit},
          {"version", MX_VERSION},
          {"date", now("%Y-%m-%dT%H:%M:%SZ")},
          {"oracle", r.run->oracle->name},
          {"silicon", silicon(r) ? "run" : "skipped"},
          {"state", state(r)}};
}
std::string html_text(const std::string &s) {
  std::string out;
  for (const char c : s) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : (unsigned char)c < 32 ? " " : std::string(1, c);
  return out;
}
} // namespace

void mxh_report_print(const mxh_report &report) {
  printf("%-44s %8s %14s %12s  %s\n", "operation", "cases", "values", "differences", "verdict");
  unsigned long long equal = 0, differ = 0, skipped = 0, open = 0, died = 0, cut = 0, not_run = 0;
  for (const mxh_row &r : report.rows) {
    printf("%-44s %8s %14llu %12llu  %s\n", r.operation.c_str(), cases_of(r).c_str(), (unsigned long long)r.values,
           (unsigned long long)r.differences, verdict(r));
    if (!r.first.empty()) printf("    %s\n", r.first.c_str());
    if (!r.note.empty()) printf("    %s\n", r.note.c_str());
    not_run += r.not_run;
    (r.died ? died : r.skipped ? skipped : !r.differences ? r.lost ? cut : equal : r.open ? open : differ)++;
  }
  printf("%llu operations equal, %llu differ, ", equal, differ);
  if (open) printf("%llu open, ", open);
  if (died) printf("%llu DIED, ", died);
  if (cut) printf("%llu cut (cases run/expected), ", cut);
  printf("%llu skipped; %llu cases not run (the rows say why); %.1f s, %.1f of them in calls of the device\n", skipped, not_run, report.seconds,
         report.device_seconds);
  if (!report.run->profile && !report.found.empty()) printf("rules that no document states, as far as they were found:\n");
  for (size_t i = 0; !report.run->profile && i < report.found.size(); i++) printf("  %s\n", report.found[i].c_str());
  if (!report.run->profile) return;
  printf("rules that no document states, as found on this device%s:\n",
         silicon(report) ? "" : " (the host runtime imitates the suggested ones)");
  gfx950_profile_print(*report.run->profile, false);
}

mx_status mxh_report_json(const mxh_report &report, const char *path, mx_error *err) {
  mx_text text; /* written under a name of this process's own first, since another run or a child may write the same report */
  if (const mx_status status = mx_text_begin(&text, path, err)) return status;
  json_t *o = json_object(), *operations = json_array(), *bench = json_array();
  json_object_set_new(o, "format", json_string("mxgold hip-diff 1"));
  for (const auto &fact : facts(report)) json_object_set_new(o, fact.first, json_string(fact.second.c_str()));
  json_object_set_new(o, "seconds", json_real(report.seconds));
  json_object_set_new(o, "device_seconds", json_real(report.device_seconds));
  for (const mxh_row &r : report.rows)
    json_array_append_new(operations,
                          json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s}", "group", r.group.c_str(), "operation",
                                    r.operation.c_str(), "cases", (json_int_t)r.cases, "expected", (json_int_t)(r.cases + r.lost), "values",
                                    (json_int_t)r.values, "differences", (json_int_t)r.differences, "not_run", (json_int_t)r.not_run, "verdict",
                                    verdict(r), "first", r.first.c_str(), "note", r.note.c_str()));
  for (const mxh_bench_row &b : report.bench)
    json_array_append_new(bench, json_pack("{s:s, s:f, s:f, s:f}", "preset", b.preset.c_str(), "quantize_bytes_s", b.quantize,
                                           "dequantize_bytes_s", b.dequantize, "copy_bytes_s", b.copy));
  json_object_set_new(o, "operations", operations);
  json_object_set_new(o, "bench", bench);
  json_t *found = json_array();
  for (const std::string &line : report.found) json_array_append_new(found, json_string(line.c_str()));
  json_object_set_new(o, "found", found);
  if (report.run->profile) {
    const std::string date = now("%Y-%m-%d"), name = (silicon(report) ? "gfx950@" : "host@") + date;
    json_object_set_new(
        o, "profile", gfx950_profile_json(*report.run->profile, name.c_str(), report.run->dev, date.c_str(), report.commit, report.compilers));
  }
  json_dumpf(o, text.to, JSON_INDENT(1));
  json_decref(o);
  return mx_text_end(&text, err);
}

mx_status mxh_report_html(const mxh_report &report, const char *path, mx_error *err) {
  mx_text text;
  if (const mx_status status = mx_text_begin(&text, path, err)) return status;
  FILE *f = text.to;
  fprintf(
      f,
      "<!doctype html><meta charset=\"utf-8\"><title>mxgold hip-diff: %s</title>\n"
      "<style>body{font:15px/1.4 sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:.2em .8em;border-bottom:1px solid #ccc;"
      "text-align:left}.n{text-align:right}.DIFFERS,.DIED,.cut{background:#fbb}.open{background:#ffd}.skipped{color:#777}</style>\n<h1>mxgold "
      "hip-diff</h1>\n<table>\n",
      html_text(report.device.name).c_str());
  for (const auto &fact : facts(report)) fprintf(f, "<tr><th>%s<td>%s\n", fact.first, html_text(fact.second).c_str());
  fprintf(f,
          "</table>\n<h2>Operations</h2>\n<table><tr><th>operation<th>group<th>cases<th>values<th>differences<th>not run<th>verdict<th>first "
          "difference<th>note\n");
  for (const mxh_row &r : report.rows)
    fprintf(f, "<tr class=\"%s\"><td>%s<td>%s<td class=n>%s<td class=n>%llu<td class=n>%llu<td class=n>%llu<td>%s<td>%s<td>%s\n", verdict(r),
            html_text(r.operation).c_str(), html_text(r.group).c_str(), cases_of(r).c_str(), (unsigned long long)r.values,
            (unsigned long long)r.differences, (unsigned long long)r.not_run, verdict(r), html_text(r.first).c_str(),
            html_text(r.note).c_str());
  fprintf(f, "</table>\n");
  if (!report.bench.empty()) {
    fprintf(f, "<h2>Speed, bytes read and written per second</h2>\n<table><tr><th>preset<th>quantize<th>dequantize<th>copy\n");
    for (const mxh_bench_row &b : report.bench)
      fprintf(f, "<tr><td>%s<td class=n>%.3g<td class=n>%.3g<td class=n>%.3g\n", b.preset.c_str(), b.quantize, b.dequantize, b.copy);
    fprintf(f, "</table>\n");
  }
  if (const gfx950_profile *p = report.run->profile) {
    fprintf(f, "<h2>Rules that no document states%s</h2>\n<table><tr><th>rule<th>answer<th>meaning<th>evidence\n",
            silicon(report) ? "" : ", as the host runtime imitates them");
    for (size_t i = 0; i < p->answers.size(); i++) {
      const gfx950_answer &a = p->answers[i];
      const char *says = "none of the known answers", *name = a.choices.empty() ? "other" : gfx950_choice_name((int)i, a.choices[0], &says);
      fprintf(f, "<tr><td>%s<td>%s<td>%s<td>%s\n", html_text(a.rule).c_str(), name, html_text(says).c_str(), html_text(a.evidence).c_str());
    }
    for (const gfx950_sums &s : p->sums)
      fprintf(f, "<tr><td>sums<td>%s<td>%s<td>%s\n", s.fits ? "found" : "none", gfx950_sums_pairs(s).c_str(), gfx950_sums_text(s).c_str());
    fprintf(f, "</table>\n");
  }
  if (!report.run->profile && !report.found.empty()) {
    fprintf(f, "<h2>Rules that no document states, as far as they were found</h2>\n<ul>\n");
    for (const std::string &line : report.found) fprintf(f, "<li>%s\n", html_text(line).c_str());
    fprintf(f, "</ul>\n");
  }
  return mx_text_end(&text, err);
}
