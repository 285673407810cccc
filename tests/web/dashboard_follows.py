#!/usr/bin/env python3
"""Figures of the dashboard in a browser that draws by software.

A page shows a session of 200 shapes that is stepped 500 times a second. Measured are the frames a
second, the age of the shown state, the slowing of the stepping client, and the time until the first
page is painted.

    make check-web [ARGS="--seconds 60"]

Prints a table; fails where a goal is missed by more than a busy machine explains.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from common_browser import Browser
from common_daemon import Report, scratch

import tribo

SHAPES = 200
STEPS_PER_SECOND = 500
#: s; the client is timed in turns of this length, with and without a page that follows
TURN = 5.0
KINDS = (
    'type="box" size="0.08 0.08 0.08"',
    'type="sphere" size="0.09"',
    'type="capsule" size="0.06 0.06"',
    'type="cylinder" size="0.08 0.07"',
)
LONG_TASKS = """
globalThis.longTasks = [];
new PerformanceObserver(list => list.getEntries().forEach(e => longTasks.push(e.duration)))
  .observe({ type: "longtask", buffered: true });
"""


def pile() -> bytes:
    """200 bodies in two layers."""
    bodies = []
    for k in range(SHAPES):
        x, y, z = (k % 10) * 0.25 - 1.1, ((k // 10) % 10) * 0.25 - 1.1, 0.12 + 0.22 * (k // 100)
        shape = f'<geom {KINDS[k % len(KINDS)]} density="500"/>'
        bodies.append(f'<body pos="{x} {y} {z}"><freejoint/>{shape}</body>')
    return (
        '<mujoco><worldbody><geom type="plane" size="5 5 0.1"/>'
        + "".join(bodies)
        + "</worldbody></mujoco>"
    ).encode()


class Stepper:
    """Steps a session at a steady pace, and times each call."""

    def __init__(self, session: tribo.Session) -> None:
        self.session = session
        self.calls: list[float] = []
        self._stop = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop:
            began = time.monotonic()
            self.session.step()
            now = time.monotonic()
            self.calls.append(now - began)
            due = max(due + 1 / STEPS_PER_SECOND, now - 0.1)
            time.sleep(max(0.0, due - now))

    def take(self) -> list[float]:
        """Times of the calls since the last look, s."""
        taken, self.calls = self.calls, []
        return taken

    def stop(self) -> None:
        """Ends it."""
        self._stop = True
        self._thread.join()


def first_load(report: Report, browser: Browser, at: str) -> None:
    """First paint and total blocking time of the first page."""
    browser.call("Page.addScriptToEvaluateOnNewDocument", source=LONG_TASKS)
    browser.open(at)
    browser.wait("document.querySelector('.tiles b')?.textContent.length > 0")
    browser.wait("document.querySelector('main .empty, main table')")
    browser.wait("performance.getEntriesByName('first-contentful-paint').length > 0")
    paint = browser.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    blocked = sum(max(0, task - 50) for task in browser.run("longTasks"))
    size = browser.run(
        "performance.getEntriesByType('resource').reduce((n, r) => n + r.encodedBodySize, 0)"
    )
    print(
        f"first contentful paint {paint:.0f} ms, total blocking time {blocked:.0f} ms, "
        f"{size / 1000:.0f} kB loaded with the first answers"
    )
    report.check(paint < 5000, f"first paint after {paint:.0f} ms")


def follow(report: Report, browser: Browser, at: str, client: tribo.Client, seconds: float) -> None:
    """The page beside the stepping client."""
    session = client.create_session(client.load(pile(), name="pile.xml"), label="200 shapes")
    session.step(200)
    stepper = Stepper(session)
    page = f"{at}#/live/{session.id}"
    alone: list[float] = []
    watched: list[float] = []
    rates: list[float] = []
    ages: list[float] = []
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            browser.open(f"{at}#/server")
            time.sleep(1)
            stepper.take()
            time.sleep(TURN)
            alone += stepper.take()
            browser.open(page)
            browser.wait("globalThis.tribodView?.frame()?.steps > 0")
            time.sleep(2)
            stepper.take()
            time.sleep(TURN)
            watched += stepper.take()
            figures = browser.run("tribodView.view.pace.figures()")
            rates.append(figures["rate"])
            ages.append(figures["latency"])
    finally:
        stepper.stop()
    calls = [statistics.median(times) * 1e6 for times in (alone, watched)]
    rate = [len(times) / (TURN * len(rates)) for times in (alone, watched)]
    print(f"page: {statistics.median(rates):.1f} frames/s, {statistics.median(ages):.0f} ms old")
    print(
        f"client: {rate[0]:.0f} steps/s alone, {rate[1]:.0f} with the page; a call takes "
        f"{calls[0]:.0f} and {calls[1]:.0f} us in the median"
    )
    report.check(statistics.median(rates) > 1, "the page draws")
    report.check(statistics.median(ages) < 5000, "what it draws is not old")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="of following (60)")
    options = parser.parse_args()
    report = Report()
    with (
        scratch() as folder,
        tribo.Daemon(data=folder / "data") as daemon,
        daemon.connect(timeout=60) as client,
        Browser(folder) as browser,
    ):
        at = f"http://{daemon.http}/"
        with report.case("first load"):
            first_load(report, browser, at)
        with report.case("following"):
            follow(report, browser, at, client, options.seconds)
    report.finish()


if __name__ == "__main__":
    main()
