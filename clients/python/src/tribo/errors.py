"""Exceptions: one class per status of the server, each derived from `TriboError`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import grpc


class TriboError(Exception):
    """A call that failed.

    Attributes:
        code: the gRPC status code.
        message: description of the error, one line.
        field: the request field at fault, or "".
        reason: the server's own status name ("DIVERGED"), or "".
        retry_after: seconds after which to try again, or None.
        replica: the address of the daemon of a fleet that has the session, or "".
    """

    def __init__(
        self,
        message: str,
        code: grpc.StatusCode = grpc.StatusCode.UNKNOWN,
        *,
        field: str = "",
        reason: str = "",
        retry_after: float | None = None,
        replica: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.field = field
        self.reason = reason
        self.retry_after = retry_after
        self.replica = replica


class InvalidArgumentError(TriboError):
    """A field of the request is wrong; `field` names it."""


class NotFoundError(TriboError):
    """There is no such asset, scene, session, snapshot or run."""


class FailedPreconditionError(TriboError):
    """The call does not fit the state that the server or the session is in."""


class ResourceExhaustedError(TriboError):
    """A limit, quota or queue is full; `retry_after` is the retry delay (s)."""


class UnauthenticatedError(TriboError):
    """The API key is missing or not valid."""


class PermissionDeniedError(TriboError):
    """The API key's scope is too small for this call."""


class UnsupportedError(TriboError):
    """The server does not do this."""


class DeadlineExceededError(TriboError):
    """The call's timeout passed."""


class CancelledError(TriboError):
    """The call was cancelled."""


class UnavailableError(TriboError):
    """The server cannot be reached, or is stopping."""


class AbortedError(TriboError):
    """The request stopped before its end: a world diverged, or a device was lost."""


class DataLossError(TriboError):
    """Stored bytes are damaged."""


class InternalError(TriboError):
    """A fault of the server."""


_CLASSES: dict[grpc.StatusCode, type[TriboError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.OUT_OF_RANGE: InvalidArgumentError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.UNIMPLEMENTED: UnsupportedError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.CANCELLED: CancelledError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.ABORTED: AbortedError,
    grpc.StatusCode.DATA_LOSS: DataLossError,
    grpc.StatusCode.INTERNAL: InternalError,
}


# ---- google.rpc.Status, read by field numbers ----
#
# The details are three small messages whose layout never changes. Reading them here saves a
# dependency on googleapis-common-protos.


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Iterates over the fields of a message in wire order."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif kind == 2:
            size, at = _varint(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        elif kind == 1:
            at += 8
        elif kind == 5:
            at += 4
        else:
            return


def _text(value: int | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _metadata(body: bytes) -> dict[str, str]:
    """The map `metadata` of an ErrorInfo, field 3."""
    entries = [dict(_fields(e)) for n, e in _fields(body) if n == 3 and isinstance(e, bytes)]
    return {_text(e.get(1, b"")): _text(e.get(2, b"")) for e in entries}


def _read_details(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _fields(data):
        if number != 3 or not isinstance(value, bytes):
            continue
        detail = dict(_fields(value))
        name = _text(detail.get(1, b"")).rpartition("/")[2]
        body = detail.get(2, b"")
        if not isinstance(body, bytes):
            continue
        if name == "google.rpc.ErrorInfo":
            found["reason"] = _text(dict(_fields(body)).get(1, b""))
            found["replica"] = _metadata(body).get("replica", "")
        elif name == "google.rpc.BadRequest":
            violation = dict(_fields(body)).get(1, b"")
            if isinstance(violation, bytes):
                found["field"] = _text(dict(_fields(violation)).get(1, b""))
        elif name == "google.rpc.RetryInfo":
            delay = dict(_fields(body)).get(1, b"")
            if isinstance(delay, bytes):
                parts = dict(_fields(delay))
                seconds, nanos = parts.get(1, 0), parts.get(2, 0)
                if isinstance(seconds, int) and isinstance(nanos, int):
                    found["retry_after"] = seconds + nanos * 1e-9
    return found


def from_rpc_error(error: grpc.RpcError) -> TriboError:
    """The exception for a failed call, with the details that the server sent."""
    code = grpc.StatusCode.UNKNOWN
    message = str(error)
    details: dict[str, Any] = {}
    call: Any = error
    if hasattr(call, "code"):
        code = call.code()
        message = call.details() or code.name
        for key, value in call.trailing_metadata() or ():
            if key == "grpc-status-details-bin" and isinstance(value, bytes):
                # damaged details must not hide the error itself
                with contextlib.suppress(IndexError):
                    details = _read_details(value)
    return of_code(message, code, **details)


def of_code(message: str, code: grpc.StatusCode, **details: Any) -> TriboError:
    """The exception of a status code; the details are those of `TriboError`."""
    return _CLASSES.get(code, TriboError)(message, code, **details)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turns gRPC's errors into ours."""
    try:
        yield
    except grpc.RpcError as error:
        raise from_rpc_error(error) from error
