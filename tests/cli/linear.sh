# Tests a linear layer by the command line: its operands are what `quantize` makes, the fast and the slow computation agree, and bad input is refused in one line.
: "${scratch:?run by tests/run-cli.sh}"
python3 - "$scratch" <<'P'
import random, struct, sys
random.seed(1)
def npy(path, rows, cols):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, cols)).encode()
    head += b" " * ((64 - (10 + len(head) + 1) % 64) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<%df" % (rows * cols), *(random.gauss(0, 1) for _ in range(rows * cols))))
npy(sys.argv[1] + "/x.npy", 40, 70)
npy(sys.argv[1] + "/w.npy", 50, 70)
npy(sys.argv[1] + "/dy.npy", 40, 50)
npy(sys.argv[1] + "/short.npy", 39, 50)
P
cat >"$scratch/tensors.py" <<'P'
"""tensors.py A.safetensors NAME [B.safetensors NAME]: prints the digest of a tensor, or says whether two hold the same bytes."""
import hashlib, json, struct, sys
def read(path, name):
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    at = json.loads(b[8:8 + n])[name]["data_offsets"]
    return b[8 + n + at[0]:8 + n + at[1]]
pairs = [read(*sys.argv[i:i + 2]) for i in range(1, len(sys.argv), 2)]
sys.exit(0 if len(pairs) == 1 or pairs[0] == pairs[1] else 1)
P
x=$scratch/x.npy w=$scratch/w.npy dy=$scratch/dy.npy out=$scratch/out.safetensors
for recipe in recipe-ocp recipe-nvfp4 recipe-quartet recipe-tetrajet recipe-tseng recipe-wang; do
  accepts "$mxgold" linear "$x" "$w" "$dy" --recipe $recipe --seed 3 --step 7 --layer 2 -o "$out"
  accepts "$mxgold" linear "$x" "$w" "$dy" --recipe $recipe --seed 3 --step 7 --layer 2 --ref -o "$scratch/ref.safetensors"
  cmp -s "$out" "$scratch/ref.safetensors" || fail "$recipe: --ref gives another file"
  accepts "$mxgold" linear "$x" "$w" "$dy" --recipe $recipe --seed 3 --step 7 --layer 2 --threads 1 -o "$scratch/one.safetensors"
  cmp -s "$out" "$scratch/one.safetensors" || fail "$recipe: one thread gives another file"
done
accepts "$mxgold" linear "$x" "$w" "$dy" --preset ocp-mxfp4 -o "$out"
accepts "$mxgold" quantize "$x" --preset ocp-mxfp4 -o "$scratch/q.safetensors"
python3 "$scratch/tensors.py" "$out" q1.codes "$scratch/q.safetensors" codes || fail "q1.codes are not those of quantize"
python3 "$scratch/tensors.py" "$out" q1.scales "$scratch/q.safetensors" scales || fail "q1.scales are not those of quantize"
accepts "$mxgold" quantize "$w" --preset ocp-mxfp4 -o "$scratch/qw.safetensors"
accepts "$mxgold" gemm "$scratch/q.safetensors" "$scratch/qw.safetensors" -o "$scratch/y.safetensors"
python3 "$scratch/tensors.py" "$out" y "$scratch/y.safetensors" d || fail "y is not the product of quantize and gemm"
# A step, a layer, a seed of their own are draws of their own.
accepts "$mxgold" linear "$x" "$w" "$dy" --recipe recipe-tseng -o "$scratch/a.safetensors"
for other in "--step 1" "--layer 1" "--seed 1"; do
  accepts "$mxgold" linear "$x" "$w" "$dy" --recipe recipe-tseng $other -o "$scratch/b.safetensors"
  python3 "$scratch/tensors.py" "$scratch/a.safetensors" q3.codes "$scratch/b.safetensors" q3.codes && fail "$other draws what the first call drew"
done
# Clamped outliers are counted: of 70 sorted numbers those below rank floor(.1 * 69) = 6, and as many above, in each of 40 rows; at .99 none.
for alpha in .9:480 .99:0; do
  accepts "$mxgold" linear "$x" "$w" "$dy" --recipe recipe-wang --train occ.alpha=${alpha%:*} -o "$out"
  accepts "$mxgold" linear "$x" "$w" "$dy" --recipe recipe-wang --train occ.alpha=${alpha%:*} --ref -o "$scratch/ref.safetensors"
  cmp -s "$out" "$scratch/ref.safetensors" || fail "occ.alpha=$alpha: --ref gives another file"
  grep -aq "\"occ.clamped\": *\"${alpha#*:}\"" "$out" || fail "occ.alpha=${alpha%:*}: expected ${alpha#*:} clamped values"
done
# They are counted where Wgrad alone sees them too.
for how in --threads=1 --ref; do
  accepts "$mxgold" linear "$x" "$w" "$dy" --recipe recipe-wang --train occ.alpha=.9 --gemms wgrad $how -o "$out"
  grep -aq '"occ.clamped": *"480"' "$out" || fail "$how: expected 480 values that are clamped for Wgrad"
done
# A model that does not take the operands is refused before anything is computed, by the reference as well.
for how in --threads=1 --ref; do
  refuses "mxgold: linear: fprop: model 'blackwell_mxf4': P needs operands of at most 5 exponent bits" "$mxgold" linear "$x" "$w" --recipe recipe-bf16 --accum blackwell_mxf4 $how -o "$out"
done
# Keys of many steps have nothing to do here, which is said of those that were given and not of a recipe's own.
"$mxgold" linear "$x" "$w" --train tensor.hold=4,q2.ema=.9,ramp.k1=4 -o "$out" 2>"$scratch/said" || fail "keys of many steps: exit $?"
[ "$(cat "$scratch/said")" = "mxgold: warning: training keys of a whole model or of many steps change nothing here: q2.ema ramp.k1 tensor.hold" ] || fail "keys of many steps: $(cat "$scratch/said")"
accepts "$mxgold" linear "$x" "$w" --recipe recipe-tetrajet-ema -o "$out"
for how in --threads=1 --ref; do # and so is one that does not take blocks of this size
  refuses "mxgold: fprop: model 'blackwell_mxf4': a block of 70 is not a multiple of P=16" "$mxgold" linear "$x" "$w" --recipe recipe-fp8-tensorwise --set scale=ue5m3 --accum blackwell_mxf4 $how -o "$out"
done
# Quartet's two backward products have the same signs, drawn anew at each step; its forward rotation has none.
signs() { grep -ao "q$1.spec\": *\"[^\"]*" "$out" | grep -o "had.signs=[0-9a-f]*"; }
accepts "$mxgold" linear "$x" "$w" "$dy" --recipe recipe-quartet --step 1 -o "$out"
first=$(signs 3)
[ "$first" ] && [ "$(signs 4) $(signs 5) $(signs 6)" = "$first $first $first" ] || fail "recipe-quartet: signs of Q3 to Q6: $first $(signs 4) $(signs 5) $(signs 6)"
accepts "$mxgold" linear "$x" "$w" "$dy" --recipe recipe-quartet --step 2 -o "$out"
[ "$(signs 5)" != "$first" ] || fail "recipe-quartet: two steps have the same signs"
# A product that is switched off is the FP32 product: with all three off every recipe is one.
accepts "$mxgold" linear "$x" "$w" "$dy" --recipe recipe-tseng --gemms "" -o "$scratch/a.safetensors"
accepts "$mxgold" linear "$x" "$w" "$dy" --preset nvfp4 --gemms "" -o "$scratch/b.safetensors"
for t in y dx dw db; do
  python3 "$scratch/tensors.py" "$scratch/a.safetensors" $t "$scratch/b.safetensors" $t || fail "$t depends on a recipe that is switched off"
done
accepts "$mxgold" linear "$x" "$w" --recipe recipe-ocp --accum hopper/wgmma_m64n8k32_f32_e4m3_e5m2 -o "$out"
refuses "mxgold: linear: no output, expected -o OUT.safetensors" "$mxgold" linear "$x" "$w"
refuses "mxgold: linear: --recipe 'recipe-nvf' is unknown, nearest: recipe-nvfp4, recipe-nvfp4-bf16, recipe-ocp" "$mxgold" linear "$x" "$w" --recipe recipe-nvf -o "$out"
refuses "mxgold: $x has 70 columns and $dy 50, expected the same number of input features" "$mxgold" linear "$x" "$dy" -o "$out"
refuses "mxgold: $scratch/short.npy: 39 x 50, expected DY of 40 x 50, a row for each row of X and a column for each row of W" "$mxgold" linear "$x" "$w" "$scratch/short.npy" -o "$out"
refuses "mxgold: linear: fprop: Q1 has blocks of 16 along the reduction axis and Q2 of 32, expected the same" "$mxgold" linear "$x" "$w" --operand Q1:block=1x16 -o "$out"
refuses "mxgold: linear: unknown training key 'requant'; nearest: requant.source" "$mxgold" linear "$x" "$w" --train requant=hp -o "$out"
refuses "mxgold: linear: 'fwd' is not a product, expected fprop, dgrad, wgrad" "$mxgold" linear "$x" "$w" --gemms fwd -o "$out"
refuses "mxgold: $scratch/e.npy: .npy holds one tensor, expected a .safetensors file" "$mxgold" linear "$x" "$w" -o "$scratch/e.npy"
# Gradient rules by their keys; combinations that mean nothing are refused.
accepts "$mxgold" linear "$x" "$w" "$dy" --recipe recipe-seed004-nvfp4 --train grad.config=softmax,grad.tensor=absmax --train grad.jacobian=full -o "$out"
accepts "$mxgold" linear "$x" "$w" "$dy" --recipe recipe-seed004-nvfp4 -o "$scratch/a.safetensors"
for t in y dx dw; do
  python3 "$scratch/tensors.py" "$out" $t "$scratch/a.safetensors" $t && fail "grad.config=softmax leaves $t as it was"
done
python3 "$scratch/tensors.py" "$out" db "$scratch/a.safetensors" db || fail "grad.config=softmax changes db"
refuses "mxgold: linear: Q1: grad.tensor is the derivative of a tensor scale, and tensor.norm=none" "$mxgold" linear "$x" "$w" "$dy" --train grad.tensor=absmax -o "$out"
refuses "mxgold: linear: grad.scale_qprime is a part of the scale's derivative, which grad.config=ste leaves out" "$mxgold" linear "$x" "$w" "$dy" --train grad.scale_qprime=dge -o "$out"
refuses "mxgold: linear: Q1: grad.config is of scales that come from magnitudes, not of scale.rule=quest" "$mxgold" linear "$x" "$w" "$dy" --recipe recipe-quartet --train grad.config=absmax -o "$out"
refuses "mxgold: linear: grad.config=soft: expected one of ste|absmax|softmax|hybrid; nearest: softmax, ste" "$mxgold" linear "$x" "$w" "$dy" --train grad.config=soft -o "$out"
