#!/usr/bin/env python3
"""Small things that cost trust: a misspelt variable, a configuration that comes through a pipe,
ids by their first digits, jobs in the log, a damaged mesh, a keyframe below zero, plain arrays,
framing in doubt, proxies, revoked keys.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from common_daemon import BALL, Report, scratch

TRIBOD = os.environ["TRIBOD"]


def configure(text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The message of --check-config about a configuration from a pipe."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    try:
        return subprocess.run(
            [TRIBOD, "--check-config", "--config", f"/dev/fd/{reading}"],
            pass_fds=[reading],
            capture_output=True,
            text=True,
            env={**os.environ, **variables},
        )
    finally:
        os.close(reading)


def configuration(report: Report) -> None:
    """Options that do not exist, and options from a pipe."""
    good = configure("[limits]\nsessions = 7\n")
    report.equal((good.returncode, good.stderr), (0, ""), "a pipe with a configuration")
    wrong = configure("[limits]\nsesions = 7\n")
    report.check("no option 'sesions'" in wrong.stderr, f"a pipe with a mistake: {wrong.stderr}")
    unknown = configure("", TRIBOD_LIMITS_SESIONS="7")
    report.equal(unknown.returncode, 2, "exit code of an unknown variable")
    report.check("TRIBOD_LIMITS_SESIONS" in unknown.stderr, f"a variable: {unknown.stderr}")
    service = configure("", TRIBOD_PORT_7410_TCP="tcp://10.0.0.1:7410", TRIBOD_SERVICE_HOST="x")
    report.equal(service.returncode, 0, "variables of Kubernetes")


class Daemon:
    """A daemon that reads its configuration from a pipe, and its methods over HTTP."""

    def __init__(self, folder: Path) -> None:
        text = f"[server]\ngrpc_address =\nhttp_address = 127.0.0.1:0\ndata = {folder}/store\n"
        reading, writing = os.pipe()
        os.write(writing, text.encode())
        os.close(writing)
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [TRIBOD, "--config", f"/dev/fd/{reading}"],
                pass_fds=[reading],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        os.close(reading)
        assert self.process.stdout is not None
        self.base = "http://" + self.process.stdout.readline().split("http=")[1].strip()

    def post(self, method: str, **body: object) -> tuple[int, dict]:
        """Status and answer."""
        request = urllib.request.Request(
            f"{self.base}/tribo.v1.{method}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


def prefixes(report: Report, daemon: Daemon) -> None:
    """The first digits name sessions, runs and scenes."""
    scene = daemon.post("Simulation/CreateScene", text=BALL.decode())[1]["sceneId"]
    code, made = daemon.post("Simulation/CreateSession", sceneId=scene[:12])
    report.equal(code, 200, "a session of a scene by its first digits")
    session = made["sessionId"]
    report.equal(daemon.post("Simulation/Step", sessionId=session[:8])[0], 200, "a step")
    report.equal(daemon.post("Runs/GetRun", runId=session[:8])[0], 200, "a run")
    listed = daemon.post("Simulation/ListSessions")[1]["sessions"]
    report.equal(listed[0]["sceneId"], scene, "the session knows its whole scene")
    report.equal(daemon.post("Simulation/Step", sessionId=session[:3])[0], 400, "three digits")
    other = "0" * 8 if not session.startswith("0" * 8) else "f" * 8
    report.equal(daemon.post("Simulation/Step", sessionId=other)[0], 404, "digits of none")
    # among 40 sessions two begin alike in one digit; with four digits nearly none do
    ids = [
        daemon.post("Simulation/CreateSession", sceneId=scene)[1]["sessionId"] for _ in range(40)
    ]
    report.equal(len(set(ids)), 40, "ids")
    report.equal(daemon.post("Simulation/DeleteSession", sessionId=session[:10])[0], 200, "an end")

    code, answer = daemon.post(
        "Simulation/CreateSession", sceneId=scene, useKeyframe=True, keyframe=-1
    )
    report.equal((code, answer.get("code")), (400, "invalid_argument"), "keyframe -1")


def damaged_mesh(report: Report, daemon: Daemon) -> None:
    """A binary STL that ends early is the caller's mistake."""
    stl = b"\0" * 80 + (1000).to_bytes(4, "little") + b"\0" * 50
    data = base64.b64encode(stl).decode()
    asset = daemon.post("Simulation/CreateAsset", name="part.stl", data=data)[1]["sha256"]
    code, answer = daemon.post("Simulation/CreateScene", sha256=asset, path="part.stl")
    report.equal((code, answer.get("code")), (400, "invalid_argument"), f"a short STL: {answer}")


def framing(report: Report, daemon: Daemon) -> None:
    """Requests with an ambiguous end are refused, and the connection with them."""
    address = daemon.base.removeprefix("http://").split(":")
    start = "POST /tribo.v1.Simulation/GetServerInfo HTTP/1.1\r\n"
    usual = "Content-Type: application/json\r\n"
    cases = {
        "two lengths": "Host: localhost\r\nContent-Length: 2\r\nContent-Length: 2\r\n",
        "length and coding": "Host: localhost\r\nContent-Length: 2\r\n"
        "Transfer-Encoding: chunked\r\n",
        "unknown coding": "Host: localhost\r\nTransfer-Encoding: gzip, chunked\r\n",
        "two hosts": "Host: localhost\r\nHost: localhost\r\nContent-Length: 2\r\n",
        "user-info": "Host: localhost@evil.example\r\nContent-Length: 2\r\n",
    }
    for name, headers in cases.items():
        with socket.create_connection((address[0], int(address[1])), timeout=20) as wire:
            wire.sendall((start + usual + headers + "\r\n{}").encode())
            answer = b""
            with contextlib.suppress(ConnectionError):
                while piece := wire.recv(4096):
                    answer += piece
        report.check(answer[:12] in (b"HTTP/1.1 400", b""), f"{name}: {answer[:200]!r}")


def arrays(report: Report, daemon: Daemon) -> None:
    """Arrays come as base64 text, and as lists on request; lists are taken always."""
    scene = daemon.post("Simulation/CreateScene", text=BALL.decode())[1]["sceneId"]
    session = daemon.post("Simulation/CreateSession", sceneId=scene)[1]["sessionId"]
    body = json.dumps({"sessionId": session}).encode()

    def position(query: str, **headers: str) -> object:
        address = f"{daemon.base}/tribo.v1.Simulation/GetState{query}"
        heads = {"Content-Type": "application/json", **headers}
        with urllib.request.urlopen(urllib.request.Request(address, body, heads)) as answer:
            return json.loads(answer.read())["state"]["q"]

    packed, plain = position(""), position("", **{"Tribo-Arrays": "plain"})
    report.check(isinstance(packed, dict), f"base64: {packed!r}")
    report.check(isinstance(plain, list), f"a list: {plain!r}")
    if isinstance(packed, dict) and isinstance(plain, list):
        numbers = np.ravel(plain)
        bytes_of = base64.b64decode(packed["data"])
        report.equal(np.frombuffer(bytes_of).tolist(), numbers.tolist(), "the same numbers")
    report.equal(daemon.post("Simulation/DeleteSession", sessionId=session)[0], 200, "an end")


def proxies(report: Report, daemon: Daemon) -> None:
    """A caller that a proxy passes on is not on loopback."""
    for header in ("X-Real-IP", "CF-Connecting-IP", "Via", "X-Forwarded-For"):
        request = urllib.request.Request(
            f"{daemon.base}/tribo.v1.Simulation/ListScenes",
            b"{}",
            {"Content-Type": "application/json", header: "10.1.2.3"},
        )
        try:
            urllib.request.urlopen(request, timeout=20)
            code = 200
        except urllib.error.HTTPError as error:
            code = error.code
        report.equal(code, 401, f"a caller with {header}")


def revocation(report: Report, daemon: Daemon) -> None:
    """A key that is revoked beside the daemon ends without a signal."""
    store = str(daemon.log.parent / "store")
    made = subprocess.run(
        [TRIBOD, "--data", store, "--create-key", "robot"], capture_output=True, text=True
    )
    key = made.stdout.strip()

    def code() -> int:
        request = urllib.request.Request(
            f"{daemon.base}/tribo.v1.Simulation/ListScenes",
            b"{}",
            {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
        )
        try:
            return urllib.request.urlopen(request, timeout=20).status
        except urllib.error.HTTPError as error:
            return error.code

    report.equal(code(), 200, "a key that was made beside the daemon")
    time.sleep(1.5)
    subprocess.run([TRIBOD, "--data", store, "--revoke-key", key.split("_")[1]], check=True)
    deadline = time.monotonic() + 15
    while code() == 200 and time.monotonic() < deadline:
        time.sleep(0.2)
    report.equal(code(), 401, "a key that was revoked")
    report.check("auth.refused" in daemon.log.read_text(), "the refused key is in the log")
    time.sleep(1.5)

    def listed(flag: str) -> list[str]:
        text = subprocess.run(
            [TRIBOD, "--data", store, flag], capture_output=True, text=True, check=True
        ).stdout
        return next((line.split() for line in text.splitlines() if key.split("_")[1] in line), [])

    row = listed("--list-keys")
    report.check(len(row) == 9 and row[2] == "revoked" and row[6] == "never", f"a key: {row}")
    report.check(row[7].startswith("20"), f"its last use: {row}")
    row = listed("--list-refused-keys")
    report.check(row[1:2] == ["revoked"] and row[-1] == "127.0.0.1", f"a refusal: {row}")


def expiry(report: Report, daemon: Daemon) -> None:
    """A key of a few seconds is good until then."""
    store = str(daemon.log.parent / "store")
    make = [TRIBOD, "--data", store, "--create-key", "guest", "--days"]
    wrong = subprocess.run([*make, "soon"], capture_output=True, text=True)
    report.check(wrong.returncode != 0 and "--days 'soon'" in wrong.stderr, f"{wrong}")
    made = subprocess.run([*make, str(3 / 86400)], capture_output=True, text=True, check=True)

    def code() -> int:
        request = urllib.request.Request(
            f"{daemon.base}/tribo.v1.Simulation/ListScenes",
            b"{}",
            {
                "Content-Type": "application/json",
                "Authorization": f"Bearer {made.stdout.strip()}",
            },
        )
        try:
            return urllib.request.urlopen(request, timeout=20).status
        except urllib.error.HTTPError as error:
            return error.code

    report.equal(code(), 200, "a key of three seconds")
    time.sleep(3.1)
    report.equal(code(), 401, "the key three seconds later")


def jobs(report: Report, daemon: Daemon) -> None:
    """A job is said in the log when it begins and when it ends."""
    problem = base64.b64encode(b"3 1 0 3 3 3 3 1 0 0 0 1 0 0 0 1 -1 0 0 0.5").decode()
    report.equal(daemon.post("Solve/SolveProblem", name="p.dat", data=problem)[0], 200, "a problem")
    text = daemon.log.read_text()
    report.check("job.begun" in text and "job.ended" in text, "jobs are in the log")


def main() -> None:
    """Runs the parts."""
    report = Report()
    with report.case("configuration"):
        configuration(report)
    with scratch() as folder:
        daemon = Daemon(folder)
        for part in (prefixes, damaged_mesh, jobs, arrays, framing, proxies, revocation, expiry):
            with report.case(part.__name__):
                part(report, daemon)
        daemon.process.send_signal(1)
        report.equal(daemon.post("Simulation/ListScenes")[0], 200, "after SIGHUP with a pipe")
        daemon.process.terminate()
        report.equal(daemon.process.wait(30), 0, "exit code")
    report.finish()


if __name__ == "__main__":
    main()
