#!/usr/bin/env python3
"""Runs and benchmarks of two daemons reach one PostgreSQL, each once, while one daemon and the
database are killed; and any daemon lists those of all. Skipped where PostgreSQL is not installed
(`deploy/deps.sh postgres`)."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_browser import Browser
from common_daemon import BALL, BUILD, TRIBO, Report, create_key, scratch
from common_postgres import Postgres, find_programs

import tribo
from tribo.v1 import runs_pb2

report = Report()
FIELDS = (
    "id, node, status, steps, residual, energy, label, owner, start_time_us, end_time_us, scene"
)


def start(folder: Path, name: str, url: str, **more: str) -> tribo.Daemon:
    """A daemon of the fleet over its folder."""
    return tribo.Daemon(
        data=folder / name,
        environment={"TRIBOD_FLEET_OUTBOX": url, "TRIBOD_FLEET_NODE": name, **more},
    )


def metric(daemon: tribo.Daemon, name: str) -> float:
    """One number of the metrics page."""
    with urllib.request.urlopen(f"http://{daemon.http}/metrics", timeout=20) as page:
        for line in page.read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
    raise KeyError(name)


def wait_for(what: str, good: Callable[[], bool], seconds: float = 60) -> None:
    """Waits for something, and checks that it came."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if good():
            report.check(True, what)
            return
        time.sleep(0.1)
    report.check(False, f"{what}: not within {seconds:g} s")


def sent(daemon: tribo.Daemon) -> bool:
    """Whether the outbox is empty and was measured lately."""
    waiting, gone = (metric(daemon, f"tribod_outbox_{name}") for name in ("length", "sent_total"))
    return waiting == 0 and gone > 0


def work(daemon: tribo.Daemon, name: str, count: int) -> None:
    """Sessions that step and end, and a benchmark each."""
    with daemon.connect() as client:
        scene = client.load(BALL)
        for i in range(count):
            with client.create_session(scene, label=f"{name} {i} µ") as session:
                session.step(5 + i)
            client.record_benchmark(
                runs_pb2.Benchmark(name=f"{name}.{i}", metric="seconds", samples=[0.1, 1 / 3, i])
            )


def rows_of(run: runs_pb2.Run, node: str) -> list[str]:
    """A run of a daemon's own list as the database should have it."""
    return [
        run.run_id,
        node,
        str(run.status),
        str(run.steps),
        repr(run.certificate.residual),
        repr(run.certificate.energy),
        run.label,
        run.owner,
        str(run.start_time_us),
        str(run.end_time_us),
        run.scene_id,
    ]


def exact(row: list[str]) -> list[str]:
    """Texts of numbers as Python writes them."""
    return [*row[:4], repr(float(row[4])), repr(float(row[5])), *row[6:]]


def compare(postgres: Postgres, daemons: dict[str, tribo.Daemon]) -> None:
    """Every run and benchmark of each store is in the database, once and with the same numbers."""
    expected, benchmarks = [], []
    for name, daemon in daemons.items():
        wait_for(f"the outbox of {name} is empty", lambda daemon=daemon: sent(daemon))  # type: ignore[misc]
        with daemon.connect() as client:
            expected += [rows_of(run, name) for run in client.runs()]
            benchmarks += [
                [b.benchmark_id, name, b.name, [*b.samples]] for b in client.benchmarks()
            ]
    got = [exact(row) for row in postgres.ask(f"SELECT {FIELDS} FROM tribo_run")]
    report.equal(sorted(got), sorted(expected), "runs in the database")
    report.check(len(expected) > 0, "there are runs")
    kept = postgres.ask("SELECT id, node, name, array_to_json(samples) FROM tribo_benchmark")
    report.equal(
        sorted([*row[:3], json.loads(row[3])] for row in kept), sorted(benchmarks), "benchmarks"
    )


def nothing_is_lost(postgres: Postgres, folder: Path) -> None:
    """Two daemons work while one of them and the database are killed again and again."""
    daemons = {name: start(folder, name, postgres.url) for name in ("north", "south")}
    try:
        for attempt in range(3):
            workers = [
                threading.Thread(target=work, args=(daemons["south"], f"south{attempt}", 20))
            ]
            for worker in workers:
                worker.start()
            try:
                killer = threading.Timer(0.3 + 0.2 * attempt, daemons["north"].kill)
                killer.start()
                work(daemons["north"], f"north{attempt}", 1000)
                report.check(False, "the daemon outlived its kill")
            except tribo.TriboError:
                pass
            # the call fails before the process has ended and let go of its store
            killer.join()
            postgres.kill()
            daemons["north"] = start(folder, "north", postgres.url)
            for worker in workers:
                worker.join()
            if attempt == 0:
                wait_for(
                    "rows wait while the database is away",
                    lambda: metric(daemons["south"], "tribod_outbox_length") > 0,
                )
            postgres.start()
        compare(postgres, daemons)
        ids = postgres.ask("SELECT count(*), count(DISTINCT id) FROM tribo_run")[0]
        report.equal(ids[0], ids[1], "each run once")
        lists(daemons, postgres)
        theirs = finds(daemons)
        if shutil.which("chromium") and (BUILD / "dashboard/dist/index.html").exists():
            shows(daemons["north"], theirs, folder)
        else:
            report.skip("the dashboard's list of a fleet: no Chromium or no dashboard")
        refuses(postgres, daemons["north"])
        stopped(postgres, daemons["north"])
    finally:
        for daemon in daemons.values():
            daemon.stop()
    log = (folder / "south" / "tribod.log").read_text()
    failures, recoveries = log.count("takes no rows"), log.count("takes rows again")
    report.check(1 <= failures <= 5, f"an outage is logged once: {failures}")
    report.check(recoveries <= failures, f"and its end: {recoveries}")


def lists(daemons: dict[str, tribo.Daemon], postgres: Postgres) -> None:
    """Any daemon lists the runs of all, in pages; so does the command."""
    total = int(postgres.ask("SELECT count(*) FROM tribo_run")[0][0])
    with daemons["north"].connect() as client:
        report.check(client.server_info().fleet, "the daemon says that it knows the fleet")
        listed = list(client.runs(fleet=True))
        report.equal(len({run.run_id for run in listed}), total, "runs of the fleet's list")
        report.equal({run.node for run in listed}, {"north", "south"}, "their nodes")
        times = [run.start_time_us for run in listed]
        report.equal(times, sorted(times, reverse=True), "latest first")
        own = {run.run_id: run for run in client.runs()}
        for run in listed:
            if run.node == "north":
                run.node = ""
                report.equal(run, own[run.run_id], "a run of both lists")
                break
        scene = listed[0].scene_id
        report.equal(len(list(client.runs(scene, fleet=True))), total, "by scene")
        count = int(postgres.ask("SELECT count(*) FROM tribo_benchmark")[0][0])
        report.equal(len(list(client.benchmarks(fleet=True))), count, "benchmarks of the list")
        report.equal(len(list(client.benchmarks("south0.3", fleet=True))), 1, "one by its name")

        pages: list[str] = []
        token = ""
        while True:
            page = client._runs.ListRuns(
                runs_pb2.ListRunsRequest(fleet=True, page_size=7, page_token=token)
            )
            pages += [run.run_id for run in page.runs]
            token = page.next_page_token
            if not token:
                break
        report.equal(pages, [run.run_id for run in listed], "in pages of seven")
        report.raises(
            tribo.InvalidArgumentError,
            "a token of another list",
            lambda: next(
                client._pages(
                    client._runs.ListRuns,
                    runs_pb2.ListRunsRequest(fleet=True, page_token="00000000ab.1"),
                    "runs",
                )
            ),
        )
    command = subprocess.run(
        [TRIBO, "runs", "--fleet", "--json", "--limit", "5", "--server", daemons["south"].grpc],
        check=True,
        capture_output=True,
        text=True,
    )
    told = [json.loads(line) for line in command.stdout.splitlines()]
    report.equal([t["run_id"] for t in told], [r.run_id for r in listed[:5]], "tribo runs --fleet")
    report.check(all(t["node"] in ("north", "south") for t in told), "with nodes")


def finds(daemons: dict[str, tribo.Daemon]) -> str:
    """Any daemon finds a run of another one by its id or its first digits. Returns the id."""
    with daemons["south"].connect() as south, daemons["north"].connect() as north:
        theirs = next(iter(south.runs()))
        # a run that the kill interrupted may have no history yet
        mine = next(r for r in north.runs() if r.status == runs_pb2.RUN_STATUS_DONE)
        for name in (theirs.run_id, theirs.run_id[:12]):
            told = north.run(name)
            report.equal(told.run.node, "south", "the node")
            report.equal([*told.summaries, *told.events], [], "its history stays there")
            told.run.node = ""
            report.equal(told.run, theirs, "the run")
        own = north.run(mine.run_id)
        report.equal(own.run.node, "", "a run of this daemon")
        report.check(len(own.summaries) > 0, "has its history")
        both = north.compare_runs(mine.run_id, theirs.run_id)
        report.equal((both.a.node, both.b.node), ("", "south"), "a comparison of two nodes")
        report.check(both.same_scene, "of the same scene")
        error = report.raises(tribo.NotFoundError, "an absent run", lambda: north.run("ab" * 16))
        report.check("the fleet has no run" in str(error), f"it says where it looked: {error}")
    shown = subprocess.run(
        [TRIBO, "runs", "show", theirs.run_id, "--server", daemons["north"].grpc],
        check=True,
        capture_output=True,
        text=True,
    )
    report.check("south" in shown.stdout, f"tribo runs show names the node: {shown.stdout}")
    return theirs.run_id


def shows(daemon: tribo.Daemon, theirs: str, folder: Path) -> None:
    """The dashboard's box widens the list of runs to the fleet; any run of it is shown."""
    with Browser(folder) as browser:
        browser.open(f"http://{daemon.http}/#/runs")
        browser.wait("document.querySelector('main table tbody tr')")
        browser.wait("document.querySelector('main [name=fleet]')")
        browser.click("main [name=fleet]")
        browser.wait("document.querySelector('main table thead').textContent.includes('node')")
        # rows of the list before stay, with an empty cell, until the answer has come
        browser.wait("document.querySelector('main table tbody tr')?.cells[1].textContent !== ''")
        browser.wait("(document.querySelector('main table tbody tr')?.cells.length ?? 0) > 5")
        nodes = browser.run(
            "[...new Set([...document.querySelectorAll('main table tbody tr')]"
            ".map(row => row.cells[1].textContent))].sort()"
        )
        report.check("north" in nodes and set(nodes) <= {"north", "south"}, f"nodes: {nodes}")
        browser.open(f"http://{daemon.http}/#/runs/{theirs}")
        browser.wait("document.body.textContent.includes('node south has its curves')")
        browser.open(f"http://{daemon.http}/#/benchmarks?fleet=1&search=south")
        browser.wait("document.querySelector('[data-benchmark^=south]')")
        report.check(True, "benchmarks of the other node")


def refuses(postgres: Postgres, daemon: tribo.Daemon) -> None:
    """A row that the database does not take is set aside and holds up no other."""
    postgres.ask("ALTER TABLE tribo_benchmark ADD CHECK (name <> 'bad')")
    with daemon.connect() as client:
        for name in ("before", "bad", "after"):
            client.record_benchmark(runs_pb2.Benchmark(name=name, metric="seconds", samples=[1.0]))
    wait_for("the bad row is set aside", lambda: metric(daemon, "tribod_outbox_refused") == 1)
    query = "SELECT name FROM tribo_benchmark WHERE name !~ '[.]' ORDER BY name"
    wait_for("the others are sent", lambda: postgres.ask(query) == [["after"], ["before"]])


def stopped(postgres: Postgres, daemon: tribo.Daemon) -> None:
    """A database that does not answer is an error of the list and holds up nothing else."""
    postgres.signal(signal.SIGSTOP)
    try:
        with daemon.connect(timeout=30) as client:
            began = time.monotonic()
            report.raises(
                tribo.FailedPreconditionError, "the list", lambda: list(client.runs(fleet=True))
            )
            took = time.monotonic() - began
            report.check(took < 20, f"in its ten seconds: {took:.1f}")
            began = time.monotonic()
            with client.create_session(client.load(BALL)) as session:
                session.step(3)
            report.check(time.monotonic() - began < 5, "steps go on")
        began = time.monotonic()
        daemon.stop()
        report.check(time.monotonic() - began < 8, "the daemon ends")
    finally:
        postgres.signal(signal.SIGCONT)


def other_databases(postgres: Postgres, folder: Path) -> None:
    """Newer tables are left alone; emptied ones get everything again; so does a later fleet."""
    postgres.ask("UPDATE tribo_fleet SET version = 9")
    with start(folder, "north", postgres.url) as daemon:
        wait_for("it fails", lambda: metric(daemon, "tribod_outbox_failures_total") > 0)
        report.check("have version 9" in daemon.log.read_text(), "the log names the version")
    postgres.ask("DROP TABLE tribo_fleet, tribo_run, tribo_benchmark")
    with start(folder, "north", postgres.url) as daemon:
        compare(postgres, {"north": daemon})


def owners(postgres: Postgres, folder: Path) -> None:
    """A caller sees its own runs of the fleet, an administrator all of them."""
    keys = {name: create_key(folder / "east", name, "--scope", "run") for name in ("ann", "bob")}
    with start(folder, "east", postgres.url) as daemon:
        for name, key in keys.items():
            with (
                daemon.connect(api_key=key) as client,
                client.create_session(client.load(BALL), label=name) as session,
            ):
                session.step(1)
        wait_for("sent", lambda: sent(daemon))
        with daemon.connect(api_key=keys["ann"]) as client:
            listed = list(client.runs(fleet=True))
            report.equal([run.label for run in listed], ["ann"], "runs that ann sees")
        with start(folder, "elsewhere", postgres.url) as other, other.connect() as client:
            # without a key a caller of loopback is "anonymous", and may not see ann's
            report.raises(tribo.NotFoundError, "a run of ann", lambda: client.run(listed[0].run_id))


def clocks(postgres: Postgres, folder: Path) -> None:
    """A node whose clock differs from the database's says so, once, and sends all the same."""
    # the role looks here before it looks at PostgreSQL's own functions
    postgres.ask(
        "CREATE SCHEMA late; CREATE FUNCTION late.clock_timestamp() RETURNS timestamptz"
        " LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() - interval '90 s' $$"
    )
    postgres.ask("ALTER ROLE tribo SET search_path = late, pg_catalog, public")
    try:
        with start(folder, "early", postgres.url) as daemon:
            work(daemon, "early", 2)
            wait_for("sent", lambda: sent(daemon))
            skew = metric(daemon, "tribod_outbox_clock_skew_seconds")
            report.check(88 <= skew <= 91, f"the difference: {skew} s")
            log = daemon.log.read_text()
            report.equal(log.count("ahead of that of the fleet's database"), 1, "the log tells it")
    finally:
        postgres.ask("ALTER ROLE tribo RESET search_path")
    with start(folder, "early", postgres.url) as daemon:
        work(daemon, "later", 1)
        wait_for("sent", lambda: sent(daemon))
        report.equal(metric(daemon, "tribod_outbox_clock_skew_seconds"), 0, "equal clocks")


def mistakes(folder: Path) -> None:
    """Wrong options end the start; a daemon without a fleet says so; an absent one starts."""
    tribod = tribo.daemon.find_binary()
    wrong = subprocess.run(
        [tribod, "--check-config"],
        env={"TRIBOD_FLEET_OUTBOX": "mysql://there"},
        capture_output=True,
        text=True,
        check=False,
    )
    report.equal(wrong.returncode, 2, "a wrong URL")
    report.check("postgresql://" in wrong.stderr, f"it says what is right: {wrong.stderr}")
    with start(folder, "west", "postgresql://tribo@127.0.0.1:9/none") as daemon:
        with daemon.connect() as client:
            error = report.raises(
                tribo.FailedPreconditionError, "a list", lambda: list(client.runs(fleet=True))
            )
            report.check("fleet's database" in str(error), f"it says which: {error}")
        wait_for("failures count", lambda: metric(daemon, "tribod_outbox_failures_total") > 0)
    with tribo.Daemon() as daemon, daemon.connect() as client:
        report.check(not client.server_info().fleet, "no fleet")
        error = report.raises(
            tribo.FailedPreconditionError, "a list", lambda: list(client.runs(fleet=True))
        )
        report.check("[fleet] outbox" in str(error), f"it names the option: {error}")


def main() -> None:
    """All checks."""
    programs = find_programs()
    with scratch() as folder:
        with report.case("mistakes"):
            mistakes(folder)
        if programs is None:
            report.skip("runs_reach_the_fleet: PostgreSQL is not installed")
            report.finish()
            return
        postgres = Postgres(programs)
        try:
            for case in (nothing_is_lost, other_databases, owners, clocks):
                with report.case(case.__name__):
                    case(postgres, folder)
        finally:
            postgres.close()
    report.finish()


if __name__ == "__main__":
    main()
