#!/bin/sh
# The daemon's life: its command line, configuration, ready line, reloads, keys, and its end.
. tests/e2e/common.sh
. tests/e2e/common_daemon.sh

# help and version; errors name the wrong argument
tribod 0 --help
for word in --config --grpc --create-key SIGTERM Examples; do has "$word"; done
tribod 0 --version
has "tribod 0."
tribod 2 --fast
tribod 2 serve
says "'serve'"
tribod 2 --threads many
says "--threads"
says "'many'"
tribod 2 --check-config --print-config
tribod 2 --config "$dir/no.ini" --check-config
says no.ini

# a store that cannot be made is named with the reason
printf '' >"$dir/file"
tribod 1 --data "$dir/file/store" --create-key planner
says "$dir/file/store: Not a directory"

# the configuration is checked, printed, and read again
tribod 0 --check-config
tribod 0 --threads 3 --print-config
cp "$dir/out" "$dir/printed.ini"
has 'threads = 3'
tribod 0 --config "$dir/printed.ini" --check-config
tribod 0 --config "$dir/printed.ini" --print-config
check 'what is printed stays the same' cmp "$dir/out" "$dir/printed.ini"
printf '[server]\n\nthreads = lots\n' >"$dir/wrong.ini"
tribod 2 --config "$dir/wrong.ini" --check-config
says "wrong.ini:3"
says "'lots'"
TRIBOD_SERVER_THREADS=5 tribod 0 --config "$dir/printed.ini" --print-config
has 'threads = 5'
TRIBOD_SERVER_THREADS=5 tribod 0 --threads 6 --print-config
has 'threads = 6'
TRIBOD_LIMITS_NESTING=x tribod 2 --check-config
says TRIBOD_LIMITS_NESTING

# free ports, one line, and it is ready
printf '[log]\nlevel = warning\nformat = json\n[limits]\nsessions = 99\n' >"$dir/live.ini"
daemon first --config "$dir/live.ini"
first=$pid
is 'lines on standard output' "$(wc -l <"$dir/first.out")" 1
check 'ports are told' grep -Eq '^ready grpc=127.0.0.1:[1-9][0-9]+ http=127.0.0.1:[1-9][0-9]+$' \
    "$dir/first.out"
get /livez
is livez "$status" 200
get /readyz
is readyz "$status" 200
call Simulation/GetServerInfo '{}'
is GetServerInfo "$status" 200
has '"sessions":99'
has '"name":"cpu"'
get /metrics
is metrics "$status" 200
has 'tribod_calls_total{method="tribo.v1.Simulation/GetServerInfo",transport="http",status="OK"} 1'
has '# TYPE tribod_call_seconds histogram'

# the probe of health checks
tribod 0 --http "$http" --probe
is 'answer to the probe' "$(cat "$dir/out")" ready
tribod 1 --http 127.0.0.1:1 --probe
says 'Connection refused'
tribod 2 --probe --version

# neither its ports nor its store can be had a second time
tribod 1 --grpc "$grpc" --http 127.0.0.1:0 --data ''
says "$grpc"
says 'in use'
tribod 1 --grpc 127.0.0.1:0 --http "$http" --data ''
says "$http"
says 'in use'
tribod 1 --grpc 127.0.0.1:0 --http 127.0.0.1:0 --data "$dir/first"
says "in use by process $first"

# SIGHUP takes a valid file, and keeps the old configuration if the file is invalid
printf '[log]\nlevel = info\nformat = json\n[limits]\nsessions = 77\n[server]\nthreads = 1\n' \
    >"$dir/live.ini"
kill -HUP "$pid"
check 'the reload is logged' await grep -q '"event":"config.reloaded"' "$dir/first.err"
check 'what needs a start is logged' grep -q '"option":"server.threads"' "$dir/first.err"
call Simulation/GetServerInfo '{}'
has '"sessions":77'
printf '[limits]\nsessions = -1\n' >"$dir/live.ini"
kill -HUP "$pid"
check 'the refusal is logged' await grep -q '"event":"config.kept"' "$dir/first.err"
call Simulation/GetServerInfo '{}'
has '"sessions":77'
printf '[log]\nlevel = info\nformat = json\n[auth]\nanonymous = none\n' >"$dir/live.ini"
kill -HUP "$pid"
await sh -c "[ \$(grep -c config.reloaded '$dir/first.err') = 2 ]"

# keys: made beside the running daemon, used, listed, revoked
call Simulation/ListScenes '{}'
is 'without a key' "$status" 401
# a key of a mounted secret: taken once, kept the second time; another one with its id is refused
printf 'tribo_0badcafe_%043d\n' 0 >"$dir/secret"
for time in first second; do tribod 0 --data "$dir/secrets" --create-key mounted --key-file "$dir/secret"; done
is 'a known key is not printed' "$(cat "$dir/out")" ''
tribod 0 --data "$dir/secrets" --list-keys
has '0badcafe run   valid'
printf 'tribo_0badcafe_%042d4\n' 0 >"$dir/secret"
tribod 1 --data "$dir/secrets" --create-key mounted --key-file "$dir/secret"
says 'another key with the id 0badcafe'
printf 'password\n' >"$dir/secret"
tribod 2 --data "$dir/secrets" --create-key mounted --key-file "$dir/secret"
says 'characters of base64url'

tribod 0 --data "$dir/first" --create-key planner --scope run
key=$(cat "$dir/out")
is 'lines with the key' "$(wc -l <"$dir/out")" 1
call Simulation/ListScenes '{}' -H "Authorization: Bearer $key"
is 'with a key' "$status" 200
call Simulation/ListScenes '{}' -H "Authorization: Bearer ${key}x"
is 'with a wrong key' "$status" 401
tribod 0 --data "$dir/first" --list-keys
has planner
hasnt "$key"
tribod 0 --data "$dir/first" --revoke-key "$(echo "$key" | cut -d _ -f 2)"
kill -HUP "$pid"
await sh -c "[ \$(grep -c config.reloaded '$dir/first.err') = 3 ]"
call Simulation/ListScenes '{}' -H "Authorization: Bearer $key"
is 'with a revoked key' "$status" 401
tribod 1 --data "$dir/first" --revoke-key 00000000
for command in --list-keys '--revoke-key 00000000'; do
    # shellcheck disable=SC2086
    tribod 1 --data "$dir/nowhere" $command
    says "there is no store in $dir/nowhere"
    check 'and none is made' test ! -e "$dir/nowhere"
done
tribod 2 --data "$dir/first" --create-key x --scope root
says "'root'"
secret=$(echo "$key" | cut -d _ -f 3-)
check 'no key is in the log' sh -c "! grep -qF -e '$secret' '$dir/first.err'"
check 'no key is in the store' sh -c "! grep -qF -e '$secret' '$dir'/first/*"

# the end: SIGTERM and SIGINT drain and give 0; stored data stays; the lock is free again
stop
is 'exit code after SIGTERM' "$code" 0
check 'draining is logged' grep -q '"event":"server.drained"' "$dir/first.err"
check 'the port is closed' sh -c "! curl -s --max-time 5 'http://$http/livez'"
check 'the log is JSON' sh -c "! grep -v '^{.*}\$' '$dir/first.err'"
daemon first
tribod 0 --data "$dir/first" --list-keys
has revoked
kill -INT "$pid"
wait "$pid"
is 'exit code after SIGINT' "$?" 0

# messages to systemd: ready, reloading, ready again, stopping
python3 - "$dir/notify" >"$dir/told" <<'PYTHON' &
import socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
server.bind(sys.argv[1])
server.settimeout(60)
told = ""
while told != "STOPPING=1":
    told = server.recv(4096).decode()
    print(told.split("\n")[0], flush=True)
PYTHON
pids="$pids $!"
await test -S "$dir/notify"
NOTIFY_SOCKET=$dir/notify
export NOTIFY_SOCKET
daemon notified
unset NOTIFY_SOCKET
kill -HUP "$pid"
await sh -c "[ \$(grep -c READY=1 '$dir/told') = 2 ]"
stop
await grep -q STOPPING=1 "$dir/told"
is 'what systemd heard' "$(tr '\n' ' ' <"$dir/told")" 'READY=1 RELOADING=1 READY=1 STOPPING=1 '

# work that does not end by itself is ended in time; a second signal does not wait for it
scene='<mujoco><worldbody><geom type=\"plane\" size=\"1 1 1\"/><body pos=\"0 0 1\"><freejoint/><geom size=\"0.1\"/></body></worldbody></mujoco>'
for signals in 1 2; do
    TRIBOD_SERVER_DRAIN_SECONDS=2
    [ "$signals" = 1 ] || TRIBOD_SERVER_DRAIN_SECONDS=60
    export TRIBOD_SERVER_DRAIN_SECONDS
    daemon busy
    call Simulation/CreateScene "{\"text\":\"$scene\"}"
    is CreateScene "$status" 200
    id=$(sed 's/.*"sceneId":"\([^"]*\)".*/\1/' "$dir/out")
    call Simulation/CreateSession "{\"sceneId\":\"$id\",\"worlds\":200}"
    is CreateSession "$status" 200
    session=$(sed 's/.*"sessionId":"\([^"]*\)".*/\1/' "$dir/out")
    curl -s -o "$dir/answer" -H 'Content-Type: application/json' \
        --data "{\"sessionId\":\"$session\",\"steps\":1000000}" \
        "http://$http/tribo.v1.Simulation/Step" &
    caller=$!
    await sh -c "curl -s 'http://$http/metrics' | grep -q '^tribod_world_steps_total [0-9][0-9][0-9]'"
    if [ "$signals" = 1 ]; then
        stop
        is 'exit code' "$code" 0
        wait "$caller"
        check 'the caller is told' grep -q '"code":"unavailable"' "$dir/answer"
    else
        kill -TERM "$pid"
        await grep -q server.draining "$dir/busy.err"
        stop
        is 'exit code after a second signal' "$code" 143
        wait "$caller"
    fi
done
unset TRIBOD_SERVER_DRAIN_SECONDS
daemon busy
call Simulation/GetState "{\"sessionId\":\"$session\"}"
is 'the session is there' "$status" 200
stop

# without a store, without gRPC, without HTTP
daemon '' --data ''
stop
is 'exit code without a store' "$code" 0
daemon only --grpc ''
is 'gRPC address' "$grpc" -
get /readyz
is readyz "$status" 200
stop
daemon socket --http ''
is 'HTTP address' "$http" -
stop
is 'exit code' "$code" 0
TRIBOD_SERVER_GRPC_SOCKET=$dir/tribo.sock
export TRIBOD_SERVER_GRPC_SOCKET
daemon socket
check 'the socket is there' test -S "$dir/tribo.sock"
stop
check 'the socket is gone' test ! -e "$dir/tribo.sock"
unset TRIBOD_SERVER_GRPC_SOCKET

# a store that is none is named
mkdir "$dir/broken"
printf 'this was a store once, %4096s' '' >"$dir/broken/tribo.db"
tribod 1 --grpc 127.0.0.1:0 --http '' --data "$dir/broken"
says "$dir/broken/tribo.db: file is not a database"
tribod 1 --data "$dir/broken" --list-keys
says "$dir/broken/tribo.db: file is not a database"

# if a card is allowed and there is none, the log gives the reason; without the option it is
# silent
check 'nothing about cards' sh -c "! grep -q devices.no_card '$dir/socket.err'"
export TRIBO_GPU_PLUGIN= TRIBOD_SERVER_BACKEND=auto
daemon cardless --data ''
check 'the reason is logged' grep -q \
    ' INFO devices.no_card reason="switched off by TRIBO_GPU_PLUGIN"$' "$dir/cardless.err"
stop
unset TRIBO_GPU_PLUGIN TRIBOD_SERVER_BACKEND
finish
