#!/bin/sh
# Runs the programs of the gpu image on a machine with a card and without a container engine: from the
# image's unpacked root, with nothing of the machine but its kernel and the card's driver.
#
#   tests/deploy/gpu_root.sh ROOT.tar.gz|ROOT.txz [FOLDER]
#
# `tests/deploy/gpu_root.sh pack FILE` writes such a file from the image tribod:gpu ($IMAGE). The
# programs run in a chroot if the caller may make one, else by the image's own loader and libraries.
# DEMO=FOLDER, with grasp.xml of `make demo`, plays the demo's grasps too, from outside of the root by
# the Python client ($PYTHON). BACKEND=cpu tries the script with tribod:cpu on a machine without a card.
set -eu
backend=${BACKEND:-gpu}

if [ "$1" = pack ]; then
    engine=${ENGINE:-$(command -v podman || command -v docker)}
    container=$("$engine" create "${IMAGE:-tribod:gpu}")
    case $2 in *xz) pack='xz -T0 -6' ;; *) pack='gzip -6' ;; esac
    "$engine" export "$container" | $pack >"$2"
    "$engine" rm "$container" >/dev/null
    ls -l "$2"
    exit 0
fi

root=${2:-$(mktemp -d)}
mkdir -p "$root"
tar -xf "$1" -C "$root"
libraries=$root/usr/lib/$(uname -m)-linux-gnu

# the part of a container runtime for cards: the driver's libraries, and the card's devices
for name in libcuda.so.1 libnvidia-ptxjitcompiler.so.1 libnvidia-nvvm.so.4 libnvidia-gpucomp.so; do
    /sbin/ldconfig -p | sed -n "s|.*$name[^ ]* .*=> ||p" | while read -r library; do
        cp -L "$library" "$libraries/$(basename "$library")" 2>/dev/null || true
    done
done
mkdir -p "$root/proc" "$root/dev" "$root/data"
leave() {
    for place in dev proc; do umount -R -l "$root/$place" 2>/dev/null || true; done
}
if mount --rbind --make-rslave /dev "$root/dev" 2>/dev/null && mount --rbind --make-rslave /proc "$root/proc" 2>/dev/null &&
    chroot "$root" /usr/bin/tribod --version >/dev/null 2>&1; then
    echo "in a chroot"
    inside() { exec chroot "$root" "$@"; }
    data=/data
else
    leave
    echo "by the image's loader: no right to make a chroot here"
    loader=$(echo "$root"/lib64/ld-linux-*.so.2)
    path=$(find "$root/usr/lib" -name '*.so*' -exec dirname {} + | sort -u | paste -sd : -)
    inside() {
        program=$1
        shift
        TRIBO_GPU_PLUGIN=$(find "$root/usr/lib" -name libtribo_gpu.so | head -n 1)
        # as in the image; without it the daemon starts itself again, which is here the loader
        export TRIBO_GPU_PLUGIN OMP_WAIT_POLICY=passive
        exec "$loader" --library-path "$path" "$root$program" "$@"
    }
    data=$root/data
fi

log=$root/data/log
TRIBOD_SERVER_BACKEND=$backend inside /usr/bin/tribod --data "$data" --grpc 127.0.0.1:7410 --http 127.0.0.1:7480 >"$log" 2>&1 &
daemon=$!
trap 'kill $daemon 2>/dev/null || true; leave' EXIT
for _ in $(seq 150); do
    grep -q '^ready' "$log" && break
    sleep 0.2
done
grep -q '^ready' "$log" || { cat "$log"; echo '0 passed, 1 failed'; exit 1; }
grep -o 'devices="[^"]*"' "$log" | head -n 1

cat >"$root/data/pile.xml" <<X
<mujoco model="pile"><worldbody><geom type="plane" size="5 5 0.1"/>
<body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
<body pos="0 0 0.31"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
<body pos="0.02 0 0.55"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
</worldbody></mujoco>
X
# by the daemon, and by the command alone; status 3 would be a tolerance that is not reached
(inside /usr/bin/tribo run "$data/pile.xml" --quiet --json --steps 200 --worlds 1024 --server 127.0.0.1:7410 \
    --backend "$backend") >"$root/data/served.json"
(inside /usr/bin/tribo run "$data/pile.xml" --quiet --json --steps 200 --worlds 1024 --backend "$backend") \
    >"$root/data/alone.json"
head -c 600 "$root/data/served.json"
echo
passed=2 failed=0
verdict() { # WORDS COMMAND...
    words=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: $words"; fi
}

busy() { # the milliseconds that devices of $backend have worked
    "${PYTHON:-python3}" - "$backend" <<'P'
import re, sys, urllib.request
text = urllib.request.urlopen("http://127.0.0.1:7480/metrics", timeout=10).read().decode()
pattern = r'^tribod_device_busy_seconds_total{device="%s.*"} (.*)$' % sys.argv[1]
print(round(1000 * sum(map(float, re.findall(pattern, text, re.MULTILINE)))))
P
}

if [ -n "${DEMO:-}" ]; then
    before=$(busy)
    "${PYTHON:-python3}" -m tribo.demo --data "$DEMO" --server 127.0.0.1:7410 | tee "$root/data/demo"
    for grasp in middle rim turned side oblique off_centre handle; do
        verdict "$grasp is held" grep -q "^$grasp  *held" "$root/data/demo"
    done
    for grasp in weak edge; do verdict "$grasp is dropped" grep -q "^$grasp  *dropped" "$root/data/demo"; done
    after=$(busy)
    echo "milliseconds of work: $before before the grasps, $after after them"
    verdict "the grasps were played on $backend" [ "$((after - before))" -gt 500 ]
fi

kill -TERM $daemon # SIGTERM drains
wait $daemon && code=0 || code=$?
verdict "exit status $code of the drain" [ $code -eq 0 ]
[ $failed -eq 0 ] || tail -n 5 "$log"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
