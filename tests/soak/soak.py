#!/usr/bin/env python3
"""A long run of the daemon with everything at once, and how its resources grow.

    tests/soak/soak.py [--minutes 60] [--tribod build/tribod] [--only step,upload,...]

Before the clock starts, uploads fill the catalog's cache of scenes, whose limit would otherwise be
reached only after a quarter of an hour. Then callers step sessions, fork and snapshot them, watch
them, upload scenes (new ones each time, some of them damaged), evaluate grasps, solve problems,
leave in the middle of a request or of a stream, and send SIGHUP. Every few seconds the script notes
resident memory, descriptors, threads, the store's size and the p99 of steps, and at the end it
prints the slope of each by least squares over the second half. The script ends with 1 if a slope is
larger than its bound or a call failed that should not. Not part of `make check`.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

#: Growth allowed in one hour. Snapshots are kept up to [store] retain_snapshots_bytes, small here.
BOUNDS_AN_HOUR = {
    "resident": 64e6,  # bytes
    "descriptors": 8,
    "threads": 2,
    "store": 256e6,  # bytes
    "p99": 0.05,  # s
}

#: Callers of a whole soak, methods of Soak; each entry is a thread.
WORK = ["step", "step", "upload", "solve", "leave", "reload", "watch", "grasp"]

#: Each is booked with about 50 kB, and 64 MiB of idle scenes are kept (server/session/catalog.c):
#: several rounds, because memory freed by a scene is reused in full only by later scenes.
SCENES_THAT_FILL_THE_CACHE = 8000

BALL = """<mujoco><worldbody><geom type="plane" size="1 1 0.1"/>
<body pos="0 0 {z}"><freejoint/><geom type="sphere" size="0.1" mass="{mass}"/></body>
</worldbody></mujoco>"""

HAND = base64.b64encode(
    b"""<mujoco><worldbody><body name="palm"><geom type="box" size=".06 .02 .01" mass=".2"/>
<body pos="-.05 0 .04"><joint name="l" type="slide" axis="1 0 0" range="0 .05"/>
<geom type="box" size=".005 .02 .03" mass=".05"/></body>
<body pos=".05 0 .04"><joint name="r" type="slide" axis="-1 0 0" range="0 .05"/>
<geom type="box" size=".005 .02 .03" mass=".05"/></body></body></worldbody>
<actuator><motor name="close_left" joint="l" ctrlrange="-20 20"/>
<motor name="close_right" joint="r" ctrlrange="-20 20"/></actuator></mujoco>"""
).decode()

CUBE = base64.b64encode(
    b"".join(
        b"v %g %g %g\n" % (x, y, z)
        for x in (-0.02, 0.02)
        for y in (-0.02, 0.02)
        for z in (-0.02, 0.02)
    )
    + b"f 1 2 4 3\nf 5 7 8 6\nf 1 5 6 2\nf 3 4 8 7\nf 1 3 7 5\nf 2 6 8 4\n"
).decode()

PROBLEM = base64.b64encode(b"3 1 0 3 3 3 3 1 0 0 0 1 0 0 0 1 -1 0 0 0.5").decode()


class Soak:
    """One daemon and its callers."""

    def __init__(self, tribod: str, folder: Path) -> None:
        environment = {
            **os.environ,
            "TRIBOD_STORE_RETAIN_SNAPSHOTS_BYTES": "64 MiB",
            "TRIBOD_STORE_RETAIN_UNUSED_BYTES": "4 MiB",
            "TRIBOD_SESSIONS_CHECKPOINT_SECONDS": "5",
        }
        self.folder = folder
        self.log = (folder / "log").open("w")
        self.process = subprocess.Popen(
            [
                *(tribod, "--data", str(folder / "store")),
                *("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"),
            ],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        self.host = self.process.stdout.readline().split("http=")[1].strip()
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.steps: list[float] = []
        self.calls: dict[str, int] = {}
        self.wrong: list[str] = []

    def post(self, method: str, *expected: int, **body: object) -> dict:
        """One call; an answer other than 200 or an expected one is noted."""
        request = urllib.request.Request(
            f"http://{self.host}/tribo.v1.{method}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        code, answer = 0, {}
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                code, answer = reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            code, answer = error.code, json.load(error)
        with self.lock:
            self.calls[method] = self.calls.get(method, 0) + 1
            # 429: the queue is full for the moment, and says when to come back
            if code not in (200, 429, *expected) and not self.stop.is_set():
                self.wrong.append(f"{method}: {code} {answer}")
        return answer if code == 200 else {}

    def stream(self, method: str, most: int, **body: object) -> int:
        """Reads up to `most` messages of a stream; returns their number. Records a final error."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.host}/tribo.v1.{method}",
            b"\0" + len(data).to_bytes(4, "big") + data,
            {"Content-Type": "application/connect+json"},
        )
        count, end = 0, {}
        with urllib.request.urlopen(request, timeout=60) as reply:
            while count < most and len(head := reply.read(5)) == 5:
                message = json.loads(reply.read(int.from_bytes(head[1:], "big")))
                if head[0] & 2:
                    end = message
                    break
                count += 1
        with self.lock:
            self.calls[method] = self.calls.get(method, 0) + 1
            refused = end.get("error", {}).get("code") in ("resource_exhausted", "not_found")
            if "error" in end and not refused and not self.stop.is_set():
                self.wrong.append(f"{method}: {end}")
        return count

    def fill(self, scenes: int) -> None:
        """Uploads scenes over one connection, as many as the catalog's cache can hold and more."""
        wire = http.client.HTTPConnection(self.host, timeout=60)
        rng = random.Random(2)
        for _ in range(scenes):
            text = BALL.format(z=0.1, mass=1 + rng.random())
            wire.request(
                "POST",
                "/tribo.v1.Simulation/CreateScene",
                json.dumps({"text": text}),
                {"Content-Type": "application/json"},
            )
            wire.getresponse().read()
        wire.close()

    # ---- callers, without end ----

    def watch(self) -> None:
        """Watchers that stay for a while and then leave in the middle of the stream."""
        while not self.stop.wait(0.3):
            sessions = self.post("Simulation/ListSessions", pageSize=5).get("sessions", [])
            if sessions:
                self.stream(
                    "Simulation/Watch", 10, sessionId=sessions[0]["sessionId"], minimumInterval=0.05
                )

    def grasp(self) -> None:
        """Grasps of a cube."""
        while not self.stop.wait(1):
            self.stream(
                "Grasp/EvaluateGrasps",
                1000,
                hand={
                    "asset": {"data": HAND, "path": "hand.xml"},
                    "closingActuators": ["close_left", "close_right"],
                },
                object={"asset": {"data": CUBE, "path": "cube.obj"}, "convex": True},
                poses=[{"name": "p", "pose": {"position": [0, 0, 0.01 * i]}} for i in range(4)],
            )

    def step(self) -> None:
        """Sessions from their creation to their end."""
        scene = self.post("Simulation/CreateScene", text=BALL.format(z=0.1, mass=1))["sceneId"]
        while not self.stop.is_set():
            session = self.post("Simulation/CreateSession", sceneId=scene).get("sessionId")
            for _ in range(200):
                if session is None or self.stop.is_set():
                    break
                began = time.monotonic()
                if self.post("Simulation/Step", sessionId=session, steps=20):
                    with self.lock:
                        self.steps.append(time.monotonic() - began)
            if session is None:
                continue
            self.post("Simulation/Snapshot", sessionId=session, label="soak")
            for fork in self.post("Simulation/Fork", sessionId=session, count=3).get(
                "sessionIds", []
            ):
                self.post("Simulation/DeleteSession", sessionId=fork)
            self.post("Simulation/DeleteSession", sessionId=session)

    def upload(self) -> None:
        """Scenes that are new each time, and some that cannot be read."""
        rng = random.Random(1)
        while not self.stop.wait(0.2):
            text = BALL.format(z=0.1, mass=1 + rng.random())
            self.post("Simulation/CreateScene", text=text)
            self.post("Simulation/CreateScene", 400, text=text[: rng.randrange(len(text))])
            self.post("Runs/ListRuns", pageSize=20)

    def solve(self) -> None:
        """Contact problems on their own."""
        while not self.stop.wait(0.5):
            self.post("Solve/SolveProblem", name="p.dat", data=PROBLEM)

    def leave(self) -> None:
        """Clients that go in the middle of a request or of an answer."""
        name, port = self.host.rsplit(":", 1)
        while not self.stop.wait(0.3):
            with socket.create_connection((name, int(port)), timeout=10) as wire:
                wire.sendall(
                    b"POST /tribo.v1.Simulation/CreateScene HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
                )

    def reload(self) -> None:
        """SIGHUP now and then."""
        while not self.stop.wait(5):
            self.process.send_signal(signal.SIGHUP)

    # ---- measurements ----

    def measure(self) -> dict[str, float]:
        """Resources as they are now."""
        proc = Path(f"/proc/{self.process.pid}")
        with self.lock:
            taken, self.steps = sorted(self.steps), []
        return {
            "resident": int((proc / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
            "descriptors": len(list((proc / "fd").iterdir())),
            "threads": len(list((proc / "task").iterdir())),
            "store": sum(f.stat().st_size for f in (self.folder / "store").iterdir()),
            "p99": taken[int(0.99 * (len(taken) - 1))] if taken else float("nan"),
        }

    def run(self, minutes: float, only: list[str]) -> list[tuple[float, dict[str, float]]]:
        """Starts the callers, notes resources until the time is over, and ends the callers."""
        threads = [threading.Thread(target=getattr(self, one), daemon=True) for one in only]
        began, notes = time.monotonic(), []
        for thread in threads:
            thread.start()
        interval = max(1.0, min(30.0, minutes))
        while (now := time.monotonic() - began) < 60 * minutes and self.process.poll() is None:
            time.sleep(interval)
            notes.append((now, self.measure()))
            shown = {k: round(v, 4) for k, v in notes[-1][1].items()}
            print(f"{now:7.0f} s  {shown}", flush=True)
        self.stop.set()
        for thread in threads:
            thread.join(90)
        return notes


def slope(notes: list[tuple[float, dict[str, float]]], name: str) -> float:
    """Growth in an hour, by least squares over the second half."""
    points = [(t / 3600, v[name]) for t, v in notes[len(notes) // 2 :] if v[name] == v[name]]
    if len(points) < 2:
        return 0.0
    mean_t = sum(t for t, _ in points) / len(points)
    mean_v = sum(v for _, v in points) / len(points)
    spread = sum((t - mean_t) ** 2 for t, _ in points)
    return sum((t - mean_t) * (v - mean_v) for t, v in points) / spread if spread > 0 else 0.0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--tribod", default=os.environ.get("TRIBOD", "build/tribod"))
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=WORK,
        metavar="CALLER,...",
        help=f"callers to run, a name as often as there are threads of it ({','.join(WORK)})",
    )
    options = parser.parse_args()
    if unknown := set(options.only) - set(WORK):
        parser.error(f"--only: no caller is named {sorted(unknown)[0]!r}")
    with tempfile.TemporaryDirectory(prefix="tribod-soak-") as folder:
        soak = Soak(options.tribod, Path(folder))
        try:
            if "upload" in options.only:
                soak.fill(SCENES_THAT_FILL_THE_CACHE)
            notes = soak.run(options.minutes, options.only)
        finally:
            soak.process.terminate()
        code = soak.process.wait(60)
    bad = len(soak.wrong) + (code != 0)
    print(f"{sum(soak.calls.values())} calls: {soak.calls}; exit code {code}")
    for line in soak.wrong[:10]:
        print(f"FAILED {line}")
    # over a few minutes a slope is mostly noise: the bound is the growth that the run itself may
    # cause
    hours = max(options.minutes / 60, 0.5)
    for name, bound in BOUNDS_AN_HOUR.items():
        found = slope(notes, name)
        grown = found * options.minutes / 60
        over = grown > bound * hours
        bad += over
        print(f"{name:12} {found:+14.4g} an hour {'OVER' if over else 'within'} {bound:g}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
