"""Computes again, with numpy and scipy, what mxgold report says of a sweep: report_statistics.py FOLDER REPORT.json REPORT.csv CONFIDENCE

It reads only results.jsonl and sweep.json, and compares means, intervals, p values, Holm's correction, main effects, interactions, claims and the front with
those of the report, to 1e-10."""

import csv
import itertools
import json
import os
import sys

import numpy as np
import scipy.stats

folder, report_path, csv_path, confidence = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
with open(os.path.join(folder, "results.jsonl")) as f:
    rows = [json.loads(line) for line in f]
with open(os.path.join(folder, "sweep.json")) as f:
    sweep = json.load(f)
with open(report_path) as f:
    report = json.load(f)
with open(csv_path) as f:
    table = {row["arm"]: row for row in csv.DictReader(f)}

METRICS = {"": "val_loss", "fp32_": "val_loss_fp32"}
compared = 0


def same(got, want, what):
    global compared
    compared += 1
    if want is None or np.isnan(want):
        assert got in (None, ""), (what, got, want)
        return
    assert abs(float(got) - want) <= 1e-10 * max(1e-2, abs(want)), (what, got, want)


def interval(values):
    values = np.asarray(values, float)
    n = len(values)
    if n < 2:
        return {"n": n, "mean": values.mean() if n else np.nan, "sd": np.nan, "low": np.nan, "high": np.nan, "p": np.nan}
    low, high = scipy.stats.t.interval(confidence, n - 1, values.mean(), scipy.stats.sem(values))
    return {"n": n, "mean": values.mean(), "sd": values.std(ddof=1), "low": low, "high": high, "p": scipy.stats.ttest_1samp(values, 0).pvalue}


def holm(p):
    """Least m such that each hypothesis is rejected by the step-down procedure at level m."""
    p = np.asarray(p, float)
    adjusted = np.full(len(p), np.nan)
    known = [i for i in np.argsort(p, kind="stable") if not np.isnan(p[i])]
    for rank, i in enumerate(known):
        adjusted[i] = min(1, max((len(known) - k) * p[j] for k, j in enumerate(known[: rank + 1])))
    return adjusted


def check(got, prefix, want, what):
    for key, value in want.items():
        same(got[prefix + key], value, (what, prefix + key))


losses, knobs, reference = {}, {}, {}
for row in rows:
    reference[row["arm"]] = row["reference"]
    knobs[row["arm"]] = row["knobs"]
    for metric in METRICS.values():
        if row["end"] == "finished":
            losses.setdefault((row["arm"], metric), {})[row["seed"]] = row[metric]


def paired(a, b, metric):
    x, y = losses.get((a, metric), {}), losses.get((b, metric), {})
    return [x[s] - y[s] for s in x if s in y]


# Arms.
for eval_key, metric in (("", "val_loss"), ("_fp32", "val_loss_fp32")):
    behind = [interval(paired(a, r, metric)) if r else None for a, r in reference.items()]
    corrected = holm([b["p"] if b else np.nan for b in behind])
    for i, name in enumerate(reference):
        for got in (report["arms"][i], table[name]):
            assert got["arm"] == name
            check(got, f"loss{eval_key}_", interval(list(losses.get((name, metric), {}).values())), name)
            if behind[i]:
                check(got, f"behind{eval_key}_", behind[i], name)
                same(got[f"p_holm{eval_key}"], corrected[i], name)

# Effects: every pair of arms that differ in one knob, and every square of arms that differ in two.
arms = [a for a in reference if reference[a] or not any(reference.values())]
axes = list(knobs[arms[0]])
levels = {axis: list(dict.fromkeys(knobs[a][axis] for a in arms)) for axis in axes}
by_knobs = {tuple(knobs[a][axis] for axis in axes): a for a in arms}
seeds = list(dict.fromkeys(row["seed"] for row in rows if row["arm"] == arms[0]))


def response(setting, seed, metric):
    arm = by_knobs.get(tuple(setting[axis] for axis in axes))
    own = losses.get((arm, metric), {}).get(seed)
    of = losses.get((reference.get(arm), metric), {}).get(seed) if reference.get(arm) else 0
    return np.nan if own is None or of is None else own - of


def effect(changes, metric):
    """changes: axis -> (base, level), one or two of them. The mean over the other axes' combinations, for each seed."""
    rest = [axis for axis in axes if axis not in changes]
    cells = []
    for combination in itertools.product(*(levels[axis] for axis in rest)):
        cell = np.zeros(len(seeds))
        for ends in itertools.product((0, 1), repeat=len(changes)):
            setting = dict(zip(rest, combination)) | {axis: changes[axis][end] for axis, end in zip(changes, ends)}
            sign = (-1) ** (len(changes) - sum(ends))
            cell += sign * np.array([response(setting, seed, metric) for seed in seeds])
        if not np.isnan(cell).any():
            cells.append(cell)
    return len(cells), np.mean(cells, axis=0) if cells else []


mains = [{axis: (levels[axis][0], level)} for axis in axes for level in levels[axis][1:]]
squares = [
    {a: (levels[a][0], x), b: (levels[b][0], y)}
    for a, b in itertools.combinations(axes, 2)
    for x in levels[a][1:]
    for y in levels[b][1:]
]
for key, wanted in (("effects", mains), ("interactions", squares)):
    got = report.get(key, [])
    assert len(got) == len(wanted), (key, len(got), len(wanted))
    for prefix, metric in METRICS.items():
        found = [effect(changes, metric) for changes in wanted]
        corrected = holm([interval(values)["p"] for _, values in found])
        for g, changes, (cells, values), p in zip(got, wanted, found, corrected):
            axis, (_, level) = next(iter(changes.items()))
            assert g["axis"] == axis and level.endswith(g["value"]) and g["combinations"] == cells, (g, changes)
            check(g, prefix, interval(values), changes)
            same(g[prefix + "p_holm"], p, changes)

# Claims.
pairs = []
for claim in sweep.get("claims", []):
    for a, b in itertools.product(reference, repeat=2):
        if a == claim["less"]:
            match = b == claim["more"]
        else:
            changed = [axis for axis in knobs[a] if knobs[a][axis] != knobs[b].get(axis)]
            match = list(knobs[a]) == list(knobs[b]) and len(changed) == 1
            match = match and (knobs[a][changed[0]], knobs[b][changed[0]]) == (claim["less"], claim["more"])
        if match:
            pairs.append((claim, a, b, interval(paired(a, b, claim.get("of", "val_loss")))))
corrected = holm([np.nan if "within" in claim else d["p"] for claim, _, _, d in pairs])
assert len(report.get("claims", [])) == len(pairs), len(pairs)
for g, (claim, a, b, d), p in zip(report.get("claims", []), pairs, corrected):
    assert (g["says"], g["less"], g["more"]) == (claim["says"], a, b)
    check(g, "difference_", d, claim)
    same(g["p_holm"], p, claim)
    if "within" in claim:
        w = claim["within"]
        word = "agrees" if -w < d["low"] and d["high"] < w else "disagrees" if d["low"] > w or d["high"] < -w else "cannot tell"
    else:
        word = "cannot tell" if not p < 1 - confidence else "agrees" if d["mean"] < 0 else "disagrees"
    assert g["verdict"] == word, (g, word)

# The front, from the report's own costs.
for g in report["arms"]:
    if not g["reference"]:
        continue
    cost = ("bits", "product_time", "overhead")
    beaten = [
        h
        for h in report["arms"]
        if h is not g and h["reference"] == g["reference"] and h["behind_mean"] is not None
        and all(h[c] <= g[c] for c in cost)
        and (h["behind_mean"] < g["behind_mean"] or (h["behind_mean"] == g["behind_mean"] and any(h[c] < g[c] for c in cost)))
    ]
    assert g["front"] == (not beaten) and g["beaten_by"] == (min(beaten, key=lambda h: h["behind_mean"])["arm"] if beaten else ""), g["arm"]

assert compared > 500, f"only {compared} figures were compared"
