"""curl as a client of the daemon, with JSON: python curl_client.py WAY GRPC HTTP < input.

WAY is `json` or `json-gzip`. Unary methods are a POST of plain JSON; EvaluateGrasps streams, so its
messages are in Connect's envelopes (a byte of flags, four of length, the JSON), which
`curl --data-binary` sends like any other bytes. Stubs on sys.path only turn JSON into bytes, to be
compared. Prints the object that web/scenario.js returns.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
import time
from typing import Any

from google.protobuf import json_format

from tribo.v1 import grasp_pb2, simulation_pb2

COMPRESSED, END = 1, 2


class Curl:
    """Calls methods by running curl."""

    def __init__(self, http: str, packed: bool) -> None:
        self.http = http
        self.packed = packed
        self.packed_answers = 0

    def command(self, method: str, kind: str, key: str | None, *more: str) -> list[str]:
        """The command line; the body comes on standard input."""
        command = ["curl", "-sS", "--no-buffer", "--max-time", "300", "--data-binary", "@-"]
        command += ["-D", "/dev/stderr", "-H", f"Content-Type: {kind}", "-H", "Expect:", *more]
        if key:
            command += ["-H", f"Authorization: Bearer {key}"]
        return [*command, f"http://{self.http}/tribo.v1.{method}"]

    def unary(self, method: str, request: dict[str, Any], key: str | None = None) -> Any:
        """Returns the answer's JSON, or that of the error with `error_status` added."""
        body = json.dumps(request).encode()
        more = ["--compressed"] if self.packed else []
        if self.packed:
            body = gzip.compress(body)
            more += ["-H", "Content-Encoding: gzip"]
        done = subprocess.run(
            self.command(method, "application/json", key, *more),
            input=body,
            capture_output=True,
            check=True,
        )
        self.packed_answers += b"content-encoding: gzip" in done.stderr.lower()
        status = int(re.findall(rb"^HTTP/1.1 (\d+)", done.stderr, re.M)[-1])
        answer = json.loads(done.stdout)
        return answer if status == 200 else {**answer, "error_status": status}

    def stream(self, method: str, request: Any, key: str | None, *more: str) -> Any:
        """A process whose standard output is the envelopes of the answer."""
        body = json.dumps(request).encode()
        if self.packed:
            body = gzip.compress(body)
            more += ("-H", "Connect-Content-Encoding: gzip", "-H", "Connect-Accept-Encoding: gzip")
        process = subprocess.Popen(
            self.command(method, "application/connect+json", key, *more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        process.stdin.write(bytes([COMPRESSED * self.packed]))
        process.stdin.write(len(body).to_bytes(4, "big") + body)
        process.stdin.close()
        return process

    def message(self, process: Any) -> tuple[int, Any]:
        """Flags and JSON of the next envelope."""
        header = process.stdout.read(5)
        if len(header) != 5:
            raise EOFError("the stream ended without its last envelope")
        data = process.stdout.read(int.from_bytes(header[1:], "big"))
        if header[0] & COMPRESSED:
            self.packed_answers += 1
            data = gzip.decompress(data)
        return header[0], json.loads(data)

    def job(self, request: Any, key: str | None, *more: str) -> tuple[list[str], dict[str, Any]]:
        """Messages of a job, and how it ended."""
        messages = []
        with self.stream("Grasp/EvaluateGrasps", request, key, *more) as process:
            flags, value = self.message(process)
            while not flags & END:
                message = json_format.ParseDict(value, grasp_pb2.EvaluateGraspsResponse())
                messages.append(encode(message.SerializeToString(deterministic=True)))
                flags, value = self.message(process)
        return messages, failure(value.get("error"))


def encode(data: bytes) -> str:
    """Base64 for JSON."""
    return base64.b64encode(data).decode()


def failure(error: dict[str, Any] | None) -> dict[str, Any]:
    """A Connect error; `debug` holds each detail in JSON."""
    if error is None or "code" not in error:
        return {"code": "OK"}
    details = {d["type"]: d["debug"] for d in error.get("details", [])}
    violations = details.get("google.rpc.BadRequest", {}).get("fieldViolations", [])
    retry = details.get("google.rpc.RetryInfo", {}).get("retryDelay")
    names = {"canceled": "CANCELLED"}
    return {
        "code": names.get(error["code"], error["code"].upper()),
        "message": error.get("message", ""),
        "fields": [violation["field"] for violation in violations],
        "reason": details.get("google.rpc.ErrorInfo", {}).get("reason", ""),
        "retry": float(retry.rstrip("s")) if retry else None,
    }


def cancelled(curl: Curl, request: dict[str, Any], key: str) -> dict[str, Any]:
    """Breaks a job off after its first message, as Ctrl-C would."""

    def find_run() -> dict[str, Any]:
        runs = curl.unary("Runs/ListRuns", {"pageSize": 100}, key).get("runs", [])
        return next((run for run in runs if run.get("label") == request["label"]), {})

    process = curl.stream("Grasp/EvaluateGrasps", request, key)
    curl.message(process)
    stopped = time.time()
    process.terminate()
    process.wait()
    process.stdout.close()
    began = time.monotonic()
    run = find_run()
    while run.get("status", "") in ("", "RUN_STATUS_RUNNING") and time.monotonic() - began < 30:
        time.sleep(0.02)
        run = find_run()
    return {
        "code": "CANCELLED",  # curl has left: no answer is sent
        "status": run.get("status", "").replace("RUN_STATUS_", ""),
        "seconds": int(run.get("endTimeUs", 0)) / 1e6 - stopped,
    }


def session(curl: Curl, key: str, scene: str) -> dict[str, Any]:
    """A session from its scene to its end, in plain JSON."""
    asset = curl.unary(
        "Simulation/CreateAsset", {"data": encode(scene.encode()), "name": "ball.xml"}, key
    )
    made = curl.unary(
        "Simulation/CreateScene", {"sha256": asset["sha256"], "path": "ball.xml"}, key
    )
    opened = curl.unary("Simulation/CreateSession", {"sceneId": made["sceneId"]}, key)
    name = {"sessionId": opened["sessionId"]}
    stepped = curl.unary(
        "Simulation/Step", {**name, "steps": 50, "want": {"state": True, "contacts": True}}, key
    )
    gone = curl.unary("Simulation/DeleteSession", name, key)
    after = curl.unary("Simulation/GetState", name, key)
    return {"stepped": stepped, "deleted": gone, "after": failure(after)}


def play(curl: Curl, given: dict[str, Any]) -> dict[str, Any]:
    """Everything."""
    requests = {}
    for name, data in given["requests"].items():
        message = grasp_pb2.EvaluateGraspsRequest.FromString(base64.b64decode(data))
        message.label = f"{name} of {given['label']}"
        requests[name] = json_format.MessageToDict(message)
    key = given["key"]
    info = json_format.ParseDict(
        curl.unary("Simulation/GetServerInfo", {}), simulation_pb2.GetServerInfoResponse()
    )
    mesh = {"name": "mug.obj", "data": given["mesh"]}
    report: dict[str, Any] = {
        "client": given["label"],
        "info": encode(info.SerializeToString(deterministic=True)),
        "asset": curl.unary("Simulation/CreateAsset", mesh, key).get("sha256"),
        "noKey": curl.job(requests["job"], None)[1],
        "wrongKey": curl.job(requests["job"], "tribo_0_no")[1],
        "missing": failure(curl.unary("Simulation/GetState", {"sessionId": "0" * 32})),
        "wrong": curl.job(requests["wrong"], key)[1],
        "job": curl.job(requests["job"], key)[0],
        "session": session(curl, key, given["scene"]),
    }
    for _ in range(50):
        report["limited"] = failure(curl.unary("Runs/ListRuns", {}, given["slowKey"]))
        if report["limited"]["code"] != "OK":
            break
    began = time.monotonic()
    report["deadline"] = curl.job(requests["long"], key, "-H", "Connect-Timeout-Ms: 1000")[1]
    report["deadline"]["seconds"] = time.monotonic() - began
    requests["long"]["label"] += ", cancelled"
    report["cancelled"] = cancelled(curl, requests["long"], key)
    report["packedAnswers"] = curl.packed_answers
    return report


def main() -> None:
    """The command line."""
    name, _, http = sys.argv[1:]
    given = json.load(sys.stdin)
    curl = Curl(http, name.endswith("-gzip"))
    json.dump(play(curl, {**given, "label": f"curl {name}"}), sys.stdout)


if __name__ == "__main__":
    main()
