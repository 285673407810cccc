"""The blocking client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable

import grpc

from tribo import requests, sources
from tribo.errors import translated
from tribo.function import Function, Program, choose
from tribo.grasp_types import GraspObject, GraspPose, GraspResult, Hand, Perturbation, Protocol
from tribo.progress import Progress
from tribo.session import GraspJob, Session, StepStream
from tribo.sources import Source
from tribo.types import Scene, SolveOptions, StepOptions
from tribo.v1 import (
    function_pb2,
    function_pb2_grpc,
    grasp_pb2,
    grasp_pb2_grpc,
    runs_pb2,
    runs_pb2_grpc,
    simulation_pb2,
    simulation_pb2_grpc,
    solve_pb2,
    solve_pb2_grpc,
)

__all__ = ["Client", "GraspJob", "Session", "StepStream", "connect"]

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
        self._function = requests.stub(function_pb2_grpc.FunctionStub, self._channel)

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
        """Closes the connection; sessions continue until their leases end."""
        for replica in self._replicas.values():
            replica.close()
        self._channel.close()

    def _replica(self, address: str) -> Client:
        """The client of another daemon of the fleet, with this client's options."""
        if address not in self._replicas:
            self._replicas[address] = Client(address, **self._options)
        return self._replicas[address]

    def _call(self, name: str, request: Any, timeout: float | None = None) -> Any:
        """A unary call of the service Simulation."""
        with translated():
            return getattr(self._simulation, name)(
                request,
                timeout=self._timeout if timeout is None else timeout,
                metadata=self._metadata,
            )

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
        data, name, others = sources.read_source(source, name, default)
        # several paths may refer to one file
        digests = {
            file: self.put_asset(*sources.content(path, file))
            for file, path in {file: path for path, file in others.items()}.items()
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
        overlaps: str = "keep",
        overlap_keyframe: str = "",
        balance_inertia: bool = False,
    ) -> Scene:
        """Uploads MJCF, URDF, OBJ or STL with every file it refers to, and compiles it.

        Args:
            source: a path, or the file's bytes (then `name` gives the format).
            name: file name; a path's own if empty.
            density: kg/m^3 for OBJ and STL.
            floating_base: URDF: the root link is free.
            overlaps: for shapes that overlap in the first pose: "keep" lets them collide, "ignore"
                excludes links of one mechanism and pairs that no joint separates, "error" raises
                `FailedPreconditionError`. `Scene.overlaps` lists the pairs that collide.
            overlap_keyframe: name or number of the first pose; "": the reference pose.
            balance_inertia: repair physically impossible moments of inertia by averaging them.
        """
        digest, name, files = self._upload(source, name, "model.xml")
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

    def geometry(self, scene: Scene | str, sha256: str) -> simulation_pb2.GetAssetResponse:
        """Triangles or heights of a scene's mesh, by the digest that `describe` tells."""
        with translated():
            answer: simulation_pb2.GetAssetResponse = self._simulation.GetAsset(
                simulation_pb2.GetAssetRequest(scene_id=_scene_id(scene), sha256=sha256),
                timeout=self._timeout,
                metadata=self._metadata,
            )
        return answer

    def scenes(self) -> Iterator[simulation_pb2.SceneInfo]:
        """The scenes that the server keeps, newest first."""
        return self._pages(
            self._simulation.ListScenes, simulation_pb2.ListScenesRequest(), "scenes"
        )

    def assets(self) -> Iterator[simulation_pb2.AssetInfo]:
        """The files that the server keeps, newest first."""
        return self._pages(
            self._simulation.ListAssets, simulation_pb2.ListAssetsRequest(), "assets"
        )

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
            scene: the result of `load`, or a scene id.
            worlds: number of copies, stepped in parallel.
            options: stepping options.
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
        return Session(self, answer.session_id, _scene_id(scene))

    def session(self, session_id: str) -> Session:
        """Attaches to an existing session."""
        return Session(self, session_id)

    def sessions(self) -> Iterator[simulation_pb2.SessionInfo]:
        """The caller's sessions, newest first."""
        return self._pages(
            self._simulation.ListSessions, simulation_pb2.ListSessionsRequest(), "sessions"
        )

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
        device: str = "",
        timeout: float | None = None,
        progress: bool | Callable[[int, int], None] = False,
    ) -> GraspJob:
        """Plays every grasp through the protocol; iterate over the job for its results.

        Args:
            target: the object to grasp.
            hand: the grasping hand.
            poses: of the hand's tool frame in the object's frame.
            protocol: approach, closing, lift, shakes, hold.
            perturbation: copies of every grasp with other poses, friction and mass.
            solve: tolerance and solver of the contact problems.
            confidence: of the interval of the success probability; 0: 0.95.
            priority: "low", "normal" or "high".
            label: for people; kept with the run.
            device: "" lets the server choose.
            timeout: s, for the whole job; None: the client's.
            progress: True shows a bar (tqdm's if installed); a function is called with
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
            device,
        )
        with translated():
            call = self._grasp.EvaluateGrasps(
                request,
                timeout=self._timeout if timeout is None else timeout,
                metadata=self._metadata,
            )
        return GraspJob(call, Progress(progress, "grasps"))

    def submit_grasps(
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
        """Leaves the grasps to the server as a job that outlives client and server; its row.

        Arguments are those of `evaluate_grasps`.
        """
        request = requests.evaluate_grasps(
            target,
            self._grasp_asset(target.source, target.name, "object.obj"),
            hand,
            self._grasp_asset(hand.source, hand.name, "hand.xml"),
            poses,
            protocol,
            perturbation,
            solve,
            confidence,
            "low",
            label,
            device,
        )
        with translated():
            answer = self._grasp.SubmitGrasps(
                grasp_pb2.SubmitGraspsRequest(grasps=request),
                timeout=self._timeout,
                metadata=self._metadata,
            )
        job: grasp_pb2.GraspJobInfo = answer.job
        return job

    def grasp_job(self, job_id: str) -> grasp_pb2.GraspJobInfo:
        """Progress of a job, by its id or a unique beginning of it."""
        with translated():
            answer = self._grasp.GetGraspJob(
                grasp_pb2.GetGraspJobRequest(id=job_id),
                timeout=self._timeout,
                metadata=self._metadata,
            )
        job: grasp_pb2.GraspJobInfo = answer.job
        return job

    def grasp_job_results(self, job_id: str, first: int = 0) -> Iterator[GraspResult]:
        """Results of a job that are stored so far, in the order of the poses."""
        while True:
            with translated():
                answer = self._grasp.GetGraspJob(
                    grasp_pb2.GetGraspJobRequest(
                        id=job_id, first_result=first, maximum_results=500
                    ),
                    timeout=self._timeout,
                    metadata=self._metadata,
                )
            if not answer.results:
                return
            first += len(answer.results)
            yield from map(GraspResult.from_message, answer.results)

    def grasp_jobs(self) -> Iterator[grasp_pb2.GraspJobInfo]:
        """The caller's grasp jobs, newest first."""
        return self._pages(self._grasp.ListGraspJobs, grasp_pb2.ListGraspJobsRequest(), "jobs")

    def cancel_grasp_job(self, job_id: str) -> grasp_pb2.GraspJobInfo:
        """Ends a running job; its results stay."""
        with translated():
            answer = self._grasp.CancelGraspJob(
                grasp_pb2.CancelGraspJobRequest(id=job_id),
                timeout=self._timeout,
                metadata=self._metadata,
            )
        job: grasp_pb2.GraspJobInfo = answer.job
        return job

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

    def program(self, source: str, *, file: str = "source.mo") -> Program:
        """Compiles a Modelica source; `file` is its name in messages."""
        request = function_pb2.CompileRequest(source=source, name=file)
        with translated():
            compiled: function_pb2.CompileResponse = self._function.Compile(
                request, timeout=self._timeout, metadata=self._metadata
            )
        return Program(self, source, file, compiled)

    def function(self, source: str, name: str = "", *, file: str = "source.mo") -> Function:
        """A function of a Modelica source, to be called with numpy arrays.

        Args:
            source: the text; `name` chooses one of several functions.
        """
        return choose(self.program(source, file=file).functions, name)

    def programs(self) -> list[function_pb2.CompileResponse]:
        """The Modelica programs that the daemon has in memory, last used first."""
        with translated():
            answer: function_pb2.ListResponse = self._function.List(
                function_pb2.ListRequest(), timeout=self._timeout, metadata=self._metadata
            )
        return list(answer.programs)

    def call_function(
        self, request: function_pb2.CallRequest
    ) -> Iterator[function_pb2.CallResponse]:
        """The messages of a call; `Function` makes arrays of them."""
        responses: Iterator[function_pb2.CallResponse] = self._function.Call(
            request, timeout=self._timeout, metadata=self._metadata
        )
        return responses

    def runs(self, scene: Scene | str = "") -> Iterator[runs_pb2.Run]:
        """Runs, newest first."""
        return self._pages(
            self._runs.ListRuns,
            runs_pb2.ListRunsRequest(scene_id=_scene_id(scene) if scene else ""),
            "runs",
        )

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
        """Stores a measurement; returns it with its id, its time and the server's statistics."""
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
        return self._pages(
            self._runs.ListBenchmarks, runs_pb2.ListBenchmarksRequest(name=name), "benchmarks"
        )

    def _pages(self, method: Any, request: Any, items: str) -> Iterator[Any]:
        """Iterates over the items of a paged list."""
        while True:
            with translated():
                page = method(request, timeout=self._timeout, metadata=self._metadata)
            yield from getattr(page, items)
            request.page_token = page.next_page_token
            if not request.page_token:
                return


def _scene_id(scene: Scene | str) -> str:
    return scene if isinstance(scene, str) else scene.id
