# Tests that any number of threads is allowed: no more are started than the machine can give, no other library prints anything, and the bytes are the same.
: "${scratch:?run by tests/run-cli.sh}"
yes mxgold-threads | head -c 1048576 >raw
accepts "$mxgold" quantize raw --shape 512x512 --preset nvfp4 -o one.safetensors --threads 1
accepts "$mxgold" dequantize one.safetensors -o one.npy --threads 1
accepts "$mxgold" gemm one.safetensors one.safetensors -o product.npy --threads 1
for n in 300 32768 70000 1000000000 2147483648 4294967297 18446744073709551615; do
  accepts "$mxgold" quantize raw --shape 512x512 --preset nvfp4 -o many.safetensors --threads $n
  cmp -s one.safetensors many.safetensors || fail "--threads $n: other bytes"
  accepts "$mxgold" dequantize one.safetensors -o many.npy --threads $n
  cmp -s one.npy many.npy || fail "--threads $n: dequantize gives other bytes"
done
for n in 70000 18446744073709551615; do
  accepts "$mxgold" quantize one.npy --transpose --preset nvfp4 -o many.safetensors --threads $n
  accepts "$mxgold" quantize one.npy --all --fake --preset nvfp4 -o fake.safetensors --threads $n
  accepts "$mxgold" gemm one.safetensors one.safetensors -o many.npy --threads $n
  cmp -s product.npy many.npy || fail "--threads $n: gemm gives other bytes"
  accepts "$mxgold" ablate one.npy --presets ocp-mxfp4,nvfp4 --threads $n
  accepts "$mxgold" ablate one.npy --presets ocp-mxfp4,nvfp4 --html page.html --threads $n
  accepts "$mxgold" diff one.safetensors one.safetensors --threads $n
  accepts "$mxgold" quantize one.npy --preset nvfp4 -o many.safetensors
  accepts "$mxgold" identify --input one.npy --output many.safetensors --quick --threads $n
done
accepts env OMP_NUM_THREADS=70000 "$mxgold" quantize raw --shape 512x512 --preset nvfp4 -o many.safetensors
accepts env OMP_NUM_THREADS=70000 "$mxgold" ablate one.npy --presets nvfp4
# Room for few stacks: fewer threads, the same bytes. A sanitizer's shadow takes more address space than any limit.
case ${ASAN_OPTIONS-}${TSAN_OPTIONS-}$mxgold in
*asan* | *tsan*) ;;
*)
  accepts bash -c 'ulimit -v 200000; exec "$0" quantize raw --shape 512x512 --preset nvfp4 -o many.safetensors --threads 200' "$mxgold"
  cmp -s one.safetensors many.safetensors || fail "few threads: other bytes"
  accepts bash -c 'ulimit -v 200000; exec "$0" ablate one.npy --presets nvfp4 --threads 200' "$mxgold"
  # Teams of several sizes one after another, which OpenMP ends and starts.
  for n in 4 32; do
    accepts bash -c 'ulimit -v 200000; exec "$0" ablate one.npy --presets nvfp4 --threads '$n "$mxgold"
    accepts bash -c 'ulimit -v 120000; exec "$0" identify --quick --input one.npy --output many.safetensors --threads '$n "$mxgold"
  done
  # As few processes as a user may have, which root is not held to.
  chmod 711 "$scratch"
  if setpriv --reuid=54321 --clear-groups "$mxgold" quantize one.npy --preset nvfp4 -o - >/dev/null 2>&1; then
    for n in 2 3 8; do
      for threads in '' '--threads 4'; do
        accepts setpriv --reuid=54321 --clear-groups prlimit --nproc=$n "$mxgold" identify --quick --input one.npy --output many.safetensors $threads
      done
    done
  fi
  ;;
esac
rm -f page.html many.safetensors many.npy fake.safetensors
leaves_only one.npy one.safetensors product.npy raw
