#!/usr/bin/env python3
"""Callers with keys that do not exist, hundreds a second, beside callers with valid keys.

    strangers.py [--seconds 6] [--rate 400]

Goals: every stranger is refused, a key that the daemon has not seen before is taken in a quarter of
a second (the median of some), calls of a known key keep their time, and the refused keys are
in the audit log without taking more than their share of it.
"""

from __future__ import annotations

import argparse
import http.client
import secrets
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "e2e"))

from common_daemon import Report, create_key, scratch
from daemon_parses_uploads_aside import Http

FRESH_KEYS, FIRST_CALL_S, MOST_TIMES, FLOOR_S = 5, 0.25, 5, 0.02


def call(wire: http.client.HTTPConnection, key: str) -> tuple[int, float]:
    """Status and time of one call."""
    began = time.monotonic()
    kind = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    wire.request("POST", "/tribo.v1.Simulation/ListSessions", "{}", kind)
    answer = wire.getresponse()
    answer.read()
    return answer.status, time.monotonic() - began


def p99(address: str, key: str, seconds: float) -> tuple[float, set[int]]:
    """Of one caller's calls, and their statuses."""
    wire, took, statuses = http.client.HTTPConnection(address, timeout=10), [], set()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        status, spent = call(wire, key)
        took.append(spent)
        statuses.add(status)
        time.sleep(0.005)
    return sorted(took)[int(0.99 * (len(took) - 1))], statuses


class Strangers(threading.Thread):
    """Shows a new random key with each call, at the given rate."""

    def __init__(self, address: str, like: str, rate: float) -> None:
        super().__init__(daemon=True)
        self.address, self.like, self.rate = address, like, rate
        self.stop, self.count = threading.Event(), 0
        self.statuses: set[int] = set()

    def random_key(self) -> str:
        """Spelled as a real key, but never issued."""
        digits = "0123456789abcdef"
        return "".join(secrets.choice(digits) if c in digits else c for c in self.like)

    def run(self) -> None:
        wire, began = http.client.HTTPConnection(self.address, timeout=10), time.monotonic()
        while not self.stop.is_set():
            self.statuses.add(call(wire, self.random_key())[0])
            self.count += 1
            self.stop.wait(max(0.0, began + self.count / self.rate - time.monotonic()))


def main() -> None:
    """Runs the attack."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rate", type=float, default=400)
    options = parser.parse_args()
    report = Report()
    with scratch() as folder, report.case("strangers"):
        store = folder / "store"
        keys = [create_key(store, f"k{i}", "--rate", "0") for i in range(FRESH_KEYS + 1)]
        daemon = Http(folder)
        address = daemon.base.removeprefix("http://")
        alone, statuses = p99(address, keys[0], min(3, options.seconds))
        report.equal(statuses, {200}, "calls before it")
        strangers = Strangers(address, keys[0], options.rate)
        strangers.start()
        time.sleep(0.5)
        firsts = []
        for key in keys[1:]:
            status, spent = call(http.client.HTTPConnection(address, timeout=10), key)
            report.equal(status, 200, "the first call of a key")
            firsts.append(spent)
            time.sleep(0.2)
        beside, statuses = p99(address, keys[0], options.seconds)
        strangers.stop.set()
        strangers.join()
        report.equal(statuses, {200}, "calls of a known key")
        report.check(strangers.statuses <= {401, 429}, f"strangers: {strangers.statuses}")
        middle = sorted(firsts)[len(firsts) // 2]
        report.check(middle < FIRST_CALL_S, f"first calls took {firsts} s")
        report.check(beside < max(MOST_TIMES * alone, FLOOR_S), f"p99 {beside:.4f} s")
        report.equal(daemon.end(), 0, "exit status")
        refused = subprocess.run(
            [daemon.process.args[0], "--data", str(store), "--list-refused-keys"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        report.check(len(refused) > 1, "refused keys are listed")
        print(
            f"{strangers.count} strangers, {len(refused)} lines of audit, p99 {1e3 * alone:.1f} to "
            f"{1e3 * beside:.1f} ms, first calls {1e3 * middle:.1f} ms"
        )
    report.finish()


if __name__ == "__main__":
    main()
