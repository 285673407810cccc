"""Shared by test scripts that start programs: free ports, memory of a process."""

from __future__ import annotations

import socket
from pathlib import Path


def free_ports(count: int) -> list[int]:
    """Different ports without a listener."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports


def free_port() -> int:
    """A port without a listener."""
    return free_ports(1)[0]


def resident_bytes(pid: int, key: str = "VmRSS") -> int:
    """Resident memory of a process; with the key VmHWM its largest so far."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(pid)
