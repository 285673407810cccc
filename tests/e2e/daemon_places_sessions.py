#!/usr/bin/env python3
"""Sessions are placed on two cards by free memory and by load. The cards are a plug-in of the
tests."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, BUILD, Report

import tribo

PLUGIN = BUILD / "tests" / "plugin" / "failing.so"
MIB = 1 << 20
report = Report()


class Cards:
    """A client of a daemon with two cards, and a scene."""

    def __init__(self, client: tribo.Client) -> None:
        self.client = client
        self.scene = client.load(BALL)

    def place(self, worlds: int) -> tuple[tribo.Session, str]:
        """A new session, and its device."""
        session = self.client.create_session(self.scene, worlds=worlds)
        return session, self.listed(session).device

    def listed(self, session: tribo.Session) -> object:
        """The session's row of the list."""
        return next(s for s in self.client.sessions() if s.session_id == session.id)

    def bytes_of(self, worlds: int) -> int:
        """Estimated memory of a session."""
        with self.client.create_session(self.scene, worlds=worlds) as session:
            return int(self.listed(session).memory_bytes)


@contextmanager
def cards(*memory: int) -> Iterator[Cards]:
    """A daemon whose cards have this much memory."""
    environment = {
        "TRIBO_GPU_PLUGIN": str(PLUGIN),
        "TRIBO_TEST_CARDS": str(len(memory)),
        "TRIBO_TEST_MEMORY": ",".join(str(m) for m in memory),
        "TRIBOD_SERVER_BACKEND": "gpu",
    }
    with tribo.Daemon(environment=environment) as daemon, daemon.connect() as client:
        yield Cards(client)


def evenly_by_memory() -> None:
    """Small sessions balance a large one; a session that ends makes room."""
    with cards(1024 * MIB, 1024 * MIB) as c:
        large, where = c.place(400)
        report.equal(where, "gpu:0", "the first")
        small = [c.place(2)[1] for _ in range(6)]
        report.equal(small, ["gpu:1"] * 6, "small ones balance it")
        large.delete()
        report.equal(c.place(2)[1], "gpu:0", "once the large one has ended")


def by_shares_of_different_cards() -> None:
    """A card of three times the memory gets three times the sessions."""
    with cards(300 * MIB, 900 * MIB) as c:
        placed = [c.place(50)[1] for _ in range(12)]
        report.equal(placed.count("gpu:1"), 9, f"of 12 sessions: {placed}")


def where_they_fit() -> None:
    """A session goes where it fits, however full that card is; if nowhere, to the freest card."""
    with cards(1, 1) as c:
        need = c.bytes_of(100)
    with cards(need * 5 // 2, need // 2) as c:
        placed = [c.place(100)[1] for _ in range(2)]
        report.equal(placed, ["gpu:0"] * 2, "sessions that the other card has no room for")
        report.equal(c.place(10)[1], "gpu:1", "a small one fits there")
        report.equal(c.place(100)[1], "gpu:0", "no card has room: the freest")


def by_load() -> None:
    """A card that computes all the time gets no more sessions while the other is idle."""
    with cards(1024 * MIB, 1024 * MIB) as c:
        busy, first = c.place(2)
        _, second = c.place(200)
        report.equal((first, second), ("gpu:0", "gpu:1"), "one each")
        report.equal(c.place(2)[1], "gpu:0", "both are idle: the card whose memory is emptier")
        stop = threading.Event()

        def drive() -> None:
            while not stop.is_set():
                busy.step(500)

        thread = threading.Thread(target=drive)
        thread.start()
        try:
            time.sleep(1.5)
            c.place(2)  # looks at the cards
            time.sleep(1.5)
            report.equal(c.place(2)[1], "gpu:1", "the idle one, although its memory is fuller")
        finally:
            stop.set()
            thread.join()
        time.sleep(1.2)
        c.place(2)
        time.sleep(1.2)
        report.equal(c.place(2)[1], "gpu:0", "and back, when the load has gone")


def main() -> None:
    """All checks."""
    for case in (evenly_by_memory, by_shares_of_different_cards, where_they_fit, by_load):
        with report.case(case.__name__):
            case()
    report.finish()


if __name__ == "__main__":
    main()
