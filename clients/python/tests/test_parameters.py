"""Friction, masses and gains of single worlds, by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tribo

SCENE = """<mujoco><option timestep="0.002"/><worldbody>
<geom name="floor" type="plane" size="5 5 1" friction="{floor!r}"/>
<body name="box" pos="0.3 0 0.05"><freejoint/>
<inertial pos="0 0 0" mass="{mass!r}" diaginertia="{i0!r} {i1!r} {i2!r}"/>
<geom type="box" size="0.05 0.05 0.05" friction="{box!r}"/></body>
<body name="finger" pos="0 0 0.05"><joint name="push" type="slide" axis="1 0 0"/>
<geom type="capsule" size="0.02 0.02" friction="0.1" mass="0.5"/></body>
</worldbody><actuator>
<general name="push" joint="push" biastype="affine" gainprm="{kp!r}" biasprm="0 {nkp!r} {nkv!r}"/>
</actuator></mujoco>"""


def scene(
    floor: float = 0.5, box: float = 0.2, mass: float = 1.0, kp: float = 40.0, kv: float = 4.0
) -> bytes:
    """The scene written with these values."""
    i0, i1, i2 = (i * mass for i in (2e-3, 3e-3, 4e-3))
    text = SCENE.format(
        floor=floor, box=box, mass=mass, i0=i0, i1=i1, i2=i2, kp=kp, nkp=-kp, nkv=-kv
    )
    return text.encode()


def test_each_world_is_a_session_of_a_scene_written_with_its_values(client: tribo.Client) -> None:
    values = [
        {},
        {"floor": 0.1, "box": 0.05},
        {"mass": 2.7},
        {"kp": 93.5, "kv": 1.3},
        {"floor": 0.9, "box": 1.1, "mass": 0.37, "kp": 71.0},
    ]

    def column(name: str, default: float) -> list[float]:
        return [v.get(name, default) for v in values]

    plain = client.load(scene(), name="push.xml")
    with client.create_session(plain, worlds=len(values)) as session:
        session.set_parameters(
            friction={"floor": column("floor", 0.5), "box": column("box", 0.2)},
            mass={"box": column("mass", 1.0)},
            kp={"push": column("kp", 40.0)},
            kv={"push": column("kv", 4.0)},
        )
        told = session.parameters()
        np.testing.assert_array_equal(told.friction_of("box")[:, 0], column("box", 0.2))
        np.testing.assert_array_equal(told.mass_of("box"), column("mass", 1.0))
        np.testing.assert_array_equal(told.kp_of("push"), column("kp", 40.0))
        np.testing.assert_array_equal(told.kv_of("push"), column("kv", 4.0))
        answer = session.step(400, controls=[0.6])
        snapshot = session.snapshot()
        after = session.step(100)
        session.restore(snapshot.snapshot_id)
        again = session.step(100)
        (fork,) = session.fork()
        with fork:
            forked = fork.step(50)
            here = session.step(50)
            np.testing.assert_array_equal(fork.parameters().mass, told.mass)
    assert answer.q is not None
    assert answer.u is not None
    for a, b in ((after, again), (forked, here)):
        assert a.q is not None
        assert b.q is not None
        assert a.q.tobytes() == b.q.tobytes()
    for world, v in enumerate(values):
        with client.create_session(client.load(scene(**v), name="push.xml")) as alone:
            alone_answer = alone.step(400, controls=[0.6])
        assert alone_answer.q is not None
        assert alone_answer.u is not None
        assert answer.q[world].tobytes() == alone_answer.q[0].tobytes(), v
        assert answer.u[world].tobytes() == alone_answer.u[0].tobytes(), v


def test_masks_resets_and_the_way_back(client: tribo.Client) -> None:
    with client.create_session(client.load(scene(), name="push.xml"), worlds=3) as session:
        session.set_parameters(mass={"box": 2.0}, worlds=[False, True, True])
        session.set_parameters(friction={"floor": 0.9}, worlds=[True, True, False])
        session.reset()
        told = session.parameters()
        np.testing.assert_array_equal(told.mass_of("box"), [1, 2, 2])
        np.testing.assert_array_equal(told.friction_of("floor")[:, 0], [0.9, 0.9, 0.5])
        session.set_parameters(from_scene=True, worlds=[False, True, False], kv={"push": 9})
        told = session.parameters()
        np.testing.assert_array_equal(told.mass_of("box"), [1, 1, 2])
        np.testing.assert_array_equal(told.friction_of("floor")[:, 0], [0.9, 0.5, 0.5])
        np.testing.assert_array_equal(told.kv_of("push"), [4, 9, 4])
        # whole arrays are taken as well
        session.set_parameters(friction=np.full((3, 3), 0.3), bias=[[0, -1, -2]])
        np.testing.assert_array_equal(session.parameters().friction, np.full((3, 3), 0.3))
        np.testing.assert_array_equal(session.parameters().bias[1], [[0, -1, -2]])


def test_wrong_parameters_change_nothing(client: tribo.Client) -> None:
    with client.create_session(client.load(scene(), name="push.xml"), worlds=2) as session:
        before = session.parameters()
        with pytest.raises(tribo.InvalidArgumentError, match=r"'box'.*mass is -1"):
            session.set_parameters(mass={"box": [2.0, -1.0]})
        with pytest.raises(KeyError, match="no body or shape is called"):
            session.set_parameters(friction={"mug": 1})
        with pytest.raises(tribo.InvalidArgumentError, match=r"friction\.values"):
            session.set_parameters(friction=[1.0, 2.0])
        with pytest.raises(ValueError, match="expected 3 numbers"):
            session.set_parameters(gain={"push": 3.0})
        with pytest.raises(ValueError, match="kp and kv are parts"):
            session.set_parameters(gain={"push": [1, 0, 0]}, kp={"push": 3.0})
        after = session.parameters()
        np.testing.assert_array_equal(before.mass, after.mass)
        np.testing.assert_array_equal(before.friction, after.friction)


async def test_the_asyncio_client_sets_them_too(aio: tribo.aio.Client) -> None:
    loaded = await aio.load(scene(), name="push.xml")
    async with await aio.create_session(loaded, worlds=2) as session:
        await session.set_parameters(mass={"box": [1.5, 2.5]}, kp={"push": 10})
        told = await session.parameters()
        np.testing.assert_array_equal(told.mass_of("box"), [1.5, 2.5])
        np.testing.assert_array_equal(told.kp_of("push"), [10, 10])


def test_a_restart_of_the_daemon_keeps_them(client: tribo.Client, tmp_path: Path) -> None:
    # `client` skips the test where there is no daemon
    assert client.server_info().version
    with tribo.Daemon(data=tmp_path) as daemon, daemon.connect() as first:
        session = first.create_session(first.load(scene(), name="push.xml"), worlds=2)
        session.set_parameters(mass={"box": [1.5, 2.5]}, friction={"floor": [0.3, 0.9]})
        session.step(100, controls=[0.6])
        kept = session.snapshot()
        expected = session.step(50)
        session.restore(kept.snapshot_id)
        name = session.id
    with tribo.Daemon(data=tmp_path) as daemon, daemon.connect() as second:
        session = second.session(name)
        np.testing.assert_array_equal(session.parameters().mass_of("box"), [1.5, 2.5])
        answer = session.step(50)
        assert answer.q is not None
        assert expected.q is not None
        assert answer.q.tobytes() == expected.q.tobytes()
        session.delete()
