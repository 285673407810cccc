"""The blocking client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable

import grpc

from tribo import requests, sources
from tribo.arguments import (
    ConnectArguments,
    GraspArguments,
    SceneArguments,
    SessionArguments,
    takes,
)
from tribo.arrays import AnyArray
from tribo.errors import translated
from tribo.function import CLOSE_SECONDS, Function, Kept, Program, choose, fetched, name_of
from tribo.grasp_types import (
    GraspObject,
    GraspPose,
    GraspResult,
    GraspTrajectory,
    Hand,
    KeepTrajectories,
    StoredTrajectory,
)
from tribo.names import Names
from tribo.progress import Progress
from tribo.session import GraspJob, Session, StepStream
from tribo.shared import Connected, grasp_asset, grasp_assets, job_of
from tribo.sources import Source
from tribo.types import Scene, SolveOptions
from tribo.v1 import (
    function_pb2,
    grasp_pb2,
    runs_pb2,
    simulation_pb2,
    solve_pb2,
)

__all__ = ["Client", "GraspJob", "Session", "StepStream", "connect"]

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


@takes(requests.Connection.__init__)
def connect(address: str, **arguments: Unpack[ConnectArguments]) -> Client:
    """Connects to a daemon.

    Args:
        address: "HOST:PORT", or "unix:/path/of/socket".
    """
    return Client(address, **arguments)


class Client(Connected):
    """A connection to a daemon. Use it as a context manager, or close it.

    Its methods may be called from several threads at once. They raise `TriboError`s.
    """

    @takes(requests.Connection.__init__)
    def __init__(self, address: str, **arguments: Unpack[ConnectArguments]) -> None:
        """Connects to a daemon at an address."""
        super().__init__(address, grpc, **arguments)

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
        """Closes the connection; sessions continue until their leases end.

        Arrays that calls of functions kept are forgotten.
        """
        if self._keeps:
            with suppress(grpc.RpcError):
                self._function.Forget(
                    self._forget(()), timeout=CLOSE_SECONDS, metadata=self._metadata
                )
        for replica in self._replicas.values():
            replica.close()
        self._channel.close()

    def _call(self, method: Any, request: Any, timeout: float | None = None) -> Any:
        """A unary call, or one that streams answers."""
        with translated():
            return method(
                request,
                timeout=self._timeout if timeout is None else timeout,
                metadata=self._metadata,
            )

    # ---- server, assets, scenes ----

    def server_info(self) -> simulation_pb2.GetServerInfoResponse:
        """Version, devices, solvers and limits of the server."""
        answer: simulation_pb2.GetServerInfoResponse = self._call(
            self._simulation.GetServerInfo, simulation_pb2.GetServerInfoRequest()
        )
        return answer

    def put_asset(self, name: str, data: bytes) -> str:
        """Uploads a file in pieces and returns its SHA-256."""
        answer = self._call(self._simulation.PutAsset, requests.put_chunks(name, data))
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

    @takes(requests.create_scene)
    def load(self, source: Source, *, name: str = "", **arguments: Unpack[SceneArguments]) -> Scene:
        """Uploads MJCF, URDF, OBJ or STL with every file it refers to, and compiles it.

        Args:
            source: a path, or the file's bytes (then `name` gives the format).
            name: file name; a path's own if empty.
        """
        request = requests.create_scene(**arguments)
        request.sha256, request.path, files = self._upload(source, name, "model.xml")
        request.files.extend(files)
        return Scene.from_message(self._call(self._simulation.CreateScene, request))

    def describe(self, scene: Scene | str) -> simulation_pb2.GetSceneResponse:
        """Names, masses and joints of a scene."""
        answer: simulation_pb2.GetSceneResponse = self._call(
            self._simulation.GetScene,
            simulation_pb2.GetSceneRequest(scene_id=requests.scene_id(scene)),
        )
        return answer

    def geometry(self, scene: Scene | str, sha256: str) -> simulation_pb2.GetAssetResponse:
        """Triangles or heights of a scene's mesh, by the digest that `describe` returns."""
        answer: simulation_pb2.GetAssetResponse = self._call(
            self._simulation.GetAsset,
            simulation_pb2.GetAssetRequest(scene_id=requests.scene_id(scene), sha256=sha256),
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

    @takes(requests.create_session)
    def create_session(self, scene: Scene | str, **arguments: Unpack[SessionArguments]) -> Session:
        """Opens a session: worlds of one scene.

        Args:
            scene: the result of `load`, or a scene id.
        """
        request = requests.create_session(scene, **arguments)
        return Session(
            self, self._call(self._simulation.CreateSession, request).session_id, request.scene_id
        )

    def session(self, session_id: str) -> Session:
        """Attaches to an existing session."""
        return Session(self, session_id)

    def sessions(self) -> Iterator[simulation_pb2.SessionInfo]:
        """The caller's sessions, newest first."""
        return self._pages(
            self._simulation.ListSessions, simulation_pb2.ListSessionsRequest(), "sessions"
        )

    # ---- grasps, problems, runs ----

    @takes(requests.evaluate_grasps)
    def evaluate_grasps(
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
        """Plays every grasp through the protocol; iterate over the job for its results.

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
        self._add_grasp_assets(request, target, hand)
        call = self._call(self._grasp.EvaluateGrasps, request, timeout)
        return GraspJob(call, Progress(progress, "grasps"))

    @takes(requests.evaluate_grasps)
    def submit_grasps(
        self,
        target: GraspObject,
        hand: Hand,
        poses: Iterable[GraspPose],
        *,
        trajectories: KeepTrajectories | None = None,
        **arguments: Unpack[GraspArguments],
    ) -> grasp_pb2.GraspJobInfo:
        """Leaves the grasps to the server as a job that outlives client and server; its row.

        Args:
            target: the object to grasp.
            hand: the grasping hand.
            poses: of the hand's tool frame in the object's frame.
            trajectories: the trials whose trajectories are stored; None: none.
        """
        request = requests.grasps_of_job(target, hand, poses, trajectories, arguments)
        self._add_grasp_assets(request, target, hand)
        return job_of(
            self._call(self._grasp.SubmitGrasps, grasp_pb2.SubmitGraspsRequest(grasps=request))
        )

    def grasp_job(self, job_id: str) -> grasp_pb2.GraspJobInfo:
        """Progress of a job, by its id or a unique beginning of it."""
        return job_of(self._call(self._grasp.GetGraspJob, grasp_pb2.GetGraspJobRequest(id=job_id)))

    def grasp_job_results(self, job_id: str, first: int = 0) -> Iterator[GraspResult]:
        """Results of a job that are stored so far, in the order of the poses."""
        while True:
            request = grasp_pb2.GetGraspJobRequest(
                id=job_id, first_result=first, maximum_results=500
            )
            answer = self._call(self._grasp.GetGraspJob, request)
            if not answer.results:
                return
            first += len(answer.results)
            yield from map(GraspResult.from_message, answer.results)

    def grasp_jobs(self) -> Iterator[grasp_pb2.GraspJobInfo]:
        """The caller's grasp jobs, newest first."""
        return self._pages(self._grasp.ListGraspJobs, grasp_pb2.ListGraspJobsRequest(), "jobs")

    def cancel_grasp_job(self, job_id: str) -> grasp_pb2.GraspJobInfo:
        """Ends a running job; its results stay."""
        return job_of(
            self._call(self._grasp.CancelGraspJob, grasp_pb2.CancelGraspJobRequest(id=job_id))
        )

    def replay_grasp(
        self, job_id: str, grasp: int, *, copy: int = 0, interval: float = 0.0
    ) -> GraspTrajectory:
        """The trajectory of one trial of a stored job, with the same states as in the job.

        Args:
            job_id: of the job, or a unique beginning of it.
            grasp: index of the pose.
            copy: 0: the one that is not perturbed.
            interval: s between two frames; 0: 0.01.
        """
        request = grasp_pb2.ReplayGraspRequest(id=job_id, grasp=grasp, copy=copy, interval=interval)
        answer = self._call(self._grasp.ReplayGrasp, request)
        return GraspTrajectory.from_message(
            answer, Names.from_message(self.describe(answer.scene_id))
        )

    def grasp_trajectory(self, job_id: str, grasp: int, *, copy: int = 0) -> StoredTrajectory:
        """The stored trajectory of a trial, which its job was asked to keep.

        Args:
            job_id: of the job, or a unique beginning of it.
            grasp: index of the pose.
            copy: 0: the one that is not perturbed.
        """
        request = grasp_pb2.GetGraspTrajectoryRequest(id=job_id, grasp=grasp, copy=copy)
        with translated():
            answer = self._grasp.GetGraspTrajectory(
                request, timeout=self._timeout, metadata=self._metadata
            )
        return StoredTrajectory.from_message(
            answer, Names.from_message(self.describe(answer.scene_id))
        )

    def grasp_trajectories(self, job_id: str) -> Iterator[grasp_pb2.GraspTrajectoryInfo]:
        """The trials of a job whose trajectories are stored, in the order of the poses."""
        return self._pages(
            self._grasp.ListGraspTrajectories,
            grasp_pb2.ListGraspTrajectoriesRequest(id=job_id),
            "trajectories",
        )

    def _add_grasp_assets(
        self, request: grasp_pb2.EvaluateGraspsRequest, target: GraspObject, hand: Hand
    ) -> None:
        for thing, message, default in grasp_assets(request, target, hand):
            message.CopyFrom(grasp_asset(*self._upload(thing.source, thing.name, default)))

    def solve_problem(
        self, data: bytes, name: str, *, options: SolveOptions | None = None, solution: bool = False
    ) -> solve_pb2.SolveProblemResponse:
        """Solves a contact problem file (".dat" text or FCLIB ".hdf5", as `name` says)."""
        request = requests.solve_problem(data, name, options, solution)
        answer: solve_pb2.SolveProblemResponse = self._call(self._solve.SolveProblem, request)
        return answer

    def program(self, source: str, *, file: str = "source.mo") -> Program:
        """Compiles a Modelica source; `file` is its name in messages."""
        request = function_pb2.CompileRequest(source=source, name=file)
        compiled: function_pb2.CompileResponse = self._call(self._function.Compile, request)
        return Program(self, source, file, compiled)

    def function(self, source: str, name: str = "", *, file: str = "source.mo") -> Function:
        """A function of a Modelica source, `name` of several; calls take numpy arrays."""
        return choose(self.program(source, file=file).functions, name)

    def programs(self) -> list[function_pb2.CompileResponse]:
        """The Modelica programs that the daemon has in memory, last used first."""
        answer: function_pb2.ListResponse = self._call(
            self._function.List, function_pb2.ListRequest()
        )
        return list(answer.programs)

    def call_function(
        self, request: function_pb2.CallRequest
    ) -> Iterator[function_pb2.CallResponse]:
        """The messages of a call; `Function` makes arrays of them."""
        responses: Iterator[function_pb2.CallResponse] = self._function.Call(
            self._in_session(request), timeout=self._timeout, metadata=self._metadata
        )
        return responses

    def fetch(self, kept: Kept | str) -> AnyArray:
        """The content of an array that a call of a function kept."""
        with translated():
            return fetched(self._call(self._function.Fetch, self._fetch(name_of(kept))))

    def forget(self, *kept: Kept | str) -> int:
        """Forgets arrays that calls of functions kept, all of this client if none is named.

        Returns the number of arrays forgotten.
        """
        answer: function_pb2.ForgetResponse = self._call(
            self._function.Forget, self._forget(name_of(k) for k in kept)
        )
        return answer.arrays

    def kept(self) -> list[Kept]:
        """The arrays that the daemon keeps for this client, last used first."""
        answer: function_pb2.ListResponse = self._call(
            self._function.List, function_pb2.ListRequest(session=self._function_session)
        )
        return [Kept(a.name, shape=tuple(a.shape)) for a in answer.arrays]

    def runs(self, scene: Scene | str = "", *, fleet: bool = False) -> Iterator[runs_pb2.Run]:
        """Runs, newest first; with `fleet` those of all its daemons, from its database."""
        return self._pages(
            self._runs.ListRuns,
            runs_pb2.ListRunsRequest(
                scene_id=requests.scene_id(scene) if scene else "", fleet=fleet
            ),
            "runs",
        )

    def run(self, run_id: str) -> runs_pb2.GetRunResponse:
        """One run with its step summaries and events."""
        answer: runs_pb2.GetRunResponse = self._call(
            self._runs.GetRun, runs_pb2.GetRunRequest(run_id=run_id)
        )
        return answer

    def compare_runs(self, a: str, b: str) -> runs_pb2.CompareRunsResponse:
        """Two runs side by side, by their ids."""
        answer: runs_pb2.CompareRunsResponse = self._call(
            self._runs.CompareRuns, runs_pb2.CompareRunsRequest(run_id_a=a, run_id_b=b)
        )
        return answer

    def record_benchmark(self, benchmark: runs_pb2.Benchmark) -> runs_pb2.Benchmark:
        """Stores a measurement; returns it with its id, its time and the server's statistics."""
        answer = self._call(
            self._runs.RecordBenchmark, runs_pb2.RecordBenchmarkRequest(benchmark=benchmark)
        )
        kept: runs_pb2.Benchmark = answer.benchmark
        return kept

    def benchmarks(self, name: str = "", *, fleet: bool = False) -> Iterator[runs_pb2.Benchmark]:
        """Measurements, newest first; of one name, or all; with `fleet` of all its daemons."""
        request = runs_pb2.ListBenchmarksRequest(name=name, fleet=fleet)
        return self._pages(self._runs.ListBenchmarks, request, "benchmarks")

    def _pages(self, method: Any, request: Any, items: str) -> Iterator[Any]:
        """Iterates over the items of a paged list."""
        while True:
            page = self._call(method, request)
            yield from getattr(page, items)
            request.page_token = page.next_page_token
            if not request.page_token:
                return
