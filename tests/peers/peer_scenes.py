"""The scenes of `make bench-gpu` on the CPU: grasped objects stay held, and peers have room.

Each of tests/bench/gpu/scenes.py is stepped by `tribo run` to its end and on for two seconds: every
step reaches 1e-6, and held objects have moved by less than a thousandth of a millimetre. MuJoCo
steps some worlds from the starts that the benchmark gives them: contacts and rows must stay well
below the capacity that MuJoCo Warp is given, for it drops all others.
"""

import csv
import os
import sys
from pathlib import Path

import mujoco
import numpy as np
from common import Report, mujoco_compile, scratch, tribo

os.environ.setdefault("PEERS", sys.prefix)
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench/gpu"))

import scenes
from scenes import Scene
from starts import Array, starts

WORLDS = 6
HOLD_S = 2.0
TOLERANCE = 1e-6
LARGEST_SLIDE = 1e-6  # m in HOLD_S; a held object does not move
FREE_ROOM = 1.2


def in_the_hand(bodies: dict[str, dict[str, list[float]]], scene: Scene) -> Array:
    """Where the held body is, from the carriage that lifts it; of boxes, in the world."""
    lifted = {"jaw_mug": "palm", "hand": "carriage"}.get(scene.name)
    place = np.array(bodies[scene.body]["position"])
    return place - np.array(bodies[lifted]["position"]) if lifted else place


def ours(scene: Scene, folder: Path, report: Report) -> None:
    model = folder / scene.model
    how = ["--tolerance", repr(TOLERANCE), "--no-energy", "--quiet"]
    if scene.controls:
        how += ["--controls", str(folder / scene.controls)]
    longer = scene.steps + round(HOLD_S / scene.dt)
    end, later = (tribo("run", model, "--steps", str(n), *how) for n in (scene.steps, longer))
    certificate = later["certificate"]
    report.check(certificate["status"] == "OK", f"{scene.name}: {certificate}")
    if scene.body:
        height = later["bodies"][scene.body]["position"][2]
        report.check(height > scene.height, f"{scene.name}: {scene.body} is at {height} m")
        way = in_the_hand(later["bodies"], scene) - in_the_hand(end["bodies"], scene)
        slide = float(np.linalg.norm(way))
        report.check(slide < LARGEST_SLIDE, f"{scene.name}: {scene.body} slid by {slide} m")
        print(f"{scene.name}: {scene.body} slides by {1e6 * slide:.3g} um in {HOLD_S:g} s")


def theirs(scene: Scene, folder: Path, report: Report) -> None:
    model = mujoco_compile(mujoco.MjSpec.from_file(str(folder / scene.model)))
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    rows: dict[int, list[float]] = {}
    at: list[int] = []
    if scene.controls:
        with (folder / scene.controls).open() as file:
            table = list(csv.reader(file))
        at = [model.actuator(name).id for name in table[0][1:]]
        rows = {round(float(r[0]) / scene.dt): [float(v) for v in r[1:]] for r in table[1:]}
    held, contacts, constraints = 0, 0, 0
    for q in starts(model, scene, WORLDS):
        data = mujoco.MjData(model)
        data.qpos[:] = q
        for step in range(scene.steps):
            if step in rows:
                data.ctrl[at] = rows[step]
            mujoco.mj_step(model, data)
            contacts, constraints = max(contacts, data.ncon), max(constraints, data.nefc)
        held += not scene.body or bool(data.body(scene.body).xpos[2] > scene.height)
    report.check(held == WORLDS, f"{scene.name}: MuJoCo holds {held} of {WORLDS}")
    enough = FREE_ROOM * contacts <= scene.contacts and FREE_ROOM * constraints <= scene.rows
    report.check(enough, f"{scene.name}: {contacts} contacts, {constraints} rows in MuJoCo")
    print(f"{scene.name}: up to {contacts} contacts and {constraints} rows in MuJoCo", flush=True)


def main() -> None:
    report = Report()
    with scratch() as name:
        made = scenes.write(Path(name))
        report.check(len(made) == len(scenes.SCENES), f"{len(made)} scenes could be made")
        for scene in made:
            ours(scene, Path(name), report)
            theirs(scene, Path(name), report)
    report.finish()


if __name__ == "__main__":
    main()
