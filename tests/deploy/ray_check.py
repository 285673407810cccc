"""Grasps over daemons that Ray starts, with one of its actors killed: the results of one daemon.

    make check-ray [ARGS="--grasps 10000"]

Ray runs on this machine. It starts the killed actor again on another port, which joins the job.
Also printed: the rates of one daemon and of three actors, which share this machine's cores, so
their ratio is the overhead; a third of the way, one actor is killed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

import ray
from cluster_gives_one_nodes_results import GRASPS, job, plain
from common_daemon import Report, make_models, scratch, short_grasps
from fleet_check import gather

import tribo
from tribo.cluster import to_parquet
from tribo.cluster.on_ray import RayCluster


def throughput(report: Report, folder: Path, grasps: int) -> None:
    """Many grasps by one daemon, then by three actors of Ray, one of which is killed."""
    asked = short_grasps(folder, grasps)
    with tribo.Daemon() as one, one.connect() as client:
        start = time.monotonic()
        expected = gather(client.evaluate_grasps(**asked), grasps, "one daemon")
        rate = grasps / (time.monotonic() - start)
    with RayCluster(nodes=3, resources={"num_cpus": 0.5}) as cluster:
        ray.get([actor.address.remote() for actor in cluster._actors])
        with cluster.evaluate_grasps(**asked) as running:

            def until_lost() -> Iterator[tribo.GraspResult]:
                for number, result in enumerate(running):
                    if number == grasps // 3:
                        ray.kill(cluster._actors[0], no_restart=False)
                    yield result

            start = time.monotonic()
            results = gather(until_lost(), grasps, "three actors")
            shared = grasps / (time.monotonic() - start)
            nodes = running.nodes()
    report.check(results == expected, "results of three actors equal those of one daemon")
    report.equal(len(results), grasps, "results")
    report.equal(sum(n.items for n in nodes), grasps, "grasps counted over the nodes")
    report.check(len(nodes) > 3, f"the actor that Ray started again has joined: {len(nodes)}")
    print(f"grasps/s: one daemon {rate:.1f}, three actors {shared:.1f}: {shared / rate:.2f}")


def main() -> None:
    """All checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grasps", type=int, default=2_000, help="of the measurement")
    grasps: int = parser.parse_args().grasps
    report = Report()
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"TRIBOD": os.environ["TRIBOD"]}},
    )
    with scratch() as folder:
        make_models(folder)
        asked = job(folder)
        with tribo.Daemon() as one, one.connect() as client:
            expected = [plain(r) for r in client.evaluate_grasps(**asked)]
        report.equal(len(expected), GRASPS, "results of one daemon")
        with RayCluster(nodes=2, resources={"num_cpus": 1}) as cluster:
            results = []
            with cluster.evaluate_grasps(**asked) as running:
                for result in running:
                    results.append(plain(result))
                    if len(results) == 3:
                        ray.kill(cluster._actors[0], no_restart=False)
                nodes = running.nodes()
            report.check(results == expected, "results equal those of one daemon")
            report.equal(sum(n.items for n in nodes), GRASPS, "items of all nodes together")
            report.check(sum(n.lost for n in nodes) > 0, "a call was lost with the killed actor")

            table = folder / "grasps.parquet"
            rows = to_parquet(cluster.evaluate_grasps(**asked), table)
            report.equal(rows, GRASPS, "rows written to Parquet")
            import pyarrow.parquet as pq

            names = pq.read_table(table).column("name").to_pylist()
            report.equal(names, [f"g{i}" for i in range(GRASPS)], "names in the order of the poses")
        with report.case("throughput"):
            throughput(report, folder, grasps)
    report.finish()


if __name__ == "__main__":
    main()
