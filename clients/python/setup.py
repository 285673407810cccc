"""Builds the package: generates the protobuf modules of `tribo.v1` from the project's proto folder.

The generated files are not kept in version control. A source distribution carries copies of the
.proto files, so that it builds without the rest of the project.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

from setuptools import setup
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent


def load_generate() -> ModuleType:
    """generate.py, which stands beside this file and is no package."""
    spec = importlib.util.spec_from_file_location("generate", HERE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return generate


class SourceDistribution(sdist):
    """Adds the .proto files, and what generates modules of them."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copies what is in no list of files."""
        super().make_release_tree(base_dir, files)
        root = generate.proto_root() / "tribo" / "v1"
        target = Path(base_dir) / "proto" / "tribo" / "v1"
        target.mkdir(parents=True, exist_ok=True)
        for proto in sorted(root.glob("*.proto")):
            shutil.copy(proto, target)
        shutil.copy(HERE / "generate.py", base_dir)


# the list of packages is checked before anything is built: tribo.v1 must be there by then
generate = load_generate()
generate.generate(HERE / "src")
setup(cmdclass={"sdist": SourceDistribution})
