#!/usr/bin/env python3
"""More idle connections than there are descriptors: both ports go on answering, the idle ones that
have shown no key go first, the store keeps its own, and metrics count them."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, Report, scratch

import tribo

LIMIT = 256
IDLE = 350  # on each port


class Daemon:
    """A daemon with few descriptors."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    *(os.environ["TRIBOD"], "--data", str(folder / "store")),
                    *("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT)),
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.grpc = line.split("grpc=")[1].split()[0]
        self.http = line.split("http=")[1].strip()

    def call(self, method: str, **body: object) -> dict:
        """One call over a connection of its own."""
        request = urllib.request.Request(
            f"http://{self.http}/tribo.v1.{method}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def metric(self, name: str) -> float:
        """A number of the page of metrics."""
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=20) as answer:
            text = answer.read().decode()
        return next(float(s.split()[1]) for s in text.splitlines() if s.startswith(f"{name} "))

    def descriptors(self) -> int:
        """Open descriptors as the system counts them."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def dial(address: str, count: int, said: bytes) -> list[socket.socket]:
    """Connections that begin and then send nothing; refused ones are left out."""
    host, port = address.rsplit(":", 1)
    wires = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            wire = socket.create_connection((host, int(port)), timeout=10)
            wire.sendall(said)
            wires.append(wire)
    return wires


def crowd(report: Report, daemon: Daemon) -> None:
    """Calls while idle connections ask for more descriptors than there are."""
    with tribo.connect(daemon.grpc, timeout=20) as early:
        scene = early.load(BALL, name="ball.xml").id
        session = early.create_session(scene)
        report.equal(session.step().steps, 1, "a step before")
        before = daemon.descriptors()
        report.equal(daemon.metric("tribod_descriptors_limit"), LIMIT, "the limit in metrics")
        wires = dial(daemon.http, IDLE, b"POST /") + dial(daemon.grpc, IDLE, b"PRI * HTTP/2.0\r\n")
        time.sleep(0.5)
        report.check(daemon.descriptors() < LIMIT - 8, f"{daemon.descriptors()} open of {LIMIT}")
        report.equal(session.step().steps, 2, "a step of the connection that was there before")
        for i in range(5):
            begin = time.monotonic()
            report.check("scenes" in daemon.call("Simulation/ListScenes"), f"call {i} over HTTP")
            with tribo.connect(daemon.grpc, timeout=20) as late:
                report.equal(late.session(session.id).step().steps, 3 + i, f"gRPC call {i}")
            took = time.monotonic() - begin
            report.check(took < 5, f"new connections took {took:.1f} s")
        # the store writes and reads with descriptors of its own
        snapshot = session.snapshot()
        session.restore(snapshot.snapshot_id)
        open_now = daemon.metric("tribod_descriptors")
        report.check(0 < open_now <= LIMIT, f"{open_now} descriptors in metrics")
        for wire in wires:
            wire.close()
        deadline = time.monotonic() + 40
        while daemon.descriptors() > before + 20 and time.monotonic() < deadline:
            time.sleep(0.2)
        report.check(daemon.descriptors() <= before + 20, "descriptors afterwards")
        report.equal(session.step().steps, 8, "a step afterwards")


def main() -> None:
    """Runs the parts."""
    report = Report()
    with scratch() as folder:
        daemon = Daemon(folder)
        with report.case("a crowd of idle connections"):
            crowd(report, daemon)
        daemon.process.terminate()
        report.equal(daemon.process.wait(40), 0, "exit code")
        lines = [s for s in daemon.log.read_text().splitlines() if "onnections" in s]
        report.check(1 <= len(lines) <= 4, f"the log tells it once a port: {lines[:6]}")
    report.finish()


if __name__ == "__main__":
    main()
