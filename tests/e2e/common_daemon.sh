# Shared by the end-to-end scripts of the daemon, beside common.sh: sourced, not run.
#
#   . tests/e2e/common.sh; . tests/e2e/common_daemon.sh
#   daemon NAME [FLAG...]     starts tribod on free ports over the store $dir/NAME, waits until it is
#                             ready; sets $pid, $grpc and $http; output in $dir/NAME.out, .err
#   stop [PID]                SIGTERM, waits; sets $code
#   tribod CODE ARGUMENT...   runs it to its end and checks the exit code; has, says look at output
#   get PATH [CURL FLAG...]   HTTP GET of $http; body in $dir/out, status in $status
#   call METHOD JSON [FLAG..] the same for a method, by the Connect protocol
TRIBOD=$TRIBO_BUILD/tribod
pids=
trap 'for p in $pids; do kill -KILL "$p" 2>/dev/null; done; rm -rf "$dir"' EXIT

# Waits until a command succeeds, for at most 30 s.
await() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || return 1
        sleep 0.05
    done
}

daemon() {
    name=$1
    shift
    ran="tribod $* (for $name)"
    rm -f "$dir/$name.out" # the ready line of the one before
    "$TRIBOD" --grpc 127.0.0.1:0 --http 127.0.0.1:0 --data "$dir/$name" "$@" \
        >"$dir/$name.out" 2>"$dir/$name.err" </dev/null &
    pid=$!
    pids="$pids $pid"
    await grep -qs '^ready ' "$dir/$name.out" || {
        cp "$dir/$name.err" "$dir/err"
        fail "no ready line of $name"
        finish
        exit 1
    }
    grpc=$(sed -n 's/^ready grpc=\([^ ]*\) http=.*/\1/p' "$dir/$name.out")
    http=$(sed -n 's/^ready grpc=[^ ]* http=\(.*\)/\1/p' "$dir/$name.out")
}

stop() {
    kill -TERM "${1:-$pid}"
    wait "${1:-$pid}"
    code=$?
}

tribod() {
    expected=$1
    shift
    ran="tribod $*"
    "$TRIBOD" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    if [ "$code" -eq "$expected" ]; then pass; else fail "exit code $code, not $expected"; fi
}

get() {
    path=$1
    shift
    ran="curl $path $*"
    : >"$dir/out"
    status=$(curl -s -o "$dir/out" -w '%{http_code}' --max-time 60 "$@" "http://$http$path" \
        2>"$dir/err")
}

call() {
    method=$1 body=$2
    shift 2
    get "/tribo.v1.$method" -H 'Content-Type: application/json' --data-binary "$body" "$@"
}

# is WHAT VALUE EXPECTED
is() { if [ "$2" = "$3" ]; then pass; else fail "$1 is '$2', not '$3'"; fi; }
