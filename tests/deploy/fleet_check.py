"""Ten thousand grasps by a cluster of containers, one killed midway and another joining.

    make fleet-check [ARGS="--grasps 1000"]

The containers have a network of their own without a way to the outside. The results must be one
container's, to the last bit, each exactly once. Also printed: the rates of one and of three
containers, which share this machine's cores, and the processor time of daemons and caller for a
grasp, whose growth is the overhead.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from cluster_gives_one_nodes_results import plain
from common_daemon import Report, short_grasps
from common_process import processor_seconds
from image_check import ENGINE, IMAGE, USER, Container, run

import tribo
from tribo.cluster import Cluster


@contextlib.contextmanager
def private_network() -> Iterator[str]:
    """A network of the engine that ends with the test."""
    name = f"tribod-fleet-{os.getpid()}"
    run("network", "create", "--internal", name, check=True)
    try:
        yield name
    finally:
        run("network", "rm", name)


@contextlib.contextmanager
def container(folder: Path, name: str, network: str) -> Iterator[Container]:
    """A container with a volume of its own, ready for calls."""
    data = folder / name
    data.mkdir()
    shutil.chown(data, USER, USER)
    started = Container(data, name=f"tribod-fleet-{name}-{os.getpid()}", network=network)
    try:
        if not started.wait():
            raise RuntimeError(f"{name} is not ready: {run('logs', started.name).stderr[-500:]}")
        yield started
    finally:
        started.remove()


def used(started: Container) -> float:
    """Processor seconds of a running container's daemon."""
    return processor_seconds(int(run("inspect", started.name, "--format", "{{.State.Pid}}").stdout))


def gather(results: Iterable[tribo.GraspResult], grasps: int, what: str) -> list[object]:
    """Results as plain values, with a line of progress."""
    gathered: list[object] = []
    shown = time.monotonic()
    for result in results:
        gathered.append(plain(result))
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"{what}: {len(gathered)} of {grasps}", flush=True)
    return gathered


def main() -> None:
    """One container, then three and a fourth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grasps", type=int, default=10_000)
    grasps: int = parser.parse_args().grasps
    report = Report()
    if not ENGINE or run("image", "inspect", IMAGE).returncode != 0:
        print(f"no image {IMAGE}: make image makes it", file=sys.stderr)
        sys.exit(1)
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        folder = Path(temporary)
        folder.chmod(0o755)
        asked = short_grasps(folder, grasps)
        network = stack.enter_context(private_network())
        with container(folder, "alone", network) as alone, tribo.connect(alone.grpc) as client:
            start, caller = time.monotonic(), time.process_time()
            expected = gather(client.evaluate_grasps(**asked), grasps, "one container")
            rate = grasps / (time.monotonic() - start)
            one = used(alone), time.process_time() - caller
        report.equal(len(expected), grasps, "results of one container")

        nodes = [stack.enter_context(container(folder, f"node{i}", network)) for i in range(3)]
        joining = stack.enter_context(container(folder, "joining", network))
        killed = 0.0
        with (
            Cluster([node.grpc for node in nodes]) as cluster,
            cluster.evaluate_grasps(**asked) as running,
        ):

            def until_lost() -> Iterator[tribo.GraspResult]:
                nonlocal killed
                for number, result in enumerate(running):
                    if number == grasps // 3:
                        killed = used(nodes[0])
                        run("kill", "--signal", "KILL", nodes[0].name)
                        cluster.add(joining.grpc)
                    yield result

            start, caller = time.monotonic(), time.process_time()
            results = gather(until_lost(), grasps, "three containers")
            shared = grasps / (time.monotonic() - start)
            three = (
                killed + sum(used(node) for node in [*nodes[1:], joining]),
                time.process_time() - caller,
            )
            played = {node.address: node for node in running.nodes()}
        report.check(results == expected, "results equal those of one container")
        report.equal(len(results), grasps, "results")
        report.equal(sum(n.items for n in played.values()), grasps, "grasps counted over the nodes")
        report.check(played[joining.grpc].items > 0, "the container that joined has played")
        report.check(played[nodes[0].grpc].items < grasps // 2, "the killed one has not played on")
        for node in played.values():
            print(", ".join(f"{k} {v}" for k, v in dataclasses.asdict(node).items()))
        for what, (daemons, calling) in {"one": one, "three": three}.items():
            print(
                f"processor ms a grasp, {what}: daemons {1e3 * daemons / grasps:.2f}, "
                f"caller {1e3 * calling / grasps:.2f}"
            )
        print(f"grasps/s: one container {rate:.1f}, three {shared:.1f}: {shared / rate:.2f}")
    report.finish()


if __name__ == "__main__":
    main()
