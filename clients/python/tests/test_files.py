"""Files that a model refers to: meshes and includes of MJCF, packages of URDF."""

from pathlib import Path

from tribo.files import collect


def test_meshes_and_includes_of_mjcf_are_found(tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    (tmp_path / "parts").mkdir()
    for name in ("a.stl", "b.obj"):
        (tmp_path / "meshes" / name).write_bytes(name.encode())
    (tmp_path / "parts" / "finger.xml").write_text(
        '<mujocoinclude><asset><mesh file="b.obj"/></asset></mujocoinclude>'
    )
    main = tmp_path / "hand.xml"
    main.write_text(
        '<mujoco><compiler meshdir="meshes"/><include file="parts/finger.xml"/>'
        '<asset><mesh name="a" file="a.stl"/><mesh file="missing.stl"/></asset></mujoco>'
    )
    found = collect(main)
    assert found["meshes/a.stl"] == tmp_path / "meshes" / "a.stl"
    assert found["parts/finger.xml"] == tmp_path / "parts" / "finger.xml"
    assert found["meshes/b.obj"] == tmp_path / "meshes" / "b.obj"
    assert not any("missing" in name for name in found)


def test_packages_of_urdf_are_found(tmp_path: Path) -> None:
    package = tmp_path / "arm"
    (package / "meshes").mkdir(parents=True)
    (package / "urdf").mkdir()
    (package / "meshes" / "link.stl").write_bytes(b"x")
    main = package / "urdf" / "arm.urdf"
    main.write_text(
        '<robot name="arm"><link name="a"><collision><geometry>'
        '<mesh filename="package://arm/meshes/link.stl"/></geometry></collision></link></robot>'
    )
    found = collect(main)
    assert found == {"package://arm/meshes/link.stl": package / "meshes" / "link.stl"}


def test_a_mesh_has_no_references(tmp_path: Path) -> None:
    mesh = tmp_path / "mug.obj"
    mesh.write_text("v 0 0 0\n")
    assert collect(mesh) == {}
