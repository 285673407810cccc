"""Shared by the end-to-end tests of the daemon: counting checks, models, a daemon of their own.

A script makes a `Report`, checks, and ends with `report.finish()`, whose line the runner counts.
The daemon under test is $TRIBOD; `tribo.Daemon` starts it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tribo

BUILD = Path(os.environ.get("TRIBO_BUILD", "build"))
TRIBO = os.environ.get("TRIBO", str(BUILD / "tribo"))

#: A ball over a floor.
BALL = b"""<mujoco model="ball"><worldbody>
  <geom type="plane" size="1 1 0.1"/>
  <body name="ball" pos="0 0 0.1"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
</worldbody></mujoco>"""


class Report:
    """Counts checks and prints those that fail."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        self.skipped = 0

    def check(self, good: bool, what: str) -> bool:
        """One check."""
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what}", flush=True)
        return good

    def equal(self, got: object, expected: object, what: str) -> bool:
        """Checks that two values are equal."""
        return self.check(got == expected, f"{what}: {got!r}, not {expected!r}")

    def skip(self, why: str) -> None:
        """Prints a line that the runner counts."""
        self.skipped += 1
        print(f"SKIPPED {why}", flush=True)

    def raises(
        self, kind: type[tribo.TriboError], what: str, call: Callable[[], object]
    ) -> tribo.TriboError | None:
        """Checks that a call raises this error, and gives it."""
        try:
            call()
        except kind as error:
            self.passed += 1
            return error
        except Exception as error:
            self.check(False, f"{what}: {type(error).__name__}: {error}")
            return None
        self.check(False, f"{what}: nothing was raised")
        return None

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        """A part of the test: an exception is a failure of this part alone."""
        began = time.monotonic()
        try:
            yield
        except Exception:
            self.check(False, f"{name}\n{traceback.format_exc()}")
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)

    def finish(self) -> None:
        """Prints the sum and ends the program."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.exit(self.failed > 0)


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


def resident_bytes(pid: int) -> int:
    """Memory that a process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(pid)


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
