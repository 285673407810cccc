"""Wall time of launched work, for both peers' benchmarks."""

import time
from collections.abc import Callable

import warp as wp

REPEATS = 3


def seconds_of(advance: Callable[[int], None], steps: int) -> list[float]:
    """Seconds that `advance(steps)` takes, REPEATS times, each from idle card to idle card."""
    seconds = []
    for _ in range(REPEATS):
        wp.synchronize()
        began = time.perf_counter()
        advance(steps)
        wp.synchronize()
        seconds.append(time.perf_counter() - began)
    return seconds
