"""A private daemon, and calls to it over HTTP in JSON. Needs nothing but Python."""

from __future__ import annotations

import base64
import http.client
import json
import os
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

GRACE_S = 20.0  # to end in when it is asked to


class Daemon:
    """A daemon and one connection to it. It keeps its data in `data`; without, in memory. As a
    context it ends with the block, however that ends."""

    def __init__(self, build: Path, environment: dict[str, str], data: Path | None = None) -> None:
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [build / "tribod", "--grpc", "", "--http", "127.0.0.1:0", "--data", data or ""],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "http=" not in line:
            raise SystemExit(f"no daemon: {line}{self.close()}")
        self.ready_seconds = time.monotonic() - self.began
        self.address = line.split("http=")[1].split()[0]
        self.link = self.connect()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.close()

    def close(self) -> str:
        """Asks it to end, then makes it; its log."""
        self.process.terminate()
        try:
            return self.process.communicate(timeout=GRACE_S)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.communicate()[1]

    def connect(self) -> http.client.HTTPConnection:
        """Another connection."""
        return http.client.HTTPConnection(self.address, timeout=60)

    def call(
        self, method: str, link: http.client.HTTPConnection | None = None, **request: Any
    ) -> dict[str, Any]:
        """One unary call of Connect's protocol in JSON."""
        link = link or self.link
        link.request(
            "POST",
            f"/tribo.v1.{method}",
            json.dumps(request),
            {"Content-Type": "application/json"},
        )
        answer = link.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{method}: {answer.status} {body[:400].decode()}")
        told: dict[str, Any] = json.loads(body)
        return told

    def stream(self, method: str, **request: Any) -> list[tuple[float, dict[str, Any]]]:
        """All messages of a server's stream, with the time of each."""
        data = json.dumps(request).encode()
        self.link.request(
            "POST",
            f"/tribo.v1.{method}",
            struct.pack(">BI", 0, len(data)) + data,
            {"Content-Type": "application/connect+json"},
        )
        answer = self.link.getresponse()
        messages = []
        while head := answer.read(5):
            _, size = struct.unpack(">BI", head)
            messages.append((time.monotonic(), json.loads(answer.read(size))))
        return messages

    def metrics(self) -> dict[str, float]:
        """Numbers of the metrics page that bear a device's name."""
        self.link.request("GET", "/metrics")
        lines = self.link.getresponse().read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if "device=" in line and line[0] != "#")
        return {name: float(value) for name, value in pairs}

    def stop(self) -> tuple[int, str]:
        """Exit status and log."""
        self.process.terminate()
        return self.end()

    def end(self) -> tuple[int, str]:
        """The same of one that ends by itself."""
        _, log = self.process.communicate(timeout=60)
        return self.process.returncode, log


def put_scene(daemon: Daemon, folder: Path, main: str, files: list[str]) -> str:
    """Uploads a scene and its files."""
    digests = []
    for name in files:
        data = base64.b64encode((folder / name).read_bytes()).decode()
        asset = daemon.call("Simulation/CreateAsset", name=name, data=data)
        digests.append({"path": name, "sha256": asset["sha256"]})
    text = (folder / main).read_text()
    made = daemon.call("Simulation/CreateScene", text=text, path=main, files=digests)
    return str(made["sceneId"])


def session(daemon: Daemon, scene: str, device: str, worlds: int = 1, **more: Any) -> str:
    """A new one."""
    made = daemon.call(
        "Simulation/CreateSession", sceneId=scene, worlds=worlds, device=device, **more
    )
    assert device in ("", made["device"]), made
    return str(made["sessionId"])
