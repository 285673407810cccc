#!/usr/bin/env python3
"""Bodies at rest sleep where MJCF enables it: by the command, in a session, over a restart.

A stack of two boxes falls asleep; a ball that falls on it wakes it. A session that is asleep comes
back asleep from the store and from a snapshot, and goes on with the bytes of one that nothing has
disturbed. The same scene without the flag has nobody asleep and ends in the same pose.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import TRIBO, Report, scratch

import tribo

report = Report()

ASLEEP_AT, AWAKE_AT, END = 60, 160, 1500  # steps
POSE_TOLERANCE = 1e-4  # m


def scene(sleeps: bool) -> str:
    """Two boxes on each other on a floor, and a ball 0.5 m above them."""
    box = '<geom type="box" size=".05 .05 .05" mass="1"/>'
    flag = '<flag sleep="enable"/>' if sleeps else ""
    return f"""<mujoco><option timestep=".002">{flag}</option><worldbody>
  <geom type="plane" size="5 5 1"/>
  <body name="low" pos="0 0 .05"><freejoint/>{box}</body>
  <body name="high" pos="0 0 .15"><freejoint/>{box}</body>
  <body name="ball" pos="0 0 .4"><freejoint/><geom size=".05" mass=".2" condim="6"/></body>
</worldbody></mujoco>"""


def by_command(path: Path, steps: int) -> dict[str, Any]:
    """The answer of `tribo run`."""
    words = [TRIBO, "run", path, "--steps", str(steps), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    report.equal(done.returncode, 0, f"{path.name}: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def check_command(folder: Path) -> None:
    """Certificates tell of sleep, and the pose is that of the scene without it."""
    ends = {}
    for sleeps in (True, False):
        path = folder / f"{'sleeps' if sleeps else 'awake'}.xml"
        path.write_text(scene(sleeps))
        early, ends[sleeps] = by_command(path, ASLEEP_AT), by_command(path, END)
        report.equal(early["certificate"]["asleep"], 2 if sleeps else 0, f"{path.name}: early")
        report.check(ends[sleeps]["certificate"]["residual"] <= 1e-6, f"{path.name}: residual")
    for body, awake in ends[False]["bodies"].items():
        pairs = zip(awake["position"], ends[True]["bodies"][body]["position"], strict=True)
        off = max(abs(a - b) for a, b in pairs)
        report.check(off <= POSE_TOLERANCE, f"{body}: with sleep {off} m elsewhere")


def main() -> None:
    """The command, then a session that is kept over a restart and one that is not disturbed."""
    with scratch() as folder:
        check_command(folder)
        data = folder / "store"
        with tribo.Daemon(data=data) as daemon, daemon.connect() as client:
            loaded = client.load(scene(True).encode(), name="sleeps.xml")
            undisturbed, session = (client.create_session(loaded) for _ in range(2))
            report.equal(session.step(ASLEEP_AT).certificates[0].asleep, 2, "asleep in a session")
            undisturbed.step(ASLEEP_AT)
            woken = undisturbed.step(AWAKE_AT - ASLEEP_AT)
            snapshot = session.snapshot().snapshot_id
            again = session.step(AWAKE_AT - ASLEEP_AT)
            report.equal(again.q.tobytes(), woken.q.tobytes(), "the same steps")
            session.restore(snapshot)
            restored = session.step(1).certificates[0]
            report.equal(restored.asleep, 2, "asleep after a restore")
            session.restore(snapshot)
            kept, expected = session.id, woken.q.tobytes()
            report.equal(daemon.stop(), 0, "it stops")
        with tribo.Daemon(data=data) as daemon, daemon.connect() as client:
            session = client.session(kept)
            q = session.step(AWAKE_AT - ASLEEP_AT).q
            report.equal(q.tobytes(), expected, "after a restart as without one")
    report.finish()


main()
