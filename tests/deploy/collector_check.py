"""Spans of a daemon reach OpenTelemetry's own collector, within the trace of their caller.

    make collector-check

The collector is built by its builder from a receiver of OTLP and an exporter that prints. The
daemon gets calls over gRPC and HTTP with a traceparent, one of them for a session that is not
there, and one while the collector is away.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

import grpc
from common_daemon import BALL, BUILD, Report, scratch

import tribo

COLLECTOR = os.environ.get("OTELCOL", str(BUILD / "otelcol" / "otelcol"))
TRACE = "4bf92f3577b34da6a3ce929d0e0e47"
PARENT = "00f067aa0ba902b7"
report = Report()


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Collector:
    """A collector at a port; its print is kept over restarts."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.log = folder / "collector.log"
        self.settings = folder / "collector.json"
        self.settings.write_text(
            json.dumps(
                {
                    "receivers": {
                        "otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{self.port}"}}}
                    },
                    "exporters": {"debug": {"verbosity": "detailed"}},
                    "service": {
                        "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["debug"]}},
                        "telemetry": {"metrics": {"level": "none"}},
                    },
                }
            )
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it listens."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [COLLECTOR, "--config", str(self.settings)], stdout=log, stderr=log
            )
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        raise RuntimeError(f"the collector does not start: {self.log.read_text()[-2000:]}")

    def stop(self) -> None:
        """Ends it."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def spans(self) -> list[dict[str, str]]:
        """Fields and attributes of each span that it has printed."""
        if not self.log.exists():
            return []
        found = []
        for part in self.log.read_text().split("\nSpan #")[1:]:
            pairs = re.findall(r"^ +(?:-> )?([\w.]+(?: \w+)?) *: (.*)$", part, re.MULTILINE)
            found.append({name.strip(): value.strip() for name, value in pairs})
        return found


def wait_for(good: Callable[[], bool], what: str, seconds: float = 30) -> None:
    """Waits for something, and checks that it came."""
    end = time.monotonic() + seconds
    while not good() and time.monotonic() < end:
        time.sleep(0.1)
    report.check(good(), what)


def call(daemon: tribo.Daemon, number: int) -> None:
    """GetServerInfo over gRPC within a trace of this number."""
    with grpc.insecure_channel(daemon.grpc) as channel:
        method = channel.unary_unary("/tribo.v1.Simulation/GetServerInfo")
        method(b"", metadata=[("traceparent", f"00-{TRACE}{number:02d}-{PARENT}-01")], timeout=30)


def post(daemon: tribo.Daemon, number: int, method: str, body: dict[str, object]) -> None:
    """A call by HTTP within a trace of this number."""
    request = urllib.request.Request(
        f"http://{daemon.http}/tribo.v1.Simulation/{method}",
        json.dumps(body).encode(),
        {
            "Content-Type": "application/json",
            "traceparent": f"00-{TRACE}{number:02d}-{PARENT}-01",
        },
    )
    with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(request, timeout=30):
        pass


def arrive(collector: Collector, daemon: tribo.Daemon) -> None:
    """Calls of every kind."""
    call(daemon, 1)
    post(daemon, 2, "GetServerInfo", {})
    post(daemon, 3, "GetState", {"sessionId": "0" * 32})
    with daemon.connect() as client:
        session = client.create_session(client.load(BALL, name="ball.xml"))
        session_id = session.id
    post(daemon, 4, "Step", {"sessionId": session_id, "steps": 10})

    def of(number: int) -> list[dict[str, str]]:
        trace = f"{TRACE}{number:02d}"
        return [span for span in collector.spans() if span.get("Trace ID") == trace]

    wait_for(lambda: all(of(n) for n in (1, 2, 3, 4)), "spans of all four traces")
    for number, method in ((1, "GetServerInfo"), (2, "GetServerInfo"), (3, "GetState")):
        (span,) = of(number) or [{}]
        report.equal(span.get("Parent ID"), PARENT, f"parent of {number}")
        report.equal(span.get("Name"), f"tribo.v1.Simulation/{method}", f"name of {number}")
        report.equal(span.get("Kind"), "Server", f"kind of {number}")
        # by OpenTelemetry's conventions a caller's mistake is no error of the server's span
        report.equal(span.get("Status code"), "Unset", f"status of {number}")
        status = "Str(NOT_FOUND)" if number == 3 else "Str(OK)"
        report.equal(span.get("tribod.status"), status, f"gRPC's status of {number}")
    spans = of(4)
    names = {span.get("Name") for span in spans}
    report.check("tribo.v1.Simulation/Step" in names, f"names of a step's spans: {names}")
    report.check(len(names) > 1, f"a step has spans of its parts: {names}")
    step = next(s for s in spans if s.get("Name") == "tribo.v1.Simulation/Step")
    inner = [s for s in spans if s is not step]
    report.equal({s.get("Parent ID") for s in inner}, {step.get("ID")}, "parents of its parts")


def wait(collector: Collector, daemon: tribo.Daemon) -> None:
    """What is called while the collector is away reaches it when it comes back."""
    collector.stop()
    call(daemon, 21)
    time.sleep(3)
    collector.start()
    trace = f"{TRACE}21"
    wait_for(
        lambda: any(span.get("Trace ID") == trace for span in collector.spans()),
        "a span that waited for the collector",
        seconds=90,
    )
    found = [span for span in collector.spans() if span.get("Trace ID") == trace]
    report.equal(len(found), 1, "spans that waited, each once")


def main() -> None:
    """All checks."""
    with scratch() as folder:
        collector = Collector(folder)
        endpoint = f"http://127.0.0.1:{collector.port}"
        variables = {"TRIBOD_OTLP_ENDPOINT": endpoint, "TRIBOD_OTLP_ROOT_RATIO": "0"}
        collector.start()
        try:
            with tribo.Daemon(environment=variables) as daemon:
                with report.case("spans arrive"):
                    arrive(collector, daemon)
                with report.case("spans wait"):
                    wait(collector, daemon)
        finally:
            collector.stop()
            if report.failed:
                print(collector.log.read_text()[-6000:])
    report.finish()


if __name__ == "__main__":
    main()
