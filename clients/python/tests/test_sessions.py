"""Sessions: steps, streams, states, snapshots, forks, leases."""

from __future__ import annotations

import queue
import threading
import time

import numpy as np
import pytest

import tribo
from tribo.v1 import simulation_pb2


def same(a: tribo.StepAnswer, b: tribo.StepAnswer) -> bool:
    """Whether two answers hold the same bytes of coordinates and velocities."""
    assert a.q is not None
    assert a.u is not None
    assert b.q is not None
    assert b.u is not None
    return a.q.tobytes() == b.q.tobytes() and a.u.tobytes() == b.u.tobytes()


def test_steps_move_worlds_and_certify(client: tribo.Client, lift: tribo.Scene) -> None:
    with client.create_session(lift, worlds=3, label="steps") as session:
        answer = session.step(100, controls=[0.2])
        assert answer.q is not None
        assert answer.u is not None
        assert answer.q.shape == (3, 8)
        assert answer.u.shape == (3, 7)
        assert answer.steps == 100
        assert answer.time == pytest.approx(0.2)
        assert len(answer.certificates) == 3
        for certificate in answer.certificates:
            assert certificate.outcome == tribo.Outcome.OK
            assert certificate.residual <= 1e-6
            assert certificate.solver
        assert answer.compute_seconds > 0
        # free fall in implicit Euler for 0.1 s, and then the floor; the servo has gone its way
        settled = session.step(1000, bodies=True)
        assert settled.q is not None
        assert settled.bodies is not None
        np.testing.assert_allclose(settled.q[:, 2], 0.1, atol=1e-6)
        gravity_sag = 2 * 9.81 / 5000
        np.testing.assert_allclose(settled.q[:, 7], 0.2 - gravity_sag, atol=1e-5)
        assert settled.bodies.shape == (3, 3, 13)
        np.testing.assert_array_equal(settled.bodies[:, 1, :3], settled.q[:, :3])


def test_controls_and_forces_of_each_world(client: tribo.Client, lift: tribo.Scene) -> None:
    with client.create_session(lift, worlds=2) as session:
        controls = np.array([[0.1], [0.3]])
        forces = np.zeros((2, 7))
        forces[1, 0] = 30.0
        answer = session.step(300, controls=controls, forces=forces)
        assert answer.q is not None
        assert answer.q[0, 7] < 0.15 < answer.q[1, 7]
        # 30 N push the box of 1 kg along x, no force leaves it
        assert abs(answer.q[0, 0]) < 1e-9
        assert answer.q[1, 0] > 0.1
        state = session.state()
        assert state.controls is not None
        np.testing.assert_array_equal(state.controls, controls)


def test_single_precision_halves_the_bytes(client: tribo.Client, ball: tribo.Scene) -> None:
    with client.create_session(ball, worlds=4) as session:
        answer = session.step(single=True)
        assert answer.q is not None
        assert answer.q.dtype == np.float32
        assert answer.q.shape == (4, 7)


def test_single_arithmetic_and_other_options(client: tribo.Client, ball: tribo.Scene) -> None:
    options = tribo.StepOptions(
        dt=0.001,
        scheme="moreau",
        precision="single",
        solve=tribo.SolveOptions(solver="jor", tolerance=1e-4),
        report_energy=True,
    )
    with client.create_session(ball, options=options) as session:
        answer = session.step(10)
        assert answer.time == pytest.approx(0.01)
        assert answer.certificates[0].solver == "jor"
        assert answer.certificates[0].energy == pytest.approx(0.981, rel=1e-3)


def test_nothing_comes_that_was_not_asked_for(client: tribo.Client, ball: tribo.Scene) -> None:
    with client.create_session(ball) as session:
        answer = session.step(state=False)
        assert answer.q is None
        assert answer.u is None
        assert answer.bodies is None
        assert answer.contacts == []
        assert answer.steps == 1


def test_arrays_of_answers_are_views(client: tribo.Client, ball: tribo.Scene) -> None:
    with client.create_session(ball, worlds=2) as session:
        q = session.step().q
        assert q is not None
        assert not q.flags.owndata
        assert not q.flags.writeable


def test_contacts_carry_weight(client: tribo.Client, ball: tribo.Scene) -> None:
    with client.create_session(ball) as session:
        answer = session.step(10, contacts=True)
        (contacts,) = answer.contacts
        assert len(contacts) == 1
        # weight times dt
        assert contacts.impulses[0, 0] == pytest.approx(9.81 * ball.dt, rel=1e-6)
        np.testing.assert_allclose(contacts.normals, [[0, 0, 1]])
        (again,) = session.contacts()
        np.testing.assert_array_equal(again.impulses, contacts.impulses)
        assert len(session.export_problem()) > 100


def test_stream_keeps_several_steps_on_the_way(client: tribo.Client, lift: tribo.Scene) -> None:
    with client.create_session(lift) as session, client.create_session(lift) as other:
        controls = np.linspace(0, 0.3, 200)
        with session.stream() as stream:
            tags = [stream.send(2, controls=[c]) for c in controls]
            answers = [stream.receive() for _ in tags]
            assert [answer.tag for answer in answers] == tags
            assert [answer.steps for answer in answers] == list(range(2, 402, 2))
            last = stream.step()
        for c in controls:
            other.step(2, controls=[c], state=False)
        assert same(last, other.step())
        # the session goes on after its stream
        assert session.step().steps == 402


def test_large_answers_of_a_stream_are_put_together(binary: str) -> None:
    from models import LIFT

    small = tribo.Daemon(binary=binary, environment={"TRIBOD_LIMITS_CHUNK_BYTES": "4096"})
    with small as daemon, daemon.connect(timeout=60) as client:
        scene = client.load(LIFT)
        with client.create_session(scene, worlds=50) as session:
            controls = np.linspace(0, 0.3, 50)[:, None]
            with session.stream(contacts=True, bodies=True) as stream:
                streamed = stream.step(50, controls=controls)
                again = stream.step()
            assert streamed.q is not None
            assert streamed.q.shape == (50, 8)
            assert streamed.bodies is not None
            assert streamed.bodies.shape == (50, 3, 13)
            assert len(streamed.certificates) == len(streamed.contacts) == 50
            assert again.steps == 51
            assert same(again, session.state())
            watched = next(session.watch(contacts=True))
            assert list(watched.state.q.shape) == [50, 8]
            assert len(watched.contacts) == 50


def test_a_stream_that_fails_raises(client: tribo.Client, ball: tribo.Scene) -> None:
    with client.create_session(ball) as session:
        stream = session.stream()
        stream.send(controls=[1.0, 2.0])
        with pytest.raises(tribo.InvalidArgumentError) as raised:
            stream.receive()
        assert "controls" in raised.value.field
        with pytest.raises(tribo.TriboError):
            stream.receive()
        stream.cancel()
        assert session.step().steps == 1


def test_the_first_error_of_a_stream_is_seen(client: tribo.Client, ball: tribo.Scene) -> None:
    def break_off(session: tribo.Session) -> None:
        with session.stream() as stream:
            stream.step()
            raise RuntimeError("mine")

    with client.create_session(ball) as session, pytest.raises(RuntimeError, match="mine"):
        break_off(session)


def test_a_second_client_watches(
    daemon: tribo.Daemon, client: tribo.Client, ball: tribo.Scene
) -> None:
    session = client.create_session(ball)
    seen: queue.Queue[simulation_pb2.WatchResponse] = queue.Queue()

    def watch() -> None:
        with daemon.connect() as other:
            for update in other.session(session.id).watch(minimum_interval=0.001):
                seen.put(update)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    assert seen.get(timeout=30).state.steps == 0
    session.step(5)
    deadline = time.monotonic() + 30
    while seen.get(timeout=30).state.steps < 5:
        assert time.monotonic() < deadline
    session.delete()
    while (last := seen.get(timeout=30)).event == simulation_pb2.SESSION_EVENT_UNSPECIFIED:
        assert time.monotonic() < deadline
    assert last.event == simulation_pb2.SESSION_EVENT_DELETED
    thread.join(30)
    assert not thread.is_alive()


def test_a_watcher_that_stops_is_let_go(client: tribo.Client, ball: tribo.Scene) -> None:
    with client.create_session(ball) as session:
        for update in session.watch():
            assert list(update.state.q.shape) == [1, 7]
            break
        assert session.step().steps == 1


@pytest.mark.parametrize("kind", ["durable", "transient", "data"])
def test_snapshots_bring_the_same_future_back(
    client: tribo.Client, lift: tribo.Scene, kind: str
) -> None:
    with client.create_session(lift, worlds=2) as session:
        session.step(60, controls=[0.1])
        kept = session.snapshot("here", transient=kind == "transient", data=kind == "data")
        assert len(kept.snapshot_id) == 32
        assert kept.size > 0
        first = session.step(100)
        session.restore(list(kept.data) if kind == "data" else kept.snapshot_id)
        assert session.state().steps == 60
        assert same(session.step(100), first)


def test_forks_go_their_own_ways(client: tribo.Client, lift: tribo.Scene) -> None:
    with client.create_session(lift) as session:
        session.step(60)
        forks = session.fork(3)
        assert len({fork.id for fork in forks}) == 3
        ends = [fork.step(100, controls=[c]) for fork, c in zip(forks, (0.0, 0.0, 0.3))]
        assert same(ends[0], ends[1])
        assert not same(ends[0], ends[2])
        assert same(session.step(100, controls=[0.0]), ends[0])
        for fork in forks:
            fork.delete()


def test_reset_and_keyframes(client: tribo.Client, lift: tribo.Scene) -> None:
    with client.create_session(lift, keyframe=0) as session:
        high = session.state().q
        assert high is not None
        assert high[0, [2, 7]].tolist() == [1.0, 0.1]
        session.step(10)
        session.reset()
        reference = session.state().q
        assert reference is not None
        assert reference[0, [2, 7]].tolist() == [0.15, 0.0]
        session.reset(keyframe=0)
        again = session.state().q
        assert again is not None
        np.testing.assert_array_equal(again, high)


def test_states_can_be_set(client: tribo.Client, lift: tribo.Scene) -> None:
    with client.create_session(lift, worlds=2) as session:
        q = np.tile([0, 0, 0.5, 1, 0, 0, 0, 0.2], (2, 1))
        q[1, 2] = 0.7
        session.set_state(q=q, u=np.zeros(7), controls=[0.2])
        state = session.state()
        assert state.q is not None
        np.testing.assert_array_equal(state.q, q)
        assert state.controls is not None
        np.testing.assert_array_equal(state.controls, [[0.2], [0.2]])


def test_sessions_are_listed_and_leased(client: tribo.Client, ball: tribo.Scene) -> None:
    with client.create_session(ball, label="listed", ttl=30) as session:
        before = {info.session_id: info for info in client.sessions()}[session.id]
        assert (before.label, before.worlds, before.scene_id) == ("listed", 1, ball.id)
        assert before.status == simulation_pb2.SESSION_STATUS_ACTIVE
        time.sleep(0.05)
        session.heartbeat()
        after = {info.session_id: info for info in client.sessions()}[session.id]
        assert after.expire_time_us > before.expire_time_us
        # any call renews it, also of another handle
        client.session(session.id).step()
    with pytest.raises(tribo.NotFoundError):
        session.step()


def test_an_expired_lease_ends_the_session(client: tribo.Client, ball: tribo.Scene) -> None:
    session = client.create_session(ball, ttl=1.0)
    events = [update.event for update in session.watch(state=False)]
    assert events[-1] == simulation_pb2.SESSION_EVENT_EXPIRED
    with pytest.raises(tribo.NotFoundError):
        session.state()


def test_sessions_outlive_the_server(binary: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    from models import LIFT

    data = tmp_path_factory.mktemp("data")
    with tribo.Daemon(binary=binary, data=data) as daemon, daemon.connect(timeout=60) as client:
        session = client.create_session(client.load(LIFT))
        session.step(60, controls=[0.1])
        kept = session.snapshot()
        expected = session.step(100)
        session.restore(kept.snapshot_id)
        daemon.kill()
    with tribo.Daemon(binary=binary, data=data) as daemon, daemon.connect(timeout=60) as client:
        again = client.session(session.id)
        again.restore(kept.snapshot_id)
        assert same(again.step(100), expected)


def test_sensors_by_name(client: tribo.Client) -> None:
    text = b"""<mujoco><worldbody><geom type="plane" size="1 1 .1"/><body name="b" pos="0 0 .1">
        <freejoint/><geom type="sphere" size=".1" mass="2"/><site name="s" size=".11"/></body>
        </worldbody><sensor><touch name="touch" site="s"/><framepos name="place" objtype="xbody"
        objname="b"/><accelerometer name="felt" site="s"/></sensor></mujoco>"""
    with client.create_session(client.load(text, name="s.xml"), worlds=3) as session:
        answer = session.step(20, sensors=True)
        assert answer.sensors is not None
        assert answer.sensors.shape == (3, 7)
        assert answer.sensor("touch")[:, 0] == pytest.approx([2 * 9.81] * 3, rel=1e-6)
        assert answer.sensor("felt")[1] == pytest.approx([0, 0, 9.81], abs=1e-5)
        assert session.state(sensors=True).sensor("place")[2] == pytest.approx(
            [0, 0, 0.1], abs=1e-6
        )
        with pytest.raises(ValueError, match="sensors=True"):
            session.step().sensor("touch")
        with pytest.raises(KeyError, match="no sensor is called 'none'"):
            answer.sensor("none")


def test_a_wrench_per_world_holds_a_body_against_gravity(client: tribo.Client) -> None:
    scene = client.load(
        b'<mujoco><worldbody><body><freejoint/><geom size="0.1" mass="2"/></body></worldbody>'
        b"</mujoco>",
        name="ball.xml",
    )
    wrenches = np.zeros((2, 2, 6))
    wrenches[1, 1, 2] = 2 * 9.81
    with client.create_session(scene, worlds=2) as session:
        answer = session.step(100, wrenches=wrenches)
    assert answer.q is not None
    assert answer.q[0, 2] < -0.1
    assert abs(answer.q[1, 2]) < 1e-12
