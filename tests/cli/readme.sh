# Tests that README.md is one page and true.
: "${scratch:?run by tests/run-cli.sh}"
# Every command runs as it stands and prints what is shown; the table of rates is the last benchmark's, and the picture is what diff draws.
python3 "$root/tests/lib/page_commands.py" "$root" "$mxgold" "$root/README.md" || fail "README.md is out of date"
[ "$(wc -l <"$root/README.md")" -le 160 ] || fail "README.md is more than a page of 160 lines"
python3 "$root/tools/speed-table.py" >table || fail "no table of rates"
python3 - "$root/README.md" table <<'P' || fail "README.md: another table of rates than make speed-table prints"
import sys
page, table = (open(name).read() for name in sys.argv[1:])
sys.exit(table not in page)
P
accepts "$mxgold" quantize X.npy --preset torchao-rceil -o rceil.safetensors
"$mxgold" diff EXPECTED.safetensors rceil.safetensors --input X.npy --html page.html >/dev/null
python3 "$root/tools/picture.py" page.html ocp-mxfp4 torchao-rceil "One block of 32 magnitudes under two rules that are both called MXFP4" picture.svg
cmp -s picture.svg "$root/docs/picture.svg" || fail "docs/picture.svg is out of date: make picture"
