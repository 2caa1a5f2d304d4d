#!/bin/sh
# Builds a wheel for older systems in PyPA's manylinux image. NOT RUN by the project: it needs a container runtime and the network.
#   docker run --rm -v "$PWD":/src quay.io/pypa/manylinux_2_28_x86_64 sh /src/python/manylinux.sh
# The image has gcc, make and CPython 3.11, but neither jansson nor xxHash nor GMP as static libraries: they are built with -fPIC into /usr/local.
set -eu
jansson=2.14 xxhash=0.8.3 gmp=6.3.0 random123=1.14.0
build=$(mktemp -d)
cd "$build"
curl -fsSL "https://github.com/akheron/jansson/releases/download/v$jansson/jansson-$jansson.tar.gz" | tar xz
curl -fsSL "https://github.com/Cyan4973/xxHash/archive/refs/tags/v$xxhash.tar.gz" | tar xz
curl -fsSL "https://gmplib.org/download/gmp/gmp-$gmp.tar.xz" | tar xJ
curl -fsSL "https://github.com/DEShawResearch/random123/archive/refs/tags/v$random123.tar.gz" | tar xz
(cd "jansson-$jansson" && ./configure --disable-shared --with-pic && make -j install)
(cd "gmp-$gmp" && ./configure --disable-shared --with-pic && make -j install)
make -C "xxHash-$xxhash" CFLAGS="-O2 -fPIC" install
cp -r "random123-$random123/include/Random123" /usr/local/include/
cd /src
make wheel INSTALL=no PYTHON=/opt/python/cp311-cp311/bin/python
auditwheel show build/release/python/dist/*.whl
