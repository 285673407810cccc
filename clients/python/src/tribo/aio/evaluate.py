"""Grasps of a hand on an object in one call, for asyncio: `tribo.aio.evaluate`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Callable

from tribo import requests
from tribo.arguments import GraspArguments, takes
from tribo.grasp_types import GraspPose
from tribo.grasping import Evaluation, Gripper, Target, as_hand, as_object, sample_grasps

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tribo.aio.client import Client


@takes(requests.evaluate_grasps)
async def evaluate(
    target: Target,
    hand: Gripper,
    poses: Iterable[GraspPose] | int = 100,
    *,
    client: Client,
    profile: str = "",
    seed: int = 0,
    timeout: float | None = None,
    progress: bool | Callable[[int, int], None] = False,
    **arguments: Unpack[GraspArguments],
) -> Evaluation:
    """Evaluates grasps of a hand on an object; see `tribo.evaluate`."""
    thing, gripper = as_object(target), as_hand(hand, profile)
    if isinstance(poses, int):
        poses = await asyncio.to_thread(sample_grasps, thing, gripper, poses, seed=seed)
    wanted = tuple(poses)
    async with await client.evaluate_grasps(
        thing,
        gripper,
        wanted,
        timeout=timeout,
        progress=progress,
        **arguments,
    ) as job:
        results = [result async for result in job]
    assert job.summary is not None
    return Evaluation(tuple(sorted(results, key=lambda r: r.index)), wanted, job.summary)
