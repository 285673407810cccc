"""Objects of the blocking client: sessions, streams of steps, grasp jobs."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tribo import requests
from tribo.arguments import (
    InputArguments,
    ParameterArguments,
    StepArguments,
    WantArguments,
    takes,
)
from tribo.arrays import ArrayLike
from tribo.errors import NotFoundError, UnavailableError, translated
from tribo.grasp_types import GraspResult, GraspSummary
from tribo.names import Names
from tribo.parameters import Parameters, servo_gains, set_parameters
from tribo.pieces import join_steps, join_watched
from tribo.progress import Progress
from tribo.shared import SessionOf, StreamOf
from tribo.types import Contacts, StepAnswer
from tribo.v1 import simulation_pb2

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from tribo.client import Client


class GraspJob(Iterator[GraspResult]):
    """Iterates over results of a grasp job; `summary` is set after the last one.

    Leaving its context manager cancels a job that has not finished.
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
        """Stops the rest of the job on the server; the next result raises `CancelledError`."""
        self._progress.close()
        self._call.cancel()


class Session(SessionOf):
    """Worlds on the server. Leaving its context manager deletes the session."""

    _client: Client

    @property
    def scene_id(self) -> str:
        """The scene of the session's worlds."""
        if not self._scene_id:
            found = (s.scene_id for s in self._client.sessions() if s.session_id == self.id)
            self._scene_id = next(found, "")
            if not self._scene_id:
                raise NotFoundError(f"session {self.id} is none of the caller's")
        return self._scene_id

    @property
    def names(self) -> Names:
        """Names of bodies, joints and actuators; asked of the server once."""
        if self._found_names is None:
            self._found_names = Names.from_message(self._client.describe(self.scene_id))
        return self._found_names

    def _names(self) -> Names:
        return self.names

    def _call(self, name: str, request: Any, timeout: float | None = None) -> Any:
        try:
            return self._client._call(self._method(name), request, timeout)
        except NotFoundError as error:
            self._follow(error)
            return self._client._call(self._method(name), request, timeout)

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
            # the first error must reach the caller
            if error is None:
                raise

    @takes(requests.step, requests.want)
    def step(
        self,
        steps: int = 1,
        *,
        priority: str = "normal",
        timeout: float | None = None,
        **arguments: Unpack[StepArguments],
    ) -> StepAnswer:
        """Steps all worlds.

        Args:
            steps: how many.
            priority: "low", "normal" or "high".
            timeout: s; None: the client's.
        """
        request = requests.step_and_want(self.id, steps, priority, **arguments)
        m = self._call("Step", request, timeout)
        return StepAnswer.from_message(m, names=self._names)

    @takes(requests.want)
    def stream(
        self, *, timeout: float | None = None, **wanted: Unpack[WantArguments]
    ) -> StepStream:
        """Opens a stream that carries many steps in one call.

        Args:
            timeout: s, of the whole stream; None: the client's.
        """
        return StepStream(self, requests.want(**wanted), timeout)

    @takes(requests.want)
    def watch(
        self,
        *,
        minimum_interval: float = 0.0,
        evaluations: bool = False,
        **wanted: Unpack[WantArguments],
    ) -> Iterator[simulation_pb2.WatchResponse]:
        """Follows a session stepped by other clients: its states, and events when it ends.

        Args:
            minimum_interval: s of wall time between states; 0: 1/30.
            evaluations: every evaluation of the forces in the last step, with the contributions
                of triangles; of sessions by the volume law.
        """
        request = simulation_pb2.WatchRequest(
            session_id=self.id,
            want=requests.want(**wanted),
            minimum_interval=minimum_interval,
            evaluations=evaluations,
        )
        pieces: list[simulation_pb2.WatchResponse] = []
        self.heartbeat()  # finds the session's replica
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

    @takes(requests.want)
    def state(self, **wanted: Unpack[WantArguments]) -> StepAnswer:
        """The current state, with the certificates of the last step."""
        request = simulation_pb2.GetStateRequest(session_id=self.id, want=requests.want(**wanted))
        return self._state_of(self._call("GetState", request))

    def set_state(
        self,
        q: ArrayLike | None = None,
        u: ArrayLike | None = None,
        controls: ArrayLike | None = None,
        *,
        worlds: ArrayLike | None = None,
    ) -> None:
        """Sets coordinates, velocities and controls; `worlds` is a mask, the others stay."""
        self._call("SetState", requests.set_state(self.id, q, u, controls, worlds))

    def reset(self, keyframe: int | None = None, *, worlds: ArrayLike | None = None) -> None:
        """Resets to the reference pose or a keyframe; `worlds` is a mask, the others stay."""
        self._call("Reset", requests.reset(self.id, keyframe, worlds))

    @takes(set_parameters)
    def set_parameters(
        self,
        *,
        kp: Mapping[str, ArrayLike] | None = None,
        kv: Mapping[str, ArrayLike] | None = None,
        worlds: ArrayLike | None = None,
        from_scene: bool = False,
        **values: Unpack[ParameterArguments],
    ) -> None:
        """Gives worlds friction, masses and gains of their own; they stay over `reset`.

        Args:
            kp: {actuator: stiffness} of position servos, a number or one a world.
            kv: {actuator: damping} of servos.
            worlds: a mask, the others stay.
            from_scene: absent parameters return to the scene's values.
        """
        names, mask = self.names, requests.mask(worlds)
        if kp or kv:
            if "gain" in values or "bias" in values:
                raise ValueError("kp and kv are parts of gain and bias: give one of the two")
            if from_scene:
                self._call("SetParameters", set_parameters(self.id, names, mask, True))
            servo = servo_gains(self.parameters(), kp, kv)
            values["gain"], values["bias"] = servo["gain"], servo["bias"]
        request = set_parameters(self.id, names, mask, from_scene and not (kp or kv), **values)
        self._call("SetParameters", request)

    def parameters(self) -> Parameters:
        """Friction, masses and gains of every world."""
        request = simulation_pb2.GetParametersRequest(session_id=self.id)
        return Parameters.from_message(self._call("GetParameters", request), self.names)

    def contacts(self) -> list[Contacts]:
        """The contacts of the last step, one entry a world."""
        answer = self._call("GetContacts", simulation_pb2.GetContactsRequest(session_id=self.id))
        return [Contacts.from_message(c) for c in answer.contacts]

    def snapshot(
        self, label: str = "", *, transient: bool = False, data: bool = False
    ) -> simulation_pb2.SnapshotResponse:
        """Stores the full state that the next step depends on; durable on return."""
        request = simulation_pb2.SnapshotRequest(
            session_id=self.id, label=label, transient=transient, want_data=data
        )
        answer: simulation_pb2.SnapshotResponse = self._call("Snapshot", request)
        return answer

    def restore(self, snapshot: str | Sequence[bytes]) -> None:
        """Restores a snapshot (its id, or the bytes it returned); resumes bit-exactly."""
        self._call("Restore", requests.restore(self.id, snapshot))

    def fork(self, count: int = 1) -> list[Session]:
        """Makes new sessions that continue independently from the current state."""
        request = simulation_pb2.ForkRequest(session_id=self.id, count=count)
        answer = self._call("Fork", request)
        return [Session(self._client, name, self._scene_id) for name in answer.session_ids]

    def export_problem(self, world: int = 0) -> bytes:
        """The contact problem of the next step of one world, as text that `tribo solve` reads."""
        request = simulation_pb2.ExportProblemRequest(session_id=self.id, world=world)
        answer = self._call("ExportProblem", request)
        return bytes(answer.data)

    def heartbeat(self) -> None:
        """Renews the lease."""
        self._call("Heartbeat", simulation_pb2.HeartbeatRequest(session_id=self.id))

    def delete(self) -> None:
        """Ends the session."""
        self._call("DeleteSession", simulation_pb2.DeleteSessionRequest(session_id=self.id))


class StepStream(StreamOf):
    """A stream of steps. `step` sends one and waits; `send` and `receive` keep several in flight.

    Leaving its context manager closes it, or cancels it after an exception.
    """

    _session: Session

    def __init__(
        self, session: Session, wanted: simulation_pb2.StepReturn, timeout: float | None
    ) -> None:
        super().__init__(session, wanted, timeout)
        self._open()

    def _open(self) -> None:
        self._outgoing: queue.SimpleQueue[simulation_pb2.StepStreamRequest | None] = (
            queue.SimpleQueue()
        )
        client = self._session._client
        with translated():
            self._call = client._simulation.StepStream(
                iter(self._outgoing.get, None),
                timeout=client._timeout if self._timeout is None else self._timeout,
                metadata=client._metadata,
            )

    def _follow(self, error: NotFoundError) -> None:
        """Opens the stream again at the session's replica and resends the unanswered requests."""
        unanswered = self._to_resend(error)
        self._outgoing.put(None)
        self._open()
        for request in unanswered:
            self._outgoing.put(request)

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

    @takes(requests.step)
    def send(self, steps: int = 1, **inputs: Unpack[InputArguments]) -> int:
        """Sends a step without waiting; returns the tag of its answer.

        Args:
            steps: how many.
        """
        request = self._next_request(steps, **inputs)
        self._outgoing.put(request)
        return self._tag

    def receive(self) -> StepAnswer:
        """The next answer, in the order of the sends."""
        pieces: list[simulation_pb2.StepResponse] = []
        while True:
            try:
                with translated():
                    answer = next(self._call, None)
            except NotFoundError as error:
                self._follow(error)
                continue
            if answer is None:
                raise UnavailableError("the server ended the stream")
            self._unanswered = None
            pieces.append(answer.step)
            if not answer.more:
                return StepAnswer.from_message(join_steps(pieces), answer.tag, self._names)

    @takes(requests.step)
    def step(self, steps: int = 1, **inputs: Unpack[InputArguments]) -> StepAnswer:
        """Sends a step and waits for its answer.

        Args:
            steps: how many.
        """
        self.send(steps, **inputs)
        return self.receive()

    def close(self) -> None:
        """Waits for the pending answers and ends the stream; the session continues."""
        self._outgoing.put(None)
        with translated():
            for _ in self._call:
                pass

    def cancel(self) -> None:
        """Breaks the stream off; `on_disconnect` then determines the session's action."""
        self._call.cancel()
        self._outgoing.put(None)
