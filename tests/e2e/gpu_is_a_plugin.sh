#!/bin/sh
# The GPU backend is a plug-in: nothing else links CUDA, everything runs without it, and a
# required GPU that is missing is an error with its reason. Where there is one, it steps as the
# CPU does.
. tests/e2e/common.sh

cat >"$dir/ball.xml" <<'END'
<mujoco><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 0.2"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
</worldbody></mujoco>
END

# libraries that programs need to start
for program in "$TRIBO" "$TRIBOD"; do
    [ -e "$program" ] || continue
    check "$program starts without CUDA" sh -c \
        "ldd '$program' >'$dir/ldd' && ! grep -q libcud '$dir/ldd'"
done
plugin=$TRIBO_BUILD/libtribo_gpu.so
if [ -e "$plugin" ]; then
    check 'the plug-in needs no CUDA library either' sh -c "! ldd '$plugin' | grep -q libcud"
    check 'the plug-in exports its table and nothing else' sh -c \
        "[ \"\$(nm -D --defined-only '$plugin' | awk '{print \$3}')\" = tb_backend_plugin ]"
else
    skip "gpu_is_a_plugin: no $plugin"
fi

# without the plug-in
export TRIBO_GPU_PLUGIN=
run 0 version
has '  gpu          none: switched off by TRIBO_GPU_PLUGIN'
run 0 run "$dir/ball.xml" --time 0.1 --json
cp "$dir/out" "$dir/cpu"
run 0 run "$dir/ball.xml" --time 0.1 --json --backend auto
run 1 run "$dir/ball.xml" --time 0.1 --backend gpu
says 'there is no GPU backend: switched off by TRIBO_GPU_PLUGIN'
export TRIBO_GPU_PLUGIN="$dir/ball.xml"
run 1 run "$dir/ball.xml" --time 0.1 --backend gpu
says "backend '$dir/ball.xml'"
export TRIBO_GPU_PLUGIN="$TRIBO_BUILD/tests/plugin/other_abi.so"
run 1 run "$dir/ball.xml" --time 0.1 --backend gpu
says 'has ABI 1048576'
unset TRIBO_GPU_PLUGIN

# with it, where there is a card
run 0 version
if grep -q '^  gpu          none' "$dir/out"; then
    skip "gpu_is_a_plugin: $(grep '^  gpu ' "$dir/out")"
else
    run 0 run "$dir/ball.xml" --time 0.1 --json --backend gpu
    has '"status":"OK"'
fi
finish
