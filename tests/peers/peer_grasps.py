"""Perturbed grasps of jaw and mug by the Python client over loopback, beside MuJoCo and `tribo`.

The scene is that of tests/data/jaw_mug.c: 50 poses of the hand around the mug, 20 copies of each
with perturbed position, friction and mass; close with 20 N, lift, hold; dt 2 ms. Four programs play
the 1,000 grasps in turn, on the same processors:

  wire     tribod through the Python client over gRPC on loopback, from the call to the last result
  local    `tribo grasp` without a server: the same request in one process
  loop     MuJoCo 4.0, a Python thread a processor that calls mj_step world after world, controls
           every 10 steps; models with the copies' pose, friction and mass are made beforehand
  rollout  MuJoCo 4.0, mujoco.rollout with a thread a processor, a control every step

Ours is solved to a residual of 1e-6 (the worst step is printed); MuJoCo has its defaults and the
elliptic cone, and lifts by the scene's servo where ours carries the hand. Results of wire and local
must be the same numbers. The wire's overhead is the median over rounds of wire time over local
time, less one.

Angles are not perturbed: rigid pads of 50 mm that stand askew wedge the mug by two corners, which
then slides and swings in both programs' hands as it likes, and counts as slipped in ours.

Times depend on the machine: they are printed and never judged. Each line is a JSON object; the
daemon keeps them as benchmarks too. Environment: GRASPS (1000), ROUNDS (5), and
TRIBO_PEER_STORE, a folder for the daemon's store if it is to outlive this.
"""

import copy
import csv
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import common_scene
import mujoco
import mujoco.rollout
import numpy as np
from common import TRIBO, Report, in_threads, scratch
from common_scene import CLOSE_N, DT_S, FINGERS, PALM_HEIGHT_M

import tribo
from tribo.v1 import runs_pb2

GRASPS = int(os.environ.get("GRASPS", "1000"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
THREADS = len(os.sched_getaffinity(0))
COPIES = 20
TOLERANCE = 1e-6
CLOSE_S, LIFT_M, LIFT_S, HOLD_S = 0.4, 0.1, 0.4, 0.3
STEPS = round((CLOSE_S + LIFT_S + HOLD_S) / DT_S)
CHUNK = 10  # steps between MuJoCo's controls in the loop
POSITION_M, FRICTION, MASS = 0.001, 0.05, 0.05
SEED = 20262


def make_poses(count: int) -> list[tribo.GraspPose]:
    """Heights from 47 to 63 mm, turned by up to 17 degrees about the mug's axis."""
    poses = []
    for i in range(count):
        height = PALM_HEIGHT_M + 0.016 * (i / max(count - 1, 1) - 0.5)
        turn = 0.3 * (i % 5 - 2) / 2
        orientation = (float(np.cos(turn / 2)), 0.0, 0.0, float(np.sin(turn / 2)))
        poses.append(tribo.GraspPose((0.0, 0.0, height), orientation, name=f"g{i}"))
    return poses


class Wire:
    """The daemon, and a request of which the files are uploaded with every call."""

    def __init__(self, hand: Path, mug: Path, poses: list[tribo.GraspPose]) -> None:
        store = os.environ.get("TRIBO_PEER_STORE")
        self.daemon = tribo.Daemon(data=store, arguments=["--threads", str(THREADS)])
        self.client = self.daemon.connect()
        self.hand = tribo.Hand(
            hand, closing_actuators=FINGERS, open_controls=(0, 0), close_controls=(40, 40)
        )
        self.mug, self.poses = tribo.GraspObject(mug), poses
        self.results: list[tribo.GraspResult] = []
        self.summary: tribo.GraspSummary | None = None

    def play(self) -> float:
        protocol = tribo.Protocol(
            dt=DT_S, close_seconds=CLOSE_S, force=CLOSE_N, lift=LIFT_M, lift_seconds=LIFT_S,
            hold_seconds=HOLD_S,
        )  # fmt: skip
        noise = tribo.Perturbation(COPIES, SEED, POSITION_M, 0.0, FRICTION, MASS)
        began = time.perf_counter()
        job = self.client.evaluate_grasps(
            self.mug,
            self.hand,
            self.poses,
            protocol=protocol,
            perturbation=noise,
            solve=tribo.SolveOptions(tolerance=TOLERANCE),
            label="peer_grasps",
        )
        self.results = list(job)
        took = time.perf_counter() - began
        self.summary = job.summary
        return took


class Local:
    """`tribo grasp` with the same request."""

    def __init__(self, hand: Path, mug: Path, poses: list[tribo.GraspPose]) -> None:
        file = hand.with_name("poses.csv")
        with file.open("w", newline="") as text:
            table = csv.writer(text)
            table.writerow(["name", "x", "y", "z", "qw", "qx", "qy", "qz"])
            for p in poses:
                numbers = (*p.position, *p.orientation)
                table.writerow([p.name, *(repr(float(v)) for v in numbers)])
        self.command = [
            TRIBO, "grasp", "--hand", str(hand), "--object", str(mug), "--poses", str(file),
            "--closing", ",".join(FINGERS), "--open", "0,0", "--close", "40,40",
            "--force", repr(CLOSE_N), "--dt", repr(DT_S), "--close-time", repr(CLOSE_S),
            "--lift", repr(LIFT_M), "--lift-time", repr(LIFT_S), "--hold", repr(HOLD_S),
            "--perturb", str(COPIES), "--seed", str(SEED), "--position-noise", repr(POSITION_M),
            "--angle-noise", "0", "--friction-noise", repr(FRICTION),
            "--mass-noise", repr(MASS), "--tolerance", repr(TOLERANCE),
            "--threads", str(THREADS), "--json",
        ]  # fmt: skip
        self.results: list[dict[str, Any]] = []

    def play(self) -> float:
        began = time.perf_counter()
        done = subprocess.run(self.command, capture_output=True, text=True, check=False)
        took = time.perf_counter() - began
        if done.returncode not in (0, 3):
            raise SystemExit(f"FAILED: tribo grasp: {done.stderr}")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.results = [line for line in lines if "trials" in line and "name" in line]
        return took


class Theirs:
    """MuJoCo: a model a copy, with its pose, friction and mass."""

    def __init__(self, scene: Path, results: list[tribo.GraspResult]) -> None:
        base = mujoco.MjModel.from_xml_path(str(scene))
        base.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        self.palm, self.mug = base.body("palm").id, base.body("mug").id
        rng = np.random.default_rng(SEED)
        poses = make_poses(len(results))
        self.models = []
        for pose, result in zip(poses, results, strict=True):
            for k, trial in enumerate(result.trials):
                model = copy.copy(base)
                self.place(model, pose, rng if k > 0 else None)
                model.geom_friction[:, 0] = trial.friction
                scale = trial.mass / base.body_subtreemass[self.mug]
                model.body_mass[self.mug] *= scale
                model.body_inertia[self.mug] *= scale
                mujoco.mj_setConst(model, mujoco.MjData(model))
                self.models.append(model)
        self.lift = base.actuator("lift").id
        self.controls = np.full((STEPS, base.nu), CLOSE_N)
        self.controls[:, self.lift] = [self.lift_at(DT_S * s) for s in range(STEPS)]
        self.data = [mujoco.MjData(base) for _ in range(THREADS)]
        self.held = 0

    def place(
        self, model: mujoco.MjModel, pose: tribo.GraspPose, rng: np.random.Generator | None
    ) -> None:
        position = np.array(pose.position)
        if rng is not None:
            position = position + rng.normal(0, POSITION_M, 3)
        model.body_pos[self.palm] = position
        model.body_quat[self.palm] = np.array(pose.orientation)

    @staticmethod
    def lift_at(seconds: float) -> float:
        """The same way as ours: s^3 (10 - 15 s + 6 s^2)."""
        s = min(max((seconds - CLOSE_S) / LIFT_S, 0.0), 1.0)
        return LIFT_M * s**3 * (10 + s * (6 * s - 15))

    def work(self, thread: int, held: list[int]) -> None:
        data = self.data[thread]
        for model in self.models[thread::THREADS]:
            mujoco.mj_resetData(model, data)
            for step in range(0, STEPS, CHUNK):
                data.ctrl[:] = self.controls[step]
                mujoco.mj_step(model, data, CHUNK)
            held[thread] += bool(data.xpos[self.mug][2] > LIFT_M / 2)

    def play_loop(self) -> float:
        self.held, took = in_threads(THREADS, self.work)
        return took

    def play_rollout(self) -> float:
        began = time.perf_counter()
        # in parts, so that the states of all steps do not fill the memory
        for first in range(0, len(self.models), 100):
            models = self.models[first : first + 100]
            data = mujoco.MjData(models[0])
            kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
            start = np.empty(mujoco.mj_stateSize(models[0], kind))
            mujoco.mj_getState(models[0], data, start, kind)
            mujoco.rollout.rollout(
                models, self.data, start[None], self.controls[None], persistent_pool=True
            )
        return time.perf_counter() - began


def same(report: Report, wire: Wire, local: Local) -> None:
    """The daemon's results are those of `tribo grasp`, to the last bit."""
    theirs = {r["name"]: r for r in local.results}
    report.check(len(theirs) == len(wire.results), "as many results from tribo as from tribod")
    for ours in wire.results:
        other = theirs[ours.name]
        pairs: list[tuple[float, float]] = [
            (ours.success, other["success"]),
            (ours.slip, other["slip"]),
            (ours.epsilon_quality, other["epsilon"]),
        ]
        for a, b in zip(ours.trials, other["trials"], strict=True):
            pairs += [(a.slip, b["slip"]), (a.friction, b["friction"]), (a.mass, b["mass"])]
        report.check(all(a == b for a, b in pairs), f"{ours.name}: wire and local differ")


def tell(wire: Wire, name: str, build: str, seconds: list[float], **more: object) -> None:
    """One line, and one benchmark in the daemon's store."""
    grasps = len(wire.results) * COPIES
    rates = [grasps / s for s in seconds]
    lower, middle, upper = quantiles(rates, n=4) if len(rates) > 1 else (rates[0],) * 3
    assert wire.summary is not None
    certificate = wire.summary.certificate
    ours = name in ("wire", "local")
    line = {"bench": "jaw_mug.grasps", "program": name, "grasps": grasps, "threads": THREADS,
            "grasps_per_second": middle, "lower": lower, "upper": upper,
            "seconds": [round(s, 4) for s in seconds], **more}  # fmt: skip
    print(json.dumps(line), flush=True)
    wire.client.record_benchmark(
        runs_pb2.Benchmark(
            name=f"jaw_mug.grasps.{name}",
            metric="grasps_per_second",
            unit="1/s",
            testbed=f"{processor()}, {THREADS} threads",
            build=build,
            samples=rates,
            residual=certificate.residual if ours else 0,
            iterations=certificate.iterations / wire.summary.world_steps if ours else 0,
            penetration=certificate.penetration if ours else 0,
        )
    )


def processor() -> str:
    """The processor's name, if the system has it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main() -> None:
    report = Report()
    with scratch() as name:
        scene = common_scene.write_jaw_mug(Path(name))
        hand, mug = common_scene.write_parts(scene)
        poses = make_poses(max(GRASPS // COPIES, 1))
        wire, local = Wire(hand, mug, poses), Local(hand, mug, poses)
        wire.play()  # the first call of a daemon meets new files
        theirs = Theirs(scene, wire.results)
        programs: dict[str, Callable[[], float]] = {
            "wire": wire.play,
            "local": local.play,
            "loop": theirs.play_loop,
            "rollout": theirs.play_rollout,
        }
        seconds: dict[str, list[float]] = {key: [] for key in programs}
        for _ in range(ROUNDS):
            for key, play in programs.items():
                seconds[key].append(play())

        same(report, wire, local)
        trials = [t for r in wire.results for t in r.trials]
        held = sum(t.verdict == tribo.Verdict.HELD for t in trials)
        assert wire.summary is not None
        worst = wire.summary.certificate.residual
        report.check(worst <= TOLERANCE, f"the worst residual is {worst}")
        report.check(held > 0.9 * len(trials), f"{held} of {len(trials)} held")
        report.check(theirs.held > 0.9 * len(trials), f"MuJoCo held {theirs.held}")

        build = wire.client.server_info().build
        peer = f"mujoco {mujoco.__version__}"
        tell(wire, "wire", build, seconds["wire"], held=held, residual=worst,
             compute_seconds=wire.summary.compute_seconds)  # fmt: skip
        tell(wire, "local", build, seconds["local"], held=held, residual=worst)
        tell(wire, "loop", peer, seconds["loop"], held=theirs.held)
        tell(wire, "rollout", peer, seconds["rollout"])
        ratios = [w / n - 1 for w, n in zip(seconds["wire"], seconds["local"], strict=True)]
        best = [min(pair) for pair in zip(seconds["loop"], seconds["rollout"], strict=True)]
        beside = [b / w for b, w in zip(best, seconds["wire"], strict=True)]
        print(json.dumps({
            "bench": "jaw_mug.grasps", "wire_overhead": median(ratios),
            "lowest": min(ratios), "highest": max(ratios),
            "times_mujoco": median(beside), "load": os.getloadavg()[0],
        }), flush=True)  # fmt: skip
        kept = [b.name for b in wire.client.benchmarks("jaw_mug.grasps.wire")]
        report.check(bool(kept), "the benchmark was not kept")
        wire.client.close()
        report.check(wire.daemon.stop() == 0, "the daemon did not stop cleanly")
    report.finish()


if __name__ == "__main__":
    main()
