"""Parts that the blocking and the asyncio client share: they wait for no answer."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tribo import requests
from tribo.arguments import InputArguments
from tribo.errors import NotFoundError
from tribo.grasp_types import GraspObject, Hand
from tribo.names import Names
from tribo.types import StepAnswer
from tribo.v1 import (
    function_pb2,
    function_pb2_grpc,
    grasp_pb2,
    grasp_pb2_grpc,
    runs_pb2_grpc,
    simulation_pb2,
    simulation_pb2_grpc,
    solve_pb2_grpc,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from tribo.arguments import ConnectArguments


class Connected:
    """A channel to a daemon and the stubs of its services."""

    def __init__(self, address: str, module: Any, **arguments: Unpack[ConnectArguments]) -> None:
        """Connects by `module`, which is grpc or grpc.aio."""
        self._replicas: dict[str, Self] = {}
        self._arguments = arguments
        connection = requests.Connection(**arguments)
        self._channel = connection.channel(address, module)
        self._metadata = connection.metadata
        self._timeout = connection.timeout
        self._simulation = requests.stub(simulation_pb2_grpc.SimulationStub, self._channel)
        self._grasp = requests.stub(grasp_pb2_grpc.GraspStub, self._channel)
        self._solve = requests.stub(solve_pb2_grpc.SolveStub, self._channel)
        self._runs = requests.stub(runs_pb2_grpc.RunsStub, self._channel)
        self._function = requests.stub(function_pb2_grpc.FunctionStub, self._channel)
        self._function_session = uuid.uuid4().hex  # of the arrays that calls of functions keep
        self._keeps = False

    def _in_session(self, request: function_pb2.CallRequest) -> function_pb2.CallRequest:
        """The request, with the session that its kept arrays belong to."""
        if request.keep or any(value.kept for value in request.inputs):
            request.session = self._function_session
            self._keeps = True
        return request

    def _forget(self, names: Iterable[str]) -> function_pb2.ForgetRequest:
        return function_pb2.ForgetRequest(session=self._function_session, names=names)

    def _fetch(self, name: str) -> function_pb2.FetchRequest:
        return function_pb2.FetchRequest(session=self._function_session, name=name)

    def _replica(self, address: str) -> Self:
        """The client of another daemon of the fleet, with this client's options."""
        if address not in self._replicas:
            make: Any = type(self)
            self._replicas[address] = make(address, **self._arguments)
        return self._replicas[address]


class SessionOf:
    """The identity of a session, and its way to the replica that has it."""

    def __init__(self, client: Any, session_id: str, scene_id: str = "") -> None:
        self._client = client
        self._scene_id = scene_id
        self._found_names: Names | None = None
        self.id = session_id

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def _method(self, name: str) -> Any:
        """A method of the service Simulation, at the replica that had the session last."""
        return getattr(self._client._simulation, name)

    def _follow(self, error: NotFoundError) -> None:
        """Turns to the replica that has the session; raises an error that names none."""
        if not error.replica:
            raise error
        self._client = self._client._replica(error.replica)

    def _names(self) -> Names:
        raise NotImplementedError

    def _state_of(self, answer: simulation_pb2.GetStateResponse) -> StepAnswer:
        return StepAnswer.from_parts(
            answer.state,
            answer.certificates,
            answer.contacts,
            self._names,
            answer.certificate_arrays,
        )


class StreamOf:
    """Tags and unanswered requests of a stream of steps."""

    def __init__(
        self, session: SessionOf, wanted: simulation_pb2.StepReturn, timeout: float | None
    ) -> None:
        self._session = session
        self._timeout = timeout
        self._names = session._names
        self._want = wanted
        self._tag = 0
        #: requests until the first answer shows that the session is here
        self._unanswered: list[simulation_pb2.StepStreamRequest] | None = []

    def _next_request(
        self, steps: int, **inputs: Unpack[InputArguments]
    ) -> simulation_pb2.StepStreamRequest:
        """The request of a step under a new tag; it is unanswered."""
        self._tag += 1
        step = requests.step(self._session.id, steps, self._want, **inputs)
        request = simulation_pb2.StepStreamRequest(step=step, tag=self._tag)
        if self._unanswered is not None:
            self._unanswered.append(request)
        return request

    def _to_resend(self, error: NotFoundError) -> list[simulation_pb2.StepStreamRequest]:
        """Turns to the session's replica; raises the error where an answer has come before."""
        if self._unanswered is None:
            raise error
        self._session._follow(error)
        return self._unanswered


def grasp_assets(
    request: grasp_pb2.EvaluateGraspsRequest, target: GraspObject, hand: Hand
) -> Iterator[tuple[GraspObject | Hand, grasp_pb2.GraspAsset, str]]:
    """Object and hand: the thing, its place in a request, and the name of a file without one."""
    yield target, request.object.asset, "object.obj"
    yield hand, request.hand.asset, "hand.xml"


def grasp_asset(
    digest: str, name: str, files: list[simulation_pb2.SceneFile]
) -> grasp_pb2.GraspAsset:
    """An uploaded file and its further files on the wire."""
    return grasp_pb2.GraspAsset(sha256=digest, path=name, files=files)


def job_of(answer: Any) -> grasp_pb2.GraspJobInfo:
    """The row of a job in the answer of SubmitGrasps, GetGraspJob or CancelGraspJob."""
    job: grasp_pb2.GraspJobInfo = answer.job
    return job
