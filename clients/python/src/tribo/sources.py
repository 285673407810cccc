"""Sources of scenes, hands and objects (files, bytes, MjSpec, trimesh), and their wire bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, Union, runtime_checkable

import numpy as np

from tribo import files


@runtime_checkable
class Spec(Protocol):
    """A model that writes itself as MJCF: `mujoco.MjSpec`."""

    def to_xml(self) -> str:
        """The model as MJCF."""
        ...


@runtime_checkable
class Surface(Protocol):
    """Triangles: `trimesh.Trimesh`, `tribo.Mesh`."""

    @property
    def vertices(self) -> Any:
        """(n, 3), m."""
        ...

    @property
    def faces(self) -> Any:
        """(m, 3), indices of vertices, counterclockwise seen from outside."""
        ...


@runtime_checkable
class Bundle(Protocol):
    """A model in memory with the files that it refers to: `tribo.meshes.ConvexParts`."""

    def model(self) -> tuple[bytes, dict[str, bytes]]:
        """MJCF, and files by the names by which it refers to them."""
        ...


Source = Union[str, Path, bytes, Spec, Surface, Bundle]

#: a file that a model refers to: on disk, or in memory
Referred = Union[Path, bytes]

#: formats of meshes that trimesh reads, and the server does not
_FOREIGN = (".ply", ".glb", ".gltf", ".off", ".3mf")


def obj_bytes(surface: Surface) -> bytes:
    """Triangles as OBJ, with the shortest digits that give the same numbers again."""
    vertices = np.asarray(surface.vertices, float).tolist()
    faces = (np.asarray(surface.faces, int) + 1).tolist()
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in vertices]
    lines += [f"f {a} {b} {c}" for a, b, c in faces]
    return ("\n".join(lines) + "\n").encode()


def _foreign(path: Path) -> bytes:
    try:
        import trimesh
    except ImportError as error:
        message = f"{path}: {path.suffix} files are read by trimesh: pip install 'tribo[meshes]'"
        raise ImportError(message) from error
    mesh: Any = trimesh.load(str(path), force="mesh")
    return obj_bytes(mesh)


def _spec(spec: Any, name: str) -> tuple[bytes, str, dict[str, Referred]]:
    text = spec.to_xml().encode()
    folder = Path(getattr(spec, "modelfiledir", "") or ".")
    found: dict[str, Referred] = dict(files.collect(folder / "model.xml", text))
    meshes = getattr(spec, "meshdir", "")
    for key, data in getattr(spec, "assets", {}).items():
        found[key] = bytes(data)
        if meshes:
            found.setdefault(f"{meshes.rstrip('/')}/{key}", bytes(data))
    return text, name or "model.xml", found


def read_source(source: Source, name: str, default: str) -> tuple[bytes, str, dict[str, Referred]]:
    """The bytes of a model, its name, and the files that it refers to.

    Args:
        source: a path, the file's bytes, triangles, or a `mujoco.MjSpec`.
        name: file name, whose ending gives the format; "": the source's own.
        default: the name of bytes without one.
    """
    if isinstance(source, bytes):
        return source, name or default, {}
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.suffix.lower() in _FOREIGN:
            return _foreign(path), name or f"{path.stem}.obj", {}
        return path.read_bytes(), name or path.name, dict(files.collect(path))
    if isinstance(source, Bundle):
        text, held = source.model()
        return text, name or "model.xml", dict(held)
    if isinstance(source, Spec):
        return _spec(source, name)
    if isinstance(source, Surface):
        return obj_bytes(source), name or "mesh.obj", {}
    raise TypeError(f"{type(source).__name__} is neither a path, bytes, triangles nor an MjSpec")


def content(reference: str, file: Referred) -> tuple[str, bytes]:
    """Name and bytes of a file that a model refers to."""
    if isinstance(file, bytes):
        return reference.rpartition("/")[2], file
    return file.name, file.read_bytes()


def write_source(source: Source, name: str, default: str, folder: Path) -> Path:
    """The path of a model's file; a model in memory is written into the folder."""
    if isinstance(source, (str, Path)) and Path(source).suffix.lower() not in _FOREIGN:
        return Path(source)
    data, name, others = read_source(source, name, default)
    # references may climb: the model lies deep enough for all of them
    for _ in range(max((reference.count("../") for reference in others), default=0)):
        folder = folder / "model"
    folder.mkdir(parents=True, exist_ok=True)
    for reference, file in others.items():
        target = folder / reference
        if Path(reference).is_absolute():
            continue  # the importer reads it where it is
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content(reference, file)[1])
    path = folder / Path(name).name
    path.write_bytes(data)
    return path
