"""Builds the requests of the blocking and the asyncio client."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Callable, TypeVar

import numpy as np

from tribo import arrays
from tribo.grasp_types import GraspObject, GraspPose, Hand, Perturbation, Protocol, pose_message
from tribo.types import SolveOptions, StepOptions
from tribo.v1 import common_pb2, grasp_pb2, simulation_pb2

CHUNK_BYTES = 1 << 18

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


def channel_options(message_bytes: int, attempts: int) -> list[tuple[str, object]]:
    """Options of a channel to a daemon."""
    options: list[tuple[str, object]] = [
        ("grpc.max_receive_message_length", message_bytes),
        ("grpc.max_send_message_length", message_bytes),
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    if attempts > 1:
        # gRPC itself caps the attempts at five
        options.append(("grpc.service_config", service_config(min(attempts, 5))))
        options.append(("grpc.enable_retries", 1))
    return options


def metadata(api_key: str | None) -> list[tuple[str, str]] | None:
    """Metadata of every call."""
    return [("authorization", f"Bearer {api_key}")] if api_key else None


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


def create_session(
    scene_id: str,
    worlds: int,
    options: StepOptions | None,
    ttl: float,
    on_disconnect: str,
    keyframe: int | None,
    label: str,
    device: str,
) -> simulation_pb2.CreateSessionRequest:
    """The request of CreateSession."""
    return simulation_pb2.CreateSessionRequest(
        scene_id=scene_id,
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
    state: bool, contacts: bool, bodies: bool, single: bool, sensors: bool = False
) -> simulation_pb2.StepReturn:
    """Selects the contents of an answer."""
    return simulation_pb2.StepReturn(
        state=state,
        contacts=contacts,
        bodies=bodies,
        sensors=sensors,
        dtype=common_pb2.DATA_TYPE_FLOAT32 if single else common_pb2.DATA_TYPE_FLOAT64,
    )


def step(
    session_id: str,
    steps: int,
    controls: arrays.ArrayLike | None,
    forces: arrays.ArrayLike | None,
    wanted: simulation_pb2.StepReturn,
    priority: str,
) -> simulation_pb2.StepRequest:
    """The request of Step."""
    return simulation_pb2.StepRequest(
        session_id=session_id,
        steps=steps,
        controls=arrays.encode(controls) if controls is not None else None,
        forces=arrays.encode(forces) if forces is not None else None,
        want=wanted,
        priority=chosen("priority", priority, PRIORITIES),
    )


def create_scene(
    digest: str,
    path: str,
    files: list[simulation_pb2.SceneFile],
    density: float,
    floating_base: bool,
    overlaps: str,
    overlap_keyframe: str,
    balance_inertia: bool,
) -> simulation_pb2.CreateSceneRequest:
    """The request of CreateScene for an uploaded model."""
    return simulation_pb2.CreateSceneRequest(
        sha256=digest,
        path=path,
        files=files,
        density=density,
        floating_base=floating_base,
        overlaps=chosen("overlaps", overlaps, OVERLAPS),
        overlap_keyframe=overlap_keyframe,
        balance_inertia=balance_inertia,
    )


def evaluate_grasps(
    target: GraspObject,
    object_asset: grasp_pb2.GraspAsset,
    hand: Hand,
    hand_asset: grasp_pb2.GraspAsset,
    poses: Iterable[GraspPose],
    protocol: Protocol | None,
    perturbation: Perturbation | None,
    solve: SolveOptions | None,
    confidence: float,
    priority: str,
    label: str,
    device: str,
) -> grasp_pb2.EvaluateGraspsRequest:
    """The request of EvaluateGrasps."""
    tool = None
    if hand.tool_position is not None or hand.tool_orientation is not None:
        tool = pose_message(hand.tool_position, hand.tool_orientation)
    return grasp_pb2.EvaluateGraspsRequest(
        object=grasp_pb2.GraspObject(
            asset=object_asset,
            mass=target.mass,
            density=target.density,
            friction=target.friction,
            convex=target.convex,
            pose=pose_message(target.position, target.orientation),
            no_table=not target.table,
        ),
        hand=grasp_pb2.GraspHand(
            asset=hand_asset,
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
