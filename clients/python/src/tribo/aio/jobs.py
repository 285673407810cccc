"""Grasps for asyncio: the jobs' iterator and the part of `tribo.aio.Client` that calls them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable

import grpc
import grpc.aio

from tribo import client as blocking
from tribo import requests
from tribo.aio.connection import AsyncConnected
from tribo.arguments import GraspArguments, like, takes
from tribo.errors import CancelledError, translated
from tribo.grasp_types import (
    GraspObject,
    GraspPose,
    GraspResult,
    GraspSummary,
    GraspTrajectory,
    Hand,
    KeepTrajectories,
    StoredTrajectory,
)
from tribo.names import Names
from tribo.progress import Progress
from tribo.shared import grasp_asset, grasp_assets, job_of
from tribo.v1 import grasp_pb2

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class GraspJob(AsyncIterator[GraspResult]):
    """Iterates over results of a grasp job; `summary` is set after the last one.

    Leaving its context manager cancels a job that has not finished.
    """

    def __init__(self, call: Any, progress: Progress) -> None:
        self._call = call
        self._progress = progress
        self._cancelled = False
        self.summary: GraspSummary | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()

    def __aiter__(self) -> Self:
        return self

    async def _next_event(self) -> Any:
        try:
            with translated():
                return await self._call.read()
        except asyncio.CancelledError:
            # gRPC raises the same error for a cancelled call and for a cancelled waiting task
            if self._cancelled:
                raise CancelledError("cancelled by the caller", grpc.StatusCode.CANCELLED) from None
            self._call.cancel()
            raise

    async def __anext__(self) -> GraspResult:
        while True:
            try:
                event = await self._next_event()
            except BaseException:
                self._progress.close()
                raise
            if event is grpc.aio.EOF:
                self._progress.close()
                raise StopAsyncIteration
            kind = event.WhichOneof("event")
            if kind == "result":
                return GraspResult.from_message(event.result)
            if kind == "progress":
                self._progress.show(event.progress.world_steps_done, event.progress.world_steps)
            elif kind == "summary":
                self.summary = GraspSummary.from_message(event.summary)

    @like(blocking.GraspJob.cancel)
    def cancel(self) -> None:
        self._cancelled = True
        self._progress.close()
        self._call.cancel()


class GraspCalls(AsyncConnected):
    """Grasp calls of a client."""

    @like(blocking.Client.replay_grasp)
    async def replay_grasp(
        self, job_id: str, grasp: int, *, copy: int = 0, interval: float = 0.0
    ) -> GraspTrajectory:
        request = grasp_pb2.ReplayGraspRequest(id=job_id, grasp=grasp, copy=copy, interval=interval)
        answer = await self._call(self._grasp.ReplayGrasp, request)
        return GraspTrajectory.from_message(
            answer, Names.from_message(await self.describe(answer.scene_id))
        )

    @like(blocking.Client.grasp_trajectory)
    async def grasp_trajectory(self, job_id: str, grasp: int, *, copy: int = 0) -> StoredTrajectory:
        request = grasp_pb2.GetGraspTrajectoryRequest(id=job_id, grasp=grasp, copy=copy)
        answer = await self._call(self._grasp.GetGraspTrajectory, request)
        return StoredTrajectory.from_message(
            answer, Names.from_message(await self.describe(answer.scene_id))
        )

    @like(blocking.Client.grasp_trajectories)
    def grasp_trajectories(self, job_id: str) -> AsyncIterator[grasp_pb2.GraspTrajectoryInfo]:
        request = grasp_pb2.ListGraspTrajectoriesRequest(id=job_id)
        return self._pages(self._grasp.ListGraspTrajectories, request, "trajectories")

    async def _add_grasp_assets(
        self, request: grasp_pb2.EvaluateGraspsRequest, target: GraspObject, hand: Hand
    ) -> None:
        for thing, message, default in grasp_assets(request, target, hand):
            message.CopyFrom(grasp_asset(*await self._upload(thing.source, thing.name, default)))

    @takes(requests.evaluate_grasps)
    async def evaluate_grasps(
        self,
        target: GraspObject,
        hand: Hand,
        poses: Iterable[GraspPose],
        *,
        priority: str = "normal",
        timeout: float | None = None,
        progress: bool | Callable[[int, int], None] = False,
        **arguments: Unpack[GraspArguments],
    ) -> GraspJob:
        """Plays every grasp through the protocol; iterate (`async for`) over the job.

        Args:
            target: the object to grasp.
            hand: the grasping hand.
            poses: of the hand's tool frame in the object's frame.
            priority: "low", "normal" or "high".
            timeout: s, for the whole job; None: the client's.
            progress: True shows a bar (tqdm's if installed); a function is called with
                world steps done and in all.
        """
        request = requests.evaluate_grasps(target, hand, poses, priority, **arguments)
        await self._add_grasp_assets(request, target, hand)
        call = self._grasp.EvaluateGrasps(
            request,
            timeout=self._timeout if timeout is None else timeout,
            metadata=self._metadata,
        )
        return GraspJob(call, Progress(progress, "grasps"))

    @like(blocking.Client.submit_grasps)
    async def submit_grasps(
        self,
        target: GraspObject,
        hand: Hand,
        poses: Iterable[GraspPose],
        *,
        trajectories: KeepTrajectories | None = None,
        **arguments: Unpack[GraspArguments],
    ) -> grasp_pb2.GraspJobInfo:
        request = requests.grasps_of_job(target, hand, poses, trajectories, arguments)
        await self._add_grasp_assets(request, target, hand)
        return job_of(
            await self._call(
                self._grasp.SubmitGrasps, grasp_pb2.SubmitGraspsRequest(grasps=request)
            )
        )

    @like(blocking.Client.grasp_job)
    async def grasp_job(self, job_id: str) -> grasp_pb2.GraspJobInfo:
        return job_of(
            await self._call(self._grasp.GetGraspJob, grasp_pb2.GetGraspJobRequest(id=job_id))
        )

    @like(blocking.Client.grasp_job_results)
    async def grasp_job_results(self, job_id: str, first: int = 0) -> AsyncIterator[GraspResult]:
        while True:
            request = grasp_pb2.GetGraspJobRequest(
                id=job_id, first_result=first, maximum_results=500
            )
            answer = await self._call(self._grasp.GetGraspJob, request)
            if not answer.results:
                return
            first += len(answer.results)
            for result in answer.results:
                yield GraspResult.from_message(result)

    @like(blocking.Client.grasp_jobs)
    def grasp_jobs(self) -> AsyncIterator[grasp_pb2.GraspJobInfo]:
        return self._pages(self._grasp.ListGraspJobs, grasp_pb2.ListGraspJobsRequest(), "jobs")

    @like(blocking.Client.cancel_grasp_job)
    async def cancel_grasp_job(self, job_id: str) -> grasp_pb2.GraspJobInfo:
        return job_of(
            await self._call(self._grasp.CancelGraspJob, grasp_pb2.CancelGraspJobRequest(id=job_id))
        )
