#!/usr/bin/env python3
"""Two real cards: sessions are spread over them, equal sessions get equal shares, two cards step
more than one, and after the loss of one all sessions go on. Skipped where there are fewer.

The loss is real: a kernel of tests/plugin/dying_cards.c poisons the daemon's context of a card."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BUILD, Report, scratch

import tribo

report = Report()
SESSIONS = 8
WORLDS = 256
STEPS = 50
SECONDS = 5.0
#: s; within this time the daemon has noticed a loss, and ended if it must
AWAY_SECONDS = 15.0
EXIT_DEVICE_LOST = 3

#: Six boxes that fall onto each other.
PILE = (
    '<mujoco model="pile"><worldbody><geom type="plane" size="2 2 0.1"/>'
    + "".join(
        f'<body pos="{0.03 * (i % 3)} {0.02 * (i % 2)} {0.11 + 0.21 * i}">'
        '<freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>'
        for i in range(6)
    )
    + "</worldbody></mujoco>"
).encode()


def environment(**more: str) -> dict[str, str]:
    """Of a daemon over the real plug-in, with cards alone."""
    return {
        "TRIBO_GPU_PLUGIN": str((BUILD / "libtribo_gpu.so").resolve()),
        "TRIBOD_SERVER_BACKEND": "gpu",
        "TRIBOD_LIMITS_QUEUE_WAIT_SECONDS": "0",  # nothing is refused
        **more,
    }


def devices(client: tribo.Client) -> dict[str, str]:
    """The device of each session."""
    return {s.session_id: s.device for s in client.sessions()}


class Caller(threading.Thread):
    """Steps a session again and again; keeps when each answer came, and the errors."""

    def __init__(self, daemon: tribo.Daemon, session_id: str, end: threading.Event) -> None:
        super().__init__()
        self.daemon_under_test, self.session_id, self.ends = daemon, session_id, end
        self.began = time.monotonic()
        self.answers: list[tuple[float, int]] = []
        self.errors: list[tuple[float, str]] = []

    def run(self) -> None:
        """Until the event."""
        with self.daemon_under_test.connect() as client:
            session = client.session(self.session_id)
            while not self.ends.is_set():
                try:
                    steps = session.step(STEPS, state=False).steps
                    self.answers.append((time.monotonic(), steps))
                except tribo.TriboError as error:
                    self.errors.append((time.monotonic(), f"{type(error).__name__}: {error}"))
                    time.sleep(0.001)


def drive(daemon: tribo.Daemon, sessions: Sequence[tribo.Session], seconds: float) -> list[Caller]:
    """A caller for each session, for so long."""
    end = threading.Event()
    callers = [Caller(daemon, session.id, end) for session in sessions]
    for caller in callers:
        caller.start()
    time.sleep(seconds)
    end.set()
    for caller in callers:
        caller.join()
    report.equal([e for c in callers for e in c.errors], [], "errors of calls")
    return callers


def rate(callers: Sequence[Caller]) -> float:
    """World-steps/s of all."""
    return sum(len(c.answers) for c in callers) * STEPS * WORLDS / SECONDS


def spread(daemon: tribo.Daemon) -> None:
    """Placement, fairness, and the rate of two cards over one."""
    with daemon.connect() as client:
        scene = client.load(PILE, name="pile.xml")
        cards = [d.name for d in client.server_info().devices if d.name.startswith("gpu")]
        both = [client.create_session(scene, worlds=WORLDS) for _ in range(SESSIONS)]
        where = devices(client)
        placed = [list(where.values()).count(name) for name in cards]
        report.equal(placed, [SESSIONS // 2] * 2, f"sessions on {cards}")
        for session in both:
            session.step(STEPS)
        digests = {s.snapshot(transient=True).sha256 for s in both}
        report.equal(len(digests), 1, "states of equal sessions on both cards")
        shared = drive(daemon, both, SECONDS)
        one = [client.create_session(scene, worlds=WORLDS, device="gpu:0") for _ in range(SESSIONS)]
        for session in one:
            session.step(STEPS)
        alone = drive(daemon, one, SECONDS)
        for session in one:
            session.delete()
        counts = [len(c.answers) for c in shared]
        fair = min(counts) / statistics.mean(counts)
        gain = rate(shared) / max(rate(alone), 1)
        print(
            f"placed {placed}; world-steps/s: one card {rate(alone):.3g}, two {rate(shared):.3g}, "
            f"{gain:.2f} times; calls of a session {min(counts)} to {max(counts)}",
            flush=True,
        )
        report.check(fair > 0.8, f"the slowest session has {fair:.2f} of the mean share")
        report.check(gain > 1.3, f"two cards step {gain:.2f} times as much as one")

        # a new session goes to the card that does not compute
        stop = threading.Event()
        busy = [Caller(daemon, s.id, stop) for s in both if where[s.id] == cards[0]]
        for caller in busy:
            caller.start()
        time.sleep(1.5)
        client.create_session(scene, worlds=2)  # looks at the cards
        time.sleep(1.5)
        fresh = client.create_session(scene, worlds=2)
        report.equal(devices(client)[fresh.id], cards[1], "a new session beside a busy card")
        stop.set()
        for caller in busy:
            caller.join()


def fails_over(folder: Path) -> None:
    """A kernel's fault on one card, under load. Drivers of today poison a process' contexts of all
    cards, so the daemon ends; the next process has both cards, and sessions go on from checkpoints.
    A driver that spares the other card lets the daemon go on there."""
    switch = folder / "switch"
    checkpoints = {"TRIBOD_SESSIONS_CHECKPOINT_SECONDS": "1"}
    more = environment(
        TRIBO_TEST_PLUGIN=environment()["TRIBO_GPU_PLUGIN"],
        TRIBO_GPU_PLUGIN=str((BUILD / "tests" / "plugin" / "dying_cards.so").resolve()),
        TRIBO_TEST_LOSE=str(switch),
        **checkpoints,
    )
    daemon = tribo.Daemon(data=folder / "data", environment=more, seconds=120)
    try:
        with daemon.connect() as client:
            scene = client.load(PILE, name="pile.xml")
            sessions = [client.create_session(scene, worlds=WORLDS) for _ in range(SESSIONS)]
            ids = [session.id for session in sessions]
            end = threading.Event()
            callers = [Caller(daemon, session_id, end) for session_id in ids]
            for caller in callers:
                caller.start()
            time.sleep(4)
            lost_at = time.monotonic()
            Path(f"{switch}.0").touch()
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon._process.wait(AWAY_SECONDS)
            ended_at = time.monotonic()
            end.set()
            for caller in callers:
                caller.join()
        texts = {text.split(":")[0] for caller in callers for _, text in caller.errors}
        report.check(
            texts <= {"AbortedError", "UnavailableError", "NotFoundError"}, f"errors: {texts}"
        )
        report.check("AbortedError" in texts, f"a caller is told of the loss: {texts}")
        if daemon._process.poll() is None:
            with daemon.connect() as client:
                report.equal(set(devices(client).values()), {"gpu:1"}, "where sessions are")
            report.equal(daemon.stop(), 0, "exit status of the drain")
        else:
            report.equal(daemon._process.returncode, EXIT_DEVICE_LOST, "exit status")
        log = daemon.log.read_text()
        report.check("device.lost" in log, f"the log: {log[-800:]}")
    except Exception:
        print(daemon.log.read_text()[-4000:], flush=True)
        raise
    finally:
        daemon.kill()

    acknowledged = {c.session_id: c.answers[-1][1] for c in callers}
    with (
        tribo.Daemon(
            data=folder / "data", environment=environment(**checkpoints), seconds=120
        ) as again,
        again.connect() as client,
    ):
        ready_at = time.monotonic()
        report.equal(set(devices(client).values()), {"gpu:0", "gpu:1"}, "cards of the sessions")
        steps = {i: int(client.session(i).state().steps) for i in ids}
        repeated = [acknowledged[i] - steps[i] for i in ids]
        furthest = max(steps.values())
        digests = set()
        for session_id in ids:
            session = client.session(session_id)
            if steps[session_id] < furthest:
                session.step(furthest - steps[session_id])
            digests.add(session.snapshot(transient=True).sha256)
        report.equal(len(digests), 1, "states of all sessions at the same step")
        report.check(all(r >= 0 for r in repeated), f"steps to repeat: {repeated}")
        rates = [acknowledged[i] / (lost_at - callers[0].began) for i in ids]
        report.check(
            all(r <= 6 * rate for r, rate in zip(repeated, rates, strict=True)),
            f"steps to repeat, {repeated}, at {min(rates):.0f} steps/s and a checkpoint a second",
        )
        print(
            f"card lost: the daemon ended after {ended_at - lost_at:.2f} s, the next one was ready "
            f"{ready_at - ended_at:.2f} s later; of {min(acknowledged.values())} to "
            f"{max(acknowledged.values())} steps {min(repeated)} to {max(repeated)} are repeated",
            flush=True,
        )


def number_of_cards() -> int:
    """Cards that the real plug-in finds."""
    if not (BUILD / "libtribo_gpu.so").exists():
        return 0
    try:
        with tribo.Daemon(environment=environment(), seconds=120) as daemon:
            with daemon.connect() as client:
                return sum(d.name.startswith("gpu") for d in client.server_info().devices)
    except tribo.UnavailableError as error:  # it does not start without a card
        print(error, flush=True)
        return 0


def main() -> None:
    """All checks."""
    if number_of_cards() < 2:
        report.skip("daemon_shares_two_cards: fewer than two cards")
        report.finish()
    with scratch() as folder:
        with (
            report.case("spread"),
            tribo.Daemon(environment=environment(), seconds=120) as daemon,
        ):
            spread(daemon)
        with report.case("fails over"):
            fails_over(folder)
    report.finish()


if __name__ == "__main__":
    main()
