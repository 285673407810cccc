#!/usr/bin/env python3
"""The Function service over the wire: compiled, called, streamed, listed, refused with a place.

Loops that run too long end, the daemon lives, and compiled code is there after a restart. Arrays
that calls keep give the bytes of arrays that are sent, belong to their client, and go when asked,
by age and when memory is short. Where there is a played card the same runs on it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from common_daemon import BUILD, TRIBO, Report, create_key, scratch

import tribo
import tribo.aio
from tribo.v1 import function_pb2

PLAYED = BUILD.resolve() / "tests" / "plugin" / "modelica"
HEAT = """
function heat
  input Real u[:, :];
  input Real a = 0.125;
  input Integer steps = 1;
  output Real v[size(u, 1), size(u, 2)];
  output Real total;
protected
  Real w[size(u, 1), size(u, 2)];
algorithm
  v := u;
  for s in 1:steps loop
    w := v;
    for i in 2:size(u, 1) - 1, j in 2:size(u, 2) - 1 loop
      v[i, j] := w[i, j] + a * (w[i - 1, j] + w[i + 1, j] + w[i, j - 1] + w[i, j + 1]
        - 4 * w[i, j]);
    end for;
  end for;
  total := sum(v);
  annotation(gpuFunction = true);
end heat;
"""
LONG = """
function long
  input Integer n = 100;
  output Real y[n];
protected
  Real s;
algorithm
  for i in 1:n loop
    s := 0;
    while s < 1e18 loop
      s := s + 1;
    end while;
    y[i] := s;
  end for;
  annotation(gpuFunction = true);
end long;
"""


def backends() -> tuple[list[str], dict[str, str]]:
    """The back ends that this machine has, and the environment in which a card is played."""
    libraries = [PLAYED / "played_cuda.so", PLAYED / "played_nvrtc.so"]
    if not all(path.exists() for path in libraries):
        return ["interpreter", "cpu"], {}
    return ["interpreter", "cpu", "gpu"], {"LD_PRELOAD": ":".join(map(str, libraries))}


def field(n: int = 40, m: int = 50) -> np.ndarray:
    """Numbers without a pattern, the same each time."""
    return np.random.default_rng(5).random((n, m))


def check_calls(report: Report, client: tribo.Client, names: list[str]) -> None:
    """Compiled, listed and called on each back end with the same bytes; outputs in pieces."""
    u = field()
    w = u.copy()
    for _ in range(3):
        w[1:-1, 1:-1] += 0.125 * (
            w[:-2, 1:-1] + w[2:, 1:-1] + w[1:-1, :-2] + w[1:-1, 2:] - 4 * w[1:-1, 1:-1]
        )
    heat = client.function(HEAT)
    report.check("kernel over" in heat.loops, f"the report on loops: {heat.loops}")
    answers = {b: heat.call(u, steps=3, backend=b) for b in names}
    for backend, answer in answers.items():
        report.equal(answer.backend, backend, "the back end that ran")
        v, total = answer.outputs["v"], answer.outputs["total"]
        report.check(bool(np.abs(v - w).max() < 1e-14), f"{backend} gives numpy's heat")
        report.check(abs(total - w.sum()) < 1e-9, f"{backend} gives numpy's sum")
        same = v.tobytes() == answers["interpreter"].outputs["v"].tobytes()
        report.check(same, f"{backend} gives the interpreter's bytes")
    listed = client.programs()
    report.equal([f.name for f in listed[0].functions], ["heat"], "the programs listed")
    report.equal([a.name for a in listed[0].functions[0].inputs], ["u", "a", "steps"], "its inputs")
    large = field(700, 700)
    request = heat.request((large,), {}, "cpu", 0, 0, ())
    pieces = [m for m in client.call_function(request) if m.WhichOneof("event") == "output"]
    offsets = [m.offset for m in pieces if m.output.name == "v"]
    report.equal(offsets, [k << 20 for k in range(4)], "offsets of a large output's pieces")
    data = b"".join(m.output.value.data for m in pieces if m.output.name == "v")
    report.equal(len(data), large.nbytes, "bytes of the pieces")


def check_failures(report: Report, client: tribo.Client, names: list[str]) -> None:
    """Every failure names its place, and the daemon lives."""

    def refused(source: str, text: str, kind: type[tribo.TriboError], **inputs: object) -> None:
        for backend in names if inputs.pop("call", True) else names[:1]:
            error = report.raises(
                kind, text, lambda b=backend: client.function(source).call(backend=b, **inputs)
            )
            report.check(error is not None and text in str(error), f"{text} in: {error}")

    body = (
        "function f\n  input Real x[:] = {1, 2};\n  input Integer k = 0;\n  output Real y[2];\n"
        "algorithm\n  for i in 1:2 loop\n    %s\n  end for;\n"
        "  annotation(gpuFunction = true);\nend f;\n"
    )
    invalid = tribo.InvalidArgumentError
    refused(body % "y[i] := x[i] +;", "source.mo:7:19: unexpected ';'", invalid, call=False)
    refused(body % "y[i] := z;", "source.mo:7:13: no variable or constant 'z'", invalid, call=False)
    refused(body % "y[i] := {1};", "source.mo:7:5:", invalid, call=False)
    refused("model m end m;", "source.mo:1:1: 'model' is left out", tribo.TriboError, call=False)
    refused(body % "y[i] := 1 / k;", "source.mo:7:15: division by zero", invalid)
    refused(
        body % "y[i] := x[i + 5];",
        "source.mo:7:13: index 6 is outside of 1:2 in dimension 1 of 'x'",
        invalid,
    )
    refused(
        body % 'assert(x[i] < 2, "too large"); y[i] := 0;',
        "source.mo:7:5: assertion failed: too large",
        tribo.TriboError,
    )
    report.raises(tribo.TriboError, "diverged", lambda: client.function(HEAT)(field() * 1e308, a=9))
    report.raises(invalid, "an input that is not finite", lambda: client.function(HEAT)([[np.nan]]))
    for backend in names:
        began = time.monotonic()
        report.raises(
            tribo.DeadlineExceededError,
            f"a loop without end on {backend}",
            lambda b=backend: client.function(LONG).call(backend=b, seconds=0.05, n=2),
        )
        report.check(time.monotonic() - began < 20, f"{backend} is stopped in time")
    report.raises(
        tribo.ResourceExhaustedError,
        "arrays beyond the call's memory",
        lambda: client.function(HEAT).call(field(), memory_bytes=1000),
    )
    report.check(client.server_info() is not None, "the daemon lives")


def check_kept(report: Report, client: tribo.Client, address: str, names: list[str]) -> None:
    """Arrays that stay give the bytes of arrays that are sent."""
    heat = client.function(HEAT)
    u = field()
    for backend in names:
        sent = u
        for _ in range(4):
            sent = heat.call(sent, steps=2, backend=backend).outputs["v"]
        kept: tribo.Kept | np.ndarray = tribo.Kept("start", u)
        for _ in range(4):
            answer = heat.call(kept, steps=2, backend=backend, keep={"v": "field"})
            kept = answer.outputs["v"]
        report.equal((kept.name, kept.shape), ("field", (40, 50)), f"{backend}: what is kept")
        report.equal(
            client.fetch(kept).tobytes(), sent.tobytes(), f"{backend}: bytes kept and sent"
        )
        again = heat.call(tribo.Kept("start"), steps=2, backend=backend).outputs["v"]
        once = heat.call(u, steps=2, backend=backend).outputs["v"]
        report.equal(again.tobytes(), once.tobytes(), f"{backend}: an input that was kept")
        report.equal([k.name for k in client.kept()], ["start", "field"], f"{backend}: listed")
    missing = tribo.NotFoundError
    report.raises(missing, "a name of nothing", lambda: heat(tribo.Kept("none")))
    with tribo.connect(address) as other:
        report.raises(missing, "another client's", lambda: other.fetch("field"))
        other.function(HEAT).call(u, keep=["v"])
        session = other._function_session
        listed = client._function.List(function_pb2.ListRequest(session=session)).arrays
        report.equal([a.name for a in listed], ["v"], "arrays of a client")
    listed = client._function.List(function_pb2.ListRequest(session=session)).arrays
    report.equal(len(listed), 0, "arrays of a client that closed")
    invalid = tribo.InvalidArgumentError
    report.raises(invalid, "a scalar to keep", lambda: heat.call(u, keep=["total"]))
    report.raises(invalid, "no such output", lambda: heat.call(u, keep=["x"]))
    report.raises(invalid, "a long name", lambda: heat.call(u, keep={"v": "n" * 81}))
    report.raises(invalid, "nan to keep", lambda: heat.call(tribo.Kept("n", [[np.inf]])))
    report.equal(client.forget("field"), 1, "arrays forgotten by name")
    report.raises(missing, "forgotten", lambda: heat(tribo.Kept("field")))
    report.equal(client.forget(), 1, "the others")
    report.equal(client.kept(), [], "nothing is left")
    client.function(
        "function f input Real x[:]; output Boolean b[size(x, 1)]; algorithm "
        "b := {i > 0 for i in x}; end f;"
    ).call([-1.0, 1.0], keep=["b"])
    report.equal(client.fetch("b").tolist(), [False, True], "a kept Boolean array")


async def check_async(report: Report, address: str) -> None:
    """The same by asyncio."""
    async with tribo.aio.connect(address) as client:
        heat = await client.function(HEAT)
        answer = await heat.call(field(), keep=["v"])
        first = await client.fetch(answer.outputs["v"])
        second = (await heat.call(answer.outputs["v"])).outputs["v"]
        report.equal(first.shape, second.shape, "shapes by asyncio")
        report.equal(
            [(k.name, k.shape) for k in await client.kept()],
            [("v", first.shape)],
            "listed by asyncio",
        )
        report.equal(await client.forget("v"), 1, "forgotten by asyncio")


def check_command(report: Report, folder: Path, address: str) -> None:
    """`tribo function call --keep`, and forget."""
    np.save(folder / "u.npy", field())
    (folder / "heat.mo").write_text(HEAT)

    def tribo_function(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [TRIBO, "function", *arguments], capture_output=True, text=True, cwd=folder
        )

    server = ("--server", address)
    mine = (*server, "--session", "mine")
    call = ("call", "heat.mo", "--backend", "cpu")
    first = tribo_function(
        *call, "--input", "u=u.npy", "--keep", "u=start", "--keep", "v=field", *mine
    )
    report.equal(first.returncode, 0, f"a call that keeps: {first.stderr}")
    report.check("v40 x 50 kept as field" in first.stdout, f"it tells so: {first.stdout}")
    second = tribo_function(
        *call, "--input", "u=kept:field", "--keep", "v=field", "--output", "v=v.npy", *mine
    )
    report.equal(second.returncode, 0, f"a call with what is kept: {second.stderr}")
    alone = tribo_function(*call, "--input", "u=u.npy", "--input", "steps=2", "--output", "v=w.npy")
    report.equal(alone.returncode, 0, alone.stderr)
    report.equal((folder / "v.npy").read_bytes(), (folder / "w.npy").read_bytes(), "equal bytes")
    gone = tribo_function("forget", "mine", *server)
    report.equal(gone.stdout, f"2 arrays of {2 * 40 * 50 * 8} bytes forgotten\n", "forget")
    after = tribo_function(*call, "--input", "u=kept:field", *mine)
    report.equal(after.returncode, 1, "a call with what was forgotten")
    report.check("send it again" in after.stderr, after.stderr)
    report.equal(tribo_function("forget", "mine").returncode, 2, "forget without a daemon")
    local = tribo_function(*call, "--input", "u=u.npy", "--keep", "v=field")
    report.equal(local.returncode, 2, "a call without a daemon that keeps")


def check_limits(report: Report, names: list[str], environment: Mapping[str, str]) -> None:
    """Arrays go by age and when memory is short, and keys see their own alone."""
    limits = {"TRIBOD_LIMITS_KEPT_ARRAY_BYTES": "100 KiB", "TRIBOD_SESSIONS_TTL_SECONDS": "1"}
    with scratch() as folder:
        keys = [create_key(folder, name, "--scope", "run") for name in ("one", "two")]
        with tribo.Daemon(data=folder, environment={**environment, **limits}) as daemon:
            one, two = (tribo.connect(daemon.grpc, api_key=key) for key in keys)
            heat = one.function(HEAT)
            for k in range(5):  # 16 KB each, of 51 for one client
                heat.call(field(), keep={"v": f"v{k}"}, backend=names[-1])
            report.equal([k.name for k in one.kept()], ["v4", "v3", "v2"], "the oldest went")
            report.raises(
                tribo.ResourceExhaustedError,
                "larger than the share of a client",
                lambda: heat.call(field(90, 90), keep=["v"]),
            )
            two._function_session = one._function_session
            report.raises(tribo.NotFoundError, "another key", lambda: two.fetch("v4"))
            end = time.monotonic() + 20
            while one.kept() and time.monotonic() < end:
                time.sleep(0.2)
            report.equal(one.kept(), [], "arrays that no call names go")
            one.close()
            two.close()


def check_many(report: Report, names: list[str], environment: Mapping[str, str]) -> None:
    """Clients at once whose arrays evict each other: no wrong answer, and all memory comes back."""
    own = {"TRIBOD_LIMITS_KEPT_ARRAY_BYTES": "300 KiB", "TRIBOD_SERVER_THREADS": "6"}
    faults: list[str] = []
    answers: list[int] = []

    def work(client: tribo.Client, number: int) -> None:
        heat, u = client.function(HEAT), field() + number
        first = b""
        end = time.monotonic() + 60
        k = 0
        while k < 20 and time.monotonic() < end:
            backend = names[(number + k) % len(names)]
            try:
                given = tribo.Kept("u", u if k % 4 == 0 else None)
                answer = heat.call(given, keep={"v": f"v{k}"}, backend=backend)
                found = client.fetch(answer.outputs["v"]).tobytes()
            except tribo.ResourceExhaustedError:
                time.sleep(0.005)  # all workers are busy
                continue
            except tribo.NotFoundError:
                k += 4 - k % 4  # evicted
                continue
            first = first or found
            if found != first:
                faults.append(f"client {number}, call {k}: other bytes")
            answers.append(k)
            k += 1

    def run(daemon: tribo.Daemon, number: int) -> None:
        try:
            with daemon.connect() as client:
                work(client, number)
        except Exception as error:
            faults.append(repr(error))

    with tribo.Daemon(environment={**environment, **own}) as daemon:
        threads = [threading.Thread(target=run, args=(daemon, number)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with urllib.request.urlopen(f"http://{daemon.http}/metrics", timeout=30) as metrics:
            lines = metrics.read().decode().splitlines()
    report.equal(faults, [], "faults of clients at once")
    report.check(len(answers) >= 12, f"answers of clients at once: {len(answers)}")
    report.check("tribod_memory_booked_bytes 0" in lines, "memory is given back")


def check_http(report: Report, address: str) -> None:
    """Fetch and Forget over HTTP and JSON."""

    def post(method: str, message: dict[str, object]) -> dict[str, object]:
        request = urllib.request.Request(
            f"http://{address}/tribo.v1.Function/{method}",
            json.dumps(message).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, object] = json.loads(answer.read())
        return found

    report.check("programs" in post("List", {"session": "web"}), "List over HTTP")
    report.equal(post("Forget", {"session": "web"}), {}, "Forget over HTTP")


def check_cache(report: Report, folder: Path, environment: Mapping[str, str]) -> None:
    """Compiled code outlives the daemon: the compiler, which notes its runs, does not run again."""
    tools, log, cache = folder / "bin", folder / "log", folder / "cache"
    tools.mkdir(parents=True)
    wrapper = tools / "cc"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >>{log}\nexec gcc "$@"\n')
    wrapper.chmod(0o755)
    own = {"XDG_CACHE_HOME": str(cache), "PATH": f"{tools}:{os.environ['PATH']}"}
    card = "LD_PRELOAD" in environment
    found: list[tuple[int, list[int]]] = []
    for _ in range(2):
        with tribo.Daemon(environment={**environment, **own}) as daemon:
            with daemon.connect() as client:
                heat = client.function(HEAT)
                for backend in ["cpu", "gpu"] if card else ["cpu"]:
                    answer = heat.call(field(), backend=backend)
                    report.equal(answer.backend, backend, "the back end")
        runs = sum("-shared" in line for line in log.read_text().splitlines())
        files = sorted((cache / "tribo" / "functions").iterdir())
        found.append((runs, [file.stat().st_ino for file in files]))
    report.equal(found[0][0], 1, "runs of the compiler")
    report.equal(len(found[0][1]), 1 + card, "files of compiled code")
    report.equal(found[1], found[0], "the same after the restart")


def main() -> None:
    """Runs the parts, each against a daemon."""
    report = Report()
    names, environment = backends()
    if "gpu" not in names:
        report.skip("no played card: the card's part")
    with scratch() as folder:
        environment = {**environment, "XDG_CACHE_HOME": str(folder)}
        with tribo.Daemon(environment=environment) as daemon, daemon.connect() as client:
            with report.case("calls"):
                check_calls(report, client, names)
            with report.case("failures"):
                check_failures(report, client, names)
            with report.case("kept arrays"):
                check_kept(report, client, daemon.grpc, names)
            with report.case("asyncio"):
                asyncio.run(check_async(report, daemon.grpc))
            with report.case("the command"):
                check_command(report, folder, daemon.grpc)
            with report.case("HTTP"):
                check_http(report, daemon.http)
        with report.case("limits"):
            check_limits(report, names, environment)
        with report.case("many at once"):
            check_many(report, names, environment)
        with report.case("cache"):
            check_cache(report, folder / "restart", environment)
    report.finish()


if __name__ == "__main__":
    main()
