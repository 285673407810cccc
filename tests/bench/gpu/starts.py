"""Numbers by which worlds' starts differ, drawn as by tests/bench/common_worlds.c; a clock."""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scenes import Scene

NUMBERS = 64  # a world has for its start
FREE, HINGE = 0, 3  # MuJoCo's numbers of joints

Array = npt.NDArray[np.float64]


def draws(worlds: int, k: int) -> Array:
    """The k-th number of every world, uniform in [-1, 1): SplitMix64."""
    with np.errstate(over="ignore"):
        x = np.arange(worlds, dtype=np.uint64) * np.uint64(NUMBERS) + np.uint64(k + 1)
        x *= np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return np.asarray((x >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1)


def starts(model: Any, scene: Scene, worlds: int) -> Array:
    """Coordinates of every world of a MuJoCo model; the first is left where the model has it."""
    q = np.tile(np.array(model.qpos0, np.float64), (worlds, 1))
    k = 0
    for j in range(model.njnt):
        at, kind = int(model.jnt_qposadr[j]), model.jnt_type[j]
        if kind == FREE and scene.joint in ("*", model.joint(j).name):
            q[1:, at] += scene.shift * draws(worlds, k)[1:]
            q[1:, at + 1] += scene.shift * draws(worlds, k + 1)[1:]
            q[1:, at + 2] += scene.rise
            half = scene.turn * draws(worlds, k + 2)[1:] / 2
            w, x, y, z = (q[1:, at + i].copy() for i in range(3, 7))
            c, s = np.cos(half), np.sin(half)
            q[1:, at + 3], q[1:, at + 4] = c * w - s * z, c * x - s * y
            q[1:, at + 5], q[1:, at + 6] = c * y + s * x, c * z + s * w
            k += 3
        elif kind == HINGE and scene.hinges > 0:
            q[1:, at] += scene.hinges * draws(worlds, k)[1:]
            if model.jnt_limited[j]:
                q[1:, at] = np.clip(q[1:, at], *model.jnt_range[j])
            k += 1
    return q


def process_age() -> float:
    """Seconds since the system started this process, to one of its clock's ticks."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
