"""The scenes that the GPU is timed on: MJCF, controls and starts that every program reads alike.

  jaw_mug    two slide fingers close on a mug, lift it by 0.2 m and hold it (tests/data/jaw_mug.c)
  humanoid   the humanoid inside PyPI's mujoco-warp falls and lies
  hand       the Shadow hand of PyPI's gymnasium-robotics (24 joints) on a slide closes around a
             can, lifts it from its stand by 0.2 m and holds it
  boxes      six boxes of 0.1 m and 1 kg in a stack, as Newton's Kamino is timed on (24 contacts)

`scenes.py FOLDER` writes them and FOLDER/scenes.json, which names for each its files, steps and how
the worlds' starts differ. Needs nothing but Python; BUILD and PEERS name the build folder and that
of the peers' packages.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Scene:
    name: str
    model: str  # file of the folder
    controls: str  # CSV as of `tribo run`, "" without controls
    dt: float  # s
    steps: int  # of the whole
    joint: str  # free joint whose start differs from world to world, "*": each
    shift: float  # m, largest in x and in y
    turn: float  # rad, largest about z
    hinges: float  # rad, largest of each hinge
    rise: float  # m, of all but the first world
    body: str  # that is held where it is above `height` at the end, "" where nothing is
    height: float  # m
    contacts: int  # room for peers with fixed buffers, half as much again as MuJoCo needs
    rows: int


class Missing(Exception):
    """A part of a scene is not installed."""


@dataclass(frozen=True)
class Sources:
    """Sources of scenes: the build folder, and that of the peers' packages."""

    build: Path
    peers: Path

    @staticmethod
    def of(build: Path | None = None, peers: Path | None = None) -> "Sources":
        """Folders that are not given come from the environment, or are the usual ones."""
        build = build or Path(os.environ.get("TRIBO_BUILD", "build"))
        return Sources(build, peers or Path(os.environ.get("PEERS", build / "peers")))

    def package(self, name: str) -> Path:
        found = sorted(self.peers.glob(f"lib/python3*/site-packages/{name}"))
        if not found:
            raise Missing(f"{name} is not in {self.peers}: run deploy/deps.sh peers")
        return found[-1]


def ramp(step: int, dt: float, begin: float, end: float) -> float:
    return min(max((dt * step - begin) / (end - begin), 0.0), 1.0)


# ---- jaw and mug ----


def jaw_mug(folder: Path, sources: Sources) -> Scene:
    generator = sources.build / "tests" / "data" / "jaw_mug"
    subprocess.run([generator, folder], check=True, stdout=subprocess.DEVNULL)
    rows = ["time,lift,close-1,close+1", "0,0,20,20"]
    rows += [f"{2e-3 * s!r},{0.2 * ramp(s + 5, 2e-3, 1, 2)!r},20,20" for s in range(500, 1001, 10)]
    (folder / "jaw_mug.csv").write_text("\n".join([*rows, ""]))
    return Scene(
        "jaw_mug", "jaw_mug.xml", "jaw_mug.csv", 2e-3, 1500, "mug", 0.005, 0.3, 0.0, 0.0,
        "mug", 0.15, 48, 160,
    )  # fmt: skip


# ---- humanoid ----


def humanoid(folder: Path, sources: Sources) -> Scene:
    shutil.copy(sources.package("mujoco_warp") / "test_data/humanoid/humanoid.xml", folder)
    return Scene(
        "humanoid", "humanoid.xml", "", 5e-3, 600, "root", 0.0, 3.0, 0.02, 0.1, "", 0.0, 40, 128
    )


# ---- hand ----

HAND_FILES = ("robot.xml", "shared.xml", "shared_asset.xml")

# rad; targets of servos: first open, then closed. Servos not named stay at 0.
OPEN = {"THJ4": 1.0, "THJ3": 0.6}
CLOSED = {
    "THJ4": 1.0, "THJ3": 0.6, "THJ1": 0.5, "THJ0": -1.2, "THJ2": 0.2,
    "FFJ2": 1.2, "MFJ2": 1.2, "RFJ2": 1.2, "LFJ2": 1.2,
    "FFJ1": 1.4, "MFJ1": 1.4, "RFJ1": 1.4, "LFJ1": 1.4,
}  # fmt: skip

# The hand points along -y with its thumb up and its palm to +x: half a right turn about y of how
# gymnasium-robotics mounts it, with the palm up at (1, 0.87, 0.15).
HAND = """<mujoco model="hand_can">
  <compiler angle="radian" autolimits="true" meshdir="hand"/>
  <option timestep="0.002" gravity="0 0 -9.81"/>
  <include file="hand/shared.xml"/>
  <asset><include file="hand/shared_asset.xml"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 0.1"/>
    <geom name="stand" type="box" size="0.05 0.05 0.1" pos="0 0 0.1"/>
    <body name="carriage" pos="{x} {y} {z}" quat="0.7071067811865476 0 0.7071067811865475 0">
      <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
      <joint name="lift" type="slide" axis="-1 0 0" range="-0.1 0.4" damping="10"/>
      <include file="hand/robot.xml"/>
    </body>
    <body name="can" pos="0 0 0.25">
      <freejoint name="can"/>
      <geom name="can" type="cylinder" size="0.03 0.05" mass="0.3" friction="0.8 0.005 0.0001"/>
    </body>
  </worldbody>
  <actuator>
    <position name="lift" joint="lift" kp="20000" kv="900" forcerange="-400 400"/>
  </actuator>
</mujoco>
"""


def hand(folder: Path, sources: Sources) -> Scene:
    assets = sources.package("gymnasium_robotics") / "envs/assets"
    shutil.copytree(assets / "stls/hand", folder / "hand", dirs_exist_ok=True)
    for name in HAND_FILES:
        shutil.copy(assets / "hand" / name, folder / "hand")
    (folder / "hand.xml").write_text(HAND.format(x=-0.187, y=-0.88, z=1.25))

    names = sorted({*OPEN, *CLOSED})
    rows = [",".join(["time", "lift", *(f"robot0:A_{n}" for n in names)])]
    for step in [*range(0, 200, 10), *range(500, 1001, 10)]:
        part = ramp(step, 2e-3, 0, 0.4)
        lift = 0.2 * ramp(step + 5, 2e-3, 1, 2)
        targets = [OPEN.get(n, 0) * (1 - part) + CLOSED.get(n, 0) * part for n in names]
        rows.append(",".join(repr(float(v)) for v in [2e-3 * step, lift, *targets]))
    (folder / "hand.csv").write_text("\n".join([*rows, ""]))
    return Scene(
        "hand", "hand.xml", "hand.csv", 2e-3, 1500, "can", 0.003, 0.3, 0.0, 0.0, "can", 0.4, 40, 160
    )


# ---- boxes ----

BOXES_STEPS = 500  # in which Kamino's settle too


def boxes(folder: Path, _: Sources) -> Scene:
    bodies = "".join(
        f'    <body name="box{i}" pos="0 0 {0.05 + 0.1 * i:.2f}"><freejoint name="box{i}"/>'
        '<geom type="box" size="0.05 0.05 0.05" mass="1"/></body>\n'
        for i in range(6)
    )
    (folder / "boxes.xml").write_text(
        '<mujoco model="boxes">\n  <option timestep="0.001" gravity="0 0 -9.81"/>\n'
        '  <default><geom friction="0.7 0 0" condim="3"/></default>\n  <worldbody>\n'
        f'    <geom name="floor" type="plane" size="1 1 0.1"/>\n{bodies}  </worldbody>\n</mujoco>\n'
    )
    return Scene(
        "boxes", "boxes.xml", "", 1e-3, BOXES_STEPS, "*", 0.002, 0.0, 0.0, 0.0, "box5", 0.54, 32, 96
    )


SCENES: dict[str, Callable[[Path, Sources], Scene]] = {
    "jaw_mug": jaw_mug,
    "humanoid": humanoid,
    "hand": hand,
    "boxes": boxes,
}


def say(name: str, why: str) -> None:
    print(f"scenes: {name} is left out: {why}", file=sys.stderr)


def write(
    folder: Path, sources: Sources | None = None, left_out: Callable[[str, str], None] = say
) -> list[Scene]:
    """All scenes that can be made; `left_out` gets the name of each other one and the
    reason."""
    folder.mkdir(parents=True, exist_ok=True)
    scenes = []
    for name, make in SCENES.items():
        try:
            scenes.append(make(folder, sources or Sources.of()))
        except Missing as why:
            left_out(name, str(why))
    text = json.dumps([asdict(s) for s in scenes], indent=1)
    (folder / "scenes.json").write_text(text + "\n")
    return scenes


def read(folder: Path) -> list[Scene]:
    return [Scene(**s) for s in json.loads((folder / "scenes.json").read_text())]


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    write(Path(sys.argv[1]))
