# README.md shows what the program says now: each console block is run. A line "..." stands for any lines, " ..." at the end of one for its rest.
: "${scratch:?run by tests/run-cli.sh}"
python3 - "$root" "$mxgold" <<'P' || fail "README.md is out of date"
import re, shlex, subprocess, sys
root, mxgold = sys.argv[1:]
bad = 0
blocks = re.findall(r"```console\n\$ (mxgold .*)\n((?:(?!```).*\n)*)```", open(root + "/README.md").read())
assert len(blocks) >= 3
for command, shown in blocks:
    args = [mxgold] + [re.sub(r"^(tests|golden)/", root + r"/\1/", a) for a in shlex.split(command)[1:]]
    got = subprocess.run(args, capture_output=True, text=True)
    said = got.stdout.replace(root + "/", "")
    pattern = "".join("(?:.*\n)*" if l == "..." else re.escape(l[:-4]) + ".*\n" if l.endswith(" ...") else re.escape(l) + "\n" for l in shown.split("\n")[:-1])
    if got.returncode or not re.fullmatch(pattern, said):
        print("  README.md: " + command, got.stderr)
        bad = 1
sys.exit(bad)
P
