# Runs every command of docs/guide as it stands, and holds what it prints to what the page shows.
: "${scratch:?run by tests/run-cli.sh}"
for page in "$root"/docs/guide/*.md; do
  mkdir "$(basename "$page" .md)"
  (cd "$(basename "$page" .md)" && python3 "$root/tests/lib/page_commands.py" "$root" "$mxgold" "$page") || fail "$page is out of date"
done
# The checker of pages must find another output, another exit status, a command that nothing runs, a long one that is no part of make check, and a target,
# a path and a link that are not there.
mkdir bad
cat >bad/page.md <<'P'
```console
$ mxgold formats scales
no such thing
$ mxgold diff EXPECTED.safetensors ACTUAL.safetensors
...
$ make exhaustive  # takes minutes
```
    mxgold quantize X.npy -o Q.safetensors
`mxgold quantize nothing.npy`, `make nothing`, docs/nothing.md, [a link](nothing.md)
P
found=$(cd bad && python3 "$root/tests/lib/page_commands.py" "$root" "$mxgold" page.md) && fail "the checker of pages takes a page of mistakes"
for mistake in "mxgold formats scales prints" "exit 1: mxgold diff" "no part of make check runs it: make exhaustive" "an indented command" "exit 2: .mxgold quantize" "no such target" "docs/nothing.md is not there" "a link to"; do
  echo "$found" | grep -q "$mistake" || fail "the checker of pages does not find: $mistake"
done
