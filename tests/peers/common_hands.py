"""A published hand made a scene: fixed in space without gravity, a can where its fingers close.

Where the can is and how the fingers close follows from the hand alone. The can's centre is near the
mean of the finger tips, its axis across the way that they close, its size whatever the open hand
leaves free. Every actuator is driven towards the end of its range that brings the tips together.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path

import common
import mujoco
import numpy as np
from common import Array
from common_trial import find_mesh, package_roots, read_spec

RADII_M = (0.033, 0.027, 0.022, 0.018, 0.014, 0.011, 0.008)
CLEARANCE_M = 1e-3
ALONG = (0.0, -0.15, 0.15, -0.3, 0.3, -0.45)  # shares of the way from base to tips
INWARD = (0.0, 0.1, 0.2, 0.3)  # of its length, along the mean way that the tips close
CAN_DENSITY = 700.0
CLOSING_S = 1.0
ROWS = 20  # of the controls while closing
FORCE_SHARE = 0.3  # of a motor's range
ADDED_KP, ADDED_KV, ADDED_FORCE = 2.0, 0.1, 1.0  # servos of a hand without actuators, N m/rad


@dataclass
class Scene:
    """The scene as text, and its controls: times in s and a row of values each."""

    xml: str
    model: mujoco.MjModel
    times: Array
    controls: Array

    def csv(self) -> str:
        """The controls as `tribo run --controls` reads them."""
        names = [self.model.actuator(i).name for i in range(self.model.nu)]
        rows = [",".join(["time", *names])]
        for time, values in zip(self.times, self.controls, strict=True):
            rows.append(f"{float(time)!r},{common.numbers(values)}")
        return "\n".join(rows) + "\n"


def load(path: Path, root: Path) -> mujoco.MjSpec:
    """The hand alone: named, without keyframes, its meshes by absolute addresses."""
    spec = read_spec(path)
    roots = package_roots(path, root)
    folder = path.parent / spec.meshdir
    spec.strippath = False
    for mesh in spec.meshes:
        if mesh.file:
            found = find_mesh(mesh.file, path, roots) or folder / mesh.file
            mesh.file = str(found.resolve())
    spec.meshdir = ""
    for things in (spec.keys, spec.materials, spec.textures, spec.sensors):
        for thing in list(things):
            spec.delete(thing)
    for geom in spec.geoms:
        geom.material = ""
    for site in spec.sites:
        site.material = ""
    for joint in list(spec.joints):
        if joint.type == mujoco.mjtJoint.mjJNT_FREE:
            spec.delete(joint)
    if path.suffix == ".urdf":
        spec.compiler.balanceinertia = True
        add_servos(spec)
    for number, actuator in enumerate(spec.actuators):
        actuator.name = actuator.name or f"drive{number}"
    spec.option.gravity = [0, 0, 0]
    return spec


def add_servos(spec: mujoco.MjSpec) -> None:
    """Position servos for a hand that has none."""
    for joint in spec.joints:
        servo = spec.add_actuator(
            name=f"servo_{joint.name}", target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT
        )
        servo.set_to_position(kp=ADDED_KP, kv=ADDED_KV)
        servo.forcelimited = True
        servo.forcerange = [-ADDED_FORCE, ADDED_FORCE]


def finger_tips(model: mujoco.MjModel) -> Array:
    """The last bodies with shapes on chains that move."""
    moves = np.zeros(model.nbody, bool)
    for b in range(1, model.nbody):
        moves[b] = moves[model.body_parentid[b]] or model.body_jntnum[b] > 0
    shaped = [b for b in range(1, model.nbody) if moves[b] and model.body_geomnum[b] > 0]
    parents = set()
    for b in shaped:
        above = model.body_parentid[b]
        while above > 0:
            parents.add(above)
            above = model.body_parentid[above]
    return np.array([b for b in shaped if b not in parents])


def tip_points(model: mujoco.MjModel, data: mujoco.MjData, tips: Array) -> Array:
    """A point of each tip: the mean of its shapes' centres."""
    first, count = model.body_geomadr, model.body_geomnum
    return np.array([data.geom_xpos[first[b] : first[b] + count[b]].mean(axis=0) for b in tips])


def closing_gradient(
    model: mujoco.MjModel, data: mujoco.MjData, tips: Array
) -> tuple[Array, Array]:
    """How the spread of the tips changes with each dof, and the tips' velocities by dof."""
    points = tip_points(model, data, tips)
    by_dof = np.zeros((model.nv, len(tips), 3))
    for t, tip in enumerate(tips):
        jacobian = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, jacobian, None, points[t], int(tip))
        by_dof[:, t] = jacobian.T
    spread = points - points.mean(axis=0)
    return np.einsum("dtk,tk->d", by_dof, spread), by_dof


def free_of_hand(model: mujoco.MjModel, data: mujoco.MjData, can: int) -> bool:
    """Whether the can is clear of every shape of the hand that it could touch."""
    fromto = np.zeros(6)
    for g in range(model.ngeom):
        if g == can or not (model.geom_contype[g] or model.geom_conaffinity[g]):
            continue
        far = 0.05
        if mujoco.mj_geomDistance(model, data, can, g, far, fromto) < CLEARANCE_M:
            return False
    return True


def place_can(
    spec: mujoco.MjSpec, centre: Array, axis: Array, way: Array, inward: Array
) -> mujoco.MjModel:
    """Adds the largest can that fits the open hand. Refused if there is none."""
    body = spec.worldbody.add_body(name="can")
    body.add_freejoint(name="can")
    geom = body.add_geom(name="can", type=mujoco.mjtGeom.mjGEOM_CYLINDER, density=CAN_DENSITY)
    quaternion = np.zeros(4)
    mujoco.mju_quatZ2Vec(quaternion, axis)
    body.quat = quaternion
    for radius in RADII_M:
        geom.size = [radius, 1.2 * radius, 0]
        for along, across in itertools.product(ALONG, INWARD):
            body.pos = centre + along * way + across * inward
            model = common.mujoco_compile(spec)
            data = mujoco.MjData(model)
            mujoco.mj_forward(model, data)
            if free_of_hand(model, data, model.geom("can").id):
                return model
    raise common.Refused("no room for a can between the fingers")


def closed_controls(model: mujoco.MjModel, gradient: Array) -> tuple[Array, Array]:
    """Controls that hold the open hand, and controls that close it."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    start, end = np.zeros(model.nu), np.zeros(model.nu)
    for a in range(model.nu):
        moment = np.zeros(model.nv)
        row, n = data.moment_rowadr[a], data.moment_rownnz[a]
        moment[data.moment_colind[row : row + n]] = data.actuator_moment[row : row + n]
        opens = float(moment[: len(gradient)] @ gradient)
        low, high = model.actuator_ctrlrange[a] if model.actuator_ctrllimited[a] else (-1.0, 1.0)
        servo = model.actuator_biastype[a] == mujoco.mjtBias.mjBIAS_AFFINE
        if servo and model.actuator_biasprm[a, 1] != 0:
            scale = -model.actuator_biasprm[a, 1] / model.actuator_gainprm[a, 0]
            start[a] = np.clip(scale * data.actuator_length[a], low, high)
            end[a] = (low if opens > 0 else high) if abs(opens) > 1e-6 else start[a]
        elif abs(opens) > 1e-6:
            end[a] = FORCE_SHARE * (low if opens > 0 else high)
    return start, end


def make_scene(path: Path, root: Path) -> Scene:
    """The hand of a file with its can and its controls; Refused with the reason otherwise."""
    spec = load(path, root)
    alone = common.mujoco_compile(spec)
    data = mujoco.MjData(alone)
    mujoco.mj_forward(alone, data)
    tips = finger_tips(alone)
    if len(tips) == 0:
        raise common.Refused("no finger moves")
    points = tip_points(alone, data, tips)
    gradient, by_dof = closing_gradient(alone, data, tips)
    closing = -np.einsum("d,dtk->tk", np.sign(gradient), by_dof)
    way = points.mean(axis=0) - data.xpos[1]
    main = np.linalg.svd(closing)[2][0]
    axis = np.cross(main, way)
    if np.linalg.norm(axis) < 1e-6:
        axis = np.cross(main, [0.0, 0.3, 1.0])
    axis /= np.linalg.norm(axis)
    inward = closing.mean(axis=0)
    inward *= np.linalg.norm(way) / max(float(np.linalg.norm(inward)), 1e-9)
    model = place_can(spec, points.mean(axis=0), axis, way, inward)
    start, end = closed_controls(model, gradient)
    shares = np.linspace(0, 1, ROWS)
    return Scene(
        xml=spec.to_xml(),
        model=model,
        times=shares * CLOSING_S,
        controls=start + shares[:, None] * (end - start),
    )
