"""Sensors of MuJoCo: `tribo.local` against mj_forward at the same state, and mj_step.

An arm of hinges, a slide, a welded body and a ball joint, a free body, a box on the floor and a
joint at its limit are stepped with held controls. Positions, velocities and actuators depend on the
state alone: there the distance is that of rounding. Accelerations and forces of Tribod are means
over the last step, those of MuJoCo are at its end, so their distance falls with the step; its
order and size are checked. Forces of the contact and the limit, which are soft in MuJoCo, are those
at rest.
"""

import mujoco
import numpy as np
from common import Array, Report

from tribo import local

END_S = 0.6
STEPS_S = (4e-4, 2e-4, 1e-4)
EXACT = 1e-6  # of 1 or the sensor's own size
SHARE = 0.02  # largest distance of an acceleration or force at the smallest step
ORDER = 0.6
CONTROLS = (0.6, 0.2, 0.3)
AT_REST = ("limit", "under", "above", "carried")
MEANS = ("framelinacc", "frameangacc", "accelerometer", "force", "torque")

MODEL = """
<mujoco><compiler angle="radian"/><option timestep="%g" gravity="0.3 -0.2 -9.81"/>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody>
<geom name="floor" type="plane" size="5 5 .1" contype="1" conaffinity="1"/>
<site name="w" pos="1 2 3" euler="0.1 0.2 0.3"/>
<body name="base" pos="0 0 1" euler="0.2 0 0">
  <joint name="a" axis="0 1 0" damping="0.05"/>
  <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="1"/>
  <body name="link" pos="0.4 0 0" euler="0.3 0.1 0">
    <joint name="b" axis="0.3 1 0.2" damping="0.05" pos="0.02 0.01 0"/>
    <joint name="s" type="slide" axis="1 0 0.2" stiffness="200" damping="2"/>
    <geom type="box" size="0.1 0.05 0.03" pos="0.1 0.02 0" mass="0.7"/>
    <site name="tip" pos="0.2 0.05 0.01" euler="0.4 -0.2 0.9"/>
    <body pos="0.05 0 0.02" euler="0 1 0">
      <geom size="0.02 0.03 0.04" type="box" mass="0.2"/><site name="ws" pos="0.01 0 0"/>
      <body name="bb" pos="0 0 -0.1"><joint name="ball" type="ball" damping="0.002"/>
        <geom size="0.02 0.03 0.04" type="box" pos="0 0 -0.05" mass="0.3"/>
        <site name="bs" pos="0 0.01 -0.1"/></body>
    </body>
  </body>
</body>
<body name="free" pos="2 0 1"><freejoint/>
  <geom type="box" size="0.1 0.06 0.04" mass="0.5" pos="0.02 0.01 0"/>
  <geom size="0.02" mass="0.1" pos="0.02 0.11 0"/><site name="fs" pos="0.1 0 0.02" euler="1 0 0"/>
</body>
<body name="box" pos="-2 0 .1"><freejoint/>
  <geom name="gx" type="box" size=".1 .1 .1" mass="1" contype="1" conaffinity="1"/>
  <site name="below" type="box" size=".11 .11 .02" pos="0 0 -.1"/>
  <site name="top" type="box" size=".11 .11 .02" pos="0 0 .1"/><site name="mid"/></body>
<body pos="0 3 1"><joint name="l" axis="0 1 0" limited="true" range="-1 0.02" damping="1"/>
  <geom size=".1" pos=".2 0 0" mass="1"/></body>
</worldbody>
<tendon>
  <fixed name="t"><joint joint="a" coef="0.5"/><joint joint="b" coef="-1"/></fixed>
  <spatial name="sp"><site site="w"/><site site="tip"/></spatial>
</tendon>
<actuator><motor name="m" joint="a" gear="2"/><position name="p" joint="b" kp="5" gear="1.5"/>
  <motor name="mt" tendon="sp" gear="0.5"/></actuator>
<sensor>
<jointpos name="jp" joint="a"/><jointvel name="jv" joint="b"/>
<jointlimitfrc name="limit" joint="l"/>
<ballquat name="bq" joint="ball"/><ballangvel name="bv" joint="ball"/>
<tendonpos name="tp" tendon="t"/><tendonvel name="tv" tendon="t"/>
<tendonpos name="spp" tendon="sp"/><tendonvel name="spv" tendon="sp"/>
<actuatorpos name="ap" actuator="m"/><actuatorvel name="av" actuator="p"/>
<actuatorpos name="apt" actuator="mt"/><actuatorvel name="avt" actuator="mt"/>
<actuatorfrc name="af" actuator="p"/><actuatorfrc name="afm" actuator="m"/>
<framepos name="fp" objtype="site" objname="tip"/>
<framepos name="fpb" objtype="body" objname="link"/>
<framepos name="fpx" objtype="xbody" objname="link"/>
<framepos name="fpg" objtype="geom" objname="gx"/>
<framepos name="fpr" objtype="site" objname="tip" reftype="site" refname="fs"/>
<framequat name="fq" objtype="site" objname="tip"/>
<framequat name="fqr" objtype="xbody" objname="bb" reftype="site" refname="fs"/>
<framexaxis name="fx" objtype="site" objname="bs"/>
<frameyaxis name="fy" objtype="geom" objname="gx"/>
<framezaxis name="fz" objtype="site" objname="bs" reftype="xbody" refname="link"/>
<framelinvel name="fv" objtype="site" objname="bs"/>
<framelinvel name="fvr" objtype="site" objname="bs" reftype="site" refname="fs"/>
<frameangvel name="fw" objtype="body" objname="bb"/>
<frameangvel name="fwr" objtype="body" objname="bb" reftype="site" refname="tip"/>
<framelinacc name="fa" objtype="site" objname="bs"/>
<framelinacc name="faf" objtype="site" objname="fs"/>
<frameangacc name="fal" objtype="xbody" objname="bb"/>
<subtreecom name="sc" body="base"/><subtreelinvel name="sv" body="base"/>
<subtreeangmom name="sm" body="base"/>
<accelerometer name="acc" site="tip"/><accelerometer name="accf" site="fs"/>
<velocimeter name="vel" site="tip"/><gyro name="gy" site="bs"/>
<gyro name="gc" site="bs" cutoff="0.5"/>
<force name="fo" site="tip"/><torque name="to" site="tip"/><force name="fow" site="ws"/>
<torque name="tow" site="ws"/><torque name="tob" site="bs"/><force name="fob" site="bs"/>
<force name="carried" site="mid"/><touch name="under" site="below"/>
<touch name="above" site="top"/><clock name="cl"/>
</sensor></mujoco>
"""


def run(dt: float) -> tuple[dict[str, Array], dict[str, Array], dict[str, str]]:
    """Numbers of Tribod and of MuJoCo by sensor, and the sensors' types."""
    text = MODEL % dt
    steps = round(END_S / dt)
    model = local.Model(text.encode())
    state = local.State(model)
    state.controls = np.array(CONTROLS)
    local.Stepper().step(state, steps)
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    data.ctrl[:] = CONTROLS
    for _ in range(steps):
        mujoco.mj_step(theirs, data)
    at = mujoco.MjData(theirs)
    at.qpos[:], at.qvel[:], at.ctrl[:] = state.q, state.u, CONTROLS
    at.time = state.time
    mujoco.mj_forward(theirs, at)
    ours, peers, types = {}, {}, {}
    for i in range(theirs.nsensor):
        name = theirs.sensor(i).name
        first, count = theirs.sensor_adr[i], theirs.sensor_dim[i]
        ours[name] = state.sensor(name)
        peers[name] = (data if name in AT_REST else at).sensordata[first : first + count].copy()
        types[name] = mujoco.mjtSensor(theirs.sensor_type[i]).name[7:].lower()
    return ours, peers, types


def main() -> None:
    report = Report()
    runs = [run(dt) for dt in STEPS_S]
    worst_exact = worst_mean = 0.0
    total = np.zeros(len(STEPS_S))
    for name, kind in runs[0][2].items():
        away = []
        for ours, peers, _ in runs:
            size = max(1.0, float(np.abs(peers[name]).max()))
            away.append(float(np.abs(ours[name] - peers[name]).max()) / size)
        if kind in MEANS and name != "carried":
            worst_mean = max(worst_mean, away[-1])
            report.check(away[-1] < SHARE, f"{name} ({kind}): {away[-1]:.1e} of its size away")
            total += np.array(away)
        else:
            bound = 2e-4 if name in AT_REST else EXACT
            worst_exact = max(worst_exact, away[-1])
            report.check(away[-1] < bound, f"{name} ({kind}): {away[-1]:.1e} away")
    order = float(np.log2(total[0] / total[-1])) / (len(STEPS_S) - 1)
    report.check(order > ORDER, f"order {order:.2f} of the sum of these distances")
    print(
        f"{len(runs[0][2])} sensors: positions, velocities, actuators, rest within "
        f"{worst_exact:.1e}, "
        f"accelerations and forces within {worst_mean:.1e} at {STEPS_S[-1]:g} s, "
        f"order {order:.2f}"
    )
    report.finish()


if __name__ == "__main__":
    main()
