#!/usr/bin/env python3
"""Memory runs out while a large session waits for its checkpoint: small sessions go on stepping,
the daemon tries the checkpoint again after longer and longer pauses and logs it once, and the first
checkpoint with memory holds all steps.

The address space of the running daemon is limited to a little more than it uses (prlimit), so that
small allocations succeed and that of the large checkpoint fails.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, Report, scratch

TRIBOD = os.environ["TRIBOD"]
WORLDS = 4096
# memory beyond the daemon's use, bytes: less than one checkpoint of the large session
ROOM = 6 << 20
CHAIN = (
    '<mujoco><worldbody><geom type="plane" size="9 9 1"/>'
    + "".join(
        f'<body pos="{i % 8} {i // 8} .1"><freejoint/><geom size=".1"/></body>' for i in range(24)
    )
    + "</worldbody></mujoco>"
)


def post(base: str, method: str, **body: object) -> tuple[int, dict]:
    """Status and answer of a method."""
    request = urllib.request.Request(
        f"{base}/tribo.v1.{method}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def metric(base: str, name: str) -> float:
    """A number of the page of metrics."""
    with urllib.request.urlopen(f"{base}/metrics", timeout=30) as page:
        for line in page.read().decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
    return -1


def used(pid: int) -> int:
    """Bytes of a process's address space."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()


def start(data: Path, log: Path) -> tuple[subprocess.Popen[str], str]:
    """A daemon that checkpoints twice a second, and its address."""
    with log.open("w") as out:
        daemon = subprocess.Popen(
            [TRIBOD, "--data", str(data), "--grpc", "", "--http", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=out,
            text=True,
            # one arena, and large blocks go back at once: freed memory is not a hidden reserve
            env={
                **os.environ,
                "TRIBOD_SESSIONS_CHECKPOINT_SECONDS": "0.5",
                "TRIBOD_LIMITS_QUEUE_WAIT_SECONDS": "0",
                "MALLOC_ARENA_MAX": "1",
                "MALLOC_MMAP_THRESHOLD_": str(128 << 10),
            },
        )
    assert daemon.stdout is not None
    return daemon, "http://" + daemon.stdout.readline().split("http=")[1].strip()


def session_of(base: str, text: str, worlds: int) -> str:
    """A new session."""
    scene = post(base, "Simulation/CreateScene", text=text)[1]["sceneId"]
    answer = post(base, "Simulation/CreateSession", sceneId=scene, worlds=worlds)[1]
    return answer["sessionId"]


def memory_runs_out(report: Report, folder: Path) -> None:
    """The story of the file's head."""
    log = folder / "log"
    daemon, base = start(folder / "store", log)
    small = session_of(base, BALL.decode(), 1)
    large = session_of(base, CHAIN, WORLDS)
    # after the first contacts the working memory of steps, calls and metrics is there
    post(base, "Simulation/Step", sessionId=small, steps=500)
    code, answer = post(base, "Simulation/Step", sessionId=large, steps=5)
    report.equal(code, 200, f"steps of the large session: {answer}")
    metric(base, "tribod_checkpoints_failed_total")
    resource.prlimit(
        daemon.pid, resource.RLIMIT_AS, (used(daemon.pid) + ROOM, resource.RLIM_INFINITY)
    )
    # refused while a try at the checkpoint holds the memory that is left
    for _ in range(20):
        code, _ = post(base, "Simulation/Step", sessionId=large, steps=1)
        if code != 429:
            break
        time.sleep(0.1)
    report.equal(code, 200, "a step of the large session")
    steps, slowest, end = 0, 0.0, time.monotonic() + 3
    while time.monotonic() < end:
        began = time.monotonic()
        code, answer = post(base, "Simulation/Step", sessionId=small)
        slowest = max(slowest, time.monotonic() - began)
        if not report.equal(code, 200, f"a step while memory is short: {answer}"):
            break
        steps += 1
        time.sleep(0.01)
    failed = metric(base, "tribod_checkpoints_failed_total")
    # rounds after 0.5, 1 and 2 s: at most four in 3 s, where no backoff would give six
    report.check(1 <= failed <= 4, f"{failed:.0f} checkpoints failed in 3 s")
    report.equal(log.read_text().count("session.checkpoint_failed"), 1, "times it is told")
    report.check(slowest < 2, f"a step took {slowest:.2f} s")
    resource.prlimit(daemon.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    end = time.monotonic() + 20
    while time.monotonic() < end and "session.checkpoints_again" not in log.read_text():
        time.sleep(0.1)
    report.equal(log.read_text().count("session.checkpoints_again"), 1, "times the end is told")
    daemon.kill()
    daemon.wait()
    daemon, base = start(folder / "store", log)
    state = post(base, "Simulation/GetState", sessionId=large)[1]["state"]
    report.equal(state["steps"], "6", "steps of the large session after a kill")
    daemon.terminate()
    report.equal(daemon.wait(60), 0, "exit code")


if __name__ == "__main__":
    report = Report()
    with scratch() as folder, report.case("memory_runs_out"):
        memory_runs_out(report, folder)
    report.finish()
