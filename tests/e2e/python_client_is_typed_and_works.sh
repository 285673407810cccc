#!/bin/sh
# The Python client: ruff and mypy find nothing, and its own tests pass against the daemon. The
# scripts beside this one that use it are looked at by ruff too.
#
# The generated modules lie in no source folder of a clean clone, so everything is looked at in a
# scratch copy beside which they are generated; the tests use the package as installed.
. tests/e2e/common.sh

python=${TEST_PYTHON:-python3}
client=$dir/python
mkdir "$client" && cp -R clients/python/src clients/python/tests clients/python/pyproject.toml \
    "$client" || exit 1
rm -rf "$client/src/tribo/v1" "$client/src/tribo/libtribo.h"

# quietly COMMAND...: shows its output if it fails
quietly() {
    ran=$*
    : >"$dir/err"
    if "$@" >"$dir/out" 2>&1; then pass; else fail "$1 $2 $3"; fi
}

quietly "$python" clients/python/generate.py "$client/src"
quietly "$python" -m ruff check --no-cache clients/python
quietly "$python" -m ruff format --no-cache --check clients/python
quietly "$python" -m ruff check --no-cache tests/e2e tests/peers
here=$PWD
cd "$client" || exit 1
quietly "$python" -m mypy --cache-dir "$dir/mypy"
quietly "$python" -m mypy --cache-dir "$dir/mypy" tests
cd "$here" || exit 1

# a source distribution builds by itself, far from the checkout, and its modules bind no release
copy=$dir/copy
mkdir "$copy" && cp -R clients/python "$copy/python" && rm -rf "$copy/python/src/tribo/v1"
mkdir -p "$copy/clients" && mv "$copy/python" "$copy/clients/" && cp -R proto "$copy/proto"
mkdir "$copy/solver" && cp solver/tribo*.h "$copy/solver"
cd "$copy/clients/python" || exit 1
quietly "$python" setup.py --quiet sdist --dist-dir "$dir/dist"
cd "$dir/dist" || exit 1
tar xzf tribo-*.tar.gz && rm -rf "$copy" && cd tribo-*/ || exit 1
quietly "$python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
    --wheel-dir "$dir/wheel" .
check 'the wheel holds the generated modules' sh -c \
    "'$python' -m zipfile -l '$dir'/wheel/tribo-*.whl | grep -q tribo/v1/simulation_pb2.py"
check 'and the declarations of libtribo' sh -c \
    "'$python' -m zipfile -l '$dir'/wheel/tribo-*.whl | grep -q tribo/libtribo.h"
check 'no release of protobuf or grpcio is bound' sh -c \
    "! grep -lE 'runtime_version|GRPC_GENERATED_VERSION|_registered_method' src/tribo/v1/*.py"
cd "$here" || exit 1

# the problem files are found from the tests' place in the tree; -rs lists skipped tests
(cd clients/python && "$python" -m pytest -q -rs -p no:cacheprovider tests) >"$dir/out" 2>&1
code=$?
ran="pytest clients/python"
grep '^SKIPPED' "$dir/out" | sed 's/^SKIPPED \[[0-9]*\]/SKIPPED/'
counted() { sed -n "\$s/.*[^0-9]*\b\([0-9][0-9]*\) $1.*/\1/p" "$dir/out"; }
worked=$(counted passed) broke=$(counted failed) unready=$(counted error) left=$(counted skipped)
passed=$((passed + ${worked:-0}))
failed=$((failed + ${broke:-0} + ${unready:-0}))
skipped=$((skipped + ${left:-0}))
if [ "$code" -ne 0 ] || [ "${worked:-0}" -eq 0 ]; then
    tail -n 120 "$dir/out"
    [ "$failed" -gt 0 ] || fail "pytest ended with $code"
fi
finish
