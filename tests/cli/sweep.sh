# Tests sweeps: any number of processes, shares, kills and cut journals gives the same results, nothing is done twice, and bad sweeps are refused in one line.
: "${scratch:?run by tests/run-cli.sh}"
cat >"$scratch/base.json" <<'J'
{"model": {"kind": "gaussian"}, "data": {"rows": 512, "features": 32, "split": 0.75},
 "train": {"steps": 30, "batch": 64, "seed": 1, "checkpoint_every": 5}, "optimizer": {"kind": "adam", "lr": 0.01}}
J
cat >"$scratch/sweep.json" <<'J'
{"config": "base.json", "set": {"train.steps": 25},
 "arms": [{"name": "ocp", "set": {"quant.recipe": "recipe-ocp"}},
          {"name": "same", "set": {"quant.preset": "ocp-mxfp4"}},
          {"name": "wild", "set": {"quant.recipe": "recipe-ocp", "optimizer.eps": 0, "optimizer.kind": "sgd", "optimizer.weight_decay": 1e30}},
          {"name": "wrong", "set": {"quant.recipe": "recipe-ocp", "train.batch": 100000}}],
 "grid": {"optimizer.lr": [0.01, 0.1]}, "seeds": [3, 5, 8]}
J
sweep() { "$mxgold" sweep "$scratch/sweep.json" -o "$scratch/$1" "${@:2}" >"$scratch/said" 2>"$scratch/why"; }
same() { cmp -s "$scratch/a/results.jsonl" "$scratch/$1/results.jsonl" || fail "$2: results.jsonl differs"; }
sweep a --jobs 1 || fail "exit $?: $(cat "$scratch/why")"
grep -q "^runs *24$" "$scratch/said" || fail "expected 24 different runs, since ocp and same are one: $(cat "$scratch/said")"
[ "$(wc -l <"$scratch/a/results.jsonl")" = 30 ] || fail "expected a line for each of 30 runs"
[ "$(grep -c '"end": "diverged"' "$scratch/a/results.jsonl")" -gt 0 ] || fail "no run diverged"
python3 - "$scratch/a/results.jsonl" <<'P' || fail "results.jsonl"
import json, sys
rows = [json.loads(l) for l in open(sys.argv[1])]
by = {(r["arm"], r["seed"]): r for r in rows}
assert [r["arm"] for r in rows[:6]] == ["reference optimizer.lr=0.01"] * 3 + ["reference optimizer.lr=0.1"] * 3, "references first, in order"
assert by["ocp optimizer.lr=0.1", 5]["reference"] == "reference optimizer.lr=0.1"
assert by["ocp optimizer.lr=0.1", 5]["id"] == by["same optimizer.lr=0.1", 5]["id"], "two spellings of one recipe are one run"
assert by["ocp optimizer.lr=0.1", 5]["knobs"] == {"arms": "ocp", "optimizer.lr": "optimizer.lr=0.1"}
assert by["reference optimizer.lr=0.1", 5]["knobs"] == {"optimizer.lr": "optimizer.lr=0.1"}
assert by["ocp optimizer.lr=0.1", 5]["id"] != by["ocp optimizer.lr=0.1", 3]["id"]
assert all(r["end"] in ("finished", "diverged", "failed") for r in rows)
assert all((r["val_loss"] is None) == (r["end"] != "finished") for r in rows), "a run that ended early has no validation loss"
P
cmp -s "$scratch/sweep.json" "$scratch/a/sweep.json" || fail "the folder has not the sweep's file"
# The run of a sweep is the run that train does.
accepts "$mxgold" train "$scratch/base.json" -o "$scratch/one" --set train.steps=25 --set optimizer.lr=0.1 --set quant.recipe=recipe-ocp --set train.seed=5
id=$(python3 -c 'import json,sys; print([r["id"] for r in map(json.loads, open(sys.argv[1])) if r["arm"] == "ocp optimizer.lr=0.1" and r["seed"] == 5][0])' "$scratch/a/results.jsonl")
cmp -s "$scratch/one/digests.txt" "$scratch/a/runs/$id/digests.txt" || fail "a sweep's run and train's are not the same"
# Nothing is done twice.
before=$(cat "$scratch"/a/journal/* | wc -l)
sweep a && grep -q "^done by an earlier call *24$" "$scratch/said" || fail "a second call does not find the first one's runs"
[ "$(cat "$scratch"/a/journal/* | wc -l)" = "$before" ] || fail "a second call wrote events"
# Two processes; shares in any order.
sweep b --jobs 2 && same b "two processes"
sweep c --shard 2/3 && sweep c --shard 0/3 && sweep c --shard 1/3 && same c "three shares"
# Killed: whatever process it hits. Then the journals cut at any byte, as a full disk or a crash of the machine leaves them.
for wait in 0.02 0.05 0.1; do
  setsid "$mxgold" sweep "$scratch/sweep.json" -o "$scratch/d" --jobs 2 >/dev/null 2>&1 &
  sleep $wait
  kill -KILL -- -$! 2>/dev/null
  wait $! 2>/dev/null
done
sweep d --jobs 2 && same d "killed three times"
for cut in 1 40 200; do
  for f in "$scratch"/d/journal/*; do truncate -s -$cut "$f" 2>/dev/null || : >"$f"; done
  sweep d --jobs 2 && same d "journals $cut bytes shorter"
done
# One process of several is killed: its run is taken up again.
"$mxgold" sweep "$scratch/sweep.json" -o "$scratch/e" --jobs 2 --json >"$scratch/said" 2>&1 &
parent=$!
for _ in 1 2 3 4 5 6 7 8; do
  child=$(pgrep -P $parent | head -1) && kill -KILL "$child" 2>/dev/null
  sleep 0.02
done
wait $parent || fail "killed children end the sweep: $(cat "$scratch/said")"
grep -q '"left": 0' "$scratch/said" || fail "killed children leave runs: $(cat "$scratch/said")"
# A budget stops it with exit status 3, and the same command goes on.
"$mxgold" sweep "$scratch/sweep.json" -o "$scratch/f" --jobs 1 --budget 0.01s >/dev/null 2>"$scratch/why"
[ $? = 3 ] || fail "--budget: exit $?, expected 3"
grep -q "runs left: the same command goes on" "$scratch/why" || fail "--budget says: $(cat "$scratch/why")"
sweep f && same f "stopped by a budget"
# Successive halving: nine arms, of which five, three, two and one are left; the worst go; what is left has its bits of a whole run.
cat >"$scratch/halving.json" <<'J'
{"config": "base.json", "set": {"quant.recipe": "recipe-ocp", "train.steps": 200}, "grid": {"rate": [{"name": "wild", "set": {"optimizer.eps": 0, "optimizer.kind": "sgd", "optimizer.weight_decay": 1e30}},
  {"name": "1e-5", "set": {"optimizer.lr": 1e-5}}, {"name": "1e-4", "set": {"optimizer.lr": 1e-4}}, {"name": "3e-4", "set": {"optimizer.lr": 3e-4}},
  {"name": "1e-3", "set": {"optimizer.lr": 1e-3}}, {"name": "3e-3", "set": {"optimizer.lr": 3e-3}}, {"name": "1e-2", "set": {"optimizer.lr": 1e-2}},
  {"name": "3e-2", "set": {"optimizer.lr": 3e-2}}, {"name": "1e-1", "set": {"optimizer.lr": 1e-1}}]}, "seeds": 2}
J
halve() { "$mxgold" sweep "$scratch/halving.json" -o "$scratch/$1" --halving 1 "${@:2}" >"$scratch/said" 2>"$scratch/why"; }
accepts "$mxgold" sweep "$scratch/halving.json" -o "$scratch/full" --jobs 2
halve k --jobs 1 || fail "--halving: exit $?: $(cat "$scratch/why")"
grep -q "^dropped *16$" "$scratch/said" || fail "--halving does not say how many it dropped: $(cat "$scratch/said")"
python3 - "$scratch/k/results.jsonl" "$scratch/full/results.jsonl" "$scratch/full/runs" "$scratch/said" <<'P' || fail "--halving"
import json, math, sys
rows, whole = ([json.loads(line) for line in open(path)] for path in sys.argv[1:3])
arms = list(dict.fromkeys(r["arm"] for r in whole if r["reference"]))
runs = {}
for r in whole:
    lines = [json.loads(line) for line in open(f"{sys.argv[3]}/{r['id']}/metrics.jsonl")]
    runs[r["arm"], r["seed"]] = [x["loss"] for x in lines] if r["end"] == "finished" else None


def loss(arm, steps):
    parts = [runs[arm, seed] for seed in (1, 2)]
    if None in parts:
        return math.inf
    n = max(1, steps // 20)
    return sum(sum(p[steps - n : steps]) / n for p in parts) / 2


left, wanted = arms, {}
for steps in (13, 25, 50, 100):  # 200 / 16 = 12.5
    order = sorted(left, key=lambda a: loss(a, steps))
    keep = (len(order) + 1) // 2
    wanted |= {a: steps for a in order[keep:]}
    left = [a for a in left if a in order[:keep]]
got = {r["arm"]: r for r in rows}
assert len(left) == 1 and [r["arm"] for r in rows if not r["reference"]] == 2 * ["reference " + left[0]], "one arm and its reference"
assert len(rows) == 2 + 2 * len(arms)
said = open(sys.argv[4]).read()
for r in rows:
    if r["arm"] in wanted and runs[r["arm"], r["seed"]]:
        assert (r["end"], r["steps"]) == ("dropped", wanted[r["arm"]]), (r, wanted)
        assert r["arm"] in said
    elif r["arm"] in left or not r["reference"]:
        assert r in whole, r
assert {r["end"] for r in rows} == {"finished", "dropped", "diverged"}
P
halve l --jobs 2 && cmp -s "$scratch/k/results.jsonl" "$scratch/l/results.jsonl" || fail "--halving by two processes: results.jsonl differs"
for wait in 0.03 0.06 0.1 0.15; do
  setsid "$mxgold" sweep "$scratch/halving.json" -o "$scratch/m" --halving 1 --jobs 2 >/dev/null 2>&1 &
  sleep $wait
  kill -KILL -- -$! 2>/dev/null
  wait $! 2>/dev/null
done
cp "$scratch/said" "$scratch/said-first"
halve m --jobs 2 && cmp -s "$scratch/k/results.jsonl" "$scratch/m/results.jsonl" || fail "--halving that was killed four times: results.jsonl differs"
tail -n +2 "$scratch/said" >"$scratch/said-m" && tail -n +2 "$scratch/said-first" | cmp -s - "$scratch/said-m" || fail "--halving names others after kills"
accepts "$mxgold" report "$scratch/k"
accepts "$mxgold" sweep "$scratch/halving.json" -o "$scratch/m" --jobs 2
cmp -s "$scratch/full/results.jsonl" "$scratch/m/results.jsonl" || fail "a sweep after halving: results.jsonl differs from that of a sweep alone"
refuses "mxgold: sweep: --halving compares all arms at each rung, which a --shard cannot" \
  "$mxgold" sweep "$scratch/halving.json" -o "$scratch/never" --halving 2 --shard 0/2
refuses "mxgold: sweep: --halving 0: expected how many arms are to be left" "$mxgold" sweep "$scratch/halving.json" -o "$scratch/never" --halving 0
# Two processes at the same runs: the second is refused, unless its share has none of the first one's runs; a lock whose process is gone is taken over.
sed 's/"checkpoint_every": 5/"checkpoint_every": 100/' "$scratch/base.json" >"$scratch/long-base.json"
echo '{"config": "long-base.json", "set": {"train.steps": 100000000}, "arms": [{"name": "ocp", "set": {"quant.recipe": "recipe-ocp"}}], "seeds": 3}' >"$scratch/long.json"
held() { # held PID: its lock is there
  for _ in $(seq 400); do
    ls "$scratch"/p/lock/*@"$1".* >/dev/null 2>&1 && return
    sleep 0.05
  done
  fail "no lock of process $1"
}
"$mxgold" sweep "$scratch/long.json" -o "$scratch/p" --jobs 1 --shard 1/2 >/dev/null 2>&1 &
one=$!
held $one
refuses "mxgold: $scratch/p: process $one does runs of these already, with shard 1/2" "$mxgold" sweep "$scratch/long.json" -o "$scratch/p"
refuses "mxgold: $scratch/p: process $one does runs of these already, with shard 1/2" "$mxgold" sweep "$scratch/long.json" -o "$scratch/p" --shard 3/4
refuses "mxgold: $scratch/p: process $one does runs of these already, with shard 1/2" "$mxgold" sweep "$scratch/long.json" -o "$scratch/p" --shard 2/3
refuses "mxgold: $scratch/p: process $one does runs of these already, with shard 1/2" "$mxgold" sweep "$scratch/long.json" -o "$scratch/p" --halving 1
for share in 0/2 2/4; do
  "$mxgold" sweep "$scratch/long.json" -o "$scratch/p" --jobs 1 --shard $share --budget 0.05s >/dev/null 2>"$scratch/why"
  rc=$?
  [ $rc = 3 ] || [ $rc = 0 ] || fail "shard $share beside 1/2: exit $rc: $(cat "$scratch/why")"
done
{ kill -KILL $one && wait $one; } 2>/dev/null
"$mxgold" sweep "$scratch/long.json" -o "$scratch/p" >/dev/null 2>&1 &
one=$!
held $one
[ "$(ls "$scratch"/p/lock/*@* | wc -l)" = 1 ] || fail "the lock of a process that was killed is still there"
refuses "mxgold: $scratch/p: process $one does these runs already" "$mxgold" sweep "$scratch/long.json" -o "$scratch/p" --shard 0/2
lock=$(cat "$scratch"/p/lock/*@*)
kill -TERM $one
wait $one
[ $? = 3 ] || fail "a sweep that was stopped: expected exit 3"
! ls "$scratch"/p/lock/*@* >/dev/null 2>&1 || fail "a sweep that has ended leaves its lock"
# Another process has the number now; another machine has a lock, of which nobody here knows whether it is held; a lock is cut off.
read -r host boot pid start share <<<"$lock"
echo "$host $boot $$ $((start + 1)) $share" >"$scratch/p/lock/$host@$$.0-1"
echo "$host another-boot $$ $start $share" >"$scratch/p/lock/other@$$.0-1"
echo "$host $boot $$" >"$scratch/p/lock/cut@$$.0-1"
"$mxgold" sweep "$scratch/long.json" -o "$scratch/p" --budget 0.05s >/dev/null 2>"$scratch/why"
[ $? = 3 ] || fail "locks that nobody here holds: exit $?: $(cat "$scratch/why")"
[ ! -e "$scratch/p/lock/$host@$$.0-1" ] && [ -e "$scratch/p/lock/other@$$.0-1" ] || fail "the lock of a number that was given again stays, or another machine's goes"
# Stopped, and the sweep moved to another folder, from which the data have another path: the same runs.
mkdir "$scratch/here" "$scratch/here/there"
cp "$root/configs/data/digits.safetensors" "$scratch/here"
digits() {
  echo '{"model": {"kind": "digits", "width": 32}, "data": {"file": "'"$1"'digits.safetensors", "split": 0.8}, "optimizer": {"kind": "adam"},
    "train": {"steps": 400, "batch": 64, "seed": 1, "checkpoint_every": 1}}' >"$2/base.json"
  echo '{"config": "base.json", "arms": [{"name": "ocp", "set": {"quant.recipe": "recipe-ocp"}}], "seeds": 2}' >"$2/sweep.json"
}
digits "" "$scratch/here"
digits ../ "$scratch/here/there"
accepts "$mxgold" sweep "$scratch/here/sweep.json" -o "$scratch/g" --jobs 1
"$mxgold" sweep "$scratch/here/sweep.json" -o "$scratch/h" --jobs 1 --budget 0.05s >/dev/null 2>&1
[ $? = 3 ] || fail "a sweep of digits was done within its budget"
accepts "$mxgold" sweep "$scratch/here/there/sweep.json" -o "$scratch/h" --jobs 1
cmp -s "$scratch/g/results.jsonl" "$scratch/h/results.jsonl" || fail "a sweep that was moved: results.jsonl differs"
# Bad sweeps.
bad() {
  printf '%s' "$1" >"$scratch/bad.json"
  refuses "mxgold: $scratch/bad.json: $2" "$mxgold" sweep "$scratch/bad.json" -o "$scratch/never"
  [ ! -e "$scratch/never" ] || fail "a folder of a sweep that is refused"
}
bad '{"config": "base.json", "arm": []}' "unknown key 'arm'; nearest: arms"
bad '{"arms": []}' 'config: expected the path of a configuration'
bad '{"config": "base.json"}' 'expected arms or a grid'
bad '{"config": "base.json", "arms": [{"set": {}}]}' 'arms[0]: expected {"name": "...", "set": {...}}'
bad '{"config": "base.json", "arms": [{"name": "a", "set": {}}, {"name": "a", "set": {}}]}' "arms[1]: the name 'a' is that of arms[0]"
bad '{"config": "base.json", "arms": [{"name": "a", "set": {"optimizer.lr": 1}}], "grid": {"optimizer.lr": [1]}}' 'grid.optimizer.lr: optimizer.lr is set by arms[0] too'
bad '{"config": "base.json", "arms": [{"name": "a", "set": {}}], "seeds": [1, 1]}' 'seeds[1] stands there twice'
arms='"config": "base.json", "arms": [{"name": "a", "set": {}}]'
bad "{$arms, \"claims\": 1}" 'claims: expected a list'
bad "{$arms, \"claims\": [{\"says\": \"s\", \"less\": \"a\"}]}" 'claims[0]: expected {"says": "...", "less": ARM, "more": ARM}'
bad "{$arms, \"claims\": [{\"says\": \"s\", \"less\": \"a\", \"more\": \"referenc\"}]}" \
  "claims[0].more: no arm and no value of the grid is called 'referenc'; nearest: reference"
bad "{$arms, \"claims\": [{\"says\": \"s\", \"less\": \"a\", \"more\": \"reference\", \"of\": \"loss\"}]}" 'claims[0].of: expected val_loss or val_loss_fp32'
bad "{$arms, \"claims\": [{\"says\": \"s\", \"less\": \"a\", \"more\": \"reference\", \"within\": 0}]}" 'claims[0].within: expected a number above 0'
bad "{$arms, \"claims\": [{\"say\": \"s\"}]}" "unknown key 'claims[0].say'; nearest: says"
printf '%s' '{"config": "base.json", "arms": [{"name": "a", "set": {"optimizer.rate": 1}}]}' >"$scratch/bad.json"
refuses "mxgold: arm 'a': $scratch/base.json: unknown key 'optimizer.rate'; nearest: optimizer.reset, optimizer.kind, optimizer.lr" \
  "$mxgold" sweep "$scratch/bad.json" -o "$scratch/never"
refuses "mxgold: sweep: --shard 3/3: expected I/N, I from 0 to N - 1" "$mxgold" sweep "$scratch/sweep.json" -o "$scratch/never" --shard 3/3
