#!/bin/sh
# Rooms of the daemon and of the command: an include goes down the lists below and never up, no
# object refers to a symbol of a room further up (checked where the daemon is built), and no folder
# holds more than 25 files of code.
#
# BUILD as in deploy/config.mk.
cd "$(dirname "$0")/.." || exit 1

# From the ground up. The folder's own files ("server/") come last: they make and end the parts.
ORDER='db db/fleet
server/ops server/trace server/wire server/call server/schedule server/session server/handlers
server/transport/http server/transport/grpc server
clients/cli/common clients/cli/remote clients/cli/simulation clients/cli/run clients/cli/grasp
clients/cli/bench clients/cli/demo clients/cli/info clients/cli/scene clients/cli/server
clients/cli/function clients/cli'
MOST_FILES=25
build=${BUILD:-build}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

# "FROM TO" for every include of a header that lies below db, server or clients/cli
includes() {
    # shellcheck disable=SC2046 # a list of files
    grep -HoE '^ *# *include "[^"]+"' $(find db server clients/cli -name '*.[ch]') |
        sed -E 's/^([^:]*):.*"([^"]+)"$/\1 \2/' | while read -r from to; do
        case $from in server/*) root=server ;; clients/cli/*) root=clients/cli ;; *) root=db ;; esac
        if [ -e "$root/$to" ]; then echo "$from $root/$to"; elif [ -e "$to" ]; then echo "$from $to"; fi
    done
}

# "FROM TO" for every reference of an object of the daemon to a symbol of another one
references() {
    # shellcheck disable=SC2046 # a list of files
    nm -gA $(find server -name '*.c' | sed "s|^|$build/|; s|c\$|o|") 2>/dev/null |
        sed -E "s|^$build/([^:]*)o:[0-9a-f]* +([A-Za-z]) (.*)|\1c \2 \3|" |
        awk '$2 ~ /[TDBRC]/ { home[$3] = $1 } $2 == "U" { user[NR] = $1; name[NR] = $3 }
             END { for (i in user) if (name[i] in home) print user[i], home[name[i]] }'
}

# lines of "FROM TO" that go up
upward() {
    awk -v order="$ORDER" '
        function room(path) { sub(/\/[^\/]*$/, "", path); return path }
        BEGIN { n = split(order, names, /[ \n]+/); for (i = 1; i <= n; i++) rank[names[i]] = i }
        { from = room($1); to = room($2) }
        !(from in rank) { print $1 ": its folder is not in the list of rooms"; next }
        rank[to] > rank[from] { print $1 ": needs " $2 ", which is further up" }'
}

includes >"$work/includes"
upward <"$work/includes" >"$work/faults"
if [ -e "$build/server/main.o" ]; then
    references >"$work/references"
    upward <"$work/references" >>"$work/faults"
fi
find server db clients/cli -type d | while read -r folder; do
    files=$(find "$folder" -maxdepth 1 -name '*.[ch]' | wc -l)
    [ "$files" -le $MOST_FILES ] || echo "$folder: $files files, more than $MOST_FILES"
done >>"$work/faults"

# and a fault would be seen
echo 'server/ops/log.c server/session/session.h' | upward | grep -q 'session.h, which is further up' ||
    echo 'an include that goes up is not seen' >>"$work/faults"
[ "$(wc -l <"$work/includes")" -gt 500 ] || echo 'includes are not found' >>"$work/faults"

sort -u "$work/faults"
failed=$(sort -u "$work/faults" | grep -c .)
checked=$(cat "$work/includes" "$work/references" 2>/dev/null | wc -l)
echo "$((checked - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
