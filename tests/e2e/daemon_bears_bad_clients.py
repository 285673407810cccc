#!/usr/bin/env python3
"""Clients that stall, dribble, flood or send nonsense: each gets a status or loses its connection,
other clients are not affected, and memory stays bounded."""

from __future__ import annotations

import gzip
import os
import random
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import grpc
from common_daemon import BALL, Report, make_models, scratch
from common_process import resident_bytes

import tribo
from tribo.v1 import common_pb2, grasp_pb2, grasp_pb2_grpc, simulation_pb2, simulation_pb2_grpc

MESSAGE_BYTES = 4 << 20
TIMEOUT_SECONDS = 2  # of the daemon under test, for a request to arrive
#: AddressSanitizer keeps freed memory, and shadows all of it.
SANITIZED = 8 if "ASAN_OPTIONS" in os.environ else 1
#: Bound on the growth of the daemon's peak memory: two messages that are being read, two that are
#: unpacked, and free memory that the allocator keeps.
PEAK_BYTES = (224 << 20) * SANITIZED
STALLED_BYTES = (48 << 20) * SANITIZED
PINGS, PING_SECONDS = 4, 10


def peak_bytes(pid: int) -> int:
    """The most memory that the process ever held."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) * 1024


def dial(address: str, receive: int = 0) -> socket.socket:
    """A connection, with a small receive buffer if asked."""
    host, _, port = address.rpartition(":")
    made = socket.socket()
    if receive:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    made.settimeout(30)
    made.connect((host, int(port)))
    return made


def read_all(wire: socket.socket, seconds: float = 30) -> bytes:
    """Bytes until the other end closes; raises TimeoutError if it does not."""
    end = time.monotonic() + seconds
    data = b""
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


def request(method: str, body: bytes, *headers: str) -> bytes:
    """A Connect request."""
    head = [f"POST /tribo.v1.{method} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, *headers, "", ""]).encode() + body


# ---- readers that stall ----


def small_window(daemon: tribo.Daemon) -> grpc.Channel:
    """A connection of its own whose window does not grow."""
    options = [("grpc.http2.bdp_probe", 0), ("grpc.use_local_subchannel_pool", 1)]
    return grpc.insecure_channel(daemon.grpc, options)


def stalled_steps(channel: grpc.Channel, session_id: str) -> grpc.RpcContext:
    """A StepStream whose answers are not read, with far more steps requested than fit."""
    want = simulation_pb2.StepReturn(state=True, bodies=True)

    def ask() -> Iterator[simulation_pb2.StepStreamRequest]:
        for tag in range(100000):
            step = simulation_pb2.StepRequest(session_id=session_id, want=want)
            yield simulation_pb2.StepStreamRequest(step=step, tag=tag)

    return simulation_pb2_grpc.SimulationStub(channel).StepStream(ask())


def stalled_watch(channel: grpc.Channel, session_id: str) -> grpc.RpcContext:
    """A Watch whose states are not read."""
    ask = simulation_pb2.WatchRequest(
        session_id=session_id,
        want=simulation_pb2.StepReturn(state=True, bodies=True),
        minimum_interval=0.0001,
    )
    return simulation_pb2_grpc.SimulationStub(channel).Watch(ask)


def stalled_http_watch(daemon: tribo.Daemon, session_id: str) -> socket.socket:
    """The same over HTTP, on a socket that is not read."""
    body = (
        b'{"sessionId":"' + session_id.encode() + b'","want":{"state":true,"bodies":true},'
        b'"minimumInterval":0.0001}'
    )
    envelope = struct.pack(">BI", 0, len(body)) + body
    wire = dial(daemon.http, 4096)
    wire.sendall(request("Simulation/Watch", envelope, "Content-Type: application/connect+json"))
    head = wire.recv(16)
    if not head.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(f"the watch is answered by {head!r}")
    return wire


def grasp_request(
    client: tribo.Client, folder: Path, poses: int
) -> grasp_pb2.EvaluateGraspsRequest:
    """Many short grasps beside the mug."""
    assets = {}
    for name in ("mug.obj", "hand.xml"):
        digest = client.put_asset(name, (folder / name).read_bytes())
        assets[name] = grasp_pb2.GraspAsset(sha256=digest, path=name)
    return grasp_pb2.EvaluateGraspsRequest(
        object=grasp_pb2.GraspObject(asset=assets["mug.obj"], convex=True),
        hand=grasp_pb2.GraspHand(
            asset=assets["hand.xml"], closing_actuators=["close_left", "close_right"]
        ),
        poses=[
            grasp_pb2.GraspPose(
                name=f"grasp {i} " + "x" * 1000, pose=common_pb2.Pose(position=[0, 0, 1])
            )
            for i in range(poses)
        ],
        protocol=grasp_pb2.GraspProtocol(
            close_seconds=0.004, lift=0.001, lift_seconds=0.004, hold_seconds=0.004
        ),
    )


def step_times(session: tribo.Session, count: int) -> list[float]:
    """How long single steps take, sorted."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        session.step(timeout=60)
        times.append(time.perf_counter() - began)
    return sorted(times)


def stalled_readers(report: Report, daemon: tribo.Daemon, folder: Path) -> None:
    """Readers that stall on every kind of stream, while another client steps."""
    with daemon.connect(timeout=60) as client:
        scene = client.load(BALL, name="ball.xml")
        big = client.create_session(scene, worlds=200)
        watched = client.create_session(scene, worlds=200)
        mine = client.create_session(scene)
        watched.step(state=False)
        usual = step_times(mine, 300)
        before = resident_bytes(daemon.pid)
        channels = [small_window(daemon) for _ in range(3)]
        calls = [
            stalled_steps(channels[0], big.id),
            stalled_watch(channels[1], watched.id),
            grasp_pb2_grpc.GraspStub(channels[2]).EvaluateGrasps(
                grasp_request(client, folder, 300)
            ),
        ]
        wires = [stalled_http_watch(daemon, watched.id) for _ in range(3)]
        most = 0
        for _ in range(300):
            watched.step(state=False)
            most = max(most, resident_bytes(daemon.pid) - before)
        slow = step_times(mine, 300)
        most = max(most, resident_bytes(daemon.pid) - before)
        print(
            f"step beside readers that stall: median {1e3 * slow[150]:.2f} ms, "
            f"alone {1e3 * usual[150]:.2f} ms; memory grew by {most / 2**20:.1f} MiB"
        )
        report.check(most < STALLED_BYTES, f"memory grew by {most} bytes")
        report.check(slow[150] < 10 * usual[150] + 0.02, "others are slowed down")
        # the stalled stream was not worked off: its reader decides how fast it goes
        steps = client.session(big.id).state().steps
        report.check(steps < 5000, f"{steps} steps of a stream that nobody reads")
        for wire in wires:
            wire.close()
        report.equal([c.is_active() for c in calls], [True] * 3, "calls that stall")
        for channel in channels:
            channel.close()
        # gone clients leave nothing behind
        report.check(awaits(lambda: calls_in_flight(daemon) <= 1), "calls are left in flight")
        for session in (big, watched, mine):
            session.delete()


def calls_in_flight(daemon: tribo.Daemon) -> int:
    """The metrics page."""
    with closing(dial(daemon.http)) as wire:
        wire.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        found = re.search(rb"\ntribod_calls_in_flight (\d+)", read_all(wire))
    return int(found[1]) if found else -1


def awaits(true: Callable[[], bool], seconds: float = 30) -> bool:
    """Whether it comes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.05)
    return False


# ---- requests that never end ----


def dribble(wire: socket.socket, head: bytes, seconds: float) -> float:
    """Sends a byte now and then; after how many seconds the other end closed, or 0."""
    began = time.monotonic()
    wire.sendall(head)
    while time.monotonic() - began < seconds:
        try:
            wire.sendall(b"a")
            wire.settimeout(0.2)
            if wire.recv(4096) == b"":
                return time.monotonic() - began
        except (TimeoutError, socket.timeout):
            continue
        except OSError:
            return time.monotonic() - began
    return 0


def slowloris(report: Report, daemon: tribo.Daemon) -> None:
    """Connections that do not come to the point are cut off, and do not keep others out."""
    post = b"POST /tribo.v1.Simulation/GetServerInfo HTTP/1.1\r\nHost: localhost\r\n"
    heads = {
        "a request line": b"GE",
        "a header": b"GET /livez HTTP/1.1\r\nX: ",
        "a body": post + b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{",
    }
    for what, head in heads.items():
        with closing(dial(daemon.http)) as wire:
            after = dribble(wire, head, 20)
        report.check(0 < after < 15, f"{what} byte by byte was cut off after {after:.1f} s")
    silent = [dial(daemon.http) for _ in range(50)]
    silent += [dial(daemon.grpc) for _ in range(200)]
    with daemon.connect(timeout=60) as client:
        report.equal(client.server_info().draining, False, "beside silent connections")
    ended = 0
    for wire in silent[:50]:
        with closing(wire):
            try:
                read_all(wire, 20)
                ended += 1
            except (TimeoutError, socket.timeout):
                pass
    report.equal(ended, 50, "silent HTTP connections that are closed")
    for wire in silent[50:]:
        # some are left half-open, others broken off
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.close()


# ---- messages ----


def varint(value: int) -> bytes:
    """As protobuf writes it."""
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, data: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


BOMB = 1 << 20


def messages() -> dict[str, tuple[str, bytes, set[str]]]:
    """Requests, their methods, and the accepted outcomes."""
    nested = b""
    for _ in range(20000):
        nested = field(5, nested) if len(nested) < BOMB else nested
    noise = random.Random(3).randbytes(10000)
    bad = {"INVALID_ARGUMENT"}
    much = {"RESOURCE_EXHAUSTED"}
    either = {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "OK", "NOT_FOUND"}
    info, scene, grasps = (
        "Simulation/GetServerInfo",
        "Simulation/CreateScene",
        "Grasp/EvaluateGrasps",
    )
    return {
        "a length that is not there": (scene, b"\x12\x7f", bad),
        "a number that does not end": (info, b"\xff" * 20, bad),
        "a field that is cut off": (scene, field(2, b"x" * 100)[:-1], bad),
        "a wrong wire type": (scene, b"\x11" + b"\0" * 8, either),
        "text that is no UTF-8": (scene, field(2, b"\xff\xfe"), bad | {"OK"}),
        "noise": (scene, noise, bad),
        "1 MiB of unknown numbers": (info, b"\xf8\x3f\x01" * (BOMB // 3), either),
        "1 MiB of empty unknown fields": (info, b"\xfa\x3f\x00" * (BOMB // 3), either),
        "one unknown field of 1 MiB": (info, field(1000, bytes(BOMB)), either),
        "unknown groups in groups": (info, b"\xfb\x3f" * (BOMB // 2), bad | much),
        "fields in fields": (scene, field(4, nested), either),
        "half a million empty poses": (grasps, b"\x1a\x00" * (BOMB // 2), bad | much),
        "2 MiB of empty files": (scene, b"\x22\x00" * BOMB, bad | much),
        "larger than a message": (scene, field(2, bytes(MESSAGE_BYTES + 1)), much),
        "far larger than a message": (scene, field(2, bytes(8 * MESSAGE_BYTES)), much),
        "XML in XML": (scene, field(2, b"<body>" * (BOMB // 6)), bad | much),
        "XML that doubles itself": (scene, field(2, billion_laughs()), bad | much),
    }


def billion_laughs() -> bytes:
    """Entities that grow to a terabyte."""
    names = [f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 13)]
    return f'<!DOCTYPE m [<!ENTITY a0 "lol">{"".join(names)}]><mujoco model="&a12;"/>'.encode()


def grpc_messages(report: Report, daemon: tribo.Daemon) -> None:
    """Bytes that no generated client would send."""
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    for what, (method, data, right) in messages().items():
        with grpc.insecure_channel(daemon.grpc, options) as channel:
            path = f"/tribo.v1.{method}"
            try:
                if method.startswith("Grasp"):
                    list(channel.unary_stream(path)(data, timeout=60))
                else:
                    channel.unary_unary(path)(data, timeout=60)
                got = "OK"
            except grpc.RpcError as error:
                got = error.code().name
        report.check(got in right, f"gRPC: {what}: {got}, not {sorted(right)}")
    # a message that inflates to 64 MiB
    for what, size, right in (
        ("inflates", 64 << 20, "RESOURCE_EXHAUSTED"),
        ("is zipped", 99, "OK"),
    ):
        with grpc.insecure_channel(daemon.grpc, options) as channel:
            try:
                channel.unary_unary("/tribo.v1.Simulation/GetServerInfo")(
                    field(1000, bytes(size)), timeout=60, compression=grpc.Compression.Gzip
                )
                got = "OK"
            except grpc.RpcError as error:
                got = error.code().name
        report.equal(got, right, f"gRPC: a message that {what}")


def http_status(daemon: tribo.Daemon, sent: bytes) -> int:
    """The status answered to these bytes; 0: the connection was closed without one."""
    with closing(dial(daemon.http)) as wire:
        # closed while it is being sent: an answer may be there all the same
        with suppress(OSError):
            wire.sendall(sent)
        try:
            wire.settimeout(30)
            head = wire.recv(4096)
        except ConnectionError:
            return 0
    found = re.match(rb"HTTP/1\.[01] (\d+)", head)
    return int(found[1]) if found else 0


def http_messages(report: Report, daemon: tribo.Daemon) -> None:
    """The same over HTTP, and cases of HTTP alone."""
    proto, as_json = "Content-Type: application/proto", "Content-Type: application/json"
    statuses = {"OK": 200, "INVALID_ARGUMENT": 400, "RESOURCE_EXHAUSTED": 429, "NOT_FOUND": 404}
    for what, (method, data, right) in messages().items():
        if method.startswith("Simulation"):
            status = http_status(daemon, request(method, data, proto))
            wanted = {statuses[r] for r in right} | (
                {413} if "RESOURCE_EXHAUSTED" in right else set()
            )
            # a body that is too large may be cut off while it is on its way
            wanted |= {0} if len(data) > MESSAGE_BYTES else set()
            report.check(status in wanted, f"HTTP: {what}: {status}, not {sorted(wanted)}")

    def zipped(data: bytes) -> bytes:
        return request(info, gzip.compress(data), as_json, "Content-Encoding: gzip")

    info, scene = "Simulation/GetServerInfo", "Simulation/CreateScene"
    get = "GET / HTTP/1.1\r\nHost: localhost\r\n"
    cases: dict[str, tuple[bytes, set[int]]] = {
        "zipped JSON": (zipped(b"{}"), {200}),
        "a gzip bomb": (zipped(bytes(256 << 20)), {400, 413, 429}),
        "no gzip": (request(info, b"{}", as_json, "Content-Encoding: gzip"), {400}),
        "gzip that is cut off": (
            request(info, gzip.compress(b"{}" * 99)[:-9], as_json, "Content-Encoding: gzip"),
            {400},
        ),
        "another encoding": (
            request(info, b"{}", as_json, "Content-Encoding: br"),
            {400, 404, 415, 501},
        ),
        "JSON in JSON": (request(scene, b'{"a":' * 100000, as_json), {400, 429}),
        "arrays in arrays": (request(scene, b'{"files":' + b"[" * 500000, as_json), {400, 429}),
        "a million files": (
            request(scene, b'{"files":[' + b"{}," * 999999 + b"{}]}", as_json),
            {400, 429},
        ),
        "a million keys": (request(info, many_keys(), as_json), {200, 400, 429}),
        "a long number": (
            request("Runs/ListRuns", b'{"pageSize":' + b"9" * 100000 + b"}", as_json),
            {400},
        ),
        "a number out of range": (request("Runs/ListRuns", b'{"pageSize":1e999}', as_json), {400}),
        "half a surrogate": (request(scene, b'{"text":"\\ud800"}', as_json), {400}),
        "no JSON": (request(info, b"<xml/>", as_json), {400}),
        "nothing": (request(scene, b"", as_json), {400}),
        "a wrong type": (request(info, b"{}", "Content-Type: text/html"), {415}),
        "no type": (request(info, b"{}"), {400, 415}),
        "an unknown method": (request("Simulation/Fly", b"{}", as_json), {404, 501}),
        "GET of a method": (
            b"GET /tribo.v1.Simulation/Step HTTP/1.1\r\nHost: localhost\r\n\r\n",
            {400, 404, 405, 415, 501},
        ),
        "long headers": (f"{get}X: {'a' * 100000}\r\n\r\n".encode(), {400, 413, 431, 0}),
        "many headers": ((get + "X: a\r\n" * 20000 + "\r\n").encode(), {400, 413, 431, 0}),
        "a long path": (
            b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            {400, 414, 431, 0},
        ),
        "a negative length": (f"{get}Content-Length: -1\r\n\r\n".encode(), {400, 0}),
        "an absurd length": (
            b"POST /tribo.v1.Simulation/GetServerInfo HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 99999999999999\r\n\r\n{}",
            {400, 413, 429, 0},
        ),
        "two lengths": (
            f"{get}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab".encode(),
            {200, 400, 0},
        ),
        "a chunk of no size": (
            b"POST /tribo.v1.Simulation/GetServerInfo HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"zz\r\n{}\r\n0\r\n\r\n",
            {400, 0},
        ),
        "another protocol": (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(600),
            {400, 0},
        ),
        "noise": (random.Random(4).randbytes(4000) + b"\r\n\r\n", {400, 0}),
        "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), {400, 404, 405, 505, 0}),
    }
    for what, (sent, right) in cases.items():
        status = http_status(daemon, sent)
        report.check(status in right, f"HTTP: {what}: {status}, not {sorted(right)}")
    # nonsense for gRPC: the connection ends
    for what in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", random.Random(5).randbytes(5000)):
        with closing(dial(daemon.grpc)) as wire:
            try:
                wire.sendall(what)
                read_all(wire, 40)
                report.check(True, "")
            except ConnectionError:
                report.check(True, "")
            except (TimeoutError, socket.timeout):
                report.check(False, f"gRPC: {what[:9]!r} keeps its connection")


def many_keys() -> bytes:
    """A JSON object of many keys, within the size of a message."""
    return b"{" + b",".join(b'"k%d":1' % i for i in range(250000)) + b"}"


# ---- pings ----


class Pinger(threading.Thread):
    """A connection without a call that pings every ten seconds, as clients are advised
    to."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.answered = 0
        self.went_away = False

    def run(self) -> None:
        """HTTP/2 by hand: settings, then pings; counts the answers."""
        with closing(dial(self.address)) as wire:
            wire.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, b""))
            data = b""
            for number in range(PINGS):
                wire.sendall(frame(6, 0, struct.pack(">Q", number)))
                end = time.monotonic() + (PING_SECONDS if number + 1 < PINGS else 2)
                while (left := end - time.monotonic()) > 0:
                    wire.settimeout(left)
                    try:
                        piece = wire.recv(4096)
                    except (TimeoutError, socket.timeout):
                        continue
                    except OSError:
                        piece = b""
                    if not piece:
                        self.went_away = True
                        return
                    data = self.take(wire, data + piece)

    def take(self, wire: socket.socket, data: bytes) -> bytes:
        """Reads whole frames; returns the rest."""
        while len(data) >= 9:
            size, kind, flags = int.from_bytes(data[:3], "big"), data[3], data[4]
            if len(data) < 9 + size:
                break
            if kind == 6 and flags & 1:
                self.answered += 1
            elif kind == 6:
                wire.sendall(frame(6, 1, data[9 : 9 + size]))
            elif kind == 4 and not flags & 1:
                wire.sendall(frame(4, 1, b""))
            elif kind == 7:
                self.went_away = True
            data = data[9 + size :]
        return data


def frame(kind: int, flags: int, payload: bytes) -> bytes:
    """An HTTP/2 frame of the connection itself."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + bytes(4) + payload


def main() -> None:
    """Runs the parts against one daemon."""
    report = Report()
    environment = {
        "TRIBOD_LIMITS_MESSAGE_BYTES": str(MESSAGE_BYTES),
        "TRIBOD_LIMITS_ASSET_BYTES": str(MESSAGE_BYTES),
        "TRIBOD_LIMITS_UNPACK_BYTES": str(32 << 20),
        "TRIBOD_LIMITS_HTTP_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
        "TRIBOD_SERVER_DRAIN_SECONDS": "10",
    }
    with scratch() as folder, tribo.Daemon(data=folder / "data", environment=environment) as daemon:
        make_models(folder)
        pinger = Pinger(daemon.grpc)
        pinger.start()
        # HTTP/2 that says nothing, half of its greeting, or no settings after it
        greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        halves = [dial(daemon.grpc) for _ in range(3)]
        for wire, size in zip(halves, (0, 17, len(greeting))):
            wire.sendall(greeting[:size])
        before = resident_bytes(daemon.pid)
        for name, part in {
            "readers that stall": lambda: stalled_readers(report, daemon, folder),
            "requests that do not end": lambda: slowloris(report, daemon),
            "messages over gRPC": lambda: grpc_messages(report, daemon),
            "messages over HTTP": lambda: http_messages(report, daemon),
        }.items():
            with report.case(name):
                part()
                grown = (resident_bytes(daemon.pid) - before) / 2**20
                print(f"after {name}: {grown:.1f} MiB more than at the beginning")
        with report.case("pings"):
            pinger.join(90)
            report.equal(pinger.answered, PINGS, "pings that were answered")
            report.check(not pinger.went_away, "a client that pings every 10 s is sent away")
        with report.case("handshakes that do not end"):
            for wire in halves:
                with closing(wire):
                    read_all(wire, 60)  # a time-out fails the case
                report.check(True, "closed")
        with report.case("the daemon lives on"), daemon.connect(timeout=60) as client:
            with client.create_session(client.load(BALL, name="ball.xml")) as session:
                report.equal(session.step(10).steps, 10, "steps")
            report.equal(client.server_info().sessions, 0, "sessions left")
        peak = peak_bytes(daemon.pid) - before
        print(f"peak: {peak / 2**20:.1f} MiB over {before / 2**20:.1f} MiB")
        report.check(peak < PEAK_BYTES, f"peak of {peak} bytes")
        report.equal(daemon.stop(), 0, "exit status")
    report.finish()


if __name__ == "__main__":
    main()
