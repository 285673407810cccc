"""One model of the corpus through MuJoCo and through `tribo`: load, numbers, 500 steps, time.

Each half runs in a process of its own with a limit on time and memory, so that a model can neither
end nor stop the table. MuJoCo's half does not depend on the build and is kept in a file.
"""

import json
import math
import os
import pickle
import resource
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import common
import mujoco
import numpy as np

LOAD_LIMIT_S = 10.0
STEP_LIMIT_S = 30.0
MEMORY_LIMIT_BYTES = 6 << 30
STEPS = 500
HOW = ("--steps", str(STEPS), "--threads", "1")
MAX_KEYFRAMES = 3  # of one model, from which it is stepped
BAD_STATES = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
)
MAX_DOFS_COMPARED = 400  # a dense mass matrix beyond this is left out


@dataclass
class Theirs:
    """MuJoCo's results for a model."""

    loads: bool = False
    reason: str = ""
    bodies: int = 0
    dofs: int = 0
    mass_kg: float = 0.0
    keyframes: int = 0
    step_us: float = 0.0  # processor time of a step, the mean of STEPS from qpos0
    trouble: str = ""  # a warning of a bad state, and when
    # (mass matrix or None, acceleration) at qpos0 and at the first keyframes
    poses: list[tuple[Any, Any]] = field(default_factory=list)


@dataclass
class Ours:
    """Tribod's results for it; differences are relative, as peer_models.py takes them."""

    loads: bool = False
    reason: str = ""
    load_s: float = 0.0
    warnings: list[str] = field(default_factory=list)
    wrong_counts: str = ""
    of_mass: float = 0.0
    of_mass_matrix: float = 0.0
    of_acceleration: float = 0.0
    runs: list[dict[str, Any]] = field(default_factory=list)  # one a starting pose


def package_roots(path: Path, root: Path) -> list[Path]:
    """Folders in which `package://` addresses of a model are looked for, the nearest first."""
    return [p for p in path.parents if p.is_relative_to(root)]


def find_mesh(name: str, path: Path, roots: list[Path]) -> Path | None:
    """The file that a URDF's mesh address means."""
    name = name.removeprefix("file://")
    if not name.startswith("package://"):
        here = path.parent / name
        return here if here.exists() else None
    name = name.removeprefix("package://")
    for short in (name, name.partition("/")[2]):
        for root in roots:
            if (root / short).exists():
                return root / short
    return None


def read_spec(path: Path) -> mujoco.MjSpec:
    """A model as MuJoCo's parser leaves it, the bodies of a URDF kept apart."""
    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except (ValueError, mujoco.FatalError) as error:
        raise common.Refused(str(error).splitlines()[0]) from error
    if path.suffix == ".urdf":
        spec.compiler.fusestatic = False
    return spec


def mujoco_model(path: Path, root: Path) -> mujoco.MjModel:
    """A model as MuJoCo compiles it. The mesh addresses of a URDF are resolved where MuJoCo alone
    does not find the files."""
    try:
        return common.mujoco_compile(read_spec(path))
    except common.Refused:
        if path.suffix != ".urdf":
            raise
        spec = read_spec(path)
        spec.strippath = False
        spec.meshdir = ""
        for mesh in spec.meshes:
            found = find_mesh(mesh.file, path, package_roots(path, root))
            if found:
                mesh.file = str(found.resolve())
        return common.mujoco_compile(spec)


def numbers_at(model: mujoco.MjModel, data: mujoco.MjData, key: int) -> tuple[Any, Any]:
    """Mass matrix, unless it is too large, and smooth acceleration at a keyframe (-1: qpos0)."""
    mujoco.mj_resetData(model, data)
    if key >= 0:
        mujoco.mj_resetDataKeyframe(model, data, key)
    mujoco.mj_forward(model, data)
    matrix = None
    if model.nv <= MAX_DOFS_COMPARED:
        matrix = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, matrix)
    return matrix, np.array(data.qacc_smooth)


def examine_theirs(path: Path, root: Path, send: Callable[[Theirs], None]) -> None:
    """MuJoCo's half. Sends twice, so that a model that is slow to step still counts as loaded."""
    found = Theirs()
    try:
        model = mujoco_model(path, root)
    except common.Refused as reason:
        found.reason = str(reason)
        send(found)
        return
    found.loads = True
    found.bodies, found.dofs, found.keyframes = model.nbody - 1, model.nv, model.nkey
    found.mass_kg = float(model.body_mass.sum())
    found.trouble = "stepping takes too long"
    send(found)
    if model.nv == 0:
        found.trouble = ""
        send(found)
        return
    data = mujoco.MjData(model)
    found.poses = [
        numbers_at(model, data, key) for key in range(-1, min(model.nkey, MAX_KEYFRAMES))
    ]
    send(found)
    mujoco.mj_resetData(model, data)
    began = time.process_time()
    mujoco.mj_step(model, data, STEPS)
    found.step_us = (time.process_time() - began) / STEPS * 1e6
    diverged = any(data.warning[int(w)].number for w in BAD_STATES)
    found.trouble = "diverges" if diverged else ""
    send(found)


def in_process(work: Callable[[Callable[[Any], None]], None], limit_s: float) -> tuple[Any, str]:
    """Runs `work` in a forked process; the last thing that it sent, and how it ended badly."""
    with tempfile.TemporaryFile() as sent:
        child = os.fork()
        if child == 0:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))

            def send(what: Any) -> None:
                sent.seek(0)
                sent.write(pickle.dumps(what))
                sent.flush()

            code = 0
            try:
                work(send)
            except BaseException as error:  # the reason travels to the table
                send(Theirs(reason=f"{type(error).__name__}: {error}"))
                code = 1
            os._exit(code)
        deadline = time.monotonic() + limit_s
        ended, ending = 0, ""
        while ended == 0:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended == 0 and time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
                ended, status = os.waitpid(child, 0)
                ending = "takes too long"
            elif ended == 0:
                time.sleep(0.005)
        if not ending and os.WIFSIGNALED(status):
            ending = f"signal {os.WTERMSIG(status)}"
        sent.seek(0)
        raw = sent.read()
        return (pickle.loads(raw) if raw else None), ending


def theirs(path: Path, root: Path) -> Theirs:
    """MuJoCo's half, in a process of its own."""
    with warnings.catch_warnings(action="ignore"):
        found, ending = in_process(
            lambda send: examine_theirs(path, root, send), LOAD_LIMIT_S + STEP_LIMIT_S
        )
    if not isinstance(found, Theirs):
        return Theirs(reason=ending or "no answer")
    if ending and ending != "takes too long":
        found.trouble = ending
    return found


def tribo(limit_s: float, *arguments: str | Path) -> tuple[dict[str, Any] | None, str, float]:
    """Runs `tribo ... --json`: its object, else the message of the failure, and the share of a
    processor that it had."""
    command = [common.TRIBO, *map(str, arguments), "--json"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=limit_s,
            check=False,
            preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES)
            ),
        )
    except subprocess.TimeoutExpired:
        return None, f"takes more than {limit_s:g} s", 1.0
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    share = min(1.0, used / wall)
    if done.returncode < 0:
        return None, f"signal {-done.returncode} ended it", share
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return None, (lines[-1] if lines else f"exit status {done.returncode}"), share
    if "counts" not in answer and "certificate" not in answer:
        return None, str(answer.get("message", lines[-1:])), share
    answer["messages"] = lines
    return answer, "", share


def ours(path: Path, root: Path, reference: Theirs, stage: str) -> Ours:
    """Tribod's half up to a stage: load, numbers or steps."""
    found = Ours()
    roots = ":".join(str(p) for p in package_roots(path, root))
    options = ["--package-path", roots] if path.suffix == ".urdf" else []
    asked = ["--acceleration", "--mass-matrix"]
    if stage == "load" or not reference.poses:
        asked = []
    elif reference.poses[0][0] is None:
        asked.pop()
    began = time.monotonic()
    answer, found.reason, share = tribo(LOAD_LIMIT_S, "info", path, *options, *asked)
    found.load_s = (time.monotonic() - began) * share
    if answer is None:
        found.reason = found.reason.removeprefix("tribo: ").replace(str(root) + "/", "")
        return found
    found.loads = True
    found.warnings = list(map(str, answer.get("warnings", [])))
    compare_numbers(found, answer, reference)
    # MuJoCo's count includes the empty ones of <size nkey="..."/>
    keys = min(answer["counts"]["keyframes"], MAX_KEYFRAMES)
    for key in range(min(keys, len(reference.poses) - 1) if asked else 0):
        at, reason, _ = tribo(LOAD_LIMIT_S, "info", path, *options, *asked, "--keyframe", str(key))
        if at is None:
            found.wrong_counts = f"key {key}: {reason}"
        else:
            compare_pose(found, at, *reference.poses[key + 1])
    if stage == "steps" and answer["counts"]["dofs"] > 0:
        poses = [None, *range(keys)]
        found.runs = [one_run(path, options, pose) for pose in poses]
        found.runs[0] |= step_time(path, options)
    return found


def compare_numbers(found: Ours, answer: dict[str, Any], reference: Theirs) -> None:
    """Dofs, mass, and the numbers at qpos0 beside MuJoCo's."""
    if answer["counts"]["dofs"] != reference.dofs:
        found.wrong_counts = f"{answer['counts']['dofs']} dofs, not {reference.dofs}"
        return
    scale = max(abs(reference.mass_kg), 1e-12)
    found.of_mass = abs(answer["total_mass"] - reference.mass_kg) / scale
    if reference.poses:
        compare_pose(found, answer, *reference.poses[0])


def compare_pose(found: Ours, answer: dict[str, Any], matrix: Any, acceleration: Any) -> None:
    """Mass matrix and acceleration in one pose beside MuJoCo's; the worst pose counts."""
    if "acceleration" in answer:
        difference = np.abs(np.array(answer["acceleration"]) - acceleration)
        worst = float(difference.max() / max(1, np.abs(acceleration).max()))
        found.of_acceleration = max(found.of_acceleration, worst)
    if "mass_matrix" in answer and matrix is not None:
        size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        difference = np.abs(np.array(answer["mass_matrix"]) - matrix)
        found.of_mass_matrix = max(
            found.of_mass_matrix, float((difference / np.outer(size, size)).max())
        )


def step_time(path: Path, options: list[str]) -> dict[str, Any]:
    """Processor time of a step from qpos0, in us; nothing where the run does not end.

    The account of energy is left out, since mj_step makes none unless a model asks for it.
    """
    answer, _, share = tribo(STEP_LIMIT_S, "run", path, *HOW, *options, "--no-energy")
    if answer is None:
        return {}
    return {"step_us": answer["seconds"] / max(1, answer["steps"]) * share * 1e6}


def one_run(path: Path, options: list[str], keyframe: int | None) -> dict[str, Any]:
    """STEPS steps from qpos0 or a keyframe."""
    start = [] if keyframe is None else ["--keyframe", str(keyframe)]
    answer, reason, _ = tribo(STEP_LIMIT_S, "run", path, *HOW, *options, *start)
    run: dict[str, Any] = {"start": "qpos0" if keyframe is None else f"key {keyframe}"}
    if answer is None:
        run["status"] = "TIMEOUT" if reason.startswith("takes more") else "ERROR"
        run["reason"] = reason
        return run
    certificate = answer["certificate"]
    run["status"] = answer["status"]
    run["reason"] = " ".join(m for m in answer["messages"] if ": warning: " not in m)
    run["steps"] = answer["steps"]
    run["speed"] = max(
        (math.hypot(*b["linear_velocity"]) for b in answer["bodies"].values()), default=0.0
    )
    kept = ("residual", "penetration", "closure_error", "iterations")
    run |= {k: certificate[k] for k in kept if k in certificate}
    run |= {k: v for k, v in certificate.items() if k.startswith("energy")}
    if run.get("energy_bound", 0) > 0:
        run["energy_of_bound"] = run["energy_unexplained"] / run["energy_bound"]
    run["faults"] = certificate.get("faults", 0)
    return run
