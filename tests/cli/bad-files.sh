# Tests that every malformed file is refused with the message beside it, by its name and from a pipe.
: "${scratch:?run by tests/run-cli.sh}"
n=0
for expect in "$root"/golden/bad/*.expect; do
  file=$(basename "${expect%.expect}")
  cd "$root/golden/bad" || return
  refuses "$(cat "$expect")" "$mxgold" inspect "$file"
  # On standard input the ending is not known, so what has neither magic gets the general message.
  case $(cat "$expect") in
    *"no .npy magic"* | *"the file ends, expected 8"* | *"no JSON object"* | *"unknown kind"*) ;;
    *not-safetensors*) ;;
    *) refuses "$(sed "s,^mxgold: $file:,mxgold: standard input:," "$expect")" "$mxgold" inspect - < "$file" ;;
  esac
  n=$((n + 1))
done
[ $n -ge 70 ] || fail "$n malformed files, expected 70 or more"
cd "$scratch/$case" || return

# The folder is what its script makes, no more and no less.
accepts python3 "$root/tools/make-bad.py" "$scratch/$case/bad"
diff -r "$scratch/$case/bad" "$root/golden/bad" >/dev/null || fail "golden/bad is not what tools/make-bad.py makes"
