#!/usr/bin/env python3
"""Two real cards: sessions are spread over them, equal sessions get equal shares, two cards step
more than one, and after the loss of one its sessions go on on the other. Skipped where there are
fewer.

The loss is real: a kernel of tests/plugin/dying_cards.c poisons the daemon's context of a card."""

from __future__ import annotations

import statistics
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
#: s; sessions of a lost card step again on the other one within this time
AWAY_SECONDS = 10.0

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
    """One card dies under load."""
    switch = folder / "switch"
    more = environment(
        TRIBO_TEST_PLUGIN=environment()["TRIBO_GPU_PLUGIN"],
        TRIBO_GPU_PLUGIN=str((BUILD / "tests" / "plugin" / "dying_cards.so").resolve()),
        TRIBO_TEST_LOSE=str(switch),
        TRIBOD_SESSIONS_CHECKPOINT_SECONDS="1",
    )
    daemon = tribo.Daemon(data=folder / "data", environment=more, seconds=120)
    try:
        with daemon.connect() as client:
            scene = client.load(PILE, name="pile.xml")
            sessions = [client.create_session(scene, worlds=WORLDS) for _ in range(SESSIONS)]
            where = devices(client)
            end = threading.Event()
            callers = [Caller(daemon, session.id, end) for session in sessions]
            for caller in callers:
                caller.start()
            time.sleep(4)
            lost_at = time.monotonic()
            Path(f"{switch}.0").touch()
            time.sleep(AWAY_SECONDS)
            end.set()
            for caller in callers:
                caller.join()
            report.equal(daemon._process.poll(), None, "exit status: the daemon goes on")
            report.equal(set(devices(client).values()), {"gpu:1"}, "where sessions are")
            away, repeated = [], []
            for caller in callers:
                if where[caller.session_id] == "gpu:1":
                    report.equal(caller.errors, [], "errors of a session of the other card")
                    continue
                report.check(len(caller.errors) > 0, "a session of the lost card is told")
                texts = {text for _, text in caller.errors}
                report.check(
                    all(t.startswith("AbortedError") and "is lost" in t for t in texts),
                    f"what it is told: {texts}",
                )
                if not caller.errors:
                    continue
                before = [steps for at, steps in caller.answers if at < caller.errors[0][0]]
                after = [(at, steps) for at, steps in caller.answers if at > caller.errors[0][0]]
                report.check(len(after) > 3, f"it steps again: {len(after)} calls")
                if after:
                    away.append(after[0][0] - lost_at)
                    repeated.append(before[-1] + STEPS - after[0][1])
                    report.check(
                        0 < after[0][1] <= before[-1] + STEPS, f"{after[0][1]} after {before[-1]}"
                    )
            print(
                f"lost card: its {len(away)} sessions step again after "
                f"{min(away, default=0):.2f} to {max(away, default=0):.2f} s, with "
                f"{min(repeated, default=0)} to {max(repeated, default=0)} steps to repeat",
                flush=True,
            )

            # a session that moved and one that never left are the same after the same steps
            furthest = max(client.session(s.id).state().steps for s in sessions)
            digests = set()
            for session in sessions:
                behind = furthest - client.session(session.id).state().steps
                if behind:
                    session.step(behind)
                digests.add(session.snapshot(transient=True).sha256)
            report.equal(len(digests), 1, "states of all sessions at the same step")
            before_stop = {s.id: s.snapshot(transient=True).sha256 for s in sessions}
        report.equal(daemon.stop(), 0, "exit status of the drain")
        log = daemon.log.read_text()
        report.check("device.lost device=gpu:0 goes_on=gpu:1" in log, f"the log: {log[-800:]}")
    finally:
        daemon.kill()
    # a new process has both cards again
    with (
        tribo.Daemon(data=folder / "data", environment=environment(), seconds=120) as again,
        again.connect() as client,
    ):
        after_start = {i: client.session(i).snapshot(transient=True).sha256 for i in before_stop}
        report.equal(after_start, before_stop, "sessions after a restart")
        fresh = client.create_session(client.load(PILE, name="pile.xml"), worlds=2, device="gpu:0")
        report.check(fresh.step(5).steps == 5, "the card works again")


def number_of_cards() -> int:
    """Cards that the real plug-in finds."""
    if not (BUILD / "libtribo_gpu.so").exists():
        return 0
    try:
        with tribo.Daemon(environment=environment(), seconds=120) as daemon:
            with daemon.connect() as client:
                return sum(d.name.startswith("gpu") for d in client.server_info().devices)
    except Exception:  # no card: it does not start
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
