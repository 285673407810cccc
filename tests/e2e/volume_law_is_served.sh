#!/bin/sh
# --contact volume steps here and in a daemon to the same bytes; options that do not fit are named.
. tests/e2e/common.sh
. tests/e2e/common_daemon.sh

positions() { sed 's/.*"bodies"://; s/,"joints".*//' "$dir/out"; }

run 0 scene fork_ring --out "$dir/ring.xml"
run 0 run "$dir/ring.xml" --contact volume --integrator cerk45 --steps 40 --json
has '"solver":"cerk45"'
positions >"$dir/here"
daemon served
run 0 run "$dir/ring.xml" --contact volume --integrator cerk45 --steps 40 --json --server "$grpc"
has '"solver":"cerk45"'
positions >"$dir/there"
check 'the daemon steps to the same bytes' cmp -s "$dir/here" "$dir/there"
check 'bodies were compared' grep -q ring "$dir/here"
stop

run 2 run "$dir/ring.xml" --integrator cerk45
says '--integrator goes with --contact volume'
run 2 run "$dir/ring.xml" --contact volume --integrator rkfix5
says "no integrator 'rkfix5'; did you mean 'rkfix"
run 2 run "$dir/ring.xml" --contact volume --solver newton
says '--contact volume has no --scheme and no --solver'
run 0 scene jaw_mug --out "$dir/mug.xml"
run 1 run "$dir/mug.xml" --contact volume --steps 1
says 'the volume law has no joint limits, and the model has'

# balls on a GPU, played here, move to the processor's bytes; what it does not take is named
export TRIBO_GPU_PLUGIN="$TRIBO_BUILD/tests/plugin/card.so"
run 0 scene billiards_10 --out "$dir/balls.xml"
run 0 run "$dir/balls.xml" --contact volume --steps 60 --json
positions >"$dir/here"
run 0 run "$dir/balls.xml" --contact volume --steps 60 --json --backend gpu
positions >"$dir/there"
check 'a GPU steps balls to the same bytes' cmp -s "$dir/here" "$dir/there"
check 'balls were compared' grep -q body50 "$dir/here"
run 1 run "$dir/balls.xml" --contact volume --backend gpu --integrator cvode --steps 1
says "integrator 'cvode' does not run on the GPU: symplectic and rkfix1 to rkfix4 do"
run 0 run "$dir/ring.xml" --contact volume --integrator rkfix4 --steps 60 --json
positions >"$dir/here"
run 0 run "$dir/ring.xml" --contact volume --integrator rkfix4 --steps 60 --json --backend gpu
positions >"$dir/there"
check 'a GPU steps polyhedra to the same bytes' cmp -s "$dir/here" "$dir/there"
cat >"$dir/pendulum.xml" <<'END'
<mujoco>
  <worldbody>
    <body pos="0 0 1">
      <joint type="hinge" axis="0 1 0"/>
      <geom type="box" size=".1 .1 .1"/>
      <body pos=".4 0 0">
        <joint type="hinge" axis="0 1 0"/>
        <geom type="box" size=".1 .1 .1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
END
run 0 run "$dir/pendulum.xml" --contact volume --steps 1
run 1 run "$dir/pendulum.xml" --contact volume --backend gpu --steps 1
says 'the volume law on a GPU has no motors, springs, dampers, moved bodies, and trees other than single'
run 0 bench goteman --table broad --scene billiards_10
has 'billiards_10, card, append'
run 0 bench goteman --table traversals --scene geneva --json
for way in recursive iterative hybrid shared own; do has "geneva, gpu_$way"; done
largest=$(grep -o '"volume_difference":[0-9.e+-]*' "$dir/out" | cut -d: -f2 | sort -g | tail -1)
check "volumes of BSP trees on a GPU differ by $largest" \
    awk "BEGIN { exit !(\"$largest\" != \"\" && $largest < 1e-12) }"
finish
