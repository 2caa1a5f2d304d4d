# docs/ABLATE.md shows what the program says now.
python3 - "$root" "$mxgold" <<'P' || fail "docs/ABLATE.md is out of date"
import re, shlex, subprocess, sys
root, mxgold = sys.argv[1:]
bad = 0
blocks = re.findall(r"```console\n\$ (mxgold .*)\n((?:(?!```).*\n)*)```", open(root + "/docs/ABLATE.md").read())
assert len(blocks) >= 5
for command, shown in blocks:
    args = [mxgold] + [a.replace("tests/data/", root + "/tests/data/") for a in shlex.split(command)[1:]]
    got = subprocess.run(args, capture_output=True, text=True)
    if got.returncode or got.stdout != shown:
        print("  ABLATE.md: " + command, got.stderr)
        bad = 1
sys.exit(bad)
P
