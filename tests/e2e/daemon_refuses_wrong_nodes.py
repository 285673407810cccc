#!/usr/bin/env python3
"""Mistakes of a deployment end the start with a message that names them, and leave the data as they
are: a volume of another version or of something else, a missing secret, no card where one is asked
for."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from common_daemon import BALL, TRIBO, Report, scratch

import tribo

report = Report()
#: later than any that this test will see
LATER = 1000


def begin(data: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """Starts a daemon that should end by itself: its status and its messages."""
    ended = subprocess.run(
        [tribo.daemon.find_binary(), "--data", str(data), *arguments],
        env={
            **os.environ,
            "TRIBOD_SERVER_GRPC_ADDRESS": "127.0.0.1:0",
            "TRIBOD_SERVER_HTTP_ADDRESS": "127.0.0.1:0",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stderr


def contents(folder: Path) -> dict[str, str]:
    """Digest of each file."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name != "tribod.log"
    }


def version(data: Path, number: int) -> int:
    """Sets the version of a store, and gives the one before."""
    with sqlite3.connect(data / "tribo.db") as store:
        before = int(store.execute("PRAGMA user_version").fetchone()[0])
        store.execute(f"PRAGMA user_version = {number}")
    store.close()
    return before


def another_version(folder: Path) -> None:
    """A volume that a newer build has written is refused, and goes on under that build."""
    data = folder / "newer"
    with tribo.Daemon(data=data) as daemon, daemon.connect() as client:
        session = client.create_session(client.load(BALL), label="kept")
        session.step(7)
        kept = session.snapshot().sha256
    ours = version(data, LATER)
    before = contents(data)
    code, message = begin(data)
    report.equal(code, 1, "exit status")
    report.check(f"version {LATER}" in message and "newer" in message, f"it says why: {message}")
    report.check(str(data) in message, f"and which file: {message}")
    report.equal(contents(data), before, "files of the volume")
    code, message = begin(data, "--create-key", "planner")
    report.equal(code, 1, "a key for it")
    report.check(f"version {LATER}" in message, f"it says why: {message}")
    report.equal(contents(data), before, "files of the volume")

    version(data, ours)
    with tribo.Daemon(data=data) as daemon, daemon.connect() as client:
        (back,) = client.sessions()
        again = client.session(back.session_id).snapshot(transient=True)
        report.equal(again.sha256, kept, "the session under the right build")


def another_program(folder: Path) -> None:
    """A volume with a database of another program, or with a file that is none."""
    data = folder / "foreign"
    data.mkdir()
    with sqlite3.connect(data / "tribo.db") as store:
        store.execute("CREATE TABLE bookmarks (address TEXT)")
    store.close()
    before = contents(data)["tribo.db"]
    code, message = begin(data)
    report.equal(code, 1, "exit status over another program's database")
    report.check("not a store" in message, f"it says so: {message}")
    report.equal(contents(data)["tribo.db"], before, "the database")
    (data / "tribo.db").write_bytes(
        b"not a database, but a text of more than a hundred bytes. " * 4
    )
    code, message = begin(data)
    report.equal(code, 1, "exit status over a text")
    report.check("tribo.db" in message, f"it names the file: {message}")


def missing_secrets(folder: Path) -> None:
    """Files of secrets that are not mounted are named before anything is made."""
    data = folder / "secrets"
    for name, arguments, variables in (
        ("/etc/absent/tls.crt", (), {"TRIBOD_TLS_CERTIFICATE": "/etc/absent/tls.crt"}),
        (
            "/etc/absent/run.planner",
            ("--create-key", "run.planner", "--key-file", "/etc/absent/run.planner"),
            {},
        ),
    ):
        if "TRIBOD_TLS_CERTIFICATE" in variables:
            variables["TRIBOD_TLS_KEY"] = "/etc/absent/tls.key"
        code, message = begin(data, *arguments, **variables)
        report.check(code in (1, 2), f"exit status {code} without {name}")
        report.check(name in message, f"it names {name}: {message}")
        report.check(not (data / "tribo.db").exists(), f"no store without {name}")
    empty = folder / "empty"
    empty.write_text("")
    code, message = begin(data, "--create-key", "k", "--key-file", str(empty))
    report.check(code in (1, 2) and str(empty) in message, f"an empty secret: {code}, {message}")


def no_card(folder: Path) -> None:
    """Where cards are asked for and there is none, the start ends; `auto` goes on and says why."""
    data = folder / "cards"
    absent = {"TRIBO_GPU_PLUGIN": "/nonexistent/libtribo_gpu.so"}
    code, message = begin(data, TRIBOD_SERVER_BACKEND="gpu", **absent)
    report.equal(code, 1, "exit status without a card")
    report.check("backend = gpu, but there is none" in message, f"it says so: {message}")
    report.check("libtribo_gpu.so" in message, f"and why: {message}")
    report.check(not data.exists() or contents(data) == {}, "nothing is made")
    with (
        tribo.Daemon(data=data, environment={"TRIBOD_SERVER_BACKEND": "auto", **absent}) as daemon,
        daemon.connect() as client,
    ):
        report.equal([d.name for d in client.server_info().devices], ["cpu"], "devices of auto")
        report.check("devices.no_card" in daemon.log.read_text(), "the log tells why")


def backup_of_another_version(folder: Path) -> None:
    """A backup says which version it met, and leaves no half copy."""
    data = folder / "newer"
    ours = version(data, LATER)
    copy = folder / "copy.db"
    made = subprocess.run(
        [TRIBO, "backup", str(data), str(copy), "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode == 0:
        with sqlite3.connect(copy) as store:
            kept = int(store.execute("PRAGMA user_version").fetchone()[0])
        report.equal(kept, LATER, "a copy keeps its version")
    else:
        report.check(str(LATER) in made.stderr, f"it names the version: {made.stderr}")
        report.check(not copy.exists(), "no half copy")
    version(data, ours)


def main() -> None:
    """All checks."""
    with scratch() as folder:
        for case in (
            another_version,
            another_program,
            missing_secrets,
            no_card,
            backup_of_another_version,
        ):
            with report.case(case.__name__):
                case(folder)
    report.finish()


if __name__ == "__main__":
    main()
