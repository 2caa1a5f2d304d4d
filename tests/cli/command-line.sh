# Tests what every command shares: options, unknown names, help.
: "${scratch:?run by tests/run-cli.sh}"
refuses "mxgold: no command, expected mxgold COMMAND ...; mxgold help lists them" "$mxgold"
refuses "mxgold: command 'inspct' is unknown, nearest: inspect" "$mxgold" inspct
refuses "mxgold: inspect: option '--jsn' is unknown, nearest: --json" "$mxgold" inspect --jsn x.npy
refuses "mxgold: inspect: option '-z' is unknown, see mxgold help inspect" "$mxgold" inspect -z x.npy
refuses "mxgold: inspect: --json takes no value" "$mxgold" inspect --json=yes x.npy
refuses "mxgold: inspect: no FILE, expected mxgold inspect FILE [--input X.npy] [--json] [--no-digests]" "$mxgold" inspect --json
refuses "mxgold: inspect: 'y.npy' is one argument too many, expected mxgold inspect FILE [--input X.npy] [--json] [--no-digests]" "$mxgold" inspect x.npy y.npy
refuses "mxgold: none.npy: cannot open: No such file or directory" "$mxgold" inspect none.npy
refuses "mxgold: --json: cannot open: No such file or directory" "$mxgold" inspect -- --json
refuses "mxgold: a?b.npy: cannot open: No such file or directory" "$mxgold" inspect $'a\nb.npy'
refuses "mxgold: .: cannot read: Is a directory" "$mxgold" inspect .
refuses "mxgold: help: COMMAND 'inspekt' is unknown, nearest: inspect" "$mxgold" help inspekt
refuses "mxgold: standard output: cannot write: No space left on device" sh -c '"$0" help >/dev/full' "$mxgold"
refuses "mxgold: standard output: cannot write: Bad file descriptor" sh -c '"$0" help >&-' "$mxgold"
# A reader that has gone: the pipe's other end is closed before anything is written.
refuses "mxgold: standard output: cannot write: Broken pipe" bash -c 'exec 3> >(exec <&-; exit 0); wait $!; "$0" help >&3' "$mxgold"

accepts "$mxgold" --version
accepts "$mxgold" --help
for command in $("$mxgold" help | sed -n 's/^  mxgold \([a-z]*\) .*/\1/p'); do
  accepts "$mxgold" help "$command"
  head -1 "$scratch/stdout" | grep -q "^mxgold $command" || fail "help $command does not begin with its synopsis"
  accepts "$mxgold" "$command" --help
done
accepts "$mxgold" help --bash-completion
cp "$scratch/stdout" "$scratch/completion"
accepts bash -n "$scratch/completion"
# completes WORD... : what the script offers for the last of them
completes() {
  bash -c '. "$1"; shift; COMP_WORDS=(mxgold "$@"); COMP_CWORD=$#; _mxgold; echo "${COMPREPLY[*]}"' - "$scratch/completion" "$@"
}
[ "$(completes quan)" = quantize ] || fail "completion of a command: $(completes quan)"
[ "$(completes quantize x.npy --preset quark-nv)" = quark-nvfp4 ] || fail "completion of a preset: $(completes quantize x.npy --preset quark-nv)"
[ "$(completes quantize x.npy --set scale.ru)" = scale.rule= ] || fail "completion of a key: $(completes quantize x.npy --set scale.ru)"
[ "$(completes quantize x.npy --set scale.rule = ev)" = even ] || fail "completion of a key's value: $(completes quantize x.npy --set scale.rule = ev)"
case $(completes quantize x.npy --set scale.rule =) in "floor "*) ;; *) fail "completion of all values of a key: $(completes quantize x.npy --set scale.rule =)" ;; esac
rm "$scratch/completion"
# The man page in the tree is the one that the tables give.
accepts "$mxgold" help --man
cmp -s "$scratch/stdout" "$root/docs/reference/mxgold.1" || fail "docs/reference/mxgold.1 is out of date: make man"
leaves_only

# A case that is started by itself writes nothing where it stands.
for file in "$root"/tests/cli/*.sh; do
  sed -n 2p "$file" | grep -q '^: "${scratch:?' || fail "$file lacks the guard in line 2"
done
mkdir alone
(cd alone && bash "$root/tests/cli/verify.sh") 2>/dev/null && fail "verify.sh runs by itself"
rmdir alone || fail "verify.sh by itself left files"
