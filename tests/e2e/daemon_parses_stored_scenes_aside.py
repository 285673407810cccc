#!/usr/bin/env python3
"""Scenes that come back from the store, contact problems and grasps are parsed where uploads are:
others are answered meanwhile, a drain and a leaving caller end them, budgets bound them."""

from __future__ import annotations

import base64
import http.client
import json
import os
import sys
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, Report, scratch
from daemon_parses_uploads_aside import Http, ball_of_points


def grid_of_boxes(side: int) -> str:
    """A scene of many bodies: its canonical bytes take a while to read."""
    row = "<body pos='{} {} 1'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    bodies = "".join(row.format(i, j) for i in range(side) for j in range(side))
    return f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"


def problem_text(contacts: int) -> str:
    """A dense contact problem with this number of contacts: W is a multiple of one."""
    rows = 3 * contacts
    columns = []
    for j in range(rows):
        column = ["0"] * rows
        column[j] = "1"
        columns.append(" ".join(column))
    w = "\n".join(columns)
    q = " ".join(["-1", "0", "0"] * contacts)
    mu = " ".join(["0.5"] * contacts)
    return f"3 {contacts} 0 {rows} {rows} {rows} {rows} {w} {q} {mu}"


def slowest_of(daemon: Http, scene: str, rounds: int) -> float:
    """Longest time of four quick calls."""
    slowest = 0.0
    for _ in range(rounds):
        begin = time.monotonic()
        session = daemon.post("Simulation/CreateSession", {"sceneId": scene})["sessionId"]
        daemon.post("Simulation/Step", {"sessionId": session})
        daemon.post("Simulation/GetScene", {"sceneId": scene})
        daemon.post("Simulation/DeleteSession", {"sessionId": session})
        slowest = max(slowest, time.monotonic() - begin)
    return slowest


def store_scenes(report: Report, folder: Path) -> tuple[str, str]:
    """A heavy scene with a session, and a light one."""
    daemon = Http(folder)
    heavy = daemon.post(
        "Simulation/CreateScene", {"text": ball_of_points(30000), "path": "ball.obj"}
    )["sceneId"]
    light = daemon.post("Simulation/CreateScene", {"text": BALL.decode()})["sceneId"]
    session = daemon.post("Simulation/CreateSession", {"sceneId": heavy})["sessionId"]
    report.equal(daemon.end(), 0, "exit code with a heavy session")
    return heavy, session if light else ""


def scenes_within_budgets(report: Report, folder: Path) -> None:
    """A scene of the store obeys the budgets of uploads, for new sessions and for old ones."""
    heavy, session = store_scenes(report, folder)
    small = Http(folder, LIMITS_UPLOAD_MEMORY_BYTES="1 MiB")
    for method, body in {
        "CreateSession": {"sceneId": heavy},
        "GetScene": {"sceneId": heavy[:12]},
        "Step": {"sessionId": session},
    }.items():
        error = small.refused(f"Simulation/{method}", body)
        report.equal(error.get("code"), "resource_exhausted", f"{method} of a scene: {error}")
        report.check("1048576 are allowed" in error.get("message", ""), f"says: {error}")
    report.equal(small.end(), 0, "exit code")
    large = Http(folder)
    state = large.post("Simulation/Step", {"sessionId": session})["state"]
    report.equal(state["steps"], "1", "a step of a session that came back")
    report.check("sessionId" in large.post("Simulation/CreateSession", {"sceneId": heavy}), "new")
    report.equal(large.end(), 0, "exit code")


def problems_aside(report: Report, folder: Path) -> None:
    """Parsing of problems delays no other call, ends with its caller, and is bounded."""
    daemon = Http(folder, LIMITS_UPLOAD_MEMORY_BYTES="64 MiB", SERVER_DRAIN_SECONDS="8")
    scene = daemon.post("Simulation/CreateScene", {"text": BALL.decode()})["sceneId"]
    small = base64.b64encode(problem_text(20).encode()).decode()
    answer = daemon.post("Solve/SolveProblem", {"name": "p.dat", "data": small})
    report.equal(answer.get("outcome"), "OUTCOME_OK", f"a problem: {answer}")
    text = problem_text(1100)  # 3300 x 3300: 87 MB as numbers, 22 MB as text
    large = json.dumps(
        {"name": "large.dat", "data": base64.b64encode(text.encode()).decode()}
    ).encode()
    error = daemon.refused("Solve/SolveProblem", large)
    report.equal(error.get("code"), "resource_exhausted", f"a problem beyond memory: {error}")
    report.check("67108864 are allowed" in error.get("message", ""), f"says: {error}")

    threads = [
        threading.Thread(target=daemon.refused, args=("Solve/SolveProblem", large))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    slowest = slowest_of(daemon, scene, 5)
    report.check(slowest < 3, f"four calls took {slowest:.2f} s beside problems")
    for thread in threads:
        thread.join(60)
    report.equal(daemon.end(), 0, "exit code")


def grasp_error(daemon: Http, points: int) -> dict:
    """The outcome of a grasp job whose object has this many points."""
    mesh = base64.b64encode(ball_of_points(points).encode()).decode()
    hand = base64.b64encode(BALL).decode()
    body = json.dumps(
        {
            "hand": {"asset": {"data": hand, "path": "hand.xml"}, "closingActuators": ["a"]},
            "object": {"asset": {"data": mesh, "path": "ball.obj"}, "convex": True},
            "poses": [{"pose": {"position": [0, 0, 0]}}],
        }
    ).encode()
    request = urllib.request.Request(
        f"{daemon.base}/tribo.v1.Grasp/EvaluateGrasps",
        b"\0" + len(body).to_bytes(4, "big") + body,
        {"Content-Type": "application/connect+json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read()[5:]).get("error", {})


def grasps_within_budgets(report: Report, folder: Path) -> None:
    """The files of a grasp job obey the budgets of uploads, and its results the memory's."""
    daemon = Http(folder, LIMITS_UPLOAD_MEMORY_BYTES="16 MiB", LIMITS_CLIENT_MEMORY_BYTES="256 MiB")
    error = grasp_error(daemon, 200)
    report.equal(error.get("code"), "not_found", f"a hand without that actuator: {error}")
    error = grasp_error(daemon, 200000)
    report.equal(error.get("code"), "resource_exhausted", f"an object beyond memory: {error}")
    report.check("16777216 are allowed" in error.get("message", ""), f"says: {error}")
    report.equal(daemon.end(), 0, "exit code")


def cpu_seconds(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def leaves(report: Report, folder: Path) -> None:
    """A caller that leaves ends the parsing of its grasp job; a drain ends the rest."""
    daemon = Http(folder, SERVER_DRAIN_SECONDS="8")
    host, port = daemon.base.removeprefix("http://").split(":")
    heavy = json.dumps({"text": ball_of_points(300000), "path": "ball.obj"}).encode()
    for _ in range(4):
        wire = http.client.HTTPConnection(host, int(port), timeout=60)
        wire.request(
            "POST",
            "/tribo.v1.Simulation/CreateScene",
            body=heavy,
            headers={"Content-Type": "application/json"},
        )
        time.sleep(0.3)
        wire.close()
    # each of them takes more than 5 s of a processor where it is not ended
    time.sleep(2)
    before = cpu_seconds(daemon.process.pid)
    time.sleep(2)
    used = cpu_seconds(daemon.process.pid) - before
    report.check(used < 1, f"{used:.2f} s of processor for callers that left")
    begin = time.monotonic()
    thread = threading.Thread(
        target=daemon.refused,
        args=("Simulation/CreateScene", heavy),
    )
    thread.start()
    time.sleep(0.5)
    report.equal(daemon.end(), 0, "exit code of the drain")
    report.check(time.monotonic() - begin < 8.5, "the drain took its whole time")
    thread.join(20)


def main() -> None:
    """Runs the parts."""
    report = Report()
    for part in (scenes_within_budgets, problems_aside, grasps_within_budgets, leaves):
        with scratch() as folder, report.case(part.__name__):
            part(report, folder)
    report.finish()


if __name__ == "__main__":
    main()
