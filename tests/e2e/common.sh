# Shared by the end-to-end scripts: sourced, not run.
#
#   . tests/e2e/common.sh
#   run CODE ARGUMENT...      runs tribo, remembers its output, and checks its exit code
#   has TEXT                  checks that stdout holds the text; hasnt, says (stderr) likewise
#   check NAME COMMAND...     checks that a command succeeds
#   skip WHY                  prints a line that the runner counts
#   finish                    prints the sum; the script's last command
#
# $dir is a scratch folder. A check that fails prints the command and its output.
: "${TRIBO:?is the path of the program under test}"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0 ran=

pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    echo "  after: tribo $ran"
    sed 's/^/  stdout: /' "$dir/out" 2>/dev/null | cut -c 1-400 | head -n 20
    sed 's/^/  stderr: /' "$dir/err" 2>/dev/null | head -n 20
}

run() {
    expected=$1
    shift
    ran=$*
    "$TRIBO" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    if [ "$code" -eq "$expected" ]; then pass; else fail "exit code $code, not $expected"; fi
}

has() { if grep -qF -- "$1" "$dir/out"; then pass; else fail "stdout does not hold '$1'"; fi; }
hasnt() { if grep -qF -- "$1" "$dir/out"; then fail "stdout holds '$1'"; else pass; fi; }
says() { if grep -qF -- "$1" "$dir/err"; then pass; else fail "stderr does not say '$1'"; fi; }
check() {
    what=$1
    shift
    if "$@" >/dev/null 2>&1; then pass; else fail "$what"; fi
}
skip() {
    skipped=$((skipped + 1))
    echo "SKIPPED $*"
}

# The number behind "NAME": in the JSON object on stdout, the first of its name.
number() {
    grep -o "\"$1\":[-+0-9.eE]*" "$dir/out" | head -n 1 | cut -d : -f 2
}
# near VALUE EXPECTED TOLERANCE
near() {
    awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN {
        d = a - b; if (d < 0) d = -d
        exit !(a != "" && d <= t)
    }'
}

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

# A box of 1 kg and a ball on a floor, and a lift that a servo moves.
write_scene() {
    cat >"$1" <<'XML'
<mujoco model="things">
  <option timestep="0.002" gravity="0 0 -9.81"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 0.1"/>
    <body name="box" pos="0 0 0.1">
      <freejoint name="box"/>
      <geom type="box" size="0.1 0.1 0.1" mass="1"/>
    </body>
    <body pos="0.5 0 0.3">
      <freejoint/>
      <geom type="sphere" size="0.1" mass="0.5"/>
    </body>
    <body name="stage" pos="1 0 0.5">
      <joint name="lift" type="slide" axis="0 0 1" range="-0.1 0.4"/>
      <geom type="box" size="0.05 0.05 0.05" mass="2"/>
    </body>
  </worldbody>
  <actuator>
    <position name="servo" joint="lift" kp="5000" kv="200"/>
  </actuator>
  <keyframe>
    <key name="high" qpos="0 0 1 1 0 0 0  0.5 0 0.3 1 0 0 0  0.1"/>
  </keyframe>
</mujoco>
XML
}
