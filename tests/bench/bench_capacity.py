#!/usr/bin/env python3
"""Capacity of one daemon: world-steps/s, memory of a world, sessions of one world in a GiB.

Usage: bench_capacity.py MODEL.xml... (TRIBOD names the daemon). Prints a table in Markdown. Memory
is growth of the resident set over sessions that have stepped, so it holds contacts and warm starts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from common_process import resident_bytes

import tribo

GIB = 1 << 30
STEPS, ROUNDS = 50, 5


def measure(model: Path, worlds: int, sessions: int) -> tuple[float, float, float]:
    """World-steps/s of a session, bytes of one of its worlds, bytes of a session of one world."""
    with tribo.Daemon() as daemon, daemon.connect() as client:
        scene = client.load(model)
        with client.create_session(scene) as warm:
            warm.step(STEPS)
        before = resident_bytes(daemon.pid)
        many = client.create_session(scene, worlds=worlds)
        rates = []
        for _ in range(ROUNDS):
            start = time.monotonic()
            many.step(STEPS, state=False)
            rates.append(worlds * STEPS / (time.monotonic() - start))
        world = (resident_bytes(daemon.pid) - before) / worlds
        before = resident_bytes(daemon.pid)
        for _ in range(sessions):
            client.create_session(scene).step(STEPS, state=False)
        session = (resident_bytes(daemon.pid) - before) / sessions
    return statistics.median(rates), world, session


def main() -> None:
    """A row a model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.xml")
    parser.add_argument("--worlds", type=int, default=1024, help="of the session that is timed")
    parser.add_argument("--sessions", type=int, default=400, help="of one world")
    options = parser.parse_args()
    print("| model | world-steps/s | KiB a world | KiB a session | sessions in a GiB |")
    print("|---|---|---|---|---|")
    for model in options.models:
        rate, world, session = measure(model, options.worlds, options.sessions)
        count = GIB / session
        print(
            f"| {model.stem} | {rate:,.0f} | {world / 1024:.1f} | {session / 1024:.1f} "
            f"| {count:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
