"""Friction, masses and gains of single worlds, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


JOINTS = """
<mujoco><option timestep='0.002'/><worldbody>
 <geom name='floor' type='plane' size='5 5 1'/>
 <body name='arm' pos='0 0 1'>
  <joint name='elbow' axis='0 1 0' damping='{damping}' frictionloss='{dry}'/>
  <inertial pos='0.2 0 0' mass='1' diaginertia='0.01 0.01 0.01'/>
  <geom name='rod' type='capsule' size='0.02 0.1' contype='0' conaffinity='0'/></body>
 <body name='box' pos='1 0 0.2'><freejoint/>
  <inertial pos='0 0 0' mass='1' diaginertia='.01 .01 .01'/>
  <geom name='box' type='box' size='0.1 0.1 {height}'/></body>
</worldbody></mujoco>"""


def test_joints_and_sizes_are_those_of_a_scene_written_with_them(client: tribo.Client) -> None:
    values = [(0.1, 0.0, 0.1), (2.0, 0.0, 0.1), (0.1, 0.5, 0.1), (0.1, 0.0, 0.15)]
    damping, dry, heights = (np.array(column) for column in zip(*values))
    plain = client.load(JOINTS.format(damping=0.1, dry=0, height=0.1).encode(), name="arm.xml")
    sizes = np.stack([np.full(4, 0.1), np.full(4, 0.1), heights], axis=1)
    with client.create_session(plain, worlds=4) as session:
        session.set_parameters(
            damping={"elbow": damping}, dry_friction={"elbow": dry}, size={"box": sizes}
        )
        told = session.parameters()
        np.testing.assert_array_equal(told.damping_of("elbow"), damping)
        np.testing.assert_array_equal(told.dry_friction_of("elbow"), dry)
        np.testing.assert_array_equal(told.size_of("box")[:, 0], sizes)
        answer = session.step(500)
        with pytest.raises(tribo.InvalidArgumentError, match="but only spheres"):
            session.set_parameters(size={"floor": [1, 1, 1]})
    assert answer.q is not None
    # the box rests on half its height
    np.testing.assert_allclose(answer.q[:, 3], heights, atol=1e-4)
    for world, (d, f, h) in enumerate(values):
        written = client.load(JOINTS.format(damping=d, dry=f, height=h).encode(), name="arm.xml")
        with client.create_session(written) as alone:
            found = alone.step(500).q
        assert found is not None
        assert answer.q[world].tobytes() == found[0].tobytes(), (d, f, h)


def test_worlds_in_the_process_take_joints_and_sizes() -> None:
    pytest.importorskip("cffi")
    local = pytest.importorskip("tribo.local")
    try:
        local.library()
    except FileNotFoundError as error:
        pytest.skip(str(error))

    def worlds(damping: float, dry: float, height: float, count: int = 1) -> Any:
        text = JOINTS.format(damping=damping, dry=dry, height=height)
        return local.Worlds(local.Model(text.encode(), name="arm.xml"), count)

    made = worlds(0.1, 0, 0.1, 2)
    made.set_parameters(
        damping={"elbow": [0.1, 2]}, dry_friction={"elbow": 0.3}, size={"box": [0.1, 0.1, 0.15]}
    )
    assert made.states[1].parameters()["damping"].tolist() == [2, 0]
    found = made.step(300).q
    for world, damping in enumerate((0.1, 2)):
        alone = worlds(damping, 0.3, 0.15).step(300).q
        assert found[world].tobytes() == alone[0].tobytes()
