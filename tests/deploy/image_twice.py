"""Builds an image twice and compares the files of both, with their modes, owners and times.

    make image-twice [IMAGES=gpu]

The first build may take layers of builds before, the second takes none. Printed is the list of the
files that are not the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from common_daemon import Report

ROOT = Path(__file__).resolve().parent.parent.parent
ENGINE = os.environ.get("ENGINE") or shutil.which("podman") or shutil.which("docker") or ""


def build(kind: str, *arguments: str) -> str:
    """Builds it; the image's id."""
    more = " ".join([os.environ.get("BUILD_ARGUMENTS", ""), *arguments]).strip()
    subprocess.run(
        [ROOT / "deploy/image/build.sh", kind],
        env={**os.environ, "BUILD_ARGUMENTS": more},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    answer = subprocess.run(
        [ENGINE, "image", "inspect", f"tribod:{kind}", "--format", "{{.Id}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.strip()


def files(image: str) -> dict[str, tuple[object, ...]]:
    """Every entry of an image by its path: kind, mode, owner, time, target, bytes."""
    created = subprocess.run([ENGINE, "create", image], capture_output=True, text=True, check=True)
    container = created.stdout.split()[-1]
    entries: dict[str, tuple[object, ...]] = {}
    try:
        with (
            subprocess.Popen([ENGINE, "export", container], stdout=subprocess.PIPE) as export,
            tarfile.open(fileobj=export.stdout, mode="r|") as archive,
        ):
            for member in archive:
                file = archive.extractfile(member) if member.isreg() else None
                digest = hashlib.file_digest(file, "sha256").hexdigest() if file else ""
                entries[member.name] = (
                    *(member.type, oct(member.mode), member.uid, member.gid),
                    *(int(member.mtime), member.linkname, digest),
                )
    finally:
        subprocess.run([ENGINE, "rm", container], capture_output=True)
    return entries


def layers(image: str) -> str:
    """Digests of the image's layers."""
    answer = subprocess.run(
        [ENGINE, "image", "inspect", image, "--format", "{{json .RootFS.Layers}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.strip()


def main() -> None:
    """One image, or those named."""
    report = Report()
    for kind in sys.argv[1:] or ["cpu"]:
        first = build(kind)
        before, digests = files(first), layers(first)
        second = build(kind, "--no-cache")
        after = files(second)
        differing = sorted(
            name
            for name in before.keys() | after.keys()
            # the engine makes them when a container is made
            if before.get(name) != after.get(name)
            and name.rstrip("/") not in ("dev", "proc", "sys", "run", "etc")
        )
        for name in differing:
            print(f"{name}: {before.get(name)}, then {after.get(name)}")
        same = "the same" if digests == layers(second) else "others"
        print(
            f"tribod:{kind}: {len(after)} files, {len(differing)} differ; layers' digests: {same}"
        )
        report.check(len(after) > 100, f"{len(after)} files")
        report.equal(differing, [], f"files of tribod:{kind} that two builds make differently")
    report.finish()


if __name__ == "__main__":
    main()
