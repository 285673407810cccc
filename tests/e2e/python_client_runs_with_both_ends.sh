#!/bin/sh
# The Python client's bounds are true: its tests pass with the oldest protobuf and grpcio that it
# names, and with the newest that there are. They are installed once, beside the tests' environment.
. tests/e2e/common.sh
python=${TEST_PYTHON:-python3}
ends=$(cd "$TRIBO_BUILD" && pwd)/python-ends

# install END REQUIREMENT... : the packages alone, in a folder of their own
install() {
    end=$ends/$1
    shift
    [ -e "$end/whole" ] && return 0
    rm -rf "$end"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$end" "$@" \
        >"$dir/out" 2>&1 && touch "$end/whole"
}

# try END VERSION: the client's tests with the packages of this end before all others
try() {
    end=$ends/$1
    check "$1 is what runs" env PYTHONPATH="$end" "$python" -c '
import google.protobuf, grpc, sys
assert google.protobuf.__file__.startswith(sys.argv[1]), google.protobuf.__file__
assert grpc.__file__.startswith(sys.argv[1]), grpc.__file__
assert not sys.argv[2] or google.protobuf.__version__.startswith(sys.argv[2])' "$end" "$2"
    (cd clients/python && PYTHONPATH=$end "$python" -m pytest -q -rs -p no:cacheprovider \
        tests/test_aio.py tests/test_errors.py tests/test_sessions.py) \
        >"$dir/out" 2>&1
    code=$?
    check "the tests pass with $1" [ "$code" = 0 ]
    [ "$code" = 0 ] || tail -30 "$dir/out"
    check "$1 ran tests" grep -q ' passed' "$dir/out"
}

least=$(sed -n 's/^dependencies = .*"grpcio>=\([0-9.]*\)".*"protobuf>=\([0-9.]*\)".*/\1 \2/p' \
    clients/python/pyproject.toml)
check 'the bounds are read' [ -n "$least" ]
if install oldest "grpcio==${least% *}.*" "protobuf==${least#* }.*" &&
    install newest grpcio protobuf; then
    try oldest "${least#* }"
    try newest ''
else
    tail -2 "$dir/out"
    skip 'ends of the bounds: no packages can be had here'
fi
finish
