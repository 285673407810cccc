"""Progress of long calls: tqdm's bar if installed, else a plain line."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable

_INTERVAL_S = 0.5


class Progress:
    """Shows the progress of a call; does nothing unless enabled."""

    def __init__(self, wanted: bool | Callable[[int, int], None], unit: str) -> None:
        self._callback = wanted if callable(wanted) else None
        self._wanted = bool(wanted) and self._callback is None
        self._unit = unit
        self._bar: Any = None
        self._last = 0.0
        self._line = False

    def show(self, done: int, total: int) -> None:
        """`done` of `total`."""
        if self._callback is not None:
            self._callback(done, total)
        if not self._wanted:
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._show_line(done, total)
            return
        if self._bar is None:
            self._bar = tqdm(total=total, unit=" world steps", unit_scale=True, desc=self._unit)
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def _show_line(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self._last < _INTERVAL_S:
            return
        self._last = now
        self._line = True
        sys.stderr.write(f"\r{self._unit}: {100.0 * done / max(total, 1):5.1f} %")
        sys.stderr.flush()

    def close(self) -> None:
        """Ends the bar or the line."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self._line:
            sys.stderr.write("\n")
            self._line = False
