# What a report says, computed a second time from results.jsonl and the runs' metrics.
: "${scratch:?run by tests/run-cli.sh}"
cat >"$scratch/base.json" <<'J'
{"model": {"kind": "gaussian"}, "data": {"rows": 512, "features": 32, "split": 0.75},
 "train": {"steps": 60, "batch": 64, "seed": 1}, "optimizer": {"kind": "adam", "lr": 0.05}}
J
cat >"$scratch/sweep.json" <<'J'
{"config": "base.json", "seeds": 4,
 "arms": [{"name": "ocp", "set": {"quant.recipe": "recipe-ocp"}}, {"name": "chmiel", "set": {"quant.recipe": "recipe-chmiel"}},
          {"name": "wild", "set": {"quant.recipe": "recipe-ocp", "optimizer.kind": "sgd", "optimizer.momentum": 1e30}}]}
J
accepts "$mxgold" sweep "$scratch/sweep.json" -o "$scratch/s"
"$mxgold" report "$scratch/s" --json >"$scratch/report.json" || fail "report: exit $?"
python3 - "$scratch/s" "$scratch/report.json" <<'P' || fail "a figure of the report"
import json, math, os, sys
folder, report = sys.argv[1], json.load(open(sys.argv[2]))
rows = [json.loads(line) for line in open(os.path.join(folder, "results.jsonl"))]
T3 = 3.182446305284263  # Student's t, 3 degrees of freedom, .975
at = {(r["arm"], r["seed"]): r for r in rows}


def near(a, b, what):
    assert abs(a - b) <= 1e-10 * abs(b), (what, a, b)


def curve(row):
    losses = [json.loads(line)["loss"] for line in open(os.path.join(folder, "runs", row["id"], "metrics.jsonl"))]
    window = len(losses) // 20
    return [sum(losses[max(0, i + 1 - window) : i + 1]) / min(i + 1, window) for i in range(len(losses))]


def first(values, aim):
    for i, v in enumerate(values):
        if v <= aim:
            return 1 if i == 0 else i + (values[i - 1] - aim) / (values[i - 1] - v)


arms = {a["arm"]: a for a in report["arms"]}
assert list(arms) == ["reference", "ocp", "chmiel", "wild"]
for name in ("ocp", "chmiel"):
    for metric, key in (("val_loss", "behind"), ("val_loss_fp32", "behind_fp32")):
        d = [at[name, s][metric] - at["reference", s][metric] for s in (1, 2, 3, 4)]
        mean = sum(d) / 4
        sd = math.sqrt(sum((x - mean) ** 2 for x in d) / 3)
        near(arms[name][key + "_mean"], mean, name)
        near(arms[name][key + "_sd"], sd, name)
        near(arms[name][key + "_low"], mean - T3 * sd / 2, name)
        near(arms[name][key + "_high"], mean + T3 * sd / 2, name)
    extra = []
    for s in (1, 2, 3, 4):
        own, reference = curve(at[name, s]), curve(at["reference", s])
        n = len(own)
        extra.append(n / first(reference, own[-1]) - 1 if own[-1] >= reference[-1] else first(own, reference[-1]) / n - 1)
    near(arms[name]["extra_steps_mean"], sum(extra) / 4, name)
    of, own = arms["reference"]["loss_mean"], arms[name]["loss_mean"]
    near(arms[name]["gain"], (of - own) / of, name)
    near(arms[name]["score"], arms[name]["gain"] / (1 + arms[name]["omega"]), name)
assert arms["ocp"]["omega"] == 0 and arms["chmiel"]["omega"] == 2, "stochastic rounding and tensor scaling"
p = sorted((arms[n]["behind_p"], n) for n in ("ocp", "chmiel"))
near(arms[p[0][1]]["p_holm"], min(1, 2 * p[0][0]), "Holm")
near(arms[p[1][1]]["p_holm"], min(1, max(2 * p[0][0], p[1][0])), "Holm")
for a in ("ocp", "chmiel"):
    assert arms[a]["verdict"] == ("not resolved" if arms[a]["p_holm"] >= 0.05 else "worse" if arms[a]["behind_mean"] > 0 else "better")
assert arms["wild"]["diverged"] == 4 and arms["wild"]["verdict"] == "no run finished"
assert report["verdict"].startswith("Of 3 arms"), report["verdict"]
P
# The page: the verdict first, a row and a curve for each arm with finished runs, nothing of the network.
accepts "$mxgold" report "$scratch/s" --html "$scratch/report.html"
python3 - "$scratch/report.html" "$scratch/report.json" <<'P' || fail "the page"
import html.parser, json, sys
page, report = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))
assert report["verdict"].replace('"', "&quot;") in page
assert page.count("<polyline") == 3 and page.count("<circle") == 2, "three arms finished, two of them are compared"
assert page.count("<tr>") == 5 and "src=" not in page and "href=" not in page
html.parser.HTMLParser().feed(page)
P
"$mxgold" report "$scratch/s" --csv >"$scratch/report.csv"
[ "$(wc -l <"$scratch/report.csv")" = 5 ] || fail "--csv has not a line an arm and one of names"
refuses "mxgold: $scratch/none/results.jsonl: No such file or directory; mxgold sweep writes it" "$mxgold" report "$scratch/none"
refuses "mxgold: a confidence of 1: expected one between 0 and 1" "$mxgold" report "$scratch/s" --confidence 1
sed -i '2s/"seed"/"sad"/' "$scratch/s/results.jsonl"
refuses "mxgold: $scratch/s/results.jsonl: line 2: expected a run with arm, seed, id and end" "$mxgold" report "$scratch/s"
