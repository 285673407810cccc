"""Shared by the end-to-end tests of the daemon: models, keys, folders.

A script makes a `Report`, checks, and ends with `report.finish()`, whose line the runner counts.
The daemon under test is $TRIBOD; `tribo.Daemon` starts it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common_report import Report as Report

import tribo

BUILD = Path(os.environ.get("TRIBO_BUILD", "build"))
TRIBO = os.environ.get("TRIBO", str(BUILD / "tribo"))

#: A ball over a floor.
BALL = b"""<mujoco model="ball"><worldbody>
  <geom type="plane" size="1 1 0.1"/>
  <body name="ball" pos="0 0 0.1"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
</worldbody></mujoco>"""


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that goes with the test."""
    folder = Path(tempfile.mkdtemp(prefix="tribod-e2e-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_models(folder: Path) -> None:
    """Writes mug.obj, hand.xml, hand.urdf and grasp.xml."""
    for program in ("mug", "hand"):
        subprocess.run(
            [BUILD / "tests" / "data" / program, folder], check=True, stdout=subprocess.DEVNULL
        )


def short_grasps(folder: Path, grasps: int) -> dict[str, Any]:
    """A request of that many trials of a few steps each; writes its models into the folder."""
    make_models(folder)
    return {
        "target": tribo.GraspObject(folder / "mug.obj", mass=0.3),
        "hand": tribo.Hand(folder / "hand.xml"),
        "poses": [
            tribo.GraspPose((0, 0, 0.03 + 0.03 * i / grasps), (1, 0, 0, 0), name=f"g{i}", force=20)
            for i in range(grasps)
        ],
        "protocol": tribo.Protocol(
            close_seconds=0.01, lift=0.001, lift_seconds=0.01, hold_seconds=0.01
        ),
    }


def create_key(data: Path, name: str, *options: str) -> str:
    """A new API key of the store in this folder; call it while no daemon has it open."""
    data.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        [os.environ["TRIBOD"], "--data", str(data), "--create-key", name, *options],
        check=True,
        capture_output=True,
        text=True,
    )
    return made.stdout.strip()
