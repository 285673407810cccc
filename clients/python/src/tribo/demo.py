"""The demo: grasps of a mug, evaluated by a daemon over gRPC.

`python -m tribo.demo --data FOLDER` starts a private daemon (or uses --server), uploads the hand
and the mug from FOLDER, plays every grasp with perturbed copies as a job, prints a table and stops
the daemon again. The job stays in the daemon's store, for the dashboard.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tribo.client import Client, connect
from tribo.daemon import Daemon
from tribo.errors import TriboError
from tribo.grasp_types import (
    GraspObject,
    GraspPose,
    GraspResult,
    Hand,
    Perturbation,
    Protocol,
    Shake,
)
from tribo.v1 import grasp_pb2


class _Grasp(NamedTuple):
    name: str
    x: float  # m, of the pads' middle
    height: float  # m, above the mug's bottom
    turn: float  # rad, about the vertical axis
    tilt: float  # rad, about the closing direction
    force: float  # N, of each finger


# the grasps of `tribo demo`
_GRASPS = (
    _Grasp("middle", 0, 0.055, 0, 0, 20),
    _Grasp("rim", 0, 0.075, 0, 0, 20),
    _Grasp("turned", 0, 0.060, math.pi / 4, 0, 20),
    _Grasp("side", 0, 0.055, 0, -math.pi / 2, 20),
    _Grasp("oblique", 0, 0.073, 0, -math.pi / 4, 20),
    _Grasp("off_centre", 0.008, 0.060, 0, 0, 20),
    _Grasp("handle", 0.064, 0.047, 0, 0, 40),
    _Grasp("weak", 0, 0.055, 0, 0, 1),
    _Grasp("edge", -0.034, 0.055, 0, 0, 20),
)


def _pose(g: _Grasp) -> GraspPose:
    """The hand's frame in the mug's: turned about Z, then tilted about its own Y."""
    ct, st = math.cos(g.turn / 2), math.sin(g.turn / 2)
    cy, sy = math.cos(g.tilt / 2), math.sin(g.tilt / 2)
    return GraspPose(
        (g.x, 0, g.height), (ct * cy, -st * sy, ct * sy, st * cy), name=g.name, force=g.force
    )


PROTOCOL = Protocol(
    close_seconds=0.5,
    lift=0.2,
    lift_seconds=0.6,
    shakes=(
        Shake((1, 0, 0), amplitude=0.01, frequency=4, seconds=0.5),
        Shake((0, 1, 0), amplitude=0.01, frequency=4, seconds=0.5),
        Shake((0, 0, 1), angle=0.2, frequency=4, seconds=0.5),
    ),
    hold_seconds=1.0,
)


def _microns(value: float) -> str:
    return f"{value * 1e6:10.3g}"


def _row(result: GraspResult) -> str:
    outcome = result.verdict.name.lower()
    if result.drop_time is not None:
        outcome += f" at {result.drop_time:.2f} s"
    lower, upper = result.success_interval
    row = f"{result.name:<11} {outcome:<18} {100 * result.success:5.0f} % "
    row += f"[{100 * lower:3.0f}, {100 * upper:3.0f}] "
    if result.finger_forces:
        forces = " ".join(f"{force:5.1f}" for force in result.finger_forces.values())
        row += f"{_microns(result.slip)}   {forces:<12} "
        row += f"{result.epsilon_quality:8.4f} {result.weakest_margin:7.3f} "
    else:
        # the hand holds no object, so slip and forces are undefined
        row += f"{'-':>10}   {'-':<12} {'-':>8} {'-':>7} "
    return f"{row}{result.certificate.residual:9.1e}"


#: s; between two looks at a job that goes on
_POLL_SECONDS = 0.1


def _results(client: Client, job_id: str) -> Iterator[GraspResult]:
    """Results of a job as they come; ends with the job. Raises TriboError for one that failed."""
    seen = 0
    while True:
        job = client.grasp_job(job_id)
        for result in client.grasp_job_results(job_id, seen):
            seen += 1
            yield result
        if job.status == grasp_pb2.GRASP_JOB_STATUS_DONE:
            return
        if job.status != grasp_pb2.GRASP_JOB_STATUS_RUNNING:
            raise TriboError(f"the job has ended: {job.message or 'cancelled'}")
        time.sleep(_POLL_SECONDS)


def evaluate(client: Client, folder: Path, copies: int, seed: int) -> str:
    """Plays the demo's grasps and prints the table. Returns the id of the job."""
    print(f"{len(_GRASPS)} grasps of a mug by a parallel-jaw hand, each with {copies} copies:")
    print("poses +-1 mm and +-1 deg, friction and mass +-10 % (standard deviations).\n")
    print(
        f"{'':11} {'':18} {'held, 95 %':>16} {'slip':>11}   {'finger':12} {'quality':>8} "
        f"{'cone':>7} {'worst':>9}"
    )
    print(
        f"{'grasp':11} {'unperturbed':18} {'interval':>16} {'(µm)':>11}   {'forces (N)':12} "
        f"{'epsilon':>8} {'margin':>7} {'residual':>9}"
    )
    began = time.monotonic()
    job = client.submit_grasps(
        GraspObject(folder / "mug.xml", friction=0.7),
        Hand(folder / "hand.xml", closing_actuators=("close_left", "close_right")),
        [_pose(g) for g in _GRASPS],
        protocol=PROTOCOL,
        perturbation=Perturbation(
            count=copies,
            seed=seed,
            position=0.001,
            angle=math.radians(1),
            friction=0.1,
            mass=0.1,
        ),
        label="demo",
    )
    trials, worst = 0, 0.0
    for result in _results(client, job.id):
        print(_row(result), flush=True)
        trials += len(result.trials)
        worst = max(worst, result.certificate.residual)
    print(
        f"\n{trials} grasps played in {time.monotonic() - began:.2f} s, worst residual {worst:.1e}."
    )
    print(f"job      {job.id}")
    return job.id


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tribo-demo", description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with mug.xml and hand.xml")
    parser.add_argument("--server", help="a daemon that runs already, HOST:PORT")
    parser.add_argument("--copies", type=int, default=20, help="of each grasp (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the perturbations (1)")
    parser.add_argument(
        "--keep", action="store_true", help="keep the daemon until Ctrl-C, to look at its page"
    )
    options = parser.parse_args(arguments)
    for name in ("mug.xml", "hand.xml"):
        if not (options.data / name).exists():
            parser.error(f"--data: no {name} in {options.data}")
    try:
        with contextlib.ExitStack() as stack:
            if options.server:
                client = stack.enter_context(connect(options.server))
                page = None
            else:
                store = options.data / "store"
                daemon = stack.enter_context(Daemon(data=store))
                client = stack.enter_context(daemon.connect())
                page = f"http://{daemon.http}/"
                print(f"tribod   grpc {daemon.grpc}, data in {store}")
            job = evaluate(client, options.data, options.copies, options.seed)
            if page is not None and not options.keep:
                program = (
                    os.path.relpath(os.environ["TRIBOD"]) if "TRIBOD" in os.environ else "tribod"
                )
                print(
                    f"look     {program} --data {store}    # http://127.0.0.1:7480/#/grasps/{job}"
                )
            if options.keep and page is not None:
                print(f"look     {page}#/grasps/{job}")
                print("Ctrl-C stops the daemon.", flush=True)
                with contextlib.suppress(KeyboardInterrupt):
                    signal.pause()
    except TriboError as error:
        print(f"tribo-demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
