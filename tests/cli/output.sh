# Tests output that cannot be written: one line, exit status 2, nothing left behind, and the old file stays.
: "${scratch:?run by tests/run-cli.sh}"
make_npy() { # NAME DESCR SHAPE BYTES: zeros, sparse
  python3 - "$@" <<'P'
import struct, sys
name, descr, shape, n = sys.argv[1:]
h = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
h += " " * (-(len(h) + 11) % 64) + "\n"
with open(name, "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode())
    f.truncate(f.tell() + int(n))
P
}
make_npy x.npy '<f4' '(4, 64)' 1024
make_npy ints.npy '<i4' '(4, 64)' 1024

refuses "mxgold: none/o.safetensors: cannot create a file beside it: No such file or directory" "$mxgold" quantize x.npy -o none/o.safetensors
refuses "mxgold: o.bin: unknown kind of output, expected a name that ends in .npy or .safetensors, or -" "$mxgold" quantize x.npy -o o.bin
mkdir d.safetensors
refuses "mxgold: d.safetensors: cannot write: Is a directory" "$mxgold" quantize x.npy -o d.safetensors
rmdir d.safetensors
refuses "mxgold: /dev/full: byte 0: cannot write: No space left on device" "$mxgold" quantize x.npy -o /dev/full
refuses "mxgold: standard output: byte 0: cannot write: Broken pipe" bash -c 'exec 3> >(exec <&-; exit 0); wait $!; "$0" quantize x.npy -o - >&3' "$mxgold"
leaves_only ints.npy x.npy

# Pipe in, pipe out: the same bytes as files.
accepts "$mxgold" quantize x.npy -o o.safetensors
cat x.npy | "$mxgold" quantize - -o - | cat >piped.safetensors
cmp -s o.safetensors piped.safetensors || fail "a pipe gives other bytes than a file"
# Raw bytes of a stated shape and dtype: those of the same values in .npy.
tail -c 1024 x.npy | accepts "$mxgold" quantize - --shape 4x64 -o raw.safetensors
cmp -s o.safetensors raw.safetensors || fail "raw input gives other bytes than .npy"
tail -c 1024 x.npy | accepts "$mxgold" quantize - --shape 2x4x64 --dtype bf16 -o raw.safetensors
rm raw.safetensors
accepts "$mxgold" inspect o.safetensors
cp o.safetensors old.safetensors
refuses "mxgold: ints.npy: dtype is i32, expected f32, f16 or bf16 (uint16 with --dtype bf16)" "$mxgold" quantize ints.npy -o o.safetensors
cmp -s o.safetensors old.safetensors || fail "a failed run changed the old file"
# A file-size limit stands in for a full disk.
make_npy big.npy '<f4' '(4096, 1024)' 16777216
refuses "mxgold: o.safetensors: cannot claim $("$mxgold" quantize big.npy -o - | wc -c) bytes: File too large" \
  bash -c 'ulimit -f 1000; "$0" quantize big.npy -o o.safetensors' "$mxgold"
cmp -s o.safetensors old.safetensors || fail "a full disk changed the old file"
leaves_only big.npy ints.npy o.safetensors old.safetensors piped.safetensors x.npy

# Interrupted in the middle: the temporary file goes, the old one stays, one line says so. Also when the file has only just been made, and another thread
# takes the signal.
for signal in 2:INT 15:TERM 1:HUP; do
  interrupted pwrite:3:${signal%:*} "mxgold: interrupted by SIG${signal#*:}, no file was changed" "$mxgold" quantize big.npy -o o.safetensors
  cmp -s o.safetensors old.safetensors || fail "SIG${signal#*:} changed the old file"
done
for n in 1 3; do
  interrupted open:1:15 "mxgold: interrupted by SIGTERM, no file was changed" "$mxgold" gemm o.safetensors o.safetensors -o new.npy --threads $n
done
leaves_only big.npy ints.npy o.safetensors old.safetensors piped.safetensors x.npy
# Behind the rename: the new file stands, and nothing else is said.
interrupted linkat:1:15 "mxgold: interrupted by SIGTERM, the files that were finished stay" "$mxgold" quantize x.npy -o new.safetensors
interrupted rename:1:15 "mxgold: interrupted by SIGTERM, the files that were finished stay" "$mxgold" quantize x.npy -o new.safetensors
interrupted linkat:1:15 "mxgold: interrupted by SIGTERM, the files that were finished stay" "$mxgold" gen ties -o new.mxv
cmp -s o.safetensors new.safetensors || fail "a file that was finished is not whole"
leaves_only big.npy ints.npy new.mxv new.safetensors o.safetensors old.safetensors piped.safetensors x.npy
