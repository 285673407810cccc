"""A planner's first script: 200 sampled grasps of a hammer by robosuite's Panda gripper.

The hand is robosuite's file with `profile="panda"` and nothing else; the hammer is a mesh of
trimesh with the mean sizes of robosuite's HammerObject. Judged: at least 70 of 200 grasps are
held, none is uncertified, and every other grasp has a reason.

With the robosuite package ($ROBOSUITE names its folder, or it is importable) the
same is judged on robosuite's own HammerObject, four of its random draws: their handles have
frictions of 3 to 5 and wedge between the pads.

The same protocol (close, lift, hold) by a loop of MuJoCo over the same poses on the same
processors, by turns in one run. MuJoCo collides the hammer's boxes, since its meshes are hulls;
Tribod collides the mesh. MuJoCo's hand hangs on a slide with a stiff servo, for mocap bodies have
no velocity. Its contacts are springs whose stiffness grows with the mass of the 82 g hammer: with
the file's own `solref` the pads sink 2 to 4 mm into the handle, which turns out of the hand in
nearly every grasp. So MuJoCo plays twice: `coarse` at Tribod's dt with the stiffest contacts that
this dt allows (`solref` of two steps), and `fine` at a quarter of it with contacts and friction
four times as stiff. From there on its verdicts no longer change. Judged: of the fine ones 90 % are
Tribod's (the object rises with the hand or does not). Times are printed, never judged; those with
the same answers are the fine ones.
"""

from __future__ import annotations

import json
import os
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import common
import mujoco
import numpy as np
from common import Report, in_threads
from peer_planner import ROBOSUITE, RobosuiteModel

import tribo

GRASPS = 200
HELD = 70
ROUNDS = int(os.environ.get("ROUNDS", "3"))
THREADS = len(os.sched_getaffinity(0))
# m: means of robosuite's ranges
HANDLE_RADIUS, HANDLE_LENGTH, HEAD_HALF = 0.0175, 0.175, 0.01925
DENSITY = 250.0  # kg/m3
DT_S, CLOSE_S, LIFT_M, LIFT_S, HOLD_S = 2e-3, 0.4, 0.1, 0.4, 0.5
CONTROL_S = 0.02  # between MuJoCo's controls
FINE_DT_S = DT_S / 4
IMPRATIO = {DT_S: 20, FINE_DT_S: 100}  # friction's stiffness over the normal one's; 20: robosuite's
RISES = 0.25  # share of the lift: an object that rises less was left, as Tribod has it
AGREE = 0.9  # share of the poses on which both judge the same
DRAWS = 4
# boxes of the hammer, which lies on the table along x: centre and half sizes, m
BOXES = (
    ((0.0, 0.0, 0.0), (HANDLE_LENGTH / 2, HANDLE_RADIUS, HANDLE_RADIUS)),
    ((HANDLE_LENGTH / 2 + HEAD_HALF, 0.0, 0.0), (HEAD_HALF, HEAD_HALF, 2 * HEAD_HALF)),
)


def trimesh_hammer() -> Any:
    """The hammer as a user makes it."""
    import trimesh

    parts = []
    for centre, half in BOXES:
        part = trimesh.creation.box([2 * h for h in half])
        part.apply_translation(centre)
        parts.append(part)
    return trimesh.util.concatenate(parts)


def robosuite_hammer(draw: int) -> bytes | None:
    """A draw of robosuite's HammerObject as MJCF; None without robosuite."""
    sys.path += [p for p in os.environ.get("ROBOSUITE", "").split(":") if p]
    try:
        from robosuite.models.objects import HammerObject
    except ImportError:
        return None
    hammer = HammerObject("hammer", use_texture=False, rng=np.random.default_rng(draw))
    root = ElementTree.Element("mujoco")
    ElementTree.SubElement(root, "compiler", {"angle": "radian"})
    ElementTree.SubElement(root, "worldbody").append(hammer.get_obj())
    return ElementTree.tostring(root)


def judge(report: Report, name: str, grasps: tribo.Evaluation) -> int:
    """At least 70 held, a reason for every other one; the uncertified ones."""
    held = len(grasps.held)
    report.check(len(grasps) == GRASPS, f"{name}: {len(grasps)} grasps")
    report.check(held >= HELD, f"{name}: {held} held")
    for r in grasps:
        if r.verdict != tribo.Verdict.HELD:
            report.check(" s" in r.reason.text, f"{name} {r.name}: no reason: {r.reason.text!r}")
    words = Counter(r.reason.text.split(" ")[0] for r in grasps)
    print(json.dumps({"object": name, **grasps.counts, "reasons_begin": dict(words)}), flush=True)
    return sum(r.verdict == tribo.Verdict.UNCERTIFIED for r in grasps)


class Theirs:
    """MuJoCo: a model a grasp, in which the hammer stands to the hand as in the pose."""

    def __init__(
        self, file: Path, tool: tuple[float, float, float], poses: list[Any], dt: float
    ) -> None:
        self.models = [self.make(file, np.array(tool), pose, dt) for pose in poses]
        self.lifted = np.zeros(len(poses), bool)

    @staticmethod
    def make(file: Path, tool: Any, pose: tribo.GraspPose, dt: float) -> mujoco.MjModel:
        model = RobosuiteModel(file)
        spec = mujoco.MjSpec.from_string(model.to_xml())
        spec.meshdir = model.modelfiledir
        base = spec.worldbody.first_body()
        # the tool's frame in the base's, and the hand's in the world's
        turn, base_turn = np.array(pose.orientation), np.array(base.quat)
        base_turn /= np.linalg.norm(base_turn)
        place, offset, frame = np.zeros(3), np.zeros(3), np.zeros(4)
        finger = np.array([0.5**0.5, 0, 0, 0.5**0.5])  # turn of the fingers in the hand
        back = np.zeros(4)
        mujoco.mju_negQuat(back, finger)
        mujoco.mju_mulQuat(frame, turn, back)
        mujoco.mju_rotVecQuat(offset, tool, frame)
        place[:] = np.array(pose.position) - offset
        base.pos, base.quat = place, frame
        base.add_joint(
            name="lift", type=mujoco.mjtJoint.mjJNT_SLIDE,
            axis=Theirs.into(frame, np.array([0.0, 0.0, 1.0])),
        )  # fmt: skip
        lift = spec.add_actuator(name="lift", target="lift", trntype=mujoco.mjtTrn.mjTRN_JOINT)
        lift.set_to_position(kp=1e5, kv=2e3)
        body = spec.worldbody.add_body(name="hammer")
        body.add_freejoint()
        for centre, half in BOXES:
            body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_BOX, pos=centre, size=half, density=DENSITY,
                friction=[0.7, 0.005, 0.0001], condim=4,
            )  # fmt: skip
        low = min(c[2] - h[2] for c, h in BOXES)
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 0.1], pos=[0, 0, low], contype=2,
            conaffinity=0,
        )  # fmt: skip
        for geom in body.geoms:
            geom.conaffinity = 3
        spec.option.timestep = dt
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST  # the servo is stiff
        spec.option.impratio = IMPRATIO[dt]
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        compiled = spec.compile()
        compiled.geom_solref[:] = [2 * dt, 1]
        compiled.geom_solimp[:, :3] = [0.95, 0.99, 0.001]
        return compiled

    @staticmethod
    def into(frame: Any, vector: Any) -> Any:
        """A direction of the world in a frame."""
        back, result = np.zeros(4), np.zeros(3)
        mujoco.mju_negQuat(back, frame)
        mujoco.mju_rotVecQuat(result, vector, back)
        return result

    def work(self, thread: int, held: list[int]) -> None:
        for index in range(thread, len(self.models), THREADS):
            model = self.models[index]
            data = mujoco.MjData(model)
            open_q = {"finger_joint1": 0.04, "finger_joint2": -0.04}
            for joint, value in open_q.items():
                data.joint(joint).qpos[0] = value
            hammer = model.body("hammer").id
            start = None
            for part in range(round((CLOSE_S + LIFT_S + HOLD_S) / CONTROL_S)):
                now = part * CONTROL_S
                share = min(now / (CLOSE_S / 2), 1.0)
                s = min(max((now - CLOSE_S) / LIFT_S, 0.0), 1.0)
                for joint, value in open_q.items():
                    data.actuator(f"gripper_{joint}").ctrl[0] = value * (1 - share)
                data.actuator("lift").ctrl[0] = LIFT_M * s**3 * (10 + s * (6 * s - 15))
                mujoco.mj_step(model, data, round(CONTROL_S / model.opt.timestep))
                if start is None and now >= CLOSE_S:
                    start = data.xipos[hammer][2]
            assert start is not None
            self.lifted[index] = data.xipos[hammer][2] - start > RISES * LIFT_M
            held[thread] += bool(self.lifted[index])

    def play(self) -> float:
        """One turn; s."""
        return in_threads(THREADS, self.work)[1]


def main() -> None:
    """The script, and its time beside MuJoCo's."""
    report = Report()
    corpus = Path(os.environ.get("TRIBO_CORPUS", common.BUILD / "peers" / "corpus"))
    file = corpus / ROBOSUITE / "panda_gripper.xml"
    if not file.exists():
        raise SystemExit(f"FAILED: {file} is not there: deploy/deps.sh peers, peer_corpus.py")
    hand = tribo.Hand(RobosuiteModel(file), profile="panda")
    with tribo.Daemon() as daemon, daemon.connect() as client:
        hammer = tribo.GraspObject(trimesh_hammer(), density=DENSITY)
        poses = tribo.sample_grasps(hammer, hand, GRASPS)
        protocol = tribo.Protocol(
            dt=DT_S, close_seconds=CLOSE_S, lift=LIFT_M, lift_seconds=LIFT_S, hold_seconds=HOLD_S
        )
        missed = judge(report, "trimesh", tribo.evaluate(hammer, hand, poses, client=client))
        report.check(missed == 0, f"trimesh: {missed} uncertified")
        # tool frame of the profile, from the anchor finger's frame
        tool = (0.0, 0.0, 0.0524 + 0.045)
        theirs = {"coarse": Theirs(file, tool, poses, DT_S)}
        theirs["fine"] = Theirs(file, tool, poses, FINE_DT_S)
        ours: list[float] = []
        loops: dict[str, list[float]] = {name: [] for name in theirs}
        for _ in range(ROUNDS):
            began = time.perf_counter()
            same = tribo.evaluate(hammer, hand, poses, client=client, protocol=protocol)
            ours.append(time.perf_counter() - began)
            for name, loop in theirs.items():
                loops[name].append(loop.play())
        rises = np.array([r.verdict in (tribo.Verdict.HELD, tribo.Verdict.SLIPPED) for r in same])
        for name, loop in theirs.items():
            agree = int(np.sum(loop.lifted == rises))
            ratio = sorted(b / a for a, b in zip(ours, loops[name], strict=True))
            print(json.dumps({
                "mujoco": name, "dt": loop.models[0].opt.timestep, "threads": THREADS,
                "tribod_s": [round(t, 2) for t in ours],
                "mujoco_s": [round(t, 2) for t in loops[name]],
                "mujoco_over_tribod": round(ratio[len(ratio) // 2], 2), "agree": agree,
                "tribod_lifted": int(rises.sum()), "mujoco_lifted": int(loop.lifted.sum()),
            }), flush=True)  # fmt: skip
            report.check(
                name != "fine" or agree >= AGREE * len(rises),
                f"MuJoCo and Tribod agree on {agree} of {len(rises)} grasps",
            )
        missed = 0
        for draw in range(DRAWS):
            source = robosuite_hammer(draw)
            if source is None:
                report.skip("robosuite is not installed: HammerObject is not judged")
                break
            thing = tribo.GraspObject(source)
            poses = tribo.sample_grasps(thing, hand, GRASPS)
            grasps = tribo.evaluate(thing, hand, poses, client=client)
            missed += judge(report, f"HammerObject {draw}", grasps)
        report.check(missed == 0, f"HammerObject: {missed} uncertified")
    report.finish()


if __name__ == "__main__":
    main()
