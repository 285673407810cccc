"""Servos, delays, tendons and media of MuJoCo 4.0: `tribo run` against mj_step at a smaller step.

Each case is a small model with held controls and no contacts. MuJoCo steps it at REFERENCE_S,
`tribo run` at three steps, halved. Both are first-order rules, so the distance between the two
falls with the step; checked are the last halving's order and the distance at the smallest step,
as a share of the way that the coordinates go. A case also has a change of one parameter that
moves MuJoCo's own answer by much more than the distance: it shows that the feature acts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import common
import mujoco
import numpy as np
from common import Array, Refused, Report, tribo

STEPS_S = (2e-3, 1e-3, 5e-4)
REFERENCE_S = 2e-5
SHARE = 0.02  # largest distance at the smallest step, of the way
SHORTFALL = 0.4  # allowed shortfall of the measured order

ARM = """
<worldbody>
  <body pos="0 0 1">
    <joint name="a" axis="0 1 0" damping="0.05"/>
    <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" contype="0" conaffinity="0"/>
    <body pos="0.4 0 0">
      <joint name="b" axis="0 1 0" damping="0.05"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" contype="0" conaffinity="0"/>
    </body>
  </body>
</worldbody>
"""
BALL = """
<worldbody>
  <body pos="0 0 1">
    <joint name="a" type="ball" damping="0.01"/>
    <geom type="box" size=".07 .09 .05" contype="0" conaffinity="0"/>
  </body>
</worldbody>
"""
HANGING = """
<worldbody>
  <site name="top" pos="0 0 2"/>
  <body pos="0 0 1">
    <joint name="a" type="slide" axis="0 0 1"/>
    <geom size=".05" mass="1" contype="0" conaffinity="0"/>
    <site name="hook"/>
  </body>
</worldbody>
"""
CARD = """
<asset>
  <mesh name="card" vertex="0.04 0.06 0.001 -0.04 0.06 0.001 0.04 -0.06 0.001 -0.04 -0.06 0.001
        0.04 0.06 -0.001 -0.04 0.06 -0.001 0.04 -0.06 -0.001 -0.02 -0.06 -0.001"/>
</asset>
<worldbody>
  <body pos="0 0 1" euler="30 20 0">
    <freejoint/>
    <geom type="mesh" mesh="card" mass="0.002" fluidshape="ellipsoid" contype="0"
          conaffinity="0"/>
  </body>
</worldbody>
"""


@dataclass
class Case:
    name: str
    body: str
    rest: Callable[[float], str]  # of the document, at a time step
    other: str  # the same with one parameter changed
    controls: tuple[float, ...] = ()
    seconds: float = 0.4


def fixed(text: str) -> Callable[[float], str]:
    return lambda _dt: text


def pid(settings: str) -> str:
    return f'<actuator><pid joint="a" kp="40" kv="2" {settings}/></actuator>'


def plugin(ki: float) -> str:
    return (
        '<extension><plugin plugin="mujoco.pid"><instance name="one">'
        '<config key="kp" value="40"/><config key="kd" value="2"/>'
        f'<config key="ki" value="{ki}"/>'
        '<config key="imax" value="3"/><config key="slewmax" value="2"/>'
        '</instance></plugin></extension><actuator><plugin joint="a" plugin="mujoco.pid" '
        'instance="one" actdim="2" forcerange="-20 20"/></actuator>'
    )


def delayed(interpolation: str, delay: float = 0.05) -> Callable[[float], str]:
    def text(dt: float) -> str:
        samples = round(0.06 / dt)
        return (
            f'<actuator><motor joint="a" gear="3" delay="{delay}" nsample="{samples}" '
            f'interp="{interpolation}"/></actuator>'
        )

    return text


def spring(stiffness: str, damping: str) -> str:
    return (
        f'<tendon><spatial stiffness="{stiffness}" damping="{damping}" springlength="0.8">'
        '<site site="top"/><site site="hook"/></spatial></tendon>'
    )


def clamped(bound: float) -> str:
    return (
        f'<tendon><fixed name="t" actuatorfrcrange="-{bound} {bound}"><joint joint="a" coef="1"/>'
        '<joint joint="b" coef="-0.5"/></fixed></tendon><actuator><motor tendon="t" gear="2"/>'
        '<position tendon="t" kp="30" kv="1"/></actuator>'
    )


def dc_motor(settings: str) -> str:
    return f'<actuator><dcmotor joint="a" gear="20" resistance="2" {settings}/></actuator>'


def orientation(kind: str, kp: float) -> str:
    return f'<actuator><orientation joint="a" kp="{kp}" dampratio="0.5" input="{kind}"/></actuator>'


MEDIUM = '<option density="1.2" viscosity="1.8e-5"/>'
CASES = [
    Case("pid", ARM, fixed(pid("")), pid('input="pos"'), (0.5, 5)),
    Case(
        "pid, all of it",
        ARM,
        fixed(pid('ki="90" imax="0.05" slewmax="2" input="pos vel ff" forcerange="-25 25"')),
        pid('ki="90" imax="0.05" slewmax="4" input="pos vel ff" forcerange="-25 25"'),
        (0.8, 0.5, 2.0),
    ),
    Case("pid, velocity alone", ARM, fixed(pid('input="vel"')), pid('input="ff"'), (2.0,)),
    Case("mujoco.pid", ARM, fixed(plugin(60)), plugin(0.1), (0.8,)),
    Case(
        "dcmotor", ARM, fixed(dc_motor('motorconst=".08 .05"')), dc_motor('motorconst=".08"'), (6,)
    ),
    Case(
        "dcmotor, inductance",
        ARM,
        fixed(dc_motor('motorconst=".06" inductance=".06" saturation=".15"')),
        dc_motor('motorconst=".06" saturation=".15"'),
        (6,),
    ),
    Case(
        "dcmotor, controller",
        ARM,
        fixed(
            dc_motor(
                'motorconst=".06" input="pos vel ff voltage" controller=".1 .4 .01 20 .01" '
                'saturation=".5"'
            )
        ),
        dc_motor('motorconst=".06" input="pos vel ff voltage" controller=".1 .4 .02 20 .01"'),
        (9, 1, 0.01, 0.5),
    ),
    Case(
        "rotation vector",
        BALL,
        fixed(orientation("expmap", 5)),
        orientation("expmap", 2),
        (0.8, -1.5, 0.7),
    ),
    Case(
        "quaternion",
        BALL,
        fixed(orientation("quat", 5)),
        orientation("quat", 2),
        (0.5, 0.1, -0.7, 0.4),
    ),
    Case("delay, held", ARM, delayed("zoh"), delayed("zoh", 0.03)(REFERENCE_S), (1.0,)),
    Case("delay, linear", ARM, delayed("linear"), delayed("linear", 0.03)(REFERENCE_S), (1.0,)),
    Case("delay, cubic", ARM, delayed("cubic"), delayed("cubic", 0.03)(REFERENCE_S), (1.0,)),
    Case("tendon springs", HANGING, fixed(spring("20 -40 300", "1 2 3")), spring("20", "1")),
    Case("bounded tendon", ARM, fixed(clamped(4)), clamped(40), (3.0, 0.6)),
    Case("medium on a mesh", CARD, fixed(MEDIUM), '<option density="4"/>', (), 0.5),
]


def save(case: Case, rest: str, file: Path) -> mujoco.MjModel:
    file.write_text(f"<mujoco>{case.body}{rest}</mujoco>")
    count = mujoco.MjModel.from_xml_path(str(file)).nu
    controls = " ".join(str(c) for c in case.controls[:count])
    key = f'<keyframe><key name="start" ctrl="{controls}"/></keyframe>' if controls else ""
    key = key or '<keyframe><key name="start"/></keyframe>'
    file.write_text(f"<mujoco>{case.body}{rest}{key}</mujoco>")
    return mujoco.MjModel.from_xml_path(str(file))


def reference(case: Case, rest: str, file: Path) -> tuple[mujoco.MjModel, Array, float]:
    """MuJoCo's model, its coordinates at the end, and the way that the fastest dof went."""
    save(case, rest, file)
    text = file.read_text().replace("<mujoco>", f'<mujoco><option timestep="{REFERENCE_S}"/>')
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = REFERENCE_S
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    way = np.zeros(model.nv)
    for _ in range(round(case.seconds / REFERENCE_S)):
        mujoco.mj_step(model, data)
        way += np.abs(data.qvel) * REFERENCE_S
    return model, np.array(data.qpos), float(way.max())


def distance(model: mujoco.MjModel, a: Array, b: Array) -> float:
    turned = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, turned, 1, a, b)
    return float(np.abs(turned).max())


def ours(case: Case, dt: float, file: Path) -> Array:
    save(case, case.rest(dt), file)
    answer = tribo(
        *("run", file, "--keyframe", "start", "--quiet", "--threads", "1", "--dt", repr(dt)),
        *("--steps", str(round(case.seconds / dt))),
    )
    if answer["status"] != "OK":
        raise Refused(f"{case.name}: {answer['status']}")
    parts = [np.atleast_1d(joint["position"]) for joint in answer["joints"].values()]
    if not parts:
        parts = [np.array(next(iter(answer["bodies"].values()))["pose"])]
    return np.concatenate(parts).astype(np.float64)


def compare(report: Report, case: Case, folder: Path) -> None:
    file = folder / "scene.xml"
    model, q, way = reference(case, case.rest(REFERENCE_S), file)
    _, other, _ = reference(case, case.other, file)
    errors = [distance(model, q, ours(case, dt, file)) for dt in STEPS_S]
    shift = distance(model, q, other)
    order = math.log2(errors[1] / errors[2])
    print(f"{case.name:20}" + "".join(f"{e:10.1e}" for e in errors), end="")
    print(f"{order:7.2f}{way:10.2e}{shift:10.2e}", flush=True)
    report.check(errors[2] <= SHARE * way, f"{case.name}: off by {errors[2]:.3g} of {way:.3g}")
    report.check(order >= 1 - SHORTFALL, f"{case.name}: order {order:.2f}")
    report.check(errors[2] <= 0.3 * shift, f"{case.name}: the other parameter moves {shift:.3g}")


def main() -> None:
    report = Report()
    plugins = Path(mujoco.__file__).parent / "plugin"
    if plugins.is_dir():
        mujoco.mj_loadAllPluginLibraries(str(plugins))
    steps = "".join(f"{f'{1e3 * dt:g} ms':>10}" for dt in STEPS_S)
    print("distance from MuJoCo at the end, rad or m")
    print(f"{'case':20}{steps}{'order':>7}{'way':>10}{'other':>10}")
    for case in CASES:
        with common.scratch() as folder:
            compare(report, case, Path(folder))
    report.finish()


if __name__ == "__main__":
    main()
