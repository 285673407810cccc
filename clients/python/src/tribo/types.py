"""Arguments and results of calls: plain dataclasses around the protobuf messages."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Callable, Literal

from tribo.arrays import AnyArray, Floats, decode
from tribo.frames import dataframe
from tribo.names import BodyMotion, JointMotion, Names
from tribo.v1 import common_pb2, simulation_pb2


class Outcome(enum.IntEnum):
    """Outcome of a step."""

    UNSPECIFIED = 0
    OK = 1
    NOT_CONVERGED = 2
    DIVERGED = 3


@dataclass(frozen=True)
class Fault:
    """A gap that a world cannot close: overlapping shapes a and b, or a joint, tendon, equality a.

    kind: 1 overlap, 2 joint limit, 3 tendon limit, 4 equality; indices of the model, b -1 where
    there is none; amount in m or rad.
    """

    kind: int
    a: int
    b: int
    amount: float


@dataclass(frozen=True)
class Certificate:
    """Error measures of an answer; over several steps the worst errors and the sums of iterations.

    Lengths in m, impulses in N s, energies in J, time in s. `residual` is the natural map at
    rho = 1 in De Saxcé form over the norm of c, without unit.
    """

    outcome: Outcome
    step: int
    time: float
    residual: float
    penetration: float
    cone_error: float
    complementarity_error: float
    closure_error: float
    energy: float
    energy_change: float
    contacts: int
    rows: int
    iterations: int
    solver: str
    #: warm start: blocks of rows with a status (open, stick, slip) from the previous step, blocks
    #: that kept theirs, linear solves and factorizations of Newton's system, abandoned starts
    known_statuses: int = 0
    kept_statuses: int = 0
    linear_solves: int = 0
    factorizations: int = 0
    resets: int = 0
    #: J, where energy_change comes from: recovery of positions, actuators, dampers, contacts with
    #: dry friction, limits and loops, applied forces, and the error of the steps themselves
    energy_recovery: float = 0.0
    energy_motors: float = 0.0
    energy_damping: float = 0.0
    energy_friction: float = 0.0
    energy_applied: float = 0.0
    energy_unexplained: float = 0.0
    #: gaps that could not be closed, most in one step, and the one that is off the farthest
    faults: int = 0
    worst_fault: Fault | None = None
    #: trees of bodies that slept at the end of a step, most in one step
    asleep: int = 0
    #: J, energy_unexplained is at most this; 0: of solvers that give none
    energy_bound: float = 0.0

    @classmethod
    def from_message(cls, m: common_pb2.Certificate) -> Certificate:
        """Reads the wire's message."""
        return cls(
            Outcome(m.outcome),
            m.step,
            m.time,
            m.residual,
            m.penetration,
            m.cone_error,
            m.complementarity_error,
            m.closure_error,
            m.energy,
            m.energy_change,
            m.contacts,
            m.rows,
            m.iterations,
            m.solver,
            m.known_statuses,
            m.kept_statuses,
            m.linear_solves,
            m.factorizations,
            m.resets,
            m.energy_recovery,
            m.energy_motors,
            m.energy_damping,
            m.energy_friction,
            m.energy_applied,
            m.energy_unexplained,
            m.faults,
            Fault(int(m.fault_kind), m.fault_a, m.fault_b, m.fault_amount) if m.faults else None,
            m.asleep,
            m.energy_bound,
        )


@dataclass(frozen=True)
class Contacts:
    """Contacts of one world in the last step; n of them, world axes.

    shapes (n, 2) model indices; positions (n, 3) m; normals (n, 3) from A to B; gaps (n) m;
    impulses (n, 6) N s and N m s on B: normal, two tangents, spin, rolling; velocities (n, 3) m/s
    of B relative to A; statuses (n): 1 open, 2 stick, 3 slip.
    """

    shapes: AnyArray
    features: AnyArray
    positions: Floats
    normals: Floats
    tangents: Floats
    gaps: Floats
    impulses: Floats
    velocities: Floats
    statuses: AnyArray

    def __len__(self) -> int:
        return len(self.gaps)

    def __repr__(self) -> str:
        least = f", smallest gap {self.gaps.min():.2e} m" if len(self) else ""
        return f"Contacts({len(self)}{least})"

    @classmethod
    def from_message(cls, m: common_pb2.Contacts) -> Contacts:
        """Reads the wire's message without copying its arrays."""
        return cls(
            decode(m.shapes),
            decode(m.features),
            decode(m.positions),
            decode(m.normals),
            decode(m.tangents),
            decode(m.gaps),
            decode(m.impulses),
            decode(m.velocities),
            decode(m.statuses),
        )


@dataclass(frozen=True)
class Surface:
    """The surface of a soft body, a closed mesh.

    vertices (n, 3) m, world axes; triangles (m, 3) indices, counter-clockwise seen from outside;
    pressures (m) of contact, Pa.
    """

    body: str
    vertices: Floats
    triangles: AnyArray
    pressures: Floats

    def __repr__(self) -> str:
        return f"Surface({self.body!r}, {len(self.triangles)} triangles)"

    @classmethod
    def from_message(cls, m: simulation_pb2.Surface) -> Surface:
        """Reads the wire's message without copying its arrays."""
        return cls(m.body, decode(m.vertices), decode(m.triangles), decode(m.pressures))


@dataclass(frozen=True)
class SoftCertificate:
    """The exactness of the last step of a world with soft bodies.

    Energies in J, momenta in kg m/s and kg m^2/s, lengths in m; see the wire's SoftCertificate.
    """

    substeps: int
    courant: float
    wave: float
    smallest_volume: float
    kinetic: float
    elastic: float
    potential: float
    damped: float
    contact_work: float
    momentum: tuple[float, ...]
    angular_momentum: tuple[float, ...]
    momentum_error: float
    contacts: int
    projections: int
    normal_residual: float
    friction_residual: float
    cone_error: float
    penetration: float
    prediction_error: float
    fallbacks: int

    @classmethod
    def from_message(cls, m: simulation_pb2.SoftCertificate) -> SoftCertificate:
        """Reads the wire's message."""
        values = {f.name: getattr(m, f.name) for f in fields(cls)}
        for name in ("momentum", "angular_momentum"):
            values[name] = tuple(values[name])
        return cls(**values)


@dataclass(frozen=True)
class StepAnswer:
    """The answer to a step: certificates of every world, and the requested state.

    q (worlds, coordinates), u (worlds, dofs), controls (worlds, actuators), bodies
    (worlds, bodies, 13): position, orientation, linear and angular velocity in world axes. Arrays
    are read-only views; None if not requested.
    """

    certificates: list[Certificate]
    time: float
    steps: int
    q: Floats | None
    u: Floats | None
    controls: Floats | None
    bodies: Floats | None
    contacts: list[Contacts]
    queue_seconds: float = 0.0
    compute_seconds: float = 0.0
    tag: int = 0
    #: numbers of all sensors (worlds, numbers): see `sensor`
    sensors: Floats | None = None
    #: columns of the certificates (worlds) by name, "residuals", "outcomes", ... if they were asked
    #: for in place of `certificates`
    certificate_arrays: Mapping[str, AnyArray] = field(default_factory=dict)
    #: surfaces of soft bodies, those of the first world first; needs a step with `surfaces=True`
    surfaces: list[Surface] = field(default_factory=list)
    #: of the last step of each world, if the scene has soft bodies
    soft_certificates: list[SoftCertificate] = field(default_factory=list)
    #: gives the scene's names when they are asked for; None: the answer came without a scene
    names: Callable[[], Names] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_parts(
        cls,
        state: simulation_pb2.State,
        certificates: Sequence[common_pb2.Certificate],
        contacts: Sequence[common_pb2.Contacts],
        names: Callable[[], Names] | None = None,
        columns: common_pb2.CertificateArrays | None = None,
    ) -> StepAnswer:
        """Reads the common parts of the answers to Step, GetState and Watch."""

        def array(name: str) -> Floats | None:
            return decode(getattr(state, name)) if state.HasField(name) else None

        return cls(
            [Certificate.from_message(c) for c in certificates],
            state.time,
            state.steps,
            array("q"),
            array("u"),
            array("controls"),
            array("bodies"),
            [Contacts.from_message(c) for c in contacts],
            sensors=array("sensors"),
            certificate_arrays={c.name: decode(a) for c, a in columns.ListFields()}
            if columns
            else {},
            surfaces=[Surface.from_message(s) for s in state.surfaces],
            soft_certificates=[SoftCertificate.from_message(c) for c in state.soft_certificates],
            names=names,
        )

    @classmethod
    def from_message(
        cls,
        m: simulation_pb2.StepResponse,
        tag: int = 0,
        names: Callable[[], Names] | None = None,
    ) -> StepAnswer:
        """Reads the answer to Step."""
        return replace(
            cls.from_parts(m.state, m.certificates, m.contacts, names, m.certificate_arrays),
            queue_seconds=m.queue_time_us * 1e-6,
            compute_seconds=m.compute_time_us * 1e-6,
            tag=tag,
        )

    def _names(self) -> Names:
        if self.names is None:
            raise ValueError("the answer came without its scene: see Client.describe for names")
        return self.names()

    def body(self, name: str) -> BodyMotion:
        """Pose and velocity of a body in every world; needs a step with `bodies=True`."""
        if self.bodies is None:
            raise ValueError("the answer has no bodies: ask for them by bodies=True")
        return BodyMotion.from_rows(self.bodies[:, self._names().body(name)])

    def joint(self, name: str) -> JointMotion:
        """Coordinates and velocities of a joint in every world."""
        in_q, in_u = self._names().joint(name)
        return JointMotion(
            self.q[:, in_q] if self.q is not None else None,
            self.u[:, in_u] if self.u is not None else None,
        )

    def control(self, name: str) -> Floats:
        """Control of an actuator (worlds)."""
        if self.controls is None:
            raise ValueError("the answer has no controls: Session.state() has them")
        column: Floats = self.controls[:, self._names().actuator(name)]
        return column

    def sensor(self, name: str) -> Floats:
        """Numbers of a sensor (worlds, n); needs a step with `sensors=True`."""
        if self.sensors is None:
            raise ValueError("the answer has no sensors: ask for them by sensors=True")
        columns: Floats = self.sensors[:, self._names().sensor(name)]
        return columns

    def to_dataframe(self) -> Any:
        """A row a world: its certificate and, where there are names, q and u by joint (pandas)."""
        table: dict[str, Any] = {
            f.name: [getattr(c, f.name) for c in self.certificates]
            for f in fields(Certificate)
            if f.name != "worst_fault"
        }
        if "outcome" in table:
            table["outcome"] = [outcome.name for outcome in table["outcome"]]
        if self.names is not None and self.q is not None and self.u is not None:
            names = self._names()
            for joint in names.joints:
                motion = self.joint(joint)
                for kind, columns in (("q", motion.q), ("u", motion.u)):
                    assert columns is not None
                    n = columns.shape[1]
                    for i in range(n):
                        label = f"{kind}.{joint}" if n == 1 else f"{kind}.{joint}.{i}"
                        table[label] = columns[:, i]
        if not self.certificates:
            for f in fields(Certificate):
                table.pop(f.name, None)
        return dataframe(table)

    def __repr__(self) -> str:
        parts = [f"time={self.time:g}", f"steps={self.steps}"]
        for name in ("q", "u", "controls", "bodies", "sensors"):
            array = getattr(self, name)
            if array is not None:
                parts.append(f"{name}={array.shape}")
        if self.contacts:
            parts.append(f"contacts={[len(c) for c in self.contacts[:4]]}")
        if self.certificates:
            worst = max(c.residual for c in self.certificates)
            parts.append(f"worlds={len(self.certificates)}, worst residual={worst:.1e}")
            bad = sum(c.outcome != Outcome.OK for c in self.certificates)
            if bad:
                parts.append(f"not OK={bad}")
        return f"StepAnswer({', '.join(parts)})"


@dataclass(frozen=True)
class Overlap:
    """Two shapes that may collide and overlap in a scene's first pose.

    `shapes` are names ("" where there is none), `indices` and `bodies` belong to them. `depth` is
    in m; `joints` counts the bodies with joints between the two (1: neighbours across a joint);
    `linked` says that both belong to one mechanism. `least_depth` (m) is the smallest over 64
    sampled poses of the joints, and `persists` says that none of these separates the two.
    """

    shapes: tuple[str, str]
    indices: tuple[int, int]
    bodies: tuple[str, str]
    depth: float
    joints: int
    linked: bool
    least_depth: float
    persists: bool

    @classmethod
    def from_message(cls, m: simulation_pb2.Overlap) -> Overlap:
        """Reads one pair of the answer to CreateScene."""
        return cls(
            (m.shape_a, m.shape_b),
            (m.shape_a_index, m.shape_b_index),
            (m.body_a, m.body_b),
            m.depth,
            m.joints,
            m.linked,
            m.least_depth,
            m.persists,
        )


@dataclass(frozen=True)
class Scene:
    """A compiled scene on the server. `id` is the SHA-256 of its canonical bytes.

    `overlaps` lists the shapes that collide and overlap in the first pose, the deepest first.
    """

    id: str
    bodies: int
    joints: int
    coordinates: int
    dofs: int
    shapes: int
    actuators: int
    keyframes: int
    total_mass: float
    dt: float
    warnings: list[str]
    overlaps: list[Overlap] = field(default_factory=list)

    @classmethod
    def from_message(cls, m: simulation_pb2.CreateSceneResponse) -> Scene:
        """Reads the answer to CreateScene."""
        c = m.counts
        return cls(
            m.scene_id,
            c.bodies,
            c.joints,
            c.coordinates,
            c.dofs,
            c.shapes,
            c.actuators,
            c.keyframes,
            m.total_mass,
            m.dt,
            list(m.warnings),
            [Overlap.from_message(o) for o in m.overlaps],
        )


@dataclass(frozen=True)
class SolveOptions:
    """Options of the contact solver; zeros take the server's defaults."""

    solver: str = ""
    tolerance: float = 0.0
    maximum_iterations: int = 0
    omega: float = 0.0
    colouring: Literal["", "rigid", "balanced", "relaxed"] = ""
    colours: int = 0

    def message(self) -> common_pb2.SolveOptions:
        """The wire's message."""
        colourings = {
            "": common_pb2.COLOURING_UNSPECIFIED,
            "rigid": common_pb2.COLOURING_RIGID,
            "balanced": common_pb2.COLOURING_BALANCED,
            "relaxed": common_pb2.COLOURING_RELAXED,
        }
        return common_pb2.SolveOptions(
            solver=self.solver,
            tolerance=self.tolerance,
            maximum_iterations=self.maximum_iterations,
            omega=self.omega,
            colouring=colourings[self.colouring],
            colours=self.colours,
        )


@dataclass(frozen=True)
class StepOptions:
    """Options of stepping; dt in s, 0 for the scene's own; recovery_speed in m/s.

    contact_merge joins contact points of the same two bodies that are nearer to each other than
    this share of the smaller body's radius of gyration, 0 to 0.1; 0: all stay.
    """

    dt: float = 0.0
    scheme: Literal["", "stewart-trinkle", "moreau", "planar", "volume"] = ""
    precision: Literal["", "double", "single"] = ""
    solve: SolveOptions = field(default_factory=SolveOptions)
    recovery_speed: float = 0.0
    report_energy: bool = False
    contact_merge: float = 0.0

    def message(self) -> common_pb2.StepOptions:
        """The wire's message."""
        schemes = {
            "": common_pb2.SCHEME_UNSPECIFIED,
            "stewart-trinkle": common_pb2.SCHEME_STEWART_TRINKLE,
            "moreau": common_pb2.SCHEME_MOREAU,
            "planar": common_pb2.SCHEME_PLANAR,
            "volume": common_pb2.SCHEME_VOLUME,
        }
        precisions = {
            "": common_pb2.PRECISION_UNSPECIFIED,
            "double": common_pb2.PRECISION_DOUBLE,
            "single": common_pb2.PRECISION_SINGLE,
        }
        return common_pb2.StepOptions(
            dt=self.dt,
            scheme=schemes[self.scheme],
            precision=precisions[self.precision],
            solve=self.solve.message(),
            recovery_speed=self.recovery_speed,
            report_energy=self.report_energy,
            contact_merge=self.contact_merge,
        )
