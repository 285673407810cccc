"""The asyncio client: the same answers as the blocking one."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import models
import numpy as np
import pytest

import tribo
from tribo.v1 import simulation_pb2


async def test_models_are_uploaded_and_told(aio: tribo.aio.Client, tmp_path: Path) -> None:
    assert (await aio.server_info()).version
    models.write_box(tmp_path / "cube.obj", 0.05)
    main = tmp_path / "cube.xml"
    main.write_text(
        '<mujoco><asset><mesh name="c" file="cube.obj"/></asset><worldbody><body name="cube">'
        '<freejoint/><geom type="mesh" mesh="c"/></body></worldbody></mujoco>'
    )
    scene = await aio.load(main)
    assert scene.total_mass == pytest.approx(1.0, rel=1e-6)
    assert [body.name for body in (await aio.describe(scene)).bodies] == ["world", "cube"]
    assert scene.id in [told.scene_id async for told in aio.scenes()]
    assert "cube.obj" in [asset.name async for asset in aio.assets()]


async def test_both_clients_get_the_same_bytes(aio: tribo.aio.Client, client: tribo.Client) -> None:
    scene = await aio.load(models.LIFT, name="lift.xml")
    async with await aio.create_session(scene, worlds=2) as session:
        theirs = await session.step(200, controls=[0.1], contacts=True, bodies=True)
    with client.create_session(scene, worlds=2) as blocking:
        ours = blocking.step(200, controls=[0.1], contacts=True, bodies=True)
    for a, b in ((theirs.q, ours.q), (theirs.u, ours.u), (theirs.bodies, ours.bodies)):
        assert a is not None
        assert b is not None
        assert a.tobytes() == b.tobytes()
    assert theirs.certificates == ours.certificates


async def test_many_sessions_at_once(aio: tribo.aio.Client) -> None:
    scene = await aio.load(models.LIFT)
    sessions = await asyncio.gather(*(aio.create_session(scene) for _ in range(30)))
    answers = await asyncio.gather(*(s.step(50, controls=[0.1]) for s in sessions))
    assert len({a.q.tobytes() for a in answers if a.q is not None}) == 1
    listed = {info.session_id async for info in aio.sessions()}
    assert {s.id for s in sessions} <= listed
    await asyncio.gather(*(s.delete() for s in sessions))


async def test_streams(aio: tribo.aio.Client) -> None:
    scene = await aio.load(models.LIFT)
    async with await aio.create_session(scene) as session:
        async with session.stream(contacts=True) as stream:
            tags = [await stream.send(controls=[0.1]) for _ in range(50)]
            answers = [await stream.receive() for _ in tags]
            assert [a.tag for a in answers] == tags
            assert answers[-1].steps == 50
            assert (await stream.step()).steps == 51
        assert (await session.step()).steps == 52
        stream = session.stream()
        await stream.send(controls=[1.0, 2.0, 3.0])
        with pytest.raises(tribo.InvalidArgumentError) as raised:
            await stream.receive()
        assert "controls" in raised.value.field


async def test_watching(aio: tribo.aio.Client) -> None:
    scene = await aio.load(models.BALL)
    session = await aio.create_session(scene)
    first = asyncio.Event()
    events = []

    async def watch() -> None:
        async for update in session.watch(minimum_interval=0.001):
            first.set()
            events.append((update.event, update.state.steps))

    task = asyncio.create_task(watch())
    await asyncio.wait_for(first.wait(), 30)
    await session.step(7)
    await session.delete()
    await asyncio.wait_for(task, 30)
    assert events[-1][0] == simulation_pb2.SESSION_EVENT_DELETED


async def test_state_snapshots_and_forks(aio: tribo.aio.Client) -> None:
    scene = await aio.load(models.LIFT)
    async with await aio.create_session(scene, keyframe=0) as session:
        await session.set_state(controls=[0.3])
        await session.step(20)
        kept = await session.snapshot("here", data=True)
        (fork,) = await session.fork()
        ends = [await session.step(50), await fork.step(50)]
        await session.restore(kept.snapshot_id)
        ends.append(await session.step(50))
        await session.restore(list(kept.data))
        ends.append(await session.step(50))
        assert len({end.q.tobytes() for end in ends if end.q is not None}) == 1
        await fork.heartbeat()
        await fork.delete()
        await session.reset()
        state = await session.state()
        assert state.q is not None
        np.testing.assert_array_equal(state.q[0, :3], [0, 0, 0.15])
    async with await aio.create_session(await aio.load(models.BALL)) as session:
        await session.step()
        (contacts,) = await session.contacts()
        assert len(contacts) == 1
        assert len(await session.export_problem()) > 100


async def test_errors_and_deadlines(aio: tribo.aio.Client) -> None:
    with pytest.raises(tribo.NotFoundError):
        await aio.session("0" * 32).step()
    scene = await aio.load(models.LIFT)
    async with await aio.create_session(scene, worlds=100) as session:
        with pytest.raises(tribo.DeadlineExceededError):
            await session.step(1_000_000, timeout=0.5)
        assert (await session.state()).steps >= 0
        # a task that is cancelled takes its call along, and stays cancelled for asyncio
        task = asyncio.create_task(session.step(1_000_000, timeout=1e6))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await session.step(1, timeout=1e6)).steps > 0


def test_both_clients_take_and_document_the_same_arguments() -> None:
    pairs: tuple[tuple[type, type], ...] = (
        (tribo.Client, tribo.aio.Client),
        (tribo.Session, tribo.aio.Session),
        (tribo.StepStream, tribo.aio.StepStream),
    )
    for mine, theirs in pairs:
        for name, method in inspect.getmembers(theirs, inspect.isfunction):
            if name.startswith("_") or not hasattr(mine, name):
                continue
            blocking = getattr(mine, name)
            if not inspect.isfunction(blocking):
                continue
            ours = inspect.signature(blocking).parameters
            assert list(ours) == list(inspect.signature(method).parameters), name
            defaults = [p.default for p in ours.values()]
            assert defaults == [p.default for p in inspect.signature(method).parameters.values()]
            documented = (inspect.getdoc(method) or "").partition("Args:")[2]
            assert documented == (inspect.getdoc(blocking) or "").partition("Args:")[2], name


def test_shared_arguments_are_in_signature_and_documentation() -> None:
    parameters = inspect.signature(tribo.Session.step).parameters
    assert parameters["state"].default is True
    assert parameters["wrenches"].default is None
    text = tribo.Session.step.__doc__ or ""
    assert "wrenches: (bodies, 6)" in text
    assert "sensors: return" in text
    assert inspect.signature(tribo.connect).parameters["attempts"].default == 4


def test_an_unknown_argument_is_refused_before_anything_is_sent(client: tribo.Client) -> None:
    with pytest.raises(TypeError, match="densty"):
        client.load("no such file.xml", densty=3)  # type: ignore[call-arg]
