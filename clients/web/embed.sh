#!/bin/sh
# Prints the files of the dashboard as C, for server/transport/http/dashboard.c.
#
#   clients/web/embed.sh FOLDER
#
# FOLDER/index.html is served at /, every other FOLDER/PATH at /PATH. Each file is packed by gzip;
# the form by brotli is FILE.br, where Vite has written one beside FILE.
set -eu
cd "$1"

type_of() {
    case $1 in
    *.html) echo 'text/html; charset=utf-8' ;;
    *.js) echo 'text/javascript; charset=utf-8' ;;
    *.css) echo 'text/css; charset=utf-8' ;;
    *.svg) echo 'image/svg+xml' ;;
    *.txt) echo 'text/plain; charset=utf-8' ;;
    *) echo "embed.sh: $1: no type is known for this name" >&2 && return 1 ;;
    esac
}
bytes() { od -An -v -tx1 | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; }

files=$(find . -type f ! -name '*.br' | LC_ALL=C sort)
number=0
table=
for file in $files; do
    path=${file#.}
    [ "$path" != /index.html ] || path=/
    type=$(type_of "$file")
    tag=$(sha256sum "$file" | cut -c1-16)
    echo "static const unsigned char GZIP_$number[] = {"
    gzip -9nc "$file" | bytes
    echo '};'
    brotli='NULL, '
    brotli_size=0
    if [ -e "$file.br" ]; then
        echo "static const unsigned char BROTLI_$number[] = {"
        bytes <"$file.br"
        echo '};'
        brotli="BROTLI_$number, "
        brotli_size="sizeof BROTLI_$number"
    fi
    table="$table    {\"$path\", \"$type\", \"\\\\\"$tag\\\\\"\", GZIP_$number, ${brotli}sizeof GZIP_$number, $brotli_size},
"
    number=$((number + 1))
done
echo 'static const http_file FILES[] = {'
printf '%b' "$table" | sed 's/""\([0-9a-f]*\)""/"\\"\1\\""/'
echo '};'
