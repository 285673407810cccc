"""Grasps over daemons that Ray starts, with one of its actors killed: the results of one daemon.

    make check-ray

Ray runs on this machine. It starts the killed actor again on another port, which joins the job.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

import ray
from cluster_gives_one_nodes_results import GRASPS, job, plain
from common_daemon import Report, make_models, scratch

import tribo
from tribo.cluster import to_parquet
from tribo.cluster.on_ray import RayCluster


def main() -> None:
    """All checks."""
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
    report.finish()


if __name__ == "__main__":
    main()
