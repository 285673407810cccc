#!/usr/bin/env python3
"""Access rules: anonymous callers, keys with their scopes, rates and owners, TLS with and
without certificates of clients, a Unix socket; and no key is ever written to the log."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import grpc
from common_daemon import BALL, Report, create_key, scratch

import tribo


def key_id(key: str) -> str:
    """The part of a key that is no secret."""
    return key.split("_")[1]


def http(daemon: tribo.Daemon, method: str, body: object, key: str = "") -> tuple[int, str, object]:
    """A call by the Connect protocol: status, code, headers."""
    request = urllib.request.Request(
        f"http://{daemon.http}/tribo.v1.{method}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
            return answer.status, "", answer.headers
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}").get("code", ""), error.headers


def scopes(report: Report, daemon: tribo.Daemon, keys: dict[str, str]) -> None:
    """Each scope allows its methods, and no more."""
    with daemon.connect(api_key=keys["run"], timeout=60) as run:
        scene = run.load(BALL, name="ball.xml").id
        session = run.create_session(scene)
        session.step()
        with daemon.connect(api_key=keys["read"], timeout=60) as read:
            read.server_info()
            list(read.runs())
            error = report.raises(
                tribo.PermissionDeniedError, "read cannot run", lambda: read.create_session(scene)
            )
            report.check(error is not None and "scope run" in error.message, f"message: {error}")
            report.equal(list(read.sessions()), [], "sessions of a reader")
        with daemon.connect(api_key=keys["other"], timeout=60) as other:
            # owners do not see each other's sessions, snapshots or runs
            snapshot = session.snapshot()
            stranger = other.session(session.id)
            for what, call in {
                "step": stranger.step,
                "state": stranger.state,
                "snapshot": stranger.snapshot,
                "fork": stranger.fork,
                "delete": stranger.delete,
                "watch": lambda: list(stranger.watch()),
                "run": lambda: other.run(session.id),
            }.items():
                report.raises(tribo.NotFoundError, f"{what} of somebody else's", call)
            report.equal(list(other.sessions()), [], "sessions of others")
            report.equal(list(other.runs()), [], "runs of others")
            own = other.create_session(scene)
            report.raises(
                tribo.NotFoundError, "snapshot of others", lambda: own.restore(snapshot.snapshot_id)
            )
            with daemon.connect(api_key=keys["admin"], timeout=60) as admin:
                seen = {s.session_id for s in admin.sessions()}
                report.equal(seen, {session.id, own.id}, "sessions that an admin sees")
                admin.session(own.id).delete()
        report.equal(session.step().steps, 2, "steps of the owner's session")


def wrong_keys(report: Report, daemon: tribo.Daemon, keys: dict[str, str]) -> None:
    """Malformed keys are refused, the same over both transports."""
    good = keys["run"]
    wrong = {
        "of another secret": good[:-4] + ("AAAA" if good[-4:] != "AAAA" else "BBBB"),
        "of another id": f"tribo_00000000_{good.split('_', 2)[2]}",
        "cut short": good[:20],
        "of another kind": "sk-something",
        "revoked": keys["revoked"],
        "long": "tribo_" + "a" * 5000,
    }
    for what, key in wrong.items():
        with daemon.connect(api_key=key, timeout=60) as client:
            report.raises(tribo.UnauthenticatedError, f"a key {what}", client.server_info)
        status, code, _ = http(daemon, "Simulation/GetServerInfo", {}, key)
        report.equal((status, code), (401, "unauthenticated"), f"a key {what} over HTTP")
    report.equal(http(daemon, "Simulation/GetServerInfo", {}, good)[0], 200, "a good key over HTTP")
    status, code, _ = http(daemon, "Simulation/CreateSession", {"sceneId": "0" * 64}, keys["read"])
    report.equal((status, code), (403, "permission_denied"), "a small scope over HTTP")


def rates(report: Report, daemon: tribo.Daemon, key: str) -> None:
    """A key of two calls a second: further ones hear when to come back, and may then."""
    with tribo.connect(daemon.grpc, api_key=key, timeout=60, attempts=1) as client:
        refused: list[tribo.ResourceExhaustedError] = []
        for _ in range(20):
            try:
                client.session("0" * 32).delete()
            except tribo.NotFoundError:
                pass
            except tribo.ResourceExhaustedError as error:
                refused.append(error)
        report.check(5 <= len(refused) <= 18, f"{len(refused)} of 20 quick calls are refused")
        delays = [e.retry_after or 0 for e in refused]
        report.check(all(0 < d <= 1 for d in delays), f"delays {delays}")
        time.sleep(1.2)
        report.raises(tribo.NotFoundError, "after the delay", client.session("0" * 32).delete)
    statuses = [http(daemon, "Simulation/GetServerInfo", {}, key) for _ in range(10)]
    limited = [h for s, _, h in statuses if s == 429]
    report.check(len(limited) >= 5, f"statuses {[s[0] for s in statuses]}")
    report.check(all(int(h["Retry-After"]) >= 1 for h in limited), "Retry-After")


def quota(report: Report, daemon: tribo.Daemon, key: str) -> None:
    """A key with a quota of two sessions."""
    with daemon.connect(api_key=key, timeout=60) as client:
        scene = client.load(BALL, name="ball.xml")
        held = [client.create_session(scene) for _ in range(2)]
        report.raises(tribo.ResourceExhaustedError, "quota", lambda: client.create_session(scene))
        for session in held:
            session.delete()


def revocation(report: Report, daemon: tribo.Daemon, key: str) -> None:
    """A key that is revoked beside a running daemon ends with the next SIGHUP."""
    with daemon.connect(api_key=key, timeout=60) as client:
        client.server_info()
        subprocess.run(
            [os.environ["TRIBOD"], "--data", str(daemon.data), "--revoke-key", key_id(key)],
            check=True,
            capture_output=True,
        )
        os.kill(daemon.pid, signal.SIGHUP)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                client.server_info()
            except tribo.UnauthenticatedError:
                break
            time.sleep(0.05)
        report.raises(tribo.UnauthenticatedError, "a revoked key", client.server_info)


def check_log(report: Report, daemon: tribo.Daemon, keys: dict[str, str]) -> None:
    """Neither log nor store holds a key's secret."""
    for path in [daemon.log, *daemon.data.glob("tribo.db*")]:
        text = path.read_bytes()
        for name, key in keys.items():
            secret = key.split("_", 2)[2].encode()
            report.check(secret not in text, f"the key '{name}' is in {path.name}")
    report.check(b"server.ready" in daemon.log.read_bytes(), "the log is where it is looked for")


def keyed(report: Report, folder: Path) -> None:
    """A daemon with keys on loopback."""
    options = {
        "read": ["--scope", "read"],
        "run": ["--scope", "run"],
        "other": ["--scope", "run"],
        "admin": ["--scope", "admin"],
        "revoked": [],
        "limited": ["--rate", "2"],
        "small": ["--sessions", "2"],
        "later": [],
    }
    keys = {name: create_key(folder, name, *flags) for name, flags in options.items()}
    subprocess.run(
        [os.environ["TRIBOD"], "--data", str(folder), "--revoke-key", key_id(keys["revoked"])],
        check=True,
        capture_output=True,
    )
    with tribo.Daemon(data=folder, arguments=["--log-level", "debug"]) as daemon:
        with report.case("scopes and owners"):
            scopes(report, daemon, keys)
        with report.case("wrong keys"):
            wrong_keys(report, daemon, keys)
        with report.case("rates"):
            rates(report, daemon, keys["limited"])
        with report.case("quota of a key"):
            quota(report, daemon, keys["small"])
        with report.case("revocation"):
            revocation(report, daemon, keys["later"])
        with report.case("anonymous on loopback"), daemon.connect(timeout=60) as client:
            client.server_info()
            client.create_session(client.load(BALL, name="ball.xml")).delete()
            proxied_by_grpc(report, daemon)
            # metrics need the scope read, probes none
            for path in ("/livez", "/readyz"):
                with urllib.request.urlopen(f"http://{daemon.http}{path}", timeout=60) as answer:
                    report.equal(answer.status, 200, path)
        report.equal(daemon.stop(), 0, "exit status")
        check_log(report, daemon, keys)


def proxied_by_grpc(report: Report, daemon: tribo.Daemon) -> None:
    """The headers of proxies, and another host's name, make a stranger of a gRPC caller too."""

    def code(header: str, authority: str = "localhost") -> str:
        options = [("grpc.default_authority", authority)]
        with grpc.insecure_channel(daemon.grpc, options) as channel:
            call = channel.unary_unary("/tribo.v1.Simulation/ListSessions")
            try:
                call(b"", metadata=[(header, "10.1.2.3")], timeout=30)
            except grpc.RpcError as error:
                return error.code().name
        return "OK"

    report.equal(code("x-other"), "OK", "gRPC on loopback")
    for header in ("x-forwarded-for", "x-real-ip", "via", "cf-connecting-ip", "forwarded"):
        report.equal(code(header), "UNAUTHENTICATED", f"gRPC with {header}")
    report.equal(code("x-other", "evil.example"), "UNAUTHENTICATED", "gRPC to another name")


def anonymous_none(report: Report, folder: Path) -> None:
    """Anonymous callers can be kept out on loopback too, but not from health."""
    closed = {"TRIBOD_AUTH_ANONYMOUS": "none"}
    with tribo.Daemon(data=folder, environment=closed) as daemon:
        with daemon.connect(timeout=60) as client:
            # any caller may read the server's basic description
            report.equal(client.server_info().draining, False, "anonymous: none, server info")
            report.raises(
                tribo.UnauthenticatedError, "anonymous: none", lambda: list(client.sessions())
            )
        status, code, _ = http(daemon, "Simulation/ListSessions", {})
        report.equal((status, code), (401, "unauthenticated"), "anonymous: none over HTTP")
    closed["TRIBOD_AUTH_SERVER_INFO"] = "read"
    with (
        tribo.Daemon(data=folder, environment=closed) as daemon,
        grpc.insecure_channel(daemon.grpc) as channel,
    ):
        told = channel.unary_unary("/tribo.v1.Simulation/GetServerInfo")(b"", timeout=30)
        report.equal(told, b"", "what strangers hear of the server")


def own_address() -> str:
    """An address of this machine that is not on loopback, or "" if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # nothing is sent: this only asks which address would be used
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        address: str = probe.getsockname()[0]
    return "" if address.startswith("127.") else address


def remote(report: Report, folder: Path) -> None:
    """Callers from other addresses than loopback have no anonymous access, unless
    configured."""
    address = own_address()
    if not address:
        report.skip("anonymous callers from elsewhere: this machine has only loopback")
        return
    everywhere = ["--grpc", "0.0.0.0:0", "--http", "0.0.0.0:0"]
    key = create_key(folder, "planner")
    for allowed in ("no", "yes"):
        environment = {"TRIBOD_AUTH_ANONYMOUS_REMOTE": allowed}
        with tribo.Daemon(data=folder, arguments=everywhere, environment=environment) as daemon:
            target = f"{address}:{daemon.grpc.rpartition(':')[2]}"
            with tribo.connect(target, timeout=60) as client:
                if allowed == "yes":
                    report.equal(list(client.sessions()), [], "sessions from elsewhere")
                else:
                    what = "anonymous from elsewhere"
                    report.raises(
                        tribo.UnauthenticatedError, what, lambda c=client: list(c.sessions())
                    )
            with tribo.connect(target, api_key=key, timeout=60) as client:
                report.equal(list(client.sessions()), [], "with a key from elsewhere")


def make_certificates(folder: Path) -> None:
    """An authority, and certificates of it for the server and a client."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for authority in ("ca", "stranger"):
        openssl("req", "-x509", *curve, "-keyout", f"{authority}.key", "-out", f"{authority}.pem",
                "-days", "2", "-subj", f"/CN={authority}")  # fmt: skip
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name, authority in (("server", "ca"), ("client", "ca"), ("wrong", "stranger")):
        openssl("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr",
                "-subj", f"/CN={name}")  # fmt: skip
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey",
                f"{authority}.key", "-CAcreateserial", "-days", "2", "-extfile", "names",
                "-out", f"{name}.pem")  # fmt: skip


def credentials(folder: Path, name: str = "", authority: str = "ca") -> grpc.ChannelCredentials:
    """Of a client that trusts the authority and shows a certificate, if it has one."""
    return grpc.ssl_channel_credentials(
        (folder / f"{authority}.pem").read_bytes(),
        (folder / f"{name}.key").read_bytes() if name else None,
        (folder / f"{name}.pem").read_bytes() if name else None,
    )


def curl(folder: Path, daemon: tribo.Daemon, *flags: str) -> int:
    """HTTP status of a call by TLS, 0 if there was none."""
    address = daemon.http
    done = subprocess.run(
        ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "30", *flags,
         "-H", "Content-Type: application/json", "-d", "{}",
         f"https://{address}/tribo.v1.Simulation/GetServerInfo"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return int(done.stdout or 0)


def speaks_tls(address: str, version: str, *more: str) -> bool:
    """Whether a handshake of just this version ends well."""
    flag = f"-tls{version.replace('.', '_')}"
    command = ["openssl", "s_client", "-connect", address, flag, *more]
    if version < "1.2":
        command += ["-cipher", "DEFAULT@SECLEVEL=0"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    return "Cipher is (NONE)" not in done.stdout and "New, TLSv" in done.stdout


def tls(report: Report, folder: Path) -> None:
    """TLS over both transports, then TLS in which clients show certificates too."""
    make_certificates(folder)
    environment = {
        "TRIBOD_TLS_CERTIFICATE": str(folder / "server.pem"),
        "TRIBOD_TLS_KEY": str(folder / "server.key"),
    }
    with tribo.Daemon(data=folder / "tls", environment=environment) as daemon:
        with tribo.connect(daemon.grpc, credentials=credentials(folder), timeout=30) as client:
            client.create_session(client.load(BALL, name="ball.xml")).step()
        with daemon.connect(timeout=5) as client:
            report.raises(tribo.TriboError, "plain text to a TLS port", client.server_info)
        with tribo.connect(
            daemon.grpc, credentials=credentials(folder, authority="stranger"), timeout=5
        ) as client:
            report.raises(tribo.TriboError, "a server of an unknown authority", client.server_info)
        report.equal(curl(folder, daemon, "--cacert", "ca.pem"), 200, "HTTPS")
        report.equal(curl(folder, daemon, "--cacert", "stranger.pem"), 0, "HTTPS of a stranger")
        for version, good in (("1.1", False), ("1.2", True), ("1.3", True)):
            for port, more in ((daemon.grpc, ["-alpn", "h2"]), (daemon.http, [])):
                spoken = speaks_tls(port, version, *more)
                report.equal(spoken, good, f"TLS {version} on {port}")

        # another authority's certificate at the same place, and a signal
        for kind in ("pem", "key"):
            shutil.copy(folder / f"wrong.{kind}", folder / f"server.{kind}")
        os.kill(daemon.pid, signal.SIGHUP)
        report.equal(curl(folder, daemon, "--cacert", "stranger.pem"), 200, "HTTPS, renewed")
        report.equal(curl(folder, daemon, "--cacert", "ca.pem"), 0, "HTTPS by the old authority")
        with tribo.connect(
            daemon.grpc, credentials=credentials(folder, authority="stranger"), timeout=30
        ) as client:
            client.server_info()
        report.equal(daemon.stop(), 0, "exit status with TLS")
    make_certificates(folder)

    environment["TRIBOD_TLS_CLIENT_CA"] = str(folder / "ca.pem")
    with tribo.Daemon(data=folder / "mutual", environment=environment) as daemon:
        for name, good in (("client", True), ("", False), ("wrong", False)):
            with tribo.connect(
                daemon.grpc, credentials=credentials(folder, name), timeout=30 if good else 5
            ) as client:
                if good:
                    client.server_info()
                else:
                    what = f"the certificate '{name}'"
                    report.raises(tribo.TriboError, what, client.server_info)
            shown = ["--cert", f"{name}.pem", "--key", f"{name}.key"] if name else []
            status = curl(folder, daemon, "--cacert", "ca.pem", *shown)
            report.check((status == 200) == good, f"HTTPS with '{name}' gives {status}")
        report.equal(daemon.stop(), 0, "exit status with mutual TLS")


def unix_socket(report: Report, folder: Path) -> None:
    """A Unix socket beside the ports; it goes with the daemon."""
    path = folder / "tribod.sock"
    environment = {"TRIBOD_SERVER_GRPC_SOCKET": str(path)}
    with tribo.Daemon(data=folder / "unix", environment=environment) as daemon:
        with tribo.connect(f"unix:{path}", timeout=60) as client:
            session = client.create_session(client.load(BALL, name="ball.xml"))
            report.equal(session.step().steps, 1, "a step over the socket")
            with daemon.connect(timeout=60) as other:
                report.equal(other.session(session.id).step().steps, 2, "the same over TCP")
        report.equal(daemon.stop(), 0, "exit status")
    report.check(not path.exists(), "the socket is left behind")


def main() -> None:
    """Runs the parts."""
    report = Report()
    with scratch() as folder:
        keyed(report, folder / "keyed")
        for name, part in {
            "anonymous: none": anonymous_none,
            "anonymous from elsewhere": remote,
            "TLS": tls,
            "Unix socket": unix_socket,
        }.items():
            with report.case(name):
                own = folder / name.replace(" ", "-").replace(":", "")
                own.mkdir()
                part(report, own)
    report.finish()


if __name__ == "__main__":
    main()
