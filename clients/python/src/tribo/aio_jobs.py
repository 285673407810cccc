"""Grasp jobs that outlive client and server, for asyncio: part of `tribo.aio.Client`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from tribo import requests
from tribo.grasp_types import GraspObject, GraspPose, GraspResult, Hand, Perturbation, Protocol
from tribo.sources import Source
from tribo.types import SolveOptions
from tribo.v1 import grasp_pb2, simulation_pb2


class GraspJobs:
    """Job calls of a client, which has the connection. `tribo.Client` documents the arguments."""

    _grasp: Any

    async def _call(self, method: Any, request: Any, timeout: float | None = None) -> Any:
        raise NotImplementedError

    def _pages(self, method: Any, request: Any, items: str) -> AsyncIterator[Any]:
        raise NotImplementedError

    async def _upload(
        self, source: Source, name: str, default: str
    ) -> tuple[str, str, list[simulation_pb2.SceneFile]]:
        raise NotImplementedError

    async def _grasp_asset(self, source: Source, name: str, default: str) -> grasp_pb2.GraspAsset:
        digest, name, files = await self._upload(source, name, default)
        return grasp_pb2.GraspAsset(sha256=digest, path=name, files=files)

    async def submit_grasps(
        self,
        target: GraspObject,
        hand: Hand,
        poses: Iterable[GraspPose],
        *,
        protocol: Protocol | None = None,
        perturbation: Perturbation | None = None,
        solve: SolveOptions | None = None,
        confidence: float = 0.0,
        label: str = "",
        device: str = "",
    ) -> grasp_pb2.GraspJobInfo:
        """Leaves the grasps to the server as a job that outlives client and server; its row."""
        request = requests.evaluate_grasps(
            target,
            await self._grasp_asset(target.source, target.name, "object.obj"),
            hand,
            await self._grasp_asset(hand.source, hand.name, "hand.xml"),
            poses,
            protocol,
            perturbation,
            solve,
            confidence,
            "low",
            label,
            device,
        )
        answer = await self._call(
            self._grasp.SubmitGrasps, grasp_pb2.SubmitGraspsRequest(grasps=request)
        )
        job: grasp_pb2.GraspJobInfo = answer.job
        return job

    async def grasp_job(self, job_id: str) -> grasp_pb2.GraspJobInfo:
        """Progress of a job, by its id or a unique beginning of it."""
        answer = await self._call(self._grasp.GetGraspJob, grasp_pb2.GetGraspJobRequest(id=job_id))
        job: grasp_pb2.GraspJobInfo = answer.job
        return job

    async def grasp_job_results(self, job_id: str, first: int = 0) -> AsyncIterator[GraspResult]:
        """Results of a job that are stored so far, in the order of the poses."""
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

    def grasp_jobs(self) -> AsyncIterator[grasp_pb2.GraspJobInfo]:
        """The caller's grasp jobs, newest first."""
        return self._pages(self._grasp.ListGraspJobs, grasp_pb2.ListGraspJobsRequest(), "jobs")

    async def cancel_grasp_job(self, job_id: str) -> grasp_pb2.GraspJobInfo:
        """Ends a running job; its results stay."""
        answer = await self._call(
            self._grasp.CancelGraspJob, grasp_pb2.CancelGraspJobRequest(id=job_id)
        )
        job: grasp_pb2.GraspJobInfo = answer.job
        return job
