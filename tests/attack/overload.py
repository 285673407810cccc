#!/usr/bin/env python3
"""Ten times the load that a daemon can carry, from callers that do not wait for answers.

    overload.py [--rounds 3] [--seconds 5]

Long calls (60 ms) and short ones (10 ms). Rounds of half the capacity and of ten times the
capacity alternate; the figures are medians over the rounds. The first second of an overload does
not count, since a burst may wait for as long as the bound. Goals: the p99 of accepted calls stays
below three times that at half load, the work done is at least 90 % of the capacity, a refusal comes
within 50 ms and says when to come back, and callers of PRIORITY_HIGH that want everything leave
others their share.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "e2e"))

import daemon_refuses_overload as load
import grpc
from common_daemon import Report, scratch

import tribo
from tribo import aio

MOST_TIMES, LEAST_GOODPUT, LATEST_REFUSAL_S = 3.0, 0.9, 0.05


async def half_and_ten_times(
    report: Report, daemon: tribo.Daemon, rounds: int, seconds: float, call_seconds: float
) -> None:
    """The open loop, with calls that take so long."""
    ratios, goodputs, refusals = [], [], []
    async with aio.connect(daemon.grpc, attempts=1, timeout=60) as client:
        sessions = await load.Sessions.make(client, 100, await load.calibrate(client, call_seconds))
        for _ in range(rounds):
            full = await load.callers(sessions, 2, seconds)
            capacity = len(full.accepted) / full.seconds
            half = await load.arrivals(sessions, 0.5 * capacity, seconds)
            over = await load.arrivals(sessions, load.OVERLOAD * capacity, seconds, skip=1)
            report.equal((full.wrong + half.wrong + over.wrong)[:5], [], "ends of calls")
            ratios.append(load.p99(over.accepted) / load.p99(half.accepted))
            goodputs.append(len(over.accepted) / over.seconds / capacity)
            refusals.append(load.p99(over.refused))
            print(f"capacity {capacity:.1f} calls/s; half: {half}; ten times: {over}", flush=True)
    ratio, goodput = statistics.median(ratios), statistics.median(goodputs)
    refusal = statistics.median(refusals)
    print(
        f"p99 {ratio:.2f} times as long, goodput {goodput:.2f}, refused in {1e3 * refusal:.1f} ms"
    )
    report.check(ratio < MOST_TIMES, f"p99 {ratio:.2f} times as long")
    report.check(goodput >= LEAST_GOODPUT, f"goodput {goodput:.2f}")
    report.check(refusal < LATEST_REFUSAL_S, f"refusals come after {refusal:.3f} s")


def main() -> None:
    """Runs the attack."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    report = Report()
    grpc.aio.init_grpc_aio()
    with scratch() as folder:
        # the daemon as it comes, but for one thread that computes: one is left for the callers
        with tribo.Daemon(data=folder / "time", arguments=["--threads", "1"]) as daemon:
            for call in (load.CALL_SECONDS, load.CALL_SECONDS / 6):
                with report.case(f"ten times the load, calls of {1e3 * call:.0f} ms"):
                    asyncio.run(
                        half_and_ten_times(report, daemon, options.rounds, options.seconds, call)
                    )
            report.equal(daemon.stop(), 0, "exit status")
        with load.start(folder / "high", 8) as daemon:
            load.run(report, "high priority", lambda: load.starved(report, daemon))
    report.finish()


if __name__ == "__main__":
    main()
