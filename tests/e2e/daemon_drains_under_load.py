#!/usr/bin/env python3
"""SIGTERM under load: no call in flight fails, readiness is false at once, the daemon ends with 0
in time, and every session comes back with the bytes that its client knows, not a step more."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import grpc
from common_daemon import Report, make_models, scratch
from grpc_health.v1 import health_pb2, health_pb2_grpc

import tribo
from tribo.v1 import runs_pb2, simulation_pb2

ROUNDS = 3
DRAIN_SECONDS = 20
STEPS = 60  # of one call
#: A call that the client began this shortly before the signal may not have reached the server yet.
#: It may be refused then, but not broken off: its steps must not have been taken.
ON_ITS_WAY_SECONDS = 0.1

PILE = b"""<mujoco model="pile"><worldbody>
  <geom type="plane" size="2 2 0.1"/>
  <body pos="0 0 0.06"><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="1"/></body>
  <body pos="0.02 0 0.18"><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="1"/></body>
  <body pos="0 0.02 0.3"><freejoint/><geom type="sphere" size="0.05" mass="0.5"/></body>
</worldbody></mujoco>"""


class Client(threading.Thread):
    """A client that calls until the daemon is gone, and counts its session's steps."""

    def __init__(self, daemon: tribo.Daemon, session_id: str) -> None:
        super().__init__()
        self.daemon_under_test, self.id = daemon, session_id
        self.calls = 0
        self.steps = 0  # acknowledged
        self.failed_at = math.inf  # when the call began that failed
        self.wrong: list[str] = []

    def run(self) -> None:
        """The loop."""
        try:
            while True:
                began = time.monotonic()
                self.call()
                self.calls += 1
        except tribo.UnavailableError:
            self.failed_at = began
        except Exception as error:
            self.wrong.append(f"{type(self).__name__}: {type(error).__name__}: {error}")

    def call(self) -> None:
        """One call."""
        raise NotImplementedError


class Unary(Client):
    """Steps by unary calls over gRPC."""

    def __init__(self, daemon: tribo.Daemon, session_id: str) -> None:
        super().__init__(daemon, session_id)
        self.client = tribo.connect(daemon.grpc, attempts=1, timeout=60)

    def call(self) -> None:
        self.steps = self.client.session(self.id).step(STEPS).steps


class Http(Client):
    """The same over HTTP."""

    def call(self) -> None:
        request = urllib.request.Request(
            f"http://{self.daemon_under_test.http}/tribo.v1.Simulation/Step",
            data=json.dumps({"sessionId": self.id, "steps": STEPS}).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                self.steps = int(json.load(answer)["state"]["steps"])
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            raise tribo.UnavailableError("503") from error
        except urllib.error.URLError as error:
            # the port no longer listens
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            raise tribo.UnavailableError("refused") from error


class Stream(Client):
    """Steps on one stream, which ends when the daemon says so."""

    def __init__(self, daemon: tribo.Daemon, session_id: str) -> None:
        super().__init__(daemon, session_id)
        self.client = tribo.connect(daemon.grpc, attempts=1)
        self.stream = self.client.session(session_id).stream()

    def call(self) -> None:
        self.steps = self.stream.step(STEPS).steps


class Watcher(threading.Thread):
    """Follows a session to its last event."""

    def __init__(self, client: tribo.Client, session_id: str) -> None:
        super().__init__()
        self.client, self.id = client, session_id
        self.last = 0
        self.error = ""

    def run(self) -> None:
        """Until the end of the stream."""
        try:
            for answer in self.client.session(self.id).watch():
                self.last = answer.event or self.last
        except tribo.TriboError as error:
            self.error = str(error)


class Grasps(threading.Thread):
    """A job that is at work when the signal comes."""

    def __init__(self, daemon: tribo.Daemon, folder: Path) -> None:
        super().__init__()
        self.client = tribo.connect(daemon.grpc, attempts=1)
        self.job = self.client.evaluate_grasps(
            tribo.GraspObject(folder / "mug.obj", friction=0.7, density=2400),
            tribo.Hand(folder / "hand.xml", closing_actuators=("close_left", "close_right")),
            [tribo.GraspPose((0, 0, 0.055), force=20, name=f"grasp {i}") for i in range(4)],
            protocol=tribo.Protocol(lift=0.05, lift_seconds=0.1, hold_seconds=0.1),
        )
        self.results = 0
        self.ended = 0.0
        self.error = ""

    def run(self) -> None:
        """All results."""
        try:
            for _ in self.job:
                self.results += 1
        except tribo.TriboError as error:
            self.error = str(error)
        self.ended = time.monotonic()


def ready(daemon: tribo.Daemon) -> bool:
    """The answer of /readyz; False also if the port does not listen."""
    try:
        with urllib.request.urlopen(f"http://{daemon.http}/readyz", timeout=30) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def serving(daemon: tribo.Daemon) -> bool:
    """The answer of grpc.health.v1; False also if the daemon takes no calls any more."""
    with grpc.insecure_channel(daemon.grpc) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=30
            )
        except grpc.RpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def drain(
    report: Report, daemon: tribo.Daemon, clients: list[Client], others: list[threading.Thread]
) -> None:
    """Sends the signal while all clients are at work, and checks the outcome."""
    for thread in [*clients, *others]:
        thread.start()
    end = time.monotonic() + 60
    while any(c.calls < 5 for c in clients) and time.monotonic() < end:
        time.sleep(0.01)
    report.check(ready(daemon) and serving(daemon), "ready before the signal")
    status: list[int] = []
    signalled = time.monotonic()
    stopping = threading.Thread(target=lambda: status.append(daemon.stop(DRAIN_SECONDS + 10)))
    stopping.start()
    time.sleep(0.05)
    report.check(not ready(daemon), "readiness after the signal")
    report.check(not serving(daemon), "health after the signal")
    stopping.join()
    took = time.monotonic() - signalled
    report.equal(status, [0], "exit status")
    report.check(took < DRAIN_SECONDS, f"draining took {took:.1f} s")
    for thread in [*clients, *others]:
        thread.join(30)
        report.check(not thread.is_alive(), f"{type(thread).__name__} hangs")
    for c in clients:
        report.equal(c.wrong, [], "ends of calls")
        if not isinstance(c, Stream):
            late = c.failed_at - signalled
            report.check(
                late > -ON_ITS_WAY_SECONDS,
                f"{type(c).__name__}: a call in flight failed, {late:.4f} s",
            )
    calls = sum(c.calls for c in clients)
    print(f"drained in {took:.2f} s after {calls} calls")


def same_bytes(
    report: Report, client: tribo.Client, scene: str, session_id: str, steps: int
) -> None:
    """A session has made exactly this number of steps."""
    with client.create_session(scene) as undisturbed:
        undisturbed.step(steps)
        report.equal(
            client.session(session_id).snapshot(transient=True).sha256,
            undisturbed.snapshot(transient=True).sha256,
            f"bytes after {steps} steps",
        )


def check_resumed(report: Report, client: tribo.Client, scene: str, clients: list[Client]) -> None:
    """Sessions are where their clients know them to be."""
    for c in clients:
        steps = client.session(c.id).state().steps
        what = type(c).__name__
        if isinstance(c, Stream):
            # its last steps may have been taken when the stream had ended
            report.check(steps >= c.steps, f"{what}: {steps} steps, {c.steps} were acknowledged")
        else:
            report.equal(steps, c.steps, f"{what}: steps")
        same_bytes(report, client, scene, c.id, steps)


def one_round(report: Report, folder: Path) -> None:
    """A life under load, its end, and the next one."""
    environment = {
        "TRIBOD_SERVER_DRAIN_SECONDS": str(DRAIN_SECONDS),
        # a busy machine makes calls wait; refusing them is overload's, tested elsewhere
        "TRIBOD_LIMITS_QUEUE_WAIT_SECONDS": "0",
    }
    with tribo.Daemon(data=folder / "data", environment=environment) as daemon:
        with daemon.connect(timeout=60) as client:
            scene = client.load(PILE, name="pile.xml").id
            kinds = [Unary, Unary, Unary, Http, Http, Stream, Stream]
            clients = [kind(daemon, client.create_session(scene).id) for kind in kinds]
            watcher, job = Watcher(client, clients[0].id), Grasps(daemon, folder)
            drain(report, daemon, clients, [watcher, job])
            report.equal(watcher.error, "", "the watcher's end")
            drained = simulation_pb2.SESSION_EVENT_DRAINED
            report.equal(watcher.last, drained, "the watcher's last event")
            report.equal((job.error, job.results), ("", 4), "the grasp job")
    with tribo.Daemon(data=folder / "data", environment=environment) as daemon:
        with daemon.connect(timeout=60) as client:
            check_resumed(report, client, scene, clients)
            summary = job.job.summary
            if report.check(summary is not None, "the grasp job's summary") and summary:
                run = client.run(summary.run_id).run
                report.equal(run.status, runs_pb2.RUN_STATUS_DONE, "the grasp job's run")
            for c in clients:
                client.session(c.id).delete()
        report.equal(daemon.stop(), 0, "exit status without load")


def main() -> None:
    """Some rounds."""
    report = Report()
    with scratch() as folder:
        make_models(folder)
        for number in range(ROUNDS):
            with report.case(f"round {number}"):
                one_round(report, folder)
    report.finish()


if __name__ == "__main__":
    main()
