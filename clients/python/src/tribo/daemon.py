"""Starts a private daemon for tests, notebooks and scripts without a server."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from tribo.client import Client, connect
from tribo.errors import UnavailableError

if TYPE_CHECKING:
    from typing_extensions import Self


def find_binary() -> str:
    """Finds tribod: $TRIBOD, the package itself, PATH, a checkout's build folder."""
    named = os.environ.get("TRIBOD")
    if named:
        return named
    inside = Path(__file__).resolve().parent / "bin" / "tribod"
    if inside.exists():
        return str(inside)
    found = shutil.which("tribod")
    if found:
        return found
    for folder in Path(__file__).resolve().parents:
        candidate = folder / "build" / "tribod"
        if candidate.exists():
            return str(candidate)
    raise FileNotFoundError("tribod: not in $TRIBOD, the package, PATH or a build folder")


class Daemon:
    """A private daemon on loopback with its own ports and data; stopped at the end.

        with tribo.Daemon() as daemon, daemon.connect() as client:
            ...

    Attributes:
        grpc: its gRPC address, "127.0.0.1:PORT".
        http: its HTTP address.
        log: path of its log.
    """

    def __init__(
        self,
        *,
        binary: str | None = None,
        data: str | Path | None = None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        seconds: float = 30.0,
    ) -> None:
        """Starts it and waits until it is ready.

        Args:
            binary: path of tribod; None looks for it.
            data: folder of its store; None: a temporary one, removed at the end.
            arguments: further flags.
            environment: further variables.
            seconds: time limit for its start.
        """
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if data is None:
            self._folder = tempfile.TemporaryDirectory(prefix="tribod-")
            data = Path(self._folder.name) / "data"
        Path(data).mkdir(parents=True, exist_ok=True)
        self.data = Path(data)
        self.log = self.data / "tribod.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    binary or find_binary(),
                    "--grpc",
                    "127.0.0.1:0",
                    "--http",
                    "127.0.0.1:0",
                    "--data",
                    str(data),
                    *arguments,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
            )
        try:
            line = self._first_line(seconds)
        except BaseException:
            self._end()
            raise
        words = dict(word.partition("=")[::2] for word in line.split()[1:])
        if not line.startswith("ready ") or "grpc" not in words:
            status = self._process.poll()
            how = f"was not ready after {seconds:g} s" if status is None else f"ended with {status}"
            self._process.kill()
            self._process.wait()
            tail = self._log_tail()
            self._end()
            raise UnavailableError(f"tribod {how}; its log:\n{tail}")
        self.grpc: str = words["grpc"]
        self.http: str = words.get("http", "")

    def _first_line(self, seconds: float) -> str:
        lines: list[bytes] = []
        output = self._process.stdout
        assert output is not None
        reader = threading.Thread(target=lambda: lines.append(output.readline()), daemon=True)
        reader.start()
        reader.join(seconds)
        if lines and not lines[0]:
            # the output has ended, so the process will exit soon: wait for its status
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
        return lines[0].decode("utf-8", "replace") if lines else ""

    def _log_tail(self) -> str:
        return self.log.read_text("utf-8", "replace")[-2000:]

    @property
    def pid(self) -> int:
        """The daemon's process id."""
        return self._process.pid

    def connect(self, *, api_key: str | None = None, timeout: float | None = None) -> Client:
        """A client of this daemon."""
        return connect(self.grpc, api_key=api_key, timeout=timeout)

    def stop(self, seconds: float = 30.0) -> int:
        """Asks it to drain and stop; kills it after `seconds`. Returns its exit status."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._end()
        return status

    def wait(self, seconds: float = 30.0) -> int:
        """Waits until the process exits by itself. Returns its exit status."""
        return self._process.wait(seconds)

    def _end(self) -> None:
        """Releases the process, the pipe and the temporary folder."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def kill(self) -> None:
        """Kills the process (SIGKILL) as a crash would; keeps its data if a folder was given."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
