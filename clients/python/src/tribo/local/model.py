"""A compiled model, and scenes as they are loaded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from tribo.local.library import Library, library
from tribo.names import Names
from tribo.requests import OVERLAPS, chosen
from tribo.sources import Source, write_source


@contextmanager
def import_options(
    lib: Library,
    source: Source,
    name: str,
    default: str,
    *,
    density: float = 0.0,
    fixed_base: bool = True,
    overlaps: str = "keep",
    balance_inertia: bool = False,
) -> Iterator[tuple[bytes, Any]]:
    """Path of a source on disk and the options to load it with."""
    options = lib.ffi.new("tb_import_options *", lib.call.tb_import_defaults())
    options.fixed_base = fixed_base
    options.overlaps = max(chosen("overlaps", overlaps, OVERLAPS) - 1, 0)
    options.balance_inertia = balance_inertia
    if density > 0:
        options.density = density
    with tempfile.TemporaryDirectory(prefix="tribo-") as folder:
        yield str(write_source(source, name, default, Path(folder))).encode(), options


class Model:
    """An immutable compiled model; states and threads may share it.

    Attributes:
        bodies, joints, coordinates, dofs, shapes, actuators, keyframes, sensors: counts; the world
            is a body.
        sensor_numbers: of all sensors together.
        dt: s, the step that the model asks for.
        total_mass: kg.
        sha256: of its canonical bytes, the id of the same scene on a server.
        warnings: elements that were left out or repaired.
    """

    def __init__(
        self,
        source: Source,
        *,
        name: str = "",
        density: float = 0.0,
        floating_base: bool = False,
        overlaps: str = "keep",
        balance_inertia: bool = False,
    ) -> None:
        """Loads and compiles; arguments are those of `Client.load`."""
        lib = self.library = library()
        made, error = lib.ffi.new("tb_model **"), lib.error()
        with import_options(
            lib,
            source,
            name,
            "model.xml",
            density=density,
            fixed_base=not floating_base,
            overlaps=overlaps,
            balance_inertia=balance_inertia,
        ) as (path, options):
            lib.check(lib.call.tb_model_load(path, options, made, error), error)
        self.pointer = lib.ffi.gc(made[0], lib.call.tb_model_destroy)
        counts = lib.call.tb_model_count(self.pointer)
        self.bodies: int = counts.bodies
        self.joints: int = counts.joints
        self.coordinates: int = counts.coordinates
        self.dofs: int = counts.dofs
        self.shapes: int = counts.shapes
        self.actuators: int = counts.actuators
        self.sensors: int = counts.sensors
        self.sensor_numbers: int = counts.sensor_numbers
        self.keyframes: int = counts.keyframes
        self.dt = float(lib.call.tb_model_dt(self.pointer))
        self.total_mass = float(lib.call.tb_model_total_mass(self.pointer))
        self.sha256 = lib.text(lib.call.tb_model_sha256(self.pointer))
        self.warnings = [
            lib.text(lib.call.tb_model_warning(self.pointer, i)) for i in range(counts.warnings)
        ]

    @cached_property
    def names(self) -> Names:
        """Names of bodies, joints, actuators and sensors."""
        lib = self.library

        def names(kind: int, count: int) -> list[str]:
            return [
                lib.text(lib.call.tb_model_thing_name(self.pointer, kind, i)) for i in range(count)
            ]

        info = lib.ffi.new("tb_joint_info *")
        joints = {}
        for i, joint in enumerate(names(lib.call.TB_HANDLE_JOINT, self.joints)):
            lib.check(lib.call.tb_model_joint_info(self.pointer, i, info), lib.error())
            joints[joint] = (
                slice(info.coordinate, info.coordinate + info.coordinates),
                slice(info.dof, info.dof + info.dofs),
            )
        sensors = {}
        sensor = lib.ffi.new("tb_sensor_info *")
        for i, name in enumerate(names(lib.call.TB_HANDLE_SENSOR, self.sensors)):
            lib.check(lib.call.tb_model_sensor_info(self.pointer, i, sensor), lib.error())
            if name:
                sensors[name] = slice(sensor.first, sensor.first + sensor.numbers)
        shapes = []
        shape = lib.ffi.new("tb_shape_info *")
        for i, name in enumerate(names(lib.call.TB_HANDLE_SHAPE, self.shapes)):
            lib.check(lib.call.tb_model_shape_info(self.pointer, i, shape), lib.error())
            shapes.append((name, int(shape.body)))
        return Names(
            names(lib.call.TB_HANDLE_BODY, self.bodies),
            joints,
            names(lib.call.TB_HANDLE_ACTUATOR, self.actuators),
            sensors,
            shapes,
            names(lib.call.TB_HANDLE_JOINT, self.joints),
        )

    def __repr__(self) -> str:
        title = self.library.text(self.library.call.tb_model_name(self.pointer))
        return (
            f"Model({title!r}, bodies={self.bodies}, joints={self.joints}, "
            f"dofs={self.dofs}, shapes={self.shapes}, actuators={self.actuators})"
        )
