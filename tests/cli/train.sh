# Tests training by the command line: the same bits on any number of threads and over a kill and a resume, where two runs part, and bad configurations refused in one line.
: "${scratch:?run by tests/run-cli.sh}"
head -c 20000 "$root/README.md" >"$scratch/text.txt"
cat "$root/CONTRIBUTING.md" "$root/docs/HOUSE.md" >>"$scratch/text.txt"
cat >"$scratch/llama.json" <<'J'
{"model": {"kind": "llama", "width": 32, "layers": 1, "heads": 2, "ffn": 48, "context": 16},
 "data": {"text": "text.txt", "split": 0.9},
 "train": {"steps": 12, "batch": 4, "seed": 7, "eval_batches": 2},
 "optimizer": {"kind": "adamw", "lr": 3e-3, "beta2": 0.95, "weight_decay": 0.1, "clip": 0.1},
 "quant": {"recipe": "recipe-tseng", "gemms": ["fprop", "dgrad", "wgrad"]}}
J
run() { accepts "$mxgold" train "$scratch/llama.json" -o "$scratch/$1" "${@:2}"; }
same() { cmp -s "$scratch/$1/$3" "$scratch/$2/$3" || fail "$1 and $2: $3 differs"; }
run a
[ "$(wc -l <"$scratch/a/metrics.jsonl")" = 12 ] || fail "metrics.jsonl has not a line a step"
run b --threads 1
for f in digests.txt metrics.jsonl model.safetensors state.safetensors config.json; do same a b $f; done
accepts env OMP_WAIT_POLICY=passive "$mxgold" train "$scratch/llama.json" -o "$scratch/w" # and is not started again for how its threads wait
same a w digests.txt
accepts env MXGOLD_ISA_OFF=all "$mxgold" train "$scratch/llama.json" -o "$scratch/c" --isa-off all
same a c digests.txt
# A run that is cut off after five steps and one that goes on: the same files.
run d --set train.steps=5
run d --resume
for f in digests.txt model.safetensors state.safetensors; do same a d $f; done
# And the same lines of measurements, whose correlation and changed codes look back over the resume; also where a rotation fills up W's rows.
for recipe in recipe-tseng recipe-nvfp4 recipe-mxfp4-amd; do
  measured="--set quant.recipe=$recipe --set train.eval_batches=0 --set metrics.every=2"
  [ $recipe != recipe-mxfp4-amd ] || measured+=" --set quant.set=had.size=32"
  for i in whole halves; do rm -rf "${scratch:?}/$i"; done
  run whole $measured
  run halves $measured --set train.steps=5
  run halves $measured --resume
  for f in metrics.jsonl digests.txt state.safetensors; do same whole halves $f; done
done
run halves $measured --set train.steps=4
run halves $measured --resume --set metrics.every=0 --set train.steps=6 # nothing is measured, so that nothing is kept
run halves $measured --resume
sed -n 7p "$scratch/halves/metrics.jsonl" | grep -q '"layers"' || fail "no measurement after a resume"
sed -n 7p "$scratch/halves/metrics.jsonl" | grep -q correlation && fail "a correlation with what was not kept"
sed -n 9p "$scratch/halves/metrics.jsonl" | grep -q correlation || fail "no correlation after a resume"
python3 - "$scratch/halves/state.safetensors" <<'P'
import json, struct, sys
raw = bytearray(open(sys.argv[1], "rb").read())
n = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8 : 8 + n])
name = "metrics.codes.model.layers.0.mlp.up_proj"
at = head[name]["data_offsets"][0]
raw[8 + n + at : 12 + n + at] = struct.pack("<f", 16)
del head["__metadata__"]["xxh3." + name]
raw[8 : 8 + n] = json.dumps(head, separators=(",", ":")).encode().ljust(n)
open(sys.argv[1], "wb").write(raw)
P
refuses "mxgold: $scratch/halves/state.safetensors: metrics.codes.model.layers.0.mlp.up_proj: expected codes of at most 15" \
  "$mxgold" train "$scratch/llama.json" -o "$scratch/halves" $measured --resume
# A signal ends it with a checkpoint; lines that were written after the checkpoint are cut off by the resume.
"$mxgold" train "$scratch/llama.json" -o "$scratch/e" --set train.steps=100000 --set train.checkpoint_every=3 >/dev/null 2>"$scratch/said" &
until [ -e "$scratch/e/state.safetensors" ]; do sleep 0.05; done
refuses "mxgold: $scratch/e: another run is writing there, expected a folder of its own for each" "$mxgold" train "$scratch/llama.json" -o "$scratch/e"
kill -USR1 $!
wait $!
[ $? = 3 ] || fail "SIGUSR1: exit $?, expected 3"
grep -q "holds a checkpoint, and --resume goes on from it" "$scratch/said" || fail "SIGUSR1 says: $(cat "$scratch/said")"
"$mxgold" train "$scratch/llama.json" -o "$scratch/f" --set train.steps=100000 --set train.checkpoint_every=3 >/dev/null 2>&1 &
until [ -e "$scratch/f/state.safetensors" ]; do sleep 0.05; done
kill -KILL $!
wait $! 2>/dev/null
steps=$(($(wc -l <"$scratch/e/metrics.jsonl") + 40))
accepts "$mxgold" train "$scratch/llama.json" -o "$scratch/e" --resume --set train.steps=$steps
accepts "$mxgold" train "$scratch/llama.json" -o "$scratch/f" --resume --set train.steps=$steps
for f in digests.txt model.safetensors state.safetensors; do same e f $f; done
# What a resume would go on from must be what the run wrote, and its data and its schedule must be the run's.
resumes_not() { refuses "mxgold: $1" "$mxgold" train "$scratch/llama.json" -o "$scratch/broken" --resume "${@:2}"; }
begin_again() { rm -rf "$scratch/broken" && cp -r "$scratch/a" "$scratch/broken"; }
begin_again
resumes_not "train.steps is 5, but 12 steps of the run are done" --set train.steps=5
grep -q '"steps": 12' "$scratch/broken/config.json" || fail "a refused resume has changed config.json"
sed -i '3s/ [0-9a-f]\{8\}/ 00000000/' "$scratch/broken/digests.txt"
resumes_not "$scratch/broken/digests.txt: its lines are not those that the run wrote" --set train.steps=13
sed -i '$d' "$scratch/broken/digests.txt"
resumes_not "$scratch/broken/digests.txt: has no line of step 11, expected a line of each step that the run has done" --set train.steps=13
rm "$scratch/broken/metrics.jsonl"
resumes_not "$scratch/broken/metrics.jsonl: not there, expected a line of each step that the run has done" --set train.steps=13
begin_again
printf 'x' >"$scratch/more.txt"
cat "$scratch/text.txt" >>"$scratch/more.txt" && mv "$scratch/text.txt" "$scratch/kept.txt" && mv "$scratch/more.txt" "$scratch/text.txt"
resumes_not "$scratch/broken/state.safetensors: $(realpath "$scratch")/text.txt has other data than the run was begun with" --set train.steps=13
mv "$scratch/kept.txt" "$scratch/text.txt"
for damaged in state model; do # the byte before the last two, whatever it is: the weights are learned from the documents
  file="$scratch/broken/$damaged.safetensors"
  at=$(($(stat -c %s "$file") - 3))
  printf "\\$(printf %03o $(($(od -An -tu1 -j $at -N 1 "$file") ^ 255)))" | dd of="$file" bs=1 conv=notrunc seek=$at 2>/dev/null
done
"$mxgold" train "$scratch/llama.json" -o "$scratch/broken" --resume --set train.steps=13 2>"$scratch/said"
[ $? = 2 ] && grep -q "state.safetensors: tensor .* its bytes were changed" "$scratch/said" || fail "a damaged state: $(cat "$scratch/said")"
"$mxgold" train "$scratch/llama.json" -o "$scratch/none" --init "$scratch/broken/model.safetensors" 2>"$scratch/said"
[ $? = 2 ] && grep -q "init: .*model.safetensors: tensor .* its bytes were changed" "$scratch/said" || fail "damaged parameters: $(cat "$scratch/said")"
begin_again
"$mxgold" train "$scratch/llama.json" -o "$scratch/broken" --resume --set train.steps=13 --init "$scratch/a/model.safetensors" >/dev/null 2>"$scratch/said"
[ "$(cat "$scratch/said")" = "mxgold: warning: on, but without any effect in the first step: init" ] || fail "--init beside --resume: $(cat "$scratch/said")"
run broken --set train.steps=2
grep -q '^replaced *the run that was in the folder$' "$scratch/stdout" || fail "a run that is replaced: $(cat "$scratch/stdout")"
run decays --set schedule.kind=cosine --set train.steps=3
refuses "mxgold: $scratch/decays/config.json: train.steps is another than the 3 that the run was begun with, over which its rate decays" "$mxgold" train "$scratch/llama.json" -o "$scratch/decays" --resume --set schedule.kind=cosine --set train.steps=4
# Where two runs part.
run g --digests all
run h --digests all --set quant.operands=Q5:had.sign=none,elem.round=rne --set 'quant.operands=["Q5:elem.round=rne"]'
"$mxgold" train --compare "$scratch/g" "$scratch/h" >"$scratch/said"
[ $? = 1 ] || fail "--compare of two runs that differ: exit $?"
grep -q "^The runs part at step 0, at gradient:model.layers.0" "$scratch/said" || fail "--compare says: $(cat "$scratch/said")"
accepts "$mxgold" train --compare "$scratch/a" "$scratch/b"
refuses "mxgold: $scratch/g has a digest of each tensor and $scratch/a has not: both are to be run with --digests all, or neither" "$mxgold" train --compare "$scratch/a" "$scratch/g"
head -n 2 "$scratch/a/digests.txt" >"$scratch/shorter" && mkdir "$scratch/ended" && mv "$scratch/shorter" "$scratch/ended/digests.txt"
accepts "$mxgold" train --compare "$scratch/a" "$scratch/ended"
run ended-1 --set train.steps=1
# Where the gradients go is looked at before the first step.
refuses "mxgold: gradients: 'g.st', expected a name that ends in .safetensors" "$mxgold" train "$scratch/llama.json" -o "$scratch/no" --gradients g.st
refuses "mxgold: gradients: $scratch/none/: No such file or directory" "$mxgold" train "$scratch/llama.json" -o "$scratch/no" --gradients "$scratch/none/g.safetensors"
[ ! -e "$scratch/no" ] || fail "a run with a bad name for its gradients has begun"
refuses "mxgold: gradients: all 1 steps of the run are done, expected one that is left" "$mxgold" train "$scratch/llama.json" -o "$scratch/ended-1" --resume --set train.steps=1 --gradients "$scratch/g.safetensors"
# What a run wrote is its configuration, and its parameters begin another.
accepts "$mxgold" train "$scratch/a/config.json" -o "$scratch/i"
same a i digests.txt
# It is refused where what it says of its quant is another thing.
sed 's/"requant.source": "hp"/"requant.source": "reuse"/' "$scratch/a/config.json" >"$scratch/other.json"
refuses "mxgold: $scratch/other.json: resolved.train.requant.source is not what quant comes to; expected the same, or a file without \"resolved\"" "$mxgold" train "$scratch/other.json" -o "$scratch/no"
sed 's/"Q3": "elem=e2m1 /"Q3": "elem=e2m3 /' "$scratch/a/config.json" >"$scratch/other.json"
refuses "mxgold: $scratch/other.json: resolved.specs.Q3 is not what quant comes to; expected the same, or a file without \"resolved\"" "$mxgold" train "$scratch/other.json" -o "$scratch/no"
accepts "$mxgold" train "$scratch/other.json" -o "$scratch/other" --set quant.recipe=recipe-ocp --set train.steps=1
(cd "$scratch" && "$mxgold" train llama.json -o deep --set train.steps=1 >/dev/null 2>&1 && "$mxgold" train deep/config.json -o again >/dev/null 2>&1) || fail "config.json of a run begun by a relative path"
same deep again digests.txt
run j --init "$scratch/a/model.safetensors" --gradients "$scratch/g.safetensors" --set train.steps=1
kind_of() { # KIND: the options that make it of llama.json, without the keys that it does not read
  echo --set model.kind=$1
  [ $1 != byte_mlp ] || echo --set model.layers=null --set model.heads=null --set model.ffn=null
}
for kind in gpt2 byte_mlp; do
  run $kind $(kind_of $kind) --set quant.recipe=recipe-nvfp4
  run $kind-1 $(kind_of $kind) --set quant.recipe=recipe-nvfp4 --threads 1
  same $kind $kind-1 digests.txt
done
# Rows of numbers: the same bits for any number of threads and without vectors, and over a resume in the midst of an epoch.
cat >"$scratch/rows.json" <<'J'
{"train": {"steps": 12, "batch": 32, "eval_every": 6, "seed": 3},
 "optimizer": {"kind": "adam", "lr": 0.01}, "quant": {"recipe": "recipe-nvfp4"}}
J
for kind in gaussian digits diffusion; do
  case $kind in
    gaussian) task="--set data.rows=200 --set data.features=40" ;;
    digits) task="--set model.width=24 --set data.file=$root/configs/data/digits.safetensors" ;;
    diffusion) task="--set model.width=24 --set data.rows=200 --set data.timesteps=10" ;;
  esac
  rows() { accepts "$mxgold" train "$scratch/rows.json" -o "$scratch/$kind-$1" --set model.kind=$kind $task "${@:2}"; }
  rows a
  rows b --threads 1
  same $kind-a $kind-b digests.txt
  rows c --isa-off all
  same $kind-a $kind-c digests.txt
  rows d --set train.steps=7
  rows d --resume
  for f in digests.txt model.safetensors state.safetensors; do same $kind-a $kind-d $f; done
  rows e --init "$scratch/$kind-a/model.safetensors" --gradients "$scratch/g.safetensors" --set train.steps=1
  rows f --set data.order=sequential
  cmp -s "$scratch/$kind-a/digests.txt" "$scratch/$kind-f/digests.txt" && fail "$kind: data.order changes nothing"
done
grep -q '"val_accuracy": ' "$scratch/digits-a/metrics.jsonl" || fail "digits: no accuracy"
# Measurements change no bit of a run, and are the same for any number of threads; the late switch is gone on with.
run m0 --set quant.recipe=recipe-nvfp4
measured() { run $1 --set quant.recipe=recipe-nvfp4 --set metrics.every=5 --set metrics.layers=model.layers.0.mlp.* --set threshold.every=3 "${@:2}"; }
measured m1
same m0 m1 digests.txt
measured m2 --threads 1
same m1 m2 metrics.jsonl
measured m3 --set threshold.full=true
same m0 m3 digests.txt
python3 - "$scratch/m1/metrics.jsonl" <<'P' || fail "metrics.jsonl lacks what was asked for"
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
layer = lines[5]["layers"]["model.layers.0.mlp.down_proj"]
assert sorted(lines[5]["layers"]) == ["model.layers.0.mlp." + n + "_proj" for n in ("down", "gate", "up")] and "layers" not in lines[6]
assert 0.9 < layer["wgrad"]["gain"] < 1.1 and -1 <= layer["wgrad"]["correlation"] <= 1 and 0 < layer["Q2"]["changed"] < 1
assert [l["step"] for l in lines if "rho_all" in l] == [0, 3, 6, 9] and len(lines[3]["rho"]) == 7
P
switched() { run $1 --set quant.recipe=recipe-tetrajet --set threshold.every=2 "${@:2}"; }
switched s0
switched s1 --set qaf.when=step --set qaf.step=6
switched s2 --set qaf.when=step --set qaf.step=6 --set train.steps=9
switched s2 --set qaf.when=step --set qaf.step=6 --resume
same s1 s2 state.safetensors
[ "$(diff "$scratch/s0/digests.txt" "$scratch/s1/digests.txt" | sed -n 1p)" = 7,12c7,12 ] || fail "qaf.step=6 does not act from step 6 on"
[ "$(grep -c '"qaf": true' "$scratch/s1/metrics.jsonl")" = 6 ] || fail "metrics.jsonl does not say from which step on qaf acts"
# So much noise in Wgrad that the threshold is passed at once: three measurements, then the switch; over a resume too, before it and after it.
switched s3 --set qaf.when=step --set qaf.step=6 --set qaf.dtype=bf16
[ "$(diff "$scratch/s1/digests.txt" "$scratch/s3/digests.txt" | sed -n 1p)" = 7,12c7,12 ] || fail "qaf.dtype=bf16 does not act from step 6 on"
noisy() { run $1 --set quant.recipe=recipe-ocp --set 'quant.operands=["Q5:elem.round=sr,elem.prescale=0.02","Q6:elem.round=sr,elem.prescale=0.02"]' --set threshold.every=2 --set qaf.when=threshold --set qaf.patience=3 "${@:2}"; }
noisy t1
[ "$(grep -n '"qaf": true' "$scratch/t1/metrics.jsonl" | sed -n 's/:.*//;1p')" = 6 ] || fail "the threshold does not switch at step 5"
for steps in 3 8; do
  noisy t$steps-of --set train.steps=$steps
  noisy t$steps-of --resume
  same t1 t$steps-of state.safetensors
done
run high --set 'quant.high=["model.layers.0.self_attn.*"]'
cmp -s "$scratch/a/digests.txt" "$scratch/high/digests.txt" && fail "quant.high changes nothing"
# Everything that a step computes has a digest of its own name: activations, their gradients, each batch of a step, each of an evaluation.
digested() { cut -d' ' -f1,2 "$scratch/$1/digests.txt"; }
for kind in llama gpt2 byte_mlp; do
  run all-$kind --digests all $(kind_of $kind) --set quant.recipe=recipe-ocp --set train.steps=1 --set train.accumulate=2
  [ -z "$(digested all-$kind | sort | uniq -d)" ] || fail "$kind: two digests of one name: $(digested all-$kind | sort | uniq -d | head -1)"
  for of in batch.0:output batch.1:output_gradient evaluation.fp32.1:output evaluation.quantised.0:output; do
    case $kind in
      llama) parts="model.embed_tokens model.layers.0.input_layernorm model.layers.0.self_attn.attention model.layers.0.mlp.silu model.norm lm_head" ;;
      gpt2) parts="transformer.embeddings transformer.h.0.ln_2 transformer.h.0.attn.attention transformer.h.0.mlp.act transformer.ln_f lm_head" ;;
      byte_mlp) parts="embed linear.2 relu.1 out" ;;
    esac
    for part in $parts; do digested all-$kind | grep -q "^0 $of:$part\$" || fail "$kind: no digest of $of:$part"; done
  done
done
accepts "$mxgold" train --list
diverges() { "$mxgold" train "$scratch/llama.json" -o "$scratch/k" --set optimizer.lr=1e20 --set optimizer.clip=0 --set train.steps=40 >/dev/null 2>"$scratch/said"; }
diverges
[ $? = 1 ] || fail "a run that diverges: exit $?, expected 1"
grep -q "the loss is not finite; the first output that is not finite is that of model.layers.0" "$scratch/said" || fail "a run that diverges says: $(cat "$scratch/said")"
# A loss that explodes ends it as well, unless it is told otherwise; and a gradient that is not finite, before it reaches a weight.
ends() { # WHAT RUN OPTION...: a run that ends with exit status 1 and these words
  "$mxgold" train "$scratch/llama.json" -o "$scratch/$2" --set optimizer.clip=0 --set train.steps=20 "${@:3}" >/dev/null 2>"$scratch/said"
  [ $? = 1 ] && grep -q "$1" "$scratch/said" || fail "a run that diverges says: $(cat "$scratch/said")"
}
ends "step 10: the loss, [0-9.e+]*, is above 4 times the 5.54518 of a model that knows nothing for the 10th step in a row; the largest gradient is that of " explodes --set optimizer.lr=10
[ "$(wc -l <"$scratch/explodes/metrics.jsonl")" = 11 ] || fail "a loss that explodes ends after $(wc -l <"$scratch/explodes/metrics.jsonl") steps"
python3 -c 'import json, sys; line = json.loads(open(sys.argv[1]).read().splitlines()[-1]); assert line["step"] == 10 and line["loss"] > 22 and line["diverged"].startswith("the loss, ")' "$scratch/explodes/metrics.jsonl" || fail "the line of the step that diverged"
python3 -c 'import json, sys; line = json.loads(open(sys.argv[1]).read().splitlines()[-1]); assert line["loss"] is None and line["diverged"].startswith("the loss is not finite")' "$scratch/k/metrics.jsonl" || fail "the line of a loss that is not finite"
accepts "$mxgold" train "$scratch/llama.json" -o "$scratch/explodes" --set optimizer.clip=0 --set optimizer.lr=10 --set train.steps=12 --resume --set train.divergence=0
ends "a gradient is not finite; the first of the backward pass is that of lm_head.weight" overflows --set loss.scale=1e39
run overflows-not --set optimizer.clip=0 --set loss.scaling=dynamic --set loss.init=1e39 --set train.steps=3
no() { refuses "mxgold: $1" "$mxgold" train "$scratch/llama.json" -o "$scratch/x" "${@:2}"; }
no "$scratch/llama.json: unknown key 'model.widht'; nearest: model.width" --set model.widht=3
no "$scratch/llama.json: model.kind: expected one of llama|gpt2|byte_mlp|gaussian|digits|diffusion; nearest: llama" --set model.kind=lama
no "$scratch/llama.json: model.heads is 3, expected a divisor of model.width, 32" --set model.heads=3
no "$scratch/llama.json: train.steps: expected a whole number from 1 to 1000000000" --set train.steps=0
no "$scratch/llama.json: quant.accum: fprop: model 's32': an integer sum takes no block scales, expected operands without scales" --set quant.recipe=recipe-ocp --set quant.accum=s32
no "$scratch/llama.json: unknown section 'modl'; nearest: model" --set modl={}
no "$scratch/llama.json: schedule.decay_steps is 8, expected more than schedule.warmup, 8, or 0" --set schedule.kind=cosine --set schedule.warmup=8 --set schedule.decay_steps=8
no "$scratch/llama.json: optimizer.momentum is 1, expected a share below 1" --set optimizer.kind=sgd --set optimizer.momentum=1
no "$scratch/llama.json: loss.scale is 1e-40, expected a factor above 2^-127" --set loss.scale=1e-40
no "no memory for 4000000000 rows of 1000000 numbers" --set model.kind=gaussian --set data.rows=4000000000 --set data.features=1000000
no "no memory for the model and its activations" --set model.width=65536 --set model.ffn=1048576
no "$scratch/llama.json: quant.train: Q1: grad.config is of one scale a block, not of select=eden" --set quant.recipe=recipe-ocp --set quant.set="scale=e4m3 block=1x16 scale.rule=value select=eden" --set quant.train.grad.config=absmax
no "$scratch/llama.json: quant.recipe: unknown recipe 'recipe-ocpp'; nearest: recipe-ocp" --set quant.recipe=recipe-ocpp
no "$scratch/llama.json: quant.train: unknown training key 'requant'; nearest: requant.source" --set quant.train.requant=hp
no "data.text: $scratch/none.txt: No such file or directory" --set data.text=none.txt
no "quant.high: no linear is named 'head'; the first is model.layers.0.self_attn.q_proj" --set 'quant.high=["head"]'
no "init: $scratch/a/model.safetensors: model.layers.0.mlp.gate_proj.weight has the shape [48, 32], expected [50, 32] for this configuration's model" --set model.ffn=50 --init "$scratch/a/model.safetensors"
no "$scratch/llama.json: data.file: expected the path of a .safetensors file of images and labels" --set model.kind=digits
no "data.file: $scratch/a/model.safetensors: no tensor 'images', nearest: lm_head.weight" --set model.kind=digits --set data.file="$scratch/a/model.safetensors"
no "train.batch is 32, expected at most the 18 rows to train on" --set model.kind=gaussian --set data.rows=20 --set train.batch=32
no "$scratch/llama.json: data.beta_last is 1, expected a share below 1" --set model.kind=diffusion --set data.beta_last=1
no "$scratch/llama.json: qaf.when=threshold: threshold.every is 0, so that nothing is measured" --set qaf.when=threshold --set threshold.every=0
no "metrics.layers: no linear is named 'mlp'; the first is model.layers.0.self_attn.q_proj" --set metrics.every=1 --set metrics.layers=mlp
# Values as a shell gives them: a number that begins with its point, a whole object; what begins as JSON must be JSON.
run told --set 'quant.train={"occ.alpha": .95, "occ.axis": "tensor"}' --set optimizer.beta2=.9 --set train.steps=1e0
grep -q '"occ.alpha": "0.95"' "$scratch/told/config.json" && grep -q '"beta2": 0.9' "$scratch/told/config.json" || fail "quant.train as an object, or .9, is not taken"
run nothing-told --set quant.train=null --set train.steps=1
run null-told --set quant.train.occ.alpha=null --set train.steps=1
same nothing-told ended-1 digests.txt
same null-told ended-1 digests.txt
no "--set quant.train: '{occ.alpha:.9}' begins as JSON and is none: string or '}' expected near 'occ'" --set 'quant.train={occ.alpha:.9}'
no "$scratch/llama.json: model: expected an object of keys, such as model.kind" --set model=3
no "$scratch/llama.json: quant: expected an object, or null for FP32" --set quant=recipe-ocp
no "$scratch/llama.json: quant.recipe: expected a string" --set quant.recipe=4
no "$scratch/llama.json: quant.set: unknown key 'elem.rond'; nearest: elem.round" --set quant.set=elem.rond=sr
no "$scratch/llama.json: quant.operands: dgrad: Q3 has blocks of 16 along the reduction axis and Q4 of 32, expected the same" --set quant.operands=Q3:block=1x16
no "$scratch/llama.json: quant.gemms: 'dgard' is not a product, expected fprop, dgrad, wgrad" --set 'quant.gemms=["dgard"]'
no "$scratch/llama.json: quant.accum: model 'f32' is unknown, nearest: s32, f32_block, f32_seq" --set quant.accum=f32
no "$scratch/llama.json: optimizer.beta1 is 1, expected a decay below 1" --set optimizer.beta1=1
no "$scratch/llama.json: model.bias: gpt2 alone can be without biases" --set model.kind=byte_mlp --set model.bias=false
head -c 70000 /dev/zero >"$scratch/zeros.txt"
no "no memory for the model and its activations" --set data.text=zeros.txt --set model.context=60000 --set model.width=16 --set model.heads=8 --set model.layers=3 --set train.batch=4
no "init: $scratch/none.safetensors: cannot open: No such file or directory" --init "$scratch/none.safetensors"
no "init: $scratch/a/model.safetensors: tensor 'lm_head.weight' is not a parameter of this configuration's model; nearest: model.norm.weight" --set model.tied=true --init "$scratch/a/model.safetensors"
[ ! -e "$scratch/x" ] || fail "a refused run left a folder"
refuses "mxgold: $scratch/a/config.json: optimizer.lr is another than the run was begun with" "$mxgold" train "$scratch/llama.json" -o "$scratch/a" --resume --set optimizer.lr=1
refuses "mxgold: train: no output, expected -o RUN" "$mxgold" train "$scratch/llama.json"
# gemm.fp32=openblas is named where it is there, and one line where it is not.
if "$mxgold" train "$scratch/llama.json" -o "$scratch/blas" --set gemm.fp32=openblas --set train.steps=2 >"$scratch/said" 2>"$scratch/why"; then
  grep -q "^FP32 products .*OpenBLAS" "$scratch/said" || fail "OpenBLAS is not named: $(cat "$scratch/said")"
  grep -q '"fp32": "openblas"' "$scratch/blas/config.json" || fail "config.json does not name OpenBLAS"
else
  grep -q "gemm.fp32=openblas: .*libopenblas" "$scratch/why" && [ "$(wc -l <"$scratch/why")" = 1 ] || fail "without OpenBLAS: $(cat "$scratch/why")"
fi
# A run of one thread starts no other, whatever its recipe calls: rotations under softmax scales took all processors, in each process of a sweep.
cat >"$scratch/no_thread.c" <<'C'
#include <pthread.h>
#include <stdlib.h>
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg) {
  (void)t, (void)a, (void)f, (void)arg;
  abort();
}
C
cat >"$scratch/wide.json" <<'J'
{"model": {"kind": "gaussian"}, "data": {"rows": 4096, "features": 128, "split": 0.75}, "train": {"steps": 2, "batch": 2048, "seed": 1},
 "optimizer": {"kind": "adam", "lr": 0.01}, "quant": {"recipe": "recipe-ocp", "set": ["had.size=32"], "train": {"grad.config": "softmax"}}}
J
if [ -z "${ASAN_OPTIONS-}${TSAN_OPTIONS-}" ] && ${CC:-cc} -shared -fPIC "$scratch/no_thread.c" -o "$scratch/no_thread.so"; then
  accepts env LD_PRELOAD="$scratch/no_thread.so" OMP_NUM_THREADS=4 "$mxgold" train "$scratch/wide.json" -o "$scratch/one-thread" --threads 1
  (env LD_PRELOAD="$scratch/no_thread.so" OMP_NUM_THREADS=4 "$mxgold" train "$scratch/wide.json" -o "$scratch/four-threads" --threads 4) >/dev/null 2>&1 &&
    fail "a run of four threads starts none: the check cannot fail"
fi
