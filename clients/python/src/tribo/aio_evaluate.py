"""Grasps of a hand on an object in one call, for asyncio: `tribo.aio.evaluate`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Callable

from tribo.grasp_types import GraspPose, Perturbation, Protocol
from tribo.grasping import Evaluation, Gripper, Target, as_hand, as_object, sample_grasps
from tribo.types import SolveOptions

if TYPE_CHECKING:
    from tribo.aio import Client


async def evaluate(
    target: Target,
    hand: Gripper,
    poses: Iterable[GraspPose] | int = 100,
    *,
    client: Client,
    profile: str = "",
    seed: int = 0,
    protocol: Protocol | None = None,
    perturbation: Perturbation | None = None,
    solve: SolveOptions | None = None,
    confidence: float = 0.0,
    label: str = "",
    device: str = "",
    timeout: float | None = None,
    progress: bool | Callable[[int, int], None] = False,
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
        protocol=protocol,
        perturbation=perturbation,
        solve=solve,
        confidence=confidence,
        label=label,
        device=device,
        timeout=timeout,
        progress=progress,
    ) as job:
        results = [result async for result in job]
    assert job.summary is not None
    return Evaluation(tuple(sorted(results, key=lambda r: r.index)), wanted, job.summary)
