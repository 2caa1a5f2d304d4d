# Tests inputs that shrink while they are read, that have no end, or that cannot be mapped.
: "${scratch:?run by tests/run-cli.sh}"
yes mxgold-faults | head -c 4194304 >whole
restore() { cp whole raw; cp whole.npy x.npy; cp whole.safetensors q.safetensors; }
accepts "$mxgold" hadamard whole --shape 1024x1024 --size 16 -o whole.npy
accepts "$mxgold" quantize whole.npy --preset nvfp4 -o whole.safetensors
restore
# Read a piece at a time, or mapped: one line, exit 2, nothing left behind. To the middle; and to within the last page, behind which a mapping shows zeros.
for bytes in 2000000 4194300; do
  shrunk pread:3 "raw:$bytes" "mxgold: raw shrank while being read" "$mxgold" quantize raw --shape 1024x1024 -o o.safetensors; restore
  shrunk mmap:1 "raw:$bytes" "mxgold: raw shrank while being read" "$mxgold" quantize raw --shape 1024x1024 --dequantized --preset te-nvfp4 -o o.safetensors; restore
  shrunk pread:3 "raw:$bytes" "mxgold: raw shrank while being read" bash -c 'ulimit -v 100000000; exec "$0" quantize raw --shape 1024x1024 --preset te-nvfp4 -o o.safetensors' "$mxgold"; restore
  shrunk pread:3 "x.npy:$bytes" "mxgold: x.npy shrank while being read" "$mxgold" quantize x.npy --all --fake --preset nvfp4 -o o.safetensors; restore
  shrunk pread:3 "raw:$bytes" "mxgold: raw shrank while being read" "$mxgold" encode raw --shape 1024x1024 --format e4m3 -o o.npy; restore
  shrunk pread:3 "raw:$bytes" "mxgold: raw shrank while being read" "$mxgold" hadamard raw --shape 1024x1024 --size 16 -o o.npy; restore
  shrunk pread:3 "x.npy:$bytes" "mxgold: x.npy shrank while being read" "$mxgold" ablate x.npy --presets nvfp4 --json; restore
  shrunk mmap:1 "raw:$bytes" "mxgold: raw shrank while being read" "$mxgold" quantize raw --shape 1024x1024 --transpose -o o.safetensors; restore
done
for bytes in 300000 $(($(wc -c <q.safetensors) - 8)); do
  shrunk mmap:1 "q.safetensors:$bytes" "mxgold: q.safetensors shrank while being read" "$mxgold" dequantize q.safetensors -o o.npy; restore
  shrunk mmap:1 "q.safetensors:$bytes" "mxgold: q.safetensors shrank while being read" "$mxgold" gemm q.safetensors whole.safetensors -o o.npy; restore
  shrunk mmap:1 "q.safetensors:$bytes" "mxgold: q.safetensors shrank while being read" "$mxgold" convert q.safetensors -o o.safetensors --layout nv128x4; restore
done
leaves_only q.safetensors raw whole whole.npy whole.safetensors x.npy

# Without end: what begins as no file of tensors is refused before it is copied anywhere; what does is copied as far as its header says.
mkdir tmp
export TMPDIR=$PWD/tmp
kind="unknown kind of file, expected the magic of .npy or the header of .safetensors or .mxv"
for command in "quantize /dev/zero -o o.safetensors" "quantize /dev/zero --all --fake -o o.safetensors" "dequantize /dev/zero -o o.npy" "inspect /dev/zero" \
  "encode /dev/zero --format e4m3 -o o.npy" "gemm /dev/zero q.safetensors -o o.npy" "diff q.safetensors /dev/zero" "ablate /dev/zero" "compare /dev/zero --presets nvfp4"; do
  refuses "mxgold: /dev/zero: byte 0: $kind" bash -c 'ulimit -f 1000 -t 20; exec "$0" $1' "$mxgold" "$command"
done
refuses 'mxgold: /dev/zero: line 1, byte 0: expected "# mxv 1"' bash -c 'ulimit -t 20; exec "$0" verify /dev/zero /dev/zero' "$mxgold"
endless() { cat "$1"; cat /dev/zero; }
endless x.npy 2>"$scratch/pipe" | refuses "mxgold: standard input: byte $(wc -c <x.npy): there is more after the data, expected the end of the input" "$mxgold" quantize - -o o.safetensors
endless q.safetensors 2>"$scratch/pipe" | refuses "mxgold: standard input: byte $(wc -c <q.safetensors): there is more after the data, expected the end of the input" "$mxgold" dequantize - -o o.npy
refuses "mxgold: /dev/zero: byte 4096: there is more, expected the 4096 bytes of the stated shape of f32" "$mxgold" quantize /dev/zero --shape 32x32 -o o.safetensors
head -c 2000000 x.npy | refuses "mxgold: standard input: byte 2000000: the file ends early, expected 4194304 bytes of data after the header, found $((2000000 - $(wc -c <x.npy) + 4194304))" \
  "$mxgold" quantize - -o o.safetensors
# A header that states more than the disk has: nothing is copied.
python3 - >huge.head <<'P'
import struct, sys
h = "{'descr': '<f4', 'fortran_order': False, 'shape': (1048576, 1099511627776), }"
h += " " * (-(len(h) + 11) % 64) + "\n"
sys.stdout.buffer.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode())
P
endless huge.head 2>"$scratch/pipe" | "$mxgold" quantize - -o o.safetensors >"$scratch/stdout" 2>"$scratch/stderr"
[ "${PIPESTATUS[1]}" = 2 ] && grep -qE "^mxgold: standard input: states 4611686018427388032 bytes, expected at most the [0-9]+ that are free in $TMPDIR, where an input that is not a file is copied to$" "$scratch/stderr" ||
  fail "a header that states too much: $(cat "$scratch/stderr")"
[ -z "$(ls -A tmp)" ] || fail "left in TMPDIR: $(ls -A tmp)"
unset TMPDIR
rmdir tmp

# A limit on address space that is below the file: what is done in pieces is done, the rest says why it cannot. Not under a sanitizer's shadow.
case $mxgold in
*asan* | *tsan*) ;;
*)
  head -c 400000000 /dev/zero >zeros
  accepts bash -c 'ulimit -v 300000; exec "$0" quantize zeros --shape 10000x10000 --preset nvfp4 -o o.safetensors' "$mxgold"
  accepts bash -c 'ulimit -v 300000; exec "$0" encode zeros --shape 10000x10000 --format e4m3 -o o.npy' "$mxgold"
  refuses "mxgold: zeros: cannot be mapped, and does not fit into memory: Cannot allocate memory" \
    bash -c 'ulimit -v 300000; exec "$0" quantize zeros --shape 10000x10000 --transpose -o o2.safetensors' "$mxgold"
  # What is behind the reader is not resident; what is read twice is, up to a GiB.
  truncate -s 1200000000 twice
  for command in "quantize twice --shape 10000x30000 --preset te-nvfp4 -o o.safetensors" "quantize zeros --shape 10000x10000 --preset ocp-mxfp4 -o o.safetensors" "inspect o.npy" "dequantize o.safetensors -o back.npy"; do
    python3 - "$mxgold" $command >"$scratch/peak" <<'P'
import os, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
P
    [ "$(cat "$scratch/peak")" -lt 60000 ] || fail "$command: $(cat "$scratch/peak") KiB were resident"
  done
  rm -f zeros twice o.safetensors o.npy back.npy
  ;;
esac
rm huge.head
leaves_only q.safetensors raw whole whole.npy whole.safetensors x.npy
