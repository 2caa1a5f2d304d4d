# Tests verify on pipes and files that are right, wrong and malformed.
: "${scratch:?run by tests/run-cli.sh}"
accepts "$mxgold" gen tails --preset ocp-mxfp4 --shape 3x40 -o e.mxv
accepts "$mxgold" verify e.mxv
accepts "$mxgold" verify e.mxv e.mxv
accepts "$mxgold" verify - <e.mxv
sed '$!b' e.mxv | awk -F' [|] ' '/^#/ {print; next} {sub(/^./, $2 ~ /^0/ ? "1" : "0", $2); print $1 " | " $2 " | " $3}' >w.mxv
"$mxgold" verify - <w.mxv >"$scratch/stdout" 2>"$scratch/stderr"
[ $? = 1 ] || fail "a wrong code was not seen"
grep -q '^codes  *120  *3  *0  *0 ' "$scratch/stdout" || fail "codes: $(cat "$scratch/stdout")"
grep -v '^# end' e.mxv >n.mxv
refuses "mxgold: standard input: line $(($(wc -l <n.mxv) + 1)), byte $(wc -c <n.mxv): expected \"# end N\"" "$mxgold" verify - <n.mxv
sed 's/^# cols=.*/# cols=0/' e.mxv >c.mxv
refuses "mxgold: standard input: header: rows and cols do not fit column x and the number of cases" "$mxgold" verify - <c.mxv
rm c.mxv
sed 's/^# columns .*/# columns x:32:40 a:4:40/; s/ | [0-9a-f ]*$//' e.mxv >c.mxv
refuses "mxgold: c.mxv: header: the columns are not those of the spec" "$mxgold" verify c.mxv
refuses "mxgold: e.mxv and c.mxv: expected the same columns and as many cases" "$mxgold" verify e.mxv c.mxv
accepts "$mxgold" verify c.mxv c.mxv
sed 's/^# elem=.*/# elem=e9m9/' e.mxv >k.mxv
"$mxgold" verify k.mxv >"$scratch/stdout" 2>"$scratch/stderr"
[ $? = 2 ] && [ "$(wc -l <"$scratch/stderr")" = 1 ] || fail "a header with an unknown format"
sed 's/ | [0-9a-f ]*$//; s/ | [0-9a-f ]*$//' e.mxv >i.mxv
refuses "mxgold: i.mxv: the lines hold 1 of 3 columns, expected the kernel's columns appended to each line" "$mxgold" verify i.mxv
for n in 0 1 40 300; do
  head -c $n e.mxv >cut.mxv
  "$mxgold" verify cut.mxv >"$scratch/stdout" 2>"$scratch/stderr"
  [ $? = 2 ] && [ "$(wc -l <"$scratch/stderr")" = 1 ] || fail "$n bytes of a file"
done
# Tensors are diff's, whichever file holds them; a file that is neither is told what was expected.
accepts "$mxgold" gen tails --preset ocp-mxfp4 --shape 3x40 -o e.safetensors
tensors="tensors, expected an .mxv file: mxgold diff A.safetensors B.safetensors compares tensors"
refuses "mxgold: e.safetensors: $tensors" "$mxgold" verify e.safetensors
refuses "mxgold: e.safetensors: $tensors" "$mxgold" verify e.mxv e.safetensors
cp e.safetensors named.mxv
refuses "mxgold: named.mxv: $tensors" "$mxgold" verify named.mxv e.mxv
echo "# vectors" >other.safetensors
refuses "mxgold: other.safetensors: line 1, byte 0: expected \"# mxv 1\"" "$mxgold" verify other.safetensors
refuses "mxgold: standard input: line 1, byte 0: expected \"# mxv 1\"" "$mxgold" verify - <e.safetensors

# Colour on a terminal alone, and not where NO_COLOR says so.
python3 - "$mxgold" 2>colour.err <<'PY' || grep 'not run' colour.err || fail "colour on a terminal: $(cat colour.err)"
import os, pty, subprocess, sys
def said(env):
    try: read, write = pty.openpty()
    except OSError: sys.exit("  verify: colour on a terminal: not run: no pseudo-terminal here")
    subprocess.run([sys.argv[1], "gen", "random", "--shape", "4x32", "-o", "colour.mxv"], check=True)
    subprocess.run([sys.argv[1], "verify", "colour.mxv", "colour.mxv"], stdout=write, env={**os.environ, "TERM": "xterm", **env})
    os.close(write)
    out = b""
    try:
        while part := os.read(read, 65536): out += part
    except OSError: pass
    return out
assert b"\x1b[32myes\x1b[0m" in said({}), said({})
assert b"\x1b" not in said({"NO_COLOR": "1"}) and b"\x1b" not in said({"TERM": "dumb"})
PY
