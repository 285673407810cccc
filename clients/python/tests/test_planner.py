"""A planner's calls: samples, evaluations in one call, names, tables, DLPack, models in process."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import models
import numpy as np
import pytest

import tribo
from tribo import meshes

HAND = tribo.Hand(models.HAND, name="hand.xml", tool_position=(0, 0, 0))
PROTOCOL = tribo.Protocol(
    approach=(0, 0, -1), close_seconds=0.2, lift=0.03, lift_seconds=0.2, hold_seconds=0.1, force=10
)


@pytest.fixture
def cube(tmp_path: Path) -> tribo.GraspObject:
    models.write_box(tmp_path / "cube.obj", 0.02)
    return tribo.GraspObject(tmp_path / "cube.obj", mass=0.1, friction=0.6)


@pytest.fixture
def local() -> Any:
    pytest.importorskip("cffi")
    module = pytest.importorskip("tribo.local")
    try:
        module.library()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return module


def sampled(cube: tribo.GraspObject, count: int) -> list[tribo.GraspPose]:
    return tribo.sample_grasps(
        cube, HAND, count, axis=(1, 0, 0), approach=(0, 0, -1), spread=0.3, opening=0.06
    )


def test_samples_are_free_and_repeatable(local: Any, cube: tribo.GraspObject) -> None:
    poses = sampled(cube, 12)
    assert len(poses) == 12
    assert poses == sampled(cube, 12)
    # the pads meet the cube's sides: their middle is inside of it
    assert all(np.abs(p.position).max() < 0.02 for p in poses)
    with pytest.raises(tribo.InvalidArgumentError, match="axis"):
        tribo.sample_grasps(cube, HAND, 2, axis=(0, 0, 1), approach=(0, 0, 1))


def test_samples_of_convex_parts_lie_on_the_mesh(local: Any) -> None:
    # a plate of 10 mm, whose part is 30 mm thick on one side of it
    corners = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    faces = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    triangles = np.array([t for a, b, c, d in faces for t in ((a, b, c), (a, c, d))]) - 1
    plate, part = (
        meshes.Mesh(corners * (thickness, 0.04, 0.04), triangles) for thickness in (0.01, 0.03)
    )
    cut = meshes.ConvexParts(plate, (part,), protrusion=0.02, gap=0.0, digest="none")
    poses = sampled(tribo.GraspObject(cut, mass=0.1), 8)
    assert len(poses) == 8
    # the pads meet the plate's faces: their middle is in the plate
    assert all(abs(p.position[0] - 0.005) < 0.005 + 1e-9 for p in poses)


def test_evaluate_answers_with_a_table(
    local: Any, client: tribo.Client, cube: tribo.GraspObject
) -> None:
    poses = sampled(cube, 6)
    grasps = tribo.evaluate(cube, HAND, poses, client=client, protocol=PROTOCOL)
    assert [r.name for r in grasps] == [p.name for p in poses]
    assert sum(grasps.counts.values()) == len(grasps) == 6
    # poses that were sampled free of collisions do not collide
    assert "COLLIDED" not in grasps.counts
    assert len(grasps.held) == grasps.counts.get("HELD", 0) > 0
    assert "HELD" in repr(grasps)
    assert grasps[0].verdict.name in repr(grasps[0])
    assert "closing=['close_left', 'close_right']" in repr(grasps.summary.hand)
    pandas = pytest.importorskip("pandas")
    table = grasps.to_dataframe()
    assert isinstance(table, pandas.DataFrame)
    assert list(table.verdict) == [r.verdict.name for r in grasps]
    assert table.loc[0, ["x", "y", "z"]].tolist() == list(poses[0].position)
    assert (table.residual <= 1e-6).all()


def test_a_planner_sees_what_the_closed_hand_leaves_open(
    local: Any, client: tribo.Client, cube: tribo.GraspObject
) -> None:
    # fingers of 10 mm that stop 10 mm before the middle: 10 mm are left between their faces
    stops = tribo.Hand(
        models.HAND.replace(b'range="0 0.05"', b'range="0 0.04"'),
        name="hand.xml",
        closing_actuators=("close_left", "close_right"),
    )
    grasps = tribo.evaluate(cube, stops, sampled(cube, 1), client=client, protocol=PROTOCOL)
    hand = grasps.summary.hand
    assert hand.least_opening == pytest.approx(0.01, abs=0.001)
    assert hand.least_opening == local.HandModel(stops).info.least_opening
    assert "opening=10.0 to 90.0 mm" in repr(hand)


def test_objects_that_do_not_rest_are_warned_of(
    client: tribo.Client, cube: tribo.GraspObject
) -> None:
    pose = tribo.GraspPose((0, 0, 0))
    tilted = dataclasses.replace(cube, orientation=(np.cos(0.2), np.sin(0.2), 0, 0))
    for target, moves in ((cube, False), (tilted, True)):
        grasps = tribo.evaluate(target, HAND, [pose], client=client, protocol=PROTOCOL)
        assert any("does not rest" in w for w in grasps.summary.warnings) == moves


async def test_both_evaluate_the_same(
    local: Any, client: tribo.Client, aio: tribo.aio.Client, cube: tribo.GraspObject
) -> None:
    poses = sampled(cube, 4)
    ours, theirs = await asyncio.gather(
        asyncio.to_thread(tribo.evaluate, cube, HAND, poses, client=client, protocol=PROTOCOL),
        tribo.aio.evaluate(cube, HAND, poses, client=aio, protocol=PROTOCOL),
    )
    assert [r.certificate for r in ours] == [r.certificate for r in theirs]
    assert ours.counts == theirs.counts


def test_arrays_have_names(client: tribo.Client, lift: tribo.Scene) -> None:
    with client.create_session(lift, worlds=3) as session:
        answer = session.step(5, controls=[0.1], bodies=True)
        stage = answer.body("stage")
        assert stage.position.shape == (3, 3)
        lifted = answer.joint("lift")
        assert lifted.q is not None
        np.testing.assert_allclose(stage.position[:, 2], 0.5 + lifted.q[:, 0], atol=1e-12)
        assert answer.joint("box").q is not None
        assert session.state().control("servo").tolist() == [0.1] * 3
        with pytest.raises(KeyError, match=r"no body is called 'nobody': .*stage"):
            answer.body("nobody")
        assert "worst residual" in repr(answer)
        with pytest.raises(ValueError, match="bodies=True"):
            session.step().body("stage")
        # a client that attached to the session finds the names too
        assert client.session(session.id).step(bodies=True).body("box").position.shape == (3, 3)
        pandas = pytest.importorskip("pandas")
        table = answer.to_dataframe()
        assert isinstance(table, pandas.DataFrame)
        assert table["q.lift"].tolist() == lifted.q[:, 0].tolist()
        assert {"u.box.5", "residual", "outcome"} <= set(table.columns)


async def test_names_of_async_sessions(aio: tribo.aio.Client, lift: tribo.Scene) -> None:
    async with await aio.create_session(lift.id) as session:
        answer = await session.step(bodies=True)
        with pytest.raises(ValueError, match=r"await session\.names"):
            answer.body("stage")
        assert "stage" in (await session.names()).bodies
        assert answer.body("stage").position.shape == (1, 3)


class Tensor:
    """An array of another library: memory by DLPack, and nothing of numpy's protocols."""

    def __init__(self, values: Any) -> None:
        self._array = np.array(values, float)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_tensors_come_and_go_by_dlpack(client: tribo.Client, lift: tribo.Scene) -> None:
    with client.create_session(lift, worlds=2) as session:
        session.step(3, controls=Tensor([[0.1], [0.2]]))
        answer = session.state()
        assert answer.controls is not None
        assert answer.controls.tolist() == [[0.1], [0.2]]
        assert answer.q is not None
        given = np.from_dlpack(tribo.to_dlpack(answer.q))
        np.testing.assert_array_equal(given, answer.q)
        writable = given.copy()
        assert tribo.to_dlpack(writable) is writable


class Spec:
    """Like a mujoco.MjSpec: it writes itself, and holds files in memory."""

    modelfiledir = ""
    meshdir = "parts"

    def __init__(self, folder: Path) -> None:
        models.write_box(folder / "box.obj", 0.1)
        self.assets = {"box.obj": (folder / "box.obj").read_bytes()}

    def to_xml(self) -> str:
        return (
            '<mujoco><compiler meshdir="parts"/><asset><mesh name="box" file="box.obj"/></asset>'
            '<worldbody><body name="box"><freejoint/><geom type="mesh" mesh="box" mass="2"/>'
            "</body></worldbody></mujoco>"
        )


def test_specs_and_surfaces_are_sources(local: Any, client: tribo.Client, tmp_path: Path) -> None:
    spec = Spec(tmp_path)
    scene = client.load(spec)
    assert scene.total_mass == pytest.approx(2)
    assert local.Model(spec).sha256 == scene.id
    with pytest.raises(TypeError, match="float"):
        client.load(3.0)  # type: ignore[arg-type]


def test_models_in_process_are_those_of_the_daemon(
    local: Any, client: tribo.Client, lift: tribo.Scene
) -> None:
    model = local.Model(models.LIFT, name="lift.xml")
    assert model.sha256 == lift.id
    assert (model.bodies, model.dofs, model.actuators) == (lift.bodies, lift.dofs, lift.actuators)
    worlds = local.Worlds(model, 3)
    controls = [[0.0], [0.1], [0.2]]
    ours = worlds.step(20, controls=controls, bodies=True, contacts=True)
    with client.create_session(lift, worlds=3) as session:
        theirs = session.step(20, controls=controls, bodies=True, contacts=True)
    for name in ("q", "u", "controls", "bodies"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)
    assert ours.certificates == theirs.certificates
    assert ours.body("stage").position[2, 2] == theirs.body("stage").position[2, 2]
    for one, other in zip(ours.contacts, theirs.contacts):
        for field in ("shapes", "positions", "tangents", "impulses", "statuses", "features"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field), field)


def test_states_in_process_are_independent(local: Any) -> None:
    model = local.Model(models.LIFT, name="lift.xml")
    stepper = local.Stepper(tribo.StepOptions(dt=0.001))
    state = local.State(model)
    state.controls = [0.2]
    stepper.step(state, 10)
    snapshot, copy = state.snapshot(), state.fork()
    stepper.step_batch([state, copy], 10)
    np.testing.assert_array_equal(state.q, copy.q)
    state.restore(snapshot)
    assert state.steps == 10
    assert copy.steps == 20
    assert state.time == pytest.approx(0.010)
    state.set_body_wrench("box", [0, 0, 100, 0, 0, 0])
    assert stepper.step(state, 50).outcome == tribo.Outcome.OK
    assert state.bodies()[model.names.body("box"), 9] > 0  # it flies
    with pytest.raises(tribo.InvalidArgumentError, match="3"):
        state.q = [0.0, 0.0, 0.0]
    # a mask resets some worlds and leaves the others' bytes
    worlds = local.Worlds(model, 4)
    worlds.step(30, controls=[0.3])
    kept = worlds.state().q
    worlds.reset(worlds=[False, True, False, True])
    again = worlds.state().q
    np.testing.assert_array_equal(again[[0, 2]], kept[[0, 2]])
    assert (again[[1, 3], -1] == 0).all()
    with pytest.raises(ValueError, match="worlds has shape"):
        worlds.reset(worlds=[True])


def test_hands_in_process_are_described(local: Any) -> None:
    hand = local.HandModel(HAND)
    assert hand.info.opening == pytest.approx(0.09, abs=0.002)
    assert hand.info.least_opening == pytest.approx(0, abs=0.001)
    assert np.abs(hand.info.axis).argmax() == 0
    with pytest.raises(tribo.NotFoundError, match="nobody"):
        local.HandModel(tribo.Hand(models.HAND, name="hand.xml", closing_actuators=("nobody",)))


async def test_masks_choose_worlds(
    client: tribo.Client, aio: tribo.aio.Client, lift: tribo.Scene
) -> None:
    with client.create_session(lift, worlds=3) as session:
        before = session.step(20, controls=[0.2]).q
        assert before is not None
        session.reset(worlds=[False, True, False])
        after = session.state().q
        assert after is not None
        np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
        assert after[1, -1] == 0
        session.set_state(u=np.full(7, 0.5), worlds=np.array([True, False, False]))
        u = session.state().u
        assert u is not None
        assert (u[0] == 0.5).all()
        assert not (u[2] == 0.5).any()
        with pytest.raises(ValueError, match="one boolean a world"):
            session.reset(worlds=[0, 1])
        attached = aio.session(session.id)
        await attached.reset(worlds=[True, True, True])
        again = (await attached.state()).q
        assert again is not None
        assert again[:, -1].tolist() == [0, 0, 0]
