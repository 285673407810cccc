"""Generates the modules and declarations that derive from other folders: `generate.py [FOLDER]`.

The protobuf and gRPC modules of `tribo.v1`, and the declarations of libtribo for `tribo.local`.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def proto_root() -> Path:
    """The folder that holds tribo/v1/*.proto: of the checkout, or of a source distribution."""
    for root in (HERE.parent.parent / "proto", HERE / "proto"):
        if (root / "tribo" / "v1" / "common.proto").exists():
            return root
    raise FileNotFoundError("tribo/v1/common.proto: not in the checkout and not beside generate.py")


def library_headers() -> list[Path]:
    """tribo.h of libtribo and the headers that it includes: of the checkout, or of an sdist."""
    for folder in (HERE.parent.parent / "solver", HERE / "include"):
        main = folder / "tribo.h"
        if main.exists():
            parts = re.findall(r'^#include "(\w+\.h)"', main.read_text(), flags=re.M)
            return [*(folder / part for part in parts), main]
    raise FileNotFoundError("tribo.h: not in the checkout and not beside generate.py")


def abi() -> str:
    """The symbol by which a libtribo of these very headers is known (Makefile, ABI)."""
    folder = library_headers()[-1].parent
    text = b"".join(header.read_bytes() for header in sorted(folder.glob("tribo*.h")))
    return f"tb_abi_{hashlib.sha256(text).hexdigest()[:16]}"


def declarations(header: str) -> str:
    """The declarations of a header of libtribo, as cffi reads them: no comments, no directives."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    statuses = re.findall(r"^\s*X\((\w+),", text, flags=re.M)
    text = text.replace("\\\n", "")
    text = re.sub(
        r"#define TB_STATUS_ENUM.*?#undef TB_STATUS_ENUM",
        ", ".join(f"TB_{status}" for status in statuses),
        text,
        flags=re.S,
    )
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.S | re.M)
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    return re.sub(r"\n\s*\n+", "\n", text)


def _free_of_versions(module: Path) -> None:
    """Removes the code that ties a module to the release that generated it.

    The modules hold serialized descriptors, which every protobuf runtime from 4.25 on reads, and
    stubs that every grpcio from 1.62 on runs. Generators since then add checks that refuse all
    runtimes older than themselves, and a keyword that older grpcio does not know.
    """
    text = module.read_text()
    text = re.sub(r"^from google\.protobuf import runtime_version.*\n", "", text, flags=re.M)
    text = re.sub(r"^_runtime_version\.Validate\w+\((?:\n.*?)*?\n\)\n", "", text, flags=re.M)
    text = re.sub(r"^GRPC_GENERATED_VERSION(?:.*\n)*?(?=\n\nclass |\Z)", "", text, flags=re.M)
    text = re.sub(r",\s*_registered_method=True", "", text)
    text = re.sub(r"^ *server\.add_registered_method_handlers\(.*\)\n", "", text, flags=re.M)
    module.write_text(text)


def generate(target: Path) -> None:
    """Writes target/tribo/v1/*_pb2.py, *_pb2.pyi, *_pb2_grpc.py and target/tribo/libtribo.h."""
    from grpc_tools import protoc

    root = proto_root()
    files = sorted((root / "tribo" / "v1").glob("*.proto"))
    target.mkdir(parents=True, exist_ok=True)
    arguments = [
        "protoc",
        f"-I{root}",
        f"--python_out={target}",
        f"--pyi_out={target}",
        f"--grpc_python_out={target}",
        *map(str, files),
    ]
    if protoc.main(arguments) != 0:
        raise RuntimeError("protoc failed")
    for module in (target / "tribo" / "v1").glob("*_pb2*.py"):
        _free_of_versions(module)
    package = target / "tribo" / "v1" / "__init__.py"
    package.write_text('"""Messages and stubs generated from the .proto files."""\n')
    text = "".join(declarations(header.read_text()) for header in library_headers())
    (target / "tribo" / "libtribo.h").write_text(f"extern char {abi()};\n{text}")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "src")
