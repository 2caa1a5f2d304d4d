# `mxgold ablate --gemm` and --six: progress, and what of a recipe is not measured.
: "${scratch:?run by tests/run-cli.sh}"
six="$mxgold ablate --six gen:gaussian gen:laplace gen:rows:1.5 --shape 64x64"

# A recipe's training keys are named, those of every recipe that has some and of no other.
# shellcheck disable=SC2086
accepts $six -p recipe-tetrajet,recipe-ocp,recipe-wang
grep -q '^recipe-tetrajet  requant.source=fwd_dequant$' "$scratch/stdout" && grep -q '^recipe-wang  *requant.source=reuse$' "$scratch/stdout" ||
  fail "--six does not name the training keys that it leaves out"
! grep -q '^recipe-ocp  [a-z_.]*=' "$scratch/stdout" || fail "--six names training keys of a recipe that has none"
# shellcheck disable=SC2086
accepts $six -p recipe-ocp,nvfp4
! grep -q 'training keys' "$scratch/stdout" || fail "a heading of training keys above nothing"
# shellcheck disable=SC2086
accepts $six -p recipe-tetrajet,nvfp4 --json
python3 - "$scratch/stdout" <<'P' || fail "--six --json: training keys"
import json, sys
assert json.load(open(sys.argv[1]))["training_keys_ignored"] == [{"preset": "recipe-tetrajet", "keys": "requant.source=fwd_dequant"}]
P

# -v says the time, and no rate of bytes; a terminal sees the share move within one spec, with the time left.
# shellcheck disable=SC2086
$six -p nvfp4 -v 2>err >/dev/null || fail "--six -v"
grep -Eq '^ablate --six: [0-9.]+ s$' err && ! grep -q 'MiB' err || fail "--six -v says a rate of bytes: $(cat err)"
python3 - "$mxgold" <<'P' || fail "--gemm on a terminal: progress does not move within a spec, or no time left is said"
import os, pty, re, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "ablate", "--gemm", "gen:gaussian", "gen:laplace", "--shape", "512x1024", "--set", "elem.round=sr", "--repeats", "12", "-v"])
said = b""
while True:
    try:
        more = os.read(fd, 65536)
    except OSError:
        break
    if not more:
        break
    said += more
assert os.waitpid(pid, 0)[1] == 0, said
shares = [int(v) for v in re.findall(rb"ablate --gemm: +(\d+)%, \d+ (?:s|min) left", said)]
assert len(set(shares)) >= 2 and shares == sorted(shares) and shares[-1] <= 100, said
P
