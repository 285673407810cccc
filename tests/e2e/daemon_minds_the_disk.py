#!/usr/bin/env python3
"""A disk that is full, one that can only be read, a folder that another daemon has, a damaged file:
each is named, nothing that was acknowledged is lost, and reading goes on where it can.

The disk is a file system in memory of a few MiB, mounted for this process alone, which root can.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import grpc
from common_daemon import BALL, Report, scratch
from grpc_health.v1 import health_pb2, health_pb2_grpc

TRIBOD = os.environ["TRIBOD"]
INSIDE = "TRIBO_TEST_MOUNTS"


class Daemon:
    """A daemon over a folder, its methods over HTTP and its log."""

    def __init__(self, data: Path, log: Path) -> None:
        self.log = log
        with log.open("w") as out:
            self.process = subprocess.Popen(
                [TRIBOD, "--data", str(data), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"],
                stdout=subprocess.PIPE,
                stderr=out,
                text=True,
                env={**os.environ, "TRIBOD_SESSIONS_CHECKPOINT_SECONDS": "0"},
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, log.read_text()
        self.grpc = line.split("grpc=")[1].split()[0]
        self.base = "http://" + line.split("http=")[1].strip()

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page."""
        try:
            with urllib.request.urlopen(f"{self.base}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def post(self, method: str, **body: object) -> tuple[int, dict]:
        """Status and answer of a method."""
        import json

        request = urllib.request.Request(
            f"{self.base}/tribo.v1.{method}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def metric(self, name: str) -> float:
        """A number of the page of metrics."""
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
        return -1

    def health(self) -> int:
        """The answer of gRPC's health check."""
        with grpc.insecure_channel(self.grpc) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            return stub.Check(health_pb2.HealthCheckRequest(), timeout=20).status

    def end(self) -> int:
        """The exit code of a drain."""
        self.process.terminate()
        return self.process.wait(60)


def within(seconds: float, holds: object) -> bool:
    """Whether something comes to hold."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():  # type: ignore[operator]
            return True
        time.sleep(0.1)
    return False


@contextlib.contextmanager
def disk(folder: Path, mib: int) -> Iterator[Path]:
    """A disk of the given size, MiB."""
    place = folder / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def fill(place: Path) -> None:
    """Takes every page that is free."""
    with (place / "ballast").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"\0" * 4096):
            pass


def failed_start(data: Path) -> tuple[int, str]:
    """Exit code and last words of a daemon that cannot start."""
    done = subprocess.run(
        [TRIBOD, "--data", str(data), "--grpc", "", "--http", "127.0.0.1:0"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr


SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def full_while_running(report: Report, folder: Path) -> None:
    """Sessions step on, readiness and metrics report it, acknowledged writes stay."""
    with disk(folder, 12) as place:
        daemon = Daemon(place / "store", folder / "log")
        scene = daemon.post("Simulation/CreateScene", text=BALL.decode())[1]["sceneId"]
        session = daemon.post("Simulation/CreateSession", sceneId=scene)[1]["sessionId"]
        daemon.post("Simulation/Step", sessionId=session, steps=7)
        kept = daemon.post("Simulation/Snapshot", sessionId=session)[1]["snapshotId"]
        report.equal(daemon.get("/readyz")[0], 200, "ready before")
        report.equal(daemon.metric("tribod_db_failing"), 0, "failing before")
        fill(place)
        code, answer = 200, {}
        for _ in range(200):  # the log has some room left
            code, answer = daemon.post("Simulation/Snapshot", sessionId=session)
            if code != 200:
                break
        report.equal(answer.get("code"), "resource_exhausted", f"a snapshot: {answer}")
        code, text = daemon.get("/readyz")
        report.check(code == 503 and "the store cannot be written" in text, f"{code} {text}")
        report.check("full" in text, f"says why: {text}")
        report.equal(daemon.metric("tribod_db_failing"), 1, "failing while full")
        report.check(daemon.metric("tribod_db_failures_total") > 0, "failures are counted")
        report.check(within(5, lambda: daemon.health() == NOT_SERVING), "health while full")
        report.equal(daemon.get("/livez")[0], 200, "alive while full")
        report.equal(daemon.post("Simulation/Step", sessionId=session)[0], 200, "a step")
        report.equal(daemon.end(), 5, "exit code of a drain that could not save")
        (place / "ballast").unlink()
        daemon = Daemon(place / "store", folder / "log")
        code, _ = daemon.post("Simulation/Restore", sessionId=session, snapshotId=kept)
        report.equal(code, 200, "the snapshot that was acknowledged")
        state = daemon.post("Simulation/GetState", sessionId=session)[1]["state"]
        report.equal(state["steps"], "7", "steps of that snapshot")
        report.equal(daemon.end(), 0, "exit code")


def full_at_the_start(report: Report, folder: Path) -> None:
    """The daemon starts for reading, says so, and writes once there is room."""
    with disk(folder, 12) as place:
        daemon = Daemon(place / "store", folder / "log")
        scene = daemon.post("Simulation/CreateScene", text=BALL.decode())[1]["sceneId"]
        session = daemon.post("Simulation/CreateSession", sceneId=scene)[1]["sessionId"]
        daemon.post("Simulation/Step", sessionId=session, steps=5)
        report.equal(daemon.end(), 0, "exit code")
        fill(place)
        daemon = Daemon(place / "store", folder / "log")
        report.check("the disk is full: the store is read" in daemon.log.read_text(), "says so")
        code, text = daemon.get("/readyz")
        report.check(code == 503 and "the disk was full" in text, f"{code} {text}")
        report.equal(daemon.metric("tribod_db_failing"), 1, "failing")
        report.check(within(5, lambda: daemon.health() == NOT_SERVING), "health")
        report.equal(daemon.post("Runs/GetRun", runId=session)[0], 200, "a run is read")
        report.equal(daemon.post("Simulation/GetScene", sceneId=scene)[0], 200, "a scene")
        code, answer = daemon.post("Simulation/Step", sessionId=session)
        report.equal((code, answer["state"]["steps"]), (200, "6"), "a session goes on")
        code, answer = daemon.post("Simulation/CreateSession", sceneId=scene)
        report.equal(answer.get("code"), "resource_exhausted", f"a new session: {answer}")
        report.check("disk is full" in answer.get("message", ""), f"says why: {answer}")
        (place / "ballast").unlink()
        report.check(within(10, lambda: daemon.get("/readyz")[0] == 200), "ready with room")
        report.check(within(5, lambda: daemon.health() == SERVING), "health with room")
        report.equal(daemon.metric("tribod_db_failing"), 0, "failing with room")
        code, answer = daemon.post("Simulation/CreateSession", sceneId=scene)
        report.equal(code, 200, f"a new session with room: {answer}")
        report.equal(daemon.end(), 0, "exit code")
        daemon = Daemon(place / "store", folder / "log")
        answer = daemon.post("Simulation/Step", sessionId=session)[1]
        report.equal(answer["state"]["steps"], "7", "the step on a full disk was saved later")
        report.equal(daemon.end(), 0, "exit code")


def read_only_disk(report: Report, folder: Path) -> None:
    """A disk that can only be read is named."""
    with disk(folder, 12) as place:
        daemon = Daemon(place / "store", folder / "log")
        report.equal(daemon.end(), 0, "exit code")
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        code, words = failed_start(place / "store")
        report.equal(code, 1, "exit code on a disk that can only be read")
        report.check(str(place) in words and "Read-only" in words, f"says: {words}")


def two_daemons(report: Report, folder: Path) -> None:
    """A folder that another daemon has is named with its process."""
    daemon = Daemon(folder / "store", folder / "log")
    code, words = failed_start(folder / "store")
    report.equal(code, 1, "exit code of a second daemon")
    report.check(f"process {daemon.process.pid}" in words, f"says: {words}")
    report.check("tribo.db" in words, f"names the file: {words}")
    report.equal(daemon.end(), 0, "exit code of the first")


def damaged_file(report: Report, folder: Path) -> None:
    """A damaged store is named and left as it is; its backup starts."""
    daemon = Daemon(folder / "store", folder / "log")
    daemon.post("Simulation/CreateScene", text=BALL.decode())
    daemon.end()
    file = folder / "store" / "tribo.db"
    shutil.copytree(folder / "store", folder / "backup")
    file.write_bytes(b"no database" * 1000)
    code, words = failed_start(folder / "store")
    report.equal(code, 1, "exit code over a damaged file")
    report.check(str(file) in words and "not a database" in words, f"says: {words}")
    report.equal(file.read_bytes()[:11], b"no database", "the file is left as it is")
    daemon = Daemon(folder / "backup", folder / "log")
    report.equal(len(daemon.post("Simulation/ListScenes")[1]["scenes"]), 1, "its copy is read")
    report.equal(daemon.end(), 0, "exit code")


def may_mount() -> bool:
    """Whether this process can have mounts of its own."""
    return subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0


def main() -> None:
    """Runs the parts, those with disks if they can be mounted."""
    inside = INSIDE in os.environ
    if not inside and may_mount():
        os.environ[INSIDE] = "yes"
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
    report = Report()
    parts = [two_daemons, damaged_file]
    if inside:
        parts += [full_while_running, full_at_the_start, read_only_disk]
    for part in parts:
        with scratch() as folder, report.case(part.__name__):
            part(report, folder)
    report.finish()


if __name__ == "__main__":
    main()
