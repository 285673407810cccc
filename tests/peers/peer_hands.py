"""Published hands close on a can for five seconds, every step to its tolerance.

The hands: robosuite's grippers, Allegro, LEAP, Shadow, Barrett, Inspire, Ability, Schunk and
D'Claw, from the corpus of peer_corpus.py. common_hands.py makes the scenes, MuJoCo writes them
out as one file each, `tribo run` steps them with controls that close within a second and stay.
MuJoCo steps the same scene with the same controls, which shows that the scene itself is sound. A
hand whose links overlap in the file's first pose, by up to 15 mm, has contacts that nothing can
open: where its run is not OK, it is run again with `--overlaps ignore`, and that verdict counts.

`--nudge M` runs each scene six times more, the can moved by M (m) to and fro along each axis, and
tells how far from its place it ends: what another processor's rounding may do to it.
"""

import argparse
import hashlib
import os
import re
import tempfile
import time
from pathlib import Path

import common
import common_corpus as corpus
import common_trial as trial
import mujoco
import numpy as np
from common import Report
from common_hands import Scene, make_scene

SECONDS = 5.0
SHARE_OK = 0.95  # of the hands must close with every step within its tolerance
LIMIT_S = 60.0  # of one run
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
    parser.add_argument(
        "--minutes", type=float, default=8.0, metavar="M", help="stop after these (8; 0: never)"
    )
    parser.add_argument(
        "--nudge", type=float, default=0.0, metavar="M", help="move the can by M too"
    )
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
    # the same order everywhere that mixes the sources
    return sorted(found, key=lambda hand: hashlib.sha256(hand[0].name.encode()).digest())


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


def nudged(file: Path, how: tuple[str | Path, ...], ended: common.Array, nudge: float) -> float:
    """How far from its place a can ends at most (m) that began elsewhere by `nudge`."""
    text = file.read_text()
    found = re.search(r'(?<=<body name="can" pos=")[^"]*', text)
    if found is None:
        raise common.Refused("the scene has no can")
    other, farthest = file.with_suffix(".nudged.xml"), 0.0
    for axis in range(3):
        for sign in (1.0, -1.0):
            place = np.array(found[0].split(), dtype=np.float64)
            place[axis] += sign * nudge
            other.write_text(text[: found.start()] + " ".join(map(repr, place.tolist())))
            with other.open("a") as rest:
                rest.write(text[found.end() :])
            answer, why, _ = trial.tribo(LIMIT_S, "run", other, *how)
            if answer is None:
                raise common.Refused(why)
            off = np.array(answer["bodies"]["can"]["position"]) - ended
            farthest = max(farthest, float(np.linalg.norm(off)))
    return farthest


def compare(
    report: Report, path: Path, root: Path, folder: Path, nudge: float = 0.0
) -> bool | None:
    """One line of the table: whether the run was OK; None where there is no scene."""
    name = f"{root.name}/{path.relative_to(root).parent.name}/{path.name}"
    try:
        scene = make_scene(path, root)
    except (common.Refused, ValueError, mujoco.FatalError) as reason:
        report.skip(f"{name}: {reason}")
        return None
    file = folder / (name.replace("/", "_").rpartition(".")[0] + ".xml")
    file.write_text(scene.xml)
    file.with_suffix(".csv").write_text(scene.csv())
    options: tuple[str | Path, ...] = ("--time", str(SECONDS), "--threads", "1")
    options += ("--controls", file.with_suffix(".csv"))
    answer, why, _ = trial.tribo(LIMIT_S, "run", file, *options)
    note = ""
    if answer is None or answer["status"] != "OK":
        first = why if answer is None else answer["status"]
        again, _, _ = trial.tribo(LIMIT_S, "run", file, *options, "--overlaps", "ignore")
        if again is not None:
            answer, note = again, f" {first} with its links' overlaps"
            options += ("--overlaps", "ignore")
    if answer is None:
        print(f"{name:58} {why}", flush=True)
        return False
    certificate = answer["certificate"]
    ended = np.array(answer["bodies"]["can"]["position"])
    moved = float(np.linalg.norm(ended - can_at(scene)))
    if nudge > 0:
        note += f" nudged by {nudge:g} m: {nudged(file, options, ended, nudge):.1e} m away"
    print(
        f"{name:58} {scene.model.nv:4} {answer['status']:13} {certificate['residual']:8.1e}"
        f" {certificate['iterations'] / answer['steps']:8.1f} {certificate['contacts']:4}"
        f" {moved:8.4f} {theirs(scene):8.4f}{note}",
        flush=True,
    )
    return bool(answer["status"] == "OK")


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
        began, verdicts = time.monotonic(), []
        hands = find_hands(options, report)
        for number, (path, root) in enumerate(hands):
            if options.minutes > 0 and time.monotonic() - began > 60 * options.minutes:
                report.skip(f"{len(hands) - number} hands after {options.minutes:g} min")
                break
            verdict = compare(report, path, root, folder, options.nudge)
            verdicts += [] if verdict is None else [verdict]
    good = sum(verdicts)
    if verdicts and not options.only:
        enough = good >= SHARE_OK * len(verdicts)
        report.check(enough, f"{good} of {len(verdicts)} hands are OK, the bound is {SHARE_OK:g}")
    report.finish()


if __name__ == "__main__":
    main()
