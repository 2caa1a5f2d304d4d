# ablate --shard: the report of all shares is that of one call, byte for byte, for any number of shares, in any order, side by side, killed and cut at any byte.
: "${scratch:?run by tests/run-cli.sh}"
mkdir "$scratch/shards" && cd "$scratch/shards" || exit # other cases leave files beside it
python3 - <<'P'
import json, random, struct
random.seed(3)
at, head, body = 0, {}, b""
for i, (rows, cols) in enumerate([(64, 256), (1, 32), (8, 512), (33, 96), (64, 64), (7, 160), (16, 128), (2, 2048), (50, 50), (128, 64)]):
    n = rows * cols
    data = struct.pack("<%df" % n, *(random.gauss(0, 1 + i) for _ in range(n)))
    head["layer.%d" % i] = {"dtype": "F32", "shape": [rows, cols], "data_offsets": [at, at + len(data)]}
    at += len(data)
    body += data
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open("m.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)
P
keys=(-p "ocp-mxfp4,nvfp4" --set "elem.round=rne,sr" --repeats 4 --seed 9)
ablate() { "$mxgold" ablate m.safetensors "${keys[@]}" "$@"; }
merged() { # merged DIR WHAT: the report, and that nothing was left to measure
  local lines
  lines=$(cat "$1"/*.state | wc -l)
  accepts ablate --state "$1" --json
  cmp -s want "$scratch/stdout" || fail "$2: the report differs"
  [ "$(cat "$1"/*.state | wc -l)" = "$lines" ] || fail "$2: the report measured again"
}
accepts ablate --json
cp "$scratch/stdout" want
accepts ablate
cp "$scratch/stdout" want.txt
for order in "0/1" "1/2 0/2" "4/5 0/5 3/5 1/5 2/5" "2/3 1/3 0/3 1/3" "15/17 3/17 11/17 16/17 0/17 1/17 2/17 4/17 5/17 6/17 7/17 8/17 9/17 10/17 12/17 13/17 14/17"; do
  rm -rf d
  for share in $order; do accepts ablate --state d --shard "$share" --threads 1; done
  merged d "shares $order"
done
accepts ablate --state d
cmp -s want.txt "$scratch/stdout" || fail "the tables of shares differ"
# Every tensor is one share's, and shares of three have about as many values each.
rm -rf d
n=0
for share in 0/3 1/3 2/3; do
  accepts ablate --state d --shard $share --json
  n=$((n + $(python3 -c 'import json,sys; d = json.load(open(sys.argv[1])); assert d["tensors"] == 10 and d["done_before"] == 0 and d["measurements"] == 4 * d["tensors_of_shard"]; print(d["tensors_of_shard"])' "$scratch/stdout")))
done
[ $n = 10 ] || fail "shares have $n tensors, expected 10"
accepts ablate --state d --shard 1/3 --json
grep -q '"done_before": \([1-9][0-9]*\)' "$scratch/stdout" || fail "a share is measured again: $(cat "$scratch/stdout")"
[ "$(cat d/*.state | wc -l)" = 43 ] || fail "three journals of $(cat d/*.state | wc -l) lines, expected 43"
# Side by side; a share that is killed; journals that are cut at any byte.
rm -rf d
for share in 0/4 1/4 2/4 3/4; do ablate --state d --shard $share >/dev/null 2>&1 & done
wait
merged d "four shares side by side"
rm -rf d
for wait in 0.005 0.02 0.05; do
  ablate --state d --shard 0/2 --threads 1 >/dev/null 2>&1 &
  sleep $wait
  kill -KILL $! 2>/dev/null
  wait $! 2>/dev/null
done
accepts ablate --state d --shard 0/2
accepts ablate --state d --shard 1/2
merged d "a share that was killed three times"
for cut in 1 30 700; do
  for f in d/*.state; do truncate -s -$cut "$f" 2>/dev/null || : >"$f"; done
  accepts ablate --state d --json
  cmp -s want "$scratch/stdout" || fail "journals $cut bytes shorter: the report differs"
done
# Not every share is there: the call without one measures what is missing. Other files of the folder are no journals.
rm -rf d
accepts ablate --state d --shard 1/3
echo "my notes" >d/notes
accepts ablate --state d --json
cmp -s want "$scratch/stdout" || fail "one share of three: the report differs"
[ "$(cat d/notes)" = "my notes" ] || fail "a file that is no journal was changed"
mkdir e
accepts "$mxgold" ablate --gemm m.safetensors:layer.4 m.safetensors:layer.9 --state e --json
cp "$scratch/stdout" product
[ "$(cat e/*.state | wc -l)" = 2 ] || fail "a product has no journal in its folder"
accepts "$mxgold" ablate --gemm m.safetensors:layer.4 m.safetensors:layer.9 --state e --json
cmp -s product "$scratch/stdout" || fail "a product from its folder differs"
# What is refused.
echo "mxgold ablate state" >file
refuses "mxgold: file: is a file, expected a folder, in which each process keeps a journal of its own" ablate --state file --shard 0/2
refuses "mxgold: none/d: cannot make a folder: No such file or directory" ablate --state none/d --shard 0/2
refuses "mxgold: ablate: --shard 2/2: expected I/N, I from 0 to N - 1, N at most 65536" ablate --state d --shard 2/2
refuses "mxgold: ablate: --shard 0: expected I/N, I from 0 to N - 1, N at most 65536" ablate --state d --shard 0
refuses "mxgold: ablate: --shard measures into a folder that the shares have in common, expected --state DIR" ablate --shard 0/2
refuses "mxgold: ablate: --shard reports nothing: --csv, --html and --png go with the call without it" ablate --state d --shard 0/2 --csv
refuses "mxgold: ablate: --shard shares tensors out: it does not go with --gemm or --six" "$mxgold" ablate --gemm gen:gaussian gen:laplace --state d --shard 0/2
