"""libtribo by cffi: its declarations, its errors, and where it is found."""

from __future__ import annotations

import ctypes.util
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from tribo import errors

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class Library(NamedTuple):
    """cffi's view of the library: `ffi` makes its types, `call` is its functions."""

    ffi: Any
    call: Any

    def error(self) -> Any:
        """A tb_error to pass to a function."""
        return self.ffi.new("tb_error *")

    def check(self, status: int, error: Any) -> None:
        """Raises the `TriboError` of a status that is not OK."""
        if status == self.call.TB_OK:
            return
        code = _CODES[self.call.tb_status_grpc(status)]
        message = self.text(error.message) or self.text(self.call.tb_status_text(status))
        file = self.text(error.file)
        if file and file not in message:
            message = f"{file}:{error.line}: {message}" if error.line else f"{file}: {message}"
        reason = self.text(self.call.tb_status_name(status))
        raise errors.of_code(message, code, field=self.text(error.field), reason=reason)

    def text(self, value: Any) -> str:
        """A C string; "" for NULL."""
        if value == self.ffi.NULL:
            return ""
        raw: bytes = self.ffi.string(value)
        return raw.decode("utf-8", "replace")


def find_library() -> str:
    """Finds libtribo: $TRIBO_LIBRARY, the package itself, the system, a checkout's build folder."""
    named = os.environ.get("TRIBO_LIBRARY")
    if named:
        return named
    package = Path(__file__).resolve().parent.parent
    for inside in sorted((package / "lib").glob("libtribo.so.*")):
        return str(inside)
    builds = [os.environ["TRIBO_BUILD"]] if os.environ.get("TRIBO_BUILD") else []
    for folder in (*map(Path, builds), *(parent / "build" for parent in package.parents)):
        if (folder / "libtribo.so").exists():
            return str((folder / "libtribo.so").resolve())
    found = ctypes.util.find_library("tribo")
    if found:
        return found
    raise FileNotFoundError(
        "libtribo.so: not in $TRIBO_LIBRARY, the package, a build folder or the system"
    )


@lru_cache(maxsize=1)
def library() -> Library:
    """The library, loaded once."""
    try:
        import cffi
    except ImportError as error:
        raise ImportError("tribo.local needs cffi: pip install 'tribo[local]'") from error
    ffi = cffi.FFI()
    declared = (Path(__file__).resolve().parent.parent / "libtribo.h").read_text()
    ffi.cdef(declared)
    path = find_library()
    call = ffi.dlopen(path)
    # structs of another layout would be read and written beyond their ends
    abi = re.findall(r"\btb_abi_\w+", declared)[0]
    try:
        ffi.addressof(call, abi)
    except AttributeError:
        raise FileNotFoundError(
            f"{path} was built from other headers than this package: install both from one release"
        ) from None
    return Library(ffi, call)
