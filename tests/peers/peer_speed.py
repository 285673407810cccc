"""Speed beside MuJoCo: one world of jaw and mug, one thread each, the two in turn.

The scene of tests/data/jaw_mug.c: close for 1 s, lift to 0.2 m until 2 s, hold until 4 s, dt 2 ms.
MuJoCo steps in C with default options and the elliptic cone, ours as `tribo run` at residual 1e-6;
both get a new lift control every 20 ms. The hold is timed on its own, from where the mug is at 3 s.
The accuracy of each is shown by the slip of the mug against the palm, from 3 s to 4 s.

Times are printed and never judged (`make check-peers ONLY=speed` runs nothing beside them). The mug
must not slide in ours.
"""

import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

import common
import mujoco
import numpy as np
from common import BUILD, Array, Report, tribo

DT_S = 2e-3
CHUNK = 10  # steps between controls
STEPS, HOLD_FROM, HOLD_STEPS = 2000, 1500, 2000
CLOSE_N = 20.0
ROUNDS = 7
TOLERANCE = 1e-6
LARGEST_SLIDE = 1e-9  # m/s


def lift_at(step: int) -> float:
    """Target of the palm's servo, m."""
    return 0.2 * min(max(DT_S * step - 1, 0), 1)


def write_controls(file: Path) -> None:
    rows = [f"{DT_S * s!r},{lift_at(s)!r},{CLOSE_N},{CLOSE_N}" for s in range(0, STEPS, CHUNK)]
    file.write_text("\n".join(["time,lift,close-1,close+1", *rows, ""]))


class Ours:
    """`tribo run` with the scene, and the scene again with the hold as a keyframe."""

    def __init__(self, scene: Path, folder: Path) -> None:
        self.scene, self.controls = scene, folder / "controls.csv"
        write_controls(self.controls)
        begin, end = self.grasp(HOLD_FROM), self.grasp(STEPS)
        self.height = end["bodies"]["mug"]["position"][2]
        self.slide = float(np.linalg.norm(held_at(end) - held_at(begin)))
        self.slide /= DT_S * (STEPS - HOLD_FROM)
        self.certificate = end["certificate"]

        q = np.concatenate([np.atleast_1d(j["position"]) for j in begin["joints"].values()])
        values = " ".join(repr(float(v)) for v in q)
        key = f'<key name="hold" qpos="{values}" ctrl="{lift_at(STEPS)} {CLOSE_N} {CLOSE_N}"/>'
        self.hold_scene = folder / "hold.xml"
        text = scene.read_text().replace("</mujoco>", f"<keyframe>{key}</keyframe></mujoco>")
        self.hold_scene.write_text(text)

    def run(self, file: Path, steps: int, *options: str) -> dict[str, Any]:
        how = ["--threads", "1", "--tolerance", repr(TOLERANCE), "--no-energy", "--quiet"]
        return tribo("run", file, "--steps", str(steps), *how, *options)

    def grasp(self, steps: int) -> dict[str, Any]:
        return self.run(self.scene, steps, "--controls", str(self.controls))

    def time(self) -> tuple[float, float]:
        """Seconds a step of the whole grasp, and of the hold."""
        whole = self.grasp(STEPS)["seconds"] / STEPS
        hold = self.run(self.hold_scene, HOLD_STEPS, "--keyframe", "hold")["seconds"] / HOLD_STEPS
        return whole, hold


def held_at(answer: dict[str, Any]) -> Array:
    """Where the mug is, seen from the palm (which does not turn)."""
    bodies = answer["bodies"]
    return np.array(bodies["mug"]["position"]) - np.array(bodies["palm"]["position"])


class Theirs:
    """MuJoCo with its defaults and the elliptic cone."""

    def __init__(self, scene: Path) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(scene))
        self.model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        self.slide = self.height = 0.0

    def held_at(self, data: mujoco.MjData) -> Array:
        return np.subtract(data.body("mug").xpos, data.body("palm").xpos, dtype=np.float64)

    def time(self) -> tuple[float, float]:
        data = mujoco.MjData(self.model)
        data.ctrl[:] = 0, CLOSE_N, CLOSE_N
        hold = mujoco.MjData(self.model)
        start = time.perf_counter()
        for step in range(0, STEPS, CHUNK):
            if step == HOLD_FROM:
                mujoco.mj_copyData(hold, self.model, data)
            data.ctrl[0] = lift_at(step)
            mujoco.mj_step(self.model, data, CHUNK)
        whole = (time.perf_counter() - start) / STEPS

        self.height = float(data.body("mug").xpos[2])
        self.slide = float(np.linalg.norm(self.held_at(data) - self.held_at(hold)))
        self.slide /= DT_S * (STEPS - HOLD_FROM)
        start = time.perf_counter()
        mujoco.mj_step(self.model, hold, HOLD_STEPS)
        return whole, (time.perf_counter() - start) / HOLD_STEPS


def show(what: str, ours: Array, theirs: Array) -> None:
    """Medians with their range, in µs, and the ratio of runs that were neighbours."""
    ratios = ours / theirs
    cells = [f"{median(x):7.1f} ({x.min():.1f} to {x.max():.1f})" for x in (ours, theirs)]
    ratio = f"{median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"
    print(f"{what:22} {cells[0]:26} {cells[1]:26} {ratio}")


def main() -> None:
    report = Report()
    with common.scratch() as name:
        folder = Path(name)
        generator = (BUILD / "tests/data/jaw_mug").resolve()
        subprocess.run([generator, folder], check=True, stdout=subprocess.DEVNULL)
        scene = folder / "jaw_mug.xml"
        ours, theirs = Ours(scene, folder), Theirs(scene)
        theirs.time()
        times = np.array([(ours.time(), theirs.time()) for _ in range(ROUNDS)]) * 1e6

    print(f"{'µs a step':22} {'ours':26} {'MuJoCo ' + mujoco.__version__:26} ratio")
    show("whole grasp", times[:, 0, 0], times[:, 1, 0])
    show("hold", times[:, 0, 1], times[:, 1, 1])
    slides = f"{1e6 * ours.slide:<26.3g} {1e6 * theirs.slide:<26.4g}"
    print(f"{'mug slides, µm/s':22} {slides}")
    print(f"{'mug ends at, m':22} {ours.height:<26.4f} {theirs.height:<26.4f}")
    certificate = ours.certificate
    print(f"{'our largest residual':22} {certificate['residual']:.2g} ({certificate['status']})")
    report.check(ours.height > 0.19, f"the mug was not lifted: {ours.height} m")
    report.check(
        ours.slide <= LARGEST_SLIDE, f"the mug slides: {ours.slide} m/s, more than {LARGEST_SLIDE}"
    )
    report.finish()


if __name__ == "__main__":
    main()
