#!/bin/sh
# Compiles the extension module and the program for AArch64 and runs them there: under qemu-user, in an arm64 Python of Debian's archive that lies in a folder.
#   aarch64.sh FOLDER     scratch: FOLDER/root gets the packages (nothing is installed)
# It needs gcc-aarch64-linux-gnu, qemu-user, Debian's arm64 as a foreign architecture (dpkg --add-architecture arm64) and the archive. What tests/digests.py
# prints there (quantize under every preset, products, the linear layer under every recipe) is compared with HERE=FILE, what it printed on this machine.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")/.." && pwd)
root=$folder/root
cross=${CROSS:-aarch64-linux-gnu-}
packages="python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libpython3.11-dev libpython3.11 python3-numpy libblas3 liblapack3
  libgfortran5 libgcc-s1 libstdc++6 libc6 libexpat1 zlib1g libbz2-1.0 liblzma5 libffi8 libssl3 libcrypt1 libuuid1 libsqlite3-0 libgomp1 libgmp10 libjansson4 libxxhash0"
if [ ! -e "$folder/packages.done" ]; then
  mkdir -p "$root" "$folder/debs"
  cd "$folder/debs"
  # shellcheck disable=SC2046 # a list of names
  apt-get download -q $(printf '%s:arm64 ' $packages) >/dev/null || { echo "aarch64: the archive does not have these packages for arm64"; exit 2; }
  for deb in *.deb; do dpkg-deb -x "$deb" "$root"; done
  touch "$folder/packages.done"
fi
cd "$here"
python=$root/usr/bin/python3.11
run() {
  qemu-aarch64 -L "$root" -E "LD_LIBRARY_PATH=$root/usr/lib/aarch64-linux-gnu:$root/usr/lib/aarch64-linux-gnu/blas:$root/usr/lib/aarch64-linux-gnu/lapack" \
    -E "PYTHONHOME=$root/usr" -E "PYTHONPATH=$folder/site:$root/usr/lib/python3/dist-packages" -E PYTHONDONTWRITEBYTECODE=1 "$@"
}
make -s "${J:--j2}" CONFIG=aarch64 CC="${cross}gcc" AR="${cross}ar" INSTALL=no OBJCOPY="${cross}objcopy" \
  PYTHON=python3 PY_INCLUDE="$root/usr/include/python3.11 -isystem $root/usr/include" build/aarch64/python/_core.abi3.so build/aarch64/python/bin/mxgold
mkdir -p "$folder/site/mxgold/bin"
cp -r python/mxgold/*.py python/mxgold/testing "$folder/site/mxgold/"
cp "build/aarch64/python/_core.abi3.so" "$folder/site/mxgold/"
cp "build/aarch64/python/bin/mxgold" "$folder/site/mxgold/bin/"
cp python/tests/digests.py "$folder/"
run "$python" "$folder/digests.py" >"$folder/there.txt"
lines=$(wc -l <"$folder/there.txt")
if [ -n "${HERE:-}" ]; then # what tests/digests.py printed on this machine
  cmp "$HERE" "$folder/there.txt" && echo "aarch64: $lines lines of digests, the same as here"
else
  echo "aarch64: $lines lines of digests in $folder/there.txt; HERE=FILE compares them with those of another machine"
fi
