#!/usr/bin/env python3
"""A device that fails: steppers and watchers get the error, liveness turns false and readiness
with it, the process ends with a status of its own, and after a restart every session is back from
its last checkpoint. The device is a plug-in of the tests that fails on demand."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, BUILD, Report, scratch

import tribo
from tribo.v1 import simulation_pb2

EXIT_DEVICE_LOST = 3
PLUGIN = BUILD / "tests" / "plugin" / "failing.so"
report = Report()


def answer_of(daemon: tribo.Daemon, path: str) -> int:
    """Status of a page; 0 once the port does not answer."""
    try:
        with urllib.request.urlopen(f"http://{daemon.http}{path}", timeout=5) as page:
            return int(page.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


class Watcher(threading.Thread):
    """Follows a session until an event gives the reason of its end."""

    def __init__(self, session: tribo.Session) -> None:
        super().__init__()
        self.session = session
        self.begun = threading.Event()
        self.last: simulation_pb2.WatchResponse | None = None
        self.start()
        self.begun.wait(20)

    def run(self) -> None:
        """The loop."""
        try:
            for seen in self.session.watch():
                self.last = seen
                self.begun.set()
        except tribo.TriboError as error:
            print(f"the watcher's call ended: {error}", flush=True)

    def event(self) -> int:
        """The last message."""
        self.join(30)
        return self.last.event if self.last is not None else -1


def lose(daemon: tribo.Daemon, switch: Path, data: dict[str, str]) -> None:
    """Steps, takes the device away, and checks the errors of all clients."""
    with daemon.connect() as client:
        device = client.server_info().devices[0]
        report.equal(device.name, "gpu:0", "the device")
        report.equal(device.description, "a device that can be lost", "what it is")
        report.equal(device.memory_bytes, 1 << 20, "its memory")
        scene = client.load(BALL)
        stepped, idle, fresh = (client.create_session(scene) for _ in range(3))
        stepped.step(30)
        idle.step(12)
        data["kept"] = stepped.snapshot().sha256
        data["idle"] = idle.snapshot(transient=True).sha256
        data["fresh"] = fresh.snapshot(transient=True).sha256
        data["stepped_id"], data["idle_id"], data["fresh_id"] = stepped.id, idle.id, fresh.id
        report.equal(answer_of(daemon, "/livez"), 200, "alive")
        watcher = Watcher(stepped)

        switch.touch()
        error = report.raises(tribo.AbortedError, "a step", lambda: stepped.step(1))
        report.check("the device is lost" in str(error), f"it says why: {error}")
        answer = answer_of(daemon, "/livez")
        report.check(answer in (503, 0), f"not alive: {answer}")
        report.equal(
            watcher.event(), simulation_pb2.SESSION_EVENT_DEVICE_LOST, "what the watcher is told"
        )
        report.check(
            watcher.last is not None and "last checkpoint" in watcher.last.message, "and how on"
        )
    ended = time.monotonic() + 30
    while answer_of(daemon, "/livez") != 0 and time.monotonic() < ended:
        time.sleep(0.05)
    report.equal(daemon.wait(30), EXIT_DEVICE_LOST, "exit status")
    log = daemon.log.read_text()
    report.check(re.search(r"device\.lost\b", log) is not None, "a line in the log")


def last_exit(daemon: tribo.Daemon) -> int:
    """Exit status of the previous process, from the daemon's metrics."""
    with urllib.request.urlopen(f"http://{daemon.http}/metrics", timeout=20) as page:
        found = re.search(rb"^tribod_last_exit_status (-?\d+)$", page.read(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def come_back(daemon: tribo.Daemon, data: dict[str, str]) -> None:
    """All sessions are there, with their bytes."""
    with daemon.connect() as client:
        report.equal(sum(1 for _ in client.sessions()), 3, "sessions after the restart")
        for name, digest in (("stepped", "kept"), ("idle", "idle"), ("fresh", "fresh")):
            session = client.session(data[f"{name}_id"])
            there = session.snapshot(transient=True).sha256
            report.equal(there, data[digest], f"the bytes of the session that was {name}")
            report.check(session.step(5).steps > 0, "and it steps")


def main() -> None:
    """A device that is lost, and one that never was there."""
    with scratch() as folder:
        switch, data = folder / "lose", dict[str, str]()
        lost = {"TRIBO_GPU_PLUGIN": str(PLUGIN.resolve()), "TRIBO_TEST_LOSE": str(switch)}
        gpu = {"TRIBOD_SERVER_BACKEND": "gpu"}
        with (
            report.case("lost"),
            tribo.Daemon(data=folder / "data", environment={**lost, **gpu}) as daemon,
        ):
            report.equal(last_exit(daemon), -2, "no process was before the first")
            lose(daemon, switch, data)
        with (
            report.case("started anew on the device"),
            tribo.Daemon(
                data=folder / "data",
                environment={**lost, **gpu, "TRIBO_TEST_LOSE": str(folder / "never")},
            ) as daemon,
        ):
            report.equal(last_exit(daemon), EXIT_DEVICE_LOST, "status of the last process")
            come_back(daemon, data)
            report.equal(daemon.stop(), 0, "it stops")
        with report.case("ends of other kinds"):
            with tribo.Daemon(data=folder / "data") as daemon:
                report.equal(last_exit(daemon), 0, "after one that was told to stop")
                os.kill(daemon.pid, signal.SIGKILL)
                daemon.wait(30)
            with tribo.Daemon(data=folder / "data") as daemon:
                report.equal(last_exit(daemon), -1, "after one that was killed")
        with report.case("a backend that is not there"):
            none = {"TRIBO_GPU_PLUGIN": ""}
            try:
                tribo.Daemon(data=folder / "other", environment={**none, **gpu}).stop()
                report.check(False, "a daemon started without its device")
            except tribo.UnavailableError as error:
                report.check("[server] backend = gpu" in str(error), f"it says why: {error}")
            auto = {**none, "TRIBOD_SERVER_BACKEND": "auto"}
            with (
                tribo.Daemon(data=folder / "other", environment=auto) as daemon,
                daemon.connect() as client,
            ):
                report.equal(client.server_info().devices[0].name, "cpu", "auto falls back")
    report.finish()


main()
