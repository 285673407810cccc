"""Meshes of scans are closed and turned outwards, or refused with the place."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tribo.arrays import AnyArray, Floats
from tribo.sources import Source, Surface

#: vertices nearer than this share of the diagonal are one
WELD = 1e-7
#: a hole whose rim is longer than this share of the diagonal is refused
LARGEST_RIM = 1.0
_PLACES = 8  # most places named in a message


class MeshError(ValueError):
    """A mesh that cannot be repaired.

    Attributes:
        places: (n, 3) m, where it is at fault.
    """

    def __init__(self, message: str, places: AnyArray) -> None:
        self.places = np.atleast_2d(np.asarray(places, float))
        shown = ", ".join(
            "(" + ", ".join(f"{x:.4g}" for x in p) + ")" for p in self.places[:_PLACES]
        )
        more = len(self.places) - _PLACES
        super().__init__(f"{message} at {shown}" + (f" and {more} more" if more > 0 else ""))


@dataclass(frozen=True)
class Mesh:
    """Triangles: vertices (n, 3) m, faces (m, 3), counterclockwise seen from outside."""

    vertices: Floats
    faces: AnyArray

    @property
    def volume(self) -> float:
        """m^3, of a closed mesh."""
        a, b, c = (self.vertices[self.faces[:, k]] for k in range(3))
        return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)

    @property
    def diagonal(self) -> float:
        """m, of the box about it."""
        return float(np.linalg.norm(np.ptp(self.vertices, axis=0)))

    def __repr__(self) -> str:
        return f"Mesh({len(self.vertices)} vertices, {len(self.faces)} faces)"


@dataclass(frozen=True)
class Hole:
    """A hole that was closed: its middle (m), and the length of its rim (m) and number of edges."""

    place: tuple[float, float, float]
    rim: float
    edges: int


@dataclass(frozen=True)
class Repair:
    """The report of a repair.

    welded: vertices that were one with another; degenerate, doubled: faces left out; flipped: faces
    turned round; holes: closed, the largest first; components: pieces of surface; volume: m^3.
    """

    welded: int
    degenerate: int
    doubled: int
    flipped: int
    holes: tuple[Hole, ...]
    components: int
    volume: float

    def __bool__(self) -> bool:
        """Whether anything was mended."""
        return bool(self.welded or self.degenerate or self.doubled or self.flipped or self.holes)


def read(source: Source | Mesh) -> Mesh:
    """Triangles of a file (OBJ by ourselves, others by trimesh) or of an object that has them."""
    if isinstance(source, Mesh):
        return source
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.suffix.lower() == ".obj":
            return _read_obj(path)
        try:
            import trimesh
        except ImportError as error:
            message = f"{path}: {path.suffix} is read by trimesh: pip install 'tribo[meshes]'"
            raise ImportError(message) from error
        loaded: Any = trimesh.load(str(path), force="mesh", process=False)
        return _checked(loaded.vertices, loaded.faces, str(path))
    if isinstance(source, Surface):
        return _checked(source.vertices, source.faces, type(source).__name__)
    raise TypeError(f"{type(source).__name__} has no triangles")


def _checked(vertices: Any, faces: Any, name: str) -> Mesh:
    points = np.ascontiguousarray(vertices, float)
    triangles = np.ascontiguousarray(faces, np.int64)
    if points.ndim != 2 or points.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3:
        raise ValueError(f"{name}: vertices are {points.shape}, faces {triangles.shape}")
    if len(triangles) == 0:
        raise ValueError(f"{name} has no faces")
    if triangles.min() < 0 or triangles.max() >= len(points):
        raise ValueError(f"{name}: a face names vertex {triangles.max()} of {len(points)}")
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise ValueError(f"{name}: vertex {int(np.flatnonzero(bad)[0])} is not finite")
    return Mesh(points, triangles)


def _read_obj(path: Path) -> Mesh:
    vertices: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        words = line.split()
        try:
            if words and words[0] == "v":
                vertices.append([float(x) for x in words[1:4]])
            elif words and words[0] == "f":
                corners = [int(word.partition("/")[0]) for word in words[1:]]
                ring = [c - 1 if c > 0 else len(vertices) + c for c in corners]
                faces += [(ring[0], ring[k], ring[k + 1]) for k in range(1, len(ring) - 1)]
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from error
    return _checked(np.array(vertices).reshape(-1, 3), np.array(faces).reshape(-1, 3), str(path))


# ---- repair ----


def _weld(mesh: Mesh) -> tuple[Mesh, int]:
    """Vertices that coincide become one, in the order of their first."""
    step = max(WELD * mesh.diagonal, np.finfo(float).tiny)
    keys = np.round((mesh.vertices - mesh.vertices.min(axis=0)) / step).astype(np.int64)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    faces = rank[inverse.ravel()][mesh.faces]
    welded = len(mesh.vertices) - len(first)
    return Mesh(mesh.vertices[first[order]], faces), welded


def _drop(mesh: Mesh) -> tuple[Mesh, int, int]:
    """Leaves out faces without an area, and all but one of equal faces."""
    f = mesh.faces
    flat = (f[:, 0] == f[:, 1]) | (f[:, 1] == f[:, 2]) | (f[:, 2] == f[:, 0])
    f = f[~flat]
    _, first = np.unique(np.sort(f, axis=1), axis=0, return_index=True)
    kept = f[np.sort(first)]
    return Mesh(mesh.vertices, kept), int(flat.sum()), len(f) - len(kept)


def _edges(faces: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Directed edges (3 m, 2) of the faces, face after face, and the number of each one's pair."""
    directed = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    _, pair = np.unique(np.sort(directed, axis=1), axis=0, return_inverse=True)
    return directed, pair.ravel()


def _orient(mesh: Mesh) -> tuple[Mesh, AnyArray]:
    """Turns faces so that neighbours agree in their sense, and the piece (m) of each face."""
    directed, pair = _edges(mesh.faces)
    count = np.bincount(pair)
    if (count > 2).any():
        at = np.flatnonzero(count > 2)
        places = [mesh.vertices[directed[pair == k][0]].mean(axis=0) for k in at[: _PLACES + 1]]
        message = f"{len(at)} edges have more than two faces, the first ones"
        raise MeshError(message, np.array(places))
    order = np.argsort(pair, kind="stable")
    inner = order[count[pair[order]] == 2].reshape(-1, 2)
    same = (directed[inner[:, 0]] == directed[inner[:, 1]]).all(axis=1)
    left, right = inner[:, 0] // 3, inner[:, 1] // 3
    neighbours: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for a, b, wrong in zip(left.tolist(), right.tolist(), same.tolist()):
        neighbours[a].append((b, wrong))
        neighbours[b].append((a, wrong))
    m = len(mesh.faces)
    turned = [-1] * m
    piece = np.zeros(m, np.int64)
    pieces = 0
    for seed in range(m):
        if turned[seed] >= 0:
            continue
        turned[seed], waiting = 0, [seed]
        while waiting:
            face = waiting.pop()
            piece[face] = pieces
            for other, wrong in neighbours[face]:
                wanted = turned[face] ^ wrong
                if turned[other] < 0:
                    turned[other] = wanted
                    waiting.append(other)
                elif turned[other] != wanted:
                    place = mesh.vertices[mesh.faces[other]].mean(axis=0)
                    raise MeshError("the surface has one side only, like Möbius' strip,", place)
        pieces += 1
    turn = np.array(turned, np.bool_)
    faces = mesh.faces.copy()
    faces[turn] = faces[turn][:, ::-1]
    return Mesh(mesh.vertices, faces), piece


def _rims(mesh: Mesh) -> list[list[int]]:
    """Closed chains of edges that have one face, in the direction of that face.

    Where faces agree in their sense, as many rims leave a vertex as arrive: every chain closes.
    """
    directed, pair = _edges(mesh.faces)
    following: dict[int, list[int]] = defaultdict(list)
    for a, b in directed[np.bincount(pair)[pair] == 1].tolist():
        following[a].append(b)
    rims = []
    while following:
        path = [next(iter(following))]
        at = {path[0]: 0}
        while path[-1] in following:
            here = path[-1]
            onward = following[here].pop()
            if not following[here]:
                del following[here]
            if onward in at:
                ring = path[at[onward] :]
                rims.append(ring)
                for vertex in ring[1:]:
                    del at[vertex]
                del path[at[onward] + 1 :]
            else:
                at[onward] = len(path)
                path.append(onward)
    return rims


def _close(mesh: Mesh, largest_rim: float) -> tuple[Mesh, list[Hole], AnyArray]:
    """Closes every hole by a fan about its middle; refuses holes that are too large.

    The last of the results is a vertex on the rim of each new face.
    """
    rims = _rims(mesh)
    limit = largest_rim * mesh.diagonal
    vertices, faces, holes = [mesh.vertices], [mesh.faces], []
    added = len(mesh.vertices)
    owners = []
    for rim in rims:
        points = mesh.vertices[rim]
        length = float(np.linalg.norm(points - np.roll(points, -1, axis=0), axis=1).sum())
        middle = points.mean(axis=0)
        if length > limit:
            message = (
                f"a hole with a rim of {length:.4g} m and {len(rim)} edges (more than "
                f"{largest_rim:g} of the diagonal, {mesh.diagonal:.4g} m) is"
            )
            raise MeshError(message, middle)
        holes.append(Hole((float(middle[0]), float(middle[1]), float(middle[2])), length, len(rim)))
        if len(rim) == 3:
            fan = [(rim[2], rim[1], rim[0])]
        else:
            vertices.append(middle[None])
            fan = [(rim[(k + 1) % len(rim)], rim[k], added) for k in range(len(rim))]
            added += 1
        faces.append(np.array(fan, np.int64))
        owners += [rim[0]] * len(fan)
    holes.sort(key=lambda h: -h.rim)
    return Mesh(np.concatenate(vertices), np.concatenate(faces)), holes, np.array(owners, np.int64)


def repair(source: Source | Mesh, *, largest_rim: float = LARGEST_RIM) -> tuple[Mesh, Repair]:
    """Returns a closed mesh with its faces outwards, and the repairs made.

    Coinciding vertices are welded, faces without an area or twice there are left out, neighbours
    are turned alike and pieces outwards, and holes are closed by fans.

    Args:
        source: a path, or an object with vertices and faces.
        largest_rim: a hole with a longer rim, as a share of the mesh's diagonal, is refused.

    Raises:
        MeshError: names the place of an edge with three or more faces, of a hole that is too large,
            of a one-sided surface, of a piece without a volume.
    """
    mesh, welded = _weld(read(source))
    mesh, degenerate, doubled = _drop(mesh)
    if len(mesh.faces) == 0:
        raise MeshError("no face has an area, the vertices are", mesh.vertices.mean(axis=0))
    given = mesh.faces
    mesh, piece = _orient(mesh)
    of_vertex = np.zeros(len(mesh.vertices), np.int64)
    of_vertex[mesh.faces] = piece[:, None]
    mesh, holes, rims = _close(mesh, largest_rim)
    piece = np.concatenate([piece, of_vertex[rims]])
    faces, pieces = mesh.faces, int(piece.max()) + 1
    a, b, c = (mesh.vertices[faces[:, k]] for k in range(3))
    volumes = np.bincount(piece, np.einsum("ij,ij->i", a, np.cross(b, c)) / 6, pieces)
    flat = np.abs(volumes) < 1e-12 * mesh.diagonal**3
    if flat.any():
        k = int(np.flatnonzero(flat)[0])
        place = mesh.vertices[faces[piece == k]].mean(axis=(0, 1))
        raise MeshError(f"{int(flat.sum())} of {pieces} pieces have no volume, the first", place)
    inward = (volumes < 0)[piece]
    faces[inward] = faces[inward][:, ::-1]
    done = Mesh(mesh.vertices, faces)
    flipped = int((faces[: len(given)] != given).any(axis=1).sum())
    return done, Repair(welded, degenerate, doubled, flipped, tuple(holes), pieces, done.volume)
