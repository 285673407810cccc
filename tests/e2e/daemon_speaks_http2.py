#!/usr/bin/env python3
"""The gRPC port frame by frame: the requirements of RFC 9113 and gRPC's protocol on a server,
sections named, by frames made by hand (tests/attack/frames.py)."""

from __future__ import annotations

import contextlib
import gzip
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "attack"))

import frames as h2
from common_report import Report

LIST = "/tribo.v1.Simulation/ListSessions"
report = Report()


class Daemon:
    """A daemon of its own, with options as TRIBOD_ variables."""

    def __init__(self, limit: int | None = None, **options: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        environment = {**os.environ, **{f"TRIBOD_{k.upper()}": v for k, v in options.items()}}

        def few() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

        folder = self.folder.name
        self.process = subprocess.Popen(
            [os.environ["TRIBOD"], "--grpc", "127.0.0.1:0", "--http", "", "--data", folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
            preexec_fn=few,
        )
        assert self.process.stdout is not None
        self.grpc = self.process.stdout.readline().split("grpc=")[1].split()[0]

    def stop(self, told: bool = False) -> int:
        """Ends it, unless the test has ended it; gives its status."""
        if not told:
            self.process.terminate()
        status = self.process.wait(60)
        self.folder.cleanup()
        return status


def ends(daemon: Daemon, told: bool = False) -> None:
    """A daemon has to end well."""
    status = daemon.stop(told)
    report.check(status == 0, f"the daemon ends with {status}")


def answer(
    address: str, block: bytes, *more: bytes, stream: int = 1, end: bool = False
) -> tuple[bytes, bytes, list[tuple[int, int, int, bytes]]]:
    """Sends a call; its header blocks, its data, and all frames until the stream has ended."""
    with h2.connect(address) as wire:
        flags = h2.END_HEADERS | (h2.END_STREAM if end else 0)
        wire.sendall(h2.frame(h2.HEADERS, flags, stream, block) + b"".join(more))
        data, until = b"", time.monotonic() + 10
        while time.monotonic() < until:
            wire.settimeout(max(0.01, until - time.monotonic()))
            try:
                piece = wire.recv(65536)
            except OSError:
                break
            data += piece
            found = h2.frames_of(data)
            over = [
                f
                for f in found
                if (f[2] == stream and (f[0] == h2.RST_STREAM or (f[0] < 2 and f[1] & 1)))
                or f[0] == h2.GOAWAY
            ]
            if over or not piece:
                break
        found = h2.frames_of(data)
        blocks = b"".join(f[3] for f in found if f[0] == h2.HEADERS and f[2] == stream)
        body = b"".join(f[3] for f in found if f[0] == h2.DATA and f[2] == stream)
        return blocks, body, found


# libnghttp2 codes strings by Huffman: this decoder of its output reads the statuses


def huffman_of(value: str) -> bytes:
    """Digits and lower-case letters as HPACK codes them (RFC 7541, appendix B)."""
    codes = {c: (i, 5) for i, c in enumerate("012aceiost")}
    codes.update({c: (0x14 + i, 6) for i, c in enumerate(" %-./3456789=A_bdfghlmnpru")})
    bits = "".join(format(codes[c][0], f"0{codes[c][1]}b") for c in value)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def has_status(blocks: bytes, code: int) -> bool:
    """Whether a grpc-status of this code is in the blocks."""
    text = str(code)
    coded = huffman_of(text)
    plain = bytes([len(text)]) + text.encode()
    packed = bytes([0x80 | len(coded)]) + coded
    name = huffman_of("grpc-status")
    at = blocks.find(name)
    value = blocks[at + len(name) :][:3] if at >= 0 else b""
    return value.startswith(plain) or (len(coded) < len(text) and value.startswith(packed))


def goaway_of(found: list[tuple[int, int, int, bytes]]) -> int | None:
    """The error code of the last GOAWAY."""
    codes = [struct.unpack(">I", f[3][4:8])[0] for f in found if f[0] == h2.GOAWAY]
    return codes[-1] if codes else None


def connection_error(address: str, wrong: bytes, codes: set[int], what: str) -> None:
    """Frames that must end the connection, with one of these codes."""
    with h2.connect(address) as wire:
        try:
            wire.sendall(wrong)
            code = goaway_of(h2.frames_of(h2.until_closed(wire)))
        except TimeoutError:
            report.check(False, f"{what}: the connection goes on")
            return
        except OSError:
            code = None
    report.check(code is None or code in codes, f"{what}: GOAWAY with {code}, not of {codes}")


def http2(address: str) -> None:
    """RFC 9113: errors of a connection and of a stream."""
    opened = h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.call_headers())
    ended = h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, h2.call_headers())
    word = struct.pack(">I", 0)
    # a header of 4 kB enters the table; each byte of the next block repeats it
    large = h2.call_headers() + b"\x40" + h2.text("bomb") + b"\x7f" + b"\xa1\x1e" + b"x" * 4000
    bomb = h2.frame(h2.HEADERS, 5, 1, large)
    bomb += h2.frame(h2.HEADERS, 5, 3, h2.call_headers() + b"\xbe" * 16000)
    cases: list[tuple[str, bytes, set[int]]] = [
        ("4.2 a frame that is too large", h2.frame(h2.DATA, 0, 1, b"x" * 16385), {6, 1}),
        ("4.3 a header block that is none", h2.frame(h2.HEADERS, 5, 1, b"\xff" * 8), {9}),
        ("4.3 a frame within a header block", h2.frame(h2.HEADERS, 0, 1, b"\x83") + opened, {1}),
        ("5.1 DATA on an idle stream", h2.frame(h2.DATA, 0, 1, b"x"), {1, 5}),
        ("5.1 RST_STREAM on an idle stream", h2.frame(h2.RST_STREAM, 0, 1, word), {1}),
        ("5.1 WINDOW_UPDATE on an idle stream", h2.frame(h2.WINDOW, 0, 1, b"\0\0\0\1"), {1}),
        ("5.1.1 an even stream", h2.frame(h2.HEADERS, 5, 2, h2.call_headers()), {1}),
        ("6.1 DATA on stream 0", h2.frame(h2.DATA, 0, 0, b"x"), {1}),
        ("6.1 padding longer than the frame", opened + h2.frame(h2.DATA, 8, 1, b"\x09x"), {1}),
        ("6.2 HEADERS on stream 0", h2.frame(h2.HEADERS, 5, 0, h2.call_headers()), {1}),
        ("6.3 PRIORITY on stream 0", h2.frame(h2.PRIORITY, 0, 0, word + b"\0"), {1}),
        ("6.4 RST_STREAM on stream 0", h2.frame(h2.RST_STREAM, 0, 0, word), {1}),
        ("6.4 RST_STREAM of 3 bytes", opened + h2.frame(h2.RST_STREAM, 0, 1, b"xxx"), {6}),
        ("6.5 SETTINGS on stream 1", h2.frame(h2.SETTINGS, 0, 1), {1}),
        ("6.5 SETTINGS of 5 bytes", h2.frame(h2.SETTINGS, 0, 0, b"xxxxx"), {6}),
        ("6.5 an acknowledgement with entries", h2.frame(h2.SETTINGS, 1, 0, b"x" * 6), {6}),
        ("6.5.2 ENABLE_PUSH of 2", h2.frame(h2.SETTINGS, 0, 0, b"\0\2\0\0\0\2"), {1}),
        ("6.5.2 a window beyond 2^31", h2.frame(h2.SETTINGS, 0, 0, b"\0\4\x80\0\0\0"), {3}),
        ("6.5.2 frames of 16383", h2.frame(h2.SETTINGS, 0, 0, b"\0\5\0\0\x3f\xff"), {1}),
        ("6.6 PUSH_PROMISE by a client", h2.frame(h2.PUSH, 4, 1, word), {1}),
        ("6.7 PING on stream 1", h2.frame(h2.PING, 0, 1, b"12345678"), {1}),
        ("6.7 PING of 6 bytes", h2.frame(h2.PING, 0, 0, b"123456"), {6}),
        ("6.8 GOAWAY on stream 1", h2.frame(h2.GOAWAY, 0, 1, word + word), {1}),
        ("6.9 a window opened by 0", h2.frame(h2.WINDOW, 0, 0, word), {1}),
        ("6.9 WINDOW_UPDATE of 3 bytes", h2.frame(h2.WINDOW, 0, 0, b"xxx"), {6}),
        ("6.9.1 a window beyond 2^31", h2.frame(h2.WINDOW, 0, 0, b"\x7f\xff\xff\xff"), {3}),
        ("6.10 CONTINUATION after nothing", h2.frame(h2.CONTINUATION, 4, 1, b"\x83"), {1}),
        ("6.10 CONTINUATION after END_HEADERS", ended + h2.frame(h2.CONTINUATION, 4, 1), {1}),
        ("7541 4.2 a table beyond the limit", h2.frame(h2.HEADERS, 5, 1, b"\x3f\xe1\xff\x03"), {9}),
        ("10.5.1 a block that decodes to 64 MB", bomb, {11}),
        ("7541 6.1 index 0", h2.frame(h2.HEADERS, 5, 1, b"\x80"), {9}),
    ]
    for what, wrong, codes in cases:
        connection_error(address, wrong, codes, what)

    # 3.4: bytes that are no preface
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as wire:
        wire.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            h2.until_closed(wire)
            report.check(True, "")
        except TimeoutError:
            report.check(False, "3.4 a connection without the preface goes on")

    streams = {
        "8.2.1 an upper-case name": h2.call_headers(more=h2.literal("Upper", "x")),
        "8.2.2 a header of the connection": h2.call_headers(more=h2.literal("connection", "close")),
        "8.2.2 te that is not trailers": h2.call_headers(more=h2.literal("te", "gzip")),
        "8.3 an unknown pseudo-header": h2.call_headers(more=h2.literal(":test", "x")),
        "8.3 a pseudo-header after others": h2.call_headers(more=b"\x83"),
        "8.3.1 no path": b"\x83\x86" + h2.literal("te", "trailers"),
        "8.3.1 no method": b"\x86\x84",
        "8.3.1 two methods": b"\x83\x83\x86\x84",
    }
    for what, block in streams.items():
        found = answer(address, block, end=True)[2]
        reset = [f for f in found if f[0] in (h2.RST_STREAM, h2.GOAWAY) and f[2] in (0, 1)]
        report.check(bool(reset), f"{what}: neither reset nor ended")
    for what, more, flags in (
        ("6.9.1 a stream's window of 0", h2.frame(h2.WINDOW, 0, 1, word), 0),
        ("5.1 DATA after the end", h2.frame(h2.DATA, 0, 1, b"x"), h2.END_STREAM),
        ("8.1.1 content-length that is wrong", h2.frame(h2.DATA, 1, 1, b"xx"), 0),
    ):
        extra = h2.literal("content-length", "9") if what.startswith("8.1.1") else b""
        found = answer(address, h2.call_headers(more=extra), more, end=bool(flags))[2]
        report.check(any(f[0] in (h2.RST_STREAM, h2.GOAWAY) for f in found), what)

    # unknown frames and flags pass; pings are answered with their bytes; padding is no message
    with h2.connect(address) as wire:
        wire.sendall(h2.frame(0x16, 0xFF, 0, b"unknown") + h2.frame(h2.PING, 0, 0, b"abcdefgh"))
        time.sleep(0.3)
        found = h2.frames_of(wire.recv(65536))
        report.check((h2.PING, h2.ACK, 0, b"abcdefgh") in found, "6.7 a ping is answered")
    padded = h2.frame(h2.DATA, h2.PADDED | h2.END_STREAM, 1, b"\x03" + h2.EMPTY_MESSAGE + b"\0\0\0")
    blocks, body, _ = answer(address, h2.call_headers(), padded)
    report.check(has_status(blocks, 0) and body[5:] == b"\x08\x01", "6.1 a padded message")


def goes_on(wire: h2.Wire, what: str) -> None:
    """A connection on which the next call must be answered."""
    try:
        report.check(wire.call()[5:] == b"\x08\x01", what)
    except OSError as error:
        report.check(False, f"{what}: {error}")


def closed_streams(address: str) -> None:
    """5.1: frames on ended streams. They are an error if the client ended the stream itself; if
    the server did, the client may not know yet."""
    data = h2.frame(h2.DATA, 0, 1, b"x")
    again = h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, h2.call_headers())
    empty = h2.frame(h2.DATA, 0, 1)
    for what, wrong in (("DATA", data), ("empty DATA", empty), ("HEADERS", again)):
        wire = h2.Wire(address)
        wire.call()
        wire.socket.sendall(wrong)
        try:
            code = goaway_of(h2.frames_of(h2.until_closed(wire.socket)))
        except TimeoutError:
            code = -1
        report.check(code == 5, f"5.1 {what} after a call: {code}")
    opened = h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.call_headers())
    reset = h2.frame(h2.RST_STREAM, 0, 1, struct.pack(">I", 8))
    connection_error(address, opened + reset + data, {5}, "5.1 DATA after a reset")
    third = h2.frame(h2.HEADERS, h2.END_HEADERS, 3, h2.call_headers())
    connection_error(address, third + again, {1, 5}, "5.1.1 a stream below the last")

    # the server refuses the message at its prefix: the rest of it is on its way
    wire = h2.Wire(address)
    wire.stream = 1
    huge = h2.frame(h2.DATA, 0, 1, b"\0\xff\xff\xff\xff")
    wire.socket.sendall(opened + huge)
    while wire.read_frame()[0] != h2.RST_STREAM:
        pass
    wire.socket.sendall(data * 5 + h2.frame(h2.DATA, h2.END_STREAM, 1, b"x"))
    goes_on(wire, "5.1 DATA on a stream that the server ended")

    # more calls than the server's settings allow, sent before the client has read these
    daemon = Daemon(limits_grpc_streams="2")
    wire = h2.Wire(daemon.grpc)
    for i in range(6):
        wire.socket.sendall(h2.frame(h2.HEADERS, h2.END_HEADERS, 2 * i + 1, h2.call_headers()))
        part = h2.EMPTY_MESSAGE[: 3 if i < 2 else 5]
        wire.socket.sendall(h2.frame(h2.DATA, 0, 2 * i + 1, part))
    refused = set()
    while len(refused) < 4:
        kind, _, stream, payload = wire.read_frame()
        if kind == h2.RST_STREAM and payload == struct.pack(">I", 7):
            refused.add(stream)
    wire.socket.sendall(h2.frame(h2.DATA, h2.END_STREAM, 11, b""))
    for i in range(2):
        rest = h2.frame(h2.DATA, h2.END_STREAM, 2 * i + 1, h2.EMPTY_MESSAGE[3:])
        wire.socket.sendall(rest)
    wire.stream = 13
    ended = 0
    while ended < 2:
        kind, flags, stream, _ = wire.read_frame()
        ended += kind == h2.HEADERS and bool(flags & h2.END_STREAM) and stream < 4
    goes_on(wire, "5.1.2 calls that are refused break no others")
    wire.socket.sendall(h2.frame(h2.DATA, h2.END_STREAM, 9, b""))
    goes_on(wire, "5.1.2 what follows a refused call is passed over")
    ends(daemon)


def grpc(address: str) -> None:
    """PROTOCOL-HTTP2.md of gRPC: framing, statuses, encodings, times."""
    last = h2.frame(h2.DATA, h2.END_STREAM, 1, h2.EMPTY_MESSAGE)
    every = [h2.frame(h2.DATA, 0, 1, h2.EMPTY_MESSAGE[i : i + 1]) for i in range(5)]
    every.append(h2.frame(h2.DATA, h2.END_STREAM, 1))
    packed = gzip.compress(b"")
    zipped = b"\1" + struct.pack(">I", len(packed)) + packed
    gzip_header = h2.literal("grpc-encoding", "gzip")
    bomb = gzip.compress(bytes(16 << 20), 9)
    bombs = [h2.frame(h2.DATA, 0, 1, b"\1" + struct.pack(">I", len(bomb)))]
    bombs += [h2.frame(h2.DATA, 0, 1, bomb[i : i + 16384]) for i in range(0, len(bomb), 16384)]
    head = h2.call_headers
    calls: list[tuple[str, bytes, list[bytes], int]] = [
        ("a call", head(), [last], 0),
        ("a message byte by byte", head(), every, 0),
        ("a path without a method", head("/x/y"), [last], 12),
        ("no message", head(), [h2.frame(h2.DATA, 1, 1)], 3),
        ("a prefix that is cut off", head(), [h2.frame(h2.DATA, 1, 1, b"\0\0")], 3),
        ("a message that is cut off", head(), [h2.frame(h2.DATA, 1, 1, b"\0\0\0\0\7abc")], 3),
        ("a flag that is none", head(), [h2.frame(h2.DATA, 1, 1, b"\7\0\0\0\0")], 3),
        ("a message of 4 GiB", head(), [h2.frame(h2.DATA, 0, 1, b"\0\xff\xff\xff\xff")], 8),
        ("compressed, not said how", head(), [h2.frame(h2.DATA, 1, 1, zipped)], 3),
        ("gzip", head(more=gzip_header), [h2.frame(h2.DATA, 1, 1, zipped)], 0),
        ("gzip, and a message that is not", head(more=gzip_header), [last], 0),
        ("gzip that is none", head(more=gzip_header), [h2.frame(h2.DATA, 1, 1, b"\1\0\0\0\1x")], 3),
        ("16 MiB of zeros in gzip", head(more=gzip_header), bombs, 8),
        ("an unknown encoding", head(more=h2.literal("grpc-encoding", "br")), [last], 12),
        ("a timeout that is none", head(more=h2.literal("grpc-timeout", "soon")), [last], 3),
        ("a timeout that has passed", head(more=h2.literal("grpc-timeout", "1n")), [last], 4),
        ("a timeout of hours", head(more=h2.literal("grpc-timeout", "99999999H")), [last], 0),
        ("a message that is late", head(more=h2.literal("grpc-timeout", "200m")), [], 4),
        ("headers of 20 kB", head(more=h2.literal("k", "v" * 100) * 150), [last], 8),
        ("loopback", head(LIST), [last], 0),
        ("a foreign authority", head(LIST, authority="evil.example"), [last], 16),
        ("user-info in the authority", head(LIST, authority="127.0.0.1:1@evil"), [last], 16),
    ]
    for name in ("forwarded", "x-forwarded-for", "x-real-ip", "via", "cf-connecting-ip"):
        strange = head(LIST, more=h2.literal(name, "for=192.0.2.1"))
        calls.append((f"{name}: a proxy stands between", strange, [last], 16))
    for what, block, more, code in calls:
        blocks, _, found = answer(address, block, *more)
        if not has_status(blocks, code):
            print([(f[0], f[1], f[3][:60]) for f in found])
        report.check(has_status(blocks, code), f"{what}: the status is not {code}")
    for what, block, status in (
        ("GET", head().replace(b"\x83", b"\x82", 1), b"405"),
        ("another type", head().replace(b"application/grpc", b"application/text"), b"415"),
    ):
        blocks = answer(address, block, last)[0]
        found = huffman_of(status.decode()) in blocks or status in blocks
        report.check(found, f"{what}: not {status!r}")
    # no gRPC: answered when the request is complete, or large
    get = head().replace(b"\x83", b"\x82", 1)
    lines = [h2.frame(h2.DATA, 0, 1, b"x" * 16384)] * 3
    for what, more, end in (("a GET", [], True), ("a large body", lines, False)):
        body = answer(address, get, *more, end=end)[1]
        report.check(b"speaks gRPC" in body, f"{what} is answered by {body!r}")


def limits() -> None:
    """Connections an address, descriptors, silent connections, age."""
    daemon = Daemon(limits_grpc_connections_per_address="5", limits_grpc_timeout_seconds="1")
    wires = [h2.Wire(daemon.grpc) for _ in range(5)]
    for wire in wires:
        wire.call()
    # all idle: the oldest closes for a sixth; all with a call: the sixth is refused
    sixth = h2.Wire(daemon.grpc)
    sixth.call()
    report.check(h2.until_closed(wires[0].socket) is not None, "an idle connection makes room")
    wires[0].socket.close()
    wires[0] = sixth
    for wire in wires:
        wire.socket.sendall(
            h2.frame(h2.HEADERS, h2.END_HEADERS, wire.stream + 2, h2.call_headers())
        )
    time.sleep(0.2)
    with h2.connect(daemon.grpc) as sixth:
        try:
            code = goaway_of(h2.frames_of(h2.until_closed(sixth)))
        except TimeoutError:
            code = -1
        report.check(code in (11, None), f"one connection too many: {code}")
    for wire in wires:
        wire.socket.close()
    host, _, port = daemon.grpc.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as silent:
        try:
            h2.until_closed(silent, 10)
            report.check(True, "")
        except TimeoutError:
            report.check(False, "a connection that says nothing stays")
    ends(daemon)

    daemon = Daemon(limit=64)
    crowd = []
    for _ in range(100):
        crowd.append(socket.create_connection(daemon.grpc.rsplit(":", 1), 10))
    time.sleep(0.5)
    for wire in crowd:
        wire.close()
    end, good = time.monotonic() + 15, False
    while not good and time.monotonic() < end:
        try:
            h2.Wire(daemon.grpc).call()
            good = True
        except OSError:
            time.sleep(0.2)
    report.check(good, "descriptors ran out once, and the port does not answer again")
    ends(daemon)

    daemon = Daemon(limits_grpc_age_seconds="1")
    wire = h2.Wire(daemon.grpc)
    wire.call()
    seen = []
    wire.socket.settimeout(10)
    try:
        while True:
            kind, _, _, payload = wire.read_frame()
            if kind == h2.GOAWAY:
                seen.append(struct.unpack(">II", payload[:8]))
    except OSError:
        pass
    report.check(seen == [(0x7FFFFFFF, 0), (1, 0)], f"a connection of age is asked to go by {seen}")
    ends(daemon)


def pings(wire: h2.Wire, seconds: float, answered: bool) -> int:
    """Reads for so long, or until the daemon closes; the pings seen, negative if it closed."""
    end, seen = time.monotonic() + seconds, 0
    try:
        while time.monotonic() < end:
            wire.socket.settimeout(max(0.01, end - time.monotonic()))
            kind, flags, _, payload = wire.read_frame()
            if kind == h2.PING and not flags & h2.ACK:
                seen += 1
                if answered:
                    wire.socket.sendall(h2.frame(h2.PING, h2.ACK, 0, payload))
    except TimeoutError:
        pass
    except ConnectionError:
        return -seen
    return seen


def keepalive() -> None:
    """A silent client is pinged; it stays if it answers, and goes 20 s later if it does not."""
    daemon = Daemon(limits_grpc_keepalive_seconds="1")
    alive, gone = h2.Wire(daemon.grpc), h2.Wire(daemon.grpc)
    for wire in (alive, gone):
        wire.call()
    seen: dict[str, int] = {}

    def listen(name: str, wire: h2.Wire, answered: bool) -> None:
        seen[name] = pings(wire, 25, answered)

    threads = [
        threading.Thread(target=listen, args=arguments)
        for arguments in (("alive", alive, True), ("gone", gone, False))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report.check(seen["gone"] == -1, f"a client that answers no ping: {seen['gone']} pings")
    report.check(seen["alive"] >= 4, f"a client that answers its pings: {seen['alive']} pings")
    alive.call()
    ends(daemon)


def drain() -> None:
    """SIGTERM: GOAWAY in two steps, the first before the second."""
    daemon = Daemon()
    wire = h2.Wire(daemon.grpc)
    wire.call()
    daemon.process.send_signal(signal.SIGTERM)
    data = h2.until_closed(wire.socket, 20)
    seen = [struct.unpack(">II", f[3][:8]) for f in h2.frames_of(wire.buffer + data) if f[0] == 7]
    report.check(seen == [(0x7FFFFFFF, 0), (1, 0)], f"a drain says {seen}")
    ends(daemon, told=True)


def deaf(address: str) -> None:
    """A client that sends on after its connection has ended is held back, and may read GOAWAY."""
    with h2.connect(address) as wire:
        wire.sendall(h2.frame(h2.DATA, 0, 0, b"x"))
        wire.settimeout(0.02)
        piece, sent, end = h2.frame(h2.DATA, 0, 1, b"x" * 16384) * 64, 0, time.monotonic() + 0.6
        while time.monotonic() < end:
            with contextlib.suppress(TimeoutError):
                sent += wire.send(piece)
        wire.settimeout(5)
        found = h2.frames_of(wire.recv(65536))
    report.check(goaway_of(found) == 1, f"a client that sends on reads {found}")
    # the buffers of both sockets, and three ticks of the daemon
    report.check(sent < 64 << 20, f"a connection that has ended took {sent} bytes")


def main() -> None:
    parts: list[Callable[[str], None]] = [http2, closed_streams, grpc, deaf]
    patience = threading.Thread(target=keepalive)  # beside the others, since it takes 25 s
    patience.start()
    daemon = Daemon(limits_message_bytes="8 MiB")
    for part in parts:
        part(daemon.grpc)
    h2.Wire(daemon.grpc).call()
    ends(daemon)
    limits()
    drain()
    patience.join()
    report.finish()


if __name__ == "__main__":
    main()
