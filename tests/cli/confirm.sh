# identify --confirm and --plugin: an answer is run on data that it was not found from; JSON says the same in identifiers.
: "${scratch:?run by tests/run-cli.sh}"
# launch NAME SEED SHAPE QUANTIZE-OPTION...: NAME.safetensors has input, codes, scales and tensor scale of one launch
cat >join.py <<'P'
import json, struct, sys
def read(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    return {k: (v, raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in head.items() if k != "__metadata__"}
tensors = read(sys.argv[2])
tensors["input"] = read(sys.argv[1])["input"]
head, data = {}, b""
for name, (about, bytes_) in tensors.items():
    head[name] = {"dtype": about["dtype"], "shape": about["shape"], "data_offsets": [len(data), len(data) + len(bytes_)]}
    data += bytes_
text = json.dumps(head).encode()
open(sys.argv[3], "wb").write(struct.pack("<Q", len(text)) + text + data)
P
launch() {
  accepts "$mxgold" gen random --preset ocp-mxfp4 --seed "$2" --shape "$3" -o in.safetensors
  accepts "$mxgold" quantize in.safetensors:input -o out.safetensors "${@:4}"
  python3 join.py in.safetensors out.safetensors "$1.safetensors" || fail "launch $1"
}
says() { grep -qE -- "$1" "$scratch/stdout" || fail "did not say $1: $(cat "$scratch/stdout")"; }
shift_row=(--preset ocp-mxfp4 --fault "rows%4=3: scale store <- row -1")
launch right 1 32x128 --preset te-nvfp4
launch right2 2 48x256 --preset te-nvfp4
launch fault 1 32x128 "${shift_row[@]}"
launch fault2 2 48x256 "${shift_row[@]}"
launch plain 1 32x128 --preset ocp-mxfp4
launch plain2 2 48x256 --preset ocp-mxfp4

# What holds on a second launch is confirmed: a spec has exit 0, a fault exit 1.
accepts "$mxgold" identify --output right.safetensors --confirm right2.safetensors --quick
says '^grade  *confirmed$'; says '^holds on  *right2.safetensors$'; says 'gives every byte of right2.safetensors too\.$'
differs "gives every byte of fault2.safetensors too." "$mxgold" identify --output fault.safetensors --confirm fault2.safetensors --quick
says '^grade  *confirmed$'; says '^fault  *rows%4=3: scale store <- row -1$'
# What does not is no answer, and says where; so too where it was expected, or allowed.
for expect in "" "--expect ocp-mxfp4"; do
  # shellcheck disable=SC2086
  differs "does not hold on fault2.safetensors: 0 of 12288 codes and 95 of 384 scales differ there, the first in row 3, column 0. So it is no answer. It was mxgold quantize with --preset ocp-mxfp4" \
    "$mxgold" identify --output plain.safetensors --confirm fault2.safetensors --quick $expect
  says '^exact  *no$'; says '^grade  *none$'; says '^spec  *none$'; says '^preset  *none$'; says '^reproduce  *none$'
done
says '^expected  *no$'
differs "does not hold on plain2.safetensors" "$mxgold" identify --output fault.safetensors --confirm plain2.safetensors --expect ocp-mxfp4 --allow "${shift_row[3]}"
accepts "$mxgold" identify --output fault.safetensors --confirm fault2.safetensors --expect ocp-mxfp4 --allow "${shift_row[3]}"
says '^expected  *yes$'; says '^grade  *confirmed$'
"$mxgold" identify --output plain.safetensors --confirm fault2.safetensors --quick --json >found.json
python3 - <<'P' || fail "JSON of an answer that does not hold: $(cat found.json)"
import json
d = json.load(open("found.json"))
assert d["schema_version"] == 3 and d["exact"] is False and d["grade"] == "none" and d["expected"] is None and d["spec"] is None and d["bug"] is None
assert d["reproduce"] == [] and d["codes_differ"] == 0 and d["scales"] == 128
assert d["confirm"] == {"on": "fault2.safetensors", "holds": False, "codes_differ": 0, "scales_differ": 95, "tensor_scales_differ": 0,
                        "answer": "--preset ocp-mxfp4", "first": {"suite": "", "row": 3, "column": 0}}, d["confirm"]
P
# What confirms nothing.
refuses "mxgold: right.safetensors: its input is that of the first launch, expected a launch on another input" "$mxgold" identify --output right.safetensors --confirm right.safetensors
refuses "mxgold: plain2.safetensors: its scales are not as many as the answer of the first launch has" "$mxgold" identify --output right.safetensors --confirm plain2.safetensors --quick
"$mxgold" quantize right.safetensors:input --preset ocp-mxfp4 -o bare.safetensors
refuses "mxgold: --confirm bare.safetensors: no tensor input or x, expected a file with what the kernel gave on another launch and the input of that launch" \
  "$mxgold" identify --output right.safetensors --confirm bare.safetensors
refuses "mxgold: none.safetensors: cannot open: No such file or directory" "$mxgold" identify --output right.safetensors --confirm none.safetensors

# A kernel that can be run: inputs that tell, and fresh ones.
for bug in NONE TIES AMAX BOUNDS; do
  ${CC:-cc} -O2 -shared -fPIC -DBUG_$bug -I"$root/include" "$root/examples/kernel_plugin.c" -lm -o $bug.so || fail "cannot build a plugin"
done
accepts "$mxgold" identify --plugin ./NONE.so --preset ocp-mxfp4
says '^preset  *ocp-mxfp4$'; says '^holds on  *fresh inputs$'
accepts "$mxgold" identify --plugin ./NONE.so --expect ocp-mxfp4
says '^expected  *yes$'
accepts "$mxgold" identify --plugin ./TIES.so --quick
says '^spec  *elem.round=rna$'
differs "your kernel does what ocp-mxfp4 does, except that elem.round is rna" "$mxgold" identify --plugin ./TIES.so --expect ocp-mxfp4 --quick
differs "fault                      all: block amax <- no abs" "$mxgold" identify --plugin ./AMAX.so --quick
says '^grade  *confirmed$'
accepts "$mxgold" identify --plugin ./AMAX.so --expect ocp-mxfp4 --allow "all: block amax <- no abs" --quick
"$mxgold" identify --plugin ./BOUNDS.so >"$scratch/stdout" 2>"$scratch/stderr"
[ $? = 2 ] && grep -q "on input random: Your kernel crashes on 64 x 256: SIGSEGV at address 0x[0-9a-f]*, 1 bytes behind the end of codes\.$" "$scratch/stderr" ||
  fail "a kernel that crashes: $(cat "$scratch/stderr")"
refuses "mxgold: ./TIES.so: nothing was identified: the kernel declined all 3 tensors" "$mxgold" identify --plugin ./TIES.so --preset te-nvfp4
refuses "mxgold: identify: --preset needs --plugin; what the kernel should do goes to --expect" "$mxgold" identify --output right.safetensors --preset ocp-mxfp4
refuses "mxgold: identify: --plugin runs the kernel itself, and excludes files of what it gave" "$mxgold" identify --plugin ./NONE.so --output right.safetensors
# A kernel that is right on the inputs that tell, and wrong on a fresh one.
sed 's/^int mxgold_quantize(/static int inner(/' "$root/examples/kernel_plugin.c" >odd.c
cat >>odd.c <<'C'
int mxgold_quantize(const mxgold_job *job) {
  const int rc = inner(job);
  if (job->x[0] > 0.2f && job->x[0] < 0.3f) job->codes[job->code_stride + 3] ^= 0x10;
  return rc;
}
C
${CC:-cc} -O2 -shared -fPIC -I"$root/include" odd.c -lm -o odd.so || fail "cannot build odd.c"
for expect in "" "--expect ocp-mxfp4"; do
  # shellcheck disable=SC2086
  differs "does not hold on fresh inputs: 1 of 73728 codes and 0 of 2304 scales differ there, the first in random row 1, column 7. So it is no answer." \
    "$mxgold" identify --plugin ./odd.so --quick $expect
  says '^grade  *none$'
done
