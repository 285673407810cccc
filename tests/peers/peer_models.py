"""Models as both programs read them: MuJoCo's compiler and dynamics against `tribo info`.

Compared at the reference pose and at seeded random states, all to 1e-9:
  body    mass, inertia and com of every body, in body axes; inertia relative to the largest moment,
          com in m
  M       mass matrix with armature, entries relative to sqrt(M_ii M_jj)
  a       smooth acceleration (gravity, springs, dampers, actuators; neither contacts nor limits nor
          equalities), relative to its largest entry or 1 rad/s^2 (m/s^2)
The models are those inside packages from PyPI. Models that Tribod refuses by design are listed as
skipped, with the reason; the models in REQUIRED must be read.

Three things are taken out. MuJoCo gives a URDF no motors. Actearly, a matter of the
discretisation, is switched off. And MuJoCo finds the principal axes of a mesh to about 4e-7 rad
only (a box of vertices turned by 3e-7 rad comes back unturned, its tensor off by 7e-8, where ours
is right to 1e-15). Where that shows in a body of meshes the line bears a star: the tensors must
agree as far as such axes let them and their traces, which axes leave alone, to 1e-9; M and a are
compared with the tensor put right in MuJoCo.
"""

import warnings
from pathlib import Path
from typing import Any

import common
import mujoco
import numpy as np
from common import Array, Refused, Report, numbers, tribo

TOLERANCE = 1e-9
AXES_RAD = 1e-6  # largest error of MuJoCo's axes of a mesh, after two rotations
RANDOM_STATES = 4
SEED = 20261

ROBOTICS = common.package("gymnasium_robotics") / "envs"
WARP = common.package("mujoco_warp") / "test_data"
BULLET = common.package("pybullet_data")

REQUIRED = [
    *sorted((ROBOTICS / "assets/hand").glob("manipulate_*.xml")),
    ROBOTICS / "assets/hand/reach.xml",
    *(ROBOTICS / f"assets/fetch/{n}.xml" for n in ("reach", "push", "slide", "pick_and_place")),
    WARP / "humanoid/humanoid.xml",
    BULLET / "franka_panda/panda.urdf",
    BULLET / "kuka_iiwa/model.urdf",
]


def label(path: Path) -> str:
    """The path below its package, without folders that say nothing."""
    short = path
    for root in (ROBOTICS, WARP, BULLET):
        if path.is_relative_to(root):
            short = path.relative_to(root)
    return "/".join(p for p in short.parts if p not in ("assets", "mujoco"))


def full_inertia(model: mujoco.MjModel, body: int) -> Array:
    """Inertia about the centre of mass in body axes."""
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body_iquat[body])
    r = axes.reshape(3, 3)
    return r @ np.diag(model.body_inertia[body]) @ r.T


def has_mesh(model: mujoco.MjModel, body: int) -> bool:
    return bool(np.any(model.geom_type[model.geom_bodyid == body] == mujoco.mjtGeom.mjGEOM_MESH))


def settle_axes(model: mujoco.MjModel, body: int, ours: Array, theirs: Array) -> float:
    """The difference of two tensors beyond the effect of inexact axes; MuJoCo gets ours."""
    scale = np.abs(theirs).max()
    if np.abs(ours - theirs).max() > AXES_RAD * scale:
        return float(np.abs(ours - theirs).max() / scale)
    moments, axes = np.linalg.eigh(ours)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    mujoco.mju_mat2Quat(model.body_iquat[body], axes.ravel())
    model.body_inertia[body] = moments
    return float(abs(np.trace(ours) - np.trace(theirs)) / scale)


def compare_bodies(ours: dict[str, Any], model: mujoco.MjModel) -> tuple[float, str, bool]:
    """The largest difference in mass properties of bodies, its body, and whether axes were
    corrected."""
    worst, whose, settled = 0.0, "", False
    for name, body in ours["bodies"].items():
        i = body["index"]
        xx, yy, zz, xy, xz, yz = body["inertia"]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        theirs = full_inertia(model, i)
        mass = float(model.body_mass[i])
        of_inertia = np.abs(inertia - theirs).max() / max(np.abs(theirs).max(), 1e-15)
        if of_inertia > TOLERANCE and has_mesh(model, i):
            of_inertia = settle_axes(model, i, inertia, theirs)
            settled = True
        of_com = np.abs(np.array(body["com"]) - model.body_ipos[i]).max() if mass > 0 else 0.0
        of_mass = abs(body["mass"] - mass) / max(mass, 1e-12)
        for kind, of in (("mass", of_mass), ("inertia", of_inertia), ("com", of_com)):
            if not of <= worst:
                worst, whose = float(of), f"{kind} of body {name}"
    return worst, whose, settled


def theirs_at(model: mujoco.MjModel, q: Array, u: Array, controls: Array) -> tuple[Array, Array]:
    """MuJoCo's mass matrix and smooth acceleration."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, u, controls
    mujoco.mj_forward(model, data)
    mass = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass)
    return mass, np.array(data.qacc_smooth)


def compare_state(
    path: Path, model: mujoco.MjModel, q: Array, u: Array, controls: Array
) -> tuple[float, float]:
    """Differences of mass matrix and acceleration in one state."""
    options = ["--mass-matrix", "--acceleration", f"--q={numbers(q)}", f"--u={numbers(u)}"]
    if model.nu > 0:
        options.append(f"--controls={numbers(controls)}")
    ours = tribo("info", path, *options)
    mass, acceleration = theirs_at(model, q, u, controls)
    scale = np.sqrt(np.diag(mass))
    of_mass = np.abs(np.array(ours["mass_matrix"]) - mass) / np.outer(scale, scale)
    of_acceleration = np.abs(np.array(ours["acceleration"]) - acceleration)
    return float(of_mass.max()), float(of_acceleration.max() / max(1, np.abs(acceleration).max()))


def compare(report: Report, path: Path, name: str, required: bool) -> None:
    """One line of the table; skips models that either program refuses."""
    try:
        spec = common.mujoco_spec(path)
        for flag in (mujoco.mjtDisableBit.mjDSBL_CONTACT, mujoco.mjtDisableBit.mjDSBL_CONSTRAINT):
            spec.option.disableflags |= flag
        for actuator in spec.actuators:
            actuator.actearly = False
        model = common.mujoco_compile(spec)
    except Refused as reason:
        if required:
            report.check(False, f"{name}: MuJoCo: {reason}")
        return
    if model.nbody == 1:
        return  # a part for other files to include
    try:
        ours = tribo("info", path)
    except Refused as reason:
        if required:
            report.check(False, f"{name}: {reason}")
        else:
            report.skip(f"{name}: {str(reason).removeprefix(f'tribo: {path}:')}")
        return

    counts = ours["counts"]
    expected = {
        "bodies": model.nbody,
        "joints": model.njnt,
        "coordinates": model.nq,
        "dofs": model.nv,
    }
    if path.suffix != ".urdf":
        expected |= {"actuators": model.nu, "activations": model.na}
    wrong = {k: (counts[k], v) for k, v in expected.items() if counts[k] != v}
    if not report.check(not wrong, f"{name}: counts (ours, MuJoCo's) {wrong}"):
        return
    for body_name, body in ours["bodies"].items():
        theirs = model.body(body["index"]).name
        if theirs and theirs != body_name:
            report.check(False, f"{name}: body {body['index']} is {body_name}, not {theirs}")
            return

    total = float(model.body_mass.sum())
    of_total = abs(ours["total_mass"] - total) / max(total, 1e-12)
    of_bodies, whose, settled = compare_bodies(ours, model)
    report.check(of_total <= TOLERANCE, f"{name}: total mass {ours['total_mass']}, not {total}")
    report.check(of_bodies <= TOLERANCE, f"{name}: {whose} differs by {of_bodies:.2g}")

    of_mass, of_acceleration = 0.0, 0.0
    if model.nv > 0:
        rng = np.random.default_rng(SEED)
        states = [(np.array(model.qpos0), np.zeros(model.nv), np.zeros(model.nu))]
        for _ in range(RANDOM_STATES):
            states.append((*common.random_state(model, rng), rng.uniform(-1, 1, model.nu)))
        found = np.array([compare_state(path, model, *state) for state in states])
        of_mass, of_acceleration = found.max(axis=0)
        report.check(of_mass <= TOLERANCE, f"{name}: mass matrix differs by {of_mass:.2g}")
        report.check(
            of_acceleration <= TOLERANCE,
            f"{name}: acceleration differs by {found[:, 1]} (state by state)",
        )
    star = "*" if settled else " "
    print(
        f"{name:44} {model.nbody - 1:6} {model.nv:5} {of_total:9.1e} {of_bodies:9.1e}{star}"
        f" {of_mass:8.1e} {of_acceleration:9.1e}",
        flush=True,
    )


def main() -> None:
    report = Report()
    print(f"{'model':44} {'bodies':>6} {'dofs':>5} {'total':>9} {'body':>9} {'M':>9} {'a':>9}")
    others = sorted({*ROBOTICS.rglob("*.xml"), *WARP.rglob("*.xml")} - set(REQUIRED))
    for path in REQUIRED:
        compare(report, path, label(path), required=True)
    for path in others:
        compare(report, path, label(path), required=False)

    # models inside of models, taken apart by MuJoCo
    with common.scratch() as folder:
        path = Path(folder) / "n_humanoid.xml"
        spec = common.mujoco_spec(WARP / "humanoid/n_humanoid.xml")
        common.mujoco_compile(spec)
        with warnings.catch_warnings(action="ignore"):
            path.write_text(spec.to_xml())
        compare(report, path, "humanoid/n_humanoid.xml as MuJoCo saves it", required=True)
    report.finish()


if __name__ == "__main__":
    main()
