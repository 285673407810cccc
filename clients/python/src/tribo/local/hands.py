"""Hands and antipodal samples in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tribo.arrays import Floats
from tribo.grasp_types import (
    ControlSource,
    GraspObject,
    GraspPose,
    Hand,
    HandControl,
    HandInfo,
)
from tribo.local.library import library
from tribo.local.model import import_options
from tribo.meshes.convex import ConvexParts
from tribo.requests import OVERLAPS, chosen
from tribo.sources import Source

#: friction and spin resistance of a mesh that comes without a surface, as the server takes them
MESH_FRICTION, MESH_SPIN_M = 0.7, 0.005
#: candidates drawn for each sample of a known hand; some of them collide
# candidates for each pose, at first and at most; of all poses
CANDIDATES, CANDIDATES_FOR_ONE, MOST_CANDIDATES = 4, 256, 1_000_000
#: m: a fingertip is the end of a finger of this length
FINGERTIP_M = 0.03
_SLICE_NS = 200_000_000


class _Scene:
    """A tb_scene, and whether it came from a bare mesh."""

    def __init__(self, source: Source, name: str, default: str, **options: Any) -> None:
        lib = self.library = library()
        made, error = lib.ffi.new("tb_scene **"), lib.error()
        with import_options(lib, source, name, default, **options) as (path, filled):
            lib.check(lib.call.tb_scene_load(path, filled, made, error), error)
            self.mesh = path.lower().endswith((b".obj", b".stl"))
        self.pointer = lib.ffi.gc(made[0], lib.call.tb_scene_destroy)


class HandModel:
    """A hand without an object: its tool frame, closing axis, opening and controls.

    Attributes:
        info: a `tribo.HandInfo`.
        warnings: oddities of the hand: a one-sided opening, an actuator without effect.
    """

    def __init__(self, hand: Hand) -> None:
        lib = self.library = library()
        self._scene = _Scene(hand.source, hand.name, "hand.xml", fixed_base=True)
        raw = self.raw = lib.ffi.new("tb_grasp_hand *")
        raw.scene = self._scene.pointer
        names = [lib.ffi.new("char[]", n.encode()) for n in hand.closing_actuators]
        # the library borrows these
        self._kept = [
            lib.ffi.new("char *[]", names) if names else lib.ffi.NULL,
            names,
            lib.ffi.new("double[]", list(hand.open_controls)),
            lib.ffi.new("double[]", list(hand.close_controls)),
            lib.ffi.new("char[]", hand.profile.encode()),
        ]
        raw.closing, raw.number_of_closing = self._kept[0], len(names)
        for field, numbers in (
            ("open_controls", hand.open_controls),
            ("close_controls", hand.close_controls),
        ):
            if len(numbers) not in (0, len(names)):
                raise ValueError(f"{field}: {len(numbers)} numbers for {len(names)} actuators")
        if hand.open_controls:
            raw.open_controls = self._kept[2]
        if hand.close_controls:
            raw.close_controls = self._kept[3]
        raw.profile = self._kept[4]
        raw.tool_position = list(hand.tool_position or (0, 0, 0))
        raw.tool_orientation = list(hand.tool_orientation or (1, 0, 0, 0))
        raw.overlaps = max(chosen("overlaps", hand.overlaps, OVERLAPS) - 1, 0)
        made, error = lib.ffi.new("tb_hand **"), lib.error()
        lib.check(lib.call.tb_hand_create(raw, made, error), error)
        self.pointer = lib.ffi.gc(made[0], lib.call.tb_hand_destroy)
        self.info = self._describe()
        self.warnings = [
            lib.text(lib.call.tb_hand_warning(self.pointer, i))
            for i in range(lib.call.tb_hand_number_of_warnings(self.pointer))
        ]

    def _describe(self) -> HandInfo:
        lib = self.library
        info = lib.call.tb_hand_describe(self.pointer)
        controls = [info.controls[i] for i in range(info.number_of_controls)]
        return HandInfo(
            lib.text(info.profile),
            lib.text(info.base),
            tuple(info.tool_position),
            tuple(info.tool_orientation),
            tuple(info.axis),
            info.opening,
            [
                HandControl(lib.text(c.actuator), c.open, c.close, ControlSource(c.source + 1))
                for c in controls
            ],
            info.least_opening,
        )

    def found_tool(self) -> tuple[Floats, Floats]:
        """A tool frame for a hand without a profile: position (m) and orientation in the base.

        y is the closing axis, z leads from the base to the fingertips. The origin is amid the faces
        that meet, between open and closed, as deep as the middle of a finger's last `FINGERTIP_M`.
        """
        lib = self.library
        info = lib.call.tb_hand_describe(self.pointer)
        if info.number_of_tips < 2 or not any(info.axis):
            raise ValueError("the hand moves no two fingertips towards each other")
        every = [info.tips[i] for i in range(info.number_of_tips)]
        places = {lib.text(t.body): np.stack([list(t.open), list(t.close)]) for t in every}
        moved = {n: p for n, p in places.items() if np.linalg.norm(p[1] - p[0]) > 1e-3}
        moved = moved if len(moved) > 1 else places
        middle = np.mean([p.mean(axis=0) for p in moved.values()], axis=0)
        y = np.array(list(info.axis))
        y /= np.linalg.norm(y)
        z = middle - y * (y @ middle)
        if np.linalg.norm(z) < 1e-6:
            raise ValueError("the fingertips lie at the base: give the tool frame")
        z /= np.linalg.norm(z)
        x = np.cross(y, z)

        centre = np.mean([p[0] @ y for p in moved.values()])
        sides: list[list[str]] = [[], []]
        for name, place in moved.items():
            sides[int(place[0] @ y > centre)].append(name)
        depths, across = [], []
        for name, place in moved.items():
            reach = self._support(name, z)
            depths.append(reach - min(FINGERTIP_M, reach + self._support(name, -z)) / 2)
            across.append(place.mean(axis=0) @ x)
        lower = max(self._support(n, y) for n in sides[0])
        upper = -max(self._support(n, -y) for n in sides[1])
        origin = np.mean(across) * x + (lower + upper) / 2 * y + np.mean(depths) * z
        local = np.stack([x, y, z], axis=1)
        base = _matrix(self.info.tool_orientation)
        position = np.array(self.info.tool_position) + base @ origin
        return position, _quaternion(base @ local)

    def _support(self, body: str, direction: Floats) -> float:
        """How far (m) a body's shapes reach along a direction, tool frame, open and closed."""
        lib = self.library
        n = lib.ffi.new("double[3]", direction.tolist())
        shapes = [
            i
            for i in range(lib.call.tb_hand_number_of_shapes(self.pointer))
            if lib.text(lib.call.tb_hand_shape_body(self.pointer, i)) == body
        ]
        far = [
            max(lib.call.tb_hand_support(self.pointer, i, closed, n) for i in shapes)
            for closed in (False, True)
        ]
        return float(np.mean(far))

    def __repr__(self) -> str:
        return f"HandModel({self.info!r})"


def with_found_tool(hand: Hand) -> Hand:
    """The hand with the tool frame that its fingertips give (`HandModel.found_tool`)."""
    position, orientation = HandModel(hand).found_tool()
    return replace(
        hand, tool_position=tuple(position.tolist()), tool_orientation=tuple(orientation.tolist())
    )


def _matrix(q: Sequence[float]) -> Floats:
    """Rotation of a unit quaternion (w, x, y, z)."""
    w, v = q[0], np.array(q[1:])
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    rotation: Floats = (w * w - v @ v) * np.eye(3) + 2 * np.outer(v, v) + 2 * w * cross
    return rotation


def _quaternion(r: Floats) -> Floats:
    """Unit quaternion (w, x, y, z) of a rotation: the largest column of Shepperd's four."""
    k = np.array(
        [
            [
                1 + r[0, 0] + r[1, 1] + r[2, 2],
                r[2, 1] - r[1, 2],
                r[0, 2] - r[2, 0],
                r[1, 0] - r[0, 1],
            ],
            [0, 1 + r[0, 0] - r[1, 1] - r[2, 2], r[1, 0] + r[0, 1], r[0, 2] + r[2, 0]],
            [0, 0, 1 - r[0, 0] + r[1, 1] - r[2, 2], r[2, 1] + r[1, 2]],
            [0, 0, 0, 1 - r[0, 0] - r[1, 1] + r[2, 2]],
        ]
    )
    k = k + np.triu(k, 1).T
    row: Floats = k[int(np.argmax(np.diag(k)))]
    return row / np.linalg.norm(row)


def _request(target: GraspObject, scene: _Scene, model: HandModel) -> Any:
    lib = model.library
    request = lib.ffi.new("tb_grasp_request *", lib.call.tb_grasp_defaults())
    thing = request.object
    thing.scene, thing.mass, thing.friction = scene.pointer, target.mass, target.friction
    if target.friction == 0 and scene.mesh:
        thing.own_friction, thing.own_spin = MESH_FRICTION, MESH_SPIN_M
    thing.convex, thing.no_table = target.convex, not target.table
    thing.position, thing.orientation = list(target.position), list(target.orientation)
    request.hand = model.raw[0]
    return request


def _free(request: Any, poses: Any, found: int, count: int) -> list[int]:
    """The first `count` poses in which the open hand touches neither object nor table.

    The trials end when the fingers begin to close.
    """
    lib = library()
    request.poses, request.number_of_poses = poses, found
    request.perturbation.count = 1
    protocol = request.protocol
    protocol.close_seconds = 1e-9
    protocol.lift = protocol.lift_seconds = protocol.hold_seconds = 0
    made, error = lib.ffi.new("tb_grasp_job **"), lib.error()
    lib.check(lib.call.tb_grasp_job_create(request, made, error), error)
    job = lib.ffi.gc(made[0], lib.call.tb_grasp_job_destroy)
    finished = lib.ffi.new("bool *")
    kept: list[int] = []
    while not finished[0] and len(kept) < count:
        lib.check(lib.call.tb_grasp_job_advance(job, _SLICE_NS, finished, error), error)
        while len(kept) < count:
            result = lib.call.tb_grasp_job_next(job)
            if result == lib.ffi.NULL:
                break
            if result.trials[0].verdict != lib.call.TB_GRASP_COLLIDED:
                kept.append(result.index)
    return kept


def sample_poses(
    target: GraspObject,
    hand: Hand,
    count: int,
    *,
    seed: int = 0,
    opening: float = 0.0,
    axis: Sequence[float] = (),
    approach: Sequence[float] = (0.0, 0.0, 1.0),
    from_above: Sequence[float] = (0.0, 0.0, -1.0),
    spread: float = 1.2,
    free: bool = True,
    force: float = 0.0,
) -> list[GraspPose]:
    """Antipodal grasps: pairs of surface points that lie in each other's friction cones.

    Pairs with parallel faces come first: flat pads turn an object whose faces lean to them.

    The points of `tribo.meshes.ConvexParts` are those of the mesh that was cut: its parts may be
    thicker than its walls.

    Args:
        target: the object; its friction is the cones'.
        hand: its opening, open and closed, limits the pairs where it is known.
        count: poses; fewer come where the object has no more such pairs.
        seed: of the random numbers.
        opening: m, widest pair; 0: the profile's hand's, else 0.08.
        axis: closing direction in the tool frame; (): y with a profile, else as the hand moves.
        approach: direction in which the hand comes, tool frame.
        from_above: preferred approach in the object's frame.
        spread: rad, from it.
        free: leave out poses in which the open hand touches the object or the table.
        force: N, of every pose.
    """
    model = HandModel(hand)
    lib = model.library
    scene = _Scene(
        target.source, target.name, "object.obj", density=target.density, fixed_base=False
    )
    request = _request(target, scene, model)
    cut = target.source.mesh if isinstance(target.source, ConvexParts) else None
    surface = _Scene(cut, "", "object.obj", fixed_base=False) if cut is not None else scene
    sampling = lib.ffi.new("tb_grasp_sampling *", lib.call.tb_grasp_sampling_defaults())
    sampling.count = min(count * CANDIDATES, MOST_CANDIDATES) if free else count
    sampling.seed = seed
    sampling.spread = spread
    sampling.approach, sampling.from_above = list(approach), list(from_above)
    sampling.axis = list(axis or ((0, 1, 0) if hand.profile or not any(model.info.axis)
                                  else model.info.axis))  # fmt: skip
    sampling.opening = opening or model.info.opening or sampling.opening
    least = model.info.least_opening
    sampling.least_opening = least if least < sampling.opening else 0
    mu = request.object.friction or request.object.own_friction
    if mu:
        sampling.friction = mu
    if free and target.table:
        sampling.hand = model.pointer
    found, error = lib.ffi.new("int32_t *"), lib.error()
    # the first candidates stay the same when there are more
    most = min(count * CANDIDATES_FOR_ONE, MOST_CANDIDATES)
    while True:
        poses = lib.ffi.new("tb_grasp_pose[]", sampling.count)
        lib.check(lib.call.tb_grasp_sample(surface.pointer, sampling, poses, found, error), error)
        kept = list(range(found[0]))
        if free and found[0]:
            kept = _free(request, poses, found[0], count)
        if not free or len(kept) >= count or sampling.count >= most:
            break
        sampling.count = min(4 * sampling.count, most)
    return [
        GraspPose(tuple(poses[i].position), tuple(poses[i].orientation), name=f"s{n}", force=force)
        for n, i in enumerate(kept[:count])
    ]
