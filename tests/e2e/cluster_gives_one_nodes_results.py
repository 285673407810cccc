#!/usr/bin/env python3
"""Grasps over several daemons, one killed midway, another joining: the results of one daemon.

Also: sessions by `map`, an error of a request, a cluster without a node, cancelling.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, Report, make_models, scratch

import tribo
from tribo.cluster import Cluster

GRASPS = 16


def plain(value: object) -> object:
    """A dataclass as nested tuples with arrays as bytes, to compare to the last bit."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(plain(getattr(value, f.name)) for f in dataclasses.fields(value))
    if isinstance(value, np.ndarray):
        return (value.shape, value.tobytes())
    if isinstance(value, dict):
        return tuple(sorted((k, plain(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    return value


def job(folder: Path) -> dict[str, Any]:
    """The request: grasps at several heights, with a copy of each."""
    return {
        "target": tribo.GraspObject(folder / "mug.obj", mass=0.3),
        "hand": tribo.Hand(folder / "hand.xml"),
        "poses": [
            tribo.GraspPose((0, 0, 0.03 + 0.002 * i), (1, 0, 0, 0), name=f"g{i}", force=20)
            for i in range(GRASPS)
        ],
        "protocol": tribo.Protocol(
            close_seconds=0.3, lift=0.05, lift_seconds=0.2, hold_seconds=0.2
        ),
        "perturbation": tribo.Perturbation(count=2, friction=0.1, seed=7),
    }


def main() -> None:
    """All checks."""
    report = Report()
    with scratch() as folder:
        make_models(folder)
        asked = job(folder)
        with tribo.Daemon() as one, one.connect() as client:
            expected = [plain(r) for r in client.evaluate_grasps(**asked)]
        report.equal(len(expected), GRASPS, "results of one daemon")

        with report.case("a node is killed and another joins"):
            first, second, third = (tribo.Daemon() for _ in range(3))
            try:
                with Cluster([first.grpc, second.grpc]) as cluster:
                    # a stopped node takes a call and holds its items until it is killed
                    os.kill(first.pid, signal.SIGSTOP)

                    def lose_one() -> None:
                        first.kill()
                        cluster.add(third.grpc)

                    timer = threading.Timer(1.0, lose_one)
                    timer.start()
                    with cluster.evaluate_grasps(**asked) as running:
                        results = [plain(result) for result in running]
                        nodes = {n.address: n for n in running.nodes()}
                    report.check(results == expected, "results equal those of one daemon")
                    report.equal(len(results), GRASPS, "results")
                    report.check(nodes[first.grpc].lost > 0, "the killed node lost a call")
                    report.equal(
                        sum(n.items for n in nodes.values()), GRASPS, "items of all nodes together"
                    )
                    timer.join()
            finally:
                for daemon in (first, second, third):
                    daemon.stop()

        with tribo.Daemon() as a, tribo.Daemon() as b, Cluster([a.grpc, b.grpc]) as cluster:
            with report.case("sessions by map"):

                def fall(client: tribo.Client, height: float) -> float:
                    with client.create_session(client.load(BALL, name="ball.xml")) as session:
                        session.set_state(q=[0, 0, height, 1, 0, 0, 0])
                        answer = session.step(10)
                        assert answer.q is not None
                        return float(answer.q[0, 2])

                heights = list(cluster.map(fall, [0.5 + 0.1 * i for i in range(8)]))
                report.check(heights == sorted(heights) and len(heights) == 8, f"order: {heights}")

            with report.case("a wrong request is told at once"):
                start = time.monotonic()
                wrong = {**asked, "protocol": tribo.Protocol(close_seconds=-1)}
                report.raises(
                    tribo.InvalidArgumentError,
                    "a protocol that no node takes",
                    lambda: list(cluster.evaluate_grasps(**wrong)),
                )
                report.check(time.monotonic() - start < 10, "it is not tried again")

            with report.case("cancelling"):
                with cluster.evaluate_grasps(**asked) as running:
                    next(running)
                report.equal(list(running), [], "results after a job was left")

        with report.case("no node"):
            with Cluster(["127.0.0.1:1"], patience=1) as lonely:
                error = report.raises(
                    tribo.UnavailableError,
                    "a cluster whose only node is away",
                    lambda: list(lonely.map(lambda client, item: client.server_info(), [1])),
                )
            report.check(error is not None and "1 s" in error.message, f"{error}")
    report.finish()


if __name__ == "__main__":
    main()
