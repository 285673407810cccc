"""The demo's hand takes the demo's mug with soft pads and with its rigid ones: slip, creep, forces.

The soft pads take the place of the hand's pads: blocks of silicone, clamped to the fingers, 3 mm
thicker towards the mug. Both hands close with the same force and lift. A session of the soft hand
is forked and restored with the mug in the air and goes on with the same bytes. The slip and the
creep of a short lift are printed, not judged: the mug still swings in the soft pads when it ends.

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
RAISE, HOLD = 30, 12  # steps
CLOSE_RIGID, CLOSE_SOFT = 60, 20  # steps: the rigid pads have 3 mm further to go

SCENE = """<soft model="soft_grasp">
  <option timestep="0.002" gravity="0 0 -9.81" friction="0.7"/>
  <grid lower="-0.03 -0.066 0.024" upper="0.03 0.066 0.099" spacing="0.003"/>
  <material name="silicone" density="1100" young="2e5" poisson="0.4" damping="3e-5"/>
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


def way(session: tribo.Session, answer: tribo.StepAnswer) -> np.ndarray:
    """Where the mug is, seen from the palm (m)."""
    names = list(session.names.bodies)
    places = answer.bodies[0, :, :3]
    return places[names.index("mug")] - places[names.index("hand")]


def play(session: tribo.Session, close: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Closes and lifts: the mug's way in the hand by lifting, its place there, its height."""
    session.step(close, controls=controls(0))
    before = session.step(1, bodies=True)
    start = way(session, before)
    for i in range(RAISE):
        part = (i + 1) / RAISE
        last = session.step(1, controls=controls(LIFT * part * part * (3 - 2 * part)), bodies=True)
    names = list(session.names.bodies)
    mug = names.index("mug")
    height = float(last.bodies[0, mug, 2] - before.bodies[0, mug, 2])
    return way(session, last) - start, way(session, last), height


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
            slip, place, height = play(session, CLOSE_RIGID)
            answer = session.step(HOLD, bodies=True)
            creep = way(session, answer) - place
            print(
                f"rigid pads: lifted {1e3 * height:.2f} mm, "
                f"slip {1e6 * np.linalg.norm(slip):.1f} um, "
                f"creep {1e6 * np.linalg.norm(creep) / (HOLD * DT):.1f} um/s"
            )
            rigid_height = height
        with client.create_session(soft) as session:
            slip, place, height = play(session, CLOSE_SOFT)
            taken = session.snapshot()
            (fork,) = session.fork()
            answer = session.step(HOLD, bodies=True, surfaces=True)
            forked = fork.step(HOLD, bodies=True, surfaces=True)
            session.restore(taken.snapshot_id)
            again = session.step(HOLD, bodies=True, surfaces=True)
            creep = way(session, answer) - place
            forces = pad_forces(answer)
            certificate = answer.soft_certificates[0]
            print(
                f"soft pads: lifted {1e3 * height:.2f} mm, "
                f"slip {1e6 * np.linalg.norm(slip):.1f} um, "
                f"creep {1e6 * np.linalg.norm(creep) / (HOLD * DT):.1f} um/s, "
                f"forces {forces[0]:.2f} and {forces[1]:.2f} N of {FORCE} N, "
                f"{certificate.contacts} cells"
            )
            report.check(certificate.contacts >= 8, "both pads touch the mug")
            report.check(rigid_height > 0.6 * LIFT, "the rigid hand lifts the mug")
            report.check(height > 0.8 * rigid_height, "so does the soft hand")
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
