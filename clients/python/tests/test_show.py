"""Scenes in a page: geometry of shapes, and viser's own scene of a session."""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import models
import numpy as np
import pytest

import tribo
from tribo.meshes import Mesh, repair
from tribo.show import triangles
from tribo.v1 import simulation_pb2 as wire

VOLUMES: dict[Any, tuple[list[float], float]] = {
    wire.SHAPE_TYPE_SPHERE: ([0.1], 4 / 3 * np.pi * 0.1**3),
    wire.SHAPE_TYPE_ELLIPSOID: ([0.1, 0.2, 0.3], 4 / 3 * np.pi * 0.006),
    wire.SHAPE_TYPE_BOX: ([0.1, 0.2, 0.3], 8 * 0.006),
    wire.SHAPE_TYPE_CYLINDER: ([0.1, 0.3], np.pi * 0.01 * 0.6),
    wire.SHAPE_TYPE_CAPSULE: ([0.1, 0.3], np.pi * 0.01 * 0.6 + 4 / 3 * np.pi * 0.1**3),
}


@pytest.mark.parametrize("kind", VOLUMES)
def test_shapes_have_triangles_outwards(kind: Any) -> None:
    size, volume = VOLUMES[kind]
    vertices, faces = triangles(SimpleNamespace(type=kind, size=size, name="shape"))
    _, report = repair(Mesh(vertices, faces))
    assert not report.holes
    assert not report.flipped
    assert Mesh(vertices, faces).volume == pytest.approx(volume, rel=0.05)


def test_a_trial_is_replayed(client: tribo.Client, tmp_path: Path) -> None:
    pytest.importorskip("viser")
    models.write_box(tmp_path / "cube.obj", 0.02)
    cube = tribo.GraspObject(tmp_path / "cube.obj", mass=0.1, friction=0.6)
    hand = tribo.Hand(models.HAND, name="hand.xml", closing_actuators=("close_left", "close_right"))
    poses = [tribo.GraspPose((0, 0, 0.006), force=10)]
    keep = tribo.KeepTrajectories([0], interval=0.1)
    job = client.submit_grasps(cube, hand, poses, trajectories=keep)
    while client.grasp_job(job.id).grasps_done < 1:
        time.sleep(0.05)
    trial = client.grasp_trajectory(job.id, 0)
    with tribo.replay(client, trial, port=0) as page:
        page.play(speed=100)
        for frame, pose in zip(page._frames, trial.poses[-1]):
            assert frame.position == pytest.approx(pose[:3])
        assert page.slider.value == len(trial) - 1
        page.show(0)
        assert page._frames[-1].position == pytest.approx(trial.poses[0, -1, :3])


def test_a_session_is_shown(client: tribo.Client, lift: tribo.Scene) -> None:
    pytest.importorskip("viser")
    with (
        client.create_session(lift, worlds=2) as session,
        tribo.show(session, world=1, port=0) as viewer,
    ):
        session.set_state(controls=[[0.0], [0.3]])
        answer = session.step(300, bodies=True, contacts=True)
        viewer.update(answer)
        stage = next(f for f in viewer._frames if "stage" in f.name)
        assert stage.position[2] == pytest.approx(answer.body("stage").position[1, 2])
        assert stage.position[2] > 0.75
        assert len(viewer._contacts.points) == len(answer.contacts[1]) > 0
        page = urllib.request.urlopen(viewer.url, timeout=20).read()
        assert b"<html" in page.lower()
        with pytest.raises(ValueError, match="bodies=True"):
            viewer.update(session.step())
