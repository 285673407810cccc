"""Every alert of deploy/compose fires when it is provoked, and only then.

    make alerts-check

A real Prometheus reads the rules as they are shipped and scrapes one daemon per alert, each of
which gets into the trouble that the alert is for, and one that only works. At the end each
daemon's alerts are those that were expected. About three minutes, since alerts wait up to one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "attack"))

import floods
import frames
from common_daemon import BALL, BUILD, Report, scratch
from common_postgres import Postgres, find_programs
from common_process import free_port

import tribo

TRIBOD = os.environ.get("TRIBOD", str(BUILD / "tribod"))
ROOT = Path(__file__).resolve().parent.parent.parent
RULES = ROOT / "deploy" / "compose" / "prometheus" / "alerts.yaml"
#: s; the longest wait of an alert is one minute, and rates look one minute back
TROUBLE_SECONDS = 150
EXIT_DEVICE_LOST = 3


class Node:
    """A daemon at addresses that stay when it is started again."""

    def __init__(self, folder: Path, name: str, **options: str) -> None:
        self.name = name
        self.data = folder / name
        self.grpc, self.http = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.environment = {**os.environ, **options}
        self.log = folder / f"{name}.log"
        self.process = self.start()

    def start(self) -> subprocess.Popen[str]:
        """Starts it, and waits until it is ready."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [TRIBOD, "--data", self.data, "--grpc", self.grpc, "--http", self.http],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self.environment,
            )
        assert self.process.stdout is not None
        if not self.process.stdout.readline().startswith("ready"):
            raise RuntimeError(f"{self.name} does not start: {self.log.read_text()[-2000:]}")
        return self.process

    def kill(self) -> None:
        """Ends it as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def client(self) -> tribo.Client:
        """A connection."""
        return tribo.connect(self.grpc, timeout=60)

    def metric(self, name: str) -> float:
        """A plain number of its metrics."""
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(name + " "):
                    return float(line.split()[1])
        raise KeyError(name)


# ---- troubles -----------------------------------------------------------------------------------


def works(node: Node, end: float) -> None:
    """Steps now and then, as it should."""
    with node.client() as client:
        session = client.create_session(client.load(BALL, name="ball.xml"))
        while time.monotonic() < end:
            session.step(20)
            time.sleep(0.2)


def goes_down(node: Node, end: float) -> None:
    """Is killed and not started again."""
    node.kill()


def restarts(node: Node, end: float) -> None:
    """Is killed and started again four times, never away for long."""
    for _ in range(4):
        time.sleep(4)
        node.kill()
        node.start()


def loses_its_card(node: Node, end: float) -> None:
    """The card fails, the daemon ends, and is started again on a card that works."""
    switch = Path(node.environment["TRIBO_TEST_LOSE"])
    with node.client() as client:
        session = client.create_session(client.load(BALL, name="ball.xml"))
        session.step(5)
        switch.touch()
        with contextlib.suppress(tribo.TriboError):
            session.step(1)
    node.process.wait(60)
    if node.process.returncode != EXIT_DEVICE_LOST:
        raise RuntimeError(f"exit status {node.process.returncode}")
    switch.unlink()
    node.start()


def fills_its_disk(node: Node, end: float) -> None:
    """No byte is left for the store while sessions step on."""
    with node.client() as client:
        session = client.create_session(client.load(BALL, name="ball.xml"))
        session.step(5)
        with (
            (node.data.parent / "ballast").open("wb", buffering=0) as file,
            contextlib.suppress(OSError),
        ):
            while file.write(b"\0" * 4096):
                pass
        while time.monotonic() < end:
            session.step(5)
            with contextlib.suppress(tribo.TriboError):
                session.snapshot()
            time.sleep(0.2)


def crowd(node: Node, end: float, worlds: int, steps: int, callers: int = 24) -> None:
    """More callers than it can serve, each with a session of many worlds and steps a call."""
    with node.client() as client:
        scene = client.load(BALL, name="ball.xml")
        sessions = [client.create_session(scene, worlds=worlds) for _ in range(callers)]

    def call(session_id: str) -> None:
        with node.client() as client:
            session = client.session(session_id)
            while time.monotonic() < end:
                try:
                    session.step(steps, state=False)
                except tribo.TriboError:
                    time.sleep(0.2)

    threads = [threading.Thread(target=call, args=(s.id,)) for s in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def refuses(node: Node, end: float) -> None:
    """Requests that would wait too long are refused at once."""
    crowd(node, end, 1, 20_000)


def lets_wait(node: Node, end: float) -> None:
    """Requests wait however long it takes. Long calls are stepped in slices by turns, so that a
    call waits for one slice of each of the others: it takes many to wait long."""
    crowd(node, end, 1, 20_000, callers=250)


def writes_too_slowly(node: Node, end: float) -> None:
    """Its disk does not take a write for six seconds; here another writer holds the file."""
    load = threading.Thread(target=crowd, args=(node, time.monotonic() + 12, 1, 100))
    load.start()
    time.sleep(3)
    store = sqlite3.connect(node.data / "tribo.db", isolation_level=None)
    store.execute("BEGIN IMMEDIATE")
    time.sleep(6)
    store.execute("ROLLBACK")
    store.close()
    load.join()


def misses_its_tolerance(node: Node, end: float) -> None:
    """One iteration is not enough."""
    solve = tribo.SolveOptions(solver="sor", tolerance=1e-15, maximum_iterations=1)
    with node.client() as client:
        scene = client.load(
            BALL.replace(
                b"</worldbody>",
                BALL[BALL.index(b"<body") : BALL.index(b"</worldbody>")]
                .replace(b'name="ball"', b'name="other"')
                .replace(b'pos="0 0 0.1"', b'pos="0.01 0 0.29"')
                + b"</worldbody>",
            ),
            name="balls.xml",
        )
        session = client.create_session(scene, options=tribo.StepOptions(solve=solve))
        while time.monotonic() < end and node.metric("tribod_not_converged_total") < 60:
            with contextlib.suppress(tribo.TriboError):
                session.step(1)


def diverges(node: Node, end: float) -> None:
    """Speeds whose energy is beyond the largest double."""
    with node.client() as client:
        session = client.create_session(client.load(BALL, name="ball.xml"))
        while time.monotonic() < end and node.metric("tribod_diverged_total") < 15:
            session.reset()
            session.set_state(u=[1e300] * 6)
            session.step(10)


def is_full_of_connections(node: Node, end: float) -> None:
    """Clients that connect and say nothing; new ones take their places."""
    wires: list[socket.socket] = []
    while time.monotonic() < end and node.metric("tribod_connections_displaced_total") < 60:
        with contextlib.suppress(OSError):
            wires.append(frames.connect(node.grpc))
            time.sleep(0.05)
    for wire in wires:
        wire.close()


def fills_its_memory(node: Node, end: float) -> None:
    """Sessions up to the limit."""
    with node.client() as client:
        scene = client.load(BALL, name="ball.xml")
        with contextlib.suppress(tribo.TriboError):
            while time.monotonic() < end:
                client.create_session(scene, worlds=200)


def is_flooded(node: Node, end: float) -> None:
    """Thirty connections that break off calls without end."""
    for _ in range(30):
        with contextlib.suppress(OSError):
            wire = frames.connect(node.grpc)
            for piece in floods.ATTACKS["rapid_reset"]():
                wire.sendall(piece)


Trouble = Callable[[Node, float], None]


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of 12 MiB in memory."""
    place = folder / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def loses_its_fleet(node: Node, end: float) -> None:
    """A run waits for the database of its fleet since an hour."""
    works(node, time.monotonic() + 3)
    node.kill()
    with sqlite3.connect(node.data / "tribo.db") as store:
        store.execute("UPDATE outbox SET time_us = time_us - 3600 * 1000000")
    store.close()
    node.start()


def has_another_time(postgres: Postgres) -> Trouble:
    """The clock of the fleet's database is late."""

    def trouble(node: Node, end: float) -> None:
        postgres.ask(
            "CREATE SCHEMA late; CREATE FUNCTION late.clock_timestamp() RETURNS timestamptz"
            " LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() - interval '90 s' $$"
        )
        postgres.ask("ALTER ROLE tribo SET search_path = late, pg_catalog, public")
        node.kill()
        node.start()
        works(node, end)

    return trouble


# ---- Prometheus ---------------------------------------------------------------------------------


@contextlib.contextmanager
def prometheus(folder: Path, nodes: list[Node]) -> Iterator[str]:
    """A Prometheus over these daemons; its address."""
    targets = [{"targets": [node.http], "labels": {"instance": node.name}} for node in nodes]
    (folder / "prometheus.yaml").write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(RULES)],
                "scrape_configs": [{"job_name": "tribod", "static_configs": targets}],
            }
        )
    )
    address = f"127.0.0.1:{free_port()}"
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'prometheus'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield address
    finally:
        process.terminate()
        process.wait(30)


def fired(address: str) -> dict[str, set[str]]:
    """For each daemon the alerts that have fired since the start."""
    query = urllib.parse.quote('count_over_time(ALERTS{alertstate="firing"}[1h])')
    with urllib.request.urlopen(f"http://{address}/api/v1/query?query={query}") as answer:
        rows = json.load(answer)["data"]["result"]
    alerts: dict[str, set[str]] = {}
    for row in rows:
        labels = row["metric"]
        alerts.setdefault(labels["instance"], set()).add(labels["alertname"])
    return alerts


def main() -> None:
    """One daemon per alert."""
    report = Report()
    if shutil.which("prometheus") is None:
        report.skip("prometheus is not there: deploy/deps.sh prometheus installs it")
        report.finish()
    failing = str((BUILD / "tests" / "plugin" / "failing.so").resolve())
    with scratch() as folder, contextlib.ExitStack() as stack:
        cases: list[tuple[Node, Trouble, set[str]]] = [
            (Node(folder, "healthy"), works, set()),
            (Node(folder, "down"), goes_down, {"TribodDown"}),
            (Node(folder, "restarting"), restarts, {"TribodRestarting"}),
            (
                Node(
                    folder,
                    "lost",
                    TRIBO_GPU_PLUGIN=failing,
                    TRIBO_TEST_LOSE=str(folder / "lose"),
                    TRIBOD_SERVER_BACKEND="gpu",
                ),
                loses_its_card,
                {"TribodDeviceLost"},
            ),
            (Node(folder, "refusing"), refuses, {"TribodRefusing"}),
            (
                Node(
                    folder,
                    "crowded",
                    TRIBOD_LIMITS_QUEUE_WAIT_SECONDS="0",
                    TRIBOD_SCHEDULER_MAXIMUM_BATCH_WORLDS="1",
                ),
                lets_wait,
                {"TribodQueueLong"},
            ),
            (
                Node(
                    folder,
                    "slow",
                    # on a busy machine its calls would be refused instead
                    TRIBOD_LIMITS_QUEUE_WAIT_SECONDS="0",
                    TRIBOD_STORE_QUEUE_LENGTH="16",
                    TRIBOD_SESSIONS_CHECKPOINT_SECONDS="0",
                ),
                writes_too_slowly,
                {"TribodWritesDropped"},
            ),
            (Node(folder, "inexact"), misses_its_tolerance, {"TribodResidualNotMet"}),
            (Node(folder, "diverging"), diverges, {"TribodWorldsDiverge"}),
            (
                Node(folder, "connected", TRIBOD_LIMITS_GRPC_CONNECTIONS="20"),
                is_full_of_connections,
                {"TribodConnectionsFull"},
            ),
            (
                Node(folder, "memory", TRIBOD_LIMITS_MEMORY_BYTES="64 MiB"),
                fills_its_memory,
                {"TribodMemoryHigh"},
            ),
            (Node(folder, "flooded"), is_flooded, {"TribodConnectionsAbusive"}),
        ]
        away = Node(folder, "away", TRIBOD_FLEET_OUTBOX="postgresql://tribo@127.0.0.1:9/fleet")
        cases.append((away, loses_its_fleet, {"TribodOutboxBehind"}))
        untraced = Node(
            folder,
            "untraced",
            TRIBOD_OTLP_ENDPOINT="http://127.0.0.1:9",
            TRIBOD_OTLP_ROOT_RATIO="1",
            TRIBOD_OTLP_QUEUE_SPANS="16",
        )
        # its collector is away, so that more calls end than spans can wait
        cases.append((untraced, works, {"TribodSpansDropped"}))
        programs = find_programs()
        if programs is not None:
            postgres = Postgres(programs)
            stack.callback(postgres.close)
            skewed = Node(folder, "skewed", TRIBOD_FLEET_OUTBOX=postgres.url)
            cases.append((skewed, has_another_time(postgres), {"TribodClockSkewed"}))
        else:
            report.skip("another clock: PostgreSQL is not installed (deploy/deps.sh postgres)")
        if os.geteuid() == 0:
            disk = stack.enter_context(small_disk(folder))
            full = Node(disk, "full", TRIBOD_SESSIONS_CHECKPOINT_SECONDS="1")
            full_alerts = {"TribodStoreFailing", "TribodCheckpointsFailing"}
            cases.append((full, fills_its_disk, full_alerts))
        else:
            report.skip("a full disk: only root mounts one")
        for node, _, _ in cases:
            stack.callback(node.kill)
        address = stack.enter_context(prometheus(folder, [node for node, _, _ in cases]))
        time.sleep(10)
        report.equal(fired(address), {}, "alerts before any trouble")

        end = time.monotonic() + TROUBLE_SECONDS
        problems: dict[str, Exception] = {}

        def play(node: Node, trouble: Trouble) -> None:
            try:
                trouble(node, end)
            except Exception as error:
                problems[node.name] = error

        threads = [
            threading.Thread(target=play, args=(node, trouble)) for node, trouble, _ in cases
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        while time.monotonic() < end:
            time.sleep(0.5)
        report.equal(problems, {}, "troubles that could not be made")
        alerts = fired(address)
        for node, _, expected in cases:
            report.equal(alerts.get(node.name, set()), expected, f"alerts of '{node.name}'")
        rules = set(re.findall(r"alert: (\w+)", RULES.read_text()))
        provoked = set().union(*(expected for _, _, expected in cases))
        if programs is None:
            rules.discard("TribodClockSkewed")
        report.equal(rules - provoked, set(), "alerts that nothing provoked")
    report.finish()


if __name__ == "__main__":
    main()
