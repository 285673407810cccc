"""Grasp jobs, contact problems, and the server's records of them."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from pathlib import Path

import models
import numpy as np
import pytest

import tribo
from tribo.v1 import runs_pb2

PROBLEMS = Path(__file__).resolve().parents[3] / "tests" / "data" / "problems"

TARGET_NAME = "cube.obj"
POSES = [
    tribo.GraspPose((0, 0, 0.006), name="middle", force=10),
    tribo.GraspPose((0.002, 0, 0.010), name="aside", force=10),
    tribo.GraspPose((0, 0, 0.006), name="weak", force=0.2),
]
PROTOCOL = tribo.Protocol(
    close_seconds=0.3,
    lift=0.05,
    lift_seconds=0.3,
    shakes=(tribo.Shake((1, 0, 0), amplitude=0.005, frequency=4, seconds=0.25),),
    hold_seconds=0.2,
)
PERTURBATION = tribo.Perturbation(
    count=3, seed=7, position=0.001, angle=math.radians(1), friction=0.05, mass=0.05
)
HAND = tribo.Hand(models.HAND, name="hand.xml", closing_actuators=("close_left", "close_right"))


@pytest.fixture
def cube(tmp_path: Path) -> tribo.GraspObject:
    models.write_box(tmp_path / TARGET_NAME, 0.02)
    return tribo.GraspObject(tmp_path / TARGET_NAME, mass=0.1, friction=0.6)


def strip(result: tribo.GraspResult) -> list[object]:
    """The part of a result that can be compared with ==."""
    return [
        value.tobytes() if isinstance(value, np.ndarray) else value
        for value in (getattr(result, field.name) for field in dataclasses.fields(result))
    ]


def test_grasps_are_judged(client: tribo.Client, cube: tribo.GraspObject) -> None:
    seen: list[tuple[int, int]] = []
    job = client.evaluate_grasps(
        cube,
        HAND,
        POSES,
        protocol=PROTOCOL,
        perturbation=PERTURBATION,
        label="judged",
        progress=lambda done, total: seen.append((done, total)),
    )
    results = sorted(job, key=lambda r: r.index)
    assert [r.name for r in results] == ["middle", "aside", "weak"]
    middle, aside, weak = results
    assert middle.verdict == aside.verdict == tribo.Verdict.HELD
    assert middle.drop_time is None
    assert middle.success == 1.0
    lower, upper = middle.success_interval
    assert 0 < lower < 1.0 <= upper + 1e-12
    assert set(middle.finger_forces) == {"left", "right"}
    for force in middle.finger_forces.values():
        assert force == pytest.approx(10.0, rel=0.05)
    # the contacts carry the weight, and nothing else
    np.testing.assert_allclose(middle.wrenches[:, :3].sum(0), [0, 0, 0.1 * 9.81], atol=1e-3)
    assert middle.contact_positions.shape == middle.contact_normals.shape
    np.testing.assert_allclose(middle.contact_frictions[:, 0], 0.6)
    assert middle.position == tuple(POSES[0].position)
    assert middle.approach == (0, 0, 0)
    np.testing.assert_allclose(middle.object_centre, 0, atol=1e-12)
    assert middle.object_radius > 0
    np.testing.assert_allclose(np.linalg.norm(middle.contact_normals, axis=1), 1.0)
    assert middle.epsilon_quality > 0
    assert middle.volume_quality > 0
    assert 0 < middle.weakest_margin <= 1
    assert middle.certificate.residual <= 1e-6
    assert middle.certificate.solver
    assert [trial.verdict for trial in middle.trials].count(tribo.Verdict.HELD) == 3
    # 0.2 N and mu 0.6 on both sides carry 0.24 N of 0.98 N
    assert weak.verdict == tribo.Verdict.DROPPED
    assert weak.drop_time is not None
    assert weak.success == 0.0

    summary = job.summary
    assert summary is not None
    assert (summary.grasps, summary.trials) == (3, 9)
    assert summary.world_steps > 0
    assert seen
    assert all(done <= total for done, total in seen)
    assert seen == sorted(seen)

    told = client.run(summary.run_id).run
    assert (told.label, told.grasps) == ("judged", 3)
    assert told.kind == runs_pb2.RUN_KIND_GRASPS
    assert told.status == runs_pb2.RUN_STATUS_DONE
    assert told.steps == summary.world_steps
    assert summary.run_id in [run.run_id for run in client.runs()]
    again = client.compare_runs(summary.run_id, summary.run_id)
    assert again.same_scene
    assert again.same_options


def test_the_approach_is_told_in_the_frame_of_the_object(
    client: tribo.Client, cube: tribo.GraspObject
) -> None:
    turned = (0.5**0.5, 0, 0, 0.5**0.5)  # by 90 degrees about z: x of the tool is y of the object
    pose = tribo.GraspPose((0, 0, 0.006), turned, force=10)
    protocol = dataclasses.replace(PROTOCOL, approach=(1, 0, 0), approach_distance=0.03)
    (result,) = client.evaluate_grasps(cube, HAND, [pose], protocol=protocol)
    np.testing.assert_allclose(result.approach, (0, 0.03, 0), atol=1e-12)
    np.testing.assert_allclose(result.orientation, turned)


async def test_both_clients_get_the_same_results(
    client: tribo.Client, aio: tribo.aio.Client, cube: tribo.GraspObject
) -> None:
    ours = client.evaluate_grasps(
        cube, HAND, POSES, protocol=PROTOCOL, perturbation=PERTURBATION, priority="low"
    )
    blocking = {r.index: strip(r) for r in ours}
    async with await aio.evaluate_grasps(
        cube, HAND, POSES, protocol=PROTOCOL, perturbation=PERTURBATION, priority="low"
    ) as theirs:
        awaited = {r.index: strip(r) async for r in theirs}
    assert awaited == blocking
    assert theirs.summary is not None
    assert ours.summary is not None
    assert theirs.summary.certificate == ours.summary.certificate


def _many(count: int) -> list[tribo.GraspPose]:
    return [
        tribo.GraspPose((0, 0, 0.006 + 0.001 * (i % 5)), name=f"g{i}", force=10)
        for i in range(count)
    ]


def _wait_for_end(client: tribo.Client, label: str) -> runs_pb2.Run:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for run in client.runs():
            if run.label == label and run.status != runs_pb2.RUN_STATUS_RUNNING:
                return run
        time.sleep(0.02)
    raise AssertionError(f"{label} is still running")


def test_a_cancelled_job_stops(client: tribo.Client, cube: tribo.GraspObject) -> None:
    with client.evaluate_grasps(
        cube, HAND, _many(2000), protocol=PROTOCOL, label="cancelled"
    ) as job:
        assert next(job).success == 1.0
        job.cancel()
        # results that were on their way may still come
        with pytest.raises(tribo.CancelledError):
            for _ in job:
                pass
    run = _wait_for_end(client, "cancelled")
    assert run.status == runs_pb2.RUN_STATUS_CANCELLED
    steps = sum(
        round(s / 0.002)
        for s in (PROTOCOL.close_seconds, PROTOCOL.lift_seconds, 0.25, PROTOCOL.hold_seconds)
    )
    assert 0 < run.steps < 2000 * steps


async def test_a_job_is_cancelled_with_its_task(
    aio: tribo.aio.Client, client: tribo.Client, cube: tribo.GraspObject
) -> None:
    first = asyncio.Event()

    async def evaluate() -> None:
        job = await aio.evaluate_grasps(
            cube, HAND, _many(2000), protocol=PROTOCOL, label="task", timeout=600
        )
        async for _ in job:
            first.set()

    task = asyncio.create_task(evaluate())
    await asyncio.wait_for(first.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    run = await asyncio.to_thread(_wait_for_end, client, "task")
    assert run.status == runs_pb2.RUN_STATUS_CANCELLED

    job = await aio.evaluate_grasps(cube, HAND, _many(2000), protocol=PROTOCOL, timeout=600)
    await job.__anext__()
    job.cancel()
    with pytest.raises(tribo.CancelledError):
        async for _ in job:
            pass


def test_wrong_grasps_are_named(client: tribo.Client, cube: tribo.GraspObject) -> None:
    cases = [
        ([tribo.GraspPose((0, 0, 0)), tribo.GraspPose((0, 0, 0), (0, 0, 0, 0))], HAND, "poses[1]"),
        ([], HAND, "poses"),
        (
            POSES,
            dataclasses.replace(HAND, closing_actuators=("nobody",)),
            "nobody",
        ),
    ]
    for poses, hand, what in cases:
        with pytest.raises(tribo.TriboError) as raised:
            list(client.evaluate_grasps(cube, hand, poses, protocol=PROTOCOL))
        error = raised.value
        assert isinstance(error, (tribo.InvalidArgumentError, tribo.NotFoundError))
        assert what in error.field + error.message


@pytest.mark.skipif(not PROBLEMS.is_dir(), reason="the problems are in the project's checkout")
def test_problems_are_solved(client: tribo.Client) -> None:
    options = tribo.SolveOptions(maximum_iterations=200_000)
    for file in sorted(PROBLEMS.glob("*.dat")):
        answer = client.solve_problem(file.read_bytes(), file.name, options=options, solution=True)
        assert tribo.Outcome(answer.outcome) == tribo.Outcome.OK, file.name
        assert answer.residual <= 1e-6, file.name
        reactions = tribo.decode(answer.reactions)
        assert reactions.shape == (answer.contacts, answer.dimension), file.name
        assert (reactions[:, 0] >= 0).all(), file.name
    with pytest.raises(tribo.InvalidArgumentError):
        client.solve_problem(b"nothing of the kind", "broken.dat")


@pytest.mark.skipif(not PROBLEMS.is_dir(), reason="the problems are in the project's checkout")
async def test_problems_are_solved_asynchronously(aio: tribo.aio.Client) -> None:
    data = (PROBLEMS / "stack_of_6.dat").read_bytes()
    options = tribo.SolveOptions(solver="sor", tolerance=1e-9)
    answer = await aio.solve_problem(data, "stack_of_6.dat", options=options)
    assert answer.residual <= 1e-9
    assert not answer.reactions.data


def test_exported_problems_can_be_solved(client: tribo.Client, ball: tribo.Scene) -> None:
    with client.create_session(ball) as session:
        session.step(5)
        text = session.export_problem()
    answer = client.solve_problem(text, "exported.dat")
    assert (answer.contacts, tribo.Outcome(answer.outcome)) == (1, tribo.Outcome.OK)


async def test_benchmarks_are_kept(client: tribo.Client, aio: tribo.aio.Client) -> None:
    kept = client.record_benchmark(
        runs_pb2.Benchmark(
            name="test.step",
            metric="steps_per_second",
            unit="1/s",
            testbed="here",
            build="this",
            samples=[3.0, 1.0, 2.0],
        )
    )
    assert kept.benchmark_id
    assert kept.time_us > 0
    assert kept.median == 2.0
    assert [b.benchmark_id for b in client.benchmarks("test.step")] == [kept.benchmark_id]
    second = await aio.record_benchmark(kept)
    names = [b.benchmark_id async for b in aio.benchmarks("test.step")]
    assert names == [second.benchmark_id, kept.benchmark_id]
    run = next(client.runs())
    assert (await aio.run(run.run_id)).run.run_id == run.run_id
    assert (await aio.compare_runs(run.run_id, run.run_id)).same_build
    assert run.run_id in [r.run_id async for r in aio.runs(run.scene_id)]


async def test_a_job_is_left_and_found_again_by_asyncio(
    aio: tribo.aio.Client, client: tribo.Client, cube: tribo.GraspObject
) -> None:
    job = await aio.submit_grasps(cube, HAND, POSES, protocol=PROTOCOL, label="left")
    while (await aio.grasp_job(job.id[:12])).grasps_done < len(POSES):
        await asyncio.sleep(0.05)
    results = [result async for result in aio.grasp_job_results(job.id)]
    assert [r.index for r in results] == [0, 1, 2]
    assert [strip(r) for r in results] == [strip(r) for r in client.grasp_job_results(job.id)]
    assert job.id in [j.id async for j in aio.grasp_jobs()]
    # a trial of it is played again, with the same end
    film = client.replay_grasp(job.id[:12], 1, interval=0.05)
    again = await aio.replay_grasp(job.id, 1, interval=0.05)
    assert len(film) == len(film.times) == len(film.certificates) > 10
    assert film.sensors.shape == (len(film), 0)
    assert film.poses.tobytes() == again.poses.tobytes()
    assert film.poses.shape[1:] == (len(client.describe(film.scene_id).bodies), 7)
    np.testing.assert_allclose(np.diff(film.times)[:-1], 0.05, atol=1e-9)
    assert max(c.residual for c in film.certificates) < 1e-5
    # none was kept of it; another job keeps the trajectory of the trial that does not hold
    with pytest.raises(tribo.NotFoundError, match="not chosen"):
        client.grasp_trajectory(job.id, 1)
    keep = tribo.KeepTrajectories(
        grasps=[1],
        verdicts=[v for v in tribo.Verdict if v not in (tribo.Verdict.HELD, 0)],
        interval=0.05,
    )
    kept = await aio.submit_grasps(cube, HAND, POSES, protocol=PROTOCOL, trajectories=keep)
    while (await aio.grasp_job(kept.id)).grasps_done < len(POSES):
        await asyncio.sleep(0.05)
    assert [t.grasp async for t in aio.grasp_trajectories(kept.id)] == [1, 2]
    stored = await aio.grasp_trajectory(kept.id[:12], 1)
    assert stored.verdict == results[1].verdict
    assert stored.poses.tobytes() == film.poses.tobytes()
    assert stored.times.tobytes() == film.times.tobytes()
    assert stored.body("object/cube").shape == (len(stored), 7)
    endless = await aio.submit_grasps(cube, HAND, POSES * 400, protocol=PROTOCOL)
    ended = await aio.cancel_grasp_job(endless.id)
    assert ended.id == endless.id
    assert ended.grasps_done < len(POSES) * 400
