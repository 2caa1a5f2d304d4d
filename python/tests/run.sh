#!/bin/sh
# Builds the wheel, installs it into a fresh environment without network, and runs the tests there.
#   run.sh PYTHON FOLDER [TEST...]     PYTHON has NumPy and pytest; FOLDER is scratch; all tests by default
set -eu
python=$1 folder=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
skip() {
  echo "check-python: SKIPPED, $1"
  exit 0
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "$("$python" -V 2>&1), and the wheel is for 3.11 and later"
"$python" -c 'import ensurepip, venv' 2>/dev/null || skip "this Python has no venv"
"$python" -c 'import numpy, pytest' 2>/dev/null || skip "this Python has no NumPy or no pytest"
mkdir -p "$folder"
"$python" "$here/../mxgold_build.py" "$folder/dist" >"$folder/wheel.txt" || { cat "$folder/wheel.txt"; exit 1; }
wheel=$(tail -n 1 "$folder/wheel.txt")
rm -rf "$folder/venv"
"$python" -m venv --system-site-packages "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --no-index --no-deps --disable-pip-version-check "$wheel"
# shellcheck disable=SC2086 # a list of packages
[ -z "${MXGOLD_EXTRAS:-}" ] || "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check $MXGOLD_EXTRAS || skip "no package index for $MXGOLD_EXTRAS"
# NumPy and pytest of an environment, if PYTHON is one's: the new one sees only those of its base.
site=$("$python" -c 'import os, numpy; print(os.path.dirname(os.path.dirname(numpy.__file__)))')
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ $# = 0 ]; then set -- "$here"; else for t in "$@"; do shift; set -- "$@" "$here/$t"; done; fi
wheel=$(cd "$(dirname "$wheel")" && pwd)/$(basename "$wheel")
bin=$(cd "$folder/venv/bin" && pwd)
cd "$scratch"
if [ -n "${MXGOLD_RUN:-}" ]; then
  PATH=$bin:$PATH PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1 "$bin/python" "$here/$MXGOLD_RUN"
  exit
fi
# shellcheck disable=SC2086 # options of pytest
MXGOLD_WHEEL=$wheel PATH=$bin:$PATH PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1 \
  "$bin/python" -m pytest -q -p no:cacheprovider --rootdir "$here" -rs ${MXGOLD_PYTEST:-} "$@"
