#!/usr/bin/env python3
"""Floods of HTTP/2 frames from many connections, while an honest caller works.

    floods.py [--seconds 60] [--connections 20] [--attack NAME] [--tribod build/tribod]

Each attack runs for --seconds against a daemon of its own, in rounds that alternate with rounds of
as many computing processes. The daemon and the honest caller have one half of the processors, the
attackers and computing processes the other, as if they were on another machine. The output has
the growth of the daemon's resident memory and, as medians over the rounds, the 99th percentile of
an honest caller's calls during computing and during the flood; the last line counts. Goals: growth
below 64 MB, the percentile below five times that during computing, or 1 ms. With --quick the
percentile is printed and not judged, since other tests on the machine affect it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "e2e"))

import frames as h2
from common_process import resident_bytes

MOST_GROWTH = 64 << 20
MOST_TIMES = 5
FLOOR_SECONDS = 0.001
PROCESSES = 4
#: Rounds of an attack, and the share of each that only computes.
ROUNDS, COMPUTING = 5, 0.25
STREAMS = 1 << 20
#: Processors of the daemon and its honest caller, and those of the attackers, which a network would
#: keep apart.
PROCESSORS = sorted(os.sched_getaffinity(0))
OURS = set(PROCESSORS[: max(1, len(PROCESSORS) // 2)])
THEIRS = set(PROCESSORS[len(PROCESSORS) // 2 :])


def rapid_reset() -> Iterator[bytes]:
    """Calls that are broken off at once (CVE-2023-44487)."""
    block = h2.call_headers()
    for first in range(1, STREAMS, 200):
        yield b"".join(
            h2.frame(h2.HEADERS, h2.END_HEADERS, s, block)
            + h2.frame(h2.RST_STREAM, 0, s, struct.pack(">I", 8))
            for s in range(first, first + 200, 2)
        )


def made_you_reset() -> Iterator[bytes]:
    """Streams that the client has the server break off by a wrong window (CVE-2025-8671)."""
    block = h2.call_headers()
    for first in range(1, STREAMS, 200):
        yield b"".join(
            h2.frame(h2.HEADERS, h2.END_HEADERS, s, block)
            + h2.frame(h2.WINDOW, 0, s, struct.pack(">I", 0))
            for s in range(first, first + 200, 2)
        )


def continuation() -> Iterator[bytes]:
    """Headers that never end."""
    yield h2.frame(h2.HEADERS, 0, 1, h2.call_headers())
    more = h2.frame(h2.CONTINUATION, 0, 1, h2.literal("a", "b") * 500) * 8
    while True:
        yield more


def hpack_integer() -> Iterator[bytes]:
    """A number of HPACK that never ends."""
    yield h2.frame(h2.HEADERS, 0, 1, b"\x7f" + b"\x80" * 1000)
    while True:
        yield h2.frame(h2.CONTINUATION, 0, 1, b"\x80" * 16000)


def hpack_bomb() -> Iterator[bytes]:
    """A large header of the table, named in each byte of a block."""
    large = b"\x40" + h2.text("bomb") + b"\x7f" + b"\xa1\x1e" + b"x" * 4000
    yield h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, h2.call_headers() + large)
    for stream in range(3, STREAMS, 2):
        yield h2.frame(h2.HEADERS, h2.END_HEADERS, stream, h2.call_headers() + b"\xbe" * 16000)


def settings() -> Iterator[bytes]:
    """Settings that change all the time."""
    entry = struct.pack(">HI", 1, 0) + struct.pack(">HI", 1, 4096)
    while True:
        yield h2.frame(h2.SETTINGS, 0, 0, entry * 5) * 100


def pings() -> Iterator[bytes]:
    """Pings whose answers are not read."""
    while True:
        yield h2.frame(h2.PING, 0, 0, b"12345678") * 500


def windows() -> Iterator[bytes]:
    """Windows that open byte by byte."""
    while True:
        yield h2.frame(h2.WINDOW, 0, 0, struct.pack(">I", 1)) * 500


def empty_frames() -> Iterator[bytes]:
    """DATA without data that ends nothing."""
    yield h2.frame(h2.HEADERS, h2.END_HEADERS, 1, h2.call_headers())
    while True:
        yield h2.frame(h2.DATA, 0, 1) * 500


def priorities() -> Iterator[bytes]:
    """Priorities of streams that are not there."""
    for first in range(1, STREAMS, 200):
        yield b"".join(
            h2.frame(h2.PRIORITY, 0, s, struct.pack(">IB", 0, 7))
            for s in range(first, first + 200, 2)
        )


def silent_streams() -> Iterator[bytes]:
    """As many calls as the server accepts; none of them sends data."""
    block = h2.call_headers()
    for first in range(1, 20001, 200):
        yield b"".join(
            h2.frame(h2.HEADERS, h2.END_HEADERS, s, block) for s in range(first, first + 200, 2)
        )
    while True:
        time.sleep(0.1)
        yield b""


ATTACKS: dict[str, Callable[[], Iterator[bytes]]] = {
    attack.__name__: attack
    for attack in (
        rapid_reset,
        made_you_reset,
        continuation,
        hpack_integer,
        hpack_bomb,
        settings,
        pings,
        windows,
        empty_frames,
        priorities,
        silent_streams,
    )
}


def leave_the_daemon_alone() -> None:
    """Moves this process to the attackers' processors; on a machine of one, it only yields."""
    os.sched_setaffinity(0, THEIRS)
    os.nice(19)


def flood(address: str, name: str, connections: int, end: float) -> None:
    """Floods from some connections in turn; one that the server closes is opened again."""
    leave_the_daemon_alone()
    wires: list[tuple[socket.socket, Iterator[bytes]] | None] = [None] * connections
    while time.monotonic() < end:
        for i, pair in enumerate(wires):
            try:
                if pair is None:
                    wire = h2.connect(address, 1)
                    wire.settimeout(0.05)
                    pair = wires[i] = (wire, ATTACKS[name]())
                pair[0].sendall(next(pair[1]))
            except TimeoutError:
                continue
            except (OSError, StopIteration):
                if pair is not None:
                    pair[0].close()
                wires[i] = None


def compute(end: float) -> None:
    """Takes a processor as a flood does, without sending."""
    leave_the_daemon_alone()
    while time.monotonic() < end:
        sum(range(1000))


def honest(address: str, end: float, times: multiprocessing.Queue[list[float]]) -> None:
    """Calls one after the other, a few hundred a second."""
    spent, wire = [], h2.Wire(address)
    while time.monotonic() < end:
        began = time.perf_counter()
        try:
            wire.call()
        except OSError:
            spent.append(60.0)
            wire = h2.Wire(address)
        spent.append(time.perf_counter() - began)
        time.sleep(0.002)
    times.put(spent)


def percentile(times: list[float]) -> float:
    """The 99th."""
    return sorted(times)[min(len(times) - 1, int(0.99 * len(times)))]


def play(address: str, seconds: float, target: Callable[..., None], *arguments: object) -> float:
    """The honest caller's percentile while the given processes run."""
    end = time.monotonic() + seconds
    times: multiprocessing.Queue[list[float]] = multiprocessing.Queue()
    others = [
        multiprocessing.Process(target=target, args=(*arguments, end)) for _ in range(PROCESSES)
    ]
    caller = multiprocessing.Process(target=honest, args=(address, end, times))
    for process in (*others, caller):
        process.start()
    spent = times.get(timeout=seconds + 120)
    for process in (*others, caller):
        process.join()
    return percentile(spent)


def attack(
    tribod: str, name: str, seconds: float, connections: int, quick: bool = False
) -> list[str]:
    """Runs one attack against a fresh daemon; gives the goals that were missed."""
    environment = {**os.environ, "TRIBOD_LOG_LEVEL": "error"}
    with tempfile.TemporaryDirectory() as folder:
        command = [tribod, "--grpc", "127.0.0.1:0", "--http", "", "--data", folder]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment
        ) as daemon:
            assert daemon.stdout is not None
            address = daemon.stdout.readline().split("grpc=")[1].split()[0]
            try:
                before = resident_bytes(daemon.pid)
                rounds = 1 if quick else ROUNDS
                usually, besides = [], []
                for _ in range(rounds):
                    if not quick:
                        usually.append(play(address, COMPUTING * seconds / rounds, compute))
                    besides.append(
                        play(
                            address,
                            seconds / rounds,
                            *(flood, address, name, max(1, connections // PROCESSES)),
                        )
                    )
                usual = statistics.median(usually) if usually else 0.0
                beside = statistics.median(besides)
                growth = resident_bytes(daemon.pid, "VmHWM") - before
                h2.Wire(address).call()
            finally:
                daemon.terminate()
            ended = daemon.wait(60)
    # AddressSanitizer keeps freed memory
    bound = MOST_GROWTH * (8 if "ASAN_OPTIONS" in os.environ else 1)
    print(
        f"{name:16} memory +{growth / 1e6:6.1f} MB, p99 of honest calls {1e3 * beside:7.2f} ms, "
        f"beside computing {1e3 * usual:7.2f} ms"
        if not quick
        else f"{name:16} memory +{growth / 1e6:6.1f} MB, honest calls' p99 {1e3 * beside:7.2f} ms",
        flush=True,
    )
    missed = []
    if growth >= bound:
        missed.append(f"{name}: memory grew by {growth} bytes")
    if not quick and beside > max(MOST_TIMES * usual, FLOOR_SECONDS):
        missed.append(f"{name}: the percentile is {beside / usual:.1f} times as long")
    if ended != 0:
        missed.append(f"{name}: the daemon ended with {ended}")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--attack", choices=sorted(ATTACKS), action="append")
    parser.add_argument("--tribod", default=os.environ.get("TRIBOD", "build/tribod"))
    options = parser.parse_args()
    os.sched_setaffinity(0, OURS)
    names = options.attack or list(ATTACKS)
    passed = failed = 0
    for name in names:
        missed = attack(options.tribod, name, options.seconds, options.connections, options.quick)
        failed += len(missed)
        passed += (2 if options.quick else 3) - len(missed)
        for line in missed:
            print(f"FAILED: {line}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
