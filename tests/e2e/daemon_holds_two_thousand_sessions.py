#!/usr/bin/env python3
"""Two thousand sessions at once: stepped by a few threads, bounded in memory, limited by quotas,
ended by their leases on a clock that the test moves."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, Report, scratch
from common_process import resident_bytes

import tribo
from tribo.v1 import runs_pb2, simulation_pb2

SESSIONS = 2000
THREADS = 4
STEPS = 3
#: Most bytes of a session of one free body, with all that the daemon keeps for it.
SESSION_BYTES = (64 << 10) * (8 if "ASAN_OPTIONS" in os.environ else 1)


def on_threads(parts: list[list[str]], work: object) -> list[str]:
    """Runs work(part) for each part on a thread of its own; returns the errors."""
    wrong: list[str] = []

    def run(part: list[str]) -> None:
        try:
            work(part)  # type: ignore[operator]
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=(p,)) for p in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    return wrong + ["a thread hangs" for t in threads if t.is_alive()]


def many_sessions(report: Report, daemon: tribo.Daemon) -> None:
    """Opens them, steps them, looks at memory, deletes them."""
    with daemon.connect(timeout=120) as client:
        scene = client.load(BALL, name="ball.xml")
        warm = [client.create_session(scene) for _ in range(20)]
        for session in warm:
            session.step(STEPS)
            session.delete()
        before = resident_bytes(daemon.pid)
        ids: list[list[str]] = [[] for _ in range(THREADS)]

        def make(part: list[str]) -> None:
            for _ in range(SESSIONS // THREADS):
                part.append(client.create_session(scene, label="many").id)

        def step(part: list[str]) -> None:
            for _ in range(STEPS):
                for name in part:
                    client.session(name).step(state=False)

        report.equal(on_threads(ids, make), [], "making")
        report.equal(client.server_info().sessions, SESSIONS, "sessions open")
        report.equal(on_threads(ids, step), [], "stepping")
        each = (resident_bytes(daemon.pid) - before) / SESSIONS
        print(f"{SESSIONS} sessions hold {each / 1024:.1f} KiB each over {before >> 20} MiB")
        report.check(each < SESSION_BYTES, f"{each:.0f} bytes for each session")
        listed = {s.session_id: s.steps for s in client.sessions()}
        report.equal(len(listed), SESSIONS, "sessions listed")
        report.equal(set(listed.values()), {STEPS}, "steps of each")

        # the quota of one client is full: one more is refused, also as a fork
        for what in (lambda: client.create_session(scene), client.session(ids[0][0]).fork):
            error = report.raises(tribo.ResourceExhaustedError, "over the quota", what)
            report.check(error is not None and "quota" in error.message, f"message: {error}")

        def delete(part: list[str]) -> None:
            for name in part:
                client.session(name).delete()

        report.equal(on_threads(ids, delete), [], "deleting")
        report.equal(client.server_info().sessions, 0, "sessions left")
        report.raises(tribo.NotFoundError, "a deleted session", client.session(ids[0][0]).step)
        # and the room is there again
        client.create_session(scene).delete()


def limits(report: Report, daemon: tribo.Daemon) -> None:
    """The limit over all clients."""
    with daemon.connect(timeout=60) as client:
        scene = client.load(BALL, name="ball.xml")
        held = [client.create_session(scene) for _ in range(3)]
        error = report.raises(
            tribo.ResourceExhaustedError, "over the limit", lambda: client.create_session(scene)
        )
        report.check(error is not None and "limit of 3" in error.message, f"message: {error}")
        report.raises(tribo.ResourceExhaustedError, "a fork over the limit", held[0].fork)
        report.equal(held[0].step().steps, 1, "steps of one that is there")
        held[0].delete()
        client.create_session(scene)


class Watcher:
    """Follows a session until it ends."""

    def __init__(self, client: tribo.Client, session: tribo.Session) -> None:
        self.events: list[int] = []
        self.began = threading.Event()
        self.thread = threading.Thread(target=self.follow, args=(client, session))
        self.thread.start()

    def follow(self, client: tribo.Client, session: tribo.Session) -> None:
        """Until the stream's end."""
        for answer in client.session(session.id).watch():
            self.began.set()
            if answer.event:
                self.events.append(answer.event)


def leases(report: Report, daemon: tribo.Daemon, clock: Path) -> None:
    """Sessions end when their lease does, and calls renew it."""
    with daemon.connect(timeout=60) as client:
        scene = client.load(BALL, name="ball.xml")
        short = [client.create_session(scene, ttl=100) for _ in range(5)]
        kept = client.create_session(scene, ttl=100)
        long = client.create_session(scene, ttl=1000)
        watchers = [Watcher(client, s) for s in short]
        for watcher in watchers:
            report.check(watcher.began.wait(30), "a watcher gets the state")

        clock.write_text("60")
        kept.heartbeat()
        threading.Event().wait(1)
        report.equal(sum(1 for _ in client.sessions()), 7, "sessions after 60 s")
        clock.write_text("120")
        for watcher in watchers:
            watcher.thread.join(30)
            report.equal(
                watcher.events, [simulation_pb2.SESSION_EVENT_EXPIRED], "events of a watcher"
            )
        left = {s.session_id for s in client.sessions()}
        report.equal(left, {kept.id, long.id}, "sessions after 120 s")
        report.raises(tribo.NotFoundError, "an expired session", short[0].step)
        report.raises(tribo.NotFoundError, "its heartbeat", short[0].heartbeat)
        report.equal(kept.step().steps, 1, "steps of the renewed one")
        # the store hears of it a little later than watchers
        for _ in range(300):
            runs = {r.run_id: r for r in client.runs()}
            if all(runs[s.id].status != runs_pb2.RUN_STATUS_RUNNING for s in short):
                break
            threading.Event().wait(0.1)
        statuses = {runs[s.id].status for s in short}
        report.equal(statuses, {runs_pb2.RUN_STATUS_DONE}, "runs of those that expired")
        kinds = [e.kind for e in client.run(short[0].id).events]
        report.check("expired" in kinds, f"events of a run: {kinds}")
        report.raises(
            tribo.InvalidArgumentError,
            "a lease that is too long",
            lambda: client.create_session(scene, ttl=1e9),
        )


def main() -> None:
    """Runs the parts, each with a daemon of its own."""
    report = Report()
    with scratch() as folder:
        quota = {"TRIBOD_LIMITS_SESSIONS_PER_CLIENT": str(SESSIONS)}
        with report.case("two thousand"):
            with tribo.Daemon(data=folder / "many", environment=quota) as daemon:
                many_sessions(report, daemon)
                report.equal(daemon.stop(), 0, "exit status")
        with report.case("limits"):
            few = {"TRIBOD_LIMITS_SESSIONS": "3", "TRIBOD_LIMITS_SESSIONS_PER_CLIENT": "4"}
            with tribo.Daemon(data=folder / "few", environment=few) as daemon:
                limits(report, daemon)
        with report.case("leases"):
            clock = folder / "clock"
            clock.write_text("0")
            moved = {"TRIBOD_TEST_CLOCK": str(clock)}
            with tribo.Daemon(data=folder / "leases", environment=moved) as daemon:
                leases(report, daemon, clock)
                report.equal(daemon.stop(), 0, "exit status")
    report.finish()


if __name__ == "__main__":
    main()
