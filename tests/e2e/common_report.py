"""Counts the checks of a test script, in the words that run_all.sh reads."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Failure = TypeVar("Failure", bound=Exception)


class Report:
    """Counts checks and prints those that fail."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        self.skipped = 0

    def check(self, good: bool, what: str) -> bool:
        """One check."""
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what}", flush=True)
        return good

    def equal(self, got: object, expected: object, what: str) -> bool:
        """Checks that two values are equal."""
        return self.check(got == expected, f"{what}: {got!r}, not {expected!r}")

    def skip(self, why: str) -> None:
        """Prints a line that the runner counts."""
        self.skipped += 1
        print(f"SKIPPED {why}", flush=True)

    def raises(self, kind: type[Failure], what: str, call: Callable[[], object]) -> Failure | None:
        """Checks that a call raises this error, and gives it."""
        try:
            call()
        except kind as error:
            self.passed += 1
            return error
        except Exception as error:
            self.check(False, f"{what}: {type(error).__name__}: {error}")
            return None
        self.check(False, f"{what}: nothing was raised")
        return None

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        """A part of the test: an exception is a failure of this part alone."""
        began = time.monotonic()
        try:
            yield
        except Exception:
            self.check(False, f"{name}\n{traceback.format_exc()}")
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)

    def finish(self) -> None:
        """Prints the sum and ends the program."""
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.exit(self.failed > 0)
