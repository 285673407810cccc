"""Grasps in one call: samples on an object, and their evaluation by a daemon."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Callable, Union

from tribo import requests
from tribo.arguments import GraspArguments, takes
from tribo.client import Client, connect
from tribo.daemon import Daemon
from tribo.frames import dataframe
from tribo.grasp_types import (
    GraspObject,
    GraspPose,
    GraspResult,
    GraspSummary,
    Hand,
    Verdict,
)
from tribo.sources import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: types that the calls of this file accept as an object and as a hand
Target = Union[GraspObject, Source]
Gripper = Union[Hand, Source]


@dataclass(frozen=True)
class Evaluation(Sequence[GraspResult]):
    """The results of an evaluation, in the order of the poses, with its summary."""

    results: tuple[GraspResult, ...]
    poses: tuple[GraspPose, ...]
    summary: GraspSummary

    def __getitem__(self, index: Any) -> Any:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[GraspResult]:
        return iter(self.results)

    @property
    def held(self) -> list[GraspResult]:
        """Grasps whose unperturbed copy was held, the surest first."""
        held = [r for r in self.results if r.verdict == Verdict.HELD]
        return sorted(held, key=lambda r: (-r.success, -r.epsilon_quality))

    @property
    def counts(self) -> dict[str, int]:
        """How many grasps have each verdict: {"HELD": 130, "SLIPPED": 69}."""
        return dict(Counter(r.verdict.name for r in self.results))

    def to_dataframe(self) -> Any:
        """A row a grasp: pose, verdict, reason, qualities and certificate (pandas)."""
        return results_dataframe(self.results, self.poses)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={n}" for name, n in sorted(self.counts.items()))
        return f"Evaluation({len(self)} grasps: {counts}; {self.summary.device})"


def results_dataframe(
    results: Sequence[GraspResult], poses: Sequence[GraspPose] | None = None
) -> Any:
    """A `pandas.DataFrame` with a row a grasp, whatever call it comes from."""
    rows: dict[str, list[Any]] = {}
    plain = ("index", "name", "success", "slip", "drop_time", "epsilon_quality",
             "volume_quality", "weakest_margin", "uncertified")  # fmt: skip
    for r in results:
        row: dict[str, Any] = {name: getattr(r, name) for name in plain}
        row["success_lower"], row["success_upper"] = r.success_interval
        row["verdict"] = r.verdict.name
        row["reason"], row["stage"], row["time"] = r.reason.text, r.reason.stage.name, r.reason.time
        row["hand_body"], row["other_body"] = r.reason.hand_body, r.reason.other_body
        row["trials"] = len(r.trials)
        row["contacts"] = len(r.contact_positions)
        row["force"] = sum(r.finger_forces.values())
        for f in fields(r.certificate):
            if f.name in ("residual", "penetration", "iterations", "energy_unexplained"):
                row[f.name] = getattr(r.certificate, f.name)
        if poses is not None:
            pose = poses[r.index]
            row.update(zip("xyz", pose.position))
            row.update(zip(("qw", "qx", "qy", "qz"), pose.orientation))
        for name, value in row.items():
            rows.setdefault(name, []).append(value)
    return dataframe(rows)


def as_object(target: Target) -> GraspObject:
    """An object from whatever it is given as."""
    return target if isinstance(target, GraspObject) else GraspObject(target)


def as_hand(hand: Gripper, profile: str) -> Hand:
    """A hand from whatever it is given as; a profile's name wins over the hand's own."""
    made = hand if isinstance(hand, Hand) else Hand(hand)
    return replace(made, profile=profile) if profile else made


def sample_grasps(
    target: Target,
    hand: Gripper,
    count: int = 100,
    *,
    profile: str = "",
    seed: int = 0,
    opening: float = 0.0,
    axis: Sequence[float] = (),
    approach: Sequence[float] = (0.0, 0.0, 1.0),
    from_above: Sequence[float] = (0.0, 0.0, -1.0),
    spread: float = 1.2,
    free: bool = True,
    force: float = 0.0,
) -> list[GraspPose]:
    """Samples antipodal grasps of a hand on an object, in this process; needs `tribo[local]`.

    Arguments are those of `tribo.local.sample_poses`; `profile` names a known hand.
    """
    from tribo.local import sample_poses

    return sample_poses(
        as_object(target),
        as_hand(hand, profile),
        count,
        seed=seed,
        opening=opening,
        axis=axis,
        approach=approach,
        from_above=from_above,
        spread=spread,
        free=free,
        force=force,
    )


@takes(requests.evaluate_grasps)
def evaluate(
    target: Target,
    hand: Gripper,
    poses: Iterable[GraspPose] | int = 100,
    *,
    profile: str = "",
    seed: int = 0,
    client: Client | str | None = None,
    timeout: float | None = None,
    progress: bool | Callable[[int, int], None] = False,
    **arguments: Unpack[GraspArguments],
) -> Evaluation:
    """Evaluates grasps of a hand on an object and waits for all of them.

        grasps = tribo.evaluate("mug.obj", "panda_gripper.xml", 200, profile="panda")
        grasps.held[0], grasps.counts, grasps.to_dataframe()

    Args:
        target: a `GraspObject`, or its source: path, bytes, `trimesh.Trimesh`, `tribo.Mesh`.
        hand: a `Hand`, or its source: path, bytes, `mujoco.MjSpec`.
        poses: of the tool frame in the object's frame, or how many to sample.
        profile: a known hand: "panda", "robotiq_2f85", ...
        seed: of the samples.
        client: a connection, an address, or None: $TRIBO_SERVER, else a private daemon.
        timeout: s, for the whole job.
        progress: True shows a bar; a function is called with steps done and in all.
    """
    thing, gripper = as_object(target), as_hand(hand, profile)
    chosen = sample_grasps(thing, gripper, poses, seed=seed) if isinstance(poses, int) else poses
    wanted = tuple(chosen)

    def play(client: Client) -> Evaluation:
        job = client.evaluate_grasps(
            thing,
            gripper,
            wanted,
            timeout=timeout,
            progress=progress,
            **arguments,
        )
        results = tuple(sorted(job, key=lambda r: r.index))
        assert job.summary is not None
        return Evaluation(results, wanted, job.summary)

    if isinstance(client, Client):
        return play(client)
    address = client or os.environ.get("TRIBO_SERVER", "")
    if address:
        with connect(address, api_key=os.environ.get("TRIBO_API_KEY")) as connection:
            return play(connection)
    with Daemon() as daemon, daemon.connect() as connection:
        return play(connection)
