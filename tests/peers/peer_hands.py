"""Published hands close on a can for five seconds; every step must reach its tolerance.

The hands: robosuite's grippers, Allegro, LEAP, Shadow, Barrett, Inspire, Ability, Schunk and
D'Claw, from the corpus of peer_corpus.py. common_hands.py makes the scenes, MuJoCo writes them out
as one file each, `tribo run` steps them with controls that close within a second and stay. MuJoCo
steps the same scene with the same controls, which shows that the scene itself is sound.
"""

import argparse
import os
import tempfile
from pathlib import Path

import common
import common_corpus as corpus
import common_trial as trial
import mujoco
import numpy as np
from common import Report
from common_hands import Scene, make_scene

SECONDS = 5.0
LIMIT_S = 60.0
HANDS = {
    "robosuite": "robosuite/models/assets/grippers/*.xml",
    "menagerie": "*/*hand.xml",
    "dex-urdf": "robots/hands/*/*.urdf",
}
NO_HANDS = ("null_gripper", "wiping_gripper", "_glb", "bimanual")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="WORD", help="hands whose path has WORD")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the scenes here")
    parser.add_argument(
        "--corpus",
        type=Path,
        default=Path(os.environ.get("TRIBO_CORPUS", common.BUILD / "peers" / "corpus")),
        metavar="FOLDER",
        help="where the sources stand ($TRIBO_CORPUS, or corpus beside the peers)",
    )
    return parser.parse_args()


def find_hands(options: argparse.Namespace, report: Report) -> list[tuple[Path, Path]]:
    """(model, root of its source) of every hand that is to be tried."""
    found = []
    for source in (*corpus.SOURCES, *corpus.OTHERS):
        if source.name not in HANDS:
            continue
        try:
            root = corpus.root_of(source, options.corpus, limit_s=300)
        except corpus.Missing as reason:
            report.skip(f"{source.name}: {reason}")
            continue
        for path in sorted([*root.glob(HANDS[source.name]), *root.glob("*/" + HANDS[source.name])]):
            if not any(w in path.name for w in NO_HANDS) and options.only in str(path):
                found.append((path, root))
    return found


def theirs(scene: Scene) -> float:
    """MuJoCo's farthest way of the can, in m; not a number if MuJoCo fails."""
    model, data = scene.model, mujoco.MjData(scene.model)
    mujoco.mj_forward(model, data)
    can = model.body("can").id
    began = np.array(data.xpos[can])
    while data.time < SECONDS:
        row = int(np.searchsorted(scene.times, data.time, side="right")) - 1
        data.ctrl[:] = scene.controls[max(row, 0)]
        mujoco.mj_step(model, data)
        if any(data.warning[int(w)].number for w in trial.BAD_STATES):
            return float("nan")
    return float(np.linalg.norm(data.xpos[can] - began))


def compare(report: Report, path: Path, root: Path, folder: Path) -> None:
    """One line of the table."""
    name = f"{root.name}/{path.relative_to(root).parent.name}/{path.name}"
    try:
        scene = make_scene(path, root)
    except (common.Refused, ValueError, mujoco.FatalError) as reason:
        report.skip(f"{name}: {reason}")
        return
    file = folder / (name.replace("/", "_").rpartition(".")[0] + ".xml")
    file.write_text(scene.xml)
    file.with_suffix(".csv").write_text(scene.csv())
    options = ("--time", str(SECONDS), "--controls", file.with_suffix(".csv"), "--threads", "1")
    answer, reason, _ = trial.tribo(LIMIT_S, "run", file, *options)
    if not report.check(answer is not None, f"{name}: {reason}"):
        return
    assert answer is not None
    certificate = answer["certificate"]
    moved = float(np.linalg.norm(np.array(answer["bodies"]["can"]["position"]) - can_at(scene)))
    report.check(
        answer["status"] == "OK",
        f"{name}: {answer['status']}, residual {certificate['residual']:.2g}",
    )
    print(
        f"{name:58} {scene.model.nv:4} {answer['status']:13} {certificate['residual']:8.1e}"
        f" {certificate['iterations'] / answer['steps']:8.1f} {certificate['contacts']:4}"
        f" {moved:8.4f} {theirs(scene):8.4f}",
        flush=True,
    )


def can_at(scene: Scene) -> common.Array:
    """Where the can begins."""
    return np.array(scene.model.body("can").pos)


def main() -> None:
    options = parse()
    report = Report()
    print(
        f"{'hand':58} {'dofs':>4} {'verdict':13} {'residual':>8} {'it/step':>8} {'cont':>4}"
        f" {'way (m)':>8} {'MuJoCo':>8}"
    )
    with tempfile.TemporaryDirectory(prefix="tribo_hands_") as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for path, root in find_hands(options, report):
            compare(report, path, root, folder)
    report.finish()


if __name__ == "__main__":
    main()
