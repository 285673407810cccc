"""Parameters of single worlds by name, for domain randomisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

from tribo import arrays
from tribo.arrays import ArrayLike, Floats
from tribo.names import Names
from tribo.v1 import common_pb2, simulation_pb2

#: numbers of one element
WIDTHS = {
    "friction": 1,
    "mass": 1,
    "gain": 3,
    "bias": 3,
    "damping": 1,
    "dry_friction": 1,
    "size": 3,
}

#: values by name, or one array of all elements
Values = Union[Mapping[str, ArrayLike], ArrayLike]


@dataclass(frozen=True)
class Parameters:
    """The parameters of a session's worlds.

    friction (worlds, shapes); mass (worlds, bodies) kg; gain and bias (worlds, actuators, 3): the
    force is (gain . (1, length, velocity)) x control + bias . (1, length, velocity); damping and
    dry_friction (worlds, joints) of every dof of a joint; size (worlds, shapes, 3) m.
    """

    friction: Floats
    mass: Floats
    gain: Floats
    bias: Floats
    damping: Floats
    dry_friction: Floats
    size: Floats
    names: Names = field(repr=False)

    @classmethod
    def from_message(cls, m: simulation_pb2.GetParametersResponse, names: Names) -> Parameters:
        """Reads the answer to GetParameters."""
        found = {what: np.asarray(arrays.decode(getattr(m, what))) for what in WIDTHS}
        return cls(**found, names=names)

    def friction_of(self, name: str) -> Floats:
        """mu (worlds, shapes) of a body's shapes, or of one shape."""
        return self.friction[:, self.names.shapes_of(name)]

    def mass_of(self, body: str) -> Floats:
        """Kg (worlds) of a body."""
        return self.mass[:, self.names.body(body)]

    def damping_of(self, joint: str) -> Floats:
        """N s/m or N m s (worlds) of a joint."""
        return self.damping[:, self.names.joint_index(joint)]

    def dry_friction_of(self, joint: str) -> Floats:
        """N or N m (worlds) of a joint."""
        return self.dry_friction[:, self.names.joint_index(joint)]

    def size_of(self, name: str) -> Floats:
        """M (worlds, shapes, 3) of a body's shapes, or of one shape."""
        return self.size[:, self.names.shapes_of(name)]

    def kp_of(self, actuator: str) -> Floats:
        """Stiffness (worlds) of a position servo."""
        return self.gain[:, self.names.actuator(actuator), 0]

    def kv_of(self, actuator: str) -> Floats:
        """Damping (worlds) of a servo."""
        return -self.bias[:, self.names.actuator(actuator), 2]


def _rows(what: str, values: ArrayLike, width: int) -> Floats:
    """(1 or worlds, width) numbers of one named element."""
    numbers = np.asarray(arrays.from_dlpack(values), dtype=np.float64)
    shape = numbers.shape
    if width == 1:
        numbers = numbers[..., np.newaxis]
    if numbers.ndim not in (1, 2) or numbers.shape[-1] != width:
        each = "one number, or one a world" if width == 1 else "3 numbers, or 3 a world"
        raise ValueError(f"{what} has the shape {shape}, expected {each}")
    return numbers.reshape(-1, width)


def by_element(
    what: str, values: Mapping[str, ArrayLike], names: Names
) -> tuple[list[int], Floats]:
    """Indices of the named elements, and their numbers (1 or worlds, elements, width)."""
    width = WIDTHS[what]
    find = {"mass": names.body, "damping": names.joint_index, "dry_friction": names.joint_index}
    elements: list[int] = []
    columns: list[Floats] = []
    for name, given in values.items():
        rows = _rows(f"{what}[{name!r}]", given, width)
        if what in ("friction", "size"):
            found = names.shapes_of(name)
        else:
            found = [find.get(what, names.actuator)(name)]
        elements += found
        columns += [rows] * len(found)
    worlds = max((len(rows) for rows in columns), default=1)
    for name, given in values.items():
        rows = _rows(what, given, width)
        if len(rows) not in (1, worlds):
            raise ValueError(f"{what}[{name!r}] is of {len(rows)} worlds, others of {worlds}")
    table = np.zeros((worlds, len(elements), width))
    for i, rows in enumerate(columns):
        table[:, i] = rows
    return elements, table


def _parameter(what: str, values: Values | None, names: Names) -> simulation_pb2.Parameter | None:
    """A parameter on the wire."""
    if values is None:
        return None
    if not isinstance(values, Mapping):
        return simulation_pb2.Parameter(values=arrays.encode(values))
    elements, table = by_element(what, values, names)
    if not elements:
        return None
    if WIDTHS[what] == 1:
        table = table[:, :, 0]
    return simulation_pb2.Parameter(
        elements=elements, values=arrays.encode(table[0] if len(table) == 1 else table)
    )


def servo_gains(
    present: Parameters,
    kp: Mapping[str, ArrayLike] | None,
    kv: Mapping[str, ArrayLike] | None,
) -> dict[str, Values]:
    """Gains and biases of position servos: those of `present` with this stiffness and damping."""
    gain: dict[str, Any] = {}
    bias: dict[str, Any] = {}
    for name in {**(kp or {}), **(kv or {})}:
        at = present.names.actuator(name)
        gain[name], bias[name] = present.gain[:, at].copy(), present.bias[:, at].copy()
        if kp and name in kp:
            stiffness = _rows(f"kp[{name!r}]", kp[name], 1)[:, 0]
            gain[name][:, 0], bias[name][:, 1] = stiffness, -stiffness
        if kv and name in kv:
            bias[name][:, 2] = -_rows(f"kv[{name!r}]", kv[name], 1)[:, 0]
    return {"gain": gain, "bias": bias}


def set_parameters(
    session_id: str,
    names: Names,
    mask: common_pb2.Array | None,
    from_scene: bool,
    *,
    friction: Values | None = None,
    mass: Values | None = None,
    gain: Values | None = None,
    bias: Values | None = None,
    damping: Values | None = None,
    dry_friction: Values | None = None,
    size: Values | None = None,
) -> simulation_pb2.SetParametersRequest:
    """The request of SetParameters.

    Args:
        friction: {name: mu} of a body's shapes or of one shape, mu a number or one a world; or an
            array (shapes) or (worlds, shapes). The larger of two shapes applies to a contact.
        mass: {body: kg}, or an array (bodies) or (worlds, bodies); inertia scales with it.
        gain: {actuator: 3 numbers}, or an array (actuators, 3) or (worlds, actuators, 3).
        bias: likewise.
        damping: {joint: N s/m or N m s}, or an array (joints) or (worlds, joints).
        dry_friction: {joint: N or N m}, likewise.
        size: {name: 3 numbers} of a body's shapes or of one shape, m, unused numbers 0; or an array
            (shapes, 3) or (worlds, shapes, 3). Mass and inertia stay.
    """
    return simulation_pb2.SetParametersRequest(
        session_id=session_id,
        friction=_parameter("friction", friction, names),
        mass=_parameter("mass", mass, names),
        gain=_parameter("gain", gain, names),
        bias=_parameter("bias", bias, names),
        damping=_parameter("damping", damping, names),
        dry_friction=_parameter("dry_friction", dry_friction, names),
        size=_parameter("size", size, names),
        mask=mask,
        from_scene=from_scene,
    )
