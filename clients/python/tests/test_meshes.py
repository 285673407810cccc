"""Meshes of scans: repaired, or refused with the place; convex parts with bounds."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import models
import numpy as np
import pytest

import tribo
from tribo import meshes


def cylinder(n: int, rows: int, radius: float = 0.03, height: float = 0.1) -> meshes.Mesh:
    """Closed, 2 n (rows + 1) triangles."""
    angle = 2 * np.pi * np.arange(n) / n
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    z = np.linspace(0, height, rows + 1)
    points = [np.column_stack([ring, np.full(n, h)]) for h in z]
    vertices = np.concatenate([*points, [[0, 0, 0], [0, 0, height]]])
    k, right = np.arange(n), (np.arange(n) + 1) % n
    faces = []
    for row in range(rows):
        low, high = row * n, (row + 1) * n
        faces.append(np.stack([low + k, low + right, high + right], axis=1))
        faces.append(np.stack([low + k, high + right, high + k], axis=1))
    bottom, top = len(vertices) - 2, len(vertices) - 1
    faces.append(np.stack([np.full(n, bottom), right, k], axis=1))
    faces.append(np.stack([np.full(n, top), rows * n + k, rows * n + right], axis=1))
    return meshes.Mesh(vertices, np.concatenate(faces))


def damaged(mesh: meshes.Mesh, seed: int) -> meshes.Mesh:
    """As scans are: every face has corners of its own, a tenth is turned, some are missing."""
    random = np.random.default_rng(seed)
    faces = mesh.faces.copy()
    turned = random.random(len(faces)) < 0.1
    faces[turned] = faces[turned][:, ::-1]
    missing = np.zeros(len(faces), np.bool_)
    missing[random.choice(len(faces), 5, replace=False)] = True
    faces = faces[~missing]
    soup = mesh.vertices[faces].reshape(-1, 3)
    return meshes.Mesh(soup, np.arange(len(soup)).reshape(-1, 3))


def test_a_sound_mesh_stays_as_it_is() -> None:
    whole = cylinder(24, 4)
    mesh, report = meshes.repair(whole)
    assert not report
    np.testing.assert_array_equal(mesh.faces, whole.faces)
    assert report.volume == pytest.approx(0.5 * 24 * np.sin(2 * np.pi / 24) * 0.03**2 * 0.1)


def test_holes_are_closed_and_faces_turned() -> None:
    whole = cylinder(24, 4)
    scan = damaged(whole, 1)
    mesh, report = meshes.repair(scan)
    assert report
    assert report.welded == len(scan.vertices) - len(whole.vertices)
    assert sum(hole.edges for hole in report.holes) >= 3 * 3
    assert report.flipped > 0
    assert report.components == 1
    assert report.volume == pytest.approx(whole.volume, rel=0.01)
    # closed: every edge has two faces, once in each direction
    edges = mesh.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    forth = {(a, b) for a, b in edges.tolist()}
    assert len(forth) == len(edges)
    assert all((b, a) in forth for a, b in forth)
    # inside out is turned as a whole
    inside_out = meshes.Mesh(whole.vertices, whole.faces[:, ::-1])
    assert meshes.repair(inside_out)[1].flipped == len(whole.faces)


def test_a_scan_of_a_hundred_thousand_triangles_is_repaired() -> None:
    scan = damaged(cylinder(250, 200), 2)
    assert len(scan.faces) > 99_000
    mesh, report = meshes.repair(scan)
    assert len(mesh.faces) >= len(scan.faces)
    assert report.volume == pytest.approx(cylinder(250, 200).volume, rel=1e-3)


def test_what_cannot_be_repaired_is_refused_with_its_place() -> None:
    whole = cylinder(24, 4)
    open_tube = meshes.Mesh(whole.vertices, whole.faces[: -2 * 24])
    with pytest.raises(meshes.MeshError, match=r"a hole with a rim of 0\.188.*") as raised:
        meshes.repair(open_tube)
    assert abs(raised.value.places[0, 2]) in (0, pytest.approx(0.1))
    assert meshes.repair(open_tube, largest_rim=2)[1].volume == pytest.approx(whole.volume)
    # a fin: an edge with three faces
    fin = np.concatenate([whole.faces, [[0, 1, len(whole.vertices) - 1]]])
    with pytest.raises(meshes.MeshError, match="1 edges have more than two faces") as raised:
        meshes.repair(meshes.Mesh(whole.vertices, fin))
    np.testing.assert_allclose(raised.value.places[0], whole.vertices[:2].mean(axis=0))
    # a strip with one side
    t = 2 * np.pi * np.arange(12) / 12
    edge = [np.stack([(1 + s * np.cos(t / 2)) * np.cos(t), (1 + s * np.cos(t / 2)) * np.sin(t),
                      s * np.sin(t / 2)], axis=1) for s in (-0.3, 0.3)]  # fmt: skip
    strip = np.concatenate(edge)
    band = [(k, k + 1, 12 + k) for k in range(11)] + [(k + 1, 13 + k, 12 + k) for k in range(11)]
    band += [(11, 12, 23), (12, 0, 23)]
    with pytest.raises(meshes.MeshError, match="one side only"):
        meshes.repair(meshes.Mesh(strip, np.array(band)))
    with pytest.raises(meshes.MeshError, match="no face has an area"):
        meshes.repair(meshes.Mesh(np.zeros((3, 3)), np.array([[0, 1, 2]])))
    with pytest.raises(ValueError, match="vertex 9 of 3"):
        meshes.read(_Bare(np.zeros((3, 3)), np.array([[0, 1, 9]])))


@dataclasses.dataclass
class _Bare:
    vertices: Any
    faces: Any


def test_mass_is_that_of_the_body() -> None:
    mass, com, inertia = meshes.mass_properties(cylinder(400, 2), 1000)
    exact = 1000 * np.pi * 0.03**2 * 0.1
    assert mass == pytest.approx(exact, rel=1e-3)
    np.testing.assert_allclose(com, [0, 0, 0.05], atol=1e-12)
    across = exact * (3 * 0.03**2 + 0.1**2) / 12
    np.testing.assert_allclose(np.diag(inertia), [across, across, exact * 0.03**2 / 2], rtol=2e-3)


def test_obj_files_and_surfaces_are_read(tmp_path: Path, client: tribo.Client) -> None:
    models.write_box(tmp_path / "box.obj", 0.02)
    mesh, report = meshes.repair(tmp_path / "box.obj")
    assert report.volume == pytest.approx(0.04**3)
    assert client.load(mesh, density=500).total_mass == pytest.approx(500 * 0.04**3)


def test_convex_parts_have_bounds_and_a_cache(tmp_path: Path, client: tribo.Client) -> None:
    pytest.importorskip("coacd")
    pytest.importorskip("scipy")
    # an L of two boxes that share no face: two pieces of surface, each convex
    models.write_box(tmp_path / "a.obj", 0.02)
    one = meshes.read(tmp_path / "a.obj")
    other = meshes.Mesh(one.vertices + np.array([0.0405, 0, 0]), one.faces + len(one.vertices))
    both = meshes.Mesh(
        np.concatenate([one.vertices, other.vertices]), np.concatenate([one.faces, other.faces])
    )
    parts = meshes.convex_parts(both, cache=tmp_path / "cache", density=2000)
    assert len(parts.parts) == 2
    assert 0 <= parts.error <= 0.05 * both.diagonal  # sampled
    assert parts.protrusion <= 1e-9
    again = meshes.convex_parts(both, cache=tmp_path / "cache", density=2000)
    assert again.digest == parts.digest
    assert len(list((tmp_path / "cache").iterdir())) == 1
    np.testing.assert_array_equal(again.parts[0].vertices, parts.parts[0].vertices)
    scene = client.load(parts)
    assert scene.total_mass == pytest.approx(2000 * both.volume)
    assert scene.shapes == len(parts.parts)
