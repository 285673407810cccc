"""Processor time of a step beside MuJoCo's, of models named or of a few known to be dear.

Both engines step the same model from qpos0, a portion of steps in turn: ours in a process of its
own (tests/bench/bench_steps), MuJoCo's in this one, one thread each. Processor time counts, so that
a loaded machine slows both alike. The script prints for each model microseconds a step of both and
the ratio with its range over the rounds, then median, 95 % and worst of the ratios.
"""

import argparse
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import common
import common_trial as trial
import mujoco
import numpy as np
from common import BUILD, Report

PORTION = 20  # steps of one engine before the other's turn
DEAR = (
    "menagerie/unitree_g1/scene.xml",
    "menagerie/unitree_g1/scene_with_hands.xml",
    "menagerie/pal_talos/scene_position.xml",
    "menagerie/apptronik_apollo/scene.xml",
    "menagerie/ufactory_xarm7/scene.xml",
    "mujoco/model/sleep/dominos.xml",
    "gymnasium_robotics/gymnasium_robotics/envs/assets/fetch/pick_and_place.xml",
)


@dataclass
class Times:
    """Of one model: microseconds a step, a number a round."""

    ours: list[float]
    theirs: list[float]
    certificate: dict[str, Any]

    def ratio(self) -> float:
        return median(self.ratios())

    def ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help="files; none: a few of --corpus that are dear")
    parser.add_argument("--corpus", type=Path, default=BUILD / "peers/corpus", metavar="FOLDER")
    parser.add_argument("--steps", type=int, default=500, help="of a round (500)")
    parser.add_argument("--rounds", type=int, default=3, help="of every model (3)")
    parser.add_argument("--energy", action="store_true", help="with the account of energy")
    parser.add_argument("--program", type=Path, default=BUILD / "tests/bench/bench_steps")
    return parser.parse_args()


class Ours:
    """bench_steps with a model; ends with the `with` block."""

    def __init__(self, asked: argparse.Namespace, path: Path) -> None:
        options = ["--energy"] if asked.energy else []
        if path.suffix == ".urdf":
            roots = ":".join(str(p) for p in path.parents[:5])
            options += ["--package-path", roots]
        self.process = subprocess.Popen(
            [asked.program, *options, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> "Ours":
        self.answer()
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise common.Refused("bench_steps ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def step(self, steps: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return self.answer()


def one_round(
    asked: argparse.Namespace, path: Path, model: mujoco.MjModel
) -> tuple[float, float, dict[str, Any]]:
    """Microseconds a step of ours and theirs, and our certificate: sums, worst residual, last."""
    data = mujoco.MjData(model)
    spent = np.zeros(2)
    merged: dict[str, Any] = {}
    with Ours(asked, path) as ours:
        for _ in range(0, asked.steps, PORTION):
            answer = ours.step(PORTION)
            began = time.thread_time()
            mujoco.mj_step(model, data, PORTION)
            spent += answer["seconds"], time.thread_time() - began
            answer["iterations"] += merged.get("iterations", 0)
            answer["linear_solves"] += merged.get("linear_solves", 0)
            answer["residual"] = max(answer["residual"], merged.get("residual", 0))
            if merged.get("status", "OK") != "OK":
                answer["status"] = merged["status"]
            merged = answer
    ours_us, theirs_us = 1e6 * spent / asked.steps
    return float(ours_us), float(theirs_us), merged


def load(path: Path) -> mujoco.MjModel:
    """The model as MuJoCo loads it."""
    if path.suffix != ".urdf":
        try:
            return mujoco.MjModel.from_xml_path(str(path))
        except ValueError as error:
            raise common.Refused(str(error).splitlines()[0]) from error
    return trial.mujoco_model(path, path.parents[min(4, len(path.parents) - 1)])


def measure(asked: argparse.Namespace, path: Path) -> Times:
    """All rounds of one model; Refused where an engine does not load it."""
    model = load(path)
    rounds = [one_round(asked, path, model) for _ in range(asked.rounds)]
    return Times([r[0] for r in rounds], [r[1] for r in rounds], rounds[-1][2])


def paths(asked: argparse.Namespace) -> Iterator[Path]:
    for name in asked.models or DEAR:
        yield Path(name) if asked.models else asked.corpus / name


def main() -> None:
    asked = parse()
    report = Report()
    ratios = []
    print(f"{'model':44} {'ours us':>9} {'MuJoCo':>9} {'ratio':>6}  range         status")
    for path in paths(asked):
        name = "/".join(path.parts[-2:])
        try:
            times = measure(asked, path)
        except (common.Refused, OSError) as reason:
            report.skip(f"{name}: {reason}")
            continue
        ratios.append(times.ratio())
        every, c = times.ratios(), times.certificate
        print(
            f"{name:44} {median(times.ours):9.1f} {median(times.theirs):9.1f} {times.ratio():6.2f}"
            f"  {min(every):5.2f} {max(every):6.2f}  {c['status']:4} residual {c['residual']:.1e}"
            f" iterations {c['iterations']} solves {c['linear_solves']}"
            f" contacts {c['contacts']} rows {c['rows']} {c['solver']}",
            flush=True,
        )
        report.check(c["status"] == "OK", f"{name} ends {c['status']}")
    if ratios:
        middle, late, worst = np.percentile(ratios, (50, 95, 100))
        print(f"{len(ratios)} models: median {middle:.2f}, 95 % {late:.2f}, worst {worst:.2f}")
    report.finish()


if __name__ == "__main__":
    main()
