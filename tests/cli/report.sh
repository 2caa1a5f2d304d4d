# Tests what a report says, by computing it a second time from results.jsonl and the runs' metrics.
: "${scratch:?run by tests/run-cli.sh}"
cat >"$scratch/base.json" <<'J'
{"model": {"kind": "gaussian"}, "data": {"rows": 512, "features": 32, "split": 0.75},
 "train": {"steps": 60, "batch": 64, "seed": 1}, "optimizer": {"kind": "adam", "lr": 0.05}}
J
cat >"$scratch/sweep.json" <<'J'
{"config": "base.json", "seeds": 4,
 "arms": [{"name": "ocp", "set": {"quant.recipe": "recipe-ocp"}}, {"name": "chmiel", "set": {"quant.recipe": "recipe-chmiel"}},
          {"name": "wild", "set": {"quant.recipe": "recipe-ocp", "optimizer.kind": "sgd", "optimizer.weight_decay": 1e30}}]}
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
assert [w["weight"] for w in report["weights"]] == [1] * 9
assert arms["ocp"]["omega"] == 0 and arms["chmiel"]["omega"] == 2, "stochastic rounding and tensor scaling"
p = sorted((arms[n]["behind_p"], n) for n in ("ocp", "chmiel"))
near(arms[p[0][1]]["p_holm"], min(1, 2 * p[0][0]), "Holm")
near(arms[p[1][1]]["p_holm"], min(1, max(2 * p[0][0], p[1][0])), "Holm")
for a in ("ocp", "chmiel"):
    assert arms[a]["verdict"] == ("not resolved" if arms[a]["p_holm"] >= 0.05 else "worse" if arms[a]["behind_mean"] > 0 else "better")
assert arms["wild"]["diverged"] == 4 and arms["wild"]["verdict"] == "no run finished"
said = report["verdict"]
assert said.startswith("Of 3 arms") and " 1 has no finished run." in said, said
verdicts = [arms[n]["verdict"] for n in ("ocp", "chmiel")]
assert f"; {verdicts.count('not resolved')} cannot be told from it." in said, (said, verdicts)
P
# Other weights: of stochastic rounding a half, of tensor scaling three.
accepts "$mxgold" report "$scratch/s" --json --weight sr=0.5 --weight tensor_scale=3
python3 - "$scratch/stdout" "$scratch/report.json" <<'P' || fail "report --weight"
import json, sys
weighed, plain = ({a["arm"]: a for a in json.load(open(p))["arms"]} for p in sys.argv[1:])
assert weighed["chmiel"]["omega"] == 3.5 and weighed["ocp"]["omega"] == 0 and weighed["chmiel"]["gain"] == plain["chmiel"]["gain"]
assert abs(weighed["chmiel"]["score"] * 4.5 - plain["chmiel"]["score"] * 3) < 1e-15 and weighed["ocp"]["score"] == plain["ocp"]["score"]
P
refuses "mxgold: --weight hadamar=1: unknown technique 'hadamar'; nearest: hadamard" "$mxgold" report "$scratch/s" --weight hadamar=1
refuses "mxgold: --weight sr: expected TECHNIQUE=W, such as sr=0.5" "$mxgold" report "$scratch/s" --weight sr
refuses "mxgold: --weight sr=-1: a weight of -1 for sr: expected 0 or more" "$mxgold" report "$scratch/s" --weight sr=-1
# One seed gives differences without intervals, which the verdict says.
rm -rf "$scratch/one" && cp -r "$scratch/s" "$scratch/one"
grep '"seed": *1[,}]' "$scratch/s/results.jsonl" >"$scratch/one/results.jsonl"
accepts "$mxgold" report "$scratch/one" --json
python3 - "$scratch/stdout" <<'P' || fail "the verdict on one seed"
import json, re, sys
said = json.load(open(sys.argv[1]))["verdict"]
assert "2 arms have one pair of runs and so no interval" in said and "; 0 cannot be told" in said and " 1 has no finished run." in said and "nan" not in said, said
assert len(re.findall(r"\([+-][0-9.]+\)", said)) == 2, said
P
# An arm that changes the data or the rate is compared with another reference than it needs, which is said; a grid gives it its own, and nothing is said.
cat >"$scratch/unlike.json" <<'J'
{"config": "base.json", "seeds": 2,
 "arms": [{"name": "ocp", "set": {"quant.recipe": "recipe-ocp"}}, {"name": "rate", "set": {"quant.recipe": "recipe-ocp", "optimizer.lr": 0.01}},
          {"name": "rows", "set": {"data.rows": 256}}]}
J
sed 's/}}, {"name": "rate".*/}}],/; s/^ *{"name": "rows".*/ "grid": {"optimizer.lr": [0.01, 0.05]}}/' "$scratch/unlike.json" >"$scratch/alike.json"
accepts "$mxgold" sweep "$scratch/unlike.json" -o "$scratch/unlike"
accepts "$mxgold" report "$scratch/unlike"
grep -q "^verdict .* Beware: 2 arms change more than the number format beside the reference, as rate does in optimizer.lr; " "$scratch/stdout" ||
  fail "arms that change the rate and the data: $(head -1 "$scratch/stdout")"
accepts "$mxgold" sweep "$scratch/alike.json" -o "$scratch/alike"
accepts "$mxgold" report "$scratch/alike" --json
grep -q '"verdict": "Of 2 arms' "$scratch/stdout" && ! grep -q Beware "$scratch/stdout" || fail "a grid of rates: $(head -3 "$scratch/stdout")"
# A last line of metrics that a kill cut off is as if it were not there; a line that is wrong and whole is said.
id=$(python3 -c 'import json,sys; print([r["id"] for r in map(json.loads, open(sys.argv[1])) if r["arm"] == "ocp" and r["seed"] == 2][0])' "$scratch/s/results.jsonl")
metrics=$scratch/s/runs/$id/metrics.jsonl
cp "$metrics" "$scratch/metrics"
head -n -1 "$scratch/metrics" >"$metrics"
accepts "$mxgold" report "$scratch/s" --json
cp "$scratch/stdout" "$scratch/without"
head -n -1 "$scratch/metrics" >"$metrics"
tail -n 1 "$scratch/metrics" | head -c 15 >>"$metrics"
accepts "$mxgold" report "$scratch/s" --json
cmp -s "$scratch/without" "$scratch/stdout" || fail "a line of metrics that was cut off changes the report"
cmp -s "$scratch/without" "$scratch/report.json" && fail "the last line of metrics changes nothing: the check cannot fail"
echo >>"$metrics"
refuses "mxgold: $metrics: line 60: expected a step with its loss" "$mxgold" report "$scratch/s"
cp "$scratch/metrics" "$metrics"
# The same by numpy and scipy, with a grid and claims, from the folder alone.
cat >"$scratch/grid.json" <<'J'
{"config": "base.json", "seeds": [2, 3, 5, 7, 11],
 "arms": [{"name": "ocp", "set": {"quant.recipe": "recipe-ocp"}}, {"name": "chmiel", "set": {"quant.recipe": "recipe-chmiel"}}],
 "grid": {"optimizer.lr": [0.02, 0.05, 0.1], "rotation": [{"name": "none", "set": {}}, {"name": "H16", "set": {"quant.set": ["had.size=16"]}}]},
 "claims": [{"says": "Rotation helps", "source": "nobody", "less": "H16", "more": "none"},
            {"says": "Chmiel's recipe trains better", "less": "chmiel", "more": "ocp", "of": "val_loss_fp32"},
            {"says": "One arm and another", "less": "ocp optimizer.lr=0.02 H16", "more": "chmiel optimizer.lr=0.1 none"},
            {"says": "They are the same", "less": "chmiel", "more": "ocp", "within": 2.5}]}
J
accepts "$mxgold" sweep "$scratch/grid.json" -o "$scratch/g"
if python3 -c 'import numpy, scipy' 2>/dev/null; then
  for confidence in 0.95 0.6; do
    "$mxgold" report "$scratch/g" --json --confidence $confidence >"$scratch/again.json" || fail "report of a grid"
    "$mxgold" report "$scratch/g" --csv --confidence $confidence >"$scratch/again.csv" || fail "report --csv of a grid"
    python3 "$root/tests/lib/report_statistics.py" "$scratch/g" "$scratch/again.json" "$scratch/again.csv" $confidence || fail "a statistic at $confidence"
  done
fi
# By hand: two knobs, two seeds, so that t has one degree of freedom and p = 1 - 2 atan(t) / pi.
python3 - "$scratch/hand" <<'P'
import json, os, sys
folder = sys.argv[1]
losses = {("a0", "b0"): (1.0, 1.1), ("a1", "b0"): (1.3, 1.5), ("a0", "b1"): (0.9, 1.2), ("a1", "b1"): (1.6, 1.4)}
os.makedirs(folder)
rows = open(os.path.join(folder, "results.jsonl"), "w")
for i, ((a, b), two) in enumerate(losses.items()):
    for seed, loss in enumerate(two, 1):
        run = f"{i}{seed}".zfill(32)
        os.makedirs(os.path.join(folder, "runs", run))
        with open(os.path.join(folder, "runs", run, "config.json"), "w") as config:
            config.write("{}")
        print(json.dumps({"arm": f"{a} {b}", "reference": None, "knobs": {"A": a, "B": b}, "seed": seed, "id": run, "end": "finished", "steps": 1,
                          "loss": loss, "val_loss": loss, "val_loss_fp32": 2 * loss}), file=rows)
P
"$mxgold" report "$scratch/hand" --json >"$scratch/again.json" || fail "report of a typed folder"
python3 - "$scratch/again.json" <<'P' || fail "effects by hand"
import json, sys
report = json.load(open(sys.argv[1]))
a, b = report["effects"]
(ab,) = report["interactions"]


def near(x, y):
    assert abs(x - y) < 2e-6, (x, y)


# A: (.3 + .7) / 2 = .5 and (.4 + .2) / 2 = .3; t = 4; the .975 quantile is 12.70620474.
assert (a["axis"], a["value"], a["instead_of"], a["combinations"], a["n"]) == ("A", "a1", "a0", 2, 2)
near(a["mean"], 0.4), near(a["low"], 0.4 - 1.270620), near(a["high"], 0.4 + 1.270620), near(a["p"], 0.155958), near(a["p_holm"], 0.311917)
near(a["fp32_mean"], 0.8), near(a["fp32_high"], 0.8 + 2.541241)
# B: (-.1 + .3) / 2 = .1 and (.1 - .1) / 2 = 0; t = 1.
near(b["mean"], 0.05), near(b["p"], 0.5), near(b["p_holm"], 0.5)
# A with B: .7 - .3 = .4 and .2 - .4 = -.2; t = 1/3.
assert (ab["value"], ab["with_value"], ab["combinations"]) == ("a1", "b1", 1)
near(ab["mean"], 0.1), near(ab["sd"], 0.424264), near(ab["p"], 0.795167), near(ab["p_holm"], 0.795167)
P
# The page: the verdict first, a row and a curve for each arm with finished runs, nothing of the network.
accepts "$mxgold" report "$scratch/s" --html "$scratch/report.html"
python3 - "$scratch/report.html" "$scratch/report.json" <<'P' || fail "the page"
import html.parser, json, sys
page, report = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))
assert report["verdict"].replace('"', "&quot;") in page and "no finished run" in page
assert (page.count("<polyline"), page.count("<circle")) == (3, 2), "three arms finished, two of them are compared"
rows = 1 + len(report["arms"]) + 1 + sum(a["front"] for a in report["arms"])  # the arms and the front, each below a line of names
assert page.count("<tr>") == rows, (page.count("<tr>"), rows)
assert "src=" not in page and "href=" not in page
html.parser.HTMLParser().feed(page)
P
# The picture.
refuses "mxgold: --png: 'c.jpg', expected a name that ends in .png or .svg" "$mxgold" report "$scratch/s" --png c.jpg
refuses "mxgold: charts need gnuplot, which is not installed" env PATH=/nowhere "$mxgold" report "$scratch/s" --png c.svg
if command -v gnuplot >/dev/null; then
  accepts "$mxgold" report "$scratch/s" --png "$scratch/c.svg"
  accepts "$mxgold" report "$scratch/s" --png "$scratch/c.png"
  [ "$(head -c 4 "$scratch/c.png" | tail -c 3)" = PNG ] || fail "--png wrote no PNG"
  for word in ocp chmiel reference "Of 3 arms" "Validation loss beside the reference" "Training loss"; do
    grep -q "$word" "$scratch/c.svg" || fail "the picture has no word '$word'"
  done
fi
"$mxgold" report "$scratch/s" --csv >"$scratch/report.csv"
[ "$(wc -l <"$scratch/report.csv")" = 5 ] || fail "--csv has not a line an arm and one of names"
python3 - "$scratch/report.csv" "$scratch/report.json" <<'P' || fail "--csv has not every figure of --json"
import csv, json, sys
arms = json.load(open(sys.argv[2]))["arms"]
rows = list(csv.DictReader(open(sys.argv[1])))
assert list(rows[0]) == list(arms[0]) and list(rows[0])[-4:] == ["beaten_by", "gain", "omega", "score"], list(rows[0])
for row, arm in zip(rows, arms, strict=True):
    for key, value in arm.items():
        assert row[key] == (value or "") if value is None or isinstance(value, str) else float(row[key]) == value, (key, row[key], value)
P
# Readers too are told of the arm without a finished run.
accepts "$mxgold" report "$scratch/s"
grep -q "^verdict .* 1 has no finished run\." "$scratch/stdout" || fail "the text does not say that an arm has no finished run"
refuses "mxgold: $scratch/none/results.jsonl: No such file or directory; mxgold sweep writes it" "$mxgold" report "$scratch/none"
refuses "mxgold: a confidence of 1: expected one between 0 and 1" "$mxgold" report "$scratch/s" --confidence 1
sed -i '2s/"seed"/"sad"/' "$scratch/s/results.jsonl"
refuses "mxgold: $scratch/s/results.jsonl: line 2: expected a run with arm, seed, id and end" "$mxgold" report "$scratch/s"
