"""Details of a failed call as attributes of the exception, also when they are damaged."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

import tribo
from tribo.errors import from_rpc_error


def _field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2, len(body)]) + body


def _detail(name: str, body: bytes) -> bytes:
    return _field(
        3, _field(1, b"type.googleapis.com/google.rpc." + name.encode()) + _field(2, body)
    )


class _Failure(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode, details: bytes) -> None:
        self._code, self._bytes = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return "no room"

    def trailing_metadata(self) -> Any:
        return [("grpc-status-details-bin", self._bytes)]


def test_details_become_attributes() -> None:
    details = (
        _detail("ErrorInfo", _field(1, b"RESOURCE_EXHAUSTED"))
        + _detail("BadRequest", _field(1, _field(1, b"poses[3].pose")))
        # 1 s and 500,000,000 ns
        + _detail("RetryInfo", _field(1, b"\x08\x01\x10\x80\xca\xb5\xee\x01"))
    )
    error = from_rpc_error(_Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, details))
    assert isinstance(error, tribo.ResourceExhaustedError)
    assert error.message == "no room"
    assert error.reason == "RESOURCE_EXHAUSTED"
    assert error.field == "poses[3].pose"
    assert error.retry_after == pytest.approx(1.5)


@pytest.mark.parametrize("details", [b"", b"\x1a", b"\x1a\x7f\x0a", b"\xff" * 40])
def test_damaged_details_do_not_hide_the_error(details: bytes) -> None:
    error = from_rpc_error(_Failure(grpc.StatusCode.NOT_FOUND, details))
    assert isinstance(error, tribo.NotFoundError)
