"""Builds the requests of the blocking and the asyncio client."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, TypeVar

import numpy as np

from tribo import arrays
from tribo.grasp_types import (
    GraspObject,
    GraspPose,
    Hand,
    KeepTrajectories,
    Perturbation,
    Protocol,
    pose_message,
)
from tribo.types import SolveOptions, StepOptions
from tribo.v1 import common_pb2, grasp_pb2, simulation_pb2, solve_pb2

if TYPE_CHECKING:
    import grpc
    from typing_extensions import Unpack

    from tribo.arguments import GraspArguments, WantArguments
    from tribo.types import Scene

CHUNK_BYTES = 1 << 18
DEFAULT_MESSAGE_BYTES = 64 << 20

#: Calls that may be sent again without harm: they change nothing, or the same thing twice.
IDEMPOTENT = {
    "tribo.v1.Simulation": [
        "GetServerInfo",
        "CreateAsset",
        "ListAssets",
        "CreateScene",
        "GetScene",
        "ListScenes",
        "ListSessions",
        "Heartbeat",
        "GetState",
        "GetContacts",
        "GetParameters",
        "ExportProblem",
    ],
    "tribo.v1.Solve": ["SolveProblem"],
    "tribo.v1.Function": ["Compile", "List"],
    "tribo.v1.Runs": ["ListRuns", "GetRun", "CompareRuns", "ListBenchmarks"],
}

OVERLAPS = {
    "": simulation_pb2.OVERLAP_POLICY_UNSPECIFIED,
    "keep": simulation_pb2.OVERLAP_POLICY_KEEP,
    "ignore": simulation_pb2.OVERLAP_POLICY_IGNORE,
    "error": simulation_pb2.OVERLAP_POLICY_ERROR,
}
PRIORITIES = {
    "low": simulation_pb2.PRIORITY_LOW,
    "normal": simulation_pb2.PRIORITY_NORMAL,
    "high": simulation_pb2.PRIORITY_HIGH,
}

ON_DISCONNECT = {
    "keep": simulation_pb2.ON_DISCONNECT_KEEP,
    "pause": simulation_pb2.ON_DISCONNECT_PAUSE,
    "delete": simulation_pb2.ON_DISCONNECT_DELETE,
}

_Number = TypeVar("_Number", bound=int)


def chosen(what: str, name: str, choices: Mapping[str, _Number]) -> _Number:
    """Converts a word to its enumeration value."""
    if name not in choices:
        raise ValueError(f"{what} is {name!r}, expected one of {', '.join(choices)}")
    return choices[name]


def stub(make: Callable[..., Any], channel: Any) -> Any:
    """A generated stub, which has no type annotations."""
    return make(channel)


def service_config(attempts: int) -> str:
    """gRPC's retry policy. A call refused by a full queue never began, so it is safe to retry."""
    backoff = {"initialBackoff": "0.05s", "maxBackoff": "2s", "backoffMultiplier": 2}

    def policy(codes: Sequence[str]) -> dict[str, object]:
        return {"maxAttempts": attempts, "retryableStatusCodes": list(codes), **backoff}

    names = [{"service": s, "method": m} for s, methods in IDEMPOTENT.items() for m in methods]
    return json.dumps(
        {
            "methodConfig": [
                {"name": names, "retryPolicy": policy(["UNAVAILABLE", "RESOURCE_EXHAUSTED"])},
                {
                    "name": [
                        {"service": "tribo.v1.Simulation", "method": "Step"},
                        {"service": "tribo.v1.Grasp", "method": "EvaluateGrasps"},
                    ],
                    "retryPolicy": policy(["RESOURCE_EXHAUSTED"]),
                },
            ]
        }
    )


class Connection:
    """Options of a connection, for every channel that a client opens."""

    def __init__(
        self,
        *,
        api_key: str | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        timeout: float | None = None,
        attempts: int = 4,
        message_bytes: int = DEFAULT_MESSAGE_BYTES,
    ) -> None:
        """Keeps the options.

        Args:
            api_key: sent with every call.
            credentials: for TLS; `grpc.ssl_channel_credentials()`, say. None: plain text.
            timeout: s, for every call that does not set its own; None: no limit.
            attempts: how often calls that are safe to repeat are tried; 1 switches retries off.
            message_bytes: largest message.
        """
        self.credentials = credentials
        self.timeout = timeout
        #: metadata of every call
        self.metadata = [("authorization", f"Bearer {api_key}")] if api_key else []
        # a process within a trace has its context in the environment
        # (opentelemetry.io/docs/specs/otel/context/env-carriers)
        for name in ("traceparent", "tracestate"):
            value = os.environ.get(name.upper(), "")
            if value and value.isascii() and value.isprintable():
                self.metadata.append((name, value))
        self.channel_options: list[tuple[str, object]] = [
            ("grpc.max_receive_message_length", message_bytes),
            ("grpc.max_send_message_length", message_bytes),
            ("grpc.keepalive_time_ms", 10_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
        ]
        if attempts > 1:
            # gRPC itself caps the attempts at five
            config = service_config(min(attempts, 5))
            self.channel_options.append(("grpc.service_config", config))
            self.channel_options.append(("grpc.enable_retries", 1))

    def channel(self, address: str, module: Any) -> Any:
        """A channel to a daemon; `module` is grpc or grpc.aio."""
        if self.credentials is None:
            return module.insecure_channel(address, options=self.channel_options)
        return module.secure_channel(address, self.credentials, options=self.channel_options)


def put_chunks(name: str, data: bytes) -> Iterator[simulation_pb2.PutAssetRequest]:
    """The messages of one PutAsset call."""
    digest = hashlib.sha256(data).hexdigest()
    yield simulation_pb2.PutAssetRequest(name=name, sha256=digest, data=data[:CHUNK_BYTES])
    for at in range(CHUNK_BYTES, len(data), CHUNK_BYTES):
        yield simulation_pb2.PutAssetRequest(data=data[at : at + CHUNK_BYTES])


def scene_files(uploaded: Iterable[tuple[str, str]]) -> list[simulation_pb2.SceneFile]:
    """(path, digest) pairs on the wire."""
    return [simulation_pb2.SceneFile(path=path, sha256=digest) for path, digest in uploaded]


def mask(worlds: arrays.ArrayLike | None) -> common_pb2.Array | None:
    """A mask of worlds on the wire; None: all."""
    if worlds is None:
        return None
    chosen_worlds = np.asarray(arrays.from_dlpack(worlds))
    if chosen_worlds.dtype != np.bool_ or chosen_worlds.ndim != 1:
        raise ValueError(
            f"worlds is {chosen_worlds.dtype} of shape {chosen_worlds.shape}, expected a mask: "
            "one boolean a world"
        )
    return common_pb2.Array(
        dtype=common_pb2.DATA_TYPE_UINT8,
        shape=chosen_worlds.shape,
        data=chosen_worlds.astype(np.uint8).tobytes(),
    )


def scene_id(scene: Scene | str) -> str:
    """The id of a scene that a caller names by its id or as an object."""
    return scene if isinstance(scene, str) else scene.id


def create_session(
    scene: Scene | str,
    *,
    worlds: int = 1,
    options: StepOptions | None = None,
    ttl: float = 0.0,
    on_disconnect: str = "keep",
    keyframe: int | None = None,
    label: str = "",
    device: str = "",
) -> simulation_pb2.CreateSessionRequest:
    """The request of CreateSession.

    Args:
        worlds: number of copies, stepped in parallel.
        options: stepping options.
        ttl: s; the lease, renewed by every call. 0: the server's default.
        on_disconnect: "keep", "pause" or "delete" when a stream breaks.
        keyframe: the state to start from; None: the reference pose.
        label: for people.
        device: "" lets the server choose.
    """
    return simulation_pb2.CreateSessionRequest(
        scene_id=scene_id(scene),
        worlds=worlds,
        options=(options or StepOptions()).message(),
        ttl_seconds=ttl,
        on_disconnect=chosen("on_disconnect", on_disconnect, ON_DISCONNECT),
        keyframe=keyframe or 0,
        use_keyframe=keyframe is not None,
        label=label,
        device=device,
    )


def want(
    *,
    state: bool = True,
    contacts: bool = False,
    bodies: bool = False,
    sensors: bool = False,
    surfaces: bool = False,
    single: bool = False,
    certificate_arrays: bool = False,
) -> simulation_pb2.StepReturn:
    """Selects the contents of an answer.

    Args:
        state: return q and u.
        contacts: return the contacts of the last step.
        bodies: return poses and velocities of all bodies.
        sensors: return the numbers of the scene's sensors.
        surfaces: return the surfaces of soft bodies.
        single: return arrays as float32.
        certificate_arrays: certificates as one array each of residuals, outcomes, ... in place of
            an object a world.
    """
    return simulation_pb2.StepReturn(
        state=state,
        contacts=contacts,
        bodies=bodies,
        sensors=sensors,
        surfaces=surfaces,
        certificate_arrays=certificate_arrays,
        dtype=common_pb2.DATA_TYPE_FLOAT32 if single else common_pb2.DATA_TYPE_FLOAT64,
    )


def _array(values: arrays.ArrayLike | None) -> common_pb2.Array | None:
    return None if values is None else arrays.encode(values)


def step(
    session_id: str,
    steps: int,
    wanted: simulation_pb2.StepReturn,
    priority: str = "normal",
    *,
    controls: arrays.ArrayLike | None = None,
    forces: arrays.ArrayLike | None = None,
    wrenches: arrays.ArrayLike | None = None,
    kinematic: arrays.ArrayLike | None = None,
) -> simulation_pb2.StepRequest:
    """The request of Step.

    Args:
        controls: (actuators) or (worlds, actuators), held until changed.
        forces: (dofs) or (worlds, dofs), generalized, N or N m, held until changed.
        wrenches: (bodies, 6) or (worlds, bodies, 6): force (N) and torque (N m) at each centre of
            mass, world axes, held until changed.
        kinematic: (kinematic bodies, 13) or (worlds, kinematic bodies, 13): position,
            orientation, linear and angular velocity, world axes; the velocity is held.
    """
    return simulation_pb2.StepRequest(
        session_id=session_id,
        steps=steps,
        controls=_array(controls),
        forces=_array(forces),
        wrenches=_array(wrenches),
        kinematic=_array(kinematic),
        want=wanted,
        priority=chosen("priority", priority, PRIORITIES),
    )


def step_and_want(
    session_id: str,
    steps: int,
    priority: str,
    *,
    controls: arrays.ArrayLike | None = None,
    forces: arrays.ArrayLike | None = None,
    wrenches: arrays.ArrayLike | None = None,
    kinematic: arrays.ArrayLike | None = None,
    **wanted: Unpack[WantArguments],
) -> simulation_pb2.StepRequest:
    """The request of Step, from all arguments that `step` and `want` document."""
    return step(
        session_id,
        steps,
        want(**wanted),
        priority,
        controls=controls,
        forces=forces,
        wrenches=wrenches,
        kinematic=kinematic,
    )


def set_state(
    session_id: str,
    q: arrays.ArrayLike | None,
    u: arrays.ArrayLike | None,
    controls: arrays.ArrayLike | None,
    worlds: arrays.ArrayLike | None,
) -> simulation_pb2.SetStateRequest:
    """The request of SetState."""
    return simulation_pb2.SetStateRequest(
        session_id=session_id,
        q=_array(q),
        u=_array(u),
        controls=_array(controls),
        mask=mask(worlds),
    )


def reset(
    session_id: str, keyframe: int | None, worlds: arrays.ArrayLike | None
) -> simulation_pb2.ResetRequest:
    """The request of Reset."""
    return simulation_pb2.ResetRequest(
        session_id=session_id,
        keyframe=keyframe or 0,
        use_keyframe=keyframe is not None,
        mask=mask(worlds),
    )


def restore(session_id: str, snapshot: str | Sequence[bytes]) -> simulation_pb2.RestoreRequest:
    """The request of Restore, by a snapshot's id or its bytes."""
    if isinstance(snapshot, str):
        return simulation_pb2.RestoreRequest(session_id=session_id, snapshot_id=snapshot)
    return simulation_pb2.RestoreRequest(session_id=session_id, data=snapshot)


def create_scene(
    *,
    density: float = 0.0,
    floating_base: bool = False,
    overlaps: str = "keep",
    overlap_keyframe: str = "",
    balance_inertia: bool = False,
) -> simulation_pb2.CreateSceneRequest:
    """The request of CreateScene, without its files.

    Args:
        density: kg/m^3 for OBJ and STL.
        floating_base: URDF: the root link is free.
        overlaps: for shapes that overlap in the first pose: "keep" lets them collide, "ignore"
            excludes links of one mechanism and pairs that no joint separates, "error" raises
            `FailedPreconditionError`. `Scene.overlaps` lists the pairs that collide.
        overlap_keyframe: name or number of the first pose; "": the reference pose.
        balance_inertia: repair physically impossible moments of inertia by averaging them.
    """
    return simulation_pb2.CreateSceneRequest(
        density=density,
        floating_base=floating_base,
        overlaps=chosen("overlaps", overlaps, OVERLAPS),
        overlap_keyframe=overlap_keyframe,
        balance_inertia=balance_inertia,
    )


def evaluate_grasps(
    target: GraspObject,
    hand: Hand,
    poses: Iterable[GraspPose],
    priority: str,
    *,
    protocol: Protocol | None = None,
    perturbation: Perturbation | None = None,
    solve: SolveOptions | None = None,
    confidence: float = 0.0,
    label: str = "",
    device: str = "",
) -> grasp_pb2.EvaluateGraspsRequest:
    """The request of EvaluateGrasps, without the files.

    Args:
        protocol: approach, closing, lift, shakes, hold.
        perturbation: copies of every grasp with other poses, friction and mass.
        solve: tolerance and solver of the contact problems.
        confidence: of the interval of the success probability; 0: 0.95.
        label: for people; kept with the run.
        device: "" lets the server choose.
    """
    tool = None
    if hand.tool_position is not None or hand.tool_orientation is not None:
        tool = pose_message(hand.tool_position, hand.tool_orientation)
    return grasp_pb2.EvaluateGraspsRequest(
        object=grasp_pb2.GraspObject(
            mass=target.mass,
            density=target.density,
            friction=target.friction,
            convex=target.convex,
            pose=pose_message(target.position, target.orientation),
            no_table=not target.table,
        ),
        hand=grasp_pb2.GraspHand(
            closing_actuators=hand.closing_actuators,
            open_controls=hand.open_controls,
            close_controls=hand.close_controls,
            tool=tool,
            overlaps=chosen("overlaps", hand.overlaps, OVERLAPS),
            profile=hand.profile,
        ),
        poses=[p.message() for p in poses],
        protocol=(protocol or Protocol()).message(),
        perturbation=(perturbation or Perturbation()).message(),
        solve=(solve or SolveOptions()).message(),
        priority=chosen("priority", priority, PRIORITIES),
        confidence=confidence,
        label=label,
        device=device,
    )


def grasps_of_job(
    target: GraspObject,
    hand: Hand,
    poses: Iterable[GraspPose],
    trajectories: KeepTrajectories | None,
    arguments: GraspArguments,
) -> grasp_pb2.EvaluateGraspsRequest:
    """The grasps that SubmitGrasps leaves to the server, without the files."""
    request = evaluate_grasps(target, hand, poses, "low", **arguments)
    if trajectories is not None:
        request.trajectories.CopyFrom(trajectories.message())
    return request


def solve_problem(
    data: bytes, name: str, options: SolveOptions | None, solution: bool
) -> solve_pb2.SolveProblemRequest:
    """The request of SolveProblem."""
    return solve_pb2.SolveProblemRequest(
        data=data,
        name=name,
        options=(options or SolveOptions()).message(),
        want_solution=solution,
    )
