#!/usr/bin/env python3
"""One of two cards fails: its sessions go on from their last checkpoints on the other one, those of
the other card notice nothing, and the daemon stays. Without a second card it ends. The cards are a
plug-in of the tests that fails on demand."""

from __future__ import annotations

import sys
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, BUILD, Report, scratch

import tribo

EXIT_DEVICE_LOST = 3
PLUGIN = BUILD / "tests" / "plugin" / "failing.so"
report = Report()


def page(daemon: tribo.Daemon, path: str) -> str:
    """Text of a page; "" once the port does not answer."""
    try:
        with urllib.request.urlopen(f"http://{daemon.http}{path}", timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def devices(client: tribo.Client) -> dict[str, str]:
    """The device of each session."""
    return {s.session_id: s.device for s in client.sessions()}


def spread(client: tribo.Client, sessions: list[tribo.Session]) -> dict[str, list[tribo.Session]]:
    """Sessions by card; equal sessions are shared out evenly."""
    where = devices(client)
    cards: dict[str, list[tribo.Session]] = {"gpu:0": [], "gpu:1": []}
    for session in sessions:
        cards[where[session.id]].append(session)
    report.equal({name: len(of) for name, of in cards.items()}, {"gpu:0": 3, "gpu:1": 3}, "placed")
    return cards


def wait_moved(client: tribo.Client) -> None:
    """Also sessions that nobody steps leave the lost card."""
    end = time.monotonic() + 20
    while "gpu:0" in devices(client).values() and time.monotonic() < end:
        time.sleep(0.1)
    report.check("gpu:0" not in devices(client).values(), "idle sessions have moved")


def fails_over(folder: Path) -> None:
    """The first card fails while both step."""
    switch = folder / "switch"
    environment = {
        "TRIBO_GPU_PLUGIN": str(PLUGIN),
        "TRIBO_TEST_CARDS": "2",
        "TRIBO_TEST_LOSE": str(switch),
        "TRIBOD_SERVER_BACKEND": "gpu",
        "TRIBOD_SESSIONS_CHECKPOINT_SECONDS": "0",
    }
    daemon = tribo.Daemon(data=folder / "data", environment=environment)
    try:
        with daemon.connect() as client:
            scene = client.load(BALL)
            sessions = [client.create_session(scene, worlds=2) for _ in range(6)]
            cards = spread(client, sessions)
            for session in sessions:
                session.step(30)
            kept = {s.id: s.snapshot().sha256 for s in sessions}
            for session in sessions:
                session.step(5)
            busy, idle, streamed = cards["gpu:0"]
            watched: list[object] = []
            watcher = threading.Thread(target=lambda: watched.extend(busy.watch()))
            watcher.start()
            time.sleep(0.3)

            Path(f"{switch}.0").touch()
            error = report.raises(tribo.AbortedError, "a step", lambda: busy.step(1))
            report.check("is lost" in str(error), f"it says why: {error}")
            watcher.join(20)
            report.check(not watcher.is_alive(), "the watcher is told")
            answer = busy.step(10)
            report.equal(answer.steps, 40, "steps since the snapshot, not since the loss")
            for other in cards["gpu:1"]:
                report.equal(other.step(5).steps, 40, "a session of the other card")
            twin = cards["gpu:1"][0]
            report.equal(
                busy.snapshot(transient=True).sha256,
                twin.snapshot(transient=True).sha256,
                "bytes of a session that went back, and of one that never left",
            )
            wait_moved(client)
            report.equal(
                idle.snapshot(transient=True).sha256, kept[idle.id], "an idle one is its snapshot"
            )
            report.equal(streamed.step(10).steps, 40, "and the third goes on")
            report.equal(page(daemon, "/livez"), "alive\n", "alive")
            report.equal(page(daemon, "/readyz"), "ready\n", "ready")
            metrics = page(daemon, "/metrics")
            report.check('tribod_gpu_lost{device="gpu:0"} 1' in metrics, "the card counts as lost")
            report.check('tribod_gpu_lost{device="gpu:1"} 0' in metrics, "the other one does not")
            worlds = sum(int(s.worlds) for s in client.sessions())
            for line in ("device_sessions", 6), ("device_worlds", worlds):
                there = f'tribod_{line[0]}{{device="gpu:1"}} {line[1]}\n'
                report.check(there in metrics, f"{line[1]} {line[0]} there")
            error = report.raises(
                tribo.UnavailableError,
                "a session on the lost card",
                lambda: client.create_session(scene, device="gpu:0"),
            )
            report.check("gpu:0 is lost" in str(error), f"it says so: {error}")
            fresh = client.create_session(scene)
            report.equal(devices(client)[fresh.id], "gpu:1", "a new one's card")
            for session in sessions:
                session.snapshot()

            Path(f"{switch}.1").touch()
            report.raises(tribo.AbortedError, "no card is left", lambda: busy.step(1))
        report.equal(daemon._process.wait(30), EXIT_DEVICE_LOST, "exit status")
        log = daemon.log.read_text()
        report.equal(log.count("session.moved"), 3, "moves in the log")
        report.check("device.lost device=gpu:0 goes_on=gpu:1" in log, "the loss is in the log")
    finally:
        daemon.kill()

    # the data are as without a loss: on whole cards every session is there
    Path(f"{switch}.0").unlink()
    Path(f"{switch}.1").unlink()
    with tribo.Daemon(data=folder / "data", environment=environment) as again:
        with again.connect() as client:
            report.equal(len(devices(client)), 7, "sessions after the restart")
            for session in sessions:
                steps = 30 if session is idle else 40
                report.equal(client.session(session.id).step(1).steps, steps + 1, "its steps")
        report.equal(again.stop(), 0, "a drain")


def drains(folder: Path) -> None:
    """A drain after the loss keeps the checkpoints of the lost card's sessions."""
    switch = folder / "other"
    daemon = tribo.Daemon(
        data=folder / "drained",
        environment={
            "TRIBO_GPU_PLUGIN": str(PLUGIN),
            "TRIBO_TEST_CARDS": "2",
            "TRIBO_TEST_LOSE": str(switch),
            "TRIBOD_SERVER_BACKEND": "gpu",
            "TRIBOD_SESSIONS_CHECKPOINT_SECONDS": "1",
        },
    )
    with daemon.connect() as client:
        scene = client.load(BALL)
        sessions = [client.create_session(scene) for _ in range(8)]
        stop = threading.Event()
        failed: list[str] = []

        def drive(session: tribo.Session) -> None:
            while not stop.is_set():
                try:
                    session.step(3)
                except tribo.AbortedError:
                    continue
                except tribo.TriboError as error:
                    failed.append(str(error))
                    return

        threads = [threading.Thread(target=drive, args=(s,)) for s in sessions]
        for thread in threads:
            thread.start()
        time.sleep(2.5)
        Path(f"{switch}.0").touch()
        time.sleep(2.5)
        stop.set()
        for thread in threads:
            thread.join()
        report.equal(failed, [], "calls under load")
        wait_moved(client)
        before = {s.id: s.snapshot(transient=True).sha256 for s in sessions}
    report.equal(daemon.stop(), 0, "exit status of a drain after a loss")
    log = daemon.log.read_text()
    report.check("checkpoint_failed" not in log, "no checkpoint of a lost card is tried")
    with tribo.Daemon(data=folder / "drained") as again, again.connect() as client:
        after = {i: client.session(i).snapshot(transient=True).sha256 for i in before}
        report.equal(after, before, "sessions after the drain")


def main() -> None:
    """All checks."""
    with scratch() as folder:
        with report.case("fails over"):
            fails_over(folder)
        with report.case("drains"):
            drains(folder)
    report.finish()


if __name__ == "__main__":
    main()
