"""Objects of the asyncio client: sessions and streams of steps. See `tribo.session`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import grpc.aio

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
from tribo.names import Names
from tribo.parameters import Parameters, servo_gains, set_parameters
from tribo.pieces import join_steps, join_watched
from tribo.types import Contacts, StepAnswer
from tribo.v1 import simulation_pb2

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from tribo.aio.client import Client


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

    @takes(requests.step, requests.want)
    async def step(
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
        m = await self._call("Step", request, timeout)
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
    async def watch(
        self, *, minimum_interval: float = 0.0, **wanted: Unpack[WantArguments]
    ) -> AsyncIterator[simulation_pb2.WatchResponse]:
        """Follows a session stepped by other clients: its states, and events when it ends.

        Args:
            minimum_interval: s of wall time between states; 0: 1/30.
        """
        await self.heartbeat()  # finds the session's replica
        request = simulation_pb2.WatchRequest(
            session_id=self.id,
            want=requests.want(**wanted),
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

    @takes(requests.want)
    async def state(self, **wanted: Unpack[WantArguments]) -> StepAnswer:
        """The current state, with the certificates of the last step."""
        request = simulation_pb2.GetStateRequest(session_id=self.id, want=requests.want(**wanted))
        m = await self._call("GetState", request)
        return StepAnswer.from_parts(
            m.state, m.certificates, m.contacts, self._names, m.certificate_arrays
        )

    async def set_state(
        self,
        q: ArrayLike | None = None,
        u: ArrayLike | None = None,
        controls: ArrayLike | None = None,
        *,
        worlds: ArrayLike | None = None,
    ) -> None:
        """Sets coordinates, velocities and controls; `worlds` is a mask, the others stay."""
        await self._call("SetState", requests.set_state(self.id, q, u, controls, worlds))

    async def reset(self, keyframe: int | None = None, *, worlds: ArrayLike | None = None) -> None:
        """Resets to the reference pose or a keyframe; `worlds` is a mask, the others stay."""
        await self._call("Reset", requests.reset(self.id, keyframe, worlds))

    @takes(set_parameters)
    async def set_parameters(
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
            from_scene: what is not given goes back to the scene's values.
        """
        names, mask = await self.names(), requests.mask(worlds)
        if kp or kv:
            if "gain" in values or "bias" in values:
                raise ValueError("kp and kv are parts of gain and bias: give one of the two")
            if from_scene:
                await self._call("SetParameters", set_parameters(self.id, names, mask, True))
            servo = servo_gains(await self.parameters(), kp, kv)
            values["gain"], values["bias"] = servo["gain"], servo["bias"]
        request = set_parameters(self.id, names, mask, from_scene and not (kp or kv), **values)
        await self._call("SetParameters", request)

    async def parameters(self) -> Parameters:
        """Friction, masses and gains of every world."""
        request = simulation_pb2.GetParametersRequest(session_id=self.id)
        return Parameters.from_message(
            await self._call("GetParameters", request), await self.names()
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
        await self._call("Restore", requests.restore(self.id, snapshot))

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

    @takes(requests.step)
    async def send(self, steps: int = 1, **inputs: Unpack[InputArguments]) -> int:
        """Sends a step without waiting; returns the tag of its answer.

        Args:
            steps: how many.
        """
        self._tag += 1
        step = requests.step(self._session.id, steps, self._want, **inputs)
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

    @takes(requests.step)
    async def step(self, steps: int = 1, **inputs: Unpack[InputArguments]) -> StepAnswer:
        """Sends a step and waits for its answer.

        Args:
            steps: how many.
        """
        await self.send(steps, **inputs)
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
