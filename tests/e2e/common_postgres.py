"""A PostgreSQL server of a test: in a temporary folder, by an unprivileged user, without fsync."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from common_process import free_port


def find_programs() -> Path | None:
    """The folder with initdb and postgres; None where PostgreSQL is not installed."""
    on_path = shutil.which("initdb")
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if on_path:
        return Path(on_path).resolve().parent
    return Path(folders[-1]) if folders else None


class Postgres:
    """One server with trust for loopback. `kill` and `start` play an outage; the data stay."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="tribo-postgres-"))
        self._data = self._folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to run as root
        user = pwd.getpwnam("nobody")
        self._prefix = (
            ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
            if os.geteuid() == 0
            else []
        )
        if self._prefix:
            os.chown(self._folder, user.pw_uid, user.pw_gid)
        self.port = free_port()
        self._run("initdb", "-D", str(self._data), "-U", "tribo", "-A", "trust", "-E", "UTF8")
        self.start()

    @property
    def url(self) -> str:
        """For `[fleet] outbox`."""
        return f"postgresql://tribo@127.0.0.1:{self.port}/postgres"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*self._prefix, str(self._programs / program), *arguments],
            check=True,
            capture_output=True,
            cwd=self._folder,
        )

    def start(self) -> None:
        """Starts it and waits until it answers."""
        options = [f"port={self.port}", "listen_addresses=127.0.0.1", "fsync=off"]
        options += [f"unix_socket_directories={self._folder}", "max_connections=40"]
        flags = [word for option in options for word in ("-c", option)]
        self._process = subprocess.Popen(
            [*self._prefix, str(self._programs / "postgres"), "-D", str(self._data), *flags],
            stdout=subprocess.DEVNULL,
            stderr=(self._folder / "log").open("ab"),
            cwd=self._folder,
        )
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if self.ask("SELECT 1") == [["1"]]:
                    return
            except subprocess.CalledProcessError:
                time.sleep(0.1)
        raise TimeoutError((self._folder / "log").read_text()[-2000:])

    def signal(self, number: int) -> None:
        """Sends a signal to the server and its processes."""
        assert self._process is not None
        subprocess.run(["pkill", f"-{number}", "-P", str(self._process.pid)], check=False)
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """Ends it without a farewell; committed rows are there at the next start."""
        assert self._process is not None
        # an immediate shutdown leaves recovery to the start, as a crash does, and no processes
        os.kill(self._process.pid, signal.SIGQUIT)
        self._process.wait()
        self._process = None

    def ask(self, sql: str) -> list[list[str]]:
        """Rows of a statement as text."""
        answer = subprocess.run(
            [str(self._programs / "psql"), "-X", "-A", "-t", "-F", "\t", "-c", sql, self.url],
            check=True,
            capture_output=True,
            text=True,
        )
        return [line.split("\t") for line in answer.stdout.splitlines()]

    def close(self) -> None:
        """Ends it and removes its folder."""
        if self._process is not None:
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
