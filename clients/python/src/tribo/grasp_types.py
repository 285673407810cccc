"""Arguments and results of grasp jobs: plain dataclasses around the messages of grasp.proto."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tribo.arrays import AnyArray, Floats, decode
from tribo.names import Names
from tribo.sources import Source
from tribo.types import Certificate, Contacts
from tribo.v1 import common_pb2, grasp_pb2


class Verdict(enum.IntEnum):
    """Outcome of a grasp."""

    UNSPECIFIED = 0
    HELD = 1
    SLIPPED = 2
    DROPPED = 3
    COLLIDED = 4
    DIVERGED = 5
    UNCERTIFIED = 6


class GraspStage(enum.IntEnum):
    """Phase of a grasp's protocol."""

    UNSPECIFIED = 0
    APPROACH = 1
    CLOSING = 2
    LIFT = 3
    SHAKING = 4
    HOLD = 5


class ControlSource(enum.IntEnum):
    """Where the controls of a hand's actuator come from."""

    UNSPECIFIED = 0
    IDLE = 1
    REQUEST = 2
    PROFILE = 3
    KEYFRAME = 4
    MOTION = 5


def pose_message(
    position: Sequence[float] | Floats | None, orientation: Sequence[float] | Floats | None
) -> common_pb2.Pose:
    """A pose on the wire: position (3), m; orientation (w, x, y, z)."""
    return common_pb2.Pose(
        position=np.asarray(position if position is not None else (0, 0, 0), float).tolist(),
        orientation=np.asarray(orientation, float).tolist() if orientation is not None else (),
    )


@dataclass(frozen=True)
class GraspObject:
    """Object to grasp: a mesh or model file (or its bytes, with `name`), and its material.

    mass in kg (0: from density in kg/m^3), friction is mu of every contact (0: as the models say, a
    mesh and the table 0.7, and a mesh resists spin as a soft finger does).
    """

    source: Source
    name: str = ""
    mass: float = 0.0
    density: float = 0.0
    friction: float = 0.0
    convex: bool = False
    position: Sequence[float] = (0.0, 0.0, 0.0)
    orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
    table: bool = True


@dataclass(frozen=True)
class Hand:
    """The hand: MJCF or URDF, and which actuators close it from which to which control.

    `profile` names a known hand (panda, robotiq_2f85, robotiq_3f, shadow, allegro, leap, barrett,
    jaco), which gives the tool frame and the controls; the tool is then in the profile's frame.
    `overlaps` selects the treatment of contacts between links that overlap in the hand's reference
    pose, as in `Client.load`.
    """

    source: Source
    name: str = ""
    closing_actuators: Sequence[str] = ()
    open_controls: Sequence[float] = ()
    close_controls: Sequence[float] = ()
    tool_position: Sequence[float] | None = None
    tool_orientation: Sequence[float] | None = None
    overlaps: Literal["keep", "ignore", "error"] = "keep"
    profile: str = ""


@dataclass(frozen=True)
class GraspPose:
    """Pose of the hand's tool frame in the object's frame; force in N (0: the protocol's)."""

    position: Sequence[float] | Floats
    orientation: Sequence[float] | Floats = (1.0, 0.0, 0.0, 0.0)
    name: str = ""
    force: float = 0.0

    def message(self) -> grasp_pb2.GraspPose:
        """The wire's message."""
        return grasp_pb2.GraspPose(
            name=self.name,
            pose=pose_message(self.position, self.orientation),
            force=self.force,
        )


@dataclass(frozen=True)
class Shake:
    """A sinusoidal motion along (m) and about (rad) a world axis, at `frequency` Hz."""

    axis: Sequence[float]
    amplitude: float = 0.0
    angle: float = 0.0
    frequency: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Protocol:
    """Phases of every grasp: approach, close, lift, shake, hold. Zeros: the defaults."""

    dt: float = 0.0
    approach: Sequence[float] = ()
    approach_distance: float = 0.0
    approach_speed: float = 0.0
    close_seconds: float = 0.0
    force: float = 0.0
    width: float = 0.0
    lift: float = 0.0
    lift_seconds: float = 0.0
    shakes: Sequence[Shake] = ()
    hold_seconds: float = 0.0
    slip_limit: float = 0.0

    def message(self) -> grasp_pb2.GraspProtocol:
        """The wire's message."""
        return grasp_pb2.GraspProtocol(
            dt=self.dt,
            approach=self.approach,
            approach_distance=self.approach_distance,
            approach_speed=self.approach_speed,
            close_seconds=self.close_seconds,
            force=self.force,
            width=self.width,
            lift=self.lift,
            lift_seconds=self.lift_seconds,
            shakes=[
                grasp_pb2.ShakeMotion(
                    axis=s.axis,
                    amplitude=s.amplitude,
                    angle=s.angle,
                    frequency=s.frequency,
                    seconds=s.seconds,
                )
                for s in self.shakes
            ],
            hold_seconds=self.hold_seconds,
            slip_limit=self.slip_limit,
        )


@dataclass(frozen=True)
class Perturbation:
    """Perturbed copies of each grasp: standard deviations in m, rad, and relative."""

    count: int = 0
    seed: int = 0
    position: float = 0.0
    angle: float = 0.0
    friction: float = 0.0
    mass: float = 0.0

    def message(self) -> grasp_pb2.GraspPerturbation:
        """The wire's message."""
        return grasp_pb2.GraspPerturbation(
            count=self.count,
            seed=self.seed,
            position=self.position,
            angle=self.angle,
            friction=self.friction,
            mass=self.mass,
        )


@dataclass(frozen=True)
class KeepTrajectories:
    """The trials of a job whose trajectories are stored with their results.

    Trials of `grasps` (indices of poses) and trials with one of `verdicts`; of each grasp the first
    `copies` (0: 1, the unperturbed one). A frame every `interval` s (0: 0.02). Trajectories beyond
    `maximum_bytes` (0: 64 MiB) are left out and counted.
    """

    grasps: Sequence[int] = ()
    verdicts: Sequence[Verdict] = ()
    copies: int = 0
    interval: float = 0.0
    maximum_bytes: int = 0

    def message(self) -> grasp_pb2.GraspTrajectoryOptions:
        """The wire's message."""
        verdicts: list[Any] = [int(Verdict(v)) for v in self.verdicts]
        return grasp_pb2.GraspTrajectoryOptions(
            grasps=self.grasps,
            verdicts=verdicts,
            copies=self.copies,
            interval=self.interval,
            maximum_bytes=self.maximum_bytes,
        )


@dataclass(frozen=True)
class GraspReason:
    """Why a trial has its verdict: `text` in words, the other fields as numbers.

    `time` (s since the trial began) is of the collision, of the loss of the object, when the slip
    passed the limit, or of the step that missed the tolerance. `hand_body` and `other_body` touch
    at `point` (m, object's frame): `depth` (m) of a collision, `margin` of the contact that gave
    way before it slid at `slide_time`. `position` and `orientation` (w, x, y, z) are the tool
    frame's in the object's frame at `time`. `apparent` is the verdict that the motion of an
    uncertified trial suggests. Of slipped and dropped grasps, when the lift began: `grip` (N, sum
    of the hand's normal forces), `press` (N, on the table beyond the weight), `lean` (rad) of the
    gripped faces: 0 where the normal forces cancel.
    """

    text: str
    stage: GraspStage
    time: float
    hand_body: str
    other_body: str
    depth: float
    point: tuple[float, ...] | None
    margin: float
    slide_time: float | None
    position: tuple[float, ...]
    orientation: tuple[float, ...]
    residual: float
    apparent: Verdict
    grip: float
    press: float
    lean: float

    @classmethod
    def from_message(cls, m: grasp_pb2.GraspReason) -> GraspReason:
        """Reads the wire's message."""
        return cls(
            m.text,
            GraspStage(m.stage),
            m.time,
            m.hand_body,
            m.other_body,
            m.depth,
            tuple(m.point) if m.point else None,
            m.margin,
            m.slide_time if m.slide_time >= 0 else None,
            tuple(m.tool.position),
            tuple(m.tool.orientation),
            m.residual,
            Verdict(m.apparent),
            m.grip,
            m.press,
            m.lean,
        )

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class GraspTrial:
    """One perturbed copy of a grasp."""

    verdict: Verdict
    slip: float
    drop_time: float
    friction: float
    mass: float
    certificate: Certificate
    reason: GraspReason

    @classmethod
    def from_message(cls, m: grasp_pb2.GraspTrial) -> GraspTrial:
        """Reads the wire's message."""
        return cls(
            Verdict(m.verdict),
            m.slip,
            m.drop_time,
            m.friction,
            m.mass,
            Certificate.from_message(m.certificate),
            GraspReason.from_message(m.reason),
        )


@dataclass(frozen=True)
class GraspResult:
    """Result of one grasp. Forces in N, lengths in m, times in s.

    wrenches (n, 6) about the object's centre of mass, world axes; contact_positions and
    contact_normals (n, 3) in the object's frame; contact_frictions (n, 3) under a unit normal
    force: mu, torques (m) about the normal and about a tangent. `position` and `orientation`
    (w, x, y, z) of the tool frame, the way `approach` to it and the centre of mass `object_centre`
    are in the object's frame; `object_radius` divides torques in the wrench space of
    `epsilon_quality`. `success_interval` is Wilson's. `certificate` and
    `reason` are the first copy's; `uncertified` copies have no verdict and do not count in
    `success`.
    """

    index: int
    name: str
    success: float
    success_interval: tuple[float, float]
    verdict: Verdict
    slip: float
    drop_time: float | None
    finger_forces: Mapping[str, float]
    wrenches: Floats
    contact_positions: Floats
    contact_normals: Floats
    epsilon_quality: float
    volume_quality: float
    weakest_margin: float
    certificate: Certificate
    trials: list[GraspTrial]
    reason: GraspReason
    uncertified: int
    position: tuple[float, ...]
    orientation: tuple[float, ...]
    approach: tuple[float, ...]
    contact_frictions: Floats
    object_centre: tuple[float, ...]
    object_radius: float

    @classmethod
    def from_message(cls, m: grasp_pb2.GraspResult) -> GraspResult:
        """Reads the wire's message."""
        return cls(
            m.index,
            m.name,
            m.success,
            (m.success_lower, m.success_upper),
            Verdict(m.verdict),
            m.slip,
            m.drop_time if m.drop_time >= 0 else None,
            dict(zip(m.finger_names, m.finger_forces)),
            decode(m.wrenches),
            decode(m.contact_positions),
            decode(m.contact_normals),
            m.epsilon_quality,
            m.volume_quality,
            m.weakest_margin,
            Certificate.from_message(m.certificate),
            [GraspTrial.from_message(t) for t in m.trials],
            GraspReason.from_message(m.reason),
            m.uncertified,
            tuple(m.pose.position),
            tuple(m.pose.orientation),
            tuple(m.approach),
            decode(m.contact_frictions),
            tuple(m.object_centre),
            m.object_radius,
        )

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        lower, upper = self.success_interval
        chance = f", held {self.success:.0%} [{lower:.0%}, {upper:.0%}] of {len(self.trials)}"
        why = f": {self.reason.text}" if self.reason.text else ""
        return f"GraspResult({name}{self.verdict.name}{chance}{why})"


@dataclass(frozen=True)
class HandControl:
    """Controls of a hand's actuator, open and closed, and where they come from."""

    actuator: str
    open: float
    close: float
    source: ControlSource


@dataclass(frozen=True)
class HandInfo:
    """A hand as grasps use it.

    Tool frame in the base's frame, closing axis in the tool frame (found by its motion), opening
    (m) along it, controls of all actuators. `least_opening` (m) is the free space that the closed
    fingertips leave along the axis: the hand holds nothing thinner.
    """

    profile: str
    base_body: str
    tool_position: tuple[float, ...]
    tool_orientation: tuple[float, ...]
    axis: tuple[float, ...]
    opening: float
    controls: list[HandControl]
    least_opening: float = 0.0

    @classmethod
    def from_message(cls, m: grasp_pb2.HandInfo) -> HandInfo:
        """Reads the wire's message."""
        return cls(
            m.profile,
            m.base_body,
            tuple(m.tool.position),
            tuple(m.tool.orientation),
            tuple(m.axis),
            m.opening,
            [HandControl(c.actuator, c.open, c.close, ControlSource(c.source)) for c in m.controls],
            m.least_opening,
        )

    def __repr__(self) -> str:
        closing = [c.actuator for c in self.controls if c.source != ControlSource.IDLE]
        return (
            f"HandInfo(profile={self.profile!r}, base={self.base_body!r}, "
            f"opening={self.least_opening * 1e3:.1f} to {self.opening * 1e3:.1f} mm, "
            f"closing={closing})"
        )


@dataclass(frozen=True)
class GraspSummary:
    """The end of a grasp job; `run_id` identifies its run on the server."""

    run_id: str
    grasps: int
    trials: int
    world_steps: int
    compute_seconds: float
    certificate: Certificate
    scene_id: str
    warnings: list[str]
    device: str
    hand: HandInfo
    trials_held: int
    trials_uncertified: int

    @classmethod
    def from_message(cls, m: grasp_pb2.GraspSummary) -> GraspSummary:
        """Reads the wire's message."""
        return cls(
            m.run_id,
            m.grasps,
            m.trials,
            m.world_steps,
            m.compute_time_us * 1e-6,
            Certificate.from_message(m.certificate),
            m.object_sha256,
            list(m.warnings),
            m.device,
            HandInfo.from_message(m.hand),
            m.trials_held,
            m.trials_uncertified,
        )


@dataclass(frozen=True)
class GraspTrajectory:
    """A trial of a stored grasp job, played again: the same states, a frame an interval.

    times (frames) s; poses (frames, bodies, 7): position and orientation (w, x, y, z), world axes;
    contacts and certificates of the last step of each frame. `scene_id` draws it.
    """

    scene_id: str
    times: Floats
    poses: AnyArray
    contacts: list[Contacts]
    certificates: list[Certificate]
    #: numbers of the hand's and the object's sensors (frames, numbers): see `sensor`
    sensors: AnyArray
    names: Names = field(repr=False)

    @classmethod
    def from_message(cls, m: grasp_pb2.ReplayGraspResponse, names: Names) -> GraspTrajectory:
        """Reads the answer to ReplayGrasp."""
        return cls(
            m.scene_id,
            np.array([frame.time for frame in m.frames]),
            np.array([decode(frame.state.poses)[0] for frame in m.frames]),
            [Contacts.from_message(frame.contacts) for frame in m.frames],
            [Certificate.from_message(frame.certificate) for frame in m.frames],
            np.array([decode(frame.state.sensors)[0] for frame in m.frames]),
            names,
        )

    def body(self, name: str) -> AnyArray:
        """Poses (frames, 7) of a body."""
        return self.poses[:, self.names.body(name)]

    def sensor(self, name: str) -> AnyArray:
        """Numbers (frames, n) of a sensor: "hand/touch" of the hand's "touch"."""
        return self.sensors[:, self.names.sensor(name)]

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True)
class StoredTrajectory:
    """The stored motion of a trial: its first state, one every interval, and its last.

    times (frames) s; poses (frames, bodies, 7): position and orientation (w, x, y, z), world axes.
    `tribo.replay` shows it, `scene_id` draws it.
    """

    scene_id: str
    grasp: int
    copy: int
    verdict: Verdict
    times: Floats
    poses: AnyArray
    names: Names = field(repr=False)

    @classmethod
    def from_message(
        cls, m: grasp_pb2.GetGraspTrajectoryResponse, names: Names
    ) -> StoredTrajectory:
        """Reads the answer to GetGraspTrajectory."""
        film = m.trajectory
        return cls(
            m.scene_id,
            film.grasp,
            film.copy,
            Verdict(film.verdict),
            decode(film.times),
            decode(film.poses),
            names,
        )

    def body(self, name: str) -> AnyArray:
        """Poses (frames, 7) of a body."""
        return self.poses[:, self.names.body(name)]

    def __len__(self) -> int:
        return len(self.times)
