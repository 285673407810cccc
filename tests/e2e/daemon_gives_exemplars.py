#!/usr/bin/env python3
"""Traced calls are exemplars of the call histogram in OpenMetrics format, and a real Prometheus
keeps them; other readers get the text format without. Prometheus's part is skipped where it is not
installed (`deploy/deps.sh alerts`)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import Report, scratch
from common_process import free_port

import tribo

report = Report()
TRACE = "4bf92f3577b34da6a3ce929d0e0e47"
PARENT = "00f067aa0ba902b7"
OPEN = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def call(address: str, number: int, flags: str) -> None:
    """GetServerInfo within a trace."""
    request = urllib.request.Request(
        f"http://{address}/tribo.v1.Simulation/GetServerInfo",
        b"{}",
        {
            "Content-Type": "application/json",
            "Traceparent": f"00-{TRACE}{number:02d}-{PARENT}-{flags}",
        },
    )
    urllib.request.urlopen(request, timeout=30).read()


def page(address: str, accept: str) -> tuple[str, str]:
    """Content type and text of the metrics."""
    request = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def formats(address: str) -> None:
    """Both formats have the same samples; exemplars are in one of them alone."""
    kind, text = page(address, "text/plain")
    report.check(kind.startswith("text/plain; version=0.0.4"), f"content type {kind}")
    report.check("trace_id" not in text, "no exemplars in the text format")
    kind, opened = page(address, OPEN)
    report.check(kind.startswith("application/openmetrics-text; version=1.0.0"), f"type {kind}")
    report.check(opened.endswith("\n# EOF\n"), "the end is marked")

    def names(lines: str) -> set[str]:
        return {
            re.split(r"[{ ]", line)[0] for line in lines.splitlines() if not line.startswith("#")
        }

    report.equal(names(opened), names(text), "names of samples")
    types = dict(re.findall(r"# TYPE (\S+) (\w+)", opened))
    for name in names(opened):
        family = re.sub(r"_(total|bucket|sum|count)$", "", name)
        report.check(name in types or family in types, f"{name} has a type")
    ends = {name for name, kind in types.items() if kind == "counter" and name.endswith("_total")}
    report.equal(ends, set(), "families of counters that end in _total")
    found = re.findall(
        r'\} \d+ # \{trace_id="(\w+)",span_id="(\w{16})"\} ([\d.]+) ([\d.]+)', opened
    )
    report.check(len(found) >= 1, "there are exemplars")
    for trace, span, seconds, unix_time in found:
        report.check(trace in (f"{TRACE}01", f"{TRACE}02"), f"a sampled trace: {trace}")
        report.check(span != PARENT, "a span of its own")
        report.check(0 < float(seconds) < 10, f"seconds: {seconds}")
        report.check(abs(float(unix_time) - time.time()) < 60, f"time: {unix_time}")


def prometheus(address: str, folder: Path) -> None:
    """Prometheus scrapes the exemplars and gives them to a query."""
    port = free_port()
    config = folder / "prometheus.yaml"
    config.write_text(
        "global: {scrape_interval: 1s}\n"
        "scrape_configs:\n"
        f"  - {{job_name: tribod, static_configs: [{{targets: ['{address}']}}]}}\n"
    )
    server = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--enable-feature=exemplar-storage",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        query = urllib.parse.urlencode(
            {
                "query": "tribod_call_seconds_bucket",
                "start": time.time() - 600,
                "end": time.time() + 600,
            }
        )
        traces: set[str] = set()
        end = time.monotonic() + 60
        while not traces and time.monotonic() < end:
            time.sleep(0.5)
            try:
                url = f"http://127.0.0.1:{port}/api/v1/query_exemplars?{query}"
                with urllib.request.urlopen(url, timeout=10) as answer:
                    series = json.load(answer)["data"]
            except OSError:
                continue
            traces = {e["labels"]["trace_id"] for s in series for e in s["exemplars"]}
        report.check(
            bool(traces) and traces <= {f"{TRACE}01", f"{TRACE}02"}, f"Prometheus has {traces}"
        )
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """All checks."""
    with scratch() as folder, tribo.Daemon() as daemon:
        call(daemon.http, 1, "01")
        call(daemon.http, 2, "01")
        call(daemon.http, 3, "00")
        with report.case("formats"):
            formats(daemon.http)
        if shutil.which("prometheus") is None:
            report.skip("daemon_gives_exemplars: Prometheus is not installed")
        else:
            with report.case("prometheus"):
                prometheus(daemon.http, folder)
    report.finish()


if __name__ == "__main__":
    main()
