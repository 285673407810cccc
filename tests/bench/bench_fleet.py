#!/usr/bin/env python3
"""Cost of a fleet's dispatcher, outbox, store and files, from rates of one daemon on this machine.

Usage: bench_fleet.py [--nodes 1000] [--grasps-a-day 1e9] (TRIBOD names the daemon, TRIBO_BUILD the
build folder). Measured per grasp: processor time of `tribo.cluster` and of writing Parquet, bytes
of a result on the wire, in Parquet and in a daemon's store, processor time of the store; and per
run, where PostgreSQL is installed, what the outbox costs the daemon and the database. A model
multiplies them: sums over a day, and the load that one dispatcher process, which Python runs on one
core, can bear. Trials are short here, since none of these costs depends on a trial's length. The
number of trials a second that a node plays does depend on it: `--node-rate` asks whether the nodes
can play them.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

import grpc
from common_daemon import BALL, short_grasps
from common_postgres import Postgres, find_programs
from common_process import processor_seconds

import tribo
from tribo.cluster import Cluster, to_parquet
from tribo.v1 import grasp_pb2, grasp_pb2_grpc

DAY = 86400
#: grasps of one job, which is one run of the fleet's list
GRASPS_A_RUN = 1000
ROUNDS = 3


def measure(folder: Path, grasps: int) -> dict[str, float]:
    """Costs a grasp: seconds and bytes."""
    asked = short_grasps(folder, grasps)
    dispatcher, parquet = [], []
    with tribo.Daemon() as a, tribo.Daemon() as b, Cluster([a.grpc, b.grpc]) as cluster:
        results = list(cluster.evaluate_grasps(**asked))
        for _ in range(ROUNDS):
            start = time.process_time()
            for _ in cluster.evaluate_grasps(**asked):
                pass
            dispatcher.append((time.process_time() - start) / grasps)
    file = folder / "results.parquet"
    for _ in range(ROUNDS):
        start = time.process_time()
        to_parquet(results, file)
        parquet.append((time.process_time() - start) / grasps)
    data = folder / "data"
    with tribo.Daemon(data=data) as daemon, daemon.connect() as client:
        list(client.evaluate_grasps(**asked))
        start, used = time.monotonic(), processor_seconds(daemon.pid)
        list(client.evaluate_grasps(**asked))
        rate = grasps / (time.monotonic() - start)
        played = processor_seconds(daemon.pid) - used
    before = (data / "tribo.db").stat().st_size
    with tribo.Daemon(data=data) as daemon, daemon.connect() as client:
        used = processor_seconds(daemon.pid)
        job_id = client.submit_grasps(**asked).id
        while client.grasp_job(job_id).grasps_done < grasps:
            time.sleep(0.05)
        kept = processor_seconds(daemon.pid) - used
        with grpc.insecure_channel(daemon.grpc) as channel:
            answer = grasp_pb2_grpc.GraspStub(channel).GetGraspJob(
                grasp_pb2.GetGraspJobRequest(id=job_id, maximum_results=min(grasps, 1000))
            )
    # a daemon that has ended has no log beside its file
    stored = (data / "tribo.db").stat().st_size - before
    return {
        "dispatcher": statistics.median(dispatcher),
        "parquet": statistics.median(parquet),
        "parquet_bytes": file.stat().st_size / grasps,
        "wire_bytes": answer.ByteSize() / len(answer.results),
        "store": max(0.0, kept - played) / grasps,
        "store_bytes": stored / grasps,
        "rate": rate,
    }


def sent(daemon: tribo.Daemon) -> int:
    """Rows of the outbox that the database has."""
    with urllib.request.urlopen(f"http://{daemon.http}/metrics", timeout=20) as page:
        for line in page.read().decode().splitlines():
            if line.startswith("tribod_outbox_sent_total "):
                return int(float(line.split()[1]))
    raise KeyError("tribod_outbox_sent_total")


def play(daemon: tribo.Daemon, runs: int) -> float:
    """Processor seconds of a daemon for that many short sessions."""
    with daemon.connect() as client:
        scene = client.load(BALL)
        used = processor_seconds(daemon.pid)
        for i in range(runs):
            with client.create_session(scene, label=f"run {i}") as session:
                session.step(1)
        return processor_seconds(daemon.pid) - used


def measure_outbox(folder: Path, runs: int) -> dict[str, float]:
    """Costs a run; nothing where PostgreSQL is not installed."""
    programs = find_programs()
    if programs is None:
        return {}
    with tribo.Daemon(data=folder / "alone") as daemon:
        alone = play(daemon, runs)
    postgres = Postgres(programs)
    try:
        # the rows wait for the database, so that writing and sending are measured apart
        postgres.kill()
        with tribo.Daemon(
            data=folder / "sending", environment={"TRIBOD_FLEET_OUTBOX": postgres.url}
        ) as daemon:
            written = play(daemon, runs)
            used = processor_seconds(daemon.pid)
            postgres.start()
            while (first := sent(daemon)) == 0:
                time.sleep(0.01)
            start = time.monotonic()
            while (last := sent(daemon)) < runs:
                time.sleep(0.01)
            seconds = time.monotonic() - start
            sending = processor_seconds(daemon.pid) - used
        size = float(postgres.ask("SELECT pg_total_relation_size('tribo_run')")[0][0])
    finally:
        postgres.close()
    return {
        "write": max(0.0, written - alone) / runs,
        "send": sending / runs,
        "send_rate": (last - first) / seconds if last > first else math.inf,
        "row_bytes": size / runs,
    }


def print_model(cost: dict[str, float], nodes: int, grasps_a_day: float, node_rate: float) -> None:
    """The day of a fleet."""
    rate = grasps_a_day / DAY
    gigabytes = grasps_a_day / 1e9
    rows = [
        ("grasps/s of the fleet", f"{rate:,.0f}"),
        ("grasps/s of a node", f"{rate / nodes:,.1f}"),
        (
            "share of a node's trial rate",
            f"{rate / nodes / node_rate:.1%} of {node_rate:,.0f}/s",
        ),
        ("dispatcher: us a grasp", f"{1e6 * cost['dispatcher']:.0f}"),
        ("dispatcher: grasps/s of one process", f"{1 / cost['dispatcher']:,.0f}"),
        ("dispatcher: processes", f"{math.ceil(rate * cost['dispatcher'])}"),
        ("wire: bytes a result", f"{cost['wire_bytes']:.0f}"),
        ("wire: MB/s of the fleet", f"{rate * cost['wire_bytes'] / 1e6:.1f}"),
        (
            "Parquet: us and bytes a grasp",
            f"{1e6 * cost['parquet']:.0f}, {cost['parquet_bytes']:.0f}",
        ),
        (
            "Parquet: cores, GB a day",
            f"{rate * cost['parquet']:.2f}, {gigabytes * cost['parquet_bytes']:,.0f}",
        ),
        ("store: us and bytes a grasp", f"{1e6 * cost['store']:.0f}, {cost['store_bytes']:.0f}"),
        (
            "store: GB a day of a node, of the fleet",
            f"{gigabytes * cost['store_bytes'] / nodes:,.2f}, "
            f"{gigabytes * cost['store_bytes']:,.0f}",
        ),
    ]
    if "send" in cost:
        runs = rate / GRASPS_A_RUN
        rows += [
            (
                "outbox: us of a daemon's processor to write and to send a run",
                f"{1e6 * cost['write']:.0f}, {1e6 * cost['send']:.0f}",
            ),
            ("outbox: runs/s that one daemon sends", f"{cost['send_rate']:,.0f}"),
            (
                f"outbox: runs/s of the fleet, at {GRASPS_A_RUN:,} grasps a run",
                f"{runs:,.1f}",
            ),
            (
                "outbox: bytes a run in PostgreSQL, GB a day of the fleet",
                f"{cost['row_bytes']:.0f}, {runs * DAY * cost['row_bytes'] / 1e9:.2f}",
            ),
        ]
    else:
        rows.append(("outbox", "not measured: PostgreSQL is not installed"))
    print(f"| {nodes:,} nodes, {grasps_a_day:,.0f} grasps a day | |\n|---|---|")
    for what, value in rows:
        print(f"| {what} | {value} |")


def main() -> None:
    """Measures, then multiplies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--grasps-a-day", type=float, default=1e9)
    parser.add_argument("--node-rate", type=float, help="trials/s of a node; default: this one's")
    parser.add_argument("--measured", type=int, default=500, help="grasps of a measurement")
    parser.add_argument("--runs", type=int, default=3000, help="runs that pass the outbox")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tribod-fleet-") as folder:
        cost = measure(Path(folder), options.measured)
        cost |= measure_outbox(Path(folder), options.runs)
    node_rate = options.node_rate or cost["rate"]
    print_model(cost, options.nodes, options.grasps_a_day, node_rate)


if __name__ == "__main__":
    main()
