"""Searches the fastest settings of a step on a card: lanes of each part, overlap.

Coordinate descent, once around: each setting in turn is changed from the best so far, and a faster
value is kept. The backend's own settings are measured first and last; their difference is the
noise."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

LANES = (4, 8, 16, 32)
OVERLAP = (0, 8, 16, 33, 66, 132, 264)
CLOSER = 1.005  # a setting must be faster by this factor to be kept


@dataclass(frozen=True)
class Knobs:
    lanes: tuple[int, int, int, int] = (0, 0, 0, 0)  # of begin, detect, solve, end; 0: chosen
    overlap: int | None = None  # blocks of solves left behind; 0: all wait; None: chosen

    def options(self) -> list[str]:
        lanes = ["--lanes", ",".join(map(str, self.lanes))]
        return lanes if self.overlap is None else [*lanes, "--overlap", str(self.overlap)]

    def row(self) -> dict[str, Any]:
        return {"lanes": list(self.lanes), "overlap": self.overlap}


@dataclass(frozen=True)
class Case:
    worlds: int
    way: str  # hold or whole
    share: float  # of the seconds


# the most important cases come first; seconds that a case leaves go to the next ones
CASES = (
    Case(8192, "hold", 0.3),
    Case(8192, "whole", 0.25),
    Case(1024, "whole", 0.1),
    Case(32768, "whole", 0.2),
    Case(1024, "hold", 0.05),
    Case(32768, "hold", 0.1),
)

Measure = Callable[[Case, Knobs], float]


def changes(way: str) -> Iterator[Callable[[Knobs], list[Knobs]]]:
    """Each gives the alternatives of one setting."""

    def of_part(part: int) -> Callable[[Knobs], list[Knobs]]:
        def alternatives(k: Knobs) -> list[Knobs]:
            begin, detect, solve, end = k.lanes
            return [
                replace(
                    k,
                    lanes=(
                        number if part == 0 else begin,
                        number if part == 1 else detect,
                        number if part == 2 else solve,
                        number if part == 3 else end,
                    ),
                )
                for number in LANES
            ]

        return alternatives

    def overlap(k: Knobs) -> list[Knobs]:
        return [replace(k, overlap=n) for n in OVERLAP]

    if way == "whole":
        yield overlap
    yield from (of_part(part) for part in (1, 2, 0, 3))
    if way == "hold":
        yield overlap


def best(case: Case, measure: Measure, until: float) -> dict[str, Any]:
    """The fastest that is found until then; a run is begun only if the last one would fit."""
    began = time.monotonic()
    chosen = measure(case, Knobs())
    longest = time.monotonic() - began
    knobs, rate, tried = Knobs(), chosen, 1
    for alternatives in changes(case.way):
        for other in alternatives(knobs):
            if time.monotonic() + 2 * longest > until:
                break
            began = time.monotonic()
            found = measure(case, other)
            longest = max(longest, time.monotonic() - began)
            tried += 1
            if found > CLOSER * rate:
                knobs, rate = other, found
    again = measure(case, Knobs())
    return {
        "of": "knobs", "best": knobs.row(), "worlds": case.worlds, "way": case.way,
        "world_steps_per_s": rate, "chosen": chosen, "chosen_again": again, "tried": tried + 1,
        "gain": rate / max(chosen, again, 1e-9),
    }  # fmt: skip


def sweep(measure: Measure, seconds: float, worlds: list[int] | None) -> Iterator[dict[str, Any]]:
    began, share = time.monotonic(), 0.0
    for case in CASES:
        share += case.share
        if not worlds or case.worlds in worlds:
            yield best(case, measure, began + share * seconds)
