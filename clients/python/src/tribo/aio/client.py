"""The client of asyncio, and how it connects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from tribo import requests, sources
from tribo.aio.jobs import GraspCalls
from tribo.aio.session import Session
from tribo.arguments import ConnectArguments, SceneArguments, SessionArguments, takes
from tribo.errors import translated
from tribo.function import AsyncFunction, choose
from tribo.sources import Source
from tribo.types import Scene, SolveOptions
from tribo.v1 import (
    function_pb2,
    function_pb2_grpc,
    grasp_pb2_grpc,
    runs_pb2,
    runs_pb2_grpc,
    simulation_pb2,
    simulation_pb2_grpc,
    solve_pb2,
    solve_pb2_grpc,
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
        self._replicas: dict[str, Client] = {}
        self._arguments = arguments
        connection = requests.Connection(**arguments)
        self._channel = connection.channel(address, grpc.aio)
        self._metadata = connection.metadata
        self._timeout = connection.timeout
        self._simulation = requests.stub(simulation_pb2_grpc.SimulationStub, self._channel)
        self._grasp = requests.stub(grasp_pb2_grpc.GraspStub, self._channel)
        self._solve = requests.stub(solve_pb2_grpc.SolveStub, self._channel)
        self._runs = requests.stub(runs_pb2_grpc.RunsStub, self._channel)
        self._function = requests.stub(function_pb2_grpc.FunctionStub, self._channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection; sessions continue until their leases end."""
        for replica in self._replicas.values():
            await replica.close()
        await self._channel.close()

    def _replica(self, address: str) -> Client:
        """The client of another daemon of the fleet, with this client's options."""
        if address not in self._replicas:
            self._replicas[address] = Client(address, **self._arguments)
        return self._replicas[address]

    async def _call(self, method: Any, request: Any, timeout: float | None = None) -> Any:
        with translated():
            return await method(
                request,
                timeout=self._timeout if timeout is None else timeout,
                metadata=self._metadata,
            )

    async def _pages(self, method: Any, request: Any, items: str) -> AsyncIterator[Any]:
        """Iterates over the items of a paged list."""
        while True:
            page = await self._call(method, request)
            for item in getattr(page, items):
                yield item
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    async def server_info(self) -> simulation_pb2.GetServerInfoResponse:
        """Version, devices, solvers and limits of the server."""
        answer: simulation_pb2.GetServerInfoResponse = await self._call(
            self._simulation.GetServerInfo, simulation_pb2.GetServerInfoRequest()
        )
        return answer

    async def put_asset(self, name: str, data: bytes) -> str:
        """Uploads a file in pieces and returns its SHA-256."""
        answer = await self._call(self._simulation.PutAsset, requests.put_chunks(name, data))
        return str(answer.sha256)

    async def _upload(
        self, source: Source, name: str, default: str
    ) -> tuple[str, str, list[simulation_pb2.SceneFile]]:
        data, name, others = await asyncio.to_thread(sources.read_source, source, name, default)
        # several paths may refer to one file
        digests = {
            file: await self.put_asset(*await asyncio.to_thread(sources.content, path, file))
            for file, path in {file: path for path, file in others.items()}.items()
        }
        uploaded = [(path, digests[file]) for path, file in others.items()]
        return await self.put_asset(name, data), name, requests.scene_files(uploaded)

    @takes(requests.create_scene)
    async def load(
        self, source: Source, *, name: str = "", **arguments: Unpack[SceneArguments]
    ) -> Scene:
        """Uploads MJCF, URDF, OBJ or STL with every file it refers to, and compiles it.

        Args:
            source: a path, or the file's bytes (then `name` gives the format).
            name: file name; a path's own if empty.
        """
        request = requests.create_scene(**arguments)
        request.sha256, request.path, files = await self._upload(source, name, "model.xml")
        request.files.extend(files)
        return Scene.from_message(await self._call(self._simulation.CreateScene, request))

    async def describe(self, scene: Scene | str) -> simulation_pb2.GetSceneResponse:
        """Names, masses and joints of a scene."""
        answer: simulation_pb2.GetSceneResponse = await self._call(
            self._simulation.GetScene,
            simulation_pb2.GetSceneRequest(scene_id=requests.scene_id(scene)),
        )
        return answer

    def scenes(self) -> AsyncIterator[simulation_pb2.SceneInfo]:
        """The scenes that the server keeps, newest first."""
        return self._pages(
            self._simulation.ListScenes, simulation_pb2.ListScenesRequest(), "scenes"
        )

    def assets(self) -> AsyncIterator[simulation_pb2.AssetInfo]:
        """The files that the server keeps, newest first."""
        return self._pages(
            self._simulation.ListAssets, simulation_pb2.ListAssetsRequest(), "assets"
        )

    @takes(requests.create_session)
    async def create_session(
        self, scene: Scene | str, **arguments: Unpack[SessionArguments]
    ) -> Session:
        """Opens a session: worlds of one scene.

        Args:
            scene: the result of `load`, or a scene id.
        """
        request = requests.create_session(scene, **arguments)
        answer = await self._call(self._simulation.CreateSession, request)
        return Session(self, answer.session_id, request.scene_id)

    def session(self, session_id: str) -> Session:
        """Attaches to an existing session."""
        return Session(self, session_id)

    def sessions(self) -> AsyncIterator[simulation_pb2.SessionInfo]:
        """The caller's sessions, newest first."""
        return self._pages(
            self._simulation.ListSessions, simulation_pb2.ListSessionsRequest(), "sessions"
        )

    async def solve_problem(
        self, data: bytes, name: str, *, options: SolveOptions | None = None, solution: bool = False
    ) -> solve_pb2.SolveProblemResponse:
        """Solves a contact problem file (".dat" text or FCLIB ".hdf5", as `name` says)."""
        answer: solve_pb2.SolveProblemResponse = await self._call(
            self._solve.SolveProblem, requests.solve_problem(data, name, options, solution)
        )
        return answer

    async def function(
        self, source: str, name: str = "", *, file: str = "source.mo"
    ) -> AsyncFunction:
        """A function of a Modelica source, `name` of several; calls take numpy arrays."""
        compiled: function_pb2.CompileResponse = await self._call(
            self._function.Compile, function_pb2.CompileRequest(source=source, name=file)
        )
        return choose([AsyncFunction(self, source, file, i) for i in compiled.functions], name)

    def call_function(
        self, request: function_pb2.CallRequest
    ) -> AsyncIterator[function_pb2.CallResponse]:
        """The messages of a call; `AsyncFunction` makes arrays of them."""
        responses: AsyncIterator[function_pb2.CallResponse] = self._function.Call(
            request, timeout=self._timeout, metadata=self._metadata
        )
        return responses

    def runs(self, scene: Scene | str = "", *, fleet: bool = False) -> AsyncIterator[runs_pb2.Run]:
        """Runs, newest first; with `fleet` those of all its daemons, from its database."""
        return self._pages(
            self._runs.ListRuns,
            runs_pb2.ListRunsRequest(
                scene_id=requests.scene_id(scene) if scene else "", fleet=fleet
            ),
            "runs",
        )

    async def run(self, run_id: str) -> runs_pb2.GetRunResponse:
        """One run with its step summaries and events."""
        answer: runs_pb2.GetRunResponse = await self._call(
            self._runs.GetRun, runs_pb2.GetRunRequest(run_id=run_id)
        )
        return answer

    async def compare_runs(self, a: str, b: str) -> runs_pb2.CompareRunsResponse:
        """Two runs side by side, by their ids."""
        answer: runs_pb2.CompareRunsResponse = await self._call(
            self._runs.CompareRuns, runs_pb2.CompareRunsRequest(run_id_a=a, run_id_b=b)
        )
        return answer

    async def record_benchmark(self, benchmark: runs_pb2.Benchmark) -> runs_pb2.Benchmark:
        """Stores a measurement; returns it with its id, its time and the server's statistics."""
        answer = await self._call(
            self._runs.RecordBenchmark, runs_pb2.RecordBenchmarkRequest(benchmark=benchmark)
        )
        kept: runs_pb2.Benchmark = answer.benchmark
        return kept

    def benchmarks(
        self, name: str = "", *, fleet: bool = False
    ) -> AsyncIterator[runs_pb2.Benchmark]:
        """Measurements, newest first; of one name, or all; with `fleet` of all its daemons."""
        request = runs_pb2.ListBenchmarksRequest(name=name, fleet=fleet)
        return self._pages(self._runs.ListBenchmarks, request, "benchmarks")
