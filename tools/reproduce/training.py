#!/usr/bin/env python3
"""Writes the part "Training" of docs/FINDINGS.md from the reports of sweeps, and the results of their runs as CSV beside the sweeps.

    training.py REPORTS PAGE NAME...
    training.py REPORTS - NAME...      prints the sections of these sweeps and writes nothing

REPORTS has NAME.json (mxgold report --json) and NAME.jsonl (results.jsonl) for each sweep configs/findings/NAME.json that was run. A name without them keeps the
section and the claims that PAGE has of it, so that sweeps can be added one at a time; one that PAGE has not either is listed as not run. No figure stands here or
in training.md: every one comes from the reports."""

import csv
import json
import os
import re
import sys

reports, page, names = sys.argv[1], sys.argv[2], sys.argv[3:]
SWEEPS = os.path.join("configs", "findings")
HERE = os.path.dirname(os.path.abspath(__file__))
TENSORS = "# Findings: the papers' tensor tables"
VERDICTS = (("agrees", "What the laptop agrees with"), ("disagrees", "What it disagrees with"), ("cannot tell", "What it cannot tell"))


def load(*parts):
    with open(os.path.join(*parts)) as f:
        return json.load(f)


def read_page():
    """The page, and what it has already of each sweep: the lines of its section, and its rows of the tables of claims by verdict."""
    with open(page) as f:
        old = f.read()
    sections, claimed = {}, {}
    before, _, after = old[: old.index(TENSORS)].partition("\n## Sweeps\n")
    for part in re.split("^### ", after, flags=re.M)[1:]:
        sections[part.split("\n", 1)[0]] = ("### " + part.rstrip()).split("\n") + [""]
    for verdict, head in VERDICTS:
        part = before.partition(f"### {head} (")[2].partition("\n### ")[0]
        for line in part.split("\n"):
            of = re.search(r"\| \[([^]]+)\]\(#[^)]+\) \|$", line)
            if of:
                claimed.setdefault((verdict, of[1]), []).append(line)
    return old, sections, claimed


def is_there(name):
    return os.path.exists(os.path.join(reports, name + ".json")) and os.path.exists(os.path.join(reports, name + ".jsonl"))


def digits(*values):
    """Decimals of a column of differences: four below 1, fewer above."""
    known = [abs(v) for v in values if v]
    return 4 if not known or max(known) < 1 else 3 if max(known) < 10 else 2


def interval(row, key, decimals):
    mean, low, high = row[key + "mean"], row[key + "low"], row[key + "high"]
    if mean is None:
        return ""
    if low is None:
        return f"{mean:+.{decimals}f}"
    if mean == low == high == 0:
        return "0, in each run"
    return f"{mean:+.{decimals}f} ({low:.{decimals}f} to {high:.{decimals}f})"


def table(heads, rows):
    out = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return out + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows] + [""]


def claims(report):
    rows = report.get("claims", [])
    if not rows:
        return []
    n = digits(*(r["difference_mean"] for r in rows))
    lines = []
    for r in rows:
        kind = f", within {r['within']}" if r["within"] else ""
        forward = " (FP32 forward pass)" if r["of"] == "val_loss_fp32" else ""
        lines.append([r["says"], r["source"], f"{r['less']} - {r['more']}{kind}{forward}", interval(r, "difference_", n), f"**{r['verdict']}**"])
    return table(["claim", "source", "loss of", "difference", ""], lines)


def arms(report):
    rows = [a for a in report["arms"] if a["reference"]]
    if len(rows) > 40:
        return []
    n = digits(*(a["behind_mean"] for a in rows))
    lines = []
    for a in rows:
        lost = a["diverged"] + a["failed"]
        extra = a["extra_steps_mean"]
        lines.append([a["arm"] + (f" ({lost} of {a['runs']} runs diverged or failed)" if lost else ""), str(a["finished"]), interval(a, "behind_", n),
                      a["verdict"], interval(a, "behind_fp32_", n), "" if extra is None else f"{100 * extra:+.1f}" if extra < 10 else "over 1,000"])
    return table(["arm", "seeds", "behind FP32", "", "with an FP32 forward pass", "extra steps, %"], lines)


def effects(report):
    out = []
    for key, heads in (("effects", ["knob", "effect on the loss", "p", "with an FP32 forward pass"]), ("interactions", ["knob", "together with", "effect", "p"])):
        rows = [r for r in report.get(key, []) if r["mean"] is not None and (key == "effects" or (r["p_holm"] is not None and r["p_holm"] < 0.05))]
        n = digits(*(r["mean"] for r in rows))
        lines = []
        for r in rows:
            knob = f"{r['axis']}: {r['value']} instead of {r['instead_of']}"
            p = "" if r["p_holm"] is None else f"{r['p_holm']:.2g}"
            if key == "effects":
                lines.append([knob, interval(r, "", n), p, interval(r, "fp32_", n)])
            else:
                lines.append([knob, f"{r['with_axis']}: {r['with_value']} instead of {r['with_instead_of']}", interval(r, "", n), p])
        if lines and len(lines) <= 40:
            out += table(heads, lines)
    return out


def noise(report):
    spread = [a["loss_sd"] for a in report["arms"] if not a["reference"] and a["loss_sd"] is not None]
    losses = [a["loss_mean"] for a in report["arms"] if not a["reference"] and a["loss_mean"] is not None]
    if not spread:
        return ""
    one = f"{min(spread):.2g}" == f"{max(spread):.2g}"
    return (f"FP32 ends at {losses[0]:.4g}" if f"{min(losses):.4g}" == f"{max(losses):.4g}" else f"FP32 ends at {min(losses):.4g} to {max(losses):.4g}") + (
        f"; between its seeds that varies by {spread[0]:.2g}" if one else f"; between its seeds that varies by {min(spread):.2g} to {max(spread):.2g}") + " (standard deviation)."


def section(name):
    sweep, report = load(SWEEPS, name + ".json"), load(reports, name + ".json")
    seeds = sweep.get("seeds", 1) if isinstance(sweep.get("seeds", 1), int) else len(sweep["seeds"])
    there = max(a["finished"] for a in report["arms"])
    fewer = f" Of its {seeds} seeds {there} have been run here." if there < seeds else ""
    out = [f"### {name}", "", sweep.get("about", ""), noise(report) + fewer, "", f"Command: `make reproduce ONLY={name}`", ""]
    return out + claims(report) + arms(report) + effects(report)


def claimed_by(name, verdict):
    lines = []
    for r in load(reports, name + ".json").get("claims", []):
        if r["verdict"] == verdict or (verdict == "cannot tell" and r["verdict"] == "too few seeds"):
            lines.append([r["says"], r["source"], f"{r['less']} - {r['more']}", interval(r, "difference_", digits(r["difference_mean"])), f"[{name}](#{name})"])
    return table(["claim", "source", "loss of", "difference", "sweep"], lines)[2:-1]


def summary(shown, claimed):
    out = []
    for verdict, head in VERDICTS:
        rows = [row for name in shown for row in (claimed_by(name, verdict) if is_there(name) else claimed.get((verdict, name), []))]
        if rows:
            out += [f"### {head} ({len(rows)})", ""] + table(["claim", "source", "loss of", "difference", "sweep"], [])[:2] + rows + [""]
    return out


def fill(text, rendered):
    """{{SWEEP: ARMS}} becomes the figure that the sweep's section has of it: the difference of a claim, what an arm is behind FP32 (with an
    FP32 forward pass where ARMS ends in those words in brackets), or a knob's effect."""

    def figure(of):
        name, what = of[1], of[2]
        arm = what.removesuffix(" (FP32 forward pass)")
        if name not in rendered:
            return "(not run here)"
        for cells in (line[2:-2].split(" | ") for line in rendered[name] if line.startswith("| ")):
            if cells[0] == what or cells[0].partition(" (")[0] == what:
                return cells[2] if cells[1].isdigit() else cells[1]
            if len(cells) > 3 and cells[2].partition(", within ")[0] == what:
                return cells[3]
            if arm != what and cells[0].partition(" (")[0] == arm and cells[1].isdigit():
                return cells[4]
        raise SystemExit(f"training.md: {name} has no figure of '{what}'")

    return re.sub(r"\{\{([\w-]+): (.*?)\}\}", figure, text)


def write_results(name):
    with open(os.path.join(reports, name + ".jsonl")) as f:
        rows = [json.loads(line) for line in f]
    os.makedirs(os.path.join(SWEEPS, "results"), exist_ok=True)
    with open(os.path.join(SWEEPS, "results", name + ".csv"), "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["arm", "seed", "end", "val_loss", "val_loss_fp32"])
        for r in rows:
            out.writerow([r["arm"], r["seed"], r["end"], r["val_loss"], r["val_loss_fp32"]])


if page == "-":
    sys.exit(print("\n".join(line for name in names if is_there(name) for line in section(name))))
old, sections, claimed = read_page()
shown = [n for n in names if is_there(n) or n in sections]
absent = [n for n in names if n not in shown]
rendered = {n: section(n) if is_there(n) else sections[n] for n in shown}
with open(os.path.join(HERE, "training.md")) as f:
    head = fill(f.read(), rendered).rstrip().split("\n")
claims_told = ["", "## Claims", ""] + summary(shown, claimed)
lines = head + claims_told + ["## Sweeps", ""]
for name in shown:
    if is_there(name):
        write_results(name)
    lines += rendered[name]
if absent:
    lines += ["### Not run here", ""] + [f"- {n}: {load(SWEEPS, n + '.json').get('about', '')} `make reproduce ONLY={n}`" for n in absent] + [""]
with open(page + ".new", "w") as f:
    f.write("\n".join(lines).rstrip() + "\n\n" + old[old.index(TENSORS) :])
os.replace(page + ".new", page)
print("\n".join(head + claims_told))
