#!/usr/bin/env python3
"""Clients of the HTTP port that take their time: headers that never end, bodies that come byte by
byte, answers that are not read, connections that send nothing, more of each than the daemon takes.

    slow.py [--seconds 20] [--connections 300]

The honest caller comes from the attackers' address, so that they share its limit of connections.
Goals: all but one and 1 % of its calls are answered (a new connection can lose its place to the
next one before its request has come), its p99 stays below five times that without the attack (or
20 ms), memory grows by less than 64 MB, and the daemon ends well.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "e2e"))

from common_daemon import BALL, Report, scratch
from common_process import resident_bytes
from daemon_parses_uploads_aside import MIB, Http

MOST_TIMES, FLOOR_S, MOST_GROWTH = 5, 0.02, 64 * MIB
HEAD = b"POST /tribo.v1.Simulation/CreateScene HTTP/1.1\r\nHost: localhost\r\n"
LIST = b"GET /tribo.v1.Simulation/ListSessions?message={} HTTP/1.1\r\nHost: localhost\r\n\r\n"


def headers(number: int) -> bytes:
    """The head of a request, then a header line at a time."""
    return HEAD if number == 0 else b"X-%d: y\r\n" % number


def body(number: int) -> bytes:
    """A whole head, then its body byte by byte."""
    first = HEAD + b"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"
    return first if number == 0 else b" "


def unread(number: int) -> bytes:
    """Requests without end whose answers are not read."""
    del number
    return LIST * 20


def silence(number: int) -> bytes:
    """Nothing at all."""
    del number
    return b""


ATTACKS: dict[str, Callable[[int], bytes]] = {
    a.__name__: a for a in (headers, body, unread, silence)
}


def hold(address: str, name: str, connections: int, end: float) -> None:
    """Keeps the given number of connections busy with the attack; reopens closed ones."""
    host, port = address.rsplit(":", 1)
    wires: list[tuple[socket.socket, int] | None] = [None] * connections
    while time.monotonic() < end:
        for i, held in enumerate(wires):
            try:
                if held is None:
                    held = (socket.create_connection((host, int(port)), 1), 0)
                    held[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    held[0].setblocking(False)
                held[0].sendall(ATTACKS[name](held[1]))
                wires[i] = (held[0], held[1] + 1)
            except BlockingIOError:
                wires[i] = held
            except OSError:
                if held is not None:
                    held[0].close()
                wires[i] = None
        time.sleep(0.2)


def honest(address: str, seconds: float) -> tuple[float, list[str], int]:
    """p99 of calls of one caller with a connection of its own for each; the errors; the
    number of calls."""
    took, wrong = [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        try:
            wire = http.client.HTTPConnection(address, timeout=10)
            text = json.dumps({"text": BALL.decode()})
            kind = {"Content-Type": "application/json"}
            wire.request("POST", "/tribo.v1.Simulation/CreateScene", text, kind)
            answer = wire.getresponse()
            answer.read()
            if answer.status != 200:
                wrong.append(f"status {answer.status}")
            wire.close()
        except OSError as error:
            wrong.append(f"{type(error).__name__}: {error}")
        took.append(time.monotonic() - began)
        time.sleep(0.005)
    return sorted(took)[int(0.99 * (len(took) - 1))], wrong, len(took)


def attack(report: Report, name: str, seconds: float, connections: int) -> None:
    """One attack against a daemon of its own."""
    with scratch() as folder:
        daemon = Http(folder)
        address = daemon.base.removeprefix("http://")
        alone, wrong, _ = honest(address, min(seconds, 5))
        report.equal(wrong[:3], [], f"{name}: calls before it")
        before = resident_bytes(daemon.process.pid)
        holder = multiprocessing.Process(
            target=hold, args=(address, name, connections, time.monotonic() + seconds)
        )
        holder.start()
        time.sleep(min(1.5, seconds / 4))
        beside, wrong, calls = honest(address, 0.7 * seconds)
        growth = resident_bytes(daemon.process.pid) - before
        holder.join()
        lost = f"{name}: {len(wrong)} of {calls} honest calls failed: {wrong[:3]}"
        report.check(len(wrong) <= 1 + 0.01 * calls, lost)
        report.check(growth < MOST_GROWTH, f"{name}: memory grew by {growth} bytes")
        report.check(beside < max(MOST_TIMES * alone, FLOOR_S), f"{name}: p99 {beside:.3f} s")
        report.equal(daemon.end(), 0, f"{name}: exit status")
        print(
            f"{name:8} memory +{growth / 1e6:.1f} MB, {calls} calls, "
            f"p99 {1e3 * alone:.1f} to {1e3 * beside:.1f} ms",
            flush=True,
        )


def main() -> None:
    """Runs the attacks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--connections", type=int, default=300)
    parser.add_argument("--attack", choices=sorted(ATTACKS), action="append")
    options = parser.parse_args()
    report = Report()
    for name in options.attack or list(ATTACKS):
        with report.case(name):
            attack(report, name, options.seconds, options.connections)
    report.finish()


if __name__ == "__main__":
    main()
