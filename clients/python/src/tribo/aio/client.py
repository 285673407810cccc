"""The client of asyncio, and how it connects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from tribo import client as blocking
from tribo import requests
from tribo.aio.jobs import GraspCalls
from tribo.aio.session import Session
from tribo.arguments import ConnectArguments, SceneArguments, SessionArguments, like, takes
from tribo.arrays import AnyArray
from tribo.errors import translated
from tribo.function import CLOSE_SECONDS, AsyncFunction, Kept, choose, fetched, name_of
from tribo.sources import Source
from tribo.types import Scene, SolveOptions
from tribo.v1 import (
    function_pb2,
    runs_pb2,
    simulation_pb2,
    solve_pb2,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


@takes(requests.Connection.__init__)
def connect(address: str, **arguments: Unpack[ConnectArguments]) -> Client:
    """Connects to a daemon. Call it inside a running event loop.

    Args:
        address: "HOST:PORT", or "unix:/path/of/socket".
    """
    return Client(address, **arguments)


class Client(GraspCalls):
    """A connection to a daemon, for asyncio. Use it as a context manager, or close it."""

    @takes(requests.Connection.__init__)
    def __init__(self, address: str, **arguments: Unpack[ConnectArguments]) -> None:
        """Connects to a daemon at an address."""
        super().__init__(address, grpc.aio, **arguments)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @like(blocking.Client.close)
    async def close(self) -> None:
        for replica in self._replicas.values():
            await replica.close()
        if self._keeps:
            with suppress(grpc.RpcError):
                await self._function.Forget(
                    self._forget(()), timeout=CLOSE_SECONDS, metadata=self._metadata
                )
        await self._channel.close()

    @like(blocking.Client.server_info)
    async def server_info(self) -> simulation_pb2.GetServerInfoResponse:
        answer: simulation_pb2.GetServerInfoResponse = await self._call(
            self._simulation.GetServerInfo, simulation_pb2.GetServerInfoRequest()
        )
        return answer

    @like(blocking.Client.load)
    async def load(
        self, source: Source, *, name: str = "", **arguments: Unpack[SceneArguments]
    ) -> Scene:
        request = requests.create_scene(**arguments)
        request.sha256, request.path, files = await self._upload(source, name, "model.xml")
        request.files.extend(files)
        return Scene.from_message(await self._call(self._simulation.CreateScene, request))

    @like(blocking.Client.scenes)
    def scenes(self) -> AsyncIterator[simulation_pb2.SceneInfo]:
        return self._pages(
            self._simulation.ListScenes, simulation_pb2.ListScenesRequest(), "scenes"
        )

    @like(blocking.Client.assets)
    def assets(self) -> AsyncIterator[simulation_pb2.AssetInfo]:
        return self._pages(
            self._simulation.ListAssets, simulation_pb2.ListAssetsRequest(), "assets"
        )

    @like(blocking.Client.create_session)
    async def create_session(
        self, scene: Scene | str, **arguments: Unpack[SessionArguments]
    ) -> Session:
        request = requests.create_session(scene, **arguments)
        answer = await self._call(self._simulation.CreateSession, request)
        return Session(self, answer.session_id, request.scene_id)

    @like(blocking.Client.session)
    def session(self, session_id: str) -> Session:
        return Session(self, session_id)

    @like(blocking.Client.sessions)
    def sessions(self) -> AsyncIterator[simulation_pb2.SessionInfo]:
        return self._pages(
            self._simulation.ListSessions, simulation_pb2.ListSessionsRequest(), "sessions"
        )

    @like(blocking.Client.solve_problem)
    async def solve_problem(
        self, data: bytes, name: str, *, options: SolveOptions | None = None, solution: bool = False
    ) -> solve_pb2.SolveProblemResponse:
        answer: solve_pb2.SolveProblemResponse = await self._call(
            self._solve.SolveProblem, requests.solve_problem(data, name, options, solution)
        )
        return answer

    @like(blocking.Client.function)
    async def function(
        self, source: str, name: str = "", *, file: str = "source.mo"
    ) -> AsyncFunction:
        compiled: function_pb2.CompileResponse = await self._call(
            self._function.Compile, function_pb2.CompileRequest(source=source, name=file)
        )
        return choose([AsyncFunction(self, source, file, i) for i in compiled.functions], name)

    def call_function(
        self, request: function_pb2.CallRequest
    ) -> AsyncIterator[function_pb2.CallResponse]:
        """The messages of a call; `AsyncFunction` makes arrays of them."""
        responses: AsyncIterator[function_pb2.CallResponse] = self._function.Call(
            self._in_session(request), timeout=self._timeout, metadata=self._metadata
        )
        return responses

    @like(blocking.Client.fetch)
    async def fetch(self, kept: Kept | str) -> AnyArray:
        with translated():
            responses = self._function.Fetch(
                self._fetch(name_of(kept)), timeout=self._timeout, metadata=self._metadata
            )
            return fetched([piece async for piece in responses])

    @like(blocking.Client.forget)
    async def forget(self, *kept: Kept | str) -> int:
        answer: function_pb2.ForgetResponse = await self._call(
            self._function.Forget, self._forget(name_of(k) for k in kept)
        )
        return answer.arrays

    @like(blocking.Client.kept)
    async def kept(self) -> list[Kept]:
        answer: function_pb2.ListResponse = await self._call(
            self._function.List, function_pb2.ListRequest(session=self._function_session)
        )
        return [Kept(a.name, shape=tuple(a.shape)) for a in answer.arrays]

    @like(blocking.Client.runs)
    def runs(self, scene: Scene | str = "", *, fleet: bool = False) -> AsyncIterator[runs_pb2.Run]:
        return self._pages(
            self._runs.ListRuns,
            runs_pb2.ListRunsRequest(
                scene_id=requests.scene_id(scene) if scene else "", fleet=fleet
            ),
            "runs",
        )

    @like(blocking.Client.run)
    async def run(self, run_id: str) -> runs_pb2.GetRunResponse:
        answer: runs_pb2.GetRunResponse = await self._call(
            self._runs.GetRun, runs_pb2.GetRunRequest(run_id=run_id)
        )
        return answer

    @like(blocking.Client.compare_runs)
    async def compare_runs(self, a: str, b: str) -> runs_pb2.CompareRunsResponse:
        answer: runs_pb2.CompareRunsResponse = await self._call(
            self._runs.CompareRuns, runs_pb2.CompareRunsRequest(run_id_a=a, run_id_b=b)
        )
        return answer

    @like(blocking.Client.record_benchmark)
    async def record_benchmark(self, benchmark: runs_pb2.Benchmark) -> runs_pb2.Benchmark:
        answer = await self._call(
            self._runs.RecordBenchmark, runs_pb2.RecordBenchmarkRequest(benchmark=benchmark)
        )
        kept: runs_pb2.Benchmark = answer.benchmark
        return kept

    @like(blocking.Client.benchmarks)
    def benchmarks(
        self, name: str = "", *, fleet: bool = False
    ) -> AsyncIterator[runs_pb2.Benchmark]:
        request = runs_pb2.ListBenchmarksRequest(name=name, fleet=fleet)
        return self._pages(self._runs.ListBenchmarks, request, "benchmarks")
