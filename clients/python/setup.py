"""Builds the package: generates the protobuf modules of `tribo.v1` from the project's proto folder.

The generated files are not kept in version control. A source distribution carries copies of the
.proto files, so that it builds without the rest of the project.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent


class BuildWithStubs(build_py):
    """`build_py` that first generates `tribo/v1`."""

    def run(self) -> None:
        """Generates into the source tree, then builds as usual."""
        spec = importlib.util.spec_from_file_location("generate", HERE / "generate.py")
        assert spec is not None
        assert spec.loader is not None
        generate = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(generate)
        generate.generate(HERE / "src")
        super().run()


setup(cmdclass={"build_py": BuildWithStubs})
