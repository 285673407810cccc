#!/usr/bin/env python3
"""Eight uploads at once that ask for all time and memory, and their effect on other callers.

Prints the p99 of a caller who creates, steps and ends sessions, alone and beside the bombs, and the
peak of resident memory. Ends with 1 if the caller's p99 grows by more than FACTOR, if memory grows
beyond the limit of the configuration, or if an upload ends otherwise than by its budget.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "e2e"))

from common_daemon import BALL, Report, scratch
from common_process import resident_bytes
from daemon_parses_uploads_aside import MIB, Http, ball_of_points

#: Bound on the p99 during the bombs over the p99 alone. Eight bombs take both cores of a small
#: machine.
FACTOR = 5
#: Longest time of a call that is always accepted, s: below that a factor is noise.
FLOOR_S = 0.05
UPLOAD_MEMORY_MIB = 128


def bombs() -> list[dict]:
    """Requests that are short to say and long to answer."""
    geoms = "<mujoco><worldbody>" + "<geom size='1'/>" * 400000 + "</worldbody></mujoco>"
    classes = "".join(f"<default class='c{i}'><geom size='1'/></default>" for i in range(100000))
    nested = f"<mujoco><default>{classes}</default><worldbody><geom size='1'/></worldbody></mujoco>"
    body = "<body><freejoint/><geom size='1'/></body>"
    keys = "<key/>" * 20000 + "<key qpos='1'/>" * 20000
    frames = f"<mujoco><worldbody>{body * 3000}</worldbody><keyframe>{keys}</keyframe></mujoco>"
    points = ball_of_points(200000)
    return [
        {"text": geoms},
        {"text": nested},
        {"text": frames},
        {"text": points, "path": "ball.obj"},
    ] * 2


def p99_of_calls(daemon: Http, scene: str, seconds: float) -> float:
    """p99 of a session's life, s."""
    took: list[float] = []
    end = time.monotonic() + seconds

    def timed(method: str, body: dict) -> dict:
        began = time.monotonic()
        answer = daemon.post(method, body)
        took.append(time.monotonic() - began)
        return answer

    while time.monotonic() < end:
        session = timed("Simulation/CreateSession", {"sceneId": scene})
        timed("Simulation/Step", {"sessionId": session["sessionId"]})
        timed("Simulation/DeleteSession", {"sessionId": session["sessionId"]})
    return sorted(took)[int(0.99 * (len(took) - 1))]


def main() -> None:
    """Runs the attack."""
    report = Report()
    with scratch() as folder:
        daemon = Http(
            folder,
            LIMITS_UPLOAD_MEMORY_BYTES=f"{UPLOAD_MEMORY_MIB} MiB",
            LIMITS_UPLOAD_SECONDS="5",
        )
        scene = daemon.post("Simulation/CreateScene", {"text": BALL.decode()})["sceneId"]
        alone = p99_of_calls(daemon, scene, 3)
        before = resident_bytes(daemon.process.pid)
        bodies = [json.dumps(bomb).encode() for bomb in bombs()]
        ends: list[dict] = []
        threads = [
            threading.Thread(
                target=lambda b=body: ends.append(daemon.refused("Simulation/CreateScene", b))
            )
            for body in bodies
        ]
        for thread in threads:
            thread.start()
        peak, done = [before], threading.Event()

        def watch() -> None:
            while not done.wait(0.02):
                peak.append(resident_bytes(daemon.process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        beside = p99_of_calls(daemon, scene, 6)
        for thread in threads:
            thread.join(60)
        done.set()
        watcher.join()
        grown = (max(peak) - before) / MIB
        print(f"p99 alone {1e3 * alone:.1f} ms, beside 8 bombs {1e3 * beside:.1f} ms")
        print(f"peak of resident memory: {grown:.0f} MiB more than before")
        report.equal(len(ends), len(bodies), "uploads that ended")
        for end in ends:
            code = end.get("code", "taken")
            report.check(code in ("resource_exhausted", "taken"), f"an upload ended with {end}")
        report.check(
            beside < FACTOR * max(alone, FLOOR_S), f"p99 {beside:.3f} s, {alone:.3f} alone"
        )
        # the texts and requests of eight callers come on top of the two parsers' memory
        report.check(grown < 3 * UPLOAD_MEMORY_MIB + 256, f"memory grew by {grown:.0f} MiB")
        report.equal(daemon.end(), 0, "exit code")
    report.finish()


if __name__ == "__main__":
    main()
