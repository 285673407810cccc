"""Checks before run.py measures: they name a missing program or package at once, not minutes later
in the part that needs it."""

from __future__ import annotations

import os
import subprocess
from argparse import Namespace
from pathlib import Path

import scenes

BENCH_GPU = "tests/bench/bench_gpu"
DAEMON = ["tribod", "tests/data/hand", "tests/data/jaw_mug", "tests/data/mug"]
#: Programs of the build folder that each part starts.
PROGRAMS = {
    "agreement": ["tests/unit/gpu/test_gpu_step"],
    "resume": ["tests/unit/gpu/test_gpu_resume", *DAEMON],
    "sanitizer": [BENCH_GPU, "tests/unit/gpu/test_gpu_large"],
    "ours": [BENCH_GPU],
    "processor": [BENCH_GPU],
    "schurpa": ["tests/bench/bench_programs"],
    "field": ["tests/bench/bench_large"],
    "first": ["tests/bench/bench_first"],
    "stages": [BENCH_GPU],
    "calls": ["tests/bench/bench_gpu_calls"],
    "daemon": DAEMON,
    "knobs": [BENCH_GPU],
}
#: Packages that the peers' Python must have.
PACKAGES = {"mujoco": "mujoco_warp", "kamino": "newton"}
#: Parts that begin with the models of scenes.py.
WITH_SCENES = ("sanitizer", "ours", "processor", "mujoco", "stages", "calls", "knobs")
#: The others are useless without a card.
WITHOUT_CARD = ("processor",)


def wrong_build(options: Namespace) -> str:
    if not options.build.is_dir():
        return f"--build {options.build}: there is no such folder"
    programs = ["tribo", *(p for part in options.parts for p in PROGRAMS.get(part, []))]
    if options.scenes_folder is None and set(options.parts) & set(WITH_SCENES):
        programs.append("tests/data/jaw_mug")
    missing = [p for p in dict.fromkeys(programs) if not os.access(options.build / p, os.X_OK)]
    if missing:
        return f"--build {options.build} has no {', '.join(missing)}: make bench-gpu builds it"
    return ""


def wrong_scenes(options: Namespace) -> str:
    folder = options.scenes_folder
    if folder is None:
        return ""
    try:
        found = scenes.read(folder)
        missing = [s.model for s in found if not (folder / s.model).is_file()]
    except (OSError, ValueError, TypeError):
        return f"--scenes-folder {folder} has no scenes.json as scenes.py writes it"
    return f"--scenes-folder {folder} has no {', '.join(missing)}" if missing else ""


def no_card(options: Namespace, environment: dict[str, str]) -> str:
    """As the build sees it: `tribo version` says which card there is, or why there is none."""
    if set(options.parts) <= set(WITHOUT_CARD):
        return ""
    try:
        told = subprocess.run(
            [options.build / "tribo", "version"], env=environment, capture_output=True, text=True,
            check=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.CalledProcessError) as error:
        return f"--build {options.build}: {error}"
    words = next((line.split() for line in told.splitlines() if line.split()[:1] == ["gpu"]), [])
    return f"no card: {' '.join(words[2:])}" if words[1:2] in ([], ["none:"]) else ""


def wrong_peers(options: Namespace) -> str:
    wanted = [PACKAGES[part] for part in options.parts if part in PACKAGES]
    if not wanted:
        return ""
    # looked for and not imported, which takes seconds
    program = "import importlib.util as u, sys\n"
    program += "print(*(n for n in sys.argv[1:] if u.find_spec(n) is None))"
    command = [options.peers_python, "-c", program, *wanted]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return f"--peers-python {options.peers_python} is no Python: deploy/deps.sh gpu-peers"
    if told:
        names = ", ".join(told)
        return f"--peers-python {options.peers_python} lacks {names}: deploy/deps.sh gpu-peers"
    return ""


def faults(options: Namespace, environment: dict[str, str]) -> list[str]:
    """A line for each thing that is wrong; none where all is well."""
    found = [wrong_build(options), wrong_scenes(options)]
    # a wrong build folder shows at once; its contents are not searched then
    if options.build.is_dir() or options.build not in options.peers_python.parents:
        found.append(wrong_peers(options))
    if not found[0]:
        found.append(no_card(options, environment))
    return [line for line in found if line]


def compute_sanitizer(build: Path) -> str:
    """In PATH, beside the CUDA compiler that the build takes, or in a toolkit; "": nowhere."""
    script = Path(__file__).resolve().parents[3] / "deploy/find_nvcc.sh"
    told = subprocess.run([script, build], capture_output=True, text=True, check=False).stdout
    folders = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p]
    folders += [Path(nvcc).parent for nvcc in told.splitlines()]
    folders += sorted(Path("/usr/local").glob("cuda*/bin"), reverse=True)
    found = (folder / "compute-sanitizer" for folder in folders)
    return next((str(path) for path in found if os.access(path, os.X_OK)), "")
