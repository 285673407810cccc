"""MuJoCo Warp on the scenes of scenes.py: the same models, controls and starts as bench_gpu.

  mujoco_warp_bench.py FOLDER SCENE [--worlds 1 1024 8192] [--parts hold whole] [--impratio 1]

whole  every world from its own start to the end, all steps timed, as bench_gpu has it; with
       --whole-steps N it ends after so many
hold   the end of the undisturbed whole, all worlds alike; and after the whole, if it was not cut,
       each world in its own state

Defaults throughout (Newton solver, its iterations and tolerance as in the model) but for the cone,
which is elliptic. Steps are captured in a CUDA graph, PIECE at a time, which is launched again and
again; controls are copied where they change. MuJoCo Warp has no certificate, so its results are
compared with those of bench_gpu at any tolerance; the speed at which the held object slides in the
hand is printed instead.
Prints one JSON object a line. Needs numpy, mujoco, mujoco-warp, warp-lang; without a card it runs
on the processors, slowly.
"""

import argparse
import csv
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import mujoco
import mujoco_warp
import numpy as np
import warp as wp
from scenes import Scene, read
from starts import Array, process_age, starts
from timing import REPEATS, seconds_of

PIECE = 10  # steps of a graph; the controls of all scenes change at multiples of it
FIRST: dict[str, float] = {}  # s from the process's start to its first step


@dataclass
class Controls:
    """Rows of a controls file by the step from which they hold."""

    rows: dict[int, Array]

    @staticmethod
    def read(folder: Path, scene: Scene, model: mujoco.MjModel) -> "Controls":
        rows: dict[int, Array] = {}
        if scene.controls:
            with (folder / scene.controls).open() as file:
                table = list(csv.reader(file))
            at = [model.actuator(name).id for name in table[0][1:]]
            for line in table[1:]:
                values = np.zeros(model.nu)
                values[at] = [float(v) for v in line[1:]]
                rows[round(float(line[0]) / scene.dt)] = values
        if any(step % PIECE for step in rows):
            raise SystemExit(f"controls of {scene.name} change within {PIECE} steps")
        return Controls(rows)


class Batch:
    """Worlds of one scene on the card, and the graph that steps them."""

    def __init__(self, model: mujoco.MjModel, scene: Scene, worlds: int, controls: Controls):
        self.model, self.scene, self.worlds, self.controls = model, scene, worlds, controls
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        self.warp_model = mujoco_warp.put_model(model)
        self.data = mujoco_warp.put_data(
            model, data, nworld=worlds, nconmax=scene.contacts, njmax=scene.rows
        )
        mujoco_warp.step(self.warp_model, self.data)
        wp.synchronize()
        FIRST.setdefault("step_s", round(process_age(), 2))
        self.graph: Any = None
        if wp.get_device().is_cuda:
            with wp.ScopedCapture() as capture:
                self.launch()
            self.graph = capture.graph

    def launch(self) -> None:
        for _ in range(PIECE):
            mujoco_warp.step(self.warp_model, self.data)

    def copy(self, target: Any, values: Array) -> None:
        wp.copy(target, wp.array(values.astype(np.float32), dtype=float))

    def reset(self, q: Array) -> None:
        self.copy(self.data.qpos, q)
        for array in (self.data.qvel, self.data.time, self.data.qacc_warmstart, self.data.ctrl):
            array.zero_()

    def advance(self, steps: int) -> None:
        for _ in range(steps // PIECE):
            if self.graph is None:
                self.launch()
            else:
                wp.capture_launch(self.graph)

    def whole(self, steps: int) -> float:
        """Seconds from the start on; controls are on the card beforehand."""
        told = {
            step: wp.array(np.tile(row, (self.worlds, 1)).astype(np.float32), dtype=float)
            for step, row in self.controls.rows.items()
        }
        wp.synchronize()
        began = time.perf_counter()
        for step in range(0, steps, PIECE):
            if step in told:
                wp.copy(self.data.ctrl, told[step])
            self.advance(PIECE)
        wp.synchronize()
        return time.perf_counter() - began

    def copy_of(self, other: "Batch") -> None:
        """All worlds as the first of another batch is."""
        for name in ("qpos", "qvel", "ctrl", "qacc_warmstart"):
            row = getattr(other.data, name).numpy()[0]
            self.copy(getattr(self.data, name), np.tile(row, (self.worlds, 1)))

    def held_at(self) -> Array:
        """Where the held body is in every world, from the carriage that lifts it."""
        at = int(self.model.jnt_qposadr[self.model.joint(self.scene.body).id])
        q = self.data.qpos.numpy().astype(np.float64)
        place: Array = q[:, at : at + 3].copy()
        place[:, 2] -= q[:, int(self.model.jnt_qposadr[self.model.joint("lift").id])]
        return place

    def held(self) -> int:
        if not self.scene.body:
            return self.worlds
        at = int(self.model.jnt_qposadr[self.model.joint(self.scene.body).id])
        return int((self.data.qpos.numpy()[:, at + 2] > self.scene.height).sum())


def whole_steps(scene: Scene) -> int:
    return scene.steps - scene.steps % PIECE


def tell(batch: Batch, part: str, steps: int, seconds: list[float], **more: object) -> None:
    rates = [batch.worlds * steps / s for s in seconds]
    contacts = int(batch.data.nacon.numpy()[0]) / batch.worlds
    option = batch.model.opt
    device = wp.get_device()
    print(json.dumps({
        "bench": "mujoco_warp", "version": mujoco_warp.__version__, "warp": wp.config.version,
        "card": device.name, "scene": batch.scene.name, "part": part, "worlds": batch.worlds,
        "steps": steps, "scene_steps": whole_steps(batch.scene),
        "world_steps_per_s": median(rates), "lowest": min(rates), "highest": max(rates),
        "contact_steps_per_s": median(rates) * contacts,
        "us_per_step": 1e6 * median(seconds) / steps, "contacts": contacts,
        "held": batch.held(), "first_step_s": FIRST["step_s"],
        "iterations": float(np.mean(batch.data.solver_niter.numpy())),
        "finite": bool(np.isfinite(batch.data.qpos.numpy()).all()),
        "tolerance": float(option.tolerance), "cone": int(option.cone),
        "impratio": float(option.impratio), **more,
    }), flush=True)  # fmt: skip


def hold(batch: Batch, part: str, steps: int) -> None:
    """Of the scene's whole way."""
    slides = bool(batch.scene.body) and batch.scene.name != "boxes"
    before = batch.held_at() if slides else None
    batch.advance(PIECE)
    seconds = seconds_of(batch.advance, steps)
    more = {}
    if before is not None:
        way = np.linalg.norm(batch.held_at() - before, axis=1)
        span = batch.scene.dt * (PIECE + REPEATS * steps)
        more["slide_um_per_s"] = float(1e6 * np.median(way) / span)
    tell(batch, part, steps, seconds, way=whole_steps(batch.scene), **more)


def run(scene: Scene, folder: Path, arguments: argparse.Namespace) -> None:
    model = mujoco.MjModel.from_xml_path(str(folder / scene.model))
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    if arguments.impratio:
        model.opt.impratio = arguments.impratio
    controls = Controls.read(folder, scene, model)
    steps = min(arguments.whole_steps or scene.steps, scene.steps)
    steps -= steps % PIECE
    hold_steps = arguments.hold_steps - arguments.hold_steps % PIECE
    one = Batch(model, scene, 1, controls)
    one.reset(starts(model, scene, 1))
    if "hold" in arguments.parts:
        one.whole(whole_steps(scene))
    for worlds in arguments.worlds:
        batch = Batch(model, scene, worlds, controls)
        if "hold" in arguments.parts:
            batch.copy_of(one)
            hold(batch, "hold", hold_steps)
        if "whole" in arguments.parts:
            batch.reset(starts(model, scene, worlds))
            tell(batch, "whole", steps, [batch.whole(steps)], way=steps)
            if "hold" in arguments.parts and steps == whole_steps(scene):
                hold(batch, "varied hold", hold_steps)
        del batch


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("scene")
    parser.add_argument("--worlds", type=int, nargs="+", default=[1, 1024, 8192, 32768])
    parser.add_argument("--parts", nargs="+", default=["hold", "whole"])
    parser.add_argument("--hold-steps", type=int, default=200)
    parser.add_argument("--impratio", type=float, default=0.0)
    parser.add_argument("--whole-steps", type=int, default=0, help="if not the scene's")
    arguments = parser.parse_args()
    wp.config.quiet = True
    wp.init()
    for scene in read(arguments.folder):
        if scene.name == arguments.scene:
            run(scene, arguments.folder, arguments)
            return
    sys.exit(f"no scene {arguments.scene} in {arguments.folder}")


if __name__ == "__main__":
    main()
