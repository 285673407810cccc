#!/usr/bin/env python3
"""A client's trace context (W3C traceparent) appears in the daemon's log, for gRPC and for HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import grpc
from common_daemon import Report, scratch

TRIBOD = os.environ["TRIBOD"]
TRACE = "4bf92f3577b34da6a3ce929d0e0e47"
PARENT = "00f067aa0ba902b7"


def call_http(address: str, number: int, flags: str) -> None:
    """GetServerInfo over HTTP within a trace."""
    request = urllib.request.Request(
        f"http://{address}/tribo.v1.Simulation/GetServerInfo",
        b"{}",
        {
            "Content-Type": "application/json",
            "Traceparent": f"00-{TRACE}{number:02d}-{PARENT}-{flags}",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def call_grpc(address: str, number: int, flags: str) -> None:
    """The same over gRPC."""
    with grpc.insecure_channel(address) as channel:
        method = channel.unary_unary("/tribo.v1.Simulation/GetServerInfo")
        trace = ("traceparent", f"00-{TRACE}{number:02d}-{PARENT}-{flags}")
        method(b"", metadata=[trace], timeout=30)


def main() -> None:
    """Calls by both transports, sampled, not sampled and without a valid trace."""
    report = Report()
    with scratch() as folder, report.case("traces"):
        log = folder / "log"
        with log.open("w") as out:
            daemon = subprocess.Popen(
                [TRIBOD, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", str(folder)],
                stdout=subprocess.PIPE,
                stderr=out,
                text=True,
                env={**os.environ, "TRIBOD_LOG_FORMAT": "json", "TRIBOD_LOG_LEVEL": "info"},
            )
        assert daemon.stdout is not None
        line = daemon.stdout.readline()
        addresses = {
            call_grpc: line.split("grpc=")[1].split()[0],
            call_http: line.split("http=")[1].strip(),
        }
        for number, (call, address) in enumerate(addresses.items()):
            call(address, number, "01")
            call(address, 10 + number, "00")
            call(address, 20 + number, "zz")
        daemon.terminate()
        report.equal(daemon.wait(60), 0, "exit code")
        lines = [json.loads(text) for text in log.read_text().splitlines()]
        spans = [line for line in lines if line["event"] == "call.finished"]
        report.equal([span["trace_id"] for span in spans], [TRACE + "00", TRACE + "01"], "traces")
        report.equal([span["transport"] for span in spans], ["grpc", "http"], "transports")
        for span in spans:
            report.equal(span["parent_span_id"], PARENT, "the client's span")
            report.equal(span["method"], "GetServerInfo", "method")
            report.equal(span["status"], "OK", "status")
            report.check(0 <= span["seconds"] < 30, f"{span['seconds']} s")
            report.equal(len(span["span_id"]), 16, "digits of the call's span")
    report.finish()


if __name__ == "__main__":
    main()
