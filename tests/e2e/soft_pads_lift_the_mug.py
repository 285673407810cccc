"""The demo's hand takes the demo's mug with soft pads and with its rigid ones: slip, creep, forces.

The soft pads take the place of the hand's pads: blocks of silicone, clamped to the fingers, 3 mm
thicker towards the mug. Both hands close with the same force, lift and hold. The mug swings in the
soft pads, as the silicone has little damping: its creep is the drift beside the swing of the point
of the mug that is between the pads. The silicone has twice its density, so that waves need fewer
substeps; the fingers carry the pads' weight. A session of the soft hand is forked and restored
with the mug in the air and goes on with the same bytes.

PYTHONPATH=tests/e2e build/python/bin/python tests/e2e/soft_pads_lift_the_mug.py
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from common_daemon import Report, make_models, scratch

import tribo

FORCE, LIFT = 20.0, 0.006  # N of each finger; m
DT = 0.002  # s
RAISE, SETTLE, HOLD, FORKED = 30, 30, 40, 2  # steps
CLOSE_RIGID, CLOSE_SOFT = 60, 16  # steps: the rigid pads have 3 mm further to go

SCENE = """<soft model="soft_grasp">
  <option timestep="0.002" gravity="0 0 -9.81" friction="0.7"/>
  <grid lower="-0.03 -0.066 0.024" upper="0.03 0.066 0.099" spacing="0.003"/>
  <material name="silicone" density="2200" young="2e5" poisson="0.4" damping="3e-5"/>
  <body name="pad_left" material="silicone" type="box" size="0.009 0.0045 0.0105"
        pos="0 0.0415 0.055"/>
  <body name="pad_right" material="silicone" type="box" size="0.009 0.0045 0.0105"
        pos="0 -0.0415 0.055"/>
  <clamp body="pad_left" lower="-1 0.0427 -1" upper="1 1 1" rigid="finger_left"/>
  <clamp body="pad_right" lower="-1 -1 -1" upper="1 -0.0427 1" rigid="finger_right"/>
  <rigid file="soft_fingers.xml"/>
</soft>
"""


def write_soft_hand(folder: Path) -> Path:
    """The demo's grasp without the hand's rigid pads, and soft pads on its fingers."""
    hand = (folder / "hand.xml").read_text()
    bare = re.sub(r' *<geom name="pad_(left|right)"[^\n]*\n', "", hand)
    assert bare.count("<geom") == hand.count("<geom") - 2
    (folder / "bare_hand.xml").write_text(bare)
    grasp = (folder / "grasp.xml").read_text().replace('file="hand.xml"', 'file="bare_hand.xml"')
    (folder / "soft_fingers.xml").write_text(grasp)
    (folder / "soft_grasp.xml").write_text(SCENE)
    return folder / "soft_grasp.xml"


def controls(lift: float) -> list[float]:
    """x, y, lift, turn, tilt of the hand; both fingers."""
    return [0, 0, lift, 0, 0, FORCE, FORCE]


def turned(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """A vector turned by a quaternion (w x y z)."""
    w, u = quaternion[0], quaternion[1:]
    return vector + 2 * np.cross(u, np.cross(u, vector) + w * vector)


class Mug:
    """The point of the mug that was between the pads, seen from the hand's frame there (m)."""

    def __init__(self, session: tribo.Session, answer: tribo.StepAnswer) -> None:
        names = list(session.names.bodies)
        self.hand, self.mug = names.index("hand"), names.index("mug")
        pose = answer.bodies[0, self.mug]
        back = pose[3:7] * [1, -1, -1, -1]
        self.point = turned(back, answer.bodies[0, self.hand, :3] - pose[:3])
        self.start = pose[2]

    def way(self, answer: tribo.StepAnswer) -> np.ndarray:
        """Where the point is."""
        pose = answer.bodies[0, self.mug]
        return pose[:3] + turned(pose[3:7], self.point) - answer.bodies[0, self.hand, :3]

    def height(self, answer: tribo.StepAnswer) -> float:
        """By how much the mug is lifted."""
        return float(answer.bodies[0, self.mug, 2] - self.start)


def lift(session: tribo.Session, close: int) -> tuple[Mug, tribo.StepAnswer]:
    """Closes and lifts."""
    session.step(close, controls=controls(0))
    last = session.step(1, bodies=True)
    mug = Mug(session, last)
    for i in range(RAISE):
        part = (i + 1) / RAISE
        last = session.step(1, controls=controls(LIFT * part * part * (3 - 2 * part)), bodies=True)
    return mug, last


def creep(session: tribo.Session, mug: Mug) -> np.ndarray:
    """Holds: velocity (m/s) of the drift beside the swing, whose period is fitted."""
    session.step(SETTLE)
    ways = np.array([mug.way(session.step(1, bodies=True)) for _ in range(HOLD)])
    time = DT * (np.arange(HOLD) - (HOLD - 1) / 2)
    best = (np.inf, np.zeros(3))
    for period in np.linspace(0.02, 0.08, 121):
        turn = 2 * np.pi * time / period
        columns = np.stack([np.ones(HOLD), time, np.sin(turn), np.cos(turn)], axis=1)
        fit = np.linalg.lstsq(columns, ways, rcond=None)[0]
        error = float(np.linalg.norm(columns @ fit - ways))
        best = min(best, (error, fit[1]), key=lambda pair: pair[0])
    return best[1]


def pad_forces(answer: tribo.StepAnswer) -> list[float]:
    """Normal force (N) on each pad: its pressure over its surface."""
    forces = []
    for s in answer.surfaces:
        a, b, c = (s.vertices[s.triangles[:, k]].astype(float) for k in range(3))
        area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
        forces.append(float((s.pressures * area).sum()))
    return forces


def main() -> None:
    """Runs the checks."""
    report = Report()
    with scratch() as folder, tribo.Daemon() as daemon, daemon.connect() as client:
        make_models(folder)
        soft = client.load(write_soft_hand(folder))
        rigid = client.load(folder / "grasp.xml")
        with client.create_session(rigid) as session:
            mug, answer = lift(session, CLOSE_RIGID)
            rigid_height, rigid_creep = mug.height(answer), creep(session, mug)
            print(
                f"rigid pads: lifted {1e3 * rigid_height:.2f} mm, "
                f"creep {1e6 * np.linalg.norm(rigid_creep):.1f} um/s"
            )
        with client.create_session(soft) as session:
            mug, answer = lift(session, CLOSE_SOFT)
            height = mug.height(answer)
            taken = session.snapshot()
            (fork,) = session.fork()
            answer = session.step(FORKED, bodies=True, surfaces=True)
            forked = fork.step(FORKED, bodies=True, surfaces=True)
            session.restore(taken.snapshot_id)
            again = session.step(FORKED, bodies=True, surfaces=True)
            soft_creep = creep(session, mug)
            held = session.step(1, surfaces=True)
            forces, certificate = pad_forces(held), held.soft_certificates[0]
            print(
                f"soft pads: lifted {1e3 * height:.2f} mm, "
                f"creep {1e6 * soft_creep[0]:.0f} and {1e6 * soft_creep[2]:.0f} um/s (x, z), "
                f"forces {forces[0]:.2f} and {forces[1]:.2f} N of {FORCE} N, "
                f"{certificate.contacts} cells, overlaps {1e6 * certificate.penetration:.0f} um"
            )
            report.check(certificate.contacts >= 8, "both pads touch the mug")
            report.check(rigid_height > 0.6 * LIFT, "the rigid hand lifts the mug")
            report.check(height > 0.8 * rigid_height, "so does the soft hand")
            report.check(abs(soft_creep[2]) < 2e-4, f"it does not sink: {soft_creep[2]:.2g} m/s")
            report.check(np.linalg.norm(soft_creep) < 5e-4, f"the soft hand holds it: {soft_creep}")
            report.check(certificate.penetration < 1e-4, "the pads stay outside of the mug")
            for force in forces:
                report.check(abs(force - FORCE) < 0.2 * FORCE, f"a pad presses with {force:.2f} N")
            for name, other in (("fork", forked), ("restored session", again)):
                report.check(
                    np.array_equal(answer.bodies, other.bodies), f"a {name} has the same bodies"
                )
                report.check(
                    all(
                        np.array_equal(a.vertices, b.vertices)
                        and np.array_equal(a.pressures, b.pressures)
                        for a, b in zip(answer.surfaces, other.surfaces, strict=True)
                    ),
                    f"a {name} has the same pads",
                )
            fork.delete()
    report.finish()


if __name__ == "__main__":
    main()
