#!/usr/bin/env python3
"""Uploads that take long to parse hold up no other call and no drain, within their memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, Report, scratch
from common_process import resident_bytes

MIB = 1 << 20


class Http:
    """A daemon on a free port and its JSON methods."""

    def __init__(self, folder: Path, **settings: str) -> None:
        environment = {**os.environ, **{f"TRIBOD_{k}": v for k, v in settings.items()}}
        self.log = (folder / "log").open("w")
        self.process = subprocess.Popen(
            [
                os.environ["TRIBOD"],
                "--data",
                str(folder / "store"),
                "--grpc",
                "",
                "--http",
                "127.0.0.1:0",
            ],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        self.base = "http://" + self.process.stdout.readline().split("http=")[1].strip()

    def post(self, method: str, body: object, timeout: float = 60) -> dict:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.base}/tribo.v1.{method}", data, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)

    def refused(self, method: str, body: object) -> dict:
        """The error that a call ends with."""
        try:
            self.post(method, body)
        except urllib.error.HTTPError as error:
            return json.load(error)
        return {}

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


def ball_of_points(count: int) -> str:
    """An OBJ of points on a sphere: all of them corners of the hull, which takes qhull seconds."""
    import math

    golden = math.pi * (3 - math.sqrt(5))
    lines = []
    for i in range(count):
        z = 1 - 2 * (i + 0.5) / count
        r = math.sqrt(1 - z * z)
        lines.append(f"v {r * math.cos(golden * i):.9f} {r * math.sin(golden * i):.9f} {z:.9f}")
    return "\n".join(lines)


def main() -> None:
    report = Report()
    heavy = {"text": ball_of_points(300000), "path": "ball.obj"}
    with scratch() as folder:
        daemon = Http(folder, SERVER_DRAIN_SECONDS="8", LIMITS_UPLOAD_SECONDS="60")
        with report.case("others are answered while meshes are parsed"):
            scene = daemon.post("Simulation/CreateScene", {"text": BALL.decode()})["sceneId"]
            body = json.dumps(heavy).encode()
            heavies = [
                threading.Thread(target=daemon.refused, args=("Simulation/CreateScene", body))
                for _ in range(4)
            ]
            for thread in heavies:
                thread.start()
            time.sleep(1)
            slowest = 0.0
            for _ in range(10):
                begin = time.monotonic()
                session = daemon.post("Simulation/CreateSession", {"sceneId": scene})["sessionId"]
                daemon.post("Simulation/GetScene", {"sceneId": scene})
                daemon.post("Runs/ListRuns", {})
                daemon.post("Simulation/DeleteSession", {"sessionId": session})
                slowest = max(slowest, time.monotonic() - begin)
            report.check(any(thread.is_alive() for thread in heavies), "uploads were at work")
            report.check(slowest < 3, f"four calls took {slowest:.2f} s beside uploads")
        with report.case("a drain does not wait for them"):
            begin = time.monotonic()
            report.equal(daemon.end(), 0, "exit code of the drain")
            report.check(time.monotonic() - begin < 8, "the drain took its whole time")
            for thread in heavies:
                thread.join(10)

    with scratch() as folder:
        daemon = Http(
            folder,
            LIMITS_UPLOAD_MEMORY_BYTES="64 MiB",
            LIMITS_UPLOAD_SECONDS="2",
            LIMITS_SESSION_MEMORY_BYTES="256 MiB",
            LIMITS_CLIENT_MEMORY_BYTES="300 MiB",
        )
        with report.case("bombs end at the budget"):
            before = resident_bytes(daemon.process.pid)
            geoms = "<mujoco><worldbody>" + "<geom size='1'/>" * 600000 + "</worldbody></mujoco>"
            error = daemon.refused("Simulation/CreateScene", {"text": geoms})
            report.equal(error.get("code"), "resource_exhausted", "a scene beyond its memory")
            report.check("67108864 are allowed" in error.get("message", ""), f"says: {error}")
            begin = time.monotonic()
            error = daemon.refused("Simulation/CreateScene", heavy)
            report.equal(error.get("code"), "resource_exhausted", "a scene beyond its time")
            report.check(time.monotonic() - begin < 15, "time ends parsing")
            deadline = time.monotonic() + 15
            grown = resident_bytes(daemon.process.pid) - before
            while grown > 96 * MIB and time.monotonic() < deadline:
                time.sleep(0.5)
                grown = resident_bytes(daemon.process.pid) - before
            report.check(grown < 96 * MIB, f"{grown / MIB:.0f} MiB stayed after the bombs")
        with report.case("sessions are estimated before anything is taken"):
            scene = daemon.post("Simulation/CreateScene", {"text": BALL.decode()})["sceneId"]
            wanted = {"sceneId": scene, "worlds": 4096}
            first = daemon.post("Simulation/CreateSession", wanted)["sessionId"]
            second = daemon.post("Simulation/CreateSession", wanted)["sessionId"]
            error = daemon.refused("Simulation/CreateSession", wanted)
            report.equal(error.get("code"), "resource_exhausted", "a client beyond its memory")
            report.check(
                "a client may have 314572800" in error.get("message", ""), f"says: {error}"
            )
            daemon.post("Simulation/DeleteSession", {"sessionId": first})
            daemon.post("Simulation/DeleteSession", {"sessionId": second})
            time.sleep(0.5)
            third = daemon.post("Simulation/CreateSession", wanted)
            report.check("sessionId" in third, "what is given back can be had again")
        with report.case("a session beyond its memory is refused with the bytes"):
            row = "<body pos='{} 0 1'><freejoint/><geom size='.1'/></body>"
            bodies = "".join(row.format(i) for i in range(100))
            big = daemon.post(
                "Simulation/CreateScene",
                {"text": f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"},
            )["sceneId"]
            error = daemon.refused("Simulation/CreateSession", {"sceneId": big, "worlds": 4096})
            report.equal(error.get("code"), "resource_exhausted", "4096 worlds of 100 bodies")
            report.check("bytes of memory" in error.get("message", ""), f"says: {error}")
            report.check(resident_bytes(daemon.process.pid) < 400 * MIB, "nothing was taken for it")
        report.equal(daemon.end(), 0, "exit code")
    report.finish()


if __name__ == "__main__":
    main()
