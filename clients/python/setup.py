"""Builds the package: generates the protobuf modules of `tribo.v1` from the project's proto folder.

The generated files are not kept in version control. A source distribution carries copies of the
.proto files and of libtribo's header, so that it builds without the rest of the project.

A wheel holds the programs too where $TRIBO_PROGRAMS names a folder with `tribod`, `tribo` and
libtribo.so.*: they are copied into tribo/bin and tribo/lib, and the wheel is one of its platform.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from types import ModuleType

from setuptools import Distribution, setup
from setuptools.command.sdist import sdist

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent


def load_generate() -> ModuleType:
    """Loads generate.py, a script in this folder outside of any package."""
    spec = importlib.util.spec_from_file_location("generate", HERE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return generate


class SourceDistribution(sdist):
    """Adds the .proto files and their generator."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copies the files that no list names."""
        super().make_release_tree(base_dir, files)
        root = generate.proto_root() / "tribo" / "v1"
        target = Path(base_dir) / "proto" / "tribo" / "v1"
        target.mkdir(parents=True, exist_ok=True)
        for proto in sorted(root.glob("*.proto")):
            shutil.copy(proto, target)
        include = Path(base_dir) / "include"
        include.mkdir(exist_ok=True)
        for header in generate.library_headers()[-1].parent.glob("tribo*.h"):
            shutil.copy(header, include)
        shutil.copy(HERE / "generate.py", base_dir)


def copy_programs(source: Path, package: Path) -> None:
    """Copies the programs and libtribo under the names by which the package looks for them."""
    for folder, patterns in {"bin": ("tribod", "tribo"), "lib": ("libtribo.so.*.*",)}.items():
        target = package / folder
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for pattern in patterns:
            found = [path for path in source.glob(pattern) if path.is_file()]
            if len(found) != 1:
                raise FileNotFoundError(f"$TRIBO_PROGRAMS: {len(found)} files {source / pattern}")
            shutil.copy(found[0], target)


class PlatformWheel(bdist_wheel):  # type: ignore[misc]
    """A wheel with programs fits every Python 3 of one platform."""

    def get_tag(self) -> tuple[str, str, str]:
        """Interpreter, ABI, platform."""
        return ("py3", "none", super().get_tag()[2])


class WithPrograms(Distribution):
    """Has files of one platform, which setuptools only believes of extension modules."""

    def has_ext_modules(self) -> bool:
        """Says so."""
        return True


# the list of packages is checked before anything is built: tribo.v1 must be there by then
generate = load_generate()
generate.generate(HERE / "src")
programs = os.environ.get("TRIBO_PROGRAMS")
if programs:
    copy_programs(Path(programs), HERE / "src" / "tribo")
    setup(
        cmdclass={"sdist": SourceDistribution, "bdist_wheel": PlatformWheel},
        distclass=WithPrograms,
    )
else:
    for folder in ("bin", "lib"):
        shutil.rmtree(HERE / "src" / "tribo" / folder, ignore_errors=True)
    setup(cmdclass={"sdist": SourceDistribution})
