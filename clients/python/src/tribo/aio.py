"""The asyncio client: the same calls as `tribo.client`, awaited.

async with tribo.aio.connect("127.0.0.1:7410") as client:
    scene = await client.load("hand.xml")
    async with await client.create_session(scene) as session:
        answer = await session.step(10)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable

import grpc
import grpc.aio

from tribo import requests, sources
from tribo.aio_evaluate import evaluate as evaluate
from tribo.aio_jobs import GraspJobs
from tribo.arrays import ArrayLike, encode
from tribo.client import DEFAULT_MESSAGE_BYTES, _scene_id
from tribo.errors import CancelledError, NotFoundError, UnavailableError, translated
from tribo.function import AsyncFunction, choose
from tribo.grasp_types import (
    GraspObject,
    GraspPose,
    GraspResult,
    GraspSummary,
    Hand,
    Perturbation,
    Protocol,
)
from tribo.names import Names
from tribo.pieces import join_steps, join_watched
from tribo.progress import Progress
from tribo.sources import Source
from tribo.types import Contacts, Scene, SolveOptions, StepAnswer, StepOptions
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
    from typing_extensions import Self


def connect(
    address: str,
    *,
    api_key: str | None = None,
    credentials: grpc.ChannelCredentials | None = None,
    timeout: float | None = None,
    attempts: int = 4,
    message_bytes: int = DEFAULT_MESSAGE_BYTES,
) -> Client:
    """Connects to a daemon; see `tribo.connect`. Call it inside a running event loop."""
    return Client(
        address,
        api_key=api_key,
        credentials=credentials,
        timeout=timeout,
        attempts=attempts,
        message_bytes=message_bytes,
    )


class Client(GraspJobs):
    """A connection to a daemon, for asyncio. `tribo.Client` documents the arguments."""

    def __init__(
        self,
        address: str,
        *,
        api_key: str | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        timeout: float | None = None,
        attempts: int = 4,
        message_bytes: int = DEFAULT_MESSAGE_BYTES,
    ) -> None:
        self._replicas: dict[str, Client] = {}
        self._options: dict[str, Any] = {
            "api_key": api_key,
            "credentials": credentials,
            "timeout": timeout,
            "attempts": attempts,
            "message_bytes": message_bytes,
        }
        options = requests.channel_options(message_bytes, attempts)
        self._channel = (
            grpc.aio.secure_channel(address, credentials, options=options)
            if credentials is not None
            else grpc.aio.insecure_channel(address, options=options)
        )
        self._metadata = requests.metadata(api_key)
        self._timeout = timeout
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
            self._replicas[address] = Client(address, **self._options)
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

    async def load(
        self,
        source: Source,
        *,
        name: str = "",
        density: float = 0.0,
        floating_base: bool = False,
        overlaps: str = "keep",
        overlap_keyframe: str = "",
        balance_inertia: bool = False,
    ) -> Scene:
        """Uploads a model with every file it refers to, and compiles it."""
        digest, name, files = await self._upload(source, name, "model.xml")
        request = requests.create_scene(
            digest,
            name,
            files,
            density,
            floating_base,
            overlaps,
            overlap_keyframe,
            balance_inertia,
        )
        return Scene.from_message(await self._call(self._simulation.CreateScene, request))

    async def describe(self, scene: Scene | str) -> simulation_pb2.GetSceneResponse:
        """Names, masses and joints of a scene."""
        answer: simulation_pb2.GetSceneResponse = await self._call(
            self._simulation.GetScene, simulation_pb2.GetSceneRequest(scene_id=_scene_id(scene))
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

    async def create_session(
        self,
        scene: Scene | str,
        *,
        worlds: int = 1,
        options: StepOptions | None = None,
        ttl: float = 0.0,
        on_disconnect: str = "keep",
        keyframe: int | None = None,
        label: str = "",
        device: str = "",
    ) -> Session:
        """Opens a session of `worlds` worlds."""
        request = requests.create_session(
            _scene_id(scene), worlds, options, ttl, on_disconnect, keyframe, label, device
        )
        answer = await self._call(self._simulation.CreateSession, request)
        return Session(self, answer.session_id, _scene_id(scene))

    def session(self, session_id: str) -> Session:
        """Attaches to an existing session."""
        return Session(self, session_id)

    def sessions(self) -> AsyncIterator[simulation_pb2.SessionInfo]:
        """The caller's sessions, newest first."""
        return self._pages(
            self._simulation.ListSessions, simulation_pb2.ListSessionsRequest(), "sessions"
        )

    async def evaluate_grasps(
        self,
        target: GraspObject,
        hand: Hand,
        poses: Iterable[GraspPose],
        *,
        protocol: Protocol | None = None,
        perturbation: Perturbation | None = None,
        solve: SolveOptions | None = None,
        confidence: float = 0.0,
        priority: str = "normal",
        label: str = "",
        device: str = "",
        timeout: float | None = None,
        progress: bool | Callable[[int, int], None] = False,
    ) -> GraspJob:
        """Plays every grasp through the protocol; iterate (`async for`) over the job."""
        object_asset = await self._grasp_asset(target.source, target.name, "object.obj")
        hand_asset = await self._grasp_asset(hand.source, hand.name, "hand.xml")
        request = requests.evaluate_grasps(
            target,
            object_asset,
            hand,
            hand_asset,
            poses,
            protocol,
            perturbation,
            solve,
            confidence,
            priority,
            label,
            device,
        )
        call = self._grasp.EvaluateGrasps(
            request,
            timeout=self._timeout if timeout is None else timeout,
            metadata=self._metadata,
        )
        return GraspJob(call, Progress(progress, "grasps"))

    async def solve_problem(
        self, data: bytes, name: str, *, options: SolveOptions | None = None, solution: bool = False
    ) -> solve_pb2.SolveProblemResponse:
        """Solves a contact problem file (".dat" text or FCLIB ".hdf5", as `name` says)."""
        answer: solve_pb2.SolveProblemResponse = await self._call(
            self._solve.SolveProblem,
            solve_pb2.SolveProblemRequest(
                data=data,
                name=name,
                options=(options or SolveOptions()).message(),
                want_solution=solution,
            ),
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

    def runs(self, scene: Scene | str = "") -> AsyncIterator[runs_pb2.Run]:
        """Runs, newest first."""
        return self._pages(
            self._runs.ListRuns,
            runs_pb2.ListRunsRequest(scene_id=_scene_id(scene) if scene else ""),
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

    def benchmarks(self, name: str = "") -> AsyncIterator[runs_pb2.Benchmark]:
        """Measurements, newest first; of one name, or all."""
        return self._pages(
            self._runs.ListBenchmarks, runs_pb2.ListBenchmarksRequest(name=name), "benchmarks"
        )


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

    def cancel(self) -> None:
        """Stops the rest of the job on the server; the next result raises `CancelledError`."""
        self._cancelled = True
        self._progress.close()
        self._call.cancel()


class Session:
    """Worlds on the server. Leaving its context manager deletes the session."""

    def __init__(self, client: Client, session_id: str, scene_id: str = "") -> None:
        self._client = client
        self._scene_id = scene_id
        self._found_names: Names | None = None
        self.id = session_id

    async def names(self) -> Names:
        """Names of bodies, joints and actuators; answers find them once this was awaited."""
        if self._found_names is None:
            if not self._scene_id:
                async for info in self._client.sessions():
                    if info.session_id == self.id:
                        self._scene_id = info.scene_id
            self._found_names = Names.from_message(await self._client.describe(self._scene_id))
        return self._found_names

    def _names(self) -> Names:
        if self._found_names is None:
            raise ValueError("await session.names() once before names are looked up in answers")
        return self._found_names

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.delete()
        except Exception:
            # the first error must reach the caller
            if error is None:
                raise

    async def _call(self, name: str, request: Any, timeout: float | None = None) -> Any:
        try:
            method = getattr(self._client._simulation, name)
            return await self._client._call(method, request, timeout)
        except NotFoundError as error:
            self._follow(error)
            method = getattr(self._client._simulation, name)
            return await self._client._call(method, request, timeout)

    def _follow(self, error: NotFoundError) -> None:
        """Turns to the replica that has the session; raises an error that names none."""
        if not error.replica:
            raise error
        self._client = self._client._replica(error.replica)

    async def step(
        self,
        steps: int = 1,
        *,
        controls: ArrayLike | None = None,
        forces: ArrayLike | None = None,
        state: bool = True,
        contacts: bool = False,
        bodies: bool = False,
        sensors: bool = False,
        single: bool = False,
        priority: str = "normal",
        timeout: float | None = None,
    ) -> StepAnswer:
        """Steps all worlds; see `tribo.Session.step`."""
        wanted = requests.want(state, contacts, bodies, single, sensors)
        request = requests.step(self.id, steps, controls, forces, wanted, priority)
        return StepAnswer.from_message(
            await self._call("Step", request, timeout), names=self._names
        )

    def stream(
        self,
        *,
        state: bool = True,
        contacts: bool = False,
        bodies: bool = False,
        sensors: bool = False,
        single: bool = False,
        timeout: float | None = None,
    ) -> StepStream:
        """Opens a stream that carries many steps in one call."""
        return StepStream(self, requests.want(state, contacts, bodies, single, sensors), timeout)

    async def watch(
        self,
        *,
        state: bool = True,
        contacts: bool = False,
        bodies: bool = False,
        sensors: bool = False,
        minimum_interval: float = 0.0,
    ) -> AsyncIterator[simulation_pb2.WatchResponse]:
        """Follows a session stepped by other clients: its states, and events when it ends."""
        await self.heartbeat()  # finds the session's replica
        request = simulation_pb2.WatchRequest(
            session_id=self.id,
            want=requests.want(state, contacts, bodies, False, sensors),
            minimum_interval=minimum_interval,
        )
        call = self._client._simulation.Watch(request, metadata=self._client._metadata)
        pieces: list[simulation_pb2.WatchResponse] = []
        try:
            while True:
                with translated():
                    piece = await call.read()
                if piece is grpc.aio.EOF:
                    return
                pieces.append(piece)
                if not piece.more:
                    yield join_watched(pieces)
                    pieces = []
        finally:
            call.cancel()

    async def state(
        self, *, contacts: bool = False, bodies: bool = False, sensors: bool = False
    ) -> StepAnswer:
        """The current state, with the certificates of the last step."""
        wanted = requests.want(True, contacts, bodies, False, sensors)
        m = await self._call(
            "GetState", simulation_pb2.GetStateRequest(session_id=self.id, want=wanted)
        )
        return StepAnswer.from_parts(m.state, m.certificates, m.contacts, self._names)

    async def set_state(
        self,
        q: ArrayLike | None = None,
        u: ArrayLike | None = None,
        controls: ArrayLike | None = None,
        *,
        worlds: ArrayLike | None = None,
    ) -> None:
        """Sets coordinates, velocities and controls; `worlds` is a mask, the others stay."""
        await self._call(
            "SetState",
            simulation_pb2.SetStateRequest(
                session_id=self.id,
                q=encode(q) if q is not None else None,
                u=encode(u) if u is not None else None,
                controls=encode(controls) if controls is not None else None,
                mask=requests.mask(worlds),
            ),
        )

    async def reset(self, keyframe: int | None = None, *, worlds: ArrayLike | None = None) -> None:
        """Resets to the reference pose or a keyframe; `worlds` is a mask, the others stay."""
        await self._call(
            "Reset",
            simulation_pb2.ResetRequest(
                session_id=self.id,
                keyframe=keyframe or 0,
                use_keyframe=keyframe is not None,
                mask=requests.mask(worlds),
            ),
        )

    async def contacts(self) -> list[Contacts]:
        """The contacts of the last step, one entry a world."""
        answer = await self._call(
            "GetContacts", simulation_pb2.GetContactsRequest(session_id=self.id)
        )
        return [Contacts.from_message(c) for c in answer.contacts]

    async def snapshot(
        self, label: str = "", *, transient: bool = False, data: bool = False
    ) -> simulation_pb2.SnapshotResponse:
        """Stores the full state that the next step depends on; durable on return."""
        answer: simulation_pb2.SnapshotResponse = await self._call(
            "Snapshot",
            simulation_pb2.SnapshotRequest(
                session_id=self.id, label=label, transient=transient, want_data=data
            ),
        )
        return answer

    async def restore(self, snapshot: str | Sequence[bytes]) -> None:
        """Restores a snapshot (its id, or the bytes it returned); resumes bit-exactly."""
        request = simulation_pb2.RestoreRequest(session_id=self.id)
        if isinstance(snapshot, str):
            request.snapshot_id = snapshot
        else:
            request.data.extend(snapshot)
        await self._call("Restore", request)

    async def fork(self, count: int = 1) -> list[Session]:
        """Makes new sessions that continue independently from the current state."""
        answer = await self._call(
            "Fork", simulation_pb2.ForkRequest(session_id=self.id, count=count)
        )
        return [Session(self._client, name, self._scene_id) for name in answer.session_ids]

    async def export_problem(self, world: int = 0) -> bytes:
        """The contact problem of the next step of one world, as text that `tribo solve` reads."""
        answer = await self._call(
            "ExportProblem", simulation_pb2.ExportProblemRequest(session_id=self.id, world=world)
        )
        return bytes(answer.data)

    async def heartbeat(self) -> None:
        """Renews the lease."""
        await self._call("Heartbeat", simulation_pb2.HeartbeatRequest(session_id=self.id))

    async def delete(self) -> None:
        """Ends the session."""
        await self._call("DeleteSession", simulation_pb2.DeleteSessionRequest(session_id=self.id))


class StepStream:
    """A stream of steps; see `tribo.StepStream`."""

    def __init__(
        self, session: Session, wanted: simulation_pb2.StepReturn, timeout: float | None
    ) -> None:
        self._session = session
        self._timeout = timeout
        self._names = session._names
        self._want = wanted
        self._tag = 0
        #: requests until the first answer shows that the session is here
        self._unanswered: list[simulation_pb2.StepStreamRequest] | None = []
        self._call = self._open()

    def _open(self) -> Any:
        client = self._session._client
        return client._simulation.StepStream(
            timeout=client._timeout if self._timeout is None else self._timeout,
            metadata=client._metadata,
        )

    async def _follow(self, error: NotFoundError) -> None:
        """Opens the stream again at the session's replica and resends the unanswered requests."""
        if self._unanswered is None:
            raise error
        self._session._follow(error)
        self._call = self._open()
        with translated():
            for request in self._unanswered:
                await self._call.write(request)

    async def __aenter__(self) -> Self:
        client = self._session._client
        # finds the session's replica first: a write to a stream that fails hides the reason
        await self._session.heartbeat()
        if self._session._client is not client:
            self._call.cancel()
            self._call = self._open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
        else:
            self.cancel()

    async def send(
        self,
        steps: int = 1,
        *,
        controls: ArrayLike | None = None,
        forces: ArrayLike | None = None,
    ) -> int:
        """Sends a step without waiting; returns the tag of its answer."""
        self._tag += 1
        step = requests.step(self._session.id, steps, controls, forces, self._want, "normal")
        request = simulation_pb2.StepStreamRequest(step=step, tag=self._tag)
        if self._unanswered is not None:
            self._unanswered.append(request)
        try:
            with translated():
                await self._call.write(request)
        except NotFoundError as error:
            await self._follow(error)
        return self._tag

    async def receive(self) -> StepAnswer:
        """The next answer, in the order of the sends."""
        pieces: list[simulation_pb2.StepResponse] = []
        while True:
            try:
                with translated():
                    answer = await self._call.read()
            except NotFoundError as error:
                await self._follow(error)
                continue
            if answer is grpc.aio.EOF:
                raise UnavailableError("the server ended the stream")
            self._unanswered = None
            pieces.append(answer.step)
            if not answer.more:
                return StepAnswer.from_message(join_steps(pieces), answer.tag, self._names)

    async def step(
        self,
        steps: int = 1,
        *,
        controls: ArrayLike | None = None,
        forces: ArrayLike | None = None,
    ) -> StepAnswer:
        """Sends a step and waits for its answer."""
        await self.send(steps, controls=controls, forces=forces)
        return await self.receive()

    async def close(self) -> None:
        """Waits for the pending answers and ends the stream; the session continues."""
        with translated():
            await self._call.done_writing()
            while await self._call.read() is not grpc.aio.EOF:
                pass

    def cancel(self) -> None:
        """Breaks the stream off; `on_disconnect` then determines the session's action."""
        self._call.cancel()
