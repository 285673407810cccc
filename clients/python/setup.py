"""Builds the package: generates the protobuf modules of `tribo.v1` from the project's proto folder.

The generated files are not kept in version control. A source distribution carries copies of the
.proto files, so that it builds without the rest of the project.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent


def generate_stubs() -> None:
    """Runs generate.py, which stands beside this file and is no package."""
    spec = importlib.util.spec_from_file_location("generate", HERE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    generate.generate(HERE / "src")


# the list of packages is checked before anything is built: tribo.v1 must be there by then
generate_stubs()
setup()
