#!/usr/bin/env python3
"""Clients and tools of other projects, against the daemon's gRPC port: `make check-clients`.

    foreign_clients.py [--build build/clients] [--only NAME]...

    go      grpc-go, by stubs that protoc makes
    node    grpc-js, by proto-loader
    rust    tonic
    java    grpc-java, by messages made from descriptors
    h2spec  conformance with HTTP/2, strict cases too
    grpcurl, buf  calls by reflection and by the .proto files
    ghz     a load of calls, all of which are answered

Each client's own tools (go, npm, cargo, mvn) install its packages into the build folder. A
client prints a line for each failure and the sum, which are counted here.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from common_daemon import BALL, Report, scratch

import tribo

HERE = Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
TOOLS = {
    "h2spec": "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible",
    "grpcurl": "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4",
    "buf": "github.com/bufbuild/buf/cmd/buf@v1.75.0",
    "ghz": "github.com/bojand/ghz/cmd/ghz@v0.93.0",
    "protoc-gen-go": "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.6",
    "protoc-gen-go-grpc": "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.5.1",
}
GO_PACKAGE = "tribo.example/check"


class Clients:
    """The clients, installed in a folder."""

    def __init__(self, build: Path, report: Report, address: str, session: str) -> None:
        self.build = build.resolve()
        self.tools = self.build / "bin"
        self.report = report
        self.address = address
        self.session = session

    def tool(self, name: str) -> str:
        """A program in Go, installed unless it is there."""
        path = self.tools / name
        if not path.exists():
            print(f"installing: {TOOLS[name]}", flush=True)
            self.tools.mkdir(parents=True, exist_ok=True)
            environment = {**os.environ, "GOBIN": str(self.tools)}
            subprocess.run(["go", "install", TOOLS[name]], env=environment, check=True)
        return str(path)

    def sources(self, name: str) -> Path:
        """A copy of a client's sources, to be built in."""
        return Path(shutil.copytree(HERE / name, self.build / name, dirs_exist_ok=True))

    def count(self, name: str, command: list[str], timeout: float = 300) -> None:
        """Runs a client and adds its sum."""
        ran = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        total = re.search(r"(\d+) passed, (\d+) failed", ran.stdout)
        print("\n".join(line for line in ran.stdout.splitlines() if "FAILED" in line))
        if total is None or int(total[1]) == 0:
            self.report.check(False, f"{name}: {ran.stdout}{ran.stderr}")
            return
        print(f"{name}: {total[0]}", flush=True)
        self.report.passed += int(total[1])
        self.report.failed += int(total[2])

    def go(self) -> None:
        folder = self.sources("go")
        for name in ("protoc-gen-go", "protoc-gen-go-grpc"):
            self.tool(name)
        command = ["protoc", f"-I{PROTO}"]
        for kind in ("go", "go-grpc"):
            command += [f"--{kind}_out={folder}", f"--{kind}_opt=module={GO_PACKAGE}"]
            for file in ("common", "simulation"):
                command.append(f"--{kind}_opt=Mtribo/v1/{file}.proto={GO_PACKAGE}/pb")
        command += ["tribo/v1/common.proto", "tribo/v1/simulation.proto"]
        path = f"{self.tools}:{os.environ['PATH']}"
        subprocess.run(command, env={**os.environ, "PATH": path}, check=True)
        subprocess.run(["go", "build", "-o", "client", "."], cwd=folder, check=True)
        self.count("grpc-go", [str(folder / "client"), self.address, self.session])

    def node(self) -> None:
        folder = self.sources("node")
        install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run([*install, "--loglevel=error"], cwd=folder, check=True)
        main = str(folder / "main.js")
        self.count("grpc-js", ["node", main, self.address, self.session, str(PROTO)])

    def rust(self) -> None:
        folder = self.sources("rust")
        environment = {**os.environ, "TRIBO_PROTO": str(PROTO)}
        build = ["cargo", "build", "--release", "--quiet"]
        subprocess.run(build, cwd=folder, env=environment, check=True)
        program = folder / "target" / "release" / "tribo-client-check"
        self.count("tonic", [str(program), self.address, self.session])

    def java(self) -> None:
        folder = self.sources("java")
        classes, descriptors = folder / "classpath", folder / "descriptors"
        maven = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "compile"]
        maven += ["dependency:build-classpath", f"-Dmdep.outputFile={classes}"]
        subprocess.run(maven, cwd=folder, check=True)
        protoc = ["protoc", f"-I{PROTO}", "--include_imports", f"-o{descriptors}"]
        subprocess.run([*protoc, "tribo/v1/simulation.proto"], check=True)
        path = f"{folder / 'target' / 'classes'}:{classes.read_text().strip()}"
        command = ["java", "-cp", path, "Check", self.address, self.session, str(descriptors)]
        self.count("grpc-java", command)

    def h2spec(self) -> None:
        host, _, port = self.address.rpartition(":")
        ran = subprocess.run(
            [self.tool("h2spec"), "--strict", "-h", host, "-p", port, "-o", "5"],
            capture_output=True,
            text=True,
            timeout=600,
        )
        total = re.search(r"\d+ tests, (\d+) passed, (\d+) skipped, (\d+) failed", ran.stdout)
        good = total is not None and int(total[1]) >= 146 and total[2] == total[3] == "0"
        self.report.check(good, f"h2spec: {ran.stdout[ran.stdout.find('Failures') :]}")
        print(f"h2spec: {total[0] if total else 'nothing'}", flush=True)

    def calls(self, name: str, *command: str, status: int = 0, says: str = "") -> None:
        """One call by a tool: its status and output."""
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
        said = ran.stdout + ran.stderr
        self.report.check(ran.returncode == status and says in said, f"{name}: {said}")

    def grpcurl(self) -> None:
        tool = self.tool("grpcurl")
        files = ["-import-path", str(PROTO), "-proto", "tribo/v1/simulation.proto"]
        plain = [tool, "-plaintext"]
        where = self.address
        self.calls("grpcurl lists", *plain, where, "list", says="tribo.v1.Simulation")
        self.calls(
            "grpcurl describes",
            *plain,
            where,
            "describe",
            "tribo.v1.Simulation.Step",
            says="StepRequest",
        )
        info = "tribo.v1.Simulation/GetServerInfo"
        for way, more in (("reflection", []), ("files", files)):
            self.calls(f"grpcurl by {way}", *plain, *more, where, info, says="version")
        nowhere = json.dumps({"session_id": "0" * 32})
        state = "tribo.v1.Simulation/GetState"
        wrong = [*plain, "-d", nowhere, where, state]
        self.calls("grpcurl: an error", *wrong, status=69, says="NotFound")
        self.calls("grpcurl: its details", *wrong, status=69, says="ErrorInfo")
        steps = "".join(
            json.dumps({"step": {"session_id": self.session}, "tag": i}) for i in (7, 8)
        )
        stream = "tribo.v1.Simulation/StepStream"
        self.calls("grpcurl: a stream", *plain, "-d", steps, where, stream, says='"tag": "8"')

    def buf(self) -> None:
        curl = [self.tool("buf"), "curl", "--protocol", "grpc", "--http2-prior-knowledge"]
        base = f"http://{self.address}/tribo.v1.Simulation/"
        files = ["--schema", str(PROTO)]
        for way, more in (("reflection", []), ("files", files)):
            self.calls(f"buf curl by {way}", *curl, *more, base + "GetServerInfo", says="version")
        nowhere = json.dumps({"session_id": "0" * 32})
        # its status is the code of gRPC times 8
        wrong = [*curl, "-d", nowhere, base + "GetState"]
        self.calls("buf curl: an error", *wrong, status=40, says="not_found")

    def ghz(self) -> None:
        command = [self.tool("ghz"), "--insecure", "-c", "64", "--connections", "8", "-z", "5s"]
        command += [
            "--duration-stop",
            "wait",
            "--call",
            "grpc.health.v1.Health/Check",
            "-O",
            "json",
        ]
        ran = subprocess.run([*command, self.address], capture_output=True, text=True, timeout=120)
        found = json.loads(ran.stdout)
        codes = found["statusCodeDistribution"]
        good = set(codes) == {"OK"} and codes["OK"] > 1000
        self.report.check(good, f"ghz: {codes}")
        print(f"ghz: {found['rps']:.0f} calls a second from 64 callers", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = ("go", "node", "rust", "java", "h2spec", "grpcurl", "buf", "ghz")
    parser.add_argument("--build", type=Path, default=Path("build/clients"))
    parser.add_argument("--only", choices=every, action="append")
    options = parser.parse_args()
    report = Report()
    with scratch() as folder, tribo.Daemon(data=str(folder / "data")) as daemon:
        with daemon.connect(timeout=60) as client:
            # the toolchains may take long to install
            scene = client.load(BALL, name="ball.xml")
            session = client.create_session(scene, ttl=6 * 3600)
            clients = Clients(options.build, report, daemon.grpc, session.id)
            for name in options.only or every:
                run: Callable[[], None] = getattr(clients, name)
                with report.case(name):
                    run()
            session.delete()
    report.finish()


if __name__ == "__main__":
    main()
