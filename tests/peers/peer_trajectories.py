"""Trajectories without contacts and limits: `tribo run` against MuJoCo's RK4 at a much smaller
step.

Both read one file: a model from PyPI (or written here) with all constraints switched off and a
keyframe as the start, saved by MuJoCo. Each scheme runs at three steps, halved. Checked:
  order  falls the error as the scheme promises? Stewart-Trinkle first order, Moreau's midpoint
         second (first with servos: its Coriolis terms are predicted without the forces of rows)
  bound  a first-order rule that holds the acceleration over a step is off by dt/2 times the way
         that the velocity goes, the integral of |a|; a second-order one by dt^2/12 times that of
         |da/dt|. An error grows along the motion, so GROWTH times that, of the worst dof, is the
         tolerance.
The reference is trusted when it changes by less than a hundredth of the smallest error as its step
is doubled.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import common
import mujoco
import numpy as np
from common import Array, Refused, Report, tribo

STEPS_S = (2e-3, 1e-3, 5e-4)
REFERENCE_S = 2.5e-5
GROWTH = 15
SHORTFALL = 0.15  # allowed shortfall of the order between the two smallest steps
SEED = 20262

DOUBLE_PENDULUM = """
<mujoco>
  <worldbody>
    <body pos="0 0 2">
      <joint axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02"/>
      <body pos="0.5 0 0">
        <joint axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@dataclass
class Start:
    """Start of a trajectory, and the controls of its actuators."""

    q: Array
    u: Array
    controls: Array


def at_rest(model: mujoco.MjModel, _rng: np.random.Generator) -> Start:
    return Start(np.array(model.qpos0), np.zeros(model.nv), np.zeros(model.nu))


def moving(model: mujoco.MjModel, rng: np.random.Generator) -> Start:
    """At the reference pose, every dof at up to 1 rad/s (m/s)."""
    return Start(np.array(model.qpos0), rng.uniform(-1, 1, model.nv), np.zeros(model.nu))


def servoing(model: mujoco.MjModel, rng: np.random.Generator) -> Start:
    """At rest, every servo with a target within the middle half of its range."""
    lower, upper = model.actuator_ctrlrange.T
    controls = lower + (upper - lower) * rng.uniform(0.25, 0.75, model.nu)
    return Start(np.array(model.qpos0), np.zeros(model.nv), controls)


def bent(model: mujoco.MjModel, rng: np.random.Generator) -> Start:
    """At rest anywhere."""
    return Start(common.random_state(model, rng)[0], np.zeros(model.nv), np.zeros(model.nu))


@dataclass
class Case:
    name: str
    path: Path | None
    seconds: float
    start: Callable[[mujoco.MjModel, np.random.Generator], Start]
    moreau_order: int = 2


ROBOTICS = common.package("gymnasium_robotics") / "envs/assets"
CASES = [
    Case("double pendulum", None, 1, at_rest),
    Case(
        "humanoid falling",
        common.package("mujoco_warp") / "test_data/humanoid/humanoid.xml",
        0.5,
        moving,
    ),
    Case("Shadow hand, servos", ROBOTICS / "hand/reach.xml", 0.2, servoing, 1),
    Case("Franka falling", common.package("pybullet_data") / "franka_panda/panda.urdf", 0.5, bent),
    Case("Kuka falling", common.package("pybullet_data") / "kuka_iiwa/model.urdf", 0.5, bent),
]


def save(case: Case, file: Path) -> mujoco.MjModel:
    """Writes the case's model with its start as a keyframe, and returns MuJoCo's reading of
    it."""
    spec = (
        common.mujoco_spec(case.path) if case.path else mujoco.MjSpec.from_string(DOUBLE_PENDULUM)
    )
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    for key in list(spec.keys):
        spec.delete(key)
    start = case.start(common.mujoco_compile(spec), np.random.default_rng(SEED))
    spec.add_key(name="start", qpos=start.q, qvel=start.u, ctrl=start.controls)
    common.mujoco_compile(spec)
    if case.path and case.path.suffix != ".urdf":
        spec.meshdir = str((case.path.parent / spec.meshdir).resolve())
        spec.texturedir = str((case.path.parent / spec.texturedir).resolve())
    file.write_text(spec.to_xml())
    return common.mujoco_compile(mujoco.MjSpec.from_file(str(file)))


@dataclass
class Reference:
    q: Array
    u: Array
    way: float  # largest integral of |a| over the dofs
    jerk: float  # largest integral of |da/dt|


def integrate(model: mujoco.MjModel, seconds: float, dt: float) -> Reference:
    """MuJoCo's RK4."""
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.timestep = dt
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    stride = 10
    way, jerk = np.zeros(model.nv), np.zeros(model.nv)
    u, a = np.array(data.qvel), np.array(data.qacc)
    for _ in range(round(seconds / dt / stride)):
        mujoco.mj_step(model, data, stride)
        way += np.abs(data.qvel - u)
        jerk += np.abs(data.qacc - a)
        u, a = np.array(data.qvel), np.array(data.qacc)
    return Reference(np.array(data.qpos), u, float(way.max()), float(jerk.max()))


def difference(model: mujoco.MjModel, a: Array, b: Array) -> float:
    """Largest difference of coordinates, in rad or m."""
    turned = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, turned, 1, a, b)
    return float(np.abs(turned).max())


def ours(file: Path, seconds: float, dt: float, scheme: str) -> Array:
    """Coordinates at the end."""
    steps = ["--steps", str(round(seconds / dt)), "--dt", repr(dt), "--threads", "1"]
    answer = tribo("run", file, "--keyframe", "start", "--scheme", scheme, "--quiet", *steps)
    if answer["status"] != "OK":
        raise Refused(f"{file.name}: {answer['status']}")
    parts = [np.atleast_1d(joint["position"]) for joint in answer["joints"].values()]
    return np.concatenate(parts).astype(np.float64)


def compare(report: Report, case: Case, folder: Path) -> None:
    file = folder / "scene.xml"
    model = save(case, file)
    reference = integrate(model, case.seconds, REFERENCE_S)
    coarse = integrate(model, case.seconds, 2 * REFERENCE_S)
    of_reference = difference(model, reference.q, coarse.q)
    smallest = math.inf
    for scheme, order in (("stewart-trinkle", 1), ("moreau", case.moreau_order)):
        errors = [
            difference(model, reference.q, ours(file, case.seconds, dt, scheme)) for dt in STEPS_S
        ]
        smallest = min(smallest, errors[-1])
        unit = reference.way / 2 if order == 1 else reference.jerk / 12
        bounds = [GROWTH * unit * dt**order for dt in STEPS_S]
        orders = [math.log2(a / b) for a, b in pairwise(errors)]
        what = f"{case.name}, {scheme}"
        for dt, error, bound in zip(STEPS_S, errors, bounds, strict=True):
            report.check(error <= bound, f"{what}, dt {dt}: off by {error:.3g}, bound {bound:.3g}")
        report.check(orders[-1] >= order - SHORTFALL, f"{what}: order {orders}, expected {order}")
        print(
            f"{case.name:20} {scheme:16}"
            + "".join(f"{e:9.1e}" for e in errors)
            + f" {bounds[-1]:9.1e} {orders[0]:6.2f} {orders[1]:6.2f}",
            flush=True,
        )
    report.check(
        of_reference <= smallest / 100,
        f"{case.name}: the reference itself is off by {of_reference:.2g}, ours by {smallest:.2g}",
    )


def main() -> None:
    report = Report()
    steps = "".join(f"{f'{1e3 * dt:g} ms':>9}" for dt in STEPS_S)
    print("largest error of a coordinate at the end, rad or m")
    print(f"{'case':20} {'scheme':16}{steps} {'bound':>9} {'orders':>13}")
    for case in CASES:
        with common.scratch() as folder:
            compare(report, case, Path(folder))
    report.finish()


if __name__ == "__main__":
    main()
