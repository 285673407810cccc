#!/usr/bin/env python3
"""Sessions of a daemon with a card that stop and continue: a session holds all inputs of its next
step, warm sets included. Grasps are played alone without a break; by turns with each other, over a
restart of the daemon in the middle; forked there; and from a snapshot that a new session takes up
after it. Snapshots at the end must have the same bytes, certificates the same sums. Needs nothing
but Python.

    daemon_resume.py [--build build] [--device gpu:0] [--plugin FILE]

prints a line of JSON for each grasp and solver, and ends with 1 where something differs or nothing
was warm."""

from __future__ import annotations

import argparse
import base64
import json
import math
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from http_daemon import Daemon, put_scene, session

CALLS, MIDDLE, STEPS_OF_CALL = 20, 15, 8
SHIFT = 5  # calls: the second session gets every input this much earlier
FORCE = 0.02  # N or N m, to and fro
SUMS = ("iterations", "knownStatuses", "keptStatuses", "linearSolves", "factorizations")
#: Scenes: file, its parts, session, actuators, dofs.
SCENES = {
    "jaw_mug": ("jaw_mug.xml", [], {}, [0.0, 20.0, 20.0], 9),
    "hand": (
        "grasp.xml",
        ["mug.obj", "hand.xml"],
        {"useKeyframe": True},
        [0.0] * 5 + [20.0] * 2,
        13,
    ),
}
#: Solver, precision, tolerance.
WAYS = (
    ("auto", "DOUBLE", 1e-8), ("newton", "DOUBLE", 1e-8), ("sor", "DOUBLE", 1e-6),
    ("staggered", "DOUBLE", 1e-6), ("auto", "SINGLE", 1e-4), ("newton", "SINGLE", 1e-4),
    ("sor", "SINGLE", 1e-4), ("staggered", "SINGLE", 1e-4),
)  # fmt: skip


def array(numbers: list[float]) -> dict[str, object]:
    """Of the wire, in double."""
    data = base64.b64encode(struct.pack(f"<{len(numbers)}d", *numbers)).decode()
    return {"dtype": "DATA_TYPE_FLOAT64", "shape": [len(numbers)], "data": data}


@dataclass
class Played:
    """A session between calls, and the sums of its certificates since the middle."""

    kind: str
    name: str
    shift: int = 0
    made: int = 0
    sums: Counter[str] = field(default_factory=Counter)

    def step(self, daemon: Daemon) -> None:
        """One call, with other controls than the last."""
        controls, dofs = SCENES[self.kind][3:]
        call = self.made + self.shift
        forces = [FORCE * math.sin(0.7 * call + k) for k in range(dofs)]
        answer = daemon.call(
            "Simulation/Step", sessionId=self.name, steps=STEPS_OF_CALL, controls=array(controls),
            forces=array(forces),
        )  # fmt: skip
        certificate = answer["certificates"][0]
        if self.made >= MIDDLE:
            self.sums.update({key: int(certificate.get(key, 0)) for key in SUMS})
        self.made += 1

    def snapshot(self, daemon: Daemon, data: bool = False) -> dict[str, Any]:
        """Of all that the next step depends on."""
        return daemon.call(
            "Simulation/Snapshot", sessionId=self.name, transient=True, wantData=data
        )


class Grasp:
    """One grasp in one way: two sessions that go alone, and the sessions that must give the
    same."""

    def __init__(
        self, daemon: Daemon, kind: str, scene: str, device: str, way: tuple[str, str, float]
    ) -> None:
        self.kind, self.way, self.scene, self.device = kind, way, scene, device
        solver, precision, tolerance = way
        solve = {"solver": solver, "tolerance": tolerance, "maximumIterations": 200}
        self.options = {"precision": f"PRECISION_{precision}", "solve": solve}
        self.alone = [self.begin(daemon, shift) for shift in (0, SHIFT)]
        self.turns = [self.begin(daemon, shift) for shift in (0, SHIFT)]

    def begin(self, daemon: Daemon, shift: int) -> Played:
        more = SCENES[self.kind][2]
        name = session(daemon, self.scene, self.device, options=self.options, **more)
        return Played(self.kind, name, shift)

    def before(self, daemon: Daemon) -> None:
        """All the way alone, half of it by turns; a fork and a snapshot there."""
        for one in self.alone:
            for _ in range(CALLS):
                one.step(daemon)
        for _ in range(MIDDLE):
            for one in self.turns:
                one.step(daemon)
        self.ends = [one.snapshot(daemon)["sha256"] for one in self.alone]
        first = self.turns[0]
        fork = daemon.call("Simulation/Fork", sessionId=first.name)["sessionIds"][0]
        self.fork = Played(self.kind, fork, 0, MIDDLE)
        self.middle = first.snapshot(daemon, data=True)

    def after(self, daemon: Daemon) -> dict[str, object]:
        """The rest of it by another daemon; a row."""
        restored = self.begin(daemon, 0)
        restored.made = MIDDLE
        daemon.call("Simulation/Restore", sessionId=restored.name, data=self.middle["data"])
        for _ in range(MIDDLE, CALLS):
            for one in (*self.turns, self.fork, restored):
                one.step(daemon)
        found = {"turns": self.turns[0], "other": self.turns[1], "fork": self.fork}
        found["restored"] = restored
        wrong = []
        for what, one in found.items():
            other = int(what == "other")
            if one.snapshot(daemon)["sha256"] != self.ends[other]:
                wrong.append(f"{what}: other bytes")
            if one.sums != self.alone[other].sums:
                wrong.append(f"{what}: other sums")
        if self.ends[0] == self.ends[1]:
            wrong.append("two sessions are one")
        return self.row(wrong)

    def row(self, wrong: list[str]) -> dict[str, object]:
        """Warm counts, and errors."""
        solver, precision, _ = self.way
        sums = self.alone[0].sums
        known, kept = sums["knownStatuses"], sums["keptStatuses"]
        if known < 10 * STEPS_OF_CALL * (CALLS - MIDDLE) or not 0.9 * known <= kept <= known:
            wrong.append(f"{kept} of {known} statuses were kept")
        if solver == "newton" and not 0 < sums["factorizations"] < sums["linearSolves"]:
            wrong.append(f"{sums['factorizations']} factorizations, {sums['linearSolves']} solves")
        return {
            "scene": self.kind, "solver": solver, "precision": precision.lower(),
            "device": self.device, "steps": STEPS_OF_CALL * (CALLS - MIDDLE),
            **{key: sums[key] for key in SUMS}, "snapshot_bytes": int(self.middle["size"]),
            "sha256": self.ends[0], "wrong": wrong,
        }  # fmt: skip


def make_scenes(build: Path, folder: Path) -> None:
    for command in (["mug", str(folder), "1"], ["hand", str(folder)], ["jaw_mug", str(folder)]):
        program = build / "tests/data" / command[0]
        subprocess.run([program, *command[1:]], check=True, stdout=subprocess.DEVNULL)


def play(options: argparse.Namespace, folder: Path, environment: dict[str, str]) -> bool:
    """Plays the grasps by one daemon, then by a second one over the same store. False: a check
    failed."""
    data = folder / "data"
    with Daemon(options.build, environment, data) as daemon:
        scenes = {kind: put_scene(daemon, folder, *s[:2]) for kind, s in SCENES.items()}
        grasps = [
            Grasp(daemon, kind, scene, options.device, way)
            for kind, scene in scenes.items()
            for way in WAYS
        ]
        for grasp in grasps:
            grasp.before(daemon)
        status, log = daemon.stop()
    if status != 0:
        raise SystemExit(f"the daemon ended with {status}: {log[-400:]}")

    good = True
    with Daemon(options.build, environment, data) as daemon:
        for grasp in grasps:
            row = grasp.after(daemon)
            good = good and not row["wrong"]
            print(json.dumps(row), flush=True)
        daemon.stop()
    return good


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--device", default="gpu:0")
    parser.add_argument("--plugin", type=Path)
    options = parser.parse_args()
    options.build = options.build.resolve()
    environment = {"TRIBOD_SERVER_BACKEND": "auto", "TRIBOD_LOG_LEVEL": "warning"}
    if options.plugin is not None:
        environment["TRIBO_GPU_PLUGIN"] = str(options.plugin.resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_scenes(options.build, folder)
        sys.exit(not play(options, folder, environment))


if __name__ == "__main__":
    main()
