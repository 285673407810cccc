"""Uploads: formats, meshes, includes, packages, and the description of a scene."""

from __future__ import annotations

from pathlib import Path

import models
import pytest

import tribo


def test_the_server_tells_about_itself(client: tribo.Client) -> None:
    info = client.server_info()
    assert info.version
    assert [device.name for device in info.devices][:1] == ["cpu"]
    assert {"sor", "jor"} <= {solver.name for solver in info.solvers}
    assert info.limits.message_bytes > 0
    assert not info.draining


def test_a_scene_tells_names_and_masses(client: tribo.Client, lift: tribo.Scene) -> None:
    assert (lift.bodies, lift.coordinates, lift.dofs, lift.actuators) == (3, 8, 7, 1)
    assert lift.total_mass == pytest.approx(3.0)
    told = client.describe(lift)
    assert [body.name for body in told.bodies] == ["world", "box", "stage"]
    assert [joint.name for joint in told.joints] == ["box", "lift"]
    assert (list(told.actuators), list(told.keyframes)) == (["servo"], ["high"])
    assert client.describe(lift.id) == told


def test_the_same_model_gives_the_same_scene(client: tribo.Client, ball: tribo.Scene) -> None:
    assert client.load(models.BALL, name="again.xml").id == ball.id
    assert ball.id in {scene.scene_id for scene in client.scenes()}
    assert "again.xml" in {asset.name for asset in client.assets()} | {"again.xml"}


def test_mjcf_comes_with_meshes_and_includes(client: tribo.Client, tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    (tmp_path / "parts").mkdir()
    models.write_box(tmp_path / "meshes" / "cube.obj", 0.05)
    (tmp_path / "parts" / "body.xml").write_text(
        '<mujocoinclude><worldbody><body name="cube" pos="0 0 1"><freejoint/>'
        '<geom type="mesh" mesh="cube" density="1000"/></body></worldbody></mujocoinclude>'
    )
    (tmp_path / "parts" / "assets.xml").write_text(
        '<mujocoinclude><asset><mesh name="cube" file="cube.obj"/></asset></mujocoinclude>'
    )
    main = tmp_path / "scene.xml"
    main.write_text(
        '<mujoco><compiler meshdir="meshes"/><include file="parts/assets.xml"/>'
        '<include file="parts/body.xml"/></mujoco>'
    )
    scene = client.load(main)
    assert scene.total_mass == pytest.approx(1.0, rel=1e-6)


def test_urdf_comes_with_its_packages(client: tribo.Client, tmp_path: Path) -> None:
    (tmp_path / "arm" / "meshes").mkdir(parents=True)
    (tmp_path / "arm" / "urdf").mkdir()
    models.write_box(tmp_path / "arm" / "meshes" / "cube.obj", 0.05)
    main = tmp_path / "arm" / "urdf" / "arm.urdf"
    main.write_text(
        '<robot name="arm"><link name="base"><inertial><mass value="2"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<collision><geometry><mesh filename="package://arm/meshes/cube.obj"/></geometry>'
        "</collision></link></robot>"
    )
    fixed = client.load(main)
    free = client.load(main, floating_base=True)
    assert (fixed.dofs, free.dofs) == (0, 6)
    assert free.total_mass == pytest.approx(2.0)


def test_urdf_comes_with_meshes_as_mujoco_finds_them(client: tribo.Client, tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    models.write_box(tmp_path / "meshes" / "cube.obj", 0.05)
    main = tmp_path / "arm.urdf"
    main.write_text(
        '<?xml version="0.0"?>\n<robot name="arm"><mujoco><compiler meshdir="meshes"/></mujoco>'
        '<link name="base"><collision><geometry><mesh filename="package://gone/cube.obj"/></geometry>'
        "</collision><wheel/></link></robot>\nleft over"
    )
    scene = client.load(main, floating_base=True)
    assert scene.total_mass == pytest.approx(1.0, rel=1e-6)
    assert any("arm.urdf:2" in warning and "<wheel>" in warning for warning in scene.warnings)


OVERLAPPING = b"""<mujoco model="overlapping"><worldbody><body name="base">
<geom name="base" type="sphere" size="0.1"/>
<body name="link"><joint axis="0 0 1"/><geom name="link" type="sphere" size="0.1"/></body>
</body></worldbody></mujoco>"""


def test_overlaps_are_listed_left_out_or_refused(client: tribo.Client) -> None:
    kept = client.load(OVERLAPPING, name="model.xml")
    (pair,) = kept.overlaps
    assert (pair.shapes, pair.bodies) == (("base", "link"), ("base", "link"))
    assert [pair.depth, pair.least_depth] == pytest.approx([0.2, 0.2])
    assert (pair.joints, pair.linked, pair.persists) == (1, True, True)
    assert any("overlap by 200 mm" in warning for warning in kept.warnings)
    apart = client.load(OVERLAPPING, name="model.xml", overlaps="ignore")
    assert apart.id != kept.id
    assert apart.overlaps == []
    with pytest.raises(tribo.FailedPreconditionError, match="'base' of 'base'"):
        client.load(OVERLAPPING, name="model.xml", overlaps="error")
    with pytest.raises(ValueError, match="overlaps"):
        client.load(OVERLAPPING, name="model.xml", overlaps="perhaps")
    with pytest.raises(tribo.NotFoundError, match="no keyframe 'far'"):
        client.load(OVERLAPPING, name="model.xml", overlap_keyframe="far")


def test_inertias_are_balanced_on_request(client: tribo.Client) -> None:
    urdf = (
        b'<robot name="r"><link name="a"><inertial><mass value="1"/>'
        b'<inertia ixx="1" iyy="1" izz="4"/></inertial></link></robot>'
    )
    with pytest.raises(tribo.InvalidArgumentError, match="balance"):
        client.load(urdf, name="r.urdf", floating_base=True)
    scene = client.load(urdf, name="r.urdf", floating_base=True, balance_inertia=True)
    body = client.describe(scene).bodies[1]
    assert list(body.inertia) == pytest.approx([2, 2, 2, 0, 0, 0])


def test_a_mesh_is_a_body(client: tribo.Client, tmp_path: Path) -> None:
    mesh = tmp_path / "cube.obj"
    models.write_box(mesh, 0.05)
    assert client.load(mesh, density=500).total_mass == pytest.approx(0.5, rel=1e-6)
    assert client.load(str(mesh)).total_mass == pytest.approx(1.0, rel=1e-6)
    # bytes need a name: its extension gives the format
    scene = client.load(mesh.read_bytes(), name="cube.obj")
    assert scene.total_mass == pytest.approx(1.0, rel=1e-6)


def test_a_missing_mesh_is_named(client: tribo.Client, tmp_path: Path) -> None:
    main = tmp_path / "scene.xml"
    main.write_text('<mujoco><asset><mesh name="a" file="nowhere.obj"/></asset></mujoco>')
    with pytest.raises(tribo.TriboError, match=r"nowhere\.obj") as raised:
        client.load(main)
    assert isinstance(raised.value, (tribo.InvalidArgumentError, tribo.NotFoundError))


def test_a_broken_file_is_named_with_its_line(client: tribo.Client) -> None:
    with pytest.raises(tribo.InvalidArgumentError, match="2"):
        client.load(b"<mujoco>\n<worldbody></mujoco>", name="broken.xml")


def test_large_files_come_in_pieces(client: tribo.Client) -> None:
    data = b"# a comment\n" * 100_000
    digest = client.put_asset("large.obj", data)
    assert digest == client.put_asset("large.obj", data)
    assert {asset.sha256: asset.size for asset in client.assets()}[digest] == len(data)
