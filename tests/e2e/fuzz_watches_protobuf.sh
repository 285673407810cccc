#!/bin/sh
# The decoders are fuzzed, and their corpora replayed under ASan, with protobuf-c's own source
# compiled in: its reads are checked and, in fuzzed builds, its branches counted.
. tests/e2e/common.sh
ran='a look at the fuzz targets'

if ! BUILD=$TRIBO_BUILD deploy/deps.sh fuzz >"$dir/out" 2>"$dir/err"; then
    check 'it says what is missing' grep -q 'protobuf-c' "$dir/err"
    skip 'protobuf-c inside the fuzz targets: its source cannot be had here'
    finish
    exit
fi
BUILD=$TRIBO_BUILD deploy/deps.sh fuzz >"$dir/out" 2>"$dir/err"
check 'a second time does nothing' [ ! -s "$dir/out" ]

# inside PROGRAM CALL: protobuf-c is in the program, and its decoder makes this call
inside() {
    check "$1 brings its own protobuf-c" sh -c "! ldd '$1' | grep -q libprotobuf-c"
    objdump --disassemble=protobuf_c_message_unpack "$1" >"$dir/code" 2>"$dir/err"
    check "$1 has the decoder" grep -q '<protobuf_c_message_unpack>:' "$dir/code"
    check "$1 calls $2 in it" grep -q "call.*<$2" "$dir/code"
}
found=0
for program in "$TRIBO_BUILD"/asan/tests/fuzz/replay_wire_protobuf \
    "$TRIBO_BUILD"/fuzz/tests/fuzz/fuzz_wire_protobuf; do
    [ -e "$program" ] || continue
    found=$((found + 1))
    inside "$program" __asan_report
    case $program in */fuzz_*) inside "$program" __sanitizer_cov_trace ;; esac
done
[ "$found" -gt 0 ] || skip 'protobuf-c inside the fuzz targets: no sanitized build of them here'
finish
