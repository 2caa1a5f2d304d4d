#!/bin/sh
# make peers: the libraries that PyPI has, at pinned versions and on fresh seeds, against the presets that carry their names.
#   run.sh BUILD_DIR [SEED]
set -eu
build=$1
seed=${2:-$(date +%Y%m%d)}
venv=$build/peers-venv
if [ ! -e "$venv/complete" ]; then # an interrupted installation is begun again
  [ -x "$venv/bin/pip" ] || python3 -m venv --clear "$venv"
  "$venv/bin/pip" install -q -r "$(dirname "$0")/requirements.txt"
  touch "$venv/complete"
fi
rm -rf "$build/peers"
mkdir -p "$build/peers"
"$venv/bin/python" "$(dirname "$0")/run_peers.py" --out "$build/peers" --seed "$seed"
echo "| preset | bytes | differing | suites |   (seed $seed)"
PEERS=$build/peers PEERS_TABLE=1 "$build/tests/test_peers"
PEERS=$build/peers "$build/tests/test_casts"
