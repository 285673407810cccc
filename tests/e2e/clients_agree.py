#!/usr/bin/env python3
"""Unmodified gRPC and Connect clients of other projects get the same bytes for the same grasps.

One daemon; grpcio with generated stubs and with descriptors by reflection, curl with JSON, the
Connect packages of npm in Node and in headless Chromium, over Connect, gRPC-Web and gRPC. Each
plays the same grasp job, is refused in the same ways, runs into a deadline, and cancels a job. The
programs are in clients/ and web/; this script compares their reports, and then follows the health
service by the package grpcio-health-checking until the daemon stops.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import json
import math
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import grpc
from common_daemon import BALL, BUILD, Report, make_models, scratch
from google.protobuf import descriptor_pb2, json_format
from grpc_health.v1 import health_pb2, health_pb2_grpc

import tribo
from tribo.v1 import grasp_pb2, runs_pb2, simulation_pb2, solve_pb2

HERE = Path(__file__).resolve().parent
PROTO = HERE.parents[1] / "proto"
WEB = BUILD.resolve() / "web"

GRPCIO = ("stubs", "stubs-gzip", "reflection-v1", "reflection-v1alpha")
CURL = ("json", "json-gzip")
NODE = ("connect", "connect-json", "connect-gzip", "grpc-web", "grpc-web-json", "grpc", "grpc-gzip")
BROWSER = ("connect", "connect-json", "grpc-web")

#: s; the one limit on how long anything may take
PATIENCE = 240
#: s; a deadline of 1 s is over by then, also on a busy machine
DEADLINE_SLACK = 5
#: s; how soon a job that was broken off has stopped, as its run says
STOPPED = 1.0


def grasp_job(folder: Path) -> dict[str, Any]:
    """Three grasps of the mug: held, held by a hand that is turned, dropped."""
    half = math.pi / 8
    turned = [math.cos(half), 0, 0, math.sin(half)]
    return {
        "object": {
            "asset": {"data": encode((folder / "mug.xml").read_bytes()), "path": "mug.xml"},
            "friction": 0.7,
        },
        "hand": {
            "asset": {"data": encode((folder / "hand.xml").read_bytes()), "path": "hand.xml"},
            "closingActuators": ["close_left", "close_right"],
        },
        "poses": [
            {"name": "middle", "pose": {"position": [0, 0, 0.055]}, "force": 20},
            {
                "name": "turned",
                "pose": {"position": [0, 0, 0.06], "orientation": turned},
                "force": 20,
            },
            {"name": "weak", "pose": {"position": [0, 0, 0.055]}, "force": 1},
        ],
        "protocol": {
            "closeSeconds": 0.5,
            "lift": 0.05,
            "liftSeconds": 0.2,
            "shakes": [{"axis": [1, 0, 0], "amplitude": 0.002, "frequency": 4, "seconds": 0.25}],
            "holdSeconds": 0.05,
        },
        "perturbation": {
            "count": 3,
            "seed": 7,
            "position": 0.0005,
            "angle": 0.01,
            "friction": 0.05,
            "mass": 0.05,
        },
    }


def make_requests(folder: Path) -> dict[str, str]:
    """The job, one with a fault, and one that would take hours; packed, in base64."""
    job = grasp_job(folder)
    wrong = {**job, "poses": [job["poses"][0], {"name": "flat", "pose": {"position": [0, 0]}}]}
    many = {**job["perturbation"], "count": 1000}
    long = {**job, "poses": 20 * job["poses"], "perturbation": many}
    return {
        name: encode(
            json_format.ParseDict(value, grasp_pb2.EvaluateGraspsRequest()).SerializeToString()
        )
        for name, value in (("job", job), ("wrong", wrong), ("long", long))
    }


def encode(data: bytes) -> str:
    """Base64 for JSON."""
    return base64.b64encode(data).decode()


def canonical(messages: list[str]) -> tuple[bytes, ...]:
    """The results and the summary of a job as protobuf writes them, without clock times."""
    results = []
    for data in messages:
        message = grasp_pb2.EvaluateGraspsResponse.FromString(base64.b64decode(data))
        if message.WhichOneof("event") == "progress":
            continue
        if message.HasField("summary"):
            message.summary.ClearField("run_id")
            message.summary.ClearField("compute_time_us")
        order = message.result.index if message.HasField("result") else sys.maxsize
        results.append((order, message.SerializeToString(deterministic=True)))
    return tuple(data for _, data in sorted(results))


def world_steps(address: str) -> int:
    """Steps that the daemon has made so far."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as page:
        text = page.read().decode()
    return int(float(re.findall(r"^tribod_world_steps_total (\S+)$", text, re.M)[0]))


class Judge:
    """Compares the clients' reports."""

    def __init__(
        self, report: Report, http_address: str, digest: str, reference: list[str]
    ) -> None:
        self.report = report
        self.http = http_address
        self.digest = digest
        self.reference = canonical(reference)

    def still(self) -> bool:
        """Whether no world steps any more."""
        for _ in range(5):
            before = world_steps(self.http)
            time.sleep(0.2)
            if world_steps(self.http) == before:
                return True
        return False

    def judge(self, got: dict[str, Any]) -> None:
        """One client's report."""
        report, client = self.report, got["client"]
        info = simulation_pb2.GetServerInfoResponse.FromString(base64.b64decode(got["info"]))
        report.check(len(info.solvers) > 0, f"{client}: GetServerInfo lists solvers")
        report.equal(got["asset"], self.digest, f"{client}: a file that was sent")
        report.check(
            canonical(got["job"]) == self.reference, f"{client}: the job's bytes are the same"
        )
        for name, code, fields, reason in (
            ("noKey", "UNAUTHENTICATED", [], "UNAUTHENTICATED"),
            ("wrongKey", "UNAUTHENTICATED", [], "UNAUTHENTICATED"),
            ("missing", "NOT_FOUND", None, "NOT_FOUND"),
            ("wrong", "INVALID_ARGUMENT", ["poses[1].pose.position"], "INVALID_ARGUMENT"),
            ("limited", "RESOURCE_EXHAUSTED", None, "RESOURCE_EXHAUSTED"),
        ):
            error = got[name]
            report.equal(error["code"], code, f"{client}: code of '{name}'")
            report.equal(error.get("reason"), reason, f"{client}: ErrorInfo of '{name}'")
            report.check(bool(error.get("message")), f"{client}: message of '{name}'")
            if fields is not None:
                report.equal(error.get("fields"), fields, f"{client}: fields of '{name}'")
        retry = got["limited"].get("retry")
        report.check(retry is not None and 0 < retry <= 20, f"{client}: RetryInfo says {retry} s")
        deadline = got["deadline"]
        report.equal(deadline["code"], "DEADLINE_EXCEEDED", f"{client}: code after a deadline")
        report.check(
            1 <= deadline["seconds"] + 0.01 < 1 + DEADLINE_SLACK,
            f"{client}: a deadline of 1 s took {deadline['seconds']:.2f} s",
        )
        ended = got["cancelled"]
        report.check(
            ended["code"] in ("CANCELLED", "CANCELED"), f"{client}: {ended['code']} when broken off"
        )
        report.equal(ended["status"], "CANCELLED", f"{client}: the run that was broken off")
        report.check(
            ended["seconds"] < STOPPED,
            f"{client}: the run went on for {ended['seconds']:.2f} s",
        )
        report.check(self.still(), f"{client}: worlds go on stepping")


# ---- the clients --------------------------------------------------------------------------------


def play(command: list[str], given: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Runs one client."""
    done = subprocess.run(
        command,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        **more,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.returncode}\n{done.stderr[-4000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def generate_stubs(folder: Path) -> Path:
    """Plain Python stubs of the project's .proto files, as any user would make them."""
    stubs = folder / "stubs"
    stubs.mkdir()
    # stubs of these two are in the packages protobuf and grpcio-health-checking
    theirs = ("google/protobuf", "grpc/health")
    files = [
        str(path.relative_to(PROTO))
        for path in sorted(PROTO.rglob("*.proto"))
        if not str(path.relative_to(PROTO)).startswith(theirs)
    ]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}"]
    command += [f"--python_out={stubs}", f"--grpc_python_out={stubs}", *files]
    subprocess.run(command, check=True)
    # a package, not a namespace: before the one that is installed
    (stubs / "tribo" / "__init__.py").touch()
    return stubs


def check_session(report: Report, got: dict[str, Any]) -> None:
    """curl's results of a session, in plain JSON."""
    session = got["session"]
    stepped = json_format.ParseDict(session["stepped"], simulation_pb2.StepResponse())
    report.equal(stepped.state.steps, 50, f"{got['client']}: steps")
    report.equal(list(stepped.state.q.shape), [1, 7], f"{got['client']}: shape of q")
    report.check(stepped.certificates[0].contacts == 1, f"{got['client']}: one contact")
    report.equal(session["deleted"], {}, f"{got['client']}: DeleteSession")
    report.equal(session["after"]["code"], "NOT_FOUND", f"{got['client']}: after DeleteSession")


def check_reflection(report: Report, got: dict[str, Any]) -> None:
    """Reflection lists every service, with the descriptors of the project's files."""
    names = [f"tribo.v1.{name}" for name in ("Simulation", "Grasp", "Solve", "Runs", "Function")]
    names += ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"]
    names += ["grpc.reflection.v1alpha.ServerReflection"]
    report.equal(got["services"], sorted(names), f"{got['client']}: services")
    for module in (simulation_pb2, grasp_pb2, solve_pb2, runs_pb2):
        ours, theirs = descriptor_pb2.FileDescriptorProto(), descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(ours)
        data = got["files"].get(ours.name, "")
        theirs.ParseFromString(base64.b64decode(data))
        report.check(
            json_names(theirs) == json_names(ours),
            f"{got['client']}: {ours.name} is described otherwise",
        )


def json_names(file: descriptor_pb2.FileDescriptorProto) -> descriptor_pb2.FileDescriptorProto:
    """The file with every field's JSON name, which descriptors may leave to the reader."""

    def fill(message: descriptor_pb2.DescriptorProto) -> None:
        for field in message.field:
            head, *tail = field.name.split("_")
            field.json_name = field.json_name or head + "".join(word.title() for word in tail)
        for nested in message.nested_type:
            fill(nested)

    file.ClearField("source_code_info")
    for message in file.message_type:
        fill(message)
    return file


class Page:
    """An origin that serves the page with the browser's clients, and takes its report."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.reports: Any = None
        self.done = threading.Event()
        page = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/input":
                    return super().do_GET()
                body = json.dumps(page.given).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                page.reports = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(204)
                self.end_headers()
                page.done.set()

            def log_message(self, *arguments: object) -> None:
                pass

        handler = functools.partial(Handler, directory=str(WEB))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def visit(self, given: dict[str, Any], folder: Path) -> Any:
        """Has Chromium open the page, and returns the page's report."""
        self.given = given
        self.done.clear()
        browser = shutil.which("chromium") or shutil.which("chromium-browser")
        if browser is None:
            raise FileNotFoundError("chromium is not there: deploy/deps.sh web installs it")
        # in a container, and as root, Chromium has no sandbox of its own; the page is ours
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        flags += ["--no-first-run", "--disable-extensions", "--disable-background-networking"]
        flags += ["--disable-component-update", "--remote-debugging-port=0"]
        profile = folder / "chromium"
        log = folder / "chromium.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [browser, *flags, f"--user-data-dir={profile}", f"{self.origin}/page.html"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "HOME": str(folder)},
            )
        try:
            end = time.monotonic() + PATIENCE
            while not self.done.wait(1):
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"chromium: no report\n{log.read_text()[-4000:]}")
        finally:
            process.terminate()
            process.wait(30)
            shutil.rmtree(profile, ignore_errors=True)
        if isinstance(self.reports, dict):
            raise RuntimeError(f"the page: {self.reports['error']}")
        return self.reports


# ---- health -------------------------------------------------------------------------------------


def check_health(report: Report, daemon: tribo.Daemon) -> None:
    """Health as grpcio-health-checking asks, until the daemon has stopped."""
    serving = health_pb2.HealthCheckResponse.SERVING
    not_serving = health_pb2.HealthCheckResponse.NOT_SERVING
    unknown = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    with grpc.insecure_channel(daemon.grpc) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", "tribo.v1.Simulation", "tribo.v1.Grasp"):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=60)
            report.equal(answer.status, serving, f"health of '{service}'")
        try:
            health.Check(health_pb2.HealthCheckRequest(service="tribo.v1.Nothing"), timeout=60)
            report.check(False, "health of a service that is not there was told")
        except grpc.RpcError as error:
            report.equal(error.code(), grpc.StatusCode.NOT_FOUND, "health of no service")
        stranger = health.Watch(health_pb2.HealthCheckRequest(service="tribo.v1.Nothing"))
        report.equal(next(stranger).status, unknown, "watched health of no service")
        stranger.cancel()
        watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
        report.equal(next(watch).status, serving, "watched health")
        stopping = threading.Thread(target=daemon.stop)
        stopping.start()
        try:
            report.equal(next(watch).status, not_serving, "watched health of a stopping daemon")
        finally:
            stopping.join()


# ---- everything ---------------------------------------------------------------------------------


def make_key(data: Path, *flags: str) -> str:
    """A key in the daemon's store."""
    command = [tribo.daemon.find_binary(), "--data", str(data), "--create-key", "stock", *flags]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def play_python(
    script: str, way: str, daemon: tribo.Daemon, given: dict[str, Any], path: str
) -> dict[str, Any]:
    """Runs a client in Python, which finds stubs in `path`."""
    command = [sys.executable, str(HERE / "clients" / script), way, daemon.grpc, daemon.http]
    return play(command, given, env={**os.environ, "PYTHONPATH": path})


def play_grpcio(report: Report, daemon: tribo.Daemon, given: dict[str, Any], stubs: Path) -> Judge:
    """Every way of grpcio; all others are compared with the first one's job."""
    judge: Judge | None = None
    for way in GRPCIO:
        with report.case(f"grpcio {way}"):
            path = str(stubs) if way != "reflection-v1alpha" else ""
            got = play_python("grpcio_client.py", way, daemon, given, path)
            judge = judge or first(report, daemon.http, given, got)
            judge.judge(got)
            if way.startswith("reflection"):
                check_reflection(report, got)
    if judge is None:
        raise RuntimeError("no way of grpcio could play the job")
    return judge


def play_curl(judge: Judge, daemon: tribo.Daemon, given: dict[str, Any], stubs: Path) -> None:
    """curl, with and without compression."""
    report = judge.report
    for way in CURL:
        with report.case(f"curl {way}"):
            got = play_python("curl_client.py", way, daemon, given, str(stubs))
            judge.judge(got)
            check_session(report, got)
            packed = got["packedAnswers"] > 0
            report.equal(packed, way.endswith("-gzip"), f"curl {way}: packed answers")


def play_web(
    judge: Judge, daemon: tribo.Daemon, given: dict[str, Any], page: Page, folder: Path
) -> None:
    """Node and Chromium."""
    report = judge.report
    for way in NODE:
        with report.case(f"node {way}"):
            command = ["node", "node_client.js", way, daemon.grpc, daemon.http]
            judge.judge(play(command, given, cwd=WEB))
    with report.case("chromium"):
        reports = page.visit(given, folder)
        report.equal(len(reports), len(BROWSER), "chromium: transports")
        for got in reports:
            judge.judge(got)
    with report.case("chromium, a page of an origin that is not allowed"):
        (got,) = Page().visit({"http": daemon.http, "stranger": True}, folder)
        report.equal(got["kept"], "TypeError", "what a strange page sees")


def run(report: Report, folder: Path) -> None:
    """Starts the daemon and plays every client."""
    make_models(folder)
    page = Page()
    settings = {"TRIBOD_AUTH_ANONYMOUS": "read", "TRIBOD_HTTP_CORS_ORIGINS": page.origin}
    daemon = tribo.Daemon(data=folder / "data", environment=settings)
    try:
        given = {
            "requests": make_requests(folder),
            "scene": BALL.decode(),
            "mesh": encode((folder / "mug.obj").read_bytes()),
            "key": make_key(daemon.data, "--scope", "run"),
            "slowKey": make_key(daemon.data, "--scope", "read", "--rate", "0.1"),
            "http": daemon.http,
        }
        stubs = generate_stubs(folder)
        judge = play_grpcio(report, daemon, given, stubs)
        play_curl(judge, daemon, given, stubs)
        play_web(judge, daemon, given, page, folder)
        with report.case("health"):
            check_health(report, daemon)
    finally:
        daemon.stop()


def first(report: Report, http_address: str, given: dict[str, Any], got: dict[str, Any]) -> Judge:
    """Looks at the job that the others are compared with."""
    messages = [
        grasp_pb2.EvaluateGraspsResponse.FromString(base64.b64decode(data)) for data in got["job"]
    ]
    results = {m.result.name: m.result for m in messages if m.HasField("result")}
    report.equal(sorted(results), ["middle", "turned", "weak"], "names of the results")
    for name, verdict in (("middle", "HELD"), ("turned", "HELD"), ("weak", "DROPPED")):
        found = grasp_pb2.GraspVerdict.Name(results[name].verdict)
        report.equal(found, f"GRASP_VERDICT_{verdict}", f"verdict of '{name}'")
        report.equal(len(results[name].trials), 3, f"trials of '{name}'")
    report.equal(messages[-1].WhichOneof("event"), "summary", "the last message")
    report.equal(messages[-1].summary.trials, 9, "trials")
    report.equal(len(canonical(got["job"])), 4, "results and the summary")
    digest = hashlib.sha256(base64.b64decode(given["mesh"])).hexdigest()
    return Judge(report, http_address, digest, got["job"])


def main() -> None:
    """The test."""
    report = Report()
    with scratch() as folder, report.case("clients"):
        run(report, folder)
    report.finish()


if __name__ == "__main__":
    main()
