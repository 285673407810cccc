"""Finds the files that a model refers to, so that they can be uploaded with it."""

from __future__ import annotations

import posixpath
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

_LIMIT = 10_000


def _resolve(folder: Path, root: Path, reference: str) -> Path:
    """The file on disk behind a reference: beside the file that refers to it, or the main one."""
    if reference.startswith("package://"):
        rest = reference[len("package://") :]
        name, _, inner = rest.partition("/")
        for parent in (root, *root.parents):
            if parent.name == name and (parent / inner).exists():
                return parent / inner
            if (parent / name / inner).exists():
                return parent / name / inner
        return root / rest
    beside = folder / reference
    return beside if beside.exists() else root / reference


def _parse(text: bytes) -> ElementTree.Element:
    """Parses a model's XML; like the importer, ignores odd declarations and trailing text."""
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError:
        text = re.sub(rb"<\?xml\s.*?\?>", b"", text.partition(b"\0")[0], flags=re.DOTALL)
        for end in (b"</robot>", b"</mujoco>"):
            head, found, _ = text.partition(end)
            if found:
                return ElementTree.fromstring(head.lstrip() + end)
        raise


def _references(tree: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """(kind, reference) of a model's tree: kind is "mesh" or "include"."""
    mesh_folder = other_folder = ""
    for compiler in tree.iter("compiler"):
        other_folder = compiler.get("assetdir", other_folder)
        mesh_folder = compiler.get("meshdir", compiler.get("assetdir", mesh_folder))
    for element in tree.iter():
        name = element.get("file") if tree.tag != "robot" else element.get("filename")
        if not name:
            continue
        if element.tag == "include" or (tree.tag == "soft" and element.tag == "rigid"):
            yield "include", name
        elif tree.tag == "robot" and element.tag == "mesh":
            yield "mesh", name
        elif element.tag in ("mesh", "hfield"):
            yield (
                "mesh",
                posixpath.join(mesh_folder if element.tag == "mesh" else other_folder, name),
            )


def collect(path: Path, text: bytes | None = None) -> dict[str, Path]:
    """The files that an MJCF, URDF or <soft> file refers to: reference as it is asked for -> file.

    `text` is the file's content where it is not on disk. Includes are followed. Files that do not
    exist are left out: the server's own message names them with the line that asks for them.
    """
    found: dict[str, Path] = {}
    if path.suffix.lower() not in (".xml", ".mjcf", ".urdf"):
        return found
    root = path.parent
    waiting = [(path, "")]
    mesh_folders = [""]
    while waiting:
        file, prefix = waiting.pop()
        try:
            tree = _parse(text if text is not None and file is path else file.read_bytes())
            references = list(_references(tree))
        except ElementTree.ParseError:
            continue
        for compiler in tree.iter("compiler"):
            folder = compiler.get("meshdir", compiler.get("assetdir", ""))
            if folder and folder not in mesh_folders:
                mesh_folders.append(folder)
        for kind, reference in references:
            # an include's meshdir also applies to meshes named by other files
            candidates = [reference]
            if kind == "mesh" and not reference.startswith("package://"):
                candidates += [posixpath.join(folder, reference) for folder in mesh_folders]
            if kind == "mesh" and tree.tag == "robot":
                # MuJoCo's search path: the bare name in the meshdir, or beside the URDF
                name = posixpath.basename(reference)
                candidates += [posixpath.join(folder, name) for folder in mesh_folders]
            for candidate in candidates:
                target = _resolve(file.parent, root, candidate)
                if not target.is_file():
                    continue
                keys = {
                    posixpath.normpath(candidate),
                    posixpath.normpath(posixpath.join(prefix, candidate)),
                }
                if candidate.startswith("package://"):
                    keys = {candidate}
                for key in keys:
                    if key in found:
                        continue
                    if len(found) >= _LIMIT:
                        raise ValueError(f"{path}: more than {_LIMIT} referenced files")
                    found[key] = target
                    if kind == "include":
                        waiting.append((target, posixpath.dirname(key)))
    return found
