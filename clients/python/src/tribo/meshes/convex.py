"""Meshes are cut into convex parts by CoACD; the parts are kept by the mesh's digest."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tribo.arrays import AnyArray, Floats
from tribo.meshes.repair import Mesh, repair
from tribo.sources import Source, obj_bytes


@dataclass(frozen=True)
class ConvexParts:
    """Convex hulls that together are nearly the mesh, to be given as a `GraspObject` or loaded.

    Attributes:
        mesh: the closed mesh that was cut.
        parts: convex meshes.
        protrusion: m, bound of how far the parts reach out of the mesh.
        gap: m, bound of how far the mesh reaches out of the parts.
        digest: SHA-256 of mesh and options, the name in the cache.
        density: kg/m^3, of the model; inertia is the mesh's, not the sum of the parts'.
        friction: mu of the model's contacts, as of a mesh that comes without a surface.
        spin: m, torque about a contact's normal over its normal force, as of soft fingers.
    """

    mesh: Mesh
    parts: tuple[Mesh, ...]
    protrusion: float
    gap: float
    digest: str
    density: float = 1000.0
    name: str = "object"
    friction: float = 0.7
    spin: float = 0.005

    @property
    def error(self) -> float:
        """m, bound of the distance of both surfaces."""
        return max(self.protrusion, self.gap)

    def model(self) -> tuple[bytes, dict[str, bytes]]:
        """MJCF of one free body with a shape for each part, and the files of the parts."""
        mass, com, inertia = mass_properties(self.mesh, self.density)
        numbers = " ".join(repr(float(x)) for x in (*np.diag(inertia), inertia[0, 1],
                                                    inertia[0, 2], inertia[1, 2]))  # fmt: skip
        files = {f"part{i}.obj": obj_bytes(part) for i, part in enumerate(self.parts)}
        assets = "".join(f'<mesh name="part{i}" file="part{i}.obj"/>' for i in range(len(files)))
        surface = f' condim="4" friction="{self.friction!r} {self.spin!r} 0"'
        shapes = "".join(f'<geom type="mesh" mesh="part{i}"{surface}/>' for i in range(len(files)))
        centre = " ".join(repr(float(x)) for x in com)
        text = (
            f'<mujoco model="{self.name}"><asset>{assets}</asset><worldbody>'
            f'<body name="{self.name}"><freejoint/>'
            f'<inertial pos="{centre}" mass="{mass!r}" fullinertia="{numbers}"/>'
            f"{shapes}</body></worldbody></mujoco>"
        )
        return text.encode(), files

    def __repr__(self) -> str:
        return (
            f"ConvexParts({len(self.parts)} parts of {self.mesh!r}, reach out by at most "
            f"{self.protrusion * 1e3:.2f} mm, fall short by at most {self.gap * 1e3:.2f} mm)"
        )


def mass_properties(mesh: Mesh, density: float) -> tuple[float, Floats, Floats]:
    """Mass (kg), centre of mass (m), inertia (3 x 3, kg m^2) about it, of a closed mesh."""
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    six = np.einsum("ij,ij->i", a, np.cross(b, c))  # of the tetrahedra with the origin
    volume = six.sum() / 6
    com = ((a + b + c) * six[:, None]).sum(axis=0) / 24 / volume
    corners = np.stack([a - com, b - com, c - com], axis=1)
    six = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    sums = corners.sum(axis=1)
    second = np.einsum("i,ij,ik->jk", six, sums, sums)
    second += np.einsum("i,ipj,ipk->jk", six, corners, corners)
    second /= 120
    inertia = density * (np.trace(second) * np.eye(3) - second)
    return float(density * volume), com, inertia


def _cache() -> Path:
    named = os.environ.get("TRIBO_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(named) if named else Path(home) / "tribo" / "convex"


def _planes(part: Mesh) -> tuple[Floats, Floats]:
    """Unit normals and offsets of a convex mesh: n . x <= d inside."""
    a, b, c = (part.vertices[part.faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    length = np.linalg.norm(normals, axis=1)
    good = length > 1e-12 * length.max()
    normals = normals[good] / length[good, None]
    return normals, np.einsum("ij,ij->i", normals, a[good])


def _samples(mesh: Mesh, spacing: float) -> Floats:
    """Points of the surface such that every point of it has one within `spacing`."""
    found = [mesh.vertices]
    corners = mesh.vertices[mesh.faces]
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    for n in np.unique(np.ceil(sides / spacing).astype(int)):
        if n < 2:
            continue
        some = corners[np.ceil(sides / spacing).astype(int) == n]
        i, j = np.mgrid[0 : n + 1, 0 : n + 1]
        inside = i + j <= n
        weights = np.stack([i, j, n - i - j], axis=-1)[inside] / n
        found.append(np.einsum("wk,fkx->fwx", weights, some).reshape(-1, 3))
    return np.concatenate(found)


def _distance_outside(points: Floats, parts: Any) -> Floats:
    """m, from each point to the union of the parts, by samples of their surfaces; 0 inside."""
    from scipy.spatial import cKDTree

    outside = np.full(len(points), np.inf)
    for part in parts:
        normals, offsets = _planes(part)
        for start in range(0, len(points), 1 << 14):
            piece = slice(start, start + (1 << 14))
            away = (points[piece] @ normals.T - offsets).max(axis=1)
            outside[piece] = np.minimum(outside[piece], np.where(away <= 0, 0, np.inf))
    far = np.flatnonzero(outside > 0)
    if len(far):
        surface = np.concatenate([_samples(p, 0.01 * p.diagonal) for p in parts])
        outside[far] = cKDTree(surface).query(points[far])[0]
    return outside


def _bounds(mesh: Mesh, parts: list[Mesh]) -> tuple[float, float]:
    """Bounds (m) of how far the parts reach out of the mesh, and the mesh out of the parts.

    The distance to a set changes no faster than the point moves: the largest of samples that lie
    within a spacing of every point, plus the spacing, bounds it everywhere.
    """
    from scipy.spatial import cKDTree

    spacing = 0.01 * mesh.diagonal
    surface = _samples(mesh, spacing)
    gap = float(_distance_outside(surface, parts).max())
    hulls = np.concatenate([_samples(p, spacing) for p in parts])
    # a point inside of the mesh does not reach out of it
    distance, _ = cKDTree(surface).query(hulls)
    candidates = np.argsort(-distance)
    reach = 0.0
    for k in range(0, len(candidates), 256):
        some = candidates[k : k + 256]
        out = ~_inside(mesh, hulls[some])
        if out.any():
            reach = float(distance[some][out].max())
            break
    return reach + spacing if reach > 0 else 0.0, gap + spacing if gap > 0 else 0.0


def _inside(mesh: Mesh, points: Floats) -> AnyArray:
    """Whether points are inside a closed mesh, by its winding number (Van Oosterom, Strackee)."""
    winding = np.zeros(len(points))
    for start in range(0, len(mesh.faces), 1 << 13):
        some = mesh.faces[start : start + (1 << 13)]
        a, b, c = (mesh.vertices[some[:, k]][None] - points[:, None] for k in range(3))
        la, lb, lc = (np.linalg.norm(v, axis=2) for v in (a, b, c))
        triple = np.einsum("pfi,pfi->pf", a, np.cross(b, c))
        below = (
            la * lb * lc
            + np.einsum("pfi,pfi->pf", a, b) * lc
            + np.einsum("pfi,pfi->pf", b, c) * la
            + np.einsum("pfi,pfi->pf", c, a) * lb
        )
        winding += np.arctan2(triple, below).sum(axis=1)
    return winding > np.pi


def _pieces(mesh: Mesh) -> list[Mesh]:
    """The connected pieces of a surface; all as one where a piece bounds a hollow of another."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(mesh.vertices)
    ends = np.concatenate([mesh.faces[:, :2], mesh.faces[:, 1:]])
    graph = coo_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    count, labels = connected_components(graph, directed=False)
    if count == 1:
        return [mesh]
    pieces = []
    for label in np.unique(labels[mesh.faces[:, 0]]):
        used = np.flatnonzero(labels == label)
        faces = mesh.faces[labels[mesh.faces[:, 0]] == label]
        pieces.append(Mesh(mesh.vertices[used], np.searchsorted(used, faces)))
    return pieces if all(piece.volume > 0 for piece in pieces) else [mesh]


def _is_convex(mesh: Mesh) -> bool:
    """Whether a closed surface is its own hull, to rounding."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = float(ConvexHull(mesh.vertices).volume)
    except QhullError:
        return False
    return bool(mesh.volume >= (1 - 1e-9) * hull)


def _cut(mesh: Mesh, threshold: float, largest: int, iterations: int, seed: int) -> list[Mesh]:
    """Convex parts of a closed surface.

    Convex pieces stay as they are: CoACD looks for cuts through them, and does not end on some.
    """
    try:
        import coacd
    except ImportError as error:
        message = "convex_parts needs CoACD: pip install 'tribo[meshes]'"
        raise ImportError(message) from error
    coacd.set_log_level("error")
    parts: list[Mesh] = []
    pieces = _pieces(mesh)
    for i, piece in enumerate(pieces):
        if _is_convex(piece):
            parts.append(piece)
            continue
        found = coacd.run_coacd(
            coacd.Mesh(piece.vertices, piece.faces),
            threshold=threshold,
            max_convex_hull=max(1, largest - len(parts) - (len(pieces) - 1 - i)),
            mcts_iterations=iterations,
            preprocess_mode="off",  # `repair` made it a closed surface
            seed=seed,
        )
        parts += [Mesh(np.asarray(v, float), np.asarray(f, np.int64)) for v, f in found]
    return parts


def convex_parts(
    source: Source | Mesh,
    *,
    threshold: float = 0.03,
    largest: int = 32,
    iterations: int = 60,
    seed: int = 0,
    density: float = 1000.0,
    name: str = "object",
    cache: str | Path | None = None,
) -> ConvexParts:
    """Cuts a mesh into convex parts by CoACD, after `repair`; the same call reads its cache.

    Args:
        source: a path, or an object with vertices and faces.
        threshold: CoACD's concavity at which it stops, as a share of the mesh's size.
        largest: number of parts.
        iterations: of CoACD's search for each cut; its own default is 150.
        seed: of its search.
        density: kg/m^3, of the model's inertia.
        name: of the model and its body.
        cache: folder; None: $TRIBO_CACHE, else tribo/convex in the user's cache.
    """
    mesh, _ = repair(source)
    options = {"threshold": threshold, "largest": largest, "iterations": iterations, "seed": seed}
    digest = hashlib.sha256(
        mesh.vertices.tobytes() + mesh.faces.tobytes() + json.dumps(options).encode()
    ).hexdigest()
    file = Path(cache or _cache()) / f"{digest}.npz"
    if file.exists():
        with np.load(file) as kept:
            count = int(kept["count"])
            parts = [Mesh(kept[f"v{i}"], kept[f"f{i}"]) for i in range(count)]
            protrusion, gap = (float(x) for x in kept["bounds"])
    else:
        parts = _cut(mesh, threshold, largest, iterations, seed)
        protrusion, gap = _bounds(mesh, parts)
        file.parent.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {"count": len(parts), "bounds": [protrusion, gap]}
        for i, part in enumerate(parts):
            arrays[f"v{i}"], arrays[f"f{i}"] = part.vertices, part.faces
        # a reader finds a whole file or none
        temporary = file.with_suffix(f".{os.getpid()}.npz")
        np.savez_compressed(temporary, **arrays)
        temporary.replace(file)
    return ConvexParts(mesh, tuple(parts), protrusion, gap, digest, density, name)
