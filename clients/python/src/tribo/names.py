"""Arrays by name: which columns of q and u belong to a joint, which row of bodies to a body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tribo.arrays import Floats
from tribo.v1 import simulation_pb2

#: columns in q and in u of a joint, by its type
WIDTHS = {"free": (7, 6), "ball": (4, 3), "hinge": (1, 1), "slide": (1, 1)}

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class BodyMotion:
    """Pose and velocity of one body in every world.

    position (worlds, 3) m of its origin, orientation (worlds, 4) as (w, x, y, z), linear_velocity
    (worlds, 3) m/s of its origin, angular_velocity (worlds, 3) rad/s; world axes.
    """

    position: Floats
    orientation: Floats
    linear_velocity: Floats
    angular_velocity: Floats

    @classmethod
    def from_rows(cls, rows: Floats) -> BodyMotion:
        """Views of (worlds, 13) numbers."""
        return cls(rows[:, :3], rows[:, 3:7], rows[:, 7:10], rows[:, 10:13])

    def __repr__(self) -> str:
        first = np.array2string(self.position[0], precision=4, suppress_small=True)
        return f"BodyMotion(worlds={len(self.position)}, position[0]={first})"


@dataclass(frozen=True)
class JointMotion:
    """Coordinates q (worlds, n) and velocities u (worlds, m) of one joint; None if not asked."""

    q: Floats | None
    u: Floats | None


class Names:
    """The names of a scene: bodies, shapes, actuators, joints and sensors with their columns."""

    def __init__(
        self,
        bodies: Sequence[str],
        joints: Mapping[str, tuple[slice, slice]],
        actuators: Sequence[str],
        sensors: Mapping[str, slice] | None = None,
        shapes: Sequence[tuple[str, int]] = (),
        joint_order: Sequence[str] = (),
    ) -> None:
        self._bodies = {name: i for i, name in enumerate(bodies) if name}
        self._joints = dict(joints)
        self._joint_indices = {name: i for i, name in enumerate(joint_order) if name}
        self._actuators = {name: i for i, name in enumerate(actuators) if name}
        self._sensors = dict(sensors or {})
        #: names of shapes and their bodies
        self._shapes = list(shapes)

    @classmethod
    def from_message(cls, m: simulation_pb2.GetSceneResponse) -> Names:
        """Reads the answer to GetScene."""
        joints = {}
        for joint in m.joints:
            coordinates, dofs = WIDTHS[joint.type]
            joints[joint.name] = (
                slice(joint.coordinate, joint.coordinate + coordinates),
                slice(joint.dof, joint.dof + dofs),
            )
        sensors = {s.name: slice(s.first, s.first + s.numbers) for s in m.sensors if s.name}
        shapes = [(shape.name, shape.body) for shape in m.shape_infos]
        order = [joint.name for joint in m.joints]
        return cls([b.name for b in m.bodies], joints, list(m.actuators), sensors, shapes, order)

    @property
    def bodies(self) -> list[str]:
        """Bodies that have a name."""
        return list(self._bodies)

    @property
    def joints(self) -> list[str]:
        """Joints that have a name."""
        return list(self._joints)

    @property
    def actuators(self) -> list[str]:
        """Actuators that have a name."""
        return list(self._actuators)

    @property
    def sensors(self) -> list[str]:
        """Sensors that have a name."""
        return list(self._sensors)

    def body(self, name: str) -> int:
        """Index of a body."""
        return _find(self._bodies, name, "body")

    def joint(self, name: str) -> tuple[slice, slice]:
        """Columns of a joint in q and in u."""
        return _find(self._joints, name, "joint")

    def joint_index(self, name: str) -> int:
        """Index of a joint."""
        return _find(self._joint_indices, name, "joint")

    def actuator(self, name: str) -> int:
        """Index of an actuator."""
        return _find(self._actuators, name, "actuator")

    def shapes_of(self, name: str) -> list[int]:
        """Indices of a body's shapes, or of the shape of that name."""
        if name in self._bodies:
            return [i for i, (_, body) in enumerate(self._shapes) if body == self._bodies[name]]
        named = {shape: i for i, (shape, _) in enumerate(self._shapes) if shape}
        return [_find({**self._bodies, **named}, name, "body or shape")]

    def sensor(self, name: str) -> slice:
        """Columns of a sensor among the numbers of all sensors."""
        return _find(self._sensors, name, "sensor")

    def __repr__(self) -> str:
        return f"Names(bodies={self.bodies}, joints={self.joints}, actuators={self.actuators})"


def _find(table: Mapping[str, _Found], name: str, what: str) -> _Found:
    try:
        return table[name]
    except KeyError:
        known = ", ".join(sorted(table)) or "none has a name"
        raise KeyError(f"no {what} is called {name!r}: {known}") from None
