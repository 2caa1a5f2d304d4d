# Output that can't be written: one line, exit 2, nothing left behind, and the old file stands.
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

# Interrupted in the middle: the temporary file goes, the old one stays, one line says so. The input (a
# sparse GiB) is large enough that the work is not over before the signal comes.
make_npy huge.npy '<f4' '(65536, 4096)' 1073741824
for signal in INT TERM HUP; do
  python3 - "$mxgold" $signal <<'P' || fail "interrupted by SIG$signal"
import glob, signal, subprocess, sys, time
n = getattr(signal, "SIG" + sys.argv[2])
# A job in the background may have inherited that the signal is ignored, and the program would heed that.
p = subprocess.Popen([sys.argv[1], "quantize", "huge.npy", "-o", "o.safetensors"], stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(n, signal.SIG_DFL))
for _ in range(20000):
    if glob.glob(".mxgold.*") or p.poll() is not None:
        break
    time.sleep(0.0005)
p.send_signal(n)
said = p.stderr.read()
assert p.wait() == 2 and said == b"mxgold: interrupted by SIG%s, no file was changed\n" % sys.argv[2].encode(), (p.returncode, said)
P
  cmp -s o.safetensors old.safetensors || fail "SIG$signal changed the old file"
done
leaves_only big.npy huge.npy ints.npy o.safetensors old.safetensors piped.safetensors x.npy
