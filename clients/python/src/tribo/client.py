"""The blocking client."""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable

import grpc
import numpy.typing as npt

from tribo import requests
from tribo.arrays import encode
from tribo.errors import UnavailableError, translated
from tribo.pieces import join_steps, join_watched
from tribo.progress import Progress
from tribo.types import (
    Contacts,
    GraspObject,
    GraspPose,
    GraspResult,
    GraspSummary,
    Hand,
    Perturbation,
    Protocol,
    Scene,
    SolveOptions,
    Source,
    StepAnswer,
    StepOptions,
)
from tribo.v1 import (
    grasp_pb2,
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

DEFAULT_MESSAGE_BYTES = 64 << 20


def connect(
    address: str,
    *,
    api_key: str | None = None,
    credentials: grpc.ChannelCredentials | None = None,
    timeout: float | None = None,
    attempts: int = 4,
    message_bytes: int = DEFAULT_MESSAGE_BYTES,
) -> Client:
    """Connects to a daemon.

    Args:
        address: "HOST:PORT", or "unix:/path/of/socket".
        api_key: sent with every call.
        credentials: for TLS; `grpc.ssl_channel_credentials()`, say. None: plain text.
        timeout: s, for every call that does not set its own; None: no limit.
        attempts: how often calls that are safe to repeat are tried; 1 switches retries off.
        message_bytes: largest message.
    """
    return Client(
        address,
        api_key=api_key,
        credentials=credentials,
        timeout=timeout,
        attempts=attempts,
        message_bytes=message_bytes,
    )


class Client:
    """A connection to a daemon. Use it as a context manager, or close it.

    Its methods may be called from several threads at once. They raise `TriboError`s.
    """

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
        options = requests.channel_options(message_bytes, attempts)
        self._channel = (
            grpc.secure_channel(address, credentials, options=options)
            if credentials is not None
            else grpc.insecure_channel(address, options=options)
        )
        self._metadata = requests.metadata(api_key)
        self._timeout = timeout
        self._simulation = requests.stub(simulation_pb2_grpc.SimulationStub, self._channel)
        self._grasp = requests.stub(grasp_pb2_grpc.GraspStub, self._channel)
        self._solve = requests.stub(solve_pb2_grpc.SolveStub, self._channel)
        self._runs = requests.stub(runs_pb2_grpc.RunsStub, self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; sessions live on until their leases end."""
        self._channel.close()

    # ---- server, assets, scenes ----

    def server_info(self) -> simulation_pb2.GetServerInfoResponse:
        """Version, devices, solvers and limits of the server."""
        with translated():
            answer: simulation_pb2.GetServerInfoResponse = self._simulation.GetServerInfo(
                simulation_pb2.GetServerInfoRequest(),
                timeout=self._timeout,
                metadata=self._metadata,
            )
        return answer

    def put_asset(self, name: str, data: bytes) -> str:
        """Uploads a file in pieces and returns its SHA-256."""
        with translated():
            answer = self._simulation.PutAsset(
                requests.put_chunks(name, data), timeout=self._timeout, metadata=self._metadata
            )
        return str(answer.sha256)

    def _upload(
        self, source: Source, name: str, default: str
    ) -> tuple[str, str, list[simulation_pb2.SceneFile]]:
        data, name, others = requests.read_source(source, name, default)
        # a file may be asked for under several paths
        digests = {
            file: self.put_asset(file.name, file.read_bytes()) for file in set(others.values())
        }
        uploaded = [(path, digests[file]) for path, file in others.items()]
        return self.put_asset(name, data), name, requests.scene_files(uploaded)

    def load(
        self,
        source: Source,
        *,
        name: str = "",
        density: float = 0.0,
        floating_base: bool = False,
    ) -> Scene:
        """Uploads MJCF, URDF, OBJ or STL with everything it refers to, and compiles it.

        Args:
            source: a path, or the file's bytes (then `name` tells the format).
            name: file name; a path's own if empty.
            density: kg/m^3 for OBJ and STL.
            floating_base: URDF: the root link is free.
        """
        digest, name, files = self._upload(source, name, "model.xml")
        request = simulation_pb2.CreateSceneRequest(
            sha256=digest, path=name, files=files, density=density, floating_base=floating_base
        )
        with translated():
            return Scene.from_message(
                self._simulation.CreateScene(
                    request, timeout=self._timeout, metadata=self._metadata
                )
            )

    def describe(self, scene: Scene | str) -> simulation_pb2.GetSceneResponse:
        """Names, masses and joints of a scene."""
        with translated():
            answer: simulation_pb2.GetSceneResponse = self._simulation.GetScene(
                simulation_pb2.GetSceneRequest(scene_id=_scene_id(scene)),
                timeout=self._timeout,
                metadata=self._metadata,
            )
        return answer

    def scenes(self) -> Iterator[simulation_pb2.SceneInfo]:
        """The scenes that the server keeps, newest first."""
        token = ""
        while True:
            with translated():
                page = self._simulation.ListScenes(
                    simulation_pb2.ListScenesRequest(page_token=token),
                    timeout=self._timeout,
                    metadata=self._metadata,
                )
            yield from page.scenes
            token = page.next_page_token
            if not token:
                return

    def assets(self) -> Iterator[simulation_pb2.AssetInfo]:
        """The files that the server keeps, newest first."""
        token = ""
        while True:
            with translated():
                page = self._simulation.ListAssets(
                    simulation_pb2.ListAssetsRequest(page_token=token),
                    timeout=self._timeout,
                    metadata=self._metadata,
                )
            yield from page.assets
            token = page.next_page_token
            if not token:
                return

    # ---- sessions ----

    def create_session(
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
        """Opens a session of `worlds` worlds.

        Args:
            scene: what `load` returned, or a scene id.
            worlds: how many copies are stepped side by side.
            options: how they are stepped.
            ttl: s; the lease, renewed by every call. 0: the server's default.
            on_disconnect: "keep", "pause" or "delete" when a stream breaks.
            keyframe: the state to start from; None: the reference pose.
            label: for people.
            device: "" lets the server choose.
        """
        request = requests.create_session(
            _scene_id(scene), worlds, options, ttl, on_disconnect, keyframe, label, device
        )
        with translated():
            answer = self._simulation.CreateSession(
                request, timeout=self._timeout, metadata=self._metadata
            )
        return Session(self, answer.session_id)

    def session(self, session_id: str) -> Session:
        """A session that exists already."""
        return Session(self, session_id)

    def sessions(self) -> Iterator[simulation_pb2.SessionInfo]:
        """The caller's sessions, newest first."""
        token = ""
        while True:
            with translated():
                page = self._simulation.ListSessions(
                    simulation_pb2.ListSessionsRequest(page_token=token),
                    timeout=self._timeout,
                    metadata=self._metadata,
                )
            yield from page.sessions
            token = page.next_page_token
            if not token:
                return

    # ---- grasps, problems, runs ----

    def evaluate_grasps(
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
        timeout: float | None = None,
        progress: bool | Callable[[int, int], None] = False,
    ) -> GraspJob:
        """Plays every grasp through the protocol; iterate over the job for results as they come.

        Args:
            target: what is grasped.
            hand: what grasps it.
            poses: of the hand's tool frame in the object's frame.
            protocol: approach, closing, lift, shakes, hold.
            perturbation: copies of every grasp with other poses, friction and mass.
            solve: how exact the contact problems are solved.
            confidence: of the interval of the success probability; 0: 0.95.
            priority: "low", "normal" or "high".
            label: for people; kept with the run.
            timeout: s, for the whole job; None: the client's.
            progress: True shows a bar (tqdm's where it is installed); a function is called with
                world steps done and in all.
        """
        object_asset = self._grasp_asset(target.source, target.name, "object.obj")
        hand_asset = self._grasp_asset(hand.source, hand.name, "hand.xml")
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
        )
        with translated():
            call = self._grasp.EvaluateGrasps(
                request,
                timeout=self._timeout if timeout is None else timeout,
                metadata=self._metadata,
            )
        return GraspJob(call, Progress(progress, "grasps"))

    def _grasp_asset(self, source: Source, name: str, default: str) -> grasp_pb2.GraspAsset:
        digest, name, files = self._upload(source, name, default)
        return grasp_pb2.GraspAsset(sha256=digest, path=name, files=files)

    def solve_problem(
        self, data: bytes, name: str, *, options: SolveOptions | None = None, solution: bool = False
    ) -> solve_pb2.SolveProblemResponse:
        """Solves a contact problem file (".dat" text or FCLIB ".hdf5", as `name` says)."""
        request = solve_pb2.SolveProblemRequest(
            data=data,
            name=name,
            options=(options or SolveOptions()).message(),
            want_solution=solution,
        )
        with translated():
            answer: solve_pb2.SolveProblemResponse = self._solve.SolveProblem(
                request, timeout=self._timeout, metadata=self._metadata
            )
        return answer

    def runs(self, scene: Scene | str = "") -> Iterator[runs_pb2.Run]:
        """What ran, newest first."""
        token = ""
        while True:
            with translated():
                page = self._runs.ListRuns(
                    runs_pb2.ListRunsRequest(
                        page_token=token, scene_id=_scene_id(scene) if scene else ""
                    ),
                    timeout=self._timeout,
                    metadata=self._metadata,
                )
            yield from page.runs
            token = page.next_page_token
            if not token:
                return

    def run(self, run_id: str) -> runs_pb2.GetRunResponse:
        """One run with its step summaries and events."""
        with translated():
            answer: runs_pb2.GetRunResponse = self._runs.GetRun(
                runs_pb2.GetRunRequest(run_id=run_id),
                timeout=self._timeout,
                metadata=self._metadata,
            )
        return answer

    def compare_runs(self, a: str, b: str) -> runs_pb2.CompareRunsResponse:
        """Two runs side by side, by their ids."""
        with translated():
            answer: runs_pb2.CompareRunsResponse = self._runs.CompareRuns(
                runs_pb2.CompareRunsRequest(run_id_a=a, run_id_b=b),
                timeout=self._timeout,
                metadata=self._metadata,
            )
        return answer

    def record_benchmark(self, benchmark: runs_pb2.Benchmark) -> runs_pb2.Benchmark:
        """Keeps a measurement; comes back with its id, time and what was left to the server."""
        with translated():
            answer = self._runs.RecordBenchmark(
                runs_pb2.RecordBenchmarkRequest(benchmark=benchmark),
                timeout=self._timeout,
                metadata=self._metadata,
            )
        kept: runs_pb2.Benchmark = answer.benchmark
        return kept

    def benchmarks(self, name: str = "") -> Iterator[runs_pb2.Benchmark]:
        """Measurements, newest first; of one name, or all."""
        token = ""
        while True:
            with translated():
                page = self._runs.ListBenchmarks(
                    runs_pb2.ListBenchmarksRequest(name=name, page_token=token),
                    timeout=self._timeout,
                    metadata=self._metadata,
                )
            yield from page.benchmarks
            token = page.next_page_token
            if not token:
                return


def _scene_id(scene: Scene | str) -> str:
    return scene if isinstance(scene, str) else scene.id


class GraspJob(Iterator[GraspResult]):
    """Results of a grasp job as they come. After the last one, `summary` is there.

    As a context manager it is cancelled at the end, if it has not finished by then.
    """

    def __init__(self, call: Any, progress: Progress) -> None:
        self._call = call
        self._progress = progress
        self.summary: GraspSummary | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> GraspResult:
        while True:
            try:
                with translated():
                    event = next(self._call)
            except BaseException:
                self._progress.close()
                raise
            kind = event.WhichOneof("event")
            if kind == "result":
                return GraspResult.from_message(event.result)
            if kind == "progress":
                self._progress.show(event.progress.world_steps_done, event.progress.world_steps)
            elif kind == "summary":
                self.summary = GraspSummary.from_message(event.summary)

    def cancel(self) -> None:
        """Stops the rest of the job on the server; what comes next is a `CancelledError`."""
        self._progress.close()
        self._call.cancel()


class Session:
    """Worlds that live on the server. As a context manager it is deleted at the end."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self.id = session_id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.delete()
        except Exception:
            # the first error is the one to be seen
            if error is None:
                raise

    def step(
        self,
        steps: int = 1,
        *,
        controls: npt.ArrayLike | None = None,
        forces: npt.ArrayLike | None = None,
        state: bool = True,
        contacts: bool = False,
        bodies: bool = False,
        single: bool = False,
        priority: str = "normal",
        timeout: float | None = None,
    ) -> StepAnswer:
        """Steps all worlds.

        Args:
            steps: how many.
            controls: (actuators) or (worlds, actuators), held until changed.
            forces: (dofs) or (worlds, dofs), generalized, N or N m, held until changed.
            state: return q and u.
            contacts: return the contacts of the last step.
            bodies: return poses and velocities of all bodies.
            single: return arrays as float32.
            priority: "low", "normal" or "high".
            timeout: s; None: the client's.
        """
        request = requests.step(
            self.id,
            steps,
            controls,
            forces,
            requests.want(state, contacts, bodies, single),
            priority,
        )
        with translated():
            return StepAnswer.from_message(
                self._client._simulation.Step(
                    request,
                    timeout=self._client._timeout if timeout is None else timeout,
                    metadata=self._client._metadata,
                )
            )

    def stream(
        self,
        *,
        state: bool = True,
        contacts: bool = False,
        bodies: bool = False,
        single: bool = False,
        timeout: float | None = None,
    ) -> StepStream:
        """Opens a stream on which steps go back and forth without a call for each."""
        return StepStream(self, requests.want(state, contacts, bodies, single), timeout)

    def watch(
        self,
        *,
        state: bool = True,
        contacts: bool = False,
        bodies: bool = False,
        minimum_interval: float = 0.0,
    ) -> Iterator[simulation_pb2.WatchResponse]:
        """Follows the session while others step it: states, and events when it ends.

        Args:
            state: q and u with every state.
            contacts: contacts with every state.
            bodies: poses and velocities of all bodies with every state.
            minimum_interval: s of wall time between states; 0: 1/30.
        """
        request = simulation_pb2.WatchRequest(
            session_id=self.id,
            want=requests.want(state, contacts, bodies, False),
            minimum_interval=minimum_interval,
        )
        pieces: list[simulation_pb2.WatchResponse] = []
        with translated():
            call = self._client._simulation.Watch(request, metadata=self._client._metadata)
        try:
            while True:
                with translated():
                    piece = next(call, None)
                if piece is None:
                    return
                pieces.append(piece)
                if not piece.more:
                    yield join_watched(pieces)
                    pieces = []
        finally:
            call.cancel()

    def state(self, *, contacts: bool = False, bodies: bool = False) -> StepAnswer:
        """The state as it is, with the certificates of the last step."""
        request = simulation_pb2.GetStateRequest(
            session_id=self.id, want=requests.want(True, contacts, bodies, False)
        )
        with translated():
            m = self._client._simulation.GetState(
                request, timeout=self._client._timeout, metadata=self._client._metadata
            )
        return StepAnswer.from_parts(m.state, m.certificates, m.contacts)

    def set_state(
        self,
        q: npt.ArrayLike | None = None,
        u: npt.ArrayLike | None = None,
        controls: npt.ArrayLike | None = None,
    ) -> None:
        """Sets coordinates, velocities and controls, of all worlds or of each."""
        request = simulation_pb2.SetStateRequest(
            session_id=self.id,
            q=encode(q) if q is not None else None,
            u=encode(u) if u is not None else None,
            controls=encode(controls) if controls is not None else None,
        )
        with translated():
            self._client._simulation.SetState(
                request, timeout=self._client._timeout, metadata=self._client._metadata
            )

    def reset(self, keyframe: int | None = None) -> None:
        """Back to the reference pose, or to a keyframe."""
        request = simulation_pb2.ResetRequest(
            session_id=self.id, keyframe=keyframe or 0, use_keyframe=keyframe is not None
        )
        with translated():
            self._client._simulation.Reset(
                request, timeout=self._client._timeout, metadata=self._client._metadata
            )

    def contacts(self) -> list[Contacts]:
        """The contacts of the last step, one entry a world."""
        with translated():
            answer = self._client._simulation.GetContacts(
                simulation_pb2.GetContactsRequest(session_id=self.id),
                timeout=self._client._timeout,
                metadata=self._client._metadata,
            )
        return [Contacts.from_message(c) for c in answer.contacts]

    def snapshot(
        self, label: str = "", *, transient: bool = False, data: bool = False
    ) -> simulation_pb2.SnapshotResponse:
        """Keeps everything that the next step depends on; durable once this returns."""
        request = simulation_pb2.SnapshotRequest(
            session_id=self.id, label=label, transient=transient, want_data=data
        )
        with translated():
            answer: simulation_pb2.SnapshotResponse = self._client._simulation.Snapshot(
                request, timeout=self._client._timeout, metadata=self._client._metadata
            )
        return answer

    def restore(self, snapshot: str | Sequence[bytes]) -> None:
        """Back to a snapshot (its id, or the bytes it returned); resumes bit-exactly."""
        request = simulation_pb2.RestoreRequest(session_id=self.id)
        if isinstance(snapshot, str):
            request.snapshot_id = snapshot
        else:
            request.data.extend(snapshot)
        with translated():
            self._client._simulation.Restore(
                request, timeout=self._client._timeout, metadata=self._client._metadata
            )

    def fork(self, count: int = 1) -> list[Session]:
        """New sessions that go on from here on their own."""
        request = simulation_pb2.ForkRequest(session_id=self.id, count=count)
        with translated():
            answer = self._client._simulation.Fork(
                request, timeout=self._client._timeout, metadata=self._client._metadata
            )
        return [Session(self._client, name) for name in answer.session_ids]

    def export_problem(self, world: int = 0) -> bytes:
        """The contact problem of the next step of one world, as text that `tribo solve` reads."""
        with translated():
            answer = self._client._simulation.ExportProblem(
                simulation_pb2.ExportProblemRequest(session_id=self.id, world=world),
                timeout=self._client._timeout,
                metadata=self._client._metadata,
            )
        return bytes(answer.data)

    def heartbeat(self) -> None:
        """Renews the lease."""
        with translated():
            self._client._simulation.Heartbeat(
                simulation_pb2.HeartbeatRequest(session_id=self.id),
                timeout=self._client._timeout,
                metadata=self._client._metadata,
            )

    def delete(self) -> None:
        """Ends the session."""
        with translated():
            self._client._simulation.DeleteSession(
                simulation_pb2.DeleteSessionRequest(session_id=self.id),
                timeout=self._client._timeout,
                metadata=self._client._metadata,
            )


class StepStream:
    """A stream of steps. `step` sends one and waits; `send` and `receive` keep several on the way.

    As a context manager it closes at the end, or is cancelled if something was raised.
    """

    def __init__(
        self, session: Session, wanted: simulation_pb2.StepReturn, timeout: float | None
    ) -> None:
        self._session_id = session.id
        self._want = wanted
        self._tag = 0
        self._outgoing: queue.SimpleQueue[simulation_pb2.StepStreamRequest | None] = (
            queue.SimpleQueue()
        )
        client = session._client
        with translated():
            self._call = client._simulation.StepStream(
                iter(self._outgoing.get, None),
                timeout=client._timeout if timeout is None else timeout,
                metadata=client._metadata,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.cancel()

    def send(
        self,
        steps: int = 1,
        *,
        controls: npt.ArrayLike | None = None,
        forces: npt.ArrayLike | None = None,
    ) -> int:
        """Sends a step without waiting; returns the tag that its answer will bear."""
        self._tag += 1
        request = requests.step(self._session_id, steps, controls, forces, self._want, "normal")
        self._outgoing.put(simulation_pb2.StepStreamRequest(step=request, tag=self._tag))
        return self._tag

    def receive(self) -> StepAnswer:
        """The next answer, in the order of the sends."""
        pieces: list[simulation_pb2.StepResponse] = []
        while True:
            with translated():
                answer = next(self._call, None)
            if answer is None:
                raise UnavailableError("the server ended the stream")
            pieces.append(answer.step)
            if not answer.more:
                return StepAnswer.from_message(join_steps(pieces), answer.tag)

    def step(
        self,
        steps: int = 1,
        *,
        controls: npt.ArrayLike | None = None,
        forces: npt.ArrayLike | None = None,
    ) -> StepAnswer:
        """Sends a step and waits for its answer."""
        self.send(steps, controls=controls, forces=forces)
        return self.receive()

    def close(self) -> None:
        """Waits for what is on the way and ends the stream; the session goes on."""
        self._outgoing.put(None)
        with translated():
            for _ in self._call:
                pass

    def cancel(self) -> None:
        """Breaks the stream off: what the session then does was said by `on_disconnect`."""
        self._call.cancel()
        self._outgoing.put(None)
