"""Starts the programs of run.py, shows their progress, and keeps their output."""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import tables

Command = Sequence[object]
Process = subprocess.Popen[str]


def kill(process: Process) -> None:
    """With all that it has started: a daemon or a sanitized program would go on without it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class Runner:
    """Seconds `limit` a program. `results` are rows of JSON, `failures` lines for people; `keep` is
    called when there are more of them. Each program is in a group of its own, which ends with this
    process at the latest."""

    def __init__(self, build: Path, limit: int) -> None:
        self.build, self.limit = build, limit
        self.results: list[dict[str, Any]] = []
        self.failures: list[str] = []
        self.keep: Callable[[], None] = lambda: None
        self.running: set[Process] = set()
        self.environment = {
            "TRIBO_GPU_PLUGIN": str(build / "libtribo_gpu.so"),
            **os.environ,
            "TRIBO_BUILD": str(build),
            "PYTHONUNBUFFERED": "1",
            "CK_DEFAULT_TIMEOUT": str(limit),
        }
        atexit.register(self.end)

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def fail(self, part: str, why: str) -> None:
        self.failures.append(f"{part}: {why}")
        self.say(f"FAILED {part}: {why}")

    def start(self, command: Command, **environment: str) -> Process:
        process = subprocess.Popen(
            [str(word) for word in command], text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**self.environment, **environment}, start_new_session=True,
        )  # fmt: skip
        self.running.add(process)
        return process

    def end(self) -> None:
        """Kills the programs that still run."""
        for process in self.running:
            kill(process)

    def lines(self, part: str, command: Command, **environment: str) -> Iterator[str]:
        """Output of a program while it runs. A failure or a timeout is recorded."""
        self.say("+ " + " ".join(str(word) for word in command))
        began = time.monotonic()
        try:
            process = self.start(command, **environment)
        except OSError as error:
            self.fail(part, str(error))
            return
        late = threading.Event()

        def stop() -> None:
            late.set()
            kill(process)

        timer = threading.Timer(self.limit, stop)
        timer.start()
        tail: list[str] = []
        assert process.stdout is not None
        try:
            for line in process.stdout:
                tail = [*tail[-7:], line.rstrip()]
                yield line.rstrip()
            code = process.wait()
        finally:
            timer.cancel()
            if process.poll() is None:
                kill(process)
            self.running.discard(process)
        if code != 0 or late.is_set():
            why = f"ended with {code} after {time.monotonic() - began:.0f} s"
            if late.is_set():
                why = f"longer than {self.limit} s"
            self.fail(part, f"{why}: {' / '.join(tail) or ' '.join(map(str, command))}")

    def collect(self, part: str, command: Command, **environment: str) -> list[dict[str, Any]]:
        """Keeps a program's lines of JSON, which it gives; one that prints none has failed."""
        before = len(self.results)
        failed = len(self.failures)
        for line in self.lines(part, command, **environment):
            if line.startswith("{"):
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                self.results.append({"of": part, **row})
                self.keep()
                self.say("  " + tables.brief(row))
            elif line.startswith("bench:"):
                self.say("  " + line)
        if len(self.results) == before and len(self.failures) == failed:
            self.fail(part, "no result")
        return self.results[before:]

    def together(self, part: str, commands: Sequence[Command]) -> None:
        """Runs programs side by side for their compiled kernels. Other failures will show again
        when they are measured."""
        began = time.monotonic()
        running = []
        for command in commands:
            self.say("& " + " ".join(str(word) for word in command))
            try:
                running.append((command, self.start(command)))
            except OSError as error:
                self.fail(part, str(error))
        for command, process in running:
            try:
                process.communicate(timeout=max(1.0, self.limit - (time.monotonic() - began)))
            except subprocess.TimeoutExpired:
                kill(process)
                process.communicate()
                words = " ".join(str(word) for word in command)
                self.fail(part, f"longer than {self.limit} s: {words}")
            self.running.discard(process)
        self.say(f"  side by side in {time.monotonic() - began:.0f} s")
