"""A daemon steps scenes of soft bodies as any scene: surfaces, forks, snapshots, watchers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from common_daemon import BUILD, Report, scratch

import tribo

SCENE = """<soft model="press">
  <option timestep="0.002" gravity="0 0 -9.81" friction="0.5"/>
  <grid lower="-0.6 -0.6 -0.5" upper="0.6 0.6 0.8" spacing="0.1"/>
  <material name="jelly" density="1000" young="1e5" poisson="0.3" damping="0.02"/>
  <body name="block" material="jelly" type="box" size="0.2 0.2 0.15" pos="0 0 0.15"/>
  <wall name="floor" type="plane"/>
  <rigid file="parts/weight.xml"/>
</soft>
"""
#: A card played on the processor, or the plug-in that TRIBO_GPU_PLUGIN names.
PLUGIN = os.environ.get("TRIBO_GPU_PLUGIN", str((BUILD / "tests" / "plugin" / "card.so").resolve()))
CARD = {"TRIBO_GPU_PLUGIN": PLUGIN, "TRIBOD_SERVER_BACKEND": "gpu"}
#: a played card is slow
STEPS_ON_A_CARD = 4
WEIGHT = """<mujoco><worldbody><body name="weight" pos="0 0 0.36"><freejoint/>
  <geom type="box" size="0.3 0.3 0.05" mass="8"/></body></worldbody></mujoco>
"""
# a pad of triangles whose upper half is clamped to a jaw on a spring, above the floor
PAD = """<soft model="pad">
  <option timestep="0.002" gravity="0 0 -9.81"/>
  <grid lower="-0.7 -0.7 -0.7" upper="0.7 0.7 0.6" spacing="0.1"/>
  <material name="jelly" density="1000" young="1e5" poisson="0.3" damping="0.02"/>
  <mesh name="slab" file="parts/slab.obj"/>
  <body name="pad" material="jelly" type="mesh" mesh="slab"/>
  <clamp body="pad" lower="-1 -1 -0.02" upper="1 1 1" rigid="jaw"/>
  <wall name="floor" type="plane" pos="0 0 -0.12"/>
  <rigid file="parts/jaw.xml"/>
</soft>
"""
JAW = """<mujoco><worldbody><body name="jaw" pos="0 0 0.2">
  <joint type="slide" axis="0 0 1" stiffness="20000" damping="900"/>
  <geom type="box" size="0.2 0.2 0.1" mass="50"/></body></worldbody></mujoco>
"""
SLAB = "".join(
    f"v {x} {y} {z}\n" for z in (-0.1, 0.1) for y in (-0.2, 0.2) for x in (-0.2, 0.2)
) + "".join(
    f"f {face}\n" for face in ("1 3 4 2", "5 6 8 7", "1 2 6 5", "3 7 8 4", "1 5 7 3", "2 4 8 6")
)


def is_closed(surface: tribo.Surface) -> bool:
    """Whether every edge of the mesh has two triangles, which run along it in opposite ways."""
    edges = [tuple(t[[k, (k + 1) % 3]]) for t in surface.triangles for k in range(3)]
    return len(set(edges)) == len(edges) and {(b, a) for a, b in edges} == set(edges)


def volume(surface: tribo.Surface) -> float:
    """m^3, positive if the triangles face outwards."""
    a, b, c = (surface.vertices[surface.triangles[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def steps(report: Report, client: tribo.Client, scene: tribo.Scene) -> None:
    """Steps, surfaces, forks and snapshots."""
    with client.create_session(scene, worlds=2) as session:
        start = session.state(surfaces=True)
        report.equal([s.body for s in start.surfaces], ["block", "block"], "a surface a world")
        report.check(all(is_closed(s) for s in start.surfaces), "surfaces are closed")
        report.check(abs(volume(start.surfaces[0]) / 0.048 - 1) < 0.1, "the block has its volume")
        answer = session.step(30, surfaces=True, single=True)
        report.equal(answer.steps, 30, "steps")
        report.equal(answer.surfaces[1].vertices.dtype, np.float32, "single precision")
        report.check(is_closed(answer.surfaces[1]), "the surface is closed after steps")
        soft = answer.soft_certificates
        report.equal(len(soft), 2, "a certificate a world")
        report.check(soft[0].contacts > 20 and soft[0].prediction_error < 0.01, "they touch")
        report.check(answer.certificates[0].contacts >= soft[0].contacts, "cells are contacts")
        pressure = answer.surfaces[0].pressures
        report.check(pressure.max() > 100 and pressure.min() >= 0, "contact has pressure")

        taken = session.snapshot()
        (fork,) = session.fork()
        after = session.step(10, bodies=True, surfaces=True)
        forked = fork.step(10, bodies=True, surfaces=True)
        report.check(np.array_equal(after.bodies, forked.bodies), "a fork goes on alike")
        session.restore(taken.snapshot_id)
        again = session.step(10, bodies=True, surfaces=True)
        report.check(np.array_equal(after.bodies, again.bodies), "a restored session goes on alike")
        for one, other in zip(after.surfaces, again.surfaces):
            report.check(np.array_equal(one.vertices, other.vertices), "so do its surfaces")
        first = next(iter(session.watch(surfaces=True)))
        report.equal(len(first.state.surfaces), 2, "a watcher sees the surfaces")
        session.reset()
        fresh = session.state(surfaces=True)
        report.check(
            np.array_equal(fresh.surfaces[0].vertices, start.surfaces[0].vertices),
            "Reset goes back to the start",
        )
        names = session.names.bodies
        report.check("weight" in names, "rigid bodies have names")
        fork.delete()


def pads(report: Report, client: tribo.Client, folder: Path) -> None:
    """A pad on a jaw, whose mesh is a file, lands on the floor; forks and snapshots go on alike."""
    scene = client.load(folder / "pad.xml")
    with client.create_session(scene) as session:
        answer = session.step(60, surfaces=True, bodies=True)
        report.check(answer.soft_certificates[0].contacts > 9, "the pad stands on the floor")
        report.check(is_closed(answer.surfaces[0]), "the pad's surface is closed")
        taken = session.snapshot()
        (fork,) = session.fork()
        after = session.step(20, bodies=True, surfaces=True)
        forked = fork.step(20, bodies=True, surfaces=True)
        session.restore(taken.snapshot_id)
        again = session.step(20, bodies=True, surfaces=True)
        for name, other in (("fork", forked), ("restored session", again)):
            report.check(np.array_equal(after.bodies, other.bodies), f"a {name} has the same jaw")
            report.check(
                np.array_equal(after.surfaces[0].vertices, other.surfaces[0].vertices),
                f"a {name} has the same pad",
            )
        fork.delete()
    (folder / "parts" / "slab.obj").write_text(SLAB.rpartition("f ")[0])
    error = report.raises(
        tribo.TriboError, "an open mesh is refused", lambda: client.load(folder / "pad.xml")
    )
    report.check("not closed: 4 of its edges" in str(error), f"'{error}' tells how it is open")


def bad_input(report: Report, client: tribo.Client, folder: Path) -> None:
    """Faults are named and cost nothing."""
    cases = {
        "material": (SCENE.replace('young="1e5"', 'young="-1e5"'), "must be positive"),
        "place": (SCENE.replace('pos="0 0 0.15"', 'pos="0 0 5"'), "'block' reaches from"),
        "typo": (SCENE.replace("<wall", "<wal"), ":6"),
        "file": (SCENE.replace("weight.xml", "none.xml"), "none.xml"),
    }
    for name, (text, said) in cases.items():
        (folder / "bad.xml").write_text(text)
        error = report.raises(
            tribo.TriboError, f"{name} is refused", lambda: client.load(folder / "bad.xml")
        )
        report.check(said in str(error), f"{name}: '{error}' says '{said}'")
    scene = client.load(folder / "press.xml")
    with client.create_session(scene, options=tribo.StepOptions(dt=0.5)) as session:
        error = report.raises(tribo.TriboError, "a step beyond the limit is refused", session.step)
        report.check("substeps" in str(error), f"'{error}' names the limit")
        report.equal(session.state().steps, 0, "nothing is lost")


def on_a_card(report: Report, folder: Path) -> None:
    """Sessions on a card: forks and snapshots go on alike, and steps end where the processor's do.

    The card adds up the programs' sums in its own order: impulses differ in their last bits.
    """
    with tribo.Daemon(environment=CARD) as daemon, daemon.connect() as client:
        scene = client.load(folder / "press.xml")
        ends = []
        for device in ("cpu", "gpu:0"):
            with client.create_session(scene, device=device) as session:
                report.equal([s.device for s in client.sessions()], [device], "where it is")
                answer = session.step(STEPS_ON_A_CARD, bodies=True, surfaces=True)
                report.check(answer.soft_certificates[0].contacts > 20, "they touch")
                taken = session.snapshot()
                (fork,) = session.fork()
                forked = fork.step(1, bodies=True, surfaces=True)
                session.restore(taken.snapshot_id)
                last = session.step(1, bodies=True, surfaces=True)
                report.check(np.array_equal(forked.bodies, last.bodies), f"{device}: a fork's body")
                ends.append((answer, last))
                fork.delete()
        for one, other in zip(*ends, strict=True):
            report.check(np.allclose(one.bodies, other.bodies, 0, 1e-12), "where the weight is")
            for name, most in (("vertices", 1e-12), ("pressures", 1e-8), ("triangles", 0)):
                numbers = [getattr(a.surfaces[0], name) for a in (one, other)]
                report.check(np.allclose(*numbers, 0, most), f"{name} of the surface")
            soft = [a.soft_certificates[0] for a in (one, other)]
            report.equal(soft[0].contacts, soft[1].contacts, "cells in contact")
            report.equal(soft[1].fallbacks, 0, "programs that the card left to the processor")


def main() -> None:
    """Runs the checks."""
    report = Report()
    with scratch() as folder, tribo.Daemon() as daemon, daemon.connect() as client:
        (folder / "parts").mkdir()
        (folder / "press.xml").write_text(SCENE)
        (folder / "parts" / "weight.xml").write_text(WEIGHT)
        scene = client.load(folder / "press.xml")
        report.equal(scene.dt, 0.002, "the scene's step")
        steps(report, client, scene)
        (folder / "pad.xml").write_text(PAD)
        (folder / "parts" / "jaw.xml").write_text(JAW)
        (folder / "parts" / "slab.obj").write_text(SLAB)
        pads(report, client, folder)
        bad_input(report, client, folder)
        on_a_card(report, folder)
    report.finish()


if __name__ == "__main__":
    main()
