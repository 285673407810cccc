#!/bin/sh
# The shared library exports the functions that the public headers (solver/tribo*.h) declare, each of
# them, and nothing else but the few of base/ that the client library takes from it.
. tests/e2e/common.sh
ran='the shared library'
cat solver/tribo*.h | tr '\n' ' ' | sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' |
    sed -E 's/typedef [a-z_]+ tb_[a-z_]+\(//g' | grep -oE '\<tb_[a-z0-9_]+\([^*]' | sed 's/(.*//' | sort -u >"$dir/declared"
nm -D --defined-only "$TRIBO_BUILD/libtribo.so" | awk '{ print $3 }' |
    grep -vxE "$(sed -n 's/^CLIENT_NEEDS := //p' Makefile | tr ' ' '|')|tb_abi_[0-9a-f]+" | sort -u >"$dir/exported"
comm -13 "$dir/declared" "$dir/exported" | sed 's/^/    not declared: /'
check 'it exports nothing that no header declares' [ -z "$(comm -13 "$dir/declared" "$dir/exported")" ]
comm -23 "$dir/declared" "$dir/exported" | sed 's/^/    not exported: /'
check 'it exports all that the headers declare' [ -z "$(comm -23 "$dir/declared" "$dir/exported")" ]
check 'it says of which headers it is' sh -c 'nm -D --defined-only "$1" | grep -q " tb_abi_$2\$"' sh \
    "$TRIBO_BUILD/libtribo.so" "$(cat solver/tribo*.h | sha256sum | cut -c 1-16)"
check 'functions were found' [ "$(wc -l <"$dir/exported")" -gt 100 ]
finish
