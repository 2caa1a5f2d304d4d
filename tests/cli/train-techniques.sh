# Tests the techniques of a training run: each changes what it says and nothing else, and a resumed run has the bits of one that was not stopped.
: "${scratch:?run by tests/run-cli.sh}"
head -c 20000 "$root/README.md" >"$scratch/text.txt"
cat >"$scratch/llama.json" <<'J'
{"model": {"kind": "llama", "width": 32, "layers": 1, "heads": 2, "ffn": 48, "context": 16},
 "data": {"text": "text.txt"},
 "train": {"steps": 14, "batch": 4, "seed": 7, "eval_batches": 1},
 "optimizer": {"kind": "adamw", "lr": 3e-3}}
J
run() { accepts "$mxgold" train "$scratch/llama.json" -o "$scratch/$1" "${@:2}"; }
same() { cmp -s "$scratch/$1/digests.txt" "$scratch/$2/digests.txt" || fail "$1 and $2: other digests"; }
silent() { # NAMES RUN OPTION...: a run that says that these keys have no effect in the first step, and no others
  "$mxgold" train "$scratch/llama.json" -o "$scratch/$2" "${@:3}" >/dev/null 2>"$scratch/said" || fail "$2: exit $?"
  [ "$(cat "$scratch/said")" = "mxgold: warning: on, but without any effect in the first step: $1" ] || fail "$2: silent keys: $(cat "$scratch/said")"
  grep -q "\"silent\": \"$1\"" "$scratch/$2/metrics.jsonl" || fail "$2: silent keys in metrics.jsonl"
}
parts() { # A B STEP: the first step whose digest differs
  run_a=$scratch/$1/digests.txt run_b=$scratch/$2/digests.txt
  first=$(paste -d' ' "$run_a" "$run_b" | awk '$3 != $6 {print $1; exit}')
  [ "$first" = "$3" ] || fail "$1 and $2 part at step '$first', expected $3"
}
grown() { [ "$(grep -c "$2" "$scratch/$1/metrics.jsonl")" = "$3" ] || fail "$1: $2 in $(grep -c "$2" "$scratch/$1/metrics.jsonl") lines, expected $3"; }
# The moving average is looked at after ten steps of the optimiser: step 10 is the first, from 0.
run tetrajet --set quant.recipe=recipe-tetrajet
run ema --set quant.recipe=recipe-tetrajet-ema
parts tetrajet ema 10
grown ema '"ema_steered": [1-9]' 4
grown tetrajet ema_steered 0
run ema-resumed --set quant.recipe=recipe-tetrajet-ema --set train.steps=11
run ema-resumed --set quant.recipe=recipe-tetrajet-ema --resume
same ema ema-resumed
cmp -s "$scratch/ema/state.safetensors" "$scratch/ema-resumed/state.safetensors" || fail "q2.ema: a resumed run has another state"
# Q-Ramping: what a rehearsal does is put back, moving averages, held scales and the loss' factor among it: where every period is 1, nothing changes.
with_all="--set quant.train.q2.ema=.9 --set quant.train.tensor.hold=4 --set loss.scaling=dynamic --set loss.growth=4 --set train.accumulate=2"
silent "tensor.hold loss.scaling" plain --set quant.recipe=recipe-tetrajet $with_all
silent "tensor.hold loss.scaling" ramp-of-one --set quant.recipe=recipe-tetrajet-ramp $with_all --set quant.train.ramp.k2=0 --set quant.train.ramp.every=5
same plain ramp-of-one
for i in plain ramp-of-one; do grep -o '"loss_scale": [0-9]*' "$scratch/$i/metrics.jsonl" >"$scratch/$i.scales"; done
cmp -s "$scratch/plain.scales" "$scratch/ramp-of-one.scales" || fail "a rehearsal changes the loss' factor"
grown ramp-of-one '"ramp_slowed": 0[,}]' 14
ramp="--set quant.recipe=recipe-tetrajet-ramp --set quant.train.ramp.k1=1 --set quant.train.ramp.every=5 --set quant.train.ramp.steps=4"
run ramp $ramp
parts tetrajet ramp 0
grown ramp '"ramp_slowed": [1-9]' 14
[ "$(grep -o '"ramp_slowed": [0-9]*' "$scratch/ramp/metrics.jsonl" | sort -u | wc -l)" = 3 ] || fail "periods are not measured before steps 0, 5 and 10"
run ramp-resumed $ramp --set train.steps=8
run ramp-resumed $ramp --resume
same ramp ramp-resumed
cmp -s "$scratch/ramp/state.safetensors" "$scratch/ramp-resumed/state.safetensors" || fail "ramp: a resumed run has another state"
# Tensor scales that stand for four steps: step 1 is the first that sees another.
run fresh --set quant.recipe=recipe-ue5m3-2609 --set quant.train.tensor.hold=1
run held --set quant.recipe=recipe-ue5m3-2609 --set quant.train.tensor.hold=4
parts fresh held 1
run held-resumed --set quant.recipe=recipe-ue5m3-2609 --set quant.train.tensor.hold=4 --set train.steps=6
run held-resumed --set quant.recipe=recipe-ue5m3-2609 --set quant.train.tensor.hold=4 --resume
same held held-resumed
# A power of two as the loss' factor is divided out again to the bit, in FP32 and under scales of any exponent; not under E4M3's.
run fp32
silent loss.scale fp32-scaled --set loss.scale=0.0009765625
same fp32 fp32-scaled
run e4m3 --set 'quant.set=["scale=e4m3 scale.rule=value"]'
run e4m3-scaled --set 'quant.set=["scale=e4m3 scale.rule=value"]' --set loss.scale=1e-6
parts e4m3 e4m3-scaled 0
# A factor beyond binary32 overflows: the step is skipped and the factor halved, 1e39, 5e38, 2.5e38; four good steps double it, and it is too large again.
run dynamic --set loss.scaling=dynamic --set loss.init=1e39 --set loss.growth=4
skipped=$(sed -n 's/.*"step": \([0-9]*\),.*"loss_scale": \([0-9.e+]*\), "skipped": true.*/\1:\2/p' "$scratch/dynamic/metrics.jsonl" | tr '\n' ' ')
[ "$skipped" = "0:1e+39 1:5e+38 6:5e+38 11:5e+38 " ] || fail "skipped steps and their factors: $skipped"
[ "$(cut -d' ' -f3 "$scratch/dynamic/digests.txt" | uniq -c | awk '$1 > 1' | wc -l)" = 3 ] || fail "a skipped step moves the weights"
run dynamic-resumed --set loss.scaling=dynamic --set loss.init=1e39 --set loss.growth=4 --set train.steps=7
run dynamic-resumed --set loss.scaling=dynamic --set loss.init=1e39 --set loss.growth=4 --resume
same dynamic dynamic-resumed
# Smooth-SwiGLU is nothing without quantisation, and something with it.
silent model.smooth_swiglu smooth --set model.smooth_swiglu=true
same fp32 smooth
run ocp --set quant.recipe=recipe-ocp
run ocp-smooth --set quant.recipe=recipe-ocp --set model.smooth_swiglu=true
parts ocp ocp-smooth 0
# Gradients that are summed in bfloat16.
run f32-sum --set train.accumulate=3
run bf16-sum --set train.accumulate=3 --set train.accumulate_dtype=bf16
parts f32-sum bf16-sum 0
# How many values of x were clamped: 64 positions, of 32 numbers one at either end for six linears, of 48 two for the seventh.
run occ --set quant.recipe=recipe-ocp --set quant.train.occ.alpha=.95
head -1 "$scratch/occ/metrics.jsonl" | grep -q "\"occ_clamped\": $((64 * (6 * 2 + 4)))[,}]" || fail "occ_clamped: $(head -1 "$scratch/occ/metrics.jsonl")"
# Nothing is silently off: rows of 32 and 48 numbers have nothing to clamp at .99, and a mask of the slope acts on no slope.
silent "grad.mask occ.alpha" silent --set quant.recipe=recipe-ocp --set quant.train.occ.alpha=.99 --set quant.train.grad.mask=graphcore --set train.steps=2
grown silent '"silent": "grad.mask occ.alpha"' 1
grown occ silent 0
run heard --set quant.recipe=recipe-tseng --set quant.train.had.draw=run --set quant.train.random=frozen --set train.steps=2
grown heard silent 0
# Nor is a key of set or of operands, alone or among others: a seed where nothing is random, a rotation that all operands have already, a scale's choice
# for blocks of zeros where there are none. A default that is stated again is not on.
short="--set train.steps=1 --set quant.recipe=recipe-ocp"
silent "seed" quiet-set $short --set 'quant.set=["scale.rule=even,seed=7", "elem=e2m1"]'
silent "Q3:scale.nan Q6:seed" quiet-operands $short --set 'quant.operands=["Q3:scale.nan=clamp,elem.round=sr", "Q6:seed=3", "Q1:elem=e2m1"]'
silent "block" quiet-override $short --set 'quant.set=["block=1x16"]' \
  --set 'quant.operands=["Q1:block=1x32", "Q2:block=1x32", "Q3:block=1x32", "Q4:block=1x32", "Q5:block=1x32", "Q6:block=1x32"]'
silent "Q4:scale.zero" quiet-gemms $short --set 'quant.gemms=["fprop", "wgrad"]' --set 'quant.operands=["Q4:scale.zero=one", "Q5:scale.rule=even"]'
run heard-set $short --set 'quant.set=["had.size=16 had.sign=fresh"]' --set 'quant.operands=["Q5:elem.round=sr"]'
# Nor a whole quantisation, of which no product is left; nor techniques that have nothing to act on in any step.
for off in 'quant.high=["*"]' 'quant.gemms=[]' 'quant.set=["elem=none"]'; do silent "quant" quiet-quant $short --set "$off"; done
silent "tensor.hold" quiet-hold $short --set quant.train.tensor.hold=4
silent "tensor.hold" quiet-given --set train.steps=1 --set quant.recipe=recipe-ue5m3-2609 --set quant.train.tensor.hold=4 --set quant.set=tensor.given=0.001
silent "q2.ema" quiet-ema $short --set quant.train.q2.ema=.9 --set 'quant.gemms=["dgrad"]'
silent "qaf.step" quiet-late $short --set qaf.when=step --set qaf.step=1
silent "train.seed_init" quiet-init --set train.steps=1 --set train.seed_init=9 --init "$scratch/fp32/model.safetensors"
# The trainer's: a clip above the norm, keys of another optimiser, schedule and switch, a factor that scales of any exponent lose nothing by.
silent "optimizer.clip" quiet-clip --set train.steps=1 --set optimizer.clip=1000
run heard-clip --set train.steps=1 --set optimizer.clip=0.001
silent "optimizer.momentum optimizer.theta" quiet-adam --set train.steps=1 --set optimizer.momentum=0.9 --set optimizer.theta=0.9
silent "optimizer.beta1 optimizer.eps" quiet-sgd --set train.steps=1 --set optimizer.kind=sgd --set optimizer.momentum=0.5 --set optimizer.beta1=0.8 --set optimizer.eps=1e-6
silent "schedule.min_lr qaf.step qaf.warmup" quiet-switches --set train.steps=1 --set schedule.min_lr=1e-5 --set qaf.step=3 --set qaf.warmup=4
# Keys of another model, task or switch; how products are summed, where a block's few products are added without a rounding.
silent "model.act data.file data.noise" quiet-llama --set train.steps=1 --set model.act=silu --set data.file=none --set data.noise=.1
silent "model.layers model.heads model.ffn model.tied" quiet-bytes --set train.steps=1 --set model.kind=byte_mlp --set model.layers=3 --set model.tied=true
silent "train.seed_quant metrics.layers threshold.full" quiet-fp32 --set train.steps=1 --set train.seed_quant=9 --set metrics.layers=mlp --set threshold.full=true
silent "ramp.k1" quiet-ramp $short --set quant.train.ramp.k1=4
silent "quant.accum" quiet-accum $short --set quant.accum=f64
run heard-accum --set train.steps=1 --set quant.recipe=recipe-bf16 --set quant.accum=f32_seq
silent "loss.scaling" quiet-dynamic $short --set loss.scaling=dynamic --set loss.growth=4
run heard-loss $short --set 'quant.set=["scale=e4m3 scale.rule=value"]' --set loss.scale=1e-6
# Blocks in high precision are those of their names; a share is at least one block; in bfloat16 all of them are recipe-bf16 in the order of the chain.
deep="--set model.layers=3 --set train.steps=2 --set quant.recipe=recipe-nvfp4"
run ends-named $deep --set 'quant.high=["model.layers.0.*", "model.layers.2.*"]'
run ends $deep --set quant.train.high.first=1 --set quant.train.high.last=.4
same ends-named ends
run ends-bf16 $deep --set 'quant.high=["model.layers.0.*", "model.layers.2.*"]' --set quant.train.high.dtype=bf16
run ends-recipe --set model.layers=3 --set train.steps=2 --set quant.recipe=recipe-nvfp4-bf16
same ends-bf16 ends-recipe
parts ends ends-bf16 0
run high-bf16 $deep --set 'quant.high=["*"]' --set quant.train.high.dtype=bf16
run all-bf16 --set model.layers=3 --set train.steps=2 --set quant.recipe=recipe-bf16 --set quant.accum=f32_seq
same high-bf16 all-bf16
silent "high.dtype" quiet-high $short --set quant.train.high.dtype=bf16
silent "sr.policy" quiet-policy --set train.steps=1 --set quant.recipe=recipe-nvfp4 --set quant.train.sr.policy=nvfp4
run heard-policy $short --set quant.train.sr.policy=grad_only_wgrad
run heard-operand $short --set 'quant.operands=["Q5:elem.round=sr"]'
same heard-policy heard-operand
# After a late switch blocks in high precision are what they were.
run late-named $deep --set 'quant.high=["model.layers.0.*"]' --set qaf.when=step --set qaf.step=1
run late-first $deep --set quant.train.high.first=1 --set qaf.when=step --set qaf.step=1
same late-named late-first
# What was tried leaves nothing behind.
run tried-not --set quant.recipe=recipe-tseng
silent "loss.scale" tried --set quant.recipe=recipe-tseng --set loss.scale=0.0009765625
same tried-not tried
# The list names every choice of the keys that choose a model, an optimiser and a schedule.
accepts "$mxgold" train --list --json
python3 - "$scratch/stdout" <<'P' || fail "train --list: a choice is not described, or one too many is"
import json, sys
said = json.load(open(sys.argv[1]))
keys = {row["key"]: row["values"].split("|") for row in said["keys"]}
for key, table, column in ("model.kind", "models", "model"), ("optimizer.kind", "optimisers", "optimiser"), ("schedule.kind", "schedules", "schedule"):
    assert keys[key] == [row[column] for row in said[table]], (keys[key], said[table])
P
no() { refuses "mxgold: $scratch/llama.json: $1" "$mxgold" train "$scratch/llama.json" -o "$scratch/x" "${@:2}"; }
no "loss.scale is a fixed factor; with loss.scaling=dynamic the first one is loss.init" --set loss.scaling=dynamic --set loss.scale=2
no "model.smooth_swiglu: llama alone has a SwiGLU" --set model.kind=gpt2 --set model.smooth_swiglu=true
no "quant.train: q2.ema=1.5: expected a decay below 1, or off" --set quant.train.q2.ema=1.5
no "ramp is of optimizer.kind=adamw" --set quant.train.ramp=on --set optimizer.kind=sgd --set quant.recipe=recipe-ocp
no "ramp sums gradients over steps, which optimizer.clip would scale one by one, expected one of the two" --set quant.train.ramp=on --set optimizer.clip=1
no "model.smooth_swiglu changes the weight that ramp measures, expected one of the two" --set quant.train.ramp=on --set model.smooth_swiglu=true
no "quant.train: ramp measures single weights, and had.size=16 of Q2 mixes them" --set quant.train.ramp=on --set quant.recipe=recipe-mxfp4-amd
no "quant.train: high.last=1.5: expected a whole number of blocks, or a share of them below 1" --set quant.train.high.last=1.5
refuses "mxgold: quant: high.first and high.last keep 1 and 1 of 2 blocks in high precision, which leaves none to quantise" \
  "$mxgold" train "$scratch/llama.json" -o "$scratch/x" --set model.layers=2 --set quant.recipe=recipe-nvfp4-bf16
no "quant.train: tensor.hold=2.5: expected a whole number of steps, from 1" --set quant.train.tensor.hold=2.5
