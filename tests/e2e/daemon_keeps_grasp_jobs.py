#!/usr/bin/env python3
"""A grasp job outlives its client and two kill -9: all results, none twice, equal bytes.

A job without interruption gives the bytes, those of the trajectories of chosen trials too, which
are read back after a restart by the Python client and by `tribo jobs`, and are the states that a
replay shows. Jobs are found by a beginning of their id and cancelled.
The environment variable GRASPS sets the number of grasps (60).
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from common_daemon import Report, make_models, scratch

import tribo
from tribo.v1 import grasp_pb2

GRASPS = int(os.environ.get("GRASPS", "60"))
LIMIT_S = max(120.0, 0.3 * GRASPS)
BOX = b"""<mujoco model="box"><worldbody><body name="box"><freejoint/>
  <geom type="box" size="0.02 0.02 0.04" mass="0.1"/></body></worldbody></mujoco>"""
RUNNING = grasp_pb2.GRASP_JOB_STATUS_RUNNING
DONE = grasp_pb2.GRASP_JOB_STATUS_DONE
CANCELLED = grasp_pb2.GRASP_JOB_STATUS_CANCELLED


#: those of all dropped grasps, and of the first and the last grasp
KEEP = tribo.KeepTrajectories(
    grasps=(0, GRASPS - 1), verdicts=(tribo.Verdict.DROPPED,), interval=0.05
)


def submit(
    client: tribo.Client,
    folder: Path,
    count: int,
    hold: float = 0.1,
    keep: tribo.KeepTrajectories | None = KEEP,
) -> str:
    """Grasps at growing heights, the same in every job; every fifth has no force and drops."""
    job = client.submit_grasps(
        tribo.GraspObject(BOX, name="box.xml", friction=0.7),
        tribo.Hand(folder / "hand.xml", closing_actuators=("close_left", "close_right")),
        [
            tribo.GraspPose(
                (0, 0, 0.03 * i / count - 0.01), force=0.1 if i % 5 == 2 else 20, name=f"grasp {i}"
            )
            for i in range(count)
        ],
        trajectories=keep,
        protocol=tribo.Protocol(lift=0.05, lift_seconds=0.1, hold_seconds=hold),
        label="kept",
    )
    return job.id


def raw_results(client: tribo.Client, job_id: str) -> list[bytes]:
    """Stored results as bytes, in the order in which the server gives them."""
    found: list[bytes] = []
    while True:
        answer = client._grasp.GetGraspJob(
            grasp_pb2.GetGraspJobRequest(id=job_id, first_result=len(found), maximum_results=25)
        )
        if not answer.results:
            return found
        found.extend(r.SerializeToString(deterministic=True) for r in answer.results)


def raw_trajectories(client: tribo.Client, job_id: str) -> dict[int, bytes]:
    """Stored trajectories as bytes, by the grasp."""
    return {
        t.grasp: client._grasp.GetGraspTrajectory(
            grasp_pb2.GetGraspTrajectoryRequest(id=job_id, grasp=t.grasp, copy=t.copy)
        ).trajectory.SerializeToString(deterministic=True)
        for t in client.grasp_trajectories(job_id)
    }


def check_trajectories(
    report: Report, client: tribo.Client, job_id: str, daemon: tribo.Daemon, folder: Path
) -> None:
    """The stored trajectories of a job, through every way to read them."""
    verdicts = {r.index: r.verdict for r in client.grasp_job_results(job_id)}
    dropped = [i for i, v in verdicts.items() if v == tribo.Verdict.DROPPED]
    report.check(len(dropped) >= GRASPS // 20, f"{len(dropped)} grasps are dropped")
    kept = [t.grasp for t in client.grasp_trajectories(job_id)]
    report.equal(kept, sorted({0, GRASPS - 1, *dropped}), "the trials whose trajectories are kept")
    job = client.grasp_job(job_id)
    report.equal(job.trajectories, len(kept), "the job's number of trajectories")
    report.equal(
        sum(t.bytes for t in client.grasp_trajectories(job_id)), job.trajectory_bytes, "their bytes"
    )
    for grasp in (0, GRASPS - 1):
        held = client.grasp_trajectory(job_id[:8], grasp)
        again = client.replay_grasp(job_id, grasp, interval=0.05)
        report.equal(held.verdict, verdicts[grasp], "the verdict of a trajectory")
        report.check(np.array_equal(held.times, again.times), "its times are a replay's")
        report.check(held.poses.tobytes() == again.poses.tobytes(), "its poses are a replay's")
    report.equal(held.verdict, tribo.Verdict.HELD, "the last grasp holds")
    rise = held.body("object/box")[:, 2]
    report.check(rise[-1] > rise[0] + 0.03, f"a held box rises: {rise[0]:.3f} to {rise[-1]:.3f}")
    film = client.grasp_trajectory(job_id, dropped[0])
    fallen = film.body("object/box")[:, 2]
    report.check(fallen[-1] < fallen[0] + 0.03, "a dropped one stays below")
    report.check(len(film) == len(film.poses) == len(film.times) > 3, f"{len(film)} frames")
    for wrong, error in (
        (lambda: client.grasp_trajectory(job_id, 1), tribo.NotFoundError),
        (lambda: client.grasp_trajectory(job_id, 0, copy=1), tribo.NotFoundError),
        (lambda: client.grasp_trajectory("0" * 32, 0), tribo.NotFoundError),
        (lambda: submit(client, folder, 3, keep=tribo.KeepTrajectories(grasps=[3])),
         tribo.InvalidArgumentError),
        (lambda: submit(client, folder, 3, keep=tribo.KeepTrajectories(interval=-1)),
         tribo.InvalidArgumentError),
        (lambda: submit(client, folder, 3, keep=tribo.KeepTrajectories(copies=2)),
         tribo.InvalidArgumentError),
    ):  # fmt: skip
        try:
            wrong()
            report.check(False, "a wrong request was answered")
        except error as refusal:
            report.check(bool(str(refusal)), f"refused: {refusal}")
    out = folder / "trial.csv"
    command = [os.environ.get("TRIBO", "tribo"), "jobs", "trajectory", job_id[:8], str(GRASPS - 1)]
    subprocess.run([*command, "--server", daemon.grpc, "--out", str(out)], check=True)
    rows = list(csv.reader(out.read_text().splitlines()))
    column = rows[0].index("object/box.z")
    report.equal(len(rows) - 1, len(held), "rows of tribo jobs trajectory")
    report.check(
        np.array_equal(np.float32([row[column] for row in rows[1:]]), rise), "and their numbers"
    )
    refused = subprocess.run(
        [*command[:-1], "1", "--server", daemon.grpc], capture_output=True, text=True
    )
    report.check(refused.returncode == 1 and "not chosen" in refused.stderr, refused.stderr)


def wait(client: tribo.Client, job_id: str, results: int, seconds: float = LIMIT_S) -> int:
    """Waits until the job has this number of results or has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        job = client.grasp_job(job_id)
        if job.grasps_done >= results and (results < GRASPS or job.status != RUNNING):
            break
        time.sleep(0.02)
    return job.grasps_done


def main() -> None:
    report = Report()
    with scratch() as folder:
        make_models(folder)
        with tribo.Daemon(data=folder / "calm") as daemon, daemon.connect() as client:
            calm_id = submit(client, folder, GRASPS)
            wait(client, calm_id, GRASPS)
            report.equal(client.grasp_job(calm_id).status, DONE, "a job without interruption")
            calm = raw_results(client, calm_id)
            calm_films = raw_trajectories(client, calm_id)
            # a bound leaves the later ones out
            few = tribo.KeepTrajectories(range(GRASPS), interval=0.05, maximum_bytes=10_000)
            few_id = submit(client, folder, GRASPS, keep=few)
            wait(client, few_id, GRASPS)
            job = client.grasp_job(few_id)
            report.equal(job.trajectories + job.trajectories_left_out, GRASPS, "all are counted")
            report.check(0 < job.trajectory_bytes <= 10_000, f"{job.trajectory_bytes} bytes kept")
            report.equal(
                [t.grasp for t in client.grasp_trajectories(few_id)],
                list(range(job.trajectories)),
                "the first ones are kept",
            )
        report.equal(len(calm), GRASPS, "its results")

        job_id = ""
        counts = []
        for kill in range(3):
            daemon = tribo.Daemon(data=folder / "killed")
            with daemon.connect() as client:
                if kill == 0:
                    job_id = submit(client, folder, GRASPS)
                if kill < 2:
                    counts.append(wait(client, job_id[:8], (kill + 1) * GRASPS // 4))
                    daemon.kill()
                    continue
                wait(client, job_id, GRASPS)
                job = client.grasp_job(job_id)
                report.equal(job.status, DONE, "the job that was killed twice")
                report.equal(job.grasps_done, GRASPS, "its number of results")
                report.check(max(counts) < GRASPS, f"it was killed in its middle: {counts}")
                print(f"killed at {counts} of {GRASPS} results")
                killed = raw_results(client, job_id)
                report.check(killed == calm, "the bytes of an undisturbed run")
                films = raw_trajectories(client, job_id)
                report.check(films == calm_films, "and of its trajectories")
                seen = [r.index for r in client.grasp_job_results(job_id)]
                report.equal(seen, list(range(GRASPS)), "every grasp once")

                long_id = submit(client, folder, GRASPS, hold=10000, keep=None)
                report.equal([j.id for j in client.grasp_jobs()], [long_id, job_id], "the list")
                report.equal(client.cancel_grasp_job(long_id[:8]).status, CANCELLED, "cancelled")
                report.equal(client.grasp_job(long_id).status, CANCELLED, "and stays so")
                try:
                    client.grasp_job("0" * 32)
                    report.check(False, "an unknown job was found")
                except tribo.NotFoundError:
                    pass
            daemon.stop()
        with tribo.Daemon(data=folder / "killed") as daemon, daemon.connect() as client:
            check_trajectories(report, client, job_id, daemon, folder)
            films = raw_trajectories(client, job_id)
            report.check(films == calm_films, "the trajectories after a restart")
    report.finish()


if __name__ == "__main__":
    main()
