#!/usr/bin/env python3
"""The wheel with programs and the source distribution install into fresh environments and work.

For every Python from 3.9 on that is found ($PYTHONS, PATH, pyenv): the wheel in an environment with
the newest protobuf, grpcio and numpy. For the oldest Python also with the oldest protobuf and
grpcio that pyproject.toml names, and the source distribution at both ends. Each imports the
package, starts the wheel's own daemon, steps, samples and evaluates grasps, and runs libtribo in
the process.

    make check-wheel            # wheel and sdist into build/wheel, then this
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHEELS = Path(os.environ.get("TRIBO_WHEELS", ROOT / "build" / "wheel"))
DATA = Path(os.environ.get("TRIBO_BUILD", ROOT / "build")) / "tests" / "data"

PROGRAM = r"""
import sys, numpy, google.protobuf, grpc, tribo
from tribo import local
assert "site-packages" in tribo.__file__, tribo.__file__
assert (tribo.daemon.find_binary().startswith(sys.prefix)) == (sys.argv[1] == "wheel")
hand = tribo.Hand("hand.xml", closing_actuators=("close_left", "close_right"))
mug = tribo.GraspObject("mug.obj", mass=0.3, friction=0.7)
model = local.Model("hand.xml")
assert (sys.prefix in local.find_library()) == (sys.argv[1] == "wheel"), local.find_library()
ours = local.Worlds(model, 2).step(10)
with tribo.Daemon() as daemon, daemon.connect() as client:
    scene = client.load("hand.xml")
    assert scene.id == model.sha256
    with client.create_session(scene, worlds=2) as session:
        numpy.testing.assert_array_equal(session.step(10).q, ours.q)
    poses = tribo.sample_grasps(mug, hand, 2, axis=(1, 0, 0), approach=(0, 0, -1), seed=1)
    grasps = tribo.evaluate(mug, hand, poses, client=client,
                            protocol=tribo.Protocol(approach=(0, 0, -1), force=20))
    assert len(grasps) == len(poses) > 0
print("Python", sys.version.split()[0], "protobuf", google.protobuf.__version__, "grpcio",
      grpc.__version__, "numpy", numpy.__version__, grasps)
"""


def pythons() -> list[str]:
    """Interpreters from 3.9 on, the oldest first, one of each version."""
    named = os.environ.get("PYTHONS", "").split()
    found: dict[tuple[int, int], str] = {}
    pyenv = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(
        "versions/*/bin/python"))  # fmt: skip
    candidates = named or [*map(str, pyenv), *(f"python3.{minor}" for minor in range(9, 16))]
    for candidate in candidates:
        path = shutil.which(candidate)
        if path is None:
            continue
        text = "import sys, ensurepip, venv; print(*sys.version_info[:2])"
        ran = subprocess.run([path, "-c", text], capture_output=True, text=True, check=False)
        if ran.returncode == 0:
            major, minor = map(int, ran.stdout.split())
            if (major, minor) >= (3, 9):
                found.setdefault((major, minor), path)
    return [found[version] for version in sorted(found)]


def check(python: str, kind: str, bounds: str, folder: Path) -> bool:
    """One fresh environment; bounds: "oldest" or "newest"."""
    environment = folder / "environment"
    shutil.rmtree(environment, ignore_errors=True)
    subprocess.run([python, "-m", "venv", environment], check=True)
    inside = str(environment / "bin" / "python")
    install = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    source = next(WHEELS.glob("*.whl" if kind == "wheel" else "*.tar.gz"))
    extra = []
    if bounds == "oldest":
        text = (ROOT / "clients" / "python" / "pyproject.toml").read_text()
        least = dict(re.findall(r'"(grpcio|protobuf)>=([\d.]+)"', text))
        extra = [f"{name}=={version}.*" for name, version in least.items()]
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("TRIBO", "PYTHON"))}
    if kind == "sdist":
        build = DATA.parent.parent
        variables |= {"TRIBOD": str(build / "tribod"),
                      "TRIBO_LIBRARY": str(build / "libtribo.so")}  # fmt: skip
    for command in ([*install, f"tribo[local] @ {source.resolve().as_uri()}", *extra],
                    [inside, "-c", PROGRAM, kind]):  # fmt: skip
        ran = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, check=False
        )
        if ran.returncode != 0:
            print(f"FAILED: {python} {kind} {bounds}\n{ran.stdout}{ran.stderr}", flush=True)
            return False
    print(f"{kind} {bounds}: {ran.stdout.strip()}", flush=True)
    return True


def main() -> int:
    """Every environment."""
    found = pythons()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tribo-wheel-") as name:
        folder = Path(name)
        for program in ("mug", "hand"):
            subprocess.run([DATA / program, folder], check=True, capture_output=True)
        for python in found:
            failed += not check(python, "wheel", "newest", folder)
        failed += not check(found[0], "wheel", "oldest", folder)
        failed += not check(found[-1], "sdist", "newest", folder)
        failed += not check(found[0], "sdist", "oldest", folder)
    print(f"{len(found) + 3 - failed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
