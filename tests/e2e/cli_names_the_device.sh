#!/bin/sh
# --backend and --device: a daemon with cards (played by the processor) steps on the requested
# device, although there is no card on the command's machine; without a request the daemon chooses;
# and a missing device is refused, not ignored.
. tests/e2e/common.sh
. tests/e2e/common_daemon.sh
write_scene "$dir/scene.xml"
export TRIBO_GPU_PLUGIN="$TRIBO_BUILD/tests/plugin/card.so" TRIBO_TEST_CARDS=2
export TRIBOD_SERVER_BACKEND=auto TRIBOD_SCHEDULER_GPU_WORLDS=8
daemon store
# only the daemon has the plug-in
export TRIBO_GPU_PLUGIN=

# stepped DEVICE: the run that the daemon noted last was on it
stepped() {
    run 0 runs --limit 1 --json --server "$grpc"
    has "\"device\":\"$1,"
}
launches() { get /metrics && sed -n "s/^tribod_gpu_launches_total{device=\"gpu:$1\"} //p" "$dir/out"; }

# ---- runs ----

before=$(launches 1)
run 0 run "$dir/scene.xml" --steps 20 --server "$grpc" --backend gpu --json
has '"steps":20'
stepped gpu:0
is 'launches of the other card' "$(launches 1)" "$before"
run 0 run "$dir/scene.xml" --steps 20 --server "$grpc" --backend gpu --device 1 --quiet
stepped gpu:1
check 'that card stepped' [ "$(launches 1)" -gt "$before" ]

# twenty worlds are for a card here, one is not; the processors can be asked for
set -- --steps 5 --quiet --server "$grpc"
run 0 run "$dir/scene.xml" --worlds 20 "$@"
stepped gpu:0
run 0 run "$dir/scene.xml" --worlds 20 --backend auto "$@"
stepped gpu:0
run 0 run "$dir/scene.xml" --worlds 20 --backend cpu "$@"
stepped cpu
run 0 run "$dir/scene.xml" "$@"
stepped cpu

# ---- grasps ----

data=$TRIBO_BUILD/tests/data
"$data/mug" "$dir" >/dev/null && "$data/hand" "$dir" 0.7 0.003 >/dev/null
printf 'name,x,y,z,force\nmiddle,0,0,0.055,20\n' >"$dir/poses.csv"
grasp() {
    expected=$1
    shift
    run "$expected" grasp --hand "$dir/hand.xml" --object "$dir/mug.xml" --approach 0,0,-1 --lift 0.02 \
        --hold 0.05 --poses "$dir/poses.csv" --json --quiet "$@"
}
grasp 0 --server "$grpc" --backend gpu --device 1
has '"outcome":"held"'
stepped gpu:1
grasp 0 --server "$grpc" --backend gpu
stepped gpu:0
grasp 0 --server "$grpc" --perturb 20
stepped gpu:0
grasp 0 --server "$grpc" --perturb 20 --backend cpu
stepped cpu
grasp 0 --server "$grpc"
stepped cpu
grasp 1 --server "$grpc" --backend gpu --device 2
says "there is no device 'gpu:2'"
grasp 2 --server "$grpc" --device 1
says '--device needs --backend gpu'

# ---- devices that are not there ----

run 1 run "$dir/scene.xml" "$@" --backend gpu --device 2
says "there is no device 'gpu:2'"
run 2 run "$dir/scene.xml" "$@" --backend cpu --device 1
says 'no such --device'
run 2 run "$dir/scene.xml" "$@" --device 1
says '--device needs --backend gpu'
for backend in cpu auto; do
    run 1 run "$dir/scene.xml" --steps 1 --backend $backend --device 5
    says 'there is no device 5'
done
run 1 run "$dir/scene.xml" --steps 1 --device 5
says 'there is no device 5'
run 1 export "$dir/scene.xml" --device 5 --problem "$dir/problem.dat"
says 'there is no device 5'
run 1 run "$dir/scene.xml" --steps 1 --backend gpu
says 'there is no GPU backend'
run 0 run "$dir/scene.xml" --steps 1 --backend auto --quiet
grasp 1 --backend gpu
says 'there is no GPU backend'
grasp 1 --device 5
says 'there is no device 5'
grasp 0 --backend auto
has '"outcome":"held"'

# where there is a card it steps
export TRIBO_GPU_PLUGIN="$TRIBO_BUILD/tests/plugin/card.so"
run 0 run "$dir/scene.xml" --steps 5 --backend gpu --device 1 --quiet
run 1 run "$dir/scene.xml" --steps 5 --backend gpu --device 2
says 'device 2 of 2'
grasp 0 --backend gpu --device 1
has '"outcome":"held"'
grasp 1 --backend gpu --device 2
says 'device 2 of 2'
# meshes are for the processors, on whichever card grasps were to be
grasp 0 --object "$dir/mug.obj" --backend auto --device 1
has '"outcome":"held"'
stop
is 'exit code of the daemon' "$code" 0

# a problem on a card; where its iterations run out, the processor solves it and says so
problem=tests/data/problems/box_sticks.dat
run 0 solve --json --backend gpu "$problem"
has '"solver":"full-sor"'
has '"backend":"gpu"'
run 0 solve --json "$problem"
has '"backend":"cpu"'
run 2 solve --device 1 "$problem"
says 'device needs --backend gpu'
run 1 solve --backend gpu --device 7 "$problem"
says 'no card 7'
finish
