"""Numbers by which worlds' starts differ, drawn as by tests/bench/common_worlds.c; a clock."""

import os
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

NUMBERS = 64  # a world has for its start

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


def process_age() -> float:
    """Seconds since the system started this process, to one of its clock's ticks."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
