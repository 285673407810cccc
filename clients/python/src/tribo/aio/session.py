"""Objects of the asyncio client: sessions and streams of steps. See `tribo.session`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import grpc.aio

from tribo import requests
from tribo import session as blocking
from tribo.arguments import (
    InputArguments,
    ParameterArguments,
    StepArguments,
    WantArguments,
    like,
)
from tribo.arrays import ArrayLike
from tribo.errors import NotFoundError, UnavailableError, translated
from tribo.names import Names
from tribo.parameters import Parameters, servo_gains, set_parameters
from tribo.pieces import join_steps, join_watched
from tribo.shared import SessionOf, StreamOf
from tribo.types import Contacts, StepAnswer
from tribo.v1 import simulation_pb2

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from tribo.aio.client import Client


class Session(SessionOf):
    """Worlds on the server. Leaving its context manager deletes the session."""

    _client: Client

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
            return await self._client._call(self._method(name), request, timeout)
        except NotFoundError as error:
            self._follow(error)
            return await self._client._call(self._method(name), request, timeout)

    @like(blocking.Session.step)
    async def step(
        self,
        steps: int = 1,
        *,
        priority: str = "normal",
        timeout: float | None = None,
        **arguments: Unpack[StepArguments],
    ) -> StepAnswer:
        request = requests.step_and_want(self.id, steps, priority, **arguments)
        m = await self._call("Step", request, timeout)
        return StepAnswer.from_message(m, names=self._names)

    @like(blocking.Session.stream)
    def stream(
        self, *, timeout: float | None = None, **wanted: Unpack[WantArguments]
    ) -> StepStream:
        return StepStream(self, requests.want(**wanted), timeout)

    @like(blocking.Session.watch)
    async def watch(
        self, *, minimum_interval: float = 0.0, **wanted: Unpack[WantArguments]
    ) -> AsyncIterator[simulation_pb2.WatchResponse]:
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

    @like(blocking.Session.state)
    async def state(self, **wanted: Unpack[WantArguments]) -> StepAnswer:
        request = simulation_pb2.GetStateRequest(session_id=self.id, want=requests.want(**wanted))
        return self._state_of(await self._call("GetState", request))

    @like(blocking.Session.set_state)
    async def set_state(
        self,
        q: ArrayLike | None = None,
        u: ArrayLike | None = None,
        controls: ArrayLike | None = None,
        *,
        worlds: ArrayLike | None = None,
    ) -> None:
        await self._call("SetState", requests.set_state(self.id, q, u, controls, worlds))

    @like(blocking.Session.reset)
    async def reset(self, keyframe: int | None = None, *, worlds: ArrayLike | None = None) -> None:
        await self._call("Reset", requests.reset(self.id, keyframe, worlds))

    @like(blocking.Session.set_parameters)
    async def set_parameters(
        self,
        *,
        kp: Mapping[str, ArrayLike] | None = None,
        kv: Mapping[str, ArrayLike] | None = None,
        worlds: ArrayLike | None = None,
        from_scene: bool = False,
        **values: Unpack[ParameterArguments],
    ) -> None:
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

    @like(blocking.Session.parameters)
    async def parameters(self) -> Parameters:
        request = simulation_pb2.GetParametersRequest(session_id=self.id)
        return Parameters.from_message(
            await self._call("GetParameters", request), await self.names()
        )

    @like(blocking.Session.contacts)
    async def contacts(self) -> list[Contacts]:
        answer = await self._call(
            "GetContacts", simulation_pb2.GetContactsRequest(session_id=self.id)
        )
        return [Contacts.from_message(c) for c in answer.contacts]

    @like(blocking.Session.snapshot)
    async def snapshot(
        self, label: str = "", *, transient: bool = False, data: bool = False
    ) -> simulation_pb2.SnapshotResponse:
        answer: simulation_pb2.SnapshotResponse = await self._call(
            "Snapshot",
            simulation_pb2.SnapshotRequest(
                session_id=self.id, label=label, transient=transient, want_data=data
            ),
        )
        return answer

    @like(blocking.Session.restore)
    async def restore(self, snapshot: str | Sequence[bytes]) -> None:
        await self._call("Restore", requests.restore(self.id, snapshot))

    @like(blocking.Session.fork)
    async def fork(self, count: int = 1) -> list[Session]:
        answer = await self._call(
            "Fork", simulation_pb2.ForkRequest(session_id=self.id, count=count)
        )
        return [Session(self._client, name, self._scene_id) for name in answer.session_ids]

    @like(blocking.Session.export_problem)
    async def export_problem(self, world: int = 0) -> bytes:
        answer = await self._call(
            "ExportProblem", simulation_pb2.ExportProblemRequest(session_id=self.id, world=world)
        )
        return bytes(answer.data)

    @like(blocking.Session.heartbeat)
    async def heartbeat(self) -> None:
        await self._call("Heartbeat", simulation_pb2.HeartbeatRequest(session_id=self.id))

    @like(blocking.Session.delete)
    async def delete(self) -> None:
        await self._call("DeleteSession", simulation_pb2.DeleteSessionRequest(session_id=self.id))


class StepStream(StreamOf):
    """A stream of steps; see `tribo.StepStream`."""

    _session: Session

    def __init__(
        self, session: Session, wanted: simulation_pb2.StepReturn, timeout: float | None
    ) -> None:
        super().__init__(session, wanted, timeout)
        self._call = self._open()

    def _open(self) -> Any:
        client = self._session._client
        return client._simulation.StepStream(
            timeout=client._timeout if self._timeout is None else self._timeout,
            metadata=client._metadata,
        )

    async def _follow(self, error: NotFoundError) -> None:
        """Opens the stream again at the session's replica and resends the unanswered requests."""
        unanswered = self._to_resend(error)
        self._call = self._open()
        with translated():
            for request in unanswered:
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

    @like(blocking.StepStream.send)
    async def send(self, steps: int = 1, **inputs: Unpack[InputArguments]) -> int:
        request = self._next_request(steps, **inputs)
        try:
            with translated():
                await self._call.write(request)
        except NotFoundError as error:
            await self._follow(error)
        return self._tag

    @like(blocking.StepStream.receive)
    async def receive(self) -> StepAnswer:
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

    @like(blocking.StepStream.step)
    async def step(self, steps: int = 1, **inputs: Unpack[InputArguments]) -> StepAnswer:
        await self.send(steps, **inputs)
        return await self.receive()

    @like(blocking.StepStream.close)
    async def close(self) -> None:
        with translated():
            await self._call.done_writing()
            while await self._call.read() is not grpc.aio.EOF:
                pass

    @like(blocking.StepStream.cancel)
    def cancel(self) -> None:
        self._call.cancel()
