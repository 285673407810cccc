"""Shared by test scripts that start programs: free ports, memory and time of a process."""

from __future__ import annotations

import os
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


def processor_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
