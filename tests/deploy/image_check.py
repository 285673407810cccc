"""Runs the image of `make image` as an operator would, and asks it for grasps from outside.

    make image-check                    # IMAGE=tribod:gpu checks that one

The container has a read-only root, no capability and no privilege to gain; its volume is a folder
of this script. Checked: health, the dashboard, the demo's grasps through the Python client, data
that survive a new container, SIGTERM that drains, packages that are all used, and messages for
wrong starts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from common_daemon import BALL, BUILD, Report
from common_process import free_port

import tribo

ENGINE = os.environ.get("ENGINE") or shutil.which("podman") or shutil.which("docker") or ""
IMAGE = os.environ.get("IMAGE", "tribod:cpu")
NAME = f"tribod-image-check-{os.getpid()}"
#: the unprivileged user of the image
USER = 65532
#: goals for the compressed image, bytes
LARGEST = {"cpu": 120_000_000, "gpu": 200_000_000}

#: parts of the C library that libcuda.so.1 is linked with, and no container runtime brings
DRIVER_NEEDS = ("libdl.so.2", "libpthread.so.0", "librt.so.1")

#: options of podman in a container without privileges of its own; docker takes the network too
LIMITS = ["--ulimit", "nofile=1024:1024"]
if ENGINE.endswith("podman"):
    LIMITS += ["--ulimit", "nproc=1024:1024"]
ISOLATION = ["--network", "host", *LIMITS]


def run(*arguments: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    """One command of the engine."""
    # the runtime is a global option of podman alone
    runtime = ["--runtime", "runc"] if ENGINE.endswith("podman") and shutil.which("runc") else []
    return subprocess.run(
        [ENGINE, *runtime, *arguments], capture_output=True, text=True, timeout=300, check=check
    )


def are_equal(before: tribo.StepAnswer, after: tribo.StepAnswer) -> bool:
    """Whether two states of a session have the same time and the same bytes of q."""
    if before.q is None or after.q is None:
        return False
    return before.q.tobytes() == after.q.tobytes() and before.time == after.time


class Container:
    """A running tribod with its addresses: free ports of the machine, or the image's own ports on
    a network of the engine, whose name is given."""

    def __init__(self, folder: Path, *more: str, name: str = NAME, network: str = "") -> None:
        self.name = name
        self.grpc = f"127.0.0.1:{free_port()}"
        self.http = f"127.0.0.1:{free_port()}"
        addresses = (
            *("--env", f"TRIBOD_SERVER_GRPC_ADDRESS={self.grpc}"),
            *("--env", f"TRIBOD_SERVER_HTTP_ADDRESS={self.http}"),
        )
        if network:
            # callers are not on the loopback of the container
            addresses = ("--env", "TRIBOD_AUTH_ANONYMOUS_REMOTE=yes")
        answer = run(
            *("run", "--detach", "--name", name, "--network", network or "host", *LIMITS),
            *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *addresses,
            *("--volume", f"{folder}:/data", *more, IMAGE),
        )
        if answer.returncode != 0:
            raise RuntimeError(f"{ENGINE} run: {answer.stderr}")
        if network:
            form = f'{{{{(index .NetworkSettings.Networks "{network}").IPAddress}}}}'
            host = run("inspect", name, "--format", form, check=True).stdout.strip()
            self.grpc, self.http = f"{host}:7410", f"{host}:7480"

    def wait(self, seconds: float = 20) -> bool:
        """Whether the probe of the image says ready in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if run("exec", self.name, "/usr/bin/tribod", "--probe").returncode == 0:
                return True
            time.sleep(0.2)
        return False

    def stop(self) -> tuple[int, float]:
        """Sends SIGTERM; the exit code, and the seconds it took."""
        start = time.monotonic()
        run("stop", "--time", "30", self.name)
        seconds = time.monotonic() - start
        code = int(run("inspect", self.name, "--format", "{{.State.ExitCode}}").stdout)
        return code, seconds

    def remove(self) -> None:
        """Ends and removes the container."""
        run("rm", "--force", self.name)


def check_grasps(report: Report, container: Container) -> None:
    """The demo, from outside of the container."""
    demo = subprocess.run(
        [
            sys.executable,
            "-m",
            "tribo.demo",
            "--data",
            str(BUILD / "demo"),
            "--server",
            container.grpc,
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    report.equal(demo.returncode, 0, f"the demo's exit code ({demo.stderr.strip()[-300:]})")
    held = [
        line for line in demo.stdout.splitlines() if line.startswith("middle") and "held" in line
    ]
    report.check(len(held) == 1, f"the demo's grasp in the middle is held:\n{demo.stdout}")


def check_data(report: Report, folder: Path) -> None:
    """A session that was stepped in one container goes on in the next one, to the same state."""
    container = Container(folder)
    try:
        report.check(container.wait(), f"ready within 20 s: {run('logs', NAME).stderr[-500:]}")
        check_grasps(report, container)
        with urllib.request.urlopen(f"http://{container.http}/", timeout=20) as answer:
            page = answer.read().decode()
        report.check('<div id="app">' in page, f"the dashboard is in the image: {page[:300]}")
        with tribo.connect(container.grpc) as client:
            session = client.create_session(client.load(BALL, name="ball.xml"))
            before = session.step(50)
            session_id = session.id
        code, seconds = container.stop()
        report.equal(code, 0, "exit code after SIGTERM")
        report.check(seconds < 25, f"the drain took {seconds:.1f} s")
        logs = run("logs", NAME).stderr
        report.check('"event":"server.drained"' in logs, "the log says that the daemon drained")
        container.remove()

        container = Container(folder)
        report.check(container.wait(), "ready again over the same volume")
        with tribo.connect(container.grpc) as client:
            after = client.session(session_id).state()
            report.check(are_equal(before, after), "the session is the same in the new container")
    finally:
        container.remove()


def check_confinement(report: Report, folder: Path) -> None:
    """The process has no capability, no other user, and cannot write to the root."""
    container = Container(folder)
    try:
        container.wait()
        pid = run("inspect", NAME, "--format", "{{.State.Pid}}").stdout.strip()
        status = Path(f"/proc/{pid}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        for kind in ("CapEff", "CapPrm", "CapBnd"):
            report.equal(int(fields[kind], 16), 0, f"capabilities {kind}")
        report.equal(fields["NoNewPrivs"], "1", "no new privileges")
        report.equal(fields["Uid"].split()[0], str(USER), "user")
        made = run("exec", NAME, "/usr/bin/tribod", "--data", "/elsewhere", "--create-key", "k")
        report.check(
            made.returncode != 0 and "Read-only" in made.stderr, f"read-only root: {made.stderr}"
        )
        container.remove()

        # a daemon that cannot write its volume says which folder it is
        closed = folder.parent / "closed"
        closed.mkdir(mode=0o500)
        container = Container(closed)
        time.sleep(1.5)
        code = int(run("inspect", NAME, "--format", "{{.State.ExitCode}}").stdout)
        report.equal(code, 1, "exit code over a volume that it may not write")
        report.check("/data" in run("logs", NAME).stderr, "the message names /data")
    finally:
        container.remove()


def check_fleet(report: Report, folder: Path) -> None:
    """The image loads PostgreSQL's library; a database that is away holds up no start."""
    url = "postgresql://tribo@127.0.0.1:9/fleet"
    container = Container(folder, "--env", f"TRIBOD_FLEET_OUTBOX={url}")
    try:
        report.check(container.wait(), "ready while the fleet's database is away")
        logs = run("logs", NAME).stderr
        report.check("takes no rows" in logs, f"the log tells it: {logs[-500:]}")
    finally:
        container.remove()


def check_messages(report: Report, folder: Path) -> None:
    """Wrong settings are named, and nothing is served."""
    for setting, word in (
        ("TRIBOD_LIMITS_SESIONS=3", "TRIBOD_LIMITS_SESIONS"),
        ("TRIBOD_SERVER_DRAIN_SECONDS=soon", "soon"),
        ("TRIBOD_TLS_CERTIFICATE=/etc/none.pem", "key must be, too"),
    ):
        container = Container(folder, "--env", setting)
        try:
            time.sleep(1)
            code = int(run("inspect", NAME, "--format", "{{.State.ExitCode}}").stdout)
            report.equal(code, 2, f"exit code with {setting}")
            report.check(word in run("logs", NAME).stderr, f"the message says {word}")
        finally:
            container.remove()


def check_no_card(report: Report, folder: Path) -> None:
    """The gpu image on a node without a card: cards that are asked for end the start, `auto` goes
    on with the processors, and both say why."""
    data = folder.parent / "cards"
    data.mkdir()
    shutil.chown(data, USER, USER)
    container = Container(data, "--env", "TRIBOD_SERVER_BACKEND=gpu")
    try:
        time.sleep(2)
        code = int(run("inspect", NAME, "--format", "{{.State.ExitCode}}").stdout)
        logs = run("logs", NAME).stderr
        print(logs.strip().splitlines()[-1] if logs.strip() else "", flush=True)
        report.equal(code, 1, "exit code without a card")
        report.check("backend = gpu, but there is none" in logs, f"the message: {logs[-500:]}")
        report.check("CUDA" in logs or "driver" in logs, f"and its reason: {logs[-500:]}")
        report.equal(list(data.iterdir()), [], "files on the volume")
    finally:
        container.remove()
    container = Container(data)
    try:
        report.check(container.wait(), "auto is ready without a card")
        logs = run("logs", NAME).stderr
        report.check("devices.no_card" in logs, f"and says why: {logs[-500:]}")
        with tribo.connect(container.grpc) as client:
            report.equal([d.name for d in client.server_info().devices], ["cpu"], "devices")
    finally:
        container.remove()


def check_contents(report: Report, root: Path) -> str:
    """Every package of the image is one that a program loads; the SPDX list names them all.
    Returns the kind of the image."""
    archive = root.parent / "image.tar"
    created = run("create", "--name", NAME, IMAGE, check=True).stdout.strip()
    run("export", "--output", str(archive), created, check=True)
    run("rm", NAME)
    root.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(root)], check=True)
    listed = {path.name for path in (root / "var/lib/dpkg/status.d").iterdir()}
    sbom = json.loads((root / "usr/share/tribo/sbom.spdx.json").read_text())
    named = {p["name"] for p in sbom["packages"]} - {"tribod"}
    report.equal(named, listed, "packages of the SPDX list and of the scanner's list")
    for package in sorted(listed):
        report.check(
            (root / f"usr/share/doc/{package}/copyright").exists(),
            f"{package} has its copyright file",
        )

    loaded = set()
    for program in ("tribo", "tribod"):
        loaded |= needed(root, root / "usr/bin" / program)
    loaded |= {
        library
        for name in ("libhdf5_serial.so.*[0-9]", "libpq.so.5")
        for start in root.rglob(name)
        for library in needed(root, start) | {start.resolve()}
    }
    libraries = {p.resolve() for p in root.glob("usr/lib/**/*.so*") if p.is_file()}
    loaders = {p for p in libraries if p.name.startswith("ld-linux")}
    plugin = {p for p in libraries if p.name == "libtribo_gpu.so"}
    driver = {p.resolve() for n in DRIVER_NEEDS for p in root.rglob(n)}
    report.equal(
        len(driver), len(DRIVER_NEEDS) if plugin else 0, "libraries that a card's driver needs"
    )
    unused = libraries - loaded - loaders - plugin - driver
    report.equal(sorted(p.name for p in unused), [], "libraries that no program loads")
    report.check(not (root / "bin/sh").exists(), "there is no shell")

    kind = "gpu" if plugin else "cpu"
    saved = root.parent / "saved.tar"
    run("save", "--output", str(saved), IMAGE, check=True)
    packed = subprocess.run(["gzip", "-6", "--stdout", str(saved)], capture_output=True, check=True)
    size = len(packed.stdout)
    print(f"{IMAGE}: {size / 1e6:.1f} MB compressed, {len(listed)} packages", flush=True)
    report.check(size < LARGEST[kind], f"{size} bytes compressed, of {LARGEST[kind]} at most")
    return kind


def needed(root: Path, start: Path) -> set[Path]:
    """Shared libraries below `root` that an ELF file needs, directly or by another."""
    found: set[Path] = set()
    waiting = [start]
    while waiting:
        text = subprocess.run(
            ["readelf", "-d", str(waiting.pop())], capture_output=True, text=True, check=True
        ).stdout
        for line in text.splitlines():
            if "(NEEDED)" not in line:
                continue
            name = line.split("[")[1].split("]")[0]
            for place in root.glob(f"usr/lib/**/{name}"):
                library = place.resolve()
                if library not in found:
                    found.add(library)
                    waiting.append(library)
    return found


def main() -> None:
    """All checks."""
    report = Report()
    if not ENGINE or run("image", "inspect", IMAGE).returncode != 0:
        print(f"no image {IMAGE}: make image makes it", file=sys.stderr)
        sys.exit(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "data"
        folder.mkdir()
        Path(temporary).chmod(0o755)
        shutil.chown(folder, USER, USER)
        kind = check_contents(report, Path(temporary) / "root")
        check_data(report, folder)
        check_confinement(report, folder)
        check_fleet(report, folder)
        check_messages(report, folder)
        if kind == "gpu" and not Path("/dev/nvidia0").exists():
            check_no_card(report, folder)
    report.finish()


if __name__ == "__main__":
    main()
