"""States and steps in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tribo.arrays import AnyArray, ArrayLike, Floats, from_dlpack
from tribo.local.library import Library, library
from tribo.local.model import Model
from tribo.parameters import WIDTHS, by_element
from tribo.types import Certificate, Contacts, Fault, Outcome, StepAnswer, StepOptions

_SCHEMES = {"": 0, "stewart-trinkle": 0, "moreau": 1, "planar": 2, "volume": 3}
_PRECISIONS = {"": 0, "double": 0, "single": 1}


def _certificate(lib: Library, c: Any) -> Certificate:
    outcomes = {
        lib.call.TB_OK: Outcome.OK,
        lib.call.TB_NOT_CONVERGED: Outcome.NOT_CONVERGED,
        lib.call.TB_DIVERGED: Outcome.DIVERGED,
    }
    f = c.worst_fault
    return Certificate(
        outcomes.get(c.status, Outcome.UNSPECIFIED),
        c.step,
        c.time,
        c.residual,
        c.penetration,
        c.cone_error,
        c.complementarity_error,
        c.closure_error,
        c.energy,
        c.energy_change,
        c.contacts,
        c.rows,
        c.iterations,
        lib.text(c.solver),
        c.known_statuses,
        c.kept_statuses,
        c.linear_solves,
        c.factorizations,
        c.resets,
        c.energy_recovery,
        c.energy_motors,
        c.energy_damping,
        c.energy_friction,
        c.energy_applied,
        c.energy_unexplained,
        c.faults,
        Fault(f.kind, f.a, f.b, f.amount) if c.faults else None,
        c.asleep,
        c.energy_bound,
    )


class State:
    """One world. It belongs to one thread at a time."""

    def __init__(self, model: Model, pointer: Any = None) -> None:
        lib = self.library = model.library
        self.model = model
        if pointer is None:
            made, error = lib.ffi.new("tb_state **"), lib.error()
            lib.check(lib.call.tb_state_create(model.pointer, made, error), error)
            pointer = made[0]
        self.pointer = lib.ffi.gc(pointer, lib.call.tb_state_destroy)

    @property
    def time(self) -> float:
        """s, simulated."""
        return float(self.library.call.tb_state_time(self.pointer))

    @property
    def steps(self) -> int:
        """Steps so far."""
        return int(self.library.call.tb_state_steps(self.pointer))

    def _read(self, function: Any, count: int) -> Floats:
        values = np.empty(count)
        if count:
            self.library.ffi.memmove(
                self.library.ffi.from_buffer(values), function(self.pointer), 8 * count
            )
        return values

    def _write(self, function: Any, values: ArrayLike) -> None:
        lib, error = self.library, self.library.error()
        array = np.ascontiguousarray(from_dlpack(values), float).ravel()
        lib.check(
            function(self.pointer, lib.ffi.from_buffer("double[]", array), len(array), error), error
        )

    @property
    def q(self) -> Floats:
        """Coordinates (coordinates), a copy; assignment sets them."""
        return self._read(self.library.call.tb_state_q, self.model.coordinates)

    @q.setter
    def q(self, values: ArrayLike) -> None:
        self._write(self.library.call.tb_state_set_q, values)

    @property
    def u(self) -> Floats:
        """Velocities (dofs), a copy; assignment sets them."""
        return self._read(self.library.call.tb_state_u, self.model.dofs)

    @u.setter
    def u(self, values: ArrayLike) -> None:
        self._write(self.library.call.tb_state_set_u, values)

    @property
    def controls(self) -> Floats:
        """Controls (actuators), a copy; assignment sets them, until changed."""
        return self._read(self.library.call.tb_state_controls, self.model.actuators)

    @controls.setter
    def controls(self, values: ArrayLike) -> None:
        self._write(self.library.call.tb_state_set_controls, values)

    @property
    def sensors(self) -> Floats:
        """Numbers of all sensors (numbers) after a step of the model's own length."""
        return self.read_sensors(self.model.dt)

    def read_sensors(self, dt: float) -> Floats:
        """The same for a last step of `dt` s: forces are impulses over it."""
        lib, error = self.library, self.library.error()
        values = np.zeros(self.model.sensor_numbers)
        lib.check(
            lib.call.tb_state_sensors(
                self.pointer, dt, lib.ffi.from_buffer("double[]", values), error
            ),
            error,
        )
        return values

    def sensor(self, name: str) -> Floats:
        """Numbers of one sensor (n)."""
        columns: Floats = self.sensors[self.model.names.sensor(name)]
        return columns

    def set_forces(self, values: ArrayLike) -> None:
        """Generalized forces (dofs), N or N m, held until changed."""
        self._write(self.library.call.tb_state_set_applied_force, values)

    def set_body_wrench(self, body: str, wrench: ArrayLike) -> None:
        """Force (N) and torque (N m) on a body at its centre of mass, world axes, held."""
        lib = self.library
        index = self.model.names.body(body)
        values = np.ascontiguousarray(wrench, float)
        if values.shape != (6,):
            raise ValueError(f"wrench has shape {values.shape}, not (6,)")
        error = lib.error()
        numbers = lib.ffi.from_buffer("double[]", values)
        lib.check(lib.call.tb_state_set_body_wrench(self.pointer, index, numbers, error), error)

    def reset(self, keyframe: int | None = None) -> None:
        """Resets everything to the reference pose, or to a keyframe."""
        lib, error = self.library, self.library.error()
        index = -1 if keyframe is None else keyframe
        lib.check(lib.call.tb_state_reset(self.pointer, index, error), error)

    def bodies(self) -> Floats:
        """Poses and velocities of all bodies (bodies, 13), as `StepAnswer.bodies` has them."""
        lib = self.library
        raw = np.empty((self.model.bodies, 16))
        motions = lib.ffi.cast("tb_body_motion *", lib.ffi.from_buffer(raw))
        lib.check(lib.call.tb_state_body_motions(self.pointer, motions), lib.error())
        return np.delete(raw, (7, 8, 9), axis=1)

    def certificate(self) -> Certificate:
        """Of the last step."""
        return _certificate(self.library, self.library.call.tb_state_certificate(self.pointer)[0])

    def contacts(self) -> Contacts:
        """Contacts of the last step."""
        lib = self.library
        n = int(lib.call.tb_state_number_of_contacts(self.pointer))
        raw = lib.ffi.new("tb_contact_info[]", max(n, 1))
        for i in range(n):
            lib.check(lib.call.tb_state_contact(self.pointer, i, raw + i), lib.error())

        def column(name: str, width: int) -> Floats:
            values = np.array([list(getattr(raw[i], name)) for i in range(n)], float)
            return values.reshape(n, width)

        def numbers(name: str, kind: type) -> AnyArray:
            return np.array([getattr(raw[i], name) for i in range(n)], kind)

        tangents = np.stack([column("tangent1", 3), column("tangent2", 3)], axis=1)
        shapes = np.stack([numbers("shape_a", np.int32), numbers("shape_b", np.int32)], axis=1)
        return Contacts(
            shapes,
            numbers("feature", np.uint64).astype(np.int64),
            column("position", 3),
            column("normal", 3),
            tangents.reshape(n, 6),
            numbers("gap", float),
            column("impulse", 6),
            column("velocity", 3),
            numbers("status", np.uint8) + np.uint8(1),
        )

    def _parameter_arrays(self, arrays: dict[str, Floats]) -> Any:
        """A tb_parameters that points at these arrays, which must stay as long."""
        ffi = self.model.library.ffi
        made = ffi.new("tb_parameters *")
        for name, array in arrays.items():
            if array.size:
                setattr(made, name, ffi.cast("double *", ffi.from_buffer(array)))
        return made

    def parameters(self) -> dict[str, Floats]:
        """Arrays of this world: see `tribo.Parameters`, without the axis of worlds."""
        m = self.model
        arrays = {
            "friction": np.zeros(m.shapes),
            "mass": np.zeros(m.bodies),
            "gain": np.zeros((m.actuators, 3)),
            "bias": np.zeros((m.actuators, 3)),
            "damping": np.zeros(m.joints),
            "dry_friction": np.zeros(m.joints),
            "size": np.zeros((m.shapes, 3)),
        }
        m.library.call.tb_state_parameters(self.pointer, self._parameter_arrays(arrays))
        return arrays

    def snapshot(self) -> bytes:
        """Everything that the next step depends on."""
        lib = self.library
        data, size, error = lib.ffi.new("unsigned char **"), lib.ffi.new("size_t *"), lib.error()
        lib.check(lib.call.tb_state_snapshot(self.pointer, data, size, error), error)
        try:
            return bytes(lib.ffi.buffer(data[0], size[0]))
        finally:
            lib.call.tb_bytes_destroy(data[0])

    def restore(self, snapshot: bytes) -> None:
        """Restores a snapshot of the same model; resumes bit-exactly."""
        lib, error = self.library, self.library.error()
        data = lib.ffi.from_buffer("unsigned char[]", snapshot)
        lib.check(lib.call.tb_state_restore(self.pointer, data, len(snapshot), error), error)

    def fork(self) -> State:
        """An independent copy."""
        lib, error = self.library, self.library.error()
        made = lib.ffi.new("tb_state **")
        lib.check(lib.call.tb_state_fork(self.pointer, made, error), error)
        return State(self.model, made[0])

    def __repr__(self) -> str:
        return f"State({self.model!r}, time={self.time:g}, steps={self.steps})"


class Stepper:
    """Options and scratch memory for stepping. It belongs to one thread at a time."""

    def __init__(self, options: StepOptions | None = None, *, threads: int = 0) -> None:
        """`threads`: worlds in parallel; 0: all processors."""
        lib = self.library = library()
        wanted = options or StepOptions()
        o = lib.ffi.new("tb_step_options *", lib.call.tb_step_defaults())
        o.dt = wanted.dt
        o.scheme = _SCHEMES[wanted.scheme]
        o.precision = _PRECISIONS[wanted.precision]
        o.threads = threads
        o.report_energy = wanted.report_energy
        o.contact_merge = wanted.contact_merge
        if wanted.recovery_speed:
            o.recovery_speed = wanted.recovery_speed
        # the library borrows the solver's name
        self._solver = lib.ffi.new("char[]", wanted.solve.solver.encode())
        if wanted.solve.solver:
            o.solve.solver = self._solver
        if wanted.solve.tolerance:
            o.solve.tolerance = wanted.solve.tolerance
        if wanted.solve.maximum_iterations:
            o.solve.maximum_iterations = wanted.solve.maximum_iterations
        if wanted.solve.omega:
            o.solve.omega = wanted.solve.omega
        colourings = {"balanced": "TB_COLOURING_BALANCED", "relaxed": "TB_COLOURING_RELAXED"}
        if wanted.solve.colouring in colourings:
            o.solve.colouring = getattr(lib.call, colourings[wanted.solve.colouring])
        o.solve.colours = wanted.solve.colours
        made, error = lib.ffi.new("tb_stepper **"), lib.error()
        lib.check(lib.call.tb_stepper_create(o, made, error), error)
        self.pointer = lib.ffi.gc(made[0], lib.call.tb_stepper_destroy)

    def step(self, state: State, steps: int = 1) -> Certificate:
        """Steps one world; the certificate merges all steps."""
        lib, error = self.library, self.library.error()
        c = lib.ffi.new("tb_certificate *")
        lib.check(lib.call.tb_step(self.pointer, state.pointer, steps, c, error), error)
        return _certificate(lib, c[0])

    def step_batch(self, states: Sequence[State], steps: int = 1) -> list[Certificate]:
        """Steps many worlds in parallel; results do not depend on the batch."""
        lib = self.library
        pointers = lib.ffi.new("tb_state *[]", [s.pointer for s in states])
        return [_certificate(lib, c) for c in self._batch(pointers, len(states), steps)]

    def _batch(self, pointers: Any, worlds: int, steps: int) -> Any:
        lib, error = self.library, self.library.error()
        c = lib.ffi.new("tb_certificate[]", worlds)
        status = lib.call.tb_step_batch(self.pointer, pointers, worlds, steps, c, error)
        if status != lib.call.TB_DIVERGED:  # the certificate reports it; the others went on
            lib.check(status, error)
        return c


class Worlds:
    """Worlds of one model in this process, with the calls of a session."""

    def __init__(
        self,
        model: Model,
        worlds: int = 1,
        *,
        options: StepOptions | None = None,
        keyframe: int | None = None,
        threads: int = 0,
    ) -> None:
        """`worlds` copies of the model in its reference pose, or in a keyframe's."""
        self.model = model
        self.states = [State(model) for _ in range(worlds)]
        self._stepper = Stepper(options, threads=threads)
        self._pointers = model.library.ffi.new("tb_state *[]", [s.pointer for s in self.states])
        self._certificates = model.library.ffi.new("tb_certificate[]", worlds)
        if keyframe is not None:
            self.reset(keyframe)

    @property
    def names(self) -> Any:
        """Names of bodies, joints and actuators."""
        return self.model.names

    def __len__(self) -> int:
        return len(self.states)

    def step(
        self,
        steps: int = 1,
        *,
        controls: ArrayLike | None = None,
        forces: ArrayLike | None = None,
        state: bool = True,
        contacts: bool = False,
        bodies: bool = False,
        certificates: bool = True,
    ) -> StepAnswer:
        """Steps all worlds; arguments and answer are those of `Session.step`.

        certificates: False leaves them out of the answer, which saves time with many worlds.
        """
        if controls is not None:
            self._set(self.model.library.call.tb_state_set_controls, controls, self.model.actuators)
        if forces is not None:
            self._set(self.model.library.call.tb_state_set_applied_force, forces, self.model.dofs)
        raw = self._certificates = self._stepper._batch(self._pointers, len(self), steps)
        told = [_certificate(self.model.library, c) for c in raw] if certificates else []
        return self._answer(told, state, contacts, bodies)

    def residuals(self) -> tuple[Floats, AnyArray]:
        """Of the last call of `step`: worst residual (worlds), and which worlds diverged."""
        ffi, n = self.model.library.ffi, len(self)
        size = ffi.sizeof("tb_certificate")
        raw = np.frombuffer(ffi.buffer(self._certificates), np.uint8).reshape(n, size)

        def column(name: str, dtype: type, width: int) -> AnyArray:
            at = ffi.offsetof("tb_certificate", name)
            return np.ascontiguousarray(raw[:, at : at + width]).view(dtype)[:, 0]

        diverged = column("status", np.int32, 4) == self.model.library.call.TB_DIVERGED
        return column("residual", np.float64, 8), diverged

    def state(
        self, *, contacts: bool = False, bodies: bool = False, certificates: bool = True
    ) -> StepAnswer:
        """The current state, with the certificates of the last step."""
        told = [s.certificate() for s in self.states] if certificates else []
        return self._answer(told, True, contacts, bodies, controls=True)

    def _answer(
        self,
        certificates: list[Certificate],
        state: bool,
        contacts: bool,
        bodies: bool,
        controls: bool = False,
    ) -> StepAnswer:
        call, model = self.model.library.call, self.model
        return StepAnswer(
            certificates,
            self.states[0].time,
            self.states[0].steps,
            self._get(call.tb_state_q, model.coordinates) if state else None,
            self._get(call.tb_state_u, model.dofs) if state else None,
            self._get(call.tb_state_controls, model.actuators) if controls else None,
            np.stack([s.bodies() for s in self.states]) if bodies else None,
            [s.contacts() for s in self.states] if contacts else [],
            names=lambda: model.names,
        )

    def _get(self, function: Any, width: int) -> Floats:
        ffi = self.model.library.ffi
        values = np.empty((len(self), width))
        if width:
            base = ffi.cast("double *", ffi.from_buffer(values))
            for i, s in enumerate(self.states):
                ffi.memmove(base + i * width, function(s.pointer), 8 * width)
        return values

    def _set(
        self, function: Any, values: ArrayLike, width: int, mask: AnyArray | None = None
    ) -> None:
        lib, error = self.model.library, self.model.library.error()
        given = np.asarray(from_dlpack(values), float)
        array = np.ascontiguousarray(np.broadcast_to(given, (len(self), width)))
        base = lib.ffi.cast("double *", lib.ffi.from_buffer(array))
        for i, s in enumerate(self.states):
            if mask is None or mask[i]:
                lib.check(function(s.pointer, base + i * width, width, error), error)

    def _mask(self, worlds: ArrayLike | None) -> AnyArray | None:
        if worlds is None:
            return None
        mask = np.asarray(from_dlpack(worlds))
        if mask.dtype != np.bool_:
            chosen = np.zeros(len(self), np.bool_)
            chosen[mask] = True
            return chosen
        if mask.shape != (len(self),):
            raise ValueError(f"worlds has shape {mask.shape}, not ({len(self)},)")
        return mask

    def set_state(
        self,
        q: ArrayLike | None = None,
        u: ArrayLike | None = None,
        controls: ArrayLike | None = None,
        *,
        worlds: ArrayLike | None = None,
    ) -> None:
        """Sets coordinates, velocities and controls, of all worlds or of each.

        worlds: indices or a mask (worlds): the others stay as they are; arrays still have a row
        for every world.
        """
        call, model, mask = self.model.library.call, self.model, self._mask(worlds)
        if q is not None:
            self._set(call.tb_state_set_q, q, model.coordinates, mask)
        if u is not None:
            self._set(call.tb_state_set_u, u, model.dofs, mask)
        if controls is not None:
            self._set(call.tb_state_set_controls, controls, model.actuators, mask)

    def reset(self, keyframe: int | None = None, *, worlds: ArrayLike | None = None) -> None:
        """Resets all worlds, or those of a mask or of indices, to the reference or a keyframe."""
        mask = self._mask(worlds)
        for i, s in enumerate(self.states):
            if mask is None or mask[i]:
                s.reset(keyframe)

    def set_parameters(
        self, *, worlds: ArrayLike | None = None, **values: Mapping[str, ArrayLike]
    ) -> None:
        """Gives worlds parameters of their own; they stay over `reset`.

        worlds: indices or a mask; values: {name: ...} as `Session.set_parameters` takes them.
        """
        lib, mask = self.model.library, self._mask(worlds)
        if unknown := set(values) - set(WIDTHS):
            raise TypeError(f"no parameter {', '.join(sorted(unknown))}")
        tables = {what: by_element(what, given, self.names) for what, given in values.items()}
        error = lib.error()
        for i, s in enumerate(self.states):
            if mask is not None and not mask[i]:
                continue
            present = s.parameters()
            for what, (elements, table) in tables.items():
                if len(table) not in (1, len(self)):
                    raise ValueError(f"{what} has {len(table)} worlds, not {len(self)}")
                array = present[what].reshape(-1, WIDTHS[what])
                array[elements] = table[i if len(table) > 1 else 0]
            pointer = s._parameter_arrays(present)
            lib.check(lib.call.tb_state_set_parameters(s.pointer, pointer, error), error)

    def contacts(self) -> list[Contacts]:
        """The contacts of the last step, one entry a world."""
        return [s.contacts() for s in self.states]

    def delete(self) -> None:
        """Frees the worlds."""
        self.states = []

    def __repr__(self) -> str:
        return f"Worlds({self.model!r}, worlds={len(self)})"
