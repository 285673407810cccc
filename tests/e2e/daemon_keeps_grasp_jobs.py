#!/usr/bin/env python3
"""A grasp job outlives its client and two kill -9: all results, none twice, equal bytes.

A job without interruption gives the bytes. Jobs are found by a beginning of their id and cancelled.
The environment variable GRASPS sets the number of grasps (60).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

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


def submit(client: tribo.Client, folder: Path, count: int, hold: float = 0.1) -> str:
    """Grasps at growing heights, the same in every job."""
    job = client.submit_grasps(
        tribo.GraspObject(BOX, name="box.xml", friction=0.7),
        tribo.Hand(folder / "hand.xml", closing_actuators=("close_left", "close_right")),
        [
            tribo.GraspPose((0, 0, 0.03 * i / count - 0.01), force=20, name=f"grasp {i}")
            for i in range(count)
        ],
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


def wait(client: tribo.Client, job_id: str, results: int, seconds: float = LIMIT_S) -> int:
    """Waits until the job has so many results or has ended."""
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
                seen = [r.index for r in client.grasp_job_results(job_id)]
                report.equal(seen, list(range(GRASPS)), "every grasp once")

                long_id = submit(client, folder, GRASPS, hold=10000)
                report.equal([j.id for j in client.grasp_jobs()], [long_id, job_id], "the list")
                report.equal(client.cancel_grasp_job(long_id[:8]).status, CANCELLED, "cancelled")
                report.equal(client.grasp_job(long_id).status, CANCELLED, "and stays so")
                try:
                    client.grasp_job("0" * 32)
                    report.check(False, "an unknown job was found")
                except tribo.NotFoundError:
                    pass
            daemon.stop()
    report.finish()


if __name__ == "__main__":
    main()
