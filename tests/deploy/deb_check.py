"""Installs, upgrades, removes and purges the packages of `make deb` in a container.

    make deb-check

lintian must find nothing. The container begins with the base of `make image`. The packages of an
older version are the same ones with another number; a daemon of theirs leaves a session that the
newer daemon must give back, and the operator's edit of /etc/tribod.ini must survive.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from common_daemon import BALL, BUILD, Report
from common_process import free_port
from image_check import ENGINE, ISOLATION, are_equal, run

import tribo

BASES = ("docker.io/library/debian:bookworm-slim", "localhost/tribo-base:bookworm")
NAME = f"tribod-deb-check-{os.getpid()}"
DEBS = (BUILD / "deb").resolve()
OLDER = "0.0.9"
INI = "/etc/tribod.ini"
STORE = "/var/lib/tribod"
EDIT = "; a line of the operator\n"


def inside(*command: str, seconds: float = 900) -> subprocess.CompletedProcess[str]:
    """One command in the container, as root."""
    return subprocess.run(
        [ENGINE, *runtime(), "exec", "--env", "DEBIAN_FRONTEND=noninteractive", NAME, *command],
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def runtime() -> list[str]:
    """The runtime is a global option of podman alone."""
    return ["--runtime", "runc"] if ENGINE.endswith("podman") and shutil.which("runc") else []


def there(path: str) -> bool:
    """Whether a path exists in the container."""
    return inside("test", "-e", path).returncode == 0


def apt(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One apt-get command; the container may not let apt change its user."""
    options = ["-q", "-y", "-o", "APT::Sandbox::User=root", "--no-install-recommends"]
    return inside("apt-get", *options, *arguments)


def older(debs: list[Path], folder: Path) -> str:
    """Packages of an older version with the same files; the version of those given."""
    version = ""
    for deb in debs:
        tree = folder / deb.stem
        subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
        control = tree / "DEBIAN/control"
        text = control.read_text()
        version = next(x.split()[1] for x in text.splitlines() if x.startswith("Version:"))
        control.write_text(text.replace(version, OLDER))
        target = folder / deb.name.replace(version, OLDER)
        subprocess.run(
            ["dpkg-deb", "-Zgzip", "-z1", "-b", tree, target],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        shutil.rmtree(tree)
    return version


def installed() -> dict[str, str]:
    """Versions of our packages that the container has, with the state of each."""
    form = "${Package} ${db:Status-Abbrev} ${Version}\n"
    listed = inside("dpkg-query", "-W", "-f", form, "*tribo*").stdout
    rows = [line.split() for line in listed.splitlines()]
    return {row[0]: " ".join(row[1:]) for row in rows if len(row) > 1 and row[1] != "un"}


class Daemon:
    """The packaged daemon under its own user; the container has no systemd that runs."""

    def __init__(self) -> None:
        self.grpc = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            [
                *(ENGINE, *runtime(), "exec", "--user", "tribod"),
                *("--env", f"TRIBOD_SERVER_GRPC_ADDRESS={self.grpc}"),
                *("--env", f"TRIBOD_SERVER_HTTP_ADDRESS=127.0.0.1:{free_port()}"),
                *(NAME, "/usr/bin/tribod", "--data", STORE, "--config", INI),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def connect(self) -> tribo.Client:
        """A client, once the daemon answers."""
        end = time.monotonic() + 30
        while True:
            client = tribo.connect(self.grpc)
            try:
                client.server_info()
                return client
            except tribo.TriboError:
                client.close()
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.2)

    def stop(self) -> int:
        """Its exit status after SIGTERM."""
        inside("sh", "-c", "kill $(cat /proc/[0-9]*/stat | awk '$2 == \"(tribod)\" {print $1}')")
        try:
            return self.process.wait(40)
        finally:
            self.process.kill()


def check_lintian(report: Report) -> None:
    """No error, no warning, nothing overridden."""
    (changes,) = DEBS.glob("*.changes")
    found = subprocess.run(
        ["lintian", "--allow-root", "--show-overrides", changes], capture_output=True, text=True
    )
    report.equal(found.stdout.strip(), "", "lintian")
    report.equal(found.returncode, 0, f"exit status of lintian: {found.stderr}")


def check_packages(report: Report, debs: list[Path], version: str) -> None:
    """From nothing to the older version, to ours, and back to nothing."""
    names = sorted(deb.name.split("_")[0] for deb in debs)
    answer = apt("update")
    report.equal(answer.returncode, 0, f"apt-get update: {answer.stderr[-500:]}")
    answer = apt("install", *(f"/older/{d.name.replace(version, OLDER)}" for d in debs))
    report.equal(answer.returncode, 0, f"install: {answer.stdout[-800:]}{answer.stderr[-800:]}")
    report.equal(installed(), {name: f"ii {OLDER}" for name in names}, "packages installed")
    report.equal(inside("id", "-un", "tribod").stdout.strip(), "tribod", "the user")
    # as systemd does for StateDirectory=
    inside("install", "-d", "-o", "tribod", "-g", "tribod", "-m", "700", STORE)
    answer = inside("tribod", "--check-config", "--config", INI)
    report.equal(answer.returncode, 0, f"--check-config: {answer.stderr}")
    answer = inside("tribo", "--version")
    report.check(version in answer.stdout, f"tribo --version: {answer.stdout}{answer.stderr}")

    # the older daemon keeps a session, and the operator edits the configuration
    daemon = Daemon()
    with daemon.connect() as client:
        session = client.create_session(client.load(BALL, name="ball.xml"))
        before = session.step(50)
        name = session.id
        devices = [d.name for d in client.server_info().devices]
        report.equal(devices, ["cpu"], "devices without a card")
    report.equal(daemon.stop(), 0, "exit status after SIGTERM")
    inside("sh", "-c", f"printf '{EDIT[:-1]}\\n' >> {INI}")

    answer = apt("install", *(f"/debs/{d.name}" for d in debs))
    report.equal(answer.returncode, 0, f"upgrade: {answer.stdout[-800:]}{answer.stderr[-800:]}")
    report.equal(installed(), {name: f"ii {version}" for name in names}, "packages upgraded")
    ini = inside("cat", INI).stdout
    report.check(ini.endswith(EDIT), f"the operator's edit survives: {ini[-200:]}")
    damaged = [
        line
        for line in inside("dpkg", "-V", *names).stdout.splitlines()
        if "/usr/share/doc/" not in line and not line.endswith(INI)
    ]
    report.equal(damaged, [], "files that are not as packed")
    daemon = Daemon()
    with daemon.connect() as client:
        after = client.session(name).state()
        report.check(are_equal(before, after), "the session is the same under the newer version")
    report.equal(daemon.stop(), 0, "exit status after SIGTERM")

    answer = apt("remove", *names)
    report.equal(answer.returncode, 0, f"remove: {answer.stderr[-500:]}")
    report.check(not there("/usr/bin/tribod"), "the program is gone")
    report.check(not there("/usr/lib/tribo"), "the folder of the plug-in is gone")
    report.check(there(INI) and there(f"{STORE}/tribo.db"), "configuration and store stay")
    answer = inside("dpkg", "--purge", *names)
    report.equal(answer.returncode, 0, f"purge: {answer.stderr[-500:]}")
    report.check(not there(INI), "a purge removes the configuration")
    report.check(not there(STORE), "a purge removes the store")
    report.equal(installed(), {}, "packages that are left")


def main() -> None:
    """All checks."""
    report = Report()
    debs = sorted(DEBS.glob("*.deb"))
    if not debs:
        print(f"no packages in {DEBS}: make deb makes them", file=sys.stderr)
        sys.exit(1)
    debs = [deb for deb in debs if "-dbgsym" not in deb.name]
    base = next((b for b in BASES if run("image", "inspect", b).returncode == 0), "")
    if not base:
        print("no base image: make image makes one", file=sys.stderr)
        sys.exit(1)
    with report.case("check_lintian"):
        check_lintian(report)
    with tempfile.TemporaryDirectory() as temporary, report.case("check_packages"):
        version = older(debs, Path(temporary))
        started = run(
            *("run", "--detach", "--name", NAME, *ISOLATION),
            *("--volume", f"{DEBS}:/debs:ro", "--volume", f"{temporary}:/older:ro"),
            *(base, "sleep", "infinity"),
        )
        try:
            report.equal(started.returncode, 0, f"container: {started.stderr}")
            check_packages(report, debs, version)
        finally:
            run("rm", "--force", NAME)
    print(", ".join(deb.name for deb in debs))
    report.finish()


if __name__ == "__main__":
    main()
