#!/usr/bin/env python3
"""Small models that stand for the causes of failure of public robots load and step soundly.

Each model of tests/data/robots names its cause in its first comment. Its dofs, mass and smooth
acceleration must be MuJoCo's to NUMBERS, every one of its 500 steps from qpos0 and from each
keyframe OK, with few iterations, and its bodies must end where MuJoCo has them, within the
tolerance of the table below. MuJoCo's figures are recorded in expected.json with its version;
tests/peers/peer_robots.py compares the record with MuJoCo itself.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from common_report import Report

TRIBO = os.environ["TRIBO"]
FOLDER = Path(__file__).resolve().parents[1] / "data" / "robots"
NUMBERS = 1e-6  # relative, of mass and acceleration
ITERATIONS_A_STEP = 20
LIMIT_S = 60


class Bound(NamedTuple):
    """Largest distance between the final poses of the two programs, and its cause. MuJoCo's
    contacts, limits and loops are springs, Tribod's are hard; where none of them acts, both
    integrate alike."""

    metres: float
    radians: float
    why: str
    leave_out: tuple[str, ...] = ()  # bodies that are not compared


MODELS = {
    "adhesion.xml": Bound(1e-3, 1e-2, "the contact's spring"),
    "attach.xml": Bound(1e-6, 1e-3, "the servo is implicit here"),
    "condim_priority.xml": Bound(2e-3, 1e-3, "the contact's spring"),
    "delayed.xml": Bound(1e-6, 5e-4, "the servo is implicit here"),
    "fitted_primitives.xml": Bound(1e-6, 1e-6, "rounding"),
    "fluid.xml": Bound(6e-3, 2e-2, "the drag is implicit here"),
    "free_stiffness.xml": Bound(3e-3, 1e-5, "the spring is implicit here"),
    "friction_priority.xml": Bound(4e-3, 1e-2, "MuJoCo's friction creeps"),
    "fromto_over_pos.xml": Bound(1e-6, 1e-6, "rounding"),
    "gravcomp.xml": Bound(1e-4, 1e-3, "errors of the order of the step"),
    "hull_overlaps_grandparent.xml": Bound(1e-5, 5e-3, "MuJoCo pushes the links apart"),
    "keyframe_act.xml": Bound(1e-6, 1e-6, "rounding"),
    "limit_against_weld.xml": Bound(1e-6, 3e-3, "the springs of limit and weld"),
    "loop_misses_by_1e-8.xml": Bound(1e-4, 2e-3, "the loop is a spring"),
    "muscle.xml": Bound(1e-6, 5e-3, "the limit is a spring"),
    "overlap_along_axis.xml": Bound(1e-4, 1e-5, "MuJoCo pushes the base"),
    "redundant_rows.xml": Bound(5e-3, 2e-2, "springs of welds"),
    "replicate.xml": Bound(1e-6, 1e-6, "rounding"),
    "ros_robot.urdf": Bound(5e-3, 2e-2, "the limit is a spring"),
    "site_transmission.xml": Bound(
        5e-3, 0.2, "errors of the order of the step, of a body that tumbles"
    ),
    "spatial_tendon.xml": Bound(3e-4, 4e-3, "the tendon spring is implicit here"),
}


def tribo(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON object of a command."""
    done = subprocess.run(
        [TRIBO, *map(str, arguments), "--json"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        return done.returncode, {"message": done.stderr.strip()}


def angle_between(a: list[float], b: list[float]) -> float:
    """Angle of the rotation between two unit quaternions, in radians."""
    dot = abs(sum(x * y for x, y in zip(a, b)))
    return 2 * math.acos(min(1.0, dot))


def check_numbers(report: Report, name: str, expected: dict[str, Any]) -> bool:
    """Dofs, mass and acceleration at qpos0; False if the model does not load."""
    _, info = tribo("info", FOLDER / name, "--acceleration")
    if not report.check("counts" in info, f"{name}: {info.get('message')}"):
        return False
    dofs, mass = info["counts"]["dofs"], info["total_mass"]
    of_mass = abs(mass - expected["mass"])
    report.check(of_mass <= NUMBERS * expected["mass"], f"{name}: mass {mass}")
    if not report.check(dofs == expected["dofs"], f"{name}: {dofs} dofs"):
        return True
    theirs = expected["acceleration"]
    off = max(abs(a - b) for a, b in zip(info["acceleration"], theirs))
    scale = max(1.0, *map(abs, theirs))
    report.check(off <= NUMBERS * scale, f"{name}: acceleration {info['acceleration']}")
    return True


def check_run(
    report: Report, name: str, start: str, poses: dict[str, list[float]], steps: int
) -> None:
    """The verdict, the iterations and where the bodies end."""
    bound = MODELS[name]
    pose = [] if start == "qpos0" else ["--keyframe", start]
    code, run = tribo("run", FOLDER / name, "--steps", str(steps), "--threads", "1", *pose)
    what = f"{name} from {start}"
    told = run.get("certificate", run)
    if not report.check(code == 0 and run.get("status") == "OK", f"{what}: {code}, {told}"):
        return
    iterations = run["certificate"]["iterations"]
    report.check(iterations <= ITERATIONS_A_STEP * steps, f"{what}: {iterations} iterations")
    for body, pose_of in poses.items():
        if body in bound.leave_out:
            continue
        ours = run["bodies"][body]
        metres = math.dist(ours["position"], pose_of[:3])
        radians = angle_between(ours["orientation"], pose_of[3:])
        report.check(
            metres <= bound.metres and radians <= bound.radians,
            f"{what}: {body} is {metres:.2g} m and {radians:.2g} rad from MuJoCo's",
        )


def main() -> None:
    report = Report()
    record = json.loads((FOLDER / "expected.json").read_text())
    for name in MODELS:
        expected = record["models"][name]
        if check_numbers(report, name, expected):
            for start, poses in expected["runs"].items():
                check_run(report, name, start, poses, record["steps"])
    report.finish()


if __name__ == "__main__":
    main()
