"""Shared by the peer comparisons: finding models, running `tribo`, loading into MuJoCo, reporting.

Coordinates need no map: Tribod keeps MuJoCo's conventions (bodies and joints depth first; a free
joint has position and quaternion, linear velocity in world and angular in body axes).
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from common_report import Report as Report

Array = npt.NDArray[np.float64]

BUILD = Path(os.environ.get("TRIBO_BUILD", "build"))
TRIBO = os.environ.get("TRIBO", str(BUILD / "tribo"))


class Refused(Exception):
    """A program did not take a model; the text is its reason."""


def package(name: str) -> Path:
    """The folder of an installed package, without importing its dependencies."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"no package {name}: deploy/deps.sh peers installs it")
    return Path(next(iter(spec.submodule_search_locations)))


def environment(**more: str) -> dict[str, str]:
    """This program's environment with more in it."""
    return {**os.environ, **more}


def numbers(values: Array) -> str:
    """An option's list that reads back as the same doubles."""
    return ",".join(repr(float(v)) for v in values)


def tribo(*arguments: str | Path) -> dict[str, Any]:
    """Runs `tribo ... --json` and gives its object. Refused with the message if it fails; a run
    that went through without reaching its tolerance says so by its status."""
    command = [TRIBO, *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode < 0:
        raise SystemExit(f"FAILED: signal {-done.returncode} ended {' '.join(command)}")
    lines = done.stderr.strip().splitlines()
    if done.returncode != 0 and '"NOT_CONVERGED"' not in done.stdout:
        raise Refused(lines[-1] if lines else f"exit status {done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def mujoco_spec(path: Path) -> mujoco.MjSpec:
    """A model as MuJoCo reads it, with every body kept."""
    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except (ValueError, mujoco.FatalError) as error:
        raise Refused(str(error).splitlines()[0]) from error
    spec.compiler.fusestatic = False
    if path.suffix == ".urdf":
        # MuJoCo knows no packages: the files that the addresses mean
        for mesh in spec.meshes:
            mesh.file = mesh.file.removeprefix("package://")
        spec.strippath = False
        spec.meshdir = str(path.parent)
    return spec


def mujoco_compile(spec: mujoco.MjSpec) -> mujoco.MjModel:
    try:
        with warnings.catch_warnings(action="ignore"):
            return spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise Refused(str(error).splitlines()[0]) from error


def random_state(model: mujoco.MjModel, rng: np.random.Generator) -> tuple[Array, Array]:
    """Coordinates up to a radian (or 0.1 m) from the reference pose, any rotation; velocities."""
    q = np.array(model.qpos0)
    for j in range(model.njnt):
        at = int(model.jnt_qposadr[j])
        kind = model.jnt_type[j]
        if kind == mujoco.mjtJoint.mjJNT_HINGE:
            q[at] += rng.uniform(-1, 1)
        elif kind == mujoco.mjtJoint.mjJNT_SLIDE:
            q[at] += rng.uniform(-0.1, 0.1)
        else:
            if kind == mujoco.mjtJoint.mjJNT_FREE:
                q[at : at + 3] += rng.uniform(-1, 1, 3)
                at += 3
            quaternion = rng.normal(size=4)
            q[at : at + 4] = quaternion / np.linalg.norm(quaternion)
    return q, rng.uniform(-1, 1, model.nv)


def in_threads(count: int, work: Callable[[int, list[int]], None]) -> tuple[int, float]:
    """Runs `work(thread, held)` in threads that count in held[thread]: the sum, and seconds."""
    held = [0] * count
    threads = [threading.Thread(target=work, args=(t, held)) for t in range(count)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(held), time.perf_counter() - began


def scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="tribo_peers_")
