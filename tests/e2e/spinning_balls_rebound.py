#!/usr/bin/env python3
"""A ball that spins meets a plane with restitution of the normal and of the tangents, by MJCF.

Of a homogeneous ball with radius R the tangential velocity of the contact point is g = v + w R.
Where friction holds it becomes -e_t g, by an impulse that changes v by -2/7 (1 + e_t) g; where
friction slides, v changes by mu (1 + e_n) times the speed of the fall. The normal velocity becomes
-e_n times it (Nützi 4.28; Glocker, Set-Valued Force Laws). By the command, in a session of a
daemon, and over a restart of the daemon.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import TRIBO, Report, scratch

import tribo

report = Report()

RADIUS, FALL, ALONG, SPIN, DT = 0.1, -2.0, 0.7, 9.0, 1e-3
TOLERANCE = 1e-9  # m/s
#: restitution of the normal, of the tangents, friction; of friction 10 each ball holds
CASES = [(1.0, 0.0, 10.0), (0.8, 0.25, 10.0), (1.0, 0.5, 10.0), (1.0, 1.0, 10.0), (0.5, 1.0, 0.05)]
#: places of a contact's restitution: on the floor's geom, on the ball's, in a class, in a pair
PLACES = ("floor", "ball", "class", "pair")


def scene(normal: float, tangential: float, friction: float, place: str) -> bytes:
    """The ball, above the plane by half a step of its fall: it touches at the step's midpoint."""
    rebound = f'restitution="{normal}" tangential_restitution="{tangential}"'
    at = {name: rebound if name == place else "" for name in PLACES}
    surface = f'friction="{friction} 0 0" condim="3"'
    mu = f"{friction} {friction} 0 0 0"
    pair = f'<contact><pair geom1="floor" geom2="ball" friction="{mu}" {rebound}/></contact>'
    height = RADIUS - DT / 2 * FALL
    return f"""<mujoco model="rebound"><option timestep="{DT}" gravity="0 0 0"/>
<default><default class="bouncing"><geom {at["class"]} {surface}/></default></default><worldbody>
  <geom name="floor" type="plane" size="1 1 1" {at["floor"]} {surface}/>
  <body name="ball" pos="0 0 {height}"><freejoint/>
    <geom name="ball" class="bouncing" size="{RADIUS}" mass="2" {at["ball"]} {surface}/></body>
</worldbody>{pair if place == "pair" else ""}
<keyframe><key name="start" qpos="0 0 {height} 1 0 0 0" qvel="{ALONG} 0 {FALL} 0 {-SPIN} 0"/>
</keyframe></mujoco>""".encode()


def expected(normal: float, tangential: float, friction: float) -> tuple[float, float, float]:
    """v_x, v_z and w_y after the impact."""
    contact = ALONG + SPIN * RADIUS
    change = 2 / 7 * (1 + tangential) * contact
    change = min(change, friction * (1 + normal) * -FALL)
    # a ball's inertia is 2/5 m R^2: the impulse turns it by 5/2 of the change over R
    return ALONG - change, -normal * FALL, -SPIN + 5 / 2 * change / RADIUS


def compare(got: list[float], case: tuple[float, float, float], where: str) -> None:
    """Three velocities, and the law at the contact point."""
    for name, value, wanted in zip(("v_x", "v_z", "w_y"), got, expected(*case), strict=True):
        report.check(abs(value - wanted) <= TOLERANCE / RADIUS, f"{where}: {name} {value} {wanted}")
    if case[2] > 1:
        contact = got[0] - got[2] * RADIUS
        wanted = -case[1] * (ALONG + SPIN * RADIUS)
        report.check(abs(contact - wanted) <= TOLERANCE, f"{where}: contact {contact} {wanted}")


OPTIONS = tribo.StepOptions(
    scheme="moreau", solve=tribo.SolveOptions(tolerance=1e-13, maximum_iterations=1000)
)


def by_command(folder: Path, case: tuple[float, float, float], place: str) -> None:
    """`tribo run` on the file."""
    path = folder / "rebound.xml"
    path.write_bytes(scene(*case, place))
    words = [TRIBO, "run", path, "--steps", "2", "--scheme", "moreau", "--tolerance", "1e-13"]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=False)
    if not report.equal(done.returncode, 0, f"{place}: {done.stderr}"):
        return
    ball = json.loads(done.stdout)["bodies"]["ball"]
    got = [ball["linear_velocity"][0], ball["linear_velocity"][2], ball["angular_velocity"][1]]
    compare(got, case, f"command, {place}, {case}")


def in_session(
    client: tribo.Client, case: tuple[float, float, float], place: str
) -> tuple[tribo.Session, list[float]]:
    """A session of the daemon: velocities after two steps, and the surfaces of GetScene."""
    loaded = client.load(scene(*case, place), name="rebound.xml")
    if place != "pair":
        bears = [s for s in client.describe(loaded).shape_infos if s.restitution == case[0]]
        report.equal(len(bears), 1, f"{place}: one shape tells its restitution")
        report.equal([s.tangential_restitution for s in bears], [case[1]], f"{place}: tangential")
    session = client.create_session(loaded, options=OPTIONS, keyframe=0)
    u = session.step(2).u[0]
    got = [float(u[0]), float(u[2]), float(u[4])]
    compare(got, case, f"session, {place}, {case}")
    return session, got


def main() -> None:
    """Every case in every place."""
    with scratch() as folder:
        for place in PLACES:
            for case in CASES:
                by_command(folder, case, place)
        kept = []
        data = folder / "store"
        with tribo.Daemon(data=data) as daemon, daemon.connect() as client:
            for place in PLACES:
                for case in CASES:
                    in_session(client, case, place)
            # the scene comes back from the store as it was
            loaded = client.load(scene(*CASES[2], "floor"), name="rebound.xml")
            kept.append(client.create_session(loaded, options=OPTIONS, keyframe=0).id)
            report.equal(daemon.stop(), 0, "it stops")
        with tribo.Daemon(data=data) as daemon, daemon.connect() as client:
            u = client.session(kept[0]).step(2).u[0]
            compare([float(u[0]), float(u[2]), float(u[4])], CASES[2], "after a restart")
            report.raises(
                tribo.InvalidArgumentError, "a restitution above 1",
                lambda: client.load(scene(1.5, 0, 1, "floor"), name="rebound.xml"),
            )  # fmt: skip
    report.finish()


main()
