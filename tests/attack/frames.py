"""HTTP/2 frames by hand (RFC 9113, RFC 7541), right ones and wrong ones, over plain sockets."""

from __future__ import annotations

import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK, PADDED = 1, 4, 1, 8
HEALTH = "/grpc.health.v1.Health/Check"
#: A message without fields, behind its prefix.
EMPTY_MESSAGE = b"\0\0\0\0\0"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def text(value: str) -> bytes:
    """A string of HPACK, shorter than 127 bytes and not compressed."""
    return bytes([len(value)]) + value.encode()


def literal(name: str, value: str) -> bytes:
    """A header that enters no table."""
    return b"\0" + text(name) + text(value)


def call_headers(path: str = HEALTH, more: bytes = b"", authority: str = "localhost") -> bytes:
    """The header block of a gRPC call."""
    block = b"\x83\x86\x04" + text(path) + b"\x01" + text(authority)
    return block + literal("content-type", "application/grpc") + literal("te", "trailers") + more


def connect(address: str, timeout: float = 10) -> socket.socket:
    """A connection that has sent the preface and empty settings."""
    host, _, port = address.rpartition(":")
    wire = socket.create_connection((host, int(port)), timeout)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire.sendall(PREFACE + frame(SETTINGS, 0, 0))
    return wire


class Wire:
    """A well-behaved connection: one call at a time."""

    def __init__(self, address: str) -> None:
        self.socket = connect(address)
        self.stream = -1
        self.buffer = b""

    def read_frame(self) -> tuple[int, int, int, bytes]:
        """The next frame: kind, flags, stream, payload."""
        while True:
            if len(self.buffer) >= 9:
                size = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) >= 9 + size:
                    kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
                    payload, self.buffer = self.buffer[9 : 9 + size], self.buffer[9 + size :]
                    return kind, flags, stream, payload
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError("closed")
            self.buffer += piece

    def call(self, path: str = HEALTH, message: bytes = EMPTY_MESSAGE) -> bytes:
        """A unary call; gives the bytes of DATA."""
        self.stream += 2
        self.socket.sendall(
            frame(HEADERS, END_HEADERS, self.stream, call_headers(path))
            + frame(DATA, END_STREAM, self.stream, message)
        )
        data = b""
        while True:
            kind, flags, stream, payload = self.read_frame()
            if kind == SETTINGS and not flags & ACK:
                self.socket.sendall(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                self.socket.sendall(frame(PING, ACK, 0, payload))
            elif kind == GOAWAY or (kind == RST_STREAM and stream == self.stream):
                raise ConnectionError("the server ended the call")
            elif stream == self.stream and kind == DATA:
                data += payload
            if stream == self.stream and kind in (DATA, HEADERS) and flags & END_STREAM:
                return data


def until_closed(wire: socket.socket, seconds: float = 5) -> bytes:
    """All bytes until the server closes; raises TimeoutError if it does not."""
    end, data = time.monotonic() + seconds, b""
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        wire.settimeout(left)
        try:
            piece = wire.recv(65536)
        except ConnectionError:
            return data
        if not piece:
            return data
        data += piece


def frames_of(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """The whole frames in these bytes."""
    found = []
    while len(data) >= 9:
        size = int.from_bytes(data[:3], "big")
        if len(data) < 9 + size:
            break
        kind, flags, stream = struct.unpack(">BBI", data[3:9])
        found.append((kind, flags, stream, data[9 : 9 + size]))
        data = data[9 + size :]
    return found
