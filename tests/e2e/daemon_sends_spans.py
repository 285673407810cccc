#!/usr/bin/env python3
"""Spans of calls reach a collector by OTLP/HTTP, as opentelemetry-proto decodes them, within the
trace of the caller; a collector that is slow, dead or refuses costs no call anything."""

from __future__ import annotations

import contextlib
import http.server
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import grpc
from common_daemon import BALL, TRIBO, Report, scratch
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

import tribo

report = Report()
TRACE = "4bf92f3577b34da6a3ce929d0e0e47"
PARENT = "00f067aa0ba902b7"
STATE = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"
INFO = "/tribo.v1.Simulation/GetServerInfo"


class Collector:
    """A receiver of OTLP/HTTP that keeps the accepted spans."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = []  # for the next; then 200
        self.hang = threading.Event()  # set: answers come when it is cleared
        self.asked = 0
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Answers as the owner configured."""

            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                """A batch of spans."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                owner.asked += 1
                while owner.hang.is_set():
                    time.sleep(0.05)
                status, more, answer = owner.answers.pop(0) if owner.answers else (200, {}, b"")
                if status == 200:
                    owner.headers.append({"path": self.path, **dict(self.headers)})
                    owner.requests.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                with contextlib.suppress(BrokenPipeError):  # the daemon has ended
                    self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Silent."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def spans(self) -> list[Span]:
        """All spans that came."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def close(self) -> None:
        """Ends it."""
        self.hang.clear()
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def collecting(tls: ssl.SSLContext | None = None) -> Iterator[Collector]:
    """A collector for a part of the test."""
    collector = Collector(tls)
    try:
        yield collector
    finally:
        collector.close()


def start(endpoint: str, **more: str) -> tribo.Daemon:
    """A daemon that sends its spans there; only callers begin traces."""
    variables = {"TRIBOD_OTLP_ENDPOINT": endpoint, "TRIBOD_OTLP_ROOT_RATIO": "0", **more}
    return tribo.Daemon(environment=variables)


def metric(daemon: tribo.Daemon, name: str) -> float:
    """One number of the metrics page."""
    with urllib.request.urlopen(f"http://{daemon.http}/metrics", timeout=20) as page:
        for line in page.read().decode().splitlines():
            if line.startswith(f"tribod_spans_{name} "):
                return float(line.split()[1])
    raise KeyError(name)


def wait_for(what: str, good: Callable[[], bool], seconds: float = 30) -> None:
    """Waits for something, and checks that it came."""
    end = time.monotonic() + seconds
    while not good() and time.monotonic() < end:
        time.sleep(0.05)
    report.check(good(), what)


def call(daemon: tribo.Daemon, number: int, flags: str = "01", times: int = 1) -> None:
    """GetServerInfo over gRPC within a trace of this number."""
    with grpc.insecure_channel(daemon.grpc) as channel:
        method = channel.unary_unary(INFO)
        trace = [("traceparent", f"00-{TRACE}{number:02d}-{PARENT}-{flags}"), ("tracestate", STATE)]
        for _ in range(times):
            method(b"", metadata=trace, timeout=30)


def call_http(daemon: tribo.Daemon, number: int) -> None:
    """The same over HTTP."""
    request = urllib.request.Request(
        f"http://{daemon.http}{INFO}",
        b"{}",
        {
            "Content-Type": "application/json",
            "Traceparent": f"00-{TRACE}{number:02d}-{PARENT}-01",
            "Tracestate": STATE,
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def attributes(message: Any) -> dict[str, object]:
    """Attributes of a span or a resource."""
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in message.attributes}


def by_trace(spans: list[Span], number: int) -> list[Span]:
    """Spans of one of the traces."""
    return [s for s in spans if s.trace_id.hex() == f"{TRACE}{number:02d}"]


def has_unknown_fields(message: Any) -> bool:
    """Whether a message, or one in it, has fields that opentelemetry-proto does not know."""
    if len(UnknownFieldSet(message)) > 0:
        return True
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        parts = value if field.is_repeated else [value]
        if any(has_unknown_fields(part) for part in parts):
            return True
    return False


def spans_arrive() -> None:
    """Both transports; sampled, not sampled, and without a trace."""
    with collecting() as collector:
        # a base URL with a path, as collectors behind a proxy have
        with start(f"http://127.0.0.1:{collector.port}/base/", TRIBOD_OTLP_SERVICE="planner") as d:
            before = time.time_ns()
            call(d, 0)
            call_http(d, 1)
            call(d, 2, "00")
            call(d, 3, "zz")
            with d.connect() as client:
                client.server_info()
            steps(d)
            after = time.time_ns()
            report.equal(d.stop(), 0, "exit code")
        spans = collector.spans()
        report.check(not any(has_unknown_fields(r) for r in collector.requests), "no unknown field")
        report.equal({h["path"] for h in collector.headers}, {"/base/v1/traces"}, "path")
        report.equal(
            {h["Content-Type"] for h in collector.headers}, {"application/x-protobuf"}, "type"
        )
        resource = attributes(collector.requests[0].resource_spans[0].resource)
        report.equal(resource["service.name"], "planner", "service")
        report.equal(resource["service.instance.id"], socket.gethostname(), "instance")
        report.equal(resource["service.version"], tribo.__version__, "version")

        for number, system in ((0, "grpc"), (1, "connect_rpc")):
            (span,) = by_trace(spans, number)
            told = attributes(span)
            report.equal(span.name, INFO[1:], "name")
            report.equal(span.kind, Span.SPAN_KIND_SERVER, "kind")
            report.equal(span.parent_span_id.hex(), PARENT, "the client's span")
            report.equal(len(span.span_id), 8, "its own")
            report.equal(span.trace_state, STATE, "tracestate")
            report.equal(span.flags, 0x301, "flags: sampled, the parent is remote")
            report.equal(told["rpc.system"], system, "system")
            report.equal(told["rpc.method"], "GetServerInfo", "method")
            report.equal(told["tribod.status"], "OK", "status")
            report.equal(span.status.code, Status.STATUS_CODE_UNSET, "no fault")
            times = (before, span.start_time_unix_nano, span.end_time_unix_nano, after)
            report.check(times == tuple(sorted(times)), f"times: {times}")
        report.equal(len({s.span_id for s in spans}), len(spans), "each span has its own id")
        for number in (2, 3):
            report.equal(by_trace(spans, number), [], "not sampled")
        check_steps(by_trace(spans, 4))
        expected = {f"{TRACE}{number:02d}" for number in (0, 1, 4)}
        report.equal({s.trace_id.hex() for s in spans}, expected, "no other trace")


def steps(daemon: tribo.Daemon) -> None:
    """A step within a trace that the environment carries, and one that fails."""
    os.environ["TRACEPARENT"] = f"00-{TRACE}04-{PARENT}-01"
    os.environ["TRACESTATE"] = STATE
    try:
        with daemon.connect() as client:
            session = client.create_session(client.load(BALL))
            session.step(50)
            report.raises(tribo.NotFoundError, "an absent run", lambda: client.run("ab" * 16))
        subprocess.run(
            [TRIBO, "sessions", "--server", daemon.grpc], check=True, capture_output=True
        )
    finally:
        del os.environ["TRACEPARENT"], os.environ["TRACESTATE"]


def check_steps(spans: list[Span]) -> None:
    """The step has its wait and its computation as children; the command's call is there too."""
    (step,) = [s for s in spans if s.name == "tribo.v1.Simulation/Step"]
    children = [s for s in spans if s.parent_span_id == step.span_id]
    report.equal([c.name for c in children], ["wait for device", "compute"], "children")
    wait, compute = children
    for child in children:
        report.equal(child.kind, Span.SPAN_KIND_INTERNAL, "kind")
        report.equal(child.flags, 0x101, "flags: the parent is here")
        report.equal(attributes(child), {"tribod.device": "cpu"}, "device")
    times = [
        step.start_time_unix_nano,
        wait.start_time_unix_nano,
        wait.end_time_unix_nano,
        compute.start_time_unix_nano,
        compute.end_time_unix_nano,
        step.end_time_unix_nano,
    ]
    report.check(times == sorted(times) and times[3] < times[4], f"one after the other: {times}")
    (absent,) = [s for s in spans if s.name == "tribo.v1.Runs/GetRun"]
    report.equal(attributes(absent)["rpc.grpc.status_code"], 5, "NOT_FOUND")
    report.equal(absent.status.code, Status.STATUS_CODE_UNSET, "is the caller's fault")
    listed = [s for s in spans if s.name == "tribo.v1.Simulation/ListSessions"]
    report.equal([s.parent_span_id.hex() for s in listed], [PARENT], "the command's call")
    report.check(all(s.trace_state == STATE for s in spans), "tracestate")


def traces_begin() -> None:
    """A share of the calls without a trace begins one."""
    with collecting() as collector:
        endpoint = f"http://127.0.0.1:{collector.port}"
        for ratio, least, most in (("1", 200, 200), ("0.25", 20, 90)):
            collector.requests.clear()
            with start(endpoint, TRIBOD_OTLP_ROOT_RATIO=ratio) as d:
                with grpc.insecure_channel(d.grpc) as channel:
                    method = channel.unary_unary(INFO)
                    for _ in range(200):
                        method(b"", timeout=30)
                d.stop()
            spans = collector.spans()
            report.check(least <= len(spans) <= most, f"{len(spans)} of 200 at {ratio}")
            report.equal(len({s.trace_id for s in spans}), len(spans), "a trace each")
            report.check(all(not s.parent_span_id for s in spans), "without a parent")
            report.check(all(s.flags == 0x101 for s in spans), "flags")


def batches_are_tried_again() -> None:
    """503 is tried again, 400 is not; spans that the collector refuses are counted."""
    with collecting() as collector, start(f"http://127.0.0.1:{collector.port}") as d:
        collector.answers = [(503, {"Retry-After": "1"}, b"later"), (429, {}, b"")]
        call(d, 0)
        wait_for("the span comes after all", lambda: len(collector.spans()) == 1)
        report.equal(collector.asked, 3, "requests")
        wait_for("failures", lambda: metric(d, "failures_total") == 2)
        wait_for("sent", lambda: metric(d, "sent_total") == 1)
        report.equal(metric(d, "dropped_total"), 0, "dropped")

        collector.answers = [(400, {}, b"no")]
        call(d, 1)
        wait_for("a refused batch is dropped", lambda: metric(d, "dropped_total") == 1)
        report.equal(collector.asked, 4, "and not tried again")

        answer = ExportTraceServiceResponse()
        answer.partial_success.rejected_spans = 1
        answer.partial_success.error_message = "too many spans today"
        collector.answers = [(200, {}, answer.SerializeToString())]
        call(d, 2)
        wait_for("a refused span counts", lambda: metric(d, "dropped_total") == 2)
        call(d, 3)
        wait_for("others come", lambda: metric(d, "sent_total") == 2)
        log = d.log.read_text()
        report.equal(log.count("spans.failing"), 2, "failures in the log, once each time")
        report.equal(log.count("spans.sent_again"), 2, "and their ends")


def slow_collectors_cost_nothing() -> None:
    """Calls of a daemon whose collector is absent, or hangs, take as long as those of another."""
    with collecting() as collector:
        collector.hang.set()
        hanging = f"http://127.0.0.1:{collector.port}"
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # and does not listen
            dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
            limits = {"TRIBOD_OTLP_QUEUE_SPANS": "64"}
            daemons = {
                "none": tribo.Daemon(),
                "hanging": start(hanging, **limits),
                "dead": start(dead, **limits),
            }
            took = dict.fromkeys(daemons, 0.0)
            for _ in range(5):
                for name, d in daemons.items():
                    began = time.monotonic()
                    call(d, 0, times=200)
                    took[name] += time.monotonic() - began
            print({name: f"{1e3 * t / 1000:.3f} ms" for name, t in took.items()}, flush=True)
            for name in ("hanging", "dead"):
                # a call that waited for the collector once would take ten seconds
                report.check(took[name] < 2 * took["none"] + 2, f"{name}: {took[name]:.1f} s")
                dropped = metric(daemons[name], "dropped_total")
                waiting = metric(daemons[name], "waiting")
                # only a full queue drops spans; a batch may have emptied it since
                report.check(0 <= waiting <= 64, f"{name}: {waiting} spans wait in a queue of 64")
                report.check(dropped > 0, f"{name}: the queue was never full")
                report.check(dropped + waiting <= 1000, f"{name}: {dropped} dropped")
                report.check(dropped + waiting >= 1000 - 256, f"{name}: the rest is in a batch")
            for name, d in daemons.items():
                began = time.monotonic()
                report.equal(d.stop(), 0, f"{name}: exit code")
                report.check(time.monotonic() - began < 5, f"{name}: the daemon ends")


def tls_is_checked(folder: Path) -> None:
    """https: with its authority spans arrive, with another one they do not."""
    for name in ("right", "wrong"):
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
                *("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"),
            ],
            check=True,
            capture_output=True,
        )
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "right.pem", folder / "right.key")
    with collecting(tls) as collector:
        endpoint = f"https://localhost:{collector.port}"
        secret = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=s3cret%20word, x-tenant=lab"}
        with start(endpoint, TRIBOD_OTLP_CA=str(folder / "right.pem"), **secret) as d:
            call(d, 0)
            wait_for("a span over TLS", lambda: len(collector.spans()) == 1)
            report.equal(collector.headers[0].get("api-key"), "s3cret word", "a header")
            report.equal(collector.headers[0].get("x-tenant"), "lab", "and another one")
        with start(endpoint, TRIBOD_OTLP_CA=str(folder / "wrong.pem")) as d:
            call(d, 1)
            wait_for("a certificate of another", lambda: metric(d, "failures_total") > 0)
            report.check("ertificate" in d.log.read_text(), "the log says so")
        report.equal(len(collector.spans()), 1, "spans")


def mistakes(folder: Path) -> None:
    """Wrong options end the start; no message has a header's value."""
    tribod = tribo.daemon.find_binary()
    for endpoint in ("collector:4318", "grpc://a:1", "http://", "http://a:99999", "http://u:p@a"):
        wrong = subprocess.run(
            [tribod, "--check-config"],
            env={"TRIBOD_OTLP_ENDPOINT": endpoint},
            capture_output=True,
            text=True,
            check=False,
        )
        report.equal(wrong.returncode, 2, endpoint)
        report.check("[otlp] endpoint" in wrong.stderr, f"it names the option: {wrong.stderr}")
    for more, word in (
        ({"OTEL_EXPORTER_OTLP_HEADERS": "s3cret"}, "OTEL_EXPORTER_OTLP_HEADERS"),
        ({"OTEL_EXPORTER_OTLP_HEADERS": "a=s3cret%0d%0aHost: b"}, "OTEL_EXPORTER_OTLP_HEADERS"),
        ({"TRIBOD_OTLP_CA": str(folder / "absent.pem")}, "absent.pem"),
    ):
        failed = subprocess.run(
            [tribod, "--data", folder / "data", "--grpc", "127.0.0.1:0"],
            env={"TRIBOD_OTLP_ENDPOINT": "https://localhost:1", **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        report.check(failed.returncode in (1, 2), f"{word}: status {failed.returncode}")
        report.check(word in failed.stderr, f"it names {word}: {failed.stderr}")
        report.check("s3cret" not in failed.stderr, "and no secret")


def main() -> None:
    """All checks."""
    with scratch() as folder:
        for case in (spans_arrive, traces_begin, batches_are_tried_again):
            with report.case(case.__name__):
                case()
        with report.case("slow_collectors_cost_nothing"):
            slow_collectors_cost_nothing()
        with report.case("tls_is_checked"):
            tls_is_checked(folder)
        with report.case("mistakes"):
            mistakes(folder)
    report.finish()


if __name__ == "__main__":
    main()
